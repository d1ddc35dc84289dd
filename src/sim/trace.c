/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of a lane keep it as their track. The others (operators and transfers of a job, added
 * tasks) are put on the first row that is free; each rank and kind has a set of rows. Only a few
 * run at a time, so the search is short. Steps that are parallel in the model follow each other in
 * the trace, and a message between ranks is an arrow.
 */
#include "sim/simulate.h"

#include "base/filled.h"
#include "base/line.h"
#include "base/order.h"
#include "sim/model/names.h"
#include "trace/merged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER, RECORDED_TS, RECORDED_DUR, CORRELATION, STREAM, NKEYS };

struct row {
    uint32_t rank;
    uint8_t kind;
    int64_t end_ns;
    rp_track track;
};

struct trace_ctx {
    const struct rp_sim_run *run;
    const struct rp_sim_result *r;
    const struct rp_sim_steps *steps;
    struct rp_builder *b;
    uint16_t origins[RP_SG_KINDS], mark, part;
    rp_str keys[NKEYS], kinds[RP_SG_KINDS];
    RP_VEC(uint32_t) launch; /* by task: its correlation id, or 0 */
    RP_VEC(rp_track) lanes;
    RP_VEC(uint32_t) loose; /* tasks without a lane, ordered by start */
    RP_VEC(struct row) rows;
    RP_VEC(rp_str) names;        /* by name of the graph; RP_NONE: not made yet */
    RP_VEC(int64_t) shift_ns;    /* by step: added to its times; empty if nothing is */
    RP_VEC(rp_track) track;      /* by task */
    RP_VEC(rp_track) mark_track; /* by step of a rank */
    RP_VEC(int64_t) begin_ns;    /* by task: in the trace */
    uint16_t sent, received;     /* arrows */
    uint64_t narrows;
};

static int64_t begin_of(const struct trace_ctx *t, uint32_t task)
{
    uint16_t step = rp_overlay_task(&t->run->overlay, task)->step;

    return t->r->start_ns.at[task] + (step < t->shift_ns.n ? t->shift_ns.at[step] : 0);
}

static enum rp_code intern(struct trace_ctx *t, const char *text, rp_str *out, struct rp_err *err)
{
    return rp_builder_intern(t->b, text, strlen(text), out, err);
}

/* ------------------------------------------------------------------ tables */

static bool is_on_device(const struct trace_ctx *t, uint32_t task)
{
    uint8_t kind = rp_overlay_task(&t->run->overlay, task)->kind;

    if (task < rp_sim_nnodes(t->run))
        return rp_sim_on_device(t->run, task) && !t->run->gone.at[task];
    return kind == RP_SG_COMPUTE || kind == RP_SG_COMM || kind == RP_SG_MEMORY;
}

static enum rp_code add_origin(struct trace_ctx *t, const char *category, uint8_t kind,
                               uint8_t flags, uint16_t *out, struct rp_err *err)
{
    struct rp_origin o = {.phase = 'X', .kind = kind, .flags = flags, .has_category = 1};

    RP_TRY(intern(t, category, &o.category, err));
    return rp_builder_origin(t->b, &o, out, err);
}

static enum rp_code add_tables(struct trace_ctx *t, struct rp_err *err)
{
    static const struct {
        const char *category;
        uint8_t kind, flags;
    } of_kind[RP_SG_KINDS] = {
        [RP_SG_ORIGIN] = {"meeting", RP_KIND_OTHER, 0},
        [RP_SG_HOST] = {"cpu_op", RP_KIND_CPU_OP, RP_ORIGIN_NESTS},
        [RP_SG_RUNTIME] = {"cuda_runtime", RP_KIND_RUNTIME, RP_ORIGIN_RUNTIME | RP_ORIGIN_NESTS},
        [RP_SG_COMPUTE] = {"kernel", RP_KIND_KERNEL, RP_ORIGIN_GPU},
        [RP_SG_COMM] = {"kernel", RP_KIND_KERNEL, RP_ORIGIN_GPU},
        [RP_SG_MEMORY] = {"gpu_memcpy", RP_KIND_MEMCPY, RP_ORIGIN_GPU},
        [RP_SG_ARRIVE] = {"meeting", RP_KIND_OTHER, 0},
        [RP_SG_RENDEZVOUS] = {"meeting", RP_KIND_OTHER, 0}};
    static const char *const keys[NKEYS] = {"node", "recorded ts ns", "recorded dur ns",
                                            "correlation", "stream"};

