/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that were ready and had no processor, as the kernel counts it. Where a device was idle
 * because its host was late, the host would have been earlier by the share of the time in which its
 * thread was ready and did not run; without a device by all of that time. What comes by chance, a
 * few long times among many without any, is no finding: the sum must be several times what so
 * uneven times scatter by, which is the root of the sum of their squares.
 */
#include "explain/findings/finding.h"

#include "base/filled.h"
#include "facts/host/processors.h"

#include <math.h>

enum { BUSY, LIMITED };

#define CHANCE 3.0
RP_DECISION(CHANCE, "times what such times scatter by",
            "ten equal tenths of a second are as sure as that; one long one never is",
            "explain/ready_threads_without_a_processor");
#define LIMITED_SHARE 0.5
RP_DECISION(LIMITED_SHARE, "of the time in which a thread was ready",
            "the limit of the cgroup stopped its threads for so long: others are the lesser cause",
            "explain/ready_threads_without_a_processor");

#define RANKS_SAID 3
RP_LIMIT(RANKS_SAID, "ranks", "that are named beside the first; --rank N shows each");

#define KEPT(M, s)                                            \
    M(s, PLAIN, int64_t, lost_ns) /* 0: by chance, or none */ \
    M(s, TEXT, thread)            /* with most of it */       \
    M(s, PLAIN, int64_t, ready_ns)                            \
    M(s, PLAIN, int64_t, ran_ns)                              \
    M(s, PLAIN, int64_t, judged_ns)                           \
    M(s, PLAIN, struct rp_machine, machine)
RP_PART_STRUCT(kept, KEPT);
RP_PART_TYPE(rp_kept_no_processor, struct kept, KEPT);

struct ready_ctx {
    const struct rp_finding_rank *rank;
    struct rp_processors p;
    RP_VEC(double) lost; /* by time of p.ready */
};

static double share_of(int64_t part_ns, int64_t whole_ns)
{
    return whole_ns > 0 ? (double)part_ns / (double)whole_ns : 0;
}

static int64_t judged_in(const struct rp_segments *judged, int64_t begin_ns, int64_t end_ns)
{
    int64_t ns = 0;

    for (size_t i = 0; i < judged->n; i++)
        rp_ns_add(&ns,
                  rp_ns_common(judged->at[i].begin_ns, judged->at[i].end_ns, begin_ns, end_ns));
    return ns;
}

/* The host of the thread was late: by the share in which it did not run. */
static void add_late(struct ready_ctx *c, rp_track thread, int64_t begin_ns, int64_t end_ns)
{
    const struct rp_ready *r = c->p.ready.at;

    for (size_t i = rp_ready_first(&c->p, thread, begin_ns);
         i < c->p.ready.n && r[i].thread == thread && r[i].begin_ns < end_ns; i++)
        c->lost.at[i] += (double)rp_ns_common(begin_ns, end_ns, r[i].begin_ns, r[i].end_ns) *
                         share_of(r[i].ready_ns, rp_ns_sum(r[i].ready_ns, r[i].ran_ns));
}

static void find_late(struct ready_ctx *c)
{
    const struct rp_finding_rank *rank = c->rank;

    for (size_t i = 0; rank->on_device && i < rank->gaps->n; i++) {
        const struct rp_gap *gap = &rank->gaps->at[i];
        rp_track thread = gap->cause < RP_GAP_PROFILER ? rp_gap_thread(rank->work, gap) : RP_NONE;

        if (thread != RP_NONE)
            add_late(c, thread, gap->begin_ns, gap->end_ns);
    }
    for (size_t i = 0; i < c->p.ready.n; i++) {
        const struct rp_ready *r = &c->p.ready.at[i];
        double most =
            (double)r->ready_ns * share_of(judged_in(rank->judged, r->begin_ns, r->end_ns),
                                           rp_ns_between(r->begin_ns, r->end_ns));

        c->lost.at[i] = rank->on_device ? fmin(c->lost.at[i], most) : most;
    }
}

