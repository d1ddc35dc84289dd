/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The records of a structured log of PyTorch (TORCH_TRACE), one after the other:
 *
 *     V1118 15:12:55.131000 17703 torch/_dynamo/guards.py:6378] {"artifact": {...}, "frame_id": 0,
 *           "frame_compile_id": 1, "attempt": 0, "has_payload": "be3f56ac..."}
 *     <TAB>the payload, whose lines begin
 *     <TAB>with a tab
 *
 * Memory: one line and one wanted payload, each at most limits.token_bytes. If a log is truncated,
 * at most its last record is lost.
 */
#include "base/limits.h"
#include "formats/torch_trace/snip.h"
#include "io/input.h"

#define RP_TORCH_NO_ID (-1)

struct rp_torch_record {
    struct rp_snip kind, value; /* "artifact", {...}; borrowed until the callback returns */
    struct rp_snip md5;         /* md5.n is 0 if there is no payload */
    int64_t pid, rank;          /* RP_TORCH_NO_ID if not given, as for all numbers here */
    int64_t frame, compile, attempt, autograd;
    uint64_t number; /* in the log, from 0 */
};

struct rp_torch_sink {
    void *user;
    /* sets *keep, which is false before, if the payload is wanted. */
    enum rp_code (*record)(void *user, const struct rp_torch_record *record, bool *keep,
                           struct rp_err *err);
    /* gets the payload of the record before. */
    enum rp_code (*payload)(void *user, struct rp_snip text, struct rp_err *err);
};

struct rp_torch_counts {
    uint64_t bytes, records;
    uint64_t bad_lines; /* lines that are neither records nor payload */
    uint64_t bad_md5;   /* payloads that differ from their checksum */
    uint64_t too_long;  /* lines and payloads longer than limits.token_bytes, which were skipped */
    bool cut;           /* the log ends inside a record */
};

/* limits may be NULL for the defaults. */
enum rp_code rp_torch_records(struct rp_input *in, const struct rp_limits *limits,
                              const struct rp_torch_sink *sink, struct rp_torch_counts *counts,
                              struct rp_err *err);

/* Whether a line in the head of a file begins a record; other programs may have written lines,
   too. */
bool rp_torch_begins(const char *text, size_t n);