    for (size_t i = 0; i < RP_SG_KINDS; i++) {
        RP_TRY(add_origin(t, of_kind[i].category, of_kind[i].kind, of_kind[i].flags, &t->origins[i],
                          err));
        RP_TRY(intern(t, rp_sg_kind_names[i], &t->kinds[i], err));
    }
    RP_TRY(add_origin(t, "user_annotation", RP_KIND_ANNOTATION,
                      RP_ORIGIN_NESTS | RP_ORIGIN_MARKS_STEP, &t->mark, err));
    RP_TRY(add_origin(t, "annotation_part", RP_KIND_OTHER, 0, &t->part, err));
    for (size_t i = 0; i < NKEYS; i++)
        RP_TRY(intern(t, keys[i], &t->keys[i], err));
    return RP_OK;
}

/* If there are several ranks, each has a process for its threads and one for its device. */
static enum rp_code add_track(struct trace_ctx *t, uint32_t rank, bool device, const char *label,
                              rp_track *out, struct rp_err *err)
{
    char process[32];
    uint32_t id;
    rp_str text;

    if (t->run->nranks == 1 && rank >= t->run->parts[0]->nranks)
        snprintf(process, sizeof process, "server %u", rank - t->run->parts[0]->nranks);
    else
        snprintf(process, sizeof process, "rank %u", rank);
    RP_TRY(intern(t, process, &text, err));
    if (t->run->nranks > 1)
        RP_TRY(rp_builder_process(t->b, 2 * (int64_t)rank + device, 0, &id, err));
    else
        RP_TRY(rp_builder_process(t->b, 0, text, &id, err));
    RP_TRY(intern(t, label, &text, err));
    return rp_builder_track(t->b, id, 0, text, true, out, err);
}

/* ------------------------------------------------------------------ ranks */

static enum rp_code name_process(struct trace_ctx *t, size_t rank, bool device, struct rp_err *err)
{
    char label[32];
    rp_track track;
    rp_str name;

    snprintf(label, sizeof label, device ? "device (rank %zu)" : "rank %zu", rank);
    RP_TRY(intern(t, label, &name, err));
    RP_TRY(add_track(t, (uint32_t)rank, device, device ? "stream" : "steps", &track, err));
    return rp_builder_label(t->b, track, "process_name", "name", name, err);
}

/* Adds a record that says which processes belong to which rank (trace/merged.h). */
static enum rp_code add_ranks(struct trace_ctx *t, struct rp_err *err)
{
    struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_arena_line line = {.arena = &scratch};
    enum rp_code code = RP_OK;
    rp_str key, value;
    size_t i, n = t->run->nranks;

    if (n < 2)
        return RP_OK;
    for (i = 0; i < n && code == RP_OK; i++) {
        rp_arena_addf(&line,
                      "%s{\"rank\":%zu,\"world_size\":%zu,\"label\":\"rank %zu\","
                      "\"first_pid\":%zu,\"pids\":[1,0]}",
                      i ? "," : "[", i, n, i, 2 * i);
        code = name_process(t, i, false, err);
        if (code == RP_OK)
            code = name_process(t, i, true, err);
    }
    rp_arena_addf(&line, "]");
    if (code == RP_OK)
        code = rp_arena_check(&scratch, "writing the simulated run", err);
    if (code == RP_OK)
        code = intern(t, RP_MERGED_KEY, &key, err);
    if (code == RP_OK)
        code = intern(t, line.text, &value, err);
    if (code == RP_OK)
        code = rp_builder_add_meta(t->b, key, value, false, err);
    rp_arena_release(&scratch);
    return code;
}

/* ------------------------------------------------------------------ launches */

/* Whether an edge belongs to the same launch: a call launches all of a graph, and a collective
   together with its arrival. */
