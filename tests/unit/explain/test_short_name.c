/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels as people know them, and rows of a table that can be told apart. */
#include "explain/demangle.h"
#include "explain/short_name.h"
#include "unit.h"

static struct rp_arena arena = RP_ARENA_INIT;

static void shortened(const char *name, const char *want)
{
    char out[256];

    assert_int_equal(rp_short_name(name, out, sizeof out), strlen(want));
    assert_string_equal(out, want);
}

static void templates_and_scopes_are_folded(void **state)
{
    UNUSED_STATE(state);
    shortened("void (anonymous namespace)::softmax_warp_forward<float, float>(float*, int)",
              "softmax_warp_forward");
    shortened("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
              "ncclDevKernel_AllReduce_Sum_f16_RING_LL");
    shortened("transformer_engine::populate_rng_state_kernel(long*, long const*, long) [clone .kd]",
              "populate_rng_state_kernel");
    shortened("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float, 7>(int)",
              "gemvx::kernel");
}

static void functors_say_what_a_kernel_does(void **state)
{
    UNUSED_STATE(state);
    shortened("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
              "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>)",
              "vectorized_elementwise_kernel<fill>");
    shortened("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>"
              ", at::detail::Array<char*, 3> >(int)",
              "vectorized_elementwise_kernel<add>");
    shortened("void at::native::vectorized_elementwise_kernel<4, "
              "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)::{lambda()#2}::operator()() "
              "const::{lambda(float)#1}, std::array<char*, 2ul> >(int)",
              "vectorized_elementwise_kernel<gelu>");
    shortened("void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
              "at::native::BinaryFunctor<float, float, float, "
              "at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&)"
              "::{lambda(int)#1}>(int)",
              "elementwise_kernel<mul>");
    shortened("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
              "at::native::MeanOps<float, float>, unsigned int, float, 4> >(int)",
              "reduce_kernel<mean>");
    shortened("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, int> >(int)",
              "reduce_kernel<ReduceOp>");
}

static void kernels_inside_others_are_named(void **state)
{
    UNUSED_STATE(state);
    shortened("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32>(cutlass_80_simt::Params)",
              "cutlass_80_simt_sgemm_128x32");
    shortened("void ck_tile::kentry<ck_tile::gfx950_t, 2, ck_tile::FmhaFwdKernel<ck_tile::Block<"
              "float> > >(int)",
              "FmhaFwdKernel");
    shortened("void rocprim::detail::trampoline_kernel<rocprim::default_config, "
              "rocprim::detail::scan_config_selector<bool>, rocprim::detail::scan_impl<true> >()",
              "scan_impl");
}

static void mangled_names_are_read(void **state)
{
    char out[200];

    UNUSED_STATE(state);
    assert_true(rp_demangle("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELb1EEEvPT0_PT_Pf",
                            out, sizeof out));
    assert_string_equal(out, "aiter::add_rmsnorm_quant_kernel<bf16, bf16, 256, 1>");
    assert_false(rp_demangle("_Zebra", out, sizeof out));
    assert_false(rp_demangle("zebra", out, sizeof out));
    shortened("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELb1EEEvPT0_PT_Pf",
              "add_rmsnorm_quant_kernel");
    /* cut by the profiler, in the middle of an argument */
    shortened("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOneP",
              "Rmsnorm2dFwd");
    shortened("_ZN2ck6device12_GLOBAL__N_114kernel_grouped", "kernel_grouped");
    shortened("_Z9my_kernelPfS_i", "my_kernel");
    shortened("_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_"
              "EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i",
              "act_and_mul_kernel");
}

/* Each code of mangled names, with what c++filt says in short words. */
static void codes_of_mangled_names(void **state)
{
    static const struct {
        const char *name, *plain;
    } rows[] = {
        {"_Z5abc", "abc("},
        {"_Z9f", "f("}, /* cut */
        {"_ZN3foo3barIiE3bazEv", "foo::bar<int>::baz("},
        {"_ZN2at6nativeL9my_kernelEi", "at::native::my_kernel("},
        {"_ZN2at12_GLOBAL__N_13funEv", "at::fun("},
        {"_Z1fI3FooIiES1_EvT_", "f<Foo<int>>"},
        {"_Z1fIJifEEvv", "f<int, float>"},
        {"_Z1fIKPfEvv", "f<float>"},
        {"_Z1fISt6vectorIiEEvv", "f<vector<int>>"},
        {"_Z1fIXadL_Z1gvEEEvv", "f<g>"},
        {"_Z1fITnPFT_RKS3_Ei", "f<int("},
        {"_Z1fIDF16_DF16bEvv", "f<f16, bf16>"},
        {"_Z1fIDpiEvv", "f<int>"},
        /* literals: the type of a number is left out, whatever it is */
        {"_Z1fILi256ELb1EEvv", "f<256, 1>"},
        {"_Z1fILin3EfEvv", "f<3, float>"},
        {"_Z1fIL4Kind2ELi5EEvv", "f<Kind, 2, 5>"},
        {"_Z1fILN3foo3barE5EEvv", "f<foo::bar, 5>"},
        {"_Z1fILS_12ELb0EEvv", "f<12, 0>"},
        {"_Z1fIfdiljmhtsbcaxyvwE", "f<float, double, int, long, uint, ulong, uchar, ushort, short, "
                                   "bool, char, schar, llong, ullong, void, wchar>"},
    };
    char out[200];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_true(rp_demangle(rows[i].name, out, sizeof out));
        assert_string_equal(out, rows[i].plain);
    }
    assert_true(rp_demangle("_Z9my_kernelPf", out, 6));
    assert_string_equal(out, "my_ke");
    assert_false(rp_demangle("_Z1f", out, sizeof "_Z" - 1));
}

