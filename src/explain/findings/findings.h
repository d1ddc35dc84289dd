/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The list of findings, in the order in which they are looked for (finding.h explains one). To add
 * one: write a file here with `const struct rp_finding rp_finding_<name>`, and add X(<name>); or,
 * if it keeps something about a rank, K(<name>) and the type rp_kept_<name> in its file. In C,
 * names have '_' instead of '-': low-occupancy is rp_finding_low_occupancy.
 */
#define RP_FINDING_ROWS(X, K)                                                        \
    X(atypical_step) /* first, because its idle time does not count for its cause */ \
    K(new_shapes)    /* the same */                                                  \
    K(turns)         /* the same */                                                  \
    X(launch_bound)                                                                  \
    X(host_work)                                                                     \
    X(start_up)                                                                      \
    X(sync_points)                                                                   \
    X(data_loader)                                                                   \
    K(no_processor)                                                                  \
    X(host_stall)                                                                    \
    X(host_unrecorded)                                                               \
    K(fragmentation)                                                                 \
    X(profiler_overhead)                                                             \
    K(copies)                                                                        \
    X(dependencies)                                                                  \
    X(host_collectives)                                                              \
    X(host_wait)                                                                     \
    X(device_wait)                                                                   \
    X(unexplained_idle)                                                              \
    X(exposed_comm)                                                                  \
    X(slow_link)                                                                     \
    X(straggler)                                                                     \
    X(pipeline_bubbles)                                                              \
    K(tiny_kernels)                                                                  \
    X(launch_latency)                                                                \
    X(unfused_kernels)                                                               \
    K(unfused_attention)                                                             \
    K(weight_reads)                                                                  \
    K(experts)                                                                       \
    X(small_collectives)                                                             \
    K(low_occupancy)                                                                 \
    K(slow_operator)                                                                 \
    X(layout_transposes)                                                             \
    K(clock_trouble)                                                                 \
    X(python)                                                                        \
    X(host_code)                                                                     \
    K(compile)                                                                       \
    X(no_operator)

/* Indices of what findings keep. */
enum rp_kept_place {
#define RP_KEPT_NONE(name)
#define RP_KEPT_PLACE(name) RP_KEPT_##name,
    RP_FINDING_ROWS(RP_KEPT_NONE, RP_KEPT_PLACE)
#undef RP_KEPT_PLACE
        RP_KEPT_COUNT
};

#define RP_DECLARE_FINDING(name) extern const struct rp_finding rp_finding_##name;
#define RP_DECLARE_KEPT(name)    extern const struct rp_type rp_kept_##name;
RP_FINDING_ROWS(RP_DECLARE_FINDING, RP_DECLARE_FINDING)
RP_FINDING_ROWS(RP_KEPT_NONE, RP_DECLARE_KEPT)
#undef RP_DECLARE_FINDING
#undef RP_DECLARE_KEPT
#undef RP_KEPT_NONE

extern const struct rp_finding *const rp_finding_rows[]; /* ended by NULL */
