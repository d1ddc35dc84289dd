/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Declarations that the files of this room share: nodes, values, and functions that build
   instructions. */
#include "base/hash.h"
#include "base/vec.h"
#include "lower/lower.h"
#include "program/opcodes.h"
#include "program/program_builder.h"
#include "program/window.h"

#define RP_LOWER_OUTPUTS 64 /* of one node */

/* A value of the HLO program: the instruction %v<id>, or %root (0), the result of the program. */
struct rp_lower_value {
    uint32_t id;
    unsigned elem;
    uint32_t rank;
    int64_t dims[RP_TF_RANK];
    const int64_t *ints; /* known values of integers or booleans, or NULL */
    size_t nints;
    uint32_t
        guard; /* the value exists only if a condition holds: number of rp_lower.guards, from 1 */
    bool open; /* a list of dims[0] elements whose shape is not known before an element is set */
};

struct rp_lower_node {
    struct rp_bytes message, name, op;
    struct rp_lower_scope *scope;
    struct rp_lower_value *outputs; /* once it is lowered */
    size_t noutputs;
    uint32_t carried; /* which value of a loop it is a part of (frames.c), from 1 */
    bool busy;        /* it is being lowered: if it is met again, it is its own input */
    bool opened;      /* its inputs were already visited */
};

/* A value that enters a loop of TensorFlow's version 1, where it is changed or only read. */
struct rp_lower_carried {
    struct rp_bytes frame;                             /* the name of the loop */
    struct rp_lower_node *enter, *merge, *side, *exit; /* NULL: it has none */
    struct rp_bytes next;                              /* what it becomes */
};

/* The graph, the body of a function that is called, or a part of a loop. */
struct rp_lower_scope {
    struct rp_bytes function;    /* a FunctionDef; empty for the graph */
    struct rp_lower_scope *base; /* of a loop: from where its nodes are copied as they are met */
    const struct rp_lower_value *arguments;
    size_t narguments;
    RP_VEC(struct rp_lower_node *) nodes;
    struct rp_map by_name;            /* from hash of the name to its node */
    struct rp_lower_carried *carried; /* those of one loop beside each other; NULL: not yet known */
    size_t ncarried;
    struct rp_lower_scope *next; /* links all scopes, so that they can be released */
};

/* The operation that computes a value, as its index in a computation that is being built. */
struct rp_lower_operation {
    uint32_t computation, index;
};

/* A computation of two scalars, for reductions; see rp_lower_region. */
struct rp_lower_region {
    enum rp_opcode opcode;
    unsigned elem;
    uint32_t computation;
};

/* Values on one side of a switch have the guard of its number. */
struct rp_lower_guard {
    struct rp_lower_value which; /* a scalar */
    int64_t side;
    uint32_t up, depth; /* the guard around it, or 0 */
};

struct rp_lower {
    struct rp_arena arena;
    struct rp_bytes library;
    struct rp_lower_scope *scopes;
    struct rp_program_builder builder;
    uint32_t values, depth, copies;
    uint32_t computations, computation; /* how many were opened, and the innermost one, from 1 */
    RP_VEC(struct rp_lower_operation) operations; /* by the number of the value */
    RP_VEC(struct rp_lower_region) regions;
    RP_VEC(struct rp_lower_guard) guards;
    bool guarded;                       /* the graph may have switches */
    struct rp_lower_computed *computed; /* or NULL */
    struct rp_lower_value wanted;       /* that computed->wanted means */
    const struct rp_lower_feed *feeds;
    size_t nfeeds;
    char unknown[2048]; /* operators, "A, B" */
    size_t nunknown;
    enum rp_code failed; /* a node was not copied */
    struct rp_err *err;
};

typedef enum rp_code rp_lower_fn(struct rp_lower *l, const struct rp_lower_node *node,
                                 const struct rp_lower_value *in, size_t nin,
                                 struct rp_lower_value *out, size_t *nout);

/* Defines a function lower_<name>; most use only some of the parameters. */
#define RP_LOWER(name)                                                                      \
    static enum rp_code lower_##name(RP_UNUSED struct rp_lower *l,                          \
                                     RP_UNUSED const struct rp_lower_node *node,            \
                                     const struct rp_lower_value *in, RP_UNUSED size_t nin, \
                                     struct rp_lower_value *out, RP_UNUSED size_t *nout)

