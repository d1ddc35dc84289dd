/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one row of step statistics: when a node ran and how much memory it used. A row is a span
 * from all_start to all_end, as in TensorFlow's Timeline, but in nanoseconds if the row has them
 * (rows of RecvTensor have only microseconds); the operator itself ran from op_start to op_end
 * within it. Arguments have the names that Timeline gives them; if these have no unit, it is added.
 */
#include "formats/tensorflow/runmeta.h"

#include "abi/proto/runmeta.h"

#include <stdio.h>

#define INPUTS_MAX  200
#define WEEK_NS     INT64_C(604800000000000)
#define NODE_FIELDS (RP_RUNMETA_NODE_SCHEDULED_NANOS + 1)

/* -------------------------------------------------------------------------- reading */

static void add_to(int64_t *sum, int64_t more)
{
    if (__builtin_add_overflow(*sum, more, sum))
        *sum = more < 0 ? INT64_MIN : INT64_MAX;
}

static enum rp_code read_memory(const struct rp_proto_cursor *up, const struct rp_proto_item *item,
                                struct rp_runmeta_row *row, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(up, item);
    struct rp_proto_item it;

    row->nallocators++;
    while (rp_proto_next(&c, &it))
        if (it.wire == RP_WIRE_VARINT && it.number == RP_RUNMETA_ALLOCATOR_TOTAL_BYTES)
            add_to(&row->allocated_bytes, (int64_t)it.value);
        else if (it.wire == RP_WIRE_VARINT && it.number == RP_RUNMETA_ALLOCATOR_PEAK_BYTES)
            add_to(&row->peak_bytes, (int64_t)it.value);
    return rp_proto_finish(&c, err);
}

static enum rp_code read_memory_stats(const struct rp_proto_cursor *up,
                                      const struct rp_proto_item *item, struct rp_runmeta_row *row,
                                      struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(up, item);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it))
        if (it.wire == RP_WIRE_VARINT && it.number == RP_RUNMETA_MEMORY_TEMP_MEMORY_SIZE)
            row->temp_bytes = (int64_t)it.value;
        else if (it.wire == RP_WIRE_VARINT && it.number == RP_RUNMETA_MEMORY_PERSISTENT_MEMORY_SIZE)
            row->persistent_bytes = (int64_t)it.value;
    return rp_proto_finish(&c, err);
}

/* Reads a NodeOutput (level 0), its TensorDescription (1), or its AllocationDescription (2). */
static enum rp_code read_output(const struct rp_proto_cursor *up, const struct rp_proto_item *item,
                                unsigned level, struct rp_runmeta_row *row, struct rp_err *err)
{
    static const uint8_t field[] = {RP_RUNMETA_OUTPUT_TENSOR_DESCRIPTION,
                                    RP_RUNMETA_TENSOR_ALLOCATION_DESCRIPTION,
                                    RP_RUNMETA_ALLOCATION_REQUESTED_BYTES};
    struct rp_proto_cursor c = rp_proto_enter(up, item);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.number != field[level])
            continue;
        if (level < 2 && it.wire == RP_WIRE_BYTES)
            RP_TRY(read_output(&c, &it, level + 1, row, err));
        else if (level == 2 && it.wire == RP_WIRE_VARINT)
            add_to(&row->output_bytes, (int64_t)it.value);
    }
    return rp_proto_finish(&c, err);
}

static enum rp_code read_part(const struct rp_proto_cursor *c, const struct rp_proto_item *it,
                              struct rp_runmeta_row *row, struct rp_err *err)
{
    switch (it->number) {
    case RP_RUNMETA_NODE_NODE_NAME:
        row->node_name = it->bytes;
        return RP_OK;
    case RP_RUNMETA_NODE_MEMORY:
        return read_memory(c, it, row, err);
    case RP_RUNMETA_NODE_OUTPUT:
        row->noutputs++;
        return read_output(c, it, 0, row, err);
    case RP_RUNMETA_NODE_TIMELINE_LABEL:
        row->label = it->bytes;
        return RP_OK;
    case RP_RUNMETA_NODE_MEMORY_STATS:
        return read_memory_stats(c, it, row, err);
    default:
        return RP_OK;
    }
}

