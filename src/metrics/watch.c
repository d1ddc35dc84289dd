/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches a job while it runs. Each look reads the files of its ranks; their counts since the last
 * slice become the next one when every rank has ended some steps. The newest slices are the window:
 * window.c finds which rank is late in it, and its steps are compared with all earlier ones of the
 * job.
 */
#include "metrics/window.h"

#include "base/clock.h"
#include "base/order.h"
#include "dataset/dataset.h"
#include "metrics/set.h"
#include "result/print_units.h"
#include "result/result.h"

#include <math.h>
#include <reprise/metrics_calls.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEP, COLLECTIVES, INPUT, DEVICE, DELAY, MEMORY, DEVICE_MEMORY, CLOCK, WATCHED };

static const struct {
    const char *name;
    enum rp_metric_unit unit;
} watched[WATCHED] = {{"step", RP_METRIC_TIME},
                      {"collectives", RP_METRIC_TIME},
                      {"input data", RP_METRIC_TIME},
                      {"device work", RP_METRIC_TIME},
                      {"without a processor", RP_METRIC_TIME},
                      {"memory", RP_METRIC_BYTES},
                      {"device memory", RP_METRIC_BYTES},
                      {"device clock (MHz)", RP_METRIC_VALUE}};

/* ---- what is shown ---- */

struct watch_rank_row {
    int64_t rank, pid, step_ns, collective_ns, input_ns, device_ns, host_ns, memory_bytes,
        device_memory_bytes;
    double steps_hz, clock;
    const char *host, *state;
};

struct watch_late_row {
    const char *who, *cause;
    int64_t rank, late_ns;
    double late_share;
};

struct watch_root {
    int64_t step_ns, past_ns;
    double steps_hz, change_ratio;
    const char *job, *note;
    size_t nranks, nlate, nalerts;
    struct watch_rank_row *ranks;
    struct watch_late_row *late;
    const char **alerts;
};

#define ROW struct watch_rank_row
static const struct rp_field rank_fields[] = {
    RP_FIELD(ROW, rank, I64, NONE, "rank", "rank, from its environment", RP_NULLABLE),
    RP_FIELD(ROW, host, STR, NONE, "host", "name of the machine", 0),
    RP_FIELD(ROW, pid, I64, NONE, "process", "its number", RP_WIDE | RP_NULLABLE),
    RP_FIELD(ROW, state, STR, NONE, "state", "running, late or ended", 0),
    RP_FIELD(ROW, steps_hz, F64, HZ, NULL, "steps a second, in the window", 0),
    RP_FIELD(ROW, step_ns, I64, NS, "step", "a step in the window, the mean", RP_NULLABLE),
    RP_FIELD(ROW, collective_ns, I64, NS, "collectives", "of a step: in collectives", RP_NULLABLE),
    RP_FIELD(ROW, input_ns, I64, NS, "input data", "of a step: loading input", RP_NULLABLE),
    RP_FIELD(ROW, device_ns, I64, NS, "device", "of a step: work of the device but collectives",
             RP_NULLABLE),
    RP_FIELD(ROW, host_ns, I64, NS, "host", "of a step: the rest", RP_NULLABLE),
    RP_FIELD(ROW, memory_bytes, I64, BYTES, "memory", "of the process, resident", RP_NULLABLE),
    RP_FIELD(ROW, device_memory_bytes, I64, BYTES, "device memory", "in use on the device",
             RP_NULLABLE | RP_WIDE),
    RP_FIELD(ROW, clock, F64, NONE, "MHz", "clock of the device", RP_WIDE),
    RP_FIELD_END};
static const struct rp_type rank_type = {"watch_rank", sizeof(ROW), rank_fields, NULL};

static const struct rp_field late_fields[] = {
    RP_FIELD(struct watch_late_row, who, STR, NONE, "late", "rank or host", 0),
    RP_FIELD(struct watch_late_row, rank, I64, NONE, NULL, "the rank, the latest of a host",
             RP_NULLABLE),
    RP_FIELD(struct watch_late_row, cause, STR, NONE, "by", "what takes longer than on its peers",
             0),
    RP_FIELD(struct watch_late_row, late_ns, I64, NS, "a step", "later than its peers in a step",
             0),
    RP_FIELD(struct watch_late_row, late_share, F64, RATIO, "of a step", "the same of a step", 0),
    RP_FIELD_END};
