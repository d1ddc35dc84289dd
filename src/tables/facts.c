/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derives the facts of the tables that are not columns of the trace when a table is first used:
 * device work with its owners, launches, operators, steps and collectives. Linear in the events,
 * except for the order of the work and the matching of collectives (O(n log n)).
 */
#include "facts/arg_keys.h"
#include "facts/host/trace_host.h"
#include "facts/times/step_times.h"
#include "tables/tables.h"
#include "trace/words.h"

#include <stdlib.h>

static void set_array(struct rp_table_rank *r, enum rp_table_array array, const void *at,
                      size_t stride)
{
    r->arrays[array] = (struct rp_table_span){at, stride};
}

/* ------------------------------------------------------------------ ranks and events */

static const char *text_or_null(const struct rp_trace *t, rp_str s)
{
    return s ? rp_trace_str(t, s) : NULL;
}

static enum rp_code fill_rank(struct rp_table_rank *r, struct rp_err *err)
{
    const struct rp_trace *t = r->trace;

    r->row = (struct rp_table_rank_row){.rank = r->number,
                                        .file = r->path,
                                        .format = rp_trace_str(t, t->format),
                                        .framework = text_or_null(t, t->framework),
                                        .framework_version = text_or_null(t, t->framework_version),
                                        .world_size = t->world_size,
                                        .events = t->ev.n,
                                        .steps = t->nsteps,
                                        .begin_ns = t->totals.span_begin_ns,
                                        .end_ns = t->totals.span_end_ns,
                                        .base_ns = t->has_base ? t->base_ns : RP_NO_TS};
    set_array(r, RP_ARRAY_RANK, &r->row, 0);
    set_array(r, RP_ARRAY_TS, t->ev.ts_ns, sizeof *t->ev.ts_ns);
    set_array(r, RP_ARRAY_DUR, t->ev.dur_ns, sizeof *t->ev.dur_ns);
    set_array(r, RP_ARRAY_NAME, t->ev.name, sizeof *t->ev.name);
    set_array(r, RP_ARRAY_KIND, t->ev.kind, sizeof *t->ev.kind);
    set_array(r, RP_ARRAY_TRACK_OF, t->ev.track, sizeof *t->ev.track);
    set_array(r, RP_ARRAY_PARENT, t->ev.parent, sizeof *t->ev.parent);
    set_array(r, RP_ARRAY_LINK, t->ev.link, sizeof *t->ev.link);
    r->nrows[RP_TABLE_RANKS] = 1;
    return rp_trace_host(t, r->path, &r->arena, &r->row.host, err);
}

static const char *native_id(struct rp_table_rank *r, int64_t id, rp_str text)
{
    return text || id == RP_ID_EMPTY ? rp_trace_str(r->trace, text)
                                     : rp_arena_textf(&r->arena, "%lld", (long long)id);
}

static enum rp_code fill_events(struct rp_table_rank *r, struct rp_err *err)
{
    const struct rp_trace *t = r->trace;
    struct rp_track_row *tracks = RP_ARENA_NEW(&r->arena, struct rp_track_row, t->ntracks + 1);
    uint32_t *numbers = rp_arena_alloc(&r->arena, ((size_t)t->ev.n + 1) * sizeof *numbers, 64);
    rp_str *categories = rp_arena_alloc(&r->arena, ((size_t)t->ev.n + 1) * sizeof *categories, 64);

