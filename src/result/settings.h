/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_RESULT_SETTINGS_H
#define RP_RESULT_SETTINGS_H
/*
 * The settings of one call: checked against the option table, then read by name. A name that is not
 * in the table reads as absent.
 */
#include "base/arena.h"

#include <reprise/question.h>
#include <stdbool.h>

struct rp_settings {
    const struct rp_option *options;
    const struct rp_setting *given; /* checked; borrowed from the caller */
    size_t ngiven;
};

/* Checks every setting; the array must outlive `out`. */
enum rp_code rp_settings_init(struct rp_settings *out, const struct rp_option *options,
                              const struct rp_setting *given, size_t ngiven, struct rp_err *err);

bool rp_settings_has(const struct rp_settings *s, const char *name); /* given by the user */
bool rp_settings_flag(const struct rp_settings *s, const char *name);

/* The last value given, else the default, of an INT, COUNT, BYTES or DURATION (in ns); else 0. */
int64_t rp_settings_int(const struct rp_settings *s, const char *name);
/* An integer option where 0 means no limit: its value, or SIZE_MAX. */
size_t rp_settings_limit(const struct rp_settings *s, const char *name);
double rp_settings_ratio(const struct rp_settings *s, const char *name); /* 0.02 for "2%" */
/* The last value given, else the default, else NULL. Borrowed. */
const char *rp_settings_text(const struct rp_settings *s, const char *name);

/* The i-th value of an option with RP_OPT_REPEAT, or NULL. */
const char *rp_settings_nth(const struct rp_settings *s, const char *name, size_t i);

#endif
