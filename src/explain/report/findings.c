/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings. Those made of idle time are a table by the cause of the gaps; their cost is the idle
 * time on the chain that sets the pace. Others have a function each. Names, titles and advice are
 * in advice.h. The cost of a finding is the time by which the recording would be shorter without
 * it; costs of different findings may overlap (a rank that is late because of its host is both a
 * straggler and a host stall).
 */
#include "explain/report/report.h"

#include "base/order.h"
#include "explain/comm/shared.h"
#include "explain/report/advice.h"
#include "explain/short_name.h"
#include "result/print_units.h"
#include "sim/opportunities.h"

#include <stdlib.h>
#include <string.h>

#define MOST_FINDINGS 24
#define MOST_EVIDENCE 4
#define LEAST_SHARE   0.01 /* of the span: less is not worth a line */
#define ATYPICAL      1.2  /* times the median step */

/* Findings made of idle time, by the cause of the gaps. */
static const struct {
    uint8_t cause, found;
} by_cause[] = {
    {RP_GAP_NOT_LAUNCHED, RP_FOUND_LAUNCH_BOUND},   {RP_GAP_HOST_WORK, RP_FOUND_HOST_WORK},
    {RP_GAP_START_UP, RP_FOUND_START_UP},           {RP_GAP_SYNC_DRAIN, RP_FOUND_SYNC_POINTS},
    {RP_GAP_DATA_LOADER, RP_FOUND_DATA_LOADER},     {RP_GAP_HOST_STALL, RP_FOUND_HOST_STALL},
    {RP_GAP_HOST_UNRECORDED, RP_FOUND_HOST_SILENT}, {RP_GAP_ALLOCATION, RP_FOUND_FRAGMENTATION},
    {RP_GAP_PROFILER, RP_FOUND_PROFILER},           {RP_GAP_COPY, RP_FOUND_COPIES},
    {RP_GAP_EVENT_WAIT, RP_FOUND_DEPENDENCIES},     {RP_GAP_OTHER_RANK, RP_FOUND_HOST_COLLECTIVES},
    {RP_GAP_HOST_WAIT, RP_FOUND_WAIT_IDLE},         {RP_GAP_DEVICE_WAIT, RP_FOUND_DEVICE_WAIT},
    {RP_GAP_UNKNOWN, RP_FOUND_UNEXPLAINED},
};

struct findings {
    const struct rp_ranks *ranks;
    size_t n;
    const struct rp_chain *chain;
    struct rp_arena *arena;
    struct rp_report_root *out;
    int64_t span_ns;                    /* of the rank that ends last */
    int64_t atypical_ns[RP_GAP_CAUSES]; /* idle that belongs to an untypical step */
    int32_t absent;                     /* ranks of the run that were not given */
};

static const struct rp_report_part *part_of(const struct findings *f, size_t rank)
{
    return rp_report_part_of(f->ranks, rank);
}

static int number_of(const struct findings *f, size_t rank)
{
    return f->ranks->parts[rank].number;
}

/* The rank at the end of the chain. */
static const struct rp_report_part *lead_part(const struct findings *f)
{
    return part_of(f, f->chain->lead);
}

static int lead_number(const struct findings *f)
{
    return number_of(f, f->chain->lead);
}

static const char *duration(const struct findings *f, int64_t ns)
{
    return rp_units_time(f->arena, ns);
}

/* The texts of a kind of finding, for this kind of program. */
static void describe(const struct findings *f, struct rp_report_finding *finding,
                     enum rp_found found)
{
    rp_report_advise(f->arena, (uint8_t)found, &lead_part(f)->workload, finding);
}

/* Whether what simulate predicts means something: it is about steps that will be repeated, not
   about a start-up. */
static bool is_predictable(const struct findings *f)
{
    return lead_part(f)->recorded_steps && !rp_gaps_start_up(f->chain->cause_ns);
}

/* Adds a finding where it costs enough; NULL otherwise. */
static struct rp_report_finding *add_finding(struct findings *f, enum rp_found found,
                                             int64_t lost_ns)
{
    struct rp_report_finding *finding = &f->out->findings[f->out->nfindings];

    if (lost_ns <= 0 || (double)lost_ns < LEAST_SHARE * (double)f->span_ns ||
        f->out->nfindings == MOST_FINDINGS)
        return NULL;
    *finding = (struct rp_report_finding){.lost_ns = lost_ns,
                                          .where = {.rank = lead_number(f), .step = RP_ABSENT_I64}};
    describe(f, finding, found);
    for (size_t i = 0; i < finding->ntries && !f->out->predictable; i++)
        finding->tries[i].what_if = NULL;
    finding->share = (double)lost_ns / (double)f->span_ns;
    finding->evidence = RP_ARENA_NEW(f->arena, const char *, MOST_EVIDENCE);
    if (!finding->evidence)
        return NULL;
    f->out->nfindings++;
    return finding;
}

/* Adds a finding that makes numbers doubtful and costs nothing itself. */
static struct rp_report_finding *add_doubt(struct findings *f, enum rp_found found)
{
    struct rp_report_finding *finding = add_finding(f, found, INT64_MAX);

    if (finding) {
        finding->lost_ns = 0;
        finding->share = 0;
    }
    return finding;
}

static void add_evidence(struct rp_report_finding *finding, const char *evidence)
{
    if (finding->nevidence < MOST_EVIDENCE)
        finding->evidence[finding->nevidence++] = evidence;
}

