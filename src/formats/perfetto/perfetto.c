/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Perfetto's traces, which are lists of packets. There are two passes over the file: the
 * first one reads clocks, descriptors of tracks and compressed packets, which may come after what
 * needs them; the second one reads everything else. Packets belong to sequences, each of one
 * writer, which interns texts: a packet that needs such state is ignored where the beginning of its
 * sequence was lost.
 *
 * The packets that are read are track events with their old forms, GPU render stages and counters,
 * samples of call stacks, and metadata. Packets of other data sources (the kernel's scheduler,
 * memory and power of phones) are counted only.
 */
#include "formats/perfetto/perfetto.h"
#include "base/clock.h"
#include "base/each.h"
#include "io/escaped.h"
#include "io/inflate.h"

#include <stdlib.h>

#define PROGRESS_PACKETS 8192

/* ------------------------------------------------------------------ sniffing */

/* How much the fields look like those of a packet: -1: not at all, 0: possible, 1: likely, 2:
   certain. */
static int fits_packet(struct rp_bytes b, bool whole)
{
    struct rp_proto_cursor c = rp_proto_cursor(b.at, b.n, 0, 4);
    bool data = false, sequence = false;
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        bool number = it.number == 3 || it.number == RP_PFT_PACKET_TIMESTAMP ||
                      it.number == RP_PFT_PACKET_TRUSTED_PACKET_SEQUENCE_ID ||
                      it.number == RP_PFT_PACKET_SEQUENCE_FLAGS ||
                      it.number == RP_PFT_PACKET_INCREMENTAL_STATE_CLEARED ||
                      it.number == RP_PFT_PACKET_PREVIOUS_PACKET_DROPPED ||
                      it.number == RP_PFT_PACKET_TIMESTAMP_CLOCK_ID || it.number == 79 ||
                      it.number == 87 || it.number == 98;

        if (it.number > 200 ||
            it.wire != (number ? (uint32_t)RP_WIRE_VARINT : (uint32_t)RP_WIRE_BYTES))
            return -1;
        data = data || it.number == RP_PFT_PACKET_CLOCK_SNAPSHOT ||
               it.number == RP_PFT_PACKET_TRACK_EVENT ||
               (it.number >= RP_PFT_PACKET_PROCESS_DESCRIPTOR && it.wire == RP_WIRE_BYTES);
        sequence = sequence || it.number == RP_PFT_PACKET_TRUSTED_PACKET_SEQUENCE_ID;
    }
    if (whole && c.why)
        return -1;
    return data && sequence ? 2 : data || sequence;
}

static enum rp_sniff perfetto_sniff(const uint8_t *head, size_t n, const char *file)
{
    const uint8_t *at = head, *end = head + n;
    int fit, best = 0;
    uint64_t length;

    (void)file;
    for (unsigned i = 0; i < 64 && at < end; i++) {
        if (*at != RP_PROTO_KEY(RP_PFT_TRACE_PACKET, RP_WIRE_BYTES))
            return RP_SNIFF_NO;
        at = rp_proto_varint_at(at + 1, end, &length);
        if (!at)
            break;
        bool whole = length <= (uint64_t)(end - at);
        fit =
            fits_packet((struct rp_bytes){at, whole ? (size_t)length : (size_t)(end - at)}, whole);
        if (fit < 0)
            return RP_SNIFF_NO;
        best = fit > best ? fit : best;
        at = whole ? at + length : end;
    }
    return best == 2 ? RP_SNIFF_CERTAIN : best ? RP_SNIFF_LIKELY : RP_SNIFF_NO;
}

/* ------------------------------------------------------------------ sequences */

static uint64_t interned_key(enum rp_perfetto_table table, uint64_t iid)
{
    return iid < UINT64_MAX / RP_PFT_TABLES ? iid * RP_PFT_TABLES + table
                                            : rp_hash_join(iid, table);
}

uint32_t rp_perfetto_id(const struct rp_perfetto_sequence *seq, enum rp_perfetto_table table,
                        uint64_t iid)
{
    return rp_map_get(&seq->interned, interned_key(table, iid));
}

