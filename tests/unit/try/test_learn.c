/* SPDX-License-Identifier: Apache-2.0 */
/* What a call of `try --learn` keeps of its rows. */
#include "outcomes/outcomes.h"
#include "try/session.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static struct rp_try_variant row(const char *change, enum rp_try_state state,
                                 enum rp_try_verdict verdict, bool predicted)
{
    return (struct rp_try_variant){.nparts = 1,
                                   .parts = {rp_try_change_find(change, strlen(change))},
                                   .state = state,
                                   .verdict = verdict,
                                   .interval = {.median = log(0.75)},
                                   .predicted = predicted,
                                   .change = -0.2};
}

static void only_what_was_measured_and_predicted_is_kept(void **state)
{
    struct rp_try_session *s = calloc(1, sizeof *s);
    struct rp_outcomes all = {0};
    struct rp_err err = RP_ERR_INIT;
    char folder[] = "/tmp/reprise-unit-XXXXXX", path[64];
    size_t kept = 0;

    UNUSED_STATE(state);
    assert_true(mkdtemp(folder) && !setenv("XDG_DATA_HOME", folder, 1));
    rp_try_facts_add(&s->facts, "device-name", "NVIDIA\tH200");
    rp_try_facts_add(&s->facts, "framework", "torch 2.15.0");
    rp_try_facts_add(&s->facts, "parameters", "903466");
    s->nvariants = 2;
    s->variants[s->nvariants++] = row("bf16", RP_TRY_MEASURED, RP_TRY_FASTER, true);
    s->variants[s->nvariants++] = row("fused", RP_TRY_MEASURED, RP_TRY_NOISY, true);
    s->variants[s->nvariants++] = row("fused", RP_TRY_MEASURED, RP_TRY_SLOWER, false);
    s->variants[s->nvariants++] = row("fused", RP_TRY_EARLIER, RP_TRY_FASTER, true);
    s->variants[s->nvariants++] = row("fused", RP_TRY_FAILED, RP_TRY_FASTER, true);
    s->variants[s->nvariants++] = row("gc", RP_TRY_MEASURED, RP_TRY_FASTER, true);
    assert_ok(rp_try_learn(s, &kept, &err), &err);
    assert_int_equal(kept, 1);
    assert_ok(rp_outcomes_read(&all, &err), &err);
    assert_int_equal(all.list.n, 1);
    assert_string_equal(all.list.at[0].change, "dtype=bf16");
    assert_string_equal(all.list.at[0].device, "NVIDIA?H200");
    assert_int_equal(all.list.at[0].parameters, 903466);
    assert_true(fabs(all.list.at[0].predicted - 0.8) < 1e-5);
    assert_true(fabs(all.list.at[0].measured - 0.75) < 1e-5);
    rp_outcomes_release(&all);
    free(s);
    snprintf(path, sizeof path, "%s/reprise/outcomes.tsv", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/reprise", folder);
    rmdir(path);
    rmdir(folder);
    unsetenv("XDG_DATA_HOME");
}

int test_learn(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_was_measured_and_predicted_is_kept)};

    return cmocka_run_group_tests_name("learn", tests, NULL, NULL);
}
