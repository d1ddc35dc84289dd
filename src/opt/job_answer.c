/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the plan of a job (dPRO directory): its groups of tensors are searched on the model of
 * job_model.c; then the recorded groups and those of the plan are simulated message by message, and
 * what-ifs are searched on top.
 */
#include "opt/job_ops.h"

#include "base/order.h"
#include "result/print_units.h"
#include "sim/model/simulated_steps.h"
#include "sim/whatif/nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct job_ctx {
    const struct rp_job *job;
    const struct rp_opt_job_asked *asked;
    struct rp_opt_job_model model; /* with the operators that are fused so far */
    struct rp_opt_job_ops ops;
    struct rp_opt_limits *limits;
    struct rp_opt_plan plan;
    struct rp_opt_answer *out;
    struct rp_arena *arena;
    uint8_t *ends, *recorded;
    double doubt; /* relative: how much steps differ, and the model from the recording */
    size_t tried;
};

/* ------------------------------------------------------------------ groups */

RP_ORDER(by_id, int64_t, RP_COMPARE(*a, *b))

static enum rp_code list_groups(struct job_ctx *a, const uint8_t *ends, struct rp_opt_group **out,
                                size_t *n, struct rp_err *err)
{
    const struct rp_opt_job_model *m = &a->model;
    size_t i, k, first = 0;

    *n = 0;
    *out = RP_ARENA_NEW(a->arena, struct rp_opt_group, m->n + 1);
    RP_TRY(rp_arena_check(a->arena, "searching", err));
    for (i = 0; i < m->n; i++) {
        struct rp_opt_group *g = &(*out)[*n];

        if (!ends[i] && i + 1 < m->n)
            continue;
        g->ntensors = i + 1 - first;
        g->tensors = RP_ARENA_NEW(a->arena, uint32_t, g->ntensors);
        RP_TRY(rp_arena_check(a->arena, "searching", err));
        g->bytes = (int64_t)(m->sum[i + 1] - m->sum[first]);
        for (k = first; k <= i; k++)
            g->tensors[k - first] = (uint32_t)k;
        first = i + 1;
        ++*n;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ simulating it */

/* factor: the time of fused operators relative to their sum; 0 if none are fused. */
static enum rp_code make_job_plan(struct job_ctx *a, const struct rp_opt_group *groups, size_t n,
                                  double factor, struct rp_job_plan *out, struct rp_err *err)
{
    struct rp_job_plan_cluster *clusters =
        RP_ARENA_NEW(a->arena, struct rp_job_plan_cluster, a->ops.n + 1);
    struct rp_job_plan_group *list = RP_ARENA_NEW(a->arena, struct rp_job_plan_group, n + 1);

    RP_TRY(rp_arena_check(a->arena, "searching", err));
    for (size_t g = 0; g < n; g++) {
        int64_t *ids = RP_ARENA_NEW(a->arena, int64_t, groups[g].ntensors);

        RP_TRY(rp_arena_check(a->arena, "searching", err));
        for (size_t i = 0; i < groups[g].ntensors; i++)
            ids[i] = a->plan.tensors[groups[g].tensors[i]].id;
        qsort(ids, groups[g].ntensors, sizeof *ids, by_id);
        list[g] = (struct rp_job_plan_group){groups[g].ntensors, ids};
    }
    for (size_t i = 0; i < a->ops.n; i++) {
        clusters[i] = a->ops.clusters[i];
        clusters[i].factor = fmin(clusters[i].factor * factor, 1);
    }
    *out = (struct rp_job_plan){
        .ngroups = n, .groups = list, .nclusters = factor > 0 ? a->ops.n : 0, .clusters = clusters};
    return RP_OK;
}

static enum rp_code part_step(const struct rp_sim_part *part, int64_t *out, struct rp_err *err)
{
    RP_SCOPED(rp_sim_run_release) struct rp_sim_run run = {0};
    RP_SCOPED(rp_sim_result_release) struct rp_sim_result r = {0};

    RP_TRY(rp_sim_run_init(&run, &part, 1, err));
    RP_TRY(rp_simulate(&run.overlay, &r, err));
    return rp_sim_step_ns(&run, &r, out, err);
}

/* Simulates from nothing, message by message. */
static enum rp_code groups_step(struct job_ctx *a, const struct rp_opt_group *groups, size_t n,
                                double factor, int64_t *out, struct rp_err *err)
{
    struct rp_sim_part part = {0};
    struct rp_job_plan plan;
    enum rp_code code = make_job_plan(a, groups, n, factor, &plan, err);

    if (code == RP_OK)
        code = rp_sim_part_of_plan(&part, a->job, &plan, err);
    if (code == RP_OK)
        code = part_step(&part, out, err);
    rp_sim_part_release(&part);
    a->tried++;
    return code;
}

/* ------------------------------------------------------------------ the plan */

static const char *groups_text(struct job_ctx *a)
{
    const char *text = "";

    for (size_t g = 0; g < a->plan.ngroups; g++)
        for (size_t i = 0; i < a->plan.groups[g].ntensors; i++)
            text = rp_arena_textf(a->arena, "%s%s%lld", text,
                                  i   ? "+"
                                  : g ? ","
                                      : "",
                                  (long long)a->plan.tensors[a->plan.groups[g].tensors[i]].id);
    return text;
}

static void add_move(struct job_ctx *a, struct rp_opt_move m, int64_t then)
{
    struct rp_opt_plan *p = &a->plan;

    m.gain_ns = p->best_ns - then;
    m.step_ns = then;
    p->best_ns = then;
    p->moves[p->nmoves++] = m;
}

static void add_group_move(struct job_ctx *a, int64_t then)
{
    int64_t gain = a->plan.best_ns - then;
    bool known = !a->model.costs.one_size;

    add_move(
        a,
        (struct rp_opt_move){
            .move = "tensor-fusion",
            .family = RP_OPT_TENSOR,
            .what = rp_arena_textf(a->arena, "gradients are sent in the groups %s", groups_text(a)),
            .apply = "hvd.DistributedOptimizer(…, groups=[…]) with these groups; dPRO: "
                     "HOROVOD_TENSOR_GROUP_FILE",
            .assumes = "operators take as long as recorded, messages are as fast as recorded "
                       "ones of their size, and ranks wake in the recorded cycle",
            .gain_low_ns = known ? llround((double)gain / (1 + a->doubt)) : RP_ABSENT_I64,
            .gain_high_ns = known ? llround((double)gain * (1 + a->doubt)) : RP_ABSENT_I64,
            .sure = known},
        then);
}

/* ------------------------------------------------------------------ operators */

static enum rp_code list_clusters(struct job_ctx *a, struct rp_err *err)
{
    a->plan.clusters = RP_ARENA_NEW(a->arena, struct rp_opt_cluster, a->ops.n + 1);
    RP_TRY(rp_arena_check(a->arena, "searching", err));
    for (size_t i = 0; i < a->ops.n; i++) {
        struct rp_opt_cluster *c = &a->plan.clusters[a->plan.nclusters++];

        *c = (struct rp_opt_cluster){.kind = a->asked->from ? "given" : "element-wise",
                                     .count = 1,
                                     .nops = a->ops.clusters[i].n};
        c->ops = RP_ARENA_NEW(a->arena, const char *, c->nops);
        RP_TRY(rp_arena_check(a->arena, "searching", err));
        for (size_t k = 0; k < c->nops; k++)
            c->ops[k] = a->ops.clusters[i].ops[k];
    }
    return RP_OK;
}

/* Searches operators to fuse, with the recorded groups. */
static enum rp_code fuse_ops(struct job_ctx *a, struct rp_err *err)
{
    struct rp_opt_plan *p = &a->plan;
    struct rp_opt_move m = {.move = "operator-fusion", .family = RP_OPT_FUSION};
    struct rp_job_plan fused;
    int64_t then, low, high;

    if (a->asked->from)
        RP_TRY(rp_opt_read_job_ops(&a->model, a->asked->from, a->arena, &a->ops, err));
    else if (a->limits->families >> RP_OPT_FUSION & 1)
        RP_TRY(rp_opt_find_job_ops(&a->model, a->asked->candidates, a->arena, &a->ops, err));
    if (!a->ops.n)
        return RP_OK;
    RP_TRY(groups_step(a, p->recorded, p->nrecorded, 1, &then, err));
    if (!a->asked->from &&
        (double)(p->best_ns - then) < RP_OPT_LEAST_GAIN * (double)p->baseline_ns) {
        a->ops.n = 0;
        return RP_OK;
    }
    RP_TRY(groups_step(a, p->recorded, p->nrecorded, 1 + RP_SIM_TABLE_DOUBT, &low, err));
    RP_TRY(groups_step(a, p->recorded, p->nrecorded, 1 / (1 + RP_SIM_TABLE_DOUBT), &high, err));
    m.what = rp_arena_textf(a->arena, "%zu chains of operators become one kernel each", a->ops.n);
    m.apply = "tf.function(jit_compile=True) around the operators of each chain, or a cluster file "
              "(XLA_CLUSTER_SPEC of dPRO's TensorFlow)";
    m.assumes = "a fused chain takes 1.04 to 1.36 times its longest operator, as measured on one "
                "H200";
    m.gain_low_ns = llround((double)(p->best_ns - low) / (1 + a->doubt));
    m.gain_high_ns = llround((double)(p->best_ns - high) * (1 + a->doubt));
    m.sure = m.gain_low_ns > 0;
    add_move(a, m, then);
    RP_TRY(list_clusters(a, err));
    RP_TRY(make_job_plan(a, p->recorded, p->nrecorded, 1, &fused, err));
    rp_opt_job_model_release(&a->model);
    return rp_opt_job_model_init(&a->model, a->job, &fused, err);
}

/* ------------------------------------------------------------------ the search */

/* Searches the best groups, keeping the tensors of a cluster of operators together (the third
   theorem). */
static enum rp_code group_tensors(struct job_ctx *a, struct rp_err *err)
{
    struct rp_opt_plan *p = &a->plan;
    double factor = a->ops.n ? 1 : 0, best;
    size_t tried = 0;
    int64_t then;

    p->groups = p->recorded;
    p->ngroups = p->nrecorded;
    if (!(a->limits->families >> RP_OPT_TENSOR & 1))
        return RP_OK;
    uint8_t *joined = RP_ARENA_NEW(a->arena, uint8_t, a->model.n + 1);
    RP_TRY(rp_arena_check(a->arena, "searching", err));
    rp_opt_groups_of_ops(&a->model, &a->ops, joined);
    a->model.chain.joined = joined;
    RP_TRY(rp_opt_search_groups(&a->model.chain, a->limits, a->ends, &best, &tried, err));
    a->tried += tried;
    RP_TRY(list_groups(a, a->ends, &p->groups, &p->ngroups, err));
    RP_TRY(groups_step(a, p->groups, p->ngroups, factor, &then, err));
    if (a->asked->from ||
        (double)(p->best_ns - then) >= RP_OPT_LEAST_GAIN * (double)p->baseline_ns) {
        add_group_move(a, then);
        return RP_OK;
    }
    p->groups = p->recorded;
    p->ngroups = p->nrecorded;
    return RP_OK;
}

static enum rp_code prepare(struct job_ctx *a, struct rp_err *err)
{
    struct rp_opt_plan *p = &a->plan;
    double spread = a->model.means.spread_ratio, recorded = a->model.means.iteration_ns;

    a->ends = RP_ARENA_NEW(a->arena, uint8_t, a->model.n + 1);
    a->recorded = RP_ARENA_NEW(a->arena, uint8_t, a->model.n + 1);
    p->moves = RP_ARENA_NEW(a->arena, struct rp_opt_move, 64);

    const struct rp_opt_job_model *m = &a->model;
    a->plan.tensors = RP_ARENA_NEW(a->arena, struct rp_opt_tensor, m->n + 1);
    RP_TRY(rp_arena_check(a->arena, "searching", err));
    for (size_t i = 0; i < m->n; i++) {
        const struct rp_job_tensor *t = &a->job->tensors.at[m->tensors[i]];

        a->plan.tensors[i] = (struct rp_opt_tensor){t->id, rp_arena_text(a->arena, t->name),
                                                    t->bytes, llround(m->latest_ns[i])};
    }
    a->plan.ntensors = m->n;
    RP_TRY(rp_arena_check(a->arena, "searching", err));
    rp_opt_job_recorded(&a->model, a->recorded);
    memcpy(a->ends, a->recorded, a->model.n);
    RP_TRY(list_groups(a, a->recorded, &p->recorded, &p->nrecorded, err));
    RP_TRY(groups_step(a, p->recorded, p->nrecorded, 0, &p->baseline_ns, err));
    p->best_ns = p->baseline_ns;
    a->doubt = (isnan(spread) ? 0 : spread) +
               (recorded > 0 ? fabs((double)p->baseline_ns / recorded - 1) : 0);
    return RP_OK;
}

/* Searches other changes on top. */
static enum rp_code search_whatifs(struct job_ctx *a, struct rp_err *err)
{
    struct rp_sim_part part = {0};
    const struct rp_sim_part *parts[] = {&part};
    struct rp_worlds x = {0};
    struct rp_changes tries = {0};
    struct rp_job_plan plan;
    unsigned framework = rp_opt_framework(a->plan.source);
    const char *text = "";
    enum rp_code code =
        make_job_plan(a, a->plan.groups, a->plan.ngroups, a->ops.n ? 1 : 0, &plan, err);

    if (code == RP_OK)
        code = rp_sim_part_of_plan(&part, a->job, &plan, err);
    if (code == RP_OK)
        code = rp_worlds_init(&x, parts, 1, NULL, err);
    if (code == RP_OK)
        code = rp_opt_try_whatifs(&x, a->limits, a->arena, &tries, err);
    if (code == RP_OK)
        code = rp_opt_combine_whatifs(&x, a->limits, "", NULL, a->arena, &tries, err);
    for (size_t i = 0; code == RP_OK && i < tries.n; i++) {
        const struct rp_change *t = &tries.at[i];
        struct rp_opt_move m = {
            .move = t->row->name,
            .family = rp_opt_family_of(t->row->move->family),
            .what = t->row->summary,
            .apply = rp_whatif_apply_in(framework, t->row->name, rp_whatif_how(t->row, t->text)),
            .what_if = t->text,
            .assumes = rp_whatif_assumed(t->row, framework),
            .sure = true};
        int64_t then;

        if (!t->chosen)
            continue;
        text = rp_arena_textf(a->arena, "%s%s%s", text, *text ? "+" : "", t->text);
        code = rp_worlds_step(&x, text, &then, err);
        m.gain_low_ns = llround((double)(a->plan.best_ns - then) / (1 + a->doubt));
        m.gain_high_ns = llround((double)(a->plan.best_ns - then) * (1 + a->doubt));
        if (code == RP_OK)
            add_move(a, m, then);
    }
    a->tried += x.evaluated;
    if (code == RP_OK)
        code = rp_opt_list_tried(&tries, x.step_ns, a->plan.nmoves > 0, a->arena, a->out, err);
    rp_worlds_release(&x);
    rp_sim_part_release(&part);
    return code;
}

static enum rp_code search_job(struct job_ctx *a, struct rp_err *err)
{
    const unsigned here = 1u << RP_OPT_TENSOR | 1u << RP_OPT_FUSION;

    RP_TRY(prepare(a, err));
    RP_TRY(fuse_ops(a, err));
    RP_TRY(group_tensors(a, err));
    if (a->limits->families & ~here)
        RP_TRY(search_whatifs(a, err));
    return rp_arena_check(a->arena, "searching", err);
}

static void add_notes(struct job_ctx *a)
{
    const struct rp_job_costs *c = &a->model.costs;
    struct rp_opt_answer *out = a->out;
    double recorded = a->model.means.iteration_ns;

    for (size_t i = 0; i < a->job->remarks.n; i++)
        RP_NOTE(out, a->arena, rp_arena_text(a->arena, a->job->remarks.at[i]));
    RP_NOTE(out, a->arena,
            rp_arena_textf(
                a->arena,
                "what was learned from the recorded groups reproduces the recorded step within "
                "%.1f %%",
                recorded > 0 ? 100 * fabs((double)a->plan.baseline_ns / recorded - 1) : 0));
    if (c->cycle_ns > 0)
        RP_NOTE(
            out, a->arena,
            rp_arena_textf(a->arena,
                           "ranks wake every %s: a step is the mean over %zu points of this cycle",
                           rp_units_time(a->arena, llround(c->cycle_ns)), a->model.nphases));
    if (c->one_size)
        RP_NOTE(out, a->arena,
                "all recorded messages have the same size, so latency and rate "
                "cannot be told apart: gains are uncertain");
    if (c->copies_unknown)
        RP_NOTE(out, a->arena,
                "no group of several tensors was recorded: copies into and out of one are taken to "
                "cost nothing");
    if (a->ops.given)
        RP_NOTE(out, a->arena,
                rp_arena_textf(a->arena, "operators of the file that the job does not have: %zu",
                               a->ops.given));
}

static enum rp_code save_groups(struct job_ctx *a, struct rp_err *err)
{
    char *text = RP_ARENA_NEW(a->arena, char, a->model.n + 1);

    RP_TRY(rp_arena_check(a->arena, "searching", err));
    for (size_t i = 0; i < a->model.n; i++)
        text[i] = a->ends[i] ? '1' : '0';
    return rp_opt_workspace_save(a->limits->workspace, text, NULL, a->plan.best_ns, err);
}

enum rp_code rp_opt_answer_job(const struct rp_job *job, const struct rp_opt_job_asked *asked,
                               struct rp_opt_limits *limits, struct rp_arena *arena,
                               struct rp_opt_answer *out, struct rp_err *err)
{
    struct job_ctx a = {.job = job, .asked = asked, .limits = limits, .arena = arena, .out = out};
    enum rp_code code = rp_opt_job_model_init(&a.model, job, NULL, err);

    a.plan = (struct rp_opt_plan){.source = job->has_servers ? RP_OPT_BYTEPS : RP_OPT_HOROVOD,
                                  .ranks = (int64_t)job->nranks,
                                  .bucket_cap_mb = NAN,
                                  .best_low_ns = RP_ABSENT_I64,
                                  .best_high_ns = RP_ABSENT_I64,
                                  .peak_bytes = RP_ABSENT_I64,
                                  .peak_then_bytes = RP_ABSENT_I64};
    if (code == RP_OK)
        code = search_job(&a, err);
    if (code == RP_OK)
        code = rp_opt_answer_plan(&a.plan, arena, out, err);
    if (code == RP_OK && limits->workspace)
        code = save_groups(&a, err);
    out->recorded_ns = llround(a.model.means.iteration_ns);
    out->checked_ns = a.plan.best_ns;
    out->evaluated = (int64_t)a.tried;
    rp_opt_summarise(arena, out);
    if (code == RP_OK)
        add_notes(&a);
    rp_opt_job_model_release(&a.model);
    return code;
}
