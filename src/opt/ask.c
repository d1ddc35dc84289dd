/* SPDX-License-Identifier: Apache-2.0 */
/* The row of `optimize`: the fields of its answer and its options. */
#include "base/clock.h"
#include "dataset/bulk.h"
#include "dataset/question.h"
#include "draw/web.h"
#include "job/job.h"
#include "opt/memory.h"
#include "opt/optimize.h"
#include "sim/model/pack.h"
#include "sim/simulate.h"

extern const struct rp_question_row rp_ask_optimize; /* below */

/* ------------------------------------------------------------------ the answer */

#define MOVE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_opt_move_row, member, type, unit, title, doc, flags)

static const struct rp_field move_fields[] = {
    MOVE(move, STR, NONE, "move", "its name", 0),
    MOVE(family, STR, NONE, NULL, "its family, as '--moves' names it", 0),
    MOVE(gain_ns, I64, NS, "gain", "a step becomes shorter by, after the moves before it", 0),
    MOVE(gain_low_ns, I64, NS, "from", "lower end of its interval, null: not known", RP_NULLABLE),
    MOVE(gain_high_ns, I64, NS, "to", "upper end of its interval, null: not known", RP_NULLABLE),
    MOVE(step_ns, I64, NS, "a step then", "step with this move and those before it", 0),
    MOVE(sure, BOOL, NONE, NULL, "whether the gain is larger than its uncertainty", 0),
    MOVE(what, STR, NONE, NULL, "what changes", 0),
    MOVE(apply, STR, NONE, NULL, "how to make the change", 0),
    MOVE(what_if, STR, NONE, NULL, "the same for 'simulate --what-if', or null", 0),
    MOVE(assumes, STR, NONE, NULL, "what must hold for the prediction", 0),
    MOVE(tries, I64, COUNT, NULL,
         "measured tries of it on this machine that the interval is from; 0: none", 0),
    RP_FIELD_END};
static const struct rp_type move_type = {"move", sizeof(struct rp_opt_move_row), move_fields, NULL};

#define TRIED(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_opt_tried_row, member, type, unit, title, doc, flags)

static const struct rp_field tried_fields[] = {
    TRIED(move, STR, NONE, "move", "the move, as an argument of 'simulate --what-if'", 0),
    TRIED(family, STR, NONE, NULL, "its family", 0),
    TRIED(gain_ns, I64, NS, "alone", "how much it would bring alone; null: it does not apply",
          RP_NULLABLE),
    TRIED(why, STR, NONE, "why it is not in the plan", "the reason", 0), RP_FIELD_END};
static const struct rp_type tried_type = {"tried", sizeof(struct rp_opt_tried_row), tried_fields,
                                          NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_opt_answer, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "plan", "the plan in a sentence", 0),
    ROOT(recorded_ns, I64, NS, "recorded", "a step as recorded", RP_NULLABLE),
    ROOT(baseline_ns, I64, NS, "without the plan", "a step without the profiler and without a move",
         RP_NULLABLE),
    ROOT(best_ns, I64, NS, "with the plan", "a step with all moves", RP_NULLABLE),
    ROOT(best_low_ns, I64, NS, "  at least", "lower end of its interval", RP_NULLABLE),
    ROOT(best_high_ns, I64, NS, "  at most", "upper end of its interval", RP_NULLABLE),
    ROOT(checked_ns, I64, NS, NULL, "the plan simulated once more, from nothing", RP_NULLABLE),
    ROOT(gain_ratio, F64, RATIO, "gain", "gain / a step without the plan", 0),
    ROOT(peak_bytes, I64, BYTES, "memory at the peak", "recorded peak; null: not recorded",
         RP_NULLABLE),
    ROOT(peak_then_bytes, I64, BYTES, "  with the plan", "an estimate", RP_NULLABLE),
    ROOT(ended, STR, NONE, "search", "where it ended before it converged", RP_SCREEN),
    RP_FIELD_LIST(struct rp_opt_answer, moves, &move_type, "the plan",
                  "moves in the order to make them; gains add up", 0),
    RP_FIELD_LIST(struct rp_opt_answer, how, &rp_type_string, "how to apply it",
                  "a line for each move", RP_SCREEN),
    RP_FIELD_LIST(struct rp_opt_answer, tried, &tried_type, "not in the plan",
                  "what was tried and brings nothing, or cannot be tried", 0),
    ROOT(evaluated, I64, COUNT, NULL, "plans that were tried", 0),
    ROOT(stopped, STR, NONE, NULL, "why the search ended: converged, budget or interrupted", 0),
    RP_FIELD_LIST(struct rp_opt_answer, exported, &rp_opt_file_type, "exports",
                  "those of 'exports', which '--export' writes", RP_SCREEN),
    RP_FIELD_RECORD(struct rp_opt_answer, exports, &rp_opt_exports_type, NULL,
                    "the plan in the terms of frameworks", 0),
    RP_FIELD_LIST(struct rp_opt_answer, notes, &rp_type_string, "notes",
                  "what the numbers are based on", 0),
    RP_FIELD_END};

