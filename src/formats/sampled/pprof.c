/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads pprof's profile.proto, usually gzipped. Fields may come in any order and ids are arbitrary,
 * so the tables are read first (strings, functions, locations, mappings, types of values), then the
 * samples. A sample has one value for each type: as `go tool pprof` does, the default type is read,
 * or else the last one. Locations of a sample begin with the innermost; a location with several
 * lines has inlined functions, the innermost first. There are no times.
 */
#include "base/each.h"
#include "formats/sampled/sampled.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_DEFAULT_TYPE = 14
};

struct pprof_function {
    uint64_t name, file;
};

struct pprof_location {
    uint64_t address, mapping;
    struct rp_bytes message; /* its lines, which are read when the location is first used */
    uint32_t first, nframes; /* place in p.located; first is RP_NONE if it was not read yet */
};

struct pprof_type {
    uint64_t type, unit;
};

struct pprof {
    struct rp_profile p;
    RP_VEC(struct rp_bytes) strings;
    RP_VEC(struct pprof_function) functions;
    RP_VEC(struct pprof_location) locations;
    RP_VEC(uint64_t) mappings; /* their file, a string */
    RP_VEC(struct pprof_type) types;
    RP_VEC(struct rp_profile_frame) located; /* frames of locations, innermost first */
    RP_VEC(uint64_t) stack;                  /* locations of the current sample */
    struct rp_map function_of, location_of, mapping_of;
    char (*address)[20]; /* texts that name locations without lines */
    uint64_t default_type;
    size_t value; /* index of the value of a sample that is read */
    int64_t scale;
};

static struct rp_bytes string_at(const struct pprof *r, uint64_t i)
{
    return i < r->strings.n ? r->strings.at[i] : (struct rp_bytes){0};
}

static struct rp_proto_cursor message_cursor(const struct pprof *r, struct rp_bytes b)
{
    return rp_proto_cursor(b.at, b.n, b.n ? (uint64_t)(b.at - r->p.t.bytes) : 0, 8);
}

/* ------------------------------------------------------------------ tables */

static enum rp_code add_table_row(struct pprof *r, const struct rp_proto_item *it)
{
    uint64_t f[6];

    switch (it->number) {
    case PROFILE_STRING:
        return rp_vec_push(&r->strings, it->bytes, r->p.err);
    case PROFILE_SAMPLE_TYPE:
        RP_TRY(rp_proto_numbers(message_cursor(r, it->bytes), f, 3, r->p.err));
        return rp_vec_push(&r->types, ((struct pprof_type){f[1], f[2]}), r->p.err);
    case PROFILE_FUNCTION:
        RP_TRY(rp_proto_numbers(message_cursor(r, it->bytes), f, 5, r->p.err));
        RP_TRY(rp_map_put(&r->function_of, f[1], (uint32_t)r->functions.n, r->p.err));
        return rp_vec_push(&r->functions, ((struct pprof_function){f[2] ? f[2] : f[3], f[4]}),
                           r->p.err);
    case PROFILE_MAPPING:
        RP_TRY(rp_proto_numbers(message_cursor(r, it->bytes), f, 6, r->p.err));
        RP_TRY(rp_map_put(&r->mapping_of, f[1], (uint32_t)r->mappings.n, r->p.err));
        return rp_vec_push(&r->mappings, f[5], r->p.err);
    case PROFILE_LOCATION:
        RP_TRY(rp_proto_numbers(message_cursor(r, it->bytes), f, 4, r->p.err));
        RP_TRY(rp_map_put(&r->location_of, f[1], (uint32_t)r->locations.n, r->p.err));
        return rp_vec_push(
            &r->locations,
            ((struct pprof_location){
                .address = f[3], .mapping = f[2], .message = it->bytes, .first = RP_NONE}),
            r->p.err);
    default:
        return RP_OK;
    }
}

/* ------------------------------------------------------------------ locations */

/* Adds a location that has no names: its address, and the file that was mapped there. */
static enum rp_code add_address(struct pprof *r, uint32_t i)
{
    const struct pprof_location *l = &r->locations.at[i];
    uint32_t mapping = rp_map_get(&r->mapping_of, l->mapping);
    struct rp_profile_frame frame = {0};

    snprintf(r->address[i], sizeof r->address[i], "0x%llx", (unsigned long long)l->address);
    frame.name = rp_bytes_of(r->address[i]);
    if (mapping != RP_MAP_NONE)
        frame.file = string_at(r, r->mappings.at[mapping]);
    frame.kind = rp_profile_kind_of_file(frame.file);
    return rp_vec_push(&r->located, frame, r->p.err);
}

static enum rp_code read_location(struct pprof *r, uint32_t i)
{
    struct pprof_location *l = &r->locations.at[i];
    struct rp_proto_cursor c = message_cursor(r, l->message);
    struct rp_proto_item it;

