/* SPDX-License-Identifier: Apache-2.0 */
/* A step of a job as the mean of its recorded steps; what a group of tensors waits for. */
#include "unit.h"

#include "job/means.h"

#define US    1000
#define RANKS 2

/* Gradient 1 is ready at 100, gradient 2 at 200, the update runs from 900 to 950. The second step
   begins 1000 later. */
static const struct rp_job_op ops[] = {
    {"grad1", 0, 100 * US, 0},         {"grad2", 110 * US, 90 * US, 0},
    {"update", 900 * US, 50 * US, 0},  {"other", 300 * US, 50 * US, 0}, /* not of the graph */
    {"grad1", 1000 * US, 100 * US, 1}, {"grad2", 1130 * US, 70 * US, 1},
    {"update", 1920 * US, 30 * US, 1}, {"grad1", 2000 * US, 100 * US, 2}, /* not complete */
};
static const struct rp_job_edge edges[] = {{"grad1", "Allreduce.1", -1, 1},
                                           {"Allreduce.1", "update", 1, -1},
                                           {"Allreduce.2", "update", 2, -1},
                                           {"grad2", "Allreduce.2", -1, 2}};

/* In both steps the same, but for the time. */
static const struct rp_job_span spans[RANKS][9] = {
    {{130 * US, 180 * US, 1, RP_JOB_SYNC},
     {190 * US, 195 * US, 1, RP_JOB_QUEUE},
     {196 * US, 200 * US, 1, RP_JOB_COPY_IN},
     {210 * US, 300 * US, 1, RP_JOB_REDUCE},
     {310 * US, 320 * US, 1, RP_JOB_COPY_OUT},
     {260 * US, 290 * US, 2, RP_JOB_SYNC},
     {330 * US, 340 * US, 2, RP_JOB_QUEUE},
     {350 * US, 450 * US, 2, RP_JOB_REDUCE}},
    {{150 * US, 180 * US, 1, RP_JOB_SYNC},
     {185 * US, 190 * US, 1, RP_JOB_QUEUE},
     {190 * US, 198 * US, 1, RP_JOB_COPY_IN},
     {220 * US, 300 * US, 1, RP_JOB_REDUCE},
     {305 * US, 320 * US, 1, RP_JOB_COPY_OUT},
     {270 * US, 290 * US, 2, RP_JOB_SYNC},
     {335 * US, 340 * US, 2, RP_JOB_QUEUE},
     {345 * US, 450 * US, 2, RP_JOB_REDUCE}},
};

struct fixture {
    struct rp_job_op ops[RANKS][8];
    struct rp_job_edge edges[4];
    struct rp_job_span spans[RANKS][16];
    struct rp_job_rank ranks[RANKS];
    struct rp_job job;
    struct rp_job_means m;
};

static void fixture_init(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    memcpy(f->edges, edges, sizeof edges);
    for (int r = 0; r < RANKS; r++) {
        memcpy(f->ops[r], ops, sizeof ops);
        for (int i = 0; i < 16; i++) {
            f->spans[r][i] = spans[r][i % 8];
            f->spans[r][i].begin_ns += i / 8 * 1000 * US;
            f->spans[r][i].end_ns += i / 8 * 1000 * US;
        }
        f->ranks[r].host = r ? "b" : "a";
        f->ranks[r].number = r;
        f->ranks[r].ops.at = f->ops[r];
        f->ranks[r].ops.n = 8;
        f->ranks[r].edges.at = f->edges;
        f->ranks[r].edges.n = 4;
        f->ranks[r].spans.at = f->spans[r];
        f->ranks[r].spans.n = 16;
    }
    f->job.nranks = RANKS;
    f->job.ranks = f->ranks;
}

static void take(struct fixture *f, size_t first, size_t end)
{
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_job_means_init(&f->m, &f->job, &err), &err);
    assert_ok(rp_job_means_take(&f->m, first, end, &err), &err);
}

#define ASSERT_US(ns, us) assert_float_equal((ns) / US, us, 1e-6)

