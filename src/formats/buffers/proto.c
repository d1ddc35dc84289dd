/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffer assignment in an HloProto. The events of the heap simulator say when the values of the
 * temporary allocation begin and end; everything else exists all the time. So the peak is the sum
 * of the other allocations and of the largest set of live temporaries.
 */
#include "base/hash.h"
#include "formats/buffers/buffers.h"

#include <stdio.h>

#define DEPTH 32

enum { /* fields of xla/service/hlo.proto */
       HLO_MODULE = 1,
       HLO_BUFFERS = 3,
       MODULE_COMPUTATION = 3,
       COMPUTATION_INSTRUCTION = 2,
       INSTRUCTION_NAME = 1,
       INSTRUCTION_ID = 35,
       BUFFERS_LOGICAL = 1,
       BUFFERS_ALLOCATION = 3,
       BUFFERS_TRACE = 4,
       LOGICAL_ID = 1,
       LOGICAL_SIZE = 2,
       LOGICAL_DEFINED = 3,
       DEFINED_NAME = 2,
       DEFINED_INDEX = 3,
       DEFINED_ID = 4,
       ALLOCATION_INDEX = 1,
       ALLOCATION_SIZE = 2,
       ALLOCATION_THREAD_LOCAL = 3,
       ALLOCATION_PARAMETER = 5,
       ALLOCATION_PARAMETER_NUMBER = 6,
       ALLOCATION_LIVE_OUT = 7,
       ALLOCATION_ASSIGNED = 9,
       ALLOCATION_CONSTANT = 12,
       ASSIGNED_ID = 1,
       ASSIGNED_OFFSET = 2,
       ASSIGNED_SIZE = 3,
       TRACE_EVENT = 1,
       TRACE_ALLOCATION = 3,
       EVENT_KIND = 1,
       EVENT_BUFFER = 2,
       EVENT_INSTRUCTION = 4
};

enum { HEAP_ALLOC, HEAP_FREE, HEAP_SHARE };

struct proto_reader {
    struct rp_buffers *b;
    struct rp_map names;   /* id of an instruction -> index of texts */
    struct rp_map logical; /* id of a logical buffer -> index of texts */
    struct rp_map values;  /* id of a logical buffer -> value */
    RP_VEC(const char *) texts;
    struct rp_err *err;
};

static enum rp_code keep_name(struct proto_reader *r, const char *name, uint32_t *out)
{
    RP_TRY(rp_err_need(name, r->err, "reading a buffer assignment"));
    *out = (uint32_t)r->texts.n;
    return rp_vec_push(&r->texts, name, r->err);
}

static int64_t small_size(uint64_t value)
{
    return value > (uint64_t)INT64_MAX / 4 ? 0 : (int64_t)value;
}

/* ------------------------------------------------------------------ names of instructions */

static enum rp_code read_computation(struct proto_reader *r, struct rp_proto_cursor c)
{
    struct rp_proto_item it;

    while (rp_proto_next_bytes(&c, COMPUTATION_INSTRUCTION, &it)) {
        /* One instruction: its number leads to its name. */
        struct rp_bytes name = {(const uint8_t *)"", 0};
        uint64_t id = 0;
        uint32_t text;
        RP_TRY(rp_proto_read(rp_proto_enter(&c, &it),
                             (const struct rp_proto_slot[]){{INSTRUCTION_NAME, .bytes = &name},
                                                            {INSTRUCTION_ID, .u64 = &id},
                                                            {0}},
                             r->err));
        RP_TRY(keep_name(r, rp_arena_copy(&r->b->arena, (const char *)name.at, name.n), &text));
        RP_TRY(rp_map_put(&r->names, id, text, r->err));
    }
    return rp_proto_finish(&c, r->err);
}

static enum rp_code read_module(struct proto_reader *r, struct rp_proto_cursor c)
{
    struct rp_proto_item it;

    while (rp_proto_next_bytes(&c, MODULE_COMPUTATION, &it))
        RP_TRY(read_computation(r, rp_proto_enter(&c, &it)));
    return rp_proto_finish(&c, r->err);
}

/* ------------------------------------------------------------------ logical buffers */

/* "fusion.3{1}"; indices may be packed or not */
static enum rp_code read_defined(struct proto_reader *r, struct rp_proto_cursor c, uint32_t *out)
{
    struct rp_bytes name = {(const uint8_t *)"", 0};
    struct rp_proto_item it;
    char index[100] = "";
    size_t used = 0;
    uint64_t id = 0, value;
    const struct rp_proto_slot slots[] = {
        {DEFINED_NAME, .bytes = &name}, {DEFINED_ID, .u64 = &id}, {0}};

