/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buckets of DistributedDataParallel. All sizes that give different buckets are simulated;
 * among those that are nearly as short as the shortest the one is taken that is shortest where the
 * transport is not as it was fitted.
 */
#include "opt/optimize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIB 1048576.0

/* Sizes whose steps differ by less are the same. */
#define SAME_STEP 0.005

struct size {
    double mb;
    int64_t step_ns, worst_ns;
};

/* Of the first step. */
static void first_gradients(const struct rp_opt_run *x, size_t *first, size_t *end)
{
    const struct rp_sim_part *p = x->run.parts[0];
    size_t i = 0;

    while (i < p->gradients.n && p->gradients.at[i].step == RP_NO_STEP)
        i++;
    *first = i;
    while (i < p->gradients.n && p->gradients.at[i].step == p->gradients.at[*first].step)
        i++;
    *end = i;
}

/* The number of buckets of a size, and a number that tells their bounds apart. */
static uint64_t bounds_of(const struct rp_opt_run *x, double mb)
{
    const struct rp_sim_part *p = x->run.parts[0];
    uint64_t key = 14695981039346656037u;
    int64_t bytes = 0;
    size_t i, first, end;

    first_gradients(x, &first, &end);
    for (i = first; i < end; i++) {
        bytes += p->gradients.at[i].bytes;
        if ((double)bytes < mb * MIB && i + 1 < end)
            continue;
        key = (key ^ i) * 1099511628211u;
        bytes = 0;
    }
    return key;
}

static enum rp_code size_step(struct rp_opt_run *x, struct size *s, const char **text,
                              struct rp_arena *arena, struct rp_err *err)
{
    *text = rp_arena_textf(arena, "bucket=%gMB", s->mb);
    RP_TRY(rp_arena_check(arena, "searching", err));
    return rp_opt_run_step(x, *text, &s->step_ns, err);
}

static enum rp_code worst_of(struct rp_opt_run *x, struct size *s, struct rp_arena *arena,
                             struct rp_err *err)
{
    int64_t steps[RP_OPT_WORLDS];
    size_t i;

    RP_TRY(rp_opt_run_worlds(x, rp_arena_textf(arena, "bucket=%gMB", s->mb), steps, err));
    for (i = 0; i < RP_LEANS; i++)
        s->worst_ns = steps[i] > s->worst_ns ? steps[i] : s->worst_ns;
    return RP_OK;
}

/* Of the sizes that are about as good as the best the safest. */
static enum rp_code choose_size(struct rp_opt_run *x, struct size *sizes, size_t n,
                                struct rp_opt_limits *limits, struct rp_arena *arena,
                                struct size *out, struct rp_err *err)
{
    int64_t least = INT64_MAX;
    size_t i;

    *out = (struct size){.mb = NAN, .worst_ns = INT64_MAX};
    for (i = 0; i < n; i++)
        least = sizes[i].step_ns < least ? sizes[i].step_ns : least;
    for (i = 0; i < n; i++) {
        if ((double)sizes[i].step_ns > (1 + SAME_STEP) * (double)least)
            continue;
        if (!isnan(out->mb) && rp_opt_over(limits))
            break;
        RP_TRY(worst_of(x, &sizes[i], arena, err));
        if (sizes[i].worst_ns < out->worst_ns)
            *out = sizes[i];
    }
    return RP_OK;
}

enum rp_code rp_opt_search_buckets(struct rp_opt_run *x, struct rp_opt_limits *limits,
                                   struct rp_arena *arena, struct rp_opt_buckets *out,
                                   struct rp_err *err)
{
    static const double all[] = {25, 0.25, 0.5, 1,  1.5, 2,  3,  4,  5,   6,   8,
                                 10, 12.5, 16,  20, 32,  40, 50, 64, 100, 200, 400};
    struct size sizes[sizeof all / sizeof all[0]], best;
    uint64_t seen[sizeof all / sizeof all[0]];
    struct rp_err why = RP_ERR_INIT;
    size_t i, k, n = 0;
    enum rp_code code;

    *out = (struct rp_opt_buckets){.cap_mb = NAN, .text = "", .alone_ns = RP_ABSENT_I64};
    for (i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct size s = {.mb = all[i]};

        seen[n] = bounds_of(x, s.mb);
        for (k = 0; k < n && seen[k] != seen[n];)
            k++;
        if (k < n || (n && rp_opt_over(limits)))
            continue;
        code = size_step(x, &s, &out->text, arena, &why);
        if (code == RP_UNSUPPORTED) {
            out->impossible = rp_arena_text(arena, why.text);
            return RP_OK;
        }
        if (code != RP_OK)
            return rp_err_set(err, code, "%s", why.text);
        sizes[n++] = s;
    }
    RP_TRY(choose_size(x, sizes, n, limits, arena, &best, err));
    out->cap_mb = best.mb;
    out->text = rp_arena_textf(arena, "bucket=%gMB", best.mb);
    out->alone_ns = best.step_ns;
    out->better = (double)best.step_ns < (1 - SAME_STEP) * (double)x->step_ns;
    return rp_arena_check(arena, "searching", err);
}

/* ------------------------------------------------------------------ the plan */

static enum rp_code list_groups(const struct rp_opt_plan *plan, double mb, struct rp_arena *arena,
                                struct rp_opt_group **out, size_t *n, struct rp_err *err)
{
    struct rp_opt_group *groups = RP_ARENA_NEW(arena, struct rp_opt_group, plan->ntensors + 1);
    size_t i, first = 0, k;
    int64_t bytes = 0;

    *out = groups;
    *n = 0;
    RP_TRY(rp_arena_check(arena, "searching", err));
    for (i = 0; i < plan->ntensors; i++) {
        bytes += plan->tensors[i].bytes;
        if ((double)bytes < mb * MIB && i + 1 < plan->ntensors)
            continue;
        groups[*n] = (struct rp_opt_group){.ntensors = i + 1 - first,
                                           .tensors = RP_ARENA_NEW(arena, uint32_t, i + 1 - first),
                                           .bytes = bytes};
        for (k = first; groups[*n].tensors && k <= i; k++)
            groups[*n].tensors[k - first] = (uint32_t)k;
        (*n)++;
        first = i + 1;
        bytes = 0;
    }
    return rp_arena_check(arena, "searching", err);
}

enum rp_code rp_opt_list_buckets(const struct rp_opt_run *x, const struct rp_opt_buckets *buckets,
                                 struct rp_arena *arena, struct rp_opt_plan *plan,
                                 struct rp_err *err)
{
    const struct rp_sim_part *p = x->run.parts[0];
    size_t i, first, end;

    plan->bucket_cap_mb = buckets->cap_mb;
    plan->first_bucket_mb = NAN;
    first_gradients(x, &first, &end);
    if (isnan(buckets->cap_mb) || end == first)
        return RP_OK;
    plan->tensors = RP_ARENA_NEW(arena, struct rp_opt_tensor, end - first + 1);
    RP_TRY(rp_arena_check(arena, "searching", err));
    for (i = first; i < end; i++)
        plan->tensors[plan->ntensors++] =
            (struct rp_opt_tensor){.id = (int64_t)(i - first), .bytes = p->gradients.at[i].bytes};
    plan->regrouped = buckets->better;
    return list_groups(plan, buckets->cap_mb, arena, &plan->groups, &plan->ngroups, err);
}
