/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds of new processes, and their evaluation (against.h). A test over processes is made after
 * few rounds, and again after more. The allowed error is divided by the programs and two witnesses:
 * the wall clock, and processor time, which other programs on the machine disturb less.
 */
#include "base/clock.h"
#include "base/text.h"
#include "try/against.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURNS        12 /* of a loop in a round, or more, as long as its processes took to start */
#define TURNS_MOST   48
#define TURN_NS      150e6 /* a turn takes about this long */
#define TURN_STEPS   50
#define LEAST_TURNS  3    /* a loop that ends with fewer turns is measured from start to end */
#define SLOWER_CLOCK 0.03 /* of a step: by less it may take longer than it tells */
#define LARGE_GAIN   0.3  /* of a step */
#define MOVED        0.25 /* of a gain: what the steps that are not timed may take longer */
#define CLOCK_APART  0.03 /* of a logarithm: clocks of a device vary by less from turn to turn */
#define SAMPLES      4    /* calls of a round whose output is compared, and steps to the next */
#define TIMES        3    /* as far apart as in the first steps, times this */
#define LEFT_OUT     2    /* times that an update of later steps is smaller than the other */
#define BUSY         0.2  /* of a processor */
#define AS_MANY      0.1  /* of a logarithm: so many processors are as many */

/* ------------------------------------------------------------------ a round of loops */

struct turns { /* of one side in one round */
    double ns[TURNS_MOST], spent_ns[TURNS_MOST], log[TURNS_MOST], spent_log[TURNS_MOST];
    double gain[TURNS_MOST], all_gain[TURNS_MOST]; /* by yours, a step and in all */
    double late[TURNS_MOST]; /* what a timed step takes longer by our clock, as messages do */
    double last_ns;          /* of the last turn, a step, by our clock */
};

RP_PRINTF(2, 3) static void refuse(struct rp_try_side *side, const char *fmt, ...)
{
    va_list args;

    if (*side->refused)
        return;
    va_start(args, fmt);
    vsnprintf(side->refused, sizeof side->refused, fmt, args);
    va_end(args);
}

/* Starts the processes of a round, one after the other, up to the end of their first steps. */
static bool begin_loops(struct rp_try_duel *d, bool backwards)
{
    const struct rp_try_mode mode = {0};

    for (size_t i = 0; i < d->n; i++) {
        struct rp_try_side *side = &d->side[backwards ? d->n - 1 - i : i];

        int64_t begun_ns = rp_clock_ns();

        if (side->v.state != RP_TRY_WAITING)
            continue;
        side->begin_ns[side->n] = NAN;
        rp_try_start(d->s, &side->v, &mode);
        if (rp_try_begin(d->s, &side->v))
            side->begin_ns[side->n] = (double)(rp_clock_ns() - begun_ns);
        else if (side == d->side || d->s->ended)
            return false;
    }
    return true;
}

static void choose_turn(struct rp_try_duel *d)
{
    double step = fmax(1e3, (double)d->side[0].v.early_step_ns);

    d->turn = (size_t)fmax(1, fmin(TURN_STEPS, ceil(TURN_NS / step)));
}

/* Runs each of the sides once. Returns false if yours has failed. */
static bool take_turns(struct rp_try_duel *d, struct turns *turns, size_t turn)
{
    for (size_t k = 0; k < d->n; k++) {
        size_t i = turn % 2 ? d->n - 1 - k : k;
        struct rp_try_side *side = &d->side[i];
        struct turns *t = &turns[i];

        t->ns[turn] = side->v.state == RP_TRY_ALIVE ? rp_try_turn(d->s, &side->v, d->turn) : NAN;
        t->spent_ns[turn] = t->late[turn] = NAN;
        if (isfinite(t->ns[turn])) {
            t->spent_ns[turn] = (double)side->v.spent_ns / (double)d->turn;
            t->late[turn] = (double)side->v.timed_ns / (double)d->turn - t->ns[turn];
            t->last_ns = (double)side->v.clock_ns / (double)(d->turn + 1); /* with the first */
            side->mhz += side->v.mhz;
            side->mhz_n += side->v.mhz > 0;
        }
    }
    for (size_t i = 0; i < d->n; i++) {
        turns[i].log[turn] = log(turns[0].ns[turn]) - log(turns[i].ns[turn]);
        turns[i].gain[turn] = turns[i].ns[turn] - turns[0].ns[turn];
        turns[i].all_gain[turn] = turns[i].last_ns - turns[0].last_ns;
        turns[i].spent_log[turn] = log(turns[0].spent_ns[turn]) - log(turns[i].spent_ns[turn]);
    }
    return d->side[0].v.state == RP_TRY_ALIVE;
}

