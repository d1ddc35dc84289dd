/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A table of texts by number, as recordings have one for all names. It also holds what no trace
 * should have (captured output, environments), so a text gets into the trace when an event uses it,
 * not before.
 */
#include "base/hash.h"
#include "formats/activity/activity.h"

struct rp_texts {        /* all zero: empty */
    struct rp_map place; /* of a number -> index in list */
    RP_VEC(struct rp_texts_entry) list;
    RP_VEC(char) bytes;
};

/* A number that is known already keeps its text. */
enum rp_code rp_texts_add(struct rp_texts *t, int64_t number, const char *text, size_t n,
                          struct rp_err *err);
void rp_texts_release(struct rp_texts *t);

/* Terminated; "" where there is none. */
const char *rp_texts_borrow(const struct rp_texts *t, int64_t number, size_t *n);
/* The same in the trace; 0 where there is none. */
enum rp_code rp_texts_intern(struct rp_texts *t, struct rp_activity *a, int64_t number, rp_str *out,
                             struct rp_err *err);
