/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes queue lengths and copy rates, which are step functions of time: a queue has a value
 * after every launch and every start, a copy rate after every begin and end of a copy of its kind.
 * Sorting makes it O(n log n).
 */
#include "explain/launches/launches.h"

#include "base/decides.h"
#include "base/filled.h"
#include "base/order.h"
#include "facts/arg_keys.h"
#include "facts/work/launches.h"

#include <math.h>
#include <reprise/result.h>
#include <stdlib.h>

#define QUEUE_FULL 1024
RP_FACT(QUEUE_FULL, "launches",
        "a stream of CUDA takes so many before calls wait (docs/definitions.md)");
#define LEAST_NS 1000
RP_FACT(LEAST_NS, "ns", "older traces of PyTorch have whole microseconds: less is recorded as 0");

RP_ORDER(by_double, double, RP_COMPARE(*a, *b))

/* Walks the launches and starts of one stream in the order of time. At equal times the start comes
   first, unless nothing waits. */
static void walk_queue(const struct rp_queues *q, uint32_t stream, int64_t *values,
                       struct rp_launch_queue *out)
{
    const int64_t *up = q->launched + q->begin[stream], *down = q->started + q->begin[stream];
    uint32_t n = q->begin[stream + 1] - q->begin[stream], a = 0, b = 0;
    int64_t length = 0, at = n ? up[0] : 0, begin = at, next;
    double sum = 0, squares = 0, area = 0;
    size_t k = 0;

    while (b < n) {
        bool launch = a < n && (up[a] < down[b] || (up[a] == down[b] && !length));

        next = launch ? up[a++] : down[b++];
        if (next > at) {
            area += (double)length * (double)rp_ns_between(at, next);
            rp_ns_add(&out->full_ns, length >= QUEUE_FULL ? rp_ns_between(at, next) : 0);
            at = next;
        }
        length += launch ? 1 : -1;
        values[k++] = length;
        sum += (double)length;
        squares += (double)length * (double)length;
    }
    out->launches = n;
    out->samples = (int64_t)k;
    out->mean = sum / (double)k;
    out->std = k > 1 ? sqrt((squares - sum * sum / (double)k) / (double)(k - 1)) : 0;
    out->time_mean = at > begin ? area / (double)rp_ns_between(begin, at) : 0;
    rp_ns_sort(values, k);
    out->p50 = rp_ns_percentile(values, k, 50);
    out->max = values[k - 1];
}

enum rp_code rp_launches_measure_queues(const struct rp_work *work, const struct rp_queues *queues,
                                        struct rp_arena *arena, struct rp_launches_part *out,
                                        struct rp_err *err)
{
    int64_t *values = RP_ARENA_NEW(arena, int64_t, 2 * queues->list.n + 1);
    char label[128];

    out->queues = RP_ARENA_NEW(arena, struct rp_launch_queue, queues->nstreams + 1);
    RP_TRY(rp_err_need(values && out->queues, err, "looking at queues"));
    for (uint32_t s = 0; s < queues->nstreams; s++) {
        struct rp_launch_queue *row = &out->queues[out->nqueues];

        if (queues->begin[s + 1] == queues->begin[s])
            continue;
        rp_work_stream_label(work, s, label, sizeof label);
        row->stream = rp_arena_strdup(arena, label);
        RP_TRY(rp_err_need(row->stream, err, "looking at queues"));
        walk_queue(queues, s, values, row);
        out->nqueues++;
    }
    return RP_OK;
}

struct edge { /* of a copy */
    int64_t at_ns;
    double rate; /* change of the rate in bytes per second, negative at an end */
};

struct copies {
    const struct rp_work *w;
    struct rp_arg_key bytes, rate;
    RP_VEC(struct edge) edges;
    RP_VEC(double) values;
    RP_VEC(uint8_t) done; /* by item */
    rp_interval_vec busy;
};

/* Ends first. */
RP_ORDER(by_time, struct edge, RP_UP(at_ns), RP_UP(rate))

/* The length of the kind: "Memcpy HtoD (Pinned -> Device)" is of the kind "Memcpy HtoD". */
static size_t kind_len(const char *name)
{
    const char *end = strstr(name, " (");

    return end ? (size_t)(end - name) : strlen(name);
}

static bool same_kind(const struct copies *c, rp_event a, rp_event b)
{
    const struct rp_trace *t = c->w->trace;
    const char *x = rp_trace_str(t, t->ev.name[a]), *y = rp_trace_str(t, t->ev.name[b]);

    return kind_len(x) == kind_len(y) && !memcmp(x, y, kind_len(x));
}

/* The recorded rate, or else bytes divided by time; 0 if they are not known. */
static double rate_of(const struct copies *c, const struct rp_work_item *x, int64_t bytes)
{
    struct rp_arg arg;
    int64_t dur = rp_ns_between(x->begin_ns, x->end_ns);

    if (rp_arg_key_find(&c->rate, x->event, &arg)) {
        if (arg.type == RP_ARG_F64 && isfinite(arg.v.f))
            return arg.v.f * 1e9;
        if (arg.type == RP_ARG_I64)
            return (double)arg.v.i * 1e9;
    }
    return bytes > 0 ? (double)bytes * 1e9 / (double)(dur > LEAST_NS ? dur : LEAST_NS) : 0;
}

