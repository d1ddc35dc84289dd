/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The course of a rank is made in three walks over its work in the order of the launches: each
 * collective finds what may have waited for it (find_waits), work is divided where something may
 * wait (find_cuts), and the host's time is divided between what was issued (emit_all).
 */
#include "places/course.h"

#include "base/decides.h"
#include "base/each.h"
#include "base/hash.h"
#include "base/order.h"
#include "facts/arg_keys.h"
#include "facts/host/signs.h"
#include "facts/times/step_times.h"
#include "facts/work/attribution.h"
#include "places/peers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TIGHT_NS 10000
RP_DECISION(TIGHT_NS, "ns",
            "an event is waited for on a stream in 2 to 5 us; what begins later after a collective "
            "began for another reason",
            "places/what_begins_soon_after_a_collective_waited_for_it");
#define SOON_NS 20000
RP_DECISION(
    SOON_NS, "ns",
    "a host that polls goes on within the length of a poll; what begins later after the last work "
    "began for another reason",
    "places/a_host_that_polls_waits");
#define HOST_EARLY_NS 10000
RP_DECISION(HOST_EARLY_NS, "ns",
            "clocks of device and host are converted into each other with an error of up to 10 us",
            "places/a_host_that_polls_may_seem_early");
#define LOOK_AHEAD 4096
RP_LIMIT(LOOK_AHEAD, "kernels",
         "what waits for a collective is searched so far; beyond, the end of the step does");
#define STRETCH 512
RP_LIMIT(STRETCH, "kernels", "so many are joined; with more, another operation begins");
#define MOST_KEYS 20000
RP_LIMIT(MOST_KEYS, "kinds of work",
         "of one rank; others are one kind, which nothing is compared with");
#define GAP_NS 3000
RP_DECISION(GAP_NS, "ns",
            "between work that was issued in time the device rests for 1 to 2 us; a longer rest is "
            "work of its own, that was not recorded",
            "places/a_rest_of_the_device_is_work");

#define ROUNDED_NS 1000
RP_FACT(ROUNDED_NS, "ns",
        "Kineto's times of this century in doubles of microseconds are exact to a quarter "
        "of one");

enum { KERNEL, COLLECTIVE, SYNC, LAST };

struct issued {
    int64_t at_ns;    /* when the host began to issue it */
    int64_t point_ns; /* when it had */
    int64_t begin_ns, end_ns;
    rp_event call;  /* RP_NONE: not recorded */
    uint32_t order; /* as found */
    uint32_t key;   /* of KERNEL */
    uint32_t ref;   /* for COLLECTIVE: index in the list; for SYNC: the work for which it waits, by
                       order */
    uint32_t index, ordinal, wait;
    uint16_t step;
    uint8_t kind;
    bool main;  /* runs on the stream that computes most */
    bool tight; /* of COLLECTIVE */
    bool cut;   /* begins an operation */
    bool copies;
};

struct maker {
    const struct rp_trace *t;
    const struct rp_work *work;
    const struct rp_collectives *collectives;
    struct rp_arena *arena;
    struct rp_course *out;
    struct rp_arg_key grid, block, bytes;
    struct rp_map keys, by_name, cells, of_event; /* of_event: the number of a collective */
    RP_VEC(struct issued) list;
    RP_VEC(struct rp_course_key) key_list;
    RP_VEC(struct rp_course_op) ops;
    RP_VEC(struct rp_course_item) items;
    RP_VEC(struct rp_peer_cell) cell_list;
    RP_VEC(struct rp_course_item) host, device; /* of the operations that are being made */
    RP_VEC(uint32_t) host_at, device_at;        /* by key: 1 + its place in them */
    RP_VEC(uint32_t) nth;  /* by order: position of kernels and collectives in their step */
    RP_VEC(rp_event) seen; /* by track: the next event to look at */
    uint32_t *first;       /* by step: of nth */
    uint32_t main_stream;
    rp_track track;           /* of the last call */
    int64_t begin_ns, end_ns; /* what is judged */
    uint32_t first_step, nsteps;
    bool on_device; /* steps are those of the device */
};

/* ------------------------------------------------------------------ keys */

static uint64_t text_hash(const struct rp_trace *t, rp_str s)
{
    return rp_hash_bytes(rp_trace_str(t, s), rp_trace_str_len(t, s));
}

static enum rp_code intern_key(struct maker *m, uint64_t hash, enum rp_course_class cls,
                               const char *name, uint32_t *out, struct rp_err *err)
{
    uint32_t fresh = (uint32_t)m->key_list.n;

    hash = rp_hash_join(hash, (uint64_t)cls + 1);
    if (m->key_list.n >= MOST_KEYS) {
        *out = rp_map_get(&m->keys, hash);
        *out = *out == RP_MAP_NONE ? 0 : *out;
        return RP_OK;
    }
    RP_TRY(rp_map_intern(&m->keys, hash, fresh, out, err));
    if (*out != fresh)
        return RP_OK;
    RP_TRY(rp_vec_push(&m->key_list,
                       ((struct rp_course_key){.hash = hash,
                                               .usual_ns = NAN,
                                               .cls = (uint32_t)cls,
                                               .name = rp_arena_text(m->arena, name)}),
                       err));
    RP_TRY(rp_vec_push(&m->host_at, 0, err));
    return rp_vec_push(&m->device_at, 0, err);
}

