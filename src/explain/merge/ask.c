/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The row of `merge`, which makes two passes over the inputs. The first keeps only the collectives
 * and messages of each rank, from which the clocks follow; the second writes the merged trace.
 */
#include "dataset/question.h"
#include "explain/merge/merge.h"
#include "facts/host/trace_host.h"
#include "facts/ranks/tensor_transfers.h"
#include "result/part.h"

#include <stdlib.h>
#include <string.h>

extern const struct rp_question_row rp_ask_merge; /* below */

/* ------------------------------------------------------------------ the answer */

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_merge_rank, member, type, unit, title, doc, flags)

static const struct rp_field rank_fields[] = {
    RANK(rank, I64, NONE, "rank", "its number", 0),
    RANK(host, STR, NONE, "host", "ranks of one host share a clock; null: the rank has its own", 0),
    RANK(offset_ns, I64, NS, "offset", "added to its times to get the first rank's clock",
         RP_NULLABLE),
    RANK(uncertainty_ns, I64, NS, "±", "uncertainty of the offset", RP_NULLABLE | RP_LARGEST),
    RANK(low_ns, I64, NS, "at least", "lower bound of the offset", RP_NULLABLE | RP_WIDE),
    RANK(high_ns, I64, NS, "at most", "upper bound of the offset", RP_NULLABLE | RP_WIDE),
    RANK(drift_ppb, F64, NONE, NULL, "change of the offset in ns per second", 0),
    RANK(drift_uncertainty_ppb, F64, NONE, NULL,
         "how far from it the drift may be; null: too few collectives", 0),
    RANK(drift_at_ns, I64, NS, NULL,
         "the time, on its own clock, at which the offset holds, if it drifts", RP_NULLABLE),
    RANK(used, BOOL, NONE, NULL,
         "times are moved; false: the offset is within its uncertainty, they stay as recorded", 0),
    RANK(step_count, I64, COUNT, NULL, "how often the clock was set during the recording", 0),
    RANK(drift_text, STR, NONE, "drift", "text output only", RP_SCREEN),
    RANK(meeting_count, I64, COUNT, "matched", "collectives matched with those of other clocks", 0),
    RANK(message_count, I64, COUNT, "messages", "messages to and from other clocks", RP_WIDE),
    RANK(path, STR, NONE, "trace", "the input", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_merge_rank), rank_fields, NULL};

#define CONFLICT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_merge_conflict, member, type, unit, title, doc, flags)

static const struct rp_field conflict_fields[] = {
    CONFLICT(rank_a, I64, NONE, "rank", "the rank that left the collective, or sent the message",
             0),
    CONFLICT(rank_b, I64, NONE, "left before rank", "the rank that arrived", 0),
    CONFLICT(what, STR, NONE, "arrived at", "the collective or message", 0),
    CONFLICT(by_ns, I64, NS, "by", "how much the facts contradict each other", 0),
    CONFLICT(
        against, STR, NONE, "contradicts",
        "the collective or message that requires the opposite; null: the common clock of the two "
        "requires it",
        0),
    RP_FIELD_END};
static const struct rp_type conflict_type = {"conflict", sizeof(struct rp_merge_conflict),
                                             conflict_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_merge_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(run_text, STR, NONE, "clocks", "text output only", RP_SCREEN),
    ROOT(output_text, STR, NONE, "written", "text output only", RP_SCREEN),
    ROOT(matched_by, STR, NONE, NULL,
         "sequence, order, name, records, none; of two recorders correlation, names or wall clock",
         0),
    ROOT(meeting_count, I64, COUNT, NULL, "collectives that connect clocks", 0),
    ROOT(message_count, I64, COUNT, NULL, "sends with their receives", 0),
    ROOT(clock_count, I64, COUNT, NULL, "clocks of the ranks", 0),
    ROOT(aligned_count, I64, COUNT, NULL,
         "clocks whose offset is known, with the first; 1 of several: nothing ties them", 0),
    ROOT(consistent, BOOL, NONE, NULL, "no two facts contradict each other", 0),
    ROOT(output, STR, NONE, NULL, "the merged trace, or null", 0),
    ROOT(format, STR, NONE, NULL, "format of the merged trace, or null", 0),
    ROOT(event_count, I64, COUNT, NULL, "events of the merged trace", RP_NULLABLE),
    RP_FIELD_LIST(struct rp_merge_root, ranks, &rank_type, "clocks of the ranks",
                  "one record per rank", 0),
    RP_FIELD_LIST(struct rp_merge_root, conflicts, &conflict_type, "contradictions",
                  "facts that no offsets satisfy", 0),
    RP_FIELD_LIST(struct rp_merge_root, notes, &rp_type_string, "notes", "limits of the recording",
                  0),
    RP_FIELD_END};

