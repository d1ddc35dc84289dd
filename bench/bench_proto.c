/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast messages are read: MB/s of a walk over every field with the cursor, and of decoding by
 * tables. Without an argument over an XSpace made in memory (planes, lines, events of two stats
 * each, names), about 200 MB; with a path over that file, walked as an XSpace too.
 *
 *     bench_proto [FILE | MEGABYTES]
 */
#include "io/input.h"
#include "io/proto.h"
#include "io/proto_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 5
#define DEPTH  64

struct stat {
    struct rp_proto_head head;
    int64_t metadata_id;
    union {
        double double_value;
        uint64_t uint64_value, ref_value;
        int64_t int64_value;
        struct rp_bytes str_value, bytes_value;
    };
};

static const struct rp_proto_field stat_fields[] = {
    RP_PROTO_FIELD(struct stat, 1, metadata_id, INT64),
    RP_PROTO_ONEOF(struct stat, 2, double_value, DOUBLE, 1),
    RP_PROTO_ONEOF(struct stat, 3, uint64_value, UINT64, 1),
    RP_PROTO_ONEOF(struct stat, 4, int64_value, INT64, 1),
    RP_PROTO_ONEOF(struct stat, 5, str_value, BYTES, 1),
    RP_PROTO_ONEOF(struct stat, 6, bytes_value, BYTES, 1),
    RP_PROTO_ONEOF(struct stat, 7, ref_value, UINT64, 1),
};
static const struct rp_proto_message stat_message = RP_PROTO_TABLE(struct stat, stat_fields);

struct event {
    struct rp_proto_head head;
    int64_t metadata_id, offset_ps, duration_ps, num_occurrences;
    RP_PROTO_LIST_OF(struct stat) stats;
};

static const struct rp_proto_field event_fields[] = {
    RP_PROTO_FIELD(struct event, 1, metadata_id, INT64),
    RP_PROTO_ONEOF(struct event, 2, offset_ps, INT64, 1),
    RP_PROTO_FIELD(struct event, 3, duration_ps, INT64),
    RP_PROTO_FIELDS(struct event, 4, stats, MESSAGE, 0, &stat_message),
    RP_PROTO_ONEOF(struct event, 5, num_occurrences, INT64, 1),
};
static const struct rp_proto_message event_message = RP_PROTO_TABLE(struct event, event_fields);

struct line {
    struct rp_proto_head head;
    int64_t id, timestamp_ns, duration_ps, display_id;
    struct rp_bytes name, display_name;
    RP_PROTO_LIST_OF(struct event) events;
};

static const struct rp_proto_field line_fields[] = {
    RP_PROTO_FIELD(struct line, 1, id, INT64),
    RP_PROTO_FIELD(struct line, 2, name, BYTES),
    RP_PROTO_FIELD(struct line, 3, timestamp_ns, INT64),
    RP_PROTO_FIELDS(struct line, 4, events, MESSAGE, 0, &event_message),
    RP_PROTO_FIELD(struct line, 9, duration_ps, INT64),
    RP_PROTO_FIELD(struct line, 10, display_id, INT64),
    RP_PROTO_FIELD(struct line, 11, display_name, BYTES),
};
static const struct rp_proto_message line_message = RP_PROTO_TABLE(struct line, line_fields);

struct metadata {
    struct rp_proto_head head;
    int64_t id;
    struct rp_bytes name, metadata, display_name;
    RP_PROTO_LIST_OF(struct stat) stats;
    RP_PROTO_LIST_OF(int64_t) child_id;
};

static const struct rp_proto_field metadata_fields[] = {
    RP_PROTO_FIELD(struct metadata, 1, id, INT64),
    RP_PROTO_FIELD(struct metadata, 2, name, BYTES),
    RP_PROTO_FIELD(struct metadata, 3, metadata, BYTES),
    RP_PROTO_FIELD(struct metadata, 4, display_name, BYTES),
    RP_PROTO_FIELDS(struct metadata, 5, stats, MESSAGE, 0, &stat_message),
    RP_PROTO_FIELDS(struct metadata, 6, child_id, INT64, RP_PROTO_PACKED, NULL),
};
static const struct rp_proto_message metadata_message =
    RP_PROTO_TABLE(struct metadata, metadata_fields);

