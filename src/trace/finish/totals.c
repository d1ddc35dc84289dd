/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts and durations by kind, windows, and the time in which the device is busy: the union of all
 * device work. Each stream is sorted, so the union is a merge of streams through a heap of their
 * next events: n log(streams), without memory per event.
 */
#include "trace/build/state.h"
#include "trace/finish/finish.h"
#include "trace/names.h"

/* Saturating addition. */
static void add_to(int64_t *sum, int64_t x)
{
    if (__builtin_add_overflow(*sum, x, sum))
        *sum = INT64_MAX;
}

struct window {
    int64_t begin, end;
};

static void widen_window(struct window *w, int64_t begin, int64_t end)
{
    w->begin = begin < w->begin ? begin : w->begin;
    w->end = end > w->end ? end : w->end;
}

static void close_window(const struct window *w, int64_t *begin, int64_t *end)
{
    *begin = w->begin <= w->end ? w->begin : 0;
    *end = w->begin <= w->end ? w->end : 0;
}

/* A thread that waits is sampled at the begin of its wait. */
static int64_t sample_end_ns(const struct rp_build_samples *s, bool is_time, uint32_t i)
{
    int64_t end = s->ts_ns.at[i];

    if (s->flags.at[i] & RP_SAMPLE_WAITED && is_time && s->weight.at[i] > 0)
        add_to(&end, s->weight.at[i]);
    return end;
}

static void sum_up(struct rp_builder *b)
{
    struct window gpu = {INT64_MAX, INT64_MIN}, work = gpu, span = gpu, ran = gpu;
    struct rp_totals *t = &b->trace->totals;
    bool is_time = b->trace->samples.unit == RP_WEIGHT_NS;

    memset(t, 0, sizeof *t);
    for (uint32_t i = 0; i < b->ev.n; i++) {
        int64_t ts = b->ev.ts_ns.at[i], end = rp_build_end_ns(b, i), dur = b->ev.dur_ns.at[i];
        uint8_t kind = b->ev.kind.at[i];
        bool device = rp_kind_is_device_work(kind);

        t->count[kind]++;
        if (dur > 0)
            add_to(&t->dur_ns[kind], dur);
        if (kind == RP_KIND_KERNEL && b->name_class.at[b->ev.name.at[i]] == RP_NAME_COMM) {
            t->comm_count++;
            add_to(&t->comm_ns, dur > 0 ? dur : 0);
        }
        if (ts == RP_NO_TS || kind == RP_KIND_METADATA)
            continue;
        widen_window(&span, ts, end);
        if (dur > 0 && kind != RP_KIND_OVERHEAD)
            widen_window(&ran, ts, end);
        if (device)
            widen_window(&gpu, ts, end);
        if (device || kind == RP_KIND_CPU_OP || kind == RP_KIND_RUNTIME)
            widen_window(&work, ts, end);
    }
    for (uint32_t i = 0; i < b->samples.ts_ns.n; i++)
        if (b->samples.ts_ns.at[i] != RP_NO_TS)
            widen_window(&span, b->samples.ts_ns.at[i], sample_end_ns(&b->samples, is_time, i));
    /* A program of which two calls alone are known did not take the time between them. */
    if (!t->count[RP_KIND_CPU_OP] && gpu.begin > gpu.end && t->count[RP_KIND_RUNTIME])
        work = ran;
    close_window(&gpu, &t->gpu_begin_ns, &t->gpu_end_ns);
    close_window(&work, &t->work_begin_ns, &t->work_end_ns);
    close_window(&span, &t->span_begin_ns, &t->span_end_ns);
}

struct cursor {
    rp_event at, end;
};

struct stream_merge {
    const struct rp_builder *b;
    RP_VEC(struct cursor) heap; /* smallest start first */
};

static int64_t start_of(const struct stream_merge *m, size_t i)
{
    return m->b->ev.ts_ns.at[m->heap.at[i].at];
}

/* Advances to the next device work of its track; false at the end. */
static bool skip_others(const struct stream_merge *m, struct cursor *c)
{
    while (c->at < c->end && (m->b->ev.ts_ns.at[c->at] == RP_NO_TS ||
                              !rp_kind_is_device_work(m->b->ev.kind.at[c->at])))
        c->at++;
    return c->at < c->end;
}

static void sift_down(struct stream_merge *m, size_t i)
{
    struct cursor *heap = m->heap.at, moved = heap[i];
    size_t n = m->heap.n, child;

    for (; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && start_of(m, child + 1) < start_of(m, child))
            child++;
        if (m->b->ev.ts_ns.at[moved.at] <= start_of(m, child))
            break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

static enum rp_code open_tracks(struct stream_merge *m, struct rp_err *err)
{
    for (size_t t = 0; t < m->b->tracks.n; t++) {
        struct cursor c = {m->b->tracks.at[t].first, m->b->tracks.at[t].end};

        if (skip_others(m, &c))
            RP_TRY(rp_vec_push(&m->heap, c, err));
    }
    for (size_t i = m->heap.n / 2; i-- > 0;)
        sift_down(m, i);
    return RP_OK;
}

static enum rp_code count_busy(struct rp_builder *b, struct rp_err *err)
{
    struct stream_merge m = {.b = b};
    int64_t until = INT64_MIN, busy = 0;
    enum rp_code code = open_tracks(&m, err);

    while (code == RP_OK && m.heap.n) {
        rp_event e = m.heap.at[0].at;
        int64_t begin = b->ev.ts_ns.at[e], end = rp_build_end_ns(b, e);

        begin = begin > until ? begin : until;
        if (end > begin) {
            add_to(&busy, end - begin);
            until = end;
        }
        m.heap.at[0].at++;
        if (!skip_others(&m, &m.heap.at[0]))
            m.heap.at[0] = m.heap.at[--m.heap.n];
        if (m.heap.n)
            sift_down(&m, 0);
    }
    b->trace->totals.gpu_busy_ns = busy;
    rp_vec_release(&m.heap);
    return code;
}

enum rp_code rp_pass_totals(struct rp_builder *b, struct rp_err *err)
{
    sum_up(b);
    return count_busy(b, err);
}
