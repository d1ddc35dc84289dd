/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures around a recorded program: it is killed at any moment, the disk is full, the folder is
 * not writable, no file descriptors are left, signals interrupt it. The program continues,
 * completed events are kept, and lost events are counted.
 */
#include "capture_fixture.h"

#include "capture/core/state.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>

/* -------------------------------------------------------------------------- kill -9 */

static volatile long *progress; /* shared with the child: finished pairs a thread */

static void *write_for_ever(void *number)
{
    const struct rp_capture *cap = rp_capture_own();
    volatile long *mine = &progress[8 * (intptr_t)number];

    for (;;) {
        cap->range_begin("outer");
        cap->range_begin("inner");
        cap->range_end();
        cap->range_end();
        *mine += 1;
    }
    return NULL;
}

static void write_two_for_ever(const struct rp_capture *cap)
{
    pthread_t thread;

    (void)cap;
    pthread_create(&thread, NULL, write_for_ever, (void *)1);
    write_for_ever((void *)0);
}

/* Threads that come and go share packets' files: one by one, two at a time. */
static void *write_a_few(void *number)
{
    const struct rp_capture *cap = rp_capture_own();

    for (int i = 0; i < 20; i++) {
        cap->range_begin("outer");
        cap->range_begin("inner");
        cap->range_end();
        cap->range_end();
        progress[8 * (intptr_t)number] += 1;
    }
    return NULL;
}

static void write_short_for_ever(const struct rp_capture *cap)
{
    pthread_t threads[2];

    (void)cap;
    for (;;) {
        for (intptr_t i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, write_a_few, (void *)i);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
    }
}

/* More threads than have a file of their own from the beginning. */
static void *write_slowly(void *number)
{
    const struct rp_capture *cap = rp_capture_own();

    for (;;) {
        cap->range_begin("outer");
        cap->range_begin("inner");
        cap->range_end();
        cap->range_end();
        __atomic_fetch_add(&progress[8 * ((intptr_t)number & 1)], 1, __ATOMIC_SEQ_CST);
        usleep((useconds_t)((intptr_t)number % 7 * 500));
    }
    return NULL;
}

static void write_many_for_ever(const struct rp_capture *cap)
{
    pthread_t thread;

    (void)cap;
    for (intptr_t i = 1; i < 60; i++)
        pthread_create(&thread, NULL, write_slowly, (void *)i);
    write_slowly((void *)0);
}

static void test_kill(void **state)
{
    record_fn *const writers[] = {write_two_for_ever, write_short_for_ever, write_many_for_ever};

    UNUSED_STATE(state);
    progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    srand((unsigned)getpid());
    for (int trial = 0; trial < 12; trial++) {
        struct recorded r;
        int64_t finished;
        pid_t pid;

        progress[0] = progress[8] = 0;
        recorded_begin(&r);
        pid = recorded_start(&r, "", writers[trial % 3], false);
        for (int i = 0; !progress[0] && i < 500000; i++)
            usleep(200); /* only a defect takes so long */
        usleep((useconds_t)(rand() % 30000));
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &r.status, 0), pid);
        finished = progress[0] + progress[8];
        assert_true(WIFSIGNALED(r.status) && finished > 0);
        recorded_read(&r);
        assert_true(recorded_count(&r, "outer", RP_KIND_ANNOTATION) >= finished);
        assert_true(recorded_count(&r, "inner", RP_KIND_ANNOTATION) >= finished);
        assert_int_equal(r.import.trace->health.lost_events, 0);
        recorded_end(&r);
    }
    munmap((void *)(uintptr_t)progress, 4096);
}

/* -------------------------------------------------------------------------- no room */

enum { MARKS = 60000 };

static void write_marks(const struct rp_capture *cap)
{
    errno = 77;
    for (int i = 0; i < MARKS; i++)
        cap->mark("m");
    if (errno != 77) /* the program's own must not change under it */
        _exit(1);
}

