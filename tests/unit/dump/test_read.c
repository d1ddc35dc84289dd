/* SPDX-License-Identifier: Apache-2.0 */
/* The words of `dump` that read: on the example, and on small folders made here. */
#include "dump/change.h"
#include "formats/formats.h"
#include "unit.h"

#include <reprise/question.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP RP_SOURCE_DIR "/examples/xla_step.tar.gz"

static struct rp_result *ask_dump(const struct rp_setting *settings, size_t n, struct rp_err *err)
{
    struct rp_result *result = NULL;
    struct rp_ctx *ctx;

    assert_ok(rp_ctx_new(NULL, &ctx, err), err);
    (void)rp_ask(ctx, NULL, "dump", settings, n, &result, err);
    rp_ctx_free(ctx);
    return result;
}

#define ASK(...)                                       \
    ask_dump((const struct rp_setting[]){__VA_ARGS__}, \
             sizeof((const struct rp_setting[]){__VA_ARGS__}) / sizeof(struct rp_setting), &err)

static int64_t number_of(const struct rp_result *r, const char *path)
{
    int64_t value = -99;

    if (!rp_result_i64(r, path, &value))
        fail_msg("no number '%s'", path);
    return value;
}

static const char *text_of(const struct rp_result *r, const char *path)
{
    const char *value = "(none)";

    rp_result_text(r, path, &value);
    return value;
}

/* The row of a list whose field equals a text; fails where there is none. */
static struct rp_cursor row_of(const struct rp_result *r, const char *list, const char *key,
                               const char *text)
{
    struct rp_rows rows;
    const char *value;

    assert_true(rp_result_rows(r, list, &rows));
    while (rp_rows_next(&rows))
        if (rp_row_text(&rows.row, key, &value) && !strcmp(value, text))
            return rows.row;
    fail_msg("no row of '%s' with %s = '%s'", list, key, text);
    return rows.row;
}

static int64_t row_number(const struct rp_cursor *row, const char *key)
{
    int64_t value = -99;

    if (!rp_row_i64(row, key, &value))
        fail_msg("no number '%s'", key);
    return value;
}

static void lists_modules(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *r = ASK({"action", "ls"}, {"source", STEP});

    UNUSED_STATE(state);
    assert_non_null(r);
    assert_int_equal(number_of(r, "modules.0.id"), 3976);
    assert_int_equal(number_of(r, "modules.0.instructions_before"), 247);
    assert_int_equal(number_of(r, "modules.0.instructions"), 424);
    assert_int_equal(number_of(r, "modules.0.passes_changed"), 30);
    assert_int_equal(number_of(r, "modules.0.peak_bytes"), 3740676);
    assert_int_equal(number_of(r, "modules.0.compile_ns"), 3059039000);
    rp_result_free(r);
}

static void passes_have_times_and_changes(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *r = ASK({"action", "passes"}, {"source", STEP});
    struct rp_cursor row;
    const char *what;

    UNUSED_STATE(state);
    assert_non_null(r);
    assert_int_equal(number_of(r, "changed_count"), 30);
    assert_int_equal(number_of(r, "passes_run"), 306);
    row = row_of(r, "passes", "stage", "0013.simplification.after_cse.before_dce");
    assert_int_equal(row_number(&row, "before"), 202);
    assert_int_equal(row_number(&row, "after"), 189);
    assert_int_equal(row_number(&row, "removed"), 13);
    assert_int_equal(row_number(&row, "added"), 0);
    assert_int_equal(row_number(&row, "time_ns"), 51000);
    assert_true(rp_row_text(&row, "what", &what));
    assert_contains(what, "-5 constant, -3 add, -3 multiply, -2 broadcast");
    row = row_of(r, "passes", "pass", "simplification"); /* runs others: 1.07 ms with them */
    assert_true(row_number(&row, "self_ns") < row_number(&row, "time_ns"));
    rp_result_free(r);
    r = ASK({"action", "passes"}, {"source", STEP}, {"pass", "13"});
    assert_string_equal(text_of(r, "detail"), "82 cse");
    assert_string_equal(text_of(r, "details.0.kind"), "removed");
    rp_result_free(r);
    assert_null(ASK({"action", "passes"}, {"source", STEP}, {"pass", "nothing"}));
    assert_contains(err.text, "no program was dumped after a pass 'nothing'");
}

