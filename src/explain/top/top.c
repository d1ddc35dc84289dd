/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes statistics over the groups of all ranks. For one group after the other, the times of all
 * ranks are unpacked and sorted, and percentiles are read off by the nearest-rank rule, so they are
 * exact, measured values.
 */
#include "explain/top/top.h"

#include "base/decides.h"
#include "base/filled.h"
#include "base/strtab.h"
#include "dataset/question.h"
#include "explain/short_name.h"
#include "explain/xla_programs.h"
#include "facts/host/outside.h"
#include "facts/torch_names.h"
#include "result/part.h"
#include "result/print_units.h"

#include <math.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ what is kept and shown */

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_top_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(name, STR, NONE, NULL,
        "the name as recorded; with '*' for the numbers where several modules are one row", 0),
    ROW(label, STR, NONE, "name", "the name, shortened", RP_SCREEN | RP_SHORTEN | RP_LABEL),
    ROW(kind, STR, NONE, NULL, "compute, comm or memory for device work; else the kind of span", 0),
    ROW(count, I64, COUNT, "count", "number of occurrences", 0),
    ROW(total_ns, I64, NS, "total", "sum, nested spans included", 0),
    ROW(share, F64, RATIO, "share", "share of the time of all selected work", RP_BAR),
    ROW(self_ns, I64, NS, "self", "time without nested rows", 0),
    ROW(mean_ns, I64, NS, "mean", "total / count", RP_WIDE),
    ROW(min_ns, I64, NS, "min", "minimum", RP_WIDE),
    ROW(p50_ns, I64, NS, "p50", "median, by nearest rank", 0),
    ROW(p90_ns, I64, NS, "p90", "90th percentile, by nearest rank", RP_WIDE),
    ROW(p99_ns, I64, NS, "p99", "99th percentile, by nearest rank", RP_WIDE),
    ROW(max_ns, I64, NS, "max", "maximum", 0),
    ROW(std_ns, I64, NS, "std", "standard deviation of the population", RP_WIDE),
    ROW(modules, I64, COUNT, "names", "names that the row adds up; null: one", RP_NULLABLE),
    ROW(category, STR, NONE, "category", "category of a kernel, operator or shape; otherwise null",
        RP_WIDE),
    RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct rp_top_row), row_fields, NULL};

/* Self time is shown only if rows may be nested. For shapes and ranges, whose names are not
   shortened, the statistics are shown only if there is room. */
#define FLAT                                                                                    \
    "label, modules, count, total_ns, share, mean_ns, min_ns, p50_ns, p90_ns, p99_ns, max_ns, " \
    "std_ns, category"
#define NESTED                                                                            \
    "label, modules, count, total_ns, share, self_ns, mean_ns, min_ns, p50_ns+, p90_ns, " \
    "p99_ns, max_ns+, std_ns, category"
#define SHAPED                                                                              \
    "label*, modules, count, total_ns, share, self_ns+, mean_ns, min_ns, p50_ns+, p90_ns, " \
    "p99_ns, max_ns+, std_ns, category"

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_top_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "top", "text output only", RP_SCREEN),
    ROOT(by, STR, NONE, NULL, "what the rows are", 0),
    ROOT(measure, STR, NONE, NULL, "device time, or host time where no device work was recorded",
         0),
    ROOT(ranks, I64, COUNT, NULL, "number of ranks", 0),
    ROOT(whole_ns, I64, NS, "total", "sum of the durations of all selected work", 0),
    ROOT(covered_ns, I64, NS, NULL, "the part of it that is attributed to a row", 0),
    ROOT(covered_share, F64, RATIO, NULL, "covered_ns / whole_ns", 0),
    ROOT(row_count, I64, COUNT, NULL, "rows before the limit", 0),
    RP_FIELD_LIST(struct rp_top_root, rows, &row_type, NULL, "the largest first", 0),
    RP_FIELD_LIST(struct rp_top_root, skipped, &rp_type_string, NULL,
                  "Python frames around everything, outermost first: not among the rows", 0),
    RP_FIELD_SHOWN(struct rp_top_root, flat, &row_type, "rows", FLAT, 0),
    RP_FIELD_SHOWN(struct rp_top_root, nested, &row_type, "rows", NESTED, 0),
    RP_FIELD_SHOWN(struct rp_top_root, shaped, &row_type, "rows", SHAPED, 0),
    RP_FIELD_LIST(struct rp_top_root, notes, &rp_type_string, "notes", "about the rows", RP_SCREEN),
    RP_FIELD_END};

const struct rp_type rp_top_type = {"top", sizeof(struct rp_top_root), root_fields, "rows"};

static const struct rp_field group_fields[] = {
    RP_PART_TEXT(struct rp_top_group, name),     RP_PART_TEXT(struct rp_top_group, kind),
    RP_PART_TEXT(struct rp_top_group, row),      RP_PART_TEXT(struct rp_top_group, category),
    RP_PART_PLAIN(struct rp_top_group, self_ns), RP_PART_END};
static const struct rp_type group_type = {"group", sizeof(struct rp_top_group), group_fields, NULL};

