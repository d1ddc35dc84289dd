/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what threads do: calls of the runtime, the driver and the operating system, overhead of the
 * profiler, and samples of the processor with their stacks; also sampled metrics of devices.
 */
#include "formats/nsys/nsys.h"

#include "base/order.h"
#include "rp_config.h"

#if RP_HAVE_SQLITE

bool rp_nsys_thread_event(struct rp_nsys *r, const struct rp_rows *rows, int start, int end,
                          int thread, struct rp_activity_event *e)
{
    int64_t global = 0;

    e->device = RP_ACTIVITY_HOST;
    e->end_ns = RP_ACTIVITY_NO_END;
    if (!rp_cell_get(rows, start, &e->begin_ns) ||
        (end >= 0 && rp_cell_has(rows, end) && !rp_cell_get(rows, end, &e->end_ns))) {
        rp_activity_skip(r->a, rp_rows_table(rows), rp_rows_number(rows));
        return false;
    }
    rp_cell_get(rows, thread, &global);
    e->process = rp_nsys_process(global);
    e->track = rp_nsys_thread(global);
    return true;
}

/* ------------------------------------------------------------------ calls */

static enum rp_code read_call(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_activity_event e = {0};
    int64_t result = rp_cell_int(rows, 5, 0);

    if (!rp_nsys_thread_event(r, rows, 0, 1, 2, &e))
        return RP_OK;

    /* Takes off the version of the name; the name is the same for all calls of a function. */
    int64_t number = rp_cell_int(rows, 4, -1);
    uint32_t known = rp_map_get(&r->calls, (uint64_t)number);
    size_t n;
    if (known == RP_MAP_NONE) {
        const char *text = rp_texts_borrow(&r->texts, number, &n);
        bool driver = n > 2 && text[0] == 'c' && text[1] == 'u' && text[2] >= 'A' && text[2] <= 'Z';
        RP_TRY(rp_activity_intern(r->a, text, rp_activity_plain_call(text, n), &e.name, err));
        if (e.name > UINT32_MAX / 4)
            return rp_err_set(err, RP_LIMIT, "too many different texts");
        known = e.name << 1 | driver;
        RP_TRY(rp_map_put(&r->calls, (uint64_t)number, known, err));
    }
    e.name = known >> 1;
    e.kind = known & 1 ? RP_ACTIVITY_DRIVER : RP_ACTIVITY_RUNTIME;
    e.correlation = rp_cell_int(rows, 3, 0);
    if (result)
        RP_TRY(rp_activity_int(r->a, &e, "result", result, err));
    rp_str kernel = rp_nsys_captured_kernel(r, &e);
    if (kernel)
        RP_TRY(rp_activity_text(r->a, &e, "kernel", kernel, err));
    return rp_activity_add(r->a, &e, err);
}

/* Reads a call of the operating system or of a library. */
static enum rp_code read_system_call(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_activity_event e = {0};
    size_t n;

    if (!rp_nsys_thread_event(r, rows, 0, 1, 2, &e))
        return RP_OK;
    const char *text = rp_texts_borrow(&r->texts, rp_cell_int(rows, 3, -1), &n);
    e.kind = rp_activity_call_kind(text, n);
    RP_TRY(rp_texts_intern(&r->texts, r->a, rp_cell_int(rows, 3, -1), &e.name, err));
    return rp_activity_add(r->a, &e, err);
}

static enum rp_code read_overhead(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_activity_event e = {.kind = RP_ACTIVITY_OVERHEAD};

    if (!rp_nsys_thread_event(r, rows, 0, 1, 2, &e))
        return RP_OK;
    RP_TRY(rp_texts_intern(&r->texts, r->a, rp_cell_int(rows, 3, -1), &e.name, err));
    return rp_activity_add(r->a, &e, err);
}

/* ------------------------------------------------------------------ samples */

RP_ORDER(by_sample, struct rp_nsys_frame, RP_UP(id), RP_DOWN(depth))

static enum rp_code read_frame(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_nsys_frame frame = {.id = rp_cell_int(rows, 0, -1),
                                  .depth = rp_cell_int(rows, 1, 0),
                                  .symbol = rp_cell_int(rows, 2, -1),
                                  .module = rp_cell_int(rows, 3, -1),
                                  .unresolved = rp_cell_int(rows, 4, 0) != 0};

    return rp_vec_push(&r->frames, frame, err);
}

/* The name of a function, or if it has none, its library. */
static const char *frame_text(const struct rp_nsys *r, const struct rp_nsys_frame *f, size_t *n)
{
    if (!f->unresolved) {
        const char *text = rp_texts_borrow(&r->texts, f->symbol, n);
        if (*n)
            return text;
    }
    const char *text = rp_texts_borrow(&r->texts, f->module, n);
    const char *slash = *n ? strrchr(text, '/') : NULL;
    *n = slash ? *n - (size_t)(slash + 1 - text) : *n;
    return slash ? slash + 1 : text;
}

