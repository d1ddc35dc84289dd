/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations of a pipeline timeline wait for. */
#include "unit.h"

#include "formats/chrome_fixture.h"
#include "job/pipeline.h"

#include <stdlib.h>

#define MOST 64

/* An operation takes 10 µs. */
struct op {
    int dp, stage;
    const char *type;
    int seq, begin_us, step;
};

struct labels {
    const struct op *ops;
    size_t n;
    const struct rp_stepgraph *g;
    char node[MOST][64];
};

static struct rp_import timeline_of(const struct op *ops, size_t n)
{
    static char text[20000];
    size_t at = 0;

    at += (size_t)snprintf(text, sizeof text, "[");
    for (int stage = 0; stage < 2; stage++)
        for (int dp = 0; dp < 2; dp++)
            at += (size_t)snprintf(
                text + at, sizeof text - at,
                "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":"
                "\"PP rank %d, TP rank 0, compute\"}},",
                dp, stage, stage);
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "%s{\"ph\":\"X\",\"ts\":%d,\"dur\":10,\"pid\":%d,\"tid\":%d,"
                               "\"name\":\"%s\",\"args\":{\"step\":%d,\"seq_id\":%d}}",
                               i ? "," : "", ops[i].begin_us, ops[i].dp, ops[i].stage, ops[i].type,
                               7 + ops[i].step, ops[i].seq);
    snprintf(text + at, sizeof text - at, "]");
    return load(text);
}

