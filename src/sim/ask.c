/* SPDX-License-Identifier: Apache-2.0 */
/* `simulate`: rebuild a run from its parts, then change it. */
#include "dataset/question.h"
#include "dataset/ranks.h"
#include "formats/write/writers.h"
#include "job/clocks.h"
#include "job/load.h"
#include "job/model.h"
#include "job/pipeline_model.h"
#include "sim/answer.h"

#include <string.h>

extern const struct rp_question_row rp_ask_simulate;

static enum rp_code simulate_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                  const struct rp_settings *settings, struct rp_rank_part *part,
                                  struct rp_err *err)
{
    struct rp_sim_part *out = part->data;
    enum rp_code code;

    (void)scope;
    (void)settings;
    code = rp_trace_is_pipeline(loaded->trace)
               ? rp_sim_part_of_pipeline(out, loaded->trace, err)
               : rp_sim_part_init(out, loaded->trace, &part->arena, err);
    rp_arena_adopt(&part->arena, &out->graph.arena);
    return code;
}

/* A backend alone means its rings. */
static enum rp_code read_expand(const struct rp_settings *settings, struct rp_expand *out,
                                struct rp_err *err)
{
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
    return out->shape == RP_EXPAND_TREE && out->backend == RP_BACKEND_BYTEPS
               ? rp_err_set(err, RP_USAGE, "'--backend byteps' has servers, not trees")
               : RP_OK;
}

static enum rp_code read_cost(const struct rp_settings *settings, struct rp_sim_asked *out,
                              struct rp_err *err)
{
    if (rp_settings_has(settings, "unprofiled-step"))
        out->unprofiled_ns = rp_settings_int(settings, "unprofiled-step");
    if (rp_settings_has(settings, "profiler-cost"))
        out->cost_factor = rp_settings_ratio(settings, "profiler-cost");
    if (rp_settings_has(settings, "unprofiled-step") && out->unprofiled_ns <= 0)
        return rp_err_set(err, RP_USAGE, "'--unprofiled-step' is a time above 0, such as 12.5ms");
    if (rp_settings_has(settings, "profiler-cost") &&
        !(out->cost_factor > 0 && out->cost_factor <= 100))
        return rp_err_set(err, RP_USAGE,
                          "'--profiler-cost' is a factor above 0, such as 1.3 or 130%%");
    if (out->unprofiled_ns > 0 && out->cost_factor > 0)
        return rp_err_set(err, RP_USAGE,
                          "'--unprofiled-step' finds the factor that '--profiler-cost' gives: only "
                          "one of them");
    return RP_OK;
}

static enum rp_code answer(const struct rp_sim_part *const *parts, size_t n,
                           const struct rp_settings *settings, struct rp_result *result,
                           struct rp_err *err)
{
    const char *whatifs[256], *text, *path = rp_settings_text(settings, "trace");
    const struct rp_writer *writer = NULL;
    struct rp_trace *trace = NULL;
    struct rp_sim_asked asked = {.whatifs = whatifs, .trace = path ? &trace : NULL};
    size_t nwhatifs = 0;
    enum rp_code code;

    RP_TRY(read_expand(settings, &asked.expand, err));

    while ((text = rp_settings_nth(settings, "what-if", nwhatifs)) != NULL) {
        if (nwhatifs == sizeof whatifs / sizeof whatifs[0])
            return rp_err_set(err, RP_USAGE, "more than %zu what-ifs in one call", nwhatifs);
        whatifs[nwhatifs++] = text;
    }
    if (path && nwhatifs > 1)
        return rp_err_set(err, RP_USAGE,
                          "'--trace' writes one run: give one '--what-if', joined with '+' where "
                          "several apply together");
    if (path)
        RP_TRY(rp_writer_for(NULL, path, &writer, err));
    if (writer && !writer->write)
        return rp_err_set(err, RP_USAGE, "'%s': a trace cannot be written as %s", path,
                          writer->name);
    asked.nwhatifs = nwhatifs;
    RP_TRY(read_cost(settings, &asked, err));
    code = rp_sim_answer(parts, n, &asked, &result->arena, result->root, err);
    if (code == RP_OK && trace && writer)
        code = writer->write(trace, path, NULL, err);
    rp_trace_free(trace);
    return code;
}

