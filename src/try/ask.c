/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The question `try`: runs the user's program with changes made from outside, and says what each
 * one gains, beside the prediction of `simulate`. This file has its options and its answer;
 * session.h has the order of events.
 */
#include "base/clock.h"
#include "base/text.h"
#include "dataset/dataset.h"
#include "dataset/question.h"
#include "outcomes/outcomes.h"
#include "try/against.h"
#include "try/place.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ the answer */

struct try_row {
    const char *change, *verdict, *same, *reason, *effect, *lines, *compiled;
    double predicted_ratio, predicted_low_ratio, predicted_high_ratio;
    double measured_ratio, measured_low_ratio, measured_high_ratio, update_ratio;
    int64_t update_steps, step_ns, startup_ns, break_even_steps, rounds;
    bool earlier;
    const char *predicted, *measured, *start; /* for the screen */
};

struct try_fact {
    const char *key, *value;
};

struct try_outcome {
    const char *change, *device, *host, *framework, *version;
    int64_t parameters;
    double predicted_ratio, measured_ratio;
};

struct try_root {
    const char *program, *unit, *summary, *legend, *skipped, *warning, *learned;
    int64_t step_ns, steps, elapsed_ns;
    double speedup_ratio;
    size_t nchanges, nlines, nfacts, nnot_tried, noutcomes, ncompiled;
    struct try_row *changes;
    const char **lines, **compiled;
    struct try_fact *facts, *not_tried;
    struct try_outcome *outcomes;
    const char *outcomes_file, *want, *comment;
    bool wanted, whole;
    size_t nagainst, nwhat_changed;
    struct rp_try_against_row *against;
    const char **what_changed;
};

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct try_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(change, STR, NONE, "change", "what was changed; its value behind '='", 0),
    ROW(predicted, STR, NONE, "predicted", "text output only", RP_SCREEN),
    ROW(measured, STR, NONE, "measured", "text output only", RP_SCREEN),
    ROW(same, STR, NONE, "same?",
        "how the parameters changed in the first steps, beside the unchanged program", 0),
    ROW(start, STR, NONE, "start-up", "text output only", RP_SCREEN),
    ROW(verdict, STR, NONE, NULL,
        "faster, slower, equal, noisy, refused (the update differs), failed; unchanged", 0),
    ROW(reason, STR, NONE, NULL, "why it failed or was refused, or null", 0),
    ROW(compiled, STR, NONE, NULL,
        "what torch.compile says of it, where it is not faster: graph breaks, recompiles, failures",
        0),
    ROW(effect, STR, NONE, NULL, "what shows that the change took effect, or null", 0),
    ROW(predicted_ratio, F64, RATIO, NULL, "change of the step time that 'simulate' expects", 0),
    ROW(predicted_low_ratio, F64, RATIO, NULL, "lower end of its interval", 0),
    ROW(predicted_high_ratio, F64, RATIO, NULL, "upper end of its interval", 0),
    ROW(measured_ratio, F64, RATIO, NULL, "measured change of the step time: median of rounds", 0),
    ROW(measured_low_ratio, F64, RATIO, NULL, "lower end of its interval", 0),
    ROW(measured_high_ratio, F64, RATIO, NULL, "upper end of its interval", 0),
    ROW(update_ratio, F64, RATIO, NULL,
        "difference of the update of the parameters, over the unchanged update", 0),
    ROW(update_steps, I64, COUNT, NULL, "steps after which it is judged, or null", RP_NULLABLE),
    ROW(step_ns, I64, NS, NULL, "median step, or null", RP_NULLABLE),
    ROW(startup_ns, I64, NS, NULL,
        "how much longer the first steps took, for instance for compiling, or null", RP_NULLABLE),
    ROW(break_even_steps, I64, COUNT, NULL, "steps after which the start-up is regained, or null",
        RP_NULLABLE),
    ROW(rounds, I64, COUNT, NULL, "rounds in which it was measured", 0),
    ROW(earlier, BOOL, NONE, NULL, "measured by an earlier call (--resume)", 0),
    ROW(lines, STR, NONE, NULL, "what to put into the script, or null", 0),
    RP_FIELD_END};
static const struct rp_type row_type = {"change", sizeof(struct try_row), row_fields, NULL};

static const struct rp_field fact_fields[] = {
    RP_FIELD(struct try_fact, key, STR, NONE, NULL, "its name", 0),
    RP_FIELD(struct try_fact, value, STR, NONE, NULL, "its value", 0), RP_FIELD_END};
static const struct rp_type fact_type = {"fact", sizeof(struct try_fact), fact_fields, NULL};

#define OUTCOME(member, type, unit, title, doc, flags) \
    RP_FIELD(struct try_outcome, member, type, unit, title, doc, flags)

static const struct rp_field outcome_fields[] = {
    OUTCOME(change, STR, NONE, "change", "the change, as an argument of 'simulate --what-if'", 0),
    OUTCOME(predicted_ratio, F64, RATIO, "predicted", "change of the step time that was expected",
            0),
    OUTCOME(measured_ratio, F64, RATIO, "measured", "change of the step time", 0),
    OUTCOME(device, STR, NONE, "device", "its name", 0),
    OUTCOME(host, STR, NONE, NULL, "model of the processor", 0),
    OUTCOME(framework, STR, NONE, "framework", "framework and its version", 0),
    OUTCOME(parameters, I64, COUNT, "parameters",
            "parameter of the program, where the value has no other name", 0),
    OUTCOME(version, STR, NONE, NULL, "version of reprise that predicted it", 0),
    RP_FIELD_END};
