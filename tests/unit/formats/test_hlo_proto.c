/* SPDX-License-Identifier: Apache-2.0 */
/* HLO protobufs: every attribute there and back, wrappers, fields of others. */
#include "abi/proto/hlo.h"
#include "formats/formats.h"
#include "formats/programs.h"
#include "program/opcodes.h"
#include "program/structure.h"
#include "unit.h"

static uint64_t hash_of(const struct rp_program *p)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_hashes hashes;

    assert_ok(rp_program_hash(p, &arena, &hashes, &err), &err);
    rp_arena_release(&arena);
    return hashes.program;
}

static struct rp_program *through(const struct rp_program *p, struct rp_proto_writer *w)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *again;
    struct rp_bytes bytes;

    assert_ok(rp_hlo_proto_write(p, w, &err), &err);
    assert_ok(rp_proto_written(w, &bytes, &err), &err);
    assert_ok(rp_hlo_proto_parse(bytes.at, bytes.n, NULL, &again, &err), &err);
    return again;
}

/* XLA wants the window of a convolution, also where it has no dimensions. */
static void convolution_has_a_window(void **state)
{
    static const char text[] = "ENTRY e {\n x = f32[6,5] parameter(0)\n w = f32[5,3] parameter(1)\n"
                               " ROOT y = f32[6,3] convolution(x, w), dim_labels=bf_io->bf\n}";
    static const uint8_t window[] = {RP_HLO_INSTRUCTION_WINDOW << 3 | 2, 0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer w = {0};
    struct rp_program *p, *again;
    struct rp_bytes bytes;

    UNUSED_STATE(state);
    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    again = through(p, &w);
    assert_ok(rp_proto_written(&w, &bytes, &err), &err);
    assert_non_null(memmem(bytes.at, bytes.n, window, sizeof window));
    assert_true(hash_of(p) == hash_of(again));
    rp_program_free(again);
    rp_proto_writer_release(&w);
    rp_program_free(p);
}

/* What an attribute reads as after it went through a protobuf. */
static void attribute_returns(const char *key, const char *value, const char *shape,
                              const char *opcode, const char *operands)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer w = {0};
    struct rp_program *p, *again;
    const struct rp_attr *attr;
    const char *back;
    char text[700];
    uint32_t id;

    snprintf(text, sizeof text,
             "f { ROOT x = f32[] parameter(0) }\nENTRY e {\n a = f32[4,4] parameter(0)\n"
             " b = f32[4,4] parameter(1)\n i = s32[1] parameter(2)\n ROOT r = %s %s(%s), %s=%s\n}",
             shape, opcode, operands, key, value);
    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    again = through(p, &w);
    id = rp_strtab_find(&again->strings, key, strlen(key));
    attr = id == UINT32_MAX ? NULL : rp_op_attr(again, again->nops - 1, id);
    back = attr ? rp_attr_text(again, attr, &again->arena) : "(none)";
    if (strcmp(back, value) != 0)
        fail_msg("%s=%s came back as '%s'", key, value, back);
    assert_true(hash_of(p) == hash_of(again));
    rp_program_free(again);
    rp_proto_writer_release(&w);
    rp_program_free(p);
}

