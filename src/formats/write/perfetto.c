/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Perfetto's protobuf, for ui.perfetto.dev and its trace processor. One sequence of packets;
 * texts are interned, times are nanoseconds as they are.
 *
 *   process        a track of a process; its tracks are below it, in the order of the trace
 *   thread         a thread where its number is its own and its spans nest, else as a stream
 *   stream         a plain track. Slices of one track must nest, so spans that overlap are on
 *                  further tracks (lanes) with the same merge key, which viewers show as one
 *   span           a begin and an end; its kind is one of its categories, by PyTorch's names
 *   counter        one track for each series
 *   arrow          the same id on both events
 *   sample         perfetto_samples.c
 *   metadata       as Chrome's; also rank and size of the job
 *
 * Not written: names of arrows except for a note at their begin, ends without a begin, arrows that
 * are not bound to an event. Perfetto has no times before 0, so a trace that has some is moved to
 * begin at 0.
 */
#include "abi/proto/perfetto.h"
#include "base/each.h"
#include "base/hash.h"
#include "base/order.h"
#include "formats/chrome/facts.h"
#include "formats/write/samples.h"
#include "formats/write/writers.h"
#include "io/emit.h"
#include "io/proto_write.h"
#include "trace/meta.h"

#include <stdio.h>
#include <stdlib.h>

#define LANES_PROBED 4096
#define OWN_PIDS                                                                    \
    (INT64_C(1) << 30) /* first number for processes whose own does not fit 31 bits \
                        */
#define SAMPLES_SEQUENCE (UINT64_C(1) << 30)

enum { CATEGORY = 1, NAME = 2, ARG_NAME = 4, ARG_TEXT = 8 }; /* tables of interned texts */

struct fresh { /* fresh: a text that is used for the first time */
    uint64_t iid;
    const char *text;
    size_t n;
    uint8_t table;
};

struct end { /* an arrow at an event */
    rp_event event;
    uint32_t flow;
    uint64_t id;
    bool last;
};

struct lane {
    uint64_t uuid;
    RP_VEC(int64_t) ends; /* ends of the slices that are open, innermost last */
};

struct writer {
    const struct rp_trace *t;
    struct rp_emit e, json; /* json: memory */
    struct rp_proto_writer w;
    uint8_t *seen; /* by text: the tables that contain it */
    size_t nseen;
    RP_VEC(struct fresh) fresh;
    RP_VEC(struct end) ends;
    size_t next_end;
    RP_VEC(struct lane) lanes;
    size_t nlanes; /* of the current track */
    struct rp_map counters,
        tids; /* tids: from the number of a thread to how many have it (2: several) */
    uint64_t uuids, first_uuid; /* last uuid given out, and the one before all of them */
    int64_t shift_ns;
    rp_str correlation; /* or RP_NONE */
    uint8_t *kinds;     /* by origin: what is known about its category */
    struct rp_err *err;
    enum rp_code code;
};

/* ------------------------------------------------------------------ packets */

static size_t begin_packet(struct writer *c)
{
    rp_proto_rewind(&c->w);
    c->fresh.n = 0;
    return rp_proto_begin(&c->w, RP_PFT_TRACE_PACKET);
}

static void put_interned(struct writer *c)
{
    static const uint32_t numbers[] = {
        [CATEGORY] = RP_PFT_INTERNED_EVENT_CATEGORIES,
        [NAME] = RP_PFT_INTERNED_EVENT_NAMES,
        [ARG_NAME] = RP_PFT_INTERNED_DEBUG_ANNOTATION_NAMES,
        [ARG_TEXT] = RP_PFT_INTERNED_DEBUG_ANNOTATION_STRING_VALUES,
    };

    if (!c->fresh.n)
        return;
    size_t all = rp_proto_begin(&c->w, RP_PFT_PACKET_INTERNED_DATA);
    for (size_t i = 0; i < c->fresh.n; i++) {
        const struct fresh *f = &c->fresh.at[i];

        size_t one = rp_proto_begin(&c->w, numbers[f->table]);
        rp_proto_put_varint(&c->w, RP_PFT_NAMED_IID, f->iid);
        rp_proto_put_bytes(&c->w, RP_PFT_NAMED_NAME, f->text, f->n);
        rp_proto_end(&c->w, one);
    }
    rp_proto_end(&c->w, all);
}

