/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `replay import` makes bundles from what other tools, or `replay capture`, left behind.
 *
 *     <pid>-captures.jsonl     one bundle a line (src/capture/pjrt): program, inputs, outputs, time
 *     a folder of XLA dumps    one for each snapshot; for a module without snapshots, one with
 * synthetic inputs a log of BladeDISC       one a cluster. It names the compiler's inputs and the
 * tars of their arrays on lines of their own; a tar belongs to the input whose arguments are its
 * members
 *
 * What cannot be imported becomes a row that says why, and the rest is imported.
 */
#include "base/escape.h"
#include "base/text.h"
#include "replay/words.h"

#include "dataset/load_program.h"
#include "io/json_tree.h"
#include "io/mapped.h"
#include "replay/bundle.h"
#include "replay/graph.h"
#include "replay/trial.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define LINE_ARRAYS 65536 /* most inputs and outputs of one capture */

struct import {
    const struct rp_dataset *dataset;
    const struct rp_settings *settings;
    struct rp_result *result;
    const char *to; /* folder */
    RP_VEC(struct rp_replay_imported) rows;
    size_t made;
    struct rp_err *err;
};

static void import_release(struct import *i)
{
    rp_vec_release(&i->rows);
}

/* ---- rows ---- */

static enum rp_code import_row(struct import *i, const char *module, const char *from,
                               const char *inputs, const char *bundle, const char *message)
{
    struct rp_arena *arena = &i->result->arena;
    struct rp_replay_imported row = {.module = rp_arena_text(arena, module),
                                     .from = rp_arena_text(arena, from),
                                     .inputs = inputs ? rp_arena_text(arena, inputs) : NULL,
                                     .bundle = bundle ? rp_arena_text(arena, bundle) : NULL,
                                     .message = message ? rp_arena_text(arena, message) : NULL,
                                     .ok = bundle != NULL};

    RP_TRY(rp_arena_check(arena, "importing", i->err));
    i->made += bundle != NULL;
    return rp_vec_push(&i->rows, row, i->err);
}

/* ---- one bundle ---- */

/* Packs a session whose program is open, after choosing inputs. A failure becomes a row. */
static enum rp_code import_session(struct import *i, struct rp_session *s, const char *module,
                                   const char *from, enum rp_code code)
{
    struct rp_session_options options = {.seed = (uint64_t)rp_settings_int(i->settings, "seed"),
                                         .partitions = s->bundle_partitions};
    struct rp_replay root = {0};
    /* Replaces characters that file names cannot have in "jit_step.3.tar". */
    char name[RP_FILE_NAME_MAX];
    rp_file_name(name, *module ? module : "program");
    const char *path = rp_arena_textf(&i->result->arena, "%s/%s.%zu.tar", i->to, name, i->made);

    if (code == RP_OK)
        code = rp_session_inputs(s, &options, &root, i->err);
    if (code == RP_OK)
        code = rp_replay_pack_to(s, path, i->settings, i->result, i->err);
    if (rp_trial_is_ours(code))
        return code;
    if (code != RP_OK)
        return import_row(i, module, from, NULL, NULL, i->err ? i->err->text : "failed");
    return import_row(i, module, from, root.inputs, path, NULL);
}

static enum rp_code open_source(struct import *i, size_t at, struct rp_session *s)
{
    s->arena = &i->result->arena;
    s->file = rp_dataset_borrow_name(i->dataset, at);
    RP_TRY(rp_load_program(i->dataset, at, &s->import, i->err));
    s->program = (struct rp_engine_program){
        .program = s->import.program, .name = s->file, .format = s->import.format->name};
    return s->import.input
               ? rp_input_slurp(s->import.input, &s->program.bytes, &s->program.nbytes, i->err)
               : RP_OK;
}

/* ---- dumps ---- */

static enum rp_code import_module(struct import *i, const struct rp_dump_module *m)
{
    enum rp_dump_point best = RP_DUMP_AT_SOURCE; /* used if nothing else was dumped */

