/* SPDX-License-Identifier: Apache-2.0 */
/* Gates: what limits mean for metrics that get worse upwards and downwards, the noise, targets, and
   what was accepted. */
#include "explain/diff/gates.h"
#include "unit.h"

#include <math.h>

struct gates_test {
    struct rp_arena arena;
    struct rp_gates gates;
    struct rp_gate_values values[RP_GATE_METRICS];
    struct rp_gate_row *rows;
    size_t n;
};

static void gates_begin(struct gates_test *t, const char *text)
{
    int i;

    *t = (struct gates_test){.arena = RP_ARENA_INIT};
    for (i = 0; i < RP_GATE_METRICS; i++)
        t->values[i] = (struct rp_gate_values){NAN, NAN, NAN};
    assert_code(rp_gates_parse(&t->gates, text, "test", NULL), RP_OK);
}

/* Whether the only gate passes with these values. */
static bool passes(const char *text, enum rp_gate_metric metric, struct rp_gate_values values)
{
    struct gates_test t;
    bool failed = false;

    gates_begin(&t, text);
    t.values[metric] = values;
    assert_code(rp_gates_decide(&t.gates, t.values, &t.arena, &t.rows, &t.n, &failed, NULL), RP_OK);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.rows[0].passed, !failed);
    rp_gates_release(&t.gates);
    rp_arena_release(&t.arena);
    return !failed;
}

#define VALUES(base, fresh, noise) ((struct rp_gate_values){base, fresh, noise})

static void limits_have_a_direction(void **state)
{
    UNUSED_STATE(state);
    assert_true(passes("step=2%", RP_GATE_STEP, VALUES(1e6, 1.02e6, 0)));
    assert_false(passes("step=2%", RP_GATE_STEP, VALUES(1e6, 1.0201e6, 0)));
    assert_true(passes("step=2%", RP_GATE_STEP, VALUES(1e6, 0.5e6, 0)));
    assert_true(passes("step=50us", RP_GATE_STEP, VALUES(1e6, 1.05e6, NAN)));
    assert_false(passes("step=50us", RP_GATE_STEP, VALUES(1e6, 1.0501e6, NAN)));
    assert_true(passes("mfu=-1pt", RP_GATE_MFU, VALUES(0.4, 0.3901, 0)));
    assert_false(passes("mfu=-1pt", RP_GATE_MFU, VALUES(0.4, 0.3899, 0)));
    assert_true(passes("mfu=1pt", RP_GATE_MFU, VALUES(0.4, 0.9, 0)));
    assert_false(passes("tokens_per_s=10%", RP_GATE_TOKENS, VALUES(1000, 899, 0)));
    assert_true(passes("tokens_per_s=100", RP_GATE_TOKENS, VALUES(1000, 900, 0)));
    assert_false(passes("memory_peak=1MB", RP_GATE_MEMORY, VALUES(1e9, 1.0011e9, NAN)));
}

static void within_the_noise_nothing_fails(void **state)
{
    UNUSED_STATE(state);
    assert_true(passes("step=2%", RP_GATE_STEP, VALUES(1e6, 1.1e6, 2e5)));
    assert_false(passes("step=2%", RP_GATE_STEP, VALUES(1e6, 1.3e6, 2e5)));
    assert_true(passes("mfu=-1pt", RP_GATE_MFU, VALUES(0.4, 0.35, 0.06)));
}

static void targets_are_of_the_new_run_alone(void **state)
{
    UNUSED_STATE(state);
    assert_true(passes("step<=1ms", RP_GATE_STEP, VALUES(NAN, 1e6, 1e9)));
    assert_false(passes("step<=1ms", RP_GATE_STEP, VALUES(2e6, 1.001e6, 1e9)));
    assert_true(passes("mfu>=40%", RP_GATE_MFU, VALUES(NAN, 0.4, NAN)));
    assert_false(passes("mfu>=40%", RP_GATE_MFU, VALUES(0.1, 0.3999, NAN)));
    assert_false(passes("memory_peak<=1GB", RP_GATE_MEMORY, VALUES(NAN, 1.01e9, NAN)));
}

static void what_is_not_known_decides_nothing(void **state)
{
    struct gates_test t;
    struct rp_err err = {0};
    bool failed = false;

    UNUSED_STATE(state);
    gates_begin(&t, "memory_peak=3%");
    t.values[RP_GATE_MEMORY].fresh = 1;
    assert_code(rp_gates_decide(&t.gates, t.values, &t.arena, &t.rows, &t.n, &failed, &err),
                RP_FORMAT);
    assert_contains(err.text, "the base does not have it; it needs memory events");
    rp_gates_release(&t.gates);
    rp_arena_release(&t.arena);
}

/* A limit and all that was accepted add up. */
static void what_was_accepted_widens_the_limit(void **state)
{
    struct gates_test t;
    bool failed = false;

    UNUSED_STATE(state);
    gates_begin(&t, "step=2%,idle=2%");
    assert_code(
        rp_vec_push(&t.gates.accepted,
                    ((struct rp_gate_accepted){
                        {RP_GATE_STEP, RP_GATE_SHARE, 0.05}, "2026-11-09", "larger vocabulary"}),
                    NULL),
        RP_OK);
    assert_code(
        rp_vec_push(&t.gates.accepted,
                    ((struct rp_gate_accepted){
                        {RP_GATE_STEP, RP_GATE_AMOUNT, 1e4}, "2026-11-10", "longer sequences"}),
                    NULL),
        RP_OK);
    t.values[RP_GATE_STEP] = VALUES(1e6, 1.08e6, 0);
    t.values[RP_GATE_IDLE] = VALUES(1e6, 1.08e6, 0);
    assert_code(rp_gates_decide(&t.gates, t.values, &t.arena, &t.rows, &t.n, &failed, NULL), RP_OK);
    assert_true(fabs(t.rows[0].limit - 8e4) < 1e-6 && fabs(t.rows[0].accepted - 6e4) < 1e-6);
    assert_true(t.rows[0].passed);
    assert_string_equal(t.rows[0].reason, "longer sequences");
    assert_false(t.rows[1].passed); /* it is about another metric */
    rp_gates_release(&t.gates);
    rp_arena_release(&t.arena);
}

int test_gates(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_have_a_direction),
        cmocka_unit_test(within_the_noise_nothing_fails),
        cmocka_unit_test(targets_are_of_the_new_run_alone),
        cmocka_unit_test(what_is_not_known_decides_nothing),
        cmocka_unit_test(what_was_accepted_widens_the_limit),
    };

    return cmocka_run_group_tests_name("gates", tests, NULL, NULL);
}
