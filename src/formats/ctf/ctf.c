/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CTF 1.8: a trace is a folder, represented by its file "metadata" (io/sources.h). Recordings of
 * `reprise record` are read here; all others through libbabeltrace2 (other.c).
 *
 * Recordings: the other files of the folder contain packets (abi/ctf_wire.h). The headers are read
 * first (files.c) and sorted by thread, then clock calibrations are collected, then the packets of
 * each thread are decoded (packet.c) directly from the files. Processes and threads become
 * processes and tracks; a device is a separate process whose tracks are its streams. Lost events of
 * all streams are summed in health.lost_events.
 */
#include "formats/ctf/ctf.h"

#include "base/clock.h"
#include "base/each.h"
#include "base/order.h"

#include "io/sources_walk.h"
#include "trace/secrets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum rp_sniff sniff_ctf(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return rp_describes_ctf(head, n) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

/* -------------------------------------------------------------------------- kinds */

static const struct {
    uint8_t kind, flags;
    const char *category;
} kinds[RP_CTF_KIND_COUNT] = {
    [RP_CTF_KIND_OTHER] = {RP_KIND_OTHER, 0, "other"},
    [RP_CTF_KIND_OPERATOR] = {RP_KIND_CPU_OP, RP_ORIGIN_NESTS | RP_ORIGIN_MARKS_STEP, "cpu_op"},
    [RP_CTF_KIND_ANNOTATION] = {RP_KIND_ANNOTATION, RP_ORIGIN_NESTS | RP_ORIGIN_MARKS_STEP,
                                "user_annotation"},
    [RP_CTF_KIND_GPU_ANNOTATION] = {RP_KIND_GPU_ANNOTATION, 0, "gpu_user_annotation"},
    [RP_CTF_KIND_RUNTIME] = {RP_KIND_RUNTIME, RP_ORIGIN_RUNTIME | RP_ORIGIN_NESTS, "runtime"},
    [RP_CTF_KIND_DRIVER] = {RP_KIND_RUNTIME, RP_ORIGIN_RUNTIME | RP_ORIGIN_NESTS, "driver"},
    [RP_CTF_KIND_KERNEL] = {RP_KIND_KERNEL, RP_ORIGIN_GPU, "kernel"},
    [RP_CTF_KIND_MEMCPY] = {RP_KIND_MEMCPY, RP_ORIGIN_GPU, "gpu_memcpy"},
    [RP_CTF_KIND_MEMSET] = {RP_KIND_MEMSET, RP_ORIGIN_GPU, "gpu_memset"},
    [RP_CTF_KIND_SYNC] = {RP_KIND_SYNC, 0, "sync"},
    [RP_CTF_KIND_OVERHEAD] = {RP_KIND_OVERHEAD, 0, "overhead"},
    [RP_CTF_KIND_COLLECTIVE] = {RP_KIND_COMM_OP, RP_ORIGIN_NESTS, "collective_comm"},
    [RP_CTF_KIND_TRANSFER] = {RP_KIND_TRANSFER, 0, "transfer"},
    [RP_CTF_KIND_PYTHON] = {RP_KIND_PYTHON, RP_ORIGIN_NESTS, "python_function"},
    [RP_CTF_KIND_WAIT] = {RP_KIND_WAIT, RP_ORIGIN_NESTS, "wait"},
    [RP_CTF_KIND_COUNTER] = {RP_KIND_COUNTER, 0, "counter"},
};

uint8_t rp_ctf_kind(uint8_t kind, const char **category)
{
    uint8_t known = kind < RP_CTF_KIND_COUNT ? kind : (uint8_t)RP_CTF_KIND_OTHER;

    *category = kinds[known].category;
    return kinds[known].kind;
}