static const struct rp_type outcome_type = {"outcome", sizeof(struct try_outcome), outcome_fields,
                                            NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct try_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(program, STR, NONE, "program", "framework, optimizers and device of the program", 0),
    ROOT(unit, STR, NONE, "a step is", "what counts as a step", 0),
    ROOT(step_ns, I64, NS, "unchanged", "median step of the unchanged program; null with --against",
         RP_NULLABLE),
    RP_FIELD_LIST(struct try_root, changes, &row_type, "changes", "one of each variant", 0),
    RP_FIELD_LIST(struct try_root, against, &rp_try_against_type, "programs",
                  "with --against: one of each program, the fastest first", 0),
    RP_FIELD_LIST(struct try_root, what_changed, &rp_type_string, "what changed",
                  "with --against: kernels and operators of a recording of each, by time", 0),
    ROOT(want, STR, NONE, NULL, "with --against: the argument of --want, or null", 0),
    ROOT(wanted, BOOL, NONE, NULL, "whether it is so", 0),
    ROOT(whole, BOOL, NONE, NULL, "the programs were measured from start to end, not by steps", 0),
    RP_FIELD_LIST(struct try_root, compiled, &rp_type_string, "what torch.compile says",
                  "text output only", RP_SCREEN),
    ROOT(warning, STR, NONE, "note", "what to know about the measurement, or null", RP_WARN),
    ROOT(summary, STR, NONE, "result", "the best that was measured", 0),
    RP_FIELD_LIST(struct try_root, lines, &rp_type_string, "to put into the script",
                  "lines for the best that was measured", 0),
    ROOT(skipped, STR, NONE, "not tried", "text output only", RP_SCREEN),
    ROOT(learned, STR, NONE, "learned", "what was kept for later predictions, or null", 0),
    ROOT(legend, STR, NONE, "same?", "text output only", RP_SCREEN),
    ROOT(steps, I64, COUNT, NULL, "steps after which the parameters were compared", 0),
    ROOT(speedup_ratio, F64, RATIO, NULL, "unchanged step time over the best, or null", 0),
    ROOT(elapsed_ns, I64, NS, NULL, "time that all of it took", 0),
    RP_FIELD_MAP(struct try_root, facts, &fact_type, NULL, "what was seen of the program", 0),
    RP_FIELD_MAP(struct try_root, not_tried, &fact_type, NULL, "changes that do not fit, and why",
                 0),
    RP_FIELD_LIST(struct try_root, outcomes, &outcome_type, "outcomes",
                  "what is kept of earlier calls (--outcomes)", 0),
    ROOT(outcomes_file, STR, NONE, NULL, "the file with the outcomes, or null", 0),
    RP_FIELD_END};
static const struct rp_type try_type = {"try", sizeof(struct try_root), root_fields, "changes"};

/* ------------------------------------------------------------------ rows */

static const char *percent_text(struct rp_arena *arena, double middle, double low, double high)
{
    if (!isfinite(low) || !isfinite(high))
        return rp_arena_textf(arena, "%+.1f %% (few rounds)", 100 * middle);
    return rp_arena_textf(arena, "%+.1f %% [%.1f, %.1f]", 100 * middle, 100 * low, 100 * high);
}

static const char *duration_text(struct rp_arena *arena, int64_t ns)
{
    return rp_arena_textf(arena, ns < INT64_C(9950000000) ? "%.1f s" : "%.0f s", (double)ns / 1e9);
}

static const char *precision_text(const struct rp_try_session *s, const struct rp_try_variant *v)
{
    enum rp_try_same same = rp_try_arithmetic(s, v);

    return v->update_ratio <= RP_TRY_ROUNDING ? "within rounding"
           : same == RP_TRY_SAME_BF16         ? "within bf16 precision"
           : same == RP_TRY_SAME_TF32         ? "within tf32 precision"
                                              : "as after rounding";
}

static const char *same_text(struct rp_arena *arena, const struct rp_try_session *s,
                             const struct rp_try_variant *v)
{
    bool is_control = v == &s->variants[1];

    if (v->state == RP_TRY_FAILED)
        return NULL;
    if (!v->judged)
        return "not judged";
    if (v->exact)
        return "exact";
    if (v->differs || v->state == RP_TRY_REFUSED ||
        (is_control && !(v->update_ratio <= RP_TRY_ROUNDING)))
        return rp_arena_textf(arena, "different: %.2g", v->update_ratio);
    return v->update_steps >= s->steps
               ? precision_text(s, v)
               : rp_arena_textf(arena, "%s, %zu step%s", precision_text(s, v), v->update_steps,
                                v->update_steps == 1 ? "" : "s");
}

static const char *verdict_text(const struct rp_try_session *s, const struct rp_try_variant *v)
{
    if (v == &s->variants[1] && v->state != RP_TRY_FAILED)
        return "unchanged";
    return v->state == RP_TRY_REFUSED  ? "refused"
           : v->state == RP_TRY_FAILED ? "failed"
                                       : rp_try_verdict_name(v->verdict);
}

/* The column "measured": an interval, or what was found instead of one. */
static const char *measured_text(struct rp_arena *arena, const struct try_row *row,
                                 const struct rp_try_session *s, const struct rp_try_variant *v)
{
    double most = fmax(fabs(row->measured_low_ratio), fabs(row->measured_high_ratio));

    if (v->state == RP_TRY_FAILED || v->state == RP_TRY_REFUSED)
        return rp_arena_textf(arena, "%s%s", v->state == RP_TRY_FAILED ? "failed: " : "", v->why);
    if (v == &s->variants[1] && !v->nrounds)
        return NULL;
    if (v == &s->variants[1] || v->verdict == RP_TRY_FASTER || v->verdict == RP_TRY_SLOWER)
        return percent_text(arena, row->measured_ratio, row->measured_low_ratio,
                            row->measured_high_ratio);
    if (v->verdict == RP_TRY_EQUAL)
        return rp_arena_textf(arena, "no difference above %.1f %%", 100 * most);
    return rp_arena_textf(arena, "too noisy: %s",
                          percent_text(arena, row->measured_ratio, row->measured_low_ratio,
                                       row->measured_high_ratio));
}

