/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics over the groups of all ranks. Samples are put together by group (counting sort), each
 * group is sorted, and percentiles are read off by the nearest-rank rule: exact, and a value that
 * was measured.
 */
#include "explain/short_name.h"
#include "explain/top/top.h"

#include <math.h>
#include <stdlib.h>

struct joiner {
    struct rp_arena *arena;
    struct rp_strtab names;
    RP_VEC(const char *) kinds;
    RP_VEC(size_t) begin; /* by group: its first value */
    RP_VEC(int64_t) values;
    RP_VEC(int64_t) self;
    RP_VEC(int64_t) count;
    RP_VEC(struct rp_top_row) rows;
};

static int by_value(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

    return (a > b) - (a < b);
}

/* Nearest rank: the smallest value that at least p percent of the values do not exceed. */
static int64_t percentile(const int64_t *sorted, size_t n, unsigned p)
{
    size_t rank = (n * p + 99) / 100;

    return sorted[rank ? rank - 1 : 0];
}

/* Of a population: the mean of the squared distances, its root rounded to a nanosecond. */
static int64_t deviation(const int64_t *v, size_t n, int64_t total)
{
    double mean = (double)total / (double)n, sum = 0;
    size_t i;

    for (i = 0; i < n; i++)
        sum += ((double)v[i] - mean) * ((double)v[i] - mean);
    return (int64_t)llround(sqrt(sum / (double)n));
}

static void fill_row(struct rp_top_row *row, int64_t *v, size_t n, int64_t whole_ns)
{
    size_t i;

    qsort(v, n, sizeof *v, by_value);
    for (i = 0; i < n; i++)
        rp_ns_add(&row->total_ns, v[i]);
    row->count = (int64_t)n;
    row->share = whole_ns > 0 ? (double)row->total_ns / (double)whole_ns : 0;
    row->mean_ns = row->total_ns / (int64_t)n;
    row->min_ns = v[0];
    row->p50_ns = percentile(v, n, 50);
    row->p90_ns = percentile(v, n, 90);
    row->p99_ns = percentile(v, n, 99);
    row->max_ns = v[n - 1];
    row->std_ns = deviation(v, n, row->total_ns);
}

/* Ids of a part's groups among those of all parts. */
static enum rp_code map_groups(struct joiner *j, const struct rp_top_part *part, uint32_t *to,
                               struct rp_err *err)
{
    uint32_t g;

    for (g = 0; g < part->kinds.n; g++) {
        RP_TRY(rp_strtab_intern(&j->names, rp_strtab_borrow(&part->names, g),
                                rp_strtab_len(&part->names, g), &to[g], err));
        while (j->kinds.n <= to[g])
            RP_TRY(rp_vec_push(&j->kinds, part->kinds.at[g], err));
    }
    return RP_OK;
}

static uint32_t **map_all(struct joiner *j, const struct rp_top_part *const *parts, size_t n,
                          struct rp_err *err)
{
    uint32_t **to = RP_ARENA_NEW(j->arena, uint32_t *, n + 1);
    size_t p;

    for (p = 0; to && p < n; p++) {
        to[p] = RP_ARENA_NEW(j->arena, uint32_t, parts[p]->kinds.n + 1);
        if (!to[p] || map_groups(j, parts[p], to[p], err) != RP_OK)
            return NULL;
    }
    return to;
}

static enum rp_code gather(struct joiner *j, const struct rp_top_part *const *parts, size_t n,
                           struct rp_err *err)
{
    uint32_t **to = map_all(j, parts, n, err);
    size_t p, i, total = 0, groups = j->kinds.n;

    if (!to)
        return rp_err_nomem(err, "adding up ranks");
    RP_TRY(rp_vec_reserve(&j->begin, groups + 2, err));
    RP_TRY(rp_vec_reserve(&j->self, groups + 1, err));
    RP_TRY(rp_vec_reserve(&j->count, groups + 1, err));
    memset(j->begin.at, 0, (groups + 2) * sizeof *j->begin.at);
    memset(j->self.at, 0, groups * sizeof *j->self.at);
    memset(j->count.at, 0, groups * sizeof *j->count.at);
    for (p = 0; p < n; p++)
        for (i = 0; i < parts[p]->samples.n; i++, total++)
            j->begin.at[to[p][parts[p]->samples.at[i].group] + 1]++;
    for (i = 0; i < groups; i++)
        j->begin.at[i + 1] += j->begin.at[i];
    RP_TRY(rp_vec_reserve(&j->values, total + 1, err));
    for (p = 0; p < n; p++)
        for (i = 0; i < parts[p]->samples.n; i++) {
            const struct rp_top_sample *s = &parts[p]->samples.at[i];
            uint32_t g = to[p][s->group];

            j->values.at[j->begin.at[g] + (size_t)j->count.at[g]++] = s->total_ns;
            j->self.at[g] = rp_ns_sum(j->self.at[g], s->self_ns);
        }
    return RP_OK;
}

