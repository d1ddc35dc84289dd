/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the kernels adds up each step, operator, kernel and counter. */
#include "explain/top/counters.h"

#include "base/hash.h"
#include "base/order.h"
#include "base/strtab.h"
#include "explain/short_name.h"
#include "facts/work/attribution.h"
#include "result/part.h"
#include "result/result.h"

#include <math.h>
#include <stdio.h>

#define KEY_START "counter "

/* ------------------------------------------------------------------ the part of a rank */

static const struct rp_field sum_fields[] = {
    RP_PART_TEXT(struct rp_counter_sum, op),      RP_PART_TEXT(struct rp_counter_sum, kernel),
    RP_PART_TEXT(struct rp_counter_sum, counter), RP_PART_PLAIN(struct rp_counter_sum, step),
    RP_PART_PLAIN(struct rp_counter_sum, calls),  RP_PART_PLAIN(struct rp_counter_sum, total_ns),
    RP_PART_PLAIN(struct rp_counter_sum, sum),    RP_PART_PLAIN(struct rp_counter_sum, min),
    RP_PART_PLAIN(struct rp_counter_sum, max),    RP_PART_END};
static const struct rp_type sum_type = {"sum", sizeof(struct rp_counter_sum), sum_fields, NULL};

static const struct rp_field part_fields[] = {RP_PART_VEC(struct rp_counters_part, sums, &sum_type),
                                              RP_PART_PLAIN(struct rp_counters_part, lines),
                                              RP_PART_PLAIN(struct rp_counters_part, joined),
                                              RP_PART_END};
const struct rp_type rp_counters_part_type = {"counters_part", sizeof(struct rp_counters_part),
                                              part_fields, NULL};

/* Sums by step and texts. */
struct counter_table {
    struct rp_strtab texts; /* names of operators, kernels and counters */
    struct rp_strtab keys;  /* a step and three of these texts */
    struct rp_map index;
    struct rp_counters_part *part;
};

static enum rp_code table_init(struct counter_table *table, struct rp_counters_part *part,
                               struct rp_err *err)
{
    *table = (struct counter_table){.part = part};
    RP_TRY(rp_strtab_init(&table->texts, err));
    return rp_strtab_init(&table->keys, err);
}

static void table_release(struct counter_table *table)
{
    rp_strtab_release(&table->texts);
    rp_strtab_release(&table->keys);
    rp_map_release(&table->index);
}

static enum rp_code table_add(struct counter_table *table, const struct rp_counter_sum *more,
                              struct rp_err *err)
{
    const char *const texts[] = {more->op, more->kernel, more->counter};
    uint32_t ids[3], id, at;
    char key[96];

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        RP_TRY(rp_strtab_intern(&table->texts, texts[i], strlen(texts[i]), &ids[i], err));
    int n =
        snprintf(key, sizeof key, "%lld %u %u %u", (long long)more->step, ids[0], ids[1], ids[2]);
    RP_TRY(rp_strtab_intern(&table->keys, key, (size_t)n, &id, err));
    RP_TRY(rp_map_intern(&table->index, id, (uint32_t)table->part->sums.n, &at, err));
    if (at == table->part->sums.n) {
        struct rp_counter_sum fresh = {
            .op = more->op, .kernel = more->kernel, .counter = more->counter, .step = more->step};

        RP_TRY(rp_vec_push(&table->part->sums, fresh, err));
    }

    struct rp_counter_sum *to = &table->part->sums.at[at];
    to->min = to->calls && to->min < more->min ? to->min : more->min;
    to->max = to->calls && to->max > more->max ? to->max : more->max;
    to->sum += more->sum;
    to->calls += more->calls;
    rp_ns_add(&to->total_ns, more->total_ns);
    return RP_OK;
}

/* The number of the step in which something began. */
static int64_t step_at(const struct rp_trace *t, int64_t ns)
{
    size_t i;

    RP_LOWER_BOUND(i, t->nsteps, t->steps[i].begin_ns <= ns);
    return i && ns < t->steps[i - 1].end_ns ? t->steps[i - 1].number : RP_ABSENT_I64;
}

struct kernel_counters {
    struct counter_table *sums;
    struct rp_counter_table *table; /* NULL for arguments of the kernels */
    const struct rp_work *work;
    struct rp_counter_sum one; /* of the current kernel */
};

static enum rp_code add_value(struct kernel_counters *k, const char *counter, double value,
                              struct rp_err *err)
{
    k->one.counter = counter;
    k->one.sum = k->one.min = k->one.max = value;
    return table_add(k->sums, &k->one, err);
}

