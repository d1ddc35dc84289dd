/* SPDX-License-Identifier: Apache-2.0 */
/* The builder: dense ids, arguments by shape through every width, spilled arguments, limits. */
#include "trace_fixtures.h"

static void test_empty_trace(void **state)
{
    struct rp_trace *t = trace_of(NULL, 0);

    UNUSED_STATE(state);
    assert_int_equal(t->ev.n, 0);
    assert_int_equal(t->nsteps, 0);
    assert_int_equal(t->links.n, 0);
    assert_int_equal(t->rank, RP_NO_RANK);
    assert_string_equal(rp_trace_str(t, 0), "");
    rp_trace_free(t);
    rp_trace_free(NULL);
    rp_builder_free(NULL);
}

static void test_ids_are_dense_and_the_same(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_builder *b;
    uint32_t a, c;
    rp_track x, y;
    uint16_t o1, o2;
    int i;

    UNUSED_STATE(state);
    assert_ok(rp_builder_new(NULL, &b, &err), &err);
    for (i = 0; i < 2; i++) {
        assert_ok(rp_builder_process(b, 7, 0, &a, &err), &err);
        assert_ok(rp_builder_process(b, 0, str_of(b, "7"), &c, &err), &err);
        assert_int_equal(a, 0);
        assert_int_equal(c, 1);
        assert_ok(rp_builder_track(b, 0, 5, 0, true, &x, &err), &err);
        assert_ok(rp_builder_track(b, 0, 0, 0, false, &y, &err), &err);
        assert_int_equal(x, 0);
        assert_int_equal(y, 1);
        assert_ok(rp_builder_track(b, 1, 5, 0, true, &x, &err), &err);
        assert_int_equal(x, 2);
        o1 = origin_of(b, 'X', NULL);
        o2 = origin_of(b, 'X', "");
        assert_int_not_equal(o1, o2);
    }
    assert_code(rp_builder_track(b, 9, 5, 0, true, &x, &err), RP_BUG);
    rp_builder_free(b);
}

/* Values that need each width, over several blocks and a rest. */
static int64_t value_at(uint32_t column, uint32_t row)
{
    switch (column) {
    case 0:
        return -5;
    case 1:
        return 1000 + row % 200;
    case 2:
        return row % 40000 - 20000;
    case 3:
        return INT64_C(3000000000) + (int64_t)row * 12345;
    case 4:
        return (int64_t)row * INT64_C(0x123456789abcd);
    case 5:
        return row % 2 ? INT64_MIN : INT64_MAX;
    default:
        return row;
    }
}

static void test_arguments_come_back(void **state)
{
    enum { ROWS = 3 * RP_ARG_BLOCK + 77, COLUMNS = 7 };
    struct rp_err err = RP_ERR_INIT;
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_arg args[COLUMNS + 2];
    struct rp_trace *t;
    struct rp_raw raw = {.track = track_of(b, 1, 1), .origin = origin_of(b, 'X', NULL)};
    uint32_t i, k;

    UNUSED_STATE(state);
    for (i = 0; i < ROWS; i++) {
        char key[2] = "a";

        for (k = 0; k < COLUMNS; k++, key[0]++)
            args[k] = (struct rp_arg){str_of(b, key), RP_ARG_I64, {.i = value_at(k, i)}};
        args[k] = (struct rp_arg){str_of(b, "f"), RP_ARG_F64, {.f = i * 0.5}};
        memset(&args[k + 1], 0xee, sizeof args[k + 1]); /* only the half of the value is set */
        args[k + 1].key = str_of(b, "s");
        args[k + 1].type = RP_ARG_STR;
        args[k + 1].v.s = str_of(b, i % 3 ? "x" : "y");
        raw.ts_ns = i;
        raw.args = args;
        raw.nargs = COLUMNS + 2;
        assert_ok(rp_builder_shape(b, args, raw.nargs, &raw.shape, &err), &err);
        assert_int_equal(raw.shape, 1);
        assert_ok(rp_builder_add(b, &raw, &err), &err);
    }
    t = finish_valid(b);
    assert_int_equal(t->args.nshapes, 2);
    for (i = 0; i < ROWS; i++) {
        struct rp_arg arg;

        assert_int_equal(rp_args_count(&t->args, 1, i), COLUMNS + 2);
        for (k = 0; k < COLUMNS; k++)
            assert_true(rp_args_at(&t->args, 1, i, k).v.i == value_at(k, i));
        assert_true(rp_args_at(&t->args, 1, i, k).v.f == i * 0.5);
        assert_true(rp_args_find(&t->args, 1, i, find_str(t, "s"), &arg));
        assert_string_equal(rp_trace_str(t, arg.v.s), i % 3 ? "x" : "y");
        assert_false(rp_args_find(&t->args, 1, i, find_str(t, ""), &arg));
    }
    assert_int_equal(rp_args_column(&t->args, 1, find_str(t, "c")), 2);
    assert_int_equal(rp_args_column(&t->args, 0, find_str(t, "c")), UINT32_MAX);
    rp_trace_free(t);
}

