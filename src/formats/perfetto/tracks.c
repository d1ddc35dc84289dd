/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks. A descriptor gives a number (uuid) to a process, a thread, a counter, or a plain track
 * below one of them. All descriptors are read before the first event, as they may follow it; their
 * names are read in the order of the file, because the first event of a track fixes its name.
 *
 *   process    its events are on a track of its own
 *   thread     the thread of the model; a second uuid for the same number is another thread
 *   plain      a track of the process above it. Siblings with the same name (or the same merge key)
 *              are one track in Perfetto's viewer and here: overlapping kernels of one stream are
 * written in this way. "stream 7", in the name or the description, has the number 7. none tracks
 * below no process belong to a process "tracks"
 */
#include "formats/perfetto/perfetto.h"

#include <stdio.h>

#define FIRST_NUMBER 1000000 /* numbers for tracks that have none */
#define ANCESTORS    64

/* ------------------------------------------------------------------ processes */

static enum rp_code new_process(struct rp_perfetto *r, int64_t pid, uint64_t uuid, uint32_t *out,
                                struct rp_err *err)
{
    struct rp_perfetto_process p = {.pid = pid, .uuid = uuid, .process = RP_PFT_NO_INDEX};

    *out = (uint32_t)r->processes.n;
    RP_TRY(rp_vec_push(&r->processes, p, err));
    return rp_map_put(&r->process_of, (uint64_t)pid, *out, err);
}

/* The process that has this number at this place of the file. Another uuid means that the number
   was used again; uuid 0 stands for whichever process has it. */
static enum rp_code find_process(struct rp_perfetto *r, int64_t pid, uint64_t uuid, uint32_t *out,
                                 struct rp_err *err)
{
    *out = rp_map_get(&r->process_of, (uint64_t)pid);
    if (*out == RP_MAP_NONE)
        return new_process(r, pid, uuid, out, err);
    struct rp_perfetto_process *p = &r->processes.at[*out];
    if (!uuid || p->uuid == uuid)
        return RP_OK;
    if (p->uuid)
        return new_process(r, pid, uuid, out, err);
    p->uuid = uuid;
    return RP_OK;
}

/* ------------------------------------------------------------------ descriptors */

enum rp_code rp_perfetto_track(struct rp_perfetto *r, uint64_t uuid, uint32_t *out,
                               struct rp_err *err)
{
    struct rp_perfetto_track fresh = {
        .uuid = uuid, .process = RP_PFT_NO_INDEX, .multiplier = 1, .number = -1, .track = RP_NONE};

    if (r->tracks.n && uuid == r->last_uuid) {
        *out = r->last_track;
        return RP_OK;
    }
    RP_TRY(rp_map_intern(&r->track_of, uuid, (uint32_t)r->tracks.n, out, err));
    if (*out == r->tracks.n)
        RP_TRY(rp_vec_push(&r->tracks, fresh, err));
    r->last_uuid = uuid;
    r->last_track = *out;
    return RP_OK;
}

struct described {
    uint64_t uuid, parent, merge, merge_key;
    int64_t pid, tid, multiplier;
    struct rp_bytes name, label, description;
    uint8_t kind;
    bool incremental, has_parent;
};

static enum rp_code read_owner(struct described *d, struct rp_proto_cursor c, bool thread,
                               struct rp_err *err)
{
    struct rp_proto_item it;

    d->kind = thread ? RP_PFT_THREAD : RP_PFT_PROCESS;
    while (rp_proto_next(&c, &it)) {
        if (it.wire == RP_WIRE_VARINT && it.number == RP_PFT_PROCESS_PID)
            d->pid = (int64_t)it.value;
        else if (it.wire == RP_WIRE_VARINT && thread && it.number == RP_PFT_THREAD_TID)
            d->tid = (int64_t)it.value;
        else if (it.wire == RP_WIRE_BYTES &&
                 it.number ==
                     (thread ? RP_PFT_THREAD_THREAD_NAME : (uint32_t)RP_PFT_PROCESS_PROCESS_NAME) &&
                 it.bytes.n)
            d->name = it.bytes;
        else if (it.wire == RP_WIRE_BYTES && !thread && it.number == RP_PFT_PROCESS_PROCESS_LABELS)
            d->label = it.bytes;
    }
    return rp_proto_finish(&c, err);
}

