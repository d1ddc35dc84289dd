/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Attributes of operations and modules are values. attrs.def gives the type of each known key.
 * There is text only at the edges: readers of HLO text parse it once (rp_attr_parse), and writers
 * and tables print it (rp_attr_print).
 *
 * A value that does not fit its type, and the value of an unknown key, is raw text (RP_VALUE_TEXT):
 * it is kept, printed, hashed and written verbatim; getters of typed values do not return it.
 */
#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_program;

/* The keys of known attributes: each is the id of the key's text in every program's strings. */
enum rp_attr_key {
    RP_ATTR_FIRST, /* the empty string */
#define RP_ATTR(id, key, type, field, inner, flags) RP_ATTR_##id,
#include "program/attrs.def"
#undef RP_ATTR
    RP_ATTR_COUNT
};

enum rp_value_type {                   /* member of the union; how HLO text writes it */
                     RP_VALUE_TEXT,    /* at: raw text */
                     RP_VALUE_WIRE,    /* at: unknown fields of a protobuf */
                     RP_VALUE_FLAG,    /* number: true, false */
                     RP_VALUE_INT,     /* number: 3 */
                     RP_VALUE_FLOAT,   /* real: 0.001 */
                     RP_VALUE_WORD,    /* at: the name of an enumerator, such as kLoop */
                     RP_VALUE_STRING,  /* at, without quotes and escapes: "text" */
                     RP_VALUE_CONFIG,  /* at, without quotes and escapes: {"json": 1} or "text" */
                     RP_VALUE_INTS,    /* ints: {1,0} */
                     RP_VALUE_PAIRS,   /* ints, two each: {{0,1},{1,0}} */
                     RP_VALUE_SLICES,  /* ints, three each: begin, end and stride: {[0:4], [2:8:2]}
                                        */
                     RP_VALUE_PADDING, /* ints, three each: low, high and interior: 0_1x2_3_1 */
                     RP_VALUE_CONV_DIMS, /* ints, see rp_attr_conv_dims: b01f_01io->b01f */
                     RP_VALUE_WORDS,     /* texts: {default,highest} */
                     RP_VALUE_MAP,    /* texts, key and value in turn: {key="value",other={json}} */
                     RP_VALUE_WINDOW, /* window, n dimensions: {size=3x3 pad=1_1x1_1} */
                     RP_VALUE_GROUPS, /* groups: {{0,1}}, [2,4]<=[8], mesh['a'=2] {'a'} */
                     RP_VALUE_ALIASES,  /* aliases: {{0}: (1, {})} */
                     RP_VALUE_SHARDING, /* sharding: {devices=[2,1]<=[2]} */
                     RP_VALUE_OPS,      /* ids of operations: {%a, %b} */
                     RP_VALUE_SHAPES    /* ids of shapes: {f32[4]{0}, s32[]} */
};

/* A piece of a text, which is borrowed; `key` is the attribute whose value it is, if any. */
struct rp_slice {
    const char *at;
    uint32_t n;
    uint32_t key;
};

struct rp_window_dim {
    int64_t size, stride, pad_low, pad_high, base_dilation, window_dilation;
    bool reversal;
};

struct rp_attr {
    union { /* borrowed from the input, in the program's arena, or static */
        const char *at;
        int64_t number;
        double real;
        const int64_t *ints;
        const uint32_t *ids;
        const struct rp_slice *texts;
        const struct rp_window_dim *window;
        const struct rp_replica_groups *groups;
        const struct rp_alias *aliases;
        const struct rp_sharding *sharding;
    };
    uint32_t n;   /* bytes or elements */
    uint32_t key; /* string */
    uint8_t type; /* enum rp_value_type */
};

struct rp_int_list {
    const int64_t *at;
    size_t n;
};

/* Which devices work together. */
enum rp_groups_form {
    RP_GROUPS_LISTED, /* ids, group after group */
    RP_GROUPS_IOTA, /* the numbers 0, 1, .. as an array of `dims`, transposed by `perm` and cut into
                       groups */
    RP_GROUPS_MESH  /* a named array of devices; a group runs along the axes of `parts` */
};
struct rp_mesh_axis {
    struct rp_slice name;
    int64_t size;
};
struct rp_mesh_part {
    uint32_t axis;
    int64_t before, size; /* a size of 0 means the whole axis */
};
struct rp_replica_groups {
    enum rp_groups_form form;
    size_t ngroups;          /* of listed and iota */
    int64_t group_size;      /* of iota */
    const uint32_t *begin;   /* of listed groups: ngroups + 1 positions in ids */
    struct rp_int_list ids;  /* of listed groups; of a mesh, its devices if they are listed */
    struct rp_int_list dims; /* of iota groups; of a mesh, its devices if they are such an array */
    struct rp_int_list perm; /* as many as dims, or none */
    const struct rp_mesh_axis *axes;
    size_t naxes;
    const struct rp_mesh_part *parts;
    size_t nparts;
};