static const struct rp_field part_fields[] = {
    RP_PART_VEC(struct rp_top_part, groups, &group_type),
    RP_PART_RECORD(struct rp_top_part, times, &rp_time_lists_type),
    RP_PART_VEC(struct rp_top_part, skipped, &group_type),
    RP_PART_PLAIN(struct rp_top_part, whole_ns),
    RP_PART_PLAIN(struct rp_top_part, covered_ns),
    RP_PART_PLAIN(struct rp_top_part, on_host),
    RP_PART_PLAIN(struct rp_top_part, instead),
    RP_PART_TEXT(struct rp_top_part, not_counted),
    RP_PART_PLAIN(struct rp_top_part, recorder),
    RP_PART_RECORD(struct rp_top_part, tree, &rp_tree_part_type),
    RP_PART_RECORD(struct rp_top_part, focus, &rp_focus_part_type),
    RP_PART_RECORD(struct rp_top_part, counters, &rp_counters_part_type),
    RP_PART_RECORD(struct rp_top_part, stacks, &rp_stacks_part_type),
    RP_PART_RECORD(struct rp_top_part, lines, &rp_lines_part_type),
    RP_PART_END};
const struct rp_type rp_top_part_type = {"top_part", sizeof(struct rp_top_part), part_fields, NULL};

/* ------------------------------------------------------------------ adding up */

struct top_join {
    struct rp_recorder recorder; /* of the first rank */
    struct rp_arena *arena;
    struct rp_strtab names;  /* of rows */
    struct rp_strtab single; /* what the rows add up, each with the row in front */
    RP_VEC(struct rp_top_group) groups;
    RP_VEC(int64_t) modules; /* by group: number of different names in it */
    RP_VEC(size_t) begin;    /* by group: where its lists begin */
    RP_VEC(struct rp_time_list) lists;
    RP_VEC(int64_t) values; /* of one group */
    RP_VEC(int64_t) self;
    RP_VEC(struct rp_top_row) rows;
};

/* The deviation of a population: the root of the mean squared distance, rounded to a nanosecond. */
static int64_t deviation(const int64_t *v, size_t n, int64_t total)
{
    double mean = (double)total / (double)n, sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += ((double)v[i] - mean) * ((double)v[i] - mean);
    return (int64_t)llround(sqrt(sum / (double)n));
}

/* v is in ascending order. */
static void fill_row(struct rp_top_row *row, const int64_t *v, size_t n, int64_t whole_ns)
{
    for (size_t i = 0; i < n; i++)
        rp_ns_add(&row->total_ns, v[i]);
    row->count = (int64_t)n;
    row->share = whole_ns > 0 ? (double)row->total_ns / (double)whole_ns : 0;
    row->mean_ns = row->total_ns / (int64_t)n;
    row->min_ns = v[0];
    row->p50_ns = rp_ns_percentile(v, n, 50);
    row->p90_ns = rp_ns_percentile(v, n, 90);
    row->p99_ns = rp_ns_percentile(v, n, 99);
    row->max_ns = v[n - 1];
    row->std_ns = deviation(v, n, row->total_ns);
}

/* Counts the different names of a row. */
static enum rp_code count_module(struct top_join *j, uint32_t row, const char *name,
                                 struct rp_err *err)
{
    const char *key = rp_arena_textf(j->arena, "%u %s", row, name);
    uint32_t id;
    size_t before = j->single.n;

    RP_TRY(rp_strtab_intern(&j->single, key, strlen(key), &id, err));
    j->modules.at[row] += j->single.n > before;
    return RP_OK;
}

/* Maps the ids of a part's groups to those of all parts. */
static enum rp_code map_groups(struct top_join *j, const struct rp_top_part *part, uint32_t *to,
                               struct rp_err *err)
{
    for (size_t g = 0; g < part->groups.n; g++) {
        const struct rp_top_group *group = &part->groups.at[g];
        const char *row = group->row ? group->row : group->name;

        RP_TRY(rp_strtab_intern(&j->names, row, strlen(row), &to[g], err));
        while (j->groups.n <= to[g]) {
            RP_TRY(rp_vec_push(&j->groups, *group, err));
            RP_TRY(rp_vec_push(&j->modules, 0, err));
        }
        if (group->row)
            RP_TRY(count_module(j, to[g], group->name, err));
    }
    return RP_OK;
}

static uint32_t **map_all(struct top_join *j, const struct rp_top_part *const *parts, size_t n,
                          struct rp_err *err)
{
    uint32_t **to = RP_ARENA_NEW(j->arena, uint32_t *, n + 1);

    for (size_t p = 0; to && p < n; p++) {
        to[p] = RP_ARENA_NEW(j->arena, uint32_t, parts[p]->groups.n + 1);
        if (!to[p] || map_groups(j, parts[p], to[p], err) != RP_OK)
            return NULL;
    }
    return to;
}

/* Puts the lists of times together by group. */
static enum rp_code gather_times(struct top_join *j, const struct rp_top_part *const *parts,
                                 size_t n, struct rp_err *err)
{
    uint32_t **to = map_all(j, parts, n, err);
    size_t p, i, total = 0, groups = j->groups.n;

    RP_TRY(rp_err_need(to, err, "adding up ranks"));
    RP_TRY(rp_vec_zeros(&j->begin, groups + 1, err));
    RP_TRY(rp_vec_zeros(&j->self, groups, err));
    for (p = 0; p < n; p++) {
        RP_TRY(rp_time_lists_check(&parts[p]->times, parts[p]->groups.n, err));
        for (i = 0; i < parts[p]->groups.n; i++, total++) {
            j->begin.at[to[p][i] + 2]++;
            rp_ns_add(&j->self.at[to[p][i]], parts[p]->groups.at[i].self_ns);
        }
    }
    for (i = 0; i < groups; i++)
        j->begin.at[i + 1] += j->begin.at[i];
    RP_TRY(rp_vec_reserve(&j->lists, total + 1, err));
    for (p = 0; p < n; p++) /* begin[g + 1] goes from the first list of g to its end */
        for (i = 0; i < parts[p]->groups.n; i++)
            j->lists.at[j->begin.at[to[p][i] + 1]++] =
                (struct rp_time_list){&parts[p]->times, (uint32_t)i};
    return RP_OK;
}