enum rp_code rp_perfetto_intern(struct rp_perfetto_sequence *seq, enum rp_perfetto_table table,
                                uint64_t iid, uint32_t id, struct rp_err *err)
{
    return rp_map_put(&seq->interned, interned_key(table, iid), id, err);
}

rp_str rp_perfetto_interned(const struct rp_perfetto *r, const struct rp_perfetto_sequence *seq,
                            enum rp_perfetto_table table, uint64_t iid)
{
    uint32_t str = rp_perfetto_id(seq, table, iid);

    (void)r;
    return str == RP_MAP_NONE ? 0 : str;
}

static enum rp_code read_named(struct rp_perfetto *r, struct rp_perfetto_sequence *seq,
                               enum rp_perfetto_table table, struct rp_proto_cursor c,
                               struct rp_err *err)
{
    struct rp_proto_item it;
    uint64_t iid = 0;
    rp_str text = 0;

    while (rp_proto_next(&c, &it))
        if (it.number == RP_PFT_NAMED_IID && it.wire == RP_WIRE_VARINT)
            iid = it.value;
        else if (it.number == RP_PFT_NAMED_NAME && it.wire == RP_WIRE_BYTES)
            RP_TRY(rp_proto_trace_intern(&r->t, it.bytes, &text, err));
    RP_TRY(rp_proto_finish(&c, err));
    return rp_perfetto_intern(seq, table, iid, text, err);
}

static enum rp_code read_interned(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                  struct rp_err *err)
{
    static const struct {
        uint32_t number;
        enum rp_perfetto_table table;
    } lists[] = {
        {RP_PFT_INTERNED_EVENT_CATEGORIES, RP_PFT_CATEGORIES},
        {RP_PFT_INTERNED_EVENT_NAMES, RP_PFT_NAMES},
        {RP_PFT_INTERNED_DEBUG_ANNOTATION_NAMES, RP_PFT_ARG_NAMES},
        {RP_PFT_INTERNED_DEBUG_ANNOTATION_STRING_VALUES, RP_PFT_ARG_TEXTS},
        {RP_PFT_INTERNED_GPU_SPECIFICATIONS, RP_PFT_GPU_SPECS},
        {RP_PFT_INTERNED_FUNCTION_NAMES, RP_PFT_FUNCTIONS},
        {RP_PFT_INTERNED_SOURCE_PATHS, RP_PFT_SOURCES},
        {RP_PFT_INTERNED_MAPPING_PATHS, RP_PFT_MODULE_PATHS},
        {RP_PFT_INTERNED_COMPUTE_ARG_NAMES, RP_PFT_LAUNCH_KEYS},
    };
    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->interned);
    struct rp_proto_item it;
    bool stacks = false, gpus = false;

    while (rp_proto_next(&c, &it)) {
        for (size_t i = 0; i < sizeof lists / sizeof *lists && it.wire == RP_WIRE_BYTES; i++)
            if (lists[i].number == it.number)
                RP_TRY(read_named(r, packet->seq, lists[i].table, rp_proto_enter(&c, &it), err));
        stacks |= it.number == RP_PFT_INTERNED_MAPPINGS || it.number == RP_PFT_INTERNED_FRAMES ||
                  it.number == RP_PFT_INTERNED_CALLSTACKS;
        gpus |= it.number == RP_PFT_INTERNED_GPU_COUNTER_DESCRIPTORS ||
                it.number == RP_PFT_INTERNED_COMPUTE_KERNELS;
    }
    RP_TRY(rp_proto_finish(&c, err));
    if (gpus)
        RP_TRY(rp_perfetto_read_gpu_tables(r, packet, err));
    return stacks ? rp_perfetto_read_stacks(r, packet, err) : RP_OK;
}

static enum rp_code read_event_defaults(struct rp_perfetto_sequence *seq, struct rp_proto_cursor c,
                                        struct rp_err *err)
{
    struct rp_proto_item it;

    seq->counters.n = seq->doubles.n = 0;
    seq->track = 0;
    while (rp_proto_next(&c, &it)) {
        if (it.wire != RP_WIRE_VARINT)
            continue;
        if (it.number == RP_PFT_EVENT_DEFAULTS_TRACK_UUID)
            seq->track = it.value;
        else if (it.number == RP_PFT_EVENT_DEFAULTS_EXTRA_COUNTER_TRACK_UUIDS)
            RP_TRY(rp_vec_push(&seq->counters, it.value, err));
        else if (it.number == RP_PFT_EVENT_DEFAULTS_EXTRA_DOUBLE_COUNTER_TRACK_UUIDS)
            RP_TRY(rp_vec_push(&seq->doubles, it.value, err));
    }
    return rp_proto_finish(&c, err);
}