static const char *start_text(struct rp_arena *arena, const struct try_row *row)
{
    if (row->startup_ns == RP_ABSENT_I64 || row->startup_ns < INT64_C(500000000))
        return NULL;
    if (row->break_even_steps == RP_ABSENT_I64)
        return duration_text(arena, row->startup_ns);
    return rp_arena_textf(arena, "%s, %lld steps", duration_text(arena, row->startup_ns),
                          (long long)row->break_even_steps);
}

static bool is_tensorflow(const struct rp_try_session *s)
{
    return rp_try_is_of(&s->facts, "tensorflow");
}

/* Returns the lines of the script for one change, with its value. */
static const char *line_of(struct rp_arena *arena, const struct rp_try_session *s,
                           const struct rp_try_variant *v, size_t part)
{
    const char *text = rp_try_lines(v->parts[part], &s->facts), *mark = strstr(text, "%s");

    if (!mark)
        return text;
    return rp_arena_textf(arena, "%.*s%s%s", (int)(mark - text), text, v->values[part], mark + 2);
}

static const char *lines_of(struct rp_arena *arena, const struct rp_try_session *s,
                            const struct rp_try_variant *v)
{
    const char *all = NULL;

    for (size_t i = 0; i < v->nparts; i++) {
        const char *line = line_of(arena, s, v, i);

        all = all ? rp_arena_textf(arena, "%s\n%s", all, line) : line;
    }
    return all;
}

static bool was_measured(const struct rp_try_variant *v)
{
    return v->state == RP_TRY_MEASURED || v->state == RP_TRY_EARLIER;
}

static void fill_numbers(struct try_row *row, const struct rp_try_session *s,
                         const struct rp_try_variant *v)
{
    double gain = s->variants[0].usual_ns - v->usual_ns;
    bool measured = was_measured(v), sure = measured && isfinite(v->interval.low);

    row->predicted_ratio = v->predicted ? v->change : NAN;
    row->predicted_low_ratio = v->predicted ? v->change_low : NAN;
    row->predicted_high_ratio = v->predicted ? v->change_high : NAN;
    row->measured_ratio = measured ? rp_try_ratio(v->interval.median) : NAN;
    row->measured_low_ratio = sure ? rp_try_ratio(v->interval.low) : NAN;
    row->measured_high_ratio = sure ? rp_try_ratio(v->interval.high) : NAN;
    row->update_ratio = v->judged ? v->update_ratio : NAN;
    row->update_steps =
        v->judged && v->update_steps != SIZE_MAX ? (int64_t)v->update_steps : RP_ABSENT_I64;
    row->step_ns = measured && v->usual_ns > 0 ? (int64_t)v->usual_ns : RP_ABSENT_I64;
    row->startup_ns = measured ? v->startup_ns : RP_ABSENT_I64;
    row->break_even_steps = measured && v->verdict == RP_TRY_FASTER && gain > 0
                                ? (int64_t)ceil((double)v->startup_ns / gain)
                                : RP_ABSENT_I64;
    row->rounds = (int64_t)v->nrounds;
    row->earlier = v->state == RP_TRY_EARLIER;
}

static bool on_cpu(const struct rp_try_session *s)
{
    return !strcmp(rp_try_fact(&s->facts, "device"), "cpu");
}

static void fill_row(struct rp_arena *arena, struct try_row *row, const struct rp_try_session *s,
                     const struct rp_try_variant *v)
{
    fill_numbers(row, s, v);
    row->change = rp_arena_text(arena, v->name);
    row->verdict = verdict_text(s, v);
    row->same = same_text(arena, s, v);
    row->reason = *v->why ? rp_arena_text(arena, v->why) : NULL;
    if (*v->log && v->verdict != RP_TRY_FASTER)
        row->compiled = rp_try_compiled_text(v->log, arena);
    row->effect = *v->how ? rp_arena_text(arena, v->how) : NULL;
    row->lines = lines_of(arena, s, v);
    row->predicted = v->predicted ? percent_text(arena, v->change, v->change_low, v->change_high)
                     : is_tensorflow(s) && !on_cpu(s) ? "not for TensorFlow"
                                                      : NULL;
    row->measured = measured_text(arena, row, s, v);
    row->start = start_text(arena, row);
}

/* ------------------------------------------------------------------ the whole */

static const struct rp_try_variant *best_of(const struct rp_try_session *s)
{
    const struct rp_try_variant *best = NULL;

    for (size_t i = 2; i < s->nvariants; i++) {
        const struct rp_try_variant *v = &s->variants[i];

        if (was_measured(v) && v->verdict == RP_TRY_FASTER && !v->differs &&
            (!best || v->interval.median < best->interval.median))
            best = v;
    }
    return best;
}

static bool any_measured(const struct rp_try_session *s, bool earlier)
{
    for (size_t i = 2; i < s->nvariants; i++)
        if (s->variants[i].state == RP_TRY_MEASURED ||
            (earlier && s->variants[i].state == RP_TRY_EARLIER))
            return true;
    return false;
}

