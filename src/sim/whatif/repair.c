/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straggler=median beside devices: work that is slower than that of its peers takes their time, and
 * all other work is as recorded (docs/definitions.md, "Places"). Work includes tasks, and what
 * threads do between them, by the next task; transfers are compared by kind, size and place. Delays
 * by chance, now on one rank and then on another, may remain, so the interval covers both cases.
 *
 * Times are judged as they were recorded: without the profiler's cost, which all ranks pay, the
 * same differences would be larger shares of shorter times, and chance would look like a fault.
 */
#include "base/hash.h"
#include "base/order.h"
#include "places/peers.h"
#include "places/transfers.h"
#include "sim/model/simulated_steps.h"
#include "sim/model/steps.h"
#include "sim/whatif/nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS, CALLS, GAPS }; /* classes of work */

struct repair_rank {
    struct rp_map keys, cells;
    RP_VEC(struct rp_peer_key) key_list;
    RP_VEC(struct rp_peer_cell) cell_list;
    uint32_t *moved; /* by cell in the order of discovery: its sorted place */
};

/* A time that is compared: that of a task, or of the edge before one. */
struct compared {
    uint32_t at; /* number of the task, or the number of tasks plus that of the edge */
    uint32_t rank, cell;
};

struct repair {
    struct rp_sim_run *run;
    struct rp_overlay recorded; /* without the changes of the run */
    size_t nranks, nsteps;
    struct repair_rank *ranks;
    RP_VEC(struct compared) times;
    RP_VEC(struct rp_sim_cut) cuts;
    uint64_t *hashes; /* by name of the graph; 0: not computed yet */
    struct rp_peer_rank *peers;
    bool *by_chance; /* by rank: its abnormal work is within chance */
    bool any_by_chance;
    struct rp_arena arena;
};

static uint64_t name_hash(struct repair *r, uint32_t node)
{
    uint64_t *hash = &r->hashes[rp_sim_node(r->run, node)->name];

    if (!*hash) {
        const char *name = rp_sim_node_name(r->run, node);

        *hash = rp_hash_bytes(name, strlen(name)) | 1;
    }
    return *hash;
}

static bool is_bare(const struct rp_sim_run *run, size_t step)
{
    for (size_t r = 0; r < run->nranks; r++)
        if (rp_sim_step_is_bare(run->parts[r], step))
            return true;
    return false;
}

/* The class of a node's work, or -1 if it cannot be compared. */
static int class_of(const struct repair *r, uint32_t node)
{
    uint16_t step = rp_sim_note_of(r->run, node)->step;

    if (step >= r->nsteps || rp_sim_node(r->run, node)->rank >= r->nranks ||
        rp_sim_is_comm(r->run, node) || is_bare(r->run, step))
        return -1;
    return rp_sim_is_device_work(r->run, node) ? KERNELS
           : rp_sim_is_host(r->run, node)      ? CALLS
                                               : -1;
}

/* The class of a thread's time between two of its tasks; -1 for other edges. */
static int class_of_edge(const struct repair *r, uint32_t edge)
{
    const struct rp_task_link *link = &r->run->tasks.edges.at[edge];
    unsigned kind = RP_SIM_EDGE_KIND(link->flags);

    return (kind == RP_SG_ORDER || kind == RP_SG_HAND_OFF) && r->recorded.lag_ns.at[edge] > 0 &&
                   class_of(r, link->to) == CALLS
               ? GAPS
               : -1;
}

static uint64_t cell_id(uint32_t key, uint32_t step)
{
    return (uint64_t)step << 32 | key;
}

/* Finds the number of a cell in the list of its rank; a new cell is added. */
static enum rp_code find_cell(struct repair *r, uint32_t node, int cls, uint32_t *out,
                              struct rp_err *err)
{
    struct repair_rank *rank = &r->ranks[rp_sim_node(r->run, node)->rank];
    uint64_t hash = rp_hash_join(name_hash(r, node), (uint64_t)cls + 1);
    uint32_t step = rp_sim_note_of(r->run, node)->step, key = rp_map_get(&rank->keys, hash);

    if (key == RP_MAP_NONE) {
        key = (uint32_t)rank->key_list.n;
        RP_TRY(rp_map_put(&rank->keys, hash, key, err));
        RP_TRY(rp_vec_push(&rank->key_list,
                           ((struct rp_peer_key){.hash = hash, .cls = (uint32_t)cls}), err));
    }
    RP_TRY(rp_map_intern(&rank->cells, cell_id(key, step), (uint32_t)rank->cell_list.n, out, err));
    if (*out < rank->cell_list.n)
        return RP_OK;
    return rp_vec_push(&rank->cell_list, ((struct rp_peer_cell){.key = key, .step = step}), err);
}

