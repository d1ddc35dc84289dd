/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_MLIR_MLIR_H
#define RP_FORMATS_MLIR_MLIR_H
/* What the parts of the StableHLO reader share: a scanner over the text, names, and types. */
#include "base/text.h"
#include "program/program.h"

struct rp_mlir_loc {          /* the location that "#loc12" names */
    uint32_t name, file, ref; /* ref: the number of another one + 1 */
    int32_t line;
};

/*
 * A region becomes a computation of its own. The operations of a computation are contiguous, so it
 * is read only when the function around it is done.
 */
struct rp_mlir_region {
    const char *at;             /* after its '{'; NULL: the reduction by one operation */
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
    uint32_t name, shape;
    uint32_t op; /* of a captured value: what it is in the enclosing function */
};

/* Bytes of a constant that the text refers to by a name: "dense_resource<name>". */
struct rp_mlir_blob {
    struct rp_slice name; /* none: "rp_N", N is its index */
    struct {
        const char *at;
        size_t n;
    } bytes;
};

/* A call whose shape is known when its region was read. */
struct rp_mlir_late {
    uint32_t op, parts; /* get-tuple-elements follow it, if there are several */
};

struct rp_mlir {
    const char *begin, *at, *end;
    struct rp_program *p;
    struct rp_limits limits;
    struct rp_err *err;
    RP_VEC(uint64_t) op_of;          /* string to computation + 1 and operation */
    RP_VEC(uint32_t) function_of;    /* string to computation + 1 */
    RP_VEC(uint32_t) operands;       /* of the statement being read: operation, index */
    RP_VEC(uint32_t) results;        /* names of its results */
    RP_VEC(uint32_t) waiting;        /* index of called, string */
    RP_VEC(struct rp_mlir_loc) locs; /* by number + 1 */
    RP_VEC(struct rp_mlir_region) regions;
    RP_VEC(struct rp_mlir_arg) args;
    RP_VEC(struct rp_mlir_arg) outside; /* of the statement being read */
    RP_VEC(uint32_t) carried;           /* of the region being read: captured values to return */
    RP_VEC(uint32_t) seen;              /* string to the statement that listed it there */
    const struct rp_mlir_blob *blobs;   /* of bytecode */
    size_t nblobs;
    RP_VEC(struct rp_mlir_late) late;
    struct rp_chars meshes; /* "{mesh = #sdy.mesh<...>" */
    const char *resources;  /* where the text has its resources; NULL: not looked for yet */
    struct rp_map parts;    /* operation and part to its get-tuple-element */
    size_t next_region;
    uint32_t statements;
    uint32_t depth; /* of the region being read */
};

#define RP_MLIR_FAIL(r, where, ...)                                                 \
    rp_text_error((r)->err, RP_FORMAT, (r)->begin, (size_t)((r)->end - (r)->begin), \
                  (size_t)((where) - (r)->begin), __VA_ARGS__)

void rp_mlir_space(struct rp_mlir *r); /* blanks, line ends and comments */
bool rp_mlir_word_char(char c);
struct rp_slice rp_mlir_word(struct rp_mlir *r);
bool rp_mlir_take_word(struct rp_mlir *r, const char *text);
/* After the string at s, or the end of the text. */
const char *rp_mlir_string_end(const struct rp_mlir *r, const char *s);
/* After the bracket that closes the one at s, or NULL. "->" closes nothing. */
const char *rp_mlir_bracket_end(const struct rp_mlir *r, const char *s);
enum rp_code rp_mlir_skip_bracket(struct rp_mlir *r);

/* The types in a text: one, or several as a tuple. */
enum rp_code rp_mlir_types(struct rp_mlir *r, const char *s, const char *end, uint32_t *shape);
/* From now on the name means this operation. */
enum rp_code rp_mlir_define(struct rp_mlir *r, uint32_t name, uint32_t op);
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

/* The text of a statement, for the functions that read its attributes. */
#define RP_MLIR_INTS 128
struct rp_mlir_ints {
    int64_t at[RP_MLIR_INTS];
    size_t n;
};

