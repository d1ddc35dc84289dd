/* SPDX-License-Identifier: Apache-2.0 */
/* StableHLO: that it is read, and that it means what the same program means in HLO. */
#include "formats/formats.h"
#include "formats/programs.h"
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

static const char mlir[] =
    "#loc1 = loc(\"m.py\":7:2)\n"
    "module @jit_f attributes {mhlo.num_partitions = 1 : i32} {\n"
    "  func.func public @main(%arg0: tensor<4x8xf32> {jax.x = \"(\"}, %arg1: tensor<8x?xbf16>) -> "
    "(tensor<4x2xf32> {jax.result_info = \"r\"}) {\n"
    "    %c = stablehlo.constant dense<[1, 2]> : tensor<2xi32> loc(#loc)\n"
    "    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = "
    "[DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x?xbf16>) -> tensor<4x2xf32> loc(#loc12)\n"
    "    %1:2 = call @g(%0) : (tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<f32>)\n"
    "    %2:2 = stablehlo.while(%iterArg = %1#0, %iterArg_0 = %1#1) : tensor<4x2xf32>, tensor<f32>\n"
    "     cond {\n      %9 = stablehlo.compare LT, %iterArg_0, %iterArg_0 : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n      stablehlo.return %9 : tensor<i1>\n    } do {\n"
    "      stablehlo.return %iterArg, %iterArg_0 : tensor<4x2xf32>, tensor<f32>\n    }\n"
    "    %3 = \"stablehlo.reduce_window\"(%2#0, %1#1) <{window = array<i64: 1, 2>}> ({\n"
    "    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n      %8 = stablehlo.add %a, %b : tensor<f32>\n"
    "      stablehlo.return %8 : tensor<f32>\n    }) : (tensor<4x2xf32>, tensor<f32>) -> "
    "tensor<4x1xf32>\n"
    "    return %3 : tensor<4x1xf32>\n  }\n"
    "  func.func private @g(%arg0: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<f32>) {\n"
    "    %0 = stablehlo.custom_call @target(%arg0) : (tensor<4x2xf32>) -> tensor<f32>\n"
    "    return %arg0, %0 : tensor<4x2xf32>, tensor<f32>\n  }\n}\n"
    "#loc12 = loc(\"jit(f)/dot\"(#loc1))\n";

static void reads_stablehlo(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_import import;
    struct rp_program *p;
    struct rp_source_line line;
    struct rp_costs costs;
    char shape[64];

    UNUSED_STATE(state);
    open_text(mlir, "stablehlo", &import);
    p = import.program;
    assert_int_equal(p->computations.n, 5); /* main, its three regions, g */
    assert_string_equal(rp_program_text(p, p->name), "jit_f");
    assert_int_equal(p->code.at[3], RP_OP_DOT);
    assert_int_equal(rp_op_operands(p, 3).n, 2);
    rp_shape_text(p, p->shape.at[1], true, shape, sizeof shape);
    assert_string_equal(shape, "bf16[8,?]");
    assert_true(rp_op_source(p, 3, &line));
    assert_string_equal(line.file, "m.py");
    assert_int_equal(line.line, 7);
    assert_ok(rp_program_count(p, &arena, &costs, &err), &err);
    assert_int_equal(costs.op[3].flops, 2 * 4 * 2 * 8);
    assert_int_equal(rp_op_called(p, 4).at[0], 4);
    assert_int_equal(p->computations.at[0].nparams, 2);
    assert_int_equal(p->code.at[p->computations.at[0].root], RP_OP_REDUCE_WINDOW);
    rp_arena_release(&arena);
    rp_import_release(&import);
    refuse("module @m {\n func.func @main() {\n %0 = stablehlo.add %x, %x : tensor<f32>\n }\n}",
           "'%x' is not defined at line 3");
    refuse("module @m {\n func.func @main() {\n", "ends inside a function");
}

