/* SPDX-License-Identifier: Apache-2.0 */
/* <reprise/metrics.h> and its reader: what a process counts is what is read. */
#include "unit.h"

#include "metrics/set.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <reprise/metrics.h>
#include <reprise/metrics_calls.h>
#include <reprise/result.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[64];

static int make_folder(void **state)
{
    UNUSED_STATE(state);
    snprintf(folder, sizeof folder, "/tmp/reprise-metrics-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return setenv("REPRISE_METRICS_DIR", folder, 1);
}

static int remove_folder(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_paths paths = {0};
    size_t i;

    UNUSED_STATE(state);
    rp_metric_find_sources(folder, &arena, &paths, NULL);
    for (i = 0; i < paths.n; i++)
        unlink(paths.at[i]);
    rp_vec_release(&paths);
    rp_arena_release(&arena);
    return rmdir(folder);
}

/* Everything that one process counted so far. */
static void read_process(pid_t pid, struct rp_metric_set *set)
{
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_paths paths = {0};
    struct rp_err err = RP_ERR_INIT;
    char word[32];

    snprintf(word, sizeof word, "%d", (int)pid);
    assert_ok(rp_metric_find_sources(word, &arena, &paths, &err), &err);
    assert_int_equal(paths.n, 1);
    assert_ok(rp_metric_set_read(paths.at[0], set, &err), &err);
    assert_int_equal(set->pid, pid);
    rp_vec_release(&paths);
    rp_arena_release(&arena);
}

static double uniform(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

static void one_section(void)
{
    RP_TIMED("section");
    usleep(2000);
}

static int64_t real_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static double sum_of_sections(double *tick_ns)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    rp_metric_paths paths = {0};
    rp_metric_sets sets = {0};
    char word[32];
    double sum;

    snprintf(word, sizeof word, "%d", (int)getpid());
    assert_ok(rp_metric_find_sources(word, &arena, &paths, &err), &err);
    assert_ok(rp_metric_read_all(&paths, RP_METRIC_RUNNING, tick_ns, &sets, &err), &err);
    assert_int_equal(sets.n, 1);
    sum = rp_metric_find(&sets.at[0], "section")->sum;
    rp_metric_sets_release(&sets);
    rp_vec_release(&paths);
    rp_arena_release(&arena);
    return sum;
}

/* A sum of ticks does not change from one reading to the next where the tick is kept. */
static void the_tick_is_kept(void **state)
{
    double tick_ns = 0, two = 2, four = 4, sum = 0;

    UNUSED_STATE(state);
    one_section();
    if (rp_metrics_state1.clock != RP_METRICS_CLOCK_TSC)
        skip();
    assert_true(sum_of_sections(&four) == 2 * sum_of_sections(&two));
    while (tick_ns == 0) { /* until this process is old enough */
        usleep(100000);
        sum = sum_of_sections(&tick_ns);
    }
    for (int i = 0; i < 20; i++)
        assert_true(sum_of_sections(&tick_ns) == sum);
}

/* First and last are times of day; the clocks that relate them are read one after the other. */
static void timed_sections(void **state)
{
    int64_t slack_ns = 10000000, begin_ns = real_now_ns();
    struct rp_metric_set set;
    const struct rp_metric *m;
    int i;

    UNUSED_STATE(state);
    for (i = 0; i < 20; i++)
        one_section();
    read_process(getpid(), &set);
    assert_true(set.is_live);
    assert_contains(set.command, "unit_metrics");
    m = rp_metric_find(&set, "section");
    assert_non_null(m);
    assert_int_equal(m->count, 20);
    assert_true(m->least >= 2e6 && m->sum >= 20 * 2e6 && m->sum < 20 * 2e9);
    assert_true(rp_metric_percentile(m, 50) >= m->least && rp_metric_percentile(m, 99) <= m->most);
    assert_true(rp_metric_rate(m) > 0 && rp_metric_rate(m) <= 500);
    assert_true(m->first_ns >= begin_ns - slack_ns && m->last_ns <= real_now_ns() + slack_ns);
    assert_true(m->last_ns - m->first_ns >= 20 * 2000000);
    rp_metric_set_release(&set);
}

/* What other languages call, and the report of this process. */
static void calls_are_counted_and_reported(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    char *text;

    UNUSED_STATE(state);
    for (int i = 0; i < 3; i++) {
        rp_metrics_call_count("called", 5);
        rp_metrics_call_value("called value", 7);
        rp_metrics_call_bytes("called bytes", 2048);
    }
    text = rp_metrics_call_report(NULL, &err);
    assert_non_null(text);
    assert_contains(text, "Counter: called\n  Value: 15\n");
    assert_contains(text, "Metric: called value\n  TotalSamples: 3\n  Accumulator: 21.00\n");
    assert_contains(text, "Metric: called bytes\n  TotalSamples: 3\n  Accumulator: 6.00KB\n");
    rp_metrics_call_free(text);
    assert_null(rp_metrics_call_report("/nowhere/at/all", &err));
}

#define THREADS 8
#define ROUNDS  20000

static void *count_in_thread(void *arg)
{
    int i;

    (void)arg;
    for (i = 0; i < ROUNDS; i++) {
        RP_COUNT("threads", 2);
        RP_COUNT("down", -1);
        RP_VALUE("value", i % 100);
    }
    return NULL;
}

/* Threads one after the other continue with the same memory. */
static void threads_add_up(void **state)
{
    struct rp_metric_set set;
    const struct rp_metric *m;
    pthread_t thread[THREADS];
    int i, round;

    UNUSED_STATE(state);
    for (round = 0; round < 2; round++) {
        for (i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, count_in_thread, NULL), 0);
        for (i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
    }
    read_process(getpid(), &set);
    assert_int_equal(rp_metric_counter_value(&set, "threads"), 2 * 2 * THREADS * ROUNDS);
    assert_int_equal(rp_metric_counter_value(&set, "down"), -2 * THREADS * ROUNDS);
    m = rp_metric_find(&set, "value");
    assert_int_equal(m->count, 2 * THREADS * ROUNDS);
    assert_true(m->sum == 2.0 * THREADS * ROUNDS * 49.5);
    assert_true(m->least == 0 && m->most == 99 && rp_metric_percentile(m, 50) == 50);
    assert_int_equal(set.lost, 0);
    rp_metric_set_release(&set);
}

/* Live numbers always belong together: the mean of a constant is that constant. */
static void *add_constants(void *stop)
{
    while (!__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE))
        RP_VALUE("constant", 1000);
    return NULL;
}

