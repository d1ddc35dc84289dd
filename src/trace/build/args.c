/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores arguments while building. A row goes into the open part of its shape, one array for each
 * column; after RP_ARG_BLOCK rows, every column is narrowed into `data` and the open part starts
 * again. The open part grows from 8 rows, so that a shape that occurs once costs a hundred bytes.
 *
 *   open:  | column 0: room values | column 1: room values | ...     (column k at k * stride)
 *
 * Adding costs one store for each value, narrowing about a nanosecond.
 */
#include "base/each.h"
#include "trace/build/state.h"

#include <stdlib.h>

#define OPEN_FIRST 8 /* rows */

enum rp_code rp_build_args_init(struct rp_build_args *args, struct rp_err *err)
{
    struct rp_build_shape none = {0};

    RP_TRY(rp_vec_push(&args->shapes, none, err));
    return rp_vec_push(&args->spill_offset, 0, err);
}

void rp_build_args_release(struct rp_build_args *args)
{
    for (size_t i = 0; i < args->shapes.n; i++) {
        free(args->shapes.at[i].open);
        rp_vec_release(&args->shapes.at[i].full);
    }
    RP_EACH(rp_vec_release, &args->shapes, &args->key_name, &args->key_type, &args->data,
            &args->spill_offset, &args->spill);
    rp_map_release(&args->shape_of);
}

/* Large columns are staggered so that they do not share cache sets. */
static size_t stride(uint32_t room)
{
    return room + (room >= 512 ? 8u : 0u);
}

