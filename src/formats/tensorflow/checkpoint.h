/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * TensorFlow checkpoints: the values of variables, in PREFIX.index (a sorted table of names) and
 * PREFIX.data-00000-of-00001 ... (their bytes). In a SavedModel, PREFIX is variables/variables.
 */
#include "base/limits.h"
#include "formats/tensorflow/tensor.h"

struct rp_checkpoint;

/* Reads the index; data files are opened when a value is taken. limits may be NULL for the
   defaults. */
enum rp_code rp_checkpoint_open(const char *prefix, const struct rp_limits *limits,
                                struct rp_checkpoint **out, struct rp_err *err);
void rp_checkpoint_close(struct rp_checkpoint *c); /* NULL is fine */

/* The value is borrowed until close, and its checksum is verified. If it is damaged, RP_FORMAT and
   the key are returned in err. */
enum rp_code rp_checkpoint_value(struct rp_checkpoint *c, const char *key, struct rp_tf_value *out,
                                 struct rp_err *err);

/* Reads the index alone, from memory, for the fuzzer. */
enum rp_code rp_checkpoint_parse(const uint8_t *bytes, size_t n, const struct rp_limits *limits,
                                 struct rp_checkpoint **out, struct rp_err *err);
