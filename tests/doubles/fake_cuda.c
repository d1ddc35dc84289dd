/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that "uses" CUDA: it loads the injected library as the driver does, then makes the
 * CUPTI double report the work that its arguments describe, in order.
 *
 *   step N      N times: launch call, kernel; then a copy, a memset, a wait
 *   burst N     N times launch call and kernel, as fast as it can
 *   steps N     N ranges "step", each with ten kernels; what was flushed is read before the next
 *   captures N  the same; a stream is captured in the eighth
 *   disorder    a kernel whose record precedes that of its launch
 *   endless     a copy that ends long after the next kernel of its stream
 *   events      stream 8 waits for an event of stream 7, by the runtime; and by the driver
 *   zero        a kernel without times, and an unfinished one
 *   early       a kernel that begins before its launch
 *   late        a kernel that ends after the wait for it
 *   graph       a graph launch: one record of the graph, and three of its nodes
 *   driver N    N driver launches, and N runtime launches, which call the driver
 *   capture N   N launches that are captured into a graph, and a launch of that graph
 *   query N     N queries of the runtime and of the driver
 *   drop N      N records are dropped
 *   other       another profiler in the process subscribes to CUPTI
 *   external    a launch within an external correlation
 *   counted N   N ranges "step", each with three launches whose counters can be measured
 *   fork        a child launches nothing, and ends
 *   rest N      does nothing for N milliseconds
 *   told        waits until the recorder has flushed and read all records
 *   kill        kill -9 of itself
 */
#include "fake_cupti.h"

#include "abi/cupti.h"

#include "../../include/reprise/record.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int cuptiSubscribe(void **subscriber, rp_cupti_callback *callback, void *user);

static uint32_t correlation = 100;

static union {
    uint8_t bytes[256];
    struct rp_cupti_kernel_record kernel;
    struct rp_cupti_memcpy_record copy;
    struct rp_cupti_memset_record set;
    struct rp_cupti_api_record call;
    struct rp_cupti_external_record external;
    struct rp_cupti_graph_record graph;
    struct rp_cupti_device_record device;
    struct rp_cupti_overhead_record overhead;
} r;

static void clear(uint32_t kind)
{
    memset(&r, 0, sizeof r);
    memcpy(&r, &kind, 4);
}

static void put_call_of(uint32_t kind, uint32_t id, uint64_t start, uint64_t end)
{
    clear(kind);
    r.call.id = id;
    r.call.start = start;
    r.call.end = end;
    r.call.process = (uint32_t)getpid();
    r.call.thread = (uint32_t)syscall(SYS_gettid);
    r.call.correlation = correlation;
    fake_cupti_put(&r);
}

static void put_call(uint32_t id, uint64_t start, uint64_t end)
{
    put_call_of(RP_CUPTI_RUNTIME, id, start, end);
}

static void put_kernel(const char *name, uint64_t start, uint64_t end)
{
    clear(RP_CUPTI_CONCURRENT_KERNEL);
    r.kernel.start = start;
    r.kernel.end = end;
    r.kernel.context = 1;
    r.kernel.stream = 7;
    r.kernel.correlation = correlation;
    r.kernel.name = name;
    r.kernel.registers = 32;
    for (int i = 0; i < 3; i++)
        r.kernel.grid[i] = r.kernel.block[i] = i + 1;
    fake_cupti_put(&r);
}

static void begin_device(void)
{
    clear(RP_CUPTI_DEVICE);
    r.device.name = "Fake GPU";
    r.device.memory_bytes = 80000000000;
    r.device.multiprocessors = 108;
    fake_cupti_put(&r);
}

/* CUPTI's numbers begin again when it is attached again. */
static void next_correlation(void)
{
    static int left;

    if (left != fake_cupti_left())
        correlation = 100;
    left = fake_cupti_left();
    correlation++;
}

static void launch(const char *name)
{
    uint64_t t = fake_cupti_now();

    next_correlation();
    put_call(211, t, t + 4000);
    t = fake_cupti_now(); /* the call may be recorded by the time that it takes here */
    put_kernel(name, t + 5000, t + 15000);
    usleep(20);
}

static const void *const stream7 = (void *)7, *const stream8 = (void *)8;

static void put_wait(void)
{
    uint64_t t = fake_cupti_now();

    correlation++;
    fake_cupti_params(&stream7);
    put_call(131, t, t + 100);
}

