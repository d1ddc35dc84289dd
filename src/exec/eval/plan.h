/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A program that is ready to be evaluated: shapes are opened, attributes parsed, every operation
 * has its kernel, and it is known after which node each value is no longer needed. A plan is
 * immutable and shared by the threads of several partitions. `ref` and `fast` both build plans;
 * they differ in the kernels.
 */
#include "base/arena.h"
#include "exec/data/tensor.h"

struct rp_eval;
struct rp_plan;
struct rp_node;
struct rp_op_spans;
struct rp_engine_options;

struct rp_value_shape {
    uint8_t elem;
    bool dynamic;
    uint32_t rank, nparts;
    const int64_t *dims;
    const uint32_t *order; /* minor to major; NULL if row-major */
    const struct rp_value_shape *const *parts;
    size_t n; /* elements */
};

static inline bool rp_shape_same_dims(const struct rp_value_shape *a,
                                      const struct rp_value_shape *b)
{
    return rp_dims_same(a->dims, a->rank, b->dims, b->rank);
}

/* Declares or defines a function that reads the attributes of a node into node->attrs;
   RP_UNSUPPORTED if it cannot be run. */
#define RP_PREPARE(name)                                                    \
    enum rp_code name(RP_UNUSED struct rp_plan *plan, struct rp_node *node, \
                      RP_UNUSED struct rp_err *err)
typedef RP_PREPARE(rp_prepare_fn);

/* Declares or defines a kernel. in: node->nin borrowed values; *out gets a new use. Most kernels
   need only some of the parameters. */
#define RP_KERNEL(name)                                                                  \
    enum rp_code name(RP_UNUSED struct rp_eval *e, RP_UNUSED const struct rp_node *node, \
                      RP_UNUSED struct rp_tensor *const *in, struct rp_tensor **out,     \
                      RP_UNUSED struct rp_err *err)
typedef RP_KERNEL(rp_kernel_fn);

struct rp_kernel {
    uint16_t code;          /* enum rp_opcode */
    rp_prepare_fn *prepare; /* or NULL */
    rp_kernel_fn *run;
};

struct rp_node {
    const struct rp_kernel *kernel;
    rp_kernel_fn *run;
    uint32_t op, code;
    const char *name, *opcode;
    const struct rp_value_shape *shape;
    uint32_t nin, ncalled, ndead;
    const uint32_t *in; /* nodes of the same graph */
    struct rp_graph **called;
    const uint32_t *dead; /* nodes whose value is no longer needed after this one */
    int64_t value;        /* parameter number, tuple index */
    void *attrs;          /* attributes for the kernel; in the plan's arena */
    bool skip;            /* the value is made elsewhere, or not needed */
    bool takes_unaligned; /* its kernel reads arrays at any address (exec/data/tensor.h) */
    bool takes_part;      /* get-tuple-element: nobody reads this part of the tuple afterwards */
    uint8_t invariant;    /* enum rp_invariant, in the body of a loop */
    bool same_second;     /* in a loop: it varies, but its second operand does not */
    bool by_bits;         /* like XLA: a comparison that does not flush subnormal numbers */
    bool untimed;         /* added by an engine: its time belongs to the nodes inside */
    uint8_t into; /* in a block of rows: the number of the output that it is, from 1; 0: none */
    struct rp_caller *caller; /* for a node that replaces a call, or NULL */
};

/* What a loop's body computes anew in every iteration. */
enum rp_invariant {
    RP_VARIES,
    RP_INVARIANT,      /* the same each time, and read only by such nodes */
    RP_INVARIANT_KEPT, /* the same each time, and kept from the first iteration on */
};

/* The call in which a node was written, and the call around that. */
struct rp_caller {
    uint32_t op;
    struct rp_caller *up;
    const struct rp_node
        *last;              /* the last node of the call; when it has run, the call is counted */
    struct rp_caller *copy; /* while planning: the copy made for call number `copied` */
    uint32_t copied;
};

/* Reports an operation that cannot be run, and why, in words that do not name it. */
typedef void rp_refused_fn(void *user, uint32_t op, const char *why);

