/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_RUN_FIXTURES_H
#define RP_TESTS_RUN_FIXTURES_H
/*
 * A run of one or two ranks with three steps of 100 us:
 *
 *     thread    [mm ][relu][add][reduce]  [cudaDeviceSynchronize ...........]
 *     stream 7       [sgemm 40][elementwise 10][elementwise 10]
 *     stream 20                                [all-reduce 20]
 */
#include "sim/model/simulated_steps.h"
#include "sim/whatif/whatifs.h"
#include "trace/trace_fixtures.h"

#define STEPS 3

struct bench {
    size_t n;
    struct rp_trace *traces[2];
    struct rp_arena arenas[2];
    struct rp_sim_part parts[2];
    const struct rp_sim_part *list[2];
    struct rp_sim_run run;
};

struct step_shape {
    int64_t gemm_ns; /* 40,000 */
    bool plain;      /* without communication */
    bool beside;     /* communication runs beside the last two kernels */
};

static inline size_t step_rows(struct row *out, int64_t at, int64_t corr, struct step_shape s)
{
    static char names[64][24];
    char *mark = names[(at / 100000) % 64];
    int64_t g = at + 10000 + s.gemm_ns;
    size_t n = 0;

    snprintf(mark, sizeof names[0], "ProfilerStep#%d", (int)(at / 100000));
    out[n++] = (struct row){'X', "user_annotation", mark, 1, 1, at, 99000};
    out[n++] = (struct row){'X', "user_annotation", "enumerate(DataLoader)#next", 1, 1, at, 1000};
    out[n++] = (struct row){'X', "cpu_op", "aten::mm", 1, 1, at + 1000, 9000};
    out[n++] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at + 2000, 4000, corr};
    out[n++] = (struct row){'X', "kernel", "sgemm_128", 0, 7, at + 10000, s.gemm_ns, corr, 7};
    out[n++] = (struct row){'X', "cpu_op", "aten::relu", 1, 1, at + 12000, 6000};
    out[n++] =
        (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at + 13000, 3000, corr + 1};
    out[n++] = (struct row){'X', "kernel", "elementwise_relu", 0, 7, g, 10000, corr + 1, 7};
    out[n++] = (struct row){'X', "cpu_op", "aten::add", 1, 1, at + 20000, 6000};
    out[n++] =
        (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at + 21000, 3000, corr + 2};
    out[n++] = (struct row){'X', "kernel", "elementwise_add", 0, 7, g + 10000, 10000, corr + 2, 7};
    if (!s.plain) {
        out[n++] =
            (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at + 28000, 3000, corr + 3};
        out[n++] = (struct row){'X',
                                "kernel",
                                "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                                0,
                                20,
                                g + (s.beside ? 0 : 20000),
                                20000,
                                corr + 3,
                                20,
                                0,
                                "In msg nelems",
                                1000,
                                0,
                                "dtype",
                                "Float",
                                "Group size",
                                2};
    }
    out[n++] = (struct row){'X', "cuda_runtime", "cudaDeviceSynchronize", 1,
                            1,   at + 40000,     g + 42000 - at - 40000};
    return n;
}

static inline struct rp_trace *steps_trace(struct step_shape s)
{
    struct row rows[64];
    size_t n = 0;
    int i;

    for (i = 0; i < STEPS; i++)
        n += step_rows(rows + n, 100000 * i, 10 * i + 1, s);
    return trace_of(rows, n);
}

static inline void bench_init(struct bench *b, size_t n, const struct step_shape *shapes)
{
    struct rp_err err = RP_ERR_INIT;
    size_t i;

    memset(b, 0, sizeof *b);
    b->n = n;
    for (i = 0; i < n; i++) {
        b->traces[i] = steps_trace(shapes[i]);
        rp_arena_init(&b->arenas[i]);
        assert_ok(rp_sim_part_init(&b->parts[i], b->traces[i], &b->arenas[i], &err), &err);
        b->list[i] = &b->parts[i];
    }
    assert_ok(rp_sim_run_init(&b->run, b->list, n, &err), &err);
}

static inline void bench_release(struct bench *b)
{
    size_t i;

    rp_sim_run_release(&b->run);
    for (i = 0; i < b->n; i++) {
        rp_sim_part_release(&b->parts[i]);
        rp_arena_release(&b->arenas[i]);
        rp_trace_free(b->traces[i]);
    }
}

/* The nth node of a rank whose name has a part. */
static inline uint32_t node_called(const struct bench *b, uint32_t rank, const char *part, int nth)
{
    const struct rp_stepgraph *g = b->run.graph;
    uint32_t i;

    for (i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i].rank == rank && g->nodes.at[i].kind != RP_SG_ARRIVE &&
            strstr(g->names.at[g->nodes.at[i].name], part) && nth-- == 0)
            return i;
    fail_msg("no node is called %s", part);
    return 0;
}

static inline int64_t step_now(struct bench *b)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_result r = {0};
    int64_t ns;

    assert_ok(rp_simulate(&b->run.overlay, &r, &err), &err);
    assert_ok(rp_sim_step_ns(&b->run, &r, &ns, &err), &err);
    rp_sim_result_release(&r);
    return ns;
}

#endif
