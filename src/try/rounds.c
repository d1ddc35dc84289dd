/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variants take turns: all are alive, each waits in its last step, and in a round each runs a few
 * steps. The order is reversed from round to round, so that a machine that becomes slower or faster
 * does not favour one of them. The unchanged program runs twice: the difference of these two is
 * noise.
 */
#include "base/clock.h"
#include "try/place.h"
#include "try/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WARM_ROUNDS 2
#define TURN_NS     150e6 /* a turn takes about this long */
#define TURN_STEPS  50

struct wave {
    struct rp_try_session *s;
    size_t n;
    struct rp_try_variant *at[RP_TRY_CHANGES_MOST + 4]; /* [0] and [1] are the unchanged program */
    size_t turn;                                        /* steps */
    size_t ahead;                                       /* how many start at the same time */
    int64_t end_ns;
    struct rp_try_interval control;
};

/* ------------------------------------------------------------------ beginning a wave */

/* Starting may take at most half of the time. Variants that were not started wait for the next
   wave, which gets its share of the rest. */
static void cut_wave(struct wave *w, size_t n)
{
    int64_t now = rp_clock_ns();

    w->end_ns = now + (w->end_ns - now) / (int64_t)(w->n - 2) * (int64_t)(n - 2);
    w->n = n;
}

/* Returns how many variants can be alive, on the device and on the host. */
static size_t room(const struct rp_try_session *s)
{
    int64_t own = rp_try_fact_number(&s->facts, "memory"), rss, left, total;
    int64_t device = rp_try_fact_number(&s->facts, "device-free");
    double most = RP_TRY_CHANGES_MOST;

    if (device > 0)
        most = fmin(most, (double)(device + own) / (1.2 * (double)own + 600e6));
    rss = rp_try_fact_number(&s->facts, "rss");
    rp_try_place_memory(&left, &total);
    if (left > 0 && rss > 0)
        most = fmin(most, (double)left / (1.2 * (double)rss));
    return most < 3 ? 3 : (size_t)most;
}

static void start_in_wave(struct wave *w, struct rp_try_variant *v)
{
    const struct rp_try_mode mode = {0};

    rp_try_start(w->s, v, &mode);
    if (w->ahead > 1 && w->n + rp_try_helpers(w->s) + 3 < room(w->s))
        rp_try_start_helpers(w->s, v);
}

/* Starts several at the same time, because starting takes long and nothing is measured meanwhile.
   Returns how many started before too much of the time was over. */
static size_t start_all(struct wave *w)
{
    int64_t half_ns = (rp_clock_ns() + w->end_ns) / 2;
    size_t started = 0;

    for (size_t i = 0; i < w->n; i++) {
        if (started < w->n && started > 2 && rp_clock_ns() > half_ns)
            cut_wave(w, started);
        while (started < w->n && started < i + w->ahead)
            start_in_wave(w, w->at[started++]);
        if (!rp_try_ready(w->s, w->at[i]) && i < 2)
            break; /* without the unchanged program there is nothing to compare */
    }
    return started;
}

static bool unchanged_alive(const struct wave *w)
{
    return w->at[0]->state == RP_TRY_ALIVE && w->at[1]->state == RP_TRY_ALIVE;
}

/* The first steps follow when all have started, one variant after the other, because they would
   take many times as long beside compilers. */
static bool wave_begin(struct wave *w)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (!w->at[0] || !w->at[1])
        return false;
    w->ahead = cores >= 16 ? 8 : cores >= 8 ? 4 : cores >= 4 ? 2 : 1;
    size_t started = start_all(w);
    for (size_t i = 0; i < started && unchanged_alive(w); i++)
        if (w->at[i]->state == RP_TRY_ALIVE && rp_try_begin(w->s, w->at[i]))
            rp_try_judge_update(w->s, w->at[i]);
    for (size_t i = 0; i < started && !unchanged_alive(w); i++)
        rp_try_stop(w->at[i]);
    rp_try_stop_helpers(w->s);
    return unchanged_alive(w);
}

static size_t count_alive(const struct wave *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        n += w->at[i]->state == RP_TRY_ALIVE;
    return n;
}

/* Chooses a number of steps that makes a turn long enough and lets half of the rounds fit into the
   time. */
static void choose_turn(struct wave *w)
{
    double step = fmax(1e3, (double)w->at[0]->early_step_ns), turn = ceil(TURN_NS / step);
    double left = (double)(w->end_ns - rp_clock_ns());
    double most = left / (RP_TRY_ROUNDS / 2.0) / (double)count_alive(w) / step - 1;

    w->turn = (size_t)fmax(1, fmin(TURN_STEPS, fmin(turn, most)));
    if (w->s->turn_most && w->turn > w->s->turn_most)
        w->turn = w->s->turn_most;
}

/* ------------------------------------------------------------------ rounds */