struct rp_graph {
    uint32_t computation;
    uint32_t n, root, nparams;
    struct rp_node *nodes;
    struct rp_tape *tape; /* for `fast`: the condition of a loop, if it reads only scalars */
    bool deep;            /* its calls were replaced many levels deep, so calls of it stay */
    bool refused;         /* rp_plan_check: an operation in it, or below it, cannot be run */
};

struct rp_plan {
    const struct rp_program *program;
    struct rp_arena arena;
    const struct rp_value_shape *const *shapes; /* by shape of the program; NULL: not used */
    struct rp_graph *graphs;                    /* of every computation */
    struct rp_graph *entry;
    const struct rp_kernel *const *kernels;   /* by opcode; NULL: not known */
    const struct rp_kernel *const *reference; /* for `fast`: the kernels of `ref` for the rest */
    const struct rp_blas *blas;               /* for `fast`: a matrix library, or NULL */
    unsigned partitions, replicas;
    bool tf32;              /* products of f32 are computed like on GPUs */
    bool tf32_convolutions; /* also convolutions (vary.h) */
    bool like_xla;          /* plan_unrounded.c */
    bool varies;            /* narrow results are moved, so every rounding must exist */
    rp_refused_fn *refused; /* callback of rp_plan_check, else NULL */
    void *refused_user;
    struct rp_plan_code *code; /* for `fast`: machine code, which rp_plan_free unmaps */
};

struct rp_plan_code {
    struct rp_plan_code *next;
    void *at;
    size_t bytes;
};

/* kernels has RP_OP_COUNT entries. */
enum rp_code rp_plan_new(const struct rp_program *program, const struct rp_kernel *const *kernels,
                         const struct rp_engine_options *options, struct rp_plan **out,
                         struct rp_err *err);
void rp_plan_free(struct rp_plan *plan); /* NULL is fine */

/* Reports every operation that the entry reaches and that cannot be run, whereas rp_plan_new stops
   at the first; operations that call one of them are not examined. Returns RP_OK also if there are
   some. */
enum rp_code rp_plan_check(const struct rp_program *program, const struct rp_kernel *const *kernels,
                           rp_refused_fn *refused, void *user, struct rp_err *err);

/* Finds again which values end where, after operands were changed. */
enum rp_code rp_plan_lifetimes(struct rp_plan *plan, struct rp_graph *g, struct rp_err *err);

/* Makes bf16 results in f32 if they are only wanted in f32, and follows XLA in other such cases if
   the plan is to be like XLA (plan_unrounded.c). To be called before preparing. */
enum rp_code rp_plan_unrounded(struct rp_plan *plan, struct rp_err *err);
/* Whether integers of four bits are computed in eight, because they are only wanted in eight. */
bool rp_plan_widens(const struct rp_plan *plan, unsigned from, unsigned to);

/* Checks that the declared shapes of operands and result fit each other (plan_shapes.c); RP_FORMAT
   if not. To be called before preparing, because kernels rely on it. */
enum rp_code rp_node_check_shapes(struct rp_plan *plan, const struct rp_node *node,
                                  struct rp_err *err);
/* Returns RP_FORMAT unless a shape is an array of this type (RP_ELEM_INVALID: any) and these
   dimensions. */
enum rp_code rp_node_expect(const struct rp_node *node, const char *what,
                            const struct rp_value_shape *is, unsigned elem, const int64_t *dims,
                            size_t rank, struct rp_err *err);
/* The number of places of a window along a dimension of that size; -1 if it is malformed or too
   large. */
int64_t rp_window_result(const struct rp_window_dim *d, int64_t size);

const struct rp_value_shape *rp_node_operand(const struct rp_plan *plan, const struct rp_node *node,
                                             size_t i);
/* Returns the shape of result i, of which a node without a tuple has one. */
static inline const struct rp_value_shape *rp_node_part(const struct rp_node *node, size_t i)
{
    return node->shape->elem == RP_ELEM_TUPLE ? node->shape->parts[i] : node->shape;
}

/* ---- attributes ---- */

