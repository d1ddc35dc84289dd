/* SPDX-License-Identifier: Apache-2.0 */
/* XSpace: planes, lines, events and statistics built field by field; and real profiles. */
#include "proto_fixture.h"

#include "formats/list.h"

/* -------------------------------------------------------------------------- building */

static void put_metadata(struct rp_proto_writer *w, uint32_t field, int64_t id, const char *name,
                         const char *display)
{
    size_t entry = rp_proto_begin(w, field), value;

    rp_proto_put_varint(w, 1, (uint64_t)id);
    value = rp_proto_begin(w, 2);
    rp_proto_put_varint(w, 1, (uint64_t)id);
    rp_proto_put_text(w, 2, name);
    if (display)
        rp_proto_put_text(w, 4, display);
    rp_proto_end(w, value);
    rp_proto_end(w, entry);
}

static void put_stat(struct rp_proto_writer *w, uint32_t field, uint64_t id, uint32_t type,
                     uint64_t value)
{
    size_t stat = rp_proto_begin(w, field);

    rp_proto_put_varint(w, 1, id);
    if (type == 2)
        rp_proto_put_fixed64(w, type, value);
    else
        rp_proto_put_varint(w, type, value);
    rp_proto_end(w, stat);
}

static void put_text_stat(struct rp_proto_writer *w, uint32_t field, uint64_t id, uint32_t type,
                          const char *text)
{
    size_t stat = rp_proto_begin(w, field);

    rp_proto_put_varint(w, 1, id);
    rp_proto_put_text(w, type, text);
    rp_proto_end(w, stat);
}

static size_t begin_plane(struct rp_proto_writer *w, const char *name)
{
    size_t plane = rp_proto_begin(w, 1);

    rp_proto_put_text(w, 2, name);
    return plane;
}

static size_t begin_line(struct rp_proto_writer *w, int64_t id, const char *name, int64_t ns)
{
    size_t line = rp_proto_begin(w, 3);

    rp_proto_put_varint(w, 1, (uint64_t)id);
    rp_proto_put_text(w, 2, name);
    rp_proto_put_varint(w, 3, (uint64_t)ns);
    return line;
}

static size_t begin_event(struct rp_proto_writer *w, int64_t metadata, int64_t offset_ps,
                          int64_t duration_ps)
{
    size_t event = rp_proto_begin(w, 4);

    rp_proto_put_varint(w, 1, (uint64_t)metadata);
    rp_proto_put_varint(w, 2, (uint64_t)offset_ps);
    rp_proto_put_varint(w, 3, (uint64_t)duration_ps);
    return event;
}

static void put_event(struct rp_proto_writer *w, int64_t metadata, int64_t offset_ps,
                      int64_t duration_ps)
{
    rp_proto_end(w, begin_event(w, metadata, offset_ps, duration_ps));
}

/* -------------------------------------------------------------------------- GPUs */

/* A call on a thread, and the kernel, copy and fill that it led to. */
static void put_gpu_space(struct rp_proto_writer *w)
{
    size_t plane = begin_plane(w, "/host:CPU"), line, event;

    line = begin_line(w, -7, "python", 1000);
    event = begin_event(w, 1, 5000000, 2000000);
    put_stat(w, 4, 1, 3, 77);
    rp_proto_end(w, event);
    put_event(w, 2, 0, 9000000);
    put_event(w, 3, 1000000, 0);
    put_event(w, 4, 2000000, 3000);
    rp_proto_end(w, line);
    put_metadata(w, 4, 1, "cuLaunchKernel", NULL);
    put_metadata(w, 4, 2, "$train.py:12 step", NULL);
    put_metadata(w, 4, 3, "MemoryAllocation", NULL);
    put_metadata(w, 4, 4, "dense/MatMul:MatMul", "MatMul");
    put_metadata(w, 5, 1, "correlation_id", NULL);
    rp_proto_end(w, plane);
    plane = begin_plane(w, "/device:GPU:2");
    line = begin_line(w, 14, "Stream #14(Compute)", 2000);
    event = begin_event(w, 1, 7000000, 1500000);
    put_stat(w, 4, 1, 3, 77);
    put_stat(w, 4, 3, 7, 9);
    put_stat(w, 4, 4, 2, UINT64_C(0x3fe0000000000000));
    put_text_stat(w, 4, 5, 5, "$$1");
    put_text_stat(w, 4, 6, 6, "12345");
    put_stat(w, 4, 8, 3, UINT64_MAX);
    rp_proto_end(w, event);
    event = begin_event(w, 2, 9000000, 1000);
    put_text_stat(w, 4, 2, 5, "size:4");
    rp_proto_end(w, event);
    put_event(w, 3, 9500000, 1000);
    rp_proto_end(w, line);
    rp_proto_end(w, begin_line(w, 3, "Steps", 0));
    put_metadata(w, 4, 1, "fusion_1", NULL);
    put_metadata(w, 4, 2, "H2D", NULL);
    put_metadata(w, 4, 3, "Memset", NULL);
    put_metadata(w, 5, 1, "correlation_id", NULL);
    put_metadata(w, 5, 2, "memcpy_details", NULL);
    put_metadata(w, 5, 3, "hlo_op", NULL);
    put_metadata(w, 5, 4, "occupancy_pct", NULL);
    put_metadata(w, 5, 5, "context_id", NULL);
    put_metadata(w, 5, 6, "blob", NULL);
    put_metadata(w, 5, 7, "gpu_device_name", NULL);
    put_metadata(w, 5, 8, "huge", NULL);
    put_metadata(w, 5, 9, "dot.3", NULL);
    put_text_stat(w, 6, 7, 5, "NVIDIA H200");
    rp_proto_end(w, plane);
}

