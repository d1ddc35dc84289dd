/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder: appends to columns. The columns of events grow together, so that adding an event
 * costs one test for room, nine stores and the row of its arguments (args.c). Processes,
 * tracks and origins are few and found through maps; readers keep the last ones at hand.
 */
#include "base/each.h"
#include "trace/build/state.h"
#include "trace/finish/finish.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Origins are 16-bit numbers. When they run out, categories are dropped, then kinds: there are at
 * most 256 phases. */
#define ORIGINS_MAX   UINT16_MAX
#define ORIGINS_NAMED (ORIGINS_MAX - 1024)
#define ORIGINS_KINDS (ORIGINS_MAX - 256)

enum rp_code rp_builder_new(const struct rp_limits *limits, struct rp_builder **out,
                            struct rp_err *err)
{
    struct rp_builder *b = calloc(1, sizeof *b);

    *out = NULL;
    RP_TRY(rp_err_need(b, err, "making a builder"));
    b->limits = limits ? *limits : RP_LIMITS_DEFAULT;
    if (b->limits.events > RP_LIMITS_DEFAULT.events)
        b->limits.events = RP_LIMITS_DEFAULT.events;
    enum rp_code code = rp_strtab_init(&b->str, err);
    if (code == RP_OK)
        code = rp_trace_new(&b->trace, err);
    if (code == RP_OK)
        code = rp_build_args_init(&b->args, err);
    if (code != RP_OK) {
        rp_builder_free(b);
        return code;
    }
    *out = b;
    return RP_OK;
}

void rp_builder_free(struct rp_builder *b)
{
    if (!b)
        return;

    struct rp_build_events *ev = &b->ev;
    RP_EACH(rp_vec_release, &ev->ts_ns, &ev->dur_ns, &ev->name, &ev->track, &ev->link, &ev->arg_row,
            &ev->shape, &ev->origin);
    RP_EACH(rp_vec_release, &ev->flags, &ev->parent, &ev->kind, &ev->seq);

    struct rp_build_flows *flows = &b->flows;
    RP_EACH(rp_vec_release, &flows->ts_ns, &flows->id, &flows->name, &flows->track, &flows->event,
            &flows->arg_row, &flows->shape, &flows->origin);
    rp_vec_release(&flows->flags);
    rp_build_samples_release(&b->samples);
    rp_build_args_release(&b->args);
    RP_EACH(rp_vec_release, &b->link_id, &b->links.native_id, &b->links.source);
    RP_EACH(rp_map_release, &b->pid_of, &b->pid_text_of, &b->track_of, &b->origin_of);
    RP_EACH(rp_vec_release, &b->processes, &b->tracks, &b->origins, &b->steps, &b->devices,
            &b->meta, &b->warnings, &b->member);
    RP_EACH(rp_vec_release, &b->member_offset, &b->name_class);
    rp_strtab_release(&b->str);
    rp_trace_free(b->trace);
    free(b);
}

/* Interns a text with a sign for each zero byte, so that names that differ after one stay apart
   wherever a name is a C string. */
static enum rp_code intern_zeros(struct rp_builder *b, const char *s, size_t len, rp_str *out,
                                 struct rp_err *err)
{
    static const char sign[] = "\xe2\x90\x80"; /* U+2400, symbol for null */
    RP_VEC_LOCAL(char, text);

    RP_TRY(rp_vec_reserve(&text, 3 * len, err));
    for (size_t i = 0; i < len; i++) {
        size_t n = s[i] ? 1 : 3;

        memcpy(text.at + text.n, s[i] ? s + i : sign, n);
        text.n += n;
    }
    return rp_strtab_intern(&b->str, text.at, text.n, out, err);
}

enum rp_code rp_builder_intern(struct rp_builder *b, const char *s, size_t len, rp_str *out,
                               struct rp_err *err)
{
    *out = rp_strtab_find(&b->str, s, len);
    if (*out != UINT32_MAX)
        return RP_OK;
    return len && memchr(s, 0, len) ? intern_zeros(b, s, len, out, err)
                                    : rp_strtab_intern(&b->str, s, len, out, err);
}

