/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links device work to the host call that started it: by correlation id; device work without a call
 * by the flow arrow of a launch; and work that still has none is linked to the operator with the
 * same "External id". Then the members of each link are listed: host calls first, then device work,
 * each in time order. Links without members are dropped.
 *
 * Linear, except for sorting the members of one link.
 */
#include "base/each.h"
#include "base/filled.h"
#include "trace/build/dense_ids.h"
#include "trace/build/state.h"
#include "trace/finish/finish.h"

#include <stdlib.h>

struct link_ctx {
    struct rp_builder *b;
    RP_VEC(uint8_t) has_host; /* by link */
    rp_id_vec id;
    RP_VEC(uint32_t) dense, first;
};

static bool on_device(const struct rp_builder *b, rp_event e)
{
    uint8_t kind = b->ev.kind.at[e];

    return rp_kind_is_device_work(kind) || kind == RP_KIND_SYNC || kind == RP_KIND_GPU_ANNOTATION ||
           b->tracks.at[b->ev.track.at[e]].kind == RP_TRACK_STREAM;
}

static bool lacks_host(const struct link_ctx *w, rp_event e)
{
    uint32_t link = w->b->ev.link.at[e];

    return rp_kind_is_device_work(w->b->ev.kind.at[e]) &&
           (link == RP_NONE || !w->has_host.at[link]);
}

/* Whether some device work has no host call. Fills has_host. */
static enum rp_code find_hosts(struct link_ctx *w, bool *lacking, struct rp_err *err)
{
    struct rp_builder *b = w->b;

    RP_TRY(rp_vec_zeros(&w->has_host, b->links.native_id.n, err));
    w->has_host.n = b->links.native_id.n;
    for (rp_event e = 0; e < b->ev.n; e++)
        if (b->ev.link.at[e] != RP_NONE && !on_device(b, e))
            w->has_host.at[b->ev.link.at[e]] = 1;
    *lacking = false;
    for (rp_event e = 0; e < b->ev.n && !*lacking; e++)
        *lacking = lacks_host(w, e);
    return RP_OK;
}

static enum rp_code new_link(struct link_ctx *w, int64_t id, enum rp_link_source source,
                             uint32_t *link, struct rp_err *err)
{
    if (w->b->links.native_id.n >= RP_NONE - 1)
        return rp_err_set(err, RP_LIMIT, "more than %u links", RP_NONE - 1);
    *link = (uint32_t)w->b->links.native_id.n;
    RP_TRY(rp_vec_push(&w->b->links.native_id, id, err));
    RP_TRY(rp_vec_push(&w->b->links.source, (uint8_t)source, err));
    return rp_vec_push(&w->has_host, 0, err);
}

/* An event that joins the link of another one also takes over whether the id of the link is a
   text. */
static void copy_id_kind(struct link_ctx *w, rp_event from, rp_event to)
{
    uint8_t *flags = w->b->ev.flags.at;

    flags[to] = (flags[to] & (uint8_t)~RP_EVENT_ID_TEXT) | (flags[from] & RP_EVENT_ID_TEXT);
}

/* Puts host and device into one link: the host's, else the device's, else a new one. */
static enum rp_code link_events(struct link_ctx *w, rp_event host, rp_event device, int64_t id,
                                enum rp_link_source source, struct rp_err *err)
{
    uint32_t *link = w->b->ev.link.at;

    if (w->b->ev.flags.at[host] & RP_EVENT_ASYNC)
        return RP_OK;
    if (link[host] == RP_NONE && link[device] != RP_NONE && source == RP_LINK_FLOW) {
        link[host] = link[device];
        copy_id_kind(w, device, host);
    } else if (link[host] == RP_NONE) {
        RP_TRY(new_link(w, id, source, &link[host], err));
    }
    link[device] = link[host];
    copy_id_kind(w, host, device);
    w->has_host.at[link[host]] = 1;
    return RP_OK;
}

/* Dense numbers of the collected ids, and room for the first event of each. */
static enum rp_code number_ids(struct link_ctx *w, struct rp_err *err)
{
    uint32_t n;