/* node: the one that does the work, or that follows it. */
static enum rp_code add_time(struct repair *r, uint32_t at, uint32_t node, int cls, int64_t ns,
                             struct rp_err *err)
{
    struct compared time = {.at = at, .rank = rp_sim_node(r->run, node)->rank};

    if (cls < 0)
        return RP_OK;
    RP_TRY(find_cell(r, node, cls, &time.cell, err));
    struct rp_peer_cell *cell = &r->ranks[time.rank].cell_list.at[time.cell];
    cell->n++;
    cell->dur_ns += (double)ns;
    cell->squares += (double)ns * (double)ns;
    return rp_vec_push(&r->times, time, err);
}

RP_ORDER(by_step, struct rp_peer_cell, RP_UP(step), RP_UP(key))

/* Sorts the cells of a rank, and keeps where each one went. */
static enum rp_code sort_cells(struct repair *r, struct repair_rank *rank, struct rp_err *err)
{
    struct rp_peer_cell *cells = rank->cell_list.at;
    size_t i, n = rank->cell_list.n;
    uint64_t *ids = RP_ARENA_NEW(&r->arena, uint64_t, n + 1);

    rank->moved = RP_ARENA_NEW(&r->arena, uint32_t, n + 1);
    RP_TRY(rp_arena_check(&r->arena, "simulating", err));
    for (i = 0; i < n; i++)
        ids[i] = cell_id(cells[i].key, cells[i].step);
    rp_sort(cells, n, sizeof *cells, by_step);
    for (i = 0; i < n; i++)
        RP_TRY(rp_map_put(&rank->cells, cell_id(cells[i].key, cells[i].step), (uint32_t)i, err));
    for (i = 0; i < n; i++)
        rank->moved[i] = rp_map_get(&rank->cells, ids[i]);
    return RP_OK;
}

static enum rp_code judge_times(struct repair *r, struct rp_err *err)
{
    r->peers = RP_ARENA_NEW(&r->arena, struct rp_peer_rank, r->nranks + 1);
    RP_TRY(rp_err_need(r->peers, err, "simulating"));
    for (size_t k = 0; k < r->nranks; k++) {
        struct repair_rank *rank = &r->ranks[k];
        struct rp_peer_cell *cells = rank->cell_list.at;

        RP_TRY(sort_cells(r, rank, err));
        RP_TRY(rp_peers_usual(cells, rank->cell_list.n, rank->key_list.at, rank->key_list.n, err));
        r->peers[k] = (struct rp_peer_rank){
            .keys = rank->key_list.at,
            .nkeys = rank->key_list.n,
            .cells = cells,
            .ncells = rank->cell_list.n,
            .role = r->run->nranks < 2 ? 0
                                       : rp_place_role(&r->run->parts[k]->collectives,
                                                       r->run->join.rendezvous.stages, k)};
    }
    return rp_peers_judge(r->peers, r->nranks, (double)rp_sim_measured_ns(r->run), &r->arena, err);
}

struct lateness {
    uint32_t rank;
    struct rp_peer_sum sum;
};

RP_ORDER(by_lateness, struct lateness, RP_UP(sum.sum), RP_UP(rank))

static struct rp_peer_sum lateness_of(const struct repair *r, size_t k)
{
    const struct rp_peer_rank *rank = &r->peers[k];
    struct rp_peer_sum out = {0};

    for (size_t i = 0, step = 0; step < r->nsteps; step++) {
        double late = 0;

        for (; i < rank->ncells && rank->cells[i].step == step; i++)
            late += rank->cells[i].dur_ns * (1 - rank->factor[i]);
        rp_peers_count(&out, late);
    }
    return out;
}

/* The ranks that are least late show the effect of chance: from them on, every rank counts that is
   not beyond those before it. */
static enum rp_code find_chance(struct repair *r, struct rp_err *err)
{
    struct lateness *l = RP_ARENA_NEW(&r->arena, struct lateness, r->nranks + 1);
    struct rp_peer_sum others = {0};

    r->by_chance = RP_ARENA_NEW(&r->arena, bool, r->nranks + 1);
    RP_TRY(rp_err_need(l && r->by_chance, err, "simulating"));
    for (size_t k = 0; k < r->nranks; k++)
        l[k] = (struct lateness){(uint32_t)k, lateness_of(r, k)};
    rp_sort(l, r->nranks, sizeof *l, by_lateness);
    for (size_t k = 0; k < r->nranks; k++) {
        if (k >= (r->nranks + 1) / 2 && rp_peers_beyond(&l[k].sum, &others) > RP_PEERS_CHANCE)
            break;
        rp_peers_add(&others, &l[k].sum);
        r->by_chance[l[k].rank] = true;
        r->any_by_chance |= l[k].sum.sum > 0;
    }
    return RP_OK;
}

