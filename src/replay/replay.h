/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The internal declarations of this room: the answer of `replay`, and the steps of a program with
 * its inputs on one engine. bundle.h has the bundles, graph.h TensorFlow's programs.
 */
#include "base/arena.h"
#include "exec/data/arrays.h"
#include "exec/data/compare.h"
#include "exec/data/signature.h"
#include "exec/data/snapshot.h"
#include "exec/engine/timing.h"
#include "exec/engines.h"
#include "formats/formats.h"
#include "io/proto_write.h"
#include "program/cut.h"
#include "result/result.h"
#include "result/settings.h"

#include <reprise/result.h>

#include <stdbool.h>

/* ---- replay.c: the answer ---- */

struct rp_replay_times {
    int64_t min, p50, p90, p99, max, mean, p50_low, p50_high, n, warmups;
    int64_t *blocks, machine; /* for comparisons (timing.h) */
    size_t nblocks;
    double waited_ratio;
};
struct rp_replay_worst {
    const char *index; /* "[3,17]" */
    double got, want;
};
struct rp_replay_output {
    int64_t index, elements, wrong;
    const char *dtype, *shown, *reason, *verdict, *correct;
    size_t nshape, nworst;
    int64_t *shape;
    double max_abs, max_rel;
    double moved; /* the difference that rounding explains, measured by variants; not a number if it
                     was not measured */
    bool ok;
    bool decided; /* wrong although rounding does little, so no amplified rounding excuses it */
    struct rp_replay_worst *worst;
};
struct rp_replay_op {
    const char *name, *opcode;
    int64_t calls, total_ns;
    double share;
};
struct rp_replay_engine {
    const char *name, *found, *summary, *get;
    bool present;
};
struct rp_replay_compared { /* comparison with an earlier answer */
    const char *with, *engine, *verdict;
    int64_t p50_ns, n;
    double change_ratio, machine_ratio, noise_ratio, p_value;
};
struct rp_replay_file { /* of a bundle */
    const char *path, *holds, *type, *sha256;
    int64_t bytes;
    bool ok;
};
struct rp_replay_divergence { /* an operation that isolate found, or that bisect left */
    const char *name, *opcode, *verdict, *inside, *source, *scope, *message;
    const char *other, *other_opcode, *other_source; /* the same for the other program, or NULL */
    int64_t iteration, wrong, elements;
    double max_abs, max_rel;
};
struct rp_replay_operator { /* of a trace, for which a script was written */
    const char *name, *shapes, *file;
    int64_t calls, time_ns;
};
struct rp_replay_imported { /* a bundle that was made, or why there is none */
    const char *module, *from, *inputs, *bundle, *message;
    bool ok;
};
struct rp_replay {
    const char *program, *format, *engine, *choice, *inputs, *checked;
    const char *bundle, *packed_by, *flags; /* for pack, unpack and info */
    const char *verdict, *correct;          /* in words, for data and for the screen */
    const char *first, *first_source, *complaint,
        *written;                                 /* for isolate, bisect, extract and flatten */
    const char *counterpart, *counterpart_source; /* for isolate with two programs */
    int64_t isolated, compared_pairs, unpaired, operations_before, operations, trials;
    int64_t rank, partitions, compile_ns, upload_ns, first_ns;
    struct rp_replay_times run_ns;
    size_t noutputs, ninstructions, nengines, nfiles, ncompared, ndivergences, nimported, nwarnings,
        noperators;
    struct rp_replay_output *outputs;
    struct rp_replay_op *instructions;
    struct rp_replay_engine *engines;
    struct rp_replay_file *files;
    struct rp_replay_compared *compared;
    struct rp_replay_divergence *divergences;
    struct rp_replay_imported *imported;
    struct rp_replay_operator *operators;
    const char **warnings;
    bool ok;
};
void rp_replay_no_times(struct rp_replay *root); /* nothing ran */

/* ---- session.c ---- */

struct rp_replay_graph;

struct rp_recorded { /* callbacks.c; all empty for a program without recorded callbacks */
    struct rp_program *flat;
    struct rp_cut_program cut; /* what runs */
};

struct rp_session {
    struct rp_arena *arena; /* the result's */
    const char *file;
    const char *expect; /* the file of expected outputs, or NULL */
    struct rp_import import;
    struct rp_engine_program program;
    struct rp_signature signature;
    struct rp_snapshot snapshot;
    struct rp_arrays inputs, expected;
    struct rp_tensor **arguments; /* partitions * nin */
    size_t partitions;
    int64_t platform;           /* platform.c: the index that was chosen; -1 if there is none */
    struct rp_program *refined; /* the program for inputs of these shapes (shapes.c), or NULL */
    struct rp_recorded recorded;
    struct rp_proto_writer module; /* what runs, if it is not the program of the file */
    bool bundle; /* inputs and expected come from a bundle (bundle.h), which contains: */
    int64_t bundle_seed, bundle_partitions;
    struct rp_replay_graph *graph;  /* for TensorFlow's programs (graph.h); or NULL */
    const struct rp_program *other; /* with which 'isolate' compares it, or NULL */
    const char *other_file;
};

