/* SPDX-License-Identifier: Apache-2.0 */
/* The search for groups of tensors (groups.h). */
#include "opt/groups.h"

#include "base/each.h"
#include "base/hash.h"
#include "base/threads.h"
#include "dataset/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Limits of a search: the plan is the best that was tried, and the answer says how many were. */
#define FEW_TENSORS 12
RP_LIMIT(FEW_TENSORS, "tensors", "all plans of so few are tried, 2^(n - 1)");
#define MOVES_BY 200
RP_LIMIT(MOVES_BY, "moves of a chain, times tensors", "then it ends with the best so far");
#define MOVES_MOST 200000
RP_LIMIT(MOVES_MOST, "moves of a chain", "then it ends with the best so far");
#define HOT 0.01
RP_LIMIT(HOT, "of a step", "the first temperature: longer plans are taken on the way");
#define COLD 1e-5
RP_LIMIT(COLD, "of a step", "the last temperature: only shorter plans are");
#define CHECK_EVERY 128
RP_LIMIT(CHECK_EVERY, "moves", "between looks at the clock");
#define SLIGHT 1e-6
RP_LIMIT(SLIGHT, "of a step",
         "rounding: of plans that differ by less the one with fewer groups is taken");

/* Where chains begin. */
enum { AT_BEST, AT_RECORDED, AT_SINGLE, AT_JOINED, CHAINS };

struct groups_ctx {
    const struct rp_opt_chain *chain;
    struct rp_opt_limits *limits;
    pthread_t caller;     /* only this thread may ask whether to stop */
    pthread_mutex_t lock; /* of limits, and of: */
    size_t moves;         /* of all chains */
    double least_ns;      /* the best of all chains */
    uint8_t *start;       /* where chains begin: CHAINS times n */
    uint8_t *found;       /* what they found */
    double found_ns[CHAINS];
    size_t tried[CHAINS];
};

/* ------------------------------------------------------------------ a plan */

/* Whether a group may end with a tensor. */
static bool may_end(const struct rp_opt_chain *c, size_t i)
{
    return i + 1 == c->n || !c->joined || !c->joined[i];
}

static double plan_ns(const struct rp_opt_chain *c, const uint8_t *ends, void *state)
{
    size_t i, first = 0;

    c->begin(c->user, state);
    for (i = 0; i < c->n; i++)
        if ((ends[i] || i + 1 == c->n) && may_end(c, i)) {
            c->add(c->user, state, first, i + 1);
            first = i + 1;
        }
    return c->step_ns(c->user, state);
}

enum rp_code rp_opt_groups_step(const struct rp_opt_chain *chain, const uint8_t *ends,
                                double *step_ns, struct rp_err *err)
{
    void *state = malloc(chain->state_size + 1);

    RP_TRY(rp_err_need(state, err, "searching"));
    *step_ns = plan_ns(chain, ends, state);
    free(state);
    return RP_OK;
}

static size_t count_groups(const uint8_t *ends, size_t n)
{
    size_t i, count = 0;

    for (i = 0; i < n; i++)
        count += ends[i] || i + 1 == n;
    return count;
}

/* Whether it is shorter, or as short with fewer groups. */
static bool is_better(const struct rp_opt_chain *c, double ns, const uint8_t *ends, double than_ns,
                      const uint8_t *than)
{
    if (fabs(ns - than_ns) > SLIGHT * than_ns)
        return ns < than_ns;
    return count_groups(ends, c->n) < count_groups(than, c->n);
}

/* ------------------------------------------------------------------ all plans */

static size_t try_all(const struct rp_opt_chain *c, void *state, uint8_t *best, double *best_ns)
{
    uint8_t ends[FEW_TENSORS];
    uint32_t plan, nplans = 1u << (c->n - 1);

    for (plan = 0; plan < nplans; plan++) {
        for (size_t i = 0; i < c->n; i++)
            ends[i] = i + 1 == c->n || (plan >> i & 1);
        double ns = plan_ns(c, ends, state);
        if (is_better(c, ns, ends, *best_ns, best)) {
            memcpy(best, ends, c->n);
            *best_ns = ns;
        }
    }
    return nplans;
}

/* ------------------------------------------------------------------ the walk */

struct walk {
    char *states;  /* by number of tensors sent: the best way so far */
    size_t *from;  /* the begin of its last group */
    double *there; /* when they are there */
};