/* What yours gains in the timed steps of a turn, it gains in the whole turn, and it does not work
   when its update is asked for instead. `steps` is their number in all turns. */
static void note_gain(const struct rp_try_side *yours, struct rp_try_side *side,
                      const struct turns *t, size_t n, size_t steps)
{
    double usual = rp_try_middle(t->ns, n);
    double asked = (double)(yours->v.update_ns - side->v.update_ns) / (double)steps;

    side->gain[side->n] = rp_try_middle(t->gain, n) / usual;
    side->all_gain[side->n] = (rp_try_middle(t->all_gain, n) - asked) / usual;
}

/* What repeats itself in the second round does so in all of them. */
static void judge_again(struct rp_try_duel *d)
{
    struct rp_try_difference now = {0};

    if (d->s->variants[1].difference.exact &&
        rp_try_compare(d->side->v.update, d->s->variants[0].update, &now, NULL) == RP_OK &&
        !(now.ratio[now.n - 1] <= RP_TRY_ROUNDING))
        refuse(d->side, "it does not do the same in every round");
}

/* The update of yours in the first round is the reference for all, and that of the second round
   tells whether yours repeats itself; then the others are judged like changes (same.c). */
static void judge_updates(struct rp_try_duel *d)
{
    struct rp_try_variant *first = &d->s->variants[0], *again = &d->s->variants[1];

    if (!d->rounds) {
        snprintf(first->update, sizeof first->update, "%s/kept", d->s->scratch);
        rp_try_move_update(d->side->v.update, first->update);
        return;
    }
    if (d->rounds > 1) {
        judge_again(d);
        return;
    }
    if (rp_try_compare(d->side->v.update, first->update, &again->difference, NULL) != RP_OK)
        return;
    for (size_t i = 1; i < d->n; i++)
        if (d->side[i].v.state == RP_TRY_ALIVE && *d->side[i].v.update)
            rp_try_judge_update(d->s, &d->side[i].v);
}

static bool is_calls(const struct rp_try_duel *d)
{
    return rp_text_begins(rp_try_fact(&d->s->facts, "unit"), "call");
}

/* Outputs of calls do not grow apart, as parameters do. */
static double limit_of_calls(const struct rp_try_side *side)
{
    return RP_TRY_ROUNDING + TIMES * side->v.update_ratio;
}

/* Refuses a side whose later steps, which were timed, do other work than those of yours, although
   the first ones did not. */
static void judge_later(struct rp_try_duel *d, struct rp_try_side *side)
{
    struct rp_try_difference later = {0};

    if (rp_try_compare(side->v.update, d->side->v.update, &later, NULL) != RP_OK)
        refuse(side, "it did not do all of the steps that were timed");
    else if (d->steady && is_calls(d) && !(later.ratio[0] <= limit_of_calls(side)))
        refuse(side, "it does not do the same in later steps: %s is another one in some of them",
               rp_try_compared(d->s));
    else if (later.size[0] > LEFT_OUT || later.size[0] * LEFT_OUT < 1)
        refuse(side, "it does not do the same in later steps: %s has another size then",
               rp_try_compared(d->s));
    else if (side->v.exact && d->repeats && !later.exact && later.ratio[0] > RP_TRY_ROUNDING)
        refuse(side, "it does not do the same in later steps: %s is equal in the first steps only",
               rp_try_compared(d->s));
}

static void judge_sides_later(struct rp_try_duel *d)
{
    for (size_t i = 1; i < d->n; i++)
        if (d->side[i].v.state == RP_TRY_ALIVE && d->side[i].v.judged && !d->side[i].v.differs)
            judge_later(d, &d->side[i]);
}

/* A call that was left out leaves no trace in later ones, so some are looked at that the program
   cannot know. */
static void sample_calls(struct rp_try_duel *d)
{
    for (size_t k = 0; k < SAMPLES && d->steady && is_calls(d); k++) {
        size_t steps = 1 + (size_t)(rp_clock_ns() / 1000 % SAMPLES);

        for (size_t i = 0; i < d->n; i++)
            if (d->side[i].v.state == RP_TRY_ALIVE) {
                (void)rp_try_turn(d->s, &d->side[i].v, steps);
                if (d->side[i].v.state != RP_TRY_ALIVE ||
                    !rp_try_take_update(d->s, &d->side[i].v, "sample"))
                    return;
            }
        judge_sides_later(d);
    }
}

/* The same steps were timed on all sides, so updates at the end of the turns can be compared, too:
   what repeats itself exactly must be equal, and anything must have moved about as far. */
