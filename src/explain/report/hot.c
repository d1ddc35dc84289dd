/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what takes most of the time that is judged, with the groups and numbers of `top`. Device
 * work belongs to the innermost operator that launched it, or if there is none, to its own name.
 * Without device work it is the own time of operators on the host, else of Python frames, samples
 * by function, ranges, or of all that was recorded there.
 */
#include "explain/report/report.h"

#include "base/hash.h"
#include "base/order.h"
#include "cost/category.h"
#include "cost/models.h"
#include "explain/short_name.h"
#include "result/print_units.h"

#include <string.h>

#define MOST_KEPT 256
RP_LIMIT(MOST_KEPT, "names of a rank", "the next one has less than 0.4 % of its time");
#define MOST_ROWS 20
RP_LIMIT(MOST_ROWS, "names of the answer", "'reprise top' lists all");
#define MOST_SHOWN 4
RP_LIMIT(MOST_SHOWN, "names in the line", "JSON has more of them");
#define LEAST_SHOWN 0.05
RP_LIMIT(LEAST_SHOWN, "of the time", "a name with less is in the line only if it is the first");
#define NAME_SHOWN 48
RP_LIMIT(NAME_SHOWN, "bytes of a name in the line", "longer ones are cut in their middle");

static const struct rp_field hot_fields[] = {
    RP_FIELD(struct rp_report_hot, name, STR, NONE, NULL,
             "an operator; where there is none a kernel, function, range or call", 0),
    RP_FIELD(struct rp_report_hot, ns, I64, NS, NULL, "its own time", 0),
    RP_FIELD(struct rp_report_hot, share, F64, RATIO, NULL,
             "share of the device time; without device work, of the sum of all own times", 0),
    RP_FIELD(struct rp_report_hot, modelled, BOOL, NONE, NULL,
             "whether a cost model knows its FLOPs and bytes, given its shapes", 0),
    RP_FIELD_END};
const struct rp_type rp_report_hot_row_type = {"hot", sizeof(struct rp_report_hot), hot_fields,
                                               NULL};

RP_ORDER(by_time, struct rp_report_hot, RP_DOWN(ns), strcmp(a->name, b->name))

/* ------------------------------------------------------------------ a rank */

static bool is_operator(const struct rp_report_hot *h)
{
    return h->kind && !strcmp(h->kind, "op");
}

/* The groups that replace operators on the host. */
static struct rp_top_groups groups_of_host(const struct rp_trace *t)
{
    const int64_t *count = t->totals.count;

    if (count[RP_KIND_CPU_OP])
        return (struct rp_top_groups){.by = RP_TOP_OP};
    if (count[RP_KIND_PYTHON])
        return (struct rp_top_groups){.by = RP_TOP_PYTHON, .flat = true};
    if (count[RP_KIND_ANNOTATION])
        return (struct rp_top_groups){.by = RP_TOP_ANNOTATION};
    return (struct rp_top_groups){.by = RP_TOP_OP, .calls = true};
}

static enum rp_code keep_groups(const struct rp_top_part *top, struct rp_arena *arena,
                                struct rp_report_part *out, struct rp_err *err)
{
    out->hot = RP_ARENA_NEW(arena, struct rp_report_hot, top->groups.n + 1);
    RP_TRY(rp_err_need(out->hot, err, "grouping work"));
    for (size_t i = 0; i < top->groups.n; i++) {
        const struct rp_top_group *g = &top->groups.at[i];

        if (g->self_ns > 0 && g->name)
            out->hot[out->nhot++] = (struct rp_report_hot){
                .name = g->row ? g->row : g->name, .kind = g->kind, .ns = g->self_ns};
        out->hot_ns = rp_ns_sum(out->hot_ns, out->on_device ? 0 : g->self_ns);
    }
    if (out->on_device)
        out->hot_ns = top->whole_ns;
    rp_sort(out->hot, out->nhot, sizeof *out->hot, by_time);
    out->nhot = out->nhot < MOST_KEPT ? out->nhot : MOST_KEPT;
    for (size_t i = 0; i < out->nhot; i++) {
        /* Bytes of copies and collectives are recorded with them. */
        const struct rp_report_hot *h = &out->hot[i];
        const struct rp_cost_model *model = rp_cost_model_of(h->name);
        enum rp_category category =
            rp_category_of(NULL, is_operator(h) ? h->name : NULL, is_operator(h) ? NULL : h->name);

        out->hot[i].modelled = (model && model->fn != rp_model_none) ||
                               category == RP_CATEGORY_COMMUNICATION ||
                               category == RP_CATEGORY_COPY;
    }
    return RP_OK;
}

