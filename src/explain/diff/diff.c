/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `diff`: what changed between two programs, or two runs. The contents of the inputs decide which:
 * only their first bytes are read for that. Both runs are read together, rank by rank.
 */
#include "explain/diff/diff.h"

#include "dataset/question.h"
#include "draw/web.h"
#include "explain/memory/compare.h"
#include "explain/program_diff/program_diff.h"
#include "explain/roofline/programs.h"

#include <stdlib.h>
#include <string.h>

extern const struct rp_question_row rp_ask_diff;

/* ------------------------------------------------------------------ what is shown of traces */

#define RUN(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_trace_diff_run, member, type, unit, title, doc, flags)

static const struct rp_field run_fields[] = {
    RUN(path, STR, NONE, NULL, "its file, or the folder of its ranks", 0),
    RUN(device, STR, NONE, NULL, "the first device", 0),
    RUN(framework, STR, NONE, NULL, "name of the recorder", 0),
    RUN(ranks, I64, COUNT, NULL, "ranks that it has", 0),
    RUN(steps, I64, COUNT, NULL, "steps that were found, on its first rank that is compared", 0),
    RUN(typical_steps, I64, COUNT, NULL,
        "steps in the middle half by length, of which the operators are shown", 0),
    RUN(step_ns, I64, NS, NULL, "step time: the median; without steps the whole recording", 0),
    RUN(spread_ns, I64, NS, NULL, "standard deviation of a step, without outliers", RP_NULLABLE),
    RUN(work_ns, I64, NS, NULL, "sum of the durations of all work in a step", 0),
    RUN(host_ns, I64, NS, NULL, "sum of the durations of the host spans in a step that launch it",
        0),
    RUN(unprofiled_ns, I64, NS, NULL,
        "step without the profiler, as simulated; null: not known, or as recorded in both runs",
        RP_NULLABLE),
    RUN(unprofiled_low_ns, I64, NS, NULL, "lower end of its interval", RP_NULLABLE),
    RUN(unprofiled_high_ns, I64, NS, NULL, "upper end of its interval", RP_NULLABLE),
    RUN(clock_mhz, F64, NONE, NULL,
        "median clock of its first device in the steps; null: not recorded", 0),
    RP_FIELD_END};
static const struct rp_type run_type = {"run", sizeof(struct rp_trace_diff_run), run_fields, NULL};

#define SHARE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_trace_diff_share, member, type, unit, title, doc, flags)

static const struct rp_field share_fields[] = {
    SHARE(part, STR, NONE, NULL, "the kind of time", 0),
    SHARE(word, STR, NONE, "part", "text output only", RP_SCREEN),
    SHARE(base_ns, I64, NS, "base", "time in a step of the base", 0),
    SHARE(new_ns, I64, NS, "new", "time in a step of the new run", 0),
    SHARE(delta_ns, I64, NS, "delta", "new - base", 0),
    SHARE(share, F64, RATIO, "of delta",
          "share of the change of the step; null where that change is noise", 0),
    RP_FIELD_END};
static const struct rp_type share_type = {"part", sizeof(struct rp_trace_diff_share), share_fields,
                                          NULL};

static const struct rp_field cause_fields[] = {
    RP_FIELD_AS("cause", struct rp_trace_diff_share, part, STR, NONE, "cause",
                "why the device was idle, as in 'idle'; 'outside': before or after all device work",
                0),
    SHARE(base_ns, I64, NS, "base", "time in a step of the base", 0),
    SHARE(new_ns, I64, NS, "new", "time in a step of the new run", 0),
    SHARE(delta_ns, I64, NS, "delta", "new - base", 0),
    SHARE(share, F64, RATIO, "of delta",
          "share of the change of the step; null where that change is noise", 0),
    SHARE(host, STR, NONE, "on the host",
          "what the host ran in a quarter of it or more, in the run that has more", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type cause_type = {"cause", sizeof(struct rp_trace_diff_share), cause_fields,
                                          NULL};

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_trace_diff_rank, member, type, unit, title, doc, flags)

static const struct rp_field rank_fields[] = {
    RANK(rank, I64, NONE, "rank", "its number in the base", 0),
    RANK(new_rank, I64, NONE, NULL, "its number in the new run", 0),
    RANK(base_ns, I64, NS, "base", "its step in the base", 0),
    RANK(new_ns, I64, NS, "new", "its step in the new run", 0),
    RANK(delta_ns, I64, NS, "delta", "new - base", 0),
    RANK(compute_delta_ns, I64, NS, "compute", "the part of it that is compute", 0),
    RANK(exposed_comm_delta_ns, I64, NS, "exposed comm",
         "the part of it that is exposed communication", 0),
    RANK(exposed_memory_delta_ns, I64, NS, "copies", "the part of it that is exposed copies",
         RP_WIDE),
    RANK(idle_delta_ns, I64, NS, "idle", "the part of it that is idle", 0),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_trace_diff_rank), rank_fields,
                                         NULL};

