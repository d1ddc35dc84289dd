/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks of a job, by the messages of its rings or of its servers. */
#include "unit.h"

#include "job/job.h"

#define US     1000
#define WITHIN (RP_CLOCK_TOLERANCE_NS / US) /* what arrives may seem to be so much too early */

static struct rp_clock clock_of(const struct rp_job *job, bool likely, size_t i)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_clocks clocks;
    struct rp_clock out;

    assert_ok(rp_clocks_of_job(job, likely, &arena, &clocks, &err), &err);
    assert_true(i < clocks.n);
    out = clocks.at[i];
    rp_arena_release(&arena);
    return out;
}

/* Rank 1 is on another host, whose clock is a millisecond ahead; rank 2 shares it. A message from 0
   to 1 takes 40, one back 30. */
static void rings_bound_a_clock(void **state)
{
    struct rp_job_link to_next[] = {{0, 1}, {0, 2}, {0, 0}};
    struct rp_job_op ops[] = {
        {"a", 5 * US, US, 3}, {"a", 1005 * US, US, 3}, {"a", 1005 * US, US, 3}};
    struct rp_job_transfer first[] = {{10 * US, 5 * US, "5+6", 0, 0, 0, 0, true},
                                      {120 * US, 10 * US, "7", 0, 0, 1, 2, false}};
    struct rp_job_transfer second[] = {
        {1020 * US, 30 * US, "5+6", 0, 0, 0, 0, false},
        {1030 * US, 1 * US, "5+6", 0, 0, 0, 1, false}}; /* not sent */
    struct rp_job_transfer third[] = {
        {1100 * US, 10 * US, "7", 0, 0, 1, 2, true},
        {1100 * US, 10 * US, "7", 0, 9, 1, 2, true}}; /* no such ring */
    struct rp_job_rank ranks[3] = {{.host = "a", .number = 0},
                                   {.host = "b", .number = 1},
                                   {.host = "b", .local = 1, .number = 2}};
    struct rp_job job = {.nranks = 3, .ranks = ranks, .has_transfers = true};
    struct rp_job_transfer *lists[] = {first, second, third};
    struct rp_err err = RP_ERR_INIT;
    struct rp_clock c;

    UNUSED_STATE(state);
    rp_arena_init(&job.arena);
    for (int r = 0; r < 3; r++) {
        ranks[r].links.at = &to_next[r];
        ranks[r].links.n = 1;
        ranks[r].ops.at = &ops[r];
        ranks[r].ops.n = 1;
        ranks[r].transfers.at = lists[r];
        ranks[r].transfers.n = 2;
    }
    c = clock_of(&job, false, 1);
    assert_int_equal(c.messages, 2);
    assert_int_equal(c.low_ns, (10 - 1050 - WITHIN) * US);
    assert_int_equal(c.high_ns, (130 - 1100 + WITHIN) * US);
    assert_in_range(-c.offset_ns, 970 * US, 1040 * US);
    assert_int_equal(clock_of(&job, false, 2).clock, c.clock);
    assert_int_equal(clock_of(&job, false, 2).offset_ns, c.offset_ns);
    assert_int_equal(clock_of(&job, false, 0).offset_ns, 0);
    assert_ok(rp_job_align(&job, &err), &err);
    assert_int_equal(ops[0].begin_ns, 5 * US);
    assert_int_equal(ops[1].begin_ns, 1005 * US + c.offset_ns);
    assert_int_equal(ops[1].dur_ns, US);
    assert_int_equal(second[0].begin_ns, 1020 * US + c.offset_ns);
    assert_int_equal(second[0].dur_ns, 30 * US);

    ops[1].step = ops[2].step = 4; /* of another step: other messages */
    assert_int_equal(clock_of(&job, false, 1).messages, 0);
    rp_arena_release(&job.arena);
}

#define PUSHES 12

/* The server's clock is 4 ms ahead. A push takes 100, its answer 50; one record of the server is
   lost, so that a push seems to arrive half a millisecond too early. */
