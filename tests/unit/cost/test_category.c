/* SPDX-License-Identifier: Apache-2.0 */
/* Categories of device work by the names of operators and kernels. */
#include "unit.h"

#include "cost/category.h"

static void names_have_categories(void **state)
{
    static const struct {
        const char *op, *kernel, *category;
    } cases[] = {
        {"aten::mm", "sm90_xmma_gemm_bf16", "matmul"},
        {"aten::addmm", "splitKreduce_kernel", "matmul"},
        {"aten::_scaled_mm", NULL, "matmul"},
        {"aten::_grouped_mm", NULL, "matmul"},
        {"vllm::rocm_unquantized_gemm", "Cijk_Ailk_Bljk_BBS", "matmul"},
        {"aiter::gemm_a16w16", NULL, "matmul"},
        {"vllm::moe_forward", "fused_moe_kernel", "matmul"},
        {"aiter::fmoe_g1u1", NULL, "matmul"},
        {NULL, "nvjet_tst_128x256_64x4", "matmul"},
        {"_C::topk_softmax", NULL, "reduction"},
        {"_moe_C::moe_align_block_size", "moe_align_block_size_kernel", "other"},
        {"aten::_scaled_dot_product_flash_attention", NULL, "attention"},
        {"aten::_scaled_dot_product_efficient_attention_backward", NULL, "attention"},
        {"flash_attn::_flash_attn_varlen_forward", NULL, "attention"},
        {"vllm::unified_attention_with_output", "triton_unified", "attention"},
        {"vllm::unified_kv_cache_update", NULL, "copy"},
        {"_C_cache_ops::reshape_and_cache_flash", NULL, "copy"},
        {"_C_cache_ops::concat_and_cache_mla", NULL, "copy"},
        {"aiter::mha_batch_prefill", NULL, "attention"},
        {NULL, "flash_fwd_kernel", "attention"},
        {"aten::cudnn_convolution", "nchwToNhwcKernel", "layout"},
        {"aten::convolution_backward", "dgrad", "convolution"},
        {"aten::miopen_convolution", NULL, "convolution"},
        {"aten::native_layer_norm_backward", NULL, "normalization"},
        {"aten::cudnn_batch_norm", NULL, "normalization"},
        {"_C::fused_add_rms_norm", NULL, "normalization"},
        {"aten::normal_", "distribution_elementwise", "elementwise"},
        {"aten::linalg_vector_norm", NULL, "reduction"},
        {"aten::mul", NULL, "elementwise"},
        {"aten::add_", "vectorized_elementwise_kernel", "elementwise"},
        {"aten::native_dropout", NULL, "elementwise"},
        {"sgl_kernel::rotary_embedding", NULL, "elementwise"},
        {"_C::silu_and_mul", NULL, "elementwise"},
        {"aten::gelu_backward", NULL, "elementwise"},
        {"aten::_softmax", NULL, "reduction"},
        {"aten::sum", "reduce_kernel", "reduction"},
        {"aten::topk", NULL, "reduction"},
        {"aten::embedding", NULL, "embedding"},
        {"aten::embedding_dense_backward", NULL, "embedding"},
        {"aten::index_select", NULL, "embedding"},
        {"aten::copy_", "vectorized_elementwise_kernel", "copy"},
        {"aten::cat", "CatArrayBatchedCopy", "copy"},
        {"aten::mm", "Memset (Device)", "copy"},
        {NULL, "Memcpy HtoD (Pageable -> Device)", "copy"},
        {"aten::fill_", "FillFunctor", "copy"},
        {"c10d::allreduce_", "ncclDevKernel_AllReduce", "communication"},
        {"aten::add", "multimem_all_reduce_kernel", "communication"},
        {"nccl:all_gather", "anything", "communication"},
        {"aten::_foreach_add_", "multi_tensor_apply_kernel", "optimizer"},
        {"aten::_fused_adamw_", NULL, "optimizer"},
        {NULL, "triton_poi_fused_addmm_gelu_view_17", "elementwise"},
        {"triton_red_fused_add_addmm_mul_native_layer_norm_6", NULL, "normalization"},
        {"triton_per_fused__to_copy_add_addmm_mean_mul_pow_rsqrt_8", NULL, "normalization"},
        {NULL, "triton_tem_fused_mm_3", "matmul"},
        {NULL, "loop_add_fusion", "elementwise"},
        {NULL, "input_reduce_fusion_2", "reduction"},
        {"Torch-Compiled Region: 0/0", "triton_red_fused_sum_1", "reduction"},
        /* a conversion is no convolution */
        {NULL, "EigenMetaKernel<TensorAssignOp<TensorConversionOp<half, float>>>", "copy"},
        {NULL, "cast_conversion_kernel", "elementwise"},
        {"Cast", "EigenMetaKernel<TensorConversionOp>", "copy"},
        {"GreaterEqual", "EigenMetaKernel<TensorCwiseUnaryOp>", "elementwise"},
        {NULL, "void Eigen::internal::EigenMetaKernel<TensorReductionOp>", "reduction"},
        {"RandomUniform", "FillPhiloxRandomKernelLaunch", "elementwise"},
        {"Conv2DBackpropFilter", "ampere_sgemm_128x64_nn", "convolution"},
        {"FusedBatchNormGradV3", NULL, "normalization"},
        {"ResourceApplyAdam", "ApplyAdamKernel", "optimizer"},
        {"SparseSoftmaxCrossEntropyWithLogits", NULL, "reduction"},
        {"BatchMatMulV2", "volta_sgemm", "matmul"},
        {"cudnn-conv.1", "Cijk_Ailk_Bljk_BBS", "convolution"},
        {NULL, "Im3d2Col.kd", "convolution"},
        {NULL, "wrapped_broadcast.kd", "copy"},
        {NULL, "wrapped_add.2", "elementwise"},
        {NULL, "dot.3", "matmul"},
        {NULL, "void mul_mat_vec_q<(ggml_type)13, 1, false, false>", "matmul"},
        {NULL, "void k_get_rows_float<float, float>", "embedding"},
        {NULL, "void flash_attn_ext_f16<128>", "attention"},
        {NULL, "quantize_q8_1(float const*, void*)", "elementwise"},
        {NULL, "SubTensorOpWithScalar1d", "elementwise"},
        {"my::thing", "mystery", "other"},
        {NULL, NULL, "other"},
    };
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *got = rp_category_names[rp_category_of(NULL, cases[i].op, cases[i].kernel)];

        if (strcmp(got, cases[i].category) != 0)
            fail_msg("%s, %s: %s instead of %s", cases[i].op ? cases[i].op : "-",
                     cases[i].kernel ? cases[i].kernel : "-", got, cases[i].category);
    }
}

