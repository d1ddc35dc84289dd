/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native file: what comes back is what was written, every changed byte and every cut is
 * noticed, and a file that lies with right checksums is refused.
 */
#include "trace/rpt/layout.h"
#include "trace_fixtures.h"

static const struct row rows[] = {
    {'M', NULL, "process_name", 1, 0, RP_NO_TS, 0, .text_key = "name", .text = "python"},
    {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 500},
    {'X', "cpu_op", "aten::mm", 1, 1, 10, 50, .external = 5},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20, 10, .corr = 9},
    {'X', "kernel", "gemm", 0, 7, 60, 20, .corr = 9, .stream = 7},
    {'s', "ac2g", "ac2g", 1, 1, 20, .id = 9},
    {'f', "ac2g", "ac2g", 0, 7, 60, .id = 9},
    {'b', "net", "get", 1, 1, 10, .id = 5},
    {'e', "net", "get", 1, 1, 15, .id = 5, .key = "bytes", .value = 1},
};

/* Two samples, whose stacks share their outer frame. */
static void add_samples(struct rp_builder *b)
{
    struct rp_call_frame frame = {str_of(b, "main"), str_of(b, "train.py"), 3, RP_FRAME_PYTHON};
    struct rp_raw_sample sample = {.ts_ns = 12, .weight = 10, .flags = RP_SAMPLE_RAN};
    uint32_t id;

    assert_code(rp_builder_frame(b, &frame, &id, NULL), RP_OK);
    assert_code(rp_builder_stack(b, RP_NONE, id, &sample.stack, NULL), RP_OK);
    assert_code(rp_builder_add_sample(b, &sample, NULL), RP_OK);
    frame = (struct rp_call_frame){str_of(b, "gemm"), str_of(b, "libblas.so"), 0, RP_FRAME_NATIVE};
    assert_code(rp_builder_frame(b, &frame, &id, NULL), RP_OK);
    assert_code(rp_builder_stack(b, sample.stack, id, &sample.stack, NULL), RP_OK);
    sample.ts_ns = 22;
    assert_code(rp_builder_add_sample(b, &sample, NULL), RP_OK);
}

static struct rp_trace *make_trace(void)
{
    struct rp_builder *b = build_rows(rows, sizeof rows / sizeof rows[0]);
    struct rp_device device = {.id = 1, .memory_bytes = 2, .multiprocessors = 3};

    device.name = str_of(b, "H200");
    assert_code(rp_builder_add_device(b, &device, NULL), RP_OK);
    assert_code(rp_builder_add_meta(b, str_of(b, "key"), str_of(b, "[1]"), true, NULL), RP_OK);
    assert_code(rp_builder_warn(b, NULL, "a warning"), RP_OK);
    add_samples(b);
    rp_builder_borrow_trace(b)->rank = 3;
    rp_builder_borrow_trace(b)->base_ns = 12345;
    rp_builder_borrow_trace(b)->has_base = 1;
    return finish_valid(b);
}

/* All sections of two traces are equal, byte by byte. */
static void assert_same(const struct rp_trace *a, const struct rp_trace *b)
{
    struct rp_rpt_head ha = rp_rpt_head_of(a), hb = rp_rpt_head_of(b);
    const struct rp_rpt_section *section;
    size_t n, i;

    assert_memory_equal(&ha, &hb, sizeof ha);
    section = rp_rpt_sections(&n);
    for (i = 0; i < n; i++) {
        const void *pa = (const char *)a + section[i].pointer;
        const void *pb = (const char *)b + section[i].pointer;
        uint64_t bytes = rp_rpt_count(&ha, &section[i]) * section[i].element_bytes;

        if (!section[i].inlined) {
            memcpy(&pa, pa, sizeof pa);
            memcpy(&pb, pb, sizeof pb);
        }
        if (bytes && memcmp(pa, pb, bytes) != 0)
            fail_msg("section '%s' differs", section[i].name);
    }
}