    RP_TRY(rp_arena_check(&r->arena, "making a table of events", err));
    for (uint32_t i = 0; i < t->ntracks; i++) {
        const struct rp_track_info *track = &t->tracks[i];
        const struct rp_process *process = &t->processes[track->process];

        tracks[i] = (struct rp_track_row){
            .process = native_id(r, process->native_id, process->text),
            .thread = track->has_id ? native_id(r, track->native_id, track->text) : NULL,
            .kind = track->kind};
    }
    for (rp_event e = 0; e < t->ev.n; e++) {
        numbers[e] = e;
        categories[e] = t->origins[t->ev.origin[e]].category;
    }
    set_array(r, RP_ARRAY_TRACK, tracks, sizeof *tracks);
    set_array(r, RP_ARRAY_NUMBER, numbers, sizeof *numbers);
    set_array(r, RP_ARRAY_CATEGORY, categories, sizeof *categories);
    r->nrows[RP_TABLE_EVENTS] = t->ev.n;
    return rp_arena_check(&r->arena, "making a table of events", err);
}

/* ------------------------------------------------------------------ steps */

/* Returns the number of the step that contains a time, by the rule of rp_scope_of_step;
   RP_ABSENT_I64 if none does. */
static int64_t step_at(const struct rp_trace *t, int64_t ts_ns, const struct rp_step **out)
{
    uint32_t low = 0, high = t->nsteps;
    const struct rp_step *s;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (t->steps[mid].begin_ns <= ts_ns)
            low = mid + 1;
        else
            high = mid;
    }
    *out = s = low ? &t->steps[low - 1] : NULL;
    if (!s)
        return RP_ABSENT_I64;
    if (low < t->nsteps && !(s->flags & RP_STEP_BREAK_AFTER))
        return s->number; /* up to the next one */
    return ts_ns < s->end_ns ? s->number : RP_ABSENT_I64;
}

/* Returns the step of device work: that of its launch, or of its own start if steps are marked on
   the device. */
static int64_t step_of_work(const struct rp_trace *t, int64_t begin_ns, rp_event launch)
{
    const struct rp_step *s;
    int64_t number = step_at(t, launch != RP_NONE ? t->ev.ts_ns[launch] : begin_ns, &s);

    return s && s->flags & RP_STEP_ON_DEVICE ? step_at(t, begin_ns, &s) : number;
}

static void fill_step(struct rp_step_row *row, const struct rp_trace *t, uint32_t i,
                      struct rp_interval time, const struct rp_work_unions *u)
{
    const struct rp_step *s = &t->steps[i];
    struct rp_breakdown b = rp_work_breakdown_of(u, time.begin_ns, time.end_ns);

    *row = (struct rp_step_row){.number = s->number,
                                .begin_ns = time.begin_ns,
                                .end_ns = time.end_ns,
                                .dur_ns = rp_ns_between(time.begin_ns, time.end_ns),
                                .mark_ns = s->begin_ns,
                                .mark_end_ns = s->end_ns,
                                .name = rp_trace_str(t, s->name),
                                .source = rp_word_step_source(s->source),
                                .phase = rp_word_step_phase(s->phase),
                                .requests = s->requests,
                                .tokens = s->tokens,
                                .busy_ns = b.busy_ns,
                                .compute_ns = b.compute_ns,
                                .comm_ns = b.comm_ns,
                                .exposed_comm_ns = b.exposed_comm_ns,
                                .memory_ns = b.memory_ns,
                                .idle_ns = b.idle_ns,
                                .warm_up = (s->flags & RP_STEP_WARM_UP) != 0};
}

/* Joins the times of the main device, as the report does. */
static enum rp_code unite_main_device(const struct rp_table_rank *r, struct rp_work_unions *out,
                                      struct rp_err *err)
{
    RP_SCOPED(rp_work_release) struct rp_work one = {0};

    *out = (struct rp_work_unions){0};
    if (!r->work.items.n)
        return RP_OK;
    RP_TRY(rp_work_of_device(&r->work, rp_work_main_device(&r->work), &one, err));
    return rp_work_unite(&one, out, err);
}

static enum rp_code fill_steps(struct rp_table_rank *r, struct rp_err *err)
{
    const struct rp_trace *t = r->trace;
    struct rp_step_row *rows = RP_ARENA_NEW(&r->arena, struct rp_step_row, t->nsteps + 1);
    struct rp_interval *times;
    struct rp_work_unions u;