    for (size_t k = 0; k < m->nstages; k++)
        if (m->stages[k].point == RP_DUMP_AT_RUN ||
            (m->stages[k].point == RP_DUMP_AT_BEFORE && best != RP_DUMP_AT_RUN))
            best = m->stages[k].point;
    for (size_t k = 0; k < m->nstages; k++) {
        RP_SCOPED(rp_session_release) struct rp_session s = {0};

        if (m->stages[k].point == best)
            RP_TRY(import_session(i, &s, m->name,
                                  rp_dataset_borrow_name(i->dataset, m->stages[k].source),
                                  open_source(i, m->stages[k].source, &s)));
    }
    return RP_OK;
}

static enum rp_code import_dumps(struct import *i)
{
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    struct rp_dump dump = {0};

    RP_TRY(rp_dataset_dump(i->dataset, &arena, &dump, i->err));
    for (size_t k = 0; k < dump.nmodules; k++)
        RP_TRY(import_module(i, &dump.modules[k]));
    return RP_OK;
}

/* ---- captures ---- */

struct captured_array {
    unsigned elem;
    int64_t dims[RP_TENSOR_RANK], at, bytes;
    size_t rank;
};
typedef RP_VEC(struct captured_array) captured_arrays;

struct captured {
    const char *module, *program, *data, *compiled, *skipped;
    int64_t run, partitions;
    captured_arrays inputs, outputs;
};

static void captured_release(struct captured *c)
{
    rp_vec_release(&c->inputs);
    rp_vec_release(&c->outputs);
}

static const struct rp_json_row captured_rows[] = {RP_JSON_ROW(struct captured, module, STRING),
                                                   RP_JSON_ROW(struct captured, program, STRING),
                                                   RP_JSON_ROW(struct captured, data, STRING),
                                                   RP_JSON_ROW(struct captured, compiled, STRING),
                                                   RP_JSON_ROW(struct captured, skipped, STRING),
                                                   RP_JSON_ROW(struct captured, run, NUMBER),
                                                   RP_JSON_ROW(struct captured, partitions, NUMBER),
                                                   RP_JSON_ROWS_END};

static enum rp_code line_error(struct rp_err *err)
{
    return rp_err_set(err, RP_FORMAT, "the line does not describe a captured run");
}

/* Reads [{"type": "F32", "dims": [2, 3], "at": 0, "bytes": 24}, …]. */
static enum rp_code line_arrays(const struct rp_json_node *list, captured_arrays *out,
                                struct rp_err *err)
{
    RP_JSON_EACH(item, list)
    {
        const struct rp_json_node *type = rp_json_get(item, "type"),
                                  *dims = rp_json_get(item, "dims");
        struct captured_array a = {.at = rp_json_int(rp_json_get(item, "at"), -1),
                                   .bytes = rp_json_int(rp_json_get(item, "bytes"), -1)};
        char name[32];
        size_t n = 0;

        for (; n < type->len && n < sizeof name; n++)
            name[n] = (char)tolower((unsigned char)type->text[n]);
        a.elem = rp_elem_find(name, n);
        if (a.elem == RP_ELEM_INVALID || a.at < 0 || a.bytes < 0 || dims->n > RP_TENSOR_RANK ||
            out->n == LINE_ARRAYS)
            return line_error(err);
        RP_JSON_EACH(dim, dims)
        if ((a.dims[a.rank++] = rp_json_int(dim, -1)) < 0)
            return line_error(err);
        RP_TRY(rp_vec_push(out, a, err));
    }
    return RP_OK;
}

/* File names in a capture have no folders, because the files are beside its list. */
static bool is_beside(const char *name)
{
    return name && *name && *name != '.' && !strchr(name, '/');
}

static enum rp_code line_parse(const char *at, size_t n, struct rp_arena *arena, struct captured *c,
                               struct rp_err *err)
{
    const struct rp_json_node *root;