static void test_round_trip(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_trace *t = make_trace(), *u;
    size_t n, again;
    uint8_t *bytes = rpt_of(t, &n), *second;

    UNUSED_STATE(state);
    assert_true(rp_rpt_sniff(bytes, 8));
    assert_false(rp_rpt_sniff(bytes, 7));
    assert_ok(rp_rpt_verify(bytes, n, &err), &err);
    assert_ok(rp_rpt_open(bytes, n, &u, &err), &err);
    assert_string_equal(rp_trace_str(u, u->warnings[0]), "a warning");
    assert_ok(rp_trace_require(u, RP_NEED_ALL, &err), &err);
    assert_ok(rp_trace_require(u, RP_NEED_ALL, &err), &err);
    assert_same(t, u);
    second = rpt_of(u, &again);
    assert_int_equal(again, n);
    assert_memory_equal(second, bytes, n);
    rp_trace_free(t);
    rp_trace_free(u);
    free(second);
    free(bytes);
}

/* Bytes that are not aligned are copied. */
static void test_unaligned(void **state)
{
    struct rp_trace *t = make_trace(), *u;
    struct rp_err err = RP_ERR_INIT;
    size_t n;
    uint8_t *bytes = rpt_of(t, &n), *moved = malloc(n + 1);

    UNUSED_STATE(state);
    assert_non_null(moved);
    memcpy(moved + 1, bytes, n);
    assert_ok(rp_rpt_verify(moved + 1, n, &err), &err);
    assert_ok(rp_rpt_open(moved + 1, n, &u, &err), &err);
    assert_ok(rp_trace_require(u, RP_NEED_ALL, &err), &err);
    assert_same(t, u);
    rp_trace_free(t);
    rp_trace_free(u);
    free(moved);
    free(bytes);
}

static void test_every_changed_byte(void **state)
{
    struct rp_trace *t = make_trace();
    struct rp_err err = RP_ERR_INIT;
    size_t n, i;
    uint8_t *bytes = rpt_of(t, &n);

    UNUSED_STATE(state);
    for (i = 0; i < n; i++) {
        int bit;

        for (bit = 0; bit < 8; bit++) {
            bytes[i] ^= (uint8_t)(1 << bit);
            if (rp_rpt_verify(bytes, n, &err) == RP_OK)
                fail_msg("bit %d of byte %zu does not matter", bit, i);
            bytes[i] ^= (uint8_t)(1 << bit);
        }
    }
    assert_ok(rp_rpt_verify(bytes, n, &err), &err);
    rp_trace_free(t);
    free(bytes);
}

static void test_every_cut(void **state)
{
    struct rp_trace *t = make_trace(), *u;
    struct rp_err err = RP_ERR_INIT;
    size_t n, i;
    uint8_t *bytes = rpt_of(t, &n);

    UNUSED_STATE(state);
    for (i = 0; i < n; i++) {
        assert_code(rp_rpt_open(bytes, i, &u, &err), RP_FORMAT);
        assert_null(u);
        assert_code(rp_rpt_verify(bytes, i, &err), RP_FORMAT);
    }
    assert_contains(err.text, "cut short");
    rp_trace_free(t);
    free(bytes);
}

static void test_other_versions(void **state)
{
    struct rp_trace *t = make_trace(), *u;
    struct rp_err err = RP_ERR_INIT;
    size_t n;
    uint8_t *bytes = rpt_of(t, &n);

    UNUSED_STATE(state);
    bytes[8] = RP_RPT_VERSION + 1;
    assert_code(rp_rpt_open(bytes, n, &u, &err), RP_UNSUPPORTED);
    assert_contains(err.text, "newer");
    bytes[8] = 0;
    assert_code(rp_rpt_open(bytes, n, &u, &err), RP_UNSUPPORTED);
    assert_contains(err.text, "old format 0");
    bytes[8] = RP_RPT_VERSION;
    memcpy(bytes + 12, "\1\2\3\4", 4);
    assert_code(rp_rpt_open(bytes, n, &u, &err), RP_UNSUPPORTED);
    assert_contains(err.text, "byte order");
    rp_trace_free(t);
    free(bytes);
}

