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
    int64_t sizes[RP_MESH_AXES]; /* more than 1 each; the last one varies fastest */
    size_t naxes;
    int64_t ndevices;
    const int64_t *devices; /* by position; NULL: position i is device i */
    int64_t *positions;     /* of devices; NULL likewise */
};

struct rp_meshes {
    struct rp_mesh *at;
    size_t n;
};

/* Adds the meshes of a text (a dump, a module in StableHLO, also inside a protobuf) that are not
   there yet. In the arena; its failure sticks. */
void rp_meshes_find(struct rp_meshes *meshes, const char *text, size_t n, struct rp_arena *arena);
/* Adds those that the attributes of the module have. */
void rp_meshes_of_program(struct rp_meshes *meshes, const struct rp_program *p,
                          struct rp_arena *arena);

struct rp_device_groups {
    int64_t size, groups; /* 0: not known */
    int64_t stride;       /* between the devices of a group; 0: irregular */
    const char *axis;     /* "data", "data,model"; NULL: no mesh has such groups */
};

/* The groups of a collective, and the axes that they run along. */
void rp_meshes_groups(const struct rp_meshes *meshes, const struct rp_replica_groups *groups,
                      struct rp_arena *arena, struct rp_device_groups *out);
/* The axes along which pairs of devices differ; NULL likewise. */
const char *rp_meshes_pairs(const struct rp_meshes *meshes, const int64_t *pairs, size_t npairs,
                            struct rp_arena *arena);