static enum rp_code read_defaults(const struct rp_perfetto_packet *packet, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->defaults);
    struct rp_proto_item it;

    packet->seq->clock = 0;
    while (rp_proto_next(&c, &it))
        if (it.number == RP_PFT_DEFAULTS_TIMESTAMP_CLOCK_ID && it.wire == RP_WIRE_VARINT)
            packet->seq->clock = it.value;
        else if (it.number == RP_PFT_DEFAULTS_TRACK_EVENT_DEFAULTS && it.wire == RP_WIRE_BYTES)
            RP_TRY(read_event_defaults(packet->seq, rp_proto_enter(&c, &it), err));
    return rp_proto_finish(&c, err);
}

/* ------------------------------------------------------------------ metadata */

/* Reads a key and its value, like those at the top of Chrome's JSON. */
static enum rp_code read_metadata(struct rp_perfetto *r, struct rp_proto_cursor c,
                                  struct rp_err *err)
{
    struct rp_proto_item it;
    struct rp_bytes name = {0};
    rp_str key, value;

    rp_emit_reset(&r->json);
    while (rp_proto_next(&c, &it)) {
        if (it.number == RP_PFT_METADATA_NAME && it.wire == RP_WIRE_BYTES)
            name = it.bytes;
        else {
            switch (RP_PROTO_KEY(it.number, it.wire)) {
            case RP_PROTO_KEY(RP_PFT_METADATA_STRING_VALUE, RP_WIRE_BYTES):
                rp_emit_reset(&r->json);
                rp_emit_escaped(&r->json, RP_IN_JSON, (const char *)it.bytes.at, it.bytes.n);
                break;
            case RP_PROTO_KEY(RP_PFT_METADATA_BOOL_VALUE, RP_WIRE_VARINT):
                rp_emit_reset(&r->json);
                rp_emit_text(&r->json, it.value ? "true" : "false");
                break;
            case RP_PROTO_KEY(RP_PFT_METADATA_INT_VALUE, RP_WIRE_VARINT):
                rp_emit_reset(&r->json);
                rp_emit_i64(&r->json, (int64_t)it.value);
                break;
            case RP_PROTO_KEY(RP_PFT_METADATA_JSON_VALUE, RP_WIRE_BYTES):
                rp_emit_reset(&r->json);
                rp_emit_bytes(&r->json, (const char *)it.bytes.at, it.bytes.n);
                break;
            default:
                break;
            }
        }
    }
    RP_TRY(rp_proto_finish(&c, err));
    if (!name.n || !rp_emit_length(&r->json))
        return RP_OK;
    if (r->json.failure.code != RP_OK)
        return rp_err_nomem(err, "reading metadata");
    RP_TRY(rp_proto_trace_intern(&r->t, name, &key, err));
    RP_TRY(rp_chrome_read_fact(&r->facts, (const char *)name.at, name.n, r->json.buffer,
                               rp_emit_length(&r->json), err));
    RP_TRY(rp_builder_intern(r->t.builder, r->json.buffer, rp_emit_length(&r->json), &value, err));
    return rp_builder_add_meta(r->t.builder, key, value, false, err);
}

static enum rp_code read_chrome_events(struct rp_perfetto *r,
                                       const struct rp_perfetto_packet *packet, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->data);
    struct rp_proto_item it;

    while (rp_proto_next_bytes(&c, RP_PFT_CHROME_METADATA, &it))
        RP_TRY(read_metadata(r, rp_proto_enter(&c, &it), err));
    return rp_proto_finish(&c, err);
}

/* ------------------------------------------------------------------ packets */