enum rp_code rp_report_find_hot(const struct rp_trace *trace, const struct rp_scope *scope,
                                const struct rp_segments *segments, struct rp_arena *arena,
                                struct rp_report_part *out, struct rp_err *err)
{
    struct rp_top_groups want = {.by = RP_TOP_OP, .kernels = true};
    struct rp_scope judged = *scope;
    struct rp_top_part top = {0};

    if (!scope->limited) {
        judged.njudged = segments->n;
        judged.judged = segments->at;
    }
    if (!out->on_device)
        want = groups_of_host(trace);
    enum rp_code code = rp_top_group_work(trace, &judged, &want, arena, &top, err);
    if (code == RP_OK)
        code = keep_groups(&top, arena, out, err);
    rp_vec_release(&top.groups);
    rp_time_lists_release(&top.times);
    rp_vec_release(&top.skipped);
    return code;
}

enum rp_code rp_report_find_lines(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                  struct rp_arena *arena, struct rp_report_part *out,
                                  struct rp_err *err)
{
    struct rp_scope judged = *scope;

    if (!scope->limited) {
        judged.njudged = out->judged.n;
        judged.judged = out->judged.at;
    }
    return rp_lines_make(loaded, &judged, NULL, arena, &out->lines, err);
}

/* ------------------------------------------------------------------ all ranks */

/* Adds up rows of the same name; `rows` has room for all. */
static enum rp_code add_rows(const struct rp_ranks *ranks, struct rp_report_root *out,
                             struct rp_map *known, struct rp_err *err)
{
    for (size_t r = 0; r < ranks->n; r++)
        for (size_t i = 0; i < rp_report_part_of(ranks, r)->nhot; i++) {
            const struct rp_report_hot *h = &rp_report_part_of(ranks, r)->hot[i];
            uint32_t at;

            RP_TRY(rp_map_intern(known, rp_hash_bytes(h->name, strlen(h->name)),
                                 (uint32_t)out->nhot, &at, err));
            if (at == out->nhot)
                out->hot[out->nhot++] = *h;
            else
                rp_ns_add(&out->hot[at].ns, h->ns);
        }
    return RP_OK;
}

static void show_name(const struct rp_report_hot *h, bool on_device, char name[NAME_SHOWN + 1])
{
    (on_device && !is_operator(h) ? rp_short_name : rp_cut_name)(h->name, name, NAME_SHOWN + 1);
}

/* The share of all rows that are shown with this name, such as variants of a template; 0 if an
   earlier row has it. */
static double share_shown(const struct rp_report_root *out, size_t i, bool on_device,
                          const char *name)
{
    char other[NAME_SHOWN + 1];
    double share = 0;

    for (size_t k = 0; k < out->nhot; k++) {
        show_name(&out->hot[k], on_device, other);
        if (strcmp(name, other) != 0)
            continue;
        if (k < i)
            return 0;
        share += out->hot[k].share;
    }
    return share;
}

/* "aten::mm 34.1 %, vllm::moe_forward 20.3 % (no cost model)" */
static const char *hot_line(const struct rp_report_root *out, bool on_device,
                            struct rp_arena *arena)
{
    const char *text = NULL;
    char name[NAME_SHOWN + 1];

