/* SPDX-License-Identifier: Apache-2.0 */
#include "places/peers.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/vec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* 1 / the normal quantile of 3/4: turns a median deviation into a standard deviation. */
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

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return RP_COMPARE(x, y);
}

double rp_peers_low(double *values, size_t n)
{
    rp_sort(values, n, sizeof *values, by_value);
    return n ? values[(n - 1) / 4] : NAN;
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
    struct of_step *s = malloc((n + 1) * sizeof *s);
    double *scratch = malloc((n + 1) * sizeof *scratch);
    enum rp_code code = rp_err_need(s && scratch, err, "comparing work");
    size_t i, end;

    for (i = 0; code == RP_OK && i < nkeys; i++)
        keys[i].usual_ns = NAN;
    for (i = 0; code == RP_OK && i < n; i++) {
        double mean = cells[i].dur_ns / cells[i].n,
               var = cells[i].squares / cells[i].n - mean * mean;

        s[i] = (struct of_step){cells[i].key, mean, mean > 0 && var > 0 ? sqrt(var) / mean : 0,
                                cells[i].n};
    }
    if (code == RP_OK)
        rp_sort(s, n, sizeof *s, by_key);
    for (i = 0; code == RP_OK && i < n; i = end) {
        for (end = i; end < n && s[end].key == s[i].key; end++)
            ;
        set_usual(&keys[s[i].key], &s[i], end - i, scratch);
    }
    free(s);
    free(scratch);
    return code;
}

/* ------------------------------------------------------------------ references */

struct vote { /* of a rank for a key */
    uint64_t key;
    uint32_t rank, at, n;
    double usual_ns, spread;
};

RP_ORDER(by_vote, struct vote, RP_UP(key), RP_UP(n), RP_UP(usual_ns), RP_UP(rank))

/* Gives votes[first, end) of one key one reference. Of a single rank it is what is usual of it. */
static void set_reference(struct rp_peer_rank *ranks, struct vote *votes, size_t first, size_t end,
                          double *scratch)
{
    double ref;
    size_t i;

    for (i = first; i < end; i++)
        scratch[i - first] = votes[i].usual_ns;
    ref = rp_peers_low(scratch, end - first);
    for (i = first; i < end; i++)
        ranks[votes[i].rank].ref_ns[votes[i].at] = ref;
}

/* Whether the times of a key differ within the ranks. */
static bool is_mixed(const struct vote *votes, size_t first, size_t end, double *scratch)
{
    size_t i;

    for (i = first; i < end; i++)
        scratch[i - first] = votes[i].spread;
    rp_sort(scratch, end - first, sizeof *scratch, by_value);
    return scratch[(end - first) / 2] > MIXED_SPREAD;
}

static void find_references(struct rp_peer_rank *ranks, struct vote *votes, size_t n,
                            double *scratch)
{
    size_t i = 0, first, end;

    rp_sort(votes, n, sizeof *votes, by_vote);
    while (i < n) {
        for (end = i; end < n && votes[end].key == votes[i].key; end++)
            ;
        if (!is_mixed(votes, i, end, scratch)) {
            set_reference(ranks, votes, i, end, scratch);
            i = end;
        }
        for (first = i; first < end; first++)
            ranks[votes[first].rank].mixed[votes[first].at] = true;
        for (; i < end; i = first) {
            for (first = i; first < end && votes[first].n == votes[i].n; first++)
                ;
            set_reference(ranks, votes, i, first, scratch);
        }
    }
}

static enum rp_code vote_all(struct rp_peer_rank *ranks, size_t n, struct rp_err *err)
{
    size_t sum = 0, at = 0;
    struct vote *votes;
    double *scratch;

    for (size_t r = 0; r < n; r++)
        sum += ranks[r].nkeys;
    votes = malloc((sum + 1) * sizeof *votes);
    scratch = malloc((sum + 1) * sizeof *scratch);
    for (size_t r = 0; votes && scratch && r < n; r++)
        for (size_t k = 0; k < ranks[r].nkeys; k++) {
            const struct rp_peer_key *key = &ranks[r].keys[k];

            ranks[r].ref_ns[k] = NAN;
            if (key->usual_ns > 0)
                votes[at++] = (struct vote){key->hash, (uint32_t)r,   (uint32_t)k,
                                            key->n,    key->usual_ns, key->spread};
        }
    if (votes && scratch)
        find_references(ranks, votes, at, scratch);
    sum = votes && scratch;
    free(votes);
    free(scratch);
    return rp_err_need(sum, err, "comparing work");
}

/* ------------------------------------------------------------------ cells */

/* A cell, or all cells of a rank and class, or of all steps. */
struct judged {
    uint64_t level; /* of cells that are compared with each other */
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

/* A cell counts four times: of its key and of all keys of its class, in its step and in all. */
static enum rp_code add_rank(struct judging *j, uint32_t r, struct rp_map *sums, struct rp_err *err)
{
    const struct rp_peer_rank *rank = &j->ranks[r];

