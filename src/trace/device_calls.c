/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/device_calls.h"

static const struct rp_device_call_row rows[] = {
    {RP_NAMED_HAS, "Launch", RP_DOES_LAUNCH, "cuLaunchKernel"},
    {RP_NAMED_HAS, "GraphLaunch", RP_DOES_LAUNCH_GRAPH, "cudaGraphLaunch"},
    {RP_NAMED_HAS, "Memcpy", RP_DOES_COPY, "hipMemcpyAsync"},
    {RP_NAMED_HAS, "memcpy", RP_DOES_COPY, "memcpyAsync"},
    {RP_NAMED_HAS, "Memset", RP_DOES_SET, "cudaMemsetAsync"},
    {RP_NAMED_HAS, "memset", RP_DOES_SET, "memsetAsync"},
    {RP_NAMED_HAS, "StreamBeginCapture", RP_DOES_BEGIN_CAPTURE, "cudaStreamBeginCapture"},
    {RP_NAMED_HAS, "StreamEndCapture", RP_DOES_END_CAPTURE, "cudaStreamEndCapture"},
    {RP_NAMED_HAS, "StreamWaitEvent", RP_DOES_STREAM_WAIT, "hipStreamWaitEvent"},
    {RP_NAMED_HAS, "DeviceSynchronize", RP_DOES_AWAIT_DEVICE, "cudaDeviceSynchronize"},
    {RP_NAMED_HAS, "CtxSynchronize", RP_DOES_AWAIT_DEVICE, "cuCtxSynchronize"},
    {RP_NAMED_IS, "cudaMemcpy", RP_DOES_BLOCK, "cudaMemcpy"},
    {RP_NAMED_IS, "hipMemcpy", RP_DOES_BLOCK, "hipMemcpy"},
    {RP_NAMED_IS, "hipMemcpyWithStream", RP_DOES_BLOCK, "hipMemcpyWithStream"},
    {RP_NAMED_IS, "clFinish", RP_DOES_BLOCK, "clFinish"},
    {RP_NAMED_IS, "clWaitForEvents", RP_DOES_BLOCK, "clWaitForEvents"},
};

const struct rp_device_call_row *rp_device_call_rows(size_t *n)
{
    *n = sizeof rows / sizeof rows[0];
    return rows;
}

uint16_t rp_device_call_does(const char *name)
{
    uint16_t does = 0;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rp_is_named(name, rows[i].how, rows[i].text))
            does |= rows[i].does;
    return does;
}