static void put_copy(uint64_t start, uint64_t end)
{
    clear(RP_CUPTI_MEMCPY);
    r.copy.copy_kind = 1;
    r.copy.from_kind = 1;
    r.copy.to_kind = 3;
    r.copy.bytes = 4096;
    r.copy.start = start;
    r.copy.end = end;
    r.copy.context = 1;
    r.copy.stream = 7;
    r.copy.correlation = correlation;
    fake_cupti_put(&r);
}

static void copy_set_wait(void)
{
    uint64_t t = fake_cupti_now();

    correlation++;
    put_call(31, t, t + 3000);
    t = fake_cupti_now();
    put_copy(t + 4000, t + 6000);
    clear(RP_CUPTI_MEMSET);
    r.set.bytes = 64;
    r.set.memory_kind = 3;
    r.set.start = t + 6000;
    r.set.end = t + 7000;
    r.set.context = 1;
    r.set.stream = 7;
    r.set.correlation = correlation;
    fake_cupti_put(&r);
    usleep(20);
    put_wait();
}

static void disorder(void)
{
    uint64_t t = fake_cupti_now();

    correlation++;
    /* a minute later: after the call, however long that takes */
    put_kernel("late_call", t + UINT64_C(60000000000), t + UINT64_C(60000001000));
    put_call(211, t, t + 4000);
}

static void endless(void)
{
    uint64_t t = fake_cupti_now();

    next_correlation();
    put_call(31, t, t + 100);
    t = fake_cupti_now();
    put_copy(t + 1000, t + UINT64_C(60000000000));
    usleep(20);
    launch("after_copy");
    put_wait();
}

static void events_of(uint32_t kind, uint32_t record, uint32_t wait)
{
    const void *event = &correlation, *recorded[] = {event, stream7}, *waits[] = {stream8, event};
    uint64_t t = fake_cupti_now();

    next_correlation();
    fake_cupti_params(recorded);
    put_call_of(kind, record, t, t + 100);
    next_correlation();
    fake_cupti_params(waits);
    put_call_of(kind, wait, t + 100, t + 200);
}

static void events(void)
{
    events_of(RP_CUPTI_RUNTIME, 135, 147);
    events_of(RP_CUPTI_DRIVER, 119, 295);
}

static void graph(void)
{
    uint64_t t = fake_cupti_now();

    correlation++;
    put_call(311, t, t + 4000);
    t = fake_cupti_now();
    clear(RP_CUPTI_GRAPH_TRACE);
    r.graph.correlation = correlation;
    r.graph.start = t + 5000;
    r.graph.end = t + 9000;
    r.graph.graph = 3;
    r.graph.context = 1;
    r.graph.stream = 7;
    fake_cupti_put(&r);
}

static void driver(long n)
{
    for (long i = 0; i < n; i++) {
        uint64_t t = fake_cupti_now();

        correlation++;
        put_call_of(RP_CUPTI_DRIVER, 307, t, t + 2000);
        put_kernel("by_driver", t + 3000, t + 4000);
        fake_cupti_enter(211, ++correlation);
        put_call_of(RP_CUPTI_DRIVER, 307, t + 5000, t + 6000); /* ends first, is reported first */
        put_call(211, t + 4500, t + 6500);
        put_kernel("by_runtime", t + 7000, t + 8000);
        usleep(10);
    }
}

static void query(long n)
{
    for (long i = 0; i < n; i++) {
        uint64_t t = fake_cupti_now();

        correlation++;
        put_call(i % 2 ? 17 : 317, t, t + 100);
        correlation++;
        put_call_of(RP_CUPTI_DRIVER, 4, t + 200, t + 300);
        usleep(1);
    }
}

static void capture(long n)
{
    uint64_t t = fake_cupti_now();

    put_call(315, t, t + 100);
    for (long i = 0; i < n; i++, t += 100) {
        correlation++;
        put_call(211, t + 200, t + 300);
    }
    correlation++;
    put_call(319, t + 300, t + 400);
    usleep((useconds_t)n / 10 + 10);
    graph();
}

static void external(void)
{
    uint64_t t = fake_cupti_now();

    correlation++;
    clear(RP_CUPTI_EXTERNAL_CORRELATION);
    r.external.external_kind = 5;
    r.external.external = 4711;
    r.external.correlation = correlation;
    fake_cupti_put(&r);
    put_call(211, t, t + 4000);
    t = fake_cupti_now();
    put_kernel("inside", t + 5000, t + 6000);
}

static void ask_as_other(void)
{
    void *subscriber;
    int code = cuptiSubscribe(&subscriber, NULL, NULL);

    printf("other profiler: %d\n", code);
}