static void readers_see_whole_samples(void **state)
{
    struct rp_metric_set set;
    pthread_t thread;
    uint64_t before = 0;
    int stop = 0, i;

    UNUSED_STATE(state);
    RP_VALUE("constant", 1000);
    assert_int_equal(pthread_create(&thread, NULL, add_constants, &stop), 0);
    for (i = 0; i < 300; i++) {
        const struct rp_metric *m;

        read_process(getpid(), &set);
        m = rp_metric_find(&set, "constant");
        assert_true(m->sum == 1000.0 * (double)m->count);
        assert_true(m->count >= before);
        before = m->count;
        rp_metric_set_release(&set);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
}

/* The distribution of that name in the file at `base`. */
static struct rp_metrics_histogram *find_histogram(char *base, const char *name)
{
    const struct rp_metrics_file *head = (const void *)base;
    uint32_t thread, cell;

    for (thread = head->first_thread; thread;) {
        const struct rp_metrics_thread *t = (const void *)(base + (size_t)thread * RP_METRICS_UNIT);

        for (cell = t->first_cell; cell;) {
            struct rp_metrics_histogram *h = (void *)(base + (size_t)cell * RP_METRICS_UNIT);
            const struct rp_metrics_name *n =
                (const void *)(base + (size_t)h->name * RP_METRICS_UNIT);

            if (!strcmp(n->text, name))
                return h;
            cell = h->next;
        }
        thread = t->next;
    }
    return NULL;
}

/* A running process that stays in the middle of a sample: its distribution is read, but not as if
   it were whole. */
static void torn_distributions_are_told(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_remarks remarks = {0};
    struct rp_metrics_histogram *h;
    struct rp_metric_set set;
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    RP_VALUE("interrupted", 1000);
    h = find_histogram(rp_metrics_state1.base, "interrupted");
    assert_non_null(h);
    read_process(getpid(), &set);
    assert_int_equal(set.torn, 0);
    assert_int_equal(rp_metric_find(&set, "interrupted")->buckets.n, 1);
    rp_metric_set_release(&set);
    RP_METRICS_STORE(&h->sequence, h->sequence + 1);
    read_process(getpid(), &set);
    RP_METRICS_STORE(&h->sequence, h->sequence + 1);
    assert_int_equal(set.torn, 1);
    assert_ok(rp_metric_remark(&set, &set, 1, &arena, &remarks, &err), &err);
    assert_int_equal(remarks.n, 1);
    assert_contains(remarks.at[0], "torn: 1 distributions");
    rp_vec_release(&remarks);
    rp_arena_release(&arena);
    rp_metric_set_release(&set);
}

#define PAGE 4096
#define NAME_LENGTH                                                              \
    108 /* with its head and its end it fills the last two units but three bytes \
         */

struct changing {
    char *end; /* of the name */
    int stop;
};

static void *change_end(void *arg)
{
    struct changing *c = arg;

    while (!__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(c->end, 'x', __ATOMIC_RELAXED);
        __atomic_store_n(c->end, 0, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* A file of one page with one counter, whose name is the last thing in it. */
static char *map_counter(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct rp_metrics_file *head;
    struct rp_metrics_name *name;
    char *base;

    assert_true(fd >= 0 && ftruncate(fd, PAGE) == 0);
    base = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(base != MAP_FAILED);
    close(fd);
    head = (void *)base;
    head->magic = RP_METRICS_MAGIC;
    head->clock = RP_METRICS_CLOCK_NS;
    head->first_thread = 20;
    ((struct rp_metrics_thread *)(void *)(base + 20 * RP_METRICS_UNIT))->first_cell = 21;
    *(struct rp_metrics_cell *)(void *)(base + 21 * RP_METRICS_UNIT) =
        (struct rp_metrics_cell){.name = 62, .kind = RP_METRICS_COUNTER, .value = 7};
    name = (void *)(base + 62 * RP_METRICS_UNIT);
    name->kind = RP_METRICS_COUNTER;
    name->length = NAME_LENGTH;
    memset((char *)name + offsetof(struct rp_metrics_name, text), 'x',
           2 * RP_METRICS_UNIT - offsetof(struct rp_metrics_name, text));
    return base;
}

/* The file is another process's: what was checked may be different a moment later. */
static void names_may_change(void **state)
{
    struct changing c = {0};
    struct rp_err err = RP_ERR_INIT;
    char path[128], *base;
    pthread_t thread;
    int i, read = 0;

    UNUSED_STATE(state);
    snprintf(path, sizeof path, "%s/changing", folder);
    base = map_counter(path);
    c.end = base + 62 * RP_METRICS_UNIT + offsetof(struct rp_metrics_name, text) + NAME_LENGTH;
    *c.end = 0;
    assert_int_equal(pthread_create(&thread, NULL, change_end, &c), 0);
    for (i = 0; i < 3000; i++) {
        struct rp_metric_set set = {0};

        if (rp_metric_set_read(path, &set, &err) == RP_OK) {
            assert_int_equal(strlen(set.counters.at[0].name), NAME_LENGTH);
            read++;
        }
        rp_metric_set_release(&set);
    }
    __atomic_store_n(&c.stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    assert_true(read > 0);
    munmap(base, PAGE);
    unlink(path);
}

/* A counter of the processor with 500 million ticks a second: one of 1000 ticks took 2 us, one of
   3000 ticks 6 us. Values are not times. */
static void ticks_become_times(void **state)
{
    static const uint64_t samples[] = {1000, 3000};
    struct rp_metrics_histogram *h;
    struct rp_metrics_file *head;
    struct rp_err err = RP_ERR_INIT;
    char path[128], *base;

    UNUSED_STATE(state);
    snprintf(path, sizeof path, "%s/ticks", folder);
    for (int ticks = 0; ticks < 2; ticks++) {
        uint32_t kind = ticks ? RP_METRICS_TICKS : RP_METRICS_VALUES;
        double scale = ticks ? 2 : 1;
        struct rp_metric_set set = {0};
        const struct rp_metric *m;

        base = map_counter(path);
        head = (void *)base;
        head->clock = RP_METRICS_CLOCK_CNTVCT;
        head->frequency = 500000000;
        head->first = (struct rp_metrics_moment){.ticks = 100, .real_ns = 7000};
        h = (void *)(base + 21 * RP_METRICS_UNIT);
        *h = (struct rp_metrics_histogram){.name = 62,
                                           .kind = kind,
                                           .sequence = 4,
                                           .sum = 4000,
                                           .least = 1000,
                                           .most = 3000,
                                           .first = 200,
                                           .last = 5100};
        for (uint32_t i = 0; i < 2; i++) {
            unsigned octave = rp_metrics_octave(samples[i]);
            uint64_t *counts = (void *)(base + (30 + 10 * i) * RP_METRICS_UNIT);

            h->octave[octave] = 30 + 10 * i;
            counts[rp_metrics_bucket(samples[i], octave)] = 1;
        }
        ((struct rp_metrics_name *)(void *)(base + 62 * RP_METRICS_UNIT))->kind = kind;
        base[62 * RP_METRICS_UNIT + offsetof(struct rp_metrics_name, text) + NAME_LENGTH] = 0;
        assert_ok(rp_metric_set_read(path, &set, &err), &err);
        assert_int_equal(set.metrics.n, 1);
        m = &set.metrics.at[0];
        assert_int_equal(m->count, 2);
        assert_float_equal(m->sum, 4000 * scale, 1e-9);
        assert_float_equal(m->least, 1000 * scale, 1e-9);
        assert_float_equal(m->most, 3000 * scale, 1e-9);
        assert_int_equal(m->first_ns, 7000 + 2 * (200 - 100));
        assert_int_equal(m->last_ns, 7000 + 2 * (5100 - 100));
        rp_metric_set_release(&set);
        munmap(base, PAGE);
        unlink(path);
    }
}

/* No process has that much to count. */
static void huge_files_are_refused(void **state)
{
    struct rp_metric_set set = {0};
    struct rp_err err = RP_ERR_INIT;
    char path[128];

    UNUSED_STATE(state);
    snprintf(path, sizeof path, "%s/huge", folder);
    munmap(map_counter(path), PAGE);
    if (truncate(path, ((off_t)1 << 36) + PAGE) == 0) { /* the file system may not know holes */
        assert_code(rp_metric_set_read(path, &set, &err), RP_FORMAT);
        assert_contains(err.text, "not a file of metrics");
        rp_metric_set_release(&set);
    }
    unlink(path);
}

/* A word is a file, a folder, or the number of a process. */
static void only_numbers_are_processes(void **state)
{
    static const char *const words[] = {"x123", "12x3", "-1", "12345678901", ""};
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_paths paths = {0};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct rp_err err = RP_ERR_INIT;

        assert_int_not_equal(rp_metric_find_sources(words[i], &arena, &paths, &err), RP_OK);
        assert_null(strstr(err.text, "counts nothing"));
    }
    rp_vec_release(&paths);
    rp_arena_release(&arena);
}

static size_t open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* What is searched and read is closed again: files of metrics, reports and others. */
static void files_are_closed(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_paths paths = {0};
    rp_metric_sets sets = {0};
    struct rp_err err = RP_ERR_INIT;
    char names[2][80];
    size_t before;

    UNUSED_STATE(state);
    RP_COUNT("closed", 1);
    for (int i = 0; i < 2; i++) {
        FILE *f;

        snprintf(names[i], sizeof names[i], "%s/text%d", folder, i);
        f = fopen(names[i], "w");
        assert_non_null(f);
        fputs(i == 0 ? "Counter: steps\n  Value: 4\n" : "something else\n", f);
        fclose(f);
    }
    before = open_files();
    assert_ok(rp_metric_find_sources(folder, &arena, &paths, &err), &err);
    assert_ok(rp_metric_read_all(&paths, RP_METRIC_ALL, NULL, &sets, &err), &err);
    assert_true(paths.n >= 2);
    assert_int_equal(sets.n, paths.n);
    for (size_t i = 0; i < paths.n; i++)
        assert_string_not_equal(paths.at[i], names[1]);
    assert_int_equal(open_files(), before);
    for (int i = 0; i < 2; i++)
        unlink(names[i]);
    rp_metric_sets_release(&sets);
    rp_vec_release(&paths);
    rp_arena_release(&arena);
}

/* A child counts for itself, and a process that was killed keeps what it counted. */
static void fork_and_kill(void **state)
{
    struct rp_metric_set parent, child;
    int pipes[2], status;
    int64_t before;
    char byte;
    pid_t pid;

    UNUSED_STATE(state);
    RP_COUNT("forked", 1);
    read_process(getpid(), &parent);
    before = rp_metric_counter_value(&parent, "forked");
    rp_metric_set_release(&parent);
    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    if (pid == 0) {
        int i;

        for (i = 0; i < 12345; i++)
            RP_COUNT("forked", 1);
        (void)!write(pipes[1], "x", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    read_process(pid, &child);
    assert_int_equal(rp_metric_counter_value(&child, "forked"), 12345);
    assert_false(child.is_live);
    read_process(getpid(), &parent);
    assert_int_equal(rp_metric_counter_value(&parent, "forked"), before);
    rp_metric_set_release(&parent);
    rp_metric_set_release(&child);
    close(pipes[0]);
    close(pipes[1]);
}

/* Runs a function in a child, and reads what the child counted after it has ended. */
static void read_child(void (*run)(void), struct rp_metric_set *set)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        run();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    read_process(pid, set);
}

#define MANY 6000

static void count_many_names(void)
{
    char name[32];
    int i;

    setenv("REPRISE_METRICS_MB", "1", 1);
    for (i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "name %d", i);
        rp_metrics_call_value(name, (int64_t)1 << i % 50);
        rp_metrics_call_value(name, i);
    }
}

/* Memory is bounded: what does not fit is counted as lost, and nothing else is. */
static void memory_is_bounded(void **state)
{
    struct rp_metric_set set;
    uint64_t sum = 0;
    size_t i;

    UNUSED_STATE(state);
    read_child(count_many_names, &set);
    for (i = 0; i < set.metrics.n; i++)
        sum += set.metrics.at[i].count;
    assert_true(sum > 0 && set.lost > 0);
    assert_int_equal(sum + set.lost, 2 * MANY);
    rp_metric_set_release(&set);
}

static void *count_with_many_places(void *arg)
{
    (void)arg;
    RP_COUNT("late", 1);
    return NULL;
}

static void start_many_threads(void)
{
    pthread_t thread;
    int i;

    setenv("REPRISE_METRICS_MB", "1", 1);
    for (i = 0; i < 5000; i++) {
        pthread_create(&thread, NULL, count_with_many_places, NULL);
        pthread_join(thread, NULL);
    }
}

/* Threads that follow each other need no more memory than one. */
static void threads_reuse_memory(void **state)
{
    struct rp_metric_set set;

    UNUSED_STATE(state);
    read_child(start_many_threads, &set);
    assert_int_equal(rp_metric_counter_value(&set, "late"), 5000);
    assert_int_equal(set.lost, 0);
    rp_metric_set_release(&set);
}

static void count_beyond_file_limit(void)
{
    struct rlimit limit = {70000, 70000};
    int i;

    setrlimit(RLIMIT_FSIZE, &limit);
    for (i = 0; i < 64; i++)
        RP_VALUE("grows", (uint64_t)1 << i % 60);
    for (i = 0; i < 1000; i++)
        RP_COUNT("fits", 1);
}

/* A limit on file sizes must not end the program. */
static void file_limits_are_respected(void **state)
{
    struct rp_metric_set set;

    UNUSED_STATE(state);
    read_child(count_beyond_file_limit, &set);
    assert_int_equal(rp_metric_counter_value(&set, "fits"), 1000);
    assert_int_equal(rp_metric_find(&set, "grows")->count + set.lost, 64);
    rp_metric_set_release(&set);
}

/* Damaged files are refused or read, never followed outside. */
static void damage_is_survived(void **state)
{
    char path[128], *bytes;
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_paths paths = {0};
    struct rp_err err = RP_ERR_INIT;
    uint64_t seed = 11;
    size_t n, i;
    FILE *f;
    int round;

    UNUSED_STATE(state);
    snprintf(path, sizeof path, "%d", (int)getpid());
    assert_ok(rp_metric_find_sources(path, &arena, &paths, &err), &err);
    f = fopen(paths.at[0], "rb");
    assert_non_null(f);
    bytes = malloc(1 << 20);
    n = fread(bytes, 1, 1 << 20, f);
    fclose(f);
    snprintf(path, sizeof path, "%s/damaged", folder);
    for (round = 0; round < 300; round++) {
        struct rp_metric_set set;
        size_t at[8];
        char kept[8];

        for (i = 0; i < 8; i++) {
            at[i] = 8 + (size_t)(uniform(&seed) * (double)(n > 16384 ? 16384 : n - 8));
            kept[i] = bytes[at[i]];
            bytes[at[i]] = (char)(uniform(&seed) * 256);
        }
        f = fopen(path, "wb");
        assert_non_null(f);
        fwrite(bytes, 1, round % 3 ? n : (size_t)(uniform(&seed) * (double)n), f);
        fclose(f);
        rp_metric_set_read(path, &set, &err);
        rp_metric_set_release(&set);
        for (i = 8; i-- > 0;)
            bytes[at[i]] = kept[i];
    }
    unlink(path);
    free(bytes);
    rp_vec_release(&paths);
    rp_arena_release(&arena);
}

#define SAMPLES 200000

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static uint64_t draw_sample(int distribution, uint64_t *seed)
{
    double u = uniform(seed);

    switch (distribution) {
    case 0:
        return (uint64_t)(u * 1e6); /* uniform */
    case 1:
        return (uint64_t)(-log(1 - u) * 5e4); /* exponential */
    case 2:
        return (uint64_t)exp(u * 40); /* log-uniform */
    default:
        return u < 0.5 ? 100 : (uint64_t)(1e7 * (1 + u)); /* two modes */
    }
}

static void percentiles_are_near(void **state)
{
    static uint64_t exact[SAMPLES];
    struct rp_metric_set set;
    uint64_t seed = 7;
    size_t i, p;
    int d;

    UNUSED_STATE(state);
    for (d = 0; d < 4; d++) {
        const struct rp_metric *m;

        for (i = 0; i < SAMPLES; i++) {
            exact[i] = draw_sample(d, &seed);
            if (d == 0)
                RP_TIMED_SAMPLE("distribution 0", exact[i]);
            else if (d == 1)
                RP_TIMED_SAMPLE("distribution 1", exact[i]);
            else if (d == 2)
                RP_BYTES("distribution 2", exact[i]);
            else
                RP_VALUE("distribution 3", exact[i]);
        }
        qsort(exact, SAMPLES, sizeof *exact, by_number);
        read_process(getpid(), &set);
        m = rp_metric_find(&set, d == 0   ? "distribution 0"
                                 : d == 1 ? "distribution 1"
                                 : d == 2 ? "distribution 2"
                                          : "distribution 3");
        assert_int_equal(m->count, SAMPLES);
        for (p = 0; p < RP_METRIC_PERCENTILES; p++) {
            double want = (double)exact[(size_t)rp_metric_percent[p] * SAMPLES / 100];
            double got = rp_metric_percentile(m, rp_metric_percent[p]);

            if (fabs(got - want) > 0.01 * want)
                fail_msg("distribution %d: %d%% is %g, not %g", d, rp_metric_percent[p], got, want);
        }
        rp_metric_set_release(&set);
    }
}

static void merging_adds(void **state)
{
    struct rp_metric_set one, two = {0};
    const struct rp_metric *a, *b;
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    read_process(getpid(), &one);
    rp_arena_init(&two.arena);
    assert_ok(rp_metric_set_merge(&two, &one, &err), &err);
    assert_ok(rp_metric_set_merge(&two, &one, &err), &err);
    a = rp_metric_find(&one, "distribution 1");
    b = rp_metric_find(&two, "distribution 1");
    assert_int_equal(b->count, 2 * a->count);
    assert_true(b->sum == 2 * a->sum && b->most == a->most);
    assert_true(rp_metric_percentile(a, 90) == rp_metric_percentile(b, 90));
    assert_int_equal(rp_metric_counter_value(&two, "threads"),
                     2 * rp_metric_counter_value(&one, "threads"));
    rp_metric_set_release(&one);
    rp_metric_set_release(&two);
}

/* What happened from 3 s to 5 s and from 1 s to 4 s happened from 1 s to 5 s, whichever comes
   first; a source without times changes nothing. */
static void merging_spans_all_times(void **state)
{
    static const int64_t begin_s[] = {3, 1, 0, 2}, end_s[] = {5, 4, 0, 4};
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    for (int order = 0; order < 2; order++) {
        struct rp_metric_set all = {0};

        rp_arena_init(&all.arena);
        for (int k = 0; k < 4; k++) {
            struct rp_metric_set one = {0};
            struct rp_metric *m;
            int i = order ? 3 - k : k;

            rp_arena_init(&one.arena);
            m = rp_metric_set_metric(&one, "m", RP_METRIC_TIME, &err);
            assert_non_null(m);
            m->count = 3;
            m->first_ns = begin_s[i] * 1000000000;
            m->last_ns = end_s[i] * 1000000000;
            assert_ok(rp_metric_set_merge(&all, &one, &err), &err);
            rp_metric_set_release(&one);
        }
        assert_int_equal(all.metrics.at[0].first_ns, 1000000000);
        assert_int_equal(all.metrics.at[0].last_ns, 5000000000);
        assert_float_equal(rp_metric_rate(&all.metrics.at[0]), 12 / 4.0, 1e-9);
        rp_metric_set_release(&all);
    }
}

/* ---- reports as text ---- */

static void read_text(const char *text, struct rp_metric_set *set)
{
    struct rp_err err = RP_ERR_INIT;

    *set = (struct rp_metric_set){0};
    rp_arena_init(&set->arena);
    assert_ok(rp_metric_set_read_text("report", text, strlen(text), set, &err), &err);
}

/* As the original prints: each part rounded, the rest after rounding down. */
static void print_wrongly(double ns, char *to)
{
    static const double unit[] = {864e11, 36e11, 6e10, 1e9, 1e6};
    static const char *const name[] = {"d", "h", "m", "s", "ms"};
    bool begun = false;
    int i;

    for (i = 0; i < 5; i++) {
        double part = ns / unit[i];

        if (begun || part >= 1) {
            to += sprintf(to, i == 4 ? "%03.0f%s" : "%02.0f%s", part, name[i]);
            begun = true;
        }
        ns -= floor(part) * unit[i];
    }
    sprintf(to, "%07.3fus", ns / 1e3);
}

static void wrong_times_are_corrected(void **state)
{
    char printed[128], text[256];
    struct rp_metric_set set;
    uint64_t seed = 3;
    int i, wrong = 0;

    UNUSED_STATE(state);
    for (i = 0; i < 20000; i++) {
        double ns = floor(exp(log(1e3) + uniform(&seed) * log(1e12)));
        const struct rp_metric *m;

        print_wrongly(ns, printed);
        snprintf(text, sizeof text, "Metric: x\n  TotalSamples: 1\n  Accumulator: %s\n", printed);
        read_text(text, &set);
        m = rp_metric_find(&set, "x");
        if (fabs(m->sum - ns) > 1.5)
            fail_msg("%s was read as %.0f ns, not %.0f", printed, m->sum, ns);
        wrong += set.nmisprints > 0;
        rp_metric_set_release(&set);
    }
    assert_true(wrong > 8000);
}

/* What is no time: a unit that does not exist, or one twice, or the larger one behind. */
static void times_have_their_units_in_order(void **state)
{
    static const char *const bad[] = {"5xs", "5s6xs", "6ms5s", "us", "5s6s"};
    struct rp_metric_set set;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rp_err err = RP_ERR_INIT;
        char text[128];

        set = (struct rp_metric_set){0};
        rp_arena_init(&set.arena);
        snprintf(text, sizeof text, "Metric: x\n  TotalSamples: 1\n  Accumulator: %s\n", bad[i]);
        assert_code(rp_metric_set_read_text("report", text, strlen(text), &set, &err), RP_FORMAT);
        rp_metric_set_release(&set);
    }
    read_text("Metric: x\n  TotalSamples: 1\n  Accumulator: 5s006ms\n", &set);
    assert_true(rp_metric_find(&set, "x")->sum == 5.006e9);
    rp_metric_set_release(&set);
}

static void own_reports_are_not_corrected(void **state)
{
    struct rp_metric_set set;

    UNUSED_STATE(state);
    read_text("# reprise metrics\nMetric: x\n  TotalSamples: 1\n  Accumulator: 01s600ms700.000us\n",
              &set);
    assert_true(rp_metric_find(&set, "x")->sum == 1600700000.0);
    assert_int_equal(set.nmisprints, 0);
    rp_metric_set_release(&set);
}

static void the_last_report_counts(void **state)
{
    struct rp_metric_set set;

    UNUSED_STATE(state);
    read_text("[MetricsData; step=1]\nCounter: MarkStep\n  Value: 1\n\n[MetricsData; step=2]\n"
              "Counter: MarkStep\n  Value: 2\n",
              &set);
    assert_int_equal(rp_metric_counter_value(&set, "MarkStep"), 2);
    rp_metric_set_release(&set);
}

static bool has_remark(const char *report, const char *begin)
{
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_remarks remarks = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_metric_set set;
    bool found = false;
    size_t i;

    read_text(report, &set);
    assert_ok(rp_metric_remark(&set, &set, 1, &arena, &remarks, &err), &err);
    for (i = 0; i < remarks.n; i++)
        found |= !strncmp(remarks.at[i], begin, strlen(begin));
    rp_vec_release(&remarks);
    rp_arena_release(&arena);
    rp_metric_set_release(&set);
    return found;
}

static void remarks_by_evidence(void **state)
{
    static const char storm[] =
        "Metric: CompileTime\n  TotalSamples: 21\n"
        "  Accumulator: 04s100ms000.000us\nCounter: MarkStep\n  Value: 30\n";
    static const char calm[] = "Metric: CompileTime\n  TotalSamples: 2\n"
                               "  Accumulator: 04s100ms000.000us\nCounter: MarkStep\n  Value: 30\n";
    static const char fallback[] = "Counter: aten::nonzero\n  Value: 12\n";
    static const char fetch[] =
        "Metric: TransferFromDeviceTime\n  TotalSamples: 60\n"
        "  Accumulator: 04s100ms000.000us\nCounter: MarkStep\n  Value: 30\n";

    UNUSED_STATE(state);
    assert_true(has_remark(storm, "recompilation: 21 compilations in 30 steps"));
    assert_false(has_remark(calm, "recompilation"));
    assert_true(has_remark(fallback, "fallback: 1 operator without a lowering"));
    assert_false(has_remark(calm, "fallback"));
    assert_true(has_remark(fetch, "transfers: 60"));
    assert_false(has_remark(calm, "transfers"));
}

/* More than one in two steps, after the warm-up of ten steps. */
static void remarks_begin_where_they_should(void **state)
{
    static const struct {
        const char *metric, *remark, *what;
        int samples, steps;
        bool remarked;
    } rows[] = {{"CompileTime", "recompilation", " compilations in", 16, 30, true},
                {"CompileTime", "recompilation", " compilations in", 15, 30, false},
                {"CompileTime", "recompilation", " compilations in", 6, 11, true},
                {"CompileTime", "recompilation", " compilations in", 6, 10, false},
                {"TransferFromDeviceTime", "transfers", " from the device", 16, 30, true},
                {"TransferFromDeviceTime", "transfers", " from the device", 15, 30, false},
                {"TransferFromDeviceTime", "transfers", " from the device", 11, 10, false}};
    static const struct {
        int fresh, cached;
        bool remarked;
    } caches[] = {{10, 9, true}, {10, 10, false}, {9, 0, false}};
    char text[400], begin[80];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(text, sizeof text,
                 "Metric: %s\n  TotalSamples: %d\n  Accumulator: 04s100ms000.000us\n"
                 "Counter: MarkStep\n  Value: %d\n",
                 rows[i].metric, rows[i].samples, rows[i].steps);
        snprintf(begin, sizeof begin, "%s: %d%s", rows[i].remark, rows[i].samples, rows[i].what);
        if (has_remark(text, begin) != rows[i].remarked)
            fail_msg("%d times in %d steps: %s", rows[i].samples, rows[i].steps, begin);
    }
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        snprintf(text, sizeof text,
                 "Counter: UncachedCompile\n  Value: %d\nCounter: CachedCompile\n  Value: %d\n",
                 caches[i].fresh, caches[i].cached);
        assert_int_equal(has_remark(text, "recompilation"), caches[i].remarked);
    }
}

/* Parts of a time are numbers with their units, from days to microseconds. */
static void times_that_are_none(void **state)
{
    static const char *const times[] = {"04s-3ms", "04s1ms2s",  "4q",  "4s5",
                                        "4s5x",    "1e999s2ms", "4sms"};
    char path[128], text[200];

    UNUSED_STATE(state);
    snprintf(path, sizeof path, "%s/report.txt", folder);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct rp_metric_set set = {0};
        struct rp_err err = RP_ERR_INIT;
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        snprintf(text, sizeof text, "Metric: m\n  TotalSamples: 2\n  Accumulator: %s\n", times[i]);
        fputs(text, file);
        fclose(file);
        assert_code(rp_metric_set_read(path, &set, &err), RP_FORMAT);
        assert_contains(err.text, "line 3: invalid accumulator");
        rp_metric_set_release(&set);
    }
    unlink(path);
}