static void end_packet(struct writer *c, size_t begun, uint32_t flags)
{
    struct rp_bytes bytes;

    put_interned(c);
    rp_proto_put_varint(&c->w, RP_PFT_PACKET_TRUSTED_PACKET_SEQUENCE_ID, c->first_uuid >> 32);
    rp_proto_put_varint(&c->w, RP_PFT_PACKET_SEQUENCE_FLAGS, flags);
    rp_proto_end(&c->w, begun);
    if (c->code == RP_OK)
        c->code = rp_proto_written(&c->w, &bytes, c->err);
    if (c->code == RP_OK)
        rp_emit_bytes(&c->e, (const char *)bytes.at, bytes.n);
}

/* The number of a text; iid i + 1 is string i, and the words of kinds come after those. */
static uint64_t intern_text(struct writer *c, size_t index, const char *text, size_t n,
                            uint8_t table)
{
    struct fresh fresh = {.iid = index + 1, .text = text, .n = n, .table = table};

    if (!(c->seen[index] & table) && c->code == RP_OK) {
        c->seen[index] |= table;
        c->code = rp_vec_push(&c->fresh, fresh, c->err);
    }
    return index + 1;
}

static uint64_t intern_str(struct writer *c, rp_str s, uint8_t table)
{
    return intern_text(c, s, rp_trace_str(c->t, s), rp_trace_str_len(c->t, s), table);
}

/* ------------------------------------------------------------------ the beginning */

static void put_metadata(struct writer *c, const char *key, size_t n, const char *json,
                         size_t njson)
{
    size_t one = rp_proto_begin(&c->w, RP_PFT_CHROME_METADATA);

    rp_proto_put_bytes(&c->w, RP_PFT_METADATA_NAME, key, n);
    rp_proto_put_bytes(&c->w, RP_PFT_METADATA_JSON_VALUE, json, njson);
    rp_proto_end(&c->w, one);
}

static void put_all_metadata(struct writer *c)
{
    const struct rp_trace *t = c->t;
    size_t packet = begin_packet(c), all = rp_proto_begin(&c->w, RP_PFT_PACKET_CHROME_EVENTS);
    char text[80];

    for (uint32_t i = 0; i < t->nmeta; i++) {
        const char *key = rp_trace_str(t, t->meta[i].key);

        if (!c->shift_ns || strcmp(key, "baseTimeNanoseconds") != 0)
            put_metadata(c, key, strlen(key), rp_trace_str(t, t->meta[i].value),
                         rp_trace_str_len(t, t->meta[i].value));
    }
    if (t->rank != RP_NO_RANK && !rp_trace_meta(t, "distributedInfo")) {
        int n = snprintf(text, sizeof text, "{\"rank\":%d,\"world_size\":%d}", t->rank,
                         t->world_size > 0 ? t->world_size : 0);

        put_metadata(c, "distributedInfo", 15, text, (size_t)n);
    }
    if (t->samples.n && !rp_trace_meta(t, RP_CHROME_WEIGHTS)) {
        rp_emit_reset(&c->json);
        rp_samples_put_weights(&c->json, t);
        put_metadata(c, RP_CHROME_WEIGHTS, strlen(RP_CHROME_WEIGHTS), c->json.buffer,
                     rp_emit_length(&c->json));
    }
    rp_proto_end(&c->w, all);
    end_packet(c, packet, RP_PFT_FLAG_NEEDED);
}

static void put_clock(struct writer *c, uint64_t id, uint64_t ns)
{
    size_t one = rp_proto_begin(&c->w, RP_PFT_CLOCKS_CLOCKS);

    rp_proto_put_varint(&c->w, RP_PFT_CLOCK_CLOCK_ID, id);
    rp_proto_put_varint(&c->w, RP_PFT_CLOCK_TIMESTAMP, ns);
    rp_proto_end(&c->w, one);
}

/* Puts the time since 1970 that corresponds to the trace's. */
static void put_clocks(struct writer *c)
{
    const struct rp_trace *t = c->t;
    int64_t begin = t->totals.span_begin_ns;

    if (!t->has_base || begin + t->base_ns < 0)
        return;
    size_t packet = begin_packet(c);
    size_t all = rp_proto_begin(&c->w, RP_PFT_PACKET_CLOCK_SNAPSHOT);
    put_clock(c, RP_PFT_CLOCK_BOOTTIME, (uint64_t)(begin + c->shift_ns));
    put_clock(c, RP_PFT_CLOCK_REALTIME, (uint64_t)(begin + t->base_ns));
    rp_proto_put_varint(&c->w, RP_PFT_CLOCKS_PRIMARY_TRACE_CLOCK, RP_PFT_CLOCK_BOOTTIME);
    rp_proto_end(&c->w, all);
    end_packet(c, packet, RP_PFT_FLAG_NEEDED);
}

/* ------------------------------------------------------------------ tracks */

