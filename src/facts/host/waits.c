/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are found by a hash of call, range and kind of thread. A thread is a worker if it runs no
 * range and no operator while another thread does; if none does, the first thread of each process
 * is not a worker.
 */
#include "facts/host/waits.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "facts/ranks/collectives.h"
#include "facts/work/ancestors.h"
#include "result/part.h"

#include <string.h>

#define MOST_ROWS 256
RP_LIMIT(MOST_ROWS, "rows of a rank", "those with least time are only in the sums");

const char *const rp_wait_kind_names[RP_WAIT_KINDS] = {
#define WAIT_NAME(name, text) text,
    RP_WAIT_MAP(WAIT_NAME)
#undef WAIT_NAME
};

static const struct rp_field wait_fields[] = {RP_PART_TEXT(struct rp_host_wait, call),
                                              RP_PART_TEXT(struct rp_host_wait, range),
                                              RP_PART_PLAIN(struct rp_host_wait, worker),
                                              RP_PART_PLAIN(struct rp_host_wait, total_ns),
                                              RP_PART_PLAIN(struct rp_host_wait, count),
                                              RP_PART_PLAIN(struct rp_host_wait, longest_ns),
                                              RP_PART_END};
const struct rp_type rp_host_wait_type = {"host_wait", sizeof(struct rp_host_wait), wait_fields,
                                          NULL};

static const struct rp_field waits_fields[] = {
    RP_PART_VEC(struct rp_host_waits, rows, &rp_host_wait_type),
    RP_PART_PLAIN(struct rp_host_waits, threads),
    RP_PART_PLAIN(struct rp_host_waits, workers),
    RP_PART_PLAIN(struct rp_host_waits, main_ns),
    RP_PART_PLAIN(struct rp_host_waits, worker_ns),
    RP_PART_END};
const struct rp_type rp_host_waits_type = {"host_waits", sizeof(struct rp_host_waits), waits_fields,
                                           NULL};

enum rp_wait_kind rp_wait_kind_of(const char *call)
{
    static const struct {
        const char *begin;
        enum rp_wait_kind kind;
    } kinds[] = {
        {"MPI_", RP_WAIT_RANKS},       {"c10d::", RP_WAIT_RANKS},
        {"pthread_", RP_WAIT_THREAD},  {"sem_", RP_WAIT_THREAD},
        {"futex", RP_WAIT_THREAD},     {"read", RP_WAIT_INPUT},
        {"pread", RP_WAIT_INPUT},      {"recv", RP_WAIT_INPUT},
        {"poll", RP_WAIT_INPUT},       {"ppoll", RP_WAIT_INPUT},
        {"select", RP_WAIT_INPUT},     {"epoll_", RP_WAIT_INPUT},
        {"accept", RP_WAIT_INPUT},     {"connect", RP_WAIT_INPUT},
        {"write", RP_WAIT_OUTPUT},     {"pwrite", RP_WAIT_OUTPUT},
        {"send", RP_WAIT_OUTPUT},      {"fsync", RP_WAIT_OUTPUT},
        {"fdatasync", RP_WAIT_OUTPUT}, {"wait", RP_WAIT_CHILD},
        {"nanosleep", RP_WAIT_SLEEP},  {"clock_nanosleep", RP_WAIT_SLEEP},
        {"usleep", RP_WAIT_SLEEP},     {"sleep", RP_WAIT_SLEEP},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strncmp(call, kinds[i].begin, strlen(kinds[i].begin)))
            return kinds[i].kind;
    return RP_WAIT_OTHER;
}

bool rp_event_is_host_wait(const struct rp_trace *t, rp_event e)
{
    rp_event p = t->ev.parent[e];

    if (t->ev.kind[e] != RP_KIND_WAIT || t->ev.dur_ns[e] < 0 || t->ev.ts_ns[e] == RP_NO_TS)
        return false;
    RP_FOR_ANCESTORS (t, p)
        if (t->ev.kind[p] == RP_KIND_WAIT || t->ev.kind[p] == RP_KIND_COMM_OP)
            return false;
    return true;
}

/* ------------------------------------------------------------------ threads */

