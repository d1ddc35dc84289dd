/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each rank is run until it needs the end of a collective that a member has not reached; then it
 * rests until the last of them has. Work: operations times columns. Memory: a vector for each rank
 * and each collective.
 */
#include "places/rerun.h"

#include "base/hash.h"
#include "base/order.h"

#include <math.h>
#include <string.h>

#define COLUMNS RP_RERUN_COLUMNS
#define NEVER   (-INFINITY)

/* ------------------------------------------------------------------ slots */

static int64_t dur_of(const struct rp_collective *c)
{
    int64_t ns = rp_ns_between(c->begin_ns, c->end_ns);

    return ns > 0 ? ns : 0;
}

/* Whether all members of a rendezvous wait for all others. The sender of a message that a device
   sends waits for its receiver, because only small messages are buffered. */
static bool is_mutual(const struct rp_rerun *x, const struct rp_rendezvous *m)
{
    bool pair = m->senders && !x->ranks[m->rank[0]].list->on_host;

    return m->n > 1 && (pair || (!m->open && m->source == RP_NONE));
}

static const struct rp_collective *member_of(const struct rp_rerun *x,
                                             const struct rp_rendezvous *m, uint32_t i)
{
    return &x->ranks[m->rank[i]].list->list.at[m->at[i]];
}

static size_t place_slots(struct rp_rerun *x)
{
    size_t sum = 0;

    for (size_t r = 0; r < x->n; r++) {
        struct rp_rerun_rank *rank = &x->ranks[r];
        size_t n = rank->list->list.n;

        for (size_t i = 0; i <= n; i++) {
            uint32_t count = i < n ? rank->first[i] : 0;

            if (i < n && !count && rank->op_of[i] != RP_NONE) {
                count = 1; /* of its own */
                x->nslots++;
            }
            rank->first[i] = (uint32_t)sum;
            sum += count;
        }
    }
    return sum;
}

static void fill_slots(struct rp_rerun *x, const struct rp_rendezvous_list *list, const bool *used)
{
    size_t at = 0;

    for (size_t i = 0; i < list->n; i++) {
        const struct rp_rendezvous *m = &list->at[i];
        int64_t least = INT64_MAX;

        if (!used[i])
            continue;
        for (uint32_t k = 0; k < m->n; k++) {
            const struct rp_rerun_rank *rank = &x->ranks[m->rank[k]];
            uint32_t to = rank->first[m->at[k]];
            int64_t dur = dur_of(member_of(x, m, k));

            least = dur < least ? dur : least;
            while (x->slot_of[to] != RP_NONE)
                to++;
            x->slot_of[to] = (uint32_t)at;
        }
        x->npartial += m->members > (int64_t)m->n;
        x->slots[at++] = (struct rp_rerun_slot){(float)least, 0, m->n, (uint32_t)i};
    }
    for (size_t r = 0; r < x->n; r++) {
        const struct rp_rerun_rank *rank = &x->ranks[r];

        for (size_t i = 0; i < rank->list->list.n; i++)
            if (rank->first[i + 1] > rank->first[i] && x->slot_of[rank->first[i]] == RP_NONE) {
                x->slot_of[rank->first[i]] = (uint32_t)at;
                x->slots[at++] =
                    (struct rp_rerun_slot){(float)dur_of(&rank->list->list.at[i]), 0, 1, RP_NONE};
            }
    }
}

static enum rp_code make_slots(struct rp_rerun *x, const struct rp_rendezvous_list *list,
                               struct rp_err *err)
{
    bool *used = RP_ARENA_NEW(&x->arena, bool, list->n + 1);
    size_t n, nmatched = 0;

    RP_TRY(rp_err_need(used, err, "running ranks again"));

    /* Count the slots of each collective. A collective whose operation is not in the course of its
       rank cannot be waited for. */
    for (size_t i = 0; i < list->n; i++) {
        const struct rp_rendezvous *m = &list->at[i];

        used[i] = is_mutual(x, m);
        for (uint32_t k = 0; used[i] && k < m->n; k++)
            used[i] = x->ranks[m->rank[k]].op_of[m->at[k]] != RP_NONE;
        for (uint32_t k = 0; used[i] && k < m->n; k++)
            x->ranks[m->rank[k]].first[m->at[k]]++;
    }