static enum rp_code simulate_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                                  struct rp_result *result, struct rp_err *err)
{
    const struct rp_sim_part **parts =
        RP_ARENA_NEW(&result->arena, const struct rp_sim_part *, ranks->n + 1);
    size_t i;

    if (!parts)
        return rp_err_nomem(err, "simulating");
    for (i = 0; i < ranks->n; i++)
        parts[i] = ranks->parts[i].data;
    return answer(parts, ranks->n, settings, result, err);
}

static enum rp_code simulate_job(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                 const struct rp_settings *settings, struct rp_result *result,
                                 struct rp_err *err)
{
    struct rp_sim_part part = {0};
    const struct rp_sim_part *parts[] = {&part};
    struct rp_job job;
    enum rp_code code = rp_load_job(ctx, dataset, &job, err);

    if (code == RP_OK)
        code = rp_job_align(&job, err);
    if (code == RP_OK)
        code = rp_sim_part_of_job(&part, &job, err);
    if (code == RP_OK)
        code = answer(parts, 1, settings, result, err);
    rp_sim_part_release(&part);
    rp_job_release(&job);
    return code;
}

static bool wants_help(const struct rp_settings *settings)
{
    const char *text;
    size_t i;

    for (i = 0; (text = rp_settings_nth(settings, "what-if", i)) != NULL; i++)
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
    if (rp_dataset_is_job(dataset))
        return simulate_job(ctx, dataset, settings, result, err);
    return rp_ask_ranks(ctx, dataset, settings, &rp_ask_simulate.ranks, result, err);
}

static const struct rp_option simulate_options[] = {
    {"what-if", 'w', RP_OPT_TEXT, "CHANGE", NULL,
     "predict a step with this change; 'help' lists them, '+' joins several", RP_OPT_REPEAT},
    {"trace", 't', RP_OPT_TEXT, "FILE", NULL,
     "write the simulated run (with the what-if, if there is one) as a trace: .json, .json.gz, .rpt",
     0},
    {"collective", 0, RP_OPT_CHOICE, "whole|ring|tree", NULL,
     "collectives as meetings and transfers (whole, the default), or as the hops of rings or trees",
     0},
    {"backend", 0, RP_OPT_CHOICE, "nccl|gloo|byteps", NULL,
     "whose hops: rings both ways (nccl, the default), one ring in two pieces, or servers", 0},
    {"unprofiled-step", 'u', RP_OPT_DURATION, "TIME", NULL,
     "a step takes that long without the profiler, as measured: its cost is set to that", 0},
    {"profiler-cost", 0, RP_OPT_RATIO, "FACTOR", NULL,
     "the profiler cost so many times the estimate, as '--unprofiled-step' found (cost_factor)", 0},
    {"rank", 'r', RP_OPT_TEXT, "N[-M],…", NULL, "only these ranks, as in '0,3' or '8-15'", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_simulate = {
    .question = {.name = "simulate",
                 .group = "predict",
                 .summary = "rebuild a step from its parts, then change it",
                 .details = "Runs the step graph of a recording forward and says how well that "
                            "repeats it; then what a change would bring, for a run without the "
                            "profiler.",
                 .examples = "reprise simulate trace.json.gz --what-if cuda-graphs\tbefore you "
                             "build it\n",
                 .accepts = RP_ACCEPTS_TRACES | RP_ACCEPTS_NONE_TOO,
                 .options = simulate_options,
                 .type = &rp_sim_type},
    .ranks = {.part = &rp_sim_part_type, .rank = simulate_rank, .join = simulate_join},
    .run = simulate_run};
