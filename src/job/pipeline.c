/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The type of a pipeline's operation decides for what it waits (docs/definitions.md): computes of a
 * stage run in their recorded order, sends follow their compute and receives precede it, each kind
 * of transfer keeps its order, and the end of a step is a chain. The order of the first step of the
 * first data-parallel rank holds for all. The participants of a communication have a rendezvous
 * node: those of two stages, of all data-parallel ranks, or of all ranks.
 */
#include "job/pipeline.h"

#include "base/hash.h"
#include "base/order.h"
#include "facts/arg_keys.h"
#include "sim/engine/task_graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ records */

#define MOST_RANKS 65536
RP_LIMIT(MOST_RANKS, "data-parallel ranks, and stages", "a file with more is not such a timeline");

static bool read_thread(const struct rp_trace *t, rp_track track, uint32_t *stage, uint32_t *tp)
{
    const char *name = rp_trace_str(t, t->tracks[track].name);
    unsigned a, b;

    if (strncmp(name, "PP rank ", 8) != 0 || sscanf(name, "PP rank %5u, TP rank %5u,", &a, &b) != 2)
        return false;
    *stage = a;
    *tp = b;
    return true;
}

bool rp_trace_is_pipeline(const struct rp_trace *t)
{
    uint32_t i, stage, tp;

    for (i = 0; i < t->ntracks; i++)
        if (read_thread(t, i, &stage, &tp))
            return true;
    return false;
}

uint32_t rp_trace_pipeline_ranks(const struct rp_trace *t)
{
    uint32_t i, stage, tp, stages = 0;

    for (i = 0; i < t->ntracks; i++)
        if (read_thread(t, i, &stage, &tp) && stage >= stages && stage < MOST_RANKS)
            stages = stage + 1;
    return stages * (t->nprocesses < MOST_RANKS ? t->nprocesses : MOST_RANKS - 1);
}

RP_ORDER(by_place, struct rp_pipeline_op, RP_UP(step), RP_UP(dp), RP_UP(stage), RP_UP(type),
         RP_UP(seq))

struct keys {
    rp_str step, seq, chunk;
};

static bool int_arg(const struct rp_trace *t, rp_event e, rp_str key, int64_t *out)
{
    struct rp_arg arg;

    if (key == RP_NONE || !rp_args_find(&t->args, t->ev.shape[e], t->ev.arg_row[e], key, &arg) ||
        arg.type != RP_ARG_I64)
        return false;
    *out = arg.v.i;
    return true;
}

static enum rp_code read_op(struct rp_pipeline *p, const struct keys *keys, rp_event e,
                            uint32_t stage, struct rp_err *err)
{
    const struct rp_trace *t = p->trace;
    int64_t dp = t->processes[t->tracks[t->ev.track[e]].process].native_id;
    int64_t step, seq, chunk = -1;

    if (t->ev.dur_ns[e] < 0 || t->ev.ts_ns[e] == RP_NO_TS)
        return RP_OK;
    if (!int_arg(t, e, keys->step, &step) || !int_arg(t, e, keys->seq, &seq) || step < 0 ||
        seq < 0 || step >= UINT32_MAX || seq >= UINT32_MAX || dp < 0 || dp >= MOST_RANKS)
        return rp_err_set(err, RP_FORMAT,
                          "event %u '%s' of a pipeline timeline has no step, number or rank", e,
                          rp_trace_str(t, t->ev.name[e]));
    int_arg(t, e, keys->chunk, &chunk);
    struct rp_pipeline_op op = {t->ev.ts_ns[e], t->ev.dur_ns[e], t->ev.name[e], (uint32_t)step,
                                (uint32_t)dp,   stage,           (uint32_t)seq, (int32_t)chunk};
    p->ndp = op.dp + 1 > p->ndp ? op.dp + 1 : p->ndp;
    p->nstages = stage + 1 > p->nstages ? stage + 1 : p->nstages;
    return rp_vec_push(&p->ops, op, err);
}

static enum rp_code read_all(struct rp_pipeline *p, const struct keys *keys, struct rp_err *err)
{
    const struct rp_trace *t = p->trace;
    uint32_t k, stage, tp;

    for (k = 0; k < t->ntracks; k++) {
        if (!read_thread(t, k, &stage, &tp))
            continue;
        if (tp > 0 && t->tracks[k].end > t->tracks[k].first + 2)
            return rp_err_set(
                err, RP_UNSUPPORTED,
                "pipeline timelines with several tensor-parallel ranks are not supported");
        for (rp_event e = t->tracks[k].first; e < t->tracks[k].end; e++)
            if (t->origins[t->ev.origin[e]].phase == 'X')
                RP_TRY(read_op(p, keys, e, stage, err));
    }
    return RP_OK;
}

