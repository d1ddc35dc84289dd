/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buckets of DistributedDataParallel. The model of bucket_model.h orders all sizes; the best of
 * them, and sizes around them, are simulated. Among those that are nearly as short as the shortest,
 * the one is taken that is shortest if the transport differs from the fit, and of equals the
 * largest. Buckets of different sizes are searched with the same model, and simulated.
 */
#include "opt/bucket_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps that differ by less are the same: half of what is worth a change. */
#define SAME_STEP (RP_OPPORTUNITY_LEAST / 2)

#define FAR_OFF 0.1
RP_LIMIT(FAR_OFF, "of a step",
         "sizes that the model of groups puts so far behind are not simulated");
#define SIZES_MOST 64
RP_LIMIT(SIZES_MOST, "sizes", "more than are listed");

struct size {
    double mb, model_ns;
    int64_t step_ns, worst_ns;
};

struct bucket_search {
    struct rp_worlds *x;
    struct rp_opt_limits *limits;
    struct rp_arena *arena;
    struct rp_opt_bucket_model model;
    struct size sizes[SIZES_MOST];
    size_t nsizes;
    uint8_t *ends, *others; /* room */
    struct rp_err *err;
};

/* ------------------------------------------------------------------ sizes */

/* The sizes that people write; the first is PyTorch's default. */
static const double listed_sizes[] = {25, 0.1, 0.2, 0.3, 0.5, 0.75, 1,   1.5, 2,   2.5, 3,
                                      4,  5,   6,   8,   10,  12,   15,  20,  30,  40,  50,
                                      60, 80,  100, 120, 150, 200,  300, 400, 600, 800, 1000};

/* Lists sizes with different buckets; of sizes with the same ones only the largest. */
static enum rp_code list_sizes(struct bucket_search *s)
{
    uint8_t *seen = calloc(SIZES_MOST, s->model.n + 1);
    size_t i, k, n = s->model.n;

    RP_TRY(rp_err_need(seen, s->err, "searching"));
    for (i = 0; i < sizeof listed_sizes / sizeof listed_sizes[0]; i++) {
        struct size size = {.mb = listed_sizes[i]};

        rp_opt_bucket_ends(&s->model, size.mb, s->ends);
        for (k = 0; k < s->nsizes && memcmp(seen + k * n, s->ends, n) != 0;)
            k++;
        if (k < s->nsizes) {
            s->sizes[k].mb = k ? size.mb : s->sizes[k].mb;
            continue;
        }
        memcpy(seen + s->nsizes * n, s->ends, n);
        if (rp_opt_groups_step(&s->model.chain, s->ends, &size.model_ns, s->err) != RP_OK)
            break;
        s->sizes[s->nsizes++] = size;
    }
    free(seen);
    return RP_OK;
}

static const char *size_text(struct bucket_search *s, const struct size *size)
{
    return rp_arena_textf(s->arena, "bucket=%gMB", size->mb);
}

/* Chooses the safest of the sizes that are about as good as the best, and of those the largest. */
static enum rp_code choose_size(struct bucket_search *s, struct size *out)
{
    int64_t least = INT64_MAX, safest = INT64_MAX;

    *out = (struct size){.mb = NAN};
    for (size_t i = 0; i < s->nsizes; i++)
        least = s->sizes[i].step_ns < least ? s->sizes[i].step_ns : least;
    for (size_t i = 0; i < s->nsizes; i++)
        if ((double)s->sizes[i].step_ns <= (1 + SAME_STEP) * (double)least &&
            (safest == INT64_MAX || !rp_opt_over(s->limits))) {
            struct size *size = &s->sizes[i];
            int64_t steps[RP_WORLDS];

            RP_TRY(rp_worlds_steps(s->x, size_text(s, size), NULL, steps, s->err));
            for (size_t k = 0; k < RP_LEANS; k++)
                size->worst_ns = steps[k] > size->worst_ns ? steps[k] : size->worst_ns;
            safest = s->sizes[i].worst_ns < safest ? s->sizes[i].worst_ns : safest;
        }
    for (size_t i = 0; i < s->nsizes; i++)
        if (s->sizes[i].worst_ns &&
            (double)s->sizes[i].worst_ns <= (1 + SAME_STEP) * (double)safest &&
            (isnan(out->mb) || s->sizes[i].mb > out->mb))
            *out = s->sizes[i];
    return RP_OK;
}

/* ------------------------------------------------------------------ different sizes */

static const char *list_text(struct bucket_search *s, const uint8_t *ends)
{
    const char *text = "bucket=";
    size_t i, first = 0;

    for (i = 0; i < s->model.n; i++)
        if (ends[i] || i + 1 == s->model.n) {
            text = rp_arena_textf(s->arena, "%s%s%zu", text, first ? "," : "", i + 1 - first);
            first = i + 1;
        }
    return strchr(text, ',') ? text : rp_arena_textf(s->arena, "%s,", text);
}

/* Searches buckets of any sizes, which are used if they beat those of one size. */
static enum rp_code search_list(struct bucket_search *s, const struct size *best,
                                struct rp_opt_buckets *out)
{
    int64_t step;
    double ns;

    rp_opt_bucket_ends(&s->model, best->mb, s->others);
    RP_TRY(rp_opt_search_groups(&s->model.chain, s->limits, s->others, &ns, &out->tried, s->err));
    const char *text = list_text(s, s->others);
    RP_TRY(rp_arena_check(s->arena, "searching", s->err));
    RP_TRY(rp_worlds_step(s->x, text, &step, s->err));
    if ((double)step >= (1 - SAME_STEP) * (double)best->step_ns ||
        (double)step >= (1 - SAME_STEP) * (double)s->x->step_ns)
        return RP_OK;
    out->list = text;
    out->ends = RP_ARENA_NEW(s->arena, uint8_t, s->model.n + 1);
    RP_TRY(rp_arena_check(s->arena, "searching", s->err));
    memcpy(out->ends, s->others, s->model.n);
    return RP_OK;
}

