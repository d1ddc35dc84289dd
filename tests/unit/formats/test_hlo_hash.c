/* SPDX-License-Identifier: Apache-2.0 */
/* A module has one hash, whether it is HLO text, a protobuf, or a protobuf's text. */
#include "unit.h"

#include "formats/formats.h"
#include "formats/programs.h"
#include "formats/schema.h"
#include "formats/textproto.h"
#include "program/structure.h"

#include <ftw.h>
#include <stdlib.h>

static uint64_t hash_of(const struct rp_program *p)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_hashes hashes;

    assert_ok(rp_program_hash(p, &arena, &hashes, &err), &err);
    rp_arena_release(&arena);
    return hashes.program;
}

static uint64_t hash_of_text(const char *text, size_t n)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    uint64_t hash;

    assert_ok(rp_hlo_text_parse(text, n, NULL, &p, &err), &err);
    hash = hash_of(p);
    rp_program_free(p);
    return hash;
}

static uint64_t hash_of_pbtxt(const char *text, size_t n)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_input *in;
    uint64_t hash;

    assert_ok(rp_input_open_memory("f", text, n, NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, &import, &err), &err);
    assert_string_equal(import.format->name, "hlo-pbtxt");
    hash = hash_of(import.program);
    rp_import_release(&import);
    return hash;
}

/* Text, its protobuf, the text of that, and HLO text again. */
static void has_one_hash(const char *name, const char *text, size_t n)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer w = {0};
    struct rp_program *p, *proto;
    struct rp_bytes bytes;
    struct rp_out *out;
    uint64_t hash;
    const char *printed;

    assert_ok(rp_hlo_text_parse(text, n, NULL, &p, &err), &err);
    hash = hash_of(p);
    assert_ok(rp_hlo_proto_write(p, &w, &err), &err);
    assert_ok(rp_proto_written(&w, &bytes, &err), &err);
    assert_ok(rp_hlo_proto_parse(bytes.at, bytes.n, NULL, &proto, &err), &err);
    if (hash_of(proto) != hash)
        fail_msg("%s: another hash as a protobuf", name);
    assert_ok(rp_out_open_memory(&out, &err), &err);
    assert_ok(rp_textproto_print(&rp_schema_HLO_PROTO, bytes, false, out, &err), &err);
    printed = rp_out_borrow_memory(out, &n);
    if (hash_of_pbtxt(printed, n) != hash)
        fail_msg("%s: another hash as protobuf text", name);
    rp_out_abandon(out);
    assert_ok(rp_out_open_memory(&out, &err), &err);
    assert_ok(rp_hlo_text_print(proto, out, &err), &err);
    printed = rp_out_borrow_memory(out, &n);
    if (hash_of_text(printed, n) != hash)
        fail_msg("%s: another hash as text of the protobuf", name);
    rp_out_abandon(out);
    rp_program_free(proto);
    rp_program_free(p);
    rp_proto_writer_release(&w);
}

#define SCAN                                                                    \
    "HloModule scan\nadd {\n x = f32[] parameter(0)\n c = f32[] parameter(1)\n" \
    " s = f32[] add(x, c)\n ROOT t = (f32[], f32[]) tuple(s, s)\n}\n"           \
    "ENTRY e {\n x = f32[8] parameter(0)\n c = f32[] parameter(1)\n"            \
    " ROOT r = (f32[8], f32[]) scan(x, c), dimensions={0}, num_carries=1%s, to_apply=add\n}\n"
#define CONV                                                                                      \
    "HloModule conv\nENTRY e {\n x = f32[1,8,8,3] parameter(0)\n w = f32[3,3,3,4] parameter(1)\n" \
    " ROOT y = f32[1,8,8,4] convolution(x, w), window={size=3x3 pad=1_1x1_1}, "                   \
    "dim_labels=b01f_01io->b01f%s\n}\n"

/* A convolution as XLA's GPU compiler leaves it, and one as it leaves it for cuDNN. */
static const char fprop[] =
    ", convolution_kind=fprop, operand_precision={highest,highest}, "
    "backend_config={\"operation_queue_id\":\"0\",\"cudnn_conv_backend_config\":{\"algorithm\":"
    "{\"algo_id\":\"28\",\"tuning_knobs\":{\"2\":\"2\",\"3\":\"0\"},\"is_cudnn_frontend\":true},"
    "\"conv_result_scale\":1,\"activation_mode\":\"kNone\"},\"force_earliest_schedule\":false}";
