/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes nodes: threads first, then streams, each as a lane of nodes in time order. A span of a
 * thread gives a node for each part of it in which no other span runs inside it, cut further at the
 * cuts; the spans are walked once with the stack of those that are open. A collective has two
 * nodes, its arrival (no time) and itself, so that ranks can be joined in between.
 */
#include "stepgraph/build.h"

#include "base/filled.h"
#include "base/order.h"

#include <stdlib.h>
#include <string.h>

struct nodes_ctx {
    struct rp_sg_builder *b;
    uint32_t lane;
    size_t cut, end_cut; /* the next cuts of the lane */
    int64_t now_ns;      /* the lane is cut up to here */
    RP_VEC(rp_event) open;
};

static enum rp_code intern(struct rp_sg_builder *b, rp_str s, uint32_t *name, struct rp_err *err)
{
    if (!b->name_of.at[s]) {
        const char *copy =
            rp_arena_copy(&b->g->arena, rp_trace_str(b->t, s), rp_trace_str_len(b->t, s));

        RP_TRY(rp_err_need(copy, err, "building the step graph"));
        RP_TRY(rp_vec_push(&b->g->names, copy, err));
        b->name_of.at[s] = (uint32_t)b->g->names.n;
    }
    *name = b->name_of.at[s] - 1;
    return RP_OK;
}

static enum rp_code push_node(struct rp_sg_builder *b, struct rp_sg_node node, struct rp_err *err)
{
    if (b->g->nodes.n >= UINT32_MAX / 2)
        return rp_err_set(err, RP_LIMIT, "the step graph has more than %u nodes: use --window",
                          UINT32_MAX / 2);
    return rp_vec_push(&b->g->nodes, node, err);
}

/* Puts the arrival of a collective before its node, if the collective is in the list. */
static enum rp_code push_arrival(struct rp_sg_builder *b, struct rp_sg_node *node,
                                 struct rp_err *err)
{
    struct rp_sg_node arrival = *node;
    uint32_t at = rp_map_get(&b->collective_of, node->event);

    if (at == RP_MAP_NONE || b->g->arrivals.at[at] != RP_NONE)
        return RP_OK;
    node->collective = arrival.collective = at;
    arrival.kind = RP_SG_ARRIVE;
    arrival.dur_ns = 0;
    b->g->arrivals.at[at] = (uint32_t)b->g->nodes.n;
    return push_node(b, arrival, err);
}

/* ------------------------------------------------------------------ threads */

/* A host collective copies, then exchanges: ranks wait for each other in its longest part. Its
   arrival is put before that part when all parts are known; until then a note takes its place. */
static void note_collective(struct rp_sg_builder *b, const struct rp_sg_node *node)
{
    uint32_t at = rp_map_get(&b->collective_of, node->event);

    if (at == RP_MAP_NONE)
        return;
    uint32_t *best = &b->g->arrivals.at[at];
    if (*best == RP_NONE || b->g->nodes.at[*best].dur_ns < node->dur_ns)
        *best = (uint32_t)b->g->nodes.n;
}

/* Makes room for the arrivals of host collectives in the lanes. */
static enum rp_code insert_arrivals(struct rp_sg_builder *b, struct rp_err *err)
{
    struct rp_stepgraph *g = b->g;
    RP_VEC(struct rp_sg_node) old = {0};
    enum rp_code code = RP_OK;
    size_t i, lane = 0;

    for (i = 0; i < g->arrivals.n; i++)
        if (g->arrivals.at[i] != RP_NONE)
            g->nodes.at[g->arrivals.at[i]].collective = (uint32_t)i;
    memcpy(&old, &g->nodes, sizeof old);
    memset(&g->nodes, 0, sizeof g->nodes);
    for (i = 0; i < g->arrivals.n; i++)
        g->arrivals.at[i] = RP_NONE;
    code = rp_vec_reserve(&g->nodes, old.n + g->arrivals.n + b->work->items.n, err);
    for (i = 0; code == RP_OK && i < old.n; i++) {
        for (; lane < g->lanes.n && g->lanes.at[lane].first <= i; lane++)
            g->lanes.at[lane].first = (uint32_t)g->nodes.n;
        if (old.at[i].collective != RP_NONE) {
            old.at[i].kind = RP_SG_COMM;
            code = push_arrival(b, &old.at[i], err);
        }
        if (code == RP_OK)
            code = push_node(b, old.at[i], err);
    }
    for (; lane < g->lanes.n; lane++)
        g->lanes.at[lane].first = (uint32_t)g->nodes.n;
    for (i = 0; i < g->lanes.n; i++)
        g->lanes.at[i].end = i + 1 < g->lanes.n ? g->lanes.at[i + 1].first : (uint32_t)g->nodes.n;
    rp_vec_release(&old);
    return code;
}

