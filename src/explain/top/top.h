/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_TOP_TOP_H
#define RP_EXPLAIN_TOP_TOP_H
/*
 * What takes the time, by kernel, operator, shape and so on: `rp_top_rank` groups the work of one
 * trace, `rp_top_join` adds the groups of all ranks by name and makes the statistics.
 */
#include "base/strtab.h"
#include "facts/work.h"
#include "result/result.h"

enum rp_top_by {
    RP_TOP_KERNEL,
    RP_TOP_OP,
    RP_TOP_SHAPE,
    RP_TOP_MODULE,
    RP_TOP_ANNOTATION,
    RP_TOP_PHASE,
    RP_TOP_STREAM,
    RP_TOP_PYTHON,
    RP_TOP_BYS
};
#define RP_TOP_BY_WORDS "kernel|op|shape|module|annotation|phase|stream|python"
#define RP_TOP_SORTS    "total|self|count|mean|p50|p99|max|std|name"

struct rp_top_sample {
    uint32_t group;
    int64_t total_ns, self_ns;
};

/* Of one rank. A group is the id of its name. */
struct rp_top_part {
    struct rp_strtab names;
    RP_VEC(const char *) kinds; /* by group; constants */
    RP_VEC(struct rp_top_sample) samples;
    int64_t whole_ns, covered_ns; /* time that was asked about; of it, in some group */
    bool on_host;                 /* no device work: times are those of host spans */
};

struct rp_top_row {
    const char *name, *label, *kind;
    int64_t count, total_ns, self_ns, mean_ns, min_ns, p50_ns, p90_ns, p99_ns, max_ns, std_ns;
    double share;
};

struct rp_top_root {
    const char *by, *measure;
    int64_t ranks, whole_ns, covered_ns, row_count;
    double covered_share;
    const char *summary; /* for the screen */
    size_t nrows, nflat, nnested, nnotes;
    struct rp_top_row *rows;
    struct rp_top_row *flat, *nested; /* the same on the screen: one of the two */
    const char **notes;
};

extern const struct rp_type rp_top_type;

/* The word of an option to its value; the word was checked. */
enum rp_top_by rp_top_by_of(const char *word);

enum rp_code rp_top_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                         enum rp_top_by by, struct rp_top_part *out, struct rp_err *err);
void rp_top_part_release(struct rp_top_part *part);

/* limit 0: all rows. sort is one of RP_TOP_SORTS. */
enum rp_code rp_top_join(const struct rp_top_part *const *parts, size_t nparts, const char *by,
                         const char *sort, int64_t limit, struct rp_arena *arena,
                         struct rp_top_root *out, struct rp_err *err);

#endif
