/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an SQLite database with one table for each kind of object, with names as text, so that
 * queries need no joins for names.
 *
 *     SELECT name, count(*), sum(dur_ns) FROM event WHERE kind = 'kernel' GROUP BY name;
 *
 * The file is written under a temporary name in the folder of the target and renamed when it is
 * complete, so SQLite's journal and syncs are not needed. Rows are appended by id in one
 * transaction with one prepared statement for each table; indexes are made at the end, by sorting.
 */
#include "formats/write/writers.h"

#include "rp_config.h"

#if RP_HAVE_SQLITE
#include "trace/words.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEMP_TRIES 100

struct db {
    const struct rp_trace *t;
    sqlite3 *sql;
    sqlite3_stmt *insert;
    const char *path; /* to name in messages */
    int column;       /* the column bound last in the row being made */
    bool failed;
};

/* ------------------------------------------------------------------ rows */

static void put_null(struct db *db)
{
    sqlite3_bind_null(db->insert, ++db->column);
}

static void put_int(struct db *db, int64_t v)
{
    sqlite3_bind_int64(db->insert, ++db->column, v);
}

/* Binds an id, or NULL for RP_NONE. */
static void put_id(struct db *db, uint32_t id)
{
    if (id == RP_NONE)
        put_null(db);
    else
        put_int(db, id);
}

/* Binds a count, or NULL for RP_NO_COUNT. */
static void put_count(struct db *db, int64_t count)
{
    if (count == RP_NO_COUNT)
        put_null(db);
    else
        put_int(db, count);
}

static void put_text(struct db *db, const char *text)
{
    sqlite3_bind_text(db->insert, ++db->column, text, -1, SQLITE_STATIC);
}

static void put_str(struct db *db, rp_str s)
{
    sqlite3_bind_text64(db->insert, ++db->column, rp_trace_str(db->t, s),
                        rp_trace_str_len(db->t, s), SQLITE_STATIC, SQLITE_UTF8);
}

/* Binds a string, or NULL if it is empty. */
static void put_name(struct db *db, rp_str s)
{
    if (s)
        put_str(db, s);
    else
        put_null(db);
}

static void put_native_id(struct db *db, int64_t id, rp_str text)
{
    if (text || id == RP_ID_EMPTY)
        put_str(db, text);
    else
        put_int(db, id);
}

static void end_row(struct db *db)
{
    if (!db->failed && sqlite3_step(db->insert) != SQLITE_DONE)
        db->failed = true;
    sqlite3_reset(db->insert);
    db->column = 0;
}

/* ------------------------------------------------------------------ tables */

static void fill_process(struct db *db)
{
    for (uint32_t i = 0; i < db->t->nprocesses; i++) {
        const struct rp_process *p = &db->t->processes[i];

        put_int(db, i);
        put_native_id(db, p->native_id, p->text);
        put_name(db, p->name);
        put_name(db, p->labels);
        if (p->device < 0)
            put_null(db);
        else
            put_int(db, p->device);
        put_int(db, p->sort_index);
        end_row(db);
    }
}

static void fill_track(struct db *db)
{
    for (uint32_t i = 0; i < db->t->ntracks; i++) {
        const struct rp_track_info *track = &db->t->tracks[i];

        put_int(db, i);
        put_int(db, track->process);
        if (track->has_id)
            put_native_id(db, track->native_id, track->text);
        else
            put_null(db);
        put_name(db, track->name);
        put_text(db, rp_word_track_kind(track->kind));
        put_int(db, track->sort_index);
        put_int(db, track->end - track->first);
        end_row(db);
    }
}

static void put_origin(struct db *db, uint16_t i)
{
    const struct rp_origin *origin = &db->t->origins[i];

    if (origin->has_category)
        put_str(db, origin->category);
    else
        put_null(db);
    sqlite3_bind_text(db->insert, ++db->column, &origin->phase, 1, SQLITE_STATIC);
}

static void fill_event(struct db *db)
{
    const struct rp_events *ev = &db->t->ev;

    for (rp_event i = 0; i < ev->n; i++) {
        put_int(db, i);
        if (ev->ts_ns[i] == RP_NO_TS)
            put_null(db);
        else
            put_int(db, ev->ts_ns[i]);
        if (ev->dur_ns[i] == RP_OPEN_NS)
            put_null(db);
        else
            put_int(db, ev->dur_ns[i]);
        put_str(db, ev->name[i]);
        put_text(db, rp_word_kind(ev->kind[i]));
        put_origin(db, ev->origin[i]);
        put_int(db, ev->track[i]);
        put_id(db, ev->parent[i]);
        put_id(db, ev->link[i]);
        put_int(db, ev->flags[i]);
        end_row(db);
    }
}