#define RULE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_trace_diff_rule, member, type, unit, title, doc, flags)

static const struct rp_field rule_fields[] = {
    RULE(rule, STR, NONE, NULL, "how operators were found to be the same", 0),
    RULE(base_ns, I64, NS, NULL, "time of a step of the base to which it applies", 0),
    RULE(new_ns, I64, NS, NULL, "the same of the new run", 0),
    RULE(share, F64, RATIO, NULL, "share of the time of both", 0), RP_FIELD_END};
static const struct rp_type rule_type = {"rule", sizeof(struct rp_trace_diff_rule), rule_fields,
                                         NULL};

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_trace_diff_row, member, type, unit, title, doc, flags)

#define CALL(member, title, doc) \
    RP_FIELD(struct rp_trace_diff_call, member, I64, NS, title, doc, RP_NULLABLE | RP_WIDE)
static const struct rp_field call_fields[] = {CALL(min_ns, "min", "the shortest"),
                                              CALL(p50_ns, "median", "the median"),
                                              CALL(max_ns, "max", "the longest"), RP_FIELD_END};
static const struct rp_type call_type = {"call", sizeof(struct rp_trace_diff_call), call_fields,
                                         NULL};

static const struct rp_field row_fields[] = {
    ROW(label, STR, NONE, "operator", "name and shape", RP_SCREEN | RP_SHORTEN),
    ROW(what, STR, NONE, NULL, "operator, range or kernel; 'a -> b' where the name differs", 0),
    ROW(shape, STR, NONE, NULL, "shape of its inputs, where recorded", 0),
    ROW(change, STR, NONE, "change",
        "added, removed, replaced, shape, kernel, calls, slower, faster, noise or same", 0),
    ROW(rule, STR, NONE, NULL, "how it was aligned: tree, name and shape, name, kernel, none", 0),
    ROW(places, I64, COUNT, NULL, "places of the call tree", 0),
    ROW(counts, STR, NONE, "calls", "text output only", RP_SCREEN),
    ROW(base_count, I64, COUNT, NULL, "calls in a step of the base", 0),
    ROW(new_count, I64, COUNT, NULL, "calls in a step of the new run", 0),
    ROW(base_works, I64, COUNT, NULL, "kernels, copies and memsets in a step of the base", 0),
    ROW(new_works, I64, COUNT, NULL, "kernels, copies and memsets in a step of the new run", 0),
    ROW(base_ns, I64, NS, "base", "its time in a step of the base", 0),
    ROW(new_ns, I64, NS, "new", "its time in a step of the new run", 0),
    ROW(delta_ns, I64, NS, "delta", "new - base", 0),
    ROW(noise_ns, I64, NS, "noise", "changes up to this are noise; null: too few steps",
        RP_NULLABLE | RP_WIDE),
    ROW(share, F64, RATIO, "of delta",
        "share of the change of the step; null where that change is noise", RP_WIDE),
    ROW(base_host_ns, I64, NS, NULL,
        "its calls on the host in a step of the base, without operators inside", 0),
    ROW(new_host_ns, I64, NS, NULL, "the same in the new run", 0),
    ROW(host_delta_ns, I64, NS, "host delta", "new - base", RP_WIDE),
    RP_FIELD_RECORD(struct rp_trace_diff_row, base_call, &call_type, "base", "a call in the base",
                    0),
    RP_FIELD_RECORD(struct rp_trace_diff_row, new_call, &call_type, "new", "a call in the new run",
                    0),
    RP_FIELD_LIST(struct rp_trace_diff_row, base_kernels, &rp_type_string, NULL,
                  "its kernels in the base, the first eight", 0),
    RP_FIELD_LIST(struct rp_trace_diff_row, new_kernels, &rp_type_string, NULL,
                  "its kernels in the new run, the first eight", 0),
    ROW(place, STR, NONE, NULL, "spans around it where it changed most", 0),
    ROW(source, STR, NONE, NULL, "line of the user's Python there, where recorded", 0),
    RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct rp_trace_diff_row), row_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_trace_diff_root, member, type, unit, title, doc, flags)
