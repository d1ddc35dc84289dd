/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_EVAL_PRECISION_H
#define RP_EXEC_EVAL_PRECISION_H
/* How precise the outputs of a program can be. */
#include "exec/data/signature.h"

/* Of each output the float type with the fewest bits that is computed or rounded to on the way to
   it; RP_ELEM_INVALID where there is none. sig->nout entries, in the arena. */
enum rp_code rp_precision_find(const struct rp_program *p, const struct rp_signature *sig,
                               struct rp_arena *arena, const uint8_t **out, struct rp_err *err);

#endif
