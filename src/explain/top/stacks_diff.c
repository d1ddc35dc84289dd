/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two sampled runs for `diff`, by the own time of their stacks, functions or lines; the
 * largest change comes first. Each sample is one draw: n of them with the weight w have a standard
 * deviation of w * sqrt(n), and a change of less than two deviations of the difference is noise.
 */
#include "explain/top/stacks_tree.h"

#include "base/order.h"
#include "result/print_units.h"
#include "result/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_stacks_change, member, type, unit, title, doc, flags)
#define UNIT(name, unit, of)                                                                       \
    ROW(base_##name, I64, unit, "base", "its own " of " in the base; null in another unit",        \
        RP_NULLABLE),                                                                              \
        ROW(new_##name, I64, unit, "new", "the same in the new run", RP_NULLABLE),                 \
        ROW(delta_##name, I64, unit, "delta", "new - base", RP_NULLABLE),                          \
        ROW(noise_##name, I64, unit, "noise", "changes up to this may be chance; null: not known", \
            RP_NULLABLE)

static const struct rp_field row_fields[] = {
    ROW(name, STR, NONE, NULL, "the function; for a stack, its innermost function", 0),
    ROW(label, STR, NONE, "name", "the row, shortened", RP_SCREEN | RP_SHORTEN),
    ROW(file, STR, NONE, NULL, "its source file or library, or null", 0),
    ROW(line, I64, NONE, NULL, "its line, or null", RP_NULLABLE),
    ROW(kind, STR, NONE, NULL, "python, native, kernel (of the system) or other", 0),
    ROW(stack, STR, NONE, NULL, "for a stack: all functions, outermost first; otherwise null", 0),
    ROW(change, STR, NONE, "change", "more, less, added, removed, noise or same", 0),
    ROW(base_samples, I64, COUNT, NULL, "samples in the base", 0),
    ROW(new_samples, I64, COUNT, NULL, "samples in the new run", 0),
    UNIT(ns, NS, "time"),
    UNIT(count, COUNT, "count"),
    UNIT(bytes, BYTES, "memory"),
    RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct rp_stacks_change), row_fields, NULL};

#define SHOWN(unit) "label, change, base_" unit ", new_" unit ", delta_" unit ", noise_" unit

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_stacks_diff_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "new run", "text output only", RP_SCREEN),
    ROOT(inputs, STR, NONE, NULL, "'stacks'", 0),
    ROOT(by, STR, NONE, NULL, "what the rows are", 0),
    ROOT(measure, STR, NONE, NULL, "what the samples count, in the words of their file", 0),
    ROOT(base_ns, I64, NS, NULL, "all samples of the base; null in another unit", RP_NULLABLE),
    ROOT(new_ns, I64, NS, NULL, "all samples of the new run", RP_NULLABLE),
    ROOT(delta_ns, I64, NS, NULL, "new - base", RP_NULLABLE),
    ROOT(base_count, I64, COUNT, NULL, "the same of profiles that count", RP_NULLABLE),
    ROOT(new_count, I64, COUNT, NULL, "the same of profiles that count", RP_NULLABLE),
    ROOT(delta_count, I64, COUNT, NULL, "the same of profiles that count", RP_NULLABLE),
    ROOT(base_bytes, I64, BYTES, NULL, "the same of profiles of memory", RP_NULLABLE),
    ROOT(new_bytes, I64, BYTES, NULL, "the same of profiles of memory", RP_NULLABLE),
    ROOT(delta_bytes, I64, BYTES, NULL, "the same of profiles of memory", RP_NULLABLE),
    ROOT(row_count, I64, COUNT, NULL, "rows before the limit", 0),
    RP_FIELD_LIST(struct rp_stacks_diff_root, rows, &row_type, NULL, "the largest change first", 0),
    RP_FIELD_SHOWN(struct rp_stacks_diff_root, times, &row_type, "what changed", SHOWN("ns"), 0),
    RP_FIELD_SHOWN(struct rp_stacks_diff_root, counts, &row_type, "what changed", SHOWN("count"),
                   0),
    RP_FIELD_SHOWN(struct rp_stacks_diff_root, bytes, &row_type, "what changed", SHOWN("bytes"), 0),
    RP_FIELD_LIST(struct rp_stacks_diff_root, notes, &rp_type_string, "notes", "about the rows",
                  RP_SCREEN),
    RP_FIELD_END};
