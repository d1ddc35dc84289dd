/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the CSV of rocprofv3, which writes a file for each kind of record (kernels, copies, calls,
 * ranges of roctx, allocations, counters), called PID_kernel_trace.csv and so on. Columns are found
 * by their names, which have changed with the versions. Kernels, and the calls that started them,
 * are in different files. The first file reads those beside it whose names begin the same into its
 * trace.
 */
#include "base/clock.h"
#include "base/decimal.h"
#include "base/order.h"
#include "base/text.h"
#include "base/vec.h"
#include "formats/list.h"
#include "formats/rocm/rocm.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_FIELDS 64

enum column {
    KIND,
    DOMAIN,
    FUNCTION,
    OPERATION,
    DIRECTION,
    AGENT,
    FROM_AGENT,
    TO_AGENT,
    QUEUE,
    STREAM,
    PROCESS,
    THREAD,
    DISPATCH,
    KERNEL_NAME,
    CORRELATION,
    START,
    END,
    GROUP_X,
    GROUP_Y,
    GROUP_Z,
    GRID_X,
    GRID_Y,
    GRID_Z,
    GROUP,
    GRID,
    COUNTER_NAME,
    COUNTER_VALUE,
    SIZE,
    COLUMNS
};

static const char *const titles[COLUMNS] = {
    "Kind",          "Domain",           "Function",         "Operation",
    "Direction",     "Agent_Id",         "Source_Agent_Id",  "Destination_Agent_Id",
    "Queue_Id",      "Stream_Id",        "Process_Id",       "Thread_Id",
    "Dispatch_Id",   "Kernel_Name",      "Correlation_Id",   "Start_Timestamp",
    "End_Timestamp", "Workgroup_Size_X", "Workgroup_Size_Y", "Workgroup_Size_Z",
    "Grid_Size_X",   "Grid_Size_Y",      "Grid_Size_Z",      "Workgroup_Size",
    "Grid_Size",     "Counter_Name",     "Counter_Value",    "Allocation_Size"};

struct field {
    const char *at; /* NULL: the field had doubled quotes, and is in `plain` of its table */
    size_t n;
    size_t from; /* there */
};

struct table { /* a file */
    const char *name;
    const char *at, *end;
    uint64_t line;
    int place[COLUMNS]; /* place of each column among the fields of a line, or -1 */
    int nfields;
    struct field fields[MOST_FIELDS]; /* of the current line */
    RP_VEC(char) plain;               /* fields without their doubled quotes */
};

struct counted { /* a line of counters, which has one counter of one dispatch */
    int64_t process, dispatch;
    uint64_t line;
    struct rp_activity_event e; /* of the dispatch */
    rp_str counter;             /* the key of its argument */
    double value;
};

struct csv_reader {
    struct rp_activity *a;
    int64_t pid; /* process of kernels whose lines do not name it */
    RP_VEC(struct counted) counted;
    bool no_times; /* some lines of counters have no times */
    struct rp_err *err;
};

/* ------------------------------------------------------------------ lines and fields */

/* Reads one field; *more tells whether another one follows in this line. An end of line in quotes
   belongs to the field. */
static enum rp_code next_field(struct table *t, struct field *out, bool *more, struct rp_err *err)
{
    const char *p = t->at, *quote = NULL;
    size_t from = t->plain.n;

    if (p < t->end && *p == '"') {
        for (p++; (quote = memchr(p, '"', (size_t)(t->end - p))) && quote + 1 < t->end &&
                  quote[1] == '"';
             p = quote + 2) {
            RP_TRY(rp_vec_reserve(&t->plain, (size_t)(quote - p) + 1, err));
            memcpy(t->plain.at + t->plain.n, p, (size_t)(quote - p) + 1);
            t->plain.n += (size_t)(quote - p) + 1;
        }
        if (!quote)
            quote = t->end;
        *out = (struct field){.at = p, .n = (size_t)(quote - p)};
        if (t->plain.n > from) {
            RP_TRY(rp_vec_reserve(&t->plain, out->n, err));
            memcpy(t->plain.at + t->plain.n, p, out->n);
            t->plain.n += out->n;
            *out = (struct field){.n = t->plain.n - from, .from = from};
        }
        p = quote < t->end ? quote + 1 : quote;
    } else {
        size_t n = 0;

        while (p + n < t->end && p[n] != ',' && p[n] != '\n' && p[n] != '\r')
            n++;
        *out = (struct field){.at = p, .n = n};
        p += n;
    }
    *more = p < t->end && *p == ',';
    while (p < t->end && !*more && *p != '\n')
        p++;
    t->at = p < t->end ? p + 1 : p;
    return RP_OK;
}

