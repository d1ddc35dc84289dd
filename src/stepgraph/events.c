/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links work by an event that is recorded on one stream and waited for on another: the next work of
 * the waiting stream follows the last work that was launched on the other one before the event was
 * recorded. Records of the waits (cuda_sync) tell streams and versions. Without them the order of
 * the calls does: a thread's last cudaEventRecord before its cudaStreamWaitEvent follows the work
 * it launched last, and the work that it launches next is the one that waits. Such edges are marked
 * as inferred, and left out where the times contradict.
 */
#include "base/filled.h"
#include "base/order.h"
#include "stepgraph/build.h"

#include <string.h>

static enum rp_code map_calls(struct rp_sg_waits *w, struct rp_err *err)
{
    const struct rp_links *links = &w->work->trace->links;
    uint32_t i, call;

    for (i = 0; i < links->n; i++)
        if (links->source[i] == RP_LINK_CORRELATION && links->offset[i] < links->offset[i + 1])
            RP_TRY(rp_map_intern(&w->call_of, (uint64_t)links->native_id[i],
                                 links->member[links->offset[i]], &call, err));
    return RP_OK;
}

enum rp_code rp_sg_waits_init(struct rp_sg_waits *w, const struct rp_work *work, struct rp_err *err)
{
    *w = (struct rp_sg_waits){.work = work};
    RP_TRY(rp_arg_key_init(&w->stream, work->trace, "stream", err));
    RP_TRY(rp_arg_key_init(&w->on_stream, work->trace, "wait_on_stream", err));
    RP_TRY(rp_arg_key_init(&w->record, work->trace, "wait_on_cuda_event_record_corr_id", err));
    return w->record.key == RP_NONE ? RP_OK : map_calls(w, err);
}

void rp_sg_waits_release(struct rp_sg_waits *w)
{
    rp_arg_key_release(&w->stream);
    rp_arg_key_release(&w->on_stream);
    rp_arg_key_release(&w->record);
    rp_map_release(&w->call_of);
}

static uint32_t stream_of(const struct rp_work *work, const struct rp_arg_key *key, rp_event e)
{
    int64_t number;

    if (!rp_arg_key_int(key, e, &number))
        return RP_NONE;
    for (uint32_t i = 0; i < work->streams.n; i++)
        if (!work->streams.at[i].text && work->streams.at[i].number == number)
            return i;
    return RP_NONE;
}

struct rp_sg_wait rp_sg_wait_of(const struct rp_sg_waits *w, rp_event record)
{
    struct rp_sg_wait wait = {stream_of(w->work, &w->stream, record),
                              stream_of(w->work, &w->on_stream, record), INT64_MAX};
    int64_t correlation;
    uint32_t call = RP_MAP_NONE;

    if (rp_arg_key_int(&w->record, record, &correlation))
        call = rp_map_get(&w->call_of, (uint64_t)correlation);
    if (call != RP_MAP_NONE)
        wait.record_ns = w->work->trace->ev.ts_ns[call];
    return wait;
}

rp_event rp_sg_wait_record(const struct rp_trace *t, rp_event call)
{
    rp_link link = t->ev.link[call];

    if (link == RP_NONE)
        return RP_NONE;
    for (uint32_t i = t->links.offset[link]; i < t->links.offset[link + 1]; i++)
        if (t->ev.kind[t->links.member[i]] == RP_KIND_SYNC)
            return t->links.member[i];
    return RP_NONE;
}

/* ------------------------------------------------------------------ as recorded */

/* Returns when by_stream[i], an item of a stream, was launched. */
static int64_t launch_ns(const struct rp_sg_builder *b, uint32_t i)
{
    const struct rp_work_item *x = &b->work->items.at[b->by_stream.at[i]];

    return x->launch == RP_NONE ? x->begin_ns : b->t->ev.ts_ns[x->launch];
}

/* Returns the first work of a stream that was launched at or after a moment: work of a stream
   starts in the order of its launches. */
static uint32_t item_launched_from(const struct rp_sg_builder *b, uint32_t stream, int64_t ns)
{
    uint32_t i, end = b->stream_end.at[stream];

    RP_LOWER_BOUND_FROM(i, end - b->work->streams.at[stream].nitems, end, launch_ns(b, i) < ns);
    return i < end ? b->by_stream.at[i] : RP_SG_NO_ITEM;
}

static enum rp_code link_wait(struct rp_sg_builder *b, const struct rp_sg_waits *w, rp_event record,
                              struct rp_err *err)
{
    struct rp_sg_wait wait = rp_sg_wait_of(w, record);
    int64_t ns = b->t->ev.ts_ns[record];