static void test_gpu(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_import import;
    const struct rp_trace *t;
    rp_event kernel, call;

    UNUSED_STATE(state);
    put_gpu_space(&w);
    import = load_message(&w);
    t = import.trace;
    assert_str(t, t->format, "xplane");
    kernel = find(t, "fusion_1");
    call = find(t, "cuLaunchKernel");
    assert_int_equal(t->ev.kind[kernel], RP_KIND_KERNEL);
    assert_int_equal(t->ev.ts_ns[kernel], 2000 + 7000);
    assert_int_equal(t->ev.dur_ns[kernel], 1500);
    assert_arg(t, kernel, "hlo_op", "s dot.3");
    assert_arg(t, kernel, "occupancy_pct", "f 0.5");
    assert_arg(t, kernel, "context_id", "s $$1");
    assert_arg(t, kernel, "blob.size_bytes", "i 5");
    assert_arg(t, kernel, "huge", "r 18446744073709551615");
    assert_int_equal(t->ev.kind[call], RP_KIND_RUNTIME);
    assert_int_equal(t->ev.link[call], t->ev.link[kernel]);
    assert_int_equal(t->ev.kind[find(t, "H2D")], RP_KIND_MEMCPY);
    assert_int_equal(t->ev.kind[find(t, "Memset")], RP_KIND_MEMSET);
    assert_int_equal(t->ev.kind[find(t, "$train.py:12 step")], RP_KIND_PYTHON);
    assert_int_equal(t->ev.kind[find(t, "MemoryAllocation")], RP_KIND_INSTANT);
    assert_int_equal(t->ev.kind[find(t, "MatMul")], RP_KIND_CPU_OP);
    assert_arg(t, find(t, "MatMul"), "long_name", "s dense/MatMul:MatMul");
    assert_int_equal(t->ev.parent[call], find(t, "$train.py:12 step"));
    assert_int_equal(track_of(t, "python")->native_id, -7);
    assert_int_equal(track_of(t, "Stream #14(Compute)")->kind, RP_TRACK_STREAM);
    assert_int_equal(t->processes[track_of(t, "Stream #14(Compute)")->process].native_id, 3);
    assert_int_equal(t->processes[track_of(t, "Stream #14(Compute)")->process].device, 2);
    assert_int_equal(t->ndevices, 1);
    assert_str(t, t->devices[0].name, "NVIDIA H200");
    assert_int_equal(t->devices[0].id, 2);
    assert_int_equal(t->health.gpu_events, 3);
    assert_int_equal(t->health.runtime_events, 1);
    assert_int_equal(t->health.gpu_without_runtime, 2);
    rp_import_release(&import);
}

/* -------------------------------------------------------------------------- times */