static const struct rp_type merge_type = {"merge", sizeof(struct rp_merge_root), root_fields,
                                          "ranks"};

/* ------------------------------------------------------------------ the part of a rank */

/* Copies what the processes of one trace sent each other. */
static enum rp_code copy_messages(const struct rp_trace *t, const rp_tensor_transfer_vec *all,
                                  struct rp_arena *arena, struct rp_merge_part *out,
                                  struct rp_err *err)
{
    out->messages = RP_ARENA_NEW(arena, struct rp_clock_message, all->n + 1);
    out->names = RP_ARENA_NEW(arena, const char *, (size_t)t->nprocesses + 1);
    RP_TRY(rp_err_need(out->messages && out->names, err, "merging ranks"));
    for (size_t i = 0; i < t->nprocesses; i++)
        out->names[out->nnames++] = rp_arena_text(arena, rp_trace_str(t, t->processes[i].name));
    for (size_t i = 0; i < all->n; i++) {
        const struct rp_tensor_transfer *x = &all->at[i];

        if (x->producer != RP_NONE && x->from_process != x->to_process)
            out->messages[out->nmessages++] =
                (struct rp_clock_message){x->from_process, x->to_process, x->ready_ns, x->end_ns};
    }
    return rp_arena_check(arena, "merging ranks", err);
}

static enum rp_code find_messages(const struct rp_trace *t, struct rp_arena *arena,
                                  struct rp_merge_part *out, struct rp_err *err)
{
    rp_tensor_transfer_vec all = {0};
    enum rp_code code = rp_tensor_transfers_find(t, &all, err);

    if (code == RP_OK && all.n)
        code = copy_messages(t, &all, arena, out, err);
    rp_vec_release(&all);
    return code;
}

static enum rp_code merge_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                               const struct rp_settings *settings, struct rp_rank_part *part,
                               struct rp_err *err)
{
    const struct rp_trace *trace = loaded->trace;
    struct rp_merge_part *out = part->data;
    RP_SCOPED(rp_work_release) struct rp_work work = {0};

    (void)settings;

    out->processes = trace->nprocesses;
    RP_TRY(rp_work_init(&work, trace, scope, err));
    RP_TRY(rp_collectives_init(&out->comm, &work, scope, &part->arena, err));
    RP_TRY(find_messages(trace, &part->arena, out, err));
    RP_TRY(rp_half_messages_find(trace, &out->halves, err));
    return rp_trace_host(trace, loaded->source->name, &part->arena, &out->host, err);
}

static const struct rp_field part_fields[] = {
    RP_PART_RECORD(struct rp_merge_part, comm, &rp_collectives_type),
    RP_PART_PLAIN(struct rp_merge_part, processes),
    RP_PART_PLAIN_LIST(struct rp_merge_part, messages, struct rp_clock_message),
    RP_PART_LIST(struct rp_merge_part, names, &rp_type_string),
    RP_PART_PLAIN_VEC(struct rp_merge_part, halves, struct rp_half_message),
    RP_PART_TEXT(struct rp_merge_part, host),
    RP_PART_END};
static const struct rp_type part_type = {"merge_part", sizeof(struct rp_merge_part), part_fields,
                                         NULL};

/* ------------------------------------------------------------------ hosts */

/* The folder of a path: "run/host1" for "run/host1/rank3.json". */
static const char *folder_of(const char *path, struct rp_arena *arena)
{
    const char *slash = strrchr(path, '/');

    return rp_arena_textf(arena, "%.*s", slash ? (int)(slash - path) : 0, path);
}

/* Reads "4,4,8", the numbers of ranks on each host; returns the host of a rank, or -1 after the
   last. A single number holds for all hosts. */
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

/* The host of a rank, by --hosts; NULL if it is not known, so that the rank has a clock of its
   own. */
static enum rp_code host_of(const char *hosts, const struct rp_rank_part *part,
                            struct rp_arena *arena, const char **out, struct rp_err *err)
{
    const struct rp_merge_part *data = part->data;
    bool valid;

    *out = NULL;
    if (!strcmp(hosts, "none") || (!strcmp(hosts, "auto") && !data->host))
        return RP_OK;
    if (!strcmp(hosts, "auto")) {
        *out = data->host;
    } else if (!strcmp(hosts, "folder")) {
        *out = folder_of(part->path, arena);
    } else {
        long host = host_by_counts(hosts, part->number, &valid);
        if (!valid)
            return rp_err_set(
                err, RP_USAGE,
                "'--hosts %s': expected 'auto', 'none', 'folder', or numbers of ranks "
                "such as '8' or '4,4,8'",
                hosts);
        if (host < 0)
            return RP_OK;
        *out = rp_arena_textf(arena, "host%ld", host);
    }
    return rp_arena_check(arena, "merging ranks", err);
}

