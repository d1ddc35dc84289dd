/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the kind of each event (by its origin) and track (by its events), and the device of each
 * process. A track with device work is a stream. So is a track that XLA's trace viewer format calls
 * "Stream #..." of a device, whose events have no category: its spans become kernels here, or by
 * their names copies and memsets.
 */
#include "base/decides.h"
#include "trace/build/state.h"
#include "trace/device_calls.h"
#include "trace/finish/finish.h"

#include <ctype.h>
#include <stdlib.h>

static uint8_t kind_of_track(const struct rp_builder *b, const struct rp_track_info *t)
{
    uint32_t i, counters = 0, async = 0, others = 0;

    for (i = t->first; i < t->end; i++) {
        if (rp_kind_is_device_work(b->ev.kind.at[i]))
            return RP_TRACK_STREAM;
        if (b->ev.kind.at[i] == RP_KIND_COUNTER)
            counters++;
        else if (b->ev.flags.at[i] & RP_EVENT_ASYNC)
            async++;
        else if (b->ev.kind.at[i] != RP_KIND_METADATA)
            others++;
    }
    if (others || (counters && async))
        return RP_TRACK_THREAD;
    return counters ? RP_TRACK_COUNTER : async ? RP_TRACK_ASYNC : RP_TRACK_THREAD;
}

/* The number after `prefix` in text, or -1. */
static int32_t number_behind(const char *text, const char *prefix)
{
    size_t n = strlen(prefix);

    if (strncmp(text, prefix, n) != 0 || !isdigit((unsigned char)text[n]))
        return -1;
    long value = strtol(text + n, NULL, 10);
    return value <= UINT16_MAX ? (int32_t)value : -1;
}

static int32_t device_of_label(const char *text)
{
    static const char *const prefixes[] = {"GPU ", "/device:GPU:", "/device:TPU:", "/gpu:"};
    int32_t device = -1;

    for (size_t i = 0; device < 0 && i < sizeof prefixes / sizeof prefixes[0]; i++)
        device = number_behind(text, prefixes[i]);
    return device;
}

#define DEVICES 64
RP_DECISION(DEVICES, "devices of a host",
            "a smaller pid of device work is the number of its device, as Kineto writes it",
            "trace/a_small_process_number_is_that_of_a_device");

/* Finds devices by label or name; else by the argument "device" of the first kernel; else by a
   small pid. */
static void find_devices(struct rp_builder *b)
{
    rp_str key = rp_build_find_str(b, "device");
    struct rp_arg arg;

    for (size_t i = 0; i < b->processes.n; i++) {
        struct rp_process *p = &b->processes.at[i];

        p->device = device_of_label(rp_strtab_borrow(&b->str, p->labels));
        if (p->device < 0)
            p->device = device_of_label(rp_strtab_borrow(&b->str, p->name));
    }
    for (size_t i = 0; i < b->tracks.n; i++) {
        const struct rp_track_info *t = &b->tracks.at[i];
        struct rp_process *p = &b->processes.at[t->process];
        uint32_t e;

        if (t->kind != RP_TRACK_STREAM || p->device >= 0)
            continue;
        for (e = t->first; e < t->end && !rp_kind_is_device_work(b->ev.kind.at[e]); e++)
            ;
        if (e < t->end &&
            rp_args_find(&b->trace->args, b->ev.shape.at[e], b->ev.arg_row.at[e], key, &arg) &&
            arg.type == RP_ARG_I64 && arg.v.i >= 0 && arg.v.i <= UINT16_MAX)
            p->device = (int32_t)arg.v.i;
        else if (!p->text && p->native_id >= 0 && p->native_id < DEVICES)
            p->device = (int32_t)p->native_id;
    }
}

static bool is_xla_stream(const struct rp_builder *b, const struct rp_track_info *t)
{
    const char *process = rp_strtab_borrow(&b->str, b->processes.at[t->process].name);

    return t->kind == RP_TRACK_THREAD && !strncmp(process, "/device:GPU:", 12) &&
           !strncmp(rp_strtab_borrow(&b->str, t->name), "Stream #", 8);
}

enum rp_code rp_pass_tracks(struct rp_builder *b, struct rp_err *err)
{
    struct rp_build_events *ev = &b->ev;

    RP_TRY(rp_vec_reserve(&ev->kind, (size_t)ev->n + 1, err));
    for (uint32_t i = 0; i < ev->n; i++) {
        uint8_t kind = b->origins.at[ev->origin.at[i]].kind;

        ev->kind.at[i] = ev->flags.at[i] & RP_EVENT_NO_BEGIN ? (uint8_t)RP_KIND_INSTANT : kind;
    }
    ev->kind.n = ev->n;
    for (size_t t = 0; t < b->tracks.n; t++) {
        struct rp_track_info *track = &b->tracks.at[t];

        track->kind = kind_of_track(b, track);
        if (is_xla_stream(b, track)) {
            track->kind = RP_TRACK_STREAM;
            for (uint32_t i = track->first; i < track->end; i++)
                if (b->ev.kind.at[i] == RP_KIND_OTHER && rp_build_origin_of(b, i)->phase == 'X') {
                    const char *name = rp_strtab_borrow(&b->str, b->ev.name.at[i]);
                    uint16_t does = rp_device_call_does(name);

                    b->ev.kind.at[i] = does & RP_DOES_COPY  ? RP_KIND_MEMCPY
                                       : does & RP_DOES_SET ? RP_KIND_MEMSET
                                                            : RP_KIND_KERNEL;
                }
        }
    }
    find_devices(b);
    return RP_OK;
}
