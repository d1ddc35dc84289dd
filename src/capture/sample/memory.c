/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the memory of the sampled process, which may be this one. The kernel copies the bytes, so
 * an address that is not (or no longer) mapped gives an error instead of a fault. A call takes
 * about half a microsecond.
 */
#include "capture/sample/sample.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE UINT64_C(4096)
#define BEFORE \
    3072 /* bytes of a window before the address, because a caller's frame is often there */
#define BLOCK (256 << 10)
#define TEXTS (1u << 16) /* a power of two */

pid_t rp_sample_pid;

/* Returns the number of bytes that were read, one part after the other. The kernel pins the pages
   of a piece together, and copies those before the first one that it cannot read. */
static size_t read_pieces(const struct iovec *to, const struct iovec *from, unsigned long n)
{
    ssize_t got = syscall(SYS_process_vm_readv, rp_sample_pid, to, n, from, n, 0UL);

    return got > 0 ? (size_t)got : 0;
}

size_t rp_sample_read(uint64_t at, void *to, size_t n)
{
    return read_pieces(&(struct iovec){to, n}, &(struct iovec){(void *)(uintptr_t)at, n}, // NOLINT
                       1);
}

void rp_sample_gather(struct rp_sample_part *parts, unsigned n)
{
    struct iovec from[RP_SAMPLE_PARTS], to[RP_SAMPLE_PARTS];

    for (unsigned i = 0; i < n; i++) {
        from[i] = (struct iovec){(void *)(uintptr_t)parts[i].at, parts[i].n}; // NOLINT
        to[i] = (struct iovec){parts[i].to, parts[i].n};
    }
    for (unsigned i = 0; i < n;) {
        size_t got = read_pieces(to + i, from + i, n - i);
        bool whole = true;

        for (; i < n && whole; i++) {
            parts[i].got = got < parts[i].n ? got : parts[i].n;
            got -= parts[i].got;
            whole = parts[i].got == parts[i].n;
        }
    }
}

static bool window_move(struct rp_sample_window *w, uint64_t from, uint64_t at, size_t n)
{
    w->at = from;
    w->n = rp_sample_read(from, w->bytes, sizeof w->bytes);
    return at - from + n <= w->n;
}

/* One page is cheaper than two, and the previous one may not be mapped. */
static bool window_find(struct rp_sample_window *w, uint64_t at, size_t n)
{
    uint64_t page = at & ~(PAGE - 1);

    if (at - page + n <= PAGE)
        return window_move(w, page, at, n);
    return at >= BEFORE && window_move(w, at - BEFORE, at, n);
}

bool rp_sample_window_has(const struct rp_sample_window *w, uint64_t at, size_t n)
{
    return at >= w->at && at - w->at <= w->n && w->n - (at - w->at) >= n;
}

bool rp_sample_peek(struct rp_sample_window *w, uint64_t at, void *to, size_t n)
{
    if (!rp_sample_window_has(w, at, n) && !window_find(w, at, n)) {
        w->n = 0;
        return rp_sample_read(at, to, n) == n;
    }
    memcpy(to, w->bytes + (at - w->at), n);
    return true;
}

bool rp_sample_peek8(struct rp_sample_window *w, uint64_t at, uint64_t *to)
{
    return rp_sample_peek(w, at, to, 8);
}

void *rp_sample_pages(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

void *rp_sample_alloc(size_t n)
{
    static char *block;
    static size_t left;

    n = (n + 15) & ~(size_t)15;
    if (n > BLOCK / 4)
        return rp_sample_pages(n);
    if (n > left) {
        block = rp_sample_pages(BLOCK);
        left = block ? BLOCK : 0;
        if (!block)
            return NULL;
    }
    void *p = block;
    block += n;
    left -= n;
    return p;
}

const char *rp_sample_intern(const char *text)
{
    static const char **known;
    static size_t nknown;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    size_t n = strlen(text) + 1, i;

    for (size_t k = 0; k < n; k++)
        hash = (hash ^ (uint8_t)text[k]) * UINT64_C(0x100000001b3);
    if (!known && !(known = rp_sample_pages(TEXTS * sizeof *known)))
        return NULL;
    for (i = hash & (TEXTS - 1); known[i]; i = (i + 1) & (TEXTS - 1))
        if (!strcmp(known[i], text))
            return known[i];
    if (nknown >= (size_t)TEXTS / 8 * 7)
        return "native\t[one of too many functions]\t\t0";
    char *copy = rp_sample_alloc(n);
    if (!copy)
        return NULL;
    nknown++;
    return known[i] = memcpy(copy, text, n);
}
