/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `merge`: the ranks of a run on one clock, and in one trace. Two passes over the inputs: the first
 * keeps only the collectives of each rank, the second adds one trace after the other to the merged
 * one, so that beside it a single rank is in memory.
 */
#include "dataset/question.h"
#include "dataset/ranks.h"
#include "explain/merge/merge.h"
#include "facts/tensor_transfers.h"
#include "formats/write/writers.h"
#include "job/load.h"
#include "trace/build/append.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ the clocks */

static enum rp_code rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                         const struct rp_settings *settings, struct rp_rank_part *part,
                         struct rp_err *err)
{
    (void)settings;
    return rp_merge_rank(loaded->trace, loaded->source->name, scope, &part->arena, part->data, err);
}

static void release(void *data)
{
    rp_merge_part_release(data);
}

/* "run/host1/rank3.json" is in "run/host1". */
static const char *folder_of(const char *path, struct rp_arena *arena)
{
    const char *slash = strrchr(path, '/');

    return rp_arena_copy(arena, path, slash ? (size_t)(slash - path) : 0);
}

/* "4,4,8": how many ranks the hosts have; the host of a rank, or -1 behind the last. A single
   number is that of all hosts. */
static long host_by_counts(const char *hosts, long rank, bool *valid)
{
    const char *at = hosts;
    long host = 0, before = 0, n;
    char *end;

    *valid = false;
    for (;; host++) {
        n = strtol(at, &end, 10);
        if (end == at || n <= 0 || n > 1000000 || (*end && *end != ','))
            return -1;
        if (!*end && at == hosts) {
            *valid = true;
            return rank / n;
        }
        if (rank < before + n)
            break;
        before += n;
        if (!*end)
            break;
        at = end + 1;
    }
    *valid = true;
    return rank < before + n && rank >= before ? host : -1;
}

/* Which host a rank is on, by --hosts; NULL: not known, so that its clock is its own. */
static enum rp_code host_of(const char *hosts, const struct rp_rank_part *part,
                            struct rp_arena *arena, const char **out, struct rp_err *err)
{
    const struct rp_merge_part *data = part->data;
    bool valid;
    long host;

    *out = NULL;
    if (!strcmp(hosts, "none") || (!strcmp(hosts, "auto") && !data->host))
        return RP_OK;
    if (!strcmp(hosts, "auto")) {
        *out = rp_arena_strdup(arena, data->host);
    } else if (!strcmp(hosts, "folder")) {
        *out = folder_of(part->path, arena);
    } else {
        host = host_by_counts(hosts, part->number, &valid);
        if (!valid)
            return rp_err_set(err, RP_USAGE,
                              "--hosts '%s' is neither 'auto', 'none' nor 'folder', nor numbers "
                              "of ranks as in '8' or '4,4,8'",
                              hosts);
        if (host < 0)
            return RP_OK;
        *out = rp_arena_printf(arena, "host%ld", host);
    }
    return *out ? RP_OK : rp_err_nomem(err, "merging ranks");
}

static enum rp_code join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                         struct rp_result *result, struct rp_err *err)
{
    struct rp_merge_input *in = RP_ARENA_NEW(&result->arena, struct rp_merge_input, ranks->n + 1);
    size_t i;

    if (!in)
        return rp_err_nomem(err, "merging ranks");
    for (i = 0; i < ranks->n; i++) {
        const struct rp_rank_part *part = &ranks->parts[i];

        in[i] = (struct rp_merge_input){
            .part = part->data, .path = part->path, .number = part->number, .source = part->source};
        RP_TRY(
            host_of(rp_settings_text(settings, "hosts"), part, &result->arena, &in[i].host, err));
    }
    return rp_merge_join(in, ranks->n, !strcmp(rp_settings_text(settings, "hosts"), "auto"),
                         &result->arena, result->root, err);
}

static const struct rp_rank_row row = {
    .part_bytes = sizeof(struct rp_merge_part), .rank = rank, .release = release, .join = join};

/* ------------------------------------------------------------------ the merged trace */

struct writing {
    struct rp_merge_root *root;
    struct rp_builder *builder;
    const struct rp_dataset *dataset;
    bool is_job;
    uint32_t appended;
    char label[80];
};

