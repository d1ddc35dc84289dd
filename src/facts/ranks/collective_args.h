/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What frameworks record about a collective: its kind, size, process group and sequence number.
 * PyTorch records them as arguments of the kernel, of `record_param_comms` and of the annotation
 * `nccl:…` around the launch; which ones depends on its version.
 */
#include "base/decides.h"
#include "facts/arg_keys.h"

#define RP_NEARBY_EVENTS 4096
RP_LIMIT(
    RP_NEARBY_EVENTS, "events of a thread",
    "on each side of a launch, up to the next one, in which its communication is looked for; beyond "
    "it only the kernel's own name and arguments count");

/* X(NAME, "name", bus factor as a function of n) */
#define RP_COLL_MAP(X)                        \
    X(OTHER, "other", NONE)                   \
    X(ALL_REDUCE, "all_reduce", TWICE)        \
    X(ALL_GATHER, "all_gather", PART)         \
    X(REDUCE_SCATTER, "reduce_scatter", PART) \
    X(ALL_TO_ALL, "all_to_all", PART)         \
    X(BROADCAST, "broadcast", ONE)            \
    X(REDUCE, "reduce", ONE)                  \
    X(GATHER, "gather", PART)                 \
    X(SCATTER, "scatter", PART)               \
    X(SEND_RECV, "send_recv", ONE)            \
    X(BARRIER, "barrier", NONE)

enum rp_coll_kind {
#define RP_COLL_ENUM(name, text, factor) RP_COLL_##name,
    RP_COLL_MAP(RP_COLL_ENUM)
#undef RP_COLL_ENUM
        RP_COLL_KINDS
};
extern const char *const rp_coll_kind_names[RP_COLL_KINDS];

/* What the ranks of a group have split among them. X(NAME, "name") */
#define RP_DIMENSION_MAP(X) \
    X(TENSOR, "tp") X(PIPELINE, "pp") X(DATA, "dp") X(CONTEXT, "cp") X(EXPERT, "ep")

enum rp_dimension {
    RP_DIMENSION_UNKNOWN,
#define RP_DIMENSION_ENUM(name, text) RP_DIMENSION_##name,
    RP_DIMENSION_MAP(RP_DIMENSION_ENUM)
#undef RP_DIMENSION_ENUM
        RP_DIMENSIONS
};
extern const char *const rp_dimension_names[RP_DIMENSIONS]; /* NULL: not known */

/* By the description of a group: "mesh_tp", "EXPERT_MODEL_PARALLEL_GROUP". */
enum rp_dimension rp_dimension_of(const char *description);

/* The kind of collective by the name of a kernel or annotation, or by a "Collective name". */
enum rp_coll_kind rp_coll_kind_of(const char *name);

/* Whether each rank needs data of every other, so that none leaves before the last one arrives. */
static inline bool rp_coll_is_mutual(enum rp_coll_kind kind)
{
    return kind == RP_COLL_ALL_REDUCE || kind == RP_COLL_ALL_GATHER ||
           kind == RP_COLL_REDUCE_SCATTER || kind == RP_COLL_ALL_TO_ALL || kind == RP_COLL_BARRIER;
}

/* The algorithm and protocol of NCCL in a name, such as "…_RING_LL128", as a number for
   rp_coll_algorithm_name ("RING LL128"); 0: none, whose name is NULL. */
uint8_t rp_coll_algorithm_of(const char *name);
const char *rp_coll_algorithm_name(uint8_t algorithm);

/* Bytes on the busiest link for each byte of the collective's size, among n ranks; 0: not known. */
double rp_coll_bus_factor(enum rp_coll_kind kind, int64_t n);

/* "bf16", with 2 bytes, for "c10::BFloat16" and "BFloat16"; NULL if it is not known. */
const char *rp_coll_dtype(const char *text, size_t len, int64_t *bytes);

/* Counts the elements in a text of "Input Dims" such as "[[4, 2048], [7]]": the sum of the products
   of the innermost lists, and how many of them are not empty; false if the sum overflows. */
bool rp_coll_count_elements(const char *dims, int64_t *sum, int64_t *tensors);
/* The sum; -1: not known. */
int64_t rp_coll_elements(const char *dims);

struct rp_coll_facts {
    enum rp_coll_kind kind;
    bool named;         /* the kind was recorded, not derived from a name */
    bool awaited;       /* the span is a call that waited for it, like MPI_Wait for an Iallreduce */
    const char *dtype;  /* static text, or NULL */
    int64_t item_bytes; /* size of one element; 0: not known */
    int64_t in_elements, out_elements; /* -1: not known */
    rp_str group;                      /* RP_NONE: none */
    rp_str members;                    /* the ranks of the group as text; RP_NONE: none */
    int64_t group_number;              /* if the file has a number instead of a name; else -1 */
    int64_t seq;                       /* -1: none */
    int64_t group_size;                /* 0: not known */
    uint8_t algorithm;                 /* rp_coll_algorithm_name */
    uint8_t dimension;                 /* enum rp_dimension */
};

struct rp_coll_reader {
    const struct rp_trace *trace;
    struct rp_arg_key name, dtype, in, out, group, members, seq, size, dims, types, bytes;
    struct rp_arg_key algorithm, protocol, description;
};

enum rp_code rp_coll_reader_init(struct rp_coll_reader *r, const struct rp_trace *trace,
                                 struct rp_err *err);
void rp_coll_reader_release(struct rp_coll_reader *r);

/* Reads what e (a kernel, or an annotation of gloo) and the ancestors of its launch record. */
struct rp_coll_facts rp_coll_read(const struct rp_coll_reader *r, rp_event e, rp_event launch);

/* A hash of the group's name and its ranks, which together identify a group on all ranks. 0: no
   group. */
uint64_t rp_coll_group_hash(const struct rp_trace *t, const struct rp_coll_facts *f);

/* Bytes of all input tensors of an operator; -1 if shapes were not recorded. */
int64_t rp_coll_input_bytes(const struct rp_coll_reader *r, rp_event e);
/* Only the elements, because types may be missing. -1: not known. */
int64_t rp_coll_input_elements(const struct rp_coll_reader *r, rp_event e);