/* Half to even, begin and end each for itself, below zero too; what is exact stays so. */
static void test_picoseconds(void **state)
{
    static const struct {
        int64_t offset_ps, duration_ps, ts_ns, dur_ns;
    } cases[] = {
        {0, 1500, 100, 2},   {500, 500, 100, 1}, {1500, 1000, 102, 0}, {2501, 499, 103, 0},
        {3000, 700, 103, 1}, {-500, 0, 100, 0},  {-1500, 1500, 98, 2}, {4000, 4000, 104, 4},
    };
    struct rp_proto_writer w = {0};
    size_t plane = begin_plane(&w, "/device:TPU:0"), line, n = sizeof cases / sizeof *cases;
    struct rp_import import;
    const struct rp_trace *t;
    char name[8];

    UNUSED_STATE(state);
    line = begin_line(&w, 3, "XLA Ops", 100);
    for (size_t i = 0; i < n; i++)
        put_event(&w, (int64_t)i + 1, cases[i].offset_ps, cases[i].duration_ps);
    rp_proto_end(&w, line);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "e%zu", i);
        put_metadata(&w, 4, (int64_t)i + 1, name, NULL);
    }
    rp_proto_end(&w, plane);
    import = load_message(&w);
    t = import.trace;
    for (size_t i = 0; i < n; i++) {
        rp_event e;
        char want[40];

        snprintf(name, sizeof name, "e%zu", i);
        e = find(t, name);
        assert_int_equal(t->ev.ts_ns[e], cases[i].ts_ns);
        assert_int_equal(t->ev.dur_ns[e], cases[i].dur_ns);
        assert_int_equal(t->ev.kind[e], RP_KIND_KERNEL);
        snprintf(want, sizeof want, "i %lld", (long long)cases[i].offset_ps);
        assert_arg(t, e, "offset_ps", i + 1 < n ? want : "-");
    }
    assert_true(warns(t, "fractions of a nanosecond"));
    assert_int_equal(t->health.gpu_events, 0); /* a TPU's launches are not recorded */
    rp_import_release(&import);
}

static void test_bases(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_import import;
    size_t plane, line;

    UNUSED_STATE(state);
    for (int absolute = 0; absolute < 2; absolute++) {
        plane = begin_plane(&w, "/host:CPU");
        line = begin_line(&w, 1, "t", absolute ? INT64_C(1794707328578914127) : 50);
        put_event(&w, 1, 1000, 1000);
        rp_proto_end(&w, line);
        put_metadata(&w, 4, 1, "x", NULL);
        rp_proto_end(&w, plane);
        plane = begin_plane(&w, "Task Environment");
        put_metadata(&w, 5, 1, "profile_start_time", NULL);
        put_stat(&w, 6, 1, 3, UINT64_C(1794707328578914000));
        rp_proto_end(&w, plane);
        import = load_message(&w);
        assert_true(import.trace->has_base);
        assert_int_equal(import.trace->base_ns + import.trace->ev.ts_ns[find(import.trace, "x")],
                         absolute ? INT64_C(1794707328578914128) : INT64_C(1794707328578914051));
        rp_import_release(&import);
    }
}

/* -------------------------------------------------------------------------- odd ends */

/* Ids without a table entry, of any size, and lines that share an id. */
static void test_missing_names(void **state)
{
    struct rp_proto_writer w = {0};
    size_t plane = begin_plane(&w, "/host:CPU"), line, event;
    struct rp_import import;
    const struct rp_trace *t;

    UNUSED_STATE(state);
    line = begin_line(&w, 1, "a", 0);
    event = begin_event(&w, -5, 1000, 1000);
    put_stat(&w, 4, 123456789012345, 4, (uint64_t)-3);
    put_stat(&w, 4, 123456789012345, 4, 8); /* twice: the last one counts */
    put_stat(&w, 4, 9, 7, 10);
    rp_proto_end(&w, event);
    rp_proto_end(&w, line);
    line = begin_line(&w, 1, "b", 0);
    put_event(&w, INT64_C(1) << 40, 2000, 1000);
    rp_proto_end(&w, line);
    put_metadata(&w, 4, INT64_C(1) << 40, "big id", NULL);
    rp_proto_end(&w, plane);
    import = load_message(&w);
    t = import.trace;
    assert_arg(t, find(t, "event -5"), "stat 123456789012345", "i 8");
    assert_arg(t, find(t, "event -5"), "stat 9", "s stat 10");
    assert_int_equal(t->health.duplicate_keys, 1);
    assert_int_equal(t->ev.dur_ns[find(t, "big id")], 1);
    assert_true(track_of(t, "a") != track_of(t, "b"));
    rp_import_release(&import);
}