static enum rp_code read_counter(struct described *d, struct rp_proto_cursor c, struct rp_err *err)
{
    struct rp_proto_item it;

    d->kind = RP_PFT_COUNTER;
    while (rp_proto_next(&c, &it))
        if (it.wire == RP_WIRE_VARINT && it.number == RP_PFT_COUNTER_IS_INCREMENTAL)
            d->incremental = it.value != 0;
        else if (it.wire == RP_WIRE_VARINT && it.number == RP_PFT_COUNTER_UNIT_MULTIPLIER)
            d->multiplier = it.value > 0 && it.value < UINT32_MAX ? (int64_t)it.value : 1;
    return rp_proto_finish(&c, err);
}

static enum rp_code read_descriptor(const struct rp_perfetto_packet *packet, struct described *d,
                                    struct rp_err *err)
{
    const struct rp_proto_slot slots[] = {
        {RP_PFT_TRACK_UUID, .u64 = &d->uuid},
        {RP_PFT_TRACK_DESCRIPTION, .bytes = &d->description},
        {RP_PFT_TRACK_SIBLING_MERGE_BEHAVIOR, .u64 = &d->merge},
        {RP_PFT_TRACK_SIBLING_MERGE_KEY_INT, .u64 = &d->merge_key},
        {0}};
    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->data);
    struct rp_proto_item it;

    *d = (struct described){.multiplier = 1};
    while (rp_proto_next(&c, &it))
        switch (RP_PROTO_KEY(it.number, it.wire)) {
        case RP_PROTO_KEY(RP_PFT_TRACK_PARENT_UUID, RP_WIRE_VARINT):
            d->parent = it.value;
            d->has_parent = true;
            break;
        case RP_PROTO_KEY(RP_PFT_TRACK_NAME, RP_WIRE_BYTES):
        case RP_PROTO_KEY(RP_PFT_TRACK_STATIC_NAME, RP_WIRE_BYTES):
        case RP_PROTO_KEY(RP_PFT_TRACK_ATRACE_NAME, RP_WIRE_BYTES):
            if (!d->name.n)
                d->name = it.bytes;
            break;
        case RP_PROTO_KEY(RP_PFT_TRACK_PROCESS, RP_WIRE_BYTES):
        case RP_PROTO_KEY(RP_PFT_TRACK_THREAD, RP_WIRE_BYTES):
            RP_TRY(read_owner(d, rp_proto_enter(&c, &it), it.number == RP_PFT_TRACK_THREAD, err));
            break;
        case RP_PROTO_KEY(RP_PFT_TRACK_COUNTER, RP_WIRE_BYTES):
            RP_TRY(read_counter(d, rp_proto_enter(&c, &it), err));
            break;
        case RP_PROTO_KEY(RP_PFT_TRACK_SIBLING_MERGE_KEY, RP_WIRE_BYTES):
            d->merge_key = rp_hash_bytes(it.bytes.at, it.bytes.n) | 1;
            break;
        default:
            rp_proto_take(slots, &it);
        }
    return rp_proto_finish(&c, err);
}

/* The number in "stream 7" or "thread 12", or -1. */
static int64_t track_number(const char *name)
{
    bool is = strncmp(name, "stream ", 7) == 0 || strncmp(name, "thread ", 7) == 0;
    const char *digits = name + 7;
    int64_t n = 0;

    if (!is || *digits < '0' || *digits > '9')
        return -1;
    for (; *digits >= '0' && *digits <= '9'; digits++) {
        if (n > INT64_MAX / 100)
            return -1;
        n = 10 * n + *digits - '0';
    }
    return n;
}

static enum rp_code set_structure(struct rp_perfetto *r, uint32_t at, const struct described *d,
                                  struct rp_err *err)
{
    struct rp_perfetto_track *t = &r->tracks.at[at];
    uint32_t process = t->process;

