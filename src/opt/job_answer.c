/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a job (dPRO directory): its groups of tensors are searched on the model of
 * job_model.c; then the recorded groups and those of the plan are simulated message by message, and
 * what-ifs are searched on top.
 */
#include "opt/job_model.h"

#include "base/order.h"
#include "sim/model/simulated_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct job_ctx {
    const struct rp_job *job;
    struct rp_opt_job_model model;
    struct rp_opt_limits *limits;
    struct rp_opt_plan plan;
    struct rp_arena *arena;
    uint8_t *ends, *recorded;
    size_t tried;
};

/* ------------------------------------------------------------------ groups */

static int by_id(const void *a, const void *b)
{
    return RP_COMPARE(*(const int64_t *)a, *(const int64_t *)b);
}

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

static enum rp_code list_tensors(struct job_ctx *a, struct rp_err *err)
{
    const struct rp_opt_job_model *m = &a->model;
    size_t i;

    a->plan.tensors = RP_ARENA_NEW(a->arena, struct rp_opt_tensor, m->n + 1);
    RP_TRY(rp_arena_check(a->arena, "searching", err));
    for (i = 0; i < m->n; i++) {
        const struct rp_job_tensor *t = &a->job->tensors.at[m->tensors[i]];

        a->plan.tensors[i] = (struct rp_opt_tensor){t->id, rp_arena_text(a->arena, t->name),
                                                    t->bytes, llround(m->latest_ns[i])};
    }
    a->plan.ntensors = m->n;
    return rp_arena_check(a->arena, "searching", err);
}

/* ------------------------------------------------------------------ simulating it */

static enum rp_code make_job_plan(struct job_ctx *a, const struct rp_opt_group *groups, size_t n,
                                  struct rp_job_plan *out, struct rp_err *err)
{
    struct rp_job_plan_group *list = RP_ARENA_NEW(a->arena, struct rp_job_plan_group, n + 1);
    size_t g, i;

    RP_TRY(rp_arena_check(a->arena, "searching", err));
    for (g = 0; g < n; g++) {
        int64_t *ids = RP_ARENA_NEW(a->arena, int64_t, groups[g].ntensors);

        RP_TRY(rp_arena_check(a->arena, "searching", err));
        for (i = 0; i < groups[g].ntensors; i++)
            ids[i] = a->plan.tensors[groups[g].tensors[i]].id;
        qsort(ids, groups[g].ntensors, sizeof *ids, by_id);
        list[g] = (struct rp_job_plan_group){groups[g].ntensors, ids};
    }
    *out = (struct rp_job_plan){.ngroups = n, .groups = list};
    return RP_OK;
}

static enum rp_code part_step(const struct rp_sim_part *part, int64_t *out, struct rp_err *err)
{
    struct rp_sim_run run;
    struct rp_sim_result r = {0};
    enum rp_code code = rp_sim_run_init(&run, &part, 1, err);

    if (code == RP_OK)
        code = rp_simulate(&run.overlay, &r, err);
    if (code == RP_OK)
        code = rp_sim_step_ns(&run, &r, out, err);
    rp_sim_result_release(&r);
    rp_sim_run_release(&run);
    return code;
}

/* From nothing, message by message. */
static enum rp_code groups_step(struct job_ctx *a, const struct rp_opt_group *groups, size_t n,
                                int64_t *out, struct rp_err *err)
{
    struct rp_sim_part part = {0};
    struct rp_job_plan plan;
    enum rp_code code = make_job_plan(a, groups, n, &plan, err);

    if (code == RP_OK)
        code = rp_sim_part_of_plan(&part, a->job, &plan, err);
    if (code == RP_OK)
        code = part_step(&part, out, err);
    rp_sim_part_release(&part);
    return code;
}

/* ------------------------------------------------------------------ the plan */

static const char *groups_text(struct job_ctx *a)
{
    const char *text = "";
    size_t g, i;

    for (g = 0; g < a->plan.ngroups; g++)
        for (i = 0; i < a->plan.groups[g].ntensors; i++)
            text = rp_arena_textf(a->arena, "%s%s%lld", text,
                                  i   ? "+"
                                  : g ? ","
                                      : "",
                                  (long long)a->plan.tensors[a->plan.groups[g].tensors[i]].id);
    return text;
}

