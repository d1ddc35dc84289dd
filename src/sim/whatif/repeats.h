/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether steps launch the same again and again, which what can be captured or compiled once must
 * do, and which part of them does (sim/model/pieces.h).
 */
#include "sim/whatif/whatifs.h"

enum rp_sim_repeating {
    RP_REPEATS_UNKNOWN, /* no step is marked, or what launches was not recorded */
    RP_REPEATS_ONCE,    /* one step is judged: nothing shows that the next one is the same */
    RP_REPEATS_WHOLE,   /* the host waits for the device once in a step or less */
    RP_REPEATS_PIECES,  /* it waits more often, or some pieces do not come again */
    RP_REPEATS_MANY,    /* ... and so many pieces differ that nobody captures each */
    RP_REPEATS_SELDOM   /* most launches do not come again */
};

/* Of the rank of which the least comes again. */
struct rp_sim_repeats {
    enum rp_sim_repeating how;
    uint32_t steps, variants; /* judged steps, and different sequences of launches among them */
    uint32_t launches;        /* of compute in a step, on average */
    uint32_t pieces;          /* in a step, on average, as the next two */
    uint32_t waits;           /* of the host, between launches */
    uint32_t kinds, longest;  /* different pieces that come again, and launches of the longest */
    double share;             /* of the launches: come again */
    const char *waiting;      /* the operator or call that waits most often; NULL: none does */
};

/* Memory in the arena. O(pieces), and O(nodes) where the host waits. */
enum rp_code rp_sim_repeats_find(const struct rp_sim_run *run, struct rp_arena *arena,
                                 struct rp_sim_repeats *out, struct rp_err *err);

/* "the 17 judged steps launch the same 1167 kernels in the same order"; NULL: it is not known. */
const char *rp_sim_repeats_text(const struct rp_sim_repeats *r, struct rp_arena *arena);

/* "the host waits for the device 3 times in a step (aten::item)". */
const char *rp_sim_waits_text(const struct rp_sim_repeats *r, struct rp_arena *arena);

/* Whether what the host reads decides what it launches, as far as the steps show. */
bool rp_sim_reads_decide(const struct rp_sim_repeats *r);

/* By node: 0, or a number of the piece to which it belongs: work of the host between its first and
   its last launch, and what these launch. `again`: only of those that come again. In the arena. */
enum rp_code rp_sim_list_pieces(const struct rp_sim_run *run, bool again, struct rp_arena *arena,
                                uint32_t **out, struct rp_err *err);

/* The condition of what compiles: shapes repeat, and the host does not wait within a step, or what
   is between its waits can be compiled (in_pieces). */
enum rp_whatif_verdict rp_sim_compiles(const struct rp_sim_run *run, bool in_pieces,
                                       struct rp_err *why);
