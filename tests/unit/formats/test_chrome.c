/* SPDX-License-Identifier: Apache-2.0 */
/* The Chrome-JSON reader: dialects, times, identities, arguments, header. */
#include "chrome_fixture.h"

/* -------------------------------------------------------------------------- dialects */

static const char kineto[] =
    "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"H200\", "
    "\"totalGlobalMem\": 150109880320, \"warpSize\": 32, \"numSms\": 132}],\n"
    "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8, "
    "\"pg_config\": [{\"ranks\": [0, 1]}]},\n"
    "\"traceEvents\": [\n"
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add\", \"pid\": 1, \"tid\": 2,\n"
    " \"ts\": 100.125, \"dur\": 7.5, \"args\": {\"External id\": 5}},\n"
    "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 1, "
    "\"tid\": 2, \"ts\": 101, \"dur\": 2, \"args\": {\"cbid\": 211, \"correlation\": 77}},\n"
    "{\"ph\": \"s\", \"id\": 77, \"pid\": 1, \"tid\": 2, \"ts\": 101, \"cat\": \"ac2g\", "
    "\"name\": \"ac2g\"},\n"
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"add_kernel\", \"pid\": 0, \"tid\": 7, "
    "\"ts\": 110.001, \"dur\": 3.002, \"args\": {\"stream\": 7, \"correlation\": 77, "
    "\"grid\": [1, 2, 3]}},\n"
    "{\"ph\": \"f\", \"id\": 77, \"pid\": 0, \"tid\": 7, \"ts\": 110.001, \"cat\": \"ac2g\", "
    "\"name\": \"ac2g\", \"bp\": \"e\"},\n"
    "{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": \"[memory]\", "
    "\"pid\": 1, \"tid\": 2, \"ts\": 102, \"args\": {\"Bytes\": -512}},\n"
    "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 1, \"tid\": 0, \"ts\": 1, "
    "\"args\": {\"name\": \"python\"}},\n"
    "{\"ph\": \"X\", \"cat\": \"Trace\", \"name\": \"PyTorch Profiler (0)\", "
    "\"pid\": \"Spans\", \"tid\": \"PyTorch Profiler\", \"ts\": 1, \"dur\": 1},\n"
    "{\"ph\": \"i\", \"name\": \"Record Window End\", \"pid\": \"\", \"tid\": \"\", \"ts\": "
    "9}],\n"
    "\"traceName\": \"a.json\", \"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": "
    "1790857026000000000}\n";

static void test_kineto_header(void **state)
{
    struct rp_import import = load(kineto);
    const struct rp_trace *t = import.trace;

    UNUSED_STATE(state);
    assert_str(t, t->format, "chrome-json");
    assert_str(t, t->framework, "pytorch");
    assert_int_equal(t->rank, 3);
    assert_int_equal(t->world_size, 8);
    assert_true(t->has_base);
    assert_int_equal(t->base_ns, 1790857026000000000);
    assert_int_equal(t->ndevices, 1);
    assert_str(t, t->devices[0].name, "H200");
    assert_int_equal(t->devices[0].memory_bytes, 150109880320);
    assert_int_equal(t->devices[0].multiprocessors, 132);
    assert_int_equal(t->nmeta, 6);
    assert_str(t, t->meta[0].key, "schemaVersion");
    assert_str(t, t->meta[0].value, "1");
    assert_str(t, t->meta[2].value,
               "{\"backend\":\"nccl\",\"rank\":3,\"world_size\":8,\"pg_config\":"
               "[{\"ranks\":[0,1]}]}");
    assert_int_equal(t->meta[2].after_events, 0);
    assert_str(t, t->meta[3].key, "traceName");
    assert_str(t, t->meta[3].value, "\"a.json\"");
    assert_int_equal(t->meta[3].after_events, 1);
    assert_int_equal(t->nwarnings, 0);
    rp_import_release(&import);
}

