/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PJRT_DOUBLE_PROFILER_H
#define PJRT_DOUBLE_PROFILER_H
/* The profiler extension and the memory of the double: a part of pjrt_double.c. */
#include <stddef.h>
#include <string.h>

static void *fail(int code, const char *text);
static bool is(const char *word);

struct profiler_create {
    size_t size;
    const char *options;
    size_t noptions;
    void *profiler;
};
struct profiler_data {
    size_t size;
    void *profiler;
    unsigned char *buffer;
    size_t n;
};
struct of_profiler {
    size_t size;
    void *profiler;
};
static int running;
static void *profiler_create(struct profiler_create *a)
{
    a->profiler = &running;
    return a->noptions ? NULL : fail(3, "no options");
}
static void *profiler_start(struct of_profiler *a)
{
    ++*(int *)a->profiler;
    return NULL;
}
static void *profiler_stop(struct of_profiler *a)
{
    return --*(int *)a->profiler == 0 ? NULL : fail(9, "it was not running");
}
/* As the header says, or as XLA does it: with a buffer of its own, one byte too long. */
static void *profiler_collect(struct profiler_data *a)
{
    static unsigned char own[] = "xspace";

    if (is("own-buffer")) {
        a->buffer = own;
        a->n = sizeof own;
        return NULL;
    }
    if (a->buffer)
        memcpy(a->buffer, "xspace", 6);
    a->n = 6;
    return NULL;
}
static void *profiler_destroy(struct of_profiler *a)
{
    return a->profiler == &running ? NULL : fail(3, "not mine");
}

static const void *profiler_table[11];
static struct {
    size_t size;
    int type;
    void *next;
    const void *table;
} profiler = {sizeof profiler, 1, NULL, profiler_table}, first = {sizeof first, 5, &profiler, NULL};

/* ---- memory ---- */

struct stats {
    size_t size;
    void *extensions;
    void *device;
    int64_t in_use, peak;
    bool peak_known;
    int64_t more[18];
};
static void *memory_stats(struct stats *a)
{
    ENTER(Device_MemoryStats);
    a->peak = 12345;
    a->peak_known = true;
    return NULL;
}

#endif
