/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/whatif/repeats.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "result/print_units.h"
#include "sim/whatif/nodes.h"

#include <math.h>

#define SELDOM_SHARE 0.5
RP_DECISION(SELDOM_SHARE, "of the launches",
            "where fewer come again, the next step is more likely a new one than one that was "
            "captured",
            "sim/most_launches_come_again");

#define KINDS_MOST 16
RP_DECISION(
    KINDS_MOST, "different pieces of a step",
    "each is a graph of its own, with inputs of its own: recordings of steps that were "
    "captured have 1 to 4, a Gaussian process 15, an adaptive solver, which nobody captures, 35",
    "sim/few_graphs_can_be_captured");

/* tally: the sums of a rank. */
struct tally {
    uint32_t steps, variants, pieces, joined, launches, again;
    uint32_t seen, kinds, longest; /* kinds are numbered in the order of their first pieces */
};

static bool comes_again(const struct rp_sim_piece *p, const struct tally *t)
{
    return p->uses > 1 || t->steps == 1;
}

/* Counts different steps; a single different one may be the last batch, or a validation. */
static enum rp_code count_variants(const struct rp_sim_part *part, struct tally *t,
                                   struct rp_err *err)
{
    struct rp_map known = {0};
    enum rp_code code = RP_OK;

    for (size_t i = 0, end; i < part->pieces.n && code == RP_OK; i = end) {
        uint64_t token = 1;
        uint32_t number = 0;

        for (end = i; end < part->pieces.n && part->pieces.at[end].step == part->pieces.at[i].step;
             end++)
            token = rp_hash_join(token, part->pieces.at[end].kind);
        t->steps++;
        code = rp_map_intern(&known, token, t->variants, &number, err);
        t->variants += number == t->variants;
    }
    rp_map_release(&known);
    return code;
}

static enum rp_code tally_rank(const struct rp_sim_part *part, struct tally *t, struct rp_err *err)
{
    *t = (struct tally){0};
    RP_TRY(count_variants(part, t, err));
    for (size_t i = 0; i < part->pieces.n; i++) {
        const struct rp_sim_piece *p = &part->pieces.at[i];

        t->pieces++;
        t->joined += p->open;
        t->launches += p->launches;
        t->again += comes_again(p, t) ? p->launches : 0;
        t->kinds += comes_again(p, t) && p->kind == t->seen;
        t->longest = comes_again(p, t) && p->launches > t->longest ? p->launches : t->longest;
        t->seen += p->kind == t->seen;
    }
    return RP_OK;
}

static uint32_t in_a_step(uint32_t n, const struct tally *t)
{
    return (uint32_t)lround((double)n / t->steps);
}

/* If the steps are repeated, except possibly one, the whole step can be. */
static enum rp_sim_repeating judge(const struct tally *t, const struct rp_sim_repeats *r)
{
    if (r->share <= SELDOM_SHARE)
        return RP_REPEATS_SELDOM;
    if (r->waits > 1 || r->share * t->steps < t->steps - 1)
        return r->waits > 1 && t->kinds > KINDS_MOST ? RP_REPEATS_MANY : RP_REPEATS_PIECES;
    return t->steps == 1 ? RP_REPEATS_ONCE : RP_REPEATS_WHOLE;
}

/* ------------------------------------------------------------------ what waits */

static enum rp_code find_waiting(const struct rp_sim_run *run, struct rp_arena *arena,
                                 struct rp_sim_repeats *r, struct rp_err *err)
{
    uint32_t *count = RP_ARENA_NEW(arena, uint32_t, run->graph->names.n + 1), most = 0;
    bool *counted = RP_ARENA_NEW(arena, bool, run->nnodes + 1);
    int64_t all_ns = 0;

