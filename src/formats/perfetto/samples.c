/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads samples of call stacks (perf_sample), with the interned texts, frames and stacks that they
 * name. A packet may intern a stack, its frames and their texts at once, in any order, so texts are
 * read first, then frames, then stacks.
 *
 * A sample of Perfetto counts 1. Files of our own writer say in their metadata what the weights
 * are; there the counter of a thread grows by the weight of each of its samples.
 */
#include "formats/perfetto/perfetto.h"

#include <stdio.h>

struct frame_ids {
    uint64_t iid, name, file, mapping, pc, line, kind;
};

/* A frame without a name is named by its address. */
static enum rp_code read_frame(struct rp_perfetto *r, struct rp_perfetto_sequence *seq,
                               struct rp_proto_cursor c, struct rp_err *err)
{
    struct frame_ids ids = {0};
    struct rp_call_frame frame = {0};
    uint32_t id;
    char pc[24];

    struct rp_proto_item it;
    while (rp_proto_next(&c, &it)) {
        uint64_t *to[] = {[RP_PFT_FRAME_IID] = &ids.iid,
                          [RP_PFT_FRAME_FUNCTION_NAME_ID] = &ids.name,
                          [RP_PFT_FRAME_MAPPING_ID] = &ids.mapping,
                          [RP_PFT_FRAME_REL_PC] = &ids.pc,
                          [RP_PFT_FRAME_SOURCE_PATH_IID] = &ids.file,
                          [RP_PFT_FRAME_LINE_NUMBER] = &ids.line,
                          [RP_PFT_FRAME_KIND] = &ids.kind};

        if (it.wire == RP_WIRE_VARINT && it.number < sizeof to / sizeof *to && to[it.number])
            *to[it.number] = it.value;
    }
    RP_TRY(rp_proto_finish(&c, err));
    frame.name = rp_perfetto_interned(r, seq, RP_PFT_FUNCTIONS, ids.name);
    frame.file = rp_perfetto_interned(r, seq, RP_PFT_SOURCES, ids.file);
    if (!frame.file)
        frame.file = rp_perfetto_interned(r, seq, RP_PFT_MODULES, ids.mapping);
    frame.line = ids.line <= UINT32_MAX ? (uint32_t)ids.line : 0;
    frame.kind = ids.kind == RP_PFT_FRAME_NATIVE        ? RP_FRAME_NATIVE
                 : ids.kind == RP_PFT_FRAME_KERNEL      ? RP_FRAME_KERNEL
                 : ids.kind == RP_PFT_FRAME_INTERPRETED ? RP_FRAME_PYTHON
                                                        : RP_FRAME_OTHER;
    if (!frame.name) {
        snprintf(pc, sizeof pc, "0x%llx", (unsigned long long)ids.pc);
        RP_TRY(rp_proto_trace_text(&r->t, pc, &frame.name, err));
    }
    RP_TRY(rp_builder_frame(r->t.builder, &frame, &id, err));
    return rp_perfetto_intern(seq, RP_PFT_FRAMES, ids.iid, id, err);
}

static enum rp_code push_frame(struct rp_perfetto *r, const struct rp_perfetto_sequence *seq,
                               uint64_t iid, uint32_t *stack, struct rp_err *err)
{
    uint32_t frame = rp_perfetto_id(seq, RP_PFT_FRAMES, iid);

    return frame == RP_MAP_NONE ? RP_OK : rp_builder_stack(r->t.builder, *stack, frame, stack, err);
}

/* The outermost frame comes first. */
static enum rp_code read_stack(struct rp_perfetto *r, struct rp_perfetto_sequence *seq,
                               struct rp_proto_cursor c, struct rp_err *err)
{
    uint32_t stack = RP_NONE;
    struct rp_proto_item it;
    uint64_t iid = 0, frame;

