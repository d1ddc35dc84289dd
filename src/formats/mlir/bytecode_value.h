/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Entries of the tables of attributes and types. Each dialect has its own encoding: a code, then
 * the fields; these are those of builtin, VHLO, StableHLO, CHLO and Shardy. What a dialect does not
 * encode is text in the file.
 */
#include "formats/mlir/bytecode.h"

enum rp_bc_dialect {
    RP_BC_TEXT,
    RP_BC_BUILTIN,
    RP_BC_VHLO,
    RP_BC_STABLEHLO,
    RP_BC_CHLO,
    RP_BC_SDY
};

/* Attributes and types may contain others up to this depth; deeper ones, such as those that contain
   themselves, are errors. */
#define RP_BC_DEPTH 40

/* Opens an attribute or type: its code, and the cursor after it; RP_BC_TEXT if all of it is
   text. */
enum rp_bc_dialect rp_bc_open(struct rp_bytecode *b, bool type, uint64_t index,
                              struct rp_bc_cursor *c, uint64_t *code);

enum rp_bc_kind { RP_BC_OTHER, RP_BC_SCALAR, RP_BC_TENSOR, RP_BC_TOKEN, RP_BC_TUPLE };
struct rp_bc_type {
    enum rp_bc_kind kind;
    char scalar[32];  /* the type of a scalar or of its elements, such as "f32"; empty: not known */
    int64_t dims[64]; /* of a tensor; may be RP_DIM_UNKNOWN */
    size_t n;         /* number of dimensions, or of types in a tuple */
    struct rp_bc_cursor types; /* of a tuple */
};
void rp_bc_type(struct rp_bytecode *b, uint64_t index, struct rp_bc_type *out);
/* The size in bits of "i32", "ui8", "f32", "index"; 0: not known. */
unsigned rp_bc_bits(const char *scalar);

/* The elements of an attribute; the function returns false if it has none. */
struct rp_bc_data {
    struct rp_bc_cursor raw; /* at NULL: left out */
    struct rp_bc_type type;
    uint64_t elements;
    bool list; /* array<i64: ...>, which is not a tensor */
};
bool rp_bc_data(struct rp_bytecode *b, uint64_t index, struct rp_bc_data *out);
/* The integers among elements; false if they are not integers, or too many. */
bool rp_bc_data_ints(const struct rp_bc_data *data, struct rp_mlir_ints *out);

/* An integer, a truth value or a float by its bits; the function returns false for other
   attributes. */
struct rp_bc_number {
    int64_t value;
    char scalar[32];
    bool real;
};
bool rp_bc_number(struct rp_bytecode *b, uint64_t index, struct rp_bc_number *out);

/* The list of attributes of an array; 0 for any other attribute. */
size_t rp_bc_array(struct rp_bytecode *b, uint64_t index, struct rp_bc_cursor *items);
/* The word of an enumeration, and the enumeration it belongs to; false for any other attribute. */
bool rp_bc_word(struct rp_bytecode *b, uint64_t index, const char **of, const char **word);

/* The lists of dimensions of products, gathers and scatters. */
struct rp_bc_lists {
    struct rp_bc_cursor c;
    const char *kind;
    const char *const *names;
    unsigned at, n;
    bool older, number; /* older: without batching dimensions; number: a number follows the lists */
};
bool rp_bc_lists(struct rp_bytecode *b, uint64_t index, struct rp_bc_lists *out);
/* The name of the next list and its integers; NULL at the end. */
const char *rp_bc_next_list(struct rp_bytecode *b, struct rp_bc_lists *lists,
                            struct rp_mlir_ints *out);
