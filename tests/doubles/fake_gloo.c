/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A double of the part of PyTorch's libtorch_cpu.so that has gloo, under the names of its C++
 * functions, and (-DPROGRAM) a program that loads it as Python loads an extension: into a scope of
 * its own. Five collectives of three ranks, which wait for a time instead of for each other, but
 * meet before the last one.
 */
#include "meet.h"

#include <stdio.h>
#include <time.h>

struct context {
    void *functions;
    int rank, size;
};

struct options { /* of a reduction, as PyTorch 2.11 has them */
    struct context *context;
    unsigned long other[9], elements, element_bytes, more[8];
};

#ifdef PROGRAM
#include <dlfcn.h>

int main(void)
{
    void *library = dlopen("./libtorch_cpu.so", RTLD_NOW | RTLD_LOCAL);
    int (*run)(void);

    if (!library)
        return puts(dlerror());
    *(void **)&run = dlsym(library, "run");
    printf("calls %d\n", run());
    return 0;
}
#else
void _ZN4gloo9allreduceERKNS_16AllreduceOptionsE(const struct options *options);
void _ZN4gloo7barrierERNS_14BarrierOptionsE(struct options *options);
void _ZN4gloo10rendezvous7ContextC1Eiii(struct context *context, int rank, int size, int base);
_Bool _ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(void *work, long ms);
int run(void);

static int calls;

void _ZN4gloo10rendezvous7ContextC1Eiii(struct context *context, int rank, int size, int base)
{
    (void)base;
    context->rank = rank;
    context->size = size;
}

void _ZN4gloo9allreduceERKNS_16AllreduceOptionsE(const struct options *options)
{
    calls += options->context->size == 3;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

void _ZN4gloo7barrierERNS_14BarrierOptionsE(struct options *options)
{
    _ZN4gloo9allreduceERKNS_16AllreduceOptionsE(options);
}

_Bool _ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(void *work, long ms)
{
    return work && ms == 7;
}

int run(void)
{
    struct context context;
    struct options options = {.context = &context, .elements = 1000, .element_bytes = 4};

    _ZN4gloo10rendezvous7ContextC1Eiii(&context, 1, 3, 2);
    for (int i = 0; i < 4; i++)
        _ZN4gloo9allreduceERKNS_16AllreduceOptionsE(&options);
    meet();
    _ZN4gloo7barrierERNS_14BarrierOptionsE(&options);
    return calls +
           100 * _ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(&context, 7);
}
#endif
