/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the files side by side: a block for one file, a row for each of several, and whether they
 * can be ranks of one run.
 */
#include "explain/info/info.h"

#include "dataset/load.h"
#include "dataset/question.h"
#include "dataset/trust.h"
#include "result/part.h"

struct info_root {
    size_t nfiles, nrows, nblocks, nnotes;
    struct rp_info_file *files;
    struct rp_info_file *rows, *blocks; /* the same for the screen, either as rows or as blocks */
    const char **notes;
};

/* ------------------------------------------------------------------ what is shown */

static const struct rp_field kind_fields[] = {
    RP_FIELD(struct rp_info_kind, kind, STR, NONE, "kind", "what the events are", 0),
    RP_FIELD(struct rp_info_kind, count, I64, COUNT, "events", "how many", 0), RP_FIELD_END};
static const struct rp_type kind_type = {"kind", sizeof(struct rp_info_kind), kind_fields, NULL};

static const struct rp_field step_fields[] = {
    RP_FIELD(struct rp_info_step, rank, I64, NONE, "rank",
             "for a merged trace: the rank whose step it is, or null", RP_NULLABLE),
    RP_FIELD(struct rp_info_step, name, STR, NONE, "step", "its name", 0),
    RP_FIELD(struct rp_info_step, phase, STR, NONE, "phase",
             "prefill, decode or mixed, where its mark says so", 0),
    RP_FIELD(struct rp_info_step, requests, I64, COUNT, "requests", "requests in its batch",
             RP_NULLABLE),
    RP_FIELD(struct rp_info_step, tokens, I64, COUNT, "tokens", "that it computes", RP_NULLABLE),
    RP_FIELD(struct rp_info_step, ts_ns, I64, NS, "start", "where it begins, as recorded", 0),
    RP_FIELD(struct rp_info_step, dur_ns, I64, NS, "length", "until the next step begins", 0),
    RP_FIELD(struct rp_info_step, mark_ns, I64, NS, "mark", "length of its mark", 0),
    RP_FIELD(struct rp_info_step, source, STR, NONE, "by", "how it was found", 0),
    RP_FIELD_END};
static const struct rp_type step_type = {"step", sizeof(struct rp_info_step), step_fields, NULL};