static uint64_t process_uuid(const struct writer *c, uint32_t process)
{
    return c->first_uuid + 1 + process;
}

static uint64_t process_pid(const struct writer *c, uint32_t process)
{
    const struct rp_process *p = &c->t->processes[process];

    return (uint64_t)(p->text || p->native_id < 0 || p->native_id >= OWN_PIDS ? OWN_PIDS + process
                                                                              : p->native_id);
}

static void put_process(struct writer *c, uint32_t process)
{
    const struct rp_process *p = &c->t->processes[process];
    rp_str name = p->name ? p->name : p->text;
    size_t packet = begin_packet(c), track = rp_proto_begin(&c->w, RP_PFT_PACKET_TRACK_DESCRIPTOR);

    rp_proto_put_varint(&c->w, RP_PFT_TRACK_UUID, process_uuid(c, process));
    size_t inner = rp_proto_begin(&c->w, RP_PFT_TRACK_PROCESS);
    rp_proto_put_varint(&c->w, RP_PFT_PROCESS_PID, process_pid(c, process));
    if (name)
        rp_proto_put_text(&c->w, RP_PFT_PROCESS_PROCESS_NAME, rp_trace_str(c->t, name));
    if (p->labels)
        rp_proto_put_text(&c->w, RP_PFT_PROCESS_PROCESS_LABELS, rp_trace_str(c->t, p->labels));
    rp_proto_end(&c->w, inner);
    rp_proto_put_varint(&c->w, RP_PFT_TRACK_CHILD_ORDERING, RP_PFT_ORDER_EXPLICIT);
    rp_proto_end(&c->w, track);
    end_packet(c, packet, RP_PFT_FLAG_NEEDED);
}

/* Whether a track can be a thread, which requires a number of 31 bits that no other thread has. */
static bool is_thread(const struct writer *c, uint32_t track)
{
    const struct rp_trace *t = c->t;
    const struct rp_track_info *at = &t->tracks[track];

    if (at->kind != RP_TRACK_THREAD || !at->has_id || at->text || at->native_id <= 0 ||
        at->native_id > INT32_MAX)
        return false;
    if (rp_map_get(&c->tids, (uint64_t)at->native_id) != 1)
        return false;
    for (rp_event e = at->first; e < at->end; e++)
        if (t->ev.flags[e] & RP_EVENT_CROSSES)
            return false;
    return true;
}

static void put_thread(struct writer *c, const struct rp_track_info *at)
{
    size_t inner = rp_proto_begin(&c->w, RP_PFT_TRACK_THREAD);

    rp_proto_put_varint(&c->w, RP_PFT_THREAD_PID, process_pid(c, at->process));
    rp_proto_put_varint(&c->w, RP_PFT_THREAD_TID, (uint64_t)at->native_id);
    if (at->name)
        rp_proto_put_text(&c->w, RP_PFT_THREAD_THREAD_NAME, rp_trace_str(c->t, at->name));
    rp_proto_end(&c->w, inner);
}

/* Puts a lane of a track; the first one describes the track itself. */
static uint64_t put_track(struct writer *c, uint32_t track, bool thread)
{
    const struct rp_track_info *at = &c->t->tracks[track];
    uint64_t uuid = c->first_uuid + 1 + c->t->nprocesses + c->uuids++;
    size_t packet = begin_packet(c), inner = rp_proto_begin(&c->w, RP_PFT_PACKET_TRACK_DESCRIPTOR);

    rp_proto_put_varint(&c->w, RP_PFT_TRACK_UUID, uuid);
    rp_proto_put_varint(&c->w, RP_PFT_TRACK_PARENT_UUID, process_uuid(c, at->process));
    if (thread)
        put_thread(c, at);
    else {
        /* The name of a thread or stream, or its number. */
        bool numbered = at->has_id && !at->text && at->native_id >= 0;
        char text[40] = "events";
        if (numbered)
            snprintf(text, sizeof text, "%s %lld",
                     at->kind == RP_TRACK_STREAM ? "stream" : "thread", (long long)at->native_id);
        if (at->name || at->text)
            rp_proto_put_text(&c->w, RP_PFT_TRACK_NAME,
                              rp_trace_str(c->t, at->name ? at->name : at->text));
        else
            rp_proto_put_text(&c->w, RP_PFT_TRACK_NAME, text);
        if (numbered)
            rp_proto_put_text(&c->w, RP_PFT_TRACK_DESCRIPTION, text);
        rp_proto_put_varint(&c->w, RP_PFT_TRACK_SIBLING_MERGE_BEHAVIOR, RP_PFT_MERGE_BY_KEY);
        rp_proto_put_varint(&c->w, RP_PFT_TRACK_SIBLING_MERGE_KEY_INT,
                            c->nlanes ? c->lanes.at[0].uuid : uuid);
    }
    rp_proto_put_varint(&c->w, RP_PFT_TRACK_SIBLING_ORDER_RANK, track);
    rp_proto_end(&c->w, inner);
    end_packet(c, packet, RP_PFT_FLAG_NEEDED);
    return uuid;
}

