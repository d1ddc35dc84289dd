/* SPDX-License-Identifier: Apache-2.0 */
/* Device work in order, with launches; where its time goes; whose work it is. */
#include "facts/work/attribution.h"
#include "trace/trace_fixtures.h"

/* Two streams; the collective runs alone for 20 and beside compute for 10. */
static const struct row rows[] = {
    {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 100},
    {'X', "cpu_op", "aten::linear", 1, 1, 10, 30},
    {'X', "cpu_op", "aten::mm", 1, 1, 12, 20},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 14, 4, 5},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 50, 4, 6},
    {'X', "cuda_runtime", "cudaGraphLaunch", 1, 1, 60, 4, 7},
    {'X', "kernel", "gemm", 0, 7, 20, 30, 5, 7},
    {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, 40, 30, 6, 20},
    {'X', "kernel", "add", 0, 7, 80, 5, 7, 7},
    {'X', "gpu_memcpy", "Memcpy HtoD", 0, 7, 90, 10, 7, 7},
    {'X', "kernel", "lonely", 0, 7, 120, 0, 99, 7},
};

static void items_are_in_time_order_with_launches(void **state)
{
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_work w;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_int_equal(w.items.n, 5);
    assert_int_equal(w.streams.n, 2);
    assert_string_equal(name_of(t, w.items.at[1].event), "ncclDevKernel_AllReduce");
    assert_int_equal(w.items.at[1].cls, RP_WORK_COMM);
    assert_int_equal(w.items.at[3].cls, RP_WORK_MEMORY);
    assert_int_equal(t->ev.ts_ns[w.items.at[0].launch], 14);
    assert_int_equal(w.items.at[0].flags, RP_WORK_CORRELATED);
    assert_int_equal(w.items.at[2].flags, RP_WORK_CORRELATED | RP_WORK_IN_GRAPH);
    assert_int_equal(w.items.at[3].flags, RP_WORK_CORRELATED | RP_WORK_IN_GRAPH);
    assert_int_equal(w.items.at[4].launch, RP_NONE);
    rp_work_release(&w);
    rp_trace_free(t);
}

static void the_window_is_split_exactly(void **state)
{
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_work_unions u;
    struct rp_breakdown b, later;
    struct rp_work w;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_work_unite(&w, &u, NULL), RP_OK);
    b = rp_work_breakdown(&u);
    assert_int_equal(b.window_ns, 100);
    assert_int_equal(b.busy_ns, 50 + 5 + 10);
    assert_int_equal(b.idle_ns, 35);
    assert_int_equal(b.compute_ns, 35);
    assert_int_equal(b.comm_ns, 30);
    assert_int_equal(b.exposed_comm_ns, 20);
    assert_int_equal(b.memory_ns, 10);
    b = rp_work_breakdown_of(&u, 45, 95);
    assert_int_equal(b.busy_ns, 25 + 5 + 5);
    assert_int_equal(b.exposed_comm_ns, 20);
    assert_int_equal(b.idle_ns, 15);
    later = rp_work_breakdown_of(&u, 95, 120);
    rp_breakdown_add(&b, &later);
    assert_int_equal(b.begin_ns, 45);
    assert_int_equal(b.end_ns, 120);
    assert_int_equal(b.window_ns, 50 + 25);
    assert_int_equal(b.busy_ns, 35 + 5);
    assert_int_equal(b.compute_ns, 5 + 5 + 0);
    assert_int_equal(b.comm_ns, 25 + 0);
    assert_int_equal(b.exposed_comm_ns, 20 + 0);
    assert_int_equal(b.memory_ns, 5 + 5);
    assert_int_equal(b.idle_ns, 15 + 20);
    b = rp_work_breakdown_of(&u, 0, 60);
    later = rp_work_breakdown_of(&u, 60, 100);
    rp_breakdown_add(&b, &later);
    assert_int_equal(b.comm_ns, 30);
    assert_int_equal(b.compute_ns, 35);
    rp_work_unions_release(&u);
    rp_work_release(&w);
    rp_trace_free(t);
}

static void a_scope_selects_by_launch_or_by_start(void **state)
{
    const struct rp_scope step = {true, true, 0, 55}, window = {true, false, 80, 95};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_work w;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, &step, NULL), RP_OK);
    assert_int_equal(w.items.n, 2);
    rp_work_release(&w);
    assert_code(rp_work_init(&w, t, &window, NULL), RP_OK);
    assert_int_equal(w.items.n, 2);
    assert_string_equal(name_of(t, w.items.at[0].event), "add");
    rp_work_release(&w);
    rp_trace_free(t);
}

