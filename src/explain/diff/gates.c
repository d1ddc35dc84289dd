/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gates are decided by the recorded values. A limit relative to the base fails only if the change
 * exceeds the noise, when that is known; a target has no noise, since the measured value itself
 * counts.
 */
#include "explain/diff/gates.h"

#include "base/decides.h"
#include "base/text.h"
#include "io/lines.h"
#include "result/print_units.h"
#include "result/settings.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_GATES 64
RP_LIMIT(MOST_GATES, "gates", "more are refused");
#define MOST_FILE (1 << 20)
RP_LIMIT(MOST_FILE, "bytes", "a larger file is refused");

struct metric {
    const char *name;
    enum rp_unit unit;
    bool worse_up;
    const char *needs; /* of the recording */
};

static const struct metric metrics[RP_GATE_METRICS] = {
#define GATE_METRIC(id, name, unit, up, needs) {name, RP_UNIT_##unit, up, needs},
    RP_GATE_MAP(GATE_METRIC)
#undef GATE_METRIC
};

/* ------------------------------------------------------------------ texts */

static int metric_of(const char *word, size_t n)
{
    for (int i = 0; i < RP_GATE_METRICS; i++)
        if (strlen(metrics[i].name) == n && !memcmp(metrics[i].name, word, n))
            return i;
    return -1;
}

bool rp_gates_amount(const char *text, enum rp_unit unit, double *out)
{
    static const struct rp_option forms[] = {
        {"time", 0, RP_OPT_DURATION, "T", NULL, "a time", 0},
        {"bytes", 0, RP_OPT_BYTES, "N", NULL, "an amount of memory", 0},
        {"count", 0, RP_OPT_COUNT, "N", NULL, "a number", 0},
        RP_OPTION_END};
    const char *name = unit == RP_UNIT_NS ? "time" : unit == RP_UNIT_BYTES ? "bytes" : "count";
    struct rp_setting given = {name, text};
    struct rp_settings checked;

    if (unit == RP_UNIT_NS && !isalpha((unsigned char)text[strlen(text) - 1]))
        return false; /* a time has a unit */
    if (rp_settings_init(&checked, forms, &given, 1, NULL) != RP_OK)
        return false;
    *out = (double)rp_settings_int(&checked, name);
    return true;
}

/* Reads the value after the operator: "2%", "-1pt", "50us". Its sign is optional, because the
   metric's direction is known. */
static bool read_value(const char *text, const struct metric *m, struct rp_gate *gate)
{
    size_t n = strlen(text);
    char *end;

    if (gate->form != RP_GATE_TARGET && (*text == '-' || *text == '+')) {
        if ((*text == '+') != m->worse_up)
            return false;
        text++, n--;
    }
    if (!n || !isdigit((unsigned char)*text))
        return false;
    gate->limit = strtod(text, &end);
    if (!strcmp(end, "%")) {
        gate->limit /= 100;
        return gate->form != RP_GATE_TARGET || m->unit == RP_UNIT_RATIO;
    }
    if (gate->form == RP_GATE_SHARE)
        gate->form = RP_GATE_AMOUNT;
    if (m->unit == RP_UNIT_RATIO) {
        gate->limit /= 100;
        return !strcmp(end, "pt") && gate->form != RP_GATE_TARGET;
    }
    return rp_gates_amount(text, m->unit, &gate->limit);
}

/* "step=2%", "mfu>=40%" */
static enum rp_code parse_gate(const char *word, const char *where, struct rp_gate *out,
                               struct rp_err *err)
{
    size_t n = strcspn(word, "<>=");
    const char *value = word + n;
    int metric = metric_of(word, n);

