/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as StableHLO: what is written is read as the same program, the rest is refused. */
#include "formats/formats.h"
#include "formats/programs.h"
#include "unit.h"

#include <stdlib.h>

/* The text of a program of any format; the caller frees it. */
static enum rp_code write_text(const char *program, char **text, struct rp_err *err)
{
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_input *in;
    struct rp_out *out;
    enum rp_code code;
    const char *made;
    size_t n;

    *text = NULL;
    assert_ok(rp_input_open_memory("memory", program, strlen(program), NULL, &in, err), err);
    assert_ok(rp_format_read(in, NULL, &import, err), err);
    assert_ok(rp_out_open_memory(&out, err), err);
    code = rp_stablehlo_print(import.program, out, err);
    assert_ok(rp_out_flush(out, err), err);
    made = rp_out_borrow_memory(out, &n);
    if (code == RP_OK)
        assert_non_null(*text = strndup(made, n));
    rp_out_abandon(out);
    rp_import_release(&import);
    return code;
}

#define ENTRY(body) "HloModule m\n" body
#define SUM                                                                          \
    "%sum (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n  %y = f32[] " \
    "parameter(1)\n  ROOT %s = f32[] add(%x, %y)\n}\n"

static void writes_operations(void **state)
{
    static const struct {
        const char *program, *want[4];
    } cases[] = {
        {ENTRY("ENTRY e {\n  a = f32[4,8] parameter(0)\n  i = s32[2,1] parameter(1)\n"
               "  ROOT g = f32[2,8] gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, "
               "start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}\n}\n"),
         {"#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
          "index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>, indices_are_sorted = false}> : "
          "(tensor<4x8xf32>, tensor<2x1xi32>) -> tensor<2x8xf32>"}},
        {ENTRY(SUM "ENTRY e {\n  a = f32[4,8] parameter(0)\n  i = s32[2,1] parameter(1)\n  u = "
                   "f32[2,8] parameter(2)\n  ROOT g = f32[4,8] scatter(a, i, u), "
                   "update_window_dims={1}, inserted_window_dims={0}, "
                   "scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, "
                   "to_apply=%sum\n}\n"),
         {"#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
          "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>",
          "unique_indices = true}> ({\n"}},
        {ENTRY("ENTRY e {\n  a = f32[1,8,8,3] parameter(0)\n  k = f32[3,3,3,4] parameter(1)\n"
               "  ROOT c = f32[1,4,8,4] convolution(a, k), window={size=3x3 stride=2x1 "
               "pad=1_1x1_1 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f, "
               "operand_precision={highest,default}\n}\n"),
         {"#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>",
          "window_strides = array<i64: 2, 1>",
          "padding = dense<[[1, 1], [1, 1]]> : tensor<2x2xi64>, window_reversal = array<i1: true, "
          "false>",
          "[#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]"}},
        {ENTRY("ENTRY e {\n  a = f32[4,8] parameter(0)\n  b = f8e4m3fn[4,4] parameter(1)\n  c = "
               "f32[8,8] dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}, "
               "algorithm=dot_tf32_tf32_f32_x3\n  d = f32[4,4] dot(b, b), "
               "lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
               "algorithm=dot_any_f8_any_f8_f32_fast_accum\n  ROOT t = (f32[8,8], f32[4,4]) "
               "tuple(c, d)\n}\n"),
         {"algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = "
          "tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
          "num_primitive_operations = 3, allow_imprecise_accumulation = false>",
          "algorithm = #stablehlo.dot_algorithm<lhs_precision_type = f8E4M3FN, rhs_precision_type = "
          "f8E4M3FN, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
          "num_primitive_operations = 1, allow_imprecise_accumulation = true>"}},
        {ENTRY("ENTRY e {\n  a = f32[4,8] parameter(0)\n  z = f32[] constant(-0)\n"
               "  p = f32[5,9] pad(a, z), padding=1_0x0_-1_0x0_0\n"
               "  s = f32[2,3] slice(a), slice={[0:4:2], [1:4]}\n"
               "  ROOT t = (f32[2,3]) tuple(s)\n}\n"),
         {"dense<-0.0> : tensor<f32>",
          "start_indices = array<i64: 0, 1>, limit_indices = array<i64: 4, 4>, strides = "
          "array<i64: 2, 1>"}},
        {ENTRY("ENTRY e {\n  c = c64[2] constant({(1, -2), (nan, inf)})\n  b = pred[3] "
               "constant({true, false, true})\n  f = f8e4m3fn[2] constant({1, 2})\n  n = "
               "f32[0] constant({})\n  s = s4[2] constant({-3, 7})\n  ROOT t = (c64[2], pred[3], "
               "f8e4m3fn[2], f32[0], s4[2]) tuple(c, b, f, n, s)\n}\n"),
         {"dense<[(1.0, -2.0), (0x7FC00000, 0x7F800000)]> : tensor<2xcomplex<f32>>",
          "dense<[true, false, true]> : tensor<3xi1>", "dense<[0x38, 0x40]> : tensor<2xf8E4M3FN>",
          "dense<> : tensor<0xf32>"}},
        {ENTRY(SUM "ENTRY e {\n  a = f32[4] parameter(0)\n  r = f32[4] all-reduce-start(a), "
                   "replica_groups=[2,2]<=[2,2]T(1,0), channel_id=3, use_global_device_ids=true, "
                   "to_apply=%sum\n  d = f32[4] all-reduce-done(r)\n  ROOT p = f32[4] "
                   "collective-permute(d), source_target_pairs={{0,1},{1,0}}\n}\n"),
         {"dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>",
          "#stablehlo.channel_handle<handle = 3, type = 1>, use_global_device_ids}> ({",
          "source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"}},
        {ENTRY("ENTRY e {\n  a = f32[2,3]{0,1} parameter(0)\n  ROOT c = (f32[3,2]{0,1}, s32[]) "
               "custom-call(a), custom_call_target=\"a\\\"}> x\", "
               "api_version=API_VERSION_TYPED_FFI, backend_config={k = \"}\"}\n}\n"),
         {"call_target_name = \"a\\22}> x\"", "api_version = 4 : i32, backend_config = {k = \"}\"}",
          "operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : "
          "tensor<2xindex>, dense<> : tensor<0xindex>]"}},
        {ENTRY(
             "ENTRY e {\n  a = f32[2,9]{1,0} parameter(0)\n  b = f32[2,9]{0,1} parameter(1)\n  c = "
             "(f32[2,3]{1,0}, s32[2,3]{1,0}) custom-call(a), custom_call_target=\"TopK\"\n  ROOT d "
             "= (f32[2,3]{0,1}, s32[2,3]{0,1}) custom-call(b), custom_call_target=\"TopK\"\n}\n"),
         {"\"chlo.top_k\"(%0) <{k = 3 : i64}> : (tensor<2x9xf32>) -> (tensor<2x3xf32>, "
          "tensor<2x3xi32>)",
          "call_target_name = \"TopK\""}},
        {ENTRY("ENTRY e {\n  a = u32[2,3]{0,1} parameter(0)\n  ROOT b = f32[6]{0} bitcast(a)\n}\n"),
         {"(%0) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xui32>) -> tensor<3x2xui32>",
          "\"stablehlo.reshape\"(%1) : (tensor<3x2xui32>) -> tensor<6xui32>",
          "\"stablehlo.bitcast_convert\"(%2) : (tensor<6xui32>) -> tensor<6xf32>"}},
        {ENTRY("main {\n  ROOT q = f32[] parameter(0)\n}\nENTRY e {\n  a = f32[] parameter(0)\n  "
               "ROOT b = f32[] call(a), to_apply=main\n}\n"),
         {"callee = @\"function_0\"", "sym_name = \"function_0\", sym_visibility = \"private\"",
          "sym_name = \"main\", sym_visibility = \"public\""}},
        {ENTRY("ENTRY e {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[4,2] "
               "rng(a, b), distribution=rng_uniform\n}\n"),
         {"dense<[4, 2]> : tensor<2xi64>", "(%0, %1, %2) <{rng_distribution = "
                                           "#stablehlo<rng_distribution UNIFORM>}>"}},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rp_err err = RP_ERR_INIT;
        char *text, *again;

        assert_ok(write_text(cases[i].program, &text, &err), &err);
        for (size_t k = 0; k < 4 && cases[i].want[k]; k++)
            assert_contains(text, cases[i].want[k]);
        assert_ok(write_text(text, &again, &err), &err);
        assert_string_equal(text, again);
        free(text);
        free(again);
    }
}