static void new_lane(struct writer *c, uint32_t track, bool thread)
{
    uint64_t uuid = put_track(c, track, thread);

    if (c->code == RP_OK && c->nlanes == c->lanes.n)
        c->code = rp_vec_push(&c->lanes, (struct lane){0}, c->err);
    if (c->code != RP_OK)
        return;
    c->lanes.at[c->nlanes].uuid = uuid;
    c->lanes.at[c->nlanes++].ends.n = 0;
}

/* ------------------------------------------------------------------ what events have */

static const char *const kind_words[RP_KIND_COUNT] = {
    [RP_KIND_CPU_OP] = "cpu_op",
    [RP_KIND_ANNOTATION] = "user_annotation",
    [RP_KIND_GPU_ANNOTATION] = "gpu_user_annotation",
    [RP_KIND_RUNTIME] = "cuda_runtime",
    [RP_KIND_KERNEL] = "kernel",
    [RP_KIND_MEMCPY] = "gpu_memcpy",
    [RP_KIND_MEMSET] = "gpu_memset",
    [RP_KIND_SYNC] = "cuda_sync",
    [RP_KIND_PYTHON] = "python_function",
    [RP_KIND_OVERHEAD] = "overhead",
    [RP_KIND_COMM_OP] = "collective_comm",
    [RP_KIND_TRANSFER] = "Comm",
    [RP_KIND_WAIT] = "blocking",
};

static void put_arg(struct writer *c, const struct rp_arg *arg)
{
    size_t one = rp_proto_begin(&c->w, RP_PFT_EVENT_DEBUG_ANNOTATIONS);
    uint64_t bits;

    rp_proto_put_varint(&c->w, RP_PFT_ARG_NAME_IID, intern_str(c, arg->key, ARG_NAME));
    switch (arg->type) {
    case RP_ARG_I64:
        rp_proto_put_varint(&c->w, RP_PFT_ARG_INT_VALUE, (uint64_t)arg->v.i);
        break;
    case RP_ARG_F64:
        memcpy(&bits, &arg->v.f, sizeof bits);
        rp_proto_put_fixed64(&c->w, RP_PFT_ARG_DOUBLE_VALUE, bits);
        break;
    case RP_ARG_STR:
        rp_proto_put_varint(&c->w, RP_PFT_ARG_STRING_VALUE_IID, intern_str(c, arg->v.s, ARG_TEXT));
        break;
    default: {
        /* null becomes an annotation without a value, because as JSON it crashes Perfetto's trace
           processor. */
        const char *text = rp_trace_str(c->t, arg->v.s);
        if (strcmp(text, "null") != 0) {
            if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
                rp_proto_put_varint(&c->w, RP_PFT_ARG_BOOL_VALUE, text[0] == 't');
            else
                rp_proto_put_bytes(&c->w, RP_PFT_ARG_LEGACY_JSON_VALUE, text,
                                   rp_trace_str_len(c->t, arg->v.s));
        }
    } break;
    }
    rp_proto_end(&c->w, one);
}

static void put_args(struct writer *c, rp_event e)
{
    const struct rp_trace *t = c->t;
    uint32_t n = rp_args_count(&t->args, t->ev.shape[e], t->ev.arg_row[e]);
    bool correlates = false;

    for (uint32_t i = 0; i < n; i++) {
        struct rp_arg arg = rp_args_at(&t->args, t->ev.shape[e], t->ev.arg_row[e], i);

        correlates |= arg.key == c->correlation;
        put_arg(c, &arg);
    }
    if (!correlates) {
        /* Puts the id that joins a launch and its work, unless it is an argument. */
        uint32_t link = t->ev.link[e];
        if (link != RP_NONE && t->links.source[link] == RP_LINK_CORRELATION &&
            !(t->ev.flags[e] & (RP_EVENT_ID_TEXT | RP_EVENT_ASYNC))) {
            size_t one = rp_proto_begin(&c->w, RP_PFT_EVENT_DEBUG_ANNOTATIONS);
            rp_proto_put_text(&c->w, RP_PFT_ARG_NAME, "correlation");
            rp_proto_put_varint(&c->w, RP_PFT_ARG_INT_VALUE, (uint64_t)t->links.native_id[link]);
            rp_proto_end(&c->w, one);
        }
    }
}