/* Hash and flops of both must be the same. */
static void same_as_hlo(const char *body, const char *hlo)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_import import[2] = {RP_IMPORT_INIT, RP_IMPORT_INIT};
    struct rp_hashes hashes[2];
    struct rp_costs costs[2];
    char text[4096];

    snprintf(text, sizeof text, "module @m {\n%s}\n", body);
    open_text(text, "stablehlo", &import[0]);
    open_text(hlo, "hlo-text", &import[1]);
    for (int i = 0; i < 2; i++) {
        assert_ok(rp_program_validate(import[i].program, &err), &err);
        assert_ok(rp_program_hash(import[i].program, &arena, &hashes[i], &err), &err);
        assert_ok(rp_program_count(import[i].program, &arena, &costs[i], &err), &err);
    }
    if (hashes[0].program != hashes[1].program)
        fail_msg("another hash than HLO's: %s", body);
    assert_int_equal(costs[0].program.flops, costs[1].program.flops);
    assert_int_equal(costs[0].program.transcendentals, costs[1].program.transcendentals);
    rp_arena_release(&arena);
    rp_import_release(&import[0]);
    rp_import_release(&import[1]);
}

#define ADD_REGION \
    "add {\n p0 = f32[] parameter(0)\n p1 = f32[] parameter(1)\n ROOT s = f32[] add(p0, p1)\n}\n"

static void reductions_are_hlos(void **state)
{
    static const char hlo[] =
        "HloModule m\n" ADD_REGION "ENTRY main {\n a = f32[4,8]{1,0} parameter(0)\n"
        " z = f32[] constant(-inf)\n"
        " ROOT r = f32[4]{0} reduce(a, z), dimensions={1}, to_apply=add\n}\n";

    UNUSED_STATE(state);
    same_as_hlo("func.func public @main(%arg0: tensor<4x8xf32>) -> tensor<4xf32> {\n"
                "  %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
                "  %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across "
                "dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>\n"
                "  return %0 : tensor<4xf32>\n}\n",
                hlo);
    same_as_hlo("func.func public @main(%arg0: tensor<4x8xf32>) -> tensor<4xf32> {\n"
                "  %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
                "  %0 = stablehlo.reduce(%arg0 init: %cst) across dimensions = [1] : "
                "(tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>\n"
                "   reducer(%a: tensor<f32>, %b: tensor<f32>)  {\n"
                "    %1 = stablehlo.add %a, %b : tensor<f32>\n"
                "    stablehlo.return %1 : tensor<f32>\n  }\n"
                "  return %0 : tensor<4xf32>\n}\n",
                hlo);
    same_as_hlo("func.func public @main(%arg0: tensor<4x8xf32>) -> tensor<4xf32> {\n"
                "  %cst = \"stablehlo.constant\"() <{value = dense<0xFF800000> : tensor<f32>}> : "
                "() -> tensor<f32>\n"
                "  %0 = \"stablehlo.reduce\"(%arg0, %cst) <{dimensions = array<i64: 1>}> ({\n"
                "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
                "    %1 = \"stablehlo.add\"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
                "    \"stablehlo.return\"(%1) : (tensor<f32>) -> ()\n"
                "  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>\n"
                "  \"func.return\"(%0) : (tensor<4xf32>) -> ()\n}\n",
                hlo);
}

static void two_reductions_at_once(void **state)
{
    UNUSED_STATE(state);
    same_as_hlo(
        "func.func public @main(%x: tensor<4xf32>, %y: tensor<4xi32>) -> tensor<i32> {\n"
        "  %c = stablehlo.constant dense<0> : tensor<i32>\n"
        "  %cst = stablehlo.constant dense<1.500000e+00> : tensor<f32>\n"
        "  %0:2 = stablehlo.reduce(%x init: %cst), (%y init: %c) across dimensions = [0] : "
        "(tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)\n"
        "   reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>)  {\n"
        "    %1 = stablehlo.maximum %a, %b : tensor<f32>\n"
        "    %2 = stablehlo.subtract %i, %j : tensor<i32>\n"
        "    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>\n  }\n"
        "  return %0#1 : tensor<i32>\n}\n",
        "HloModule m\nr {\n a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] "
        "parameter(2)\n j = s32[] parameter(3)\n m = f32[] maximum(a, b)\n n = s32[] subtract(i, j)\n"
        " ROOT t = (f32[], s32[]) tuple(m, n)\n}\nENTRY main {\n x = f32[4]{0} parameter(0)\n y = "
        "s32[4]{0} parameter(1)\n c = s32[] constant(0)\n d = f32[] constant(1.5)\n q = (f32[], s32[]) "
        "reduce(x, y, d, c), dimensions={0}, to_apply=r\n ROOT g = s32[] get-tuple-element(q), "
        "index=1\n}\n");
}