static void judge_all_later(struct rp_try_duel *d)
{
    struct rp_try_variant *first = &d->s->variants[2];
    struct rp_try_difference again = {0};

    for (size_t i = 0; i < d->n; i++)
        if (d->side[i].v.state == RP_TRY_ALIVE && !rp_try_take_update(d->s, &d->side[i].v, "later"))
            return;
    bool known =
        d->rounds && rp_try_compare(d->side->v.update, first->update, &again, NULL) == RP_OK;
    d->repeats = known && again.exact;
    d->steady = known && again.ratio[0] <= RP_TRY_ROUNDING;
    judge_sides_later(d);
    if (d->rounds)
        return;
    snprintf(first->update, sizeof first->update, "%s/kept_later", d->s->scratch);
    rp_try_move_update(d->side->v.update, first->update);
}

static void end_round(struct rp_try_duel *d)
{
    for (size_t i = 0; i < d->n; i++) {
        struct rp_try_variant *v = &d->side[i].v;

        if (v->child && v->child->restless)
            refuse(&d->side[i], "its processes go on while others have their turn: they start new "
                                "ones faster than those can be stopped");
        rp_try_stop(v);
        if (v->state == RP_TRY_ALIVE || rp_try_was_cut(v))
            v->state = RP_TRY_WAITING;
        if (v->state == RP_TRY_WAITING)
            v->why[0] = '\0';
    }
}

static void add_round(struct rp_try_side *side, double ns, double spent_ns, double wall_log,
                      double spent_log, double later)
{
    side->later[side->n] = later;
    side->ns[side->n] = ns;
    side->spent_ns[side->n] = spent_ns;
    side->log[side->n] = wall_log;
    side->spent_log[side->n++] = spent_log;
}

/* Returns false if yours has failed, or the loop is too short. */
static bool round_of_loops(struct rp_try_duel *d)
{
    struct turns *turns = calloc(d->n, sizeof *turns);
    size_t turn = 0;

    d->s->ended = false;
    int64_t begun_ns = rp_clock_ns();
    bool good = turns && begin_loops(d, d->rounds % 2);
    int64_t started_ns = rp_clock_ns();

    if (good && !d->turn)
        choose_turn(d);
    if (good)
        judge_updates(d);
    while (good && rp_try_session_goes_on(d->s, "measuring") &&
           turn < (d->turns ? d->turns : TURNS_MOST) &&
           (turn < TURNS || d->turns || rp_clock_ns() - started_ns < started_ns - begun_ns))
        good = take_turns(d, turns, turn++);
    if (good && !d->turns && turn >= TURNS)
        d->turns = turn;
    if (good && turn == d->turns)
        judge_all_later(d);
    good = turns && (good || (d->s->ended && turn > LEAST_TURNS));
    for (size_t i = 0; i < d->n && good && turn > LEAST_TURNS; i++) {
        struct turns *t = &turns[i];

        note_gain(d->side, &d->side[i], t, turn, turn * (d->turn + 1));
        if (isfinite(rp_try_middle(t->log, turn)))
            add_round(&d->side[i], rp_try_middle(t->ns, turn), rp_try_middle(t->spent_ns, turn),
                      rp_try_center(t->log, turn, 1).median,
                      rp_try_center(t->spent_log, turn, 1).median,
                      (rp_try_middle(turns[0].late, turn) - rp_try_middle(t->late, turn)) /
                          rp_try_middle(turns[0].ns, turn));
    }
    if (good && turn == d->turns)
        sample_calls(d);
    for (size_t i = 1; i < d->n && *d->side->refused;
         i++) /* of yours, and all that is said of it */
        memcpy(d->side[i].refused, d->side->refused, sizeof d->side->refused);
    end_round(d);
    free(turns);
    return good;
}

/* ------------------------------------------------------------------ a round of whole programs */

static bool round_of_wholes(struct rp_try_duel *d)
{
    double ns[RP_TRY_OTHERS + 1], spent[RP_TRY_OTHERS + 1];

    for (size_t k = 0; k < d->n; k++) {
        size_t i = d->rounds % 2 ? d->n - 1 - k : k;
        struct rp_try_side *side = &d->side[i];
        struct rp_try_spent used;

        ns[i] = spent[i] = NAN;
        if (side->v.state != RP_TRY_WAITING)
            continue;
        if (rp_try_run_alone(d->s, &side->v, &used)) {
            snprintf(side->last, sizeof side->last, "%s/" RP_TRY_OUT, side->v.child->scratch);
            if (!*side->first)
                memcpy(side->first, side->last, sizeof side->first);
            side->tally = !d->rounds || side->tally == side->v.tally ? side->v.tally : -1;
            ns[i] = (double)used.wall_ns;
            spent[i] = (double)used.processor_ns;
            if (used.memory_bytes > side->v.memory_bytes)
                side->v.memory_bytes = used.memory_bytes;
        } else if (!i || !rp_try_session_goes_on(d->s, "measuring")) {
            return false;
        }
    }
    if (*d->side->v.update)
        judge_updates(d);
    end_round(d);
    for (size_t i = 0; i < d->n; i++)
        if (isfinite(ns[i]))
            add_round(&d->side[i], ns[i], spent[i], log(ns[0]) - log(ns[i]),
                      log(spent[0]) - log(spent[i]), NAN);
    return true;
}

