/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_UNIT_EXPLAIN_LAUNCH_BOUND_H
#define RP_TESTS_UNIT_EXPLAIN_LAUNCH_BOUND_H
/* A planted run that is limited by its host, or by its device where kernels take longer. Its
   operators transpose something, which shows how slow the host was while recording. */
#include "trace/trace_fixtures.h"

#define US    1000
#define STEPS 4
#define OPS   20
#define ROWS  (STEPS * (4 * OPS + 1))

/* Spans of operators that each take `host` on the host and launch a kernel by a call. */
static struct rp_trace *launch_bound_in(const char *const spans[STEPS], int64_t host,
                                        const char *call, int64_t kernel)
{
    static struct row rows[ROWS];
    int64_t at = 0, device = 0, corr = 0;
    size_t n = 0, s, i, mark;

    for (s = 0; s < STEPS; s++) {
        mark = n++;
        rows[mark] = (struct row){'X', "user_annotation", "", 1, 1, at, 0};
        rows[mark].name = spans[s];
        for (i = 0; i < OPS; i++) {
            int64_t launch = at + host - 6 * US;

            corr++;
            rows[n++] = (struct row){'X', "cpu_op", "aten::mm", 1, 1, at, host};
            rows[n++] = (struct row){'X', "cpu_op", "aten::t", 1, 1, at + 100, 600};
            rows[n++] = (struct row){'X', "cuda_runtime", call, 1, 1, launch, 5 * US, corr};
            device = device > launch + 8 * US ? device : launch + 8 * US;
            rows[n++] = (struct row){'X', "kernel", "gemm", 0, 7, device, kernel, corr, 7};
            device += kernel;
            at += host + US;
        }
        rows[mark].dur = at - rows[mark].ts;
        at += US;
    }
    return trace_of(rows, n);
}

static struct rp_trace *launch_bound(int64_t host, const char *call, int64_t kernel)
{
    static const char *const steps[STEPS] = {"ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3",
                                             "ProfilerStep#4"};

    return launch_bound_in(steps, host, call, kernel);
}

#endif