/* Extends the best way to have sent `first` tensors by one group of every size. */
static size_t walk_from(const struct rp_opt_chain *c, struct walk *w, size_t first, char *state)
{
    const char *before = w->states + first * c->state_size;
    size_t end, tried = 0;

    for (end = first + 1; end <= c->n; end++) {
        if (!may_end(c, end - 1))
            continue;
        memcpy(state, before, c->state_size);
        c->add(c->user, state, first, end);
        double there = c->there_ns(c->user, state);
        tried++;
        if (there < w->there[end]) {
            memcpy(w->states + end * c->state_size, state, c->state_size);
            w->there[end] = there;
            w->from[end] = first;
        }
        if (end < c->n && there < c->ready_ns(c->user, end))
            break; /* the group would only wait for the next tensor */
    }
    return tried;
}

static enum rp_code walk(struct groups_ctx *g, char *state, uint8_t *ends, size_t *tried,
                         struct rp_err *err)
{
    const struct rp_opt_chain *c = g->chain;
    struct walk w = {malloc((c->n + 1) * c->state_size + 1), calloc(c->n + 1, sizeof *w.from),
                     malloc((c->n + 1) * sizeof *w.there)};
    enum rp_code code = rp_err_need(w.states && w.from && w.there, err, "searching");

    for (size_t i = 0; code == RP_OK && i <= c->n; i++)
        w.there[i] = INFINITY;
    if (code == RP_OK) {
        c->begin(c->user, w.states);
        w.there[0] = 0;
    }
    for (size_t i = 0; code == RP_OK && i < c->n; i++) {
        if (!isfinite(w.there[i]))
            continue;
        *tried += walk_from(c, &w, i, state);
    }
    if (code == RP_OK)
        memset(ends, 0, c->n);
    for (size_t i = c->n; code == RP_OK && i; i = w.from[i])
        ends[i - 1] = 1;
    RP_EACH(free, w.states, w.from, w.there);
    return code;
}

/* ------------------------------------------------------------------ annealing */

static uint64_t next_random(uint64_t *x)
{
    *x += UINT64_C(0x9e3779b97f4a7c15);
    return rp_hash_u64(*x);
}

static double next_part(uint64_t *x)
{
    return (double)(next_random(x) >> 11) / 9007199254740992.0;
}

/* Joins or splits two groups, or moves the end of one. */
static void change(uint8_t *ends, size_t n, uint64_t *random)
{
    size_t i = (size_t)(next_random(random) % (n - 1)), k;

    if (next_random(random) & 1 || !ends[i]) {
        ends[i] = !ends[i];
        return;
    }
    k = next_random(random) & 1 ? i + 1 : i - 1;
    if (k < n - 1 && !ends[k]) {
        ends[i] = 0;
        ends[k] = 1;
    } else {
        ends[i] = 0;
    }
}

static bool is_over(struct groups_ctx *g)
{
    pthread_mutex_lock(&g->lock);
    bool over = pthread_equal(pthread_self(), g->caller) ? rp_opt_over(g->limits)
                                                         : rp_opt_out_of_time(g->limits);
    pthread_mutex_unlock(&g->lock);
    return over;
}

/* Adds to the trajectory; all chains together have tried about so many plans. */
static void note_better(struct groups_ctx *g, double ns, size_t moves)
{
    pthread_mutex_lock(&g->lock);
    if (ns < g->least_ns) {
        g->least_ns = ns;
        if (g->limits->workspace && g->chain->whole)
            rp_opt_workspace_point(g->limits->workspace, (int64_t)(g->moves + CHAINS * moves), ns);
    }
    pthread_mutex_unlock(&g->lock);
}

static void anneal(struct groups_ctx *g, size_t at, uint8_t *ends, uint8_t *next, void *state)
{
    const struct rp_opt_chain *c = g->chain;
    size_t n = c->n, move, moves = n * MOVES_BY < MOVES_MOST ? n * MOVES_BY : MOVES_MOST;
    uint8_t *best = g->found + at * n;
    uint64_t random = rp_hash_join(rp_hash_join(g->limits->seed, at),
                                   g->limits->workspace ? g->limits->workspace->round : 1);
    double now, least, heat;

    memcpy(ends, g->start + at * n, n);
    ends[n - 1] = 1;
    memcpy(best, ends, n);
    now = least = plan_ns(c, ends, state);
    for (move = 0; move < moves; move++) {
        if (move % CHECK_EVERY == 0 && is_over(g))
            break;
        memcpy(next, ends, n);
        change(next, n, &random);
        double ns = plan_ns(c, next, state);
        heat = least * HOT * pow(COLD / HOT, (double)move / (double)moves);
        if (ns > now && next_part(&random) >= exp((now - ns) / heat))
            continue;
        memcpy(ends, next, n);
        now = ns;
        if (is_better(c, now, ends, least, best)) {
            memcpy(best, ends, n);
            least = now;
            note_better(g, least, move + 1);
        }
    }
    g->found_ns[at] = least;
    g->tried[at] = move + 1;
}

