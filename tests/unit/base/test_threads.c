/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/threads.h"

#include <dirent.h>
#include <stdatomic.h>

struct batch {
    _Atomic unsigned ran[1000];
    size_t fail_from; /* jobs from here on fail */
};

static enum rp_code job(void *user, size_t i, struct rp_err *err)
{
    struct batch *batch = user;

    atomic_fetch_add(&batch->ran[i], 1);
    if (i >= batch->fail_from)
        return rp_err_set(err, RP_FORMAT, "job %zu", i);
    return RP_OK;
}

static void every_job_once(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    unsigned threads;
    size_t i, round;

    UNUSED_STATE(state);
    for (threads = 1; threads <= 4; threads++) {
        struct rp_pool *pool;
        struct batch batch = {.fail_from = SIZE_MAX};

        assert_ok(rp_pool_new(threads, &pool, &err), &err);
        assert_int_equal(rp_pool_threads(pool), threads);
        for (round = 0; round < 20; round++)
            assert_ok(rp_pool_each(pool, 1000, job, &batch, &err), &err);
        assert_ok(rp_pool_each(pool, 0, job, &batch, &err), &err);
        for (i = 0; i < 1000; i++)
            assert_int_equal(atomic_load(&batch.ran[i]), 20);
        rp_pool_free(pool);
    }
}

static int threads_of_process(void)
{
    DIR *dir = opendir("/proc/self/task");
    int n = 0;

    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* What is forked while one trace is read must not meet locks of other threads. */
static void one_job_starts_no_thread(void **state)
{
    struct batch batch = {.fail_from = SIZE_MAX};
    struct rp_err err = RP_ERR_INIT;
    int before = threads_of_process();
    struct rp_pool *pool;

    UNUSED_STATE(state);
    assert_ok(rp_pool_new(3, &pool, &err), &err);
    assert_ok(rp_pool_each(pool, 1, job, &batch, &err), &err);
    assert_int_equal(threads_of_process(), before);
    assert_ok(rp_pool_each(pool, 2, job, &batch, &err), &err);
    assert_int_equal(threads_of_process(), before + 2);
    assert_int_equal(atomic_load(&batch.ran[0]), 2);
    rp_pool_free(pool);
}

static void lowest_failure_is_told(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_pool *pool;
    int round;

    UNUSED_STATE(state);
    assert_ok(rp_pool_new(4, &pool, &err), &err);
    for (round = 0; round < 100; round++) {
        struct batch batch = {.fail_from = 7};

        assert_code(rp_pool_each(pool, 1000, job, &batch, &err), RP_FORMAT);
        assert_string_equal(err.text, "job 7");
    }
    rp_pool_free(pool);
}

static void *producer(void *arg)
{
    struct rp_channel *ch = arg;
    uintptr_t i;

    for (i = 1; i <= 10000; i++)
        rp_channel_put(ch, (void *)i);
    rp_channel_close(ch);
    return NULL;
}

static void channel_keeps_order(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_channel ch;
    uintptr_t expected = 1;
    pthread_t thread;
    void *item;

    UNUSED_STATE(state);
    assert_ok(rp_channel_init(&ch, 3, &err), &err);
    assert_int_equal(pthread_create(&thread, NULL, producer, &ch), 0);
    while (rp_channel_take(&ch, &item))
        assert_int_equal((uintptr_t)item, expected++);
    assert_int_equal(expected, 10001);
    pthread_join(thread, NULL);
    assert_false(rp_channel_put(&ch, &ch));
    rp_channel_release(&ch);
}

static void cores(void **state)
{
    UNUSED_STATE(state);
    assert_true(rp_cpu_count() >= 1);
}

int test_threads(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_once),
        cmocka_unit_test(one_job_starts_no_thread),
        cmocka_unit_test(lowest_failure_is_told),
        cmocka_unit_test(channel_keeps_order),
        cmocka_unit_test(cores),
    };

    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