/* ------------------------------------------------------------------ looking */

/* How many processors it used, in the round in which it waited least for one. */
static double processors(const struct rp_try_side *side)
{
    double most = 0;

    for (size_t i = 0; i < side->n; i++)
        most = fmax(most, side->spent_ns[i] / side->ns[i]);
    return most;
}

/* Processor time is evidence for programs that compute, not on a device, and on as many processors
   as one another. */
static bool has_witness(const struct rp_try_duel *d, const struct rp_try_side *side)
{
    const char *device = rp_try_fact(&d->s->facts, "device");
    double own = processors(d->side), other = processors(side);

    return (!*device || !strcmp(device, "cpu")) && fmin(own, other) > BUSY &&
           fabs(log(own / other)) < AS_MANY;
}

static bool is_decided(enum rp_try_verdict verdict)
{
    return verdict == RP_TRY_FASTER || verdict == RP_TRY_SLOWER;
}

/* Whether a gain in the timed steps is none of the whole turns. A large one is refused if that is
   no matter of chance. */
static bool is_moved(struct rp_try_side *side, double error)
{
    double lost[RP_TRY_PROCESSES], gain = rp_try_middle(side->gain, side->n);

    for (size_t i = 0; i < side->n; i++)
        lost[i] = (1 - MOVED) * side->gain[i] - side->all_gain[i];
    if (gain > LARGE_GAIN && rp_try_center(lost, side->n, error).low > 0)
        refuse(side, "its timed steps are shorter than the others: work was moved out of them");
    return rp_try_middle(side->all_gain, side->n) < gain / 2;
}

static void look_at(struct rp_try_duel *d, struct rp_try_side *side, bool last)
{
    bool witness = has_witness(d, side);
    double error = rp_try_process_error(d->n - 1, witness ? 2 : 1);
    struct rp_try_interval later = rp_try_center(side->later, side->n, error);
    enum rp_try_verdict wall, spent;

    side->wall = rp_try_center(side->log, side->n, error);
    side->spent = rp_try_center(side->spent_log, side->n, error);
    wall = rp_try_judge(&side->wall, 0, last);
    spent = rp_try_judge(&side->spent, 0, last);
    if (later.low > SLOWER_CLOCK)
        refuse(side, "its clock was changed: its steps take longer than it tells");
    /* nor does it count as a gain what a changed clock may explain */
    if (wall == RP_TRY_FASTER && later.low > 0 && side->wall.high + later.median > 0)
        wall = last ? RP_TRY_NOISY : RP_TRY_UNDECIDED;
    side->by_spent = witness && !is_decided(wall) && wall != RP_TRY_EQUAL &&
                     (is_decided(spent) || (last && spent == RP_TRY_EQUAL));
    side->verdict = side->by_spent ? spent : wall;
    if (is_moved(side, error) && side->verdict == RP_TRY_FASTER) {
        side->verdict = last ? RP_TRY_NOISY : RP_TRY_UNDECIDED;
        side->by_spent = false;
    }
}

/* A difference that the clock of the device explains is none of the program. */
static void judge_clock(const struct rp_try_duel *d, struct rp_try_side *side)
{
    double own = d->side->mhz / (double)d->side->mhz_n, other = side->mhz / (double)side->mhz_n;

    if (!(fabs(log(own / other)) > CLOCK_APART)) /* or not known */
        return;
    snprintf(side->clock, sizeof side->clock,
             "the device ran at %.0f MHz with yours and at %.0f MHz with it (%+.1f %%)", own, other,
             100 * (own / other - 1));
    if (side->verdict == RP_TRY_FASTER && side->wall.high + log(own / other) > 0)
        refuse(side, "only the clock of the device is higher with yours");
}

