/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as text, and the instructions that they become. */
#include "lower/lower.h"

#include "formats/textproto.h"
#include "program/literal.h"
#include "program/opcodes.h"
#include "unit.h"

#define DIM(n) "dim { size: " #n " } "
#define CONSTANT(name, type, dims, values)                                                  \
    "node { name: '" name "' op: 'Const' attr { key: 'value' value { tensor { dtype: " type \
    " tensor_shape { " dims " } " values " } } } }\n"
#define NODE(name, op, rest) "node { name: '" name "' op: '" op "' " rest " }\n"
#define INTS(key, values)    "attr { key: '" key "' value { list { " values " } } } "
#define TEXT(key, value)     "attr { key: '" key "' value { s: '" value "' } } "
#define FUNCTION(key, value) "attr { key: '" key "' value { func { name: '" value "' } } } "

/* The lowered graph; the bytes must live as long. */
static enum rp_code lower_text(const char *text, const char *fetch, struct rp_proto_writer *wire,
                               struct rp_program **out, struct rp_err *err)
{
    struct rp_bytes graph;

    assert_ok(rp_textproto_parse(&rp_schema_TF_GRAPH, text, strlen(text), NULL, wire, err), err);
    assert_ok(rp_proto_written(wire, &graph, err), err);
    return rp_tf_lower(graph, NULL, 0, &fetch, 1, NULL, out, err);
}

static uint32_t find_op(const struct rp_program *p, enum rp_opcode code)
{
    for (uint32_t op = 0; op < p->nops; op++)
        if (p->code.at[op] == code)
            return op;
    fail_msg("there is no %s", rp_op_info[code].name);
    return 0;
}

static void assert_attr(const struct rp_program *p, uint32_t op, uint32_t key, const char *want)
{
    const struct rp_attr *attr = rp_op_attr(p, op, key);
    struct rp_arena arena = RP_ARENA_INIT;

    assert_non_null(attr);
    assert_int_equal(attr->type, rp_attr_type(key));
    assert_string_equal(rp_attr_text(p, attr, &arena), want);
    rp_arena_release(&arena);
}

static void assert_called(const struct rp_program *p, uint32_t op, uint32_t i, const char *want)
{
    struct rp_ids called = rp_op_called(p, op);

    assert_true(i < called.n);
    assert_string_equal(rp_program_text(p, p->computations.at[called.at[i]].name), want);
}

/* The gradient of a kernel [3,2,4,6] over an image [2,4,6,5], strides of 2 and 1. */
static void convolutions_have_windows_and_dimension_numbers(void **state)
{
    static const char graph[] =
        CONSTANT("x", "DT_FLOAT", DIM(2) DIM(4) DIM(6) DIM(5), "float_val: 1")
            CONSTANT("s", "DT_INT32", DIM(4), "int_val: 3 int_val: 2 int_val: 4 int_val: 6")
                CONSTANT("g", "DT_FLOAT", DIM(2) DIM(6) DIM(3) DIM(5), "float_val: 1")
                    NODE("y", "Conv2DBackpropFilter",
                         "input: 'x' input: 's' input: 'g' " TEXT("data_format", "NCHW")
                             TEXT("padding", "SAME") INTS("strides", "i: 1 i: 1 i: 2 i: 1"));
    struct rp_proto_writer wire = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    char shape[64];
    uint32_t op;

    UNUSED_STATE(state);
    assert_ok(lower_text(graph, "y:0", &wire, &p, &err), &err);
    op = find_op(p, RP_OP_CONVOLUTION);
    assert_attr(p, op, RP_ATTR_DIM_LABELS, "fb01_io01->01bf");
    assert_attr(p, op, RP_ATTR_WINDOW, "{size=3x5 pad=0_1x0_1 rhs_dilate=2x1}");
    rp_shape_text(p, p->shape.at[op], true, shape, sizeof shape);
    assert_string_equal(shape, "f32[3,2,4,6]{3,2,1,0}");
    assert_string_equal(rp_program_text(p, p->op_name.at[p->computations.at[p->entry].root]),
                        "root");
    rp_program_free(p);
    rp_proto_writer_release(&wire);
}

/* TensorFlow's SAME: as many outputs as inputs / stride, rounded up; of what is missing the smaller
   half lies in front. Rows: 7 with a window of 4, 3 missing; columns: 8 with one of 5, 4 missing.
 */
