/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that are longer than the others for reasons of their own: warm-up, compilation, a
 * checkpoint. Their excess is that of their work, plus idle time of causes of which they have
 * several times the usual; that idle time then no longer counts in the findings of its cause.
 */
#include "explain/findings/finding.h"

/* The time of a step, without that for which its thread had no processor: a finding of its own. */
static int64_t own_ns(const struct rp_report_step *s)
{
    return rp_ns_between(s->unserved_ns, rp_report_own_ns(s));
}

/* The time of a step that does not depend on the host or on other ranks. */
static int64_t work_ns(const struct rp_report_step *s)
{
    return rp_ns_between(rp_ns_sum(s->b.idle_ns, s->b.exposed_comm_ns), own_ns(s));
}

static int64_t late_ns(const struct rp_report_step *s)
{
    return s->late_ns;
}

static int64_t host_ns(const struct rp_report_step *s)
{
    return s->work_ns;
}

static int64_t drain_ns(const struct rp_report_step *s)
{
    return s->drain_ns;
}

/* The median of a value over the steps that were recorded with detail. */
static int64_t usual_of(const struct rp_report_part *p,
                        int64_t (*number)(const struct rp_report_step *), int64_t *v)
{
    size_t i, n = 0;

    for (i = 0; i < p->nsteps; i++)
        if (!p->steps[i].no_detail)
            v[n++] = number(&p->steps[i]);
    rp_ns_sort(v, n);
    return n ? rp_ns_median(v, n) : 0;
}

/* By how much a step is longer than usual, and how much of that is explained. */
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

/* Takes the idle time of a cause if the step has more than twice the usual. */
static void take_idle(struct rp_findings *f, struct excess *e, uint8_t cause, int64_t has_ns,
                      int64_t usual_ns)
{
    int64_t more = has_ns / 2 > usual_ns ? take_excess(e, has_ns, usual_ns) : 0;

    rp_ns_add(&e->idle_ns, more);
    rp_ns_add(&f->atypical_ns[cause], more);
}

/* usual_step: the usual values, which are medians over the steps. */
struct usual_step {
    int64_t step_ns, work_ns, late_ns, host_ns, drain_ns;
};

static struct excess step_excess(struct rp_findings *f, const struct rp_report_step *s,
                                 const struct usual_step *usual)
{
    struct excess e = {0};

    if ((double)own_ns(s) <= RP_ATYPICAL * (double)usual->step_ns)
        return e;
    e.left_ns = rp_ns_between(usual->step_ns, own_ns(s));
    if ((double)work_ns(s) > RP_ATYPICAL * (double)usual->work_ns)
        e.work_ns = take_excess(&e, work_ns(s), usual->work_ns);
    take_idle(f, &e, RP_GAP_NOT_LAUNCHED, s->late_ns, usual->late_ns);
    take_idle(f, &e, RP_GAP_HOST_WORK, s->work_ns, usual->host_ns);
    take_idle(f, &e, RP_GAP_SYNC_DRAIN, s->drain_ns, usual->drain_ns);
    return e;
}

static void add_step(struct rp_findings *f, const struct excess *sum, size_t worst, size_t typical,
                     int64_t usual_ns)
{
    const struct rp_report_part *p = rp_findings_lead(f);
    struct rp_report_finding *finding =
        rp_findings_add(f, 0, rp_ns_sum(sum->work_ns, sum->idle_ns));
    size_t n = 0;

    if (!finding || worst == SIZE_MAX) {
        memset(f->atypical_ns, 0, sizeof f->atypical_ns);
        return;
    }
    finding->compute_ns = sum->work_ns;
    finding->where.step = p->steps[worst].number;
    for (size_t i = 0; i < p->nsteps; i++)
        n += !p->steps[i].no_detail;
    RP_SAY(f, finding, "%s took %s, the median %s %s%s%s", p->steps[worst].name,
           rp_findings_time(f, rp_report_own_ns(&p->steps[worst])),
           n < p->nsteps ? rp_arena_textf(f->arena, "of %zu", n) : "step",
           rp_findings_time(f, usual_ns), p->steps[worst].longer ? ": " : "",
           p->steps[worst].longer ? p->steps[worst].longer : "");
    RP_SAY(f, finding, "%s is typical: --step %lld", p->steps[typical].name,
           (long long)p->steps[typical].number);
}

