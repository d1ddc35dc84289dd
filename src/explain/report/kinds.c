/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups steps by kind: those with the same kernels, warm-up, and what lies between steps (an
 * evaluation, a checkpoint). Steps are of one kind if less than 5 % of their kernels, by name,
 * differ (docs/definitions.md, "Kinds of steps"). Linear in the device work times the kinds.
 */
#include "base/decides.h"
#include "explain/report/report.h"

#include "base/order.h"
#include "explain/short_name.h"
#include "facts/times/intervals.h"
#include "facts/times/step_times.h"
#include "result/print_units.h"

#include <stdlib.h>
#include <string.h>

#define MOST_WORKS   8
#define UNLIKE       0.05
#define LEAST_USUAL  0.25
#define LEAST_SHOWN  0.01
#define NAME_SHOWN   40 /* of a kernel */
#define NO_STEP_HERE UINT32_MAX
RP_LIMIT(MOST_WORKS, "kinds by their kernels",
         "with more, steps have nothing in common, and no kinds are listed");
RP_DECISION(UNLIKE, "of the kernels of a step",
            "a few kernels more (a log, a larger buffer) are the same work",
            "explain/kinds_of_steps_have_edges");
RP_DECISION(LEAST_USUAL, "of the steps",
            "where the most frequent kind has fewer, no kind is the usual one",
            "explain/kinds_of_steps_have_edges");
RP_LIMIT(LEAST_SHOWN, "of the time", "with less outside of the usual kind, kinds are not listed");

struct work_kind {
    uint32_t steps, kernels; /* of the first of them */
    uint32_t *count;         /* by name: of that step */
    int64_t *ns, total_ns;   /* of the steps */
};

struct kinds_ctx {
    const struct rp_trace *t;
    const struct rp_work *w;
    const struct rp_report_part *part;
    struct rp_arena *arena, scratch;
    bool launched; /* the launches of most kernels were recorded */
    uint32_t nsteps, nnames;
    uint32_t *name_of;             /* by string: its number + 1 */
    rp_str *names;                 /* by number */
    uint32_t *first, *ids;         /* by step: the names of its kernels in `ids` */
    uint32_t *count;               /* by name, for one step; all zero in between */
    uint32_t *distinct, ndistinct; /* its names */
    struct work_kind kinds[MOST_WORKS];
    size_t n;
};

/* ------------------------------------------------------------------ the kernels of a step */

/* The step in which a kernel was launched: the last one that had begun. */
static uint32_t step_of(const struct kinds_ctx *c, const struct rp_work_item *x)
{
    const struct rp_step *s = c->t->steps;
    int64_t at = c->launched && x->launch != RP_NONE ? c->t->ev.ts_ns[x->launch] : x->begin_ns;
    size_t next;

    if (x->launch == RP_NONE && c->launched)
        return NO_STEP_HERE; /* belongs to a step before the first, or to none */
    RP_LOWER_BOUND(next, c->nsteps, s[next].begin_ns <= at);
    if (!next || ((next == c->nsteps || s[next - 1].flags & RP_STEP_BREAK_AFTER) &&
                  at >= s[next - 1].end_ns))
        return NO_STEP_HERE;
    return (uint32_t)next - 1;
}

static bool is_counted(const struct kinds_ctx *c, const struct rp_work_item *x, uint32_t *step)
{
    *step = c->t->ev.kind[x->event] == RP_KIND_KERNEL ? step_of(c, x) : NO_STEP_HERE;
    return *step != NO_STEP_HERE;
}

static enum rp_code list_kernels(struct kinds_ctx *c, struct rp_err *err)
{
    size_t i, n = c->w->items.n, launched = 0;
    uint32_t step, sum = 0, s;

    for (i = 0; i < n; i++)
        launched += c->w->items.at[i].launch != RP_NONE;
    c->launched = launched > n / 2 && !(c->t->steps[0].flags & RP_STEP_ON_DEVICE);