/* What all events of an event_metadata have; and sums over occurrences. */
static void test_metadata_stats(void **state)
{
    struct rp_proto_writer w = {0};
    size_t plane = begin_plane(&w, "/device:TPU:0"), line, event, entry, value;
    struct rp_import import;
    const struct rp_trace *t;
    rp_event sum;

    UNUSED_STATE(state);
    line = begin_line(&w, 2, "XLA Ops", 0);
    put_event(&w, 1, 1000, 1000);
    event = begin_event(&w, 1, 3000, 1000);
    put_stat(&w, 4, 1, 4, 5);
    rp_proto_end(&w, event);
    event = rp_proto_begin(&w, 4);
    rp_proto_put_varint(&w, 1, 2);
    rp_proto_put_varint(&w, 3, 5000);
    rp_proto_put_varint(&w, 5, 12);
    rp_proto_end(&w, event);
    rp_proto_end(&w, line);
    entry = rp_proto_begin(&w, 4);
    rp_proto_put_varint(&w, 1, 1);
    value = rp_proto_begin(&w, 2);
    rp_proto_put_text(&w, 2, "%fusion.1 = f32[2] fusion(...)");
    rp_proto_put_text(&w, 4, "fusion.1");
    put_stat(&w, 5, 1, 4, 100);
    rp_proto_end(&w, value);
    rp_proto_end(&w, entry);
    put_metadata(&w, 4, 2, "often", NULL);
    put_metadata(&w, 5, 1, "flops", NULL);
    rp_proto_end(&w, plane);
    import = load_message(&w);
    t = import.trace;
    assert_arg(t, find_nth(t, "fusion.1", 0), "flops", "i 100");
    assert_arg(t, find_nth(t, "fusion.1", 1), "flops", "i 5");
    sum = find(t, "often");
    assert_int_equal(t->ev.ts_ns[sum], RP_NO_TS);
    assert_arg(t, sum, "num_occurrences", "i 12");
    assert_arg(t, sum, "duration_ps", "i 5000");
    assert_true(warns(t, "totals without a time"));
    rp_import_release(&import);
}

/* Work handed from one thread to another, found by kind and number. */
static void test_arrows(void **state)
{
    struct rp_proto_writer w = {0};
    size_t plane = begin_plane(&w, "/host:CPU"), line, event;
    struct rp_import import;
    const struct rp_trace *t;

    UNUSED_STATE(state);
    for (int end = 0; end < 2; end++) {
        line = begin_line(&w, 1 + end, end ? "to" : "from", 0);
        event = begin_event(&w, 1 + end, 1000 + 4000 * end, 1000);
        put_stat(&w, 4, 1 + 2 * (uint64_t)end, 4, 15);
        put_stat(&w, 4, 2 + 2 * (uint64_t)end, 3, UINT64_MAX - 1);
        rp_proto_end(&w, event);
        rp_proto_end(&w, line);
    }
    put_metadata(&w, 4, 1, "Schedule", NULL);
    put_metadata(&w, 4, 2, "Run", NULL);
    put_metadata(&w, 5, 1, "_pt", NULL);
    put_metadata(&w, 5, 2, "_p", NULL);
    put_metadata(&w, 5, 3, "_ct", NULL);
    put_metadata(&w, 5, 4, "_c", NULL);
    rp_proto_end(&w, plane);
    import = load_message(&w);
    t = import.trace;
    assert_int_equal(t->flows.n, 2);
    assert_int_equal(t->health.flow_s_without_f + t->health.flow_f_without_s, 0);
    for (uint32_t i = 0; i < 2; i++) {
        const struct rp_origin *origin = &t->origins[t->flows.origin[i]];

        assert_str(t, origin->category, "threadpool");
        assert_int_equal(t->flows.event[i], find(t, origin->phase == 's' ? "Schedule" : "Run"));
    }
    rp_import_release(&import);
}

