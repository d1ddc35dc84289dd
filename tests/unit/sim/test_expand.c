/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives as hops: one all-reduce of a few ranks, each of which computes first. Together they
 * take what the closed form says; a rank that comes late holds up those that need its data.
 */
#include "unit.h"

#include "sim/model/expand.h"
#include "sim/simulate.h"

#define WIRE_NS 1200000
#define MOST    16

struct ring {
    uint32_t n;
    struct rp_sim_part part;
    const struct rp_sim_part *list[1];
    struct rp_sim_run run;
    struct rp_sim_result result;
    size_t expanded, whole;
};

static uint32_t add(struct ring *r, uint32_t rank, uint8_t kind, int64_t dur_ns)
{
    struct rp_sg_node node = {.dur_ns = dur_ns,
                              .event = RP_NONE,
                              .lane = RP_NONE,
                              .rank = rank,
                              .collective = RP_NONE,
                              .kind = kind,
                              .flags = RP_SG_WORK};
    struct rp_sim_note note = {.flags = RP_SIM_TIMES};

    assert_int_equal(rp_vec_push(&r->part.graph.nodes, node, NULL), RP_OK);
    assert_int_equal(rp_vec_push(&r->part.devices, RP_NO_DEVICE, NULL), RP_OK);
    assert_int_equal(rp_vec_push(&r->part.notes, note, NULL), RP_OK);
    return (uint32_t)r->part.graph.nodes.n - 1;
}

static void join(struct ring *r, uint32_t from, uint32_t to)
{
    struct rp_sg_edge e = {.from = from, .to = to, .kind = RP_SG_MEMBER};

    assert_int_equal(rp_vec_push(&r->part.graph.edges, e, NULL), RP_OK);
}

/* Node 0 is the meeting; of rank k 3k + 1 its work, then its arrival and its transfer. */
static void setup(struct ring *r, uint32_t n, const int64_t *work_ns)
{
    struct rp_err err = RP_ERR_INIT;
    uint32_t k, work, arrive, comm;

    memset(r, 0, sizeof *r);
    r->n = n;
    rp_arena_init(&r->part.graph.arena);
    assert_int_equal(rp_vec_push(&r->part.graph.names, "", NULL), RP_OK);
    add(r, 0, RP_SG_RENDEZVOUS, 0);
    for (k = 0; k < n; k++) {
        work = add(r, k, RP_SG_COMPUTE, work_ns[k]);
        arrive = add(r, k, RP_SG_ARRIVE, 0);
        comm = add(r, k, RP_SG_COMM, WIRE_NS);
        join(r, work, arrive);
        join(r, arrive, 0);
        join(r, 0, comm);
    }
    r->part.nsteps = 1;
    r->part.nranks = n;
    r->part.parallel_steps = true;
    r->list[0] = &r->part;
    assert_ok(rp_sim_run_init(&r->run, r->list, 1, &err), &err);
}

static void run(struct ring *r, enum rp_expand_shape shape, enum rp_expand_backend backend)
{
    struct rp_expand how = {shape, backend};
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_sim_expand(&r->run, &how, &r->expanded, &r->whole, &err), &err);
    assert_ok(rp_simulate(&r->run.overlay, &r->result, &err), &err);
}

static void teardown(struct ring *r)
{
    rp_sim_result_release(&r->result);
    rp_sim_run_release(&r->run);
    rp_sim_part_release(&r->part);
}

static int64_t end_of(const struct ring *r, uint32_t rank)
{
    return r->result.end_ns.at[3 * rank + 3];
}

static const struct {
    enum rp_expand_shape shape;
    enum rp_expand_backend backend;
} ways[] = {{RP_EXPAND_RING, RP_BACKEND_NCCL},
            {RP_EXPAND_RING, RP_BACKEND_GLOO},
            {RP_EXPAND_RING, RP_BACKEND_BYTEPS},
            {RP_EXPAND_TREE, RP_BACKEND_NCCL}};

/* Hops of equal length: rounds times one hop, but for its rounding. */
static void the_hops_take_what_the_transfer_took(void **state)
{
    static const uint32_t sizes[] = {2, 3, 4, 7, 8, 16};
    int64_t work[MOST];
    size_t i, w;
    uint32_t k;

    UNUSED_STATE(state);
    for (k = 0; k < MOST; k++)
        work[k] = 50000;
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (w = 0; w < sizeof ways / sizeof ways[0]; w++) {
            struct ring r;
            int64_t last = 0;

            setup(&r, sizes[i], work);
            run(&r, ways[w].shape, ways[w].backend);
            assert_int_equal(r.expanded, 1);
            assert_int_equal(r.whole, 0);
            for (k = 0; k < r.n; k++)
                last = end_of(&r, k) > last ? end_of(&r, k) : last;
            assert_in_range(last, 50000 + WIRE_NS - 64, 50000 + WIRE_NS + 64);
            teardown(&r);
        }
}

/* In rings and with servers everybody needs something of everybody: the last one decides. */
static void a_late_rank_holds_up_all(void **state)
{
    int64_t work[] = {50000, 50000, 950000, 50000, 50000};
    size_t w;
    uint32_t k;

    UNUSED_STATE(state);
    for (w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        struct ring r;

        setup(&r, 5, work);
        run(&r, ways[w].shape, ways[w].backend);
        for (k = 0; k < 5; k++)
            assert_in_range(end_of(&r, k), 950000 + WIRE_NS / 6, 950000 + WIRE_NS + 64);
        teardown(&r);
    }
}

