/* SPDX-License-Identifier: Apache-2.0 */
#include "places/peers.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/vec.h"

#include <math.h>
#include <stdlib.h>

#define ABNORMAL_SIGMA 5.0
RP_DECISION(
    ABNORMAL_SIGMA, "deviations",
    "of normal scatter one cell in three million is beyond; a job has up to a million cells, "
    "and the deviation is itself estimated, from few",
    "places/what_scatter_explains_is_normal");
#define ABNORMAL_SHARE 0.01
RP_DECISION(ABNORMAL_SHARE, "of the reference",
            "parts of one model differ so much in clock and temperature where nothing is wrong",
            "places/small_differences_are_normal");
#define ABNORMAL_STEP 0.001
RP_DECISION(ABNORMAL_STEP, "of a step",
            "ten cells of a rank that are each below this cost less than places are named for",
            "places/little_time_is_normal");
#define MIXED_SPREAD 0.1
RP_DECISION(
    MIXED_SPREAD, "deviation / mean",
    "kernels of one shape scatter by 1 to 3 %; what differs by more within a step is several "
    "kinds of work, so that ranks can be compared only where they do it as often",
    "places/mixed_work_is_compared_where_it_is_as_often");
#define LONG_TAIL 0.05
RP_DECISION(LONG_TAIL, "deviation",
            "cells of whole steps scatter by less; with more, slow cells are among those that the "
            "scatter is estimated from, and that of the lower third counts",
            "places/many_slow_cells_do_not_hide_each_other");

/* 1 / the normal quantile of 3/4, which turns a median deviation into a standard deviation. */
#define MAD_SIGMA 1.4826
RP_FACT(MAD_SIGMA, "deviations", "1 / normal quantile of 3/4");

/* The standard deviation of the lowest third of normal values is less than half of that of all. */
#define THIRD_SIGMA 2.0
RP_DECISION(THIRD_SIGMA, "deviations",
            "the lowest third of normal values has 0.46 of the standard deviation of all",
            "places/many_slow_cells_do_not_hide_each_other");
#define LOW_PART 0.34
RP_DECISION(LOW_PART, "of the cells",
            "with a third of them fast, half of a job may be slow and some of the rest late",
            "places/many_slow_cells_do_not_hide_each_other");
#define FEW 4
RP_DECISION(FEW, "cells", "the median deviation of three is the smaller of two differences",
            "places/few_cells_need_more");
#define FEW_SIGMA 0.02
RP_DECISION(
    FEW_SIGMA, "of the reference",
    "kernels of one shape scatter by 1 to 3 % from call to call; fewer than four cells cannot "
    "show their own scatter",
    "places/few_cells_need_more");

RP_ORDER(by_value, double, RP_COMPARE(*a, *b))

enum { QUARTER = 4 };

/* Returns the index of the lower quartile of n values. */
static size_t low_at(size_t n)
{
    return (n - 1) / QUARTER;
}

double rp_peers_low(double *values, size_t n)
{
    rp_sort(values, n, sizeof *values, by_value);
    return n ? values[low_at(n)] : NAN;
}