    while (rp_proto_next(&c, &it)) {
        struct rp_proto_cursor list = rp_proto_list(&c, &it);

        if (it.number == RP_PFT_CALLSTACK_IID && it.wire == RP_WIRE_VARINT)
            iid = it.value;
        while (it.number == RP_PFT_CALLSTACK_FRAME_IDS && rp_proto_packed_varint(&list, &frame))
            RP_TRY(push_frame(r, seq, frame, &stack, err));
    }
    RP_TRY(rp_proto_finish(&c, err));
    return stack == RP_NONE ? RP_OK : rp_perfetto_intern(seq, RP_PFT_STACKS, iid, stack, err);
}

/* The last part of the path of a library. */
static enum rp_code read_mapping(struct rp_perfetto *r, struct rp_perfetto_sequence *seq,
                                 struct rp_proto_cursor c, struct rp_err *err)
{
    struct rp_proto_item it;
    uint64_t iid = 0;
    rp_str path = 0;

    while (rp_proto_next(&c, &it))
        if (it.number == RP_PFT_MAPPING_IID && it.wire == RP_WIRE_VARINT)
            iid = it.value;
        else if (it.number == RP_PFT_MAPPING_PATH_STRING_IDS && it.wire == RP_WIRE_VARINT)
            path = rp_perfetto_interned(r, seq, RP_PFT_MODULE_PATHS, it.value);
    RP_TRY(rp_proto_finish(&c, err));
    return rp_perfetto_intern(seq, RP_PFT_MODULES, iid, path, err);
}

enum rp_code rp_perfetto_read_stacks(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                     struct rp_err *err)
{
    static const struct {
        uint32_t number;
        enum rp_code (*read)(struct rp_perfetto *r, struct rp_perfetto_sequence *seq,
                             struct rp_proto_cursor c, struct rp_err *err);
    } lists[] = {{RP_PFT_INTERNED_MAPPINGS, read_mapping},
                 {RP_PFT_INTERNED_FRAMES, read_frame},
                 {RP_PFT_INTERNED_CALLSTACKS, read_stack}};
    struct rp_proto_item it;

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->interned);

        while (rp_proto_next_bytes(&c, lists[i].number, &it))
            RP_TRY(lists[i].read(r, packet->seq, rp_proto_enter(&c, &it), err));
        RP_TRY(rp_proto_finish(&c, err));
    }
    return RP_OK;
}

enum rp_code rp_perfetto_read_sample(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                     struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->data);
    struct rp_raw_sample sample = {.stack = RP_NONE};
    uint64_t pid = 0, tid = 0, stack = 0, count = 0;
    struct rp_proto_item it;
    bool none = false;
    uint32_t track;

    while (rp_proto_next(&c, &it)) {
        none |= it.number >= RP_PFT_SAMPLE_KERNEL_RECORDS_LOST &&
                it.number <= RP_PFT_SAMPLE_PRODUCER_EVENT;
        if (it.wire != RP_WIRE_VARINT)
            continue;
        pid = it.number == RP_PFT_SAMPLE_PID ? it.value : pid;
        tid = it.number == RP_PFT_SAMPLE_TID ? it.value : tid;
        stack = it.number == RP_PFT_SAMPLE_CALLSTACK_IID ? it.value : stack;
        count = it.number == RP_PFT_SAMPLE_TIMEBASE_COUNT ? it.value : count;
    }
    RP_TRY(rp_proto_finish(&c, err));
    if (none) /* something was lost, and this says so */
        return RP_OK;
    RP_TRY(rp_perfetto_thread(r, (int64_t)(pid & UINT32_MAX), (int64_t)(tid & UINT32_MAX), &track,
                              err));
    RP_TRY(rp_perfetto_use_track(r, track, 0, err));
    RP_TRY(rp_perfetto_time(r, packet, &sample.ts_ns, err));
    sample.weight = r->facts.has_weights ? (int64_t)(count - r->tracks.at[track].sampled) : 1;
    r->tracks.at[track].sampled = count;
    sample.track = r->tracks.at[track].track;
    sample.stack = stack ? rp_perfetto_id(packet->seq, RP_PFT_STACKS, stack) : RP_NONE;
    if (!r->facts.has_weights) {
        sample.flags = RP_SAMPLE_RAN;
        r->t.trace->samples.unit = RP_WEIGHT_COUNT;
    }
    return rp_builder_add_sample(r->t.builder, &sample, err);
}