static void fill_best(struct rp_arena *arena, struct try_root *root, const struct rp_try_session *s)
{
    const struct rp_try_variant *best = best_of(s);

    root->speedup_ratio = NAN;
    if (!best) {
        root->summary = any_measured(s, true) ? "no change made the program measurably faster"
                                              : "no change could be measured";
        return;
    }
    root->speedup_ratio = exp(-best->interval.median);
    root->summary =
        rp_arena_textf(arena, "%s: %.2f times as fast (%s a step instead of %s)", best->name,
                       root->speedup_ratio, rp_arena_textf(arena, "%.3g ms", best->usual_ns / 1e6),
                       rp_arena_textf(arena, "%.3g ms", s->variants[0].usual_ns / 1e6));
    root->lines = RP_ARENA_NEW(arena, const char *, best->nparts);
    for (size_t i = 0; root->lines && i < best->nparts; i++)
        root->lines[root->nlines++] = line_of(arena, s, best, i);
}

static void fill_notes(struct rp_arena *arena, struct try_root *root,
                       const struct rp_try_session *s)
{
    const struct rp_try_variant *control = &s->variants[1];
    double floor = rp_try_floor(&control->interval);

    if (control->state != RP_TRY_FAILED && control->judged &&
        !(control->update_ratio <= RP_TRY_ROUNDING))
        root->warning = "the unchanged program does not repeat itself (its updates differ), so "
                        "those of the changes are not judged: seed its random numbers";
    else if (any_measured(s, false) && !isfinite(floor))
        root->warning = "there were too few rounds for an interval: give more time with '--time'";
    else if (any_measured(s, false) && floor > 0)
        root->warning = rp_arena_textf(arena,
                                       "two unchanged runs differ by up to %.1f %%: smaller "
                                       "differences are not told apart from noise",
                                       100 * rp_try_ratio(floor));
    else if (s->ended)
        root->warning = "the program came to its end: with more steps there would be more rounds";
    root->legend = rp_arena_textf(arena,
                                  "%s in the first %zu steps, beside that of the unchanged "
                                  "program; it says nothing about later ones",
                                  rp_try_compared(s), s->steps);
}

static const char *unit_text(struct rp_arena *arena, const struct rp_try_facts *f)
{
    const char *unit = rp_try_fact(f, "unit"), *name = rp_try_fact(f, "unit-name");
    long long steps = (long long)rp_try_fact_number(f, "unit-steps");

    return rp_text_begins(unit, "optimizer") ? "a step of the optimizer that steps most rarely"
           : rp_text_begins(unit, "jit")
               ? rp_arena_textf(arena, "a call of the compiled function '%s'", name)
           : rp_text_begins(unit, "function") && steps > 1
               ? rp_arena_textf(arena, "a call of the function '%s': %lld steps of the optimizer",
                                name, steps)
           : rp_text_begins(unit, "function")
               ? rp_arena_textf(arena, "a call of the function '%s'", name)
           : rp_text_begins(unit, "gradient") ? "a gradient of variables"
                                              : "a call of the model";
}

static void fill_program(struct rp_arena *arena, struct try_root *root,
                         const struct rp_try_session *s)
{
    const struct rp_try_facts *f = &s->facts;
    const char *device = rp_try_fact(f, "device-name");

    root->program =
        rp_arena_textf(arena, "%s, %s parameters%s%s, %s", rp_try_fact(f, "framework"),
                       rp_try_fact(f, "parameters"), *rp_try_fact(f, "optimizers") ? ", " : "",
                       rp_try_fact(f, "optimizers"), *device ? device : rp_try_fact(f, "device"));
    root->unit = unit_text(arena, f);
    root->facts = RP_ARENA_NEW(arena, struct try_fact, f->n);
    for (size_t i = 0; root->facts && i < f->n; i++)
        root->facts[root->nfacts++] = (struct try_fact){rp_arena_text(arena, f->at[i].key),
                                                        rp_arena_text(arena, f->at[i].value)};
}

/* Adds a line for each change: "compile: 2 graph breaks, …". */
static void fill_compiled(struct rp_arena *arena, struct try_root *root)
{
    root->compiled = RP_ARENA_NEW(arena, const char *, root->nchanges + 1);
    for (size_t i = 0; root->compiled && i < root->nchanges; i++)
        if (root->changes[i].compiled)
            root->compiled[root->ncompiled++] =
                rp_arena_textf(arena, "%s: %s", root->changes[i].change, root->changes[i].compiled);
}

static void fill_answer(struct rp_arena *arena, struct try_root *root,
                        const struct rp_try_session *s)
{
    fill_program(arena, root, s);
    root->step_ns = s->variants[0].usual_ns > 0 ? (int64_t)s->variants[0].usual_ns : RP_ABSENT_I64;
    root->steps = (int64_t)s->steps;
    root->elapsed_ns = rp_clock_ns() - s->begun_ns;
    root->changes = RP_ARENA_NEW(arena, struct try_row, s->nvariants);
    for (size_t i = 1; root->changes && i < s->nvariants; i++)
        fill_row(arena, &root->changes[root->nchanges++], s, &s->variants[i]);
    fill_compiled(arena, root);
    fill_best(arena, root, s);
    fill_notes(arena, root, s);
}

/* ------------------------------------------------------------------ what to try */

/* Whether a comma-separated list contains the change; its value goes to `value` if it has one. */
static bool list_names(const char *list, const char *name, char *value, size_t cap)
{
    size_t n = strlen(name);

    for (; list && *list; list += strcspn(list, ","), list += *list == ',') {
        size_t len = strcspn(list, ",");

        if (len >= n && !strncmp(list, name, n) && (len == n || list[n] == '=')) {
            if (len > n)
                snprintf(value, cap, "%.*s", (int)(len - n - 1), list + n + 1);
            return true;
        }
    }
    return false;
}