const char *rp_builder_borrow_str(const struct rp_builder *b, rp_str s, size_t *len)
{
    if (len)
        *len = rp_strtab_len(&b->str, s);
    return rp_strtab_borrow(&b->str, s);
}

enum rp_code rp_builder_process(struct rp_builder *b, int64_t pid, rp_str text, uint32_t *out,
                                struct rp_err *err)
{
    struct rp_map *map = text ? &b->pid_text_of : &b->pid_of;
    uint32_t fresh = (uint32_t)b->processes.n;
    struct rp_process process = {.native_id = text ? 0 : pid, .text = text, .device = -1};

    RP_TRY(rp_vec_reserve(&b->processes, 1, err));
    RP_TRY(rp_map_intern(map, text ? text : (uint64_t)pid, fresh, out, err));
    if (*out == fresh)
        b->processes.at[b->processes.n++] = process;
    return RP_OK;
}

static bool same_track(const struct rp_track_info *a, const struct rp_track_info *b)
{
    return a->process == b->process && a->native_id == b->native_id && a->text == b->text &&
           a->has_id == b->has_id;
}

/* The track itself decides equality, so two tracks with the same hash get different keys. */
enum rp_code rp_builder_track(struct rp_builder *b, uint32_t process, int64_t tid, rp_str text,
                              bool has_id, rp_track *out, struct rp_err *err)
{
    struct rp_track_info track = {.process = process,
                                  .native_id = has_id && !text ? tid : 0,
                                  .text = has_id ? text : 0,
                                  .has_id = has_id};
    uint32_t fresh = (uint32_t)b->tracks.n;
    uint64_t h =
        rp_hash_mix((uint64_t)track.native_id ^ UINT64_C(0x9e3779b97f4a7c15),
                    ((uint64_t)track.process << 32 | track.text) ^ UINT64_C(0xd6e8feb86659fd93));
    uint64_t key = h + track.has_id;

    if (process >= b->processes.n)
        return rp_err_set(err, RP_BUG, "track of an unknown process %u", process);
    if (fresh == RP_NONE - 1)
        return rp_err_set(err, RP_LIMIT, "more than %u tracks", fresh);
    RP_TRY(rp_vec_reserve(&b->tracks, 1, err));
    for (;; key = rp_hash_u64(key)) {
        RP_TRY(rp_map_intern(&b->track_of, key, fresh, out, err));
        if (*out == fresh) {
            b->tracks.at[b->tracks.n++] = track;
            return RP_OK;
        }
        if (same_track(&b->tracks.at[*out], &track))
            return RP_OK;
    }
}

static uint64_t origin_key(const struct rp_origin *origin)
{
    return (uint64_t)origin->category << 32 | (uint64_t)(uint8_t)origin->phase << 24 |
           (uint64_t)origin->kind << 16 | (uint64_t)origin->flags << 8 |
           (origin->has_category != 0);
}

/* If there are too many origins: the one into which this one is merged. */
static enum rp_code share_origin(struct rp_builder *b, struct rp_origin *origin, struct rp_err *err)
{
    size_t n = b->origins.n;

    if (n < ORIGINS_NAMED || rp_map_get(&b->origin_of, origin_key(origin)) != RP_MAP_NONE)
        return RP_OK;
    origin->category = 0;
    origin->has_category = 1;
    if (n >= ORIGINS_KINDS && rp_map_get(&b->origin_of, origin_key(origin)) == RP_MAP_NONE)
        origin->kind = origin->flags = 0;
    if (b->shares_origins)
        return RP_OK;
    b->shares_origins = true;
    return rp_builder_warn(
        b, err,
        "more than %u different pairs of phase and category: the categories of the others are "
        "dropped",
        (unsigned)ORIGINS_NAMED);
}

enum rp_code rp_builder_origin(struct rp_builder *b, const struct rp_origin *origin, uint16_t *out,
                               struct rp_err *err)
{
    uint32_t fresh = (uint32_t)b->origins.n, found;
    struct rp_origin take = *origin;