static enum rp_code make_rows(struct top_join *j, int64_t whole_ns, struct rp_err *err)
{
    for (uint32_t g = 0; g < j->groups.n; g++) {
        const struct rp_top_group *group = &j->groups.at[g];
        bool rolled = j->modules.at[g] > 1;
        struct rp_top_row row = {.name = rolled ? group->row : group->name,
                                 .kind = group->kind,
                                 .category = group->category,
                                 .modules = rolled ? j->modules.at[g] : RP_ABSENT_I64,
                                 .self_ns = j->self.at[g]};

        const struct rp_time_list *lists = j->lists.at + j->begin.at[g];
        size_t i, n = j->begin.at[g + 1] - j->begin.at[g], count = 0;
        for (i = 0; i < n; i++)
            count += lists[i].of->count.at[lists[i].at];
        j->values.n = 0;
        RP_TRY(rp_vec_reserve(&j->values, count + 1, err));
        j->values.n = count;
        RP_TRY(rp_time_lists_join(lists, n, j->values.at, err));
        if (!j->values.n)
            continue;
        fill_row(&row, j->values.at, j->values.n, whole_ns);
        RP_TRY(rp_vec_push(&j->rows, row, err));
    }
    return RP_OK;
}

static const struct {
    const char *word;
    size_t offset;
} sorts[] = {
    {"total", offsetof(struct rp_top_row, total_ns)},
    {"self", offsetof(struct rp_top_row, self_ns)},
    {"count", offsetof(struct rp_top_row, count)},
    {"mean", offsetof(struct rp_top_row, mean_ns)},
    {"p50", offsetof(struct rp_top_row, p50_ns)},
    {"p99", offsetof(struct rp_top_row, p99_ns)},
    {"max", offsetof(struct rp_top_row, max_ns)},
    {"std", offsetof(struct rp_top_row, std_ns)},
};

static int64_t sort_value(const struct rp_top_row *row, size_t offset)
{
    int64_t value;

    memcpy(&value, (const char *)row + offset, sizeof value);
    return value;
}

