/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/top/stacks_add.h"

#include "base/decides.h"
#include "base/order.h"
#include "explain/idle/sampled.h"

#define PIECES 8192.0
RP_LIMIT(PIECES, "pieces of the time", "the order of shorter spans is not drawn");

static bool has_threads(const struct rp_trace *t)
{
    const struct rp_call_samples *s = &t->samples;

    return s->n ? s->track[0] != s->track[s->n - 1] : t->ntracks > 1;
}

void rp_stacks_adder_init(struct rp_stacks_adder *a, const struct rp_trace *trace,
                          const struct rp_stacks_how *how, struct rp_arena *arena,
                          struct rp_stacks_part *out)
{
    *a = (struct rp_stacks_adder){
        .t = trace, .out = out, .how = *how, .arena = arena, .last_lane = RP_NONE};
    a->has_lanes = how->split != RP_STACKS_BY_THREAD && has_threads(trace) &&
                   (how->width == RP_STACKS_CPU || how->width == RP_STACKS_WALL);
    if (how->in_order) {
        const struct rp_call_samples *s = &a->t->samples;
        int64_t begin = a->t->totals.span_begin_ns, end = a->t->totals.span_end_ns;

        for (uint32_t i = 0; i < s->n; i++) {
            if (s->ts_ns[i] == RP_NO_TS) /* no order is known */
                a->how.in_order = false;
            begin = s->ts_ns[i] < begin ? s->ts_ns[i] : begin;
            end = s->ts_ns[i] > end ? s->ts_ns[i] : end;
        }
        a->begin_ns = begin;
        a->pieces_a_ns = PIECES / ((double)rp_ns_between(begin, end) + 1);
    }
}

void rp_stacks_adder_release(struct rp_stacks_adder *a)
{
    rp_vec_release(&a->paths);
    rp_vec_release(&a->chain);
    rp_vec_release(&a->runs);
    rp_map_release(&a->node_of);
    rp_map_release(&a->part_of);
    rp_map_release(&a->lane_of);
}

static bool is_split(const struct rp_stacks_adder *a)
{
    return a->how.split == RP_STACKS_BY_THREAD || a->how.split == RP_STACKS_BY_STEP;
}

enum rp_code rp_stacks_add_path(struct rp_stacks_adder *a, uint32_t parent, uint32_t frame,
                                struct rp_err *err)
{
    struct rp_stacks_node node = {parent, frame, 0, 0};

    return is_split(a) ? rp_vec_push(&a->paths, node, err) : rp_vec_push(&a->out->nodes, node, err);
}

/* ------------------------------------------------------------------ threads and steps */

/* The step that contains a time, as selected by `--step`; nsteps if there is none. */
static uint32_t step_at(const struct rp_trace *t, int64_t ts_ns)
{
    size_t i;

    RP_LOWER_BOUND(i, t->nsteps, t->steps[i].begin_ns <= ts_ns);
    if (!i)
        return t->nsteps;
    i--;
    if (ts_ns < t->steps[i].end_ns)
        return (uint32_t)i;
    return i + 1 < t->nsteps && !(t->steps[i].flags & RP_STEP_BREAK_AFTER) ? (uint32_t)i
                                                                           : t->nsteps;
}

int64_t rp_stacks_part_end_ns(const struct rp_stacks_adder *a, int64_t ts_ns)
{
    const struct rp_trace *t = a->t;
    uint32_t step = a->how.split == RP_STACKS_BY_STEP ? step_at(t, ts_ns) : t->nsteps;
    size_t next;

    if (a->how.split != RP_STACKS_BY_STEP)
        return INT64_MAX;
    RP_LOWER_BOUND(next, t->nsteps, t->steps[next].begin_ns <= ts_ns);
    if (step < t->nsteps && (next == t->nsteps || t->steps[step].flags & RP_STEP_BREAK_AFTER))
        return t->steps[step].end_ns;
    return next < t->nsteps ? t->steps[next].begin_ns : INT64_MAX;
}

static const char *step_name(struct rp_stacks_adder *a, uint32_t step)
{
    return step == a->t->nsteps
               ? "outside of steps"
               : rp_arena_textf(a->arena, "step %lld", (long long)a->t->steps[step].number);
}

static enum rp_code new_part_frame(struct rp_stacks_adder *a, const char *name, uint32_t *out,
                                   struct rp_err *err)
{
    struct rp_stacks_frame frame = {.name = name, .file = "", .kind = RP_STACKS_PART};

    *out = (uint32_t)a->out->frames.n;
    return rp_vec_push(&a->out->frames, frame, err);
}

/* The node that names the thread or step. */
static enum rp_code part_of(struct rp_stacks_adder *a, const struct rp_stacks_weighed *w,
                            uint32_t *out, struct rp_err *err)
{
    bool by_step = a->how.split == RP_STACKS_BY_STEP;
    uint32_t key = by_step ? step_at(a->t, w->ts_ns) : w->track, frame;
    uint32_t fresh = (uint32_t)a->out->nodes.n;

    RP_TRY(rp_map_intern(&a->part_of, key, fresh, out, err));
    if (*out != fresh)
        return RP_OK;
    RP_TRY(new_part_frame(a,
                          by_step          ? step_name(a, key)
                          : key == RP_NONE ? "no thread"
                                           : rp_thread_text(a->t, key, a->arena),
                          &frame, err));
    return rp_vec_push(&a->out->nodes, ((struct rp_stacks_node){RP_NONE, frame, 0, 0}), err);
}