static void set_number(struct rp_perfetto_packet *p, const struct rp_proto_item *it)
{
    switch (it->number) {
    case RP_PFT_PACKET_TIMESTAMP:
        p->timestamp = it->value;
        p->has_timestamp = true;
        break;
    case RP_PFT_PACKET_TIMESTAMP_CLOCK_ID:
        p->clock = it->value;
        p->has_clock = true;
        break;
    case RP_PFT_PACKET_TRUSTED_PACKET_SEQUENCE_ID:
        p->sequence = it->value & UINT32_MAX;
        break;
    case RP_PFT_PACKET_SEQUENCE_FLAGS:
        p->flags = (uint32_t)it->value;
        break;
    case RP_PFT_PACKET_INCREMENTAL_STATE_CLEARED:
        p->cleared = it->value != 0;
        break;
    case RP_PFT_PACKET_PREVIOUS_PACKET_DROPPED:
        p->dropped = it->value != 0;
        break;
    default:
        break;
    }
}

/* Finds what a packet is, whatever the order of its fields. */
static enum rp_code scan_packet(struct rp_proto_cursor c, struct rp_perfetto_packet *p,
                                struct rp_err *err)
{
    struct rp_proto_item it;

    *p = (struct rp_perfetto_packet){.c = c};
    while (rp_proto_next(&c, &it)) {
        if (it.wire == RP_WIRE_VARINT)
            set_number(p, &it);
        else if (it.wire != RP_WIRE_BYTES)
            continue;
        else if (it.number == RP_PFT_PACKET_INTERNED_DATA)
            p->interned = it;
        else if (it.number == RP_PFT_PACKET_TRACE_PACKET_DEFAULTS)
            p->defaults = it;
        else
            p->data = it;
    }
    p->cleared = p->cleared || p->flags & RP_PFT_FLAG_CLEARED;
    return rp_proto_finish(&c, err);
}

typedef enum rp_code packet_fn(struct rp_perfetto *r, struct rp_proto_cursor c, bool packed,
                               struct rp_err *err);

static enum rp_code each_packet(struct rp_perfetto *r, struct rp_bytes all, bool packed,
                                packet_fn *one, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(all.at, all.n, 0, r->t.limits.depth);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.number == RP_PFT_TRACE_PACKET && it.wire == RP_WIRE_BYTES)
            RP_TRY(one(r, rp_proto_enter(&c, &it), packed, err));
        if (!packed && ++r->packets % PROGRESS_PACKETS == 0)
            RP_TRY(rp_proto_trace_progress(&r->t, c.at, err));
    }
    return rp_proto_finish(&c, err);
}

/* ------------------------------------------------------------------ the first pass */

