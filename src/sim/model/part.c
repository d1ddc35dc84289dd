/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes notes about the nodes of a rank. A device node belongs to the step and the phase of its
 * launch, a host node to those of its own span, or of the innermost span around it that has one.
 * Linear.
 */
#include "sim/model/part.h"

#include "base/filled.h"
#include "facts/host/signs.h"
#include "facts/ranks/ddp_notes.h"
#include "facts/times/trace_life.h"
#include "facts/work/workload.h"
#include "result/part.h"
#include "sim/engine/task_graph.h"
#include "sim/model/gradients.h"
#include "sim/model/pieces.h"
#include "sim/model/profiler_cost.h"
#include "sim/model/steps.h"

#include <string.h>

#define PART(kind, ...) RP_PART_##kind(struct rp_sim_part, __VA_ARGS__)

static const struct rp_field part_fields[] = {PART(RECORD, graph, &rp_stepgraph_type),
                                              PART(RECORD, collectives, &rp_collectives_type),
                                              PART(PLAIN_VEC, notes, struct rp_sim_note),
                                              PART(PLAIN_VEC, packed_nodes, uint8_t),
                                              PART(PLAIN_VEC, packed_edges, uint8_t),
                                              PART(PLAIN, npacked_nodes),
                                              PART(PLAIN, npacked_edges),
                                              PART(PLAIN_VEC, links, struct rp_sim_link),
                                              PART(PLAIN_VEC, gradients, struct rp_sim_gradient),
                                              PART(PLAIN_VEC, step_begin_ns, int64_t),
                                              PART(PLAIN_VEC, step_end_ns, int64_t),
                                              PART(PLAIN_VEC, bare, uint8_t),
                                              PART(PLAIN, previous),
                                              PART(PLAIN, previous_unrecorded),
                                              PART(PLAIN, nsteps),
                                              PART(PLAIN, has_steps),
                                              PART(PLAIN, marks_on_device),
                                              PART(PLAIN, measured_ns),
                                              PART(PLAIN, distance_ns),
                                              PART(PLAIN, begins_on_device),
                                              PART(PLAIN_VEC, head_ns, int64_t),
                                              PART(PLAIN, tail_ns),
                                              PART(PLAIN, spread_ratio),
                                              PART(PLAIN, nranks),
                                              PART(PLAIN, stages),
                                              PART(PLAIN, parallel_steps),
                                              PART(PLAIN, recorded_steps),
                                              PART(PLAIN_VEC, waits, struct rp_sim_wait),
                                              PART(VEC, remarks, &rp_type_string),
                                              PART(PLAIN_VEC, devices, uint32_t),
                                              PART(PLAIN_VEC, priorities, uint8_t),
                                              PART(PLAIN_VEC, device_rules, uint8_t),
                                              PART(PLAIN_VEC, pieces, struct rp_sim_piece),
                                              PART(PLAIN, turns),
                                              PART(PLAIN_VEC, ratios, struct rp_sim_ratio),
                                              PART(TEXT, wait_line),
                                              PART(TEXT, update),
                                              PART(TEXT, gpu),
                                              PART(PLAIN, pid),
                                              PART(PLAIN, crowded),
                                              PART(PLAIN, quick_ns),
                                              PART(PLAIN, unrecorded_ratio),
                                              PART(PLAIN, world_size),
                                              PART(PLAIN, exposed_ratio),
                                              PART(PLAIN, start_up),
                                              PART(PLAIN, with_shapes),
                                              PART(PLAIN, recorder),
                                              PART(PLAIN, with_frames),
                                              PART(PLAIN, with_device),
                                              PART(PLAIN, nspans),
                                              PART(PLAIN, ncalls),
                                              PART(PLAIN, nframes),
                                              RP_PART_END};
const struct rp_type rp_sim_part_type = {"sim_part", sizeof(struct rp_sim_part), part_fields, NULL};

