/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device work is collected track by track, which is in time order already, and sorted over the
 * tracks where there are several. The launch of an item is the host call of its link; if several
 * runtime calls have one correlation, the last one in the file, as in the definition of trace
 * health.
 */
#include "facts/work/work.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "facts/arg_keys.h"
#include "trace/names.h"

#include <stdio.h>
#include <stdlib.h>

const char *const rp_work_class_names[RP_WORK_CLASSES] = {
    [RP_WORK_COMPUTE] = "compute", [RP_WORK_COMM] = "comm", [RP_WORK_MEMORY] = "memory"};

/* The call that launched the device work of a link: the last runtime call, else the first host
   call. */
struct link_calls {
    rp_link link;
    rp_event best, any;
    uint32_t work; /* the first member that is device work, or the end */
};

struct work_ctx {
    const struct rp_trace *t;
    struct link_calls calls; /* calls of the link that was examined last */
    struct rp_work *out;
    struct rp_arg_key stream, correlation, device;
    struct rp_map streams;   /* from the hash of a stream to its number */
    struct rp_map processes; /* from a process to its first device */
    struct rp_map devices;   /* from the hash of process and number to the device */
    struct rp_scope scope;
};

/* The position of an event in its file, to order equal times. */
static uint32_t file_order(const struct rp_trace *trace, rp_event e)
{
    return trace->ev.seq[e];
}

static uint8_t class_of(const struct rp_trace *t, rp_event e)
{
    if (t->ev.kind[e] != RP_KIND_KERNEL)
        return RP_WORK_MEMORY;
    return t->str.name_class[t->ev.name[e]] == RP_NAME_COMM ? RP_WORK_COMM : RP_WORK_COMPUTE;
}

/* Whether both have the argument with the same value: 5 equals 5.0 but not "5". Needed because flow
 * arrows also link events without it. */
static bool same_correlation(const struct work_ctx *c, rp_event a, rp_event b)
{
    struct rp_arg x, y;

    if (!rp_arg_key_find(&c->correlation, a, &x) || !rp_arg_key_find(&c->correlation, b, &y) ||
        x.type == RP_ARG_RAW || y.type == RP_ARG_RAW)
        return false;
    if (x.type == RP_ARG_STR || y.type == RP_ARG_STR)
        return x.type == y.type && x.v.s == y.v.s;
    if (x.type == y.type)
        return x.v.i == y.v.i;
    return x.type == RP_ARG_I64 ? (double)x.v.i == y.v.f : x.v.f == (double)y.v.i;
}

/* The calls of a link, and its first device work. */
static struct link_calls look_at_link(const struct rp_trace *t, rp_link link)
{
    struct link_calls x = {link, RP_NONE, RP_NONE, t->links.offset[link]};

    for (; x.work < t->links.offset[link + 1]; x.work++) {
        rp_event host = t->links.member[x.work];

        if (rp_kind_is_device_work(t->ev.kind[host]))
            break; /* host calls come first */
        if (t->tracks[t->ev.track[host]].kind == RP_TRACK_STREAM)
            continue; /* annotations and waits may be recorded on a stream */
        x.any = x.any == RP_NONE ? host : x.any;
        if ((t->origins[t->ev.origin[host]].flags & RP_ORIGIN_RUNTIME) &&
            (x.best == RP_NONE || file_order(t, host) > file_order(t, x.best)))
            x.best = host;
    }
    return x;
}

/* The call that launched e; sets the item's flags. */
static rp_event launch_of(struct work_ctx *c, rp_event e, uint8_t *flags)
{
    const struct rp_trace *t = c->t;
    rp_link link = t->ev.link[e];

    *flags = 0;
    if (link == RP_NONE)
        return RP_NONE;
    if (link != c->calls.link)
        c->calls = look_at_link(t, link); /* work of one graph is contiguous */
    rp_event best = c->calls.best;
    rp_event any = c->calls.any;
    uint32_t i = c->calls.work;
    if (i < t->links.offset[link + 1] && t->links.member[i] != e)
        *flags |= RP_WORK_IN_GRAPH;
    if (i + 1 < t->links.offset[link + 1] &&
        rp_kind_is_device_work(t->ev.kind[t->links.member[i + 1]]))
        *flags |= RP_WORK_IN_GRAPH;
    if (best == RP_NONE)
        return any;
    if (same_correlation(c, e, best))
        *flags |= RP_WORK_CORRELATED;
    return best;
}

#define MOST_DEVICES 4096
RP_LIMIT(MOST_DEVICES, "devices", "further ones count as the last of them");