/* Writes the arguments of the object with this id. */
static void put_args(struct db *db, uint32_t of, uint16_t shape, uint32_t row)
{
    uint32_t n = shape ? rp_args_count(&db->t->args, shape, row) : 0;

    for (uint32_t i = 0; i < n; i++) {
        struct rp_arg arg = rp_args_at(&db->t->args, shape, row, i);

        put_int(db, of);
        put_int(db, i);
        put_str(db, arg.key);
        put_text(db, rp_word_arg_type(arg.type));
        if (arg.type == RP_ARG_I64)
            put_int(db, arg.v.i);
        else if (arg.type == RP_ARG_F64)
            sqlite3_bind_double(db->insert, ++db->column, arg.v.f);
        else
            put_str(db, arg.v.s);
        end_row(db);
    }
}

static void fill_arg(struct db *db)
{
    const struct rp_events *ev = &db->t->ev;

    for (rp_event e = 0; e < ev->n; e++)
        put_args(db, e, ev->shape[e], ev->arg_row[e]);
}

static void fill_flow_arg(struct db *db)
{
    const struct rp_flows *f = &db->t->flows;

    for (uint32_t i = 0; i < f->n; i++)
        put_args(db, i, f->shape[i], f->arg_row[i]);
}

static void fill_link(struct db *db)
{
    const struct rp_links *links = &db->t->links;

    for (rp_link i = 0; i < links->n; i++) {
        bool text = links->offset[i] < links->offset[i + 1] &&
                    db->t->ev.flags[links->member[links->offset[i]]] & RP_EVENT_ID_TEXT;

        put_int(db, i);
        if (text)
            put_str(db, (rp_str)links->native_id[i]);
        else
            put_int(db, links->native_id[i]);
        put_text(db, rp_word_link_source(links->source[i]));
        end_row(db);
    }
}

static void fill_link_member(struct db *db)
{
    const struct rp_links *links = &db->t->links;

    for (rp_link i = 0; i < links->n; i++)
        for (uint32_t k = links->offset[i]; k < links->offset[i + 1]; k++) {
            put_int(db, i);
            put_int(db, k - links->offset[i]);
            put_int(db, links->member[k]);
            end_row(db);
        }
}

static void fill_flow(struct db *db)
{
    const struct rp_flows *f = &db->t->flows;

    for (uint32_t i = 0; i < f->n; i++) {
        put_int(db, i);
        if (f->ts_ns[i] == RP_NO_TS)
            put_null(db);
        else
            put_int(db, f->ts_ns[i]);
        if (f->flags[i] & RP_FLOW_NO_ID)
            put_null(db);
        else if (f->flags[i] & RP_FLOW_ID_TEXT)
            put_str(db, (rp_str)f->id[i]);
        else
            put_int(db, f->id[i]);
        put_str(db, f->name[i]);
        put_origin(db, f->origin[i]);
        put_int(db, f->track[i]);
        put_id(db, f->event[i]);
        put_int(db, (f->flags[i] & RP_FLOW_BIND_ENCLOSING) != 0);
        end_row(db);
    }
}

static void fill_step(struct db *db)
{
    for (uint32_t i = 0; i < db->t->nsteps; i++) {
        const struct rp_step *step = &db->t->steps[i];

        put_int(db, i);
        put_str(db, step->name);
        put_text(db, rp_word_step_source(step->source));
        put_int(db, step->number);
        put_int(db, step->begin_ns);
        put_int(db, step->end_ns);
        put_id(db, step->mark);
        put_text(db, rp_word_step_phase(step->phase));
        put_count(db, step->requests);
        put_count(db, step->tokens);
        end_row(db);
    }
}

static void fill_device(struct db *db)
{
    for (uint32_t i = 0; i < db->t->ndevices; i++) {
        const struct rp_device *device = &db->t->devices[i];

        put_int(db, device->id);
        put_str(db, device->name);
        put_int(db, device->memory_bytes);
        put_int(db, device->multiprocessors);
        end_row(db);
    }
}

