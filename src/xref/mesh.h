/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Named arrays of devices. Frameworks give XLA the mesh of a program by name,
 *
 *     frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["data"=4, "model"=2]>}}      HLO
 *     sdy.mesh @mesh = <["data"=4, "model"=2]>                                           StableHLO
 *
 * and collectives by the numbers of devices, {{0,2,4,6},{1,3,5,7}}: groups along "data".
 */
#include "base/arena.h"
#include "program/program.h"

#include <stdbool.h>

#define RP_MESH_AXES 8

struct rp_mesh {
    const char *names[RP_MESH_AXES];
    int64_t sizes[RP_MESH_AXES]; /* each above 1; the last one varies fastest */
    size_t naxes;
    int64_t ndevices;
    const int64_t *devices; /* by position; NULL if position i is device i */
    int64_t *positions;     /* by device; NULL in the same case */
};

struct rp_meshes {
    struct rp_mesh *at;
    size_t n;
};

/* Adds the new meshes of a text (a dump, a module in StableHLO, also inside a protobuf). In the
   arena; its failure sticks. */
void rp_meshes_find(struct rp_meshes *meshes, const char *text, size_t n, struct rp_arena *arena);
/* Adds those in the attributes of the module. */
void rp_meshes_of_program(struct rp_meshes *meshes, const struct rp_program *p,
                          struct rp_arena *arena);

struct rp_device_groups {
    int64_t size, groups; /* 0: not known */
    int64_t stride;       /* the distance of the devices of a group; 0 if irregular */
    const char *axis;     /* "data", "data,model"; NULL if no mesh has such groups */
};

/* Finds the groups of a collective, and the axes along which they run. */
void rp_meshes_groups(const struct rp_meshes *meshes, const struct rp_replica_groups *groups,
                      struct rp_arena *arena, struct rp_device_groups *out);
/* Returns the axes along which pairs of devices differ, or NULL. */
const char *rp_meshes_pairs(const struct rp_meshes *meshes, const int64_t *pairs, size_t npairs,
                            struct rp_arena *arena);
