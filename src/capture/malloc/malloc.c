/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source `malloc`, loaded by LD_PRELOAD where it is asked for: how many allocations the program
 * makes and how many bytes it holds, as counters, ten times a second. Each thread counts for itself
 * in a block that is never freed, and the core's thread adds them up: an allocation costs a few
 * plain additions. Blocks that one thread allocates and another frees balance in the sum.
 */
#include "capture/core/core.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define EARLY \
    (64 << 10) /* bytes for what the loader allocates while the real functions are found */

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

static void find(void)
{
    if (inside)
        return;
    inside = true; /* dlsym may allocate: that comes from the early block */
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

static void bump(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static void *allocated(void *p)
{
    struct counts *c;
    int saved = errno;

    if (p && (c = my_counts())) {
        bump(&c->calls, 1);
        bump(&c->bytes, malloc_usable_size(p));
    }
    errno = saved;
    return p;
}

static void given_back(void *p)
{
    struct counts *c = my_counts();

    if (!c)
        return;
    bump(&c->frees, 1);
    bump(&c->freed, malloc_usable_size(p));
}

/* -------------------------------------------------------------------------- calls passed on */

EXPORT void *malloc(size_t n)
{
    if (!next_malloc)
        find();
    return next_malloc ? allocated(next_malloc(n)) : from_early(n);
}

EXPORT void *calloc(size_t n, size_t size)
{
    if (!next_malloc)
        find();
    if (!next_malloc)
        return size && n > EARLY / size ? NULL : from_early(n * size);
    return allocated(next_calloc(n, size));
}

EXPORT void free(void *p)
{
    if (!p || is_early(p))
        return;
    if (!next_malloc)
        find();
    given_back(p);
    next_free(p);
}

EXPORT void *realloc(void *p, size_t n)
{
    size_t before;
    void *fresh;

    if (!next_malloc)
        find();
    if (is_early(p)) {
        size_t most = (size_t)(early + EARLY - (char *)p);

        fresh = malloc(n);
        if (fresh)
            memcpy(fresh, p, n < most ? n : most);
        return fresh;
    }
    before = p ? malloc_usable_size(p) : 0;
    fresh = next_realloc(p, n);
    if (p && (fresh || !n) && my_counts()) {
        bump(&mine->frees, 1);
        bump(&mine->freed, before);
    }
    return allocated(fresh);
}

EXPORT void *aligned_alloc(size_t alignment, size_t n)
{
    if (!next_malloc)
        find();
    return next_aligned ? allocated(next_aligned(alignment, n)) : NULL;
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t n)
{
    int result;

    if (!next_malloc)
        find();
    result = next_memalign ? next_memalign(out, alignment, n) : ENOMEM;
    if (!result)
        allocated(*out);
    return result;
}

/* The other ways to the heap: what is freed must have been counted. */
EXPORT void *memalign(size_t alignment, size_t n)
{
    if (!next_malloc)
        find();
    return next_old_memalign ? allocated(next_old_memalign(alignment, n)) : NULL;
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

/* -------------------------------------------------------------------------- telling */

static void on_tick(void)
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

__attribute__((constructor)) static void load(void)
{
    cap = rp_capture_get();
    if (!cap)
        return;
    cap->source("malloc", on_tick, on_tick);
    cap->fact("source", "malloc"); /* the first event: from here on there are ticks */
}