static enum rp_code chain_job(void *user, size_t i, struct rp_err *err)
{
    struct groups_ctx *g = user;
    RP_FREED uint8_t *ends = malloc(2 * g->chain->n + 1);
    RP_FREED void *state = malloc(g->chain->state_size + 1);

    RP_TRY(rp_err_need(ends && state, err, "searching"));
    anneal(g, i, ends, ends + g->chain->n, state);
    return RP_OK;
}

static enum rp_code run_chains(struct groups_ctx *g, uint8_t *best, double *best_ns, size_t *tried,
                               struct rp_err *err)
{
    const struct rp_ctx *ctx = g->limits->ctx;
    struct rp_pool *pool = NULL;
    enum rp_code code = rp_pool_new(ctx && ctx->pool ? rp_pool_threads(ctx->pool) : 0, &pool, err);

    if (code == RP_OK)
        code = rp_pool_each(pool, CHAINS, chain_job, g, err);
    for (size_t i = 0; code == RP_OK && i < CHAINS; i++) {
        *tried += g->tried[i];
        if (is_better(g->chain, g->found_ns[i], g->found + i * g->chain->n, *best_ns, best)) {
            memcpy(best, g->found + i * g->chain->n, g->chain->n);
            *best_ns = g->found_ns[i];
        }
    }
    rp_pool_free(pool);
    return code;
}

/* ------------------------------------------------------------------ all of it */

static enum rp_code search(struct groups_ctx *g, void *state, uint8_t *ends, uint8_t *recorded,
                           double *best_ns, size_t *tried, struct rp_err *err)
{
    const struct rp_opt_chain *c = g->chain;

    memcpy(recorded, ends, c->n);
    ends[c->n - 1] = recorded[c->n - 1] = 1;
    *best_ns = plan_ns(c, ends, state);
    *tried = 1;
    g->least_ns = INFINITY;
    note_better(g, *best_ns, 0);
    if (c->n <= FEW_TENSORS) {
        *tried += try_all(c, state, ends, best_ns);
        g->moves = *tried;
        note_better(g, *best_ns, 0);
        return RP_OK;
    }
    if (!c->no_walk)
        RP_TRY(walk(g, state, g->found, tried, err));
    double ns = c->no_walk ? INFINITY : plan_ns(c, g->found, state);
    if (!c->no_walk && is_better(c, ns, g->found, *best_ns, ends)) {
        memcpy(ends, g->found, c->n);
        *best_ns = ns;
    }
    g->moves = *tried;
    note_better(g, *best_ns, 0);

    /* Start chains at plans that are known to be good, and at the extremes. */
    const char *resumed =
        g->limits->workspace && g->chain->whole ? g->limits->workspace->groups : NULL;
    size_t i, n = g->chain->n;
    memcpy(g->start + AT_BEST * n, ends, n);
    memcpy(g->start + AT_RECORDED * n, recorded, n);
    memset(g->start + AT_SINGLE * n, 1, n);
    memset(g->start + AT_JOINED * n, 0, n);
    for (i = 0; resumed && strlen(resumed) == n && i < n; i++)
        g->start[AT_JOINED * n + i] = resumed[i] == '1';

    return run_chains(g, ends, best_ns, tried, err);
}

enum rp_code rp_opt_search_groups(const struct rp_opt_chain *chain, struct rp_opt_limits *limits,
                                  uint8_t *ends, double *best_ns, size_t *tried, struct rp_err *err)
{
    struct groups_ctx g = {.chain = chain, .limits = limits};
    void *state = malloc(chain->state_size + 1);
    uint8_t *room = malloc((size_t)(2 * CHAINS + 1) * chain->n + 1);
    enum rp_code code = rp_err_need(state && room, err, "searching");

    pthread_mutex_init(&g.lock, NULL);
    g.caller = pthread_self();
    g.start = room;
    g.found = room + CHAINS * chain->n;
    if (code == RP_OK)
        code = search(&g, state, ends, room + (size_t)2 * CHAINS * chain->n, best_ns, tried, err);
    for (size_t i = 0; i < chain->n; i++)
        ends[i] = ends[i] && may_end(chain, i);
    pthread_mutex_destroy(&g.lock);
    RP_EACH(free, room, state);
    return code;
}