static void write_marks_in_small_files(const struct rp_capture *cap)
{
    struct rlimit limit = {100 << 10, 100 << 10};

    setrlimit(RLIMIT_FSIZE, &limit);
    write_marks(cap);
}

/* Room for the first chunk, then for none at all. */
static void write_marks_in_one_file(const struct rp_capture *cap)
{
    struct rlimit limit = {2048, 2048};

    cap->mark("m");
    setrlimit(RLIMIT_FSIZE, &limit);
    errno = 77;
    for (int i = 1; i < MARKS; i++)
        cap->mark("m");
    if (errno != 77)
        _exit(8);
}

/* A limit on the size of files acts like a full disk: creating a chunk fails. */
static void test_no_room(void **state)
{
    struct recorded r;
    int64_t kept;

    UNUSED_STATE(state);
    recorded_run(&r, "", write_marks_in_small_files);
    assert_int_equal(recorded_count(&r, "m", RP_KIND_INSTANT), MARKS); /* in smaller chunks */
    assert_int_equal(r.scan.lost, 0);
    recorded_end(&r);
    recorded_run(&r, "", write_marks_in_one_file);
    kept = recorded_count(&r, "m", RP_KIND_INSTANT);
    assert_true(kept > 100 && kept < MARKS);
    assert_int_equal(r.import.trace->health.lost_events, MARKS - kept);
    assert_int_equal(r.scan.lost, MARKS - kept);
    recorded_end(&r);
}

/* A file system without fallocate that takes only so much of a file: the write that crosses the
   limit is short, the next one fails. tests/CMakeLists.txt puts these before those of libc. */
static off_t disk_room; /* 0: the real calls */

int __real_fallocate(int fd, int mode, off_t from, off_t size);
ssize_t __real_pwrite(int fd, const void *bytes, size_t n, off_t at);

int __wrap_fallocate(int fd, int mode, off_t from, off_t size)
{
    if (!disk_room)
        return __real_fallocate(fd, mode, from, size);
    errno = EOPNOTSUPP;
    return -1;
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    if (disk_room && at >= disk_room) {
        errno = ENOSPC;
        return -1;
    }
    if (disk_room && at + (off_t)n > disk_room)
        n = (size_t)(disk_room - at);
    return __real_pwrite(fd, bytes, n, at);
}

static void write_marks_without_fallocate(const struct rp_capture *cap)
{
    disk_room = (20 << 10) + 100; /* a first chunk, and less than a second one */
    write_marks(cap);
}

/* A short write is a full disk, whatever fallocate said before: smaller chunks keep it all. */
static void test_short_write(void **state)
{
    struct recorded r;

    UNUSED_STATE(state);
    recorded_run(&r, "", write_marks_without_fallocate);
    assert_int_equal(recorded_count(&r, "m", RP_KIND_INSTANT), MARKS);
    assert_int_equal(r.scan.lost, 0);
    recorded_end(&r);
}

static void test_full_disk(void **state)
{
    char command[200];
    struct recorded r;
    int64_t kept;

    UNUSED_STATE(state);
    recorded_begin(&r);
    snprintf(command, sizeof command, "mount -t tmpfs -o size=200k none '%s' 2>/dev/null",
             r.folder);
    if (geteuid() != 0 || system(command) != 0) {
        recorded_end(&r);
        skip();
    }
    assert_true(waitpid(recorded_start(&r, "", write_marks, true), &r.status, 0) > 0);
    assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 7);
    recorded_read(&r);
    kept = recorded_count(&r, "m", RP_KIND_INSTANT);
    rp_import_release(&r.import);
    snprintf(command, sizeof command, "umount '%s'", r.folder);
    assert_int_equal(system(command), 0);
    assert_true(kept > 1000 && kept < MARKS);
    assert_int_equal(r.scan.lost, MARKS - kept);
    recorded_end(&r);
}

static void test_no_folder(void **state)
{
    struct recorded r = {.folder = "/dev/null/recording"};

    UNUSED_STATE(state);
    assert_true(waitpid(recorded_start(&r, "", write_marks, true), &r.status, 0) > 0);
    assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 7);
}

