/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a run: ranks, steps, the parts of the time, and sentences for people. The parts are
 * exact sums over the ranks: compute + transfer + waiting + copies + idle by cause = span.
 */
#include "explain/report/join.h"

#include "dataset/question.h"
#include "dataset/related.h"
#include "explain/findings/finding.h"
#include "explain/roofline/programs.h"
#include "facts/host/trace_host.h"

#include <stdio.h>
#include <string.h>

#define MOST_PARTS   (RP_GAP_CAUSES + RP_PAUSES + 6)
#define SECOND_NAMED 4
#define MOST_SHOWN   4
RP_LIMIT(SECOND_NAMED, "of the first, one part in",
         "a second rank that delays the others by less is not named in the line");
RP_LIMIT(MOST_SHOWN, "findings", "on the screen; a note says how many there are, JSON has all");

/* ------------------------------------------------------------------ all ranks */

static void fill_rank(struct rp_report_ctx *j, size_t r)
{
    const struct rp_report_part *p = rp_report_ctx_part(j, r);
    const struct rp_chain_rank *c = &j->chain.ranks[r];
    bool matched = j->chain.ncollectives > 0;

    j->out->ranks[r] = (struct rp_report_rank){
        .path = j->ranks->parts[r].path,
        .rank = rp_report_ctx_number(j, r),
        .window_ns = p->b.window_ns,
        .busy_ns = p->b.busy_ns,
        .compute_ns = p->b.compute_ns,
        .comm_ns = p->b.comm_ns,
        .exposed_comm_ns = p->b.exposed_comm_ns,
        .memory_ns = p->b.memory_ns,
        .idle_ns = p->b.idle_ns,
        .wait_ns = matched ? c->wait_ns : RP_ABSENT_I64,
        .transfer_ns = matched ? c->transfer_ns : RP_ABSENT_I64,
        .last_count = matched ? c->last_count : RP_ABSENT_I64,
        .margin_ns = matched ? c->margin_ns : RP_ABSENT_I64,
        .late_ns = p->on_device ? p->late_ns : RP_ABSENT_I64,
        .step_ns = p->step_ns,
        .span_ns = p->whole.window_ns,
        .idle_share = p->b.window_ns ? (double)p->b.idle_ns / (double)p->b.window_ns : 0,
        .op_share =
            p->coverage.device_ns ? (double)p->coverage.op_ns / (double)p->coverage.device_ns : 0};
    rp_ns_add(&j->total_ns, p->whole.window_ns);
    rp_ns_add(&j->out->window_ns, p->b.window_ns);
}

/* How long a rank waits in collectives within what is judged, at most `most`. */
static int64_t wait_in_span(const struct rp_report_ctx *j, size_t r, int64_t comm_ns)
{
    const rp_interval_vec *waits = j->chain.waits ? &j->chain.waits[r] : NULL;
    int64_t sum = 0;

    for (size_t i = 0; waits && i < waits->n; i++)
        rp_ns_add(&sum, rp_report_judged_ns(rp_report_ctx_part(j, r), waits->at[i].begin_ns,
                                            waits->at[i].end_ns));
    return sum < comm_ns ? sum : comm_ns;
}

/* Without a device: fills the same for the span, without start-up. */
static void fill_host_ranks(struct rp_report_ctx *j)
{
    struct rp_report_rank *rows = RP_ARENA_NEW(j->arena, struct rp_report_rank, j->n + 1);

    for (size_t r = 0; r < j->n && rows; r++) {
        const struct rp_breakdown *b = &rp_report_ctx_part(j, r)->whole;

        rows[r] = j->out->ranks[r];
        rows[r].window_ns = b->window_ns;
        rows[r].busy_ns = b->busy_ns;
        rows[r].compute_ns = b->compute_ns;
        rows[r].comm_ns = b->comm_ns;
        rows[r].exposed_comm_ns = b->exposed_comm_ns;
        rows[r].idle_ns = b->idle_ns;
        if (rows[r].wait_ns != RP_ABSENT_I64) {
            rows[r].wait_ns = wait_in_span(j, r, b->comm_ns);
            rows[r].transfer_ns = b->comm_ns - rows[r].wait_ns;
        }
    }
    j->out->host_rank_rows = rows;
    j->out->nhost_rank_rows = rows ? j->n : 0;
}

static void fill_ranks(struct rp_report_ctx *j)
{
    struct rp_report_root *out = j->out;
    size_t r, i, nsteps = 0;

    for (r = 0; r < j->n; r++)
        nsteps += rp_report_ctx_part(j, r)->nsteps;
    out->ranks = RP_ARENA_NEW(j->arena, struct rp_report_rank, j->n + 1);
    out->steps = RP_ARENA_NEW(j->arena, struct rp_report_step, nsteps + 1);
    if (!out->ranks || !out->steps)
        return;
    for (r = 0; r < j->n; r++) {
        fill_rank(j, r);
        for (i = 0; i < rp_report_ctx_part(j, r)->nsteps; i++) {
            struct rp_report_step *s = &out->steps[out->nsteps++];

            *s = rp_report_ctx_part(j, r)->steps[i];
            s->rank = rp_report_ctx_number(j, r);
        }
    }
    out->nranks = j->n;
    if (j->n > 1 && rp_report_ctx_part(j, 0)->on_device) {
        out->rank_rows = out->ranks;
        out->nrank_rows = out->nranks;
    } else if (j->n > 1) {
        fill_host_ranks(j);
    }
}

