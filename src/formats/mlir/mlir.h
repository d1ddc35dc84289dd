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

struct rp_mlir_loc {          /* the location that "#loc12" names */
    uint32_t name, file, ref; /* ref: the number of another one + 1 */
    int32_t line;
};

/*
 * A region becomes a computation of its own. The operations of a computation are contiguous, so it
 * is read only when the function around it is done.
 */
struct rp_mlir_region {
    const char *at;             /* where its content begins; NULL: the reduction by one operation */
    uint32_t number;            /* of bytecode: of its regions */
    struct rp_slice applies;    /* ... that one: "stablehlo.add" */
    uint32_t called;            /* index of program.called to be set to it */
    uint32_t args, nargs;       /* of mlir.args: names of its arguments in the statement */
    uint32_t outside, noutside; /* of mlir.args: values captured from the enclosing function */
    uint32_t element;           /* shape; of a reduction by one operation */
    uint32_t depth;
    bool tuple; /* all arguments come as one */
    bool carry; /* the body of a loop: returns what it captured as well */
};

struct rp_mlir_arg {
    uint32_t key; /* by which operands refer to it: of text the name, of bytecode a number */
    uint32_t name, shape;
    uint32_t op; /* of a captured value: what it is in the enclosing function */
};

/* A call whose shape is known when its region was read. */
struct rp_mlir_late {
    uint32_t op, parts; /* get-tuple-elements follow it, if there are several */
};

struct rp_mlir {
    const char *begin, *at, *end;
    struct rp_bytecode *bytecode; /* NULL: it is text */
    struct rp_program *p;
    struct rp_limits limits;
    struct rp_err *err;
    RP_VEC(uint64_t) op_of;          /* key to computation + 1 and operation */
    RP_VEC(uint32_t) function_of;    /* string to computation + 1 */
    RP_VEC(uint32_t) operands;       /* of the statement being read: operation, index */
    RP_VEC(uint32_t) results;        /* keys of its results */
    RP_VEC(uint32_t) waiting;        /* index of called, string */
    RP_VEC(struct rp_mlir_loc) locs; /* by number + 1 */
    RP_VEC(struct rp_mlir_region) regions;
    RP_VEC(struct rp_mlir_arg) args;
    RP_VEC(struct rp_mlir_arg) outside; /* of the statement being read */
    RP_VEC(uint32_t) carried;           /* of the region being read: captured values to return */
    RP_VEC(uint32_t) seen;              /* key to the statement that listed it there */
    RP_VEC(struct rp_mlir_late) late;
    struct rp_chars meshes; /* "{mesh = #sdy.mesh<...>" */
    const char *resources;  /* where the text has its resources; NULL: not looked for yet */
    struct rp_map parts;    /* operation and part to its get-tuple-element */
    struct rp_map origins;  /* a parameter that stands for a captured value to that value */
    size_t next_region;
    uint32_t statements;
    uint32_t depth; /* of the region being read */
};

/* At a place of the text, or a byte of the bytecode. */
enum rp_code rp_mlir_fail(const struct rp_mlir *r, const char *where, const char *fmt, ...)
    RP_PRINTF(3, 4);
#define RP_MLIR_FAIL rp_mlir_fail

/* ---- text ---- */

void rp_mlir_space(struct rp_mlir *r); /* blanks, line ends and comments */
bool rp_mlir_word_char(char c);
struct rp_slice rp_mlir_word(struct rp_mlir *r);
bool rp_mlir_take_word(struct rp_mlir *r, const char *text);
/* After the string at s, or the end of the text. */
const char *rp_mlir_string_end(const struct rp_mlir *r, const char *s);
/* What a string means: its escapes are replaced, in the program's arena. */
enum rp_code rp_mlir_unescape(struct rp_mlir *r, struct rp_slice *text);
/* After the bracket that closes the one at s, or NULL. "->" closes nothing. */
const char *rp_mlir_bracket_end(const struct rp_mlir *r, const char *s);
enum rp_code rp_mlir_skip_bracket(struct rp_mlir *r);

