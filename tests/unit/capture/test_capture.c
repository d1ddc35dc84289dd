/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings read back: every kind of event, many threads, forks, texts, time windows. */
#include "capture_fixture.h"

#include <inttypes.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

/* -------------------------------------------------------------------------- every event */

static void write_all_kinds(const struct rp_capture *cap)
{
    static const struct rp_capture_arg args[] = {
        {.key = "grid", .number = 128},
        {.key = "occupancy", .type = RP_CTF_ARG_REAL, .real = 0.5},
        {.key = "direction", .type = RP_CTF_ARG_TEXT, .text = "in"}};
    struct timespec now;
    uint64_t ns;

    cap->range_begin("outer");
    cap->range_begin("inner");
    cap->range_end();
    cap->mark("here");
    cap->counter("loss", 2.5);
    cap->enter(&(struct rp_capture_enter){.kind = RP_CTF_KIND_RUNTIME,
                                          .name = "cudaLaunchKernel",
                                          .category = "cuda_runtime",
                                          .link = 77});
    clock_gettime(CLOCK_MONOTONIC, &now);
    ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    cap->leave(0, -3);
    cap->range_end();
    cap->span(&(struct rp_capture_span){.kind = RP_CTF_KIND_KERNEL,
                                        .timebase = RP_CTF_TIME_MONOTONIC,
                                        .begin = ns,
                                        .end = ns + 5000,
                                        .name = "gemm",
                                        .category = "kernel",
                                        .device = 1,
                                        .track = 7,
                                        .link = 77,
                                        .args = args,
                                        .nargs = 3});
    /* lanes need not nest with each other */
    cap->enter(&(struct rp_capture_enter){
        .kind = RP_CTF_KIND_ANNOTATION, .lane = 1, .name = "one", .category = "nvtx"});
    cap->enter(&(struct rp_capture_enter){
        .kind = RP_CTF_KIND_ANNOTATION, .lane = 2, .name = "two", .category = "nvtx"});
    cap->leave(1, 0);
    cap->leave(2, 0);
    cap->async_begin("request", "rpc", 9);
    cap->async_end("request", "rpc", 9);
    cap->thread_name(0, "worker");
    cap->fact("cuda.driver", "13.0");
    cap->range_begin("never ended");
}

static void check_kernel(const struct recorded *r)
{
    const struct rp_trace *t = r->import.trace;
    rp_event kernel = recorded_find(r, "gemm"), call = recorded_find(r, "cudaLaunchKernel");
    const struct rp_process *process = &t->processes[t->tracks[t->ev.track[kernel]].process];

    assert_int_equal(t->ev.kind[kernel], RP_KIND_KERNEL);
    assert_int_equal(t->ev.dur_ns[kernel], 5000);
    assert_int_equal(process->device, 1);
    assert_string_equal(rp_trace_str(t, process->name), "GPU 1");
    assert_int_equal(t->tracks[t->ev.track[kernel]].native_id, 7);
    assert_int_equal(t->ev.link[kernel], t->ev.link[call]);
    assert_int_equal(rp_args_count(&t->args, t->ev.shape[kernel], t->ev.arg_row[kernel]), 6);
    assert_int_equal(rp_args_at(&t->args, t->ev.shape[kernel], t->ev.arg_row[kernel], 0).v.i, 128);
    assert_true(rp_args_at(&t->args, t->ev.shape[kernel], t->ev.arg_row[kernel], 1).v.f == 0.5);
    assert_string_equal(
        rp_trace_str(t, rp_args_at(&t->args, t->ev.shape[kernel], t->ev.arg_row[kernel], 2).v.s),
        "in");
    for (uint32_t i = 3; i < 6; i++) { /* from the fields of the span */
        static const int64_t device_stream_correlation[] = {1, 7, 77};

        assert_int_equal(rp_args_at(&t->args, t->ev.shape[kernel], t->ev.arg_row[kernel], i).v.i,
                         device_stream_correlation[i - 3]);
    }
    /* told in CLOCK_MONOTONIC, while the call ran by the counter: the two agree to the microsecond
     */
    assert_true(t->ev.ts_ns[kernel] >= t->ev.ts_ns[call] - 1000);
    assert_true(t->ev.ts_ns[kernel] <= rp_event_end_ns(t, call) + 1000);
    assert_int_equal(rp_args_at(&t->args, t->ev.shape[call], t->ev.arg_row[call], 0).v.i, -3);
}

