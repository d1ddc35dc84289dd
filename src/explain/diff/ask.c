/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `diff`: what changed between two programs, or two runs. What the inputs hold decides: their first
 * bytes are looked at, and nothing is read twice. Both runs are read together, rank by rank.
 */
#include "explain/program_diff/ask.h"
#include "dataset/question.h"
#include "dataset/ranks.h"
#include "explain/diff/diff.h"

#include <stdlib.h>
#include <string.h>

/* The length of the folder in a path. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) : 0;
}

static bool same_folder(const char *a, const char *b)
{
    size_t n = folder_length(a);

    return n == folder_length(b) && !memcmp(a, b, n);
}

/* ---- traces ---- */

/* Of one rank its file; of several their folder, or the first where both runs are in one. */
static const char *name_run(const struct rp_ranks *run, const struct rp_ranks *other,
                            struct rp_arena *arena)
{
    const char *path = run->parts[0].path;
    size_t n = folder_length(path);

    if (run->n == 1)
        return path;
    if (n && !same_folder(path, other->parts[0].path))
        return rp_arena_copy(arena, path, n);
    return rp_arena_printf(arena, "%s and %zu more", path, run->n - 1);
}

static enum rp_code rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                         const struct rp_settings *settings, struct rp_rank_part *part,
                         struct rp_err *err)
{
    (void)settings;
    return rp_trace_diff_rank(loaded->trace, scope, &part->arena, part->data, err);
}

static void release(void *data)
{
    rp_trace_diff_part_release(data);
}

/* "2%" or "50us". */
static enum rp_code read_limit(const char *text, struct rp_trace_diff_options *out,
                               struct rp_err *err)
{
    static const struct rp_option forms[] = {
        {"fail-over", 0, RP_OPT_RATIO, "P%", NULL, "a share", 0},
        {"time", 0, RP_OPT_DURATION, "T", NULL, "a time", 0},
        RP_OPTION_END};
    bool share = text && strchr(text, '%'), unit = text && strpbrk(text, "nuµms");
    struct rp_setting given = {share ? "fail-over" : "time", text};
    struct rp_settings checked;

    out->fail_share = out->fail_ns = -1;
    if (!text)
        return RP_OK;
    if ((!share && !unit) || rp_settings_init(&checked, forms, &given, 1, NULL) != RP_OK)
        return rp_err_set(
            err, RP_USAGE,
            "option '--fail-over' takes a share or a time, such as 2%% or 50us, not '%s'", text);
    if (share)
        out->fail_share = rp_settings_ratio(&checked, "fail-over");
    else
        out->fail_ns = rp_settings_int(&checked, "time");
    if (out->fail_share < 0 && out->fail_ns < 0)
        return rp_err_set(err, RP_USAGE, "option '--fail-over' is 0 or more, not '%s'", text);
    return RP_OK;
}

static enum rp_code list_ranks(const struct rp_ranks *ranks, struct rp_arena *arena,
                               struct rp_trace_diff_input **out, struct rp_err *err)
{
    size_t i;

    *out = RP_ARENA_NEW(arena, struct rp_trace_diff_input, ranks->n + 1);
    if (!*out)
        return rp_err_nomem(err, "comparing runs");
    for (i = 0; i < ranks->n; i++)
        (*out)[i] = (struct rp_trace_diff_input){ranks->parts[i].data, ranks->parts[i].number};
    return RP_OK;
}

static enum rp_code join_two(const struct rp_ranks runs[2], const struct rp_settings *settings,
                             struct rp_result *result, struct rp_err *err)
{
    struct rp_trace_diff_options options = {.limit = rp_settings_int(settings, "limit")};
    struct rp_trace_diff_input *in[2];
    struct rp_trace_diff_root *root = result->root;

    RP_TRY(read_limit(rp_settings_text(settings, "fail-over"), &options, err));
    RP_TRY(list_ranks(&runs[0], &result->arena, &in[0], err));
    RP_TRY(list_ranks(&runs[1], &result->arena, &in[1], err));
    options.paths[0] = name_run(&runs[0], &runs[1], &result->arena);
    options.paths[1] = name_run(&runs[1], &runs[0], &result->arena);
    if (!options.paths[0] || !options.paths[1])
        return rp_err_nomem(err, "comparing runs");
    RP_TRY(rp_trace_diff_join(in[0], runs[0].n, in[1], runs[1].n, &options, &result->arena, root,
                              err));
    result->answer = root->failed ? RP_ANSWER_NO : 0;
    return RP_OK;
}

