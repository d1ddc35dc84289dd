/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads events and their statistics, which takes most of the time. A statistic becomes an argument
 * as it comes; the tree of argument lists leads to the shape, so that an event like earlier ones
 * needs only the table of its name. Texts that repeat are compared with the one before.
 *
 * Times are picoseconds after the start of the line. GPUs and hosts record whole nanoseconds. What
 * is finer (TPUs) is rounded to the nearest nanosecond, half to even, begin and end separately:
 * spans that touch, nest or follow each other still do. The exact values are then kept as arguments
 * offset_ps and duration_ps.
 */
#include "formats/xprof/xplane.h"

#include <math.h>
#include <stdio.h>

#define NODES_MAX (1u << 20) /* limit of the tree's nodes; beyond it shapes are looked up */
#define OFF_TREE  UINT32_MAX
#define WEEK_NS   INT64_C(604800000000000)

/* Fast path for the usual form of a statistic: its id, then one value. Returns false for another
   form. */
static inline bool read_plain_value(struct rp_bytes b, struct rp_xplane_value *out)
{
    const uint8_t *p = b.at, *end = b.at + b.n;
    uint64_t id;

    if (b.n < 4 || *p++ != RP_PROTO_KEY(RP_XSTAT_METADATA_ID, RP_WIRE_VARINT))
        return false;
    p = rp_proto_varint_at(p, end, &id);
    if (!p || end - p < 2)
        return false;
    uint32_t tag = *p++;
    p = rp_proto_varint_at(p, end, &out->value);
    if (!p)
        return false;
    out->metadata = (int64_t)id;
    out->type = (enum rp_xplane_type)(tag >> 3);
    switch (tag) {
    case RP_PROTO_KEY(RP_XSTAT_UINT64_VALUE, RP_WIRE_VARINT):
    case RP_PROTO_KEY(RP_XSTAT_INT64_VALUE, RP_WIRE_VARINT):
    case RP_PROTO_KEY(RP_XSTAT_REF_VALUE, RP_WIRE_VARINT):
        return p == end;
    case RP_PROTO_KEY(RP_XSTAT_STR_VALUE, RP_WIRE_BYTES):
    case RP_PROTO_KEY(RP_XSTAT_BYTES_VALUE, RP_WIRE_BYTES):
        out->bytes = (struct rp_bytes){p, (size_t)(end - p)};
        return out->value == (uint64_t)(end - p);
    default:
        return false;
    }
}

enum rp_code rp_xplane_read_value(const struct rp_proto_cursor *up,
                                  const struct rp_proto_item *item, struct rp_xplane_value *out,
                                  struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(up, item);
    struct rp_proto_item it;

    *out = (struct rp_xplane_value){.type = RP_XSTAT_NONE};
    while (rp_proto_next(&c, &it))
        switch (RP_PROTO_KEY(it.number, it.wire)) {
        case RP_PROTO_KEY(RP_XSTAT_METADATA_ID, RP_WIRE_VARINT):
            out->metadata = (int64_t)it.value;
            break;
        case RP_PROTO_KEY(RP_XSTAT_DOUBLE_VALUE, RP_WIRE_FIXED64):
        case RP_PROTO_KEY(RP_XSTAT_UINT64_VALUE, RP_WIRE_VARINT):
        case RP_PROTO_KEY(RP_XSTAT_INT64_VALUE, RP_WIRE_VARINT):
        case RP_PROTO_KEY(RP_XSTAT_STR_VALUE, RP_WIRE_BYTES):
        case RP_PROTO_KEY(RP_XSTAT_BYTES_VALUE, RP_WIRE_BYTES):
        case RP_PROTO_KEY(RP_XSTAT_REF_VALUE, RP_WIRE_VARINT):
            out->type = (enum rp_xplane_type)it.number;
            out->value = it.value;
            out->bytes = it.bytes;
            break;
        default:
            break;
        }
    return c.why ? rp_proto_finish(&c, err) : RP_OK;
}

/* -------------------------------------------------------------------------- arguments */

/* Bytes are mostly whole programs, so only their size is kept, under "<name>.size_bytes". */
static enum rp_code size_argument(struct rp_xplane *r, size_t n, struct rp_xplane_key *key,
                                  struct rp_arg *out, struct rp_err *err)
{
    char name[200];
    size_t len;