/* A span of no length gives no node, except for one at the end of the window. */
static bool ends_window(const struct rp_sg_builder *b, rp_event e)
{
    return b->t->ev.ts_ns[e] == b->g->end_ns && rp_sg_is_work(b->t->ev.kind[e]);
}

static enum rp_code emit(struct nodes_ctx *s, rp_event e, int64_t from_ns, int64_t to_ns,
                         struct rp_err *err)
{
    struct rp_sg_builder *b = s->b;
    uint8_t kind = b->t->ev.kind[e];
    struct rp_sg_node node = {.event = e,
                              .lane = s->lane,
                              .collective = RP_NONE,
                              .kind = kind == RP_KIND_RUNTIME ? RP_SG_RUNTIME : RP_SG_HOST,
                              .flags = rp_sg_is_work(kind) ? RP_SG_WORK : 0};

    from_ns = from_ns > b->g->begin_ns ? from_ns : b->g->begin_ns;
    to_ns = to_ns < b->g->end_ns ? to_ns : b->g->end_ns;
    if (from_ns > to_ns || (from_ns == to_ns && !ends_window(b, e)))
        return RP_OK;
    node.start_ns = from_ns;
    node.dur_ns = rp_ns_between(from_ns, to_ns);
    RP_TRY(intern(b, b->t->ev.name[e], &node.name, err));
    if (b->collectives->on_host)
        note_collective(b, &node);
    return push_node(b, node, err);
}

/* Adds nodes for the innermost open span from now_ns to to_ns, except in times that cuts remove. */
static enum rp_code advance(struct nodes_ctx *s, rp_event e, int64_t to_ns, struct rp_err *err)
{
    const struct rp_sg_cut *cuts = s->b->cuts.at;

    while (s->now_ns < to_ns) {
        while (s->cut < s->end_cut && cuts[s->cut].at_ns <= s->now_ns)
            s->cut++;
        if (s->cut == s->end_cut || cuts[s->cut].from_ns >= to_ns) {
            RP_TRY(emit(s, e, s->now_ns, to_ns, err));
            s->now_ns = to_ns;
        } else {
            RP_TRY(emit(s, e, s->now_ns, cuts[s->cut].from_ns, err));
            s->now_ns = cuts[s->cut].at_ns;
        }
    }
    return RP_OK;
}

/* Leaves the open spans that end by a moment, and advances to it in the remaining one. */
static enum rp_code advance_to(struct nodes_ctx *s, int64_t ns, struct rp_err *err)
{
    while (s->open.n) {
        rp_event e = s->open.at[s->open.n - 1];
        int64_t end = rp_event_end_ns(s->b->t, e);

        if (end > ns)
            return advance(s, e, ns, err);
        RP_TRY(advance(s, e, end, err));
        s->open.n--;
    }
    s->now_ns = ns > s->now_ns ? ns : s->now_ns;
    return RP_OK;
}

static enum rp_code slice_thread(struct nodes_ctx *s, struct rp_err *err)
{
    const struct rp_sg_thread *thread = &s->b->threads.at[s->lane];

    s->now_ns = INT64_MIN;
    s->open.n = 0;
    for (size_t i = thread->first_span; i < thread->end_span; i++) {
        rp_event e = s->b->spans.at[i];

        RP_TRY(advance_to(s, s->b->t->ev.ts_ns[e], err));
        RP_TRY(rp_vec_push(&s->open, e, err));
        if (ends_window(s->b, e))
            RP_TRY(emit(s, e, s->b->g->end_ns, s->b->g->end_ns, err));
    }
    return advance_to(s, INT64_MAX, err);
}

static const char *thread_label(struct rp_sg_builder *b, rp_track track)
{
    const struct rp_track_info *t = &b->t->tracks[track];

    if (t->name || t->text)
        return rp_arena_strdup(&b->g->arena, rp_trace_str(b->t, t->name ? t->name : t->text));
    return rp_arena_printf(&b->g->arena, "thread %lld", (long long)t->native_id);
}

static enum rp_code begin_lane(struct rp_sg_builder *b, const char *label, rp_track track,
                               bool device, struct rp_err *err)
{
    struct rp_sg_lane lane = {
        .label = label, .first = (uint32_t)b->g->nodes.n, .track = track, .device = device};

    return label ? rp_vec_push(&b->g->lanes, lane, err)
                 : rp_err_nomem(err, "building the step graph");
}