static const struct rp_rank_row row = {.part_bytes = sizeof(struct rp_trace_diff_part),
                                       .rank = rank,
                                       .release = release,
                                       .join_two = join_two};

/* ---- two of what ---- */

/* Of more than two paths: where the folder changes, if it does so once; else the middle. */
static size_t split_at(const struct rp_dataset *dataset, size_t ngiven)
{
    const struct rp_source *before = NULL;
    size_t i, at = 0;

    for (i = 0; i < rp_dataset_count(dataset); i++) {
        const struct rp_source *source = rp_sources_borrow(dataset->sources, i);

        if (before && before->given != source->given && !same_folder(before->path, source->path)) {
            if (at)
                return ngiven / 2;
            at = source->given;
        }
        before = source;
    }
    return at ? at : ngiven / 2;
}

/* Which of the two runs a source belongs to. */
static enum rp_code split(const struct rp_dataset *dataset, uint8_t *run_of, struct rp_err *err)
{
    size_t i, n = rp_dataset_count(dataset), ngiven = dataset->ngiven, at = 1;

    if (ngiven == 1 && n == 2) { /* a folder or a tar of two */
        run_of[1] = 1;
        return RP_OK;
    }
    if (ngiven < 2)
        return rp_err_set(err, RP_USAGE, "'diff' compares two files or folders, not one");
    if (ngiven > 2)
        at = split_at(dataset, ngiven);
    if (ngiven > 2 && at == ngiven / 2 && ngiven % 2)
        return rp_err_set(err, RP_USAGE,
                          "'diff' compares two files or folders, not %zu; of a list the files of "
                          "the first run come first, in a folder of their own or as many as of "
                          "the second",
                          ngiven);
    for (i = 0; i < n; i++)
        run_of[i] = rp_sources_borrow(dataset->sources, i)->given >= at;
    return RP_OK;
}

/* Of several the largest counts: a trace, because dumps lie beside traces; but not what could be
   any text. */
enum holds { HOLDS_NOTHING, HOLDS_SOMETHING, HOLDS_PROGRAM, HOLDS_TRACE };

/* What a source is by its first bytes. What cannot be opened or is unknown tells nothing here: the
   loader says why. */
static enum holds holds_what(const struct rp_dataset *dataset, size_t i)
{
    const struct rp_format *format = NULL;
    struct rp_input *in;
    enum holds holds = HOLDS_NOTHING;

    if (rp_source_open(dataset->sources, i, &in, NULL) != RP_OK)
        return HOLDS_NOTHING;
    if (rp_format_sniff(in, &format, NULL) == RP_OK)
        holds = format->kind == RP_FORMAT_KIND_PROGRAM ? HOLDS_PROGRAM
                : rp_format_fits_surely(in, format)    ? HOLDS_TRACE
                                                       : HOLDS_SOMETHING;
    rp_source_return(dataset->sources, i, in);
    return holds;
}

/* What each of the two holds. */
static void look_inside(const struct rp_dataset *dataset, const uint8_t *run_of,
                        enum holds holds[2])
{
    size_t i;

    holds[0] = holds[1] = HOLDS_NOTHING;
    for (i = 0; i < rp_dataset_count(dataset); i++)
        if (holds[run_of[i]] != HOLDS_TRACE) {
            enum holds here = holds_what(dataset, i);

            holds[run_of[i]] = here > holds[run_of[i]] ? here : holds[run_of[i]];
        }
    for (i = 0; i < 2; i++)
        holds[i] = holds[i] == HOLDS_SOMETHING ? HOLDS_TRACE : holds[i];
}

/* ---- answers ---- */

/* Options that the inputs cannot follow are errors. */
static enum rp_code check_settings(const struct rp_settings *settings, bool traces,
                                   struct rp_err *err)
{
    static const char *const of_traces[] = {"fail-over", "rank", "step", "window", NULL};
    static const char *const of_programs[] = {"module", "stage", NULL};
    const char *const *name = traces ? of_programs : of_traces;

    for (; *name; name++)
        if (rp_settings_has(settings, *name))
            return rp_err_set(err, RP_USAGE, "option '--%s' is about %s, and these are %s", *name,
                              traces ? "programs" : "traces", traces ? "traces" : "programs");
    return RP_OK;
}

static enum rp_code diff_programs(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                  const struct rp_settings *settings, struct rp_result *result,
                                  struct rp_err *err)
{
    struct rp_diff *root = result->root;
    int64_t limit = rp_settings_int(settings, "limit");