    if (!key->size_str) {
        const char *text = rp_builder_borrow_str(r->t.builder, key->str, &len);

        snprintf(name, sizeof name, "%.150s.size_bytes", text);
        RP_TRY(rp_proto_trace_text(&r->t, name, &key->size_str, err));
    }
    *out = (struct rp_arg){.key = key->size_str, .type = RP_ARG_I64, .v.i = (int64_t)n};
    return RP_OK;
}

/* Keeps values that the model cannot represent as a number: beyond 63 bits, not finite, or
   missing. */
static enum rp_code odd_argument(struct rp_xplane *r, const struct rp_xplane_value *v,
                                 struct rp_arg *out, struct rp_err *err)
{
    double f = rp_proto_double(v->value);
    char text[40] = "null";

    out->type = RP_ARG_RAW;
    if (v->type == RP_XSTAT_DOUBLE)
        snprintf(text, sizeof text, "\"%s\"", isnan(f) ? "NaN" : f < 0 ? "-Infinity" : "Infinity");
    else if (v->type == RP_XSTAT_UINT64)
        snprintf(text, sizeof text, "%llu", (unsigned long long)v->value);
    return rp_proto_trace_text(&r->t, text, &out->v.s, err);
}

static inline enum rp_code make_argument(struct rp_xplane *r, const struct rp_xplane_value *v,
                                         struct rp_xplane_stat *stat, struct rp_arg *out,
                                         struct rp_err *err)
{
    struct rp_xplane_key *key = &r->keys.at[stat->key];
    uint32_t other;

    *out = (struct rp_arg){.key = key->str, .type = RP_ARG_I64, .v.i = (int64_t)v->value};
    switch (v->type) {
    case RP_XSTAT_INT64:
        return RP_OK;
    case RP_XSTAT_UINT64:
        return out->v.i >= 0 ? RP_OK : odd_argument(r, v, out, err);
    case RP_XSTAT_REF:
        other = rp_xplane_find(&r->stat_of, (int64_t)v->value);
        if (other == RP_MAP_NONE)
            RP_TRY(rp_xplane_stat(r, (int64_t)v->value, &other, err));
        out->type = RP_ARG_STR;
        out->v.s = r->keys.at[r->stats.at[other].key].str;
        return RP_OK;
    case RP_XSTAT_STR:
        out->type = RP_ARG_STR;
        if (!stat->memo.text.at || stat->memo.text.n != v->bytes.n ||
            memcmp(stat->memo.text.at, v->bytes.at, v->bytes.n) != 0) {
            RP_TRY(rp_proto_trace_intern(&r->t, v->bytes, &stat->memo.str, err));
            stat->memo.text = v->bytes;
        }
        out->v.s = stat->memo.str;
        return RP_OK;
    case RP_XSTAT_DOUBLE:
        out->type = RP_ARG_F64;
        out->v.f = rp_proto_double(v->value);
        return isfinite(out->v.f) ? RP_OK : odd_argument(r, v, out, err);
    case RP_XSTAT_BYTES:
        return size_argument(r, v->bytes.n, key, out, err);
    default:
        return odd_argument(r, v, out, err);
    }
}

enum rp_code rp_xplane_argument(struct rp_xplane *r, const struct rp_xplane_value *v,
                                struct rp_xplane_stat *stat, struct rp_arg *out, struct rp_err *err)
{
    return make_argument(r, v, stat, out, err);
}

/* Appends the argument to those of the event and advances its tree node. */
static inline enum rp_code push_argument(struct rp_xplane *r, uint32_t *node, uint32_t key,
                                         const struct rp_arg *arg, struct rp_err *err)
{
    bool is_size = arg->key != r->keys.at[key].str;
    uint32_t id = key << 3 | (uint32_t)is_size << 2 | arg->type;

    RP_TRY(rp_vec_push(&r->args, *arg, err));
    if (*node == OFF_TREE)
        return RP_OK;
    uint32_t hot = r->nodes.at[*node].hot;
    if (hot && r->nodes.at[hot].id == id) {
        *node = hot;
        return RP_OK;
    }

    /* The child of a node for one more argument. */
    struct rp_xplane_node fresh = {.id = id};
    uint32_t place = (uint32_t)r->nodes.n, found;
    if (place >= NODES_MAX && rp_map_get(&r->child_of, (uint64_t)*node << 32 | id) == RP_MAP_NONE) {
        *node = OFF_TREE;
        return RP_OK;
    }
    RP_TRY(rp_vec_reserve(&r->nodes, 1, err));
    RP_TRY(rp_map_intern(&r->child_of, (uint64_t)*node << 32 | id, place, &found, err));
    if (found == place)
        r->nodes.at[r->nodes.n++] = fresh;
    r->nodes.at[*node].hot = found;
    *node = found;
    return RP_OK;
}

