/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds the part of an array that a device has, by shardings of HLO, "{devices=[4,1]<=[4]}", and of
 * Shardy, "<@mesh, [{"x"}, {}]>" with "{mesh = #sdy.mesh<["x"=4]>}".
 */
#include "exec/data/tensor.h"
#include "program/program.h"

struct rp_tile {
    size_t rank;
    int64_t blocks[RP_TENSOR_RANK]; /* number of blocks along each dimension of the whole */
    int64_t at[RP_TENSOR_RANK];     /* the one that is meant */
};

/* False if the sharding does not tell: a tuple, manual, or of another rank. */
bool rp_tile_of(const struct rp_sharding *sharding, size_t rank, unsigned device,
                struct rp_tile *out);

/* For Shardy: texts, in which quotes may be escaped. axes: only these count ("manual_axes{"x"}"); n
   of 0: all. */
struct rp_sdy {
    struct rp_slice meshes, axes;
};
/* Reads the i-th sharding of "#sdy.sharding_per_value<[<@mesh, [...]>, ...]>", or the one of
   "#sdy.sharding<...>". */
bool rp_tile_of_sdy(const struct rp_sdy *of, struct rp_slice sharding, size_t i, size_t rank,
                    unsigned device, struct rp_tile *out);
/* The number of devices in the largest mesh; 1 if there is none. */
unsigned rp_sdy_devices(struct rp_slice meshes);

/* The text of a key of frontend attributes; empty if it is absent. */
struct rp_slice rp_attr_map_find(const struct rp_attr *attr, const char *key);

/* Makes a new array from a block of the whole; sizes are rounded up, and elements beyond the whole
   are zero. */
enum rp_code rp_tile_take(const struct rp_tensor *whole, const struct rp_tile *tile,
                          struct rp_tensor **out, struct rp_err *err);
/* Puts a block where it belongs in the whole. */
void rp_tile_put(const struct rp_tensor *block, const struct rp_tile *tile,
                 struct rp_tensor *whole);