const struct rp_attr *rp_node_attr(const struct rp_plan *plan, const struct rp_node *node,
                                   unsigned key);
/* Reads a list of integers; if it is absent, there are none. Values must be in 0 .. below - 1 and
   differ (negative below: any). */
enum rp_code rp_node_ints(struct rp_plan *plan, const struct rp_node *node, unsigned key,
                          int64_t below, const int64_t **at, size_t *n, struct rp_err *err);
int64_t rp_node_int(const struct rp_plan *plan, const struct rp_node *node, unsigned key,
                    int64_t absent);
bool rp_node_flag(const struct rp_plan *plan, const struct rp_node *node, unsigned key);
/* Whether the attribute is that word, ignoring quotes. */
bool rp_node_word(const struct rp_plan *plan, const struct rp_node *node, unsigned key,
                  const char *word);
/* Sets an error, RP_UNSUPPORTED or RP_FORMAT, with the operation's name. */
enum rp_code rp_node_error(const struct rp_node *node, enum rp_code code, struct rp_err *err,
                           const char *fmt, ...) RP_PRINTF(4, 5);
#define RP_NODE_NEW(plan, type) RP_ARENA_NEW(&(plan)->arena, type, 1)

/* ---- running ---- */

struct rp_eval {
    const struct rp_plan *plan;
    unsigned partition;
    struct rp_mesh *mesh; /* for several partitions, or NULL */
    struct rp_pool *pool; /* or NULL: one thread */
    int64_t *times;       /* time of each operation of the program, or NULL */
    uint64_t *calls;
    struct rp_op_spans *spans; /* (engines.h) what ran when, or NULL */
    uint64_t random;           /* state of `rng` */
    uint64_t vary;             /* state for moving narrow results (vary.h); 0: none */
    bool backward;             /* the order of sums whose terms cancel */
    unsigned depth;
    int64_t deadline_ns; /* deadline of the run, by rp_clock_ns; 0: none */
    int64_t timeout_ns;
    /* For the running node, in a loop: a value that it can keep for the next iteration (a packed
       operand). NULL: not in a loop, or nothing to keep. */
    struct rp_tensor **memo;
    struct rp_tensor *const *into; /* in a block of rows: where its outputs go, or NULL */
};

/* args: nparams borrowed values. */
enum rp_code rp_eval_graph(struct rp_eval *e, const struct rp_graph *graph,
                           struct rp_tensor *const *args, struct rp_tensor **out,
                           struct rp_err *err);

/* Returns RP_IO once the run has taken longer than it may; called between operations and
   iterations. */
enum rp_code rp_eval_on_time(const struct rp_eval *e, struct rp_err *err);

/* Whether the value of this operand of `node` is no longer needed after it. */
bool rp_node_ends(const struct rp_node *node, uint32_t value);

/* Returns RP_FORMAT if a value does not have the declared shape of the node. */
enum rp_code rp_node_check_result(const struct rp_node *node, const struct rp_tensor *t,
                                  struct rp_err *err);
/* Whether this is an array of elements with a known size. */
bool rp_shape_is_array(const struct rp_value_shape *shape);

/* Makes a new array of the node's shape, which is not a tuple. */
enum rp_code rp_node_result(const struct rp_node *node, struct rp_tensor **out, struct rp_err *err);
enum rp_code rp_shape_tensor(const struct rp_value_shape *shape, struct rp_tensor **out,
                             struct rp_err *err);
/* Makes the node's value of its parts, which are taken over: a tuple, or the only part. */
enum rp_code rp_node_give(const struct rp_node *node, struct rp_tensors *parts,
                          struct rp_tensor **out, struct rp_err *err);

/* Copies n items to the arena of the plan; NULL if memory ran out. */
void *rp_plan_copy(struct rp_plan *plan, const void *from, size_t n, size_t size);

RP_PREPARE(rp_while_prepare);
/* Structure and control flow; ends with a row without `run`. */
extern const struct rp_kernel rp_kernels_control[];
/* The result is the first operand. */
RP_KERNEL(rp_kernel_same);
