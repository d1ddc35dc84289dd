/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The values that XLA recorded beside a program: arguments of every partition, and the result. */
#include "base/vec.h"
#include "exec/data/tensor.h"

struct rp_snapshot {
    const char *kind; /* "unoptimized snapshot, framed"; NULL: the file holds no values */
    size_t partitions;
    RP_VEC(struct rp_tensor *) arguments; /* flat, one partition after another */
    RP_VEC(struct rp_tensor *) results;   /* flat */
};

/*
 * Reads a protobuf file. text: it was converted from protobuf text, so offsets in it are not those
 * of the user's file. Arrays of the framed form whose layout is row-major point into the bytes,
 * which must outlive them. A file without values gives RP_OK and a kind of NULL; damage gives
 * RP_FORMAT with the argument and the byte. Call rp_snapshot_release in every case.
 */
enum rp_code rp_snapshot_read(const uint8_t *bytes, size_t n, bool text, struct rp_snapshot *out,
                              struct rp_err *err);
void rp_snapshot_release(struct rp_snapshot *s);