static enum rp_code push_number(struct rp_xplane *r, uint32_t *node, uint32_t key, int64_t number,
                                struct rp_err *err)
{
    struct rp_arg arg = {.key = r->keys.at[key].str, .type = RP_ARG_I64, .v.i = number};

    if (r->keys.at[key].seen == r->serial) /* the event has a statistic of that name already */
        return RP_OK;
    return push_argument(r, node, key, &arg, err);
}

static enum rp_code find_shape(struct rp_xplane *r, uint32_t place, uint16_t *shape,
                               struct rp_err *err)
{
    if (!r->args.n) {
        *shape = 0;
        return RP_OK;
    }
    if (place == OFF_TREE)
        return rp_builder_shape(r->t.builder, r->args.at, (uint32_t)r->args.n, shape, err);
    struct rp_xplane_node *node = &r->nodes.at[place];
    if (!node->has_shape) {
        RP_TRY(rp_builder_shape(r->t.builder, r->args.at, (uint32_t)r->args.n, &node->shape, err));
        node->has_shape = true;
    }
    *shape = node->shape;
    return RP_OK;
}

/* -------------------------------------------------------------------------- one event */

struct event {
    int64_t metadata, offset_ps, duration_ps, occurrences;
    int64_t correlation, produced, consumed; /* ids of arrows */
    uint64_t produced_type, consumed_type;
    bool has_correlation;
    bool aggregated; /* Reads a statistic that determines the kind of the event or what it belongs
                        to. */
    uint16_t roles;
    uint32_t node;
};

static enum rp_code add_stat(struct rp_xplane *r, struct event *e, const struct rp_proto_cursor *up,
                             const struct rp_proto_item *item, struct rp_err *err)
{
    struct rp_xplane_value v;
    struct rp_arg arg;

    if (!read_plain_value(item->bytes, &v))
        RP_TRY(rp_xplane_read_value(up, item, &v, err));
    uint32_t place = rp_xplane_find(&r->stat_of, v.metadata);
    if (place == RP_MAP_NONE)
        RP_TRY(rp_xplane_stat(r, v.metadata, &place, err));
    uint32_t name = r->stats.at[place].key;
    RP_TRY(make_argument(r, &v, &r->stats.at[place], &arg, err));
    struct rp_xplane_key *key = &r->keys.at[name];
    if (key->role) {
        /* A statistic that determines the kind of the event or what it belongs to. */
        bool number = v.type == RP_XSTAT_INT64 || v.type == RP_XSTAT_UINT64;
        if (key->role < RP_XPLANE_ROLES || number) {
            e->roles |= key->role;
            switch (key->role) {
            case RP_XPLANE_CORRELATES:
                e->has_correlation = number;
                e->correlation = (int64_t)v.value;
                break;
            case RP_XPLANE_PRODUCER_TYPE:
                e->produced_type = v.value;
                break;
            case RP_XPLANE_PRODUCER:
                e->produced = (int64_t)v.value;
                break;
            case RP_XPLANE_CONSUMER_TYPE:
                e->consumed_type = v.value;
                break;
            case RP_XPLANE_CONSUMER:
                e->consumed = (int64_t)v.value;
                break;
            default:
                break;
            }
        }
    }
    if (key->seen == r->serial) {
        /* If a statistic occurs twice, the last one wins. */
        struct rp_arg *old = &r->args.at[key->place];
        r->t.health->duplicate_keys++;
        if (old->type != arg.type || old->key != arg.key)
            e->node = OFF_TREE;
        *old = arg;
        return RP_OK;
    }
    key->seen = r->serial;
    key->place = (uint32_t)r->args.n;
    return push_argument(r, &e->node, name, &arg, err);
}