static void streams_are_labelled(void **state)
{
    static const struct row two[] = {
        {'X', "kernel", "a", 0, 7, 20, 30, 5, 7},
        {'X', "kernel", "b", 1, 7, 20, 30, 6, 7},
    };
    struct rp_trace *t = TRACE_OF(two);
    struct rp_work w;
    char label[40];

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_int_equal(w.streams.n, 2);
    rp_work_stream_label(&w, w.items.at[1].stream, label, sizeof label);
    assert_string_equal(label, "GPU 1 stream 7");
    rp_work_device_label(&w, 0, label, sizeof label);
    assert_string_equal(label, "GPU 0");
    w.devices.at[0].number = -1;
    rp_work_device_label(&w, 0, label, sizeof label);
    assert_string_equal(label, "process 0");
    w.devices.n = 1;
    rp_work_stream_label(&w, w.items.at[1].stream, label, sizeof label);
    assert_string_equal(label, "7");
    rp_work_release(&w);
    rp_trace_free(t);
}

/* Device 1 is busy for 50 of 60, device 0 for 30 of 100, one process has two devices. */
static void devices_are_kept_apart(void **state)
{
    static const struct row some[] = {
        {'X', "kernel", "a", 0, 7, 0, 10, 1, 7},      {'X', "kernel", "b", 1, 7, 5, 30, 2, 7},
        {'X', "kernel", "c", 1, 8, 25, 20, 3, 8},     {'X', "kernel", "d", 1, 7, 55, 10, 4, 7},
        {'X', "gpu_memcpy", "e", 0, 7, 80, 20, 5, 7},
    };
    struct rp_trace *t = TRACE_OF(some);
    struct rp_work w, own;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_int_equal(w.devices.n, 2);
    assert_int_equal(w.devices.at[0].number, 0);
    assert_int_equal(w.devices.at[0].busy_ns, 30);
    assert_int_equal(w.devices.at[0].compute_ns, 10);
    assert_int_equal(w.devices.at[0].end_ns - w.devices.at[0].begin_ns, 100);
    assert_int_equal(w.devices.at[1].number, 1);
    assert_int_equal(w.devices.at[1].busy_ns, 50);
    assert_int_equal(w.devices.at[1].compute_ns, 50);
    assert_int_equal(w.devices.at[1].nitems, 3);
    assert_int_equal(rp_work_main_device(&w), 1);
    assert_code(rp_work_of_device(&w, 0, &own, NULL), RP_OK);
    assert_int_equal(own.items.n, 2);
    assert_string_equal(name_of(t, own.items.at[1].event), "e");
    rp_work_release(&own);
    rp_work_keep_device(&w, 1);
    assert_int_equal(w.items.n, 3);
    rp_work_release(&w);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    rp_work_keep_device(&w, 0);
    assert_int_equal(w.items.n, 2);
    rp_work_release(&w);
    rp_trace_free(t);
}

/* The kernels of one process name two devices; a copy without the argument belongs to the first. */
static void an_argument_names_the_device(void **state)
{
    static const struct row some[] = {
        {'X', "kernel", "a", 90, 7, 0, 10, 1, 7, 0, "device", 3},
        {'X', "kernel", "b", 90, 7, 0, 10, 2, 7, 0, "device", 2},
        {'X', "gpu_memcpy", "c", 90, 9, 20, 5, 3, 9},
    };
    struct rp_trace *t = TRACE_OF(some);
    struct rp_work w;
    char label[40];

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_int_equal(w.devices.n, 2);
    assert_int_equal(w.devices.at[0].number, 2);
    assert_int_equal(w.devices.at[1].number, 3);
    assert_int_equal(w.streams.n, 3); /* stream 7 of each, and 9 */
    assert_int_equal(w.items.at[2].device, 1);
    rp_work_stream_label(&w, w.items.at[1].stream, label, sizeof label);
    assert_string_equal(label, "GPU 2 stream 7");
    rp_work_release(&w);
    rp_trace_free(t);
}

