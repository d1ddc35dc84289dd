/* SPDX-License-Identifier: Apache-2.0 */
/* The row of `simulate`: the fields of its answer, its options, and the part of a rank. */
#include "dataset/bulk.h"
#include "dataset/question.h"
#include "dataset/ranks.h"
#include "draw/web.h"
#include "facts/host/trace_host.h"
#include "facts/idle/gaps.h"
#include "formats/write/writers.h"
#include "job/job.h"
#include "job/pipeline.h"
#include "sim/kernel_ratios.h"
#include "sim/model/pack.h"
#include "sim/simulate.h"

#include <string.h>

extern const struct rp_question_row rp_ask_simulate; /* below */

/* ------------------------------------------------------------------ the answer */

#define BASE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_sim_baseline, member, type, unit, title, doc, flags)

static const struct rp_field base_fields[] = {
    BASE(step_ns, I64, NS, "recorded", "a step, as 'report' and 'info' measure it", RP_NULLABLE),
    BASE(simulated_step_ns, I64, NS, "simulated", "the same from the simulation", RP_NULLABLE),
    BASE(measured_ns, I64, NS, NULL,
         "distance of the first device work of consecutive steps, on the first rank", RP_NULLABLE),
    BASE(simulated_ns, I64, NS, NULL, "the same from the simulation", RP_NULLABLE),
    BASE(unprofiled_ns, I64, NS, "without the profiler", "simulated without the cost of recording",
         RP_NULLABLE),
    BASE(unprofiled_low_ns, I64, NS, "  at least", "lower end of its interval", RP_NULLABLE),
    BASE(unprofiled_high_ns, I64, NS, "  at most", "upper end of its interval", RP_NULLABLE),
    BASE(span_cost_ns, I64, NS, "recording a span",
         "what recording a span of the host cost, on the first rank", RP_NULLABLE),
    BASE(cost_factor, F64, NONE, NULL, "the cost of recording, in multiples of the estimate", 0),
    BASE(error_ratio, F64, RATIO, "error", "simulated / recorded - 1", 0),
    BASE(spread_ratio, F64, RATIO, "steps differ by", "one step against the others, or null", 0),
    BASE(ranks, I64, COUNT, "ranks", "ranks in the simulation", RP_NULLABLE),
    BASE(steps, I64, COUNT, "steps", "recorded", RP_NULLABLE),
    BASE(tasks, I64, COUNT, "tasks", "tasks in the simulation", RP_NULLABLE),
    BASE(edges, I64, COUNT, "edges", "edges between them", RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type base_type = {"baseline", sizeof(struct rp_sim_baseline), base_fields,
                                         NULL};

#define PRED(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_sim_prediction, member, type, unit, title, doc, flags)

static const struct rp_field pred_fields[] = {
    PRED(what_if, STR, NONE, "what if", "the what-if as given", 0),
    PRED(simulated_ns, I64, NS, NULL,
         "distance of the first device work of steps, as the same profiler would record it",
         RP_NULLABLE),
    PRED(predicted_ns, I64, NS, "a step", "step time without the profiler", RP_NULLABLE),
    PRED(low_ns, I64, NS, "from", "lower end of the interval, null: not known", RP_NULLABLE),
    PRED(high_ns, I64, NS, "to", "upper end of the interval, null: not known", RP_NULLABLE),
    PRED(change_ratio, F64, RATIO, "change", "against the step without the profiler", 0),
    PRED(bound_by, STR, NONE, "mainly", "the largest part of its critical path", RP_NULLABLE),
    PRED(simulated_step_ns, I64, NS, NULL, "step time as the same profiler would record it",
         RP_NULLABLE),
    PRED(change_low_ratio, F64, RATIO, NULL,
         "lower end of the change: what is not known is assumed with and without it", 0),
    PRED(change_high_ratio, F64, RATIO, NULL, "upper end of the change", 0),
    PRED(uncertain, STR, NONE, NULL, "what the interval of the step is mostly due to", RP_NULLABLE),
    PRED(applies, STR, NONE, NULL,
         "whether it can be made, by the recording: yes, part (of a step: only that is predicted) "
         "or no: then the assumptions do not hold; null: not known",
         RP_NULLABLE),
    PRED(because, STR, NONE, NULL, "what that follows from; null: it always applies", RP_NULLABLE),
    PRED(assumes, STR, NONE, NULL, "assumptions of the prediction", 0),
    PRED(changed, STR, NONE, NULL, "what it changed, where it selects by name", RP_NULLABLE),
    PRED(impossible, STR, NONE, NULL, "why there is no prediction", RP_NULLABLE),
    PRED(tries, I64, COUNT, NULL,
         "measured tries of this change on this machine that the interval is from; 0: none", 0),
    RP_FIELD_END};
static const struct rp_type pred_type = {"prediction", sizeof(struct rp_sim_prediction),
                                         pred_fields, NULL};

#define BOUND(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_sim_bound, member, type, unit, title, doc, flags)

static const struct rp_field bound_fields[] = {
    BOUND(what, STR, NONE, "on the path", "kernels, host, gaps between them …", 0),
    BOUND(ns, I64, NS, "a step", "time of a step", 0),
    BOUND(ratio, F64, RATIO, "share", "share of the path", 0), RP_FIELD_END};
static const struct rp_type bound_type = {"bound", sizeof(struct rp_sim_bound), bound_fields, NULL};

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_sim_rank, member, type, unit, title, doc, flags)

static const struct rp_field rank_fields[] = {
    RANK(rank, I64, NONE, "rank", "its number", 0),
    RANK(host_ns, I64, NS, "host", "work of its threads in a step", 0),
    RANK(compute_ns, I64, NS, "kernels", "compute time of its device", 0),
    RANK(memory_ns, I64, NS, "copies", "time of copies on its device", 0),
    RANK(comm_ns, I64, NS, "transfers", "time of collectives, without waiting", 0),
    RANK(waiting_ns, I64, NS, "waiting", "waiting for other ranks in collectives", 0),
    RANK(slack_ns, I64, NS, "slack",
         "how much later it may arrive at its collectives before a step ends later",
         RP_SMALLEST | RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_sim_rank), rank_fields, NULL};

#define KNOWN(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_sim_known, member, type, unit, title, doc, flags)

static const struct rp_field known_fields[] = {
    KNOWN(form, STR, NONE, "what if", "how it is written", 0),
    KNOWN(summary, STR, NONE, "effect", "what it changes", 0),
    KNOWN(assumes, STR, NONE, "assumes", "assumptions of the prediction", 0), RP_FIELD_END};
static const struct rp_type known_type = {"known", sizeof(struct rp_sim_known), known_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD_LIST(struct rp_sim_answer, known, &known_type, "what-ifs",
                  "listed by '--what-if help'", RP_BLOCKS),
    RP_FIELD_LIST(struct rp_sim_answer, predictions, &pred_type, "predictions",
                  "one for each --what-if", 0),
    RP_FIELD_LIST(struct rp_sim_answer, path, &bound_type, "what a step is limited by",
                  "the critical path of the simulated run", 0),
    RP_FIELD_LIST(struct rp_sim_answer, by_rank, &rank_type, "a step by rank",
                  "of several ranks: sums of their work, which may overlap", 0),
    RP_FIELD_RECORD(struct rp_sim_answer, baseline, &base_type, "baseline",
                    "how well the model reproduces the recording", 0),
    RP_FIELD_LIST(struct rp_sim_answer, notes, &rp_type_string, "notes",
                  "what the numbers are based on", 0),
    RP_FIELD_END};

static const struct rp_type simulate_type = {"simulate", sizeof(struct rp_sim_answer), root_fields,
                                             "predictions"};

/* ------------------------------------------------------------------ the ranks */

static bool asks_for(const struct rp_settings *settings, const char *whatif)
{
    const char *text;

    for (size_t i = 0; (text = rp_settings_nth(settings, "what-if", i)) != NULL; i++)
        if (strstr(text, whatif))
            return true;
    return false;
}

enum rp_code rp_sim_rank_model(const struct rp_loaded *loaded, bool ratios, const char *model,
                               struct rp_rank_part *part, struct rp_err *err)
{
    struct rp_sim_part *out = part->data;
    int64_t idle_ns[RP_GAP_CAUSES] = {0};
    enum rp_code code = rp_trace_is_pipeline(loaded->trace)
                            ? rp_sim_part_of_pipeline(out, loaded->trace, err)
                            : rp_sim_part_init(out, loaded->trace, &part->arena, err);

    if (code == RP_OK && !out->collectives.host)
        code = rp_trace_host(loaded->trace, loaded->source->name, &part->arena,
                             &out->collectives.host, err);
    if (code == RP_OK && out->has_steps)
        code = rp_gaps_sum(loaded->trace, &part->arena, idle_ns, err);
    out->start_up = rp_gaps_start_up(idle_ns);
    if (code == RP_OK && ratios)
        code = rp_sim_part_ask_model(out, loaded, model, err);
    if (code == RP_OK && loaded->trace->world_size > RP_SIM_MANY_RANKS)
        code = rp_sim_part_pack(out, err);
    rp_arena_adopt(&part->arena, &out->graph.arena);
    return code;
}

static enum rp_code simulate_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                  const struct rp_settings *settings, struct rp_rank_part *part,
                                  struct rp_err *err)
{
    bool ratios = asks_for(settings, "dtype") || asks_for(settings, "tf32") ||
                  asks_for(settings, "graphs") || asks_for(settings, "compile");