static const struct rp_type optimize_type = {"optimize", sizeof(struct rp_opt_answer), root_fields,
                                             "moves"};

/* ------------------------------------------------------------------ the ranks */

static enum rp_code optimize_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                  const struct rp_settings *settings, struct rp_rank_part *part,
                                  struct rp_err *err)
{
    struct rp_opt_part *out = part->data;

    (void)scope;
    (void)settings;
    RP_TRY(rp_sim_rank_model(loaded, true, NULL, part, err));
    return rp_opt_part_memory(out, loaded->trace, &part->arena, err);
}

static const struct rp_rank_bulk optimize_bulk = {.events_most = RP_SIM_EVENTS_MOST / 2,
                                                  .ranks_most = RP_SIM_RANKS_MOST / 2,
                                                  .whole = true,
                                                  .has = rp_sim_part_has_bulk,
                                                  .drop = rp_sim_part_drop};

/* Keeps the parts that differ; weights tells how many ranks have each. */
static size_t weigh_different(const struct rp_opt_parts *p, uint32_t *same_as, uint32_t *weights)
{
    size_t kept = rp_sim_keep_different(p->parts, p->given, same_as);

    for (size_t i = 0; i < p->given; i++)
        weights[same_as[i]]++;
    return kept;
}

/* The search needs the context, which joins do not get, so it comes afterwards. */
static enum rp_code optimize_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                                  struct rp_result *result, struct rp_err *err)
{
    struct rp_arena *arena = &result->arena;
    struct rp_opt_answer *root = result->root;
    struct rp_opt_parts *p = RP_ARENA_NEW(arena, struct rp_opt_parts, 1);
    uint32_t *same_as = RP_ARENA_NEW(arena, uint32_t, ranks->n + 1);
    uint32_t *weights = RP_ARENA_NEW(arena, uint32_t, ranks->n + 1);
    size_t i, kept, nodes = 0;

    (void)settings;
    RP_TRY(rp_arena_check(arena, "searching", err));
    p->parts = RP_ARENA_NEW(arena, const struct rp_sim_part *, ranks->n + 1);
    p->weights = weights;
    RP_TRY(rp_arena_check(arena, "searching", err));
    for (i = 0; i < ranks->n; i++) {
        const struct rp_opt_part *part = ranks->parts[i].data;

        p->parts[i] = &part->sim;
        if (part->peak_bytes != RP_ABSENT_I64 &&
            (!p->largest || part->peak_bytes > p->largest->peak_bytes))
            p->largest = part;
        nodes += rp_sim_part_nnodes(p->parts[i]);
    }
    p->n = p->given = ranks->n;
    p->capture = rp_ranks_are_captures(ranks);
    kept = nodes > RP_SIM_NODES_MOST && !ranks->weights ? weigh_different(p, same_as, weights)
                                                        : ranks->n;
    p->n = kept;
    if (kept == ranks->n)
        p->weights = ranks->weights;
    root->parts = p;
    return RP_OK;
}

/* ------------------------------------------------------------------ the question */

