/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads values in TensorFlow files (message TensorProto). */
#include "io/proto.h"
#include "program/program.h"

#define RP_TF_RANK 32

struct rp_tf_value {
    unsigned elem; /* enum rp_elem */
    uint32_t rank;
    int64_t dims[RP_TF_RANK];
    size_t n;            /* elements */
    const uint8_t *data; /* little-endian, row-major; points into the message or the arena */
    size_t nbytes;
};

/* The element type of a TensorFlow DataType; RP_ELEM_INVALID for strings, resources and unknown
   types. */
unsigned rp_tf_elem_of(uint64_t type);

/* Reads rank and dims from a TensorShapeProto; RP_UNSUPPORTED if dimensions are not known. */
enum rp_code rp_tf_shape_decode(struct rp_proto_cursor c, struct rp_tf_value *out,
                                struct rp_err *err);

/*
 * Reads a TensorProto at `offset` of its file. Its values are bytes, or a list whose last element
 * is repeated for all that are missing. limits (NULL for the defaults): held_bytes.
 */
enum rp_code rp_tf_value_decode(struct rp_bytes message, uint64_t offset,
                                const struct rp_limits *limits, struct rp_arena *arena,
                                struct rp_tf_value *out, struct rp_err *err);

/*
 * Reads type, shape and number of elements alone; data is the bytes in the message, or NULL. *list:
 * the field of a list that is too short for all elements, so that one is repeated; 0: there is
 * none.
 */
enum rp_code rp_tf_value_measure(struct rp_bytes message, struct rp_tf_value *out, uint32_t *list,
                                 struct rp_err *err);