struct part_ctx {
    struct rp_sim_part *part;
    const struct rp_trace *t;
    const struct rp_work *work;
    struct rp_attribution places;
    RP_VEC(uint32_t) item_of; /* by event: its item + 1, or 0 */
    RP_VEC(uint32_t) name_of; /* by string: its name in the graph + 1, or 0 */
    RP_VEC(uint8_t) sign;     /* by event: phase by its name or by a span around it; IN_LOADER */
    RP_VEC(rp_event) op;      /* by event: the operator that it is, or that is around it */
    RP_VEC(uint8_t) remote;   /* by track: whether collectives of the host run there */
};

/* ------------------------------------------------------------------ signs */

enum { IN_LOADER = 0x80, PREPARES = 0x40 /* input, by its name */, SIGN_UNKNOWN = 0xff };

/* A span precedes those inside it, so one pass passes signs and operators down; each name is
   examined once. */
static enum rp_code sign_events(struct part_ctx *n, struct rp_err *err)
{
    RP_VEC_LOCAL(uint8_t, by_name);
    RP_VEC_LOCAL(uint8_t, launching);

    RP_TRY(rp_vec_reserve(&by_name, (size_t)n->t->str.n + 1, err));
    RP_TRY(rp_vec_reserve(&n->sign, (size_t)n->t->ev.n + 1, err));
    RP_TRY(rp_vec_reserve(&n->op, (size_t)n->t->ev.n + 1, err));
    RP_TRY(rp_vec_reserve(&launching, (size_t)n->t->ev.n + 1, err));
    memset(by_name.at, SIGN_UNKNOWN, n->t->str.n);

    /* Mark the spans in which device work is launched, because these run the model, whatever their
       names. */
    memset(launching.at, 0, n->t->ev.n);
    for (size_t i = 0; i < n->work->items.n; i++) {
        rp_event e = n->work->items.at[i].launch;

        for (; e != RP_NONE && !launching.at[e]; e = n->t->ev.parent[e])
            launching.at[e] = 1;
    }

    for (rp_event e = 0; e < n->t->ev.n; e++) {
        rp_event parent = n->t->ev.parent[e];

        /* Each name is looked at once. */
        rp_str name = n->t->ev.name[e];
        const char *text = rp_trace_str(n->t, name);
        if (by_name.at[name] == SIGN_UNKNOWN)
            by_name.at[name] = (uint8_t)(rp_phase_of_name(n->t, name) |
                                         (rp_host_signs(text) & RP_SIGN_DATA ? IN_LOADER
                                          : rp_host_prepares_input(text)     ? PREPARES
                                                                             : 0));
        uint8_t own = by_name.at[name];

        uint8_t around = parent < e ? n->sign.at[parent] : 0;

        n->op.at[e] = n->t->ev.kind[e] == RP_KIND_CPU_OP ? e
                      : parent < e                       ? n->op.at[parent]
                                                         : RP_NONE;
        if (own & PREPARES)
            own = (uint8_t)((own & ~PREPARES) | (launching.at[e] ? 0 : IN_LOADER));
        n->sign.at[e] = (uint8_t)(((own | around) & IN_LOADER) |
                                  ((own & ~IN_LOADER) ? own & ~IN_LOADER : around & ~IN_LOADER));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ notes */

static uint32_t op_name(const struct part_ctx *n, rp_event op)
{
    return op == RP_NONE || !n->name_of.at[n->t->ev.name[op]]
               ? 0
               : n->name_of.at[n->t->ev.name[op]] - 1;
}

static struct rp_sim_note note_device(const struct part_ctx *n, uint32_t item)
{
    const struct rp_work_item *x = &n->work->items.at[item];
    const struct rp_work_owner *place = &n->places.owners.at[item];
    struct rp_sim_note note = {0, RP_NO_STEP, place->phase, 0};

    note.op = op_name(n, place->op);
    note.step = rp_sim_step_at(n->part, x->launch == RP_NONE || n->part->marks_on_device
                                            ? x->begin_ns
                                            : n->t->ev.ts_ns[x->launch]);
    if (x->launch != RP_NONE && note.step != RP_NO_STEP &&
        n->t->ev.ts_ns[x->launch] < n->part->step_end_ns.at[note.step])
        note.flags |= RP_SIM_BEGINS;
    if (x->launch != RP_NONE && n->remote.at[n->t->ev.track[x->launch]])
        note.flags |= RP_SIM_REMOTE;
    return note;
}

static struct rp_sim_note note_host(const struct part_ctx *n, const struct rp_sg_node *node)
{
    struct rp_sim_note note = {0, RP_NO_STEP, RP_PHASE_OTHER, 0};
    rp_event e = node->event;

    note.op = op_name(n, n->op.at[e]);
    note.step = rp_sim_step_at(n->part, node->start_ns);
    note.phase = n->sign.at[e] & (uint8_t)~IN_LOADER;
    if (node->start_ns == n->t->ev.ts_ns[e])
        note.flags |= RP_SIM_OPENS;
    if (node->kind == RP_SG_RUNTIME)
        note.flags |= RP_SIM_CALL;
    if (n->t->ev.kind[e] == RP_KIND_PYTHON)
        note.flags |= RP_SIM_FRAME;
    if (n->remote.at[n->t->ev.track[e]])
        note.flags |= RP_SIM_REMOTE;
    if (n->sign.at[e] & IN_LOADER)
        note.flags |= RP_SIM_LOADER;
    return note;
}

static enum rp_code note_nodes(struct part_ctx *n, struct rp_err *err)
{
    struct rp_stepgraph *g = &n->part->graph;

    RP_TRY(rp_vec_reserve(&n->part->notes, g->nodes.n + 1, err));
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct rp_sg_node *node = &g->nodes.at[i];
        struct rp_sim_note note = {0, RP_NO_STEP, RP_PHASE_OTHER, 0};

        if (node->event != RP_NONE)
            note = n->item_of.at[node->event] ? note_device(n, n->item_of.at[node->event] - 1)
                                              : note_host(n, node);
        n->part->notes.at[i] = note;
    }
    n->part->notes.n = g->nodes.n;
    return RP_OK;
}

/* ------------------------------------------------------------------ all of it */

static enum rp_code index_events(struct part_ctx *n, struct rp_err *err)
{
    const struct rp_stepgraph *g = &n->part->graph;