    for (size_t i = 0; i < list->n; i++)
        nmatched += used[i];
    n = place_slots(x);
    x->nslots += nmatched;
    x->slot_of = RP_ARENA_NEW(&x->arena, uint32_t, n + 1);
    x->slots = RP_ARENA_NEW(&x->arena, struct rp_rerun_slot, x->nslots + 1);
    RP_TRY(rp_err_need(x->slot_of && x->slots, err, "running ranks again"));
    memset(x->slot_of, 0xff, (n + 1) * sizeof *x->slot_of);
    fill_slots(x, list, used);
    return RP_OK;
}

/* ------------------------------------------------------------------ what waits for collectives */

struct site { /* a collective of a program, on all ranks and in all its steps */
    uint32_t wait;
    bool tight;
};

struct sites {
    struct rp_map map;
    RP_VEC(struct site) list;
};

static uint64_t site_of(const struct rp_course *c, const struct rp_course_op *op)
{
    return rp_hash_join(c->steps[op->step].program, op->ordinal);
}

/* The wait is where the last of them is; but if the operation never began soon after the end,
   nothing shows that it waited. */
static enum rp_code find_sites(const struct rp_rerun *x, struct sites *s, struct rp_err *err)
{
    for (size_t r = 0; r < x->n; r++) {
        const struct rp_course *c = x->ranks[r].course;

        for (size_t i = 0; i < c->nops; i++) {
            const struct rp_course_op *op = &c->ops[i];
            uint32_t at, fresh = (uint32_t)s->list.n;
            struct site *site;

            if (op->kind != RP_COURSE_COLLECTIVE)
                continue;
            RP_TRY(rp_map_intern(&s->map, site_of(c, op), fresh, &at, err));
            if (at == fresh)
                RP_TRY(rp_vec_push(&s->list, ((struct site){0, false}), err));
            site = &s->list.at[at];
            if (op->wait > site->wait)
                *site = (struct site){op->wait, op->tight};
            else if (op->wait == site->wait)
                site->tight |= op->tight;
        }
    }
    return RP_OK;
}

RP_ORDER(by_op, struct rp_rerun_wait, RP_UP(op), RP_UP(collective))

static bool may_wait(const struct rp_course_op *op)
{
    return op->kind == RP_COURSE_DEVICE || op->kind == RP_COURSE_COLLECTIVE;
}

/* Returns the operation that waits for a collective: the first one from the place of the wait on,
   or `next`, the first of the next step. RP_NONE if none is left. */
static uint32_t waiter_of(const struct rp_course *c, uint32_t op, uint32_t next,
                          const struct site *site)
{
    uint32_t end = next == RP_NONE ? (uint32_t)c->nops : next, i = op + 1;

    while (site->tight && i < end && !(may_wait(&c->ops[i]) && c->ops[i].index >= site->wait))
        i++;
    return site->tight && i < end ? i : next;
}

/* Whether the recorded times allow the wait. */
static bool allows(const struct rp_rerun_rank *r, uint32_t op, uint32_t collective)
{
    return rp_ns_between(r->course->ops[op].begin_ns, r->list->list.at[collective].end_ns) <=
           RP_COURSE_EARLY_NS;
}