static void refuses(void **state)
{
    static const char *const cases[][2] = {
        {ENTRY("ENTRY e {\n  a = f32[<=4] parameter(0)\n  ROOT b = f32[<=4] negate(a)\n}\n"),
         "parameter 'a' cannot be written as StableHLO"},
        {ENTRY("ENTRY e {\n  ROOT a = f32[100] constant({...})\n}\n"),
         "constant 'a' cannot be written as StableHLO: the file does not have its values"},
        {ENTRY("ENTRY e {\n  ROOT a = u64[2] rng-get-and-update-state(), delta=1\n}\n"),
         "rng-get-and-update-state 'a' cannot be written as StableHLO"},
        {ENTRY("ENTRY e {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] negate(a), odd={1}\n}\n"),
         "negate 'b' cannot be written as StableHLO: its attribute 'odd'"},
        {ENTRY("ENTRY e {\n  a = f32[4] parameter(0)\n  ROOT b = f32[] dot(a, a), "
               "lhs_contracting_dims={0}, rhs_contracting_dims={0}, algorithm=dot_of_later\n}\n"),
         "dot 'b' cannot be written as StableHLO: its attribute 'algorithm'"},
        {ENTRY("ENTRY e {\n  a = bf16[4] parameter(0)\n  ROOT b = f32[2] bitcast(a)\n}\n"),
         "bitcast 'b' cannot be written as StableHLO"},
        {ENTRY("ENTRY e {\n  a = f32[4] parameter(0)\n  ROOT c = f32[4] custom-call(a), "
               "custom_call_target=\"t\", api_version=API_VERSION_TYPED_FFI, "
               "backend_config=\"{}}> : () -> () {\"\n}\n"),
         "its attribute 'backend_config'"},
        {ENTRY("f {\n  ROOT q = f32[2] parameter(0)\n}\nENTRY e {\n  a = f32[3] parameter(0)\n  "
               "ROOT b = f32[3] call(a), to_apply=f\n}\n"),
         "call 'b' cannot be written as StableHLO: shapes that do not agree"},
        {ENTRY("ENTRY e {\n  a = f32[8]{0:T(256)} parameter(0)\n  ROOT b = f32[2,4]{1,0} "
               "bitcast(a)\n}\n"),
         "what it does to memory"},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rp_err err = RP_ERR_INIT;
        char *text;

        assert_code(write_text(cases[i][0], &text, &err), RP_UNSUPPORTED);
        assert_contains(err.text, cases[i][1]);
    }
}

