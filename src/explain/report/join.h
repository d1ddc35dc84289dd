/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files that join the parts of the ranks into one answer. */
#include "explain/report/report.h"
#include "result/print_units.h"

struct rp_report_ctx {
    const struct rp_ranks *ranks;
    size_t n;
    struct rp_arena *arena;
    struct rp_report_root *out;
    struct rp_chain chain;
    int64_t total_ns;          /* spans of all ranks */
    int64_t idle_ns, start_ns; /* sums over all ranks: no work runs; start-up */
};

static inline const struct rp_report_part *rp_report_ctx_part(const struct rp_report_ctx *j,
                                                              size_t rank)
{
    return rp_report_part_of(j->ranks, rank);
}

static inline int rp_report_ctx_number(const struct rp_report_ctx *j, size_t rank)
{
    return j->ranks->parts[rank].number;
}

static inline const char *rp_report_ctx_time(const struct rp_report_ctx *j, int64_t ns)
{
    return rp_units_time(j->arena, ns);
}

/* Writes "40.5 %"; other shares are never rounded to 0 or 100 %. */
const char *rp_report_percent(struct rp_arena *arena, int64_t part_ns, int64_t whole_ns);

/* Notes (notes.c). The first function adds one, if there is a text and room. */
void rp_report_add_note(struct rp_report_ctx *j, const char *text);
void rp_report_note_coverage(struct rp_report_ctx *j);
void rp_report_note_model(struct rp_report_ctx *j);
void rp_report_note_trouble(struct rp_report_ctx *j);
void rp_report_note_host(struct rp_report_ctx *j);
void rp_report_note_overlap(struct rp_report_ctx *j);
/* Steps (steps.c): how they were found; what does not count, and hints. */
void rp_report_fill_found(struct rp_report_ctx *j);
void rp_report_note_steps(struct rp_report_ctx *j);
/* Also fills the latencies that one of the notes is about. */
void rp_report_fill_latency(struct rp_report_ctx *j);

/* Decides the gates in a text (gates.c). A mistake in the text gives RP_USAGE; a gate that cannot
   be decided, RP_FORMAT. */
enum rp_code rp_report_decide_gates(const struct rp_report_ctx *j, const char *text, bool *failed,
                                    struct rp_err *err);