static bool is_same_launch(const struct trace_ctx *t, uint32_t from, const struct rp_task_link *e)
{
    enum rp_sg_edge_kind kind = RP_SIM_EDGE_KIND(e->flags);

    return kind == RP_SG_IN_GRAPH ||
           (kind == RP_SG_MEMBER && rp_sim_node(t->run, from)->kind == RP_SG_ARRIVE &&
            e->to == from + 1);
}

/* Work in a graph was launched by the call that launched its first part. */
static bool spread_launches(struct trace_ctx *t)
{
    const struct rp_task_graph *g = &t->run->tasks;
    bool changed = false;

    for (uint32_t v = 0; v < g->tasks.n; v++)
        for (uint32_t i = g->first.at[v]; t->launch.at[v] && i < g->first.at[v + 1]; i++)
            if (!t->launch.at[g->edges.at[i].to] && is_same_launch(t, v, &g->edges.at[i])) {
                t->launch.at[g->edges.at[i].to] = t->launch.at[v];
                changed = true;
            }
    return changed;
}

/* ------------------------------------------------------------------ events */

static void push_arg(struct rp_arg *args, uint32_t *n, rp_str key, int64_t value)
{
    args[(*n)++] = (struct rp_arg){.key = key, .type = RP_ARG_I64, .v = {.i = value}};
}

static enum rp_code name_of(struct trace_ctx *t, uint32_t task, rp_str *out, struct rp_err *err)
{
    const struct rp_stepgraph *g = t->run->graph;

    *out = t->kinds[rp_overlay_task(&t->run->overlay, task)->kind];
    if (task >= rp_sim_nnodes(t->run) || !*g->names.at[rp_sim_node(t->run, task)->name])
        return RP_OK;
    rp_str *known = &t->names.at[rp_sim_node(t->run, task)->name];
    if (*known == RP_NONE)
        RP_TRY(intern(t, g->names.at[rp_sim_node(t->run, task)->name], known, err));
    *out = *known;
    return RP_OK;
}

/* Some profilers write their marks as operators. */
static bool is_mark(const struct rp_sim_run *run, uint32_t node)
{
    return rp_sim_means(run->graph->names.at[rp_sim_node(run, node)->name], RP_SIM_STEP_MARK);
}

/* Collectives of the host are spans of a thread. Parts of annotations must not mark steps again. */
static uint16_t origin_of(const struct trace_ctx *t, uint32_t task)
{
    const struct rp_stepgraph *g = t->run->graph;
    uint32_t lane = task < rp_sim_nnodes(t->run) ? rp_sim_node(t->run, task)->lane : RP_NONE;
    uint8_t kind = rp_overlay_task(&t->run->overlay, task)->kind;

    if (kind == RP_SG_COMM && lane != RP_NONE && !g->lanes.at[lane].device)
        kind = RP_SG_HOST;
    if (kind == RP_SG_HOST && task < rp_sim_nnodes(t->run) &&
        (!(rp_sim_node(t->run, task)->flags & RP_SG_WORK) || is_mark(t->run, task)))
        return t->part;
    return t->origins[kind];
}

static enum rp_code add_task(struct trace_ctx *t, uint32_t task, rp_track track, struct rp_err *err)
{
    const struct rp_stepgraph *g = t->run->graph;
    const struct rp_sg_node *node = task < rp_sim_nnodes(t->run) ? rp_sim_node(t->run, task) : NULL;
    struct rp_arg args[NKEYS];
    struct rp_raw raw = {.ts_ns = begin_of(t, task),
                         .dur_ns = t->r->end_ns.at[task] - t->r->start_ns.at[task],
                         .track = track,
                         .origin = origin_of(t, task),
                         .args = args};

