/* SPDX-License-Identifier: Apache-2.0 */
/* The traces of a trial directory: operators of TensorFlow, Horovod's timeline, logs of BytePS. */
#include "unit.h"

#include "formats/chrome_fixture.h"
#include "job/records.h"

static void release(struct rp_job_rank *r)
{
    rp_vec_release(&r->ops);
    rp_vec_release(&r->spans);
    rp_vec_release(&r->transfers);
    rp_arena_release(&r->arena);
}

/* Times of Chrome's JSON are microseconds. The step is a number or a text; what has none, or no
   name of its own, belongs to no step. */
static void operators_have_a_name_and_a_step(void **state)
{
    struct rp_import in =
        load("[{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"pid\":1,\"tid\":1,\"name\":\"a\",\"args\":"
             "{\"long_name\":\"StatefulPartitionedCall/net/conv:Conv2D\",\"group_id\":3}},"
             "{\"ph\":\"X\",\"ts\":5,\"dur\":1,\"pid\":1,\"tid\":1,\"name\":\"b\",\"args\":"
             "{\"long_name\":\"a:b:c\",\"group_id\":\"4\"}},"
             "{\"ph\":\"X\",\"ts\":7,\"dur\":1,\"pid\":1,\"tid\":1,\"name\":\"c\",\"args\":"
             "{\"long_name\":\"x\",\"group_id\":\"none\"}},"
             "{\"ph\":\"X\",\"ts\":8,\"dur\":1,\"pid\":1,\"tid\":1,\"name\":\"d\",\"args\":"
             "{\"long_name\":\"x\"}},"
             "{\"ph\":\"X\",\"ts\":9,\"dur\":1,\"pid\":1,\"tid\":1,\"name\":\"e\",\"args\":"
             "{\"group_id\":5}}]");
    struct rp_err err = RP_ERR_INIT;
    struct rp_job_rank r = {0};

    UNUSED_STATE(state);
    assert_ok(rp_job_read_ops(in.trace, &r, &err), &err);
    assert_int_equal(r.ops.n, 2);
    assert_string_equal(r.ops.at[0].name, "net/conv");
    assert_int_equal(r.ops.at[0].begin_ns, 1000);
    assert_int_equal(r.ops.at[0].dur_ns, 2000);
    assert_int_equal(r.ops.at[0].step, 3);
    assert_string_equal(r.ops.at[1].name, "a:b");
    assert_int_equal(r.ops.at[1].step, 4);
    release(&r);
    rp_trace_free(in.trace);
}

/* A process of the timeline is a tensor, "Sync" the agreement on them. */
static void the_timeline_has_phases(void **state)
{
    struct rp_import in = load(
        "[{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"Sync\"}},"
        "{\"ph\":\"M\",\"pid\":2,\"name\":\"process_name\",\"args\":{\"name\":\"allreduce.7_0\"}},"
        "{\"ph\":\"M\",\"pid\":3,\"name\":\"process_name\",\"args\":{\"name\":\"other\"}},"
        "{\"ph\":\"X\",\"ts\":1,\"dur\":4,\"pid\":1,\"tid\":1,\"name\":\"12\"},"
        "{\"ph\":\"X\",\"ts\":2,\"dur\":1,\"pid\":2,\"tid\":1,\"name\":\"QUEUE\"},"
        "{\"ph\":\"X\",\"ts\":3,\"dur\":1,\"pid\":2,\"tid\":1,\"name\":\"MEMCPY_IN_FUSION_BUFFER\"},"
        "{\"ph\":\"X\",\"ts\":4,\"dur\":1,\"pid\":2,\"tid\":1,\"name\":\"NCCL_ALLREDUCE\"},"
        "{\"ph\":\"X\",\"ts\":5,\"dur\":1,\"pid\":2,\"tid\":1,\"name\":\"MEMCPY_OUT_FUSION_BUFFER\"},"
        "{\"ph\":\"X\",\"ts\":6,\"dur\":1,\"pid\":2,\"tid\":1,\"name\":\"ALLREDUCE\"},"
        "{\"ph\":\"X\",\"ts\":7,\"dur\":1,\"pid\":3,\"tid\":1,\"name\":\"QUEUE\"}]");
    static const uint8_t phases[] = {RP_JOB_QUEUE, RP_JOB_COPY_IN, RP_JOB_REDUCE, RP_JOB_COPY_OUT};
    struct rp_err err = RP_ERR_INIT;
    struct rp_job_rank r = {0};

    UNUSED_STATE(state);
    assert_ok(rp_job_read_timeline(in.trace, &r, &err), &err);
    assert_int_equal(r.spans.n, 5);
    assert_int_equal(r.spans.at[0].phase, RP_JOB_SYNC);
    assert_int_equal(r.spans.at[0].tensor, 12);
    assert_int_equal(r.spans.at[0].end_ns, 5000);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(r.spans.at[i + 1].phase, phases[i]);
        assert_int_equal(r.spans.at[i + 1].tensor, 7);
        assert_int_equal(r.spans.at[i + 1].begin_ns, 1000 * ((int64_t)i + 2));
    }
    release(&r);
    rp_trace_free(in.trace);
}

