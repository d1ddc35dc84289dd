/* SPDX-License-Identifier: Apache-2.0 */
#include "places/places.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "places/clock_steps.h"
#include "places/peers.h"
#include "places/rerun.h"
#include "places/transfers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_LOSS 0.01
RP_DECISION(LEAST_LOSS, "of the recording",
            "30 healthy jobs lost up to 0.32 % to abnormal work, by chance",
            "places/a_small_loss_is_nobodys");
#define ERROR_SHARE 0.33
RP_DECISION(ERROR_SHARE, "of a cost",
            "a model that is off by a third of what it explains may explain another third wrongly",
            "places/a_model_that_is_off_blames_nobody");
#define NEAR_BEST 0.85
RP_DECISION(NEAR_BEST, "of the largest cost",
            "a host and its one slow rank cost the same, except for the jitter of its other ranks",
            "places/the_smallest_place_is_named");
#define ALONE 0.35
RP_DECISION(
    ALONE, "of the loss",
    "a place that explains less than that leaves more than half to others: several hide each "
    "other, or none is slow",
    "places/two_slow_ranks_hide_each_other");
#define TOGETHER 0.7
RP_DECISION(TOGETHER, "of the loss",
            "ranks that are named together explain it but for the unevenness of the others",
            "places/work_that_wanders_is_nobodys");
#define COMPARABLE 0.3
RP_DECISION(
    COMPARABLE, "of the lateness of a rank",
    "ranks of a slow host are late alike; one that is late in the same step by chance is not",
    "places/a_host_is_slow_where_most_of_its_ranks_are");
#define MOST_PLACES 3
RP_LIMIT(MOST_PLACES, "places", "are named; the rest of the loss is not divided");
#define MOST_TOGETHER 4
RP_LIMIT(MOST_TOGETHER, "ranks", "are named together; more of them are uneven work");
#define MOST_SETS 64
RP_LIMIT(MOST_SETS, "ranks",
         "those with most abnormal work are candidates; of the others, hosts and stages are");
#define SETS_AT_ONCE (RP_RERUN_COLUMNS)

const char *const rp_place_kind_names[RP_PLACE_KINDS] = {"rank", "link", "nic", "stage", "host"};

/* Sizes of places: a path has two ends, and a card many paths. */
enum { RANK_SIZE = 1, LINK_SIZE, NIC_SIZE };

/* Abnormal work that belongs together. */
struct set {
    enum rp_place_kind kind;
    uint32_t a, b; /* rank, hosts, or number of the stage or host */
    size_t nranks; /* of a host or stage */
    const uint32_t *ranks;
    double amount_ns; /* of abnormal work */
    double cost_ns;
    bool taken;     /* it is repaired */
    bool by_chance; /* or nobody's */
};

struct finder {
    const struct rp_places_input *in;
    struct rp_places *out;
    struct rp_arena *arena;
    struct rp_rerun rerun;
    struct rp_peer_rank *ranks;
    struct rp_place_transfers transfers;
    double **late;                 /* by rank and step: abnormal work in ns */
    struct rp_peer_sum *sums, all; /* of work that is not repaired: by rank, and of all */
    RP_VEC(struct set) sets;
    uint8_t *work_done, *slot_done; /* by rank and step, or by slot: 1 if already repaired */
    struct rp_rerun_cuts cuts;      /* for the columns that run next */
    uint32_t **on_host;             /* by host: its ranks */
    size_t *non_host;
    uint32_t *stage_of; /* by rank; RP_NONE if none */
    uint32_t **of_stage;
    size_t *nof_stage, nstages;
    bool stuck;
};

/* ------------------------------------------------------------------ abnormal work */

RP_ORDER(by_step, struct rp_peer_cell, RP_UP(step), RP_UP(key))

/* Lists the work of a rank by key and step; steps are those of the job. */
static enum rp_code list_cells(struct finder *f, size_t r, struct rp_err *err)
{
    const struct rp_course *c = f->in->courses[r];
    struct rp_peer_rank *to = &f->ranks[r];
    struct rp_peer_key *keys = RP_ARENA_NEW(f->arena, struct rp_peer_key, c->nkeys + 1);
    struct rp_peer_cell *cells = RP_ARENA_NEW(f->arena, struct rp_peer_cell, c->nitems + 1);
    size_t n = 0, kept = 0;

