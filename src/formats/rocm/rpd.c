/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads RPD, the databases of rocmProfileData: operations of devices (rocpd_op), calls (rocpd_api),
 * and which call started which operation (rocpd_api_ops). An operation has the process of its call,
 * because it names none. Numbers of calls have 64 bits, of which the upper ones name a part of the
 * recording, so calls are numbered again.
 */
#include "formats/rocm/rocm.h"
#include "formats/sqlite/readers.h"
#include "formats/sqlite/texts.h"
#include "rp_config.h"

#if RP_HAVE_SQLITE

struct rpd_call {
    int64_t pid, bytes;
    int64_t grid[3], group[3];
    bool has_dims, has_bytes;
};

struct rpd {
    struct rp_activity *a;
    struct rp_texts texts;
    struct rp_map call_of; /* from the number of a call to its index in calls */
    struct rp_map launch;  /* from the number of an operation to an index in calls */
    RP_VEC(struct rpd_call) calls;
    uint64_t first_process;
};

/* ------------------------------------------------------------------ who started what */

static enum rp_code note_call(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rpd *r = user;
    struct rpd_call call = {.pid = rp_cell_int(rows, 1, 0)};
    uint32_t fresh = (uint32_t)r->calls.n, at;

    if (!r->calls.n)
        r->first_process = (uint64_t)call.pid;
    RP_TRY(rp_map_intern(&r->call_of, (uint64_t)rp_cell_int(rows, 0, 0), fresh, &at, err));
    return at == fresh ? rp_vec_push(&r->calls, call, err) : RP_OK;
}

static struct rpd_call *call_in(struct rpd *r, const struct rp_rows *rows)
{
    uint32_t at = rp_map_get(&r->call_of, (uint64_t)rp_cell_int(rows, 0, 0));

    return at == RP_MAP_NONE ? NULL : &r->calls.at[at];
}

static enum rp_code note_dims(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rpd_call *call = call_in(user, rows);

    (void)err;
    for (int i = 0; call && i < 3; i++) {
        call->group[i] = rp_cell_int(rows, 4 + i, 1);
        /* The runtime's interface counts the grid in blocks, unlike the device's. */
        call->grid[i] = rp_cell_int(rows, 1 + i, 1);
        call->has_dims = true;
    }
    return RP_OK;
}

static enum rp_code note_bytes(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rpd_call *call = call_in(user, rows);

    (void)err;
    if (call)
        call->has_bytes = rp_cell_get(rows, 1, &call->bytes);
    return RP_OK;
}

static enum rp_code note_launch(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rpd *r = user;
    uint32_t at = rp_map_get(&r->call_of, (uint64_t)rp_cell_int(rows, 0, 0));

    if (at == RP_MAP_NONE)
        return RP_OK;
    return rp_map_put(&r->launch, (uint64_t)rp_cell_int(rows, 1, 0), at, err);
}

static const struct rpd_call *launch_of(const struct rpd *r, int64_t op, uint32_t *at)
{
    *at = rp_map_get(&r->launch, (uint64_t)op);
    return *at == RP_MAP_NONE ? NULL : &r->calls.at[*at];
}

static enum rp_code note_rank(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rpd *r = user;
    uint32_t at;
    const struct rpd_call *call = launch_of(r, rp_cell_int(rows, 0, 0), &at);

    return rp_activity_add_rank(r->a, call ? (uint64_t)call->pid : r->first_process,
                                rp_cell_int(rows, 1, 0), err);
}

/* ------------------------------------------------------------------ events */

enum { ID, DEVICE, QUEUE, START, END, WHAT, TYPE };

static enum rp_code name_operation(struct rpd *r, const struct rp_rows *rows,
                                   struct rp_activity_event *e, struct rp_err *err)
{
    size_t n;
    const char *type = rp_texts_borrow(&r->texts, rp_cell_int(rows, TYPE, -1), &n);

    RP_TRY(rp_texts_intern(&r->texts, r->a, rp_cell_int(rows, WHAT, -1), &e->name, err));
    if (!strcmp(type, "KernelExecution") || !strcmp(type, "Task"))
        return RP_OK;
    e->kind = strstr(type, "Copy")   ? RP_ACTIVITY_MEMCPY
              : strstr(type, "Fill") ? RP_ACTIVITY_MEMSET
                                     : RP_ACTIVITY_SYNC;
    if (e->kind == RP_ACTIVITY_MEMCPY)
        return rp_proto_trace_word(&r->a->t, rp_rocm_copy_name(type), &e->name, err);
    if (e->kind == RP_ACTIVITY_MEMSET)
        return rp_proto_trace_word(&r->a->t, "Memset (Device)", &e->name, err);
    return rp_activity_intern(r->a, type, n, &e->name, err);
}

static enum rp_code read_operation(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rpd *r = user;
    struct rp_activity_event e = {.kind = RP_ACTIVITY_KERNEL,
                                  .device = rp_cell_int(rows, DEVICE, 0),
                                  .track = rp_cell_int(rows, QUEUE, 0)};
    uint32_t at;
    const struct rpd_call *call = launch_of(r, rp_cell_int(rows, ID, 0), &at);

    if (!rp_cell_get(rows, START, &e.begin_ns) || !rp_cell_get(rows, END, &e.end_ns)) {
        rp_activity_skip(r->a, rp_rows_table(rows), rp_rows_number(rows));
        return RP_OK;
    }
    e.device = e.device < 0 ? 0 : e.device;
    e.process = call ? (uint64_t)call->pid : r->first_process;
    e.correlation = call ? (int64_t)at + 1 : 0;
    RP_TRY(name_operation(r, rows, &e, err));
    if (call && call->has_dims && e.kind == RP_ACTIVITY_KERNEL) {
        RP_TRY(rp_activity_dims(r->a, &e, "grid", call->grid, err));
        RP_TRY(rp_activity_dims(r->a, &e, "block", call->group, err));
    }
    if (call && call->has_bytes && e.kind == RP_ACTIVITY_MEMCPY)
        RP_TRY(rp_activity_int(r->a, &e, "bytes", call->bytes, err));
    return rp_activity_add(r->a, &e, err);
}