    for (size_t i = 0; i < out->nhot && i < MOST_SHOWN; i++) {
        const struct rp_report_hot *h = &out->hot[i];

        if (i && h->share < LEAST_SHOWN)
            break;
        show_name(h, on_device, name);
        double share = share_shown(out, i, on_device, name);
        if (share <= 0)
            continue;
        text =
            rp_arena_textf(arena, "%s%s%s %s%s", text ? text : "", text ? ", " : "", name,
                           rp_units_text(arena, share, RP_UNIT_RATIO),
                           on_device && is_operator(h) && !h->modelled ? " (no cost model)" : "");
    }
    return text ? rp_arena_textf(arena, "%s of the %s", text,
                                 on_device ? "device time" : "own time on the host")
                : NULL;
}

/* "program.py:11 49.4 %, program.py:8 21.3 % of the device time; 9.9 % has no line" */
static const char *lines_line(const struct rp_report_root *out, const char *measure,
                              struct rp_arena *arena)
{
    const char *text = NULL;

    for (size_t i = 0; i < out->nlines && i < MOST_SHOWN; i++) {
        if (i && out->lines[i].share < LEAST_SHOWN)
            break;
        text = rp_arena_textf(arena, "%s%s%s %s", text ? text : "", text ? ", " : "",
                              out->lines[i].name,
                              rp_units_text(arena, out->lines[i].share, RP_UNIT_RATIO));
    }
    if (!text || out->lines_share >= 1)
        return text ? rp_arena_textf(arena, "%s of the %s", text, measure) : NULL;
    return rp_arena_textf(arena, "%s of the %s; %s has no line", text, measure,
                          rp_units_text(arena, 1 - out->lines_share, RP_UNIT_RATIO));
}

static enum rp_code join_lines(const struct rp_ranks *ranks, struct rp_arena *arena,
                               struct rp_report_root *out, struct rp_err *err)
{
    const struct rp_lines_part **parts =
        RP_ARENA_NEW(arena, const struct rp_lines_part *, ranks->n + 1);
    struct rp_lines_root lines;
    size_t n = 0;

    RP_TRY(rp_err_need(parts, err, "adding up ranks"));
    out->lines_share = __builtin_nan("");
    for (size_t r = 0; r < ranks->n; r++)
        if (rp_report_part_of(ranks, r)->lines.known)
            parts[n++] = &rp_report_part_of(ranks, r)->lines;
    if (!n)
        return RP_OK;
    RP_TRY(rp_lines_join(parts, n, MOST_ROWS, NULL, arena, &lines, err));
    if (!lines.nrows)
        return RP_OK;
    out->lines = lines.rows;
    out->nlines = lines.nrows;
    out->lines_share = lines.coverage;
    out->lines_text = lines_line(out, lines.measure, arena);
    return RP_OK;
}

enum rp_code rp_report_join_hot(const struct rp_ranks *ranks, struct rp_arena *arena,
                                struct rp_report_root *out, struct rp_err *err)
{
    struct rp_map known = {0};
    int64_t whole = 0;
    size_t n = 0;

    for (size_t r = 0; r < ranks->n; r++) {
        n += rp_report_part_of(ranks, r)->nhot;
        rp_ns_add(&whole, rp_report_part_of(ranks, r)->hot_ns);
    }
    out->hot = RP_ARENA_NEW(arena, struct rp_report_hot, n + 1);
    RP_TRY(rp_err_need(out->hot, err, "adding up ranks"));
    enum rp_code code = add_rows(ranks, out, &known, err);
    rp_map_release(&known);
    RP_TRY(code);
    rp_sort(out->hot, out->nhot, sizeof *out->hot, by_time);
    out->nhot = out->nhot < MOST_ROWS ? out->nhot : MOST_ROWS;
    for (size_t i = 0; i < out->nhot; i++)
        out->hot[i].share = whole > 0 ? (double)out->hot[i].ns / (double)whole : 0;
    out->hot_text = hot_line(out, ranks->n && rp_report_part_of(ranks, 0)->on_device, arena);
    return join_lines(ranks, arena, out, err);
}
