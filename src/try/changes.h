/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The changes that can be made from outside, and the facts known about the program. The hook makes
 * a change by its name (hook.py); some changes are also, or only, environment variables of the
 * program.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_try_facts { /* facts that the probe found: keys and values */
    size_t n;
    struct {
        char key[32], value[224];
    } at[64];
};

void rp_try_facts_add(struct rp_try_facts *facts, const char *key, const char *value);
const char *rp_try_fact(const struct rp_try_facts *facts, const char *key); /* "" if not known */
int64_t rp_try_fact_number(const struct rp_try_facts *facts, const char *key);
bool rp_try_is_of(const struct rp_try_facts *facts, const char *framework); /* "torch" */

enum rp_try_same {
    RP_TRY_SAME_ROUNDING,
    RP_TRY_SAME_KERNELS, /* other kernels, which round differently, or use TF32 if the program
                            computes in it */
    RP_TRY_SAME_TF32,
    RP_TRY_SAME_BF16
};

struct rp_try_change {
    const char *name;
    const char *group; /* of several changes with one group, which exclude one another, the best is
                          taken; "" if none */
    const char *what_if;   /* the what-if of `simulate`, or NULL */
    enum rp_try_same same; /* what the update of the parameters must equal */
    const char *variable,
        *setting;      /* a variable of the environment, in which "%s" is the value, or NULL */
    const char *lines; /* of rp_try_lines */
    /* Says why it is not tried, or returns NULL and writes the value with which it is tried to
       `value`. */
    const char *(*unfit)(const struct rp_try_facts *facts, char *value, size_t cap);
};

#define RP_TRY_CHANGES_MOST 32
extern const struct rp_try_change rp_try_changes[];
size_t rp_try_change_count(void);
/* Returns the lines for the script, in which "%s" is the value. */
const char *rp_try_lines(const struct rp_try_change *change, const struct rp_try_facts *facts);
const struct rp_try_change *rp_try_change_find(const char *name, size_t len);
