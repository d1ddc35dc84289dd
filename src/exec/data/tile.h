/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which part of an array a device has: shardings of HLO, "{devices=[4,1]<=[4]}", and of Shardy,
 * "<@mesh, [{"x"}, {}]>" with "{mesh = #sdy.mesh<["x"=4]>}".
 */
#include "exec/data/tensor.h"
#include "program/program.h"

struct rp_tile {
    size_t rank;
    int64_t blocks[RP_TENSOR_RANK]; /* along each dimension of the whole */
    int64_t at[RP_TENSOR_RANK];     /* the one that is meant */
};

/* False where the sharding does not say: a tuple, manual, or not of this rank. */
bool rp_tile_of(const struct rp_sharding *sharding, size_t rank, unsigned device,
                struct rp_tile *out);

/* Of Shardy: texts, in which quotes may be escaped. axes: only these count ("manual_axes{"x"}"); n
   of 0: all. */
struct rp_sdy {
    struct rp_slice meshes, axes;
};
/* The i-th of "#sdy.sharding_per_value<[<@mesh, [...]>, ...]>", or the one of "#sdy.sharding<...>".
 */
bool rp_tile_of_sdy(const struct rp_sdy *of, struct rp_slice sharding, size_t i, size_t rank,
                    unsigned device, struct rp_tile *out);
/* Devices of the largest mesh; 1 if there is none. */
unsigned rp_sdy_devices(struct rp_slice meshes);

/* The text of a key of frontend attributes; nothing if it is absent. */
struct rp_slice rp_attr_map_find(const struct rp_attr *attr, const char *key);

/* A block of the whole, as a new array; sizes are rounded up, what is beyond the whole is zero. */
enum rp_code rp_tile_take(const struct rp_tensor *whole, const struct rp_tile *tile,
                          struct rp_tensor **out, struct rp_err *err);
/* Puts a block where it belongs in the whole. */
void rp_tile_put(const struct rp_tensor *block, const struct rp_tile *tile,
                 struct rp_tensor *whole);
