/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of XPTI that a subscriber uses: the tracing interface of the SYCL runtime and of Unified
 * Runtime. Its headers are C++; these are the same layouts. The runtime loads the libraries in
 * XPTI_SUBSCRIBERS and calls xptiTraceInit for each stream; functions are those of the library in
 * XPTI_FRAMEWORK_DISPATCHER.
 */
#include <stddef.h>
#include <stdint.h>

enum rp_xpti_point {
    RP_XPTI_TASK_BEGIN = 10,
    RP_XPTI_TASK_END = 11,
    RP_XPTI_WAIT_BEGIN = 22,
    RP_XPTI_WAIT_END = 23,
    RP_XPTI_CALL_BEGIN = 28, /* the call of a function, with its arguments */
    RP_XPTI_CALL_END = 29,
    RP_XPTI_ALLOC_BEGIN = 32,
    RP_XPTI_ALLOC_END = 33,
    RP_XPTI_RELEASE_BEGIN = 34,
    RP_XPTI_RELEASE_END = 35
};

struct rp_xpti_payload { /* more follows */
    const char *name, *stack, *file;
    uint32_t line, column;
};

struct rp_xpti_call {
    uint32_t id;
    const char *name;
    void *arguments, *result, *user;
};

struct rp_xpti_memory {
    uintptr_t object, address;
    size_t bytes, guard_bytes;
};

typedef void rp_xpti_callback(uint16_t point, void *parent, void *event, uint64_t instance,
                              const void *data);

struct rp_xpti {
    uint8_t (*stream)(const char *name);
    int (*callback)(uint8_t stream, uint16_t point, rp_xpti_callback *callback);
    const struct rp_xpti_payload *(*payload)(void *event);
};