/* The loop uses %k of the function around it. */
static void loops_are_hlos(void **state)
{
    UNUSED_STATE(state);
    same_as_hlo(
        "func.func public @main(%i: tensor<i32>, %x: tensor<4xf32>, %k: tensor<4xf32>) -> "
        "tensor<4xf32> {\n"
        "  %0:2 = stablehlo.while(%iterArg = %i, %iterArg_0 = %x) : tensor<i32>, tensor<4xf32>\n"
        "   cond {\n    %c = stablehlo.constant dense<3> : tensor<i32>\n"
        "    %1 = stablehlo.compare  LT, %iterArg, %c,  SIGNED : (tensor<i32>, tensor<i32>) -> "
        "tensor<i1>\n    stablehlo.return %1 : tensor<i1>\n  } do {\n"
        "    %c = stablehlo.constant dense<1> : tensor<i32>\n"
        "    %1 = stablehlo.add %iterArg, %c : tensor<i32>\n"
        "    %2 = stablehlo.multiply %iterArg_0, %k : tensor<4xf32>\n"
        "    stablehlo.return %1, %2 : tensor<i32>, tensor<4xf32>\n  }\n"
        "  return %0#1 : tensor<4xf32>\n}\n",
        "HloModule m\n"
        "body {\n t = (s32[], f32[4]{0}, f32[4]{0}) parameter(0)\n i = s32[] get-tuple-element(t), "
        "index=0\n x = f32[4]{0} get-tuple-element(t), index=1\n k = f32[4]{0} get-tuple-element(t), "
        "index=2\n c = s32[] constant(1)\n j = s32[] add(i, c)\n y = f32[4]{0} multiply(x, k)\n"
        " ROOT o = (s32[], f32[4]{0}, f32[4]{0}) tuple(j, y, k)\n}\n"
        "cond {\n t = (s32[], f32[4]{0}, f32[4]{0}) parameter(0)\n i = s32[] get-tuple-element(t), "
        "index=0\n x = f32[4]{0} get-tuple-element(t), index=1\n k = f32[4]{0} get-tuple-element(t), "
        "index=2\n c = s32[] constant(3)\n ROOT p = pred[] compare(i, c), direction=LT\n}\n"
        "ENTRY main {\n i = s32[] parameter(0)\n x = f32[4]{0} parameter(1)\n k = f32[4]{0} "
        "parameter(2)\n t = (s32[], f32[4]{0}, f32[4]{0}) tuple(i, x, k)\n w = (s32[], f32[4]{0}, "
        "f32[4]{0}) while(t), condition=cond, body=body\n ROOT r = f32[4]{0} get-tuple-element(w), "
        "index=1\n}\n");
}

