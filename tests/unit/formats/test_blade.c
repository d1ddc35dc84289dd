/* SPDX-License-Identifier: Apache-2.0 */
/* BladeDISC's pair and TensorProtos, made here field by field. */
#include "unit.h"

#include "formats/blade/blade.h"
#include "program/literal.h"

#include <stdlib.h>
#include <string.h>

#define F32 1
#define S32 3

/* A TensorProto of n dimensions; the caller adds the values. */
static void begin_tensor(struct rp_proto_writer *w, unsigned type, const int64_t *dims, size_t n)
{
    size_t shape, dim;

    rp_proto_put_varint(w, 1, type);
    shape = rp_proto_begin(w, 2);
    for (size_t i = 0; i < n; i++) {
        dim = rp_proto_begin(w, 2);
        rp_proto_put_varint(w, 1, (uint64_t)dims[i]);
        rp_proto_end(w, dim);
    }
    rp_proto_end(w, shape);
}

static enum rp_code decode(struct rp_proto_writer *w, struct rp_arena *arena,
                           struct rp_tf_value *out, struct rp_err *err)
{
    struct rp_bytes bytes;

    assert_ok(rp_proto_written(w, &bytes, err), err);
    return rp_tf_value_decode(bytes, 0, NULL, arena, out, err);
}

