/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the plan of a recorded run. Its moves are in the order of their gain, beginning with the
 * first opportunity (sim/opportunities.h). The gain of a move is how much shorter a step becomes
 * when it is made after those before it, so gains add up; its interval covers assumptions that may
 * be wrong (rp_worlds_steps), widened by how far steps differ. Moves that may gain nothing are left
 * out.
 */
#include "opt/memory.h"

#include "result/print_units.h"
#include "sim/predict.h"
#include "sim/whatif/nodes.h"
#include "sim/whatif/optimizer_kind.h"

#include <math.h>
#include <string.h>

struct answer_ctx {
    struct rp_worlds x;
    struct rp_opt_limits *limits;
    struct rp_opt_buckets buckets;
    struct rp_changes tries;
    struct rp_opt_plan plan;
    struct rp_arena *arena;
    struct rp_opt_answer *out;
    const struct rp_opt_parts *parts;
    size_t moves_most; /* room for moves */
    const char *text;  /* of the moves so far */
    int64_t before[RP_WORLDS];
};

/* ------------------------------------------------------------------ moves */

static void set_gain(const struct answer_ctx *a, struct rp_opt_move *m, const int64_t *then)
{
    struct rp_gain gain = rp_worlds_gain(&a->x, a->before, then, m->what_if);

    m->gain_ns = gain.ns;
    m->gain_low_ns = gain.low_ns;
    m->gain_high_ns = gain.high_ns;
    m->tries = gain.tries;
    m->step_ns = then[0];
    m->sure = (m->gain_low_ns > 0 && !rp_worlds_distrust(&a->x)) || m->family == RP_OPT_MEMORY;
}

/* Returns the text of the plan with a move; a list of buckets replaces the single size. */
static const char *text_with(const struct answer_ctx *a, const struct rp_opt_move *m)
{
    const char *text = "";

    for (size_t i = 0; i < a->plan.nmoves; i++)
        if (strcmp(m->move, "bucket-list") != 0 || strcmp(a->plan.moves[i].move, "bucket") != 0)
            text = rp_arena_textf(a->arena, "%s%s%s", text, *text ? "+" : "",
                                  a->plan.moves[i].what_if);
    return rp_arena_textf(a->arena, "%s%s%s", text, *text ? "+" : "", m->what_if);
}

/* Whether a move that shortens steps belongs in the plan: not if it may gain nothing, and the first
   one only as an opportunity, unless moves of its family were asked for. */
static bool is_worth_it(const struct answer_ctx *a, const struct rp_opt_move *m)
{
    double least = a->limits->named || a->plan.nmoves ? RP_OPT_LEAST_GAIN : RP_OPPORTUNITY_LEAST;

    return m->family == RP_OPT_MEMORY ||
           ((double)m->gain_ns >= least * (double)a->x.step_ns && (m->sure || a->limits->named));
}

unsigned rp_opt_framework(enum rp_opt_source source)
{
    static const uint8_t of[] = {
        [RP_OPT_OTHER] = RP_FRAMEWORK_UNKNOWN,   [RP_OPT_TORCH] = RP_FRAMEWORK_PYTORCH,
        [RP_OPT_JAX] = RP_FRAMEWORK_JAX,         [RP_OPT_TENSORFLOW] = RP_FRAMEWORK_TENSORFLOW,
        [RP_OPT_HOROVOD] = RP_FRAMEWORK_HOROVOD, [RP_OPT_BYTEPS] = RP_FRAMEWORK_BYTEPS};

    return of[source];
}

static unsigned framework_of(const struct answer_ctx *a)
{
    return a->plan.source == RP_OPT_OTHER ? a->x.run.parts[0]->recorder.framework
                                          : rp_opt_framework(a->plan.source);
}

/* Simulates the plan with a move, and adds it if it is worth it. */
static enum rp_code add_move(struct answer_ctx *a, struct rp_opt_move *move, bool *added,
                             struct rp_err *err)
{
    struct rp_opt_move m = *move;
    const char *text = text_with(a, &m);
    int64_t then[RP_WORLDS];