    if (d->has_parent)
        t->parent = d->parent;
    if (d->kind != RP_PFT_PLAIN)
        t->kind = d->kind;
    t->merge = (uint8_t)d->merge;
    t->merge_key = d->merge_key;
    t->multiplier = d->multiplier;
    t->incremental = d->incremental;
    char copy[40] = "";
    if (d->description.n < sizeof copy && d->description.n)
        memcpy(copy, d->description.at, d->description.n);
    t->number = track_number(copy);
    if (d->kind != RP_PFT_PROCESS && d->kind != RP_PFT_THREAD)
        return RP_OK;
    t->pid = d->pid;
    t->tid = d->tid;
    if (process == RP_PFT_NO_INDEX || r->processes.at[process].pid != d->pid)
        RP_TRY(find_process(r, d->pid, d->kind == RP_PFT_PROCESS ? d->uuid : 0, &t->process, err));
    if (d->kind == RP_PFT_THREAD)
        return rp_map_put(&r->thread_of, rp_hash_join((uint64_t)d->pid, (uint64_t)d->tid), at, err);
    return RP_OK;
}

/* Sets the names: processes, threads and tracks that are never merged have that of their last
   descriptor; other tracks keep the name they had at their first event. */
static enum rp_code set_name(struct rp_perfetto *r, uint32_t at, const struct described *d,
                             struct rp_err *err)
{
    struct rp_perfetto_track *t = &r->tracks.at[at];
    bool fixed = t->used && t->kind != RP_PFT_THREAD && t->merge != RP_PFT_MERGE_NONE;

    if (d->kind == RP_PFT_PROCESS && d->label.n)
        RP_TRY(rp_proto_trace_intern(&r->t, d->label, &r->processes.at[t->process].label, err));
    if (!d->name.n)
        return RP_OK;
    if (d->kind == RP_PFT_PROCESS)
        return rp_proto_trace_intern(&r->t, d->name, &r->processes.at[t->process].name, err);
    return fixed ? RP_OK : rp_proto_trace_intern(&r->t, d->name, &t->name, err);
}

enum rp_code rp_perfetto_describe(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                  bool names, struct rp_err *err)
{
    struct described d;
    uint32_t at;

    RP_TRY(read_descriptor(packet, &d, err));
    RP_TRY(rp_perfetto_track(r, d.uuid, &at, err));
    if (!names)
        return set_structure(r, at, &d, err);
    if (d.kind == RP_PFT_THREAD)
        packet->seq->thread = d.uuid;
    return set_name(r, at, &d, err);
}

enum rp_code rp_perfetto_describe_old(struct rp_perfetto *r,
                                      const struct rp_perfetto_packet *packet, bool names,
                                      struct rp_err *err)
{
    bool thread = packet->data.number == RP_PFT_PACKET_THREAD_DESCRIPTOR;
    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->data);
    struct described d = {.multiplier = 1};
    struct rp_proto_item it;
    uint32_t at;

    RP_TRY(read_owner(&d, c, thread, err));
    d.uuid = rp_hash_join(rp_hash_join((uint64_t)d.pid, (uint64_t)d.tid), thread);
    RP_TRY(rp_perfetto_track(r, d.uuid, &at, err));
    if (!names)
        return set_structure(r, at, &d, err);
    while (thread && rp_proto_next(&c, &it))
        if (it.number == RP_PFT_THREAD_REFERENCE_TIMESTAMP_US && it.wire == RP_WIRE_VARINT)
            packet->seq->last_us = it.value;
    if (thread)
        packet->seq->thread = d.uuid;
    return set_name(r, at, &d, err);
}

/* Reads names of processes as the system has them, for processes without another name. */
enum rp_code rp_perfetto_read_tree(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                   struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->data);
    struct rp_proto_item it, field;

    while (rp_proto_next_bytes(&c, RP_PFT_PROCESS_TREE_PROCESSES, &it)) {
        struct rp_bytes name = {0};
        int64_t pid = 0;
        struct rp_proto_cursor inner = rp_proto_enter(&c, &it);

        while (rp_proto_next(&inner, &field))
            if (field.number == RP_PFT_TREE_PROCESS_PID && field.wire == RP_WIRE_VARINT)
                pid = (int64_t)field.value;
            else if (field.number == RP_PFT_TREE_PROCESS_CMDLINE && field.wire == RP_WIRE_BYTES &&
                     !name.n)
                name = field.bytes;
        RP_TRY(rp_proto_finish(&inner, err));
        uint32_t process = rp_map_get(&r->process_of, (uint64_t)pid);
        if (process != RP_MAP_NONE && name.n && !r->processes.at[process].name)
            RP_TRY(rp_proto_trace_intern(&r->t, name, &r->processes.at[process].name, err));
    }
    return rp_proto_finish(&c, err);
}

