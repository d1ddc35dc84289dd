/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The changes that can be made from outside, and what is known about the program. The hook makes a
 * change by its name (hook.py); some are environment variables of the program as well, or only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_try_facts { /* what the probe told: a key, and a value */
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
    RP_TRY_SAME_KERNELS, /* other kernels: rounding, or TF32 where the program computes in it */
    RP_TRY_SAME_TF32,
    RP_TRY_SAME_BF16
};

struct rp_try_change {
    const char *name;
    const char *group;     /* of several that exclude one another, the best is taken; "" none */
    const char *what_if;   /* of `simulate`, or NULL */
    enum rp_try_same same; /* what the update of the parameters is compared with */
    const char *variable, *setting; /* of the environment: "%s" is the value; or NULL */
    const char *lines;              /* of rp_try_lines */
    /* Why it is not tried, or NULL; the value it is tried with goes to `value`. */
    const char *(*unfit)(const struct rp_try_facts *facts, char *value, size_t cap);
};

#define RP_TRY_CHANGES_MOST 32
extern const struct rp_try_change rp_try_changes[];
size_t rp_try_change_count(void);
/* To put into the script: "%s" is the value. */
const char *rp_try_lines(const struct rp_try_change *change, const struct rp_try_facts *facts);
const struct rp_try_change *rp_try_change_find(const char *name, size_t len);