static void operators_have_durations_and_gaps(void **state)
{
    struct fixture f;
    const struct rp_mean_op *op;

    UNUSED_STATE(state);
    fixture_init(&f);
    take(&f, 0, 2);
    assert_int_equal(f.m.nsteps, 2);
    assert_int_equal(f.m.left_out, 1);
    ASSERT_US(f.m.iteration_ns, 950); /* from the first operator to the end of the last */
    assert_int_equal(f.m.ranks[0].ops.n, 3);
    op = f.m.ranks[0].ops.at;
    assert_string_equal(op[0].name, "grad1");
    ASSERT_US(op[0].dur_ns, 100);
    assert_false(op[0].is_update);
    assert_string_equal(op[1].name, "grad2");
    ASSERT_US(op[1].dur_ns, 80);
    ASSERT_US(op[1].gap_ns, 20);
    assert_string_equal(op[2].name, "update");
    ASSERT_US(op[2].dur_ns, 40);
    assert_true(op[2].is_update);
    rp_job_means_release(&f.m);
}

static void phases_of_groups(void **state)
{
    const struct rp_mean_group *g;
    struct fixture f;

    UNUSED_STATE(state);
    fixture_init(&f);
    take(&f, 0, 1);
    assert_int_equal(f.m.ngroups, 2);
    assert_string_equal(f.m.groups[0], "1");
    assert_string_equal(f.m.groups[1], "2");
    g = f.m.ranks[0].groups;
    ASSERT_US(g[0].vote_lag_ns, 130 - 100);
    ASSERT_US(g[0].agree_lag_ns, 180 - 150); /* rank 1 votes last */
    ASSERT_US(g[0].queue_lag_ns, 190 - 180);
    ASSERT_US(g[0].queue_ns, 5);
    ASSERT_US(g[0].in_ns, 4);
    ASSERT_US(g[0].enter_lag_ns, 210 - 200);
    ASSERT_US(g[0].reduce_ns, 300 - 220); /* rank 1 arrives last */
    ASSERT_US(g[0].leave_lag_ns, 310 - 300);
    ASSERT_US(g[0].out_ns, 10);
    ASSERT_US(g[1].vote_lag_ns, 260 - 200);
    ASSERT_US(g[1].agree_lag_ns, 290 - 270);
    ASSERT_US(g[1].queue_lag_ns, 330 - 320); /* from the end of the first group */
    ASSERT_US(g[1].queue_ns, 10);
    ASSERT_US(g[1].in_ns, 0);
    ASSERT_US(g[1].enter_lag_ns, 350 - 340);
    ASSERT_US(g[1].reduce_ns, 450 - 350);
    ASSERT_US(g[1].leave_lag_ns, 0);
    g = f.m.ranks[1].groups;
    ASSERT_US(g[0].vote_lag_ns, 150 - 100);
    ASSERT_US(g[0].agree_lag_ns, 180 - 150);
    ASSERT_US(g[0].queue_lag_ns, 185 - 180);
    ASSERT_US(g[0].in_ns, 8);
    ASSERT_US(g[0].enter_lag_ns, 220 - 198);
    ASSERT_US(g[0].leave_lag_ns, 305 - 300);
    ASSERT_US(g[1].vote_lag_ns, 270 - 200);
    ASSERT_US(g[1].queue_lag_ns, 335 - 320);
    rp_job_means_release(&f.m);
}

/* The second vote of both begins directly after the first agreement: it had waited for that, so the
   agreement follows the one before, and votes are as late as they usually are. */