const struct rp_type rp_stacks_diff_type = {"diff", sizeof(struct rp_stacks_diff_root), root_fields,
                                            "rows"};

/* ------------------------------------------------------------------ rows */

/* The variance of a count n is n; that of n samples with the total weight w is w * w / n. */
static double variance(uint32_t unit, int64_t weight, int64_t samples)
{
    if (unit == RP_WEIGHT_COUNT)
        return (double)weight;
    return samples > 0 ? (double)weight * (double)weight / (double)samples : 0;
}

static int64_t change_size(const struct rp_stacks_row *row)
{
    int64_t delta = rp_ns_between(row->base_self, row->self_ns);

    return delta < 0 ? -delta : delta;
}

/* The largest change that may be chance; RP_ABSENT_I64: not known. */
static int64_t noise_of(const struct rp_stacks_tree *j, const struct rp_stacks_row *row)
{
    double both = variance(j->unit, row->base_self, row->base_samples) +
                  variance(j->unit, row->self_ns, row->count);

    return j->is_drawn ? (int64_t)ceil(2 * sqrt(both)) : RP_ABSENT_I64;
}

static bool is_noise(const struct rp_stacks_tree *j, const struct rp_stacks_row *row)
{
    return !change_size(row) || (j->is_drawn && change_size(row) <= noise_of(j, row));
}

/* Weights are added up as nanoseconds; a row shows them in their unit. */
static struct rp_stacks_change change_of(const struct rp_stacks_tree *j,
                                         const struct rp_stacks_row *row)
{
    int64_t base = row->base_self, fresh = row->self_ns, delta = rp_ns_between(base, fresh);
    int64_t noise = noise_of(j, row);
    struct rp_stacks_change c = {.name = row->name,
                                 .file = row->file,
                                 .kind = row->kind,
                                 .label = row->label,
                                 .stack = row->stack,
                                 .line = row->line,
                                 .base_samples = row->base_samples,
                                 .new_samples = row->count,
                                 .change = !delta               ? "same"
                                           : is_noise(j, row)   ? "noise"
                                           : !row->base_samples ? "added"
                                           : !row->count        ? "removed"
                                           : delta > 0          ? "more"
                                                                : "less"};

    RP_STACKS_SET(&c, base, j->unit, base);
    RP_STACKS_SET(&c, new, j->unit, fresh);
    RP_STACKS_SET(&c, delta, j->unit, delta);
    RP_STACKS_SET(&c, noise, j->unit, noise);
    return c;
}

/* Changes that exceed chance come first, each group by the size of its changes. */
static int by_change(const void *pa, const void *pb, void *user)
{
    const struct rp_stacks_row *a = pa, *b = pb;
    int64_t x = change_size(a), y = change_size(b);

    if (is_noise(user, a) != is_noise(user, b))
        return is_noise(user, a) ? 1 : -1;
    if (x != y || strcmp(a->label, b->label) != 0)
        return x != y ? (x > y ? -1 : 1) : strcmp(a->label, b->label);
    return (a->node > b->node) - (a->node < b->node);
}

/* ------------------------------------------------------------------ the answer */

static const char *amount(const struct rp_stacks_tree *j, int64_t v)
{
    return j->unit == RP_WEIGHT_NS      ? rp_units_time(j->arena, v)
           : j->unit == RP_WEIGHT_COUNT ? rp_units_number(j->arena, v)
                                        : rp_units_text(j->arena, (double)v, RP_UNIT_BYTES);
}