/* Returns the key of work: the same name with the same grid or, for copies, the same size. */
static enum rp_code kernel_key(struct maker *m, rp_event e, uint32_t *out, struct rp_err *err)
{
    uint64_t hash = text_hash(m->t, m->t->ev.name[e]);
    rp_str text;
    int64_t bytes;

    if (rp_arg_key_text(&m->grid, e, &text))
        hash = rp_hash_join(hash, text_hash(m->t, text));
    if (rp_arg_key_text(&m->block, e, &text))
        hash = rp_hash_join(hash, text_hash(m->t, text));
    if (m->t->ev.kind[e] != RP_KIND_KERNEL && rp_arg_key_int(&m->bytes, e, &bytes))
        hash = rp_hash_join(hash, (uint64_t)bytes);
    return intern_key(m, hash, RP_COURSE_KERNEL, rp_trace_str(m->t, m->t->ev.name[e]), out, err);
}

static enum rp_code named_key(struct maker *m, enum rp_course_class cls, rp_str name, uint32_t *out,
                              struct rp_err *err)
{
    uint64_t id = (uint64_t)name * RP_COURSE_CLASSES + (uint64_t)cls;

    *out = rp_map_get(&m->by_name, id);
    if (*out != RP_MAP_NONE)
        return RP_OK;
    RP_TRY(intern_key(m, text_hash(m->t, name), cls, rp_trace_str(m->t, name), out, err));
    return rp_map_put(&m->by_name, id, *out, err);
}

static enum rp_code count_cell(struct maker *m, uint32_t key, uint32_t step, int64_t ns,
                               struct rp_err *err)
{
    uint32_t at, fresh = (uint32_t)m->cell_list.n;

    RP_TRY(rp_map_intern(&m->cells, (uint64_t)step << 32 | key, fresh, &at, err));
    if (at == fresh)
        RP_TRY(rp_vec_push(&m->cell_list, ((struct rp_peer_cell){.key = key, .step = step}), err));
    struct rp_peer_cell *c = &m->cell_list.at[at];
    c->n++;
    c->dur_ns += (double)ns;
    c->squares += (double)ns * (double)ns;
    return RP_OK;
}

/* Computes the usual time of each key, by step. */
static enum rp_code find_usual(struct maker *m, struct rp_err *err)
{
    RP_FREED struct rp_peer_key *keys = calloc(m->key_list.n + 1, sizeof *keys);