    RP_TRY(rp_vec_zeros(&n->item_of, n->t->ev.n, err));
    RP_TRY(rp_vec_zeros(&n->name_of, n->t->str.n, err));
    RP_TRY(rp_vec_zeros(&n->remote, n->t->ntracks, err));
    for (size_t i = 0; i < n->work->items.n; i++)
        n->item_of.at[n->work->items.at[i].event] = (uint32_t)i + 1;
    for (size_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i].event != RP_NONE)
            n->name_of.at[n->t->ev.name[g->nodes.at[i].event]] = g->nodes.at[i].name + 1;
    for (size_t i = 0; n->part->collectives.on_host && i < n->part->collectives.list.n; i++)
        n->remote.at[n->t->ev.track[n->part->collectives.list.at[i].event]] = 1;
    return RP_OK;
}

static enum rp_code fill_part(struct part_ctx *n, struct rp_err *err)
{
    RP_TRY(rp_sg_init(&n->part->graph, n->work, &n->part->collectives, err));
    RP_TRY(rp_attribution_init(&n->places, n->work, err));
    RP_TRY(rp_sim_steps_list(n->part, n->t, err));
    RP_TRY(index_events(n, err));
    RP_TRY(sign_events(n, err));
    RP_TRY(note_nodes(n, err));
    RP_TRY(rp_sim_steps_measure(n->part, n->t, err));
    RP_TRY(rp_sim_gradients_find(n->part, n->t, err));
    RP_TRY(rp_sim_pieces_find(n->part, n->t, n->work, &n->places, err));
    rp_sg_drop_index(&n->part->graph);
    return rp_sim_cost_look(n->part, n->t, err);
}

/* Finds the mark of the optimizer; of several, one that may be fused. It may have no time of its
   own, and thus no node. */
