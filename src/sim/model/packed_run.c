/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins packed ranks in three passes: when they arrive at their collectives; which lags are usual;
 * then tasks and edges. A rank's edges stay inside it but for those of its collectives, and its
 * tasks follow each other, so its rows of edges can be written when its turn comes:
 *
 *     task    0 | rank 0 ...... | rank 1 ...... | ... | rendezvous
 *     edges   to the first task of each rank | of rank 0 | of rank 1 | ... | of rendezvous
 */
#include "sim/model/packed_run.h"

#include "base/decides.h"
#include "base/order.h"
#include "base/strtab.h"
#include "sim/model/pack.h"
#include "stepgraph/build.h"

#include <stdlib.h>
#include <string.h>

enum { LAG_KINDS = 3 };

/* Nodes stay unpacked as long as they take no more than this, but at least those of a few ranks. In
   jobs with many more ranks, blocks are reused before anybody comes back, so a few are as good as
   many. */
#define KEPT_BYTES   ((size_t)128 << 20)
#define BLOCKS_LEAST 8
RP_LIMIT(BLOCKS_LEAST, "ranks",
         "whose nodes are kept unpacked; others are unpacked when asked for");

/* patch: a node of a rank that a rendezvous moved. */
struct patch {
    uint32_t node;
    int64_t start_ns, dur_ns;
};

RP_ORDER(by_node, struct patch, RP_UP(node), RP_UP(start_ns)) /* the last one holds */

struct rank_info {
    uint32_t *name_of; /* by name of the part: its index in the joined list */
    uint32_t lane;     /* of its first */
    RP_VEC(struct patch) patches;
};

struct rp_sim_blocks {
    size_t nranks;
    struct rank_info *ranks;
    struct rp_sg_node *others; /* the origin, then the rendezvous */
    struct rp_sim_note *none;  /* about them: the same for each */
    uint32_t first_meet, nmeets;
    struct rp_sim_block *cache; /* rank r is in cache[r % nblocks], if it is anywhere */
    struct rp_sim_block origin, meets;
    const struct rp_sim_block *last;
    size_t nblocks;
};

void rp_sim_blocks_free(struct rp_sim_blocks *b)
{
    if (!b)
        return;
    for (size_t i = 0; b->ranks && i < b->nranks; i++)
        rp_vec_release(&b->ranks[i].patches);
    for (size_t i = 0; i < b->nblocks; i++) {
        free(b->cache[i].nodes);
        free(b->cache[i].notes);
    }
    free(b->cache);
    free(b);
}

/* ------------------------------------------------------------------ the nodes of a rank */

/* Unpacks the nodes as they are in the joined graph, without changes by rendezvous. */
static enum rp_code unpack_rank(const struct rp_sim_run *run, uint32_t rank,
                                struct rp_sg_node *nodes, struct rp_sim_note *notes,
                                struct rp_err *err)
{
    const struct rp_sim_part *part = run->parts[rank];
    const struct rank_info *info = &run->blocks->ranks[rank];

    RP_TRY(rp_sim_part_unpack_nodes(part, nodes, notes, err));
    for (size_t i = 0; i < part->npacked_nodes; i++) {
        struct rp_sg_node *n = &nodes[i];

        if (n->name >= part->graph.names.n ||
            (n->lane != RP_NONE && n->lane >= part->graph.lanes.n))
            return rp_err_set(err, RP_FORMAT, "the packed part of a rank is damaged");
        n->start_ns = rp_sg_common_time(&run->join, rank, n->start_ns);
        n->name = info->name_of[n->name];
        n->lane += n->lane == RP_NONE ? 0 : info->lane;
        n->rank = rank;
    }
    return RP_OK;
}

static void move_nodes(const struct rank_info *info, struct rp_sg_node *nodes)
{
    for (size_t i = 0; i < info->patches.n; i++) {
        nodes[info->patches.at[i].node].start_ns = info->patches.at[i].start_ns;
        nodes[info->patches.at[i].node].dur_ns = info->patches.at[i].dur_ns;
    }
}