#define RP_LOWER_NO_OPCODE RP_OP_COUNT

struct rp_lower_row {
    const char *op;
    rp_lower_fn *lower;
    enum rp_opcode opcode; /* of simple operators and reductions */
    unsigned min;          /* inputs it must have */
};
/* Tables, which end with an op of NULL. */
extern const struct rp_lower_row rp_lower_elementwise[];
extern const struct rp_lower_row rp_lower_arrays[];
extern const struct rp_lower_row rp_lower_math[];
extern const struct rp_lower_row rp_lower_products[];
extern const struct rp_lower_row rp_lower_tables[];
extern const struct rp_lower_row rp_lower_images[];
extern const struct rp_lower_row rp_lower_slices[];
extern const struct rp_lower_row rp_lower_spectral[];
extern const struct rp_lower_row rp_lower_special[];
extern const struct rp_lower_row rp_lower_inverses[];
extern const struct rp_lower_row rp_lower_fused[];
extern const struct rp_lower_row rp_lower_control[];
extern const struct rp_lower_row *const rp_lower_rows[]; /* all of these, and then NULL */

/* Returns the opcode in the row of the node's operator. */
enum rp_opcode rp_lower_opcode(const struct rp_lower_node *node);

/* Lowers a node by the row of node->op, which may differ from the operator in the graph. */
enum rp_code rp_lower_as(struct rp_lower *l, const struct rp_lower_node *node,
                         const struct rp_lower_value *in, size_t nin, struct rp_lower_value *out,
                         size_t *nout);

/* Lowers in place the function that an attribute of the node names, over these values. The function
   does not know their integers. */
enum rp_code rp_lower_call(struct rp_lower *l, const struct rp_lower_node *node, const char *attr,
                           const struct rp_lower_value *in, size_t nin, struct rp_lower_value *out,
                           size_t *nout);

/* ---- nodes and loops ---- */

bool rp_lower_same(struct rp_bytes a, struct rp_bytes b);
bool rp_lower_is(const struct rp_lower_node *node, const char *op);
/* NULL: there is none of that name. */
struct rp_lower_node *rp_lower_find_node(struct rp_lower *l, struct rp_lower_scope *scope,
                                         struct rp_bytes name);
/* Returns the name of the node of a tensor, "x" of "x:1". */
struct rp_bytes rp_lower_node_name(struct rp_bytes tensor);
/* Returns the text of an input; empty if there are not so many. */
struct rp_bytes rp_lower_input(const struct rp_lower_node *node, size_t i);
/* Lowers the node of a tensor and all that it needs. */
enum rp_code rp_lower_tensor(struct rp_lower *l, struct rp_lower_scope *scope, struct rp_bytes text,
                             struct rp_lower_value *out);
enum rp_code rp_lower_set_outputs(struct rp_lower *l, struct rp_lower_node *node,
                                  const struct rp_lower_value *out, size_t n);
struct rp_lower_scope *rp_lower_new_scope(struct rp_lower *l);
uint32_t rp_lower_deeper(const struct rp_lower *l, uint32_t a, uint32_t b); /* of two guards */

/* Lowers the condition of a loop, or its body, over the values v, in the innermost computation;
   `made` has room for n values and for RP_LOWER_OUTPUTS. */
typedef enum rp_code rp_lower_part_fn(struct rp_lower *l, const struct rp_lower_node *node,
                                      const void *of, bool body, struct rp_lower_value *v, size_t n,
                                      struct rp_lower_value *made, size_t *nmade);
/* Replaces `state` by what a loop over it leaves. */
enum rp_code rp_lower_repeat(struct rp_lower *l, const struct rp_lower_node *node,
                             rp_lower_part_fn *part, const void *of, struct rp_lower_value *state,
                             size_t n);
bool rp_lower_leaves(const struct rp_lower_node *node); /* it is an Exit */
/* Lowers the loop that an Exit leaves; other nodes of its kind have their outputs then, too. */
enum rp_code rp_lower_exit(struct rp_lower *l, struct rp_lower_node *node,
                           struct rp_lower_value *out);
/* Returns the values of the loop that an Exit leaves; n is 0 if it leaves none. */
enum rp_code rp_lower_loop_of(struct rp_lower *l, const struct rp_lower_node *exit,
                              const struct rp_lower_carried **out, size_t *n);

/* ---- constants ---- */

