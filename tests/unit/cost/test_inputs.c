/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator was called with, from the texts that PyTorch records. */
#include "unit.h"

#include "cost/devices.h"
#include "cost/inputs.h"

/* Numbers are those of c10::ScalarType, sizes those of Tensor.element_size(). */
static void types_have_their_size(void **state)
{
    static const struct {
        const char *name;
        int64_t code;
        enum rp_number number;
        int size;
    } rows[] = {{"unsigned char", 0, RP_NUMBER_INT8, 1},
                {"signed char", 1, RP_NUMBER_INT8, 1},
                {"short int", 2, RP_NUMBER_INT, 2},
                {"short", 2, RP_NUMBER_INT, 2},
                {"int", 3, RP_NUMBER_INT, 4},
                {"long int", 4, RP_NUMBER_INT, 8},
                {"long", 4, RP_NUMBER_INT, 8},
                {"c10::Half", 5, RP_NUMBER_FP16, 2},
                {"float", 6, RP_NUMBER_FP32, 4},
                {"double", 7, RP_NUMBER_FP64, 8},
                {"c10::complex<float>", 9, RP_NUMBER_FP32, 8},
                {"c10::complex<double>", 10, RP_NUMBER_FP64, 16},
                {"bool", 11, RP_NUMBER_INT, 1},
                {"c10::qint8", 12, RP_NUMBER_INT8, 1},
                {"c10::quint8", 13, RP_NUMBER_INT8, 1},
                {"c10::BFloat16", 15, RP_NUMBER_BF16, 2},
                {"c10::Float8_e5m2", 23, RP_NUMBER_FP8, 1},
                {"c10::Float8_e4m3fn", 24, RP_NUMBER_FP8, 1},
                {"c10::Float8_e5m2fnuz", 25, RP_NUMBER_FP8, 1},
                {"c10::Float8_e4m3fnuz", 26, RP_NUMBER_FP8, 1},
                {"unsigned short", 27, RP_NUMBER_INT, 2},
                {"unsigned int", 28, RP_NUMBER_INT, 4},
                {"unsigned long", 29, RP_NUMBER_INT, 8},
                {"c10::Float8_e8m0fnu", 44, RP_NUMBER_FP8, 1},
                {"c10::Float4_e2m1fn_x2", 45, RP_NUMBER_FP4, 1}};
    float size;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(rp_number_of_type(rows[i].name, strlen(rows[i].name), &size),
                         rows[i].number);
        assert_true(size == (float)rows[i].size);
        assert_int_equal(rp_number_of_code(rows[i].code, &size), rows[i].number);
        assert_true(size == (float)rows[i].size);
    }
    assert_int_equal(rp_number_of_type("Scalar", 6, &size), RP_NUMBER_NONE);
    assert_true(size == 0);
    assert_int_equal(rp_number_of_code(99, &size), RP_NUMBER_NONE);
    assert_true(size == 0);
}

/* Names of kernels of cuBLAS, CUTLASS, PyTorch and Triton. */
static void kernels_tell_their_type(void **state)
{
    static const struct {
        const char *name;
        enum rp_number number;
        int size;
    } rows[] = {
        {"sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n", RP_NUMBER_FP8, 1},
        {"cutlass::gemm_e5m2_f16", RP_NUMBER_FP8, 1},
        {"nvjet_fp8_tst_128x64", RP_NUMBER_FP8, 1},
        {"ampere_bf16_s16816gemm_bf16_128x64", RP_NUMBER_BF16, 2},
        {"vectorized_elementwise_kernel<4, CUDAFunctor_add<c10::BFloat16>>", RP_NUMBER_BF16, 2},
        {"ampere_fp16_s16816gemm_fp16_128x64", RP_NUMBER_FP16, 2},
        {"cutlass_80_tensorop_f16_s16816", RP_NUMBER_FP16, 2},
        {"reduce_kernel<512, 1, ReduceOp<c10::Half>>", RP_NUMBER_FP16, 2},
        {"void add<half>(half*)", RP_NUMBER_FP16, 2},
        {"volta_hgemm_128x64_nn", RP_NUMBER_FP16, 2},
        {"turing_h1688gemm_128x128", RP_NUMBER_FP16, 2},
        {"volta_s16816gemm_f", RP_NUMBER_FP16, 2},
        {"cutlass_80_tensorop_tf32gemm", RP_NUMBER_TF32, 4},
        {"cutlass_80_tensorop_s1688gemm_128x64", RP_NUMBER_TF32, 4},
        {"CatArrayBatchedCopy<OpaqueType<2u>, unsigned int, 2>", RP_NUMBER_NONE, 2},
        {"CatArrayBatchedCopy<OpaqueType<4u>, unsigned int, 2>", RP_NUMBER_NONE, 4},
        {"CatArrayBatchedCopy<OpaqueType<8u>, unsigned int, 2>", RP_NUMBER_NONE, 8},
        {"CatArrayBatchedCopy<OpaqueType<1u>, unsigned int, 2>", RP_NUMBER_NONE, 1},
        {"ampere_d884gemm_64x64_nn", RP_NUMBER_FP64, 8},
        {"cutlass_f64_gemm", RP_NUMBER_FP64, 8},
        {"ampere_sgemm_32x32_sliced1x4_tn", RP_NUMBER_FP32, 4},
        {"gemm_f32f32_128", RP_NUMBER_FP32, 4},
        {"softmax<float, double>", RP_NUMBER_FP32, 4},
        {"reduce<double>", RP_NUMBER_FP64, 8},
        {"memset", RP_NUMBER_NONE, 0}};
    float size;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rp_number_of_kernel(rows[i].name, &size) != rows[i].number ||
            size != (float)rows[i].size)
            fail_msg("'%s' is taken for another type", rows[i].name);
    assert_int_equal(rp_number_of_kernel(NULL, &size), RP_NUMBER_NONE);
    assert_true(size == 0);
}