static enum rp_code add_copy(struct copies *c, const struct rp_work_item *x,
                             struct rp_launch_copy *row, struct rp_err *err)
{
    int64_t bytes = 0, dur = rp_ns_between(x->begin_ns, x->end_ns);
    struct rp_interval span = {x->begin_ns, x->end_ns};
    struct edge begin = {x->begin_ns, 0}, end;

    if (rp_arg_key_int(&c->bytes, x->event, &bytes) && row->size_bytes == RP_ABSENT_I64)
        row->size_bytes = 0;
    begin.rate = rate_of(c, x, bytes);
    end = (struct edge){rp_ns_sum(x->begin_ns, dur > LEAST_NS ? dur : LEAST_NS), -begin.rate};
    row->count++;
    if (bytes > 0)
        row->size_bytes = rp_ns_sum(row->size_bytes, bytes);
    RP_TRY(rp_vec_push(&c->busy, span, err));
    if (begin.rate <= 0)
        return RP_OK;
    RP_TRY(rp_vec_push(&c->edges, begin, err));
    return rp_vec_push(&c->edges, end, err);
}

/* Measures the values of the rate while copies of the kind run. */
static enum rp_code measure(struct copies *c, struct rp_launch_copy *row, struct rp_err *err)
{
    double rate = 0, sum = 0;
    int64_t running = 0;

    c->busy.n = rp_union_sort(c->busy.at, c->busy.n);
    row->busy_ns = rp_union_length(c->busy.at, c->busy.n);
    row->whole_bytes_per_s = row->busy_ns > 0 && row->size_bytes > 0
                                 ? (double)row->size_bytes * 1e9 / (double)row->busy_ns
                                 : NAN;
    rp_sort(c->edges.at, c->edges.n, sizeof *c->edges.at, by_time);
    c->values.n = 0;
    for (size_t i = 0; i < c->edges.n; i++) {
        running += c->edges.at[i].rate > 0 ? 1 : -1;
        rate = running ? rate + c->edges.at[i].rate : 0;
        if (running)
            RP_TRY(rp_vec_push(&c->values, rate, err));
        sum += rate;
    }
    row->samples = (int64_t)c->values.n;
    row->mean_bytes_per_s = row->min_bytes_per_s = row->p50_bytes_per_s = row->max_bytes_per_s =
        NAN;
    if (!c->values.n)
        return RP_OK;
    qsort(c->values.at, c->values.n, sizeof *c->values.at, by_double);
    row->mean_bytes_per_s = sum / (double)c->values.n;
    row->min_bytes_per_s = c->values.at[0];
    row->p50_bytes_per_s = c->values.at[(c->values.n + 1) / 2 - 1];
    row->max_bytes_per_s = c->values.at[c->values.n - 1];
    return RP_OK;
}

/* Adds all copies of the same kind as item i. */
static enum rp_code add_kind(struct copies *c, size_t i, struct rp_arena *arena,
                             struct rp_launch_copy *row, struct rp_err *err)
{
    const struct rp_work *w = c->w;
    rp_event first = w->items.at[i].event;
    const char *name = rp_trace_str(w->trace, w->trace->ev.name[first]);

    *row = (struct rp_launch_copy){.kind = rp_arena_copy(arena, name, kind_len(name)),
                                   .size_bytes = RP_ABSENT_I64};
    RP_TRY(rp_err_need(row->kind, err, "looking at copies"));
    c->edges.n = c->busy.n = 0;
    for (; i < w->items.n; i++) {
        const struct rp_work_item *x = &w->items.at[i];

        if (c->done.at[i] || x->cls != RP_WORK_MEMORY || !same_kind(c, x->event, first))
            continue;
        c->done.at[i] = 1;
        RP_TRY(add_copy(c, x, row, err));
    }
    return measure(c, row, err);
}

static enum rp_code add_kinds(struct copies *c, struct rp_arena *arena,
                              struct rp_launches_part *out, struct rp_err *err)
{
    enum { MOST = 64 }; /* kinds of copies have few names */

    RP_TRY(rp_arg_key_init(&c->bytes, c->w->trace, "bytes", err));
    RP_TRY(rp_arg_key_init(&c->rate, c->w->trace, "memory bandwidth (GB/s)", err));
    RP_TRY(rp_vec_zeros(&c->done, c->w->items.n, err));
    out->copies = RP_ARENA_NEW(arena, struct rp_launch_copy, MOST);
    RP_TRY(rp_err_need(out->copies, err, "looking at copies"));
    for (size_t i = 0; i < c->w->items.n && out->ncopies < MOST; i++)
        if (c->w->items.at[i].cls == RP_WORK_MEMORY && !c->done.at[i])
            RP_TRY(add_kind(c, i, arena, &out->copies[out->ncopies++], err));
    return RP_OK;
}

enum rp_code rp_launches_measure_copies(const struct rp_work *work, struct rp_arena *arena,
                                        struct rp_launches_part *out, struct rp_err *err)
{
    struct copies c = {.w = work};
    enum rp_code code = add_kinds(&c, arena, out, err);

    rp_arg_key_release(&c.bytes);
    rp_arg_key_release(&c.rate);
    rp_vec_release(&c.edges);
    rp_vec_release(&c.values);
    rp_vec_release(&c.done);
    rp_vec_release(&c.busy);
    return code;
}