/* This cannot fail: the bytes were unpacked once, so they are sound, and there is room. */
static const struct rp_sim_block *block_of_rank(const struct rp_sim_run *run, size_t node)
{
    struct rp_sim_blocks *b = run->blocks;
    size_t low = 0, high = run->nranks; /* the rank of the node is in [low, high) */

    while (high - low > 1) {
        size_t mid = (low + high) / 2;

        if (run->join.first_node[mid] <= node)
            low = mid;
        else
            high = mid;
    }
    uint32_t rank = (uint32_t)low;
    struct rp_sim_block *at = &b->cache[rank % b->nblocks];

    if (node - at->first < at->n)
        return at;
    (void)unpack_rank(run, rank, at->nodes, at->notes, NULL);
    move_nodes(&b->ranks[rank], at->nodes);
    at->first = run->join.first_node[rank];
    at->n = run->parts[rank]->npacked_nodes;
    at->nodes[at->n] = (struct rp_sg_node){.lane = RP_NONE, .collective = RP_NONE};
    return at;
}

const struct rp_sim_block *rp_sim_block_of(const struct rp_sim_run *run, size_t node)
{
    struct rp_sim_blocks *b = run->blocks;

    b->last = !node ? &b->origin : node >= b->first_meet ? &b->meets : block_of_rank(run, node);
    return b->last;
}

/* ------------------------------------------------------------------ joining */

/* A collective of a rank. */
struct arrival {
    uint32_t node; /* node of the part, or RP_NONE */
    int64_t at_ns, begin_ns,
        end_ns; /* on the first clock: times of the arrival, and of the collective */
};

/* An arrival at a rendezvous; sends and receives may be at several. */
struct tie {
    uint32_t node, meet;
    bool held; /* the rendezvous comes before the collective */
};
typedef RP_VEC(struct tie) tie_vec;

struct row_edge {
    uint32_t from, to; /* to: a task of the run */
    int64_t lag_ns;
    uint8_t kind, flags;
};

struct packed_ctx {
    struct rp_sim_run *run;
    struct rp_sim_blocks *b;
    struct rp_arena *arena;
    struct arrival **arrivals; /* by rank and collective */
    tie_vec *ties;             /* by rank */
    size_t most_nodes, most_edges, nextra;
    struct rp_sg_node
        *nodes; /* nodes of the current rank, followed by predecessors outside of it */
    struct rp_sim_note *notes;
    struct rp_sg_edge *edges, *sorted;
    uint32_t *outside;               /* by predecessor outside of the rank: its task */
    uint32_t *row;                   /* scratch, by node */
    struct row_edge *rows;           /* scratch, by edge */
    RP_VEC(int64_t) lags[LAG_KINDS]; /* of binding edges */
    int64_t usual[RP_SG_EDGE_KINDS];
    RP_VEC(struct row_edge) of_meets; /* by rank; finally sorted by rendezvous */
};

static const uint8_t lag_kinds[LAG_KINDS] = {RP_SG_LAUNCH, RP_SG_STREAM, RP_SG_IN_GRAPH};

static enum rp_code join_names(struct packed_ctx *x, struct rp_strtab *table, uint32_t rank,
                               struct rp_err *err)
{
    const struct rp_stepgraph *g = &x->run->parts[rank]->graph;
    struct rp_stepgraph *out = &x->run->joined;
    uint32_t *name_of = RP_ARENA_NEW(x->arena, uint32_t, g->names.n + 1), id;

    RP_TRY(rp_err_need(name_of, err, "joining ranks"));
    for (size_t i = 0; i < g->names.n; i++) {
        RP_TRY(rp_strtab_intern(table, g->names.at[i], strlen(g->names.at[i]), &id, err));
        while (out->names.n <= id)
            RP_TRY(rp_vec_push(&out->names, g->names.at[i], err));
        name_of[i] = id;
    }
    x->b->ranks[rank].name_of = name_of;
    return RP_OK;
}

static enum rp_code join_lanes(struct packed_ctx *x, uint32_t rank, struct rp_err *err)
{
    const struct rp_stepgraph *g = &x->run->parts[rank]->graph;
    struct rp_stepgraph *out = &x->run->joined;
    uint32_t base = x->run->join.first_node[rank];