static void users_extend_the_table(void **state)
{
    struct rp_category_table table = {0};
    struct rp_err err = {0};

    UNUSED_STATE(state);
    assert_ok(rp_category_table_parse(&table, "f",
                                      "# ours\n\nattention  my::ring_*\n"
                                      "matmul\tmystery*Kernel\ncopy aten::add\n",
                                      &err),
              &err);
    assert_int_equal(table.rows.n, 3);
    assert_int_equal(rp_category_of(&table, "my::ring_step", "k"), RP_CATEGORY_ATTENTION);
    assert_int_equal(rp_category_of(&table, NULL, "Mystery_1_kernel"), RP_CATEGORY_MATMUL);
    assert_int_equal(rp_category_of(&table, "aten::add", "k"), RP_CATEGORY_COPY);
    assert_int_equal(rp_category_of(&table, "aten::mul", "k"), RP_CATEGORY_ELEMENTWISE);
    rp_category_table_release(&table);
}

static void pairs_hide_no_pattern_that_fits(void **state)
{
    static const struct {
        const char *pattern, *name;
        bool may_fit;
    } cases[] = {{"aten::mm", "ATEN::MM", true},
                 {"*CatArray*", "void at::catarrayBatched<2>", true},
                 {"*a*", "xay", true},
                 {"*", "", true},
                 {"a", "a", true},
                 {"aten::bmm", "aten::linear", false},
                 {"*store_kv*", "triton_poi", false}};
    struct rp_name_pairs pairs;
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rp_name_pairs_init(&pairs, cases[i].name);
        assert_int_equal(rp_name_pairs_may_fit(&pairs, cases[i].pattern), cases[i].may_fit);
    }
}

static void wrong_lines_are_named(void **state)
{
    static const char *const texts[] = {"copy a\nfast b\n", "copy a\nmatmul\n"};
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < 2; i++) {
        struct rp_category_table table = {0};
        struct rp_err err = {0};

        assert_code(rp_category_table_parse(&table, "f", texts[i], &err), RP_USAGE);
        assert_contains(err.text, "'f', line 2");
        rp_category_table_release(&table);
    }
}

static void patterns_fit_whole_names(void **state)
{
    UNUSED_STATE(state);
    assert_true(rp_name_fits("a*b*c", "aXbYbZc"));
    assert_false(rp_name_fits("a*b", "aXbY"));
    assert_true(rp_name_fits("*", ""));
    assert_false(rp_name_fits("", "x"));
    assert_true(rp_name_fits("**x", "yyX"));
    assert_false(rp_name_fits("abc*", "ab"));
    assert_true(rp_name_fits("*ab*ac", "xabaabac"));
    assert_false(rp_name_fits("*ab*ac", "xabaaba"));
}

int test_category(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_categories),           cmocka_unit_test(users_extend_the_table),
        cmocka_unit_test(pairs_hide_no_pattern_that_fits), cmocka_unit_test(wrong_lines_are_named),
        cmocka_unit_test(patterns_fit_whole_names),
    };

    return cmocka_run_group_tests_name("category", tests, NULL, NULL);
}