enum rp_code rp_runmeta_read_row(const struct rp_proto_cursor *up, const struct rp_proto_item *item,
                                 struct rp_runmeta_row *row, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(up, item);
    int64_t field[NODE_FIELDS] = {0};
    struct rp_proto_item it;

    *row = (struct rp_runmeta_row){.node_name = {(const uint8_t *)"", 0},
                                   .label = {(const uint8_t *)"", 0}};
    while (rp_proto_next(&c, &it)) {
        if (it.wire == RP_WIRE_BYTES)
            RP_TRY(read_part(&c, &it, row, err));
        else if (it.wire == RP_WIRE_VARINT && it.number < NODE_FIELDS)
            field[it.number] = (int64_t)it.value;
    }
    row->thread_id = (uint32_t)field[RP_RUNMETA_NODE_THREAD_ID];

    /* A row has all fields in nanoseconds or none, so 0 is a value if one is there. */
    int64_t start;
    row->start_us = field[RP_RUNMETA_NODE_ALL_START_MICROS];
    row->end_rel_us = field[RP_RUNMETA_NODE_ALL_END_REL_MICROS];
    row->has_nanos = field[RP_RUNMETA_NODE_ALL_START_NANOS] != 0;
    row->start = field[RP_RUNMETA_NODE_ALL_START_NANOS];
    row->op_start_rel = field[RP_RUNMETA_NODE_OP_START_REL_NANOS];
    row->op_end_rel = field[RP_RUNMETA_NODE_OP_END_REL_NANOS];
    row->end_rel = field[RP_RUNMETA_NODE_ALL_END_REL_NANOS];
    row->scheduled = field[RP_RUNMETA_NODE_SCHEDULED_NANOS];
    if (!row->has_nanos) {
        if (__builtin_mul_overflow(field[RP_RUNMETA_NODE_ALL_START_MICROS], 1000, &start))
            start = INT64_MAX;
        row->start = start;
        row->op_start_rel =
            __builtin_mul_overflow(field[RP_RUNMETA_NODE_OP_START_REL_MICROS], 1000, &start)
                ? INT64_MAX
                : start;
        row->op_end_rel =
            __builtin_mul_overflow(field[RP_RUNMETA_NODE_OP_END_REL_MICROS], 1000, &start)
                ? INT64_MAX
                : start;
        row->end_rel =
            __builtin_mul_overflow(field[RP_RUNMETA_NODE_ALL_END_REL_MICROS], 1000, &start)
                ? INT64_MAX
                : start;
        row->scheduled =
            __builtin_mul_overflow(field[RP_RUNMETA_NODE_SCHEDULED_MICROS], 1000, &start) ? 0
                                                                                          : start;
    }
    return rp_proto_finish(&c, err);
}

bool rp_runmeta_is_recv(const struct rp_runmeta_row *row)
{
    return rp_bytes_are(row->node_name, "RecvTensor");
}

/* -------------------------------------------------------------------------- arguments */

struct args {
    struct rp_proto_trace *t;
    uint32_t n;
    struct rp_arg arg[INPUTS_MAX + 24];
};

static enum rp_code put_text(struct args *a, const char *key, struct rp_bytes text,
                             struct rp_err *err)
{
    struct rp_arg *arg = &a->arg[a->n];

    if (!text.at)
        return RP_OK;
    arg->type = RP_ARG_STR;
    RP_TRY(rp_proto_trace_word(a->t, key, &arg->key, err));
    RP_TRY(rp_proto_trace_intern(a->t, text, &arg->v.s, err));
    a->n++;
    return RP_OK;
}

static enum rp_code put_number(struct args *a, const char *key, int64_t number, struct rp_err *err)
{
    struct rp_arg *arg = &a->arg[a->n++];

    arg->type = RP_ARG_I64;
    arg->v.i = number;
    return rp_proto_trace_word(a->t, key, &arg->key, err);
}

/* -------------------------------------------------------------------------- the span */

static struct rp_origin origin_of(const struct rp_runmeta_row *row, enum rp_runmeta_device device)
{
    struct rp_origin origin = {.phase = 'X', .kind = RP_KIND_CPU_OP, .has_category = 1};
    struct rp_bytes text = row->label.n ? row->label : row->node_name;

    if (device == RP_RUNMETA_COPIED) {
        origin.kind = RP_KIND_GPU_ANNOTATION;
    } else if (device == RP_RUNMETA_STREAM) {
        origin.kind = rp_bytes_begin(text, "MEMCPY")   ? RP_KIND_MEMCPY
                      : rp_bytes_begin(text, "MEMSET") ? RP_KIND_MEMSET
                                                       : RP_KIND_KERNEL;
        origin.flags = RP_ORIGIN_GPU;
    } else if (rp_runmeta_is_recv(row)) {
        origin.kind = RP_KIND_TRANSFER;
    }
    return origin;
}