    while (rp_proto_next(&c, &it)) {
        if (rp_proto_take(slots, &it) || it.number != DEFINED_INDEX)
            continue;
        struct rp_proto_cursor list = rp_proto_list(&c, &it);
        while (used < 70 && rp_proto_packed_varint(&list, &value))
            used += (size_t)snprintf(index + used, sizeof index - used, "%s%llu", used ? "," : "{",
                                     (unsigned long long)value);
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (used)
        snprintf(index + used, sizeof index - used, "}");
    uint32_t known = rp_map_get(&r->names, id);
    return keep_name(r,
                     !name.n && known != RP_MAP_NONE
                         ? rp_arena_printf(&r->b->arena, "%s%s", r->texts.at[known], index)
                         : rp_arena_printf(&r->b->arena, "%.*s%s",
                                           (int)(name.n < 4096 ? name.n : 4096),
                                           (const char *)name.at, index),
                     out);
}

static enum rp_code read_logical(struct proto_reader *r, struct rp_proto_cursor c)
{
    struct rp_bytes defined = {0};
    uint32_t text = RP_NONE;
    uint64_t id = 0;

    RP_TRY(rp_proto_read(c,
                         (const struct rp_proto_slot[]){
                             {LOGICAL_ID, .u64 = &id}, {LOGICAL_DEFINED, .bytes = &defined}, {0}},
                         r->err));
    if (defined.at)
        RP_TRY(read_defined(
            r, rp_proto_cursor(defined.at, defined.n, rp_proto_offset(&c, defined.at), c.depth),
            &text));
    return text == RP_NONE ? RP_OK : rp_map_put(&r->logical, id, text, r->err);
}

/* ------------------------------------------------------------------ allocations */

static enum rp_code read_allocation(struct proto_reader *r, struct rp_proto_cursor c)
{
    struct rp_buffer_allocation a = {.argument = -1, .kind = RP_BUFFER_TEMPORARY};
    bool argument = false, constant = false, local = false, out = false;
    uint64_t number = 0, bytes = 0, parameter = 0;
    const struct rp_proto_slot slots[] = {{ALLOCATION_INDEX, .u64 = &number},
                                          {ALLOCATION_SIZE, .u64 = &bytes},
                                          {ALLOCATION_PARAMETER_NUMBER, .u64 = &parameter},
                                          {ALLOCATION_PARAMETER, .flag = &argument},
                                          {ALLOCATION_CONSTANT, .flag = &constant},
                                          {ALLOCATION_THREAD_LOCAL, .flag = &local},
                                          {ALLOCATION_LIVE_OUT, .flag = &out},
                                          {0}};
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it))
        if (!rp_proto_take(slots, &it) && it.number == ALLOCATION_ASSIGNED &&
            it.wire == RP_WIRE_BYTES) {
            /* A value that is placed in this allocation. */
            struct rp_buffer_value v = {.name = "", .allocation = (uint32_t)r->b->allocations.n};
            uint64_t offset = 0, size = 0;
            RP_TRY(rp_proto_read(rp_proto_enter(&c, &it),
                                 (const struct rp_proto_slot[]){{ASSIGNED_ID, .i64 = &v.id},
                                                                {ASSIGNED_OFFSET, .u64 = &offset},
                                                                {ASSIGNED_SIZE, .u64 = &size},
                                                                {0}},
                                 r->err));
            v.offset = small_size(offset);
            v.bytes = small_size(size);
            uint32_t text = rp_map_get(&r->logical, (uint64_t)v.id);
            if (text != RP_MAP_NONE)
                v.name = r->texts.at[text];
            RP_TRY(rp_map_put(&r->values, (uint64_t)v.id, (uint32_t)r->b->values.n, r->err));
            RP_TRY(rp_vec_push(&r->b->values, v, r->err));
        }
    RP_TRY(rp_proto_finish(&c, r->err));
    a.number = small_size(number);
    a.bytes = small_size(bytes);
    a.kind = argument   ? RP_BUFFER_ARGUMENT
             : local    ? RP_BUFFER_THREAD_LOCAL
             : constant ? RP_BUFFER_CONSTANT
             : out      ? RP_BUFFER_OUTPUT
                        : RP_BUFFER_TEMPORARY;
    a.argument = argument ? small_size(parameter) : -1;
    if (__builtin_add_overflow(r->b->total_bytes, a.bytes, &r->b->total_bytes))
        return rp_err_set(r->err, RP_FORMAT, "sizes add up to over 2^63 bytes");
    return rp_vec_push(&r->b->allocations, a, r->err);
}