    RP_TRY(rp_err_need(keys && cells, err, "comparing work"));
    for (size_t k = 0; k < c->nkeys; k++)
        keys[k] = (struct rp_peer_key){c->keys[k].hash, c->keys[k].usual_ns, c->keys[k].spread,
                                       c->keys[k].n, c->keys[k].cls};
    for (size_t i = 0; i < c->nops; i++)
        for (uint32_t k = 0; k < c->ops[i].n; k++) {
            const struct rp_course_item *item = &c->items[c->ops[i].first + k];

            cells[n++] = (struct rp_peer_cell){item->key, f->rerun.ranks[r].steps[c->ops[i].step],
                                               item->n, (double)item->dur_ns, 0};
        }
    rp_sort(cells, n, sizeof *cells, by_step);
    for (size_t i = 0; i < n; i++)
        if (kept && cells[kept - 1].step == cells[i].step && cells[kept - 1].key == cells[i].key) {
            cells[kept - 1].n += cells[i].n;
            cells[kept - 1].dur_ns += cells[i].dur_ns;
        } else {
            cells[kept++] = cells[i];
        }
    *to =
        (struct rp_peer_rank){.keys = keys,
                              .nkeys = c->nkeys,
                              .cells = cells,
                              .ncells = kept,
                              .role = rp_place_role(f->in->lists[r], f->in->rendezvous->stages, r)};
    return RP_OK;
}

static size_t cell_at(const struct rp_peer_rank *rank, uint32_t step, uint32_t key)
{
    const struct rp_peer_cell *c = rank->cells;
    size_t i;

    RP_LOWER_BOUND(i, rank->ncells, c[i].step < step || (c[i].step == step && c[i].key < key));
    return i;
}

static size_t cell_of_item(const struct finder *f, size_t r, const struct rp_course_op *op,
                           uint32_t k)
{
    const struct rp_course *c = f->in->courses[r];

    return cell_at(&f->ranks[r], f->rerun.ranks[r].steps[op->step], c->items[op->first + k].key);
}

/* Finds the abnormal part of each operation. */
static void cut_work(struct finder *f, size_t r)
{
    const struct rp_course *c = f->in->courses[r];
    struct rp_rerun_rank *rank = &f->rerun.ranks[r];
    struct rp_peer_rank *peer = &f->ranks[r];

    for (size_t i = 0; i < c->nops; i++)
        for (uint32_t k = 0; k < c->ops[i].n; k++) {
            const struct rp_course_item *item = &c->items[c->ops[i].first + k];

            rp_peers_weigh(peer, cell_of_item(f, r, &c->ops[i], k), (double)item->dur_ns, item->n);
        }
    for (size_t i = 0; i < c->nops; i++) {
        double cut = 0;

        for (uint32_t k = 0; k < c->ops[i].n; k++) {
            const struct rp_course_item *item = &c->items[c->ops[i].first + k];

            cut += rp_peers_cut(peer, cell_of_item(f, r, &c->ops[i], k), (double)item->dur_ns,
                                item->n);
        }
        rank->cut[i] = (float)cut;
        f->late[r][rank->steps[c->ops[i].step]] += cut;
    }
}

static enum rp_code find_abnormal(struct finder *f, struct rp_err *err)
{
    double step_ns = f->rerun.recorded_ns / (double)f->rerun.nsteps;

    f->ranks = RP_ARENA_NEW(f->arena, struct rp_peer_rank, f->in->n + 1);
    f->late = RP_ARENA_NEW(f->arena, double *, f->in->n + 1);
    RP_TRY(rp_err_need(f->ranks && f->late, err, "comparing work"));
    for (size_t r = 0; r < f->in->n; r++) {
        f->late[r] = RP_ARENA_NEW(f->arena, double, f->rerun.nsteps + 1);
        RP_TRY(rp_err_need(f->late[r], err, "comparing work"));
        RP_TRY(list_cells(f, r, err));
    }
    RP_TRY(rp_peers_judge(f->ranks, f->in->n, step_ns, f->arena, err));
    for (size_t r = 0; r < f->in->n; r++)
        cut_work(f, r);
    return rp_place_transfers_judge(&f->transfers, &f->rerun, f->in->rendezvous, f->out->host_of,
                                    f->arena, err);
}

/* ------------------------------------------------------------------ places */

static enum rp_code find_hosts(struct finder *f, struct rp_err *err)
{
    struct rp_places *out = f->out;
    size_t n = f->in->n;