static uint64_t lost_so_far(void)
{
    const struct rp_ctf_ledger *ledger = rp_core_ledger();
    uint64_t sum = 0;

    for (size_t i = 0; ledger && i < RP_CTF_LEDGER_ROWS; i++)
        sum += ledger->rows[i].events;
    return sum;
}

/* Goes on until an event is kept again; only a defect takes so long. */
static void write_without_descriptors(const struct rp_capture *cap)
{
    struct rlimit none = {3, 4096}, some = {256, 4096};

    cap->mark("before");
    setrlimit(RLIMIT_NOFILE, &none);
    write_marks(cap); /* the first chunk ends here, and no other can be made */
    setrlimit(RLIMIT_NOFILE, &some);
    for (uint64_t lost = 0; progress[0] < 20000 && lost_so_far() > lost; progress[0]++) {
        lost = lost_so_far();
        usleep(5000);
        cap->mark("after");
    }
}

static void test_no_descriptors(void **state)
{
    struct recorded r;
    int64_t kept, after;

    UNUSED_STATE(state);
    progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    recorded_run(&r, "", write_without_descriptors);
    kept = recorded_count(&r, "m", RP_KIND_INSTANT);
    after = recorded_count(&r, "after", RP_KIND_INSTANT);
    assert_int_equal(recorded_count(&r, "before", RP_KIND_INSTANT), 1);
    assert_int_equal(after, 1);
    assert_true(kept > 0 && kept < MARKS);
    assert_int_equal(r.import.trace->health.lost_events, MARKS - kept + progress[0] - after);
    recorded_end(&r);
}

/* -------------------------------------------------------------------------- caps */

static void write_much(const struct rp_capture *cap)
{
    for (int i = 0; i < 20 * MARKS; i++)
        cap->mark("m");
    cap->mark("last");
}

static void test_ring(void **state)
{
    struct recorded r;

    UNUSED_STATE(state);
    recorded_run(&r, "limit=1048576;full=ring", write_much);
    assert_int_equal(recorded_count(&r, "last", RP_KIND_INSTANT), 1);
    assert_true(recorded_count(&r, "m", RP_KIND_INSTANT) < 20 * MARKS);
    assert_true(r.scan.bytes <= 1048576 + (256 << 10));
    assert_int_equal(r.scan.lost, 0);
    recorded_end(&r);
}

/* A thread after the other, each with more than the ring holds: the last one's end is there. */
static void *write_a_part(void *name)
{
    const struct rp_capture *cap = rp_capture_own();

    for (int i = 0; i < 3 * MARKS; i++)
        cap->mark("m");
    cap->mark(name);
    return NULL;
}

static void write_in_turns(const struct rp_capture *cap)
{
    char name[32];

    (void)cap;
    for (int i = 0; i < 12; i++) {
        pthread_t thread;

        snprintf(name, sizeof name, "end of %d", i);
        pthread_create(&thread, NULL, write_a_part, name);
        pthread_join(thread, NULL);
    }
}

static void test_ring_of_threads(void **state)
{
    struct recorded r;

    UNUSED_STATE(state);
    recorded_run(&r, "limit=1048576;full=ring", write_in_turns);
    assert_int_equal(recorded_count(&r, "end of 11", RP_KIND_INSTANT), 1);
    assert_int_equal(recorded_count(&r, "end of 0", RP_KIND_INSTANT), 0);
    assert_true(r.scan.bytes <= 1048576 + (256 << 10));
    assert_int_equal(r.scan.lost, 0);
    recorded_end(&r);
}

/* One thread fills the ring and falls silent, another goes on. */
static void *write_after(void *unused)
{
    write_a_part((void *)(uintptr_t) "end of the other");
    return unused;
}

static void write_and_wait(const struct rp_capture *cap)
{
    pthread_t thread;

    for (int i = 0; i < 10 * MARKS; i++)
        cap->mark("first");
    pthread_create(&thread, NULL, write_after, NULL);
    pthread_join(thread, NULL);
}

