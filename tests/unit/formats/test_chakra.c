/* SPDX-License-Identifier: Apache-2.0 */
/* Chakra's execution traces: messages and JSON. */
#include "formats/formats.h"
#include "io/proto_write.h"
#include "program/structure.h"
#include "unit.h"

/* Behind the metadata: nodes as they are written between begin_node and end_node. */
static void frame(struct rp_proto_writer *to, struct rp_proto_writer *message)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_bytes bytes;

    assert_ok(rp_proto_written(message, &bytes, &err), &err);
    rp_proto_add_varint(to, bytes.n);
    rp_proto_add_bytes(to, bytes.at, bytes.n);
    rp_proto_rewind(message);
}

static void put_attr(struct rp_proto_writer *w, const char *name, uint32_t number, uint64_t value)
{
    size_t begun = rp_proto_begin(w, 10);

    rp_proto_put_text(w, 1, name);
    rp_proto_put_varint(w, number, value);
    rp_proto_end(w, begun);
}

static void put_node(struct rp_proto_writer *to, uint64_t id, const char *name, uint64_t type,
                     uint64_t data, uint64_t control)
{
    struct rp_proto_writer w = {0};
    size_t begun;

    rp_proto_put_varint(&w, 1, id);
    rp_proto_put_text(&w, 2, name);
    rp_proto_put_varint(&w, 3, type);
    if (control)
        rp_proto_put_varint(&w, 4, control);
    if (data) { /* packed */
        begun = rp_proto_begin(&w, 5);
        rp_proto_add_varint(&w, data);
        rp_proto_end(&w, begun);
    }
    rp_proto_put_varint(&w, 7, 28);
    begun = rp_proto_begin(&w, 9);
    rp_proto_put_text(&w, 2, "[[16, 4]]");
    rp_proto_put_text(&w, 3, "['Tensor(float)']");
    rp_proto_end(&w, begun);
    if (type == 7) {
        put_attr(&w, "comm_type", 9, 2);
        put_attr(&w, "shift", 17, 5); /* zigzag */
    }
    frame(to, &w);
    rp_proto_writer_release(&w);
}

static void put_metadata(struct rp_proto_writer *to)
{
    struct rp_proto_writer w = {0};

    rp_proto_put_text(&w, 1, "0.0.4");
    frame(to, &w);
    rp_proto_writer_release(&w);
}

static enum rp_code load(struct rp_proto_writer *w, size_t cut, struct rp_import *import,
                         struct rp_err *err)
{
    struct rp_bytes bytes;
    struct rp_input *in;

    assert_ok(rp_proto_written(w, &bytes, err), err);
    assert_ok(rp_input_open_memory("t.et", bytes.at, bytes.n - cut, NULL, &in, err), err);
    return rp_format_read(in, NULL, import, err);
}

static void reads_nodes(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer w = {0};
    struct rp_import import = RP_IMPORT_INIT;
    const struct rp_program *p;
    const struct rp_attr *attr;
    char shape[32];

    (void)state;
    put_metadata(&w);
    put_node(&w, 9, "aten::mm(1)", 4, 7, 100); /* 7 comes later, 100 is not there */
    put_node(&w, 7, "gather_x", 7, 0, 9);
    put_node(&w, 8, "send to 3", 5, 9, 0);
    assert_ok(load(&w, 0, &import, &err), &err);
    assert_string_equal(import.format->name, "chakra");
    p = import.program;
    assert_int_equal(p->nops, 3);
    assert_string_equal(rp_op_opcode_name(p, 0), "aten::mm");
    assert_string_equal(rp_op_opcode_name(p, 1), "all-gather");
    assert_string_equal(rp_op_opcode_name(p, 2), "send");
    assert_int_equal(rp_op_operands(p, 0).n, 1);
    assert_int_equal(rp_op_operands(p, 0).at[0], 1);
    rp_shape_text(p, p->shape.at[0], false, shape, sizeof shape);
    assert_string_equal(shape, "f32[16,4]");
    attr = rp_op_attr(p, 1, RP_ATTR_CONTROL_PREDECESSORS);
    assert_non_null(attr);
    assert_memory_equal(attr->at, "{%9}", 4);
    assert_null(rp_op_attr(p, 0, RP_ATTR_CONTROL_PREDECESSORS));
    attr = rp_op_attr(p, 1, rp_strtab_find(&p->strings, "shift", 5));
    assert_non_null(attr);
    assert_memory_equal(attr->at, "-3", 2);
    rp_import_release(&import);
    rp_proto_writer_release(&w);
}

static void refuses_damage(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer w = {0};
    struct rp_import import = RP_IMPORT_INIT;

    (void)state;
    put_metadata(&w);
    put_node(&w, 9, "a", 4, 0, 0);
    assert_code(load(&w, 3, &import, &err), RP_FORMAT);
    assert_contains(err.text, "truncated");
    put_node(&w, 9, "a", 4, 0, 0);
    assert_code(load(&w, 0, &import, &err), RP_FORMAT);
    assert_contains(err.text, "two nodes have the same id 9");
    rp_proto_writer_release(&w);
}

static void reads_json(void **state)
{
    static const char text[] =
        "{\"workload_graph\": [{\"Id\": 2, \"Name\": \"aten::add(0)\", \"NodeType\": 4, "
        "\"data_deps\": [5], \"ctrlDeps\": [5], \"runtime\": 3},"
        "{\"Id\": 5, \"Name\": \"x\", \"NodeType\": 7, \"comm_type\": 0, \"data_deps\": []}]}";
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_input *in;

    (void)state;
    assert_ok(rp_input_open_memory("t", text, sizeof text - 1, NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, &import, &err), &err);
    assert_string_equal(import.format->name, "chakra-json");
    assert_int_equal(import.program->nops, 2);
    assert_string_equal(rp_op_opcode_name(import.program, 0), "aten::add");
    assert_string_equal(rp_op_opcode_name(import.program, 1), "all-reduce");
    assert_int_equal(rp_op_operands(import.program, 0).n, 1);
    rp_import_release(&import);
    assert_ok(rp_input_open_memory("t", text, sizeof text - 9, NULL, &in, &err), &err);
    assert_code(rp_format_read(in, NULL, &import, &err), RP_FORMAT);
}

int test_chakra(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_nodes),
        cmocka_unit_test(refuses_damage),
        cmocka_unit_test(reads_json),
    };

    return cmocka_run_group_tests_name("chakra", tests, NULL, NULL);
}