static void fill_meta(struct db *db)
{
    for (uint32_t i = 0; i < db->t->nmeta; i++) {
        put_str(db, db->t->meta[i].key);
        put_str(db, db->t->meta[i].value);
        put_int(db, db->t->meta[i].after_events);
        end_row(db);
    }
}

static void fill_frame(struct db *db)
{
    const struct rp_call_samples *s = &db->t->samples;

    for (uint32_t i = 0; i < s->nframes; i++) {
        put_int(db, i);
        put_str(db, s->frame[i].name);
        put_name(db, s->frame[i].file);
        if (s->frame[i].line)
            put_int(db, s->frame[i].line);
        else
            put_null(db);
        put_text(db, rp_word_frame_kind(s->frame[i].kind));
        end_row(db);
    }
}

static void fill_stack(struct db *db)
{
    for (uint32_t i = 0; i < db->t->samples.nstacks; i++) {
        put_int(db, i);
        put_id(db, db->t->samples.stacks[i].parent);
        put_int(db, db->t->samples.stacks[i].frame);
        end_row(db);
    }
}

static void fill_sample(struct db *db)
{
    const struct rp_call_samples *s = &db->t->samples;

    for (uint32_t i = 0; i < s->n; i++) {
        put_int(db, i);
        if (s->ts_ns[i] == RP_NO_TS)
            put_null(db);
        else
            put_int(db, s->ts_ns[i]);
        put_int(db, s->weight[i]);
        put_int(db, s->track[i]);
        put_id(db, s->stack[i]);
        put_int(db, s->flags[i]);
        end_row(db);
    }
}

static void fill_health(struct db *db)
{
    const struct rp_health *h = &db->t->health;

#define ROW(key, unit, doc) \
    put_text(db, #key);     \
    put_int(db, h->key);    \
    put_text(db, doc);      \
    end_row(db);
    RP_HEALTH_MAP(ROW)
#undef ROW
}

static void fill_warning(struct db *db)
{
    for (uint32_t i = 0; i < db->t->nwarnings; i++) {
        put_str(db, db->t->warnings[i]);
        end_row(db);
    }
}

static void put_fact(struct db *db, const char *key, bool known, int64_t v)
{
    put_text(db, key);
    if (known)
        put_int(db, v);
    else
        put_null(db);
    end_row(db);
}

static void fill_trace(struct db *db)
{
    const struct rp_trace *t = db->t;
    const struct {
        const char *key;
        rp_str value;
    } texts[] = {{"format", t->format},
                 {"framework", t->framework},
                 {"framework_version", t->framework_version}};

    put_text(db, "written_by");
    put_text(db, "reprise " RP_VERSION);
    end_row(db);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        put_text(db, texts[i].key);
        put_name(db, texts[i].value);
        end_row(db);
    }
    put_fact(db, "rank", t->rank != RP_NO_RANK, t->rank);
    put_fact(db, "world_size", t->world_size > 0, t->world_size);
    put_fact(db, "base_ns", t->has_base, t->base_ns);
    put_fact(db, "span_begin_ns", true, t->totals.span_begin_ns);
    put_fact(db, "span_end_ns", true, t->totals.span_end_ns);
    put_fact(db, "events", true, t->ev.n);
    put_text(db, "sample_weight_unit");
    if (t->samples.n)
        put_text(db, rp_word_weight_unit(t->samples.unit));
    else
        put_null(db);
    end_row(db);
}