    out->hosts = RP_ARENA_NEW(f->arena, const char *, n + 1);
    out->host_of = RP_ARENA_NEW(f->arena, uint32_t, n + 1);
    f->on_host = RP_ARENA_NEW(f->arena, uint32_t *, n + 1);
    f->non_host = RP_ARENA_NEW(f->arena, size_t, n + 1);
    RP_TRY(rp_arena_check(f->arena, "comparing ranks", err));
    for (size_t r = 0; r < n; r++) {
        const char *host = f->in->hosts[r];
        uint32_t h = 0;

        out->host_of[r] = RP_NONE;
        if (!host)
            continue;
        while (h < out->nhosts && strcmp(out->hosts[h], host) != 0)
            h++;
        if (h == out->nhosts) {
            out->hosts[out->nhosts++] = host;
            f->on_host[h] = RP_ARENA_NEW(f->arena, uint32_t, n);
            RP_TRY(rp_err_need(f->on_host[h], err, "comparing ranks"));
        }
        out->host_of[r] = h;
        f->on_host[h][f->non_host[h]++] = (uint32_t)r;
    }
    return RP_OK;
}

/* Finds stages: ranks with the same place in their pipelines. */
static enum rp_code find_stages(struct finder *f, struct rp_err *err)
{
    const struct rp_pipe_stage *stages = f->in->rendezvous->stages;
    size_t n = f->in->n;

    f->stage_of = RP_ARENA_NEW(f->arena, uint32_t, n + 1);
    RP_TRY(rp_err_need(f->stage_of, err, "comparing ranks"));
    for (size_t r = 0; r < n; r++) {
        f->stage_of[r] = stages && stages[r].pipeline != RP_NONE ? stages[r].stage : RP_NONE;
        if (f->stage_of[r] != RP_NONE && f->stage_of[r] >= f->nstages)
            f->nstages = (size_t)f->stage_of[r] + 1;
    }
    f->of_stage = RP_ARENA_NEW(f->arena, uint32_t *, f->nstages + 1);
    f->nof_stage = RP_ARENA_NEW(f->arena, size_t, f->nstages + 1);
    RP_TRY(rp_err_need(f->of_stage && f->nof_stage, err, "comparing ranks"));
    for (size_t r = 0; r < n; r++) {
        uint32_t s = f->stage_of[r];

        if (s == RP_NONE)
            continue;
        if (!f->of_stage[s])
            f->of_stage[s] = RP_ARENA_NEW(f->arena, uint32_t, n);
        RP_TRY(rp_err_need(f->of_stage[s], err, "comparing ranks"));
        f->of_stage[s][f->nof_stage[s]++] = (uint32_t)r;
    }
    return RP_OK;
}

/* A host or stage has the abnormal work of a rank if most of its ranks are equally late; otherwise
   a single rank is slow, and another one the next time. */
static bool is_shared(const struct finder *f, const struct set *s, uint32_t rank, size_t step)
{
    double own = f->late[rank][step];
    size_t n = 0;

    for (size_t i = 0; i < s->nranks; i++)
        n += f->late[s->ranks[i]][step] > COMPARABLE * own;
    return own > 0 && 2 * n > s->nranks;
}

static bool has_work(const struct finder *f, const struct set *s, uint32_t rank, size_t step)
{
    switch (s->kind) {
    case RP_PLACE_RANK:
        return rank == s->a && f->late[rank][step] > 0;
    case RP_PLACE_STAGE:
        return f->stage_of[rank] == s->a && is_shared(f, s, rank, step);
    case RP_PLACE_HOST:
        return f->out->host_of[rank] == s->a && is_shared(f, s, rank, step);
    default:
        return false;
    }
}

static bool has_slot(const struct finder *f, const struct set *s, size_t slot)
{
    const struct rp_place_transfer *t = &f->transfers.at[slot];

    if (s->kind == RP_PLACE_LINK)
        return t->nhosts == 2 && t->hosts[0] == s->a && t->hosts[1] == s->b;
    return s->kind == RP_PLACE_NIC && t->nhosts > 1 && rp_place_transfer_touches(t, s->a);
}

static void amount_of(struct finder *f, struct set *s)
{
    for (size_t i = 0; i < s->nranks; i++)
        for (size_t step = 0; step < f->rerun.nsteps; step++)
            if (has_work(f, s, s->ranks[i], step))
                s->amount_ns += f->late[s->ranks[i]][step];
    if (s->kind != RP_PLACE_LINK && s->kind != RP_PLACE_NIC)
        return;
    for (size_t i = 0; i < f->rerun.nslots; i++)
        if (has_slot(f, s, i))
            s->amount_ns += (double)f->rerun.slots[i].cut_ns;
}

static enum rp_code add_set(struct finder *f, struct set s, struct rp_err *err)
{
    amount_of(f, &s);
    return s.amount_ns > 0 ? rp_vec_push(&f->sets, s, err) : RP_OK;
}

RP_ORDER(by_amount, struct set, RP_DOWN(amount_ns), RP_UP(a))

