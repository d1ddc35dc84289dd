/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The inside of a view: the ranks with their traces, which stay in memory, and an index of each by
 * which a picture of any stretch of time takes a time that does not depend on its number of events.
 *
 *     open.c     reads the traces, numbers the ranks, puts them on one clock
 *     index.c    rows: where on its track an event is drawn, and sums over blocks of events
 *     tiles.c    pictures of a stretch of time: events, or what 512 pieces of it hold
 *     answers.c  the other answers: meta, event, search, sum
 *     explain.c  what questions say, placed on the timeline
 *     compare.c  two runs: what `diff` says, and the time of each name in both
 *     stacks.c   samples of call stacks as rows of frames
 *     arrows.c   arrows of the recording between events
 *     beside.c   what the device did at the same time as an event
 *     ask.c      questions of the command line, asked about the traces in memory
 *     serve.c    the page and the answers, by http/
 *     page.c     the page, with data or without
 *     embed.c    a step as a part of the page of a report
 */
#include "base/vec.h"
#include "dataset/load.h"
#include "explain/top/line_source.h"
#include "facts/clocks/clocks.h"
#include "facts/times/intervals.h"
#include "formats/formats.h"
#include "io/output.h"
#include "result/result.h"
#include "trace/run.h"

#include <reprise/question.h>
#include <reprise/view.h>

/* ------------------------------------------------------------------ rows */

#define RP_VIEW_BLOCK      64 /* events whose durations are added up */
#define RP_VIEW_ROWS_MOST  64 /* rows of a track; deeper events share the last one */
#define RP_VIEW_TILE       512
#define RP_VIEW_TILE_BITS  9
#define RP_VIEW_ZOOM_MOST  50
#define RP_VIEW_LANES_MOST 512 /* of one request */

/* The events of a track that are drawn at one height. They do not overlap (except in the last row),
   so they are ordered both by begin and by end. */
struct rp_view_row {
    rp_track track;
    uint32_t depth;
    uint32_t first, n; /* a range of `event`; first is a multiple of RP_VIEW_BLOCK */
};

struct rp_view_index {
    RP_VEC(struct rp_view_row) rows; /* by track, then depth */
    uint32_t *track_row;             /* ntracks + 1: the first row of each track */
    RP_VEC(rp_event) event;          /* row by row, each from a new block on */
    RP_VEC(uint8_t) depth;           /* by event; unspecified for events without a time */
    RP_VEC(int64_t) block_ns;        /* sums of durations */
    RP_VEC(rp_event) block_longest;
};

enum rp_code rp_view_index_init(struct rp_view_index *out, const struct rp_trace *trace,
                                struct rp_err *err);
void rp_view_index_release(struct rp_view_index *index);

/* Returns the first event of a row that begins at ns or later: 0 to row->n. */
uint32_t rp_view_row_from(const struct rp_view_index *index, const struct rp_trace *trace,
                          const struct rp_view_row *row, int64_t ns);

/* Returns the sum of the durations of events a to b of a row, and the longest of them (RP_NONE if a
   is b). */
int64_t rp_view_row_sum(const struct rp_view_index *index, const struct rp_trace *trace,
                        const struct rp_view_row *row, uint32_t a, uint32_t b, rp_event *longest);

/* ------------------------------------------------------------------ samples */

/* A frame of the flame strip of a thread. */
struct rp_view_frame {
    uint32_t depth, stack;
    int64_t begin_ns, end_ns; /* on the clock of the rank */
};
typedef RP_VEC(struct rp_view_frame) rp_view_frames;

/* Finds the samples of a track that have a time, and how deep their stacks are. */
void rp_view_samples(const struct rp_trace *trace, rp_track track, uint32_t *first, uint32_t *n);
uint32_t rp_view_sample_rows(const struct rp_trace *trace, uint32_t first, uint32_t n);

/* Makes the strip between bounds[0] and bounds[RP_VIEW_TILE], by depth and time; if there are more
   than `most` samples, one for each piece. */