/* Finds the device of a process and number; a missing one is made. The first item of a process may
   lack the number, and gets that of the next item later. */
static enum rp_code find_device(struct work_ctx *c, struct rp_work_device fresh, uint32_t *out,
                                struct rp_err *err)
{
    uint64_t key = rp_hash_join((uint64_t)fresh.number, fresh.process);
    uint32_t n = (uint32_t)c->out->devices.n, first;

    if (n == MOST_DEVICES)
        n = MOST_DEVICES - 1;
    RP_TRY(rp_map_intern(&c->processes, fresh.process, n, &first, err));
    *out = first;
    if (first < c->out->devices.n && c->out->devices.at[first].process == fresh.process &&
        (fresh.number < 0 || c->out->devices.at[first].number < 0)) {
        if (fresh.number < 0)
            return RP_OK;
        return rp_map_intern(&c->devices, key, first, out, err);
    }
    RP_TRY(rp_map_intern(&c->devices, key, n, out, err));
    return *out == c->out->devices.n ? rp_vec_push(&c->out->devices, fresh, err) : RP_OK;
}

RP_ORDER(by_number, struct rp_work_device, RP_UP(number), RP_UP(process), RP_UP(nitems))

/* Adds the part of an item after *until, which is moved to its end. Items are in the order of
   time. */
static void add_until(const struct rp_work_item *x, int64_t *until, int64_t *sum)
{
    if (x->end_ns <= *until)
        return;
    rp_ns_add(sum, rp_ns_between(x->begin_ns > *until ? x->begin_ns : *until, x->end_ns));
    *until = x->end_ns;
}

/* Sorts the devices, and measures when each is busy. Items are in the order of time. */
static enum rp_code settle_devices(struct rp_work *w, struct rp_err *err)
{
    RP_VEC(uint16_t) place = {0};
    RP_VEC(int64_t) computed = {0}; /* by device: the last end of compute */

    /* The only device of a process gets the number of the process, if that is known. */
    uint32_t *count = calloc(w->trace->nprocesses + 1, sizeof *count); /* by process */
    RP_TRY(rp_err_need(count, err, "looking at devices"));
    for (size_t i = 0; i < w->devices.n; i++)
        count[w->devices.at[i].process]++;
    for (size_t i = 0; i < w->devices.n; i++) {
        struct rp_work_device *d = &w->devices.at[i];
        int32_t known = w->trace->processes[d->process].device;

        if (known >= 0 && (count[d->process] == 1 || d->number < 0))
            d->number = known;
    }
    free(count);

    RP_TRY(rp_vec_reserve(&computed, w->devices.n + 1, err));
    if (w->devices.n > 1) {
        enum rp_code code = rp_vec_reserve(&place, w->devices.n, err);

        if (code != RP_OK) {
            rp_vec_release(&computed);
            return code;
        }
        for (size_t i = 0; i < w->devices.n; i++)
            w->devices.at[i].begin_ns = (int64_t)i;
        qsort(w->devices.at, w->devices.n, sizeof *w->devices.at, by_number);
        for (size_t i = 0; i < w->devices.n; i++)
            place.at[w->devices.at[i].begin_ns] = (uint16_t)i;
        for (size_t i = 0; i < w->items.n; i++)
            w->items.at[i].device = place.at[w->items.at[i].device];
    }
    for (size_t i = 0; i < w->devices.n; i++) {
        w->devices.at[i].begin_ns = INT64_MAX;
        computed.at[i] = INT64_MIN;
    }
    for (size_t i = 0; i < w->items.n; i++) {
        const struct rp_work_item *x = &w->items.at[i];
        struct rp_work_device *d = &w->devices.at[x->device];

        w->streams.at[x->stream].device = x->device;
        if (d->begin_ns == INT64_MAX)
            d->begin_ns = d->end_ns = x->begin_ns;
        add_until(x, &d->end_ns, &d->busy_ns);
        if (x->cls == RP_WORK_COMPUTE)
            add_until(x, &computed.at[x->device], &d->compute_ns);
    }
    rp_vec_release(&computed);
    rp_vec_release(&place);
    return RP_OK;
}

/* Lists the items device by device. */
static enum rp_code index_devices(struct rp_work *w, struct rp_err *err)
{
    uint32_t first = 0;