/* A rank's idle time of a cause, all classes together; the row with most of it is returned. */
static const struct rp_idle_cause *cause_total(const struct rp_report_part *p, uint8_t cause,
                                               int64_t *total, int64_t *count)
{
    const struct rp_idle_cause *best = NULL;

    *total = *count = 0;
    for (size_t i = 0; i < p->nidle_causes; i++) {
        const struct rp_idle_cause *c = &p->idle_causes[i];

        if (strcmp(c->cause, rp_gap_cause_names[cause]) != 0)
            continue;
        rp_ns_add(total, c->total_ns);
        *count += c->count;
        if (!best || c->total_ns > best->total_ns)
            best = c;
    }
    return best;
}

/* The ranks with most of a cause, up to three. */
static void add_rank_evidence(struct findings *f, struct rp_report_finding *finding, uint8_t cause)
{
    int64_t below = INT64_MAX;

    for (int round = 0; round < 3; round++) {
        const struct rp_idle_cause *c = NULL;
        int64_t total, count, most = 0, gaps = 0;
        size_t r, best = SIZE_MAX;

        for (r = 0; r < f->n; r++) {
            const struct rp_idle_cause *row = cause_total(part_of(f, r), cause, &total, &count);

            if (row && total > most && total < below) {
                most = total;
                gaps = count;
                best = r;
                c = row;
            }
        }
        if (best == SIZE_MAX || (round && most < finding->lost_ns / 4))
            return;
        below = most;
        add_evidence(finding, rp_arena_textf(
                                  f->arena, "rank %d: %s idle in %s, the longest %s; mainly %s",
                                  number_of(f, best), duration(f, most),
                                  rp_units_count(f->arena, gaps, "gap"), duration(f, c->longest_ns),
                                  c->evidence ? c->evidence : "unknown"));
    }
}

/* How much of the time in collectives on the hosts is waiting for the last rank. */
static void add_wait_evidence(struct findings *f, struct rp_report_finding *finding)
{
    const struct rp_chain_rank *c = &f->chain->ranks[f->chain->lead];

    if (f->chain->ncollectives && f->chain->beside)
        add_evidence(finding,
                     rp_arena_textf(
                         f->arena,
                         "rank %d: of its time in %s on the hosts, %s is waiting for the last rank "
                         "and %s is transfer",
                         lead_number(f),
                         rp_units_count(f->arena, (int64_t)f->chain->ncollectives, "collective"),
                         duration(f, c->wait_ns), duration(f, c->transfer_ns)));
}

/* "rank 0: 5 copies and memsets; for 30.0 ms nothing else runs, for 1.00 ms …" */
static void add_copy_evidence(struct findings *f, struct rp_report_finding *finding)
{
    const struct rp_report_part *p = lead_part(f);
    const struct rp_breakdown *b = &p->whole;
    int64_t waits, count;

    cause_total(p, RP_GAP_COPY, &waits, &count);
    if (!f->chain->copies_ns || !p->sums.copy_name)
        return;
    add_evidence(
        finding,
        rp_arena_textf(
            f->arena, "rank %d: %lld %s; for %s nothing else runs%s; mainly %.80s (%s)",
            lead_number(f), (long long)p->sums.copies,
            p->sums.copies == 1 ? "copy or memset" : "copies and memsets",
            duration(f, rp_ns_between(rp_ns_sum(b->compute_ns, b->exposed_comm_ns), b->busy_ns)),
            waits
                ? rp_arena_textf(f->arena, ", for %s the device waits for one", duration(f, waits))
                : "",
            p->sums.copy_name, duration(f, p->sums.copy_name_ns)));
}

/* A finding by its cause is of a more special kind where the recording shows more. */
static enum rp_found kind_of(const struct findings *f, uint8_t found)
{
    int64_t total, count;

    if (found == RP_FOUND_HOST_WORK) {
        const struct rp_idle_cause *row =
            cause_total(lead_part(f), RP_GAP_HOST_WORK, &total, &count);

        return rp_found_host_work(row ? row->evidence : NULL);
    }
    if (found == RP_FOUND_COPIES)
        return rp_found_copies(lead_part(f)->sums.copy_name);
    if (found == RP_FOUND_FRAGMENTATION && lead_part(f)->workload.uncached)
        return RP_FOUND_UNCACHED;
    return (enum rp_found)found;
}

/* What launched work may have waited for, where the recording has a sign of it. */
static void add_device_wait_evidence(struct findings *f, struct rp_report_finding *finding)
{
    const struct rp_report_sums *s = &lead_part(f)->sums;

    if (s->first_wait_ns > finding->lost_ns / 2)
        add_evidence(finding,
                     rp_arena_textf(f->arena,
                                    "rank %d: %s before the first recorded work of a stream, which "
                                    "may still have run what was launched before recording began",
                                    lead_number(f), duration(f, s->first_wait_ns)));
    if (s->graph_wait_ns > finding->lost_ns / 2)
        add_evidence(finding, rp_arena_textf(f->arena,
                                             "rank %d: %s between the kernels of one graph: some "
                                             "of its nodes were not recorded",
                                             lead_number(f), duration(f, s->graph_wait_ns)));
}