    RP_TRY(rp_err_need(keys, err, "comparing work"));
    RP_TRY(rp_peers_usual(m->cell_list.at, m->cell_list.n, keys, m->key_list.n, err));
    for (size_t i = 0; i < m->key_list.n; i++) {
        const struct rp_course_key *key = &m->key_list.at[i];
        bool waits = key->cls == RP_COURSE_CALL &&
                     rp_host_signs(key->name) & (RP_SIGN_BLOCKS | RP_SIGN_RANKS);

        m->key_list.at[i].usual_ns = waits ? NAN : keys[i].usual_ns;
        m->key_list.at[i].spread = keys[i].spread;
        m->key_list.at[i].n = keys[i].n;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ what was issued */

/* Returns the step of a moment: the last one that has begun. */
static uint16_t step_at(const struct maker *m, int64_t ns)
{
    size_t i, n = m->t->nsteps ? m->nsteps : 0;

    RP_LOWER_BOUND(i, n, m->t->steps[m->first_step + i].begin_ns <= ns);
    return (uint16_t)(i ? i - 1 : 0);
}

/* Finds the steps that are judged, as far as they are consecutive; without steps, all is one
   step. */
static bool find_span(struct maker *m)
{
    const struct rp_trace *t = m->t;
    uint32_t i = 0, end;

    if (!t->nsteps) {
        struct rp_interval all = rp_trace_span(t);

        m->nsteps = 1;
        m->begin_ns = all.begin_ns;
        m->end_ns = all.end_ns;
        return true;
    }
    while (i < t->nsteps && (t->steps[i].flags & RP_STEP_NOT_JUDGED))
        i++;
    for (end = i; end < t->nsteps && !(t->steps[end].flags & RP_STEP_NOT_JUDGED); end++)
        ;
    if (i == end || end - i > UINT16_MAX)
        return false;
    m->first_step = i;
    m->nsteps = end - i;
    m->on_device = t->steps[i].flags & RP_STEP_ON_DEVICE;
    m->begin_ns = t->steps[i].begin_ns;
    m->end_ns = t->steps[end - 1].end_ns;
    return true;
}

static enum rp_code add_work(struct maker *m, const struct rp_work_item *x, struct rp_err *err)
{
    const struct rp_trace *t = m->t;
    struct issued one = {.at_ns = x->launch == RP_NONE ? x->begin_ns : t->ev.ts_ns[x->launch],
                         .point_ns =
                             x->launch == RP_NONE ? x->begin_ns : rp_event_end_ns(t, x->launch),
                         .begin_ns = x->begin_ns,
                         .end_ns = x->end_ns,
                         .call = x->launch,
                         .order = (uint32_t)m->list.n,
                         .main = x->stream == m->main_stream,
                         .copies = x->cls == RP_WORK_MEMORY};
    int64_t judged = m->on_device ? x->begin_ns : one.at_ns;

    one.ref = rp_map_get(&m->of_event, x->event);
    one.kind = one.ref == RP_MAP_NONE ? KERNEL : COLLECTIVE;
    if (judged < m->begin_ns || judged >= m->end_ns ||
        (x->cls == RP_WORK_MEMORY && !one.main && one.kind == KERNEL))
        return RP_OK;
    if (one.point_ns > one.begin_ns)
        one.point_ns = one.begin_ns; /* the call returned later than its work began */
    if (one.at_ns > one.point_ns)
        one.at_ns = one.point_ns;
    one.step = step_at(m, judged);
    if (one.kind == KERNEL)
        RP_TRY(kernel_key(m, x->event, &one.key, err));
    return rp_vec_push(&m->list, one, err);
}

RP_ORDER(by_launch, struct issued, RP_UP(at_ns), RP_UP(begin_ns), RP_UP(order))

/* Returns the work that was issued before a call and ended last during it. */
static uint32_t awaited_by(const struct maker *m, int64_t from_ns, int64_t until_ns, size_t nwork)
{
    uint32_t best = RP_NONE;
    size_t i, seen = 0;

    RP_LOWER_BOUND(i, nwork, m->list.at[i].at_ns < from_ns);
    for (; i > 0 && seen < LOOK_AHEAD; i--, seen++) {
        const struct issued *x = &m->list.at[i - 1];

        if (x->end_ns > until_ns)
            continue;
        if (best == RP_NONE || x->end_ns > m->list.at[best].end_ns)
            best = (uint32_t)(i - 1);
        if (x->main && x->kind == KERNEL)
            break; /* all work before it ended earlier */
    }
    return best != RP_NONE && m->list.at[best].end_ns > from_ns ? best : RP_NONE;
}

static enum rp_code add_sync(struct maker *m, rp_event call, uint32_t awaited, struct rp_err *err)
{
    const struct issued *x = &m->list.at[awaited];
    int64_t end = rp_event_end_ns(m->t, call);
    struct issued one = {.at_ns = m->t->ev.ts_ns[call],
                         .point_ns = end,
                         .begin_ns = end,
                         .end_ns = end,
                         .call = call,
                         .order = (uint32_t)m->list.n,
                         .ref = x->kind == COLLECTIVE ? x->ref : RP_NONE,
                         .step = step_at(m, m->t->ev.ts_ns[call]),
                         .kind = SYNC};

    return rp_vec_push(&m->list, one, err);
}

/* Whether a thread records nothing between two moments. */
static bool is_quiet(const struct rp_trace *t, rp_track track, int64_t from_ns, int64_t to_ns)
{
    rp_event e, end = t->tracks[track].end;

    RP_LOWER_BOUND_FROM(e, t->tracks[track].first, end, t->ev.ts_ns[e] <= from_ns);
    return e == end || t->ev.ts_ns[e] >= to_ns;
}

/* A place at which a host that called nothing since it issued work continues, in all steps. */
struct pause {
    uint64_t site;
    uint32_t next, last; /* what it issues then, and the work that ended last before */
    int64_t issued_ns, end_ns;
    int64_t late_ns; /* how much later than that end it continues */
};

RP_ORDER(by_site, struct pause, RP_UP(site), RP_UP(next))

/* Returns a key of the k-th launch of a step, of one kind of work. */
static uint64_t site_of_launch(const struct maker *m, const struct issued *x, uint32_t nth)
{
    uint64_t what =
        x->kind == KERNEL ? m->key_list.at[x->key].hash : m->collectives->list.at[x->ref].name_hash;

    return rp_hash_join(what, nth);
}

static size_t list_pauses(const struct maker *m, struct pause *out)
{
    int64_t issued = INT64_MIN, end = INT64_MIN;
    uint32_t last = RP_NONE, nth = 0;
    size_t n = 0;

    for (uint32_t i = 0; i < m->list.n; i++) {
        const struct issued *x = &m->list.at[i];

        nth = i && x->step == m->list.at[i - 1].step ? nth + 1 : 0;
        if (x->call != RP_NONE && last != RP_NONE && end > issued &&
            rp_ns_between(issued, x->at_ns) > SOON_NS &&
            is_quiet(m->t, m->t->ev.track[x->call], issued,
                     end < x->at_ns ? end : rp_ns_sum(x->at_ns, -HOST_EARLY_NS)))
            out[n++] = (struct pause){site_of_launch(m, x, nth),   i, last, issued, end,
                                      rp_ns_between(end, x->at_ns)};
        if (x->call != RP_NONE && x->point_ns > issued)
            issued = x->point_ns;
        if (x->end_ns > end) {
            end = x->end_ns;
            last = i;
        }
    }
    return n;
}

/* A host that polls calls nothing: it never continues before all work that it issued is done, and
   at least once soon after that. */
static enum rp_code add_silent(struct maker *m, struct rp_err *err)
{
    struct pause *p = RP_ARENA_NEW(m->arena, struct pause, m->list.n + 1);
    size_t n, end;

    RP_TRY(rp_err_need(p, err, "comparing work"));
    n = list_pauses(m, p);
    rp_sort(p, n, sizeof *p, by_site);
    for (size_t i = 0; i < n; i = end) {
        bool early = false, soon = false;

        for (end = i; end < n && p[end].site == p[i].site; end++) {
            early |= p[end].late_ns < -HOST_EARLY_NS;
            soon |= p[end].late_ns <= SOON_NS;
        }
        for (size_t k = i; k < end && soon && !early; k++) {
            const struct issued last = m->list.at[p[k].last];
            int64_t on = p[k].late_ns < 0 ? rp_ns_sum(p[k].end_ns, p[k].late_ns) : p[k].end_ns;
            struct issued one = {.at_ns = p[k].issued_ns,
                                 .point_ns = on,
                                 .begin_ns = on,
                                 .end_ns = on,
                                 .call = m->list.at[p[k].next].call,
                                 .order = (uint32_t)m->list.n,
                                 .ref = last.kind == COLLECTIVE ? last.ref : RP_NONE,
                                 .step = last.step,
                                 .kind = SYNC};

            RP_TRY(rp_vec_push(&m->list, one, err));
        }
    }
    return RP_OK;
}

/* Adds calls that wait until the device has done the work issued before, and those that return when
   their copy has ended. */
static enum rp_code add_syncs(struct maker *m, size_t nwork, struct rp_err *err)
{
    const struct rp_trace *t = m->t;
    RP_FREED uint8_t *known = calloc((size_t)t->str.n + 1, 1);

    RP_TRY(rp_err_need(known, err, "comparing work"));
    for (uint32_t i = 0; i < nwork; i++)
        if (m->list.at[i].copies && m->list.at[i].call != RP_NONE &&
            rp_event_end_ns(t, m->list.at[i].call) >= m->list.at[i].end_ns)
            RP_TRY(add_sync(m, m->list.at[i].call, i, err));
    for (rp_event e = 0; e < t->ev.n; e++) {
        uint32_t awaited = RP_NONE;
        int64_t at = t->ev.ts_ns[e];

        if (t->ev.kind[e] != RP_KIND_RUNTIME || at < m->begin_ns || at >= m->end_ns)
            continue;
        if (!known[t->ev.name[e]])
            known[t->ev.name[e]] =
                1 + !!(rp_host_signs(rp_trace_str(t, t->ev.name[e])) & RP_SIGN_BLOCKS);
        if (known[t->ev.name[e]] > 1)
            awaited = awaited_by(m, at, rp_event_end_ns(t, e), nwork);
        if (awaited != RP_NONE && !(m->list.at[awaited].copies && m->list.at[awaited].call == e))
            RP_TRY(add_sync(m, e, awaited, err));
    }
    return RP_OK;
}

static enum rp_code list_issued(struct maker *m, struct rp_err *err)
{
    struct issued last = {.kind = LAST, .call = RP_NONE, .step = (uint16_t)(m->nsteps - 1)};

    for (size_t i = 0; i < m->collectives->list.n; i++)
        if (m->collectives->list.at[i].event != RP_NONE)
            RP_TRY(rp_map_put(&m->of_event, m->collectives->list.at[i].event, (uint32_t)i, err));
    for (size_t i = 0; i < m->work->items.n; i++)
        RP_TRY(add_work(m, &m->work->items.at[i], err));
    rp_sort(m->list.at, m->list.n, sizeof *m->list.at, by_launch);
    size_t nwork = m->list.n;
    RP_TRY(add_silent(m, err));
    RP_TRY(add_syncs(m, nwork, err));
    rp_sort(m->list.at, m->list.n, sizeof *m->list.at, by_launch);
    last.at_ns = last.point_ns = last.begin_ns = last.end_ns = m->end_ns;
    return rp_vec_push(&m->list, last, err);
}

/* Numbers kernels and collectives in their steps, and names the program of each step. */
static enum rp_code number_issued(struct maker *m, struct rp_err *err)
{
    uint32_t ordinal = 0, step = RP_NONE;

    m->first = RP_ARENA_NEW(m->arena, uint32_t, m->nsteps + 2);
    m->out->steps = RP_ARENA_NEW(m->arena, struct rp_course_step, m->nsteps);
    RP_TRY(rp_err_need(m->first && m->out->steps, err, "comparing work"));
    m->out->nsteps = m->nsteps;
    for (uint32_t s = 0; s < m->nsteps; s++)
        m->out->steps[s].number = m->t->nsteps ? m->t->steps[m->first_step + s].number : 0;
    for (size_t i = 0; i < m->list.n; i++) {
        struct issued *x = &m->list.at[i];
        struct rp_course_step *to = &m->out->steps[x->step];

        if (i && x->step < m->list.at[i - 1].step)
            x->step = m->list.at[i - 1].step; /* of the device, issued out of order */
        if (x->kind == SYNC || x->kind == LAST)
            continue;
        while (step != x->step) {
            step = step == RP_NONE ? 0 : step + 1;
            m->first[step] = (uint32_t)m->nth.n;
            ordinal = 0;
        }
        x->index = (uint32_t)m->nth.n - m->first[step];
        x->ordinal = x->kind == COLLECTIVE ? ordinal++ : 0;
        to->program =
            rp_hash_join(to->program, x->kind == COLLECTIVE ? m->collectives->list.at[x->ref].kind
                                                            : m->key_list.at[x->key].hash);
        RP_TRY(rp_vec_push(&m->nth, (uint32_t)i, err));
    }
    for (step = step == RP_NONE ? 0 : step + 1; step <= m->nsteps; step++)
        m->first[step] = (uint32_t)m->nth.n;
    return RP_OK;
}

/* ------------------------------------------------------------------ waits */

/* The same collective in other steps of the same program waits at the last of their places. */
static enum rp_code find_waits(struct maker *m, struct rp_err *err)
{
    RP_SCOPED(rp_map_release) struct rp_map sites = {0};

    for (size_t i = 0; i < m->nth.n; i++) {
        struct issued *c = &m->list.at[m->nth.at[i]];
        uint64_t site = rp_hash_join(m->out->steps[c->step].program, c->ordinal);

        if (c->kind != COLLECTIVE)
            continue;

        /* Work that began before a collective ended did not wait for it, and neither did anything
           issued earlier; the first work that was issued after all these may have waited. */
        uint32_t k = m->first[c->step] + c->index + 1, end = m->first[c->step + 1], at = RP_NONE;
        for (uint32_t n = 0; k < end && n < LOOK_AHEAD; k++, n++) {
            const struct issued *x = &m->list.at[m->nth.at[k]];

            if (rp_ns_between(x->begin_ns, c->end_ns) > RP_COURSE_EARLY_NS) {
                at = RP_NONE;
                continue;
            }
            at = at == RP_NONE ? k : at;
            if (x->kind == KERNEL && x->main)
                break;
        }
        c->wait = (at == RP_NONE ? end : at) - m->first[c->step];
        c->tight = at != RP_NONE &&
                   rp_ns_between(c->end_ns, m->list.at[m->nth.at[at]].begin_ns) <= TIGHT_NS;

        uint32_t most = rp_map_get(&sites, site);
        if (most == RP_MAP_NONE || c->wait > most)
            RP_TRY(rp_map_put(&sites, site, c->wait, err));
    }
    for (size_t i = 0; i < m->nth.n; i++) {
        const struct issued *c = &m->list.at[m->nth.at[i]];
        uint64_t site = rp_hash_join(m->out->steps[c->step].program, c->ordinal);
        uint32_t most, first = m->first[c->step], n = m->first[c->step + 1] - first;

        if (c->kind != COLLECTIVE)
            continue;
        most = rp_map_get(&sites, site);
        if (c->wait < n)
            m->list.at[m->nth.at[first + c->wait]].cut = true;
        if (most < n)
            m->list.at[m->nth.at[first + most]].cut = true;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ operations */

/* Finds, among the work from i on that could be joined, the launch that was closest to being late:
   its slack relative to how long the device had worked since. */
static void cut_at_tightest(struct maker *m, size_t first, size_t end)
{
    int64_t from = m->list.at[first].begin_ns;
    double least = 1;
    size_t best = 0;

    for (size_t i = first + 1; i < end; i++) {
        const struct issued *x = &m->list.at[i];
        double left = (double)rp_ns_between(x->point_ns, x->begin_ns) - (double)m->out->latency_ns;
        double worked = (double)rp_ns_between(from, x->begin_ns);

        if (x->kind == KERNEL && x->call != RP_NONE && worked > 0 && left / worked < least) {
            least = left / worked;
            best = i;
        }
    }
    if (best)
        m->list.at[best].cut = true;
}

/* Operations begin after waits, where something may wait, and where the device waited for the host;
   and once more in each stretch between these. */
static void find_cuts(struct maker *m)
{
    int64_t busy = INT64_MIN;
    size_t first = SIZE_MAX, n = 0;
    uint16_t step = 0;

    for (size_t i = 0; i < m->list.n; i++) {
        struct issued *x = &m->list.at[i];

        if (x->kind == KERNEL) {
            if (first == SIZE_MAX || x->step != step || n >= STRETCH ||
                (x->call != RP_NONE && busy < rp_ns_sum(x->point_ns, m->out->latency_ns)))
                x->cut = true;
            busy = x->end_ns > busy ? x->end_ns : busy;
        }
        if (first != SIZE_MAX && (x->cut || x->kind != KERNEL))
            cut_at_tightest(m, first, i);
        if (x->cut || x->kind != KERNEL)
            n = 0;
        n++;
        first = x->kind != KERNEL ? SIZE_MAX : x->cut ? i : first;
        step = x->step;
    }
}

/* Adds an item to an operation that is being made; `at` tells the place of its key in it. */
#define ADD_ITEM(m, list, key_, ns, err)                                     \
    ((m)->list##_at.at[key_]                                                 \
         ? ((m)->list.at[(m)->list##_at.at[key_] - 1].n++,                   \
            (m)->list.at[(m)->list##_at.at[key_] - 1].dur_ns += (ns), RP_OK) \
         : ((m)->list##_at.at[key_] = (uint32_t)(m)->list.n + 1,             \
            rp_vec_push(&(m)->list, ((struct rp_course_item){(ns), (key_), 1}), (err))))

#define FLUSH(m, list, op, err)                                        \
    do {                                                               \
        (op)->first = (uint32_t)(m)->items.n;                          \
        (op)->n = (uint32_t)(m)->list.n;                               \
        for (size_t i_ = 0; i_ < (m)->list.n; i_++) {                  \
            (m)->list##_at.at[(m)->list.at[i_].key] = 0;               \
            RP_TRY(rp_vec_push(&(m)->items, (m)->list.at[i_], (err))); \
        }                                                              \
        (m)->list.n = 0;                                               \
    } while (0)

static enum rp_code add_host(struct maker *m, uint32_t key, uint16_t step, int64_t ns,
                             struct rp_err *err)
{
    if (ns <= 0)
        return RP_OK;
    RP_TRY(count_cell(m, key, step, ns, err));
    return ADD_ITEM(m, host, key, ns, err);
}

static enum rp_code flush_host(struct maker *m, uint16_t step, int64_t *worked_ns,
                               struct rp_err *err)
{
    struct rp_course_op op = {.kind = RP_COURSE_HOST, .step = step, .dur_ns = *worked_ns};

    if (!*worked_ns && !m->host.n)
        return RP_OK;
    FLUSH(m, host, &op, err);
    *worked_ns = 0;
    return rp_vec_push(&m->ops, op, err);
}

/* Returns the outermost operator around a call, or the call. */
static rp_event block_of(const struct rp_trace *t, rp_event call)
{
    rp_event best = call, e = call;

    for (int n = 0; e != RP_NONE && n < RP_ANCESTORS_MAX; n++, e = t->ev.parent[e])
        if (t->ev.kind[e] == RP_KIND_CPU_OP)
            best = e;
    return best;
}

/* Divides the time of the last call's thread between two moments: into spans between them, and
   unrecorded time before each span, which is named after the span. Returns the end of the last one
   in *at_ns. */
static enum rp_code divide_gap(struct maker *m, int64_t *at_ns, int64_t to_ns, uint16_t step,
                               struct rp_err *err)
{
    const struct rp_trace *t = m->t;
    rp_event e = m->seen.at[m->track];
    uint32_t key;

    for (; e < t->tracks[m->track].end && t->ev.ts_ns[e] < to_ns; e++) {
        int64_t begin = t->ev.ts_ns[e] < *at_ns ? *at_ns : t->ev.ts_ns[e];
        int64_t end = rp_event_end_ns(t, e);

        if (begin - t->ev.ts_ns[e] > ROUNDED_NS || end - to_ns > ROUNDED_NS || end <= begin)
            continue;
        end = end < to_ns ? end : to_ns;
        RP_TRY(named_key(m, RP_COURSE_CALL, t->ev.name[e], &key, err));
        RP_TRY(add_host(m, key, step, rp_ns_between(begin, end), err));
        RP_TRY(named_key(m, RP_COURSE_GAP, t->ev.name[e], &key, err));
        RP_TRY(add_host(m, key, step, rp_ns_between(*at_ns, begin), err));
        *at_ns = end;
    }
    m->seen.at[m->track] = e;
    return RP_OK;
}

/* Divides the host's time from one moment to when it has issued something. Unrecorded time before
   the end may not be the program's; and work without a recorded call tells nothing. */
static enum rp_code divide_host(struct maker *m, const struct issued *x, int64_t *host_ns,
                                struct rp_err *err)
{
    const struct rp_trace *t = m->t;
    int64_t until = x->kind == SYNC ? x->at_ns : x->point_ns, begin;
    uint32_t key;

    if (x->kind == LAST && m->track != RP_NONE)
        return divide_gap(m, host_ns, until, x->step, err);
    if (x->call == RP_NONE)
        return RP_OK;
    rp_event block = block_of(t, x->call);
    m->track = t->ev.track[block];
    if (until <= *host_ns)
        return RP_OK;
    begin = t->ev.ts_ns[block] < until ? t->ev.ts_ns[block] : until;
    if (begin > *host_ns) {
        RP_TRY(divide_gap(m, host_ns, begin, x->step, err));
        RP_TRY(named_key(m, RP_COURSE_GAP, t->ev.name[block], &key, err));
        RP_TRY(add_host(m, key, x->step, rp_ns_between(*host_ns, begin), err));
        *host_ns = begin;
    }
    RP_TRY(named_key(m, RP_COURSE_CALL, t->ev.name[block], &key, err));
    RP_TRY(add_host(m, key, x->step, rp_ns_between(*host_ns, until), err));
    *host_ns = until;
    return RP_OK;
}

struct emitter {
    int64_t host_ns;   /* where the host is */
    int64_t worked_ns; /* since its last operation */
    uint32_t op;       /* the operation of the device that is being made, or RP_NONE */
    int64_t busy_ns;   /* how long the device is busy */
    int64_t met_ns;    /* the last end of a collective */
};

static enum rp_code end_device(struct maker *m, struct emitter *x, struct rp_err *err)
{
    if (x->op == RP_NONE)
        return RP_OK;
    FLUSH(m, device, &m->ops.at[x->op], err);
    x->op = RP_NONE;
    return RP_OK;
}

static enum rp_code emit_kernel(struct maker *m, struct emitter *x, const struct issued *k,
                                struct rp_err *err)
{
    struct rp_course_op fresh = {.kind = RP_COURSE_DEVICE,
                                 .begin_ns = k->begin_ns > x->busy_ns ? k->begin_ns : x->busy_ns,
                                 .index = k->index,
                                 .ref = RP_NONE,
                                 .step = k->step};
    int64_t from = fresh.begin_ns, rest;
    uint32_t key;

    if (k->end_ns <= from && x->op != RP_NONE && !k->cut)
        return RP_OK; /* beside other work */
    if (x->op == RP_NONE || k->cut) {
        RP_TRY(end_device(m, x, err));
        RP_TRY(flush_host(m, k->step, &x->worked_ns, err));
        x->op = (uint32_t)m->ops.n;
        RP_TRY(rp_vec_push(&m->ops, fresh, err));
    } else if ((rest = rp_ns_between(x->busy_ns, from)) > GAP_NS) {
        RP_TRY(intern_key(m, m->key_list.at[k->key].hash, RP_COURSE_REST,
                          m->key_list.at[k->key].name, &key, err));
        RP_TRY(count_cell(m, key, k->step, rest, err));
        RP_TRY(ADD_ITEM(m, device, key, rest, err));
    }
    if (k->end_ns > from) {
        RP_TRY(count_cell(m, k->key, k->step, rp_ns_between(from, k->end_ns), err));
        RP_TRY(ADD_ITEM(m, device, k->key, rp_ns_between(from, k->end_ns), err));
        x->busy_ns = k->end_ns;
    }
    m->ops.at[x->op].dur_ns = rp_ns_between(m->ops.at[x->op].begin_ns, x->busy_ns);
    return RP_OK;
}

/* For a collective without a recorded call, nothing tells why the device rested. */
static enum rp_code add_rest(struct maker *m, const struct emitter *x, const struct issued *i,
                             struct rp_course_op *op, struct rp_err *err)
{
    int64_t from = x->met_ns <= i->begin_ns && x->met_ns > x->busy_ns ? x->met_ns : x->busy_ns;
    const struct rp_collective *c = &m->collectives->list.at[i->ref];
    int64_t rest = from == INT64_MIN ? 0 : rp_ns_between(from, i->begin_ns);
    uint32_t key;

    if (i->call != RP_NONE || rest <= GAP_NS)
        return RP_OK;
    RP_TRY(intern_key(m, c->name_hash, RP_COURSE_REST, rp_trace_str(m->t, m->t->ev.name[c->event]),
                      &key, err));
    RP_TRY(count_cell(m, key, i->step, rest, err));
    op->first = (uint32_t)m->items.n;
    op->n = 1;
    return rp_vec_push(&m->items, ((struct rp_course_item){rest, key, 1}), err);
}

static enum rp_code emit_other(struct maker *m, struct emitter *x, const struct issued *i,
                               struct rp_err *err)
{
    struct rp_course_op op = {.kind = i->kind == SYNC ? RP_COURSE_SYNC : RP_COURSE_COLLECTIVE,
                              .begin_ns = i->begin_ns,
                              .dur_ns = rp_ns_between(i->begin_ns, i->end_ns),
                              .index = i->index,
                              .ref = i->ref,
                              .ordinal = i->ordinal,
                              .wait = i->wait,
                              .step = i->step,
                              .tight = i->tight};

    RP_TRY(end_device(m, x, err));
    RP_TRY(flush_host(m, i->step, &x->worked_ns, err));
    if (i->kind == COLLECTIVE) {
        RP_TRY(add_rest(m, x, i, &op, err));
        x->met_ns = i->end_ns > x->met_ns ? i->end_ns : x->met_ns;
    }
    if (i->kind == SYNC && i->end_ns > x->host_ns)
        x->host_ns = i->end_ns;
    return i->kind == LAST ? RP_OK : rp_vec_push(&m->ops, op, err);
}

static enum rp_code emit_all(struct maker *m, struct rp_err *err)
{
    struct emitter x = {
        .host_ns = m->begin_ns, .op = RP_NONE, .busy_ns = INT64_MIN, .met_ns = INT64_MIN};
    uint16_t step = 0;

    m->out->begin_ns = m->begin_ns;
    for (size_t i = 0; i < m->list.n; i++) {
        const struct issued *k = &m->list.at[i];
        int64_t from = x.host_ns;

        if (k->step != step) {
            RP_TRY(end_device(m, &x, err));
            RP_TRY(flush_host(m, step, &x.worked_ns, err));
            step = k->step;
        }
        RP_TRY(divide_host(m, k, &x.host_ns, err));
        x.worked_ns += rp_ns_between(from, x.host_ns);
        RP_TRY(k->kind == KERNEL ? emit_kernel(m, &x, k, err) : emit_other(m, &x, k, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the course */

static enum rp_code fill_course(struct maker *m, struct rp_err *err)
{
    struct rp_course *out = m->out;

    RP_TRY(find_usual(m, err));
    out->ops = m->ops.at, out->nops = m->ops.n;
    out->items = m->items.at, out->nitems = m->items.n;
    out->keys = m->key_list.at, out->nkeys = m->key_list.n;
    RP_TRY(rp_arena_adopt_column(m->arena, m->ops.at, m->ops.cap, sizeof *m->ops.at, err));
    memset(&m->ops, 0, sizeof m->ops);
    RP_TRY(rp_arena_adopt_column(m->arena, m->items.at, m->items.cap, sizeof *m->items.at, err));
    memset(&m->items, 0, sizeof m->items);
    RP_TRY(rp_arena_adopt_column(m->arena, m->key_list.at, m->key_list.cap, sizeof *m->key_list.at,
                                 err));
    memset(&m->key_list, 0, sizeof m->key_list);
    return rp_arena_check(m->arena, "comparing work", err);
}

static enum rp_code make_course(struct maker *m, struct rp_err *err)
{
    uint32_t other;

    RP_TRY(rp_arg_key_init(&m->grid, m->t, "grid", err));
    RP_TRY(rp_arg_key_init(&m->block, m->t, "block", err));
    RP_TRY(rp_arg_key_init(&m->bytes, m->t, "bytes", err));
    RP_TRY(intern_key(m, 0, RP_COURSE_GAP, "other work", &other, err));

    /* The main stream is the one with the most compute. */
    int64_t *sum = RP_ARENA_NEW(m->arena, int64_t, m->work->streams.n + 1);
    for (size_t i = 0; sum && i < m->work->items.n; i++) {
        const struct rp_work_item *x = &m->work->items.at[i];

        if (x->cls == RP_WORK_COMPUTE)
            rp_ns_add(&sum[x->stream], rp_ns_between(x->begin_ns, x->end_ns));
    }
    for (uint32_t s = 0; sum && s < m->work->streams.n; s++)
        if (sum[s] > sum[m->main_stream])
            m->main_stream = s;

    RP_TRY(list_issued(m, err));
    RP_TRY(number_issued(m, err));
    RP_TRY(find_waits(m, err));

    /* Find the least times between a launch and its work, and between two items of work on a
       stream. */
    int64_t latency = INT64_MAX, gap = INT64_MAX, end = INT64_MIN;
    for (size_t i = 0; i < m->nth.n; i++) {
        const struct issued *x = &m->list.at[m->nth.at[i]];
        int64_t late = rp_ns_between(x->point_ns, x->begin_ns);

        if (x->call != RP_NONE && late < latency)
            latency = late;
        if (x->kind != KERNEL || !x->main)
            continue;
        if (end != INT64_MIN && x->begin_ns >= end && rp_ns_between(end, x->begin_ns) < gap)
            gap = rp_ns_between(end, x->begin_ns);
        end = x->end_ns;
    }
    m->out->latency_ns = latency == INT64_MAX ? 0 : latency;
    m->out->gap_ns = gap == INT64_MAX ? 0 : gap;

    find_cuts(m);
    RP_TRY(rp_vec_reserve(&m->seen, m->t->ntracks + 1, err));
    for (uint32_t i = 0; i < m->t->ntracks; i++)
        m->seen.at[m->seen.n++] = m->t->tracks[i].first;
    RP_TRY(emit_all(m, err));
    return fill_course(m, err);
}

/* Whether anything except collectives was recorded, so that there is something to compare. */
static bool has_work(const struct rp_work *work)
{
    for (size_t i = 0; i < work->items.n; i++)
        if (work->items.at[i].cls == RP_WORK_COMPUTE)
            return true;
    return false;
}

enum rp_code rp_course_make(struct rp_course *out, const struct rp_work *work,
                            const struct rp_collectives *collectives, struct rp_arena *arena,
                            struct rp_err *err)
{
    struct maker m = {
        .t = work->trace, .work = work, .collectives = collectives, .arena = arena, .out = out};
    enum rp_code code = RP_OK;

    *out = (struct rp_course){0};
    if (!collectives->list.n || collectives->on_host || !has_work(work) || !find_span(&m))
        return RP_OK;
    code = make_course(&m, err);
    rp_arg_key_release(&m.grid);
    rp_arg_key_release(&m.block);
    rp_arg_key_release(&m.bytes);
    RP_EACH(rp_map_release, &m.keys, &m.by_name, &m.cells, &m.of_event);
    RP_EACH(rp_vec_release, &m.list, &m.key_list, &m.ops, &m.items, &m.cell_list, &m.host,
            &m.device, &m.host_at);
    RP_EACH(rp_vec_release, &m.device_at, &m.nth, &m.seen);
    if (code != RP_OK)
        *out = (struct rp_course){0};
    return code;
}

RP_PART_TYPE(rp_course_key_type, struct rp_course_key, RP_COURSE_KEY_PART);
RP_PART_TYPE(rp_course_type, struct rp_course, RP_COURSE_PART);