static void fork_child(void)
{
    pid_t child;

    fflush(stdout);
    child = fork();
    if (!child)
        exit(0); /* its exit handlers must not touch CUPTI */
    waitpid(child, NULL, 0);
}

/* Its record comes after the wait, so that it ends later than the wait, however long that took. */
static void late(void)
{
    uint64_t t = fake_cupti_now();
    uint32_t launched = correlation;

    put_call(211, t, t + 1000);
    t = fake_cupti_now();
    put_wait();
    correlation = launched;
    put_kernel("late", t, fake_cupti_now() + 9000);
    correlation++;
}

static void zero(void)
{
    put_kernel("no_times", 0, 0);
    put_kernel("unfinished", fake_cupti_now(), 0);
}

static void early(void)
{
    uint64_t t = fake_cupti_now();

    put_call(211, t, t + 4000);
    put_kernel("early", t - 500, t + 1000);
}

static void kill_self(void)
{
    raise(SIGKILL);
}

static void step(long n)
{
    for (long i = 0; i < n; i++)
        launch(i % 2 ? "_Z4addAPfS_" : "gemm");
    copy_set_wait();
}

static void burst(long n)
{
    uint64_t t = fake_cupti_now();

    for (long i = 0; i < n; i++, t += 100) {
        correlation++;
        put_call(211, t, t + 50);
        put_kernel("tiny", t + 60, t + 150);
    }
    usleep((useconds_t)n / 10);
}

static void counted(long n)
{
    fake_cupti_context(1);
    for (long i = 0; i < n; i++) {
        RP_RANGE_BEGIN("step");
        for (int k = 0; k < 3; k++)
            fake_cupti_launch(k ? "_Z4reluPf" : "_Z4gemmPfS_", ++correlation);
        RP_RANGE_END();
    }
    fake_cupti_context(0);
}

static void some_steps(long n, long captures)
{
    for (long i = 0; i < n; i++) {
        RP_RANGE_BEGIN("step");
        if (i == captures) {
            put_call(315, fake_cupti_now(), fake_cupti_now());
            put_call(319, fake_cupti_now(), fake_cupti_now());
        }
        for (int k = 0; k < 10; k++)
            launch("gemm");
        RP_RANGE_END();
        fake_cupti_await(0);
    }
}

static void steps(long n)
{
    some_steps(n, -1);
}

static void captures(long n)
{
    some_steps(n, 7);
}

static void drop(long n)
{
    fake_cupti_drop((size_t)n);
}

static void rest(long ms)
{
    usleep((useconds_t)ms * 1000);
}

static void told(void)
{
    fake_cupti_await(1);
}

static const struct {
    const char *word;
    void (*plain)(void);
    void (*counted)(long n);
} words[] = {
    {"step", NULL, step},         {"burst", NULL, burst},        {"steps", NULL, steps},
    {"counted", NULL, counted},   {"driver", NULL, driver},      {"capture", NULL, capture},
    {"query", NULL, query},       {"captures", NULL, captures},  {"drop", NULL, drop},
    {"told", told, NULL},         {"zero", zero, NULL},          {"early", early, NULL},
    {"late", late, NULL},         {"disorder", disorder, NULL},  {"graph", graph, NULL},
    {"external", external, NULL}, {"other", ask_as_other, NULL}, {"fork", fork_child, NULL},
    {"kill", kill_self, NULL},    {"rest", NULL, rest},          {"events", events, NULL},
    {"endless", endless, NULL}};

/* Executes one argument; returns 1 if it used the next one too. */
static int obey(const char *word, const char *value)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i].word))
            continue;
        correlation++;
        if (words[i].plain) {
            words[i].plain();
            return 0;
        }
        words[i].counted(value ? strtol(value, NULL, 10) : 0);
        return 1;
    }
    fprintf(stderr, "fake_cuda: unknown word '%s'\n", word);
    exit(2);
}

int main(int argc, char **argv)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    int (*initialize)(void);

    dlopen("libcuda.so.1", RTLD_NOW); /* the double of the driver only has to exist */
    if (library) {
        *(void **)&initialize = dlsym(library, "InitializeInjection");
        if (!initialize || initialize() != 1)
            return 3;
    }
    begin_device();
    for (int i = 1; i < argc; i++) {
        i += obey(argv[i], i + 1 < argc ? argv[i + 1] : NULL);
        usleep(50);
    }
    printf("done\n");
    return 0;
}
