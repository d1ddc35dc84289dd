/* SPDX-License-Identifier: Apache-2.0 */
/* Lazy-tensor dumps and execution traces, through the table of formats. */
#include "formats/formats.h"
#include "program/opcodes.h"
#include "program/structure.h"
#include "unit.h"

static void open_text(const char *text, const char *format, struct rp_import *import)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;

    assert_ok(rp_input_open_memory("memory", text, strlen(text), NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, import, &err), &err);
    assert_string_equal(import->format->name, format);
}

static void refuse(const char *text, const char *message)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import;
    struct rp_input *in;

    assert_ok(rp_input_open_memory("memory", text, strlen(text), NULL, &in, &err), &err);
    assert_code(rp_format_read(in, NULL, &import, &err), RP_FORMAT);
    assert_contains(err.text, message);
}

/* As Ratex, torch_xla and torch.lazy write them. */
static void reads_lazy_dumps(void **state)
{
    static const char text[] =
        "[ScheduleSyncTensorsGraph]\nTensorsGraphInfo:\n  mark_step (/x/lazy_model.py:720)\n\n"
        "Hashes: (adeb4c68, 2c3b866)\n\n## BEGIN_GRAPH\nIR {\n"
        "  %0 = f32[] lazy_tensors::device_data(), device=CPU:0\n"
        "  %1 = f32[1,28]{1,0} aten::x(%0), location=fn@sgd.py:241, device=CPU:0,   fn "
        "(/full/path/sgd.py:241)\n"
        "  %2 = tuple[] ratex::relay_expr(%1, %0), num_outputs=9, ROOT=21\n}\n\n## END_GRAPH\n\n"
        "## BEGIN_GRAPH\nIR {\n  %0 = [Float[4,4]] aten::t_copy(), size=2 4, NodeType=N5torch4lazyE\n"
        "  %1 = (s64[<=5,1]{1,0}, s64[]) aten::nonzero(%0.1), ROOT=0\n}\n\n## END_GRAPH\n";
    struct rp_import import;
    struct rp_program *p;
    struct rp_source_line line;
    char shape[64];

    UNUSED_STATE(state);
    open_text(text, "lazy-ir", &import);
    p = import.program;
    assert_int_equal(p->computations.n, 2);
    assert_int_equal(p->nops, 5);
    assert_string_equal(rp_op_opcode_name(p, 2), "ratex::relay_expr");
    assert_true(rp_op_source(p, 1, &line));
    assert_string_equal(line.file, "/full/path/sgd.py");
    rp_shape_text(p, p->shape.at[4], false, shape, sizeof shape);
    assert_string_equal(shape, "(s64[<=5,1], s64[])");
    assert_int_equal(p->operand_index.at[p->operand_begin.at[4]], 1);
    rp_import_release(&import);
    refuse("## BEGIN_GRAPH\nIR {\n  %1 = f32[] a::b(%0)\n}\n", "operand '%0' is not defined");
}

/* A graph of a document: what is left out is known by its users; without "..." it is an error. */
static void reads_abridged_lazy_dumps(void **state)
{
    char text[] = "## BEGIN_GRAPH\nIR {\n  %0 = f32[] lazy_tensors::device_data(), device=CPU:0\n"
                  "  ...\n  %17 = tuple[] ratex::relay_expr(%16, %15), num_outputs=9\n"
                  "  %18 = f32[6,1,5,5] aten::mul(%17.1, %0)\n  ...\n}\n## END_GRAPH\n";
    struct rp_import import;
    struct rp_program *p;

    UNUSED_STATE(state);
    open_text(text, "lazy-ir", &import);
    p = import.program;
    assert_int_equal(p->nops, 5);
    assert_string_equal(rp_op_opcode_name(p, 1), "omitted");
    assert_string_equal(rp_program_text(p, p->op_name.at[1]), "16");
    assert_string_equal(rp_op_opcode_name(p, 3), "ratex::relay_expr");
    rp_import_release(&import);
    memcpy(strstr(text, "..."), "   ", 3);
    refuse(text, "operand '%16' is not defined at line 5, column 35");
}

