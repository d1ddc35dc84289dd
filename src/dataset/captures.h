/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Recordings of graph captures among the inputs. They are not ranks of the run: they are read first
 * and stay in memory, and the kernels of graphs that the ranks launch take their operators from
 * them (facts/graphs/join.h).
 *
 *     decode.json.gz                       a rank, which launches graphs
 *     capture_traces/graph_capture_….gz    the captures of those graphs
 *
 * Up to RP_CAPTURE_SEARCH inputs are all examined; if there are more, only those whose name or
 * folder contains "capture".
 */
#include "base/decides.h"
#include "dataset/load.h"
#include "facts/graphs/join.h"
#include "formats/formats.h"

#define RP_CAPTURE_SEARCH 4
RP_LIMIT(RP_CAPTURE_SEARCH, "inputs",
         "of more, captures are recognised by their names alone (above)");

/* What was read from a source before its turn. */
struct rp_read_source {
    bool read;    /* code, err and import are the result of reading it; a job may take the import */
    bool capture; /* the import stays here, as long as there is room */
    enum rp_code code;
    struct rp_err err;
    struct rp_import import;
    struct rp_captures captures;
};

struct rp_capture_files {
    size_t n;                    /* sources */
    struct rp_read_source *read; /* by source; NULL if none was read */
};

/* Whether the last part of a path, or the folder before it, is named like a capture. */
bool rp_is_named_capture(const char *name);

/* Whether a source is a recording of captures: by its content or, if graphs were both captured and
   launched in it, by its name. */
bool rp_is_capture_file(const char *name, const struct rp_captures *captures);

/* Must be released also after a failure. Sources that cannot be read are not a failure. */
enum rp_code rp_capture_files_find(struct rp_capture_files *out, struct rp_ctx *ctx,
                                   const struct rp_dataset *dataset, struct rp_err *err);
void rp_capture_files_release(struct rp_capture_files *files);

/* Takes what was read from a source; false if nothing was. A capture is not given: *skip is then
   true. */
bool rp_capture_files_take(struct rp_capture_files *files, size_t source, struct rp_import *import,
                           enum rp_code *code, bool *skip, struct rp_err *err);

/* The graphs of a trace, for the notes of an answer. All fields are zero if it has none. */
struct rp_graph_use {
    int64_t launches, items, ns, matched, matched_ns, ambiguous, unordered; /* rp_graph_join */
    int64_t captured; /* launches if the trace is a recording of captures; otherwise 0 */
    int64_t ran;      /* beside them */
    size_t nused;     /* recordings from which kernels take their operators */
    const char *used; /* the name of the first one; NULL if it is the trace itself */
};

/* Joins a trace with its own captures and those of the files; run_of limits them to the files of
   the same run (NULL allows all). out->trace is NULL if nothing changes. `use` is filled in the
   arena. */
enum rp_code rp_capture_files_join(const struct rp_capture_files *files, const uint8_t *run_of,
                                   const struct rp_dataset *dataset, const struct rp_loaded *loaded,
                                   struct rp_graph_join *out, struct rp_graph_use *use,
                                   struct rp_arena *arena, struct rp_err *err);

/* Returns what an answer should say about them, in the arena, or NULL. `name` is the
   recording's. */
const char *rp_graph_use_text(const struct rp_graph_use *use, const char *name,
                              struct rp_arena *arena);