static void find_idle(struct findings *f)
{
    for (size_t i = 0; i < sizeof by_cause / sizeof by_cause[0]; i++) {
        uint8_t cause = by_cause[i].cause;
        int64_t lost = rp_ns_between(f->atypical_ns[cause], f->chain->cause_ns[cause]);
        struct rp_report_finding *finding;

        if ((cause == RP_GAP_UNKNOWN || cause == RP_GAP_COPY) &&
            rp_report_has_only_transfers(lead_part(f)))
            continue;
        if (cause == RP_GAP_COPY)
            rp_ns_add(&lost, f->chain->copies_ns);
        finding = add_finding(f, kind_of(f, by_cause[i].found), lost);
        if (finding)
            finding->where.causes = 1u << cause;
        if (finding && cause == RP_GAP_COPY)
            add_copy_evidence(f, finding);
        if (finding && cause == RP_GAP_DEVICE_WAIT)
            add_device_wait_evidence(f, finding);
        if (finding)
            add_rank_evidence(f, finding, cause);
        if (finding && cause == RP_GAP_OTHER_RANK)
            add_wait_evidence(f, finding);
    }
}

static void find_exposed_comm(struct findings *f)
{
    const struct rp_report_part *lead = lead_part(f);
    bool matched = f->chain->ncollectives > 0 && !f->chain->beside;
    struct rp_report_finding *finding;

    if (rp_report_has_only_transfers(lead))
        return;
    finding = add_finding(f,
                          !lead->on_device ? RP_FOUND_EXPOSED_HOST
                          : f->absent > 0  ? RP_FOUND_EXPOSED_PARTLY
                                           : RP_FOUND_EXPOSED_COMM,
                          f->chain->transfer_ns);

    if (!finding)
        return;
    finding->where.exposed = true;
    if (f->absent > 0)
        add_evidence(
            finding,
            rp_arena_textf(f->arena,
                           "%d rank%s of the run %s not given: waiting for %s looks like transfer",
                           (int)f->absent, f->absent == 1 ? "" : "s",
                           f->absent == 1 ? "was" : "were", f->absent == 1 ? "it" : "them"));
    add_evidence(
        finding,
        matched
            ? rp_arena_textf(
                  f->arena, "%s of %s, transfer only: waiting for late ranks is not included",
                  rp_units_count(f->arena, (int64_t)f->chain->ncollectives, "collective"),
                  rp_units_count(f->arena, (int64_t)f->n, "rank"))
            : rp_arena_textf(
                  f->arena,
                  "rank %d: %s of %s communication is exposed; it may include waiting for other ranks",
                  lead_number(f), duration(f, lead->whole.exposed_comm_ns),
                  duration(f, lead->whole.comm_ns)));
    if (f->chain->exposed_ns[RP_PLACE_BETWEEN] > 0)
        add_evidence(finding,
                     rp_arena_textf(f->arena,
                                    "%s of the transfer between nodes is exposed and %s of "
                                    "that within nodes, means of the ranks",
                                    duration(f, f->chain->exposed_ns[RP_PLACE_BETWEEN]),
                                    duration(f, f->chain->exposed_ns[RP_PLACE_NODE])));
}

/* Collectives that take several times what their links need. */
static void find_slow_links(struct findings *f)
{
    struct rp_report_finding *finding = add_finding(f, RP_FOUND_SLOW_LINK, f->chain->slow_ns);

    if (!finding)
        return;
    finding->at_most = true; /* it is exposed communication, too */
    for (int i = 0; i < RP_PLACES; i++)
        if (f->chain->slow_link[i])
            add_evidence(finding, f->chain->slow_link[i]);
}

/* The rank that delays the others most. */
static size_t latest_rank(const struct findings *f)
{
    size_t r, best = 0;

    for (r = 1; r < f->n; r++)
        if (f->chain->ranks[r].margin_ns > f->chain->ranks[best].margin_ns)
            best = r;
    return best;
}

/* On a host nobody knows whether the code between calls computes. */
static const char *late_text(struct findings *f, const struct rp_late *late)
{
    return lead_part(f)->by_ranges && late->cause && !strcmp(late->cause, "compute") &&
                   !late->evidence
               ? "; before that its own code took longer than that of the others"
               : rp_report_late_text(f->arena, late->cause, late->evidence);
}

/* Where several ranks are late that have a host or the number of their device in common. */
static void add_shared_fault(struct findings *f, struct rp_report_finding *finding)
{
    struct rp_late_rank *ranks = RP_ARENA_NEW(f->arena, struct rp_late_rank, f->n + 1);
    const char *text;

    for (size_t r = 0; ranks && r < f->n; r++) {
        const struct rp_report_part *part = part_of(f, r);

        ranks[r] = (struct rp_late_rank){part->collectives.host, RP_ABSENT_I64,
                                         f->chain->ranks[r].margin_ns};
        for (size_t d = 0; d < part->ndevices; d++)
            if (part->devices[d].is_main)
                ranks[r].device = part->devices[d].device;
    }
    text = ranks ? rp_late_shared(ranks, f->n, f->arena) : NULL;
    if (text)
        add_evidence(finding, text);
}

