/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings that are damaged, descriptions that cannot be, and what events of others mean. */
#include "unit.h"

#include "formats/ctf/ctf.h"
#include "formats/ctf/other.h"

#include <glob.h>
#include <reprise/recording.h>
#include <stdlib.h>
#include <unistd.h>

#define DESCRIPTION(layout, clock)                                                            \
    "/* CTF 1.8 */\nenv { tracer_name = \"reprise\"; reprise_layout = " layout "; rank = 2; " \
    "world_size = 4; };\nclock { name = \"counter\"; " clock " };\n"
#define GOOD DESCRIPTION("1", "freq = 1000000000; offset_s = 100; offset = 7;")

/* -------------------------------------------------------------------------- a packet, byte by byte
 */

struct packet {
    struct rp_ctf_packet head;
    uint8_t events[1000];
    size_t n;
};

static struct packet packet_new(uint64_t sequence)
{
    return (struct packet){.head = {.magic = RP_CTF_MAGIC,
                                    .instance = 5,
                                    .timestamp_begin = 1000,
                                    .sequence = sequence,
                                    .pid = 10,
                                    .tid = 11}};
}

static void put(struct packet *p, const void *bytes, size_t n)
{
    if (n)
        memcpy(p->events + p->n, bytes, n);
    p->n += n;
}

static void put_event(struct packet *p, uint64_t ticks, unsigned id, const void *fields, size_t n)
{
    uint64_t word = ticks << 8 | id;

    put(p, &word, 8);
    put(p, fields, n);
}

static void put_text(struct packet *p, uint32_t number, const char *text)
{
    put_event(p, 1000, RP_CTF_STRING, &number, 4);
    put(p, text, strlen(text) + 1);
}

static void put_begin(struct packet *p, uint64_t ticks, uint32_t number)
{
    put_event(p, ticks, RP_CTF_RANGE_BEGIN, &number, 4);
}

/* -------------------------------------------------------------------------- reading it */

struct reading {
    struct rp_ctf_reader r;
    struct rp_input *in;
    struct rp_import import;
    struct rp_err err;
};

static void reading_begin(struct reading *x, const char *description)
{
    static const struct rp_read_options options = {0};

    *x = (struct reading){.err = RP_ERR_INIT};
    assert_ok(
        rp_input_open_memory("metadata", description, strlen(description), NULL, &x->in, &x->err),
        &x->err);
    assert_ok(rp_ctf_reader_init(&x->r, x->in, &options, &x->err), &x->err);
}

static enum rp_code reading_add(struct reading *x, struct packet *p, bool salvage)
{
    struct rp_ctf_bytes bytes = {
        .name = "s_10_11", .at = (const uint8_t *)p, .n = sizeof p->head + p->n};
    uint64_t cut;

    if (!p->head.content_bits)
        p->head.content_bits = bytes.n * 8;
    if (rp_ctf_packet_check(&bytes, salvage, &cut, &x->err) != RP_OK)
        return x->err.code;
    return rp_vec_push(&x->r.packets, bytes, &x->err);
}

static enum rp_code reading_run(struct reading *x)
{
    if (rp_ctf_describe(&x->r, &x->err) != RP_OK || rp_ctf_read_packets(&x->r, &x->err) != RP_OK ||
        rp_ctf_check_numbers(&x->r, &x->err) != RP_OK)
        return x->err.code;
    return rp_proto_trace_finish(&x->r.t, &x->import, 0, &x->err);
}

static void reading_end(struct reading *x)
{
    rp_import_release(&x->import);
    rp_ctf_reader_release(&x->r);
    rp_input_close(x->in);
}

/* -------------------------------------------------------------------------- tests */

