/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the parts of the StableHLO writer share. StableHLO has no tuples: an operation of the
 * program has as many values as its shape has arrays, in their order.
 */
#include "base/vec.h"
#include "io/output.h"
#include "program/program.h"

struct rp_shlo_value {
    uint32_t name;  /* %name */
    uint32_t index; /* %name#index; RP_NONE if it is the only result */
    uint32_t shape; /* shape of an array or a token */
};

struct rp_shlo_body { /* rp_shlo_body: prepared for a computation when it is first needed */
    uint32_t *order;  /* its operations, each after its operands */
    uint32_t *params; /* by number */
};

#define RP_SHLO_RANK 64 /* the largest number of dimensions of an array */

struct rp_shlo {
    const struct rp_program *p;
    struct rp_out *to;
    struct rp_err *err;
    struct rp_arena scratch;
    uint32_t names;   /* given so far */
    uint32_t depth;   /* how many computations the current one is inside of */
    uint32_t indent;  /* of regions */
    uint32_t scalars; /* how many regions of reductions and the like are around it */
    uint64_t written; /* operations */
    bool listed;      /* an attribute of the operation has been written */
    bool shardings;   /* are written */
    char name[64];    /* the last that rp_shlo_name made */
    uint32_t *first;  /* by operation: index of its first value; RP_NONE: not computed yet */
    uint32_t *count;  /* by operation: how many values it has */
    struct rp_shlo_body *body;  /* by computation */
    uint8_t *is_function;       /* by computation */
    uint8_t *named;             /* by computation: whether its function has its name */
    uint8_t *located;           /* by meta: it is used */
    RP_VEC(uint32_t) functions; /* computations that become functions, the entry first */
    RP_VEC(struct rp_shlo_value) values;
};

/* Sets an error with the operation's name and opcode, and why; returns RP_UNSUPPORTED. */
enum rp_code rp_shlo_refuse(const struct rp_shlo *w, uint32_t op, const char *why);

/* The name of an operation, until the next is asked for; NULL if it has none, or has a form of its
   own. */
const char *rp_shlo_name(struct rp_shlo *w, uint32_t op);

/* ---- types and constants (stablehlo_values.c) ---- */

uint32_t rp_shlo_leaves(const struct rp_program *p, uint32_t shape);
/* Whether all arrays in a shape have a type in StableHLO. */
bool rp_shlo_has_type(const struct rp_program *p, uint32_t shape);
bool rp_shlo_same_type(const struct rp_program *p, uint32_t a, uint32_t b); /* of two leaves */
const char *rp_shlo_elem(unsigned elem); /* such as "f32"; NULL if StableHLO has no such type */
void rp_shlo_array_type(const struct rp_shlo *w, unsigned elem, const int64_t *dims, size_t n);
void rp_shlo_type(const struct rp_shlo *w, uint32_t shape); /* of a leaf */
/* Writes "dense<[1, 2]> : tensor<2xi32>". */
enum rp_code rp_shlo_constant(const struct rp_shlo *w, uint32_t op);

/* ---- attributes (stablehlo_attrs.c) ---- */

/* Writes " <{key = " or ", key = ". */
void rp_shlo_key(struct rp_shlo *w, const char *key);
void rp_shlo_ints(struct rp_shlo *w, const char *key, const int64_t *at, size_t n);
void rp_shlo_int(struct rp_shlo *w, const char *key, int64_t value);
void rp_shlo_flag(struct rp_shlo *w, const char *key, bool value);
/* Writes "dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>". */
void rp_shlo_table(struct rp_shlo *w, const char *key, const int64_t *at, size_t rows,
                   size_t columns);
/* These write values without a key: "0, 1", a string in quotes. */
void rp_shlo_list(struct rp_shlo *w, const int64_t *at, size_t n);
void rp_shlo_string(const struct rp_shlo *w, const char *at, size_t n);
/* Names the attribute that has no form in StableHLO; returns RP_UNSUPPORTED. */
enum rp_code rp_shlo_refuse_attr(const struct rp_shlo *w, uint32_t op, uint32_t key);
enum rp_code rp_shlo_collective(struct rp_shlo *w, uint32_t op, uint16_t code); /* _groups.c */
/* Whether a custom call is written as chlo.top_k. */
bool rp_shlo_is_topk(const struct rp_program *p, uint32_t op);
enum rp_code rp_shlo_custom_call(struct rp_shlo *w, uint32_t op); /* _calls.c */
/* Writes all attributes of an operation, up to the end of their list; RP_UNSUPPORTED if one has no
   form. */
enum rp_code rp_shlo_attrs(struct rp_shlo *w, uint32_t op);
/* Writes those that every operation may have, after its regions: shardings, attributes of
   frontends. */
enum rp_code rp_shlo_more_attrs(struct rp_shlo *w, uint32_t op);
/* Writes ", key = [{mhlo.sharding = ...}, {}]" for the values of some operations; nothing if none
 * has one. */
enum rp_code rp_shlo_placement(struct rp_shlo *w, const char *key, struct rp_ids ops);
void rp_shlo_symbol(const struct rp_shlo *w, const char *sign, uint32_t computation);
/* Notes that a computation has to be a function. */
enum rp_code rp_shlo_need_function(struct rp_shlo *w, uint32_t computation);
