/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `fusions`: chains of element-wise kernels, reductions and normalizations that could be one kernel
 * each (docs/definitions.md, "Fusions"). chains.c finds those of one rank, tensors.c reads sizes,
 * xla.c says of XLA's instructions why they are apart; fusions.c joins the ranks and has the row of
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
struct rp_tensors {
    double elements; /* of the largest input; 0: not known */
    double bytes;    /* of all inputs */
    double width;    /* bytes of an element of the first input */
    double first;    /* bytes of the first input */
};

/* Reads "Input Dims" and "Input type": "[[16, 256], [256], []]" and "["float", "float", "Scalar"]".
   types may be NULL: four bytes each. */
struct rp_tensors rp_tensors_read(const char *dims, const char *types);

/* What a chain takes as one kernel: longest_ns of its operators; bytes that it still reads and
   writes; bytes_per_ns of the best of its operators. 0: not known. */
int64_t rp_fused_ns(int64_t longest_ns, double bytes, double bytes_per_ns);

/* ------------------------------------------------------------------ one rank */

enum rp_fusion_kind {
    RP_FUSION_CHAIN,     /* operators one after the other */
    RP_FUSION_OPTIMIZER, /* everything of an optimizer that is not fused */
    RP_FUSION_COMPILED,  /* instructions that XLA left apart */
    RP_FUSION_KINDS
};
extern const char *const rp_fusion_kind_names[RP_FUSION_KINDS];

/* Chains of the same operators on the same sizes. */
struct rp_fusion {
    uint8_t kind;           /* enum rp_fusion_kind */
    uint8_t phase;          /* enum rp_phase */
    bool sized;             /* the sizes of all its operators are known */
    uint64_t key;           /* equal for the same chain of two ranks */
    int64_t count, kernels; /* chains, of an optimizer: steps; kernels of one (of it: of all) */
    int64_t device_ns, fused_ns;
    double elements;
    const char *ops;    /* "add, native_layer_norm" */
    const char *shape;  /* of the largest input of its first operator; NULL: not known */
    const char *line;   /* the frame of the user's code that launches it, or NULL */
    const char *module; /* the module, or NULL */
    const char *reason; /* why a compiler left it apart; NULL: not known */
};

struct rp_fusions_part {
    RP_VEC(struct rp_fusion) fusions;
    int64_t whole_ns;             /* device time */
    int64_t generated_ns;         /* of it, kernels that Inductor or XLA generated */
    int64_t steps;                /* that are counted; 0: not marked */
    const char *not_counted;      /* what lies outside of them; NULL: nothing */
    bool with_shapes, with_stack; /* what was recorded */
    struct rp_recorder recorder;
    bool xla;
    int64_t programs; /* of XLA that were found beside the trace */
    bool modelled;    /* sim is filled */
    bool cut, large;  /* more chains than were looked at; too many events for sim */
    struct rp_sim_part sim;
};

/* Texts are in the arena; the vectors are the caller's, also after a failure. */
enum rp_code rp_fusions_find(const struct rp_trace *trace, const struct rp_scope *scope,
                             const struct rp_category_table *categories, struct rp_arena *arena,
                             struct rp_fusions_part *out, struct rp_err *err);

/* ------------------------------------------------------------------ the answer */

struct rp_fusion_row {
    const char *name, *kind, *phase, *shape, *line, *module, *reason;
    const char *label, *where, *shown_shape, *shown_reason; /* on the screen */
    int64_t count, kernels, device_ns, fused_ns, saved_ns;
    double share; /* saved_ns of all device time */
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