    RP_TRY(rp_err_need(count && counted ? count : NULL, err, "simulating"));
    for (size_t k = 0; k < run->waits.n; k++) {
        uint32_t i = run->waits.at[k].to;

        if (i >= run->nnodes || !rp_sim_in_steps(run, i) ||
            rp_sim_node(run, i)->kind != RP_SG_RUNTIME || counted[i])
            continue;
        counted[i] = true;
        rp_ns_add(&all_ns, rp_sim_waited_ns(run, i));
        uint32_t name =
            rp_sim_note_of(run, i)->op ? rp_sim_note_of(run, i)->op : rp_sim_node(run, i)->name;
        if (++count[name] > most) {
            most = count[name];

            /* The operator around the wait, or else the call. */
            uint32_t op = rp_sim_note_of(run, i)->op;
            r->waiting = op ? run->graph->names.at[op] : rp_sim_node_name(run, i);
        }
    }
    r->waited_ns =
        all_ns / (int64_t)run->nranks / (run->parts[0]->nsteps ? run->parts[0]->nsteps : 1);
    r->line = run->parts[0]->wait_line;
    return RP_OK;
}

/* ------------------------------------------------------------------ the whole */

enum rp_code rp_sim_repeats_find(const struct rp_sim_run *run, struct rp_arena *arena,
                                 struct rp_sim_repeats *out, struct rp_err *err)
{
    *out = (struct rp_sim_repeats){0};
    for (size_t rank = 0; rank < run->nranks; rank++) {
        struct rp_sim_repeats r = {0};
        struct tally t;

        RP_TRY(tally_rank(run->parts[rank], &t, err));
        if (!t.launches)
            continue;
        r = (struct rp_sim_repeats){.steps = t.steps,
                                    .variants = t.variants,
                                    .launches = in_a_step(t.launches, &t),
                                    .pieces = in_a_step(t.pieces, &t),
                                    .waits = in_a_step(t.pieces - t.joined, &t),
                                    .turns = in_a_step(run->parts[rank]->turns, &t),
                                    .kinds = t.kinds,
                                    .longest = t.longest,
                                    .share = (double)t.again / t.launches};
        r.how = judge(&t, &r);
        if (r.how > out->how || (r.how == out->how && r.share < out->share))
            *out = r;
    }
    return out->waits ? find_waiting(run, arena, out, err) : RP_OK;
}

const char *rp_sim_waits_text(const struct rp_sim_repeats *r, struct rp_arena *arena)
{
    const char *often = r->waits == 1 ? "once" : rp_arena_textf(arena, "%u times", r->waits);

    return rp_arena_textf(arena, "the host waits for the device %s in a step%s%s%s%s%s%s", often,
                          r->waiting ? " (" : "", r->waiting ? r->waiting : "",
                          r->waiting && r->line ? rp_arena_textf(arena, " at %.80s", r->line) : "",
                          r->waiting ? ")" : "", r->waited_ns ? ", for " : "",
                          r->waited_ns ? rp_units_time(arena, r->waited_ns) : "");
}

const char *rp_sim_repeats_text(const struct rp_sim_repeats *r, struct rp_arena *arena)
{
    switch (r->how) {
    case RP_REPEATS_UNKNOWN:
        return NULL;
    case RP_REPEATS_ONCE:
        return rp_arena_textf(
            arena, "one step of %u kernels is judged: that others launch the same is assumed",
            r->launches);
    case RP_REPEATS_SELDOM:
        return rp_arena_textf(arena,
                              "the kernels differ from step to step: %u different sequences in %u "
                              "judged steps",
                              r->variants, r->steps);
    default:
        break;
    }
    const char *again =
        r->variants == 1
            ? rp_arena_textf(arena,
                             "the %u judged steps launch the same %u kernels in the same order",
                             r->steps, r->launches)
            : rp_arena_textf(arena, "the %u judged steps launch one of %u sequences of kernels",
                             r->steps, r->variants);
    if (r->how == RP_REPEATS_WHOLE)
        return rp_arena_textf(arena, "%s, and the host waits for the device %s", again,
                              r->waits ? "once in a step" : "in none of them");
    if (r->waits <= 1)
        return rp_arena_textf(arena, "%.0f %% of the launches come again in another step",
                              100 * r->share);
    if (r->how == RP_REPEATS_MANY)
        return rp_arena_textf(
            arena, "%s, which cuts it into %u pieces: %u different graphs would be needed",
            rp_sim_waits_text(r, arena), r->pieces, r->kinds);
    return rp_arena_textf(
        arena,
        "%s, which cuts it into %u pieces: %u different graph%s, the longest of %u "
        "kernels, would hold %.0f %% of the launches%s",
        rp_sim_waits_text(r, arena), r->pieces, r->kinds, r->kinds == 1 ? "" : "s", r->longest,
        100 * r->share, r->steps == 1 ? ", if other steps launch the same: one is judged" : "");
}