static void test_times(void **state)
{
    struct packet p = packet_new(0);
    struct reading x;
    const struct rp_trace *t;

    UNUSED_STATE(state);
    put_text(&p, 3, "range");
    put_begin(&p, 2000, 3);
    put_event(&p, 5000, RP_CTF_RANGE_END, NULL, 0);
    put_begin(&p, 6000, 3);
    reading_begin(&x, GOOD);
    assert_code(reading_add(&x, &p, false), RP_OK);
    assert_ok(reading_run(&x), &x.err);
    t = x.import.trace;
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->world_size, 4);
    assert_int_equal(t->ev.n, 2);
    assert_int_equal(t->base_ns, INT64_C(100000000007)); /* no calibration: as described */
    assert_int_equal(t->ev.ts_ns[0], 2000);
    assert_int_equal(t->ev.dur_ns[0], 3000);
    assert_int_equal(t->health.unended, 1);
    reading_end(&x);
}

/* One stream of a process that calls exec, as `program`. */
static struct packet image_of(uint64_t instance, uint64_t begin, const char *program)
{
    struct rp_ctf_process process = {.pid = 10, .program = 3, .host = 4, .command = 4};
    struct packet p = packet_new(0);

    p.head.instance = instance;
    p.head.timestamp_begin = begin;
    put_text(&p, 3, program);
    put_text(&p, 4, "");
    put_event(&p, begin, RP_CTF_PROCESS, &process, sizeof process);
    return p;
}

/* The id of a stream is random: the last program of a process is the one that began last. */
static void test_exec(void **state)
{
    UNUSED_STATE(state);
    for (uint64_t last = 0; last < 3; last++) {
        struct packet p[3];
        struct reading x;

        reading_begin(&x, GOOD);
        for (uint64_t i = 0; i < 3; i++) {
            p[i] =
                image_of(i + 1, 1000 + (i + 2 - last) % 3, i == last ? "/bin/python" : "/bin/sh");
            assert_code(reading_add(&x, &p[i], false), RP_OK);
        }
        assert_ok(reading_run(&x), &x.err);
        assert_int_equal(x.import.trace->nprocesses, 1);
        assert_string_equal(rp_trace_str(x.import.trace, x.import.trace->processes[0].name),
                            "python");
        reading_end(&x);
    }
}

/* 56 bits of time: the upper ones are those of the event before, and a smaller value has wrapped.
 */
static void test_wrapped_time(void **state)
{
    const uint64_t top = UINT64_C(3) << 56;
    struct packet p = packet_new(0);
    struct reading x;

    UNUSED_STATE(state);
    p.head.timestamp_begin = top | UINT64_C(0xfffffffffffff0);
    put_text(&p, 3, "range");
    memcpy(p.events, &(uint64_t){UINT64_C(0xfffffffffffff1) << 8 | RP_CTF_STRING}, 8);
    put_begin(&p, UINT64_C(0xfffffffffffff8), 3);
    put_event(&p, 8, RP_CTF_RANGE_END, NULL, 0);
    reading_begin(&x, GOOD);
    assert_code(reading_add(&x, &p, false), RP_OK);
    assert_ok(reading_run(&x), &x.err);
    assert_int_equal(x.import.trace->ev.ts_ns[0], top | UINT64_C(0xfffffffffffff8));
    assert_int_equal(x.import.trace->ev.dur_ns[0], 16);
    reading_end(&x);
}

/* Calibrations place times; a reading that took long is not believed. */
static void test_calibration(void **state)
{
    static const struct rp_ctf_clock clocks[] = {
        {1000, 5000000000, 9000000000, 20},
        {500001000, 5990000000, 9990000000, 100000}, /* wide, and wrong */
        {1000001000, 7000000000, 11000000000, 20},   /* the counter runs at half the frequency */
    };
    struct packet p = packet_new(0);
    struct reading x;

    UNUSED_STATE(state);
    p.head.clocks = 3;
    put_text(&p, 3, "range");
    for (int i = 0; i < 3; i++)
        put_event(&p, 1000 + (uint64_t)i, RP_CTF_CLOCK, &clocks[i], sizeof clocks[i]);
    put_begin(&p, 500001000, 3);
    put_event(&p, 500002000, RP_CTF_RANGE_END, NULL, 0);
    reading_begin(&x, GOOD);
    assert_code(reading_add(&x, &p, false), RP_OK);
    assert_ok(reading_run(&x), &x.err);
    assert_int_equal(x.import.trace->ev.ts_ns[0], 6000000000);
    assert_int_equal(x.import.trace->ev.dur_ns[0], 2000);
    assert_int_equal(x.import.trace->base_ns, 4000000000);
    reading_end(&x);
}

