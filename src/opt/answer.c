/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a recorded run. Its moves stand in the order of gain for effort. The gain of a move
 * is what a step loses when it is made after those before it, so gains add up; its interval is how
 * that differs where what is not known is different (rp_opt_run_worlds), widened by how far steps
 * differ.
 */
#include "opt/optimize.h"

#include "result/print_units.h"
#include "sim/whatif/optimizer_kind.h"

#include <math.h>
#include <string.h>

struct answer_ctx {
    struct rp_opt_run x;
    struct rp_opt_limits *limits;
    struct rp_opt_buckets buckets;
    struct rp_opt_tries tries;
    struct rp_opt_plan plan;
    struct rp_arena *arena;
    struct rp_opt_answer *out;
    const char *text; /* of the moves so far */
    int64_t before[RP_OPT_WORLDS];
};

/* ------------------------------------------------------------------ moves */

static void set_gain(const struct answer_ctx *a, struct rp_opt_move *m, const int64_t *then)
{
    double more = 1 + a->x.doubt;
    size_t i;

    m->gain_ns = m->gain_low_ns = m->gain_high_ns = a->before[0] - then[0];
    for (i = 1; i < RP_OPT_WORLDS; i++) {
        int64_t gain = a->before[i] - then[i];

        m->gain_low_ns = gain < m->gain_low_ns ? gain : m->gain_low_ns;
        m->gain_high_ns = gain > m->gain_high_ns ? gain : m->gain_high_ns;
    }
    m->gain_low_ns = rp_sim_scaled(m->gain_low_ns, m->gain_low_ns > 0 ? 1 / more : more);
    m->gain_high_ns = rp_sim_scaled(m->gain_high_ns, m->gain_high_ns > 0 ? more : 1 / more);
    m->step_ns = then[0];
    m->sure = m->gain_low_ns > 0;
}

/* Adds what-ifs to the plan, and simulates it again. */
static enum rp_code add_move(struct answer_ctx *a, struct rp_opt_move m, struct rp_err *err)
{
    const char *text = rp_arena_textf(a->arena, "%s%s%s", a->text, *a->text ? "+" : "", m.what_if);
    int64_t then[RP_OPT_WORLDS];

    RP_TRY(rp_whatif_assumes(m.what_if, a->arena, &m.assumes, err));
    RP_TRY(rp_opt_run_worlds(&a->x, text, then, err));
    set_gain(a, &m, then);
    memcpy(a->before, then, sizeof then);
    a->text = text;
    a->plan.moves[a->plan.nmoves++] = m;
    return rp_arena_check(a->arena, "searching", err);
}

static enum rp_code add_bucket_move(struct answer_ctx *a, struct rp_err *err)
{
    struct rp_opt_move m = {
        .move = "bucket",
        .family = RP_OPT_TENSOR,
        .what = rp_arena_textf(a->arena, "gradients are gathered into buckets of %g MiB",
                               a->buckets.cap_mb),
        .apply = rp_arena_textf(a->arena, "DistributedDataParallel(…, bucket_cap_mb=%g)",
                                a->buckets.cap_mb),
        .what_if = a->buckets.text};

    return a->buckets.better ? add_move(a, m, err) : RP_OK;
}

/* The next move is the one with the largest gain for its effort. */
static enum rp_code next_whatif(struct answer_ctx *a, const bool *made, size_t *out,
                                struct rp_err *err)
{
    double best = -INFINITY;
    size_t i;

    *out = SIZE_MAX;
    for (i = 0; i < a->tries.n; i++) {
        const struct rp_opt_try *t = &a->tries.at[i];
        const char *text;
        int64_t then;
        double gain;

        if (!t->chosen || made[i])
            continue;
        text = rp_arena_textf(a->arena, "%s%s%s", a->text, *a->text ? "+" : "", t->text);
        RP_TRY(rp_arena_check(a->arena, "searching", err));
        RP_TRY(rp_opt_run_step(&a->x, text, &then, err));
        gain = (double)(a->before[0] - then) / (double)t->row->move->effort;
        if (gain > best) {
            best = gain;
            *out = i;
        }
    }
    return RP_OK;
}

static enum rp_code add_whatif_moves(struct answer_ctx *a, struct rp_err *err)
{
    bool *made = RP_ARENA_NEW(a->arena, bool, a->tries.n + 1);
    size_t i;

    RP_TRY(rp_arena_check(a->arena, "searching", err));
    for (;;) {
        const struct rp_opt_try *t;
        struct rp_opt_move m;

        RP_TRY(next_whatif(a, made, &i, err));
        if (i == SIZE_MAX)
            return RP_OK;
        made[i] = true;
        t = &a->tries.at[i];
        m = (struct rp_opt_move){.move = t->row->name,
                                 .family = t->family,
                                 .what = t->row->summary,
                                 .apply = t->row->move->apply,
                                 .what_if = t->text};
        RP_TRY(add_move(a, m, err));
    }
}

/* ------------------------------------------------------------------ the plan */

static enum rp_code list_regions(struct answer_ctx *a, const char *text, struct rp_err *err)
{
    struct rp_whatif_list list;
    size_t i;

