/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `convert`: writes traces or programs, or parts of traces (cut.h), in another format. One input
 * becomes one file; several become a folder of files, named after their inputs. So do the ranks of
 * a merged trace, if a part of it is written: each rank has steps of its own.
 */
#include "convert/convert.h"
#include "base/order.h"
#include "base/text.h"
#include "convert/derived.h"
#include "dataset/cut.h"
#include "dataset/load.h"
#include "dataset/load_program.h"
#include "dataset/question.h"
#include "dataset/selection.h"
#include "dataset/trust.h"
#include "formats/write/samples.h"
#include "formats/write/writers.h"
#include "program/refine.h"
#include "trace/merged.h"
#include "trace/run.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct convert_root {
    size_t nwritten;
    struct rp_written *written;
};

struct convert {
    const struct rp_writer *writer;
    struct rp_trace_cut cut;
    struct rp_scrub *scrub; /* NULL: texts stay */
    const char *refine;     /* shapes of a program's inputs, or NULL */
    const char *table;      /* of Arrow, or NULL */
    const char *output;     /* as it was given */
    const struct rp_dataset *dataset;
    bool folder;             /* the output is one */
    bool made_folder;        /* and it did not exist before */
    struct rp_written *rows; /* one row per source; input is set when the output is written */
    pthread_mutex_t lock;    /* for the next three */
    struct rp_arena *arena;
    RP_VEC(struct rp_written) more; /* of merged traces */
    RP_VEC(int32_t) numbers;        /* of ranks that have a file of their own */
    _Atomic uint64_t samples;       /* samples that the format cannot hold */
};

static const struct rp_field written_fields[] = {
    RP_FIELD(struct rp_written, input, STR, NONE, "input", "the input", RP_SHORTEN),
    RP_FIELD(struct rp_written, output, STR, NONE, "output", "the file written", RP_SHORTEN),
    RP_FIELD(struct rp_written, format, STR, NONE, "format", "format of the output", 0),
    RP_FIELD(struct rp_written, events, I64, COUNT, "events",
             "events of the trace, or instructions of the program", 0),
    RP_FIELD(struct rp_written, output_bytes, I64, BYTES, "size", "size of the output",
             RP_NULLABLE),
    RP_FIELD_END};
const struct rp_type rp_written_type = {"written", sizeof(struct rp_written), written_fields, NULL};

static const struct rp_field convert_fields[] = {
    RP_FIELD_LIST(struct convert_root, written, &rp_written_type, "written", "one row per file", 0),
    RP_FIELD_END};
static const struct rp_type convert_type = {"convert", sizeof(struct convert_root), convert_fields,
                                            "written"};

/* Returns the name of an input without folders and endings: "run.tar!a/rank0.json.gz" becomes
   "rank0". */
static void input_stem(const char *name, char *out, size_t cap)
{
    static const char *const endings[] = {".gz",  ".zst",    ".xz",      ".json", ".rpt",
                                          ".csv", ".sqlite", ".pftrace", NULL};
    const char *slash = strrchr(name, '/'), *bang = strrchr(name, '!');
    const char *begin = slash > bang ? slash : bang;

    begin = begin ? begin + 1 : name;
    size_t len = strlen(begin);
    for (size_t i = 0; endings[i]; i++) {
        size_t n = strlen(endings[i]);

        if (len > n && !memcmp(begin + len - n, endings[i], n)) {
            len -= n;
            i = SIZE_MAX; /* starts again, because "json.gz" is two endings */
        }
    }
    snprintf(out, cap, "%.*s", (int)len, begin);
}

static bool name_taken(const struct rp_written *rows, size_t n, const char *path)
{
    while (n--) {
        if (!strcmp(rows[n].output, path))
            return true;
    }
    return false;
}