    if (metric < 0) {
        char names[256] = "";

        for (int i = 0; i < RP_GATE_METRICS; i++) {
            strcat(names, i ? ", " : "");
            strcat(names, metrics[i].name);
        }
        return rp_err_set(err, RP_USAGE, "%s: there is no metric '%.*s'; there are %s", where,
                          (int)n, word, names);
    }
    *out = (struct rp_gate){.metric = (uint8_t)metric,
                            .form = *value == '=' ? RP_GATE_SHARE : RP_GATE_TARGET};
    if (*value == '=')
        value++;
    else if ((metrics[metric].worse_up ? *value == '<' : *value == '>') && value[1] == '=')
        value += 2;
    else if (*value)
        return rp_err_set(
            err, RP_USAGE, "%s: '%s': %s is better the %s it is, so a target for it is %s%s=…",
            where, word, metrics[metric].name, metrics[metric].worse_up ? "smaller" : "larger",
            metrics[metric].name, metrics[metric].worse_up ? "<" : ">");
    if (!read_value(value, &metrics[metric], out))
        return rp_err_set(
            err, RP_USAGE,
            "%s: '%s' is not a limit of a metric; such as step=2%%, step=50us, mfu=-1pt, "
            "mfu>=40%%, memory_peak<=60GB",
            where, word);
    return RP_OK;
}

enum rp_code rp_gates_parse(struct rp_gates *gates, const char *text, const char *where,
                            struct rp_err *err)
{
    char word[128];

    if (!*text)
        return rp_err_set(err, RP_USAGE, "%s: there is no gate, such as step=2%%", where);
    while (*text) {
        size_t n = strcspn(text, ",");
        struct rp_gate gate;

        if (n >= sizeof word || gates->list.n == MOST_GATES)
            return rp_err_set(err, RP_USAGE, "%s: more than %d gates, or one that is too long",
                              where, MOST_GATES);
        memcpy(word, text, n);
        word[n] = '\0';
        RP_TRY(parse_gate(word, where, &gate, err));
        RP_TRY(rp_vec_push(&gates->list, gate, err));
        text += n + (text[n] == ',');
    }
    return RP_OK;
}

void rp_gates_release(struct rp_gates *gates)
{
    rp_vec_release(&gates->list);
    rp_vec_release(&gates->accepted);
}

/* ------------------------------------------------------------------ named baselines */

struct gate_file {
    struct rp_gates *gates;
    const char *name;
    struct rp_arena *arena;
    bool found; /* the file has a line about the name */
};

/* The next word of a line, in the arena; the last one is the rest of the line. */
static const char *next_word(struct gate_file *f, const char **at, bool last)
{
    size_t n;

    while (isspace((unsigned char)**at))
        ++*at;
    const char *begin = *at;
    while (**at && (last || !isspace((unsigned char)**at)))
        ++*at;
    for (n = (size_t)(*at - begin); n && isspace((unsigned char)begin[n - 1]); n--)
        ;
    return rp_arena_copy(f->arena, begin, n);
}

/* "2026-11-09" */
static bool is_date(const char *text)
{
    for (size_t i = 0; i < 10; i++)
        if (i == 4 || i == 7 ? text[i] != '-' : !isdigit((unsigned char)text[i]))
            return false;
    return !text[10];
}

static enum rp_code read_accepted(struct gate_file *f, const char *at, const char *where,
                                  struct rp_err *err)
{
    struct rp_gate_accepted accepted = {0};
    const char *gate = next_word(f, &at, false);

    accepted.date = next_word(f, &at, false);
    accepted.reason = next_word(f, &at, true);
    RP_TRY(rp_arena_check(f->arena, "reading baselines", err));
    RP_TRY(parse_gate(gate, where, &accepted.gate, err));
    if (accepted.gate.form == RP_GATE_TARGET || !is_date(accepted.date) || !*accepted.reason)
        return rp_err_set(err, RP_USAGE,
                          "%s: expected what is accepted, the date and the reason, such as 'accept "
                          "%s step=5%% 2026-11-09 larger vocabulary'",
                          where, f->name);
    return rp_vec_push(&f->gates->accepted, accepted, err);
}

/* Makes a path relative to the file that names it. */
static const char *resolve(struct gate_file *f, const char *file, const char *path)
{
    size_t folder = (size_t)(rp_text_file(file) - file);

    return *path == '/' ? path : rp_arena_textf(f->arena, "%.*s%s", (int)folder, file, path);
}

