/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads TensorFlow's RunMetadata (RunOptions with FULL_TRACE), and the StepStats inside it alone. A
 * device is a process, named as in TensorFlow's Timeline. Rows have no thread, so they are assigned
 * to lanes without overlap, as the Timeline does: in file order, each to the first lane that is
 * free before its microsecond. Transfers (RecvTensor) are in an entry of their own of the same
 * device and get lanes of their own. A device may occur several times. Times are since 1970.
 */
#include "formats/tensorflow/runmeta.h"

#include "abi/proto/runmeta.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/vec.h"

#include <stdio.h>
#include <stdlib.h>

#define LANES_MAX  256
#define RECV_LANES 1000000 /* thread number of the first lane of transfers */

/* -------------------------------------------------------------------------- sniffing */

/* Enters the message in the first field of a message; it may extend past the head. False if the
   head does not begin with a nested field 1. */
static bool enter_first_field(struct rp_bytes *b)
{
    const uint8_t *end = b->at + b->n;
    uint64_t len;

    if (b->n < 2 || b->at[0] != '\n')
        return false;
    const uint8_t *p = rp_proto_varint_at(b->at + 1, end, &len);
    if (!p || len < 2)
        return false;
    *b = (struct rp_bytes){p, len < (uint64_t)(end - p) ? (size_t)len : (size_t)(end - p)};
    return true;
}

/* Whether a row has the name of its node, and times as numbers. */
static bool fits_row(struct rp_bytes b)
{
    struct rp_proto_cursor c = rp_proto_cursor(b.at, b.n, 0, 8);
    struct rp_proto_item it;
    bool node = false, time = false;

    while (rp_proto_next(&c, &it)) {
        bool nested = it.number == RP_RUNMETA_NODE_NODE_NAME ||
                      it.number == RP_RUNMETA_NODE_MEMORY || it.number == RP_RUNMETA_NODE_OUTPUT ||
                      it.number == RP_RUNMETA_NODE_TIMELINE_LABEL ||
                      it.number == RP_RUNMETA_NODE_REFERENCED_TENSOR ||
                      it.number == RP_RUNMETA_NODE_MEMORY_STATS;

        if (it.number > RP_RUNMETA_NODE_SCHEDULED_NANOS ||
            it.wire != (nested ? (uint32_t)RP_WIRE_BYTES : (uint32_t)RP_WIRE_VARINT))
            return false;
        node = node || (it.number == RP_RUNMETA_NODE_NODE_NAME && rp_proto_is_text(it.bytes));
        time = time || it.number == RP_RUNMETA_NODE_ALL_START_MICROS ||
               it.number == RP_RUNMETA_NODE_ALL_START_NANOS;
    }
    return node && time;
}

/* Whether this is a device, "/job:x/...", which is not a valid name of a node or module, followed
   by its rows. */
static bool fits_device(struct rp_bytes b)
{
    struct rp_proto_cursor c = rp_proto_cursor(b.at, b.n, 0, 8);
    struct rp_proto_item it;

    if (!rp_proto_next(&c, &it) || it.number != RP_RUNMETA_DEVICE_DEVICE ||
        it.wire != RP_WIRE_BYTES || !it.bytes.n || it.bytes.at[0] != '/' ||
        !rp_proto_is_text(it.bytes))
        return false;
    struct rp_bytes name = it.bytes;
    if (!rp_proto_next(&c, &it)) /* a device without rows */
        return !c.why && (rp_bytes_begin(name, "/job:") || rp_bytes_begin(name, "/device:"));
    return it.number == RP_RUNMETA_DEVICE_NODE_STATS && it.wire == RP_WIRE_BYTES &&
           fits_row(it.bytes);
}

/* How deep the first device is nested: 2 in a RunMetadata, 1 in bare StepStats; 0: neither. */
static unsigned device_depth(const uint8_t *head, size_t n)
{
    struct rp_bytes b = {head, n};

    for (unsigned depth = 1; depth <= 2; depth++) {
        if (!enter_first_field(&b))
            return 0;
        if (fits_device(b))
            return depth;
    }
    return 0;
}