/* A line of something else ends what was being read; fields are indented. */
static void other_lines_end_a_counter(void **state)
{
    struct rp_metric_set set;

    UNUSED_STATE(state);
    read_text("Counter: a\n Value: 3\nCounter: b\nA Value: 4\n  Value: 5\nCounter: c\n"
              "  Other: 6\n  Value: 7\n",
              &set);
    assert_int_equal(set.counters.n, 2);
    assert_int_equal(rp_metric_counter_value(&set, "a"), 3);
    assert_int_equal(rp_metric_counter_value(&set, "c"), 7);
    rp_metric_set_release(&set);
    read_text("Counter: a\n  Value: 3\n[MetricsData; step=7]\nCounter: b\n  Value: 4\n", &set);
    assert_int_equal(set.counters.n, 1); /* the report of another step begins */
    assert_int_equal(rp_metric_counter_value(&set, "b"), 4);
    rp_metric_set_release(&set);
    read_text("Counter: a\n  Value: 3\n[MetricsData, x]\nCounter: b\n  Value: 4\n", &set);
    assert_int_equal(set.counters.n, 2);
    rp_metric_set_release(&set);
}

/* 4095 bytes of a name are kept. */
static void long_names_of_counters(void **state)
{
    static char text[5000], name[4096];
    struct rp_metric_set set;

    UNUSED_STATE(state);
    memset(name, 'n', sizeof name - 1);
    snprintf(text, sizeof text, "Counter: %s\n  Value: 3\n", name);
    read_text(text, &set);
    assert_int_equal(rp_metric_counter_value(&set, name), 3);
    rp_metric_set_release(&set);
}