/* "rank 0 arrived last 32 of 84 times and delayed the others by 167.4 ms; before that it …" */
static void find_straggler(struct findings *f)
{
    struct rp_late late = rp_late_main(&f->chain->ranks[latest_rank(f)].lates);
    struct rp_report_finding *finding =
        add_finding(f, rp_found_straggler(late.cause, late.evidence),
                    f->chain->ncollectives ? f->chain->margin_ns : 0);
    int64_t below = INT64_MAX;

    if (finding) {
        finding->at_most = finding->where.late = true;
        add_shared_fault(f, finding);
    }
    for (int round = 0; finding && round < 3; round++) {
        size_t r, best = SIZE_MAX;

        for (r = 0; r < f->n; r++)
            if (f->chain->ranks[r].margin_ns < below &&
                (best == SIZE_MAX ||
                 f->chain->ranks[r].margin_ns > f->chain->ranks[best].margin_ns))
                best = r;
        if (best == SIZE_MAX || f->chain->ranks[best].margin_ns < f->chain->margin_ns / 20)
            return;
        below = f->chain->ranks[best].margin_ns;
        late = rp_late_main(&f->chain->ranks[best].lates);
        add_evidence(
            finding,
            rp_arena_textf(f->arena,
                           "rank %d arrived last %lld of %zu times and delayed the others by %s%s",
                           number_of(f, best), (long long)f->chain->ranks[best].last_count,
                           f->chain->ncollectives, duration(f, below), late_text(f, &late)));
    }
}

static int64_t median_of(int64_t *v, size_t n)
{
    rp_ns_sort(v, n);
    return n ? rp_ns_median(v, n) : 0;
}

/* The stage that computes longest, and a median one. */
static void find_slow_stage(const struct findings *f, size_t *slowest, int64_t *median_ns)
{
    int64_t *all = RP_ARENA_NEW(f->arena, int64_t, f->n + 1);
    size_t r, n = 0;

    *slowest = SIZE_MAX;
    for (r = 0; all && r < f->n; r++) {
        if (f->chain->stages[r].stage == RP_NONE)
            continue;
        all[n++] = part_of(f, r)->whole.compute_ns;
        if (*slowest == SIZE_MAX || all[n - 1] > part_of(f, *slowest)->whole.compute_ns)
            *slowest = r;
    }
    *median_ns = n ? median_of(all, n) : 0;
}

/* "a stage waits 7.21 ms on average; stage 2 (rank 2) computes 15.5 ms, the median stage 11.2 ms"
 */
static void find_bubbles(struct findings *f)
{
    struct rp_report_finding *finding =
        add_finding(f, RP_FOUND_BUBBLES, f->chain->stages ? f->chain->bubble_ns : 0);
    int64_t median, depth = 0;
    size_t slowest, r;

    if (!finding)
        return;
    for (r = 0; r < f->n; r++)
        if (f->chain->stages[r].stage != RP_NONE && (int64_t)f->chain->stages[r].stage >= depth)
            depth = (int64_t)f->chain->stages[r].stage + 1;
    find_slow_stage(f, &slowest, &median);
    add_evidence(
        finding,
        rp_arena_textf(f->arena,
                       "%s; a stage waits %s for others, on average; stage %u (rank %d) "
                       "computes %s, the median stage %s",
                       rp_units_count(f->arena, depth, "stage"), duration(f, f->chain->bubble_ns),
                       f->chain->stages[slowest].stage, number_of(f, slowest),
                       duration(f, part_of(f, slowest)->whole.compute_ns), duration(f, median)));
}

/* How long a step would have taken without work that was launched before it. */
static int64_t own_length(const struct rp_report_step *s)
{
    return rp_ns_between(s->earlier_ns, s->b.window_ns);
}

/* The part of a step that does not depend on the host and on other ranks. */
static int64_t work_time(const struct rp_report_step *s)
{
    return rp_ns_between(rp_ns_sum(s->b.idle_ns, s->b.exposed_comm_ns), own_length(s));
}

/* The median of one of their numbers over the steps that were recorded with detail. */
static int64_t usual_of(const struct rp_report_part *p, size_t offset, int64_t *v)
{
    size_t i, n = 0;

    for (i = 0; i < p->nsteps; i++)
        if (!p->steps[i].no_detail)
            memcpy(&v[n++], (const char *)&p->steps[i] + offset, sizeof v[0]);
    return median_of(v, n);
}

/* The same of a number that is computed. */
static int64_t usual_by(const struct rp_report_part *p,
                        int64_t (*number)(const struct rp_report_step *), int64_t *v)
{
    size_t i, n = 0;

    for (i = 0; i < p->nsteps; i++)
        if (!p->steps[i].no_detail)
            v[n++] = number(&p->steps[i]);
    return median_of(v, n);
}

/* What a step takes more than is usual, and how much of that is explained. */
struct excess {
    int64_t left_ns, work_ns, idle_ns;
};

static int64_t take_excess(struct excess *e, int64_t has_ns, int64_t usual_ns)
{
    int64_t more = rp_ns_between(usual_ns, has_ns);

    more = more < e->left_ns ? more : e->left_ns;
    e->left_ns = rp_ns_between(more, e->left_ns);
    return more;
}

/* Idle time of a cause, where the step has more than twice the usual. */
static void take_idle(struct findings *f, struct excess *e, uint8_t cause, int64_t has_ns,
                      int64_t usual_ns)
{
    int64_t more = has_ns / 2 > usual_ns ? take_excess(e, has_ns, usual_ns) : 0;

    rp_ns_add(&e->idle_ns, more);
    rp_ns_add(&f->atypical_ns[cause], more);
}

/* What is usual: medians over the steps. */
struct usual_step {
    int64_t step_ns, work_ns, late_ns, host_ns, drain_ns;
};

/* Of a step that is longer than the others: its excess of work, and of idle time that has several
   times the usual. */