    if (w->devices.n < 2)
        return RP_OK;
    RP_TRY(rp_vec_reserve(&w->by_device, w->items.n, err));
    for (size_t i = 0; i < w->devices.n; i++) {
        w->devices.at[i].first = first;
        first += w->devices.at[i].nitems;
    }
    for (size_t i = 0; i < w->items.n; i++)
        w->by_device.at[w->devices.at[w->items.at[i].device].first++] = (uint32_t)i;
    for (size_t i = 0; i < w->devices.n; i++)
        w->devices.at[i].first -= w->devices.at[i].nitems;
    w->by_device.n = w->items.n;
    return RP_OK;
}

static enum rp_code stream_of(struct work_ctx *c, rp_event e, uint16_t device, uint32_t *out,
                              struct rp_err *err)
{
    const struct rp_track_info *track = &c->t->tracks[c->t->ev.track[e]];
    struct rp_work_stream s = {.process = track->process,
                               .track = c->t->ev.track[e],
                               .number = track->native_id,
                               .text = track->text};
    uint64_t words[3] = {(uint64_t)device << 32 | s.process, 0, 0};
    struct rp_arg arg;

    if (rp_arg_key_find(&c->stream, e, &arg)) {
        s.text = arg.type == RP_ARG_STR || arg.type == RP_ARG_RAW ? arg.v.s : 0;
        s.number = s.text ? 0 : arg.v.i;
    }
    words[1] = (uint64_t)s.number;
    words[2] = s.text;
    RP_TRY(rp_map_intern(&c->streams, rp_hash_bytes(words, sizeof words),
                         (uint32_t)c->out->streams.n, out, err));
    if (*out == c->out->streams.n)
        RP_TRY(rp_vec_push(&c->out->streams, s, err));
    c->out->streams.at[*out].nitems++;
    return RP_OK;
}

bool rp_scope_judges(const struct rp_scope *scope, int64_t begin_ns, int64_t end_ns)
{
    size_t at; /* the first judged interval that ends after the begin */

    RP_LOWER_BOUND(at, scope->njudged, scope->judged[at].end_ns <= begin_ns);
    return !scope->njudged || (at < scope->njudged && scope->judged[at].begin_ns <= end_ns);
}

bool rp_scope_has(const struct rp_scope *scope, int64_t ts_ns)
{
    if (scope->limited)
        return ts_ns >= scope->begin_ns && ts_ns < scope->end_ns;
    return rp_scope_judges(scope, ts_ns, ts_ns);
}

static bool in_scope(const struct work_ctx *c, const struct rp_work_item *item)
{
    int64_t at = item->begin_ns;

    if (!c->scope.limited)
        return rp_scope_judges(&c->scope, at, item->end_ns);
    if (c->scope.by_launch && item->launch != RP_NONE)
        at = c->t->ev.ts_ns[item->launch];
    return at >= c->scope.begin_ns && at < c->scope.end_ns;
}

static enum rp_code collect_work(struct work_ctx *c, rp_event e, struct rp_err *err)
{
    struct rp_work_item item = {.begin_ns = c->t->ev.ts_ns[e],
                                .end_ns = rp_event_end_ns(c->t, e),
                                .event = e,
                                .cls = class_of(c->t, e)};

    item.launch = launch_of(c, e, &item.flags);
    if (!in_scope(c, &item))
        return RP_OK;

    /* Find the device of an item. Copies may lack the argument that the kernels of their process
       have. */
    struct rp_work_device fresh = {.process = c->t->tracks[c->t->ev.track[item.event]].process,
                                   .number = -1},
                          *d;
    uint32_t i;
    if (c->device.key == RP_NONE || !rp_arg_key_int(&c->device, item.event, &fresh.number))
        fresh.number = -1;
    RP_TRY(find_device(c, fresh, &i, err));
    d = &c->out->devices.at[i];
    d->number = d->number < 0 ? fresh.number : d->number;
    d->nitems++;
    item.device = (uint16_t)i;

    RP_TRY(stream_of(c, e, item.device, &item.stream, err));
    return rp_vec_push(&c->out->items, item, err);
}

static int by_time(const void *pa, const void *pb, void *user)
{
    const struct rp_work_item *a = pa, *b = pb;

    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    uint32_t x = file_order(user, a->event);
    uint32_t y = file_order(user, b->event);
    return x < y ? -1 : x > y;
}

static void put_in_order(struct rp_work *w)
{
    union {
        const struct rp_trace *given;
        void *user;
    } trace = {.given = w->trace};

    for (size_t i = 1; i < w->items.n; i++)
        if (by_time(&w->items.at[i - 1], &w->items.at[i], trace.user) > 0) {
            qsort_r(w->items.at, w->items.n, sizeof *w->items.at, by_time, trace.user);
            return;
        }
}

