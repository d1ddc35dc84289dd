/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `idle`: why devices do nothing. gaps.c finds the gaps of a rank and the cause of each; idle.c has
 * the row of the question and adds the gaps up by cause, for each rank and for all ranks.
 */
#include "base/arena.h"
#include "explain/idle/answer.h"
#include "explain/idle/waits.h"
#include "facts/idle/gaps.h"

#include <reprise/result.h>

/* The part of a rank. */
struct rp_idle_part {
    size_t ndevices, nstreams;
    struct rp_idle_rank *devices; /* by number */
    struct rp_idle_stream *streams;
    struct rp_host_waits waits; /* waits in the span, if there is no device work */
    int64_t span_ns;            /* its length */
    int64_t collectives_ns;     /* time of the span in which a thread carries a collective */
    const char *outside;        /* the part of the recording that does not count, or NULL */
};

/* streams.c: lists streams by device, the busiest first; rows and texts are in the arena. */
enum rp_code rp_idle_find_streams(const struct rp_work *work, struct rp_arena *arena,
                                  struct rp_idle_stream **out, size_t *nout, struct rp_err *err);

/* Adds gaps up by cause and class, most time first; rows and texts are in the arena. */
enum rp_code rp_idle_add_up(const struct rp_work *work, const rp_gap_vec *gaps,
                            struct rp_arena *arena, struct rp_idle_cause **out, size_t *nout,
                            struct rp_err *err);
