/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings, origins, tracks and shapes of the appended trace are translated once, through tables by
 * their id; then every event is appended as a row. A pair of begin and end on a thread becomes one
 * complete event (the position of its end in the file is not known), a pair of an async chain a
 * begin and an end again. Everything that the passes of finish compute is left to them; they run
 * once, over everything. Events are appended in the order of the file they were read from.
 *
 * The same tables undo a join: processes of other ranks have no track, and are left out. And they
 * copy a part of a trace, with other texts if need be (trace/copy.h).
 */
#include "trace/build/build.h"

#include "base/each.h"
#include "base/vec.h"
#include "trace/build/moved.h"
#include "trace/build/state.h"
#include "trace/merged.h"

#include <stdio.h>
#include <stdlib.h>

#define ID_STEP     RP_MERGED_ID_STEP
#define FIRST_ARROW (ID_STEP / 2) /* first id of arrows that are drawn when traces are joined */

#define KEPT_FLAGS (RP_EVENT_ROUNDED | RP_EVENT_NO_DUR | RP_EVENT_ASYNC | RP_EVENT_ID_TEXT)

static const char *const id_keys[] = {"correlation", "External id", "external id",
                                      "wait_on_cuda_event_record_corr_id"};
#define NID_KEYS (sizeof id_keys / sizeof *id_keys)

struct appending {
    struct rp_builder *b;
    const struct rp_trace *t;
    const struct rp_append *how;
    rp_str *str;          /* by string of t; RP_NONE: not translated yet */
    uint16_t *origin;     /* by origin of t */
    uint16_t *pair, *end; /* the same for a pair that becomes one event, and for an end */
    rp_track *track;
    bool *is_id; /* by string of t: a key whose value is an id */
    rp_str process_name, process_sort, key_name;
    RP_VEC(struct rp_arg) args;
    struct rp_moved moved;  /* where the clock is another one */
    RP_VEC(rp_event) order; /* the events to append, in the order of their file */
    struct rp_err *err;
};

static enum rp_code text_of(struct appending *a, enum rp_text_use use, rp_str key, rp_str s,
                            rp_str *out)
{
    if (a->how->text)
        return a->how->text(a->how->text_user, a->b, use, key, s, out, a->err);
    if (a->str[s] == RP_NONE)
        RP_TRY(rp_builder_intern(a->b, rp_trace_str(a->t, s), rp_trace_str_len(a->t, s), &a->str[s],
                                 a->err));
    *out = a->str[s];
    return RP_OK;
}

/* Removes the label that a join added. */
static enum rp_code unlabelled(struct appending *a, rp_str s, rp_str *out)
{
    const char *text = rp_trace_str(a->t, s);
    size_t n = rp_trace_str_len(a->t, s), len = strlen(a->how->label);

    if (n == len && !memcmp(text, a->how->label, n))
        n = 0;
    else if (n > len + 3 && !memcmp(text + n - len - 3, " (", 2) && text[n - 1] == ')' &&
             !memcmp(text + n - len - 1, a->how->label, len))
        n -= len + 3;
    return rp_builder_intern(a->b, text, n, out, a->err);
}

/* Writes "python (rank 3)", or the label alone. */
static enum rp_code labelled(struct appending *a, rp_str s, rp_str *out)
{
    char text[600];
    const char *name = rp_trace_str(a->t, s);

    if (!a->how->label)
        return text_of(a, RP_TEXT_ID, RP_NONE, s, out);
    if (a->how->only)
        return unlabelled(a, s, out);
    int n = *name ? snprintf(text, sizeof text, "%.500s (%s)", name, a->how->label)
                  : snprintf(text, sizeof text, "%s", a->how->label);

    return rp_builder_intern(a->b, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1, out,
                             a->err);
}

static int64_t id_of(const struct appending *a, int64_t id)
{
    int64_t moved = (int64_t)a->how->index * ID_STEP;

    if (a->how->only)
        return id >= moved && id - moved < ID_STEP ? id - moved : id;
    return id >= 0 && id < ID_STEP ? id + moved : id;
}

/* The text of an id, made different from those of other traces. */
static enum rp_code text_id_of(struct appending *a, int64_t id, int64_t *out)
{
    rp_str s;

