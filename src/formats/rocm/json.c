/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the JSON of rocprofv3, which has an element under "rocprofiler-sdk-tool" for each process,
 * with tables of agents, kernels and names, and lists of records. Records name kinds, operations,
 * kernels and counters by number. Tables may follow the records that need them, and ranks must be
 * known before the first event, so records are kept until the text has been read.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/decimal.h"
#include "base/each.h"
#include "base/order.h"
#include "formats/activity/texts.h"
#include "formats/list.h"
#include "formats/rocm/rocm.h"
#include "io/json_pull.h"
#include "trace/secrets.h"

#include <stdio.h>
#include <stdlib.h>

#define TOP_KEY       "rocprofiler-sdk-tool"
#define MOST_ELEMENTS 100000 /* processes */
#define OPERATION     20     /* bits of the number of an operation of a kind */
#define GPU           2      /* type of an agent */

struct record {
    int64_t thread, correlation, begin_ns, end_ns;
    int64_t agent, from_agent; /* for a copy: the destination and the source */
    int64_t queue, stream, kernel, dispatch, bytes;
    uint32_t kind, operation, grid[3], group[3];
    uint8_t list; /* enum list */
    bool has_stream, has_bytes, has_begin, has_end;
};

struct process { /* an element */
    int64_t pid;
    struct rp_texts kinds, operations; /* of buffer records */
    struct rp_texts markers, kernels;
    struct rp_map agents; /* from a handle to device + 1; 0: not a GPU */
    struct rp_rocm_values values;
    RP_VEC(struct record) records;
    size_t ndispatches;
};

struct json_reader {
    struct rp_activity *a;
    struct rp_json *p;
    RP_VEC(struct process) processes;
    struct process *of; /* the current one */
    bool has_command;   /* with arguments */
    struct rp_err *err;
};

/* ------------------------------------------------------------------ values */

static int64_t read_number(struct json_reader *r)
{
    uint32_t depth = rp_json_depth(r->p);
    struct rp_json_token v;

    if (rp_json_value(r->p, &v) != RP_JSON_OBJECT && v.kind != RP_JSON_ARRAY) {
        int64_t n = 0;
        if (v.kind == RP_JSON_NUMBER && rp_decimal_parse(v.text, v.len, 0, &n))
            n = v.text[0] == '-' ? INT64_MIN
                                 : INT64_MAX; /* for instance a handle that uses all 64 bits */
        return n;
    }
    while (rp_json_depth(r->p) > depth && !rp_json_failed(r->p)) { /* not what it should be */
        struct rp_json_token key;

        if (rp_json_in_object(r->p) ? rp_json_field(r->p, &key) : rp_json_element(r->p))
            rp_json_skip(r->p);
    }
    return 0;
}

static double read_real(struct json_reader *r)
{
    char text[40];
    struct rp_json_token v;

    if (!rp_json_raw(r->p, &v) || v.len >= sizeof text)
        return 0;
    memcpy(text, v.text, v.len);
    text[v.len] = '\0';
    return strtod(text, NULL);
}

/* Enters an object ('{') or a list ('['). If the value is something else, skips it and returns
   false. */
static bool enter(struct json_reader *r, char begin)
{
    struct rp_json_token v;

    if (*r->p->at == begin)
        return rp_json_value(r->p, &v) != RP_JSON_NONE;
    rp_json_skip(r->p);
    return false;
}

/* Reads the number in {"handle": 7}, or a plain one. */
static int64_t read_handle(struct json_reader *r)
{
    struct rp_json_token key;
    int64_t handle = 0;

    if (*r->p->at != '{')
        return read_number(r);
    enter(r, '{');
    while (rp_json_next(r->p, &key)) {
        if (rp_json_key_is(&key, "handle"))
            handle = read_number(r);
    }
    return handle;
}

