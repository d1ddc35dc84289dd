/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_DATA_SYNTHETIC_H
#define RP_EXEC_DATA_SYNTHETIC_H
/* Inputs for a program whose own are not at hand: seeded, in bounds, of sensible magnitude. The
   same seed gives the same values on every engine and with any number of threads. */
#include "exec/data/signature.h"
#include "exec/data/tensor.h"

/* slots->nin arrays, which the caller drops. p: NULL where nothing is known of their use. */
enum rp_code rp_synthetic_inputs(const struct rp_program *p, const struct rp_signature *slots,
                                 uint64_t seed, struct rp_tensor **out, struct rp_err *err);

#endif