static enum rp_code read_sample(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_activity_event e = {.kind = RP_ACTIVITY_SAMPLE};

    if (!rp_nsys_thread_event(r, rows, 0, -1, 1, &e))
        return RP_OK;

    /* The frames of a sample, outermost first: "main;train;cudaLaunchKernel"; its name is the
       last. */
    int64_t id = rp_cell_int(rows, 2, -1);
    const char *text = "(unknown)";
    size_t n = strlen(text), i;
    rp_str stack;
    r->stack.n = 0;
    RP_LOWER_BOUND(i, r->frames.n, r->frames.at[i].id < id);
    for (; i < r->frames.n && r->frames.at[i].id == id; i++) {
        text = frame_text(r, &r->frames.at[i], &n);
        if (r->stack.n + n > r->a->t.limits.token_bytes)
            break;
        RP_TRY(rp_vec_reserve(&r->stack, n + 1, err));
        if (r->stack.n)
            r->stack.at[r->stack.n++] = ';';
        memcpy(r->stack.at + r->stack.n, text, n);
        r->stack.n += n;
    }
    RP_TRY(rp_activity_intern(r->a, text, n, &e.name, err));
    if (r->stack.n) {
        RP_TRY(rp_activity_intern(r->a, r->stack.at, r->stack.n, &stack, err));
        RP_TRY(rp_activity_text(r->a, &e, "stack", stack, err));
    }
    RP_TRY(rp_activity_int(r->a, &e, "cpu", rp_cell_int(rows, 3, -1), err));
    return rp_activity_add(r->a, &e, err);
}

/* ------------------------------------------------------------------ metrics of devices */

static uint64_t metric_key(int64_t type, int64_t metric)
{
    return rp_hash_join((uint64_t)type, (uint64_t)metric);
}

static enum rp_code read_metric_name(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    rp_str name;
    size_t n;
    const char *text = rp_cell_text(rows, 2, &n);

    RP_TRY(rp_activity_intern(r->a, text, n, &name, err));
    return rp_map_put(&r->metrics, metric_key(rp_cell_int(rows, 0, 0), rp_cell_int(rows, 1, 0)),
                      name, err);
}

/* The rank that uses a device, because samples of a device name no process. */
static uint64_t process_of_device(const struct rp_activity *a, int64_t device)
{
    for (size_t i = 0; i < a->ranks.n; i++)
        if (a->processes.at[a->ranks.at[i]].device == device)
            return a->processes.at[a->ranks.at[i]].key;
    return a->ranks.n ? a->processes.at[a->ranks.at[0]].key : 0;
}

static enum rp_code read_metric(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_activity_event e = {.kind = RP_ACTIVITY_COUNTER};
    int64_t type = rp_cell_int(rows, 1, 0), metric = rp_cell_int(rows, 2, 0);
    uint32_t name = rp_map_get(&r->metrics, metric_key(type, metric));

    if (!rp_cell_get(rows, 0, &e.begin_ns)) {
        rp_activity_skip(r->a, rp_rows_table(rows), rp_rows_number(rows));
        return RP_OK;
    }
    if (name == RP_MAP_NONE)
        RP_TRY(rp_proto_trace_word(&r->a->t, "(metric without name)", &e.name, err));
    else
        e.name = name;
    e.device = type & 255;
    e.process = process_of_device(r->a, e.device);
    e.track = -2 - (metric & INT32_MAX); /* a number that is not that of a stream */
    RP_TRY(rp_activity_real(r->a, &e, "value", rp_cell_real(rows, 3), err));
    return rp_activity_add(r->a, &e, err);
}

/* ------------------------------------------------------------------ all */

enum rp_code rp_nsys_read_host(struct rp_nsys *r, struct rp_err *err)
{
    static const char *const call[] = {"start",  "end",         "globalTid", "correlationId",
                                       "nameId", "returnValue", NULL};
    static const char *const plain[] = {"start", "end", "globalTid", "nameId|textId", NULL};
    static const struct {
        const char *table;
        rp_row_fn *read;
    } tables[] = {{"OSRT_API", read_system_call},
                  {"CUDNN_EVENTS", read_system_call},
                  {"CUBLAS_EVENTS", read_system_call},
                  {"CUDA_HOST_CALLBACK", read_system_call},
                  {"MPI_COLLECTIVES_EVENTS", read_system_call},
                  {"MPI_P2P_EVENTS", read_system_call},
                  {"MPI_OTHER_EVENTS", read_system_call},
                  {"MPI_START_WAIT_EVENTS", read_system_call},
                  {"PROFILER_OVERHEAD", read_overhead},
                  {"CUPTI_ACTIVITY_KIND_OVERHEAD", read_overhead},
                  {"CUPTI_ACTIVITY_KIND_JIT", read_overhead}};
    static const char *const metric_name[] = {"typeId", "metricId", "metricName", NULL};
    static const char *const metric[] = {"timestamp", "typeId", "metricId", "value", NULL};

    RP_TRY(rp_rows_each(r->db, "CUPTI_ACTIVITY_KIND_RUNTIME", call, read_call, r, err));
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        RP_TRY(rp_rows_each(r->db, tables[i].table, plain, tables[i].read, r, err));
    static const char *const chain[] = {"id", "stackDepth", "symbol", "module", "unresolved", NULL};
    static const char *const sample[] = {"start", "globalTid", "id", "cpu", NULL};
    RP_TRY(rp_rows_each(r->db, "SAMPLING_CALLCHAINS", chain, read_frame, r, err));
    rp_sort(r->frames.at, r->frames.n, sizeof *r->frames.at, by_sample);
    RP_TRY(rp_rows_each(r->db, "COMPOSITE_EVENTS", sample, read_sample, r, err));
    RP_TRY(rp_rows_each(r->db, "TARGET_INFO_GPU_METRICS", metric_name, read_metric_name, r, err));
    return rp_rows_each(r->db, "GPU_METRICS", metric, read_metric, r, err);
}

#endif