struct entry {
    struct rp_proto_head head;
    int64_t key;
    struct metadata *value;
};

static const struct rp_proto_field entry_fields[] = {
    RP_PROTO_FIELD(struct entry, 1, key, INT64),
    RP_PROTO_SUB(struct entry, 2, value, &metadata_message),
};
static const struct rp_proto_message entry_message = RP_PROTO_TABLE(struct entry, entry_fields);

struct plane {
    struct rp_proto_head head;
    int64_t id;
    struct rp_bytes name;
    RP_PROTO_LIST_OF(struct line) lines;
    RP_PROTO_LIST_OF(struct entry) event_metadata;
    RP_PROTO_LIST_OF(struct stat) stats;
};

/* stat_metadata (5) is left out: unknown fields are part of what is measured. */
static const struct rp_proto_field plane_fields[] = {
    RP_PROTO_FIELD(struct plane, 1, id, INT64),
    RP_PROTO_FIELD(struct plane, 2, name, BYTES),
    RP_PROTO_FIELDS(struct plane, 3, lines, MESSAGE, 0, &line_message),
    RP_PROTO_FIELDS(struct plane, 4, event_metadata, MESSAGE, 0, &entry_message),
    RP_PROTO_FIELDS(struct plane, 6, stats, MESSAGE, 0, &stat_message),
};
static const struct rp_proto_message plane_message = RP_PROTO_TABLE(struct plane, plane_fields);

struct space {
    struct rp_proto_head head;
    RP_PROTO_LIST_OF(struct plane) planes;
    RP_PROTO_LIST_OF(struct rp_bytes) errors, warnings, hostnames;
};

static const struct rp_proto_field space_fields[] = {
    RP_PROTO_FIELDS(struct space, 1, planes, MESSAGE, 0, &plane_message),
    RP_PROTO_FIELDS(struct space, 2, errors, BYTES, 0, NULL),
    RP_PROTO_FIELDS(struct space, 3, warnings, BYTES, 0, NULL),
    RP_PROTO_FIELDS(struct space, 4, hostnames, BYTES, 0, NULL),
};
static const struct rp_proto_message space_message = RP_PROTO_TABLE(struct space, space_fields);

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* An event as a GPU plane has them: name, start, duration, correlation id, a text by reference. */
static void make_event(struct rp_proto_writer *w, uint64_t *seed, uint64_t *at_ps)
{
    size_t event = rp_proto_begin(w, 4), stat;
    uint64_t duration = 1000000 + random_next(seed) % 100000000;

    rp_proto_put_varint(w, 1, random_next(seed) % 500);
    rp_proto_put_varint(w, 2, *at_ps);
    rp_proto_put_varint(w, 3, duration);
    stat = rp_proto_begin(w, 4);
    rp_proto_put_varint(w, 1, 7);
    rp_proto_put_varint(w, 3, random_next(seed) % 1000000);
    rp_proto_end(w, stat);
    stat = rp_proto_begin(w, 4);
    rp_proto_put_varint(w, 1, 9);
    rp_proto_put_varint(w, 7, random_next(seed) % 1000);
    rp_proto_end(w, stat);
    rp_proto_end(w, event);
    *at_ps += duration + 500000;
}

static void make_names(struct rp_proto_writer *w)
{
    char name[80];

    for (unsigned i = 0; i < 500; i++) {
        size_t entry = rp_proto_begin(w, 4), value;

        rp_proto_put_varint(w, 1, i);
        value = rp_proto_begin(w, 2);
        snprintf(name, sizeof name, "void cutlass::Kernel<cutlass_80_wmma_tensorop_%u>(Params)", i);
        rp_proto_put_varint(w, 1, i);
        rp_proto_put_text(w, 2, name);
        rp_proto_end(w, value);
        rp_proto_end(w, entry);
    }
}

