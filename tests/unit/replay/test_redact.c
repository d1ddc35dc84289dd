/* SPDX-License-Identifier: Apache-2.0 */
/* Redaction of TensorFlow graphs: every tensor is reached, wherever the schema allows one, and
   nothing else changes. */
#include "formats/textproto.h"
#include "replay/redact.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

/* A tensor of that many floats, all of them 7.5: one is stored. */
#define SECRET "dtype: DT_FLOAT tensor_shape { dim { size: 4096 } } float_val: 7.5"

/* The graph after redaction, as text on one line. */
static void redact(const char *graph, struct rp_out **out)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer wire = {0}, redacted = {0};
    struct rp_bytes bytes;

    assert_ok(rp_textproto_parse(&rp_schema_TF_GRAPH, graph, strlen(graph), NULL, &wire, &err),
              &err);
    assert_ok(rp_proto_written(&wire, &bytes, &err), &err);
    assert_ok(rp_redact_graph(bytes, &redacted, &err), &err);
    assert_ok(rp_proto_written(&redacted, &bytes, &err), &err);
    assert_ok(rp_out_open_memory(out, &err), &err);
    assert_ok(rp_textproto_print(&rp_schema_TF_GRAPH, bytes, true, *out, &err), &err);
    assert_ok(rp_out_flush(*out, &err), &err);
    rp_proto_writer_release(&wire);
    rp_proto_writer_release(&redacted);
}

static void check_redacted(const char *before, const char *behind)
{
    char graph[1024];
    struct rp_out *out;
    const char *text;
    size_t n;

    snprintf(graph, sizeof graph, "%s" SECRET "%s", before, behind);
    redact(graph, &out);
    text = rp_out_borrow_memory(out, &n);
    assert_null(strstr(text, "7.5"));
    assert_non_null(strstr(text, "float_val: -0.125"));
    assert_non_null(strstr(text, "dtype: DT_FLOAT"));
    rp_out_abandon(out);
}

static void tensors_are_reached_everywhere(void **state)
{
    UNUSED_STATE(state);
    check_redacted("node { name: 'c' op: 'Const' attr { key: 'value' value { tensor { ", "} } } }");
    check_redacted("node { name: 'l' attr { key: 'v' value { list { tensor { ", "} } } } }");
    check_redacted(
        "node { attr { key: 'f' value { func { name: 'g' attr { key: 'v' value { tensor {",
        "} } } } } } }");
    check_redacted("library { function { node_def { attr { key: 'value' value { tensor { ",
                   "} } } } } }");
    check_redacted("library { function { attr { key: 'value' value { tensor { ", "} } } } }");
    check_redacted("library { function { signature { attr { name: 'a' default_value { tensor { ",
                   "} } } } } }");
}

/* Floats and bytes may be weights; integers of more bytes are indices and shapes, flags decide. */
static void weights_are_floats_and_bytes(void **state)
{
    static const struct {
        const char *type, *value;
        bool goes;
    } rows[] = {{"DT_FLOAT", "float_val: 7", true},
                {"DT_DOUBLE", "double_val: 7", true},
                {"DT_INT8", "int_val: 7", true},
                {"DT_UINT8", "int_val: 7", true},
                {"DT_INT32", "int_val: 7", false},
                {"DT_INT64", "int64_val: 7", false},
                {"DT_COMPLEX64", "scomplex_val: 7 scomplex_val: 7", true},
                {"DT_BOOL", "bool_val: true", false},
                {"DT_INT16", "int_val: 7", false}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char graph[512];
        struct rp_out *out;
        size_t n;

        snprintf(graph, sizeof graph,
                 "node { name: 'c' op: 'Const' attr { key: 'value' value { tensor { dtype: %s "
                 "tensor_shape { dim { size: 4096 } } %s } } } }",
                 rows[i].type, rows[i].value);
        redact(graph, &out);
        if (!strstr(rp_out_borrow_memory(out, &n), rows[i].value) != rows[i].goes)
            fail_msg("%s %s redacted", rows[i].type, rows[i].goes ? "is not" : "is");
        rp_out_abandon(out);
    }
}

/* What repeats an element is as short as before, with the first element of the pattern; a list that
   may have all elements becomes bytes. */
