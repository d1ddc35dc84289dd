/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/idle/sampled.h"

#include "base/decides.h"
#include "base/order.h"
#include "explain/short_name.h"
#include "facts/times/intervals.h"

#include <stdio.h>
#include <string.h>

#define MOST 64
RP_LIMIT(MOST, "samples of a wait", "the first ones say who held the lock");

enum rp_code rp_sampled_init(struct rp_sampled *s, const struct rp_trace *trace, struct rp_err *err)
{
    *s = (struct rp_sampled){.t = trace};
    return trace->samples.n ? rp_trace_require(trace, RP_NEED_SAMPLES, err) : RP_OK;
}

void rp_sampled_release(struct rp_sampled *s)
{
    rp_map_release(&s->known);
    rp_map_release(&s->held);
    rp_vec_release(&s->places);
    rp_vec_release(&s->holders);
    rp_vec_release(&s->holds);
}

static uint32_t place_of(const struct rp_call_samples *c, uint32_t stack)
{
    uint32_t other = RP_NONE, kernel = RP_NONE;

    for (; stack != RP_NONE; stack = c->stacks[stack].parent) {
        uint32_t frame = c->stacks[stack].frame, kind = c->frame[frame].kind;
        uint32_t *first = kind == RP_FRAME_KERNEL ? &kernel : &other;

        if (kind == RP_FRAME_PYTHON)
            return frame;
        if (*first == RP_NONE)
            *first = frame;
    }
    return other == RP_NONE ? kernel : other;
}

/* The latest time at which a wait was over: a thread that waits begins nothing. Weights are less
   precise, because they count ticks of the sampler. */
static int64_t wait_end_ns(const struct rp_trace *t, rp_track thread, int64_t begin_ns,
                           int64_t weight)
{
    const struct rp_track_info *track = &t->tracks[thread];
    int64_t end_ns = rp_ns_sum(begin_ns, weight);
    size_t e;

    RP_LOWER_BOUND_FROM(e, track->first, track->end, t->ev.ts_ns[e] <= begin_ns);
    return e < track->end && t->ev.ts_ns[e] < end_ns ? t->ev.ts_ns[e] : end_ns;
}

int64_t rp_sampled_weight(const struct rp_trace *t, size_t i, int64_t begin_ns, int64_t end_ns)
{
    const struct rp_call_samples *c = &t->samples;
    int64_t from = c->ts_ns[i], to;

    if (from == RP_NO_TS || from >= end_ns)
        return 0;
    if (!(c->flags[i] & RP_SAMPLE_WAITED) || c->unit != RP_WEIGHT_NS)
        return from >= begin_ns ? c->weight[i] : 0;
    to = wait_end_ns(t, c->track[i], from, c->weight[i]);
    from = from < begin_ns ? begin_ns : from;
    return rp_ns_between(from, to < end_ns ? to : end_ns);
}

/* ------------------------------------------------------------------ who held the GIL */

RP_ORDER(by_time, struct rp_sampled_hold, RP_UP(ts_ns), RP_UP(thread))

static enum rp_code list_holds(struct rp_sampled *s, struct rp_err *err)
{
    const struct rp_call_samples *c = &s->t->samples;

    if (s->has_holds)
        return RP_OK;
    s->has_holds = true;
    s->tick_ns = INT64_MAX;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->weight[i] > 0 && c->weight[i] < s->tick_ns)
            s->tick_ns = c->weight[i];
        if (c->flags[i] & RP_SAMPLE_HAD_GIL && c->ts_ns[i] != RP_NO_TS)
            RP_TRY(
                rp_vec_push(&s->holds, ((struct rp_sampled_hold){c->ts_ns[i], c->track[i]}), err));
    }
    if (c->unit != RP_WEIGHT_NS || s->tick_ns == INT64_MAX)
        s->tick_ns = 0;
    rp_sort(s->holds.at, s->holds.n, sizeof *s->holds.at, by_time);
    return RP_OK;
}

