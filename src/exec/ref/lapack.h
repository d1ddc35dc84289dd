/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_REF_LAPACK_H
#define RP_EXEC_REF_LAPACK_H
/*
 * LAPACK by dlopen, for custom calls that have no kernel here: nothing is linked. The variable
 * REPRISE_LAPACK names a library ("own": none); else OpenBLAS, which contains LAPACK, and
 * liblapack are tried under their usual names. The library stays loaded.
 */
#include "exec/eval/plan.h"

/* The name of the library, or NULL: none. From any thread. */
const char *rp_lapack_name(void);

/* A routine, "sgesdd", or NULL. */
void *rp_lapack_find(const char *routine);

/* Lets the library run a custom call of LAPACK's; RP_UNSUPPORTED with what to install where it
   cannot. */
enum rp_code rp_lapack_prepare(struct rp_plan *plan, struct rp_node *node, struct rp_err *err);

#endif