#define MESSAGE(ph, ts, name)                                               \
    "{\"ph\":\"" ph "\",\"ts\":" ts ",\"pid\":1,\"tid\":1,\"name\":\"" name \
    "\",\"args\":{\"key\":65536,\"sender\":9,\"receiver\":8}},"

/* What has a length left and arrived; the beginning alone left, the end alone arrived. */
static void messages_have_two_ends(void **state)
{
    struct rp_import in = load(
        "[{\"ph\":\"X\",\"ts\":1,\"dur\":4,\"pid\":1,\"tid\":1,\"name\":\"w.PUSH_REQ\",\"args\":"
        "{\"key\":65536,\"sender\":9,\"receiver\":8}}," MESSAGE(
            "B", "7",
            "w.PULL_REQ") "{\"ph\":\"X\",\"ts\":9,\"dur\":2,\"pid\":1,\"tid\":2,\"name\":\"w.SUM\",\"args\":"
                          "{\"key\":65537}},"
                          "{\"ph\":\"X\",\"ts\":12,\"dur\":3,\"pid\":1,\"tid\":2,\"name\":\"w.COPY_MERGED\",\"args\":"
                          "{\"key\":65537}},"
                          "{\"ph\":\"X\",\"ts\":20,\"dur\":3,\"pid\":1,\"tid\":2,\"name\":\"w.WAIT\",\"args\":"
                          "{\"key\":65537}}]");
    struct rp_err err = RP_ERR_INIT;
    struct rp_job_node n = {.id = -1};

    UNUSED_STATE(state);
    assert_ok(rp_job_read_byteps(in.trace, &n, &err), &err);
    assert_int_equal(n.halves.n, 3);
    assert_true(n.halves.at[0].sent && n.halves.at[0].ns == 1000 && n.halves.at[0].key == 65536);
    assert_int_equal(n.halves.at[0].kind, RP_JOB_PUSH);
    assert_true(!n.halves.at[1].sent && n.halves.at[1].ns == 5000);
    assert_int_equal(n.halves.at[1].receiver, 8);
    assert_true(n.halves.at[2].sent && n.halves.at[2].ns == 7000);
    assert_int_equal(n.halves.at[2].kind, RP_JOB_PULL);
    assert_int_equal(n.id, -1); /* it left one node and arrived at the other */
    assert_int_equal(n.ops.n, 2);
    assert_true(!n.ops.at[0].merged && n.ops.at[0].begin_ns == 9000 && n.ops.at[0].dur_ns == 2000);
    assert_true(n.ops.at[1].merged && n.ops.at[1].key == 65537);
    rp_vec_release(&n.halves);
    rp_vec_release(&n.ops);
    rp_trace_free(in.trace);
}

