/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What `dump run` does to the environment: variables, flags inside them, and messages about it. */
#include "base/vec.h"
#include "dump/frameworks.h"
#include "dump/table.h"

struct rp_dump_variable {
    const char *name, *value;
    const char *was; /* the user's own value, or NULL */
    const char *why; /* its effect on the framework */
};

struct rp_dump_dropped { /* a flag of the user's that is not passed on */
    const char *variable, *flag, *because;
};

struct rp_dump_environment {
    struct rp_arena *arena;
    const struct rp_frameworks *frameworks;
    bool keep; /* pass on unknown flags */
    RP_VEC(struct rp_dump_variable) variables;
    RP_VEC(struct rp_dump_dropped) dropped;
    RP_VEC(const char *) warnings;
};

void rp_dump_environment_release(struct rp_dump_environment *e);

enum rp_code rp_dump_warn(struct rp_dump_environment *e, struct rp_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets a variable that names a folder or file, replacing the user's. */
enum rp_code rp_dump_set(struct rp_dump_environment *e, const char *name, const char *value,
                         const char *why, struct rp_err *err);
/* The same, but the user's own value takes precedence. */
enum rp_code rp_dump_offer(struct rp_dump_environment *e, const char *name, const char *value,
                           const char *why, struct rp_err *err);

/* One of our flags in XLA_FLAGS or TF_XLA_FLAGS. */
struct rp_dump_flag {
    const char *name, *value;
    bool wins; /* over the user's */
};

/* Merges our flags with the user's in a variable, without those that would end the process. */
enum rp_code rp_dump_flags_merge(struct rp_dump_environment *e, const char *variable,
                                 enum rp_flag_kind kind, const struct rp_dump_flag *ours, size_t n,
                                 const char *why, struct rp_err *err);