static rp_str find_str(const struct rp_trace *t, const char *text)
{
    for (rp_str i = 0; i < t->str.n; i++)
        if (!strcmp(rp_trace_str(t, i), text))
            return i;
    return RP_NONE;
}

/* Renumbers steps as 0, 1, … Must be released also after a failure. */
static enum rp_code pipeline_read(const struct rp_trace *t, struct rp_pipeline *out,
                                  struct rp_err *err)
{
    struct keys keys = {find_str(t, "step"), find_str(t, "seq_id"), find_str(t, "model_chunk")};
    uint32_t before = 0;

    *out = (struct rp_pipeline){.trace = t};
    RP_TRY(read_all(out, &keys, err));
    if (!out->ops.n)
        return rp_err_set(err, RP_FORMAT, "the pipeline timeline has no operations");
    qsort(out->ops.at, out->ops.n, sizeof *out->ops.at, by_place);
    for (size_t i = 0; i < out->ops.n; i++) {
        uint32_t step = out->ops.at[i].step;

        out->nsteps += i > 0 && step != before;
        before = step;
        out->ops.at[i].step = out->nsteps;
    }
    out->nsteps++;
    return RP_OK;
}

/* ------------------------------------------------------------------ model */

enum type {
    FORWARD,
    BACKWARD,
    FORWARD_SEND,
    FORWARD_RECV,
    BACKWARD_SEND,
    BACKWARD_RECV,
    GATHER,
    GC,
    LAYERNORM,
    EMBEDDING,
    SCATTER,
    SEPARATE,
    CLIP,
    OPTIMIZER,
    TYPES
};

/* Participants: none, the peer stage, the first and the last stage, all data-parallel ranks, all
   ranks. */
enum group { ALONE, PEER, ENDS, ALL_DP, ALL };

static const struct {
    const char *name;
    uint8_t group;
    bool is_comm;  /* its ideal is a median */
    int8_t peer;   /* the stage of the other side */
    uint8_t other; /* and its type */
} types[TYPES] = {
    [FORWARD] = {"forward-compute", ALONE, false, 0, 0},
    [BACKWARD] = {"backward-compute", ALONE, false, 0, 0},
    [FORWARD_SEND] = {"forward-send", PEER, true, 1, FORWARD_RECV},
    [FORWARD_RECV] = {"forward-recv", PEER, true, -1, FORWARD_SEND},
    [BACKWARD_SEND] = {"backward-send", PEER, true, -1, BACKWARD_RECV},
    [BACKWARD_RECV] = {"backward-recv", PEER, true, 1, BACKWARD_SEND},
    [GATHER] = {"params-all-gather", ALL_DP, true, 0, 0},
    [GC] = {"gc", ALONE, false, 0, 0},
    [LAYERNORM] = {"layernorm-grads-all-reduce", ALONE, true, 0, 0},
    [EMBEDDING] = {"embedding-grads-all-reduce", ENDS, true, 0, 0},
    [SCATTER] = {"grads-reduce-scatter", ALL_DP, true, 0, 0},
    [SEPARATE] = {"separate-grads-all-reduce", ALL_DP, true, 0, 0},
    [CLIP] = {"optimizer-clip-main-grad", ALL, true, 0, 0},
    [OPTIMIZER] = {"optimizer", ALONE, false, 0, 0},
};

bool rp_pipeline_is_comm(const char *type)
{
    for (int i = 0; i < TYPES; i++)
        if (!strcmp(types[i].name, type))
            return types[i].is_comm;
    return false;
}

struct pipeline_ctx {
    struct rp_pipeline p;
    struct rp_sim_part *part;
    struct rp_err *err;
    struct rp_map node_of;    /* place -> node */
    struct rp_map rendezvous; /* from group to its rendezvous */
    uint32_t name[TYPES];
    uint32_t step, dp; /* that is being linked */
};

static uint64_t place_key(uint32_t step, uint32_t dp, uint32_t stage, uint32_t type, uint32_t seq)
{
    return rp_hash_join(rp_hash_join((uint64_t)step << 32 | dp, (uint64_t)stage << 32 | type), seq);
}

/* Returns the node of an operation of the step and rank that is being linked, or RP_NONE. */
static uint32_t node(const struct pipeline_ctx *m, uint32_t stage, enum type type, uint32_t seq)
{
    return rp_map_get(&m->node_of, place_key(m->step, m->dp, stage, type, seq));
}

static uint32_t count(const struct pipeline_ctx *m, uint32_t stage, enum type type)
{
    uint32_t n = 0;

    while (node(m, stage, type, n) != RP_NONE)
        n++;
    return n;
}

