/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A program in any of the supported languages: operations in columns, 32-bit ids, one table
 * (ops.def) that says what is known of an opcode.
 *
 *   computations:  [ fused_0 | region_1 | ENTRY ]        each owns a range of operations
 *   operations:    code name shape value meta ...        one column each, in the order of the file
 *   operands:      begin[op] .. begin[op + 1]            ids of operations of the same computation
 *   called:        the same, ids of computations
 *   attributes:    the same; keys and values (attrs.h)
 *
 * Readers append; nothing is removed. Texts of attributes and literals point into the input, which
 * must live as long as the program. Frozen by rp_program_finish; then shared by threads.
 */
#include "base/arena.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "program/attrs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rp_op_class {
    RP_CLASS_ELEMENT,
    RP_CLASS_REDUCE,
    RP_CLASS_DOT,
    RP_CLASS_CONV,
    RP_CLASS_MOVE,
    RP_CLASS_CONTROL,
    RP_CLASS_COLLECTIVE,
    RP_CLASS_DATA,
    RP_CLASS_RANDOM,
    RP_CLASS_LINALG,
    RP_CLASS_FOREIGN
};

enum rp_flop_rule {
    RP_FLOPS_NONE,
    RP_FLOPS_EACH,
    RP_FLOPS_TRANS,
    RP_FLOPS_OPERANDS,
    RP_FLOPS_CALL,
    RP_FLOPS_MAP,
    RP_FLOPS_BRANCH,
    RP_FLOPS_LOOP,
    RP_FLOPS_DOT,
    RP_FLOPS_CONV,
    RP_FLOPS_REDUCE,
    RP_FLOPS_WINDOW,
    RP_FLOPS_SELECT_SCATTER,
    RP_FLOPS_SCATTER,
    RP_FLOPS_SORT,
    RP_FLOPS_FFT,
    RP_FLOPS_CHOLESKY,
    RP_FLOPS_TRIANGULAR
};

enum { RP_OPF_EFFECT = 1, RP_OPF_FREE = 2, RP_OPF_ALIAS = 4 };

struct rp_op_info {
    const char *name;
    uint8_t min_operands;
    uint8_t max_operands; /* 255: any number */
    uint8_t class_;       /* enum rp_op_class */
    uint8_t flops;        /* enum rp_flop_rule */
    uint8_t flags;        /* RP_OPF_ */
};
extern const struct rp_op_info rp_op_info[]; /* by enum rp_opcode (opcodes.h) */

enum rp_elem {
#define RP_ELEM(id, name, number, bits) RP_ELEM_##id = (number),
#include "program/elements.def"
#undef RP_ELEM
    RP_ELEM_COUNT = 65
};

const char *rp_elem_name(unsigned elem); /* "f32"; NULL if there is none */
unsigned rp_elem_bits(unsigned elem);    /* the bits of one element; 0 if it has no size */
bool rp_elem_is_signed(unsigned elem);
unsigned rp_elem_find(const char *name, size_t len); /* RP_ELEM_INVALID if there is no such type */

/* rp_op_shape.flags */
enum {
    RP_SHAPE_DYNAMIC = 1,        /* a dimension is a bound or not known */
    RP_SHAPE_DEFAULT_LAYOUT = 2, /* no layout was given, or the row-major one */
    RP_SHAPE_UNKNOWN = 4         /* even the number of dimensions is not known */
};

/* Id 0 is the unknown shape: RP_ELEM_INVALID and RP_SHAPE_UNKNOWN. Shapes are interned: equal
   shapes have equal ids. */
struct rp_op_shape {
    uint8_t elem; /* enum rp_elem; RP_ELEM_TUPLE has parts instead of dimensions */
    uint8_t flags;
    uint16_t depth;  /* how deeply tuples are nested; 0 for an array */
    uint32_t n;      /* dimensions or parts */
    uint32_t first;  /* index in program.dims and program.dim_dynamic, or in program.parts */
    uint32_t layout; /* a string with its braces, "{1,0:T(8,128)}"; 0 if none was given */
    uint32_t leaves; /* of a tuple: its arrays at all depths */
};

/* The limit of nesting, because functions on shapes call themselves for the parts of a tuple and
   visit each leaf. */
#define RP_SHAPE_DEPTH  256
#define RP_SHAPE_LEAVES (1U << 20)
#define RP_DIM_UNKNOWN  (-1)

