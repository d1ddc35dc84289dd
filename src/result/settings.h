/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The settings of one call are checked against the option table, then read by name. A name that is
 * not in the table reads as absent.
 */
#include "base/arena.h"

#include <reprise/question.h>
#include <stdbool.h>

/* Which options were read: a result is the same for all settings that agree on these. */
#define RP_SETTINGS_READS_MOST 48
struct rp_settings_reads {
    size_t n;
    struct {
        const char *name;     /* the name in the option table */
        bool value, presence; /* whether its value, or whether it was given, was read */
    } at[RP_SETTINGS_READS_MOST];
};

struct rp_settings {
    const struct rp_option *options;
    const struct rp_setting *given; /* checked, and borrowed from the caller */
    size_t ngiven;
    struct rp_settings_reads *reads; /* where the reads of one thread are noted, or NULL */
};

/* One setting with its values, as it is kept (result/part.h). */
struct rp_setting_read {
    const char *name;
    bool value, presence;
    size_t nvalues; /* number of given values; 0 if the default counts */
    const char **values;
};
extern const struct rp_type rp_setting_read_type;

/* Checks every setting; the array must outlive `out`. */
enum rp_code rp_settings_init(struct rp_settings *out, const struct rp_option *options,
                              const struct rp_setting *given, size_t ngiven, struct rp_err *err);

bool rp_settings_has(const struct rp_settings *s, const char *name); /* given by the user */
bool rp_settings_flag(const struct rp_settings *s, const char *name);

/* Returns the last value given of an INT, COUNT, BYTES or DURATION (in ns), otherwise the default,
   otherwise 0. */
int64_t rp_settings_int(const struct rp_settings *s, const char *name);
/* Returns the value of an integer option for which 0 means no limit, or SIZE_MAX. */
size_t rp_settings_limit(const struct rp_settings *s, const char *name);
double rp_settings_ratio(const struct rp_settings *s, const char *name); /* 0.02 for "2%" */
/* Returns the last value given, otherwise the default, otherwise NULL. Borrowed. */
const char *rp_settings_text(const struct rp_settings *s, const char *name);

/* Returns the values of the options that were read, in the arena; NULL if memory ran out. */
struct rp_setting_read *rp_settings_values(const struct rp_settings *s,
                                           const struct rp_settings_reads *reads,
                                           struct rp_arena *arena);

/* Whether the settings agree with those read by others; a smaller 'limit' does. */
bool rp_settings_agree(const struct rp_settings *s, const struct rp_setting_read *reads, size_t n);

/* Returns the i-th value of an option with RP_OPT_REPEAT, or NULL. */
const char *rp_settings_nth(const struct rp_settings *s, const char *name, size_t i);
