/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads work of devices: kernels, copies, memsets, waits, and graphs that were recorded as a whole.
 * Ids of calls restart in every process, so a launch is found by process and id.
 */
#include "formats/nsys/nsys.h"
#include "trace/hidden.h"

#include "rp_config.h"

#if RP_HAVE_SQLITE
#include <stdio.h>

#define NO_STREAM UINT32_MAX /* the wait is for a whole context */

/* All tables of device work begin with these columns. */
enum { START, END, PROCESS, DEVICE, STREAM, CORRELATION, CONTEXT, OWN };
#define COMMON "start", "end", "globalPid", "deviceId", "streamId", "correlationId", "contextId"

/* ------------------------------------------------------------------ ranks */

static enum rp_code note_rank(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    int64_t process;

    if (!rp_cell_get(rows, 0, &process))
        return RP_OK;
    int64_t device = rp_cell_int(rows, 1, 0);
    if (r->a->nranks && process == r->last_process && device == r->last_device)
        return RP_OK; /* nearly every row is like the one before */
    r->last_process = process;
    r->last_device = device;
    return rp_activity_add_rank(r->a, rp_nsys_process(process), device, err);
}

static enum rp_code note_caller(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;

    (void)err;
    if (!r->only_process)
        r->only_process = rp_nsys_process(rp_cell_int(rows, 0, 0));
    return RP_OK;
}

/* Processes with kernels are ranks; if there are none, those with other device work are. */
enum rp_code rp_nsys_find_ranks(struct rp_nsys *r, struct rp_err *err)
{
    static const char *const tables[] = {
        "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"};
    static const char *const columns[] = {"globalPid", "deviceId", NULL};
    static const char *const thread[] = {"globalTid", NULL};

    for (size_t i = 0; i < sizeof tables / sizeof *tables && (i < 2 || !r->a->nranks); i++)
        RP_TRY(rp_rows_each(r->db, tables[i], columns, note_rank, r, err));
    r->tells_process = r->a->nranks > 0;
    if (!r->tells_process) {
        RP_TRY(rp_rows_each(r->db, "CUPTI_ACTIVITY_KIND_RUNTIME", thread, note_caller, r, err));
        RP_TRY(rp_activity_add_rank(r->a, r->only_process, 0, err));
    }
    return rp_activity_order_ranks(r->a, err);
}

/* ------------------------------------------------------------------ rows */

static bool device_event(struct rp_nsys *r, const struct rp_rows *rows, struct rp_activity_event *e)
{
    int64_t process = 0;

    if (!rp_cell_get(rows, START, &e->begin_ns) || !rp_cell_get(rows, END, &e->end_ns)) {
        rp_activity_skip(r->a, rp_rows_table(rows), rp_rows_number(rows));
        return false;
    }
    e->process = rp_cell_get(rows, PROCESS, &process) ? rp_nsys_process(process) : r->only_process;
    e->device = rp_cell_int(rows, DEVICE, 0);
    e->device = e->device < 0 ? 0 : e->device;
    e->track = rp_cell_int(rows, STREAM, 0);
    e->correlation = rp_cell_int(rows, CORRELATION, 0);
    return true;
}

/* Rows of waits always name device 0, so the device is taken from the context. */
static enum rp_code keep_context(struct rp_nsys *r, const struct rp_rows *rows,
                                 const struct rp_activity_event *e, struct rp_err *err)
{
    uint32_t device = (uint32_t)(e->device < INT32_MAX ? e->device : INT32_MAX), known;

    return rp_map_intern(&r->contexts,
                         rp_hash_join(e->process, (uint64_t)rp_cell_int(rows, CONTEXT, 0)), device,
                         &known, err);
}

static enum rp_code add_graph_ids(struct rp_nsys *r, const struct rp_rows *rows, int node,
                                  int graph, struct rp_activity_event *e, struct rp_err *err)
{
    int64_t id;

    if (rp_cell_get(rows, node, &id) && id) {
        id = rp_nsys_captured_node(r, e->process, id, e->kind == RP_ACTIVITY_KERNEL ? e->name : 0);
        RP_TRY(rp_activity_int(r->a, e, "graph node id", id, err));
    }
    if (graph >= 0 && rp_cell_get(rows, graph, &id) && id)
        RP_TRY(rp_activity_int(r->a, e, "graph id", id, err));
    return RP_OK;
}