static const struct rp_type late_type = {"watch_late", sizeof(struct watch_late_row), late_fields,
                                         NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct watch_root, note, STR, NONE, "waits for", "text output only", RP_SCREEN),
    RP_FIELD(struct watch_root, job, STR, NONE, "job", "what its launcher calls it", 0),
    RP_FIELD(struct watch_root, steps_hz, F64, HZ, "steps a second", "of the window", 0),
    RP_FIELD(struct watch_root, step_ns, I64, NS, "step", "median of the window", RP_NULLABLE),
    RP_FIELD(struct watch_root, past_ns, I64, NS, "before", "median of the job before the window",
             RP_NULLABLE),
    RP_FIELD(struct watch_root, change_ratio, F64, RATIO, "change",
             "the window against it, minus 1", 0),
    RP_FIELD_LIST(struct watch_root, ranks, &rank_type, "ranks", "of the job", 0),
    RP_FIELD_LIST(struct watch_root, late, &late_type, "late", "who the others wait for", 0),
    RP_FIELD_LIST(struct watch_root, alerts, &rp_type_string, "alerts", "what should be looked at",
                  RP_WARN),
    RP_FIELD_END};
static const struct rp_type root_type = {"metrics_watch", sizeof(struct watch_root), root_fields,
                                         "ranks"};

/* ---- looks ---- */

struct reading {
    double count[WATCHED], sum[WATCHED];
};

struct member {
    char *source;
    int64_t rank;
    const struct rp_metric_set *set; /* of this look; NULL if the file no longer exists */
    struct reading now, base;        /* base: the begin of the slice that is growing */
    struct rp_window_slice slice[RP_WINDOW_SLICES];
    double clock, memory, device_memory; /* NAN: not known */
    int64_t ended_ns;                    /* when its end was seen; 0 while it runs */
    int64_t moved_ns;                    /* when the end of one of its steps was last seen */
};

#define PAST 512 /* slices, a quarter of an hour or more */

struct watch {
    struct rp_metrics_watcher options;
    double tick_ns;
    RP_VEC(struct member) members;
    rp_metric_sets sets;
    int64_t began_ns;                                 /* when the first look was */
    bool began;                                       /* all running ranks have a base */
    size_t used;                                      /* slices */
    struct rp_metric_set steps[RP_WINDOW_SLICES + 1]; /* of one rank at the begin of each slice, and
                                                         at the end of the newest */
    double past[PAST];                                /* mean steps of slices before the window */
    size_t npast;                                     /* so many there were */
    double steps_seen;                                /* of all ranks */
    int64_t moved_ns;                                 /* when the end of a step was last seen */
    rp_window_told told;
    bool unsupported;
};

static const struct rp_metric *metric_of(const struct rp_metric_set *set, size_t i)
{
    const struct rp_metric *m = rp_metric_find(set, watched[i].name);

    return m && m->unit == watched[i].unit ? m : NULL;
}

static struct reading read_set(const struct rp_metric_set *set)
{
    struct reading r = {.count = {0}};

    for (size_t i = 0; i < WATCHED; i++) {
        const struct rp_metric *m = metric_of(set, i);

        r.count[i] = m ? (double)m->count : 0;
        r.sum[i] = m ? m->sum : 0;
    }
    return r;
}

/* Returns the rank whose file this is; a new one has no slices, so the slices of all begin again
   with it. */
static enum rp_code member_of(struct watch *w, const struct rp_metric_set *set, struct member **out,
                              struct rp_err *err)
{
    struct member fresh = {.rank = set->rank, .clock = NAN, .memory = NAN, .device_memory = NAN};

    for (size_t i = 0; i < w->members.n; i++)
        if (!strcmp(w->members.at[i].source, set->source)) {
            *out = &w->members.at[i];
            return RP_OK;
        }
    char *source = strdup(set->source);
    RP_TRY(rp_err_need(source, err, "watching metrics"));
    fresh.source = source;
    if (rp_vec_push(&w->members, fresh, err) != RP_OK) {
        free(source);
        return RP_NOMEM;
    }
    w->used = 0;
    w->began = false;
    *out = &w->members.at[w->members.n - 1];
    return RP_OK;
}

/* Returns the mean of the samples since the slice began, if there are any. */
static double mean_of(const struct member *m, size_t i, double known)
{
    double n = m->now.count[i] - m->base.count[i];

    return n > 0 ? (m->now.sum[i] - m->base.sum[i]) / n : known;
}

static bool is_same_job(const struct watch *w, const struct rp_metric_set *set)
{
    const struct rp_metric_set *first = w->members.at[0].set;

    return !first || !strcmp(first->job ? first->job : "", set->job ? set->job : "");
}

