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

int test_work(void)
{
    const struct CMUnitTest tests[] = {
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
