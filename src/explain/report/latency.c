/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency of an operator = its start - the latest end among its inputs. Operators are taken in the
 * order of their starts, so that for a name that occurs again (in another step) the previous
 * occurrence counts. An operator that starts before its input ends has no latency. An input from
 * another device counts from the end of its sender, so that the transfer is part of the latency.
 */
#include "base/decides.h"
#include "explain/report/report.h"

#include "base/strtab.h"
#include "facts/arg_keys.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_INPUTS 64
RP_LIMIT(MOST_INPUTS, "inputs of an operator", "later ones are not looked at");

struct latency_ctx {
    const struct rp_trace *t;
    struct rp_strtab names;
    RP_VEC(int64_t) end; /* by name: its last end, INT64_MIN: not yet */
    RP_VEC(rp_event) ops;
    RP_VEC(int64_t) latency;
    struct rp_arg_key name, input[MOST_INPUTS];
    int ninputs;
    rp_event slowest;
    int64_t most_ns;
};

static int by_start(const void *pa, const void *pb, void *user)
{
    rp_event a = *(const rp_event *)pa, b = *(const rp_event *)pb;
    const int64_t *ts = user;

    if (ts[a] != ts[b])
        return ts[a] < ts[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* The length of a name without "/_39" or "_S39", which TensorFlow appends where a value is received
   from another device; the row of the receiver is not recorded, but the operator that sent it
   is. */
static size_t sender_len(const char *text, size_t len)
{
    size_t n = len;

    while (n > 0 && text[n - 1] >= '0' && text[n - 1] <= '9')
        n--;
    if (n < len && n > 2 &&
        ((text[n - 2] == '/' && text[n - 1] == '_') || (text[n - 2] == '_' && text[n - 1] == 'S')))
        return n - 2;
    return len;
}

/* Finds a node: "^node" and "node:1" mean the node. */
static uint32_t find_node(const struct latency_ctx *w, rp_str s)
{
    const char *text = rp_trace_str(w->t, s), *colon = strrchr(text, ':');
    size_t len = colon && strspn(colon + 1, "0123456789") == strlen(colon + 1)
                     ? (size_t)(colon - text)
                     : rp_trace_str_len(w->t, s);

    if (*text == '^') {
        text++;
        len--;
    }
    uint32_t node = rp_strtab_find(&w->names, text, len);
    return node != UINT32_MAX ? node : rp_strtab_find(&w->names, text, sender_len(text, len));
}

/* The latest end among the inputs of an operator; INT64_MIN if none was recorded. */
static int64_t ready_at(const struct latency_ctx *w, rp_event op)
{
    int64_t ready = INT64_MIN;
    rp_str input;

    for (int i = 0; i < w->ninputs; i++) {
        if (!rp_arg_key_text(&w->input[i], op, &input))
            continue;
        uint32_t node = find_node(w, input);
        if (node != UINT32_MAX && node < w->end.n && w->end.at[node] > ready)
            ready = w->end.at[node];
    }
    return ready;
}

static enum rp_code find_keys(struct latency_ctx *w, struct rp_err *err)
{
    char key[24];

    RP_TRY(rp_arg_key_init(&w->name, w->t, "name", err));
    while (w->name.key != RP_NONE && w->ninputs < MOST_INPUTS) {
        struct rp_arg_key *input = &w->input[w->ninputs];

        snprintf(key, sizeof key, "input%d", w->ninputs);
        RP_TRY(rp_arg_key_init(input, w->t, key, err));
        if (input->key == RP_NONE)
            break;
        w->ninputs++;
    }
    return RP_OK;
}

static enum rp_code list_ops(struct latency_ctx *w, struct rp_err *err)
{
    union {
        const int64_t *given;
        void *user;
    } ts = {.given = w->t->ev.ts_ns};
    rp_str s;
    uint32_t id;

    for (rp_event e = 0; e < w->t->ev.n; e++) {
        if (w->t->ev.kind[e] != RP_KIND_CPU_OP || w->t->ev.dur_ns[e] < 0 ||
            !rp_arg_key_text(&w->name, e, &s))
            continue;
        RP_TRY(rp_vec_push(&w->ops, e, err));
        RP_TRY(rp_strtab_intern(&w->names, rp_trace_str(w->t, s), rp_trace_str_len(w->t, s), &id,
                                err));
    }
    while (w->end.n < w->names.n)
        RP_TRY(rp_vec_push(&w->end, INT64_MIN, err));
    if (w->ops.n)
        qsort_r(w->ops.at, w->ops.n, sizeof *w->ops.at, by_start, ts.user);
    return RP_OK;
}

static enum rp_code measure_ops(struct latency_ctx *w, struct rp_err *err)
{
    rp_str s = 0;

    for (size_t i = 0; i < w->ops.n; i++) {
        rp_event op = w->ops.at[i];
        int64_t ready = ready_at(w, op), latency;

        if (ready != INT64_MIN && ready <= w->t->ev.ts_ns[op]) {
            latency = rp_ns_between(ready, w->t->ev.ts_ns[op]);
            RP_TRY(rp_vec_push(&w->latency, latency, err));
            if (latency >= w->most_ns) {
                w->most_ns = latency;
                w->slowest = op;
            }
        }
        if (rp_arg_key_text(&w->name, op, &s))
            w->end.at[rp_strtab_find(&w->names, rp_trace_str(w->t, s), rp_trace_str_len(w->t, s))] =
                rp_event_end_ns(w->t, op);
    }
    return RP_OK;
}

static enum rp_code fill_latency(struct latency_ctx *w, struct rp_arena *arena,
                                 struct rp_report_latency *out, struct rp_err *err)
{
    size_t n = w->latency.n;
    rp_str s = 0;

    if (!n)
        return RP_OK;
    rp_ns_sort(w->latency.at, n);
    out->ops = (int64_t)n;
    out->p50_ns = rp_ns_percentile(w->latency.at, n, 50);
    out->p90_ns = rp_ns_percentile(w->latency.at, n, 90);
    out->max_ns = w->latency.at[n - 1];
    rp_arg_key_text(&w->name, w->slowest, &s);
    out->slowest = rp_arena_text(arena, rp_trace_str(w->t, s));
    return rp_arena_check(arena, "measuring latencies", err);
}

enum rp_code rp_report_measure_latency(const struct rp_trace *trace, struct rp_arena *arena,
                                       struct rp_report_latency *out, struct rp_err *err)
{
    struct latency_ctx w = {.t = trace, .slowest = RP_NONE};
    enum rp_code code = find_keys(&w, err);

    *out = (struct rp_report_latency){0};
    if (code == RP_OK && w.ninputs) {
        code = rp_strtab_init(&w.names, err);
        if (code == RP_OK)
            code = list_ops(&w, err);
        if (code == RP_OK)
            code = measure_ops(&w, err);
        if (code == RP_OK)
            code = fill_latency(&w, arena, out, err);
    }
    for (int i = 0; i < w.ninputs; i++)
        rp_arg_key_release(&w.input[i]);
    rp_arg_key_release(&w.name);
    rp_strtab_release(&w.names);
    rp_vec_release(&w.end);
    rp_vec_release(&w.ops);
    rp_vec_release(&w.latency);
    return code;
}
