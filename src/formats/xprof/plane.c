/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a plane, which is a process, a device, or only metadata. Its tables of names come after the
 * lines that use them, so a plane is read twice: first the tables, skipping lines by their length,
 * then line by line. An event_metadata is read when the first event needs it.
 *
 * Processes are numbered as in XProf's trace viewer, so that a plane and the JSON made from it
 * agree: devices from 1, other devices from 501, the host 701.
 */
#include "formats/xprof/xplane.h"

#include <stdio.h>

#define LABEL_ARGS   64    /* of an event_metadata, which all its events share */
#define SMALL_IDS    65536 /* found without a hash */
#define LAST_PID     1000000
#define HOST_PID     701
#define OTHER_DEVICE 501

/* -------------------------------------------------------------------------- tables */

static enum rp_code put_id(struct rp_xplane_ids *ids, int64_t id, uint32_t place,
                           struct rp_err *err)
{
    size_t want = (size_t)id + 1;

    if ((uint64_t)id >= SMALL_IDS)
        return rp_map_put(&ids->large, (uint64_t)id, place, err);
    if (want > ids->small.n) {
        RP_TRY(rp_vec_reserve(&ids->small, want - ids->small.n, err));
        memset(ids->small.at + ids->small.n, 0xff, (want - ids->small.n) * sizeof *ids->small.at);
        ids->small.n = want;
    }
    ids->small.at[id] = place;
    return RP_OK;
}

static void forget_ids(struct rp_xplane_ids *ids)
{
    ids->small.n = 0;
    rp_map_release(&ids->large);
}

enum rp_code rp_xplane_key(struct rp_xplane *r, struct rp_bytes name, uint32_t *out,
                           struct rp_err *err)
{
    struct rp_xplane_key key = {0};
    uint32_t fresh = (uint32_t)r->keys.n;

    if (fresh >= UINT32_MAX >> 3)
        return rp_err_set(err, RP_LIMIT, "more than %u different statistics", fresh);
    RP_TRY(rp_proto_trace_intern(&r->t, name, &key.str, err));
    RP_TRY(rp_vec_reserve(&r->keys, 1, err));
    RP_TRY(rp_map_intern(&r->key_of, key.str, fresh, out, err));
    if (*out == fresh) {
        key.role = rp_xplane_role(name);
        r->keys.at[r->keys.n++] = key;
    }
    return RP_OK;
}

static enum rp_code add_stat(struct rp_xplane *r, int64_t id, struct rp_bytes name,
                             struct rp_err *err)
{
    struct rp_xplane_stat stat = {0};

    RP_TRY(rp_xplane_key(r, name, &stat.key, err));
    RP_TRY(put_id(&r->stat_of, id, (uint32_t)r->stats.n, err));
    return rp_vec_push(&r->stats, stat, err);
}

enum rp_code rp_xplane_stat(struct rp_xplane *r, int64_t id, uint32_t *out, struct rp_err *err)
{
    char name[40];
    struct rp_bytes text = {(const uint8_t *)name, 0};

    *out = rp_xplane_find(&r->stat_of, id);
    if (*out != RP_MAP_NONE)
        return RP_OK;
    text.n = (size_t)snprintf(name, sizeof name, "stat %lld", (long long)id);
    RP_TRY(add_stat(r, id, text, err));
    *out = (uint32_t)r->stats.n - 1;
    return RP_OK;
}

/* Reads an entry of a map: key and value. */
static enum rp_code read_entry(const struct rp_proto_cursor *up, const struct rp_proto_item *item,
                               int64_t *id, struct rp_bytes *message, struct rp_err *err)
{
    *id = 0;
    *message = (struct rp_bytes){item->bytes.at, 0};
    return rp_proto_read(rp_proto_enter(up, item),
                         (const struct rp_proto_slot[]){
                             {RP_XENTRY_KEY, .i64 = id}, {RP_XENTRY_VALUE, .bytes = message}, {0}},
                         err);
}

/* Makes a cursor over a message in the input. */
static struct rp_proto_cursor cursor_at(const struct rp_xplane *r, struct rp_bytes message)
{
    return rp_proto_cursor(message.at, message.n, (uint64_t)(message.at - r->t.bytes),
                           r->t.limits.depth > 4 ? r->t.limits.depth - 4 : 0);
}

static enum rp_code read_stat_metadata(struct rp_xplane *r, const struct rp_proto_cursor *up,
                                       const struct rp_proto_item *item, struct rp_err *err)
{
    struct rp_bytes message, name = {(const uint8_t *)"", 0};
    struct rp_proto_item it;
    int64_t id;

    RP_TRY(read_entry(up, item, &id, &message, err));
    struct rp_proto_cursor c = cursor_at(r, message);
    while (rp_proto_next_bytes(&c, RP_XMETA_STAT_NAME, &it))
        name = it.bytes;
    RP_TRY(rp_proto_finish(&c, err));
    return add_stat(r, id, name, err);
}

/* -------------------------------------------------------------------------- event_metadata */