static enum rp_code read_line(void *user, const char *path, size_t number, const char *line,
                              size_t n, struct rp_err *err)
{
    struct gate_file *f = user;
    const char *at = rp_arena_copy(f->arena, line, n), *key, *name;
    const char *where = rp_arena_textf(f->arena, "'%s', line %zu", path, number);

    RP_TRY(rp_arena_check(f->arena, "reading baselines", err));
    key = next_word(f, &at, false);
    if (!*key || *key == '#')
        return RP_OK;
    name = next_word(f, &at, false);
    RP_TRY(rp_arena_check(f->arena, "reading baselines", err));
    if (strcmp(key, "baseline") != 0 && strcmp(key, "gate") != 0 && strcmp(key, "accept") != 0)
        return rp_err_set(err, RP_USAGE, "%s: expected 'baseline', 'gate' or 'accept', not '%.40s'",
                          where, key);
    if (!*name)
        return rp_err_set(err, RP_USAGE, "%s: a name of a baseline is missing", where);
    if (strcmp(name, f->name) != 0)
        return RP_OK;
    f->found = true;
    if (!strcmp(key, "accept"))
        return read_accepted(f, at, where, err);
    at = next_word(f, &at, true);
    RP_TRY(rp_arena_check(f->arena, "reading baselines", err));
    if (!strcmp(key, "gate"))
        return rp_gates_parse(f->gates, at, where, err);
    if (!*at || f->gates->base)
        return rp_err_set(err, RP_USAGE, "%s: baseline '%s' %s", where, name,
                          *at ? "has a path already" : "has no path");
    f->gates->base = resolve(f, path, at);
    return RP_OK;
}

enum rp_code rp_gates_read(struct rp_gates *gates, const char *path, const char *name,
                           struct rp_arena *arena, struct rp_err *err)
{
    struct gate_file file = {gates, name, arena, false};

    RP_TRY(rp_lines_read(path, MOST_FILE, arena, read_line, &file, err));
    RP_TRY(rp_arena_check(arena, "reading baselines", err));
    if (!file.found || !gates->base)
        return rp_err_set(err, RP_USAGE, "'%s' has no line 'baseline %s PATH'", path, name);
    return RP_OK;
}

/* ------------------------------------------------------------------ decisions */

/* The amount in the unit of the metric. */
static double amount_of(const struct rp_gate *gate, double base)
{
    return gate->form == RP_GATE_SHARE ? gate->limit * fabs(base) : gate->limit;
}

static void write_texts(struct rp_gate_row *row, const struct rp_gate *gate, const struct metric *m,
                        struct rp_arena *arena)
{
    bool target = gate->form == RP_GATE_TARGET;
    const char *limit = rp_units_text(arena, row->limit, m->unit);

    row->base_text = isnan(row->base) ? NULL : rp_units_text(arena, row->base, m->unit);
    row->new_text = rp_units_text(arena, row->new_value, m->unit);
    row->delta_text = isnan(row->delta) ? NULL
                                        : rp_arena_textf(arena, "%s%s", row->delta > 0 ? "+" : "",
                                                         rp_units_text(arena, row->delta, m->unit));
    if (m->unit == RP_UNIT_RATIO && !isnan(row->delta))
        row->delta_text = rp_arena_textf(arena, "%+.1f pt", 100 * row->delta);
    if (m->unit == RP_UNIT_RATIO && !target)
        limit = rp_arena_textf(arena, "%.1f pt", 100 * row->limit);
    row->limit_text =
        target ? rp_arena_textf(arena, "%s %s", m->worse_up ? "at most" : "at least", limit)
               : rp_arena_textf(arena, "%s%s", m->worse_up ? "+" : "-", limit);
    row->result_text = row->passed ? "passed" : "failed";
    if (!isnan(row->accepted))
        row->result_text = rp_arena_textf(arena, "%s; accepted on %s: %s", row->result_text,
                                          row->accepted_date, row->reason);
}

static enum rp_code decide_one(const struct rp_gates *gates, const struct rp_gate *gate,
                               const struct rp_gate_values *v, struct rp_arena *arena,
                               struct rp_gate_row *row, struct rp_err *err)
{
    static const char *const units[] = {[RP_UNIT_NS] = "ns",
                                        [RP_UNIT_RATIO] = "share",
                                        [RP_UNIT_COUNT] = "per_s",
                                        [RP_UNIT_BYTES] = "bytes"};
    const struct metric *m = &metrics[gate->metric];
    bool target = gate->form == RP_GATE_TARGET;