enum rp_code rp_perfetto_thread(struct rp_perfetto *r, int64_t pid, int64_t tid, uint32_t *out,
                                struct rp_err *err)
{
    struct described d = {.pid = pid, .tid = tid, .kind = RP_PFT_THREAD, .multiplier = 1};

    *out = rp_map_get(&r->thread_of, rp_hash_join((uint64_t)pid, (uint64_t)tid));
    if (*out != RP_MAP_NONE)
        return RP_OK;
    d.uuid = rp_hash_join(rp_hash_join((uint64_t)pid, (uint64_t)tid), true);
    RP_TRY(rp_perfetto_track(r, d.uuid, out, err));
    return set_structure(r, *out, &d, err);
}

/* ------------------------------------------------------------------ tracks of the model */

/* The process above a track, or one for tracks that have none. */
static enum rp_code process_above(struct rp_perfetto *r, uint32_t track, uint32_t *out,
                                  struct rp_err *err)
{
    for (unsigned i = 0; i < ANCESTORS; i++) {
        const struct rp_perfetto_track *t = &r->tracks.at[track];

        if (t->process != RP_PFT_NO_INDEX) {
            *out = t->process;
            return RP_OK;
        }
        if (!t->parent)
            break;
        track = rp_map_get(&r->track_of, t->parent);
        if (track == RP_MAP_NONE)
            break;
    }
    *out = rp_map_get(&r->process_of, UINT64_MAX);
    if (*out != RP_MAP_NONE)
        return RP_OK;
    RP_TRY(new_process(r, -1, UINT64_MAX, out, err));
    return rp_proto_trace_text(&r->t, "tracks", &r->processes.at[*out].name, err);
}

/* A track of a process with this number if that is free, else with a number that no other track
   has. */
static enum rp_code fresh_track(struct rp_perfetto *r, uint32_t process, uint32_t at, int64_t tid,
                                rp_track *out, struct rp_err *err)
{
    bool given = tid >= 0;
    uint32_t owner;

    for (tid = given ? tid : FIRST_NUMBER + (int64_t)at;; tid++) {
        uint64_t key = rp_hash_join(rp_hash_join(process, (uint64_t)tid), 7);

        RP_TRY(rp_map_intern(&r->group_of, key, at, &owner, err));
        if (owner == at)
            return rp_builder_track(r->t.builder, process, tid, 0, true, out, err);
        if (given) {
            given = false;
            tid = FIRST_NUMBER + (int64_t)at - 1;
        }
    }
}

/* The sibling that a plain track is merged with, or itself if it is the first. */
static enum rp_code merged_with(struct rp_perfetto *r, uint32_t at, uint32_t process, uint32_t *out,
                                struct rp_err *err)
{
    const struct rp_perfetto_track *t = &r->tracks.at[at];
    uint64_t key = rp_hash_join(rp_hash_join(process, t->parent), t->merge == RP_PFT_MERGE_BY_KEY);

    *out = at;
    if (t->kind != RP_PFT_PLAIN || t->merge == RP_PFT_MERGE_NONE || !t->name)
        return RP_OK;
    key = rp_hash_join(key, t->merge == RP_PFT_MERGE_BY_KEY ? t->merge_key : t->name);
    return rp_map_intern(&r->group_of, key, at, out, err);
}

enum rp_code rp_perfetto_use_track(struct rp_perfetto *r, uint32_t at, rp_str name,
                                   struct rp_err *err)
{
    struct rp_perfetto_track *t = &r->tracks.at[at];
    uint32_t process, first;
    int64_t tid = -1;

    if (t->used)
        return RP_OK;
    t->used = true;
    if (!t->name && t->kind != RP_PFT_THREAD && t->kind != RP_PFT_PROCESS)
        t->name = name;
    RP_TRY(process_above(r, at, &process, err));