/* Inputs with the same name get their number appended. */
static const char *name_in_folder(const struct convert *convert, const char *folder, size_t i,
                                  const char *input, struct rp_arena *arena)
{
    const char *ending = convert->writer->endings[0];
    char base[200];

    input_stem(input, base, sizeof base);
    const char *path = rp_arena_printf(arena, "%s/%s%s", folder, base, ending);
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

enum rp_code rp_convert_folder(const char *path, size_t n, bool *made, struct rp_err *err)
{
    *made = mkdir(path, 0777) == 0;
    return *made || (errno == EEXIST && is_folder(path))
               ? RP_OK
               : rp_err_set_os(err, errno, "cannot make the folder '%s' for %zu files", path, n);
}

/* Fills the row of an output that was written; rows without an input have not been written. */
static void convert_note(const struct convert *convert, struct rp_written *row, const char *input,
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

/* Simulators find the file of a rank by its number: "FOLDER/rank.3.et". If two files have the same
   number, the planned name stays. */
static enum rp_code number_output(struct convert *convert, int32_t number, struct rp_written *row,
                                  struct rp_err *err)
{
    enum rp_code code = RP_OK;
    bool taken = false;

    if (!convert->writer->numbered || !convert->folder)
        return RP_OK;
    pthread_mutex_lock(&convert->lock);
    for (size_t i = 0; i < convert->numbers.n; i++)
        taken |= convert->numbers.at[i] == number;
    if (!taken) {
        row->output = rp_arena_printf(convert->arena, "%s/rank.%d%s", convert->output, number,
                                      convert->writer->endings[0]);
        code = row->output ? rp_vec_push(&convert->numbers, number, err)
                           : rp_err_nomem(err, "planning the outputs");
    }
    pthread_mutex_unlock(&convert->lock);
    return code;
}

/* Writes a rank, or the requested part of it. */
static enum rp_code write_rank(struct convert *convert, const struct rp_loaded *loaded,
                               const struct rp_trace *trace, int32_t number, struct rp_written *row,
                               struct rp_err *err)
{
    struct rp_write_options options = {.table = convert->table,
                                       .input = convert->scrub ? NULL : loaded->source->name,
                                       .rank = number};
    struct rp_trace *part = NULL;

    RP_TRY(number_output(convert, number, row, err));

    if (convert->scrub)
        RP_TRY(rp_scrub_make(convert->scrub, loaded, trace, &part, err));
    else if (convert->cut.asked)
        RP_TRY(rp_trace_cut_make(&convert->cut, trace, loaded->source->name,
                                 &loaded->dataset->limits, &part, err));
    enum rp_code code = convert->writer->write(part ? part : trace, row->output, &options, err);
    if (code == RP_OK) {
        convert_note(convert, row, loaded->source->name, (part ? part : trace)->health.events);
        const struct rp_trace *t = part ? part : trace;
        convert->samples += convert->writer->samples == RP_SAMPLES_ALL     ? 0
                            : convert->writer->samples == RP_SAMPLES_TIMED ? rp_samples_untimed(t)
                                                                           : t->samples.n;
    }
    rp_trace_free(part);
    return code;
}

static enum rp_code add_row(struct convert *convert, const struct rp_written *row,
                            struct rp_err *err)
{
    pthread_mutex_lock(&convert->lock);
    enum rp_code code = rp_vec_push(&convert->more, *row, err);
    pthread_mutex_unlock(&convert->lock);
    return code;
}

static enum rp_code convert_rank(struct convert *convert, const struct rp_loaded *loaded,
                                 const struct rp_merged_rank *rank, bool single, struct rp_err *err)
{
    struct rp_written row, *to = &convert->rows[loaded->index];
    struct rp_trace *trace;

    if (!single) {
        to = &row;

        /* The row is one of several for the ranks of a merged trace, whose files have their
           numbers. */
        const char *planned = convert->rows[loaded->index].output;
        const char *ending = convert->writer->endings[0];
        pthread_mutex_lock(&convert->lock);
        *to = (struct rp_written){.output = rp_arena_printf(convert->arena, "%.*s_rank%d%s",
                                                            (int)(strlen(planned) - strlen(ending)),
                                                            planned, rank->number, ending)};
        pthread_mutex_unlock(&convert->lock);
        RP_TRY(rp_err_need(to->output, err, "planning the outputs"));
    }
    RP_TRY(rp_load_merged_rank(loaded->dataset, loaded->trace, rank, &trace, err));
    enum rp_code code = write_rank(convert, loaded, trace, rank->number, to, err);
    rp_trace_free(trace);
    return code == RP_OK && !single ? add_row(convert, &row, err) : code;
}

/* Writes the requested part of each wanted rank of a merged trace. */
static enum rp_code convert_merged(struct convert *convert, const struct rp_loaded *loaded,
                                   const struct rp_merged *merged, struct rp_err *err)
{
    const char *list = convert->cut.ranks;
    size_t wanted = 0;

    for (size_t i = 0; i < merged->n; i++)
        wanted += !list || rp_rank_wanted(list, merged->ranks[i].number);
    if (wanted > 1) {
        /* Several ranks of the only input, a merged trace, become a folder. */
        struct rp_written *row = &convert->rows[loaded->index];
        const char *output = row->output;
        if (!convert->folder) {
            if (has_ending(convert->writer, output) || !strcmp(output, "-"))
                return rp_err_set(
                    err, RP_USAGE,
                    "'%s' holds several ranks, each of which needs a file: give a folder, a name "
                    "without ending, and '--to %s', or choose one with '--ranks'",
                    loaded->source->name, convert->writer->name);
            RP_TRY(rp_convert_folder(output, wanted, &convert->made_folder, err));
            convert->folder = true;
            row->output = name_in_folder(convert, output, loaded->index, loaded->source->name,
                                         convert->arena);
            RP_TRY(rp_err_need(row->output, err, "planning the outputs"));
        }
    }
    for (size_t i = 0; i < merged->n; i++)
        if (!list || rp_rank_wanted(list, merged->ranks[i].number))
            RP_TRY(convert_rank(convert, loaded, &merged->ranks[i], wanted == 1, err));
    return RP_OK;
}

/* Returns the number of a rank from its file or name, otherwise its place among the inputs. */
static int32_t number_of(const struct rp_loaded *loaded)
{
    int32_t number = loaded->trace->rank;

    if (number == RP_NO_RANK)
        number = rp_rank_in_name(loaded->source->name);
    return number == RP_NO_RANK ? (int32_t)loaded->index : number;
}

static enum rp_code convert_trace(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct convert *convert = user;
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    struct rp_merged merged = {0};

    RP_TRY(rp_trace_require(loaded->trace, RP_NEED_ALL, err));
    if (convert->cut.asked || convert->writer->by_rank)
        RP_TRY(rp_merged_read(loaded->trace, &arena, &merged, err));
    if (merged.n)
        RP_TRY(convert_merged(convert, loaded, &merged, err));
    else if (!convert->cut.ranks || rp_rank_wanted(convert->cut.ranks, number_of(loaded)))
        RP_TRY(write_rank(convert, loaded, loaded->trace, number_of(loaded),
                          &convert->rows[loaded->index], err));
    return RP_OK;
}

/* Makes the program for inputs of the given shapes. */
static enum rp_code refine_program(const struct convert *convert, const struct rp_program *program,
                                   struct rp_program **out, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    struct rp_refine_shape *shapes;
    size_t n;

    RP_TRY(rp_refine_parse(convert->refine, &arena, &shapes, &n, err));
    if (!rp_program_is_dynamic(program))
        return rp_err_set(err, RP_USAGE, "all its shapes are known: --refine has nothing to do");
    return rp_program_refine(program, shapes, n, out, err);
}

static enum rp_code convert_program(void *user, const struct rp_loaded_program *loaded,
                                    struct rp_err *err)
{
    struct convert *convert = user;
    struct rp_written *row = &convert->rows[loaded->index];
    struct rp_program *refined = NULL;
    enum rp_code code = RP_OK;

    if (convert->scrub)
        code = rp_scrub_program(convert->scrub, loaded, convert->dataset, err);
    if (convert->refine)
        code = refine_program(convert, loaded->program, &refined, err);
    const struct rp_program *program = refined ? refined : loaded->program;
    if (code == RP_OK)
        code = convert->writer->write_program(program, row->output, NULL, err);
    if (code == RP_OK)
        convert_note(convert, row, loaded->source->name, program->nops);
    rp_program_free(refined);
    return code != RP_OK && convert->refine ? rp_err_prefix(err, code, "'%s'", loaded->source->name)
                                            : code;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct rp_written *)a)->output, ((const struct rp_written *)b)->output);
}