static void test_every_kind(void **state)
{
    struct recorded r;
    const struct rp_trace *t;

    UNUSED_STATE(state);
    recorded_run(&r, "", write_all_kinds);
    t = r.import.trace;
    assert_int_equal(recorded_count(&r, "outer", RP_KIND_ANNOTATION), 1);
    assert_int_equal(t->ev.parent[recorded_find(&r, "inner")], recorded_find(&r, "outer"));
    assert_int_equal(recorded_count(&r, "here", RP_KIND_INSTANT), 1);
    assert_int_equal(recorded_count(&r, "loss", RP_KIND_COUNTER), 1);
    assert_int_equal(recorded_count(&r, "one", RP_KIND_ANNOTATION), 1);
    assert_int_equal(recorded_count(&r, "two", RP_KIND_ANNOTATION), 1);
    assert_true(t->ev.dur_ns[recorded_find(&r, "one")] > 0);
    assert_int_equal(t->ev.dur_ns[recorded_find(&r, "never ended")], RP_OPEN_NS);
    assert_int_equal(t->health.unended, 1);
    assert_int_equal(t->health.lost_events, 0);
    assert_true(recorded_count(&r, "request", RP_KIND_ANNOTATION) >= 1);
    assert_string_equal(rp_trace_str(t, t->tracks[t->ev.track[recorded_find(&r, "outer")]].name),
                        "worker");
    check_kernel(&r);
    assert_int_equal(t->has_base, 1);
    recorded_end(&r);
}

/* -------------------------------------------------------------------------- many threads */

enum { THREADS = 4, PAIRS = 30000 };

static const struct rp_capture *shared_cap;

static void *write_pairs(void *unused)
{
    for (int i = 0; i < PAIRS; i++) {
        shared_cap->range_begin("a");
        shared_cap->range_begin("b");
        shared_cap->range_end();
        shared_cap->range_end();
    }
    return unused;
}

static void write_from_threads(const struct rp_capture *cap)
{
    pthread_t threads[THREADS];

    shared_cap = cap;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, write_pairs, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void test_threads(void **state)
{
    struct recorded r;

    UNUSED_STATE(state);
    recorded_run(&r, "", write_from_threads);
    assert_int_equal(recorded_count(&r, "a", RP_KIND_ANNOTATION), THREADS * PAIRS);
    assert_int_equal(recorded_count(&r, "b", RP_KIND_ANNOTATION), THREADS * PAIRS);
    assert_int_equal(r.import.trace->health.lost_events, 0);
    assert_int_equal(r.import.trace->health.cpu_not_nested, 0);
    assert_true(r.scan.packets > THREADS && r.scan.events >= 4 * THREADS * PAIRS);
    recorded_end(&r);
}

/* New threads reuse the streams of threads that have ended. */
static void *write_one(void *unused)
{
    shared_cap->mark("short life");
    return unused;
}

static void write_short_lives(const struct rp_capture *cap)
{
    shared_cap = cap;
    for (int i = 0; i < 300; i++) {
        pthread_t thread;

        pthread_create(&thread, NULL, write_one, NULL);
        pthread_join(thread, NULL);
    }
}

static void test_short_threads(void **state)
{
    struct recorded r;

    UNUSED_STATE(state);
    recorded_run(&r, "", write_short_lives);
    assert_int_equal(recorded_count(&r, "short life", RP_KIND_INSTANT), 300);
    assert_true(r.scan.packets >= 300);
    assert_true(r.scan.threads >= 300);
    assert_true(r.scan.bytes < 300 * 1024); /* a packet each, and not a file */
    assert_true(recorded_files(&r) < 20);
    recorded_end(&r);
}

/* -------------------------------------------------------------------------- texts */

enum { NAMES = 5000 };

static void write_names(const struct rp_capture *cap)
{
    char name[64], *long_name = malloc(40000);

    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "name number %d", i);
        cap->mark(name);
        cap->mark("between");
    }
    memset(long_name, 'x', 39999);
    long_name[39999] = '\0';
    cap->mark(long_name);
    cap->mark("");
    cap->mark(NULL);
    free(long_name);
}

