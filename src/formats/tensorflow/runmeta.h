/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of the reader of TensorFlow's RunMetadata share. Only they include it.
 *
 *   runmeta.c        the file: sniffing, devices, lanes
 *   runmeta_row.c    one row: a NodeExecStats as a span with its arguments
 *   runmeta_label.c  the parts of a timeline_label
 */
#include "formats/trace_proto.h"

struct rp_runmeta_label {
    struct rp_bytes name, op;
    struct rp_bytes inputs; /* "a, b:1, ^c" */
    struct rp_bytes memory; /* "mklcpu 0.4MB 0.4MB" */
    /* For RecvTensor: */
    struct rp_bytes edge, from, to;
};

/* Reads "[mklcpu 0.4MB] relu1 = _MklNativeFusedConv2D(a, b)" as TensorFlow's Timeline does. */
void rp_runmeta_read_op_label(struct rp_bytes label, struct rp_runmeta_label *out);
/* Reads the node and operator of a kernel on a stream, "MEMCPYHtoD@@relu1:Relu#id=1#". */
void rp_runmeta_read_kernel_label(struct rp_bytes label, struct rp_bytes node_name,
                                  struct rp_runmeta_label *out);
/* "[4608B] [30.6Mb/s] edge_14_conv2 from /job:ps/... to /job:worker/...". */
void rp_runmeta_read_recv_label(struct rp_bytes label, struct rp_runmeta_label *out);
/* Takes the next of a list of inputs; false at its end. */
bool rp_runmeta_next_input(struct rp_bytes *inputs, struct rp_bytes *out);

enum rp_runmeta_device {
    RP_RUNMETA_HOST,
    RP_RUNMETA_STREAM, /* "/device:GPU:0/stream:14" */
    RP_RUNMETA_COPIED  /* "/device:GPU:0/stream:all", ".../memcpy": duplicates */
};

struct rp_runmeta_row { /* a NodeExecStats; times in nanoseconds */
    struct rp_bytes node_name, label;
    int64_t start, end_rel, op_start_rel, op_end_rel, scheduled;
    int64_t start_us, end_rel_us; /* as Timeline uses them */
    bool has_nanos;
    uint32_t thread_id;
    int64_t output_bytes, allocated_bytes, peak_bytes, temp_bytes, persistent_bytes;
    uint32_t noutputs, nallocators;
};

enum rp_code rp_runmeta_read_row(const struct rp_proto_cursor *up, const struct rp_proto_item *item,
                                 struct rp_runmeta_row *row, struct rp_err *err);
/* Whether a row is a RecvTensor, or is named like a copy. */
bool rp_runmeta_is_recv(const struct rp_runmeta_row *row);
enum rp_code rp_runmeta_add_row(struct rp_proto_trace *t, const struct rp_runmeta_row *row,
                                rp_track track, enum rp_runmeta_device device, struct rp_err *err);