/* A gap in the packets ends what was open; the texts of one packet are not those of the next. */
static void test_gap(void **state)
{
    struct packet a = packet_new(0), b = packet_new(2), c = packet_new(3);
    struct reading x;

    UNUSED_STATE(state);
    a.head.discarded = 4;
    put_text(&a, 1, "lost its end");
    put_begin(&a, 2000, 1);
    b.head.discarded = 9;
    put_text(&b, 1, "another");
    put_event(&b, 3000, RP_CTF_RANGE_END, NULL, 0);
    put_begin(&b, 4000, 1);
    put_event(&c, 5000, RP_CTF_RANGE_END, NULL, 0);
    reading_begin(&x, GOOD);
    assert_code(reading_add(&x, &c, false), RP_OK);
    assert_code(reading_add(&x, &b, false), RP_OK);
    assert_code(reading_add(&x, &a, false), RP_OK);
    assert_ok(reading_run(&x), &x.err);
    assert_int_equal(x.import.trace->ev.n, 2);
    assert_int_equal(x.import.trace->health.unended, 1);
    assert_int_equal(x.import.trace->health.lost_events, 9);
    assert_int_equal(x.import.trace->ev.dur_ns[1], 1000);
    assert_int_equal(x.import.trace->nwarnings, 2);
    assert_int_equal(x.import.trace->health.truncated, 1);
    assert_contains(rp_trace_str(x.import.trace, x.import.trace->warnings[1]),
                    "1 packet is missing (the first is number 1 of stream 0000000000000005)");
    assert_contains(rp_trace_str(x.import.trace, x.import.trace->warnings[0]),
                    "1 end of ranges was skipped");
    reading_end(&x);
}

/* What a ring overwrote is not missing. */
static void test_ring(void **state)
{
    struct packet a = packet_new(7), b = packet_new(8);
    struct reading x;

    UNUSED_STATE(state);
    reading_begin(&x, GOOD);
    assert_code(reading_add(&x, &a, false), RP_OK);
    assert_code(reading_add(&x, &b, false), RP_OK);
    x.r.is_ring = true;
    assert_ok(reading_run(&x), &x.err);
    assert_int_equal(x.import.trace->nwarnings, 0);
    assert_int_equal(x.import.trace->health.truncated, 0);
    reading_end(&x);
}

static void fails(struct packet *p, enum rp_code want, const char *text)
{
    struct reading x;
    enum rp_code code;

    reading_begin(&x, GOOD);
    code = reading_add(&x, p, false);
    if (code == RP_OK)
        code = reading_run(&x);
    assert_code(code, want);
    assert_contains(x.err.text, text);
    assert_contains(x.err.text, "s_10_11");
    reading_end(&x);
}

/* Two threads had the stream one after another: two packets in one file. */
static size_t put_file(uint8_t *to, struct packet *p, size_t room)
{
    size_t n = sizeof p->head + p->n;

    p->head.content_bits = n * 8;
    p->head.packet_bits = room * 8;
    memcpy(to, &p->head, sizeof p->head);
    memcpy(to + sizeof p->head, p->events, p->n);
    return room;
}