/* ------------------------------------------------------------------ arrows */

RP_ORDER(by_event, struct end, RP_UP(event), RP_UP(flow))

/* Arrows with the same name and number have one id. It is terminated only if a single event is its
   end, because a terminated id cannot lead to a second one. */
static enum rp_code find_ends(struct writer *c, struct rp_err *err)
{
    const struct rp_flows *f = &c->t->flows;
    RP_SCOPED(rp_map_release) struct rp_map count = {0};

    for (uint32_t i = 0; i < f->n; i++) {
        struct end end = {.event = f->event[i], .flow = i};
        bool last = c->t->origins[f->origin[i]].phase == 'f';

        if (end.event == RP_NONE || f->flags[i] & RP_FLOW_NO_ID)
            continue;
        end.id = rp_hash_join(rp_hash_join((uint64_t)f->id[i], f->name[i]),
                              c->first_uuid + (f->flags[i] & RP_FLOW_ID_TEXT));
        if (last) {
            uint32_t n = rp_map_get(&count, end.id);

            RP_TRY(rp_map_put(&count, end.id, n == RP_MAP_NONE ? 1 : 2, err));
        }
        end.last = last;
        RP_TRY(rp_vec_push(&c->ends, end, err));
    }
    for (size_t i = 0; i < c->ends.n; i++)
        c->ends.at[i].last &= rp_map_get(&count, c->ends.at[i].id) == 1;
    rp_sort(c->ends.at, c->ends.n, sizeof *c->ends.at, by_event);
    return RP_OK;
}

/* Events come in their order, and so do the arrows. */
static void put_arrows(struct writer *c, rp_event e)
{
    while (c->next_end < c->ends.n && c->ends.at[c->next_end].event < e)
        c->next_end++;
    for (; c->next_end < c->ends.n && c->ends.at[c->next_end].event == e; c->next_end++) {
        const struct end *end = &c->ends.at[c->next_end];

        rp_proto_put_fixed64(
            &c->w, end->last ? RP_PFT_EVENT_TERMINATING_FLOW_IDS : RP_PFT_EVENT_FLOW_IDS, end->id);
        const struct rp_origin *o = &c->t->origins[c->t->flows.origin[end->flow]];
        if (o->phase != 's' || !o->category || strcmp(rp_trace_str(c->t, o->category), "ac2g") == 0)
            continue;
        size_t one = rp_proto_begin(&c->w, RP_PFT_EVENT_DEBUG_ANNOTATIONS);
        rp_proto_put_text(&c->w, RP_PFT_ARG_NAME, RP_PFT_ARROW_KEY);
        rp_proto_put_varint(&c->w, RP_PFT_ARG_STRING_VALUE_IID,
                            intern_str(c, o->category, ARG_TEXT));
        rp_proto_end(&c->w, one);
    }
}

/* ------------------------------------------------------------------ events */

static size_t begin_event(struct writer *c, int64_t ns, enum rp_perfetto_type type, uint64_t uuid,
                          size_t *packet)
{
    *packet = begin_packet(c);
    rp_proto_put_varint(&c->w, RP_PFT_PACKET_TIMESTAMP, (uint64_t)(ns + c->shift_ns));
    size_t event = rp_proto_begin(&c->w, RP_PFT_PACKET_TRACK_EVENT);
    rp_proto_put_varint(&c->w, RP_PFT_EVENT_TYPE, type);
    if (uuid)
        rp_proto_put_varint(&c->w, RP_PFT_EVENT_TRACK_UUID, uuid);
    return event;
}

static void end_event(struct writer *c, size_t event, size_t packet)
{
    rp_proto_end(&c->w, event);
    end_packet(c, packet, RP_PFT_FLAG_NEEDED);
}

static uint64_t lane_uuid(const struct writer *c, size_t lane)
{
    return lane ? c->lanes.at[lane].uuid : 0;
}