static enum rp_sniff runmeta_sniff(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return n && device_depth(head, n) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

/* -------------------------------------------------------------------------- devices */

struct lanes {
    int64_t end_us[LANES_MAX];
    rp_track track[LANES_MAX];
    uint32_t n;
};

struct device {
    struct rp_bytes name;
    uint32_t process, ntracks;
    enum rp_runmeta_device kind;
};

struct runmeta_reader {
    struct rp_proto_trace t;
    RP_VEC(struct device) devices;
    struct rp_map by_name;       /* from the hash of a device's name to the device */
    struct lanes ops, transfers; /* of the current entry */
    uint32_t device;             /* index in devices for the current entry */
    uint64_t crowded;            /* number of rows without a free lane */
    bool cut; /* The process of a device; Timeline gives them the odd numbers 1, 3, 5, because even
                 ones show tensors. */
};

static enum rp_runmeta_device kind_of_device(struct rp_bytes name)
{
    const char *all = "/stream:all";

    if (memmem(name.at, name.n, all, strlen(all)) || memmem(name.at, name.n, "/memcpy", 7))
        return RP_RUNMETA_COPIED;
    return memmem(name.at, name.n, "/stream:", 8) ? RP_RUNMETA_STREAM : RP_RUNMETA_HOST;
}

/* Opens the track of a thread number, with its name; the first one of a process also names the
   process. */
static enum rp_code open_track(struct runmeta_reader *r, int64_t tid, const char *name,
                               rp_track *out, struct rp_err *err)
{
    struct device *d = &r->devices.at[r->device];
    char text[600];
    rp_str id;

    RP_TRY(rp_builder_track(r->t.builder, d->process, tid, 0, true, out, err));
    if (!d->ntracks++) {
        snprintf(text, sizeof text, "%.*s Compute", (int)(d->name.n < 500 ? d->name.n : 500),
                 (const char *)d->name.at);
        RP_TRY(rp_proto_trace_text(&r->t, text, &id, err));
        RP_TRY(rp_proto_trace_name(&r->t, *out, true, id, err));
    }
    if (!name)
        return RP_OK;
    RP_TRY(rp_proto_trace_text(&r->t, name, &id, err));
    return rp_proto_trace_name(&r->t, *out, false, id, err);
}

static enum rp_code find_track(struct runmeta_reader *r, const struct rp_runmeta_row *row,
                               rp_track *out, struct rp_err *err)
{
    if (row->thread_id)
        return open_track(r, row->thread_id, NULL, out, err);

    /* The first lane that was free before the row began. */
    bool recv = rp_runmeta_is_recv(row);
    struct lanes *lanes = recv ? &r->transfers : &r->ops;
    char name[40];
    uint32_t i;
    for (i = 0; i < lanes->n && row->start_us <= lanes->end_us[i]; i++)
        ;
    if (i == LANES_MAX) {
        r->crowded++;
        i--;
    } else if (i == lanes->n) {
        snprintf(name, sizeof name, "%s %u", recv ? "transfers" : "lane", i);
        RP_TRY(open_track(r, (recv ? RECV_LANES : 0) + (int64_t)i, name, &lanes->track[i], err));
        lanes->n++;
    }
    if (__builtin_add_overflow(row->start_us, row->end_rel_us, &lanes->end_us[i]))
        lanes->end_us[i] = INT64_MAX;
    *out = lanes->track[i];
    return RP_OK;
}

/* -------------------------------------------------------------------------- reading */

/* Reads the next field. If it extends past the end of the file, the file is truncated: the cursor
   fails, the field is the part that exists, and the rows before it are complete. */
static bool next_field(struct runmeta_reader *r, struct rp_proto_cursor *c,
                       struct rp_proto_item *it)
{
    const uint8_t *at = c->at, *end = c->end;
    uint64_t tag, len;

    if (rp_proto_next(c, it))
        return true;
    if (!c->why || end != r->t.bytes + r->t.n)
        return false;
    at = rp_proto_varint_at(at, end, &tag);
    if (!at || (tag & 7) != RP_WIRE_BYTES || tag > UINT32_MAX)
        return false;
    at = rp_proto_varint_at(at, end, &len);
    if (!at || len <= (uint64_t)(end - at))
        return false;
    *it = (struct rp_proto_item){
        .number = (uint32_t)(tag >> 3), .wire = RP_WIRE_BYTES, .bytes = {at, (size_t)(end - at)}};
    r->cut = true;
    return true;
}

/* The name precedes the rows in files of TensorFlow, but any order is valid. Damage is reported
   when the rows are read. */
static enum rp_code read_device_name(struct runmeta_reader *r, struct rp_proto_cursor c,
                                     struct rp_err *err)
{
    struct rp_bytes name = {(const uint8_t *)"", 0};
    struct rp_proto_item it;

    while (rp_proto_next_bytes(&c, RP_RUNMETA_DEVICE_DEVICE, &it))
        name = it.bytes;
    r->ops.n = r->transfers.n = 0;

    /* The process of a device; Timeline gives them the odd numbers 1, 3, 5, because even ones show
       tensors. */
    struct device fresh = {.name = name, .kind = kind_of_device(name)};
    uint64_t key = rp_hash_bytes(name.at, name.n);
    for (; (r->device = rp_map_get(&r->by_name, key)) != RP_MAP_NONE; key = rp_hash_join(key, 1)) {
        const struct rp_bytes *known = &r->devices.at[r->device].name;
        if (known->n == name.n && memcmp(known->at, name.at, name.n) == 0)
            return RP_OK;
    }
    r->device = (uint32_t)r->devices.n;
    if (r->devices.n >= (size_t)LANES_MAX * 16)
        return rp_err_set(err, RP_LIMIT, "more than %d devices", LANES_MAX * 16);
    RP_TRY(rp_builder_process(r->t.builder, 1 + 2 * (int64_t)r->devices.n, 0, &fresh.process, err));
    RP_TRY(rp_map_put(&r->by_name, key, r->device, err));
    return rp_vec_push(&r->devices, fresh, err);
}

static enum rp_code read_thread_name(struct runmeta_reader *r, const struct rp_proto_cursor *up,
                                     const struct rp_proto_item *item, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(up, item);
    struct rp_bytes name = {(const uint8_t *)"", 0};
    struct rp_proto_item it;
    int64_t tid = 0;
    rp_track track;
    rp_str id;

    while (rp_proto_next(&c, &it))
        if (it.number == RP_RUNMETA_THREAD_KEY && it.wire == RP_WIRE_VARINT)
            tid = (uint32_t)it.value;
        else if (it.number == RP_RUNMETA_THREAD_VALUE && it.wire == RP_WIRE_BYTES)
            name = it.bytes;
    RP_TRY(rp_proto_finish(&c, err));
    if (!tid)
        return RP_OK;
    RP_TRY(open_track(r, tid, NULL, &track, err));
    RP_TRY(rp_proto_trace_intern(&r->t, name, &id, err));
    return rp_proto_trace_name(&r->t, track, false, id, err);
}

static enum rp_code read_device(struct runmeta_reader *r, const struct rp_proto_cursor *up,
                                const struct rp_proto_item *item, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(up, item);
    struct rp_runmeta_row row;
    struct rp_proto_item it;
    rp_track track;

    RP_TRY(read_device_name(r, c, err));
    while (rp_proto_next(&c, &it)) {
        if (it.wire != RP_WIRE_BYTES)
            continue;
        if (it.number == RP_RUNMETA_DEVICE_THREAD_NAMES)
            RP_TRY(read_thread_name(r, &c, &it, err));
        if (it.number != RP_RUNMETA_DEVICE_NODE_STATS)
            continue;
        RP_TRY(rp_runmeta_read_row(&c, &it, &row, err));
        RP_TRY(find_track(r, &row, &track, err));
        RP_TRY(rp_runmeta_add_row(&r->t, &row, track, r->devices.at[r->device].kind, err));
        if (r->t.nevents % 8192 == 0)
            RP_TRY(rp_proto_trace_progress(&r->t, c.at, err));
    }
    return rp_proto_finish(&c, err);
}

static enum rp_code read_stats(struct runmeta_reader *r, struct rp_proto_cursor c,
                               struct rp_err *err)
{
    struct rp_proto_item it;

    while (next_field(r, &c, &it))
        if (it.number == RP_RUNMETA_STATS_DEV_STATS && it.wire == RP_WIRE_BYTES)
            RP_TRY(read_device(r, &c, &it, err));
    return rp_proto_finish(&c, err);
}

/* Graphs and cost models of a RunMetadata are ignored, with a warning. */
static enum rp_code read_metadata(struct runmeta_reader *r, struct rp_proto_cursor c,
                                  struct rp_err *err)
{
    uint32_t graphs = 0;
    struct rp_proto_item it;

    while (next_field(r, &c, &it)) {
        if (it.wire != RP_WIRE_BYTES)
            continue;
        graphs +=
            it.number == RP_RUNMETA_PARTITION_GRAPHS || it.number == RP_RUNMETA_FUNCTION_GRAPHS;
        if (it.number == RP_RUNMETA_STEP_STATS)
            RP_TRY(read_stats(r, rp_proto_enter(&c, &it), err));
    }
    RP_TRY(rp_proto_finish(&c, err));
    if (!graphs)
        return RP_OK;
    return rp_builder_warn(r->t.builder, err, "%u graphs in the file were ignored", graphs);
}

/* The message is truncated or damaged: the rows that were read before become the trace. */
static enum rp_code end_truncated(struct runmeta_reader *r, enum rp_code code, struct rp_err *err)
{
    struct rp_err why = RP_ERR_INIT;

    if (err)
        why = *err;
    if (code != RP_FORMAT || !r->t.nevents || (!r->cut && !r->t.options->salvage))
        return code;
    if (r->cut) {
        r->t.health->truncated = 1;
        return rp_builder_warn(r->t.builder, err, "the file is truncated at byte %zu", r->t.n);
    }
    r->t.health->salvaged = 1;
    return rp_builder_warn(r->t.builder, err,
                           "the file is damaged; everything before the damage was read: %.*s",
                           (int)strcspn(why.text, "\n"), why.text);
}

static enum rp_code read_runmeta_file(struct runmeta_reader *r, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(r->t.bytes, r->t.n, 0, r->t.limits.depth);
    enum rp_code code =
        device_depth(r->t.bytes, r->t.n) == 1 ? read_stats(r, c, err) : read_metadata(r, c, err);

    if (code != RP_OK)
        RP_TRY(end_truncated(r, code, err));
    if (r->crowded)
        RP_TRY(rp_builder_warn(r->t.builder, err,
                               "%llu rows overlap %d others: they share the last lane",
                               (unsigned long long)r->crowded, LANES_MAX));
    r->t.trace->has_base = 1;
    return rp_proto_trace_text(&r->t, "tensorflow", &r->t.trace->framework, err);
}

static enum rp_code read_runmeta(struct rp_input *in, const struct rp_read_options *options,
                                 struct rp_import *to, struct rp_err *err)
{
    struct runmeta_reader *r = calloc(1, sizeof *r);
    int64_t begin_ns = rp_clock_ns();

    RP_TRY(rp_err_need(r, err, "reading a trace"));
    enum rp_code code = rp_proto_trace_init(&r->t, in, options, "runmetadata", err);
    if (code == RP_OK)
        code = read_runmeta_file(r, err);
    if (code == RP_OK)
        code = rp_proto_trace_finish(&r->t, to, begin_ns, err);
    rp_proto_trace_release(&r->t);
    rp_vec_release(&r->devices);
    rp_map_release(&r->by_name);
    free(r);
    return code;
}

const struct rp_format rp_format_runmeta = {
    .name = "runmetadata",
    .summary = "RunMetadata or StepStats of a TensorFlow session",
    .files = "*.pb",
    .written_by = "TensorFlow 1 sessions, FULL_TRACE",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = runmeta_sniff,
    .read = read_runmeta,
};
