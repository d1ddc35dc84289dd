/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What BladeDISC records of a cluster when DISC_DEBUG is set: the program (a TaoCompilerInput, file
 * X.input) and a tar with one TensorProto per argument (X.tar). The only link between them are the
 * names of the members, which are in the program. Together they become a GraphDef that calls the
 * cluster's function once, and the values of its arguments.
 */
#include "base/vec.h"
#include "formats/tensorflow/tensor.h"
#include "io/proto_write.h"
#include "io/tar.h"

/* The values of BladeDISC's enum ArgumentKind. */
enum {
    RP_BLADE_CONSTANT = 11,
    RP_BLADE_RESOURCE = 12,
    RP_BLADE_CONSTANT_RESOURCE = 13,
    RP_BLADE_PARAMETER = 14,
    RP_BLADE_FIXED_SHAPE = 17,
    RP_BLADE_HOST = 18
};

struct rp_blade_argument {
    uint32_t kind;
    uint64_t type; /* TensorFlow's number */
    bool has_shape;
    struct rp_tf_value shape; /* rank and dims */
    struct rp_bytes constant; /* TensorProto, or empty */
    const char *member;       /* its name in the tar; "" if it is not in there */
    bool found;
    struct rp_tf_value value;
};

struct rp_blade {
    struct rp_arena arena;
    RP_VEC(struct rp_blade_argument) arguments;
    const char *device, *function; /* "MLIR_GPU", "cluster_0" */
    struct rp_bytes library;       /* FunctionDefLibrary */
    struct rp_bytes call;          /* NameAttrList */
    int64_t graph_version;
    struct rp_proto_writer graph; /* GraphDef */
    const char **feeds, **fetches;
    size_t nfetches; /* one feed for each argument */

    struct rp_input *program,
        *data; /* kept open by rp_blade_open, because values point into them */
    struct rp_tar *tar;
    RP_VEC(uint8_t *) held; /* values that the tar does not keep in memory */
};

/* Opens both files and makes the graph. Call rp_blade_release in every case. limits may be NULL for
   the defaults. A tar of another program gives RP_FORMAT, and the message names the member. */
enum rp_code rp_blade_open(const char *program, const char *data, const struct rp_limits *limits,
                           struct rp_blade *out, struct rp_err *err);
void rp_blade_release(struct rp_blade *blade);

/* The steps of rp_blade_open: reads a TaoCompilerInput, which must live as long; reads its values
   from a tar; makes its graph. */
enum rp_code rp_blade_parse(const void *bytes, size_t n, struct rp_blade *out, struct rp_err *err);
enum rp_code rp_blade_take_values(struct rp_blade *blade, struct rp_tar *tar,
                                  const struct rp_limits *limits, struct rp_err *err);
enum rp_code rp_blade_make_graph(struct rp_blade *blade, struct rp_err *err);