static void test_ring_of_two(void **state)
{
    struct recorded r;

    UNUSED_STATE(state);
    recorded_run(&r, "limit=1048576;full=ring", write_and_wait);
    assert_int_equal(recorded_count(&r, "end of the other", RP_KIND_INSTANT), 1);
    assert_true(recorded_count(&r, "m", RP_KIND_INSTANT) > 30000); /* its share, not two packets */
    assert_true(r.scan.bytes <= 1048576 + (256 << 10));
    recorded_end(&r);
}

/* A thread writes a little from time to time beside one that fills the ring many times: what is
   left of both is the end, and of the silent beginning nothing. */
static pthread_barrier_t turn;

static void *write_a_little(void *unused)
{
    const struct rp_capture *cap = rp_capture_own();

    for (int i = 0; i < 20; i++) {
        pthread_barrier_wait(&turn);
        for (int k = 0; k < MARKS / 8; k++)
            cap->mark(i ? "a little" : "a little at first");
        pthread_barrier_wait(&turn);
    }
    return unused;
}

static void write_beside(const struct rp_capture *cap)
{
    pthread_t thread;

    pthread_barrier_init(&turn, NULL, 2);
    pthread_create(&thread, NULL, write_a_little, NULL);
    for (int i = 0; i < 20; i++) {
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
        for (int k = 0; k < MARKS; k++)
            cap->mark(i < 19 ? "much" : "much at last");
    }
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&turn);
}

static void test_ring_of_unequals(void **state)
{
    struct recorded r;

    UNUSED_STATE(state);
    recorded_run(&r, "limit=1048576;full=ring", write_beside);
    assert_int_equal(recorded_count(&r, "a little at first", RP_KIND_INSTANT), 0);
    assert_true(recorded_count(&r, "a little", RP_KIND_INSTANT) > 0);
    assert_int_equal(recorded_count(&r, "much at last", RP_KIND_INSTANT), MARKS);
    assert_true(r.scan.bytes <= 1048576 + (256 << 10));
    recorded_end(&r);
}

static void test_stop(void **state)
{
    struct recorded r;
    int64_t kept;

    UNUSED_STATE(state);
    recorded_run(&r, "limit=1048576;full=stop", write_much);
    kept = recorded_count(&r, "m", RP_KIND_INSTANT);
    assert_int_equal(recorded_count(&r, "last", RP_KIND_INSTANT), 0);
    assert_true(r.scan.bytes <= 1048576);
    assert_int_equal(r.scan.lost, 20 * MARKS + 1 - kept);
    recorded_end(&r);
}

/* -------------------------------------------------------------------------- signals */

static const struct rp_capture *signal_cap;
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    signals++;
    signal_cap->mark("signal");
}

static void write_under_signals(const struct rp_capture *cap)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct itimerval fast = {{0, 50}, {0, 50}}, off = {{0, 0}, {0, 0}};
    char name[32];

    signal_cap = cap;
    cap->mark("m");
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &fast, NULL);
    for (int i = 1; i < 20 * MARKS; i++)
        cap->mark("m");
    setitimer(ITIMER_REAL, &off, NULL);
    snprintf(name, sizeof name, "signals %d", (int)signals);
    cap->mark(name);
}

static void test_signals(void **state)
{
    struct recorded r;
    int64_t seen, kept;
    const char *text;
    rp_event e = 0;

    UNUSED_STATE(state);
    recorded_run(&r, "", write_under_signals);
    while (strncmp(text = rp_trace_str(r.import.trace, r.import.trace->ev.name[e]), "signals ", 8))
        assert_true(++e < r.import.trace->ev.n);
    seen = atoll(text + 8);
    kept = recorded_count(&r, "signal", RP_KIND_INSTANT);
    assert_true(seen > 0);
    assert_int_equal(recorded_count(&r, "m", RP_KIND_INSTANT), 20 * MARKS);
    assert_int_equal(kept + r.import.trace->health.lost_events, seen);
    recorded_end(&r);
}

