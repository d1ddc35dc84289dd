/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Python's pickles, read as data. A pickle is a program for a small stack machine; most of its
 * instructions push plain values, some import and call whatever the file names. This reader knows
 * the first kind only (protocols 0 to 5): numbers, texts, bytes, lists, tuples, dicts and sets, and
 * collections.OrderedDict and defaultdict, which are read as dicts. Everything else is refused by
 * name, so that reading a pickle never runs anything.
 *
 * Values are numbered in the order of their creation. Texts point into the input unless they were
 * decoded. A value may occur several times, or inside itself, so callers must count their visits.
 */
#include "base/arena.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/vec.h"

#include <stdbool.h>

typedef uint32_t rp_pickle_id;

enum rp_pickle_type {
    RP_PICKLE_NONE,
    RP_PICKLE_BOOL,
    RP_PICKLE_INT,
    RP_PICKLE_HUGE, /* an integer beyond 64 bits; its value is not kept */
    RP_PICKLE_FLOAT,
    RP_PICKLE_TEXT,
    RP_PICKLE_BYTES,
    RP_PICKLE_LIST,
    RP_PICKLE_TUPLE,
    RP_PICKLE_DICT,
    RP_PICKLE_SET,
    RP_PICKLE_GLOBAL /* the name of a container that is read as a dict; inside the reader only */
};

struct rp_pickle_value {
    uint8_t type; /* enum rp_pickle_type */
    uint32_t n,
        cap; /* size of a text in bytes, or number of items; a dict has two items for each entry */
    union {
        int64_t i; /* also of a bool */
        double f;
        const char *text; /* not NUL-terminated */
        rp_pickle_id *items;
    } v;
};

struct rp_pickle {
    struct rp_arena arena;
    RP_VEC(struct rp_pickle_value) values;
    rp_pickle_id root;
    size_t used; /* bytes up to and including the end of the pickle */
    struct rp_map
        keys;        /* for large dicts: from the hash of dict and key to the item of the value */
    bool indexed;    /* all its items are in `keys` */
    uint64_t visits; /* number of items that rp_pickle_items has returned */
};

/* Reads one pickle; the bytes must outlive it. limits may be NULL for the defaults; token_bytes and
   depth (open marks) are respected, and no pickle makes more values than it has bytes. `out` must
   be released also after a failure; the error names the byte. */
enum rp_code rp_pickle_read(struct rp_pickle *out, const void *bytes, size_t n,
                            const struct rp_limits *limits, struct rp_err *err);
void rp_pickle_release(struct rp_pickle *p);

/* Whether bytes begin like a pickle of protocol 2 or later; earlier ones have no magic number. */
bool rp_pickle_begins(const uint8_t *head, size_t n);

static inline const struct rp_pickle_value *rp_pickle_at(const struct rp_pickle *p, rp_pickle_id id)
{
    return &p->values.at[id];
}

static inline bool rp_pickle_is_list(const struct rp_pickle *p, rp_pickle_id id)
{
    return id != RP_NONE &&
           (p->values.at[id].type == RP_PICKLE_LIST || p->values.at[id].type == RP_PICKLE_TUPLE);
}

/* The items of a list or tuple; there are none if it is anything else. `bytes` is the size of the
   input: shared lists could be visited far more often than that, so visits are counted, and too
   many give RP_LIMIT. */
enum rp_code rp_pickle_items(struct rp_pickle *p, rp_pickle_id list, size_t bytes,
                             const rp_pickle_id **items, size_t *n, struct rp_err *err);

/* The last value that was set for a text key of a dict; RP_NONE if there is none, or it is not a
   dict. */
rp_pickle_id rp_pickle_get(const struct rp_pickle *p, rp_pickle_id dict, const char *key);

/* An integer (or bool) in a dict, or `fallback`. */
int64_t rp_pickle_get_int(const struct rp_pickle *p, rp_pickle_id dict, const char *key,
                          int64_t fallback);

/* A text in a dict, empty if it has none. */
struct rp_pickle_text {
    const char *at;
    size_t n;
};
struct rp_pickle_text rp_pickle_get_text(const struct rp_pickle *p, rp_pickle_id dict,
                                         const char *key);
bool rp_pickle_text_is(struct rp_pickle_text text, const char *word);

/* ---- building the same values from another notation, such as JSON ---- */

enum rp_code rp_pickle_new_value(struct rp_pickle *p, const struct rp_pickle_value *value,
                                 rp_pickle_id *out, struct rp_err *err);
enum rp_code rp_pickle_append(struct rp_pickle *p, rp_pickle_id container,
                              const rp_pickle_id *items, size_t n, struct rp_err *err);
