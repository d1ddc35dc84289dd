/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a trial directory that stand for each other: operators, and BytePS' keys. */
#include "unit.h"

#include "job/records.h"

static enum rp_code read_metadata(const char *text, struct rp_job_rank *rank, struct rp_err *err)
{
    struct rp_input *in;
    enum rp_code code;

    memset(rank, 0, sizeof *rank);
    rp_arena_init(&rank->arena);
    assert_ok(rp_input_open_memory("metadata.json", text, strlen(text), NULL, &in, err), err);
    code = rp_job_read_metadata(in, rank, err);
    rp_input_close(in);
    return code;
}

static void release(struct rp_job_rank *rank)
{
    rp_vec_release(&rank->edges);
    rp_arena_release(&rank->arena);
}

static void edges_from_names(void **state)
{
    static const char text[] =
        "{\"a\": {\"op\": \"Mul\", \"input\": [{\"name\": \"x:0\"}], \"output\": [{\"name\": \"a:0\", "
        "\"shape\": [1, 2]}]},"
        " \"T/BytePSPushPull_7\": {\"op\": \"H\", \"input\": [{\"name\": \"a:0\"}], \"output\": "
        "[{\"name\": \"r:0\"}]},"
        " \"u\": {\"input\": [{\"name\": \"r:0\"}, {\"name\": \"a:0\"}], \"output\": []}}";
    struct rp_err err = RP_ERR_INIT;
    struct rp_job_rank rank;

    UNUSED_STATE(state);
    assert_ok(read_metadata(text, &rank, &err), &err);
    assert_int_equal(rank.edges.n, 3);
    assert_string_equal(rank.edges.at[0].from, "a");
    assert_int_equal(rank.edges.at[0].to_tensor, 7);
    assert_int_equal(rank.edges.at[1].from_tensor, 7);
    assert_string_equal(rank.edges.at[2].to, "u");
    release(&rank);
}

static void what_is_no_description(void **state)
{
    static const char *const texts[] = {"", "[]", "{\"a\": 1}",
                                        "{\"a\": {\"input\": [{\"name\": 1}]}}",
                                        "{\"a\": {\"input\": [{\"name\": \"x\"}"};
    struct rp_job_rank rank;
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct rp_err err = RP_ERR_INIT;

        assert_int_not_equal(read_metadata(texts[i], &rank, &err), RP_OK);
        release(&rank);
    }
}

static void keys_and_their_tensors(void **state)
{
    static const char text[] = "Opt/BytePSPushPull.5_6: 65536 65537\n"
                               "other: 3\n"
                               "Opt/BytePSPushPull_9: 12\r\n"
                               "Opt/BytePSPushPull.x: 1\n"
                               "a/PushPull_1/PushPull.20-21: 8\n" /* the last one counts */
                               "PushPull_30+31: [7, 123456789012345678]\n"
                               "PushPullx30: 9\n"
                               "PushPull_40";
    static const struct rp_job_key want[] = {{.tensor = 5, .key = 65536, .part = 0},
                                             {.tensor = 5, .key = 65537, .part = 1},
                                             {.tensor = 6, .key = 65536, .part = 0},
                                             {.tensor = 6, .key = 65537, .part = 1},
                                             {.tensor = 9, .key = 12, .part = 0},
                                             {.tensor = 20, .key = 8, .part = 0},
                                             {.tensor = 30, .key = 7, .part = 0},
                                             {.tensor = 30, .key = 123456789012345678, .part = 1},
                                             {.tensor = 31, .key = 7, .part = 0},
                                             {.tensor = 31, .key = 123456789012345678, .part = 1}};
    struct rp_err err = RP_ERR_INIT;
    struct rp_job job = {0};

    UNUSED_STATE(state);
    assert_ok(rp_job_read_keys(text, strlen(text), &job, &err), &err);
    assert_int_equal(job.keys.n, sizeof want / sizeof *want);
    for (size_t i = 0; i < job.keys.n; i++) {
        assert_int_equal(job.keys.at[i].tensor, want[i].tensor);
        assert_int_equal(job.keys.at[i].key, want[i].key);
        assert_int_equal(job.keys.at[i].part, want[i].part);
    }
    rp_vec_release(&job.keys);
}

int test_metadata(void);
int test_metadata(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(edges_from_names),
                                       cmocka_unit_test(what_is_no_description),
                                       cmocka_unit_test(keys_and_their_tensors)};

    return cmocka_run_group_tests_name("job_metadata", tests, NULL, NULL);
}