static double middle_of(double *values, size_t n)
{
    rp_sort(values, n, sizeof *values, by_value);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

double rp_peers_sigma(double *values, size_t n)
{
    double middle = middle_of(values, n);

    for (size_t i = 0; i < n; i++)
        values[i] = fabs(values[i] - middle);
    return MAD_SIGMA * middle_of(values, n);
}

void rp_peers_count(struct rp_peer_sum *to, double ns)
{
    to->n++;
    to->sum += ns;
    to->squares += ns * ns;
}

void rp_peers_add(struct rp_peer_sum *to, const struct rp_peer_sum *from)
{
    to->n += from->n;
    to->sum += from->sum;
    to->squares += from->squares;
}

double rp_peers_beyond(const struct rp_peer_sum *own, const struct rp_peer_sum *others)
{
    double mean = others->n > 0 ? others->sum / others->n : 0, var;

    if (!(mean > 0))
        return INFINITY;
    var = others->squares / others->n - mean * mean;
    return (own->sum - own->n * mean) / sqrt(own->n * (var > 0 ? var : 0));
}

/* ------------------------------------------------------------------ what is usual */

struct of_step { /* a key in a step */
    uint32_t key;
    double mean, spread, n;
};

RP_ORDER(by_key, struct of_step, RP_UP(key))

static void set_usual(struct rp_peer_key *to, const struct of_step *s, size_t n, double *scratch)
{
    for (size_t i = 0; i < n; i++)
        scratch[i] = s[i].mean;
    to->usual_ns = middle_of(scratch, n);
    for (size_t i = 0; i < n; i++)
        scratch[i] = s[i].spread;
    to->spread = middle_of(scratch, n);
    for (size_t i = 0; i < n; i++)
        scratch[i] = s[i].n;
    to->n = (uint32_t)middle_of(scratch, n);
}

enum rp_code rp_peers_usual(const struct rp_peer_cell *cells, size_t n, struct rp_peer_key *keys,
                            size_t nkeys, struct rp_err *err)
{
    RP_FREED struct of_step *s = malloc((n + 1) * sizeof *s);
    RP_FREED double *scratch = malloc((n + 1) * sizeof *scratch);
    size_t i, end;

    RP_TRY(rp_err_need(s && scratch, err, "comparing work"));
    for (i = 0; i < nkeys; i++)
        keys[i].usual_ns = NAN;
    for (i = 0; i < n; i++) {
        double mean = cells[i].dur_ns / cells[i].n,
               var = cells[i].squares / cells[i].n - mean * mean;

        s[i] = (struct of_step){cells[i].key, mean, mean > 0 && var > 0 ? sqrt(var) / mean : 0,
                                cells[i].n};
    }
    rp_sort(s, n, sizeof *s, by_key);
    for (i = 0; i < n; i = end) {
        for (end = i; end < n && s[end].key == s[i].key; end++)
            ;
        set_usual(&keys[s[i].key], &s[i], end - i, scratch);
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ references */

struct vote { /* of a rank for a key */
    uint64_t key;
    uint32_t rank, at, n;
    double usual_ns, spread;
};

struct beside { /* a cell relative to the reference of its key */
    uint32_t peers, step, rank, cell;
    double ratio;
};

/* The data from which references are made. */
struct references {
    struct rp_peer_rank *ranks;
    size_t n, nvotes, ncells;
    struct vote *votes;
    size_t *first;   /* by rank: the begin of its entries in arrays by rank and key */
    double *ref_ns;  /* by rank and key */
    uint32_t *peers; /* by rank and key: the same number for those with one reference */
    struct beside *besides;
    double *scratch, *common;
};

RP_ORDER(by_vote, struct vote, RP_UP(key), RP_UP(n), RP_UP(usual_ns), RP_UP(rank))

/* Gives votes[first, end) of one key one reference. That of a single rank is its usual time. */
static void set_reference(struct references *x, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        x->scratch[i - first] = x->votes[i].usual_ns;
    double ref = rp_peers_low(x->scratch, end - first);
    for (size_t i = first; i < end; i++) {
        size_t at = x->first[x->votes[i].rank] + x->votes[i].at;

        x->ref_ns[at] = ref;
        x->peers[at] = (uint32_t)first;
    }
}

/* Whether the times of a key differ within the ranks. */
static bool is_mixed(const struct vote *votes, size_t first, size_t end, double *scratch)
{
    for (size_t i = first; i < end; i++)
        scratch[i - first] = votes[i].spread;
    rp_sort(scratch, end - first, sizeof *scratch, by_value);
    return scratch[(end - first) / 2] > MIXED_SPREAD;
}

static void find_references(struct references *x)
{
    struct vote *votes = x->votes;
    size_t i = 0, first, end;

    rp_sort(votes, x->nvotes, sizeof *votes, by_vote);
    while (i < x->nvotes) {
        for (end = i; end < x->nvotes && votes[end].key == votes[i].key; end++)
            ;
        if (!is_mixed(votes, i, end, x->scratch)) {
            set_reference(x, i, end);
            i = end;
        }
        for (first = i; first < end; first++)
            x->ranks[votes[first].rank].mixed[votes[first].at] = true;
        for (; i < end; i = first) {
            for (first = i; first < end && votes[first].n == votes[i].n; first++)
                ;
            set_reference(x, i, first);
        }
    }
}

RP_ORDER(by_peers, struct beside, RP_UP(peers), RP_UP(step), RP_UP(ratio), RP_UP(rank))

/* Returns what cells of one step have in common. For few cells, the fastest would be its own
   reference. */
static double common_of(const struct beside *c, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += c[i].ratio;
    return n < FEW ? sum / (double)n : c[low_at(n)].ratio;
}

/* Finds by cell what the cells [first, end) of one reference have in common in its step, around 1.
   Returns false if a step has only one rank, or if there is only one step. */
static bool find_common(struct references *x, size_t first, size_t end)
{
    const struct beside *c = x->besides;
    size_t i, next, nsteps = 0;

    for (i = first; i < end; i = next, nsteps++) {
        for (next = i; next < end && c[next].step == c[i].step; next++)
            ;
        if (next - i < 2)
            return false;
        x->scratch[nsteps] = common_of(&c[i], next - i);
        for (size_t k = i; k < next; k++)
            x->common[k] = x->scratch[nsteps];
    }
    double middle = middle_of(x->scratch, nsteps);
    for (i = first; i < end; i++)
        x->common[i] /= middle;
    return nsteps > 1 && middle > 0;
}

static void refer_cells(struct references *x)
{
    x->ncells = 0;
    for (size_t r = 0; r < x->n; r++)
        for (size_t i = 0; i < x->ranks[r].ncells; i++) {
            const struct rp_peer_cell *c = &x->ranks[r].cells[i];
            size_t at = x->first[r] + c->key;

            x->ranks[r].ref_ns[i] = x->ref_ns[at];
            if (x->ref_ns[at] > 0)
                x->besides[x->ncells++] =
                    (struct beside){x->peers[at], c->step, (uint32_t)r, (uint32_t)i,
                                    c->dur_ns / c->n / x->ref_ns[at]};
        }

    /* A step is longer for all if the cells scatter less without what they have in common. */
    struct beside *c = x->besides;
    size_t i, end;
    rp_sort(c, x->ncells, sizeof *c, by_peers);
    for (i = 0; i < x->ncells; i = end) {
        for (end = i; end < x->ncells && c[end].peers == c[i].peers; end++)
            x->scratch[end - i] = c[end].ratio;
        double alone = rp_peers_sigma(x->scratch, end - i);
        if (!find_common(x, i, end))
            continue;
        for (size_t k = i; k < end; k++)
            x->scratch[k - i] = c[k].ratio / x->common[k];
        if (rp_peers_sigma(x->scratch, end - i) >= alone)
            continue;
        for (size_t k = i; k < end; k++)
            x->ranks[c[k].rank].ref_ns[c[k].cell] *= x->common[k];
    }
}

static void vote(struct references *x)
{
    for (size_t r = 0; r < x->n; r++)
        for (size_t k = 0; k < x->ranks[r].nkeys; k++) {
            const struct rp_peer_key *key = &x->ranks[r].keys[k];

            x->ref_ns[x->first[r] + k] = NAN;
            if (key->usual_ns > 0)
                x->votes[x->nvotes++] = (struct vote){key->hash, (uint32_t)r,   (uint32_t)k,
                                                      key->n,    key->usual_ns, key->spread};
        }
}

static enum rp_code set_references(struct rp_peer_rank *ranks, size_t n, struct rp_err *err)
{
    struct references x = {.ranks = ranks, .n = n, .first = malloc((n + 1) * sizeof *x.first)};
    size_t nkeys = 0, most;

    for (size_t r = 0; x.first && r < n; r++) {
        x.first[r] = nkeys;
        nkeys += ranks[r].nkeys;
        x.ncells += ranks[r].ncells;
    }
    most = (nkeys > x.ncells ? nkeys : x.ncells) + 1;
    x.votes = malloc((nkeys + 1) * sizeof *x.votes);
    x.ref_ns = malloc((nkeys + 1) * sizeof *x.ref_ns);
    x.peers = malloc((nkeys + 1) * sizeof *x.peers);
    x.besides = malloc(most * sizeof *x.besides);
    x.scratch = malloc(most * sizeof *x.scratch);
    x.common = malloc(most * sizeof *x.common);
    bool made = x.first && x.votes && x.ref_ns && x.peers && x.besides && x.scratch && x.common;
    if (made) {
        vote(&x);
        find_references(&x);
        refer_cells(&x);
    }
    free(x.first), free(x.votes), free(x.ref_ns), free(x.peers);
    free(x.besides), free(x.scratch), free(x.common);
    return rp_err_need(made, err, "comparing work");
}

/* ------------------------------------------------------------------ cells */

/* A cell, or all cells of a rank and class, or of all steps. */
struct judged {
    uint64_t level; /* identifies cells that are compared with each other */
    uint32_t rank, key, step, cls;
    double dur_ns, ref_ns;
    double limit; /* of the excess */
};

struct judging {
    struct rp_peer_rank *ranks;
    size_t n;
    double step_ns;
    RP_VEC(struct judged) list;
    double *scratch;
};

enum { ALL_KEYS = 1, ALL_STEPS = 2 }; /* what a sum is over */

static double excess_of(const struct judged *c)
{
    return c->dur_ns / c->ref_ns - 1;
}

static uint64_t level_of(uint64_t key, uint32_t cls, bool all_steps)
{
    return rp_hash_join(rp_hash_join(key, cls), all_steps);
}

static enum rp_code add_judged(struct judging *j, struct rp_map *sums, struct judged one,
                               struct rp_err *err)
{
    uint64_t id = rp_hash_join(rp_hash_join((uint64_t)one.key << 32 | one.step, one.cls), one.rank);
    uint32_t at, fresh = (uint32_t)j->list.n;

    RP_TRY(rp_map_intern(sums, id, fresh, &at, err));
    if (at >= fresh)
        return rp_vec_push(&j->list, one, err);
    j->list.at[at].dur_ns += one.dur_ns;
    j->list.at[at].ref_ns += one.ref_ns;
    return RP_OK;
}

/* A cell counts four times: for its key and for all keys of its class, in its step and in all
   steps. */
static enum rp_code add_rank(struct judging *j, uint32_t r, struct rp_map *sums, struct rp_err *err)
{
    const struct rp_peer_rank *rank = &j->ranks[r];

    for (size_t i = 0; i < rank->ncells; i++) {
        const struct rp_peer_cell *c = &rank->cells[i];
        const struct rp_peer_key *key = &rank->keys[c->key];
        double ref = rank->ref_ns[i] * c->n;

        if (!(ref > 0))
            continue;
        for (unsigned sum = 0; sum <= (ALL_KEYS | ALL_STEPS); sum++) {
            bool all_keys = sum & ALL_KEYS, all_steps = sum & ALL_STEPS;
            struct judged one = {level_of(all_keys ? 0 : key->hash, key->cls, all_steps),
                                 r,
                                 all_keys ? RP_PEERS_STAR : c->key,
                                 all_steps ? RP_PEERS_STAR : c->step,
                                 key->cls,
                                 c->dur_ns,
                                 ref,
                                 0};

            RP_TRY(add_judged(j, sums, one, err));
        }
    }
    return RP_OK;
}

static double deviation(const double *x, size_t n)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i];
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
    return sqrt(squares / (double)n);
}

/* Returns how far cells scatter about their middle if nothing is wrong. x is sorted and changed. */
static double scatter(double *x, size_t n)
{
    size_t part = (size_t)((double)n * LOW_PART);

    if (n < FEW)
        return FEW_SIGMA;
    double low = THIRD_SIGMA * deviation(x, part > 2 ? part : 2);
    double sigma = rp_peers_sigma(x, n);
    return sigma > LONG_TAIL && low < sigma ? low : sigma;
}

RP_ORDER(by_level, struct judged, RP_UP(level), RP_UP(rank), RP_UP(step), RP_UP(key))

/* Keeps only the abnormal cells: those of a level beyond their scatter. */
static void keep_abnormal(struct judging *j)
{
    struct judged *c = j->list.at;
    size_t n = j->list.n, i = 0, kept = 0;

    rp_sort(c, n, sizeof *c, by_level);
    while (i < n) {
        size_t first = i, count = 0;

        for (; i < n && c[i].level == c[first].level; i++)
            j->scratch[count++] = excess_of(&c[i]);
        double low = rp_peers_low(j->scratch, count);
        double sigma = scatter(j->scratch, count);
        double beyond =
            ABNORMAL_SIGMA * sigma > ABNORMAL_SHARE ? ABNORMAL_SIGMA * sigma : ABNORMAL_SHARE;
        for (size_t k = first; k < i; k++)
            if (excess_of(&c[k]) > low + beyond &&
                c[k].dur_ns - c[k].ref_ns > ABNORMAL_STEP * j->step_ns) {
                c[kept] = c[k];
                c[kept++].limit = low + beyond;
            }
    }
    j->list.n = kept;
}

/* Single steps come before all steps, because a fault in some would otherwise be spread over all.
   Kinds of work come before all of them, so that only the rest is judged then. */
static int turn_of(const struct judged *c)
{
    return (c->step == RP_PEERS_STAR ? 2 : 0) + (c->key == RP_PEERS_STAR ? 1 : 0);
}

RP_ORDER(by_turn, struct judged, RP_COMPARE(turn_of(a), turn_of(b)), RP_UP(rank), RP_UP(step),
         RP_UP(key), RP_UP(cls))

/* A cell covered by an abnormal sum takes the time of its peers and keeps its jitter; one that
   takes more than twice as long (a pause) takes that time exactly. */
static void mark_cell(struct rp_peer_rank *rank, struct judged *c, size_t i)
{
    const struct rp_peer_cell *cell = &rank->cells[i];
    double ref = rank->ref_ns[i] * cell->n, own = c->ref_ns / c->dur_ns;

    if (rank->factor[i] < 1 || !(ref > 0) || rank->keys[cell->key].cls != c->cls)
        return;
    if (c->step != RP_PEERS_STAR && excess_of(c) >= 1)
        own = ref / cell->dur_ns;
    rank->factor[i] = own < 1 ? own : 1;
}

/* Returns the first cell of a rank that is not before a key of a step. */
static size_t first_cell(const struct rp_peer_rank *rank, uint32_t step, uint32_t key)
{
    const struct rp_peer_cell *c = rank->cells;
    size_t i;

    RP_LOWER_BOUND(i, rank->ncells, c[i].step < step || (c[i].step == step && c[i].key < key));
    return i;
}

/* Calls fn for each cell of a rank that a sum covers. */
static void each_cell(struct rp_peer_rank *rank, struct judged *c,
                      void (*fn)(struct rp_peer_rank *, struct judged *, size_t))
{
    uint32_t key = c->key == RP_PEERS_STAR ? 0 : c->key;
    size_t i = first_cell(rank, c->step == RP_PEERS_STAR ? 0 : c->step, key);

    while (i < rank->ncells && (c->step == RP_PEERS_STAR || rank->cells[i].step == c->step)) {
        uint32_t step = rank->cells[i].step;

        if (c->key == RP_PEERS_STAR || rank->cells[i].key == key)
            fn(rank, c, i);
        if (c->key == RP_PEERS_STAR)
            i++;
        else if (rank->cells[i].key < key)
            i = first_cell(rank, step, key);
        else
            i = first_cell(rank, step + 1, key);
    }
}

static void take_out(struct rp_peer_rank *rank, struct judged *c, size_t i)
{
    const struct rp_peer_cell *cell = &rank->cells[i];

    if (rank->factor[i] < 1 && rank->keys[cell->key].cls == c->cls) {
        c->dur_ns -= cell->dur_ns;
        c->ref_ns -= rank->ref_ns[i] * cell->n;
    }
}

static enum rp_code judge_all(struct judging *j, struct rp_err *err)
{
    struct rp_map sums = {0};
    enum rp_code code = RP_OK;

    for (uint32_t r = 0; r < j->n && code == RP_OK; r++) {
        code = add_rank(j, r, &sums, err);
        rp_map_release(&sums);
    }
    if (code != RP_OK)
        return code;
    j->scratch = malloc((j->list.n + 1) * sizeof *j->scratch);
    RP_TRY(rp_err_need(j->scratch, err, "comparing work"));
    keep_abnormal(j);
    rp_sort(j->list.at, j->list.n, sizeof *j->list.at, by_turn);
    for (size_t i = 0; i < j->list.n; i++) {
        /* If some cells of a sum are already marked, the others judge it. */
        struct judged *c = &j->list.at[i];
        struct rp_peer_rank *rank = &j->ranks[c->rank];

        each_cell(rank, c, take_out);
        if (c->ref_ns > 0 && excess_of(c) > c->limit &&
            c->dur_ns - c->ref_ns > ABNORMAL_STEP * j->step_ns)
            each_cell(rank, c, mark_cell);
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ more work than others */

struct total { /* of a class of a rank in a step, without abnormal work */
    uint64_t role;
    uint32_t cls, step, rank;
    double ns, ref_ns; /* ref: that of its role in this step */
};

struct share { /* of a key in that */
    uint64_t role, hash;
    uint32_t step, rank, cell, n, usual; /* usual: as often as in its role */
};

RP_ORDER(by_role, struct total, RP_UP(role), RP_UP(cls), RP_UP(step), RP_UP(ns), RP_UP(rank))
RP_ORDER(by_rank, struct total, RP_UP(rank), RP_UP(step), RP_UP(cls))
RP_ORDER(by_work, struct share, RP_UP(role), RP_UP(hash), RP_UP(step), RP_UP(n), RP_UP(rank))
RP_ORDER(by_cell, struct share, RP_UP(rank), RP_UP(cell))

struct extras {
    struct judging *j;
    RP_VEC(struct total) totals;
    RP_VEC(struct share) shares;
    struct rp_map members; /* of a role in a step: the number of ranks that have it */
};

static enum rp_code add_totals(struct extras *x, uint32_t r, struct rp_err *err)
{
    const struct rp_peer_rank *rank = &x->j->ranks[r];
    size_t i = 0;

    while (i < rank->ncells) {
        uint32_t step = rank->cells[i].step;
        double ns[RP_PEERS_CLASSES] = {0};

        for (; i < rank->ncells && rank->cells[i].step == step; i++)
            ns[rank->keys[rank->cells[i].key].cls] += rank->cells[i].dur_ns * rank->factor[i];
        for (uint32_t c = 0; c < RP_PEERS_CLASSES; c++)
            RP_TRY(
                rp_vec_push(&x->totals, ((struct total){rank->role, c, step, r, ns[c], 0}), err));
    }
    return RP_OK;
}

/* Keeps the totals beyond the scatter of a role in a step. */
static void keep_larger(struct extras *x)
{
    struct total *t = x->totals.at;
    size_t i = 0, n = x->totals.n, kept = 0;

    rp_sort(t, n, sizeof *t, by_role);
    while (i < n) {
        size_t first = i, next, count = 0;

        for (; i < n && t[i].role == t[first].role && t[i].cls == t[first].cls; i = next) {
            for (next = i; next < n && t[next].role == t[i].role && t[next].cls == t[i].cls &&
                           t[next].step == t[i].step;
                 next++)
                ;
            for (size_t k = i; k < next; k++) {
                t[k].ref_ns = t[i + low_at(next - i)].ns;
                if (t[k].ref_ns > 0)
                    x->j->scratch[count++] = t[k].ns / t[k].ref_ns - 1;
            }
        }
        double low = rp_peers_low(x->j->scratch, count);
        double sigma = count ? scatter(x->j->scratch, count) : 0;
        double beyond =
            ABNORMAL_SIGMA * sigma > ABNORMAL_SHARE ? ABNORMAL_SIGMA * sigma : ABNORMAL_SHARE;
        beyond += count ? low : 0;
        for (size_t k = first; k < i; k++)
            if (t[k].ns - t[k].ref_ns > beyond * t[k].ref_ns &&
                t[k].ns - t[k].ref_ns > ABNORMAL_STEP * x->j->step_ns)
                t[kept++] = t[k];
    }
    x->totals.n = kept;
}

static enum rp_code list_shares(struct extras *x, struct rp_err *err)
{
    for (uint32_t r = 0; r < x->j->n; r++) {
        const struct rp_peer_rank *rank = &x->j->ranks[r];
        uint32_t step = RP_PEERS_STAR, at;

        for (uint32_t i = 0; i < rank->ncells && rank->role; i++) {
            const struct rp_peer_cell *c = &rank->cells[i];

            if (c->step != step) {
                uint64_t id = rp_hash_join(rank->role, c->step);

                at = rp_map_get(&x->members, id);
                RP_TRY(rp_map_put(&x->members, id, at == RP_MAP_NONE ? 1 : at + 1, err));
            }
            step = c->step;
            RP_TRY(rp_vec_push(
                &x->shares,
                ((struct share){rank->role, rank->keys[c->key].hash, step, r, i, c->n, 0}), err));
        }
    }
    return RP_OK;
}

/* Returns the time of the items of a cell beyond the usual number. */
static double extra_of(const struct rp_peer_rank *rank, const struct share *s)
{
    return s->n > s->usual ? rank->cells[s->cell].dur_ns * rank->factor[s->cell] *
                                 (double)(s->n - s->usual) / s->n
                           : 0;
}

/* Divides the excess of a total among the cells with more items than usual. */
static void mark_extra(struct extras *x, const struct total *t)
{
    struct rp_peer_rank *rank = &x->j->ranks[t->rank];
    const struct share *s = x->shares.at;
    size_t first, end, cell = first_cell(rank, t->step, 0);
    double sum = 0, over = t->ns - t->ref_ns;

    RP_LOWER_BOUND(first, x->shares.n,
                   s[first].rank < t->rank || (s[first].rank == t->rank && s[first].cell < cell));
    for (end = first;
         end < x->shares.n && s[end].rank == t->rank && rank->cells[s[end].cell].step == t->step;
         end++)
        if (rank->keys[rank->cells[s[end].cell].key].cls == t->cls)
            sum += extra_of(rank, &s[end]);
    for (size_t i = first; i < end && sum > 0; i++)
        if (rank->keys[rank->cells[s[i].cell].key].cls == t->cls)
            rank->factor[s[i].cell] -= extra_of(rank, &s[i]) * (over < sum ? over / sum : 1) /
                                       rank->cells[s[i].cell].dur_ns;
}

static enum rp_code judge_roles(struct extras *x, struct rp_err *err)
{
    for (uint32_t r = 0; r < x->j->n; r++)
        if (x->j->ranks[r].role)
            RP_TRY(add_totals(x, r, err));
    free(x->j->scratch);
    x->j->scratch = malloc((x->totals.n + 1) * sizeof *x->j->scratch);
    RP_TRY(rp_err_need(x->j->scratch, err, "comparing work"));
    keep_larger(x);
    if (!x->totals.n)
        return RP_OK;
    RP_TRY(list_shares(x, err));

    /* Find how often ranks of a role do something in a step: the lower quartile, including those
       that never do. */
    struct share *s = x->shares.at;
    size_t m, next;
    rp_sort(s, x->shares.n, sizeof *s, by_work);
    for (m = 0; m < x->shares.n; m = next) {
        size_t members = rp_map_get(&x->members, rp_hash_join(s[m].role, s[m].step)), at, never;

        for (next = m; next < x->shares.n && s[next].role == s[m].role &&
                       s[next].hash == s[m].hash && s[next].step == s[m].step;
             next++)
            ;
        never = members - (next - m);
        at = low_at(members);
        for (size_t k = m; k < next; k++)
            s[k].usual = at < never ? 0 : s[m + at - never].n;
    }
    rp_sort(s, x->shares.n, sizeof *s, by_cell);

    rp_sort(x->totals.at, x->totals.n, sizeof *x->totals.at, by_rank);
    for (size_t i = 0; i < x->totals.n; i++)
        mark_extra(x, &x->totals.at[i]);
    return RP_OK;
}

static enum rp_code judge_extras(struct judging *j, struct rp_err *err)
{
    struct extras x = {.j = j};
    enum rp_code code = judge_roles(&x, err);
    rp_map_release(&x.members);
    rp_vec_release(&x.totals);
    rp_vec_release(&x.shares);
    return code;
}

enum rp_code rp_peers_judge(struct rp_peer_rank *ranks, size_t n, double step_ns,
                            struct rp_arena *arena, struct rp_err *err)
{
    struct judging j = {.ranks = ranks, .n = n, .step_ns = step_ns};

    for (size_t r = 0; r < n; r++) {
        ranks[r].ref_ns = RP_ARENA_NEW(arena, double, ranks[r].ncells + 1);
        ranks[r].factor = RP_ARENA_NEW(arena, double, ranks[r].ncells + 1);
        ranks[r].mixed = RP_ARENA_NEW(arena, bool, ranks[r].nkeys + 1);
        ranks[r].over_ns = RP_ARENA_NEW(arena, double, ranks[r].ncells + 1);
        RP_TRY(rp_arena_check(arena, "comparing work", err));
        for (size_t i = 0; i < ranks[r].ncells; i++)
            ranks[r].factor[i] = 1;
    }
    RP_TRY(set_references(ranks, n, err));
    enum rp_code code = judge_all(&j, err);
    if (code == RP_OK)
        code = judge_extras(&j, err);
    free(j.scratch);
    rp_vec_release(&j.list);
    return code;
}

/* ------------------------------------------------------------------ single times */

static double over_of(const struct rp_peer_rank *rank, size_t cell, double dur_ns, uint32_t n)
{
    double over = dur_ns - rank->ref_ns[cell] * n;

    return over > 0 ? over : 0;
}

void rp_peers_weigh(struct rp_peer_rank *rank, size_t cell, double dur_ns, uint32_t n)
{
    rank->over_ns[cell] += rank->factor[cell] < 1 ? over_of(rank, cell, dur_ns, n) : 0;
}

double rp_peers_cut(const struct rp_peer_rank *rank, size_t cell, double dur_ns, uint32_t n)
{
    double part = 1 - rank->factor[cell], all = part * rank->cells[cell].dur_ns, cut;

    if (!(part > 0))
        return 0;
    if (rank->mixed[rank->cells[cell].key] || !(rank->over_ns[cell] > 0))
        return part * dur_ns;
    cut = all * over_of(rank, cell, dur_ns, n) / rank->over_ns[cell];
    return cut < dur_ns ? cut : dur_ns;
}