static enum rp_code read_label(struct rp_xplane *r, struct rp_xplane_label *label,
                               struct rp_err *err)
{
    struct rp_proto_cursor c = cursor_at(r, label->message);
    struct rp_bytes name = {(const uint8_t *)"", 0}, display = name;
    struct rp_proto_item it;

    label->args = (uint32_t)r->label_args.n;
    label->keys = (uint32_t)r->label_keys.n;
    while (rp_proto_next(&c, &it))
        switch (RP_PROTO_KEY(it.number, it.wire)) {
        case RP_PROTO_KEY(RP_XMETA_EVENT_NAME, RP_WIRE_BYTES):
            name = it.bytes;
            break;
        case RP_PROTO_KEY(RP_XMETA_EVENT_DISPLAY_NAME, RP_WIRE_BYTES):
            display = it.bytes;
            break;
        case RP_PROTO_KEY(RP_XMETA_EVENT_STATS, RP_WIRE_BYTES): {
            /* A label becomes an argument of its own. */
            struct rp_xplane_value v;
            struct rp_arg arg;
            uint32_t stat;
            if (label->nargs != LABEL_ARGS) {
                RP_TRY(rp_xplane_read_value(&c, &it, &v, err));
                RP_TRY(rp_xplane_stat(r, v.metadata, &stat, err));
                RP_TRY(rp_xplane_argument(r, &v, &r->stats.at[stat], &arg, err));
                label->roles |= r->keys.at[r->stats.at[stat].key].role;
                label->nargs++;
                RP_TRY(rp_vec_push(&r->label_keys, r->stats.at[stat].key, err));
                RP_TRY(rp_vec_push(&r->label_args, arg, err));
            }
        } break;
        default:
            break;
        }
    RP_TRY(rp_proto_finish(&c, err));
    label->read = true;

    /* Shows the display name, and the full name if it differs. */
    bool both =
        name.n && display.n && (name.n != display.n || memcmp(name.at, display.at, name.n) != 0);
    label->name_kind = (uint8_t)rp_xplane_name_kind(name.n ? name : display, both, &r->signs);
    RP_TRY(rp_proto_trace_intern(&r->t, display.n ? display : name, &label->name, err));
    if (both)
        RP_TRY(rp_proto_trace_intern(&r->t, name, &label->long_name, err));
    return RP_OK;
}

enum rp_code rp_xplane_label(struct rp_xplane *r, int64_t id, uint32_t *out, struct rp_err *err)
{
    struct rp_xplane_label label = {.read = true};
    char name[40];

    *out = rp_xplane_find(&r->label_of, id);
    if (*out != RP_MAP_NONE) {
        if (r->labels.at[*out].read)
            return RP_OK;
        label = r->labels.at[*out];
        RP_TRY(read_label(r, &label, err));
        r->labels.at[*out] = label;
        return RP_OK;
    }
    snprintf(name, sizeof name, "event %lld", (long long)id);
    RP_TRY(rp_proto_trace_text(&r->t, name, &label.name, err));
    *out = (uint32_t)r->labels.n;
    RP_TRY(put_id(&r->label_of, id, *out, err));
    return rp_vec_push(&r->labels, label, err);
}

/* -------------------------------------------------------------------------- lines */

static int64_t wanted_pid(const struct rp_xplane *r)
{
    const struct rp_bytes *name = &r->plane_name;
    int64_t n = 0;

    if (r->plane_kind == RP_XPLANE_HOST)
        return HOST_PID;
    if (r->plane_kind == RP_XPLANE_DEVICE)
        return OTHER_DEVICE;
    if (r->plane_kind != RP_XPLANE_GPU && r->plane_kind != RP_XPLANE_TPU)
        return HOST_PID + 1;
    for (size_t i = sizeof "/device:GPU:" - 1; i < name->n && n < OTHER_DEVICE; i++) {
        if (name->at[i] < '0' || name->at[i] > '9')
            break;
        n = n * 10 + name->at[i] - '0';
    }
    return n + 1;
}

struct line_head {
    int64_t id, display_id;
    struct rp_bytes name, display_name;
};

/* Whether another line of the plane has the same id and another name. */
static enum rp_code id_is_taken(struct rp_xplane *r, int64_t id, struct rp_bytes name, bool *taken,
                                struct rp_err *err)
{
    uint32_t fresh = (uint32_t)r->line_names.n, found;

    *taken = false;
    RP_TRY(rp_vec_reserve(&r->line_names, 1, err));
    RP_TRY(rp_map_intern(&r->line_ids, (uint64_t)id, fresh, &found, err));
    if (found == fresh) {
        r->line_names.at[r->line_names.n++] = name;
        return RP_OK;
    }
    const struct rp_bytes *other = &r->line_names.at[found];
    *taken = other->n != name.n || memcmp(other->at, name.at, name.n) != 0;
    return RP_OK;
}

