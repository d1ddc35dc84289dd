/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The programs that a profile of XLA carries, beside its events. */
#include "io/proto.h"

/* name is the module and the number of the program, "jit_step(7)"; hlo is an HloProto. Both are
   borrowed. Any result other than RP_OK ends the walk. */
typedef enum rp_code rp_xplane_program_fn(void *user, struct rp_bytes name, struct rp_bytes hlo,
                                          struct rp_err *err);

/* Calls fn for each program in an XSpace. Other bytes have no programs. */
enum rp_code rp_xplane_each_program(struct rp_bytes space, rp_xplane_program_fn *fn, void *user,
                                    struct rp_err *err);
