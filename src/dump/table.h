/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The table of flags and variables (flags_xla.def, flags_other.def), and what it says about one. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rp_flag_type { RP_FLAG_BOOL, RP_FLAG_INT, RP_FLAG_FLOAT, RP_FLAG_TEXT };

enum rp_flag_kind {
    RP_FLAG_XLA,     /* in XLA_FLAGS */
    RP_FLAG_XLA_OLD, /* was in XLA_FLAGS before the first release of the table */
    RP_FLAG_TF,      /* in TF_XLA_FLAGS */
    RP_FLAG_VARIABLE /* an environment variable */
};

/* The releases whose flags are known, oldest first. */
#define RP_XLA_RELEASES 4
struct rp_xla_release {
    const char *name; /* "0.4.30", of jaxlib */
    uint32_t version; /* as rp_release_number makes it */
};
extern const struct rp_xla_release rp_xla_releases[RP_XLA_RELEASES];

struct rp_flag {
    enum rp_flag_kind kind;
    const char *framework, *name;
    enum rp_flag_type type;
    const char *fallback;          /* its default value */
    bool in[RP_XLA_RELEASES];      /* for XLA: the releases that accept it */
    const char *meaning, *caution; /* caution NULL: none */
};

/* All flags, in the order of the files; n is their number. */
const struct rp_flag *rp_flags(size_t *n);
/* The flag of that name, or NULL. */
const struct rp_flag *rp_flag_find(const char *name, size_t len);
/* The most similar name among flags of that kind; "" if none is similar. */
const char *rp_flag_nearest(enum rp_flag_kind kind, const char *name);

/* A number for "0.4.30": 0 * 10^6 + 4 * 10^3 + 30; other text after the numbers is ignored. */
uint32_t rp_release_number(const char *text);

/* Whether the XLA of a jaxlib of that age knows a flag; version 0: not known. */
enum rp_flag_known { RP_FLAG_UNKNOWN, RP_FLAG_UNSURE, RP_FLAG_KNOWN };
enum rp_flag_known rp_flag_known_to(const struct rp_flag *flag, uint32_t version);

/* Whether the text is a value of the flag's type. */
bool rp_flag_takes(const struct rp_flag *flag, const char *value, size_t len);