static void memory_equals_what_xla_states(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *r = ASK({"action", "memory"}, {"source", STEP});
    struct rp_rows rows;
    int64_t sum = 0, bytes;

    UNUSED_STATE(state);
    assert_non_null(r);
    assert_int_equal(number_of(r, "allocated_bytes"), 4399360);
    assert_int_equal(number_of(r, "reported_bytes"), 4399360);
    assert_int_equal(number_of(r, "peak_bytes"), 3740676);
    assert_int_equal(number_of(r, "stated_peak_bytes"), 3740676);
    assert_int_equal(number_of(r, "peak_position"), 36);
    assert_int_equal(number_of(r, "fragmentation_bytes"), 0);
    assert_true(rp_result_rows(r, "live", &rows));
    while (rp_rows_next(&rows))
        if (rp_row_i64(&rows.row, "bytes", &bytes))
            sum += bytes;
    assert_int_equal(sum, 3740676);
    assert_string_equal(text_of(r, "lines.0.name"), "m.py:4 f");
    assert_string_equal(text_of(r, "longest.0.value"), "gemm_fusion_dot.4");
    rp_result_free(r);
    r = ASK({"action", "memory"}, {"source", STEP}, {"at", "fusion.62"});
    assert_int_equal(number_of(r, "at_position"), 28);
    rp_result_free(r);
    assert_null(ASK({"action", "memory"}, {"source", STEP}, {"at", "55"}));
    assert_contains(err.text, "from 0 to 54");
}

static void kernels_lead_to_lines(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *r = ASK({"action", "kernels"}, {"source", STEP});
    struct rp_cursor row;
    const char *line;

    UNUSED_STATE(state);
    assert_non_null(r);
    assert_int_equal(number_of(r, "thunks"), 30); /* one of them the command buffer */
    assert_int_equal(number_of(r, "with_line"), 29);
    row = row_of(r, "kernels", "instruction", "gemm_fusion_dot.9");
    assert_true(rp_row_text(&row, "line", &line));
    assert_string_equal(line, "m.py:4 f");
    assert_int_equal(row_number(&row, "blocks"), 64);
    rp_result_free(r);
}

static void fusions_have_reasons(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *r = ASK({"action", "fusion"}, {"source", "tanh.3.0"}, {"source", STEP});

    UNUSED_STATE(state);
    assert_non_null(r);
    assert_string_equal(text_of(r, "ops.0.state"), "fused");
    assert_string_equal(text_of(r, "ops.0.certainty"), "log");
    assert_string_equal(text_of(r, "ops.0.kernel"), "loop_add_fusion.2");
    assert_string_equal(text_of(r, "ops.0.line"), "m.py:4 f");
    rp_result_free(r);
    r = ASK({"action", "fusion"}, {"source", "gemm_fusion_dot.5"}, {"source", STEP});
    assert_string_equal(text_of(r, "ops.0.state"), "not fused");
    assert_string_equal(text_of(r, "ops.0.why"), "the producer is not fusible");
    rp_result_free(r);
    assert_null(ASK({"action", "fusion"}, {"source", "nosuch"}, {"source", STEP}));
    assert_contains(err.text, "'nosuch' is not an instruction");
}

static void updates_could_be_donated(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *r = ASK({"action", "alias"}, {"source", STEP});
    struct rp_rows rows;
    int64_t in, out;

    UNUSED_STATE(state);
    assert_non_null(r);
    assert_int_equal(number_of(r, "donated_count"), 0);
    assert_int_equal(number_of(r, "possible_count"), 8);
    assert_int_equal(number_of(r, "lost_bytes"), 4 * (256 * 256 + 256) * 4);
    assert_true(rp_result_rows(r, "possible", &rows));
    while (rp_rows_next(&rows)) { /* each parameter is the one that its output is the update of */
        assert_true(rp_row_i64(&rows.row, "input", &in) && rp_row_i64(&rows.row, "output", &out));
        assert_int_equal(in, out);
    }
    rp_result_free(r);
}

/* ---- folders made here ---- */

struct folder {
    char path[64];
};

static struct folder make_folder(void)
{
    struct folder f = {.path = "/tmp/reprise_dump_XXXXXX"};

    assert_non_null(mkdtemp(f.path));
    return f;
}

static const char *add_file(struct folder *f, const char *name, const char *text)
{
    static char path[256];
    FILE *to;

    snprintf(path, sizeof path, "%s/%s", f->path, name);
    to = fopen(path, "w");
    assert_non_null(to);
    fputs(text, to);
    fclose(to);
    return path;
}

static void remove_folder(struct folder *f)
{
    char command[128];

    snprintf(command, sizeof command, "rm -r %s", f->path);
    assert_int_equal(system(command), 0);
}