    RP_TRY(rp_json_tree_parse("captures", at, n, arena, &root, err));
    if (root->kind != RP_JSON_OBJECT)
        return line_error(err);
    RP_TRY(rp_json_fill(root, captured_rows, "the line", c, err));
    RP_TRY(line_arrays(rp_json_get(root, "inputs"), &c->inputs, err));
    RP_TRY(line_arrays(rp_json_get(root, "outputs"), &c->outputs, err));
    if (c->run < 0 ||
        (!c->skipped &&
         (!c->module || !is_beside(c->program) || !is_beside(c->data) ||
          (c->compiled && !is_beside(c->compiled)) || c->partitions < 1 || c->partitions > 4096)))
        return line_error(err);
    return RP_OK;
}

/* Gives the arrays the names that a session looks for; they point into the data. */
static enum rp_code borrow_arrays(const struct captured_array *list, size_t n, const char *kind,
                                  int64_t partitions, struct rp_bytes data, struct rp_arrays *out,
                                  struct rp_err *err)
{
    size_t each = n / (size_t)partitions;

    for (size_t k = 0; k < n; k++) {
        const struct captured_array *a = &list[k];
        struct rp_tensor *t;

        RP_TRY(rp_tensor_borrow(a->elem, a->dims, a->rank, NULL, &t, err));
        size_t bytes = rp_tensor_bytes(t);
        rp_tensor_drop(t);
        if (bytes != (size_t)a->bytes || (size_t)a->at > data.n || bytes > data.n - (size_t)a->at)
            return rp_err_set(err, RP_FORMAT, "%s %zu is not in the data", kind, k);
        RP_TRY(rp_tensor_borrow(a->elem, a->dims, a->rank, data.at + a->at, &t, err));
        RP_TRY(partitions > 1 && each
                   ? rp_arrays_add(out, t, err, "p%zu_%s%zu", k / each, kind, k % each)
                   : rp_arrays_add(out, t, err, "%s%zu", kind, k));
    }
    return RP_OK;
}

static enum rp_code find_beside(const struct import *i, const char *folder, size_t nfolder,
                                const char *name, size_t *at)
{
    for (*at = 0; name && *at < rp_dataset_count(i->dataset); ++*at) {
        const char *path = rp_dataset_borrow_name(i->dataset, *at);

        if (!strncmp(path, folder, nfolder) && !strcmp(path + nfolder, name))
            return RP_OK;
    }
    return rp_err_set(i->err, RP_FORMAT, "'%.*s%s' is missing", (int)nfolder, folder,
                      name ? name : "");
}

/* If a program computes with whole arrays, puts together what several devices have of one
   execution, by the shardings of the compiled program. */
static enum rp_code import_whole(struct import *i, const char *list, size_t nfolder,
                                 const struct captured *c, struct rp_session *s)
{
    RP_SCOPED(rp_session_release) struct rp_session compiled = {0};
    size_t at;

    if (c->partitions < 2)
        return RP_OK;
    s->partitions = (size_t)c->partitions;
    if (c->compiled && find_beside(i, list, nfolder, c->compiled, &at) == RP_OK)
        RP_TRY(open_source(i, at, &compiled));
    return rp_session_unshard(s, compiled.program.program, i->err);
}

static enum rp_code read_capture(struct import *i, const char *list, const struct captured *c,
                                 struct rp_mapped *data, struct rp_session *s)
{
    size_t nfolder = (size_t)(rp_text_file(list) - list), at;
    const char *path =
        rp_arena_textf(&i->result->arena, "%.*s%s", (int)nfolder, list, c->data ? c->data : "");

    RP_TRY(find_beside(i, list, nfolder, c->program, &at));
    RP_TRY(open_source(i, at, s));
    RP_TRY(rp_mapped_open(path, UINT64_MAX, data, NULL, i->err));
    struct rp_bytes b = {data->at, data->n};
    RP_TRY(borrow_arrays(c->inputs.at, c->inputs.n, "in", c->partitions, b, &s->inputs, i->err));
    RP_TRY(
        borrow_arrays(c->outputs.at, c->outputs.n, "out", c->partitions, b, &s->expected, i->err));
    return import_whole(i, list, nfolder, c, s);
}