static void add_part(struct rp_report_ctx *j, const char *part, int64_t total_ns, const char *note)
{
    struct rp_report_share *s = &j->out->parts[j->out->nparts];

    if (total_ns == 0 || j->out->nparts == MOST_PARTS)
        return;
    *s = (struct rp_report_share){.part = part, .note = note, .total_ns = total_ns};
    s->mean_ns = total_ns / (int64_t)j->n;
    s->share = j->total_ns ? (double)total_ns / (double)j->total_ns : 0;
    j->out->nparts++;
}

/* Runs without operators are about the program's own ranges. */
static const char *pause_name(struct rp_report_ctx *j, int cause)
{
    static const char before[] = "no operator: ";
    const char *name = rp_pause_names[cause];

    if (cause == RP_PAUSE_NOTHING && rp_report_is_sampled(rp_report_ctx_part(j, 0)))
        return "sampled code";
    if (rp_report_ctx_part(j, 0)->by_calls && !strncmp(name, before, sizeof before - 1))
        return cause == RP_PAUSE_SPAN ? "other calls" : name + sizeof before - 1;
    return rp_report_ctx_part(j, 0)->by_ranges && !strncmp(name, before, sizeof before - 1)
               ? rp_arena_textf(j->arena, "no range: %s", name + sizeof before - 1)
               : name;
}

/* Adds idle time by cause, the largest first. */
static void add_idle(struct rp_report_ctx *j)
{
    int64_t cause[RP_GAP_CAUSES] = {0};

    for (size_t r = 0; r < j->n; r++) {
        const struct rp_report_part *p = rp_report_ctx_part(j, r);

        for (size_t i = 0; i < p->gaps.n; i++)
            rp_ns_add(&cause[p->gaps.at[i].cause],
                      rp_ns_between(p->gaps.at[i].begin_ns, p->gaps.at[i].end_ns));
    }
    for (int c = 0; c < RP_GAP_CAUSES; c++)
        rp_ns_add(&j->idle_ns, cause[c]);
    j->start_ns = cause[RP_GAP_START_UP];
    for (int round = 0; round < RP_GAP_CAUSES; round++) {
        int best = 0;

        for (int c = 1; c < RP_GAP_CAUSES; c++)
            best = cause[c] > cause[best] ? c : best;
        if (cause[best] <= 0)
            break;
        add_part(j, rp_arena_textf(j->arena, "idle: %s", rp_gap_cause_names[best]), cause[best],
                 rp_gap_cause_docs[best]);
        cause[best] = 0;
    }

    /* Without a device: adds time without an operator, by what ran instead. */
    int64_t pause[RP_PAUSES] = {0};
    for (size_t r = 0; r < j->n; r++)
        for (int c = 0; c < RP_PAUSES; c++)
            rp_ns_add(&pause[c], rp_report_ctx_part(j, r)->pauses.ns[c]);
    for (int c = 0; c < RP_PAUSES; c++)
        add_part(j, pause_name(j, c), pause[c],
                 c == RP_PAUSE_NOTHING && rp_report_is_sampled(rp_report_ctx_part(j, 0))
                     ? "no operator was recorded: see the lines below"
                 : !rp_report_ctx_part(j, 0)->by_calls ? rp_pause_docs[c]
                 : c == RP_PAUSE_SPAN    ? "MPI_Init, MPI_Finalize, and what returns at once"
                 : c == RP_PAUSE_NOTHING ? "before the first or after the last call"
                                         : rp_pause_docs[c]);
}

static const char *work_word(const struct rp_report_ctx *j)
{
    const struct rp_report_part *p = rp_report_ctx_part(j, 0);

    return p->on_device ? "compute" : p->by_ranges ? "user code" : "operators";
}