RP_ORDER(by_rank, struct member, RP_UP(rank), strcmp(a->source, b->source))

/* For processes on other machines it is only known whether their counts change. */
static bool has_stopped(const struct member *m)
{
    const struct rp_metric *steps = metric_of(m->set, STEP);

    return m->set->has_ended ||
           (!m->set->is_live && rp_window_is_still((double)(rp_clock_ns() - m->moved_ns),
                                                   rp_metric_percentile(steps, 50), steps->most));
}

/* Whether the folder of a job that has just been started would be there. */
static bool is_late_begin(const struct watch *w)
{
    return rp_window_is_still((double)(rp_clock_ns() - w->began_ns), 0, 0);
}

static enum rp_code look(struct watch *w, struct rp_err *err)
{
    bool others = false;

    /* Reads all sources again. */
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_paths paths = {0};
    enum rp_code code = rp_metric_find_sources(w->options.source, &arena, &paths, err);
    rp_metric_sets_release(&w->sets);
    w->sets = (rp_metric_sets){0};
    if (code == RP_FORMAT || (code == RP_IO && !w->members.n && !is_late_begin(w)))
        code = RP_OK; /* there are none because the job has not begun */
    else if (code == RP_OK)
        code = rp_metric_read_all(&paths, RP_METRIC_READABLE, &w->tick_ns, &w->sets, err);
    rp_vec_release(&paths);
    rp_arena_release(&arena);
    RP_TRY(code);
    for (size_t i = 0; i < w->members.n; i++)
        w->members.at[i].set = NULL;
    for (size_t i = 0; i < w->sets.n; i++) {
        struct rp_metric_set *set = &w->sets.at[i];
        struct member *m;

        rp_metric_set_sort(set);
        if (!metric_of(set, STEP)) {
            others = true;
            continue;
        }
        if (w->members.n && !w->options.source && !is_same_job(w, set))
            return rp_err_set(err, RP_USAGE, "several jobs run: choose one by its folder");
        RP_TRY(member_of(w, set, &m, err));
        m->set = set;
        if (!m->moved_ns || read_set(set).count[STEP] > m->now.count[STEP])
            m->moved_ns = rp_clock_ns();
        m->now = read_set(set);
        m->ended_ns = !has_stopped(m) ? 0 : m->ended_ns ? m->ended_ns : rp_clock_ns();
    }
    w->unsupported = others && !w->members.n;
    rp_sort(w->members.at, w->members.n, sizeof *w->members.at, by_rank);
    return RP_OK;
}

/* ---- slices ---- */

static bool runs(const struct member *m)
{
    return m->set && !m->ended_ns;
}

/* Whether each running rank has ended some steps, and enough time has passed. */
static bool is_slice(const struct watch *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->members.n; i++) {
        const struct member *m = &w->members.at[i];

        n += runs(m);
        if (runs(m) && !rp_window_is_slice(m->now.count[STEP] - m->base.count[STEP]))
            return false;
    }
    return n > 0;
}

/* Returns the first rank that runs: all ranks end the same steps. */
static const struct member *first_rank(const struct watch *w)
{
    const struct member *first = NULL;

    for (size_t i = 0; i < w->members.n; i++) {
        const struct member *m = &w->members.at[i];

        if (runs(m) && (!first || m->set->rank < first->set->rank))
            first = m;
    }
    return first;
}

/* Keeps the distribution of steps so far. */
static enum rp_code keep_steps(struct watch *w, size_t at, struct rp_err *err)
{
    struct rp_metric_set *to = &w->steps[at];

    rp_metric_set_release(to);
    *to = (struct rp_metric_set){.tick_ns = NULL};
    rp_arena_init(&to->arena);
    return rp_metric_set_merge(to, first_rank(w)->set, err);
}

