/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A set of metrics: the counts of one source (the file of a process, a report as text) or of
 * several together. file.c and text_report.c fill a set, set.c merges sets and computes
 * percentiles; metrics.c is the question.
 */
#include "base/arena.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum rp_metric_unit { RP_METRIC_TIME, RP_METRIC_VALUE, RP_METRIC_BYTES };

/* The percentiles that are reported. */
#define RP_METRIC_PERCENTILES 9
extern const int rp_metric_percent[RP_METRIC_PERCENTILES]; /* 1 5 10 20 50 80 90 95 99 */

/* Samples between two values, in ns for a time. */
struct rp_metric_bucket {
    double least, most;
    uint64_t count;
};

struct rp_metric {
    const char *name;
    enum rp_metric_unit unit;
    uint64_t count;
    double sum, least, most; /* least and most are NAN if not known */
    int64_t first_ns,
        last_ns; /* since 1970: begin of the first sample, end of the last; 0, 0 if not known */
    double rate, sum_rate;                   /* per second, from a text report; otherwise NAN */
    RP_VEC(struct rp_metric_bucket) buckets; /* in order; empty if only percentiles are known */
    bool has_points;
    double point[RP_METRIC_PERCENTILES];
};

struct rp_metric_counter {
    const char *name;
    int64_t value;
};

/* A time that a text report prints incorrectly. */
struct rp_metric_misprint {
    const char *metric, *field, *printed;
    double ns; /* the right value */
};

struct rp_metric_set {
    struct rp_arena arena;
    const char *source;            /* path */
    const char *host, *command;    /* or NULL */
    const char *job;               /* the name that its launcher gave it; NULL if not known */
    int64_t pid, rank, world_size; /* RP_ABSENT_I64 if not known */
    bool is_own, is_live;          /* it is a file of ours; its process is running */
    bool has_ended;                /* it ran on this machine, and is known to have ended */
    uint64_t lost;
    double *tick_ns; /* see rp_metric_read_all; or NULL */
    uint64_t torn;   /* distributions that were being written when they were read, or were never
                        finished */
    size_t ntimes, nmisprints;          /* times in a text report, and those printed incorrectly */
    struct rp_metric_misprint misprint; /* the first of them */
    RP_VEC(struct rp_metric) metrics;   /* by name */
    RP_VEC(struct rp_metric_counter) counters;
};

void rp_metric_set_release(struct rp_metric_set *set);
/* Clears metrics and counters; the description of the source stays. */
void rp_metric_set_clear(struct rp_metric_set *set);

/* Returns the metric or counter of that name, made if necessary; NULL if memory runs out. Pointers
   are valid until the next call. */
struct rp_metric *rp_metric_set_metric(struct rp_metric_set *set, const char *name,
                                       enum rp_metric_unit unit, struct rp_err *err);
enum rp_code rp_metric_set_count(struct rp_metric_set *set, const char *name, int64_t value,
                                 struct rp_err *err);

const struct rp_metric *rp_metric_find(const struct rp_metric_set *set, const char *name);
/* Returns the value of a counter; 0 if there is none. */
int64_t rp_metric_counter_value(const struct rp_metric_set *set, const char *name);

/* Adds a bucket; they may come in any order. */
enum rp_code rp_metric_add(struct rp_metric *m, double least, double most, uint64_t count,
                           struct rp_err *err);

/* Sorts everything by name, and buckets by value. */
void rp_metric_set_sort(struct rp_metric_set *set);

/* Adds the counts of `from`. Percentiles of text reports cannot be merged and are lost. */
enum rp_code rp_metric_set_merge(struct rp_metric_set *to, const struct rp_metric_set *from,
                                 struct rp_err *err);

/* Returns the sample at the index floor(percent * n / 100) of the sorted samples; NAN without
   samples. */
double rp_metric_percentile(const struct rp_metric *m, double percent);
static inline double rp_metric_mean(const struct rp_metric *m)
{
    return m->count ? m->sum / (double)m->count : 0;
}
/* Returns samples, and their sum, per second, from the begin of the first to the end of the last;
   or NAN. */
double rp_metric_rate(const struct rp_metric *m);
double rp_metric_sum_rate(const struct rp_metric *m);

/* Compares b with a: "slower", "faster", "higher", "lower", "same" or "too few samples", by the 95
   % intervals of their medians or, if these are not known, by `change`. */
const char *rp_metric_verdict(const struct rp_metric *a, const struct rp_metric *b, double change);
/* Subtracts the earlier counts of the same metric; least and most stay. */
enum rp_code rp_metric_minus(struct rp_metric *m, const struct rp_metric *before,
                             struct rp_err *err);

/* These read a source, whose first bytes tell its format. */
enum rp_code rp_metric_set_read(const char *path, struct rp_metric_set *out, struct rp_err *err);
enum rp_code rp_metric_set_read_file(const char *path, struct rp_metric_set *out,
                                     struct rp_err *err);
enum rp_code rp_metric_set_read_text(const char *path, const char *text, size_t n,
                                     struct rp_metric_set *out, struct rp_err *err);

/* The paths that a word of the command line means: a file, the files of a folder, those of a
   process; for NULL those of all running processes of this user. Paths are in the arena. */
typedef RP_VEC(const char *) rp_metric_paths;
typedef RP_VEC(struct rp_metric_set) rp_metric_sets;
enum rp_code rp_metric_find_sources(const char *word, struct rp_arena *arena, rp_metric_paths *out,
                                    struct rp_err *err);

/* Which of the paths are read, one after the other: all; those that can be read (a process may just
   be creating or removing others); or, of these, only those of processes that run. */
enum rp_metric_choice { RP_METRIC_ALL, RP_METRIC_READABLE, RP_METRIC_RUNNING };
/* tick_ns: where the caller keeps the length of a tick of this machine's cycle counter between
   readings, at first 0; NULL if it is not kept. A new measurement differs a little each time, so a
   sum of ticks could fall, which Prometheus would treat as a restart. */
enum rp_code rp_metric_read_all(const rp_metric_paths *paths, enum rp_metric_choice choice,
                                double *tick_ns, rp_metric_sets *out, struct rp_err *err);
void rp_metric_sets_release(rp_metric_sets *sets);

/* Writes the report as text (the format of torch_xla, torch.lazy and Ratex). */
struct rp_out;
void rp_metric_write_report(const struct rp_metric_set *set, struct rp_out *to);
/* Writes the sets for Prometheus, with rank, host and process as labels; those of the same process
   are added up. */
enum rp_metric_format { RP_METRIC_PROMETHEUS, RP_METRIC_OPENMETRICS };
enum rp_code rp_metric_expose(const struct rp_metric_set *sets, size_t n,
                              enum rp_metric_format format, struct rp_out *to, struct rp_err *err);
/* Returns "805ms578.778us", "62.40MB" or "29.00". */
const char *rp_metric_value_text(struct rp_arena *arena, double value, enum rp_metric_unit unit);

/* Makes sentences about what the numbers show; `ranks` are the sources of the merged set. */
typedef RP_VEC(const char *) rp_metric_remarks;
enum rp_code rp_metric_remark(const struct rp_metric_set *all, const struct rp_metric_set *ranks,
                              size_t nranks, struct rp_arena *arena, rp_metric_remarks *out,
                              struct rp_err *err);

/* Removes the file of a set if it belongs to this user and its process has ended. */
enum rp_code rp_metric_set_remove(const struct rp_metric_set *set, bool *removed,
                                  struct rp_err *err);
