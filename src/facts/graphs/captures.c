/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names are classified first, because most traces have no call that begins a capture. One pass over
 * the calls finds the begins and ends of captures; sorted by process and time they give the windows
 * of captures. A capture that does not end in the recording is ignored. Then each correlation
 * without device work is looked up in the windows by its last call in the file, as for trace
 * health.
 */
#include "facts/graphs/captures.h"

#include "base/order.h"
#include "facts/arg_keys.h"
#include "facts/work/ancestors.h"
#include "trace/device_calls.h"

#include <stdlib.h>
#include <string.h>

enum { NEITHER, BEGINS, ENDS, LAUNCHES, COPIES, SETS, LAUNCHES_GRAPH };

struct edge {
    uint32_t process;
    int64_t at_ns;
    int step; /* 1: a capture begins, -1: a capture ends */
};

struct window {
    uint32_t process;
    int64_t begin_ns, end_ns;
};

struct captured_call {
    size_t window;
    int64_t at_ns;
    rp_event call;
};

struct capture_ctx {
    const struct rp_trace *t;
    uint8_t *what; /* by name */
    bool any;      /* a name begins captures */
    RP_VEC(struct edge) edges;
    RP_VEC(struct window) windows;
    RP_VEC(struct captured_call) calls;
};

static uint8_t what_of(const struct capture_ctx *f, rp_event e)
{
    return f->what[f->t->ev.name[e]];
}

static enum rp_code classify_names(struct capture_ctx *f, struct rp_err *err)
{
    static const char begins[] = "StreamBeginCapture";
    const struct rp_strings *str = &f->t->str;

    /* one search over all strings: a NUL ends each of them */
    f->any = memmem(str->bytes, str->offset[str->n], begins, sizeof begins - 1) != NULL;
    if (!f->any)
        return RP_OK;
    f->what = calloc((size_t)str->n + 1, 1);
    RP_TRY(rp_err_need(f->what, err, "looking for captures"));
    for (uint32_t i = 0; i < str->n; i++) {
        const char *name = rp_trace_str(f->t, i);
        uint16_t does = rp_device_call_does(name);

        f->what[i] = does & RP_DOES_BEGIN_CAPTURE  ? BEGINS
                     : does & RP_DOES_END_CAPTURE  ? ENDS
                     : does & RP_DOES_LAUNCH_GRAPH ? LAUNCHES_GRAPH
                     : does & RP_DOES_LAUNCH       ? LAUNCHES
                     : does & RP_DOES_COPY         ? COPIES
                     : does & RP_DOES_SET          ? SETS
                                                   : NEITHER;
    }
    return RP_OK;
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

        if (!is_call(t, e) || t->ev.ts_ns[e] == RP_NO_TS)
            continue;
        uint8_t what = what_of(f, e);
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

    rp_sort(f->edges.at, f->edges.n, sizeof *f->edges.at, by_time);
    for (size_t i = 0; i < f->edges.n; i++) {
        const struct edge *e = &f->edges.at[i];

        if (i && e->process != e[-1].process)
            depth = 0;
        if (e->step > 0) {
            if (depth++ == 0)
                w = (struct window){.process = e->process, .begin_ns = e->at_ns};
        } else if (depth > 0 && --depth == 0) {
            w.end_ns = e->at_ns;
            RP_TRY(rp_vec_push(&f->windows, w, err));
        }
    }
    return RP_OK;
}

/* The window around a moment, or the number of windows. */
static size_t window_at(const struct capture_ctx *f, uint32_t process, int64_t at_ns)
{
    const struct window *w = f->windows.at;
    size_t i;

    RP_LOWER_BOUND(i, f->windows.n,
                   w[i].process < process || (w[i].process == process && w[i].end_ns < at_ns));
    return i < f->windows.n && w[i].process == process && w[i].begin_ns <= at_ns ? i : f->windows.n;
}

/* The last call, in the order of the file, of a link without device work; RP_NONE if it has
   some. */
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

RP_ORDER(by_window, struct captured_call, RP_UP(window), RP_UP(at_ns), RP_UP(call))

static enum rp_code find_calls(struct capture_ctx *f, struct rp_err *err)
{
    const struct rp_trace *t = f->t;

    RP_TRY(classify_names(f, err));
    if (!f->any)
        return RP_OK;
    RP_TRY(find_edges(f, err));
    RP_TRY(make_windows(f, err));
    for (uint32_t link = 0; f->windows.n && link < t->links.n; link++) {
        struct captured_call c = {0};

        if (t->links.source[link] != RP_LINK_CORRELATION)
            continue;
        c.call = last_call(t, link);
        if (c.call == RP_NONE || what_of(f, c.call) < LAUNCHES)
            continue;
        c.at_ns = t->ev.ts_ns[c.call];
        c.window = window_at(f, process_of(t, c.call), c.at_ns);
        if (c.window < f->windows.n)
            RP_TRY(rp_vec_push(&f->calls, c, err));
    }
    rp_sort(f->calls.at, f->calls.n, sizeof *f->calls.at, by_window);
    return RP_OK;
}