    w->dense.n = w->first.n = 0;
    RP_TRY(rp_vec_reserve(&w->dense, w->id.n + 1, err));
    RP_TRY(rp_dense_ids(w->id.at, w->id.n, w->dense.at, &n, err));
    RP_TRY(rp_vec_nones(&w->first, n, err));
    return RP_OK;
}

static enum rp_code join_by_flows(struct link_ctx *w, struct rp_err *err)
{
    struct rp_build_flows *flows = &w->b->flows;
    rp_str names[RP_LAUNCH_FLOWS];

    rp_build_launch_flow_names(w->b, names);
    w->id.n = 0;
    for (uint32_t i = 0; i < flows->n; i++)
        RP_TRY(rp_vec_push(&w->id, flows->id.at[i], err));
    RP_TRY(number_ids(w, err));
    for (uint32_t i = 0; i < flows->n; i++)
        if (w->b->origins.at[flows->origin.at[i]].phase == 's' && flows->event.at[i] != RP_NONE &&
            !on_device(w->b, flows->event.at[i]) && rp_build_flow_is_launch(w->b, names, i))
            w->first.at[w->dense.at[i]] = i;
    for (uint32_t i = 0; i < flows->n; i++) {
        uint32_t start = w->first.at[w->dense.at[i]];
        rp_event device = flows->event.at[i];

        if (start != RP_NONE && device != RP_NONE && flows->name.at[start] == flows->name.at[i] &&
            !((flows->flags.at[start] ^ flows->flags.at[i]) & RP_FLOW_ID_TEXT) &&
            w->b->origins.at[flows->origin.at[i]].phase != 's' && lacks_host(w, device))
            RP_TRY(
                link_events(w, flows->event.at[start], device, flows->id.at[i], RP_LINK_FLOW, err));
    }
    return RP_OK;
}

/* The "External id" of an event that can be linked by it, else 0. */
static int64_t external_id(const struct link_ctx *w, const uint32_t *column, rp_str key, rp_event e)
{
    const struct rp_args *args = &w->b->trace->args;
    uint16_t shape = w->b->ev.shape.at[e];
    struct rp_arg arg;

    if (w->b->ev.kind.at[e] != RP_KIND_CPU_OP && !lacks_host(w, e))
        return 0;
    if (shape != RP_SHAPE_SPILLED)
        return column[shape] == UINT32_MAX || args->key_type[column[shape]] != RP_ARG_I64
                   ? 0
                   : rp_args_cell(args, column[shape], w->b->ev.arg_row.at[e]);
    return rp_args_find(args, shape, w->b->ev.arg_row.at[e], key, &arg) && arg.type == RP_ARG_I64
               ? arg.v.i
               : 0;
}

/* Collects the ids of all events, so that dense[e] belongs to event e. */
static enum rp_code join_by_external_id(struct link_ctx *w, const uint32_t *column, rp_str key,
                                        struct rp_err *err)
{
    struct rp_build_events *ev = &w->b->ev;

    w->id.n = 0;
    for (rp_event e = 0; e < ev->n; e++)
        RP_TRY(rp_vec_push(&w->id, external_id(w, column, key, e), err));
    RP_TRY(number_ids(w, err));
    for (rp_event e = 0; e < ev->n; e++)
        if (w->id.at[e] && ev->kind.at[e] == RP_KIND_CPU_OP &&
            w->first.at[w->dense.at[e]] == RP_NONE)
            w->first.at[w->dense.at[e]] = e;
    for (rp_event e = 0; e < ev->n; e++)
        if (w->id.at[e] && lacks_host(w, e) && w->first.at[w->dense.at[e]] != RP_NONE)
            RP_TRY(
                link_events(w, w->first.at[w->dense.at[e]], e, w->id.at[e], RP_LINK_EXTERNAL, err));
    return RP_OK;
}

static enum rp_code try_external_ids(struct link_ctx *w, struct rp_err *err)
{
    const struct rp_args *args = &w->b->trace->args;
    rp_str key = rp_build_find_str(w->b, "External id");
    rp_row_vec column = {0};

    if (key == RP_NONE)
        key = rp_build_find_str(w->b, "external id"); /* in files of 2021 */
    if (key == RP_NONE)
        return RP_OK;
    RP_TRY(rp_vec_reserve(&column, args->nshapes, err));
    for (uint32_t s = 0; s < args->nshapes; s++)
        column.at[s] = rp_args_column(args, (uint16_t)s, key);
    enum rp_code code = join_by_external_id(w, column.at, key, err);
    rp_vec_release(&column);
    return code;
}