static void test_many_keys_and_many_shapes_spill(void **state)
{
    enum { MANY = RP_SHAPE_KEYS + 1 };
    struct rp_err err = RP_ERR_INIT;
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_arg args[MANY];
    struct rp_raw raw = {
        .track = track_of(b, 1, 1), .origin = origin_of(b, 'X', NULL), .args = args};
    struct rp_trace *t;
    uint32_t i;

    UNUSED_STATE(state);
    for (i = 0; i < MANY; i++)
        args[i] = (struct rp_arg){str_of(b, "k"), RP_ARG_I64, {.i = -(int64_t)i}};
    assert_ok(rp_builder_shape(b, args, MANY, &raw.shape, &err), &err);
    assert_int_equal(raw.shape, RP_SHAPE_SPILLED);
    raw.nargs = MANY;
    assert_ok(rp_builder_add(b, &raw, &err), &err);
    for (i = 0; i < RP_SHAPE_MAX + 10; i++) {
        char key[16];

        snprintf(key, sizeof key, "key%u", i);
        args[0].key = str_of(b, key);
        assert_ok(rp_builder_shape(b, args, 1, &raw.shape, &err), &err);
        assert_int_equal(raw.shape, i < RP_SHAPE_MAX ? i + 1 : RP_SHAPE_SPILLED);
        raw.nargs = 1;
        raw.ts_ns = i + 1;
        args[0].v.i = i;
        assert_ok(rp_builder_add(b, &raw, &err), &err);
    }
    t = finish_valid(b);
    assert_int_equal(rp_args_count(&t->args, t->ev.shape[0], t->ev.arg_row[0]), MANY);
    assert_true(rp_args_at(&t->args, t->ev.shape[0], t->ev.arg_row[0], 200).v.i == -200);
    for (i = 1; i < t->ev.n; i++)
        assert_int_equal(rp_args_at(&t->args, t->ev.shape[i], t->ev.arg_row[i], 0).v.i, i - 1);
    rp_trace_free(t);
}

static void test_wrong_calls_are_refused(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_arg arg = {str_of(b, "k"), RP_ARG_I64, {.i = 1}};
    struct rp_raw raw = {.track = 5};

    UNUSED_STATE(state);
    assert_code(rp_builder_add(b, &raw, &err), RP_BUG);
    raw.track = track_of(b, 1, 1);
    raw.origin = origin_of(b, 'X', NULL);
    assert_ok(rp_builder_shape(b, &arg, 1, &raw.shape, &err), &err);
    assert_code(rp_builder_add(b, &raw, &err), RP_BUG); /* no arguments for a shape of one */
    rp_builder_free(b);
}

static void test_limit_names_the_window(void **state)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_raw raw = {0};
    struct rp_builder *b;
    int i;

    UNUSED_STATE(state);
    limits.events = 300;
    assert_ok(rp_builder_new(&limits, &b, &err), &err);
    raw.track = track_of(b, 1, 1);
    raw.origin = origin_of(b, 'X', NULL);
    for (i = 0; i < 300; i++)
        assert_ok(rp_builder_add(b, &raw, &err), &err);
    assert_code(rp_builder_add(b, &raw, &err), RP_LIMIT);
    assert_contains(err.text, "more than 300 events");
    rp_builder_free(b);
}