    RP_TRY(rp_err_need(rows, err, "making a table of steps"));
    RP_TRY(rp_step_times(t, &r->arena, &times, err));
    enum rp_code code = unite_main_device(r, &u, err);
    for (uint32_t i = 0; code == RP_OK && i < t->nsteps; i++)
        fill_step(&rows[i], t, i, times[i], &u);
    rp_work_unions_release(&u);
    set_array(r, RP_ARRAY_STEP, rows, sizeof *rows);
    r->nrows[RP_TABLE_STEPS] = t->nsteps;
    return code;
}

/* ------------------------------------------------------------------ device work */

/* Fills the work with its owners and its steps. */
static enum rp_code fill_device_work(struct rp_table_rank *r, struct rp_err *err)
{
    const struct rp_trace *t = r->trace;

    RP_TRY(rp_work_init(&r->work, t, NULL, err));
    RP_TRY(rp_attribution_init(&r->owners, &r->work, err));
    struct rp_item_more *more = RP_ARENA_NEW(&r->arena, struct rp_item_more, r->work.items.n + 1);
    RP_TRY(rp_err_need(more, err, "making a table of kernels"));
    for (size_t i = 0; i < r->work.items.n; i++) {
        const struct rp_work_item *item = &r->work.items.at[i];
        const struct rp_work_owner *owner = &r->owners.owners.at[i];

        more[i] = (struct rp_item_more){
            .step = step_of_work(t, item->begin_ns, item->launch),
            .device = r->work.devices.at[item->device].number,
            .op = owner->op != RP_NONE ? t->ev.name[owner->op] : owner->hlo_op,
            .module = owner->module != RP_NONE ? t->ev.name[owner->module] : owner->hlo_module,
            .in_graph = (item->flags & RP_WORK_IN_GRAPH) != 0};
    }

    /* Finds how long the stream of each item was idle before it; items are in the order of their
       starts. It is negative if they overlap. */
    int64_t *ends = RP_ARENA_NEW(&r->arena, int64_t, r->work.streams.n + 1);
    RP_TRY(rp_err_need(ends, err, "making a table of kernels"));
    for (size_t i = 0; i < r->work.streams.n; i++)
        ends[i] = RP_ABSENT_I64;
    for (size_t i = 0; i < r->work.items.n; i++) {
        const struct rp_work_item *item = &r->work.items.at[i];
        int64_t *end = &ends[item->stream];
        if (*end == RP_ABSENT_I64 || __builtin_sub_overflow(item->begin_ns, *end, &more[i].gap_ns))
            more[i].gap_ns = RP_ABSENT_I64;
        *end = item->end_ns;
    }
    set_array(r, RP_ARRAY_ITEM, r->work.items.at, sizeof *r->work.items.at);
    set_array(r, RP_ARRAY_OWNER, r->owners.owners.at, sizeof *r->owners.owners.at);
    set_array(r, RP_ARRAY_ITEM_MORE, more, sizeof *more);
    r->nrows[RP_TABLE_DEVICE_WORK] = r->work.items.n;
    struct rp_stream_row *rows =
        RP_ARENA_NEW(&r->arena, struct rp_stream_row, r->work.streams.n + 1);
    char label[128];
    for (uint32_t i = 0; rows && i < r->work.streams.n; i++) {
        rp_work_stream_label(&r->work, i, label, sizeof label);
        rows[i].label = rp_arena_text(&r->arena, label);
    }
    set_array(r, RP_ARRAY_STREAM, rows, sizeof *rows);
    return rp_arena_check(&r->arena, "making a table of kernels", err);
}

