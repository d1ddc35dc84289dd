/* SPDX-License-Identifier: Apache-2.0 */
/* Adds a finding to the answer: its texts, its cost, and what to try. */
#include "explain/findings/finding.h"

#include <math.h>
#include <string.h>

#define EVIDENCE_MOST 4
#define LEAST_SHARE   0.01
RP_LIMIT(EVIDENCE_MOST, "sentences", "later ones are not said");
RP_DECISION(LEAST_SHARE, "of the span",
            "costs are printed to a tenth of a percent: below a hundredth, rounding and what the "
            "recorder itself costs are as large",
            "explain/a_finding_costs_a_hundredth_of_the_span");

void rp_findings_join_hint(struct rp_arena *arena, struct rp_report_finding *finding)
{
    finding->hint = finding->ntries ? finding->tries[0].text : "";
    for (size_t i = 1; i < finding->ntries; i++)
        finding->hint = rp_arena_textf(arena, "%s; %s", finding->hint, finding->tries[i].text);
}

/* An answer has room for every kind of every finding once. */
static size_t most_findings(void)
{
    size_t n = 0;

    for (const struct rp_finding *const *row = rp_finding_rows; *row; row++)
        for (size_t i = 0; (*row)->kinds[i].title; i++)
            n++;
    return n;
}

struct rp_report_finding *rp_findings_add(struct rp_findings *f, unsigned kind, int64_t lost_ns)
{
    const struct rp_finding_kind *found = &f->row->kinds[kind];
    double least = found->least_share > 0 ? found->least_share : LEAST_SHARE;

    if (!f->out->findings)
        f->out->findings = RP_ARENA_NEW(f->arena, struct rp_report_finding, most_findings());
    if (!f->out->findings || lost_ns <= 0 || (double)lost_ns < least * (double)f->span_ns ||
        f->out->nfindings == most_findings())
        return NULL;
    struct rp_report_finding *to = &f->out->findings[f->out->nfindings];
    *to = (struct rp_report_finding){
        .row = f->row,
        .id = f->row->id,
        .title = found->title,
        .lost_ns = lost_ns,
        .share = (double)lost_ns / (double)f->span_ns,
        .where = {.rank = rp_findings_lead_number(f), .step = RP_ABSENT_I64},
        .evidence = RP_ARENA_NEW(f->arena, const char *, EVIDENCE_MOST)};
    if (!to->evidence)
        return NULL;

    /* Fill in what to try, for this kind of program. */
    const struct rp_advice_row *rows[RP_ADVICE_MOST];
    size_t i, n = rp_advice_find(f->row, kind, &rp_findings_lead(f)->workload, rows);
    bool known = f->out->predictable && !f->row->kinds[kind].unpredicted;
    to->tries = RP_ARENA_NEW(f->arena, struct rp_report_try, RP_ADVICE_MOST);
    for (i = 0; i < n && to->tries; i++)
        to->tries[to->ntries++] = (struct rp_report_try){
            .text = rows[i]->text,
            .what_if = known ? rows[i]->what_if : NULL,
            .look = rows[i]->topic == RP_ADVISE_LOOK,
            .topic = f->row->kinds[kind].unpredicted ? NULL : rows[i]->what_if,
            .step_ns = RP_ABSENT_I64,
            .predicted_ns = RP_ABSENT_I64,
            .change_ratio = NAN};
    rp_findings_join_hint(f->arena, to);

    f->out->nfindings++;
    return to;
}

struct rp_report_finding *rp_findings_add_compute(struct rp_findings *f, unsigned kind,
                                                  int64_t lost_ns)
{
    struct rp_report_finding *finding = rp_findings_add(f, kind, lost_ns);

    if (finding) {
        finding->compute_ns = lost_ns;
        finding->at_most = true;
    }
    return finding;
}

/* The cost is a lower limit if ranks are absent, because they may have waited for the place,
   too. */
struct rp_report_finding *rp_findings_add_place(struct rp_findings *f, unsigned kind,
                                                const struct rp_place_found *place)
{
    struct rp_report_finding *to = rp_findings_add(f, kind, llround(place->cost_ns));
    struct rp_report_who who = {.kind = rp_place_kind_names[place->kind],
                                .ranks = RP_ARENA_NEW(f->arena, int64_t, place->nranks + 1),
                                .hosts = RP_ARENA_NEW(f->arena, const char *, place->nhosts + 1)};

    if (!to || !who.ranks || !who.hosts)
        return NULL;
    for (size_t i = 0; i < place->nranks; i++)
        who.ranks[who.nranks++] = rp_findings_number(f, place->ranks[i]);
    for (size_t i = 0; i < place->nhosts; i++)
        who.hosts[who.nhosts++] = f->chain->places.hosts[place->hosts[i]];
    to->who = who;
    to->settled = true;
    to->where.late = true;
    if (place->nranks)
        to->where.rank = who.ranks[0];
    return to;
}

/* "0, 3 and 5", "0 to 7", "a and b". */
static const char *list_text(struct rp_findings *f, const struct rp_report_who *who, bool hosts)
{
    size_t n = hosts ? who->nhosts : who->nranks;
    const char *text = "";

    if (!hosts && n > 2 && who->ranks[n - 1] - who->ranks[0] + 1 == (int64_t)n)
        return rp_arena_textf(f->arena, "%lld to %lld", (long long)who->ranks[0],
                              (long long)who->ranks[n - 1]);
    for (size_t i = 0; i < n; i++) {
        const char *join = !i ? "" : i + 1 < n ? ", " : " and ";

        text = hosts ? rp_arena_textf(f->arena, "%s%s%s", text, join, who->hosts[i])
                     : rp_arena_textf(f->arena, "%s%s%lld", text, join, (long long)who->ranks[i]);
    }
    return text;
}

const char *rp_findings_who_text(struct rp_findings *f, const struct rp_report_who *who)
{
    const char *ranks = list_text(f, who, false), *s = who->nranks == 1 ? "" : "s";

    if (!strcmp(who->kind, "rank"))
        return rp_arena_textf(f->arena, "rank%s %s", s, ranks);
    if (!strcmp(who->kind, "stage"))
        return rp_arena_textf(f->arena, "the stage of rank%s %s", s, ranks);
    if (!strcmp(who->kind, "host"))
        return rp_arena_textf(f->arena, "host %s (rank%s %s)", list_text(f, who, true), s, ranks);
    return rp_arena_textf(f->arena, "host%s %s", who->nhosts == 1 ? "" : "s",
                          list_text(f, who, true));
}

const char *rp_findings_times_text(struct rp_findings *f, double times)
{
    return times < 2 ? rp_arena_textf(f->arena, "%.1f %% longer than", 100 * (times - 1))
                     : rp_arena_textf(f->arena, "%.1f times as long as", times);
}

struct rp_report_finding *rp_findings_add_doubt(struct rp_findings *f, unsigned kind)
{
    struct rp_report_finding *finding = rp_findings_add(f, kind, INT64_MAX);

    if (finding) {
        finding->lost_ns = 0;
        finding->share = 0;
    }
    return finding;
}

void rp_findings_say(struct rp_report_finding *finding, const char *text)
{
    if (finding->nevidence < EVIDENCE_MOST)
        finding->evidence[finding->nevidence++] = text;
}