static enum rp_code collect_all(struct work_ctx *c, struct rp_err *err)
{
    const struct rp_trace *t = c->t;

    RP_TRY(rp_arg_key_init(&c->stream, t, "stream", err));
    RP_TRY(rp_arg_key_init(&c->correlation, t, "correlation", err));
    RP_TRY(rp_arg_key_init(&c->device, t, "device", err));
    for (rp_track track = 0; track < t->ntracks; track++) {
        if (t->tracks[track].kind != RP_TRACK_STREAM)
            continue;
        for (rp_event e = t->tracks[track].first; e < t->tracks[track].end; e++)
            if (rp_kind_is_device_work(t->ev.kind[e]) && t->ev.ts_ns[e] != RP_NO_TS &&
                t->ev.dur_ns[e] >= 0)
                RP_TRY(collect_work(c, e, err));
    }
    return RP_OK;
}

enum rp_code rp_work_init(struct rp_work *out, const struct rp_trace *trace,
                          const struct rp_scope *scope, struct rp_err *err)
{
    struct work_ctx c = {.t = trace, .out = out, .calls = {.link = RP_NONE}};

    *out = (struct rp_work){.trace = trace};
    RP_TRY(rp_trace_require(trace, RP_NEED_ARGS | RP_NEED_LINKS, err));
    if (scope)
        c.scope = *scope;
    enum rp_code code = collect_all(&c, err);
    put_in_order(out);
    if (code == RP_OK)
        code = settle_devices(out, err);
    if (code == RP_OK)
        code = index_devices(out, err);
    rp_map_release(&c.streams);
    rp_map_release(&c.processes);
    rp_map_release(&c.devices);
    rp_arg_key_release(&c.stream);
    rp_arg_key_release(&c.correlation);
    rp_arg_key_release(&c.device);
    return code;
}

void rp_work_release(struct rp_work *work)
{
    rp_vec_release(&work->items);
    rp_vec_release(&work->by_device);
    if (work->borrows)
        return;
    rp_vec_release(&work->streams);
    rp_vec_release(&work->devices);
}

uint16_t rp_work_main_device(const struct rp_work *work)
{
    const struct rp_work_device *d = work->devices.at;
    uint16_t i, best = 0;

    for (i = 1; i < work->devices.n; i++)
        if (d[i].compute_ns > d[best].compute_ns ||
            (d[i].compute_ns == d[best].compute_ns && d[i].busy_ns > d[best].busy_ns))
            best = i;
    return best;
}

void rp_work_keep_device(struct rp_work *work, uint16_t device)
{
    size_t i, n = 0;

    if (work->devices.n < 2)
        return;
    for (i = 0; i < work->items.n; i++)
        if (work->items.at[i].device == device)
            work->items.at[n++] = work->items.at[i];
    work->items.n = n;
}

enum rp_code rp_work_of_device(const struct rp_work *work, uint16_t device, struct rp_work *out,
                               struct rp_err *err)
{
    *out = *work;
    out->borrows = true;
    memset(&out->items, 0, sizeof out->items);
    memset(&out->by_device, 0, sizeof out->by_device);
    if (work->by_device.n && work->by_device.n == work->items.n) {
        const uint32_t *own = work->by_device.at + work->devices.at[device].first;

        for (size_t i = 0; i < work->devices.at[device].nitems; i++)
            RP_TRY(rp_vec_push(&out->items, work->items.at[own[i]], err));
        return RP_OK;
    }
    for (size_t i = 0; i < work->items.n; i++)
        if (work->items.at[i].device == device)
            RP_TRY(rp_vec_push(&out->items, work->items.at[i], err));
    return RP_OK;
}

enum rp_code rp_work_unite(const struct rp_work *work, struct rp_work_unions *out,
                           struct rp_err *err)
{
    *out = (struct rp_work_unions){0};
    for (size_t i = 0; i < work->items.n; i++) {
        const struct rp_work_item *x = &work->items.at[i];

        RP_TRY(rp_union_add(&out->all, x->begin_ns, x->end_ns, err));
        RP_TRY(rp_union_add(&out->cls[x->cls], x->begin_ns, x->end_ns, err));
    }
    return RP_OK;
}

void rp_work_unions_release(struct rp_work_unions *u)
{
    rp_vec_release(&u->all);
    for (size_t c = 0; c < RP_WORK_CLASSES; c++)
        rp_vec_release(&u->cls[c]);
}