static enum rp_code merge_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                               struct rp_result *result, struct rp_err *err)
{
    struct rp_merge_input *in = RP_ARENA_NEW(&result->arena, struct rp_merge_input, ranks->n + 1);
    bool guessed = !strcmp(rp_settings_text(settings, "hosts"), "auto");

    RP_TRY(rp_err_need(in, err, "merging ranks"));
    for (size_t i = 0; i < ranks->n; i++) {
        const struct rp_rank_part *part = &ranks->parts[i];

        in[i] = (struct rp_merge_input){.part = part->data,
                                        .path = part->path,
                                        .number = part->number,
                                        .source = part->source,
                                        .in_source = part->in_source};
        if (guessed)
            in[i].boot = in[i].part->comm.boot;
        RP_TRY(
            host_of(rp_settings_text(settings, "hosts"), part, &result->arena, &in[i].host, err));
    }
    return rp_merge_ranks(in, ranks->n, ranks->unrelated, guessed, &result->arena, result->root,
                          err);
}

/* ------------------------------------------------------------------ the row */

static enum rp_code merge_job(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                              struct rp_result *result, struct rp_err *err)
{
    RP_SCOPED(rp_job_release) struct rp_job job = {0};

    RP_TRY(rp_load_job(ctx, dataset, &job, err));
    return rp_merge_job(&job, &result->arena, result->root, err);
}

static enum rp_code merge_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                              const struct rp_settings *settings, struct rp_result *result,
                              struct rp_err *err)
{
    const char *output = rp_settings_text(settings, "output");
    struct rp_merge_root *root = result->root;
    const struct rp_writer *writer = NULL;
    bool is_job = rp_dataset_is_job(dataset);

    if (output) {
        RP_TRY(rp_writer_for(rp_settings_text(settings, "to"), output, &writer, err));
        if (!writer->write)
            return rp_err_set(err, RP_USAGE, "a trace cannot be written as '%s'", writer->name);
        for (size_t i = 0; i < rp_dataset_count(dataset); i++)
            if (rp_is_same_file(rp_sources_borrow(dataset->sources, i)->path, output))
                return rp_err_set(err, RP_USAGE, "'%s' is both input and output", output);
    }
    root->event_count = RP_ABSENT_I64;
    if (rp_settings_flag(settings, "same-rank")) {
        RP_TRY(rp_merge_recorders(dataset, writer, output, &result->arena, root, err));
        result->answer = root->consistent ? 0 : RP_ANSWER_NO;
        return RP_OK;
    }
    if (is_job)
        RP_TRY(merge_job(ctx, dataset, result, err));
    else
        RP_TRY(rp_ask_ranks(ctx, dataset, settings, &rp_ask_merge.ranks, result, err));
    if (root->nconflicts || (root->clock_count > 1 && root->aligned_count == 1))
        result->answer = RP_ANSWER_NO;
    return output ? rp_merge_write(ctx, dataset, writer, output, is_job, &result->arena, root, err)
                  : RP_OK;
}

static const struct rp_option merge_options[] = {
    {"output", 'o', RP_OPT_PATH, "FILE", NULL, "write all ranks into one trace", 0},
    {"to", 0, RP_OPT_CHOICE, "rpt|json|perfetto|csv|sqlite", NULL,
     "format of the output (default: by the ending of FILE)", 0},
    {"hosts", 0, RP_OPT_TEXT, "auto|none|folder|N[,N…]", "auto",
     "which ranks share a clock: those with the same boot or host name in their traces, none, "
     "those in one folder, every N, or the first N, the next N …",
     0},
    {"rank", 'r', RP_OPT_TEXT, "N[-M],…", NULL, "only these ranks, as in '0,3' or '8-15'", 0},
    {"same-rank", 0, RP_OPT_FLAG, NULL, NULL,
     "the two files are of one process, recorded by different tools: join them into one rank", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_merge = {
    .question =
        {.name = "merge",
         .group = "traces",
         .summary = "align the clocks of the ranks of a run, and write one trace",
         .details =
             "Ranks leave a collective together, and none leaves before the last has arrived: this "
             "gives the offset of each rank's clock, its uncertainty, and its drift if the "
             "recording is long enough. Contradictions are listed; with one, or where nothing ties "
             "the clocks, the exit status is 1.",
         .examples = "reprise merge run/\tthe clocks of all ranks\n"
                     "reprise merge --hosts 8 run/\teight ranks per host share a clock\n"
                     "reprise merge run/ -o all.json.gz\tone trace of all ranks, for a viewer\n"
                     "reprise merge --same-rank host.json device.sqlite -o rank.rpt\ttwo tools\n",
         .accepts = RP_ACCEPTS_TRACES,
         .options = merge_options,
         .type = &merge_type},
    .ranks = {.part = &part_type, .keeps_cut = true, .rank = merge_rank, .join = merge_join},
    .run = merge_run};
