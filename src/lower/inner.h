/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_LOWER_INNER_H
#define RP_LOWER_INNER_H
/* What the files of lower_tf share: nodes, values on their way, and how instructions are written.
 */
#include "base/hash.h"
#include "base/vec.h"
#include "lower/lower.h"
#include "program/program_builder.h"
#include "program/window.h"

#define LOWER_OUTPUTS 64 /* of one node */

/* A value of the HLO program: the instruction %v<id>, or %root (0), the result of the program. */
struct lower_value {
    uint32_t id;
    unsigned elem;
    uint32_t rank;
    int64_t dims[RP_TF_RANK];
    const int64_t *ints; /* integers whose values are known; or NULL */
    size_t nints;
    bool open; /* a list of dims[0] elements whose shape is not known before one is set */
};

struct lower_node {
    struct rp_bytes message, name, op;
    struct lower_scope *scope;
    struct lower_value *outputs; /* once it is lowered */
    size_t noutputs;
    bool busy;   /* being lowered: met again, it is its own input */
    bool opened; /* its inputs were looked at */
};

/* The graph, or the body of a function that is called. */
struct lower_scope {
    struct lower_scope *caller;
    struct rp_bytes function; /* FunctionDef; empty: the graph */
    const struct lower_value *arguments;
    size_t narguments;
    RP_VEC(struct lower_node) nodes;
    struct rp_map by_name;    /* hash of the name to its node */
    struct lower_scope *next; /* all of them, to be released */
};

/* The operation that computes a value: its index in a computation that is being built. */
struct lower_operation {
    uint32_t computation, index;
};

/* A computation of two scalars, for reductions; see lower_region. */
struct lower_region {
    enum rp_opcode opcode;
    unsigned elem;
    uint32_t computation;
};

struct lower {
    struct rp_arena arena;
    struct rp_bytes library;
    struct lower_scope *scopes;
    struct rp_program_builder builder;
    uint32_t values, depth;
    uint32_t computations, computation;        /* how many were opened; the innermost, from 1 */
    RP_VEC(struct lower_operation) operations; /* by the number of the value */
    RP_VEC(struct lower_region) regions;
    const struct rp_lower_feed *feeds;
    size_t nfeeds;
    char unknown[2048]; /* operators, "A, B" */
    size_t nunknown;
    struct rp_err *err;
};

typedef enum rp_code lower_fn(struct lower *l, const struct lower_node *node,
                              const struct lower_value *in, size_t nin, struct lower_value *out,
                              size_t *nout);

#define LOWER_NO_OPCODE RP_OP_COUNT

struct lower_row {
    const char *op;
    lower_fn *lower;
    enum rp_opcode opcode; /* of the simple ones and of reductions */
    unsigned min;          /* inputs it must have */
};
/* Tables, ended by an op of NULL. */
extern const struct lower_row lower_elementwise[];
extern const struct lower_row lower_arrays[];
extern const struct lower_row lower_math[];
extern const struct lower_row lower_products[];
extern const struct lower_row lower_tables[];
extern const struct lower_row lower_images[];
extern const struct lower_row lower_slices[];
extern const struct lower_row lower_special[];
extern const struct lower_row lower_fused[];
extern const struct lower_row lower_control[];

/* The opcode in the row of the node's operator. */
enum rp_opcode lower_opcode(const struct lower_node *node);

/* A node by the row of its operator, which may be another than the graph's. */
enum rp_code lower_as(struct lower *l, const struct lower_node *node, const struct lower_value *in,
                      size_t nin, struct lower_value *out, size_t *nout);

/* The function that an attribute of the node names, over these values: lowered in place. Nothing is
   known of their integers there. */
enum rp_code lower_call(struct lower *l, const struct lower_node *node, const char *attr,
                        const struct lower_value *in, size_t nin, struct lower_value *out,
                        size_t *nout);

/* ---- constants ---- */

enum rp_code lower_constant(struct lower *l, const struct lower_node *node,
                            struct lower_value *out);
/* Keeps the integers of a value, where they may be wanted as a shape. */
void lower_know_ints(struct lower *l, const struct rp_tf_value *v, struct lower_value *out);

/* ---- attributes ---- */

struct rp_bytes lower_attr_tensor(const struct lower_node *node, const char *key); /* TensorProto */

struct rp_bytes lower_attr(const struct lower_node *node, const char *key); /* AttrValue */
int64_t lower_attr_int(const struct lower_node *node, const char *key, int64_t missing);
bool lower_attr_bool(const struct lower_node *node, const char *key);
float lower_attr_float(const struct lower_node *node, const char *key, float missing);
unsigned lower_attr_elem(const struct lower_node *node, const char *key);
struct rp_bytes lower_attr_text(const struct lower_node *node, const char *key);
/* A list of integers; how many were stored, at most cap. */
size_t lower_attr_ints(const struct lower_node *node, const char *key, int64_t *out, size_t cap);
/* One of a list of texts; at is NULL after the last. */
struct rp_bytes lower_attr_nth_text(const struct lower_node *node, const char *key, size_t i);
bool lower_attr_is(const struct lower_node *node, const char *key, const char *text);

/* ---- instructions ---- */

