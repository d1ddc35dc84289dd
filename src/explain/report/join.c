/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a run: ranks, steps, the parts of the time, and sentences for people. Parts are
 * sums over the ranks, exact: compute + transfer + waiting + copies + idle by cause = window.
 */
#include "explain/report/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PARTS (RP_GAP_CAUSES + RP_PAUSES + 6)
#define MOST_SHOWN 4 /* findings on the screen */

struct joiner {
    const struct rp_report_input *in;
    size_t n;
    struct rp_arena *arena;
    struct rp_report_root *out;
    struct rp_chain chain;
    int64_t total_ns; /* windows of all ranks */
    bool failed;
};

static const char *kept(struct joiner *j, const char *made)
{
    j->failed |= !made;
    return made ? made : "";
}

static const char *when(struct joiner *j, int64_t ns)
{
    return kept(j, rp_report_time(j->arena, ns));
}

static const char *copied(struct joiner *j, const char *s)
{
    return s ? kept(j, rp_arena_strdup(j->arena, s)) : NULL;
}

static void fill_rank(struct joiner *j, size_t r)
{
    const struct rp_report_part *p = j->in[r].part;
    const struct rp_chain_rank *c = &j->chain.ranks[r];
    bool matched = j->chain.ncollectives > 0;

    j->out->ranks[r] = (struct rp_report_rank){
        .path = copied(j, j->in[r].path),
        .rank = j->in[r].number,
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
        .idle_share = p->b.window_ns ? (double)p->b.idle_ns / (double)p->b.window_ns : 0,
        .op_share =
            p->coverage.device_ns ? (double)p->coverage.op_ns / (double)p->coverage.device_ns : 0};
    j->total_ns = rp_ns_sum(j->total_ns, p->b.window_ns);
}

static void fill_ranks(struct joiner *j)
{
    struct rp_report_root *out = j->out;
    size_t r, i, nsteps = 0;

    for (r = 0; r < j->n; r++)
        nsteps += j->in[r].part->nsteps;
    out->ranks = RP_ARENA_NEW(j->arena, struct rp_report_rank, j->n + 1);
    out->steps = RP_ARENA_NEW(j->arena, struct rp_report_step, nsteps + 1);
    j->failed |= !out->ranks || !out->steps;
    for (r = 0; r < j->n && !j->failed; r++) {
        fill_rank(j, r);
        for (i = 0; i < j->in[r].part->nsteps; i++) {
            struct rp_report_step *s = &out->steps[out->nsteps++];

            *s = j->in[r].part->steps[i];
            s->rank = j->in[r].number;
            s->name = copied(j, s->name);
        }
    }
    out->nranks = j->n;
    if (j->n > 1) {
        out->rank_rows = out->ranks;
        out->nrank_rows = out->nranks;
    }
}

static void add_part(struct joiner *j, const char *part, int64_t total_ns, const char *note)
{
    struct rp_report_share *s = &j->out->parts[j->out->nparts];

    if (total_ns == 0 || j->out->nparts == MOST_PARTS)
        return;
    *s = (struct rp_report_share){.part = part, .note = note, .total_ns = total_ns};
    s->mean_ns = total_ns / (int64_t)j->n;
    s->share = j->total_ns ? (double)total_ns / (double)j->total_ns : 0;
    j->out->nparts++;
}

/* Time without an operator by what ran instead, where there is no device. */
static void add_pauses(struct joiner *j)
{
    int64_t pause[RP_PAUSES] = {0};
    size_t r;
    int c;

    for (r = 0; r < j->n; r++)
        for (c = 0; c < RP_PAUSES; c++)
            rp_ns_add(&pause[c], j->in[r].part->pauses.ns[c]);
    for (c = 0; c < RP_PAUSES; c++)
        add_part(j, rp_pause_names[c], pause[c], rp_pause_docs[c]);
}