enum rp_code rp_view_strip(const struct rp_trace *trace, rp_track track, const int64_t *bounds,
                           size_t most, rp_view_frames *out, struct rp_err *err);

/* ------------------------------------------------------------------ arrows */

struct rp_view_arrow {
    rp_event from, to;
    rp_str name;
};
typedef RP_VEC(struct rp_view_arrow) rp_view_arrows;

/* Appends the recorded arrows between events, without those of launches (they are links). event:
   only arrows that share an id with one of its own; RP_NONE for all. */
enum rp_code rp_view_find_arrows(const struct rp_trace *trace, rp_event event, rp_view_arrows *out,
                                 struct rp_err *err);

/* ------------------------------------------------------------------ the view */

struct rp_view_rank {
    struct rp_loaded loaded;
    const struct rp_trace *trace;
    struct rp_trace *own; /* for a rank of a merged trace; otherwise NULL */
    const struct rp_digest *digest;
    const char *path;
    int32_t number;
    uint8_t run;
    bool clocked;          /* whether `clock` relates it to the first rank of its run */
    struct rp_clock clock; /* its steps belong to the run's alignment */
    int64_t origin_ns;     /* time 0 of the view, on the common clock */
    struct rp_view_index index;
    struct rp_interval *steps;    /* rp_step_times; in the arena of the view */
    struct rp_line_source *lines; /* the lines of a compiled program, or NULL */
};

#define RP_VIEW_EXPLAINED 5 /* questions whose answers are placed on the timeline */

/* The answer of a question. */
struct rp_view_explained {
    struct rp_result *answer; /* NULL if not yet asked, or no longer needed */
    struct rp_out *text;      /* the text for the page; NULL if not yet made */
};

struct rp_view_run {
    const struct rp_dataset *dataset;
    size_t nimports;
    struct rp_import *imports; /* by source: they hold the traces */
    size_t first, n;           /* of its ranks */
    struct rp_run *run;        /* owns the digests of its ranks */
    bool unrelated, aligned;
    struct rp_result *alignment;         /* of `merge`; or NULL */
    struct rp_view_explained *explained; /* RP_VIEW_EXPLAINED entries (explain.c) */
};

struct rp_view_comparison;

struct rp_view {
    struct rp_arena arena;
    size_t nruns;
    struct rp_view_run runs[2];
    RP_VEC(struct rp_view_rank) ranks; /* by run, then number */
    RP_VEC(const char *) notes;        /* sentences about what is not shown */
    int64_t end_ns;                    /* the end of the last event; the first one begins at 0 */
    uint64_t nevents;
    bool swift; /* nobody waits for predictions of changes, so they are left out */
    struct rp_view_comparison *
        *comparison; /* for two runs; *comparison is NULL if not yet made (compare.c) */
};

int64_t rp_view_time(const struct rp_view_rank *rank, int64_t own_ns);
int64_t rp_view_own_time(const struct rp_view_rank *rank, int64_t view_ns);

/* Finds the step of the second run that belongs to a step of the first, on the first ranks of both:
   at the same place if both have as many, otherwise with the same number, otherwise at the same
   place. Returns false if there is none. */
bool rp_view_twin(const struct rp_view *view, uint32_t step, uint32_t *twin);
/* Moves the later of two runs so that this step begins at the same time in both. */
void rp_view_align(struct rp_view *view, uint32_t step);

/* ------------------------------------------------------------------ questions */

struct rp_question_row;
extern const struct rp_question_row rp_ask_top, rp_ask_merge, rp_ask_report, rp_ask_idle,
    rp_ask_comm, rp_ask_critpath, rp_ask_memory;

/* Asks a question about ranks `first` to first + n of the view, as the command line does. A window
   is in times of the view; from_ns > to_ns means none. The caller frees the result. */
enum rp_code rp_view_ask(const struct rp_view *view, size_t first, size_t n,
                         const struct rp_question_row *row, int64_t from_ns, int64_t to_ns,
                         const struct rp_setting *settings, size_t nsettings,
                         struct rp_result **out, struct rp_err *err);