static enum rp_code read_fields(struct rp_xplane *r, struct event *e,
                                const struct rp_proto_cursor *up, const struct rp_proto_item *item,
                                struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(up, item);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it))
        switch (RP_PROTO_KEY(it.number, it.wire)) {
        case RP_PROTO_KEY(RP_XEVENT_METADATA_ID, RP_WIRE_VARINT):
            e->metadata = (int64_t)it.value;
            break;
        case RP_PROTO_KEY(RP_XEVENT_OFFSET_PS, RP_WIRE_VARINT):
            e->offset_ps = (int64_t)it.value;
            e->aggregated = false;
            break;
        case RP_PROTO_KEY(RP_XEVENT_DURATION_PS, RP_WIRE_VARINT):
            e->duration_ps = (int64_t)it.value;
            break;
        case RP_PROTO_KEY(RP_XEVENT_STATS, RP_WIRE_BYTES):
            RP_TRY(add_stat(r, e, &c, &it, err));
            break;
        case RP_PROTO_KEY(RP_XEVENT_NUM_OCCURRENCES, RP_WIRE_VARINT):
            e->occurrences = (int64_t)it.value;
            e->aggregated = true;
            break;
        default:
            break;
        }
    return c.why ? rp_proto_finish(&c, err) : RP_OK;
}

/* Adds the statistics of the event_metadata, unless the event has its own. */
static enum rp_code add_label_args(struct rp_xplane *r, struct event *e,
                                   const struct rp_xplane_label *label, struct rp_err *err)
{
    for (uint32_t i = 0; i < label->nargs; i++) {
        uint32_t key = r->label_keys.at[label->keys + i];

        if (r->keys.at[key].seen == r->serial)
            continue;
        r->keys.at[key].seen = r->serial;
        RP_TRY(push_argument(r, &e->node, key, &r->label_args.at[label->args + i], err));
    }
    if (label->long_name && r->keys.at[r->long_name_key].seen != r->serial) {
        struct rp_arg arg = {
            .key = r->keys.at[r->long_name_key].str, .type = RP_ARG_STR, .v.s = label->long_name};

        return push_argument(r, &e->node, r->long_name_key, &arg, err);
    }
    return RP_OK;
}

/* Rounds picoseconds to the nearest nanosecond, half to even. */
static rp_wide_ns round_ps(rp_wide_ns ps)
{
    rp_wide_ns ns = ps / 1000;
    int rest = (int)(ps % 1000);

    if (rest < 0) {
        ns--;
        rest += 1000;
    }
    return ns + (rest > 500 || (rest == 500 && (ns & 1)));
}

static enum rp_code set_times(struct rp_xplane *r, struct event *e, int64_t line_ns,
                              struct rp_raw *raw, struct rp_err *err)
{
    struct rp_health *h = r->t.health;
    rp_wide_ns begin = (rp_wide_ns)line_ns * 1000 + e->offset_ps;
    bool odd_begin = e->offset_ps % 1000 != 0, odd_dur = e->duration_ps % 1000 != 0;

    if (!odd_begin && !odd_dur) {
        raw->ts_ns = rp_proto_trace_clamp(&r->t, (rp_wide_ns)line_ns + e->offset_ps / 1000);
        raw->dur_ns = e->duration_ps / 1000;
    } else {
        raw->ts_ns = rp_proto_trace_clamp(&r->t, round_ps(begin));
        int64_t end = rp_proto_trace_clamp(&r->t, round_ps(begin + e->duration_ps));
        raw->dur_ns = end - raw->ts_ns;
        raw->flags |= RP_EVENT_ROUNDED;
        h->rounded_time += odd_begin + odd_dur;
        r->subnano++;
        RP_TRY(push_number(r, &e->node, r->offset_key, e->offset_ps, err));
        RP_TRY(push_number(r, &e->node, r->duration_key, e->duration_ps, err));
    }
    h->negative_dur += raw->dur_ns < 0;
    h->absurd_dur += raw->dur_ns > WEEK_NS;
    return RP_OK;
}

static enum rp_code find_origin(struct rp_xplane *r, enum rp_xplane_line_kind line, uint8_t kind,
                                uint16_t *out, struct rp_err *err)
{
    uint32_t *known = &r->origins[line][kind];

    if (!*known) {
        struct rp_origin origin = {.phase = kind == RP_KIND_INSTANT    ? 'i'
                                            : kind == RP_KIND_COUNTER  ? 'C'
                                            : kind == RP_KIND_METADATA ? 'M'
                                                                       : 'X',
                                   .kind = kind};

        if (origin.phase == 'X')
            origin.flags = rp_xplane_origin_flags(line, kind);
        RP_TRY(rp_builder_origin(r->t.builder, &origin, out, err));
        *known = *out + 1u;
    }
    *out = (uint16_t)(*known - 1);
    return RP_OK;
}