/* ------------------------------------------------------------------ the heap simulator */

struct heap_event {
    uint64_t kind;
    int64_t buffer;
    struct rp_bytes instruction;
};

static enum rp_code read_event(struct proto_reader *r, struct rp_proto_cursor c,
                               struct heap_event *out)
{
    *out = (struct heap_event){0};
    return rp_proto_read(
        c,
        (const struct rp_proto_slot[]){{EVENT_INSTRUCTION, .bytes = &out->instruction},
                                       {EVENT_KIND, .u64 = &out->kind},
                                       {EVENT_BUFFER, .i64 = &out->buffer},
                                       {0}},
        r->err);
}

static const struct rp_buffer_value *value_of(const struct proto_reader *r, int64_t buffer)
{
    uint32_t i = rp_map_get(&r->values, (uint64_t)buffer);

    return i == RP_MAP_NONE ? NULL : &r->b->values.at[i];
}

/* Runs the events: with `until` NULL, to find the position of the peak; otherwise up to that
   position, filling `live`. Buffers that share another one are not counted. */
static enum rp_code run_events(struct proto_reader *r, struct rp_proto_cursor c, size_t until,
                               int64_t *peak, size_t *peak_at, struct rp_map *open)
{
    struct rp_proto_item it;
    struct heap_event e;
    int64_t now = 0;
    size_t i = 0;

    *peak = 0;
    *peak_at = 0;
    while (i < until && rp_proto_next_bytes(&c, TRACE_EVENT, &it)) {
        RP_TRY(read_event(r, rp_proto_enter(&c, &it), &e));
        const struct rp_buffer_value *v = value_of(r, e.buffer);
        i++;
        if (!v || e.kind >= HEAP_SHARE)
            continue;
        if (e.kind == HEAP_ALLOC) {
            now += v->bytes;
            RP_TRY(rp_map_put(open, (uint64_t)e.buffer, 1, r->err));
        } else if (rp_map_get(open, (uint64_t)e.buffer) == 1) {
            now -= v->bytes;
            RP_TRY(rp_map_put(open, (uint64_t)e.buffer, 0, r->err));
        }
        if (now > *peak) {
            *peak = now;
            *peak_at = i;
        }
    }
    return rp_proto_finish(&c, r->err);
}

/* Reads the order of the events, and for each value the events at which it begins and ends. */
static enum rp_code read_lives(struct proto_reader *r, struct rp_proto_cursor c)
{
    struct rp_map open = {0};
    struct rp_proto_item it;
    struct heap_event e;
    enum rp_code code = RP_OK;

    while (code == RP_OK && rp_proto_next_bytes(&c, TRACE_EVENT, &it)) {
        code = read_event(r, rp_proto_enter(&c, &it), &e);
        if (code != RP_OK)
            break;
        const char *name =
            rp_arena_copy(&r->b->arena, (const char *)e.instruction.at, e.instruction.n);
        code = name ? rp_vec_push(&r->b->order, name, r->err)
                    : rp_err_nomem(r->err, "reading a buffer assignment");
        const struct rp_buffer_value *v = value_of(r, e.buffer);
        uint32_t at = rp_map_get(&open, (uint64_t)e.buffer);
        if (code != RP_OK || !v)
            continue;
        struct rp_live_range range = {v->name, (int64_t)r->b->order.n - 1, INT64_MAX};
        if (e.kind == HEAP_ALLOC) {
            code = rp_map_put(&open, (uint64_t)e.buffer, (uint32_t)r->b->ranges.n, r->err);
            if (code == RP_OK)
                code = rp_vec_push(&r->b->ranges, range, r->err);
        } else if (e.kind == HEAP_FREE && at != RP_MAP_NONE && r->b->order.n > 1) {
            r->b->ranges.at[at].last = (int64_t)r->b->order.n - 2;
        }
    }
    rp_map_release(&open);
    return code == RP_OK ? rp_proto_finish(&c, r->err) : code;
}

/* Collects the live values of one trace at its peak. */
static enum rp_code read_trace(struct proto_reader *r, struct rp_proto_cursor c)
{
    struct rp_map open;
    int64_t peak;
    size_t at, i;