/* Reads calls; ranges of roctx are calls named "UserMarker", with their text as the arguments. */
static enum rp_code read_api(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rpd *r = user;
    struct rp_activity_event e = {.device = RP_ACTIVITY_HOST,
                                  .process = (uint64_t)rp_cell_int(rows, 1, 0),
                                  .track = rp_cell_int(rows, 2, 0)};
    size_t n;

    if (!rp_cell_get(rows, 3, &e.begin_ns) || !rp_cell_get(rows, 4, &e.end_ns)) {
        rp_activity_skip(r->a, rp_rows_table(rows), rp_rows_number(rows));
        return RP_OK;
    }
    const char *name = rp_texts_borrow(&r->texts, rp_cell_int(rows, 5, -1), &n);
    e.correlation = (int64_t)rp_map_get(&r->call_of, (uint64_t)rp_cell_int(rows, 0, 0)) + 1;
    if (!strcmp(name, "UserMarker")) {
        e.kind = RP_ACTIVITY_ANNOTATION;
        RP_TRY(rp_texts_intern(&r->texts, r->a, rp_cell_int(rows, 6, -1), &e.name, err));
        return rp_activity_add(r->a, &e, err);
    }
    e.kind = strstr(name, "::writeRows") ? RP_ACTIVITY_OVERHEAD
             : !strncmp(name, "hsa_", 4) ? RP_ACTIVITY_DRIVER
             : !strncmp(name, "hip", 3)  ? RP_ACTIVITY_RUNTIME
                                         : RP_ACTIVITY_CALL;
    RP_TRY(rp_texts_intern(&r->texts, r->a, rp_cell_int(rows, 5, -1), &e.name, err));
    return rp_activity_add(r->a, &e, err);
}

/* Reads sampled clocks, power and memory of a device. */
static enum rp_code read_monitor(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rpd *r = user;
    struct rp_activity_event e = {.kind = RP_ACTIVITY_COUNTER,
                                  .process = r->first_process,
                                  .device = rp_cell_int(rows, 0, 0)};
    size_t n;

    if (!rp_cell_get(rows, 2, &e.begin_ns)) {
        rp_activity_skip(r->a, rp_rows_table(rows), rp_rows_number(rows));
        return RP_OK;
    }
    const char *name = rp_cell_text(rows, 1, &n);
    RP_TRY(rp_activity_intern(r->a, name, n, &e.name, err));
    e.track = -2 - (int64_t)e.name;
    RP_TRY(rp_activity_real(r->a, &e, "value", rp_cell_real(rows, 3), err));
    return rp_activity_add(r->a, &e, err);
}

/* ------------------------------------------------------------------ the file */

static void rpd_release(struct rpd *r)
{
    rp_texts_release(&r->texts);
    rp_map_release(&r->call_of);
    rp_map_release(&r->launch);
    rp_vec_release(&r->calls);
}

enum rp_code rp_rpd_read(struct rp_activity *a, struct rp_database *db, struct rp_err *err)
{
    RP_SCOPED(rpd_release) struct rpd r = {.a = a};

    static const char *const call[] = {"id", "pid", NULL};
    static const char *const dims[] = {"api_ptr_id", "gridX",      "gridY",      "gridZ",
                                       "workgroupX", "workgroupY", "workgroupZ", NULL};
    static const char *const bytes[] = {"api_ptr_id", "size", NULL};
    static const char *const launch[] = {"api_id", "op_id", NULL};
    static const char *const rank[] = {"id", "gpuId", NULL};
    static const char *const operation[] = {"id",  "gpuId",          "queueId",   "start",
                                            "end", "description_id", "opType_id", NULL};
    static const char *const api[] = {"id",  "pid",        "tid",     "start",
                                      "end", "apiName_id", "args_id", NULL};
    static const char *const monitor[] = {"deviceId", "monitorType", "start", "value", NULL};
    RP_TRY(rp_texts_load(&r.texts, db, "rocpd_string", "id", "string", err));
    RP_TRY(rp_rows_each(db, "rocpd_api", call, note_call, &r, err));
    RP_TRY(rp_rows_each(db, "rocpd_kernelapi", dims, note_dims, &r, err));
    RP_TRY(rp_rows_each(db, "rocpd_copyapi", bytes, note_bytes, &r, err));
    RP_TRY(rp_rows_each(db, "rocpd_api_ops", launch, note_launch, &r, err));
    RP_TRY(rp_rows_each(db, "rocpd_op", rank, note_rank, &r, err));
    RP_TRY(rp_activity_order_ranks(r.a, err));
    RP_TRY(rp_rows_each(db, "rocpd_op", operation, read_operation, &r, err));
    RP_TRY(rp_rows_each(db, "rocpd_api", api, read_api, &r, err));
    return rp_rows_each(db, "rocpd_monitor", monitor, read_monitor, &r, err);
}

#endif