    (void)scope;
    return rp_sim_rank_model(loaded, ratios, ratios ? rp_settings_text(settings, "model") : NULL,
                             part, err);
}

static enum rp_code read_cost(const struct rp_settings *settings, struct rp_sim_asked *out,
                              struct rp_err *err)
{
    if (rp_settings_has(settings, "unprofiled-step"))
        out->unprofiled_ns = rp_settings_int(settings, "unprofiled-step");
    if (rp_settings_has(settings, "profiler-cost"))
        out->cost_factor = rp_settings_ratio(settings, "profiler-cost");
    if (rp_settings_has(settings, "unprofiled-step") && out->unprofiled_ns <= 0)
        return rp_err_set(err, RP_USAGE,
                          "'--unprofiled-step' must be a time above 0, such as 12.5ms");
    if (rp_settings_has(settings, "profiler-cost") &&
        !(out->cost_factor > 0 && out->cost_factor <= 100))
        return rp_err_set(err, RP_USAGE,
                          "'--profiler-cost' must be a factor above 0, such as 1.3 or 130%%");
    if (out->unprofiled_ns > 0 && out->cost_factor > 0)
        return rp_err_set(
            err, RP_USAGE,
            "'--unprofiled-step' computes the factor that '--profiler-cost' sets: give "
            "only one of them");
    return RP_OK;
}

