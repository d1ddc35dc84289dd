/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads rocpd, the SQLite files of rocprofv3 and rocprof-sys. All tables of a process end in its
 * uuid, so that one file can hold several; views without that ending join them. The tables are
 * read, process by process, because the views leave out rows whose queue is not known, and are
 * slow.
 *
 * Every event has a row in the table of events: its category, and a "stack id", the number that a
 * call and the device work it started have in common. The file has its own numbers for processes
 * and threads, other than those of the system.
 */
#include "base/each.h"
#include "base/order.h"
#include "formats/rocm/rocm.h"
#include "formats/sqlite/readers.h"
#include "formats/sqlite/texts.h"
#include "io/json_pull.h"
#include "rp_config.h"

#if RP_HAVE_SQLITE
#include <stdio.h>
#include <stdlib.h>

#define UUID_BYTES 64
#define PART_BIT   40 /* bits of the key of a process; those above are its part of the file */

struct rocpd_event {
    int64_t stack, category;
    rp_str message; /* message of a range of roctx, or 0 */
};

struct rocpd_argument { /* of a call of RCCL */
    int64_t event, elements;
    const char *type;
};

struct rocpd { /* rocpd: the reader of one process */
    struct rp_activity *a;
    struct rp_database *db;
    char uuid[UUID_BYTES];
    uint32_t part;  /* its index among the processes of the file */
    bool described; /* its devices are known */
    struct rp_texts texts;
    struct rp_texts kernels[2]; /* readable names, and names as compiled */
    struct rp_map event_of;     /* from the number of an event to its index in events */
    struct rp_map threads;      /* from the number of a thread to that of the system */
    struct rp_map agents;       /* from the number of an agent to its device + 1; 0: the host */
    RP_VEC(struct rocpd_event) events;
    struct rp_rocm_values values;
    RP_VEC(struct rocpd_argument) arguments;
};

static uint64_t process_key(const struct rocpd *r, int64_t process)
{
    return (uint64_t)(r->part + 1) << PART_BIT | (uint64_t)(uint32_t)process;
}

static enum rp_code each_row(struct rocpd *r, const char *thing, const char *const *columns,
                             rp_row_fn *read, struct rp_err *err)
{
    char table[64 + UUID_BYTES];

    snprintf(table, sizeof table, "rocpd_%s%s", thing, r->uuid);
    return rp_rows_each(r->db, table, columns, read, r, err);
}

static enum rp_code load_texts(struct rocpd *r, const char *thing, const char *text,
                               struct rp_texts *to, struct rp_err *err)
{
    char table[64 + UUID_BYTES];

    snprintf(table, sizeof table, "rocpd_%s%s", thing, r->uuid);
    return rp_texts_load(to, r->db, table, "id", text, err);
}

/* ------------------------------------------------------------------ what describes the events */

/* Names a process after its program only, because the rest of the command may hold anything. */
static enum rp_code read_process(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rocpd *r = user;
    rp_str name;
    size_t n;
    const char *text = rp_cell_text(rows, 2, &n);

    n = strcspn(text, " ");
    const char *slash = memrchr(text, '/', n);
    if (slash) {
        n -= (size_t)(slash + 1 - text);
        text = slash + 1;
    }
    RP_TRY(rp_activity_intern(r->a, text, n, &name, err));
    return rp_activity_process(r->a, process_key(r, rp_cell_int(rows, 0, 0)),
                               rp_cell_int(rows, 1, 0), name, err);
}

static enum rp_code read_thread(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rocpd *r = user;
    int64_t tid = rp_cell_int(rows, 1, 0);

    return rp_map_put(&r->threads, (uint64_t)rp_cell_int(rows, 0, 0), (uint32_t)(tid & INT32_MAX),
                      err);
}

