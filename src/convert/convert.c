/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `convert`: writes traces or programs in another format. One input becomes one file; several
 * become a folder of files, named after their inputs.
 */
#include "base/text.h"
#include "dataset/load.h"
#include "dataset/load_program.h"
#include "dataset/question.h"
#include "formats/write/writers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct written_row {
    const char *input, *output, *format;
    int64_t events, output_bytes; /* absent: written to standard output */
};

struct convert_root {
    size_t nwritten;
    struct written_row *written;
};

struct convert {
    const struct rp_writer *writer;
    struct written_row *rows; /* one per source; input is set once the output is written */
};

static const struct rp_field written_fields[] = {
    RP_FIELD(struct written_row, input, STR, NONE, "input", "the input", RP_SHORTEN),
    RP_FIELD(struct written_row, output, STR, NONE, "output", "the file written", RP_SHORTEN),
    RP_FIELD(struct written_row, format, STR, NONE, "format", "format of the output", 0),
    RP_FIELD(struct written_row, events, I64, COUNT, "events",
             "events of the trace, or instructions of the program", 0),
    RP_FIELD(struct written_row, output_bytes, I64, BYTES, "size", "size of the output",
             RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type written_type = {"written", sizeof(struct written_row), written_fields,
                                            NULL};

static const struct rp_field convert_fields[] = {
    RP_FIELD_LIST(struct convert_root, written, &written_type, "written", "one row per file", 0),
    RP_FIELD_END};
static const struct rp_type convert_type = {"convert", sizeof(struct convert_root), convert_fields,
                                            "written"};

/* The name of an input without its folders and endings: "run.tar!a/rank0.json.gz" is "rank0". */
static void input_stem(const char *name, char *out, size_t cap)
{
    static const char *const endings[] = {".gz",  ".zst",    ".xz",      ".json", ".rpt",
                                          ".csv", ".sqlite", ".pftrace", NULL};
    const char *slash = strrchr(name, '/'), *bang = strrchr(name, '!');
    const char *begin = slash > bang ? slash : bang;
    size_t len, i;

    begin = begin ? begin + 1 : name;
    len = strlen(begin);
    for (i = 0; endings[i]; i++) {
        size_t n = strlen(endings[i]);

        if (len > n && !memcmp(begin + len - n, endings[i], n)) {
            len -= n;
            i = SIZE_MAX; /* start again: "json.gz" are two endings */
        }
    }
    snprintf(out, cap, "%.*s", (int)len, begin);
}

static bool name_taken(const struct written_row *rows, size_t n, const char *path)
{
    while (n--) {
        if (!strcmp(rows[n].output, path))
            return true;
    }
    return false;
}

/* Inputs with the same name get their number added. */
static const char *name_in_folder(const struct convert *convert, const char *folder, size_t i,
                                  const char *input, struct rp_arena *arena)
{
    const char *ending = convert->writer->endings[0], *path;
    char base[200];

    input_stem(input, base, sizeof base);
    path = rp_arena_printf(arena, "%s/%s%s", folder, base, ending);
    if (path && name_taken(convert->rows, i, path))
        path = rp_arena_printf(arena, "%s/%s_%zu%s", folder, base, i, ending);
    return path;
}

static bool is_folder(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Whether the name has an ending of this format. */
static bool has_ending(const struct rp_writer *writer, const char *path)
{
    for (size_t i = 0; i < 3 && writer->endings[i]; i++)
        if (rp_text_ends(path, writer->endings[i]))
            return true;
    return false;
}

/* Determines the names of all outputs before anything is read: errors come at once. */
static enum rp_code convert_plan(struct convert *convert, const struct rp_dataset *dataset,
                                 const char *output, struct rp_arena *arena, struct rp_err *err)
{
    size_t i, n = rp_dataset_count(dataset);
    bool folder = n > 1 || is_folder(output);

    convert->rows = RP_ARENA_NEW(arena, struct written_row, n);
    if (!convert->rows)
        return rp_err_nomem(err, "planning the outputs");
    if (folder && !is_folder(output) && has_ending(convert->writer, output))
        return rp_err_set(err, RP_USAGE,
                          "'%s' is the name of a file, but %zu traces need a folder: give a name"
                          " without ending, and '--to %s'",
                          output, n, convert->writer->name);
    if (folder && mkdir(output, 0777) && (errno != EEXIST || !is_folder(output)))
        return rp_err_set_os(err, errno, "cannot make the folder '%s' for %zu traces", output, n);
    for (i = 0; i < n; i++) {
        const struct rp_source *source = rp_sources_borrow(dataset->sources, i);

        convert->rows[i].output =
            folder ? name_in_folder(convert, output, i, source->name, arena) : output;
        if (!convert->rows[i].output)
            return rp_err_nomem(err, "planning the outputs");
        if (rp_is_same_file(source->path, convert->rows[i].output))
            return rp_err_set(err, RP_USAGE, "'%s' is both input and output", source->path);
    }
    return RP_OK;
}

/* Fills the row of an output; a row with an input is done. */
static void convert_note(const struct convert *convert, struct written_row *row, const char *input,
                         int64_t events)
{
    struct stat st;

    row->input = input;
    row->format = convert->writer->name;
    row->events = events;
    row->output_bytes = RP_ABSENT_I64;
    if (strcmp(row->output, "-") != 0 && !stat(row->output, &st))
        row->output_bytes = st.st_size;
}

static enum rp_code convert_trace(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct convert *convert = user;
    struct written_row *row = &convert->rows[loaded->index];

    RP_TRY(rp_trace_require(loaded->trace, RP_NEED_ALL, err));
    RP_TRY(convert->writer->write(loaded->trace, row->output, NULL, err));
    convert_note(convert, row, loaded->source->name, loaded->trace->health.events);
    return RP_OK;
}

static enum rp_code convert_program(void *user, const struct rp_loaded_program *loaded,
                                    struct rp_err *err)
{
    struct convert *convert = user;
    struct written_row *row = &convert->rows[loaded->index];

    RP_TRY(convert->writer->write_program(loaded->program, row->output, NULL, err));
    convert_note(convert, row, loaded->source->name, loaded->program->nops);
    return RP_OK;
}

/* Leaves the rows that were written; their texts get copies that outlive the dataset. */
static enum rp_code convert_finish(struct convert *convert, size_t n, struct rp_result *result,
                                   struct rp_err *err)
{
    struct convert_root *root = result->root;
    size_t i;

    root->written = convert->rows;
    for (i = 0; i < n; i++) {
        struct written_row row = convert->rows[i];

        if (!row.input)
            continue;
        row.input = rp_arena_text(&result->arena, row.input);
        row.output = rp_arena_text(&result->arena, row.output);
        root->written[root->nwritten++] = row;
    }
    return rp_arena_check(&result->arena, "listing the outputs", err);
}

static enum rp_code convert_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                const struct rp_settings *settings, struct rp_result *result,
                                struct rp_err *err)
{
    const char *output = rp_settings_text(settings, "output");
    struct convert convert = {0};

    if (!output)
        return rp_err_set(err, RP_USAGE, "'convert' needs '--output FILE'");
    RP_TRY(rp_writer_for(rp_settings_text(settings, "to"), output, &convert.writer, err));
    RP_TRY(convert_plan(&convert, dataset, output, &result->arena, err));
    if (convert.writer->write_program)
        RP_TRY(rp_each_program(ctx, dataset, convert_program, &convert, err));
    else
        RP_TRY(rp_each_trace(ctx, dataset, convert_trace, &convert, err));
    return convert_finish(&convert, rp_dataset_count(dataset), result, err);
}

static const struct rp_option convert_options[] = {
    {"output", 'o', RP_OPT_PATH, "FILE", NULL,
     "file to write (a folder for several inputs); '-': standard output", 0},
    {"to", 0, RP_OPT_CHOICE, "rpt|json|perfetto|csv|sqlite|hlo-text|hlo-proto|graphdef|pbtxt", NULL,
     "format (default: by the ending of FILE)", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_convert = {
    .question = {.name = "convert",
                 .group = "traces",
                 .summary = "write a trace or a program in another format",
                 .details =
                     "rpt is the native format of reprise: it is memory-mapped and opens at once, "
                     "whatever its size. json is Chrome's trace format, for viewers; a name that "
                     "ends in .gz is compressed. csv has one row per event, sqlite one table per "
                     "kind of object. rpt and json keep everything except keys that only viewers "
                     "use (cname, sf, stack), thread clocks (tts, tdur), the id of a complete "
                     "event, and args that are empty or not an object; real numbers in args become "
                     "64-bit floating point. Programs: HLO is written as text or protobuf, any "
                     "program as a TensorFlow graph (graphdef, pbtxt).",
                 .examples =
                     "reprise convert trace.json.gz -o trace.rpt	to the native format\n"
                     "reprise convert trace.rpt -o trace.json.gz	back, for a viewer\n"
                     "reprise convert run/ --to sqlite -o tables/	every rank of a run\n",
                 .accepts = RP_ACCEPTS_TRACES | RP_ACCEPTS_PROGRAMS,
                 .options = convert_options,
                 .type = &convert_type},
    .run = convert_run};
