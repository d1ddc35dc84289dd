/* SPDX-License-Identifier: Apache-2.0 */
/* What is said about traces that were read, and what makes an answer incomplete. */
#include "dataset/dataset.h"
#include "dataset/trust.h"
#include "io/sources.h"
#include "unit.h"

/* Whether the answer over one trace is complete; kind: of its only remark, "" for none. */
static bool is_complete(const struct rp_trust_trace *trace, const char *kind)
{
    static const struct rp_type type = {"none", 8, NULL, NULL};
    static char given[] = "run/";
    const char *self = "/proc/self/exe";
    struct rp_dataset dataset = {.given = given, .ngiven = 1};
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *result;
    struct rp_trust_log log;
    bool complete;

    assert_ok(rp_sources_open(&self, 1, NULL, &dataset.sources, &err), &err);
    assert_ok(rp_result_new(&type, &result, &err), &err);
    rp_trust_log_init(&log);
    assert_ok(rp_vec_push(&log.traces, *trace, &err), &err);
    assert_ok(rp_trust_finish(&log, &dataset, false, result, &err), &err);
    assert_int_equal(result->trust.nremarks, *kind ? 1 : 0);
    if (*kind)
        assert_string_equal(result->trust.remarks[0].kind, kind);
    complete = result->trust.complete;
    rp_trust_log_release(&log);
    rp_result_free(result);
    rp_sources_close(dataset.sources);
    return complete;
}

static void wrong_times_matter_from_one_in_a_hundred(void **state)
{
    struct rp_trust_trace t = {.path = "run/rank0.json", .nevents = 1000, .health.events = 1000};

    UNUSED_STATE(state);
    assert_true(is_complete(&t, ""));
    t.health.negative_dur = 5;
    t.health.missing_ts = 4;
    assert_true(is_complete(&t, "damaged"));
    t.health.absurd_dur = 1;
    assert_false(is_complete(&t, "damaged"));
}

static void what_is_lost_makes_an_answer_incomplete(void **state)
{
    struct rp_trust_trace t = {.path = "run/rank0.json", .nevents = 1000, .health.events = 1000};

    UNUSED_STATE(state);
    t.health.lost_events = 1;
    assert_false(is_complete(&t, "lost"));
    t.health.lost_events = 0;
    t.overwritten = 1;
    assert_false(is_complete(&t, "overwritten"));
}

int test_remarks(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_times_matter_from_one_in_a_hundred),
        cmocka_unit_test(what_is_lost_makes_an_answer_incomplete),
    };

    return cmocka_run_group_tests_name("remarks", tests, NULL, NULL);
}