static const struct {
    const char *key, *value, *shape, *opcode, *operands;
} cases[] = {
    {"dimensions", "{1,0}", "f32[4,4]", "transpose", "a"},
    {"iota_dimension", "1", "f32[4,4]", "iota", ""},
    {"slice", "{[0:2:1], [0:4:2]}", "f32[2,2]", "slice", "a"},
    {"padding", "0_1x-2_3", "f32[5,5]", "pad", "a, b"},
    {"padding", "0_1_0x2_3_1", "f32[5,5]", "pad", "a, b"},
    {"window", "{size=2x2 stride=2x2 pad=0_1x0_1 rhs_reversal=1x0}", "f32[2,2]", "reduce-window",
     "a, b"},
    {"dim_labels", "b0f_0io->b0f", "f32[4,4]", "convolution", "a, b"},
    {"feature_group_count", "4", "f32[4,4]", "convolution", "a, b"},
    {"convolution_kind", "dgrad", "f32[4,4]", "convolution", "a, b"},
    {"is_associative", "false", "f32[4,4]", "scan", "a, b"},
    {"is_reverse", "true", "f32[4,4]", "scan", "a, b"},
    {"num_carries", "0", "f32[4,4]", "scan", "a, b"},
    {"num_carries", "2", "f32[4,4]", "scan", "a, b"},
    {"lhs_contracting_dims", "{0,1}", "f32[]", "dot", "a, b"},
    {"operand_precision", "{highest,default}", "f32[4,4]", "dot", "a, b"},
    {"algorithm", "dot_bf16_bf16_f32_x3", "f32[4,4]", "dot", "a, b"},
    {"algorithm", "rng_philox", "f32[4,4]", "rng-bit-generator", "a"},
    {"replica_groups", "{{0,1},{2,3}}", "f32[4,4]", "all-gather", "a"},
    {"replica_groups", "[2,4]<=[4,2]T(1,0)", "f32[4,4]", "all-gather", "a"},
    {"replica_groups", "[1,8]<=[8]", "f32[4,4]", "all-gather", "a"},
    {"source_target_pairs", "{{0,1},{1,0}}", "f32[4,4]", "collective-permute", "a"},
    {"use_global_device_ids", "true", "f32[4,4]", "all-gather", "a"},
    {"channel_id", "17", "f32[4,4]", "all-gather", "a"},
    {"direction", "GE", "pred[4,4]", "compare", "a, b"},
    {"type", "TOTALORDER", "pred[4,4]", "compare", "a, b"},
    {"epsilon", "1.001e-05", "f32[4,4]", "batch-norm-training", "a, b, b"},
    {"custom_call_target", "\"te\\\"st\"", "f32[4,4]", "custom-call", "a"},
    {"backend_config", "{\"a\":[1,2]}", "f32[4,4]", "custom-call", "a"},
    {"api_version", "API_VERSION_TYPED_FFI", "f32[4,4]", "custom-call", "a"},
    {"sharding", "{replicated}", "f32[4,4]", "negate", "a"},
    {"sharding", "{maximal device=3}", "f32[4,4]", "negate", "a"},
    {"sharding", "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}", "f32[4,4]", "negate",
     "a"},
    {"sharding", "{devices=[2,1]0,1 last_tile_dims={manual, replicated} shard_as 7}", "f32[4,4]",
     "negate", "a"},
    {"sharding", "{{manual}, {devices=[8]<=[8]}}", "f32[4,4]", "negate", "a"},
    {"sharding", "{mesh[\"x\"=2], [{\"x\"}, {}]}", "f32[4,4]", "negate", "a"},
    {"output_to_operand_aliasing", "{{0}: (0, {}), {1}: (0, {1})}", "f32[4,4]", "custom-call", "a"},
    {"frontend_attributes", "{a=\"1\",b=\"x\"}", "f32[4,4]", "copy", "a"},
    {"control-predecessors", "{%a, %b}", "f32[4,4]", "copy", "a"},
    {"index_vector_dim", "1", "f32[4]", "gather", "a, i"},
    {"transpose_a", "ADJOINT", "f32[4,4]", "triangular-solve", "a, b"},
    {"lower", "true", "f32[4,4]", "cholesky", "a"},
    {"fft_type", "RFFT", "f32[4,4]", "fft", "a"},
    {"fft_type", "FFT", "f32[4,4]", "fft", "a"},
    {"algorithm", "rng_default", "f32[4,4]", "rng-bit-generator", "a"},
    {"feature_index", "0", "f32[4,4]", "batch-norm-training", "a, b, b"},
    {"mantissa_bits", "0", "f32[4,4]", "reduce-precision", "a"},
    {"dimensions", "{}", "f32[4,4]", "broadcast", "a"},
    {"collapsed_slice_dims", "{}", "f32[4]", "gather", "a, i"},
    {"slice", "{[0:2], [0:4]}", "f32[2,4]", "slice", "a"},
    {"operand_layout_constraints", "{f32[4,4]{0,1}, s32[1]{0}}", "f32[4,4]", "custom-call", "a, i"},
    {"exponent_bits", "5", "f32[4,4]", "reduce-precision", "a"},
    {"sharding", "{devices=[2,1]<=[2]}", "f32[4,4]", "copy", "a"},
    {"brand_new", "{x={y}}", "f32[4,4]", "copy", "a"},
};

static void attributes_return(void **state)
{
    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        attribute_returns(cases[i].key, cases[i].value, cases[i].shape, cases[i].opcode,
                          cases[i].operands);
}

static void constants_return(void **state)
{
    static const char text[] =
        "e {\n a = f32[2,2]{0,1} constant({{1, 2}, {nan, -inf}})\n b = pred[2] constant({true, "
        "false})\n c = s64[2] constant({-1, 9223372036854775807})\n d = bf16[2] constant({0.1, 3})\n"
        " f = c64[1] constant({(1, -2)})\n g = u4[3] constant({1, 2, 15})\n h = s32[20] "
        "constant({...})\n i = f8e4m3fn[1] constant({0.5})\n t = token[] after-all()\n"
        " k = f32[0] constant({})\n l = s4[3] constant({1, -2, 7})\n"
        " ROOT r = (f32[2,2], pred[2]) custom-call(a, b, c, d, f, g, h, i, t, k, l), "
        "custom_call_target=\"x\"\n}";
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer w = {0};
    struct rp_program *p, *again;

    UNUSED_STATE(state);
    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    again = through(p, &w);
    assert_true(hash_of(p) == hash_of(again));
    rp_program_free(again);
    rp_proto_writer_release(&w);
    rp_program_free(p);
}

