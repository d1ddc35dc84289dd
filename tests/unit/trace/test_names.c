/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of names, by the names of real kernels and operators. */
#include "trace_fixtures.h"

static const char *class_text(enum rp_name_class name_class)
{
    static const char *const texts[] = {
#define NAME_CLASS_TEXT(name, text, doc) text,
        RP_NAME_CLASS_MAP(NAME_CLASS_TEXT)
#undef NAME_CLASS_TEXT
    };

    return texts[name_class];
}

static enum rp_name_class class_of(const char *name)
{
    const struct rp_name_pattern *table;
    struct rp_name_matcher matcher;
    size_t n;

    table = rp_name_patterns(&n);
    rp_name_matcher_init(&matcher, table, n);
    return rp_name_classify(&matcher, name, strlen(name));
}

static void test_real_names(void **state)
{
    static const struct {
        const char *name;
        enum rp_name_class want;
    } names[] = {
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", RP_NAME_COMM},
        {"void multimem_all_reduce_kernel<c10::BFloat16, 8>(...)", RP_NAME_COMM},
        {"void vllm::cross_device_reduce_1stage<__hip_bfloat16, 8>", RP_NAME_COMM},
        {"dpsk::ep::intranode::dispatch", RP_NAME_COMM},
        {"RCCL_something", RP_NAME_COMM},
        {"Memcpy HtoD (Pinned -> Device)", RP_NAME_MEMCPY},
        {"Memset (Device)", RP_NAME_MEMSET},
        {"void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>", RP_NAME_ATTENTION},
        {"fmha_cutlassF_f16_aligned_64x64_rf_sm80", RP_NAME_ATTENTION},
        {"aten::scaled_dot_product_attention", RP_NAME_ATTENTION},
        {"cudnn::winograd_nonfused::winogradForwardData4x4<float>", RP_NAME_CONV},
        {"implicit_convolve_sgemm", RP_NAME_CONV},
        {"aten::convolution_backward", RP_NAME_CONV},
        {"sm80_xmma_gemm_f16f16_f16f32_f32_tn_n", RP_NAME_GEMM},
        {"nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", RP_NAME_GEMM},
        {"Cijk_Alik_Bljk_HHS_BH_MT128x128x32", RP_NAME_GEMM},
        {"aten::mm", RP_NAME_GEMM},
        {"void at::native::(anonymous namespace)::cunn_SoftMaxForward<4>", RP_NAME_SOFTMAX},
        {"void at::native::vectorized_layer_norm_kernel<float, float>", RP_NAME_NORM},
        {"triton_per_fused_native_layer_norm_0", RP_NAME_NORM},
        {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<>", RP_NAME_OPTIMIZER},
        {"void at::native::indexSelectLargeIndex<float>", RP_NAME_EMBEDDING},
        {"void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel", RP_NAME_SORT},
        {"void at::native::(anonymous namespace)::fused_dropout_kernel_vec", RP_NAME_RNG},
        {"void at::native::reduce_kernel<512, 1>", RP_NAME_REDUCE},
        {"void at::native::vectorized_elementwise_kernel<4>", RP_NAME_ELEMENTWISE},
        {"convert_element_type", RP_NAME_ELEMENTWISE},
        {"cudaLaunchKernel", RP_NAME_NONE},
        {"", RP_NAME_NONE},
        {"n", RP_NAME_NONE},
    };
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (class_of(names[i].name) != names[i].want)
            fail_msg("'%s' is %s, not %s", names[i].name, class_text(class_of(names[i].name)),
                     class_text(names[i].want));
}

/* The quick search finds what looking for every part would. */
static void test_against_plain_search(void **state)
{
    static const char letters[] = "ncRlmEtsgopadu_:- fhv";
    const struct rp_name_pattern *table;
    struct random r = {6};
    size_t n, i, k;
    int round;

    UNUSED_STATE(state);
    table = rp_name_patterns(&n);
    for (round = 0; round < 20000; round++) {
        char name[64] = "";
        enum rp_name_class want = RP_NAME_NONE;

        for (i = 0; i < 12; i++)
            name[i] = letters[random_below(&r, sizeof letters - 1)];
        if (random_below(&r, 2))
            strcpy(name + 1 + random_below(&r, 12), table[random_below(&r, (uint32_t)n)].part);
        for (k = 0; k < n && want == RP_NAME_NONE; k++)
            if (strcasestr(name, table[k].part))
                want = (enum rp_name_class)table[k].name_class;
        assert_string_equal(class_text(class_of(name)), class_text(want));
    }
}

static void test_table_is_well_formed(void **state)
{
    const struct rp_name_pattern *table;
    size_t n, i, k;

    UNUSED_STATE(state);
    table = rp_name_patterns(&n);
    for (i = 0; i < n; i++) {
        assert_true(strlen(table[i].part) >= 3);
        assert_true(table[i].name_class > RP_NAME_NONE && table[i].name_class < RP_NAME_COUNT);
        for (k = 0; table[i].part[k]; k++)
            assert_false(table[i].part[k] >= 'A' && table[i].part[k] <= 'Z');
        for (k = 0; k < i; k++) /* a row behind one that it contains is never reached */
            if (strstr(table[i].part, table[k].part))
                fail_msg("'%s' hides '%s'", table[k].part, table[i].part);
    }
}

static void test_python_frames_have_no_class(void **state)
{
    static const struct row rows[] = {
        {'X', "python_function", "gemm.py(3): forward", 1, 1, 0, 5},
        {'X', "cpu_op", "aten::mm", 1, 1, 1, 2},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->str.name_class[t->ev.name[0]], RP_NAME_NONE);
    assert_int_equal(t->str.name_class[t->ev.name[1]], RP_NAME_GEMM);
    rp_trace_free(t);
}

int test_names(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_names),
        cmocka_unit_test(test_against_plain_search),
        cmocka_unit_test(test_table_is_well_formed),
        cmocka_unit_test(test_python_frames_have_no_class),
    };

    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