    /* Its id in the model is the number, or a text if the number was used before. */
    struct rp_perfetto_process *p = &r->processes.at[process];
    char text[48];
    rp_str id = 0;
    if (p->process == RP_PFT_NO_INDEX) {
        for (uint32_t i = 0; i < process; i++)
            if (r->processes.at[i].pid == p->pid && !id) {
                snprintf(text, sizeof text, "%lld (%u)", (long long)p->pid, process);
                RP_TRY(rp_proto_trace_text(&r->t, text, &id, err));
            }
        RP_TRY(rp_builder_process(r->t.builder, p->pid, id, &p->process, err));
    }
    RP_TRY(merged_with(r, at, process, &first, err));
    t = &r->tracks.at[at];
    if (first != at && r->tracks.at[first].track != RP_NONE) {
        t->track = r->tracks.at[first].track;
        return RP_OK;
    }
    if (t->kind == RP_PFT_THREAD)
        tid = t->tid;
    else if (t->kind == RP_PFT_PLAIN)
        tid = t->number >= 0 ? t->number
                             : track_number(rp_builder_borrow_str(r->t.builder, t->name, NULL));
    RP_TRY(fresh_track(r, r->processes.at[process].process, at, tid, &t->track, err));
    r->processes.at[process].track = t->track;
    t->process = process;
    return RP_OK;
}

enum rp_code rp_perfetto_stream(struct rp_perfetto *r, int64_t device, int64_t stream,
                                rp_track *out, struct rp_err *err)
{
    char text[40];
    uint32_t at;

    RP_TRY(rp_perfetto_thread(r, device, stream, &at, err));
    struct rp_perfetto_process *p = &r->processes.at[r->tracks.at[at].process];
    if (!p->name) {
        snprintf(text, sizeof text, "GPU %lld", (long long)device);
        RP_TRY(rp_proto_trace_text(&r->t, text, &p->name, err));
    }
    if (!r->tracks.at[at].name) {
        snprintf(text, sizeof text, "stream %lld", (long long)stream);
        RP_TRY(rp_proto_trace_text(&r->t, text, &r->tracks.at[at].name, err));
    }
    RP_TRY(rp_perfetto_use_track(r, at, r->tracks.at[at].name, err));
    *out = r->tracks.at[at].track;
    return RP_OK;
}

enum rp_code rp_perfetto_own_track(struct rp_perfetto *r, const char *process, rp_str name,
                                   rp_track *out, struct rp_err *err)
{
    uint64_t key = rp_hash_join(rp_hash_bytes(process, strlen(process)), 11);
    uint32_t known = (uint32_t)r->processes.n, before = known, group;

    RP_TRY(rp_map_intern(&r->group_of, key, known, &known, err));
    if (known == before) {
        RP_TRY(rp_vec_push(
            &r->processes,
            ((struct rp_perfetto_process){.uuid = UINT64_MAX, .process = RP_PFT_NO_INDEX}), err));
        struct rp_perfetto_process *p = &r->processes.at[known];
        RP_TRY(rp_proto_trace_text(&r->t, process, &p->name, err));
        RP_TRY(rp_builder_process(r->t.builder, 0, p->name, &p->process, err));
    }
    key = rp_hash_join(rp_hash_join(key, name), 13);
    uint32_t at = (uint32_t)r->tracks.n;
    RP_TRY(rp_map_intern(&r->group_of, key, at, &group, err));
    if (group == at) {
        struct rp_perfetto_track t = {
            .name = name, .process = known, .used = true, .multiplier = 1};

        RP_TRY(fresh_track(r, r->processes.at[known].process, at, -1, &t.track, err));
        RP_TRY(rp_vec_push(&r->tracks, t, err));
        r->processes.at[known].track = t.track;
    }
    *out = r->tracks.at[group].track;
    return RP_OK;
}

/* ------------------------------------------------------------------ names */

enum rp_code rp_perfetto_name_tracks(struct rp_perfetto *r, struct rp_err *err)
{
    for (size_t i = 0; i < r->tracks.n; i++) {
        const struct rp_perfetto_track *t = &r->tracks.at[i];

        if (t->used && t->name && t->process != RP_PFT_NO_INDEX)
            RP_TRY(rp_proto_trace_name(&r->t, t->track, false, t->name, err));
    }
    for (size_t i = 0; i < r->processes.n; i++) {
        const struct rp_perfetto_process *p = &r->processes.at[i];

        if (p->process == RP_PFT_NO_INDEX)
            continue;
        if (p->name)
            RP_TRY(rp_proto_trace_name(&r->t, p->track, true, p->name, err));
        if (p->label)
            RP_TRY(rp_builder_label(r->t.builder, p->track, "process_labels", "labels", p->label,
                                    err));
    }
    return RP_OK;
}
