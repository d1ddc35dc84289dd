/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The lower half of the JSON parser: cuts an input into indexed blocks. Only json_pull.c and
 * json_resync.c use it.
 *
 * A block ends right after one of { } [ ] , so that neither a token nor a key with its scalar value
 * crosses a block boundary; what follows the cut, the tail, begins the next block.
 *
 *     input   ..."ts": 1, "dur": 2, "na|me": "x", ...
 *     block   ..."ts": 1, "dur": 2,     n ends here
 *     tail                          "na
 *     next                          "name": "x", ...
 */
#include "io/json_pull.h"

enum rp_json_stop {
    RP_JSON_STOP_NONE,
    RP_JSON_STOP_END,   /* of the input */
    RP_JSON_STOP_INPUT, /* the input failed: rp_json_blocks_borrow_error() */
    RP_JSON_STOP_TOKEN  /* a token exceeds the limit */
};

/* This many entries equal to n follow the end of every index, so that looking ahead needs no
   check. */
#define RP_JSON_BLOCK_SENTINELS 8

struct rp_json_block {
    char *text;
    size_t n;        /* the length up to the cut; text[n] is readable */
    size_t filled;   /* with the tail */
    uint64_t offset; /* the offset of text[0] in the input */
    uint32_t *index;
    size_t index_n;
    uint64_t control_bytes;
    enum rp_json_stop
        stop;   /* if it is not NONE, this is the last block, text[n] is NUL, and it tells why */
    bool plain; /* without backslashes */
    bool truncated; /* in the last block: rp_input_truncated() */
    size_t cap;     /* of text */
};

struct rp_json_blocks;

enum rp_code rp_json_blocks_new(struct rp_input *in, const struct rp_json_options *options,
                                struct rp_json_blocks **out, struct rp_err *err);
void rp_json_blocks_free(struct rp_json_blocks *b);

/* Returns the next block, or NULL after the last one; releases the previous one. */
const struct rp_json_block *rp_json_blocks_next(struct rp_json_blocks *b);

/* Returns the error if the last block stopped with one. */
const struct rp_err *rp_json_blocks_borrow_error(const struct rp_json_blocks *b);

/* Returns where an element may begin in text[0..n), or n; `all` means that the input ends there.
 * *keep is how much of the end must be examined again with more text. */
typedef size_t rp_json_find_fn(const void *user, const char *text, size_t n, bool all,
                               size_t *keep);

/*
 * Discards the index from byte `from` of the current block on, and begins a new one, outside
 * strings, at the position that find returns; the next block starts there. *skipped is the
 * distance; *found is false if there is no such position, and then there are no more blocks.
 * Continues on the calling thread, with small blocks at first, so that a thousand restarts are
 * affordable.
 */
enum rp_code rp_json_blocks_restart(struct rp_json_blocks *b, size_t from, rp_json_find_fn *find,
                                    const void *user, bool *found, uint64_t *skipped);

/* Reads the input to its end and returns RP_OK or its error. If keep is true, what was read is held
 * for a restart, up to a limit; otherwise no restart is possible. Continues on the calling thread.
 */
enum rp_code rp_json_blocks_drain(struct rp_json_blocks *b, bool keep, struct rp_err *err);
