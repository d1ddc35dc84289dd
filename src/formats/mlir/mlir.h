/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the readers of StableHLO share. There are two forms, text and bytecode, and one builder:
 *
 *   statement.c, scan.c, stablehlo.c      the text: names, types, where a statement ends
 *   bytecode*.c                           the bytecode: tables, types, operations
 *   find.c                                attributes by name, of either form
 *   build.c, region.c, attrs.c, ...       operations, regions and attributes in HLO's terms
 */
#include "base/text.h"
#include "program/program.h"

struct rp_bytecode;

struct rp_mlir_loc {          /* ref: the number of another location + 1 */
    uint32_t name, file, ref; /* ref: the number of another one + 1 */
    int32_t line;
};

/*
 * A region becomes a computation of its own. The operations of a computation are contiguous, so it
 * is read only when the function around it is done.
 */
struct rp_mlir_region {
    const char *at; /* where its content begins; NULL: a reduction by the one operation `applies` */
    uint32_t number;            /* for bytecode: its number among the regions */
    struct rp_slice applies;    /* that operation, such as "stablehlo.add" */
    uint32_t called;            /* index of program.called where its computation is noted */
    uint32_t args, nargs;       /* in mlir.args: the names of its arguments in the statement */
    uint32_t outside, noutside; /* in mlir.args: the values captured from the enclosing function */
    uint32_t element;           /* element shape of a reduction by one operation */
    uint32_t depth;
    bool tuple; /* all arguments come as one tuple */
    bool carry; /* the body of a loop, which also returns what it captured */
};

struct rp_mlir_arg {
    uint32_t key; /* what operands call it: a name in text, a number in bytecode */
    uint32_t name, shape;
    uint32_t op; /* for a captured value: its operation in the enclosing function */
};

/* A call whose shape is known only when its region has been read. */
struct rp_mlir_late {
    uint32_t op, parts; /* get-tuple-elements follow it, if there are several */
};

struct rp_mlir {
    const char *begin, *at, *end;
    struct rp_bytecode *bytecode; /* NULL: it is text */
    struct rp_program *p;
    struct rp_limits limits;
    struct rp_err *err;
    RP_VEC(uint64_t) op_of;       /* from key to computation + 1 and operation */
    RP_VEC(uint32_t) function_of; /* from string to computation + 1 */
    RP_VEC(uint32_t) operands;    /* operands of the statement being read: operation, index */
    RP_VEC(uint32_t) results;     /* keys of its results */
    RP_VEC(uint32_t)
    waiting; /* functions called before they are defined: index of called, string */
    RP_VEC(struct rp_mlir_loc) locs; /* by number + 1 */
    RP_VEC(struct rp_mlir_region) regions;
    RP_VEC(struct rp_mlir_arg) args;
    RP_VEC(struct rp_mlir_arg) outside; /* captured by the statement being read */
    RP_VEC(uint32_t) carried; /* captured values that the region being read has to return */
    RP_VEC(uint32_t) seen;    /* from a key to the last statement that listed it in `outside` */
    RP_VEC(struct rp_mlir_late) late;
    struct rp_chars meshes; /* "{mesh = #sdy.mesh<...>" */
    const char *resources;  /* where the text has its resources; NULL if nobody has looked yet */
    struct rp_map parts;    /* from operation and part to its get-tuple-element */
    struct rp_map origins;  /* from a parameter that stands for a captured value to that value */
    size_t next_region;
    uint32_t statements;
    uint32_t depth; /* depth of the region being read */
};

/* Sets an error at a place of the text, or a byte of the bytecode. */
enum rp_code rp_mlir_fail(const struct rp_mlir *r, const char *where, const char *fmt, ...)
    RP_PRINTF(3, 4);
#define RP_MLIR_FAIL rp_mlir_fail

/* ---- text ---- */

void rp_mlir_space(struct rp_mlir *r); /* skips blanks, line ends and comments */
bool rp_mlir_word_char(char c);
struct rp_slice rp_mlir_word(struct rp_mlir *r);
bool rp_mlir_take_word(struct rp_mlir *r, const char *text);
/* The position after the string at s, or the end of the text. */
const char *rp_mlir_string_end(const struct rp_mlir *r, const char *s);
/* Replaces the escapes of a string, in the program's arena. */
enum rp_code rp_mlir_unescape(struct rp_mlir *r, struct rp_slice *text);
/* The position after the bracket that closes the one at s, or NULL. "->" closes nothing. */
const char *rp_mlir_bracket_end(const struct rp_mlir *r, const char *s);
enum rp_code rp_mlir_skip_bracket(struct rp_mlir *r);