/* The thread that held the lock in most of the samples around a wait of another one, or RP_NONE.
   The samples of one tick are not taken at the same moment. */
static rp_track holder_in(const struct rp_sampled *s, rp_track waits, int64_t begin_ns,
                          int64_t end_ns)
{
    rp_track best = RP_NONE;
    size_t first, end, most = 0;

    begin_ns = rp_ns_between(s->tick_ns, begin_ns);
    end_ns = rp_ns_sum(end_ns, s->tick_ns);
    RP_LOWER_BOUND(first, s->holds.n, s->holds.at[first].ts_ns < begin_ns);
    for (end = first; end < s->holds.n && end < first + MOST; end++)
        if (s->holds.at[end].ts_ns > end_ns)
            break;
    const struct rp_sampled_hold *at = s->holds.at + first;
    for (size_t i = 0; i < end - first; i++) {
        size_t same = 0;

        for (size_t k = 0; k < end - first && at[i].thread != waits; k++)
            same += at[k].thread == at[i].thread;
        if (same > most) {
            most = same;
            best = at[i].thread;
        }
    }
    return best;
}

static enum rp_code add_holder(struct rp_sampled *s, uint32_t place, rp_track thread,
                               int64_t weight, struct rp_err *err)
{
    uint32_t fresh = (uint32_t)s->holders.n, at;

    if (thread == RP_NONE)
        return RP_OK;
    RP_TRY(rp_map_intern(&s->held, (uint64_t)place << 32 | thread, fresh, &at, err));
    if (at == fresh)
        RP_TRY(rp_vec_push(&s->holders, ((struct rp_sampled_holder){place, thread, 0}), err));
    rp_ns_add(&s->holders.at[at].weight, weight);
    return RP_OK;
}

/* ------------------------------------------------------------------ places */

static enum rp_code add_sample(struct rp_sampled *s, uint32_t key, uint32_t frame, int64_t weight,
                               uint8_t flags, rp_track holder, struct rp_err *err)
{
    struct rp_sampled_place fresh = {.key = key, .frame = frame}, *place;
    uint32_t at;

    RP_TRY(rp_map_intern(&s->known, (uint64_t)key << 32 | frame, (uint32_t)s->places.n, &at, err));
    if (at == s->places.n)
        RP_TRY(rp_vec_push(&s->places, fresh, err));
    place = &s->places.at[at];
    rp_ns_add(&place->weight, weight);
    if (flags & RP_SAMPLE_WANTS_GIL)
        rp_ns_add(&place->wants_gil, weight);
    if (flags & RP_SAMPLE_HAD_GIL)
        rp_ns_add(&place->had_gil, weight);
    return add_holder(s, at, holder, weight, err);
}

size_t rp_sampled_first(const struct rp_trace *t, rp_track thread, int64_t begin_ns)
{
    const struct rp_call_samples *c = &t->samples;
    size_t i;

    RP_LOWER_BOUND(i, c->n,
                   c->track[i] < thread || (c->track[i] == thread && c->ts_ns[i] < begin_ns));
    return i - (i > 0 && c->track[i - 1] == thread);
}

enum rp_code rp_sampled_add(struct rp_sampled *s, uint32_t key, rp_track thread, int64_t begin_ns,
                            int64_t end_ns, struct rp_err *err)
{
    const struct rp_call_samples *c = &s->t->samples;

    if (!c->n || thread == RP_NONE || c->unit == RP_WEIGHT_BYTES)
        return RP_OK;
    size_t i = rp_sampled_first(s->t, thread, begin_ns);
    for (; i < c->n && c->track[i] == thread && c->ts_ns[i] < end_ns; i++) {
        int64_t weight = rp_sampled_weight(s->t, i, begin_ns, end_ns);
        uint32_t frame = place_of(c, c->stack[i]);
        rp_track holder = RP_NONE;

        if (weight <= 0)
            continue;
        if (c->flags[i] & RP_SAMPLE_WANTS_GIL) {
            int64_t from = c->ts_ns[i] > begin_ns ? c->ts_ns[i] : begin_ns;

            RP_TRY(list_holds(s, err));
            holder = holder_in(s, thread, from, rp_ns_sum(from, weight));
        }
        RP_TRY(add_sample(s, key, RP_NONE, weight, c->flags[i], RP_NONE, err));
        if (frame != RP_NONE)
            RP_TRY(add_sample(s, key, frame, weight, c->flags[i], holder, err));
    }
    return RP_OK;
}