static enum rp_code answer_parts(const struct rp_sim_part *const *parts, size_t n,
                                 const struct rp_sim_asked *about,
                                 const struct rp_settings *settings, struct rp_result *result,
                                 struct rp_err *err)
{
    const char *whatifs[256], *text, *path = rp_settings_text(settings, "trace");
    const struct rp_writer *writer = NULL;
    struct rp_trace *trace = NULL;
    struct rp_sim_asked asked = about ? *about : (struct rp_sim_asked){0};
    size_t nwhatifs = 0;

    asked.whatifs = whatifs;
    asked.trace = path ? &trace : NULL;

    /* A backend alone means its rings. */
    struct rp_expand *out = &asked.expand;
    const char *shape = rp_settings_text(settings, "collective");
    const char *backend = rp_settings_text(settings, "backend");
    *out = (struct rp_expand){0};
    out->shape = backend ? RP_EXPAND_RING : RP_EXPAND_WHOLE;
    if (shape)
        out->shape = !strcmp(shape, "ring")   ? RP_EXPAND_RING
                     : !strcmp(shape, "tree") ? RP_EXPAND_TREE
                                              : RP_EXPAND_WHOLE;
    if (backend)
        out->backend = !strcmp(backend, "gloo")     ? RP_BACKEND_GLOO
                       : !strcmp(backend, "byteps") ? RP_BACKEND_BYTEPS
                                                    : RP_BACKEND_NCCL;
    if (out->shape == RP_EXPAND_TREE && out->backend == RP_BACKEND_BYTEPS)
        return rp_err_set(
            err, RP_USAGE,
            "'--backend byteps' uses servers: it does not go with '--collective tree'");

