/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of ITT (Instrumentation and Tracing Technology) that a collector implements. A program
 * with ITT loads the library named by INTEL_LIBITTNOTIFY64 at its first call. If it exports
 * __itt_api_version but not __itt_api_init, each function is looked up by its name, and those that
 * are missing do nothing.
 */
#include <stdint.h>

/* A domain whose flags are 0 is off: the program then makes no calls for it. */
struct rp_itt_domain {
    volatile int flags;
    const char *name;
    const void *wide_name;
    int extra1;
    void *extra2;
    struct rp_itt_domain *next;
};

struct rp_itt_string {
    const char *text;
    const void *wide_text;
    int extra1;
    void *extra2;
    struct rp_itt_string *next;
};

struct rp_itt_id { /* passed by value */
    uint64_t d1, d2, d3;
};
