/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `fusions`: chains of element-wise kernels, reductions and normalizations that could be one kernel
 * each (docs/definitions.md, "Fusions"). chains.c finds those of one rank, tensors.c reads sizes,
 * xla.c says why XLA's instructions are separate; fusions.c joins the ranks and has the row of
 * the question.
 */
#include "base/arena.h"
#include "base/vec.h"
#include "cost/category.h"
#include "facts/arg_keys.h"
#include "facts/work/work.h"
#include "sim/model/part.h"

/* ------------------------------------------------------------------ sizes (tensors.c) */

/* What an operator reads, as far as its inputs were recorded. */
struct rp_fusion_tensors {
    double elements; /* elements of the largest input; 0: not known */
    double bytes;    /* of all inputs */
    double width;    /* bytes of each element of the first input */
    double first;    /* bytes of the first input */
};

/* Reads "Input Dims" and "Input type": "[[16, 256], [256], []]" and "["float", "float", "Scalar"]".
   types may be NULL, which means four bytes each. */
struct rp_fusion_tensors rp_fusion_tensors_read(const char *dims, const char *types);

/* The time of a chain as one kernel: longest_ns of its operators; bytes that it still reads and
   writes; bytes_per_ns of the best of its operators. 0: not known. */
int64_t rp_fused_ns(int64_t longest_ns, double bytes, double bytes_per_ns);

/* ------------------------------------------------------------------ one rank */

enum rp_fusion_kind {
    RP_FUSION_CHAIN,     /* operators that follow each other */
    RP_FUSION_OPTIMIZER, /* all work of an optimizer that is not fused */
    RP_FUSION_COMPILED,  /* instructions that XLA left separate */
    RP_FUSION_KINDS
};
extern const char *const rp_fusion_kind_names[RP_FUSION_KINDS];

/* Chains of the same operators on the same sizes. */
struct rp_fusion {
    uint8_t kind;           /* enum rp_fusion_kind */
    uint8_t phase;          /* enum rp_phase */
    bool sized;             /* the sizes of all its operators are known */
    uint64_t key;           /* the same for the same chain on two ranks */
    int64_t count, kernels; /* number of chains, or for an optimizer of steps; kernels of one chain
                               (of all of it) */
    int64_t device_ns, fused_ns;
    double elements;
    const char *ops;    /* "add, native_layer_norm" */
    const char *shape;  /* shape of the largest input of its first operator; NULL: not known */
    const char *line;   /* the frame of the user's code that launches it, or NULL */
    const char *module; /* the module, or NULL */
    const char *reason; /* why a compiler left it separate; NULL: not known */
};

struct rp_fusions_part {
    RP_VEC(struct rp_fusion) fusions;
    int64_t whole_ns;             /* device time */
    int64_t generated_ns;         /* part of it in kernels that Inductor or XLA generated */
    int64_t steps;                /* number of steps counted; 0: not marked */
    const char *not_counted;      /* what lies outside of the steps; NULL: nothing */
    bool with_shapes, with_stack; /* what was recorded */
    struct rp_recorder recorder;
    bool xla;
    int64_t programs; /* programs of XLA that were found beside the trace */
    bool modelled;    /* sim is filled */
    bool cut, large;  /* there were more chains than were examined; too many events for sim */
    struct rp_sim_part sim;
};

/* Texts are in the arena; the caller owns the vectors, also after a failure. */
enum rp_code rp_fusions_find(const struct rp_trace *trace, const struct rp_scope *scope,
                             const struct rp_category_table *categories, struct rp_arena *arena,
                             struct rp_fusions_part *out, struct rp_err *err);

/* ------------------------------------------------------------------ the answer */

struct rp_fusion_row {
    const char *name, *kind, *phase, *shape, *line, *module, *reason;
    const char *label, *where, *shown_shape, *shown_reason; /* on the screen */
    int64_t count, kernels, device_ns, fused_ns, saved_ns;
    double share; /* share of saved_ns in all device time */
};

struct rp_fusion_whatif {
    const char *what_if;
    int64_t step_ns, predicted_ns;
    double change_ratio;
};

struct rp_fusions_root {
    const char *summary, *simulated; /* on the screen */
    int64_t ranks, steps, whole_ns, chained_ns, fused_ns, saved_ns, row_count;
    double saved_share;
    const char *compiler; /* "inductor", "xla"; NULL: nothing is compiled */
    size_t nrows, nwhat_ifs, nnotes;
    struct rp_fusion_row *rows;
    struct rp_fusion_whatif *what_ifs;
    const char **notes;
};
