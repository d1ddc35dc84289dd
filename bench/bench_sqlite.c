/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reading a recording in SQLite costs beside a bare loop over the same file: all rows of all
 * tables by sqlite3_step, and each value by one call. Rows a second of processor time, of the best
 * of several runs, on one thread.
 *
 *   bench_sqlite PATH [RUNS]
 */
#include "rp_config.h"

#include "formats/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if RP_HAVE_SQLITE
#include <sqlite3.h>

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t walk_table(sqlite3 *db, const char *table, uint64_t *sum)
{
    char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", table);
    sqlite3_stmt *rows = NULL;
    uint64_t n = 0;

    sqlite3_prepare_v2(db, sql, -1, &rows, NULL);
    for (; rows && sqlite3_step(rows) == SQLITE_ROW; n++)
        for (int i = 0; i < sqlite3_column_count(rows); i++)
            *sum += (uint64_t)(sqlite3_column_type(rows, i) == SQLITE_TEXT
                                   ? sqlite3_column_bytes(rows, i)
                                   : sqlite3_column_int64(rows, i));
    sqlite3_finalize(rows);
    sqlite3_free(sql);
    return n;
}

static uint64_t walk_file(const char *path)
{
    sqlite3_stmt *tables = NULL;
    uint64_t n = 0, sum = 0;
    sqlite3 *db = NULL;

    sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    sqlite3_exec(db, "PRAGMA mmap_size = 1099511627776", NULL, NULL, NULL);
    sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type = 'table'", -1, &tables,
                       NULL);
    while (tables && sqlite3_step(tables) == SQLITE_ROW)
        n += walk_table(db, (const char *)sqlite3_column_text(tables, 0), &sum);
    sqlite3_finalize(tables);
    sqlite3_close(db);
    return n;
}

static int read_file(const char *path)
{
    struct rp_read_options options = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = {0};
    struct rp_input *in;

    if (rp_input_open(path, NULL, &in, &err) != RP_OK ||
        rp_format_read(in, &options, &import, &err) != RP_OK) {
        fprintf(stderr, "bench_sqlite: %s\n", err.text);
        return 1;
    }
    rp_import_release(&import);
    return 0;
}

int main(int argc, char **argv)
{
    int runs = argc > 2 ? atoi(argv[2]) : 5;
    double bare = 1e30, whole = 1e30, began;
    uint64_t rows = 0;

    if (argc < 2)
        return 2;
    for (int i = 0; i < runs; i++) {
        began = now_s();
        rows = walk_file(argv[1]);
        bare = now_s() - began < bare ? now_s() - began : bare;
        began = now_s();
        if (read_file(argv[1]))
            return 1;
        whole = now_s() - began < whole ? now_s() - began : whole;
    }
    printf(
        "%llu rows: bare loop %.2f M rows/s, reprise %.2f M rows/s with all passes, %.2f of it\n",
        (unsigned long long)rows, (double)rows / bare / 1e6, (double)rows / whole / 1e6,
        bare / whole);
    return 0;
}
#else
int main(void)
{
    fprintf(stderr, "bench_sqlite: built without SQLite\n");
    return 1;
}
#endif
