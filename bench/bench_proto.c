/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast messages are read: MB/s of a walk over every field with the cursor, and of writing
 * every field again. Without an argument over an XSpace made in memory (planes, lines, events of
 * two stats each, names), about 200 MB; with a path over that file, walked as an XSpace too.
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

static const uint32_t inner[] = {1, 3, 4, 4}; /* planes, lines, events, stats */

/* What a reader of traces does with the cursor: follow the messages, look at each field. */
static uint64_t walk(struct rp_proto_cursor *c, unsigned level, uint64_t *sum)
{
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

/* Copies every field, message by message. */
static void copy_fields(struct rp_proto_cursor *c, unsigned level, struct rp_proto_writer *w)
{
    struct rp_proto_item item;

    while (rp_proto_next(c, &item)) {
        if (level < 4 && item.number == inner[level] && item.wire == RP_WIRE_BYTES) {
            struct rp_proto_cursor in = rp_proto_enter(c, &item);
            size_t begun = rp_proto_begin(w, item.number);

            copy_fields(&in, level + 1, w);
            rp_proto_end(w, begun);
        } else if (item.wire == RP_WIRE_VARINT) {
            rp_proto_put_varint(w, item.number, item.value);
        } else {
            rp_proto_add_bytes(w, item.begin, (size_t)(c->at - item.begin));
        }
    }
}

static int bench_copy(struct rp_bytes bytes, struct rp_err *err)
{
    double best = 1e9;

    for (int round = 0; round < ROUNDS; round++) {
        struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, 0, DEPTH);
        struct rp_proto_writer w = {0};
        struct rp_bytes written;
        double start = seconds(), took;
        enum rp_code code;

        copy_fields(&c, 0, &w);
        took = seconds() - start;
        best = took < best ? took : best;
        code = rp_proto_finish(&c, err);
        if (code == RP_OK)
            code = rp_proto_written(&w, &written, err);
        rp_proto_writer_release(&w);
        if (code != RP_OK)
            return -1;
    }
    printf("copy    %8.0f MB/s\n", (double)bytes.n / best / 1e6);
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
        failed = bench_copy(bytes, &err) < 0;
    }
    if (failed)
        fprintf(stderr, "bench_proto: %s\n", err.text);
    rp_input_close(in);
    rp_proto_writer_release(&w);
    return failed ? 1 : 0;
}