/* The last two folders of a file of a job are its host and rank: "run/host1/0/comm.json". */
static bool in_folder(const char *name, const char *folder)
{
    const char *slash = strrchr(name, '/');
    size_t n = slash ? (size_t)(slash - name) : 0, len = strlen(folder);

    return n >= len && !memcmp(name + n - len, folder, len) &&
           (n == len || name[n - len - 1] == '/' || name[n - len - 1] == '!');
}

static const struct rp_merge_rank *rank_of(const struct writing *w, const struct rp_loaded *loaded)
{
    size_t r;

    if (w->root->by_process)
        return &w->root->ranks[0];
    for (r = 0; r < w->root->nranks; r++)
        if (w->is_job ? in_folder(loaded->source->name, w->root->ranks[r].path)
                      : w->root->source[r] == loaded->index)
            return &w->root->ranks[r];
    return NULL;
}

struct clock_of { /* of one source */
    const struct rp_merge_root *root;
    const struct rp_merge_rank *rank;
};

static int64_t on_one_clock(const void *user, uint32_t process, int64_t ns)
{
    const struct clock_of *c = user;
    size_t r;

    for (r = 0; c->root->by_process && r < c->root->nranks; r++)
        if (c->root->source[r] == process)
            return rp_clock_time(&c->root->ranks[r].clock, ns);
    return c->root->by_process ? ns : rp_clock_time(&c->rank->clock, ns);
}

/* Tensors between processes are drawn from what made them to their receive. */
static enum rp_code find_arrows(const struct rp_trace *t, struct rp_append *how,
                                struct rp_arena *arena, struct rp_err *err)
{
    rp_tensor_transfer_vec all = {0};
    struct rp_append_arrow *arrows = NULL;
    enum rp_code code = rp_tensor_transfers_find(t, &all, err);
    size_t i;

    if (code == RP_OK && all.n) {
        arrows = RP_ARENA_NEW(arena, struct rp_append_arrow, all.n);
        code = arrows ? RP_OK : rp_err_nomem(err, "merging ranks");
    }
    for (i = 0; arrows && i < all.n; i++)
        if (all.at[i].producer != RP_NONE)
            arrows[how->narrows++] = (struct rp_append_arrow){
                t->ev.track[all.at[i].producer], t->ev.track[all.at[i].receive], all.at[i].ready_ns,
                all.at[i].end_ns, rp_trace_str(t, all.at[i].edge)};
    how->arrows = arrows;
    rp_vec_release(&all);
    return code;
}

static enum rp_code append_one(struct writing *w, const struct rp_loaded *loaded,
                               struct rp_append *how, struct rp_err *err)
{
    struct rp_arena arena;
    enum rp_code code;

    rp_arena_init(&arena);
    code = find_arrows(loaded->trace, how, &arena, err);
    if (code == RP_OK)
        code = rp_builder_append(w->builder, loaded->trace, how, err);
    rp_arena_release(&arena);
    return code;
}

static enum rp_code append(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct writing *w = user;
    struct clock_of clock = {w->root, rank_of(w, loaded)};
    struct rp_append how = {.index = w->appended,
                            .pid_step = w->root->pid_step,
                            .label = w->root->by_process ? NULL : w->label,
                            .time = on_one_clock,
                            .user = &clock,
                            .meta = w->appended == 0};

    if (!clock.rank)
        return RP_OK;
    snprintf(w->label, sizeof w->label, "rank %lld", (long long)clock.rank->rank);
    RP_TRY(rp_trace_require(loaded->trace, RP_NEED_ALL, err));
    RP_TRY(append_one(w, loaded, &how, err));
    w->appended++;
    return RP_OK;
}

static enum rp_code finish(struct writing *w, const struct rp_writer *writer, const char *output,
                           struct rp_arena *arena, struct rp_err *err)
{
    struct rp_trace *trace;
    enum rp_code code = rp_builder_finish(w->builder, &trace, err);

