/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Small JSON texts in memory, value by value, without allocating: a value is a snip of the text,
 * and is only parsed further on request. Brackets and strings must be balanced; what is between
 * them is not checked.
 */
#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_snip {
    const char *at;
    size_t n;
};

struct rp_snip_walk { /* rp_snip_walk: a walk over the members of an object, or the elements of an
                         array */
    const char *at, *end;
    bool object, failed;
};

/* These return false if the value is not a container of that kind. */
bool rp_snip_object(struct rp_snip value, struct rp_snip_walk *out);
bool rp_snip_array(struct rp_snip value, struct rp_snip_walk *out);
/* Takes the next member; key is empty in an array. Returns false after the last one, or if the text
   is malformed. */
bool rp_snip_next(struct rp_snip_walk *walk, struct rp_snip *key, struct rp_snip *value);
/* After the walk: whether it came to the closing bracket, and only space follows. */
bool rp_snip_whole(const struct rp_snip_walk *walk);

/* A member of an object; n is 0 if there is none. */
struct rp_snip rp_snip_member(struct rp_snip object, const char *key);

bool rp_snip_is(struct rp_snip s, const char *text); /* the same bytes */
bool rp_snip_begins(struct rp_snip s, const char *text);
bool rp_snip_has(struct rp_snip s, const char *text); /* anywhere */
/* Whether it may stand in a name: a letter, a digit or an underscore. */
static inline bool rp_snip_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Reads a number without a fraction; false if it is not one. */
bool rp_snip_int(struct rp_snip value, int64_t *out);
/* The decoded text of a string in the arena; NULL if it is not a string. A failure stays in the
   arena. */
const char *rp_snip_text(struct rp_snip value, struct rp_arena *arena);

/* Removes the first line of a text and returns it; false if there is none left. */
bool rp_snip_line(struct rp_snip *rest, struct rp_snip *line);
/* Cuts off spaces and tabs on both sides. */
struct rp_snip rp_snip_trim(struct rp_snip s);
/* Copies a text with a NUL into the arena; a failure stays in the arena. */
const char *rp_snip_copy(struct rp_snip s, struct rp_arena *arena);
