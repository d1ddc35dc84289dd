/* SPDX-License-Identifier: Apache-2.0 */
/* Turns between host and device; which work is the same; names of XLA. */
#include "facts/work/attribution.h"
#include "facts/work/tokens.h"
#include "facts/work/turns.h"
#include "facts/xla_names.h"
#include "trace/trace_fixtures.h"

#define TO_HOST   "Memcpy DtoH (Device -> Pageable)"
#define TO_DEVICE "Memcpy HtoD (Pageable -> Device)"

/* The turns of a copy to the host, what the host does, and a copy to the device. */
static size_t turns_of(const struct row *rows, size_t n, struct rp_turn *first, int64_t *call_ns)
{
    struct rp_trace *t = trace_of(rows, n);
    rp_turn_vec turns = {0};
    struct rp_work w;

    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_work_turns(&w, &turns, NULL), RP_OK);
    n = turns.n;
    if (n) {
        *first = turns.at[0];
        *call_ns = t->ev.ts_ns[turns.at[0].call];
    }
    rp_vec_release(&turns);
    rp_work_release(&w);
    rp_trace_free(t);
    return n;
}

static void a_turn_reads_waits_and_uploads(void **state)
{
    const struct row turn[] = {
        {'X', "cuda_runtime", "cudaMemcpyAsync", 1, 1, 100, 4, 1},
        {'X', "cuda_runtime", "cudaStreamSynchronize", 1, 1, 110, 10},
        {'X', "cuda_runtime", "cudaMemcpyAsync", 1, 1, 300, 4, 2},
        {'X', "gpu_memcpy", TO_HOST, 0, 7, 105, 10, 1, 7},
        {'X', "gpu_memcpy", TO_DEVICE, 0, 7, 310, 20, 2, 7},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 200, 4, 3},
    };
    struct rp_turn first;
    struct row rows[7];
    int64_t call_ns;

    UNUSED_STATE(state);
    assert_int_equal(turns_of(turn, 6, &first, &call_ns), 1);
    assert_int_equal(first.read_ns, 115);
    assert_int_equal(first.upload_ns, 310);
    assert_int_equal(call_ns, 100);
    for (int k = 0; k < 10; k++) {
        size_t n = 6, wanted = 0;

        memcpy(rows, turn, sizeof turn);
        switch (k) {
        case 0: /* the call that copies waits itself */
            rows[0].name = "cudaMemcpy";
            rows[1].ts = 90;
            wanted = 1;
            break;
        case 1: /* it does not wait */
            rows[1].name = "cudaGetDevice";
            break;
        case 2: /* it waited before */
            rows[1].ts = 80;
            break;
        case 3: /* it waits later */
            rows[1].ts = 310;
            break;
        case 4: /* another thread waits */
            rows[1].tid = 2;
            break;
        case 5: /* another thread uploads */
            rows[2].tid = 2;
            break;
        case 6: /* what waits is no call of the runtime */
            rows[1].category = "cpu_op";
            break;
        case 7: /* the device computes in between */
            rows[n++] = (struct row){'X', "kernel", "gemm", 0, 7, 250, 20, 3, 7};
            break;
        case 8: /* it is not known which call read */
            rows[0].corr = 9;
            break;
        default: /* both are read */
            rows[4].name = TO_HOST;
        }
        if (turns_of(rows, n, &first, &call_ns) != wanted)
            fail_msg("case %d", k);
    }
}

/* What tells two launches of a kernel apart: its name, each of its arguments, and the shapes of its
   operator. */
static void work_is_the_same_with_the_same_arguments(void **state)
{
    static const struct row rows[] = {
        {'X', "kernel", "gemm", 0, 7, 10, 5, 0, 7},
        {'X', "kernel", "relu", 0, 7, 20, 5, 0, 7},
        {'X', "kernel", "gemm", 0, 7, 30, 5, 0, 7, 0, "grid", 4},
        {'X', "kernel", "gemm", 0, 7, 40, 5, 0, 7, 0, "grid", 5},
        {'X', "kernel", "gemm", 0, 7, 50, 5, 0, 7, 0, "grid", 4, 0, NULL, NULL, "block", 8},
        {'X', "kernel", "gemm", 0, 7, 60, 5, 0, 7, 0, "bytes", 64},
        {'X', "kernel", "gemm", 0, 7, 70, 5, 0, 7, 0, NULL, 0, 0, "grid", "[4,1,1]"},
        {'X', "kernel", "gemm", 0, 7, 80, 9, 0, 7, 0, "grid", 4}, /* as the third */
        {'X', "cpu_op", "aten::mm", 1, 1, 0, 9, 0, 0, 0, NULL, 0, 0, "Input Dims", "[[2]]"},
        {'X', "cpu_op", "aten::mm", 1, 1, 10, 9, 0, 0, 0, NULL, 0, 0, "Input Dims", "[[3]]"},
        {'X', "cpu_op", "aten::mm", 1, 1, 20, 9, 0, 0, 0, NULL, 0, 0, "Input Dims", "[[2]]"},
        {'X', "cpu_op", "aten::mm", 1, 1, 30, 9},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_work_tokens tokens;
    uint64_t item[8], of[12];
    struct rp_work w;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_work_tokens_init(&tokens, t, NULL), RP_OK);
    assert_int_equal(w.items.n, 8);
    for (size_t i = 0; i < 8; i++) {
        item[i] = rp_work_token(&tokens, &w.items.at[i], RP_NONE);
        for (size_t k = 0; k < i; k++)
            assert_int_equal(item[i] == item[k], i == 7 && k == 2);
    }
    for (int i = 8; i < 12; i++)
        of[i] = rp_work_token(&tokens, &w.items.at[0], event_n(t, i));
    assert_true(of[8] == of[10] && of[8] != of[9] && of[8] != item[0]);
    assert_true(of[11] == item[0]);
    rp_work_tokens_release(&tokens);
    rp_work_release(&w);
    rp_trace_free(t);
}