bool rp_sim_reads_decide(const struct rp_sim_repeats *r)
{
    return r->how == RP_REPEATS_SELDOM || (r->waits > 1 && r->steps > 1 && r->variants == r->steps);
}

/* ------------------------------------------------------------------ by node */

/* Marks the host's nodes of a rank. Its pieces are in the order of time, and so are the nodes of a
   thread, so most nodes are in the piece of the previous one. */
static void mark_host(const struct rp_sim_run *run, size_t rank, uint32_t number, uint32_t *of,
                      const struct tally *only)
{
    const struct rp_sim_part *part = run->parts[rank];
    uint32_t base = rp_sim_first_node(run, rank);
    int64_t begin_ns = 0, end_ns = 0,
            next_ns = 0; /* begin and end of the piece, and begin of the next one */
    size_t at = 0;
    bool marks = false;

    for (uint32_t i = base; part->pieces.n && i < rp_sim_end_node(run, rank); i++) {
        int64_t ns = rp_sim_node(run, i)->start_ns;

        if (!rp_sim_is_host(run, i))
            continue;
        if (ns < begin_ns || ns >= next_ns) {
            RP_LOWER_BOUND(at, part->pieces.n,
                           rp_sim_node(run, base + part->pieces.at[at].first)->start_ns <= ns);
            marks = at && (!only || comes_again(&part->pieces.at[at - 1], only));
            begin_ns =
                at ? rp_sim_node(run, base + part->pieces.at[at - 1].first)->start_ns : INT64_MIN;
            next_ns = at < part->pieces.n
                          ? rp_sim_node(run, base + part->pieces.at[at].first)->start_ns
                          : INT64_MAX;
            end_ns = at ? rp_sg_end_ns(rp_sim_node(run, base + part->pieces.at[at - 1].last)) : 0;
        }
        if (marks && ns < end_ns)
            of[i] = number + (uint32_t)at;
    }
}

enum rp_code rp_sim_list_pieces(const struct rp_sim_run *run, bool again, struct rp_arena *arena,
                                uint32_t **out, struct rp_err *err)
{
    uint32_t number = 0;

    *out = RP_ARENA_NEW(arena, uint32_t, run->tasks.tasks.n + 1);
    RP_TRY(rp_err_need(*out, err, "simulating"));
    for (size_t rank = 0; rank < run->nranks; rank++) {
        struct tally t;

        RP_TRY(tally_rank(run->parts[rank], &t, err));
        mark_host(run, rank, number, *out, again ? &t : NULL);
        number += (uint32_t)run->parts[rank]->pieces.n;
    }
    for (size_t k = 0; k < run->launches.n; k++)
        if ((*out)[run->launches.at[k].from])
            (*out)[run->launches.at[k].to] = (*out)[run->launches.at[k].from];
    return RP_OK;
}

enum rp_whatif_verdict rp_sim_compiles(const struct rp_sim_run *run, bool in_pieces,
                                       struct rp_err *why)
{
    struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_sim_repeats r;
    enum rp_code code = rp_sim_repeats_find(run, &scratch, &r, why);
    const char *text = code == RP_OK ? rp_sim_repeats_text(&r, &scratch) : NULL;
    bool seldom = r.how == RP_REPEATS_SELDOM, breaks = r.waits > 1;

    if (text)
        rp_err_set(why, RP_UNSUPPORTED, "%s%s",
                   breaks && !seldom ? rp_sim_waits_text(&r, &scratch) : text,
                   seldom   ? ", and each new shape is compiled anew"
                   : breaks ? ", and compiled code ends there"
                            : "");
    rp_arena_release(&scratch);
    if (seldom || (breaks && !in_pieces))
        return RP_WHATIF_NOT;
    return breaks ? RP_WHATIF_PART : RP_WHATIF_APPLIES;
}