static void test_kineto_events(void **state)
{
    struct rp_import import = load(kineto);
    const struct rp_trace *t = import.trace;
    rp_event op = find(t, "aten::add"), kernel = find(t, "add_kernel");
    rp_event call = find(t, "cudaLaunchKernel");

    UNUSED_STATE(state);
    assert_int_equal(t->ev.ts_ns[op], 100125);
    assert_int_equal(t->ev.dur_ns[op], 7500);
    assert_int_equal(t->ev.kind[op], RP_KIND_CPU_OP);
    assert_int_equal(origin_of(t, op)->flags, RP_ORIGIN_NESTS | RP_ORIGIN_MARKS_STEP);
    assert_arg(t, op, "External id", "i 5");
    assert_int_equal(origin_of(t, call)->flags, RP_ORIGIN_RUNTIME | RP_ORIGIN_NESTS);
    assert_int_equal(origin_of(t, kernel)->flags, RP_ORIGIN_GPU);
    assert_int_equal(t->ev.kind[kernel], RP_KIND_KERNEL);
    assert_int_equal(t->ev.ts_ns[kernel], 110001);
    assert_int_equal(t->ev.dur_ns[kernel], 3002);
    assert_arg(t, kernel, "grid", "r [1, 2, 3]");
    assert_int_not_equal(t->ev.link[kernel], RP_NONE);
    assert_int_equal(t->ev.link[kernel], t->ev.link[call]);
    assert_int_equal(t->links.native_id[t->ev.link[kernel]], 77);
    assert_int_equal(t->ev.link[op], RP_NONE);
    assert_arg(t, find(t, "[memory]"), "Bytes", "i -512");
    rp_import_release(&import);
}

static void test_kineto_identities(void **state)
{
    struct rp_import import = load(kineto);
    const struct rp_trace *t = import.trace;
    rp_event span = find(t, "PyTorch Profiler (0)"), end = find(t, "Record Window End");

    UNUSED_STATE(state);
    assert_int_equal(t->flows.n, 2);
    assert_int_equal(t->health.events, 9);
    assert_int_equal(t->health.flow_s, 1);
    assert_int_equal(t->health.flow_f, 1);
    assert_int_equal(t->health.string_pid, 2);
    assert_int_equal(t->health.non_int_ts, 3);
    assert_str(t, t->processes[t->tracks[t->ev.track[span]].process].text, "Spans");
    assert_str(t, t->tracks[t->ev.track[span]].text, "PyTorch Profiler");
    assert_int_equal(t->tracks[t->ev.track[end]].native_id, RP_ID_EMPTY);
    rp_import_release(&import);
}

/* 2021: other categories, integer microseconds since 1970, tids that are text, rank as text behind
   the events. */
static void test_kineto_2021(void **state)
{
    struct rp_import import =
        load("{\"schemaVersion\":1,\"traceEvents\":[\n"
             "  {\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"op\",\"pid\":5,\"tid\":\"33\","
             "\"ts\":1623143089861125,\"dur\":10,\"args\":{\"Input dims\":[]}},\n"
             "  {\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"call\",\"pid\":5,\"tid\":\"33\","
             "\"ts\":1623143089861126,\"dur\":1,\"args\":{\"correlation\":1}},\n"
             "  {\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"k\",\"pid\":0,\"tid\":\"stream 7\","
             "\"ts\":1623143089861130,\"dur\":2,\"args\":{\"correlation\":1}},\n"
             "  {\"ph\":\"X\",\"cat\":\"Memcpy\",\"name\":\"c\",\"pid\":0,\"tid\":\"stream 7\","
             "\"ts\":1623143089861140,\"dur\":2},\n"
             "  {\"ph\":\"X\",\"cat\":\"Memset\",\"name\":\"m\",\"pid\":0,\"tid\":\"stream 7\","
             "\"ts\":1623143089861150,\"dur\":2},\n"
             "  {\"ph\":\"f\",\"id\":1,\"pid\":0,\"tid\":\"stream 7\",\"ts\":1623143089861130,"
             "\"cat\":\"async\",\"name\":\"launch\",\"bp\":\"e\"}\n"
             "],\"distributedInfo\":{\"rank\":\"12\",\"world_size\":\"16\"}}");
    const struct rp_trace *t = import.trace;
    rp_event op = find(t, "op");

    UNUSED_STATE(state);
    assert_int_equal(t->ev.ts_ns[op], 1623143089861125000);
    assert_int_equal(t->has_base, 0);
    assert_int_equal(t->rank, 12);
    assert_int_equal(t->world_size, 16);
    assert_int_equal(t->ev.kind[find(t, "c")], RP_KIND_MEMCPY);
    assert_int_equal(t->ev.kind[find(t, "m")], RP_KIND_MEMSET);
    assert_int_equal(t->health.gpu_events, 3);
    assert_int_equal(t->health.runtime_events, 1);
    assert_str(t, t->tracks[t->ev.track[find(t, "k")]].text, "stream 7");
    assert_str(t, t->tracks[t->ev.track[op]].text, "33"); /* text stays text */
    assert_int_equal(t->flows.flags[0], RP_FLOW_BIND_ENCLOSING);
    rp_import_release(&import);
}