static void votes_that_waited(void **state)
{
    const struct rp_mean_group *g;
    struct fixture f;

    UNUSED_STATE(state);
    fixture_init(&f);
    for (int r = 0; r < RANKS; r++) {
        f.spans[r][0].end_ns = 240 * US; /* after gradient 2 is ready */
        f.spans[r][5].begin_ns = 260 * US;
        f.spans[r][5].end_ns = 290 * US;
    }
    take(&f, 0, 1);
    g = f.m.ranks[0].groups;
    ASSERT_US(g[0].follow_lag_ns, 290 - 240); /* the only one that is known */
    ASSERT_US(g[1].follow_lag_ns, 290 - 240);
    ASSERT_US(g[1].agree_lag_ns, 240 - 150);
    ASSERT_US(g[1].vote_lag_ns, 0); /* 90 from the gradient to the agreement's end: no room */
    rp_job_means_release(&f.m);

    for (int r = 0; r < RANKS; r++) {
        f.spans[r][0].end_ns = 200 * US; /* just when gradient 2 is ready */
        f.spans[r][5].begin_ns = 210 * US;
    }
    take(&f, 0, 1);
    ASSERT_US(f.m.ranks[0].groups[1].follow_lag_ns, 290 - 200);
    rp_job_means_release(&f.m);

    for (int r = 0; r < RANKS; r++)
        f.spans[r][0].end_ns = 240 * US;
    f.spans[0][5].begin_ns = f.spans[1][5].begin_ns = 261 * US; /* too late to have waited */
    take(&f, 0, 1);
    g = f.m.ranks[0].groups;
    ASSERT_US(g[1].vote_lag_ns, 61);
    ASSERT_US(g[1].agree_lag_ns, 290 - 261);
    ASSERT_US(g[1].follow_lag_ns, 0); /* never seen */
    rp_job_means_release(&f.m);

    f.spans[0][5].begin_ns = 230 * US; /* before the agreement ended: they overlap */
    take(&f, 0, 1);
    assert_float_equal(f.m.ranks[0].groups[1].follow_lag_ns, -1, 0);
    rp_job_means_release(&f.m);
}

/* Reductions that begin at one time are of one group, which is ready when the last is. */
static void tensors_that_are_reduced_together(void **state)
{
    struct fixture f;

    UNUSED_STATE(state);
    fixture_init(&f);
    for (int r = 0; r < RANKS; r++) {
        f.spans[r][7].begin_ns = f.spans[r][3].begin_ns;
        f.spans[r][0].begin_ns = 230 * US;
        f.spans[r][0].end_ns = 240 * US;
    }
    take(&f, 0, 1);
    assert_int_equal(f.m.ngroups, 1);
    assert_string_equal(f.m.groups[0], "1+2");
    ASSERT_US(f.m.ranks[0].groups[0].vote_lag_ns, 230 - 200);
    rp_job_means_release(&f.m);
}

static size_t votes_after(const struct rp_sim_part *part, int64_t lag_us)
{
    size_t n = 0;

    for (size_t i = 0; i < part->graph.edges.n; i++)
        n += part->graph.edges.at[i].kind == RP_SG_MEMBER &&
             part->graph.edges.at[i].lag_ns == lag_us * US;
    return n;
}

/* A gradient that no operator makes is voted for when it was, counted from the begin of the step of
   the first rank; rank 1 begins 7 later. */
static void votes_without_gradients(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_part part;
    struct fixture f;

    UNUSED_STATE(state);
    fixture_init(&f);
    f.edges[3].to_tensor = -1;
    for (int i = 0; i < 8; i++)
        f.ops[1][i].begin_ns += 7 * US;
    assert_ok(rp_sim_part_of_job(&part, &f.job, &err), &err);
    assert_int_equal(votes_after(&part, 260), part.nsteps);
    assert_int_equal(votes_after(&part, 270), part.nsteps);
    assert_int_equal(votes_after(&part, 150 - 107), part.nsteps); /* after gradient 1 */
    rp_sim_part_release(&part);
}

static void steps_that_are_missing(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct fixture f;

    UNUSED_STATE(state);
    fixture_init(&f);
    for (int i = 0; i < 8; i++)
        f.ops[1][i].name = "other";
    assert_code(rp_job_means_init(&f.m, &f.job, &err), RP_FORMAT);
    assert_contains(err.text, "rank 1 (b/0) has no step with operators of its graph");
    rp_job_means_release(&f.m);
    fixture_init(&f);
    for (int i = 0; i < 8; i++)
        f.ops[1][i].step += 10;
    assert_code(rp_job_means_init(&f.m, &f.job, &err), RP_FORMAT);
    assert_contains(err.text, "no step of the job was recorded completely by all ranks");
    rp_job_means_release(&f.m);
}

int test_means(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operators_have_durations_and_gaps),
                                       cmocka_unit_test(phases_of_groups),
                                       cmocka_unit_test(votes_that_waited),
                                       cmocka_unit_test(votes_without_gradients),
                                       cmocka_unit_test(steps_that_are_missing),
                                       cmocka_unit_test(tensors_that_are_reduced_together)};

    return cmocka_run_group_tests_name("means", tests, NULL, NULL);
}