/* Two ranks in one file, as `cat` makes it. */
static void test_parts(void **state)
{
    struct rp_trace *t = make_trace(), *u;
    struct rp_err err = RP_ERR_INIT;
    size_t n, part;
    uint8_t *bytes = rpt_of(t, &n), *both = malloc(2 * n + 1);

    UNUSED_STATE(state);
    assert_non_null(both);
    memcpy(both, bytes, n);
    memcpy(both + n, bytes, n);
    assert_ok(rp_rpt_part_bytes(both, 2 * n, &part, &err), &err);
    assert_int_equal(part, n);
    assert_ok(rp_rpt_open(both + part, n, &u, &err), &err);
    rp_trace_free(u);
    assert_ok(rp_rpt_verify(both, 2 * n, &err), &err);
    assert_code(rp_rpt_verify(both, 2 * n - 1, &err), RP_FORMAT);
    assert_code(rp_rpt_verify(both, n + 1, &err), RP_FORMAT);
    assert_contains(err.text, "after its end");
    rp_trace_free(t);
    free(both);
    free(bytes);
}

/* Checksums made right again after a change: what a liar would write. */
static void sign(uint8_t *bytes)
{
    struct rp_rpt_header header;
    struct rp_rpt_entry entry;
    uint32_t i;

    memcpy(&header, bytes, sizeof header);
    for (i = 0; i < header.nsections; i++) {
        uint8_t *at = bytes + sizeof header + i * sizeof entry;

        memcpy(&entry, at, sizeof entry);
        entry.checksum = rp_rpt_checksum(bytes + entry.offset, entry.bytes);
        memcpy(at, &entry, sizeof entry);
    }
    header.table_checksum = rp_rpt_checksum(bytes + sizeof header, header.nsections * sizeof entry);
    header.header_checksum = 0;
    header.header_checksum = rp_rpt_checksum(&header, sizeof header);
    memcpy(bytes, &header, sizeof header);
}

static void assert_args(const struct rp_trace *t, uint16_t shape, uint32_t row)
{
    for (uint32_t k = 0; k < rp_args_count(&t->args, shape, row); k++) {
        struct rp_arg a = rp_args_at(&t->args, shape, row, k);

        assert_true(a.key < t->str.n && (a.type < RP_ARG_STR || a.v.s < t->str.n));
    }
}

static void assert_stack(const struct rp_trace *t, uint32_t stack)
{
    for (; stack != RP_NONE; stack = t->samples.stacks[stack].parent) {
        assert_true(stack < t->samples.nstacks);
        assert_true(t->samples.frame[t->samples.stacks[stack].frame].name < t->str.n);
    }
}

/* Any byte replaced by 0xff, signed again: refused, or a trace that can be read all the way. */
static void test_liars(void **state)
{
    struct rp_trace *t = make_trace(), *u;
    struct rp_err err = RP_ERR_INIT;
    size_t n, i, refused = 0, first = sizeof(struct rp_rpt_header);
    uint8_t *bytes = rpt_of(t, &n);

    UNUSED_STATE(state);
    rp_rpt_sections(&i);
    first += (i + 1) * sizeof(struct rp_rpt_entry);
    for (i = first; i < n; i++) {
        uint8_t was = bytes[i];
        enum rp_code code;
        uint32_t e;

        bytes[i] = 0xff;
        sign(bytes);
        code = rp_rpt_open(bytes, n, &u, &err);
        if (code == RP_OK) {
            code = rp_trace_require(u, RP_NEED_ALL, &err);
            for (e = 0; code == RP_OK && e < u->ev.n; e++)
                assert_true(rp_event_end_ns(u, e) <= RP_TIME_MAX_NS &&
                            (u->ev.ts_ns[e] >= -RP_TIME_MAX_NS || u->ev.ts_ns[e] == RP_NO_TS));
            for (e = 0; code == RP_OK && e < u->ev.n; e++)
                assert_args(u, u->ev.shape[e], u->ev.arg_row[e]);
            for (e = 0; code == RP_OK && e < u->flows.n; e++)
                assert_args(u, u->flows.shape[e], u->flows.arg_row[e]);
            for (e = 0; code == RP_OK && e < u->samples.n; e++)
                assert_stack(u, u->samples.stack[e]);
            rp_trace_free(u);
        }
        refused += code != RP_OK;
        bytes[i] = was;
    }
    assert_true(refused > 100);
    rp_trace_free(t);
    free(bytes);
}

