/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow graphs: text and wire form give one program; functions, inputs, refusals. */
#include "formats/formats.h"
#include "formats/programs.h"
#include "formats/textproto.h"
#include "program/structure.h"
#include "unit.h"

static const char graph[] =
    "# a comment\nnode { name: \"b\" op: \"Mul\" input: \"x:1\" input: 'a' input: \"^x\" device: \"/cpu\"\n"
    "  attr { key: \"T\" value { type: DT_FLOAT } }\n"
    "  attr { key: \"_output_shapes\" value { list { shape { dim { size: -1 } dim { size: 4 } } } } } }\n"
    "node < name: \"x\" op: \"Split\" >\n"
    "node { name: \"a\" op: \"Const\" attr { key: \"value\" value { tensor { dtype: DT_FLOAT\n"
    "  tensor_shape { } float_val: 0.1 } } } attr { key: \"l\" value { list { i: [1, -2] } } } }\n"
    "node { name: \"c\" op: \"PartitionedCall\" input: \"b\" attr { key: \"f\" value { func { name: \"g\" } } "
    "} }\n"
    "library { function { signature { name: \"g\" input_arg { name: \"p\" type: DT_FLOAT }\n"
    "  output_arg { name: \"r\" type: DT_FLOAT } } node_def { name: \"n\" op: \"Neg\" input: \"p\" }\n"
    "  ret { key: \"r\" value: \"n:y:0\" } } }\nversions { producer: 22 new_field: 3 }\n";

static struct rp_program *read_text(const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    assert_ok(rp_program_new("graphdef", &p, &err), &err);
    assert_ok(rp_graphdef_fill_text(p, text, strlen(text), NULL, &err), &err);
    return p;
}

static uint64_t hash_of(const struct rp_program *p)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_hashes hashes;

    assert_ok(rp_program_hash(p, &arena, &hashes, &err), &err);
    rp_arena_release(&arena);
    return hashes.program;
}

static void reads_a_graph(void **state)
{
    struct rp_program *p = read_text(graph);
    const struct rp_attr *attr;
    char shape[40];

    UNUSED_STATE(state);
    assert_int_equal(p->computations.n, 2);
    assert_int_equal(p->computations.at[0].n, 4);
    assert_int_equal(rp_op_operands(p, 0).n, 2);
    assert_int_equal(rp_op_operands(p, 0).at[0], 1);
    assert_int_equal(p->operand_index.at[0], 1);
    assert_string_equal(rp_op_opcode_name(p, 0), "Mul");
    rp_shape_text(p, p->shape.at[0], true, shape, sizeof shape);
    assert_string_equal(shape, "f32[?,4]");
    attr = rp_op_attr(p, 0, RP_ATTR_CONTROL_PREDECESSORS);
    assert_non_null(attr);
    assert_int_equal(rp_op_called(p, 3).n, 1);
    attr = rp_op_attr(p, 2, rp_strtab_find(&p->strings, "l", 1));
    assert_non_null(attr);
    assert_memory_equal(attr->at, "list { i: 1 i: -2 }", attr->n);
    rp_program_free(p);
}

/* Through the wire form to text and back. */
static void text_round_trips(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p = read_text(graph), *again;
    struct rp_bytes bytes = {(const uint8_t *)p->source.at, p->source.n};
    struct rp_out *out;
    size_t n;

    UNUSED_STATE(state);
    assert_ok(rp_out_open_memory(&out, &err), &err);
    assert_ok(rp_textproto_print(&rp_schema_TF_GRAPH, bytes, false, out, &err), &err);
    again = read_text(rp_out_borrow_memory(out, &n));
    assert_true(hash_of(p) == hash_of(again));
    assert_contains(rp_out_borrow_memory(out, &n), "float_val: 0.1\n");
    rp_program_free(again);
    rp_out_abandon(out);
    rp_program_free(p);
}

static void names_do_not_count(void **state)
{
    struct rp_program *a = read_text("node { name: \"x\" op: \"A\" } node { name: \"y\" op: \"B\" "
                                     "input: \"x\" }");
    struct rp_program *b = read_text("node { name: \"q\" op: \"B\" input: \"p\" } node { name: "
                                     "\"p\" op: \"A\" }");

    UNUSED_STATE(state);
    assert_true(hash_of(a) == hash_of(b));
    rp_program_free(a);
    rp_program_free(b);
}

static void refuse(const char *text, const char *message)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    assert_ok(rp_program_new("graphdef", &p, &err), &err);
    assert_code(rp_graphdef_fill_text(p, text, strlen(text), NULL, &err), RP_FORMAT);
    assert_contains(err.text, message);
    rp_program_free(p);
}

static void refuses(void **state)
{
    UNUSED_STATE(state);
    refuse("node { name: \"x\" op: \"A\" input: \"y\" }", "input 'y' of node 'x'");
    refuse("node { name: \"x", "unterminated string at line 1, column 14");
    refuse("node { name: 3 }", "expected a string");
    refuse("node { ", "the text ends inside a message");
}

int test_graphdef(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_graph),
        cmocka_unit_test(text_round_trips),
        cmocka_unit_test(names_do_not_count),
        cmocka_unit_test(refuses),
    };

    return cmocka_run_group_tests_name("graphdef", tests, NULL, NULL);
}