int64_t lower_elements(const struct lower_value *v);
/* A value of that type and shape, without an instruction yet. */
struct lower_value lower_like(struct lower *l, unsigned elem, const int64_t *dims, size_t rank);
/* Instructions added from now on belong to a new computation, until it is closed or discarded. The
   result is handed back then: the computation that goes on. */
uint32_t lower_open(struct lower *l);
uint32_t lower_close(struct lower *l, const char *name, const struct lower_value *root,
                     uint32_t outer); /* id of the computation */
void lower_discard(struct lower *l, uint32_t outer);

/* The instruction of a value. Its operands, called computations and attributes follow. */
void lower_begin(struct lower *l, const struct lower_value *out, enum rp_opcode opcode);
/* The same, where the value is a tuple; that of a parameter is number 0. */
void lower_begin_tuple(struct lower *l, const struct lower_value *out, enum rp_opcode opcode,
                       const struct lower_value *parts, size_t n);
void lower_operand(struct lower *l, const struct lower_value *v);
void lower_calls(struct lower *l, uint32_t computation);
void lower_set(struct lower *l, struct rp_attr attr);
void lower_set_int(struct lower *l, uint32_t key, int64_t value);
void lower_set_ints(struct lower *l, uint32_t key, const int64_t *at, size_t n);
/* Low, high and interior padding of each dimension. */
void lower_set_padding(struct lower *l, const int64_t *at, size_t rank);
/* A window of one element in every dimension, to be changed; at most RP_WINDOW_DIMS. */
struct rp_window lower_window(size_t rank);
void lower_set_window(struct lower *l, const struct rp_window *window);

/* Whole instructions. */
struct lower_value lower_parameter(struct lower *l, unsigned elem, const int64_t *dims, size_t rank,
                                   size_t number);
/* get-tuple-element */
void lower_part(struct lower *l, const struct lower_value *out, const struct lower_value *tuple,
                size_t index);
/* A constant of these elements, little-endian and row-major; borrowed. */
void lower_literal(struct lower *l, const struct lower_value *out, const void *elements,
                   size_t bytes);
/* The same of integers, converted to the type of the value. */
void lower_integers(struct lower *l, const struct lower_value *out, const int64_t *at, size_t n);
struct lower_value lower_unary(struct lower *l, enum rp_opcode opcode, const struct lower_value *a);
struct lower_value lower_binary(struct lower *l, enum rp_opcode opcode, const struct lower_value *a,
                                const struct lower_value *b); /* of equal shapes */
struct lower_value lower_compare(struct lower *l, const char *direction,
                                 const struct lower_value *a, const struct lower_value *b);
struct lower_value lower_select(struct lower *l, const struct lower_value *pred,
                                const struct lower_value *yes, const struct lower_value *no);
struct lower_value lower_scalar(struct lower *l, unsigned elem, double value);
/* The scalar in every element of a shape like `like`. */
struct lower_value lower_fill(struct lower *l, double value, const struct lower_value *like);
struct lower_value lower_reshape(struct lower *l, const struct lower_value *a, const int64_t *dims,
                                 size_t rank);
struct lower_value lower_convert(struct lower *l, const struct lower_value *a, unsigned elem);
/* Dimension i of a becomes dimension map[i] of the result. */
struct lower_value lower_spread(struct lower *l, const struct lower_value *a, const int64_t *map,
                                const int64_t *dims, size_t rank);
struct lower_value lower_conjugate(struct lower *l, const struct lower_value *a); /* real: itself */
struct lower_value lower_permute(struct lower *l, const struct lower_value *a, const int64_t *perm);
/* The computation of a reduction, %add_f32; built once per type, as the next two. Its id. */
uint32_t lower_region(struct lower *l, enum rp_opcode opcode, unsigned elem);
/* %last_f32, which returns its second argument: a scatter that overwrites. */
uint32_t lower_region_last(struct lower *l, unsigned elem);
/* %ge_f32: whether the first is at least the second. */
uint32_t lower_region_ge(struct lower *l, unsigned elem);
/* Reduces some dimensions, which are removed, by an opcode such as RP_OP_ADD. */
struct lower_value lower_reduce(struct lower *l, enum rp_opcode opcode, const struct lower_value *a,
                                const bool *over);
/* Arrays next to each other along an axis; RP_UNSUPPORTED where other dimensions differ. */
enum rp_code lower_join(struct lower *l, const struct lower_node *node,
                        const struct lower_value *in, size_t n, size_t axis,
                        struct lower_value *out);
/* As NumPy broadcasts: to dims, right-aligned. */
struct lower_value lower_broadcast(struct lower *l, const struct lower_value *a,
                                   const int64_t *dims, size_t rank);
/* Both to their common shape; false if there is none. */
bool lower_broadcast_both(struct lower *l, struct lower_value *a, struct lower_value *b);

/* RP_UNSUPPORTED: "operator 'X' of node 'y': ..." */
enum rp_code lower_refuse(struct lower *l, const struct lower_node *node, const char *why);
/* RP_FORMAT, in the same words: no engine could run it. */
enum rp_code lower_misfit(struct lower *l, const struct lower_node *node, const char *why);
/* The integers that an input must be known to have. */
enum rp_code lower_need_ints(struct lower *l, const struct lower_node *node,
                             const struct lower_value *v, const char *what);
/* An axis of `rank` dimensions, from the end where it is negative; false if there is none. */
bool lower_axis(int64_t axis, size_t rank, size_t *out);

#endif
