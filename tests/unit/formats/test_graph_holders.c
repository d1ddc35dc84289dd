/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that hold a program of another format: MetaGraphDef, SavedModel, libraries of functions,
   BladeDISC's inputs, and HLO modules as protobuf text. */
#include "formats/formats.h"
#include "formats/programs.h"
#include "formats/textproto.h"
#include "program/structure.h"
#include "unit.h"

static const char library_text[] =
    "library { function { signature { name: \"g\" input_arg { name: \"p\" type: DT_FLOAT }\n"
    "  output_arg { name: \"r\" type: DT_FLOAT } } node_def { name: \"n\" op: \"Neg\" input: \"p\" }\n"
    "  ret { key: \"r\" value: \"n:y:0\" } } }\n";
static const char graph_text[] = "node { name: \"a\" op: \"Const\" }\n"
                                 "node { name: \"b\" op: \"Mul\" input: \"a\" input: \"a\" }\n";

static void put_graph(struct rp_proto_writer *w, uint32_t field, const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer inner = {0};
    struct rp_bytes bytes;

    assert_ok(rp_textproto_parse(&rp_schema_TF_GRAPH, text, strlen(text), NULL, &inner, &err),
              &err);
    assert_ok(rp_proto_written(&inner, &bytes, &err), &err);
    if (field)
        rp_proto_put_bytes(w, field, bytes.at, bytes.n);
    else /* only the library in it, which is its one field */
        rp_proto_add_bytes(w, bytes.at + 2, bytes.n - 2);
    rp_proto_writer_release(&inner);
}

static struct rp_import load(struct rp_proto_writer *w, const char *format)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_input *in;
    struct rp_bytes bytes;

    assert_ok(rp_proto_written(w, &bytes, &err), &err);
    assert_ok(rp_input_open_memory("f", bytes.at, bytes.n, NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, &import, &err), &err);
    assert_string_equal(import.format->name, format);
    return import;
}

static void put_meta(struct rp_proto_writer *w)
{
    size_t info = rp_proto_begin(w, 1), ops, op;

    ops = rp_proto_begin(w, 2);
    op = rp_proto_begin(w, 1);
    rp_proto_put_text(w, 1, "Mul");
    rp_proto_end(w, op);
    rp_proto_end(w, ops);
    rp_proto_put_text(w, 5, "2.21.0");
    rp_proto_end(w, info);
    put_graph(w, 2, graph_text);
}

static void reads_meta_graphs(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_import import;
    size_t meta;

    UNUSED_STATE(state);
    put_meta(&w);
    import = load(&w, "meta-graph");
    assert_int_equal(import.program->nops, 2);
    rp_import_release(&import);
    rp_proto_rewind(&w);
    put_graph(&w, 2, graph_text); /* the graph alone */
    import = load(&w, "meta-graph");
    assert_string_equal(rp_op_opcode_name(import.program, 1), "Mul");
    rp_import_release(&import);
    rp_proto_rewind(&w);
    rp_proto_put_varint(&w, 1, 1);
    meta = rp_proto_begin(&w, 2);
    put_meta(&w);
    rp_proto_end(&w, meta);
    import = load(&w, "saved-model");
    assert_int_equal(import.program->nops, 2);
    rp_import_release(&import);
    rp_proto_writer_release(&w);
}

static void reads_libraries(void **state)
{
    struct rp_proto_writer w = {0}, options = {0}, function = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import;
    struct rp_bytes library, bytes;

    UNUSED_STATE(state);
    put_graph(&w, 0, library_text);
    import = load(&w, "function-library");
    assert_string_equal(rp_op_opcode_name(import.program, 1), "Neg");
    rp_import_release(&import);
    assert_ok(rp_proto_written(&w, &library, &err), &err);
    rp_proto_put_text(&options, 1, "MLIR_CPU");
    rp_proto_put_bytes(&options, 3, library.at, library.n);
    rp_proto_put_text(&function, 1, "g");
    rp_proto_rewind(&w);
    assert_ok(rp_proto_written(&options, &bytes, &err), &err);
    rp_proto_put_bytes(&w, 1, bytes.at, bytes.n);
    assert_ok(rp_proto_written(&function, &bytes, &err), &err);
    rp_proto_put_bytes(&w, 2, bytes.at, bytes.n);
    import = load(&w, "blade-input");
    assert_string_equal(rp_program_text(import.program, import.program->name), "g");
    assert_string_equal(
        rp_program_text(import.program,
                        import.program->computations.at[import.program->entry].name),
        "g");
    rp_import_release(&import);
    rp_proto_writer_release(&w);
    rp_proto_writer_release(&options);
    rp_proto_writer_release(&function);
}