/* XProf: no categories, doubles printed with 17 digits, {} at the end of the list. */
static void test_xprof(void **state)
{
    struct rp_import import = load(
        "{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},\"traceEvents\":["
        "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"/device:GPU:0\"}},"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":14,\"name\":\"thread_name\","
        "\"args\":{\"name\":\"Stream #14(Compute)\"}},"
        "{\"ph\":\"M\",\"pid\":701,\"name\":\"process_name\",\"args\":{\"name\":\"/host:CPU\"}},"
        "{\"ph\":\"X\",\"pid\":701,\"tid\":3,\"ts\":58.646999999999998,\"dur\":21056.794000000002,"
        "\"name\":\"$profiler.py:307 trace\"},"
        "{\"ph\":\"X\",\"pid\":701,\"tid\":3,\"ts\":60,\"dur\":5,\"name\":\"PjitFunction(f)\"},"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":14,\"ts\":70,\"dur\":1.6639999999999999,"
        "\"name\":\"loop_fusion\",\"args\":{\"correlation_id\":\"5\"}},"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":14,\"ts\":80,\"dur\":2,\"name\":\"MemcpyD2D\"},{}]}");
    const struct rp_trace *t = import.trace;
    rp_event frame = find(t, "$profiler.py:307 trace");

    UNUSED_STATE(state);
    assert_str(t, t->framework, "jax");
    assert_int_equal(t->ev.ts_ns[frame], 58647);
    assert_int_equal(t->ev.dur_ns[frame], 21056794);
    assert_true(t->ev.flags[frame] & RP_EVENT_ROUNDED);
    assert_int_equal(t->ev.kind[frame], RP_KIND_PYTHON);
    assert_int_equal(t->ev.kind[find(t, "loop_fusion")], RP_KIND_KERNEL);
    assert_int_equal(t->ev.kind[find(t, "MemcpyD2D")], RP_KIND_MEMCPY);
    assert_int_equal(origin_of(t, find(t, "loop_fusion"))->has_category, 0);
    assert_int_equal(t->ev.dur_ns[find(t, "loop_fusion")], 1664);
    assert_int_equal(t->health.rounded_time, 3);
    assert_int_equal(t->health.gpu_events, 0); /* by category only */
    assert_int_equal(t->health.skipped_events, 0);
    rp_import_release(&import);
}

