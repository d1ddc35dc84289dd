/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns (facts/work/turns.h): within a step the host and the device work in turn, many times. The
 * host reads, an environment or a sampler runs, and its result is uploaded.
 */
#include "explain/findings/finding.h"

#include "base/order.h"
#include "facts/work/turns.h"

#define KEPT(M, s)                                                          \
    M(s, PLAIN, int64_t, turns)                                             \
    M(s, PLAIN, int64_t, steps)   /* that have turns */                     \
    M(s, PLAIN, int64_t, host_ns) /* between what is read and the upload */ \
    M(s, ARRAY, int64_t, cause_ns, RP_GAP_CAUSES)
RP_PART_STRUCT(kept, KEPT);
RP_PART_TYPE(rp_kept_turns, struct kept, KEPT);

/* The step in which a call begins, or SIZE_MAX. */
static size_t step_of(const struct rp_trace *t, rp_event call)
{
    size_t i;

    RP_LOWER_BOUND(i, t->nsteps, t->steps[i].begin_ns <= t->ev.ts_ns[call]);
    return i - 1;
}

/* A turn lasts until the next one of its step; what follows the last upload may be the rest of the
   step. */
static enum rp_code add_turn(const struct rp_trace *t, const rp_turn_vec *turns, size_t i,
                             struct kept *out, rp_interval_vec *in, struct rp_err *err)
{
    const struct rp_turn *x = &turns->at[i];
    bool last = i + 1 == turns->n || step_of(t, x->call) != step_of(t, x[1].call);

    out->turns++;
    out->steps += last;
    rp_ns_add(&out->host_ns, rp_ns_between(x->read_ns, x->upload_ns));
    return rp_vec_push(in, ((struct rp_interval){x->read_ns, last ? x->upload_ns : x[1].read_ns}),
                       err);
}

static enum rp_code turns_measure(const struct rp_finding_rank *rank, void *kept,
                                  struct rp_err *err)
{
    rp_turn_vec turns = {0};
    rp_interval_vec in = {0};
    struct kept *out = kept;
    enum rp_code code = rank->trace->nsteps ? rp_work_turns(rank->work, &turns, err) : RP_OK;

    for (size_t i = 0; i < turns.n && code == RP_OK; i++)
        code = add_turn(rank->trace, &turns, i, out, &in, err);
    if (code == RP_OK)
        rp_findings_sum_idle(rank, &in, out->cause_ns);
    rp_vec_release(&turns);
    rp_vec_release(&in);
    return code;
}

static bool has_host_collectives(const struct rp_report_part *p)
{
    return p->collectives.on_host && p->collectives.list.n;
}

static void turns_find(struct rp_findings *f)
{
    const struct kept *k = rp_findings_kept(f, f->chain->lead);
    struct rp_report_finding *finding = NULL;

    if (k && k->turns && k->turns >= RP_TURNS_MANY * k->steps &&
        !has_host_collectives(rp_findings_lead(f)))
        finding = rp_findings_take_idle(f, 0, k->cause_ns);
    if (!finding)
        return;
    RP_SAY(
        f, finding,
        "rank %d: %lld times in a step the host reads what the device computed, waits for it, and "
        "then uploads; %s pass in between",
        rp_findings_lead_number(f), (long long)(k->turns / k->steps),
        rp_findings_time(f, k->host_ns / k->turns));
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_CALL,
     .text = "more for each turn: many environments or requests at once, as one batch"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "more environments at once (gymnasium.make_vec(name, num_envs=N)) and fewer steps of "
             "each: a turn costs the same for a larger batch"},
    {RP_ADVISE_MORE, .frameworks = FW(PYTORCH),
     .text = "a small policy is faster on the CPU while it only acts: copy.deepcopy(policy).cpu() "
             "for the rollout; or an environment in PyTorch on the device"},
    {RP_ADVISE_MORE, .frameworks = FW(JAX),
     .text = "an environment in JAX, and jax.lax.scan over its steps: nothing is read in between"},
};

const struct rp_finding rp_finding_turns = {
    .id = "turns",
    .kinds = {{"", "the host and the device take turns: what is read decides what is uploaded"}},
    .condition =
        "copies to the host for which the host waits, and after which the next work of the "
        "device is a copy from the host: `RP_TURNS_MANY` or more in a step; not where "
        "collectives run on the hosts",
    .cost = "idle time of the device from one such copy to the next of the step; it is not part of "
            "the findings of its causes",
    .numbers = RP_FINDING_NUMBER(RP_TURNS_MANY),
    .test = "explain/turns_have_an_edge",
    RP_KEEPS(turns, turns_measure),
    .find = turns_find,
    RP_ADVICE(advice),
    .of_host = true,
};