static enum rp_code make_origin(struct rp_ctf_reader *r, char phase, uint8_t kind, rp_str category,
                                uint16_t *out, struct rp_err *err)
{
    struct rp_origin origin = {.phase = phase, .has_category = 1, .category = category};
    const char *text;

    origin.kind = rp_ctf_kind(kind, &text);
    if (!category)
        RP_TRY(rp_proto_trace_text(&r->t, text, &origin.category, err));
    if (phase == 'X')
        origin.flags = kinds[kind < RP_CTF_KIND_COUNT ? kind : 0].flags;
    else if (phase == 'i')
        origin.kind = RP_KIND_INSTANT;
    else if (phase == 'C')
        origin.kind = RP_KIND_COUNTER;
    return rp_builder_origin(r->t.builder, &origin, out, err);
}

enum rp_code rp_ctf_origin(struct rp_ctf_reader *r, char phase, uint8_t kind, rp_str category,
                           uint16_t *out, struct rp_err *err)
{
    size_t room = sizeof r->origins / sizeof *r->origins;
    size_t i = (category * 31u + kind * 7u + (uint8_t)phase) % room;

    if (!r->origins[i].used || r->origins[i].category != category || r->origins[i].kind != kind ||
        r->origins[i].phase != (uint8_t)phase) {
        RP_TRY(make_origin(r, phase, kind, category, &r->origins[i].origin, err));
        r->origins[i].category = category;
        r->origins[i].kind = kind;
        r->origins[i].phase = (uint8_t)phase;
        r->origins[i].used = 1;
    }
    *out = r->origins[i].origin;
    return RP_OK;
}

/* -------------------------------------------------------------------------- processes */

enum rp_code rp_ctf_process_name(struct rp_ctf_reader *r, const struct rp_ctf_process *process,
                                 rp_str program, struct rp_err *err)
{
    const char *path = rp_builder_borrow_str(r->t.builder, program, NULL);
    const char *slash = strrchr(path, '/');
    char name[256];
    rp_str id;

    (void)process;
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : path);
    RP_TRY(rp_proto_trace_text(&r->t, name, &id, err));
    return rp_proto_trace_name(&r->t, r->track, true, id, err);
}

#define DEVICE_PROCESSES (INT64_C(1) << 40) /* beyond all process ids */

enum rp_code rp_ctf_device_track(struct rp_proto_trace *t, uint64_t *named, uint32_t pid,
                                 int64_t device, uint64_t stream, rp_track *out, struct rp_err *err)
{
    int64_t id = DEVICE_PROCESSES + ((int64_t)pid << 8) + (device & 255);
    uint32_t process;
    char name[64];
    rp_str text;

    RP_TRY(rp_builder_process(t->builder, id, 0, &process, err));
    RP_TRY(rp_builder_track(t->builder, process, (int64_t)stream, 0, true, out, err));
    if (process >= 64 || (*named >> process & 1))
        return RP_OK;
    *named |= UINT64_C(1) << process;
    snprintf(name, sizeof name, "GPU %d", (int)(device & 255));
    RP_TRY(rp_proto_trace_text(t, name, &text, err));
    return rp_proto_trace_name(t, *out, true, text, err);
}

/* -------------------------------------------------------------------------- description */

/* The number after "key = " in the text, or false. */
static bool number_of(const char *text, size_t n, const char *key, int64_t *out)
{
    size_t len = strlen(key);
    const char *at = text, *end = text + n;

    while ((at = memmem(at, (size_t)(end - at), key, len))) {
        const char *p = at + len;
        bool word = at > text && (at[-1] == ' ' || at[-1] == '\n');

        at = p;
        while (p < end && *p == ' ')
            p++;
        if (!word || p >= end || *p != '=')
            continue;
        for (p++; p < end && *p == ' '; p++)
            ;
        *out = 0;
        bool minus = p < end && *p == '-';
        int digits = 0;

        for (p += minus; p < end && *p >= '0' && *p <= '9' && digits < 19; p++, digits++)
            *out = (int64_t)((uint64_t)*out * 10 + (uint64_t)(*p - '0'));
        *out = minus ? -*out : *out;
        return digits > 0;
    }
    return false;
}