static enum rp_code add_arguments(struct kernel_counters *k, rp_event e, struct rp_err *err)
{
    const struct rp_trace *t = k->work->trace;
    uint32_t row = t->ev.arg_row[e], n = rp_args_count(&t->args, t->ev.shape[e], row);

    for (uint32_t i = 0; i < n; i++) {
        struct rp_arg arg = rp_args_at(&t->args, t->ev.shape[e], row, i);
        const char *key = rp_trace_str(t, arg.key);

        if (strncmp(key, KEY_START, sizeof KEY_START - 1) != 0 ||
            (arg.type != RP_ARG_F64 && arg.type != RP_ARG_I64))
            continue;
        RP_TRY(add_value(k, key + sizeof KEY_START - 1,
                         arg.type == RP_ARG_F64 ? arg.v.f : (double)arg.v.i, err));
    }
    return RP_OK;
}

static enum rp_code add_line(struct kernel_counters *k, struct rp_err *err)
{
    const struct rp_counter_line *line = rp_counter_table_next(k->table, k->one.kernel);

    for (size_t i = 0; line && i < k->table->counters.n; i++) {
        double value = k->table->values.at[line->first_value + i];

        if (!isnan(value))
            RP_TRY(add_value(k, k->table->counters.at[i], value, err));
    }
    return RP_OK;
}

static enum rp_code add_kernel(struct kernel_counters *k, size_t i,
                               const struct rp_work_owner *owner, struct rp_err *err)
{
    const struct rp_trace *t = k->work->trace;
    const struct rp_work_item *item = &k->work->items.at[i];
    rp_str op = owner->op != RP_NONE ? t->ev.name[owner->op] : owner->hlo_op;
    rp_event launch = item->launch != RP_NONE ? item->launch : item->event;

    if (t->ev.kind[item->event] != RP_KIND_KERNEL)
        return RP_OK;
    k->one = (struct rp_counter_sum){.op = op ? rp_trace_str(t, op) : "",
                                     .kernel = rp_trace_str(t, t->ev.name[item->event]),
                                     .step = step_at(t, t->ev.ts_ns[launch]),
                                     .calls = 1,
                                     .total_ns = item->end_ns - item->begin_ns};
    return k->table ? add_line(k, err) : add_arguments(k, item->event, err);
}

enum rp_code rp_counters_make(const struct rp_trace *trace, const struct rp_scope *scope,
                              struct rp_counter_table *table, struct rp_arena *arena,
                              struct rp_counters_part *out, struct rp_err *err)
{
    RP_SCOPED(rp_work_release) struct rp_work work = {0};
    RP_SCOPED(rp_attribution_release) struct rp_attribution places = {0};
    RP_SCOPED(table_release) struct counter_table sums = {0};
    struct kernel_counters kernels = {.sums = &sums, .table = table, .work = &work};

    RP_TRY(table_init(&sums, out, err));
    RP_TRY(rp_work_init(&work, trace, scope, err));
    RP_TRY(rp_attribution_init(&places, &work, err));
    for (size_t i = 0; i < work.items.n; i++)
        RP_TRY(add_kernel(&kernels, i, &places.owners.at[i], err));
    if (table) {
        out->lines = (int64_t)table->lines.n;
        out->joined = (int64_t)table->joined;
    }

    struct rp_counters_part *part = out;
    for (size_t i = 0; i < part->sums.n; i++) {
        struct rp_counter_sum *sum = &part->sums.at[i];
        sum->op = rp_arena_text(arena, sum->op);
        sum->kernel = rp_arena_text(arena, sum->kernel);
        sum->counter = rp_arena_text(arena, sum->counter);
    }
    return rp_arena_check(arena, "adding up counters", err);
}

/* ------------------------------------------------------------------ the answer */

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_counter_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(step, I64, COUNT, NULL, "number of the step; null: outside of steps", RP_NULLABLE),
    ROW(op, STR, NONE, NULL, "operator that launched it; empty: not known", 0),
    ROW(kernel, STR, NONE, NULL, "its name", 0),
    ROW(label, STR, NONE, "kernel", "the name, shortened", RP_SCREEN | RP_SHORTEN | RP_LABEL),
    ROW(op_label, STR, NONE, "operator", "that launched it", RP_SCREEN | RP_WIDE | RP_SHORTEN),
    ROW(counter, STR, NONE, "counter", "the profiler's name of the counter", RP_WHOLE),
    ROW(calls, I64, COUNT, "calls", "kernels measured", 0),
    ROW(total_ns, I64, NS, "time", "their device time", 0),
    ROW(mean, F64, NONE, "mean", "mean of the counter over calls", 0),
    ROW(min, F64, NONE, "min", "the smallest", RP_WIDE),
    ROW(max, F64, NONE, "max", "the largest", RP_WIDE),
    ROW(sum, F64, NONE, NULL, "sum over all calls", 0),
    RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct rp_counter_row), row_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_counters_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "counters", "text output only", RP_SCREEN),
    ROOT(row_count, I64, COUNT, NULL, "number of rows", 0),
    RP_FIELD_LIST(struct rp_counters_root, rows, &row_type, NULL, "by step, the most time first",
                  0),
    RP_FIELD_SHOWN(struct rp_counters_root, shown, &row_type, "counters", NULL, 0),
    RP_FIELD_LIST(struct rp_counters_root, notes, &rp_type_string, "notes", "about the rows",
                  RP_SCREEN),
    RP_FIELD_END};