/* ---- HLO as protobuf text ---- */

static const char hlo[] =
    "HloModule m, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias) }\n"
    "add {\n p0 = f32[] parameter(0)\n p1 = f32[] parameter(1)\n ROOT s = f32[] add(p0, p1)\n}\n"
    "ENTRY e {\n a = f32[8,4]{0,1} parameter(0), sharding={devices=[2,1]0,1}\n"
    " b = bf16[4,<=2]{1,0} parameter(1)\n c = f32[] constant(0.25)\n"
    " k = f32[2,8,8,3]{3,2,1,0} iota(), iota_dimension=1\n"
    " w = f32[3,3,3,4]{3,2,1,0} iota(), iota_dimension=0\n"
    " v = f32[2,4,4,4]{3,2,1,0} convolution(k, w), window={size=3x3 stride=2x2 pad=0_1x0_1}, "
    "dim_labels=b01f_01io->b01f\n"
    " d = f32[8,2]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
    "operand_precision={high,default}, metadata={op_name=\"jit(f)/dot\" source_line=3}\n"
    " g = f32[8,2]{1,0} all-reduce(d), channel_id=1, replica_groups={{0,1}}, to_apply=add\n"
    " ROOT r = (f32[8]{0}, f32[2,4,4,4]{3,2,1,0}) custom-call(g, c), "
    "custom_call_target=\"t\", backend_config=\"a\\\"b\"\n}\n";

static uint64_t hash_of(const struct rp_program *p)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_hashes hashes;

    assert_ok(rp_program_hash(p, &arena, &hashes, &err), &err);
    rp_arena_release(&arena);
    return hashes.program;
}

/* The message printed by a schema, with what comes before and behind it. */
static void check_text(const struct rp_program *p, const char *before, const char *behind,
                       bool module)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer w = {0};
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_input *in;
    struct rp_bytes bytes;
    struct rp_out *out;
    const char *text;
    size_t n;

    assert_ok(rp_hlo_proto_write(p, &w, &err), &err);
    assert_ok(rp_proto_written(&w, &bytes, &err), &err);
    assert_ok(rp_out_open_memory(&out, &err), &err);
    rp_out_text(out, before);
    if (module) { /* what is in field 1 of the HloProto */
        struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, 0, 10);
        struct rp_proto_item it;

        assert_true(rp_proto_next(&c, &it));
        bytes = it.bytes;
    }
    assert_ok(rp_textproto_print(module ? &rp_schema_HLO_MODULE : &rp_schema_HLO_PROTO, bytes,
                                 false, out, &err),
              &err);
    rp_out_text(out, behind);
    text = rp_out_borrow_memory(out, &n);
    assert_ok(rp_input_open_memory("f", text, n, NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, &import, &err), &err);
    assert_string_equal(import.format->name, "hlo-pbtxt");
    assert_true(hash_of(import.program) == hash_of(p));
    rp_import_release(&import);
    rp_out_abandon(out);
    rp_proto_writer_release(&w);
}

static void reads_hlo_as_protobuf_text(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    UNUSED_STATE(state);
    assert_ok(rp_hlo_text_parse(hlo, strlen(hlo), NULL, &p, &err), &err);
    check_text(p, "", "partitions { arguments { shape { element_type: F32 } f32s: 1.5 } }\n",
               false);
    check_text(p, "# proto-file: x\nhlo {\n", "}\nexecution_platform: \"Host\"\n", false);
    check_text(p, "", "", true);
    rp_program_free(p);
}

static void refuses_damaged_text(void **state)
{
    static const char text[] = "hlo_module {\n  name: \"m\"\n  computations { name: 7 }\n}\n";
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_input *in;

    UNUSED_STATE(state);
    assert_ok(rp_input_open_memory("f", text, sizeof text - 1, NULL, &in, &err), &err);
    assert_code(rp_format_read(in, NULL, &import, &err), RP_FORMAT);
    assert_contains(err.text, "line 3");
}

int test_graph_holders(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_meta_graphs),
        cmocka_unit_test(reads_libraries),
        cmocka_unit_test(reads_hlo_as_protobuf_text),
        cmocka_unit_test(refuses_damaged_text),
    };

    return cmocka_run_group_tests_name("graph_holders", tests, NULL, NULL);
}
