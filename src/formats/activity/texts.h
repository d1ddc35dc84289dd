/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A recording has a table of texts by number for all its names. It also holds what no trace should
 * have (captured output, environments), so a text gets into the trace when an event uses it, not
 * before.
 */
#include "base/hash.h"
#include "formats/activity/activity.h"

struct rp_texts {        /* all zero: empty */
    struct rp_map place; /* from the number of a text to its index in list */
    RP_VEC(struct rp_texts_entry) list;
    RP_VEC(char) bytes;
};

/* Adds a text. If the number is known already, it keeps its text. */
enum rp_code rp_texts_add(struct rp_texts *t, int64_t number, const char *text, size_t n,
                          struct rp_err *err);
void rp_texts_release(struct rp_texts *t);

/* The text with a terminator, or "" if there is none. */
const char *rp_texts_borrow(const struct rp_texts *t, int64_t number, size_t *n);
/* Interns the text in the trace; 0 if there is none. */
enum rp_code rp_texts_intern(struct rp_texts *t, struct rp_activity *a, int64_t number, rp_str *out,
                             struct rp_err *err);