/* Finds the node of a path in a part, and makes what is missing of it, from the outermost frame
   on. */
static enum rp_code node_in(struct rp_stacks_adder *a, uint32_t part, uint32_t path, uint32_t *out,
                            struct rp_err *err)
{
    uint32_t node = part;

    a->chain.n = 0;
    for (; path != RP_NONE; path = a->paths.at[path].parent) {
        uint32_t known = rp_map_get(&a->node_of, (uint64_t)part << 32 | path);

        if (known != RP_MAP_NONE) {
            node = known;
            break;
        }
        RP_TRY(rp_vec_push(&a->chain, path, err));
    }
    while (a->chain.n) {
        uint32_t next = a->chain.at[--a->chain.n], fresh = (uint32_t)a->out->nodes.n, got;
        struct rp_stacks_node made = {node, a->paths.at[next].frame, 0, 0};

        RP_TRY(rp_map_intern(&a->node_of, (uint64_t)part << 32 | next, fresh, &got, err));
        RP_TRY(rp_vec_push(&a->out->nodes, made, err));
        node = fresh;
    }
    *out = node;
    return RP_OK;
}

/* ------------------------------------------------------------------ the order of time */

static uint32_t *last_of(struct rp_stacks_adder *a, uint32_t parent)
{
    return parent == RP_NONE ? &a->last_lane : &a->runs.at[parent].last;
}

/* Finds the run of a frame that continues: the last one, or one in the same piece of time. */
static enum rp_code run_in(struct rp_stacks_adder *a, uint32_t parent, uint32_t frame,
                           uint32_t piece, uint32_t *out, struct rp_err *err)
{
    uint32_t last = *last_of(a, parent), run = last;

    while (run != RP_NONE && a->out->runs.at[run].frame != frame) {
        run = a->runs.at[run].before;
        if (run != RP_NONE && a->runs.at[run].piece != piece)
            run = RP_NONE;
    }
    if (run == RP_NONE) {
        run = (uint32_t)a->out->runs.n;
        RP_TRY(rp_vec_push(&a->out->runs, ((struct rp_stacks_node){parent, frame, 0, 0}), err));
        RP_TRY(rp_vec_push(&a->runs, ((struct rp_stacks_run){RP_NONE, last, piece}), err));
        *last_of(a, parent) = run;
    }
    a->runs.at[run].piece = piece;
    *out = run;
    return RP_OK;
}

static enum rp_code lane_of(struct rp_stacks_adder *a, rp_track track, uint32_t *out,
                            struct rp_err *err)
{
    uint32_t fresh = (uint32_t)a->out->frames.n;

    RP_TRY(rp_map_intern(&a->lane_of, track, fresh, out, err));
    return *out == fresh ? new_part_frame(a, rp_thread_text(a->t, track, a->arena), out, err)
                         : RP_OK;
}

static enum rp_code add_run(struct rp_stacks_adder *a, const struct rp_stacks_weighed *w,
                            uint32_t node, struct rp_err *err)
{
    double at = (double)rp_ns_between(a->begin_ns, w->ts_ns) * a->pieces_a_ns;
    uint32_t piece = at > 0 ? (uint32_t)at : 0, run = RP_NONE, lane;

    a->chain.n = 0;
    for (; node != RP_NONE; node = a->out->nodes.at[node].parent)
        RP_TRY(rp_vec_push(&a->chain, a->out->nodes.at[node].frame, err));
    if (a->has_lanes && w->track != RP_NONE) {
        RP_TRY(lane_of(a, w->track, &lane, err));
        RP_TRY(rp_vec_push(&a->chain, lane, err));
    }
    while (a->chain.n)
        RP_TRY(run_in(a, run, a->chain.at[--a->chain.n], piece, &run, err));
    rp_ns_add(&a->out->runs.at[run].self, w->weight);
    a->out->runs.at[run].count += w->count;
    return RP_OK;
}

/* ------------------------------------------------------------------ one weight */

enum rp_code rp_stacks_add(struct rp_stacks_adder *a, const struct rp_stacks_weighed *w,
                           struct rp_err *err)
{
    uint32_t part, node = w->path;

    a->out->count += w->count;
    rp_ns_add(&a->out->whole, w->weight);
    if (w->path == RP_NONE) {
        rp_ns_add(&a->out->unread, w->weight);
        return RP_OK;
    }
    if (is_split(a)) {
        RP_TRY(part_of(a, w, &part, err));
        RP_TRY(node_in(a, part, w->path, &node, err));
    }
    rp_ns_add(&a->out->nodes.at[node].self, w->weight);
    a->out->nodes.at[node].count += w->count;
    return a->how.in_order && w->ts_ns != RP_NO_TS ? add_run(a, w, node, err) : RP_OK;
}