    x->b->ranks[rank].lane = (uint32_t)out->lanes.n;
    for (size_t i = 0; i < g->lanes.n; i++) {
        struct rp_sg_lane lane = g->lanes.at[i];

        lane.rank = rank;
        lane.first += base;
        lane.end += base;
        RP_TRY(rp_vec_push(&out->lanes, lane, err));
    }
    out->nlanes = (uint32_t)out->lanes.n;
    return RP_OK;
}

/* Joins what all ranks have in common, and finds where their nodes begin. */
static enum rp_code join_outlines(struct packed_ctx *x, struct rp_err *err)
{
    struct rp_sim_run *run = x->run;
    struct rp_stepgraph *out = &run->joined;
    size_t total = 1, r;
    struct rp_strtab table;
    enum rp_code code = rp_strtab_init(&table, err);

    *out = (struct rp_stepgraph){
        .begin_ns = INT64_MAX, .end_ns = INT64_MIN, .nranks = (uint32_t)run->nranks};
    for (r = 0; r < run->nranks && code == RP_OK; r++) {
        const struct rp_sim_part *part = run->parts[r];
        int64_t begin = rp_sg_common_time(&run->join, r, part->graph.begin_ns);
        int64_t end = rp_sg_common_time(&run->join, r, part->graph.end_ns);

        run->join.first_node[r] = (uint32_t)total;
        total += part->npacked_nodes;
        if (total >= UINT32_MAX / 2)
            code = rp_err_set(err, RP_LIMIT, "the run has more than %u nodes: use --rank",
                              UINT32_MAX / 2);
        out->begin_ns = begin < out->begin_ns ? begin : out->begin_ns;
        out->end_ns = end > out->end_ns ? end : out->end_ns;
        out->ndropped += part->graph.ndropped;
        if (part->npacked_nodes > x->most_nodes)
            x->most_nodes = part->npacked_nodes;
        if (part->npacked_edges > x->most_edges)
            x->most_edges = part->npacked_edges;
        if (part->collectives.list.n + part->collectives.messages.n > x->nextra)
            x->nextra = part->collectives.list.n + part->collectives.messages.n;
        if (code == RP_OK)
            code = join_names(x, &table, (uint32_t)r, err);
        if (code == RP_OK)
            code = join_lanes(x, (uint32_t)r, err);
    }
    rp_strtab_release(&table);
    x->b->first_meet = (uint32_t)total;
    return code;
}

static enum rp_code alloc_scratch(struct packed_ctx *x, struct rp_err *err)
{
    size_t nodes = x->most_nodes + x->nextra + 2, edges = x->most_edges + 2 * x->nextra + 2, i;