static enum rp_code list_sets(struct finder *f, struct rp_err *err)
{
    uint32_t *own = RP_ARENA_NEW(f->arena, uint32_t, f->in->n + 1);
    size_t nhosts = f->out->nhosts;

    RP_TRY(rp_err_need(own, err, "comparing ranks"));
    for (uint32_t r = 0; r < f->in->n; r++) {
        own[r] = r;
        RP_TRY(add_set(f, (struct set){RP_PLACE_RANK, r, 0, 1, &own[r], 0, 0, false, false}, err));
    }
    rp_sort(f->sets.at, f->sets.n, sizeof *f->sets.at, by_amount);
    f->sets.n = f->sets.n < MOST_SETS ? f->sets.n : MOST_SETS;
    for (uint32_t s = 0; s < f->nstages; s++)
        if (f->nof_stage[s] > 1)
            RP_TRY(add_set(f,
                           (struct set){RP_PLACE_STAGE, s, 0, f->nof_stage[s], f->of_stage[s], 0, 0,
                                        false, false},
                           err));
    for (uint32_t h = 0; h < nhosts && nhosts > 1; h++) {
        RP_TRY(add_set(f, (struct set){RP_PLACE_NIC, h, 0, 0, NULL, 0, 0, false, false}, err));
        if (f->non_host[h] > 1)
            RP_TRY(add_set(f,
                           (struct set){RP_PLACE_HOST, h, 0, f->non_host[h], f->on_host[h], 0, 0,
                                        false, false},
                           err));
    }
    for (size_t i = 0; i < f->transfers.npairs; i++)
        RP_TRY(add_set(f,
                       (struct set){RP_PLACE_LINK, f->transfers.pairs[i].a, f->transfers.pairs[i].b,
                                    0, NULL, 0, 0, false, false},
                       err));
    return RP_OK;
}

/* ------------------------------------------------------------------ runs */

/* What a column repairs: the work already repaired and a set, or everything except the set. */
struct column_of {
    const struct set *const *sets;
    size_t n;
    bool all; /* everything except the sets */
    bool none;
};

static bool column_has_work(const struct finder *f, const struct column_of *c, uint32_t r, size_t s)
{
    bool in = false;

    for (size_t i = 0; i < c->n && !in; i++)
        in = has_work(f, c->sets[i], r, s);
    return c->all ? !in : in || (!c->none && f->work_done[r * f->rerun.nsteps + s]);
}

static bool column_has_slot(const struct finder *f, const struct column_of *c, size_t slot)
{
    bool in = false;

    for (size_t i = 0; i < c->n && !in; i++)
        in = has_slot(f, c->sets[i], slot);
    return c->all ? !in : in || (!c->none && f->slot_done[slot]);
}

/* Runs up to eight columns. */
static enum rp_code run_columns(struct finder *f, const struct column_of *columns, size_t n,
                                double *end_ns, struct rp_err *err)
{
    double ends[RP_RERUN_COLUMNS];
    bool stuck;

    for (uint32_t r = 0; r < f->in->n; r++)
        for (size_t s = 0; s < f->rerun.nsteps; s++) {
            uint8_t mask = 0;

            for (size_t c = 0; c < n && f->late[r][s] > 0; c++)
                mask |= (uint8_t)(column_has_work(f, &columns[c], r, s) << c);
            f->cuts.work[r * f->rerun.nsteps + s] = mask;
        }
    for (size_t s = 0; s < f->rerun.nslots; s++) {
        uint8_t mask = 0;

        for (size_t c = 0; c < n && f->rerun.slots[s].cut_ns > 0; c++)
            mask |= (uint8_t)(column_has_slot(f, &columns[c], s) << c);
        f->cuts.slot[s] = mask;
    }
    RP_TRY(rp_rerun_run(&f->rerun, &f->cuts, ends, &stuck, err));
    f->stuck |= stuck;
    memcpy(end_ns, ends, n * sizeof *ends);
    return RP_OK;
}

/* Runs with each of the sets repaired, in addition to the work already repaired; or broken in a run
   in which everything else is repaired. */
static enum rp_code run_sets(struct finder *f, bool all, double *end_ns, struct rp_err *err)
{
    const struct set *list[RP_RERUN_COLUMNS];
    struct column_of columns[RP_RERUN_COLUMNS];

    for (size_t i = 0; i < f->sets.n; i += SETS_AT_ONCE) {
        size_t n = f->sets.n - i < SETS_AT_ONCE ? f->sets.n - i : SETS_AT_ONCE;

        for (size_t k = 0; k < n; k++) {
            list[k] = &f->sets.at[i + k];
            columns[k] = (struct column_of){&list[k], 1, all, false};
        }
        RP_TRY(run_columns(f, columns, n, end_ns + i, err));
    }
    return RP_OK;
}