    c->name_of = RP_ARENA_NEW(&c->scratch, uint32_t, c->t->str.n + 1);
    c->names = RP_ARENA_NEW(&c->scratch, rp_str, c->t->str.n + 1);
    c->first = RP_ARENA_NEW(&c->scratch, uint32_t, c->nsteps + 2);
    c->ids = RP_ARENA_NEW(&c->scratch, uint32_t, n + 1);
    RP_TRY(rp_arena_check(&c->scratch, "comparing steps", err));
    for (i = 0; i < n; i++)
        if (is_counted(c, &c->w->items.at[i], &step))
            c->first[step + 1]++;
    for (s = 0; s <= c->nsteps; s++)
        c->first[s] = sum += c->first[s];
    for (i = n; i-- > 0;) {
        const struct rp_work_item *x = &c->w->items.at[i];
        rp_str name = c->t->ev.name[x->event];

        if (!is_counted(c, x, &step))
            continue;
        if (!c->name_of[name]) {
            c->names[c->nnames] = name;
            c->name_of[name] = ++c->nnames;
        }
        c->ids[--c->first[step + 1]] = c->name_of[name] - 1;
    }
    for (s = 0; s < c->nsteps; s++) /* now first[s + 1] is where step s begins */
        c->first[s] = c->first[s + 1];
    c->first[c->nsteps] = sum;
    c->count = RP_ARENA_NEW(&c->scratch, uint32_t, c->nnames + 1);
    c->distinct = RP_ARENA_NEW(&c->scratch, uint32_t, c->nnames + 1);
    return rp_arena_check(&c->scratch, "comparing steps", err);
}

/* ------------------------------------------------------------------ which are alike */

/* Whether the step that is counted is of a kind. */
static bool is_like(const struct kinds_ctx *c, uint32_t step, const struct work_kind *k)
{
    uint32_t kernels = c->first[step + 1] - c->first[step], i, common = 0;
    uint32_t most = kernels > k->kernels ? kernels : k->kernels;

    for (i = 0; i < c->ndistinct; i++) {
        uint32_t id = c->distinct[i];

        common += c->count[id] < k->count[id] ? c->count[id] : k->count[id];
    }
    return most == common || (double)(most - common) < UNLIKE * (double)most;
}

static enum rp_code add_step(struct kinds_ctx *c, uint32_t step, struct rp_err *err)
{
    struct work_kind *k;
    size_t i;

    /* Count the kernels of a step by name, and list the names. */
    c->ndistinct = 0;
    for (uint32_t m = c->first[step]; m < c->first[step + 1]; m++)
        if (!c->count[c->ids[m]]++)
            c->distinct[c->ndistinct++] = c->ids[m];

    for (i = 0; i < c->n && !is_like(c, step, &c->kinds[i]); i++)
        ;
    if (i == c->n && c->n < MOST_WORKS) {
        k = &c->kinds[c->n++];
        k->kernels = c->first[step + 1] - c->first[step];
        k->count = RP_ARENA_NEW(&c->scratch, uint32_t, c->nnames + 1);
        k->ns = RP_ARENA_NEW(&c->scratch, int64_t, c->nsteps + 1);
        RP_TRY(rp_arena_check(&c->scratch, "comparing steps", err));
        memcpy(k->count, c->count, c->nnames * sizeof *k->count);
    }
    for (uint32_t j = 0; j < c->ndistinct; j++)
        c->count[c->distinct[j]] = 0;
    if (i == MOST_WORKS) {
        c->n = MOST_WORKS + 1;
        return RP_OK;
    }
    k = &c->kinds[i];
    k->ns[k->steps++] = c->part->steps[step].b.window_ns;
    rp_ns_add(&k->total_ns, c->part->steps[step].b.window_ns);
    return RP_OK;
}

/* ------------------------------------------------------------------ what they are called */

/* The name whose count changes most from the first kind to the second. */
static const char *most_changed(const struct kinds_ctx *c, const struct work_kind *from,
                                const struct work_kind *to)
{
    uint32_t i, best = 0, most = 0;
    char text[NAME_SHOWN];

    for (i = 0; i < c->nnames; i++)
        if (to->count[i] > from->count[i] && to->count[i] - from->count[i] > most) {
            most = to->count[i] - from->count[i];
            best = i;
        }
    if (!most)
        return NULL;
    rp_short_name(rp_trace_str(c->t, c->names[best]), text, sizeof text);
    return rp_arena_text(c->arena, text);
}

/* "12 kernels more, mostly fill_kernel"; "gemm_256 instead of gemm_128". */
static const char *difference(const struct kinds_ctx *c, const struct work_kind *usual,
                              const struct work_kind *k)
{
    const char *more = most_changed(c, usual, k), *less = most_changed(c, k, usual);
    int64_t n = (int64_t)k->kernels - usual->kernels;

    if (n && (n > 0 ? more : less))
        return rp_arena_textf(c->arena, "%s %s, mostly %s",
                              rp_units_count(c->arena, n > 0 ? n : -n, "kernel"),
                              n > 0 ? "more" : "less", n > 0 ? more : less);
    return rp_arena_textf(c->arena, "%s instead of %s", more ? more : "nothing",
                          less ? less : "nothing");
}