    RP_TRY(rp_vec_reserve(&b->origins, 1, err));
    RP_TRY(share_origin(b, &take, err));
    if (fresh == ORIGINS_MAX && rp_map_get(&b->origin_of, origin_key(&take)) == RP_MAP_NONE)
        return rp_err_set(err, RP_LIMIT, "more than %u different phases and kinds", fresh);
    RP_TRY(rp_map_intern(&b->origin_of, origin_key(&take), fresh, &found, err));
    if (found == fresh)
        b->origins.at[b->origins.n++] = take;
    *out = (uint16_t)found;
    return RP_OK;
}

/* Doubles the room in every column, which costs nothing until it is touched (vec.h). */
static enum rp_code grow_events(struct rp_builder *b, struct rp_err *err)
{
    struct rp_build_events *ev = &b->ev;
    size_t more = ev->n < 256 ? 256 : ev->n;
    uint64_t room = (uint64_t)ev->n + more;

    if (ev->n >= b->limits.events)
        return rp_err_set(err, RP_LIMIT,
                          "more than %llu events in one trace: record fewer steps, or split it",
                          (unsigned long long)b->limits.events);
    ev->ts_ns.n = ev->dur_ns.n = ev->name.n = ev->track.n = ev->link.n = ev->arg_row.n = ev->n;
    ev->shape.n = ev->origin.n = ev->flags.n = ev->n;
    RP_TRY(rp_vec_reserve(&ev->ts_ns, more, err));
    RP_TRY(rp_vec_reserve(&ev->dur_ns, more, err));
    RP_TRY(rp_vec_reserve(&ev->name, more, err));
    RP_TRY(rp_vec_reserve(&ev->track, more, err));
    RP_TRY(rp_vec_reserve(&ev->link, more, err));
    RP_TRY(rp_vec_reserve(&ev->arg_row, more, err));
    RP_TRY(rp_vec_reserve(&ev->shape, more, err));
    RP_TRY(rp_vec_reserve(&ev->origin, more, err));
    RP_TRY(rp_vec_reserve(&ev->flags, more, err));
    ev->room = (uint32_t)(room < b->limits.events ? room : b->limits.events);
    return RP_OK;
}

enum rp_code rp_builder_add(struct rp_builder *b, const struct rp_raw *raw, struct rp_err *err)
{
    struct rp_build_events *ev = &b->ev;
    uint32_t i = ev->n, row = 0, link = RP_NONE;

    if (i == ev->room)
        RP_TRY(grow_events(b, err));
    if (raw->track >= b->tracks.n || raw->origin >= b->origins.n)
        return rp_err_set(err, RP_BUG, "event with an unknown track or origin");
    if (raw->shape)
        RP_TRY(rp_build_args_row(&b->args, raw->shape, raw->args, raw->nargs, &row, err));
    if (raw->has_link) {
        link = (uint32_t)b->link_id.n;
        RP_TRY(rp_vec_push(&b->link_id, raw->link, err));
    }
    ev->ts_ns.at[i] = raw->ts_ns;
    ev->dur_ns.at[i] = raw->dur_ns;
    ev->name.at[i] = raw->name;
    ev->track.at[i] = raw->track;
    ev->link.at[i] = link;
    ev->arg_row.at[i] = row;
    ev->shape.at[i] = raw->shape;
    ev->origin.at[i] = raw->origin;
    ev->flags.at[i] = raw->flags;
    ev->n = i + 1;
    return RP_OK;
}

void rp_builder_end(struct rp_builder *b, uint32_t event, int64_t dur_ns)
{
    b->ev.dur_ns.at[event] = dur_ns;
    b->ev.flags.at[event] &= (uint8_t)~RP_EVENT_UNENDED;
}

enum rp_code rp_builder_label(struct rp_builder *b, rp_track track, const char *what,
                              const char *key, rp_str text, struct rp_err *err)
{
    struct rp_origin origin = {.phase = 'M', .kind = RP_KIND_METADATA};
    struct rp_arg arg = {.type = RP_ARG_STR, .v.s = text};
    struct rp_raw raw = {
        .ts_ns = RP_NO_TS, .dur_ns = RP_OPEN_NS, .track = track, .args = &arg, .nargs = 1};

    RP_TRY(rp_builder_intern(b, what, strlen(what), &raw.name, err));
    RP_TRY(rp_builder_intern(b, key, strlen(key), &arg.key, err));
    RP_TRY(rp_builder_origin(b, &origin, &raw.origin, err));
    RP_TRY(rp_builder_shape(b, &arg, 1, &raw.shape, err));
    return rp_builder_add(b, &raw, err);
}

