/* SPDX-License-Identifier: Apache-2.0 */
/* `replay` runs a captured program alone, on any engine, timed and checked. */
#include "replay/replay.h"

#include "dataset/load_program.h"
#include "dataset/question.h"
#include "replay/bundle.h"
#include "replay/graph.h"
#include "replay/words.h"

#include <reprise/recording.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the answer ---- */

void rp_replay_no_times(struct rp_replay *root)
{
    struct rp_replay_times *t = &root->run_ns;

    t->waited_ratio = (double)NAN;
    root->partitions = root->compile_ns = root->upload_ns = root->first_ns = RP_ABSENT_I64;
    t->min = t->p50 = t->p90 = t->p99 = t->max = t->mean = t->p50_low = t->p50_high = t->machine =
        t->n = t->warmups = RP_ABSENT_I64;
    root->ok = true;
}

static enum rp_code put_times(const struct rp_session_run *run, struct rp_arena *arena,
                              struct rp_replay *root, struct rp_err *err)
{
    const struct rp_timing *t = &run->times;
    int64_t *blocks = RP_ARENA_NEW(arena, int64_t, t->nblocks + 1);

    RP_TRY(rp_err_need(blocks, err, "timing"));
    memcpy(blocks, t->blocks, t->nblocks * sizeof *blocks);

    root->compile_ns = run->compile_ns;
    root->upload_ns = run->upload_ns;
    root->first_ns = t->first_ns;
    root->run_ns = (struct rp_replay_times){.min = t->min_ns,
                                            .p50 = t->p50_ns,
                                            .p90 = t->p90_ns,
                                            .p99 = t->p99_ns,
                                            .max = t->max_ns,
                                            .mean = t->mean_ns,
                                            .p50_low = t->low_ns,
                                            .p50_high = t->high_ns,
                                            .n = (int64_t)t->n,
                                            .warmups = (int64_t)t->warmups,
                                            .blocks = blocks,
                                            .nblocks = t->nblocks,
                                            .machine = t->machine_ns,
                                            .waited_ratio = t->waited};
    return RP_OK;
}

static enum rp_code save_outputs(const struct rp_session_run *run, const char *path,
                                 struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    struct rp_array *list = RP_ARENA_NEW(&arena, struct rp_array, run->noutputs + 1);
    size_t each = run->exe->noutputs;

    RP_TRY(rp_err_need(list, err, "saving outputs"));
    for (size_t i = 0; i < run->noutputs; i++) {
        list[i].value = run->outputs[i];
        list[i].name = run->exe->partitions > 1
                           ? rp_arena_printf(&arena, "p%zu_out%zu", i / each, i % each)
                           : rp_arena_printf(&arena, "out%zu", i);
        if (!list[i].name)
            return rp_err_nomem(err, "saving outputs");
    }
    return rp_arrays_write(path, list, run->noutputs, err);
}

static enum rp_code replay_report(const struct rp_session *s, const struct rp_settings *settings,
                                  const struct rp_session_run *run, struct rp_result *result,
                                  struct rp_err *err)
{
    struct rp_replay *root = result->root;
    const char *to = rp_settings_text(settings, "save");

    RP_TRY(put_times(run, &result->arena, root, err));
    root->outputs = RP_ARENA_NEW(&result->arena, struct rp_replay_output, run->noutputs + 1);
    RP_TRY(rp_err_need(root->outputs, err, "describing outputs"));
    for (size_t i = 0; i < run->noutputs; i++)
        RP_TRY(rp_replay_describe(&result->arena, run->outputs[i], i, &root->outputs[i], err));
    root->noutputs = run->noutputs;
    root->ok = true;
    if (to)
        RP_TRY(save_outputs(run, to, err));
    RP_TRY(rp_replay_check(s, settings, run, result, err));
    if (rp_settings_has(settings, "compare"))
        RP_TRY(rp_replay_compare(rp_settings_text(settings, "compare"), &result->arena, root, err));
    if (rp_settings_has(settings, "trace"))
        RP_TRY(rp_replay_trace(run, rp_settings_text(settings, "trace"), result, err));
    if (run->options.profile)
        return rp_replay_instructions(run, rp_settings_int(settings, "profile"), result, err);
    return RP_OK;
}

static enum rp_code run_options(struct rp_ctx *ctx, const struct rp_settings *settings,
                                struct rp_session_run *run, struct rp_err *err)
{
    int64_t warmup = rp_settings_has(settings, "warmup") ? rp_settings_int(settings, "warmup") : -1;

    run->timed = true;
    run->timing = (struct rp_timing_options){.iterations = rp_settings_int(settings, "iters"),
                                             .time_ns = rp_settings_int(settings, "time"),
                                             .warmup = warmup,
                                             .cold = rp_settings_flag(settings, "cold")};
    run->options.threads = rp_pool_threads(ctx->pool);
    run->options.profile = rp_settings_has(settings, "profile");
    run->options.in_process =
        rp_settings_flag(settings, "in-process") || rp_settings_flag(settings, "wait-attach");
    run->options.timeout_ns = rp_settings_int(settings, "timeout");
    RP_TRY(rp_replay_check_settings(settings, err)); /* checked now, because a run may take hours */
    if (run->timing.iterations && !rp_settings_has(settings, "time"))
        run->timing.time_ns = 0; /* as many as requested, however long they take */
    if (run->options.profile && rp_settings_int(settings, "profile") < 1)
        return rp_err_set(err, RP_USAGE,
                          "--profile takes the number of instructions to show, 1 or more");
    return RP_OK;
}

