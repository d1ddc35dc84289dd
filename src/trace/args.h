/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Arguments by shape. Events whose arguments have the same keys and types in the same order share a
 * shape; a shape is a table with one column for each key. Every 4,096 rows of a column are a block:
 * a base and deltas of 0, 1, 2, 4 or 8 bytes.
 *
 *   shape 3: "External id" i64 | "correlation" i64 | "stream" i64        12 rows
 *                 block 0: base 771, width 1, 12 bytes ...
 *
 * Shape 0 is "no arguments". Events with more than RP_SHAPE_KEYS keys, or that come after
 * RP_SHAPE_MAX different shapes, have shape RP_SHAPE_SPILLED: a plain list of key and value.
 */
#include "base/err.h"

#include <reprise/timeline.h> /* enum rp_arg_type */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RP_SHAPE_KEYS    255
#define RP_SHAPE_MAX     4096
#define RP_SHAPE_SPILLED UINT16_MAX
#define RP_ARG_BLOCK     4096 /* rows */

struct rp_arg {   /* one argument, decoded */
    uint32_t key; /* string id */
    uint8_t type; /* enum rp_arg_type */
    union {
        int64_t i;
        double f;
        uint32_t s; /* string id of a text, or of raw JSON */
    } v;
};

struct rp_shape {
    uint32_t nkeys, nrows;
    uint32_t first_key; /* first index into key_name, key_type, key_block */
};

struct rp_arg_block {
    int64_t base;
    uint64_t place; /* byte offset in data << 8 | width */
};

struct rp_spilled { /* rp_spilled: one argument of a spilled event */
    uint32_t key, type;
    int64_t value;
};

struct rp_args {
    uint32_t nshapes, nkeys, nblocks, nspilled_rows, nspilled;
    uint64_t ndata;
    const struct rp_shape *shape;
    const uint32_t *key_name;  /* string id */
    const uint8_t *key_type;   /* enum rp_arg_type */
    const uint32_t *key_block; /* first block of the column */
    const struct rp_arg_block *block;
    const uint8_t *data;          /* followed by 8 readable bytes */
    const uint32_t *spill_offset; /* nspilled_rows + 1 */
    const struct rp_spilled *spill;
};

/* The raw 64-bit value at a row of a column (an index into key_*). */
static inline int64_t rp_args_cell(const struct rp_args *args, uint32_t column, uint32_t row)
{
    const struct rp_arg_block *b = &args->block[args->key_block[column] + row / RP_ARG_BLOCK];
    const uint8_t *p = args->data + (b->place >> 8);
    size_t i = row % RP_ARG_BLOCK;
    uint64_t delta = 0;

    switch (b->place & 255) {
    case 1:
        delta = p[i];
        break;
    case 2:
        delta = (uint64_t)p[2 * i] | (uint64_t)p[2 * i + 1] << 8;
        break;
    case 4: {
        uint32_t v;

        memcpy(&v, p + 4 * i, 4);
        delta = v;
        break;
    }
    case 8:
        memcpy(&delta, p + 8 * i, 8);
        break;
    default:
        break;
    }
    return (int64_t)((uint64_t)b->base + delta);
}

/* How many arguments (shape, row) has, and the i-th of them. */
uint32_t rp_args_count(const struct rp_args *args, uint16_t shape, uint32_t row);
struct rp_arg rp_args_at(const struct rp_args *args, uint16_t shape, uint32_t row, uint32_t i);

/* The argument with that key (string id); 0 if there is none. */
int rp_args_find(const struct rp_args *args, uint16_t shape, uint32_t row, uint32_t key,
                 struct rp_arg *out);

/* The column of a key in a shape, or UINT32_MAX; to be looked up once for each shape, then passed
   to rp_args_cell. */
uint32_t rp_args_column(const struct rp_args *args, uint16_t shape, uint32_t key);