enum rp_code rp_builder_add_flow(struct rp_builder *b, const struct rp_raw_flow *flow,
                                 struct rp_err *err)
{
    struct rp_build_flows *f = &b->flows;
    uint32_t row = 0;

    if (flow->track >= b->tracks.n || flow->origin >= b->origins.n)
        return rp_err_set(err, RP_BUG, "flow arrow with an unknown track or origin");
    if (f->n >= b->limits.events)
        return rp_err_set(err, RP_LIMIT,
                          "more than %llu arrows in one trace: record fewer steps, or split it",
                          (unsigned long long)b->limits.events);
    if (flow->shape)
        RP_TRY(rp_build_args_row(&b->args, flow->shape, flow->args, flow->nargs, &row, err));
    RP_TRY(rp_vec_push(&f->ts_ns, flow->ts_ns, err));
    RP_TRY(rp_vec_push(&f->id, flow->id, err));
    RP_TRY(rp_vec_push(&f->name, flow->name, err));
    RP_TRY(rp_vec_push(&f->track, flow->track, err));
    RP_TRY(rp_vec_push(&f->origin, flow->origin, err));
    RP_TRY(rp_vec_push(&f->flags, flow->flags, err));
    RP_TRY(rp_vec_push(&f->shape, flow->shape, err));
    RP_TRY(rp_vec_push(&f->arg_row, row, err));
    f->n++;
    return RP_OK;
}

enum rp_code rp_builder_add_meta(struct rp_builder *b, rp_str key, rp_str value, bool after_events,
                                 struct rp_err *err)
{
    struct rp_meta meta = {.key = key, .value = value, .after_events = after_events};

    return rp_vec_push(&b->meta, meta, err);
}

const char *rp_device_name_by_size(const struct rp_device *device)
{
    static const struct {
        int64_t units, low_gib, high_gib;
        const char *name;
    } sizes[] = {{304, 180, 200, "AMD Instinct MI300X (by its size)"},
                 {304, 240, 260, "AMD Instinct MI325X (by its size)"},
                 {110, 60, 66, "AMD Instinct MI250X (by its size)"},
                 {104, 60, 66, "AMD Instinct MI250 or MI210 (by its size)"}};
    int64_t gib = device->memory_bytes >> 30;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (device->multiprocessors == sizes[i].units && gib >= sizes[i].low_gib &&
            gib <= sizes[i].high_gib)
            return sizes[i].name;
    return NULL;
}

enum rp_code rp_builder_add_device(struct rp_builder *b, const struct rp_device *device,
                                   struct rp_err *err)
{
    struct rp_device copy = {.id = device->id,
                             .memory_bytes = device->memory_bytes,
                             .multiprocessors = device->multiprocessors,
                             .name = device->name};
    const char *given = rp_strtab_borrow(&b->str, device->name); /* ROCm's name, if it has none */
    const char *name =
        *given && strcmp(given, "AMD Radeon Graphics") != 0 ? NULL : rp_device_name_by_size(device);

    if (name)
        RP_TRY(rp_strtab_intern(&b->str, name, strlen(name), &copy.name, err));
    return rp_vec_push(&b->devices, copy, err);
}

enum rp_code rp_builder_warn(struct rp_builder *b, struct rp_err *err, const char *fmt, ...)
{
    char text[512];
    va_list args;
    rp_str id;

    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0)
        return rp_err_set(err, RP_BUG, "a warning that cannot be printed");
    RP_TRY(rp_strtab_intern(&b->str, text, strlen(text), &id, err));
    return rp_vec_push(&b->warnings, id, err);
}

struct rp_trace *rp_builder_borrow_trace(struct rp_builder *b)
{
    return b->trace;
}

uint32_t rp_builder_count(const struct rp_builder *b)
{
    return b->ev.n;
}

enum rp_code rp_builder_finish(struct rp_builder *b, struct rp_trace **out, struct rp_err *err)
{
    return rp_builder_finish_dump(b, NULL, NULL, out, err);
}