static enum rp_code check_list(const char *list, struct rp_err *err)
{
    for (; list && *list; list += strcspn(list, ","), list += *list == ',') {
        size_t len = strcspn(list, ",=");

        if (!rp_try_change_find(list, len)) {
            rp_err_set(err, RP_USAGE, "unknown change '%.*s' in '--only': choose from", (int)len,
                       list);
            for (size_t i = 0; i < rp_try_change_count(); i++)
                snprintf(err->text + strlen(err->text), sizeof err->text - strlen(err->text),
                         "%s %s", i ? "," : "", rp_try_changes[i].name);
            return RP_USAGE;
        }
    }
    return RP_OK;
}

static void add_variant(struct rp_try_session *s, const struct rp_try_change *change,
                        const char *value)
{
    struct rp_try_variant *v = &s->variants[s->nvariants++];

    v->parts[0] = change;
    v->nparts = 1;
    snprintf(v->values[0], sizeof v->values[0], "%s", value);
    if (strchr(value, '/'))
        snprintf(v->name, sizeof v->name, "%s=%.120s", change->name, rp_text_file(value));
    else
        snprintf(v->name, sizeof v->name, "%s%s%.120s", change->name, *value ? "=" : "", value);
}

static void choose_changes(struct rp_try_session *s, const char *only, struct rp_arena *arena,
                           struct try_root *root)
{
    root->not_tried = RP_ARENA_NEW(arena, struct try_fact, rp_try_change_count());
    snprintf(s->variants[0].name, sizeof s->variants[0].name, "unchanged");
    snprintf(s->variants[1].name, sizeof s->variants[1].name, "unchanged again");
    s->nvariants = 2;
    for (size_t i = 0; i < rp_try_change_count() && root->not_tried; i++) {
        const struct rp_try_change *change = &rp_try_changes[i];
        char value[160] = "";
        const char *why = change->unfit(&s->facts, value, sizeof value);

        if (only && !list_names(only, change->name, value, sizeof value))
            continue;
        if (!why) {
            add_variant(s, change, value);
            continue;
        }
        root->not_tried[root->nnot_tried++] = (struct try_fact){change->name, why};
        if (only) /* a change that was asked for is mentioned */
            root->skipped = root->skipped ? rp_arena_textf(arena, "%s; %s: %s", root->skipped,
                                                           change->name, why)
                                          : rp_arena_textf(arena, "%s: %s", change->name, why);
    }
}

/* Leaves out changes that do not apply to the recorded run, unless they were asked for. */
static void leave_out(struct rp_try_session *s, struct rp_arena *arena, struct try_root *root)
{
    size_t kept = 2;

    rp_try_look(s);
    for (size_t i = 2; i < s->nvariants; i++) {
        const struct rp_try_variant *v = &s->variants[i];

        if (*v->unfit && !v->nrounds && root->not_tried)
            root->not_tried[root->nnot_tried++] =
                (struct try_fact){v->parts[0]->name, rp_arena_text(arena, v->unfit)};
        else if (kept++ != i)
            s->variants[kept - 1] = *v;
    }
    s->nvariants = kept;
}

/* ------------------------------------------------------------------ outcomes */

static void list_outcomes(struct rp_arena *arena, struct try_root *root,
                          const struct rp_outcomes *all)
{
    root->outcomes = RP_ARENA_NEW(arena, struct try_outcome, all->list.n + 1);
    for (size_t i = 0; root->outcomes && i < all->list.n; i++) {
        const struct rp_outcome *o = &all->list.at[i];

        root->outcomes[root->noutcomes++] =
            (struct try_outcome){.change = rp_arena_text(arena, o->change),
                                 .device = rp_arena_text(arena, o->device),
                                 .host = rp_arena_text(arena, o->host),
                                 .framework = rp_arena_text(arena, o->framework),
                                 .version = rp_arena_text(arena, o->version),
                                 .parameters = o->parameters,
                                 .predicted_ratio = o->predicted - 1,
                                 .measured_ratio = o->measured - 1};
    }
    if (all->nrefused)
        root->warning = rp_arena_textf(
            arena, "%zu lines of the file are not outcomes and are left out", all->nrefused);
}

/* For --outcomes and --forget, no program runs. */
static enum rp_code show_outcomes(bool forget, struct rp_arena *arena, struct try_root *root,
                                  struct rp_err *err)
{
    RP_SCOPED(rp_outcomes_release) struct rp_outcomes all = {0};
    char path[PATH_MAX];

    root->step_ns = RP_ABSENT_I64;

    root->speedup_ratio = NAN;
    RP_TRY(forget ? rp_outcomes_forget(err) : rp_outcomes_read(&all, err));
    if (rp_outcomes_path(path, sizeof path))
        root->outcomes_file = rp_arena_text(arena, path);
    list_outcomes(arena, root, &all);
    root->summary = forget ? "no outcomes are kept any more"
                    : !all.list.n
                        ? "no outcomes are kept: 'reprise try --learn -- PROGRAM' keeps them"
                        : rp_arena_textf(arena, "%zu outcomes are kept in %s", all.list.n, path);
    return RP_OK;
}

static enum rp_code learn(const struct rp_try_session *s, struct rp_arena *arena,
                          struct try_root *root, struct rp_err *err)
{
    size_t kept;

    RP_TRY(rp_try_learn(s, &kept, err));
    root->learned = kept
                        ? rp_arena_textf(arena, "%zu outcomes are kept for later predictions", kept)
                        : "nothing: no change was both predicted and measured";
    return RP_OK;
}

/* ------------------------------------------------------------------ the question */

static enum rp_code session_settings(struct rp_try_session *s, struct rp_ctx *ctx,
                                     const struct rp_settings *settings, struct rp_arena *arena,
                                     struct rp_err *err)
{
    size_t n = 0;

