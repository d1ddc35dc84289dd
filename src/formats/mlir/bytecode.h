/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_MLIR_BYTECODE_H
#define RP_FORMATS_MLIR_BYTECODE_H
/*
 * MLIR bytecode, versions 0 to 6, as the text of the same module, which the reader of MLIR text
 * then reads. Names and types of the versioned dialect VHLO are written as those of StableHLO.
 * Bytes of constants are not written into the text: it names them "dense_resource<rp_N>", and they
 * stay where they are in the file.
 */
#include "formats/mlir/mlir.h"

struct rp_bc_cursor {
    const uint8_t *at, *end;
};

struct rp_bc_entry { /* an attribute or a type */
    struct rp_bc_cursor data;
    uint32_t dialect;
    bool custom; /* in the dialect's encoding; otherwise text */
};

struct rp_bc_op_name {
    uint32_t dialect, name; /* strings, index of `strings` */
};

struct rp_bc_value { /* how the text names a value */
    uint32_t number, part;
    uint8_t kind; /* enum: none, argument, result, one of several results */
};

struct rp_bytecode {
    const uint8_t *begin, *end;
    uint64_t version;
    struct rp_err *err;
    enum rp_code code; /* of the first error; nothing is read after it */
    struct rp_arena *arena;
    uint64_t max_text;

    RP_VEC(struct rp_slice) strings;
    RP_VEC(uint32_t) dialects; /* strings */
    RP_VEC(struct rp_bc_op_name) ops;
    RP_VEC(struct rp_bc_entry) attrs, types;
    RP_VEC(struct rp_bc_cursor) properties;
    RP_VEC(struct rp_mlir_blob) resources; /* of the file, by index of handles */
    RP_VEC(struct rp_mlir_blob) blobs;     /* what the text names */
    RP_VEC(uint8_t) loc_used;              /* by attribute: 1 wanted, 2 written */
    RP_VEC(uint32_t) locs;                 /* attributes that are locations, in the order of use */
    RP_VEC(struct rp_bc_value) values;     /* of the current scope */
    RP_VEC(char) out;
    size_t scope; /* of values: where the current isolated region begins */
    uint32_t arguments, results;
};

/* ---- bytecode.c: bytes ---- */

/* The first error stays. `what` is being read at a place of the file. */
enum rp_code rp_bc_fail(struct rp_bytecode *b, const uint8_t *at, const char *fmt, ...)
    RP_PRINTF(3, 4);
uint64_t rp_bc_varint(struct rp_bytecode *b, struct rp_bc_cursor *c);
int64_t rp_bc_signed(struct rp_bytecode *b, struct rp_bc_cursor *c);
uint8_t rp_bc_byte(struct rp_bytecode *b, struct rp_bc_cursor *c);
/* A number of items that follow, each of at least one byte. */
size_t rp_bc_count(struct rp_bytecode *b, struct rp_bc_cursor *c);
struct rp_bc_cursor rp_bc_bytes(struct rp_bytecode *b, struct rp_bc_cursor *c, uint64_t n);
struct rp_slice rp_bc_string(struct rp_bytecode *b, struct rp_bc_cursor *c);
struct rp_slice rp_bc_string_at(struct rp_bytecode *b, const uint8_t *at, uint64_t index);
/* A nested section of that id. */
struct rp_bc_cursor rp_bc_section(struct rp_bytecode *b, struct rp_bc_cursor *c, uint8_t *id);

/* ---- text ---- */

void rp_bc_put(struct rp_bytecode *b, const char *text, size_t n);
void rp_bc_puts(struct rp_bytecode *b, const char *text);
void rp_bc_putf(struct rp_bytecode *b, const char *fmt, ...) RP_PRINTF(2, 3);
void rp_bc_quoted(struct rp_bytecode *b, struct rp_slice text);

/* ---- bytecode_value.c ---- */

void rp_bc_type(struct rp_bytecode *b, uint64_t index, unsigned depth);
void rp_bc_attr(struct rp_bytecode *b, uint64_t index, unsigned depth);
/* The attribute as data of a constant: its bytes are not written. */
void rp_bc_constant(struct rp_bytecode *b, uint64_t index);
/* The text of a string attribute; nothing for any other. */
struct rp_slice rp_bc_attr_string(struct rp_bytecode *b, uint64_t index);
/* The integers of a list, the integer of a number; false for any other. */
bool rp_bc_attr_ints(struct rp_bytecode *b, uint64_t index, struct rp_mlir_ints *out);
/* A place in the source: "loc(#loc5)". */
void rp_bc_loc(struct rp_bytecode *b, uint64_t index);
/* The lines that define the places that were named. */
void rp_bc_locs(struct rp_bytecode *b);

/* The items of an array attribute, or the names and values of a dictionary. */
struct rp_bc_named {
    struct rp_slice name;
    uint64_t value;
};
size_t rp_bc_array(struct rp_bytecode *b, uint64_t index, struct rp_bc_named **out);
size_t rp_bc_dictionary(struct rp_bytecode *b, uint64_t index, struct rp_bc_named **out);
/* Inputs and results of a function type, as types; false for any other attribute. */
bool rp_bc_function_type(struct rp_bytecode *b, uint64_t index, struct rp_bc_cursor *lists);

/* ---- bytecode_op.c ---- */

void rp_bc_module(struct rp_bytecode *b, struct rp_bc_cursor ir);

/* The whole: the text is in the arena, blobs point into the bytes. */
enum rp_code rp_bytecode_text(const uint8_t *bytes, size_t n, struct rp_mlir *r);
/* Where a module begins: at the start, or inside a file of jax.export; NULL: nowhere. */
const uint8_t *rp_bytecode_find(const uint8_t *bytes, size_t n);
/* Of a module inside of such a file: the length in front of it. */
size_t rp_bytecode_length(const uint8_t *module);

#endif