static void test_notes_are_kept_in_order(void **state)
{
    struct rp_device device = {.id = 3, .memory_bytes = 80, .multiprocessors = 108};
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_trace *t;

    UNUSED_STATE(state);
    device.name = str_of(b, "A100");
    assert_code(rp_builder_add_meta(b, str_of(b, "k1"), str_of(b, "1"), false, NULL), RP_OK);
    assert_code(rp_builder_add_meta(b, str_of(b, "k2"), str_of(b, "2"), true, NULL), RP_OK);
    assert_code(rp_builder_add_device(b, &device, NULL), RP_OK);
    assert_code(rp_builder_warn(b, NULL, "%d things", 4), RP_OK);
    rp_builder_borrow_trace(b)->rank = 6;
    t = finish_valid(b);
    assert_int_equal(t->nmeta, 2);
    assert_string_equal(rp_trace_str(t, t->meta[1].key), "k2");
    assert_int_equal(t->meta[1].after_events, 1);
    assert_int_equal(t->devices[0].multiprocessors, 108);
    assert_string_equal(rp_trace_str(t, t->warnings[0]), "4 things");
    assert_int_equal(t->rank, 6);
    rp_trace_free(t);
}

static void a_small_process_number_is_that_of_a_device(void **state)
{
    static const struct row rows[] = {{'X', "kernel", "k", 63, 7, 0, 5, 1, 7},
                                      {'X', "kernel", "k", 64, 7, 0, 5, 2, 7}};
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    for (size_t i = 0; i < t->nprocesses; i++)
        assert_int_equal(t->processes[i].device, t->processes[i].native_id == 63 ? 63 : -1);
    rp_trace_free(t);
}

/* A recorded name stays; a size that several devices have names none of them. */
static void test_devices_without_a_name_are_known_by_their_size(void **state)
{
    const int64_t gib = INT64_C(1) << 30;
    struct rp_device devices[] = {{.id = 0, .memory_bytes = 191 * gib, .multiprocessors = 304},
                                  {.id = 1, .memory_bytes = 255 * gib, .multiprocessors = 304},
                                  {.id = 2, .memory_bytes = 80 * gib, .multiprocessors = 304},
                                  {.id = 3, .memory_bytes = 191 * gib, .multiprocessors = 304}};
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_trace *t;
    size_t i;

    UNUSED_STATE(state);
    devices[3].name = str_of(b, "engineering sample");
    for (i = 0; i < 4; i++)
        assert_code(rp_builder_add_device(b, &devices[i], NULL), RP_OK);
    t = finish_valid(b);
    assert_string_equal(rp_trace_str(t, t->devices[0].name), "AMD Instinct MI300X (by its size)");
    assert_string_equal(rp_trace_str(t, t->devices[1].name), "AMD Instinct MI325X (by its size)");
    assert_string_equal(rp_trace_str(t, t->devices[2].name), "");
    assert_string_equal(rp_trace_str(t, t->devices[3].name), "engineering sample");
    rp_trace_free(t);
}