    RP_TRY(rp_whatif_parse(text, a->arena, &list, err));
    a->plan.regions = RP_ARENA_NEW(a->arena, struct rp_opt_region, list.n);
    RP_TRY(rp_arena_check(a->arena, "searching", err));
    for (i = 0; i < list.n; i++)
        a->plan.regions[a->plan.nregions++] =
            (struct rp_opt_region){list.calls[i].args.value ? list.calls[i].args.value : "step"};
    return RP_OK;
}

static enum rp_code describe_plan(struct answer_ctx *a, struct rp_err *err)
{
    struct rp_optimizer_kind kind;
    size_t i;

    rp_optimizer_kind(&a->x.run, 0, &kind);
    a->plan.optimizer = strcmp(kind.name, "optimizer") != 0 ? kind.name : NULL;
    a->plan.source =
        a->x.run.parts[0]->gradients.n || a->plan.optimizer ? RP_OPT_TORCH : RP_OPT_OTHER;
    a->plan.peak_bytes = a->plan.peak_then_bytes = RP_ABSENT_I64;
    for (i = 0; i < a->plan.nmoves; i++) {
        a->plan.fused_optimizer |= !strcmp(a->plan.moves[i].move, "fused-optimizer");
        if (a->plan.moves[i].family == RP_OPT_GRAPHS)
            RP_TRY(list_regions(a, a->plan.moves[i].what_if, err));
    }
    return rp_opt_list_buckets(&a->x, &a->buckets, a->arena, &a->plan, err);
}

/* ------------------------------------------------------------------ the answer */

enum rp_code rp_opt_answer_plan(const struct rp_opt_plan *plan, struct rp_arena *arena,
                                struct rp_opt_answer *out, struct rp_err *err)
{
    size_t i;

    out->baseline_ns = plan->baseline_ns;
    out->best_ns = plan->best_ns;
    out->best_low_ns = plan->best_low_ns;
    out->best_high_ns = plan->best_high_ns;
    out->peak_bytes = plan->peak_bytes;
    out->peak_then_bytes = plan->peak_then_bytes;
    out->gain_ratio = plan->baseline_ns > 0
                          ? (double)(plan->baseline_ns - plan->best_ns) / (double)plan->baseline_ns
                          : (double)NAN;
    out->moves = RP_ARENA_NEW(arena, struct rp_opt_move_row, plan->nmoves + 1);
    RP_TRY(rp_arena_check(arena, "searching", err));
    for (i = 0; i < plan->nmoves; i++) {
        const struct rp_opt_move *m = &plan->moves[i];

        out->moves[out->nmoves++] =
            (struct rp_opt_move_row){m->move,         rp_opt_family_names[m->family],
                                     m->what,         m->apply,
                                     m->what_if,      m->assumes,
                                     m->gain_ns,      m->gain_low_ns,
                                     m->gain_high_ns, m->step_ns,
                                     m->sure};
    }
    RP_TRY(rp_opt_exports_fill(plan, arena, &out->exports, err));
    out->exported = out->exports.files;
    out->nexported = out->exports.nfiles;
    return rp_arena_check(arena, "searching", err);
}

static enum rp_code search_run(struct answer_ctx *a, struct rp_err *err)
{
    struct rp_opt_plan *plan = &a->plan;

    a->buckets = (struct rp_opt_buckets){.cap_mb = NAN, .text = ""};
    if (a->limits->families >> RP_OPT_TENSOR & 1)
        RP_TRY(rp_opt_search_buckets(&a->x, a->limits, a->arena, &a->buckets, err));
    RP_TRY(rp_opt_search_whatifs(&a->x, a->limits, a->buckets.better ? a->buckets.text : "",
                                 a->arena, &a->tries, err));
    plan->moves = RP_ARENA_NEW(a->arena, struct rp_opt_move, a->tries.n + 2);
    RP_TRY(rp_arena_check(a->arena, "searching", err));
    RP_TRY(rp_opt_run_worlds(&a->x, "", a->before, err));
    plan->baseline_ns = a->before[0];
    RP_TRY(add_bucket_move(a, err));
    RP_TRY(add_whatif_moves(a, err));
    plan->best_ns = a->before[0];
    plan->best_low_ns = plan->best_high_ns = RP_ABSENT_I64;
    return describe_plan(a, err);
}

enum rp_code rp_opt_answer_run(const struct rp_opt_parts *parts, struct rp_opt_limits *limits,
                               struct rp_arena *arena, struct rp_opt_answer *out,
                               struct rp_err *err)
{
    struct answer_ctx a = {.limits = limits, .arena = arena, .out = out, .text = ""};
    enum rp_code code = rp_opt_run_init(&a.x, parts->parts, parts->n, parts->weights, err);

    a.plan.ranks = (int64_t)parts->given;
    if (code == RP_OK)
        code = search_run(&a, err);
    out->recorded_ns = a.x.recorded_ns;
    out->checked_ns = RP_ABSENT_I64;
    if (code == RP_OK)
        code = rp_opt_answer_plan(&a.plan, arena, out, err);
    out->evaluated = (int64_t)a.x.evaluated;
    rp_opt_run_release(&a.x);
    return code;
}