static void add_row(struct rp_report_part *out, const char *kind, const char *why, int64_t steps,
                    int64_t median_ns, int64_t total_ns)
{
    if (steps)
        out->kinds[out->nkinds++] = (struct rp_report_kind){
            .kind = kind, .why = why, .steps = steps, .median_ns = median_ns, .total_ns = total_ns};
}

RP_ORDER(by_steps, struct work_kind, RP_DOWN(steps), RP_DOWN(total_ns))

/* Adds what lies between steps, and the first of it. */
static void add_others(struct rp_report_part *out)
{
#define BREAK_WORD(name, one, several) one,
    static const char *const words[RP_BREAKS] = {RP_BREAK_MAP(BREAK_WORD)};
#undef BREAK_WORD
    const struct rp_outside *o = &out->outside;

    add_row(out, "warm-up", "the first, far longer than the others: not judged", o->warm_ups,
            RP_ABSENT_I64, o->warm_up_ns);
    for (size_t i = 0; i < RP_BREAKS; i++)
        add_row(out, words[i], "between steps: not judged", o->breaks[i], RP_ABSENT_I64,
                o->break_ns[i]);
}

static enum rp_code add_rows(struct kinds_ctx *c, struct rp_report_part *out, struct rp_err *err)
{
    int64_t total = 0, others = 0;

    out->kinds = RP_ARENA_NEW(c->arena, struct rp_report_kind, MOST_WORKS + 1 + RP_BREAKS);
    RP_TRY(rp_arena_check(c->arena, "comparing steps", err));
    for (size_t i = 0; i < c->n; i++) {
        struct work_kind *k = &c->kinds[i];

        rp_ns_sort(k->ns, k->steps);
        add_row(out, i ? "other work" : "usual", i ? difference(c, &c->kinds[0], k) : NULL,
                k->steps, rp_ns_median(k->ns, k->steps), k->total_ns);
    }
    add_others(out);
    for (size_t i = 0; i < out->nkinds; i++)
        rp_ns_add(i ? &others : &total, out->kinds[i].total_ns);
    rp_ns_add(&total, others);
    for (size_t i = 0; i < out->nkinds; i++)
        out->kinds[i].share = total > 0 ? (double)out->kinds[i].total_ns / (double)total : 0;
    if ((double)others < LEAST_SHOWN * (double)total)
        out->nkinds = 0;
    return RP_OK;
}

static enum rp_code sort_steps(struct kinds_ctx *c, struct rp_report_part *out, struct rp_err *err)
{
    uint32_t i, judged = 0;

    RP_TRY(list_kernels(c, err));
    for (i = 0; i < c->nsteps && c->n <= MOST_WORKS; i++)
        if (!(c->t->steps[i].flags & RP_STEP_NOT_JUDGED)) {
            RP_TRY(add_step(c, i, err));
            judged++;
        }
    if (!c->n || c->n > MOST_WORKS)
        return RP_OK;
    qsort(c->kinds, c->n, sizeof *c->kinds, by_steps);
    return c->kinds[0].steps < LEAST_USUAL * judged ? RP_OK : add_rows(c, out, err);
}

enum rp_code rp_report_sort_steps(const struct rp_trace *trace, const struct rp_work *work,
                                  struct rp_arena *arena, struct rp_report_part *out,
                                  struct rp_err *err)
{
    struct kinds_ctx c = {
        .t = trace, .w = work, .part = out, .arena = arena, .nsteps = rp_whole_steps(trace)};
    enum rp_code code = RP_OK;

    rp_arena_init(&c.scratch);
    if (c.nsteps > 1 && out->nsteps == c.nsteps && work->items.n)
        code = sort_steps(&c, out, err);
    rp_arena_release(&c.scratch);
    return code;
}

/* ------------------------------------------------------------------ the rows */

#define KIND(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_kind, member, type, unit, title, doc, flags)

static const struct rp_field kind_fields[] = {
    KIND(kind, STR, NONE, "kind",
         "usual, other work, warm-up, evaluation, checkpoint, pause, break", 0),
    KIND(steps, I64, COUNT, "steps", "how many", 0),
    KIND(median_ns, I64, NS, "median", "median duration, or null", RP_NULLABLE),
    KIND(total_ns, I64, NS, "total", "time of all of them", 0),
    KIND(share, F64, RATIO, "share", "share of the time of all kinds", 0),
    KIND(why, STR, NONE, "what differs", "why it differs from the usual kind, or null",
         RP_NULLABLE),
    RP_FIELD_END};
const struct rp_type rp_report_kind_type = {"kind", sizeof(struct rp_report_kind), kind_fields,
                                            NULL};