static int by_sort(const void *pa, const void *pb, void *user)
{
    const struct rp_top_row *a = pa, *b = pb;
    const size_t *offset = user;
    int64_t x = *offset == SIZE_MAX ? 0 : sort_value(a, *offset);
    int64_t y = *offset == SIZE_MAX ? 0 : sort_value(b, *offset);

    if (x != y)
        return x > y ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Whether rows may be inside each other, as those of host spans. */
static bool is_nested(const char *by)
{
    return strcmp(by, "kernel") != 0 && strcmp(by, "stream") != 0 && strcmp(by, "phase") != 0 &&
           strcmp(by, "category") != 0;
}

/* "3 frames around all of it are not listed: 'run.py(3): <module>', …; '--flat' lists them" */
static const char *skipped_note(const struct rp_top_root *out, struct rp_arena *arena)
{
    const char *first = out->skipped[0], *last = out->skipped[out->nskipped - 1];

    if (out->nskipped == 1)
        return rp_arena_textf(
            arena, "1 frame around all of it is not listed: '%s'; '--flat' lists it", first);
    return rp_arena_textf(
        arena, "%zu frames around all of it are not listed, '%s' to '%s'; '--flat' lists them",
        out->nskipped, first, last);
}

/* Says how to get Python frames. */
static const char *no_frames_text(const struct rp_recorder *recorder, struct rp_arena *arena)
{
    const char *option = rp_recorder_option(recorder, RP_RECORDS_FRAMES);

    return option
               ? rp_arena_textf(arena, "no Python frames were recorded: %s records them", option)
               : "no Python frames were recorded; 'reprise record --with +sample' has samples, for "
                 "'--by line', and '--by annotation' shows ranges";
}

static void fill_notes(struct rp_top_root *out, const struct rp_recorder *recorder,
                       struct rp_arena *arena, int64_t nparts)
{
    const char *per = nparts > 1 ? ", all ranks together" : "";
    size_t i, rolled = 0;

    for (i = 0; i < out->nrows; i++)
        rolled += out->rows[i].modules != RP_ABSENT_I64;
    if (!out->row_count)
        RP_NOTE(out, arena,
                is_nested(out->by) ? !strcmp(out->by, "wait")
                                         ? "no waits were recorded: 'record --with +blocking'"
                                     : !strcmp(out->by, "python")
                                         ? no_frames_text(recorder, arena)
                                         : "no span of this kind was recorded around a launch"
                                   : "no device work was recorded; try '--by op', '--by "
                                     "annotation' for ranges of your own, or '--by function' "
                                     "for samples");
    if (out->row_count > (int64_t)out->nrows)
        RP_NOTE(out, arena,
                rp_arena_textf(arena, "%zu of %s rows: '--limit 0' shows all", out->nrows,
                               rp_units_number(arena, out->row_count)));
    if (rolled)
        RP_NOTE(out, arena,
                !strcmp(out->by, "annotation")
                    ? "annotations that differ in the number at their end, each used once, are one "
                      "row; '--flat' lists each"
                    : "modules that differ in their numbers are one row; '--flat' lists each");
    if (out->nskipped)
        RP_NOTE(out, arena, skipped_note(out, arena));
    out->summary = rp_arena_textf(arena, "%s by %s%s; %s %s", out->measure, out->by, per,
                                  rp_units_text(arena, out->covered_share, RP_UNIT_RATIO),
                                  !strcmp(out->by, "phase")      ? "in a known phase"
                                  : !strcmp(out->by, "category") ? "in a known category"
                                                                 : "attributed");
}

/* Only kernels have C++ names; different rows get different labels. */
static void label_rows(struct rp_top_root *out, struct rp_arena *arena)
{
    const char **names = RP_ARENA_NEW(arena, const char *, out->nrows + 1);
    const char **labels = RP_ARENA_NEW(arena, const char *, out->nrows + 1);

    if (!names || !labels)
        return;
    for (size_t i = 0; i < out->nrows; i++)
        names[i] = labels[i] = out->rows[i].name;
    if (!strcmp(out->by, "kernel"))
        rp_short_names(names, labels, out->nrows, arena);
    for (size_t i = 0; i < out->nrows && !strcmp(out->by, "module"); i++)
        labels[i] = rp_torch_module(labels[i]);
    for (size_t i = 0; i < out->nrows; i++)
        out->rows[i].label = labels[i];
}

static enum rp_code fill_root(struct top_join *j, int64_t limit, struct rp_top_root *out,
                              struct rp_err *err)
{
    out->row_count = (int64_t)j->rows.n;
    out->nrows = limit > 0 && (size_t)limit < j->rows.n ? (size_t)limit : j->rows.n;
    out->rows = RP_ARENA_NEW(j->arena, struct rp_top_row, out->nrows + 1);
    RP_TRY(rp_err_need(out->rows, err, "adding up ranks"));
    if (out->nrows)
        memcpy(out->rows, j->rows.at, out->nrows * sizeof *out->rows);
    label_rows(out, j->arena);
    if (!strcmp(out->by, "shape") || !strcmp(out->by, "annotation")) {
        out->shaped = out->rows;
        out->nshaped = out->nrows;
    } else if (is_nested(out->by)) {
        out->nested = out->rows;
        out->nnested = out->nrows;
    } else {
        out->flat = out->rows;
        out->nflat = out->nrows;
    }
    out->covered_share = out->whole_ns > 0 ? (double)out->covered_ns / (double)out->whole_ns : 0;
    fill_notes(out, &j->recorder, j->arena, out->ranks);
    return rp_arena_check(j->arena, "adding up ranks", err);
}

/* Joins the frames that the ranks skipped, each once. */
static enum rp_code join_skipped(const struct rp_top_part *const *parts, size_t nparts,
                                 struct rp_arena *arena, struct rp_top_root *out,
                                 struct rp_err *err)
{
    RP_SCOPED(rp_strtab_release) struct rp_strtab seen = {0};
    size_t p, i, most = 0;

    RP_TRY(rp_strtab_init(&seen, err));
    for (p = 0; p < nparts; p++)
        most += parts[p]->skipped.n;
    out->skipped = RP_ARENA_NEW(arena, const char *, most + 1);
    for (p = 0; p < nparts && out->skipped; p++)
        for (i = 0; i < parts[p]->skipped.n; i++) {
            const char *name = parts[p]->skipped.at[i].name;
            size_t before = seen.n;
            uint32_t id;

            RP_TRY(rp_strtab_intern(&seen, name, strlen(name), &id, err));
            if (seen.n > before)
                out->skipped[out->nskipped++] = name;
        }
    return RP_OK;
}

enum rp_code rp_top_join(const struct rp_top_part *const *parts, size_t nparts, const char *by,
                         const char *sort, int64_t limit, struct rp_arena *arena,
                         struct rp_top_root *out, struct rp_err *err)
{
    struct top_join j = {.arena = arena};

    if (nparts)
        j.recorder = parts[0]->recorder;
    *out = (struct rp_top_root){
        .by = rp_arena_text(arena, by), .measure = "device time", .ranks = (int64_t)nparts};
    for (size_t p = 0; p < nparts; p++) {
        out->whole_ns = rp_ns_sum(out->whole_ns, parts[p]->whole_ns);
        out->covered_ns = rp_ns_sum(out->covered_ns, parts[p]->covered_ns);
        if (parts[p]->on_host)
            out->measure = "host time";
    }
    enum rp_code code = rp_strtab_init(&j.names, err);
    if (code == RP_OK)
        code = rp_strtab_init(&j.single, err);
    if (code == RP_OK)
        code = join_skipped(parts, nparts, arena, out, err);
    if (code == RP_OK)
        code = gather_times(&j, parts, nparts, err);
    if (code == RP_OK)
        code = make_rows(&j, out->whole_ns, err);
    if (code == RP_OK) {
        struct top_join *k = &j;
        size_t i, offset = SIZE_MAX; /* "name" */

        for (i = 0; i < sizeof sorts / sizeof sorts[0]; i++)
            if (!strcmp(sort, sorts[i].word))
                offset = sorts[i].offset;
        if (k->rows.n)
            qsort_r(k->rows.at, k->rows.n, sizeof *k->rows.at, by_sort, &offset);
        code = fill_root(&j, limit, out, err);
    }
    rp_strtab_release(&j.names);
    rp_strtab_release(&j.single);
    rp_vec_release(&j.modules);
    rp_vec_release(&j.groups);
    rp_vec_release(&j.begin);
    rp_vec_release(&j.values);
    rp_vec_release(&j.self);
    rp_vec_release(&j.lists);
    rp_vec_release(&j.rows);
    return code;
}

enum rp_code rp_top_of_trace(const struct rp_trace *trace, const char *by, int64_t most,
                             struct rp_arena *arena, struct rp_top_root *out, struct rp_err *err)
{
    static const struct rp_scope all = {0};
    struct rp_top_part part = {0};
    const struct rp_top_part *parts[] = {&part};
    struct rp_top_groups want = {.by = rp_top_by_of(by)};
    enum rp_code code = rp_top_group_work(trace, &all, &want, arena, &part, err);

    if (code == RP_OK)
        code = rp_top_join(parts, 1, by, "total", most, arena, out, err);
    rp_vec_release(&part.groups);
    rp_time_lists_release(&part.times);
    rp_vec_release(&part.skipped);
    return code;
}

/* ------------------------------------------------------------------ the question */

/* The meaning of '--by' for a tree; its default, kernels, means that nothing was asked for. */
static enum rp_code tree_of(const struct rp_settings *settings, enum rp_tree_of *of,
                            struct rp_err *err)
{
    static const enum rp_tree_of trees[RP_TOP_BYS] = {[RP_TOP_OP] = RP_TREE_OP,
                                                      [RP_TOP_MODULE] = RP_TREE_MODULE,
                                                      [RP_TOP_ANNOTATION] = RP_TREE_ANNOTATION,
                                                      [RP_TOP_PYTHON] = RP_TREE_PYTHON};
    const char *by = rp_settings_text(settings, "by");

    *of = rp_settings_has(settings, "by") ? trees[rp_top_by_of(by)] : RP_TREE_AUTO;
    if (*of == RP_TREE_AUTO && rp_settings_has(settings, "by"))
        return rp_err_set(
            err, RP_USAGE,
            "'--by %s' is not a tree: use op, module, annotation or python with '--tree'", by);
    return RP_OK;
}

static bool wants_counters(const struct rp_settings *settings)
{
    return rp_settings_flag(settings, "counters") || rp_settings_text(settings, "counter-table");
}

static enum rp_code counters_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                  const struct rp_settings *settings, struct rp_rank_part *part,
                                  struct rp_err *err)
{
    const char *path = rp_settings_text(settings, "counter-table");
    struct rp_top_part *out = part->data;
    RP_SCOPED(rp_counter_table_release) struct rp_counter_table table = {0};