static void attributes_are_hlos(void **state)
{
    UNUSED_STATE(state);
    same_as_hlo(
        "func.func public @main(%x: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) -> "
        "tensor<2x4x4x4xf32> {\n"
        "  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
        "window = {stride = [2, 2], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, "
        "1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
        "(tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32>\n"
        "  return %0 : tensor<2x4x4x4xf32>\n}\n",
        "HloModule m\nENTRY main {\n x = f32[2,8,8,3]{3,2,1,0} parameter(0)\n k = "
        "f32[3,3,3,4]{3,2,1,0} parameter(1)\n ROOT c = f32[2,4,4,4]{3,2,1,0} convolution(x, k), "
        "window={size=3x3 stride=2x2 pad=0_1x0_1}, dim_labels=b01f_01io->b01f\n}\n");
    same_as_hlo(
        "func.func public @main(%x: tensor<2x6xf32>, %y: tensor<6x2xf32>) -> tensor<5x3xf32> {\n"
        "  %0 = stablehlo.transpose %y, dims = [1, 0] : (tensor<6x2xf32>) -> tensor<2x6xf32>\n"
        "  %1 = stablehlo.concatenate %x, %0, dim = 0 : (tensor<2x6xf32>, tensor<2x6xf32>) -> "
        "tensor<4x6xf32>\n"
        "  %2 = stablehlo.slice %1 [0:4, 1:6:2] : (tensor<4x6xf32>) -> tensor<4x3xf32>\n"
        "  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
        "  %3 = stablehlo.pad %2, %cst, low = [1, 0], high = [0, 0], interior = [0, 0] : "
        "(tensor<4x3xf32>, tensor<f32>) -> tensor<5x3xf32>\n"
        "  return %3 : tensor<5x3xf32>\n}\n",
        "HloModule m\nENTRY main {\n x = f32[2,6]{1,0} parameter(0)\n y = f32[6,2]{1,0} "
        "parameter(1)\n t = f32[2,6]{1,0} transpose(y), dimensions={1,0}\n c = f32[4,6]{1,0} "
        "concatenate(x, t), dimensions={0}\n s = f32[4,3]{1,0} slice(c), slice={[0:4:1], [1:6:2]}\n z = "
        "f32[] constant(0)\n ROOT p = f32[5,3]{1,0} pad(s, z), padding=1_0x0_0\n}\n");
    same_as_hlo(
        "func.func public @main(%x: tensor<3x4x5xf32>, %y: tensor<3x5x6xf32>) -> tensor<3x4x6xf32> "
        "{\n  %0 = \"stablehlo.dot_general\"(%x, %y) <{dot_dimension_numbers = "
        "#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
        "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : "
        "(tensor<3x4x5xf32>, tensor<3x5x6xf32>) -> tensor<3x4x6xf32>\n"
        "  return %0 : tensor<3x4x6xf32>\n}\n",
        "HloModule m\nENTRY main {\n x = f32[3,4,5]{2,1,0} parameter(0)\n y = f32[3,5,6]{2,1,0} "
        "parameter(1)\n ROOT d = f32[3,4,6]{2,1,0} dot(x, y), lhs_batch_dims={0}, "
        "lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}\n}\n");
}

/* In the form of people and the generic one, with the order of MLIR's printer and another. */
static void algorithms_are_hlos(void **state)
{
    static const char hlo[] =
        "HloModule m\nENTRY main {\n x = f32[4,5]{1,0} parameter(0)\n y = f32[5,6]{1,0} "
        "parameter(1)\n ROOT d = f32[4,6]{1,0} dot(x, y), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={0}, algorithm=dot_bf16_bf16_f32_x3\n}\n";

    UNUSED_STATE(state);
    same_as_hlo(
        "func.func public @main(%x: tensor<4x5xf32>, %y: tensor<5x6xf32>) -> tensor<4x6xf32> {\n"
        "  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], precision = [DEFAULT, "
        "DEFAULT], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, "
        "accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
        "num_primitive_operations = 3, allow_imprecise_accumulation = false> : (tensor<4x5xf32>, "
        "tensor<5x6xf32>) -> tensor<4x6xf32>\n  return %0 : tensor<4x6xf32>\n}\n",
        hlo);
    same_as_hlo(
        "func.func public @main(%x: tensor<4x5xf32>, %y: tensor<5x6xf32>) -> tensor<4x6xf32> {\n"
        "  %0 = \"stablehlo.dot_general\"(%x, %y) <{algorithm = #stablehlo.dot_algorithm<"
        "accumulation_type = f32, rhs_precision_type = bf16, lhs_precision_type = bf16, "
        "num_primitive_operations = 3, lhs_component_count = 1, rhs_component_count = 1, "
        "allow_imprecise_accumulation = false>, dot_dimension_numbers = "
        "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : "
        "(tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>\n  return %0 : "
        "tensor<4x6xf32>\n}\n",
        hlo);
}