static enum rp_code convert_all(struct convert *convert, struct rp_ctx *ctx,
                                struct rp_result *result, struct rp_written_list *out,
                                struct rp_err *err)
{
    if (convert->writer->write_program && convert->cut.asked)
        return rp_err_set(err, RP_USAGE,
                          "'%s' is a format of programs: '--ranks', '--steps', '--window' and "
                          "'--kinds' are for traces",
                          convert->writer->name);
    if (!convert->writer->write_program && convert->refine)
        return rp_err_set(err, RP_USAGE, "'%s' is a format of traces: '--refine' is for programs",
                          convert->writer->name);
    if (convert->writer->write_program)
        RP_TRY(rp_each_program(ctx, convert->dataset, convert_program, convert, err));
    else
        RP_TRY(rp_each_trace(ctx, convert->dataset, convert_trace, convert, err));

    /* Everything that is lost is reported. */
    bool timed = convert->writer->samples == RP_SAMPLES_TIMED;
    char text[300];
    if (convert->samples && convert->dataset->trust) {
        snprintf(text, sizeof text,
                 "not written: %llu sample%s of call stacks%s, which '%s' has no place for: 'rpt', "
                 "'sqlite', 'speedscope' and 'pprof' have",
                 (unsigned long long)convert->samples, convert->samples == 1 ? "" : "s",
                 timed ? " without a time" : "", convert->writer->name);
        RP_TRY(rp_trust_note(convert->dataset->trust, "not_written", true,
                             (int64_t)convert->samples, text, err));
    }

