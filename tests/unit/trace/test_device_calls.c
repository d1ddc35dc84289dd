/* SPDX-License-Identifier: Apache-2.0 */
/* The table of calls: each row is there for a call, and none is there twice. */
#include "trace/device_calls.h"
#include "unit.h"

static void each_row_fits_its_example(void **state)
{
    size_t n, i, k;
    const struct rp_device_call_row *rows = rp_device_call_rows(&n);

    UNUSED_STATE(state);
    for (i = 0; i < n; i++) {
        if (!rp_is_named(rows[i].example, rows[i].how, rows[i].text))
            fail_msg("'%s' is not for '%s'", rows[i].text, rows[i].example);
        assert_int_equal(rp_device_call_does(rows[i].example) & rows[i].does, rows[i].does);
        for (k = 0; k < i; k++)
            if (rows[k].how == rows[i].how && !strcmp(rows[k].text, rows[i].text))
                fail_msg("'%s' is there twice", rows[i].text);
    }
}

static void what_calls_do(void **state)
{
    static const struct {
        const char *name;
        unsigned does;
    } calls[] = {
        {"cudaLaunchKernelExC", RP_DOES_LAUNCH},
        {"hipGraphLaunch", RP_DOES_LAUNCH | RP_DOES_LAUNCH_GRAPH},
        {"cuMemcpyHtoDAsync_v2", RP_DOES_COPY},
        {"cudaMemcpy", RP_DOES_COPY | RP_DOES_BLOCK},
        {"hipMemcpyWithStream", RP_DOES_COPY | RP_DOES_BLOCK},
        {"hipMemcpyAsync", RP_DOES_COPY},
        {"hipMemsetAsync", RP_DOES_SET},
        {"cudaStreamBeginCapture_v10000", RP_DOES_BEGIN_CAPTURE},
        {"hipStreamEndCapture", RP_DOES_END_CAPTURE},
        {"cuStreamWaitEvent", RP_DOES_STREAM_WAIT},
        {"hipDeviceSynchronize", RP_DOES_AWAIT_DEVICE},
        {"hipCtxSynchronize", RP_DOES_AWAIT_DEVICE},
        {"cudaStreamSynchronize", 0},
        {"clFinish", RP_DOES_BLOCK},
        {"clFlush", 0},
        {"cudaGetDevice", 0},
        {"", 0},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (rp_device_call_does(calls[i].name) != calls[i].does)
            fail_msg("'%s' does %x, not %x", calls[i].name, rp_device_call_does(calls[i].name),
                     calls[i].does);
}

int test_device_calls(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_row_fits_its_example),
                                       cmocka_unit_test(what_calls_do)};

    return cmocka_run_group_tests_name("device calls", tests, NULL, NULL);
}
