/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A merged trace holds several ranks (rp_builder_append), and says so in its metadata: for each
 * rank the processes it consists of, the ids they had, and what its own file said about it. So it
 * can be divided again into the traces it was made from.
 *
 *     "repriseRanks":[{"rank":0,"world_size":2,"label":"rank
 * 0","first_pid":0,"pids":[1827,0,"Spans"], "devices":[…],"meta":{"distributedInfo":{…}}}, …]
 *
 * Process k of a rank is process first_pid + k of the merged trace; the i-th rank's ids of calls
 * and arrows are moved by i × RP_MERGED_ID_STEP, and its label is part of its names. `devices` and
 * `meta` are there where they differ from those of the first rank, which are the merged trace's
 * own. Times stay on the common clock.
 */
#include "io/emit.h"
#include "trace/build/build.h"

#define RP_MERGED_KEY "repriseRanks"

/* Larger than all 32-bit ids, and even for thousands of traces below 2^53, where numbers in JSON
 * stop being exact. */
#define RP_MERGED_ID_STEP INT64_C(100000000000)

struct rp_merged_process {
    int64_t id;       /* unless it has a text */
    const char *text; /* NULL if the id is a number */
};

struct rp_merged_meta {
    const char *key, *value; /* value: as JSON */
};

struct rp_merged_rank {
    int32_t number, world_size; /* world_size is 0 if not known */
    uint32_t index;             /* index among the joined traces */
    int64_t first_pid;
    const char *label;
    size_t nprocesses, nmeta, ndevices;
    struct rp_merged_process *processes;
    struct rp_merged_meta *meta;
    struct rp_device *devices; /* without names */
    const char **device_names;
};

struct rp_merged {
    size_t n; /* 0 if the trace is not merged */
    struct rp_merged_rank *ranks;
};

/* Writes the record of a rank that is about to be appended; `first` is the hash of everything that
   the first rank's record would say (rp_merged_common), or 0 for the first rank itself. */
struct rp_merged_common {
    RP_VEC(uint64_t) hashes;
};
enum rp_code rp_merged_describe(struct rp_emit *to, struct rp_merged_common *common,
                                const struct rp_trace *trace, const struct rp_append *how,
                                int32_t number, struct rp_err *err);

/* Texts are in the arena. If a record makes no sense, all records are ignored. */
enum rp_code rp_merged_read(const struct rp_trace *trace, struct rp_arena *arena,
                            struct rp_merged *out, struct rp_err *err);

/* Makes the trace of one rank; the merged trace must be verified completely (RP_NEED_ALL). */
enum rp_code rp_merged_split(const struct rp_trace *trace, const struct rp_merged_rank *rank,
                             const struct rp_limits *limits, struct rp_trace **out,
                             struct rp_err *err);