static void add_group_move(struct job_ctx *a, double doubt)
{
    struct rp_opt_plan *p = &a->plan;
    int64_t gain = p->baseline_ns - p->best_ns;
    bool known = !a->model.costs.one_size;

    p->moves[p->nmoves++] = (struct rp_opt_move){
        .move = "tensor-fusion",
        .family = RP_OPT_TENSOR,
        .what = rp_arena_textf(a->arena, "gradients are sent in the groups %s", groups_text(a)),
        .apply = "hvd.DistributedOptimizer(…, groups=[…]) with these groups; dPRO: "
                 "HOROVOD_TENSOR_GROUP_FILE",
        .assumes = "operators take as long as recorded, messages are as fast as recorded ones of "
                   "their size, and ranks wake in the recorded cycle",
        .gain_ns = gain,
        .gain_low_ns = known ? llround((double)gain / (1 + doubt)) : RP_ABSENT_I64,
        .gain_high_ns = known ? llround((double)gain * (1 + doubt)) : RP_ABSENT_I64,
        .step_ns = p->best_ns,
        .sure = known};
}

static enum rp_code search_groups(struct job_ctx *a, struct rp_err *err)
{
    struct rp_opt_plan *p = &a->plan;
    double best, spread = a->model.means.spread_ratio, error;
    int64_t then;

    a->ends = RP_ARENA_NEW(a->arena, uint8_t, a->model.n + 1);
    a->recorded = RP_ARENA_NEW(a->arena, uint8_t, a->model.n + 1);
    p->moves = RP_ARENA_NEW(a->arena, struct rp_opt_move, 64);
    RP_TRY(list_tensors(a, err));
    rp_opt_job_recorded(&a->model, a->recorded);
    memcpy(a->ends, a->recorded, a->model.n);
    RP_TRY(list_groups(a, a->recorded, &p->recorded, &p->nrecorded, err));
    RP_TRY(groups_step(a, p->recorded, p->nrecorded, &p->baseline_ns, err));
    if (a->limits->families >> RP_OPT_TENSOR & 1)
        RP_TRY(rp_opt_search_groups(&a->model.chain, a->limits, a->ends, &best, &a->tried, err));
    RP_TRY(list_groups(a, a->ends, &p->groups, &p->ngroups, err));
    RP_TRY(groups_step(a, p->groups, p->ngroups, &then, err));
    p->best_ns = p->baseline_ns;
    error = a->model.means.iteration_ns > 0
                ? fabs((double)p->baseline_ns / a->model.means.iteration_ns - 1)
                : 0;
    if ((double)(p->baseline_ns - then) < RP_OPT_LEAST_GAIN * (double)p->baseline_ns) {
        p->groups = p->recorded;
        p->ngroups = p->nrecorded;
        return RP_OK;
    }
    p->best_ns = then;
    p->regrouped = true;
    add_group_move(a, (isnan(spread) ? 0 : spread) + error);
    return rp_arena_check(a->arena, "searching", err);
}

static enum rp_code save_groups(struct job_ctx *a, struct rp_err *err)
{
    char *text = RP_ARENA_NEW(a->arena, char, a->model.n + 1);
    size_t i;

    RP_TRY(rp_arena_check(a->arena, "searching", err));
    for (i = 0; i < a->model.n; i++)
        text[i] = a->ends[i] ? '1' : '0';
    return rp_opt_workspace_save(a->limits->workspace, text, NULL, a->plan.best_ns, err);
}

enum rp_code rp_opt_answer_job(const struct rp_job *job, struct rp_opt_limits *limits,
                               struct rp_arena *arena, struct rp_opt_answer *out,
                               struct rp_err *err)
{
    struct job_ctx a = {.job = job, .limits = limits, .arena = arena};
    enum rp_code code = rp_opt_job_model_init(&a.model, job, err);

    a.plan = (struct rp_opt_plan){.source = job->has_servers ? RP_OPT_BYTEPS : RP_OPT_HOROVOD,
                                  .ranks = (int64_t)job->nranks,
                                  .bucket_cap_mb = NAN,
                                  .first_bucket_mb = NAN,
                                  .best_low_ns = RP_ABSENT_I64,
                                  .best_high_ns = RP_ABSENT_I64,
                                  .peak_bytes = RP_ABSENT_I64,
                                  .peak_then_bytes = RP_ABSENT_I64};
    if (code == RP_OK)
        code = search_groups(&a, err);
    if (code == RP_OK)
        code = rp_opt_answer_plan(&a.plan, arena, out, err);
    if (code == RP_OK && limits->workspace)
        code = save_groups(&a, err);
    out->recorded_ns = llround(a.model.means.iteration_ns);
    out->checked_ns = a.plan.best_ns;
    out->evaluated = (int64_t)a.tried;
    rp_opt_summarise(arena, out);
    rp_opt_job_model_release(&a.model);
    return code;
}