static void put_event(struct writer *c, rp_event e, enum rp_perfetto_type type, size_t lane)
{
    size_t packet, event = begin_event(c, c->t->ev.ts_ns[e], type, lane_uuid(c, lane), &packet);

    rp_proto_put_varint(&c->w, RP_PFT_EVENT_NAME_IID, intern_str(c, c->t->ev.name[e], NAME));

    /* Puts the category of the file, and if that does not say what the event is, one that does. */
    const struct rp_origin *o = &c->t->origins[c->t->ev.origin[e]];
    uint8_t kind = c->t->ev.kind[e], means = c->kinds[c->t->ev.origin[e]];
    const char *word = kind != means ? kind_words[kind] : NULL;
    uint64_t word_iid = word ? intern_text(c, c->t->str.n + kind, word, strlen(word), CATEGORY) : 0;
    if (word && means)
        rp_proto_put_varint(&c->w, RP_PFT_EVENT_CATEGORY_IIDS, word_iid);
    if (o->category)
        rp_proto_put_varint(&c->w, RP_PFT_EVENT_CATEGORY_IIDS,
                            intern_str(c, o->category, CATEGORY));
    if (word && !means)
        rp_proto_put_varint(&c->w, RP_PFT_EVENT_CATEGORY_IIDS, word_iid);
    put_args(c, e);
    put_arrows(c, e);
    end_event(c, event, packet);
}

/* Ends the slices of a lane up to a time. */
static void end_slices(struct writer *c, size_t lane, int64_t until_ns)
{
    struct lane *l = &c->lanes.at[lane];

    for (; l->ends.n && l->ends.at[l->ends.n - 1] <= until_ns; l->ends.n--) {
        size_t packet;
        size_t event =
            begin_event(c, l->ends.at[l->ends.n - 1], RP_PFT_END, lane_uuid(c, lane), &packet);

        end_event(c, event, packet);
    }
}

/* Finds a lane in which the span nests; a span without an end would end with the slice around
   it. */
static size_t find_lane(struct writer *c, uint32_t track, rp_event e, int64_t end_ns)
{
    for (size_t i = 0; i < c->nlanes && i < LANES_PROBED; i++) {
        struct lane *l = &c->lanes.at[i];

        end_slices(c, i, c->t->ev.ts_ns[e]);
        if (!l->ends.n || (l->ends.at[l->ends.n - 1] >= end_ns && end_ns != INT64_MAX))
            return i;
    }
    new_lane(c, track, false);
    return c->nlanes - 1;
}

/* ------------------------------------------------------------------ counters */

static uint64_t counter_track(struct writer *c, rp_event e, const struct rp_arg *arg, bool only)
{
    const struct rp_trace *t = c->t;
    uint64_t key = rp_hash_join(rp_hash_join(t->ev.track[e], t->ev.name[e]), arg->key);
    uint32_t fresh = (uint32_t)c->uuids, at = fresh;
    char name[600];

    if (c->code == RP_OK)
        c->code = rp_map_intern(&c->counters, key, fresh, &at, c->err);
    if (at != fresh || c->code != RP_OK)
        return c->first_uuid + 1 + t->nprocesses + at;
    c->uuids++;
    snprintf(name, sizeof name, "%.290s%s%.290s", rp_trace_str(t, t->ev.name[e]), only ? "" : " ",
             only ? "" : rp_trace_str(t, arg->key));
    size_t packet = begin_packet(c);
    size_t track = rp_proto_begin(&c->w, RP_PFT_PACKET_TRACK_DESCRIPTOR);
    rp_proto_put_varint(&c->w, RP_PFT_TRACK_UUID, c->first_uuid + 1 + t->nprocesses + at);
    rp_proto_put_varint(&c->w, RP_PFT_TRACK_PARENT_UUID,
                        process_uuid(c, t->tracks[t->ev.track[e]].process));
    rp_proto_put_text(&c->w, RP_PFT_TRACK_NAME, name);
    size_t inner = rp_proto_begin(&c->w, RP_PFT_TRACK_COUNTER);
    rp_proto_end(&c->w, inner);
    rp_proto_end(&c->w, track);
    end_packet(c, packet, RP_PFT_FLAG_NEEDED);
    return c->first_uuid + 1 + t->nprocesses + at;
}

/* ------------------------------------------------------------------ the document */