static bool is_ours(const char *text, size_t n)
{
    return n > 10 && memmem(text, n < 4096 ? n : 4096, "tracer_name = \"reprise\"", 23);
}

enum rp_code rp_ctf_describe(struct rp_ctf_reader *r, struct rp_err *err)
{
    const char *text = (const char *)r->t.bytes;
    int64_t layout = 0, frequency = 0, offset_s = 0, offset = 0, rank = -1, world = 0;
    size_t n = r->t.n;

    number_of(text, n, "reprise_layout", &layout);
    if (layout != RP_CTF_LAYOUT)
        return rp_err_set_at(err, RP_FORMAT, 0,
                             "is a recording of layout %lld; this program reads layout %d",
                             (long long)layout, RP_CTF_LAYOUT);
    if (!number_of(text, n, "freq", &frequency) || frequency < 1000 ||
        frequency > INT64_C(1000000000000))
        return rp_err_set_at(err, RP_FORMAT, 0, "has an invalid clock frequency");
    number_of(text, n, "offset_s", &offset_s);
    number_of(text, n, "offset", &offset);
    if (offset_s < 0 || offset_s > RP_TIME_MAX_NS / 1000000000 || offset < 0 || offset > frequency)
        return rp_err_set_at(err, RP_FORMAT, 0, "has an invalid clock offset");
    if (number_of(text, n, "rank", &rank) && rank >= 0 && rank < INT32_MAX)
        r->t.trace->rank = (int32_t)rank;
    if (number_of(text, n, "world_size", &world) && world > 0 && world < INT32_MAX)
        r->t.trace->world_size = (int32_t)world;
    r->times.frequency = (uint64_t)frequency;
    r->times.offset_ns =
        offset_s * 1000000000 + (int64_t)((double)offset * 1e9 / (double)frequency);
    return RP_OK;
}

/* -------------------------------------------------------------------------- reading */

enum rp_code rp_ctf_reader_init(struct rp_ctf_reader *r, struct rp_input *in,
                                const struct rp_read_options *options, struct rp_err *err)
{
    struct rp_arg result = {.type = RP_ARG_I64}, value = {.type = RP_ARG_F64};

    *r = (struct rp_ctf_reader){.spill_at = RP_CTF_SPILL};
    RP_TRY(rp_proto_trace_init(&r->t, in, options, "ctf", err));
    r->texts = calloc(RP_CTF_TEXTS_MAX, sizeof *r->texts);
    RP_TRY(rp_err_need(r->texts, err, "reading a recording"));
    RP_TRY(rp_proto_trace_text(&r->t, "reprise", &r->t.trace->framework, err));
    RP_TRY(rp_proto_trace_text(&r->t, "result", &r->result_key, err));
    RP_TRY(rp_proto_trace_text(&r->t, "value", &r->value_key, err));
    result.key = r->result_key;
    value.key = r->value_key;
    RP_TRY(rp_builder_shape(r->t.builder, &result, 1, &r->result_shape, err));
    return rp_builder_shape(r->t.builder, &value, 1, &r->value_shape, err);
}

void rp_ctf_reader_release(struct rp_ctf_reader *r)
{
    rp_proto_trace_release(&r->t);
    rp_ctf_times_release(&r->times);
    RP_EACH(rp_vec_release, &r->packets, &r->pending, &r->open, &r->bounds, &r->copies, &r->late,
            &r->pauses, &r->lost);
    rp_map_release(&r->lost_places);
    rp_ctf_files_close(r);
    free(r->texts);
}

RP_ORDER(by_stream, struct rp_ctf_bytes, RP_UP(head.pid), RP_UP(head.tid), RP_UP(head.instance),
         RP_UP(head.sequence))

/* With salvage the events before the damage are kept, and the next packet is read. */
static enum rp_code read_packet(struct rp_ctf_reader *r, const struct rp_ctf_bytes *p,
                                struct rp_err *err)
{
    enum rp_code code = rp_ctf_packet_read(r, p, err);