    push_arg(args, &raw.nargs, t->keys[NUMBER], task);
    if (node && node->event != RP_NONE) {
        push_arg(args, &raw.nargs, t->keys[RECORDED_TS], node->start_ns);
        push_arg(args, &raw.nargs, t->keys[RECORDED_DUR], node->dur_ns);
    }
    if (t->launch.at[task]) {
        push_arg(args, &raw.nargs, t->keys[CORRELATION], t->launch.at[task]);
        raw.has_link = true;
        raw.link = t->launch.at[task];
    }
    if (node && node->lane != RP_NONE && g->lanes.at[node->lane].device)
        push_arg(args, &raw.nargs, t->keys[STREAM], node->lane);
    RP_TRY(name_of(t, task, &raw.name, err));
    RP_TRY(rp_builder_shape(t->b, args, raw.nargs, &raw.shape, err));
    t->track.at[task] = track;
    return rp_builder_add(t->b, &raw, err);
}

/* ------------------------------------------------------------------ tasks without a lane */

static enum rp_code row_for(struct trace_ctx *t, uint32_t task, rp_track *out, struct rp_err *err)
{
    const struct rp_task_row *x = rp_overlay_task(&t->run->overlay, task);
    struct row row = {x->rank, x->kind, 0, 0};
    char label[64];
    size_t i, n = 0;

    row.end_ns = t->begin_ns.at[task] + t->r->end_ns.at[task] - t->r->start_ns.at[task];
    for (i = 0; i < t->rows.n; i++) {
        struct row *old = &t->rows.at[i];

        if (old->rank != x->rank || old->kind != x->kind)
            continue;
        n++;
        if (old->end_ns <= t->begin_ns.at[task]) {
            old->end_ns = row.end_ns;
            *out = old->track;
            return RP_OK;
        }
    }
    snprintf(label, sizeof label, "%s %zu", rp_sg_kind_names[x->kind], n + 1);
    RP_TRY(add_track(t, x->rank, is_on_device(t, task), label, &row.track, err));
    *out = row.track;
    return rp_vec_push(&t->rows, row, err);
}

/* ------------------------------------------------------------------ steps */

/* Marks that begin at the same time, as with a host that takes no time, have no room for what was
   launched in them, so each step is moved a nanosecond further than the one before. */
static enum rp_code part_marks(struct trace_ctx *t, struct rp_err *err)
{
    size_t r, i, most = 0;
    bool same = false;

    for (r = 0; r < t->steps->nranks; r++) {
        const struct rp_sim_rank_steps *rank = &t->steps->ranks[r];

        most = rank->n > most ? rank->n : most;
        for (i = 1; i < rank->n; i++)
            same |= rank->mark_ns[i] <= rank->mark_ns[i - 1];
    }
    if (!same)
        return RP_OK;
    RP_TRY(rp_vec_reserve(&t->shift_ns, most, err));
    for (i = 0; i < most; i++)
        t->shift_ns.at[i] = (int64_t)i;
    t->shift_ns.n = most;
    return RP_OK;
}

static int64_t mark_of(const struct trace_ctx *t, size_t rank, size_t step)
{
    return t->steps->ranks[rank].mark_ns[step] + (step < t->shift_ns.n ? t->shift_ns.at[step] : 0);
}

static int64_t last_mark_end(const struct trace_ctx *t, size_t rank)
{
    const struct rp_sim_rank_steps *steps = &t->steps->ranks[rank];

    return steps->mark_end_ns + mark_of(t, rank, steps->n - 1) - steps->mark_ns[steps->n - 1];
}

/* The step in which a reader places what was launched at that time, or the number of steps. */
static size_t step_read(const struct trace_ctx *t, size_t rank, int64_t ns)
{
    size_t low, n = t->steps->ranks[rank].n;

    RP_LOWER_BOUND(low, n, mark_of(t, rank, low) <= ns);
    if (low == n && ns >= last_mark_end(t, rank))
        return n;
    return low ? low - 1 : n;
}

/* Puts a mark on the thread of what stands for it, or on a track of its own. */
static enum rp_code find_mark_tracks(struct trace_ctx *t, size_t rank, struct rp_err *err)
{
    uint32_t i, first = rp_sim_first_node(t->run, rank);
    uint32_t end = first + (uint32_t)t->run->parts[rank]->notes.n;
    size_t step, n = t->steps->ranks[rank].n;
    rp_track own;