    rp_map_init(&open);
    enum rp_code code = run_events(r, c, SIZE_MAX, &peak, &at, &open);
    rp_map_release(&open);
    rp_map_init(&open);
    if (code == RP_OK)
        code = run_events(r, c, at, &peak, &at, &open);
    for (i = 0; code == RP_OK && i < r->b->values.n; i++)
        if (rp_map_get(&open, (uint64_t)r->b->values.at[i].id) == 1) {
            const struct rp_buffer_value *v = &r->b->values.at[i];
            struct rp_live_buffer live = {v->name, v->bytes};

            r->b->peak_bytes += v->bytes;
            code = rp_vec_push(&r->b->live, live, r->err);
        }
    rp_map_release(&open);
    r->b->has_peak = true;
    return code;
}

/* What is not in a trace exists all the time: the largest value of each allocation stands for it.
 */
static enum rp_code add_others(struct proto_reader *r)
{
    const char **names = RP_ARENA_NEW(&r->b->arena, const char *, r->b->allocations.n + 1);

    RP_TRY(rp_err_need(names, r->err, "reading a buffer assignment"));
    for (size_t i = r->b->values.n; i-- > 0;)
        names[r->b->values.at[i].allocation] = r->b->values.at[i].name;
    for (size_t i = 0; i < r->b->allocations.n; i++) {
        const struct rp_buffer_allocation *a = &r->b->allocations.at[i];
        struct rp_live_buffer live = {names[i], a->bytes};

        if (a->kind == RP_BUFFER_TEMPORARY || a->kind == RP_BUFFER_THREAD_LOCAL || !a->bytes)
            continue;
        live.name = live.name ? live.name : "";
        r->b->peak_bytes += a->bytes;
        RP_TRY(rp_vec_push(&r->b->live, live, r->err));
        if (r->b->ranges.n) {
            struct rp_live_range always = {live.name, 0, INT64_MAX};

            RP_TRY(rp_vec_push(&r->b->ranges, always, r->err));
        }
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the message */

/* The logical buffers come first in the message, as XLA writes it. */
static enum rp_code read_assignment(struct proto_reader *r, struct rp_proto_cursor whole)
{
    struct rp_proto_cursor c = whole;
    struct rp_proto_item it;
    size_t traces = 0;

    while (rp_proto_next_bytes(&c, BUFFERS_LOGICAL, &it))
        RP_TRY(read_logical(r, rp_proto_enter(&c, &it)));
    RP_TRY(rp_proto_finish(&c, r->err));
    for (c = whole; rp_proto_next_bytes(&c, BUFFERS_ALLOCATION, &it);)
        RP_TRY(read_allocation(r, rp_proto_enter(&c, &it)));
    for (c = whole; rp_proto_next_bytes(&c, BUFFERS_TRACE, &it);) {
        RP_TRY(read_trace(r, rp_proto_enter(&c, &it)));
        traces++;
    }
    for (c = whole;
         traces == 1 && rp_proto_next(&c, &it);) /* events of different traces cannot be compared */
        if (it.number == BUFFERS_TRACE && it.wire == RP_WIRE_BYTES)
            RP_TRY(read_lives(r, rp_proto_enter(&c, &it)));
    return r->b->has_peak ? add_others(r) : RP_OK;
}

enum rp_code rp_buffers_read_proto(struct rp_buffers *b, struct rp_bytes proto, bool *found,
                                   struct rp_err *err)
{
    struct proto_reader r = {.b = b, .err = err};
    struct rp_proto_cursor c = rp_proto_cursor(proto.at, proto.n, 0, DEPTH);
    struct rp_proto_item it;
    enum rp_code code = RP_OK;

    *found = false;
    while (code == RP_OK && rp_proto_next_bytes(&c, HLO_MODULE, &it))
        code = read_module(&r, rp_proto_enter(&c, &it));
    c = rp_proto_cursor(proto.at, proto.n, 0, DEPTH);
    while (code == RP_OK && rp_proto_next(&c, &it))
        if (it.number == HLO_BUFFERS && it.wire == RP_WIRE_BYTES && it.bytes.n) {
            *found = true;
            code = read_assignment(&r, rp_proto_enter(&c, &it));
        }
    if (code == RP_OK)
        code = rp_proto_finish(&c, err);
    rp_map_release(&r.names);
    rp_map_release(&r.logical);
    rp_map_release(&r.values);
    rp_vec_release(&r.texts);
    return code;
}