    if (code != RP_FORMAT || !r->t.options->salvage)
        return code;
    r->t.health->salvaged = 1;
    return rp_builder_warn(r->t.builder, err, "%s; the rest of the packet is skipped",
                           err ? err->text : p->name);
}

/* A packet has the number of events that its stream (possibly of several threads) lost so far. */
static enum rp_code note_lost(struct rp_ctf_reader *r, const struct rp_ctf_packet *head,
                              struct rp_err *err)
{
    uint64_t most = (uint64_t)INT64_MAX / 2;
    uint64_t lost = head->discarded < most ? head->discarded : most;
    uint32_t fresh = (uint32_t)r->lost.n, place;
    int64_t *sum = &r->t.health->lost_events;

    if (!lost)
        return RP_OK;
    RP_TRY(rp_map_intern(&r->lost_places, head->instance, fresh, &place, err));
    if (place == fresh)
        RP_TRY(rp_vec_push(&r->lost, 0, err));
    if (lost <= r->lost.at[place])
        return RP_OK;
    if (__builtin_add_overflow(*sum, (int64_t)(lost - r->lost.at[place]), sum))
        *sum = INT64_MAX;
    r->lost.at[place] = lost;
    return RP_OK;
}

/* Whether the packet is the first of one thread in a stream. */
static bool begins_stream(const struct rp_ctf_reader *r, size_t i)
{
    const struct rp_ctf_packet *head = &r->packets.at[i].head;
    const struct rp_ctf_packet *before = i ? &r->packets.at[i - 1].head : NULL;

    return !i || head->instance != before->instance || head->tid != before->tid;
}

/* The packets of one thread in a stream, from `from` on. */
static enum rp_code read_stream(struct rp_ctf_reader *r, size_t from, struct rp_err *err)
{
    for (size_t i = from; i < r->packets.n; i++) {
        const struct rp_ctf_bytes *p = &r->packets.at[i];

        if (i > from && begins_stream(r, i))
            break;
        if (i > from && p->head.sequence == p[-1].head.sequence)
            continue; /* of a slot and of the file that it was about to get: the same packet */
        if (i == from)
            RP_TRY(rp_ctf_stream_begin(r, p, err));
        else if (p->head.sequence != p[-1].head.sequence + 1)
            RP_TRY(rp_ctf_stream_gap(r, err)); /* whether open ranges continue is not known */
        RP_TRY(read_packet(r, p, err));
        RP_TRY(note_lost(r, &p->head, err));
        const struct rp_read_options *o = r->t.options;
        r->done_bytes += p->content;
        if (o->progress && !o->progress(o->progress_user, r->done_bytes, r->total_bytes))
            return rp_err_set(err, RP_CANCELLED, "reading was cancelled");
    }
    return rp_ctf_stream_end(r, err);
}

struct stream_place {
    uint64_t begin; /* of its first packet, in ticks */
    size_t from;
    uint32_t pid;
};

RP_ORDER(by_begin, struct stream_place, RP_UP(pid), RP_UP(begin), RP_UP(from))

/* The streams of a process in the order of time: exec begins new ones, and a process is called
   after the last program that it ran, such as `python` where a shell script became it. */
static enum rp_code read_streams(struct rp_ctf_reader *r, struct rp_err *err)
{
    RP_VEC_LOCAL(struct stream_place, places);

    for (size_t i = 0; i < r->packets.n; i++) {
        const struct rp_ctf_packet *head = &r->packets.at[i].head;
        struct stream_place place = {head->timestamp_begin, i, head->pid};

        if (begins_stream(r, i))
            RP_TRY(rp_vec_push(&places, place, err));
    }
    rp_sort(places.at, places.n, sizeof *places.at, by_begin);
    for (size_t i = 0; i < places.n; i++)
        RP_TRY(read_stream(r, places.at[i].from, err));
    return RP_OK;
}

enum rp_code rp_ctf_read_packets(struct rp_ctf_reader *r, struct rp_err *err)
{
    size_t n = r->packets.n;