    x->nextra++; /* the origin */
    x->nodes = malloc(nodes * sizeof *x->nodes);
    x->notes = malloc(nodes * sizeof *x->notes);
    x->edges = malloc(edges * sizeof *x->edges);
    x->sorted = malloc(edges * sizeof *x->sorted);
    x->rows = malloc(edges * sizeof *x->rows);
    x->row = malloc((nodes + 1) * sizeof *x->row);
    x->outside = malloc((x->nextra + 1) * sizeof *x->outside);
    if (!x->nodes || !x->notes || !x->edges || !x->sorted || !x->rows || !x->row || !x->outside)
        return rp_err_nomem(err, "joining ranks");
    x->b->nblocks = KEPT_BYTES / ((x->most_nodes + 1) * (sizeof *x->nodes + sizeof *x->notes));
    if (x->b->nblocks < BLOCKS_LEAST || x->run->nranks >= 2 * x->b->nblocks)
        x->b->nblocks = BLOCKS_LEAST;
    x->b->nblocks = x->b->nblocks < x->run->nranks ? x->b->nblocks : x->run->nranks;
    x->b->cache = calloc(x->b->nblocks, sizeof *x->b->cache);
    RP_TRY(rp_err_need(x->b->cache, err, "joining ranks"));
    for (i = 0; i < x->b->nblocks; i++) {
        x->b->cache[i].nodes = malloc((x->most_nodes + 1) * sizeof *x->nodes);
        x->b->cache[i].notes = malloc((x->most_nodes + 1) * sizeof *x->notes);
        if (!x->b->cache[i].nodes || !x->b->cache[i].notes)
            return rp_err_nomem(err, "joining ranks");
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ rendezvous */

static enum rp_code find_arrivals(struct packed_ctx *x, uint32_t rank, struct rp_err *err)
{
    const struct rp_sim_part *part = x->run->parts[rank];
    size_t i, n = part->collectives.list.n;

    x->arrivals[rank] = RP_ARENA_NEW(x->arena, struct arrival, n + 1);
    if (!x->arrivals[rank])
        return rp_err_nomem(err, "joining ranks");
    RP_TRY(unpack_rank(x->run, rank, x->nodes, x->notes, err));
    for (i = 0; i < n; i++) {
        uint32_t node = i < part->graph.arrivals.n ? part->graph.arrivals.at[i] : RP_NONE;
        struct arrival *to = &x->arrivals[rank][i];

        *to = (struct arrival){.node = RP_NONE};
        if (node == RP_NONE || node + 1 >= part->npacked_nodes)
            continue;
        to->node = node;
        to->at_ns = x->nodes[node].start_ns;
        to->begin_ns = x->nodes[node + 1].start_ns;
        to->end_ns = rp_sg_end_ns(&x->nodes[node + 1]);
    }
    return RP_OK;
}

static const struct arrival *arrival_of(const struct packed_ctx *x, const struct rp_rendezvous *m,
                                        uint32_t i)
{
    return &x->arrivals[m->rank[i]][m->at[i]];
}

/* When the last rank arrived for which the others wait, and which one; false if fewer than two
   arrived. */
static bool last_arrival(const struct packed_ctx *x, const struct rp_rendezvous *m,
                         struct rp_sg_node *meet)
{
    const struct arrival *source = m->source == RP_NONE ? NULL : arrival_of(x, m, m->source);
    uint32_t i, n = 0;

    for (i = 0; i < m->n; i++) {
        const struct arrival *a = arrival_of(x, m, i);

        if (a->node == RP_NONE || (source && source->node != RP_NONE && a->at_ns > source->at_ns))
            continue;
        if (n++ == 0 || a->at_ns > meet->start_ns) {
            meet->start_ns = a->at_ns;
            meet->rank = m->rank[i];
        }
    }
    return n > 1;
}

static enum rp_code hold_ranks(struct packed_ctx *x, const struct rp_rendezvous *m,
                               const struct rp_sg_node *meet, struct rp_err *err)
{
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t r = m->rank[i];
        const struct arrival *a = &x->arrivals[r][m->at[i]];
        struct rp_sg_last_arrival *last = &x->run->join.last_arrival[r][m->at[i]];
        struct tie tie = {a->node, x->b->first_meet + x->b->nmeets, a->end_ns >= meet->start_ns};
        struct patch p = {.start_ns = meet->start_ns};

        if (a->node == RP_NONE || a->at_ns > meet->start_ns)
            continue;
        RP_TRY(rp_vec_push(&x->ties[r], tie, err));
        if (!tie.held)
            continue;
        p.node = a->node + 1;
        p.dur_ns = rp_ns_between(meet->start_ns, a->end_ns);
        RP_TRY(rp_vec_push(&x->b->ranks[r].patches, p, err));
        int64_t own = rp_sg_own_time(&x->run->join, r, meet->start_ns);
        if (last->until_ns == RP_NO_TS ||
            own >= last->until_ns) /* with several partners, it waits for the last */
            *last = (struct rp_sg_last_arrival){own, meet->rank};
    }
    return RP_OK;
}

static enum rp_code add_meetings(struct packed_ctx *x, struct rp_err *err)
{
    const struct rp_rendezvous_list *m = &x->run->join.rendezvous;
    struct rp_sim_blocks *b = x->b;