static const char sharded[] =
    "HloModule s, num_partitions=8\n\n"
    "%add (x: f32[], y: f32[]) -> f32[] {\n"
    "  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n  ROOT %z = f32[] add(%x, %y)\n}\n\n"
    "ENTRY %main (p: f32[1024]) -> f32[4096] {\n"
    "  %p = f32[1024] parameter(0)\n"
    "  %ar = f32[1024] all-reduce(%p), replica_groups=[2,4]<=[4,2]T(1,0), to_apply=%add, "
    "metadata={op_name=\"jit(f)/psum\" source_file=\"m.py\" source_line=3}\n"
    "  ROOT %ag = f32[4096] all-gather(%ar), replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}\n"
    "}\n";

static void communication_is_counted_by_axis(void **state)
{
    struct folder f = make_folder();
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *r;
    struct rp_cursor row;
    double sent;

    UNUSED_STATE(state);
    add_file(&f, "s.hlo", sharded);
    r = ASK({"action", "comm"}, {"source", f.path});
    assert_non_null(r);
    assert_int_equal(number_of(r, "devices"), 8);
    row = row_of(r, "collectives", "collective", "all-reduce");
    assert_true(rp_row_f64(&row, "wire_bytes", &sent));
    assert_true(sent == 2 * 4096.0 * 3 / 4);
    row = row_of(r, "collectives", "axis", "4 devices, every 2nd");
    row = row_of(r, "collectives", "axis", "4 neighbours");
    assert_true(rp_row_f64(&row, "wire_bytes", &sent));
    assert_true(sent == 4 * 4096.0 * 3 / 4);
    row = row_of(r, "lines", "line", "m.py:3");
    rp_result_free(r);
    remove_folder(&f);
}

/* XLA names the axes in the first stage only, and makes names up in the last. */
static void axes_have_the_names_of_the_mesh(void **state)
{
    static const char before[] =
        "HloModule m, num_partitions=8, frontend_attributes={xla.sdy.meshes={mesh = "
        "#sdy.mesh<[\"data\"=2, \"one\"=1, \"model\"=4], device_ids=[0,2,4,6,1,3,5,7]>}}\n\n"
        "ENTRY %main (p: f32[8]) -> f32[8] {\n  ROOT %p = f32[8] parameter(0)\n}\n";
    static const char after[] =
        "HloModule m, num_partitions=8\n\n"
        "ENTRY %main (p: f32[8]) -> f32[64] {\n  %p = f32[8] parameter(0)\n"
        "  %a = f32[16] all-gather(%p), replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={0}\n"
        "  %b = f32[64] all-gather(%a), replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_0'}, "
        "dimensions={0}\n"
        "  %c = f32[64] collective-permute(%b), source_target_pairs={{0,2},{2,4},{4,6},{1,3}}\n"
        "  %d = f32[64] collective-permute(%c), source_target_pairs={{0,3},{2,4}}\n"
        "  %e = f32[128] all-gather(%d), replica_groups={{0,3},{1,2},{4,5},{6,7}}, "
        "dimensions={0}\n"
        "  ROOT %f = f32[512] all-gather(%a), replica_groups=[2,4]<=[2,2,2]T(1,0,2), "
        "dimensions={0}\n}\n";
    static const char *const expected[][2] = {{"a", "data (2)"},
                                              {"b", "model (4)"},
                                              {"c", "model (pairs)"},
                                              {"d", "data,model (pairs)"},
                                              {"e", "2 devices, every 3rd"},
                                              {"f", "4 devices"}};
    struct folder f = make_folder();
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *r;

    UNUSED_STATE(state);
    add_file(&f, "module_0001.m.before_optimizations.txt", before);
    add_file(&f, "module_0001.m.cpu_after_optimizations.txt", after);
    r = ASK({"action", "comm"}, {"source", f.path});
    assert_non_null(r);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        struct rp_cursor row = row_of(r, "ops", "name", expected[i][0]);
        const char *axis = "";

        assert_true(rp_row_text(&row, "axis", &axis));
        assert_string_equal(axis, expected[i][1]);
    }
    rp_result_free(r);
    remove_folder(&f);
}

