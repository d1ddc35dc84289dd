/* SPDX-License-Identifier: Apache-2.0 */
/* `comm`: collectives across ranks, who holds up whom and why. */
#include "dataset/question.h"
#include "dataset/ranks.h"
#include "explain/comm/comm.h"

static enum rp_code rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                         const struct rp_settings *settings, struct rp_rank_part *part,
                         struct rp_err *err)
{
    (void)settings;
    return rp_comm_rank(loaded->trace, scope, &part->arena, part->data, err);
}

static void release(void *data)
{
    rp_comm_part_release(data);
}

static enum rp_code join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                         struct rp_result *result, struct rp_err *err)
{
    struct rp_comm_input *in = RP_ARENA_NEW(&result->arena, struct rp_comm_input, ranks->n + 1);
    int64_t limit = rp_settings_int(settings, "limit");
    size_t i;

    if (!in)
        return rp_err_nomem(err, "matching collectives");
    for (i = 0; i < ranks->n; i++)
        in[i] = (struct rp_comm_input){ranks->parts[i].data, ranks->parts[i].path,
                                       ranks->parts[i].number};
    return rp_comm_join(in, ranks->n, limit > 0 ? (size_t)limit : SIZE_MAX, &result->arena,
                        result->root, err);
}

static const struct rp_rank_row row = {
    .part_bytes = sizeof(struct rp_comm_part), .rank = rank, .release = release, .join = join};

static enum rp_code run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err)
{
    return rp_ask_ranks(ctx, dataset, settings, &row, result, err);
}

static const struct rp_option options[] = {
    {"limit", 'n', RP_OPT_COUNT, "N", "10",
     "show the N collectives that were held up longest; 0: all", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_comm = {
    .question = {.name = "comm",
                 .group = "traces",
                 .summary = "collectives: who holds up whom, by how much, and why",
                 .details =
                     "Matches the collectives of all ranks. A collective goes on when its last "
                     "rank has come: what the others spend in it before is waiting, the rest is "
                     "transfer. The rank that comes last is compared with the others to tell why.",
                 .examples = "reprise comm run/\tall ranks of a run\n"
                             "reprise comm --csv run/\tevery collective\n"
                             "reprise comm --rank 0,6 run/\tonly these ranks\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = options,
                 .type = &rp_comm_type},
    .run = run};