static void parse(struct rp_inputs *in, const char *dims, const char *strides, const char *types,
                  const char *concrete)
{
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_inputs_parse(in, "aten::op", dims, strides, types, concrete, &err), &err);
}

/* An expanded dimension (stride 0) is stored once; a quoted text may hold anything. */
static void tensors_lists_and_values(void **state)
{
    struct rp_inputs in = {0};
    const struct rp_input_tensor *t;
    double ints[4];

    UNUSED_STATE(state);
    parse(&in, "[[4, 8], [3, 5], [[2, 3], [7]], [], []]", "[[8, 1], [0, 1], [[3, 1], [0]], [], []]",
          "[\"float\", \"c10::BFloat16\", \"TensorList\", \"Scalar\", \"\"]",
          "[\"\", \"\", \"\", \"-2\", \"a, [b\\\"]\"]");
    assert_int_equal(in.count, 5);
    assert_false(in.in_place);
    t = rp_inputs_tensor(&in, 0);
    assert_non_null(t);
    assert_true(t->ndims == 2 && t->n == 32 && t->stored == 32 && rp_input_bytes(t) == 128);
    assert_true(rp_input_last(t, 0) == 8 && rp_input_last(t, 1) == 4 && rp_input_last(t, 2) == 1);
    t = rp_inputs_tensor(&in, 1);
    assert_true(t && t->n == 15 && t->stored == 5 && rp_input_bytes(t) == 10);
    assert_null(rp_inputs_tensor(&in, 2));
    assert_true(in.at[2].is_list);
    assert_int_equal(in.at[2].count, 2);
    assert_true(in.parts.at[in.at[2].first].n == 6 && in.parts.at[in.at[2].first + 1].n == 7);
    assert_true(in.parts.at[in.at[2].first + 1].stored == 1);
    assert_null(rp_inputs_tensor(&in, 3));
    assert_true(rp_inputs_int(&in, 3, ints) && ints[0] == -2);
    assert_int_equal(rp_inputs_ints(&in, 3, ints, 4), 1);
    assert_false(rp_inputs_int(&in, 4, ints));
    assert_false(rp_inputs_int(&in, 5, ints));
    rp_inputs_release(&in);
}

/* The first 64 are kept. */
static void many_inputs_are_cut(void **state)
{
    struct rp_inputs in = {0};
    char dims[1024] = "[[7]";

    UNUSED_STATE(state);
    for (int i = 1; i < 70; i++)
        strcat(dims, ", [3]");
    strcat(dims, "]");
    parse(&in, dims, NULL, NULL, NULL);
    assert_int_equal(in.count, 64);
    assert_true(in.at[0].tensor.n == 7 && in.at[63].tensor.n == 3);
    rp_inputs_release(&in);
}

/* Of ten dimensions the last three are one. */
static void many_dimensions_are_folded(void **state)
{
    struct rp_inputs in = {0};
    const struct rp_input_tensor *t;

    UNUSED_STATE(state);
    parse(&in, "[[2, 1, 3, 1, 1, 1, 5, 2, 3, 7]]", NULL, "[\"float\"]", NULL);
    t = rp_inputs_tensor(&in, 0);
    assert_true(t && t->ndims == 8 && t->n == 1260);
    assert_true(t->dim[6] == 5 && t->dim[7] == 42);
    rp_inputs_release(&in);
}

