/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A double of the part of PyTorch's libtorch_cpu.so that has gloo, under the names of its C++
 * functions, and (-DPROGRAM) a program that loads it as Python loads an extension: into a scope of
 * its own. Five collectives of three ranks, which wait for a time instead of for each other, but
 * meet before the last one, and a message of each rank to the next one.
 */
#include "meet.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct context {
    void *functions;
    int rank, size;
};

struct options { /* of a reduction, as PyTorch 2.11 has them */
    struct context *context;
    unsigned long other[9], elements, element_bytes, more[8];
};

struct buffer { /* of the transport */
    void *functions, *address;
    unsigned long bytes;
    struct context *context;
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
_Bool _ZN4gloo9transport3tcp13UnboundBuffer8waitSendEPiNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    struct buffer *buffer, int *rank, long ms);
_Bool _ZN4gloo9transport3tcp13UnboundBuffer8waitRecvEPiNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    struct buffer *buffer, int *rank, long ms);
int run(void);

static int calls;

_Bool _ZN4gloo9transport3tcp13UnboundBuffer8waitSendEPiNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    struct buffer *buffer, int *rank, long ms)
{
    if (rank)
        *rank = (buffer->context->rank + 1) % buffer->context->size;
    return ms == 7;
}

_Bool _ZN4gloo9transport3tcp13UnboundBuffer8waitRecvEPiNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    struct buffer *buffer, int *rank, long ms)
{
    if (rank)
        *rank = (buffer->context->rank + buffer->context->size - 1) % buffer->context->size;
    return ms == 7;
}

void _ZN4gloo10rendezvous7ContextC1Eiii(struct context *context, int rank, int size, int base)
{
    (void)base;
    context->rank = rank;
    context->size = size;
}

void _ZN4gloo9allreduceERKNS_16AllreduceOptionsE(const struct options *options)
{
    struct buffer part = {.bytes = 64, .context = options->context};

    /* a message inside of a collective is not a message of the program */
    calls +=
        options->context->size == 3 &&
        _ZN4gloo9transport3tcp13UnboundBuffer8waitRecvEPiNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
            &part, NULL, 7);
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
    struct buffer message = {.bytes = 2048, .context = &context};
    const char *number = getenv("RANK");
    int from = -1;

    _ZN4gloo10rendezvous7ContextC1Eiii(&context, number ? atoi(number) : 1, 3, 2);
    for (int i = 0; i < 4; i++)
        _ZN4gloo9allreduceERKNS_16AllreduceOptionsE(&options);
    meet();
    calls +=
        10 *
        _ZN4gloo9transport3tcp13UnboundBuffer8waitSendEPiNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
            &message, NULL, 7);
    calls +=
        10 *
        _ZN4gloo9transport3tcp13UnboundBuffer8waitRecvEPiNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
            &message, &from, 7);
    calls += 1000 * (from == (context.rank + 2) % 3);
    _ZN4gloo7barrierERNS_14BarrierOptionsE(&options);
    return calls +
           100 * _ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(&context, 7);
}
#endif