/* Idle time by cause, the largest first. */
static void add_idle(struct joiner *j)
{
    int64_t cause[RP_GAP_CAUSES] = {0};
    size_t r, i;
    int c, round;

    for (r = 0; r < j->n; r++) {
        const struct rp_report_part *p = j->in[r].part;

        for (i = 0; i < p->gaps.n; i++)
            rp_ns_add(&cause[p->gaps.at[i].cause],
                      rp_ns_between(p->gaps.at[i].begin_ns, p->gaps.at[i].end_ns));
    }
    for (round = 0; round < RP_GAP_CAUSES; round++) {
        int best = 0;

        for (c = 1; c < RP_GAP_CAUSES; c++)
            best = cause[c] > cause[best] ? c : best;
        if (cause[best] <= 0)
            break;
        add_part(j, kept(j, rp_arena_printf(j->arena, "idle: %s", rp_gap_cause_names[best])),
                 cause[best], rp_gap_cause_docs[best]);
        cause[best] = 0;
    }
    add_pauses(j);
}

static void fill_parts(struct joiner *j)
{
    bool device = j->in[0].part->on_device;
    int64_t compute = 0, exposed = 0, wait = 0, copies = 0;
    size_t r;

    j->out->parts = RP_ARENA_NEW(j->arena, struct rp_report_share, MOST_PARTS + 1);
    j->failed |= !j->out->parts;
    if (j->failed)
        return;
    for (r = 0; r < j->n; r++) {
        const struct rp_breakdown *b = &j->in[r].part->b;

        rp_ns_add(&compute, b->compute_ns);
        rp_ns_add(&exposed, b->exposed_comm_ns);
        rp_ns_add(&copies, rp_ns_between(rp_ns_sum(b->compute_ns, b->exposed_comm_ns), b->busy_ns));
        rp_ns_add(&wait, j->chain.ncollectives && !j->chain.beside
                             ? j->chain.ranks[r].exposed_wait_ns
                             : 0);
    }
    add_part(j, device ? "compute" : "operators", compute,
             device ? "at least one kernel runs" : "at least one operator runs");
    add_part(j, "exposed communication", rp_ns_between(wait, exposed),
             !j->chain.ncollectives ? "transfer and waiting, no compute"
             : device               ? "transfer while no kernel computes"
                                    : "transfer while no operator runs");
    add_part(j, "waiting for other ranks", wait, "in collectives, for the last rank");
    add_part(j, "copies alone", copies, "copies and memsets, nothing else");
    add_idle(j);
}

/* "8 ranks of 8, 1 step, pytorch, NVIDIA A100-SXM4-80GB" */
static void fill_run_text(struct joiner *j, int32_t world_size)
{
    const struct rp_report_part *p = j->in[0].part;
    char ranks[64], steps[48];

    if (world_size > (int64_t)j->n)
        snprintf(ranks, sizeof ranks, "%zu of %d ranks", j->n, world_size);
    else
        snprintf(ranks, sizeof ranks, "%zu rank%s", j->n, j->n == 1 ? "" : "s");
    snprintf(steps, sizeof steps, "%zu step%s", p->nsteps, p->nsteps == 1 ? "" : "s");
    j->out->run_text = kept(j, rp_arena_printf(j->arena, "%s, %s, %s, %s", ranks,
                                               p->nsteps    ? steps
                                               : p->limited ? "a part of the recording"
                                                            : "no steps found",
                                               p->framework ? p->framework : "unknown recorder",
                                               !p->on_device ? "host only"
                                               : p->device   ? p->device
                                                             : "a device"));
}

/* "18.3 ms, the median of 3 (17.9 ms to 22.1 ms)" for the steps of one rank. */
static const char *one_rank_step(struct joiner *j)
{
    const struct rp_report_part *p = j->in[0].part;
    int64_t least = INT64_MAX, most = 0;
    size_t i;

    for (i = 0; i + 1 < p->nsteps; i++) { /* the last one may be cut short */
        least = p->steps[i].dur_ns < least ? p->steps[i].dur_ns : least;
        most = p->steps[i].dur_ns > most ? p->steps[i].dur_ns : most;
    }
    if (p->nsteps < 2 || least == most)
        return when(j, j->out->step_ns);
    return kept(j, rp_arena_printf(j->arena, "%s, the median of %zu (%s to %s)",
                                   when(j, j->out->step_ns), p->nsteps, when(j, least),
                                   when(j, most)));
}