static const struct table {
    const char *name, *definition;
    int ncolumns;
    void (*fill)(struct db *db);
} tables[] = {
    {"trace", "(key TEXT PRIMARY KEY, value)", 2, fill_trace},
    {"meta", "(key TEXT, value TEXT, after_events INTEGER)", 3, fill_meta},
    {"warning", "(text TEXT)", 1, fill_warning},
    {"health", "(name TEXT PRIMARY KEY, count INTEGER, meaning TEXT)", 3, fill_health},
    {"device", "(id INTEGER, name TEXT, memory_bytes INTEGER, multiprocessors INTEGER)", 4,
     fill_device},
    {"process",
     "(id INTEGER PRIMARY KEY, pid, name TEXT, labels TEXT, device INTEGER, sort_index INTEGER)", 6,
     fill_process},
    {"track",
     "(id INTEGER PRIMARY KEY, process INTEGER REFERENCES process, tid, name TEXT, kind TEXT,"
     " sort_index INTEGER, events INTEGER)",
     7, fill_track},
    {"event",
     "(id INTEGER PRIMARY KEY, ts_ns INTEGER, dur_ns INTEGER, name TEXT, kind TEXT, category TEXT,"
     " phase TEXT, track INTEGER REFERENCES track, parent INTEGER REFERENCES event,"
     " link INTEGER REFERENCES link, flags INTEGER)",
     11, fill_event},
    {"arg",
     "(event INTEGER REFERENCES event, position INTEGER, key TEXT, type TEXT, value,"
     " PRIMARY KEY (event, position)) WITHOUT ROWID",
     5, fill_arg},
    {"link", "(id INTEGER PRIMARY KEY, native_id, source TEXT)", 3, fill_link},
    {"link_member",
     "(link INTEGER REFERENCES link, position INTEGER, event INTEGER REFERENCES event,"
     " PRIMARY KEY (link, position)) WITHOUT ROWID",
     3, fill_link_member},
    {"flow",
     "(id INTEGER PRIMARY KEY, ts_ns INTEGER, flow_id, name TEXT, category TEXT, phase TEXT,"
     " track INTEGER REFERENCES track, event INTEGER REFERENCES event, bind_enclosing INTEGER)",
     9, fill_flow},
    {"flow_arg",
     "(flow INTEGER REFERENCES flow, position INTEGER, key TEXT, type TEXT, value,"
     " PRIMARY KEY (flow, position)) WITHOUT ROWID",
     5, fill_flow_arg},
    {"step",
     "(id INTEGER PRIMARY KEY, name TEXT, source TEXT, number INTEGER, begin_ns INTEGER,"
     " end_ns INTEGER, event INTEGER REFERENCES event, phase TEXT, requests INTEGER,"
     " tokens INTEGER)",
     10, fill_step},
    {"frame", "(id INTEGER PRIMARY KEY, name TEXT, file TEXT, line INTEGER, kind TEXT)", 5,
     fill_frame},
    {"stack",
     "(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES stack, frame INTEGER REFERENCES frame)", 3,
     fill_stack},
    {"sample",
     "(id INTEGER PRIMARY KEY, ts_ns INTEGER, weight INTEGER, track INTEGER REFERENCES track,"
     " stack INTEGER REFERENCES stack, flags INTEGER)",
     6, fill_sample},
};

static const char before_sql[] = "PRAGMA page_size = 16384; PRAGMA journal_mode = OFF;"
                                 "PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
                                 "PRAGMA cache_size = -65536; BEGIN";

/* thread: a view of host tracks with their process, under familiar names. */
static const char after_sql[] =
    "CREATE INDEX event_track ON event (track, ts_ns);"
    "CREATE INDEX event_name ON event (name);"
    "CREATE INDEX event_kind ON event (kind, ts_ns);"
    "CREATE INDEX event_parent ON event (parent);"
    "CREATE INDEX event_link ON event (link);"
    "CREATE INDEX flow_event ON flow (event);"
    "CREATE VIEW thread AS SELECT track.id, pid, tid, track.name, process.name AS process_name"
    " FROM track JOIN process ON process.id = track.process WHERE kind = 'thread';"
    "COMMIT";

/* ------------------------------------------------------------------ the file */

static enum rp_code sql_error(struct db *db, struct rp_err *err)
{
    int code = db->sql ? sqlite3_errcode(db->sql) : SQLITE_NOMEM;

    if (code == SQLITE_NOMEM)
        return rp_err_nomem(err, "writing an SQLite database");
    return rp_err_set(err, RP_IO, "cannot write '%s': %s", db->path, sqlite3_errmsg(db->sql));
}

static enum rp_code run_sql(struct db *db, const char *sql, struct rp_err *err)
{
    return sqlite3_exec(db->sql, sql, NULL, NULL, NULL) == SQLITE_OK ? RP_OK : sql_error(db, err);
}

static enum rp_code write_table(struct db *db, const struct table *table, struct rp_err *err)
{
    char sql[640];