/* Copies of the rows of device work that are kernels. */
static enum rp_code fill_kernels(struct rp_table_rank *r, struct rp_err *err)
{
    const struct rp_item_more *all_more = r->arrays[RP_ARRAY_ITEM_MORE].at;
    size_t n = 0, most = r->work.items.n + 1;
    struct rp_work_item *items = RP_ARENA_NEW(&r->arena, struct rp_work_item, most);
    struct rp_work_owner *owners = RP_ARENA_NEW(&r->arena, struct rp_work_owner, most);
    struct rp_item_more *more = RP_ARENA_NEW(&r->arena, struct rp_item_more, most);

    RP_TRY(rp_arena_check(&r->arena, "making a table of kernels", err));
    for (size_t i = 0; i < r->work.items.n; i++)
        if (r->trace->ev.kind[r->work.items.at[i].event] == RP_KIND_KERNEL) {
            items[n] = r->work.items.at[i];
            owners[n] = r->owners.owners.at[i];
            more[n++] = all_more[i];
        }
    set_array(r, RP_ARRAY_KERNEL, items, sizeof *items);
    set_array(r, RP_ARRAY_KERNEL_OWNER, owners, sizeof *owners);
    set_array(r, RP_ARRAY_KERNEL_MORE, more, sizeof *more);
    r->nrows[RP_TABLE_KERNELS] = n;
    return RP_OK;
}

static enum rp_code fill_launches(struct rp_table_rank *r, struct rp_err *err)
{
    const struct rp_step *s;

    RP_TRY(rp_queues_init(&r->queues, &r->work, err));
    struct rp_launch_more *more =
        RP_ARENA_NEW(&r->arena, struct rp_launch_more, r->queues.list.n + 1);
    RP_TRY(rp_err_need(more, err, "making a table of launches"));
    for (size_t i = 0; i < r->queues.list.n; i++) {
        const struct rp_launch *launch = &r->queues.list.at[i];
        const struct rp_work_item *item = &r->work.items.at[launch->item];
        const struct rp_work_owner *owner = &r->owners.owners.at[launch->item];

        more[i] = (struct rp_launch_more){
            .step = step_at(r->trace, r->trace->ev.ts_ns[launch->call], &s),
            .first = item->event,
            .stream = item->stream,
            .op = owner->op != RP_NONE ? r->trace->ev.name[owner->op] : owner->hlo_op};
    }
    set_array(r, RP_ARRAY_LAUNCH, r->queues.list.at, sizeof *r->queues.list.at);
    set_array(r, RP_ARRAY_LAUNCH_MORE, more, sizeof *more);
    r->nrows[RP_TABLE_LAUNCHES] = r->queues.list.n;
    return RP_OK;
}

/* ------------------------------------------------------------------ operators */

struct operator_rows {
    const struct rp_trace *t;
    struct rp_operator_row *rows;
    uint32_t *row_of; /* by event: its row, or RP_NONE */
    struct rp_arg_key dims, types;
};

static void operator_rows_release(struct operator_rows *o)
{
    rp_arg_key_release(&o->dims);
    rp_arg_key_release(&o->types);
    free(o->row_of);
}

static enum rp_code fill_operators(struct rp_table_rank *r, struct rp_err *err)
{
    RP_SCOPED(operator_rows_release) struct operator_rows o = {.t = r->trace};