static const char cudnn[] =
    "HloModule c\nENTRY e {\n x = f32[1,3,8,8]{3,2,1,0} parameter(0)\n"
    " w = f32[4,3,3,3]{3,2,1,0} parameter(1)\n"
    " ROOT y = (f32[1,4,8,8]{3,2,1,0}, u8[0]{0}) custom-call(x, w), window={size=3x3 "
    "pad=1_1x1_1}, dim_labels=bf01_oi01->bf01, custom_call_target=\"__cudnn$convForward\", "
    "metadata={op_name=\"jit(f)/conv\"}, backend_config={\"cudnn_conv_backend_config\":"
    "{\"serialized_graph\":\"a \\\"quoted\\\" \\\\ \\u00e9 /* % */\",\"side_input_scale\":0}}\n}\n";

static void one_hash(const char *format, const char *rest)
{
    char text[2048];
    int n = snprintf(text, sizeof text, "%s", format);
    char *at = strstr(text, "%s");

    assert_non_null(at);
    n = snprintf(text, sizeof text, "%.*s%s%s", (int)(strstr(format, "%s") - format), format, rest,
                 strstr(format, "%s") + 2);
    has_one_hash(text, text, (size_t)n);
}

static void newer_operations(void **state)
{
    static const char ragged[] =
        "HloModule r\nENTRY e {\n a = f32[8,4] parameter(0)\n b = f32[2,4,5] parameter(1)\n"
        " g = s32[2] parameter(2)\n ROOT d = f32[8,5] ragged-dot(a, b, g), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
        "rhs_group_dims={0}\n}\n";

    UNUSED_STATE(state);
    one_hash(SCAN, "");
    one_hash(SCAN, ", is_reverse=true, is_associative=true");
    one_hash(SCAN, ", is_associative=false");
    one_hash(CONV, "");
    one_hash(CONV, fprop);
    one_hash(CONV, ", feature_group_count=1, convolution_kind=wgrad");
    has_one_hash("cudnn", cudnn, sizeof cudnn - 1);
    has_one_hash("ragged", ragged, sizeof ragged - 1);
}

/* Every type of value, as text, as a protobuf and back. */
static void every_type_of_value(void **state)
{
    static const char collectives[] =
        "HloModule g\nadd {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
        " ROOT s = f32[] add(x, y)\n}\nENTRY e {\n p = f32[8] parameter(0)\n"
        " a = f32[8] all-reduce(p), replica_groups={{0,1},{2,3}}, to_apply=add\n"
        " b = f32[8] all-reduce(a), replica_groups=[2,4]<=[4,2]T(1,0), to_apply=add\n"
        " ROOT c = f32[8] collective-permute(b), source_target_pairs={{0,1},{1,0}}\n}\n";
    static const char lists[] =
        "HloModule l\nENTRY e {\n p = f32[8,12] parameter(0)\n z = f32[] constant(0)\n"
        " s = f32[4,10] slice(p), slice={[0:8:2], [2:12]}\n"
        " d = f32[13,40] pad(s, z), padding=0_9x-1_2_3\n"
        " k = f32[13,40] custom-call(d), custom_call_target=\"a \\\"b\\\" % \\\\ \\303\\251\", "
        "output_to_operand_aliasing={{}: (0, {})}\n"
        " ROOT t = f32[40,13] transpose(k), dimensions={1,0}\n}\n";

    UNUSED_STATE(state);
    has_one_hash("collectives", collectives, sizeof collectives - 1);
    has_one_hash("lists", lists, sizeof lists - 1);
}

/* Values that differ little have hashes that differ. */
static void nearby_values(void **state)
{
    static const char *const rest[] = {"",
                                       ", custom_call_target=\"a\"",
                                       ", custom_call_target=\" a\"",
                                       ", custom_call_target=\"a\\\"\"",
                                       ", custom_call_target=\"a/*b*/\"",
                                       ", custom_call_target=\"a\", dimensions={1}",
                                       ", custom_call_target=\"a\", dimensions={1,0}",
                                       ", custom_call_target=\"a\", dimensions={0,1}",
                                       ", custom_call_target=\"a\", dimensions={0,1,0}",
                                       ", custom_call_target=\"a\", dimensions={10}"};
    uint64_t hashes[sizeof rest / sizeof *rest];
    char text[512];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        int n = snprintf(text, sizeof text,
                         "HloModule m\nENTRY e {\n p = f32[8] parameter(0)\n"
                         " ROOT k = f32[8] custom-call(p)%s\n}\n",
                         rest[i]);

        hashes[i] = hash_of_text(text, (size_t)n);
        for (size_t k = 0; k < i; k++)
            assert_true(hashes[k] != hashes[i]);
    }
}

