/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The list of exporters, in the order in which they are offered. exports.h says how to add one. */
#define RP_EXPORTER_ROWS(X) \
    X(ddp)                  \
    X(fsdp)                 \
    X(optimizer)            \
    X(cuda_graphs)          \
    X(autocast)             \
    X(xla_flags)            \
    X(tf_xla)               \
    X(jit_compile)          \
    X(tf_amp)               \
    X(horovod)              \
    X(horovod_groups)       \
    X(dpro_groups)          \
    X(dpro_partitions)      \
    X(dpro_clusters)
