/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Track events. A slice is a begin and an end on one track, which are joined when all packets are
 * read (arrows.c). Chrome's old events say in `legacy_event` what they are, with the letters of its
 * JSON format, and are read as those are. What an event is follows from its first category that has
 * a meaning: PyTorch, rocprofv3 and our own writer use those of PyTorch's JSON.
 */
#include "formats/perfetto/perfetto.h"

#define CATEGORIES 8 /* categories of one event; further ones are ignored */

struct legacy {
    bool given, has_id, has_pid, has_tid, local, encloses;
    uint64_t phase, duration_us, id, bind_id, direction, scope;
    int64_t pid, tid;
};

struct event {
    uint64_t type, track_uuid;
    bool has_track;
    rp_str name, arrow;
    rp_str categories[CATEGORIES];
    size_t ncategories, nflows, nends;
    uint64_t flows[16], ends[16]; /* ids of arrows */
    bool has_extra;               /* the event has values of other counters */
    bool has_double, has_delta_us, has_absolute_us, has_correlation;
    int64_t count;
    double value;
    uint64_t us;
    int64_t correlation;
    struct legacy legacy;
    struct rp_chrome_kind is;
};

/* ------------------------------------------------------------------ reading the message */

static enum rp_code parse_legacy(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                 struct rp_proto_cursor c, struct event *e, struct rp_err *err)
{
    struct legacy *l = &e->legacy;
    const struct rp_proto_slot slots[] = {{RP_PFT_LEGACY_PHASE, .u64 = &l->phase},
                                          {RP_PFT_LEGACY_DURATION_US, .u64 = &l->duration_us},
                                          {RP_PFT_LEGACY_BIND_ID, .u64 = &l->bind_id},
                                          {RP_PFT_LEGACY_BIND_TO_ENCLOSING, .flag = &l->encloses},
                                          {RP_PFT_LEGACY_FLOW_DIRECTION, .u64 = &l->direction},
                                          {RP_PFT_LEGACY_INSTANT_EVENT_SCOPE, .u64 = &l->scope},
                                          {0}};
    struct rp_proto_item it;

    l->given = true;
    while (rp_proto_next(&c, &it)) {
        if (it.wire != RP_WIRE_VARINT)
            continue;
        switch (it.number) {
        case RP_PFT_LEGACY_NAME_IID:
            if (!e->name)
                e->name = rp_perfetto_interned(r, packet->seq, RP_PFT_NAMES, it.value);
            break;
        case RP_PFT_LEGACY_UNSCOPED_ID:
        case RP_PFT_LEGACY_LOCAL_ID:
        case RP_PFT_LEGACY_GLOBAL_ID:
            l->id = it.value;
            l->has_id = true;
            l->local = it.number == RP_PFT_LEGACY_LOCAL_ID;
            break;
        case RP_PFT_LEGACY_PID_OVERRIDE:
            l->pid = (int64_t)it.value;
            l->has_pid = true;
            break;
        case RP_PFT_LEGACY_TID_OVERRIDE:
            l->tid = (int64_t)it.value;
            l->has_tid = true;
            break;
        default:
            rp_proto_take(slots, &it);
        }
    }
    return rp_proto_finish(&c, err);
}

static void add_id(uint64_t *ids, size_t *n, uint64_t id)
{
    if (*n < 16)
        ids[(*n)++] = id;
}

/* Adds lists of numbers, which may be packed or not. */
static enum rp_code add_ids(const struct rp_proto_cursor *up, const struct rp_proto_item *it,
                            uint64_t *ids, size_t *n, bool fixed, struct rp_err *err)
{
    uint64_t id;

    if (it->wire != RP_WIRE_BYTES) {
        add_id(ids, n, it->value);
        return RP_OK;
    }
    struct rp_proto_cursor c = rp_proto_enter(up, it);
    while (fixed ? rp_proto_packed_fixed64(&c, &id) : rp_proto_packed_varint(&c, &id))
        add_id(ids, n, id);
    return rp_proto_finish(&c, err);
}

static void add_category(struct event *e, rp_str category)
{
    if (category && e->ncategories < CATEGORIES)
        e->categories[e->ncategories++] = category;
}

