/* SPDX-License-Identifier: Apache-2.0 */
/* From kernels to instructions, operators and lines; times of a trace. */
#include "formats/formats.h"
#include "unit.h"
#include "xref/xref.h"

static const char program[] =
    "HloModule jit_f, is_scheduled=true\n\n"
    "%body_fused (a: f32[4]) -> f32[4] {\n"
    "  %a = f32[4] parameter(0)\n"
    "  ROOT %e = f32[4] exponential(%a), metadata={op_name=\"jit(f)/exp\" source_file=\"/x/m.py\" "
    "source_line=7}\n"
    "}\n\n"
    "%cond (c: (f32[4])) -> pred[] {\n"
    "  %c = (f32[4]) parameter(0)\n"
    "  ROOT %t = pred[] constant(true)\n"
    "}\n\n"
    "%body (b: (f32[4])) -> (f32[4]) {\n"
    "  %b = (f32[4]) parameter(0)\n"
    "  %g = f32[4] get-tuple-element(%b), index=0\n"
    "  %copy.9 = f32[4] copy(%g)\n"
    "  ROOT %r = (f32[4]) tuple(%copy.9)\n"
    "}\n\n"
    "ENTRY %main (p: f32[4]) -> f32[4] {\n"
    "  %p = f32[4] parameter(0)\n"
    "  %loop_fusion.1 = f32[4] fusion(%p), kind=kLoop, calls=%body_fused\n"
    "  %loop_fusion.2 = f32[4] fusion(%loop_fusion.1), kind=kLoop, calls=%body_fused\n"
    "  %copy.3 = f32[4] copy(%loop_fusion.2)\n"
    "  %tu = (f32[4]) tuple(%copy.3)\n"
    "  %while.4 = (f32[4]) while(%tu), condition=%cond, body=%body, "
    "backend_config={\"known_trip_count\":{\"n\":\"3\"}}, metadata={op_name=\"jit(f)/while\" "
    "source_file=\"/x/m.py\" source_line=9}\n"
    "  ROOT %o = f32[4] get-tuple-element(%while.4), index=0\n"
    "}\n";

static struct rp_import read_text(const char *name, const char *text, size_t n)
{
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;

    assert_ok(rp_input_open_memory(name, text, n, NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, &import, &err), &err);
    return import;
}

struct fixture {
    struct rp_import program;
    struct rp_xref x;
    struct rp_arena arena;
};

static struct fixture open_fixture(void)
{
    struct fixture f = {.program = read_text("m.txt", program, sizeof program - 1)};
    struct rp_err err = RP_ERR_INIT;

    assert_non_null(f.program.program);
    assert_ok(rp_xref_init(&f.x, f.program.program, &err), &err);
    return f;
}

static void close_fixture(struct fixture *f)
{
    rp_xref_release(&f->x);
    rp_import_release(&f->program);
    rp_arena_release(&f->arena);
}

static void check_place(struct fixture *f, const char *name, const char *op, const char *line,
                        const char *basis)
{
    struct rp_xref_place place;

    rp_xref_place(&f->x, rp_xref_find(&f->x, name), &f->arena, &place);
    assert_string_equal(place.operator_, op);
    assert_string_equal(place.line, line);
    assert_string_equal(place.basis, basis);
}

static void finds_the_line_of_every_instruction(void **state)
{
    struct fixture f = open_fixture();

    UNUSED_STATE(state);
    check_place(&f, "e", "exp", "m.py:7", "instruction");
    check_place(&f, "loop_fusion.1", "exp", "m.py:7", "fusion root");
    check_place(&f, "copy.3{}", "copy", "m.py:7", "operand");
    check_place(&f, "copy.9", "copy", "m.py:9", "loop"); /* what a loop carries */
    check_place(&f, "while.4", "while", "m.py:9", "instruction");
    assert_int_equal(rp_xref_find(&f.x, "none"), RP_NONE);
    close_fixture(&f);
}