static void test_timeline(void **state)
{
    struct rp_import import = load(
        "{\n \"traceEvents\": [\n"
        "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": "
        "\"/job:localhost/replica:0/task:0/device:CPU:0 Compute\"}},\n"
        "{\"ph\": \"N\", \"cat\": \"Tensor\", \"name\": \"x\", \"pid\": 2, \"tid\": 0, \"ts\": 5, "
        "\"id\": 3},\n"
        "{\"ph\": \"O\", \"cat\": \"Tensor\", \"name\": \"x\", \"pid\": 2, \"tid\": 0, \"ts\": 6, "
        "\"id\": 3, \"args\": {\"snapshot\": {\"d\": \"a\\nb\"}}},\n"
        "{\"ph\": \"X\", \"cat\": \"Op\", \"name\": \"MatMul\", \"pid\": 1, \"tid\": 0, \"ts\": 6, "
        "\"dur\": 9, \"args\": {\"name\": \"net/MatMul\", \"op\": \"MatMul\"}},\n"
        "{\"ph\": \"X\", \"cat\": \"Op\", \"name\": \"RecvTensor\", \"pid\": 5, \"tid\": 0, "
        "\"ts\": 6, \"dur\": 9, \"args\": {\"name\": \"RecvTensor\"}},\n"
        "{\"ph\": \"s\", \"cat\": \"DataFlow\", \"name\": \"x\", \"pid\": 1, \"tid\": 0, \"ts\": 6, "
        "\"id\": 0},\n"
        "{\"ph\": \"t\", \"cat\": \"DataFlow\", \"name\": \"x\", \"pid\": 1, \"tid\": 0, \"ts\": 7, "
        "\"id\": 0},\n"
        "{\"ph\": \"C\", \"cat\": \"Memory\", \"name\": \"cpu\", \"pid\": 0, \"tid\": 0, \"ts\": 6, "
        "\"args\": {\"cpu\": 4096}}]}");
    const struct rp_trace *t = import.trace;

    UNUSED_STATE(state);
    assert_str(t, t->framework, "tensorflow");
    assert_int_equal(t->ev.kind[find(t, "MatMul")], RP_KIND_CPU_OP);
    assert_int_equal(t->ev.kind[find(t, "RecvTensor")], RP_KIND_TRANSFER); /* as in RunMetadata */
    assert_int_equal(t->ev.kind[find(t, "x")], RP_KIND_OTHER);
    assert_arg(t, find_nth(t, "x", 1), "snapshot", "r {\"d\": \"a\\nb\"}");
    assert_arg(t, find(t, "MatMul"), "op", "s MatMul");
    assert_int_equal(t->ev.kind[find(t, "cpu")], RP_KIND_COUNTER);
    assert_int_equal(t->flows.n, 2);
    assert_int_equal(t->health.counter, 1);
    rp_import_release(&import);
}

/* Tensors are processes, spans are pairs, the list is never closed. */
static void test_horovod(void **state)
{
    static const char text[] =
        "[\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": "
        "\"grad/0\"}},\n"
        "{\"ph\": \"B\", \"name\": \"NEGOTIATE_ALLREDUCE\", \"ts\": 10, \"pid\": 1},\n"
        "{\"ph\": \"X\", \"name\": \"0\", \"ts\": 11, \"pid\": 1, \"dur\": 0},\n"
        "{\"ph\": \"E\", \"ts\": 15, \"pid\": 1},\n"
        "{\"ph\": \"B\", \"name\": \"ALLREDUCE\", \"ts\": 16, \"pid\": 1},\n"
        "{\"ph\": \"E\", \"ts\": 30, \"pid\": 1, \"args\": {\"dtype\": \"float\"}},\n";
    static const char *const ends[] = {"", "{}]", "{\"ph\": \"i\", \"ts\": 1, \"pid\": 1}]"};

    UNUSED_STATE(state);
    for (size_t i = 0; i < 3; i++) {
        char whole[1000];
        struct rp_import import;
        const struct rp_trace *t;
        rp_event e;

        snprintf(whole, sizeof whole, "%s%s", text, ends[i]);
        import = load(whole);
        t = import.trace;
        e = find(t, "ALLREDUCE");
        assert_str(t, t->framework, "horovod");
        assert_int_equal(t->ev.ts_ns[e], 16000);
        assert_int_equal(t->ev.dur_ns[e], 14000);
        assert_int_equal(t->ev.kind[e], RP_KIND_COMM_OP);
        assert_int_equal(t->tracks[t->ev.track[e]].has_id, 0);
        assert_int_equal(t->health.truncated, 0);
        assert_int_equal(t->health.unended, 0);
        assert_int_equal(warns(t, "not closed"), i == 0);
        rp_import_release(&import);
    }
}