    while ((text = rp_settings_nth(settings, "what-if", nwhatifs)) != NULL) {
        if (nwhatifs == sizeof whatifs / sizeof whatifs[0])
            return rp_err_set(err, RP_USAGE, "more than %zu what-ifs at once", nwhatifs);
        whatifs[nwhatifs++] = text;
    }
    if (path && nwhatifs > 1)
        return rp_err_set(
            err, RP_USAGE,
            "'--trace' writes one run: give one '--what-if', or join several with '+'");
    if (path)
        RP_TRY(rp_writer_for(NULL, path, &writer, err));
    if (writer && !writer->write)
        return rp_err_set(err, RP_USAGE, "'%s': a trace cannot be written as %s", path,
                          writer->name);
    asked.nwhatifs = nwhatifs;
    RP_TRY(read_cost(settings, &asked, err));
    enum rp_code code = rp_sim_answer(parts, n, &asked, &result->arena, result->root, err);
    if (code == RP_OK && trace && writer)
        code = writer->write(trace, path, NULL, err);
    rp_trace_free(trace);
    return code;
}

/* Whether the question treats all ranks alike: no what-if names or compares ranks, and nothing
   needs each of them. */
static bool treats_alike(const struct rp_settings *settings)
{
    static const char *const by_rank[] = {"straggler", "ranks", "scale:rank"};
    const char *text;

    if (rp_settings_text(settings, "trace") || rp_settings_text(settings, "collective") ||
        rp_settings_text(settings, "backend"))
        return false;
    for (size_t i = 0; (text = rp_settings_nth(settings, "what-if", i)) != NULL; i++)
        for (size_t k = 0; k < sizeof by_rank / sizeof by_rank[0]; k++)
            if (strstr(text, by_rank[k]))
                return false;
    return true;
}

bool rp_sim_part_has_bulk(const void *part)
{
    return rp_sim_part_nnodes(part) > 0;
}

void rp_sim_part_drop(void *part)
{
    *(struct rp_sim_part *)part = (struct rp_sim_part){0};
}

size_t rp_sim_keep_different(const struct rp_sim_part **parts, size_t n, uint32_t *same_as)
{
    size_t i, k, kept = 0;

    for (i = 0; i < n; i++) {
        for (k = 0; k < kept && parts[k] != parts[i];)
            k++;
        if (k == kept)
            parts[kept++] = parts[i];
        same_as[i] = (uint32_t)k;
    }
    return kept;
}

static enum rp_code simulate_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                                  struct rp_result *result, struct rp_err *err)
{
    struct rp_arena *arena = &result->arena;
    const struct rp_sim_part **parts =
        RP_ARENA_NEW(arena, const struct rp_sim_part *, ranks->n + 1);
    uint32_t *same_as = RP_ARENA_NEW(arena, uint32_t, ranks->n + 1);
    int32_t *numbers = RP_ARENA_NEW(arena, int32_t, ranks->n + 1);
    struct rp_sim_asked about = {.given = ranks->n, .numbers = numbers, .weights = ranks->weights};
    size_t i, kept, nodes = 0, n = ranks->n;

    RP_TRY(rp_arena_check(arena, "simulating", err));
    for (i = 0; i < n; i++) {
        parts[i] = ranks->parts[i].data;
        numbers[i] = ranks->parts[i].number;
        nodes += rp_sim_part_nnodes(parts[i]);
    }
    if (nodes > RP_SIM_NODES_MOST && !ranks->weights && treats_alike(settings)) {
        kept = rp_sim_keep_different(parts, n, same_as);
        about.same_as = kept < n ? same_as : NULL;
        n = kept;
    }
    return answer_parts(parts, n, &about, settings, result, err);
}

static bool wants_help(const struct rp_settings *settings)
{
    const char *text;

    for (size_t i = 0; (text = rp_settings_nth(settings, "what-if", i)) != NULL; i++)
        if (!strcmp(text, "help"))
            return true;
    return false;
}