const struct rp_type rp_counters_type = {"counters", sizeof(struct rp_counters_root), root_fields,
                                         "rows"};

static int by_time(const void *pa, const void *pb)
{
    const struct rp_counter_row *a = pa, *b = pb;

    if (a->step != b->step)
        return a->step == RP_ABSENT_I64   ? 1
               : b->step == RP_ABSENT_I64 ? -1
               : a->step < b->step        ? -1
                                          : 1;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    int order = strcmp(a->kernel, b->kernel);
    order = order ? order : strcmp(a->op, b->op);
    return order ? order : strcmp(a->counter, b->counter);
}

static enum rp_code rows_of(const struct rp_counters_part *const *parts, size_t n, bool by_step,
                            struct rp_arena *arena, struct rp_counter_row **rows, size_t *nrows,
                            struct rp_err *err)
{
    struct rp_counters_part all = {0};
    struct counter_table table;
    enum rp_code code = table_init(&table, &all, err);

    for (size_t i = 0; i < n && code == RP_OK; i++) {
        for (size_t k = 0; k < parts[i]->sums.n && code == RP_OK; k++) {
            struct rp_counter_sum sum = parts[i]->sums.at[k];

            sum.step = by_step ? sum.step : RP_ABSENT_I64;
            code = table_add(&table, &sum, err);
        }
    }
    *rows = code == RP_OK ? RP_ARENA_NEW(arena, struct rp_counter_row, all.sums.n + 1) : NULL;
    for (size_t i = 0; i < all.sums.n && *rows; i++) {
        const struct rp_counter_sum *s = &all.sums.at[i];

        (*rows)[i] = (struct rp_counter_row){.op = s->op,
                                             .kernel = s->kernel,
                                             .counter = s->counter,
                                             .label = s->kernel,
                                             .op_label = s->op,
                                             .step = s->step,
                                             .calls = s->calls,
                                             .total_ns = s->total_ns,
                                             .mean = s->sum / (double)s->calls,
                                             .min = s->min,
                                             .max = s->max,
                                             .sum = s->sum};
    }
    *nrows = *rows ? all.sums.n : 0;
    rp_sort(*rows, *nrows, sizeof **rows, by_time);
    if (code == RP_OK && !*rows)
        code = rp_err_nomem(err, "adding up counters");
    rp_vec_release(&all.sums);
    table_release(&table);
    return code;
}

enum rp_code rp_counters_join(const struct rp_counters_part *const *parts, size_t n, int64_t limit,
                              struct rp_arena *arena, struct rp_counters_root *out,
                              struct rp_err *err)
{
    RP_TRY(rows_of(parts, n, true, arena, &out->rows, &out->nrows, err));
    RP_TRY(rows_of(parts, n, false, arena, &out->shown, &out->nshown, err));
    out->row_count = (int64_t)out->nrows;
    size_t all = out->nshown;
    if (limit && all > (size_t)limit)
        out->nshown = (size_t)limit;
    for (size_t i = 0; i < out->nshown; i++) {
        char text[160];

        rp_short_name(out->shown[i].kernel, text, sizeof text);
        out->shown[i].label = rp_arena_text(arena, text);
    }

    /* Note the lines of the table that have no kernel here. */
    int64_t lines = n ? parts[0]->lines : 0, joined = 0;
    for (size_t i = 0; i < n; i++)
        joined += parts[i]->joined;
    if (joined < lines)
        RP_NOTE(out, arena,
                rp_arena_textf(arena,
                               "%lld of %lld rows of the table have no kernel of their name in the "
                               "trace, or more than were recorded",
                               (long long)(lines - joined), (long long)lines));

    out->summary = all ? "hardware counters of kernels, mean over calls"
                       : "no kernel of this recording has hardware counters: 'reprise record "
                         "--counters dram__bytes.sum -- …' measures them";
    if (out->nshown < all)
        RP_NOTE(out, arena,
                rp_arena_textf(arena, "%zu of %zu rows: '--limit 0' shows all", out->nshown, all));
    return rp_arena_check(arena, "adding up counters", err);
}