/* -------------------------------------------------------------------------- reasons */

/* The first event of the process, of a thread and of a handler, on the smallest stacks (sanitizers
   need larger ones). */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TIMES = 32 };
#else
enum { TIMES = 1 };
#endif

static void mark_in_handler(int signal)
{
    (void)signal;
    rp_capture_own()->mark("handler");
}

static void *mark_on_small_stack(void *unused)
{
    rp_capture_own()->mark("small");
    for (int i = 0; i < 200; i++) /* more than the first file holds */
        raise(SIGUSR1);
    return unused;
}

static void mark_on_small_stacks(const struct rp_capture *cap)
{
    struct sigaction action = {.sa_handler = mark_in_handler, .sa_flags = SA_ONSTACK};
    static char stack[TIMES * 8192];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    pthread_attr_t attr;
    pthread_t thread;

    (void)cap;
    sigaction(SIGUSR1, &action, NULL);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, (size_t)TIMES * PTHREAD_STACK_MIN);
    if (pthread_create(&thread, &attr, mark_on_small_stack, NULL) || pthread_join(thread, NULL))
        _exit(1);
    sigaltstack(&other, NULL);
    raise(SIGUSR1);
}

static void test_small_stacks(void **state)
{
    struct recorded r;

    UNUSED_STATE(state);
    recorded_run(&r, "", mark_on_small_stacks);
    assert_int_equal(recorded_count(&r, "small", RP_KIND_INSTANT), 1);
    assert_int_equal(recorded_count(&r, "handler", RP_KIND_INSTANT), 201);
    recorded_end(&r);
}

/* The child of a process in a sandbox is in it: no system call. Here it would say another id. */
static void fork_in_sandbox(const struct rp_capture *cap)
{
    uint32_t before;
    int status = 0;
    pid_t child;

    cap->mark("before");
    rp_capture_seal(false);
    before = rp_core.forked_pid;
    child = fork();
    if (!child) {
        cap->mark("child");
        _exit(rp_core.forked_pid != before);
    }
    if (waitpid(child, &status, 0) != child || status)
        _exit(1);
}

static void test_fork_in_sandbox(void **state)
{
    struct recorded r;

    UNUSED_STATE(state);
    recorded_run(&r, "", fork_in_sandbox);
    assert_int_equal(recorded_count(&r, "before", RP_KIND_INSTANT), 1);
    recorded_end(&r);
}

/* What the user can mend is told apart: space, a limit of files, rights, descriptors, memory. */
static void each_error_has_its_reason(void **state)
{
    static const struct {
        int error;
        enum rp_ctf_loss why;
    } cases[] = {
        {ENOSPC, RP_CTF_LOSS_DISK},   {EDQUOT, RP_CTF_LOSS_DISK},  {EFBIG, RP_CTF_LOSS_FILE_SIZE},
        {EACCES, RP_CTF_LOSS_DENIED}, {EPERM, RP_CTF_LOSS_DENIED}, {EROFS, RP_CTF_LOSS_DENIED},
        {EMFILE, RP_CTF_LOSS_FILES},  {ENFILE, RP_CTF_LOSS_FILES}, {ENOMEM, RP_CTF_LOSS_MEMORY},
        {EIO, RP_CTF_LOSS_OTHER},     {0, RP_CTF_LOSS_OTHER}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(rp_core_loss(cases[i].error), cases[i].why);
}

int test_capture_harm(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_short_write),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_no_folder),
        cmocka_unit_test(test_no_descriptors),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_ring_of_threads),
        cmocka_unit_test(test_ring_of_two),
        cmocka_unit_test(test_ring_of_unequals),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(each_error_has_its_reason),
        cmocka_unit_test(test_small_stacks),
        cmocka_unit_test(test_fork_in_sandbox),
    };

    return cmocka_run_group_tests_name("capture_harm", tests, NULL, NULL);
}