/* Asynchronous chains, instants, samples and whatever else there is. */
static void test_phases(void **state)
{
    struct rp_import import =
        load("[{\"ph\":\"b\",\"cat\":\"io\",\"name\":\"read\",\"id\":\"0x1f\",\"pid\":1,\"tid\":1,"
             "\"ts\":1},"
             "{\"ph\":\"e\",\"cat\":\"io\",\"name\":\"read\",\"id\":\"0x1f\",\"pid\":1,\"tid\":1,"
             "\"ts\":9},"
             "{\"ph\":\"n\",\"cat\":\"io\",\"name\":\"mark\",\"id2\":{\"local\":7},\"pid\":1,"
             "\"tid\":1,\"ts\":3},"
             "{\"ph\":\"S\",\"name\":\"old\",\"id\":8,\"pid\":1,\"tid\":1,\"ts\":1},"
             "{\"ph\":\"F\",\"name\":\"old\",\"id\":8,\"pid\":1,\"tid\":1,\"ts\":4},"
             "{\"ph\":\"I\",\"name\":\"I\",\"pid\":1,\"tid\":1,\"ts\":4},"
             "{\"ph\":\"R\",\"name\":\"R\",\"pid\":1,\"tid\":1,\"ts\":4},"
             "{\"ph\":\"P\",\"name\":\"P\",\"pid\":1,\"tid\":1,\"ts\":4},"
             "{\"ph\":\"v\",\"name\":\"v\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":4,"
             "\"args\":{\"dumps\":{}}},"
             "{\"ph\":\"C\",\"name\":\"free\",\"id\":2,\"pid\":1,\"ts\":4,\"args\":{\"\":5.25}}]");
    const struct rp_trace *t = import.trace;

    UNUSED_STATE(state);
    assert_true(t->ev.flags[find(t, "read")] & RP_EVENT_ASYNC);
    assert_true(t->ev.flags[find(t, "mark")] & RP_EVENT_ASYNC);
    assert_int_equal(t->ev.kind[find(t, "mark")], RP_KIND_INSTANT);
    assert_int_equal(t->ev.kind[find(t, "I")], RP_KIND_INSTANT);
    assert_int_equal(t->ev.kind[find(t, "R")], RP_KIND_INSTANT);
    assert_int_equal(t->ev.kind[find(t, "P")], RP_KIND_OTHER);
    assert_int_equal(t->ev.kind[find(t, "v")], RP_KIND_OTHER);
    assert_arg(t, find(t, "free"), "", "f 5.25");
    assert_int_equal(t->health.events, 10);
    rp_import_release(&import);
}

/* -------------------------------------------------------------------------- fields */

/* Keys in any order and any spelling; the last of two wins. */
static void test_keys(void **state)
{
    struct rp_import import =
        load("{\"traceEvents\":[{\"args\":{\"a\":1,\"b\":\"x\",\"a\":2.5},\"dur\":4,\"ts\":3,"
             "\"tid\":2,\"pid\":1,\"name\":\"first\",\"n\\u0061me\":\"\\u00e9\\\"t\",\"x\":[{}],"
             "\"cat\":\"kernel\",\"ph\":\"B\",\"ph\":\"X\"},"
             "{\"ph\":\"X\",\"ts\":5,\"dur\":1,\"name\":[1],\"args\":[1,{\"b\":2}],\"pid\":{},"
             "\"cat\":null},"
             "{\"ph\":\"X\",\"ts\":6,\"dur\":1,\"name\":12,\"args\":null,\"pid\":null,"
             "\"tid\":1.5}]}");
    const struct rp_trace *t = import.trace;
    rp_event e = find(t, "\xc3\xa9\"t"), odd = find(t, "12");

    UNUSED_STATE(state);
    assert_int_equal(origin_of(t, e)->phase, 'X');
    assert_int_equal(t->ev.kind[e], RP_KIND_KERNEL);
    assert_int_equal(t->ev.ts_ns[e], 3000);
    assert_arg(t, e, "a", "f 2.5");
    assert_arg(t, e, "b", "s x");
    assert_int_equal(rp_args_count(&t->args, t->ev.shape[e], t->ev.arg_row[e]), 2);
    assert_int_equal(t->health.duplicate_keys, 3);
    assert_str(t, t->tracks[t->ev.track[odd]].text, "1.5");
    assert_int_equal(origin_of(t, find(t, ""))->has_category, 0);
    assert_int_equal(t->health.events, 3);
    rp_import_release(&import);
}