/* ------------------------------------------------------------------ nodes */

static enum rp_code add_node(struct pipeline_ctx *m, struct rp_sg_node node, uint32_t step,
                             uint32_t *id)
{
    struct rp_sim_note note = {0, (uint16_t)step, RP_PHASE_OTHER, RP_SIM_TIMES};

    node.event = node.lane = node.collective = RP_NONE;
    node.flags = RP_SG_WORK;
    *id = (uint32_t)m->part->graph.nodes.n;
    RP_TRY(rp_vec_push(&m->part->graph.nodes, node, m->err));
    RP_TRY(rp_vec_push(&m->part->devices, RP_NO_DEVICE, m->err));
    return rp_vec_push(&m->part->notes, note, m->err);
}

static enum rp_code link_nodes(struct pipeline_ctx *m, uint32_t from, uint32_t to, uint8_t kind)
{
    struct rp_sg_edge e = {.from = from, .to = to, .kind = kind};

    return rp_vec_push(&m->part->graph.edges, e, m->err);
}

static uint32_t type_of(const struct pipeline_ctx *m, const struct rp_pipeline_op *op)
{
    const char *name = rp_trace_str(m->p.trace, op->type);
    uint32_t i;

    for (i = 0; i < TYPES && strcmp(types[i].name, name) != 0; i++)
        ;
    return i;
}

/* Returns the rendezvous of an operation's group, added for its first participant. */
static enum rp_code rendezvous_of(struct pipeline_ctx *m, const struct rp_pipeline_op *op,
                                  uint32_t type, uint32_t *id)
{
    uint8_t group = types[type].group;
    uint32_t stage = group == ALL_DP ? op->stage : 0, which = type, peer;
    uint32_t dp = group == ALL || group == ALL_DP ? UINT32_MAX : op->dp;
    struct rp_sg_node meet = {.kind = RP_SG_RENDEZVOUS, .rank = op->dp * m->p.nstages + op->stage};

    if (group == PEER) { /* both sides know the lower stage and the sender's type */
        peer = (uint32_t)((int64_t)op->stage + types[type].peer);
        stage = peer >= m->p.nstages ? op->stage : peer < op->stage ? peer : op->stage;
        which = peer >= m->p.nstages ? type : type < types[type].other ? type : types[type].other;
    }
    uint64_t key = place_key(op->step, dp, stage, which, op->seq);
    *id = rp_map_get(&m->rendezvous, key);
    if (*id != RP_MAP_NONE)
        return RP_OK;
    RP_TRY(add_node(m, meet, op->step, id));
    return rp_map_put(&m->rendezvous, key, *id, m->err);
}

static enum rp_code add_op(struct pipeline_ctx *m, const struct rp_pipeline_op *op)
{
    uint32_t type = type_of(m, op), id, meet;
    struct rp_sg_node node = {.start_ns = op->begin_ns,
                              .dur_ns = op->dur_ns,
                              .rank = op->dp * m->p.nstages + op->stage,
                              .kind = RP_SG_COMPUTE};

    if (type == TYPES)
        return rp_err_set(m->err, RP_UNSUPPORTED, "unknown operation '%s' in a pipeline timeline",
                          rp_trace_str(m->p.trace, op->type));
    if (op->chunk > 0)
        return rp_err_set(
            m->err, RP_UNSUPPORTED,
            "pipeline timelines with several model chunks per stage are not supported");
    node.name = m->name[type];
    node.kind = types[type].is_comm ? RP_SG_COMM : RP_SG_COMPUTE;
    RP_TRY(add_node(m, node, op->step, &id));
    RP_TRY(
        rp_map_put(&m->node_of, place_key(op->step, op->dp, op->stage, type, op->seq), id, m->err));
    if (types[type].group == ALONE)
        return RP_OK;
    RP_TRY(rendezvous_of(m, op, type, &meet));
    return link_nodes(m, meet, id, RP_SG_MEMBER);
}

/* ------------------------------------------------------------------ what waits for what */

/* Participants of a group do not wait themselves, but their rendezvous does. */
static uint32_t waiting_node(const struct pipeline_ctx *m, uint32_t op)
{
    const struct rp_sg_edge *e = m->part->graph.edges.at;
    uint32_t
        low; /* the index of the lower stage in the MEMBER edges, which are sorted by successor */

    RP_LOWER_BOUND(low, m->part->recorded_steps, e[low].to < op);
    return low < m->part->recorded_steps && e[low].to == op ? e[low].from : op;
}

