/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The answer of `memory`: one record per device of a rank, or per module of an XLA dump. */
#include "base/decides.h"
#include "dataset/ranks.h"
#include "explain/memory/log.h"
#include "io/output.h"

#define RP_MEMORY_POINTS 240 /* the most points of a timeline */

struct rp_memory_share {
    const char *category, *sure, *basis;
    int64_t bytes, buffers;
    double share;
};

struct rp_memory_holder {
    int64_t bytes, buffers;
    double share;
    const char *category, *op, *module, *line;
    const char *where; /* on the screen: module, or line, or operator */
};

struct rp_memory_step_row {
    int64_t step, peak_bytes, begin_bytes, end_bytes, growth_bytes, allocations, allocated_bytes;
};

struct rp_memory_churn {
    const char *op, *module, *line, *phase, *where;
    int64_t allocations, bytes;
    double allocations_per_step, per_step_bytes;
};

struct rp_memory_call {
    const char *name;
    int64_t count, total_ns, max_ns;
    bool waits; /* for the device */
};

struct rp_memory_point {
    int64_t ts_ns, allocated_bytes, reserved_bytes;
    int64_t category_bytes[RP_MEMORY_CATEGORIES];
};

/* What checkpointing of the repeated modules could save. */
struct rp_memory_checkpoint {
    const char *module; /* the module, or NULL if it is not known which */
    int64_t modules;    /* how many */
    int64_t activation_bytes, saved_bytes,
        peak_bytes; /* at the peak; the most that is saved; the peak then */
};

#define RP_MEMORY_NAMED 0.05
RP_DECISION(RP_MEMORY_NAMED, "of the peak",
            "what is smaller is in the table, and not in a sentence",
            "explain/parts_of_the_peak_are_named");
#define RP_MEMORY_SPARE 0.1
RP_DECISION(RP_MEMORY_SPARE, "of the memory",
            "less than this left is little; less than this gained is not worth a change",
            "explain/little_memory_is_left");

struct rp_memory_device {
    int64_t rank;
    const char *path, *device;
    const char *source; /* "profile", "snapshot", "buffer assignment" */
    int64_t peak_bytes, peak_ns, peak_step;
    const char *peak_phase;
    const char *peak_text;                       /* screen: when */
    int64_t reserved_bytes, peak_reserved_bytes; /* at the peak; the most */
    int64_t slack_bytes;                         /* reserved - allocated at the peak */
    int64_t begin_bytes, end_bytes;
    int64_t allocations, frees, allocated_bytes, buffers, holder_count;
    int64_t step_count, growth_bytes; /* per step, or absent */
    int64_t churn_steps;              /* number of steps in the scope, at least one */
    int64_t segments, free_bytes, largest_free_bytes, oom_count;
    int64_t memory_bytes; /* memory of the device, if recorded */
    size_t ncategories, nholders, nsteps, nchurn, ncalls, ntimeline, nfindings;
    struct rp_memory_share *categories;
    struct rp_memory_holder *holders;
    struct rp_memory_step_row *steps;
    struct rp_memory_churn *churn;
    struct rp_memory_call *calls;
    struct rp_memory_point *timeline;
    struct rp_memory_checkpoint checkpoint;
    const char **findings;
};

struct rp_memory_root {
    const char *summary;
    size_t nfindings, ndevices, nplot, ncategories, nholders, nsteps, nchurn, ncalls, nnotes;
    const char **findings, **plot, **notes;
    struct rp_memory_device *devices;
    struct rp_memory_share *categories;
    struct rp_memory_holder *holders;
    struct rp_memory_step_row *steps;
    struct rp_memory_churn *churn;
    struct rp_memory_call *calls;
};

extern const struct rp_type rp_memory_device_type;

/* The part of a rank, and the devices in it (limit 0: all holders). */
extern const struct rp_type rp_memory_part_type;
enum rp_code rp_memory_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                            size_t limit, struct rp_rank_part *part, struct rp_err *err);
const struct rp_memory_device *rp_memory_devices(const struct rp_rank_part *part, size_t *n);

/* The record of one device, with at most `limit` holders and lines (0: all). Texts are in the
   arena. */
enum rp_code rp_memory_describe(const struct rp_memory_logs *logs, size_t device,
                                const struct rp_scope *scope, size_t limit, struct rp_arena *arena,
                                struct rp_memory_device *out, struct rp_err *err);

/* The findings of a record, from its numbers and the holders at the peak. */
void rp_memory_find(const struct rp_memory_logs *logs, const struct rp_memory_log *log,
                    uint32_t peak, struct rp_arena *arena, struct rp_memory_device *out);

/* Adds up the calls of the runtime that allocate and free device memory. */
enum rp_code rp_memory_calls(const struct rp_trace *t, const struct rp_scope *scope,
                             struct rp_arena *arena, struct rp_memory_device *out,
                             struct rp_err *err);

/* Draw the timeline as lines of text, and as an SVG document. */
const char **rp_memory_plot(const struct rp_memory_device *device, struct rp_arena *arena,
                            size_t *nlines);
void rp_memory_draw(const struct rp_memory_device *device, struct rp_arena *arena,
                    struct rp_out *to);
