/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A JSON value as a tree in memory, for files that are small, and for the elements of large ones
 * one at a time: what a record holds is asked by key, in any order.
 *
 *     RP_TRY(rp_json_tree_read(in, arena, &root, err));
 *     name = rp_json_text(rp_json_get(root, "name"));
 *     RP_JSON_EACH (item, rp_json_get(root, "items"))
 *         sum += rp_json_int(rp_json_get(item, "size"), 0);
 *
 * There is always a node: a missing one has the kind RP_JSON_NONE and is empty. Everything is in
 * the arena.
 */
#include "base/arena.h"
#include "io/json_pull.h"

struct rp_json_node {
    const char *key;  /* decoded; "" in an array, and at the root */
    const char *text; /* of a string (decoded) or a number; otherwise "" */
    uint32_t len;     /* of the text */
    uint32_t n;       /* of an object or an array: the number of its values */
    uint8_t kind;     /* enum rp_json_kind */
    bool is_integer;  /* a number without fraction and exponent */
    struct rp_json_node *first, *next;
};

#define RP_JSON_EACH(item, container) \
    for (const struct rp_json_node *item = (container)->first; item; item = item->next)

/* Reads the next value of a parser, which is at a field or an element, or at its beginning. */
enum rp_code rp_json_tree(struct rp_json *json, struct rp_arena *arena,
                          const struct rp_json_node **out, struct rp_err *err);
/* Reads all of an input. */
enum rp_code rp_json_tree_read(struct rp_input *in, struct rp_arena *arena,
                               const struct rp_json_node **out, struct rp_err *err);
/* Reads an input that is one object or one array (kind): each value becomes a tree that lives until
   `each` returns, so files may have any size. */
enum rp_code rp_json_each(struct rp_input *in, enum rp_json_kind kind,
                          enum rp_code (*each)(const struct rp_json_node *node, void *user),
                          void *user, struct rp_err *err);
/* Reads all of a text; `name` is for messages. */
enum rp_code rp_json_tree_parse(const char *name, const void *bytes, size_t n,
                                struct rp_arena *arena, const struct rp_json_node **out,
                                struct rp_err *err);

/* Returns the value of a key; of equal keys the last counts. */
const struct rp_json_node *rp_json_get(const struct rp_json_node *object, const char *key);
/* Returns NULL if it is not a string. */
const char *rp_json_text(const struct rp_json_node *node);
/* Returns `otherwise` if it is not an integer of 64 bits. */
int64_t rp_json_int(const struct rp_json_node *node, int64_t otherwise);
/* Returns `otherwise` if it is not a number. */
double rp_json_float(const struct rp_json_node *node, double otherwise);

/* What a record takes from an object: one row for each member, which is named like its key. */
struct rp_json_row {
    const char *key;
    uint8_t
        want; /* RP_JSON_STRING: const char *; _NUMBER: int64_t; _TRUE: bool; _ARRAY: the node */
    uint32_t at;
};
#define RP_JSON_ROW(type, member, want)                 \
    {                                                   \
#member, RP_JSON_##want, offsetof(type, member) \
    }
#define RP_JSON_ROWS_END \
    {                    \
        NULL, 0, 0       \
    }

/* Members whose keys are missing, or null, stay as they are. Returns RP_FORMAT if a value is of
   another kind; `where` is for that message: "'rank' in the manifest is not an integer". */
enum rp_code rp_json_fill(const struct rp_json_node *object, const struct rp_json_row *rows,
                          const char *where, void *record, struct rp_err *err);