static void make_space(struct rp_proto_writer *w, size_t megabytes)
{
    uint64_t seed = 88172645463325252u;

    for (unsigned p = 0; p < 4; p++) {
        size_t plane = rp_proto_begin(w, 1);

        rp_proto_put_varint(w, 1, p);
        rp_proto_put_text(w, 2, "/device:GPU:0");
        for (unsigned l = 0; l < 4; l++) {
            size_t line = rp_proto_begin(w, 3), stop = w->bytes.n + megabytes * 1000000 / 16;
            uint64_t at_ps = 0;

            rp_proto_put_text(w, 2, "Stream #134(Compute)");
            while (w->bytes.n < stop && w->code == RP_OK)
                make_event(w, &seed, &at_ps);
            rp_proto_end(w, line);
        }
        make_names(w);
        rp_proto_end(w, plane);
    }
}

/* What a reader of traces does with the cursor: follow the messages, look at each field. */
static uint64_t walk(struct rp_proto_cursor *c, unsigned level, uint64_t *sum)
{
    static const uint32_t inner[] = {1, 3, 4, 4}; /* planes, lines, events, stats */
    struct rp_proto_item item;
    uint64_t n = 0;

    while (rp_proto_next(c, &item)) {
        n++;
        if (level < 4 && item.number == inner[level] && item.wire == RP_WIRE_BYTES) {
            struct rp_proto_cursor in = rp_proto_enter(c, &item);

            n += walk(&in, level + 1, sum);
        } else {
            *sum += item.value;
        }
    }
    return n;
}

/* Of the processor, not of the clock on the wall: benchmarks share machines. */
static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void bench_walk(struct rp_bytes bytes)
{
    double best = 1e9;
    uint64_t n = 0, sum = 0;

    for (int round = 0; round < ROUNDS; round++) {
        struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, 0, DEPTH);
        double start = seconds(), took;

        n = walk(&c, 0, &sum);
        took = seconds() - start;
        best = took < best ? took : best;
    }
    printf("walk    %8.0f MB/s  %6.1f ns a field  %llu fields (sum %llx)\n",
           (double)bytes.n / best / 1e6, best * 1e9 / (double)n, (unsigned long long)n,
           (unsigned long long)sum);
}

static int bench_decode(struct rp_bytes bytes, struct rp_err *err)
{
    double best = 1e9, best_write = 1e9;
    size_t memory = 0;

    for (int round = 0; round < ROUNDS; round++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_proto_writer w = {0};
        struct space space = {0};
        double start = seconds(), took, middle;
        enum rp_code code =
            rp_proto_decode(&space_message, bytes.at, bytes.n, NULL, &arena, &space, err);

        middle = seconds();
        took = middle - start;
        best = took < best ? took : best;
        if (code == RP_OK)
            rp_proto_put_struct(&w, &space_message, &space);
        took = seconds() - middle;
        best_write = took < best_write ? took : best_write;
        memory = arena.bytes;
        rp_arena_release(&arena);
        rp_proto_writer_release(&w);
        if (code != RP_OK)
            return -1;
    }
    printf("decode  %8.0f MB/s  %6.2f bytes of memory a byte\n", (double)bytes.n / best / 1e6,
           (double)memory / (double)bytes.n);
    printf("encode  %8.0f MB/s\n", (double)bytes.n / best_write / 1e6);
    return 0;
}

int main(int argc, char **argv)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_writer w = {0};
    struct rp_input *in = NULL;
    struct rp_bytes bytes = {NULL, 0};
    size_t megabytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
    int failed;

    if (argc > 1 && megabytes == 0) {
        if (rp_input_open(argv[1], NULL, &in, &err) == RP_OK)
            rp_input_slurp(in, &bytes.at, &bytes.n, &err);
    } else {
        make_space(&w, megabytes);
        rp_proto_written(&w, &bytes, &err);
    }
    failed = err.code != RP_OK;
    if (!failed) {
        printf("input   %8.1f MB\n", (double)bytes.n / 1e6);
        bench_walk(bytes);
        failed = bench_decode(bytes, &err) < 0;
    }
    if (failed)
        fprintf(stderr, "bench_proto: %s\n", err.text);
    rp_input_close(in);
    rp_proto_writer_release(&w);
    return failed ? 1 : 0;
}
