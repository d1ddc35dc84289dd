/* SPDX-License-Identifier: Apache-2.0 */
/* The table of findings, and what is done with all of them. */
#include "base/order.h"
#include "explain/findings/finding.h"
#include "sim/opportunities.h"

const struct rp_finding *const rp_finding_rows[] = {
#define ROW_ADDRESS(name) &rp_finding_##name,
    RP_FINDING_ROWS(ROW_ADDRESS, ROW_ADDRESS)
#undef ROW_ADDRESS
        NULL,
};

/* The types of what findings keep, by index. */
static const struct rp_type *const kept_types[RP_KEPT_COUNT] = {
#define NO_TYPE(name)
#define TYPE_ADDRESS(name) &rp_kept_##name,
    RP_FINDING_ROWS(NO_TYPE, TYPE_ADDRESS)
#undef NO_TYPE
#undef TYPE_ADDRESS
};

enum rp_code rp_findings_measure(const struct rp_finding_rank *rank, struct rp_report_part *part,
                                 struct rp_err *err)
{
    for (const struct rp_finding *const *row = rp_finding_rows; *row; row++) {
        struct rp_kept *kept = &part->kept[(*row)->place];

        if (!(*row)->measure || (!rank->on_device && !(*row)->of_any_rank))
            continue;
        kept->at =
            rp_arena_calloc(rank->arena, 1, kept_types[(*row)->place]->size, _Alignof(max_align_t));
        RP_TRY(rp_err_need(kept->at, err, "measuring findings"));
        kept->n = 1;
        RP_TRY((*row)->measure(rank, kept->at, err));
    }
    return rp_arena_check(rank->arena, "measuring findings", err);
}

/* ------------------------------------------------------------------ all ranks */

RP_ORDER(by_lost, struct rp_report_finding, RP_DOWN(lost_ns), strcmp(a->id, b->id))

/* What is judged of a rank, without the time by which its clock was set. */
static int64_t window_of(const struct rp_ranks *ranks, const struct rp_chain *chain, size_t r)
{
    const struct rp_breakdown *whole = &rp_report_part_of(ranks, r)->whole;
    const struct rp_clock *clock = chain->clocks ? &chain->clocks[r] : NULL;
    int64_t ns = whole->window_ns;

    for (size_t i = 0; clock && i < clock->nsteps; i++)
        if (clock->steps[i].from_ns > whole->begin_ns && clock->steps[i].from_ns < whole->end_ns)
            rp_ns_add(&ns, clock->steps[i].add_ns);
    return ns;
}

static struct rp_findings findings_of(const struct rp_ranks *ranks, const struct rp_chain *chain,
                                      struct rp_arena *arena, struct rp_report_root *out)
{
    int32_t absent = ranks->world_size - (int32_t)ranks->n;
    int64_t span_ns = 0;

    /* a rank that comes to its only collective last has hardly a window of its own */
    for (size_t r = 0; r < ranks->n; r++)
        if (window_of(ranks, chain, r) > span_ns)
            span_ns = window_of(ranks, chain, r);
    return (struct rp_findings){.ranks = ranks,
                                .chain = chain,
                                .arena = arena,
                                .out = out,
                                .span_ns = span_ns,
                                .absent = absent > 0 ? absent : 0};
}

static enum rp_code sort_findings(struct rp_findings *f, struct rp_err *err)
{
    if (f->out->nfindings)
        rp_sort(f->out->findings, f->out->nfindings, sizeof *f->out->findings, by_lost);
    return rp_arena_check(f->arena, "writing findings", err);
}

/* What simulate predicts is about steps that will be repeated, not about a start-up. */
enum rp_code rp_findings_find(const struct rp_ranks *ranks, const struct rp_chain *chain,
                              struct rp_arena *arena, struct rp_report_root *out,
                              struct rp_err *err)
{
    struct rp_findings f = findings_of(ranks, chain, arena, out);

    out->predictable = rp_findings_lead(&f)->recorded_steps && !rp_gaps_start_up(chain->cause_ns);
    for (const struct rp_finding *const *row = rp_finding_rows; *row; row++) {
        f.row = *row;
        if (f.row->find)
            f.row->find(&f);
    }
    return sort_findings(&f, err);
}

/* ------------------------------------------------------------------ what changes would save */

/* Whether a finding has that name, or already advises that change. */
static bool is_answered(const struct rp_report_root *out, const char *id, const char *name)
{
    size_t i, k, len = strlen(name);

    for (i = 0; i < out->nfindings; i++) {
        if (!strcmp(out->findings[i].id, id))
            return true;
        for (k = 0; k < out->findings[i].ntries; k++) {
            const char *text = out->findings[i].tries[k].what_if;

            if (text && !strncmp(text, name, len) && (!text[len] || text[len] == '='))
                return true;
        }
    }
    return false;
}

/* What-ifs predict the gain in one step, but costs are times of the span. The same share of the
   span is assumed, without its beginning, in which the device still ran the step before. */
static int64_t gain_in_span(const struct rp_findings *f, const struct rp_opportunity *o)
{
    int64_t step = rp_ns_sum(o->step_ns, o->gain_ns);
    double share = step > 0 ? (double)o->gain_ns / (double)step : 0;

    return (int64_t)(share *
                     (double)rp_ns_between(rp_findings_lead(f)->speed.earlier_ns, f->span_ns));
}

static void add_change(struct rp_findings *f, const struct rp_opportunity *o)
{
    for (size_t i = 0; f->row->changes[i].what_if; i++) {
        if (strcmp(o->row->name, f->row->changes[i].what_if) != 0 ||
            is_answered(f->out, f->row->id, o->row->name))
            continue;
        struct rp_report_finding *finding =
            rp_findings_add_compute(f, f->row->changes[i].kind, gain_in_span(f, o));
        if (finding)
            RP_SAY(f, finding, "simulate: with %s a step takes %s instead of %s", o->what_if,
                   rp_findings_time(f, o->step_ns),
                   rp_findings_time(f, rp_ns_sum(o->step_ns, o->gain_ns)));
    }
}

enum rp_code rp_findings_find_changes(const struct rp_ranks *ranks, const struct rp_chain *chain,
                                      const struct rp_opportunities *list, struct rp_arena *arena,
                                      struct rp_report_root *out, struct rp_err *err)
{
    struct rp_findings f = findings_of(ranks, chain, arena, out);

    for (size_t i = 0; i < list->n; i++)
        for (const struct rp_finding *const *row = rp_finding_rows; *row; row++) {
            f.row = *row;
            add_change(&f, &list->at[i]);
        }
    return sort_findings(&f, err);
}