static void test_metadata_names_processes_and_threads(void **state)
{
    static const struct row rows[] = {
        {'M', NULL, "process_name", 1, 0, 0, 0, .text_key = "name", .text = "old"},
        {'M', NULL, "process_name", 1, 0, 0, 0, .text_key = "name", .text = "python"},
        {'M', NULL, "process_labels", 0, 0, 0, 0, .text_key = "labels", .text = "GPU 5"},
        {'M', NULL, "thread_name", 1, 2, 0, 0, .text_key = "name", .text = "main"},
        {'M', NULL, "thread_sort_index", 1, 2, 0, 0, .key = "sort_index", .value = -3},
        {'M', NULL, "process_sort_index", 1, 0, 0, 0, .key = "sort_index", .value = 9},
        /* of another type, or without what it should have: left alone */
        {'M', NULL, "process_name", 1, 0, 0, 0, .key = "name", .value = 7},
        {'M', NULL, "thread_name", 1, 2, 0, 0, .key = "sort_index", .value = 7},
        {'M', NULL, "thread_sort_index", 1, 2, 0, 0, .text_key = "sort_index", .text = "first"},
        {'M', NULL, "process_sort_index", 1, 0, 0, 0, .text_key = "labels", .text = "last"},
        {'X', "cpu_op", "op", 1, 2, 10, 5},
        {'X', "kernel", "k", 0, 7, 20, 5},
        {'X', "kernel", "k", 33, 7, 20, 5, .key = "device", .value = 4},
        {'C', NULL, "mem", 1, 9, 20, 0},
        {'X', "cpu_op", "thread_name", 1, 2, 30, 5, .text_key = "name", .text = "no metadata"},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_string_equal(rp_trace_str(t, t->processes[0].name), "python");
    assert_string_equal(rp_trace_str(t, t->processes[1].labels), "GPU 5");
    assert_int_equal(t->processes[0].sort_index, 9);
    assert_int_equal(t->processes[0].device, -1);
    assert_int_equal(t->processes[1].device, 5);
    assert_int_equal(t->processes[2].device, 4);
    assert_string_equal(rp_trace_str(t, t->tracks[2].name), "main");
    assert_int_equal(t->tracks[2].sort_index, -3);
    assert_int_equal(t->tracks[2].kind, RP_TRACK_THREAD);
    assert_int_equal(t->tracks[t->ev.track[event_n(t, 11)]].kind, RP_TRACK_STREAM);
    assert_int_equal(t->tracks[t->ev.track[event_n(t, 13)]].kind, RP_TRACK_COUNTER);
    rp_trace_free(t);
}

/* XLA's viewer format has no categories: names of process and thread tell. */
static void test_xla_streams(void **state)
{
    static const struct row rows[] = {
        {'M', NULL, "process_name", 1, 0, 0, 0, .text_key = "name", .text = "/device:GPU:3"},
        {'M', NULL, "thread_name", 1, 9, 0, 0, .text_key = "name", .text = "Stream #14(Compute)"},
        {'M', NULL, "thread_name", 1, 2, 0, 0, .text_key = "name", .text = "XLA Ops"},
        {'X', NULL, "fusion.1", 1, 9, 10, 5},
        {'X', NULL, "MemcpyH2D", 1, 9, 20, 5},
        {'X', NULL, "fusion.1", 1, 2, 10, 5},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->ev.kind[event_n(t, 3)], RP_KIND_KERNEL);
    assert_int_equal(t->ev.kind[event_n(t, 4)], RP_KIND_MEMCPY);
    assert_int_equal(t->ev.kind[event_n(t, 5)], RP_KIND_OTHER);
    assert_int_equal(t->tracks[t->ev.track[event_n(t, 3)]].kind, RP_TRACK_STREAM);
    assert_int_equal(t->processes[0].device, 3);
    assert_int_equal(t->health.gpu_events, 0); /* by categories, as defined */
    rp_trace_free(t);
}

static void test_totals(void **state)
{
    static const struct row rows[] = {
        {'X', "cpu_op", "op", 1, 2, 10, 5},
        {'X', "kernel", "k", 0, 7, 100, 50},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 8, 120, 100},
        {'X', "gpu_memcpy", "Memcpy HtoD", 0, 7, 300, 10},
        {'X', "kernel", "inside", 0, 8, 130, 10},
        {'i', NULL, "late", 1, 2, 1000, 0},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->totals.count[RP_KIND_KERNEL], 3);
    assert_int_equal(t->totals.dur_ns[RP_KIND_KERNEL], 160);
    assert_int_equal(t->totals.comm_count, 1);
    assert_int_equal(t->totals.comm_ns, 100);
    assert_int_equal(t->totals.gpu_busy_ns, 120 + 10);
    assert_int_equal(t->totals.gpu_begin_ns, 100);
    assert_int_equal(t->totals.gpu_end_ns, 310);
    assert_int_equal(t->totals.work_begin_ns, 10);
    assert_int_equal(t->totals.span_end_ns, 1000);
    rp_trace_free(t);
}