static struct excess step_excess(struct findings *f, const struct rp_report_step *s,
                                 const struct usual_step *usual)
{
    struct excess e = {0};

    if ((double)own_length(s) <= ATYPICAL * (double)usual->step_ns)
        return e;
    e.left_ns = rp_ns_between(usual->step_ns, own_length(s));
    if ((double)work_time(s) > ATYPICAL * (double)usual->work_ns)
        e.work_ns = take_excess(&e, work_time(s), usual->work_ns);
    take_idle(f, &e, RP_GAP_NOT_LAUNCHED, s->late_ns, usual->late_ns);
    take_idle(f, &e, RP_GAP_HOST_WORK, s->work_ns, usual->host_ns);
    take_idle(f, &e, RP_GAP_SYNC_DRAIN, s->drain_ns, usual->drain_ns);
    return e;
}

static void add_atypical(struct findings *f, const struct excess *sum, size_t worst, size_t typical,
                         int64_t usual)
{
    const struct rp_report_part *p = lead_part(f);
    struct rp_report_finding *finding =
        add_finding(f, RP_FOUND_ATYPICAL_STEP, rp_ns_sum(sum->work_ns, sum->idle_ns));
    size_t n = 0;

    if (!finding || worst == SIZE_MAX) {
        memset(f->atypical_ns, 0, sizeof f->atypical_ns);
        return;
    }
    finding->compute_ns = sum->work_ns;
    finding->where.step = p->steps[worst].number;
    for (size_t i = 0; i < p->nsteps; i++)
        n += !p->steps[i].no_detail;
    add_evidence(finding,
                 rp_arena_textf(f->arena, "%s took %s, the median %s %s", p->steps[worst].name,
                                duration(f, own_length(&p->steps[worst])),
                                n < p->nsteps ? rp_arena_textf(f->arena, "of %zu", n) : "step",
                                duration(f, usual)));
    add_evidence(finding,
                 rp_arena_textf(f->arena, "%s is typical: --step %lld", p->steps[typical].name,
                                (long long)p->steps[typical].number));
}

/* Steps that are longer than the others for reasons of their own: warm-up, compilation, a
   checkpoint. */
static void find_atypical(struct findings *f)
{
    const struct rp_report_part *p = lead_part(f);
    size_t i, n = p->nsteps, worst = SIZE_MAX, typical = 0;
    int64_t *v = RP_ARENA_NEW(f->arena, int64_t, n + 1), most = 0, nearest = INT64_MAX;
    struct excess sum = {0};
    struct usual_step usual;

    if (n < 3 || !v || !rp_report_steps_alike(p->steps, n))
        return;
    usual.work_ns = usual_by(p, work_time, v);
    usual.late_ns = usual_of(p, offsetof(struct rp_report_step, late_ns), v);
    usual.host_ns = usual_of(p, offsetof(struct rp_report_step, work_ns), v);
    usual.drain_ns = usual_of(p, offsetof(struct rp_report_step, drain_ns), v);
    usual.step_ns = usual_by(p, own_length, v);
    if (usual.step_ns <= 0) /* the host marks steps of which most have no time of their own */
        return;
    for (i = 0; i < n; i++) {
        const struct rp_report_step *s = &p->steps[i];
        struct excess e = {0};

        if (!s->warm_up && !s->no_detail)
            e = step_excess(f, s, &usual);
        if (rp_ns_sum(e.work_ns, e.idle_ns) > most) {
            most = rp_ns_sum(e.work_ns, e.idle_ns);
            worst = i;
        }
        rp_ns_add(&sum.work_ns, e.work_ns);
        rp_ns_add(&sum.idle_ns, e.idle_ns);
        if (!s->no_detail && rp_ns_apart(own_length(s), usual.step_ns) <= nearest) {
            nearest = rp_ns_apart(own_length(s), usual.step_ns);
            typical = i;
        }
    }
    add_atypical(f, &sum, worst, typical, usual.step_ns);
}

#define LATENCY_SHARE 0.1 /* of the span: what the way of launches to the device may cost */

/* Gaps between kernels although they were launched in time. Those before tiny kernels are a part of
   it, so there is one finding for both: about tiny kernels where they have most of it. */
static void find_tiny(struct findings *f)
{
    const struct rp_report_sums *s = &lead_part(f)->sums;
    int64_t latency = f->chain->cause_ns[RP_GAP_LAUNCH_LATENCY];
    bool most =
        (double)latency >= LATENCY_SHARE * (double)f->span_ns && latency / 5 * 4 > s->tiny_gap_ns;
    struct rp_report_finding *finding = add_finding(
        f, most ? RP_FOUND_LAUNCH_GAPS : RP_FOUND_TINY_KERNELS, most ? latency : s->tiny_gap_ns);

    if (finding)
        finding->where.causes = 1u << RP_GAP_LAUNCH_LATENCY;
    if (finding && most)
        add_rank_evidence(f, finding, RP_GAP_LAUNCH_LATENCY);
    if (finding)
        add_evidence(finding,
                     rp_arena_textf(f->arena, "rank %d: %lld of %lld kernels take less than 10 µs",
                                    lead_number(f), (long long)s->tiny_kernels,
                                    (long long)s->kernels));
}

/* Shares above which it is reported: of the span, the time that kernels with too few blocks or
   operators far below the peak may lose; of the launches, those that are later than their work. */
#define THIN_SHARE   0.05
#define PLACED_SHARE 0.03
#define MOST_EARLY   0.01

