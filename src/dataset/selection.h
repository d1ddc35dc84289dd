/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The option --rank: lists of ranks such as "0,3,8-15", and which files need not be read for a
 * list, because their beginning or their name states another rank.
 */
#include "dataset/dataset.h"

/* Whether a list is well-formed; NULL is. */
enum rp_code rp_ranks_check(const char *list, struct rp_err *err);

/* Whether n is in a list that rp_ranks_check has accepted. */
bool rp_rank_wanted(const char *list, int32_t n);

/* Parses the option --window, "10ms..25ms"; each end may be omitted. */
enum rp_code rp_time_window_parse(const char *text, int64_t *from_ns, int64_t *to_ns,
                                  struct rp_err *err);

/* How the number of a source is known before it is read. */
enum rp_known_by { RP_KNOWN_NOT, RP_KNOWN_BY_HEAD, RP_KNOWN_BY_NAME };

struct rp_selection {
    enum rp_known_by by;
    int32_t number;
    bool skip; /* it is not wanted */
};

/*
 * Sets dataset->selection (in the arena) and ->nskipped if some sources need not be read. A number
 * in a name counts if no other name of the same input has it. If the file itself states another
 * number, that is noticed when a file of that kind is read (load.c).
 */
enum rp_code rp_selection_make(struct rp_dataset *dataset, const char *list, struct rp_arena *arena,
                               struct rp_err *err);