    const struct rp_trace *t = r->trace;
    uint32_t n = 0;
    o.row_of = malloc(((size_t)t->ev.n + 1) * sizeof *o.row_of);
    for (rp_event e = 0; o.row_of && e < t->ev.n; e++)
        o.row_of[e] = t->ev.kind[e] == RP_KIND_CPU_OP ? n++ : RP_NONE;
    o.rows = RP_ARENA_NEW(&r->arena, struct rp_operator_row, (size_t)n + 1);
    RP_TRY(rp_err_need(o.row_of && o.rows, err, "making a table of operators"));
    RP_TRY(rp_arg_key_init_dims(&o.dims, t, err));
    RP_TRY(rp_arg_key_init(&o.types, t, "Input type", err));
    for (rp_event e = 0; e < t->ev.n; e++)
        if (o.row_of[e] != RP_NONE) {
            /* The row of an operator: its time without that of those inside it. */
            const struct rp_events *ev = &o.t->ev;
            struct rp_operator_row *row = &o.rows[o.row_of[e]];
            rp_event around = ev->parent[e] == RP_NONE
                                  ? RP_NONE
                                  : rp_event_around(o.t, ev->parent[e], RP_KIND_CPU_OP);
            const struct rp_step *s;
            int64_t dur_ns = ev->dur_ns[e] > 0 ? ev->dur_ns[e] : 0;
            row->event = e;
            row->parent = around;
            row->step = step_at(o.t, ev->ts_ns[e], &s);
            row->self_ns += dur_ns;
            if (around != RP_NONE)
                o.rows[o.row_of[around]].self_ns -= dur_ns;
            if (!rp_arg_key_text(&o.dims, e, &row->shapes))
                row->shapes = 0;
            if (!rp_arg_key_text(&o.types, e, &row->types))
                row->types = 0;
        }
    for (size_t i = 0; i < r->work.items.n; i++) {
        const struct rp_work_item *item = &r->work.items.at[i];
        rp_event op = r->owners.owners.at[i].op;

        if (op == RP_NONE || o.row_of[op] == RP_NONE)
            continue;
        rp_ns_add(&o.rows[o.row_of[op]].device_ns, rp_ns_between(item->begin_ns, item->end_ns));
        o.rows[o.row_of[op]].kernels++;
    }
    set_array(r, RP_ARRAY_OPERATOR, o.rows, sizeof *o.rows);
    r->nrows[RP_TABLE_OPERATORS] = n;
    return RP_OK;
}

/* ------------------------------------------------------------------ collectives */

static enum rp_code list_collectives(struct rp_table_rank *r, struct rp_err *err)
{
    struct rp_scope all = {0};

    RP_TRY(rp_collectives_init(&r->collectives, &r->work, &all, &r->arena, err));
    struct rp_collective_more *more =
        RP_ARENA_NEW(&r->arena, struct rp_collective_more, r->collectives.list.n + 1);
    RP_TRY(rp_err_need(more, err, "making a table of collectives"));
    for (size_t i = 0; i < r->collectives.list.n; i++) {
        const struct rp_collective *c = &r->collectives.list.at[i];

        more[i] =
            (struct rp_collective_more){.dur_ns = rp_ns_between(c->begin_ns, c->end_ns),
                                        .step = step_of_work(r->trace, c->begin_ns, c->launch),
                                        .meeting = RP_ABSENT_I64,
                                        .wait_ns = RP_ABSENT_I64,
                                        .transfer_ns = RP_ABSENT_I64,
                                        .last_rank = RP_ABSENT_I64};
    }
    set_array(r, RP_ARRAY_COLLECTIVE, r->collectives.list.at, sizeof *r->collectives.list.at);
    set_array(r, RP_ARRAY_COLLECTIVE_MORE, more, sizeof *more);
    r->nrows[RP_TABLE_COLLECTIVES] = r->collectives.list.n;
    return RP_OK;
}

static void note_meeting(struct rp_table_set *set, const struct rp_rendezvous_list *list,
                         const struct rp_collectives *const *ranks, size_t number)
{
    const struct rp_rendezvous *m = &list->at[number];

    for (uint32_t i = 0; i < m->n; i++) {
        /* The rows belong to the rank, because they were made above. */
        struct rp_collective_more *rows =
            (struct rp_collective_more *)(uintptr_t)set->ranks[m->rank[i]]
                .arrays[RP_ARRAY_COLLECTIVE_MORE]
                .at;
        struct rp_collective_more *row = &rows[m->at[i]];
        int64_t wait = rp_rendezvous_wait(list, ranks, m, i);

        if (row->meeting != RP_ABSENT_I64 && wait <= row->wait_ns)
            continue; /* of several partners, it waits for the last */
        row->meeting = (int64_t)number;
        row->wait_ns = wait;
        row->transfer_ns = rp_ns_between(row->wait_ns, row->dur_ns);
        row->last_rank = set->ranks[m->rank[m->last]].number;
    }
}