    snprintf(sql, sizeof sql, "CREATE TABLE %s %s", table->name, table->definition);
    RP_TRY(run_sql(db, sql, err));
    int n = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES (?", table->name);
    for (int i = 1; i < table->ncolumns; i++)
        n += snprintf(sql + n, sizeof sql - (size_t)n, ",?");
    snprintf(sql + n, sizeof sql - (size_t)n, ")");
    if (sqlite3_prepare_v2(db->sql, sql, -1, &db->insert, NULL) != SQLITE_OK)
        return sql_error(db, err);
    table->fill(db);
    if (db->failed)
        sql_error(db, err);
    sqlite3_finalize(db->insert);
    db->insert = NULL;
    return db->failed ? RP_IO : RP_OK;
}

static enum rp_code write_tables(struct db *db, const char *file, struct rp_err *err)
{
    if (sqlite3_open_v2(file, &db->sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        RP_TRY(sql_error(db, err));
    RP_TRY(run_sql(db, before_sql, err));
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        RP_TRY(write_table(db, &tables[i], err));
    RP_TRY(run_sql(db, after_sql, err));
    if (sqlite3_close(db->sql) != SQLITE_OK)
        return rp_err_set(err, RP_BUG, "'%s': a statement was left open", db->path);
    return RP_OK;
}

/* Creates an empty file with an unused name in the folder of path. mode is that of the file it
 * replaces, or 0. Returns NULL with errno on failure; the caller frees the name. */
static char *new_temp(const char *path, mode_t mode)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;

    for (int i = 0; i < TEMP_TRIES; i++) {
        struct timespec now;
        char *name;

        clock_gettime(CLOCK_REALTIME, &now);
        if (asprintf(&name, "%.*s.reprise-%ld-%lx%x.tmp", folder, path, (long)getpid(),
                     (unsigned long)now.tv_nsec, (unsigned)i) < 0)
            return NULL;
        int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            if (mode)
                (void)!fchmod(fd, mode);
            close(fd);
            return name;
        }
        free(name);
        if (errno != EEXIST)
            return NULL;
    }
    return NULL;
}

/* Syncs the file and renames it. */
static enum rp_code put_in_place(const char *temp, const char *path, struct rp_err *err)
{
    int fd = open(temp, O_RDONLY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;

    if (!synced)
        rp_err_set_os(err, errno, "cannot write '%s'", path);
    if (fd >= 0)
        close(fd);
    if (synced && rename(temp, path) != 0)
        return rp_err_set_os(err, errno, "cannot rename '%s' to '%s'", temp, path);
    return synced ? RP_OK : RP_IO;
}

static enum rp_code write_sqlite(const struct rp_trace *trace, const char *path,
                                 const struct rp_write_options *options, struct rp_err *err)
{
    struct db db = {.t = trace, .path = path};
    struct stat st;
    bool exists = stat(path, &st) == 0;
    char *real = exists ? realpath(path, NULL) : NULL;

    (void)options;
    if (strcmp(path, "-") == 0 || (exists && !S_ISREG(st.st_mode))) {
        free(real);
        return rp_err_set(err, RP_USAGE, "'%s': an SQLite database needs the path of a file", path);
    }
    enum rp_code code = rp_trace_require(trace, RP_NEED_ALL, err);
    char *temp =
        code == RP_OK ? new_temp(real ? real : path, exists ? st.st_mode & 0777 : 0) : NULL;
    if (code == RP_OK && !temp)
        code = rp_err_set_os(err, errno, "cannot write '%s'", path);
    if (code == RP_OK)
        code = write_tables(&db, temp, err);
    if (code == RP_OK)
        code = put_in_place(temp, real ? real : path, err);
    if (code != RP_OK && temp)
        unlink(temp);
    free(temp);
    free(real);
    return code;
}

#else

static enum rp_code write_sqlite(const struct rp_trace *trace, const char *path,
                                 const struct rp_write_options *options, struct rp_err *err)
{
    (void)trace;
    (void)options;
    return rp_err_set(err, RP_MISSING,
                      "'%s': this reprise was built without SQLite; install libsqlite3-dev and"
                      " build it again",
                      path);
}

#endif

const struct rp_writer rp_writer_sqlite = {
    .name = "sqlite",
    .endings = {".sqlite", ".db"},
    .summary = "SQLite database",
    .available = RP_HAVE_SQLITE,
    .samples = RP_SAMPLES_ALL,
    .write = write_sqlite,
};