    if (l->first != RP_NONE)
        return RP_OK;
    l->first = (uint32_t)r->located.n;
    while (rp_proto_next_bytes(&c, 4, &it)) {
        /* A line of a location: a function, and where in it. */
        uint64_t f[3];
        struct rp_profile_frame frame = {0};
        RP_TRY(rp_proto_numbers(message_cursor(r, it.bytes), f, 3, r->p.err));
        uint32_t function = rp_map_get(&r->function_of, f[1]);
        if (function == RP_MAP_NONE)
            return rp_err_set(r->p.err, RP_FORMAT,
                              "a location names function %llu, which is missing",
                              (unsigned long long)f[1]);
        frame.name = string_at(r, r->functions.at[function].name);
        frame.file = string_at(r, r->functions.at[function].file);
        frame.line = f[2] < UINT32_MAX ? (uint32_t)f[2] : 0;
        frame.kind = rp_profile_kind_of_file(frame.file);
        RP_TRY(rp_vec_push(&r->located, frame, r->p.err));
    }
    RP_TRY(rp_proto_finish(&c, r->p.err));
    if (r->located.n == l->first)
        RP_TRY(add_address(r, i));
    l->nframes = (uint32_t)r->located.n - l->first;
    return RP_OK;
}

/* ------------------------------------------------------------------ samples */

struct pprof_sample {
    int64_t value, pid, tid;
    size_t nvalues;
    struct rp_bytes thread;
};

static enum rp_code add_number(struct pprof *r, struct pprof_sample *s, uint32_t field,
                               uint64_t number)
{
    if (field == 1)
        return rp_vec_push(&r->stack, number, r->p.err);
    if (s->nvalues++ == r->value)
        s->value = (int64_t)number;
    return RP_OK;
}

static enum rp_code read_pprof_sample(struct pprof *r, struct rp_bytes message)
{
    struct pprof_sample s = {0};
    rp_track track;

    struct rp_proto_cursor c = message_cursor(r, message);
    struct rp_proto_item it;
    uint64_t number;
    r->stack.n = 0;
    while (rp_proto_next(&c, &it)) {
        if (it.number == 3 && it.wire == RP_WIRE_BYTES) {
            /* {key, text, number} is the thread that was sampled, if the profiler tells it. */
            uint64_t f[4];

            RP_TRY(rp_proto_numbers(message_cursor(r, it.bytes), f, 4, r->p.err));
            struct rp_bytes key = string_at(r, f[1]);
            if (rp_bytes_are(key, "pid") || rp_bytes_are(key, "process_id"))
                s.pid = (int64_t)f[3];
            else if (rp_bytes_are(key, "tid") || rp_bytes_are(key, "thread_id") ||
                     rp_bytes_are(key, "thread id"))
                s.tid = (int64_t)f[3];
            else if (rp_bytes_are(key, "thread") || rp_bytes_are(key, "thread_name") ||
                     rp_bytes_are(key, "thread name"))
                s.thread = string_at(r, f[2]);
        } else if (it.number <= 2) {
            struct rp_proto_cursor list = rp_proto_list(&c, &it);

            while (rp_proto_packed_varint(&list, &number))
                RP_TRY(add_number(r, &s, it.number, number));
            RP_TRY(rp_proto_finish(&list, r->p.err));
        }
    }
    RP_TRY(rp_proto_finish(&c, r->p.err));
    if (s.nvalues != r->types.n)
        return rp_err_set_at(
            r->p.err, RP_FORMAT, (uint64_t)(message.at - r->p.t.bytes),
            "byte %llu: the sample has %zu values, but the profile %zu types of values",
            (unsigned long long)(message.at - r->p.t.bytes), s.nvalues, r->types.n);
    if (s.thread.n && !s.tid)
        s.tid = RP_PROFILE_BY_NAME;
    if (__builtin_mul_overflow(s.value, r->scale, &s.value))
        s.value = INT64_MAX;
    for (size_t i = r->stack.n; i-- > 0;) {
        uint32_t location = rp_map_get(&r->location_of, r->stack.at[i]), k;

        if (location == RP_MAP_NONE)
            return rp_err_set(r->p.err, RP_FORMAT, "a sample names location %llu, which is missing",
                              (unsigned long long)r->stack.at[i]);
        RP_TRY(read_location(r, location));
        for (k = r->locations.at[location].nframes; k-- > 0;)
            RP_TRY(rp_profile_push(&r->p, &r->located.at[r->locations.at[location].first + k]));
    }
    RP_TRY(rp_profile_thread(&r->p, s.pid, s.tid, s.thread, &track));
    return rp_profile_sample(&r->p, track, RP_NO_TS, s.value, 0);
}

static enum rp_code read_samples(struct pprof *r)
{
    struct rp_proto_cursor c = message_cursor(r, (struct rp_bytes){r->p.t.bytes, r->p.t.n});
    struct rp_proto_item it;

    while (rp_proto_next_bytes(&c, PROFILE_SAMPLE, &it)) {
        RP_TRY(read_pprof_sample(r, it.bytes));
        if (r->p.samples % 1024 == 0)
            RP_TRY(rp_proto_trace_progress(&r->p.t, c.at, r->p.err));
    }
    return rp_proto_finish(&c, r->p.err);
}

