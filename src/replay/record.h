/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_REPLAY_RECORD_H
#define RP_REPLAY_RECORD_H
/* What `replay` answers. */
#include <reprise/result.h>

#include <stdbool.h>

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
    const char *dtype, *shown, *reason;
    size_t nshape, nworst;
    int64_t *shape;
    double max_abs, max_rel;
    bool ok;
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
struct rp_replay_compared { /* with an earlier answer */
    const char *with, *engine, *verdict;
    int64_t p50_ns, n;
    double change_ratio, machine_ratio, noise_ratio, p_value;
};
struct rp_replay_file { /* of a bundle */
    const char *path, *holds, *type, *sha256;
    int64_t bytes;
    bool ok;
};
struct rp_replay {
    const char *program, *format, *engine, *choice, *inputs, *checked;
    const char *bundle, *packed_by, *flags; /* of pack, unpack and info */
    int64_t rank, partitions, compile_ns, upload_ns, first_ns;
    struct rp_replay_times run_ns;
    size_t noutputs, ninstructions, nengines, nfiles, ncompared, nwarnings;
    struct rp_replay_output *outputs;
    struct rp_replay_op *instructions;
    struct rp_replay_engine *engines;
    struct rp_replay_file *files;
    struct rp_replay_compared *compared;
    const char **warnings;
    bool ok;
};
extern const struct rp_type rp_replay_type;

void rp_replay_no_times(struct rp_replay *root); /* nothing ran */

#endif
