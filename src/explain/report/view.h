/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The view is what the page and the picture of a report show in addition to the answer: a timeline
 * with a lane for each device of each rank, and the tables of `top`. It is made only if one of them
 * is asked for.
 *
 * A lane is a list of pieces that cover the span of its rank without gaps: what the device did, and
 * for how long. If a lane has too many pieces, short neighbours become one mixed piece that keeps
 * the exact time of each state: no time is lost, only its order within the piece.
 */
#include "base/vec.h"
#include "facts/times/intervals.h"
#include "result/part.h"
#include "result/result.h"

struct rp_chain;
struct rp_ranks;
struct rp_report_part;
struct rp_roof_root;
struct rp_scope;
struct rp_top_root;
struct rp_trace;

/* What a device does at a time; idle comes first. X(NAME, "name", colour, doc) */
#define RP_LANE_MAP(X)                                                                  \
    X(IDLE, "idle", RP_COLOUR_IDLE, "nothing runs")                                     \
    X(COMPUTE, "compute", RP_COLOUR_COMPUTE, "kernels other than communication run")    \
    X(BOTH, "compute and communication", RP_COLOUR_PURPLE, "both run at the same time") \
    X(COMM, "communication", RP_COLOUR_COMM, "communication runs, and no other kernel") \
    X(WAIT, "waiting for other ranks", RP_COLOUR_PALE,                                  \
      "in a collective, until the last rank has arrived")                               \
    X(COPY, "copies", RP_COLOUR_COPY, "copies and memsets run, and no kernel")

enum rp_lane_state {
#define RP_LANE_ENUM(name, text, colour, doc) RP_LANE_##name,
    RP_LANE_MAP(RP_LANE_ENUM)
#undef RP_LANE_ENUM
        RP_LANE_STATES,
    RP_LANE_MIXED = RP_LANE_STATES /* several states within one piece */
};

struct rp_lane_piece {
    int64_t ns[RP_LANE_STATES]; /* they add up to its duration */
    uint8_t state;              /* the state of all of it, or RP_LANE_MIXED */
    uint8_t cause; /* cause of the idle time, or of most of it: enum rp_gap_cause; RP_GAP_CAUSES:
                      not known; from RP_LANE_PAUSES on, enum rp_pause */
    uint8_t unused[6];
};
#define RP_LANE_PAUSES (RP_GAP_CAUSES + 1)

#define RP_REPORT_LANE(M, s)                                                              \
    M(s, PLAIN, int64_t, device)   /* number of the device; RP_ABSENT_I64: not known */   \
    M(s, PLAIN, int64_t, begin_ns) /* on the clock of the rank */                         \
    M(s, PLAIN, bool, is_main)     /* the numbers of the rank are those of this device */ \
    M(s, PLAIN, bool, on_host)     /* no device work */                                   \
    M(s, PLAIN_LIST, struct rp_lane_piece, pieces)
RP_PART_STRUCT(rp_report_lane, RP_REPORT_LANE);
extern const struct rp_type rp_report_lane_type; /* as an item of a part */

/* Draws the lanes of a rank into its part, which must be complete otherwise. */
enum rp_code rp_report_draw_lanes(const struct rp_trace *trace, const struct rp_scope *scope,
                                  struct rp_arena *arena, struct rp_report_part *part,
                                  struct rp_err *err);

/* Joins neighbours until there are at most `most` pieces (at least 2); returns their number. */
size_t rp_lane_coarsen(struct rp_lane_piece *pieces, size_t n, size_t most);

/* ------------------------------------------------------------------ all ranks */

struct rp_view_lane {
    const char *name; /* "rank 3", "GPU 2", "rank 0, GPU 2" */
    int64_t rank;
    int64_t at_ns; /* its begin, relative to the earliest of all lanes */
    int64_t ns[RP_LANE_STATES], total_ns;
    bool is_main;
    size_t npieces;
    struct rp_lane_piece *pieces;
};

/* What two hosts have to do with each other. */
struct rp_view_pair {
    int64_t wait_ns; /* what a rank of the first waits for ranks of the second, the mean */
    /* Of the collectives between these two alone; only where the first is the lower. */
    int64_t count, size_bytes, transfer_ns;
};

struct rp_view_top {
    const char *by, *title;
    struct rp_top_root *root;
};

#define RP_VIEW_TOPS 3

struct rp_report_view {
    size_t nlanes, left_out; /* left_out: lanes beyond the limit */
    struct rp_view_lane *lanes;
    int64_t span_ns;            /* from the earliest begin to the last end of lanes */
    bool aligned;               /* lanes are on one clock; else each begins at 0 */
    const char *busy, *rest;    /* what the states compute and idle are called in the answer */
    bool on_host;               /* lanes are operators of the host */
    int64_t *step_at_ns;        /* begins of the steps of the answer, in their order, as at_ns */
    size_t nhosts;              /* 0: not all are known, or there are too many */
    const char **hosts;         /* by the number of their first rank */
    uint32_t *host_of;          /* by rank */
    struct rp_view_pair *pairs; /* by first * nhosts + second */
    struct rp_view_top tops[RP_VIEW_TOPS]; /* and roof: for pages only, else without rows */
    struct rp_roof_root *roof;
    const char *step_page, *step_text; /* a page of one step with all its events inside this page,
                                          and the number of that step; NULL: none (src/view) */
};

/* The tables of `top` in a view: the words of --by, in the order of the tables. */
extern const char *const rp_view_top_words[RP_VIEW_TOPS];

/* Fills root->view of the result, in the result's arena. */
enum rp_code rp_report_join_view(const struct rp_ranks *ranks, const struct rp_chain *chain,
                                 struct rp_result *result, struct rp_err *err);

/* Fills the hosts of a view and their pairs (pairs.c). */
enum rp_code rp_report_join_pairs(const struct rp_ranks *ranks, const struct rp_chain *chain,
                                  struct rp_arena *arena, struct rp_report_view *out,
                                  struct rp_err *err);

/* Writes the answer as a self-contained page, and its timeline as a picture. The result has a view.
 */
enum rp_code rp_report_write_page(const struct rp_result *result, const char *path,
                                  struct rp_err *err);
enum rp_code rp_report_write_picture(const struct rp_result *result, const char *path,
                                     struct rp_err *err);
