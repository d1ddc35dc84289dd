/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits whole arrays for programs that were partitioned, into the block of each partition, by the
 * sharding of the parameter or of the results. HLO text has no shardings of results: an array that
 * is split like a parameter is placed like it; one with a block for every partition has them in
 * order.
 *
 * Also joins recorded blocks for a program that computes with whole arrays.
 */
#include "exec/data/tile.h"
#include "replay/replay.h"

#include <stdio.h>
#include <string.h>

static const struct rp_sharding *sharding_of(const struct rp_program *p, uint32_t op)
{
    const struct rp_attr *attr = op < p->nops ? rp_op_attr(p, op, RP_ATTR_SHARDING) : NULL;

    return attr && attr->type == RP_VALUE_SHARDING ? attr->sharding : NULL;
}

/* Finds the number of blocks along each dimension; false if the slot is not a part of the array. */
static bool blocks_of(const struct rp_tensor *t, const struct rp_slot *slot, int64_t *blocks)
{
    if (t->rank != slot->rank)
        return false;
    for (size_t i = 0; i < slot->rank; i++) {
        if (slot->dims[i] < 1 || t->dims[i] < slot->dims[i])
            return false;
        blocks[i] = (t->dims[i] + slot->dims[i] - 1) / slot->dims[i];
    }
    return true;
}

static bool same_blocks(const struct rp_tile *tile, const int64_t *blocks)
{
    for (size_t i = 0; i < tile->rank; i++)
        if (tile->blocks[i] != blocks[i])
            return false;
    return true;
}

/* Moves the blocks of a parameter's sharding to the dimensions that have as many. */
static bool tile_moved(const struct rp_tile *of, const int64_t *blocks, size_t rank,
                       struct rp_tile *out)
{
    size_t k = 0;

    out->rank = rank;
    for (size_t d = 0; d < rank; d++) {
        out->blocks[d] = blocks[d];
        out->at[d] = 0;
        if (blocks[d] == 1)
            continue;
        while (k < of->rank && of->blocks[k] == 1)
            k++;
        if (k == of->rank || of->blocks[k] != blocks[d])
            return false;
        out->at[d] = of->at[k++];
    }
    while (k < of->rank && of->blocks[k] == 1)
        k++;
    return k == of->rank;
}

/* Whether two shardings place every block of such an array on the same partition. */
static bool agree(const struct rp_session *s, const struct rp_slot *a, const struct rp_slot *b,
                  const int64_t *blocks, size_t rank)
{
    const struct rp_program *p = s->program.program;

    for (unsigned k = 0; k < s->partitions; k++) {
        struct rp_tile of[2], moved[2];

        if (!rp_tile_of(sharding_of(p, a->op), a->rank, k, &of[0]) ||
            !rp_tile_of(sharding_of(p, b->op), b->rank, k, &of[1]) ||
            !tile_moved(&of[0], blocks, rank, &moved[0]) ||
            !tile_moved(&of[1], blocks, rank, &moved[1]) ||
            memcmp(moved[0].at, moved[1].at, rank * sizeof *moved[0].at) != 0)
            return false;
    }
    return true;
}

/* Places blocks like the parameters with the same number of blocks, if all of these agree. */
static bool tile_like_inputs(const struct rp_session *s, const int64_t *blocks, size_t rank,
                             unsigned device, struct rp_tile *out)
{
    const struct rp_slot *like = NULL;

    for (size_t i = 0; i < s->signature.nin; i++) {
        const struct rp_slot *in = &s->signature.in[i];
        const struct rp_sharding *sharding = sharding_of(s->program.program, in->op);
        struct rp_tile of, moved;

        if (!sharding || !rp_tile_of(sharding, in->rank, device, &of) ||
            !tile_moved(&of, blocks, rank, &moved))
            continue;
        if (like && !agree(s, like, in, blocks, rank))
            return false;
        if (!like)
            *out = moved;
        like = in;
    }
    return like != NULL;
}

static bool tile_in_order(const int64_t *blocks, size_t rank, size_t partitions, unsigned device,
                          struct rp_tile *out)
{
    int64_t total = 1, place = device;

    out->rank = rank;
    for (size_t i = rank; i-- > 0; place /= blocks[i]) {
        out->blocks[i] = blocks[i];
        out->at[i] = place % blocks[i];
        total *= blocks[i];
    }
    return total == (int64_t)partitions;
}

static bool find_tile(const struct rp_session *s, const struct rp_slot *slot, bool output, size_t i,
                      const int64_t *blocks, unsigned device, struct rp_tile *out)
{
    const struct rp_program *p = s->program.program;
    const struct rp_sharding *sharding = output ? p->placement : sharding_of(p, slot->op);

    if (sharding && sharding->type == RP_SHARDING_TUPLE)
        sharding = i < sharding->nparts ? &sharding->parts[i] : NULL;
    if (sharding)
        return rp_tile_of(sharding, slot->rank, device, out) && same_blocks(out, blocks);
    return tile_like_inputs(s, blocks, slot->rank, device, out) ||
           tile_in_order(blocks, slot->rank, s->partitions, device, out);
}

enum rp_code rp_session_shard(const struct rp_session *s, const struct rp_slot *slot, bool output,
                              size_t i, struct rp_tensor *t, unsigned partition, const char *name,
                              struct rp_tensor **out, struct rp_err *err)
{
    int64_t blocks[RP_TENSOR_RANK];
    struct rp_tensor *whole;
    struct rp_tile tile;

