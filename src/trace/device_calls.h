/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What calls of CUDA, HIP, Level Zero and OpenCL do, by their names: one table for all questions.
 */
#include "base/named.h"

#include <stddef.h>
#include <stdint.h>

enum rp_device_call {
    RP_DOES_LAUNCH = 1, /* a kernel or a graph */
    RP_DOES_LAUNCH_GRAPH = 2,
    RP_DOES_COPY = 4,
    RP_DOES_SET = 8,
    RP_DOES_BEGIN_CAPTURE = 16,
    RP_DOES_END_CAPTURE = 32,
    RP_DOES_STREAM_WAIT = 64, /* a stream waits for an event */
    RP_DOES_AWAIT_DEVICE = 128,
    RP_DOES_BLOCK = 256, /* waits until its work is done, although the name does not say so */
    RP_DOES_WORK = RP_DOES_LAUNCH | RP_DOES_COPY | RP_DOES_SET
};

struct rp_device_call_row {
    enum rp_named how;
    const char *text;
    uint16_t does;
    const char *example; /* a call for which the row exists */
};

const struct rp_device_call_row *rp_device_call_rows(size_t *n);

/* Bits of enum rp_device_call, combined from all rows that fit. */
uint16_t rp_device_call_does(const char *name);
