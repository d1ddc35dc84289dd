/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what describes a recording of Nsight Systems: versions, processes, threads, devices, the
 * clock, warnings of the profiler. Tables are made only when they have rows, and columns come and
 * go with the version of the schema (3.0 to 3.25), so everything may be missing. Rows are in no
 * order.
 *
 * META_DATA_CAPTURE has the environment of the recorded program, ProcessStreams its output: they
 * are not read.
 */
#include "formats/nsys/nsys.h"
#include "base/each.h"

#include "formats/sqlite/readers.h"
#include "rp_config.h"

#if RP_HAVE_SQLITE
#include <stdlib.h>

#define SEVERITY_WARNING 2
#define SEVERITY_ERROR   3

/* ------------------------------------------------------------------ versions */

static enum rp_code read_export(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    static const char *const kept[] = {"EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION"};
    struct rp_nsys *r = user;
    rp_str key, value;
    size_t n;

    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *text = rp_cell_text(rows, 0, &n);
        if (strcmp(text, kept[i]) != 0)
            continue;
        RP_TRY(rp_proto_trace_text(&r->a->t, kept[i], &key, err));
        text = rp_cell_text(rows, 1, &n);
        RP_TRY(rp_activity_intern(r->a, text, n, &value, err));
        return rp_builder_add_meta(r->a->t.builder, key, value, false, err);
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ processes and devices */

static enum rp_code read_process(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    uint64_t key = rp_nsys_process(rp_cell_int(rows, 0, 0));
    rp_str name;
    size_t n;

    if (rp_map_get(&r->a->by_key, key) == RP_MAP_NONE)
        return RP_OK; /* nobody asks for those of hundreds of compilers and shells */
    const char *text = rp_cell_text(rows, 2, &n);
    RP_TRY(rp_activity_intern(r->a, text, n, &name, err));
    return rp_activity_process(r->a, key, rp_cell_int(rows, 1, 0), name, err);
}

/* Threads that did something have a track by now. */
static enum rp_code read_thread(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    int64_t global = rp_cell_int(rows, 0, 0);
    uint64_t key = rp_nsys_process(global);
    uint32_t process = rp_map_get(&r->a->by_key, key);
    rp_str name;

    if (process == RP_MAP_NONE ||
        !rp_activity_has_track(r->a, key, RP_ACTIVITY_HOST, rp_nsys_thread(global)))
        return RP_OK;
    RP_TRY(rp_texts_intern(&r->texts, r->a, rp_cell_int(rows, 1, -1), &name, err));
    return rp_activity_name_track(r->a, key, RP_ACTIVITY_HOST, rp_nsys_thread(global), name, err);
}

static enum rp_code read_gpu(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_device device = {.id = rp_cell_int(rows, 1, rp_cell_int(rows, 0, 0)),
                               .memory_bytes = rp_cell_int(rows, 3, 0),
                               .multiprocessors = rp_cell_int(rows, 4, 0)};
    size_t n;

    if (device.id < 0 || device.memory_bytes < 0 || device.multiprocessors < 0)
        return RP_OK;
    const char *text = rp_cell_text(rows, 2, &n);
    RP_TRY(rp_activity_intern(r->a, text, n, &device.name, err));
    return rp_builder_add_device(r->a->t.builder, &device, err);
}

/* ------------------------------------------------------------------ the clock */

struct session {
    int64_t utc_ns, system_ns, length_ns;
    bool has_utc, has_system;
};

static enum rp_code read_start(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct session *s = user;

    (void)err;
    s->has_utc = rp_cell_get(rows, 0, &s->utc_ns);
    s->has_system = rp_cell_get(rows, 1, &s->system_ns);
    return RP_OK;
}

static enum rp_code read_length(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct session *s = user;

    (void)err;
    s->length_ns = rp_cell_int(rows, 0, 0);
    return RP_OK;
}

/* ------------------------------------------------------------------ warnings */

static enum rp_code read_diagnostic(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    static const char *const losses[] = {"drop", "lost", "discard", "not all", "overflow"};
    struct rp_nsys *r = user;
    int64_t severity = rp_cell_int(rows, 0, 0);
    bool told = severity == SEVERITY_ERROR;
    size_t n;

    const char *text = rp_cell_text(rows, 1, &n);
    for (size_t i = 0; severity == SEVERITY_WARNING && i < sizeof losses / sizeof *losses; i++)
        told |= strcasestr(text, losses[i]) != NULL;
    if (!told)
        return RP_OK;
    return rp_builder_warn(r->a->t.builder, err, "Nsight Systems says: %.*s",
                           (int)(strcspn(text, "\n") < 200 ? strcspn(text, "\n") : 200), text);
}

/* ------------------------------------------------------------------ the file */

static enum rp_code read_tables(struct rp_nsys *r, struct rp_err *err)
{
    static const char *const pair[] = {"name", "value", NULL};
    static const char *const process[] = {"globalPid", "pid", "name", NULL};
    static const char *const thread[] = {"globalTid", "nameId", NULL};
    static const char *const gpu[] = {"id", "cuDevice", "name", "totalMemory", "smCount", NULL};
    static const char *const diagnostic[] = {"severity", "text", NULL};

    RP_TRY(rp_rows_each(r->db, "META_DATA_EXPORT", pair, read_export, r, err));
    RP_TRY(rp_texts_load(&r->texts, r->db, "StringIds", "id", "value", err));
    if (!r->texts.list.n)
        RP_TRY(rp_builder_warn(r->a->t.builder, err,
                               "the table StringIds is missing or empty: kernels, calls and ranges "
                               "have no names (export the report again)"));
    RP_TRY(rp_nsys_find_ranks(r, err));
    RP_TRY(rp_rows_each(r->db, "TARGET_INFO_GPU", gpu, read_gpu, r, err));
    RP_TRY(rp_nsys_read_device(r, err));
    RP_TRY(rp_nsys_read_host(r, err));
    RP_TRY(rp_nsys_read_nvtx(r, err));
    RP_TRY(rp_rows_each(r->db, "PROCESSES", process, read_process, r, err));
    RP_TRY(rp_rows_each(r->db, "ThreadNames", thread, read_thread, r, err));
    RP_TRY(rp_rows_each(r->db, "DIAGNOSTIC_EVENT", diagnostic, read_diagnostic, r, err));

    /* Times count from the start of the session. Some exports have times of the system's clock
       instead: then all of them are later than the start on that clock, and later than the session
       is long. */
    static const char *const start[] = {"utcEpochNs", "systemClockNs", NULL};
    static const char *const length[] = {"duration", NULL};
    struct rp_trace *t = r->a->t.trace;
    struct session s = {0};
    RP_TRY(rp_rows_each(r->db, "TARGET_INFO_SESSION_START_TIME", start, read_start, &s, err));
    RP_TRY(rp_rows_each(r->db, "ANALYSIS_DETAILS", length, read_length, &s, err));
    if (!s.has_utc || s.utc_ns < 0 || s.utc_ns > RP_TIME_MAX_NS)
        return RP_OK;
    t->has_base = 1;
    t->base_ns = s.utc_ns;
    if (s.has_system && s.system_ns > 0 && s.length_ns > 0 && r->a->first_ns >= s.system_ns &&
        r->a->last_ns > s.length_ns && r->a->last_ns != INT64_MIN)
        t->base_ns -= s.system_ns;
    return RP_OK;
}

enum rp_code rp_nsys_read(struct rp_activity *a, struct rp_database *db, struct rp_err *err)
{
    struct rp_nsys *r = calloc(1, sizeof *r);

    RP_TRY(rp_err_need(r, err, "reading a trace"));
    r->a = a;
    r->db = db;
    enum rp_code code = read_tables(r, err);
    rp_texts_release(&r->texts);
    RP_EACH(rp_map_release, &r->calls, &r->contexts, &r->recorded, &r->node_of, &r->schemas,
            &r->group_sizes, &r->metrics);
    RP_EACH(rp_vec_release, &r->nodes, &r->records, &r->entries, &r->words, &r->frames, &r->stack);
    free(r);
    return code;
}

#endif
