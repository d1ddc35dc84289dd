/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks are stages of a pipeline, by who sends first to whom. */
#include "facts/ranks/rendezvous.h"
#include "unit.h"

#define RANKS 4
#define MOST  16
#define US    1000

struct messages {
    struct rp_arena arena;
    struct rp_collective list[RANKS][MOST];
    struct rp_collectives ranks[RANKS];
    const struct rp_collectives *lists[RANKS];
    struct rp_clock clocks[RANKS];
    uint32_t rank[MOST][2], at[MOST][2];
    struct rp_rendezvous found[MOST];
    struct rp_rendezvous_list all;
};

static void messages_init(struct messages *m)
{
    memset(m, 0, sizeof *m);
    rp_arena_init(&m->arena);
    for (int r = 0; r < RANKS; r++) {
        m->ranks[r].list.at = m->list[r];
        m->lists[r] = &m->ranks[r];
    }
    m->all.at = m->found;
    m->all.clocks = m->clocks;
}

static uint32_t add_operation(struct messages *m, uint32_t rank, int64_t begin, int64_t end)
{
    m->list[rank][m->ranks[rank].list.n] =
        (struct rp_collective){.begin_ns = begin * US, .end_ns = end * US};
    return (uint32_t)m->ranks[rank].list.n++;
}

/* A message that is sent from `begin` on and has arrived at `end`, in microseconds. */
static void sends(struct messages *m, uint32_t from, uint32_t to, int64_t begin, int64_t end)
{
    size_t i = m->all.n++;
    bool high = from > to;

    m->rank[i][high] = from;
    m->rank[i][!high] = to;
    m->at[i][high] = add_operation(m, from, begin, end);
    m->at[i][!high] = add_operation(m, to, begin, end);
    m->found[i] = (struct rp_rendezvous){
        .n = 2, .rank = m->rank[i], .at = m->at[i], .senders = (uint8_t)(1 + high)};
}

static void find(struct messages *m)
{
    assert_code(rp_rendezvous_find_stages(&m->all, m->lists, RANKS, &m->arena, NULL), RP_OK);
}

static void assert_stage(const struct messages *m, uint32_t rank, uint32_t pipeline, uint32_t stage,
                         uint32_t before, uint32_t next)
{
    const struct rp_pipe_stage *s = &m->all.stages[rank];

    assert_int_equal(s->pipeline, pipeline);
    assert_int_equal(s->stage, stage);
    assert_int_equal(s->before, before);
    assert_int_equal(s->next, next);
}

static void activations_go_forward(void **state)
{
    struct messages m;

    UNUSED_STATE(state);
    messages_init(&m);
    sends(&m, 2, 0, 0, 100); /* the stages are 2, 0 and 1 */
    sends(&m, 0, 1, 150, 200);
    sends(&m, 1, 0, 400, 500);
    sends(&m, 0, 2, 550, 600);
    find(&m);
    assert_non_null(m.all.stages);
    assert_stage(&m, 2, 0, 0, RP_NONE, 0);
    assert_stage(&m, 0, 0, 1, 2, 1);
    assert_stage(&m, 1, 0, 2, 0, RP_NONE);
    assert_stage(&m, 3, RP_NONE, RP_NONE, RP_NONE, RP_NONE);
    assert_true(rp_rendezvous_are_stages(&m.all, 0, 1));
    assert_true(rp_rendezvous_are_stages(&m.all, 0, 2));
    assert_false(rp_rendezvous_are_stages(&m.all, 1, 2));
    rp_arena_release(&m.arena);
}

static void two_pipelines(void **state)
{
    struct messages m;

    UNUSED_STATE(state);
    messages_init(&m);
    sends(&m, 0, 1, 0, 100);
    sends(&m, 1, 0, 200, 300);
    sends(&m, 3, 2, 0, 100);
    sends(&m, 2, 3, 200, 300);
    find(&m);
    assert_stage(&m, 0, 0, 0, RP_NONE, 1);
    assert_stage(&m, 1, 0, 1, 0, RP_NONE);
    assert_stage(&m, 3, 1, 0, RP_NONE, 2);
    assert_stage(&m, 2, 1, 1, 3, RP_NONE);
    rp_arena_release(&m.arena);
}

/* Several chunks of the model on each rank: 0, 1 and 2 are a ring, in which 1 sends first. */
static void a_ring_begins_at_the_first_sender(void **state)
{
    struct messages m;

    UNUSED_STATE(state);
    messages_init(&m);
    sends(&m, 0, 1, 300, 350);
    sends(&m, 1, 2, 100, 150);
    sends(&m, 2, 0, 200, 250);
    sends(&m, 1, 0, 700, 750);
    sends(&m, 2, 1, 500, 550);
    sends(&m, 0, 2, 600, 650);
    find(&m);
    assert_stage(&m, 1, 0, 0, 0, 2);
    assert_stage(&m, 2, 0, 1, 1, 0);
    assert_stage(&m, 0, 0, 2, 2, 1);
    rp_arena_release(&m.arena);
}

static void no_pipelines(void **state)
{
    struct messages m;

    UNUSED_STATE(state);
    messages_init(&m);
    find(&m); /* no messages at all */
    assert_null(m.all.stages);
    sends(&m, 0, 1, 0, 100); /* nothing comes back */
    find(&m);
    assert_null(m.all.stages);
    sends(&m, 1, 0, 89, 300); /* an exchange: more than 10 us before the first has arrived */
    find(&m);
    assert_null(m.all.stages);
    m.list[1][1].begin_ns = 90 * US; /* as good as after it */
    find(&m);
    assert_non_null(m.all.stages);
    sends(&m, 0, 2, 400, 500); /* 0 would have two next stages */
    sends(&m, 2, 0, 600, 700);
    find(&m);
    assert_null(m.all.stages);
    rp_arena_release(&m.arena);
}

/* Who sends first to whom is a matter of time, not of the order in the list. */
static void messages_come_in_any_order(void **state)
{
    struct messages m;

    UNUSED_STATE(state);
    messages_init(&m);
    sends(&m, 0, 1, 1150, 1200);
    sends(&m, 1, 0, 400, 500);
    sends(&m, 0, 1, 150, 200);
    find(&m);
    assert_stage(&m, 0, 0, 0, RP_NONE, 1);
    assert_stage(&m, 1, 0, 1, 0, RP_NONE);
    rp_arena_release(&m.arena);
}

int test_pipelines(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_go_forward), cmocka_unit_test(two_pipelines),
        cmocka_unit_test(a_ring_begins_at_the_first_sender), cmocka_unit_test(no_pipelines),
        cmocka_unit_test(messages_come_in_any_order)};

    return cmocka_run_group_tests_name("pipelines", tests, NULL, NULL);
}