static void values_are_numbers_flags_or_lists(void **state)
{
    struct rp_inputs in = {0};
    double ints[4];

    UNUSED_STATE(state);
    parse(&in, "[[],[],[],[],[]]", NULL, NULL,
          "[\"[1, -2, 3]\", \"[True, False]\", \"True\", \"False\", \" [5 , 6,7,8, 9]\"]");
    assert_int_equal(rp_inputs_ints(&in, 0, ints, 4), 3);
    assert_true(ints[0] == 1 && ints[1] == -2 && ints[2] == 3);
    assert_int_equal(rp_inputs_ints(&in, 1, ints, 4), 2);
    assert_true(ints[0] == 1 && ints[1] == 0);
    assert_true(rp_inputs_flag(&in, 2));
    assert_false(rp_inputs_flag(&in, 3));
    assert_true(rp_inputs_word(&in, 3, "false"));
    assert_int_equal(rp_inputs_ints(&in, 4, ints, 4), 4);
    assert_true(ints[0] == 5 && ints[1] == 6 && ints[3] == 8);
    rp_inputs_release(&in);
    parse(&in, "[[],[],[],[]]", NULL, NULL, "[\"[1, -]\", \"[1, 2e18]\", \"[1e18]\", \"7\"]");
    assert_int_equal(rp_inputs_ints(&in, 0, ints, 4), 0); /* not a number, or far too large */
    assert_int_equal(rp_inputs_ints(&in, 1, ints, 4), 0);
    assert_int_equal(rp_inputs_ints(&in, 2, ints, 4), 1);
    assert_int_equal(rp_inputs_ints(&in, 3, ints, 4), 1);
    assert_true(ints[0] == 7);
    rp_inputs_release(&in);
}

/* Two numbers of four bits are one element of PyTorch's type. */
static void four_bits_are_two_in_a_byte(void **state)
{
    struct rp_inputs in = {0};
    const struct rp_input_tensor *t;

    UNUSED_STATE(state);
    parse(&in, "[[4, 8]]", NULL, "[\"c10::Float4_e2m1fn_x2\"]", NULL);
    t = rp_inputs_tensor(&in, 0);
    assert_true(t && t->n == 64 && rp_input_last(t, 0) == 16 && rp_input_bytes(t) == 32);
    rp_inputs_release(&in);
}

/* Two sequences of 3 and 7 new tokens among 5 and 9 in all: the new tokens of the first see 3, 4
   and 5 tokens, those of the second 3 to 9. Three more compute one token each and see 30. */
static void names_of_steps_tell_the_batch(void **state)
{
    static const struct {
        const char *name;
        double tokens, keys, pairs; /* tokens 0: it does not */
    } rows[] = {
        {"execute_context_2(sq10sk14sqsq58sqsk78)_generation_0(sq0sk0sqsq0sqsk0)", 10, 14, 54},
        {"execute_context_0(sq0sk0sqsq0sqsk0)_generation_3(sq3sk30sqsq3sqsk30)", 3, 30, 30},
        {"execute_context_2(sq10sk14sqsq58sqsk78)_generation_3(sq3sk30sqsq3sqsk30)", 13, 44, 84},
        {"execute_context_2(sq10sk14sqsk78)", 0, 0, 0},
        {"execute_context_2(sqxsk14sqsq58sqsk78)", 0, 0, 0},
        {"step[EXTEND c_sq=10 c_sk=14 c_sqsq=58 c_sqsk=78]", 10, 14, 54},
        {"step[EXTEND bs=2 toks=10 c_sk=14 c_sqsq=58 c_sqsk=78]", 10, 14, 54},
        {"step[DECODE bs=3 g_sk=30 g_sqsq=3 g_sqsk=30]", 3, 30, 30},
        {"step[EXTEND toks=10 c_sk=14 c_sqsk=78]", 0, 0, 0},
        {"step[EXTEND toks=10 c_sk=x c_sqsq=58 c_sqsk=78]", 0, 0, 0}, /* not a number */
        {"step[EXTEND toks=10 c_sk=x c_sk=14 c_sqsq=58 c_sqsk=78]", 10, 14, 54},
        {"step[EXTEND toks=10 c_skx14 c_sqsq=58 c_sqsk=78]", 0, 0, 0},
        {"step[DECODE g_sk=30 g_sqsq=3 g_sqsk=30]", 0, 0, 0},
        {"step", 0, 0, 0},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_batch b = {0};

        if (rp_batch_parse(rows[i].name, &b) != (rows[i].tokens > 0))
            fail_msg("'%s' does%s tell", rows[i].name, rows[i].tokens > 0 ? " not" : "");
        if (rows[i].tokens > 0 &&
            (b.tokens != rows[i].tokens || b.keys != rows[i].keys || b.pairs != rows[i].pairs))
            fail_msg("'%s': %g, %g and %g", rows[i].name, b.tokens, b.keys, b.pairs);
    }
}

int test_inputs(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_have_their_size),
        cmocka_unit_test(kernels_tell_their_type),
        cmocka_unit_test(many_inputs_are_cut),
        cmocka_unit_test(many_dimensions_are_folded),
        cmocka_unit_test(tensors_lists_and_values),
        cmocka_unit_test(values_are_numbers_flags_or_lists),
        cmocka_unit_test(four_bits_are_two_in_a_byte),
        cmocka_unit_test(names_of_steps_tell_the_batch),
    };

    return cmocka_run_group_tests_name("inputs", tests, NULL, NULL);
}