static enum rp_code make_rows(struct joiner *j, int64_t whole_ns, struct rp_err *err)
{
    uint32_t g;

    for (g = 0; g < j->kinds.n; g++) {
        struct rp_top_row row = {.kind = j->kinds.at[g], .self_ns = j->self.at[g]};
        size_t n = (size_t)j->count.at[g], len = rp_strtab_len(&j->names, g);
        char label[256];

        if (!n)
            continue;
        fill_row(&row, j->values.at + j->begin.at[g], n, whole_ns);
        row.name = rp_arena_copy(j->arena, rp_strtab_borrow(&j->names, g), len);
        rp_short_name(rp_strtab_borrow(&j->names, g), label, sizeof label);
        row.label = rp_arena_strdup(j->arena, label);
        if (!row.name || !row.label)
            return rp_err_nomem(err, "adding up ranks");
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

static void sort_rows(struct joiner *j, const char *sort)
{
    size_t i, offset = SIZE_MAX; /* "name" */

    for (i = 0; i < sizeof sorts / sizeof sorts[0]; i++)
        if (!strcmp(sort, sorts[i].word))
            offset = sorts[i].offset;
    if (j->rows.n)
        qsort_r(j->rows.at, j->rows.n, sizeof *j->rows.at, by_sort, &offset);
}

/* Rows of host spans may stand inside each other. */
static bool is_nested(const char *by)
{
    return strcmp(by, "kernel") && strcmp(by, "stream") && strcmp(by, "phase");
}

static enum rp_code fill_notes(struct rp_top_root *out, struct rp_arena *arena, int64_t nparts,
                               struct rp_err *err)
{
    const char *per = nparts > 1 ? ", all ranks together" : "";
    double covered = 100 * out->covered_share;

    out->notes = RP_ARENA_NEW(arena, const char *, 3);
    if (!out->notes)
        return rp_err_nomem(err, "adding up ranks");
    if (!out->row_count)
        out->notes[out->nnotes++] = is_nested(out->by)
                                        ? "nothing of that kind was recorded around a launch"
                                        : "no device work was recorded: try '--by op'";
    if (out->row_count > (int64_t)out->nrows)
        out->notes[out->nnotes++] =
            rp_arena_printf(arena, "%zu of %lld rows: '--limit 0' shows all", out->nrows,
                            (long long)out->row_count);
    out->summary = rp_arena_printf(arena, "%s by %s%s; %.1f %% of it in a row", out->measure,
                                   out->by, per, covered);
    return out->summary ? RP_OK : rp_err_nomem(err, "adding up ranks");
}

static enum rp_code fill_root(struct joiner *j, int64_t limit, struct rp_top_root *out,
                              struct rp_err *err)
{
    out->row_count = (int64_t)j->rows.n;
    out->nrows = limit > 0 && (size_t)limit < j->rows.n ? (size_t)limit : j->rows.n;
    out->rows = RP_ARENA_NEW(j->arena, struct rp_top_row, out->nrows + 1);
    if (!out->rows)
        return rp_err_nomem(err, "adding up ranks");
    if (out->nrows)
        memcpy(out->rows, j->rows.at, out->nrows * sizeof *out->rows);
    if (is_nested(out->by)) {
        out->nested = out->rows;
        out->nnested = out->nrows;
    } else {
        out->flat = out->rows;
        out->nflat = out->nrows;
    }
    out->covered_share = out->whole_ns > 0 ? (double)out->covered_ns / (double)out->whole_ns : 0;
    return fill_notes(out, j->arena, out->ranks, err);
}

enum rp_code rp_top_join(const struct rp_top_part *const *parts, size_t nparts, const char *by,
                         const char *sort, int64_t limit, struct rp_arena *arena,
                         struct rp_top_root *out, struct rp_err *err)
{
    struct joiner j = {.arena = arena};
    enum rp_code code;
    size_t p;

    *out = (struct rp_top_root){.by = by, .measure = "device time", .ranks = (int64_t)nparts};
    for (p = 0; p < nparts; p++) {
        out->whole_ns = rp_ns_sum(out->whole_ns, parts[p]->whole_ns);
        out->covered_ns = rp_ns_sum(out->covered_ns, parts[p]->covered_ns);
        if (parts[p]->on_host)
            out->measure = "host time";
    }
    code = rp_strtab_init(&j.names, err);
    if (code == RP_OK)
        code = gather(&j, parts, nparts, err);
    if (code == RP_OK)
        code = make_rows(&j, out->whole_ns, err);
    if (code == RP_OK) {
        sort_rows(&j, sort);
        code = fill_root(&j, limit, out, err);
    }
    rp_strtab_release(&j.names);
    rp_vec_release(&j.kinds);
    rp_vec_release(&j.begin);
    rp_vec_release(&j.values);
    rp_vec_release(&j.self);
    rp_vec_release(&j.count);
    rp_vec_release(&j.rows);
    return code;
}
