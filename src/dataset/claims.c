/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims are sorted by the number they state, so those with the same number are neighbours. Two of
 * them are the same recording if their clocks have the same base and their times overlap, because a
 * process has one profiler; if the base is not known, they must begin alike. Of two different
 * recordings, the one that fits the first rank of the run is taken. If all files state the same
 * number, they are not a run at all, and related.c says so.
 */
#include "dataset/claims.h"

#include "base/decides.h"
#include "base/order.h"
#include "facts/times/intervals.h"

#include <stdlib.h>
#include <string.h>

#define ALMOST_WHOLE 0.98
RP_DECISION(
    ALMOST_WHOLE, "of the events of the others",
    "a cut trace that lost its last bytes answers as a whole one does; sums of one that lost more are too small",
    "dataset/empty_and_cut_traces_are_set_aside");

struct place {
    int32_t stated; /* the number in the file, otherwise that in its name, otherwise RP_NO_RANK */
    int64_t begin_ns;
    size_t claim;
};

RP_ORDER(by_number_and_time, struct place, RP_UP(stated), RP_UP(begin_ns), RP_UP(claim))

/* Whether only a part of the trace is there: truncated, or read up to some damage. */
static bool digest_is_cut(const struct rp_digest *digest)
{
    return digest->health.truncated || digest->health.salvaged || digest->health.skipped_bytes;
}

static bool is_empty(const struct rp_digest *d)
{
    return !d->nevents || (!d->totals.span_begin_ns && !d->totals.span_end_ns);
}

/* Without times (sums by scope, as in Proton) nothing can tell that two are the same recording. */
static bool is_same_recording(const struct rp_digest *a, const struct rp_digest *b)
{
    const struct rp_totals *x = &a->totals, *y = &b->totals;
    bool cut = digest_is_cut(a) || digest_is_cut(b);

    if (a->rank != b->rank || a->has_base != b->has_base || a->base_ns != b->base_ns ||
        (!a->has_base && is_empty(a) && is_empty(b)))
        return false;
    if (x->span_begin_ns == y->span_begin_ns &&
        (cut || (a->nevents == b->nevents && x->span_end_ns == y->span_end_ns &&
                 x->gpu_busy_ns == y->gpu_busy_ns)))
        return true;
    return cut && a->rank >= 0 && a->has_base &&
           rp_ns_common(x->span_begin_ns, x->span_end_ns, y->span_begin_ns, y->span_end_ns) > 0;
}

/* Of two files of one recording, the better one is the whole one, then the longer one, then the one
   with the shorter name ("rank1.json", not "copy of rank1.json"), then the first. */
static bool is_better_copy(const struct rp_digest *a, const struct rp_digest *b)
{
    bool cut[2] = {digest_is_cut(a), digest_is_cut(b)};
    size_t na = strlen(a->name), nb = strlen(b->name);

    if (cut[0] != cut[1])
        return cut[1];
    if (a->nevents != b->nevents)
        return a->nevents > b->nevents;
    return na < nb;
}

/* Whether a fits the reference better than b does. */
static bool fits_better(const struct rp_claim *reference, const struct rp_claim *a,
                        const struct rp_claim *b)
{
    const struct rp_claim *c[2] = {a, b};
    bool no[2];
    int64_t apart[2];

    for (size_t i = 0; i < 2; i++) {
        no[i] =
            rp_digests_contradict(reference->digest, reference->sketch, c[i]->digest, c[i]->sketch);
        apart[i] = rp_digests_apart(reference->digest, c[i]->digest);
    }
    if (no[0] != no[1])
        return no[1];
    if (apart[0] != apart[1])
        return apart[0] < apart[1];
    return a->digest->nevents > b->digest->nevents;
}

static void lose(struct rp_claim *claims, size_t loser, size_t winner, enum rp_verdict verdict)
{
    claims[loser].verdict = verdict;
    claims[loser].instead = winner;
}

/* Follows `instead` to the claim that was finally taken. */
static void settle_instead(struct rp_claim *claims, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = claims[i].instead;

        if (claims[i].verdict != RP_VERDICT_COPY && claims[i].verdict != RP_VERDICT_CLASH)
            continue;
        while (claims[at].verdict == RP_VERDICT_COPY || claims[at].verdict == RP_VERDICT_CLASH)
            at = claims[at].instead;
        claims[i].instead = at;
    }
}

/* Sets aside traces without an event if others have some. */
static void set_aside_empty(struct rp_claim *claims, size_t n)
{
    size_t i, k, full = 0;

    for (i = 0; i < n; i++)
        full += !is_empty(claims[i].digest);
    for (i = 0; full && i < n; i++) {
        if (!is_empty(claims[i].digest))
            continue;
        claims[i].verdict = RP_VERDICT_EMPTY;
        for (k = 0; k < n && claims[i].digest->rank >= 0; k++)
            if (claims[k].digest->rank == claims[i].digest->rank && !is_empty(claims[k].digest)) {
                lose(claims, i, k, RP_VERDICT_CLASH);
                break;
            }
    }
}