static enum rp_code replay_execute(struct rp_session *s, const struct rp_settings *settings,
                                   struct rp_session_run *run, struct rp_result *result,
                                   struct rp_err *err)
{
    enum rp_code code = rp_session_execute(s, run, err);

    if (code == RP_MISSING && s->graph && s->graph->why.code == RP_FORMAT && !s->program.program) {
        code = RP_FORMAT; /* no engine could run it */
        if (err)
            *err = s->graph->why;
    }
    if (code == RP_MISSING && s->graph && !s->program.program && run->engine == &rp_engine_tf)
        code = rp_err_prefix(err, code, "'%s': %s; TensorFlow itself", s->file, s->graph->why.text);
    if (code == RP_OK && s->graph)
        rp_replay_graph_outputs(s, run->outputs, run->noutputs);
    if (code == RP_OK)
        return replay_report(s, settings, run, result, err);
    if (code == RP_FORMAT || code == RP_UNSUPPORTED || code == RP_LIMIT)
        return rp_err_prefix(err, code, "'%s'", s->file);
    return code;
}

static enum rp_code replay_session(struct rp_ctx *ctx, struct rp_session *s,
                                   const struct rp_settings *settings, struct rp_result *result,
                                   struct rp_err *err)
{
    struct rp_session_options options = {.inputs = rp_settings_text(settings, "inputs"),
                                         .expect = rp_settings_text(settings, "expect"),
                                         .refine = rp_settings_text(settings, "refine"),
                                         .seed = (uint64_t)rp_settings_int(settings, "seed"),
                                         .partitions = rp_settings_int(settings, "partitions")};
    struct rp_replay *root = result->root;
    RP_SCOPED(rp_session_run_release) struct rp_session_run run = {0};
    RP_SCOPED(rp_proto_writer_release) struct rp_proto_writer compile_options = {0};

    if (s->bundle && !rp_settings_has(settings, "seed"))
        options.seed = (uint64_t)s->bundle_seed;
    if (s->bundle && !rp_settings_has(settings, "partitions"))
        options.partitions = s->bundle_partitions;
    RP_TRY(run_options(ctx, settings, &run, err));
    RP_TRY(rp_replay_choose(s, settings, &run, root, err));
    RP_TRY(rp_session_inputs(s, &options, root, err));
    if (!strcmp(rp_settings_text(settings, "action"), "pack")) {
        root->engine = root->choice = NULL;
        rp_replay_no_times(root);
        return rp_replay_pack(s, settings, result, err);
    }
    rp_replay_choose_again(s, settings, &run, root);
    RP_TRY(rp_replay_check_plugin_options(settings, run.engine, err));
    rp_replay_choose_products(s, settings, &run, root);
    if (rp_settings_flag(settings, "wait-attach"))
        RP_TRY(rp_wait_attach(err));
    RP_TRY(rp_replay_plugin_options(s->arena, settings, &run.options, &compile_options, err));
    return rp_replay_is_surgery(rp_settings_text(settings, "action"))
               ? rp_replay_surgery(s, settings, &run, result, err)
               : replay_execute(s, settings, &run, result, err);
}

/* Runs BladeDISC's two files. */
static enum rp_code run_pair(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                             const struct rp_settings *settings, struct rp_result *result,
                             struct rp_err *err)
{
    const char *program = rp_settings_text(settings, "program");
    const char *data = rp_settings_text(settings, "data");
    RP_SCOPED(rp_session_release) struct rp_session s = {.arena = &result->arena};
    struct rp_replay *root = result->root;

    if (!program || !data || dataset)
        return rp_err_set(err, RP_USAGE,
                          "a BladeDISC pair needs both -p X.input and -d X.tar, and no other file");
    s.file = root->program = rp_arena_strdup(&result->arena, program);
    root->format = "blade";
    s.program = (struct rp_engine_program){.name = root->program, .format = root->format};

    RP_TRY(rp_replay_open_blade(&s, program, data, err));
    return replay_session(ctx, &s, settings, result, err);
}

/* Runs source `at` of the dataset, alone or as the program of a bundle; `other` is the program to
   compare it with, or NULL. */
static enum rp_code run_source(struct rp_ctx *ctx, const struct rp_dataset *dataset, size_t at,
                               const struct rp_opened_bundle *bundle,
                               const struct rp_program *other, const struct rp_settings *settings,
                               struct rp_result *result, struct rp_err *err)
{
    RP_SCOPED(rp_session_release)
    struct rp_session s = {.arena = &result->arena, .other = other};
    struct rp_replay *root = result->root;

    s.file = bundle ? dataset->given : rp_dataset_borrow_name(dataset, at);
    s.other_file = other ? rp_dataset_borrow_name(dataset, 1) : NULL;
    RP_TRY(rp_load_program(dataset, at, &s.import, err));
    root->program = rp_arena_strdup(&result->arena, s.file);
    root->format = s.import.format->name;
    s.program = (struct rp_engine_program){
        .program = s.import.program, .name = root->program, .format = root->format};
    if (s.import.input)
        RP_TRY(rp_input_slurp(s.import.input, &s.program.bytes, &s.program.nbytes, err));
    if (rp_replay_is_graph(&s))
        RP_TRY(rp_replay_open_graph(&s, settings, err));
    else if (rp_settings_has(settings, "fetch"))
        return rp_err_set(err, RP_USAGE, "--fetch is for TensorFlow graphs, and '%s' is not one",
                          s.file);
    if (bundle)
        RP_TRY(rp_replay_load_bundle(dataset, bundle, &s, !rp_settings_has(settings, "inputs"),
                                     !rp_settings_has(settings, "expect"),
                                     !rp_settings_has(settings, "fetch"), err));
    return replay_session(ctx, &s, settings, result, err);
}