static enum rp_code run_one(struct finder *f, struct column_of column, double *end_ns,
                            struct rp_err *err)
{
    return run_columns(f, &column, 1, end_ns, err);
}

static void repair(struct finder *f, const struct set *s)
{
    for (uint32_t r = 0; r < f->in->n; r++)
        for (size_t step = 0; step < f->rerun.nsteps; step++)
            f->work_done[r * f->rerun.nsteps + step] |= has_work(f, s, r, step);
    for (size_t i = 0; i < f->rerun.nslots; i++)
        f->slot_done[i] |= has_slot(f, s, i);
}

/* ------------------------------------------------------------------ the choice */

/* Returns how many ranks a place represents: the smaller place is named. */
static size_t size_of(const struct set *s)
{
    switch (s->kind) {
    case RP_PLACE_RANK:
        return RANK_SIZE;
    case RP_PLACE_LINK:
        return LINK_SIZE;
    case RP_PLACE_NIC:
        return NIC_SIZE;
    default:
        return s->nranks;
    }
}

/* Of equal places, the smaller one is better. A stage that is a host is named as a stage. */
static bool is_better(const struct set *a, const struct set *b)
{
    if (size_of(a) != size_of(b))
        return size_of(a) < size_of(b);
    return a->kind != b->kind ? a->kind < b->kind : a->cost_ns > b->cost_ns;
}

static struct rp_peer_sum sum_of(const struct finder *f, const struct set *s)
{
    struct rp_peer_sum own = {0};

    for (size_t i = 0; i < s->nranks; i++)
        rp_peers_add(&own, &f->sums[s->ranks[i]]);
    return own;
}

/* Whether each of these places has more abnormal work than chance would give it, judged by the
   ranks that are in none of them. Since several were chosen among many, each of them must have
   more. Transfers are judged by their groups. */
static bool are_beyond_chance(const struct finder *f, struct set *const *sets, size_t n)
{
    struct rp_peer_sum others = f->all;
    bool beyond = true;

    for (size_t k = 0; k < n; k++) {
        struct rp_peer_sum own = sum_of(f, sets[k]);

        others.n -= own.n, others.sum -= own.sum, others.squares -= own.squares;
    }
    for (size_t k = 0; k < n && beyond; k++) {
        struct rp_peer_sum own = sum_of(f, sets[k]);

        beyond = !sets[k]->nranks || rp_peers_beyond(&own, &others) > RP_PEERS_CHANCE * (double)n;
    }
    return beyond;
}

/* Whether transfers with each of at least two other hosts are slow by a similar factor: then the
   network card is slow, not each of the links. */
static enum rp_code find_slow_card(struct finder *f, uint32_t host, bool *out, struct rp_err *err)
{
    double *dur = calloc(2 * (f->out->nhosts + 1), sizeof *dur), most = 0;
    double *cut = dur ? dur + f->out->nhosts : NULL;
    size_t npaths = 0, nslow = 0;

    RP_TRY(rp_err_need(dur, err, "comparing ranks"));
    for (size_t i = 0; i < f->rerun.nslots; i++) {
        const struct rp_place_transfer *t = &f->transfers.at[i];

        if (t->nhosts != 2 || !rp_place_transfer_touches(t, host))
            continue;
        uint32_t other = t->hosts[t->hosts[0] == host];
        dur[other] += (double)f->rerun.slots[i].dur_ns;
        cut[other] += (double)f->rerun.slots[i].cut_ns;
    }
    for (size_t h = 0; h < f->out->nhosts; h++) {
        npaths += dur[h] > 0;
        cut[h] /= dur[h] > 0 ? dur[h] : 1;
        most = cut[h] > most ? cut[h] : most;
    }
    for (size_t h = 0; h < f->out->nhosts; h++)
        nslow += cut[h] > COMPARABLE * most;
    *out = nslow > 1 && nslow == npaths;
    free(dur);
    return RP_OK;
}

/* Replaces a link by the card of one of its hosts if that is slow. */
static enum rp_code prefer_card(struct finder *f, struct set **best, struct rp_err *err)
{
    const struct set link = **best;

    for (size_t i = 0; i < f->sets.n && link.kind == RP_PLACE_LINK; i++) {
        struct set *s = &f->sets.at[i];
        bool slow;

        if (s->kind != RP_PLACE_NIC || s->by_chance || s->cost_ns < link.cost_ns ||
            (s->a != link.a && s->a != link.b))
            continue;
        RP_TRY(find_slow_card(f, s->a, &slow, err));
        if (slow)
            *best = s;
    }
    return RP_OK;
}