    RP_TRY(rp_arena_check(a->arena, "searching", err));
    RP_TRY(rp_whatif_assumes(m.what_if, framework_of(a), a->arena, &m.assumes, err));
    RP_TRY(rp_worlds_steps(&a->x, text, NULL, then, err));
    set_gain(a, &m, then);
    move->sure = m.sure;
    move->gain_low_ns = m.gain_low_ns;
    *added = is_worth_it(a, &m);
    if (!*added)
        return RP_OK;
    memcpy(a->before, then, sizeof then);
    a->text = text;
    a->plan.moves[a->plan.nmoves++] = m;
    return rp_arena_check(a->arena, "searching", err);
}

/* A change that the search has chosen. */
struct candidate {
    struct rp_opt_move m;
    struct rp_change *change; /* NULL: of the buckets */
    bool done;
};

static size_t list_buckets(struct answer_ctx *a, struct candidate *out)
{
    const struct rp_opt_buckets *b = &a->buckets;
    size_t n = 0;

    if (b->better)
        out[n++].m = (struct rp_opt_move){
            .move = "bucket",
            .family = RP_OPT_TENSOR,
            .what = rp_arena_textf(a->arena, "gradients are gathered into buckets of %g MiB",
                                   b->cap_mb),
            .apply =
                rp_arena_textf(a->arena, "DistributedDataParallel(…, bucket_cap_mb=%g)", b->cap_mb),
            .what_if = b->text};
    if (b->list)
        out[n++].m = (struct rp_opt_move){
            .move = "bucket-list",
            .family = RP_OPT_TENSOR,
            .what = rp_arena_textf(a->arena, "buckets of different sizes: %s gradients",
                                   b->list + strlen("bucket=")),
            .apply = "bucket_cap_mb cannot express it: '--export ddp=FILE' writes a class that "
                     "sends these buckets",
            .what_if = b->list};
    return n;
}

static size_t list_candidates(struct answer_ctx *a, struct candidate *out)
{
    size_t i, n = list_buckets(a, out);

    for (i = 0; i < a->tries.n; i++) {
        struct rp_change *c = &a->tries.at[i];

        if (!c->chosen)
            continue;
        out[n].change = c;
        out[n++].m =
            (struct rp_opt_move){.move = c->row->move->name ? c->row->move->name : c->row->name,
                                 .family = rp_opt_family_of(c->row->move->family),
                                 .what = c->row->summary,
                                 .apply = rp_whatif_how(c->row, c->text),
                                 .what_if = c->text};
    }
    return n;
}

/* Removes moves that are no longer worth it. */
static void leave_out(struct answer_ctx *a, const struct candidate *c)
{
    const char *doubt = c->m.sure              ? NULL
                        : c->m.gain_low_ns > 0 ? "its gain is not sure: see the notes"
                                               : "its gain is not sure: the interval reaches zero";

    if (c->change) {
        c->change->chosen = false;
        c->change->doubt = doubt;
        return;
    }
    a->buckets.doubt = doubt;
    if (!strcmp(c->m.move, "bucket")) {
        a->buckets.better = false;
    } else
        a->buckets.list = NULL;
}

static enum rp_code add_moves(struct answer_ctx *a, struct rp_err *err)
{
    struct candidate *list = RP_ARENA_NEW(a->arena, struct candidate, a->tries.n + 3);
    size_t i, n;
    bool added;

    RP_TRY(rp_arena_check(a->arena, "searching", err));
    n = list_candidates(a, list);
    for (;;) {
        /* Find the move with the largest gain; SIZE_MAX if none is left. */
        int64_t best = INT64_MAX;

        i = SIZE_MAX;
        for (size_t k = 0; k < n; k++) {
            bool waits = k && !strcmp(list[k].m.move, "bucket-list") && !list[k - 1].done;
            int64_t then;

            if (list[k].done || waits)
                continue;
            RP_TRY(rp_worlds_step(&a->x, text_with(a, &list[k].m), &then, err));
            if (then < best) {
                best = then;
                i = k;
            }
        }
        RP_TRY(rp_arena_check(a->arena, "searching", err));

        if (i == SIZE_MAX)
            return RP_OK;
        list[i].done = true;
        RP_TRY(add_move(a, &list[i].m, &added, err));
        if (!added)
            leave_out(a, &list[i]);
    }
}

/* ------------------------------------------------------------------ memory */