static void find_thin(struct findings *f)
{
    const struct rp_report_device *d = &lead_part(f)->wrong;
    struct rp_report_finding *finding = NULL;
    char name[120];

    if ((double)d->thin_lost_ns >= THIN_SHARE * (double)f->span_ns && d->thin_name)
        finding = add_finding(f, RP_FOUND_LOW_OCCUPANCY, d->thin_lost_ns);
    if (!finding)
        return;
    finding->compute_ns = finding->lost_ns;
    finding->at_most = true;
    finding->where.names[0] = d->thin_name;
    rp_short_name(d->thin_name, name, sizeof name);
    add_evidence(finding,
                 rp_arena_textf(f->arena,
                                "rank %d: %lld kernel%s fewer blocks than the device has "
                                "multiprocessors; %s, of which at most %s can be saved",
                                lead_number(f), (long long)d->thin_count,
                                d->thin_count == 1 ? " has" : "s have",
                                rp_arena_textf(f->arena, "%s %s",
                                               d->thin_count == 1 ? "it takes" : "they take",
                                               duration(f, d->thin_ns)),
                                duration(f, d->thin_lost_ns)));
    add_evidence(finding, rp_arena_textf(f->arena, "mainly %s (%s)", name,
                                         duration(f, d->thin_name_lost_ns)));
}

/* "bmm [[96, 3137, 64], [96, 64, 3137]] runs at 63.7 TFLOP/s of 989 TFLOP/s: N = 3137 is odd" */
static const char *placed_text(const struct findings *f, const struct rp_report_placed *p)
{
    enum rp_unit unit = p->by_memory ? RP_UNIT_BPS : RP_UNIT_FLOPS;

    const char *flops = p->flops_per_s > 0
                            ? rp_arena_textf(f->arena, " (%s)",
                                             rp_units_text(f->arena, p->flops_per_s, RP_UNIT_FLOPS))
                            : "";

    return rp_arena_textf(f->arena, "rank %d: %s runs at %s of %s%s%s%s; %s in %s of %s",
                          lead_number(f), p->op, rp_units_text(f->arena, p->rate, unit),
                          rp_units_text(f->arena, p->peak, unit), flops, p->why ? ": " : "",
                          p->why ? p->why : "", duration(f, p->device_ns),
                          rp_units_count(f->arena, p->calls, "call"), p->kernel);
}

static void find_placed(struct findings *f)
{
    static const uint8_t kinds[] = {[RP_PLACED_OTHER] = RP_FOUND_SLOW_OPERATOR,
                                    [RP_PLACED_ALIGNMENT] = RP_FOUND_SLOW_ALIGNMENT,
                                    [RP_PLACED_SMALL] = RP_FOUND_SLOW_SMALL,
                                    [RP_PLACED_PRECISION] = RP_FOUND_SLOW_PRECISION,
                                    [RP_PLACED_PRODUCT] = RP_FOUND_SLOW_PRODUCT,
                                    [RP_PLACED_CONVOLUTION] = RP_FOUND_SLOW_CONVOLUTION};
    const struct rp_report_part *lead = lead_part(f);
    struct rp_report_finding *finding = NULL;

    if (lead->nplaced && (double)lead->placed_lost_ns >= PLACED_SHARE * (double)f->span_ns)
        finding = add_finding(f, kinds[lead->placed[0].kind], lead->placed_lost_ns);
    if (!finding)
        return;
    finding->compute_ns = finding->lost_ns;
    finding->at_most = true;
    for (size_t i = 0; i < lead->nplaced; i++) {
        finding->where.names[i] = lead->placed[i].kernel;
        add_evidence(finding, placed_text(f, &lead->placed[i]));
    }
}

/* Convolutions compute in another layout than the tensors have. */
static void find_layout(struct findings *f)
{
    int64_t ns = lead_part(f)->category_ns[RP_CATEGORY_LAYOUT];
    struct rp_report_finding *finding = add_finding(f, RP_FOUND_LAYOUT, ns);
    int64_t conv;

    if (!finding)
        return;
    finding->compute_ns = finding->lost_ns;
    finding->at_most = true;
    conv = rp_ns_sum(ns, lead_part(f)->category_ns[RP_CATEGORY_CONVOLUTION]);
    add_evidence(finding, rp_arena_textf(f->arena,
                                         "rank %d: %s of the %s that convolutions take, transposes "
                                         "included",
                                         lead_number(f), duration(f, ns), duration(f, conv)));
}

/* The clock of the device slows down: all kernels take longer, whatever they do. */
static void find_slow_clock(struct findings *f)
{
    const struct rp_report_device *d = &lead_part(f)->wrong;
    struct rp_report_finding *finding = add_finding(f, RP_FOUND_SLOW_CLOCK, d->slowed_ns);

    if (finding)
        finding->compute_ns = finding->lost_ns;
    if (finding)
        add_evidence(
            finding,
            rp_arena_textf(f->arena,
                           "rank %d: %lld of %lld kernels with the same name and grid are slower "
                           "in the last third of their calls, on average by %.1f %%",
                           lead_number(f), (long long)d->slowed_kinds, (long long)d->kinds,
                           100 * (d->slowed_ratio - 1)));
}