/* What HLO has no word for is kept as it is, not taken for something else. */
static void unknown_algorithms_are_kept(void **state)
{
    static const char *const parts[] = {
        "<lhs_precision_type = bf16, rhs_precision_type = tf32, accumulation_type = f32, "
        "num_primitive_operations = 1>",
        "<lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, "
        "lhs_component_count = 3, num_primitive_operations = 3>",
        "<lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, "
        "num_primitive_operations = 2>",
        "<lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, "
        "allow_imprecise_accumulation = true>"};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const struct rp_attr *attr;
        struct rp_import import;
        char text[1024];

        snprintf(
            text, sizeof text,
            "module @m {\nfunc.func public @main(%%x: tensor<4x4xf32>) -> tensor<4x4xf32> {\n"
            "  %%0 = stablehlo.dot_general %%x, %%x, contracting_dims = [1] x [0], algorithm = "
            "%s : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n  return %%0 : "
            "tensor<4x4xf32>\n}\n}\n",
            parts[i]);
        open_text(text, "stablehlo", &import);
        attr = rp_op_attr(import.program, 1, RP_ATTR_ALGORITHM);
        assert_non_null(attr);
        assert_int_equal(attr->n, strlen(parts[i]));
        assert_memory_equal(attr->at, parts[i], attr->n);
        rp_import_release(&import);
    }
}

static void broadcasts_are_hlos(void **state)
{
    UNUSED_STATE(state);
    same_as_hlo(
        "func.func public @main(%x: tensor<32x1xf32>, %y: tensor<10xf32>) -> tensor<32x10xf32> {\n"
        "  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<32x1xf32>) -> "
        "tensor<32x10xf32>\n"
        "  %1 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<10xf32>) -> tensor<1x10xf32>\n"
        "  %2 = \"stablehlo.broadcast_in_dim\"(%1) <{broadcast_dimensions = array<i64: 0, 1>}> : "
        "(tensor<1x10xf32>) -> tensor<32x10xf32>\n"
        "  %3 = stablehlo.add %0, %2 : tensor<32x10xf32>\n  return %3 : tensor<32x10xf32>\n}\n",
        "HloModule m\nENTRY main {\n x = f32[32,1]{1,0} parameter(0)\n y = f32[10]{0} parameter(1)\n "
        "a = f32[32,1]{1,0} broadcast(x), dimensions={0,1}\n b = f32[32]{0} reshape(a)\n c = "
        "f32[32,10]{1,0} broadcast(b), dimensions={0}\n d = f32[1,10]{1,0} reshape(y)\n e = "
        "f32[1,10]{1,0} broadcast(d), dimensions={0,1}\n f = f32[10]{0} reshape(e)\n g = "
        "f32[32,10]{1,0} broadcast(f), dimensions={1}\n ROOT r = f32[32,10]{1,0} add(c, g)\n}\n");
}

/* One branch uses a value of outside, which both get. */
static void branches_are_hlos(void **state)
{
    UNUSED_STATE(state);
    same_as_hlo(
        "func.func public @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {\n"
        "  %0 = \"stablehlo.if\"(%p) ({\n    %1 = stablehlo.negate %x : tensor<2xf32>\n"
        "    stablehlo.return %1 : tensor<2xf32>\n  }, {\n    %1 = stablehlo.constant dense<[1.0, "
        "2.0]> : tensor<2xf32>\n    stablehlo.return %1 : tensor<2xf32>\n  }) : (tensor<i1>) -> "
        "tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n",
        "HloModule m\na {\n x = f32[2]{0} parameter(0)\n ROOT n = f32[2]{0} negate(x)\n}\nb {\n x = "
        "f32[2]{0} parameter(0)\n ROOT c = f32[2]{0} constant({1, 2})\n}\nENTRY main {\n p = pred[] "
        "parameter(0)\n x = f32[2]{0} parameter(1)\n ROOT c = f32[2]{0} conditional(p, x, x), "
        "true_computation=a, false_computation=b\n}\n");
}

