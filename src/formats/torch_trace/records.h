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
 * Memory: one line and one payload that is asked for, both at most limits.token_bytes. Of a log
 * that is cut anywhere the last record is lost at most.
 */
#include "base/limits.h"
#include "formats/torch_trace/snip.h"
#include "io/input.h"

#define RP_TORCH_NO_ID (-1)

struct rp_torch_record {
    struct rp_snip kind, value; /* "artifact", {...}; borrowed until the callback returns */
    struct rp_snip md5;         /* n 0: there is no payload */
    int64_t pid, rank;          /* RP_TORCH_NO_ID: not given, as of all numbers */
    int64_t frame, compile, attempt, autograd;
    uint64_t number; /* in the log, from 0 */
};

struct rp_torch_sink {
    void *user;
    /* *keep: whether the payload is wanted; it is false before the call. */
    enum rp_code (*record)(void *user, const struct rp_torch_record *record, bool *keep,
                           struct rp_err *err);
    /* The payload of the record before. */
    enum rp_code (*payload)(void *user, struct rp_snip text, struct rp_err *err);
};

struct rp_torch_counts {
    uint64_t bytes, records;
    uint64_t bad_lines; /* that are no records and no payload */
    uint64_t bad_md5;   /* payloads that are not what the record says */
    uint64_t too_long;  /* lines and payloads beyond limits.token_bytes: passed over */
    bool cut;           /* the log ends inside a record */
};

/* limits: NULL for the defaults. */
enum rp_code rp_torch_records(struct rp_input *in, const struct rp_limits *limits,
                              const struct rp_torch_sink *sink, struct rp_torch_counts *counts,
                              struct rp_err *err);

/* Whether a line of the head of a file begins a record: other programs may write into it, too. */
bool rp_torch_begins(const char *text, size_t n);