    RP_TRY(labelled(a, (rp_str)id, &s));
    *out = s;
    return RP_OK;
}

/* Damaged files may have any times, so if the sum overflows, the time stays. */
static int64_t sum_of(int64_t ns, int64_t add_ns)
{
    int64_t sum;

    return __builtin_add_overflow(ns, add_ns, &sum) || sum == RP_NO_TS ? ns : sum;
}

static int64_t time_of(const struct appending *a, rp_track track, int64_t ns)
{
    if (ns == RP_NO_TS || !a->how->time)
        return ns;
    return a->how->time(a->how->user, a->t->tracks[track].process, ns);
}

/* ------------------------------------------------------------------ tables */

static void find_words(struct appending *a)
{
    a->process_name = a->process_sort = a->key_name = RP_NONE;
    for (uint32_t i = 0; i < a->t->str.n; i++) {
        const char *s = rp_trace_str(a->t, i);

        for (uint32_t k = 0; k < NID_KEYS; k++)
            a->is_id[i] = a->is_id[i] || !strcmp(s, id_keys[k]);
        if (!strcmp(s, "process_name"))
            a->process_name = i;
        else if (!strcmp(s, "process_sort_index"))
            a->process_sort = i;
        else if (!strcmp(s, "name"))
            a->key_name = i;
    }
}

/* Adds the process of a track in the joined trace, or in that of the only rank; RP_NONE if it
   belongs to another rank. */
static enum rp_code add_process(struct appending *a, uint32_t process, uint32_t *out)
{
    const struct rp_merged_rank *only = a->how->only;
    const struct rp_process *p = &a->t->processes[process];
    rp_str text = 0;

    if (a->how->same_processes) {
        RP_TRY(text_of(a, RP_TEXT_ID, RP_NONE, p->text, &text));
        return rp_builder_process(a->b, p->native_id, text, out, a->err);
    }
    if (!only)
        return rp_builder_process(a->b,
                                  (int64_t)(a->how->window_of ? a->how->window_of : a->how->index) *
                                          a->how->pid_step +
                                      process,
                                  0, out, a->err);
    *out = RP_NONE;
    if (p->text || p->native_id < only->first_pid ||
        p->native_id - only->first_pid >= (int64_t)only->nprocesses)
        return RP_OK;
    const struct rp_merged_process *had = &only->processes[p->native_id - only->first_pid];
    if (had->text)
        RP_TRY(rp_builder_intern(a->b, had->text, strlen(had->text), &text, a->err));
    return rp_builder_process(a->b, had->text && !text ? RP_ID_EMPTY : had->id, text, out, a->err);
}

static enum rp_code add_tracks(struct appending *a)
{
    uint32_t i, process;
    rp_str text;