static void test_packets_in_one_file(void **state)
{
    struct packet a = packet_new(0), b = packet_new(1);
    uint8_t file[4096] = {0};
    struct reading x;
    size_t n;

    UNUSED_STATE(state);
    put_text(&a, 3, "first");
    put_begin(&a, 2000, 3); /* never ends: the next thread's end is not its own */
    a.head.discarded = 4;
    put_text(&b, 3, "second");
    put_begin(&b, 3000, 3);
    put_event(&b, 4000, RP_CTF_RANGE_END, NULL, 0);
    put_event(&b, 5000, RP_CTF_RANGE_END, NULL, 0);
    b.head.tid = 12;
    b.head.discarded = 6;
    n = put_file(file, &a, (sizeof a.head + a.n + 7) & ~(size_t)7);
    n += put_file(file + n, &b, sizeof file - n);
    reading_begin(&x, GOOD);
    assert_ok(rp_ctf_files_split(&x.r, "s_file", file, n, &x.err), &x.err);
    assert_int_equal(x.r.packets.n, 2);
    assert_ok(reading_run(&x), &x.err);
    assert_int_equal(x.import.trace->ev.n, 2);
    assert_int_equal(x.import.trace->health.unended, 1);
    assert_int_equal(x.import.trace->health.lost_events, 6);
    reading_end(&x);

    file[(sizeof a.head + a.n + 7) & ~(size_t)7] ^= 1; /* the second one's magic */
    reading_begin(&x, GOOD);
    assert_code(rp_ctf_files_split(&x.r, "s_file", file, n, &x.err), RP_FORMAT);
    assert_non_null(strstr(x.err.text, "has no packet at byte"));
    reading_end(&x);
    put_file(file, &a, 8); /* smaller than its content */
    reading_begin(&x, GOOD);
    assert_code(rp_ctf_files_split(&x.r, "s_file", file, n, &x.err), RP_FORMAT);
    reading_end(&x);
}

static void test_damaged(void **state)
{
    struct packet p;

    UNUSED_STATE(state);
    p = packet_new(0);
    p.head.magic = 7;
    fails(&p, RP_FORMAT, "has no packet");
    p = packet_new(0);
    p.head.content_bits = 8 * 5000;
    fails(&p, RP_FORMAT, "cut short");
    p = packet_new(0);
    p.head.content_bits = 8;
    fails(&p, RP_FORMAT, "invalid packet");
    p = packet_new(0);
    put_event(&p, 1000, 99, NULL, 0);
    fails(&p, RP_FORMAT, "unknown event at byte 96");
    p = packet_new(0);
    put_begin(&p, 1000, 3);
    fails(&p, RP_FORMAT, "does not define");
    p = packet_new(0);
    put_event(&p, 1000, RP_CTF_STRING, "\1\0\0\0abc", 7);
    fails(&p, RP_FORMAT, "unterminated text");
    p = packet_new(0);
    put_event(&p, 1000, RP_CTF_SPAN, "x", 1);
    fails(&p, RP_FORMAT, "ends inside an event");
    p = packet_new(0);
    put_event(&p, 1000, RP_CTF_STRING, "\377\377\377\377x", 6);
    fails(&p, RP_FORMAT, "out of range");
}

static void test_descriptions(void **state)
{
    static const char *const cases[][2] = {
        {DESCRIPTION("2", "freq = 1000000000;"), "layout 2"},
        {DESCRIPTION("1", "offset = 3;"), "invalid clock frequency"},
        {DESCRIPTION("1", "freq = 3;"), "invalid clock frequency"},
        {DESCRIPTION("1", "freq = 1000000000; offset_s = -9;"), "invalid clock offset"},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reading x;

        reading_begin(&x, cases[i][0]);
        assert_code(reading_run(&x), RP_FORMAT);
        assert_contains(x.err.text, cases[i][1]);
        reading_end(&x);
    }
}

static void test_alone(void **state)
{
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;

    UNUSED_STATE(state);
    assert_ok(rp_input_open_memory("run.tar!metadata", GOOD, strlen(GOOD), NULL, &in, &err), &err);
    assert_code(rp_format_read(in, NULL, &import, &err), RP_UNSUPPORTED);
    assert_contains(err.text, "a tar of it");
}

/* -------------------------------------------------------------------------- other tracers */

static void other_event(struct rp_ctf_other *o, const char *name, int64_t ns, int64_t tid,
                        const char *text)
{
    struct rp_ctf_other_row e = {.name = name, .ns = ns, .pid = 1, .tid = tid, .cpu = -1};
    struct rp_err err = RP_ERR_INIT;

    if (text) {
        e.fields[0] = (struct rp_ctf_field){.name = "name", .type = RP_ARG_STR, .text = text};
        e.nfields = 1;
    }
    assert_ok(rp_ctf_other_event(o, &e, &err), &err);
}