static void test_texts(void **state)
{
    const struct rp_trace *t;
    struct recorded r;
    size_t longest = 0;

    UNUSED_STATE(state);
    recorded_run(&r, "", write_names);
    t = r.import.trace;
    assert_int_equal(recorded_count(&r, "name number 0", RP_KIND_INSTANT), 1);
    assert_int_equal(recorded_count(&r, "name number 4999", RP_KIND_INSTANT), 1);
    assert_int_equal(recorded_count(&r, "between", RP_KIND_INSTANT), NAMES);
    assert_int_equal(recorded_count(&r, "", RP_KIND_INSTANT), 2);
    assert_int_equal(t->totals.count[RP_KIND_INSTANT], 2 * NAMES + 3);
    for (rp_event e = 0; e < t->ev.n; e++) {
        size_t n = rp_trace_str_len(t, t->ev.name[e]);

        longest = n > longest ? n : longest;
    }
    assert_int_equal(longest, RP_CTF_TEXT_MAX);
    recorded_end(&r);
}

/* -------------------------------------------------------------------------- deep and long ranges
 */

enum { DEEP = 3000, LONG = 1200000, LEAKED = 70000 };

static void write_deep(const struct rp_capture *cap)
{
    for (int i = 0; i < DEEP; i++)
        cap->range_begin("deep");
    for (int i = 0; i < DEEP; i++)
        cap->range_end();
    cap->range_begin("around");
    for (int i = 0; i < LONG; i++) {
        cap->range_begin("within");
        cap->range_end();
    }
    cap->range_end();
    for (int i = 0; i < LEAKED; i++)
        cap->range_begin("leaked");
}

static void test_deep(void **state)
{
    const struct rp_trace *t;
    struct recorded r;
    rp_event around;

    UNUSED_STATE(state);
    recorded_run(&r, "", write_deep);
    t = r.import.trace;
    around = recorded_find(&r, "around");
    assert_int_equal(recorded_count(&r, "deep", RP_KIND_ANNOTATION), DEEP);
    assert_int_equal(recorded_count(&r, "within", RP_KIND_ANNOTATION), LONG);
    assert_int_equal(recorded_count(&r, "leaked", RP_KIND_ANNOTATION), LEAKED);
    assert_int_equal(t->health.unended, LEAKED);
    for (rp_event e = 0, within = recorded_find(&r, "within"); e < t->ev.n; e++) {
        rp_event parent = t->ev.parent[e];

        if (t->ev.name[e] != t->ev.name[within] || parent == around)
            continue;
        /* a clock with large steps: a range without length where the one before it ends, or where
           the one after it begins, is taken for a part of that one */
        assert_int_equal(t->ev.dur_ns[e], 0);
        assert_int_not_equal(parent, RP_NONE);
        assert_int_equal(t->ev.name[parent], t->ev.name[within]);
        assert_true(t->ev.ts_ns[parent] == t->ev.ts_ns[e] ||
                    t->ev.ts_ns[parent] + t->ev.dur_ns[parent] == t->ev.ts_ns[e]);
    }
    recorded_end(&r);
}

/* -------------------------------------------------------------------------- fork */

static void write_and_fork(const struct rp_capture *cap)
{
    cap->range_begin("parent");
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            for (int k = 0; k < 100; k++) {
                cap->range_begin("child");
                cap->range_end();
            }
            if (i == 0) {
                pid_t grandchild = fork();

                if (grandchild == 0) {
                    cap->mark("grandchild");
                    _exit(0); /* as children of a pool do */
                }
                waitpid(grandchild, NULL, 0);
            }
            rp_capture_close();
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    cap->range_end();
}

static void test_fork(void **state)
{
    struct recorded r;

    UNUSED_STATE(state);
    recorded_run(&r, "", write_and_fork);
    assert_int_equal(recorded_count(&r, "parent", RP_KIND_ANNOTATION), 1);
    assert_int_equal(recorded_count(&r, "child", RP_KIND_ANNOTATION), 300);
    assert_int_equal(recorded_count(&r, "grandchild", RP_KIND_INSTANT), 1);
    assert_int_equal(r.scan.processes, 5);
    assert_int_equal(r.import.trace->health.unended, 0);
    recorded_end(&r);
}

static long thread_count(void)
{
    struct stat st;

    return stat("/proc/self/task", &st) ? 0 : (long)st.st_nlink - 2;
}

/* The core's thread rests, as around a fork in Python. */
static void write_resting(const struct rp_capture *cap)
{
    bool alone = thread_count() == 1; /* else a sanitizer or an emulator has threads of its own */

    cap->rest(false); /* it does not run */
    cap->mark("before");
    if (alone && thread_count() != 2)
        cap->mark("the core has no thread");
    for (int i = 0; i < 3; i++) {
        cap->rest(true);
        cap->rest(true);
        cap->mark("resting");
        if (alone && thread_count() != 1)
            cap->mark("the core's thread does not rest");
        cap->rest(false);
        cap->rest(false);
        cap->mark("resumed");
        if (alone && thread_count() != 2)
            cap->mark("the core's thread did not resume");
    }
}

