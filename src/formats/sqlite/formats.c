/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats that are SQLite files. Their schema can be anywhere in the file, so the first bytes
 * may tell only that it is such a file. Then all tables are listed, and their names decide the
 * reader.
 */
#include "formats/formats.h"
#include "base/clock.h"
#include "base/text.h"
#include "formats/list.h"
#include "formats/sqlite/readers.h"
#include "trace/secrets.h"

#include "rp_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[16] = "SQLite format 3";

static enum rp_sniff sniff_table(const uint8_t *head, size_t n, const char *table)
{
    if (n < sizeof magic || memcmp(head, magic, sizeof magic) != 0)
        return RP_SNIFF_NO;
    return memmem(head, n, table, strlen(table)) ? RP_SNIFF_CERTAIN : RP_SNIFF_FALLBACK;
}

static bool is_report(const char *file)
{
    return rp_text_ends(file, ".nsys-rep") || rp_text_ends(file, ".qdrep");
}

/* A report of Nsight Systems is known by its name only: the format is not published. */
static enum rp_sniff sniff_nsys(const uint8_t *head, size_t n, const char *file)
{
    enum rp_sniff fit = sniff_table(head, n, "CUPTI_ACTIVITY_KIND_");

    if (fit == RP_SNIFF_FALLBACK && memmem(head, n, "META_DATA_EXPORT", 16))
        return RP_SNIFF_CERTAIN;
    return fit == RP_SNIFF_NO && is_report(file) ? RP_SNIFF_FALLBACK : fit;
}

static enum rp_sniff sniff_rocpd(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return sniff_table(head, n, "rocpd_info_");
}

static enum rp_sniff sniff_rpd(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return sniff_table(head, n, "rocpd_api_ops");
}

/* ------------------------------------------------------------------ reading */

#if RP_HAVE_SQLITE
static bool has_prefix(const struct rp_database *db, const char *prefix)
{
    const char *table;

    for (size_t i = 0; (table = rp_database_table(db, i)); i++)
        if (!strncmp(table, prefix, strlen(prefix)))
            return true;
    return false;
}

static bool is_nsys(const struct rp_database *db)
{
    return rp_database_has(db, "META_DATA_EXPORT") ||
           (rp_database_has(db, "StringIds") && has_prefix(db, "CUPTI_ACTIVITY_KIND_"));
}

static bool is_rocpd(const struct rp_database *db)
{
    return has_prefix(db, "rocpd_info_");
}

static bool is_rpd(const struct rp_database *db)
{
    return rp_database_has(db, "rocpd_op") || rp_database_has(db, "rocpd_api");
}

static const struct {
    const struct rp_format *format;
    bool (*fits)(const struct rp_database *db);
    enum rp_code (*read)(struct rp_activity *a, struct rp_database *db, struct rp_err *err);
} readers[] = {{&rp_format_nsys, is_nsys, rp_nsys_read},
               {&rp_format_rocpd, is_rocpd, rp_rocpd_read},
               {&rp_format_rpd, is_rpd, rp_rpd_read}};
#define NREADERS (sizeof readers / sizeof *readers)

static enum rp_code no_reader(const struct rp_database *db, struct rp_err *err)
{
    char names[200] = "";
    const char *table;

    for (size_t i = 0; (table = rp_database_table(db, i)) && strlen(names) < 140; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%.40s", i ? ", " : "",
                 table);
    rp_err_set(err, RP_FORMAT, "is a SQLite file, but none of a profiler that is known");
    return rp_err_context(err, RP_FORMAT, "its tables: %s", *names ? names : "none");
}

static enum rp_code note_damage(struct rp_activity *a, const struct rp_database *db,
                                struct rp_err *err)
{
    const char *damage = rp_database_damage(db);

    if (!damage)
        return RP_OK;
    a->t.health->salvaged = 1;
    return rp_builder_warn(a->t.builder, err, "%s; what could be read is shown", damage);
}

/* Called for rows of META_DATA_CAPTURE, rocpd_info_process_… or ProcessStreams. */
static enum rp_code note_unread(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_import *to = user;
    size_t n;

    (void)err;
    const char *name = rp_cell_text(rows, 0, &n);
    if (strstr(name, "ENVIRONMENT") || rp_cell_has(rows, 1))
        to->unread |= RP_SECRET_BIT(ENVIRONMENT);
    if (strstr(name, ":ARGUMENT") || strchr(rp_cell_text(rows, 2, &n), ' '))
        to->unread |= RP_SECRET_BIT(COMMAND);
    if (rp_cell_has(rows, 3))
        to->unread |= RP_SECRET_BIT(OUTPUT);
    return RP_OK;
}