    t->mark_track.n = 0;
    RP_TRY(rp_vec_reserve(&t->mark_track, n, err));
    for (step = 0; step < n; step++)
        t->mark_track.at[step] = RP_NONE;
    for (i = first; i < end; i++) {
        const struct rp_sim_note *note = rp_sim_note_of(t->run, i);

        if (note->flags & RP_SIM_TIMES && rp_sim_node(t->run, i)->lane != RP_NONE &&
            !rp_sim_on_device(t->run, i) && t->mark_track.at[note->step] == RP_NONE)
            t->mark_track.at[note->step] = t->lanes.at[rp_sim_node(t->run, i)->lane];
    }
    for (step = 0; step < n; step++)
        if (t->mark_track.at[step] == RP_NONE) {
            RP_TRY(add_track(t, (uint32_t)rank, false, "steps", &own, err));
            t->mark_track.at[step] = own;
        }
    return RP_OK;
}

static enum rp_code add_marks(struct trace_ctx *t, size_t rank, struct rp_err *err)
{
    const struct rp_sim_rank_steps *steps = &t->steps->ranks[rank];

    RP_TRY(find_mark_tracks(t, rank, err));
    for (size_t i = 0; i < steps->n; i++) {
        struct rp_raw raw = {
            .ts_ns = mark_of(t, rank, i), .origin = t->mark, .track = t->mark_track.at[i]};
        int64_t end = i + 1 < steps->n ? mark_of(t, rank, i + 1) : last_mark_end(t, rank);
        char name[40];

        raw.dur_ns = end > raw.ts_ns ? end - raw.ts_ns : 0;
        snprintf(name, sizeof name, "ProfilerStep#%zu", i);
        RP_TRY(intern(t, name, &raw.name, err));
        RP_TRY(rp_builder_add(t->b, &raw, err));
    }
    return RP_OK;
}

/* Adds a launch: device work belongs to the step of its launch. If that step has no recorded
   launch, because there is none or a what-if moved it, one is added at the begin of the step; for
   work of no step, before the first. */
static enum rp_code add_launch(struct trace_ctx *t, uint32_t task, struct rp_err *err)
{
    const struct rp_task_row *x = rp_overlay_task(&t->run->overlay, task);
    uint32_t rank = t->run->nranks > 1 ? x->rank : 0;
    uint32_t launch = t->launch.at[task];
    struct rp_raw raw = {.origin = t->origins[RP_SG_RUNTIME], .has_link = true};
    struct rp_arg arg;

    if (rank >= t->steps->nranks || !t->run->parts[rank]->has_steps || !is_on_device(t, task))
        return RP_OK;
    size_t wanted = x->step == RP_NO_STEP ? t->steps->ranks[rank].n : x->step;
    if (step_read(t, rank, begin_of(t, launch ? launch - 1 : task)) == wanted)
        return RP_OK;
    t->launch.at[task] = (uint32_t)rp_overlay_ntasks(&t->run->overlay) + task + 1;
    raw.ts_ns = x->step == RP_NO_STEP ? mark_of(t, rank, 0) - 1 : mark_of(t, rank, x->step);
    raw.link = t->launch.at[task];
    raw.args = &arg;
    push_arg(&arg, &raw.nargs, t->keys[CORRELATION], t->launch.at[task]);
    RP_TRY(add_track(t, rank, false, "launches", &raw.track, err));
    RP_TRY(intern(t, "launch", &raw.name, err));
    RP_TRY(rp_builder_shape(t->b, &arg, raw.nargs, &raw.shape, err));
    return rp_builder_add(t->b, &raw, err);
}

/* Makes parallel steps follow each other: each begins where the one before ended. */
static enum rp_code shift_steps(struct trace_ctx *t, struct rp_err *err)
{
    size_t step, n = t->run->parts[0]->parallel_steps ? t->run->parts[0]->nsteps : 0;
    uint32_t i, tasks = (uint32_t)rp_overlay_ntasks(&t->run->overlay);
    int64_t sum = 0, last;

