/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the call tree of one rank from the stacks of its samples, or of its Python spans. The
 * weight of a stack is the time of its samples, or time of the device: that of the work that was
 * launched in the stack, or in which nothing ran while the launching thread was in it.
 */
#include "explain/idle/sampled.h"
#include "explain/top/stacks_add.h"
#include "facts/idle/gaps.h"
#include "facts/work/attribution.h"

#include "base/hash.h"
#include "base/order.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ one rank, of samples */

static enum rp_code copy_tree(struct rp_stacks_adder *to, struct rp_err *err)
{
    const struct rp_trace *t = to->t;
    const struct rp_call_samples *s = &t->samples;

    for (uint32_t i = 0; i < s->nframes; i++) {
        const struct rp_call_frame *f = &s->frame[i];
        struct rp_stacks_frame frame = {rp_arena_text(to->arena, rp_trace_str(t, f->name)),
                                        rp_arena_text(to->arena, rp_trace_str(t, f->file)), f->line,
                                        f->kind};

        RP_TRY(rp_vec_push(&to->out->frames, frame, err));
    }
    for (uint32_t i = 0; i < s->nstacks; i++)
        RP_TRY(rp_stacks_add_path(to, s->stacks[i].parent, s->stacks[i].frame, err));
    return RP_OK;
}

static enum rp_code take_samples(struct rp_stacks_adder *to, const struct rp_scope *scope,
                                 struct rp_err *err)
{
    const struct rp_call_samples *s = &to->t->samples;

