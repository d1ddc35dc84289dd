/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the details of a plan's moves: which chains of kernels become one, and which operators
 * change their number format. Counts and times are those of the first rank, per step.
 */
#include "base/hash.h"
#include "base/order.h"
#include "opt/optimize.h"
#include "sim/model/fusing.h"
#include "sim/whatif/nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LISTED_MOST 64
RP_LIMIT(LISTED_MOST, "clusters or operators of a plan", "those that save the most are listed");

static const char *name_of(const struct rp_sim_run *run, uint32_t node)
{
    uint32_t op = rp_sim_note_of(run, node)->op;

    return op ? run->graph->names.at[op] : rp_sim_node_name(run, node);
}

static double steps_of(const struct rp_sim_run *run)
{
    return run->parts[0]->nsteps ? run->parts[0]->nsteps : 1;
}

/* ------------------------------------------------------------------ clusters */

struct chain {
    uint64_t key;
    uint32_t first, n; /* nodes of one of them */
    int64_t count, saved_ns;
};

typedef RP_VEC(struct chain) chain_vec;

/* Whether it is a link of a chain, as the what-if `fuse` decides. */
static bool is_link(const struct rp_sim_run *run, uint32_t i)
{
    return rp_sim_is_kernel(run, i) && rp_sim_kernel_traits(run, i) & RP_KERNEL_POINTWISE;
}

static enum rp_code add_chain(const struct rp_sim_run *run, chain_vec *list, struct rp_map *seen,
                              uint32_t first, uint32_t end, struct rp_err *err)
{
    struct chain c = {.first = first, .n = end - first, .count = 1};
    int64_t longest = 0, sum = 0, fused;

    for (uint32_t i = first; i < end; i++) {
        const char *name = name_of(run, i);
        int64_t dur = run->overlay.dur_ns.at[i];

        c.key = rp_hash_join(c.key, rp_hash_bytes(name, strlen(name)));
        longest = dur > longest ? dur : longest;
        sum = rp_ns_sum(sum, dur);
    }
    fused = rp_sim_scaled(longest, rp_sim_fused_factor(longest));
    c.saved_ns = fused < sum ? sum - fused : 0;
    uint32_t at = rp_map_get(seen, c.key);
    if (at < list->n && list->at) {
        list->at[at].count++;
        list->at[at].saved_ns = rp_ns_sum(list->at[at].saved_ns, c.saved_ns);
        return RP_OK;
    }
    RP_TRY(rp_map_put(seen, c.key, (uint32_t)list->n, err));
    return rp_vec_push(list, c, err);
}

static enum rp_code find_chains(const struct rp_sim_run *run, chain_vec *list, struct rp_map *seen,
                                struct rp_err *err)
{
    for (size_t k = 0; k < run->graph->lanes.n; k++) {
        const struct rp_sg_lane *lane = &run->graph->lanes.at[k];
        uint32_t i = lane->first, end;

        if (!lane->device || (run->nranks > 1 && lane->rank))
            continue;
        while (i < lane->end) {
            for (end = i; end < lane->end && is_link(run, end) &&
                          rp_sim_note_of(run, end)->step == rp_sim_note_of(run, i)->step;)
                end++;
            if (end > i + 1 && end - i <= RP_OPT_CHAIN_MOST)
                RP_TRY(add_chain(run, list, seen, i, end, err));
            i = end > i ? end : i + 1;
        }
    }
    return RP_OK;
}

RP_ORDER(by_saved, struct chain, RP_DOWN(saved_ns), RP_UP(first))

enum rp_code rp_opt_list_clusters(const struct rp_worlds *x, struct rp_arena *arena,
                                  struct rp_opt_plan *plan, struct rp_err *err)
{
    chain_vec list = {0};
    struct rp_map seen = {0};
    enum rp_code code = find_chains(&x->run, &list, &seen, err);
    if (code == RP_OK)
        rp_sort(list.at, list.n, sizeof *list.at, by_saved);
    plan->clusters = RP_ARENA_NEW(arena, struct rp_opt_cluster, LISTED_MOST + 1);
    for (size_t i = 0; code == RP_OK && plan->clusters && i < list.n && i < LISTED_MOST; i++)
        if (list.at[i].saved_ns > 0) {
            const struct chain *c = &list.at[i];
            struct rp_opt_cluster *out = &plan->clusters[plan->nclusters++];
            out->ops = RP_ARENA_NEW(arena, const char *, c->n);
            for (uint32_t k = 0; out->ops && k < c->n; k++)
                out->ops[out->nops++] = rp_arena_text(arena, name_of(&x->run, c->first + k));
            out->kind = "element-wise";
            out->count = llround((double)c->count / steps_of(&x->run));
            out->saved_ns = (int64_t)((double)c->saved_ns / steps_of(&x->run));
        }
    rp_map_release(&seen);
    rp_vec_release(&list);
    return code == RP_OK ? rp_arena_check(arena, "searching", err) : code;
}