/* Contradictory timestamps: what was computed from them is in doubt, but nothing is lost. */
static void find_wrong_clock(struct findings *f)
{
    const struct rp_report_device *worst = NULL;
    struct rp_report_finding *finding;
    size_t r, at = 0;

    for (r = 0; r < f->n; r++) {
        const struct rp_report_device *d = &part_of(f, r)->wrong;

        if ((double)d->early_count > MOST_EARLY * (double)d->launched && d->early_count > 2 &&
            (!worst || d->early_most_ns > worst->early_most_ns)) {
            worst = d;
            at = r;
        }
    }
    if (!worst && !f->chain->contradict)
        return;
    finding = add_doubt(f, RP_FOUND_WRONG_CLOCK);
    if (finding && worst)
        add_evidence(
            finding,
            rp_arena_textf(f->arena,
                           "rank %d: %lld of %lld kernels, copies and memsets start before their "
                           "launch, up to %s",
                           number_of(f, at), (long long)worst->early_count,
                           (long long)worst->launched, duration(f, worst->early_most_ns)));
    if (finding && f->chain->contradict)
        add_evidence(
            finding,
            "collectives end on some ranks before they begin on others, so waiting and transfer "
            "cannot be separated. Where process groups were not recorded, ranks of different "
            "groups look alike: give the ranks of one group at a time");
}

/* Memory that is reserved but not used, near the limit: allocations begin to fail and to retry. */
static void find_full_memory(struct findings *f)
{
    struct rp_report_finding *finding = NULL;

    for (size_t r = 0; r < f->n; r++) {
        const struct rp_report_device *d = &part_of(f, r)->wrong;

        if (d->device_bytes <= 0 || d->reserved_bytes / 4 < d->device_bytes / 5 ||
            d->allocated_bytes > d->reserved_bytes / 5 * 4)
            continue;
        for (size_t i = 0; i < f->out->nfindings; i++)
            if (!strcmp(f->out->findings[i].id, "fragmentation"))
                finding = &f->out->findings[i];
        if (!finding)
            finding = add_doubt(f, RP_FOUND_RESERVED);
        if (finding)
            add_evidence(finding,
                         rp_arena_textf(
                             f->arena, "rank %d: %.1f of %.1f GB are reserved, at most %.1f in use",
                             number_of(f, r), (double)d->reserved_bytes / 1e9,
                             (double)d->device_bytes / 1e9, (double)d->allocated_bytes / 1e9));
        return;
    }
}

static const struct {
    uint8_t pause, found;
    double least; /* share of the span */
} by_pause[] = {
    {RP_PAUSE_DATA, RP_FOUND_DATA_LOADER_HOST, LEAST_SHARE},
    {RP_PAUSE_WAIT, RP_FOUND_WAIT_THREAD, 0.05},
    {RP_PAUSE_PROFILER, RP_FOUND_PROFILER_HOST, LEAST_SHARE},
    {RP_PAUSE_PYTHON, RP_FOUND_PYTHON, 0.05},
    {RP_PAUSE_SPAN, RP_FOUND_HOST_CODE, 0.05},
    {RP_PAUSE_NOTHING, RP_FOUND_NO_OPERATOR, 0.05},
};

/* "rank 0: 312.0 ms in 80 waits, the longest 48.1 ms; mainly poll in 'step *', 203.1 ms" */
static void find_waits(struct findings *f, double least)
{
    static const uint8_t found[RP_WAIT_KINDS] = {
        [RP_WAIT_OTHER] = RP_FOUND_WAIT_THREAD, [RP_WAIT_THREAD] = RP_FOUND_WAIT_THREAD,
        [RP_WAIT_INPUT] = RP_FOUND_WAIT_INPUT,  [RP_WAIT_OUTPUT] = RP_FOUND_WAIT_OUTPUT,
        [RP_WAIT_CHILD] = RP_FOUND_WAIT_CHILD,  [RP_WAIT_RANKS] = RP_FOUND_WAIT_RANKS,
        [RP_WAIT_SLEEP] = RP_FOUND_WAIT_SLEEP};
    const struct rp_report_part *lead = lead_part(f);
    const struct rp_report_pauses *p = &lead->pauses;
    const struct rp_host_wait *first = lead->waits.rows.n ? lead->waits.rows.at : NULL;
    struct rp_report_finding *finding;

    if (!first || first->worker || (double)p->ns[RP_PAUSE_WAIT] < least * (double)f->span_ns)
        return;
    finding = add_finding(f, found[rp_wait_kind_of(first->call)], p->ns[RP_PAUSE_WAIT]);
    if (finding)
        finding->where.names[0] = first->call;
    if (finding)
        add_evidence(
            finding,
            rp_arena_textf(
                f->arena, "rank %d: %s in %lld waits, the longest %s; mainly %s%s%.80s%s, %s",
                lead_number(f), duration(f, p->ns[RP_PAUSE_WAIT]),
                (long long)p->count[RP_PAUSE_WAIT], duration(f, p->longest_ns[RP_PAUSE_WAIT]),
                first->call, first->range ? " in '" : "", first->range ? first->range : "",
                first->range ? "'" : "", duration(f, first->total_ns)));
}

