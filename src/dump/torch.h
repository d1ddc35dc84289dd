/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the words about torch.compile share: the logs of a call, and rows of compiles and breaks. */
#include "dump/words.h"
#include "formats/torch_trace/torch_trace.h"

/* ---- compiles ---- */

struct rp_compile_kernel {
    const char *name;
    int64_t calls;
    size_t nlines;
    const char **lines; /* "model.py:11" */
    const char *from;   /* the basis of the lines, or NULL */
};

struct rp_compile_graph {
    const char *direction, *key, *cache;
    size_t nkernels;
    struct rp_compile_kernel *kernels;
};

struct rp_compile_phases {
    int64_t at[RP_TORCH_PHASES];
};

struct rp_compile_caches {
    const char *fx, *aot;
};

struct rp_compile_guard {
    struct rp_torch_guard is;
    const char *file;
};

struct rp_compile_cause { /* the only entry of a map: "guards" */
    const char *key;
    size_t nguards;
    struct rp_compile_guard *guards;
};

struct rp_compile_row {
    const char *id, *function, *file, *place, *log, *state, *cache_text, *failed, *cudagraphs;
    int64_t occurrence, rank, shown_rank, pid, line, ops, guards, nodes, inputs, attempts, breaks;
    int64_t kernels, compile_ns, start_ns, autotune_ns;
    struct rp_compile_phases phases_ns;
    struct rp_compile_caches cache;
    size_t nrecompiled, ngraphs;
    struct rp_compile_cause *recompiled; /* none or one */
    struct rp_compile_graph *graphs;
    bool dynamic, limited;
};

extern const struct rp_type rp_compile_row_type;

/* ---- graph breaks ---- */

struct rp_break_row {
    const char *gb, *kind, *reason, *file, *user_file, *function, *place, *explanation, *hint;
    const char *effect;
    int64_t line, user_line, count, restart_ns, resumes, resume_ns;
    bool skipped_frame;
    size_t nids;
    const char **ids;
};

extern const struct rp_type rp_break_row_type;

/* ---- problems ---- */

struct rp_compile_unknown {
    const char *kind;
    int64_t records;
};

struct rp_compile_problems {
    int64_t lines, md5, too_long, cut;
    size_t nunknown;
    struct rp_compile_unknown *unknown;
};

extern const struct rp_type rp_compile_problems_type;

/* ---- the logs of a call ---- */

struct rp_dump_torch {
    struct rp_torch_trace trace;
    bool *is;     /* by source: a log */
    bool *wanted; /* by compile: whether the setting "module" matches it, by an id, a function or a
                     part of its name */
    size_t nwanted;
};

/* Must be released also after a failure. The lists are in the arena. */
enum rp_code rp_dump_torch_open(const struct rp_dump_call *call, struct rp_arena *arena,
                                struct rp_dump_torch *out, struct rp_err *err);
/* Does the same for a word that needs a log: RP_FORMAT if there is none. */
enum rp_code rp_dump_torch_need(const struct rp_dump_call *call, struct rp_arena *arena,
                                struct rp_dump_torch *out, struct rp_err *err);
void rp_dump_torch_release(struct rp_dump_torch *torch);

/* Makes rows of the wanted compiles. All texts are copied into the arena; its failure sticks. */
struct rp_compile_row *rp_dump_torch_rows(const struct rp_dump_torch *torch, struct rp_arena *arena,
                                          size_t *n);
/* Makes rows of the distinct breaks of the wanted compiles, most frequent first; its failure
   sticks, too. */
struct rp_break_row *rp_dump_torch_breaks(const struct rp_dump_torch *torch, struct rp_arena *arena,
                                          size_t *n);
void rp_dump_torch_problems(const struct rp_dump_torch *torch, struct rp_arena *arena,
                            struct rp_compile_problems *out);
/* Returns a line about the problems, or NULL. */
const char *rp_dump_torch_warning(const struct rp_compile_problems *problems,
                                  struct rp_arena *arena);