/* Returns the smallest of the places that cost nearly as much as the one that costs most. */
static struct set *smallest(struct finder *f, double top)
{
    struct set *best = NULL;

    for (size_t i = 0; i < f->sets.n; i++) {
        struct set *s = &f->sets.at[i];

        if (!s->by_chance && s->cost_ns >= NEAR_BEST * top && (!best || is_better(s, best)))
            best = s;
    }
    return best;
}

/* Finds how much of a set's abnormal work belongs to one key and rank, and how much longer it
   takes; and whether all work of a device takes longer. */
static enum rp_code describe(struct finder *f, struct set *const *sets, size_t n,
                             struct rp_place_found *to, struct rp_err *err)
{
    double most = 0, often = 0, sum = 0, whole = 0;
    uint8_t *in_step = RP_ARENA_NEW(f->arena, uint8_t, f->rerun.nsteps + 1);

    RP_TRY(rp_err_need(in_step, err, "comparing ranks"));
    for (uint32_t r = 0; r < f->in->n; r++) {
        const struct rp_peer_rank *rank = &f->ranks[r];
        double *by_key = calloc(2 * (rank->nkeys + 1), sizeof *by_key);
        double *extra = by_key ? by_key + rank->nkeys : NULL; /* what more of it takes */

        RP_TRY(rp_err_need(by_key, err, "comparing ranks"));
        for (size_t i = 0; i < rank->ncells; i++) {
            const struct rp_peer_cell *c = &rank->cells[i];
            bool in = false;

            for (size_t k = 0; k < n && !in && rank->factor[i] < 1; k++)
                in = has_work(f, sets[k], r, c->step);
            if (!in)
                continue;
            by_key[c->key] += c->dur_ns * (1 - rank->factor[i]);
            extra[c->key] += rank->ref_ns[i] * c->n - c->dur_ns * rank->factor[i];
            sum += c->dur_ns * (1 - rank->factor[i]);
            whole += c->dur_ns;
            in_step[c->step] = 1;
        }
        for (size_t k = 0; k < rank->nkeys; k++)
            if (by_key[k] > most) {
                most = by_key[k];
                often = extra[k];
                to->rank = r;
                to->what = f->in->courses[r]->keys[k].name;
                to->what_class = (enum rp_course_class)f->in->courses[r]->keys[k].cls;
            }
        free(by_key);
    }
    for (size_t i = 0; i < f->rerun.nslots; i++)
        for (size_t k = 0; k < n; k++)
            if (f->rerun.slots[i].cut_ns > 0 && has_slot(f, sets[k], i)) {
                sum += (double)f->rerun.slots[i].cut_ns;
                whole += (double)f->rerun.slots[i].dur_ns;
                in_step[f->transfers.at[i].step] = 1;
            }
    to->more = often > most / 2;
    to->slower = whole > sum ? whole / (whole - sum) - 1 : 0;
    to->first_step = INT64_MAX;
    for (size_t s = 0; s < f->rerun.nsteps; s++)
        if (in_step[s]) {
            to->first_step = to->nsteps ? to->first_step : f->rerun.step_numbers[s];
            to->last_step = f->rerun.step_numbers[s];
            to->nsteps++;
        }
    return RP_OK;
}

static enum rp_code add_found(struct finder *f, struct set *const *sets, size_t n, double cost,
                              double added, struct rp_err *err)
{
    struct rp_place_found *to = &f->out->at[f->out->n];
    uint32_t *ranks = RP_ARENA_NEW(f->arena, uint32_t, f->in->n + 1);
    uint32_t *hosts = RP_ARENA_NEW(f->arena, uint32_t, f->out->nhosts + 2);
    const struct set *s = sets[0];

    RP_TRY(rp_err_need(ranks && hosts, err, "comparing ranks"));
    *to = (struct rp_place_found){.kind = s->kind,
                                  .ranks = ranks,
                                  .hosts = hosts,
                                  .cost_ns = cost,
                                  .least_ns = cost < added ? cost : added,
                                  .most_ns = cost > added ? cost : added,
                                  .rank = RP_NONE};
    if (s->kind == RP_PLACE_LINK || s->kind == RP_PLACE_NIC) {
        hosts[to->nhosts++] = s->a;
        if (s->kind == RP_PLACE_LINK)
            hosts[to->nhosts++] = s->b;
    }
    for (uint32_t r = 0; r < f->in->n; r++) {
        bool in = false;

        for (size_t k = 0; k < n && !in; k++)
            for (size_t i = 0; i < sets[k]->nranks && !in; i++)
                in = sets[k]->ranks[i] == r;
        for (size_t h = 0; h < to->nhosts && !s->nranks; h++)
            in |= f->out->host_of[r] == hosts[h];
        if (in)
            ranks[to->nranks++] = r;
    }
    for (size_t i = 0; i < to->nranks && s->nranks; i++) {
        uint32_t h = f->out->host_of[ranks[i]];
        bool known = h == RP_NONE;

        for (size_t k = 0; k < to->nhosts; k++)
            known |= hosts[k] == h;
        if (!known)
            hosts[to->nhosts++] = h;
    }
    f->out->n++;
    return describe(f, sets, n, to, err);
}