static void put_track_event(struct writer *c, uint32_t track, rp_event e)
{
    const struct rp_events *ev = &c->t->ev;

    if (ev->kind[e] == RP_KIND_COUNTER) {
        /* Each number of a counter is an event on a track of its own. */
        const struct rp_trace *t = c->t;
        uint32_t n = rp_args_count(&t->args, t->ev.shape[e], t->ev.arg_row[e]);
        for (uint32_t i = 0; i < n; i++) {
            struct rp_arg arg = rp_args_at(&t->args, t->ev.shape[e], t->ev.arg_row[e], i);
            size_t packet;
            uint64_t bits;
            if (arg.type != RP_ARG_I64 && arg.type != RP_ARG_F64)
                continue;
            uint64_t uuid = counter_track(c, e, &arg, n == 1);
            size_t event = begin_event(c, t->ev.ts_ns[e], RP_PFT_COUNT, uuid, &packet);
            if (arg.type == RP_ARG_I64) {
                rp_proto_put_varint(&c->w, RP_PFT_EVENT_COUNTER_VALUE, (uint64_t)arg.v.i);
            } else {
                memcpy(&bits, &arg.v.f, sizeof bits);
                rp_proto_put_fixed64(&c->w, RP_PFT_EVENT_DOUBLE_COUNTER_VALUE, bits);
            }
            end_event(c, event, packet);
        }
    } else if (ev->dur_ns[e] >= 0 || ev->flags[e] & RP_EVENT_UNENDED) {
        bool open = c->t->ev.flags[e] & RP_EVENT_UNENDED;
        int64_t end_ns = open ? INT64_MAX : rp_event_end_ns(c->t, e);
        size_t lane = find_lane(c, track, e, end_ns);
        if (c->code == RP_OK) {
            put_event(c, e, RP_PFT_BEGIN, lane);
            if (c->code == RP_OK)
                c->code = rp_vec_push(&c->lanes.at[lane].ends, end_ns, c->err);
        }
    } else
        put_event(c, e, RP_PFT_INSTANT, 0);
}

static bool is_shown(const struct rp_events *ev, rp_event e)
{
    return ev->kind[e] != RP_KIND_METADATA && ev->ts_ns[e] != RP_NO_TS &&
           !(ev->flags[e] & RP_EVENT_NO_BEGIN);
}

static void put_track_events(struct writer *c, uint32_t track)
{
    const struct rp_track_info *at = &c->t->tracks[track];
    const struct rp_events *ev = &c->t->ev;

    c->nlanes = 0;
    for (rp_event e = at->first; e < at->end && c->code == RP_OK; e++) {
        if (!is_shown(ev, e))
            continue;
        if (!c->nlanes && ev->kind[e] != RP_KIND_COUNTER) {
            new_lane(c, track, is_thread(c, track));
            if (c->code != RP_OK)
                return;

            /* The events of the first lane need not name their track. */
            size_t packet = begin_packet(c),
                   defaults = rp_proto_begin(&c->w, RP_PFT_PACKET_TRACE_PACKET_DEFAULTS);
            rp_proto_put_varint(&c->w, RP_PFT_DEFAULTS_TIMESTAMP_CLOCK_ID, RP_PFT_CLOCK_BOOTTIME);
            size_t inner = rp_proto_begin(&c->w, RP_PFT_DEFAULTS_TRACK_EVENT_DEFAULTS);
            rp_proto_put_varint(&c->w, RP_PFT_EVENT_DEFAULTS_TRACK_UUID, c->lanes.at[0].uuid);
            rp_proto_end(&c->w, inner);
            rp_proto_end(&c->w, defaults);
            end_packet(c, packet, RP_PFT_FLAG_NEEDED);
        }
        put_track_event(c, track, e);
    }
    for (size_t k = 0; k < c->nlanes && c->code == RP_OK; k++)
        end_slices(c, k, INT64_MAX - 1);
}

/* ------------------------------------------------------------------ samples */

static uint64_t thread_number(const struct writer *c, rp_track track)
{
    const struct rp_track_info *at = &c->t->tracks[track];

    return (uint64_t)(at->has_id && !at->text && at->native_id > 0 && at->native_id < OWN_PIDS
                          ? at->native_id
                          : OWN_PIDS + track);
}

static void sampled_thread(const void *user, rp_track track, uint64_t *pid, uint64_t *tid)
{
    const struct writer *c = user;

    *pid = process_pid(c, c->t->tracks[track].process);
    *tid = thread_number(c, track);
}

static enum rp_code put_samples(struct writer *c, struct rp_err *err)
{
    struct rp_perfetto_sampled to = {.t = c->t,
                                     .e = &c->e,
                                     .w = &c->w,
                                     .sequence = (c->first_uuid >> 32) + SAMPLES_SEQUENCE,
                                     .shift_ns = c->shift_ns,
                                     .thread = sampled_thread,
                                     .user = c};

    /* Threads that have samples but no events have not been described yet. */
    const struct rp_call_samples *s = &c->t->samples;
    for (uint32_t i = 0; i < s->n && c->code == RP_OK; i++) {
        struct rp_track_info at = c->t->tracks[s->track[i]];

        if ((i && s->track[i] == s->track[i - 1]) || at.first < at.end)
            continue;
        at.native_id = (int64_t)thread_number(c, s->track[i]);
        size_t packet = begin_packet(c);
        size_t inner = rp_proto_begin(&c->w, RP_PFT_PACKET_TRACK_DESCRIPTOR);
        rp_proto_put_varint(&c->w, RP_PFT_TRACK_UUID,
                            c->first_uuid + 1 + c->t->nprocesses + c->uuids++);
        rp_proto_put_varint(&c->w, RP_PFT_TRACK_PARENT_UUID, process_uuid(c, at.process));
        put_thread(c, &at);
        rp_proto_end(&c->w, inner);
        end_packet(c, packet, RP_PFT_FLAG_NEEDED);
    }
    return c->code == RP_OK ? rp_samples_put_perfetto(&to, err) : c->code;
}