static void padding_is_the_same_on_both_sides(void **state)
{
    static const char graph[] =
        CONSTANT("x", "DT_FLOAT", DIM(1) DIM(7) DIM(8) DIM(1), "float_val: 1")
            CONSTANT("f", "DT_FLOAT", DIM(4) DIM(5) DIM(1) DIM(1), "float_val: 1")
                NODE("y", "Conv2D",
                     "input: 'x' input: 'f' " TEXT("data_format", "NHWC") TEXT("padding", "SAME")
                         INTS("strides", "i: 1 i: 1 i: 1 i: 1"));
    struct rp_proto_writer wire = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    UNUSED_STATE(state);
    assert_ok(lower_text(graph, "y:0", &wire, &p, &err), &err);
    assert_attr(p, find_op(p, RP_OP_CONVOLUTION), RP_ATTR_WINDOW, "{size=4x5 pad=1_2x2_2}");
    rp_program_free(p);
    rp_proto_writer_release(&wire);
}

static void functions_of_reductions_are_shared(void **state)
{
    static const char graph[] =
        CONSTANT("x", "DT_FLOAT", DIM(1) DIM(4) DIM(4) DIM(1), "float_val: 1")
            CONSTANT("g", "DT_FLOAT", DIM(1) DIM(2) DIM(2) DIM(1), "float_val: 1")
                CONSTANT("a", "DT_INT32", DIM(1), "int_val: 0")
                    NODE("m", "MaxPoolGrad",
                         "input: 'x' input: 'x' input: 'g' " TEXT("padding", "VALID")
                             INTS("strides", "i: 1 i: 2 i: 2 i: 1")
                                 INTS("ksize", "i: 1 i: 2 i: 2 i: 1"))
                        NODE("y", "Sum", "input: 'm' input: 'a'");
    struct rp_proto_writer wire = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    uint32_t op;

    UNUSED_STATE(state);
    assert_ok(lower_text(graph, "y:0", &wire, &p, &err), &err);
    op = find_op(p, RP_OP_SELECT_AND_SCATTER);
    assert_called(p, op, 0, "ge_f32");
    assert_called(p, op, 1, "add_f32");
    assert_attr(p, op, RP_ATTR_WINDOW, "{size=1x2x2x1 stride=1x2x2x1}");
    assert_called(p, find_op(p, RP_OP_REDUCE), 0, "add_f32");
    assert_int_equal(p->computations.n, 3); /* add_f32, ge_f32, main */
    rp_program_free(p);
    rp_proto_writer_release(&wire);
}

/* The elements of the list have no shape until the body sets one: the body is lowered twice. */
static void loops_are_computations(void **state)
{
    static const char graph[] = CONSTANT("i", "DT_INT32", "", "int_val: 0") CONSTANT(
        "n", "DT_INT32", "", "int_val: 4") CONSTANT("open", "DT_INT32", "", "int_val: -1")
        CONSTANT("v", "DT_FLOAT", DIM(3),
                 "float_val: 2") NODE("list", "TensorListReserve",
                                      "input: 'open' input: 'n' "
                                      "attr { key: 'element_dtype' value { type: DT_FLOAT } }")
            NODE(
                "w", "StatelessWhile",
                "input: 'i' input: 'v' input: 'list' " FUNCTION("cond", "c") FUNCTION(
                    "body",
                    "b")) "library { "
                          "function { signature { name: 'c' input_arg { name: 'i' } input_arg { name: 'v' } "
                          "input_arg { name: 'l' } output_arg { name: 'o' } } "
                          "node_def { name: 'four' op: 'Const' attr { key: 'value' value { tensor { dtype: DT_INT32 "
                          "tensor_shape { } int_val: 4 } } } } "
                          "node_def { name: 'less' op: 'Less' input: 'i' input: 'four:output:0' } "
                          "ret { key: 'o' value: 'less:z:0' } } "
                          "function { signature { name: 'b' input_arg { name: 'i' } input_arg { name: 'v' } "
                          "input_arg { name: 'l' } output_arg { name: 'i2' } output_arg { name: 'v2' } "
                          "output_arg { name: 'l2' } } "
                          "node_def { name: 'one' op: 'Const' attr { key: 'value' value { tensor { dtype: DT_INT32 "
                          "tensor_shape { } int_val: 1 } } } } "
                          "node_def { name: 'next' op: 'AddV2' input: 'i' input: 'one:output:0' } "
                          "node_def { name: 'set' op: 'TensorListSetItem' input: 'l' input: 'i' input: 'v' } "
                          "ret { key: 'i2' value: 'next:z:0' } ret { key: 'v2' value: 'v' } "
                          "ret { key: 'l2' value: 'set:output_handle:0' } } }";
    struct rp_proto_writer wire = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    struct rp_ids called;
    char shape[96];
    uint32_t op;

    UNUSED_STATE(state);
    assert_ok(lower_text(graph, "w:2", &wire, &p, &err), &err);
    op = find_op(p, RP_OP_WHILE);
    called = rp_op_called(p, op);
    assert_int_equal(p->computations.n, 3);
    assert_int_equal(called.n, 2);
    assert_int_equal(p->code.at[p->computations.at[called.at[0]].root], RP_OP_TUPLE); /* body */
    assert_int_equal(p->code.at[p->computations.at[called.at[1]].root], RP_OP_COPY);
    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    assert_string_equal(shape, "(s32[], f32[3], f32[4,3])");
    rp_program_free(p);
    rp_proto_writer_release(&wire);
}