static const char *update_mark(const struct rp_trace *t)
{
    const char *found = NULL;

    for (rp_str s = 0; s < t->str.n; s++) {
        const char *name = rp_trace_str(t, s);

        if (rp_update_of_mark(name) == RP_UPDATE_FUSIBLE ||
            (!found && rp_update_of_mark(name) == RP_UPDATE_OTHER))
            found = name;
    }
    return found;
}

/* The process whose threads carry collectives. */
static int64_t host_pid(const struct rp_sim_part *part, const struct rp_trace *t)
{
    for (size_t i = 0; part->collectives.on_host && i < part->graph.lanes.n; i++) {
        const struct rp_sg_lane *lane = &part->graph.lanes.at[i];
        const struct rp_process *process = lane->device || lane->track >= t->ntracks
                                               ? NULL
                                               : &t->processes[t->tracks[lane->track].process];

        if (process && !process->text && process->native_id > 0)
            return process->native_id;
    }
    return 0;
}

/* Finds how large the job is, and how much of the time its ranks only communicate. */
static enum rp_code look_at_ranks(struct rp_sim_part *out, const struct rp_work *work,
                                  struct rp_err *err)
{
    RP_SCOPED(rp_work_unions_release) struct rp_work_unions unions = {0};

    out->world_size = work->trace->world_size;
    RP_TRY(rp_work_unite(work, &unions, err));
    struct rp_breakdown b = rp_work_breakdown(&unions);

    if (b.window_ns > 0)
        out->exposed_ratio = (double)b.exposed_comm_ns / (double)b.window_ns;
    return RP_OK;
}

enum rp_code rp_sim_part_init(struct rp_sim_part *out, const struct rp_trace *trace,
                              struct rp_arena *arena, struct rp_err *err)
{
    struct part_ctx n = {.part = out, .t = trace};
    struct rp_work work = {0};
    struct rp_scope all = {0};
    struct rp_trace_life life;

    memset(out, 0, sizeof *out);
    enum rp_code code = rp_work_init(&work, trace, NULL, err);
    n.work = &work;
    if (code == RP_OK)
        code = rp_collectives_init(&out->collectives, &work, &all, arena, err);
    if (code == RP_OK)
        code = look_at_ranks(out, &work, err);
    if (code == RP_OK && trace->ndevices) {
        out->gpu = rp_arena_strdup(arena, rp_trace_str(trace, trace->devices[0].name));
        code = out->gpu ? RP_OK : rp_err_nomem(err, "simulating");
    }
    if (code == RP_OK && update_mark(trace)) {
        out->update = rp_arena_strdup(arena, update_mark(trace));
        code = out->update ? RP_OK : rp_err_nomem(err, "simulating");
    }
    if (code == RP_OK)
        code = fill_part(&n, err);
    if (code == RP_OK)
        out->pid = host_pid(out, trace);
    out->crowded = rp_ddp_crowded(trace);
    rp_trace_life_find(trace, &life);
    if (life.recorded_ns > 0 && life.unrecorded_ns > 0)
        out->unrecorded_ratio = (double)life.unrecorded_ns / (double)life.recorded_ns;
    rp_attribution_release(&n.places);
    rp_vec_release(&n.item_of);
    rp_vec_release(&n.name_of);
    rp_vec_release(&n.sign);
    rp_vec_release(&n.op);
    rp_vec_release(&n.remote);
    rp_work_release(&work);
    return code;
}

void rp_sim_part_release(struct rp_sim_part *part)
{
    rp_sg_release(&part->graph);
    rp_collectives_release(&part->collectives);
    rp_vec_release(&part->notes);
    rp_vec_release(&part->packed_nodes);
    rp_vec_release(&part->packed_edges);
    rp_vec_release(&part->links);
    rp_vec_release(&part->gradients);
    rp_vec_release(&part->devices);
    rp_vec_release(&part->priorities);
    rp_vec_release(&part->pieces);
    rp_vec_release(&part->ratios);
    rp_vec_release(&part->device_rules);
    rp_vec_release(&part->step_begin_ns);
    rp_vec_release(&part->step_end_ns);
    rp_vec_release(&part->bare);
    rp_vec_release(&part->head_ns);
    rp_vec_release(&part->waits);
    rp_vec_release(&part->remarks);
}