/* Reads a number that rocprofv3 stores in 32 bits. */
static uint32_t read_small(struct json_reader *r)
{
    int64_t n = read_number(r);

    return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static void read_xyz(struct json_reader *r, uint32_t xyz[3])
{
    struct rp_json_token key;

    if (!enter(r, '{'))
        return;
    while (rp_json_next(r->p, &key)) {
        if (key.len == 1 && key.text[0] >= 'x' && key.text[0] <= 'z')
            xyz[key.text[0] - 'x'] = read_small(r);
    }
}

/* Reads a text, decoded and borrowed until the next one; false if it is something else. */
static bool read_text(struct json_reader *r, struct rp_json_token *v)
{
    if (*r->p->at != '"') {
        rp_json_skip(r->p);
        return false;
    }
    return rp_json_value(r->p, v) == RP_JSON_STRING && rp_json_decode(r->p, v);
}

static enum rp_code read_text_into(struct json_reader *r, struct rp_texts *to, int64_t number)
{
    struct rp_json_token v;

    return read_text(r, &v) ? rp_texts_add(to, number, v.text, v.len, r->err) : RP_OK;
}

/* ------------------------------------------------------------------ tables */

static enum rp_code read_agent(struct json_reader *r)
{
    struct rp_device device = {0};
    struct rp_json_token key, v;
    int64_t handle = 0, type = 0;

    while (rp_json_next(r->p, &key)) {
        if (rp_json_key_is(&key, "id"))
            handle = read_handle(r);
        else if (rp_json_key_is(&key, "type"))
            type = read_number(r);
        else if (rp_json_key_is(&key, "logical_node_type_id"))
            device.id = read_number(r);
        else if (rp_json_key_is(&key, "cu_count"))
            device.multiprocessors = read_number(r);
        else if (rp_json_key_is(&key, "product_name") && r->processes.n == 1 && read_text(r, &v))
            RP_TRY(rp_activity_intern(r->a, v.text, v.len, &device.name, r->err));
    }
    if (type == GPU && (device.id < 0 || device.id > 65535))
        device.id = 0;
    RP_TRY(rp_map_put(&r->of->agents, (uint64_t)handle, type == GPU ? (uint32_t)device.id + 1 : 0,
                      r->err));
    if (type != GPU || r->processes.n != 1 || device.multiprocessors < 0)
        return RP_OK; /* all processes of a file are of one machine */
    return rp_builder_add_device(r->a->t.builder, &device, r->err);
}

/* Reads {"kind": "HIP_RUNTIME_API", "operations": ["hipMalloc", ...]}, the n-th of them. */
static enum rp_code read_kind(struct json_reader *r, int64_t kind)
{
    struct rp_json_token key;
    int64_t i = 0;

    while (rp_json_next(r->p, &key)) {
        if (rp_json_key_is(&key, "kind"))
            RP_TRY(read_text_into(r, &r->of->kinds, kind));
        else if (rp_json_key_is(&key, "operations") && enter(r, '['))
            while (rp_json_element(r->p))
                RP_TRY(read_text_into(r, &r->of->operations, kind << OPERATION | i++));
    }
    return RP_OK;
}

/* {"key": 7, "value": "step 3"} */
static enum rp_code read_marker(struct json_reader *r)
{
    struct rp_json_token key;
    int64_t number = 0;

    while (rp_json_next(r->p, &key)) {
        if (rp_json_key_is(&key, "key"))
            number = read_number(r);
        else if (rp_json_key_is(&key, "value"))
            RP_TRY(read_text_into(r, &r->of->markers, number));
    }
    return RP_OK;
}

static enum rp_code read_strings(struct json_reader *r)
{
    struct rp_json_token key;
    int64_t kind = 0;

    if (!enter(r, '{'))
        return RP_OK;
    while (rp_json_next(r->p, &key)) {
        bool kinds = rp_json_key_is(&key, "buffer_records");

        if ((kinds || rp_json_key_is(&key, "marker_api")) && enter(r, '['))
            while (rp_json_element(r->p)) {
                if (!enter(r, '{'))
                    continue;
                RP_TRY(kinds ? read_kind(r, kind) : read_marker(r));
                kind += kinds;
            }
    }
    return RP_OK;
}

/* Reads the number and the best name of a kernel or counter. */
static enum rp_code read_named(struct json_reader *r, struct rp_texts *to, const char *number,
                               const char *best, const char *other)
{
    struct rp_json_token key, v;
    RP_SCOPED(rp_arena_release) struct rp_arena arena = {0};
    const char *kept = NULL;
    size_t nkept = 0;
    int64_t id = 0;

    while (rp_json_next(r->p, &key)) {
        bool is_best = key.len == strlen(best) && !memcmp(key.text, best, key.len);
        bool is_other = key.len == strlen(other) && !memcmp(key.text, other, key.len);

        if (key.len == strlen(number) && !memcmp(key.text, number, key.len))
            id = read_handle(r);
        else if ((is_best || is_other) && read_text(r, &v) && v.len && (is_best || !kept))
            kept = rp_arena_copy(&arena, v.text, nkept = v.len);
    }
    RP_TRY(rp_arena_check(&arena, "reading names", r->err));
    if (kept)
        RP_TRY(rp_texts_add(to, id, kept, nkept, r->err));
    return RP_OK;
}

/* Keeps only the program of the command line, because its arguments may hold anything. */
static enum rp_code read_metadata(struct json_reader *r)
{
    uint64_t process = (uint64_t)r->processes.n;
    struct rp_json_token key, v;
    rp_str name = 0;

    if (!enter(r, '{'))
        return RP_OK;
    while (rp_json_next(r->p, &key)) {
        if (rp_json_key_is(&key, "pid")) {
            r->of->pid = read_number(r);
        } else if (rp_json_key_is(&key, "command") && enter(r, '[')) {
            while (rp_json_element(r->p)) {
                r->has_command |= name != 0;
                if (!read_text(r, &v) || name)
                    continue;
                const char *slash = memrchr(v.text, '/', v.len);
                RP_TRY(rp_activity_intern(r->a, slash ? slash + 1 : v.text,
                                          slash ? v.len - (size_t)(slash + 1 - v.text) : v.len,
                                          &name, r->err));
            }
        }
    }
    return rp_activity_process(r->a, process, r->of->pid, name, r->err);
}

/* ------------------------------------------------------------------ records */

/* {"internal": 7, "external": 0} */
static void read_correlation(struct json_reader *r, struct record *out)
{
    struct rp_json_token key;

    if (!enter(r, '{'))
        return;
    while (rp_json_next(r->p, &key)) {
        if (rp_json_key_is(&key, "internal"))
            out->correlation = read_number(r);
    }
}

static void read_dispatch(struct json_reader *r, struct record *out)
{
    struct rp_json_token key;

    if (!enter(r, '{'))
        return;
    while (rp_json_next(r->p, &key)) {
        if (rp_json_key_is(&key, "agent_id"))
            out->agent = read_handle(r);
        else if (rp_json_key_is(&key, "queue_id"))
            out->queue = read_handle(r);
        else if (rp_json_key_is(&key, "kernel_id"))
            out->kernel = read_number(r);
        else if (rp_json_key_is(&key, "dispatch_id"))
            out->dispatch = read_number(r);
        else if (rp_json_key_is(&key, "workgroup_size"))
            read_xyz(r, out->group);
        else if (rp_json_key_is(&key, "grid_size"))
            read_xyz(r, out->grid);
    }
}

static bool read_record_number(struct json_reader *r, const struct rp_json_token *key,
                               struct record *out)
{
    if (rp_json_key_is(key, "kind"))
        out->kind = read_small(r);
    else if (rp_json_key_is(key, "operation"))
        out->operation = read_small(r);
    else if (rp_json_key_is(key, "thread_id"))
        out->thread = read_number(r);
    else if (rp_json_key_is(key, "start_timestamp"))
        out->has_begin = (out->begin_ns = read_number(r)) != INT64_MAX;
    else if (rp_json_key_is(key, "end_timestamp"))
        out->has_end = (out->end_ns = read_number(r)) != INT64_MAX;
    else if (rp_json_key_is(key, "bytes") || rp_json_key_is(key, "allocation_size"))
        out->has_bytes = (out->bytes = read_number(r)) >= 0;
    else
        return false;
    return true;
}

/* Reads a record from an object that was entered. */
static void read_record(struct json_reader *r, struct record *out)
{
    struct rp_json_token key;

    while (rp_json_next(r->p, &key)) {
        if (read_record_number(r, &key, out))
            continue;
        if (rp_json_key_is(&key, "correlation_id")) {
            read_correlation(r, out);
        } else if (rp_json_key_is(&key, "dispatch_info")) {
            read_dispatch(r, out);
        } else if (rp_json_key_is(&key, "stream_id")) {
            out->stream = read_handle(r);
            out->has_stream = true;
        } else if (rp_json_key_is(&key, "agent_id") || rp_json_key_is(&key, "dst_agent_id")) {
            out->agent = read_handle(r);
        } else if (rp_json_key_is(&key, "src_agent_id")) {
            out->from_agent = read_handle(r);
        }
    }
}

static int64_t device_of(const struct json_reader *r, int64_t agent)
{
    uint32_t at = rp_map_get(&r->of->agents, (uint64_t)agent);

    return at == RP_MAP_NONE || !at ? RP_ACTIVITY_HOST : (int64_t)at - 1;
}

static struct rp_activity_event event_of(const struct json_reader *r, const struct record *rec)
{
    return (struct rp_activity_event){.process = (uint64_t)(r->of - r->processes.at) + 1,
                                      .begin_ns = rec->begin_ns,
                                      .end_ns = rec->end_ns,
                                      .correlation = rec->correlation,
                                      .track = rec->has_stream ? rec->stream : rec->queue};
}

static int64_t operation_of(const struct record *rec)
{
    return (int64_t)rec->kind << OPERATION | rec->operation;
}

static enum rp_code add_kernel(struct json_reader *r, const struct record *rec)
{
    struct rp_activity_event e = event_of(r, rec);
    int64_t grid[3], group[3];

    for (int i = 0; i < 3; i++) {
        grid[i] = rec->grid[i];
        group[i] = rec->group[i];
    }
    e.kind = RP_ACTIVITY_KERNEL;
    e.device = device_of(r, rec->agent);
    e.device = e.device < 0 ? 0 : e.device;
    RP_TRY(rp_texts_intern(&r->of->kernels, r->a, rec->kernel, &e.name, r->err));
    if (!e.name)
        RP_TRY(rp_proto_trace_word(&r->a->t, "(kernel without name)", &e.name, r->err));
    RP_TRY(rp_rocm_dims(r->a, &e, grid, group, r->err));
    RP_TRY(rp_activity_int(r->a, &e, "queue", rec->queue, r->err));
    RP_TRY(rp_rocm_values_add(&r->of->values, r->a, rec->dispatch, &e, r->err));
    return rp_activity_add(r->a, &e, r->err);
}

/* ------------------------------------------------------------------ lists of records */

/* COUNTED are dispatches whose counters were collected; they become kernels if there are no
   others. */
enum list { DISPATCHES, COPIES, CALLS, COUNTED, NO_LIST };

static enum list list_of(const struct rp_json_token *key)
{
    static const char api[] = "_api";
    size_t n = strlen(api);

    if (rp_json_key_is(key, "kernel_dispatch"))
        return DISPATCHES;
    if (rp_json_key_is(key, "memory_copy"))
        return COPIES;
    if (rp_json_key_is(key, "memory_allocation") || rp_json_key_is(key, "scratch_memory"))
        return CALLS;
    return key->len > n && !memcmp(key->text + key->len - n, api, n) ? CALLS : NO_LIST;
}

static enum rp_code keep_record(struct json_reader *r, const struct record *rec, const char *list,
                                uint64_t row)
{
    if (rp_json_failed(r->p))
        return RP_OK;
    if (row % 8192 == 0)
        RP_TRY(rp_proto_trace_progress(&r->a->t, r->a->t.bytes + rp_json_offset(r->p), r->err));
    r->of->ndispatches += rec->list == DISPATCHES;
    if (rec->has_begin && rec->has_end)
        return rp_vec_push(&r->of->records, *rec, r->err);
    rp_activity_skip(r->a, list, row);
    return RP_OK;
}

static enum rp_code read_list(struct json_reader *r, const struct rp_json_token *key,
                              enum list list)
{
    uint64_t row = 0;
    char name[40];

    snprintf(name, sizeof name, "%.*s", (int)key->len, key->text);
    if (!enter(r, '['))
        return RP_OK;
    while (rp_json_element(r->p)) {
        struct record rec = {.list = (uint8_t)list, .grid = {1, 1, 1}, .group = {1, 1, 1}};

        if (!enter(r, '{'))
            continue;
        read_record(r, &rec);
        RP_TRY(keep_record(r, &rec, name, ++row));
    }
    return RP_OK;
}

static enum rp_code read_buffers(struct json_reader *r)
{
    struct rp_json_token key;

    if (!enter(r, '{'))
        return RP_OK;
    while (rp_json_next(r->p, &key)) {
        enum list list = list_of(&key);

        if (list != NO_LIST)
            RP_TRY(read_list(r, &key, list));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ counters */

/* "records": [{"counter_id": {"handle": 7}, "value": 16384}, ...] */
static enum rp_code read_values(struct json_reader *r)
{
    if (!enter(r, '['))
        return RP_OK;
    while (rp_json_element(r->p)) {
        struct rp_rocm_value c = {0};
        struct rp_json_token key;

        if (!enter(r, '{'))
            continue;
        while (rp_json_next(r->p, &key)) {
            if (rp_json_key_is(&key, "counter_id"))
                c.counter = read_handle(r);
            else if (rp_json_key_is(&key, "value"))
                c.value = read_real(r);
        }
        RP_TRY(rp_vec_push(&r->of->values.all, c, r->err));
    }
    return RP_OK;
}

/* Reads "dispatch_data", which has the same fields as a record of a dispatch. */
static enum rp_code read_counted(struct json_reader *r, uint64_t row)
{
    struct record rec = {.list = COUNTED, .grid = {1, 1, 1}, .group = {1, 1, 1}};
    size_t from = r->of->values.all.n;
    struct rp_json_token key;

    while (rp_json_next(r->p, &key)) {
        if (rp_json_key_is(&key, "records"))
            RP_TRY(read_values(r));
        else if (rp_json_key_is(&key, "dispatch_data") && *r->p->at == '{' && enter(r, '{'))
            read_record(r, &rec);
    }
    for (size_t i = from; i < r->of->values.all.n; i++)
        r->of->values.all.at[i].kernel = rec.dispatch;
    return keep_record(r, &rec, "counter_collection", row);
}

static enum rp_code read_callbacks(struct json_reader *r)
{
    struct rp_json_token key;
    uint64_t row = 0;

    if (!enter(r, '{'))
        return RP_OK;
    while (rp_json_next(r->p, &key)) {
        if (rp_json_key_is(&key, "counter_collection") && enter(r, '['))
            while (rp_json_element(r->p))
                if (enter(r, '{'))
                    RP_TRY(read_counted(r, ++row));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ elements */

static enum rp_code read_table(struct json_reader *r, const struct rp_json_token *key)
{
    bool kernels = rp_json_key_is(key, "kernel_symbols");
    bool counters = rp_json_key_is(key, "counters");

    if (rp_json_key_is(key, "metadata"))
        return read_metadata(r);
    if (rp_json_key_is(key, "strings"))
        return read_strings(r);
    if ((!kernels && !counters && !rp_json_key_is(key, "agents")) || !enter(r, '['))
        return RP_OK;
    while (rp_json_element(r->p)) {
        if (!enter(r, '{'))
            continue;
        if (kernels)
            RP_TRY(read_named(r, &r->of->kernels, "kernel_id", "formatted_kernel_name",
                              "kernel_name"));
        else if (counters)
            RP_TRY(read_named(r, &r->of->values.names, "id", "name", "symbol"));
        else
            RP_TRY(read_agent(r));
    }
    return RP_OK;
}

static enum rp_code read_elements(struct json_reader *r)
{
    if (!enter(r, '['))
        return RP_OK;
    while (rp_json_element(r->p)) {
        if (!enter(r, '{'))
            continue;
        if (r->processes.n >= MOST_ELEMENTS)
            return rp_err_set(r->err, RP_LIMIT, "more than %d processes", MOST_ELEMENTS);
        RP_TRY(rp_vec_push(&r->processes, (struct process){0}, r->err));
        r->of = &r->processes.at[r->processes.n - 1];

        /* The tables and lists of a process. */
        struct rp_json_token key;
        while (rp_json_next(r->p, &key)) {
            if (rp_json_key_is(&key, "buffer_records"))
                RP_TRY(read_buffers(r));
            else if (rp_json_key_is(&key, "callback_records"))
                RP_TRY(read_callbacks(r));
            else
                RP_TRY(read_table(r, &key));
        }
    }
    return RP_OK;
}

static enum rp_code read_elements_of_text(struct json_reader *r)
{
    struct rp_json_options options = {.limits = r->a->t.options->limits,
                                      .threaded = r->a->t.options->threaded};
    struct rp_json_token key, v;
    struct rp_input *in;

    RP_TRY(rp_input_open_memory(rp_input_borrow_name(r->a->t.in), r->a->t.bytes, r->a->t.n,
                                r->a->t.options->limits, &in, r->err));
    enum rp_code code = rp_json_open(in, &options, &r->p, r->err);
    if (code == RP_OK && rp_json_value(r->p, &v) == RP_JSON_OBJECT)
        while (code == RP_OK && rp_json_next(r->p, &key)) {
            if (rp_json_key_is(&key, TOP_KEY))
                code = read_elements(r);
        }
    if (code == RP_OK)
        code = rp_json_finish(r->p, r->err);
    rp_json_close(r->p);
    rp_input_close(in);
    return code;
}

/* ------------------------------------------------------------------ events */

static bool is_kernel(const struct process *p, const struct record *rec)
{
    return rec->list == DISPATCHES || (rec->list == COUNTED && !p->ndispatches);
}

static enum rp_code add_events(struct json_reader *r)
{
    for (size_t i = 0; i < r->processes.n; i++) {
        r->of = &r->processes.at[i];
        for (size_t k = 0; k < r->of->records.n; k++) {
            const struct record *rec = &r->of->records.at[k];

            if (is_kernel(r->of, rec))
                RP_TRY(add_kernel(r, rec));
            else if (rec->list == COPIES) {
                struct rp_activity_event e = event_of(r, rec);
                int64_t to = device_of(r, rec->agent), from = device_of(r, rec->from_agent);
                size_t n;

                e.kind = RP_ACTIVITY_MEMCPY;
                e.device = to >= 0 ? to : from >= 0 ? from : 0;
                const char *direction = rp_texts_borrow(&r->of->operations, operation_of(rec), &n);
                RP_TRY(
                    rp_proto_trace_word(&r->a->t, rp_rocm_copy_name(direction), &e.name, r->err));
                if (rec->has_bytes)
                    RP_TRY(rp_activity_int(r->a, &e, "bytes", rec->bytes, r->err));
                RP_TRY(rp_activity_add(r->a, &e, r->err));
            } else if (rec->list == CALLS) {
                /* Adds a call, a range of roctx or an allocation, which are all on the host. */
                struct rp_activity_event e = event_of(r, rec);
                size_t n;
                const char *domain = rp_texts_borrow(&r->of->kinds, rec->kind, &n);
                const char *name = rp_texts_borrow(&r->of->operations, operation_of(rec), &n);
                e.device = RP_ACTIVITY_HOST;
                e.track = rec->thread;
                e.kind = rp_rocm_call_kind(domain, name);
                if (e.kind == RP_ACTIVITY_ANNOTATION)
                    RP_TRY(
                        rp_texts_intern(&r->of->markers, r->a, rec->correlation, &e.name, r->err));
                if (!e.name)
                    RP_TRY(rp_rocm_name_call(r->a, &e, name, n, r->err));
                if (rec->has_bytes)
                    RP_TRY(rp_activity_int(r->a, &e, "bytes", rec->bytes, r->err));
                RP_TRY(rp_activity_add(r->a, &e, r->err));
            }
        }
        rp_vec_release(&r->of->records);
    }
    return RP_OK;
}

/* If a text ends early, the complete records before its end are used. */
static enum rp_code end_early(struct json_reader *r, enum rp_code code, bool salvage)
{
    char why[200];

    if (code != RP_FORMAT || !salvage || !r->a->t.nevents)
        return code;
    snprintf(why, sizeof why, "%.*s", (int)strcspn(r->err ? r->err->text : "", "\n"),
             r->err ? r->err->text : "");
    r->a->t.health->salvaged = 1;
    return rp_builder_warn(r->a->t.builder, r->err,
                           "the file is damaged; everything before the damage was read: %s", why);
}

static enum rp_code read_all(struct json_reader *r, struct rp_input *in,
                             const struct rp_read_options *options, struct rp_import *to)
{
    int64_t begin_ns = rp_clock_ns();

    RP_TRY(rp_activity_init(r->a, in, options, rp_format_rocprof_json.name, r->err));
    enum rp_code code = read_elements_of_text(r);
    if (code != RP_OK && (code != RP_FORMAT || !options->salvage))
        return code;
    if (r->has_command)
        to->unread |= RP_SECRET_BIT(COMMAND);

    /* Processes with kernels are ranks. */
    for (size_t i = 0; i < r->processes.n; i++) {
        size_t k = 0;
        r->of = &r->processes.at[i];
        rp_rocm_values_sort(&r->of->values);
        while (k < r->of->records.n && !is_kernel(r->of, &r->of->records.at[k]))
            k++;
        if (k == r->of->records.n)
            continue;
        int64_t device = device_of(r, r->of->records.at[k].agent);
        RP_TRY(rp_activity_add_rank(r->a, i + 1, device < 0 ? 0 : device, r->err));
    }
    RP_TRY(rp_activity_order_ranks(r->a, r->err));
    RP_TRY(add_events(r));
    if (code != RP_OK)
        RP_TRY(end_early(r, code, options->salvage));
    return rp_activity_finish(r->a, to, begin_ns, r->err);
}

static enum rp_code read_rocprof_json(struct rp_input *in, const struct rp_read_options *options,
                                      struct rp_import *to, struct rp_err *err)
{
    struct json_reader r = {.a = calloc(1, sizeof *r.a), .err = err};

    RP_TRY(rp_err_need(r.a, err, "reading a trace"));
    enum rp_code code = read_all(&r, in, options, to);

    for (size_t i = 0; i < r.processes.n; i++) {
        struct process *p = &r.processes.at[i];

        RP_EACH(rp_texts_release, &p->kinds, &p->operations, &p->markers, &p->kernels);
        rp_map_release(&p->agents);
        rp_rocm_values_release(&p->values);
        rp_vec_release(&p->records);
    }
    rp_vec_release(&r.processes);

    rp_activity_release(r.a);
    free(r.a);
    return code;
}

static enum rp_sniff sniff_rocprof_json(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return rp_sniff_json_key(head, n, 1, TOP_KEY) == 1 ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

const struct rp_format rp_format_rocprof_json = {
    .name = "rocprofv3-json",
    .summary = "recording of AMD's rocprofv3, JSON",
    .files = "*_results.json",
    .written_by = "rocprofv3 --output-format json",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_rocprof_json,
    .read = read_rocprof_json,
};