/* Reads which GPU work a call submitted: the id of its first render stage. */
static enum rp_code parse_submission(struct rp_perfetto *r, struct rp_proto_cursor c,
                                     struct event *e, struct rp_err *err)
{
    struct rp_proto_item it;
    uint64_t ids[16];
    size_t n = 0;

    while (rp_proto_next(&c, &it))
        if (it.number == RP_PFT_GPU_CORRELATION_SUBMISSION_IDS)
            RP_TRY(add_ids(&c, &it, ids, &n, false, err));
    r->submits = true;
    if (n && !e->has_correlation) {
        e->correlation = (int64_t)ids[0];
        e->has_correlation = true;
    }
    return rp_proto_finish(&c, err);
}

static enum rp_code parse_field(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                const struct rp_proto_cursor *c, const struct rp_proto_item *it,
                                struct event *e, struct rp_err *err)
{
    rp_str text;

    switch (it->number) {
    case RP_PFT_EVENT_TYPE:
        e->type = it->value;
        break;
    case RP_PFT_EVENT_NAME_IID:
        if (!e->name)
            e->name = rp_perfetto_interned(r, packet->seq, RP_PFT_NAMES, it->value);
        break;
    case RP_PFT_EVENT_NAME:
        return rp_proto_trace_intern(&r->t, it->bytes, &e->name, err);
    case RP_PFT_EVENT_TRACK_UUID:
        e->track_uuid = it->value;
        e->has_track = true;
        break;
    case RP_PFT_EVENT_CATEGORIES:
        RP_TRY(rp_proto_trace_intern(&r->t, it->bytes, &text, err));
        add_category(e, text);
        break;
    case RP_PFT_EVENT_CATEGORY_IIDS: {
        uint64_t ids[16];
        size_t n = 0;
        RP_TRY(add_ids(c, it, ids, &n, false, err));
        for (size_t i = 0; i < n; i++)
            add_category(e, rp_perfetto_interned(r, packet->seq, RP_PFT_CATEGORIES, ids[i]));
        return RP_OK;
    }
    case RP_PFT_EVENT_DEBUG_ANNOTATIONS:
        return rp_perfetto_read_arg(r, packet, c, it, &e->arrow, err);
    case RP_PFT_EVENT_LEGACY_EVENT:
        return parse_legacy(r, packet, rp_proto_enter(c, it), e, err);
    case RP_PFT_EVENT_FLOW_IDS:
    case RP_PFT_EVENT_FLOW_IDS_OLD:
        return add_ids(c, it, e->flows, &e->nflows, it->number == RP_PFT_EVENT_FLOW_IDS, err);
    case RP_PFT_EVENT_TERMINATING_FLOW_IDS:
    case RP_PFT_EVENT_TERMINATING_FLOW_IDS_OLD:
        return add_ids(c, it, e->ends, &e->nends, it->number == RP_PFT_EVENT_TERMINATING_FLOW_IDS,
                       err);
    case RP_PFT_EVENT_COUNTER_VALUE:
        e->count = (int64_t)it->value;
        break;
    case RP_PFT_EVENT_DOUBLE_COUNTER_VALUE:
        e->value = rp_proto_double(it->value);
        e->has_double = true;
        break;
    case RP_PFT_EVENT_TIMESTAMP_DELTA_US:
    case RP_PFT_EVENT_TIMESTAMP_ABSOLUTE_US:
        e->us = it->value;
        *(it->number == RP_PFT_EVENT_TIMESTAMP_DELTA_US ? &e->has_delta_us : &e->has_absolute_us) =
            true;
        break;
    case RP_PFT_EVENT_CORRELATION_ID:
        e->correlation = (int64_t)it->value;
        e->has_correlation = true;
        break;
    case RP_PFT_EVENT_GPU_CORRELATION:
        return parse_submission(r, rp_proto_enter(c, it), e, err);
    default:
        break;
    }
    return RP_OK;
}