/* Finds the copies among places of one number. */
static void find_copies(struct rp_claim *claims, const struct place *at, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct rp_claim *x = &claims[at[i].claim];

        for (size_t k = i; k-- > 0 && x->verdict == RP_VERDICT_RANK;) {
            struct rp_claim *y = &claims[at[k].claim];

            if (x->digest->rank < 0 && at[k].begin_ns != at[i].begin_ns)
                break;
            if (y->verdict != RP_VERDICT_RANK || !is_same_recording(x->digest, y->digest))
                continue;
            if (is_better_copy(x->digest, y->digest))
                lose(claims, at[k].claim, at[i].claim, RP_VERDICT_COPY);
            else
                lose(claims, at[i].claim, at[k].claim, RP_VERDICT_COPY);
        }
    }
}

/* Of different recordings with one number, keeps the one that fits the reference. */
static void find_clashes(struct rp_claim *claims, const struct place *at, size_t n,
                         const struct rp_claim *reference)
{
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < n; i++) {
        size_t c = at[i].claim;

        if (claims[c].verdict != RP_VERDICT_RANK || claims[c].digest->rank < 0)
            continue;
        if (best == SIZE_MAX) {
            best = c;
        } else if (&claims[best] != reference &&
                   (&claims[c] == reference || fits_better(reference, &claims[c], &claims[best]))) {
            lose(claims, best, c, RP_VERDICT_CLASH);
            best = c;
        } else {
            lose(claims, c, best, RP_VERDICT_CLASH);
        }
    }
}

/* Counts the places from here on that have the same number. */
static size_t same_number(const struct place *at, size_t n)
{
    size_t i = 1;

    while (i < n && at[i].stated == at[0].stated)
        i++;
    return i;
}

/* Returns the first claim whose number no other has, otherwise the first with a number; NULL if all
   numbers are the same, so that there is nothing to choose. */
static const struct rp_claim *reference_of(const struct rp_claim *claims, const struct place *at,
                                           size_t n)
{
    const struct rp_claim *alone = NULL, *first = NULL;
    size_t i, k, numbers = 0;

    for (i = 0; i < n; i += k) {
        size_t ranks = 0, one = 0;

        k = same_number(at + i, n - i);
        for (size_t j = i; j < i + k; j++)
            if (claims[at[j].claim].verdict == RP_VERDICT_RANK &&
                claims[at[j].claim].digest->rank >= 0) {
                ranks++;
                one = at[j].claim;
                if (!first || &claims[one] < first)
                    first = &claims[one];
            }
        numbers += ranks > 0;
        if (ranks == 1 && (!alone || &claims[one] < alone))
            alone = &claims[one];
    }
    return numbers < 2 ? NULL : alone ? alone : first;
}

RP_ORDER(by_size, uint32_t, RP_COMPARE(*a, *b))

/* Sets aside cut ranks beside whole ones, unless almost nothing is missing. */
static enum rp_code set_aside_cut(struct rp_claim *claims, size_t n, struct rp_err *err)
{
    uint32_t *sizes = malloc((n + 1) * sizeof *sizes), median;
    size_t i, whole = 0;

    RP_TRY(rp_err_need(sizes, err, "comparing traces"));
    for (i = 0; i < n; i++)
        if (claims[i].verdict == RP_VERDICT_RANK && !digest_is_cut(claims[i].digest))
            sizes[whole++] = claims[i].digest->nevents;
    qsort(sizes, whole, sizeof *sizes, by_size);
    median = whole ? sizes[whole / 2] : 0;
    for (i = 0; whole && i < n; i++)
        if (claims[i].verdict == RP_VERDICT_RANK && digest_is_cut(claims[i].digest) &&
            claims[i].digest->nevents < ALMOST_WHOLE * (double)median)
            claims[i].verdict = RP_VERDICT_CUT;
    free(sizes);
    return RP_OK;
}

enum rp_code rp_claims_settle(struct rp_claim *claims, size_t n, bool keep_cut, struct rp_err *err)
{
    struct place *at = malloc((n + 1) * sizeof *at);
    size_t i, k;

    RP_TRY(rp_err_need(at, err, "comparing traces"));
    for (i = 0; i < n; i++) {
        const struct rp_digest *d = claims[i].digest;

        claims[i].verdict = RP_VERDICT_RANK;
        at[i] = (struct place){d->rank >= 0 ? d->rank : rp_rank_in_name(d->name),
                               d->totals.span_begin_ns, i};
    }
    set_aside_empty(claims, n);
    rp_sort(at, n, sizeof *at, by_number_and_time);
    for (i = 0; i < n; i += k) {
        k = same_number(at + i, n - i);
        find_copies(claims, at + i, k);
    }
    const struct rp_claim *reference = reference_of(claims, at, n);
    for (i = 0; reference && i < n; i += k) {
        k = same_number(at + i, n - i);
        find_clashes(claims, at + i, k, reference);
    }
    settle_instead(claims, n);
    free(at);
    return keep_cut ? RP_OK : set_aside_cut(claims, n, err);
}