/* Reads the fields of the next line that is not empty; false if there is none. */
static enum rp_code next_line(struct table *t, uint64_t most, bool *any, struct rp_err *err)
{
    bool more = true;

    while (t->at < t->end && (*t->at == '\n' || *t->at == '\r'))
        t->line += *t->at++ == '\n';
    *any = t->at < t->end;
    const char *begin = t->at;
    t->nfields = 0;
    t->plain.n = 0;
    t->line++;
    while (*any && more) {
        struct field f;

        RP_TRY(next_field(t, &f, &more, err));
        if (t->nfields < MOST_FIELDS)
            t->fields[t->nfields++] = f;
        if ((uint64_t)(t->at - begin) > most)
            return rp_err_set_at(err, RP_LIMIT, 0, "line %llu is longer than %llu bytes",
                                 (unsigned long long)t->line, (unsigned long long)most);
    }
    return RP_OK;
}

static struct field field_of(const struct table *t, enum column c)
{
    struct field f = {.at = ""};

    if (t->place[c] >= 0 && t->place[c] < t->nfields)
        f = t->fields[t->place[c]];
    if (!f.at)
        f.at = t->plain.at + f.from;
    return f;
}

static bool number_in(const struct table *t, enum column c, int64_t *out)
{
    struct field f = field_of(t, c);

    return f.n && !rp_decimal_parse(f.at, f.n, 0, out);
}

static int64_t number_of(const struct table *t, enum column c, int64_t otherwise)
{
    int64_t n;

    return number_in(t, c, &n) ? n : otherwise;
}

/* Takes 3 from "Agent 3" and from "3". */
static int64_t agent_of(const struct table *t, enum column c)
{
    struct field f = field_of(t, c);
    size_t i = f.n;
    int64_t n;

    while (i && f.at[i - 1] >= '0' && f.at[i - 1] <= '9')
        i--;
    return i < f.n && !rp_decimal_parse(f.at + i, f.n - i, 0, &n) ? n : 0;
}

/* Copies a text with a terminator, truncated to the size of the buffer. */
static const char *text_of(const struct table *t, enum column c, char *out, size_t cap)
{
    struct field f = field_of(t, c);

    snprintf(out, cap, "%.*s", (int)(f.n < cap ? f.n : cap - 1), f.at);
    return out;
}

static enum rp_code read_header(struct table *t, const struct rp_limits *limits, struct rp_err *err)
{
    bool any;