    /* Keeps only rows that were written; their texts get copies that outlive the dataset. */
    size_t n = rp_dataset_count(convert->dataset);
    out->written = RP_ARENA_NEW(&result->arena, struct rp_written, n + convert->more.n + 1);
    rp_sort(convert->more.at, convert->more.n, sizeof *convert->more.at, by_name);
    for (size_t i = 0; out->written && i < n + convert->more.n; i++) {
        struct rp_written row = i < n ? convert->rows[i] : convert->more.at[i - n];

        if (!row.input)
            continue;
        row.input = rp_arena_text(&result->arena, row.input);
        row.output = rp_arena_text(&result->arena, row.output);
        out->written[out->nwritten++] = row;
    }
    if (!out->nwritten && convert->cut.ranks)
        return rp_err_set(err, RP_USAGE, "none of the ranks '%s' is there", convert->cut.ranks);
    return rp_arena_check(&result->arena, "listing the outputs", err);
}

/* Whether a file that was found in a folder or a tar has a known format. */
static bool is_readable(struct rp_sources *sources, size_t i)
{
    const struct rp_format *format = NULL;
    struct rp_input *in;

    if (rp_source_open(sources, i, &in, NULL) != RP_OK)
        return false;
    bool known = rp_format_sniff(in, &format, NULL) == RP_OK && format;
    rp_source_return(sources, i, in);
    return known;
}

/* Whether the inputs hold more than one trace: what lies beside traces, such as counters and notes,
   is not written. */
static bool are_several(const struct rp_dataset *dataset)
{
    size_t n = rp_dataset_count(dataset), traces = 0;

    for (size_t i = 0; n > 1 && i < n && traces < 2; i++)
        traces +=
            !rp_sources_borrow(dataset->sources, i)->found || is_readable(dataset->sources, i);
    return traces > 1;
}

enum rp_code rp_convert_write(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                              const struct rp_settings *settings, struct rp_scrub *scrub,
                              struct rp_result *result, struct rp_written_list *out,
                              struct rp_err *err)
{
    static const struct rp_writer *const derived[] = {&rp_writer_arrow, &rp_writer_chakra, NULL};
    const char *output = rp_settings_text(settings, "output");
    struct convert convert = {.dataset = dataset,
                              .arena = &result->arena,
                              .scrub = scrub,
                              .table = rp_settings_text(settings, "table"),
                              .output = output};

    if (!output)
        return rp_err_set(err, RP_USAGE, "'%s' needs '--output FILE'", scrub ? "scrub" : "convert");
    RP_TRY(
        rp_writer_among(derived, rp_settings_text(settings, "to"), output, &convert.writer, err));
    if (convert.table && convert.writer != &rp_writer_arrow)
        return rp_err_set(err, RP_USAGE, "'--table' chooses a table for 'arrow', not for '%s'",
                          convert.writer->name);
    if (!scrub) {
        convert.refine = rp_settings_text(settings, "refine");
        RP_TRY(rp_trace_cut_init(&convert.cut, settings, err));
    }

