/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels as people know them. */
#include "explain/short_name.h"
#include "unit.h"

static void shortened(const char *name, const char *want)
{
    char out[256];

    assert_int_equal(rp_short_name(name, out, sizeof out), strlen(want));
    assert_string_equal(out, want);
}

static void templates_and_scopes_are_folded(void **state)
{
    UNUSED_STATE(state);
    shortened("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
              "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>)",
              "vectorized_elementwise_kernel<FillFunctor>");
    shortened("void (anonymous namespace)::softmax_warp_forward<float, float>(float*, int)",
              "softmax_warp_forward");
    shortened("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
              "ncclDevKernel_AllReduce_Sum_f16_RING_LL");
    shortened("void cutlass::Kernel2<cutlass_80_simt_sgemm>(cutlass_80_simt_sgemm::Params)",
              "Kernel2");
}

static void other_names_stay(void **state)
{
    UNUSED_STATE(state);
    shortened("aten::mm", "aten::mm");
    shortened("triton_poi_fused_add_0d1d2", "triton_poi_fused_add_0d1d2");
    shortened("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)");
    shortened("torch/nn/modules/module.py(1501): _call_impl",
              "torch/nn/modules/module.py(1501): _call_impl");
    shortened("", "");
    shortened("(odd", "(odd");
    shortened("a<b", "a");
}

static void long_names_are_cut(void **state)
{
    char out[5];

    UNUSED_STATE(state);
    assert_int_equal(rp_short_name("abcdefg", out, sizeof out), 4);
    assert_string_equal(out, "abcd");
}

int test_short_name(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_and_scopes_are_folded),
        cmocka_unit_test(other_names_stay),
        cmocka_unit_test(long_names_are_cut),
    };

    return cmocka_run_group_tests_name("short_name", tests, NULL, NULL);
}
