/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a block is mapped is decided by its size alone (PAGED bytes or more), so no flag is
 * needed: capacity * element size decides how it is freed.
 */
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGED ((size_t)256 << 10)
#define PAGE  ((size_t)4096)
#define LARGE ((size_t)2 << 20) /* a huge page */

static size_t rounded(size_t bytes)
{
    return bytes >= PAGED ? (bytes + PAGE - 1) & ~(PAGE - 1) : bytes;
}

static void *map_new(const void *old, size_t old_bytes, size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    if (old_bytes)
        memcpy(p, old, old_bytes);
    return p;
}

/* Returns larger pages with the same content, or NULL. */
static void *move_pages(void *old, size_t old_bytes, size_t bytes)
{
    void *p;

#ifdef __SANITIZE_THREAD__
    /* The thread sanitizer does not know mremap: it mistakes moved pages for those that another
       thread had at that address. */
    p = map_new(old, old_bytes < bytes ? old_bytes : bytes, bytes);
    if (p)
        munmap(old, old_bytes);
    return p;
#else
    p = mremap(old, old_bytes, bytes, MREMAP_MAYMOVE);
    return p == MAP_FAILED ? NULL : p;
#endif
}

static void *resize(void *old, size_t old_bytes, size_t bytes)
{
    if (bytes < PAGED)
        return realloc(old, bytes);
    if (old_bytes < PAGED) {
        void *p = map_new(old, old_bytes, bytes);
        if (p)
            free(old);
        return p;
    }
    return move_pages(old, rounded(old_bytes), bytes);
}

enum rp_code rp_vec_grow(void **at, size_t *cap, size_t n, size_t more, size_t size,
                         struct rp_err *err)
{
    size_t need, room = *cap < 8 ? 8 : *cap;

    if (__builtin_add_overflow(n, more, &need) || need > SIZE_MAX / 4 / size)
        return rp_err_set(err, RP_NOMEM, "out of memory: a column of more than %zu elements",
                          SIZE_MAX / 4 / size);
    while (room < need)
        room *= 2;
    size_t bytes = rounded(room * size);
    void *p = resize(*at, *cap * size, bytes);
    if (!p)
        return rp_err_set(err, RP_NOMEM, "out of memory while growing a column to %zu bytes",
                          bytes);
    *at = p;
    *cap = bytes / size;
    return RP_OK;
}

void rp_vec_drop(void *at, size_t cap, size_t size)
{
    if (cap * size >= PAGED)
        munmap(at, rounded(cap * size));
    else
        free(at);
}

void rp_vec_expect_full(void *at, size_t bytes)
{
    uintptr_t begin = ((uintptr_t)at + LARGE - 1) & ~(LARGE - 1);
    uintptr_t end = ((uintptr_t)at + bytes) & ~(LARGE - 1);

#ifdef MADV_HUGEPAGE
    /* A hint only. */
    if (bytes >= PAGED && begin < end)
        (void)madvise((char *)at + (begin - (uintptr_t)at), end - begin, MADV_HUGEPAGE);
#else
    (void)begin;
    (void)end;
#endif
}

void rp_vec_release_local(void *vector)
{
    struct {
        void *at;
        size_t n, cap, element_bytes;
    } v;

    memcpy(&v, vector, sizeof v);
    rp_vec_drop(v.at, v.cap, v.element_bytes);
}