    while (rp_settings_nth(settings, "command", n))
        n++;
    if (!n)
        return rp_err_set(err, RP_USAGE, "'try' needs a program: reprise try -- PROGRAM");
    s->words = RP_ARENA_NEW(arena, char *, n + 1);
    for (size_t i = 0; s->words && i < n; i++)
        s->words[i] = rp_arena_strdup(arena, rp_settings_nth(settings, "command", i));
    RP_TRY(rp_arena_check(arena, "trying changes", err));
    s->nwords = n;
    s->progress = ctx->progress;
    s->progress_user = ctx->progress_user;
    s->begun_ns = rp_clock_ns();
    s->deadline_ns = s->begun_ns + rp_settings_int(settings, "time");
    s->patience_ns = rp_settings_int(settings, "patience");
    s->steps = (size_t)rp_settings_int(settings, "steps");
    s->allow_writes = rp_settings_flag(settings, "allow-writes");
    for (size_t i = 0; rp_settings_nth(settings, "allow-write", i); i++)
        rp_try_place_allow(&s->writes, rp_settings_nth(settings, "allow-write", i));
    return check_list(rp_settings_text(settings, "only"), err);
}

/* What-ifs are about work on devices, and their models know operators of PyTorch and JAX. If the
   first start took a sixth of the time, there is not enough for another one that measures
   nothing. */
static bool may_record(const struct rp_try_session *s)
{
    return !on_cpu(s) && !is_tensorflow(s) &&
           rp_clock_ns() - s->begun_ns < (s->deadline_ns - s->begun_ns) / 6;
}

/* Measures the changes, and then those that won together. */
static enum rp_code session_run(struct rp_try_session *s, const struct rp_settings *settings,
                                struct rp_arena *arena, struct try_root *root, struct rp_err *err)
{
    RP_TRY(rp_try_session_open(s, err));
    RP_TRY(rp_try_probe(s, err));
    choose_changes(s, rp_settings_text(settings, "only"), arena, root);
    if (s->nvariants == 2)
        return rp_err_set(err, RP_UNSUPPORTED, "there is nothing to try here%s%s",
                          root->skipped ? ": " : "", root->skipped ? root->skipped : "");
    if (rp_settings_flag(settings, "resume"))
        rp_try_store_read(s);
    if (!rp_settings_flag(settings, "no-predict") && may_record(s))
        rp_try_record(s);
    if (!rp_settings_text(settings, "only"))
        leave_out(s, arena, root);
    if (s->nvariants == 2)
        return rp_err_set(
            err, RP_UNSUPPORTED,
            "there is nothing to try here: by the recording no change applies ('--only "
            "NAME' tries one)");
    rp_try_measure(s);
    for (size_t i = 0; i < 2; i++)
        if (s->variants[i].state == RP_TRY_FAILED && !s->cancelled)
            return rp_err_set(err, RP_UNSUPPORTED, "%s%s",
                              strstr(s->variants[i].why, "the time was over")
                                  ? "before anything was measured, "
                                  : "the unchanged program failed: ",
                              s->variants[i].why);
    if (!rp_settings_flag(settings, "no-together") && rp_try_session_goes_on(s, "together") &&
        rp_try_together(s))
        rp_try_measure(s);
    rp_try_predict(s);
    rp_try_store_write(s);
    return rp_settings_flag(settings, "learn") ? learn(s, arena, root, err) : RP_OK;
}

/* ------------------------------------------------------------------ --against */

static enum rp_code make_others(struct rp_try_session *s, const struct rp_settings *settings,
                                struct rp_arena *arena, struct rp_try_other *others, size_t *n,
                                struct rp_err *err)
{
    const char *what;

    for (size_t i = 0; (what = rp_settings_nth(settings, "against", i)); i++)
        RP_TRY(rp_try_other_make(s, what, rp_settings_text(settings, "prepare"), arena,
                                 &others[(*n)++], err));
    for (size_t i = 0; (what = rp_settings_nth(settings, "against-command", i)); i++)
        rp_try_other_command(s, what, arena, &others[(*n)++]);
    return rp_arena_check(arena, "preparing programs", err);
}

/* Loops of a framework that differ are recorded once more if there is time for it. */
static void fill_changed(struct rp_arena *arena, struct try_root *root, const struct rp_try_duel *d,
                         const struct rp_try_other *others)
{
    const char *lines[RP_TRY_CHANGED];

    root->what_changed = RP_ARENA_NEW(arena, const char *, d->n *RP_TRY_CHANGED);
    for (size_t i = 1; i < d->n && root->what_changed; i++) {
        size_t n = 0;

        bool differs = d->side[i].verdict == RP_TRY_FASTER || d->side[i].verdict == RP_TRY_SLOWER;

        if (!d->whole && differs && rp_clock_ns() + d->round_ns < d->s->deadline_ns)
            n = rp_try_changed(d->s, &others[i - 1].program, arena, lines);
        for (size_t k = 0; k < n; k++)
            root->what_changed[root->nwhat_changed++] =
                d->n > 2 ? rp_arena_textf(arena, "%s: %s", others[i - 1].name, lines[k]) : lines[k];
    }
}

static const struct rp_try_against_row *first_other(const struct try_root *root)
{
    return &root->against[!strcmp(root->against[0].verdict, "yours")];
}

/* Of several programs: where yours is among them. */
static const char *tournament_text(struct rp_arena *arena, const struct try_root *root)
{
    size_t place = 1, ties = 0, compared = 0;

    for (size_t i = 0; i < root->nagainst; i++) {
        const char *verdict = root->against[i].verdict;

        compared += root->against[i].rank != RP_ABSENT_I64;
        place += !strcmp(verdict, "slower");
        ties += !strcmp(verdict, "noisy") || !strcmp(verdict, "equal");
    }
    return rp_arena_textf(
        arena, "yours is number %zu of %zu programs; not told apart: %zu, not compared: %zu", place,
        root->nagainst, ties, root->nagainst - compared);
}

