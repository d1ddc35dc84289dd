/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `report` shows on one screen where the time of a run goes, what was lost and why, and what to
 * try. This header is for its own files; others include answer.h (the answer), part.h (the part of
 * a rank) or chain.h (which rank sets the pace).
 *
 * part.c makes the part of a rank, with the help of pauses.c, latency.c, pitfalls.c and of what
 * findings measure. report.c has the row of the question and joins the parts (join.h): chain.c
 * finds which rank sets the pace, explain/findings what was lost on the way and what it costs,
 * stalls.c counts host stalls, notes.c writes the notes. fields.c describes the answer and the
 * parts.
 */
#include "explain/report/answer.h"
#include "explain/report/chain.h"
#include "explain/report/part.h"
#include "explain/report/view.h"

/* Reduces gaps and unions to what the chain asks for (trim.c): sums between the edges of
   collectives, and compute inside them. Only the difference of busy and kernels stays, in busy. */
enum rp_code rp_report_trim(struct rp_report_part *part, struct rp_err *err);

/* These functions fill a member of a part; texts are in the arena. */

/* Lists the devices of the rank, and reduces `work` to the items of the main one. */
enum rp_code rp_report_list_devices(struct rp_work *work, struct rp_arena *arena,
                                    struct rp_report_part *out, struct rp_err *err);

/* Adds up device time by category. */
enum rp_code rp_report_sum_categories(const struct rp_work *work,
                                      const struct rp_attribution *places,
                                      struct rp_trace_categories *known, struct rp_report_part *out,
                                      struct rp_err *err);

/* Finds what takes the time of the segments, in a rank and in all ranks; `sampled` rows replace
   operators that were not recorded (hot.c). */
enum rp_code rp_report_find_hot(const struct rp_trace *trace, const struct rp_scope *scope,
                                const struct rp_segments *segments, struct rp_arena *arena,
                                struct rp_report_part *out, struct rp_err *err);
/* Finds the lines of compiled programs, from files beside the trace. */
enum rp_code rp_report_find_lines(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                  struct rp_arena *arena, struct rp_report_part *out,
                                  struct rp_err *err);
enum rp_code rp_report_join_hot(const struct rp_ranks *ranks, struct rp_arena *arena,
                                struct rp_report_root *out, struct rp_err *err);
extern const struct rp_type rp_report_hot_row_type;

/* Finds the pauses of the segments, around and between the intervals of `busy`; they add up to the
   idle time. If each is not NULL, it gets them one by one in the order of time; `cause` is that of
   a lane (view.h). */
enum rp_code rp_report_find_pauses(const struct rp_trace *trace, const rp_interval_vec *busy,
                                   const struct rp_segments *segments, struct rp_arena *arena,
                                   struct rp_report_pauses *out, rp_gap_vec *each,
                                   struct rp_err *err);

enum rp_code rp_report_measure_latency(const struct rp_trace *trace, struct rp_arena *arena,
                                       struct rp_report_latency *out, struct rp_err *err);

/* Pitfalls are sentences about false impressions of a timeline, checked on this trace; NULL if
   there is none. One operator name for work of very different size: */
enum rp_code rp_pitfall_unequal(const struct rp_work *work, const struct rp_attribution *places,
                                struct rp_arena *arena, const char **out, struct rp_err *err);

/* Several streams that compute, one after the other: */
enum rp_code rp_pitfall_streams(const struct rp_work *work, int64_t compute_ns,
                                struct rp_arena *arena, const char **out, struct rp_err *err);

/* When torch.compile compiled, also before what is judged; `path`: of the trace, beside which logs
   may lie, or NULL. In compiles.c. */
enum rp_code rp_report_find_compiles(const struct rp_trace *trace, const char *path,
                                     rp_interval_vec *out, struct rp_err *err);

/* A step much longer than the others (of a server's, than other decode steps), why, as far as its
   host spans and the compiles show, and which one to use instead; `steps` are those of the trace:
 */
enum rp_code rp_pitfall_steps(const struct rp_trace *trace, const struct rp_report_step *steps,
                              size_t n, const rp_interval_vec *compiles, struct rp_arena *arena,
                              const char **out, struct rp_err *err);

