/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads NVTX: ranges and marks of programs and libraries. Names of PyTorch's operators are taken
 * apart (abi/nvtx_names.h). NCCL describes its calls in payloads, whose layout the file has as a
 * table: communicator, its size, own rank, bytes. A range may come before the call that created its
 * communicator, so those are read first.
 */
#include "formats/nsys/nsys.h"

#include "abi/nvtx_names.h"
#include "base/order.h"
#include "rp_config.h"

#if RP_HAVE_SQLITE
#include <stdio.h>

enum { MARK = 34, PUSH_POP = 59, START_END = 60 }; /* eventType */

#define PAYLOAD_HEADER 32        /* bytes: domain, schema at 8, size at 16, then the payload */
#define FIRST_OWN_TYPE 0x1000000 /* types of entries that the program defined: enumerations */

RP_ORDER(by_entry, struct rp_nsys_entry, RP_UP(schema), RP_UP(index), RP_UP(offset), RP_UP(name))

static uint64_t schema_key(int64_t domain, int64_t schema)
{
    return (uint64_t)(uint32_t)domain << 32 | (uint32_t)schema;
}

/* ------------------------------------------------------------------ layouts */

static enum rp_code read_entry(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_nsys_entry e = {.schema =
                                  schema_key(rp_cell_int(rows, 0, 0), rp_cell_int(rows, 1, 0)),
                              .index = rp_cell_int(rows, 2, 0),
                              .type = rp_cell_int(rows, 3, 0),
                              .offset = rp_cell_int(rows, 5, 0)};
    size_t n;
    const char *text = rp_cell_text(rows, 4, &n);

    if (!n || e.offset < 0)
        return RP_OK;
    RP_TRY(rp_activity_intern(r->a, text, n, &e.name, err));
    return rp_vec_push(&r->entries, e, err);
}

static enum rp_code read_word(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_nsys_word w = {.schema = schema_key(rp_cell_int(rows, 0, 0), rp_cell_int(rows, 1, 0)),
                             .value = rp_cell_int(rows, 3, 0)};
    size_t n;
    const char *text = rp_cell_text(rows, 2, &n);

    RP_TRY(rp_activity_intern(r->a, text, n, &w.name, err));
    return rp_vec_push(&r->words, w, err);
}

/* ------------------------------------------------------------------ payloads */

struct payload {
    const char *bytes;
    size_t n;
    uint64_t schema;
    uint32_t first; /* first entry; RP_MAP_NONE if there is no payload */
};

static struct payload payload_of(const struct rp_nsys *r, const struct rp_rows *rows, int column)
{
    struct payload p = {.first = RP_MAP_NONE};
    uint32_t domain, schema;

    if (!r->entries.n || !rp_cell_has(rows, column))
        return p;
    p.bytes = rp_cell_text(rows, column, &p.n);
    if (p.n <= PAYLOAD_HEADER)
        return p;
    memcpy(&domain, p.bytes, 4);
    memcpy(&schema, p.bytes + 8, 4);
    p.schema = schema_key(domain, schema);
    p.bytes += PAYLOAD_HEADER;
    p.n -= PAYLOAD_HEADER;
    p.first = rp_map_get(&r->schemas, p.schema);
    return p;
}

/* The next value at or after entry i; in files of several processes, rows repeat the layout. */
static const struct rp_nsys_entry *next_entry(const struct rp_nsys *r, const struct payload *p,
                                              uint32_t *i)
{
    while (*i < r->entries.n && r->entries.at[*i].schema == p->schema) {
        const struct rp_nsys_entry *e = &r->entries.at[(*i)++];

        if (e - r->entries.at == p->first || e[-1].index != e->index)
            return e;
    }
    return NULL;
}

/* Sizes of NVTX's types, starting with NVTX_PAYLOAD_ENTRY_TYPE_CHAR = 1; 0: not a number. */
static const uint8_t type_bytes[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 1,
                                     1, 2, 2, 4, 4, 8, 8, 4, 8, 0, 8, 8};

static bool entry_number(const struct payload *p, const struct rp_nsys_entry *e, int64_t *out)
{
    size_t size = e->type >= FIRST_OWN_TYPE                             ? 4
                  : e->type > 0 && e->type < (int64_t)sizeof type_bytes ? type_bytes[e->type]
                                                                        : 0;
    uint64_t value = 0;
    bool is_signed = e->type % 2 == 1 && e->type != 19;

    if (!size || e->type == 19 || e->type == 20 || p->n < size || (uint64_t)e->offset > p->n - size)
        return false;
    memcpy(&value, p->bytes + e->offset, size);
    if (is_signed && size < 8 && value >> (8 * size - 1))
        value |= UINT64_MAX << (8 * size);
    *out = (int64_t)value;
    return true;
}

static bool entry_is(const struct rp_nsys *r, const struct rp_nsys_entry *e, const char *name)
{
    return !strcmp(rp_builder_borrow_str(r->a->t.builder, e->name, NULL), name);
}

