/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles programs that XLA partitions itself: it wants the block of each device, but the caller
 * has whole arrays, as for engines that do not partition. XLA decides how to split parameters and
 * results while it compiles, so the shardings are read from the compiled module, and blocks are cut
 * and joined by them.
 */
#include "exec/pjrt/client.h"

#include "abi/proto/hlo.h"
#include "exec/data/tile.h"
#include "io/proto.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH 64

/* ---- what the compiled module says ---- */

static enum rp_code read_numbers(struct rp_pjrt_shards *s, struct rp_proto_cursor c,
                                 struct rp_int_list *out, struct rp_err *err)
{
    int64_t *at = RP_ARENA_NEW(&s->arena, int64_t, (size_t)(c.end - c.at) + 1);
    uint64_t value;

    RP_TRY(rp_err_need(at, err, "reading a sharding"));
    out->at = at;
    while (rp_proto_packed_varint(&c, &value))
        at[out->n++] = (int64_t)value;
    return RP_OK;
}

static enum rp_code read_sharding(struct rp_pjrt_shards *s, struct rp_proto_cursor c,
                                  struct rp_sharding *out, struct rp_err *err)
{
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item)) {
        struct rp_int_list *list =
            item.number == RP_HLO_SHARDING_TILE_ASSIGNMENT_DIMENSIONS ? &out->tiles
            : item.number == RP_HLO_SHARDING_TILE_ASSIGNMENT_DEVICES  ? &out->devices
            : item.number == RP_HLO_SHARDING_IOTA_RESHAPE_DIMS        ? &out->dims
            : item.number == RP_HLO_SHARDING_IOTA_TRANSPOSE_PERM      ? &out->perm
                                                                      : NULL;

        if (list && item.wire == RP_WIRE_BYTES && !list->n)
            RP_TRY(read_numbers(s, rp_proto_enter(&c, &item), list, err));
        if (item.number == RP_HLO_SHARDING_TYPE && item.wire == RP_WIRE_VARINT)
            out->type = item.value < RP_SHARDING_TYPES ? (enum rp_sharding_type)item.value
                                                       : RP_SHARDING_UNKNOWN;
    }
    return rp_proto_finish(&c, err);
}

/* Reads one sharding, or those of a tuple. */
static enum rp_code read_shardings(struct rp_pjrt_shards *s, struct rp_proto_cursor c, bool output,
                                   struct rp_err *err)
{
    struct rp_proto_cursor parts = c;
    struct rp_sharding one = {0};
    struct rp_proto_item item;

    RP_TRY(read_sharding(s, c, &one, err));
    if (one.type != RP_SHARDING_TUPLE)
        return output ? rp_vec_push(&s->out, one, err) : rp_vec_push(&s->in, one, err);
    while (rp_proto_next_bytes(&parts, RP_HLO_SHARDING_TUPLE_SHARDINGS, &item)) {
        memset(&one, 0, sizeof one);
        RP_TRY(read_sharding(s, rp_proto_enter(&parts, &item), &one, err));
        RP_TRY(output ? rp_vec_push(&s->out, one, err) : rp_vec_push(&s->in, one, err));
    }
    return rp_proto_finish(&parts, err);
}

enum rp_code rp_pjrt_read_shards(const void *module, size_t n, struct rp_pjrt_shards *out,
                                 struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(module, n, 0, DEPTH);
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item)) {
        bool output = item.number == RP_HLO_MODULE_SPMD_OUTPUT_SHARDING;

        if (item.wire == RP_WIRE_BYTES &&
            (output || item.number == RP_HLO_MODULE_SPMD_PARAMETERS_SHARDINGS))
            RP_TRY(read_shardings(out, rp_proto_enter(&c, &item), output, err));
    }
    return rp_proto_finish(&c, err);
}

void rp_pjrt_shards_release(struct rp_pjrt_shards *s)
{
    rp_vec_release(&s->in);
    rp_vec_release(&s->out);
    rp_arena_release(&s->arena);
}

/* Gets the module that the plugin made of the program; the caller frees *memory. */
static enum rp_code compiled_module(struct rp_pjrt_client *c, void *executable, void **memory,
                                    struct rp_bytes *out, struct rp_err *err)
{
    struct rp_pjrt_args args = RP_PJRT_ARGS, program = RP_PJRT_ARGS;