static void test_rest(void **state)
{
    struct recorded r;

    UNUSED_STATE(state);
    recorded_run(&r, "", write_resting);
    assert_int_equal(recorded_count(&r, "resting", RP_KIND_INSTANT), 3);
    assert_int_equal(recorded_count(&r, "resumed", RP_KIND_INSTANT), 3);
    assert_int_equal(recorded_count(&r, "the core has no thread", RP_KIND_INSTANT), 0);
    assert_int_equal(recorded_count(&r, "the core's thread does not rest", RP_KIND_INSTANT), 0);
    assert_int_equal(recorded_count(&r, "the core's thread did not resume", RP_KIND_INSTANT), 0);
    recorded_end(&r);
}

/* A child made by the raw system call, which bypasses the C library's fork handlers. */
static void write_and_clone(const struct rp_capture *cap)
{
    long pid;

    cap->mark("before");
    pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        cap->mark("cloned");
        syscall(SYS_exit_group, 0);
    }
    waitpid((pid_t)pid, NULL, 0);
    cap->mark("after");
}

/* Whether memory can be empty in a child: an old kernel says no, an emulator yes and does not. */
static bool memory_is_wiped(void)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int status = 1;
    pid_t pid;

    if (page == MAP_FAILED)
        return false;
    if (!madvise(page, 4096, 18 /* MADV_WIPEONFORK */)) {
        *page = 1;
        pid = fork();
        if (pid == 0)
            _exit(*page);
        waitpid(pid, &status, 0);
    }
    munmap(page, 4096);
    return status == 0;
}

static void test_raw_clone(void **state)
{
    struct recorded r;

    UNUSED_STATE(state);
    if (!memory_is_wiped())
        skip();
    recorded_run(&r, "", write_and_clone);
    assert_int_equal(recorded_count(&r, "before", RP_KIND_INSTANT), 1);
    assert_int_equal(recorded_count(&r, "cloned", RP_KIND_INSTANT), 1);
    assert_int_equal(recorded_count(&r, "after", RP_KIND_INSTANT), 1);
    assert_true(r.import.trace->ev.track[recorded_find(&r, "cloned")] !=
                r.import.trace->ev.track[recorded_find(&r, "after")]);
    recorded_end(&r);
}

/* -------------------------------------------------------------------------- windows */

static void write_steps(const struct rp_capture *cap)
{
    for (int i = 0; i < 10; i++) {
        cap->range_begin("step");
        cap->range_begin("work");
        cap->range_end();
        cap->range_end();
    }
}

static void test_steps(void **state)
{
    struct recorded r;

    UNUSED_STATE(state);
    recorded_run(&r, "first_step=4;steps=3", write_steps);
    assert_int_equal(recorded_count(&r, "work", RP_KIND_ANNOTATION), 3);
    recorded_end(&r);
}

static void put_wait(const struct rp_capture *cap, const char *name, uint64_t begin)
{
    cap->span(&(struct rp_capture_span){.kind = RP_CTF_KIND_WAIT,
                                        .timebase = RP_CTF_TIME_TICKS,
                                        .begin = begin,
                                        .end = cap->now(),
                                        .name = name,
                                        .category = "blocking",
                                        .device = RP_CTF_SPAN_DEVICE});
}

enum { PATIENCE = 6000 }; /* looks, 20 ms apart: only a defect takes so long */

static void write_until_told(const struct rp_capture *cap)
{
    uint64_t before = cap->now(), within;
    char path[128];
    int fd;

    cap->mark("kept");
    cap->range_begin("ends in the pause");
    snprintf(path, sizeof path, "%s/.control", getenv("REPRISE_RECORD"));
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    dprintf(fd, "mark from outside\nstop\n");
    for (int i = 0; cap->active() && i < PATIENCE; i++)
        usleep(20000);
    usleep(20000); /* the pause is no shorter */
    cap->mark("left out");
    within = cap->now();
    put_wait(cap, "open wait", before);
    put_wait(cap, "wait in the pause", within);
    cap->range_end();
    cap->range_begin("began in the pause");
    dprintf(fd, "start\n");
    for (int i = 0; !cap->active() && i < PATIENCE; i++)
        usleep(20000);
    cap->mark("kept again");
    cap->range_end(); /* not that of the range before the pause */
    close(fd);
}

