/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A double of libtorch_cpu.so: observers of operators, as at::RecordFunction has them; and, with
 * -DPROGRAM, a program that does what python/sitecustomize.py and a training job do with it. Its
 * arguments:
 *
 *   cuda      loads the injected CUDA library, as the driver does at the first use of a device
 *   step N    N steps: a forward operator that launches inside another one, a view, a backward
 *             node, an optimizer step, a batch of the data loader
 *   slow      an operator that launches nothing, and takes 1.5 s
 *   threads   an operator on another thread
 *   fork      an operator in the child of a fork
 *   async     a range that ends on another thread, as collectives do
 *   kill      kill -9 of itself, inside a range
 *   _exit     ends without exit handlers
 *
 * FAKE_TORCH=other: the observers are called with other objects than expected (the test must fail).
 */
#include "abi/cupti.h"
#include "abi/torch.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct rp_torch_function {
    void *table;
    const char *text;
    int64_t other[22];
    int64_t sequence; /* word 24 */
    bool async;
};

#define PUBLIC __attribute__((visibility("default")))

#ifndef PROGRAM

static struct {
    struct rp_torch_callback callback;
    bool on, enabled;
} callbacks[8];

PUBLIC uint64_t add(struct rp_torch_callback callback) __asm__(
    "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
PUBLIC void remove_callback(uint64_t handle) __asm__("_ZN2at14removeCallbackEm");
PUBLIC void disable(uint64_t handle) __asm__("_ZN2at15disableCallbackEm");
PUBLIC void reenable(uint64_t handle) __asm__("_ZN2at16reenableCallbackEm");
PUBLIC const char *
name(const struct rp_torch_function *f) __asm__("_ZNK2at14RecordFunction4nameEv");
PUBLIC bool
is_async(const struct rp_torch_function *f) __asm__("_ZNK2at14RecordFunction7isAsyncEv");
PUBLIC void torch_observe(enum rp_torch_scope scope, const struct rp_torch_function *f, int begins);

uint64_t add(struct rp_torch_callback callback)
{
    for (uint64_t i = 0; i < 8; i++) {
        if (callbacks[i].on)
            continue;
        callbacks[i].callback = callback;
        callbacks[i].on = callbacks[i].enabled = true;
        return i + 1;
    }
    abort();
}

void remove_callback(uint64_t handle)
{
    callbacks[handle - 1].on = false;
}

void disable(uint64_t handle)
{
    callbacks[handle - 1].enabled = false;
}

void reenable(uint64_t handle)
{
    callbacks[handle - 1].enabled = true;
}

const char *name(const struct rp_torch_function *f)
{
    const char *how = getenv("FAKE_TORCH");

    return how && !strcmp(how, "other") ? "another name" : f->text;
}

bool is_async(const struct rp_torch_function *f)
{
    return f->async;
}

void torch_observe(enum rp_torch_scope scope, const struct rp_torch_function *f, int begins)
{
    for (int i = 0; i < 8; i++) {
        void *context = &context;

        if (!callbacks[i].on || !callbacks[i].enabled || !callbacks[i].callback.scopes[scope])
            continue;
        if (!begins)
            callbacks[i].callback.end(f, NULL);
        else if (callbacks[i].callback.start(&context, f) != &context || context)
            abort(); /* as a function that returns a unique_ptr does */
    }
}

#else

static void (*observe)(enum rp_torch_scope, const struct rp_torch_function *, int);
static void (*launch)(const char *kernel, uint32_t correlation);
static int64_t sequence = 7;
static uint32_t correlation = 100;

static struct rp_torch_function begin(enum rp_torch_scope scope, const char *text, int64_t number)
{
    return (struct rp_torch_function){
        .table = (void *)(uintptr_t)scope, .text = text, .sequence = number};
}

static void run(enum rp_torch_scope scope, const char *text, int64_t number, void (*inside)(void))
{
    struct rp_torch_function f = begin(scope, text, number);

    observe(scope, &f, 1);
    if (inside)
        inside();
    observe(scope, &f, 0);
}

static void give_work(void)
{
    if (launch)
        launch("gemm", ++correlation);
}

static void addmm(void)
{
    run(RP_TORCH_FUNCTION, "aten::t", sequence, NULL);
    run(RP_TORCH_FUNCTION, "aten::addmm", sequence++, give_work);
}

static void update(void)
{
    run(RP_TORCH_FUNCTION, "aten::_fused_sgd_", -1, give_work);
}

static void step(long n)
{
    for (long i = 0; i < n; i++) {
        run(RP_TORCH_USER, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", -1, NULL);
        run(RP_TORCH_FUNCTION, "aten::linear", sequence, addmm);
        run(RP_TORCH_FUNCTION, "aten::view", sequence, NULL);
        run(RP_TORCH_BACKWARD, "AddmmBackward0", sequence - 1, give_work);
        run(RP_TORCH_USER, "Optimizer.step#SGD.step", -1, update);
        usleep(100);
    }
}

static void wait_long(void)
{
    usleep(1500000);
}

static void *on_thread(void *unused)
{
    (void)unused;
    run(RP_TORCH_FUNCTION, "aten::on_thread", -1, NULL);
    return NULL;
}

static void threads(void)
{
    pthread_t thread;

    if (!pthread_create(&thread, NULL, on_thread, NULL))
        pthread_join(thread, NULL);
}

static void *end_on_thread(void *f)
{
    observe(RP_TORCH_USER, f, 0);
    return NULL;
}

static void async(void)
{
    struct rp_torch_function f = begin(RP_TORCH_USER, "gloo:all_reduce", -1);
    pthread_t thread;

    f.async = true;
    observe(RP_TORCH_USER, &f, 1);
    run(RP_TORCH_USER, "after the collective", -1, NULL);
    if (!pthread_create(&thread, NULL, end_on_thread, &f))
        pthread_join(thread, NULL);
}

static void fork_child(void)
{
    pid_t child;

    fflush(stdout);
    child = fork();
    if (!child) {
        run(RP_TORCH_FUNCTION, "aten::in_child", -1, NULL);
        exit(0);
    }
    waitpid(child, NULL, 0);
}

static void kill_self(void)
{
    raise(SIGKILL);
}

static void *loaded(const char *variable)
{
    const char *path = getenv(variable);

    return path ? dlopen(path, RTLD_NOW) : NULL;
}

static void cuda(void)
{
    void *library = loaded("CUDA_INJECTION64_PATH");
    void *cupti = dlopen("libcupti.so.13", RTLD_NOW);
    int (*initialize)(void) = NULL;

    if (library)
        *(void **)&initialize = dlsym(library, "InitializeInjection");
    if (initialize)
        initialize();
    if (cupti)
        *(void **)&launch = dlsym(cupti, "fake_cupti_launch");
}

/* What sitecustomize.py does. */
static void test(void)
{
    void *library = loaded("INTEL_LIBITTNOTIFY64");
    int (*open)(void), (*saw)(const char *), good;
    void (*expect)(int64_t), (*start)(void), (*stop)(void);

    if (!library)
        return;
    *(void **)&open = dlsym(library, "reprise_torch_open");
    *(void **)&saw = dlsym(library, "reprise_torch_saw");
    *(void **)&expect = dlsym(library, "reprise_torch_expect");
    *(void **)&start = dlsym(library, "reprise_torch_begin");
    *(void **)&stop = dlsym(library, "reprise_torch_close");
    if (!open()) {
        printf("no observers\n");
        return;
    }
    run(RP_TORCH_FUNCTION, "aten::empty", -1, NULL);
    good = saw("aten::empty");
    for (int i = 0; i < 4; i++) {
        expect(sequence);
        run(RP_TORCH_FUNCTION, "aten::mul", sequence++, NULL);
        good = good && saw("aten::mul");
    }
    if (good)
        start();
    else
        stop();
    printf("observers %s\n", good ? "are good" : "failed the test");
}

int main(int argc, char **argv)
{
    void *torch = dlopen("./libtorch_cpu.so", RTLD_NOW);

    if (!torch)
        return 3;
    *(void **)&observe = dlsym(torch, "torch_observe");
    test();
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "cuda"))
            cuda();
        else if (!strcmp(argv[i], "step"))
            step(strtol(argv[++i], NULL, 10));
        else if (!strcmp(argv[i], "slow"))
            run(RP_TORCH_FUNCTION, "aten::slow", -1, wait_long);
        else if (!strcmp(argv[i], "threads"))
            threads();
        else if (!strcmp(argv[i], "async"))
            async();
        else if (!strcmp(argv[i], "fork"))
            fork_child();
        else if (!strcmp(argv[i], "kill"))
            run(RP_TORCH_USER, "the last range", -1, kill_self);
        else if (!strcmp(argv[i], "_exit"))
            _exit(0);
    }
    printf("done\n");
    return 0;
}

#endif