    if (isnan(v->fresh) || (isnan(v->base) && !target))
        return rp_err_set(err, RP_FORMAT,
                          "gate '%s' cannot decide: the %s does not have it; it needs %s", m->name,
                          isnan(v->fresh) ? "new run" : "base", m->needs);
    *row = (struct rp_gate_row){.metric = m->name,
                                .unit = units[m->unit],
                                .base = v->base,
                                .new_value = v->fresh,
                                .delta = v->fresh - v->base,
                                .noise = target ? NAN : v->noise};
    row->accepted = NAN;
    for (size_t i = 0; i < gates->accepted.n && gate->form != RP_GATE_TARGET; i++) {
        const struct rp_gate_accepted *a = &gates->accepted.at[i];

        if (a->gate.metric != gate->metric)
            continue;
        row->accepted = (isnan(row->accepted) ? 0 : row->accepted) + amount_of(&a->gate, row->base);
        row->accepted_date = a->date; /* of several the last counts */
        row->reason = a->reason;
    }
    row->limit = amount_of(gate, v->base) + (isnan(row->accepted) ? 0 : row->accepted);
    double worse = (m->worse_up ? 1 : -1) * (target ? v->fresh - row->limit : row->delta);
    row->passed = target ? worse <= 0 : worse <= row->limit || worse <= row->noise;
    write_texts(row, gate, m, arena);
    return RP_OK;
}

enum rp_code rp_gates_decide(const struct rp_gates *gates,
                             const struct rp_gate_values values[RP_GATE_METRICS],
                             struct rp_arena *arena, struct rp_gate_row **rows, size_t *n,
                             bool *failed, struct rp_err *err)
{
    *n = 0;
    *rows = RP_ARENA_NEW(arena, struct rp_gate_row, gates->list.n + 1);
    RP_TRY(rp_arena_check(arena, "deciding gates", err));
    for (size_t i = 0; i < gates->list.n; i++, ++*n) {
        const struct rp_gate *gate = &gates->list.at[i];

        RP_TRY(decide_one(gates, gate, &values[gate->metric], arena, &(*rows)[i], err));
        *failed = *failed || !(*rows)[i].passed;
    }
    return rp_arena_check(arena, "deciding gates", err);
}

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_gate_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(metric, STR, NONE, "gate", "the limited quantity", 0),
    ROW(unit, STR, NONE, NULL, "unit of the numbers: ns, bytes, share, per_s", 0),
    ROW(base, F64, NONE, NULL, "number in the base, or null", RP_NULLABLE),
    ROW(new_value, F64, NONE, NULL, "value in the new run", 0),
    ROW(delta, F64, NONE, NULL, "new - base, or null", RP_NULLABLE),
    ROW(limit, F64, NONE, NULL,
        "how much worse it may be, with what was accepted; for a target, the value", 0),
    ROW(noise, F64, NONE, NULL, "noise of the difference, or null", RP_NULLABLE),
    ROW(accepted, F64, NONE, NULL, "how much of the limit was accepted, or null", RP_NULLABLE),
    ROW(accepted_date, STR, NONE, NULL, "when, or null", 0),
    ROW(reason, STR, NONE, NULL, "why, or null", 0),
    ROW(passed, BOOL, NONE, NULL, "not worse than allowed, or within the noise", 0),
    ROW(base_text, STR, NONE, "base", "text output only", RP_SCREEN),
    ROW(new_text, STR, NONE, "new", "text output only", RP_SCREEN),
    ROW(delta_text, STR, NONE, "change", "text output only", RP_SCREEN),
    ROW(limit_text, STR, NONE, "limit", "text output only", RP_SCREEN),
    ROW(result_text, STR, NONE, "result", "text output only", RP_SCREEN),
    RP_FIELD_END};
const struct rp_type rp_gate_row_type = {"gate", sizeof(struct rp_gate_row), row_fields, NULL};
