/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * LAPACK by dlopen, for custom calls that have no kernel here: nothing is linked. The variable
 * REPRISE_LAPACK names a library ("own": none); else OpenBLAS, which contains LAPACK, and
 * liblapack are tried under their usual names, then the one of SciPy's wheel. The library stays
 * loaded.
 */
#include "exec/eval/plan.h"

struct rp_lapack {
    void *library;      /* NULL: none */
    const char *prefix; /* of its names; static */
};

/* Returns false if there is none. May be called from any thread. */
bool rp_lapack_open(struct rp_lapack *out);

/* A routine, "sgesdd", or NULL. */
void *rp_lapack_find(const struct rp_lapack *lapack, const char *routine);

/* Lets the library run a custom call of LAPACK's; if it cannot, returns RP_UNSUPPORTED and says
   what to install. */
RP_PREPARE(rp_lapack_prepare);