static void fill_parts(struct rp_report_ctx *j)
{
    bool device = rp_report_ctx_part(j, 0)->on_device,
         by_ranges = rp_report_ctx_part(j, 0)->by_ranges;
    int64_t compute = 0, exposed = 0, wait = 0, copies = 0, previous = 0;

    j->out->parts = RP_ARENA_NEW(j->arena, struct rp_report_share, MOST_PARTS + 1);
    if (!j->out->parts)
        return;
    for (size_t r = 0; r < j->n; r++) {
        const struct rp_breakdown *b = &rp_report_ctx_part(j, r)->whole;

        rp_ns_add(&compute,
                  rp_ns_between(rp_report_ctx_part(j, r)->sums.previous_ns, b->compute_ns));
        rp_ns_add(&previous, rp_report_ctx_part(j, r)->sums.previous_ns);
        rp_ns_add(&exposed, b->exposed_comm_ns);
        rp_ns_add(&copies, rp_ns_between(rp_ns_sum(b->compute_ns, b->exposed_comm_ns), b->busy_ns));
        rp_ns_add(&wait, j->chain.ncollectives && !j->chain.beside
                             ? j->chain.ranks[r].exposed_wait_ns
                             : 0);
    }
    add_part(j, work_word(j), compute,
             device                               ? "at least one kernel runs"
             : rp_report_ctx_part(j, 0)->by_calls ? "between calls that communicate or wait"
             : by_ranges                          ? "a range runs, and its thread does not wait"
                                                  : "at least one operator runs");
    add_part(j, "exposed communication", rp_ns_between(wait, exposed),
             !j->chain.ncollectives ? device ? "transfer and waiting, no compute"
                                             : "transfer and waiting, nothing else runs"
             : device               ? "transfer while no kernel computes"
             : by_ranges            ? "transfer while nothing else runs"
                                    : "transfer while no operator runs");
    add_part(j, "previous step", previous, "launched before the recording began");
    add_part(j, "waiting for other ranks", wait, "until the last rank has arrived");
    add_part(j, "copies alone", copies, "copies and memsets, nothing else");
    add_idle(j);
}

/* "8 ranks of 8, 1 step, pytorch, NVIDIA A100-SXM4-80GB" */
static void fill_run_text(struct rp_report_ctx *j)
{
    const struct rp_report_part *p = rp_report_ctx_part(j, 0);
    const char *steps;
    char ranks[64];

    if (j->ranks->world_size > (int64_t)j->n)
        snprintf(ranks, sizeof ranks, "%zu of %d ranks", j->n, j->ranks->world_size);
    else
        snprintf(ranks, sizeof ranks, "%s", rp_units_count(j->arena, (int64_t)j->n, "rank"));
    if (p->limited && p->nsteps)
        steps =
            rp_arena_textf(j->arena, "one of %s: '%s'",
                           rp_units_count(j->arena, p->recorded_steps, "step"), p->steps[0].name);
    else if (p->nsteps)
        steps = rp_units_count(j->arena, (int64_t)p->nsteps, "step");
    else
        steps = p->limited ? "a part of the recording" : "no steps found";
    j->out->run_text = rp_arena_textf(j->arena, "%s, %s, %s, %s", ranks, steps,
                                      rp_report_program_name(j->arena, p),
                                      p->sums.lost_work             ? "device work was not recorded"
                                      : rp_report_samples_device(p) ? "samples of a device"
                                      : !p->on_device               ? "host only"
                                      : p->device                   ? p->device
                                                                    : "unnamed device");
}

/* "18.5 ms, the median of 3 (18.0 ms to 21.6 ms)" for the steps of one rank. */
static const char *one_rank_step(struct rp_report_ctx *j)
{
    const struct rp_report_part *p = rp_report_ctx_part(j, 0);
    int64_t least = INT64_MAX, most = 0;

    for (size_t i = 0; i < p->nsteps; i++) {
        if (p->steps[i].warm_up)
            continue;
        least = p->steps[i].b.window_ns < least ? p->steps[i].b.window_ns : least;
        most = p->steps[i].b.window_ns > most ? p->steps[i].b.window_ns : most;
    }
    if (p->nsteps < 2 || least == most)
        return rp_report_ctx_time(j, j->out->step_ns);
    return rp_arena_textf(j->arena, "%s, the median of %zu (%s to %s)",
                          rp_report_ctx_time(j, j->out->step_ns), p->nsteps,
                          rp_report_ctx_time(j, least), rp_report_ctx_time(j, most));
}

/* The mean of the ranks' step times, and their range. */
static void fill_step(struct rp_report_ctx *j)
{
    int64_t *v = RP_ARENA_NEW(j->arena, int64_t, j->n + 1), sum = 0;
    size_t r, n = 0;

    j->out->step_ns = RP_ABSENT_I64;
    for (r = 0; r < j->n && v; r++)
        if (rp_report_ctx_part(j, r)->step_ns != RP_ABSENT_I64)
            v[n++] = rp_report_ctx_part(j, r)->step_ns;
    if (!n)
        return;
    rp_ns_sort(v, n);
    for (r = 0; r < n; r++)
        rp_ns_add(&sum, v[r]);
    j->out->step_ns = sum / (int64_t)n;
    j->out->step_text =
        n == 1 || v[0] == v[n - 1]
            ? one_rank_step(j)
            : rp_arena_textf(j->arena, "%s (ranks %s to %s)",
                             rp_report_ctx_time(j, j->out->step_ns), rp_report_ctx_time(j, v[0]),
                             rp_report_ctx_time(j, v[n - 1]));
}

