/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds arrows of a recording: from a forward operator to its backward one, or from a request to
 * the work that serves it. Their ends are matched by id and name in the order of time: a start
 * ('s') begins an arrow, a step ('t') continues it, an end ('f') closes it, and a later start of
 * the same id begins anew. Nothing is stored: each event needs a pass over the ends, which takes
 * milliseconds for a million.
 */
#include "base/hash.h"
#include "base/order.h"
#include "view/view.h"

struct end {
    uint64_t id;
    int64_t ts_ns;
    uint32_t order; /* at the same time, starts come before steps, and steps before ends */
    uint32_t flow;
};

typedef RP_VEC(struct end) end_vec;

RP_ORDER(by_id, struct end, RP_UP(id), RP_UP(ts_ns), RP_UP(order), RP_UP(flow))

static bool is_bound(const struct rp_flows *f, uint32_t i)
{
    return f->event[i] != RP_NONE && !(f->flags[i] & RP_FLOW_NO_ID);
}

static uint64_t id_of(const struct rp_flows *f, uint32_t i)
{
    return rp_hash_join(rp_hash_join((uint64_t)f->id[i], f->name[i]),
                        f->flags[i] & RP_FLOW_ID_TEXT);
}

/* Finds the ends whose ids are in `wanted`; NULL for all. */
static enum rp_code find_ends(const struct rp_trace *t, const struct rp_map *wanted, end_vec *out,
                              struct rp_err *err)
{
    const struct rp_flows *f = &t->flows;

    for (uint32_t i = 0; i < f->n; i++) {
        struct end end = {.flow = i, .ts_ns = f->ts_ns[i]};
        char phase = t->origins[f->origin[i]].phase;

        if (!is_bound(f, i))
            continue;
        end.id = id_of(f, i);
        end.order = phase == 's' ? 0 : phase == 't' ? 1 : 2;
        if (!wanted || rp_map_get(wanted, end.id) != RP_MAP_NONE)
            RP_TRY(rp_vec_push(out, end, err));
    }
    rp_sort(out->at, out->n, sizeof *out->at, by_id);
    return RP_OK;
}

/* Whether it is a launch and its device work, which are a link and have an arrow already. */
static bool is_launch(const struct rp_trace *t, rp_event from, rp_event to)
{
    return t->ev.link[from] != RP_NONE && t->ev.link[from] == t->ev.link[to];
}

static enum rp_code join_ends(const struct rp_trace *t, const end_vec *ends, rp_view_arrows *out,
                              struct rp_err *err)
{
    rp_event from = RP_NONE;

    for (size_t i = 0; i < ends->n; i++) {
        const struct end *end = &ends->at[i];
        struct rp_view_arrow arrow = {.to = t->flows.event[end->flow],
                                      .name = t->flows.name[end->flow]};

        if (!i || end->id != ends->at[i - 1].id)
            from = RP_NONE;
        arrow.from = from;
        if (end->order && from != RP_NONE && from != arrow.to && !is_launch(t, from, arrow.to))
            RP_TRY(rp_vec_push(out, arrow, err));
        if (end->order < 2)
            from = arrow.to;
    }
    return RP_OK;
}

enum rp_code rp_view_find_arrows(const struct rp_trace *t, rp_event event, rp_view_arrows *out,
                                 struct rp_err *err)
{
    const struct rp_flows *f = &t->flows;
    enum rp_code code = RP_OK;
    struct rp_map wanted = {0};
    end_vec ends = {0};
    bool any = event == RP_NONE;

    for (uint32_t i = 0; event != RP_NONE && code == RP_OK && i < f->n; i++)
        if (f->event[i] == event && is_bound(f, i)) {
            code = rp_map_put(&wanted, id_of(f, i), 1, err);
            any = true;
        }
    if (code == RP_OK && any)
        code = find_ends(t, event == RP_NONE ? NULL : &wanted, &ends, err);
    if (code == RP_OK)
        code = join_ends(t, &ends, out, err);
    rp_map_release(&wanted);
    rp_vec_release(&ends);
    return code;
}