static void test_times(void **state)
{
    struct rp_import import =
        load("[{\"ph\":\"X\",\"name\":\"round\",\"ts\":1.0005,\"dur\":0.0015},"
             "{\"ph\":\"X\",\"name\":\"text\",\"ts\":\"7.25\",\"dur\":\"2\"},"
             "{\"ph\":\"X\",\"name\":\"huge\",\"ts\":1e300,\"dur\":1},"
             "{\"ph\":\"X\",\"name\":\"nan\",\"ts\":NaN,\"dur\":Infinity},"
             "{\"ph\":\"X\",\"name\":\"back\",\"ts\":9,\"dur\":-5},"
             "{\"ph\":\"X\",\"name\":\"long\",\"ts\":9,\"dur\":700000000000},"
             "{\"ph\":\"X\",\"name\":\"nodur\",\"ts\":9},"
             "{\"ph\":\"X\",\"name\":\"nots\",\"dur\":9},"
             "{\"ph\":\"X\",\"name\":\"null\",\"ts\":null,\"dur\":null},"
             "{\"ph\":\"M\",\"name\":\"meta\"},"
             "{\"ph\":\"X\",\"name\":\"a week is not absurd\",\"ts\":9,\"dur\":604800000000},"
             "{\"ph\":\"X\",\"name\":\"exp\",\"ts\":1.5e3,\"dur\":25e-1}]");
    const struct rp_trace *t = import.trace;
    const struct rp_health *h = &t->health;

    UNUSED_STATE(state);
    assert_int_equal(t->ev.ts_ns[find(t, "round")], 1000); /* half to even */
    assert_int_equal(t->ev.dur_ns[find(t, "round")], 2);
    assert_true(t->ev.flags[find(t, "round")] & RP_EVENT_ROUNDED);
    assert_int_equal(t->ev.ts_ns[find(t, "text")], 7250);
    assert_int_equal(t->ev.dur_ns[find(t, "text")], 2000);
    assert_int_equal(t->ev.ts_ns[find(t, "huge")], RP_TIME_MAX_NS - 1);
    assert_int_equal(t->ev.ts_ns[find(t, "nan")], RP_NO_TS);
    assert_int_equal(t->ev.dur_ns[find(t, "nodur")], RP_OPEN_NS);
    assert_true(t->ev.flags[find(t, "nodur")] & RP_EVENT_NO_DUR);
    assert_int_equal(t->ev.ts_ns[find(t, "meta")], RP_NO_TS);
    assert_int_equal(t->ev.ts_ns[find(t, "exp")], 1500000);
    assert_int_equal(t->ev.dur_ns[find(t, "exp")], 2500);
    assert_int_equal(h->non_int_ts, 1);
    assert_int_equal(h->rounded_time, 2);
    assert_int_equal(h->huge_time, 1);
    assert_int_equal(h->bad_time, 2);
    assert_int_equal(h->negative_dur, 1);
    assert_int_equal(h->absurd_dur, 1);
    assert_true(h->missing_dur >= 2);
    assert_true(h->missing_ts >= 2);
    rp_import_release(&import);
}

static void test_ids(void **state)
{
    struct rp_import import = load(
        "[{\"ph\":\"s\",\"name\":\"a\",\"cat\":\"c\",\"id\":7,\"ts\":1},"
        "{\"ph\":\"f\",\"name\":\"a\",\"cat\":\"c\",\"id\":\"7\",\"ts\":2},"
        "{\"ph\":\"s\",\"name\":\"b\",\"cat\":\"c\",\"id\":\"0x7\",\"ts\":3},"
        "{\"ph\":\"s\",\"name\":\"b\",\"cat\":\"c\",\"ts\":4},"
        "{\"ph\":\"s\",\"name\":\"b\",\"cat\":\"c\",\"id\":99999999999999999999,\"ts\":5},"
        "{\"ph\":\"s\",\"name\":\"b\",\"cat\":\"c\",\"id\":\"007\",\"ts\":6},"
        "{\"ph\":\"X\",\"name\":\"w\",\"ts\":6,\"dur\":1,\"pid\":-1,\"tid\":9223372036854775807}"
        "]");
    const struct rp_trace *t = import.trace;

    UNUSED_STATE(state);
    assert_int_equal(t->flows.n, 6);
    assert_int_equal(t->flows.id[0], 7);
    assert_int_equal(t->flows.id[1], 7);
    assert_int_equal(t->flows.flags[2], RP_FLOW_ID_TEXT);
    assert_str(t, (rp_str)t->flows.id[2], "0x7");
    assert_int_equal(t->flows.flags[3], RP_FLOW_NO_ID);
    assert_str(t, (rp_str)t->flows.id[4], "99999999999999999999");
    assert_str(t, (rp_str)t->flows.id[5], "007");
    assert_int_equal(t->tracks[t->ev.track[0]].native_id, INT64_MAX);
    assert_int_equal(t->processes[t->tracks[t->ev.track[0]].process].native_id, -1);
    rp_import_release(&import);
}

