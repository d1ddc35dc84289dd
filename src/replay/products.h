/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_REPLAY_PRODUCTS_H
#define RP_REPLAY_PRODUCTS_H
/* How the built-in engines multiply f32. */
#include "base/arena.h"
#include "program/program.h"

/* The GPU that the program was compiled for, where it is one of NVIDIA's that multiplies f32 as
   TF32: told by its calls and fusions, or by the name of the optimised module that lies beside it
   in a dump of XLA. "sm_9.0a"; NULL where there is no sign of one. program: NULL is fine. */
const char *rp_replay_gpu(struct rp_arena *arena, const struct rp_program *program,
                          const char *file);

#endif