static enum rp_code match_collectives(struct rp_table_set *set, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    const struct rp_collectives **ranks =
        RP_ARENA_NEW(&arena, const struct rp_collectives *, set->n + 1);
    struct rp_rendezvous_list list = {0};

    RP_TRY(rp_err_need(ranks, err, "matching collectives"));
    for (size_t i = 0; i < set->n; i++)
        ranks[i] = &set->ranks[i].collectives;
    RP_TRY(rp_rendezvous_find(ranks, set->n, &arena, &list, err));
    for (size_t i = 0; i < list.n; i++)
        note_meeting(set, &list, ranks, i);
    return RP_OK;
}

/* ------------------------------------------------------------------ the set */

void rp_table_set_init(struct rp_table_set *set, struct rp_table_rank *ranks, size_t n)
{
    *set = (struct rp_table_set){.n = n, .ranks = ranks};
}

void rp_table_set_release(struct rp_table_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        struct rp_table_rank *r = &set->ranks[i];

        rp_queues_release(&r->queues);
        rp_collectives_release(&r->collectives);
        rp_attribution_release(&r->owners);
        rp_work_release(&r->work);
        rp_arena_release(&r->arena);
    }
    rp_arena_release(&set->run.arena);
    free(set->ranks);
    *set = (struct rp_table_set){0};
}

typedef enum rp_code fill_fn(struct rp_table_rank *r, struct rp_err *err);

static enum rp_code fill_all(struct rp_table_set *set, enum rp_table_id id, fill_fn *fill,
                             struct rp_err *err)
{
    if (set->ready[id])
        return RP_OK;
    for (size_t i = 0; i < set->n; i++)
        RP_TRY(fill(&set->ranks[i], err));
    if (id == RP_TABLE_COLLECTIVES)
        RP_TRY(match_collectives(set, err));
    set->ready[id] = true;
    return RP_OK;
}

enum rp_code rp_table_prepare(struct rp_table_set *set, const struct rp_table *table,
                              struct rp_err *err)
{
    static fill_fn *const fill[RP_TABLE_COUNT] = {[RP_TABLE_RANKS] = fill_rank,
                                                  [RP_TABLE_EVENTS] = fill_events,
                                                  [RP_TABLE_DEVICE_WORK] = fill_device_work,
                                                  [RP_TABLE_KERNELS] = fill_kernels,
                                                  [RP_TABLE_LAUNCHES] = fill_launches,
                                                  [RP_TABLE_OPERATORS] = fill_operators,
                                                  [RP_TABLE_STEPS] = fill_steps,
                                                  [RP_TABLE_COLLECTIVES] = list_collectives};
    enum rp_table_id id = rp_table_id(table);

    if (!fill[id])
        return RP_OK;
    RP_TRY(fill_all(set, RP_TABLE_RANKS, fill_rank, err)); /* all other tables use its columns */
    for (size_t i = 0; id > RP_TABLE_EVENTS && i < set->n; i++)
        RP_TRY(rp_trace_require(set->ranks[i].trace, RP_NEED_ARGS | RP_NEED_LINKS, err));
    if (id > RP_TABLE_EVENTS)
        RP_TRY(fill_all(set, RP_TABLE_DEVICE_WORK, fill_device_work, err));
    return fill_all(set, id, fill[id], err);
}

size_t rp_table_parts(const struct rp_table_set *set, const struct rp_table *table)
{
    return rp_table_id(table) == RP_TABLE_FINDINGS ? 1 : set->n;
}

const struct rp_table_rank *rp_table_part(const struct rp_table_set *set,
                                          const struct rp_table *table, size_t i)
{
    return rp_table_id(table) == RP_TABLE_FINDINGS ? &set->run : &set->ranks[i];
}