/* The program in the folder of a SavedModel. */
static bool find_saved_model(const struct rp_dataset *dataset, size_t *at)
{
    size_t n = strlen(dataset->given);

    for (size_t i = 0; dataset->ngiven == 1 && i < rp_dataset_count(dataset); i++) {
        const char *name = rp_dataset_borrow_name(dataset, i), *slash = strrchr(name, '/');

        if (slash && !strcmp(slash + 1, "saved_model.pb") && strlen(name) > n + 1 &&
            !strncmp(name, dataset->given, n) && !strchr(name + n + 1, '/')) {
            *at = i;
            return true;
        }
    }
    return false;
}

/* An option of another action is an error, because it would change nothing. */
static enum rp_code check_options(const char *action, const struct rp_settings *settings,
                                  struct rp_err *err)
{
    static const struct {
        const char *option, *action;
    } only[] = {{"redact", "pack"},   {"rank", "pack"},      {"install", "engines"},
                {"op", "extract"},    {"opcode", "extract"}, {"scope", "extract"},
                {"depth", "extract"}, {"slice", "extract"},  {"unroll", "flatten"},
                {"first", "capture"}, {"every", "capture"},  {"module", "capture"},
                {"bytes", "capture"}, {"slower", "bisect"}};
    const char *engine = rp_settings_text(settings, "engine");

    for (size_t i = 0; i < sizeof only / sizeof *only; i++)
        if (rp_settings_has(settings, only[i].option) && strcmp(action, only[i].action) != 0)
            return rp_err_set(err, RP_USAGE, "--%s is for 'replay %s'", only[i].option,
                              only[i].action);
    if (rp_settings_has(settings, "plugin") && strcmp(engine, "auto") != 0)
        return rp_err_set(err, RP_USAGE, "'plugin' and 'engine' exclude each other");
    return RP_OK;
}

/* ---- the verdict in words ---- */

/* An output that is off is excused if nothing is wrong. An output that was not compared is not
   right. */
static enum rp_code put_verdict(struct rp_replay *root, struct rp_arena *arena, struct rp_err *err)
{
    size_t excused = 0;

    for (size_t i = 0; i < root->noutputs; i++) {
        struct rp_replay_output *o = &root->outputs[i];

        excused += !o->ok;
        if (root->checked)
            o->correct = o->ok                                         ? "yes"
                         : !o->verdict || !strcmp(o->verdict, "wrong") ? "no"
                                                                       : "cannot be compared";
    }
    root->correct = root->ok ? "yes" : "no";
    if (!root->noutputs)
        return RP_OK;
    if (!root->checked) {
        root->correct = root->verdict = "not checked";
    } else if (!root->ok) {
        root->verdict = "wrong";
    } else if (!excused) {
        root->verdict = "right";
    } else if (excused == root->noutputs) {
        root->verdict = "not comparable";
        root->correct = "not known: no output can be compared";
    } else {
        /* "0, 2 and 5 more" */
        const char *text = "";
        size_t n = 0;
        for (size_t i = 0; i < root->noutputs; i++) {
            const struct rp_replay_output *o = &root->outputs[i];

            if (!o->ok && n++ < 5)
                text =
                    rp_arena_textf(arena, "%s%s%lld", text, n > 1 ? ", " : "", (long long)o->index);
        }
        const char *list = n > 5 ? rp_arena_textf(arena, "%s and %zu more", text, n - 5) : text;

        root->verdict =
            rp_arena_textf(arena, "right except for outputs that cannot be compared: %s", list);
        root->correct =
            rp_arena_textf(arena, "yes, %zu of %zu outputs; the others cannot be compared: %s",
                           root->noutputs - excused, root->noutputs, list);
    }
    return rp_arena_check(arena, "judging outputs", err);
}

static const struct rp_type *type_of_action(const char *action);

static enum rp_code replay_answer(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                  const struct rp_settings *settings, struct rp_result *result,
                                  struct rp_err *err)
{
    const char *action = rp_settings_text(settings, "action");
    struct rp_replay *root = result->root;
    size_t manifest;