/* Weighs each time that is compared, or lists what is cut of it. */
static enum rp_code each_time(struct repair *r, bool weigh, struct rp_err *err)
{
    uint32_t n = (uint32_t)rp_sim_nnodes(r->run);

    for (size_t i = 0; i < r->times.n; i++) {
        const struct compared *t = &r->times.at[i];
        struct rp_peer_rank *rank = &r->peers[t->rank];
        int64_t ns = t->at < n ? r->recorded.dur_ns.at[t->at] : r->recorded.lag_ns.at[t->at - n];
        uint32_t cell = r->ranks[t->rank].moved[t->cell];

        if (r->run->lean == RP_LEAN_MORE_LATENCY && r->by_chance[t->rank])
            continue;
        if (weigh) {
            rp_peers_weigh(rank, cell, (double)ns, 1);
            continue;
        }
        double cut = rp_peers_cut(rank, cell, (double)ns, 1);
        if (cut > 0)
            RP_TRY(rp_vec_push(&r->cuts, ((struct rp_sim_cut){t->at, ns, cut}), err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ transfers */

static const struct rp_collective *member_of(const struct rp_sim_run *run,
                                             const struct rp_rendezvous *m, uint32_t i)
{
    return &run->parts[m->rank[i]]->collectives.list.at[m->at[i]];
}

/* The number of hosts: 1, 2 (or more), or 0 if it is not known. */
static unsigned hosts_of(const struct rp_sim_run *run, const struct rp_rendezvous *m)
{
    const char *first = run->parts[m->rank[0]]->collectives.host;
    bool between = false;

    for (uint32_t i = 0; i < m->n; i++) {
        const char *host = run->parts[m->rank[i]]->collectives.host;

        if (!host || !first)
            return 0;
        between |= strcmp(host, first) != 0;
    }
    return 1 + between;
}

/* factor is by rank and collective. */
static enum rp_code judge_transfers(struct repair *r, double **factor, struct rp_err *err)
{
    const struct rp_rendezvous_list *list = &r->run->join.rendezvous;
    struct rp_place_sample *s = RP_ARENA_NEW(&r->arena, struct rp_place_sample, list->n + 1);
    size_t n = 0;

    RP_TRY(rp_err_need(s, err, "simulating"));
    for (uint32_t i = 0; i < list->n; i++) {
        const struct rp_rendezvous *m = &list->at[i];
        int64_t least = INT64_MAX;
        uint64_t group = 0;

        if (!hosts_of(r->run, m) || m->members > (int64_t)m->n || m->n < 2)
            continue;
        for (uint32_t k = 0; k < m->n; k++) {
            const struct rp_collective *c = member_of(r->run, m, k);
            int64_t dur = rp_ns_between(c->begin_ns, c->end_ns);

            least = dur < least ? dur : least;
            group = rp_hash_join(group, m->rank[k]);
        }
        s[n++] = (struct rp_place_sample){
            .cls = rp_place_sample_class(member_of(r->run, m, 0), m->n, hosts_of(r->run, m) > 1),
            .group = group,
            .dur_ns = (double)(least > 0 ? least : 0),
            .at = i};
    }
    RP_TRY(rp_place_samples_judge(s, n, err));
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < list->at[s[i].at].n && s[i].cut_ns > 0; k++)
            factor[list->at[s[i].at].rank[k]][list->at[s[i].at].at[k]] =
                1 - s[i].cut_ns / s[i].dur_ns;
    return RP_OK;
}

static enum rp_code cut_transfers(struct repair *r, struct rp_err *err)
{
    double **factor = RP_ARENA_NEW(&r->arena, double *, r->nranks + 1);

    if (r->run->nranks < 2)
        return RP_OK; /* a job, whose ranks are one part */
    RP_TRY(rp_err_need(factor, err, "simulating"));
    for (size_t k = 0; k < r->nranks; k++) {
        size_t n = r->run->parts[k]->collectives.list.n;

        factor[k] = RP_ARENA_NEW(&r->arena, double, n + 1);
        RP_TRY(rp_err_need(factor[k], err, "simulating"));
        for (size_t i = 0; i < n; i++)
            factor[k][i] = 1;
    }
    RP_TRY(judge_transfers(r, factor, err));
    for (uint32_t i = 0; i < rp_sim_nnodes(r->run); i++) {
        const struct rp_sg_node *node = rp_sim_node(r->run, i);

        if (node->kind == RP_SG_COMM && node->collective != RP_NONE &&
            factor[node->rank][node->collective] < 1)
            RP_TRY(rp_vec_push(
                &r->cuts, ((struct rp_sim_cut){i, 0, factor[node->rank][node->collective]}), err));
    }
    return RP_OK;
}

static enum rp_code find_all(struct repair *r, struct rp_err *err)
{
    RP_TRY(rp_overlay_copy(&r->recorded, &r->run->overlay, err));
    rp_overlay_undo(&r->recorded, 0);

    const struct rp_overlay *o = &r->recorded;
    uint32_t n = (uint32_t)rp_sim_nnodes(r->run);
    for (uint32_t i = 0; i < n; i++)
        RP_TRY(add_time(r, i, i, class_of(r, i), o->dur_ns.at[i], err));
    for (uint32_t i = 0; i < r->run->tasks.edges.n; i++)
        RP_TRY(add_time(r, n + i, r->run->tasks.edges.at[i].to, class_of_edge(r, i),
                        o->lag_ns.at[i], err));
    RP_TRY(judge_times(r, err));
    RP_TRY(find_chance(r, err));
    RP_TRY(each_time(r, true, err));
    RP_TRY(each_time(r, false, err));
    return cut_transfers(r, err);
}

/* They are about the recording, so they are found once, whatever else changes in the run. */
static enum rp_code find_cuts(struct rp_sim_run *run, struct rp_sim_cuts *out, struct rp_err *err)
{
    struct repair r = {
        .run = run, .nranks = run->nranks * run->parts[0]->nranks, .nsteps = run->parts[0]->nsteps};

    rp_arena_init(&r.arena);
    r.ranks = calloc(r.nranks + 1, sizeof *r.ranks);
    r.hashes = calloc(run->graph->names.n + 1, sizeof *r.hashes);
    for (size_t k = 0; r.ranks && k < r.nranks; k++) {
        rp_map_init(&r.ranks[k].keys);
        rp_map_init(&r.ranks[k].cells);
    }
    enum rp_code code = r.ranks && r.hashes ? find_all(&r, err) : rp_err_nomem(err, "simulating");
    struct rp_sim_cut *cuts = RP_ARENA_NEW(&run->arena, struct rp_sim_cut, r.cuts.n + 1);
    if (code == RP_OK)
        code = rp_arena_check(&run->arena, "simulating", err);
    if (code == RP_OK && r.cuts.n)
        memcpy(cuts, r.cuts.at, r.cuts.n * sizeof *cuts);
    *out = (struct rp_sim_cuts){code == RP_OK, r.any_by_chance, r.cuts.n, cuts};
    for (size_t k = 0; r.ranks && k < r.nranks; k++) {
        rp_map_release(&r.ranks[k].keys);
        rp_map_release(&r.ranks[k].cells);
        rp_vec_release(&r.ranks[k].key_list);
        rp_vec_release(&r.ranks[k].cell_list);
    }
    rp_vec_release(&r.times);
    rp_vec_release(&r.cuts);
    rp_overlay_release(&r.recorded);
    free(r.ranks);
    free(r.hashes);
    rp_arena_release(&r.arena);
    return code;
}

/* ------------------------------------------------------------------ the change */

/* Shortens what a time takes now. The host's excess is as long without the profiler; that of a
   kernel is a share of it. */
static enum rp_code shorten(struct rp_sim_run *run, const struct rp_sim_cut *cut,
                            struct rp_err *err)
{
    struct rp_overlay *o = &run->overlay;
    uint32_t n = (uint32_t)rp_sim_nnodes(run), at = cut->at;
    int64_t now_ns = at < n ? o->dur_ns.at[at] : o->lag_ns.at[at - n];

    if (!cut->of_ns)
        return rp_sim_scale_node(run, at, cut->by, err);
    double part = cut->by / (double)cut->of_ns;
    if (now_ns <= 0)
        return RP_OK;
    if (at >= n || rp_sim_is_host(run, at))
        part = fmin(cut->by / (double)now_ns, 1);
    return at < n ? rp_sim_scale_node(run, at, 1 - part, err)
                  : rp_overlay_set_lag(o, at - n, now_ns - (int64_t)(part * (double)now_ns), err);
}

enum rp_code rp_whatif_repair(struct rp_sim_run *run, struct rp_err *err)
{
    struct rp_sim_cuts *cuts = &run->cuts[run->lean == RP_LEAN_MORE_LATENCY];

    if (!cuts->known)
        RP_TRY(find_cuts(run, cuts, err));
    if (cuts->by_chance)
        run->leans |= 1u << RP_LEAN_MORE_LATENCY;
    if (run->leans)
        run->latency_doubt = "work that is late by chance may stay so";
    for (size_t i = 0; i < cuts->n; i++)
        RP_TRY(shorten(run, &cuts->at[i], err));
    return RP_OK;
}