static const char *against_text(struct rp_arena *arena, const struct rp_try_duel *d,
                                const struct try_root *root)
{
    static const char *const says[] = {[RP_TRY_UNDECIDED] = "undecided against",
                                       [RP_TRY_FASTER] = "yours is faster than",
                                       [RP_TRY_SLOWER] = "yours is slower than",
                                       [RP_TRY_EQUAL] = "yours takes as long as",
                                       [RP_TRY_NOISY] = "undecided against"};
    const struct rp_try_against_row *other = first_other(root);

    if (!d->rounds)
        return "undecided: the time was over before each program had run once ('--time')";
    if (d->n > 2)
        return tournament_text(arena, root);
    return rp_arena_textf(arena, "%s %s: %s",
                          other->reason ? "yours against" : says[d->side[1].verdict], other->name,
                          other->measured);
}

/* Joins what is to be known about the measurement. */
static void add_note(struct rp_arena *arena, struct try_root *root, const char *name,
                     const char *what, const char *more)
{
    root->warning = rp_arena_textf(arena, "%s%s%s: %s%s", root->warning ? root->warning : "",
                                   root->warning ? "; " : "", name, what, more);
}

static enum rp_code fill_against(struct rp_arena *arena, struct try_root *root,
                                 const struct rp_try_duel *d, const struct rp_try_other *others,
                                 const struct rp_settings *settings, struct rp_err *err)
{
    const struct rp_try_session *s = d->s;

    root->nagainst = rp_try_against_rows(d, others, arena, &root->against);
    RP_TRY(rp_arena_check(arena, "comparing programs", err));
    if (d->whole) {
        root->program = s->words[0];
        root->unit = "the whole program, from start to end, each in a new process";
    } else {
        fill_program(arena, root, s);
        root->unit = rp_arena_textf(arena, "%s, in new processes each round", root->unit);
    }
    root->whole = d->whole;
    root->want = rp_settings_text(settings, "want");
    root->wanted = rp_try_against_holds(d, root->want);
    root->step_ns = RP_ABSENT_I64;
    root->speedup_ratio = NAN;
    root->steps = d->whole ? 0 : (int64_t)s->steps;
    root->elapsed_ns = rp_clock_ns() - s->begun_ns;
    for (size_t i = 0; i + 1 < d->n; i++) {
        const char *name = others[i].name;

        if (others[i].changed && (!root->warning || !strstr(root->warning, others[i].changed)))
            add_note(arena, root, "yours", others[i].changed, "");
        if (*d->side[i + 1].clock)
            add_note(arena, root, name, d->side[i + 1].clock, "");
        if (others[i].linked)
            add_note(arena, root, name,
                     "from your folder, because git ignores it: ", others[i].linked);
    }
    root->summary = against_text(arena, d, root);
    if (!rp_settings_flag(settings, "no-predict"))
        fill_changed(arena, root, d, others);
    root->comment = rp_settings_text(settings, "markdown");
    return rp_arena_check(arena, "comparing programs", err);
}

/* What is known before the first program starts is not said after minutes. */
static enum rp_code check_comment(const char *path, struct rp_err *err)
{
    int fd = path && strcmp(path, "-") != 0 ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -2;

    if (fd == -1)
        return rp_err_set_os(err, errno, "cannot write '%s'", path);
    if (fd >= 0)
        close(fd);
    return RP_OK;
}

static enum rp_code against_run(struct rp_try_session *s, const struct rp_settings *settings,
                                struct rp_arena *arena, struct rp_result *result,
                                struct rp_err *err)
{
    struct rp_try_other others[RP_TRY_OTHERS] = {{NULL}};
    struct rp_try_duel d = {.s = s, .whole = rp_settings_flag(settings, "whole")};
    struct try_root *root = result->root;
    struct rp_try_side *sides;
    const char *what;
    enum rp_code code;

    if (rp_settings_nth(settings, "against", RP_TRY_OTHERS / 2) ||
        rp_settings_nth(settings, "against-command", RP_TRY_OTHERS / 2))
        return rp_err_set(err, RP_USAGE, "at most %d programs of a kind are compared",
                          RP_TRY_OTHERS / 2);
    RP_TRY(check_comment(rp_settings_text(settings, "markdown"), err));
    for (size_t i = 0; (what = rp_settings_nth(settings, "against", i)); i++)
        rp_try_other_protect(s, what);
    RP_TRY(rp_try_session_open(s, err));
    RP_TRY(make_others(s, settings, arena, others, &d.n, err));
    if (!d.whole) {
        code = rp_try_probe(s, err);
        d.whole = code != RP_OK && s->stepless;
        if (code != RP_OK && !d.whole)
            return code;
    }
    sides = calloc(++d.n, sizeof *sides);
    RP_TRY(rp_err_need(sides, err, "comparing programs"));
    d.side = sides;
    for (size_t i = 0; i < d.n; i++) {
        snprintf(d.side[i].v.name, sizeof d.side[i].v.name, "%s", i ? others[i - 1].name : "yours");
        d.side[i].v.program = i ? &others[i - 1].program : NULL;
    }
    rp_try_duel(&d);
    code = d.side->v.state == RP_TRY_FAILED && !s->cancelled
               ? rp_err_set(err, RP_UNSUPPORTED, "your program failed: %s", d.side->v.why)
               : fill_against(arena, root, &d, others, settings, err);
    result->answer = root->wanted ? 0 : RP_ANSWER_NO;
    for (size_t i = 0; i < d.n; i++)
        rp_try_stop(&d.side[i].v);
    free(sides);
    return code;
}