static bool works(const struct rp_trace *t, rp_track track)
{
    for (rp_event e = t->tracks[track].first; e < t->tracks[track].end; e++)
        if (t->ev.kind[e] == RP_KIND_ANNOTATION || t->ev.kind[e] == RP_KIND_CPU_OP ||
            t->ev.kind[e] == RP_KIND_RUNTIME || t->ev.kind[e] == RP_KIND_PYTHON)
            return true;
    return false;
}

bool rp_track_is_worker(const struct rp_trace *t, rp_track track)
{
    const int64_t *count = t->totals.count;

    if (count[RP_KIND_ANNOTATION] || count[RP_KIND_CPU_OP] || count[RP_KIND_RUNTIME] ||
        count[RP_KIND_PYTHON])
        return !works(t, track);
    return !t->tracks[track].text && /* a queue of calls belongs to the whole program */
           t->tracks[track].native_id != t->processes[t->tracks[track].process].native_id;
}

/* ------------------------------------------------------------------ rows */

struct wait_ctx {
    const struct rp_trace *t;
    const struct rp_interval *in;
    size_t nin;
    struct rp_name_series series;
    struct rp_map rows; /* hash -> row */
    struct rp_arena *arena;
    struct rp_host_waits *out;
};

/* The name of the innermost range around an event, or NULL. */
static const char *range_around(const struct wait_ctx *w, rp_event e, uint64_t *key)
{
    rp_event p = rp_event_around(w->t, w->t->ev.parent[e], RP_KIND_ANNOTATION);

    *key = 0;
    if (p == RP_NONE)
        return NULL;
    const char *series = rp_name_series_of(&w->series, w->t->ev.name[p]);
    *key = series ? UINT64_C(1) << 62 | w->series.series.at[w->t->ev.name[p]]
                  : UINT64_C(1) << 63 | w->t->ev.name[p];
    return series ? series : rp_trace_str(w->t, w->t->ev.name[p]);
}

static enum rp_code add_event(struct wait_ctx *w, rp_event e, bool worker, int64_t ns,
                              struct rp_err *err)
{
    uint32_t fresh = (uint32_t)w->out->rows.n, at;
    uint64_t words[3] = {w->t->ev.name[e], 0, worker};
    const char *range = range_around(w, e, &words[1]);

    RP_TRY(rp_map_intern(&w->rows, rp_hash_bytes(words, sizeof words), fresh, &at, err));
    if (at == fresh) {
        struct rp_host_wait row = {.worker = worker};

        row.call = rp_arena_text(w->arena, rp_trace_str(w->t, w->t->ev.name[e]));
        row.range = range ? rp_arena_text(w->arena, range) : NULL;
        RP_TRY(rp_vec_push(&w->out->rows, row, err));
    }

    struct rp_host_wait *row = &w->out->rows.at[at];
    rp_ns_add(&row->total_ns, ns);
    row->count++;
    row->longest_ns = ns > row->longest_ns ? ns : row->longest_ns;
    rp_ns_add(worker ? &w->out->worker_ns : &w->out->main_ns, ns);
    return RP_OK;
}

static enum rp_code add_track(struct wait_ctx *w, rp_track track, struct rp_err *err)
{
    const struct rp_trace *t = w->t;
    bool worker = rp_track_is_worker(t, track), any = false;

    for (rp_event e = t->tracks[track].first; e < t->tracks[track].end; e++) {
        if (t->ev.kind[e] != RP_KIND_WAIT || !rp_event_is_host_wait(t, e))
            continue;
        int64_t ns = rp_union_covers(w->in, w->nin, t->ev.ts_ns[e], rp_event_end_ns(t, e));
        if (ns <= 0)
            continue;
        any = true;
        RP_TRY(add_event(w, e, worker, ns, err));
    }
    *(worker ? &w->out->workers : &w->out->threads) += any;
    return RP_OK;
}

static enum rp_code add_tracks(struct wait_ctx *w, struct rp_err *err)
{
    RP_TRY(rp_name_series_init(&w->series, w->t, err));
    for (rp_track track = 0; track < w->t->ntracks; track++)
        if (w->t->tracks[track].kind == RP_TRACK_THREAD)
            RP_TRY(add_track(w, track, err));
    rp_host_waits_sort(w->out);
    w->out->rows.n = w->out->rows.n < MOST_ROWS ? w->out->rows.n : MOST_ROWS;
    return rp_arena_check(w->arena, "listing waits", err);
}