const struct rp_sampled_place *rp_sampled_main(const struct rp_sampled *s, uint32_t key)
{
    const struct rp_sampled_place *best = NULL;

    for (size_t i = 0; i < s->places.n; i++) {
        const struct rp_sampled_place *p = &s->places.at[i];

        if (p->key == key && p->frame != RP_NONE && (!best || p->weight > best->weight))
            best = p;
    }
    return best;
}

int64_t rp_sampled_ns(const struct rp_sampled *s, const struct rp_sampled_place *place, int64_t ns)
{
    uint32_t all = rp_map_get(&s->known, (uint64_t)place->key << 32 | RP_NONE);
    int64_t whole = s->places.at[all].weight;

    if (s->t->samples.unit == RP_WEIGHT_NS && whole < ns)
        whole = ns;
    return (int64_t)((double)ns * ((double)place->weight / (double)whole));
}

const char *rp_sampled_text(const struct rp_sampled *s, const struct rp_sampled_place *place,
                            bool whole_path, struct rp_arena *arena)
{
    const struct rp_call_frame *f = &s->t->samples.frame[place->frame];
    const char *file = rp_trace_str(s->t, f->file), *slash = strrchr(file, '/');
    char label[61];

    if (f->kind == RP_FRAME_PYTHON)
        rp_cut_name(rp_trace_str(s->t, f->name), label, sizeof label);
    else
        rp_short_name(rp_trace_str(s->t, f->name), label, sizeof label);
    if (slash && slash[1] && !whole_path)
        file = slash + 1;
    if (!*file)
        return rp_arena_text(arena, label);
    return f->line ? rp_arena_textf(arena, "%s at %s:%u", label, file, (unsigned)f->line)
                   : rp_arena_textf(arena, "%s in %s", label, file);
}

const char *rp_thread_text(const struct rp_trace *t, rp_track track, struct rp_arena *arena)
{
    const struct rp_track_info *k = &t->tracks[track];
    const char *name = rp_trace_str(t, k->name ? k->name : k->text);
    char id[32];

    snprintf(id, sizeof id, "%lld", (long long)k->native_id);
    if (!*name)
        return rp_arena_textf(arena, "thread %s", id);
    return k->has_id && !k->text && !strstr(name, id)
               ? rp_arena_textf(arena, "%s (thread %s)", name, id)
               : rp_arena_text(arena, name);
}

const char *rp_sampled_gil(const struct rp_sampled *s, const struct rp_sampled_place *place,
                           struct rp_arena *arena)
{
    if (place->wants_gil <= place->weight / 2)
        return place->had_gil > place->weight / 2 ? ", holding the GIL" : "";

    /* The thread that most often held the lock meanwhile. */
    const struct rp_sampled_holder *best = NULL;
    for (size_t i = 0; i < s->holders.n; i++) {
        const struct rp_sampled_holder *h = &s->holders.at[i];

        if (&s->places.at[h->place] == place && (!best || h->weight > best->weight))
            best = h;
    }
    rp_track holder = best ? best->thread : RP_NONE;
    return holder == RP_NONE ? ", waiting for the GIL"
                             : rp_arena_textf(arena, ", waiting for the GIL held by %s",
                                              rp_thread_text(s->t, holder, arena));
}
