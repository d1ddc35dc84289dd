/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The formats in which a trace or a program can be written; each has one file (list.h). An output
 * file appears completely or not at all. The trace is not changed; several threads may write from
 * it at once.
 */
#include "base/err.h"
#include "program/program.h"
#include "trace/trace.h"

#include <stdbool.h>
#include <stddef.h>

/* Drawn on top of a trace that is written for viewers: rows of spans in a process of their own, and
   arrows between recorded tracks. */
struct rp_overlay_span {
    int64_t ts_ns, dur_ns;
    const char *name, *kind;
    uint32_t row;
};
struct rp_overlay_arrow {
    int64_t from_ns, to_ns;
    rp_track from, to;
};
struct rp_write_overlay {
    const char *title;       /* title of the process, and category of everything in it */
    const char *const *rows; /* their names */
    size_t nrows, nspans, narrows;
    const struct rp_overlay_span *spans;
    const struct rp_overlay_arrow *arrows;
};

struct rp_write_options {                   /* zeroed: the defaults */
    int gzip_level;                         /* 1 to 9 if the path ends in ".gz"; 0 means 6 */
    const struct rp_write_overlay *overlay; /* only for Chrome's format; NULL: none */
    const char *table;                      /* only for Arrow; NULL means events */
    const char *input; /* the file that the trace was read from; NULL: not known */
    int32_t rank;      /* rank of a trace that does not state its own */
};

/* Which samples of call stacks are written: none, those with a time, or all. */
enum rp_writes_samples { RP_SAMPLES_NONE, RP_SAMPLES_TIMED, RP_SAMPLES_ALL };

struct rp_writer {
    const char *name;
    const char *endings[3]; /* endings of paths that mean this format, NULL after the last */
    const char *summary;
    bool streams;                   /* can write to standard output, "-" */
    bool available;                 /* the library that it needs was found when Reprise was built */
    bool by_rank;                   /* a merged trace is divided into its ranks */
    bool numbered;                  /* files in a folder are named by the number of their rank */
    enum rp_writes_samples samples; /* of call stacks */
    /* A writer has one of these two. path "-" is standard output. options may be NULL for the
       defaults. */
    enum rp_code (*write)(const struct rp_trace *trace, const char *path,
                          const struct rp_write_options *options, struct rp_err *err);
    enum rp_code (*write_program)(const struct rp_program *program, const char *path,
                                  const struct rp_write_options *options, struct rp_err *err);
};

/*
 * The writer with that name, or if name is NULL, the one for the path's ending. If there is none,
 * or it cannot write there, returns RP_USAGE and lists the choices.
 */
enum rp_code rp_writer_for(const char *name, const char *path, const struct rp_writer **out,
                           struct rp_err *err);
/* The same, but `more`, a list that ends with NULL, can be chosen, too. */
enum rp_code rp_writer_among(const struct rp_writer *const *more, const char *name,
                             const char *path, const struct rp_writer **out, struct rp_err *err);