/* Whether anything is still undecided. */
static bool look(struct rp_try_duel *d, size_t rounds, bool last)
{
    bool open = false;

    for (size_t i = 1; i < d->n; i++) {
        struct rp_try_side *side = &d->side[i];

        if (side->v.state == RP_TRY_FAILED || (side->verdict && !last))
            continue;
        if (*side->refused && !last)
            continue; /* its speed does not matter */
        if (!side->verdict && (last || rp_try_is_look(rp_try_process_looks, rounds))) {
            look_at(d, side, last);
            judge_clock(d, side);
        }
        open |= side->verdict == RP_TRY_UNDECIDED;
    }
    return open;
}

/* ------------------------------------------------------------------ whether they do the same */

static const char *same_loop(const struct rp_try_duel *d, struct rp_try_side *side)
{
    if (d->side->v.precision > side->v.precision && side->v.precision && !side->v.exact)
        refuse(side, "it computes in another precision: %s instead of %s",
               d->side->v.precision_name, side->v.precision_name);
    if (side->v.state == RP_TRY_REFUSED)
        refuse(side, "it does not do the same: %s is another one", rp_try_compared(d->s));
    else if (side->v.differs)
        refuse(side,
               "it computes something else, or in another precision: %s differs by more than "
               "rounding explains",
               rp_try_compared(d->s));
    return !side->v.judged  ? "not judged"
           : side->v.exact  ? "exact"
           : *side->refused ? "different"
                            : "within rounding";
}

static const char *same_whole(const struct rp_try_duel *d, struct rp_try_side *side)
{
    const char *const paths[] = {d->side->first, d->side->last, side->last};
    char why[RP_TRY_WHY / 2] = "";

    switch (rp_try_printed(paths, why, sizeof why)) {
    case RP_TRY_PRINTED_SAME:
        return "same output";
    case RP_TRY_PRINTED_NOTHING:
        return "not judged: yours prints nothing that stays the same";
    case RP_TRY_PRINTED_UNSTEADY:
        return "not judged: what yours prints differs from run to run";
    case RP_TRY_PRINTED_OTHER:
        break;
    }
    refuse(side, "it does not do the same: it prints %s", why);
    return "different output";
}

/* Of a loop that was measured from start to end, updates and the number of steps say more than
   what is printed, in which numbers may differ by rounding. */
static const char *same_of(const struct rp_try_duel *d, struct rp_try_side *side)
{
    int64_t own = d->side->tally, other = side->tally;

    if (d->whole && own > 0 && other > 0 && own != other)
        refuse(side, "it does not do the same: it takes %lld step%s instead of %lld",
               (long long)own, own == 1 ? "" : "s", (long long)other);
    if (!d->whole || side->v.state == RP_TRY_REFUSED || (side->v.judged && !side->v.exact))
        return same_loop(d, side);
    const char *same = same_whole(d, side);
    return side->v.judged && !*side->refused ? "exact" : same;
}

#define REPEATED 2 /* number of rounds that show whether yours repeats itself */

static void compare(struct rp_try_duel *d)
{
    for (size_t i = 1; i < d->n; i++)
        if (d->side[i].n)
            d->side[i].same = same_of(d, &d->side[i]);
}

/* ------------------------------------------------------------------ all rounds */

/* Whether there is time for a round like the last one. */
static bool has_time(const struct rp_try_duel *d)
{
    return rp_clock_ns() + d->round_ns < d->s->deadline_ns;
}

static void start_over(struct rp_try_duel *d)
{
    d->whole = true;
    d->s->ended = false;
    for (size_t i = 0; i < d->n; i++) {
        d->side[i].v.state = RP_TRY_WAITING;
        d->side[i].v.judged = false;
        d->side[i].v.why[0] = '\0';
        d->side[i].n = 0;
    }
}

void rp_try_duel(struct rp_try_duel *d)
{
    bool open = true;

    while (open && d->rounds < RP_TRY_PROCESSES && rp_try_session_goes_on(d->s, "measuring") &&
           has_time(d)) {
        int64_t begun_ns = rp_clock_ns();

        snprintf(d->s->doing, sizeof d->s->doing, "round %zu: ", d->rounds + 1);
        if (!(d->whole ? round_of_wholes(d) : round_of_loops(d))) {
            bool ended = d->s->ended;

            end_round(d);
            if (d->whole || !ended || d->rounds)
                break;
            start_over(d);
            continue;
        }
        d->round_ns = rp_clock_ns() - begun_ns;
        if (++d->rounds == REPEATED)
            compare(d);
        if (d->rounds == REPEATED || rp_try_is_look(rp_try_process_looks, d->rounds))
            open = look(d, d->rounds, false);
    }
    if (d->rounds < REPEATED)
        compare(d);
    look(d, d->rounds, true);
    d->s->doing[0] = '\0';
}