    if (s->partitions < 2 || !s->program.program || !blocks_of(t, slot, blocks) || !slot->rank ||
        !memcmp(t->dims, slot->dims, slot->rank * sizeof *t->dims))
        return rp_array_as(t, slot->elem, slot->dims, slot->rank, name, out, err);
    if (!find_tile(s, slot, output, i, blocks, partition, &tile)) {
        char have[256];

        rp_tensor_shape_text(t, have, sizeof have);
        return rp_err_set(err, RP_FORMAT,
                          "array '%s' is %s; the program does not state which part of it each of "
                          "%zu partitions has (HLO text does not, its protobuf does): give "
                          "p0_%s, p1_%s ...",
                          name, have, s->partitions, name, name);
    }
    RP_TRY(rp_array_as(t, slot->elem, t->dims, t->rank, name, &whole, err));
    enum rp_code code = rp_tile_take(whole, &tile, out, err);
    rp_tensor_drop(whole);
    return code;
}

/* ---- blocks to whole arrays ---- */

/* The sharding of parameter i or result i of the compiled program; NULL if it does not say. */
static const struct rp_sharding *
compiled_sharding(const struct rp_program *p, const struct rp_signature *sig, bool output, size_t i)
{
    if (i >= (output ? sig->nout : sig->nin))
        return NULL;
    const struct rp_sharding *sharding = output ? p->placement : sharding_of(p, sig->in[i].op);
    if (sharding && sharding->type == RP_SHARDING_TUPLE)
        sharding = i < sharding->nparts ? &sharding->parts[i] : NULL;
    return sharding;
}

/* Along one dimension, blocks must be in the order of partitions; a grid may be transposed. */
static bool tile_in_line(const int64_t *blocks, size_t rank, size_t partitions, unsigned device,
                         struct rp_tile *out)
{
    size_t split = 0;

    for (size_t i = 0; i < rank; i++)
        split += blocks[i] > 1;
    return split == 1 && tile_in_order(blocks, rank, partitions, device, out);
}

/* The array with which the blocks of all partitions begin; NULL if they are already whole. */
static struct rp_tensor *first_block(const struct rp_arrays *arrays, const struct rp_slot *slot,
                                     const char *kind, size_t i)
{
    char name[64];

    snprintf(name, sizeof name, "p0_%s%zu", kind, i);
    struct rp_tensor *t = rp_arrays_find(arrays, name);
    if (!t || t->rank != slot->rank || t->elem != slot->elem ||
        rp_dims_same(t->dims, t->rank, slot->dims, slot->rank))
        return NULL;
    return t;
}

static enum rp_code unshard_one(const struct rp_session *s, const struct rp_slot *slot,
                                const struct rp_sharding *sharding, const char *kind, size_t i,
                                struct rp_arrays *arrays, struct rp_err *err)
{
    const struct rp_tensor *block = first_block(arrays, slot, kind, i);
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *whole = NULL;

    if (!block)
        return RP_OK;
    RP_TRY(rp_tensor_zeros(slot->elem, slot->dims, slot->rank, &whole, err));
    /* copies of a block should be equal; if not, the first one is used, as in JAX */
    for (size_t k = s->partitions; k-- > 0;) {
        int64_t blocks[RP_TENSOR_RANK];
        struct rp_array *from = NULL;
        struct rp_tile tile;
        char name[64];

        snprintf(name, sizeof name, "p%zu_%s%zu", k, kind, i);
        for (size_t n = 0; n < arrays->list.n && !from; n++)
            if (!strcmp(arrays->list.at[n].name, name))
                from = &arrays->list.at[n];
        if (!from || from->value->elem != block->elem ||
            !rp_dims_same(from->value->dims, from->value->rank, block->dims, block->rank))
            return rp_err_set(err, RP_FORMAT, "'%s' is not recorded as the others are", name);
        if (!blocks_of(whole, &(struct rp_slot){.rank = block->rank, .dims = block->dims},
                       blocks) ||
            !(sharding ? rp_tile_of(sharding, slot->rank, (unsigned)k, &tile) &&
                             same_blocks(&tile, blocks)
                       : tile_in_line(blocks, slot->rank, s->partitions, (unsigned)k, &tile)))
            return rp_err_set(err, RP_UNSUPPORTED,
                              "%s%zu is recorded in parts, and the capture does not state where "
                              "the part of partition %zu belongs",
                              kind, i, k);
        rp_tile_put(from->value, &tile, whole);
        from->name = ""; /* so that it is not found again */
    }
    return rp_arrays_add(arrays, rp_tensor_keep(whole), err, "%s%zu", kind, i);
}

enum rp_code rp_session_unshard(struct rp_session *s, const struct rp_program *compiled,
                                struct rp_err *err)
{
    struct rp_signature own, sig = {0};

    if (!s->program.program || s->partitions < 2)
        return RP_OK;
    if (!compiled)
        compiled = s->program.program;
    RP_TRY(rp_signature_find(s->program.program, s->arena, &own, err));
    RP_TRY(rp_signature_find(compiled, s->arena, &sig, err));
    for (size_t i = 0; i < own.nin; i++)
        RP_TRY(unshard_one(s, &own.in[i], compiled_sharding(compiled, &sig, false, i), "in", i,
                           &s->inputs, err));
    for (size_t i = 0; i < own.nout; i++)
        RP_TRY(unshard_one(s, &own.out[i], compiled_sharding(compiled, &sig, true, i), "out", i,
                           &s->expected, err));
    return RP_OK;
}
