/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gates of `report`: limits for what a finding costs, or for what is lost to a place, as a check in
 * CI or the epilogue of a scheduler uses them.
 *
 *     straggler<=2%,host<=5ms,host:node003<=1%,any<=20%
 */
#include "explain/diff/gates.h"
#include "base/decides.h"
#include "explain/findings/finding.h"
#include "explain/report/join.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GATES_MOST 64
RP_LIMIT(GATES_MOST, "gates", "of one report; more are refused");
#define GATE_MOST 128
RP_LIMIT(GATE_MOST, "bytes", "of one gate; a longer one is refused");
static const char any[] = "any";

/* What a gate limits: an id of a finding, or "any", or a place. */
struct subject {
    const char *word;
    const char *kind, *value; /* for a place: "host", and "node003" or NULL; else NULL */
};

static bool is_place(const char *word, size_t n)
{
    for (int k = 0; k < RP_PLACE_KINDS; k++)
        if (strlen(rp_place_kind_names[k]) == n && !memcmp(rp_place_kind_names[k], word, n))
            return true;
    return false;
}

static enum rp_code unknown_subject(const char *word, struct rp_arena *arena, struct rp_err *err)
{
    const char *names = any;

    for (int k = 0; k < RP_PLACE_KINDS; k++)
        names = rp_arena_textf(arena, "%s, %s", names, rp_place_kind_names[k]);
    for (const struct rp_finding *const *row = rp_finding_rows; *row; row++)
        names = rp_arena_textf(arena, "%s, %s", names, (*row)->id);
    return rp_err_set(err, RP_USAGE,
                      "option '--gate': '%s' is neither a finding nor a place; there are %s", word,
                      names);
}

static enum rp_code read_subject(const char *word, struct rp_arena *arena, struct subject *out,
                                 struct rp_err *err)
{
    size_t n = strcspn(word, ":");

    *out = (struct subject){.word = word};
    if (is_place(word, n)) {
        out->kind = rp_arena_copy(arena, word, n);
        out->value = word[n] && word[n + 1] ? word + n + 1 : NULL;
        return word[n] && !out->value ? unknown_subject(word, arena, err) : RP_OK;
    }
    if (!strcmp(word, any))
        return RP_OK;
    for (const struct rp_finding *const *row = rp_finding_rows; *row; row++)
        if (!strcmp((*row)->id, word))
            return RP_OK;
    return unknown_subject(word, arena, err);
}

/* Reads "2%" or "5ms". */
static enum rp_code read_limit(const char *text, struct rp_gate_row *row, struct rp_err *err)
{
    char *end;

    row->unit = "ns";
    if (rp_gates_amount(text, RP_UNIT_NS, &row->limit))
        return RP_OK;
    row->unit = "share";
    row->limit = strtod(text, &end) / 100;
    return end != text && !strcmp(end, "%") && row->limit >= 0
               ? RP_OK
               : rp_err_set(
                     err, RP_USAGE,
                     "option '--gate': '%s<=%s' is not a limit of a finding or place; such as "
                     "straggler<=2%%, host<=5ms, rank:3<=1%%",
                     row->metric, text);
}

static bool has_value(const struct rp_report_who *who, const char *value)
{
    char *end;
    long long number = strtoll(value, &end, 10);

    for (size_t i = 0; i < who->nhosts; i++)
        if (!strcmp(who->hosts[i], value))
            return true;
    for (size_t i = 0; i < who->nranks && !*end; i++)
        if (who->ranks[i] == number)
            return true;
    return false;
}

static bool is_about(const struct rp_report_finding *f, const struct subject *s)
{
    if (!s->kind)
        return !strcmp(s->word, any) || !strcmp(s->word, f->id);
    return f->who.kind && !strcmp(f->who.kind, s->kind) &&
           (!s->value || has_value(&f->who, s->value));
}

/* Costs of findings overlap, so the largest counts. */
static enum rp_code decide(const struct rp_report_ctx *j, const struct subject *s,
                           struct rp_gate_row *row, struct rp_err *err)
{
    bool share = !strcmp(row->unit, "share");
    enum rp_unit unit = share ? RP_UNIT_RATIO : RP_UNIT_NS;

    if (s->kind && !j->chain.places.known)
        return rp_err_set(err, RP_FORMAT,
                          "gate '%s' cannot decide: which place is slow is not known%s%s", s->word,
                          j->chain.places.why ? ": " : "",
                          j->chain.places.why ? j->chain.places.why : "");
    for (size_t i = 0; i < j->out->nfindings; i++) {
        const struct rp_report_finding *f = &j->out->findings[i];
        double is = share ? f->share : (double)f->lost_ns;

        if (is_about(f, s) && is > row->new_value)
            row->new_value = is;
    }
    row->passed = row->new_value <= row->limit;
    row->new_text = rp_units_text(j->arena, row->new_value, unit);
    row->limit_text =
        rp_arena_textf(j->arena, "at most %s", rp_units_text(j->arena, row->limit, unit));
    row->result_text = row->passed ? "passed" : "failed";
    return RP_OK;
}

enum rp_code rp_report_decide_gates(const struct rp_report_ctx *j, const char *text, bool *failed,
                                    struct rp_err *err)
{
    struct rp_gate_row *rows = RP_ARENA_NEW(j->arena, struct rp_gate_row, GATES_MOST);

    RP_TRY(rp_err_need(rows, err, "deciding gates"));
    do {
        size_t n = strcspn(text, ",");
        char *word = rp_arena_copy(j->arena, text, n), *sign = word ? strstr(word, "<=") : NULL;
        struct rp_gate_row *row = &rows[j->out->ngates];
        struct subject s;

        RP_TRY(rp_arena_check(j->arena, "deciding gates", err));
        if (!sign || n >= GATE_MOST || j->out->ngates == GATES_MOST)
            return rp_err_set(err, RP_USAGE,
                              "option '--gate': expected up to %d limits such as straggler<=2%%, "
                              "not '%.40s'",
                              GATES_MOST, word);
        *sign = '\0';
        *row = (struct rp_gate_row){
            .metric = word, .base = NAN, .delta = NAN, .noise = NAN, .accepted = NAN};
        RP_TRY(read_subject(word, j->arena, &s, err));
        RP_TRY(read_limit(sign + 2, row, err));
        RP_TRY(decide(j, &s, row, err));
        *failed |= !row->passed;
        j->out->ngates++;
        text += n + (text[n] == ',');
    } while (*text);
    j->out->gates = rows;
    return rp_arena_check(j->arena, "deciding gates", err);
}