    if (path)
        RP_TRY(rp_counter_table_read(&table, path, &part->arena, err));
    return rp_counters_make(loaded->trace, scope, path ? &table : NULL, &part->arena,
                            &out->counters, err);
}

/* What the rows are. Kernels are the default; without device work operators of the host, or if
   there are none, ranges. */
static enum rp_top_by rows_of(const struct rp_trace *trace, const struct rp_settings *settings,
                              struct rp_top_part *out)
{
    const int64_t *count = trace->totals.count;

    if (rp_settings_has(settings, "by") || count[RP_KIND_KERNEL] || count[RP_KIND_MEMCPY] ||
        count[RP_KIND_MEMSET] || (!count[RP_KIND_CPU_OP] && !count[RP_KIND_ANNOTATION]))
        return rp_top_by_of(rp_settings_text(settings, "by"));
    out->instead = count[RP_KIND_CPU_OP] ? RP_TOP_OP : RP_TOP_ANNOTATION;
    return (enum rp_top_by)out->instead;
}

/* Options about which the logs of a compiler know nothing. */
static const char *const not_of_logs[] = {"tree",  "focus", "counters", "counter-table",
                                          "width", "split", "sort"};

/* Whether lines of compiled programs can be shown without asking, because there are no samples
   whose lines could be meant. */
static bool wants_lines(const struct rp_trace *trace, const struct rp_settings *settings)
{
    for (size_t i = 0; i < sizeof not_of_logs / sizeof not_of_logs[0]; i++)
        if (rp_settings_has(settings, not_of_logs[i]))
            return false;
    return !trace->samples.n;
}

static enum rp_code top_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                             const struct rp_settings *settings, struct rp_rank_part *part,
                             struct rp_err *err)
{
    struct rp_top_part *out = part->data;
    const char *focus = rp_settings_text(settings, "focus");
    const char *dumps = rp_settings_text(settings, "dumps");
    struct rp_top_groups want = {.by = rows_of(loaded->trace, settings, out),
                                 .flat = rp_settings_flag(settings, "flat"),
                                 .categories = rp_loaded_categories(loaded)};
    struct rp_stacks_how how = {.width = rp_stacks_width_of(rp_settings_text(settings, "width")),
                                .split = rp_stacks_split_of(rp_settings_text(settings, "split")),
                                .in_order = rp_settings_has(settings, "html")};
    struct rp_scope steps = *scope;
    enum rp_tree_of of;