/* The median of the ranks' step times, and their range. */
static void fill_step(struct joiner *j)
{
    int64_t *v = RP_ARENA_NEW(j->arena, int64_t, j->n + 1);
    size_t r, n = 0;

    j->failed |= !v;
    j->out->step_ns = RP_ABSENT_I64;
    for (r = 0; r < j->n && v; r++)
        if (j->in[r].part->step_ns != RP_ABSENT_I64)
            v[n++] = j->in[r].part->step_ns;
    if (!n)
        return;
    qsort(v, n, sizeof *v, rp_ns_order);
    j->out->step_ns = rp_ns_sum(v[(n - 1) / 2], v[n / 2]) / 2;
    j->out->step_text =
        n == 1 || v[0] == v[n - 1]
            ? one_rank_step(j)
            : kept(j, rp_arena_printf(j->arena, "%s (ranks %s to %s)", when(j, j->out->step_ns),
                                      when(j, v[0]), when(j, v[n - 1])));
}

/* What the devices needed, and what was lost: means over the ranks. */
static void fill_lost(struct joiner *j)
{
    struct rp_report_root *out = j->out;
    int64_t compute = 0, transfer = 0, copies = 0;
    const char *moved_text = "", *copied_text = "";
    size_t i;

    for (i = 0; i < out->nparts; i++) {
        const struct rp_report_share *s = &out->parts[i];

        if (!strcmp(s->part, "compute") || !strcmp(s->part, "operators"))
            rp_ns_add(&compute, s->mean_ns);
        else if (!strcmp(s->part, "exposed communication"))
            rp_ns_add(&transfer, s->mean_ns);
        else if (!strcmp(s->part, "copies alone"))
            rp_ns_add(&copies, s->mean_ns);
    }
    out->window_ns = j->total_ns / (int64_t)j->n;
    out->needed_ns = rp_ns_sum(compute, rp_ns_sum(transfer, copies));
    out->lost_ns = rp_ns_between(out->needed_ns, out->window_ns);
    if (!j->in[0].part->on_device) {
        out->lost_text = kept(
            j, rp_arena_printf(j->arena, "of %s recorded%s, operators run in %s and none in %s",
                               when(j, out->window_ns), j->n > 1 ? " on average" : "",
                               when(j, out->needed_ns), when(j, out->lost_ns)));
        return;
    }
    if (transfer)
        moved_text = kept(j, rp_arena_printf(j->arena, "%s %s exposed transfer",
                                             copies ? "," : " and", when(j, transfer)));
    if (copies)
        copied_text = kept(j, rp_arena_printf(j->arena, " and %s copies", when(j, copies)));
    out->lost_text = kept(
        j, rp_arena_printf(
               j->arena,
               "of %s recorded%s, %s compute%s%s %s needed; %s "
               "(%.1f %%) lost",
               when(j, out->window_ns), j->n > 1 ? " on average" : "", when(j, compute), moved_text,
               copied_text, transfer || copies ? "were" : "was", when(j, out->lost_ns),
               out->window_ns ? 100.0 * (double)out->lost_ns / (double)out->window_ns : 0.0));
}

/* "84 collectives tie 8 ranks together, 628.1 ms from the first to the last; rank 0 and rank 6 came
   last 60 times and cost 302.5 of 326.4 ms" */
static void fill_pace(struct joiner *j)
{
    size_t r, first = 0, second = 0;
    int64_t last, margin, all = 0;

    j->out->span_ns = j->chain.ncollectives ? j->chain.span_ns : RP_ABSENT_I64;
    if (!j->chain.ncollectives || j->n < 2)
        return;
    for (r = 0; r < j->n; r++) {
        rp_ns_add(&all, j->chain.ranks[r].margin_ns);
        if (j->chain.ranks[r].margin_ns > j->chain.ranks[first].margin_ns)
            first = r;
    }
    second = first ? 0 : 1;
    for (r = 0; r < j->n; r++)
        if (r != first && j->chain.ranks[r].margin_ns > j->chain.ranks[second].margin_ns)
            second = r;
    last = j->chain.ranks[first].last_count;
    margin = j->chain.ranks[first].margin_ns;
    if (j->chain.ranks[second].margin_ns > margin / 4) {
        last += j->chain.ranks[second].last_count;
        rp_ns_add(&margin, j->chain.ranks[second].margin_ns);
    } else {
        second = first;
    }
    j->out->pace_text = kept(
        j, rp_arena_printf(
               j->arena,
               "%zu collectives tie the ranks together, %s from the first to the last; rank%s %d%s "
               "came last %lld times, %s%s%s after the next",
               j->chain.ncollectives, when(j, j->chain.span_ns), second == first ? "" : "s",
               j->in[first < second ? first : second].number,
               second == first
                   ? ""
                   : kept(j, rp_arena_printf(j->arena, " and %d",
                                             j->in[first < second ? second : first].number)),
               (long long)last, when(j, margin), margin < all ? " of " : "",
               margin < all ? when(j, all) : ""));
}