/* Before it comes, the others send what does not depend on it: the rank behind the late one in the
   ring has its first hop done, and waits in the second. */
static void ranks_begin_when_they_are_there(void **state)
{
    int64_t work[] = {50000, 950000, 50000, 50000};
    struct ring r;
    size_t first, i;

    UNUSED_STATE(state);
    setup(&r, 4, work);
    first = r.part.graph.nodes.n;
    run(&r, RP_EXPAND_RING, RP_BACKEND_NCCL);
    for (i = 0; i < 4; i++) /* the first round of the first ring */
        assert_int_equal(r.result.start_ns.at[first + i], work[i]);
    assert_int_equal(r.result.start_ns.at[first + 4 + 2], 950000 + WIRE_NS / 6);
    assert_int_equal(r.result.start_ns.at[first + 4 + 0], 50000 + WIRE_NS / 6);
    teardown(&r);
}

/* The edge from a rank's arrival to the meeting. */
static void set_lag(struct ring *r, uint32_t rank, int64_t lag_ns)
{
    struct rp_err err = RP_ERR_INIT;

    assert_ok(
        rp_overlay_set_lag(&r->run.overlay, r->run.tasks.first.at[3 * rank + 2], lag_ns, &err),
        &err);
}

/* What a what-if made of the edges holds for the hops: each rank enters the ring 7,000 after it
   came, and nobody waits for a rank that takes no part any more. */
static void hops_keep_what_was_changed(void **state)
{
    int64_t work[] = {50000, 50000, 950000, 50000, 50000}, equal[] = {50000, 50000, 50000};
    struct ring r;
    uint32_t k;

    UNUSED_STATE(state);
    setup(&r, 3, equal);
    for (k = 0; k < 3; k++)
        set_lag(&r, k, 7000);
    run(&r, RP_EXPAND_RING, RP_BACKEND_NCCL);
    for (k = 0; k < 3; k++)
        assert_in_range(end_of(&r, k), 57000 + WIRE_NS - 64, 57000 + WIRE_NS + 64);
    teardown(&r);
    setup(&r, 5, work);
    set_lag(&r, 2, RP_LAG_CUT);
    run(&r, RP_EXPAND_RING, RP_BACKEND_NCCL);
    for (k = 0; k < 5; k++)
        if (k != 2)
            assert_in_range(end_of(&r, k), 50000 + WIRE_NS / 2, 50000 + WIRE_NS + 64);
    teardown(&r);
}

/* A rank communicates while it sends, not before; NCCL's two rings run at the same time. */
static void hops_are_time_of_communication(void **state)
{
    int64_t work[] = {50000, 50000, 50000};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_sim_answer x = {0};
    struct rp_err err = RP_ERR_INIT;
    struct ring r;

    UNUSED_STATE(state);
    for (size_t w = 0; w < 2; w++) {
        setup(&r, 3, work);
        run(&r, ways[w].shape, ways[w].backend);
        assert_ok(rp_sim_by_rank(&r.run, &r.result, &arena, &x, &err), &err);
        assert_int_equal(x.nby_rank, 3);
        for (size_t k = 0; k < 3; k++)
            assert_in_range(x.by_rank[k].comm_ns, WIRE_NS - 64, WIRE_NS + 64);
        teardown(&r);
    }
    rp_arena_release(&arena);
}

static void a_late_rank_has_no_slack(void **state)
{
    int64_t work[] = {50000, 950000, 50000}, slack[256];
    struct rp_err err = RP_ERR_INIT;
    struct ring r;

    UNUSED_STATE(state);
    setup(&r, 3, work);
    run(&r, RP_EXPAND_WHOLE, RP_BACKEND_NCCL);
    assert_ok(rp_sim_slack(&r.run, &r.result, slack, &err), &err);
    assert_int_equal(slack[1], 900000);
    assert_int_equal(slack[4], 0);
    assert_int_equal(slack[7], 900000);
    teardown(&r);
}

/* What is added is taken back. */
static void an_undone_expansion_leaves_nothing(void **state)
{
    int64_t work[] = {50000, 60000, 70000};
    struct ring r;
    size_t mark;

    UNUSED_STATE(state);
    setup(&r, 3, work);
    mark = rp_overlay_mark(&r.run.overlay);
    run(&r, RP_EXPAND_RING, RP_BACKEND_NCCL);
    rp_overlay_undo(&r.run.overlay, mark);
    run(&r, RP_EXPAND_WHOLE, RP_BACKEND_NCCL);
    assert_int_equal(r.result.end_ns.n, r.part.graph.nodes.n);
    assert_int_equal(end_of(&r, 0), 70000 + WIRE_NS);
    teardown(&r);
}

int test_expand(void);
int test_expand(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_hops_take_what_the_transfer_took),
                                       cmocka_unit_test(a_late_rank_holds_up_all),
                                       cmocka_unit_test(ranks_begin_when_they_are_there),
                                       cmocka_unit_test(hops_keep_what_was_changed),
                                       cmocka_unit_test(hops_are_time_of_communication),
                                       cmocka_unit_test(a_late_rank_has_no_slack),
                                       cmocka_unit_test(an_undone_expansion_leaves_nothing)};

    return cmocka_run_group_tests_name("expand", tests, NULL, NULL);
}