/* ", 3.58 ms copies" where there are any. */
static const char *and_lost(struct rp_report_ctx *j, const char *text, const char *part,
                            const char *what)
{
    for (size_t i = 0; i < j->out->nparts; i++)
        if (!strcmp(j->out->parts[i].part, part))
            return rp_arena_textf(j->arena, "%s%s %s%s%s", text, *text ? "," : ":",
                                  rp_report_ctx_time(j, j->out->parts[i].mean_ns), *what ? " " : "",
                                  what);
    return text;
}

/* How long devices still worked for a step before the recorded ones, as the mean of the ranks. */
static int64_t previous_of(const struct rp_report_ctx *j)
{
    for (size_t i = 0; i < j->out->nparts; i++)
        if (!strcmp(j->out->parts[i].part, "previous step"))
            return j->out->parts[i].mean_ns;
    return 0;
}

/* "of 382.5 ms in 1 step, 154.9 ms (40.5 %) compute and 227.6 ms (59.5 %) lost: 3.58 ms copies,
   224.1 ms idle" */
static const char *lost_text(struct rp_report_ctx *j, const char *whole)
{
    struct rp_report_root *out = j->out;
    int64_t idle = j->idle_ns / (int64_t)j->n, start = j->start_ns / (int64_t)j->n;
    int64_t earlier = rp_report_ctx_part(j, 0)->sums.first_wait_ns;
    const char *lost = "";

    lost = and_lost(j, lost, "exposed communication", "exposed communication");
    lost = and_lost(j, lost, "waiting for other ranks", "waiting for other ranks");
    lost = and_lost(j, lost, "copies alone", "copies");
    if (idle)
        lost = rp_arena_textf(j->arena, "%s%s %s idle", lost, *lost ? "," : ":",
                              rp_report_ctx_time(j, idle));
    if (start)
        lost =
            rp_arena_textf(j->arena, "%s (%s of it start-up)", lost, rp_report_ctx_time(j, start));
    else if (earlier > out->span_ns / 10)
        lost = rp_arena_textf(j->arena, "%s (%s of it waiting for work that was not recorded)",
                              lost, rp_report_ctx_time(j, earlier));
    if (previous_of(j))
        whole = rp_arena_textf(j->arena, "%s and %s of a step before", whole,
                               rp_report_ctx_time(j, previous_of(j)));
    if (!out->lost_ns)
        return rp_arena_textf(j->arena, "of %s, all is compute", whole);
    return rp_arena_textf(j->arena, "of %s, %s (%s) compute and %s (%s) lost%s", whole,
                          rp_report_ctx_time(j, out->needed_ns),
                          rp_report_percent(j->arena, out->needed_ns, out->span_ns),
                          rp_report_ctx_time(j, out->lost_ns),
                          rp_report_percent(j->arena, out->lost_ns, out->span_ns), lost);
}

static size_t judged_steps(const struct rp_report_part *p)
{
    size_t i, n = 0;

    for (i = 0; i < p->nsteps; i++)
        n += !p->steps[i].warm_up && !p->steps[i].no_detail;
    return n;
}

/* Fills what the devices compute, and what was lost, as means over the ranks. */
static void fill_lost(struct rp_report_ctx *j)
{
    struct rp_report_root *out = j->out;
    size_t nsteps = judged_steps(rp_report_ctx_part(j, 0));

    if (!j->n)
        return;
    out->window_ns /= (int64_t)j->n;
    out->span_ns = j->total_ns / (int64_t)j->n;
    out->needed_ns =
        out->nparts && !strcmp(out->parts[0].part, work_word(j)) ? out->parts[0].mean_ns : 0;
    out->lost_ns = rp_ns_between(rp_ns_sum(out->needed_ns, previous_of(j)), out->span_ns);
    if (out->span_ns <= 0)
        return;
    const char *whole =
        nsteps ? rp_arena_textf(j->arena, "%s in %s%s", rp_report_ctx_time(j, out->span_ns),
                                rp_units_count(j->arena, (int64_t)nsteps, "step"),
                                j->n > 1 ? " on average" : "")
               : rp_arena_textf(j->arena, "%s %s%s", rp_report_ctx_time(j, out->span_ns),
                                rp_report_ctx_part(j, 0)->cut_to_device ? RP_WORDS_DEVICE_WINDOW
                                                                        : "recorded",
                                j->n > 1 ? " on average" : "");
    if (rp_report_has_only_transfers(rp_report_ctx_part(j, 0))) {
        out->lost_text = rp_arena_textf(j->arena, "of %s, only transfers are known", whole);
        return;
    }
    if (rp_report_ctx_part(j, 0)->on_device) {
        out->lost_text = lost_text(j, whole);
        return;
    }
    if (rp_report_is_sampled(rp_report_ctx_part(j, 0))) {
        out->lost_text = rp_arena_textf(j->arena, "%s, without operators", whole);
        return;
    }
    const char *waits = and_lost(j, "", "waiting", "");
    if (rp_report_knows_no_work(rp_report_ctx_part(j, 0))) {
        out->lost_text =
            rp_arena_textf(j->arena, "of %s,%s%s neither device work nor operators are known",
                           whole, *waits ? waits + 1 : "", *waits ? " in calls that wait;" : "");
        return;
    }
    const char *comm = and_lost(j, "", "exposed communication", "");
    out->lost_text =
        rp_arena_textf(j->arena, "of %s, %s during %s (%s)%s%s%s%s", whole,
                       rp_report_ctx_part(j, 0)->by_ranges  ? "user code runs"
                       : rp_report_ctx_part(j, 0)->by_calls ? "what lies between calls runs"
                                                            : "operators run",
                       rp_report_ctx_time(j, out->needed_ns),
                       rp_report_percent(j->arena, out->needed_ns, out->span_ns),
                       *comm ? ", communication alone during" : "", *comm ? comm + 1 : "",
                       *waits ? ", waiting" : "", *waits ? waits + 1 : "");
}