enum rp_code rp_lower_constant(struct rp_lower *l, const struct rp_lower_node *node,
                               struct rp_lower_value *out);
/* Keeps the integers (or booleans, as 0 and 1) of a value that may be used as a shape. */
void rp_lower_know_ints(struct rp_lower *l, const struct rp_tf_value *v, size_t most,
                        struct rp_lower_value *out);
#define RP_LOWER_KNOWN 4096 /* integers of a shape or of a list of axes are few */

/* ---- attributes ---- */

struct rp_bytes rp_lower_attr_tensor(const struct rp_lower_node *node,
                                     const char *key); /* TensorProto */

struct rp_bytes rp_lower_attr(const struct rp_lower_node *node, const char *key); /* AttrValue */
int64_t rp_lower_attr_int(const struct rp_lower_node *node, const char *key, int64_t missing);
bool rp_lower_attr_bool(const struct rp_lower_node *node, const char *key);
float rp_lower_attr_float(const struct rp_lower_node *node, const char *key, float missing);
unsigned rp_lower_attr_elem(const struct rp_lower_node *node, const char *key);
struct rp_bytes rp_lower_attr_text(const struct rp_lower_node *node, const char *key);
/* Reads a list of integers; returns how many were stored, at most cap. */
size_t rp_lower_attr_ints(const struct rp_lower_node *node, const char *key, int64_t *out,
                          size_t cap);
/* Returns one of a list of texts; at is NULL after the last. */
struct rp_bytes rp_lower_attr_nth_text(const struct rp_lower_node *node, const char *key, size_t i);
bool rp_lower_attr_is(const struct rp_lower_node *node, const char *key, const char *text);

/* ---- instructions ---- */

int64_t rp_lower_elements(const struct rp_lower_value *v);
/* Makes a value of that type and shape, without an instruction so far. */
struct rp_lower_value rp_lower_like(struct rp_lower *l, unsigned elem, const int64_t *dims,
                                    size_t rank);
/* Opens a computation, to which instructions are added from now on until it is closed or discarded.
   The result, the enclosing computation, must be passed to the function that does so. */
uint32_t rp_lower_open(struct rp_lower *l);
uint32_t rp_lower_close(struct rp_lower *l, const char *name, const struct rp_lower_value *root,
                        uint32_t outer); /* id of the computation */
void rp_lower_discard(struct rp_lower *l, uint32_t outer);

/* Adds the instruction of a value. Its operands, called computations and attributes follow. */
void rp_lower_begin(struct rp_lower *l, const struct rp_lower_value *out, enum rp_opcode opcode);
/* Does the same for a tuple; as a parameter it has number 0. */
void rp_lower_begin_tuple(struct rp_lower *l, const struct rp_lower_value *out,
                          enum rp_opcode opcode, const struct rp_lower_value *parts, size_t n);
void rp_lower_operand(struct rp_lower *l, const struct rp_lower_value *v);
void rp_lower_calls(struct rp_lower *l, uint32_t computation);
void rp_lower_set(struct rp_lower *l, struct rp_attr attr);
void rp_lower_set_int(struct rp_lower *l, uint32_t key, int64_t value);
void rp_lower_set_ints(struct rp_lower *l, uint32_t key, const int64_t *at, size_t n);
/* Sets low, high and interior padding of each dimension. */
void rp_lower_set_padding(struct rp_lower *l, const int64_t *at, size_t rank);
/* Returns a window of one element in every dimension, which can then be changed; at most
   RP_WINDOW_DIMS. */
struct rp_window rp_lower_window(size_t rank);
void rp_lower_set_window(struct rp_lower *l, const struct rp_window *window);

/* These make complete instructions. */
struct rp_lower_value rp_lower_parameter(struct rp_lower *l, unsigned elem, const int64_t *dims,
                                         size_t rank, size_t number);
/* get-tuple-element */
void rp_lower_part(struct rp_lower *l, const struct rp_lower_value *out,
                   const struct rp_lower_value *tuple, size_t index);
/* A constant of these elements, which are little-endian, row-major and borrowed. */
void rp_lower_literal(struct rp_lower *l, const struct rp_lower_value *out, const void *elements,
                      size_t bytes);
/* A constant of integers, converted to the type of the value. */
void rp_lower_integers(struct rp_lower *l, const struct rp_lower_value *out, const int64_t *at,
                       size_t n);
