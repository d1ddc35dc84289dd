/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks the fusions of all ranks by what they would save; has the row of the question. */
#include "explain/fusions/fusions.h"
#include "base/decides.h"
#include "explain/fusions/xla.h"

#include "base/hash.h"
#include "base/order.h"
#include "dataset/bulk.h"
#include "dataset/question.h"
#include "facts/host/outside.h"
#include "facts/work/attribution.h"
#include "result/part.h"
#include "result/print_units.h"
#include "sim/predict.h"
#include "sim/simulate.h"

#include <string.h>

#define MOST_EVENTS 300000
RP_LIMIT(MOST_EVENTS, "events of a rank", "more take too long to simulate: a note says so");

/* ------------------------------------------------------------------ what is kept and shown */

#define PART(kind, member) RP_PART_##kind(struct rp_fusion, member)
static const struct rp_field fusion_fields[] = {
    PART(PLAIN, kind),      PART(PLAIN, phase),    PART(PLAIN, sized),
    PART(PLAIN, key),       PART(PLAIN, count),    PART(PLAIN, kernels),
    PART(PLAIN, device_ns), PART(PLAIN, fused_ns), PART(PLAIN, elements),
    PART(TEXT, ops),        PART(TEXT, shape),     PART(TEXT, line),
    PART(TEXT, module),     PART(TEXT, reason),    RP_PART_END};
#undef PART
static const struct rp_type fusion_type = {"fusion", sizeof(struct rp_fusion), fusion_fields, NULL};

#define PART(kind, member) RP_PART_##kind(struct rp_fusions_part, member)
static const struct rp_field part_fields[] = {
    RP_PART_VEC(struct rp_fusions_part, fusions, &fusion_type),
    PART(PLAIN, whole_ns),
    PART(PLAIN, generated_ns),
    PART(PLAIN, steps),
    PART(TEXT, not_counted),
    PART(PLAIN, with_shapes),
    PART(PLAIN, with_stack),
    PART(PLAIN, recorder),
    PART(PLAIN, xla),
    PART(PLAIN, programs),
    PART(PLAIN, modelled),
    PART(PLAIN, cut),
    PART(PLAIN, large),
    RP_PART_RECORD(struct rp_fusions_part, sim, &rp_sim_part_type),
    RP_PART_END};
#undef PART
static const struct rp_type part_type = {"fusions_part", sizeof(struct rp_fusions_part),
                                         part_fields, NULL};

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_fusion_row, member, type, unit, title, doc, flags)
static const struct rp_field row_fields[] = {
    ROW(name, STR, NONE, NULL, "its operators in their order; for an optimizer, each operator once",
        0),
    ROW(label, STR, NONE, "chain", "text output only", RP_SCREEN | RP_SHORTEN | RP_WHOLE),
    ROW(shown_shape, STR, NONE, "shape", "text output only", RP_SCREEN | RP_WIDE),
    ROW(where, STR, NONE, "where", "text output only", RP_SCREEN | RP_SHORTEN),
    ROW(shown_reason, STR, NONE, "apart because", "text output only", RP_SCREEN | RP_SHORTEN),
    ROW(kind, STR, NONE, NULL, "chain, optimizer, or compiled: what XLA left apart", 0),
    ROW(phase, STR, NONE, NULL, "forward, backward, optimizer or other", 0),
    ROW(shape, STR, NONE, NULL, "shape of the largest input of its first operator, or null", 0),
    ROW(line, STR, NONE, NULL, "the user's Python frame that launches it, or null", 0),
    ROW(module, STR, NONE, NULL, "the module around it, '*' for its number, or null", 0),
    ROW(reason, STR, NONE, NULL, "why XLA left it apart, or null", 0),
    ROW(count, I64, COUNT, "count", "how often it occurs; of an optimizer, in how many steps", 0),
    ROW(kernels, I64, COUNT, "kernels", "kernels of one call; for an optimizer, of all calls",
        RP_WIDE),
    ROW(device_ns, I64, NS, "time", "device time of all of them", 0),
    ROW(fused_ns, I64, NS, NULL, "the same, each as one kernel, estimated", 0),
    ROW(saved_ns, I64, NS, "saves", "device_ns - fused_ns", 0),
    ROW(share, F64, RATIO, "share", "saved_ns of the device time", RP_WIDE),
    RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct rp_fusion_row), row_fields, NULL};