/* The element type of "f32", "i1", "complex<f64>"; RP_ELEM_INVALID for any other text. */
unsigned rp_mlir_elem(const char *s, size_t n);
/* Reads the types in a text: one, or several as a tuple. */
enum rp_code rp_mlir_types(struct rp_mlir *r, const char *s, const char *end, uint32_t *shape);
/* From now on the key means this operation. */
enum rp_code rp_mlir_define(struct rp_mlir *r, uint32_t key, uint32_t op);
/* Puts the operation of a key into r->operands; `numbered`: one of its results. */
enum rp_code rp_mlir_use(struct rp_mlir *r, const char *where, uint32_t key, uint32_t name,
                         bool numbered, uint32_t index);
/* Notes that a region uses this key: if it belongs to the function around it, it goes into
   r->outside. */
enum rp_code rp_mlir_capture(struct rp_mlir *r, uint32_t key, uint32_t name);
/* Reads the name after '%' or '@'. */
enum rp_code rp_mlir_name_at(struct rp_mlir *r, uint32_t *id);
/* Replaces *op, which has several results, by one of them. */
enum rp_code rp_mlir_part(struct rp_mlir *r, const char *where, uint32_t *op, uint32_t index);
/* Reads "%3#1" into r->operands. */
enum rp_code rp_mlir_operand(struct rp_mlir *r);
/* Reads "(%a: type, %b: type)" into r->args. */
enum rp_code rp_mlir_arguments(struct rp_mlir *r);

/* Whether '{' opens a list of attributes: "{}" or "{key = ..." or "{key, ..." */
bool rp_mlir_is_dictionary(const struct rp_mlir *r);
/* Reads statements up to '}'. */
enum rp_code rp_mlir_block(struct rp_mlir *r);

/* Adds an operation that the text does not write, such as a part of a tuple. */
enum rp_code rp_mlir_add_implicit(struct rp_mlir *r, const struct rp_new_op *op,
                                  const uint32_t *operands, size_t n, uint32_t *id);
/* Adds the parameters of the new computation, named as in r->args; `tuple`: as one tuple. */
enum rp_code rp_mlir_parameters(struct rp_mlir *r, size_t first, size_t n, bool tuple);

/* ---- attributes of a statement, for the functions that ask for them (find.c) ---- */

#define RP_MLIR_INTS 128
struct rp_mlir_ints {
    int64_t at[RP_MLIR_INTS];
    size_t n;
};

struct rp_mlir_named { /* of bytecode */
    struct rp_slice name;
    uint64_t value;
};

struct rp_mlir_attrs {
    const char *at, *end; /* the text between the name of the operation and the types */
    struct rp_ids operands;
    const char *region,
        *region_end; /* the text between these does not belong to the statement; NULL: none */
    const struct rp_mlir_named *named; /* of bytecode */
    size_t nnamed,
        nall; /* number of its own attributes; the same with those inside of its dictionaries */
};
/* In text: the position after "key = ", where the key is a whole word; NULL if it is absent. */
const char *rp_mlir_find_key(const struct rp_mlir_attrs *attrs, const char *key);
/* Reads all integers of a text; in "array<i64: ...>" those after the colon. */
void rp_mlir_ints_in(const char *s, const char *end, struct rp_mlir_ints *out);
/* Reads the integers of the first of these keys that is present; the list ends with NULL. */
bool rp_mlir_find_ints(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                       const char *const *keys, struct rp_mlir_ints *out);
/* The first integer of a key, or `absent` if the key is missing. */
int64_t rp_mlir_find_int(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                         const char *key, int64_t absent);
/* Whether the text has "key" or "key = true". */
bool rp_mlir_find_flag(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs, const char *key);
/* The first of these words that occurs as a whole word, or NULL; the list ends with NULL. */
const char *rp_mlir_find_word(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                              const char *const *words);
/* The content of a string; empty for any other value. */
enum rp_code rp_mlir_find_string(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                 const char *key, struct rp_slice *out);
/* A value as it is written, such as "{a = 1 : i32}". */
enum rp_code rp_mlir_find_text(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                               const char *key, struct rp_slice *out);
/* Reads the integers of "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>" and returns the size of the
   last dimension; 0 if it is absent. */
enum rp_code rp_mlir_find_groups(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                 const char *key, struct rp_mlir_ints *out, size_t *each);
/* Finds the labels of a convolution, "b01f_01io->b01f". */
bool rp_mlir_find_labels(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs, char *out,
                         size_t cap);
/* Reads "callee = @f", which the generic form writes as a string; *name stays if there is none. */
enum rp_code rp_mlir_callee(struct rp_mlir *r, const struct rp_mlir_attrs *attrs, uint32_t *name);
/* Reads "called_computations = [@f, @g]", the functions that the newest operation calls. */
enum rp_code rp_mlir_called_list(struct rp_mlir *r, const struct rp_mlir_attrs *attrs);
enum rp_code rp_mlir_add_call(struct rp_mlir *r, uint32_t name);
/* Keeps the attributes of an operation that HLO does not have as text. */
enum rp_code rp_mlir_keep_text(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                               uint32_t operation);

