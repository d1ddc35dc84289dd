/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads a JSON text into the values that a pickle of the same data would have. */
#include "formats/pickle/pickle.h"

/* The bytes must outlive `out`; release it also after a failure. */
enum rp_code rp_json_values_read(struct rp_pickle *out, const void *bytes, size_t n,
                                 const struct rp_limits *limits, struct rp_err *err);
