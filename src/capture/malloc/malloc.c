/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source `malloc`, loaded by LD_PRELOAD on request: the number of allocations and the bytes in
 * use, as counters, ten times a second. Each thread has its own counters, which are never freed,
 * and the core's thread sums them: an allocation costs a few plain additions. Memory that one
 * thread allocates and another frees cancels out in the sum.
 */
#include "capture/core/core.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT      __attribute__((visibility("default")))
#define CHILD_OPENS 64         /* allocations after which the child of a fork is recorded */
#define EARLY       (64 << 10) /* bytes for allocations made while the real functions are looked up */

struct counts {
    _Atomic uint64_t calls, frees, bytes, freed; /* written by one thread */
    struct counts *next;
};

static const struct rp_capture *cap;
static _Atomic(struct counts *) all;
static __thread struct counts *mine __attribute__((tls_model("initial-exec")));
static __thread bool inside __attribute__((tls_model("initial-exec")));

static void *(*next_malloc)(size_t);
static void (*next_free)(void *);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void *(*next_aligned)(size_t, size_t);
static int (*next_memalign)(void **, size_t, size_t);
static void *(*next_old_memalign)(size_t, size_t);

static _Alignas(16) char early[EARLY];
static _Atomic size_t early_used;

static void *from_early(size_t n)
{
    size_t at = atomic_fetch_add(&early_used, (n + 15) & ~(size_t)15);

    return at + n <= EARLY ? early + at : NULL;
}

static bool is_early(const void *p)
{
    return (const char *)p >= early && (const char *)p < early + EARLY;
}

static void find_next(void)
{
    if (inside)
        return;
    inside = true; /* dlsym may allocate, which the early block serves */
    *(void **)&next_free = dlsym(RTLD_NEXT, "free");
    *(void **)&next_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&next_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&next_aligned = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void **)&next_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    *(void **)&next_old_memalign = dlsym(RTLD_NEXT, "memalign");
    *(void **)&next_malloc = dlsym(RTLD_NEXT, "malloc");
    inside = false;
}

/* -------------------------------------------------------------------------- counting */

static struct counts *my_counts(void)
{
    struct counts *c = mine;

    if (c)
        return c;
    c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED)
        return NULL;
    c->next = atomic_load(&all);
    while (!atomic_compare_exchange_weak(&all, &c->next, c))
        ;
    return mine = c;
}

static void counter_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* The child of a fork has no ticks until it opens the recording itself. A child that only calls
   exec makes few allocations and never does. */
static unsigned left_to_open; /* allocations */

static void malloc_in_child(void)
{
    left_to_open = CHILD_OPENS;
}

static void malloc_open(void);

static void *count_malloc(void *p)
{
    struct counts *c;
    int saved = errno;

    if (__builtin_expect(left_to_open != 0, 0) && !--left_to_open)
        malloc_open();

    if (p && (c = my_counts())) {
        counter_add(&c->calls, 1);
        counter_add(&c->bytes, malloc_usable_size(p));
    }
    errno = saved;
    return p;
}

/* -------------------------------------------------------------------------- intercepted calls */

EXPORT void *malloc(size_t n)
{
    if (!next_malloc)
        find_next();
    return next_malloc ? count_malloc(next_malloc(n)) : from_early(n);
}

EXPORT void *calloc(size_t n, size_t size)
{
    if (!next_malloc)
        find_next();
    if (!next_malloc)
        return size && n > EARLY / size ? NULL : from_early(n * size);
    return count_malloc(next_calloc(n, size));
}

EXPORT void free(void *p)
{
    if (!p || is_early(p))
        return;
    if (!next_malloc)
        find_next();
    struct counts *c = my_counts();
    if (c) {
        counter_add(&c->frees, 1);
        counter_add(&c->freed, malloc_usable_size(p));
    }
    next_free(p);
}

EXPORT void *realloc(void *p, size_t n)
{
    if (!next_malloc)
        find_next();
    if (is_early(p)) {
        size_t max = (size_t)(early + EARLY - (char *)p);

        void *fresh = malloc(n);
        if (fresh)
            memcpy(fresh, p, n < max ? n : max);
        return fresh;
    }
    size_t before = p ? malloc_usable_size(p) : 0;
    void *fresh = next_realloc(p, n);
    if (p && (fresh || !n) && my_counts()) {
        counter_add(&mine->frees, 1);
        counter_add(&mine->freed, before);
    }
    return count_malloc(fresh);
}

EXPORT void *aligned_alloc(size_t alignment, size_t n)
{
    if (!next_malloc)
        find_next();
    return next_aligned ? count_malloc(next_aligned(alignment, n)) : NULL;
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t n)
{
    if (!next_malloc)
        find_next();
    int result = next_memalign ? next_memalign(out, alignment, n) : ENOMEM;
    if (!result)
        count_malloc(*out);
    return result;
}

/* All other allocation functions are wrapped, because every block that is freed must have been
   counted. */
EXPORT void *memalign(size_t alignment, size_t n)
{
    if (!next_malloc)
        find_next();
    return next_old_memalign ? count_malloc(next_old_memalign(alignment, n)) : NULL;
}

EXPORT void *valloc(size_t n)
{
    return memalign((size_t)sysconf(_SC_PAGESIZE), n);
}

EXPORT void *pvalloc(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return memalign(page, n > SIZE_MAX - page ? n : (n + page - 1) & ~(page - 1));
}

EXPORT void *reallocarray(void *p, size_t n, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, bytes);
}

/* -------------------------------------------------------------------------- counters */

static void malloc_tick(void)
{
    uint64_t calls = 0, frees = 0, bytes = 0, freed = 0;

    if (!cap->active())
        return;
    for (const struct counts *c = atomic_load(&all); c; c = c->next) {
        calls += atomic_load_explicit(&c->calls, memory_order_relaxed);
        frees += atomic_load_explicit(&c->frees, memory_order_relaxed);
        bytes += atomic_load_explicit(&c->bytes, memory_order_relaxed);
        freed += atomic_load_explicit(&c->freed, memory_order_relaxed);
    }
    cap->counter("malloc calls", (double)calls);
    cap->counter("malloc blocks in use", (double)(calls > frees ? calls - frees : 0));
    cap->counter("malloc bytes in use", (double)(bytes > freed ? bytes - freed : 0));
}

static void malloc_open(void)
{
    cap->source("malloc", malloc_tick, malloc_tick);
    cap->fact("source", "malloc"); /* the first event starts the ticks */
}

__attribute__((constructor)) static void malloc_load(void)
{
    cap = rp_capture_get();
    if (!cap)
        return;
    pthread_atfork(NULL, NULL, malloc_in_child);
    malloc_open();
}