/* Four ranks of which one takes longer; its metric fills most of the second that was measured. */
static void a_rank_unlike_the_others(void **state)
{
    struct rp_metric_set ranks[4], all = {0};
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_remarks remarks = {0};
    struct rp_err err = RP_ERR_INIT;
    size_t r;

    UNUSED_STATE(state);
    rp_arena_init(&all.arena);
    for (r = 0; r < 4; r++) {
        struct rp_metric *m;

        ranks[r] = (struct rp_metric_set){.rank = (int64_t)r};
        rp_arena_init(&ranks[r].arena);
        m = rp_metric_set_metric(&ranks[r], "Load", RP_METRIC_TIME, &err);
        assert_non_null(m);
        m->count = 10;
        m->sum = r == 2 ? 9e8 : r == 3 ? 9e8 - 5 : 4e8; /* the last one by half a nanosecond less */
        m->first_ns = 1;
        m->last_ns = 1000000001;
        assert_ok(rp_metric_set_merge(&all, &ranks[r], &err), &err);
    }
    assert_ok(rp_metric_remark(&all, ranks, 4, &arena, &remarks, &err), &err);
    assert_int_equal(remarks.n, 1);
    assert_contains(remarks.at[0],
                    "rank 2: 'Load' takes 90.0 ms on average, 40.0 ms on the median");
    rp_vec_release(&remarks);
    rp_arena_release(&arena);
    for (r = 0; r < 4; r++)
        rp_metric_set_release(&ranks[r]);
    rp_metric_set_release(&all);
}