enum { NAME = OWN, GRID, BLOCK = GRID + 3, REGISTERS = BLOCK + 3, STATIC, DYNAMIC, NODE, GRAPH };

static enum rp_code read_kernel(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_activity_event e = {.kind = RP_ACTIVITY_KERNEL};
    int64_t dims[3];

    if (!device_event(r, rows, &e))
        return RP_OK;
    RP_TRY(rp_texts_intern(&r->texts, r->a, rp_cell_int(rows, NAME, -1), &e.name, err));
    if (!e.name)
        RP_TRY(rp_proto_trace_word(&r->a->t, "(kernel without name)", &e.name, err));
    RP_TRY(keep_context(r, rows, &e, err));
    RP_TRY(rp_activity_int(r->a, &e, "context", rp_cell_int(rows, CONTEXT, 0), err));
    if (rp_cell_has(rows, GRID)) {
        for (int i = 0; i < 3; i++)
            dims[i] = rp_cell_int(rows, GRID + i, 1);
        RP_TRY(rp_activity_dims(r->a, &e, "grid", dims, err));
        for (int i = 0; i < 3; i++)
            dims[i] = rp_cell_int(rows, BLOCK + i, 1);
        RP_TRY(rp_activity_dims(r->a, &e, "block", dims, err));
    }
    if (rp_cell_has(rows, REGISTERS)) {
        int64_t shared = (int64_t)((uint64_t)rp_cell_int(rows, STATIC, 0) +
                                   (uint64_t)rp_cell_int(rows, DYNAMIC, 0));

        RP_TRY(rp_activity_int(r->a, &e, "registers per thread", rp_cell_int(rows, REGISTERS, 0),
                               err));
        RP_TRY(rp_activity_int(r->a, &e, "shared memory", shared, err));
    }
    RP_TRY(add_graph_ids(r, rows, NODE, GRAPH, &e, err));
    return rp_activity_add(r->a, &e, err);
}

/* ------------------------------------------------------------------ copies and memsets */

static const char *const copy_kinds[16] = {"",
                                           "HtoD",
                                           "DtoH",
                                           "HtoA",
                                           "AtoH",
                                           "AtoA",
                                           "AtoD",
                                           "DtoA",
                                           "DtoD",
                                           "HtoH",
                                           "PtoP",
                                           "HtoD, unified memory",
                                           "DtoH, unified memory",
                                           "DtoD, unified memory"};

/* The numbers for kinds of memory differ between versions, so the file has a table of them. */
static enum rp_code read_memory_kind(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    int64_t id = rp_cell_int(rows, 0, -1);
    size_t n;

    if (id < 0 || id >= 16)
        return RP_OK;
    const char *label = rp_cell_text(rows, 1, &n);
    return rp_activity_intern(r->a, label, n, &r->memory_kinds[id], err);
}

static enum rp_code read_memory_kinds(struct rp_nsys *r, struct rp_err *err)
{
    static const char *const columns[] = {"id", "label", NULL};
    static const char *const of_cupti[] = {"Unknown",       "Pageable",      "Pinned",
                                           "Device",        "Array",         "Managed",
                                           "Device Static", "Managed Static"};

    if (rp_database_has(r->db, "ENUM_CUDA_MEM_KIND"))
        return rp_rows_each(r->db, "ENUM_CUDA_MEM_KIND", columns, read_memory_kind, r, err);
    for (size_t i = 0; i < sizeof of_cupti / sizeof *of_cupti; i++)
        RP_TRY(rp_proto_trace_text(&r->a->t, of_cupti[i], &r->memory_kinds[i], err));
    return RP_OK;
}

static size_t small(int64_t number)
{
    return number < 0 || number >= 15 ? 15 : (size_t)number;
}

enum { BYTES = OWN, COPY_KIND, FROM, TO, COPY_NODE };