static void note(struct joiner *j, const char *text)
{
    if (text && *text && j->out->nnotes < 8)
        j->out->notes[j->out->nnotes++] = text;
}

/* How much of the answer rests on what, and what was missing. */
static void note_coverage(struct joiner *j)
{
    const char *framework = j->in[0].part->framework;
    bool torch = framework && !strcmp(framework, "pytorch");
    struct rp_coverage sum = {0};
    size_t r;

    for (r = 0; r < j->n; r++) {
        rp_ns_add(&sum.device_ns, j->in[r].part->coverage.device_ns);
        rp_ns_add(&sum.op_ns, j->in[r].part->coverage.op_ns);
        rp_ns_add(&sum.launched_ns, j->in[r].part->coverage.launched_ns);
        rp_ns_add(&sum.module_ns, j->in[r].part->coverage.module_ns);
    }
    if (!sum.device_ns)
        return;
    note(j,
         kept(j, rp_arena_printf(
                     j->arena, "%.1f %% of the device time has its launch, %.1f %% its operator%s",
                     100.0 * (double)sum.launched_ns / (double)sum.device_ns,
                     100.0 * (double)sum.op_ns / (double)sum.device_ns,
                     sum.module_ns || !torch
                         ? ""
                         : "; no modules: record with with_stack or with_modules")));
}

/* Files that are not whole, and what the recorder dropped: all numbers are then of the rest. */
static void note_losses(struct joiner *j)
{
    int64_t cut = 0, lost = 0;
    size_t r, first = 0;

    for (r = j->n; r > 0; r--) {
        const struct rp_health *h = &j->in[r - 1].part->health;
        bool damaged = h->truncated || h->salvaged || h->skipped_bytes;

        cut += damaged;
        first = damaged ? r - 1 : first;
        rp_ns_add(&lost, h->lost_events);
    }
    if (cut)
        note(j, kept(j, rp_arena_printf(j->arena,
                                        "the file of rank %d%s ends early or is damaged: this is "
                                        "about what could be read; see 'reprise doctor'",
                                        j->in[first].number, cut > 1 ? " and others" : "")));
    if (lost)
        note(j, kept(j, rp_arena_printf(j->arena, "the recorder dropped %lld events",
                                        (long long)lost)));
}

static void note_trouble(struct joiner *j)
{
    int64_t overhead = 0;
    size_t r;

    note_losses(j);
    for (r = 0; r < j->n; r++)
        rp_ns_add(&overhead, j->in[r].part->sums.overhead_ns);
    if (overhead && j->total_ns && overhead > j->total_ns / 100)
        note(j,
             kept(j, rp_arena_printf(j->arena, "the profiler itself took %s", when(j, overhead))));
}

/* Of the first rank whose operators name their inputs. */
static void fill_latency(struct joiner *j)
{
    struct rp_report_latency *latency = &j->out->latency;
    size_t r;

    for (r = 0; r < j->n && !latency->ops; r++)
        *latency = j->in[r].part->latency;
    if (!latency->ops)
        return;
    latency->slowest = copied(j, latency->slowest);
    note(j, kept(j, rp_arena_printf(j->arena,
                                    "operators start %s (median) and %s (p90) after their last "
                                    "input; '%.60s' %s after it",
                                    when(j, latency->p50_ns), when(j, latency->p90_ns),
                                    latency->slowest, when(j, latency->max_ns))));
}

static void note_host(struct joiner *j)
{
    const struct rp_report_part *p = j->in[0].part;

    if (p->on_device || !p->b.busy_ns)
        return;
    note(j,
         kept(j,
              rp_arena_printf(
                  j->arena, "no device work was recorded: %lld operators on the host, %.2f at once",
                  (long long)p->sums.host_ops, (double)p->sums.host_op_ns / (double)p->b.busy_ns)));
}