/* Cuts the file and writes it again. */
static _Noreturn void cut_often(int fd, const char *bytes, size_t n)
{
    for (int i = 0; i < 2000; i++)
        if (ftruncate(fd, i % 2 ? 0 : 1000) || pwrite(fd, bytes, n, 0) != (ssize_t)n)
            _exit(1);
    _exit(0);
}

/* A file that somebody shortens while it is read is refused or read, and ends nobody. */
static void a_file_that_shrinks(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    char path[128], from[128], *bytes = malloc(1 << 20);
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_paths paths = {0};
    int fd, status;
    ssize_t n;
    pid_t pid;

    UNUSED_STATE(state);
    snprintf(from, sizeof from, "%d", (int)getpid());
    assert_ok(rp_metric_find_sources(from, &arena, &paths, &err), &err);
    fd = open(paths.at[0], O_RDONLY);
    n = read(fd, bytes, 1 << 20);
    close(fd);
    snprintf(path, sizeof path, "%s/shrinking", folder);
    fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(n > 0 && write(fd, bytes, (size_t)n) == n && !close(fd));
    pid = fork();
    if (!pid)
        cut_often(open(path, O_WRONLY), bytes, (size_t)n);
    while (!waitpid(pid, &status, WNOHANG)) {
        struct rp_metric_set set;

        rp_metric_set_read(path, &set, NULL);
        rp_metric_set_release(&set);
    }
    assert_int_equal(status, 0);
    unlink(path);
    free(bytes);
    rp_vec_release(&paths);
    rp_arena_release(&arena);
}