static enum rp_code read_limits(struct rp_ctx *ctx, const struct rp_settings *settings,
                                struct rp_opt_limits *out, struct rp_err *err)
{
    int64_t budget_ns = rp_settings_int(settings, "budget");

    *out = (struct rp_opt_limits){.ctx = ctx,
                                  .workspace = out->workspace,
                                  .named = rp_settings_has(settings, "moves"),
                                  .budget_ns = budget_ns,
                                  .seed = (uint64_t)rp_settings_int(settings, "seed"),
                                  .memory_bytes = rp_settings_int(settings, "memory-budget")};
    if (budget_ns <= 0)
        return rp_err_set(err, RP_USAGE, "'--budget' must be a time above 0");
    if (__builtin_add_overflow(rp_clock_ns(), budget_ns, &out->until_ns))
        out->until_ns = INT64_MAX;
    if (out->workspace)
        out->workspace->began_ns = rp_clock_ns();
    return rp_opt_families(rp_settings_text(settings, "moves"), &out->families, err);
}

/* For a job whose groups of tensors cannot be searched, finds what else can be changed. */
static enum rp_code optimize_plainly(const struct rp_job *job, const char *why,
                                     struct rp_opt_limits *limits, struct rp_result *result,
                                     struct rp_err *err)
{
    RP_SCOPED(rp_sim_part_release) struct rp_sim_part part = {0};
    const struct rp_sim_part *list[] = {&part};
    struct rp_opt_parts parts = {.n = 1,
                                 .parts = list,
                                 .given = job->nranks,
                                 .no_tensors = rp_arena_text(&result->arena, why),
                                 .source = job->has_servers ? RP_OPT_BYTEPS : RP_OPT_HOROVOD};

    RP_TRY(rp_sim_part_of_job(&part, job, err));
    return rp_opt_answer_run(&parts, limits, &result->arena, result->root, err);
}

static enum rp_code optimize_job(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                 const struct rp_settings *settings, struct rp_opt_limits *limits,
                                 struct rp_result *result, struct rp_err *err)
{
    struct rp_opt_job_asked asked = {rp_settings_text(settings, "candidates"),
                                     rp_settings_text(settings, "from")};
    struct rp_err why = RP_ERR_INIT;
    struct rp_job job;
    enum rp_code code = rp_load_job(ctx, dataset, &job, err);

    if (code == RP_OK)
        code = rp_job_align(&job, err);
    if (code == RP_OK)
        code = rp_load_job_tensors(dataset, &job, err);
    if (code == RP_OK)
        code = read_limits(ctx, settings, limits, err);
    if (code == RP_OK)
        code = rp_opt_answer_job(&job, &asked, limits, &result->arena, result->root, &why);
    if (code == RP_UNSUPPORTED && *why.text)
        code = optimize_plainly(&job, why.text, limits, result, err);
    else if (code != RP_OK && *why.text)
        rp_err_set(err, code, "%s", why.text);
    rp_job_release(&job);
    return code;
}

static enum rp_code search_dataset(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                   const struct rp_settings *settings, struct rp_opt_limits *limits,
                                   struct rp_result *result, struct rp_err *err)
{
    struct rp_opt_answer *root = result->root;

    if (rp_dataset_is_job(dataset))
        return optimize_job(ctx, dataset, settings, limits, result, err);
    if (rp_settings_text(settings, "from") || rp_settings_text(settings, "candidates"))
        return rp_err_set(err, RP_USAGE,
                          "'--from' and '--candidates' name operators of a dPRO directory: a trace "
                          "has none of these names");
    RP_TRY(rp_ask_ranks(ctx, dataset, settings, &rp_ask_optimize.ranks, result, err));
    RP_TRY(read_limits(ctx, settings, limits, err));
    return rp_opt_answer_run(root->parts, limits, &result->arena, root, err);
}

static enum rp_code optimize_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                 const struct rp_settings *settings, struct rp_result *result,
                                 struct rp_err *err)
{
    const char *export = rp_settings_text(settings, "export");
    struct rp_opt_answer *root = result->root;
    struct rp_opt_workspace workspace = {0};
    struct rp_opt_limits limits = {.workspace = &workspace};

