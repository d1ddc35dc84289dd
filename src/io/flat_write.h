/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writing FlatBuffers into memory, from the end to the begin: what a table refers to is written
 * before it.
 *
 *     struct rp_flat f = {0};
 *     uint32_t name = rp_flat_text(&f, "dur_ns");
 *     rp_flat_begin(&f);
 *     rp_flat_add_ref(&f, 0, name);
 *     rp_flat_add(&f, 1, 1, sizeof(uint8_t));
 *     rp_flat_finish(&f, rp_flat_end(&f));
 *     RP_TRY(rp_flat_written(&f, &bytes, &n, err));
 *     ...
 *     rp_flat_release(&f);
 *
 * Errors stick (there is one: no memory): after it calls do nothing, and rp_flat_written returns
 * it. The bytes are a multiple of 8, and values are aligned where the first byte is.
 */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define RP_FLAT_SLOTS 8 /* of a table, at most */

struct rp_flat { /* all zero: empty */
    uint8_t *memory;
    size_t cap, n;                /* the last n bytes of the memory are in use */
    uint32_t slot[RP_FLAT_SLOTS]; /* the fields of the table that is being written; 0 if missing */
    uint32_t table;
    enum rp_code code;
};

void rp_flat_release(struct rp_flat *f); /* it may be used again */
void rp_flat_rewind(struct rp_flat *f);  /* discards the content and the failure */

/* These write what tables and lists refer to; each returns its place, counted from the end. */
uint32_t rp_flat_text(struct rp_flat *f, const char *text, size_t n);
uint32_t rp_flat_refs(struct rp_flat *f, const uint32_t *refs, size_t n);
/* Writes structs of 8-byte numbers as they are in memory. */
uint32_t rp_flat_structs(struct rp_flat *f, const void *structs, size_t n, size_t size);

/* Only one table can be open at a time. */
void rp_flat_begin(struct rp_flat *f);
void rp_flat_add(struct rp_flat *f, size_t slot, int64_t value, size_t size);
void rp_flat_add_ref(struct rp_flat *f, size_t slot, uint32_t ref);
uint32_t rp_flat_end(struct rp_flat *f);

void rp_flat_finish(struct rp_flat *f, uint32_t root);
/* Returns what was written, borrowed until the next call, or the failure. */
enum rp_code rp_flat_written(const struct rp_flat *f, const void **bytes, size_t *n,
                             struct rp_err *err);