    RP_TRY(rp_vec_zeros(&t->shift_ns, n, err));
    for (i = 0; i < tasks; i++) {
        step = rp_overlay_task(&t->run->overlay, i)->step;
        if (step < n && t->r->end_ns.at[i] > t->shift_ns.at[step])
            t->shift_ns.at[step] = t->r->end_ns.at[i];
    }
    for (step = 0; step < n; step++) {
        last = t->shift_ns.at[step];
        t->shift_ns.at[step] = sum;
        sum += last;
    }
    t->shift_ns.at[n] = sum;
    t->shift_ns.n = n;
    return RP_OK;
}

static enum rp_code add_steps(struct trace_ctx *t, struct rp_err *err)
{
    if (t->run->parts[0]->parallel_steps) {
        struct rp_raw raw = {.origin = t->mark};
        char name[40];

        for (size_t i = 0; i < t->shift_ns.n; i++) {
            snprintf(name, sizeof name, "ProfilerStep#%zu", i);
            RP_TRY(intern(t, name, &raw.name, err));
            RP_TRY(add_track(t, 0, false, "steps", &raw.track, err));
            raw.ts_ns = t->shift_ns.at[i];
            raw.dur_ns = t->shift_ns.at[i + 1] - t->shift_ns.at[i];
            RP_TRY(rp_builder_add(t->b, &raw, err));
        }
        return RP_OK;
    }
    if (!t->run->parts[0]->has_steps)
        return RP_OK;
    RP_TRY(part_marks(t, err));
    for (size_t r = 0; r < t->steps->nranks; r++)
        if (t->run->parts[r]->has_steps)
            RP_TRY(add_marks(t, r, err));
    for (uint32_t i = 0; i < t->launch.n; i++)
        RP_TRY(add_launch(t, i, err));
    return RP_OK;
}

/* ------------------------------------------------------------------ all of it */

/* Adds an arrow from what was sent to what waited for it on another rank. Both ends lie inside
   their spans. */
static enum rp_code add_arrow(struct trace_ctx *t, uint32_t from, uint32_t to, bool from_start,
                              struct rp_err *err)
{
    int64_t dur = t->r->end_ns.at[from] - t->r->start_ns.at[from];
    struct rp_raw_flow raw = {.id = (int64_t)t->narrows + 1,
                              .ts_ns = t->begin_ns.at[from] + (from_start ? 0 : dur - 1),
                              .track = t->track.at[from],
                              .origin = t->sent,
                              .name = t->kinds[RP_SG_COMM]};

    if (dur <= 0 || t->r->end_ns.at[to] <= t->r->start_ns.at[to] ||
        rp_overlay_task(&t->run->overlay, from)->rank ==
            rp_overlay_task(&t->run->overlay, to)->rank)
        return RP_OK;
    t->narrows++;
    RP_TRY(rp_builder_add_flow(t->b, &raw, err));
    raw.origin = t->received;
    raw.flags = RP_FLOW_BIND_ENCLOSING;
    raw.ts_ns = t->begin_ns.at[to];
    raw.track = t->track.at[to];
    return rp_builder_add_flow(t->b, &raw, err);
}

static enum rp_code add_arrows(struct trace_ctx *t, struct rp_err *err)
{
    struct rp_origin o = {.phase = 's', .kind = RP_KIND_OTHER, .has_category = 1};
    const struct rp_task_graph *g = &t->run->tasks;
    const struct rp_overlay *overlay = &t->run->overlay;

    RP_TRY(intern(t, "transfer", &o.category, err));
    RP_TRY(rp_builder_origin(t->b, &o, &t->sent, err));
    o.phase = 'f';
    RP_TRY(rp_builder_origin(t->b, &o, &t->received, err));
    for (uint32_t v = 0; v < g->tasks.n; v++)
        for (size_t i = g->first.at[v]; i < g->first.at[v + 1]; i++)
            if (RP_SIM_EDGE_KIND(g->edges.at[i].flags) == RP_SG_EVENT)
                RP_TRY(add_arrow(t, v, g->edges.at[i].to, g->edges.at[i].flags & RP_EDGE_FROM_START,
                                 err));
    for (size_t i = 0; i < overlay->edges.n; i++)
        RP_TRY(add_arrow(t, overlay->edges.at[i].from, overlay->edges.at[i].edge.to,
                         overlay->edges.at[i].edge.flags & RP_EDGE_FROM_START, err));
    return RP_OK;
}

