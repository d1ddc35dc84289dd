/* SPDX-License-Identifier: Apache-2.0 */
/* `critpath`: the chain of events that takes the time of a recording. */
#include "api/ask_ranks.h"
#include "api/question_row.h"
#include "explain/trace_critpath.h"

static enum rp_code rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                         const struct rp_settings *settings, struct rp_rank_part *part,
                         struct rp_err *err)
{
    (void)settings;
    return rp_critpath_rank(loaded->trace, scope, &part->arena, part->data, err);
}

static void release(void *data)
{
    rp_critpath_part_release(data);
}

static enum rp_code join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                         struct rp_result *result, struct rp_err *err)
{
    struct rp_critpath_input *in =
        RP_ARENA_NEW(&result->arena, struct rp_critpath_input, ranks->n + 1);
    int64_t limit = rp_settings_int(settings, "limit");
    struct rp_critpath_run run = {0};
    enum rp_code code;
    size_t i;

    if (!in)
        return rp_err_nomem(err, "joining ranks");
    for (i = 0; i < ranks->n; i++)
        in[i] = (struct rp_critpath_input){ranks->parts[i].data, ranks->parts[i].path,
                                           ranks->parts[i].number};
    code = rp_critpath_join(in, ranks->n, limit > 0 ? (size_t)limit : SIZE_MAX, &result->arena,
                            &run, result->root, err);
    rp_critpath_run_release(&run);
    return code;
}

static const struct rp_rank_row row = {
    .part_bytes = sizeof(struct rp_critpath_part), .rank = rank, .release = release, .join = join};

static enum rp_code run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err)
{
    return rp_ask_ranks(ctx, dataset, settings, &row, result, err);
}

static const struct rp_option options[] = {
    {"limit", 'n', RP_OPT_INT, "N", "10", "show the N names with most time on the path; 0: all", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_critpath = {
    .question = {.name = "critpath",
                 .group = "traces",
                 .summary = "the chain of events that takes the time",
                 .details =
                     "Walks back from the last end of a rank, from each event to what it had to "
                     "wait for: the work before it on its stream, its launch, another stream, the "
                     "device in a synchronisation, another thread. The path covers the recording "
                     "without holes; every segment is a part of an event or a wait with its cause.",
                 .examples = "reprise critpath trace.json.gz\twhat to make faster\n"
                             "reprise critpath --csv trace.json.gz\tevery segment\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = options,
                 .type = &rp_critpath_type},
    .run = run};