/* Hosts, errors, programs, versions. */
static void test_facts(void **state)
{
    struct rp_proto_writer w = {0};
    size_t plane = begin_plane(&w, "/host:metadata"), entry, value;
    struct rp_import import;
    const struct rp_trace *t;
    const char *programs = NULL;

    UNUSED_STATE(state);
    entry = rp_proto_begin(&w, 4);
    rp_proto_put_varint(&w, 1, 7);
    value = rp_proto_begin(&w, 2);
    rp_proto_put_text(&w, 2, "jit_step(7)");
    put_text_stat(&w, 5, 1, 6, "not an HloProto");
    rp_proto_end(&w, value);
    rp_proto_end(&w, entry);
    put_metadata(&w, 5, 1, "Hlo Proto", NULL);
    put_metadata(&w, 5, 2, "jax_version", NULL);
    put_text_stat(&w, 6, 2, 5, "0.11.2");
    rp_proto_end(&w, plane);
    rp_proto_put_text(&w, 2, "no driver");
    rp_proto_put_text(&w, 3, "dropped");
    rp_proto_put_text(&w, 4, "host0");
    import = load_message(&w);
    t = import.trace;
    assert_str(t, t->framework, "jax");
    assert_str(t, t->framework_version, "0.11.2");
    assert_true(warns(t, "reports an error: no driver"));
    assert_true(warns(t, "warns: dropped"));
    for (uint32_t i = 0; i < t->nmeta; i++)
        if (strcmp(rp_trace_str(t, t->meta[i].key), "xplane /host:metadata") == 0)
            programs = rp_trace_str(t, t->meta[i].value);
    assert_string_equal(programs,
                        "{\"jax_version\":\"0.11.2\",\"programs\":[{\"name\":\"jit_step(7)"
                        "\",\"Hlo Proto.size_bytes\":15}]}");
    rp_import_release(&import);
}

/* Cut at every byte: planes before the cut, or an error; never anything else. */
static void test_every_cut(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_bytes bytes;
    struct rp_err err = RP_ERR_INIT;
    size_t second;

    UNUSED_STATE(state);
    put_gpu_space(&w);
    assert_ok(rp_proto_written(&w, &bytes, &err), &err);
    second = (size_t)bytes.at[1] + 2; /* of the first plane, if its length is a byte */
    if (bytes.at[1] >= 0x80)
        second = ((size_t)(bytes.at[1] & 0x7f) | (size_t)bytes.at[2] << 7) + 3;
    for (size_t cut = 1; cut < bytes.n; cut++) {
        struct rp_import import = RP_IMPORT_INIT;
        uint8_t *copy = malloc(cut);
        enum rp_code code;

        assert_non_null(copy);
        memcpy(copy, bytes.at, cut);
        code = load_bytes(copy, cut, NULL, &import, &err);
        if (cut < second)
            assert_code(code, RP_FORMAT);
        else
            assert_code(code, RP_OK);
        if (code == RP_OK)
            assert_int_equal(import.trace->health.truncated, cut > second);
        rp_import_release(&import);
        free(copy);
    }
    rp_proto_writer_release(&w);
}

/* Damage inside a plane is refused with its byte; with salvage the next plane is read. */
static void test_damage(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_read_options salvage = {.salvage = true};
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import;

    UNUSED_STATE(state);
    for (int salvaging = 0; salvaging < 2; salvaging++) {
        size_t plane = begin_plane(&w, "/host:CPU");
        static const uint8_t broken[] = {0x22, 0x7f, 0x01};

        rp_proto_put_bytes(&w, 3, broken, sizeof broken);
        rp_proto_end(&w, plane);
        put_gpu_space(&w);
        assert_code(load_written(&w, salvaging ? &salvage : NULL, &import, &err),
                    salvaging ? RP_OK : RP_FORMAT);
        if (salvaging) {
            assert_int_equal(import.trace->health.salvaged, 1);
            assert_true(warns(import.trace, "'/host:CPU' is damaged"));
            find(import.trace, "fusion_1");
        } else {
            assert_contains(err.text, "at byte");
        }
        rp_import_release(&import);
    }
}

static void test_mangled(void **state)
{
    char text[400] = "\n\xef\xbf\xbd\xef\xbf\xbd\x06\x12\r/device:TPU:0";
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;

    UNUSED_STATE(state);
    for (int i = 0; i < 10; i++)
        strcat(text, "\x08\xef\xbf\xbd\x02");
    assert_code(load_bytes(text, strlen(text), NULL, &import, &err), RP_FORMAT);
    assert_contains(err.text, "decoded as UTF-8");
    assert_contains(err.text, "U+FFFD");
}

