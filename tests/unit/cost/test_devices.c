/* SPDX-License-Identifier: Apache-2.0 */
/* The table of devices, and what drivers call them. */
#include "unit.h"

#include "cost/devices.h"

static void names_of_drivers_are_recognised(void **state)
{
    static const struct {
        const char *text, *name;
        int64_t memory;
    } cases[] = {{"NVIDIA H100 80GB HBM3", "H100", 0},
                 {"NVIDIA H100 PCIe", "H100-PCIe", 0},
                 {"NVIDIA H100 NVL", "H100-NVL", 0},
                 {"NVIDIA H200", "H200", 0},
                 {"NVIDIA GH200 480GB", "GH200", 0},
                 {"NVIDIA B200", "B200", 0},
                 {"NVIDIA GB200", "GB200", 0},
                 {"NVIDIA GB10", "GB10", 0},
                 {"NVIDIA A100-SXM4-80GB", "A100-80GB", 0},
                 {"NVIDIA A100-SXM4-40GB", "A100-40GB", 0},
                 {"NVIDIA A100 80GB PCIe", "A100-PCIe", 0},
                 {"NVIDIA A100", "A100", 0},
                 {"NVIDIA A100", "A100-40GB", 42505273344},
                 {"Tesla V100-SXM2-32GB", "V100", 0},
                 {"Tesla V100-DGXS-32GB", "V100", 0},
                 {"Tesla V100-PCIE-16GB", "V100-PCIe", 0},
                 {"Tesla T4", "T4", 0},
                 {"NVIDIA A10G", "A10", 0},
                 {"NVIDIA L4", "L4", 0},
                 {"NVIDIA L40S", "L40S", 0},
                 {"NVIDIA GeForce RTX 4090", "RTX 4090", 0},
                 {"NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti", 0},
                 {"AMD Instinct MI300X", "MI300X", 0},
                 {"AMD Instinct MI300X VF", "MI300X", 0},
                 {"AMD Instinct MI250X/MI250", "MI250X", 0},
                 {"AMD Instinct MI250", "MI250", 0},
                 {"AMD Instinct MI250 or MI210 (by its size)", "MI250", 0},
                 {"AMD Instinct MI350X", "MI350X", 0},
                 {"TPU v5 lite", "TPU v5e", 0},
                 {"TPU v5p chip", "TPU v5p", 0},
                 {"AMD Radeon Graphics", NULL, 0},
                 {"Planted GPU", NULL, 0},
                 {NULL, NULL, 0}};
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rp_device_peaks *d = rp_device_recognise(cases[i].text, cases[i].memory);

        if (!cases[i].name)
            assert_null(d);
        else if (!d || strcmp(d->name, cases[i].name) != 0)
            fail_msg("'%s' is %s, not %s", cases[i].text, d ? d->name : "unknown", cases[i].name);
    }
}

static void peaks_are_of_the_format(void **state)
{
    const struct rp_device_peaks *h = rp_device_by_name("h200"), *v = rp_device_by_name("V100"),
                                 *m = rp_device_by_name("MI300X");

    UNUSED_STATE(state);
    assert_true(rp_device_matrix_peak(h, RP_NUMBER_BF16) == 989e12);
    assert_true(rp_device_matrix_peak(h, RP_NUMBER_FP8) == 1979e12);
    assert_true(rp_device_matrix_peak(h, RP_NUMBER_TF32) == 495e12);
    assert_true(rp_device_matrix_peak(h, RP_NUMBER_FP32) == 67e12);
    assert_true(rp_device_vector_peak(h, RP_NUMBER_BF16) == 67e12);
    assert_true(rp_device_vector_peak(h, RP_NUMBER_FP64) == 34e12);
    /* without bf16: fp16; without fp8: 16 bits; without tf32: vectors */
    assert_true(rp_device_matrix_peak(v, RP_NUMBER_BF16) == 125e12);
    assert_true(rp_device_matrix_peak(v, RP_NUMBER_TF32) == 15.7e12);
    assert_true(rp_device_matrix_peak(m, RP_NUMBER_FP32) == 163.4e12);
    assert_null(rp_device_by_name("Voodoo"));
}

static void rows_are_plausible(void **state)
{
    size_t i, n;
    const struct rp_device_peaks *d = rp_devices(&n);

    UNUSED_STATE(state);
    assert_true(n > 30);
    for (i = 0; i < n; i++) {
        const struct rp_device_peaks *found = rp_device_by_name(d[i].name);

        assert_ptr_equal(found, &d[i]);
        assert_true(d[i].memory >= 100e9 && d[i].memory <= 10e12);
        assert_true(rp_device_matrix_peak(&d[i], RP_NUMBER_BF16) > 10e12);
        assert_true(d[i].reach > 0 && d[i].units > 0 && strlen(d[i].source) > 5);
    }
}

int test_devices(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_drivers_are_recognised),
        cmocka_unit_test(peaks_are_of_the_format),
        cmocka_unit_test(rows_are_plausible),
    };

    return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