struct rp_lower_value rp_lower_unary(struct rp_lower *l, enum rp_opcode opcode,
                                     const struct rp_lower_value *a);
struct rp_lower_value rp_lower_binary(struct rp_lower *l, enum rp_opcode opcode,
                                      const struct rp_lower_value *a,
                                      const struct rp_lower_value *b); /* of equal shapes */
struct rp_lower_value rp_lower_compare(struct rp_lower *l, const char *direction,
                                       const struct rp_lower_value *a,
                                       const struct rp_lower_value *b);
struct rp_lower_value rp_lower_select(struct rp_lower *l, const struct rp_lower_value *pred,
                                      const struct rp_lower_value *yes,
                                      const struct rp_lower_value *no);
struct rp_lower_value rp_lower_scalar(struct rp_lower *l, unsigned elem, double value);
/* Fills a shape like `like` with a scalar. */
struct rp_lower_value rp_lower_fill(struct rp_lower *l, double value,
                                    const struct rp_lower_value *like);
struct rp_lower_value rp_lower_reshape(struct rp_lower *l, const struct rp_lower_value *a,
                                       const int64_t *dims, size_t rank);
struct rp_lower_value rp_lower_convert(struct rp_lower *l, const struct rp_lower_value *a,
                                       unsigned elem);
/* Dimension i of a becomes dimension map[i] of the result. */
struct rp_lower_value rp_lower_spread(struct rp_lower *l, const struct rp_lower_value *a,
                                      const int64_t *map, const int64_t *dims, size_t rank);
struct rp_lower_value rp_lower_conjugate(struct rp_lower *l,
                                         const struct rp_lower_value *a); /* real: itself */
struct rp_lower_value rp_lower_permute(struct rp_lower *l, const struct rp_lower_value *a,
                                       const int64_t *perm);
/* Returns the id of the computation of a reduction, %add_f32; it is built once per type, like the
   next two. */
uint32_t rp_lower_region(struct rp_lower *l, enum rp_opcode opcode, unsigned elem);
/* %last_f32 returns its second argument, for a scatter that overwrites. */
uint32_t rp_lower_region_last(struct rp_lower *l, unsigned elem);
/* %ge_f32 tells whether the first is at least the second. */
uint32_t rp_lower_region_ge(struct rp_lower *l, unsigned elem);
/* The elements from `from` to `to` in every dimension. */
struct rp_lower_value rp_lower_cut(struct rp_lower *l, const struct rp_lower_value *a,
                                   const int64_t *from, const int64_t *to, const int64_t *step);
/* Reduces some dimensions, which disappear, by an opcode such as RP_OP_ADD. */
struct rp_lower_value rp_lower_reduce(struct rp_lower *l, enum rp_opcode opcode,
                                      const struct rp_lower_value *a, const bool *over);
/* Joins arrays along an axis; RP_UNSUPPORTED if other dimensions differ. */
enum rp_code rp_lower_join(struct rp_lower *l, const struct rp_lower_node *node,
                           const struct rp_lower_value *in, size_t n, size_t axis,
                           struct rp_lower_value *out);
/* Broadcasts to dims as NumPy does, right-aligned. */
struct rp_lower_value rp_lower_broadcast(struct rp_lower *l, const struct rp_lower_value *a,
                                         const int64_t *dims, size_t rank);
/* Broadcasts both to their common shape; false if there is none. */
bool rp_lower_broadcast_both(struct rp_lower *l, struct rp_lower_value *a,
                             struct rp_lower_value *b);

/* Returns RP_UNSUPPORTED: "operator 'X' of node 'y': ..." */
enum rp_code rp_lower_refuse(struct rp_lower *l, const struct rp_lower_node *node, const char *why);
/* Returns RP_FORMAT with the same wording, because no engine can run the graph. */
enum rp_code rp_lower_misfit(struct rp_lower *l, const struct rp_lower_node *node, const char *why);
/* RP_UNSUPPORTED if the integers of an input are not known; `what` names them. They may be
   computed: then they are known when the graph is lowered again. */
enum rp_code rp_lower_need_ints(struct rp_lower *l, const struct rp_lower_node *node,
                                const struct rp_lower_value *v, const char *what);
/* Finds an axis of `rank` dimensions, which counts from the end if it is negative; false if there
   is none. */
bool rp_lower_axis(int64_t axis, size_t rank, size_t *out);