/* For steps that are far longer than the others, says what their threads did longer than in a
   typical step. */
enum rp_code rp_report_say_longer(const struct rp_trace *trace, struct rp_report_step *steps,
                                  size_t n, bool on_device, struct rp_arena *arena,
                                  struct rp_err *err);

/* Fills the samples of all ranks, their line and their rows; nothing if there are none. */
enum rp_code rp_report_join_samples(const struct rp_ranks *ranks, struct rp_arena *arena,
                                    struct rp_report_root *out, struct rp_err *err);

extern const struct rp_type rp_report_category_type;

/* Fills the categories of all ranks and the line that shows them; both are empty without device
   work. Texts are in the arena, which keeps a failure. */
void rp_report_join_categories(const struct rp_ranks *ranks, struct rp_arena *arena,
                               struct rp_report_root *out);

extern const struct rp_type rp_report_group_type, rp_report_host_type; /* differ in name only */
#define RP_REPORT_GROUP_COLUMNS /* the columns after the one that names the group */ \
    "rank_count, which, compute_ns, comm_ns, idle_ns, wait_ns, last_count, margin_ns"

/* Fills the groups of out->ranks; texts are in the arena, which keeps a failure. */
void rp_report_group_ranks(const struct rp_ranks *ranks, struct rp_arena *arena,
                           struct rp_report_root *out);

/* Adds the same as lines on the screen, with their predictions. */
void rp_report_look_tries(struct rp_arena *arena, const struct rp_report_finding *finding,
                          struct rp_report_look *look);

/* Fills what simulate predicts (predict.c): for the advice of findings, and for a step without the
   profiler. */
extern const struct rp_type rp_report_try_type;
extern const struct rp_rank_bulk rp_report_bulk; /* the models (dataset/bulk.h) */
enum rp_code rp_report_predict(const struct rp_ranks *ranks, const struct rp_chain *chain,
                               bool simulate, struct rp_arena *arena, struct rp_report_root *out,
                               struct rp_err *err);

/* Fills the texts of a rank's workload, and describes them (advice.c). */
extern const struct rp_type rp_report_workload_type;
/* start_up.c: for a rank, and for all; the second fills rows if something was measured. */
enum rp_code rp_report_measure_start(const struct rp_trace *trace, struct rp_report_part *out,
                                     struct rp_err *err);
void rp_report_fill_start(const struct rp_ranks *ranks, struct rp_arena *arena,
                          struct rp_report_root *out);

/* "pytorch", or "sglang on pytorch". */
const char *rp_report_program_name(struct rp_arena *arena, const struct rp_report_part *part);
struct rp_report_workload rp_report_workload_of(const struct rp_workload *workload);

/* Fills the devices. Returns a note if a rank has several, else NULL. */
const char *rp_report_join_devices(const struct rp_ranks *ranks, struct rp_arena *arena,
                                   struct rp_report_root *out);

/* Fills the kinds of steps of a rank. Needs its steps, and what lies outside of them. */
enum rp_code rp_report_sort_steps(const struct rp_trace *trace, const struct rp_work *work,
                                  struct rp_arena *arena, struct rp_report_part *out,
                                  struct rp_err *err);

/* Fills the requests of a rank. */
enum rp_code rp_report_find_requests(const struct rp_trace *trace, struct rp_arena *arena,
                                     struct rp_report_part *out, struct rp_err *err);

/* Fills the phases. Needs the steps. */
enum rp_code rp_report_sum_phases(const struct rp_ranks *ranks, struct rp_arena *arena,
                                  struct rp_report_root *out, struct rp_err *err);

/* Finds calls far above the median of their name on this rank that have more to do, or wait for
   results of the device. */
enum rp_code rp_report_explain_stalls(const struct rp_trace *trace, const rp_interval_vec *busy,
                                      struct rp_arena *arena, struct rp_host_calls *calls,
                                      struct rp_err *err);

/* Counts the stalls of each rank and of all. Needs the window. */
enum rp_code rp_report_count_stalls(const struct rp_ranks *ranks, struct rp_arena *arena,
                                    struct rp_report_root *out, struct rp_err *err);