int test_metrics(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(timed_sections),
                                       cmocka_unit_test(the_tick_is_kept),
                                       cmocka_unit_test(calls_are_counted_and_reported),
                                       cmocka_unit_test(threads_add_up),
                                       cmocka_unit_test(readers_see_whole_samples),
                                       cmocka_unit_test(torn_distributions_are_told),
                                       cmocka_unit_test(names_may_change),
                                       cmocka_unit_test(ticks_become_times),
                                       cmocka_unit_test(huge_files_are_refused),
                                       cmocka_unit_test(only_numbers_are_processes),
                                       cmocka_unit_test(files_are_closed),
                                       cmocka_unit_test(fork_and_kill),
                                       cmocka_unit_test(memory_is_bounded),
                                       cmocka_unit_test(threads_reuse_memory),
                                       cmocka_unit_test(file_limits_are_respected),
                                       cmocka_unit_test(damage_is_survived),
                                       cmocka_unit_test(percentiles_are_near),
                                       cmocka_unit_test(merging_adds),
                                       cmocka_unit_test(merging_spans_all_times),
                                       cmocka_unit_test(wrong_times_are_corrected),
                                       cmocka_unit_test(times_have_their_units_in_order),
                                       cmocka_unit_test(own_reports_are_not_corrected),
                                       cmocka_unit_test(the_last_report_counts),
                                       cmocka_unit_test(remarks_by_evidence),
                                       cmocka_unit_test(remarks_begin_where_they_should),
                                       cmocka_unit_test(times_that_are_none),
                                       cmocka_unit_test(other_lines_end_a_counter),
                                       cmocka_unit_test(long_names_of_counters),
                                       cmocka_unit_test(a_rank_unlike_the_others),
                                       cmocka_unit_test(a_file_that_shrinks)};

    return cmocka_run_group_tests_name("metrics", tests, make_folder, remove_folder);
}