static enum rp_code import_capture(struct import *i, const char *list, const struct captured *c)
{
    /* Mapped without decompression, because values may look like gzip's magic number. */
    RP_SCOPED(rp_mapped_close) struct rp_mapped data = {0};
    RP_SCOPED(rp_session_release)
    struct rp_session s = {
        .arena = &i->result->arena, .bundle_partitions = c->partitions, .bundle = true};
    const char *from = rp_arena_textf(&i->result->arena, "%s, run %lld", list, (long long)c->run);

    if (c->skipped)
        return import_row(i, c->module ? c->module : "", from, NULL, NULL, c->skipped);
    return import_session(i, &s, c->module, from, read_capture(i, list, c, &data, &s));
}

/* A job that was killed may leave half a line at the end. */
static enum rp_code import_list(struct import *i, const char *path)
{
    RP_SCOPED(rp_replay_close_input) struct rp_input *in = NULL;
    struct rp_bytes text;

    RP_TRY(rp_input_open(path, NULL, &in, i->err));
    RP_TRY(rp_input_slurp(in, &text.at, &text.n, i->err));
    for (size_t at = 0; at < text.n;) {
        const char *line = (const char *)text.at + at, *end = memchr(line, '\n', text.n - at);
        size_t n = end ? (size_t)(end - line) : text.n - at;
        RP_SCOPED(captured_release) struct captured c = {.partitions = 1};

        at += n + 1;
        enum rp_code code = n ? line_parse(line, n, &i->result->arena, &c, i->err) : RP_OK;
        if (code == RP_OK && n)
            code = import_capture(i, path, &c);
        else if (code == RP_FORMAT)
            code = import_row(i, "", path, NULL, NULL,
                              end ? i->err->text : "the last line is cut: the job ended there");
        RP_TRY(code);
    }
    return RP_OK;
}

/* ---- BladeDISC's logs ---- */

static const char blade_input[] = "tao_compiler_input: ";
static const char blade_tar[] = "tar the cluster input tensors with protobuf format to: ";

/* Finds a path of the log, or if the log was moved, the file of that name beside it. */
static const char *log_path(const struct import *i, const char *log, const char *at, size_t n)
{
    struct rp_arena *arena = &i->result->arena;
    const char *path = rp_arena_textf(arena, "%.*s", (int)n, at), *name = strrchr(path, '/');
    size_t nfolder = (size_t)(rp_text_file(log) - log);
    struct stat st;

    if (!stat(path, &st))
        return path;
    return rp_arena_textf(arena, "%.*s%s", (int)nfolder, log, name ? name + 1 : path);
}

struct blade_log {
    RP_VEC(const char *) inputs, tars;
};

static void log_release(struct blade_log *log)
{
    rp_vec_release(&log->inputs);
    rp_vec_release(&log->tars);
}

static enum rp_code blade_lines(struct import *i, const char *log, struct rp_bytes text,
                                struct blade_log *out)
{
    for (size_t at = 0; at < text.n;) {
        const char *line = (const char *)text.at + at, *end = memchr(line, '\n', text.n - at);
        size_t n = end ? (size_t)(end - line) : text.n - at;
        const char *input = memmem(line, n, blade_input, sizeof blade_input - 1);
        const char *tar = memmem(line, n, blade_tar, sizeof blade_tar - 1);
        const char *path = input ? input + sizeof blade_input - 1
                           : tar ? tar + sizeof blade_tar - 1
                                 : NULL;

        at += n + 1;
        if (!path)
            continue;
        n = (size_t)(line + n - path);
        while (n && strchr(" \t\r", path[n - 1]))
            n--;
        if (input)
            RP_TRY(rp_vec_push(&out->inputs, log_path(i, log, path, n), i->err));
        else
            RP_TRY(rp_vec_push(&out->tars, log_path(i, log, path, n), i->err));
    }
    return rp_arena_check(&i->result->arena, "importing", i->err);
}

/* The log does not say which tar belongs to an input, so the first one is used whose members have
   the names of its arguments. */