static enum rp_code link_after(struct pipeline_ctx *m, uint32_t op, uint32_t before)
{
    if (op == RP_NONE || before == RP_NONE)
        return RP_OK;
    return link_nodes(m, before, waiting_node(m, op), RP_SG_STREAM);
}

struct compute {
    int64_t begin_ns;
    uint32_t type, seq;
};

/* Backward comes before forward, by name. */
RP_ORDER(by_begin, struct compute, RP_UP(begin_ns), RP_UP(seq), RP_DOWN(type))

typedef RP_VEC(struct compute) compute_vec;

static uint32_t compute_node(const struct pipeline_ctx *m, uint32_t stage, const struct compute *c)
{
    return node(m, stage, c->type, c->seq);
}

/* Links compute -> its send, and the compute before -> receive -> its compute; each kind keeps its
   order. */
static enum rp_code link_transfers(struct pipeline_ctx *m, uint32_t stage, enum type compute,
                                   enum type send, enum type recv)
{
    uint32_t i, n = count(m, stage, compute);

    for (i = 0; i < n; i++) {
        uint32_t s = node(m, stage, send, i), r = node(m, stage, recv, i);

        RP_TRY(link_after(m, s, node(m, stage, compute, i)));
        RP_TRY(link_after(m, node(m, stage, compute, i), r));
        if (i > 0) {
            RP_TRY(link_after(m, r, node(m, stage, compute, i - 1)));
            RP_TRY(link_after(m, s, node(m, stage, send, i - 1)));
            RP_TRY(link_after(m, r, node(m, stage, recv, i - 1)));
        }
    }
    return RP_OK;
}

static enum rp_code chain(struct pipeline_ctx *m, uint32_t *last, uint32_t op)
{
    if (op == RP_NONE)
        return RP_OK;
    RP_TRY(link_after(m, op, *last));
    *last = op;
    return RP_OK;
}

/* Parameters are gathered first, one after the other; the last one releases the first compute. */
static enum rp_code link_gathers(struct pipeline_ctx *m, uint32_t stage, uint32_t *last)
{
    uint32_t i, n = count(m, stage, GATHER);

    *last = RP_NONE;
    for (i = 0; i < n; i++)
        RP_TRY(chain(m, last, node(m, stage, GATHER, i)));
    return link_after(m, node(m, stage, FORWARD, 0), *last);
}

/* Links the last compute to the optimizer. Gradients are scattered in between; if they are
   scattered during the backward pass, the remaining ones are reduced separately. */
static enum rp_code link_end(struct pipeline_ctx *m, uint32_t stage, uint32_t last_compute,
                             uint32_t gathered)
{
    uint32_t i, n = count(m, stage, SCATTER), last = RP_NONE, scattered = gathered;
    bool during_backward = node(m, stage, SEPARATE, 0) != RP_NONE;

    RP_TRY(chain(m, &last, last_compute));
    RP_TRY(chain(m, &last, node(m, stage, GC, 0)));
    for (i = 0; during_backward && i < n; i++) {
        RP_TRY(chain(m, &scattered, node(m, stage, SCATTER, i)));
        if (i == 0)
            RP_TRY(
                link_after(m, scattered, node(m, stage, BACKWARD, count(m, stage, BACKWARD) - 1)));
    }
    if (during_backward && n)
        RP_TRY(link_after(m, node(m, stage, LAYERNORM, 0), scattered));
    RP_TRY(chain(m, &last, node(m, stage, LAYERNORM, 0)));
    RP_TRY(chain(m, &last, node(m, stage, EMBEDDING, 0)));
    for (i = 0; !during_backward && i < n; i++) {
        if (i == 0)
            RP_TRY(link_after(m, node(m, stage, SCATTER, 0), gathered));
        RP_TRY(chain(m, &last, node(m, stage, SCATTER, i)));
    }
    RP_TRY(chain(m, &last, node(m, stage, SEPARATE, 0)));
    RP_TRY(chain(m, &last, node(m, stage, CLIP, 0)));
    return chain(m, &last, node(m, stage, OPTIMIZER, 0));
}

static enum rp_code link_stage(struct pipeline_ctx *m, uint32_t stage, const compute_vec *order)
{
    uint32_t last = RP_NONE, gathered;

    for (size_t i = 0; i < order->n; i++)
        RP_TRY(chain(m, &last, compute_node(m, stage, &order->at[i])));
    RP_TRY(link_transfers(m, stage, FORWARD, FORWARD_SEND, FORWARD_RECV));
    RP_TRY(link_transfers(m, stage, BACKWARD, BACKWARD_SEND, BACKWARD_RECV));

