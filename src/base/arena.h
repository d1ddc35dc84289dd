/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An arena owns many small objects of one lifetime: the tables of a trace, the rows of a result.
 * Objects are never freed one by one. Large growing arrays do not belong here (see vec.h): their
 * old copies would stay. Not thread-safe.
 *
 *   chunk:  [ header | thing | redzone | thing | redzone | ... free ... ]
 *
 * Under AddressSanitizer the free part and the red zones are poisoned.
 */
#include "base/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_arena_chunk;
struct rp_arena_column;

struct rp_arena {
    struct rp_arena_chunk *chunks;   /* newest first */
    struct rp_arena_column *columns; /* vectors that were handed over to it */
    char *at, *end;                  /* the free part of the newest chunk */
    size_t bytes;                    /* taken from the system so far */
    bool failed;                     /* an allocation failed since the arena was last empty */
};

#define RP_ARENA_INIT                    \
    {                                    \
        NULL, NULL, NULL, NULL, 0, false \
    }

void rp_arena_init(struct rp_arena *arena);
void rp_arena_release(struct rp_arena *arena); /* frees all memory; the arena may be used again */

/* Returns memory of `size` bytes, not cleared, or NULL. align is a power of two up to 64. */
void *rp_arena_alloc(struct rp_arena *arena, size_t size, size_t align);
/* Returns n cleared elements, or NULL (also if n * size overflows). */
void *rp_arena_calloc(struct rp_arena *arena, size_t n, size_t size, size_t align);

/* Return copies with a NUL at the end, or NULL. */
char *rp_arena_copy(struct rp_arena *arena, const char *bytes, size_t len);
char *rp_arena_strdup(struct rp_arena *arena, const char *text);
char *rp_arena_printf(struct rp_arena *arena, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * These make texts whose failure sticks to the arena, so that a sentence is one expression and
 * rp_arena_check checks a whole answer once. They return "" if memory runs out; rp_arena_text of
 * NULL is NULL.
 */
const char *rp_arena_text(struct rp_arena *arena, const char *text);
const char *rp_arena_textf(struct rp_arena *arena, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends to a list of texts that grows in the arena, and only by this function; NULL is left out.
 */
void rp_arena_append(struct rp_arena *arena, const char ***list, size_t *n, const char *text);
/* Returns RP_NOMEM if any allocation has failed; `what` tells what was being done, such as "writing
   the report". */
enum rp_code rp_arena_check(const struct rp_arena *arena, const char *what, struct rp_err *err);

/* Moves everything in `from`, including its failure, to `to`; `from` is then empty. */
void rp_arena_adopt(struct rp_arena *to, struct rp_arena *from);

/* Hands over the memory of a vector, cap elements of `size`: it stays in place until the arena is
   released, and the vector must no longer grow or be released. */
enum rp_code rp_arena_adopt_column(struct rp_arena *arena, void *at, size_t cap, size_t size,
                                   struct rp_err *err);

#define RP_ARENA_NEW(arena, type, n) \
    ((type *)rp_arena_calloc((arena), (n), sizeof(type), _Alignof(type)))
