/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_GRAPH_FIXTURES_H
#define RP_TESTS_GRAPH_FIXTURES_H
/* The graph of a small trace, and random traces. */
#include "stepgraph/graph.h"
#include "trace/trace_fixtures.h"

struct built {
    struct rp_trace *trace;
    struct rp_work work;
    struct rp_arena arena;
    struct rp_collectives collectives;
    struct rp_stepgraph graph;
};

static inline struct built build_graph(const struct row *rows, size_t n)
{
    struct rp_err err = RP_ERR_INIT;
    struct built b = {.trace = trace_of(rows, n)};

    assert_ok(rp_work_init(&b.work, b.trace, NULL, &err), &err);
    assert_ok(rp_collectives_init(&b.collectives, &b.work, NULL, &b.arena, &err), &err);
    assert_ok(rp_sg_init(&b.graph, &b.work, &b.collectives, &err), &err);
    return b;
}

static inline void release_graph(struct built *b)
{
    rp_sg_release(&b->graph);
    rp_collectives_release(&b->collectives);
    rp_work_release(&b->work);
    rp_arena_release(&b->arena);
    rp_trace_free(b->trace);
}

/* Spans and items with crossings, equal times and no length, at odd places. */
static inline void random_rows(struct random *r, struct row *rows, size_t n)
{
    static const char *const categories[] = {"cpu_op", "cuda_runtime", "user_annotation", "kernel"};
    static const char *const names[] = {"a",
                                        "ncclDevKernel_AllReduce",
                                        "xSynchronize",
                                        "cudaDeviceSynchronize",
                                        "cudaEventRecord",
                                        "cudaStreamWaitEvent",
                                        "cudaMemcpyAsync"};
    size_t i;

    for (i = 0; i < n; i++) {
        const char *category = categories[random_below(r, 4)];
        bool device = !strcmp(category, "kernel");

        rows[i] = (struct row){'X',
                               category,
                               names[random_below(r, 7)],
                               device ? 0 : 1,
                               random_below(r, 3),
                               random_below(r, 60),
                               random_below(r, 20),
                               1 + random_below(r, 12),
                               device ? 7 + random_below(r, 2) : 0};
    }
}

#endif