static const char small[] = "HloModule m\nENTRY e { ROOT p = f32[2]{0} parameter(0), "
                            "metadata={op_name=\"x\" source_line=3} }";

/* The module in each of the messages that can hold it. */
static void wrappers_are_found(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer hlo = {0}, snapshot = {0}, framed = {0};
    struct rp_program *p, *again;
    struct rp_bytes bytes, outer;
    uint64_t want;

    UNUSED_STATE(state);
    assert_ok(rp_hlo_text_parse(small, strlen(small), NULL, &p, &err), &err);
    want = hash_of(p);
    assert_ok(rp_hlo_proto_write(p, &hlo, &err), &err);
    assert_ok(rp_proto_written(&hlo, &bytes, &err), &err);
    rp_proto_put_bytes(&snapshot, 1, bytes.at, bytes.n);
    assert_ok(rp_proto_written(&snapshot, &outer, &err), &err);
    assert_ok(rp_hlo_proto_parse(outer.at, outer.n, NULL, &again, &err), &err);
    assert_true(hash_of(again) == want);
    rp_program_free(again);
    rp_proto_add_varint(&framed, bytes.n);
    rp_proto_add_bytes(&framed, bytes.at, bytes.n);
    assert_ok(rp_proto_written(&framed, &outer, &err), &err);
    assert_ok(rp_hlo_proto_parse(outer.at, outer.n, NULL, &again, &err), &err);
    assert_true(hash_of(again) == want);
    rp_program_free(again);
    for (size_t n = 0; n < bytes.n; n++) { /* cut anywhere it is refused or smaller */
        if (rp_hlo_proto_parse(bytes.at, n, NULL, &again, &err) == RP_OK)
            rp_program_free(again);
    }
    rp_proto_writer_release(&hlo);
    rp_proto_writer_release(&snapshot);
    rp_proto_writer_release(&framed);
    rp_program_free(p);
}

static void unknown_fields_are_kept(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer in = {0}, out = {0};
    struct rp_program *p;
    struct rp_bytes bytes, written;
    size_t module, computation, instruction, metadata;

    UNUSED_STATE(state);
    module = rp_proto_begin(&in, 1);
    rp_proto_put_text(&in, 1, "m");
    computation = rp_proto_begin(&in, 3);
    rp_proto_put_text(&in, 1, "e");
    instruction = rp_proto_begin(&in, 2);
    rp_proto_put_text(&in, 1, "p");
    rp_proto_put_text(&in, 2, "after-all");
    metadata = rp_proto_begin(&in, 7);
    rp_proto_put_text(&in, 2, "scope/op");
    rp_proto_put_text(&in, 4713, "metadata of tomorrow");
    rp_proto_end(&in, metadata);
    rp_proto_put_text(&in, 4711, "instruction of tomorrow");
    rp_proto_end(&in, instruction);
    rp_proto_end(&in, computation);
    rp_proto_put_text(&in, 4712, "module of tomorrow");
    rp_proto_end(&in, module);
    assert_ok(rp_proto_written(&in, &bytes, &err), &err);
    for (int round = 0; round < 2; round++) { /* what was written keeps them, too */
        assert_ok(rp_hlo_proto_parse(bytes.at, bytes.n, NULL, &p, &err), &err);
        assert_string_equal(rp_program_text(p, p->metas.at[p->meta.at[0]].op_name), "scope/op");
        assert_ok(rp_hlo_proto_write(p, &out, &err), &err);
        assert_ok(rp_proto_written(&out, &written, &err), &err);
        assert_non_null(memmem(written.at, written.n, "instruction of tomorrow", 23));
        assert_non_null(memmem(written.at, written.n, "metadata of tomorrow", 20));
        assert_non_null(memmem(written.at, written.n, "module of tomorrow", 18));
        rp_program_free(p);
        rp_proto_writer_release(&in);
        in = out;
        out = (struct rp_proto_writer){0};
        assert_ok(rp_proto_written(&in, &bytes, &err), &err);
    }
    rp_proto_writer_release(&in);
}

static void donation_returns(void **state)
{
    static const char text[] =
        "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, "
        "{2}, must-alias) }, is_scheduled=true\nENTRY e { ROOT p = f32[2]{0} "
        "parameter(0) }";
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer w = {0};
    struct rp_program *p, *again;
    size_t found = 0;

    UNUSED_STATE(state);
    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    again = through(p, &w);
    for (size_t i = 0; i < again->module_attrs.n; i++) {
        const struct rp_attr *attr = &again->module_attrs.at[i];

        found += attr->key == RP_ATTR_IS_SCHEDULED;
        if (attr->key == RP_ATTR_INPUT_OUTPUT_ALIAS) {
            assert_string_equal(rp_attr_text(again, attr, &p->arena),
                                rp_attr_text(p, &p->module_attrs.at[0], &p->arena));
            found++;
        }
    }
    assert_int_equal(found, 2);
    rp_program_free(again);
    rp_proto_writer_release(&w);
    rp_program_free(p);
}