/* Of "f32", "i1", "complex<f64>"; RP_ELEM_INVALID: none. */
unsigned rp_mlir_elem(const char *s, size_t n);
/* The types in a text: one, or several as a tuple. */
enum rp_code rp_mlir_types(struct rp_mlir *r, const char *s, const char *end, uint32_t *shape);
/* From now on the key means this operation. */
enum rp_code rp_mlir_define(struct rp_mlir *r, uint32_t key, uint32_t op);
/* The operation of a key, into r->operands; `numbered`: one of its results. */
enum rp_code rp_mlir_use(struct rp_mlir *r, const char *where, uint32_t key, uint32_t name,
                         bool numbered, uint32_t index);
/* A region uses this key: if it is of the function around it, into r->outside. */
enum rp_code rp_mlir_capture(struct rp_mlir *r, uint32_t key, uint32_t name);
/* After '%' or '@'. */
enum rp_code rp_mlir_name_at(struct rp_mlir *r, uint32_t *id);
/* One of the results of an operation that has several: *op becomes that part. */
enum rp_code rp_mlir_part(struct rp_mlir *r, const char *where, uint32_t *op, uint32_t index);
/* "%3#1", into r->operands. */
enum rp_code rp_mlir_operand(struct rp_mlir *r);
/* "(%a: type, %b: type)", into r->args. */
enum rp_code rp_mlir_arguments(struct rp_mlir *r);

/* Whether '{' opens a list of attributes: "{}" or "{key = ..." or "{key, ..." */
bool rp_mlir_is_dictionary(const struct rp_mlir *r);
/* Statements up to '}'. */
enum rp_code rp_mlir_block(struct rp_mlir *r);

/* An operation that the text does not write, such as a part of a tuple. */
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
    const char *at, *end; /* after the name of the operation, before the types */
    struct rp_ids operands;
    const char *region, *region_end;   /* what is in here is not of the statement; NULL: nothing */
    const struct rp_mlir_named *named; /* of bytecode */
    size_t nnamed, nall;               /* its own, and with those that are in dictionaries of it */
};
/* After "key = ", where the key is a whole word; NULL if it is absent. Of text. */
const char *rp_mlir_find_key(const struct rp_mlir_attrs *attrs, const char *key);
/* All integers of a text; of "array<i64: ...>" those after the colon. */
void rp_mlir_ints_in(const char *s, const char *end, struct rp_mlir_ints *out);
/* The integers of the first of these keys that is there; the list ends with NULL. */
bool rp_mlir_find_ints(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                       const char *const *keys, struct rp_mlir_ints *out);
/* The first integer of a key; `absent` where there is none. */
int64_t rp_mlir_find_int(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                         const char *key, int64_t absent);
/* "key", "key = true" */
bool rp_mlir_find_flag(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs, const char *key);
/* The first of these words that occurs as a whole word, or NULL; the list ends with NULL. */
const char *rp_mlir_find_word(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                              const char *const *words);
/* The content of a string; nothing for any other value. */
enum rp_code rp_mlir_find_string(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                 const char *key, struct rp_slice *out);
/* A value as it is written, such as "{a = 1 : i32}". */
enum rp_code rp_mlir_find_text(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                               const char *key, struct rp_slice *out);
/* Integers and the size of the last dimension of "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"; 0
   where it is absent. */
enum rp_code rp_mlir_find_groups(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                 const char *key, struct rp_mlir_ints *out, size_t *each);
/* "b01f_01io->b01f" of a convolution. */
bool rp_mlir_find_labels(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs, char *out,
                         size_t cap);
/* "callee = @f" of the generic form, a string; *name stays if there is none. */
enum rp_code rp_mlir_callee(struct rp_mlir *r, const struct rp_mlir_attrs *attrs, uint32_t *name);
/* "called_computations = [@f, @g]": functions that the newest operation calls. */
enum rp_code rp_mlir_called_list(struct rp_mlir *r, const struct rp_mlir_attrs *attrs);
enum rp_code rp_mlir_add_call(struct rp_mlir *r, uint32_t name);
/* The attributes of an operation that HLO does not have, as text. */
enum rp_code rp_mlir_keep_text(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                               uint32_t operation);

/* ---- operations (build.c) ---- */