#define LIST(member, item, title, doc, flags) \
    RP_FIELD_LIST(struct rp_trace_diff_root, member, item, title, doc, flags)

#define PHASE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_trace_diff_phase, member, type, unit, title, doc, flags)

static const struct rp_field phase_fields[] = {
    PHASE(phase, STR, NONE, "phase", "prefill, decode or mixed", 0),
    PHASE(base_steps, I64, COUNT, "base steps", "how many steps of the base", 0),
    PHASE(new_steps, I64, COUNT, "new steps", "how many steps of the new run", 0),
    PHASE(base_ns, I64, NS, "base", "median step in the base", RP_NULLABLE),
    PHASE(new_ns, I64, NS, "new", "median step in the new run", RP_NULLABLE),
    PHASE(delta_ns, I64, NS, "delta", "the change", RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type phase_type = {"phase", sizeof(struct rp_trace_diff_phase), phase_fields,
                                          NULL};

static const struct rp_field root_fields[] = {
    ROOT(verdict_text, STR, NONE, "new run", "text output only", RP_SCREEN),
    ROOT(mainly_text, STR, NONE, "mainly", "text output only", RP_SCREEN),
    RP_FIELD_AS("base_text", struct rp_trace_diff_root, base.text, STR, NONE, "base step",
                "text output only", RP_SCREEN),
    RP_FIELD_AS("new_text", struct rp_trace_diff_root, new_run.text, STR, NONE, "new step",
                "text output only", RP_SCREEN),
    ROOT(profiler_text, STR, NONE, "profiler", "text output only", RP_SCREEN),
    ROOT(clock_text, STR, NONE, "clock", "text output only", RP_SCREEN),
    ROOT(aligned_text, STR, NONE, "aligned", "text output only", RP_SCREEN),
    ROOT(inputs, STR, NONE, NULL, "traces", 0),
    ROOT(verdict, STR, NONE, NULL, "slower, faster, within the noise, same or not comparable", 0),
    ROOT(comparable, BOOL, NONE, NULL,
         "whether at least half of the time of each run has a counterpart in the other", 0),
    ROOT(changed, BOOL, NONE, NULL, "whether the step is slower or faster beyond the noise", 0),
    ROOT(delta_ns, I64, NS, NULL, "step of the new run - step of the base", 0),
    ROOT(delta_share, F64, RATIO, NULL, "share of the base's step", 0),
    ROOT(noise_ns, I64, NS, NULL, "changes up to this are noise; null: too few steps", RP_NULLABLE),
    ROOT(unprofiled_verdict, STR, NONE, NULL,
         "the verdict about the steps without the profiler; null where they are not known", 0),
    ROOT(unprofiled_delta_ns, I64, NS, NULL, "the difference of those steps", RP_NULLABLE),
    ROOT(threshold_ns, I64, NS, NULL, "the argument of --fail-over", RP_NULLABLE),
    ROOT(failed, BOOL, NONE, NULL, "slower than --fail-over allows", 0),
    ROOT(measure, STR, NONE, NULL, "device time, or host time where no device work was recorded",
         0),
    RP_FIELD_RECORD(struct rp_trace_diff_root, base, &run_type, NULL, "the first run", 0),
    RP_FIELD_("new", NULL, RP_T_RECORD, RP_UNIT_NONE, 0,
              offsetof(struct rp_trace_diff_root, new_run), 0, &run_type, "the second run"),
    LIST(parts, &share_type, "where the step changed", "they add up to the step", 0),
    LIST(idle_causes, &cause_type, "idle by cause", "they add up to idle", 0),
    LIST(phases, &phase_type, "phase by phase", "median steps of a server", 0),
    LIST(ranks, &rank_type, NULL, "largest change of its own first", 0),
    LIST(rank_rows, &rank_type, "ranks, largest change of their own first", "text output only",
         RP_SCREEN),
    LIST(coverage, &rule_type, NULL, "time by the rule that aligned it", 0),
    ROOT(aligned_share, F64, RATIO, NULL, "share of the time of both that was aligned by any rule",
         0),
    ROOT(row_count, I64, COUNT, NULL, "rows before the limit", 0),
    LIST(rows, &row_type, NULL, "largest change first", 0),
    LIST(look, &row_type, "operators, by change of their time", "text output only", RP_SCREEN),
    LIST(kernels, &rp_type_string, "other kernels", "text output only", RP_SCREEN),
    LIST(gates, &rp_gate_row_type, "gates", "the limits of '--gate' and of the named baseline", 0),
    LIST(notes, &rp_type_string, "notes", "limits of the comparison", 0),
    RP_FIELD_END};

const struct rp_type rp_trace_diff_type = {"diff", sizeof(struct rp_trace_diff_root), root_fields,
                                           "rows"};

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

/* ------------------------------------------------------------------ traces */

/* The name of a run: with one rank its file; with several their folder, or the first file if both
   runs are in one folder. */
static const char *name_run(const struct rp_ranks *run, const struct rp_ranks *other,
                            struct rp_arena *arena)
{
    const char *path = run->parts[0].path;
    size_t n = folder_length(path);

    if (run->n == 1)
        return path;
    if (n && !same_folder(path, other->parts[0].path))
        return rp_arena_copy(arena, path, n);
    return rp_arena_textf(arena, "%s and %zu more", path, run->n - 1);
}

/* Whether the recording has samples of call stacks and nothing else. */
static bool is_sampled_only(const struct rp_trace *t)
{
    const int64_t *count = t->totals.count;

    return t->samples.n && t->totals.gpu_end_ns <= t->totals.gpu_begin_ns &&
           !count[RP_KIND_CPU_OP] && !count[RP_KIND_ANNOTATION] && !count[RP_KIND_RUNTIME];
}

static enum rp_code make_stacks(const struct rp_trace *t, const struct rp_scope *scope,
                                const struct rp_settings *settings, struct rp_rank_part *part,
                                struct rp_err *err)
{
    struct rp_stacks_how how = {.width = rp_stacks_width_of(rp_settings_text(settings, "width"))};
    struct rp_trace_diff_part *out = part->data;

    out->has_stacks = true;
    return rp_stacks_make(t, scope, &how, &part->arena, &out->stacks, err);
}

static enum rp_code diff_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                              const struct rp_settings *settings, struct rp_rank_part *part,
                              struct rp_err *err)
{
    struct rp_program_costs programs;
    struct rp_report_hints hints = {
        .categories = rp_loaded_categories(loaded), .known = rp_program_cost_of, .user = &programs};
    struct rp_trace_diff_part *out = part->data;

    if (rp_settings_has(settings, "by"))
        return make_stacks(loaded->trace, scope, settings, part, err);
    enum rp_code code = rp_program_costs_init(&programs, loaded, NULL, err);
    if (code == RP_OK)
        code =
            rp_trace_diff_rank(loaded->trace, scope, &hints,
                               !rp_settings_flag(settings, "no-simulate"), &part->arena, out, err);
    rp_program_costs_release(&programs);
    if (code == RP_OK && is_sampled_only(loaded->trace))
        code = make_stacks(loaded->trace, scope, settings, part, err);
    return code;
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

/* Reads the gates of the command line and of the named baseline. They must be released also after a
   failure. */
static enum rp_code read_gates(const struct rp_settings *settings, struct rp_arena *arena,
                               struct rp_gates *out, struct rp_err *err)
{
    const char *text = rp_settings_text(settings, "gate");
    const char *name = rp_settings_text(settings, "baseline");

    *out = (struct rp_gates){0};
    if (text)
        RP_TRY(rp_gates_parse(out, text, "option '--gate'", err));
    if (!name && rp_settings_has(settings, "baselines"))
        return rp_err_set(err, RP_USAGE, "'--baselines' needs '--baseline NAME'");
    return name ? rp_gates_read(out, rp_settings_text(settings, "baselines"), name, arena, err)
                : RP_OK;
}

static enum rp_code list_ranks(const struct rp_ranks *ranks, struct rp_arena *arena,
                               struct rp_trace_diff_input **out, struct rp_err *err)
{
    *out = RP_ARENA_NEW(arena, struct rp_trace_diff_input, ranks->n + 1);
    RP_TRY(rp_err_need(*out, err, "comparing runs"));
    for (size_t i = 0; i < ranks->n; i++)
        (*out)[i] = (struct rp_trace_diff_input){ranks->parts[i].data, ranks->parts[i].number};
    return RP_OK;
}

/* Whether stacks are compared: on request, or if there is nothing else. */
static enum rp_code wants_stacks(const struct rp_ranks runs[2], const struct rp_settings *settings,
                                 bool *out, struct rp_err *err)
{
    static const char *const gates[] = {"gate", "baseline", "fail-over"};
    bool asked = rp_settings_has(settings, "by");

    *out = runs[0].n && runs[1].n;
    for (size_t r = 0; r < 2; r++)
        for (size_t i = 0; i < runs[r].n; i++)
            *out &= ((const struct rp_trace_diff_part *)runs[r].parts[i].data)->has_stacks;
    for (size_t i = 0; i < sizeof gates / sizeof gates[0]; i++)
        if (rp_settings_has(settings, gates[i])) {
            *out = false;
            if (asked)
                return rp_err_set(err, RP_USAGE, "'--%s' is about steps, '--by' about call stacks",
                                  gates[i]);
        }
    if (!*out && rp_settings_has(settings, "width"))
        return rp_err_set(err, RP_USAGE,
                          "'--width' of traces is about call stacks: add '--by stack', "
                          "'function' or 'line'");
    return RP_OK;
}

static enum rp_code join_stacks(const struct rp_ranks runs[2], const struct rp_settings *settings,
                                struct rp_result *result, struct rp_err *err)
{
    struct rp_stacks_diff_root *root = RP_ARENA_NEW(&result->arena, struct rp_stacks_diff_root, 1);
    struct rp_stacks_want want = {
        .by = rp_settings_has(settings, "by") ? rp_settings_text(settings, "by") : "line",
        .limit = rp_settings_int(settings, "limit"),
        .html = rp_settings_text(settings, "html")};
    const struct rp_stacks_part **parts[2];

    for (size_t r = 0; r < 2; r++) {
        parts[r] = RP_ARENA_NEW(&result->arena, const struct rp_stacks_part *, runs[r].n + 1);
        for (size_t i = 0; parts[r] && i < runs[r].n; i++)
            parts[r][i] = &((const struct rp_trace_diff_part *)runs[r].parts[i].data)->stacks;
    }
    RP_TRY(rp_arena_check(&result->arena, "comparing stacks", err));
    result->type = &rp_stacks_diff_type;
    result->root = root;
    return rp_stacks_diff(parts[0], runs[0].n, parts[1], runs[1].n, &want, &result->arena, root,
                          err);
}

static enum rp_code join_traces(const struct rp_ranks runs[2], const struct rp_settings *settings,
                                struct rp_result *result, struct rp_err *err)
{
    struct rp_trace_diff_options options = {.limit = rp_settings_int(settings, "limit")};
    struct rp_trace_diff_input *in[2];
    struct rp_trace_diff_root *root = result->root;
    struct rp_gates gates;
    bool stacks;

    RP_TRY(wants_stacks(runs, settings, &stacks, err));
    if (stacks)
        return join_stacks(runs, settings, result, err);
    RP_TRY(read_limit(rp_settings_text(settings, "fail-over"), &options, err));
    RP_TRY(list_ranks(&runs[0], &result->arena, &in[0], err));
    RP_TRY(list_ranks(&runs[1], &result->arena, &in[1], err));
    options.paths[0] = name_run(&runs[0], &runs[1], &result->arena);
    options.paths[1] = name_run(&runs[1], &runs[0], &result->arena);
    options.graphs[0] = runs[0].graphs;
    options.graphs[1] = runs[1].graphs;
    options.captures[0] = rp_ranks_are_captures(&runs[0]);
    options.captures[1] = rp_ranks_are_captures(&runs[1]);
    enum rp_code code = read_gates(settings, &result->arena, &gates, err);
    options.gates = &gates;
    if (code == RP_OK)
        code = rp_trace_diff_join(in[0], runs[0].n, in[1], runs[1].n, &options, &result->arena,
                                  root, err);
    rp_gates_release(&gates);
    result->answer = root->failed || root->gates_failed || !root->comparable ? RP_ANSWER_NO : 0;
    return code;
}

/* ------------------------------------------------------------------ what the inputs are */

/* Splits more than two paths where the folder changes, if it does so once; else in the middle. */
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
static enum rp_code split_inputs(const struct rp_dataset *dataset, uint8_t *run_of,
                                 struct rp_err *err)
{
    size_t i, n = rp_dataset_count(dataset), ngiven = dataset->ngiven, at = 1;

    if (ngiven == 1 && n == 2) { /* a folder or a tar with two runs in it */
        run_of[1] = 1;
        return RP_OK;
    }
    if (ngiven < 2)
        return rp_err_set(err, RP_USAGE, "'diff' compares two files or folders, not one");
    if (ngiven > 2)
        at = split_at(dataset, ngiven);
    if (ngiven > 2 && at == ngiven / 2 && ngiven % 2)
        return rp_err_set(err, RP_USAGE,
                          "'diff' compares two files or folders, not %zu; list the files of "
                          "the first run before those of the second, in different folders or "
                          "equally many",
                          ngiven);
    for (i = 0; i < n; i++)
        run_of[i] = rp_sources_borrow(dataset->sources, i)->given >= at;
    return RP_OK;
}

/* If a run has several kinds of files, the largest value counts: a trace before programs, because
   dumps lie beside traces; last comes what could be any text. */
enum holds { HOLDS_NOTHING, HOLDS_SOMETHING, HOLDS_PROGRAM, HOLDS_MEMORY, HOLDS_TRACE };

/* What the first bytes of a source show. If it is unknown or cannot be opened, the loader will say
   why. */
static enum holds holds_what(const struct rp_dataset *dataset, size_t i)
{
    const struct rp_format *format = NULL;
    struct rp_input *in;
    enum holds holds = HOLDS_NOTHING;

    if (rp_source_open(dataset->sources, i, &in, NULL) != RP_OK)
        return HOLDS_NOTHING;
    if (rp_format_sniff(in, &format, NULL) == RP_OK)
        holds = format->kind == RP_FORMAT_KIND_BUFFERS || format->kind == RP_FORMAT_KIND_COMPILES
                    ? HOLDS_NOTHING
                : format->kind == RP_FORMAT_KIND_PROGRAM ? HOLDS_PROGRAM
                : format->memory_only                    ? HOLDS_MEMORY
                : rp_format_identifies(in, format)       ? HOLDS_TRACE
                                                         : HOLDS_SOMETHING;
    rp_source_return(dataset->sources, i, in);
    return holds;
}

/* ------------------------------------------------------------------ the question */

/* The names for these in messages. */
static const char *const holds_names[] = {"file", "file", "program", "memory snapshot", "trace"};

/* Options that do not apply to the inputs are errors. */
static enum rp_code check_settings(const struct rp_settings *settings, enum holds holds,
                                   struct rp_err *err)
{
    static const char *const of_traces[] = {"fail-over", "gate",  "baseline",  "baselines",
                                            "rank",      "step",  "step-name", "window",
                                            "by",        "width", NULL};
    static const char *const of_programs[] = {"module", "stage", NULL};
    static const char *const *const of[] = {of_programs, of_traces};

    for (size_t i = 0; i < 2; i++)
        for (const char *const *name = of[i]; *name; name++)
            if (holds != (i ? HOLDS_TRACE : HOLDS_PROGRAM) && rp_settings_has(settings, *name))
                return rp_err_set(err, RP_USAGE, "option '--%s' is about %ss, and these are %ss",
                                  *name, holds_names[i ? HOLDS_TRACE : HOLDS_PROGRAM],
                                  holds_names[holds]);
    return RP_OK;
}

static enum rp_code diff_inputs(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                const struct rp_settings *settings, struct rp_result *result,
                                struct rp_err *err)
{
    uint8_t *run_of = RP_ARENA_NEW(&result->arena, uint8_t, rp_dataset_count(dataset) + 1);
    enum holds holds[2];

    RP_TRY(rp_err_need(run_of, err, "comparing inputs"));
    enum rp_code code = split_inputs(dataset, run_of, err);
    if (code != RP_OK) /* a single program file may be enough, such as a dump of several graphs */
        memset(run_of, 0, rp_dataset_count(dataset));

    /* What each of the two holds. */
    holds[0] = holds[1] = HOLDS_NOTHING;
    for (size_t i = 0; i < rp_dataset_count(dataset); i++)
        if (holds[run_of[i]] != HOLDS_TRACE) {
            enum holds here = holds_what(dataset, i);

            holds[run_of[i]] = here > holds[run_of[i]] ? here : holds[run_of[i]];
        }
    for (size_t i = 0; i < 2; i++)
        holds[i] = holds[i] == HOLDS_SOMETHING ? HOLDS_TRACE : holds[i];

    if (code != RP_OK && holds[0] >= HOLDS_MEMORY)
        return code;
    rp_err_clear(err);
    if (holds[0] != holds[1] && holds[0] && holds[1])
        return rp_err_set(err, RP_USAGE,
                          "the first input is a %s and the second a %s: 'diff' compares two "
                          "traces, two programs or two memory snapshots",
                          holds_names[holds[0]], holds_names[holds[1]]);
    if (holds[0] == HOLDS_TRACE || holds[1] == HOLDS_TRACE) {
        /* Results of programs have a record; those of traces have one of their own. */
        struct rp_trace_diff_options options;

        RP_TRY(check_settings(settings, HOLDS_TRACE, err));
        RP_TRY(read_limit(rp_settings_text(settings, "fail-over"), &options, err));
        result->root = RP_ARENA_NEW(&result->arena, struct rp_trace_diff_root, 1);
        RP_TRY(rp_err_need(result->root, err, "comparing runs"));
        result->type = &rp_trace_diff_type;
        return rp_ask_two_runs(ctx, dataset, run_of, settings, &rp_ask_diff.ranks, result, err);
    }
    if (holds[0] == HOLDS_MEMORY || holds[1] == HOLDS_MEMORY) {
        RP_TRY(check_settings(settings, HOLDS_MEMORY, err));
        result->root = RP_ARENA_NEW(&result->arena, struct rp_memory_diff, 1);
        RP_TRY(rp_err_need(result->root, err, "comparing memory"));
        result->type = &rp_memory_diff_type;
        return rp_ask_two_runs(ctx, dataset, run_of, settings, &rp_memory_diff_ranks, result, err);
    }

    struct rp_program_diff *root = result->root;
    int64_t limit = rp_settings_int(settings, "limit");
    RP_TRY(check_settings(settings, HOLDS_PROGRAM, err));
    RP_TRY(rp_program_diff_run(ctx, dataset, settings, result, err));
    root->inputs = "programs";
    if (rp_settings_has(settings, "limit") && limit > 0) {
        root->nchanges = (size_t)limit < root->nchanges ? (size_t)limit : root->nchanges;
        root->nmodules = (size_t)limit < root->nmodules ? (size_t)limit : root->nmodules;
        root->nsteps = (size_t)limit < root->nsteps ? (size_t)limit : root->nsteps;
    }
    return RP_OK;
}

/* Reads the named baseline together with what was given, like two paths. */
static enum rp_code diff_with_baseline(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                       const char *base, const struct rp_settings *settings,
                                       struct rp_result *result, struct rp_err *err)
{
    const char *paths[] = {base, dataset->given};
    struct rp_open_options options = {.struct_size = sizeof options, .salvage = dataset->salvage};
    struct rp_dataset *both;

    if (dataset->ngiven != 1)
        return rp_err_set(err, RP_USAGE,
                          "with '--baseline' one file or folder is compared with it, not %zu",
                          dataset->ngiven);
    enum rp_code code = rp_open(ctx, paths, 2, &options, &both, err);
    if (code != RP_OK)
        return rp_err_context(err, code, "opening the baseline and '%s'", dataset->given);
    both->trust = dataset->trust;
    both->wanted = dataset->wanted;
    both->step_name = dataset->step_name;
    code = diff_inputs(ctx, both, settings, result, err);
    rp_dataset_free(both);
    return code;
}

static enum rp_code diff_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                             const struct rp_settings *settings, struct rp_result *result,
                             struct rp_err *err)
{
    RP_SCOPED(rp_gates_release) struct rp_gates gates = {0};

    RP_TRY(read_gates(settings, &result->arena, &gates, err));
    return gates.base ? diff_with_baseline(ctx, dataset, gates.base, settings, result, err)
                      : diff_inputs(ctx, dataset, settings, result, err);
}

/* For programs and stacks the page is a picture, which was already written during the
   comparison. */
static enum rp_code diff_write(const struct rp_settings *settings, struct rp_result *result,
                               struct rp_err *err)
{
    const char *html = rp_settings_text(settings, "html");
    struct rp_web_answer page = {.result = result, .name = "diff"};
    bool tables = result->type == &rp_trace_diff_type || result->type == &rp_memory_diff_type;

    return html && tables ? rp_web_write_answer(&page, html, err) : RP_OK;
}

static const struct rp_option diff_options[] = {
    {"gate", 0, RP_OPT_TEXT, "METRIC=LIMIT,…", NULL,
     "exit with 1 if a metric is worse by more than its limit and the noise: step=2%, mfu=-1pt, "
     "exposed_comm=5%, memory_peak<=60GB",
     0},
    {"baseline", 0, RP_OPT_TEXT, "NAME", NULL,
     "compare with the run of this name and apply its gates, as the file of baselines says", 0},
    {"baselines", 0, RP_OPT_PATH, "FILE", "reprise.baselines", "the file of baselines", 0},
    {"fail-over", 0, RP_OPT_TEXT, "P%|T", NULL,
     "exit with 1 if the step is slower by more than this and by more than the noise", 0},
    {"limit", 'n', RP_OPT_COUNT, "N", "20", "at most N rows; 0: all", 0},
    {"by", 'b', RP_OPT_CHOICE, "stack|function|line", "line",
     "compare sampled call stacks, as 'top' shows them; the default if nothing else was recorded",
     0},
    {"width", 0, RP_OPT_CHOICE, RP_STACKS_WIDTHS, "cpu", "what weights them, as in 'top'", 0},
    RP_RANK_OPTIONS,
    {"no-simulate", 0, RP_OPT_FLAG, NULL, NULL,
     "do not estimate the cost of recording or the steps without it", 0},
    {"module", 0, RP_OPT_TEXT, "NAME", NULL, "dump folders: only this module, by name or number",
     0},
    {"stage", 0, RP_OPT_TEXT, "NAME", NULL,
     "dump folders: only this stage: source, before, after, or a pass", 0},
    {"html", 0, RP_OPT_PATH, "FILE", NULL,
     "also write a page: all tables of runs, programs side by side, a flame graph of call stacks in two colors",
     0},
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
                    "where a gate ('--gate', '--fail-over') is not passed, or "
                    "where less than half of the time of either run has a counterpart in the "
                    "other: they are not comparable.\n\n"
                    "Of two memory snapshots, or folders of them: how the peaks differ, and which "
                    "lines, operators and categories hold the difference.\n\n"
                    "Of two programs operations are matched by what they compute: names, ids, the "
                    "order of computations and of parameters do not count. The same change in "
                    "many places is one row. The exit status is 0 where both are the same "
                    "program and 1 where they differ. Of a dump with several graphs, or a folder "
                    "where functions were compiled several times, every compilation is explained "
                    "by the one before. Folders and tars are compared module by module.",
         .examples =
             "reprise diff base.json.gz new.json.gz\twhy is it slower\n"
             "reprise diff base/ new/ --fail-over 2%\tall ranks, for CI\n"
             "reprise diff base/ new/ --html page.html\tas a page, to send\n"
             "reprise diff base/ new/ --gate step=2%,mfu=-1pt,memory_peak=3%\tmore metrics\n"
             "reprise diff --baseline nightly new/\twith a named baseline and its gates\n"
             "reprise diff old/*.gz new/*.gz\tthe files of two folders\n"
             "reprise diff --by function base/ new/\tof sampled call stacks\n"
             "reprise diff before.pickle after.pickle\tpeaks of memory\n"
             "reprise diff before.txt after.txt\ttwo programs\n"
             "reprise diff before.txt after.txt --html page.html\t... side by side\n"
             "reprise diff lazy.txt\twhy each graph was recompiled\n"
             "reprise diff dump_a/ dump_b/\tprograms, module by module\n",
         .accepts = RP_ACCEPTS_TRACES | RP_ACCEPTS_PROGRAMS,
         .options = diff_options,
         .type = &rp_program_diff_type},
    .ranks = {.part = &rp_trace_diff_part_type, .rank = diff_rank, .join_two = join_traces},
    .run = diff_run,
    .write = diff_write};