static enum rp_code read_tensors(const char *text, struct rp_job *job, struct rp_err *err)
{
    struct rp_input *in;
    enum rp_code code;

    memset(job, 0, sizeof *job);
    rp_arena_init(&job->arena);
    assert_ok(rp_input_open_memory("metadata.json", text, strlen(text), NULL, &in, err), err);
    code = rp_job_read_tensors(in, job, err);
    rp_input_close(in);
    return code;
}

/* Of a communication the first input counts. A size that is not known is -1. */
static void tensors_have_sizes(void **state)
{
#define COMM(id, shape, type)                                                                  \
    "\"HorovodAllreduce." id "_0\": {\"op\": \"H\", \"input\": [{\"name\": \"g\", " shape type \
    "}, {\"name\": \"h\", \"shape\": [9]}]},"
    static const char text[] = "{" COMM("5", "\"shape\": [3, 4]", ", \"dtype\": \"float16\"")
        COMM("1", "\"shape\": [3, 4]", "") COMM("2", "\"shape\": []", ", \"dtype\": \"double\"")
            COMM("3", "\"shape\": [3, null]", "") COMM("4", "\"shape\": \"unknown\"", "")
                COMM("6", "\"shape\": [4611686018427387904, 4]",
                     "") "\"net/conv\": {\"op\": \"Conv2D\", \"input\": [{\"shape\": [2]}]}}";
    static const int64_t bytes[] = {48, 8, -1, -1, 24, -1};
    struct rp_err err = RP_ERR_INIT;
    struct rp_job job;

    UNUSED_STATE(state);
    assert_ok(read_tensors(text, &job, &err), &err);
    assert_int_equal(job.tensors.n, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(job.tensors.at[i].id, i + 1);
        assert_int_equal(job.tensors.at[i].bytes, bytes[i]);
    }
    assert_int_equal(job.types.n, 7);
    assert_string_equal(job.types.at[6].op, "net/conv");
    assert_string_equal(job.types.at[6].type, "Conv2D");
    rp_vec_release(&job.tensors);
    rp_vec_release(&job.types);
    rp_arena_release(&job.arena);
}

/* What ends too early or is not an object is said, and not taken for a job without tensors. */
static void damaged_tensors_are_refused(void **state)
{
    static const char *const texts[] = {"{\"a\": {}", "{\"a\": ", "{\"a\" 1}", "{} {}"};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rp_err err = RP_ERR_INIT;
        struct rp_job job;

        assert_code(read_tensors(texts[i], &job, &err), RP_FORMAT);
        rp_vec_release(&job.tensors);
        rp_vec_release(&job.types);
        rp_arena_release(&job.arena);
    }
}

/* As many links as there is room for: all of them are the rank's. */
static void rings_may_have_many_links(void **state)
{
    enum { MOST = 1024 };
    static char text[64 + 32 * MOST] = "{\"Ring\": {\"0\": \"";
    struct rp_err err = RP_ERR_INIT;
    struct rp_job_rank r = {0};
    size_t n = strlen(text);

    UNUSED_STATE(state);
    for (int i = 0; i < MOST; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s3[a] -> %d[b]", i ? "," : "", i + 4);
    snprintf(text + n, sizeof text - n, "\"}}");
    assert_ok(rp_job_read_rings(text, strlen(text), &r, &err), &err);
    assert_int_equal(r.number, 3);
    assert_int_equal(r.links.n, MOST);
    assert_int_equal(r.links.at[MOST - 1].to, MOST + 3);
    rp_vec_release(&r.links);
}

int test_records(void);
int test_records(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operators_have_a_name_and_a_step),
                                       cmocka_unit_test(the_timeline_has_phases),
                                       cmocka_unit_test(messages_have_two_ends),
                                       cmocka_unit_test(damaged_tensors_are_refused),
                                       cmocka_unit_test(tensors_have_sizes),
                                       cmocka_unit_test(rings_may_have_many_links)};

    return cmocka_run_group_tests_name("job_records", tests, NULL, NULL);
}