static enum rp_code add_tasks(struct trace_ctx *t, struct rp_err *err)
{
    const struct rp_stepgraph *g = t->run->graph;
    uint32_t i, n = (uint32_t)rp_overlay_ntasks(&t->run->overlay);

    RP_TRY(rp_vec_nones(&t->names, g->names.n, err));
    RP_TRY(rp_vec_reserve(&t->track, (size_t)n + 1, err));
    RP_TRY(rp_vec_reserve(&t->begin_ns, (size_t)n + 1, err));
    for (i = 0; i < n; i++)
        t->begin_ns.at[i] = begin_of(t, i);
    for (i = 0; i < n; i++)
        if (i < rp_sim_nnodes(t->run) && rp_sim_node(t->run, i)->lane != RP_NONE)
            RP_TRY(add_task(t, i, t->lanes.at[rp_sim_node(t->run, i)->lane], err));
        else
            RP_TRY(rp_vec_push(&t->loose, i, err));

    /* Tasks without a row of their own, in the order of their starts. */
    rp_track track;
    if (t->loose.n)
        qsort_r(t->loose.at, t->loose.n, sizeof *t->loose.at, rp_sim_by_start, t->begin_ns.at);
    for (size_t k = 0; k < t->loose.n; k++) {
        RP_TRY(row_for(t, t->loose.at[k], &track, err));
        RP_TRY(add_task(t, t->loose.at[k], track, err));
    }

    return add_arrows(t, err);
}

static enum rp_code fill_trace(struct trace_ctx *t, struct rp_err *err)
{
    struct rp_trace *head = rp_builder_borrow_trace(t->b);

    RP_TRY(intern(t, "pytorch", &head->framework, err));
    RP_TRY(add_tables(t, err));
    RP_TRY(add_ranks(t, err));
    for (size_t i = 0; i < t->run->graph->lanes.n; i++) {
        const struct rp_sg_lane *lane = &t->run->graph->lanes.at[i];
        rp_track track;

        RP_TRY(add_track(t, lane->rank, lane->device, lane->label, &track, err));
        RP_TRY(rp_vec_push(&t->lanes, track, err));
    }

    /* Give a call and what it launched the call's number. */
    const struct rp_task_graph *g = &t->run->tasks;
    size_t n = rp_overlay_ntasks(&t->run->overlay);
    RP_TRY(rp_vec_zeros(&t->launch, n, err));
    for (uint32_t v = 0; v < g->tasks.n; v++)
        for (uint32_t i = g->first.at[v]; i < g->first.at[v + 1]; i++)
            if (RP_SIM_EDGE_KIND(g->edges.at[i].flags) == RP_SG_LAUNCH &&
                !t->run->gone.at[g->edges.at[i].to])
                t->launch.at[v] = t->launch.at[g->edges.at[i].to] = v + 1;
    while (spread_launches(t))
        ;
    t->launch.n = n;

    RP_TRY(shift_steps(t, err));
    RP_TRY(add_steps(t, err));
    return add_tasks(t, err);
}

enum rp_code rp_sim_trace_new(const struct rp_sim_run *run, const struct rp_sim_result *result,
                              const struct rp_sim_steps *steps, struct rp_trace **out,
                              struct rp_err *err)
{
    struct trace_ctx t = {.run = run, .r = result, .steps = steps};

    *out = NULL;
    RP_TRY(rp_builder_new(NULL, &t.b, err));
    enum rp_code code = fill_trace(&t, err);
    if (code == RP_OK)
        code = rp_builder_finish(t.b, out, err);
    else
        rp_builder_free(t.b);
    rp_vec_release(&t.launch);
    rp_vec_release(&t.lanes);
    rp_vec_release(&t.loose);
    rp_vec_release(&t.rows);
    rp_vec_release(&t.names);
    rp_vec_release(&t.shift_ns);
    rp_vec_release(&t.track);
    rp_vec_release(&t.begin_ns);
    rp_vec_release(&t.mark_track);
    return code;
}
