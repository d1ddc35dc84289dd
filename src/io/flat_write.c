/* SPDX-License-Identifier: Apache-2.0 */
/* References point forward, so a writer that goes backwards knows each target. A place is its
   distance from the end, which later bytes do not change. */
#include "io/flat_write.h"

#include <stdlib.h>
#include <string.h>

#define FLAT_MAX (UINT32_C(1) << 31) /* references have 31 bits */

void rp_flat_release(struct rp_flat *f)
{
    free(f->memory);
    *f = (struct rp_flat){0};
}

void rp_flat_rewind(struct rp_flat *f)
{
    f->n = 0;
    f->code = RP_OK;
}

/* Puts n bytes before what is there; if bytes is NULL, they are zeros. */
static void push(struct rp_flat *f, const void *bytes, size_t n)
{
    if (f->code == RP_OK && f->cap - f->n < n) {
        size_t cap = 2 * (f->n + n) + 256;
        uint8_t *grown = cap < FLAT_MAX ? malloc(cap) : NULL;

        if (!grown) {
            f->code = RP_NOMEM;
            return;
        }
        if (f->n)
            memcpy(grown + cap - f->n, f->memory + f->cap - f->n, f->n);
        free(f->memory);
        f->memory = grown;
        f->cap = cap;
    }
    if (f->code != RP_OK || !n)
        return;
    f->n += n;
    if (bytes)
        memcpy(f->memory + f->cap - f->n, bytes, n);
    else
        memset(f->memory + f->cap - f->n, 0, n);
}

/* Pads so that n more bytes end at a multiple of `align`, a power of two. */
static void align_for(struct rp_flat *f, size_t n, size_t align)
{
    push(f, NULL, (0 - (f->n + n)) & (align - 1));
}

static void push_u16(struct rp_flat *f, size_t value)
{
    uint16_t v = (uint16_t)value;

    push(f, &v, sizeof v);
}

static void push_u32(struct rp_flat *f, size_t value)
{
    uint32_t v = (uint32_t)value;

    push(f, &v, sizeof v);
}

static void push_ref(struct rp_flat *f, uint32_t ref)
{
    push_u32(f, f->n + sizeof ref - ref);
}

uint32_t rp_flat_text(struct rp_flat *f, const char *text, size_t n)
{
    align_for(f, n + 1, sizeof(uint32_t));
    push(f, "", 1);
    push(f, text, n);
    push_u32(f, n);
    return (uint32_t)f->n;
}

uint32_t rp_flat_refs(struct rp_flat *f, const uint32_t *refs, size_t n)
{
    align_for(f, 0, sizeof *refs);
    for (size_t i = n; i-- > 0;)
        push_ref(f, refs[i]);
    push_u32(f, n);
    return (uint32_t)f->n;
}

uint32_t rp_flat_structs(struct rp_flat *f, const void *structs, size_t n, size_t size)
{
    align_for(f, n * size, sizeof(uint64_t));
    push(f, structs, n * size);
    push_u32(f, n);
    return (uint32_t)f->n;
}

void rp_flat_begin(struct rp_flat *f)
{
    memset(f->slot, 0, sizeof f->slot);
    f->table = (uint32_t)f->n;
}

void rp_flat_add(struct rp_flat *f, size_t slot, int64_t value, size_t size)
{
    align_for(f, 0, size);
    push(f, &value, size); /* the low bytes come first */
    f->slot[slot] = (uint32_t)f->n;
}

void rp_flat_add_ref(struct rp_flat *f, size_t slot, uint32_t ref)
{
    align_for(f, 0, sizeof ref);
    push_ref(f, ref);
    f->slot[slot] = (uint32_t)f->n;
}

/* The table begins with the distance to the list of its slots, which is put before it. */
uint32_t rp_flat_end(struct rp_flat *f)
{
    size_t nslots = RP_FLAT_SLOTS;
    uint32_t distance;

    while (nslots && !f->slot[nslots - 1])
        nslots--;
    align_for(f, 0, sizeof distance);
    push_u32(f, 0);
    uint32_t table = (uint32_t)f->n;
    for (size_t i = nslots; i-- > 0;)
        push_u16(f, f->slot[i] ? table - f->slot[i] : 0);
    push_u16(f, table - f->table);
    push_u16(f, (nslots + 2) * sizeof(uint16_t));
    distance = (uint32_t)f->n - table;
    if (f->code == RP_OK)
        memcpy(f->memory + f->cap - table, &distance, sizeof distance);
    return table;
}

void rp_flat_finish(struct rp_flat *f, uint32_t root)
{
    align_for(f, sizeof root, sizeof(uint64_t));
    push_ref(f, root);
}

enum rp_code rp_flat_written(const struct rp_flat *f, const void **bytes, size_t *n,
                             struct rp_err *err)
{
    if (f->code != RP_OK)
        return rp_err_nomem(err, "writing a description");
    *bytes = f->memory + f->cap - f->n;
    *n = f->n;
    return RP_OK;
}