static enum rp_code add_slice(struct watch *w, struct rp_err *err)
{
    if (w->used == RP_WINDOW_SLICES) {
        /* Forget the oldest slice. */
        struct rp_metric_set oldest = w->steps[0];
        const struct rp_window_slice *first = &w->members.at[0].slice[0];

        if (first->steps > 0)
            w->past[w->npast++ % PAST] = first->step_ns / first->steps;
        memmove(w->steps, w->steps + 1, RP_WINDOW_SLICES * sizeof *w->steps);
        w->steps[RP_WINDOW_SLICES] = oldest; /* to be used again */
        for (size_t i = 0; i < w->members.n; i++)
            memmove(w->members.at[i].slice, w->members.at[i].slice + 1,
                    (RP_WINDOW_SLICES - 1) * sizeof *w->members.at[i].slice);
        w->used--;
    }
    for (size_t i = 0; i < w->members.n; i++) {
        struct member *m = &w->members.at[i];

        const double *now = m->now.sum, *base = m->base.sum;
        m->slice[w->used] =
            (struct rp_window_slice){.steps = m->now.count[STEP] - m->base.count[STEP],
                                     .step_ns = now[STEP] - base[STEP],
                                     .collective_ns = now[COLLECTIVES] - base[COLLECTIVES],
                                     .input_ns = now[INPUT] - base[INPUT],
                                     .device_ns = now[DEVICE] - base[DEVICE],
                                     .delay_ns = now[DELAY] - base[DELAY]};
        m->clock = mean_of(m, CLOCK, m->clock);
        m->memory = mean_of(m, MEMORY, m->memory);
        m->device_memory = mean_of(m, DEVICE_MEMORY, m->device_memory);
        m->base = m->now;
    }
    return keep_steps(w, ++w->used, err);
}

/* ---- the answer ---- */

struct answer {
    struct watch *w;
    struct rp_arena *arena;
    struct watch_root *root;
    const char **about; /* of each alert */
    struct rp_err *err;
    enum rp_code code;
};

/* about: its subject, which stays the same from look to look. */
static void alert(struct answer *a, const char *about, const char *text)
{
    size_t n = a->root->nalerts;

    rp_arena_append(a->arena, &a->about, &n, about);
    rp_arena_append(a->arena, &a->root->alerts, &a->root->nalerts, text);
}

static int64_t whole(double value)
{
    return isnan(value) ? RP_ABSENT_I64 : (int64_t)(value + 0.5);
}

static int64_t where_any(double ns, double steps)
{
    return ns > 0 ? whole(ns / steps) : RP_ABSENT_I64;
}

static void add_rank(struct answer *a, const struct member *m)
{
    struct rp_window_slice sum = {0};
    struct watch_rank_row *row = &a->root->ranks[a->root->nranks++];

    for (size_t i = 0; i < a->w->used; i++) {
        sum.steps += m->slice[i].steps;
        sum.step_ns += m->slice[i].step_ns;
        sum.collective_ns += m->slice[i].collective_ns;
        sum.input_ns += m->slice[i].input_ns;
        sum.device_ns += m->slice[i].device_ns;
    }
    double s = sum.steps > 0 ? sum.steps : NAN;
    double rest = sum.step_ns - sum.collective_ns - sum.input_ns - sum.device_ns;
    *row = (struct watch_rank_row){
        .rank = m->set ? m->set->rank : RP_ABSENT_I64,
        .pid = m->set ? m->set->pid : RP_ABSENT_I64,
        .host = m->set ? rp_arena_text(a->arena, m->set->host) : NULL,
        .state = runs(m) ? "running" : "ended",
        .steps_hz = sum.steps > 0 ? s / (sum.step_ns / 1e9) : NAN,
        .step_ns = whole(sum.step_ns / s),
        .collective_ns = where_any(sum.collective_ns, s),
        .input_ns = where_any(sum.input_ns, s),
        .device_ns = where_any(sum.device_ns, s),
        .host_ns = whole((rest > 0 ? rest : 0) / s),
        .memory_bytes = whole(m->memory),
        .device_memory_bytes = whole(m->device_memory),
        .clock = m->clock,
    };
}

/* Returns "rank 3", or "process 4711" if it has no rank. */
static const char *name_of(struct answer *a, const struct member *m)
{
    const struct rp_metric_set *set = m->set;

    if (!set)
        return "a process";
    return set->rank == RP_ABSENT_I64
               ? rp_arena_textf(a->arena, "process %lld", (long long)set->pid)
               : rp_arena_textf(a->arena, "rank %lld", (long long)set->rank);
}