/* Asks a question about two runs, whose answers are of `type`. */
enum rp_code rp_view_ask_both(const struct rp_view *view, const struct rp_question_row *row,
                              const struct rp_type *type, const struct rp_setting *settings,
                              size_t nsettings, struct rp_result **out, struct rp_err *err);
void rp_view_comparison_free(struct rp_view_comparison *comparison);

/* The part of the recording that a page contains. */
struct rp_view_part {
    int64_t from_ns, to_ns; /* times of the view */
};

/* Writes the answer of a question about a run, as far as it is in a part; `what` is below
   RP_VIEW_EXPLAINED. */
enum rp_code rp_view_put_explained(const struct rp_view *view, size_t run, size_t what,
                                   const struct rp_view_part *part, struct rp_out *to,
                                   struct rp_err *err);
const char *rp_view_explained_name(size_t what); /* "findings" */

/* ------------------------------------------------------------------ answers */

/* Answers a request: its path without the token ("tile"), and its query ("z=4&i=0&lanes=0.1", or
   ""). Returns RP_USAGE if the request makes no sense, and RP_MISSING if there is no such path. */
enum rp_code rp_view_answer(const struct rp_view *view, const char *path, const char *query,
                            struct rp_out *to, struct rp_err *err);

/* Each writes one answer. */
typedef enum rp_code rp_view_answer_fn(const struct rp_view *view, const char *query,
                                       struct rp_out *to, struct rp_err *err);
rp_view_answer_fn rp_view_tile, rp_view_explain, rp_view_compare;

/* Writes "key":"text", or null. */
void rp_view_put_text(struct rp_out *to, const char *key, const char *text);

/* Read the value of a parameter: a number from 0 to `most`, or a text of at most size - 1 bytes
   with %XX and + decoded. They return RP_USAGE if it is missing or different. */
enum rp_code rp_view_number(const char *query, const char *name, int64_t most, int64_t *out,
                            struct rp_err *err);
enum rp_code rp_view_text(const char *query, const char *name, char *out, size_t size,
                          struct rp_err *err);

/* Returns the class of an event, or of a frame of a stack (enum rp_frame_kind), for the page: the
   enum names in answers.c, "kernel" … */
unsigned rp_view_class(const struct rp_trace *trace, rp_event e);
unsigned rp_view_frame_class(uint32_t kind);
extern const char *const rp_view_class_names[];

/* Writes all events from `from_ns` to `to_ns` in times of the view, of all tracks, as one tile. */
enum rp_code rp_view_put_events(const struct rp_view *view, int64_t from_ns, int64_t to_ns,
                                size_t most, struct rp_out *to, struct rp_err *err);
/* Writes ,"beside":[{"ns": time, "count": events, "name"}, …] for device work; otherwise an empty
   list. */
enum rp_code rp_view_put_beside(const struct rp_view_rank *rank, rp_event e, struct rp_out *to,
                                struct rp_err *err);
/* Writes an event with its arguments, links and arrows, which is the answer to the request "event".
   brief: other events only by their numbers, without arrows, and without what was beside it. */
enum rp_code rp_view_put_event(const struct rp_view *view, size_t rank, rp_event e, bool brief,
                               struct rp_out *to, struct rp_err *err);

/* ------------------------------------------------------------------ the page */

/* Writes the page; if part is NULL, without data, which it asks the server for. */
enum rp_code rp_view_put_page(const struct rp_view *view, const struct rp_view_part *part,
                              struct rp_out *to, struct rp_err *err);

/* Parses "3", or "3:2": steps of the first rank, by number. For two runs they begin at the same
   time as those of the second. */
enum rp_code rp_view_steps(struct rp_view *view, const char *steps, struct rp_view_part *out,
                           struct rp_err *err);
/* Returns how many events are in a part. */
size_t rp_view_count(const struct rp_view *view, const struct rp_view_part *part);

/* Adds a step to the page of a report if the traces can be read again; the result is that of
   `report` and has a view. After an error the report is unchanged. */
enum rp_code rp_view_embed(const struct rp_dataset *dataset, struct rp_result *result,
                           struct rp_err *err);
