/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_OPT_EXPORT_EXPORTS_H
#define RP_OPT_EXPORT_EXPORTS_H
/*
 * Plans in the terms of frameworks. Each exporter is a row: a record that becomes a member of
 * "exports" in the answer.
 *
 * To add one: write a file here with `struct rp_opt_<name>` declared below,
 * `const struct rp_type rp_opt_<name>_type` and `rp_opt_<name>_fill`, and add X(<name>) to the
 * list.
 */
#include "base/arena.h"
#include "opt/plan.h"

#include <reprise/result.h>

/* name, title on the screen, what it is */
#define RP_OPT_EXPORTS(X)                                                                  \
    X(ddp, "DistributedDataParallel", "arguments of torch DDP; works with stock software") \
    X(dpro, "dPRO", "groups of tensors as dPRO writes them; for compatibility only")

/* torch.nn.parallel.DistributedDataParallel */
struct rp_opt_ddp {
    double bucket_cap_mb; /* NaN: nothing to say */
    size_t nbuckets;
    int64_t *buckets; /* bytes of each, in the order in which they are sent */
};

/* dPRO's tensor_fusion_grp_mapping.json */
struct rp_opt_dpro {
    size_t ntensor_groups;
    const char **tensor_groups; /* "5+6", in the order in which they are sent */
};

struct rp_opt_exports {
#define EXPORT_MEMBER(name, title, doc) struct rp_opt_##name name;
    RP_OPT_EXPORTS(EXPORT_MEMBER)
#undef EXPORT_MEMBER
};

extern const struct rp_type rp_opt_exports_type;

/* All of them. Texts are in the arena, whose failure is sticky (rp_arena_check). */
void rp_opt_exports_fill(const struct rp_opt_plan *plan, struct rp_arena *arena,
                         struct rp_opt_exports *out);

#define EXPORT_DECLARE(name, title, doc)                                              \
    extern const struct rp_type rp_opt_##name##_type;                                 \
    void rp_opt_##name##_fill(const struct rp_opt_plan *plan, struct rp_arena *arena, \
                              struct rp_opt_##name *out);
RP_OPT_EXPORTS(EXPORT_DECLARE)
#undef EXPORT_DECLARE

#endif
