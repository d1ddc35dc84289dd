/* SPDX-License-Identifier: Apache-2.0 */
/* When two replays are said to differ: not when they do not, and where they do. */
#include "unit.h"

#include "exec/engine/timing.h"
#include "replay/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *state >> 33;
}

/* Runs of about `ns` with noise of up to 2 %, and one in ten three times as long. */
static struct rp_timing runs_of(int64_t ns, size_t n, uint64_t *state)
{
    struct rp_timing t = {0};
    struct rp_err err = RP_ERR_INIT;

    for (size_t i = 0; i < n; i++) {
        int64_t one = ns + (int64_t)(next(state) % (uint64_t)(ns / 50));

        assert_ok(rp_vec_push(&t.runs, next(state) % 10 ? one : 3 * one, &err), &err);
    }
    assert_ok(rp_timing_sum_up(&t, &err), &err);
    return t;
}

static const char *verdict(struct rp_timing *then, struct rp_timing *now, int64_t machine_then,
                           double waited_then, struct rp_replay_compared *out)
{
    char path[] = "/tmp/replay-compare-XXXXXX";
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_replay root = {.run_ns = {.p50 = now->p50_ns,
                                        .n = (int64_t)now->n,
                                        .blocks = now->blocks,
                                        .nblocks = now->nblocks,
                                        .machine = 20000}};
    FILE *f = fdopen(mkstemp(path), "w");
    const char *said;

    assert_non_null(f);
    fprintf(f,
            "{\"schema\": \"reprise.replay/1\", \"engine\": \"fast\", \"run_ns\": {\"p50\": %lld, "
            "\"n\": %zu, \"machine\": %lld, \"waited_ratio\": %g, \"blocks\": [",
            (long long)then->p50_ns, then->n, (long long)machine_then, waited_then);
    for (size_t i = 0; i < then->nblocks; i++)
        fprintf(f, "%s%lld", i ? ", " : "", (long long)then->blocks[i]);
    fprintf(f, "]}}\n");
    fclose(f);
    assert_ok(rp_replay_compare(path, &arena, &root, &err), &err);
    unlink(path);
    *out = *root.compared;
    said = root.compared->verdict;
    rp_arena_release(&arena);
    rp_timing_release(then);
    rp_timing_release(now);
    return said;
}

static void equal_runs_do_not_differ(void **state)
{
    struct rp_replay_compared c;
    uint64_t seed = 1;

    UNUSED_STATE(state);
    for (int i = 0; i < 200; i++) {
        struct rp_timing a = runs_of(1000000, 5 + (size_t)i, &seed);
        struct rp_timing b = runs_of(1000000, 300, &seed);

        assert_string_equal(verdict(&a, &b, 20000, 0, &c), "no difference");
    }
}

static void a_tenth_is_seen(void **state)
{
    struct rp_replay_compared c;
    uint64_t seed = 1;

    UNUSED_STATE(state);
    for (int i = 0; i < 100; i++) {
        struct rp_timing a = runs_of(1000000, 100 + (size_t)i, &seed);
        struct rp_timing b = runs_of(1100000, 100, &seed);
        struct rp_timing d = runs_of(1100000, 40, &seed);
        struct rp_timing e = runs_of(1000000, 40, &seed);

        assert_string_equal(verdict(&a, &b, 20100, 0.005, &c), "slower");
        assert_true(c.change_ratio > 0.08 && c.change_ratio < 0.12 && c.p_value < 0.001);
        assert_string_equal(verdict(&d, &e, 20000, 0, &c), "faster");
    }
}

/* The same difference on a machine that changed, or whose processors were busy. */
static void what_the_machine_did_does_not_count(void **state)
{
    struct rp_replay_compared c;
    uint64_t seed = 1;
    struct rp_timing a = runs_of(1000000, 100, &seed), b = runs_of(1100000, 100, &seed);

    UNUSED_STATE(state);
    assert_string_equal(verdict(&a, &b, 18000, 0, &c), "no difference");
    assert_true(c.machine_ratio > 0.1 && c.noise_ratio > 0.13);
    a = runs_of(1000000, 100, &seed);
    b = runs_of(1100000, 100, &seed);
    assert_string_equal(verdict(&a, &b, 20000, 0.1, &c), "no difference");
    a = runs_of(1000000, 1, &seed); /* of one run nothing can be said */
    b = runs_of(2000000, 1, &seed);
    assert_string_equal(verdict(&a, &b, 20000, 0, &c), "no difference");
}

/* Runs whose blocks have these times. */
static struct rp_timing blocks_of(const int64_t *ns, size_t n)
{
    struct rp_timing t = {.p50_ns = ns[0], .n = n, .nblocks = n};

    memcpy(t.blocks, ns, n * sizeof *ns);
    return t;
}

/* The normal approximation of the rank-sum test, with a correction for continuity. Of two times
   four blocks that do not overlap 16 of 16 pairs are in order: 7.5 from the middle, standard
   deviation sqrt(16 * 9 / 12). Four ties leave 6 and sqrt(16 * 9 / 12 * 3 / 4) - 0.5. */
static void p_values_are_those_of_ranks(void **state)
{
    static const int64_t low[] = {1000, 1001, 1002, 1003}, high[] = {2000, 2001, 2002, 2003},
                         mixed[] = {1003, 1003, 1003, 1003};
    struct rp_timing a = blocks_of(low, 4), b = blocks_of(high, 4);
    struct rp_replay_compared c;

    UNUSED_STATE(state);
    verdict(&a, &b, 20000, 0, &c);
    assert_float_equal(c.p_value, 0.0303828, 1e-6);
    a = blocks_of(low, 4);
    b = blocks_of(mixed, 4);
    verdict(&a, &b, 20000, 0, &c);
    assert_float_equal(c.p_value, 0.0667530, 1e-6);
    a = blocks_of(low, 3);
    b = blocks_of(high, 3);
    verdict(&b, &a, 20000, 0, &c);
    assert_float_equal(c.p_value, 0.0808556, 1e-6);
}

int test_compare(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_runs_do_not_differ),
        cmocka_unit_test(a_tenth_is_seen),
        cmocka_unit_test(what_the_machine_did_does_not_count),
        cmocka_unit_test(p_values_are_those_of_ranks),
    };

    return cmocka_run_group_tests_name("replay_compare", tests, NULL, NULL);
}