static const struct rp_field device_fields[] = {
    RP_FIELD(struct rp_info_device, id, I64, NONE, "device", "its number", 0),
    RP_FIELD(struct rp_info_device, name, STR, NONE, "name", "its product name", RP_SHORTEN),
    RP_FIELD(struct rp_info_device, memory_bytes, I64, BYTES, "memory", "its memory", RP_NULLABLE),
    RP_FIELD(struct rp_info_device, multiprocessors, I64, COUNT, "processors", "multiprocessors",
             RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type device_type = {"device", sizeof(struct rp_info_device), device_fields,
                                           NULL};

static const struct rp_field track_fields[] = {
    RP_FIELD(struct rp_info_track, process, STR, NONE, "process", "process of the track",
             RP_SHORTEN),
    RP_FIELD(struct rp_info_track, name, STR, NONE, "track", "thread or stream", RP_SHORTEN),
    RP_FIELD(struct rp_info_track, kind, STR, NONE, "kind", "thread, stream, counter or async", 0),
    RP_FIELD(struct rp_info_track, events, I64, COUNT, "events", "how many", 0), RP_FIELD_END};
static const struct rp_type track_type = {"track", sizeof(struct rp_info_track), track_fields,
                                          NULL};

static const struct rp_field health_fields[] = {
#define HEALTH_FIELD(key, unit, doc) RP_FIELD(struct rp_health, key, I64, unit, NULL, doc, 0),
    RP_HEALTH_MAP(HEALTH_FIELD)
#undef HEALTH_FIELD
        RP_FIELD_END};
static const struct rp_type health_type = {"health", sizeof(struct rp_health), health_fields, NULL};

#define FIELD(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_info_file, member, type, unit, title, doc, flags)

static const struct rp_field file_fields[] = {
    FIELD(path, STR, NONE, "file", "the input", 0),
    FIELD(base_name, STR, NONE, NULL, "without its folders", RP_SCREEN | RP_SHORTEN),
    FIELD(recorder, STR, NONE, "recorded by", "text output only", RP_SCREEN),
    FIELD(format, STR, NONE, NULL, "the format that was read", 0),
    FIELD(framework, STR, NONE, NULL, "name of the recorder, or null", 0),
    FIELD(framework_version, STR, NONE, NULL, "its version, or null", 0),
    FIELD(rank_text, STR, NONE, "rank", "text output only", RP_SCREEN),
    FIELD(rank, I64, NONE, NULL, "number of the process in its job, or null", RP_NULLABLE),
    FIELD(world_size, I64, COUNT, NULL, "processes of the job, or null", RP_NULLABLE),
    FIELD(merged_ranks, I64, COUNT, NULL, "ranks that 'merge' put into the file, or null",
          RP_NULLABLE),
    FIELD(content_text, STR, NONE, "content", "text output only", RP_SCREEN),
    FIELD(captured_launches, I64, COUNT, NULL,
          "launches that were captured into a graph and did not execute", 0),
    FIELD(is_capture, BOOL, NONE, NULL,
          "whether it is a recording of graph captures, no rank of a run", 0),
    FIELD(device_text, STR, NONE, "devices", "text output only", RP_SCREEN),
    FIELD(window_ns, I64, NS, "time covered",
          "first start to last end of all events; null where nothing has a time", RP_NULLABLE),
    FIELD(begin_ns, I64, NS, NULL, "the first start; time since 1970 if the file has it", 0),
    FIELD(step_text, STR, NONE, "steps", "text output only", RP_SCREEN),
    FIELD(step_count, I64, COUNT, NULL, "number of steps", RP_SCREEN),
    FIELD(step_median_ns, I64, NS, "median step",
          "step time: median length of the steps, or null; of a merged trace the mean of the ranks",
          RP_NULLABLE),
    FIELD(gpu_busy_ns, I64, NS, "device busy", "time in which device work runs, or null",
          RP_NULLABLE),
    FIELD(events, I64, COUNT, "events", "all events of the file", 0),
    FIELD(sample_text, STR, NONE, "samples", "text output only", RP_SCREEN),
    FIELD(spans, I64, COUNT, NULL, "events with a duration", 0),
    FIELD(instants, I64, COUNT, NULL, "events without a duration", 0),
    FIELD(counters, I64, COUNT, NULL, "counter events", 0),
    FIELD(flows, I64, COUNT, NULL, "ends of flow arrows", 0),
    FIELD(samples, I64, COUNT, NULL, "samples of call stacks", 0),
    FIELD(gpu_events, I64, COUNT, NULL, "kernels, copies and memsets", 0),
    FIELD(kernels, I64, COUNT, NULL, "kernels", 0),
    FIELD(lost_events, I64, COUNT, NULL, "events that the recorder reports as dropped", 0),
    FIELD(trust, STR, NONE, "trust", "text output only", RP_SCREEN),
    FIELD(secrets, STR, NONE, "private", "kind of secret", RP_NULLABLE),
    RP_FIELD_LIST(struct rp_info_file, devices, &device_type, NULL, "devices of the host", 0),
    RP_FIELD_MAP(struct rp_info_file, kinds, &kind_type, "events by kind", "events of each kind",
                 0),
    RP_FIELD_SHOWN(struct rp_info_file, busiest, &track_type, "busiest tracks", NULL, 0),
    RP_FIELD_LIST(struct rp_info_file, steps, &step_type, NULL,
                  "the steps in time order, of a merged trace rank by rank", 0),
    RP_FIELD_LIST(struct rp_info_file, tracks, &track_type, NULL, "threads and streams", 0),
    RP_FIELD_RECORD(struct rp_info_file, health, &health_type, NULL, "counts of trace health", 0),
    RP_FIELD_LIST(struct rp_info_file, warnings, &rp_type_string, NULL,
                  "reasons to distrust the data", 0),
    FIELD(warning_count, I64, COUNT, NULL, "number of warnings", RP_SCREEN | RP_LARGEST),
    RP_FIELD_SHOWN(struct rp_info_file, shown, &rp_type_string, "warnings", NULL, RP_WARN),
    RP_FIELD_END};

static const struct rp_type file_type = {"file", sizeof(struct rp_info_file), file_fields, NULL};

#define ROW                                                                                  \
    "rank_text, base_name:file, window_ns:covers, step_count:steps, step_median_ns:median, " \
    "gpu_busy_ns:busy, events, warning_count:warn"

static const struct rp_field info_fields[] = {
    RP_FIELD_LIST(struct info_root, files, &file_type, NULL, "one record per file", 0),
    RP_FIELD_SHOWN(struct info_root, rows, &file_type, "files", ROW, 0),
    RP_FIELD_SHOWN(struct info_root, blocks, &file_type, "files", NULL, RP_BLOCKS),
    RP_FIELD_LIST(struct info_root, notes, &rp_type_string, "notes", "about the rows", RP_SCREEN),
    RP_FIELD_END};
static const struct rp_type info_type = {"info", sizeof(struct info_root), info_fields, "files"};

/* ------------------------------------------------------------------ all files */

/* All members, whether shown or not. */
static const struct rp_field part_fields[] = {RP_PART_FIELD_(RECORD, 0, 0, &file_type),
                                              RP_PART_PLAIN(struct rp_info_file, is_launcher),
                                              RP_PART_END};
static const struct rp_type part_type = {"info_file", sizeof(struct rp_info_file), part_fields,
                                         NULL};

static enum rp_code info_file(const struct rp_loaded *loaded, const struct rp_scope *scope,
                              const struct rp_settings *settings, struct rp_rank_part *part,
                              struct rp_err *err)
{
    struct rp_info_file *file = part->data;
    enum rp_code code;

    (void)scope;
    if (rp_settings_flag(settings, "verify") &&
        (code = rp_trace_verify(loaded->trace, err)) != RP_OK)
        return rp_err_prefix(err, code, "'%s'", loaded->source->name);
    RP_TRY(rp_info_describe(loaded, loaded->dataset, &part->arena, file, err));
    if (file->is_capture && loaded->dataset->trust)
        rp_trust_capture(loaded->dataset->trust, loaded);
    return RP_OK;
}

/* Notes what the files state about their job; dataset/trust.h reports missing and duplicate
   ranks. */
static void note_ranks(struct info_root *root, struct rp_arena *arena)
{
    int64_t world = RP_ABSENT_I64, beyond = RP_ABSENT_I64;
    size_t i, captures = 0;
    bool differ = false;

    for (i = 0; i < root->nfiles; i++) {
        const struct rp_info_file *f = &root->files[i];

        captures += f->is_capture;
        if (f->is_capture || f->world_size == RP_ABSENT_I64)
            continue;
        differ = differ || (world != RP_ABSENT_I64 && world != f->world_size);
        world = f->world_size;
        if (f->rank >= f->world_size)
            beyond = f->rank;
    }

    /* Next to ranks, a recording without a number is that of the launcher (trace/run.h). */
    bool ranks = false;
    for (size_t k = 0; k < root->nfiles; k++)
        ranks = ranks || root->files[k].rank != RP_ABSENT_I64;
    for (size_t k = 0; k < root->nfiles && ranks; k++)
        if (root->files[k].rank == RP_ABSENT_I64 && root->files[k].is_launcher)
            root->files[k].rank_text = "launcher";

    if (differ)
        RP_NOTE(root, arena, "the files state different numbers of ranks");
    if (beyond != RP_ABSENT_I64)
        RP_NOTE(root, arena,
                rp_arena_textf(arena,
                               "rank %lld is not below the number of ranks that its file states",
                               (long long)beyond));
    if (captures)
        RP_NOTE(
            root, arena,
            rp_arena_textf(
                arena,
                "%zu of the files %s of graph captures, no rank%s: graph kernels of the others take "
                "their operators from %s",
                captures, captures == 1 ? "is a recording" : "are recordings",
                captures == 1 ? "" : "s", captures == 1 ? "it" : "them"));
    RP_NOTE(root, arena, "'--long' shows each file");
}

static enum rp_code info_join(const struct rp_ranks *files, const struct rp_settings *settings,
                              struct rp_result *result, struct rp_err *err)
{
    struct info_root *root = result->root;

    root->files = RP_ARENA_NEW(&result->arena, struct rp_info_file, files->n + 1);
    RP_TRY(rp_err_need(root->files, err, "describing traces"));
    for (; root->nfiles < files->n; root->nfiles++)
        root->files[root->nfiles] = *(const struct rp_info_file *)files->parts[root->nfiles].data;
    root->rows = root->blocks = root->files;
    if (rp_settings_flag(settings, "long") || root->nfiles == 1) {
        root->nblocks = root->nfiles;
    } else {
        root->nrows = root->nfiles;
        note_ranks(root, &result->arena);
    }
    return rp_arena_check(&result->arena, "describing traces", err);
}

/* ------------------------------------------------------------------ the row */

static const struct rp_option options[] = {
    {"long", 'l', RP_OPT_FLAG, NULL, NULL, "everything about each file, even if there are several",
     0},
    {"verify", 0, RP_OPT_FLAG, NULL, NULL,
     "check everything, including the checksums of a native file", 0},
    RP_STEP_NAME_OPTION,
    RP_OPTION_END};

const struct rp_question_row rp_ask_info = {
    .question =
        {.name = "info",
         .group = "traces",
         .summary = "what is in a trace, and is it healthy",
         .details =
             "Takes files, folders, tar archives or '-' for standard input; gzip, zstd and xz are "
             "decompressed. Files in a folder that are not traces are skipped. A "
             "truncated file is read up to its end, with a warning; a damaged one is "
             "refused unless --salvage is given.",
         .examples = "reprise info trace.json.gz\tone trace\n"
                     "reprise info run/\tall ranks of a run\n"
                     "reprise info --json trace.json.gz\tfor a script\n",
         .accepts = RP_ACCEPTS_TRACES,
         .options = options,
         .type = &info_type},
    .ranks = {.part = &part_type, .files = true, .rank = info_file, .join = info_join}};