static void end_lane(struct rp_stepgraph *g)
{
    g->lanes.at[g->lanes.n - 1].end = (uint32_t)g->nodes.n;
    g->nlanes = (uint32_t)g->lanes.n;
}

RP_ORDER(by_place, struct rp_sg_cut, RP_UP(lane), RP_UP(at_ns), RP_UP(from_ns), RP_UP(item),
         RP_UP(other))

static enum rp_code slice_threads(struct nodes_ctx *s, struct rp_err *err)
{
    struct rp_sg_builder *b = s->b;

    if (b->cuts.n)
        qsort(b->cuts.at, b->cuts.n, sizeof *b->cuts.at, by_place);
    for (s->lane = 0; s->lane < b->threads.n; s->lane++) {
        for (s->end_cut = s->cut; s->end_cut < b->cuts.n && b->cuts.at[s->end_cut].lane == s->lane;)
            s->end_cut++;
        RP_TRY(begin_lane(b, thread_label(b, b->threads.at[s->lane].track),
                          b->threads.at[s->lane].track, false, err));
        RP_TRY(slice_thread(s, err));
        end_lane(b->g);
        s->cut = s->end_cut;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ streams */

static enum rp_code add_item(struct rp_sg_builder *b, uint32_t lane, uint32_t item,
                             struct rp_err *err)
{
    static const uint8_t kind_of[RP_WORK_CLASSES] = {[RP_WORK_COMPUTE] = RP_SG_COMPUTE,
                                                     [RP_WORK_COMM] = RP_SG_COMM,
                                                     [RP_WORK_MEMORY] = RP_SG_MEMORY};
    const struct rp_work_item *x = &b->work->items.at[item];
    struct rp_sg_node node = {.start_ns = x->begin_ns,
                              .dur_ns = rp_ns_between(x->begin_ns, x->end_ns),
                              .event = x->event,
                              .lane = lane,
                              .collective = RP_NONE,
                              .kind = kind_of[x->cls],
                              .flags = RP_SG_WORK};

    RP_TRY(intern(b, b->t->ev.name[x->event], &node.name, err));
    b->item_node.at[item] = (uint32_t)b->g->nodes.n;
    if (!b->collectives->on_host)
        RP_TRY(push_arrival(b, &node, err));
    return push_node(b, node, err);
}

static enum rp_code add_streams(struct rp_sg_builder *b, struct rp_err *err)
{
    uint32_t s, i, end = 0;

    for (s = 0; s < b->work->streams.n; s++) {
        char label[96];

        rp_work_stream_label(b->work, s, label, sizeof label);
        RP_TRY(begin_lane(
            b, rp_arena_printf(&b->g->arena, strstr(label, "stream") ? "%s" : "stream %s", label),
            b->work->streams.at[s].track, true, err));
        for (i = end, end = b->stream_end.at[s]; i < end; i++)
            RP_TRY(add_item(b, (uint32_t)b->g->lanes.n - 1, b->by_stream.at[i], err));
        end_lane(b->g);
    }
    return RP_OK;
}

static enum rp_code prepare(struct rp_sg_builder *b, struct rp_err *err)
{
    struct rp_sg_node origin = {.start_ns = b->g->begin_ns,
                                .event = RP_NONE,
                                .lane = RP_NONE,
                                .collective = RP_NONE,
                                .kind = RP_SG_ORIGIN};
    size_t i, n = b->collectives->list.n;

    RP_TRY(rp_vec_zeros(&b->name_of, b->t->str.n, err));
    RP_TRY(rp_vec_push(&b->g->names, "", err));
    RP_TRY(rp_vec_reserve(&b->g->arrivals, n + 1, err));
    for (i = 0; i < n; i++) {
        b->g->arrivals.at[i] = RP_NONE;
        RP_TRY(rp_map_put(&b->collective_of, b->collectives->list.at[i].event, (uint32_t)i, err));
    }
    b->g->arrivals.n = n;
    RP_TRY(rp_vec_reserve(&b->g->nodes, 2 * b->spans.n + b->work->items.n + n + 2, err));
    return push_node(b, origin, err);
}

enum rp_code rp_sg_make_nodes(struct rp_sg_builder *b, struct rp_err *err)
{
    struct nodes_ctx s = {.b = b};
    enum rp_code code = prepare(b, err);

    if (code == RP_OK)
        code = slice_threads(&s, err);
    rp_vec_release(&s.open);
    if (code == RP_OK && b->collectives->on_host)
        code = insert_arrivals(b, err);
    return code == RP_OK ? add_streams(b, err) : code;
}