/* The name of a value of an enumeration, or 0. */
static rp_str word_of(const struct rp_nsys *r, uint64_t domain, const struct rp_nsys_entry *e,
                      int64_t value)
{
    uint64_t schema = domain << 32 | (uint32_t)e->type;

    for (size_t i = 0; e->type >= FIRST_OWN_TYPE && i < r->words.n && i < 1000; i++)
        if (r->words.at[i].schema == schema && r->words.at[i].value == value)
            return r->words.at[i].name;
    return 0;
}

static enum rp_code add_payload(struct rp_nsys *r, const struct payload *p,
                                struct rp_activity_event *e, struct rp_err *err)
{
    const struct rp_nsys_entry *entry;
    uint32_t i = p->first;
    int64_t value;

    while (p->first != RP_MAP_NONE && e->nargs < 12 && (entry = next_entry(r, p, &i))) {
        if (!entry_number(p, entry, &value))
            continue;
        if (entry_is(r, entry, "NCCL communicator ID")) {
            /* NCCL gives a communicator the same id on all of its ranks, so the id names the
               group. */
            uint32_t size = rp_map_get(&r->group_sizes, (uint64_t)value);
            char text[24];
            rp_str group;

            snprintf(text, sizeof text, "0x%llx", (unsigned long long)value);
            RP_TRY(rp_proto_trace_text(&r->a->t, text, &group, err));
            RP_TRY(rp_activity_text(r->a, e, "Process Group Name", group, err));
            if (size != RP_MAP_NONE)
                RP_TRY(rp_activity_int(r->a, e, "Group size", size, err));
            continue;
        }
        rp_str word = word_of(r, p->schema >> 32, entry, value);
        e->args[e->nargs++] =
            word ? (struct rp_arg){.key = entry->name, .type = RP_ARG_STR, .v.s = word}
                 : (struct rp_arg){.key = entry->name, .type = RP_ARG_I64, .v.i = value};
    }
    return RP_OK;
}

enum { KIND, THREAD, START, END, TEXT, BINARY, JSON, VALUE };

/* Reads sizes of communicators, and the rank of each process in its largest one. */
static enum rp_code read_communicator(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct payload p = payload_of(r, rows, 0);
    const struct rp_nsys_entry *e;
    int64_t id = 0, rank = -1, size = 0, value;
    uint32_t i = p.first;

    if (p.first == RP_MAP_NONE)
        return RP_OK;
    while ((e = next_entry(r, &p, &i))) {
        if (!entry_number(&p, e, &value))
            continue;
        if (entry_is(r, e, "NCCL communicator ID"))
            id = value;
        else if (entry_is(r, e, "No. of ranks"))
            size = value;
        else if (entry_is(r, e, "Rank"))
            rank = value;
    }
    if (size <= 0 || size > INT32_MAX)
        return RP_OK;
    RP_TRY(rp_map_put(&r->group_sizes, (uint64_t)id, (uint32_t)size, err));
    return rp_activity_set_rank(r->a, rp_nsys_process(rp_cell_int(rows, 1, 0)), rank, size, err);
}

/* ------------------------------------------------------------------ ranges */

static enum rp_code set_xla(struct rp_nsys *r, const struct rp_nvtx_name *name,
                            struct rp_activity_event *e, struct rp_err *err)
{
    rp_str text;

    e->kind = name->is_operator ? RP_ACTIVITY_OPERATOR : RP_ACTIVITY_ANNOTATION;
    RP_TRY(rp_activity_intern(r->a, name->name.at, name->name.n, &e->name, err));
    if (name->is_operator)
        RP_TRY(rp_activity_text(r->a, e, "hlo_op", e->name, err));
    if (!name->module.n)
        return RP_OK;
    RP_TRY(rp_activity_intern(r->a, name->module.at, name->module.n, &text, err));
    return rp_activity_text(r->a, e, "hlo_module", text, err);
}

static enum rp_code name_range(struct rp_nsys *r, const char *text, size_t n,
                               struct rp_activity_event *e, struct rp_err *err)
{
    const char *collective = rp_activity_collective(text);
    struct rp_nvtx_name name;
    rp_str word;

    if (rp_nvtx_name_of_torch(text, &name)) {
        /* A range of PyTorch: an operator with its sizes, or an annotation. */
        rp_str sizes;
        r->is_torch = true;
        e->kind = name.is_operator ? RP_ACTIVITY_OPERATOR : RP_ACTIVITY_ANNOTATION;
        RP_TRY(rp_activity_intern(r->a, name.name.at, name.name.n, &e->name, err));
        if (name.sequence >= 0)
            RP_TRY(rp_activity_int(r->a, e, "Sequence number", name.sequence, err));
        if (!name.sizes.n)
            return RP_OK;
        RP_TRY(rp_activity_intern(r->a, name.sizes.at, name.sizes.n, &sizes, err));
        RP_TRY(rp_activity_text(r->a, e, "Input Dims", sizes, err));
        e->args[e->nargs - 1].type = RP_ARG_RAW;
        return RP_OK;
    }
    if (rp_nvtx_name_of_xla(text, &name))
        return set_xla(r, &name, e, err);
    RP_TRY(rp_activity_intern(r->a, text, n, &e->name, err));
    if (!collective)
        return RP_OK;
    e->kind = RP_ACTIVITY_COLLECTIVE;
    RP_TRY(rp_proto_trace_word(&r->a->t, collective, &word, err));
    return rp_activity_text(r->a, e, "Collective name", word, err);
}