/* If no place alone explains much, the ranks that each add most to a run in which everything else
   is repaired are repaired together. */
static enum rp_code choose_together(struct finder *f, const double *added, double now, double loss,
                                    bool *found, struct rp_err *err)
{
    struct set *list[MOST_TOGETHER];
    double best_added = 0;

    *found = false;
    /* At most half of the ranks: of more the others are the exception. */
    for (size_t n = 0; n < MOST_TOGETHER && 2 * (n + 1) <= f->in->n && !*found; n++) {
        double end;

        list[n] = NULL;
        for (size_t i = 0; i < f->sets.n; i++) {
            struct set *s = &f->sets.at[i];
            bool there = s->kind != RP_PLACE_RANK || s->taken;

            for (size_t k = 0; k < n; k++)
                there |= list[k] == s;
            if (!there && (!list[n] || added[i] > added[list[n] - f->sets.at]))
                list[n] = s;
        }
        if (!list[n])
            return RP_OK;
        best_added = n ? best_added : added[list[0] - f->sets.at];
        RP_TRY(run_one(f, (struct column_of){(const struct set *const *)list, n + 1, false, false},
                       &end, err));
        if (now - end < TOGETHER * loss || !n || !are_beyond_chance(f, list, n + 1))
            continue;
        *found = true;
        RP_TRY(add_found(f, list, n + 1, now - end, now - end, err));
        for (size_t k = 0; k <= n; k++) {
            list[k]->taken = true;
            repair(f, list[k]);
        }
    }
    return RP_OK;
}

/* Chooses one place, or none. now: the time with the places found so far repaired. */
static enum rp_code choose_next(struct finder *f, double now, bool *more, struct rp_err *err)
{
    double *end = RP_ARENA_NEW(f->arena, double, f->sets.n + 1), top = 0;
    double *added = RP_ARENA_NEW(f->arena, double, f->sets.n + 1);
    double loss = now - f->out->repaired_ns, least = LEAST_LOSS * f->out->run_ns;
    double wrong = fabs(f->out->run_ns - f->out->recorded_ns) / ERROR_SHARE;

    *more = false;
    RP_TRY(rp_err_need(end && added, err, "comparing ranks"));
    f->out->unsure |= loss >= least && loss < wrong;
    if (loss < least || loss < wrong)
        return RP_OK;
    RP_TRY(run_sets(f, false, end, err));

    /* Sum up by rank the work that is not yet repaired. */
    f->all = (struct rp_peer_sum){0};
    for (size_t r = 0; r < f->in->n; r++) {
        f->sums[r] = (struct rp_peer_sum){0};
        for (size_t s = 0; s < f->rerun.nsteps; s++)
            if (!f->work_done[r * f->rerun.nsteps + s])
                rp_peers_count(&f->sums[r], f->late[r][s]);
        rp_peers_add(&f->all, &f->sums[r]);
    }

    for (size_t i = 0; i < f->sets.n; i++) {
        struct set *s = &f->sets.at[i];

        s->cost_ns = now - end[i];
        s->by_chance = s->taken || !are_beyond_chance(f, &s, 1);
        if (!s->by_chance && s->cost_ns > top)
            top = s->cost_ns;
    }
    RP_TRY(run_sets(f, true, added, err));
    for (size_t i = 0; i < f->sets.n; i++)
        added[i] -= f->out->repaired_ns;
    if (top < ALONE * loss)
        RP_TRY(choose_together(f, added, now, loss, more, err));
    if (*more)
        return RP_OK;
    f->out->unsure |= top >= least && top < wrong;
    if (top < least) {
        /* Describe loss that no place explains: most of all abnormal work. */
        struct set **all = RP_ARENA_NEW(f->arena, struct set *, f->sets.n + 1);
        size_t n = 0;

        RP_TRY(rp_err_need(all, err, "comparing ranks"));
        for (size_t i = 0; i < f->sets.n; i++)
            if (f->sets.at[i].kind == RP_PLACE_RANK && !f->sets.at[i].taken)
                all[n++] = &f->sets.at[i];
        f->out->uneven_ns = loss;
        f->out->uneven.rank = RP_NONE;
        return describe(f, all, n, &f->out->uneven, err);
    }
    if (top < wrong)
        return RP_OK;
    struct set *best = smallest(f, top);
    RP_TRY(prefer_card(f, &best, err));
    RP_TRY(add_found(f, &best, 1, best->cost_ns, added[best - f->sets.at], err));
    best->taken = true;
    repair(f, best);
    *more = true;
    return RP_OK;
}