/* Drops links without members; member_offset becomes the start of each. */
static enum rp_code count_members(struct link_ctx *w, struct rp_err *err)
{
    struct rp_builder *b = w->b;
    uint32_t n = (uint32_t)b->links.native_id.n, kept = 0, total = 0, i;

    RP_TRY(rp_vec_zeros(&b->member_offset, n, err));
    for (rp_event e = 0; e < b->ev.n; e++)
        if (b->ev.link.at[e] != RP_NONE)
            b->member_offset.at[b->ev.link.at[e]]++;
    RP_TRY(rp_vec_reserve(&w->first, (size_t)n + 1, err));
    for (i = 0; i < n; i++) {
        uint32_t count = b->member_offset.at[i];

        w->first.at[i] = kept;
        if (count == 0)
            continue;
        b->links.native_id.at[kept] = b->links.native_id.at[i];
        b->links.source.at[kept] = b->links.source.at[i];
        b->member_offset.at[kept++] = total;
        total += count;
    }
    b->member_offset.at[kept] = total;
    b->member_offset.n = (size_t)kept + 1;
    b->links.native_id.n = b->links.source.n = kept;
    for (rp_event e = 0; kept < n && e < b->ev.n; e++)
        if (b->ev.link.at[e] != RP_NONE)
            b->ev.link.at[e] = w->first.at[b->ev.link.at[e]];
    return RP_OK;
}

static int by_time(const void *pa, const void *pb, void *user)
{
    rp_event a = *(const rp_event *)pa, b = *(const rp_event *)pb;
    const int64_t *ts = user;

    if (ts[a] != ts[b])
        return ts[a] < ts[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Members come in canonical order, track by track; mostly they are in time order already. */
static void sort_by_time(struct rp_builder *b, rp_event *member, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (by_time(&member[i - 1], &member[i], b->ev.ts_ns.at) > 0) {
            qsort_r(member, n, sizeof *member, by_time, b->ev.ts_ns.at);
            return;
        }
}

static enum rp_code list_members(struct link_ctx *w, struct rp_err *err)
{
    struct rp_builder *b = w->b;
    uint32_t n = (uint32_t)b->links.native_id.n, i;
    uint32_t *offset = b->member_offset.at, *at, *nhost;

    RP_TRY(rp_vec_reserve(&b->member, (size_t)offset[n] + 1, err));
    RP_TRY(rp_vec_reserve(&w->first, (size_t)n + 1, err));
    RP_TRY(rp_vec_reserve(&w->dense, (size_t)n + 1, err));
    at = w->first.at;
    nhost = w->dense.at;
    memcpy(at, offset, n * sizeof *at);
    for (int device = 0; device < 2; device++) {
        for (rp_event e = 0; e < b->ev.n; e++)
            if (b->ev.link.at[e] != RP_NONE && on_device(b, e) == device)
                b->member.at[at[b->ev.link.at[e]]++] = e;
        if (device == 0)
            memcpy(nhost, at, n * sizeof *at);
    }
    for (i = 0; i < n; i++) {
        sort_by_time(b, b->member.at + offset[i], nhost[i] - offset[i]);
        sort_by_time(b, b->member.at + nhost[i], offset[i + 1] - nhost[i]);
    }
    return RP_OK;
}

static enum rp_code link_all(struct link_ctx *w, struct rp_err *err)
{
    bool lacking;

    RP_TRY(find_hosts(w, &lacking, err));
    if (lacking && w->b->flows.n)
        RP_TRY(join_by_flows(w, err));
    if (lacking)
        RP_TRY(try_external_ids(w, err));
    RP_TRY(count_members(w, err));
    return list_members(w, err);
}

enum rp_code rp_pass_links(struct rp_builder *b, struct rp_err *err)
{
    struct link_ctx w = {.b = b};
    enum rp_code code = link_all(&w, err);

    RP_EACH(rp_vec_release, &w.has_host, &w.id, &w.dense, &w.first);
    return code;
}
