/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the tables of a dataset. Ranks are read and numbered as for every question, but their
 * traces are kept. The findings are those of the question `report`, which is asked when they are
 * wanted.
 */
#include "query/open.h"

#include "base/order.h"
#include "dataset/question.h"
#include "explain/report/answer.h"
#include "trace/run.h"

#include <stdlib.h>

extern const struct rp_question_row rp_ask_report;

/* ------------------------------------------------------------------ reading */

struct kept_rank {
    struct rp_import import;
    struct rp_digest *digest;
    const char *path;
    size_t source;
    uint32_t part;
};

struct keeping {
    pthread_mutex_t lock;
    struct rp_tables *tables;
    RP_VEC(struct kept_rank) all;
};

RP_ORDER(by_source, struct kept_rank, RP_UP(source), RP_UP(part))

static enum rp_code keep_rank(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct keeping *k = user;
    struct kept_rank rank = {.source = loaded->index, .part = loaded->part};

    RP_TRY(rp_trace_require(loaded->trace, RP_NEED_EVENTS,
                            err)); /* rp_table_prepare derives the rest */
    RP_TRY(rp_digest_new(loaded->trace, loaded->source->name, &rank.digest, err));
    pthread_mutex_lock(&k->lock);
    rank.path = rp_arena_text(&k->tables->arena, loaded->source->name);
    enum rp_code code = rp_vec_push(&k->all, rank, err);
    if (code == RP_OK)
        rp_loaded_take(loaded, &k->all.at[k->all.n - 1].import);
    pthread_mutex_unlock(&k->lock);
    if (code != RP_OK)
        rp_digest_free(rank.digest);
    return code;
}

/* Lists the ranks of the run, in the order of their numbers. Inputs that are not ranks (a launcher)
   are read but not shown. */
static enum rp_code settle_ranks(struct rp_tables *tables, struct keeping *k, struct rp_run *run,
                                 struct rp_err *err)
{
    struct rp_table_rank *ranks;

    rp_sort(k->all.at, k->all.n, sizeof *k->all.at, by_source);
    for (size_t i = 0; i < k->all.n; i++)
        RP_TRY(rp_run_add(run, &k->all.at[i].digest, i, err));
    RP_TRY(rp_run_settle(run, err));
    ranks = calloc(run->ranks.n + 1, sizeof *ranks);
    RP_TRY(rp_err_need(ranks, err, "opening tables"));
    for (size_t i = 0; i < run->ranks.n; i++) {
        const struct kept_rank *kept = &k->all.at[run->ranks.at[i].file];

        ranks[i] = (struct rp_table_rank){.trace = kept->import.trace,
                                          .number = run->ranks.at[i].number,
                                          .path = kept->path,
                                          .arena = RP_ARENA_INIT};
    }
    rp_table_set_init(&tables->set, ranks, run->ranks.n);
    tables->set.threads = rp_pool_threads(tables->ctx->pool);
    return rp_arena_check(&tables->arena, "opening tables", err);
}

static enum rp_code read_ranks(struct rp_tables *tables, struct rp_err *err)
{
    struct keeping k = {.lock = PTHREAD_MUTEX_INITIALIZER, .tables = tables};
    struct rp_run *run = NULL;
    enum rp_code code = rp_run_new(&run, err);

    if (code == RP_OK)
        code = rp_each_rank(tables->ctx, tables->dataset, keep_rank, &k, err);
    if (code == RP_OK)
        code = settle_ranks(tables, &k, run, err);
    if (code == RP_OK)
        code = rp_vec_reserve(&tables->imports, k.all.n, err);
    for (size_t i = 0; i < k.all.n; i++) {
        rp_digest_free(k.all.at[i].digest);
        if (code == RP_OK)
            tables->imports.at[tables->imports.n++] = k.all.at[i].import;
        else
            rp_import_release(&k.all.at[i].import);
    }
    rp_vec_release(&k.all);
    rp_run_free(run);
    return code;
}

/* ------------------------------------------------------------------ life */

static void hold_tables(void *what)
{
    atomic_fetch_add(&((struct rp_tables *)what)->users, 1);
}

static void drop_tables(void *what)
{
    struct rp_tables *tables = what;

    if (atomic_fetch_sub(&tables->users, 1) != 1)
        return;
    rp_table_set_release(&tables->set);
    for (size_t i = 0; i < tables->imports.n; i++)
        rp_import_release(&tables->imports.at[i]);
    rp_vec_release(&tables->imports);
    rp_arena_release(&tables->arena);
    if (tables->report)
        rp_result_free(tables->report);
    pthread_mutex_destroy(&tables->lock);
    free(tables);
}

enum rp_code rp_tables_open(const struct rp_dataset *dataset, struct rp_tables **out,
                            struct rp_err *err)
{
    struct rp_tables *tables = calloc(1, sizeof *tables);