/* "rank 3: 1410 MHz (held back by heat for 2.10 s, up to 84 C)": of the rank whose device a limit
   held back longest. */
static void fill_clock(struct rp_report_ctx *j)
{
    const struct rp_device_clock *worst = NULL;
    int number = 0;

    for (size_t r = 0; r < j->n; r++) {
        const struct rp_device_clock *clock = &rp_report_ctx_part(j, r)->clock;

        if (rp_device_clock_is_limited(clock) &&
            (!worst || clock->power_ms + clock->heat_ms > worst->power_ms + worst->heat_ms)) {
            worst = clock;
            number = j->ranks->parts[r].number;
        }
    }
    if (worst)
        j->out->clock_text = j->n == 1 ? rp_device_clock_text(worst, j->arena)
                                       : rp_arena_textf(j->arena, "rank %d: %s", number,
                                                        rp_device_clock_text(worst, j->arena));
}

/* "84 collectives synchronize the ranks, 628.1 ms from the first to the last; ranks 0 and 6 arrived
   last 60 times and delayed the others by 302.5 ms of 326.4 ms" */
static void fill_pace(struct rp_report_ctx *j)
{
    const struct rp_chain *c = &j->chain;
    size_t r, first = 0, second, low;
    int64_t last, margin, all = 0;

    j->out->collective_span_ns = c->ncollectives ? c->span_ns : RP_ABSENT_I64;
    j->out->exposed_node_ns = j->out->exposed_between_ns = RP_ABSENT_I64;
    if (c->ncollectives && !c->exposed_ns[RP_PLACE_UNKNOWN]) {
        j->out->exposed_node_ns = c->exposed_ns[RP_PLACE_NODE];
        j->out->exposed_between_ns = c->exposed_ns[RP_PLACE_BETWEEN];
    }
    if (!c->ncollectives || j->n < 2)
        return;
    for (r = 0; r < j->n; r++) {
        rp_ns_add(&all, c->ranks[r].margin_ns);
        if (c->ranks[r].margin_ns > c->ranks[first].margin_ns)
            first = r;
    }
    if (!all) {
        j->out->pace_text = rp_arena_textf(
            j->arena,
            "%s %s the ranks, %s from the first to the last; no rank delays the others%s%s",
            rp_units_count(j->arena, (int64_t)c->ncollectives, "collective"),
            c->ncollectives == 1 ? "synchronizes" : "synchronize",
            rp_report_ctx_time(j, c->span_ns),
            c->ndoubtful ? " by more than the uncertainty of their clocks, ± " : "",
            c->ndoubtful ? rp_report_ctx_time(j, c->uncertainty_ns) : "");
        return;
    }
    second = first ? 0 : 1;
    for (r = 0; r < j->n; r++)
        if (r != first && c->ranks[r].margin_ns > c->ranks[second].margin_ns)
            second = r;
    last = c->ranks[first].last_count;
    margin = c->ranks[first].margin_ns;
    const char *who = rp_arena_textf(j->arena, "rank %d", rp_report_ctx_number(j, first));
    if (c->ranks[second].margin_ns > margin / SECOND_NAMED) {
        low = first < second ? first : second;
        last += c->ranks[second].last_count;
        rp_ns_add(&margin, c->ranks[second].margin_ns);
        who = rp_arena_textf(j->arena, "ranks %d and %d", rp_report_ctx_number(j, low),
                             rp_report_ctx_number(j, first + second - low));
    }
    j->out->pace_text = rp_arena_textf(
        j->arena,
        "%s %s the ranks, %s from the first to the last; %s%s arrived last %s "
        "and delayed the others by %s%s%s",
        rp_units_count(j->arena, (int64_t)c->ncollectives, "collective"),
        c->ncollectives == 1 ? "synchronizes" : "synchronize", rp_report_ctx_time(j, c->span_ns),
        j->ranks->world_size > (int64_t)j->n ? "of the ranks given, " : "", who,
        rp_units_count(j->arena, last, "time"), rp_report_ctx_time(j, margin),
        margin < all ? " of " : "", margin < all ? rp_report_ctx_time(j, all) : "");
}