/* A span of zero length on a thread was recorded as an instant, because its clock has
   nanoseconds. */
static uint8_t kind_of(const struct rp_xplane *r, const struct event *e,
                       enum rp_xplane_line_kind line, const struct rp_xplane_label *label)
{
    uint8_t kind = r->kinds[line][label->name_kind][(e->roles | label->roles) % RP_XPLANE_ROLES];

    if (e->aggregated)
        return RP_KIND_METADATA;
    if (line == RP_XPLANE_THREAD && e->duration_ps == 0 && kind != RP_KIND_RUNTIME)
        return RP_KIND_INSTANT;
    return kind;
}

/* Adds the start or the end of an arrow, which is a hand-off of work between threads. */
static enum rp_code add_arrow(struct rp_xplane *r, const struct rp_raw *raw, uint64_t type,
                              int64_t id, bool end, struct rp_err *err)
{
    size_t place = type < RP_XPLANE_CONTEXTS ? (size_t)type : RP_XPLANE_CONTEXTS;
    struct rp_raw_flow flow = {.ts_ns = raw->ts_ns,
                               .id = id,
                               .track = raw->track,
                               .flags = end ? RP_FLOW_BIND_ENCLOSING : 0};
    struct rp_origin origin = {.phase = end ? 'f' : 's', .has_category = 1};
    uint32_t *known = &r->arrows[place][end];

    RP_TRY(rp_proto_trace_word(&r->t, rp_xplane_context_name(type), &flow.name, err));
    if (!*known) {
        origin.category = flow.name;
        RP_TRY(rp_builder_origin(r->t.builder, &origin, &flow.origin, err));
        *known = flow.origin + 1u;
    }
    flow.origin = (uint16_t)(*known - 1);
    return rp_builder_add_flow(r->t.builder, &flow, err);
}

enum rp_code rp_xplane_read_event(struct rp_xplane *r, const struct rp_xplane_line *line,
                                  const struct rp_proto_cursor *up,
                                  const struct rp_proto_item *item, struct rp_err *err)
{
    struct event e = {0};

    r->args.n = 0;
    if (++r->serial == 0) /* after a wrap-around, marks of old events would look current */
        return rp_err_set(err, RP_LIMIT, "more than %u events", UINT32_MAX);
    RP_TRY(read_fields(r, &e, up, item, err));
    uint32_t place = rp_xplane_find(&r->label_of, e.metadata);
    if (place == RP_MAP_NONE || !r->labels.at[place].read)
        RP_TRY(rp_xplane_label(r, e.metadata, &place, err));
    struct rp_raw raw = {.name = r->labels.at[place].name,
                         .track = line->track,
                         .has_link = e.has_correlation,
                         .link = e.correlation};
    uint8_t kind = kind_of(r, &e, line->kind, &r->labels.at[place]);
    RP_TRY(add_label_args(r, &e, &r->labels.at[place], err));
    if (e.aggregated) {
        /* A total over many occurrences has no time, so it is kept as metadata of its thread. */
        r->aggregated++;
        raw.ts_ns = RP_NO_TS;
        raw.dur_ns = RP_OPEN_NS;
        RP_TRY(push_number(r, &e.node, r->occurrences_key, e.occurrences, err));
        RP_TRY(push_number(r, &e.node, r->duration_key, e.duration_ps, err));
    } else
        RP_TRY(set_times(r, &e, line->timestamp_ns, &raw, err));
    if (kind == RP_KIND_INSTANT || kind == RP_KIND_COUNTER)
        raw.dur_ns = RP_OPEN_NS;
    RP_TRY(find_origin(r, line->kind, kind, &raw.origin, err));
    RP_TRY(find_shape(r, e.node, &raw.shape, err));
    raw.args = r->args.at;
    raw.nargs = (uint32_t)r->args.n;
    if (e.roles >= RP_XPLANE_ROLES && !e.aggregated) {
        if (e.roles & RP_XPLANE_CONSUMER)
            RP_TRY(add_arrow(r, &raw, e.consumed_type, e.consumed, true, err));
        if (e.roles & RP_XPLANE_PRODUCER)
            RP_TRY(add_arrow(r, &raw, e.produced_type, e.produced, false, err));
    }
    return rp_builder_add(r->t.builder, &raw, err);
}