#define WHATIF(member, type, unit, doc) \
    RP_FIELD(struct rp_fusion_whatif, member, type, unit, NULL, doc, 0)
static const struct rp_field whatif_fields[] = {
    WHATIF(what_if, STR, NONE, "the what-if, as an argument of 'simulate --what-if'"),
    WHATIF(step_ns, I64, NS, "a step without the profiler"),
    WHATIF(predicted_ns, I64, NS, "the same with the change"),
    WHATIF(change_ratio, F64, RATIO, "(predicted_ns - step_ns) / step_ns"), RP_FIELD_END};
static const struct rp_type whatif_type = {"what_if", sizeof(struct rp_fusion_whatif),
                                           whatif_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_fusions_root, member, type, unit, title, doc, flags)
static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "fusions", "text output only", RP_SCREEN),
    ROOT(simulated, STR, NONE, "a step", "text output only", RP_SCREEN),
    ROOT(ranks, I64, COUNT, NULL, "number of ranks", 0),
    ROOT(steps, I64, COUNT, NULL, "steps of the first rank that are counted; 0: not marked", 0),
    ROOT(compiler, STR, NONE, NULL, "inductor or xla, where kernels were generated by it", 0),
    ROOT(whole_ns, I64, NS, NULL, "device time", 0),
    ROOT(chained_ns, I64, NS, NULL, "the part of it in the chains of all rows", 0),
    ROOT(fused_ns, I64, NS, NULL, "the same, fused", 0),
    ROOT(saved_ns, I64, NS, NULL, "chained_ns - fused_ns", 0),
    ROOT(saved_share, F64, RATIO, NULL, "saved_ns / whole_ns", 0),
    ROOT(row_count, I64, COUNT, NULL, "rows before the limit", 0),
    RP_FIELD_LIST(struct rp_fusions_root, rows, &row_type, "rows", "what saves most first", 0),
    RP_FIELD_LIST(struct rp_fusions_root, what_ifs, &whatif_type, NULL,
                  "what the simulator predicts for a step, if all are fused", 0),
    RP_FIELD_LIST(struct rp_fusions_root, notes, &rp_type_string, "notes", "about the rows",
                  RP_SCREEN),
    RP_FIELD_END};
static const struct rp_type fusions_type = {"fusions", sizeof(struct rp_fusions_root), root_fields,
                                            "rows"};

/* ------------------------------------------------------------------ one rank */

static enum rp_code model_rank(const struct rp_trace *trace, struct rp_arena *arena,
                               struct rp_fusions_part *out, struct rp_err *err)
{
    struct rp_err why = RP_ERR_INIT;
    enum rp_code code = rp_sim_part_init(&out->sim, trace, arena, &why);

    rp_arena_adopt(arena, &out->sim.graph.arena);
    out->modelled = code == RP_OK;
    if (code == RP_OK)
        return RP_OK;
    rp_sim_part_release(&out->sim);
    memset(&out->sim, 0, sizeof out->sim);
    return code == RP_NOMEM ? rp_err_nomem(err, "simulating") : RP_OK;
}

static enum rp_code fusions_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                 const struct rp_settings *settings, struct rp_rank_part *part,
                                 struct rp_err *err)
{
    struct rp_fusions_part *out = part->data;
    struct rp_scope steps = *scope;

    RP_TRY(rp_judged_scope(loaded->trace, &steps, &part->arena, &out->not_counted, err));
    RP_TRY(rp_recorder_find(loaded->trace, &out->recorder, err));
    RP_TRY(rp_fusions_find(loaded->trace, &steps, rp_loaded_categories(loaded), &part->arena, out,
                           err));
    RP_TRY(rp_fusions_of_xla(loaded, &steps, &part->arena, out, err));
    if (!out->fusions.n || out->xla || scope->limited || rp_settings_flag(settings, "no-simulate"))
        return RP_OK;
    out->large = loaded->trace->ev.n > MOST_EVENTS;
    if (!out->large)
        RP_TRY(model_rank(loaded->trace, &part->arena, out, err));
    return RP_OK;
}

static bool has_model(const void *data)
{
    return ((const struct rp_fusions_part *)data)->modelled;
}

