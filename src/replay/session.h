/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_REPLAY_SESSION_H
#define RP_REPLAY_SESSION_H
/* A program with its inputs on one engine: what `replay` does, step by step. */
#include "exec/data/arrays.h"
#include "exec/data/compare.h"
#include "exec/data/signature.h"
#include "exec/data/snapshot.h"
#include "exec/engine/timing.h"
#include "exec/engines.h"
#include "formats/formats.h"
#include "replay/record.h"

struct rp_replay_graph;

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
    bool bundle; /* inputs and expected are of a bundle (bundle.h), which says: */
    int64_t bundle_seed, bundle_partitions;
    struct rp_replay_graph *graph; /* of TensorFlow's programs (graph.h); or NULL */
};

struct rp_session_options {
    const char *inputs, *expect; /* files, or NULL */
    uint64_t seed;
    int64_t partitions; /* 0: what is recorded or said */
};

/* Reads the program's values and chooses its inputs; says where they come from. */
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
/* Compiles, uploads, runs and fetches. Released in every case by rp_session_run_release. */
enum rp_code rp_session_execute(const struct rp_session *s, struct rp_session_run *run,
                                struct rp_err *err);
void rp_session_run_release(struct rp_session_run *run);

/* Expected outputs as the program's types: noutputs arrays that the caller drops. */
enum rp_code rp_session_expected(const struct rp_session *s, struct rp_tensor **out, size_t n,
                                 struct rp_err *err);

#endif