/* -------------------------------------------------------------------------- header */

static void test_header(void **state)
{
    struct rp_import import =
        load("\xef\xbb\xbf { \"traceEvents\" : [ ] , \"tr\\u0061ce\" : { \"a\" : [ ] , \"b\" : "
             "\"x\\\"{\" } , \"rank\" : 5, \"torch_version\":\"2.11\", \"schemaVersion\":1,"
             "\"lost_events\": 12, \"baseTimeNanoseconds\": 99999999999999999999,"
             "\"deviceProperties\": [3, {\"name\": \"\\u0041\"}], \"distributedInfo\": []}");
    const struct rp_trace *t = import.trace;

    UNUSED_STATE(state);
    assert_int_equal(t->ev.n, 0);
    assert_str(t, t->meta[0].key, "trace");
    assert_str(t, t->meta[0].value, "{\"a\":[],\"b\":\"x\\\"{\"}");
    assert_int_equal(t->meta[0].after_events, 1);
    assert_int_equal(t->rank, 5);
    assert_str(t, t->framework, "pytorch");
    assert_str(t, t->framework_version, "2.11");
    assert_int_equal(t->health.lost_events, 12);
    assert_int_equal(t->has_base, 0);
    assert_int_equal(t->ndevices, 1);
    assert_str(t, t->devices[0].name, "A");
    rp_import_release(&import);
}

static void test_bytes(void **state)
{
    struct rp_import import = load("[{\"ph\":\"X\",\"name\":\"a\xff\",\"ts\":1,\"dur\":1},"
                                   "{\"ph\":\"X\",\"name\":\"a\xff\",\"ts\":1,\"dur\":1},"
                                   "{\"ph\":\"X\",\"name\":\"b\x01\x02\",\"ts\":1,\"dur\":1},"
                                   "{\"ph\":\"X\",\"name\":\"\xe4\xbd\xa0\",\"ts\":1,\"dur\":1,"
                                   "\"args\":{\"k\":\"\xed\xa0\x80\"}},7,\"x\",[],null,{\"a\":1}]");
    const struct rp_trace *t = import.trace;

    UNUSED_STATE(state);
    assert_int_equal(t->health.bad_utf8, 2);
    assert_int_equal(t->health.control_bytes, 2);
    assert_int_equal(t->health.skipped_events, 5);
    assert_int_equal(t->ev.n, 4);
    rp_import_release(&import);
}

static void test_base_time(void **state)
{
    static const struct {
        const char *text;
        bool has;
        int64_t ns;
    } cases[] = {{"1.5e18", true, 1500000000000000000},
                 {"1790857026000000001", true, 1790857026000000001},
                 {"\"17\"", true, 17},
                 {"1e30", false, 0},
                 {"\"x\"", false, 0},
                 {"null", false, 0}};
    char text[200];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rp_import import;

        snprintf(text, sizeof text,
                 "{\"traceEvents\":[{\"ph\":\"i\",\"ts\":1}],\"baseTimeNanoseconds\":%s}",
                 cases[i].text);
        import = load(text);
        assert_int_equal(import.trace->has_base, cases[i].has);
        assert_int_equal(import.trace->base_ns, cases[i].ns);
        rp_import_release(&import);
    }
}