static void times_are_moved_into_the_range(void **state)
{
    static const struct row rows[] = {
        {'X', "kernel", "least", 0, 7, -RP_TIME_MAX_NS, 0},
        {'X', "kernel", "below", 0, 8, INT64_MIN + 1, 5},
        {'X', "kernel", "above", 0, 9, RP_TIME_MAX_NS + 1, 5},
        {'X', "kernel", "most", 0, 10, RP_TIME_MAX_NS - 3, 3},
        {'X', "kernel", "longer", 0, 11, RP_TIME_MAX_NS - 3, 4},
        {'X', "kernel", "all", 0, 12, -RP_TIME_MAX_NS, INT64_MAX - 1},
    };
    static const int64_t durs[] = {0, 5, 1, 3, 3, INT64_MAX - 1};
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    for (rp_event e = 0; e < t->ev.n; e++) {
        bool low = e == 0 || e == 1 || e == 5;

        assert_true(t->ev.ts_ns[e] == (low      ? -RP_TIME_MAX_NS
                                       : e == 2 ? RP_TIME_MAX_NS - 1
                                                : RP_TIME_MAX_NS - 3));
        assert_true(t->ev.dur_ns[e] == durs[e]);
    }
    assert_int_equal(t->health.huge_time, 3); /* below, above, longer */
    rp_trace_free(t);
}

static void test_dump_names_the_pass(void **state)
{
    static const struct row rows[] = {{'X', "cpu_op", "an op", 1, 2, 10, 5}};
    struct rp_err err = RP_ERR_INIT;
    struct rp_trace *t;
    struct rp_out *out;
    const char *text;
    size_t n;

    UNUSED_STATE(state);
    assert_ok(rp_out_open_memory(&out, &err), &err);
    assert_ok(rp_builder_finish_dump(build_rows(rows, 1), "order", out, &t, &err), &err);
    text = rp_out_borrow_memory(out, &n);
    assert_contains(text, "event 0 track=0 ts=10 dur=5 ph=X cat='cpu_op'");
    assert_contains(text, "'an op'");
    rp_trace_free(t);
    rp_out_abandon(out);
    assert_code(rp_builder_finish_dump(build_rows(rows, 1), "nonsense", NULL, &t, &err), RP_USAGE);
    assert_contains(err.text, "parents");
    assert_null(t);
}

static void test_dump_shows_everything(void **state)
{
    static const struct row rows[] = {
        {'M', NULL, "process_name", 1, 0, RP_NO_TS, 0, .text_key = "name", .text = "python"},
        {'M', NULL, "process_labels", 0, 0, RP_NO_TS, 0, .text_key = "labels", .text = "GPU 5"},
        {'M', NULL, "thread_name", 1, 2, RP_NO_TS, 0, .text_key = "name", .text = "main"},
        {'X', "user_annotation", "ProfilerStep#3", 1, 2, 5, 100},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 2, 10, 5, .corr = 9},
        {'X', "kernel", "k", 0, 7, 20, 30, .corr = 9, .stream = 7},
        {'s', "ac2g", "ac2g", 1, 2, 10, .id = 4},
        {'B', NULL, "open", 1, 2, 110},
    };
    static const char lines[] =
        "process 0 id=1 text='' name='python' labels='' device=-1\n"
        "process 1 id=0 text='' name='' labels='GPU 5' device=5\n"
        "track 0 process=0 id=0 text='' name='' kind=0 events=0..1\n"
        "track 1 process=1 id=0 text='' name='' kind=0 events=1..2\n"
        "track 2 process=0 id=2 text='' name='main' kind=0 events=2..6\n"
        "track 3 process=1 id=7 text='' name='' kind=1 events=6..7\n"
        "event 0 track=0 ph=M cat='' flags=0 shape=1 row=0 kind=15 'process_name'\n"
        "event 1 track=1 ph=M cat='' flags=0 shape=2 row=0 kind=15 'process_labels'\n"
        "event 2 track=2 ph=M cat='' flags=0 shape=1 row=1 kind=15 'thread_name'\n"
        "event 3 track=2 ts=5 dur=100 ph=X cat='user_annotation' flags=0 shape=3 row=0 kind=2 'ProfilerStep#3'\n"
        "event 4 track=2 ts=10 dur=5 ph=X cat='cuda_runtime' flags=0 shape=4 row=0 kind=4 parent=3 link=0 'cudaLaunchKernel'\n"
        "event 5 track=2 ts=110 ph=B cat='' flags=2 shape=3 row=1 kind=0 'open'\n"
        "event 6 track=3 ts=20 dur=30 ph=X cat='kernel' flags=0 shape=5 row=0 kind=5 link=0 'k'\n"
        "flow 0 track=2 ts=10 ph=s id=4 event=4 'ac2g'\n"
        "link 0 id=9 source=0: 4 6\n"
        "step 0 number=3 begin=5 end=105 work_end=50 source=0 'ProfilerStep#3'\n"
        "health events=8\n"
        "health X=3\n";
    struct rp_err err = RP_ERR_INIT;
    struct rp_trace *t;
    struct rp_out *out;
    const char *text;
    size_t n;

    UNUSED_STATE(state);
    for (int frozen = 0; frozen < 2; frozen++) {
        assert_ok(rp_out_open_memory(&out, &err), &err);
        assert_ok(rp_builder_finish_dump(build_rows(rows, 8), frozen ? "freeze" : "health", out, &t,
                                         &err),
                  &err);
        text = rp_out_borrow_memory(out, &n);
        assert_memory_equal(text, frozen ? "frozen\n" : lines, frozen ? 7 : sizeof lines - 1);
        assert_true(frozen ? n == 7 : strstr(text, "\nhealth unended=1\n") != NULL);
        rp_trace_free(t);
        rp_out_abandon(out);
    }
}