static void libraries_show_their_tile(void **state)
{
    UNUSED_STATE(state);
    shortened("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1_AFC1",
              "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1");
    shortened("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_"
              "execute_segment_k_off_kernel__5x_cublas",
              "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64");
    shortened("loop_reduce_fusion_1.kd", "loop_reduce_fusion_1");
}

static void other_names_stay(void **state)
{
    UNUSED_STATE(state);
    shortened("aten::mm", "aten::mm");
    shortened("triton_poi_fused_add_0d1d2", "triton_poi_fused_add_0d1d2");
    shortened("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)");
    shortened("torch/nn/modules/module.py(1501): _call_impl",
              "torch/nn/modules/module.py(1501): _call_impl");
    shortened("execute_3_context_1(30)_generation_2(2)", "execute_3_context_1(30)_generation_2(2)");
    shortened("step[DECODE bs=32]", "step[DECODE bs=32]");
    shortened("", "");
    shortened("(odd", "(odd");
    shortened("a<b", "a");
}

static void long_names_are_cut(void **state)
{
    char out[24];

    UNUSED_STATE(state);
    assert_int_equal(rp_short_name("abcdefg", out, 5), 4);
    assert_string_equal(out, "abcd");
    rp_short_name("abcdefghijklmnopqrstuvwxyz0123456789", out, sizeof out);
    assert_string_equal(out, "abcdefghij…0123456789");
    rp_cut_name("forward(batch 3)", out, sizeof out);
    assert_string_equal(out, "forward(batch 3)");
}

static void rows_of_a_table_differ(void **state)
{
    const char *names[] = {
        "void f<4, at::native::CUDAFunctor_add<float>, 1>(int)",
        "void f<4, at::native::CUDAFunctor_add<c10::BFloat16>, 1>(int)",
        "void f<4, at::native::CUDAFunctor_mul<float>, 1>(int)",
        NULL,
        "void g<float>(int)",
        "void g<double>(int)",
        "void g<double>(int)",
        "void h(int)",
        "void h(int )",
        "Cijk_A_MT16x16x8_MI4x4_SN_LDSB0_K1",
        "Cijk_A_MT16x16x8_MI4x4_SN_LDSB1_K1",
    };
    const char *const want[] = {"f<add, f32>",
                                "f<add, bf16>",
                                "f<mul>",
                                NULL,
                                "g<f32>",
                                "g<f64>",
                                "g<f64>",
                                "h<#2>",
                                "h<#1>",
                                "Cijk_A_MT16x16x8_MI4x4_…LDSB0",
                                "Cijk_A_MT16x16x8_MI4x4_…LDSB1"};
    const char *labels[sizeof names / sizeof names[0]];
    size_t i, n = sizeof names / sizeof names[0];

    UNUSED_STATE(state);
    rp_short_names(names, labels, n, &arena);
    for (i = 0; i < n; i++) {
        if (want[i])
            assert_string_equal(labels[i], want[i]);
        else
            assert_null(labels[i]);
    }
    rp_short_names(NULL, NULL, 0, &arena);
    rp_arena_release(&arena);
}

int test_short_name(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_and_scopes_are_folded),
        cmocka_unit_test(functors_say_what_a_kernel_does),
        cmocka_unit_test(kernels_inside_others_are_named),
        cmocka_unit_test(mangled_names_are_read),
        cmocka_unit_test(codes_of_mangled_names),
        cmocka_unit_test(libraries_show_their_tile),
        cmocka_unit_test(other_names_stay),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(rows_of_a_table_differ),
    };

    return cmocka_run_group_tests_name("short_name", tests, NULL, NULL);
}