static void drop_model(void *data)
{
    struct rp_fusions_part *part = data;

    rp_sim_part_drop(&part->sim);
    part->modelled = false;
}

static const struct rp_rank_bulk fusions_bulk = {
    .events_most = 2400000, .ranks_most = 16, .has = has_model, .drop = drop_model};

/* ------------------------------------------------------------------ all ranks */

typedef RP_VEC(struct rp_fusion) fusion_vec;

static enum rp_code add_up(const struct rp_ranks *ranks, fusion_vec *all, struct rp_err *err)
{
    RP_SCOPED(rp_map_release) struct rp_map known = {0};
    uint32_t at;

    for (size_t r = 0; r < ranks->n; r++) {
        const struct rp_fusions_part *part = ranks->parts[r].data;

        for (size_t i = 0; i < part->fusions.n; i++) {
            const struct rp_fusion *f = &part->fusions.at[i];

            RP_TRY(rp_map_intern(&known, f->key, (uint32_t)all->n, &at, err));
            if (at == all->n) {
                RP_TRY(rp_vec_push(all, *f, err));
            } else if (all->at) {
                all->at[at].count += f->count;
                if (f->kind == RP_FUSION_OPTIMIZER)
                    all->at[at].kernels += f->kernels;
                rp_ns_add(&all->at[at].device_ns, f->device_ns);
                rp_ns_add(&all->at[at].fused_ns, f->fused_ns);
            }
        }
    }
    return RP_OK;
}

RP_ORDER(by_saving, struct rp_fusion_row, RP_DOWN(saved_ns), RP_DOWN(device_ns),
         strcmp(a->name, b->name), strcmp(a->phase, b->phase))

/* "model.py(25): forward" without its folder, else the module, else the phase */
static const char *row_where(const struct rp_fusion *f)
{
    const char *end = f->line ? strchr(f->line, '(') : NULL, *p, *begin = f->line;

    for (p = f->line; end && p < end; p++)
        if (*p == '/')
            begin = p + 1;
    return begin ? begin : f->module ? f->module : rp_phase_names[f->phase];
}

static void make_rows(const fusion_vec *all, struct rp_arena *arena, struct rp_fusions_root *out)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct rp_fusion *f = &all->at[i];
        int64_t saved = rp_ns_between(f->fused_ns, f->device_ns);

        if (saved <= 0)
            continue;
        rp_ns_add(&out->chained_ns, f->device_ns);
        rp_ns_add(&out->fused_ns, f->fused_ns);
        out->rows[out->nrows++] = (struct rp_fusion_row){
            .name = f->ops,
            .kind = rp_fusion_kind_names[f->kind],
            .phase = rp_phase_names[f->phase],
            .shape = f->shape,
            .line = f->line,
            .module = f->module,
            .reason = f->reason,
            .label = f->kind == RP_FUSION_OPTIMIZER
                         ? rp_arena_textf(arena, "the optimizer: %s", f->ops)
                         : f->ops,
            .where = row_where(f),
            .shown_shape = f->shape,
            .shown_reason = f->reason,
            .count = f->count,
            .kernels = f->kernels,
            .device_ns = f->device_ns,
            .fused_ns = f->fused_ns,
            .saved_ns = saved,
            .share = out->whole_ns > 0 ? (double)saved / (double)out->whole_ns : 0};
    }
    rp_sort(out->rows, out->nrows, sizeof *out->rows, by_saving);
    out->saved_ns = rp_ns_between(out->fused_ns, out->chained_ns);
    out->saved_share = out->whole_ns > 0 ? (double)out->saved_ns / (double)out->whole_ns : 0;
}

static bool has_kind(const struct rp_fusions_root *out, enum rp_fusion_kind kind)
{
    for (size_t i = 0; i < out->nrows; i++)
        if (!strcmp(out->rows[i].kind, rp_fusion_kind_names[kind]))
            return true;
    return false;
}

/* ------------------------------------------------------------------ the simulator */

