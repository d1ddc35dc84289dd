/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the calls finds the begins and ends of captures; sorted by process and time they
 * give the windows of captures. A capture that does not end in the recording is ignored. Then each
 * correlation without device work is looked up in the windows by its last call in the file, as for
 * trace health. Each name is classified once.
 */
#include "facts/graph_captures.h"

#include "base/order.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { UNKNOWN, NEITHER, BEGINS, ENDS, LAUNCHES };

struct edge {
    uint32_t process;
    int64_t at_ns;
    int step; /* 1: a capture begins, -1: it ends */
};

struct window {
    uint32_t process;
    int64_t begin_ns, end_ns;
};

struct capture_ctx {
    const struct rp_trace *t;
    uint8_t *what; /* by name */
    RP_VEC(struct edge) edges;
    RP_VEC(struct window) windows;
};

static uint8_t what_is(const char *name)
{
    if (strstr(name, "StreamBeginCapture"))
        return BEGINS;
    if (strstr(name, "StreamEndCapture"))
        return ENDS;
    return strstr(name, "Launch") || strstr(name, "Memcpy") || strstr(name, "Memset") ? LAUNCHES
                                                                                      : NEITHER;
}

static uint8_t what_of(struct capture_ctx *f, rp_event e)
{
    rp_str name = f->t->ev.name[e];

    if (f->what[name] == UNKNOWN)
        f->what[name] = what_is(rp_trace_str(f->t, name));
    return f->what[name];
}

static bool is_call(const struct rp_trace *t, rp_event e)
{
    return t->ev.kind[e] == RP_KIND_RUNTIME;
}

static uint32_t process_of(const struct rp_trace *t, rp_event e)
{
    return t->tracks[t->ev.track[e]].process;
}

static enum rp_code find_edges(struct capture_ctx *f, struct rp_err *err)
{
    const struct rp_trace *t = f->t;

    for (rp_event e = 0; e < t->ev.n; e++) {
        struct edge edge = {.step = 1};
        uint8_t what;

        if (!is_call(t, e) || t->ev.ts_ns[e] == RP_NO_TS)
            continue;
        what = what_of(f, e);
        if (what != BEGINS && what != ENDS)
            continue;
        edge.process = process_of(t, e);
        edge.at_ns = what == BEGINS ? t->ev.ts_ns[e] : rp_event_end_ns(t, e);
        edge.step = what == BEGINS ? 1 : -1;
        RP_TRY(rp_vec_push(&f->edges, edge, err));
    }
    return RP_OK;
}

RP_ORDER(by_time, struct edge, RP_UP(process), RP_UP(at_ns), RP_DOWN(step))

static enum rp_code make_windows(struct capture_ctx *f, struct rp_err *err)
{
    struct window w = {0};
    int depth = 0;

    if (f->edges.n)
        qsort(f->edges.at, f->edges.n, sizeof *f->edges.at, by_time);
    for (size_t i = 0; i < f->edges.n; i++) {
        const struct edge *e = &f->edges.at[i];

        if (!i || e->process != e[-1].process)
            depth = 0;
        if (e->step > 0 && depth++ == 0)
            w = (struct window){.process = e->process, .begin_ns = e->at_ns};
        if (e->step < 0 && depth > 0 && --depth == 0) {
            w.end_ns = e->at_ns;
            RP_TRY(rp_vec_push(&f->windows, w, err));
        }
    }
    return RP_OK;
}

static bool is_inside(const struct capture_ctx *f, uint32_t process, int64_t at_ns)
{
    const struct window *w = f->windows.at;
    size_t i;

    RP_LOWER_BOUND(i, f->windows.n,
                   w[i].process < process || (w[i].process == process && w[i].end_ns < at_ns));
    return i < f->windows.n && w[i].process == process && w[i].begin_ns <= at_ns;
}

/* The last call, in the order of the file, of a link without device work; RP_NONE if it has some.
 */
static rp_event last_call(const struct rp_trace *t, uint32_t link)
{
    rp_event last = RP_NONE;

    for (uint32_t i = t->links.offset[link]; i < t->links.offset[link + 1]; i++) {
        rp_event e = t->links.member[i];

        if (rp_kind_is_device_work(t->ev.kind[e]))
            return RP_NONE;
        if (is_call(t, e) && (last == RP_NONE || t->ev.seq[e] > t->ev.seq[last]))
            last = e;
    }
    return last;
}

static enum rp_code count_captured(struct capture_ctx *f, int64_t *out, struct rp_err *err)
{
    const struct rp_trace *t = f->t;

    RP_TRY(find_edges(f, err));
    RP_TRY(make_windows(f, err));
    for (uint32_t link = 0; f->windows.n && link < t->links.n; link++) {
        rp_event e;

        if (t->links.source[link] != RP_LINK_CORRELATION)
            continue;
        e = last_call(t, link);
        if (e != RP_NONE && what_of(f, e) == LAUNCHES &&
            is_inside(f, process_of(t, e), t->ev.ts_ns[e]))
            ++*out;
    }
    return RP_OK;
}

enum rp_code rp_captured_launches(const struct rp_trace *trace, int64_t *out, struct rp_err *err)
{
    struct capture_ctx f = {.t = trace, .what = calloc(trace->str.n + 1, 1)};
    enum rp_code code;

    *out = 0;
    if (!f.what)
        return rp_err_nomem(err, "looking for captures");
    code = count_captured(&f, out, err);
    free(f.what);
    rp_vec_release(&f.edges);
    rp_vec_release(&f.windows);
    return code;
}