static enum rp_code read_copy(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_activity_event e = {.kind = RP_ACTIVITY_MEMCPY};

    if (!device_event(r, rows, &e))
        return RP_OK;

    /* "Memcpy HtoD (Pageable -> Device)", as PyTorch's profiler names them. */
    size_t kind = small(rp_cell_int(rows, COPY_KIND, 0));
    size_t from = small(rp_cell_int(rows, FROM, 15));
    size_t to = small(rp_cell_int(rows, TO, 15));
    const struct rp_builder *b = r->a->t.builder;
    rp_str *name = &r->copy_names[kind][from][to];
    char text[200];
    if (!*name) {
        snprintf(text, sizeof text, "Memcpy%s%s (%.40s -> ",
                 copy_kinds[kind] && *copy_kinds[kind] ? " " : "",
                 copy_kinds[kind] ? copy_kinds[kind] : "",
                 r->memory_kinds[from] ? rp_builder_borrow_str(b, r->memory_kinds[from], NULL)
                                       : "Unknown");
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.40s)",
                 r->memory_kinds[to] ? rp_builder_borrow_str(b, r->memory_kinds[to], NULL)
                                     : "Unknown");
        RP_TRY(rp_proto_trace_text(&r->a->t, text, name, err));
    }
    e.name = *name;
    RP_TRY(keep_context(r, rows, &e, err));
    RP_TRY(rp_activity_int(r->a, &e, "context", rp_cell_int(rows, CONTEXT, 0), err));
    RP_TRY(rp_activity_int(r->a, &e, "bytes", rp_cell_int(rows, BYTES, 0), err));
    RP_TRY(add_graph_ids(r, rows, COPY_NODE, -1, &e, err));
    return rp_activity_add(r->a, &e, err);
}

enum { MEMORY = OWN + 1, SET_NODE };

static enum rp_code read_memset(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_activity_event e = {.kind = RP_ACTIVITY_MEMSET};
    rp_str memory = r->memory_kinds[small(rp_cell_int(rows, MEMORY, 15))];
    char text[80];

    if (!device_event(r, rows, &e))
        return RP_OK;
    snprintf(text, sizeof text, "Memset (%.60s)",
             memory ? rp_builder_borrow_str(r->a->t.builder, memory, NULL) : "Unknown");
    RP_TRY(rp_proto_trace_text(&r->a->t, text, &e.name, err));
    RP_TRY(keep_context(r, rows, &e, err));
    RP_TRY(rp_activity_int(r->a, &e, "context", rp_cell_int(rows, CONTEXT, 0), err));
    RP_TRY(rp_activity_int(r->a, &e, "bytes", rp_cell_int(rows, BYTES, 0), err));
    RP_TRY(add_graph_ids(r, rows, SET_NODE, -1, &e, err));
    return rp_activity_add(r->a, &e, err);
}

/* ------------------------------------------------------------------ waits */

/* Reads the recording of a CUDA event; a wait names its version. */
static enum rp_code read_record(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_nsys_record record = {rp_cell_int(rows, 2, 0), rp_cell_int(rows, 3, 0)};
    uint64_t key =
        rp_hash_join(rp_nsys_process(rp_cell_int(rows, 0, 0)), (uint64_t)rp_cell_int(rows, 1, 0));

    if (!rp_cell_has(rows, 1))
        return RP_OK;
    RP_TRY(rp_map_put(&r->recorded, key, (uint32_t)r->records.n, err));
    return rp_vec_push(&r->records, record, err);
}

enum { SYNC_TYPE = OWN, EVENT, VERSION };

static enum rp_code add_record(struct rp_nsys *r, const struct rp_rows *rows,
                               struct rp_activity_event *e, struct rp_err *err)
{
    uint32_t at;

    if (!rp_cell_has(rows, VERSION))
        return RP_OK;
    at =
        rp_map_get(&r->recorded, rp_hash_join(e->process, (uint64_t)rp_cell_int(rows, VERSION, 0)));
    if (at == RP_MAP_NONE)
        return RP_OK;
    e->waits_for = r->records.at[at].correlation;
    return rp_activity_int(r->a, e, "wait_on_stream", r->records.at[at].stream, err);
}