struct rp_session_options {
    const char *inputs, *expect; /* files, or NULL */
    const char *refine;          /* shapes of inputs, "in0=8x128", or NULL */
    uint64_t seed;
    int64_t partitions; /* 0: as recorded, or as the program states */
};

/* Reads the program's values and chooses its inputs; notes where they come from. */
enum rp_code rp_session_inputs(struct rp_session *s, const struct rp_session_options *options,
                               struct rp_replay *root, struct rp_err *err);
void rp_session_release(struct rp_session *s);

struct rp_session_run {
    const struct rp_engine *engine;
    const char *where;
    struct rp_engine_options options;
    struct rp_timing_options timing;
    bool timed; /* else one run */
    struct rp_executable *exe;
    struct rp_tensor **outputs; /* partitions * nout, after the run */
    size_t noutputs;
    int64_t compile_ns, upload_ns;
    struct rp_timing times;
};
/* Compiles, uploads, runs and fetches. Call rp_session_run_release in every case. */
enum rp_code rp_session_execute(const struct rp_session *s, struct rp_session_run *run,
                                struct rp_err *err);
void rp_session_run_release(struct rp_session_run *run);

/* Makes the array for a slot of a partition, which may be a part of the whole; `output`: of the
   i-th result, otherwise input. */
enum rp_code rp_session_shard(const struct rp_session *s, const struct rp_slot *slot, bool output,
                              size_t i, struct rp_tensor *t, unsigned partition, const char *name,
                              struct rp_tensor **out, struct rp_err *err);

/* The array for an input, which may be named in several ways, or NULL. */
struct rp_tensor *rp_session_input(const struct rp_session *s, size_t i);
/* For a program for several platforms, adds the index of this one to the inputs, unless it is
   there. */
enum rp_code rp_session_platform(struct rp_session *s, struct rp_err *err);
/* The same if inputs are synthetic. */
enum rp_code rp_session_set_platform(struct rp_session *s, struct rp_err *err);
/* If shapes are not known, makes the program for inputs with the given shapes. */
enum rp_code rp_session_refine(struct rp_session *s, const struct rp_session_options *options,
                               struct rp_err *err);
/* Makes the session run this program, which it owns from now on. */
enum rp_code rp_session_replace(struct rp_session *s, const struct rp_program *program,
                                struct rp_err *err);
/* If the inputs have results of callbacks, makes the program without these callbacks. */
enum rp_code rp_session_callbacks(struct rp_session *s, struct rp_err *err);
void rp_session_callbacks_release(struct rp_session *s);

/* Puts together recorded blocks of partitions (p0_in0, p1_in0 ...) for a program that computes with
   whole arrays, by the shardings of `compiled`, the same program after partitioning, or NULL. */
enum rp_code rp_session_unshard(struct rp_session *s, const struct rp_program *compiled,
                                struct rp_err *err);

/* Converts expected outputs to the program's types: noutputs arrays that the caller drops. */
enum rp_code rp_session_expected(const struct rp_session *s, struct rp_tensor **out, size_t n,
                                 struct rp_err *err);

/* The protobuf from which the program was read, or that its text describes: the module with the
   data recorded around it. False if it is not a protobuf. */
bool rp_replay_wire(const struct rp_session *s, struct rp_bytes *out);

/* ---- options.c: from the settings to a run ---- */

/* The engine that the settings name, or the first of the list. */
enum rp_code rp_replay_choose(const struct rp_session *s, const struct rp_settings *settings,
                              struct rp_session_run *run, struct rp_replay *root,
                              struct rp_err *err);
/* Chooses another engine for programs that the first does not know, when inputs are chosen. */
void rp_replay_choose_again(const struct rp_session *s, const struct rp_settings *settings,
                            struct rp_session_run *run, struct rp_replay *root);
/* How ref and fast multiply f32. */
void rp_replay_choose_products(const struct rp_session *s, const struct rp_settings *settings,
                               struct rp_session_run *run, struct rp_replay *root);

/* Sets how a plugin is to compile; `recorded` holds options until the run is over. */
enum rp_code rp_replay_plugin_options(struct rp_arena *arena, const struct rp_settings *settings,
                                      struct rp_engine_options *o, struct rp_proto_writer *recorded,
                                      struct rp_err *err);