    /* Determines the names of all outputs before anything is read, so that errors come at once. */
    size_t n = rp_dataset_count(dataset);
    bool to_stdout = !strcmp(output, "-");
    bool several = convert.writer->write_program ? n > 1 : are_several(dataset);
    bool folder = !to_stdout && (several || is_folder(output));
    convert.folder = folder;
    convert.rows = RP_ARENA_NEW(&result->arena, struct rp_written, n);
    RP_TRY(rp_err_need(convert.rows, err, "planning the outputs"));
    if (several && (to_stdout || (!is_folder(output) && has_ending(convert.writer, output))))
        return rp_err_set(err, RP_USAGE,
                          "'%s' is one file, but %zu inputs need a folder: give a name"
                          " without ending, and '--to %s'",
                          output, n, convert.writer->name);
    if (folder)
        RP_TRY(rp_convert_folder(output, n, &convert.made_folder, err));
    for (size_t i = 0; i < n; i++) {
        const struct rp_source *source = rp_sources_borrow(dataset->sources, i);

        convert.rows[i].output =
            folder ? name_in_folder(&convert, output, i, source->name, &result->arena) : output;
        RP_TRY(rp_err_need(convert.rows[i].output, err, "planning the outputs"));
        if (rp_is_same_file(source->path, convert.rows[i].output))
            return rp_err_set(err, RP_USAGE, "'%s' is both input and output", source->path);
    }
    pthread_mutex_init(&convert.lock, NULL);
    enum rp_code code = convert_all(&convert, ctx, result, out, err);
    if (code != RP_OK && convert.made_folder)
        rmdir(output); /* only if nothing was written into it */
    pthread_mutex_destroy(&convert.lock);
    rp_vec_release(&convert.more);
    rp_vec_release(&convert.numbers);
    return code;
}

static enum rp_code convert_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                const struct rp_settings *settings, struct rp_result *result,
                                struct rp_err *err)
{
    struct convert_root *root = result->root;
    struct rp_written_list list = {0};

    RP_TRY(rp_convert_write(ctx, dataset, settings, NULL, result, &list, err));
    root->nwritten = list.nwritten;
    root->written = list.written;
    return RP_OK;
}

static const struct rp_option convert_options[] = {
    {"output", 'o', RP_OPT_PATH, "FILE", NULL,
     "file to write (a folder for several inputs); '-': standard output", 0},
    {"to", 0, RP_OPT_CHOICE, RP_TRACE_FORMATS "|" RP_PROGRAM_FORMATS, NULL,
     "format (default: by the ending of FILE)", 0},
    RP_ARROW_OPTION,
    {"refine", 0, RP_OPT_TEXT, "SHAPES", NULL,
     "of a program: shapes of inputs whose dimensions are not known, such as in0=8x128,in1=128", 0},
    RP_CUT_OPTIONS,
    RP_STEP_NAME_OPTION,
    RP_OPTION_END};

const struct rp_question_row rp_ask_convert = {
    .question =
        {.name = "convert",
         .group = "traces",
         .summary = "write a trace or a program in another format",
         .details =
             "rpt is the native format of reprise: it is memory-mapped and opens at once, "
             "whatever its size. json is Chrome's trace format, for viewers; a name that "
             "ends in .gz is compressed. csv has one row per event, sqlite one table per "
             "kind of object, arrow one table as an Arrow IPC file. chakra is the graph of dependencies, for simulators. rpt and json keep everything except keys that only viewers "
             "use (cname, sf, stack), thread clocks (tts, tdur), the id of a complete "
             "event, and args that are empty or not an object; real numbers in args become "
             "64-bit floating point. Programs: HLO is written as text or protobuf, any "
             "program as a TensorFlow graph (graphdef, pbtxt).",
         .examples =
             "reprise convert trace.json.gz -o trace.rpt	to the native format\n"
             "reprise convert trace.rpt -o trace.json.gz	back, for a viewer\n"
             "reprise convert run/ --to sqlite -o tables/	every rank of a run\n"
             "reprise convert run/ --steps 3 --to chakra -o job/	a step, for ASTRA-sim\n"
             "reprise convert model.mlir --refine in0=8x128 -o model.hlo.pb	for inputs of "
             "this shape\n"
             "reprise convert run/ --ranks 0,8 --steps 3:2 --to json -o part/	two steps\n",
         .accepts = RP_ACCEPTS_TRACES | RP_ACCEPTS_PROGRAMS,
         .options = convert_options,
         .type = &convert_type},
    .run = convert_run};