/* The source information of an operation; all are strings, and 0 means none. */
struct rp_op_meta {
    uint32_t op_name; /* scope path: "jit(step)/jvp()/dot_general" */
    uint32_t op_type;
    uint32_t file;
    int32_t line, end_line, column, end_column;
    uint32_t frame; /* 1-based index of the frames; 0 if there is none */
    uint32_t scheduling_name, deduplicated_name;
};

struct rp_location {
    uint32_t file, function; /* strings */
    int32_t line, end_line, column, end_column;
};
struct rp_frame {
    uint32_t location; /* index of locations */
    uint32_t parent;   /* index of the parent frame + 1; 0 if there is none */
};

enum rp_literal_form {
    RP_LITERAL_NONE,   /* the file does not contain its values */
    RP_LITERAL_TEXT,   /* as HLO text writes it */
    RP_LITERAL_MLIR,   /* as MLIR writes it: the text inside of "dense<...>" */
    RP_LITERAL_RAW,    /* little-endian elements, in the order of the shape's layout */
    RP_LITERAL_VARINT, /* protobuf's packed varints, in the same order */
    RP_LITERAL_PROTO   /* a whole LiteralProto, for tuples */
};
struct rp_literal {
    const char *at; /* borrowed */
    size_t n;
    uint32_t shape;
    enum rp_literal_form form;
};

struct rp_computation {
    uint32_t name;
    uint32_t first, n; /* operations */
    uint32_t root;     /* operation */
    uint32_t nparams;
    uint32_t thread; /* string: the execution thread; 0 is the main one */
    bool fused;      /* body of a fusion */
};

/* The work of one execution; doubles, since totals of large programs exceed 2^63. */
struct rp_cost {
    double flops, transcendentals, bytes;
};

/* Bits of the column `flags`. */
enum { RP_OPS_IMPLICIT = 1 /* not written in the file: the '#0' of an operand */ };

struct rp_program {
    struct rp_arena arena;
    struct rp_strtab strings; /* the known attribute keys come first, see enum rp_attr_key */
    const char *language;     /* "hlo", "graphdef", ... */
    uint32_t name;
    uint32_t entry; /* computation, or RP_NONE */

    RP_VEC(struct rp_computation) computations;
    uint32_t nops;
    RP_VEC(uint16_t) code;
    RP_VEC(uint8_t) flags;
    RP_VEC(uint32_t) op_name;
    RP_VEC(uint32_t) foreign; /* string: the opcode of RP_OP_FOREIGN */
    RP_VEC(uint32_t) shape;
    RP_VEC(uint32_t) computation;
    RP_VEC(int64_t) value; /* a parameter number, tuple index or index of literals; otherwise 0 */
    RP_VEC(uint32_t) meta; /* index of metas; 0 if there is none */
    RP_VEC(uint32_t) operand_begin, called_begin, attr_begin; /* nops + 1 */
    RP_VEC(uint32_t) operands;
    RP_VEC(uint32_t)
    operand_index; /* which output of the operand it is; only for languages that have several */
    RP_VEC(uint32_t) called;
    RP_VEC(struct rp_attr) attrs;
    RP_VEC(struct rp_cost)
    given; /* by operation: the work that the file states; empty if it states none */

    RP_VEC(struct rp_op_shape) shapes;
    RP_VEC(int64_t) dims;
    RP_VEC(uint8_t) dim_dynamic;
    RP_VEC(uint32_t) parts;
    struct rp_map shape_map; /* from hash to shape; private */

    RP_VEC(struct rp_op_meta) metas; /* [0] is empty */
    RP_VEC(struct rp_location) locations;
    RP_VEC(struct rp_frame) frames;
    RP_VEC(struct rp_literal) literals;
    RP_VEC(struct rp_attr) module_attrs;
    const struct rp_sharding
        *placement; /* where the results of a partitioned program are; NULL if not known */
    struct { /* the wire form of a GraphDef, of HLO that was protobuf text, or of MLIR bytecode;
                borrowed or in the arena */
        const char *at;
        size_t n;
    } source;            /* otherwise empty */
    uint16_t *opcode_of; /* from string to opcode; private */
};

enum rp_code rp_program_new(const char *language, struct rp_program **out, struct rp_err *err);
void rp_program_free(struct rp_program *program); /* NULL is fine */

/* ---- filling ---- */

enum rp_code rp_program_string(struct rp_program *p, const char *text, size_t len, uint32_t *id,
                               struct rp_err *err);

/* Returns the opcode of a string, or RP_OP_FOREIGN. */
uint16_t rp_program_opcode(const struct rp_program *p, uint32_t string);

/* What a new operation is; its lists are added by the functions below, only while it is the newest
   operation. */
