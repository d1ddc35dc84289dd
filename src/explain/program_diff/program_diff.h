/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `diff` of programs shows how two programs differ, independent of names (compare.c), which
 * modules of two folders belong together (pairs.c), and why a program was compiled again
 * (recompiles.c).
 */
#include "dataset/load_program.h"
#include "explain/program_diff/match.h"
#include "result/result.h"
#include "result/settings.h"

/* ---- the answer ---- */

struct rp_program_diff_change {
    const char *kind;  /* added, removed, opcode, shape, constant, attribute, operands, sharding;
                          follows: a consequence of other changes */
    int64_t count;     /* number of operations that changed in this way */
    const char *what;  /* "add f32[8] -> subtract f32[8]" */
    const char *where; /* "net/layer_{0-31}/attn", "repeat 17 of 32" */
    const char *place, *example;
    const char *text; /* text output only */
};

struct rp_program_diff_program {
    const char *name, *hash;
    int64_t instructions;
};

struct rp_program_diff_step { /* rp_program_diff_step: a graph that had to be compiled */
    int64_t graph;            /* number in the dump, from 1 */
    const char *name;         /* name of the file or function, or "" */
    int64_t runs;             /* number of identical graphs in the dump */
    const char *cause;        /* first, same, shape, constant, sharding or structure */
    int64_t against;          /* the most similar graph before it; absent if there is none */
    const char *what, *where, *place; /* these describe the most important change */
    int64_t changes;                  /* number of changes */
    const char *label, *text;         /* text output only: number and name; what, where, place */
};

struct rp_program_diff_module { /* of two folders */
    const char *name;
    const char *state; /* same, different, added or removed */
    const char *cause;
    const char *what, *where, *place;
    int64_t changes;
    const char *left, *right; /* files; "" if the side has none */
    const char *text;         /* text output only: cause, what, where, place */
};

struct rp_program_diff {
    const char *inputs; /* "programs" */
    bool same;
    const char *cause; /* shape, constant, sharding or structure; "" if nothing changed */
    struct rp_program_diff_program left, right;
    int64_t matched, changed, follows, added, removed;
    size_t nchanges, nsteps, nmodules;
    struct rp_program_diff_change *changes; /* causes come first, then by frequency */
    struct rp_program_diff_step *steps;
    struct rp_program_diff_module *modules;
};

/* The record of two programs; the records of recompiles and of two folders show other parts of
   it. */
extern const struct rp_type rp_program_diff_type;

/*
 * Fills the result, whose root is a struct rp_program_diff, with its type (see
 * rp_program_diff_type) and its answer. Settings "module" and "stage" select programs of folders;
 * "html" names the page.
 */
enum rp_code rp_program_diff_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                 const struct rp_settings *settings, struct rp_result *result,
                                 struct rp_err *err);

/* ---- two programs ---- */

/* One side of a comparison: a computation of a program, or RP_NONE for all of it. */
struct rp_program_diff_side {
    const struct rp_match_side *prepared;
    uint32_t computation;
};

/* Compares two sides; texts and lists are in the arena. */
enum rp_code rp_program_diff_sides(struct rp_program_diff_side left,
                                   struct rp_program_diff_side right, struct rp_arena *arena,
                                   struct rp_program_diff *out, struct rp_err *err);
enum rp_code rp_program_diff_compare(const struct rp_program *left, const struct rp_program *right,
                                     struct rp_arena *arena, struct rp_program_diff *out,
                                     struct rp_err *err);

/* Writes the page of two programs, side by side. */
enum rp_code rp_program_diff_draw(const struct rp_match_side *left, const char *left_name,
                                  const struct rp_match_side *right, const char *right_name,
                                  const char *path, struct rp_err *err);

static inline uint64_t rp_program_diff_side_hash(struct rp_program_diff_side side)
{
    return side.computation == RP_NONE ? side.prepared->hashes.program
                                       : side.prepared->hashes.computation[side.computation];
}

/*
 * Hash of the shardings of all operations; 0 if there are none. Shardings are not part of the
 * structural hash, because they do not change what is computed, but they change what is compiled:
 * programs whose shardings differ are not the same for `diff`.
 */
uint64_t rp_program_diff_sharding_hash(struct rp_program_diff_side side);
bool rp_program_diff_same_hashes(uint64_t left, uint64_t left_sharding, uint64_t right,
                                 uint64_t right_sharding);

/* "what, where, place", without empty parts; in the arena. */
const char *rp_program_diff_sentence(const char *what, const char *where, const char *place,
                                     struct rp_arena *arena);

/* The most important change, or NULL; and its description, with its kind if needed: "added relu
   f32[8]". In the arena. */
const struct rp_program_diff_change *
rp_program_diff_main_change(const struct rp_program_diff *diff);
const char *rp_program_diff_change_words(const struct rp_program_diff_change *change,
                                         struct rp_arena *arena);

/* ---- modules of two folders ---- */

struct rp_module_key {
    const char *name; /* name of the module and its stage, without ids */
    const char *folder;
    uint64_t hash, sharding;
};

struct rp_module_pair {
    size_t left, right; /* SIZE_MAX: none */
};

/*
 * Pairs by name and content, then by name in the given order (a function that was compiled several
 * times), both first within folders of the same name and then anywhere; then by content (a renamed
 * function). The rest has no partner. The pairs are in the order of the left side, then of the
 * right side; in the arena.
 */
enum rp_code rp_modules_pair(const struct rp_module_key *left, size_t n,
                             const struct rp_module_key *right, size_t m, struct rp_arena *arena,
                             struct rp_module_pair **out, size_t *npairs, struct rp_err *err);

/* ---- recompiles: each graph of a dump against the most similar one before it ---- */

struct rp_recompile_graph {
    struct rp_program_diff_side side;
    const char *name;
    int64_t number; /* shown to the user */
};

struct rp_recompiles { /* rows so far */
    RP_VEC(struct rp_program_diff_step) rows;
};

/*
 * The graphs are of one kind, in the order of time. Makes one row for each that is not identical to
 * an earlier one. Texts are in the arena; the rows belong to the caller.
 */
enum rp_code rp_recompiles_explain(const struct rp_recompile_graph *graphs, size_t n,
                                   struct rp_arena *arena, struct rp_recompiles *out,
                                   struct rp_err *err);