/* Every fusion holds two of the next: what is written would double with each. */
static void limits_what_doubles(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    char program[8192], *text;
    size_t n = (size_t)snprintf(program, sizeof program,
                                "HloModule m\nf0 {\n  p = f32[] parameter(0)\n  ROOT a = f32[] "
                                "negate(p)\n}\n");

    UNUSED_STATE(state);
    for (int i = 1; i < 30; i++)
        n += (size_t)snprintf(program + n, sizeof program - n,
                              "f%d {\n  p = f32[] parameter(0)\n  a = f32[] fusion(p), kind=kLoop, "
                              "calls=f%d\n  ROOT b = f32[] fusion(a), kind=kLoop, calls=f%d\n}\n",
                              i, i - 1, i - 1);
    snprintf(program + n, sizeof program - n,
             "ENTRY e {\n  p = f32[] parameter(0)\n  ROOT b = f32[] fusion(p), kind=kLoop, "
             "calls=f29\n}\n");
    assert_code(write_text(program, &text, &err), RP_LIMIT);
    assert_contains(err.text, "as StableHLO");
}

int test_write_stablehlo(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_operations),
        cmocka_unit_test(refuses),
        cmocka_unit_test(limits_what_doubles),
    };

    return cmocka_run_group_tests_name("write_stablehlo", tests, NULL, NULL);
}