static enum rp_code put_args(struct args *a, const struct rp_runmeta_row *row,
                             const struct rp_runmeta_label *label, enum rp_runmeta_device device,
                             struct rp_err *err)
{
    RP_TRY(put_text(a, "name", label->name, err));
    RP_TRY(put_text(a, "op", label->op, err));

    /* The inputs of an operation, as one text. */
    struct rp_bytes inputs = label->inputs;
    static const char *const first[] = {"input0", "input1", "input2", "input3",
                                        "input4", "input5", "input6", "input7"};
    struct rp_bytes input;
    char key[24];
    for (unsigned i = 0; i < INPUTS_MAX && rp_runmeta_next_input(&inputs, &input); i++) {
        if (i < sizeof first / sizeof *first) {
            RP_TRY(put_text(a, first[i], input, err));
            continue;
        }
        snprintf(key, sizeof key, "input%u", i);
        a->arg[a->n].type = RP_ARG_STR;
        RP_TRY(rp_proto_trace_text(a->t, key, &a->arg[a->n].key, err));
        RP_TRY(rp_proto_trace_intern(a->t, input, &a->arg[a->n].v.s, err));
        a->n++;
    }
    RP_TRY(put_text(a, "edge", label->edge, err));
    RP_TRY(put_text(a, "from", label->from, err));
    RP_TRY(put_text(a, "to", label->to, err));
    if (device != RP_RUNMETA_HOST || rp_runmeta_is_recv(row))
        RP_TRY(put_text(a, "label", row->label, err));
    RP_TRY(put_text(a, "memory", label->memory, err));

    /* What the operation put out, and what it allocated. */
    if (row->noutputs) {
        RP_TRY(put_number(a, "outputs", row->noutputs, err));
        RP_TRY(put_number(a, "output_bytes", row->output_bytes, err));
    }
    if (row->nallocators) {
        RP_TRY(put_number(a, "allocated_bytes", row->allocated_bytes, err));
        RP_TRY(put_number(a, "peak_bytes", row->peak_bytes, err));
    }
    if (row->temp_bytes)
        RP_TRY(put_number(a, "temp_bytes", row->temp_bytes, err));
    if (row->persistent_bytes)
        RP_TRY(put_number(a, "persistent_bytes", row->persistent_bytes, err));

    /* Adds times inside the span, and how long the node waited for a thread before it. */
    int64_t waited;
    if (!rp_runmeta_is_recv(row)) {
        RP_TRY(put_number(a, "op_start_rel_ns", row->op_start_rel, err));
        RP_TRY(put_number(a, "op_end_rel_ns", row->op_end_rel, err));
    }
    if (row->scheduled && !__builtin_sub_overflow(row->start, row->scheduled, &waited))
        return put_number(a, "scheduled_wait_ns", waited, err);
    return RP_OK;
}

enum rp_code rp_runmeta_add_row(struct rp_proto_trace *t, const struct rp_runmeta_row *row,
                                rp_track track, enum rp_runmeta_device device, struct rp_err *err)
{
    struct rp_origin origin = origin_of(row, device);
    struct rp_runmeta_label label;
    struct args a; /* large: not cleared */
    struct rp_raw raw = {.track = track, .args = a.arg};

    a.t = t;
    a.n = 0;
    if (device != RP_RUNMETA_HOST) {
        rp_runmeta_read_kernel_label(row->label, row->node_name, &label);
    } else if (rp_runmeta_is_recv(row)) {
        rp_runmeta_read_recv_label(row->label, &label);
        label.op = label.name = row->node_name;
    } else {
        rp_runmeta_read_op_label(row->label, &label);
        label.name = row->node_name;
    }
    RP_TRY(put_args(&a, row, &label, device, err));
    RP_TRY(rp_proto_trace_intern(t, label.op, &raw.name, err));
    RP_TRY(rp_proto_trace_word(t, "Op", &origin.category, err));
    RP_TRY(rp_builder_origin(t->builder, &origin, &raw.origin, err));
    RP_TRY(rp_builder_shape(t->builder, a.arg, a.n, &raw.shape, err));
    raw.nargs = a.n;
    raw.ts_ns = rp_proto_trace_clamp(t, row->start);
    raw.dur_ns = rp_proto_trace_clamp(t, row->end_rel);
    t->health->negative_dur += raw.dur_ns < 0;
    t->health->absurd_dur += raw.dur_ns > WEEK_NS;
    t->nevents++;
    return rp_builder_add(t->builder, &raw, err);
}