static enum rp_code read_agent(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rocpd *r = user;
    struct rp_device device = {.id = rp_cell_int(rows, 2, rp_cell_int(rows, 3, 0))};
    size_t n;
    const char *text = rp_cell_text(rows, 1, &n);

    if (strcmp(text, "GPU") != 0)
        return rp_map_put(&r->agents, (uint64_t)rp_cell_int(rows, 0, 0), 0, err);
    device.id = device.id < 0 || device.id > 65535 ? 0 : device.id;
    RP_TRY(rp_map_put(&r->agents, (uint64_t)rp_cell_int(rows, 0, 0), (uint32_t)device.id + 1, err));
    if (r->part || r->described)
        return RP_OK; /* all processes of a file are of one machine */
    text = rp_cell_text(rows, rp_cell_has(rows, 4) ? 4 : 5, &n);
    RP_TRY(rp_activity_intern(r->a, text, n, &device.name, err));
    return rp_builder_add_device(r->a->t.builder, &device, err);
}

/* The text of "message" in JSON such as {"message":"step 3"}, or 0. */
static enum rp_code message_of(struct rocpd *r, const struct rp_rows *rows, int column, rp_str *out,
                               struct rp_err *err)
{
    size_t n, len = 0;
    const char *text = rp_cell_text(rows, column, &n), *at;
    char decoded[1024];

    *out = 0;
    if (n < 12 || !(at = strstr(text, "\"message\"")))
        return RP_OK;
    at += strlen("\"message\"");
    at += strspn(at, " :");
    if (*at++ != '"')
        return RP_OK;
    while (at[len] && at[len] != '"' && len < sizeof decoded)
        len += at[len] == '\\' && at[len + 1] ? 2 : 1;
    len = len < sizeof decoded ? len : sizeof decoded;
    len = rp_json_unescape(at, len, decoded, NULL);
    return rp_activity_intern(r->a, decoded, len, out, err);
}

static enum rp_code read_event(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rocpd *r = user;
    struct rocpd_event e = {.stack = rp_cell_int(rows, 1, 0), .category = rp_cell_int(rows, 2, -1)};
    uint32_t fresh = (uint32_t)r->events.n, at;

    RP_TRY(message_of(r, rows, 3, &e.message, err));
    RP_TRY(rp_map_intern(&r->event_of, (uint64_t)rp_cell_int(rows, 0, 0), fresh, &at, err));
    return at == fresh ? rp_vec_push(&r->events, e, err) : RP_OK;
}

static const struct rocpd_event *event_in(const struct rocpd *r, const struct rp_rows *rows,
                                          int column)
{
    static const struct rocpd_event none = {.category = -1};
    uint32_t at = rp_map_get(&r->event_of, (uint64_t)rp_cell_int(rows, column, -1));

    return at == RP_MAP_NONE ? &none : &r->events.at[at];
}

static int64_t device_of(const struct rocpd *r, const struct rp_rows *rows, int column)
{
    uint32_t at = rp_map_get(&r->agents, (uint64_t)rp_cell_int(rows, column, -1));

    return at == RP_MAP_NONE || !at ? RP_ACTIVITY_HOST : (int64_t)at - 1;
}

/* ------------------------------------------------------------------ counters */

static enum rp_code read_value(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rocpd *r = user;
    struct rp_rocm_value v = {.kernel = rp_cell_int(rows, 0, -1),
                              .counter = rp_cell_int(rows, 1, -1),
                              .value = rp_cell_real(rows, 2)};

    return rp_vec_push(&r->values.all, v, err);
}

/* The rank of this process of the file. */
static uint64_t own_rank(const struct rocpd *r)
{
    for (size_t i = 0; i < r->a->ranks.n; i++)
        if (r->a->processes.at[r->a->ranks.at[i]].key >> PART_BIT == r->part + 1)
            return r->a->processes.at[r->a->ranks.at[i]].key;
    return process_key(r, 0);
}