/* The last ones share an origin, but keep what they are; nothing fails. */
static void test_too_many_origins(void **state)
{
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_origin origin = {.phase = 'X', .has_category = 1};
    char name[32];
    uint16_t first, last, again, out;
    struct rp_trace *t;

    UNUSED_STATE(state);
    for (int i = 0; i < 70000; i++) {
        snprintf(name, sizeof name, "category %d", i);
        origin.category = str_of(b, name);
        assert_code(rp_builder_origin(b, &origin, &last, NULL), RP_OK);
        if (i == 0)
            first = last;
    }
    origin.category = str_of(b, "category 0");
    assert_code(rp_builder_origin(b, &origin, &again, NULL), RP_OK);
    assert_int_equal(again, first);
    out = origin_of(b, 'X', "kernel");
    assert_int_not_equal(out, last);
    for (int i = 0; i < 1 << 16; i++) { /* whatever a reader makes of phases and kinds */
        origin = (struct rp_origin){.phase = (char)i, .kind = (uint8_t)(i >> 8)};
        assert_code(rp_builder_origin(b, &origin, &again, NULL), RP_OK);
    }
    add_row(b, &(struct row){'X', "kernel", "k", 1, 7, 10, 5});
    t = finish_valid(b);
    assert_int_equal(t->health.gpu_events, 1);
    assert_int_equal(t->nwarnings, 1);
    assert_int_equal(t->origins[last].category, 0);
    rp_trace_free(t);
}

int test_build(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_many_origins),
        cmocka_unit_test(test_empty_trace),
        cmocka_unit_test(test_ids_are_dense_and_the_same),
        cmocka_unit_test(test_arguments_come_back),
        cmocka_unit_test(test_many_keys_and_many_shapes_spill),
        cmocka_unit_test(test_wrong_calls_are_refused),
        cmocka_unit_test(test_limit_names_the_window),
        cmocka_unit_test(test_notes_are_kept_in_order),
        cmocka_unit_test(test_devices_without_a_name_are_known_by_their_size),
        cmocka_unit_test(a_small_process_number_is_that_of_a_device),
        cmocka_unit_test(test_metadata_names_processes_and_threads),
        cmocka_unit_test(test_xla_streams),
        cmocka_unit_test(test_totals),
        cmocka_unit_test(times_are_moved_into_the_range),
        cmocka_unit_test(test_dump_names_the_pass),
        cmocka_unit_test(test_dump_shows_everything),
    };

    return cmocka_run_group_tests_name("build", tests, NULL, NULL);
}