/* Without a log: what the final program shows, and nothing about a program that is not compiled. */
static void fusion_without_a_log_is_honest(void **state)
{
    static const char before[] =
        "HloModule m\n\nENTRY %main (p: f32[8]) -> f32[8] {\n  %p = f32[8] parameter(0)\n"
        "  %dot_general.1 = f32[8] negate(%p)\n  ROOT %abs.1 = f32[8] abs(%dot_general.1)\n}\n";
    static const char after[] =
        "HloModule m, is_scheduled=true\n\n"
        "%f (q: f32[8]) -> f32[8] {\n  %q = f32[8] parameter(0)\n"
        "  %neg.7 = f32[8] negate(%q)\n  ROOT %abs.1 = f32[8] abs(%neg.7)\n}\n\n"
        "ENTRY %main (p: f32[8]) -> f32[8] {\n  %p = f32[8] parameter(0)\n"
        "  ROOT %loop = f32[8] fusion(%p), kind=kLoop, calls=%f\n}\n";
    struct folder f = make_folder();
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *r;

    UNUSED_STATE(state);
    add_file(&f, "module_0001.m.before_optimizations.txt", before);
    r = ASK({"action", "fusion"}, {"source", f.path});
    assert_non_null(r);
    assert_contains(text_of(r, "notes.0"), "dumped before fusion");
    rp_result_free(r);
    r = ASK({"action", "fusion"}, {"source", "abs.1"}, {"source", f.path});
    assert_string_equal(text_of(r, "ops.0.state"), "not known");
    rp_result_free(r);
    add_file(&f, "module_0001.m.cpu_after_optimizations.txt", after);
    r = ASK({"action", "fusion"}, {"source", "negate"}, {"source", f.path});
    assert_string_equal(text_of(r, "ops.0.name"), "neg.7");
    assert_string_equal(text_of(r, "ops.0.state"), "fused");
    rp_result_free(r);
    r = ASK({"action", "fusion"}, {"source", "dot_general.1"}, {"source", f.path});
    assert_string_equal(text_of(r, "ops.0.state"), "gone");
    rp_result_free(r);
    remove_folder(&f);
}

static void generated_code_is_named_as_ignored(void **state)
{
    struct folder f = make_folder();
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *r;
    struct rp_cursor row;
    int64_t files;

    UNUSED_STATE(state);
    add_file(&f, "module_0001.m.before_optimizations.txt",
             "HloModule m\nENTRY e {\n  ROOT a = f32[] constant(1)\n}\n");
    add_file(&f, "module_0001.m.add_fusion_kernel_module-post-lowering.mlir", "module {}");
    add_file(&f, "module_0001.m.add_fusion_kernel_module.ir-no-opt.ll", "; ModuleID");
    add_file(&f, "module_0001.m.obj-file.add_fusion_kernel_module.o", "x");
    r = ASK({"action", "ls"}, {"source", f.path});
    assert_non_null(r);
    row = row_of(r, "ignored", "kind", "llvm");
    assert_true(rp_row_i64(&row, "files", &files));
    assert_int_equal(files, 2);
    row = row_of(r, "ignored", "kind", "objects");
    assert_true(rp_row_i64(&row, "files", &files));
    assert_int_equal(files, 1);
    rp_result_free(r);
    remove_folder(&f);
}

static const char lazy[] = "[ScheduleSyncTensorsGraph]\nTensorsGraphInfo:\n  f (m.py:1)\n\n"
                           "Hashes: (ab)\n\n## BEGIN_GRAPH\nIR {\n"
                           "  %0 = f32[4] lazy_tensors::device_data(), device=CPU:0\n"
                           "  %1 = f32[4] aten::add(%0), location=g@m.py:5, ROOT=0\n"
                           "  %2 = f32[4] aten::mul(%1), ROOT=1\n}\n\n## END_GRAPH\n\n";

static void no_engine_runs_lazy_graphs(void **state)
{
    struct folder f = make_folder();
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *r;

    UNUSED_STATE(state);
    add_file(&f, "graph.txt", lazy);
    r = ASK({"action", "ops"}, {"source", f.path});
    assert_non_null(r);
    assert_int_equal(number_of(r, "unsupported"), number_of(r, "operations"));
    assert_contains(text_of(r, "ops.0.why"), "dump the HLO");
    rp_result_free(r);
    remove_folder(&f);
}

static void empty_alias_dumps_name_the_variable(void **state)
{
    struct folder f = make_folder();
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *r;

    UNUSED_STATE(state);
    add_file(&f, "graph.txt", lazy);
    r = ASK({"action", "alias"}, {"source", f.path});
    assert_non_null(r);
    assert_contains(text_of(r, "notes.0"), "nodes have no location: they were made in C++");
    assert_contains(text_of(r, "notes.1"), "RATEX_DUMP_ALIAS");
    rp_result_free(r);
    add_file(&f, "alias.txt", "");
    r = ASK({"action", "alias"}, {"source", f.path});
    assert_contains(text_of(r, "notes.1"), "ENABLE_PARAM_ALIASING=true");
    rp_result_free(r);
    add_file(&f, "alias.txt", "0 1\n");
    r = ASK({"action", "alias"}, {"source", f.path});
    assert_int_equal(number_of(r, "donated_count"), 1);
    assert_int_equal(number_of(r, "donated_bytes"), 16);
    assert_string_equal(text_of(r, "donated.0.line"), "made in C++");
    rp_result_free(r);
    remove_folder(&f);
}