static void repeated_elements_stay_short(void **state)
{
    static const struct {
        const char *before, *behind;
    } rows[] = {
        {"DT_FLOAT tensor_shape { dim { size: 4096 } } float_val: 7", "float_val: -0.125"},
        {"DT_DOUBLE tensor_shape { dim { size: 4096 } } double_val: 7", "double_val: -0.125"},
        {"DT_HALF tensor_shape { dim { size: 4096 } } half_val: 7", "half_val: 45056"},
        {"DT_BFLOAT16 tensor_shape { dim { size: 4096 } } half_val: 7", "half_val: 48640"},
        {"DT_INT8 tensor_shape { dim { size: 4096 } } int_val: 7 int_val: 8", "int_val: 0"},
        {"DT_COMPLEX64 tensor_shape { dim { size: 4096 } } scomplex_val: 7 scomplex_val: 7",
         "scomplex_val: -0.125 scomplex_val: 0.0295"},
        {"DT_FLOAT tensor_shape { dim { size: 13 } } float_val: 7 float_val: 7 float_val: 7",
         "float_val: -0.125 }"},
        {"DT_FLOAT tensor_shape { dim { size: 12 } } float_val: 7 float_val: 7 float_val: 7",
         "tensor_content: \""}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char graph[512];
        struct rp_out *out;
        size_t n;

        snprintf(graph, sizeof graph,
                 "node { name: 'c' op: 'Const' attr { key: 'value' value { tensor { dtype: %s } } "
                 "} }",
                 rows[i].before);
        redact(graph, &out);
        if (!strstr(rp_out_borrow_memory(out, &n), rows[i].behind))
            fail_msg("%s: %s", rows[i].before, rp_out_borrow_memory(out, &n));
        rp_out_abandon(out);
    }
}

static void all_else_is_kept(void **state)
{
    static const char graph[] =
        "node { name: \"a\" op: \"Const\" input: \"^b\" attr { key: \"value\" value { tensor { dtype: "
        "DT_INT64 tensor_shape { dim { size: 2 } } int64_val: 3 } } } experimental_type { type_id: "
        "TFT_PRODUCT args { type_id: TFT_TENSOR } } } versions { producer: 22 }";
    struct rp_out *out;
    size_t n;

    UNUSED_STATE(state);
    redact(graph, &out);
    assert_string_equal(rp_out_borrow_memory(out, &n), graph);
    rp_out_abandon(out);
}

static void texts_and_debug_info_go(void **state)
{
    static const uint8_t debug_info[] = {0x2a, 2, 0x0a, 0}; /* field 5 of a GraphDef */
    struct rp_proto_writer to = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_bytes bytes;
    struct rp_out *out;
    size_t n;

    UNUSED_STATE(state);
    redact("node { attr { key: 'v' value { tensor { dtype: DT_STRING string_val: 'secret' } } } }",
           &out);
    assert_null(strstr(rp_out_borrow_memory(out, &n), "secret"));
    rp_out_abandon(out);
    assert_ok(rp_redact_graph((struct rp_bytes){debug_info, sizeof debug_info}, &to, &err), &err);
    assert_ok(rp_proto_written(&to, &bytes, &err), &err);
    assert_int_equal(bytes.n, 0);
    rp_proto_writer_release(&to);
}

/* Functions in attributes of functions, deeper than anybody writes: an error, not the end of the
   stack. */
static void depth_is_limited(void **state)
{
    struct rp_proto_writer graph = {0}, to = {0};
    struct rp_err err = RP_ERR_INIT;
    size_t open[2000], n = 0;
    struct rp_bytes bytes;

    UNUSED_STATE(state);
    open[n++] = rp_proto_begin(&graph, 1);
    open[n++] = rp_proto_begin(&graph, 5);
    while (n + 3 < sizeof open / sizeof *open) { /* value { func { attr { */
        open[n++] = rp_proto_begin(&graph, 2);
        open[n++] = rp_proto_begin(&graph, 10);
        open[n++] = rp_proto_begin(&graph, 2);
    }
    while (n)
        rp_proto_end(&graph, open[--n]);
    assert_ok(rp_proto_written(&graph, &bytes, &err), &err);
    assert_code(rp_redact_graph(bytes, &to, &err), RP_LIMIT);
    rp_proto_writer_release(&graph);
    rp_proto_writer_release(&to);
}

/* Paths are removed, and nothing else. */
static void flags_lose_their_paths(void **state)
{
    static const char *const cases[][2] = {
        {"--xla_dump_to=/home/me/dump", "--xla_dump_to="},
        {"--a=1 --to=/x\t--b=c\n", "--a=1 --to=\t--b=c\n"},
        {"--to=x/y --flag", "--to= --flag"},
        {"--flag /x --a=b", "--flag /x --a=b"}, /* no value: not that of the next flag */
        {"--a=b --c", "--a=b --c"},
        {"", ""},
    };
    struct rp_arena arena = RP_ARENA_INIT;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(rp_redact_flags(cases[i][0], &arena), cases[i][1]);
    assert_null(rp_redact_flags(NULL, &arena));
    rp_arena_release(&arena);
}

int test_redact(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_reached_everywhere),
        cmocka_unit_test(weights_are_floats_and_bytes),
        cmocka_unit_test(repeated_elements_stay_short),
        cmocka_unit_test(all_else_is_kept),
        cmocka_unit_test(texts_and_debug_info_go),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(flags_lose_their_paths),
    };

    return cmocka_run_group_tests_name("redact", tests, NULL, NULL);
}
