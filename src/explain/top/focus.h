/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `top --focus NAME` shows one operator, kernel, module, annotation or Python frame: who calls it,
 * what it calls, with which shapes and from which lines.
 */
#include "base/arena.h"
#include "base/vec.h"
#include "facts/work/recorder.h"
#include "facts/work/work.h"

/* The relation of a row to the focus. X(NAME, "word", heading) */
#define RP_FOCUS_MAP(X)              \
    X(MATCH, "match", "matches")     \
    X(CALLER, "caller", "called by") \
    X(CALLEE, "callee", "calls")     \
    X(SHAPE, "shape", "shapes")      \
    X(LINE, "line", "Python lines")

enum rp_focus_relation {
#define RP_FOCUS_ENUM(name, word, heading) RP_FOCUS_##name,
    RP_FOCUS_MAP(RP_FOCUS_ENUM)
#undef RP_FOCUS_ENUM
        RP_FOCUS_RELATIONS
};

struct rp_focus_sum {
    uint8_t relation, kind; /* enum rp_focus_relation, enum rp_span_kind */
    int64_t calls, total_ns;
    const char *name;
};

struct rp_focus_part {
    RP_VEC(struct rp_focus_sum) sums;
    int64_t whole_ns, total_ns, backward_ns, calls;
    bool on_host, exact; /* exact: some name equals it */
    struct rp_recorder recorder;
};

extern const struct rp_type rp_focus_part_type;

/* Texts are in the arena. */
enum rp_code rp_focus_make(const struct rp_trace *trace, const struct rp_scope *scope,
                           const char *name, struct rp_arena *arena, struct rp_focus_part *out,
                           struct rp_err *err);

struct rp_focus_row {
    const char *relation, *kind, *name, *label;
    int64_t calls, total_ns;
    double share; /* of the focus */
};

struct rp_focus_root {
    const char *summary, *focus, *measure;
    bool exact;
    int64_t ranks, whole_ns, total_ns, backward_ns, calls;
    double share;
    size_t nrows, nnotes;
    struct rp_focus_row *rows;
    size_t nmatches, ncallers, ncallees, nshapes, nlines; /* on the screen */
    struct rp_focus_row *matches, *callers, *callees, *shapes, *lines;
    const char **notes;
};

extern const struct rp_type rp_focus_type;

struct rp_focus_cut {
    int64_t rows; /* number of rows for each relation; 0: all */
    bool flat;    /* a row for each numbered module */
};

enum rp_code rp_focus_join(const struct rp_focus_part *const *parts, size_t n, const char *name,
                           const struct rp_focus_cut *cut, struct rp_arena *arena,
                           struct rp_focus_root *out, struct rp_err *err);
