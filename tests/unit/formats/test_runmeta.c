/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow's RunMetadata: rows built field by field, labels, and real steps with their Timeline.
 */
#include "proto_fixture.h"

#include "formats/tensorflow/runmeta.h"

/* -------------------------------------------------------------------------- labels */

static struct rp_bytes bytes_of(const char *text)
{
    return (struct rp_bytes){(const uint8_t *)text, strlen(text)};
}

static void assert_bytes(struct rp_bytes got, const char *want)
{
    char text[200];

    snprintf(text, sizeof text, "%.*s", (int)got.n, got.n ? (const char *)got.at : "");
    assert_string_equal(text, want);
}

static void test_op_labels(void **state)
{
    static const char *const cases[][5] = {
        /* label, name, op, inputs, memory */
        {"_SOURCE = NoOp()", "_SOURCE", "NoOp", "", ""},
        {"[mklcpu 0.4MB 0.4MB] relu1 = _MklNativeFusedConv2D(a, b:1, ^c)", "relu1",
         "_MklNativeFusedConv2D", "a, b:1, ^c", "mklcpu 0.4MB 0.4MB"},
        {"a = b = Op(x)", "a = b", "Op", "x", ""},
        {"a = Op(x) tail", "a", "Op", "x", ""},
        {"a = Op(f(x), y)", "a", "Op(f", "x), y", ""}, /* as the pattern has it */
        {"a = Op(x = y)", "a", "Op", "x = y", ""},
        {"no operator", "unknown", "unknown", "", ""},
        {"(a = b)", "unknown", "unknown", "", ""},
        {"", "unknown", "unknown", "", ""},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rp_runmeta_label label;

        rp_runmeta_read_op_label(bytes_of(cases[i][0]), &label);
        assert_bytes(label.name, cases[i][1]);
        assert_bytes(label.op, cases[i][2]);
        assert_bytes(label.inputs, cases[i][3]);
        assert_bytes(label.memory, cases[i][4]);
    }
}

static void test_other_labels(void **state)
{
    struct rp_runmeta_label label;
    struct rp_bytes list = bytes_of("a, b:1, ^c"), one;

    UNUSED_STATE(state);
    rp_runmeta_read_kernel_label(bytes_of("MEMCPYHtoD 4@@conv/Relu:Relu#id=1#"), bytes_of("x"),
                                 &label);
    assert_bytes(label.name, "conv/Relu");
    assert_bytes(label.op, "Relu");
    rp_runmeta_read_kernel_label(bytes_of("kernel"), bytes_of("conv:Conv2D"), &label);
    assert_bytes(label.name, "conv");
    assert_bytes(label.op, "Conv2D");
    rp_runmeta_read_kernel_label(bytes_of(""), bytes_of("conv"), &label);
    assert_bytes(label.op, "unknown");
    rp_runmeta_read_recv_label(
        bytes_of("[40B] [0.2Mb/s] edge_24_logits from /job:ps/cpu:0 to /job:worker/cpu:0"), &label);
    assert_bytes(label.edge, "edge_24_logits");
    assert_bytes(label.from, "/job:ps/cpu:0");
    assert_bytes(label.to, "/job:worker/cpu:0");
    rp_runmeta_read_recv_label(bytes_of("[40B"), &label);
    assert_bytes(label.edge, "");
    assert_true(rp_runmeta_next_input(&list, &one));
    assert_bytes(one, "a");
    assert_true(rp_runmeta_next_input(&list, &one));
    assert_true(rp_runmeta_next_input(&list, &one));
    assert_bytes(one, "^c");
    assert_false(rp_runmeta_next_input(&list, &one));
}

/* -------------------------------------------------------------------------- rows */

static void put_row(struct rp_proto_writer *w, const char *node, const char *label, int64_t start,
                    int64_t dur, bool nanos)
{
    size_t row = rp_proto_begin(w, 2);

    rp_proto_put_text(w, 1, node);
    rp_proto_put_varint(w, 2, (uint64_t)start / 1000);
    rp_proto_put_varint(w, 5, (uint64_t)dur / 1000);
    rp_proto_put_text(w, 8, label);
    if (nanos) {
        rp_proto_put_varint(w, 13, (uint64_t)start);
        rp_proto_put_varint(w, 14, 100);
        rp_proto_put_varint(w, 15, (uint64_t)dur - 100);
        rp_proto_put_varint(w, 16, (uint64_t)dur);
        rp_proto_put_varint(w, 17, (uint64_t)start - 250);
    }
    rp_proto_end(w, row);
}