    root->rank = root->isolated = root->compared_pairs = root->unpaired = root->operations_before =
        root->operations = root->trials = RP_ABSENT_I64;
    RP_TRY(check_options(action, settings, err));
    result->type = type_of_action(action);
    if (!strcmp(action, "engines"))
        return rp_replay_list_engines(settings, result, err);
    if (!strcmp(action, "capture"))
        return rp_err_set(err, RP_USAGE,
                          "'capture' runs a program: it is of the command line only");
    if (!strcmp(action, "import"))
        return rp_replay_import(dataset, settings, result, err);
    if (!strcmp(action, "info") || !strcmp(action, "unpack")) {
        rp_replay_no_times(root);
        return strcmp(action, "info") ? rp_replay_unpack(dataset, settings, result, err)
                                      : rp_replay_bundle_info(dataset, result, err);
    }
    if (rp_settings_has(settings, "program") || rp_settings_has(settings, "data"))
        return run_pair(ctx, dataset, settings, result, err);
    if (!dataset)
        return rp_err_set(err, RP_USAGE, "'replay' needs a program");
    if (!strcmp(action, "extract") && rp_replay_is_recording(dataset)) {
        result->type = type_of_action("operators");
        return rp_replay_operators(dataset, settings, result, err);
    }
    if (rp_replay_is_bundle(dataset, &manifest) && dataset->ngiven == 1) {
        RP_SCOPED(rp_replay_close_bundle) struct rp_opened_bundle o = {0};

        RP_TRY(rp_replay_open_bundle(dataset, manifest, &result->arena, &o, err));
        RP_TRY(rp_replay_check_program(dataset, &o, err));
        return run_source(ctx, dataset, o.program, &o, NULL, settings, result, err);
    }
    if (find_saved_model(dataset, &manifest))
        return run_source(ctx, dataset, manifest, NULL, NULL, settings, result, err);
    if (!strcmp(action, "isolate") && rp_dataset_count(dataset) == 2 && dataset->ngiven == 2) {
        /* Compares two programs, the first of which defines the inputs. */
        RP_SCOPED(rp_import_release) struct rp_import other = {0};

        RP_TRY(rp_load_program(dataset, 1, &other, err));
        if (!other.program)
            return rp_err_set(err, RP_USAGE, "'%s' is not a program",
                              rp_dataset_borrow_name(dataset, 1));
        return run_source(ctx, dataset, 0, NULL, other.program, settings, result, err);
    }
    if (rp_dataset_count(dataset) != 1)
        return rp_err_set(err, RP_USAGE, "'replay' runs one program, not %zu files",
                          rp_dataset_count(dataset));
    return run_source(ctx, dataset, 0, NULL, NULL, settings, result, err);
}

static enum rp_code replay_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                               const struct rp_settings *settings, struct rp_result *result,
                               struct rp_err *err)
{
    RP_TRY(replay_answer(ctx, dataset, settings, result, err));
    return put_verdict(result->root, &result->arena, err);
}

/* ---- the row ---- */