static enum rp_code search_buckets(struct bucket_search *s, struct rp_opt_buckets *out)
{
    struct size best;

    s->ends = RP_ARENA_NEW(s->arena, uint8_t, s->model.n + 1);
    s->others = RP_ARENA_NEW(s->arena, uint8_t, s->model.n + 1);
    RP_TRY(rp_arena_check(s->arena, "searching", s->err));
    RP_TRY(list_sizes(s));

    /* Simulate the sizes that may be best. */
    double least = INFINITY;
    size_t i, kept = 0;
    for (i = 0; i < s->nsizes; i++)
        least = fmin(least, s->sizes[i].model_ns);
    for (i = 0; i < s->nsizes; i++) {
        struct size size = s->sizes[i];

        if (size.model_ns - least > FAR_OFF * (double)s->x->step_ns)
            continue;
        if (kept && rp_opt_over(s->limits))
            break;
        RP_TRY(rp_worlds_step(s->x, size_text(s, &size), &size.step_ns, s->err));
        s->sizes[kept++] = size;
    }
    s->nsizes = kept;
    RP_TRY(rp_arena_check(s->arena, "searching", s->err));

    RP_TRY(choose_size(s, &best));
    out->cap_mb = best.mb;
    out->text = size_text(s, &best);
    out->alone_ns = best.step_ns;
    out->better = (double)best.step_ns < (1 - SAME_STEP) * (double)s->x->step_ns;
    RP_TRY(search_list(s, &best, out));
    return rp_arena_check(s->arena, "searching", s->err);
}

enum rp_code rp_opt_search_buckets(struct rp_worlds *x, struct rp_opt_limits *limits,
                                   struct rp_arena *arena, struct rp_opt_buckets *out,
                                   struct rp_err *err)
{
    struct rp_err why = RP_ERR_INIT;
    struct bucket_search s = {.x = x, .limits = limits, .arena = arena, .err = &why};
    enum rp_code code = rp_opt_bucket_model_init(&s.model, x, &why);

    *out = (struct rp_opt_buckets){.cap_mb = NAN, .text = "", .alone_ns = RP_ABSENT_I64};
    if (code == RP_OK)
        code = search_buckets(&s, out);
    rp_opt_bucket_model_release(&s.model);
    if (code == RP_UNSUPPORTED) {
        out->impossible = rp_arena_text(arena, why.text);
        return rp_arena_check(arena, "searching", err);
    }
    return code == RP_OK ? RP_OK : rp_err_set(err, code, "%s", why.text);
}

/* ------------------------------------------------------------------ the plan */

static enum rp_code list_groups(const struct rp_opt_plan *plan, const uint8_t *ends,
                                struct rp_arena *arena, struct rp_opt_group **out, size_t *n,
                                struct rp_err *err)
{
    struct rp_opt_group *groups = RP_ARENA_NEW(arena, struct rp_opt_group, plan->ntensors + 1);
    size_t i, first = 0;

    *out = groups;
    *n = 0;
    RP_TRY(rp_arena_check(arena, "searching", err));
    for (i = 0; i < plan->ntensors; i++) {
        struct rp_opt_group *g = &groups[*n];

        if (!g->tensors)
            g->tensors = RP_ARENA_NEW(arena, uint32_t, plan->ntensors - first);
        RP_TRY(rp_arena_check(arena, "searching", err));
        g->tensors[g->ntensors++] = (uint32_t)i;
        g->bytes += plan->tensors[i].bytes;
        if (ends[i] || i + 1 == plan->ntensors) {
            first = i + 1;
            ++*n;
        }
    }
    return RP_OK;
}

static enum rp_code fill_plan(const struct rp_opt_bucket_model *m, const struct rp_worlds *x,
                              const struct rp_opt_buckets *buckets, struct rp_arena *arena,
                              struct rp_opt_plan *plan, struct rp_err *err)
{
    uint8_t *ends = RP_ARENA_NEW(arena, uint8_t, m->n + 1);

    plan->tensors = RP_ARENA_NEW(arena, struct rp_opt_tensor, m->n + 1);
    RP_TRY(rp_arena_check(arena, "searching", err));
    for (size_t i = 0; i < m->n; i++)
        plan->tensors[plan->ntensors++] = (struct rp_opt_tensor){
            .id = (int64_t)i, .bytes = m->bytes[i], .ready_ns = llround(m->ready_ns[i])};
    rp_opt_bucket_recorded(m, x, ends);
    RP_TRY(list_groups(plan, ends, arena, &plan->recorded, &plan->nrecorded, err));
    if (buckets->list)
        memcpy(ends, buckets->ends, m->n);
    else if (buckets->better)
        rp_opt_bucket_ends(m, buckets->cap_mb, ends);
    return list_groups(plan, ends, arena, &plan->groups, &plan->ngroups, err);
}

enum rp_code rp_opt_list_buckets(const struct rp_worlds *x, const struct rp_opt_buckets *buckets,
                                 struct rp_arena *arena, struct rp_opt_plan *plan,
                                 struct rp_err *err)
{
    RP_SCOPED(rp_opt_bucket_model_release) struct rp_opt_bucket_model m = {0};

    plan->bucket_cap_mb = buckets->cap_mb;
    if (isnan(buckets->cap_mb))
        return RP_OK;
    RP_TRY(rp_opt_bucket_model_init(&m, x, err));
    return fill_plan(&m, x, buckets, arena, plan, err);
}