/* The thread that lost most; without a device the one that marks the steps, if one does. */
static rp_track main_thread(const struct ready_ctx *c)
{
    const struct rp_trace *t = c->rank->trace;
    const struct rp_ready *r = c->p.ready.at;
    rp_track thread = RP_NONE;
    double ns = 0, most = 0;

    if (!c->rank->on_device && t->nsteps && t->steps[0].mark != RP_NONE)
        return t->ev.track[t->steps[0].mark];
    for (size_t i = 0; i < c->p.ready.n; i++) {
        ns = c->lost.at[i] + (i && r[i].thread == r[i - 1].thread ? ns : 0);
        if (ns > most) {
            most = ns;
            thread = r[i].thread;
        }
    }
    return thread;
}

static void keep(const struct ready_ctx *c, struct kept *out)
{
    const struct rp_trace *t = c->rank->trace;
    rp_track thread = main_thread(c);
    double sum = 0, squares = 0;

    for (size_t i = 0; i < c->p.ready.n; i++) {
        const struct rp_ready *r = &c->p.ready.at[i];
        double share = share_of(judged_in(c->rank->judged, r->begin_ns, r->end_ns),
                                rp_ns_between(r->begin_ns, r->end_ns));

        if (r->thread == thread) {
            rp_ns_add(&out->ready_ns, (int64_t)(share * (double)r->ready_ns));
            rp_ns_add(&out->ran_ns, (int64_t)(share * (double)r->ran_ns));
        } else if (!c->rank->on_device) {
            continue;
        }
        sum += c->lost.at[i];
        squares += c->lost.at[i] * c->lost.at[i];
    }
    if (thread == RP_NONE || sum <= CHANCE * sqrt(squares))
        return;
    out->lost_ns = (int64_t)sum;
    out->judged_ns = judged_in(c->rank->judged, INT64_MIN, INT64_MAX);
    out->thread =
        rp_arena_textf(c->rank->arena, "%s%s%lld", rp_trace_str(t, t->tracks[thread].name),
                       t->tracks[thread].name ? " " : "", (long long)t->tracks[thread].native_id);
    out->machine = c->p.machine;
}

static enum rp_code no_processor_measure(const struct rp_finding_rank *rank, void *kept,
                                         struct rp_err *err)
{
    struct ready_ctx c = {.rank = rank};
    enum rp_code code = rp_processors_find(rank->trace, &c.p, err);

    if (code == RP_OK)
        code = rp_vec_zeros(&c.lost, c.p.ready.n, err);
    if (code == RP_OK) {
        find_late(&c);
        keep(&c, kept);
    }
    rp_vec_release(&c.lost);
    rp_processors_release(&c.p);
    return code;
}

/* ------------------------------------------------------------------ all ranks */

static double ready_share(const struct kept *k)
{
    return k ? share_of(k->ready_ns, k->judged_ns) : 0;
}

/* The ranks that waited at least half as long as the one at the end of the chain. */
static void name_ranks(struct rp_findings *f, struct rp_report_finding *finding,
                       const struct kept *lead)
{
    struct rp_report_who who = {.kind = "rank",
                                .ranks = RP_ARENA_NEW(f->arena, int64_t, f->ranks->n),
                                .hosts = RP_ARENA_NEW(f->arena, const char *, f->ranks->n)};
    const char *text = "";

    for (size_t r = 0; who.ranks && who.hosts && r < f->ranks->n; r++) {
        const struct kept *k = rp_findings_kept(f, r);
        const char *host = rp_findings_part(f, r)->host;

        if (2 * ready_share(k) < ready_share(lead))
            continue;
        who.ranks[who.nranks++] = rp_findings_number(f, r);
        if (host && (!who.nhosts || strcmp(who.hosts[who.nhosts - 1], host) != 0))
            who.hosts[who.nhosts++] = host;
        if (r != f->chain->lead && who.nranks <= RANKS_SAID)
            text = rp_arena_textf(f->arena, "%s%s %d (%.0f %%)", text, *text ? ", rank" : "rank",
                                  rp_findings_number(f, r), 100 * ready_share(k));
    }
    finding->who = who;
    if (*text)
        RP_SAY(f, finding, "the same of %s", text);
}