/* XLA refuses a constant whose layout is not that of its instruction, and one without any. */
static void constants_keep_the_layout(void **state)
{
    static const char text[] =
        "e {\n a = f32[2,3]{0,1} constant({{1, 2, 3}, {4, 5, 6}})\n ROOT s = s32[] constant(7)\n}";
    static const unsigned char laid[] = {0x2a, 4, 0x0a, 2, 0, 1},
                               values[] = {0, 0, 128, 63,     /* 1 */
                                           0, 0, 128, 64};    /* 4 */
    static const unsigned char scalar[] = {0x10, 4, 0x2a, 0}; /* s32, an empty layout */
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer w = {0};
    struct rp_program *p;
    struct rp_bytes bytes;
    const unsigned char *at;
    int found = 0;

    UNUSED_STATE(state);
    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    assert_ok(rp_hlo_proto_write(p, &w, &err), &err);
    assert_ok(rp_proto_written(&w, &bytes, &err), &err);
    for (at = bytes.at; (at = memmem(at, (size_t)(bytes.at + bytes.n - at), laid, sizeof laid));
         at++)
        found++;
    assert_int_equal(found, 2); /* of the instruction and of the literal */
    assert_non_null(memmem(bytes.at, bytes.n, values, sizeof values));
    assert_non_null(memmem(bytes.at, bytes.n, scalar, sizeof scalar));
    rp_proto_writer_release(&w);
    rp_program_free(p);
}

/* The instructions come in the order they run in, as in text. */
static void the_schedule_is_the_order(void **state)
{
    static const char text[] =
        "HloModule m, is_scheduled=true\nENTRY e {\n p = f32[] parameter(0)\n a = f32[] negate(p)\n"
        " b = f32[] exponential(p)\n ROOT r = f32[] add(a, b)\n}";
    static const unsigned char pair[] = {0x81, 0x80, 0x80, 0x80, 0x10,
                                         0x82, 0x80, 0x80, 0x80, 0x10};
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer w = {0};
    struct rp_program *p, *again;
    unsigned char *at, *last = NULL;
    struct rp_bytes bytes;

    UNUSED_STATE(state);
    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    assert_ok(rp_hlo_proto_write(p, &w, &err), &err);
    assert_ok(rp_proto_written(&w, &bytes, &err), &err);
    for (at = w.bytes.at; (at = memmem(at, (size_t)(bytes.at + bytes.n - at), pair, sizeof pair));)
        last = at++;
    assert_non_null(last);
    last[0] = 0x82; /* the second before the first, in the schedule only */
    last[5] = 0x81;
    assert_ok(rp_hlo_proto_parse(bytes.at, bytes.n, NULL, &again, &err), &err);
    assert_int_equal(again->code.at[1], RP_OP_EXP);
    assert_int_equal(again->code.at[2], RP_OP_NEGATE);
    assert_true(hash_of(p) == hash_of(again));
    rp_program_free(again);
    last[5] = 0x82; /* no schedule: one of them twice */
    assert_ok(rp_hlo_proto_parse(bytes.at, bytes.n, NULL, &again, &err), &err);
    assert_int_equal(again->code.at[1], RP_OP_NEGATE);
    rp_program_free(again);
    rp_proto_writer_release(&w);
    rp_program_free(p);
}

static void refuses_constants_that_are_not_there(void **state)
{
    static const char text[] = "e { ROOT a = f32[1000000000000] constant(0) }";
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer w = {0};
    struct rp_program *p;

    UNUSED_STATE(state);
    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    assert_code(rp_hlo_proto_write(p, &w, &err), RP_FORMAT);
    assert_contains(err.text, "1000000000000 values in 1 bytes");
    rp_proto_writer_release(&w);
    rp_program_free(p);
}

int test_hlo_proto(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_return),
        cmocka_unit_test(convolution_has_a_window),
        cmocka_unit_test(constants_return),
        cmocka_unit_test(wrappers_are_found),
        cmocka_unit_test(unknown_fields_are_kept),
        cmocka_unit_test(donation_returns),
        cmocka_unit_test(constants_keep_the_layout),
        cmocka_unit_test(the_schedule_is_the_order),
        cmocka_unit_test(refuses_constants_that_are_not_there),
    };

    return cmocka_run_group_tests_name("hlo_proto", tests, NULL, NULL);
}