    b->others = RP_ARENA_NEW(x->arena, struct rp_sg_node, m->n + 1);
    b->none = RP_ARENA_NEW(x->arena, struct rp_sim_note, m->n + 1);
    if (!b->others || !b->none)
        return rp_err_nomem(err, "joining ranks");
    for (size_t k = 0; k <= m->n; k++)
        b->none[k] = (struct rp_sim_note){.step = RP_NO_STEP, .phase = RP_PHASE_OTHER};
    b->others[0] = (struct rp_sg_node){.start_ns = x->run->joined.begin_ns,
                                       .event = RP_NONE,
                                       .lane = RP_NONE,
                                       .collective = RP_NONE,
                                       .kind = RP_SG_ORIGIN};
    for (size_t k = 0; k < m->n; k++) {
        struct rp_sg_node meet = {
            .event = RP_NONE, .lane = RP_NONE, .collective = RP_NONE, .kind = RP_SG_RENDEZVOUS};

        if (!last_arrival(x, &m->at[k], &meet))
            continue;
        RP_TRY(hold_ranks(x, &m->at[k], &meet, err));
        b->others[1 + b->nmeets++] = meet;
    }
    for (size_t k = 0; k < x->run->nranks; k++)
        if (b->ranks[k].patches.n)
            qsort(b->ranks[k].patches.at, b->ranks[k].patches.n, sizeof(struct patch), by_node);
    return RP_OK;
}

/* ------------------------------------------------------------------ the edges of a rank */

/* If two edges allow a node to start at the same time, the higher one is binding (freeze.c). */
static int64_t anchor_ns(const struct packed_ctx *x, const struct rp_sg_edge *e)
{
    const struct rp_sg_node *n = &x->nodes[e->from];

    return e->flags & RP_SG_FROM_START ? n->start_ns : rp_sg_end_ns(n);
}

static void bind_edges(const struct packed_ctx *x, struct rp_sg_edge *e, size_t n)
{
    struct rp_sg_edge *best = NULL;

    for (size_t i = 0; i < n; i++) {
        int64_t at = anchor_ns(x, &e[i]);

        e[i].flags &= (uint8_t)~RP_SG_BINDING;
        e[i].lag_ns = rp_ns_between(at, x->nodes[e[i].to].start_ns);
        if (!best || rp_sg_binds_more(&e[i], at, best, anchor_ns(x, best)))
            best = &e[i];
    }
    if (best)
        best->flags |= RP_SG_BINDING;
}

/* Adds an edge from outside of the rank, whose predecessor is put after the rank's nodes. */
static void add_outside(struct packed_ctx *x, uint32_t rank, uint32_t task, uint32_t to,
                        uint8_t kind, size_t *nedges, size_t *noutside)
{
    size_t n = x->run->parts[rank]->npacked_nodes, at = (*noutside)++;

    x->outside[at] = task;
    x->nodes[n + at] = x->b->others[task ? 1 + task - x->b->first_meet : 0];
    x->edges[(*nedges)++] = (struct rp_sg_edge){.from = (uint32_t)(n + at), .to = to, .kind = kind};
}

/* Unpacks the edges into a rank's nodes, by node, with the largest lag that each may have. */
static enum rp_code make_edges(struct packed_ctx *x, uint32_t rank, size_t *nedges,
                               struct rp_err *err)
{
    const struct rp_sim_part *part = x->run->parts[rank];
    size_t i, k, n = part->npacked_nodes, m = part->npacked_edges, noutside = 0;

    RP_TRY(unpack_rank(x->run, rank, x->nodes, x->notes, err));
    move_nodes(&x->b->ranks[rank], x->nodes);
    RP_TRY(rp_sim_part_unpack_edges(part, x->edges, err));
    for (i = 0; i < m; i++) /* something that began inside a collective that now begins later */
        if (x->edges[i].flags & RP_SG_FROM_START &&
            x->nodes[x->edges[i].from].start_ns > x->nodes[x->edges[i].to].start_ns)
            x->edges[i].from--;
    add_outside(x, rank, 0, 0, RP_SG_AFTER, &m, &noutside);
    for (i = 0; i < x->ties[rank].n; i++)
        if (x->ties[rank].at[i].held)
            add_outside(x, rank, x->ties[rank].at[i].meet, x->ties[rank].at[i].node + 1,
                        RP_SG_MEMBER, &m, &noutside);
    memset(x->row, 0, (n + 1) * sizeof *x->row);
    for (i = 0; i < m; i++)
        x->row[x->edges[i].to + 1]++;
    for (i = 0; i < n; i++)
        x->row[i + 1] += x->row[i];
    for (i = 0; i < m; i++)
        x->sorted[x->row[x->edges[i].to]++] = x->edges[i];
    for (i = 0; i < m; i = k) {
        for (k = i; k < m && x->sorted[k].to == x->sorted[i].to;)
            k++;
        bind_edges(x, &x->sorted[i], k - i);
    }
    *nedges = m;
    return RP_OK;
}

static enum rp_code collect_lags(struct packed_ctx *x, uint32_t rank, struct rp_err *err)
{
    size_t i, m;

