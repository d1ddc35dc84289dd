/* SPDX-License-Identifier: Apache-2.0 */
/* The short way to a prediction gives the numbers of the long one. */
#include "run_fixtures.h"
#include "sim/predict.h"
#include "sim/simulate.h"

static const char *const whatifs[] = {"scale:gpu=0.5", "ranks=8",     "cuda-graphs",
                                      "bucket=1MB",    "scale:all=2", "no-sync"};
enum { WHATIFS = sizeof whatifs / sizeof whatifs[0] };

static void gains_are_those_of_simulate(void **state)
{
    struct step_shape usual = {40000, false, false};
    struct rp_sim_asked asked = {.whatifs = whatifs, .nwhatifs = WHATIFS};
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_gain gains[WHATIFS];
    struct rp_sim_answer answer = {0};
    struct rp_arena arena = RP_ARENA_INIT;
    struct bench b;
    struct rp_sim_now now;
    size_t i;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    assert_ok(rp_sim_predict(b.list, 1, whatifs, WHATIFS, &now, gains, &err), &err);
    assert_ok(rp_sim_answer(b.list, 1, &asked, &arena, &answer, &err), &err);
    assert_int_equal(now.step_ns, answer.baseline.step_ns);
    assert_int_equal(now.simulated_ns, answer.baseline.simulated_step_ns);
    assert_int_equal(now.unprofiled_ns, answer.baseline.unprofiled_ns);
    assert_int_equal(answer.npredictions, WHATIFS);
    for (i = 0; i < WHATIFS; i++) {
        const struct rp_sim_prediction *p = &answer.predictions[i];

        assert_int_equal(gains[i].step_ns, p->predicted_ns);
        assert_string_equal(gains[i].impossible, p->impossible ? p->impossible : "");
    }
    assert_int_equal(gains[3].step_ns, RP_ABSENT_I64); /* nothing trains */
    assert_non_null(strstr(gains[3].impossible, "AccumulateGrad"));
    assert_int_equal(gains[4].step_ns, 2 * now.unprofiled_ns);
    rp_arena_release(&arena);
    bench_release(&b);
}

static void a_malformed_what_if_is_an_error(void **state)
{
    static const char *const wrong[] = {"fuze"};
    struct step_shape usual = {40000, false, false};
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_gain gain;
    struct bench b;
    struct rp_sim_now now;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    assert_code(rp_sim_predict(b.list, 1, wrong, 1, &now, &gain, &err), RP_USAGE);
    assert_non_null(strstr(err.text, "did you mean 'fuse'"));
    bench_release(&b);
}

/* Where none can be answered, that is an error. */
static void impossible_what_ifs_are_rows(void **state)
{
    struct step_shape usual = {40000, true, false};
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_answer answer = {0};
    struct rp_arena arena = RP_ARENA_INIT;
    const char *texts[] = {"ranks=8", "scale:gpu=2"};
    struct rp_sim_asked asked = {.whatifs = texts, .nwhatifs = 2};
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    assert_ok(rp_sim_answer(b.list, 1, &asked, &arena, &answer, &err), &err);
    assert_int_equal(answer.npredictions, 2);
    assert_int_equal(answer.predictions[0].predicted_ns, RP_ABSENT_I64);
    assert_string_equal(answer.predictions[0].impossible, "ranks: no communication was recorded");
    assert_null(answer.predictions[1].impossible);
    assert_true(answer.predictions[1].predicted_ns > 100000);
    texts[1] = "straggler=median";
    answer = (struct rp_sim_answer){0};
    assert_code(rp_sim_answer(b.list, 1, &asked, &arena, &answer, &err), RP_UNSUPPORTED);
    assert_string_equal(err.text, "ranks: no communication was recorded");
    rp_arena_release(&arena);
    bench_release(&b);
}

/* Three ranks, the first and the last equal: one stands for both. */
static void equal_ranks_are_simulated_once(void **state)
{
    static const struct step_shape shapes[] = {{40000, false, false}, {46000, false, false}};
    static const uint32_t same_as[] = {0, 1, 0};
    static const int32_t numbers[] = {4, 5, 6};
    struct rp_sim_asked asked = {.given = 3, .same_as = same_as, .numbers = numbers};
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_answer answer = {0};
    struct rp_arena arena = RP_ARENA_INIT;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    b.parts[1].measured_ns = 103000; /* told apart from the others */
    assert_ok(rp_sim_answer(b.list, 2, &asked, &arena, &answer, &err), &err);
    assert_int_equal(answer.baseline.ranks, 3);
    assert_int_equal(answer.baseline.step_ns, (100000 + 103000 + 100000) / 3);
    assert_int_equal(answer.nby_rank, 3);
    assert_int_equal(answer.by_rank[0].rank, 4);
    assert_int_equal(answer.by_rank[2].rank, 6);
    assert_int_equal(answer.by_rank[2].compute_ns, answer.by_rank[0].compute_ns);
    assert_true(answer.by_rank[1].compute_ns > answer.by_rank[0].compute_ns);
    assert_non_null(strstr(answer.notes[0], "simulated once: 2 of 3"));
    rp_arena_release(&arena);
    bench_release(&b);
}

/* Whether the answer about a what-if says that transfers of one size hide the latency. */
static bool doubts_transfers(const char *whatif)
{
    const struct step_shape shapes[] = {{40000, false, false}, {46000, false, false}};
    const struct rp_sim_asked asked = {.whatifs = &whatif, .nwhatifs = 1};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_sim_answer answer = {0};
    struct rp_err err = RP_ERR_INIT;
    bool doubts = false;
    struct bench b;

    bench_init(&b, 2, shapes);
    assert_ok(rp_sim_answer(b.list, 2, &asked, &arena, &answer, &err), &err);
    for (size_t i = 0; i < answer.nnotes; i++)
        doubts |= strstr(answer.notes[i], "have about the same size") != NULL;
    rp_arena_release(&arena);
    bench_release(&b);
    return doubts;
}

static void only_changes_of_transfers_doubt_them(void **state)
{
    UNUSED_STATE(state);
    assert_true(doubts_transfers("net.bandwidth=2x"));
    assert_false(doubts_transfers("scale:gpu=2"));
}

int test_predict(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gains_are_those_of_simulate),
        cmocka_unit_test(a_malformed_what_if_is_an_error),
        cmocka_unit_test(impossible_what_ifs_are_rows),
        cmocka_unit_test(equal_ranks_are_simulated_once),
        cmocka_unit_test(only_changes_of_transfers_doubt_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