static bool shape_is(const struct rp_build_args *a, const struct rp_build_shape *shape,
                     const struct rp_arg *args, uint32_t n)
{
    if (shape->nkeys != n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (a->key_name.at[shape->first_key + i] != args[i].key ||
            a->key_type.at[shape->first_key + i] != args[i].type)
            return false;
    return true;
}

enum rp_code rp_builder_shape(struct rp_builder *b, const struct rp_arg *args, uint32_t nargs,
                              uint16_t *out, struct rp_err *err)
{
    struct rp_build_args *a = &b->args;
    uint64_t key = nargs;

    *out = nargs ? RP_SHAPE_SPILLED : 0;
    if (nargs == 0 || nargs > RP_SHAPE_KEYS)
        return RP_OK;
    for (uint32_t i = 0; i < nargs; i++)
        key = rp_hash_mix(key ^ ((uint64_t)args[i].key << 8 | args[i].type),
                          UINT64_C(0x9e3779b97f4a7c15));
    for (;; key = rp_hash_u64(key)) {
        uint32_t found = rp_map_get(&a->shape_of, key);
        if (found == RP_MAP_NONE)
            break;
        if (shape_is(a, &a->shapes.at[found], args, nargs)) {
            *out = (uint16_t)found;
            return RP_OK;
        }
    }
    if (a->shapes.n > RP_SHAPE_MAX)
        return RP_OK;

    struct rp_build_shape shape = {.nkeys = nargs, .first_key = (uint32_t)a->key_name.n};
    RP_TRY(rp_vec_reserve(&a->key_name, nargs, err));
    RP_TRY(rp_vec_reserve(&a->key_type, nargs, err));
    RP_TRY(rp_vec_push(&a->shapes, shape, err));
    for (uint32_t i = 0; i < nargs; i++) {
        a->key_name.at[a->key_name.n++] = args[i].key;
        a->key_type.at[a->key_type.n++] = args[i].type;
    }
    *out = (uint16_t)(a->shapes.n - 1);
    return rp_map_put(&a->shape_of, key, *out, err);
}

static unsigned width_for(uint64_t range)
{
    if (range == 0)
        return 0;
    if (range <= UINT8_MAX)
        return 1;
    if (range <= UINT16_MAX)
        return 2;
    return range <= UINT32_MAX ? 4 : 8;
}

static void put_deltas(uint8_t *to, const int64_t *v, uint32_t n, int64_t base, unsigned width)
{
    if (width == 1) {
        for (uint32_t i = 0; i < n; i++)
            to[i] = (uint8_t)((uint64_t)v[i] - (uint64_t)base);
        return;
    }
    for (uint32_t i = 0; i < n; i++) { /* little endian on every machine, as in the native file */
        uint64_t d = (uint64_t)v[i] - (uint64_t)base;

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        d = __builtin_bswap64(d);
#endif
        memcpy(to + (size_t)i * width, &d, width);
    }
}

static enum rp_code narrow(struct rp_build_args *a, const int64_t *v, uint32_t n,
                           struct rp_arg_block *out, struct rp_err *err)
{
    int64_t low = v[0], high = v[0];

    for (uint32_t i = 1; i < n; i++) {
        low = v[i] < low ? v[i] : low;
        high = v[i] > high ? v[i] : high;
    }
    unsigned width = width_for((uint64_t)high - (uint64_t)low);
    out->base = low;
    out->place = (uint64_t)a->data.n << 8 | width;
    if (!width)
        return RP_OK;
    RP_TRY(rp_vec_reserve(&a->data, (size_t)n * width, err));
    switch (width) { /* a constant width makes the copy a plain store */
    case 1:
        put_deltas(a->data.at + a->data.n, v, n, low, 1);
        break;
    case 2:
        put_deltas(a->data.at + a->data.n, v, n, low, 2);
        break;
    case 4:
        put_deltas(a->data.at + a->data.n, v, n, low, 4);
        break;
    default:
        put_deltas(a->data.at + a->data.n, v, n, low, 8);
        break;
    }
    a->data.n += (size_t)n * width;
    return RP_OK;
}

/* Moves the open rows into `data`. */
static enum rp_code close_block(struct rp_build_args *a, struct rp_build_shape *shape,
                                struct rp_err *err)
{
    RP_TRY(rp_vec_reserve(&shape->full, shape->nkeys, err));
    for (uint32_t k = 0; k < shape->nkeys; k++)
        RP_TRY(narrow(a, shape->open + k * stride(shape->room), shape->nopen,
                      &shape->full.at[shape->full.n + k], err));
    shape->full.n += shape->nkeys;
    shape->nopen = 0;
    return RP_OK;
}

static enum rp_code make_room(struct rp_build_args *a, struct rp_build_shape *shape,
                              struct rp_err *err)
{
    uint32_t room = shape->room ? shape->room * 2 : OPEN_FIRST, k;
    int64_t *open;

    if (shape->room == RP_ARG_BLOCK)
        return close_block(a, shape, err);
    open = realloc(shape->open, shape->nkeys * stride(room) * sizeof *open);
    RP_TRY(rp_err_need(open, err, "reading arguments"));
    for (k = shape->nkeys; k-- > 1;) /* columns move up, the last one first */
        memmove(open + k * stride(room), open + k * stride(shape->room),
                shape->nopen * sizeof *open);
    shape->open = open;
    shape->room = room;
    return RP_OK;
}

static int64_t bits_of(const struct rp_arg *arg)
{
    return arg->type >= RP_ARG_STR ? (int64_t)arg->v.s : arg->v.i;
}

enum rp_code rp_build_args_row(struct rp_build_args *a, uint16_t id, const struct rp_arg *values,
                               uint32_t n, uint32_t *row, struct rp_err *err)
{
    if (id == RP_SHAPE_SPILLED) {
        if (a->spill.n > UINT32_MAX - n)
            return rp_err_set(err, RP_LIMIT, "more than %u arguments that fit no shape",
                              UINT32_MAX);
        RP_TRY(rp_vec_reserve(&a->spill, n, err));
        RP_TRY(rp_vec_reserve(&a->spill_offset, 1, err));
        for (uint32_t i = 0; i < n; i++)
            a->spill.at[a->spill.n++] =
                (struct rp_spilled){values[i].key, values[i].type, bits_of(&values[i])};
        *row = (uint32_t)(a->spill_offset.n - 1);
        a->spill_offset.at[a->spill_offset.n++] = (uint32_t)a->spill.n;
        return RP_OK;
    }
    if (id >= a->shapes.n || a->shapes.at[id].nkeys != n)
        return rp_err_set(err, RP_BUG, "arguments that do not fit their shape");
    struct rp_build_shape *shape = &a->shapes.at[id];
    if (shape->nopen == shape->room)
        RP_TRY(make_room(a, shape, err));
    size_t step = stride(shape->room);
    int64_t *to = shape->open + shape->nopen;
    for (uint32_t k = 0; k < n; k++, to += step)
        *to = bits_of(&values[k]);
    shape->nopen++;
    *row = shape->nrows++;
    return RP_OK;
}

/* Lays out the blocks of a shape, column by column, and their positions in key_block. */
static void lay_out(const struct rp_build_shape *shape, struct rp_arg_block *block,
                    uint32_t *key_block, uint32_t *nblocks)
{
    uint32_t per_column = shape->nkeys ? (uint32_t)shape->full.n / shape->nkeys : 0, k, j;

    for (k = 0; k < shape->nkeys; k++) {
        key_block[shape->first_key + k] = *nblocks;
        for (j = 0; j < per_column; j++)
            block[(*nblocks)++] = shape->full.at[(size_t)j * shape->nkeys + k];
    }
}

static enum rp_code close_all(struct rp_build_args *a, size_t *nblocks, struct rp_err *err)
{
    *nblocks = 0;
    for (size_t i = 0; i < a->shapes.n; i++) {
        struct rp_build_shape *shape = &a->shapes.at[i];

        if (shape->nopen)
            RP_TRY(close_block(a, shape, err));
        free(shape->open);
        shape->open = NULL;
        shape->room = 0;
        *nblocks += shape->full.n;
    }
    if (*nblocks > UINT32_MAX)
        return rp_err_set(err, RP_LIMIT, "more than %u blocks of arguments", UINT32_MAX);
    return RP_OK;
}

void rp_build_args_show_spilled(struct rp_builder *b)
{
    struct rp_args *args = &b->trace->args;

    args->nspilled_rows = (uint32_t)(b->args.spill_offset.n - 1);
    args->nspilled = (uint32_t)b->args.spill.n;
    args->spill_offset = b->args.spill_offset.at;
    args->spill = b->args.spill.at;
}

enum rp_code rp_build_args_seal(struct rp_builder *b, struct rp_err *err)
{
    struct rp_build_args *a = &b->args;
    struct rp_trace_store *store = b->trace->store;
    struct rp_args *args = &b->trace->args;
    RP_VEC(struct rp_shape) shape = {0};
    RP_VEC(uint32_t) key_block = {0};
    RP_VEC(struct rp_arg_block) block = {0};
    size_t nblocks, i;

    RP_TRY(close_all(a, &nblocks, err));
    RP_TRY(rp_vec_reserve(&a->data, 8, err));
    memset(a->data.at + a->data.n, 0, 8);
    enum rp_code code = rp_vec_reserve(&shape, a->shapes.n, err);
    if (code == RP_OK)
        code = rp_vec_reserve(&key_block, a->key_name.n, err);
    if (code == RP_OK)
        code = rp_vec_reserve(&block, nblocks, err);
    for (i = 0; code == RP_OK && i < a->shapes.n; i++) {
        struct rp_build_shape *s = &a->shapes.at[i];

        shape.at[i] = (struct rp_shape){s->nkeys, s->nrows, s->first_key};
        lay_out(s, block.at, key_block.at, &args->nblocks);
        rp_vec_release(&s->full);
    }
    args->nshapes = (uint32_t)a->shapes.n;
    args->nkeys = (uint32_t)a->key_name.n;
    args->ndata = a->data.n;
    if (code == RP_OK)
        code = rp_store_take(store, &args->shape, &shape, err);
    if (code == RP_OK)
        code = rp_store_take(store, &args->key_block, &key_block, err);
    if (code == RP_OK)
        code = rp_store_take(store, &args->block, &block, err);
    if (code == RP_OK)
        code = rp_store_take(store, &args->key_name, &a->key_name, err);
    if (code == RP_OK)
        code = rp_store_take(store, &args->key_type, &a->key_type, err);
    if (code == RP_OK)
        code = rp_store_take(store, &args->data, &a->data, err);
    RP_EACH(rp_vec_release, &shape, &key_block, &block);
    rp_build_args_show_spilled(b);
    return code;
}