/* Sampled counters become events that last no time. */
static enum rp_code read_sample(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rocpd *r = user;
    int64_t event = rp_cell_int(rows, 1, -1);

    for (size_t i = rp_rocm_values_first(&r->values, event); i < r->values.all.n; i++) {
        const struct rp_rocm_value *v = &r->values.all.at[i];
        struct rp_activity_event e = {.kind = RP_ACTIVITY_COUNTER,
                                      .process = own_rank(r),
                                      .device = RP_ACTIVITY_HOST,
                                      .track = -2 - (v->counter & INT32_MAX)};

        if (v->kernel != event)
            break;
        if (!rp_cell_get(rows, 0, &e.begin_ns)) {
            rp_activity_skip(r->a, rp_rows_table(rows), rp_rows_number(rows));
            return RP_OK;
        }
        RP_TRY(rp_texts_intern(&r->values.names, r->a, v->counter, &e.name, err));
        RP_TRY(rp_activity_real(r->a, &e, "value", v->value, err));
        RP_TRY(rp_activity_add(r->a, &e, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ device work */

enum { START, END, PROCESS, STREAM, QUEUE, EVENT, OWN };
#define COMMON "start", "end", "pid", "stream_id", "queue_id", "event_id"

static bool device_event(struct rocpd *r, const struct rp_rows *rows, struct rp_activity_event *e)
{
    if (!rp_cell_get(rows, START, &e->begin_ns) || !rp_cell_get(rows, END, &e->end_ns)) {
        rp_activity_skip(r->a, rp_rows_table(rows), rp_rows_number(rows));
        return false;
    }
    e->process = process_key(r, rp_cell_int(rows, PROCESS, 0));
    e->track = rp_cell_int(rows, STREAM, rp_cell_int(rows, QUEUE, 0));
    e->correlation = event_in(r, rows, EVENT)->stack;
    return true;
}

static enum rp_code note_rank(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rocpd *r = user;
    int64_t device = device_of(r, rows, 1);

    return rp_activity_add_rank(r->a, process_key(r, rp_cell_int(rows, 0, 0)),
                                device < 0 ? 0 : device, err);
}

static enum rp_code read_kernel(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rocpd *r = user;
    struct rp_activity_event e = {.kind = RP_ACTIVITY_KERNEL};
    int64_t grid[3], group[3], kernel = rp_cell_int(rows, OWN + 1, -1), n;

    if (!device_event(r, rows, &e))
        return RP_OK;
    e.device = device_of(r, rows, OWN);
    e.device = e.device < 0 ? 0 : e.device;
    RP_TRY(rp_texts_intern(&r->kernels[0], r->a, kernel, &e.name, err));
    if (!e.name)
        RP_TRY(rp_texts_intern(&r->kernels[1], r->a, kernel, &e.name, err));
    if (!e.name)
        RP_TRY(rp_proto_trace_word(&r->a->t, "(kernel without name)", &e.name, err));
    for (int i = 0; i < 3; i++) {
        grid[i] = rp_cell_int(rows, OWN + 2 + i, 1);
        group[i] = rp_cell_int(rows, OWN + 5 + i, 1);
    }
    RP_TRY(rp_rocm_dims(r->a, &e, grid, group, err));
    if (rp_cell_get(rows, QUEUE, &n))
        RP_TRY(rp_activity_int(r->a, &e, "queue", n, err));
    RP_TRY(rp_rocm_values_add(&r->values, r->a, rp_cell_int(rows, EVENT, -1), &e, err));
    return rp_activity_add(r->a, &e, err);
}

static enum rp_code read_copy(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rocpd *r = user;
    struct rp_activity_event e = {.kind = RP_ACTIVITY_MEMCPY};
    int64_t to = device_of(r, rows, OWN), from = device_of(r, rows, OWN + 1);
    size_t n;

    if (!device_event(r, rows, &e))
        return RP_OK;
    e.device = to >= 0 ? to : from >= 0 ? from : 0;
    RP_TRY(rp_proto_trace_word(
        &r->a->t, rp_rocm_copy_name(rp_texts_borrow(&r->texts, rp_cell_int(rows, OWN + 3, -1), &n)),
        &e.name, err));
    RP_TRY(rp_activity_int(r->a, &e, "bytes", rp_cell_int(rows, OWN + 2, 0), err));
    return rp_activity_add(r->a, &e, err);
}

/* ------------------------------------------------------------------ calls */

RP_ORDER(by_call, struct rocpd_argument, RP_UP(event))

/* Keeps only those arguments that say how much RCCL sends. */
static enum rp_code read_argument(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rocpd *r = user;
    struct rocpd_argument arg = {.event = rp_cell_int(rows, 0, -1), .elements = -1};
    size_t n;
    const char *text = rp_cell_text(rows, 1, &n);

    if (!strcmp(text, "datatype"))
        arg.type = rp_rocm_dtype(rp_cell_text(rows, 2, &n));
    else if (!strcmp(text, "count") || !strcmp(text, "sendcount") || !strcmp(text, "recvcount"))
        arg.elements = strtoll(rp_cell_text(rows, 2, &n), NULL, 0);
    return arg.type || arg.elements >= 0 ? rp_vec_push(&r->arguments, arg, err) : RP_OK;
}

static enum rp_code add_arguments(struct rocpd *r, int64_t event, struct rp_activity_event *e,
                                  struct rp_err *err)
{
    rp_str word;
    size_t i;

    RP_LOWER_BOUND(i, r->arguments.n, r->arguments.at[i].event < event);
    for (; i < r->arguments.n && r->arguments.at[i].event == event; i++) {
        const struct rocpd_argument *arg = &r->arguments.at[i];

        if (arg->elements >= 0) {
            RP_TRY(rp_activity_int(r->a, e, "In msg nelems", arg->elements, err));
            continue;
        }
        RP_TRY(rp_proto_trace_word(&r->a->t, arg->type, &word, err));
        RP_TRY(rp_activity_text(r->a, e, "dtype", word, err));
    }
    return RP_OK;
}

static enum rp_code read_region(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rocpd *r = user;
    const struct rocpd_event *event = event_in(r, rows, 5);
    struct rp_activity_event e = {.device = RP_ACTIVITY_HOST,
                                  .process = process_key(r, rp_cell_int(rows, 2, 0)),
                                  .correlation = event->stack};
    uint32_t thread = rp_map_get(&r->threads, (uint64_t)rp_cell_int(rows, 3, -1));
    size_t n, len;

    if (!rp_cell_get(rows, 0, &e.begin_ns) || !rp_cell_get(rows, 1, &e.end_ns)) {
        rp_activity_skip(r->a, rp_rows_table(rows), rp_rows_number(rows));
        return RP_OK;
    }
    e.track = thread == RP_MAP_NONE ? rp_cell_int(rows, 3, 0) : thread;
    const char *category = rp_texts_borrow(&r->texts, event->category, &len);
    const char *name = rp_texts_borrow(&r->texts, rp_cell_int(rows, 4, -1), &n);
    e.kind = rp_rocm_call_kind(category, name);
    if (e.kind == RP_ACTIVITY_ANNOTATION && event->message) {
        e.name = event->message;
        return rp_activity_add(r->a, &e, err);
    }
    RP_TRY(rp_rocm_name_call(r->a, &e, name, n, err));
    if (e.kind == RP_ACTIVITY_COLLECTIVE)
        RP_TRY(add_arguments(r, rp_cell_int(rows, 5, -1), &e, err));
    return rp_activity_add(r->a, &e, err);
}

/* ------------------------------------------------------------------ one process */

static enum rp_code describe_process(struct rocpd *r, struct rp_err *err)
{
    static const char *const process[] = {"id", "pid", "command", NULL};
    static const char *const agent[] = {"id",           "type", "type_index", "logical_index",
                                        "product_name", "name", NULL};
    static const char *const rank[] = {"pid", "agent_id", NULL};

    RP_TRY(each_row(r, "info_process", process, read_process, err));
    RP_TRY(each_row(r, "info_agent", agent, read_agent, err));
    RP_TRY(each_row(r, "kernel_dispatch", rank, note_rank, err));
    return RP_OK;
}

static void release_process(struct rocpd *r)
{
    RP_EACH(rp_texts_release, &r->texts, &r->kernels[0], &r->kernels[1]);
    RP_EACH(rp_map_release, &r->event_of, &r->threads, &r->agents);
    rp_vec_release(&r->events);
    rp_rocm_values_release(&r->values);
    rp_vec_release(&r->arguments);
}

/* ------------------------------------------------------------------ the file */

/* Finds the ending of the tables of a process: what follows "rocpd_info_process". */
static bool uuid_of(const char *table, char *out)
{
    static const char prefix[] = "rocpd_info_process";
    size_t n = strlen(prefix);

    if (strncmp(table, prefix, n) != 0 || strlen(table + n) >= UUID_BYTES)
        return false;
    snprintf(out, UUID_BYTES, "%s", table + n);
    return true;
}

/* Describes all processes first and then reads their events, because ranks come before events. */
static enum rp_code each_process(struct rp_activity *a, struct rp_database *db,
                                 enum rp_code (*read)(struct rocpd *r, struct rp_err *err),
                                 struct rp_err *err)
{
    const char *table;
    uint32_t part = 0;

    for (size_t i = 0; (table = rp_database_table(db, i)); i++) {
        RP_SCOPED(release_process) struct rocpd r = {.a = a, .db = db, .part = part};

        if (!uuid_of(table, r.uuid))
            continue;
        RP_TRY(read(&r, err));
        part++;
    }
    return RP_OK;
}

static enum rp_code describe_and_read(struct rocpd *r, struct rp_err *err)
{
    static const char *const agent[] = {"id",           "type", "type_index", "logical_index",
                                        "product_name", "name", NULL};

    r->described = true;
    RP_TRY(each_row(r, "info_agent", agent, read_agent, err));
    static const char *const kernel[] = {
        COMMON,        "agent_id",         "kernel_id",        "grid_size_x",      "grid_size_y",
        "grid_size_z", "workgroup_size_x", "workgroup_size_y", "workgroup_size_z", NULL};
    static const char *const copy[] = {COMMON, "dst_agent_id", "src_agent_id",
                                       "size", "name_id",      NULL};
    static const char *const region[] = {"start", "end", "pid", "tid", "name_id", "event_id", NULL};
    static const char *const sample[] = {"timestamp", "event_id", NULL};

    /* Lists that events refer to by number. */
    static const char *const thread[] = {"id", "tid", NULL};
    static const char *const event[] = {"id", "stack_id", "category_id", "extdata", NULL};
    static const char *const value[] = {"event_id", "pmc_id", "value", NULL};
    static const char *const argument[] = {"event_id", "name", "value", NULL};
    RP_TRY(load_texts(r, "string", "string", &r->texts, err));
    RP_TRY(load_texts(r, "info_kernel_symbol", "display_name", &r->kernels[0], err));
    RP_TRY(load_texts(r, "info_kernel_symbol", "kernel_name", &r->kernels[1], err));
    RP_TRY(load_texts(r, "info_pmc", "symbol", &r->values.names, err));
    RP_TRY(each_row(r, "info_thread", thread, read_thread, err));
    RP_TRY(each_row(r, "event", event, read_event, err));
    RP_TRY(each_row(r, "pmc_event", value, read_value, err));
    RP_TRY(each_row(r, "arg", argument, read_argument, err));
    rp_rocm_values_sort(&r->values);
    rp_sort(r->arguments.at, r->arguments.n, sizeof *r->arguments.at, by_call);
    RP_TRY(each_row(r, "kernel_dispatch", kernel, read_kernel, err));
    RP_TRY(each_row(r, "memory_copy", copy, read_copy, err));
    RP_TRY(each_row(r, "region", region, read_region, err));
    return each_row(r, "sample", sample, read_sample, err);
}

enum rp_code rp_rocpd_read(struct rp_activity *a, struct rp_database *db, struct rp_err *err)
{
    RP_TRY(each_process(a, db, describe_process, err));
    RP_TRY(rp_activity_order_ranks(a, err));
    return each_process(a, db, describe_and_read, err);
}

#endif
