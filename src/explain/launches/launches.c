/* SPDX-License-Identifier: Apache-2.0 */
/* The launches of one rank by call, kernel, stream or one by one; then its queues and copies. */
#include "explain/launches/launches.h"

#include "facts/launches.h"

#include <stdio.h>

struct grouper {
    const struct rp_trace *t;
    struct rp_work w;
    struct rp_queues q;
    struct rp_launches_part *out;
    char by; /* first letter of the word */
};

/* What a launch belongs to: its text in `buf` or in the trace. */
static const char *key_of(const struct grouper *g, const struct rp_launch *launch, char *buf,
                          size_t cap, size_t *len)
{
    const struct rp_work_item *x = &g->w.items.at[launch->item];
    rp_str s = g->by == 'k' ? g->t->ev.name[x->event] : g->t->ev.name[launch->call];
    rp_link link = g->t->ev.link[launch->call];

    if (g->by == 'c' || g->by == 'k') {
        *len = rp_trace_str_len(g->t, s);
        return rp_trace_str(g->t, s);
    }
    if (g->by == 's')
        rp_work_stream_label(&g->w, x->stream, buf, cap);
    else
        snprintf(buf, cap, "%lld %.100s",
                 link == RP_NONE ? (long long)launch->call : (long long)g->t->links.native_id[link],
                 rp_trace_str(g->t, s));
    *len = strlen(buf);
    return buf;
}

static enum rp_code add_samples(struct grouper *g, struct rp_err *err)
{
    char buf[160];
    size_t i, len;

    RP_TRY(rp_strtab_init(&g->out->names, err));
    RP_TRY(rp_vec_reserve(&g->out->samples, g->q.list.n + 1, err));
    for (i = 0; i < g->q.list.n; i++) {
        const struct rp_launch *launch = &g->q.list.at[i];
        struct rp_launch_sample sample = {0, launch->call_ns, launch->device_ns, launch->delay_ns};
        const char *key = key_of(g, launch, buf, sizeof buf, &len);

        RP_TRY(rp_strtab_intern(&g->out->names, key, len, &sample.name, err));
        RP_TRY(rp_vec_push(&g->out->samples, sample, err));
    }
    return RP_OK;
}

enum rp_code rp_launches_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                              const char *by, struct rp_arena *arena, struct rp_launches_part *out,
                              struct rp_err *err)
{
    struct grouper g = {.t = trace, .out = out, .by = by[0]};
    enum rp_code code;

    *out = (struct rp_launches_part){0};
    code = rp_work_init(&g.w, trace, scope, err);
    if (code == RP_OK)
        code = rp_queues_init(&g.q, &g.w, err);
    if (code == RP_OK)
        code = add_samples(&g, err);
    if (code == RP_OK)
        code = rp_launches_look_at_queues(&g.w, &g.q, arena, out, err);
    if (code == RP_OK)
        code = rp_launches_look_at_copies(&g.w, arena, out, err);
    out->items = (int64_t)g.w.items.n;
    out->launched = (int64_t)g.q.list.n;
    rp_queues_release(&g.q);
    rp_work_release(&g.w);
    return code;
}

void rp_launches_part_release(struct rp_launches_part *part)
{
    rp_strtab_release(&part->names);
    rp_vec_release(&part->samples);
}