    RP_TRY(make_edges(x, rank, &m, err));
    for (i = 0; i < m; i++)
        for (int k = 0; k < LAG_KINDS; k++)
            if (x->sorted[i].kind == lag_kinds[k] &&
                (x->sorted[i].flags & (RP_SG_BINDING | RP_SG_FROM_START)) == RP_SG_BINDING)
                RP_TRY(rp_vec_push(&x->lags[k], x->sorted[i].lag_ns, err));
    return RP_OK;
}

static void find_usual_lags(struct packed_ctx *x)
{
    for (int k = 0; k < LAG_KINDS; k++) {
        int64_t usual = 0;

        if (x->lags[k].n) {
            rp_ns_sort(x->lags[k].at, x->lags[k].n);
            usual = rp_ns_percentile(x->lags[k].at, x->lags[k].n, 50);
        }
        x->usual[lag_kinds[k]] = usual > 0 ? usual : 0;
        rp_vec_release(&x->lags[k]);
    }
}

/* ------------------------------------------------------------------ tasks */

static uint32_t edge_flags(uint8_t kind, uint8_t flags)
{
    return RP_SIM_EDGE_OF_KIND(kind) | (flags & RP_SG_FROM_START ? RP_EDGE_FROM_START : 0);
}

static void put_edge(struct rp_task_graph *g, uint32_t at, const struct row_edge *e)
{
    uint32_t flags = edge_flags(e->kind, e->flags);

    g->edges.at[at] = (struct rp_task_link){e->to, (uint8_t)flags};
    g->lag_ns.at[at] = e->lag_ns;
    g->starts_matter |= flags & RP_EDGE_FROM_START;
}

/* Writes rows of the rank's tasks: edges inside it, in the order of their targets, then those to
   its rendezvous. Edges from outside are put in their place, or kept for later. */
static enum rp_code put_rows(struct packed_ctx *x, uint32_t rank, size_t m, struct rp_err *err)
{
    const struct rp_sim_part *part = x->run->parts[rank];
    struct rp_task_graph *g = &x->run->tasks;
    uint32_t base = x->run->join.first_node[rank], at = (uint32_t)g->edges.n;
    size_t i, n = part->npacked_nodes, count = 0;

    for (i = 0; i < m; i++) {
        struct rp_sg_edge *e = &x->sorted[i];
        struct row_edge row = {e->from, base + e->to, e->lag_ns, e->kind, e->flags};

        if (!(e->flags & (RP_SG_BINDING | RP_SG_FROM_START)) && e->lag_ns > x->usual[e->kind])
            row.lag_ns = x->usual[e->kind];
        if (e->from < n) {
            x->rows[count++] = row;
        } else if (!x->outside[e->from - n]) {
            put_edge(g, rank, &row);
        } else {
            row.from = x->outside[e->from - n];
            RP_TRY(rp_vec_push(&x->of_meets, row, err));
        }
    }
    for (i = 0; i < x->ties[rank].n; i++)
        x->rows[count++] = (struct row_edge){x->ties[rank].at[i].node, x->ties[rank].at[i].meet, 0,
                                             RP_SG_MEMBER, 0};
    memset(x->row, 0, (n + 1) * sizeof *x->row);
    for (i = 0; i < count; i++)
        x->row[x->rows[i].from]++;
    for (i = 0; i < n; i++) {
        uint32_t here = x->row[i];

        g->first.at[base + i] = x->row[i] = at;
        at += here;
    }
    for (i = 0; i < count; i++) {
        put_edge(g, x->row[x->rows[i].from]++, &x->rows[i]);
        if (x->rows[i].flags & RP_SG_FROM_START &&
            g->tasks.at[base + x->rows[i].from].device != RP_NO_DEVICE)
            g->device_starts_matter = true;
    }
    g->edges.n += count;
    return RP_OK;
}

static enum rp_code add_tasks(struct packed_ctx *x, uint32_t rank, struct rp_err *err)
{
    struct rp_sim_run *run = x->run;
    size_t i, n = run->parts[rank]->npacked_nodes;
    bool alone;