    if (t->end - t->at >= 3 && !memcmp(t->at, "\xef\xbb\xbf", 3)) /* a byte order mark */
        t->at += 3;
    RP_TRY(next_line(t, limits->token_bytes, &any, err));
    for (int c = 0; c < COLUMNS; c++) {
        t->place[c] = -1;
        for (int i = 0; i < t->nfields; i++)
            if (t->fields[i].at && t->fields[i].n == strlen(titles[c]) &&
                !memcmp(t->fields[i].at, titles[c], t->fields[i].n))
                t->place[c] = i;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ records */

static bool set_times(struct csv_reader *r, const struct table *t, struct rp_activity_event *e)
{
    if (number_in(t, START, &e->begin_ns) && number_in(t, END, &e->end_ns))
        return true;
    rp_activity_skip(r->a, t->name, t->line);
    return false;
}

static enum rp_code set_kernel(struct csv_reader *r, const struct table *t,
                               struct rp_activity_event *e)
{
    struct field name = field_of(t, KERNEL_NAME);
    int64_t grid[3], group[3];

    e->kind = RP_ACTIVITY_KERNEL;
    e->process = (uint64_t)number_of(t, PROCESS, r->pid);
    e->device = agent_of(t, AGENT);
    e->track = number_of(t, STREAM, number_of(t, QUEUE, 0));
    e->correlation = number_of(t, CORRELATION, 0);
    RP_TRY(rp_activity_intern(r->a, name.at, name.n, &e->name, r->err));
    for (int i = 0; i < 3; i++) {
        grid[i] = number_of(t, GRID_X + i, i ? 1 : number_of(t, GRID, 1));
        group[i] = number_of(t, GROUP_X + i, i ? 1 : number_of(t, GROUP, 1));
    }
    RP_TRY(rp_rocm_dims(r->a, e, grid, group, r->err));
    return rp_activity_int(r->a, e, "queue", number_of(t, QUEUE, 0), r->err);
}

RP_ORDER(by_dispatch, struct counted, RP_UP(process), RP_UP(dispatch), RP_UP(line))

/* The process of kernels whose lines do not name it: the only one that has counters, or else the
   first. */
static int64_t counted_process(const struct csv_reader *r)
{
    const struct counted *c = r->counted.at;

    return r->counted.n && c[0].process == c[r->counted.n - 1].process ? c[0].process : r->pid;
}

/* Adds the counters of a dispatch to its kernel. A counter may have several instances. */
static void add_counters(const struct csv_reader *r, int64_t process, int64_t dispatch,
                         struct rp_activity_event *e)
{
    const struct counted probe = {.process = process, .dispatch = dispatch};
    size_t at;

    RP_LOWER_BOUND(at, r->counted.n, by_dispatch(&r->counted.at[at], &probe) < 0);
    for (; at < r->counted.n; at++) {
        const struct counted *c = &r->counted.at[at];
        uint32_t i = 0;

        if (c->process != process || c->dispatch != dispatch)
            break;
        while (i < e->nargs && e->args[i].key != c->counter)
            i++;
        if (i < e->nargs)
            e->args[i].v.f += c->value;
        else if (e->nargs < RP_ACTIVITY_ARGS - 4)
            e->args[e->nargs++] =
                (struct rp_arg){.key = c->counter, .type = RP_ARG_F64, .v.f = c->value};
    }
}

static enum rp_code read_kernel(struct csv_reader *r, const struct table *t)
{
    struct rp_activity_event e = {0};

    if (!set_times(r, t, &e))
        return RP_OK;
    RP_TRY(set_kernel(r, t, &e));
    add_counters(r, counted_process(r), number_of(t, DISPATCH, -1), &e);
    return rp_activity_add(r->a, &e, r->err);
}

static enum rp_code read_copy(struct csv_reader *r, const struct table *t)
{
    struct rp_activity_event e = {.kind = RP_ACTIVITY_MEMCPY,
                                  .process = (uint64_t)number_of(t, PROCESS, r->pid),
                                  .track = number_of(t, STREAM, 0),
                                  .correlation = number_of(t, CORRELATION, 0)};
    int64_t to = agent_of(t, TO_AGENT), from = agent_of(t, FROM_AGENT);
    char direction[80];

    if (!set_times(r, t, &e))
        return RP_OK;
    text_of(t, DIRECTION, direction, sizeof direction);
    e.device = strstr(direction, "DEVICE_TO_HOST") ? from : to;
    RP_TRY(rp_proto_trace_word(&r->a->t, rp_rocm_copy_name(direction), &e.name, r->err));
    return rp_activity_add(r->a, &e, r->err);
}

/* Reads calls, ranges of roctx, and whatever else a thread did: allocations, scratch memory. */
static enum rp_code read_call(struct csv_reader *r, const struct table *t)
{
    enum column what = t->place[FUNCTION] >= 0 ? FUNCTION : OPERATION;
    struct rp_activity_event e = {.device = RP_ACTIVITY_HOST,
                                  .process = (uint64_t)number_of(t, PROCESS, r->pid),
                                  .track = number_of(t, THREAD, 0),
                                  .correlation = number_of(t, CORRELATION, 0)};
    char domain[80], name[80];
    int64_t bytes;

    if (!set_times(r, t, &e))
        return RP_OK;
    if (t->place[PROCESS] >= 0 && !r->pid)
        r->pid = (int64_t)e.process;
    text_of(t, t->place[DOMAIN] >= 0 ? DOMAIN : KIND, domain, sizeof domain);
    e.kind = rp_rocm_call_kind(domain, text_of(t, what, name, sizeof name));
    if (e.kind == RP_ACTIVITY_ANNOTATION && e.end_ns == e.begin_ns)
        e.kind = RP_ACTIVITY_MARK;
    RP_TRY(rp_rocm_name_call(r->a, &e, name, strlen(name), r->err));
    if (field_of(t, what).n >= sizeof name)
        RP_TRY(
            rp_activity_intern(r->a, field_of(t, what).at, field_of(t, what).n, &e.name, r->err));
    if (number_in(t, SIZE, &bytes))
        RP_TRY(rp_activity_int(r->a, &e, "bytes", bytes, r->err));
    return rp_activity_add(r->a, &e, r->err);
}

static enum rp_code read_counter(struct csv_reader *r, const struct table *t)
{
    struct counted c = {.process = number_of(t, PROCESS, r->pid),
                        .dispatch = number_of(t, DISPATCH, 0),
                        .line = t->line};
    char name[160], number[64];

    RP_TRY(set_kernel(r, t, &c.e));
    if (!number_in(t, START, &c.e.begin_ns) || !number_in(t, END, &c.e.end_ns))
        r->no_times = true;
    c.value = strtod(text_of(t, COUNTER_VALUE, number, sizeof number), NULL);
    snprintf(name, sizeof name, "counter %.*s",
             (int)(field_of(t, COUNTER_NAME).n < 140 ? field_of(t, COUNTER_NAME).n : 140),
             field_of(t, COUNTER_NAME).at);
    RP_TRY(rp_proto_trace_text(&r->a->t, name, &c.counter, r->err));
    return rp_vec_push(&r->counted, c, r->err);
}

/* ------------------------------------------------------------------ files */

typedef enum rp_code row_fn(struct csv_reader *r, const struct table *t);

static row_fn *reader_of(const struct table *t)
{
    if (t->place[COUNTER_NAME] >= 0)
        return read_counter;
    if (t->place[KERNEL_NAME] >= 0)
        return read_kernel;
    return t->place[DIRECTION] >= 0 ? read_copy : read_call;
}

static void table_release(struct table *t)
{
    rp_vec_release(&t->plain);
}

static enum rp_code read_file(struct csv_reader *r, const char *name, const uint8_t *bytes,
                              size_t n)
{
    RP_SCOPED(table_release)
    struct table t = {.name = name, .at = (const char *)bytes, .end = (const char *)bytes + n};

    /* The header decides which records these are. */
    bool any;
    RP_TRY(read_header(&t, &r->a->t.limits, r->err));
    row_fn *read = reader_of(&t);
    for (;;) {
        RP_TRY(next_line(&t, r->a->t.limits.token_bytes, &any, r->err));
        if (!any)
            break;
        RP_TRY(read(r, &t));
        if (t.line % 8192 == 0 && t.end == (const char *)r->a->t.bytes + r->a->t.n)
            RP_TRY(rp_proto_trace_progress(&r->a->t, (const uint8_t *)t.at, r->err));
    }
    if (read == read_counter && r->counted.n)
        qsort(r->counted.at, r->counted.n, sizeof *r->counted.at, by_dispatch);
    return RP_OK;
}

/* The files of a process. The first one that exists reads the others into its trace: that of
   kernels, or else that of what the device did otherwise. Counters are read before the kernels,
   with which they are joined. */
static const char *const packed[] = {".gz", ".zst", ".xz"};
static const char *const endings[] = {
    "kernel_trace.csv",      "counter_collection.csv",      "memory_copy_trace.csv",
    "hip_api_trace.csv",     "hip_runtime_trace.csv",       "hsa_api_trace.csv",
    "marker_api_trace.csv",  "rccl_api_trace.csv",          "rocdecode_api_trace.csv",
    "rocjpeg_api_trace.csv", "memory_allocation_trace.csv", "scratch_memory_trace.csv"};
#define ENDINGS (sizeof endings / sizeof *endings)

/* The ending that a name has before that of its compression; ENDINGS if it has none of them, or
   does not tell the process. */
static size_t ending_of(const char *name, size_t *begins)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (rp_text_ends(name, packed[i])) {
            n -= strlen(packed[i]);
            break;
        }
    for (size_t i = 0; i < ENDINGS; i++) {
        size_t len = strlen(endings[i]);

        *begins = n - len;
        if (n > len && !memcmp(name + n - len, endings[i], len) && name[n - len - 1] == '_')
            return i;
    }
    return ENDINGS;
}

/* Gives "run/4711_kernel_trace.csv.gz" another ending; false if the name is too long. */
static bool name_beside(const char *name, size_t own, size_t begins, size_t other, char *out,
                        size_t cap)
{
    return (size_t)snprintf(out, cap, "%.*s%s%s", (int)begins, name, endings[other],
                            name + begins + strlen(endings[own])) < cap;
}

static bool first_line_has(const uint8_t *bytes, size_t n, const char *text)
{
    const uint8_t *line = memchr(bytes, '\n', n);

    return memmem(bytes, line ? (size_t)(line - bytes) : n, text, strlen(text)) != NULL;
}

/* Counters of 2024 have no times, so they cannot be joined with records that have. */
static bool has_times(const char *path, const struct rp_limits *limits)
{
    struct rp_input *in;
    const uint8_t *bytes;
    bool found = false;
    size_t n;

    if (access(path, R_OK) || rp_input_open(path, limits, &in, NULL) != RP_OK)
        return false;
    if (rp_input_peek(in, 4096, &bytes, &n, NULL) == RP_OK)
        found = first_line_has(bytes, n, "Start_Timestamp");
    rp_input_close(in);
    return found;
}

/* Whether a file that comes before this one exists. */
static bool is_read_by_another(const struct csv_reader *r, const char *name)
{
    size_t begins, own = ending_of(name, &begins);
    char path[4096];

    for (size_t i = 0; own < ENDINGS && i < own; i++)
        if (name_beside(name, own, begins, i, path, sizeof path) &&
            has_times(path, r->a->t.options->limits))
            return true;
    return false;
}

/* Reads the other files of the process. A file that cannot be opened counts as missing. */
static enum rp_code read_beside(struct csv_reader *r, const char *name)
{
    size_t begins, own = ending_of(name, &begins);
    enum rp_code code = RP_OK;
    char path[4096];

