/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds tensors that go from one process to another (TensorFlow's parameter servers and workers).
 * Only the receiver is recorded: a row RecvTensor with an edge "edge_14_conv2/ReadVariableOp" and
 * the two devices. The edge names the operator that made the tensor: its end on the other device is
 * when the tensor could leave.
 *
 *     ps      [conv2/ReadVariableOp]
 *     worker    [RecvTensor ........]      waiting for the tensor, then transfer
 */
#include "base/vec.h"
#include "trace/trace.h"

struct rp_tensor_transfer {
    int64_t begin_ns, end_ns;   /* of the receive */
    int64_t ready_ns;           /* end of the operator that made it; RP_NO_TS: not recorded */
    int64_t bytes;              /* -1: not known */
    rp_str edge, from, to;      /* of the trace; devices */
    rp_event receive, producer; /* producer is RP_NONE if it is not recorded */
    uint32_t from_process, to_process; /* RP_NONE: not recorded */
};

typedef RP_VEC(struct rp_tensor_transfer) rp_tensor_transfer_vec;

/* Sorted by begin. The list must be released also after a failure. Needs RP_NEED_ARGS;
   O(events). */
enum rp_code rp_tensor_transfers_find(const struct rp_trace *t, rp_tensor_transfer_vec *out,
                                      struct rp_err *err);