/* The text of an event, or the text for its number in StringIds. */
static const char *event_text(const struct rp_nsys *r, const struct rp_rows *rows, int column,
                              size_t *n)
{
    int64_t id;

    return rp_cell_get(rows, column, &id) ? rp_texts_borrow(&r->texts, id, n)
                                          : rp_cell_text(rows, column, n);
}

/* Adds a payload of NVTX's first version, which is one number. */
static enum rp_code add_value(struct rp_nsys *r, const struct rp_rows *rows,
                              struct rp_activity_event *e, struct rp_err *err)
{
    int64_t value;
    rp_str json;
    size_t n;

    if (rp_cell_get(rows, VALUE, &value))
        return rp_activity_int(r->a, e, "payload", value, err);
    if (rp_cell_has(rows, VALUE))
        return rp_activity_real(r->a, e, "payload", rp_cell_real(rows, VALUE), err);
    if (!rp_cell_has(rows, JSON))
        return RP_OK;
    const char *text = event_text(r, rows, JSON, &n);
    RP_TRY(rp_activity_intern(r->a, text, n, &json, err));
    return rp_activity_text(r->a, e, "payload", json, err);
}

static enum rp_code read_event(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    int64_t kind = rp_cell_int(rows, KIND, 0);
    struct rp_activity_event e = {.kind = kind == MARK ? RP_ACTIVITY_MARK : RP_ACTIVITY_ANNOTATION};
    size_t n;

    if ((kind != MARK && kind != PUSH_POP && kind != START_END) ||
        !rp_nsys_thread_event(r, rows, START, END, THREAD, &e))
        return RP_OK;
    const char *text = event_text(r, rows, TEXT, &n);
    if (kind == MARK)
        RP_TRY(rp_activity_intern(r->a, text, n, &e.name, err));
    else
        RP_TRY(name_range(r, text, n, &e, err));
    if (kind == START_END) {
        /* Ranges of nvtxRangeStart may end on another thread and cross each other, so they have a
           track beside the thread. */
        rp_str name;
        e.track = -1 - e.track;
        RP_TRY(rp_proto_trace_word(&r->a->t, "ranges of nvtxRangeStart", &name, err));
        RP_TRY(rp_activity_name_track(r->a, e.process, e.device, e.track, name, err));
    }
    struct payload payload = payload_of(r, rows, BINARY);
    RP_TRY(add_payload(r, &payload, &e, err));
    RP_TRY(add_value(r, rows, &e, err));
    return rp_activity_add(r->a, &e, err);
}

enum rp_code rp_nsys_read_nvtx(struct rp_nsys *r, struct rp_err *err)
{
    static const char *const communicator[] = {"binaryData", "globalTid", NULL};
    static const char *const columns[] = {
        "eventType",
        "globalTid",
        "start",
        "end",
        "text|textId",
        "binaryData",
        "jsonText|jsonTextId",
        "uint64Value|int64Value|uint32Value|int32Value|doubleValue|floatValue",
        NULL};

    /* Reads layouts of payloads, and the words of their enumerations. */
    static const char *const entry[] = {"domainId", "schemaId", "idx", "type",
                                        "name",     "offset",   NULL};
    static const char *const word[] = {"domainId", "schemaId", "name", "value", NULL};
    uint32_t known;
    RP_TRY(rp_rows_each(r->db, "NVTX_PAYLOAD_SCHEMA_ENTRIES", entry, read_entry, r, err));
    RP_TRY(rp_rows_each(r->db, "NVTX_PAYLOAD_ENUM_ENTRIES", word, read_word, r, err));
    rp_sort(r->entries.at, r->entries.n, sizeof *r->entries.at, by_entry);
    for (uint32_t i = 0; i < r->entries.n; i++)
        RP_TRY(rp_map_intern(&r->schemas, r->entries.at[i].schema, i, &known, err));
    if (r->entries.n)
        RP_TRY(rp_rows_with(r->db, "NVTX_EVENTS", "binaryData", communicator, read_communicator, r,
                            err));
    RP_TRY(rp_rows_each(r->db, "NVTX_EVENTS", columns, read_event, r, err));
    if (!r->is_torch)
        return RP_OK;
    return rp_proto_trace_text(&r->a->t, "pytorch", &r->a->t.trace->framework, err);
}

#endif