static void atypical_step_find(struct rp_findings *f)
{
    const struct rp_report_part *p = rp_findings_lead(f);
    size_t i, worst = SIZE_MAX, typical = 0;
    int64_t *v = RP_ARENA_NEW(f->arena, int64_t, p->nsteps + 1), most = 0, nearest = INT64_MAX;
    struct excess sum = {0};

    if (p->nsteps < RP_STEPS_COMPARED || !v || !rp_report_steps_alike(p->steps, p->nsteps))
        return;
    struct usual_step usual = {.step_ns = usual_of(p, rp_report_own_ns, v),
                               .work_ns = usual_of(p, work_ns, v),
                               .late_ns = usual_of(p, late_ns, v),
                               .host_ns = usual_of(p, host_ns, v),
                               .drain_ns = usual_of(p, drain_ns, v)};
    if (usual.step_ns <= 0) /* the host marks steps, most of which have no time of their own */
        return;
    for (i = 0; i < p->nsteps; i++) {
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
        if (!s->no_detail && rp_ns_apart(rp_report_own_ns(s), usual.step_ns) <= nearest) {
            nearest = rp_ns_apart(rp_report_own_ns(s), usual.step_ns);
            typical = i;
        }
    }
    add_step(f, &sum, worst, typical, usual.step_ns);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK,
     .text = "leave it out (warm-up, compilation, a checkpoint) and look at a typical step: "
             "--step N"},
    {RP_ADVISE_LOOK, .system = RP_KEY_YES,
     .text = "leave it out (warm-up, compilation, a checkpoint) and look at a typical step: "
             "--step N"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH),
     .text = "leave it out: torch.profiler.schedule(wait=1, warmup=3, active=3), or --step N "
             "of this report"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH), .ours = RP_KEY_YES,
     .text = "look at a typical step: --step N of this report"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .compiled = RP_KEY_YES,
     .text = "TORCH_LOGS=recompiles tells whether torch.compile compiled again, and why"},
    {RP_ADVISE_LOOK, .frameworks = FW(JAX),
     .text = "leave it out: --step N. JAX_LOG_COMPILES=1 tells whether it compiled; "
             "JAX_COMPILATION_CACHE_DIR keeps the result"},
    {RP_ADVISE_LOOK, .frameworks = FW(TENSORFLOW),
     .text = "leave it out: --step N. A tf.function is traced again for new shapes: "
             "input_signature=, reduce_retracing=True"},
    {RP_ADVISE_LOOK, .modes = MODE(SERVING),
     .text = "steps of a server differ with their requests: compare steps of one phase, --step "
             "NAME"},
    {RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "a kernel may be compiled at its first use or for a new work size: warm up with the "
             "sizes of the run"},
};

const struct rp_finding rp_finding_atypical_step = {
    .id = "atypical-step",
    .kinds = {{"", "a step takes longer than the others"}},
    .condition =
        "of three or more steps of the rank at the end of the chain, some are so many times "
        "as long as the median; not of a server, whose batches differ. The first step counts "
        "without the work that runs before its own work begins",
    .cost = "in these steps, and at most what they are longer: work (step − idle − exposed "
            "communication) above the median, where it is so many times the median; then "
            "`not_launched`, `host_work` and `sync_drain` idle time above the median, where there "
            "is more than twice as much (which is then not part of the findings of these causes). "
            "Without a device, the time for which its thread had no processor is left out",
    .numbers = RP_FINDING_NUMBER(RP_ATYPICAL),
    .test = "explain/steps_are_atypical_from_an_edge_on",
    .find = atypical_step_find,
    RP_ADVICE(advice),
};
