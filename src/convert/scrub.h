/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of `scrub` share: what was removed is counted, and with --check each place is
 * noted, with the line of the file that holds it.
 */
#include "convert/convert.h"

#include <pthread.h>

/* What --check found. */
struct rp_left {
    const char *file, *kind, *where, *text;
    int64_t event, byte, line, offset; /* RP_ABSENT_I64: not known */
    size_t source, number;             /* their order */
};

struct rp_scrub {
    bool names, check;
    struct rp_arena *arena; /* of the result: with --check */
    pthread_mutex_t lock;   /* for the next two, and the arena */
    int64_t counts[RP_SECRETS];
    RP_VEC(struct rp_left) left;
};

/* One file. Set scrub, and open it. */
struct rp_scrub_file {
    struct rp_scrub *scrub;
    const char *name;
    size_t index; /* of the source */
    int64_t counts[RP_SECRETS];
    size_t nleft;
    struct rp_input *in; /* with --check: its content; bytes NULL: not to be had */
    const char *bytes;
    size_t n;
    bool is_text;
    uint64_t searched;
};

void rp_scrub_open(struct rp_scrub_file *f, const struct rp_dataset *dataset, size_t index);
/* Adds its counts to those of all. */
void rp_scrub_close(struct rp_scrub_file *f);

/* Notes what was found in a text since the counts were `before`; clean: the text without it.
   event may be RP_ABSENT_I64. */
enum rp_code rp_scrub_note(struct rp_scrub_file *f, const int64_t before[RP_SECRETS],
                           const char *where, int64_t event, const char *text, size_t n,
                           const struct rp_emit *clean, struct rp_err *err);

/* Writes a log of torch.compile without secrets; to NULL: it is only checked. */
enum rp_code rp_scrub_log(struct rp_input *in, struct rp_out *to, struct rp_scrub_file *file,
                          struct rp_err *err);