    for (size_t i = own + 1; code == RP_OK && i < ENDINGS; i++) {
        struct rp_input *in;
        const uint8_t *bytes;
        size_t n;

        if (!name_beside(name, own, begins, i, path, sizeof path) ||
            rp_input_open(path, r->a->t.options->limits, &in, NULL) != RP_OK)
            continue;
        code = rp_input_slurp(in, &bytes, &n, r->err);
        if (code == RP_OK)
            code = read_file(r, path, bytes, n);
        if (code != RP_OK)
            code = rp_err_context(r->err, code, "in '%s', which is beside it", path);
        rp_input_close(in);
    }
    return code;
}

static void csv_reader_release(struct csv_reader *r)
{
    rp_vec_release(&r->counted);
    if (r->a)
        rp_activity_release(r->a);
    free(r->a);
}

static enum rp_code read_rocprof_csv(struct rp_input *in, const struct rp_read_options *options,
                                     struct rp_import *to, struct rp_err *err)
{
    RP_SCOPED(csv_reader_release)
    struct csv_reader r = {.a = calloc(1, sizeof *r.a), .err = err};

    RP_TRY(rp_err_need(r.a, err, "reading a trace"));

    const char *name = rp_input_borrow_name(in);
    int64_t begin_ns = rp_clock_ns();