static const struct rp_field times_fields[] = {
    RP_FIELD(struct rp_replay_times, min, I64, NS, "fastest", "the shortest run", RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, p50, I64, NS, "median", "half of the runs took less",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, p50_low, I64, NS, "  from",
             "lower bound of the median, at 95 % confidence", RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, p50_high, I64, NS, "  to",
             "upper bound of the median, at 95 % confidence", RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, p90, I64, NS, "90 %", "nine of ten runs took less",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, p99, I64, NS, "99 %", "99 of 100 runs took less", RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, max, I64, NS, "slowest", "the longest run", RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, mean, I64, NS, "mean", "mean of the runs", RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, n, I64, COUNT, "runs", "number of measured runs", RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, warmups, I64, COUNT, "warm-up", "number of warm-up runs",
             RP_NULLABLE),
    RP_FIELD_LIST(struct rp_replay_times, blocks, &rp_type_int, NULL,
                  "low times of consecutive runs", 0),
    RP_FIELD(struct rp_replay_times, machine, I64, NS, NULL,
             "times of a fixed piece of work between runs", RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, waited_ratio, F64, RATIO, "waited",
             "time that threads waited for a processor, relative to the time of the runs",
             RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type times_type = {"run", sizeof(struct rp_replay_times), times_fields,
                                          NULL};

static const struct rp_field worst_fields[] = {
    RP_FIELD(struct rp_replay_worst, index, STR, NONE, "element", "its index", 0),
    RP_FIELD(struct rp_replay_worst, got, F64, NONE, "got", "value from this engine", 0),
    RP_FIELD(struct rp_replay_worst, want, F64, NONE, "want", "expected value", 0), RP_FIELD_END};
static const struct rp_type worst_type = {"worst", sizeof(struct rp_replay_worst), worst_fields,
                                          NULL};

static const struct rp_field output_fields[] = {
    RP_FIELD(struct rp_replay_output, index, I64, NONE, "output", "its number", 0),
    RP_FIELD(struct rp_replay_output, dtype, STR, NONE, "type", "type of its elements", 0),
    RP_FIELD_LIST(struct rp_replay_output, shape, &rp_type_int, NULL, "its dimensions", 0),
    RP_FIELD(struct rp_replay_output, shown, STR, NONE, "shape", "its dimensions", RP_SCREEN),
    RP_FIELD(struct rp_replay_output, ok, BOOL, NONE, NULL, "within the tolerance", 0),
    RP_FIELD(struct rp_replay_output, correct, STR, NONE, "correct", "within the tolerance",
             RP_SCREEN),
    RP_FIELD(struct rp_replay_output, max_abs, F64, NONE, "largest difference",
             "difference of an element from the expected value", 0),
    RP_FIELD(struct rp_replay_output, max_rel, F64, NONE, "relative",
             "the largest difference over the expected value", 0),
    RP_FIELD(struct rp_replay_output, wrong, I64, COUNT, "wrong", "elements over the tolerance",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay_output, elements, I64, COUNT, "of", "elements", 0),
    RP_FIELD(struct rp_replay_output, reason, STR, NONE, NULL, "why it could not be compared", 0),
    RP_FIELD(struct rp_replay_output, verdict, STR, NONE, NULL,
             "right, wrong, or why neither can be said", 0),
    RP_FIELD_LIST(struct rp_replay_output, worst, &worst_type, NULL, "the worst elements", 0),
    RP_FIELD_END};
static const struct rp_type output_type = {"output", sizeof(struct rp_replay_output), output_fields,
                                           NULL};

static const struct rp_field op_fields[] = {
    RP_FIELD(struct rp_replay_op, name, STR, NONE, "instruction", "its name", RP_SHORTEN),
    RP_FIELD(struct rp_replay_op, opcode, STR, NONE, "opcode", "operation", 0),
    RP_FIELD(struct rp_replay_op, calls, I64, COUNT, "calls", "number of executions", 0),
    RP_FIELD(struct rp_replay_op, total_ns, I64, NS, "time",
             "sum over all runs, called computations included", 0),
    RP_FIELD(struct rp_replay_op, share, F64, RATIO, "of all", "share of the time of all runs", 0),
    RP_FIELD_END};
static const struct rp_type op_type = {"instruction", sizeof(struct rp_replay_op), op_fields, NULL};

static const struct rp_field engine_fields[] = {
    RP_FIELD(struct rp_replay_engine, name, STR, NONE, "engine", "what --engine takes", 0),
    RP_FIELD(struct rp_replay_engine, present, BOOL, NONE, "available", "whether it can run", 0),
    RP_FIELD(struct rp_replay_engine, found, STR, NONE, "found",
             "what was found and where, or why it cannot be used", 0),
    RP_FIELD(struct rp_replay_engine, summary, STR, NONE, "what it is", "one-line summary",
             RP_SHORTEN),
    RP_FIELD(struct rp_replay_engine, get, STR, NONE, "how to get it",
             "how to get it if it is missing", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type engine_type = {"engine", sizeof(struct rp_replay_engine), engine_fields,
                                           NULL};

static const struct rp_field file_fields[] = {
    RP_FIELD(struct rp_replay_file, path, STR, NONE, "member", "path in the tar file", RP_SHORTEN),
    RP_FIELD(struct rp_replay_file, holds, STR, NONE, "holds",
             "the program, or the arrays that use it", 0),
    RP_FIELD(struct rp_replay_file, type, STR, NONE, "type", "type of the arrays", 0),
    RP_FIELD(struct rp_replay_file, bytes, I64, BYTES, "size", "bytes", 0),
    RP_FIELD(struct rp_replay_file, sha256, STR, NONE, NULL, "SHA-256 in the manifest", 0),
    RP_FIELD(struct rp_replay_file, ok, BOOL, NONE, "intact",
             "size and checksum match the manifest", 0),
    RP_FIELD_END};
static const struct rp_type file_type = {"file", sizeof(struct rp_replay_file), file_fields, NULL};

static const struct rp_field compared_fields[] = {
    RP_FIELD(struct rp_replay_compared, with, STR, NONE, "with", "the earlier result", RP_SHORTEN),
    RP_FIELD(struct rp_replay_compared, engine, STR, NONE, "on", "the engine it was measured on",
             0),
    RP_FIELD(struct rp_replay_compared, p50_ns, I64, NS, "earlier median",
             "median of the earlier runs", 0),
    RP_FIELD(struct rp_replay_compared, n, I64, COUNT, "earlier runs", "number of earlier runs", 0),
    RP_FIELD(struct rp_replay_compared, change_ratio, F64, RATIO, "change",
             "low times of the runs relative to the earlier ones, minus one", 0),
    RP_FIELD(struct rp_replay_compared, machine_ratio, F64, RATIO, "machine",
             "time of a fixed piece of work relative to the earlier one, minus one", RP_NULLABLE),
    RP_FIELD(struct rp_replay_compared, noise_ratio, F64, RATIO, "noise",
             "smaller changes do not count: scatter of the runs and load of the machine", 0),
    RP_FIELD(struct rp_replay_compared, p_value, F64, NONE, "p",
             "probability of such a difference by chance", 0),
    RP_FIELD(struct rp_replay_compared, verdict, STR, NONE, "verdict",
             "faster or slower where p is below 0.02 and the change above the noise", 0),
    RP_FIELD_END};
static const struct rp_type compared_type = {"compared", sizeof(struct rp_replay_compared),
                                             compared_fields, NULL};

static const struct rp_field divergence_fields[] = {
    RP_FIELD(struct rp_replay_divergence, name, STR, NONE, "operation", "its name", RP_SHORTEN),
    RP_FIELD(struct rp_replay_divergence, opcode, STR, NONE, "opcode", "what it does", 0),
    RP_FIELD(struct rp_replay_divergence, verdict, STR, NONE, "verdict",
             "differs, amplifies rounding, fails or not supported; of bisect: left; of two "
             "programs: differs, agrees, no counterpart or in doubt",
             0),
    RP_FIELD(struct rp_replay_divergence, source, STR, NONE, "source", "line of the user's program",
             RP_SHORTEN),
    RP_FIELD(struct rp_replay_divergence, other, STR, NONE, "counterpart",
             "with two programs: the operation of the other program", RP_SHORTEN),
    RP_FIELD(struct rp_replay_divergence, other_opcode, STR, NONE, "its opcode", "what that does",
             RP_WIDE),
    RP_FIELD(struct rp_replay_divergence, other_source, STR, NONE, "its source", "and its line",
             RP_SHORTEN),
    RP_FIELD(struct rp_replay_divergence, inside, STR, NONE, "inside",
             "the operation that calls its computation", RP_SHORTEN),
    RP_FIELD(struct rp_replay_divergence, iteration, I64, COUNT, "iteration",
             "iteration of the loop that it is in, from 0", RP_NULLABLE),
    RP_FIELD(struct rp_replay_divergence, max_abs, F64, NONE, "difference",
             "the largest of an element from its value on ref or in the first program", 0),
    RP_FIELD(struct rp_replay_divergence, max_rel, F64, NONE, "relative",
             "the largest difference over that value", RP_WIDE),
    RP_FIELD(struct rp_replay_divergence, wrong, I64, COUNT, "wrong", "elements over the tolerance",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay_divergence, elements, I64, COUNT, "of", "elements", RP_NULLABLE),
    RP_FIELD(struct rp_replay_divergence, scope, STR, NONE, NULL, "scope path of the operation", 0),
    RP_FIELD(struct rp_replay_divergence, message, STR, NONE, NULL, "what the engine said", 0),
    RP_FIELD_END};
static const struct rp_type divergence_type = {"divergence", sizeof(struct rp_replay_divergence),
                                               divergence_fields, NULL};

static const struct rp_field imported_fields[] = {
    RP_FIELD(struct rp_replay_imported, module, STR, NONE, "module", "its name", RP_SHORTEN),
    RP_FIELD(struct rp_replay_imported, ok, BOOL, NONE, "imported", "whether a bundle was written",
             0),
    RP_FIELD(struct rp_replay_imported, inputs, STR, NONE, "inputs", "their source", RP_SHORTEN),
    RP_FIELD(struct rp_replay_imported, bundle, STR, NONE, "bundle", "the file that was written",
             RP_SHORTEN),
    RP_FIELD(struct rp_replay_imported, from, STR, NONE, "from", "what it was made of", RP_SHORTEN),
    RP_FIELD(struct rp_replay_imported, message, STR, NONE, "why not", "what was wrong",
             RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type imported_type = {"imported", sizeof(struct rp_replay_imported),
                                             imported_fields, NULL};

static const struct rp_field operator_fields[] = {
    RP_FIELD(struct rp_replay_operator, name, STR, NONE, "operator", "its name", RP_SHORTEN),
    RP_FIELD(struct rp_replay_operator, shapes, STR, NONE, "shapes", "shapes of its inputs",
             RP_SHORTEN),
    RP_FIELD(struct rp_replay_operator, calls, I64, COUNT, "calls", "that were recorded", 0),
    RP_FIELD(struct rp_replay_operator, time_ns, I64, NS, "median",
             "time of the device work that a call starts; without a device, time of the call", 0),
    RP_FIELD(struct rp_replay_operator, file, STR, NONE, "script", "that runs it alone", 0),
    RP_FIELD_END};
static const struct rp_type operator_type = {"operator", sizeof(struct rp_replay_operator),
                                             operator_fields, NULL};

static const struct rp_field replay_fields[] = {
    RP_FIELD(struct rp_replay, program, STR, NONE, "program", "the file", RP_SHORTEN),
    RP_FIELD(struct rp_replay, format, STR, NONE, "format", "what was read", 0),
    RP_FIELD(struct rp_replay, bundle, STR, NONE, "bundle", "the bundle that was written", 0),
    RP_FIELD(struct rp_replay, packed_by, STR, NONE, "packed by", "version of reprise", 0),
    RP_FIELD(struct rp_replay, flags, STR, NONE, "flags", "XLA_FLAGS where it was packed",
             RP_SHORTEN),
    RP_FIELD(struct rp_replay, rank, I64, NONE, "rank", "the rank it was captured on", RP_NULLABLE),
    RP_FIELD(struct rp_replay, engine, STR, NONE, "engine", "the engine that ran it", 0),
    RP_FIELD(struct rp_replay, choice, STR, NONE, "because", "why this engine was chosen", 0),
    RP_FIELD(struct rp_replay, inputs, STR, NONE, "inputs", "their source", RP_SHORTEN),
    RP_FIELD(struct rp_replay, partitions, I64, COUNT, "partitions", "number of partitions",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay, compile_ns, I64, NS, "compile", "time to compile", RP_NULLABLE),
    RP_FIELD(struct rp_replay, upload_ns, I64, NS, "upload", "time to send the inputs",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay, first_ns, I64, NS, "first run", "the first run, before any warm-up",
             RP_NULLABLE),
    RP_FIELD_RECORD(struct rp_replay, run_ns, &times_type, "runs", "times of the measured runs", 0),
    RP_FIELD(struct rp_replay, checked, STR, NONE, "checked against",
             "source of the expected outputs", RP_SHORTEN),
    RP_FIELD(struct rp_replay, isolated, I64, COUNT, "operations run alone",
             "with 'isolate': number of operations that ran alone on real values", RP_NULLABLE),
    RP_FIELD(struct rp_replay, compared_pairs, I64, COUNT, "operations compared",
             "with 'isolate' and two programs: number of pairs whose values were compared",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay, unpaired, I64, COUNT, "without counterpart",
             "with 'isolate' and two programs: number of operations that were skipped",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay, first, STR, NONE, "first to diverge",
             "with 'isolate': the first operation that differs", 0),
    RP_FIELD(struct rp_replay, first_source, STR, NONE, "made at",
             "with 'isolate': the line of that operation in the user's program", RP_SHORTEN),
    RP_FIELD(struct rp_replay, counterpart, STR, NONE, "counterpart",
             "with 'isolate' and two programs: the operation of the other program", 0),
    RP_FIELD(struct rp_replay, counterpart_source, STR, NONE, "its line",
             "and its line in the user's program", RP_SHORTEN),
    RP_FIELD(struct rp_replay, complaint, STR, NONE, "complaint",
             "with 'bisect': what the part shows on the engine", 0),
    RP_FIELD(struct rp_replay, operations_before, I64, COUNT, "operations before",
             "with 'bisect', 'extract' and 'flatten': operations of the whole program",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay, operations, I64, COUNT, "operations",
             "operations of what was written", RP_NULLABLE),
    RP_FIELD(struct rp_replay, trials, I64, COUNT, "trials",
             "with 'bisect': number of parts that were run", RP_NULLABLE),
    RP_FIELD(struct rp_replay, written, STR, NONE, "written", "the program that was written",
             RP_SHORTEN),
    RP_FIELD(struct rp_replay, ok, BOOL, NONE, NULL, "true if no output is wrong", 0),
    RP_FIELD(struct rp_replay, verdict, STR, NONE, NULL,
             "right, wrong, not checked, not comparable, or which outputs are right", 0),
    RP_FIELD(struct rp_replay, correct, STR, NONE, "correct", "the verdict", RP_SCREEN),
    RP_FIELD_LIST(struct rp_replay, outputs, &output_type, "outputs", "outputs of the program", 0),
    RP_FIELD_LIST(struct rp_replay, instructions, &op_type, "instructions",
                  "times of instructions, with --profile", 0),
    RP_FIELD_LIST(struct rp_replay, engines, &engine_type, "engines",
                  "with 'engines': what can run programs on this machine", 0),
    RP_FIELD_LIST(struct rp_replay, compared, &compared_type, "compared",
                  "with --compare: an earlier result", 0),
    RP_FIELD_LIST(struct rp_replay, divergences, &divergence_type, "operations",
                  "with 'isolate' those that differ, with 'bisect' those that are left", 0),
    RP_FIELD_LIST(struct rp_replay, imported, &imported_type, "imported",
                  "with 'import': bundles that were written", 0),
    RP_FIELD_LIST(struct rp_replay, operators, &operator_type, "operators",
                  "with 'extract' and a trace: scripts that were written", 0),
    RP_FIELD_LIST(struct rp_replay, files, &file_type, "files", "members of the bundle", 0),
    RP_FIELD_LIST(struct rp_replay, warnings, &rp_type_string, "warnings",
                  "limits of the measurement", RP_WARN),
    RP_FIELD_END};
static const struct rp_type replay_type = {"replay", sizeof(struct rp_replay), replay_fields,
                                           "outputs"};

/* The record is the same, but CSV has the list that the action is about. */
static const struct rp_type *type_of_action(const char *action)
{
#define OF(rows)                                                \
    {                                                           \
        "replay", sizeof(struct rp_replay), replay_fields, rows \
    }
    static const struct {
        const char *action;
        struct rp_type type;
    } others[] = {{"isolate", OF("divergences")}, {"bisect", OF("divergences")},
                  {"operators", OF("operators")}, {"import", OF("imported")},
                  {"engines", OF("engines")},     {"pack", OF("files")},
                  {"unpack", OF("files")},        {"info", OF("files")}};
#undef OF

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(action, others[i].action))
            return &others[i].type;
    return &replay_type;
}

static const struct rp_option options[] = {
    {"action", 0, RP_OPT_CHOICE,
     "run|capture|import|isolate|bisect|extract|flatten|pack|unpack|info|engines", "run",
     "what to do", RP_OPT_WORDS},
    {"plugin", 0, RP_OPT_PATH, "FILE", NULL, "a PJRT plugin: the engine pjrt:FILE", RP_OPT_WORDS},
    {"engine", 'e', RP_OPT_TEXT, "NAME", "auto",
     "the engine to run it; 'replay engines' lists them", 0},
    {"program", 'p', RP_OPT_PATH, "FILE", NULL, "the .input file of a BladeDISC pair", 0},
    {"data", 'd', RP_OPT_PATH, "FILE", NULL, "the .tar file of a BladeDISC pair", 0},
    {"fetch", 0, RP_OPT_TEXT, "TENSOR", NULL, "output of a TensorFlow graph, such as 'loss:0'",
     RP_OPT_REPEAT},
    {"inputs", 'i', RP_OPT_PATH, "FILE", NULL, "arrays in0, in1 ... in an .npz, or one .npy", 0},
    {"refine", 0, RP_OPT_TEXT, "SHAPES", NULL,
     "shapes of inputs whose dimensions are not known, such as in0=8x128,in1=128", 0},
    {"seed", 0, RP_OPT_INT, "N", "0", "seed of synthetic inputs", 0},
    {"expect", 0, RP_OPT_PATH, "FILE", NULL, "expected outputs: arrays out0, out1 ...", 0},
    {"check", 0, RP_OPT_TEXT, "HOW", NULL,
     "compare outputs with 'expected' or 'engine:NAME', or 'none'", 0},
    {"atol", 0, RP_OPT_TEXT, "X", NULL, "absolute tolerance (default: by type)", 0},
    {"rtol", 0, RP_OPT_TEXT, "X", NULL, "relative tolerance (default: by type)", 0},
    {"ulp", 0, RP_OPT_INT, "N", NULL, "tolerance in units in the last place", 0},
    {"nan-differs", 0, RP_OPT_FLAG, NULL, NULL, "count NaN as wrong even where NaN is expected", 0},
    {"save", 0, RP_OPT_PATH, "FILE", NULL,
     "file for the outputs (.npz); for 'pack', 'bisect' and 'extract' a bundle (.tar), program or script; "
     "for 'unpack', 'import' and 'capture' a folder",
     0},
    {"op", 0, RP_OPT_TEXT, "NAME", NULL,
     "with 'extract': operations of that name; * and ? match; of a trace NAME#SHAPES",
     RP_OPT_REPEAT},
    {"opcode", 0, RP_OPT_TEXT, "CODE", NULL, "with 'extract': operations such as 'dot'", 0},
    {"scope", 0, RP_OPT_TEXT, "PATTERN", NULL,
     "with 'extract': operations by scope path (op_name), such as '*/layer_3/*'", 0},
    {"slice", 0, RP_OPT_CHOICE, "only|backward|forward|both", "only",
     "with 'extract': also include what they depend on (backward) or what depends on them (forward)",
     0},
    {"depth", 0, RP_OPT_COUNT, "N", NULL, "with --slice: at most N operations away", 0},
    {"unroll", 0, RP_OPT_COUNT, "N", "0",
     "with 'flatten': replace loops by N copies of their bodies; 0: keep them", 0},
    {"slower", 0, RP_OPT_DURATION, "T", "0s",
     "with 'bisect': look for what takes at least this long, not for what is wrong; with 'capture': keep the next execution of what took this long",
     0},
    {"first", 0, RP_OPT_COUNT, "N", "1",
     "with 'capture': keep the first N executions of each module", 0},
    {"every", 0, RP_OPT_COUNT, "N", "0", "with 'capture': keep every Nth execution; 0: none", 0},
    {"module", 0, RP_OPT_TEXT, "NAME", NULL,
     "with 'capture': only modules of that name, such as 'jit_step'; * and ? match", 0},
    {"bytes", 0, RP_OPT_BYTES, "SIZE", "4GiB", "with 'capture': keep at most this much data", 0},
    {"redact", 0, RP_OPT_FLAG, NULL, NULL,
     "with 'pack': omit the values of inputs, outputs and large constants", 0},
    {"rank", 0, RP_OPT_INT, "N", NULL, "with 'pack': the rank it was captured on", 0},
    {"iters", 'n', RP_OPT_COUNT, "N", "0", "number of measured runs; 0: as many as --time allows",
     0},
    {"time", 0, RP_OPT_DURATION, "T", "1s", "time for the measured runs", 0},
    {"warmup", 0, RP_OPT_COUNT, "N", NULL, "warm-up runs (default: until times are stable)", 0},
    {"cold", 0, RP_OPT_FLAG, NULL, NULL, "empty the caches before each run", 0},
    {"profile", 0, RP_OPT_COUNT, "N", NULL, "also show the N instructions that take longest", 0},
    {"trace", 0, RP_OPT_PATH, "FILE", NULL,
     "also write some more runs as a trace: .rpt, .json or .json.gz", 0},
    {"compare", 0, RP_OPT_PATH, "FILE", NULL, "compare with the --json output of an earlier replay",
     0},
    {"wait-attach", 0, RP_OPT_FLAG, NULL, NULL,
     "print the process id and wait for a debugger or profiler", 0},
    {"partitions", 0, RP_OPT_INT, "0..4096", "0", "number of partitions; 0: as in the program", 0},
    {"plugin-option", 0, RP_OPT_TEXT, "NAME=VALUE", NULL,
     "option for the plugin's client, such as memory_fraction=0.5", RP_OPT_REPEAT},
    {"xla-flag", 0, RP_OPT_TEXT, "NAME=VALUE", NULL,
     "flag for the plugin's compiler, such as xla_dump_to=/tmp/x", RP_OPT_REPEAT},
    {"compile-options", 0, RP_OPT_PATH, "FILE", NULL,
     "compile with the options of a compile_options.pb, without its flags", 0},
    {"keep-flags", 0, RP_OPT_FLAG, NULL, NULL, "with --compile-options: keep its flags", 0},
    {"timeout", 0, RP_OPT_DURATION, "T", "0s",
     "give up on a run that takes longer, or a child process that does not answer; 0: never", 0},
    {"in-process", 0, RP_OPT_FLAG, NULL, NULL,
     "load an engine's library into this process, not into a child", 0},
    {"install", 0, RP_OPT_FLAG, NULL, NULL,
     "with 'engines': install --package from PyPI into reprise's own folder", 0},
    {"products", 0, RP_OPT_CHOICE, "auto|f32|tf32", "auto",
     "precision of f32 products in ref and fast; auto: tf32 if compiled for a GPU; f32: also "
     "those of --expect",
     0},
    {"like", 0, RP_OPT_CHOICE, "specification|xla", "specification",
     "ref and fast compute like XLA's CPU compiler also where that leaves the specification", 0},
    {"package", 0, RP_OPT_CHOICE, "xla-cpu-pjrt|tensorflow-cpu", "xla-cpu-pjrt",
     "the package to --install", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_replay = {
    .question = {.name = "replay",
                 .group = "programs",
                 .summary = "run a captured program alone, timed and checked",
                 .details =
                     "Runs HLO as text or protobuf, before or after optimization, XLA snapshots, "
                     "StableHLO and TensorFlow graphs. Inputs are recorded in the file, given as "
                     ".npz, or synthetic. Compiling, uploading, the first run and steady runs are "
                     "timed separately. Exit status 1: an output is wrong.",
                 .examples =
                     "reprise replay module.hlo_unoptimized_snapshot.pb\twith its recorded "
                     "inputs\n"
                     "reprise replay module.txt --inputs io.npz --expect io.npz\tand check\n"
                     "reprise replay module.txt --check engine:ref\tcompare two engines\n"
                     "reprise replay module.txt --profile 10\twhere the time goes\n"
                     "reprise replay isolate before.txt after.txt\twhere two programs differ\n"
                     "reprise replay extract trace.json.gz --op aten::mm --save op.py\ta recorded "
                     "operator, alone\n"
                     "reprise replay engines\twhat can run programs here\n",
                 .accepts = RP_ACCEPTS_TRACES | RP_ACCEPTS_PROGRAMS | RP_ACCEPTS_NONE_TOO,
                 .options = options,
                 .type = &replay_type},
    .run = replay_run};