static void constants_are_bytes(void **state)
{
    static const char graph[] =
        CONSTANT("x", "DT_BFLOAT16", DIM(2), "half_val: 16256 half_val: 16384")
            NODE("y", "Reciprocal", "input: 'x'");
    struct rp_proto_writer wire = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    uint16_t values[2], one;

    UNUSED_STATE(state);
    assert_ok(lower_text(graph, "y:0", &wire, &p, &err), &err);
    assert_int_equal(p->literals.n, 2);
    assert_ok(rp_literal_decode(p, &p->literals.at[0], values, sizeof values, &err), &err);
    assert_int_equal(values[0], 0x3f80);
    assert_int_equal(values[1], 0x4000);
    assert_ok(rp_literal_decode(p, &p->literals.at[1], &one, sizeof one, &err), &err);
    assert_int_equal(one, 0x3f80);
    rp_program_free(p);
    rp_proto_writer_release(&wire);
}

/* Any byte but 0 is true. */
static void booleans_are_0_and_1(void **state)
{
    static const char graph[] =
        CONSTANT("x", "DT_BOOL", DIM(4), "tensor_content: '\\000\\001\\002\\377'")
            NODE("y", "LogicalNot", "input: 'x'");
    static const uint8_t want[] = {0, 1, 1, 1};
    struct rp_proto_writer wire = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    uint8_t values[4];

    UNUSED_STATE(state);
    assert_ok(lower_text(graph, "y:0", &wire, &p, &err), &err);
    assert_ok(rp_literal_decode(p, &p->literals.at[0], values, sizeof values, &err), &err);
    assert_memory_equal(values, want, sizeof want);
    assert_memory_equal(p->literals.at[0].at, want, sizeof want);
    rp_program_free(p);
    rp_proto_writer_release(&wire);
}

/* Of a list of whole numbers only these count, whatever else it has. */
static void lists_are_of_one_kind(void **state)
{
    static const char graph[] =
        CONSTANT("x", "DT_FLOAT", DIM(1) DIM(6) DIM(6) DIM(1), "float_val: 1")
            NODE("y", "MaxPool",
                 "input: 'x' " TEXT("padding", "VALID") INTS("strides", "i: 1 i: 2 i: 3 i: 1")
                     INTS("ksize", "s: '\\005\\006' f: 7 i: 1 i: 2 i: 3 i: 1 b: true"));
    struct rp_proto_writer wire = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    UNUSED_STATE(state);
    assert_ok(lower_text(graph, "y:0", &wire, &p, &err), &err);
    assert_attr(p, find_op(p, RP_OP_REDUCE_WINDOW), RP_ATTR_WINDOW,
                "{size=1x2x3x1 stride=1x2x3x1}");
    rp_program_free(p);
    rp_proto_writer_release(&wire);
}