static bool is_against(const struct rp_settings *settings)
{
    return rp_settings_nth(settings, "against", 0) ||
           rp_settings_nth(settings, "against-command", 0);
}

static enum rp_code try_write(const struct rp_settings *settings, struct rp_result *result,
                              struct rp_err *err)
{
    const struct try_root *root = result->root;

    (void)settings;
    return root->comment ? rp_try_against_comment(root->comment, root->summary, root->program,
                                                  root->unit, root->against, root->nagainst, err)
                         : RP_OK;
}

static enum rp_code try_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                            const struct rp_settings *settings, struct rp_result *result,
                            struct rp_err *err)
{
    static const char *const of_against[] = {"want", "prepare", "whole", "markdown"};
    bool forget = rp_settings_flag(settings, "forget");
    struct rp_try_session *s;

    (void)dataset;
    if (forget || rp_settings_flag(settings, "outcomes")) {
        RP_TRY(show_outcomes(forget, &result->arena, result->root, err));
        return rp_arena_check(&result->arena, "listing outcomes", err);
    }
    for (size_t i = 0; i < sizeof of_against / sizeof *of_against && !is_against(settings); i++)
        if (rp_settings_has(settings, of_against[i]))
            return rp_err_set(err, RP_USAGE, "'--%s' goes with '--against'", of_against[i]);
    s = calloc(1, sizeof *s);
    RP_TRY(rp_err_need(s, err, "trying changes"));
    enum rp_code code = session_settings(s, ctx, settings, &result->arena, err);
    if (code == RP_OK && is_against(settings)) {
        code = against_run(s, settings, &result->arena, result, err);
    } else if (code == RP_OK) {
        code = session_run(s, settings, &result->arena, result->root, err);
        if (code == RP_OK)
            fill_answer(&result->arena, result->root, s);
    }
    rp_try_session_close(s);
    free(s);
    return code == RP_OK ? rp_arena_check(&result->arena, "trying changes", err) : code;
}

static const struct rp_option try_options[] = {
    {"command", 0, RP_OPT_TEXT, "WORD", NULL, "the program and its arguments",
     RP_OPT_REPEAT | RP_OPT_WORDS},
    {"time", 't', RP_OPT_DURATION, "TIME", "5m", "time limit for everything", 0},
    {"only", 0, RP_OPT_TEXT, "LIST", NULL,
     "comma-separated changes to try: fused,compile,workers=8 (all that fit)", 0},
    {"steps", 0, RP_OPT_INT, "2..1000", "20",
     "steps after which the parameters are compared with those of the unchanged program", 0},
    {"patience", 0, RP_OPT_DURATION, "TIME", "2m",
     "a variant that takes no step for this long has failed", 0},
    {"resume", 0, RP_OPT_FLAG, NULL, NULL,
     "keep what an earlier call with this program measured, and measure the rest", 0},
    {"allow-writes", 0, RP_OPT_FLAG, NULL, NULL,
     "let the variants write to the program's folders: its files are not protected", 0},
    {"allow-write", 0, RP_OPT_TEXT, "PATH", NULL,
     "let them write to this file or folder, outside of the program's folders", RP_OPT_REPEAT},
    {"no-predict", 0, RP_OPT_FLAG, NULL, NULL, "do not record the program to predict the changes",
     0},
    {"learn", 0, RP_OPT_FLAG, NULL, NULL,
     "keep what was predicted and measured, for the intervals of later predictions", 0},
    {"outcomes", 0, RP_OPT_FLAG, NULL, NULL, "list what earlier calls kept, and run nothing", 0},
    {"forget", 0, RP_OPT_FLAG, NULL, NULL, "remove what earlier calls kept, and run nothing", 0},
    {"no-together", 0, RP_OPT_FLAG, NULL, NULL,
     "do not measure the changes that were faster combined in one variant", 0},
    {"against", 0, RP_OPT_TEXT, "WHAT", NULL,
     "compare the program as it is with a git revision, a patch file or a folder", RP_OPT_REPEAT},
    {"against-command", 0, RP_OPT_TEXT, "CMD", NULL, "compare with another command instead",
     RP_OPT_REPEAT},
    {"want", 0, RP_OPT_CHOICE, "faster|not-slower", "faster",
     "with '--against': exit with 1 unless this holds for yours", 0},
    {"prepare", 0, RP_OPT_TEXT, "CMD", NULL,
     "build the other program in its folder with this command", 0},
    {"whole", 0, RP_OPT_FLAG, NULL, NULL,
     "with '--against': measure from start to end, even if there are steps", 0},
    {"markdown", 0, RP_OPT_PATH, "FILE", NULL,
     "with '--against': also write the answer as a pull-request comment", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_try = {
    .question =
        {.name = "try",
         .group = "predict",
         .summary = "make changes from outside, and measure what each brings",
         .details =
             "Runs the unchanged script for some steps, then variants of it, each with one change "
             "that is made from outside: TF32, bfloat16, a fused optimizer, torch.compile, workers "
             "of loaders and more. All variants are alive at the same time and take turns of a few "
             "steps, so that they meet the same noise; the unchanged script runs twice, as a "
             "control. A change counts only if it took effect, and if the parameters change in the "
             "same way as without it. What the script writes goes to a temporary folder.",
         .examples = "reprise try -- python train.py\tall changes that fit, in five minutes\n"
                     "reprise try --only fused,compile --time 2m -- python train.py\ttwo of them\n"
                     "reprise try -- torchrun --nproc-per-node 8 train.py\tall ranks\n"
                     "reprise try --against HEAD~1 -- python train.py\tis my change faster?\n",
         .accepts = RP_ACCEPTS_SOURCES,
         .options = try_options,
         .type = &try_type,
         .anytime = 1},
    .run = try_run,
    .write = try_write};