static void no_processor_find(struct rp_findings *f)
{
    const struct kept *k = rp_findings_kept(f, f->chain->lead);
    bool limited =
        k && share_of(k->machine.throttled_ns, k->machine.over_ns) > LIMITED_SHARE * ready_share(k);
    struct rp_report_finding *finding =
        k ? rp_findings_add(f, limited ? LIMITED : BUSY, k->lost_ns) : NULL;

    if (!finding)
        return;
    const struct rp_machine *m = &k->machine;
    RP_SAY(
        f, finding,
        "rank %d: thread %s ran for %s of %s, and was ready without a processor for %s (%.1f %%)",
        rp_findings_lead_number(f), k->thread, rp_findings_time(f, k->ran_ns),
        rp_findings_time(f, k->judged_ns), rp_findings_time(f, k->ready_ns), 100 * ready_share(k));
    if (m->throttled_ns > 0)
        RP_SAY(f, finding,
               "its cgroup allows %.1f processors, and stopped its threads for %s of %s",
               (double)m->limit_percent / 100, rp_findings_time(f, m->throttled_ns),
               rp_findings_time(f, m->over_ns));
    if (m->looks)
        RP_SAY(f, finding,
               "load %.1f, and %s that it may use; some thread of the machine waited for %s of %s",
               (double)m->load_percent / 100 / (double)m->looks,
               rp_units_count(f->arena, m->processors, "processor"),
               rp_findings_time(f, m->some_waited_ns), rp_findings_time(f, m->over_ns));
    name_ranks(f, finding, k);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK, OF(BUSY),
     .text =
         "give each rank processors of its own (taskset -c, numactl --physcpubind), and end what "
         "else runs there: top -H shows it"},
    {RP_ADVISE_LOOK, OF(LIMITED),
     .text = "a larger limit of its cgroup: docker run --cpus, resources.limits.cpu of Kubernetes, "
             "CPUQuota= of systemd"},
    {RP_ADVISE_CALL,
     .text = "OMP_NUM_THREADS = processors / ranks of the machine: the threads of all ranks share "
             "its processors"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "torch.set_num_threads(N) and OMP_NUM_THREADS=N, with N = processors / ranks of the "
             "machine"},
    {RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "tf.config.threading.set_intra_op_parallelism_threads(N), with N = processors / ranks "
             "of the machine"},
    {RP_ADVISE_MORE, .frameworks = FW(PYTORCH),
     .text =
         "DataLoader(num_workers=N): workers are processes; all ranks' together no more than the "
         "processors that their main threads leave"},
};

const struct rp_finding rp_finding_no_processor = {
    .id = "no-processor",
    .kinds = {{"busy", "threads were ready and had no processor"},
              {"limited", "the limit of a cgroup stopped threads that were ready"}},
    .condition = "`reprise record` counted it. The sum is more than `CHANCE` times the root of the "
                 "sum of the squares of its times. limited: the share of the time in which the "
                 "limit stopped threads is more than `LIMITED_SHARE` of that in which the thread "
                 "was ready",
    .cost = "idle time of the device in which the host was late, in the share in which its thread "
            "was ready and did not run, of the time in which it was ready or ran; without a device "
            "the time in which the thread of the steps was ready and did not run. Other findings "
            "may have the same time",
    .numbers = RP_FINDING_NUMBER(CHANCE) RP_FINDING_NUMBER(LIMITED_SHARE),
    .test = "explain/ready_threads_without_a_processor",
    RP_KEEPS(no_processor, no_processor_measure),
    .find = no_processor_find,
    .of_any_rank = true,
    .overlaps = true,
    RP_ADVICE(advice),
};
