/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Experts of a mixture that run in a loop: one after another gathers its tokens, multiplies them by
 * its own weights and adds the results where the tokens were. Each does little, and waits for the
 * host; one grouped product has all of them. The shape of the loop tells, names are not needed:
 *
 *     gather [product][product] scatter   gather [product][product] scatter   ...
 */
#include "explain/findings/finding.h"

#include "base/order.h"
#include "cost/calls.h"

#define LEAST_EXPERTS 8
RP_DECISION(LEAST_EXPERTS, "turns of a loop",
            "models have 8 experts or more; fewer turns may be the layers of a graph network",
            "explain/experts_run_in_a_loop");

#define KEPT(M, s)                \
    M(s, PLAIN, int64_t, loops)   \
    M(s, PLAIN, int64_t, experts) \
    M(s, PLAIN, int64_t, idle_ns) /* what fewer launches would save */
RP_PART_STRUCT(kept, KEPT);
RP_PART_TYPE(rp_kept_experts, struct kept, KEPT);

/* A loop that may be one: turns with equally many products. */
struct loop {
    int64_t experts, products, now; /* products of each, and since the last gather or scatter */
    int64_t begin_ns, end_ns;
    bool open; /* a gather or a scatter, which began then, comes before */
    int64_t from_ns;
    bool moved, moved_twice; /* gathers and scatters since the last product */
};

/* Idle time is that of all experts; one of them would remain. */
static void end_loop(const struct rp_finding_rank *rank, struct loop *loop, struct kept *out)
{
    struct rp_interval in = {loop->begin_ns, loop->end_ns};
    int64_t idle = 0;

    if (loop->experts >= LEAST_EXPERTS) {
        for (size_t i = 0; i < rank->gaps->n; i++)
            rp_ns_add(&idle, rp_union_covers(&in, 1, rank->gaps->at[i].begin_ns,
                                             rank->gaps->at[i].end_ns));
        out->loops++;
        out->experts += loop->experts;
        rp_ns_add(&out->idle_ns, idle - idle / loop->experts);
    }
    loop->experts = 0;
}

/* A gather or a scatter: if products lie between it and the one before, an expert ends here. */
static void end_expert(const struct rp_finding_rank *rank, const struct rp_work_item *x,
                       struct loop *loop, struct kept *out)
{
    if (loop->now && loop->now != loop->products)
        end_loop(rank, loop, out);
    if (loop->now && loop->open) {
        if (!loop->experts)
            loop->begin_ns = loop->from_ns;
        loop->products = loop->now;
        loop->experts++;
        loop->end_ns = x->end_ns;
    }
    loop->open = true;
    loop->moved_twice = loop->moved;
    loop->moved = true;
    loop->from_ns = x->begin_ns;
    loop->now = 0;
}

/* An expert scatters before the next one gathers: with one of both in a turn, as of a policy that
   looks up its actions, it is another loop. */
static void add_product(const struct rp_finding_rank *rank, struct loop *loop, struct kept *out)
{
    if (!loop->now && !loop->moved_twice)
        end_loop(rank, loop, out);
    loop->now++;
    loop->moved = loop->moved_twice = false;
}

static void leave_loop(const struct rp_finding_rank *rank, struct loop *loop, struct kept *out)
{
    end_loop(rank, loop, out);
    loop->now = 0;
    loop->open = false;
}

static enum rp_code experts_measure(const struct rp_finding_rank *rank, void *kept,
                                    struct rp_err *err)
{
    struct loop loop = {0};
    size_t step = 0;

    (void)err;
    for (size_t i = 0; rank->calls && i < rank->calls->calls.n; i++) {
        const struct rp_cost_call *call = &rank->calls->calls.at[i];

        /* The step after the one with the call, where a loop ends at the latest. */
        const struct rp_trace *t = rank->trace;
        size_t next = 0;
        if (t && rank->work->items.at[call->item].launch != RP_NONE)
            RP_LOWER_BOUND(next, t->nsteps,
                           t->steps[next].begin_ns <=
                               t->ev.ts_ns[rank->work->items.at[call->item].launch]);

        if (next != step) {
            leave_loop(rank, &loop, kept);
            step = next;
        }
        if (call->category == RP_CATEGORY_MATMUL)
            add_product(rank, &loop, kept);
        else if (call->category == RP_CATEGORY_EMBEDDING)
            end_expert(rank, &rank->work->items.at[call->item], &loop, kept);
        else if (call->category == RP_CATEGORY_ATTENTION ||
                 call->category == RP_CATEGORY_CONVOLUTION ||
                 call->category == RP_CATEGORY_NORMALIZATION)
            leave_loop(rank, &loop, kept);
    }
    end_loop(rank, &loop, kept);
    return RP_OK;
}

static void experts_find(struct rp_findings *f)
{
    const struct kept *k = rp_findings_kept(f, f->chain->lead);
    struct rp_report_finding *finding = k ? rp_findings_add(f, 0, k->idle_ns) : NULL;

    if (finding)
        RP_SAY(f, finding,
               "rank %d: %s of %lld experts on average, each of which gathers, multiplies and "
               "scatters; the device is idle for %s between their kernels",
               rp_findings_lead_number(f), rp_units_count(f->arena, k->loops, "loop"),
               (long long)(k->experts / k->loops), rp_findings_time(f, k->idle_ns));
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_CALL, .text = "one grouped product for all experts, of tokens sorted by expert"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "torch._grouped_mm(tokens sorted by expert, weights, offs=...) for all experts at "
             "once; of Transformers experts_implementation=\"grouped_mm\""},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .parallels = PAR(MEGATRON),
     .text = "--moe-grouped-gemm: one grouped product for all experts of a rank"},
    {RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "jax.lax.ragged_dot(tokens sorted by expert, weights, group_sizes)"},
};

const struct rp_finding rp_finding_experts = {
    .id = "experts",
    .kinds = {{"", "experts run one after another, each with small products of its own"}},
    .condition = "of a device whose peaks are known: a gather, products, a scatter, "
                 "`LEAST_EXPERTS` times or more with equally many products, and neither "
                 "attention nor normalization in between",
    .cost = "idle time of the device in such loops, except for one expert of each",
    .numbers = RP_FINDING_NUMBER(LEAST_EXPERTS),
    .test = "explain/experts_run_in_a_loop",
    .overlaps = true,
    RP_KEEPS(experts, experts_measure),
    .find = experts_find,
    RP_ADVICE(advice),
    .of_host = true,
};