enum rp_alias_kind { RP_ALIAS_UNSPECIFIED, RP_ALIAS_MAY, RP_ALIAS_MUST };
struct rp_alias { /* a part of the output that shares the memory of a part of an operand or
                     parameter */
    struct rp_int_list output, operand;
    int64_t number;
    enum rp_alias_kind kind;
};

/* The numbers of OpSharding.Type. */
enum rp_sharding_type {
    RP_SHARDING_REPLICATED,
    RP_SHARDING_MAXIMAL,
    RP_SHARDING_TUPLE,
    RP_SHARDING_OTHER,
    RP_SHARDING_MANUAL,
    RP_SHARDING_UNKNOWN,
    RP_SHARDING_UNREDUCED,
    RP_SHARDING_TYPES
};
struct rp_sharding {
    enum rp_sharding_type type;
    bool last_replicate;
    bool grouped, shard_like; /* shard_as or shard_like of `group` */
    int64_t group;
    struct rp_int_list tiles, devices; /* or, instead of devices: */
    struct rp_int_list dims, perm;     /* 0, 1, .. as an array, transposed */
    struct rp_int_list last;           /* types of the last dimensions */
    const struct rp_sharding *parts;   /* of a tuple */
    size_t nparts;
};
/* Returns the word of a type, or "". */
const char *rp_sharding_word(unsigned type);
#define RP_SHARDING_DEPTH 8 /* of tuples in tuples */

/* ---- making ---- */

static inline struct rp_attr rp_attr_flag(uint32_t key, bool value)
{
    return (struct rp_attr){.number = value, .key = key, .type = RP_VALUE_FLAG};
}
static inline struct rp_attr rp_attr_int(uint32_t key, int64_t value)
{
    return (struct rp_attr){.number = value, .key = key, .type = RP_VALUE_INT};
}
static inline struct rp_attr rp_attr_float(uint32_t key, double value)
{
    return (struct rp_attr){.real = value, .key = key, .type = RP_VALUE_FLOAT};
}
/* Makes a text, wire, word, string or config, which is borrowed. */
static inline struct rp_attr rp_attr_bytes(uint32_t key, enum rp_value_type type, const char *at,
                                           size_t n)
{
    return (struct rp_attr){.at = at, .n = (uint32_t)n, .key = key, .type = (uint8_t)type};
}
struct rp_attr rp_attr_word(uint32_t key, const char *word); /* borrowed */

/* These copy into the program's arena. If memory runs out, the value is NULL and
   rp_program_add_attr fails. */
struct rp_attr rp_attr_ints(struct rp_program *p, uint32_t key, const int64_t *at, size_t n);
struct rp_attr rp_attr_int_list(struct rp_program *p, uint32_t key, enum rp_value_type type,
                                const int64_t *at, size_t n);

/* Parses HLO text, which is borrowed, as the value of `key`; the result is raw text if it is not a
   valid value. Control predecessors and layout constraints need the reader's tables and stay text
   here. */
struct rp_attr rp_attr_parse(struct rp_program *p, uint32_t key, const char *at, size_t n);

/* ---- reading ---- */

enum rp_value_type rp_attr_type(uint32_t key); /* returns raw text for unknown keys */
enum { RP_ATTRF_QUIET = 1, RP_ATTRF_ZERO = 2, RP_ATTRF_ONE = 4 };
unsigned rp_attr_flags(uint32_t key); /* returns 0 for unknown keys */

static inline bool rp_attr_is_bytes(const struct rp_attr *attr)
{
    return attr->type <= RP_VALUE_WIRE ||
           (attr->type >= RP_VALUE_WORD && attr->type <= RP_VALUE_CONFIG);
}

/* Returns the integers of an integer or a list; false for other types. */
bool rp_attr_numbers(const struct rp_attr *attr, const int64_t **at, size_t *n);
/* Whether a word, string, flag or raw text equals `word`. */
bool rp_attr_is(const struct rp_attr *attr, const char *word);

/* Prints HLO text that ends with a NUL. It is appended, or passed in pieces to `sink` if that is
   set; a failure sticks. RP_VALUE_WIRE prints nothing. */
struct rp_chars {
    char *at;
    size_t n, cap;
    bool failed;
    void (*sink)(void *sink_arg, const char *text, size_t n);
    void *sink_arg;
};
void rp_chars_put(struct rp_chars *to, const char *text, size_t n);
void rp_chars_release(struct rp_chars *chars);
void rp_attr_print(const struct rp_program *p, const struct rp_attr *attr, struct rp_chars *to);
/* Prints the same into an arena; a failure sticks there, see rp_arena_text. */
const char *rp_attr_text(const struct rp_program *p, const struct rp_attr *attr,
                         struct rp_arena *arena);

/* Undoes the escapes of a string: \n \t \" \\ \x41 \101. out has room for n bytes. */
size_t rp_unescape(const char *in, size_t n, char *out);
