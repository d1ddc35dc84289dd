/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Gates of `diff` are limits for metrics of the new run, relative to the base or absolute, for use
 * in CI; named baselines also list what was accepted (docs/cli/diff.md).
 *
 *     step=2%,mfu=-1pt,memory_peak<=60GB
 */
#include "base/arena.h"
#include "base/vec.h"

#include <reprise/result.h>
#include <stdbool.h>
#include <stdint.h>

/* X(NAME, "name", unit, worse when larger, what a recording needs for it) */
#define RP_GATE_MAP(X)                                                                     \
    X(STEP, "step", NS, true, "steps")                                                     \
    X(COMPUTE, "compute", NS, true, "steps")                                               \
    X(EXPOSED_COMM, "exposed_comm", NS, true, "steps")                                     \
    X(EXPOSED_MEMORY, "exposed_memory", NS, true, "steps")                                 \
    X(IDLE, "idle", NS, true, "steps")                                                     \
    X(MFU, "mfu", RATIO, false, "shapes of operators, and a device whose peaks are known") \
    X(TOKENS, "tokens_per_s", COUNT, false, "shapes of lookups, or marks of a server")     \
    X(SAMPLES, "samples_per_s", COUNT, false, "shapes of convolutions")                    \
    X(MEMORY, "memory_peak", BYTES, true, "memory events, as of profile_memory=True")

enum rp_gate_metric {
#define RP_GATE_ENUM(name, ...) RP_GATE_##name,
    RP_GATE_MAP(RP_GATE_ENUM)
#undef RP_GATE_ENUM
        RP_GATE_METRICS
};

enum rp_gate_form {
    RP_GATE_SHARE,  /* at most this share of the base's value */
    RP_GATE_AMOUNT, /* by at most this much */
    RP_GATE_TARGET /* a limit for the new value itself: at most, or if larger is better, at least */
};

struct rp_gate {
    uint8_t metric, form;
    double limit;
};

/* A regression that somebody accepted, which widens the limit. */
struct rp_gate_accepted {
    struct rp_gate gate; /* not a target */
    const char *date, *reason;
};

struct rp_gates {
    RP_VEC(struct rp_gate) list;
    RP_VEC(struct rp_gate_accepted) accepted;
    const char *base; /* the path of the named baseline, or NULL */
};

/* Adds the gates of a text; a mistake gives RP_USAGE, and `where` names the source of the text. */
enum rp_code rp_gates_parse(struct rp_gates *gates, const char *text, const char *where,
                            struct rp_err *err);
/* Adds the gates of a named baseline in a file, and its path; texts are in the arena. If the name
   is not in the file, returns RP_USAGE. */
enum rp_code rp_gates_read(struct rp_gates *gates, const char *path, const char *name,
                           struct rp_arena *arena, struct rp_err *err);
/* A plain number with one of our units: "2ms", "60GB", "12000". */
bool rp_gates_amount(const char *text, enum rp_unit unit, double *out);
void rp_gates_release(struct rp_gates *gates);

/* What is known about a metric in the two runs. */
struct rp_gate_values {
    double base, fresh; /* NaN: not known */
    double noise;       /* noise of the difference; NaN: not known */
};

struct rp_gate_row {
    const char *metric, *unit, *accepted_date, *reason;
    double base, new_value, delta, limit, noise, accepted; /* in `unit`; NaN if it does not apply */
    bool passed;
    const char *base_text, *new_text, *delta_text, *limit_text, *result_text; /* text output only */
};
extern const struct rp_type rp_gate_row_type;

/* Decides all gates, one row each. If a gate needs something that a run does not have, returns
   RP_FORMAT. */
enum rp_code rp_gates_decide(const struct rp_gates *gates,
                             const struct rp_gate_values values[RP_GATE_METRICS],
                             struct rp_arena *arena, struct rp_gate_row **rows, size_t *n,
                             bool *failed, struct rp_err *err);