struct rp_mlir_text {
    const char *at, *end; /* after the name of the operation, before the types */
    struct rp_ids operands;
    const char *region, *region_end; /* what is in here is not of the statement; NULL: nothing */
};
/* After "key = ", where the key is a whole word; NULL if it is absent. */
const char *rp_mlir_find_key(const struct rp_mlir_text *text, const char *key);
/* The first of these words that occurs as a whole word, or NULL; the list ends with NULL. */
const char *rp_mlir_find_word(const struct rp_mlir_text *text, const char *const *words);
/* All integers of a text; of "array<i64: ...>" those after the colon. */
void rp_mlir_ints_in(const char *s, const char *end, struct rp_mlir_ints *out);
/* What is between the operands and the types, from the first word that is no operand on. */
enum rp_code rp_mlir_keep_text(struct rp_mlir *r, const char *at, const char *end,
                               uint32_t operation);
/* "callee = @f" of the generic form, a string; *name stays if there is none. */
enum rp_code rp_mlir_callee(struct rp_mlir *r, const struct rp_mlir_text *text, uint32_t *name);
/* The attributes of an operation that HLO has too; *known: it needs no others. To
   the newest operation. */
enum rp_code rp_mlir_attributes(struct rp_mlir *r, enum rp_opcode code,
                                const struct rp_mlir_text *text, bool *known);
/* The "dims" of a broadcast. */
void rp_mlir_broadcast_dims(const struct rp_mlir *r, const struct rp_mlir_text *text,
                            struct rp_mlir_ints *out);
/* Translates a broadcast into the shape of op: op's code may change, preceding operations are
   added and *operand is the last of them; *split: some were added, and *rest are the dimensions
   of op. */
enum rp_code rp_mlir_broadcast(struct rp_mlir *r, const struct rp_mlir_ints *dimensions,
                               struct rp_new_op *op, uint32_t *operand, struct rp_mlir_ints *rest,
                               bool *split);
/* "dense<...>": the literal of a constant of op's shape. One value for a large array: op becomes a
   broadcast of *scalar, which is RP_NONE otherwise. */
enum rp_code rp_mlir_constant(struct rp_mlir *r, const struct rp_mlir_text *text,
                              struct rp_new_op *op, uint32_t *scalar);

/* ---- programs of several devices (sharding.c) ---- */

/* Groups, channel and ids of a collective, to the newest operation. */
enum rp_code rp_mlir_collective(struct rp_mlir *r, enum rp_opcode code,
                                const struct rp_mlir_text *text);
/* An exchange that splits and joins along different dimensions: *joined is the dimension of op,
   which is a concatenation then; otherwise -1. */
enum rp_code rp_mlir_all_to_all(struct rp_mlir *r, const struct rp_mlir_text *text,
                                size_t first_operand, struct rp_new_op *op, int64_t *joined);
/* The operations of a manual computation up to op, which joins its results. */
enum rp_code rp_mlir_manual(struct rp_mlir *r, const struct rp_mlir_text *text,
                            size_t first_operand, size_t region, size_t args, struct rp_new_op *op);
enum rp_code rp_mlir_manual_attrs(struct rp_mlir *r, const struct rp_mlir_text *text, bool results);
enum rp_code rp_mlir_target(struct rp_mlir *r, const char *name); /* a static text */
enum rp_code rp_mlir_set_late(struct rp_mlir *r);
enum rp_code rp_mlir_mesh(struct rp_mlir *r, const char *at, const char *end);
enum rp_code rp_mlir_module_attrs(struct rp_mlir *r, const char *at, const char *end);
enum rp_code rp_mlir_add_meshes(struct rp_mlir *r);
/* The region is called by the newest operation, with arguments from `args` on. */
enum rp_code rp_mlir_call_region(struct rp_mlir *r, size_t region, size_t args);
/* "^bb0(%a: type)", into r->args, if it is there. */
enum rp_code rp_mlir_block_arguments(struct rp_mlir *r);

/* The region at r->at, '{': queued; r->at moves past it. */
enum rp_code rp_mlir_queue_region(struct rp_mlir *r);
/* Reads all queued regions, and those nested in them. */
enum rp_code rp_mlir_read_regions(struct rp_mlir *r);

#endif
