/* SPDX-License-Identifier: Apache-2.0 */
/* What is said about traces that were read, and what makes an answer incomplete. */
#include "dataset/dataset.h"
#include "dataset/trust.h"
#include "io/sources.h"
#include "unit.h"

/* Whether the answer over traces is complete, and its first remark; how many there are. */
static size_t remarks_of(const struct rp_trust_trace *traces, size_t n, bool *complete,
                         char text[400])
{
    static const struct rp_type type = {"none", 8, NULL, NULL};
    static char given[] = "run/";
    const char *self = "/proc/self/exe";
    struct rp_dataset dataset = {.given = given, .ngiven = 1};
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *result;
    struct rp_trust_log log;
    size_t count;

    assert_ok(rp_sources_open(&self, 1, NULL, &dataset.sources, &err), &err);
    assert_ok(rp_result_new(&type, &result, &err), &err);
    rp_trust_log_init(&log);
    for (size_t i = 0; i < n; i++)
        assert_ok(rp_vec_push(&log.traces, traces[i], &err), &err);
    assert_ok(rp_trust_finish(&log, &dataset, false, result, &err), &err);
    *complete = result->trust.complete;
    count = result->trust.nremarks;
    snprintf(text, 400, "%s %s", count ? result->trust.remarks[0].kind : "",
             count ? result->trust.remarks[0].text : "");
    rp_trust_log_release(&log);
    rp_result_free(result);
    rp_sources_close(dataset.sources);
    return count;
}

/* kind: of the only remark, "" for none. */
static bool is_complete(const struct rp_trust_trace *trace, const char *kind)
{
    bool complete;
    char text[400];

    assert_int_equal(remarks_of(trace, 1, &complete, text), *kind ? 1 : 0);
    assert_memory_equal(text, kind, strlen(kind));
    return complete;
}

static void the_first_to_stop_has_an_edge(void **state)
{
    struct rp_trust_trace t[3];
    bool complete;
    char text[400];

    UNUSED_STATE(state);
    for (size_t i = 0; i < 3; i++)
        t[i] = (struct rp_trust_trace){.path = i == 2 ? "run/b" : "run/a",
                                       .source = i,
                                       .number = (int32_t)i,
                                       .died = "after x",
                                       .stopped_ns = 5000000000 - (i == 2 ? 20000000 : 0)};
    assert_int_equal(remarks_of(t, 3, &complete, text), 3);
    assert_false(complete);
    assert_non_null(strstr(text, "'run/b'"));
    assert_non_null(strstr(text, "(the first to stop, 20.0 ms before the others, after x)"));
    t[2].stopped_ns++; /* too close to tell */
    assert_int_equal(remarks_of(t, 3, &complete, text), 3);
    assert_non_null(strstr(text, "'run/a'"));
    assert_null(strstr(text, "first"));
    t[2].stopped_ns = 1;
    t[1].stopped_ns = 0; /* not known */
    remarks_of(t, 3, &complete, text);
    assert_null(strstr(text, "first"));
    remarks_of(t + 2, 1, &complete, text); /* alone */
    assert_null(strstr(text, "first"));
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

struct waiting {
    int64_t wait_ns, comm_ns, offset_ns, transfer_ns;
};

struct waits {
    size_t nranks;
    struct waiting *ranks;
};

/* The remark about an answer with one rank that says this; "": none. */
static const char *said_of(struct waiting rank, char text[400])
{
    static const struct rp_field fields[] = {
        RP_FIELD(struct waiting, wait_ns, I64, NS, "waits", "d", RP_NULLABLE),
        RP_FIELD(struct waiting, comm_ns, I64, NS, "comm", "d", 0),
        RP_FIELD(struct waiting, offset_ns, I64, NS, "offset", "d", 0),
        RP_FIELD(struct waiting, transfer_ns, I64, NS, "transfer", "d", RP_NULLABLE), RP_FIELD_END};
    static const struct rp_type item = {"rank", sizeof(struct waiting), fields, NULL};
    static const struct rp_field root_fields[] = {
        RP_FIELD_LIST(struct waits, ranks, &item, "ranks", "d", 0), RP_FIELD_END};
    static const struct rp_type type = {"waits", sizeof(struct waits), root_fields, NULL};
    static char given[] = "run/";
    const char *self = "/proc/self/exe";
    struct rp_dataset dataset = {.given = given, .ngiven = 1};
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *result;
    struct rp_trust_log log;

    *text = '\0';
    assert_ok(rp_sources_open(&self, 1, NULL, &dataset.sources, &err), &err);
    assert_ok(rp_result_new(&type, &result, &err), &err);
    *(struct waits *)result->root = (struct waits){1, &rank};
    rp_trust_log_init(&log);
    assert_ok(rp_trust_finish(&log, &dataset, false, result, &err), &err);
    assert_int_equal(result->trust.complete, result->trust.nremarks == 0);
    if (result->trust.nremarks)
        snprintf(text, 400, "%s: %s", result->trust.remarks[0].kind, result->trust.remarks[0].text);
    rp_trust_log_release(&log);
    rp_result_free(result);
    rp_sources_close(dataset.sources);
    return text;
}

static void an_answer_that_cannot_be_says_so(void **state)
{
    char text[400];

    UNUSED_STATE(state);
    assert_string_equal(said_of((struct waiting){5, 5, -7, 0}, text), "");
    assert_string_equal(said_of((struct waiting){RP_ABSENT_I64, 5, 0, 5}, text), "");
    assert_string_equal(said_of((struct waiting){6, 5, 0, RP_ABSENT_I64}, text), "");
    assert_string_equal(
        said_of((struct waiting){6, 5, 0, 0}, text),
        "impossible: 1 time of this answer cannot be (ranks.wait_ns is 6, more than "
        "comm_ns): do not rely on it, and report it as a defect of reprise");
    assert_non_null(strstr(said_of((struct waiting){-6, -5, 0, RP_ABSENT_I64}, text),
                           "impossible: 2 times of this answer cannot be (ranks.comm_ns is -5)"));
}

int test_remarks(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_times_matter_from_one_in_a_hundred),
        cmocka_unit_test(the_first_to_stop_has_an_edge),
        cmocka_unit_test(what_is_lost_makes_an_answer_incomplete),
        cmocka_unit_test(an_answer_that_cannot_be_says_so),
    };

    return cmocka_run_group_tests_name("remarks", tests, NULL, NULL);
}