/* ---- operations (build.c) ---- */

struct rp_mlir_statement {
    struct rp_new_op op;
    struct rp_mlir_attrs attrs;
    struct rp_slice applies; /* the operation of a reduction without a region */
    size_t operand;          /* index of its first operand in r->operands */
    size_t region,
        args; /* index of its first region, and of the first argument it names for them */
    uint32_t called, loc; /* strings and numbers; RP_NONE and 0 if there is none */
};
/* The opcode that HLO has for an operation of StableHLO. */
enum rp_code rp_mlir_opcode(struct rp_mlir *r, struct rp_slice name, struct rp_new_op *op);
bool rp_mlir_is_return(struct rp_slice name);
/* Adds the operation; its results are r->results from `results` on; `counted`: one name stands for
   all. */
enum rp_code rp_mlir_add(struct rp_mlir *r, struct rp_mlir_statement *s, struct rp_slice name,
                         size_t results, bool counted);
enum rp_code rp_mlir_begin_function(struct rp_mlir *r, uint32_t name);
/* Resolves calls, locations and meshes, which are known only at the end. */
enum rp_code rp_mlir_finish(struct rp_mlir *r);

/* Adds the attributes that HLO has, too, to the newest operation; *known tells that it needs no
   others. */
enum rp_code rp_mlir_attributes(struct rp_mlir *r, unsigned code, const struct rp_mlir_attrs *attrs,
                                bool *known);
/* Reads the "dims" of a broadcast. */
void rp_mlir_broadcast_dims(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                            struct rp_mlir_ints *out);
/* Translates a broadcast into the shape of op: op's code may change, preceding operations are
   added and *operand is the last of them; *split: some were added, and *rest are the dimensions
   of op. */
enum rp_code rp_mlir_broadcast(struct rp_mlir *r, const struct rp_mlir_ints *dimensions,
                               struct rp_new_op *op, uint32_t *operand, struct rp_mlir_ints *rest,
                               bool *split);
/* Reads "dense<...>", the literal of a constant of op's shape. If a large array has one value for
   all elements, op becomes a broadcast of *scalar, which otherwise is RP_NONE. */
enum rp_code rp_mlir_constant(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                              struct rp_new_op *op, uint32_t *scalar);

/* Adds the layouts of a custom call (layouts.c): those of its results to their shape, those of its
   operands to the newest operation. */
enum rp_code rp_mlir_result_layouts(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                    uint32_t *shape);
enum rp_code rp_mlir_operand_layouts(struct rp_mlir *r, const struct rp_mlir_attrs *attrs);

/* ---- programs of several devices (sharding.c) ---- */

/* Adds groups, channel and ids of a collective to the newest operation. */
enum rp_code rp_mlir_collective(struct rp_mlir *r, unsigned code,
                                const struct rp_mlir_attrs *attrs);
/* Translates an exchange that splits and joins along different dimensions: op becomes a
   concatenation along *joined; otherwise *joined is -1. */
enum rp_code rp_mlir_push_operand(struct rp_mlir *r, uint32_t op); /* its first result */
enum rp_code rp_mlir_all_to_all(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                size_t first_operand, struct rp_new_op *op, int64_t *joined);
/* Adds the operations of a manual computation before op, which joins its results. */
enum rp_code rp_mlir_manual(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                            size_t first_operand, size_t region, size_t args, struct rp_new_op *op);
enum rp_code rp_mlir_manual_attrs(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                  bool results);
enum rp_code rp_mlir_target(struct rp_mlir *r, const char *name); /* a static text */
enum rp_code rp_mlir_set_late(struct rp_mlir *r);
enum rp_code rp_mlir_mesh(struct rp_mlir *r, struct rp_slice name, struct rp_slice mesh);
enum rp_code rp_mlir_module_attrs(struct rp_mlir *r, const struct rp_mlir_attrs *attrs);
enum rp_code rp_mlir_add_meshes(struct rp_mlir *r);
/* Makes the newest operation call the region, with arguments from `args` on. */
enum rp_code rp_mlir_call_region(struct rp_mlir *r, size_t region, size_t args);
/* Reads the arguments that a region names into r->args. */
enum rp_code rp_mlir_region_arguments(struct rp_mlir *r, const struct rp_mlir_region *region);

/* Queues a region to be read later, and sets its depth. */
enum rp_code rp_mlir_queue(struct rp_mlir *r, struct rp_mlir_region region);
/* Queues the region at r->at, '{', and moves past it. */
enum rp_code rp_mlir_queue_region(struct rp_mlir *r);
/* Reads all queued regions, and those nested in them. */
enum rp_code rp_mlir_read_regions(struct rp_mlir *r);