/* Says how much of a finding's cost the line "time" counts as compute. */
static const char *compute_text(const struct rp_report_ctx *j, const struct rp_report_finding *f)
{
    if (!f->compute_ns)
        return "";
    return f->compute_ns >= f->lost_ns - f->lost_ns / 100
               ? rp_arena_textf(j->arena, " of the %s", work_word(j))
               : rp_arena_textf(j->arena, ", %s of it %s", rp_report_ctx_time(j, f->compute_ns),
                                work_word(j));
}

/* Fills the most costly findings, as blocks of lines. */
static void fill_look(struct rp_report_ctx *j)
{
    struct rp_report_root *out = j->out;

    out->look = RP_ARENA_NEW(j->arena, struct rp_report_look, MOST_SHOWN + 1);
    for (size_t i = 0; i < out->nfindings && i < MOST_SHOWN && out->look; i++) {
        const struct rp_report_finding *f = &out->findings[i];

        out->look[out->nlook++] = (struct rp_report_look){
            .heading = rp_arena_textf(j->arena, "%zu. %s: %s%s%s (%.1f %%)", i + 1, f->id,
                                      f->at_most ? "up to " : "", rp_report_ctx_time(j, f->lost_ns),
                                      compute_text(j, f), 100 * f->share),
            .why = f->title,
            .evidence = f->nevidence ? f->evidence[0] : NULL};
        rp_report_look_tries(j->arena, f, &out->look[out->nlook - 1]);
    }
    rp_report_note_overlap(j);
    if (!out->nfindings && !rp_report_has_only_transfers(rp_report_ctx_part(j, 0)) &&
        !rp_report_knows_no_work(rp_report_ctx_part(j, 0)))
        rp_report_add_note(j, "no finding costs more than 1 % of the time");
    if (out->nfindings > MOST_SHOWN)
        rp_report_add_note(j,
                           rp_arena_textf(j->arena, "%zu of %zu findings are shown: --json has all",
                                          (size_t)MOST_SHOWN, out->nfindings));
}

/* Nothing is concluded from a capture, because its kernels did not run. */
static void fill_capture(struct rp_report_ctx *j)
{
    int64_t captured = j->ranks->captured;

    j->out->captured_launches = captured;
    j->out->lost_text = rp_arena_textf(
        j->arena, "a recording of a graph capture: %s %s captured, not executed%s%s",
        rp_units_count(j->arena, captured, "launch"), captured == 1 ? "was" : "were",
        rp_report_ctx_part(j, 0)->on_device ? "; what ran beside it took " : "",
        rp_report_ctx_part(j, 0)->on_device ? rp_report_ctx_time(j, j->out->needed_ns) : "");
    rp_report_add_note(
        j, "nothing is concluded from a capture: report the trace in which the graph runs, "
           "with this file beside it, to see its kernels by operator");
}

/* Fills pitfalls, misleading impressions of the timeline, for the rank at the end of the chain. */
static void fill_pitfalls(struct rp_report_ctx *j)
{
    const struct rp_report_part *p = rp_report_ctx_part(j, j->chain.lead);
    const struct rp_chain_rank *c = &j->chain.ranks[j->chain.lead];
    int64_t beside = rp_ns_between(p->b.exposed_comm_ns, p->b.comm_ns);
    int64_t waiting = rp_ns_between(c->exposed_wait_ns, wait_in_span(j, j->chain.lead, INT64_MAX));

    j->out->pitfalls = RP_ARENA_NEW(j->arena, const char *, 5);
    if (!j->out->pitfalls)
        return;
    if (p->unequal)
        j->out->pitfalls[j->out->npitfalls++] = p->unequal;
    if (p->untypical)
        j->out->pitfalls[j->out->npitfalls++] = p->untypical;
    if (p->streams)
        j->out->pitfalls[j->out->npitfalls++] = p->streams;
    if (j->chain.ncollectives && !j->chain.beside && beside > p->whole.window_ns / 100 &&
        waiting > beside / 2 && waiting <= beside)
        j->out->pitfalls[j->out->npitfalls++] = rp_arena_textf(
            j->arena,
            "rank %d: of the %s of communication that overlaps with compute, %s is waiting for other ranks, not transfer",
            rp_report_ctx_number(j, j->chain.lead), rp_report_ctx_time(j, beside),
            rp_report_ctx_time(j, waiting));
}

static enum rp_code fill_waits(struct rp_report_ctx *j, struct rp_err *err)
{
    const struct rp_host_waits **waits =
        RP_ARENA_NEW(j->arena, const struct rp_host_waits *, j->n + 1);
    struct rp_idle_wait_list list;

    RP_TRY(rp_err_need(waits, err, "listing waits"));
    for (size_t r = 0; r < j->n; r++)
        waits[r] = &rp_report_ctx_part(j, r)->waits;
    RP_TRY(rp_idle_list_waits(waits, j->n, j->total_ns, j->arena, &list, err));
    j->out->waits = j->out->wait_rows = list.at;
    j->out->nwaits = list.n;
    j->out->nwait_rows = rp_report_ctx_part(j, 0)->on_device ? 0 : list.nshown;
    return RP_OK;
}