static uint64_t hash_of(const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_import import;
    struct rp_hashes hashes;
    uint64_t hash;

    open_text(text, "stablehlo", &import);
    assert_ok(rp_program_hash(import.program, &arena, &hashes, &err), &err);
    hash = hashes.program;
    rp_arena_release(&arena);
    rp_import_release(&import);
    return hash;
}

/* print_generic_op_form: everything in quotes, properties in <{}>, functions as regions. */
static void both_forms_are_one(void **state)
{
    static const char pretty[] =
        "module @jit_f {\n  func.func public @main(%arg0: tensor<4x6xf32>) -> tensor<4xf32> {\n"
        "    %cst = stablehlo.constant dense<2.0> : tensor<f32>\n"
        "    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x6xf32>\n"
        "    %1 = call @\"<lambda>\"(%0) : (tensor<4x6xf32>) -> tensor<4x6xf32>\n"
        "    %2 = stablehlo.slice %1 [0:4, 0:6:2] : (tensor<4x6xf32>) -> tensor<4x3xf32>\n"
        "    %v, %i = chlo.top_k(%2, k = 1) : tensor<4x3xf32> -> (tensor<4x1xf32>, "
        "tensor<4x1xi32>)\n"
        "    %3 = stablehlo.reshape %v : (tensor<4x1xf32>) -> tensor<4xf32>\n"
        "    %4 = stablehlo.custom_call @go(%3) {backend_config = \"\", mhlo.backend_config = {n = 5 "
        ": i64}} : (tensor<4xf32>) -> tensor<4xf32>\n"
        "    %5 = stablehlo.reduce_precision %4, format = e5m3 : tensor<4xf32>\n"
        "    return %5 : tensor<4xf32>\n  }\n"
        "  func.func private @\"<lambda>\"(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {\n"
        "    %0 = stablehlo.negate %arg0 : tensor<4x6xf32>\n    return %0 : tensor<4x6xf32>\n  }\n}\n";
    static const char generic[] =
        "#loc1 = loc(\"x\")\n\"builtin.module\"() <{sym_name = \"jit_f\"}> ({\n"
        "  \"func.func\"() <{function_type = (tensor<4x6xf32>) -> tensor<4xf32>, sym_name = "
        "\"main\", sym_visibility = \"public\"}> ({\n  ^bb0(%arg0: tensor<4x6xf32> loc(\"x\")):\n"
        "    %0 = \"stablehlo.constant\"() <{value = dense<2.0> : tensor<f32>}> : () -> "
        "tensor<f32> loc(#loc1)\n"
        "    %1 = \"stablehlo.broadcast_in_dim\"(%0) <{broadcast_dimensions = array<i64>}> : "
        "(tensor<f32>) -> tensor<4x6xf32>\n"
        "    %2 = \"func.call\"(%1) <{callee = @\"<lambda>\"}> : (tensor<4x6xf32>) -> "
        "tensor<4x6xf32>\n"
        "    %3 = \"stablehlo.slice\"(%2) <{limit_indices = array<i64: 4, 6>, start_indices = "
        "array<i64: 0, 0>, strides = array<i64: 1, 2>}> : (tensor<4x6xf32>) -> tensor<4x3xf32>\n"
        "    %4:2 = \"chlo.top_k\"(%3) <{k = 1 : i64}> : (tensor<4x3xf32>) -> (tensor<4x1xf32>, "
        "tensor<4x1xi32>)\n"
        "    %5 = \"stablehlo.reshape\"(%4#0) : (tensor<4x1xf32>) -> tensor<4xf32>\n"
        "    %6 = \"stablehlo.custom_call\"(%5) <{api_version = 1 : i32, backend_config = \"\", "
        "call_target_name = \"go\", has_side_effect = false}> {mhlo.backend_config = {n = 5 : i64}} "
        ": (tensor<4xf32>) -> tensor<4xf32>\n"
        "    %7 = \"stablehlo.reduce_precision\"(%6) <{exponent_bits = 5 : i32, mantissa_bits = 3 : "
        "i32}> : (tensor<4xf32>) -> tensor<4xf32>\n"
        "    \"func.return\"(%7) : (tensor<4xf32>) -> ()\n  }) : () -> ()\n"
        "  \"func.func\"() ({\n  ^bb0(%arg0: tensor<4x6xf32>):\n"
        "    %0 = \"stablehlo.negate\"(%arg0) : (tensor<4x6xf32>) -> tensor<4x6xf32>\n"
        "    \"func.return\"(%0) : (tensor<4x6xf32>) -> ()\n  }) {sym_name = \"<lambda>\"} : () -> "
        "()\n}) {mhlo.num_partitions = 1 : i32} : () -> ()\n";

    UNUSED_STATE(state);
    assert_true(hash_of(pretty) == hash_of(generic));
}