/* Two operators that overlap, and a transfer in an entry of its own. */
static void put_stats(struct rp_proto_writer *w)
{
    const char *cpu = "/job:a/replica:0/task:0/device:CPU:0";
    size_t device = rp_proto_begin(w, 1);

    rp_proto_put_text(w, 1, "/job:a/replica:0/task:0/device:CPU:1"); /* did nothing */
    rp_proto_end(w, device);
    device = rp_proto_begin(w, 1);
    rp_proto_put_text(w, 1, cpu);
    put_row(w, "RecvTensor", "[40B] [1Mb/s] edge_1_x from /job:b to /job:a", 1000000, 7000, false);
    rp_proto_end(w, device);
    device = rp_proto_begin(w, 1);
    rp_proto_put_text(w, 1, cpu);
    put_row(w, "a", "a = MatMul(x, y)", 1000123, 20456, true);
    put_row(w, "b", "b = Add(a, a)", 1010000, 3000, true);
    put_row(w, "c", "c = Mul(b, a)", 1040000, 3000, true);
    rp_proto_end(w, device);
    device = rp_proto_begin(w, 1);
    rp_proto_put_text(w, 1, "/device:GPU:0/stream:14");
    put_row(w, "a:MatMul", "sgemm@@a:MatMul#id=1#", 1050000, 3000, false);
    put_row(w, "y:Const", "MEMCPYHtoD@@y:Const#id=1#", 1060000, 3000, false);
    rp_proto_end(w, device);
    device = rp_proto_begin(w, 1);
    rp_proto_put_text(w, 1, "/device:GPU:0/stream:all");
    put_row(w, "a:MatMul", "sgemm@@a:MatMul#id=1#", 1050000, 3000, false);
    rp_proto_end(w, device);
}

static void check_stats(const struct rp_trace *t)
{
    rp_event e = find(t, "MatMul"), recv = find(t, "RecvTensor");

    assert_str(t, t->format, "runmetadata");
    assert_str(t, t->framework, "tensorflow");
    assert_int_equal(t->ev.kind[e], RP_KIND_CPU_OP);
    assert_int_equal(t->ev.ts_ns[e], 1000123);
    assert_int_equal(t->ev.dur_ns[e], 20456);
    assert_arg(t, e, "name", "s a");
    assert_arg(t, e, "input1", "s y");
    assert_arg(t, e, "op_start_rel_ns", "i 100");
    assert_arg(t, e, "op_end_rel_ns", "i 20356");
    assert_arg(t, e, "scheduled_wait_ns", "i 250");
    assert_true(t->ev.track[find(t, "Add")] != t->ev.track[e]);
    assert_true(t->ev.track[find(t, "Mul")] == t->ev.track[e]);
    assert_str(t, t->processes[t->tracks[t->ev.track[e]].process].name,
               "/job:a/replica:0/task:0/device:CPU:0 Compute");
    assert_int_equal(t->ev.kind[recv], RP_KIND_TRANSFER);
    assert_int_equal(t->ev.ts_ns[recv], 1000000);
    assert_int_equal(t->ev.dur_ns[recv], 7000);
    assert_arg(t, recv, "edge", "s edge_1_x");
    assert_int_equal(t->tracks[t->ev.track[recv]].process, t->tracks[t->ev.track[e]].process);
    assert_int_equal(t->totals.count[RP_KIND_KERNEL], 1);
    assert_int_equal(t->totals.count[RP_KIND_MEMCPY], 1);
    assert_int_equal(t->totals.count[RP_KIND_GPU_ANNOTATION], 1);
}

static void test_rows(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_import import;
    size_t stats = rp_proto_begin(&w, 1);

    UNUSED_STATE(state);
    put_stats(&w);
    rp_proto_end(&w, stats);
    import = load_message(&w);
    check_stats(import.trace);
    rp_import_release(&import);
    put_stats(&w); /* StepStats alone */
    import = load_message(&w);
    check_stats(import.trace);
    rp_import_release(&import);
}

