/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors between processes: who made them, and when they could leave. */
#include "facts/ranks/tensor_transfers.h"
#include "formats/formats.h"
#include "unit.h"

#define PROCESS(pid, name) \
    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" #pid ",\"args\":{\"name\":\"" name "\"}},\n"
#define NODE(pid, ts, dur, name)                                                          \
    "{\"ph\":\"X\",\"cat\":\"Op\",\"name\":\"op\",\"pid\":" #pid ",\"tid\":0,\"ts\":" #ts \
    ",\"dur\":" #dur ",\"args\":{\"name\":\"" name "\"}},\n"
#define RECEIVE(ts, dur, edge, from)                                                       \
    "{\"ph\":\"X\",\"cat\":\"Op\",\"name\":\"RecvTensor\",\"pid\":3,\"tid\":0,\"ts\":" #ts \
    ",\"dur\":" #dur ",\"args\":{\"edge\":\"" edge "\",\"from\":\"" from                   \
    "\",\"to\":\"/job:worker\",\"output_bytes\":640}},\n"

/* Times in microseconds. "/job:ps" is process 2 and no beginning of it; v ran there three times. */
static const char recording[] = "{\"traceEvents\":[\n" PROCESS(1, "/job:ps1 Compute")
    PROCESS(2, "/job:ps Compute") PROCESS(3, "/job:worker Compute") NODE(1, 0, 5, "v")
        NODE(2, 10, 5, "v") NODE(2, 40, 6, "v") NODE(2, 90, 7, "v") NODE(2, 50, 100, "late")
            RECEIVE(60, 20, "edge_14_v", "/job:ps") RECEIVE(41, 5, "edge_7_v", "/job:ps")
                RECEIVE(42, 3, "edge_8_v", "/job:ps") RECEIVE(43, 9, "edge_9_late", "/job:ps")
                    RECEIVE(44, 9, "edge_10_w", "/job:ps") RECEIVE(45, 9, "edge_v", "/job:ps")
                        RECEIVE(46, 9, "v", "/job:ps") RECEIVE(47, 9, "edge_11_v", "/job:p")
                            RECEIVE(48, 9, "edge_11v", "/job:ps")
                                RECEIVE(49, 9, "edge_12_v", "/job:ps1") "{}]}";

static void producers_are_those_that_ended_in_time(void **state)
{
    /* by begin: end of the receive, end of the producer (-1: not recorded), process */
    static const struct {
        int64_t begin_us, end_us, ready_us, process;
    } want[] = {
        {41, 46, 46, 1},  {42, 45, 15, 1}, /* the second run ends at 46: too late for this one */
        {43, 52, 150, 1},                  /* it ran once, so it was this run */
        {44, 53, -1, 1},  {45, 54, -1, 1}, {46, 55, -1, 1}, {47, 56, -1, -1},
        {48, 57, -1, 1},  {49, 58, 5, 0},  {60, 80, 46, 1},
    };
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_err err = RP_ERR_INIT;
    rp_tensor_transfer_vec list = {0};
    struct rp_input *in;

    UNUSED_STATE(state);
    assert_ok(rp_input_open_memory("t.json", recording, strlen(recording), NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, &import, &err), &err);
    assert_ok(rp_tensor_transfers_find(import.trace, &list, &err), &err);
    assert_int_equal(list.n, sizeof want / sizeof *want);
    for (size_t i = 0; i < list.n; i++) {
        const struct rp_tensor_transfer *x = &list.at[i];

        assert_int_equal(x->begin_ns, want[i].begin_us * 1000);
        assert_int_equal(x->end_ns, want[i].end_us * 1000);
        assert_int_equal(x->ready_ns, want[i].ready_us < 0 ? RP_NO_TS : want[i].ready_us * 1000);
        assert_int_equal(x->producer == RP_NONE, want[i].ready_us < 0);
        assert_int_equal(x->from_process == RP_NONE ? -1 : (int64_t)x->from_process,
                         want[i].process);
        assert_int_equal(x->to_process, 2);
        assert_int_equal(x->bytes, 640);
        assert_string_equal(rp_trace_str(import.trace, x->to), "/job:worker");
    }
    rp_vec_release(&list);
    rp_import_release(&import);
}

int test_tensor_transfers(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(producers_are_those_that_ended_in_time),
    };

    return cmocka_run_group_tests_name("tensor transfers", tests, NULL, NULL);
}