    *out = NULL;
    RP_TRY(rp_err_need(tables, err, "opening tables"));
    atomic_init(&tables->users, 1);
    pthread_mutex_init(&tables->lock, NULL);
    tables->dataset = dataset;
    tables->ctx = dataset->ctx;
    enum rp_code code = read_ranks(tables, err);
    if (code == RP_OK)
        *out = tables;
    else
        drop_tables(tables);
    return code;
}

void rp_tables_free(struct rp_tables *tables)
{
    if (tables)
        drop_tables(tables);
}

/* ------------------------------------------------------------------ findings */

static enum rp_code fill_findings(struct rp_tables *tables, struct rp_err *err)
{
    static const struct rp_settings none = {.options = NULL};
    struct rp_settings settings = none;
    struct rp_table_rank *run = &tables->set.run;

    RP_TRY(rp_settings_init(&settings, rp_ask_report.question.options, NULL, 0, err));
    RP_TRY(rp_result_new(rp_ask_report.question.type, &tables->report, err));
    RP_TRY(rp_ask_report.run
               ? rp_ask_report.run(tables->ctx, tables->dataset, &settings, tables->report, err)
               : rp_ask_ranks(tables->ctx, tables->dataset, &settings, &rp_ask_report.ranks,
                              tables->report, err));
    const struct rp_report_root *root = tables->report->root;
    struct rp_finding_row *rows =
        RP_ARENA_NEW(&run->arena, struct rp_finding_row, root->nfindings + 1);
    RP_TRY(rp_err_need(rows, err, "listing findings"));
    for (size_t i = 0; i < root->nfindings; i++) {
        const struct rp_report_finding *f = &root->findings[i];

        rows[i] = (struct rp_finding_row){.id = f->id,
                                          .title = f->title,
                                          .evidence = f->nevidence ? f->evidence[0] : NULL,
                                          .hint = f->hint,
                                          .lost_ns = f->lost_ns,
                                          .share = f->share,
                                          .at_most = f->at_most};
    }
    run->arrays[RP_ARRAY_FINDING] = (struct rp_table_span){rows, sizeof *rows};
    run->nrows[RP_TABLE_FINDINGS] = root->nfindings;
    tables->set.ready[RP_TABLE_FINDINGS] = true;
    return RP_OK;
}

enum rp_code rp_tables_prepare(struct rp_tables *tables, const struct rp_table *table,
                               struct rp_err *err)
{
    enum rp_table_id id = rp_table_id(table);
    enum rp_code code = RP_OK;

    pthread_mutex_lock(&tables->lock);
    if (id == RP_TABLE_FINDINGS && !tables->set.ready[id])
        code = fill_findings(tables, err);
    else if (!tables->set.ready[id])
        code = rp_table_prepare(&tables->set, table, err);
    pthread_mutex_unlock(&tables->lock);
    return code;
}

/* ------------------------------------------------------------------ the public description */

size_t rp_tables_list(size_t first, size_t n, struct rp_table_view *out, size_t size)
{
    n = rp_clip_range(first, n, RP_TABLE_COUNT);
    for (size_t i = 0; i < n; i++) {
        const struct rp_table *t = &rp_tables_all[first + i];
        struct rp_table_view view = {.name = t->name, .doc = t->doc, .ncolumns = t->ncolumns};

        rp_copy_view(out, i, size, &view, sizeof view);
    }
    return n;
}

size_t rp_tables_columns(const char *table, size_t first, size_t n, struct rp_column_view *out,
                         size_t size)
{
    const struct rp_table *t = rp_table_find(table);

    n = t ? rp_clip_range(first, n, t->ncolumns) : 0;
    for (size_t i = 0; i < n; i++) {
        const struct rp_table_column *c = &t->columns[first + i];
        struct rp_column_view view = {.name = c->name,
                                      .type = rp_table_type_name(c),
                                      .unit = rp_table_unit_name(c),
                                      .doc = c->doc,
                                      .nullable = c->nullable};

        rp_copy_view(out, i, size, &view, sizeof view);
    }
    return n;
}

enum rp_code rp_tables_stream_columns(struct rp_tables *tables, const char *table,
                                      const char *const *columns, size_t ncolumns,
                                      struct ArrowArrayStream *out, struct rp_err *err)
{
    const struct rp_table *t = rp_table_find(table);
    struct rp_arrow_owner owner = {hold_tables, drop_tables, tables};

    *out = (struct ArrowArrayStream){0};
    if (!t)
        return rp_err_set(err, RP_USAGE, "there is no table '%s'", table);
    RP_TRY(rp_tables_prepare(tables, t, err));
    return rp_arrow_stream(&tables->set, t, columns, ncolumns, &owner, out, err);
}

enum rp_code rp_tables_stream(struct rp_tables *tables, const char *table,
                              struct ArrowArrayStream *out, struct rp_err *err)
{
    return rp_tables_stream_columns(tables, table, NULL, 0, out, err);
}