    for (i = 0; i < a->t->ntracks; i++) {
        const struct rp_track_info *k = &a->t->tracks[i];

        a->track[i] = RP_NONE;
        RP_TRY(add_process(a, k->process, &process));
        if (process == RP_NONE)
            continue;
        RP_TRY(text_of(a, RP_TEXT_ID, RP_NONE, k->text, &text));
        RP_TRY(
            rp_builder_track(a->b, process, k->native_id, text, k->has_id, &a->track[i], a->err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ rows */

static enum rp_code translate_str(struct appending *a, struct rp_arg *arg)
{
    if (arg->type == RP_ARG_I64 && a->is_id[arg->key])
        arg->v.i = id_of(a, arg->v.i);
    else if (arg->type == RP_ARG_STR || arg->type == RP_ARG_RAW)
        RP_TRY(text_of(a, arg->type == RP_ARG_RAW ? RP_TEXT_JSON : RP_TEXT_VALUE, arg->key,
                       arg->v.s, &arg->v.s));
    return text_of(a, RP_TEXT_KEY, RP_NONE, arg->key, &arg->key);
}

/* The arguments of a row, and their shape in the builder. */
static enum rp_code take_args(struct appending *a, uint16_t shape, uint32_t row, uint16_t *out)
{
    uint32_t i, n = rp_args_count(&a->t->args, shape, row);

    a->args.n = 0;
    *out = 0;
    for (i = 0; shape && i < n; i++) {
        struct rp_arg arg = rp_args_at(&a->t->args, shape, row, i);

        RP_TRY(translate_str(a, &arg));
        RP_TRY(rp_vec_push(&a->args, arg, a->err));
    }
    return a->args.n ? rp_builder_shape(a->b, a->args.at, (uint32_t)a->args.n, out, a->err) : RP_OK;
}

/* Adds the label to the names of processes, and sorts viewers by rank; or the reverse. */
static enum rp_code mark_process(struct appending *a, rp_event e)
{
    const struct rp_trace *t = a->t;

    for (uint32_t i = 0; i < a->args.n; i++) {
        struct rp_arg old = rp_args_at(&t->args, t->ev.shape[e], t->ev.arg_row[e], i);

        if (t->ev.name[e] == a->process_name && old.key == a->key_name && old.type == RP_ARG_STR)
            RP_TRY(labelled(a, old.v.s, &a->args.at[i].v.s));
        if (t->ev.name[e] == a->process_sort && old.type == RP_ARG_I64)
            a->args.at[i].v.i = id_of(a, old.v.i);
    }
    return RP_OK;
}

/* Ids that passes derived from arrows are derived again, so they are not copied. */
static enum rp_code take_link(struct appending *a, rp_event e, struct rp_raw *raw)
{
    const struct rp_trace *t = a->t;
    rp_link link = t->ev.link[e];

    if (link == RP_NONE || t->links.source[link] == RP_LINK_FLOW ||
        t->links.source[link] == RP_LINK_EXTERNAL)
        return RP_OK;
    raw->has_link = true;
    if (raw->flags & RP_EVENT_ID_TEXT)
        return text_id_of(a, t->links.native_id[link], &raw->link);
    raw->link = id_of(a, t->links.native_id[link]);
    return RP_OK;
}

static enum rp_code add_end(struct appending *a, rp_event e, struct rp_raw raw)
{
    raw.ts_ns += a->how->time ? a->moved.dur_ns[e] : a->t->ev.dur_ns[e];
    raw.dur_ns = RP_OPEN_NS;
    raw.origin = a->end[a->t->ev.origin[e]];
    raw.shape = 0;
    raw.nargs = 0;
    return rp_builder_add(a->b, &raw, a->err);
}

/* Whether the name was given to a process that had none, after its rank. */
static bool is_given_name(const struct appending *a, rp_event e)
{
    struct rp_arg arg;

    return a->how->only && a->t->origins[a->t->ev.origin[e]].phase == 'M' &&
           a->t->ev.name[e] == a->process_name &&
           rp_args_find(&a->t->args, a->t->ev.shape[e], a->t->ev.arg_row[e], a->key_name, &arg) &&
           arg.type == RP_ARG_STR && !strcmp(rp_trace_str(a->t, arg.v.s), a->how->label);
}

static enum rp_code add_event(struct appending *a, rp_event e)
{
    const struct rp_trace *t = a->t;
    uint16_t origin = t->ev.origin[e];
    bool pair = t->ev.flags[e] & RP_EVENT_PAIR;
    bool chain = pair && t->origins[origin].phase != 'B';
    bool timed = t->origins[origin].phase != 'M'; /* times of metadata have no meaning */
    bool moved = timed && a->how->time;
    struct rp_raw raw = {.ts_ns = moved ? a->moved.begin_ns[e] : t->ev.ts_ns[e],
                         .dur_ns = moved ? a->moved.dur_ns[e] : t->ev.dur_ns[e],
                         .track = a->track[t->ev.track[e]],
                         .origin = pair ? a->pair[origin] : a->origin[origin],
                         .flags = t->ev.flags[e] & KEPT_FLAGS};

    if (is_given_name(a, e))
        return RP_OK;
    if (a->how->add_ns && raw.ts_ns != RP_NO_TS)
        raw.ts_ns = sum_of(raw.ts_ns, a->how->add_ns[e]);
    if (a->how->longer_ns && raw.dur_ns >= 0)
        raw.dur_ns = sum_of(raw.dur_ns, a->how->longer_ns[e]);
    raw.dur_ns = chain ? RP_OPEN_NS : raw.dur_ns;
    RP_TRY(text_of(a, RP_TEXT_NAME, RP_NONE, t->ev.name[e], &raw.name));
    RP_TRY(take_link(a, e, &raw));
    RP_TRY(take_args(a, t->ev.shape[e], t->ev.arg_row[e], &raw.shape));
    if (t->origins[origin].phase == 'M' && a->how->label)
        RP_TRY(mark_process(a, e));
    raw.args = a->args.at;
    raw.nargs = (uint32_t)a->args.n;
    RP_TRY(rp_builder_add(a->b, &raw, a->err));
    return chain ? add_end(a, e, raw) : RP_OK;
}

static enum rp_code add_flow(struct appending *a, uint32_t i)
{
    const struct rp_flows *f = &a->t->flows;
    struct rp_raw_flow raw = {.ts_ns = time_of(a, f->track[i], f->ts_ns[i]),
                              .id = id_of(a, f->id[i]),
                              .track = a->track[f->track[i]],
                              .origin = a->origin[f->origin[i]],
                              .flags = f->flags[i]};

    if (raw.track == RP_NONE || (a->how->flows && !a->how->flows[i]))
        return RP_OK;
    if (a->how->add_ns && f->event[i] != RP_NONE)
        raw.ts_ns = sum_of(raw.ts_ns, a->how->add_ns[f->event[i]]);
    if (f->flags[i] & RP_FLOW_ID_TEXT)
        RP_TRY(text_id_of(a, f->id[i], &raw.id));
    else if (a->how->only && raw.id >= FIRST_ARROW && raw.id < ID_STEP)
        return RP_OK; /* it was drawn when the traces were joined */
    RP_TRY(text_of(a, RP_TEXT_NAME, RP_NONE, f->name[i], &raw.name));
    RP_TRY(take_args(a, f->shape[i], f->arg_row[i], &raw.shape));
    raw.args = a->args.at;
    raw.nargs = (uint32_t)a->args.n;
    return rp_builder_add_flow(a->b, &raw, a->err);
}

/* The two ends of an arrow; ids are above those of the trace. */
static enum rp_code add_arrow(struct appending *a, size_t i)
{
    const struct rp_append_arrow *arrow = &a->how->arrows[i];
    struct rp_origin origin = {.phase = 's', .kind = RP_KIND_OTHER, .has_category = 1};
    struct rp_raw_flow raw = {.id = id_of(a, FIRST_ARROW + (int64_t)i),
                              .ts_ns = time_of(a, arrow->from, arrow->from_ns),
                              .track = a->track[arrow->from]};

    RP_TRY(rp_builder_intern(a->b, "transfer", 8, &origin.category, a->err));
    RP_TRY(rp_builder_intern(a->b, arrow->name, strlen(arrow->name), &raw.name, a->err));
    RP_TRY(rp_builder_origin(a->b, &origin, &raw.origin, a->err));
    RP_TRY(rp_builder_add_flow(a->b, &raw, a->err));
    origin.phase = 'f';
    RP_TRY(rp_builder_origin(a->b, &origin, &raw.origin, a->err));
    raw.flags = RP_FLOW_BIND_ENCLOSING;
    raw.ts_ns = time_of(a, arrow->to, arrow->to_ns);
    raw.track = a->track[arrow->to];
    return rp_builder_add_flow(a->b, &raw, a->err);
}

/* ------------------------------------------------------------------ samples */

/* Adds the frames and stacks of t to the builder; `stack` has room for all of t's. */
static enum rp_code add_stacks(struct appending *a, uint32_t *frame, uint32_t *stack)
{
    const struct rp_call_samples *s = &a->t->samples;

    for (uint32_t i = 0; i < s->nframes; i++) {
        struct rp_call_frame f = s->frame[i];

        RP_TRY(text_of(a, RP_TEXT_NAME, RP_NONE, f.name, &f.name));
        RP_TRY(text_of(a, RP_TEXT_VALUE, RP_NONE, f.file, &f.file));
        RP_TRY(rp_builder_frame(a->b, &f, &frame[i], a->err));
    }
    for (uint32_t i = 0; i < s->nstacks; i++) {
        uint32_t parent = s->stacks[i].parent;

        RP_TRY(rp_builder_stack(a->b, parent == RP_NONE ? RP_NONE : stack[parent],
                                frame[s->stacks[i].frame], &stack[i], a->err));
    }
    return RP_OK;
}

static enum rp_code add_sample(struct appending *a, const uint32_t *stack, uint32_t i)
{
    const struct rp_call_samples *s = &a->t->samples;
    struct rp_raw_sample raw = {.ts_ns = time_of(a, s->track[i], s->ts_ns[i]),
                                .weight = s->weight[i],
                                .track = a->track[s->track[i]],
                                .stack = s->stack[i] == RP_NONE ? RP_NONE : stack[s->stack[i]],
                                .flags = s->flags[i]};

    if (raw.track == RP_NONE || (a->how->samples && !a->how->samples[i]))
        return RP_OK;
    return rp_builder_add_sample(a->b, &raw, a->err);
}

/* Weights of different units cannot be added up, so the first trace decides the unit. */
static enum rp_code add_samples(struct appending *a)
{
    const struct rp_call_samples *s = &a->t->samples;
    struct rp_call_samples *to = &rp_builder_borrow_trace(a->b)->samples;
    RP_FREED uint32_t *frame = NULL;

    if (!s->n)
        return RP_OK;
    if (a->b->samples.ts_ns.n && to->unit != s->unit)
        return rp_builder_warn(a->b, a->err,
                               "%u samples were left out: what they count differs from the samples "
                               "of the other traces",
                               s->n);
    to->unit = s->unit;
    RP_TRY(text_of(a, RP_TEXT_CATEGORY, RP_NONE, s->unit_name, &to->unit_name));
    frame = malloc(((size_t)s->nframes + s->nstacks + 1) * sizeof *frame);
    RP_TRY(rp_err_need(frame, a->err, "joining traces"));
    RP_TRY(add_stacks(a, frame, frame + s->nframes));
    for (uint32_t i = 0; i < s->n; i++)
        RP_TRY(add_sample(a, frame + s->nframes, i));
    return RP_OK;
}

/* Processes without a name are named after their trace. */
static enum rp_code name_process(struct appending *a, uint32_t process, rp_track track)
{
    rp_str name;

    if (a->t->processes[process].name || !a->how->label || a->how->only)
        return RP_OK;
    RP_TRY(labelled(a, 0, &name));
    return rp_builder_label(a->b, track, "process_name", "name", name, a->err);
}

static enum rp_code name_processes(struct appending *a)
{
    bool *named = calloc((size_t)a->t->nprocesses + 1, sizeof *named);
    enum rp_code code = rp_err_need(named, a->err, "joining traces");

    for (uint32_t i = 0; code == RP_OK && i < a->t->ntracks; i++) {
        uint32_t process = a->t->tracks[i].process;

        if (!named[process])
            code = name_process(a, process, a->track[i]);
        named[process] = true;
    }
    free(named);
    return code;
}

/* Adds the metadata of the joined trace: all except rank, name and clock base, which belong to one
   trace. */
static enum rp_code add_meta(struct appending *a)
{
    static const char *const of_the_one[] = {"distributedInfo", "traceName", "baseTimeNanoseconds",
                                             RP_MERGED_KEY};
    size_t k;
    const struct rp_trace *t = a->t;
    struct rp_trace *to = rp_builder_borrow_trace(a->b);
    rp_str key, value;

    for (uint32_t i = 0; i < t->nmeta; i++) {
        const char *name = rp_trace_str(t, t->meta[i].key);

        for (k = 0; k < sizeof of_the_one / sizeof *of_the_one; k++)
            if (!strcmp(name, of_the_one[k]))
                break;
        if (k < sizeof of_the_one / sizeof *of_the_one)
            continue;
        RP_TRY(text_of(a, RP_TEXT_KEY, RP_NONE, t->meta[i].key, &key));
        RP_TRY(text_of(a, RP_TEXT_JSON, t->meta[i].key, t->meta[i].value, &value));
        RP_TRY(rp_builder_add_meta(a->b, key, value, t->meta[i].after_events, a->err));
    }
    to->base_ns = t->base_ns;
    to->has_base = t->has_base;
    to->rank = RP_NO_RANK;
    RP_TRY(text_of(a, RP_TEXT_CATEGORY, RP_NONE, t->format, &to->format));
    RP_TRY(text_of(a, RP_TEXT_CATEGORY, RP_NONE, t->framework, &to->framework));
    return text_of(a, RP_TEXT_CATEGORY, RP_NONE, t->framework_version, &to->framework_version);
}

static int by_seq(const void *pa, const void *pb, void *user)
{
    const uint32_t *seq = user;
    rp_event a = *(const rp_event *)pa, b = *(const rp_event *)pb;

    return (seq[a] > seq[b]) - (seq[a] < seq[b]);
}

/* The events of the appended tracks, as their file had them: passes of finish use that order where
   times are equal. */
static enum rp_code find_order(struct appending *a)
{
    const struct rp_trace *t = a->t;

    for (rp_track k = 0; k < t->ntracks; k++)
        for (rp_event e = t->tracks[k].first; a->track[k] != RP_NONE && e < t->tracks[k].end; e++)
            if (!a->how->events || a->how->events[e])
                RP_TRY(rp_vec_push(&a->order, e, a->err));
    if (a->order.n)
        qsort_r(a->order.at, a->order.n, sizeof *a->order.at, by_seq, t->ev.seq);
    return RP_OK;
}

static enum rp_code add_all(struct appending *a)
{
    const struct rp_trace *t = a->t;

    a->str = malloc(((size_t)t->str.n + 1) * sizeof *a->str);
    a->is_id = calloc((size_t)t->str.n + 1, sizeof *a->is_id);
    a->origin = calloc((size_t)t->norigins + 1, 3 * sizeof *a->origin);
    a->track = calloc((size_t)t->ntracks + 1, sizeof *a->track);
    RP_TRY(rp_err_need(a->str && a->is_id && a->origin && a->track, a->err, "joining traces"));
    memset(a->str, 0xff, ((size_t)t->str.n + 1) * sizeof *a->str);
    a->pair = a->origin + t->norigins + 1;
    a->end = a->pair + t->norigins + 1;
    find_words(a);

    /* Each origin as it is, as that of an end, and as that of a begin and its end in one. */
    for (uint32_t i = 0; i < a->t->norigins; i++) {
        struct rp_origin o = a->t->origins[i];

        RP_TRY(text_of(a, RP_TEXT_CATEGORY, RP_NONE, o.category, &o.category));
        RP_TRY(rp_builder_origin(a->b, &o, &a->origin[i], a->err));
        o.phase = o.phase == 'b' ? 'e' : o.phase == 'S' ? 'F' : o.phase;
        RP_TRY(rp_builder_origin(a->b, &o, &a->end[i], a->err));
        o.phase = o.phase == 'B' ? 'X' : a->t->origins[i].phase;
        RP_TRY(rp_builder_origin(a->b, &o, &a->pair[i], a->err));
    }
    RP_TRY(add_tracks(a));
    RP_TRY(name_processes(a));
    RP_TRY(find_order(a));
    if (a->how->time)
        RP_TRY(rp_moved_init(&a->moved, a->t, a->how->time, a->how->user, a->err));
    for (uint32_t i = 0; i < a->order.n; i++)
        RP_TRY(add_event(a, a->order.at[i]));
    for (uint32_t i = 0; i < a->t->flows.n; i++)
        RP_TRY(add_flow(a, i));
    for (uint32_t i = 0; i < a->how->narrows; i++)
        RP_TRY(add_arrow(a, i));
    RP_TRY(add_samples(a));
    return a->how->meta ? add_meta(a) : RP_OK;
}

enum rp_code rp_builder_append(struct rp_builder *b, const struct rp_trace *t,
                               const struct rp_append *how, struct rp_err *err)
{
    struct appending a = {.b = b, .t = t, .how = how, .err = err};
    enum rp_code code = add_all(&a);

    RP_EACH(free, a.str, a.is_id, a.origin, a.track);
    RP_EACH(rp_vec_release, &a.args, &a.order);
    rp_moved_release(&a.moved);
    return code;
}