/* "0 forward-send 1": stage, type and number; operations are known by their begin. */
static void label_nodes(struct labels *l)
{
    assert_true(l->g->nodes.n <= MOST);
    for (size_t k = 0; k < l->g->nodes.n; k++)
        for (size_t i = 0; i < l->n && l->g->nodes.at[k].kind != RP_SG_RENDEZVOUS; i++)
            if (l->g->nodes.at[k].start_ns == 1000 * (int64_t)l->ops[i].begin_us)
                snprintf(l->node[k], sizeof l->node[k], "%d %s %d", l->ops[i].stage, l->ops[i].type,
                         l->ops[i].seq);
    for (size_t i = 0; i < l->g->edges.n; i++) { /* of its participants the first in the alphabet */
        const struct rp_sg_edge *e = &l->g->edges.at[i];
        char text[64];

        if (e->kind != RP_SG_MEMBER)
            continue;
        snprintf(text, sizeof text, "(%.60s)", l->node[e->to]);
        if (!*l->node[e->from] || strcmp(text, l->node[e->from]) < 0)
            memcpy(l->node[e->from], text, sizeof text);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The edges of that kind are exactly these, "from > to". */
static void assert_edges(const struct op *ops, size_t n, uint8_t kind, const char *const *want)
{
    struct rp_import in = timeline_of(ops, n);
    struct labels l = {.ops = ops, .n = n};
    static char found[2 * MOST][140];
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_part part;
    size_t nfound = 0, i;

    assert_true(rp_trace_is_pipeline(in.trace));
    assert_ok(rp_sim_part_of_pipeline(&part, in.trace, &err), &err);
    l.g = &part.graph;
    label_nodes(&l);
    for (i = 0; i < part.graph.edges.n; i++) {
        const struct rp_sg_edge *e = &part.graph.edges.at[i];

        if (e->kind == kind)
            snprintf(found[nfound++], sizeof found[0], "%s > %s", l.node[e->from], l.node[e->to]);
    }
    qsort(found, nfound, sizeof found[0], by_text);
    for (i = 0; i < nfound || want[i]; i++)
        if (i >= nfound || !want[i] || strcmp(found[i], want[i]) != 0)
            fail_msg("edge %zu is '%s', not '%s'", i, i < nfound ? found[i] : "", want[i]);
    rp_sim_part_release(&part);
    rp_trace_free(in.trace);
}

#define FORWARD(stage, seq, at)                 \
    {                                           \
        0, stage, "forward-compute", seq, at, 0 \
    }
#define BACKWARD(stage, seq, at)                 \
    {                                            \
        0, stage, "backward-compute", seq, at, 0 \
    }
#define OP(stage, type, seq, at)   \
    {                              \
        0, stage, type, seq, at, 0 \
    }
#define EDGES(ops, kind, ...) \
    assert_edges(ops, sizeof(ops) / sizeof *(ops), kind, (const char *const[]){__VA_ARGS__, NULL})

static void computes_and_transfers(void **state)
{
    static const struct op ops[] = {
        FORWARD(0, 0, 10),
        FORWARD(0, 1, 20),
        BACKWARD(0, 0, 50),
        BACKWARD(0, 1, 70),
        OP(0, "forward-send", 0, 21),
        OP(0, "forward-send", 1, 31),
        OP(0, "backward-recv", 0, 41),
        OP(0, "backward-recv", 1, 61),
        FORWARD(1, 0, 32),
        BACKWARD(1, 0, 33),
        FORWARD(1, 1, 43),
        BACKWARD(1, 1, 53),
        OP(1, "forward-recv", 0, 22),
        OP(1, "forward-recv", 1, 34),
        OP(1, "backward-send", 0, 42),
        OP(1, "backward-send", 1, 62),
    };

    UNUSED_STATE(state);
    EDGES(ops, RP_SG_MEMBER, "(0 backward-recv 0) > 0 backward-recv 0",
          "(0 backward-recv 0) > 1 backward-send 0", "(0 backward-recv 1) > 0 backward-recv 1",
          "(0 backward-recv 1) > 1 backward-send 1", "(0 forward-send 0) > 0 forward-send 0",
          "(0 forward-send 0) > 1 forward-recv 0", "(0 forward-send 1) > 0 forward-send 1",
          "(0 forward-send 1) > 1 forward-recv 1");
    EDGES(ops, RP_SG_STREAM, "0 backward-compute 0 > (0 backward-recv 1)",
          "0 backward-compute 0 > 0 backward-compute 1", "0 backward-recv 0 > (0 backward-recv 1)",
          "0 backward-recv 0 > 0 backward-compute 0", "0 backward-recv 1 > 0 backward-compute 1",
          "0 forward-compute 0 > (0 backward-recv 0)", /* two before the first backward one */
          "0 forward-compute 0 > (0 forward-send 0)", "0 forward-compute 0 > 0 forward-compute 1",
          "0 forward-compute 1 > (0 forward-send 1)", "0 forward-compute 1 > 0 backward-compute 0",
          "0 forward-send 0 > (0 forward-send 1)", "1 backward-compute 0 > (0 backward-recv 0)",
          "1 backward-compute 0 > 1 forward-compute 1",
          "1 backward-compute 1 > (0 backward-recv 1)", "1 backward-send 0 > (0 backward-recv 1)",
          "1 forward-compute 0 > (0 forward-send 1)", "1 forward-compute 0 > 1 backward-compute 0",
          "1 forward-compute 1 > 1 backward-compute 1", "1 forward-recv 0 > (0 forward-send 1)",
          "1 forward-recv 0 > 1 forward-compute 0", "1 forward-recv 1 > 1 forward-compute 1");
}

static void the_end_of_a_step(void **state)
{
    static const struct op ops[] = {
        OP(0, "params-all-gather", 0, 1),
        FORWARD(0, 0, 20),
        BACKWARD(0, 0, 40),
        OP(0, "gc", 0, 50),
        OP(0, "layernorm-grads-all-reduce", 0, 60),
        OP(0, "embedding-grads-all-reduce", 0, 70),
        OP(0, "grads-reduce-scatter", 0, 80),
        OP(0, "grads-reduce-scatter", 1, 90),
        OP(0, "optimizer-clip-main-grad", 0, 100),
        OP(0, "optimizer", 0, 110),
        OP(1, "embedding-grads-all-reduce", 0, 71),
        OP(1, "optimizer-clip-main-grad", 0, 101),
    };

    UNUSED_STATE(state);
    EDGES(ops, RP_SG_STREAM, "0 backward-compute 0 > 0 gc 0",
          "0 embedding-grads-all-reduce 0 > (0 grads-reduce-scatter 0)",
          "0 forward-compute 0 > 0 backward-compute 0", "0 gc 0 > 0 layernorm-grads-all-reduce 0",
          "0 grads-reduce-scatter 0 > (0 grads-reduce-scatter 1)",
          "0 grads-reduce-scatter 1 > (0 optimizer-clip-main-grad 0)",
          "0 layernorm-grads-all-reduce 0 > (0 embedding-grads-all-reduce 0)",
          "0 optimizer-clip-main-grad 0 > 0 optimizer 0",
          "0 params-all-gather 0 > (0 grads-reduce-scatter 0)",
          "0 params-all-gather 0 > 0 forward-compute 0",
          "1 embedding-grads-all-reduce 0 > (0 optimizer-clip-main-grad 0)");
}

/* Gradients are scattered during the backward pass: what is left is reduced separately. */
static void gradients_that_are_reduced_early(void **state)
{
    static const struct op ops[] = {
        OP(0, "params-all-gather", 0, 1),
        FORWARD(0, 0, 20),
        BACKWARD(0, 0, 40),
        OP(0, "layernorm-grads-all-reduce", 0, 60),
        OP(0, "grads-reduce-scatter", 0, 80),
        OP(0, "grads-reduce-scatter", 1, 90),
        OP(0, "separate-grads-all-reduce", 0, 95),
        OP(0, "optimizer", 0, 110),
    };

    UNUSED_STATE(state);
    EDGES(ops, RP_SG_STREAM, "0 backward-compute 0 > (0 grads-reduce-scatter 0)",
          "0 backward-compute 0 > 0 layernorm-grads-all-reduce 0",
          "0 forward-compute 0 > 0 backward-compute 0",
          "0 grads-reduce-scatter 0 > (0 grads-reduce-scatter 1)",
          "0 grads-reduce-scatter 1 > 0 layernorm-grads-all-reduce 0",
          "0 layernorm-grads-all-reduce 0 > (0 separate-grads-all-reduce 0)",
          "0 params-all-gather 0 > (0 grads-reduce-scatter 0)",
          "0 params-all-gather 0 > 0 forward-compute 0",
          "0 separate-grads-all-reduce 0 > 0 optimizer 0");
}

/* Two data-parallel ranks and two steps, which take 110 and 90. */
static void groups_of_ranks(void **state)
{
    static const struct op ops[] = {
        {0, 0, "params-all-gather", 0, 0, 0},         {1, 0, "params-all-gather", 0, 1, 0},
        {0, 0, "optimizer-clip-main-grad", 0, 90, 0}, {1, 0, "optimizer-clip-main-grad", 0, 100, 0},
        {0, 0, "params-all-gather", 0, 200, 1},       {1, 0, "params-all-gather", 0, 280, 1},
    };
    struct rp_import in = timeline_of(ops, 6);
    struct rp_err err = RP_ERR_INIT;
    size_t members = 0, meetings = 0;
    struct rp_sim_part part;

    UNUSED_STATE(state);
    assert_ok(rp_sim_part_of_pipeline(&part, in.trace, &err), &err);
    assert_int_equal(part.nsteps, 2);
    assert_int_equal(part.nranks, 2);
    assert_int_equal(part.stages, 1);
    assert_int_equal(part.measured_ns, 100000);
    for (size_t i = 0; i < part.graph.edges.n; i++)
        members += part.graph.edges.at[i].kind == RP_SG_MEMBER;
    for (size_t i = 0; i < part.graph.nodes.n; i++)
        meetings += part.graph.nodes.at[i].kind == RP_SG_RENDEZVOUS;
    assert_int_equal(members, 6);
    assert_int_equal(meetings, 3);
    rp_sim_part_release(&part);
    rp_trace_free(in.trace);
    assert_true(rp_pipeline_is_comm("optimizer-clip-main-grad"));
    assert_true(rp_pipeline_is_comm("forward-send"));
    assert_false(rp_pipeline_is_comm("optimizer"));
    assert_false(rp_pipeline_is_comm("forward-compute"));
    assert_false(rp_pipeline_is_comm("forward"));
}

int test_pipeline(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_and_transfers), cmocka_unit_test(the_end_of_a_step),
        cmocka_unit_test(gradients_that_are_reduced_early), cmocka_unit_test(groups_of_ranks)};

    return cmocka_run_group_tests_name("pipeline", tests, NULL, NULL);
}