/* Numbers of a list may be written one by one instead of together. */
static void lists_may_be_in_pieces(void **state)
{
    static const char graph[] =
        CONSTANT("x", "DT_FLOAT", DIM(1) DIM(3) DIM(1) DIM(4), "float_val: 1")
            NODE("y", "Squeeze", "input: 'x' " INTS("squeeze_dims", "i: 0 i: 2"));
    static const uint8_t together[] = {0x1a, 2, 0, 2}, pieces[] = {0x18, 0, 0x18, 2};
    static const char *const fetch = "y:0";
    struct rp_proto_writer wire = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    struct rp_bytes bytes;
    uint8_t copy[512], *at;
    char shape[64];

    UNUSED_STATE(state);
    assert_ok(rp_textproto_parse(&rp_schema_TF_GRAPH, graph, strlen(graph), NULL, &wire, &err),
              &err);
    assert_ok(rp_proto_written(&wire, &bytes, &err), &err);
    assert_true(bytes.n <= sizeof copy);
    memcpy(copy, bytes.at, bytes.n);
    at = memmem(copy, bytes.n, together, sizeof together);
    assert_non_null(at);
    for (int i = 0; i < 2; i++) {
        assert_ok(rp_tf_lower((struct rp_bytes){copy, bytes.n}, NULL, 0, &fetch, 1, NULL, &p, &err),
                  &err);
        rp_shape_text(p, p->shape.at[find_op(p, RP_OP_RESHAPE)], false, shape, sizeof shape);
        assert_string_equal(shape, "f32[3,4]");
        rp_program_free(p);
        memcpy(at, pieces, sizeof pieces);
    }
    rp_proto_writer_release(&wire);
}

/* As many dimensions as there may be. */
static void shapes_have_many_dimensions(void **state)
{
    static const char graph[] = CONSTANT("x", "DT_FLOAT", DIM(6), "float_val: 1")
        CONSTANT("s", "DT_INT32", DIM(32), "int_val: 6 int_val: 1") /* and so on */
        NODE("y", "Reshape", "input: 'x' input: 's'");
    struct rp_proto_writer wire = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    char shape[128];

    UNUSED_STATE(state);
    assert_ok(lower_text(graph, "y:0", &wire, &p, &err), &err);
    rp_shape_text(p, p->shape.at[find_op(p, RP_OP_RESHAPE)], false, shape, sizeof shape);
    assert_string_equal(shape,
                        "f32[6,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]");
    rp_program_free(p);
    rp_proto_writer_release(&wire);
}

/* A loop of version 1 over a number; its condition is a comparison or the like. */
#define LOOP_BEGIN                                            \
    CONSTANT("x", "DT_FLOAT", "", "float_val: 1")             \
    NODE("e", "Enter", "input: 'x' " TEXT("frame_name", "f")) \
    NODE("m", "Merge", "input: 'e' input: 'n'")
#define LOOP_TEST           NODE("p", "IsInf", "input: 'm'") NODE("c", "LoopCond", "input: 'p'")
#define LOOP_TWO            CONSTANT("two", "DT_FLOAT", DIM(2), "float_val: 1")
#define LOOP_BODY(op, next) NODE("b", op, "input: '" next "'")
#define LOOP_ADD            NODE("a", "Add", "input: 'b' input: 'two'")
#define LOOP_END            NODE("n", "NextIteration", "input: 'a'") NODE("y", "Exit", "input: 's'")
#define LOOP(side, op, next) \
    LOOP_BEGIN LOOP_TEST NODE("s", "Switch", side) LOOP_BODY(op, next) LOOP_TWO LOOP_ADD LOOP_END