    for (uint32_t i = 0; i < s->n; i++) {
        struct rp_stacks_weighed w = {s->stack[i], s->track[i], s->ts_ns[i], s->weight[i], 1};

        if ((scope->limited || scope->njudged) && s->ts_ns[i] == RP_NO_TS) {
            to->out->untimed++;
            continue;
        }
        if (!rp_scope_has(scope, s->ts_ns[i]))
            continue;
        if (s->flags[i] & RP_SAMPLE_WANTS_GIL)
            rp_ns_add(&to->out->wants_gil, s->weight[i]);
        if (to->how.width != RP_STACKS_WALL && s->flags[i] & RP_SAMPLE_WAITED) {
            rp_ns_add(&to->out->waited, s->weight[i]);
            continue;
        }
        RP_TRY(rp_stacks_add(to, &w, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ one rank, of Python spans */

struct span_tree {
    struct rp_stacks_adder *to;
    struct rp_map frame_of, path_of;
    uint32_t npaths;
    uint32_t *path; /* by event of a Python span */
    struct rp_err *err;
};

/* "train.py(12): step" has a file and a line; other names are kept whole. */
static struct rp_stacks_frame parse_span(const char *name, struct rp_arena *arena)
{
    struct rp_stacks_frame f = {.name = name, .file = "", .kind = RP_FRAME_PYTHON};
    const char *colon = strstr(name, "): "), *open = colon;

    while (open && open > name && *open != '(')
        open--;
    if (open && open > name && isdigit((unsigned char)open[1])) {
        f.line = (uint32_t)strtoul(open + 1, NULL, 10);
        f.file = rp_arena_textf(arena, "%.*s", (int)(open - name), name);
        f.name = rp_arena_text(arena, colon + 3);
    } else if (!strncmp(name, "<built-in", 9)) {
        f.kind = RP_FRAME_NATIVE;
    }
    return f;
}

static enum rp_code span_frame(struct span_tree *s, rp_str name, uint32_t *out)
{
    struct rp_stacks_adder *to = s->to;
    uint32_t fresh = (uint32_t)to->out->frames.n;

    RP_TRY(rp_map_intern(&s->frame_of, name, fresh, out, s->err));
    if (*out != fresh)
        return RP_OK;
    return rp_vec_push(&to->out->frames,
                       parse_span(rp_arena_text(to->arena, rp_trace_str(to->t, name)), to->arena),
                       s->err);
}

static enum rp_code add_span(struct span_tree *s, rp_event e)
{
    const struct rp_trace *t = s->to->t;
    rp_event up = t->ev.parent[e];
    uint32_t frame, parent, fresh = s->npaths;

    while (up != RP_NONE && t->ev.kind[up] != RP_KIND_PYTHON)
        up = t->ev.parent[up];
    parent = up == RP_NONE ? RP_NONE : s->path[up];
    RP_TRY(span_frame(s, t->ev.name[e], &frame));
    RP_TRY(rp_map_intern(&s->path_of, (uint64_t)parent << 32 | frame, fresh, &s->path[e], s->err));
    if (s->path[e] != fresh)
        return RP_OK;
    s->npaths++;
    return rp_stacks_add_path(s->to, parent, frame, s->err);
}

static void span_tree_release(struct span_tree *s)
{
    free(s->path);
    rp_map_release(&s->frame_of);
    rp_map_release(&s->path_of);
}

static bool is_of_device(const struct rp_stacks_adder *to)
{
    return to->how.width == RP_STACKS_GPU || to->how.width == RP_STACKS_IDLE;
}

/* Spans are counted where they begin, and gaps of the device where they are. */
static enum rp_code count_span(struct span_tree *s, rp_event e)
{
    const struct rp_events *ev = &s->to->t->ev;
    struct rp_stacks_weighed w = {s->path[e], ev->track[e], ev->ts_ns[e], 0, 1};

    return is_of_device(s->to) ? RP_OK : rp_stacks_add(s->to, &w, s->err);
}

/* Gives each Python span of the thread the part of the time that is in it but in no span inside it;
 *covered gets how much of the time is in any span. */
static enum rp_code weigh_spans_in(struct span_tree *s, rp_track thread, int64_t begin_ns,
                                   int64_t end_ns, int64_t *covered)
{
    const struct rp_trace *t = s->to->t;
    const struct rp_events *ev = &t->ev;
    rp_event e = rp_event_around(t, rp_event_at(t, thread, begin_ns), RP_KIND_PYTHON);
    int64_t now = begin_ns;
    size_t next;

    *covered = 0;
    for (rp_event up = e; up != RP_NONE && ev->ts_ns[up] == begin_ns;) {
        RP_TRY(count_span(s, up));
        up = ev->parent[up] == RP_NONE ? RP_NONE
                                       : rp_event_around(t, ev->parent[up], RP_KIND_PYTHON);
    }
    RP_LOWER_BOUND_FROM(next, t->tracks[thread].first, t->tracks[thread].end,
                        ev->ts_ns[next] <= begin_ns);
    while (now < end_ns) {
        int64_t until = end_ns;

        while (next < t->tracks[thread].end && ev->kind[next] != RP_KIND_PYTHON)
            next++;
        if (next < t->tracks[thread].end && ev->ts_ns[next] < until)
            until = ev->ts_ns[next];
        while (e != RP_NONE && rp_event_end_ns(t, e) <= now)
            e = ev->parent[e] == RP_NONE ? RP_NONE
                                         : rp_event_around(t, ev->parent[e], RP_KIND_PYTHON);
        if (e != RP_NONE && rp_event_end_ns(t, e) < until)
            until = rp_event_end_ns(t, e);
        if (e != RP_NONE && until > now) {
            struct rp_stacks_weighed w = {s->path[e], thread, now, rp_ns_between(now, until),
                                          is_of_device(s->to)};

            RP_TRY(rp_stacks_add(s->to, &w, s->err));
            *covered += w.weight;
        }
        if (next < t->tracks[thread].end && ev->ts_ns[next] <= until && until < end_ns) {
            e = (rp_event)next++;
            RP_TRY(count_span(s, e));
        }
        now = until;
    }
    return RP_OK;
}

/* Adds the time of a thread's spans between two moments, divided where a step ends. */
static enum rp_code take_spans_in(struct span_tree *s, rp_track thread, int64_t now, int64_t end)
{
    int64_t covered;

    while (now < end) {
        int64_t until = rp_stacks_part_end_ns(s->to, now);

        until = until < end ? until : end;
        RP_TRY(weigh_spans_in(s, thread, now, until, &covered));
        now = until;
    }
    return RP_OK;
}

static enum rp_code take_spans(struct span_tree *s, rp_track thread, const struct rp_scope *scope)
{
    const struct rp_trace *t = s->to->t;
    int64_t now = INT64_MAX, end = INT64_MIN;

    for (rp_event e = t->tracks[thread].first; e < t->tracks[thread].end; e++) {
        if (t->ev.kind[e] != RP_KIND_PYTHON)
            continue;
        now = t->ev.ts_ns[e] < now ? t->ev.ts_ns[e] : now;
        end = rp_event_end_ns(t, e) > end ? rp_event_end_ns(t, e) : end;
    }
    if (scope->limited) {
        now = now > scope->begin_ns ? now : scope->begin_ns;
        end = end < scope->end_ns ? end : scope->end_ns;
    }
    for (size_t i = 0; i < scope->njudged; i++) {
        const struct rp_interval *x = &scope->judged[i];

        RP_TRY(take_spans_in(s, thread, now > x->begin_ns ? now : x->begin_ns,
                             end < x->end_ns ? end : x->end_ns));
    }
    return scope->njudged ? RP_OK : take_spans_in(s, thread, now, end);
}

/* ------------------------------------------------------------------ time of the device */

/* The stack of a thread's sample that is nearest to a time, and not further away than the time for
   which the sample stands; or RP_NONE. */
static uint32_t sampled_stack(const struct rp_trace *t, rp_track track, int64_t at_ns)
{
    const struct rp_call_samples *s = &t->samples;
    uint32_t best = RP_NONE;
    int64_t distance = INT64_MAX;
    size_t i, from;

    RP_LOWER_BOUND(i, s->n, s->track[i] < track || (s->track[i] == track && s->ts_ns[i] < at_ns));
    for (from = i ? i - 1 : 0, i = from; i < s->n && i < from + 2; i++) {
        int64_t away = rp_ns_between(at_ns, s->ts_ns[i]);

        away = away < 0 ? -away : away;
        if (s->track[i] == track && s->ts_ns[i] != RP_NO_TS && away < distance &&
            (s->unit != RP_WEIGHT_NS || away <= s->weight[i])) {
            best = s->stack[i];
            distance = away;
        }
    }
    return best;
}

struct device_time {
    const struct rp_trace *t;
    struct span_tree *spans; /* NULL: by samples */
    struct rp_stacks_adder *to;
    struct rp_work work;
};

/* Where an item was launched. In the backward pass it is where its forward operator ran, because
   the launching threads run no code of the program. */
static uint32_t launching_path(const struct device_time *d, const struct rp_work_item *item,
                               const struct rp_work_owner *owner)
{
    rp_event from = owner->forward != RP_NONE ? owner->forward : item->launch, span;

    if (!d->spans)
        return from == RP_NONE ? RP_NONE
                               : sampled_stack(d->t, d->t->ev.track[from], d->t->ev.ts_ns[from]);
    span = owner->python;
    if (span == RP_NONE && from != RP_NONE)
        span = rp_event_around(d->t, from, RP_KIND_PYTHON);
    return span == RP_NONE ? RP_NONE : d->spans->path[span];
}

/* Adds the time of each item to the stack in which it was launched. */
static enum rp_code weigh_by_work(struct device_time *d, struct rp_err *err)
{
    RP_SCOPED(rp_attribution_release) struct rp_attribution owners = {0};

    RP_TRY(rp_attribution_init(&owners, &d->work, err));
    for (size_t i = 0; i < d->work.items.n; i++) {
        const struct rp_work_item *item = &d->work.items.at[i];
        rp_event launch = item->launch;
        struct rp_stacks_weighed w = {launching_path(d, item, &owners.owners.at[i]),
                                      launch == RP_NONE ? RP_NONE : d->t->ev.track[launch],
                                      launch == RP_NONE ? item->begin_ns : d->t->ev.ts_ns[launch],
                                      rp_ns_between(item->begin_ns, item->end_ns), 1};

        RP_TRY(rp_stacks_add(d->to, &w, err));
    }
    return RP_OK;
}

/* Like weigh_spans_in, for samples. */
static enum rp_code weigh_samples_in(struct device_time *d, rp_track thread, int64_t begin_ns,
                                     int64_t end_ns, int64_t *covered, struct rp_err *err)
{
    const struct rp_call_samples *s = &d->t->samples;
    int64_t left = rp_ns_between(begin_ns, end_ns);
    size_t i = rp_sampled_first(d->t, thread, begin_ns);

    *covered = 0;
    for (; i < s->n && s->track[i] == thread && s->ts_ns[i] < end_ns && left > 0; i++) {
        struct rp_stacks_weighed w = {s->stack[i], thread, begin_ns,
                                      rp_sampled_weight(d->t, i, begin_ns, end_ns), 1};

        w.weight = w.weight < left ? w.weight : left; /* because ticks are coarser than gaps */
        if (w.weight <= 0)
            continue;
        RP_TRY(rp_stacks_add(d->to, &w, err));
        *covered += w.weight;
        left -= w.weight;
    }
    return RP_OK;
}

static enum rp_code weigh_gap(struct device_time *d, const struct rp_gap *gap, struct rp_err *err)
{
    struct rp_stacks_weighed rest = {RP_NONE, rp_gap_thread(&d->work, gap), gap->begin_ns,
                                     rp_ns_between(gap->begin_ns, gap->end_ns), 1};
    int64_t covered = 0;

    if (rest.track != RP_NONE && d->spans)
        RP_TRY(weigh_spans_in(d->spans, rest.track, gap->begin_ns, gap->end_ns, &covered));
    else if (rest.track != RP_NONE)
        RP_TRY(weigh_samples_in(d, rest.track, gap->begin_ns, gap->end_ns, &covered, err));
    rest.weight -= covered;
    return rest.weight > 0 ? rp_stacks_add(d->to, &rest, err) : RP_OK;
}

/* Adds the gaps of the device to the stacks of the thread that launched the work after each. */
static enum rp_code weigh_by_idle(struct device_time *d, const struct rp_scope *scope,
                                  struct rp_err *err)
{
    struct rp_gap_finder *finder = NULL;
    rp_gap_vec gaps = {0};
    enum rp_code code = rp_gap_finder_new(d->t, &finder, err);

    if (code == RP_OK && !scope->njudged)
        code = rp_gaps_find(finder, &d->work, &gaps, err);
    for (size_t i = 0; i < scope->njudged && code == RP_OK; i++)
        code = rp_gaps_find_in(finder, &d->work, scope->judged[i].begin_ns, scope->judged[i].end_ns,
                               &gaps, err);
    for (size_t i = 0; i < gaps.n && code == RP_OK; i++)
        code = weigh_gap(d, &gaps.at[i], err);
    rp_vec_release(&gaps);
    rp_gap_finder_free(finder);
    return code;
}

static enum rp_code weigh_by_device(struct rp_stacks_adder *to, const struct rp_scope *scope,
                                    struct span_tree *spans, struct rp_err *err)
{
    struct device_time d = {.t = to->t, .spans = spans, .to = to};
    enum rp_code code = rp_work_init(&d.work, to->t, scope, err);
    bool by_work = to->how.width == RP_STACKS_GPU;

    to->out->unit = RP_WEIGHT_NS;
    to->out->unit_name = by_work ? "device time" : "idle device time";
    to->out->of_device = true;
    if (code == RP_OK && d.work.items.n) {
        rp_work_keep_device(&d.work, rp_work_main_device(&d.work));
        code = by_work ? weigh_by_work(&d, err) : weigh_by_idle(&d, scope, err);
    }
    rp_work_release(&d.work);
    return code;
}

/* ------------------------------------------------------------------ the part */

enum rp_stacks_width rp_stacks_width_of(const char *word)
{
    return !strcmp(word, "wall")   ? RP_STACKS_WALL
           : !strcmp(word, "gpu")  ? RP_STACKS_GPU
           : !strcmp(word, "idle") ? RP_STACKS_IDLE
                                   : RP_STACKS_CPU;
}

enum rp_stacks_split rp_stacks_split_of(const char *word)
{
    return !word                     ? RP_STACKS_WHOLE
           : !strcmp(word, "thread") ? RP_STACKS_BY_THREAD
           : !strcmp(word, "step")   ? RP_STACKS_BY_STEP
                                     : RP_STACKS_BY_RANK;
}

static enum rp_code stacks_of_spans(struct rp_stacks_adder *to, const struct rp_scope *scope,
                                    struct rp_err *err)
{
    RP_SCOPED(span_tree_release) struct span_tree s = {.to = to, .err = err};

    struct span_tree *tree = &s;
    const struct rp_trace *t = tree->to->t;
    tree->to->out->of_spans = true;
    tree->to->out->unit_name = "time";
    tree->path = malloc(((size_t)t->ev.n + 1) * sizeof *tree->path);
    RP_TRY(rp_err_need(tree->path, tree->err, "making stacks"));
    /* a span comes after the one around it */
    for (rp_event e = 0; e < t->ev.n; e++)
        if (t->ev.kind[e] == RP_KIND_PYTHON)
            RP_TRY(add_span(tree, e));
    if (is_of_device(to))
        RP_TRY(weigh_by_device(to, scope, &s, err));
    for (rp_track k = 0; k < to->t->ntracks && !is_of_device(to); k++)
        RP_TRY(take_spans(&s, k, scope));
    return RP_OK;
}

static bool has_untimed(const struct rp_call_samples *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->ts_ns[i] == RP_NO_TS)
            return true;
    return false;
}

static enum rp_code stacks_of_samples(struct rp_stacks_adder *to, const struct rp_scope *scope,
                                      struct rp_err *err)
{
    const struct rp_call_samples *s = &to->t->samples;

    RP_TRY(copy_tree(to, err));
    if (is_of_device(to))
        return weigh_by_device(to, scope, NULL, err);
    to->out->unit = s->unit;
    to->out->unit_name = rp_arena_text(to->arena, rp_trace_str(to->t, s->unit_name));
    /* other profiles have added up samples, unless they count them */
    to->out->is_drawn = s->unit == RP_WEIGHT_COUNT || (s->unit == RP_WEIGHT_NS && !has_untimed(s));
    return take_samples(to, scope, err);
}

enum rp_code rp_stacks_make(const struct rp_trace *trace, const struct rp_scope *scope,
                            const struct rp_stacks_how *how, struct rp_arena *arena,
                            struct rp_stacks_part *out, struct rp_err *err)
{
    bool exact = how->width == RP_STACKS_GPU && trace->totals.count[RP_KIND_PYTHON];
    bool sampled = trace->samples.n && !exact;
    RP_SCOPED(rp_stacks_adder_release) struct rp_stacks_adder to = {0};

    if (trace->samples.n)
        RP_TRY(rp_trace_require(trace, RP_NEED_SAMPLES, err));
    rp_stacks_adder_init(&to, trace, how, arena, out);
    RP_TRY(sampled ? stacks_of_samples(&to, scope, err) : stacks_of_spans(&to, scope, err));
    return rp_arena_check(arena, "making stacks", err);
}