/* Predicts with `simulate`, because a step is limited by more than its kernels. */
static enum rp_code predict(const struct rp_ranks *ranks, struct rp_arena *arena,
                            struct rp_fusions_root *out, struct rp_err *err)
{
    static const char *const texts[] = {"fuse", "fused-optimizer"};
    const bool asked[] = {has_kind(out, RP_FUSION_CHAIN), has_kind(out, RP_FUSION_OPTIMIZER)};
    const struct rp_sim_part **parts =
        RP_ARENA_NEW(arena, const struct rp_sim_part *, ranks->n + 1);
    size_t i, n = ranks->chosen ? ranks->nchosen : ranks->n;
    struct rp_sim_gain gains[2];
    struct rp_err why = RP_ERR_INIT;
    struct rp_sim_now now = {0};

    out->what_ifs = RP_ARENA_NEW(arena, struct rp_fusion_whatif, 2);
    RP_TRY(rp_err_need(parts && out->what_ifs, err, "simulating"));
    for (i = 0; i < n; i++) {
        const struct rp_fusions_part *part =
            ranks->parts[ranks->chosen ? ranks->chosen[i] : i].data;

        if (!part->modelled)
            return RP_OK;
        parts[i] = &part->sim;
    }
    enum rp_code code = n ? rp_sim_predict(parts, n, texts, 2, &now, gains, &why) : RP_UNSUPPORTED;
    if (code == RP_NOMEM)
        return rp_err_nomem(err, "simulating");
    if (code != RP_OK || now.unprofiled_ns <= 0 || !rp_sim_reproduces(&now))
        return RP_OK;
    for (i = 0; i < 2; i++)
        if (asked[i]) {
            if (gains[i].step_ns != RP_ABSENT_I64) {
                out->what_ifs[out->nwhat_ifs++] = (struct rp_fusion_whatif){
                    .what_if = texts[i],
                    .step_ns = now.unprofiled_ns,
                    .predicted_ns = gains[i].step_ns,
                    .change_ratio =
                        (double)(gains[i].step_ns - now.unprofiled_ns) / (double)now.unprofiled_ns};
            }
        }
    return RP_OK;
}

/* ------------------------------------------------------------------ sentences */

static const char *percent(struct rp_arena *arena, double share)
{
    return rp_units_text(arena, share, RP_UNIT_RATIO);
}

static void say_summary(struct rp_arena *arena, struct rp_fusions_root *out)
{
    if (!out->nrows)
        out->summary = "no chain of element-wise kernels over the same sizes was found";
    else
        out->summary = rp_arena_textf(
            arena, "chains take %s of %s device time; as one kernel each about %s: %s less (%s)",
            rp_units_time(arena, out->chained_ns), rp_units_time(arena, out->whole_ns),
            rp_units_time(arena, out->fused_ns), rp_units_time(arena, out->saved_ns),
            percent(arena, out->saved_share));
    for (size_t i = 0; i < out->nwhat_ifs; i++) {
        const struct rp_fusion_whatif *w = &out->what_ifs[i];
        const char *text =
            rp_arena_textf(arena, "'%s' %s (%+.1f %%)", w->what_if,
                           rp_units_time(arena, w->predicted_ns), 100 * w->change_ratio);

        out->simulated =
            i ? rp_arena_textf(arena, "%s, %s", out->simulated, text)
              : rp_arena_textf(arena, "%s, with %s", rp_units_time(arena, w->step_ns), text);
    }
}

/* " (record_shapes=True)" */
static const char *option_text(const struct rp_fusions_part *part, enum rp_recordable what,
                               struct rp_arena *arena)
{
    const char *option = rp_recorder_option(&part->recorder, what);

    return option ? rp_arena_textf(arena, " (%s)", option) : "";
}

/* Writes what to do about it, and what was not recorded. */
static void write_notes(const struct rp_ranks *ranks, struct rp_arena *arena,
                        struct rp_fusions_root *out)
{
    const struct rp_fusions_part *first = ranks->n ? ranks->parts[0].data : NULL;

