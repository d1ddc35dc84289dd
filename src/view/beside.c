/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists what the device did at the same time as one of its events: other events that overlap with
 * it, added up by name. The rows of the index find them by bisection.
 */
#include "base/hash.h"
#include "base/order.h"
#include "view/view.h"

#include <inttypes.h>

#define EVENTS_MOST 200000
#define NAMES_MOST  12

struct beside {
    rp_str name;
    uint32_t count;
    int64_t ns;
};

struct sums {
    const struct rp_trace *t;
    rp_event of;
    struct rp_map by_name;
    RP_VEC(struct beside) list;
    uint32_t seen;
};

RP_ORDER(by_time, struct beside, RP_DOWN(ns), RP_UP(name))

static enum rp_code add_event(struct sums *s, rp_event e, struct rp_err *err)
{
    const struct rp_trace *t = s->t;
    int64_t begin = t->ev.ts_ns[e] > t->ev.ts_ns[s->of] ? t->ev.ts_ns[e] : t->ev.ts_ns[s->of];
    int64_t end = rp_event_end_ns(t, e) < rp_event_end_ns(t, s->of) ? rp_event_end_ns(t, e)
                                                                    : rp_event_end_ns(t, s->of);
    struct beside fresh = {.name = t->ev.name[e]};
    uint32_t at, next = (uint32_t)s->list.n;

    if (e == s->of || begin >= end || !rp_kind_is_device_work(t->ev.kind[e]))
        return RP_OK;
    RP_TRY(rp_map_intern(&s->by_name, fresh.name, next, &at, err));
    if (at == next)
        RP_TRY(rp_vec_push(&s->list, fresh, err));
    s->list.at[at].count++;
    rp_ns_add(&s->list.at[at].ns, rp_ns_between(begin, end));
    return RP_OK;
}

static enum rp_code add_rows(struct sums *s, const struct rp_view_index *index, struct rp_err *err)
{
    int64_t end = rp_event_end_ns(s->t, s->of);

    for (size_t r = 0; r < index->rows.n; r++) {
        const struct rp_view_row *row = &index->rows.at[r];
        const rp_event *e = index->event.at + row->first;
        uint32_t i = rp_view_row_from(index, s->t, row, s->t->ev.ts_ns[s->of]);

        if (s->t->tracks[row->track].kind != RP_TRACK_STREAM)
            continue;
        for (i -= i > 0; i < row->n && s->t->ev.ts_ns[e[i]] < end && s->seen < EVENTS_MOST; i++) {
            s->seen++;
            RP_TRY(add_event(s, e[i], err));
        }
    }
    return RP_OK;
}

enum rp_code rp_view_put_beside(const struct rp_view_rank *rank, rp_event e, struct rp_out *to,
                                struct rp_err *err)
{
    struct sums s = {.t = rank->trace, .of = e};
    enum rp_code code = RP_OK;

    if (rp_kind_is_device_work(s.t->ev.kind[e]))
        code = add_rows(&s, &rank->index, err);
    rp_sort(s.list.at, s.list.n, sizeof *s.list.at, by_time);
    rp_out_text(to, ",\"beside\":[");
    for (size_t i = 0; i < s.list.n && i < NAMES_MOST; i++) {
        rp_out_printf(to, "%s{\"ns\":%" PRId64 ",\"count\":%u,", i ? "," : "", s.list.at[i].ns,
                      s.list.at[i].count);
        rp_view_put_text(to, "name", rp_trace_str(s.t, s.list.at[i].name));
        rp_out_char(to, '}');
    }
    rp_out_char(to, ']');
    rp_map_release(&s.by_name);
    rp_vec_release(&s.list);
    return code;
}