struct rp_breakdown rp_work_breakdown(const struct rp_work_unions *u)
{
    struct rp_breakdown b = {0};
    const rp_interval_vec *compute = &u->cls[RP_WORK_COMPUTE], *comm = &u->cls[RP_WORK_COMM];
    const rp_interval_vec *memory = &u->cls[RP_WORK_MEMORY];

    if (!u->all.n)
        return b;
    b.begin_ns = u->all.at[0].begin_ns;
    b.end_ns = u->all.at[u->all.n - 1].end_ns;
    b.window_ns = rp_ns_between(b.begin_ns, b.end_ns);
    b.busy_ns = rp_union_length(u->all.at, u->all.n);
    b.compute_ns = rp_union_length(compute->at, compute->n);
    b.comm_ns = rp_union_length(comm->at, comm->n);
    b.memory_ns = rp_union_length(memory->at, memory->n);
    b.exposed_comm_ns =
        rp_ns_between(rp_union_common(compute->at, compute->n, comm->at, comm->n), b.comm_ns);
    b.idle_ns = rp_ns_between(b.busy_ns, b.window_ns);
    return b;
}

/* How much of [begin, end) the union covers. */
static int64_t clipped_length(const rp_interval_vec *u, int64_t begin_ns, int64_t end_ns)
{
    return rp_union_covers(u->at, u->n, begin_ns, end_ns);
}

static int64_t clipped_common(const rp_interval_vec *a, const rp_interval_vec *b, int64_t begin_ns,
                              int64_t end_ns)
{
    int64_t sum = 0;
    size_t i = rp_union_first(a->at, a->n, begin_ns);

    for (; i < a->n && a->at[i].begin_ns < end_ns; i++) {
        int64_t from = a->at[i].begin_ns > begin_ns ? a->at[i].begin_ns : begin_ns;
        int64_t to = a->at[i].end_ns < end_ns ? a->at[i].end_ns : end_ns;

        sum = rp_ns_sum(sum, rp_union_covers(b->at, b->n, from, to));
    }
    return sum;
}

struct rp_breakdown rp_work_breakdown_of(const struct rp_work_unions *u, int64_t begin_ns,
                                         int64_t end_ns)
{
    const rp_interval_vec *cls = u->cls;
    struct rp_breakdown b = {.begin_ns = begin_ns,
                             .end_ns = end_ns,
                             .window_ns = rp_ns_between(begin_ns, end_ns),
                             .busy_ns = clipped_length(&u->all, begin_ns, end_ns),
                             .compute_ns = clipped_length(&cls[RP_WORK_COMPUTE], begin_ns, end_ns),
                             .comm_ns = clipped_length(&cls[RP_WORK_COMM], begin_ns, end_ns),
                             .memory_ns = clipped_length(&cls[RP_WORK_MEMORY], begin_ns, end_ns)};

    b.exposed_comm_ns = rp_ns_between(
        clipped_common(&cls[RP_WORK_COMM], &cls[RP_WORK_COMPUTE], begin_ns, end_ns), b.comm_ns);
    b.idle_ns = rp_ns_between(b.busy_ns, b.window_ns);
    return b;
}

void rp_breakdown_add(struct rp_breakdown *to, const struct rp_breakdown *later)
{
    to->end_ns = later->end_ns;
    rp_ns_add(&to->window_ns, later->window_ns);
    rp_ns_add(&to->busy_ns, later->busy_ns);
    rp_ns_add(&to->compute_ns, later->compute_ns);
    rp_ns_add(&to->comm_ns, later->comm_ns);
    rp_ns_add(&to->exposed_comm_ns, later->exposed_comm_ns);
    rp_ns_add(&to->memory_ns, later->memory_ns);
    rp_ns_add(&to->idle_ns, later->idle_ns);
}

void rp_work_device_label(const struct rp_work *work, uint16_t device, char *out, size_t cap)
{
    const struct rp_work_device *d = &work->devices.at[device];

    if (d->number >= 0)
        snprintf(out, cap, "GPU %lld", (long long)d->number);
    else
        snprintf(out, cap, "process %lld", (long long)work->trace->processes[d->process].native_id);
}

void rp_work_stream_label(const struct rp_work *work, uint32_t stream, char *out, size_t cap)
{
    const struct rp_work_stream *s = &work->streams.at[stream];
    char number[24], device[40] = "";

    snprintf(number, sizeof number, "%lld", (long long)s->number);
    if (work->devices.n > 1)
        rp_work_device_label(work, (uint16_t)s->device, device, sizeof device);
    snprintf(out, cap, "%s%s%s", device, *device ? " stream " : "",
             s->text ? rp_trace_str(work->trace, s->text) : number);
}