    RP_TRY(check_settings(settings, false, err));
    RP_TRY(rp_diff_programs(ctx, dataset, settings, result, err));
    root->inputs = "programs";
    if (rp_settings_has(settings, "limit") && limit > 0) {
        root->nchanges = (size_t)limit < root->nchanges ? (size_t)limit : root->nchanges;
        root->nmodules = (size_t)limit < root->nmodules ? (size_t)limit : root->nmodules;
        root->nsteps = (size_t)limit < root->nsteps ? (size_t)limit : root->nsteps;
    }
    return RP_OK;
}

/* The record of a result is made for programs; traces have one of their own. */
static enum rp_code diff_traces(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                const uint8_t *run_of, const struct rp_settings *settings,
                                struct rp_result *result, struct rp_err *err)
{
    struct rp_trace_diff_options options;

    RP_TRY(check_settings(settings, true, err));
    RP_TRY(read_limit(rp_settings_text(settings, "fail-over"), &options, err));
    result->root = RP_ARENA_NEW(&result->arena, struct rp_trace_diff_root, 1);
    if (!result->root)
        return rp_err_nomem(err, "comparing runs");
    result->type = &rp_trace_diff_type;
    return rp_ask_two_runs(ctx, dataset, run_of, settings, &row, result, err);
}

static enum rp_code run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err)
{
    uint8_t *run_of = RP_ARENA_NEW(&result->arena, uint8_t, rp_dataset_count(dataset) + 1);
    enum holds holds[2];
    enum rp_code code;

    if (!run_of)
        return rp_err_nomem(err, "comparing inputs");
    code = split(dataset, run_of, err);
    if (code != RP_OK) /* of programs one may be enough: a dump of several */
        memset(run_of, 0, rp_dataset_count(dataset));
    look_inside(dataset, run_of, holds);
    if (code != RP_OK && holds[0] == HOLDS_TRACE)
        return code;
    rp_err_clear(err);
    if (holds[0] != holds[1] && holds[0] && holds[1])
        return rp_err_set(err, RP_USAGE,
                          "the first input is a %s and the second a %s: 'diff' compares two of a "
                          "kind",
                          holds[0] == HOLDS_TRACE ? "trace" : "program",
                          holds[1] == HOLDS_TRACE ? "trace" : "program");
    if (holds[0] == HOLDS_TRACE || holds[1] == HOLDS_TRACE)
        return diff_traces(ctx, dataset, run_of, settings, result, err);
    return diff_programs(ctx, dataset, settings, result, err);
}

static const struct rp_option options[] = {
    {"fail-over", 0, RP_OPT_TEXT, "P%|T", NULL,
     "exit with 1 where the step is slower by more than this and the noise", 0},
    {"limit", 'n', RP_OPT_COUNT, "N", "20", "at most N rows; 0: all", 0},
    RP_RANK_OPTIONS,
    {"module", 0, RP_OPT_TEXT, "NAME", NULL, "of folders of dumps: only this module, by name or id",
     0},
    {"stage", 0, RP_OPT_TEXT, "NAME", NULL,
     "of folders of dumps: only this stage: source, before, after, a pass", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_diff = {
    .question =
        {.name = "diff",
         .group = "traces",
         .summary = "what changed between two runs, or two programs",
         .details = "Of two traces, or two folders of ranks: how much slower or faster a step is, "
                    "whether that is more than noise, and where it comes from: compute, exposed "
                    "communication, copies, idle time, and operator by operator, aligned by "
                    "their place in the call tree and their shapes. The exit status is 0, and 1 "
                    "where '--fail-over' was given and the second run is slower than it allows.\n\n"
                    "Of two programs operations are matched by what they compute: names, ids, the "
                    "order of computations and of parameters do not count. The same change in "
                    "many places is one row. The exit status is 0 where both are the same "
                    "program and 1 where they differ. Of a dump with several graphs, or a folder "
                    "where functions were compiled several times, every compilation is explained "
                    "by the one before. Folders and tars are compared module by module.",
         .examples = "reprise diff base.json.gz new.json.gz\twhy is it slower\n"
                     "reprise diff base/ new/ --fail-over 2%\tall ranks, for CI\n"
                     "reprise diff old/*.gz new/*.gz\tthe files of two folders\n"
                     "reprise diff before.txt after.txt\ttwo programs\n"
                     "reprise diff lazy.txt\twhy each graph was compiled again\n"
                     "reprise diff dump_a/ dump_b/\tprograms, module by module\n",
         .accepts = RP_ACCEPTS_TRACES | RP_ACCEPTS_PROGRAMS,
         .options = options,
         .type = &rp_diff_type},
    .run = run};