static void release_ctx(struct capture_ctx *f)
{
    free(f->what);
    rp_vec_release(&f->edges);
    rp_vec_release(&f->windows);
    rp_vec_release(&f->calls);
}

/* The number after a word in a text, or -1. */
static int64_t number_behind(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    char *end;

    if (!at)
        return -1;
    at += strlen(word);
    if (*at < '0' || *at > '9')
        return -1;
    long long n = strtoll(at, &end, 10);
    if (*end == '/' && end[1] >= '0' && end[1] <= '9') /* a batch of a larger graph: bs=117/128 */
        n = strtoll(end + 1, NULL, 10);
    return n < INT32_MAX ? n : -1;
}

/* Ranges around the launch or the capture of a graph; the first row with a number counts. */
static const struct {
    const char *begins, *before;              /* the number */
} batch_ranges[] = {{"capture_", "capture_"}, /* vLLM */
                    {"step[", "bs="},         /* SGLang */
                    {"decode[", "bs="},
                    {"execute_", "execute_"}};

int64_t rp_batch_size_of_name(const char *name)
{
    int64_t n = -1;

    for (size_t i = 0; n < 0 && i < sizeof batch_ranges / sizeof batch_ranges[0]; i++)
        if (rp_is_named(name, RP_NAMED_BEGINS, batch_ranges[i].begins))
            n = number_behind(name, batch_ranges[i].before);
    return n;
}

int64_t rp_batch_size_around(const struct rp_trace *t, rp_event e)
{
    int64_t size = -1;

    RP_FOR_ANCESTORS (t, e)
        if (t->ev.kind[e] == RP_KIND_ANNOTATION) {
            size = rp_batch_size_of_name(rp_trace_str(t, t->ev.name[e]));
            if (size >= 0)
                break;
        }
    return size;
}

static enum rp_code list_graphs(const struct capture_ctx *f, const struct rp_arg_key *kernel,
                                struct rp_captures *out, struct rp_err *err)
{
    const struct rp_trace *t = f->t;

    for (size_t i = 0; i < f->calls.n; i++) {
        const struct captured_call *c = &f->calls.at[i];
        uint8_t what = what_of(f, c->call);
        struct rp_graph_node node = {.call = c->call};

        if (!i || c->window != c[-1].window) {
            struct rp_captured_graph graph = {.first = (uint32_t)i,
                                              .begin_ns = f->windows.at[c->window].begin_ns,
                                              .size = rp_batch_size_around(t, c->call)};

            RP_TRY(rp_vec_push(&out->graphs, graph, err));
        }
        node.kind = what == COPIES ? RP_GRAPH_COPY : what == SETS ? RP_GRAPH_SET : RP_GRAPH_KERNEL;
        if (!rp_arg_key_text(kernel, c->call, &node.kernel))
            node.kernel = 0;
        RP_TRY(rp_vec_push(&out->nodes, node, err));
        out->graphs.at[out->graphs.n - 1].n++;
    }
    return RP_OK;
}

/* Whether a call that launches a graph has device work. */
static bool has_graph_launch(const struct capture_ctx *f)
{
    const struct rp_trace *t = f->t;

    for (rp_event e = 0; e < t->ev.n; e++)
        if (is_call(t, e) && what_of(f, e) == LAUNCHES_GRAPH && t->ev.link[e] != RP_NONE &&
            last_call(t, t->ev.link[e]) == RP_NONE)
            return true;
    return false;
}

enum rp_code rp_captures_init(struct rp_captures *out, const struct rp_trace *trace,
                              struct rp_err *err)
{
    RP_SCOPED(release_ctx) struct capture_ctx f = {.t = trace};
    RP_SCOPED(rp_arg_key_release) struct rp_arg_key kernel = {0};

    *out = (struct rp_captures){.trace = trace};
    RP_TRY(find_calls(&f, err));
    if (f.calls.n) {
        RP_TRY(rp_arg_key_init(&kernel, trace, "kernel", err));
        RP_TRY(list_graphs(&f, &kernel, out, err));
        out->launches_graphs = has_graph_launch(&f);
    }
    return RP_OK;
}

void rp_captures_release(struct rp_captures *c)
{
    rp_vec_release(&c->graphs);
    rp_vec_release(&c->nodes);
}

bool rp_captures_are_all(const struct rp_captures *c)
{
    const int64_t *count = c->trace->totals.count;
    int64_t ran = count[RP_KIND_KERNEL] + count[RP_KIND_MEMCPY] + count[RP_KIND_MEMSET];

    return c->nodes.n && !c->launches_graphs && ran <= 2 * (int64_t)c->nodes.n;
}