struct rp_mlir_statement {
    struct rp_new_op op;
    struct rp_mlir_attrs attrs;
    struct rp_slice applies; /* the operation of a reduction without a region */
    size_t operand;          /* the first of r->operands */
    size_t region, args;     /* the first of its regions, and of the arguments it names for them */
    uint32_t called, loc;    /* strings and numbers; RP_NONE and 0: none */
};
/* What HLO calls an operation of StableHLO. */
enum rp_code rp_mlir_opcode(struct rp_mlir *r, struct rp_slice name, struct rp_new_op *op);
bool rp_mlir_is_return(struct rp_slice name);
/* Adds the operation; its results are r->results from `results` on; `counted`: one for all. */
enum rp_code rp_mlir_add(struct rp_mlir *r, struct rp_mlir_statement *s, struct rp_slice name,
                         size_t results, bool counted);
enum rp_code rp_mlir_begin_function(struct rp_mlir *r, uint32_t name);
/* Calls, locations and meshes, which are known at the end. */
enum rp_code rp_mlir_finish(struct rp_mlir *r);

/* The attributes of an operation that HLO has too; *known: it needs no others. To
   the newest operation. */
enum rp_code rp_mlir_attributes(struct rp_mlir *r, unsigned code, const struct rp_mlir_attrs *attrs,
                                bool *known);
/* The "dims" of a broadcast. */
void rp_mlir_broadcast_dims(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                            struct rp_mlir_ints *out);
/* Translates a broadcast into the shape of op: op's code may change, preceding operations are
   added and *operand is the last of them; *split: some were added, and *rest are the dimensions
   of op. */
enum rp_code rp_mlir_broadcast(struct rp_mlir *r, const struct rp_mlir_ints *dimensions,
                               struct rp_new_op *op, uint32_t *operand, struct rp_mlir_ints *rest,
                               bool *split);
/* "dense<...>": the literal of a constant of op's shape. One value for a large array: op becomes a
   broadcast of *scalar, which is RP_NONE otherwise. */
enum rp_code rp_mlir_constant(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                              struct rp_new_op *op, uint32_t *scalar);

/* Layouts of a custom call (layouts.c): of its results, into their shape; of its operands, to the
   newest operation. */
enum rp_code rp_mlir_result_layouts(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                    uint32_t *shape);
enum rp_code rp_mlir_operand_layouts(struct rp_mlir *r, const struct rp_mlir_attrs *attrs);

/* ---- programs of several devices (sharding.c) ---- */

/* Groups, channel and ids of a collective, to the newest operation. */
enum rp_code rp_mlir_collective(struct rp_mlir *r, unsigned code,
                                const struct rp_mlir_attrs *attrs);
/* An exchange that splits and joins along different dimensions: *joined is the dimension of op,
   which is a concatenation then; otherwise -1. */
enum rp_code rp_mlir_push_operand(struct rp_mlir *r, uint32_t op); /* its first result */
enum rp_code rp_mlir_all_to_all(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                size_t first_operand, struct rp_new_op *op, int64_t *joined);
/* The operations of a manual computation up to op, which joins its results. */
enum rp_code rp_mlir_manual(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                            size_t first_operand, size_t region, size_t args, struct rp_new_op *op);
enum rp_code rp_mlir_manual_attrs(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                  bool results);
enum rp_code rp_mlir_target(struct rp_mlir *r, const char *name); /* a static text */
enum rp_code rp_mlir_set_late(struct rp_mlir *r);
enum rp_code rp_mlir_mesh(struct rp_mlir *r, struct rp_slice name, struct rp_slice mesh);
enum rp_code rp_mlir_module_attrs(struct rp_mlir *r, const struct rp_mlir_attrs *attrs);
enum rp_code rp_mlir_add_meshes(struct rp_mlir *r);
/* The region is called by the newest operation, with arguments from `args` on. */
enum rp_code rp_mlir_call_region(struct rp_mlir *r, size_t region, size_t args);
/* The arguments that a region names, into r->args. */
enum rp_code rp_mlir_region_arguments(struct rp_mlir *r, const struct rp_mlir_region *region);

/* To be read later; its depth is set. */
enum rp_code rp_mlir_queue(struct rp_mlir *r, struct rp_mlir_region region);
/* The region at r->at, '{': queued; r->at moves past it. */
enum rp_code rp_mlir_queue_region(struct rp_mlir *r);
/* Reads all queued regions, and those nested in them. */
enum rp_code rp_mlir_read_regions(struct rp_mlir *r);