/* Ids of "local" belong to their process, those of "global" do not. */
static void test_local_ids(void **state)
{
    struct rp_import import = load(
        "[{\"ph\":\"b\",\"cat\":\"c\",\"name\":\"a\",\"id2\":{\"local\":\"0x1\"},\"pid\":1,\"ts\":1},"
        "{\"ph\":\"b\",\"cat\":\"c\",\"name\":\"a\",\"id2\":{\"local\":\"0x1\"},\"pid\":2,\"ts\":2},"
        "{\"ph\":\"e\",\"cat\":\"c\",\"name\":\"a\",\"id2\":{\"local\":\"0x1\"},\"pid\":1,\"ts\":5},"
        "{\"ph\":\"e\",\"cat\":\"c\",\"name\":\"a\",\"id2\":{\"local\":\"0x1\"},\"pid\":2,\"ts\":9},"
        "{\"ph\":\"b\",\"cat\":\"c\",\"name\":\"g\",\"id2\":{\"global\":\"0x1\"},\"pid\":1,\"ts\":3},"
        "{\"ph\":\"e\",\"cat\":\"c\",\"name\":\"g\",\"id2\":{\"global\":\"0x1\"},\"pid\":2,\"ts\":4}]");
    const struct rp_trace *t = import.trace;
    rp_event one = find_nth(t, "a", 0), two = find_nth(t, "a", 1), global = find(t, "g");

    UNUSED_STATE(state);
    assert_int_equal(t->ev.n, 3);
    assert_int_equal(t->ev.dur_ns[one], 4000);
    assert_int_equal(t->ev.dur_ns[two], 7000);
    assert_int_equal(t->ev.dur_ns[global], 1000);
    assert_int_not_equal(t->ev.link[one], t->ev.link[two]);
    assert_int_not_equal(t->ev.link[one], t->ev.link[global]);
    assert_str(t, (rp_str)t->links.native_id[t->ev.link[two]], "local:2:0x1");
    rp_import_release(&import);
}

/* rocprof's first version: processes say what events are, and their numbers are texts in events. */
static void rocprof_of_version_1(void **state)
{
    struct rp_import in = load(
        "{\"traceEvents\": [{},"
        "{\"args\":{\"name\":\"CPU HIP API\"},\"ph\":\"M\",\"pid\":2,\"name\":\"process_name\"},"
        "{\"args\":{\"name\":\"COPY\"},\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\"},"
        "{\"args\":{\"name\":\"GPU0\"},\"ph\":\"M\",\"pid\":6,\"name\":\"process_name\"},"
        "{\"ph\":\"X\",\"name\":\"hipMemcpyAsync\",\"pid\":\"2\",\"tid\":\"5\",\"ts\":\"1\",\"dur\":\"9\"},"
        "{\"ph\":\"X\",\"name\":\"CopyHostToDevice\",\"pid\":\"1\",\"tid\":\"1\",\"ts\":\"3\",\"dur\":\"20\"},"
        "{\"ph\":\"X\",\"name\":\"step\",\"pid\":\"6\",\"tid\":\"1\",\"ts\":\"30\",\"dur\":\"100\"}],"
        "\"otherData\":{\"Agent0.MarketingName\":\"AMDEPYC\",\"Agent3.MarketingName\":"
        "\"AMDInstinctMI210\"}}");
    const struct rp_trace *t = in.trace;
    rp_event copy = find(t, "CopyHostToDevice"), kernel = find(t, "step");

    UNUSED_STATE(state);
    assert_int_equal(t->ev.kind[find(t, "hipMemcpyAsync")], RP_KIND_RUNTIME);
    assert_int_equal(t->ev.kind[copy], RP_KIND_MEMCPY);
    assert_int_equal(t->ev.kind[kernel], RP_KIND_KERNEL);
    assert_int_equal(t->tracks[t->ev.track[copy]].process,
                     t->tracks[t->ev.track[kernel]].process); /* of one device */
    assert_int_not_equal(t->ev.track[copy], t->ev.track[kernel]);
    assert_int_equal(t->totals.gpu_busy_ns, 120000);
    assert_string_equal(rp_trace_str(t, t->framework), "rocprof");
    assert_int_equal(t->ndevices, 1);
    assert_string_equal(rp_trace_str(t, t->devices[0].name), "AMD Instinct MI210");
    rp_import_release(&in);
}

int test_chrome(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rocprof_of_version_1), cmocka_unit_test(test_local_ids),
        cmocka_unit_test(test_base_time),       cmocka_unit_test(test_kineto_header),
        cmocka_unit_test(test_kineto_events),   cmocka_unit_test(test_kineto_identities),
        cmocka_unit_test(test_kineto_2021),     cmocka_unit_test(test_xprof),
        cmocka_unit_test(test_timeline),        cmocka_unit_test(test_horovod),
        cmocka_unit_test(test_phases),          cmocka_unit_test(test_keys),
        cmocka_unit_test(test_times),           cmocka_unit_test(test_ids),
        cmocka_unit_test(test_header),          cmocka_unit_test(test_bytes),
    };

    return cmocka_run_group_tests_name("chrome", tests, NULL, NULL);
}