/* Runs all variants once. Those that fail are left out from then on. */
static bool run_round(struct wave *w, size_t round, bool counts)
{
    for (size_t i = 0; i < w->n; i++) {
        /* the order is unchanged, others, unchanged, and then backwards */
        size_t place = round % 2 ? w->n - 1 - i : i;
        size_t k = place == 0 ? 0 : place == w->n - 1 ? 1 : place + 1;
        struct rp_try_variant *v = w->at[k];

        if (v->state != RP_TRY_ALIVE)
            continue;
        double ns = rp_try_turn(w->s, v, w->turn);
        if (counts)
            v->step_ns[v->nrounds++] = ns;
        if (k < 2 && v->state != RP_TRY_ALIVE)
            return false;
    }
    return true;
}

/* The interval of a variant against the unchanged program. Its two runs take turns as the
   reference, because the difference of two runs is symmetric if the change does nothing, as the
   sign test assumes; one to their mean is not. */
static struct rp_try_interval interval_of(const struct wave *w, const struct rp_try_variant *v)
{
    const struct rp_try_variant *a = w->at[0], *b = w->at[1];
    double values[RP_TRY_ROUNDS];
    size_t n = 0;

    for (size_t i = 0; i < v->nrounds && i < a->nrounds && i < b->nrounds; i++) {
        double base = v == b || i % 2 == 0 ? a->step_ns[i] : b->step_ns[i];
        double x = log(v->step_ns[i]) - log(base);

        if (isfinite(x))
            values[n++] = x;
    }
    return rp_try_median(values, n, rp_try_error(w->s->nvariants - 1));
}

/* Returns the time of the first steps beyond that of as many usual ones. */
static double excess(const struct wave *w, const struct rp_try_variant *v)
{
    return (double)v->early_ns - rp_try_middle(v->step_ns, v->nrounds) * (double)w->s->steps;
}

static void look_at(struct wave *w, struct rp_try_variant *v, bool last)
{
    double longer = excess(w, v) - excess(w, w->at[0]);

    if (!v->nrounds && v != w->at[0] && v != w->at[1]) {
        rp_try_fail(v, w->s->cancelled ? "interrupted" : "there was no time to measure it");
        return;
    }
    v->interval = interval_of(w, v);
    v->usual_ns = rp_try_middle(v->step_ns, v->nrounds);
    v->startup_ns = longer > 0 ? (int64_t)longer : 0;
    v->verdict = rp_try_judge(&v->interval, v == w->at[1] ? 0 : rp_try_floor(&w->control), last);
    if (last || rp_try_enough(&v->interval, v->verdict)) {
        if (v->verdict == RP_TRY_UNDECIDED)
            v->verdict = RP_TRY_NOISY;
        v->state = RP_TRY_MEASURED;
        rp_try_stop(v);
    }
}

/* After some rounds, ends the variants that need no more. Returns how many go on. */
static size_t look(struct wave *w, bool last)
{
    size_t more = 0;

    w->control = interval_of(w, w->at[1]);
    for (size_t i = 2; i < w->n; i++) {
        if (w->at[i]->state == RP_TRY_ALIVE)
            look_at(w, w->at[i], last);
        more += w->at[i]->state == RP_TRY_ALIVE;
    }
    return more;
}

/* If the program has so few steps that shorter turns give more rounds, they are tried once. */
static bool wants_shorter_turns(struct wave *w)
{
    struct rp_try_session *s = w->s;
    size_t rounds = WARM_ROUNDS + w->at[0]->nrounds, enough = rp_try_looks[1] + WARM_ROUNDS;

    if (!s->ended || s->turn_most || w->turn == 1 || rounds >= enough)
        return false;
    s->turn_most = rounds * (w->turn + 1) / enough;
    s->turn_most -= s->turn_most > 1; /* without the step that is not timed */
    s->turn_most += !s->turn_most;
    s->ended = false;
    for (size_t i = 0; i < w->n; i++)
        if (w->at[i]->state == RP_TRY_ALIVE || rp_try_was_cut(w->at[i])) {
            rp_try_stop(w->at[i]);
            w->at[i]->state = RP_TRY_WAITING;
        }
    return true;
}

/* Rounds that were measured before the end of the program, or of the time, count. */
static void revive_cut(struct wave *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (rp_try_was_cut(w->at[i]) && w->at[i]->nrounds > 1) {
            w->at[i]->state = RP_TRY_ALIVE;
            w->at[i]->why[0] = '\0';
        }
}

static bool is_winner(const struct rp_try_variant *v)
{
    return (v->state == RP_TRY_MEASURED || v->state == RP_TRY_EARLIER) && v->nparts == 1 &&
           v->verdict == RP_TRY_FASTER && !v->differs;
}

static size_t count_winners(const struct rp_try_session *s)
{
    size_t n = 0;

    for (size_t i = 2; i < s->nvariants; i++)
        n += is_winner(&s->variants[i]);
    return n;
}