/* Prepares strings and categories that are needed for every event. */
static enum rp_code prepare(struct writer *c, struct rp_err *err)
{
    const struct rp_trace *t = c->t;

    rp_map_init(&c->counters);
    rp_map_init(&c->tids);
    RP_TRY(rp_trace_require(t, RP_NEED_ALL, err));
    RP_TRY(rp_emit_open_memory(&c->json, err));
    c->nseen = (size_t)t->str.n + RP_KIND_COUNT;
    c->seen = calloc(c->nseen, 1);
    c->kinds = calloc((size_t)t->norigins + 1, 1);
    RP_TRY(rp_err_need(c->seen && c->kinds, err, "writing a trace"));
    for (uint32_t i = 0; i < t->norigins; i++) {
        const struct rp_origin *o = &t->origins[i];

        c->kinds[i] =
            rp_chrome_category_kind(rp_trace_str(t, o->category), rp_trace_str_len(t, o->category))
                .kind;
    }
    c->correlation = RP_NONE;
    for (rp_str s = 0; s < t->str.n && c->correlation == RP_NONE; s++)
        if (strcmp(rp_trace_str(t, s), "correlation") == 0)
            c->correlation = s;
    c->first_uuid = (uint64_t)(t->rank + 2) << 32;
    if (t->totals.span_begin_ns < 0)
        c->shift_ns = -t->totals.span_begin_ns;
    for (uint32_t i = 0; i < t->samples.n; i++)
        if (t->samples.ts_ns[i] != RP_NO_TS && -t->samples.ts_ns[i] > c->shift_ns)
            c->shift_ns = -t->samples.ts_ns[i];
    for (uint32_t i = 0; i < t->ntracks; i++) {
        uint64_t tid = (uint64_t)t->tracks[i].native_id;

        RP_TRY(rp_map_put(&c->tids, tid, rp_map_get(&c->tids, tid) == RP_MAP_NONE ? 1 : 2, err));
    }
    return find_ends(c, err);
}

static void writer_release(struct writer *c)
{
    rp_emit_abandon(&c->e);
    rp_emit_abandon(&c->json);
    rp_proto_writer_release(&c->w);
    RP_EACH(rp_map_release, &c->counters, &c->tids);
    RP_EACH(rp_vec_release, &c->fresh, &c->ends);
    for (size_t i = 0; i < c->lanes.n; i++)
        rp_vec_release(&c->lanes.at[i].ends);
    rp_vec_release(&c->lanes);
    RP_EACH(free, c->seen, c->kinds);
}

static enum rp_code write_perfetto(const struct rp_trace *trace, const char *path,
                                   const struct rp_write_options *options, struct rp_err *err)
{
    RP_SCOPED(writer_release) struct writer c = {.t = trace, .err = err};

    RP_TRY(prepare(&c, err));
    RP_TRY(rp_emit_open(&c.e, path, options ? options->gzip_level : 0, err));
    size_t packet = begin_packet(&c),
           defaults = rp_proto_begin(&c.w, RP_PFT_PACKET_TRACE_PACKET_DEFAULTS);
    rp_proto_put_varint(&c.w, RP_PFT_DEFAULTS_TIMESTAMP_CLOCK_ID, RP_PFT_CLOCK_BOOTTIME);
    rp_proto_end(&c.w, defaults);
    end_packet(&c, packet, RP_PFT_FLAG_CLEARED);
    put_clocks(&c);
    put_all_metadata(&c);
    const struct rp_trace *t = c.t;
    for (uint32_t i = 0; i < t->nprocesses; i++)
        put_process(&c, i);
    for (uint32_t i = 0; i < t->ntracks && c.code == RP_OK; i++)
        put_track_events(&c, i);
    RP_TRY(put_samples(&c, err));
    return rp_emit_close(&c.e, err);
}

const struct rp_writer rp_writer_perfetto = {
    .name = "perfetto",
    .endings = {".pftrace", ".pftrace.gz", ".perfetto-trace"},
    .summary = "Perfetto protobuf, for ui.perfetto.dev",
    .streams = true,
    .available = true,
    .samples = RP_SAMPLES_TIMED,
    .write = write_perfetto,
};