    for (size_t i = 0; i < rank->ncells; i++) {
        const struct rp_peer_cell *c = &rank->cells[i];
        const struct rp_peer_key *key = &rank->keys[c->key];
        double ref = rank->ref_ns[c->key] * c->n;

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

/* How far cells scatter about their middle where nothing is wrong. x is sorted, and changed. */
static double scatter(double *x, size_t n)
{
    size_t part = (size_t)((double)n * LOW_PART);
    double low, sigma;

    if (n < FEW)
        return FEW_SIGMA;
    low = THIRD_SIGMA * deviation(x, part > 2 ? part : 2);
    sigma = rp_peers_sigma(x, n);
    return sigma > LONG_TAIL && low < sigma ? low : sigma;
}

RP_ORDER(by_level, struct judged, RP_UP(level), RP_UP(rank), RP_UP(step), RP_UP(key))

/* Leaves the cells that are abnormal: those of a level beyond their scatter. */
static void keep_abnormal(struct judging *j)
{
    struct judged *c = j->list.at;
    size_t n = j->list.n, i = 0, kept = 0;

    rp_sort(c, n, sizeof *c, by_level);
    while (i < n) {
        size_t first = i, count = 0;
        double low, beyond, sigma;

        for (; i < n && c[i].level == c[first].level; i++)
            j->scratch[count++] = excess_of(&c[i]);
        low = rp_peers_low(j->scratch, count);
        sigma = scatter(j->scratch, count);
        beyond = ABNORMAL_SIGMA * sigma > ABNORMAL_SHARE ? ABNORMAL_SIGMA * sigma : ABNORMAL_SHARE;
        for (size_t k = first; k < i; k++)
            if (excess_of(&c[k]) > low + beyond &&
                c[k].dur_ns - c[k].ref_ns > ABNORMAL_STEP * j->step_ns) {
                c[kept] = c[k];
                c[kept++].limit = low + beyond;
            }
    }
    j->list.n = kept;
}

/* Steps before the whole: a fault of some of them would else be spread over all. Kinds of work
   before all of them: what is left is judged then. */
static int turn_of(const struct judged *c)
{
    return (c->step == RP_PEERS_STAR ? 2 : 0) + (c->key == RP_PEERS_STAR ? 1 : 0);
}

RP_ORDER(by_turn, struct judged, RP_COMPARE(turn_of(a), turn_of(b)), RP_UP(rank), RP_UP(step),
         RP_UP(key), RP_UP(cls))

/* A cell that an abnormal sum covers takes the time of its peers and keeps its jitter; what takes
   more than twice as long (a pause) takes that time itself. */
static void mark_cell(struct rp_peer_rank *rank, struct judged *c, size_t i)
{
    const struct rp_peer_cell *cell = &rank->cells[i];
    double ref = rank->ref_ns[cell->key] * cell->n, own = c->ref_ns / c->dur_ns;

    if (rank->factor[i] < 1 || !(ref > 0) || rank->keys[cell->key].cls != c->cls)
        return;
    if (c->step != RP_PEERS_STAR && excess_of(c) >= 1)
        own = ref / cell->dur_ns;
    rank->factor[i] = own < 1 ? own : 1;
}

/* The first cell of a rank that is not before a key of a step. */
static size_t first_cell(const struct rp_peer_rank *rank, uint32_t step, uint32_t key)
{
    const struct rp_peer_cell *c = rank->cells;
    size_t i;

    RP_LOWER_BOUND(i, rank->ncells, c[i].step < step || (c[i].step == step && c[i].key < key));
    return i;
}

/* The cells of a rank that a sum covers: calls fn for each. */
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
        c->ref_ns -= rank->ref_ns[cell->key] * cell->n;
    }
}

/* A sum of which some cells are marked already is judged by the others. */
static void mark(struct judging *j, struct judged *c)
{
    struct rp_peer_rank *rank = &j->ranks[c->rank];

    each_cell(rank, c, take_out);
    if (c->ref_ns > 0 && excess_of(c) > c->limit &&
        c->dur_ns - c->ref_ns > ABNORMAL_STEP * j->step_ns)
        each_cell(rank, c, mark_cell);
}

static enum rp_code judge_all(struct judging *j, struct rp_err *err)
{
    struct rp_map sums;
    enum rp_code code = RP_OK;

    for (uint32_t r = 0; r < j->n && code == RP_OK; r++) {
        rp_map_init(&sums);
        code = add_rank(j, r, &sums, err);
        rp_map_release(&sums);
    }
    if (code != RP_OK)
        return code;
    j->scratch = malloc((j->list.n + 1) * sizeof *j->scratch);
    RP_TRY(rp_err_need(j->scratch, err, "comparing work"));
    keep_abnormal(j);
    rp_sort(j->list.at, j->list.n, sizeof *j->list.at, by_turn);
    for (size_t i = 0; i < j->list.n; i++)
        mark(j, &j->list.at[i]);
    return RP_OK;
}

enum rp_code rp_peers_judge(struct rp_peer_rank *ranks, size_t n, double step_ns,
                            struct rp_arena *arena, struct rp_err *err)
{
    struct judging j = {.ranks = ranks, .n = n, .step_ns = step_ns};
    enum rp_code code;

    for (size_t r = 0; r < n; r++) {
        ranks[r].ref_ns = RP_ARENA_NEW(arena, double, ranks[r].nkeys + 1);
        ranks[r].factor = RP_ARENA_NEW(arena, double, ranks[r].ncells + 1);
        ranks[r].mixed = RP_ARENA_NEW(arena, bool, ranks[r].nkeys + 1);
        ranks[r].over_ns = RP_ARENA_NEW(arena, double, ranks[r].ncells + 1);
        RP_TRY(rp_arena_check(arena, "comparing work", err));
        for (size_t i = 0; i < ranks[r].ncells; i++)
            ranks[r].factor[i] = 1;
    }
    RP_TRY(vote_all(ranks, n, err));
    code = judge_all(&j, err);
    free(j.scratch);
    rp_vec_release(&j.list);
    return code;
}

/* ------------------------------------------------------------------ single times */

static double over_of(const struct rp_peer_rank *rank, size_t cell, double dur_ns, uint32_t n)
{
    double over = dur_ns - rank->ref_ns[rank->cells[cell].key] * n;

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