enum rp_code rp_host_waits_init(struct rp_host_waits *out, const struct rp_trace *trace,
                                const struct rp_interval *in, size_t n, struct rp_arena *arena,
                                struct rp_err *err)
{
    struct wait_ctx w = {.t = trace, .in = in, .nin = n, .arena = arena, .out = out};

    *out = (struct rp_host_waits){0};
    if (!trace->totals.count[RP_KIND_WAIT])
        return RP_OK;
    enum rp_code code = add_tracks(&w, err);
    rp_name_series_release(&w.series);
    rp_map_release(&w.rows);
    return code;
}

void rp_host_waits_release(struct rp_host_waits *w)
{
    rp_vec_release(&w->rows);
}

static int text_order(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

RP_ORDER(by_time, struct rp_host_wait, RP_UP(worker), RP_DOWN(total_ns),
         text_order(a->call, b->call), text_order(a->range, b->range))

void rp_host_waits_sort(struct rp_host_waits *w)
{
    rp_sort(w->rows.at, w->rows.n, sizeof *w->rows.at, by_time);
}

/* Linear searches suffice, because rows are few: calls times ranges. */
enum rp_code rp_host_waits_join(struct rp_host_waits *to, const struct rp_host_waits *from,
                                struct rp_err *err)
{
    size_t i, k;

    for (i = 0; i < from->rows.n; i++) {
        const struct rp_host_wait *x = &from->rows.at[i];
        struct rp_host_wait *row = NULL;

        for (k = 0; k < to->rows.n; k++) {
            row = &to->rows.at[k];
            if (row->worker == x->worker && !strcmp(row->call, x->call) &&
                !text_order(row->range, x->range))
                break;
        }
        if (k == to->rows.n) {
            RP_TRY(rp_vec_push(&to->rows, *x, err));
            continue;
        }
        rp_ns_add(&row->total_ns, x->total_ns);
        row->count += x->count;
        row->longest_ns = x->longest_ns > row->longest_ns ? x->longest_ns : row->longest_ns;
    }
    to->threads += from->threads;
    to->workers += from->workers;
    rp_ns_add(&to->main_ns, from->main_ns);
    rp_ns_add(&to->worker_ns, from->worker_ns);
    return RP_OK;
}

/* ------------------------------------------------------------------ the work of ranges */

/* Adds the parts of sorted intervals that others do not cover. */
static enum rp_code add_without(rp_interval_vec *to, const rp_interval_vec *from,
                                const rp_interval_vec *away, struct rp_err *err)
{
    size_t i, k = 0;

    if (!from->at)
        return RP_OK;
    for (i = 0; i < from->n; i++) {
        int64_t at = from->at[i].begin_ns, end = from->at[i].end_ns;

        for (; k < away->n && away->at[k].end_ns <= at; k++)
            ;
        for (size_t x = k; x < away->n && away->at[x].begin_ns < end; x++) {
            struct rp_interval part = {at, away->at[x].begin_ns};

            if (part.begin_ns < part.end_ns)
                RP_TRY(rp_vec_push(to, part, err));
            at = away->at[x].end_ns > at ? away->at[x].end_ns : at;
        }
        if (at < end)
            RP_TRY(rp_vec_push(to, ((struct rp_interval){at, end}), err));
    }
    return RP_OK;
}

static bool is_range(const struct rp_trace *t, const struct rp_scope *scope, rp_event e)
{
    return (t->ev.kind[e] == RP_KIND_ANNOTATION || t->ev.kind[e] == RP_KIND_OTHER) &&
           t->ev.dur_ns[e] >= 0 && t->ev.ts_ns[e] != RP_NO_TS &&
           (!scope || rp_scope_has(scope, t->ev.ts_ns[e]));
}

bool rp_trace_has_calls_only(const struct rp_trace *t)
{
    const int64_t *count = t->totals.count;

    return count[RP_KIND_COMM_OP] && !count[RP_KIND_ANNOTATION] && !count[RP_KIND_CPU_OP] &&
           !count[RP_KIND_RUNTIME] && !count[RP_KIND_PYTHON] && !count[RP_KIND_KERNEL];
}

/* Lists the time from the first call to the last, without the calls. */
static enum rp_code list_calls(const struct rp_trace *t, const struct rp_scope *scope,
                               rp_track track, rp_interval_vec *work, rp_interval_vec *away,
                               struct rp_err *err)
{
    struct rp_interval all = {INT64_MAX, INT64_MIN};

    if (rp_track_is_worker(t, track))
        return RP_OK;
    for (rp_event e = t->tracks[track].first; e < t->tracks[track].end; e++) {
        struct rp_interval x = {t->ev.ts_ns[e], rp_event_end_ns(t, e)};

        if (t->ev.ts_ns[e] == RP_NO_TS || t->ev.dur_ns[e] < 0 ||
            (t->ev.kind[e] != RP_KIND_WAIT && t->ev.kind[e] != RP_KIND_COMM_OP &&
             t->ev.kind[e] != RP_KIND_OTHER))
            continue;
        RP_TRY(rp_union_add(away, x.begin_ns, x.end_ns, err));
        all.begin_ns = x.begin_ns < all.begin_ns ? x.begin_ns : all.begin_ns;
        all.end_ns = x.end_ns > all.end_ns ? x.end_ns : all.end_ns;
    }
    if (scope && scope->limited) {
        all.begin_ns = scope->begin_ns > all.begin_ns ? scope->begin_ns : all.begin_ns;
        all.end_ns = scope->end_ns < all.end_ns ? scope->end_ns : all.end_ns;
    }
    return all.begin_ns < all.end_ns ? rp_union_add(work, all.begin_ns, all.end_ns, err) : RP_OK;
}

static enum rp_code list_track(const struct rp_trace *t, const struct rp_scope *scope,
                               rp_track track, rp_interval_vec *work, rp_interval_vec *away,
                               struct rp_err *err)
{
    for (rp_event e = t->tracks[track].first; e < t->tracks[track].end; e++) {
        struct rp_interval x = {t->ev.ts_ns[e], rp_event_end_ns(t, e)};
        bool comm = rp_event_is_host_collective(t, e);

        if (comm || t->ev.kind[e] == RP_KIND_WAIT) {
            if (t->ev.ts_ns[e] != RP_NO_TS && t->ev.dur_ns[e] >= 0)
                RP_TRY(rp_union_add(away, x.begin_ns, x.end_ns, err));
        } else if (is_range(t, scope, e)) {
            RP_TRY(rp_union_add(work, x.begin_ns, x.end_ns, err));
        }
    }
    return RP_OK;
}

static enum rp_code append(rp_interval_vec *to, const rp_interval_vec *from, struct rp_err *err)
{
    for (size_t i = 0; i < from->n; i++)
        RP_TRY(rp_vec_push(to, from->at[i], err));
    return RP_OK;
}

enum rp_code rp_ranges_unite(const struct rp_trace *trace, const struct rp_scope *scope,
                             rp_interval_vec *out, struct rp_err *err)
{
    rp_interval_vec work = {0}, away = {0};      /* of a thread */
    rp_interval_vec queued = {0}, in_call = {0}; /* of all queues of calls */
    bool calls = rp_trace_has_calls_only(trace);
    enum rp_code code = RP_OK;

    for (rp_track track = 0; track < trace->ntracks && code == RP_OK; track++) {
        if (trace->tracks[track].kind == RP_TRACK_STREAM)
            continue;
        work.n = away.n = 0;
        code = calls ? list_calls(trace, scope, track, &work, &away, err)
                     : list_track(trace, scope, track, &work, &away, err);
        if (code == RP_OK && calls && trace->tracks[track].text) {
            /* while this queue is empty, a call in another one may run */
            code = append(&queued, &work, err);
            if (code == RP_OK)
                code = append(&in_call, &away, err);
        } else if (code == RP_OK) {
            code = add_without(out, &work, &away, err);
        }
    }
    queued.n = rp_union_sort(queued.at, queued.n);
    in_call.n = rp_union_sort(in_call.at, in_call.n);
    if (code == RP_OK)
        code = add_without(out, &queued, &in_call, err);
    rp_vec_release(&work);
    rp_vec_release(&away);
    rp_vec_release(&queued);
    rp_vec_release(&in_call);
    return code;
}