static enum rp_code choose(struct finder *f, struct rp_err *err)
{
    struct rp_places *out = f->out;
    double ends[2], now;
    struct column_of first[2] = {{.none = true}, {.all = true}};
    bool more = true;

    f->cuts.work = RP_ARENA_NEW(f->arena, uint8_t, f->in->n * f->rerun.nsteps + 1);
    f->cuts.slot = RP_ARENA_NEW(f->arena, uint8_t, f->rerun.nslots + 1);
    f->work_done = RP_ARENA_NEW(f->arena, uint8_t, f->in->n * f->rerun.nsteps + 1);
    f->slot_done = RP_ARENA_NEW(f->arena, uint8_t, f->rerun.nslots + 1);
    f->sums = RP_ARENA_NEW(f->arena, struct rp_peer_sum, f->in->n + 1);
    out->at = RP_ARENA_NEW(f->arena, struct rp_place_found, MOST_PLACES + 1);
    RP_TRY(rp_arena_check(f->arena, "comparing ranks", err));
    RP_TRY(run_columns(f, first, 2, ends, err));
    out->run_ns = ends[0];
    out->repaired_ns = ends[1];
    out->error = out->recorded_ns > 0 ? fabs(ends[0] / out->recorded_ns - 1) : 0;
    if (f->stuck) {
        out->why = "the order of the collectives of different ranks contradicts itself";
        return RP_OK;
    }
    out->known = true;
    for (now = ends[0]; more && out->n < MOST_PLACES;) {
        RP_TRY(choose_next(f, now, &more, err));
        if (more)
            RP_TRY(run_one(f, (struct column_of){.n = 0}, &now, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the answer */

static enum rp_code find_places(struct finder *f, struct rp_err *err)
{
    RP_TRY(
        rp_rerun_init(&f->rerun, f->in->courses, f->in->lists, f->in->n, f->in->rendezvous, err));
    f->out->recorded_ns = f->rerun.recorded_ns;
    f->out->all_steps = f->rerun.nsteps;
    f->out->partial = f->rerun.npartial || f->in->world_size > (int64_t)f->in->n;
    if (f->rerun.nunreached) {
        f->out->why = "some ranks share no collective with the others";
        return RP_OK;
    }
    RP_TRY(find_hosts(f, err));
    RP_TRY(find_stages(f, err));
    RP_TRY(find_abnormal(f, err));
    RP_TRY(list_sets(f, err));
    return choose(f, err);
}

enum rp_code rp_places_find(const struct rp_places_input *in, struct rp_arena *arena,
                            struct rp_places *out, struct rp_err *err)
{
    struct rp_places_input own = *in;
    struct finder f = {.in = &own, .out = out, .arena = arena};

    *out = (struct rp_places){0};
    for (size_t r = 0; r < in->n; r++)
        if (!in->courses[r]->nops)
            return RP_OK;
    if (in->n < 2 || !in->rendezvous->n)
        return RP_OK;
    if (in->rendezvous->nset) {
        /* Courses and collectives without the time by which clocks were set. */
        const struct rp_course **courses = RP_ARENA_NEW(arena, const struct rp_course *, own.n + 1);
        const struct rp_collectives **lists =
            RP_ARENA_NEW(arena, const struct rp_collectives *, own.n + 1);

        RP_TRY(rp_err_need(courses && lists, err, "comparing ranks"));
        for (size_t r = 0; r < own.n; r++) {
            courses[r] = own.courses[r];
            lists[r] = own.lists[r];
            RP_TRY(rp_course_undo_steps(&own.rendezvous->clocks[r], &courses[r], &lists[r], arena,
                                        err));
        }
        own.courses = courses;
        own.lists = lists;
    }
    enum rp_code code = find_places(&f, err);
    rp_rerun_release(&f.rerun);
    rp_vec_release(&f.sets);
    return code;
}