static bool is_cast(const struct answer_ctx *a, const char *op)
{
    for (size_t i = 0; i < a->plan.ncasts; i++)
        if (!strcmp(a->plan.casts[i].op, op))
            return true;
    return false;
}

/* Returns the memory that is freed, of what is left if it is in 16 bits. */
static int64_t freed_by(const struct answer_ctx *a, const struct rp_opt_kept *k)
{
    return (k->bytes - k->largest_bytes) / (is_cast(a, k->op) ? 2 : 1);
}

/* Finds the operator that frees memory at the least cost per byte; SIZE_MAX if none is left. */
static enum rp_code next_again(struct answer_ctx *a, const bool *made, size_t *out,
                               struct rp_err *err)
{
    const struct rp_opt_part *part = a->parts->largest;
    double best = INFINITY;

    *out = SIZE_MAX;
    for (size_t i = 0; i < part->nkept; i++) {
        struct rp_err why = RP_ERR_INIT;
        int64_t then;

        if (made[i] || freed_by(a, &part->kept[i]) <= 0 || rp_opt_over(a->limits))
            continue;
        const char *text = rp_arena_textf(a->arena, "%s%srecompute=\"%s\"", a->text,
                                          *a->text ? "+" : "", part->kept[i].op);
        RP_TRY(rp_arena_check(a->arena, "searching", err));
        enum rp_code code = rp_worlds_step(&a->x, text, &then, &why);
        if (code != RP_OK)
            continue;
        double cost = (double)(then - a->before[0]) / (double)freed_by(a, &part->kept[i]);
        if (cost < best) {
            best = cost;
            *out = i;
        }
    }
    return RP_OK;
}

/* Recomputes operators until the peak is within the budget. */
static enum rp_code add_memory_moves(struct answer_ctx *a, struct rp_err *err)
{
    const struct rp_opt_part *part = a->parts->largest;
    bool *made = RP_ARENA_NEW(a->arena, bool, (part ? part->nkept : 0) + 1), added;
    size_t i;