/* Computes the checksum of RFC 1950. */
static uint32_t adler32_of(const uint8_t *bytes, size_t n)
{
    uint64_t a = 1, b = 0;

    for (size_t i = 0; i < n; i++) {
        a = (a + bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    return (uint32_t)(b << 16 | a);
}

static bool is_intact(struct rp_bytes from, const uint8_t *bytes, size_t n)
{
    const uint8_t *sum = from.at + from.n - 4;
    uint32_t given =
        (uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 | (uint32_t)sum[2] << 8 | sum[3];

    return given == adler32_of(bytes, n);
}

/* Unpacks deflated packets between a header and a checksum (RFC 1950). */
static enum rp_code inflate_packets(struct rp_perfetto *r, struct rp_bytes from,
                                    struct rp_bytes *out, struct rp_err *err)
{
    struct rp_feed feed = {.at = from.at + 2, .end = from.at + from.n, .ended = true};
    RP_VEC(uint8_t) bytes = {0};
    enum rp_deflate_state now = RP_DEFLATE_MORE;
    const char *why = "it is cut short";
    void *state = NULL;

    if (from.n < 6)
        return rp_err_set(err, RP_FORMAT, "compressed packets are cut short");
    feed.end_offset = from.n;
    enum rp_code code = rp_deflate_zlib.open(&state, err);
    if (code == RP_OK)
        rp_deflate_zlib.reset(state);
    while (code == RP_OK && now == RP_DEFLATE_MORE) {
        size_t got = 0;

        code = rp_vec_reserve(&bytes, 65536, err);
        if (code == RP_OK)
            code = rp_deflate_zlib.step(state, &feed, bytes.at + bytes.n, bytes.cap - bytes.n, &got,
                                        &now, &why, err);
        bytes.n += got;
        if (code == RP_OK && r->blob_bytes + bytes.n > r->t.limits.input_bytes)
            code = rp_err_set(err, RP_LIMIT, "compressed packets have more than %llu bytes",
                              (unsigned long long)r->t.limits.input_bytes);
    }
    if (state)
        rp_deflate_zlib.close(state);
    if (code == RP_OK && now != RP_DEFLATE_END)
        code = rp_err_set(err, RP_FORMAT, "compressed packets are damaged: %s", why);
    if (code == RP_OK && !is_intact(from, bytes.at, bytes.n))
        code = rp_err_set(err, RP_FORMAT, "compressed packets are damaged: wrong checksum");
    if (code == RP_OK) {
        *out = (struct rp_bytes){malloc(bytes.n + 1), bytes.n};
        if (out->at)
            memcpy((uint8_t *)(uintptr_t)out->at, bytes.at, bytes.n);
        else
            code = rp_err_nomem(err, "decompressing packets");
    }
    rp_vec_release(&bytes);
    return code;
}

/* Unpacks Zstandard with the codec of compressed files. */
static enum rp_code unpack_zstd(struct rp_perfetto *r, struct rp_bytes from, struct rp_bytes *out,
                                struct rp_err *err)
{
    struct rp_input *in;
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_open_memory("packets", from.at, from.n, &r->t.limits, &in, err));
    enum rp_code code = rp_input_slurp(in, &bytes, &n, err);
    if (code == RP_OK && r->blob_bytes + n > r->t.limits.input_bytes)
        code = rp_err_set(err, RP_LIMIT, "compressed packets have more than %llu bytes",
                          (unsigned long long)r->t.limits.input_bytes);
    uint8_t *copy = code == RP_OK ? malloc(n + 1) : NULL;
    if (code == RP_OK && !copy)
        code = rp_err_nomem(err, "decompressing packets");
    if (copy && n)
        memcpy(copy, bytes, n);
    rp_input_close(in);
    *out = (struct rp_bytes){copy, n};
    return code;
}

static bool is_packed(const struct rp_perfetto_packet *p)
{
    return p->data.number == RP_PFT_PACKET_COMPRESSED_PACKETS ||
           p->data.number == RP_PFT_PACKET_ZSTD_COMPRESSED_PACKETS;
}

static enum rp_code prepare_packet(struct rp_perfetto *r, struct rp_proto_cursor c, bool packed,
                                   struct rp_err *err)
{
    struct rp_perfetto_packet p;

    RP_TRY(scan_packet(c, &p, err));
    if (is_packed(&p) && !packed) {
        /* A packet may hold others, compressed. */
        uint64_t offset = rp_proto_offset(&p.c, p.data.begin);
        struct rp_bytes blob = {0};
        RP_TRY(rp_vec_reserve(&r->blobs, 1, err));
        enum rp_code code = p.data.number == RP_PFT_PACKET_COMPRESSED_PACKETS
                                ? inflate_packets(r, p.data.bytes, &blob, err)
                                : unpack_zstd(r, p.data.bytes, &blob, err);
        if (code != RP_OK)
            return rp_err_prefix(err, code, "packet at byte %llu", (unsigned long long)offset);
        r->blobs.at[r->blobs.n++] = blob;
        r->blob_bytes += blob.n;
        return each_packet(r, r->blobs.at[r->blobs.n - 1], true, prepare_packet, err);
    }
    switch (p.data.number) {
    case RP_PFT_PACKET_CLOCK_SNAPSHOT:
        return rp_perfetto_read_clocks(r, &p, err);
    case RP_PFT_PACKET_TRACK_DESCRIPTOR:
        return rp_perfetto_describe(r, &p, false, err);
    case RP_PFT_PACKET_PROCESS_DESCRIPTOR:
    case RP_PFT_PACKET_THREAD_DESCRIPTOR:
        return rp_perfetto_describe_old(r, &p, false, err);
    default:
        return RP_OK;
    }
}

/* ------------------------------------------------------------------ the second pass */

/* Returns false if the packet refers to state that was lost. */
static enum rp_code update_sequence(struct rp_perfetto *r, struct rp_perfetto_packet *p,
                                    bool *usable, struct rp_err *err)
{
    /* The sequence that the packet belongs to. */
    struct rp_perfetto_sequence fresh = {.id = p->sequence, .generation = ++r->generations};
    uint32_t at;
    RP_TRY(rp_map_intern(&r->sequence_of, p->sequence, (uint32_t)r->sequences.n, &at, err));
    if (at == r->sequences.n)
        RP_TRY(rp_vec_push(&r->sequences, fresh, err));
    p->seq = &r->sequences.at[at];
    if (p->dropped)
        p->seq->valid = false;
    if (p->cleared) {
        rp_map_release(&p->seq->interned);
        rp_map_init(&p->seq->interned);
        p->seq->generation = ++r->generations;
        p->seq->clock = p->seq->track = 0;
        p->seq->counters.n = p->seq->doubles.n = 0;
        p->seq->valid = true;
    }
    *usable = !(p->flags & RP_PFT_FLAG_NEEDED) || p->seq->valid;
    if (!*usable)
        return RP_OK;
    if (p->interned.number)
        RP_TRY(read_interned(r, p, err));
    return p->defaults.number ? read_defaults(p, err) : RP_OK;
}

static enum rp_code read_packet(struct rp_perfetto *r, struct rp_proto_cursor c, bool packed,
                                struct rp_err *err)
{
    struct rp_perfetto_packet p;
    bool usable;

    RP_TRY(scan_packet(c, &p, err));
    if (is_packed(&p) && !packed && r->blob < r->blobs.n)
        return each_packet(r, r->blobs.at[r->blob++], true, read_packet, err);
    RP_TRY(update_sequence(r, &p, &usable, err));
    if (usable) {
        switch (p.data.number) {
        case 0:
            return RP_OK;
        case RP_PFT_PACKET_TRACK_EVENT:
            return rp_perfetto_read_event(r, &p, err);
        case RP_PFT_PACKET_TRACK_DESCRIPTOR:
            return rp_perfetto_describe(r, &p, true, err);
        case RP_PFT_PACKET_PROCESS_DESCRIPTOR:
        case RP_PFT_PACKET_THREAD_DESCRIPTOR:
            return rp_perfetto_describe_old(r, &p, true, err);
        case RP_PFT_PACKET_PROCESS_TREE:
            return rp_perfetto_read_tree(r, &p, err);
        case RP_PFT_PACKET_CLOCK_SNAPSHOT:
            return rp_perfetto_restart_clocks(r, &p, err);
        case RP_PFT_PACKET_CHROME_EVENTS:
            return read_chrome_events(r, &p, err);
        case RP_PFT_PACKET_GPU_RENDER_STAGE_EVENT:
            return rp_perfetto_read_stage(r, &p, err);
        case RP_PFT_PACKET_GPU_COUNTER_EVENT:
            return rp_perfetto_read_gpu_counters(r, &p, err);
        case RP_PFT_PACKET_GPU_INFO:
            return rp_perfetto_read_gpus(r, &p, err);
        case RP_PFT_PACKET_PERF_SAMPLE:
            return rp_perfetto_read_sample(r, &p, err);
        default:
            r->ignored++;
            return RP_OK;
        }
    }
    r->stateless++;
    return RP_OK;
}

/* ------------------------------------------------------------------ the file */

/* Finds the packets that are whole: in a truncated file, all but the last. */
static enum rp_code find_usable(struct rp_perfetto *r, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(r->t.bytes, r->t.n, 0, 4);
    struct rp_proto_item it;
    struct rp_err why = RP_ERR_INIT;
    size_t packets = 0;

    for (; rp_proto_next(&c, &it); packets++)
        r->usable = (size_t)(c.at - r->t.bytes);
    if (rp_proto_finish(&c, &why) == RP_OK)
        return RP_OK;
    if (!packets || (r->t.bytes[r->usable] != RP_PROTO_KEY(RP_PFT_TRACE_PACKET, RP_WIRE_BYTES) &&
                     !r->t.options->salvage)) {
        if (err)
            *err = why;
        return why.code;
    }
    r->t.health->truncated = 1;
    return rp_builder_warn(r->t.builder, err,
                           "the file is truncated: the packet at byte %zu is not whole", r->usable);
}

static enum rp_code warn_about(struct rp_perfetto *r, uint64_t n, const char *what,
                               struct rp_err *err)
{
    return n ? rp_builder_warn(r->t.builder, err, "%s: %llu", what, (unsigned long long)n) : RP_OK;
}

static enum rp_code read_passes(struct rp_perfetto *r, struct rp_err *err)
{
    RP_TRY(find_usable(r, err));
    struct rp_bytes all = {r->t.bytes, r->usable};
    RP_TRY(each_packet(r, all, false, prepare_packet, err));
    rp_perfetto_sort_clocks(r);
    RP_TRY(each_packet(r, all, false, read_packet, err));
    RP_TRY(rp_perfetto_end_slices(r, err));
    RP_TRY(rp_perfetto_add_arrows(r, err));
    RP_TRY(rp_perfetto_name_tracks(r, err));
    RP_TRY(warn_about(r, r->ignored,
                      "ignored packets of other data sources (scheduler, memory ...)", err));
    RP_TRY(warn_about(r, r->stateless,
                      "ignored packets, because packets they refer to were lost while recording",
                      err));
    RP_TRY(warn_about(r, r->no_clock,
                      "times of a clock without a snapshot, which were taken as they are", err));
    RP_TRY(warn_about(r, r->end_args, "ends of slices with arguments, which were ignored", err));
    return rp_chrome_end_facts(&r->facts, err);
}

static enum rp_code open_reader(struct rp_perfetto *r, struct rp_input *in,
                                const struct rp_read_options *options, struct rp_err *err)
{
    struct rp_map *const maps[] = {&r->sequence_of,    &r->track_of,  &r->process_of,
                                   &r->thread_of,      &r->group_of,  &r->category_of,
                                   &r->total_of,       &r->gpu_names, &r->unit_of,
                                   &r->incremental_of, &r->now_of};

    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        rp_map_init(maps[i]);
    RP_TRY(rp_proto_trace_init(&r->t, in, options, "perfetto", err));
    r->t.trace->rank = RP_NO_RANK;
    r->facts.builder = r->t.builder;
    return rp_emit_open_memory(&r->json, err);
}

static void release_reader(struct rp_perfetto *r)
{
    struct rp_map *const maps[] = {&r->sequence_of,    &r->track_of,  &r->process_of,
                                   &r->thread_of,      &r->group_of,  &r->category_of,
                                   &r->total_of,       &r->gpu_names, &r->unit_of,
                                   &r->incremental_of, &r->now_of};

    for (size_t i = 0; i < r->sequences.n; i++) {
        rp_map_release(&r->sequences.at[i].interned);
        RP_EACH(rp_vec_release, &r->sequences.at[i].counters, &r->sequences.at[i].doubles);
    }
    for (size_t i = 0; i < r->blobs.n; i++)
        free((void *)(uintptr_t)r->blobs.at[i].at);
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        rp_map_release(maps[i]);
    RP_EACH(rp_vec_release, &r->blobs, &r->sequences, &r->tracks, &r->processes, &r->totals,
            &r->clocks, &r->now, &r->args);
    RP_EACH(rp_vec_release, &r->marks, &r->flows);
    rp_map_release(&r->arg_of);
    rp_emit_abandon(&r->json);
}

static enum rp_code read_perfetto(struct rp_input *in, const struct rp_read_options *options,
                                  struct rp_import *to, struct rp_err *err)
{
    struct rp_perfetto *r = calloc(1, sizeof *r);
    int64_t begin_ns = rp_clock_ns();

    RP_TRY(rp_err_need(r, err, "reading a trace"));
    enum rp_code code = open_reader(r, in, options, err);
    if (code == RP_OK)
        code = read_passes(r, err);
    release_reader(r);
    if (code == RP_OK)
        code = rp_proto_trace_finish(&r->t, to, begin_ns, err);
    rp_proto_trace_release(&r->t);
    free(r);
    return code;
}

const struct rp_format rp_format_perfetto = {
    .name = "perfetto",
    .summary = "Perfetto trace (protobuf)",
    .files = "*.pftrace, *.perfetto-trace, *.pftrace.gz",
    .written_by = "torch.profiler, rocprofv3, Perfetto SDK, reprise",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = perfetto_sniff,
    .read = read_perfetto,
};