    /* The first transfers may begin two computes before the first backward one. */
    size_t i;
    for (i = 0; i < order->n && order->at[i].type != BACKWARD; i++)
        ;
    if (i >= 2 && i != order->n) {
        RP_TRY(link_after(m, node(m, stage, BACKWARD_RECV, 0),
                          compute_node(m, stage, &order->at[i - 2])));
        RP_TRY(link_after(m, node(m, stage, BACKWARD_SEND, 0),
                          compute_node(m, stage, &order->at[i - 2])));
    }
    RP_TRY(link_gathers(m, stage, &gathered));
    return link_end(m, stage, last, gathered);
}

/* ------------------------------------------------------------------ all of it */

/* Returns the mean over the steps of their latest end minus their earliest start. */
static int64_t measure(const struct rp_pipeline *p)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    double sum = 0;

    for (size_t i = 0; i < p->ops.n; i++) {
        const struct rp_pipeline_op *op = &p->ops.at[i];
        int64_t end = rp_ns_sum(op->begin_ns, op->dur_ns);

        first = op->begin_ns < first ? op->begin_ns : first;
        last = end > last ? end : last;
        if (i + 1 == p->ops.n || op[1].step != op->step) {
            sum += (double)rp_ns_between(first, last);
            first = INT64_MAX;
            last = INT64_MIN;
        }
    }
    return (int64_t)(sum / p->nsteps);
}

RP_ORDER(by_member, struct rp_sg_edge, RP_UP(to))

static enum rp_code make_graph(struct pipeline_ctx *m)
{
    struct rp_stepgraph *g = &m->part->graph;

    if (m->p.nsteps >= RP_NO_STEP)
        return rp_err_set(m->err, RP_LIMIT, "a pipeline timeline with more than %u steps",
                          RP_NO_STEP - 1);

    /* Adds the names of the types after "", as everywhere. */
    RP_TRY(rp_vec_push(&m->part->graph.names, "", m->err));
    for (uint32_t i = 0; i < TYPES; i++) {
        m->name[i] = (uint32_t)m->part->graph.names.n;
        RP_TRY(rp_vec_push(&m->part->graph.names, types[i].name, m->err));
    }
    for (size_t i = 0; i < m->p.ops.n; i++)
        RP_TRY(add_op(m, &m->p.ops.at[i]));
    rp_sort(g->edges.at, g->edges.n, sizeof *g->edges.at, by_member);
    m->part->recorded_steps = g->edges.n;

    /* Computations are linked stage by stage, in the order in which they run. */
    compute_vec order = {0};
    enum rp_code code = RP_OK;
    for (uint32_t stage = 0; code == RP_OK && stage < m->p.nstages; stage++) {
        m->step = m->dp = 0;

        /* Orders the computes of a stage as in the first step of the first rank. */
        uint32_t seq, t, step = m->step, dp = m->dp;
        m->step = m->dp = 0;
        order.n = 0;
        for (t = FORWARD; t <= BACKWARD; t++)
            for (seq = 0; node(m, stage, t, seq) != RP_NONE; seq++) {
                struct compute c = {m->part->graph.nodes.at[node(m, stage, t, seq)].start_ns, t,
                                    seq};
                RP_TRY(rp_vec_push(&order, c, m->err));
            }
        m->step = step;
        m->dp = dp;
        rp_sort(order.at, order.n, sizeof *order.at, by_begin);
        code = RP_OK;
        for (m->step = 0; code == RP_OK && m->step < m->p.nsteps; m->step++)
            for (m->dp = 0; code == RP_OK && m->dp < m->p.ndp; m->dp++)
                code = link_stage(m, stage, &order);
    }
    rp_vec_release(&order);
    RP_TRY(code);
    m->part->nsteps = m->p.nsteps;
    m->part->recorded_steps = m->p.nsteps;
    m->part->stages = m->p.nstages;
    m->part->parallel_steps = true;
    m->part->nranks = g->nranks = m->p.ndp * m->p.nstages;
    m->part->measured_ns = m->part->distance_ns = measure(&m->p);
    return RP_OK;
}

enum rp_code rp_sim_part_of_pipeline(struct rp_sim_part *out, const struct rp_trace *trace,
                                     struct rp_err *err)
{
    struct pipeline_ctx m = {.part = out, .err = err};

    memset(out, 0, sizeof *out);
    rp_arena_init(&out->graph.arena);
    out->spread_ratio = NAN;
    enum rp_code code = pipeline_read(trace, &m.p, err);
    if (code == RP_OK)
        code = make_graph(&m);
    rp_vec_release(&m.p.ops);
    rp_map_release(&m.node_of);
    rp_map_release(&m.rendezvous);
    return code;
}
