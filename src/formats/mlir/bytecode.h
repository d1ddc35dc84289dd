/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * MLIR bytecode, versions 0 to 6. The tables stay as they are in the file; operations, regions and
 * values become lists, in the order of the file, from which the builder gets them one by one. Names
 * of the versioned dialect VHLO become those of StableHLO. Bytes of constants stay in the file.
 */
#include "formats/mlir/mlir.h"

struct rp_bc_cursor {
    const uint8_t *at, *end;
};

struct rp_bc_entry { /* entry: an attribute or a type */
    struct rp_bc_cursor data;
    uint32_t dialect;
    bool custom; /* in the dialect's own encoding; otherwise text */
};

struct rp_bc_op_name {
    const char *file;     /* "vhlo.add_v1" */
    struct rp_slice name; /* "stablehlo.add" */
    const char *attrs;    /* its properties, as a list of names */
};

/* Values are numbered in the whole file. */
struct rp_bc_value {
    uint32_t first;      /* the first result of its operation, or itself if it is an argument */
    uint32_t name, type; /* a string: "arg0", "3" */
    bool several;        /* its operation has several results */
};

struct rp_bc_op {
    const uint8_t *at;
    uint32_t name, loc, end; /* end: the operation after it and after everything nested in it */
    uint32_t operand, noperands, result, nresults, region, nregions;
    uint32_t attrs, properties; /* + 1; 0: none */
};

struct rp_bc_region {
    const uint8_t *at;
    uint32_t op, end, arg, nargs;
    bool body; /* whether it has a block */
};

struct rp_bc_scope {        /* the values of a region that is being read */
    uint64_t first, values; /* the numbers that the file gives them */
    size_t base;            /* of `visible` */
    bool isolated;
};

struct rp_bytecode {
    const uint8_t *begin, *end;
    uint64_t version;
    struct rp_err *err;
    enum rp_code code; /* code of the first error, after which nothing is read */
    struct rp_program *p;
    uint64_t work, work_most; /* number of attributes that were read, and its limit */

    RP_VEC(struct rp_slice) strings;
    RP_VEC(struct rp_slice) dialects;
    RP_VEC(struct rp_bc_op_name) names;
    RP_VEC(struct rp_bc_entry) attrs;
    RP_VEC(struct rp_bc_entry) types;
    RP_VEC(uint32_t) shapes; /* indexed by type; RP_NONE: not read yet */
    RP_VEC(struct rp_bc_cursor) properties;
    RP_VEC(struct rp_bc_cursor) resources; /* by handle */

    RP_VEC(struct rp_bc_op) ops;
    RP_VEC(struct rp_bc_region) regions;
    RP_VEC(struct rp_bc_value) values;
    RP_VEC(uint32_t) operands; /* values */
    RP_VEC(struct rp_bc_scope) scopes;
    RP_VEC(uint32_t) visible;           /* values of the scopes */
    RP_VEC(struct rp_mlir_named) named; /* attributes of one operation */
    uint32_t arguments, results;        /* of the function that is being read */
};

/* ---- bytecode.c: bytes ---- */

/* Sets an error unless there is one already. */
enum rp_code rp_bc_fail(struct rp_bytecode *b, const uint8_t *at, const char *fmt, ...)
    RP_PRINTF(3, 4);
uint64_t rp_bc_varint(struct rp_bytecode *b, struct rp_bc_cursor *c);
int64_t rp_bc_signed(struct rp_bytecode *b, struct rp_bc_cursor *c);
uint8_t rp_bc_byte(struct rp_bytecode *b, struct rp_bc_cursor *c);
/* Reads the number of items that follow, each of which has at least one byte. */
size_t rp_bc_count(struct rp_bytecode *b, struct rp_bc_cursor *c);
struct rp_bc_cursor rp_bc_bytes(struct rp_bytecode *b, struct rp_bc_cursor *c, uint64_t n);
struct rp_slice rp_bc_string(struct rp_bytecode *b, struct rp_bc_cursor *c);
/* Opens the nested section with that id. */
struct rp_bc_cursor rp_bc_section(struct rp_bytecode *b, struct rp_bc_cursor *c, uint8_t *id);
enum rp_code rp_bc_status(const struct rp_bytecode *b);
/* Reads the module from r->begin to r->end. */
enum rp_code rp_bytecode_build(struct rp_mlir *r);
/* Where a module begins: at the start, or inside a file of jax.export; NULL if nowhere. */
const uint8_t *rp_bytecode_find(const uint8_t *bytes, size_t n);
/* The length of a module inside such a file, which is stored in front of it. */
size_t rp_bytecode_length(const uint8_t *module);

/* ---- bytecode_value.c: types and attributes ---- */

enum rp_code rp_bc_shape(struct rp_mlir *r, uint64_t type, uint32_t *shape);
/* The text of a string or a symbol; empty for any other attribute. */
struct rp_slice rp_bc_attr_string(struct rp_bytecode *b, uint64_t index);
/* Adds the names and values of a dictionary to b->named. */
void rp_bc_dictionary(struct rp_bytecode *b, uint64_t index);
/* Reads the locations, by attribute. */
enum rp_code rp_bc_locations(struct rp_mlir *r);
/* The text of an attribute, in the arena. */
enum rp_code rp_bc_text(struct rp_mlir *r, uint64_t index, struct rp_slice *out);

/* ---- bytecode_find.c: what find.c asks for ---- */

bool rp_bc_find_ints(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs, const char *key,
                     struct rp_mlir_ints *out);
bool rp_bc_has_word(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs, const char *word);
struct rp_slice rp_bc_find_string(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                  const char *key);
enum rp_code rp_bc_find_text(struct rp_mlir *r, const struct rp_mlir_attrs *attrs, const char *key,
                             struct rp_slice *out);
enum rp_code rp_bc_find_groups(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                               const char *key, struct rp_mlir_ints *out, size_t *each);
bool rp_bc_find_labels(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs, char *out,
                       size_t cap);
/* Finds the bytes of a constant. */
bool rp_bc_find_bytes(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                      struct rp_literal *out);
enum rp_code rp_bc_called_list(struct rp_mlir *r, const struct rp_mlir_attrs *attrs);
/* Writes all attributes of an operation: "<{a = 1 : i64}>". */
enum rp_code rp_bc_all_text(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                            struct rp_slice *out);

/* ---- bytecode_op.c: operations ---- */

void rp_bc_read_ir(struct rp_bytecode *b, struct rp_bc_cursor ir);
/* Names the properties of an operation, such as "dimension is_stable?". */
const char *rp_bc_properties(const char *op);
enum rp_code rp_bc_module(struct rp_mlir *r);
/* These read arguments and operations of a region. */
enum rp_code rp_bc_region_arguments(struct rp_mlir *r, uint32_t region);
enum rp_code rp_bc_block(struct rp_mlir *r, uint32_t region);