    if (!first)
        return;
    if (out->row_count > (int64_t)out->nrows)
        RP_NOTE(out, arena,
                rp_arena_textf(arena, "%zu of %s rows: '--limit 0' shows all", out->nrows,
                               rp_units_number(arena, out->row_count)));
    if (first->cut)
        RP_NOTE(out, arena, "there are more chains than were looked at");
    if (first->large)
        RP_NOTE(out, arena, "the recording is too large to simulate what fusing gains a step");
    if (first->xla && !first->programs)
        RP_NOTE(
            out, arena,
            "the profile carries no program: to see what XLA left apart, and why, give a folder "
            "with the trace and a dump (XLA_FLAGS=--xla_dump_to=DIR)");
    else if (first->recorder.framework == RP_FRAMEWORK_JAX && !first->xla)
        RP_NOTE(out, arena,
                "XLA fuses chains itself: 'reprise dump fusion DIR' tells what it left apart, and "
                "why, from a dump (XLA_FLAGS=--xla_dump_to=DIR)");
    else if (!first->with_shapes && !first->xla && out->whole_ns > 0)
        RP_NOTE(out, arena,
                rp_arena_textf(
                    arena, "no shapes were recorded%s: chains over the same sizes are not known",
                    option_text(first, RP_RECORDS_SHAPES, arena)));
    else if (!first->with_stack && !first->xla && out->nrows)
        RP_NOTE(out, arena,
                rp_arena_textf(arena, "no Python frames were recorded%s: lines are not known",
                               option_text(first, RP_RECORDS_FRAMES, arena)));
    if (out->compiler && has_kind(out, RP_FUSION_CHAIN))
        RP_NOTE(out, arena, "the program is compiled in part: chains are what runs outside of it");
    else if (out->compiler && !first->xla)
        RP_NOTE(out, arena, "the program is compiled; nothing outside of it can be fused");
    else if (has_kind(out, RP_FUSION_CHAIN))
        RP_NOTE(
            out, arena,
            "torch.compile fuses such chains; savings assume that each operator uses the result of "
            "the one before");
    if (has_kind(out, RP_FUSION_OPTIMIZER))
        RP_NOTE(out, arena, "the optimizer: fused=True does an update in one kernel");
    RP_NOTE(out, arena, first->not_counted);
}

static enum rp_code fusions_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                                 struct rp_result *result, struct rp_err *err)
{
    struct rp_fusions_root *out = result->root;
    int64_t limit = rp_settings_int(settings, "limit"), generated = 0;
    fusion_vec all = {0};
    enum rp_code code = add_up(ranks, &all, err);

    out->ranks = (int64_t)ranks->n;
    for (size_t i = 0; i < ranks->n; i++) {
        const struct rp_fusions_part *part = ranks->parts[i].data;

        rp_ns_add(&out->whole_ns, part->whole_ns);
        rp_ns_add(&generated, part->generated_ns);
        out->steps = i ? out->steps : part->steps;
        if (part->xla)
            out->compiler = "xla";
    }
    if (!out->compiler && generated)
        out->compiler = "inductor";
    out->rows = RP_ARENA_NEW(&result->arena, struct rp_fusion_row, all.n + 1);
    if (code == RP_OK && !out->rows)
        code = rp_err_nomem(err, "looking for fusions");
    if (code == RP_OK) {
        make_rows(&all, &result->arena, out);
        code = predict(ranks, &result->arena, out, err);
    }
    rp_vec_release(&all);
    RP_TRY(code);
    say_summary(&result->arena, out);
    out->row_count = (int64_t)out->nrows;
    if (limit > 0 && (size_t)limit < out->nrows)
        out->nrows = (size_t)limit;
    write_notes(ranks, &result->arena, out);
    return rp_arena_check(&result->arena, "looking for fusions", err);
}

/* ------------------------------------------------------------------ the question */

static const struct rp_option fusions_options[] = {
    {"limit", 'n', RP_OPT_COUNT, "N", "20", "at most N rows; 0: all", 0},
    {"no-simulate", 0, RP_OPT_FLAG, NULL, NULL, "do not predict a step with everything fused", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_fusions = {
    .question = {.name = "fusions",
                 .group = "traces",
                 .summary = "chains of small kernels that could be one, and what that would save",
                 .details =
                     "Element-wise kernels, reductions and normalizations that follow each other "
                     "on a stream over the same sizes, by operator, with the line that launches "
                     "them, ranked by the device time that one kernel instead would save.",
                 .examples = "reprise fusions trace.json.gz\twhat to compile or fuse first\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = fusions_options,
                 .type = &fusions_type},
    .ranks = {
        .part = &part_type, .bulk = &fusions_bulk, .rank = fusions_rank, .join = fusions_join}};
