/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds whether steps launch the same work again and again, as required for capturing or compiling
 * it once, and which part of them does (sim/model/pieces.h).
 */
#include "sim/whatif/whatifs.h"

enum rp_sim_repeating {
    RP_REPEATS_UNKNOWN, /* no step is marked, or launches were not recorded */
    RP_REPEATS_ONCE,    /* one step is judged, so nothing shows that the next one is the same */
    RP_REPEATS_WHOLE,   /* the host waits for the device at most once in a step */
    RP_REPEATS_PIECES,  /* it waits more often, or some pieces are not repeated */
    RP_REPEATS_MANY,    /* ... and there are so many different pieces that nobody captures each */
    RP_REPEATS_SELDOM   /* most launches are not repeated */
};

/* For the rank with the fewest repeated launches. */
struct rp_sim_repeats {
    enum rp_sim_repeating how;
    uint32_t steps, variants; /* judged steps, and different sequences of launches among them */
    uint32_t launches;        /* launches of compute in a step, on average */
    uint32_t pieces;          /* in a step, on average, like the next two */
    uint32_t waits;           /* waits of the host between launches */
    uint32_t kinds, longest;  /* different pieces that are repeated, and launches in the longest */
    double share;             /* share of the launches that are repeated */
    uint32_t turns;           /* reads that decide what is uploaded (facts/work/turns.h) */
    int64_t waited_ns;        /* how long the host waits in a step, on average */
    const char *line;         /* the frame of the program in which it waits most often, or NULL */
    const char *waiting;      /* the operator or call that waits most often; NULL if none does */
};

/* Memory is in the arena. O(pieces), and O(nodes) if the host waits. */
enum rp_code rp_sim_repeats_find(const struct rp_sim_run *run, struct rp_arena *arena,
                                 struct rp_sim_repeats *out, struct rp_err *err);

/* Writes "the 17 judged steps launch the same 1167 kernels in the same order"; NULL if it is not
   known. */
const char *rp_sim_repeats_text(const struct rp_sim_repeats *r, struct rp_arena *arena);

/* "the host waits for the device 3 times in a step (aten::item)". */
const char *rp_sim_waits_text(const struct rp_sim_repeats *r, struct rp_arena *arena);

/* Whether the values that the host reads decide what it launches, as far as the steps show. */
bool rp_sim_reads_decide(const struct rp_sim_repeats *r);

/* By node: the number of its piece, or 0. A piece has the host's work between its first and its
   last launch, and what these launch. `again`: only pieces that are repeated. In the arena. */
enum rp_code rp_sim_list_pieces(const struct rp_sim_run *run, bool again, struct rp_arena *arena,
                                uint32_t **out, struct rp_err *err);

/* The condition for compiling: shapes are repeated, and the host does not wait within a step, or
   the parts between its waits can be compiled (in_pieces). */
enum rp_whatif_verdict rp_sim_compiles(const struct rp_sim_run *run, bool in_pieces,
                                       struct rp_err *why);