/* Returns RP_USAGE if there are such options and the engine is another one. */
enum rp_code rp_replay_check_plugin_options(const struct rp_settings *settings,
                                            const struct rp_engine *engine, struct rp_err *err);

/* ---- check.c: outputs in the answer, and whether they are right ---- */

/* Checks the options --check, --atol, --rtol and --ulp before anything runs; RP_USAGE if one is
   wrong. */
enum rp_code rp_replay_check_settings(const struct rp_settings *settings, struct rp_err *err);
enum rp_code rp_replay_tolerance(const struct rp_settings *settings, struct rp_tolerance *t,
                                 struct rp_err *err);

/* Describes output i, which is not compared yet. */
enum rp_code rp_replay_describe(struct rp_arena *arena, const struct rp_tensor *t, size_t i,
                                struct rp_replay_output *row, struct rp_err *err);

/* Adds a line to the warnings. */
#define RP_REPLAY_WARNINGS 5 /* of one kind */
enum rp_code rp_replay_warn(struct rp_replay *root, struct rp_arena *arena, const char *text,
                            struct rp_err *err);

/* Compares an output with what is expected. */
void rp_replay_judge(struct rp_arena *arena, const struct rp_tensor *got,
                     const struct rp_tensor *want, const struct rp_tolerance *tolerance,
                     struct rp_replay_output *row);

/* Compares as --check says, else with what is expected or recorded, if anything is. The answer is
   "no" if an output is wrong. */
enum rp_code rp_replay_check(const struct rp_session *s, const struct rp_settings *settings,
                             const struct rp_session_run *run, struct rp_result *result,
                             struct rp_err *err);

/* ---- rounding.c ---- */

/* What a program's rounding depends on. */
struct rp_rounding {
    double terms; /* of the longest sum */
    bool products, large_constants;
};
struct rp_rounding rp_rounding_of(const struct rp_program *p);
/* The difference allowed for any way to compute the array: a few units of its largest value. 0 if
   nothing is known, because its type or one on the way to it (through) is narrow, or the program
   contains weights. */
double rp_rounding_least(const struct rp_rounding *r, const struct rp_tensor *want,
                         unsigned through);
#define RP_ROUNDING_NUDGES                                                                       \
    64 /* an output may differ by so many times its movement when inputs change by a unit in the \
          last place */

/* Makes outputs wrong that are right by their type but off by more than the program's rounding
   explains. through: from rp_precision_find, or NULL; any_tf32: the expected values may have been
   computed with products in TF32. */
enum rp_code rp_replay_tighten(const struct rp_session *s, const struct rp_session_run *run,
                               struct rp_tensor *const *want, const uint8_t *through, bool any_tf32,
                               struct rp_result *result, struct rp_err *err);

/* ---- narrow.c ---- */

/* The same for outputs of types narrower than f32, or through one; also for those that are wrong by
   their type. */
enum rp_code rp_replay_tighten_narrow(const struct rp_session *s, const struct rp_session_run *run,
                                      struct rp_tensor *const *want, const uint8_t *through,
                                      bool any_tf32, struct rp_result *result, struct rp_err *err);

/* ---- undecided.c ---- */

/* Judges outputs that were compared; those that are off without being wrong do not count in
   root->ok. any_tf32: the expected values may have been computed with products in TF32. */
enum rp_code rp_replay_excuse(const struct rp_session *s, const struct rp_session_run *run,
                              bool any_tf32, struct rp_result *result, struct rp_err *err);

/* ---- compare.c: against the JSON of an earlier replay ---- */

/* Fills root->compared from root->run_ns and the file. RP_FORMAT if that is not an answer of
   replay. */
enum rp_code rp_replay_compare(const char *path, struct rp_arena *arena, struct rp_replay *root,
                               struct rp_err *err);

/* ---- profile.c: times of instructions ---- */

/* The `most` instructions that took longest, by the times that the engine kept, or by its own
   profiler over some additional runs. */
enum rp_code rp_replay_instructions(const struct rp_session_run *run, int64_t most,
                                    struct rp_result *result, struct rp_err *err);

/* Makes some additional runs, instruction by instruction, and writes them as a trace; the ending
   decides the format. */
enum rp_code rp_replay_trace(const struct rp_session_run *run, const char *path,
                             struct rp_result *result, struct rp_err *err);

/* ---- engines.c ---- */

/* `replay engines` lists what can run programs here, every library that was found, and how to get
   the rest. With --install a package is fetched first. */
enum rp_code rp_replay_list_engines(const struct rp_settings *settings, struct rp_result *result,
                                    struct rp_err *err);