static enum rp_code simulate_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                 const struct rp_settings *settings, struct rp_result *result,
                                 struct rp_err *err)
{
    if (wants_help(settings))
        return rp_sim_answer_help(&result->arena, result->root, err);
    if (!dataset)
        return rp_err_set(err, RP_USAGE, "'simulate' needs a trace, or '--what-if help'");
    if (rp_dataset_is_job(dataset)) {
        RP_SCOPED(rp_sim_part_release) struct rp_sim_part part = {0};
        const struct rp_sim_part *parts[] = {&part};
        RP_SCOPED(rp_job_release) struct rp_job job = {0};

        RP_TRY(rp_load_job(ctx, dataset, &job, err));
        RP_TRY(rp_job_align(&job, err));
        RP_TRY(rp_sim_part_of_job(&part, &job, err));
        return answer_parts(parts, 1, NULL, settings, result, err);
    }
    return rp_ask_ranks(ctx, dataset, settings, &rp_ask_simulate.ranks, result, err);
}

/* The page also shows what the answer is based on. */
static enum rp_code simulate_write(const struct rp_settings *settings, struct rp_result *result,
                                   struct rp_err *err)
{
    const char *html = rp_settings_text(settings, "html");
    struct rp_web_answer page = {.result = result, .name = "simulate"};

    return html ? rp_web_write_answer(&page, html, err) : RP_OK;
}

static const struct rp_option simulate_options[] = {
    {"what-if", 'w', RP_OPT_TEXT, "CHANGE", NULL,
     "predict a step with this change; 'help' lists what-ifs, '+' joins several", RP_OPT_REPEAT},
    {"trace", 't', RP_OPT_TEXT, "FILE", NULL,
     "write the simulated run (with the what-if, if given) as a trace: .json, .json.gz, .rpt", 0},
    {"collective", 0, RP_OPT_CHOICE, "whole|ring|tree", NULL,
     "model a collective as one transfer (whole, the default) or as the hops of a ring or tree", 0},
    {"backend", 0, RP_OPT_CHOICE, "nccl|gloo|byteps", NULL,
     "the library whose hops are modelled: rings in both directions (nccl, the default), one ring with chunks in two halves (gloo), or servers (byteps)",
     0},
    {"unprofiled-step", 'u', RP_OPT_DURATION, "TIME", NULL,
     "measured time of a step without the profiler; calibrates the cost of recording", 0},
    {"profiler-cost", 0, RP_OPT_RATIO, "FACTOR", NULL,
     "cost of recording in multiples of the estimate, as found by '--unprofiled-step' (cost_factor)",
     0},
    {"model", 0, RP_OPT_PATH, "FILE", NULL,
     "cost model of 'reprise model train' for dtype and tf32, instead of the built-in one", 0},
    {"rank", 'r', RP_OPT_TEXT, "N[-M],…", NULL, "only these ranks, as in '0,3' or '8-15'", 0},
    {"html", 0, RP_OPT_PATH, "FILE", NULL,
     "also write a page for a browser: what each change would bring, and all tables", 0},
    RP_STEP_NAME_OPTION,
    RP_OPTION_END};

static const struct rp_rank_bulk simulate_bulk = {.events_most = RP_SIM_EVENTS_MOST,
                                                  .ranks_most = RP_SIM_RANKS_MOST,
                                                  .whole = true,
                                                  .allows = treats_alike,
                                                  .has = rp_sim_part_has_bulk,
                                                  .drop = rp_sim_part_drop};

const struct rp_question_row rp_ask_simulate = {
    .question =
        {.name = "simulate",
         .group = "predict",
         .summary = "predict what a change would bring, from a model that reproduces the recording",
         .details = "Runs the step graph of a recording forward and reports how well that "
                    "reproduces it; then predicts a step with a change, for a run "
                    "without the profiler.",
         .examples = "reprise simulate trace.json.gz --what-if cuda-graphs\tbefore you "
                     "implement it\n",
         .accepts = RP_ACCEPTS_TRACES | RP_ACCEPTS_NONE_TOO,
         .options = simulate_options,
         .type = &simulate_type},
    .ranks = {.part = &rp_sim_part_type,
              .waits = true,
              .shares = true,
              .bulk = &simulate_bulk,
              .rank = simulate_rank,
              .join = simulate_join},
    .run = simulate_run,
    .write = simulate_write};