/* Cut anywhere: the rows in front of the cut; or an error where there is none. */
static void test_every_cut(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_bytes bytes;
    size_t stats = rp_proto_begin(&w, 1);
    int64_t most = 0;

    UNUSED_STATE(state);
    put_stats(&w);
    rp_proto_end(&w, stats);
    assert_ok(rp_proto_written(&w, &bytes, &err), &err);
    for (size_t cut = 1; cut <= bytes.n; cut++) {
        struct rp_import import = RP_IMPORT_INIT;
        uint8_t *copy = malloc(cut);
        enum rp_code code;

        assert_non_null(copy);
        memcpy(copy, bytes.at, cut);
        code = load_bytes(copy, cut, NULL, &import, &err);
        if (code == RP_OK) {
            assert_int_equal(import.trace->health.truncated, cut < bytes.n);
            assert_true(import.trace->health.X >= most);
            most = import.trace->health.X;
        } else {
            assert_code(code, RP_FORMAT);
            assert_int_equal(most, 0);
        }
        rp_import_release(&import);
        free(copy);
    }
    assert_int_equal(most, 7);
    rp_proto_writer_release(&w);
}

/* A broken row is refused with its byte; with salvage what stands before it is read. */
static void test_damage(void **state)
{
    static const uint8_t broken[] = {0x0a, 0x7f, 'x'};
    struct rp_read_options salvage = {.salvage = true};
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import;

    UNUSED_STATE(state);
    for (int salvaging = 0; salvaging < 2; salvaging++) {
        struct rp_proto_writer w = {0};
        size_t device;

        put_stats(&w);
        device = rp_proto_begin(&w, 1);
        rp_proto_put_text(&w, 1, "/job:b");
        rp_proto_put_bytes(&w, 2, broken, sizeof broken);
        rp_proto_put_text(&w, 9, "more");
        rp_proto_end(&w, device);
        assert_code(load_written(&w, salvaging ? &salvage : NULL, &import, &err),
                    salvaging ? RP_OK : RP_FORMAT);
        if (salvaging) {
            assert_int_equal(import.trace->health.salvaged, 1);
            assert_int_equal(import.trace->health.X, 7);
        } else {
            assert_contains(err.text, "at byte");
        }
        rp_import_release(&import);
    }
}

/* -------------------------------------------------------------------------- real steps */

struct device_facts {
    const char *device;
    uint32_t rows, transfers;
    int64_t all_ns, op_ns, wait_ns, transfer_us, output_bytes, span_ns;
};

static int64_t number(const struct rp_trace *t, rp_event e, const char *key)
{
    char text[256];

    return strtoll(arg_text(t, e, key, text, sizeof text) + 1, NULL, 10);
}

/* Sums over the operators of a device; the figures were computed with TensorFlow's own classes. */
static void check_device(const struct rp_trace *t, const struct device_facts *want)
{
    struct device_facts got = {.device = want->device};
    int64_t begin = INT64_MAX, end = INT64_MIN;
    char name[200];

    snprintf(name, sizeof name, "%s Compute", want->device);
    for (rp_event e = 0; e < t->ev.n; e++) {
        const struct rp_process *p = &t->processes[t->tracks[t->ev.track[e]].process];

        if (strcmp(rp_trace_str(t, p->name), name) != 0)
            continue;
        if (t->ev.kind[e] == RP_KIND_TRANSFER) {
            got.transfers++;
            got.transfer_us += t->ev.dur_ns[e] / 1000;
        } else if (t->ev.kind[e] == RP_KIND_CPU_OP) {
            got.rows++;
            got.all_ns += t->ev.dur_ns[e];
            got.op_ns += number(t, e, "op_end_rel_ns") - number(t, e, "op_start_rel_ns");
            got.wait_ns += number(t, e, "scheduled_wait_ns");
            got.output_bytes += number(t, e, "output_bytes");
            begin = t->ev.ts_ns[e] < begin ? t->ev.ts_ns[e] : begin;
            end = rp_event_end_ns(t, e) > end ? rp_event_end_ns(t, e) : end;
        }
    }
    assert_int_equal(got.rows, want->rows);
    assert_int_equal(got.transfers, want->transfers);
    assert_int_equal(got.all_ns, want->all_ns);
    assert_int_equal(got.op_ns, want->op_ns);
    assert_int_equal(got.transfer_us, want->transfer_us);
    assert_int_equal(end - begin, want->span_ns);
    if (want->wait_ns) {
        assert_int_equal(got.wait_ns, want->wait_ns);
        assert_int_equal(got.output_bytes, want->output_bytes);
    }
}