static enum rp_code open_line(struct rp_xplane *r, const struct line_head *head,
                              struct rp_xplane_line *line, struct rp_err *err)
{
    struct rp_bytes shown = head->display_name.n ? head->display_name : head->name;
    int64_t id = head->display_id ? head->display_id : head->id;
    rp_str name, plane;
    bool taken;

    if (!r->named) {
        /* Finds the process of the plane: its preferred number, or the next free one. */
        int64_t pid = wanted_pid(r);
        while (rp_map_get(&r->pids, (uint64_t)pid) != RP_MAP_NONE)
            if (++pid > LAST_PID)
                return rp_err_set(err, RP_LIMIT, "more than %d planes", LAST_PID);
        RP_TRY(rp_map_put(&r->pids, (uint64_t)pid, 0, err));
        RP_TRY(rp_builder_process(r->t.builder, pid, 0, &r->process, err));
    }
    RP_TRY(rp_proto_trace_intern(&r->t, shown, &name, err));
    RP_TRY(id_is_taken(r, id, shown, &taken, err));
    if (id == RP_ID_EMPTY) /* this id has another meaning for the builder */
        id++;
    RP_TRY(
        rp_builder_track(r->t.builder, r->process, id, taken ? name : 0, true, &line->track, err));
    line->kind = rp_xplane_line_kind(r->plane_kind, head->name.n ? head->name : shown);
    if (!r->named) {
        RP_TRY(rp_proto_trace_intern(&r->t, r->plane_name, &plane, err));
        RP_TRY(rp_proto_trace_name(&r->t, line->track, true, plane, err));
        r->named = true;
    }
    return shown.n ? rp_proto_trace_name(&r->t, line->track, false, name, err) : RP_OK;
}

static enum rp_code read_line(struct rp_xplane *r, const struct rp_proto_cursor *up,
                              const struct rp_proto_item *item, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(up, item);
    struct rp_xplane_line line = {0};
    struct rp_proto_item it;
    struct line_head head = {.name = {(const uint8_t *)"", 0},
                             .display_name = {(const uint8_t *)"", 0}};

    RP_TRY(rp_proto_read(
        c,
        (const struct rp_proto_slot[]){{RP_XLINE_ID, .i64 = &head.id},
                                       {RP_XLINE_NAME, .bytes = &head.name},
                                       {RP_XLINE_TIMESTAMP_NS, .i64 = &line.timestamp_ns},
                                       {RP_XLINE_DISPLAY_ID, .i64 = &head.display_id},
                                       {RP_XLINE_DISPLAY_NAME, .bytes = &head.display_name},
                                       {0}},
        err));
    RP_TRY(open_line(r, &head, &line, err));
    if (line.timestamp_ns > r->latest_ns)
        r->latest_ns = line.timestamp_ns;
    while (rp_proto_next_bytes(&c, RP_XLINE_EVENTS, &it)) {
        RP_TRY(rp_xplane_read_event(r, &line, &c, &it, err));
        if (++r->t.nevents % 8192 == 0)
            RP_TRY(rp_proto_trace_progress(&r->t, c.at, err));
    }
    return rp_proto_finish(&c, err);
}

/* -------------------------------------------------------------------------- the plane */

static enum rp_code read_tables(struct rp_xplane *r, struct rp_proto_cursor c, struct rp_err *err)
{
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it))
        switch (RP_PROTO_KEY(it.number, it.wire)) {
        case RP_PROTO_KEY(RP_XPLANE_NAME, RP_WIRE_BYTES):
            r->plane_name = it.bytes;
            break;
        case RP_PROTO_KEY(RP_XPLANE_EVENT_METADATA, RP_WIRE_BYTES): {
            struct rp_xplane_label label = {0};
            int64_t id;
            RP_TRY(read_entry(&c, &it, &id, &label.message, err));
            RP_TRY(put_id(&r->label_of, id, (uint32_t)r->labels.n, err));
            RP_TRY(rp_vec_push(&r->labels, label, err));
        } break;
        case RP_PROTO_KEY(RP_XPLANE_STAT_METADATA, RP_WIRE_BYTES):
            RP_TRY(read_stat_metadata(r, &c, &it, err));
            break;
        default:
            break;
        }
    return rp_proto_finish(&c, err);
}

enum rp_code rp_xplane_read_plane(struct rp_xplane *r, const struct rp_proto_cursor *up,
                                  const struct rp_proto_item *item, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(up, item);
    struct rp_proto_item it;

    r->plane_name = (struct rp_bytes){(const uint8_t *)"", 0};
    r->named = false;
    r->stats.n = r->labels.n = r->label_args.n = r->label_keys.n = r->line_names.n = 0;
    forget_ids(&r->stat_of);
    forget_ids(&r->label_of);
    rp_map_release(&r->line_ids);
    RP_TRY(read_tables(r, c, err));
    r->plane_kind = rp_xplane_plane_kind(r->plane_name);
    RP_TRY(rp_xplane_read_facts(r, &c, err));
    while (rp_proto_next_bytes(&c, RP_XPLANE_LINES, &it))
        RP_TRY(read_line(r, &c, &it, err));
    return rp_proto_finish(&c, err);
}