/* A rank that is late because of its host counts as a straggler and with its host. */
static void note_overlap(struct joiner *j)
{
    const struct rp_report_root *out = j->out;
    bool overlap = false;
    double shares = 0;
    size_t i;

    for (i = 0; i < out->nfindings; i++) {
        shares += out->findings[i].share;
        overlap |= out->nfindings > 1 && !strcmp(out->findings[i].id, "straggler");
    }
    if (overlap || shares > 1)
        note(j, "the costs of the findings overlap, do not add them up: each is what the run would "
                "save if that one were gone");
}

/* The findings that cost most, as blocks of lines. */
static void fill_look(struct joiner *j)
{
    struct rp_report_root *out = j->out;
    size_t i;

    out->look = RP_ARENA_NEW(j->arena, struct rp_report_look, MOST_SHOWN + 1);
    j->failed |= !out->look;
    for (i = 0; i < out->nfindings && i < MOST_SHOWN && !j->failed; i++) {
        const struct rp_report_finding *f = &out->findings[i];

        out->look[out->nlook++] = (struct rp_report_look){
            .heading = kept(j, rp_arena_printf(j->arena, "%zu. %s: %s (%.1f %%)", i + 1, f->id,
                                               when(j, f->lost_ns), 100 * f->share)),
            .why = f->title,
            .seen = f->nevidence ? f->evidence[0] : NULL,
            .hint = f->hint};
    }
    note_overlap(j);
    if (!out->nfindings)
        note(j, "no finding costs more than a hundredth of the time");
    else if (out->nfindings > MOST_SHOWN)
        note(j, kept(j, rp_arena_printf(j->arena, "%zu of %zu findings are shown: --json has all",
                                        (size_t)MOST_SHOWN, out->nfindings)));
}

/* What the timeline seems to show and does not, of the rank at the end of the chain. */
static void fill_pitfalls(struct joiner *j)
{
    const struct rp_report_part *p = j->in[j->chain.lead].part;
    const struct rp_chain_rank *c = &j->chain.ranks[j->chain.lead];
    int64_t beside = rp_ns_between(p->b.exposed_comm_ns, p->b.comm_ns);
    int64_t waiting = rp_ns_between(c->exposed_wait_ns, c->wait_ns);

    j->out->pitfalls = RP_ARENA_NEW(j->arena, const char *, 5);
    j->failed |= !j->out->pitfalls;
    if (j->failed)
        return;
    if (p->unequal)
        j->out->pitfalls[j->out->npitfalls++] = copied(j, p->unequal);
    if (p->untypical)
        j->out->pitfalls[j->out->npitfalls++] = copied(j, p->untypical);
    if (p->streams)
        j->out->pitfalls[j->out->npitfalls++] = copied(j, p->streams);
    if (j->chain.ncollectives && !j->chain.beside && beside > p->b.window_ns / 100 &&
        waiting > beside / 2)
        j->out->pitfalls[j->out->npitfalls++] = kept(
            j, rp_arena_printf(j->arena,
                               "rank %d: %s of the %s of communication beside compute is "
                               "waiting for other ranks, not transfer",
                               j->in[j->chain.lead].number, when(j, waiting), when(j, beside)));
}

enum rp_code rp_report_join(const struct rp_report_input *ranks, size_t n, int32_t world_size,
                            struct rp_arena *arena, struct rp_report_root *out, struct rp_err *err)
{
    struct joiner j = {.in = ranks, .n = n, .arena = arena, .out = out};

    *out = (struct rp_report_root){0};
    out->notes = RP_ARENA_NEW(arena, const char *, 8);
    if (!out->notes)
        return rp_err_nomem(err, "writing the report");
    RP_TRY(rp_chain_make(ranks, n, arena, &j.chain, err));
    fill_ranks(&j);
    if (!j.failed)
        fill_parts(&j);
    if (j.failed)
        return rp_err_nomem(err, "writing the report");
    fill_run_text(&j, world_size);
    fill_step(&j);
    fill_lost(&j);
    fill_pace(&j);
    RP_TRY(rp_report_count_stalls(ranks, n, arena, out, err));
    RP_TRY(rp_report_find(ranks, n, &j.chain, arena, world_size, out, err));
    fill_look(&j);
    fill_pitfalls(&j);
    note_coverage(&j);
    note_trouble(&j);
    note_host(&j);
    fill_latency(&j);
    return j.failed ? rp_err_nomem(err, "writing the report") : RP_OK;
}
