/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks double from 4 KiB to 1 MiB; a larger object gets a chunk of its own, and small objects
   continue to fill the chunk before it. */
#include "base/arena.h"

#include "base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#ifndef ARENA_ASAN
#define ARENA_ASAN 0
#endif

#if ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define REDZONE        16
#define POISON(p, n)   ASAN_POISON_MEMORY_REGION((p), (n))
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
#define REDZONE        0
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#define FIRST_CHUNK ((size_t)4096)
#define LAST_CHUNK  ((size_t)1 << 20)

struct rp_arena_chunk {
    struct rp_arena_chunk *next;
    size_t size; /* of the whole allocation */
};

struct rp_arena_column {
    struct rp_arena_column *next;
    void *at;
    size_t cap, size;
};

void rp_arena_init(struct rp_arena *arena)
{
    *arena = (struct rp_arena)RP_ARENA_INIT;
}

void rp_arena_release(struct rp_arena *arena)
{
    struct rp_arena_chunk *chunk = arena->chunks;

    for (struct rp_arena_column *column = arena->columns; column;
         column = column->next) /* the nodes are in the chunks */
        rp_vec_drop(column->at, column->cap, column->size);
    while (chunk) {
        struct rp_arena_chunk *next = chunk->next;

        UNPOISON(chunk, chunk->size);
        free(chunk);
        chunk = next;
    }
    rp_arena_init(arena);
}

static size_t next_chunk_size(const struct rp_arena *arena)
{
    size_t size = arena->chunks ? arena->chunks->size * 2 : FIRST_CHUNK;

    return size < LAST_CHUNK ? size : LAST_CHUNK;
}

static struct rp_arena_chunk *new_chunk(struct rp_arena *arena, size_t size)
{
    struct rp_arena_chunk *chunk = malloc(size);

    if (!chunk)
        return NULL;
    chunk->size = size;
    arena->bytes += size;
    POISON(chunk + 1, size - sizeof *chunk);
    return chunk;
}

static int add_chunk(struct rp_arena *arena, size_t size)
{
    struct rp_arena_chunk *chunk = new_chunk(arena, size);

    if (!chunk)
        return -1;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->at = (char *)(chunk + 1);
    arena->end = (char *)chunk + size;
    return 0;
}

static char *aligned(char *at, size_t align)
{
    return at + (-(uintptr_t)at & (align - 1));
}

/* Whether the newest chunk has room for size bytes and their red zone. */
static int fits(const struct rp_arena *arena, size_t size, size_t align)
{
    return arena->chunks && (size_t)(arena->end - arena->at) >=
                                size + REDZONE + (-(uintptr_t)arena->at & (align - 1));
}

/* Returns NULL if memory runs out. */
static char *find_room(struct rp_arena *arena, size_t size, size_t align)
{
    size_t need = sizeof(struct rp_arena_chunk) + size + REDZONE + 64;
    size_t usual = next_chunk_size(arena);

    if (!fits(arena, size, align)) {
        if (arena->chunks && need > usual) {
            /* Allocates a chunk for a single object, behind the chunk that is being filled; returns
               NULL if memory runs out. */
            struct rp_arena_chunk *chunk = new_chunk(arena, need);

            if (!chunk)
                return NULL;
            chunk->next = arena->chunks->next;
            arena->chunks->next = chunk;
            return aligned((char *)(chunk + 1), align);
        }
        if (add_chunk(arena, need > usual ? need : usual) < 0)
            return NULL;
    }
    char *at = aligned(arena->at, align);
    arena->at = at + size + REDZONE;
    return at;
}

void *rp_arena_alloc(struct rp_arena *arena, size_t size, size_t align)
{
    char *at = size > SIZE_MAX / 2 ? NULL : find_room(arena, size, align);

    if (at)
        UNPOISON(at, size);
    else
        arena->failed = true;
    return at;
}

void *rp_arena_calloc(struct rp_arena *arena, size_t n, size_t size, size_t align)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes))
        bytes = SIZE_MAX; /* which fails */
    void *at = rp_arena_alloc(arena, bytes, align);
    if (at && bytes)
        memset(at, 0, bytes);
    return at;
}

char *rp_arena_copy(struct rp_arena *arena, const char *bytes, size_t len)
{
    char *copy = rp_arena_alloc(arena, len + 1, 1);

    if (!copy)
        return NULL;
    if (len)
        memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

char *rp_arena_strdup(struct rp_arena *arena, const char *text)
{
    return rp_arena_copy(arena, text, strlen(text));
}

__attribute__((format(printf, 2, 0))) static char *print(struct rp_arena *arena, const char *fmt,
                                                         va_list args)
{
    char *text = NULL;
    va_list again;

    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    if (len < 0)
        arena->failed = true;
    else if ((text = rp_arena_alloc(arena, (size_t)len + 1, 1)))
        vsnprintf(text, (size_t)len + 1, fmt, again);
    va_end(again);
    return text;
}

char *rp_arena_printf(struct rp_arena *arena, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *text = print(arena, fmt, args);
    va_end(args);
    return text;
}

const char *rp_arena_textf(struct rp_arena *arena, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    const char *text = print(arena, fmt, args);
    va_end(args);
    return text ? text : "";
}

const char *rp_arena_text(struct rp_arena *arena, const char *text)
{
    const char *copy = text ? rp_arena_strdup(arena, text) : NULL;

    return text && !copy ? "" : copy;
}

/* A list has room for the next power of two. */
void rp_arena_append(struct rp_arena *arena, const char ***list, size_t *n, const char *text)
{
    if (!text)
        return;
    if (!(*n & (*n - 1))) {
        const char **wider = RP_ARENA_NEW(arena, const char *, *n ? 2 * *n : 1);

        if (!wider)
            return;
        if (*n)
            memcpy(wider, *list, *n * sizeof *wider);
        *list = wider;
    }
    (*list)[(*n)++] = text;
}

enum rp_code rp_arena_check(const struct rp_arena *arena, const char *what, struct rp_err *err)
{
    return arena->failed ? rp_err_nomem(err, what) : RP_OK;
}

void rp_arena_adopt(struct rp_arena *to, struct rp_arena *from)
{
    struct rp_arena_chunk **chunk = &from->chunks;
    struct rp_arena_column **column = &from->columns;

    if (!to->chunks) {
        to->at = from->at;
        to->end = from->end;
    }
    while (*chunk)
        chunk = &(*chunk)->next;
    while (*column)
        column = &(*column)->next;
    *column = to->columns;
    to->columns = from->columns;
    if (to->chunks) { /* after its first chunk, which is still being filled */
        *chunk = to->chunks->next;
        to->chunks->next = from->chunks;
    } else {
        to->chunks = from->chunks;
    }
    to->bytes += from->bytes;
    to->failed |= from->failed;
    rp_arena_init(from);
}

enum rp_code rp_arena_adopt_column(struct rp_arena *arena, void *at, size_t cap, size_t size,
                                   struct rp_err *err)
{
    if (!cap)
        return RP_OK;
    struct rp_arena_column *column = RP_ARENA_NEW(arena, struct rp_arena_column, 1);
    RP_TRY(rp_err_need(column, err, "keeping a column"));
    *column = (struct rp_arena_column){arena->columns, at, cap, size};
    arena->columns = column;
    return RP_OK;
}