static enum rp_code find_waits(struct rp_rerun *x, const struct sites *s, struct rp_err *err)
{
    for (size_t r = 0; r < x->n; r++) {
        struct rp_rerun_rank *rank = &x->ranks[r];
        const struct rp_course *c = rank->course;
        uint32_t next = RP_NONE, first = RP_NONE;

        rank->waits = RP_ARENA_NEW(&x->arena, struct rp_rerun_wait, rank->list->list.n + 1);
        RP_TRY(rp_err_need(rank->waits, err, "running ranks again"));
        for (uint32_t i = (uint32_t)c->nops; i-- > 0;) {
            if (!may_wait(&c->ops[i]))
                continue;
            next = first != RP_NONE && c->ops[first].step != c->ops[i].step ? first : next;
            first = i;
            if (c->ops[i].kind != RP_COURSE_COLLECTIVE)
                continue;
            uint32_t site = rp_map_get(&s->map, site_of(c, &c->ops[i]));
            uint32_t by = site < s->list.n ? waiter_of(c, i, next, &s->list.at[site]) : RP_NONE;
            if (by != RP_NONE && allows(rank, by, c->ops[i].ref))
                rank->waits[rank->nwaits++] = (struct rp_rerun_wait){by, c->ops[i].ref};
        }
        rp_sort(rank->waits, rank->nwaits, sizeof *rank->waits, by_op);
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ rests */

static double latest(double a, double b)
{
    return a > b ? a : b;
}

/* Finds how much later each operation began than the events for which it waits ended. Times count
   from the begin of the rank. */
static enum rp_code find_rests(struct rp_rerun *x, struct rp_rerun_rank *rank, struct rp_err *err)
{
    const struct rp_course *c = rank->course;
    const struct rp_collective *all = rank->list->list.at;
    double host = 0, device = NEVER, gap = (double)c->gap_ns, latency = (double)c->latency_ns;
    double *stream = RP_ARENA_NEW(&x->arena, double, rank->list->nstreams + 1);
    size_t w = 0;

    RP_TRY(rp_err_need(stream, err, "running ranks again"));
    for (uint32_t s = 0; s <= rank->list->nstreams; s++)
        stream[s] = NEVER;
    for (uint32_t i = 0; i < c->nops; i++) {
        const struct rp_course_op *op = &c->ops[i];
        double begin = (double)rp_ns_between(c->begin_ns, op->begin_ns), after;

        for (; w < rank->nwaits && rank->waits[w].op <= i; w++)
            device = latest(
                device, (double)rp_ns_between(c->begin_ns, all[rank->waits[w].collective].end_ns));
        switch (op->kind) {
        case RP_COURSE_HOST:
            host += (double)op->dur_ns;
            break;
        case RP_COURSE_DEVICE:
            after = latest(host + latency, device + gap);
            rank->rest[i] = (float)(begin - after);
            device = begin + (double)op->dur_ns;
            break;
        case RP_COURSE_COLLECTIVE:
            after = latest(host + latency, device + gap);
            if (stream[all[op->ref].stream] + gap <= begin)
                after = latest(after, stream[all[op->ref].stream] + gap);
            rank->rest[i] = (float)(begin - after);
            stream[all[op->ref].stream] = begin + (double)dur_of(&all[op->ref]);
            break;
        default:
            after = device;
            if (op->ref != RP_NONE)
                after = latest(after, (double)rp_ns_between(c->begin_ns, all[op->ref].end_ns));
            rank->rest[i] = (float)(begin - after);
            host = begin;
        }
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ begins */

/* Returns when a rank ends, as recorded, if it begins at this time. */
static double end_of(const struct rp_course *c, double begin)
{
    double host = begin, last = begin;

    for (size_t i = 0; i < c->nops; i++) {
        const struct rp_course_op *op = &c->ops[i];
        double at = begin + (double)rp_ns_between(c->begin_ns, op->begin_ns);

        if (op->kind == RP_COURSE_HOST)
            host += (double)op->dur_ns;
        else if (op->kind == RP_COURSE_SYNC)
            host = at;
        else
            last = latest(last, at + (double)op->dur_ns);
    }
    return latest(last, host);
}

/* Ranks that leave a collective together have the same time then, which puts the begins of all
   ranks on one axis. An error ends at the first collective of the rank. */
static enum rp_code find_begins(struct rp_rerun *x, const struct rp_rendezvous_list *list,
                                struct rp_err *err)
{
    int64_t *offset = RP_ARENA_NEW(&x->arena, int64_t, x->n + 1);
    bool *known = RP_ARENA_NEW(&x->arena, bool, x->n + 1), more = x->n > 0;
    double first = INFINITY, last = NEVER;

    RP_TRY(rp_err_need(offset && known, err, "running ranks again"));
    known[0] = true;
    while (more) {
        more = false;
        for (size_t s = 0; s < x->nslots; s++) {
            const struct rp_rendezvous *m =
                x->slots[s].rendezvous == RP_NONE ? NULL : &list->at[x->slots[s].rendezvous];
            uint32_t from = 0;

            while (m && from < m->n && !known[m->rank[from]])
                from++;
            for (uint32_t k = 0; m && from < m->n && k < m->n; k++)
                if (!known[m->rank[k]]) {
                    offset[m->rank[k]] = rp_ns_sum(
                        offset[m->rank[from]],
                        rp_ns_between(member_of(x, m, k)->end_ns, member_of(x, m, from)->end_ns));
                    known[m->rank[k]] = more = true;
                }
        }
    }
    for (size_t r = 0; r < x->n; r++) {
        const struct rp_course *c = x->ranks[r].course;
        int64_t begin = rp_ns_sum(c->begin_ns, offset[r]);
        double end = (double)rp_ns_between(x->ranks[0].course->begin_ns, begin);

        x->ranks[r].begin_ns = end;
        first = end < first ? end : first;
        x->nunreached += !known[r];
        last = latest(last, end_of(c, end));
    }
    for (size_t r = 0; r < x->n; r++)
        x->ranks[r].begin_ns -= first;
    x->recorded_ns = last - first;
    return RP_OK;
}

/* ------------------------------------------------------------------ steps */

RP_ORDER(by_number, int64_t, RP_COMPARE(*a, *b))

static enum rp_code number_steps(struct rp_rerun *x, struct rp_err *err)
{
    size_t n = 0, i;

    for (size_t r = 0; r < x->n; r++)
        n += x->ranks[r].course->nsteps;
    x->step_numbers = RP_ARENA_NEW(&x->arena, int64_t, n + 1);
    RP_TRY(rp_err_need(x->step_numbers, err, "running ranks again"));
    n = 0;
    for (size_t r = 0; r < x->n; r++)
        for (i = 0; i < x->ranks[r].course->nsteps; i++)
            x->step_numbers[n++] = x->ranks[r].course->steps[i].number;
    rp_sort(x->step_numbers, n, sizeof *x->step_numbers, by_number);
    for (i = 0; i < n; i++)
        if (!i || x->step_numbers[i] != x->step_numbers[x->nsteps - 1])
            x->step_numbers[x->nsteps++] = x->step_numbers[i];
    for (size_t r = 0; r < x->n; r++) {
        const struct rp_course *c = x->ranks[r].course;

        x->ranks[r].steps = RP_ARENA_NEW(&x->arena, uint32_t, c->nsteps + 1);
        RP_TRY(rp_err_need(x->ranks[r].steps, err, "running ranks again"));
        for (size_t s = 0; s < c->nsteps; s++) {
            RP_LOWER_BOUND(i, x->nsteps, x->step_numbers[i] < c->steps[s].number);
            x->ranks[r].steps[s] = (uint32_t)i;
        }
    }
    return RP_OK;
}

static enum rp_code init_rank(struct rp_rerun *x, size_t r, struct rp_err *err)
{
    struct rp_rerun_rank *rank = &x->ranks[r];
    size_t n = rank->list->list.n;

    rank->op_of = RP_ARENA_NEW(&x->arena, uint32_t, n + 1);
    rank->first = RP_ARENA_NEW(&x->arena, uint32_t, n + 2);
    rank->rest = RP_ARENA_NEW(&x->arena, float, rank->course->nops + 1);
    rank->cut = RP_ARENA_NEW(&x->arena, float, rank->course->nops + 1);
    RP_TRY(rp_arena_check(&x->arena, "running ranks again", err));
    memset(rank->op_of, 0xff, (n + 1) * sizeof *rank->op_of);
    for (size_t i = 0; i < rank->course->nops; i++)
        if (rank->course->ops[i].kind == RP_COURSE_COLLECTIVE)
            rank->op_of[rank->course->ops[i].ref] = (uint32_t)i;
    return RP_OK;
}

enum rp_code rp_rerun_init(struct rp_rerun *x, const struct rp_course *const *courses,
                           const struct rp_collectives *const *lists, size_t n,
                           const struct rp_rendezvous_list *list, struct rp_err *err)
{
    struct sites sites = {0};
    enum rp_code code = RP_OK;

    *x = (struct rp_rerun){.n = n};
    rp_arena_init(&x->arena);
    x->ranks = RP_ARENA_NEW(&x->arena, struct rp_rerun_rank, n + 1);
    RP_TRY(rp_err_need(x->ranks, err, "running ranks again"));
    for (size_t r = 0; r < n; r++) {
        x->ranks[r].course = courses[r];
        x->ranks[r].list = lists[r];
        RP_TRY(init_rank(x, r, err));
    }
    RP_TRY(number_steps(x, err));
    RP_TRY(make_slots(x, list, err));
    code = find_sites(x, &sites, err);
    if (code == RP_OK)
        code = find_waits(x, &sites, err);
    rp_map_release(&sites.map);
    rp_vec_release(&sites.list);
    for (size_t r = 0; code == RP_OK && r < n; r++)
        code = find_rests(x, &x->ranks[r], err);
    return code == RP_OK ? find_begins(x, list, err) : code;
}

void rp_rerun_release(struct rp_rerun *x)
{
    rp_arena_release(&x->arena);
}

/* ------------------------------------------------------------------ the run */

struct column {
    double at[COLUMNS];
};

struct runner { /* a rank that is run */
    struct column host, device;
    size_t op, wait;
    uint32_t next;  /* the next rank that rests for the same slot, or RP_NONE */
    uint32_t *last; /* by stream: its last collective, or RP_NONE */
};

struct meeting {
    struct column end; /* the last arrival so far, until all have arrived */
    uint32_t missing;
    uint32_t resting; /* the first rank that rests for it, or RP_NONE */
};

struct run {
    const struct rp_rerun *x;
    const struct rp_rerun_cuts *cuts;
    struct runner *ranks;
    struct meeting *slots;
    uint32_t *ready; /* ranks that can go on */
    size_t nready;
};

static void take_latest(struct column *to, const struct column *from, double later)
{
    for (int c = 0; c < COLUMNS; c++) {
        double at = from->at[c] + later;

        to->at[c] = at > to->at[c] ? at : to->at[c];
    }
}

/* Adds a duration, without the part that is cut in the columns of the mask. */
static void add_dur(struct column *to, double dur, double cut, uint8_t mask)
{
    for (int c = 0; c < COLUMNS; c++)
        to->at[c] += dur - (mask >> c & 1 ? cut : 0);
}

/* Takes the end of a collective of a rank; false if it is not known yet, so that the rank rests. */
static bool take_end(struct run *run, uint32_t r, uint32_t collective, struct column *to,
                     double later)
{
    const struct rp_rerun_rank *rank = &run->x->ranks[r];

    for (uint32_t i = rank->first[collective]; i < rank->first[collective + 1]; i++) {
        struct meeting *m = &run->slots[run->x->slot_of[i]];

        if (m->missing) {
            run->ranks[r].next = m->resting;
            m->resting = r;
            return false;
        }
        take_latest(to, &m->end, later);
    }
    return true;
}

static void arrive(struct run *run, uint32_t r, uint32_t collective, const struct column *at)
{
    const struct rp_rerun_rank *rank = &run->x->ranks[r];

    for (uint32_t i = rank->first[collective]; i < rank->first[collective + 1]; i++) {
        uint32_t s = run->x->slot_of[i];
        const struct rp_rerun_slot *slot = &run->x->slots[s];
        struct meeting *m = &run->slots[s];

        take_latest(&m->end, at, 0);
        if (--m->missing)
            continue;
        add_dur(&m->end, (double)slot->dur_ns, (double)slot->cut_ns,
                run->cuts ? run->cuts->slot[s] : 0);
        for (uint32_t w = m->resting; w != RP_NONE; w = run->ranks[w].next)
            run->ready[run->nready++] = w;
        m->resting = RP_NONE;
    }
}

/* Runs one operation; false if the rank has to rest before it. Changes made before that are
   final. */
static bool run_op(struct run *run, uint32_t r, const struct rp_course_op *op, size_t i,
                   uint8_t mask)
{
    const struct rp_rerun_rank *rank = &run->x->ranks[r];
    struct runner *s = &run->ranks[r];
    double gap = (double)rank->course->gap_ns, latency = (double)rank->course->latency_ns;
    struct column at = s->host;

    if (op->kind == RP_COURSE_HOST) {
        add_dur(&s->host, (double)op->dur_ns, (double)rank->cut[i], mask);
        return true;
    }
    for (; s->wait < rank->nwaits && rank->waits[s->wait].op <= i; s->wait++)
        if (!take_end(run, r, rank->waits[s->wait].collective, &s->device, 0))
            return false;
    if (op->kind == RP_COURSE_SYNC) {
        if (op->ref != RP_NONE && !take_end(run, r, op->ref, &at, (double)rank->rest[i]))
            return false;
        take_latest(&at, &s->device, (double)rank->rest[i]);
        s->host = at;
        return true;
    }
    add_dur(&at, latency, 0, 0);
    take_latest(&at, &s->device, gap);
    if (op->kind == RP_COURSE_DEVICE) {
        add_dur(&at, (double)rank->rest[i] + (double)op->dur_ns, (double)rank->cut[i], mask);
        s->device = at;
        return true;
    }
    uint32_t stream = rank->list->list.at[op->ref].stream;
    if (s->last[stream] != RP_NONE &&
        rank->list->list.at[s->last[stream]].end_ns + rank->course->gap_ns <= op->begin_ns &&
        !take_end(run, r, s->last[stream], &at, gap))
        return false;
    add_dur(&at, (double)rank->rest[i], (double)rank->cut[i], mask);
    s->last[stream] = op->ref;
    arrive(run, r, op->ref, &at);
    return true;
}

static void run_rank(struct run *run, uint32_t r)
{
    const struct rp_rerun_rank *rank = &run->x->ranks[r];
    struct runner *s = &run->ranks[r];

    for (; s->op < rank->course->nops; s->op++) {
        const struct rp_course_op *op = &rank->course->ops[s->op];
        uint8_t mask = run->cuts ? run->cuts->work[r * run->x->nsteps + rank->steps[op->step]] : 0;

        if (!run_op(run, r, op, s->op, mask))
            return;
    }
}

static enum rp_code begin_run(struct run *run, struct rp_arena *arena, struct rp_err *err)
{
    const struct rp_rerun *x = run->x;

    run->ranks = RP_ARENA_NEW(arena, struct runner, x->n + 1);
    run->slots = RP_ARENA_NEW(arena, struct meeting, x->nslots + 1);
    run->ready = RP_ARENA_NEW(arena, uint32_t, x->n + 1);
    RP_TRY(rp_err_need(run->ranks && run->slots && run->ready, err, "running ranks again"));
    for (size_t s = 0; s < x->nslots; s++) {
        run->slots[s].missing = x->slots[s].need;
        run->slots[s].resting = RP_NONE;
        for (int c = 0; c < COLUMNS; c++)
            run->slots[s].end.at[c] = NEVER;
    }
    for (size_t r = 0; r < x->n; r++) {
        struct runner *k = &run->ranks[r];

        k->next = RP_NONE;
        k->last = RP_ARENA_NEW(arena, uint32_t, x->ranks[r].list->nstreams + 1);
        RP_TRY(rp_err_need(k->last, err, "running ranks again"));
        memset(k->last, 0xff, (x->ranks[r].list->nstreams + 1) * sizeof *k->last);
        for (int c = 0; c < COLUMNS; c++) {
            k->host.at[c] = x->ranks[r].begin_ns;
            k->device.at[c] = NEVER;
        }
        run->ready[run->nready++] = (uint32_t)(x->n - 1 - r);
    }
    return RP_OK;
}

enum rp_code rp_rerun_run(const struct rp_rerun *x, const struct rp_rerun_cuts *cuts,
                          double end_ns[COLUMNS], bool *stuck, struct rp_err *err)
{
    struct run run = {.x = x, .cuts = cuts};
    struct column end = {{0}};
    struct rp_arena arena;

    *stuck = false;
    rp_arena_init(&arena);
    enum rp_code code = begin_run(&run, &arena, err);
    while (code == RP_OK && run.nready)
        run_rank(&run, run.ready[--run.nready]);
    for (size_t r = 0; code == RP_OK && r < x->n; r++) {
        *stuck |= run.ranks[r].op < x->ranks[r].course->nops;
        take_latest(&end, &run.ranks[r].host, 0);
        take_latest(&end, &run.ranks[r].device, 0);
    }
    for (size_t s = 0; code == RP_OK && s < x->nslots; s++)
        if (!run.slots[s].missing)
            take_latest(&end, &run.slots[s].end, 0);
    memcpy(end_ns, end.at, sizeof end.at);
    rp_arena_release(&arena);
    return code;
}