/* A training step: module, forward and backward threads, optimizer. */
static const struct row training[] = {
    {'X', "python_function", "train.py(3): main", 1, 1, 0, 200},
    {'X', "python_function", "nn.Module: Linear_0", 1, 1, 5, 50},
    {'X', "cpu_op", "aten::linear", 1, 1, 10, 30, 0, 0, 1, "Sequence number", 42},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 14, 4, 5},
    {'X', "cpu_op", "autograd::engine::evaluate_function: Mm", 1, 2, 60, 30, 0, 0, 2,
     "Sequence number", 42},
    {'X', "cpu_op", "aten::mm", 1, 2, 62, 20, 0, 0, 3},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 2, 64, 4, 6},
    {'X', "user_annotation", "Optimizer.step#SGD.step", 1, 1, 100, 30},
    {'X', "cpu_op", "aten::add_", 1, 1, 102, 20, 0, 0, 4},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 104, 4, 7},
    {'X', "kernel", "gemm", 0, 7, 20, 30, 5, 7},
    {'X', "kernel", "gemm", 0, 7, 70, 30, 6, 7},
    {'X', "kernel", "add", 0, 7, 110, 10, 7, 7},
    {'X', "kernel", "lonely", 0, 7, 130, 30, 99, 7},
};

static void work_is_attributed(void **state)
{
    struct rp_trace *t = TRACE_OF(training);
    struct rp_attribution a;
    struct rp_work w;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_attribution_init(&a, &w, NULL), RP_OK);
    assert_int_equal(a.owners.n, 4);
    assert_string_equal(name_of(t, a.owners.at[0].op), "aten::linear");
    assert_string_equal(name_of(t, a.owners.at[0].module), "nn.Module: Linear_0");
    assert_string_equal(name_of(t, a.owners.at[0].python), "nn.Module: Linear_0");
    assert_int_equal(a.owners.at[0].phase, RP_PHASE_FORWARD);
    assert_string_equal(name_of(t, a.owners.at[1].op), "aten::mm");
    assert_int_equal(a.owners.at[1].phase, RP_PHASE_BACKWARD);
    assert_string_equal(name_of(t, a.owners.at[1].forward), "aten::linear");
    assert_int_equal(a.owners.at[2].phase, RP_PHASE_OPTIMIZER);
    assert_string_equal(name_of(t, a.owners.at[2].annotation), "Optimizer.step#SGD.step");
    assert_int_equal(a.owners.at[3].op, RP_NONE);
    assert_int_equal(a.coverage.device_ns, 100);
    assert_int_equal(a.coverage.op_ns, 70);
    assert_int_equal(a.coverage.launched_ns, 70);
    assert_int_equal(a.coverage.python_ns, 40);
    assert_int_equal(a.coverage.module_ns, 30);
    rp_attribution_release(&a);
    rp_work_release(&w);
    rp_trace_free(t);
}

/* BatchNorm2d: the counter that is added to before has no gradient, and the same number. */
static void a_gradient_is_of_the_last_operator_with_its_number(void **state)
{
    static const struct row norm[] = {
        {'X', "cpu_op", "aten::add_", 1, 1, 10, 5, 0, 0, 1, "Sequence number", 42},
        {'X', "cpu_op", "aten::batch_norm", 1, 1, 20, 30, 0, 0, 2, "Sequence number", 42},
        {'X', "cpu_op", "aten::native_batch_norm", 1, 1, 22, 20, 0, 0, 3, "Sequence number", 42},
        {'X', "cpu_op", "autograd::engine::evaluate_function: NativeBatchNormBackward0", 1, 2, 60,
         30, 0, 0, 4, "Sequence number", 42},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 2, 64, 4, 6},
        {'X', "kernel", "batch_norm_backward", 0, 7, 70, 30, 6, 7},
    };
    struct rp_trace *t = TRACE_OF(norm);
    struct rp_attribution a;
    struct rp_work w;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_attribution_init(&a, &w, NULL), RP_OK);
    assert_int_equal(a.owners.n, 1);
    assert_string_equal(name_of(t, a.owners.at[0].forward), "aten::batch_norm");
    rp_attribution_release(&a);
    rp_work_release(&w);
    rp_trace_free(t);
}