    args.word[RP_PJRT_ARG] = rp_pjrt_word(executable);
    args.word[RP_PJRT_RESULT] = rp_pjrt_word(&program);
    RP_TRY(rp_pjrt_call(&c->pjrt, RP_PJRT_EXECUTABLE_OPTIMIZED, &args, &program, RP_UNSUPPORTED,
                        err)); /* says how long it is */
    out->n = (size_t)program.word[RP_PJRT_PROGRAM_CODE_SIZE];
    *memory = malloc(out->n + 1);
    RP_TRY(rp_err_need(*memory, err, "reading the compiled program"));
    program.word[RP_PJRT_PROGRAM_CODE] = rp_pjrt_word(*memory);
    RP_TRY(
        rp_pjrt_call(&c->pjrt, RP_PJRT_EXECUTABLE_OPTIMIZED, &args, &program, RP_UNSUPPORTED, err));
    out->at = *memory;
    const char *format = rp_pjrt_pointer(program.word[RP_PJRT_PROGRAM_FORMAT]);
    if (format && program.word[RP_PJRT_PROGRAM_FORMAT_SIZE] == strlen("hlo_with_config") &&
        !memcmp(format, "hlo_with_config", strlen("hlo_with_config")))
        *out = rp_proto_find(*out, RP_HLO_PROTO_HLO_MODULE);
    return RP_OK;
}

enum rp_code rp_pjrt_find_shards(struct rp_pjrt_client *c, struct rp_err *err)
{
    struct rp_bytes module = {0};
    uint64_t executable;
    RP_FREED void *memory = NULL;

    RP_TRY(
        rp_pjrt_ask(&c->pjrt, RP_PJRT_LOADED_EXECUTABLE, c->loaded, &executable, NULL, RP_IO, err));
    enum rp_code code = compiled_module(c, rp_pjrt_pointer(executable), &memory, &module, err);
    rp_pjrt_drop(&c->pjrt, RP_PJRT_EXECUTABLE_DESTROY, rp_pjrt_pointer(executable));
    RP_TRY(code);
    return rp_pjrt_read_shards(module.at, module.n, &c->shards, err);
}

/* ---- cutting and joining ---- */

static bool is_whole(const struct rp_tile *tile)
{
    for (size_t i = 0; i < tile->rank; i++)
        if (tile->blocks[i] != 1)
            return false;
    return true;
}

enum rp_code rp_pjrt_split(struct rp_pjrt_client *c, struct rp_tensor *const *arguments,
                           struct rp_err *err)
{
    size_t n = c->ndevices * c->narguments;

    c->hosts = arguments;
    if (c->shards.in.n != c->narguments)
        return RP_OK;
    rp_tensors_release(&c->blocks);
    RP_TRY(rp_tensors_new(n, &c->blocks, err));
    for (size_t i = 0; i < n; i++) {
        unsigned device = (unsigned)(i / c->narguments % c->partitions);
        struct rp_tile tile;

        if (!rp_tile_of(&c->shards.in.at[i % c->narguments], arguments[i]->rank, device, &tile))
            return rp_err_set(err, RP_UNSUPPORTED,
                              "argument %zu: the plugin does not state which part of it each of %u "
                              "devices takes; the engines fast and ref take whole arrays",
                              i % c->narguments, c->partitions);
        if (is_whole(&tile))
            c->blocks.at[i] = rp_tensor_keep(arguments[i]);
        else
            RP_TRY(rp_tile_take(arguments[i], &tile, &c->blocks.at[i], err));
    }
    c->hosts = c->blocks.at;
    return RP_OK;
}

/* Joins output i of the devices of one replica from their blocks; each device gets the whole. */
static enum rp_code join_output(struct rp_pjrt_client *c, size_t i, struct rp_tensor **outputs,
                                struct rp_err *err)
{
    const struct rp_slot *slot = &c->results->out[i];
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *whole = NULL;
    struct rp_tile tile;

    if (outputs[i]->rank != slot->rank || outputs[i]->elem != slot->elem)
        return RP_OK;
    if (rp_tile_of(&c->shards.out.at[i], slot->rank, 0, &tile) && is_whole(&tile))
        return RP_OK;
    RP_TRY(rp_tensor_new(slot->elem, slot->dims, slot->rank, &whole, err));
    for (unsigned d = 0; d < c->partitions; d++) {
        if (!rp_tile_of(&c->shards.out.at[i], slot->rank, d, &tile))
            return rp_err_set(err, RP_UNSUPPORTED,
                              "output %zu: the plugin does not state which part of it each of %u "
                              "devices has",
                              i, c->partitions);
        rp_tile_put(outputs[d * c->noutputs + i], &tile, whole);
    }
    for (unsigned d = 0; d < c->partitions; d++) {
        rp_tensor_drop(outputs[d * c->noutputs + i]);
        outputs[d * c->noutputs + i] = rp_tensor_keep(whole);
    }
    return RP_OK;
}

enum rp_code rp_pjrt_join(struct rp_pjrt_client *c, struct rp_tensor **outputs, struct rp_err *err)
{
    if (c->shards.out.n != c->noutputs || !c->results || c->results->nout != c->noutputs ||
        c->ndevices % c->partitions)
        return RP_OK;
    for (size_t d = 0; d < c->ndevices; d += c->partitions)
        for (size_t i = 0; i < c->noutputs; i++)
            RP_TRY(join_output(c, i, outputs + d * c->noutputs, err));
    return RP_OK;
}