static enum rp_code import_cluster(struct import *i, const char *input, const struct blade_log *log)
{
    const char *name = rp_text_file(input);

    rp_err_set(i->err, RP_FORMAT, "the log names no tar with its inputs");
    for (size_t k = 0; k < log->tars.n; k++) {
        RP_SCOPED(rp_session_release)
        struct rp_session s = {.arena = &i->result->arena,
                               .file = input,
                               .program = {.name = input, .format = "blade"}};
        enum rp_code code = rp_replay_open_blade(&s, input, log->tars.at[k], i->err);

        if (code == RP_OK)
            return import_session(i, &s, name, input, code);
        if (rp_trial_is_ours(code))
            return code;
    }
    return import_row(i, name, input, NULL, NULL, i->err ? i->err->text : "failed");
}

static enum rp_code import_log(struct import *i, const char *path)
{
    RP_SCOPED(log_release) struct blade_log log = {0};
    RP_SCOPED(rp_replay_close_input) struct rp_input *in = NULL;
    struct rp_bytes text;

    RP_TRY(rp_input_open(path, NULL, &in, i->err));
    RP_TRY(rp_input_slurp(in, &text.at, &text.n, i->err));
    RP_TRY(blade_lines(i, path, text, &log));
    for (size_t k = 0; k < log.inputs.n; k++)
        RP_TRY(import_cluster(i, log.inputs.at[k], &log));
    return RP_OK;
}

/* ---- all of it ---- */

static enum rp_code import_all(struct import *i)
{
    for (size_t k = 0; k < rp_dataset_count(i->dataset); k++) {
        const char *name = rp_dataset_borrow_name(i->dataset, k);

        if (rp_text_ends(name, "-captures.jsonl"))
            RP_TRY(import_list(i, name));
        else if (rp_text_ends(name, ".log") || rp_text_ends(name, ".err") ||
                 rp_text_ends(name, ".out"))
            RP_TRY(import_log(i, name));
    }
    RP_TRY(import_dumps(i));
    if (i->rows.n)
        return RP_OK;
    if (rp_dataset_count(i->dataset) == 1) { /* a log of any name, or one snapshot */
        const char *name = rp_dataset_borrow_name(i->dataset, 0);
        RP_SCOPED(rp_session_release) struct rp_session s = {0};

        RP_TRY(import_log(i, name));
        if (i->rows.n)
            return RP_OK;
        RP_TRY(open_source(i, 0, &s));
        return import_session(i, &s, rp_text_file(name), name, RP_OK);
    }
    return rp_err_set(i->err, RP_FORMAT,
                      "'%s' has nothing to import: no captures, XLA dumps or log of BladeDISC",
                      i->dataset->given);
}

enum rp_code rp_replay_import(const struct rp_dataset *dataset, const struct rp_settings *settings,
                              struct rp_result *result, struct rp_err *err)
{
    RP_SCOPED(import_release)
    struct import i = {.dataset = dataset,
                       .settings = settings,
                       .result = result,
                       .to = rp_settings_text(settings, "save"),
                       .err = err};
    struct rp_replay *root = result->root;

    rp_replay_no_times(root);
    if (!dataset || !i.to)
        return rp_err_set(err, RP_USAGE,
                          "'replay import' needs a folder or a log, and --save FOLDER");
    if (mkdir(i.to, 0777) && errno != EEXIST)
        return rp_err_set_os(err, errno, "cannot make the folder '%s'", i.to);
    root->program = rp_arena_strdup(&result->arena, dataset->given);
    RP_TRY(import_all(&i));
    root->imported = RP_ARENA_NEW(&result->arena, struct rp_replay_imported, i.rows.n + 1);
    RP_TRY(rp_err_need(root->imported, err, "importing"));
    for (size_t k = 0; k < i.rows.n; k++)
        root->imported[root->nimported++] = i.rows.at[k];
    root->ok = i.made == i.rows.n;
    result->answer = root->ok ? 0 : RP_ANSWER_NO;
    return RP_OK;
}