/* shard_map: the region's arguments are named before it. */
static void regions_with_named_arguments(void **state)
{
    static const char text[] =
        "module @m {\n  sdy.mesh @mesh = <[\"x\"=4]>\n  func.func public @main(%arg0: "
        "tensor<8xf32>) -> tensor<8xf32> {\n"
        "    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{\"x\"}]>] "
        "out_shardings=[<@mesh, [{\"x\"}]>] manual_axes={\"x\"} (%arg1: tensor<2xf32>) {\n"
        "      %1 = stablehlo.negate %arg1 : tensor<2xf32>\n      sdy.return %1 : tensor<2xf32>\n"
        "    } : (tensor<8xf32>) -> tensor<8xf32>\n    return %0 : tensor<8xf32>\n  }\n}\n";
    struct rp_import import;

    UNUSED_STATE(state);
    open_text(text, "stablehlo", &import);
    assert_int_equal(import.program->computations.n, 2);
    assert_int_equal(import.program->computations.at[1].nparams, 1);
    rp_import_release(&import);
}

static void refuses_damaged_regions(void **state)
{
    UNUSED_STATE(state);
    refuse(
        "module @m {\n func.func @main(%a: tensor<2xf32>) {\n  %0 = \"x.y\"(%a) ({\n %1 = x.z %a",
        "a region that is not closed");
    refuse("module @m {\n func.func @main(%a: tensor<2xf32>) {\n  %0:2 = x.y %a : tensor<2xf32>, "
           "tensor<2xf32>\n  x.z %0#2\n }\n}",
           "there are only 2 results");
    refuse("\"builtin.module\"() ({\n \"func.func\"() ({\n ^bb0:\n }) : () -> ()\n})\n",
           "a function without a name");
    refuse("\"builtin.module\"() <{sym_name = \"m\"}> ({\n \"func.func\"() <{sym_name = \"f\"}>",
           "an operation without a region");
}

int test_stablehlo(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_stablehlo),        cmocka_unit_test(reductions_are_hlos),
        cmocka_unit_test(two_reductions_at_once), cmocka_unit_test(loops_are_hlos),
        cmocka_unit_test(attributes_are_hlos),    cmocka_unit_test(branches_are_hlos),
        cmocka_unit_test(broadcasts_are_hlos),    cmocka_unit_test(refuses_damaged_regions),
        cmocka_unit_test(both_forms_are_one),     cmocka_unit_test(regions_with_named_arguments),
        cmocka_unit_test(algorithms_are_hlos),    cmocka_unit_test(unknown_algorithms_are_kept),
    };

    return cmocka_run_group_tests_name("stablehlo", tests, NULL, NULL);
}