static void test_control(void **state)
{
    struct recorded r;
    rp_event cut;

    UNUSED_STATE(state);
    recorded_run(&r, "", write_until_told);
    assert_int_equal(recorded_count(&r, "kept", RP_KIND_INSTANT), 1);
    assert_int_equal(recorded_count(&r, "from outside", RP_KIND_INSTANT), 1);
    assert_int_equal(recorded_count(&r, "left out", RP_KIND_INSTANT), 0);
    assert_int_equal(recorded_count(&r, "kept again", RP_KIND_INSTANT), 1);
    assert_int_equal(recorded_count(&r, "began in the pause", RP_KIND_ANNOTATION), 0);
    assert_int_equal(r.import.trace->health.unended, 0); /* it ended when the pause began */
    cut = recorded_find(&r, "ends in the pause");
    assert_true(rp_event_end_ns(r.import.trace, cut) + 10000000 <
                r.import.trace->ev.ts_ns[recorded_find(&r, "kept again")]);
    /* so did what the host was in; what it began later is left out */
    assert_true(llabs(rp_event_end_ns(r.import.trace, recorded_find(&r, "open wait")) -
                      rp_event_end_ns(r.import.trace, cut)) < 10000);
    assert_int_equal(recorded_count(&r, "wait in the pause", RP_KIND_WAIT), 0);
    assert_int_equal(r.import.trace->nwarnings, 2); /* the pause, and the end without a begin */
    recorded_end(&r);
}

static void write_into_later_window(const struct rp_capture *cap)
{
    cap->mark("too early");
    for (int i = 0; !cap->active() && i < PATIENCE; i++)
        usleep(20000);
    cap->mark("in time");
}

/* On a busy machine the program may begin after the window: then the window begins later. */
static void test_start_after(void **state)
{
    char options[96];
    struct timespec now;
    struct recorded r;

    UNUSED_STATE(state);
    for (int64_t start_ns = 300000000;; start_ns *= 4) {
        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(options, sizeof options, "t0=%lld%09ld;start=%" PRId64, (long long)now.tv_sec,
                 now.tv_nsec, start_ns);
        recorded_run(&r, options, write_into_later_window);
        if (start_ns > INT64_C(20000000000) || !recorded_count(&r, "too early", RP_KIND_INSTANT))
            break;
        recorded_end(&r);
    }
    assert_int_equal(recorded_count(&r, "too early", RP_KIND_INSTANT), 0);
    assert_int_equal(recorded_count(&r, "in time", RP_KIND_INSTANT), 1);
    recorded_end(&r);
}

/* -------------------------------------------------------------------------- another reader */

/* Two readers that share no code with ours, nor with each other. */
static void assert_reads(const struct recorded *r, const char *reader)
{
    char command[200], line[64] = "";
    FILE *pipe;

    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", reader);
    if (system(command) != 0)
        return;
    snprintf(command, sizeof command, "%s '%s'/* 2>&1 | grep -c '^\\[.* reprise:'", reader,
             r->folder);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(line, sizeof line, pipe));
    pclose(pipe);
    assert_int_equal(atoll(line), r->scan.events);
}

static void test_babeltrace(void **state)
{
    static record_fn *const writers[] = {write_and_fork, write_short_lives, write_all_kinds};
    struct recorded r;

    UNUSED_STATE(state);
    if (system("command -v babeltrace2 >/dev/null 2>&1") != 0)
        skip();
    for (size_t i = 0; i < sizeof writers / sizeof writers[0]; i++) {
        recorded_run(&r, "", writers[i]);
        assert_reads(&r, "babeltrace2");
        assert_reads(&r, "babeltrace");
        recorded_end(&r);
    }
}

int test_capture(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind),    cmocka_unit_test(test_threads),
        cmocka_unit_test(test_short_threads), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_deep),          cmocka_unit_test(test_fork),
        cmocka_unit_test(test_raw_clone),     cmocka_unit_test(test_steps),
        cmocka_unit_test(test_control),       cmocka_unit_test(test_start_after),
        cmocka_unit_test(test_babeltrace),    cmocka_unit_test(test_rest),
    };

    return cmocka_run_group_tests_name("capture", tests, NULL, NULL);
}