static void programs_without_thunks_list_what_needs_code(void **state)
{
    static const char *const names[] = {"loop_fusion.1", "loop_fusion.2", "copy.3", "while.4",
                                        "copy.9"};
    struct fixture f = open_fixture();
    struct rp_thunks none = {0};
    struct rp_xref_kernels k;
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_ok(rp_xref_kernels(&f.x, &none, &f.arena, &k, &err), &err);
    assert_int_equal(k.n, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(k.at[i].thunk.instruction, names[i]);
    assert_int_equal(k.at[4].runs, 3);
    assert_int_equal(k.at[4].thunk.parent, 3);
    close_fixture(&f);
}

/* Both fusions launch the kernel of the first; the copy inside the loop runs three times. */
static const char sequence[] =
    "000: kCommandBuffer [source | sink] \n"
    "    001: kCustomKernel [source | sink] loop_fusion_1 grid: [1, 1, 1]\n"
    "    002: kCustomKernel [source | sink] loop_fusion_1 grid: [1, 1, 1]\n"
    "003: kWhile [source | sink]\n"
    "    004: kCustomKernel [source | sink] copy_9 grid: [1, 1, 1]\n";
static const char metadata[] =
    "thunk_metadata { thunk_info { profile_annotation: \"loop_fusion.1\" thunk_id: 1 } thunk_kind: "
    "\"kCustomKernel\" }\n"
    "thunk_metadata { thunk_info { profile_annotation: \"loop_fusion.2\" thunk_id: 2 } thunk_kind: "
    "\"kCustomKernel\" }\n"
    "thunk_metadata { thunk_info { profile_annotation: \"while.4\" thunk_id: 3 } thunk_kind: "
    "\"kWhile\" }\n";

/* Two executions: kernels of the command buffer name only the buffer, the last two events belong to
   nothing and to another module. */
static const char trace[] = "{\"traceEvents\": [\n"
#define KERNEL(ts, dur, name, op, module)                                                          \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"pid\": 0, \"tid\": 7, \"ts\": " #ts ", \"dur\": " #dur \
    ", \"name\": \"" name "\", \"args\": {\"hlo_op\": \"" op "\", \"hlo_module\": \"" module       \
    "\", \"correlation\": " #ts "}}"
    KERNEL(10, 1, "loop_fusion_1", "command_buffer_1", "jit_f") ",\n" KERNEL(20, 2, "loop_fusion_1", "command_buffer_1", "jit_f") ",\n" KERNEL(
        30, 5, "copy_9", "copy.9",
        "jit_f(12)") ",\n" KERNEL(110, 3, "loop_fusion_1", "command_buffer_1",
                                  "jit_f") ",\n" KERNEL(120, 4, "loop_fusion_1", "command_buffer_1",
                                                        "jit_f") ",\n" KERNEL(130, 7, "unknown", "",
                                                                              "jit_f") ",\n" KERNEL(140,
                                                                                                    9,
                                                                                                    "loop_fusion_1",
                                                                                                    "x",
                                                                                                    "jit_g") "\n]}";

static void assigns_times_by_name_and_order(void **state)
{
    struct fixture f = open_fixture();
    struct rp_import recorded = read_text("t.json", trace, sizeof trace - 1);
    struct rp_thunks thunks, info;
    struct rp_xref_kernels k;
    struct rp_xref_times times = {0};
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_ok(rp_thunks_read(sequence, sizeof sequence - 1, NULL, &f.arena, &thunks, &err), &err);
    assert_ok(rp_thunk_metadata_read((const uint8_t *)metadata, sizeof metadata - 1, NULL, &f.arena,
                                     &info, &err),
              &err);
    assert_ok(rp_thunks_join(&thunks, &info, &f.arena, &err), &err);
    assert_ok(rp_xref_kernels(&f.x, &thunks, &f.arena, &k, &err), &err);
    assert_int_equal(k.n, 5);
    assert_int_equal(k.at[0].op, RP_NONE); /* a command buffer is not an instruction */
    assert_int_equal(k.at[2].op, rp_xref_find(&f.x, "loop_fusion.2"));
    assert_int_equal(k.at[2].basis, RP_XREF_METADATA);
    assert_int_equal(k.at[4].op, rp_xref_find(&f.x, "copy.9"));
    assert_int_equal(k.at[4].basis, RP_XREF_NAME);
    assert_int_equal(k.at[4].runs, 3);
    assert_ok(rp_xref_measure(recorded.trace, "jit_f", &f.x, &k, &times, &err), &err);
    assert_int_equal(times.events, 7);
    assert_int_equal(times.matched, 5);
    assert_int_equal(times.elsewhere, 1);
    assert_int_equal(k.at[1].total_ns, 4000);
    assert_int_equal(k.at[1].events, 2);
    assert_int_equal(k.at[2].total_ns, 6000);
    assert_true(k.at[2].by_order);
    assert_int_equal(k.at[4].total_ns, 5000);
    assert_false(k.at[4].by_order);
    rp_import_release(&recorded);
    close_fixture(&f);
}

/* Without a device the events of the host count, a loop without its body. */
static const char host_trace[] = "{\"traceEvents\": [\n"
#define HOST(ts, dur, op)                                                                          \
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"pid\": 0, \"tid\": 7, \"ts\": " #ts ", \"dur\": " #dur \
    ", \"name\": \"" op "\", \"args\": {\"hlo_op\": \"" op "\", \"hlo_module\": \"jit_f\"}}"
    HOST(10, 100, "while.4") ",\n" HOST(20, 30, "copy.9") ",\n" HOST(60, 10, "copy.9") "\n]}";

static void loops_of_the_host_count_without_their_bodies(void **state)
{
    struct fixture f = open_fixture();
    struct rp_import recorded = read_text("t.json", host_trace, sizeof host_trace - 1);
    struct rp_thunks none = {0};
    struct rp_xref_kernels k;
    struct rp_xref_times times = {0};
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_ok(rp_xref_kernels(&f.x, &none, &f.arena, &k, &err), &err);
    assert_ok(rp_xref_measure(recorded.trace, "jit_f", &f.x, &k, &times, &err), &err);
    assert_int_equal(k.at[3].total_ns, 60000);
    assert_int_equal(k.at[4].total_ns, 40000);
    assert_int_equal(times.total_ns, 100000);
    rp_import_release(&recorded);
    close_fixture(&f);
}

int test_xref(void);
int test_xref(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_line_of_every_instruction),
        cmocka_unit_test(programs_without_thunks_list_what_needs_code),
        cmocka_unit_test(assigns_times_by_name_and_order),
        cmocka_unit_test(loops_of_the_host_count_without_their_bodies),
    };

    return cmocka_run_group_tests_name("xref", tests, NULL, NULL);
}