    if (wants_counters(settings))
        return counters_rank(loaded, scope, settings, part, err);
    RP_TRY(rp_judged_scope(loaded->trace, &steps, &part->arena, &out->not_counted, err));
    if (dumps || (want.by == RP_TOP_LINE && wants_lines(loaded->trace, settings)))
        RP_TRY(rp_lines_make(loaded, &steps, dumps, &part->arena, &out->lines, err));
    if (dumps || out->lines.known)
        return RP_OK;
    if (want.by >= RP_TOP_STACK || want.by == RP_TOP_PYTHON)
        RP_TRY(rp_recorder_find(loaded->trace, &out->recorder, err));
    if (want.by >= RP_TOP_STACK && !focus && !rp_settings_flag(settings, "tree"))
        return rp_stacks_make(loaded->trace, &steps, &how, &part->arena, &out->stacks, err);
    if (focus)
        return rp_focus_make(loaded->trace, &steps, focus, &part->arena, &out->focus, err);
    if (rp_settings_flag(settings, "tree")) {
        RP_SCOPED(rp_xla_names_release) struct rp_xla_names names = {0};

        RP_TRY(tree_of(settings, &of, err));
        RP_TRY(rp_xla_names_init(&names, loaded, err));
        return rp_tree_make(loaded->trace, &steps, of, &names, &part->arena, &out->tree, err);
    }
    return rp_top_group_work(loaded->trace, &steps, &want, &part->arena, out, err);
}

static enum rp_code join_tree(const struct rp_top_part *const *tops, size_t n,
                              const struct rp_settings *settings, struct rp_result *result,
                              struct rp_err *err)
{
    const struct rp_tree_part **parts =
        RP_ARENA_NEW(&result->arena, const struct rp_tree_part *, n + 1);
    struct rp_tree_root *root = RP_ARENA_NEW(&result->arena, struct rp_tree_root, 1);
    struct rp_tree_cut cut = {.rows = rp_settings_has(settings, "limit")
                                          ? rp_settings_int(settings, "limit")
                                          : RP_TREE_SCREEN,
                              .depth = rp_settings_int(settings, "depth")};

    RP_TRY(rp_err_need(parts && root, err, "making a tree"));
    for (size_t i = 0; i < n; i++)
        parts[i] = &tops[i]->tree;
    result->type = &rp_tree_type;
    result->root = root;
    RP_TRY(rp_tree_join(parts, n, &cut, &result->arena, root, err));
    if (n)
        RP_NOTE(root, &result->arena, tops[0]->not_counted);
    return rp_arena_check(&result->arena, "making a tree", err);
}

#define FOCUS_ROWS 8
RP_LIMIT(FOCUS_ROWS, "rows of each relation", "unless '--limit' asks for more");

static enum rp_code join_counters(const struct rp_top_part *const *tops, size_t n,
                                  const struct rp_settings *settings, struct rp_result *result,
                                  struct rp_err *err)
{
    const struct rp_counters_part **parts =
        RP_ARENA_NEW(&result->arena, const struct rp_counters_part *, n + 1);
    struct rp_counters_root *root = RP_ARENA_NEW(&result->arena, struct rp_counters_root, 1);

    RP_TRY(rp_err_need(parts && root, err, "adding up counters"));
    for (size_t i = 0; i < n; i++)
        parts[i] = &tops[i]->counters;
    result->type = &rp_counters_type;
    result->root = root;
    RP_TRY(
        rp_counters_join(parts, n, rp_settings_int(settings, "limit"), &result->arena, root, err));
    if (!root->nrows)
        result->answer = RP_ANSWER_NO;
    return RP_OK;
}

/* Rows with most own time come first, because by total, main would come before all others. */
static enum rp_code join_stacks(const struct rp_ranks *ranks, const struct rp_top_part *const *tops,
                                const struct rp_settings *settings, struct rp_result *result,
                                struct rp_err *err)
{
    const struct rp_stacks_part **parts =
        RP_ARENA_NEW(&result->arena, const struct rp_stacks_part *, ranks->n + 1);
    const char **names = RP_ARENA_NEW(&result->arena, const char *, ranks->n + 1);
    struct rp_stacks_root *root = RP_ARENA_NEW(&result->arena, struct rp_stacks_root, 1);
    struct rp_stacks_want want = {
        .by = rp_settings_text(settings, "by"),
        .sort = rp_settings_has(settings, "sort") ? rp_settings_text(settings, "sort") : "self",
        .limit = rp_settings_int(settings, "limit"),
        .html = rp_settings_text(settings, "html"),
        .in_steps = ranks->n && tops[0]->not_counted,
        .frames = ranks->n ? rp_recorder_option(&tops[0]->recorder, RP_RECORDS_FRAMES) : NULL,
        .split_ranks =
            rp_stacks_split_of(rp_settings_text(settings, "split")) == RP_STACKS_BY_RANK};