static enum rp_code read_sync(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    static const char *const names[] = {"Sync", "Event Sync", "Stream Wait Event", "Stream Sync",
                                        "Context Sync"};
    struct rp_nsys *r = user;
    struct rp_activity_event e = {.kind = RP_ACTIVITY_SYNC};
    int64_t type = rp_cell_int(rows, SYNC_TYPE, 0);
    uint32_t device;

    if (!device_event(r, rows, &e))
        return RP_OK;
    if (e.track == NO_STREAM)
        e.track = -1;
    device =
        rp_map_get(&r->contexts, rp_hash_join(e.process, (uint64_t)rp_cell_int(rows, CONTEXT, 0)));
    if (device != RP_MAP_NONE)
        e.device = device;
    RP_TRY(rp_proto_trace_word(&r->a->t, names[type < 0 || type > 4 ? 0 : type], &e.name, err));
    RP_TRY(add_record(r, rows, &e, err));
    return rp_activity_add(r->a, &e, err);
}

/* ------------------------------------------------------------------ graphs */

static enum rp_code read_graph(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_activity_event e = {.kind = RP_ACTIVITY_GRAPH};
    char text[80];

    if (!device_event(r, rows, &e))
        return RP_OK;
    snprintf(text, sizeof text, "CUDA graph %lld" RP_HIDDEN_ENDING,
             (long long)rp_cell_int(rows, OWN, 0));
    RP_TRY(rp_proto_trace_text(&r->a->t, text, &e.name, err));
    RP_TRY(rp_activity_int(r->a, &e, "graph id", rp_cell_int(rows, OWN, 0), err));
    RP_TRY(rp_activity_int(r->a, &e, "graph exec id", rp_cell_int(rows, OWN + 1, 0), err));
    r->graphs++;
    if (e.end_ns > e.begin_ns && r->graphs_ns < RP_TIME_MAX_NS)
        r->graphs_ns += e.end_ns - e.begin_ns < RP_TIME_MAX_NS / 2 ? e.end_ns - e.begin_ns : 0;
    return rp_activity_add(r->a, &e, err);
}

/* ------------------------------------------------------------------ all */

enum rp_code rp_nsys_read_device(struct rp_nsys *r, struct rp_err *err)
{
    static const char *const kernel[] = {COMMON,
                                         "demangledName|shortName|mangledName",
                                         "gridX",
                                         "gridY",
                                         "gridZ",
                                         "blockX",
                                         "blockY",
                                         "blockZ",
                                         "registersPerThread",
                                         "staticSharedMemory",
                                         "dynamicSharedMemory",
                                         "graphNodeId",
                                         "graphId",
                                         NULL};
    static const char *const copy[] = {COMMON,    "bytes",       "copyKind", "srcKind",
                                       "dstKind", "graphNodeId", NULL};
    static const char *const memset_columns[] = {COMMON, "bytes", "memKind", "graphNodeId", NULL};
    static const char *const sync[] = {COMMON, "syncType|deprecatedSyncType", "eventId",
                                       "eventSyncId", NULL};
    static const char *const record[] = {"globalPid", "eventSyncId", "correlationId", "streamId",
                                         NULL};
    static const char *const graph[] = {COMMON, "graphId", "graphExecId", NULL};
    const struct {
        const char *table;
        const char *const *columns;
        rp_row_fn *read;
    } tables[] = {{"CUPTI_ACTIVITY_KIND_KERNEL", kernel, read_kernel},
                  {"CUPTI_ACTIVITY_KIND_MEMCPY", copy, read_copy},
                  {"CUPTI_ACTIVITY_KIND_MEMSET", memset_columns, read_memset},
                  {"CUPTI_ACTIVITY_KIND_CUDA_EVENT", record, read_record},
                  {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", sync, read_sync},
                  {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", graph, read_graph}};

    RP_TRY(read_memory_kinds(r, err));
    RP_TRY(rp_nsys_read_nodes(r, err));
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        RP_TRY(rp_rows_each(r->db, tables[i].table, tables[i].columns, tables[i].read, r, err));
    rp_nsys_order_nodes(r);
    if (!r->graphs)
        return RP_OK;
    return rp_builder_warn(
        r->a->t.builder, err,
        "%llu launches of CUDA graphs were recorded as a whole: %.3f ms of device time, whose "
        "kernels are hidden; each launch counts as one kernel; record with 'nsys profile --cuda-graph-trace=node'",
        (unsigned long long)r->graphs, (double)r->graphs_ns / 1e6);
}

#endif