struct rp_new_op {
    uint16_t code;
    uint32_t foreign, name, shape;
    int64_t value;
    uint32_t meta;
    uint8_t flags;
};
enum rp_code rp_program_add_op(struct rp_program *p, const struct rp_new_op *op, uint32_t *id,
                               struct rp_err *err);
enum rp_code rp_program_add_operand(struct rp_program *p, uint32_t op, uint32_t index,
                                    struct rp_err *err);
enum rp_code rp_program_add_called(struct rp_program *p, uint32_t computation, struct rp_err *err);
/* Returns RP_NOMEM if the value is missing because memory ran out. */
enum rp_code rp_program_add_attr(struct rp_program *p, struct rp_attr attr, struct rp_err *err);
/* Adds a raw text, which is borrowed. */
enum rp_code rp_program_add_text(struct rp_program *p, uint32_t key, const char *at, size_t n,
                                 struct rp_err *err);
/* Does the same for the module. */
enum rp_code rp_program_add_module_attr(struct rp_program *p, struct rp_attr attr,
                                        struct rp_err *err);

/* Begins a computation, to which all operations belong that are added from now on. */
enum rp_code rp_program_begin(struct rp_program *p, uint32_t name, uint32_t *id,
                              struct rp_err *err);

/* Interns an array. Returns RP_LIMIT if its elements or bytes exceed an int64. dynamic may be
   NULL. */
enum rp_code rp_program_array(struct rp_program *p, unsigned elem, const int64_t *dims,
                              const uint8_t *dynamic, size_t n, uint32_t layout, uint32_t *id,
                              struct rp_err *err);
enum rp_code rp_program_tuple(struct rp_program *p, const uint32_t *parts, size_t n, uint32_t *id,
                              struct rp_err *err);

/* Completes the program: the last computation becomes the entry if none was named, and lists get
   their ends. Must be called once, after the last operation. */
enum rp_code rp_program_finish(struct rp_program *p, struct rp_err *err);

/* ---- reading ---- */

static inline const char *rp_program_text(const struct rp_program *p, uint32_t string)
{
    return rp_strtab_borrow(&p->strings, string);
}

struct rp_ids {
    const uint32_t *at;
    uint32_t n;
};

static inline struct rp_ids rp_op_operands(const struct rp_program *p, uint32_t op)
{
    uint32_t from = p->operand_begin.at[op];

    return (struct rp_ids){p->operands.at + from, p->operand_begin.at[op + 1] - from};
}

static inline struct rp_ids rp_op_called(const struct rp_program *p, uint32_t op)
{
    uint32_t from = p->called_begin.at[op];

    return (struct rp_ids){p->called.at + from, p->called_begin.at[op + 1] - from};
}

static inline const struct rp_attr *rp_op_attrs(const struct rp_program *p, uint32_t op,
                                                uint32_t *n)
{
    uint32_t from = p->attr_begin.at[op];

    *n = p->attr_begin.at[op + 1] - from;
    return p->attrs.at + from;
}

/* Returns the attribute of that key, or NULL. */
const struct rp_attr *rp_op_attr(const struct rp_program *p, uint32_t op, uint32_t key);
/* Returns its value; `absent` if it is missing or not an integer. */
int64_t rp_op_int(const struct rp_program *p, uint32_t op, uint32_t key, int64_t absent);
/* Returns its list of *n integers; NULL if it has none. */
const int64_t *rp_op_ints(const struct rp_program *p, uint32_t op, uint32_t key, size_t *n);
/* Returns an integer attribute of the module; `absent` if it is missing or not an integer. */
int64_t rp_program_int(const struct rp_program *p, uint32_t key, int64_t absent);

/* Returns "add", also for foreign operations. */
const char *rp_op_opcode_name(const struct rp_program *p, uint32_t op);

/* File, line and function of the code that made an operation; the function returns false if they
   are not known. */
struct rp_source_line {
    const char *file, *function; /* function may be "" */
    int32_t line;
};
bool rp_op_source(const struct rp_program *p, uint32_t op, struct rp_source_line *out);

/* Counts the elements of an array, or of all parts of a tuple. Unknown dimensions count as 1. */
int64_t rp_shape_elements(const struct rp_program *p, uint32_t shape);
int64_t rp_shape_bytes(const struct rp_program *p, uint32_t shape);
/* Writes "f32[2,<=3]{1,0}" or "(s32[], f32[4])" with a NUL, cut to cap, and returns the whole
   length. */
size_t rp_shape_text(const struct rp_program *p, uint32_t shape, bool layout, char *out,
                     size_t cap);