    RP_TRY(rp_err_need(parts && root && names, err, "adding up stacks"));
    for (size_t i = 0; i < ranks->n; i++) {
        parts[i] = &tops[i]->stacks;

        /* Name a rank "rank 3", or if files are not ranks of one run, by its file. */
        const char *path = ranks->parts[i].path, *slash = strrchr(path, '/');
        names[i] = ranks->unrelated
                       ? rp_arena_text(&result->arena, slash && slash[1] ? slash + 1 : path)
                       : rp_arena_textf(&result->arena, "rank %d", (int)ranks->parts[i].number);
    }
    if (want.split_ranks || ranks->n > 1)
        want.ranks = names;
    result->type = &rp_stacks_type;
    result->root = root;
    RP_TRY(rp_stacks_join(parts, ranks->n, &want, &result->arena, root, err));
    if (ranks->n)
        RP_NOTE(root, &result->arena, tops[0]->not_counted);
    return RP_OK;
}

static enum rp_code join_focus(const struct rp_top_part *const *tops, size_t n,
                               const struct rp_settings *settings, struct rp_result *result,
                               struct rp_err *err)
{
    const struct rp_focus_part **parts =
        RP_ARENA_NEW(&result->arena, const struct rp_focus_part *, n + 1);
    struct rp_focus_root *root = RP_ARENA_NEW(&result->arena, struct rp_focus_root, 1);
    struct rp_focus_cut cut = {.rows = rp_settings_has(settings, "limit")
                                           ? rp_settings_int(settings, "limit")
                                           : FOCUS_ROWS,
                               .flat = rp_settings_flag(settings, "flat")};

    RP_TRY(rp_err_need(parts && root, err, "focusing"));
    for (size_t i = 0; i < n; i++)
        parts[i] = &tops[i]->focus;
    result->type = &rp_focus_type;
    result->root = root;
    RP_TRY(rp_focus_join(parts, n, rp_settings_text(settings, "focus"), &cut, &result->arena, root,
                         err));
    if (n)
        RP_NOTE(root, &result->arena, tops[0]->not_counted);
    if (!root->calls)
        result->answer = RP_ANSWER_NO;
    return RP_OK;
}

static enum rp_code join_lines(const struct rp_top_part *const *tops, size_t n,
                               const struct rp_settings *settings, struct rp_result *result,
                               struct rp_err *err)
{
    const struct rp_lines_part **parts =
        RP_ARENA_NEW(&result->arena, const struct rp_lines_part *, n + 1);
    struct rp_lines_root *root = RP_ARENA_NEW(&result->arena, struct rp_lines_root, 1);

    RP_TRY(rp_err_need(parts && root, err, "adding up lines"));
    for (size_t i = 0; i < n; i++)
        parts[i] = &tops[i]->lines;
    result->type = &rp_lines_type;
    result->root = root;
    RP_TRY(rp_lines_join(parts, n, rp_settings_int(settings, "limit"),
                         rp_settings_text(settings, "html"), &result->arena, root, err));
    if (n)
        RP_NOTE(root, &result->arena, tops[0]->not_counted);
    return rp_arena_check(&result->arena, "adding up lines", err);
}

/* An option that would be ignored is an error. */
static enum rp_code check_stack_options(const struct rp_settings *settings, struct rp_err *err)
{
    static const char *const of_stacks[] = {"width", "split", "html"};
    static const char *const others[] = {"tree", "focus", "counters", "counter-table"};
    bool stacks = rp_top_by_of(rp_settings_text(settings, "by")) >= RP_TOP_STACK;
    const char *other = NULL;

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (rp_settings_has(settings, others[i]))
            other = others[i];
    for (size_t i = 0; i < sizeof of_stacks / sizeof of_stacks[0]; i++) {
        if (!rp_settings_has(settings, of_stacks[i]) || (stacks && !other))
            continue;
        if (other)
            return rp_err_set(err, RP_USAGE, "'--%s' is about call stacks, '--%s' is not",
                              of_stacks[i], other);
        return rp_err_set(err, RP_USAGE,
                          "'--%s' is about call stacks: add '--by stack', 'function' or 'line'",
                          of_stacks[i]);
    }
    return RP_OK;
}

/* Keeps the parts with the same rows: kernels if a rank has any, else operators. */
static size_t keep_alike(const struct rp_top_part **parts, size_t n)
{
    int32_t rows = n ? parts[0]->instead : 0;
    size_t i, kept = 0;

    for (i = 1; i < n; i++)
        rows = parts[i]->instead < rows ? parts[i]->instead : rows;
    for (i = 0; i < n; i++)
        if (parts[i]->instead == rows)
            parts[kept++] = parts[i];
    return kept;
}

static enum rp_code join_groups(const struct rp_ranks *ranks, const struct rp_top_part **parts,
                                const struct rp_settings *settings, struct rp_result *result,
                                struct rp_err *err)
{
    struct rp_top_root *out = result->root;
    size_t n = keep_alike(parts, ranks->n);
    const char *by = n && parts[0]->instead == RP_TOP_OP ? "op"
                     : n && parts[0]->instead == RP_TOP_ANNOTATION
                         ? "annotation"
                         : rp_settings_text(settings, "by");
    const char *sort = n && parts[0]->instead && !rp_settings_has(settings, "sort")
                           ? "self"
                           : rp_settings_text(settings, "sort");