    RP_TRY(
        read_limits(ctx, settings, &limits, err)); /* limits are checked before anything is read */
    RP_TRY(rp_opt_exports_check(export, err));
    enum rp_code code = rp_opt_workspace_open(&workspace, rp_settings_text(settings, "workspace"),
                                              rp_settings_flag(settings, "resume"), err);
    if (code == RP_OK)
        code = search_dataset(ctx, dataset, settings, &limits, result, err);
    rp_opt_workspace_release(&workspace);
    RP_TRY(code);
    root->stopped = rp_opt_stop_name(limits.stopped);
    if (limits.stopped != RP_OPT_CONVERGED)
        root->ended = limits.stopped == RP_OPT_INTERRUPTED
                          ? "interrupted: this is the best plan so far"
                          : "the budget is used up: this is the best plan so far ('--budget')";
    return rp_opt_exports_write(&root->exports, export, err);
}

/* The page tells what the answer rests on. */
static enum rp_code optimize_write(const struct rp_settings *settings, struct rp_result *result,
                                   struct rp_err *err)
{
    const char *html = rp_settings_text(settings, "html");
    struct rp_web_answer page = {.result = result, .name = "optimize"};

    return html ? rp_web_write_answer(&page, html, err) : RP_OK;
}

static const struct rp_option optimize_options[] = {
    {"moves", 'm', RP_OPT_TEXT, "NAME,…", NULL,
     "search only these: tensor, fusion, graphs, precision, memory, overlap, balance; '^memory' leaves one out",
     0},
    {"budget", 'b', RP_OPT_DURATION, "SECONDS", "10", "time limit of the search: 10, 30s or 5m", 0},
    {"seed", 0, RP_OPT_INT, "N", "1",
     "seed of the random choices: the same seed gives the same plan", 0},
    {"memory-budget", 0, RP_OPT_BYTES, "SIZE", NULL,
     "memory that a rank may use at its peak, such as 80GiB", 0},
    {"export", 'x', RP_OPT_TEXT, "DIR|NAME=FILE", NULL,
     "write the plan for its framework: all files into a folder, or one export into a file", 0},
    {"candidates", 0, RP_OPT_PATH, "FILE", NULL,
     "for a dPRO directory: operators that may be fused, one name at the start of each line", 0},
    {"from", 0, RP_OPT_PATH, "FILE", NULL,
     "for a dPRO directory: fuse the clusters of this file (an operator and its cluster per line), and send the gradients of a cluster together",
     0},
    {"workspace", 'w', RP_OPT_PATH, "DIR", NULL, "keep the search in this folder", 0},
    {"resume", 0, RP_OPT_FLAG, NULL, NULL, "continue from the best plan in the workspace", 0},
    {"rank", 'r', RP_OPT_TEXT, "N[-M],…", NULL, "only these ranks, as in '0,3' or '8-15'", 0},
    {"html", 0, RP_OPT_PATH, "FILE", NULL,
     "also write a page for a browser: the plan as a waterfall, and all tables", 0},
    RP_STEP_NAME_OPTION,
    RP_OPTION_END};

const struct rp_question_row rp_ask_optimize = {
    .question =
        {.name = "optimize",
         .group = "predict",
         .summary = "search for the changes that make a step shortest, and say how to make them",
         .details =
             "Tries changes and their combinations on the model that 'simulate' runs: "
             "buckets of gradients, a fused optimizer, CUDA graphs, fused operators, "
             "16-bit operators, recomputation and overlap. Each move of the plan has its own "
             "gain; they add up.",
         .examples = "reprise optimize run/\tall moves\n"
                     "reprise optimize --moves tensor run/\tonly the buckets of gradients\n",
         .accepts = RP_ACCEPTS_TRACES,
         .options = optimize_options,
         .type = &optimize_type,
         .anytime = 1},
    .ranks = {.part = &rp_opt_part_type,
              .waits = true,
              .shares = true,
              .bulk = &optimize_bulk,
              .rank = optimize_rank,
              .join = optimize_join},
    .run = optimize_run,
    .write = optimize_write};