/* Whether the field may have this wire type; otherwise it is ignored. */
static bool fits_wire(const struct rp_proto_item *it)
{
    switch (it->number) {
    case RP_PFT_EVENT_NAME:
    case RP_PFT_EVENT_CATEGORIES:
    case RP_PFT_EVENT_DEBUG_ANNOTATIONS:
    case RP_PFT_EVENT_LEGACY_EVENT:
    case RP_PFT_EVENT_GPU_CORRELATION:
        return it->wire == RP_WIRE_BYTES;
    case RP_PFT_EVENT_DOUBLE_COUNTER_VALUE:
        return it->wire == RP_WIRE_FIXED64;
    case RP_PFT_EVENT_FLOW_IDS:
    case RP_PFT_EVENT_TERMINATING_FLOW_IDS:
        return it->wire == RP_WIRE_FIXED64 || it->wire == RP_WIRE_BYTES;
    case RP_PFT_EVENT_CATEGORY_IIDS:
    case RP_PFT_EVENT_FLOW_IDS_OLD:
    case RP_PFT_EVENT_TERMINATING_FLOW_IDS_OLD:
        return it->wire == RP_WIRE_VARINT || it->wire == RP_WIRE_BYTES;
    default:
        return it->wire == RP_WIRE_VARINT;
    }
}

/* ------------------------------------------------------------------ what it is */

enum rp_code rp_perfetto_category(struct rp_perfetto *r, rp_str category,
                                  struct rp_chrome_kind *out, struct rp_err *err)
{
    uint32_t known = rp_map_get(&r->category_of, category);

    if (known == RP_MAP_NONE) {
        size_t n;
        const char *text = rp_builder_borrow_str(r->t.builder, category, &n);

        *out = rp_chrome_category_kind(text, n);
        r->facts.signs |= out->signs;
        return rp_map_put(&r->category_of, category, (uint32_t)out->kind | out->flags << 8u, err);
    }
    *out = (struct rp_chrome_kind){.kind = (uint8_t)known, .flags = (uint8_t)(known >> 8)};
    return RP_OK;
}

static enum rp_code event_origin(struct rp_perfetto *r, const struct event *e, char phase,
                                 uint8_t scope, uint16_t *out, struct rp_err *err)
{
    struct rp_origin origin = {.phase = phase,
                               .kind = rp_chrome_phase_kind(phase, e->is.kind),
                               .flags = (phase == 'X' ? e->is.flags : 0) | scope,
                               .category = e->categories[0],
                               .has_category = e->ncategories > 0};

    return rp_builder_origin(r->t.builder, &origin, out, err);
}

/* Takes "correlation" of PyTorch or "corr_id" of rocprofv3. */
enum rp_code rp_perfetto_set_link(struct rp_perfetto *r, struct rp_raw *raw, struct rp_err *err)
{
    rp_str keys[2];