static void bad_graphs_are_refused(void **state)
{
    static const struct {
        const char *graph;
        enum rp_code code;
        const char *why;
    } rows[] = {
        {CONSTANT("x", "DT_FLOAT", DIM(2), "float_val: 1") NODE("a", "Lgamma", "input: 'x'")
             NODE("y", "Digamma", "input: 'a'"),
         RP_UNSUPPORTED, "Lgamma, Digamma"},
        {CONSTANT("s", "DT_INT32", DIM(1), "int_val: -2") CONSTANT(
             "v", "DT_FLOAT", "", "float_val: 1") NODE("y", "Fill", "input: 's' input: 'v'"),
         RP_FORMAT, "negative dimension in a shape"},
        {CONSTANT("s", "DT_INT64", DIM(2), "int64_val: 9223372036854775807 int64_val: 4") CONSTANT(
             "v", "DT_FLOAT", "", "float_val: 1") NODE("y", "Fill", "input: 's' input: 'v'"),
         RP_LIMIT, "2^63"},
        {CONSTANT("x", "DT_FLOAT", DIM(1) DIM(2) DIM(2) DIM(4), "float_val: 1")
             NODE("y", "MaxPool",
                  "input: 'x' " TEXT("padding", "VALID") INTS("strides", "i: 1 i: 1 i: 1 i: 2")
                      INTS("ksize", "i: 1 i: 1 i: 1 i: 2")),
         RP_UNSUPPORTED, "windows over images or channels"},
        {CONSTANT("a", "DT_FLOAT", "", "float_val: 1")
             NODE("y", "Range", "input: 'a' input: 'a' input: 'a'"),
         RP_UNSUPPORTED, "ranges of floats"},
        {CONSTANT("x", "DT_FLOAT", DIM(3) DIM(3), "float_val: 1")
             NODE("y", "Einsum", "input: 'x' " TEXT("equation", "ii->i")),
         RP_UNSUPPORTED, "diagonals"},
        {CONSTANT("x", "DT_FLOAT", DIM(3) DIM(3), "float_val: 1") CONSTANT(
             "n", "DT_INT64", "", "int64_val: 1") CONSTANT("f", "DT_FLOAT", "", "float_val: 1")
             NODE("y", "MatrixBandPart", "input: 'x' input: 'n' input: 'f'"),
         RP_UNSUPPORTED, "width"},
        {CONSTANT("x", "DT_FLOAT", DIM(3) DIM(3), "float_val: 1") CONSTANT(
             "n", "DT_INT64", "", "int64_val: 1") CONSTANT("f", "DT_FLOAT", "", "float_val: 1")
             NODE("y", "MatrixBandPart", "input: 'x' input: 'f' input: 'n'"),
         RP_UNSUPPORTED, "width"},
        {CONSTANT("x", "DT_FLOAT", DIM(3) DIM(3), "float_val: 1")
             NODE("y", "_FusedMatMul", "input: 'x' input: 'x' " INTS("fused_ops", "s: 'BiasAdd'")),
         RP_FORMAT, "too few inputs"},
        {CONSTANT("x", "DT_FLOAT", DIM(3) DIM(3), "float_val: 1")
             CONSTANT("b", "DT_FLOAT", DIM(3), "float_val: 1")
                 NODE("y", "_FusedMatMul",
                      "input: 'x' input: 'x' input: 'b' " INTS("fused_ops",
                                                               "s: 'BiasAdd' s: 'Relu' s: 'Add'")),
         RP_FORMAT, "too few inputs"},
        {CONSTANT("x", "DT_FLOAT", "", "float_val: 1") NODE("y", "Exit", "input: 'x'"),
         RP_UNSUPPORTED, "it leaves no loop"},
        {LOOP("input: 'm' input: 'x'", "Identity", "s:1"), RP_UNSUPPORTED, "no LoopCond decides"},
        {LOOP("input: 'm' input: 'c'", "Exp", "m"), RP_UNSUPPORTED, "a value changes its shape"},
        {LOOP("input: 'm' input: 'c'", "Identity", "y"), RP_UNSUPPORTED, "nested too deep"}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_proto_writer wire = {0};
        struct rp_err err = RP_ERR_INIT;
        struct rp_program *p;

        assert_code(lower_text(rows[i].graph, "y:0", &wire, &p, &err), rows[i].code);
        assert_contains(err.text, rows[i].why);
        assert_null(p);
        rp_proto_writer_release(&wire);
    }
}

/* Windows of 3x2 over an image of 6x5, strides of 2 and 1, padded after the image by 1 and 1. What
   position 0 of the image gets comes from the windows that cover it: those at -2 and 0 vertically
   (two zeros before the gradient), at -1 and 0 horizontally (one). Between rows of the gradient is
   one zero, and behind the last row, which starts at 4, one more window could start at 5. */