    a->plan.peak_bytes = a->plan.peak_then_bytes = part ? part->peak_bytes : RP_ABSENT_I64;
    RP_TRY(rp_arena_check(a->arena, "searching", err));
    for (i = 0; part && i < part->nkept; i++)
        if (is_cast(a, part->kept[i].op))
            a->plan.peak_then_bytes -= part->kept[i].bytes / 2;
    if (!part || !a->limits->memory_bytes || !(a->limits->families >> RP_OPT_MEMORY & 1))
        return RP_OK;
    while (a->plan.peak_then_bytes > a->limits->memory_bytes && a->plan.nmoves < a->moves_most) {
        struct rp_opt_move m = {.move = "recompute", .family = RP_OPT_MEMORY};

        RP_TRY(next_again(a, made, &i, err));
        if (i == SIZE_MAX)
            break;
        made[i] = true;
        m.what = rp_arena_textf(a->arena, "%s runs again in the backward pass", part->kept[i].op);
        m.apply = "torch.utils.checkpoint around it, or a selective checkpoint policy that "
                  "recomputes it";
        m.what_if = rp_arena_textf(a->arena, "recompute=\"%s\"", part->kept[i].op);
        RP_TRY(add_move(a, &m, &added, err));
        a->plan.peak_then_bytes -= freed_by(a, &part->kept[i]);
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the plan */

/* Finds by the names in the recording which program made it. */
static enum rp_opt_source find_source(const struct rp_sim_run *run)
{
    static const struct {
        const char *begin;
        enum rp_opt_source source;
    } signs[] = {{"aten::", RP_OPT_TORCH},
                 {"autograd::engine", RP_OPT_TORCH},
                 {"Optimizer.step", RP_OPT_TORCH},
                 {"c10d::", RP_OPT_TORCH},
                 {"PjitFunction", RP_OPT_JAX},
                 {"jit_", RP_OPT_JAX},
                 {"XlaModule", RP_OPT_JAX},
                 {"fusion", RP_OPT_JAX},
                 {"loop_", RP_OPT_JAX},
                 {"input_", RP_OPT_JAX},
                 {"tensorflow::", RP_OPT_TENSORFLOW},
                 {"void tensorflow::", RP_OPT_TENSORFLOW},
                 {"void Eigen::", RP_OPT_TENSORFLOW},
                 {"EagerExecute", RP_OPT_TENSORFLOW},
                 {"ExecutorState", RP_OPT_TENSORFLOW}};

    for (size_t k = 0; k < sizeof signs / sizeof signs[0]; k++)
        for (size_t i = 0; i < run->graph->names.n; i++)
            if (!strncmp(run->graph->names.at[i], signs[k].begin, strlen(signs[k].begin)))
                return signs[k].source;
    return RP_OPT_OTHER;
}

static enum rp_code describe_plan(struct answer_ctx *a, struct rp_err *err)
{
    struct rp_optimizer_kind kind;

    rp_optimizer_kind(&a->x.run, 0, &kind);
    a->plan.optimizer = strcmp(kind.name, "optimizer") != 0 ? kind.name : NULL;
    for (size_t i = 0; i < a->plan.nmoves; i++) {
        struct rp_opt_move *m = &a->plan.moves[i];

        a->plan.fused_optimizer |= !strcmp(m->move, "fused-optimizer");
        m->apply = rp_whatif_apply_in(framework_of(a), m->move, m->apply);
        if (m->family == RP_OPT_GRAPHS) {
            struct rp_whatif_list list;

            RP_TRY(rp_whatif_parse(m->what_if, a->arena, &list, err));
            a->plan.regions = RP_ARENA_NEW(a->arena, struct rp_opt_region, list.n);
            RP_TRY(rp_arena_check(a->arena, "searching", err));
            for (size_t k = 0; k < list.n; k++)
                a->plan.regions[a->plan.nregions++] = (struct rp_opt_region){
                    list.calls[k].args.value ? list.calls[k].args.value : "step"};
        }
        if (!strcmp(m->move, "fuse"))
            RP_TRY(rp_opt_list_clusters(&a->x, a->arena, &a->plan, err));
    }
    return rp_opt_list_buckets(&a->x, &a->buckets, a->arena, &a->plan, err);
}

/* ------------------------------------------------------------------ the answer */

enum rp_code rp_opt_answer_plan(const struct rp_opt_plan *plan, struct rp_arena *arena,
                                struct rp_opt_answer *out, struct rp_err *err)
{
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
    for (size_t i = 0; i < plan->nmoves; i++) {
        const struct rp_opt_move *m = &plan->moves[i];

        out->moves[out->nmoves++] =
            (struct rp_opt_move_row){m->move,         rp_opt_family_names[m->family],
                                     m->what,         m->apply,
                                     m->what_if,      m->assumes,
                                     m->gain_ns,      m->gain_low_ns,
                                     m->gain_high_ns, m->step_ns,
                                     m->sure,         m->tries};
    }
    RP_TRY(rp_opt_exports_fill(plan, arena, &out->exports, err));
    out->exported = out->exports.files;
    out->nexported = out->exports.nfiles;
    return rp_arena_check(arena, "searching", err);
}

/* ------------------------------------------------------------------ what is not in the plan */

static void add_tried(struct rp_opt_answer *out, const char *move, enum rp_opt_family family,
                      int64_t gain_ns, const char *why)
{
    out->tried[out->ntried++] =
        (struct rp_opt_tried_row){move, rp_opt_family_names[family], why, gain_ns};
}

static bool is_chosen(const struct rp_changes *tries, const struct rp_whatif *row)
{
    for (size_t i = 0; i < tries->n; i++)
        if (tries->at[i].row == row && tries->at[i].chosen)
            return true;
    return false;
}

/* Returns a reason without the name before it. */
static const char *reason_of(const char *name, const char *reason)
{
    size_t n = strlen(name);

    if (*reason == '\'' && !strncmp(reason + 1, name, n) && !strncmp(reason + 1 + n, "': ", 3))
        return reason + n + 4;
    return !strncmp(reason, name, n) && !strncmp(reason + n, ": ", 2) ? reason + n + 2 : reason;
}

/* Adds the best text of a what-if that is not in the plan, or the reason why it has none. */
static void add_tried_whatif(const struct rp_changes *tries, size_t first, size_t end,
                             int64_t step_ns, bool has_plan, struct rp_opt_answer *out)
{
    const struct rp_change *best = &tries->at[first];

    for (size_t i = first + 1; i < end; i++)
        if (tries->at[i].alone_ns != RP_ABSENT_I64 &&
            (best->alone_ns == RP_ABSENT_I64 || tries->at[i].alone_ns < best->alone_ns))
            best = &tries->at[i];
    if (best->alone_ns == RP_ABSENT_I64) {
        add_tried(out, best->text, rp_opt_family_of(best->row->move->family), RP_ABSENT_I64,
                  reason_of(best->row->name, best->impossible));
        return;
    }
    int64_t gain = step_ns - best->alone_ns;
    add_tried(out, best->text, rp_opt_family_of(best->row->move->family), gain,
              best->doubt     ? best->doubt
              : best->clashes ? "it cannot be combined with the moves of the plan"
              : gain < 0      ? "a step would take longer"
              : gain == 0     ? "it brings nothing"
              : (double)gain < RP_OPPORTUNITY_LEAST * (double)step_ns
                  ? "it brings less than 1 % of a step"
              : has_plan ? "beside the moves of the plan it brings nothing more"
                         : "its gain is not sure");
}

enum rp_code rp_opt_list_tried(const struct rp_changes *tries, int64_t step_ns, bool has_plan,
                               struct rp_arena *arena, struct rp_opt_answer *out,
                               struct rp_err *err)
{
    size_t i, end;

    out->tried = RP_ARENA_NEW(arena, struct rp_opt_tried_row, tries->n + 4);
    RP_TRY(rp_arena_check(arena, "searching", err));
    for (int last = 0; last < 2; last++) /* what-ifs that do not apply come last */
        for (i = 0; i < tries->n; i = end) {
            for (end = i; end < tries->n && tries->at[end].row == tries->at[i].row;)
                end++;
            if (!is_chosen(tries, tries->at[i].row) && tries->at[i].refused == last)
                add_tried_whatif(tries, i, end, step_ns, has_plan, out);
        }
    return RP_OK;
}

/* ------------------------------------------------------------------ the whole */

/* Simulates the plan once more from nothing: another run of the model, without what the search
   kept. */
static enum rp_code check_plan(struct answer_ctx *a, const struct rp_opt_parts *parts,
                               struct rp_err *err)
{
    RP_SCOPED(rp_worlds_release) struct rp_worlds again = {0};

    RP_TRY(rp_worlds_init(&again, parts->parts, parts->n, parts->weights, err));
    again.whole = true;
    return rp_worlds_step(&again, a->text, &a->out->checked_ns, err);
}

static enum rp_code search_run(struct answer_ctx *a, struct rp_err *err)
{
    struct rp_opt_plan *plan = &a->plan;
    struct rp_opportunities found;

    plan->source = a->parts->source ? a->parts->source : find_source(&a->x.run);
    a->buckets =
        (struct rp_opt_buckets){.cap_mb = NAN, .text = "", .impossible = a->parts->no_tensors};
    RP_TRY(rp_opt_try_whatifs(&a->x, a->limits, a->arena, &a->tries, err));
    RP_TRY(rp_opportunities_find(&a->x, &a->tries, a->arena, &found, err));
    if (a->limits->families >> RP_OPT_TENSOR & 1 && !a->parts->no_tensors)
        RP_TRY(rp_opt_search_buckets(&a->x, a->limits, a->arena, &a->buckets, err));
    RP_TRY(rp_opt_combine_whatifs(&a->x, a->limits,
                                  a->buckets.list     ? a->buckets.list
                                  : a->buckets.better ? a->buckets.text
                                                      : "",
                                  found.n ? &found.at[0] : NULL, a->arena, &a->tries, err));
    a->moves_most = a->tries.n + 3 + (a->parts->largest ? a->parts->largest->nkept : 0);
    plan->moves = RP_ARENA_NEW(a->arena, struct rp_opt_move, a->moves_most);
    RP_TRY(rp_arena_check(a->arena, "searching", err));
    RP_TRY(rp_worlds_steps(&a->x, "", NULL, a->before, err));
    plan->baseline_ns = a->before[0];
    RP_TRY(add_moves(a, err));
    for (size_t i = 0; i < plan->nmoves; i++)
        if (!strncmp(plan->moves[i].what_if ? plan->moves[i].what_if : "", "dtype", 5))
            RP_TRY(rp_opt_list_casts(&a->x, plan->moves[i].what_if, a->arena, plan, err));
    RP_TRY(add_memory_moves(a, err));
    plan->best_ns = a->before[0];

    double more = 1 + a->x.doubt;
    int64_t low = a->before[0], high = low;
    for (size_t i = 1; i < RP_WORLDS; i++) {
        low = a->before[i] < low ? a->before[i] : low;
        high = a->before[i] > high ? a->before[i] : high;
    }
    a->plan.best_low_ns = rp_sim_scaled(low, 1 / more);
    a->plan.best_high_ns = rp_sim_scaled(high, more);
    if (a->plan.best_low_ns ==
        a->plan.best_high_ns) /* an interval without any width tells nothing */
        a->plan.best_low_ns = a->plan.best_high_ns = RP_ABSENT_I64;
    RP_TRY(rp_opt_list_tried(&a->tries, a->x.step_ns, plan->nmoves > 0, a->arena, a->out, err));
    if (a->buckets.impossible && a->limits->families >> RP_OPT_TENSOR & 1)
        add_tried(a->out, a->parts->no_tensors ? "tensor-fusion" : "bucket", RP_OPT_TENSOR,
                  RP_ABSENT_I64, reason_of("bucket", a->buckets.impossible));
    else if (a->limits->families >> RP_OPT_TENSOR & 1 && !a->buckets.better && !a->buckets.list)
        add_tried(a->out, a->buckets.text, RP_OPT_TENSOR, a->x.step_ns - a->buckets.alone_ns,
                  a->buckets.doubt ? a->buckets.doubt
                                   : "no size of buckets is better than the recorded one");
    return describe_plan(a, err);
}

static void add_notes(struct answer_ctx *a, const struct rp_opt_parts *parts)
{
    const struct rp_sim_part *first = parts->parts[0];
    const char *memory = rp_sim_memory_option(first);
    struct rp_opt_answer *out = a->out;
    double off =
        out->recorded_ns > 0 ? (double)a->x.simulated_ns / (double)out->recorded_ns - 1 : 0;

    for (size_t i = 0; i < first->remarks.n; i++)
        RP_NOTE(out, a->arena, rp_arena_text(a->arena, first->remarks.at[i]));
    RP_NOTE(out, a->arena,
            rp_arena_textf(a->arena, "the model reproduces the recorded step within %.1f %%",
                           100 * fabs(off)));
    if (first->nranks < 2 && parts->given > a->x.run.nranks)
        RP_NOTE(
            out, a->arena,
            parts->weights
                ? rp_arena_textf(a->arena,
                                 "ranks with equal recordings are simulated once: %zu of "
                                 "%zu",
                                 a->x.run.nranks, parts->given)
                : rp_arena_textf(a->arena,
                                 "the %zu ranks share no collectives: only the first is simulated",
                                 parts->given));
    if (a->limits->memory_bytes && !parts->largest)
        RP_NOTE(out, a->arena,
                rp_arena_textf(a->arena,
                               "the memory budget is not used: memory was not recorded%s%s%s",
                               memory ? " (" : "", memory ? memory : "", memory ? ")" : ""));
    else if (a->limits->memory_bytes && a->plan.peak_then_bytes > a->limits->memory_bytes)
        RP_NOTE(out, a->arena,
                a->limits->stopped != RP_OPT_CONVERGED
                    ? "the memory budget is exceeded: the search ended before enough was freed"
                    : "the memory budget is exceeded: nothing that can be recomputed frees enough");
    for (size_t i = 0; i < out->nmoves; i++)
        if (out->moves[i].tries)
            RP_NOTE(out, a->arena,
                    rp_arena_textf(a->arena,
                                   "%s: interval from %lld measured tries on this machine",
                                   out->moves[i].what_if, (long long)out->moves[i].tries));
    if (rp_worlds_distrust(&a->x))
        RP_NOTE(out, a->arena,
                rp_arena_textf(
                    a->arena, "%s; no gain is sure%s", rp_worlds_distrust(&a->x),
                    a->limits->named ? "" : ", and the plan has only moves that --moves names"));
    if (rp_worlds_absent(&a->x) >= RP_SIM_DISTORTED)
        RP_NOTE(
            out, a->arena,
            rp_arena_textf(
                a->arena,
                "during %.1f %% of the time ranks that were not given may be waited for: every gain may "
                "be less by as much",
                100 * rp_worlds_absent(&a->x)));
    if (a->x.one_size && a->buckets.better)
        RP_NOTE(out, a->arena,
                "all recorded all-reduces have about the same size, so latency and rate of the "
                "transport are not known separately: the gain of other buckets is uncertain");
}

/* Lists moves of one name once: "a, b (2) and c". */
static const char *list_moves(struct rp_arena *arena, const struct rp_opt_answer *out)
{
    const char *list = "", *before = "";
    size_t i, end;

    for (i = 0; i < out->nmoves; i = end) {
        const char *name = out->moves[i].move;

        for (end = i; end < out->nmoves && !strcmp(out->moves[end].move, name);)
            end++;
        if (end - i > 1)
            name = rp_arena_textf(arena, "%s (%zu)", name, end - i);
        if (*before)
            list = rp_arena_textf(arena, "%s%s%s", list, *list ? ", " : "", before);
        before = name;
    }
    return *list ? rp_arena_textf(arena, "%s and %s", list, before) : before;
}

void rp_opt_summarise(struct rp_arena *arena, struct rp_opt_answer *out)
{
    size_t i, unsure = 0;

    for (i = 0; i < out->nmoves; i++)
        unsure += !out->moves[i].sure;
    out->how = RP_ARENA_NEW(arena, const char *, out->nmoves + 1);
    for (size_t k = 0; out->how && k < out->nmoves; k++) {
        const struct rp_opt_move_row *m = &out->moves[k];
        const char *name = m->what_if ? m->what_if : m->move;

        out->how[out->nhow++] =
            rp_arena_textf(arena, "%s: %s; assumes that %s", strlen(name) > 40 ? m->move : name,
                           m->apply, m->assumes);
    }
    if (!out->nmoves) {
        out->summary = "nothing that was tried is sure to make a step shorter by 1 % or more";
        return;
    }
    out->summary = rp_arena_textf(arena, "a step of %s becomes %s with %s%s",
                                  rp_units_time(arena, out->baseline_ns),
                                  rp_units_time(arena, out->best_ns), list_moves(arena, out),
                                  !unsure                ? ""
                                  : unsure < out->nmoves ? "; not every gain is sure"
                                                         : "; the gain is not sure");
}

enum rp_code rp_opt_answer_run(const struct rp_opt_parts *parts, struct rp_opt_limits *limits,
                               struct rp_arena *arena, struct rp_opt_answer *out,
                               struct rp_err *err)
{
    struct answer_ctx a = {
        .limits = limits, .arena = arena, .out = out, .parts = parts, .text = ""};
    enum rp_code code = rp_worlds_init(&a.x, parts->parts, parts->n, parts->weights, err);

    a.x.capture = parts->capture;
    a.plan.ranks = (int64_t)parts->given;
    limits->run = &a.x;
    limits->certain = (size_t)((double)limits->budget_ns / 1e9 * RP_OPT_CERTAIN_TASKS /
                               (double)(a.x.run.tasks.tasks.n + 1));
    if (code == RP_OK)
        code = search_run(&a, err);
    limits->run = NULL;
    out->recorded_ns = a.x.recorded_ns;
    out->checked_ns = RP_ABSENT_I64;
    if (code == RP_OK)
        code = check_plan(&a, parts, err);
    if (code == RP_OK)
        code = rp_opt_answer_plan(&a.plan, arena, out, err);
    if (code == RP_OK && limits->workspace)
        code = rp_opt_workspace_save(limits->workspace, NULL, a.text, a.plan.best_ns, err);
    if (code == RP_OK)
        add_notes(&a, parts);
    rp_opt_summarise(arena, out);
    out->evaluated = (int64_t)(a.x.evaluated + a.buckets.tried);
    rp_worlds_release(&a.x);
    return code == RP_OK ? rp_arena_check(arena, "searching", err) : code;
}