/* Fills how much of the devices is used; called when the step without the profiler is known. */
static enum rp_code fill_speed(struct rp_report_ctx *j, struct rp_err *err)
{
    struct rp_speed_rank *ranks = RP_ARENA_NEW(j->arena, struct rp_speed_rank, j->n + 1);

    RP_TRY(rp_err_need(ranks, err, "measuring the use of the devices"));
    for (size_t r = 0; r < j->n; r++) {
        const struct rp_report_part *p = rp_report_ctx_part(j, r);
        size_t steps = judged_steps(p);

        ranks[r] = (struct rp_speed_rank){
            .sums = &p->speed, .window_ns = p->whole.window_ns, .steps = steps ? (double)steps : 1};
        for (size_t i = 0; i < p->nsteps; i++)
            if (p->steps[i].tokens != RP_ABSENT_I64 && !p->steps[i].warm_up)
                ranks[r].tokens += (double)p->steps[i].tokens;
    }
    j->out->speed = rp_report_speed_of(ranks, j->n);
    if (j->out->step_ns != RP_ABSENT_I64)
        j->out->speed_text = rp_report_speed_text(&j->out->speed, j->out->step_ns,
                                                  j->out->unprofiled_ns, j->n > 1, j->arena);
    return RP_OK;
}

static bool wants_view(const struct rp_settings *settings)
{
    return rp_settings_has(settings, "html") || rp_settings_has(settings, "svg");
}

/* The ranks of a server work on the same requests, so one of them is shown. */
static void fill_requests(struct rp_report_ctx *j)
{
    size_t r;

    for (r = 0; r < j->n && !rp_report_ctx_part(j, r)->nrequests;)
        r++;
    if (r == j->n)
        return;
    j->out->requests = rp_report_ctx_part(j, r)->requests;
    j->out->nrequests = rp_report_ctx_part(j, r)->nrequests;
    rp_report_add_note(j, rp_report_ctx_part(j, r)->request_text);
}

static enum rp_code report_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                                struct rp_result *result, struct rp_err *err)
{
    struct rp_report_root *out = result->root;
    struct rp_report_ctx j = {.ranks = ranks, .n = ranks->n, .arena = &result->arena, .out = out};
    bool failed = false;

    for (size_t i = 0; i < ranks->n; i++)
        if (ranks->parts[i].digest && rp_digest_of_trial(ranks->parts[i].digest))
            return rp_err_set(err, RP_UNSUPPORTED,
                              "these files are a trial of dPRO, which is one job: 'reprise "
                              "simulate' says what its step is limited by, 'reprise optimize' "
                              "searches for what makes it faster");
    RP_TRY(rp_chain_make(ranks, j.arena, &j.chain, err));
    fill_ranks(&j);
    fill_parts(&j);
    rp_report_group_ranks(ranks, j.arena, out);
    RP_TRY(rp_arena_check(j.arena, "writing the report", err));
    fill_run_text(&j);
    fill_step(&j);
    rp_report_fill_found(&j);
    RP_TRY(rp_report_sum_phases(ranks, j.arena, out, err));
    for (size_t r = 0; r < j.n && !j.out->nkinds; r++) {
        j.out->kinds = rp_report_ctx_part(&j, r)->kinds;
        j.out->nkinds = rp_report_ctx_part(&j, r)->nkinds;
    }
    fill_requests(&j);
    fill_lost(&j);
    RP_TRY(rp_report_join_samples(ranks, j.arena, out, err));
    RP_TRY(fill_waits(&j, err));
    fill_pace(&j);
    fill_clock(&j);
    RP_TRY(rp_report_count_stalls(ranks, j.arena, out, err));
    out->workload = rp_report_workload_of(&rp_report_ctx_part(&j, j.chain.lead)->workload);
    if (rp_ranks_are_captures(ranks)) {
        fill_capture(&j);
    } else {
        rp_report_join_categories(ranks, j.arena, out);
        RP_TRY(rp_report_join_hot(ranks, j.arena, out, err));
        RP_TRY(rp_findings_find(ranks, &j.chain, j.arena, out, err));
        RP_TRY(rp_report_predict(ranks, &j.chain, !rp_settings_flag(settings, "no-simulate"),
                                 j.arena, out, err));
        fill_look(&j);
        fill_pitfalls(&j);
        rp_report_add_note(&j, ranks->graphs);
    }
    if (rp_settings_has(settings, "gate"))
        RP_TRY(rp_report_decide_gates(&j, rp_settings_text(settings, "gate"), &failed, err));
    result->answer = failed ? RP_ANSWER_NO : 0;
    rp_report_add_note(&j, rp_report_join_devices(ranks, j.arena, out));
    if (!rp_ranks_are_captures(ranks))
        rp_report_note_coverage(&j);
    rp_report_note_model(&j);
    rp_report_note_trouble(&j);
    rp_report_note_host(&j);
    rp_report_note_steps(&j);
    if (!rp_ranks_are_captures(ranks))
        RP_TRY(fill_speed(&j, err));
    rp_report_fill_start(ranks, j.arena, out);
    rp_report_fill_latency(&j);
    if (wants_view(settings))
        RP_TRY(rp_report_join_view(ranks, &j.chain, result, err));
    return rp_arena_check(j.arena, "writing the report", err);
}