/* Environment, command line and output of the program are not read, but whoever shares the file
   should know that it contains them. */
static enum rp_code find_unread(struct rp_database *db, struct rp_import *to, struct rp_err *err)
{
    static const char *const columns[] = {"name", "environment", "command", "contentId", NULL};
    const char *table;

    for (size_t i = 0; (table = rp_database_table(db, i)); i++)
        if (!strcmp(table, "META_DATA_CAPTURE") || !strcmp(table, "ProcessStreams") ||
            !strncmp(table, "rocpd_info_process", 18))
            RP_TRY(rp_rows_each(db, table, columns, note_unread, to, err));
    return RP_OK;
}

static enum rp_code read_with(struct rp_activity *a, struct rp_input *in,
                              const struct rp_read_options *options, struct rp_import *to,
                              struct rp_err *err)
{
    int64_t begin_ns = rp_clock_ns();
    struct rp_database *db = NULL;
    size_t i = 0;

    RP_TRY(rp_activity_init(a, in, options, rp_format_nsys.name, err));
    RP_TRY(rp_database_open(a->t.bytes, a->t.n, options, &db, err));
    while (i < NREADERS && !readers[i].fits(db))
        i++;
    enum rp_code code = i < NREADERS ? RP_OK : no_reader(db, err);
    if (code == RP_OK) {
        to->format = readers[i].format;
        code = rp_proto_trace_text(&a->t, to->format->name, &a->t.trace->format, err);
    }
    if (code == RP_OK)
        code = readers[i].read(a, db, err);
    if (code == RP_OK)
        code = find_unread(db, to, err);
    if (code == RP_OK)
        code = note_damage(a, db, err);
    rp_database_close(db);
    return code == RP_OK ? rp_activity_finish(a, to, begin_ns, err) : code;
}
#else
static enum rp_code read_with(struct rp_activity *a, struct rp_input *in,
                              const struct rp_read_options *options, struct rp_import *to,
                              struct rp_err *err)
{
    (void)a;
    (void)in;
    (void)options;
    (void)to;
    return rp_err_set(err, RP_MISSING,
                      "is a SQLite file, which needs libsqlite3 (Debian: libsqlite3-dev): install "
                      "it and build again");
}
#endif

static enum rp_code read_sqlite(struct rp_input *in, const struct rp_read_options *options,
                                struct rp_import *to, struct rp_err *err)
{
    struct rp_activity *a;
    const uint8_t *head;
    size_t n;

    RP_TRY(rp_input_peek(in, sizeof magic, &head, &n, err));
    if (n < sizeof magic || memcmp(head, magic, sizeof magic) != 0) {
        rp_err_set_at(err, RP_FORMAT, 0,
                      "is a report of Nsight Systems, whose format is not published");
        return rp_err_context(err, RP_FORMAT,
                              "export it, and give the .sqlite file: 'nsys export --type sqlite "
                              "--include-blobs true REPORT'");
    }
    a = calloc(1, sizeof *a);
    RP_TRY(rp_err_need(a, err, "reading a trace"));
    enum rp_code code = read_with(a, in, options, to, err);
    rp_activity_release(a);
    free(a);
    return code;
}

const struct rp_format rp_format_nsys = {
    .name = "nsys-sqlite",
    .summary = "recording of NVIDIA Nsight Systems, exported to SQLite",
    .files = "*.sqlite",
    .written_by = "nsys export --type sqlite; nsys stats",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_nsys,
    .read = read_sqlite,
};

const struct rp_format rp_format_rocpd = {
    .name = "rocpd",
    .summary = "recording of AMD's ROCm profilers, SQLite with schema 3",
    .files = "*_results.db, rocpd-*.db",
    .written_by = "rocprofv3 of ROCm 7; rocprof-sys",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_rocpd,
    .read = read_sqlite,
};

const struct rp_format rp_format_rpd = {
    .name = "rpd",
    .summary = "recording of rocmProfileData, SQLite",
    .files = "*.rpd",
    .written_by = "rocmProfileData (runTracer.sh, rpd_tracer)",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_rpd,
    .read = read_sqlite,
};