/* What XLA itself writes: fields that text has no words for, and words that are zero. */
#define MODULE(instructions, root)                                                \
    "hlo_module {\n name: \"m\" entry_computation_name: \"e\"\n computations {\n" \
    " name: \"e\"\n" instructions " id: 1 root_id: " root "\n}\n entry_computation_id: 1\n}\n"

static void as_xla_writes_them(void **state)
{
    static const char conv[] = MODULE(
        "instructions { name: \"x\" opcode: \"parameter\" id: 1 shape { element_type: F32 "
        "dimensions: [1, 8, 8, 3] layout { minor_to_major: [3, 2, 1, 0] } } }\n"
        "instructions { name: \"w\" opcode: \"parameter\" id: 2 parameter_number: 1 shape { "
        "element_type: F32 dimensions: [3, 3, 3, 4] layout { minor_to_major: [3, 2, 1, 0] } } }\n"
        "instructions { name: \"y\" opcode: \"convolution\" id: 3 operand_ids: [1, 2] shape { "
        "element_type: F32 dimensions: [1, 8, 8, 4] layout { minor_to_major: [3, 2, 1, 0] } } "
        "window { dimensions { size: 3 stride: 1 padding_low: 1 padding_high: 1 window_dilation: "
        "1 base_dilation: 1 } dimensions { size: 3 stride: 1 padding_low: 1 padding_high: 1 "
        "window_dilation: 1 base_dilation: 1 } } convolution_dimension_numbers { "
        "kernel_output_feature_dimension: 3 kernel_input_feature_dimension: 2 "
        "input_feature_dimension: 3 output_feature_dimension: 3 kernel_spatial_dimensions: [0, 1] "
        "input_spatial_dimensions: [1, 2] output_spatial_dimensions: [1, 2] } "
        "feature_group_count: 1 batch_group_count: 1 precision_config { operand_precision: "
        "DEFAULT operand_precision: DEFAULT } conv_kind: CONVOLUTION_KIND_DGRAD sparsity_config "
        "{ } backend_config: \"{\\\"a\\\":1}\" }\n",
        "3");
    char text[2048];
    const char *rest = ", convolution_kind=dgrad, backend_config={\"a\":1}";

    UNUSED_STATE(state);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(strstr(CONV, "%s") - CONV), CONV, rest,
             strstr(CONV, "%s") + 2);
    assert_true(hash_of_pbtxt(conv, sizeof conv - 1) == hash_of_text(text, strlen(text)));
}

/* ---- the modules of the repository ---- */

static unsigned nfiles;

static int check_file(const char *path, const struct stat *stat, int type, struct FTW *at)
{
    size_t n = strlen(path);
    struct rp_program *p = NULL;
    char *text;
    FILE *f;

    (void)at;
    if (type != FTW_F ||
        !((n > 4 && !strcmp(path + n - 4, ".hlo")) || (n > 8 && !strcmp(path + n - 8, ".hlo.txt"))))
        return 0;
    text = malloc((size_t)stat->st_size + 1);
    f = fopen(path, "rb");
    assert_non_null(text);
    assert_non_null(f);
    n = fread(text, 1, (size_t)stat->st_size, f);
    fclose(f);
    if (rp_hlo_text_parse(text, n, NULL, &p, NULL) == RP_OK) { /* some are broken on purpose */
        has_one_hash(path, text, n);
        nfiles++;
    }
    rp_program_free(p);
    free(text);
    return 0;
}

static void every_module_of_the_repository(void **state)
{
    UNUSED_STATE(state);
    nfiles = 0;
    assert_int_equal(nftw(RP_SOURCE_DIR "/examples", check_file, 16, FTW_PHYS), 0);
    assert_int_equal(nftw(RP_SOURCE_DIR "/tests/golden", check_file, 16, FTW_PHYS), 0);
    assert_true(nfiles >= 10);
}

int test_hlo_hash(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newer_operations), cmocka_unit_test(every_type_of_value),
        cmocka_unit_test(nearby_values), cmocka_unit_test(as_xla_writes_them),
        cmocka_unit_test(every_module_of_the_repository)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