/* torch_xla: a name, root hashes, a hash behind the graph that may be missing, and HLO. */
static void reads_dumps_of_torch_xla(void **state)
{
    static const char text[] =
        "[ScheduleSyncTensorsGraph]\nGraph Name: train\nTensorsGraphInfo:\n  f (a.py:1)\n\n"
        "Root Hashes: (12ab, 34cd)\n\n## BEGIN_GRAPH\nIR {\n"
        "  %0 = f32[1024,512]{0,1} xla::device_data(), device=CUDA:0, scope=Net.1/fc.2\n"
        "  %1 = (s64[<=5,1]{1,0}, s64[]) aten::nonzero(%0), num_outputs=2, scope=Net.1, "
        "location=g@m.py:9, ROOT=0\n}\n\n#OUTPUT_SHARDING_BEGIN\n\n{replicated}\n\n"
        "#OUTPUT_SHARDING_END\n\nGraph Hash: 5ef6\n\n## END_GRAPH\n\n\n"
        "## BEGIN_GRAPH\nIR {\n  %0 = f32[2]{0} prim::Constant(), value=1\n";
    static const char hlo[] =
        "[ScheduleSyncTensorsGraph]\nTensorsGraphInfo:\n  f (a.py:1)\n\nRoot Hashes: (1)\n\n"
        "## BEGIN_GRAPH\nHloModule IrToHlo.2\n\nENTRY e {\n  p = f32[2]{0} parameter(0)\n  ROOT n "
        "= f32[2]{0} negate(p)\n}\n\nGraph Hash: 5ef6\n\n## END_GRAPH\n\n";
    struct rp_import import;
    struct rp_program *p;
    struct rp_source_line line;

    UNUSED_STATE(state);
    open_text(text, "lazy-ir", &import);
    p = import.program;
    assert_int_equal(p->computations.n, 2); /* the second was not ended */
    assert_int_equal(p->nops, 3);
    assert_string_equal(rp_program_text(p, p->metas.at[p->meta.at[0]].op_name), "Net.1/fc.2");
    assert_string_equal(rp_program_text(p, p->metas.at[p->meta.at[1]].op_name), "Net.1");
    assert_true(rp_op_source(p, 1, &line));
    assert_int_equal(line.line, 9);
    rp_import_release(&import);
    open_text(hlo, "lazy-ir", &import);
    assert_string_equal(import.program->language, "hlo");
    assert_int_equal(import.program->nops, 2);
    assert_int_equal(import.program->code.at[1], RP_OP_NEGATE);
    rp_import_release(&import);
}

static void reads_lazy_drawings(void **state)
{
    static const char text[] =
        "[GetTensorsOpByOp]\nTensorsGraphInfo:\n\nHashes: (1)\n\n## BEGIN_GRAPH\ndigraph G {\n"
        "  node2 [label=\"aten::mul\\nf32[6,1]\\nscope=a.1\\nROOT=0\"]\n"
        "  node0 [label=\"lazy_tensors::device_data\\nf32[]\\ndevice=CPU:0\"]\n"
        "  node1 [label=\"ratex::relay_expr\\ntuple[]\\nnum_outputs=2\"]\n"
        "  node1 -> node2 [label=\"i=1,o=1\"]\n  node0 -> node2 [label=\"i=0\"]\n"
        "  node0 -> node1\n}\n\n## END_GRAPH\n\n";
    struct rp_import import;
    struct rp_program *p;
    char shape[32];

    UNUSED_STATE(state);
    open_text(text, "lazy-ir", &import);
    p = import.program;
    assert_int_equal(p->nops, 3);
    assert_string_equal(rp_op_opcode_name(p, 0), "aten::mul");
    rp_shape_text(p, p->shape.at[0], false, shape, sizeof shape);
    assert_string_equal(shape, "f32[6,1]");
    assert_int_equal(rp_op_operands(p, 0).n, 2);
    assert_int_equal(rp_op_operands(p, 0).at[0], 1);
    assert_int_equal(rp_op_operands(p, 0).at[1], 2);
    assert_int_equal(p->operand_index.at[1], 1);
    rp_import_release(&import);
    refuse("## BEGIN_GRAPH\ndigraph G {\n  node0 [label=\"a\\nf32[]\"]\n  node5 -> node0\n}\n",
           "node5");
    refuse("## BEGIN_GRAPH\ndigraph G {\n  node0 [label=\"a\\nf32[]\"]\n  node0 [label=\"a\"]\n}\n",
           "twice");
}

static void reads_execution_traces(void **state)
{
    static const char text[] =
        "{\"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": 7, \"nodes\": [\n"
        "{\"id\": 2, \"name\": \"aten::mm\", \"ctrl_deps\": 1, \"inputs\": {\"values\": "
        "[[5,8,0,64,4,\"cuda:0\"],[-1]], \"shapes\": [[8,8],[[]]], \"types\": [\"Tensor(float)\"]}, "
        "\"outputs\": {\"values\": [[6,9,0,64,4,\"cuda:0\"]], \"shapes\": [[8,8]], \"types\": "
        "[\"Tensor(float)\"]}, \"attrs\": [{\"name\": \"rf_id\", \"value\": 0}]},\n"
        "{\"id\": 3, \"name\": \"aten::relu\", \"inputs\": [[6, 9, 0, 64, 4, \"cuda:0\"]], "
        "\"outputs\": []}]}";
    struct rp_import import;
    char shape[32];

    UNUSED_STATE(state);
    open_text(text, "execution-trace", &import);
    assert_int_equal(import.program->nops, 2);
    assert_string_equal(rp_op_opcode_name(import.program, 0), "aten::mm");
    rp_shape_text(import.program, import.program->shape.at[0], false, shape, sizeof shape);
    assert_string_equal(shape, "f32[8,8]");
    assert_int_equal(rp_op_operands(import.program, 1).n, 1);
    assert_int_equal(rp_op_operands(import.program, 1).at[0], 0);
    rp_import_release(&import);
    refuse("{\"schema\": \"1.1\", \"nodes\": [{\"id\": 2, ", "memory");
}