/* ------------------------------------------------------------------ the row */

extern const struct rp_question_row rp_ask_report;

/* Makes what pages and pictures show in addition to the answer. */
static enum rp_code report_view(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                const struct rp_settings *settings,
                                const struct rp_report_hints *hints, struct rp_rank_part *part,
                                struct rp_err *err)
{
    const struct rp_roof_options roof = {.by = RP_ROOF_SHAPE, .achievable = RP_ROOF_ACHIEVABLE};
    struct rp_report_part *data = part->data;

    RP_TRY(rp_report_draw_lanes(loaded->trace, scope, &part->arena, data, err));
    if (!rp_settings_has(settings, "html"))
        return RP_OK;
    for (size_t k = 0; k < RP_VIEW_TOPS; k++) {
        struct rp_top_groups want = {.by = rp_top_by_of(rp_view_top_words[k]),
                                     .categories = hints->categories};

        RP_TRY(rp_top_group_work(loaded->trace, scope, &want, &part->arena, &data->tops[k], err));
    }
    return rp_roof_group_calls(loaded->trace, scope, hints->categories, &roof, hints->known,
                               hints->user, &part->arena, &data->roof, err);
}

static enum rp_code report_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                const struct rp_settings *settings, struct rp_rank_part *part,
                                struct rp_err *err)
{
    RP_SCOPED(rp_program_costs_release) struct rp_program_costs programs = {0};
    struct rp_report_hints hints = {.path = loaded->source->path,
                                    .categories = rp_loaded_categories(loaded),
                                    .known = rp_program_cost_of,
                                    .user = &programs};

    RP_TRY(rp_program_costs_init(&programs, loaded, NULL, err));

    struct rp_report_part *out = part->data;
    RP_TRY(rp_report_rank(loaded->trace, scope, &hints, &part->arena, out, err));
    RP_TRY(rp_trace_host(loaded->trace, loaded->source->name, &part->arena, &out->host, err));
    if (!out->collectives.host)
        out->collectives.host = out->host;
    if (rp_settings_flag(settings, "start-up") && !scope->limited)
        RP_TRY(rp_report_measure_start(loaded->trace, out, err));
    RP_TRY(rp_report_find_lines(loaded, scope, &part->arena, out, err));
    if (wants_view(settings))
        RP_TRY(report_view(loaded, scope, settings, &hints, part, err));
    return rp_report_trim(out, err);
}

/* The page also shows what the answer is based on. */
static enum rp_code report_write(const struct rp_settings *settings, struct rp_result *result,
                                 struct rp_err *err)
{
    const char *html = rp_settings_text(settings, "html"), *svg = rp_settings_text(settings, "svg");

    if (html)
        RP_TRY(rp_report_write_page(result, html, err));
    return svg ? rp_report_write_picture(result, svg, err) : RP_OK;
}

static const struct rp_option options[] = {
    RP_RANK_OPTIONS,
    {"start-up", 0, RP_OPT_FLAG, NULL, NULL,
     "also show where the time before the first step goes: imports, initialisation, compilation",
     0},
    {"no-simulate", 0, RP_OPT_FLAG, NULL, NULL, "do not predict what the advice would bring",
     RP_OPT_LESS},
    {"gate", 0, RP_OPT_TEXT, "FINDING<=LIMIT,…", NULL,
     "exit with 1 if a finding, or what is lost to a place, costs more: straggler<=2%, any<=10%, "
     "host<=5ms, host:node003<=1%, rank:7<=1%",
     0},
    {"html", 0, RP_OPT_PATH, "FILE", NULL,
     "also write a page for a browser: findings, timeline of all ranks, a step with its kernels, tables",
     0},
    {"svg", 0, RP_OPT_PATH, "FILE", NULL, "also write the timeline of all ranks as a picture", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_report = {
    .question = {.name = "report",
                 .group = "traces",
                 .summary = "where the time goes, what was lost, and what to try",
                 .details =
                     "One screen about a trace or all ranks of a run: the step time, what the "
                     "devices compute, what was lost to which cause, which ranks delay the others, "
                     "and findings ranked by what they cost.",
                 .examples = "reprise report run/\tall ranks of a run\n"
                             "reprise report --step 12 run/\tone step of it\n"
                             "reprise report --html report.html run/\tto look at in a browser\n"
                             "reprise report --gate 'straggler<=2%' run/\ta check: exit 1 where a "
                             "slow rank costs more\n"
                             "reprise report --json trace.json.gz\tfor a script\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = options,
                 .type = &rp_report_type},
    .ranks = {.part = &rp_report_part_type,
              .bulk = &rp_report_bulk,
              .rank = report_rank,
              .join = report_join},
    .write = report_write};