    if (wait.stream == RP_NONE || wait.on_stream == RP_NONE || wait.stream == wait.on_stream)
        return RP_OK;
    uint32_t to = item_launched_from(b, wait.stream, ns);
    if (to == RP_SG_NO_ITEM)
        return RP_OK;
    uint32_t from = rp_sg_stream_item_before(b, wait.on_stream, b->work->items.at[to].begin_ns,
                                             wait.record_ns < ns ? wait.record_ns : ns);
    if (from == RP_SG_NO_ITEM)
        return RP_OK;
    return rp_sg_add_edge(b->g, rp_sg_item_end(b, from), b->item_node.at[to], RP_SG_EVENT, 0, err);
}

static enum rp_code link_recorded(struct rp_sg_builder *b, bool *any, struct rp_err *err)
{
    RP_SCOPED(rp_sg_waits_release) struct rp_sg_waits w = {0};

    RP_TRY(rp_sg_waits_init(&w, b->work, err));
    for (rp_event e = 0; e < b->t->ev.n && w.on_stream.key != RP_NONE; e++)
        if (b->t->ev.kind[e] == RP_KIND_SYNC && b->t->ev.ts_ns[e] != RP_NO_TS &&
            !strcmp(rp_trace_str(b->t, b->t->ev.name[e]), "Stream Wait Event")) {
            *any = true;
            RP_TRY(link_wait(b, &w, e, err));
        }
    return RP_OK;
}

/* ------------------------------------------------------------------ from the order of calls */

/* The state of a thread while its calls are walked in order. */
struct call_state {
    struct rp_sg_builder *b;
    rp_str record, wait; /* names of the calls */
    uint32_t last;       /* item it launched last */
    uint32_t recorded;   /* the item that it had launched last when it last recorded an event */
    bool waits;          /* the next launch waits for `recorded` */
};

static rp_str find_name(const struct rp_trace *t, const char *cuda, const char *hip)
{
    for (rp_str s = 0; s < t->str.n; s++)
        if (!strcmp(rp_trace_str(t, s), cuda) || !strcmp(rp_trace_str(t, s), hip))
            return s;
    return RP_NONE;
}

static enum rp_code launched(struct call_state *c, uint32_t item, struct rp_err *err)
{
    const struct rp_work_item *items = c->b->work->items.at;
    bool waits = c->waits && c->recorded != RP_SG_NO_ITEM;

    c->waits = false;
    c->last = item;
    if (!waits || items[c->recorded].stream == items[item].stream ||
        items[c->recorded].end_ns > items[item].begin_ns)
        return RP_OK;
    return rp_sg_add_edge(c->b->g, rp_sg_item_end(c->b, c->recorded), c->b->item_node.at[item],
                          RP_SG_EVENT, RP_SG_INFERRED, err);
}

static enum rp_code walk_calls(struct call_state *c, uint32_t lane, const uint32_t *first_item,
                               struct rp_err *err)
{
    const struct rp_sg_thread *thread = &c->b->threads.at[lane];

    c->last = c->recorded = RP_SG_NO_ITEM;
    c->waits = false;
    for (size_t i = thread->first_span; i < thread->end_span; i++) {
        rp_event e = c->b->spans.at[i];

        if (c->b->t->ev.kind[e] != RP_KIND_RUNTIME)
            continue;
        if (c->b->t->ev.name[e] == c->record)
            c->recorded = c->last;
        else if (c->b->t->ev.name[e] == c->wait)
            c->waits = true;
        else if (first_item[e] != RP_SG_NO_ITEM)
            RP_TRY(launched(c, first_item[e], err));
    }
    return RP_OK;
}

static enum rp_code link_inferred(struct rp_sg_builder *b, struct rp_err *err)
{
    struct call_state c = {.b = b};
    RP_VEC_LOCAL(uint32_t, first_item); /* by event: the item that it launched */

    c.record = find_name(b->t, "cudaEventRecord", "hipEventRecord");
    c.wait = find_name(b->t, "cudaStreamWaitEvent", "hipStreamWaitEvent");
    if (c.record == RP_NONE || c.wait == RP_NONE)
        return RP_OK;
    RP_TRY(rp_vec_nones(&first_item, b->t->ev.n, err));
    for (size_t i = b->work->items.n; i-- > 0;)
        if (b->work->items.at[i].launch != RP_NONE)
            first_item.at[b->work->items.at[i].launch] = (uint32_t)i;
    for (size_t i = 0; i < b->threads.n; i++)
        RP_TRY(walk_calls(&c, (uint32_t)i, first_item.at, err));
    return RP_OK;
}

enum rp_code rp_sg_link_events(struct rp_sg_builder *b, struct rp_err *err)
{
    bool recorded = false;

    if (b->work->streams.n < 2)
        return RP_OK;
    RP_TRY(link_recorded(b, &recorded, err));
    return recorded ? RP_OK : link_inferred(b, err);
}