static void fill_wholes(const struct rp_stacks_tree *j, struct rp_stacks_diff_root *out)
{
    int64_t delta = rp_ns_between(j->base_whole, j->whole);

    RP_STACKS_SET(out, base, j->unit, j->base_whole);
    RP_STACKS_SET(out, new, j->unit, j->whole);
    RP_STACKS_SET(out, delta, j->unit, delta);
    out->summary = rp_arena_textf(
        j->arena, "%s%s by %s: %s, the base %s%s", j->of_device ? "" : "host ",
        *j->measure                  ? j->measure
        : j->unit == RP_WEIGHT_NS    ? "time"
        : j->unit == RP_WEIGHT_BYTES ? "memory"
                                     : "samples",
        j->by, amount(j, j->whole), amount(j, j->base_whole),
        j->base_whole > 0
            ? rp_arena_textf(j->arena, " (%+.1f %%)", 100.0 * (double)delta / (double)j->base_whole)
            : "");
}

static enum rp_code fill_changes(struct rp_stacks_tree *j, int64_t limit,
                                 struct rp_stacks_diff_root *out)
{
    size_t *const shown[] = {&out->ntimes, &out->ncounts, &out->nbytes};
    size_t i, n = 0, chance = 0;

    for (i = 0; i < j->rows.n; i++)
        if (j->rows.at[i].base_samples || j->rows.at[i].count)
            j->rows.at[n++] = j->rows.at[i];
    if (n)
        qsort_r(j->rows.at, n, sizeof *j->rows.at, by_change, j);
    out->row_count = (int64_t)n;
    out->nrows = limit > 0 && (size_t)limit < n ? (size_t)limit : n;
    out->rows = RP_ARENA_NEW(j->arena, struct rp_stacks_change, out->nrows + 1);
    RP_TRY(rp_arena_check(j->arena, "comparing stacks", j->err));
    for (i = 0; i < out->nrows; i++) {
        rp_stacks_tree_name(j, &j->rows.at[i]);
        out->rows[i] = change_of(j, &j->rows.at[i]);
    }
    for (i = 0; i < n; i++)
        chance += is_noise(j, &j->rows.at[i]);
    out->times = out->counts = out->bytes = out->rows;
    *shown[j->unit] = out->nrows;
    fill_wholes(j, out);
    if (!n)
        RP_NOTE(out, j->arena, "there are no samples of call stacks and no Python functions");
    if (n && !j->is_drawn)
        RP_NOTE(out, j->arena,
                "noise is not known: the profile does not say how many samples "
                "a number stands for");
    else if (n && chance == n)
        RP_NOTE(out, j->arena, "no change is more than the chance of sampling explains");
    if (out->row_count > (int64_t)out->nrows)
        RP_NOTE(out, j->arena,
                rp_arena_textf(j->arena, "%zu of %s rows: '--limit 0' shows all", out->nrows,
                               rp_units_number(j->arena, out->row_count)));
    return RP_OK;
}

enum rp_code rp_stacks_diff(const struct rp_stacks_part *const *base, size_t nbase,
                            const struct rp_stacks_part *const *fresh, size_t nfresh,
                            const struct rp_stacks_want *want, struct rp_arena *arena,
                            struct rp_stacks_diff_root *out, struct rp_err *err)
{
    RP_SCOPED(rp_stacks_tree_release) struct rp_stacks_tree j = {0};

    RP_TRY(rp_stacks_tree_init(&j, want->by, arena, err));
    for (size_t i = 0; i < nbase; i++)
        RP_TRY(rp_stacks_tree_add(&j, base[i], true, NULL));
    for (size_t i = 0; i < nfresh; i++)
        RP_TRY(rp_stacks_tree_add(&j, fresh[i], false, NULL));
    *out = (struct rp_stacks_diff_root){
        .inputs = "stacks", .by = rp_arena_text(arena, want->by), .measure = j.measure};
    RP_TRY(rp_stacks_tree_fill(&j));
    RP_TRY(fill_changes(&j, want->limit, out));
    RP_TRY(rp_stacks_tree_draw(&j, want->html, want->by));
    return rp_arena_check(arena, "comparing stacks", err);
}