static void test_lazy_verification(void **state)
{
    struct rp_trace *t = make_trace(), *u;
    const struct rp_rpt_section *section;
    struct rp_err err = RP_ERR_INIT;
    struct rp_rpt_entry entry;
    size_t n, i, nsections;
    uint8_t *bytes = rpt_of(t, &n);

    UNUSED_STATE(state);
    section = rp_rpt_sections(&nsections);
    for (i = 0; strcmp(section[i].name, "arrow names") != 0; i++)
        ;
    memcpy(&entry, bytes + sizeof(struct rp_rpt_header) + (i + 1) * sizeof entry, sizeof entry);
    bytes[entry.offset] ^= 1;
    assert_ok(rp_rpt_open(bytes, n, &u, &err), &err);
    assert_ok(rp_trace_require(u, RP_NEED_ALL & ~RP_NEED_FLOWS, &err), &err);
    assert_code(rp_trace_require(u, RP_NEED_FLOWS, &err), RP_FORMAT);
    assert_contains(err.text, "arrow names");
    rp_trace_free(u);
    rp_trace_free(t);
    free(bytes);
}

static void test_checksum(void **state)
{
    uint8_t bytes[100] = {0};
    struct random r = {7};
    size_t n, i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)random_below(&r, 256);
    for (n = 0; n + 1 < sizeof bytes; n++) {
        uint64_t sum = rp_rpt_checksum(bytes, n);

        assert_true(sum == rp_rpt_checksum(bytes, n));
        assert_true(sum != rp_rpt_checksum(bytes, n + 1));
        for (i = 0; i < n * 8; i++) {
            bytes[i / 8] ^= (uint8_t)(1 << i % 8);
            assert_true(sum != rp_rpt_checksum(bytes, n));
            bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        }
    }
    assert_true(rp_rpt_checksum("abc", 3) == rp_rpt_checksum("abc", 3));
}

/* Writes the seeds of tests/fuzz/corpus/rpt into the folder RP_WRITE_CORPUS, where it is set: once
   as a file, once as its sections without what stands around them (tests/fuzz/fuzz_rpt.c). */
static void write_seed(const struct rp_trace *t, const char *folder, const char *name)
{
    struct rp_rpt_entry entry;
    char path[512];
    size_t n, count, i;
    uint8_t *bytes = rpt_of(t, &n);
    FILE *file;

    snprintf(path, sizeof path, "%s/%s.file", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    fputc('F', file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
    snprintf(path, sizeof path, "%s/%s.sections", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    fputc('S', file);
    rp_rpt_sections(&count);
    for (i = 0; i <= count; i++) {
        memcpy(&entry, bytes + sizeof(struct rp_rpt_header) + i * sizeof entry, sizeof entry);
        assert_int_equal(fwrite(bytes + entry.offset, 1, entry.bytes, file), entry.bytes);
    }
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

static void test_write_corpus(void **state)
{
    const char *folder = getenv("RP_WRITE_CORPUS");
    struct rp_builder *b;
    struct rp_trace *t;
    int i;

    UNUSED_STATE(state);
    if (!folder)
        return;
    t = make_trace();
    write_seed(t, folder, "small");
    rp_trace_free(t);
    t = trace_of(NULL, 0);
    write_seed(t, folder, "empty");
    rp_trace_free(t);
    b = build_rows(NULL, 0);
    for (i = 0; i < 40; i++)
        add_row(b, &(struct row){"XBEbei"[i % 6], "cpu_op", "op", 1, i % 3, i / 2 * 10, 15,
                                 .corr = i % 7, .id = i % 2, .key = i % 5 ? "a" : "b",
                                 .value = (int64_t)i << i});
    t = finish_valid(b);
    write_seed(t, folder, "mixed");
    rp_trace_free(t);
}

int test_rpt(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_unaligned),
        cmocka_unit_test(test_every_changed_byte),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_other_versions),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_liars),
        cmocka_unit_test(test_lazy_verification),
        cmocka_unit_test(test_checksum),
        cmocka_unit_test(test_write_corpus),
    };

    return cmocka_run_group_tests_name("rpt", tests, NULL, NULL);
}
