/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_BASE_ARENA_H
#define RP_BASE_ARENA_H
/*
 * An arena owns many small things that die together: a trace's tables, a result's rows. Things in
 * it are never freed one by one. Bulk columns do not belong here (see vec.h): a growing array would
 * leave its abandoned halves behind. Not thread-safe.
 *
 *   chunk:  [ header | thing | redzone | thing | redzone | ... free ... ]
 *
 * Under AddressSanitizer the free part and the red zones are poisoned.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct rp_arena_chunk;

struct rp_arena {
    struct rp_arena_chunk *chunks; /* newest first */
    char *at, *end;                /* free part of the newest chunk */
    size_t bytes;                  /* taken from the system so far */
};

#define RP_ARENA_INIT       \
    {                       \
        NULL, NULL, NULL, 0 \
    }

void rp_arena_init(struct rp_arena *arena);
void rp_arena_release(struct rp_arena *arena); /* all memory; the arena may be used again */

/* Memory of `size` bytes, not cleared, or NULL. align is a power of two up to 64. */
void *rp_arena_alloc(struct rp_arena *arena, size_t size, size_t align);
/* n cleared elements, or NULL (also where n * size overflows). */
void *rp_arena_calloc(struct rp_arena *arena, size_t n, size_t size, size_t align);

/* NUL-terminated copies, or NULL. */
char *rp_arena_copy(struct rp_arena *arena, const char *bytes, size_t len);
char *rp_arena_strdup(struct rp_arena *arena, const char *text);
char *rp_arena_printf(struct rp_arena *arena, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#define RP_ARENA_NEW(arena, type, n) \
    ((type *)rp_arena_calloc((arena), (n), sizeof(type), _Alignof(type)))

#endif