#define T(id, n) "[" #id ",8,0," #n ",4,\"cuda:0\"]"
#define NODE(id, parent, name, in, in_shapes, out, out_shapes)                           \
    "{\"id\": " #id ", \"name\": \"" name "\", \"ctrl_deps\": " #parent                  \
    ", \"inputs\": {\"values\": [" in "], \"shapes\": [" in_shapes "], \"types\": []}, " \
    "\"outputs\": {\"values\": [" out "], \"shapes\": [" out_shapes "], \"types\": []}}"

/* Work by shapes, once: at the innermost node that has any. */
static void counts_work_of_execution_traces(void **state)
{
    static const char text[] = "{\"schema\": \"1.1.1-chakra.0.0.4\", \"nodes\": [\n"
        /* a product of [4,8] and [8,2], inside linear; its view inside moves nothing */
        NODE(3, 2, "aten::t", T(5, 16), "[2,8]", T(6, 16), "[8,2]") ",\n" NODE(
            4, 2, "aten::addmm", T(9, 2) "," T(7, 32) "," T(6, 16), "[2],[4,8],[8,2]", T(8, 8),
            "[4,2]") ",\n" NODE(5, 4, "aten::expand", T(9, 2), "[2],[[],[]]", T(9, 8),
                                "[4,2]") ",\n" NODE(2, 1, "aten::linear", T(7, 32) "," T(5, 16),
                                                    "[4,8],[2,8]", T(8, 8), "[4,2]") ",\n"
        /* two images of 3 x 5 x 5, four filters of 3 x 3 x 3, results of 5 x 5 */
        NODE(6, 1, "aten::cudnn_convolution", T(10, 150) "," T(11, 108),
             "[2,3,5,5],[4,3,3,3],[[],[]]", T(12, 200), "[2,4,5,5]") ",\n"
        /* only the gradient of the weight */
        NODE(7, 1, "aten::convolution_backward", T(12, 200) "," T(10, 150) "," T(11, 108),
             "[2,4,5,5],[2,3,5,5],[4,3,3,3]", T(13, 108),
             "[],[4,3,3,3]") ",\n" NODE(8, 1, "aten::exp", T(14, 7), "[7]", T(15, 7),
                                        "[7]") ",\n" NODE(9, 1, "aten::embedding",
                                                          T(16, 1000) "," T(17, 2), "[100,10],[2]",
                                                          T(18, 20), "[2,10]") "]}";
    struct rp_import import;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_costs costs;
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    open_text(text, "execution-trace", &import);
    assert_ok(rp_program_count(import.program, &arena, &costs, &err), &err);
    assert_true(costs.op[0].bytes == 0);
    assert_true(costs.op[1].flops == 2 * 4 * 8 * 2);
    assert_true(costs.op[1].bytes == 4 * (2 + 32 + 16 + 8));
    assert_true(costs.op[3].flops == 0 && costs.op[3].bytes == 0);
    assert_true(costs.op[4].flops == 2 * 200 * 27);
    assert_true(costs.op[5].flops == 2 * 200 * 27);
    assert_true(costs.op[6].flops == 0 && costs.op[6].transcendentals == 7);
    assert_true(costs.op[7].bytes == 2 * 4 * 20);
    assert_true(costs.program.flops == 128 + 4 * 200 * 27);
    rp_arena_release(&arena);
    rp_import_release(&import);
    open_text("{\"schema\": \"1.1\", \"nodes\": [{\"id\": 2, \"name\": \"x\"}]}", "execution-trace",
              &import);
    assert_int_equal(import.program->given.n, 0); /* nothing is known */
    rp_import_release(&import);
}

int test_other_programs(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_lazy_dumps),
        cmocka_unit_test(reads_dumps_of_torch_xla),
        cmocka_unit_test(reads_abridged_lazy_dumps),
        cmocka_unit_test(reads_lazy_drawings),
        cmocka_unit_test(reads_execution_traces),
        cmocka_unit_test(counts_work_of_execution_traces),
    };

    return cmocka_run_group_tests_name("other_programs", tests, NULL, NULL);
}