static void names_of_xla(void **state)
{
    static const struct row rows[] = {
        {'X', "kernel", "fused", 0, 7, 10, 5, 0, 7, 0, NULL, 0, 0, "hlo_op", "loop_add_fusion.2"},
        {'X', "kernel", "node", 0, 7, 20, 5, 0, 7, 0, NULL, 0, 0, "hlo_op", "command_buffer.1"},
        {'X', "kernel", "own", 0, 7, 30, 5, 0, 7},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_arg_key hlo_op;

    UNUSED_STATE(state);
    assert_true(rp_xla_is_graph("command_buffer.1"));
    assert_false(rp_xla_is_graph("a command_buffer"));
    assert_code(rp_arg_key_init(&hlo_op, t, "hlo_op", NULL), RP_OK);
    assert_string_equal(rp_trace_str(t, rp_xla_instruction(&hlo_op, event_n(t, 0))),
                        "loop_add_fusion.2");
    assert_string_equal(rp_trace_str(t, rp_xla_instruction(&hlo_op, event_n(t, 1))), "node");
    assert_string_equal(rp_trace_str(t, rp_xla_instruction(&hlo_op, event_n(t, 2))), "own");
    rp_arg_key_release(&hlo_op);
    rp_trace_free(t);
    assert_true(rp_xla_is_backward("jit(f)/transpose(jvp(g))/mul"));
    assert_false(rp_xla_is_forward("jit(f)/transpose(jvp(g))/mul"));
    assert_true(rp_xla_is_forward("jit(f)/jvp(g)/mul"));
    assert_false(rp_xla_is_backward("jit(f)/jvp(g)/mul"));
    assert_false(rp_xla_is_forward("jit(f)/mul"));
    assert_int_equal(rp_kernel_name_len("gemm.kd", 7), 4);
    assert_int_equal(rp_kernel_name_len("gemm.kt", 7), 7);
    assert_int_equal(rp_kernel_name_len("g.kd", 4), 1);
    assert_int_equal(rp_kernel_name_len(".kd", 3), 3);
}

/* The phase and the names of work that XLA launched. */
static void work_of_xla_has_a_phase(void **state)
{
    static const struct {
        const char *tf_op, *hlo_op;
        enum rp_phase phase;
    } cases[] = {{"jit(f)/transpose(jvp(g))/mul", "mul.1", RP_PHASE_BACKWARD},
                 {"jit(f)/jvp(g)/mul", "mul.2", RP_PHASE_FORWARD},
                 {"gradients/add", NULL, RP_PHASE_BACKWARD},
                 {"gradient_tape/model/add", NULL, RP_PHASE_BACKWARD},
                 {"XlaModule:", "mul.3", RP_PHASE_OTHER}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct row rows[] = {{'X', "kernel", "k", 0, 7, 10, 5, 0, 7, 0, NULL, 0, 0, "tf_op",
                                    cases[i].tf_op, NULL, 0, cases[i].hlo_op ? "hlo_op" : NULL,
                                    cases[i].hlo_op}};
        struct rp_trace *t = TRACE_OF(rows);
        struct rp_attribution a;
        struct rp_work w;

        assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
        assert_code(rp_attribution_init(&a, &w, NULL), RP_OK);
        assert_int_equal(a.owners.at[0].phase, cases[i].phase);
        assert_string_equal(rp_trace_str(t, a.owners.at[0].hlo_op),
                            cases[i].hlo_op ? cases[i].hlo_op : "");
        assert_int_equal(a.coverage.op_ns, cases[i].hlo_op ? 5 : 0);
        assert_int_equal(a.coverage.module_ns, 0);
        assert_int_equal(a.coverage.launched_ns, 0);
        rp_attribution_release(&a);
        rp_work_release(&w);
        rp_trace_free(t);
    }
}

int test_turns(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_reads_waits_and_uploads),
        cmocka_unit_test(work_is_the_same_with_the_same_arguments),
        cmocka_unit_test(names_of_xla),
        cmocka_unit_test(work_of_xla_has_a_phase),
    };

    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