    RP_TRY(rp_sim_ran_alone(x->nodes, n, run->joined.lanes.at, &alone, err));
    run->kernel_device[rank] = RP_NO_DEVICE;
    if (alone)
        RP_TRY(rp_task_graph_add_device(&run->tasks, "kernels", RP_DEVICE_SERIAL,
                                        &run->kernel_device[rank], err));
    for (i = 0; i < n; i++) {
        const struct rp_sg_node *node = &x->nodes[i];
        bool kernel = node->kind == RP_SG_COMPUTE && node->lane != RP_NONE &&
                      run->joined.lanes.at[node->lane].device;
        struct rp_task task = {.dur_ns = node->dur_ns,
                               .device = kernel ? run->kernel_device[rank] : RP_NO_DEVICE,
                               .rank = rank,
                               .step = x->notes[i].step,
                               .kind = node->kind};

        RP_TRY(rp_task_graph_add(&run->tasks, task, NULL, err));
    }
    return RP_OK;
}

static enum rp_code add_other_task(struct packed_ctx *x, uint32_t at, struct rp_err *err)
{
    const struct rp_sg_node *node = &x->b->others[at ? 1 + at - x->b->first_meet : 0];
    struct rp_task task = {
        .device = RP_NO_DEVICE, .rank = node->rank, .step = RP_NO_STEP, .kind = node->kind};

    return rp_task_graph_add(&x->run->tasks, task, NULL, err);
}

RP_ORDER(by_meet, struct row_edge, RP_UP(from), RP_UP(to))

static enum rp_code put_meetings(struct packed_ctx *x, struct rp_err *err)
{
    struct rp_task_graph *g = &x->run->tasks;
    size_t i = 0;

    if (x->of_meets.n)
        qsort(x->of_meets.at, x->of_meets.n, sizeof *x->of_meets.at, by_meet);
    for (uint32_t k = 0; k < x->b->nmeets; k++) {
        uint32_t meet = x->b->first_meet + k;

        RP_TRY(add_other_task(x, meet, err));
        g->first.at[meet] = (uint32_t)g->edges.n;
        for (; i < x->of_meets.n && x->of_meets.at[i].from == meet; i++)
            put_edge(g, (uint32_t)g->edges.n++, &x->of_meets.at[i]);
    }
    g->first.at[x->b->first_meet + x->b->nmeets] = (uint32_t)g->edges.n;
    g->lag_ns.n = g->edges.n;
    return RP_OK;
}

static enum rp_code reserve_tasks(struct packed_ctx *x, struct rp_err *err)
{
    struct rp_sim_run *run = x->run;
    struct rp_task_graph *g = &run->tasks;
    size_t r, i, tasks = (size_t)x->b->first_meet + x->b->nmeets, edges = run->nranks;

    for (r = 0; r < run->nranks; r++) {
        edges += run->parts[r]->npacked_edges;
        for (i = 0; i < x->ties[r].n; i++)
            edges += 1 + (size_t)x->ties[r].at[i].held;
    }
    if (edges >= UINT32_MAX - 1)
        return rp_err_set(err, RP_LIMIT, "a simulation can have at most %u edges", UINT32_MAX - 1);
    RP_TRY(rp_vec_reserve_full(&g->tasks, tasks, err));
    RP_TRY(rp_vec_reserve_full(&g->dur_ns, tasks, err));
    RP_TRY(rp_vec_reserve_full(&g->edges, edges + 1, err));
    RP_TRY(rp_vec_reserve_full(&g->lag_ns, edges + 1, err));
    RP_TRY(rp_vec_reserve_full(&g->first, tasks + 1, err));
    g->first.n = tasks + 1;
    run->nnodes = tasks;
    return RP_OK;
}

static enum rp_code make_tasks(struct packed_ctx *x, struct rp_err *err)
{
    struct rp_task_graph *g = &x->run->tasks;
    size_t m;