static int64_t dur_of(const struct rp_trace *t, const char *name)
{
    for (rp_event e = 0; e < t->ev.n; e++)
        if (!strcmp(rp_trace_str(t, t->ev.name[e]), name))
            return t->ev.dur_ns[e];
    return -99;
}

static void test_other_pairs(void **state)
{
    static const struct rp_read_options options = {0};
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_ctf_other o = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;

    UNUSED_STATE(state);
    assert_ok(rp_input_open_memory("metadata", GOOD, strlen(GOOD), NULL, &in, &err), &err);
    assert_ok(rp_proto_trace_init(&o.t, in, &options, "ctf", &err), &err);
    other_event(&o, "a:call_entry", 100, 1, "outer");
    other_event(&o, "a:call_entry", 110, 2, "outer"); /* another thread */
    other_event(&o, "a:call_entry", 120, 1, "lost its exit");
    other_event(&o, "a:call_entry", 130, 1, "inner");
    other_event(&o, "a:call_exit", 140, 1, "inner");
    other_event(&o, "a:call_exit", 200, 1, "outer");
    other_event(&o, "a:call_exit", 210, 1, "lost its entry");
    other_event(&o, "a:call_exit", 410, 2, "outer");
    other_event(&o, "syscall_entry_openat", 500, 2, NULL);
    other_event(&o, "syscall_exit_openat", 530, 2, NULL);
    other_event(&o, "a:moment", 600, 2, NULL);
    assert_ok(rp_ctf_other_end(&o, &err), &err);
    assert_ok(rp_proto_trace_finish(&o.t, &import, 0, &err), &err);
    assert_ok(rp_trace_validate(import.trace, &err), &err);
    assert_int_equal(dur_of(import.trace, "inner"), 10);
    assert_int_equal(dur_of(import.trace, "outer"), 100);
    assert_int_equal(dur_of(import.trace, "openat"), 30);
    assert_int_equal(dur_of(import.trace, "lost its exit"), RP_OPEN_NS);
    assert_int_equal(import.trace->health.unended, 1);
    assert_int_equal(import.trace->health.unbegun, 1);
    assert_int_equal(import.trace->totals.count[RP_KIND_INSTANT],
                     2); /* the exit alone is one too */
    rp_import_release(&import);
    rp_ctf_other_release(&o);
    rp_input_close(in);
}

/* The ledger is mapped to be added to: one that was cut is left alone. */
static void test_cut_ledger(void **state)
{
    char folder[] = "/tmp/reprise-ledger-XXXXXX", pattern[64];
    struct rp_err err = RP_ERR_INIT;
    glob_t found;

    UNUSED_STATE(state);
    assert_non_null(mkdtemp(folder));
    assert_ok(rp_recording_prepare(folder, &err), &err);
    snprintf(pattern, sizeof pattern, "%s/" RP_CTF_LEDGER_NAME "*", folder);
    assert_int_equal(glob(pattern, GLOB_PERIOD, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    assert_int_equal(truncate(found.gl_pathv[0], 0), 0);
    rp_recording_spent(folder, 1000);
    assert_int_equal(unlink(found.gl_pathv[0]), 0);
    assert_int_equal(rmdir(folder), 0);
    globfree(&found);
}

int test_ctf(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),       cmocka_unit_test(test_wrapped_time),
        cmocka_unit_test(test_calibration), cmocka_unit_test(test_gap),
        cmocka_unit_test(test_ring),        cmocka_unit_test(test_packets_in_one_file),
        cmocka_unit_test(test_damaged),     cmocka_unit_test(test_descriptions),
        cmocka_unit_test(test_alone),       cmocka_unit_test(test_other_pairs),
        cmocka_unit_test(test_cut_ledger),  cmocka_unit_test(test_exec),
    };

    return cmocka_run_group_tests_name("ctf", tests, NULL, NULL);
}