/* Damaged files are named; the list of modules goes on. */
static void damage_is_named(void **state)
{
    struct folder f = make_folder();
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *r;
    size_t notes = 0;

    UNUSED_STATE(state);
    add_file(&f, "module_0001.f.before_optimizations.txt", "HloModule f\n\nENTRY %m {");
    add_file(&f, "module_0001.f.cpu_after_optimizations-buffer-assignment.txt", "nonsense");
    add_file(&f, "module_0001.metadata.textproto", "pass_metadata {");
    add_file(&f, "module_0001.f.thunk_sequence.txt", "nonsense\n");
    add_file(&f, "module_0001.f.strange", "x");
    r = ASK({"action", "ls"}, {"source", f.path});
    assert_non_null(r);
    assert_true(rp_result_count(r, "notes", &notes));
    assert_int_equal(notes, 3); /* the program once, times, buffers */
    assert_contains(text_of(r, "notes.0"), "before_optimizations.txt'");
    assert_string_equal(text_of(r, "ignored.0.kind"), "other");
    rp_result_free(r);
    assert_null(ASK({"action", "memory"}, {"source", f.path}));
    assert_contains(err.text, "buffer-assignment.txt': does not begin with");
    assert_null(ASK({"action", "passes"}, {"source", f.path}));
    assert_contains(err.text, "metadata.textproto'");
    remove_folder(&f);
    f = make_folder();
    assert_null(ASK({"action", "ls"}, {"source", f.path}));
    remove_folder(&f);
}

/* ---- changes ---- */

static struct rp_import program_of(const char *body)
{
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;

    assert_ok(rp_input_open_memory("p.txt", body, strlen(body), NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, &import, &err), &err);
    return import;
}

static void fusing_moves_instructions(void **state)
{
    struct rp_import a = program_of("HloModule m\n\nENTRY %e (p: f32[4]) -> f32[4] {\n"
                                    "  %p = f32[4] parameter(0)\n  %x = f32[4] exponential(%p)\n"
                                    "  ROOT %y = f32[4] negate(%x)\n}\n");
    struct rp_import b =
        program_of("HloModule m\n\n%f (q: f32[4]) -> f32[4] {\n  %q = f32[4] parameter(0)\n"
                   "  %x.1 = f32[4] exponential(%q)\n  ROOT %y.1 = f32[4] negate(%x.1)\n}\n\n"
                   "ENTRY %e (p: f32[4]) -> f32[4] {\n  %p = f32[4] parameter(0)\n"
                   "  ROOT %fusion = f32[4] fusion(%p), kind=kLoop, calls=%f\n}\n");
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_dump_version left, right;
    struct rp_dump_change c;

    UNUSED_STATE(state);
    assert_ok(rp_dump_version_init(&left, a.program, &err), &err);
    assert_ok(rp_dump_version_init(&right, b.program, &err), &err);
    assert_ok(rp_dump_compare(&left, &right, &arena, &c, &err), &err);
    assert_int_equal(c.fusions, 1);
    assert_int_equal(c.added + c.changed, 1); /* the fusion, or what it took the place of */
    assert_true(c.moved >= 1);
    assert_int_equal(c.removed, 0);
    assert_contains(c.what, "+1 fusion");
    assert_ok(rp_dump_compare(&left, &left, &arena, &c, &err), &err);
    assert_true(c.same);
    assert_int_equal(c.added + c.removed + c.moved + c.changed, 0);
    rp_dump_version_release(&left);
    rp_dump_version_release(&right);
    rp_import_release(&a);
    rp_import_release(&b);
    rp_arena_release(&arena);
}

int test_read(void);
int test_read(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_modules),
        cmocka_unit_test(passes_have_times_and_changes),
        cmocka_unit_test(memory_equals_what_xla_states),
        cmocka_unit_test(kernels_lead_to_lines),
        cmocka_unit_test(fusions_have_reasons),
        cmocka_unit_test(updates_could_be_donated),
        cmocka_unit_test(communication_is_counted_by_axis),
        cmocka_unit_test(axes_have_the_names_of_the_mesh),
        cmocka_unit_test(fusion_without_a_log_is_honest),
        cmocka_unit_test(generated_code_is_named_as_ignored),
        cmocka_unit_test(no_engine_runs_lazy_graphs),
        cmocka_unit_test(empty_alias_dumps_name_the_variable),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(fusing_moves_instructions),
    };

    return cmocka_run_group_tests_name("read", tests, NULL, NULL);
}