static void lists(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_proto_writer w = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_tf_value v;
    float f[6];
    int32_t s[3];
    size_t list;

    UNUSED_STATE(state);
    begin_tensor(&w, F32, (int64_t[]){2, 3}, 2); /* two values, the last one stands for the rest */
    rp_proto_put_float(&w, 5, 1.5F);
    rp_proto_put_float(&w, 5, -2.0F);
    assert_ok(decode(&w, &arena, &v, &err), &err);
    assert_int_equal(v.elem, RP_ELEM_F32);
    assert_int_equal(v.n, 6);
    memcpy(f, v.data, sizeof f);
    assert_true(f[0] == 1.5F && f[1] == -2.0F && f[5] == -2.0F);

    rp_proto_rewind(&w);
    begin_tensor(&w, S32, (int64_t[]){3}, 1);
    list = rp_proto_begin(&w, 7);
    rp_proto_add_varint(&w, (uint64_t)-7);
    rp_proto_add_varint(&w, 8);
    rp_proto_add_varint(&w, 9);
    rp_proto_end(&w, list);
    assert_ok(decode(&w, &arena, &v, &err), &err);
    memcpy(s, v.data, sizeof s);
    assert_true(s[0] == -7 && s[1] == 8 && s[2] == 9);
    rp_proto_put_varint(&w, 7, 10);
    assert_code(decode(&w, &arena, &v, &err), RP_FORMAT);
    assert_contains(err.text, "4 values for 3");

    rp_proto_rewind(&w);
    begin_tensor(&w, 8, (int64_t[]){2}, 1); /* complex: two floats an element */
    rp_proto_put_float(&w, 9, 1);
    rp_proto_put_float(&w, 9, 2);
    assert_ok(decode(&w, &arena, &v, &err), &err);
    memcpy(f, v.data, 4 * sizeof *f);
    assert_true(f[0] == 1 && f[1] == 2 && f[2] == 1 && f[3] == 2);

    rp_proto_rewind(&w);
    begin_tensor(&w, F32, (int64_t[]){4}, 1); /* none: zeros */
    assert_ok(decode(&w, &arena, &v, &err), &err);
    assert_memory_equal(v.data, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    rp_proto_writer_release(&w);
    rp_arena_release(&arena);
}

static void refused(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_proto_writer w = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_tf_value v;

    UNUSED_STATE(state);
    begin_tensor(&w, F32, (int64_t[]){4}, 1);
    rp_proto_put_bytes(&w, 4, "123", 3);
    assert_code(decode(&w, &arena, &v, &err), RP_FORMAT);
    assert_contains(err.text, "3 bytes of content instead of 16");
    rp_proto_rewind(&w);
    begin_tensor(&w, F32, (int64_t[]){1 << 30, 1 << 30}, 2);
    assert_code(decode(&w, &arena, &v, &err), RP_LIMIT);
    rp_proto_rewind(&w);
    begin_tensor(&w, F32, (int64_t[]){-1}, 1);
    assert_code(decode(&w, &arena, &v, &err), RP_UNSUPPORTED);
    rp_proto_rewind(&w);
    begin_tensor(&w, 7, (int64_t[]){1}, 1); /* texts */
    assert_code(decode(&w, &arena, &v, &err), RP_UNSUPPORTED);
    assert_contains(err.text, "type 7");
    rp_proto_writer_release(&w);
    rp_arena_release(&arena);
}

/* ---- the pair ---- */

static void put_argument(struct rp_proto_writer *w, unsigned kind, unsigned type, int64_t dim,
                         const char *member)
{
    size_t arg = rp_proto_begin(w, 3), shape, one;

    rp_proto_put_varint(w, 10, kind);
    rp_proto_put_varint(w, 2, type);
    shape = rp_proto_begin(w, 3);
    one = rp_proto_begin(w, 2);
    rp_proto_put_varint(w, 1, (uint64_t)dim);
    rp_proto_end(w, one);
    rp_proto_end(w, shape);
    rp_proto_put_text(w, 20, member);
    rp_proto_end(w, arg);
}

/* A function f of two outputs, and what the caller puts as arguments. */
static void put_program(struct rp_proto_writer *w)
{
    size_t options, library, function, signature, output, call;

    options = rp_proto_begin(w, 1);
    rp_proto_put_text(w, 1, "MLIR_CPU");
    library = rp_proto_begin(w, 3);
    function = rp_proto_begin(w, 1);
    signature = rp_proto_begin(w, 1);
    rp_proto_put_text(w, 1, "f");
    for (int i = 0; i < 2; i++) {
        output = rp_proto_begin(w, 3);
        rp_proto_put_varint(w, 3, i ? S32 : F32);
        rp_proto_end(w, output);
    }
    rp_proto_end(w, signature);
    rp_proto_end(w, function);
    rp_proto_end(w, library);
    rp_proto_put_varint(w, 4, 134);
    rp_proto_end(w, options);
    call = rp_proto_begin(w, 2);
    rp_proto_put_text(w, 1, "f");
    rp_proto_end(w, call);
}

/* A tar of one member that holds s32[3]. */
static size_t put_tar(uint8_t *out, const char *name)
{
    struct rp_proto_writer w = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_bytes bytes;
    unsigned sum = 0;

    begin_tensor(&w, S32, (int64_t[]){3}, 1);
    rp_proto_put_bytes(&w, 4, "\1\0\0\0\2\0\0\0\3\0\0\0", 12);
    assert_ok(rp_proto_written(&w, &bytes, &err), &err);
    memset(out, 0, 2048);
    snprintf((char *)out, 100, "%s", name);
    memcpy(out + 100, "0000644\0", 8);
    snprintf((char *)out + 124, 12, "%011o", (unsigned)bytes.n);
    memcpy(out + 136, "00000000000", 11);
    out[156] = '0';
    memcpy(out + 257, "ustar\00000", 8);
    memset(out + 148, ' ', 8);
    for (size_t i = 0; i < 512; i++)
        sum += out[i];
    snprintf((char *)out + 148, 8, "%06o", sum);
    memcpy(out + 512, bytes.at, bytes.n);
    rp_proto_writer_release(&w);
    return 2048;
}

static enum rp_code read_pair(struct rp_proto_writer *w, const char *member, struct rp_blade *b,
                              struct rp_err *err)
{
    static uint8_t tar[2048];
    size_t n = put_tar(tar, member);
    struct rp_bytes bytes;

    assert_ok(rp_proto_written(w, &bytes, err), err);
    RP_TRY(rp_blade_parse(bytes.at, bytes.n, b, err));
    RP_TRY(rp_input_open_memory("t", tar, n, NULL, &b->data, err));
    RP_TRY(rp_tar_open(b->data, NULL, &b->tar, err));
    RP_TRY(rp_blade_take_values(b, b->tar, NULL, err));
    return rp_blade_make_graph(b, err);
}

static void pair(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_blade b = {0};

    UNUSED_STATE(state);
    put_program(&w);
    put_argument(&w, RP_BLADE_PARAMETER, S32, 3, "tempfile-a");
    assert_ok(read_pair(&w, "./tempfile-a", &b, &err), &err);
    assert_string_equal(b.function, "f");
    assert_string_equal(b.device, "MLIR_CPU");
    assert_int_equal(b.arguments.at[0].value.n, 3);
    assert_int_equal(b.arguments.at[0].value.data[4], 2);
    assert_int_equal(b.nfetches, 2);
    assert_string_equal(b.fetches[1], "cluster:1");
    rp_blade_release(&b);

    assert_code(read_pair(&w, "tempfile-b", &b, &err), RP_FORMAT);
    assert_contains(err.text, "no member 'tempfile-a', which is argument 0");
    rp_blade_release(&b);
    rp_proto_writer_release(&w);
}

static void wrong_pair(void **state)
{
    static const struct {
        unsigned kind, type;
        int64_t dim;
        const char *member;
        enum rp_code code;
        const char *words;
    } cases[] = {
        {RP_BLADE_PARAMETER, F32, 3, "m", RP_FORMAT, "member 'm' is s32[3], but argument 0"},
        {RP_BLADE_PARAMETER, S32, 4, "m", RP_FORMAT, "is s32[4]: the tar is from another program"},
        {RP_BLADE_RESOURCE, S32, 3, "", RP_UNSUPPORTED, "resource variable"}};
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rp_proto_writer w = {0};
        struct rp_blade b = {0};

        put_program(&w);
        put_argument(&w, cases[i].kind, cases[i].type, cases[i].dim, cases[i].member);
        assert_code(read_pair(&w, "m", &b, &err), cases[i].code);
        assert_contains(err.text, cases[i].words);
        rp_blade_release(&b);
        rp_proto_writer_release(&w);
    }
    struct rp_blade none = {0};
    assert_code(rp_blade_parse("", 0, &none, &err), RP_FORMAT);
    rp_blade_release(&none);
    assert_code(rp_blade_open("/no/such", "/no/such", NULL, &none, &err), RP_IO);
    rp_blade_release(&none);
}

int test_blade(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists), cmocka_unit_test(refused),
                                       cmocka_unit_test(pair), cmocka_unit_test(wrong_pair)};

    return cmocka_run_group_tests_name("formats/blade", tests, NULL, NULL);
}