static void gradients_of_averages_are_spread_over_their_windows(void **state)
{
    static const char graph[] = CONSTANT("s", "DT_INT32", DIM(4),
                                         "int_val: 1 int_val: 6 int_val: 5 int_val: 1")
        CONSTANT("g", "DT_FLOAT", DIM(1) DIM(3) DIM(5) DIM(1), "float_val: 1")
            NODE("y", "AvgPoolGrad",
                 "input: 's' input: 'g' " TEXT("padding", "SAME")
                     INTS("strides", "i: 1 i: 2 i: 1 i: 1") INTS("ksize", "i: 1 i: 3 i: 2 i: 1"));
    struct rp_proto_writer wire = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    char shape[64];
    uint32_t op;

    UNUSED_STATE(state);
    assert_ok(lower_text(graph, "y:0", &wire, &p, &err), &err);
    op = find_op(p, RP_OP_PAD);
    assert_attr(p, op, RP_ATTR_PADDING, "0_0_0x2_1_1x1_0_0x0_0_0");
    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    assert_string_equal(shape, "f32[1,8,6,1]");
    op = rp_op_operands(p, p->computations.at[p->entry].root).at[0];
    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    assert_string_equal(shape, "f32[1,6,5,1]");
    assert_attr(p, op, RP_ATTR_WINDOW, "{size=1x3x2x1}");
    rp_program_free(p);
    rp_proto_writer_release(&wire);
}

/* A feed is one output; so has a node of one result. */
static void outputs_that_do_not_exist_are_refused(void **state)
{
    static const char graph[] = NODE("x", "Placeholder", "") NODE("y", "Neg", "input: 'x'");
    static const char *const fetches[] = {"x:0", "y:0", "x:1", "y:1", "z:0"};
    struct rp_lower_feed feed = {"x:0", {.elem = RP_ELEM_F32, .rank = 1, .dims = {2}, .n = 2}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof fetches / sizeof *fetches; i++) {
        struct rp_proto_writer wire = {0};
        struct rp_err err = RP_ERR_INIT;
        struct rp_program *p;
        struct rp_bytes bytes;

        assert_ok(rp_textproto_parse(&rp_schema_TF_GRAPH, graph, strlen(graph), NULL, &wire, &err),
                  &err);
        assert_ok(rp_proto_written(&wire, &bytes, &err), &err);
        assert_int_equal(rp_tf_lower(bytes, &feed, 1, &fetches[i], 1, NULL, &p, &err) == RP_OK,
                         i < 2);
        rp_program_free(p);
        rp_proto_writer_release(&wire);
    }
}

/* An input has one output, also for the nodes that read it. */
static void an_input_is_one_array(void **state)
{
    static const char graph[] = NODE("x", "Placeholder", "") NODE("y", "Neg", "input: 'x:1'");
    static const char *const fetch = "y:0";
    struct rp_lower_feed feed = {"x:0", {.elem = RP_ELEM_F32, .rank = 1, .dims = {2}, .n = 2}};
    struct rp_proto_writer wire = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    struct rp_bytes bytes;

    UNUSED_STATE(state);
    assert_ok(rp_textproto_parse(&rp_schema_TF_GRAPH, graph, strlen(graph), NULL, &wire, &err),
              &err);
    assert_ok(rp_proto_written(&wire, &bytes, &err), &err);
    assert_int_not_equal(rp_tf_lower(bytes, &feed, 1, &fetch, 1, NULL, &p, &err), RP_OK);
    rp_program_free(p);
    rp_proto_writer_release(&wire);
}

int test_lower(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_have_windows_and_dimension_numbers),
        cmocka_unit_test(padding_is_the_same_on_both_sides),
        cmocka_unit_test(functions_of_reductions_are_shared),
        cmocka_unit_test(gradients_of_averages_are_spread_over_their_windows),
        cmocka_unit_test(loops_are_computations),
        cmocka_unit_test(constants_are_bytes),
        cmocka_unit_test(booleans_are_0_and_1),
        cmocka_unit_test(lists_are_of_one_kind),
        cmocka_unit_test(lists_may_be_in_pieces),
        cmocka_unit_test(shapes_have_many_dimensions),
        cmocka_unit_test(an_input_is_one_array),
        cmocka_unit_test(bad_graphs_are_refused),
        cmocka_unit_test(outputs_that_do_not_exist_are_refused),
    };

    return cmocka_run_group_tests_name("lower", tests, NULL, NULL);
}