static void add_late(struct answer *a)
{
    struct watch *w = a->w;
    struct rp_window_rank *ranks = RP_ARENA_NEW(a->arena, struct rp_window_rank, w->members.n + 1);
    size_t *of = RP_ARENA_NEW(a->arena, size_t, w->members.n + 1), n = 0;
    struct rp_window_late late;
    struct watch_late_row *row;
    const struct member *m;

    for (size_t i = 0; ranks && of && i < w->members.n; i++) {
        m = &w->members.at[i];
        if (!runs(m))
            continue;
        of[n] = i;
        ranks[n].host = m->set->host;
        ranks[n].clock = m->clock;
        memcpy(ranks[n++].slice, m->slice, sizeof m->slice);
    }
    a->code = rp_window_judge(ranks, n, w->used, &late, a->err);
    if (a->code != RP_OK || late.rank == n || late.share < w->options.least_share)
        return;
    row = a->root->late = RP_ARENA_NEW(a->arena, struct watch_late_row, 1);
    if (!row)
        return;
    a->root->nlate = 1;
    m = &w->members.at[of[late.rank]];
    a->root->ranks[of[late.rank]].state = "late";
    *row = (struct watch_late_row){
        .who = late.whole_host ? rp_arena_textf(a->arena, "host %s", m->set->host) : name_of(a, m),
        .rank = m->set->rank,
        .cause = rp_window_causes[late.cause],
        .late_ns = whole(late.late_ns),
        .late_share = late.share};
    alert(a, row->who,
          rp_arena_textf(a->arena, "%s is late by %s in each step, %s of it: %s", row->who,
                         rp_units_time(a->arena, row->late_ns),
                         rp_units_text(a->arena, late.share, RP_UNIT_RATIO), row->cause));
}

/* Compares the window with everything before it. */
static void compare_past(struct answer *a)
{
    struct watch *w = a->w;
    const struct rp_metric *past = w->used ? metric_of(&w->steps[0], STEP) : NULL;
    const struct rp_metric *now = w->used ? metric_of(&w->steps[w->used], STEP) : NULL;
    struct rp_metric_set window = {.tick_ns = NULL};
    double change;

    if (!past || !now)
        return;
    rp_arena_init(&window.arena);
    a->code = rp_metric_set_merge(&window, &w->steps[w->used], a->err);
    struct rp_metric *m =
        a->code == RP_OK ? rp_metric_set_metric(&window, watched[STEP].name, RP_METRIC_TIME, a->err)
                         : NULL;
    if (m)
        a->code = rp_metric_minus(m, past, a->err);
    if (m && a->code == RP_OK && m->count && m->count <= now->count) {
        a->root->step_ns = whole(rp_metric_percentile(m, 50));
        a->root->steps_hz = (double)m->count / (m->sum / 1e9);
        if (rp_window_is_past((double)past->count)) {
            a->root->past_ns = whole(rp_metric_percentile(past, 50));
            a->root->change_ratio = change =
                (double)a->root->step_ns / (double)a->root->past_ns - 1;
            double earlier[PAST];
            size_t n = w->npast < PAST ? w->npast : PAST;
            memcpy(earlier, w->past, n * sizeof *earlier);
            if (change > w->options.least_share &&
                rp_window_is_longer((double)a->root->step_ns, earlier, n) &&
                !strcmp(rp_metric_verdict(past, m, change), "slower"))
                alert(a, "steps",
                      rp_arena_textf(a->arena, "steps take %s, %s longer than before (%s)",
                                     rp_units_time(a->arena, a->root->step_ns),
                                     rp_units_text(a->arena, change, RP_UNIT_RATIO),
                                     rp_units_time(a->arena, a->root->past_ns)));
        }
    }
    rp_metric_set_release(&window);
}

/* Finds ranks that have ended while others run, and a job in which no step ends. */
static void find_still(struct answer *a)
{
    const struct member *first = first_rank(a->w);
    const struct rp_metric *steps = first ? metric_of(first->set, STEP) : NULL;
    int64_t still = rp_clock_ns() - a->w->moved_ns;
    double usual = steps ? rp_metric_percentile(steps, 50) : NAN;

    for (size_t i = 0; first && i < a->w->members.n; i++) {
        const struct member *m = &a->w->members.at[i];

        if (m->ended_ns && m->set && m->set->has_ended &&
            rp_window_is_still((double)(rp_clock_ns() - m->ended_ns), 0, 0))
            alert(a, rp_arena_textf(a->arena, "end of %s", name_of(a, m)),
                  rp_arena_textf(a->arena, "%s has ended, and others run on", name_of(a, m)));
    }
    if (steps && rp_window_is_still((double)still, usual, steps->most))
        alert(a, "no step",
              rp_arena_textf(a->arena, "no step has ended for %lld s; one takes %s",
                             (long long)(still / 1000000000),
                             rp_units_time(a->arena, whole(usual))));
}