#define LOCAL "/job:localhost/replica:0/task:0/device:CPU:"

static void test_real_sums(void **state)
{
    static const struct {
        const char *file;
        int64_t span_ns;
        struct device_facts devices[2];
    } steps[] = {
        {"own/tf/runmeta_mnist_step.pb",
         3850741,
         {{LOCAL "0", 71, 0, 3948460, 3815240, 3332105, 0, 2373152, 3850741}, {0}}},
        {"own/tf/runmeta_2dev_step.pb",
         3716594,
         {{LOCAL "0", 31, 0, 78210, 46115, 1195586, 0, 89032, 3643184},
          {LOCAL "1", 47, 0, 3560835, 3462734, 869081, 0, 2320088, 3695903}}},
        {"own/tf/runmeta_ps_worker_step.pb",
         13008693,
         {{"/job:worker/replica:0/task:0/device:CPU:0", 46, 7, 9739660, 9607210, 1832167, 7942,
           2320088, 12765448},
          {"/job:ps/replica:0/task:0/device:CPU:0", 27, 8, 138034, 89339, 0, 1275, 0, 11333128}}},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct rp_import import = load_data(steps[i].file);
        const struct rp_trace *t = import.trace;

        for (size_t d = 0; d < 2 && steps[i].devices[d].device; d++)
            check_device(t, &steps[i].devices[d]);
        assert_int_equal(t->totals.span_end_ns - t->totals.span_begin_ns, steps[i].span_ns);
        rp_import_release(&import);
    }
}

/* The operator in the Timeline that is this one: same process, lane, node, and start. */
static bool timeline_has(const struct rp_trace *timeline, const struct rp_trace *t, rp_event e,
                         bool same_lane)
{
    char node[256], other[256];
    const struct rp_track_info *track = &t->tracks[t->ev.track[e]];

    arg_text(t, e, "name", node, sizeof node);
    for (rp_event k = 0; k < timeline->ev.n; k++) {
        const struct rp_track_info *lane = &timeline->tracks[timeline->ev.track[k]];
        int64_t late;

        if (timeline->ev.ts_ns[k] == RP_NO_TS)
            continue;
        late = t->ev.ts_ns[e] - timeline->ev.ts_ns[k];
        if (late >= 0 && late < 1000 &&
            strcmp(rp_trace_str(timeline, timeline->ev.name[k]), rp_trace_str(t, t->ev.name[e])) ==
                0 &&
            strcmp(arg_text(timeline, k, "name", other, sizeof other), node) == 0 &&
            strcmp(rp_trace_str(timeline, timeline->processes[lane->process].name),
                   rp_trace_str(t, t->processes[track->process].name)) == 0 &&
            (!same_lane || lane->native_id == track->native_id))
            return true;
    }
    return false;
}

/* All that the Timeline made of the same step tells of operators is in the model. */
static void test_timelines(void **state)
{
    static const char *const pairs[][2] = {
        {"own/tf/runmeta_mnist_step.pb", "own/tf/timeline.json.gz"},
        {"own/tf/runmeta_2dev_step.pb", "own/tf/timeline_2dev_step.json.gz"},
        {"own/tf/runmeta_ps_worker_step.pb", "own/tf/timeline_ps_worker_step.json.gz"},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct rp_import import = load_data(pairs[i][0]), timeline = load_data(pairs[i][1]);
        const struct rp_trace *t = import.trace;

        assert_int_equal(t->health.X, timeline.trace->health.X);
        for (rp_event e = 0; e < t->ev.n; e++)
            if (t->ev.kind[e] == RP_KIND_CPU_OP || t->ev.kind[e] == RP_KIND_TRANSFER)
                assert_true(timeline_has(timeline.trace, t, e, t->ev.kind[e] == RP_KIND_CPU_OP));
        rp_import_release(&import);
        rp_import_release(&timeline);
    }
}

int test_runmeta(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_labels), cmocka_unit_test(test_other_labels),
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_damage),
        cmocka_unit_test(test_every_cut), cmocka_unit_test(test_real_sums),
        cmocka_unit_test(test_timelines),
    };

    return cmocka_run_group_tests_name("runmeta", tests, NULL, NULL);
}
