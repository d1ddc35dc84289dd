/* SPDX-License-Identifier: Apache-2.0 */
/* Which changes a plan takes. */
#include "opt/optimize.h"
#include "sim/run_fixtures.h"

static bool wants_none(const struct rp_whatif *row, void *user)
{
    (void)row;
    (void)user;
    return false;
}

/* Whether a plan takes a change that leaves this part of a step. */
static bool is_taken(const char *text)
{
    const struct step_shape usual = {40000, true, false};
    const struct rp_changes_asked asked = {.wants = wants_none, .nmore = 1, .more = &text};
    struct rp_opt_limits limits = {.until_ns = INT64_MAX, .seed = 1};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_changes changes;
    struct rp_worlds x;
    struct bench b;
    bool taken;

    bench_init(&b, 1, &usual);
    assert_code(rp_worlds_init(&x, b.list, 1, NULL, NULL), RP_OK);
    assert_code(rp_changes_try(&x, &asked, &arena, &changes, NULL), RP_OK);
    assert_non_null(rp_changes_find(&changes, text));
    assert_code(rp_opt_combine_whatifs(&x, &limits, "", NULL, &arena, &changes, NULL), RP_OK);
    taken = rp_changes_find(&changes, text)->chosen;
    rp_worlds_release(&x);
    rp_arena_release(&arena);
    bench_release(&b);
    return taken;
}

static void a_change_must_be_worth_it(void **state)
{
    UNUSED_STATE(state);
    assert_true(is_taken("scale:all=0.9978"));
    assert_false(is_taken("scale:all=0.9982"));
}

int test_combine(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_change_must_be_worth_it)};

    return cmocka_run_group_tests_name("combine", tests, NULL, NULL);
}