static void wave_rounds(struct wave *w)
{
    struct rp_try_session *s = w->s;
    bool good = true;
    size_t more = 1;

    for (size_t i = 0; i < WARM_ROUNDS && good; i++)
        good = run_round(w, i, false);
    for (size_t round = 0; round < RP_TRY_ROUNDS && good && more && count_alive(w) > 2; round++) {
        good = run_round(w, round, true);
        if (good && rp_try_is_look(rp_try_looks, round + 1))
            more = look(w, round + 1 == RP_TRY_ROUNDS);
        if (rp_clock_ns() > w->end_ns && count_winners(s) > 1)
            break; /* the rest of the time is for all winners together */
        if (!rp_try_session_goes_on(s, "measuring"))
            break;
    }
    if (wants_shorter_turns(w))
        return;
    revive_cut(w);
    look(w, true);
    for (size_t i = 0; i < 2; i++) { /* of several waves, only the first has a row */
        if (w->at[i]->usual_ns <= 0)
            look_at(w, w->at[i], true);
        rp_try_stop(w->at[i]);
        w->at[i]->state = w->at[i]->state == RP_TRY_FAILED ? RP_TRY_FAILED : RP_TRY_MEASURED;
    }
}

/* ------------------------------------------------------------------ waves */

static size_t count_waiting(const struct rp_try_session *s)
{
    size_t n = 0;

    for (size_t i = 2; i < s->nvariants; i++)
        n += s->variants[i].state == RP_TRY_WAITING;
    return n;
}

static void fill_wave(struct wave *w)
{
    struct rp_try_session *s = w->s;
    size_t waiting = count_waiting(s), most = room(s);
    size_t waves = waiting ? (waiting + most - 3) / (most - 2) : 1;
    int64_t now = rp_clock_ns();

    w->end_ns = now + (s->deadline_ns - now) / (int64_t)(waves + (s->nvariants > 3));
    for (size_t i = 0; i < s->nvariants && w->n < most; i++)
        if (i < 2 || s->variants[i].state == RP_TRY_WAITING)
            w->at[w->n++] = &s->variants[i];
    for (size_t i = 0; i < w->n; i++)
        w->at[i]->nrounds = 0;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The unchanged program keeps what an earlier wave measured, if a later one cannot begin. */
static void keep_unchanged(struct wave *w)
{
    for (size_t i = 0; i < 2 && i < w->n; i++)
        if (w->at[i]->usual_ns > 0) {
            rp_try_stop(w->at[i]);
            w->at[i]->state = RP_TRY_MEASURED;
            w->at[i]->why[0] = '\0';
        }
}

/* If starting took longer than planned, rounds still get a third of the rest. */
void rp_try_measure(struct rp_try_session *s)
{
    while (count_waiting(s) && rp_try_session_goes_on(s, "measuring")) {
        struct wave w = {.s = s};

        fill_wave(&w);
        if (!wave_begin(&w)) {
            keep_unchanged(&w);
            break;
        }
        w.end_ns = later(w.end_ns, rp_clock_ns() + (s->deadline_ns - rp_clock_ns()) / 3);
        choose_turn(&w);
        wave_rounds(&w);
        if (s->variants[0].state == RP_TRY_FAILED)
            break;
    }
    for (size_t i = 2; i < s->nvariants; i++)
        if (s->variants[i].state == RP_TRY_WAITING || s->variants[i].state == RP_TRY_ALIVE)
            rp_try_fail(&s->variants[i], s->cancelled ? "interrupted" : "there was no time for it");
}

/* ------------------------------------------------------------------ the winners */

static bool is_best_of_group(const struct rp_try_session *s, const struct rp_try_variant *v)
{
    for (size_t i = 2; i < s->nvariants; i++) {
        const struct rp_try_variant *other = &s->variants[i];

        if (other != v && is_winner(other) && *v->parts[0]->group &&
            !strcmp(other->parts[0]->group, v->parts[0]->group) &&
            other->interval.median < v->interval.median)
            return false;
    }
    return true;
}

bool rp_try_together(struct rp_try_session *s)
{
    struct rp_try_variant *all = &s->variants[s->nvariants];
    size_t n = 0;

    memset(all, 0, sizeof *all);
    for (size_t i = 2; i < s->nvariants && all->nparts < RP_TRY_PARTS; i++) {
        const struct rp_try_variant *v = &s->variants[i];

        if (!is_winner(v) || !is_best_of_group(s, v))
            continue;
        all->parts[all->nparts] = v->parts[0];
        memcpy(all->values[all->nparts++], v->values[0], sizeof v->values[0]);
        n += (size_t)snprintf(all->name + n, n < sizeof all->name ? sizeof all->name - n : 0,
                              "%s%s", n ? " + " : "", v->name);
    }
    if (all->nparts < 2)
        return false;
    s->nvariants++;
    return true;
}