/* Returns alerts that no look of the last window had, as lines, or NULL. */
static const char *new_alerts(struct answer *a)
{
    const char *fresh = "";

    for (size_t i = 0; i < a->root->nalerts; i++)
        if (rp_window_is_news(&a->w->told, a->about[i], a->err))
            fresh =
                rp_arena_textf(a->arena, "%s%s%s", fresh, *fresh ? "\n" : "", a->root->alerts[i]);
    rp_window_forget_told(&a->w->told, RP_WINDOW_SLICES);
    return *fresh ? fresh : NULL;
}

/* *fresh gets new alerts, or NULL. */
static enum rp_code answer(struct watch *w, struct rp_result *result, const char **fresh,
                           struct rp_err *err)
{
    struct watch_root *root = result->root;
    struct answer a = {w, &result->arena, root, NULL, err, RP_OK};
    const struct member *first = first_rank(w);

    root->step_ns = root->past_ns = RP_ABSENT_I64;
    root->steps_hz = root->change_ratio = NAN;
    if (!w->members.n)
        root->note = "the first steps of a job that 'reprise record --light' has started";
    root->job = first ? rp_arena_text(a.arena, first->set->job) : NULL;
    root->ranks = RP_ARENA_NEW(a.arena, struct watch_rank_row, w->members.n + 1);
    RP_TRY(rp_arena_check(a.arena, "watching metrics", err));
    for (size_t i = 0; i < w->members.n; i++)
        add_rank(&a, &w->members.at[i]);
    add_late(&a);
    if (a.code == RP_OK)
        compare_past(&a);
    if (a.code == RP_OK)
        find_still(&a);
    RP_TRY(a.code);
    RP_TRY(rp_arena_check(a.arena, "watching metrics", err));
    *fresh = new_alerts(&a);
    return rp_arena_check(a.arena, "watching metrics", err);
}

static bool has_ended(const struct watch *w)
{
    for (size_t i = 0; i < w->members.n; i++)
        if (runs(&w->members.at[i]))
            return false;
    return w->members.n > 0;
}

static enum rp_code show(struct watch *w, bool *end, struct rp_err *err)
{
    struct rp_result *result = NULL;
    const char *fresh = NULL;

    RP_TRY(rp_result_new(&root_type, &result, err));
    enum rp_code code = answer(w, result, &fresh, err);
    if (code == RP_OK)
        *end = w->options.show(w->options.user, result, fresh) || has_ended(w);
    rp_result_free(result);
    return code;
}

static enum rp_code watch_job(struct watch *w, struct rp_err *err)
{
    const int64_t ns = w->options.interval_ns;
    const struct timespec pause = {ns / 1000000000, ns % 1000000000};
    bool end = false;

    while (!end) {
        RP_TRY(look(w, err));
        if (w->unsupported)
            return rp_err_set(err, RP_UNSUPPORTED, "these programs count no steps");
        double seen = 0;
        for (size_t i = 0; i < w->members.n; i++)
            seen += w->members.at[i].now.count[STEP];
        if (seen > w->steps_seen)
            w->moved_ns = rp_clock_ns();
        w->steps_seen = seen;
        if (!w->began && first_rank(w)) {
            /* Begins slices from the counts of the ranks so far. */
            for (size_t i = 0; i < w->members.n; i++)
                w->members.at[i].base = w->members.at[i].now;
            w->began = true;
            w->used = 0;
            RP_TRY(keep_steps(w, 0, err));
        } else if (is_slice(w))
            RP_TRY(add_slice(w, err));
        RP_TRY(show(w, &end, err));
        if (!end)
            nanosleep(&pause, NULL);
    }
    return RP_OK;
}

enum rp_code rp_metrics_call_watch(const struct rp_metrics_watcher *watcher, struct rp_err *err)
{
    struct watch w = {.moved_ns = rp_clock_ns(), .began_ns = rp_clock_ns()};

    rp_copy_view(&w.options, 0, sizeof w.options, watcher, watcher->struct_size);
    for (size_t i = 0; i <= RP_WINDOW_SLICES; i++)
        rp_arena_init(&w.steps[i].arena);
    enum rp_code code = watch_job(&w, err);
    for (size_t i = 0; i <= RP_WINDOW_SLICES; i++)
        rp_metric_set_release(&w.steps[i]);
    for (size_t i = 0; i < w.members.n; i++)
        free(w.members.at[i].source);
    rp_vec_release(&w.members);
    rp_metric_sets_release(&w.sets);
    rp_window_forget_told(&w.told, 0);
    rp_vec_release(&w.told);
    return code;
}