    RP_TRY(rp_top_join(parts, n, by, sort, rp_settings_int(settings, "limit"), &result->arena, out,
                       err));
    out->ranks = (int64_t)ranks->n;
    if (n && parts[0]->instead)
        RP_NOTE(
            out, &result->arena,
            parts[0]->instead == RP_TOP_OP
                ? "no device work was recorded: these are operators of the host; '--by "
                  "annotation' shows ranges of your own"
                : "no device work and no operators were recorded: these are ranges of the host");
    if (n)
        RP_NOTE(out, &result->arena, parts[0]->not_counted);
    /* Notes where the operators of graph kernels come from. */
    if (ranks->ncaptures || is_nested(out->by))
        RP_NOTE(out, &result->arena, ranks->graphs);
    return rp_arena_check(&result->arena, "adding up ranks", err);
}

static enum rp_code top_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                             struct rp_result *result, struct rp_err *err)
{
    const struct rp_top_part **parts =
        RP_ARENA_NEW(&result->arena, const struct rp_top_part *, ranks->n + 1);

    RP_TRY(rp_err_need(parts, err, "adding up ranks"));

    /* The logs of a compiler know lines, and nothing else. */
    if (rp_settings_text(settings, "dumps")) {
        if (rp_top_by_of(rp_settings_text(settings, "by")) != RP_TOP_LINE)
            return rp_err_set(err, RP_USAGE, "'--dumps' is about lines: add '--by line'");
        for (size_t i = 0; i < sizeof not_of_logs / sizeof not_of_logs[0]; i++)
            if (rp_settings_has(settings, not_of_logs[i]))
                return rp_err_set(err, RP_USAGE, "'--dumps' and '--%s' cannot be combined",
                                  not_of_logs[i]);
    }

    RP_TRY(check_stack_options(settings, err));
    for (size_t i = 0; i < ranks->n; i++)
        parts[i] = ranks->parts[i].data;
    if (rp_settings_text(settings, "dumps") || (ranks->n && parts[0]->lines.known))
        return join_lines(parts, ranks->n, settings, result, err);
    if (rp_settings_text(settings, "focus"))
        return join_focus(parts, ranks->n, settings, result, err);
    if (wants_counters(settings))
        return join_counters(parts, ranks->n, settings, result, err);
    if (rp_settings_flag(settings, "tree"))
        return join_tree(parts, ranks->n, settings, result, err);
    if (rp_top_by_of(rp_settings_text(settings, "by")) >= RP_TOP_STACK)
        return join_stacks(ranks, parts, settings, result, err);
    return join_groups(ranks, parts, settings, result, err);
}

static const struct rp_option top_options[] = {
    {"by", 'b', RP_OPT_CHOICE, RP_TOP_BY_WORDS, "kernel", "what the rows are", 0},
    {"limit", 'n', RP_OPT_COUNT, "N", "20", "at most N rows; 0: all", 0},
    {"sort", 's', RP_OPT_CHOICE, RP_TOP_SORTS, "total",
     "sort key, largest first; of stacks, functions and lines self is the default", 0},
    {"flat", 0, RP_OPT_FLAG, NULL, NULL,
     "a row for each numbered module or annotation (layers.0, layers.1), and for the outermost "
     "Python frames",
     0},
    {"tree", 0, RP_OPT_FLAG, NULL, NULL,
     "a tree of modules and annotations, or of what '--by' names; 30 rows unless '--limit' is "
     "given",
     0},
    {"depth", 0, RP_OPT_INT, "N", NULL, "with '--tree': at most N levels", 0},
    {"focus", 0, RP_OPT_TEXT, "NAME", NULL,
     "callers, callees, shapes and Python lines of what has this name, or a name that contains it",
     0},
    {"counters", 0, RP_OPT_FLAG, NULL, NULL,
     "hardware counters of kernels ('record --counters'), with operator and step", 0},
    {"counter-table", 0, RP_OPT_PATH, "FILE", NULL,
     "the same, from a CSV file of Radeon Compute Profiler, joined by the order of kernels", 0},
    {"width", 0, RP_OPT_CHOICE, RP_STACKS_WIDTHS, "cpu",
     "what the width of stacks stands for: time on a processor; with waiting; device work "
     "launched in them; time in which the device is idle",
     0},
    {"split", 0, RP_OPT_CHOICE, RP_STACKS_SPLITS, NULL, "split stacks by thread, step or rank", 0},
    {"dumps", 0, RP_OPT_PATH, "DIR", NULL,
     "with '--by line': measured time by line of the program, from the logs of torch.compile "
     "(TORCH_TRACE) or the dumps of XLA in this folder or file",
     0},
    {"html", 0, RP_OPT_PATH, "FILE", NULL,
     "with '--by stack', 'function' or 'line': a page with a flame graph", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_top = {
    .question = {.name = "top",
                 .group = "traces",
                 .summary = "what takes the time: kernels, operators, shapes, modules, …",
                 .details =
                     "Device time by name, summed over all ranks. For operators, shapes, modules, "
                     "annotations and Python frames it is the time of the device work launched "
                     "inside them; without device work, host time. Percentiles are exact.",
                 .examples =
                     "reprise top trace.json.gz\tthe kernels that take most time\n"
                     "reprise top --by op --sort self run/\tthe operators that launch it\n"
                     "reprise top --by shape --step 12 run/\tone step, by input shapes\n"
                     "reprise top --tree run/\tmodules, with what is inside them\n"
                     "reprise top --by function profile.pb.gz\tfunctions of a sampled profile\n"
                     "reprise top --focus aten::bmm run/\twho calls it, with which shapes\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = top_options,
                 .type = &rp_top_type},
    .ranks = {.part = &rp_top_part_type, .rank = top_rank, .join = top_join}};