/* Other messages that begin with a nested field 1: of graphs, of modules. */
static void test_not_ours(void **state)
{
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    for (int which = 0; which < 3; which++) {
        struct rp_proto_writer w = {0};
        size_t outer = rp_proto_begin(&w, 1);
        const struct rp_format *format = NULL;
        struct rp_bytes bytes;
        struct rp_input *in;

        if (which == 2)
            rp_proto_put_varint(&w, 1, 1);
        else
            rp_proto_put_text(&w, 1, which ? "jit_step" : "conv1/read");
        rp_proto_put_text(&w, 2, which ? "main.7" : "Identity");
        rp_proto_put_text(&w, 3, "conv1");
        rp_proto_end(&w, outer);
        assert_ok(rp_proto_written(&w, &bytes, &err), &err);
        assert_ok(rp_input_open_memory("x.xplane.pb", bytes.at, bytes.n, NULL, &in, &err), &err);
        rp_format_sniff(in, &format, &err);
        assert_true(format != &rp_format_xplane && format != &rp_format_runmeta);
        rp_input_close(in);
        rp_proto_writer_release(&w);
    }
}

/* -------------------------------------------------------------------------- real profiles */

/* TensorFlow on a CPU; the figures were computed with TensorFlow's own classes. */
static void test_steps3(void **state)
{
    static const struct {
        const char *line;
        uint32_t events;
        int64_t sum_ns;
    } lines[] = {
        {"python", 36, 95423679},
        {"tf_Compute/-138277739321842444", 151, 10985447},
        {"tf_Compute/-219454925566450548", 188, 14529243},
        {"tf_numa_-1_Eigen/-9018621018600466874", 100, 0},
        {"tf_numa_-1_Eigen/5292233106880132406", 110, 0},
    };
    static const int64_t steps[][2] = {{46590, 5307730}, {5373669, 4338009}, {9730200, 5492545}};
    struct rp_import import = load_data("own/tf/steps3.xplane.pb");
    const struct rp_trace *t = import.trace;
    int64_t sum;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(count_track(t, track_of(t, lines[i].line), &sum), lines[i].events);
        assert_int_equal(sum, lines[i].sum_ns);
    }
    assert_str(t, t->framework, "tensorflow");
    assert_int_equal(t->base_ns, INT64_C(1794707328578914127));
    assert_int_equal(t->nsteps, 3);
    for (uint32_t i = 0; i < t->nsteps; i++) {
        assert_int_equal(t->steps[i].number, i);
        assert_int_equal(t->steps[i].begin_ns, 11145 + steps[i][0]);
        assert_int_equal(t->steps[i].end_ns - t->steps[i].begin_ns, steps[i][1]);
    }
    rp_import_release(&import);
}

/* TensorFlow on 8 GPUs, 2020: launches have the names of their kernels. */
static void test_multi_worker(void **state)
{
    struct rp_import import =
        load_data("public/xprof/GPU-multi-worker_34.83.195.179_6003.xplane.pb.gz");
    const struct rp_trace *t = import.trace;

    UNUSED_STATE(state);
    assert_int_equal(t->health.X + t->health.instant, 23128);
    assert_int_equal(t->totals.count[RP_KIND_KERNEL], 1330);
    assert_int_equal(t->totals.count[RP_KIND_MEMCPY], 226);
    assert_int_equal(t->health.gpu_events, 1556);
    assert_int_equal(t->health.gpu_without_runtime, 0);
    assert_int_equal(t->health.gpu_start_before_launch, 0);
    assert_int_equal(t->ndevices, 8);
    assert_int_equal(t->nsteps, 1);
    rp_import_release(&import);
}

/* JAX on AMD: calls are in lines of their own. */
static void test_jax_rocm(void **state)
{
    struct rp_import import =
        load_data("public/tracelens/jax_xplane/jax_conv_minimal_08_tw003.xplane.pb");
    const struct rp_trace *t = import.trace;

    UNUSED_STATE(state);
    assert_str(t, t->framework, "jax");
    assert_int_equal(t->totals.count[RP_KIND_KERNEL], 235);
    assert_int_equal(t->health.runtime_events, 234);
    assert_int_equal(t->health.gpu_without_runtime, 0);
    rp_import_release(&import);
}

int test_xplane(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpu),
        cmocka_unit_test(test_picoseconds),
        cmocka_unit_test(test_bases),
        cmocka_unit_test(test_missing_names),
        cmocka_unit_test(test_metadata_stats),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_arrows),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_mangled),
        cmocka_unit_test(test_not_ours),
        cmocka_unit_test(test_steps3),
        cmocka_unit_test(test_multi_worker),
        cmocka_unit_test(test_jax_rocm),
    };

    return cmocka_run_group_tests_name("xplane", tests, NULL, NULL);
}