/* ------------------------------------------------------------------ casts */

struct cast {
    uint32_t name; /* the name of the operator or, without one, of the kernel */
    bool kernel;
    int64_t count, now_ns, then_ns;
};

typedef RP_VEC(struct cast) cast_vec;

RP_ORDER(by_gain, struct cast, RP_COMPARE(b->now_ns - b->then_ns, a->now_ns - a->then_ns),
         RP_UP(name))

/* Compares durations with and without the change. Only products count: operators after them follow
   their format, and autocast leaves losses, normalizations and sums in 32 bits for their
   accuracy. */
static enum rp_code find_casts(struct rp_worlds *x, const int64_t *before, cast_vec *list,
                               struct rp_map *seen, struct rp_err *err)
{
    const struct rp_sim_run *run = &x->run;
    uint32_t i, end = rp_sim_end_node(run, 0);

    for (i = 0; i < end; i++) {
        int64_t then = run->overlay.dur_ns.at[i];
        uint32_t op = rp_sim_note_of(run, i)->op, name = op ? op : rp_sim_node(run, i)->name, at;

        if (then == before[i] || !rp_sim_is_kernel(run, i) ||
            !(rp_sim_kernel_traits(run, i) & RP_KERNEL_PRODUCT))
            continue;
        at = rp_map_get(seen, (uint64_t)name << 1 | !op);
        if (at == RP_MAP_NONE) {
            at = (uint32_t)list->n;
            RP_TRY(rp_map_put(seen, (uint64_t)name << 1 | !op, at, err));
            RP_TRY(rp_vec_push(list, ((struct cast){.name = name, .kernel = !op}), err));
        }
        if (!list->at) /* cannot happen: it was pushed */
            continue;
        list->at[at].count++;
        list->at[at].now_ns = rp_ns_sum(list->at[at].now_ns, before[i]);
        list->at[at].then_ns = rp_ns_sum(list->at[at].then_ns, then);
    }
    return RP_OK;
}

static void fill_casts(const struct rp_worlds *x, const cast_vec *list, const char *dtype,
                       struct rp_arena *arena, struct rp_opt_plan *plan)
{
    double steps = steps_of(&x->run);

    if (!plan->casts) /* the change belongs to an earlier move */
        plan->casts = RP_ARENA_NEW(arena, struct rp_opt_cast, LISTED_MOST + 1);
    for (size_t i = 0; plan->casts && i < list->n && plan->ncasts < LISTED_MOST; i++) {
        const struct cast *c = &list->at[i];

        /* The name of a kernel is not that of an operator, and cuDNN's kernels of batch norms are
           not products. */
        if (c->then_ns >= c->now_ns || c->kernel || strstr(x->run.graph->names.at[c->name], "norm"))
            continue;
        plan->casts[plan->ncasts++] =
            (struct rp_opt_cast){.op = rp_arena_text(arena, x->run.graph->names.at[c->name]),
                                 .dtype = dtype,
                                 .count = llround((double)c->count / steps),
                                 .now_ns = (int64_t)((double)c->now_ns / steps),
                                 .then_ns = (int64_t)((double)c->then_ns / steps)};
    }
}

enum rp_code rp_opt_list_casts(struct rp_worlds *x, const char *text, struct rp_arena *arena,
                               struct rp_opt_plan *plan, struct rp_err *err)
{
    size_t mark = rp_overlay_mark(&x->run.overlay), n = x->run.tasks.tasks.n;
    int64_t *before = malloc((n + 1) * sizeof *before);
    cast_vec list = {0};
    struct rp_map seen = {0};
    enum rp_code code = rp_err_need(before, err, "searching");

    if (code == RP_OK) {
        memcpy(before, x->run.overlay.dur_ns.at, n * sizeof *before);
        code = rp_whatif_apply(&x->run, text, err);
    }
    if (code == RP_OK)
        code = find_casts(x, before, &list, &seen, err);
    if (code == RP_OK)
        rp_sort(list.at, list.n, sizeof *list.at, by_gain);
    if (code == RP_OK)
        fill_casts(x, &list, strstr(text, "fp16") ? "fp16" : "bf16", arena, plan);
    rp_overlay_undo(&x->run.overlay, mark);
    rp_map_release(&seen);
    rp_vec_release(&list);
    free(before);
    return code == RP_OK ? rp_arena_check(arena, "searching", err) : code;
}