    RP_TRY(reserve_tasks(x, err));
    RP_TRY(add_other_task(x, 0, err));
    g->first.at[0] = 0;
    g->edges.n = x->run->nranks;
    for (uint32_t r = 0; r < x->run->nranks; r++) {
        RP_TRY(make_edges(x, r, &m, err));
        RP_TRY(add_tasks(x, r, err));
        RP_TRY(put_rows(x, r, m, err));
    }
    return put_meetings(x, err);
}

/* ------------------------------------------------------------------ all of it */

static enum rp_code alloc_join(struct packed_ctx *x, struct rp_err *err)
{
    struct rp_sim_run *run = x->run;
    struct rp_sg_join *join = &run->join;

    join->first_node = RP_ARENA_NEW(x->arena, uint32_t, run->nranks + 1);
    join->last_arrival = RP_ARENA_NEW(x->arena, struct rp_sg_last_arrival *, run->nranks + 1);
    x->arrivals = RP_ARENA_NEW(x->arena, struct arrival *, run->nranks + 1);
    x->b->ranks = RP_ARENA_NEW(x->arena, struct rank_info, run->nranks + 1);
    RP_TRY(rp_arena_check(x->arena, "joining ranks", err));
    for (size_t r = 0; r < run->nranks; r++) {
        size_t n = run->parts[r]->collectives.list.n;

        join->last_arrival[r] = RP_ARENA_NEW(x->arena, struct rp_sg_last_arrival, n + 1);
        for (size_t i = 0; join->last_arrival[r] && i < n; i++)
            join->last_arrival[r][i] = (struct rp_sg_last_arrival){RP_NO_TS, RP_NONE};
    }
    return rp_arena_check(x->arena, "joining ranks", err);
}

static enum rp_code join_packed(struct packed_ctx *x, bool *done, struct rp_err *err)
{
    struct rp_sim_run *run = x->run;
    const struct rp_collectives **lists =
        RP_ARENA_NEW(x->arena, const struct rp_collectives *, run->nranks + 1);
    size_t stuck;

    RP_TRY(rp_err_need(lists, err, "joining ranks"));
    for (uint32_t r = 0; r < run->nranks; r++)
        lists[r] = &run->parts[r]->collectives;
    RP_TRY(rp_rendezvous_find(lists, run->nranks, x->arena, &run->join.rendezvous, err));
    if (!run->join.rendezvous.n)
        return RP_OK;
    run->join.aligned = run->join.rendezvous.clocks_differ;
    RP_TRY(alloc_join(x, err));
    RP_TRY(join_outlines(x, err));
    RP_TRY(alloc_scratch(x, err));
    for (uint32_t r = 0; r < run->nranks; r++)
        RP_TRY(find_arrivals(x, r, err));
    RP_TRY(add_meetings(x, err));
    for (uint32_t r = 0; r < run->nranks; r++)
        RP_TRY(collect_lags(x, r, err));
    find_usual_lags(x);
    RP_TRY(make_tasks(x, err));
    x->b->origin = (struct rp_sim_block){0, 1, x->b->others, x->b->none};
    x->b->meets =
        (struct rp_sim_block){x->b->first_meet, x->b->nmeets, x->b->others + 1, x->b->none};
    x->b->last = &x->b->origin;
    run->block = &x->b->last;
    RP_TRY(rp_task_graph_stuck(&run->tasks, &stuck, err));
    *done = !stuck;
    return RP_OK;
}

enum rp_code rp_sim_packed_join(struct rp_sim_run *run, bool *done, struct rp_err *err)
{
    struct packed_ctx x = {.run = run, .arena = &run->arena};

    *done = false;
    run->blocks = x.b = calloc(1, sizeof *x.b);
    RP_TRY(rp_err_need(x.b, err, "joining ranks"));
    x.b->nranks = run->nranks;
    x.ties = calloc(run->nranks + 1, sizeof *x.ties);
    enum rp_code code = x.ties ? join_packed(&x, done, err) : rp_err_nomem(err, "joining ranks");
    for (size_t r = 0; x.ties && r < run->nranks; r++)
        rp_vec_release(&x.ties[r]);
    free(x.ties);
    free(x.nodes);
    free(x.notes);
    free(x.edges);
    free(x.sorted);
    free(x.rows);
    free(x.row);
    free(x.outside);
    for (int k = 0; k < LAG_KINDS; k++)
        rp_vec_release(&x.lags[k]);
    rp_vec_release(&x.of_meets);
    return code;
}