    rp_sort(r->packets.at, n, sizeof *r->packets.at, by_stream);
    for (size_t i = 0; i < n; i++) {
        r->total_bytes += r->packets.at[i].content;
        if (r->packets.at[i].head.clocks) {
            enum rp_code code = rp_ctf_packet_clocks(r, &r->packets.at[i], err);

            if (code != RP_OK &&
                code != RP_FORMAT) /* damage is reported when the events are read */
                return code;
        }
    }
    RP_TRY(rp_ctf_times_settle(&r->times, err));
    r->t.trace->base_ns = r->times.base_ns;
    r->t.trace->has_base = 1;
    RP_TRY(rp_ctf_origin(r, 'X', RP_CTF_KIND_ANNOTATION, 0, &r->range_origin, err));
    RP_TRY(read_streams(r, err));
    RP_TRY(rp_ctf_pauses_settle(r, err));
    RP_TRY(rp_ctf_device_judge(r, err));
    if (r->has_counters)
        RP_TRY(rp_builder_warn(
            r->t.builder, err,
            "kernels ran one by one, and more than once, to measure hardware counters: their own "
            "times and counters are true, the times between them are not"));
    if (r->unbegun)
        return rp_builder_warn(r->t.builder, err,
                               "%llu end%s of ranges %s skipped because the begin was not recorded",
                               (unsigned long long)r->unbegun, r->unbegun == 1 ? "" : "s",
                               r->unbegun == 1 ? "was" : "were");
    return RP_OK;
}

/* -------------------------------------------------------------------------- missing packets */

struct packet_number {
    uint64_t instance, sequence;
};

RP_ORDER(by_number, struct packet_number, RP_UP(instance), RP_UP(sequence))

enum rp_code rp_ctf_check_numbers(struct rp_ctf_reader *r, struct rp_err *err)
{
    size_t n = r->packets.n, i;
    uint64_t missing = 0, next = 0;
    struct packet_number *at, first = {0};

    if (!n || r->is_ring || r->t.health->salvaged)
        return RP_OK;
    at = malloc(n * sizeof *at);
    RP_TRY(rp_err_need(at, err, "reading a recording"));
    for (i = 0; i < n; i++)
        at[i] =
            (struct packet_number){r->packets.at[i].head.instance, r->packets.at[i].head.sequence};
    qsort(at, n, sizeof *at, by_number);
    for (i = 0; i < n; i++) {
        next = i && at[i].instance == at[i - 1].instance ? next : 0;
        if (at[i].sequence > next) {
            first = missing ? first : (struct packet_number){at[i].instance, next};
            missing += at[i].sequence - next;
        }
        next = at[i].sequence + 1;
    }
    free(at);
    if (!missing)
        return RP_OK;
    r->t.health->truncated = 1;
    return rp_builder_warn(r->t.builder, err,
                           "%llu packet%s missing (the first is number %llu of stream %016llx): "
                           "files were deleted or not copied; the recording is cut short",
                           (unsigned long long)missing, missing == 1 ? " is" : "s are",
                           (unsigned long long)first.sequence, (unsigned long long)first.instance);
}

/* -------------------------------------------------------------------------- the trace */

/* `key = "value";` of our metadata as metadata of the trace, in quotes. Values are names, as the
   recorder writes them; another one is left out. */
static enum rp_code add_env(struct rp_ctf_reader *r, const char *env, const char *key,
                            struct rp_err *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    char start[40], quoted[160];
    const char *text = (const char *)r->t.bytes, *at;
    size_t left, n = 0;
    rp_str id, value;
    int len = snprintf(start, sizeof start, " %s = \"", env);

    at = memmem(text, r->t.n, start, (size_t)len);
    at = at ? at + len : NULL;
    left = at ? r->t.n - (size_t)(at - text) : 0;
    while (n < left && n + 3 < sizeof quoted && at[n] && strchr(allowed, at[n]))
        n++;
    if (!n || n == left || at[n] != '"')
        return RP_OK;
    snprintf(quoted, sizeof quoted, "\"%.*s\"", (int)n, at);
    RP_TRY(rp_proto_trace_text(&r->t, key, &id, err));
    RP_TRY(rp_proto_trace_text(&r->t, quoted, &value, err));
    return rp_builder_add_meta(r->t.builder, id, value, false, err);
}