static void servers_bound_a_clock(void **state)
{
    struct rp_job_half worker[PUSHES + 1], server[PUSHES + 1];
    struct rp_job_rank ranks[3] = {{.host = "a"}, {.host = "a", .local = 1}, {.host = "b"}};
    struct rp_job_node nodes[] = {{.id = 9}, {.id = 8}};
    struct rp_job job = {
        .nranks = 3, .ranks = ranks, .has_servers = true, .nnodes = 2, .nodes = nodes};
    struct rp_clock c;

    UNUSED_STATE(state);
    for (int i = 0; i < PUSHES; i++) {
        worker[i] = (struct rp_job_half){(1000 + i * 10) * US, i, 9, 8, RP_JOB_PUSH, true};
        server[i] = (struct rp_job_half){(5100 + i * 10) * US, i, 9, 8, RP_JOB_PUSH, false};
    }
    server[3].ns -= 500 * US;
    server[PUSHES] = (struct rp_job_half){5200 * US, 0, 8, 9, RP_JOB_PUSH_DONE, true};
    worker[PUSHES] = (struct rp_job_half){1250 * US, 0, 8, 9, RP_JOB_PUSH_DONE, false};
    nodes[0].halves.at = worker;
    nodes[1].halves.at = server;
    nodes[0].halves.n = nodes[1].halves.n = PUSHES + 1;
    assert_int_equal(rp_job_servers(&job), 1);
    c = clock_of(&job, true, 3);
    assert_int_equal(c.messages, PUSHES); /* one is dropped */
    assert_int_equal(c.low_ns,
                     (1000 - 5100 + 75 - 2 - WITHIN) * US); /* half the round trip is 75 */
    assert_int_equal(c.high_ns, (1250 - 5200 - 75 + 2 + WITHIN) * US);
    server[3].ns += 500 * US;
    c = clock_of(&job, false, 3);
    assert_int_equal(c.messages, PUSHES + 1);
    assert_int_equal(c.low_ns, (1000 - 5100 - WITHIN) * US);
    assert_int_equal(c.high_ns, (1250 - 5200 + WITHIN) * US);
}

/* Messages that are kept of twelve, of which the upper seven take more_ns longer than the others,
   and one takes early_ns less. */
static int64_t kept_of(int64_t more_ns, int64_t early_ns)
{
    struct rp_job_half worker[PUSHES], server[PUSHES];
    struct rp_job_rank ranks[2] = {{.host = "a"}, {.host = "b"}};
    struct rp_job_node nodes[] = {{.id = 9}, {.id = 8}};
    struct rp_job job = {
        .nranks = 2, .ranks = ranks, .has_servers = true, .nnodes = 2, .nodes = nodes};

    for (int i = 0; i < PUSHES; i++) {
        worker[i] = (struct rp_job_half){(1000 + i * 10) * US, i, 9, 8, RP_JOB_PUSH, true};
        server[i] = (struct rp_job_half){
            (5100 + i * 10) * US + (i < 5 ? 0 : more_ns), i, 9, 8, RP_JOB_PUSH, false};
    }
    server[3].ns -= early_ns;
    nodes[0].halves.at = worker;
    nodes[1].halves.at = server;
    nodes[0].halves.n = nodes[1].halves.n = PUSHES;
    return clock_of(&job, true, 2).messages;
}

static void a_message_that_is_far_too_quick_is_dropped(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(kept_of(0, 100 * US), PUSHES); /* twice what clocks are off */
    assert_int_equal(kept_of(0, 100 * US + 1), PUSHES - 1);
    assert_int_equal(kept_of(100 * US, 400 * US), PUSHES); /* and three times 100 */
    assert_int_equal(kept_of(100 * US, 400 * US + 1), PUSHES - 1);
}

static void numbers_of_ps_lite(void **state)
{
    struct rp_job_rank ranks[3] = {{.host = "a"}, {.host = "a", .local = 1}, {.host = "b"}};
    struct rp_job_node nodes[] = {{.id = 9}, {.id = 10}, {.id = 1}};
    struct rp_job job = {
        .nranks = 3, .ranks = ranks, .has_servers = true, .nnodes = 3, .nodes = nodes};
    struct rp_job_half a = {.key = 1, .sender = 8, .receiver = 9, .kind = RP_JOB_PULL}, b = a;

    UNUSED_STATE(state);
    assert_int_equal(rp_job_clock_of(&job, 8), 3);
    assert_int_equal(rp_job_clock_of(&job, 10), 4);
    assert_int_equal(rp_job_clock_of(&job, 9), 0);
    assert_int_equal(rp_job_clock_of(&job, 11), 2);
    assert_true(rp_job_clock_of(&job, 13) == SIZE_MAX);
    assert_true(rp_job_clock_of(&job, 7) == SIZE_MAX);
    assert_int_equal(rp_job_servers(&job), 2);
    job.has_servers = false;
    assert_int_equal(rp_job_servers(&job), 0);
    b.sent = true;
    b.ns = 9;
    assert_true(rp_job_message_key(&a) == rp_job_message_key(&b));
    b.kind = RP_JOB_PULL_DONE;
    assert_true(rp_job_message_key(&a) != rp_job_message_key(&b));
    b = a;
    b.receiver = 11;
    assert_true(rp_job_message_key(&a) != rp_job_message_key(&b));
    b = a;
    b.key = 2;
    assert_true(rp_job_message_key(&a) != rp_job_message_key(&b));
}

int test_job_clocks(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rings_bound_a_clock),
                                       cmocka_unit_test(servers_bound_a_clock),
                                       cmocka_unit_test(a_message_that_is_far_too_quick_is_dropped),
                                       cmocka_unit_test(numbers_of_ps_lite)};

    return cmocka_run_group_tests_name("job clocks", tests, NULL, NULL);
}