static void release_pprof(struct pprof *r)
{
    rp_profile_release(&r->p);
    RP_EACH(rp_vec_release, &r->strings, &r->functions, &r->locations, &r->mappings, &r->types,
            &r->located, &r->stack);
    RP_EACH(rp_map_release, &r->function_of, &r->location_of, &r->mapping_of);
    free(r->address);
}

static enum rp_code read_pprof(struct rp_input *in, const struct rp_read_options *options,
                               struct rp_import *to, struct rp_err *err)
{
    RP_SCOPED(release_pprof) struct pprof r = {0};

    RP_TRY(rp_profile_begin(&r.p, in, options, "pprof", err));
    struct rp_proto_cursor c = message_cursor(&r, (struct rp_bytes){r.p.t.bytes, r.p.t.n});
    struct rp_proto_item it;
    while (rp_proto_next(&c, &it)) {
        if (it.wire == RP_WIRE_BYTES)
            RP_TRY(add_table_row(&r, &it));
        else if (it.number == PROFILE_DEFAULT_TYPE && it.wire == RP_WIRE_VARINT)
            r.default_type = it.value;
    }
    RP_TRY(rp_proto_finish(&c, r.p.err));
    if (!r.strings.n || r.strings.at[0].n)
        return rp_err_set(r.p.err, RP_FORMAT, "the first string of the profile is not empty");
    if (!r.types.n)
        return rp_err_set(r.p.err, RP_FORMAT, "the profile does not say what its values are");
    r.address = calloc(r.locations.n + 1, sizeof *r.address);
    RP_TRY(rp_err_need(r.address, r.p.err, "reading a profile"));

    /* Chooses the value that is shown, and its unit: the default of the file, else the last one. */
    static const struct {
        const char *name;
        uint32_t unit;
        int64_t scale;
    } units[] = {{"nanoseconds", RP_WEIGHT_NS, 1},
                 {"microseconds", RP_WEIGHT_NS, 1000},
                 {"milliseconds", RP_WEIGHT_NS, 1000000},
                 {"seconds", RP_WEIGHT_NS, 1000000000},
                 {"bytes", RP_WEIGHT_BYTES, 1},
                 {"kilobytes", RP_WEIGHT_BYTES, 1024},
                 {"megabytes", RP_WEIGHT_BYTES, INT64_C(1024) * 1024}};
    uint32_t kind = RP_WEIGHT_COUNT;
    char name[100];
    r.value = r.types.n - 1;
    for (size_t i = 0; r.default_type && i < r.types.n; i++)
        if (r.types.at[i].type == r.default_type)
            r.value = i;
    struct rp_bytes type = string_at(&r, r.types.at[r.value].type);
    struct rp_bytes unit = string_at(&r, r.types.at[r.value].unit);
    r.scale = 1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (rp_bytes_are(unit, units[i].name)) {
            kind = units[i].unit;
            r.scale = units[i].scale;
        }
    snprintf(name, sizeof name, "%.*s", (int)(type.n < 90 ? type.n : 90), (const char *)type.at);
    RP_TRY(rp_profile_unit(&r.p, kind, type.n ? name : NULL));
    RP_TRY(read_samples(&r));
    return rp_profile_end(&r.p, to);
}

/* There is no magic number. The first field must be a type of values with two small string ids, or
   a sample, and all fields that are whole in the head must have the numbers and wire types of a
   profile. */
static enum rp_sniff sniff_pprof(const uint8_t *head, size_t n, const char *file)
{
    struct rp_proto_cursor c = rp_proto_cursor(head, n, 0, 8);
    struct rp_proto_item it;
    size_t types = 0, rows = 0;

    (void)file;
    while (rp_proto_next(&c, &it)) {
        bool message = it.number <= PROFILE_STRING;

        if (it.number > 15 || it.wire != (message ? RP_WIRE_BYTES : RP_WIRE_VARINT)) {
            if (it.number == 11 || it.number == 13) /* period type, comments */
                continue;
            return RP_SNIFF_NO;
        }
        if (it.number == PROFILE_SAMPLE_TYPE)
            types += it.bytes.n <= 12 && it.bytes.n >= 2 && it.bytes.at[0] == 0x08;
        if (message && it.number != PROFILE_STRING)
            rows += it.bytes.n >= 2 && (it.bytes.at[0] & 7) != 3 && (it.bytes.at[0] & 7) != 4;
    }
    return types && rows > types ? RP_SNIFF_LIKELY : RP_SNIFF_NO;
}

const struct rp_format rp_format_pprof = {
    .name = "pprof",
    .summary = "pprof's profile.proto: samples without times",
    .files = "*.pb.gz, *.prof, *.pprof",
    .written_by = "Go, gperftools' pprof, Parca, Pyroscope, JAX's device memory profile",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_pprof,
    .read = read_pprof,
};