static enum rp_code read_ours(struct rp_ctf_reader *r, struct rp_input *in, const char *folder,
                              struct rp_import *to, struct rp_err *err)
{
    int64_t began = rp_clock_ns();

    RP_TRY(rp_ctf_describe(r, err));
    RP_TRY(folder ? rp_ctf_files_open(r, folder, err) : rp_ctf_files_beside(r, in, err));
    RP_TRY(rp_ctf_read_packets(r, err));
    RP_TRY(add_env(r, "hostname", "hostname", err));
    RP_TRY(add_env(r, "boot", "boot_id", err));
    RP_TRY(rp_ctf_ledger_read(r, folder, err));
    RP_TRY(rp_ctf_check_numbers(r, err));
    RP_TRY(rp_ctf_profiles_append(r, folder, err));
    rp_ctf_files_close(r);
    enum rp_code code = rp_proto_trace_finish(&r->t, to, began, err);
    to->content_bytes += r->total_bytes;
    to->unread |= r->has_command ? RP_SECRET_BIT(COMMAND) : 0;
    return code;
}

/* The folder of the metadata: the input must be a file of that name. NULL if it is in a tar, which
 * provides the other files. */
static enum rp_code folder_of(const struct rp_input *in, char **out, struct rp_err *err)
{
    const char *name = rp_input_borrow_name(in), *slash = strrchr(name, '/');
    size_t n = slash ? (size_t)(slash - name) : 1, nbeside;

    *out = NULL;
    if (rp_input_borrow_beside(in, &nbeside))
        return RP_OK;
    if (strcmp(slash ? slash + 1 : name, "metadata") != 0)
        return rp_err_set_at(
            err, RP_UNSUPPORTED, 0,
            "is only the metadata of a CTF trace: give the folder with its streams, or a tar of "
            "it");
    *out = slash ? strndup(name, n ? n : 1) : strdup(".");
    return rp_err_need(*out, err, "reading a CTF trace");
}

/* libbabeltrace2 reads folders only: a trace in a tar is unpacked into one. */
static enum rp_code read_other(struct rp_input *in, const char *folder,
                               const struct rp_read_options *options, struct rp_import *to,
                               struct rp_err *err)
{
    char unpacked[RP_CTF_UNPACKED_MAX];

    if (folder)
        return rp_ctf_read_other(in, folder, options, to, err);
    RP_TRY(rp_ctf_files_unpack(in, unpacked, err));
    enum rp_code code = rp_ctf_read_other(in, unpacked, options, to, err);
    rp_ctf_files_remove(unpacked);
    return code;
}

static enum rp_code read_ctf(struct rp_input *in, const struct rp_read_options *options,
                             struct rp_import *to, struct rp_err *err)
{
    struct rp_ctf_reader r;
    const uint8_t *head;
    char *folder = NULL;
    enum rp_code code;
    size_t n;

    RP_TRY(rp_input_peek(in, 4096, &head, &n, err));
    RP_TRY(folder_of(in, &folder, err));
    if (is_ours((const char *)head, n)) {
        code = rp_ctf_reader_init(&r, in, options, err);
        if (code == RP_OK)
            code = read_ours(&r, in, folder, to, err);
        rp_ctf_reader_release(&r);
    } else {
        code = read_other(in, folder, options, to, err);
    }
    free(folder);
    return code;
}

const struct rp_format rp_format_ctf = {
    .name = "ctf",
    .summary = "folder of a CTF 1.8 trace",
    .files = "metadata",
    .written_by = "reprise record, LTTng",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_ctf,
    .read = read_ctf,
};