    RP_TRY(rp_activity_init(r.a, in, options, rp_format_rocprof_csv.name, r.err));

    /* The number at the start of a file name, which rocprofv3 makes the process id. */
    const char *base = strrchr(name, '/');
    int64_t pid;
    base = base ? base + 1 : name;
    size_t n = strspn(base, "0123456789");
    r.pid = n && base[n] == '_' && !rp_decimal_parse(base, n, 0, &pid) ? pid : 0;
    bool kernels = first_line_has(r.a->t.bytes, r.a->t.n, "Kernel_Name") &&
                   !first_line_has(r.a->t.bytes, r.a->t.n, "Counter_Name");
    to->beside_another = is_read_by_another(&r, name);
    if (!to->beside_another && first_line_has(r.a->t.bytes, r.a->t.n, "Start_Timestamp"))
        RP_TRY(read_beside(&r, name));
    RP_TRY(rp_activity_add_rank(r.a, (uint64_t)r.pid, 0, r.err));
    RP_TRY(rp_activity_order_ranks(r.a, r.err));
    RP_TRY(read_file(&r, name, r.a->t.bytes, r.a->t.n));
    if (!kernels) {
        /* Without a file of kernels, adds the dispatches whose counters were read. Files of 2024
           have no times, so these dispatches are placed one nanosecond apart. */
        for (size_t i = 0; i < r.counted.n; i++) {
            struct counted c = r.counted.at[i];
            if (i && r.counted.at[i - 1].process == c.process &&
                r.counted.at[i - 1].dispatch == c.dispatch)
                continue;
            if (r.no_times)
                c.e.begin_ns = c.e.end_ns = (int64_t)i + 1;
            add_counters(&r, c.process, c.dispatch, &c.e);
            RP_TRY(rp_activity_add(r.a, &c.e, r.err));
        }
        if (r.no_times && r.counted.n) {
            RP_TRY(rp_builder_warn(
                r.a->t.builder, r.err,
                "the counters have no times: kernels are in their order, but how long "
                "they took is not known; record with 'rocprofv3 --kernel-trace' too"));
        }
    }
    return rp_activity_finish(r.a, to, begin_ns, r.err);
}

/* Whether the line has all these titles, in any order. */
static bool has_titles(const char *line, size_t n, const char *const *names)
{
    for (; *names; names++)
        if (!memmem(line, n, *names, strlen(*names)))
            return false;
    return true;
}

static enum rp_sniff sniff_rocprof_csv(const uint8_t *head, size_t n, const char *file)
{
    static const char *const of_kind[] = {"Kind", "Start_Timestamp", "End_Timestamp", NULL};
    static const char *const of_domain[] = {"Domain", "Start_Timestamp", "End_Timestamp", NULL};
    static const char *const counted[] = {"Dispatch_Id", "Counter_Name", "Counter_Value", NULL};
    const char *text = (const char *)head, *end = memchr(head, '\n', n);
    size_t len = end ? (size_t)(end - text) : n;

    (void)file;
    if (memchr(text, '{', len) || memchr(text, '\0', len)) /* JSON, a binary file */
        return RP_SNIFF_NO;
    return has_titles(text, len, of_kind) || has_titles(text, len, of_domain) ||
                   has_titles(text, len, counted)
               ? RP_SNIFF_CERTAIN
               : RP_SNIFF_NO;
}

const struct rp_format rp_format_rocprof_csv = {
    .name = "rocprofv3-csv",
    .summary = "recording of AMD's rocprofv3, CSV",
    .files = "*_kernel_trace.csv, *_hip_api_trace.csv, *_counter_collection.csv, …",
    .written_by = "rocprofv3 --output-format csv",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_rocprof_csv,
    .read = read_rocprof_csv,
};