static void a_host_only_trace_has_no_work(void **state)
{
    static const struct row host[] = {{'X', "cpu_op", "aten::mm", 1, 1, 0, 10}};
    struct rp_trace *t = TRACE_OF(host);
    struct rp_attribution a;
    struct rp_work_unions u;
    struct rp_work w;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_attribution_init(&a, &w, NULL), RP_OK);
    assert_code(rp_work_unite(&w, &u, NULL), RP_OK);
    assert_int_equal(rp_work_breakdown(&u).window_ns, 0);
    assert_int_equal(a.coverage.device_ns, 0);
    rp_work_unions_release(&u);
    rp_attribution_release(&a);
    rp_work_release(&w);
    rp_trace_free(t);
}

/* Work that starts together is in the order of the file; of two devices that compute equally long
   the busier one is the main one, and of equals the first. */
static void equals_are_in_order(void **state)
{
    static const struct row some[] = {
        {'X', "kernel", "b", 0, 9, 10, 10, 1, 9},       {'X', "kernel", "a", 0, 7, 10, 10, 2, 7},
        {'X', "kernel", "c", 1, 7, 10, 20, 3, 7},       {'X', "kernel", "d", 1, 8, 10, 20, 4, 8},
        {'X', "gpu_memcpy", "e", 1, 7, 50, 1, 5, 7},    {'X', "kernel", "f", 0, 9, 20, 10, 6, 9},
        {'X', "gpu_memcpy", "g", 2, 7, 100, 500, 7, 7},
    };
    static const char order[] = "bacdfeg";

    UNUSED_STATE(state);
    for (size_t n = 6; n <= 7; n++) {
        struct rp_trace *t = trace_of(some, n);
        struct rp_work w;

        assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
        assert_int_equal(w.items.n, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(*name_of(t, w.items.at[i].event), order[i]);
        assert_int_equal(w.devices.at[0].compute_ns, 20);
        assert_int_equal(w.devices.at[1].compute_ns, 20);
        assert_int_equal(w.devices.at[0].busy_ns, 20);
        assert_int_equal(w.devices.at[1].busy_ns, 21);
        assert_int_equal(rp_work_main_device(&w), 1);
        rp_work_release(&w);
        rp_trace_free(t);
        t = trace_of(some, 4); /* b and a for 10, c and d for 20 */
        assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
        assert_int_equal(rp_work_main_device(&w), 1);
        w.devices.at[0] = w.devices.at[1];
        assert_int_equal(rp_work_main_device(&w), 0);
        rp_work_release(&w);
        rp_trace_free(t);
    }
}

static void work_of_one_device_is_copied(void **state)
{
    static const struct row some[] = {
        {'X', "kernel", "a", 0, 7, 0, 10, 1, 7},  {'X', "kernel", "b", 1, 7, 5, 30, 2, 7},
        {'X', "kernel", "c", 0, 7, 25, 20, 3, 7}, {'X', "kernel", "d", 1, 7, 55, 10, 4, 7},
        {'X', "kernel", "e", 1, 7, 75, 10, 5, 7},
    };
    struct rp_trace *t = TRACE_OF(some);
    struct rp_work w, own;

    UNUSED_STATE(state);
    for (int kept = 0; kept < 2; kept++) {
        assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
        if (kept)
            rp_work_keep_device(&w, 1);
        for (uint16_t d = 0; d < 2; d++) {
            assert_code(rp_work_of_device(&w, d, &own, NULL), RP_OK);
            assert_int_equal(own.items.n, d ? 3 : kept ? 0 : 2);
            for (size_t i = 0; i < own.items.n; i++) {
                assert_int_equal(own.items.at[i].device, d);
                assert_true(!i || own.items.at[i - 1].begin_ns < own.items.at[i].begin_ns);
            }
            rp_work_release(&own);
        }
        rp_work_release(&w);
    }
    rp_trace_free(t);
}

/* Of the judged parts of a trace, and of a limited one. */
static void a_scope_has_edges(void **state)
{
    struct rp_interval at[] = {{10, 20}, {30, 40}};
    struct rp_scope judged = {.njudged = 2, .judged = at};
    const struct rp_scope limited = {.limited = true, .begin_ns = 10, .end_ns = 20}, all = {0};
    static const struct {
        int64_t begin, end;
        bool judged;
    } cases[] = {{0, 9, false},   {0, 10, true},  {10, 10, true}, {19, 19, true},  {20, 20, false},
                 {20, 29, false}, {20, 30, true}, {39, 90, true}, {40, 90, false}, {0, 90, true}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(rp_scope_judges(&judged, cases[i].begin, cases[i].end), cases[i].judged);
        assert_true(rp_scope_judges(&all, cases[i].begin, cases[i].end));
        assert_true(rp_scope_has(&all, cases[i].begin));
    }
    assert_true(rp_scope_has(&judged, 19) && !rp_scope_has(&judged, 20));
    assert_true(!rp_scope_has(&limited, 9) && rp_scope_has(&limited, 10));
    assert_true(rp_scope_has(&limited, 19) && !rp_scope_has(&limited, 20));
}

/* A host call and work with one link, each with an argument "correlation" or none. */
static uint8_t flags_with(const struct rp_arg *host, const struct rp_arg *work)
{
    const struct rp_arg *args[] = {host, work};
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_trace *t;
    struct rp_work w;
    uint8_t flags;

    for (int i = 0; i < 2; i++) {
        struct rp_arg arg = args[i] ? *args[i] : (struct rp_arg){0};
        struct rp_raw raw = {.ts_ns = 10 + 20 * i,
                             .dur_ns = 5,
                             .name = str_of(b, i ? "gemm" : "cudaLaunchKernel"),
                             .track = track_of(b, !i, i ? 7 : 1),
                             .origin = origin_of(b, 'X', i ? "kernel" : "cuda_runtime"),
                             .has_link = true,
                             .link = 3,
                             .nargs = args[i] ? 1 : 0,
                             .args = &arg};

        arg.key = str_of(b, "correlation");
        if (arg.type == RP_ARG_STR)
            arg.v.s = str_of(b, arg.v.s ? "one" : "other");
        assert_code(rp_builder_shape(b, &arg, raw.nargs, &raw.shape, NULL), RP_OK);
        assert_code(rp_builder_add(b, &raw, NULL), RP_OK);
    }
    t = finish_valid(b);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_int_equal(w.items.n, 1);
    assert_true(w.items.at[0].launch != RP_NONE);
    flags = w.items.at[0].flags;
    rp_work_release(&w);
    rp_trace_free(t);
    return flags;
}

static void numbers_and_texts_correlate(void **state)
{
    const struct rp_arg five = {.type = RP_ARG_I64, .v = {.i = 5}},
                        six = {.type = RP_ARG_I64, .v = {.i = 6}},
                        five_point = {.type = RP_ARG_F64, .v = {.f = 5}},
                        half = {.type = RP_ARG_F64, .v = {.f = 5.5}},
                        one = {.type = RP_ARG_STR, .v = {.s = 1}},
                        other = {.type = RP_ARG_STR, .v = {.s = 0}};
    const struct {
        const struct rp_arg *host, *work;
        bool same;
    } cases[] = {
        {&five, &five, true},        {&five, &six, false},       {&five, NULL, false},
        {NULL, &five, false},        {&five, &five_point, true}, {&five_point, &five, true},
        {&five, &half, false},       {&half, &five, false},      {&half, &half, true},
        {&five_point, &half, false}, {&one, &one, true},         {&one, &other, false},
        {&one, &five, false},        {&five, &one, false},       {NULL, NULL, false}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (flags_with(cases[i].host, cases[i].work) != (cases[i].same ? RP_WORK_CORRELATED : 0))
            fail_msg("row %zu", i);
}

static void a_moment_has_an_innermost_span(void **state)
{
    static const struct row some[] = {
        {'X', "cpu_op", "outer", 1, 1, 10, 50},
        {'X', "cpu_op", "inner", 1, 1, 20, 10},
        {'X', "python_function", "empty", 1, 1, 40, 0},
        {'X', "cpu_op", "next", 1, 1, 60, 5},
    };
    static const struct {
        int64_t at;
        const char *name;
    } cases[] = {{9, NULL},     {10, "outer"}, {19, "outer"}, {20, "inner"}, {29, "inner"},
                 {30, "outer"}, {40, "outer"}, {59, "outer"}, {60, "next"},  {65, NULL}};
    struct rp_trace *t = TRACE_OF(some);
    rp_track track = t->ev.track[event_n(t, 0)];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rp_event e = rp_event_at(t, track, cases[i].at);

        if (cases[i].name)
            assert_string_equal(name_of(t, e), cases[i].name);
        else
            assert_int_equal(e, RP_NONE);
    }
    assert_int_equal(rp_event_around(t, event_n(t, 2), RP_KIND_CPU_OP), event_n(t, 0));
    assert_int_equal(rp_event_around(t, event_n(t, 1), RP_KIND_CPU_OP), event_n(t, 1));
    assert_int_equal(rp_event_around(t, event_n(t, 1), RP_KIND_PYTHON), RP_NONE);
    rp_trace_free(t);
}

/* An operator of the engine's thread names the thread of its forward pass. */
static void an_operator_with_a_forward_thread_runs_backward(void **state)
{
    UNUSED_STATE(state);
    for (int64_t thread = 0; thread < 2; thread++) {
        const struct row some[] = {
            {'X', "cpu_op", "aten::linear", 1, 1, 0, 9, 0, 0, 1, "Sequence number", 42},
            {'X', "cpu_op", "MmBackward", 1, 2, 60, 30, 0, 0, 2, "Sequence number", 42, 0, NULL,
             NULL, "Fwd thread id", thread},
            {'X', "cuda_runtime", "cudaLaunchKernel", 1, 2, 64, 4, 6},
            {'X', "kernel", "gemm", 0, 7, 70, 30, 6, 7},
        };
        struct rp_trace *t = TRACE_OF(some);
        struct rp_attribution a;
        struct rp_work w;

        assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
        assert_code(rp_attribution_init(&a, &w, NULL), RP_OK);
        assert_int_equal(a.owners.at[0].phase, thread ? RP_PHASE_BACKWARD : RP_PHASE_FORWARD);
        if (thread)
            assert_string_equal(name_of(t, a.owners.at[0].forward), "aten::linear");
        else
            assert_int_equal(a.owners.at[0].forward, RP_NONE);
        rp_attribution_release(&a);
        rp_work_release(&w);
        rp_trace_free(t);
    }
}

/* Two gradients: each is of the forward operator whose number the node around its operator has. */
static void gradients_are_of_their_own_operators(void **state)
{
    static const struct row two[] = {
        {'X', "cpu_op", "aten::linear", 1, 1, 0, 9, 0, 0, 1, "Sequence number", 42},
        {'X', "cpu_op", "aten::gelu", 1, 1, 10, 9, 0, 0, 2, "Sequence number", 43},
        {'X', "cpu_op", "autograd::engine::evaluate_function: Gelu", 1, 2, 60, 30, 0, 0, 3,
         "Sequence number", 43},
        {'X', "cpu_op", "aten::gelu_backward", 1, 2, 62, 20},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 2, 64, 4, 5},
        {'X', "cpu_op", "autograd::engine::evaluate_function: Mm", 1, 2, 100, 30, 0, 0, 4,
         "Sequence number", 42},
        {'X', "cpu_op", "aten::mm", 1, 2, 102, 20},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 2, 104, 4, 6},
        {'X', "kernel", "gelu", 0, 7, 70, 30, 5, 7},
        {'X', "kernel", "gemm", 0, 7, 110, 30, 6, 7},
    };
    struct rp_trace *t = TRACE_OF(two);
    struct rp_attribution a;
    struct rp_work w;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_attribution_init(&a, &w, NULL), RP_OK);
    assert_string_equal(name_of(t, a.owners.at[0].forward), "aten::gelu");
    assert_string_equal(name_of(t, a.owners.at[1].forward), "aten::linear");
    rp_attribution_release(&a);
    rp_work_release(&w);
    rp_trace_free(t);
}

int test_work(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_of_their_own_operators),
        cmocka_unit_test(equals_are_in_order),
        cmocka_unit_test(work_of_one_device_is_copied),
        cmocka_unit_test(a_scope_has_edges),
        cmocka_unit_test(numbers_and_texts_correlate),
        cmocka_unit_test(a_moment_has_an_innermost_span),
        cmocka_unit_test(an_operator_with_a_forward_thread_runs_backward),
        cmocka_unit_test(items_are_in_time_order_with_launches),
        cmocka_unit_test(the_window_is_split_exactly),
        cmocka_unit_test(a_scope_selects_by_launch_or_by_start),
        cmocka_unit_test(streams_are_labelled),
        cmocka_unit_test(devices_are_kept_apart),
        cmocka_unit_test(an_argument_names_the_device),
        cmocka_unit_test(work_is_attributed),
        cmocka_unit_test(a_gradient_is_of_the_last_operator_with_its_number),
        cmocka_unit_test(a_host_only_trace_has_no_work),
    };

    return cmocka_run_group_tests_name("work", tests, NULL, NULL);
}