    RP_TRY(rp_proto_trace_word(&r->t, "correlation", &keys[0], err));
    RP_TRY(rp_proto_trace_word(&r->t, "corr_id", &keys[1], err));
    for (size_t i = 0; i < r->args.n; i++) {
        const struct rp_arg *arg = &r->args.at[i];

        if ((arg->key == keys[0] || arg->key == keys[1]) && arg->type == RP_ARG_I64) {
            raw->has_link = true;
            raw->link = arg->v.i;
        }
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ tracks and times */

static enum rp_code event_time(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                               const struct event *e, int64_t *ns, struct rp_err *err)
{
    if (packet->has_timestamp)
        return rp_perfetto_time(r, packet, ns, err);
    if (e->has_delta_us)
        packet->seq->last_us += e->us;
    *ns = rp_proto_trace_clamp(
        &r->t, (rp_wide_ns)(e->has_absolute_us ? e->us : packet->seq->last_us) * 1000);
    return RP_OK;
}

/* ------------------------------------------------------------------ counters */

enum rp_code rp_perfetto_add_counter(struct rp_perfetto *r, rp_track track, int64_t ns, rp_str name,
                                     struct rp_arg value, struct rp_err *err)
{
    struct rp_origin origin = {.phase = 'C', .kind = RP_KIND_COUNTER};
    struct rp_raw raw = {.ts_ns = ns,
                         .dur_ns = RP_OPEN_NS,
                         .name = name,
                         .track = track,
                         .args = &value,
                         .nargs = 1};

    RP_TRY(rp_proto_trace_word(&r->t, "value", &value.key, err));
    RP_TRY(rp_builder_origin(r->t.builder, &origin, &raw.origin, err));
    RP_TRY(rp_builder_shape(r->t.builder, &value, 1, &raw.shape, err));
    r->t.nevents++;
    return rp_builder_add(r->t.builder, &raw, err);
}

/* Adds up values, which may be differences to the one before, in a unit of the counter. */
static enum rp_code add_up(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                           uint32_t track, int64_t *value, struct rp_err *err)
{
    const struct rp_perfetto_track *t = &r->tracks.at[track];
    uint32_t at;

    if (t->incremental) {
        RP_TRY(rp_map_intern(&r->total_of, (uint64_t)packet->seq->generation << 32 | track,
                             (uint32_t)r->totals.n, &at, err));
        if (at == r->totals.n)
            RP_TRY(rp_vec_push(&r->totals, 0, err));
        *value = (int64_t)((uint64_t)*value + (uint64_t)r->totals.at[at]);
        r->totals.at[at] = *value;
    }
    if (__builtin_mul_overflow(*value, t->multiplier, value))
        *value = INT64_MAX;
    return RP_OK;
}

static enum rp_code add_count(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                              uint32_t track, int64_t ns, struct rp_arg value, struct rp_err *err)
{
    rp_str unnamed;

    RP_TRY(rp_proto_trace_word(&r->t, "counter", &unnamed, err));
    RP_TRY(rp_perfetto_use_track(r, track, unnamed, err));
    if (value.type == RP_ARG_I64)
        RP_TRY(add_up(r, packet, track, &value.v.i, err));
    return rp_perfetto_add_counter(r, r->tracks.at[track].track, ns, r->tracks.at[track].name,
                                   value, err);
}

/* Adds values that an event of another kind carries: the n-th value belongs to the n-th track. */
static enum rp_code add_extra_counts(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                     int64_t ns, bool doubles, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->data);
    uint32_t of = doubles ? RP_PFT_EVENT_EXTRA_DOUBLE_COUNTER_TRACK_UUIDS
                          : RP_PFT_EVENT_EXTRA_COUNTER_TRACK_UUIDS;
    uint32_t number =
        doubles ? RP_PFT_EVENT_EXTRA_DOUBLE_COUNTER_VALUES : RP_PFT_EVENT_EXTRA_COUNTER_VALUES;
    uint64_t uuids[16], values[16];
    size_t nuuids = 0, nvalues = 0;
    const uint64_t *defaults = doubles ? packet->seq->doubles.at : packet->seq->counters.at;
    struct rp_proto_item it;
    size_t ndefaults = doubles ? packet->seq->doubles.n : packet->seq->counters.n;

    while (rp_proto_next(&c, &it))
        if (it.number == of)
            RP_TRY(add_ids(&c, &it, uuids, &nuuids, false, err));
        else if (it.number == number)
            RP_TRY(add_ids(&c, &it, values, &nvalues, doubles, err));
    for (size_t i = 0; i < nvalues && i < (nuuids ? nuuids : ndefaults); i++) {
        struct rp_arg value = {.type = doubles ? RP_ARG_F64 : RP_ARG_I64};
        uint32_t track;

        if (doubles)
            value.v.f = rp_proto_double(values[i]);
        else
            value.v.i = (int64_t)values[i];
        RP_TRY(rp_perfetto_track(r, nuuids ? uuids[i] : defaults[i], &track, err));
        RP_TRY(add_count(r, packet, track, ns, value, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ arrows */

static enum rp_code add_flow(struct rp_perfetto *r, const struct event *e, rp_track track,
                             int64_t ns, uint64_t id, bool ends, struct rp_err *err)
{
    struct rp_perfetto_flow flow = {.id = id,
                                    .ts_ns = ns,
                                    .order = (uint32_t)r->flows.n,
                                    .track = track,
                                    .category = e->arrow,
                                    .kind = e->is.kind,
                                    .ends = ends};

    return rp_vec_push(&r->flows, flow, err);
}

static enum rp_code add_flows(struct rp_perfetto *r, const struct event *e, rp_track track,
                              int64_t ns, struct rp_err *err)
{
    for (size_t i = 0; i < e->nflows; i++)
        RP_TRY(add_flow(r, e, track, ns, e->flows[i], false, err));
    for (size_t i = 0; i < e->nends; i++)
        RP_TRY(add_flow(r, e, track, ns, e->ends[i], true, err));
    if (e->legacy.direction)
        RP_TRY(add_flow(r, e, track, ns, e->legacy.bind_id, false, err));
    return RP_OK;
}

/* ------------------------------------------------------------------ events */

static enum rp_code add_mark(struct rp_perfetto *r, uint32_t track, int64_t ns, uint8_t type,
                             rp_str name, struct rp_err *err)
{
    struct rp_perfetto_mark mark = {.ts_ns = ns,
                                    .track = track,
                                    .event = rp_builder_count(r->t.builder),
                                    .name = name,
                                    .type = type,
                                    .begins = type != RP_PFT_END};

    return rp_vec_push(&r->marks, mark, err);
}

static enum rp_code add_raw(struct rp_perfetto *r, const struct event *e, struct rp_raw *raw,
                            char phase, uint8_t scope, struct rp_err *err)
{
    RP_TRY(event_origin(r, e, phase, scope, &raw->origin, err));
    raw->name = e->name;
    raw->args = r->args.at;
    raw->nargs = (uint32_t)r->args.n;
    if (raw->nargs)
        RP_TRY(rp_builder_shape(r->t.builder, raw->args, raw->nargs, &raw->shape, err));
    if (!(raw->flags & RP_EVENT_ASYNC) && e->has_correlation) {
        raw->has_link = true;
        raw->link = e->correlation;
    }
    if (!(raw->flags & RP_EVENT_ASYNC))
        RP_TRY(rp_perfetto_set_link(r, raw, err));
    r->t.nevents++;
    return rp_builder_add(r->t.builder, raw, err);
}

static enum rp_code add_slice(struct rp_perfetto *r, const struct event *e, uint32_t track,
                              int64_t ns, uint8_t type, struct rp_err *err)
{
    struct rp_raw raw = {.ts_ns = ns, .dur_ns = RP_OPEN_NS, .flags = RP_EVENT_UNENDED};

    raw.track = r->tracks.at[track].track;
    RP_TRY(add_mark(r, track, ns, type, e->name, err));
    RP_TRY(add_flows(r, e, raw.track, ns, err));
    return add_raw(r, e, &raw, 'X', 0, err);
}

static enum rp_code add_instant(struct rp_perfetto *r, const struct event *e, rp_track track,
                                int64_t ns, struct rp_err *err)
{
    static const uint8_t scopes[] = {RP_ORIGIN_SCOPE_THREAD, RP_ORIGIN_SCOPE_GLOBAL,
                                     RP_ORIGIN_SCOPE_PROCESS, RP_ORIGIN_SCOPE_THREAD};
    struct rp_raw raw = {.ts_ns = ns, .dur_ns = RP_OPEN_NS, .track = track};

    RP_TRY(add_flows(r, e, track, ns, err));
    return add_raw(r, e, &raw, 'i', scopes[e->legacy.scope & 3], err);
}

static enum rp_code add_legacy(struct rp_perfetto *r, const struct event *e, uint32_t track,
                               int64_t ns, struct rp_err *err)
{
    rp_track to = r->tracks.at[track].track;

    switch (e->legacy.phase) {
    case 'B':
        return add_slice(r, e, track, ns, RP_PFT_BEGIN, err);
    case 'E':
        return add_mark(r, track, ns, RP_PFT_END, e->name, err);
    case 'X': {
        struct rp_raw raw = {.ts_ns = ns, .track = to};
        raw.dur_ns = rp_proto_trace_clamp(&r->t, (rp_wide_ns)(int64_t)e->legacy.duration_us * 1000);
        RP_TRY(add_flows(r, e, to, ns, err));
        return add_raw(r, e, &raw, 'X', 0, err);
    }
    case 'i':
    case 'I':
    case 'R':
        return add_instant(r, e, to, ns, err);
    case 's':
    case 't':
    case 'f': {
        struct rp_raw_flow flow = {.ts_ns = ns,
                                   .id = (int64_t)e->legacy.id,
                                   .name = e->name,
                                   .track = to,
                                   .flags = e->legacy.encloses ? RP_FLOW_BIND_ENCLOSING : 0};
        RP_TRY(event_origin(r, e, (char)e->legacy.phase, 0, &flow.origin, err));
        return rp_builder_add_flow(r->t.builder, &flow, err);
    }
    case 'S':
    case 'T':
    case 'p':
    case 'F':
    case 'b':
    case 'n':
    case 'e': {
        /* Chrome's asynchronous events are joined by their ids, like those of its JSON format. */
        struct rp_raw raw = {.ts_ns = ns,
                             .dur_ns = RP_OPEN_NS,
                             .track = to,
                             .flags = RP_EVENT_ASYNC,
                             .has_link = e->legacy.has_id,
                             .link = (int64_t)e->legacy.id};
        return add_raw(r, e, &raw, (char)e->legacy.phase, 0, err);
    }
    default:
        r->ignored++;
        return RP_OK;
    }
}

static enum rp_code add_event(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                              const struct event *e, int64_t ns, struct rp_err *err)
{
    struct rp_arg value = {.type = e->has_double ? RP_ARG_F64 : RP_ARG_I64};
    uint32_t track;

    if (e->type == RP_PFT_COUNT) {
        RP_TRY(
            rp_perfetto_track(r, e->has_track ? e->track_uuid : packet->seq->track, &track, err));
        if (e->has_double)
            value.v.f = e->value;
        else
            value.v.i = e->count;
        return add_count(r, packet, track, ns, value, err);
    }

    /* The track is named by the event, by the defaults of its sequence, or is the thread's. */
    uint64_t uuid = e->has_track ? e->track_uuid : packet->seq->track;
    if (e->legacy.has_tid) {
        int64_t pid = e->legacy.pid;
        if (!e->legacy.has_pid) {
            RP_TRY(rp_perfetto_track(r, packet->seq->thread, &track, err));
            pid = r->tracks.at[track].pid;
        }
        RP_TRY(rp_perfetto_thread(r, pid, e->legacy.tid, &track, err));
    } else {
        if (!uuid && (!e->type || !e->has_track))
            uuid = packet->seq->thread;
        RP_TRY(rp_perfetto_track(r, uuid, &track, err));
    }
    RP_TRY(rp_perfetto_use_track(r, track, e->name, err));
    switch (e->type) {
    case RP_PFT_BEGIN:
    case RP_PFT_STATE:
        return add_slice(r, e, track, ns, (uint8_t)e->type, err);
    case RP_PFT_END:
        r->end_args += r->args.n > 0;
        return add_mark(r, track, ns, RP_PFT_END, e->name, err);
    case RP_PFT_INSTANT:
        return add_instant(r, e, r->tracks.at[track].track, ns, err);
    default:
        return add_legacy(r, e, track, ns, err);
    }
}

enum rp_code rp_perfetto_read_event(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                    struct rp_err *err)
{
    int64_t ns;

    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->data);
    struct rp_proto_item it;
    struct event e = {0};
    r->args.n = 0;
    while (rp_proto_next(&c, &it))
        if (it.number == RP_PFT_EVENT_EXTRA_COUNTER_VALUES ||
            it.number == RP_PFT_EVENT_EXTRA_DOUBLE_COUNTER_VALUES)
            e.has_extra = true;
        else if (fits_wire(&it))
            RP_TRY(parse_field(r, packet, &c, &it, &e, err));
    RP_TRY(rp_proto_finish(&c, err));

    /* The kind is that of the first category that is known. */
    rp_str key, sync;
    RP_TRY(rp_proto_trace_word(&r->t, "cuda_sync_kind", &key, err));
    for (size_t i = 0; i < r->args.n && !e.ncategories; i++)
        if (r->args.at[i].key == key) { /* PyTorch gives these events no category */
            RP_TRY(rp_proto_trace_word(&r->t, "cuda_sync", &sync, err));
            add_category(&e, sync);
        }
    for (size_t i = 0; i < e.ncategories && !e.is.kind; i++)
        RP_TRY(rp_perfetto_category(r, e.categories[i], &e.is, err));
    RP_TRY(event_time(r, packet, &e, &ns, err));
    RP_TRY(add_event(r, packet, &e, ns, err));
    if (!e.has_extra)
        return RP_OK;
    RP_TRY(add_extra_counts(r, packet, ns, false, err));
    return add_extra_counts(r, packet, ns, true, err);
}