    w->builder = NULL;
    RP_TRY(code);
    w->root->event_count = trace->health.events;
    code = writer->write(trace, output, NULL, err);
    rp_trace_free(trace);
    RP_TRY(code);
    w->root->output = rp_arena_strdup(arena, output);
    w->root->format = writer->name;
    w->root->output_text =
        rp_arena_printf(arena, "%lld events of %zu ranks to %s", (long long)w->root->event_count,
                        w->root->nranks, output);
    return w->root->output && w->root->output_text ? RP_OK : rp_err_nomem(err, "merging ranks");
}

static enum rp_code write_merged(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                 const struct rp_writer *writer, const char *output, bool is_job,
                                 struct rp_result *result, struct rp_err *err)
{
    struct writing w = {.root = result->root, .dataset = dataset, .is_job = is_job};
    enum rp_code code = rp_builder_new(&dataset->limits, &w.builder, err);

    if (code == RP_OK)
        code = rp_each_trace_in_order(ctx, dataset, append, &w, err);
    if (code == RP_OK)
        code = finish(&w, writer, output, &result->arena, err);
    rp_builder_free(w.builder);
    return code;
}

/* ------------------------------------------------------------------ all of it */

static enum rp_code ask_job(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                            struct rp_result *result, struct rp_err *err)
{
    struct rp_job job;
    enum rp_code code = rp_load_job(ctx, dataset, &job, err);

    if (code == RP_OK)
        code = rp_merge_job(&job, &result->arena, result->root, err);
    rp_job_release(&job);
    return code;
}

static enum rp_code check_output(const struct rp_dataset *dataset, const char *output,
                                 const struct rp_writer *writer, struct rp_err *err)
{
    size_t i;

    if (!writer->write)
        return rp_err_set(err, RP_USAGE, "a trace cannot be written as '%s'", writer->name);
    for (i = 0; i < rp_dataset_count(dataset); i++)
        if (rp_is_same_file(rp_sources_borrow(dataset->sources, i)->path, output))
            return rp_err_set(err, RP_USAGE, "'%s' is input and output", output);
    return RP_OK;
}

static enum rp_code run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err)
{
    const char *output = rp_settings_text(settings, "output");
    struct rp_merge_root *root = result->root;
    const struct rp_writer *writer = NULL;
    bool is_job = rp_dataset_is_job(dataset);

    if (output) {
        RP_TRY(rp_writer_for(rp_settings_text(settings, "to"), output, &writer, err));
        RP_TRY(check_output(dataset, output, writer, err));
    }
    root->event_count = RP_ABSENT_I64;
    if (is_job)
        RP_TRY(ask_job(ctx, dataset, result, err));
    else
        RP_TRY(rp_ask_ranks(ctx, dataset, settings, &row, result, err));
    result->answer = root->nconflicts ? RP_ANSWER_NO : 0;
    return output ? write_merged(ctx, dataset, writer, output, is_job, result, err) : RP_OK;
}

static const struct rp_option options[] = {
    {"output", 'o', RP_OPT_PATH, "FILE", NULL, "write all ranks into one trace", 0},
    {"to", 0, RP_OPT_CHOICE, "rpt|json|csv|sqlite", NULL,
     "its format (default: by the ending of FILE)", 0},
    {"hosts", 0, RP_OPT_TEXT, "auto|none|folder|N[,N…]", "auto",
     "which ranks share a clock: by host names in the traces, none, those in one folder, each N, "
     "or the first N, the next N …",
     0},
    {"rank", 'r', RP_OPT_TEXT, "N[-M],…", NULL, "only these ranks, as in '0,3' or '8-15'", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_merge = {
    .question =
        {.name = "merge",
         .group = "traces",
         .summary = "bring the ranks of a run onto one clock, and into one trace",
         .details =
             "Ranks leave a collective together, and nobody leaves before the last has come: that "
             "gives the offset of every rank's clock, how certain it is, and its drift where it "
             "shows. Facts that contradict each other are named, and the exit status is 1.",
         .examples = "reprise merge run/\tthe clocks of all ranks\n"
                     "reprise merge --hosts 8 run/\teight ranks a host share a clock\n"
                     "reprise merge run/ -o all.json.gz\tone trace of all ranks, for a viewer\n",
         .accepts = RP_ACCEPTS_TRACES,
         .options = options,
         .type = &rp_merge_type},
    .run = run};