static void find_pauses(struct findings *f)
{
    const struct rp_report_pauses *p = &lead_part(f)->pauses;

    if (rp_report_knows_no_work(lead_part(f)) && !rp_report_is_sampled(lead_part(f))) {
        find_waits(f, 0.05); /* the only thing that may be known */
        return;
    }
    for (size_t i = 0; i < sizeof by_pause / sizeof by_pause[0]; i++) {
        uint8_t c = by_pause[i].pause;
        struct rp_report_finding *finding = NULL;

        if (c == RP_PAUSE_WAIT) {
            find_waits(f, by_pause[i].least);
            continue;
        }
        if (lead_part(f)->by_calls && (c == RP_PAUSE_SPAN || c == RP_PAUSE_NOTHING))
            continue; /* the start and the end of the program */
        if (c == RP_PAUSE_NOTHING && rp_report_is_sampled(lead_part(f)))
            continue; /* its lines are shown */

        if ((double)p->ns[c] >= by_pause[i].least * (double)f->span_ns)
            finding = add_finding(f, by_pause[i].found, p->ns[c]);
        if (finding)
            finding->where.names[0] = p->mainly[c];
        if (finding)
            add_evidence(
                finding,
                rp_arena_textf(f->arena, "rank %d: %s in %lld pauses, the longest %s%s%.80s",
                               lead_number(f), duration(f, p->ns[c]), (long long)p->count[c],
                               duration(f, p->longest_ns[c]), p->mainly[c] ? "; mainly " : "",
                               p->mainly[c] ? p->mainly[c] : ""));
    }
}

RP_ORDER(by_lost, struct rp_report_finding, RP_DOWN(lost_ns), strcmp(a->id, b->id))

enum rp_code rp_report_find(const struct rp_ranks *ranks, const struct rp_chain *chain,
                            struct rp_arena *arena, struct rp_report_root *out, struct rp_err *err)
{
    struct findings f = {.ranks = ranks, .n = ranks->n, .chain = chain, .arena = arena, .out = out};

    out->findings = RP_ARENA_NEW(arena, struct rp_report_finding, MOST_FINDINGS + 1);
    RP_TRY(rp_err_need(out->findings, err, "writing findings"));
    f.span_ns = lead_part(&f)->whole.window_ns;
    f.absent = ranks->world_size - (int32_t)ranks->n;
    f.absent = f.absent > 0 ? f.absent : 0;
    out->predictable = is_predictable(&f);
    find_atypical(&f);
    find_idle(&f);
    find_exposed_comm(&f);
    find_slow_links(&f);
    find_straggler(&f);
    find_bubbles(&f);
    find_tiny(&f);
    find_thin(&f);
    find_placed(&f);
    find_layout(&f);
    find_slow_clock(&f);
    find_full_memory(&f);
    find_pauses(&f);
    find_wrong_clock(&f);
    rp_sort(out->findings, out->nfindings, sizeof *out->findings, by_lost);
    return rp_arena_check(arena, "writing findings", err);
}

/* ------------------------------------------------------------------ what changes would save */

/* Findings about compute that a change would save, by the what-if. */
static const struct {
    const char *what_if;
    uint8_t found;
} by_change[] = {
    {"dtype", RP_FOUND_SLOW_PRECISION},
    {"tf32", RP_FOUND_SLOW_PRECISION},
    {"fuse", RP_FOUND_UNFUSED},
    {"fused-optimizer", RP_FOUND_UNFUSED_UPDATE},
};

/* Whether a finding is of that name, or its advice is that change. */
static bool is_answered(const struct rp_report_root *out, const char *id, const char *name)
{
    size_t i, k, len = strlen(name);

    for (i = 0; i < out->nfindings; i++) {
        if (!strcmp(out->findings[i].id, id))
            return true;
        for (k = 0; k < out->findings[i].ntries; k++) {
            const char *text = out->findings[i].tries[k].what_if;

            if (text && !strncmp(text, name, len) && (!text[len] || text[len] == '='))
                return true;
        }
    }
    return false;
}

/* A change of a step in the terms of the span: it has as many steps as were judged, after what the
   device still ran of the step before. */
static int64_t gain_in_span(const struct findings *f, const struct rp_opportunity *o)
{
    int64_t step = rp_ns_sum(o->step_ns, o->gain_ns);
    double share = step > 0 ? (double)o->gain_ns / (double)step : 0;

    return (int64_t)(share * (double)rp_ns_between(lead_part(f)->speed.earlier_ns, f->span_ns));
}

enum rp_code rp_report_find_changes(const struct rp_ranks *ranks, const struct rp_chain *chain,
                                    const struct rp_opportunities *list, struct rp_arena *arena,
                                    struct rp_report_root *out, struct rp_err *err)
{
    struct findings f = {.ranks = ranks, .n = ranks->n, .chain = chain, .arena = arena, .out = out};

    f.span_ns = lead_part(&f)->whole.window_ns;
    for (size_t i = 0; i < list->n; i++)
        for (size_t k = 0; k < sizeof by_change / sizeof by_change[0]; k++) {
            const struct rp_opportunity *o = &list->at[i];
            enum rp_found found = (enum rp_found)by_change[k].found;
            struct rp_report_finding *finding;

            if (strcmp(o->row->name, by_change[k].what_if) != 0 ||
                is_answered(out, rp_found_texts[found].id, o->row->name))
                continue;
            finding = add_finding(&f, found, gain_in_span(&f, o));
            if (!finding)
                continue;
            finding->at_most = true;
            finding->compute_ns = finding->lost_ns;
            add_evidence(finding,
                         rp_arena_textf(arena, "simulate: with %s a step takes %s instead of %s",
                                        o->what_if, duration(&f, o->step_ns),
                                        duration(&f, rp_ns_sum(o->step_ns, o->gain_ns))));
        }
    rp_sort(out->findings, out->nfindings, sizeof *out->findings, by_lost);
    return rp_arena_check(arena, "writing findings", err);
}
