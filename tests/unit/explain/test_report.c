/* SPDX-License-Identifier: Apache-2.0 */
/* The report of ranks that meet in collectives: who sets the pace, and what it costs. */
#include "explain/ask_fixture.h"
#include "explain/report/report.h"
#include "trace/trace_fixtures.h"

#include <math.h>

extern const struct rp_question_row rp_ask_report;

#define MS 1000000

/* A rank that computes for `work` ms, then meets the others in a collective that ends at 40 ms, and
   ends at 60. */
static struct rp_trace *rank_of(int64_t work)
{
    const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#3", 1, 1, 0, 60 * MS},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4000, 5},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 5000, 4000, 6},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 10000, 4000, 7},
        {'X', "kernel", "gemm", 0, 7, 10000, work * MS, 5, 7},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, 15000 + work * MS, (40 - work) * MS, 6,
         20},
        {'X', "kernel", "softmax", 0, 7, 15000 + 40 * MS, 20 * MS, 7, 7},
    };

    return TRACE_OF(rows);
}

struct fixture {
    struct rp_arena arena;
    struct rp_trace *traces[3];
    struct rp_report_part parts[3];
    struct rp_rank_part in[3];
    struct rp_ranks ranks;
};

static void set_up(struct fixture *f, const int64_t *work)
{
    int r;

    *f = (struct fixture){.ranks = {.n = 3, .world_size = 3}};
    f->ranks.parts = f->in;
    for (r = 0; r < 3; r++) {
        f->traces[r] = rank_of(work[r]);
        assert_code(rp_report_rank(f->traces[r], NULL, NULL, &f->arena, &f->parts[r], NULL), RP_OK);
        f->in[r] = (struct rp_rank_part){.data = &f->parts[r], .number = r};
    }
}

static void tear_down(struct fixture *f)
{
    int r;

    for (r = 0; r < 3; r++) {
        rp_report_part_release(&f->parts[r]);
        rp_trace_free(f->traces[r]);
    }
    rp_arena_release(&f->arena);
}

static void the_last_rank_sets_the_pace(void **state)
{
    const int64_t work[] = {10, 30, 12};
    struct rp_chain chain;
    struct fixture f;

    UNUSED_STATE(state);
    set_up(&f, work);
    assert_code(rp_chain_make(&f.ranks, &f.arena, &chain, NULL), RP_OK);
    assert_int_equal(chain.ncollectives, 1);
    assert_int_equal(chain.margin_ns, 18 * MS);
    assert_int_equal(chain.ranks[1].last_count, 1);
    assert_int_equal(chain.ranks[0].wait_ns, 20 * MS);
    assert_int_equal(chain.ranks[0].transfer_ns, 10 * MS);
    assert_int_equal(chain.ranks[0].exposed_wait_ns, 20 * MS);
    assert_int_equal(chain.transfer_ns, 10 * MS);
    tear_down(&f);
}

static void findings_are_ranked_and_parts_add_up(void **state)
{
    const int64_t work[] = {10, 30, 12};
    struct rp_trace *t[] = {rank_of(work[0]), rank_of(work[1]), rank_of(work[2])};
    struct rp_result *result = ask_traces(&rp_ask_report, t, 3, NULL, 0);
    const struct rp_report_root *root = result->root;
    int64_t sum = 0, spans = 0;
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < 3; i++)
        rp_trace_free(t[i]); /* the answer must not need it */
    assert_int_equal(root->nranks, 3);
    assert_int_equal(root->ranks[1].compute_ns, 50 * MS);
    assert_int_equal(root->ranks[1].exposed_comm_ns, 10 * MS);
    assert_int_equal(root->nsteps, 3);
    for (i = 0; i < root->nparts; i++)
        sum += root->parts[i].total_ns;
    for (i = 0; i < root->nranks; i++)
        spans += root->ranks[i].span_ns;
    assert_int_equal(sum, spans);
    assert_int_equal(root->span_ns, spans / 3);
    assert_int_equal(root->needed_ns + root->lost_ns, root->span_ns);
    assert_true(root->nfindings >= 2);
    assert_string_equal(root->findings[0].id, "straggler");
    assert_int_equal(root->findings[0].lost_ns, 18 * MS);
    assert_contains(root->findings[0].evidence[0],
                    "rank 1 took 3.0 times as long as its peers for the same work, mostly gemm");
    assert_string_equal(root->findings[0].who.kind, "rank");
    assert_int_equal(root->findings[0].who.nranks, 1);
    assert_int_equal(root->findings[0].who.ranks[0], 1);
    assert_null(root->findings[1].who.kind);
    assert_contains(root->findings[0].hint, "give the ranks equal work");
    assert_string_equal(root->findings[1].id, "exposed-comm");
    rp_result_free(result);
}

/* Rank 1's clock is 0.9 s ahead; it arrives last all the same. */
static void clocks_that_differ_are_aligned(void **state)
{
    const int64_t work[] = {10, 30, 12};
    struct rp_chain chain;
    struct fixture f;

    UNUSED_STATE(state);
    set_up(&f, work);
    f.parts[1].collectives.base_ns = 900 * (int64_t)MS;
    assert_code(rp_chain_make(&f.ranks, &f.arena, &chain, NULL), RP_OK);
    assert_true(chain.clocks_differ);
    assert_false(chain.contradict);
    assert_int_equal(chain.ncollectives, 1);
    assert_int_equal(chain.ranks[1].last_count, 1);
    assert_int_equal(chain.ranks[1].margin_ns, 0); /* one collective: nothing says how certain */
    tear_down(&f);
}

static void a_host_only_trace_gets_a_report(void **state)
{
    static const struct row rows[] = {
        {'X', "cpu_op", "a", 1, 1, 0, 10},
        {'X', "cpu_op", "b", 1, 2, 5, 10},
        {'X', "cpu_op", "c", 1, 1, 30, 10},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->ranks[0].window_ns, 40);
    assert_int_equal(root->ranks[0].busy_ns, 25);
    assert_int_equal(root->ranks[0].idle_ns, 15);
    assert_contains(root->run_text, "host only");
    rp_result_free(result);
    rp_trace_free(t);
}

/* Rank 0 computes beside a collective for 20 ms, but the other one comes after 18 of them. */
static void an_overlap_may_be_a_wait(void **state)
{
    static const struct row early[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4000, 5},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 5000, 4000, 6},
        {'X', "kernel", "gemm", 0, 7, MS, 25 * MS, 5, 7},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, 2 * MS, 20 * MS, 6, 20}};
    static const struct row late[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4000, 5},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 5000, 4000, 6},
        {'X', "kernel", "gemm", 0, 7, MS, 19 * MS, 5, 7},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, 20 * MS, 2 * MS, 6, 20}};
    struct rp_trace *t[] = {TRACE_OF(early), TRACE_OF(late)};
    struct rp_result *result = ask_traces(&rp_ask_report, t, 2, NULL, 0);
    const struct rp_report_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->npitfalls, 1);
    assert_contains(root->pitfalls[0], "rank 0: of the 20.0 ms of communication that overlaps "
                                       "with compute, 18.0 ms is waiting for other ranks");
    assert_contains(root->pace_text, "1 collective synchronizes the ranks, 20.0 ms from the first");
    rp_result_free(result);
    rp_trace_free(t[0]);
    rp_trace_free(t[1]);
}

/* A rank whose host runs `span` for `busy` ms before its only collective, which ends at 40 ms. */
static struct rp_trace *rank_behind(const char *span, int64_t busy)
{
    const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#3", 1, 1, 0, 40 * MS},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4000, 5},
        {'X', "user_annotation", span, 1, 1, 10000, busy * MS},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 12000 + busy * MS, 4000, 6},
        {'X', "kernel", "gemm", 0, 7, 10000, MS, 5, 7},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, 20000 + busy * MS, (40 - busy) * MS, 6,
         20},
    };

    return TRACE_OF(rows);
}

static struct rp_result *report_with_late_rank(const char *span)
{
    struct rp_trace *t[] = {rank_behind(span, 2), rank_behind(span, 30), rank_behind(span, 3)};
    struct rp_result *result = ask_traces(&rp_ask_report, t, 3, NULL, 0);
    size_t i;

    for (i = 0; i < 3; i++)
        rp_trace_free(t[i]);
    return result;
}

static const struct rp_report_finding *straggler_of(const struct rp_result *result)
{
    const struct rp_report_root *root = result->root;
    size_t i;

    for (i = 0; i < root->nfindings && strcmp(root->findings[i].id, "straggler") != 0; i++)
        ;
    assert_true(i < root->nfindings);
    return &root->findings[i];
}

/* A rank that multiplies for `ms` and then exchanges so many elements in an all-to-all. */
static struct rp_trace *expert_rank(int64_t ms, int64_t elements)
{
    const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#3", 1, 1, 0, 60 * MS},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4000, 5},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 5000, 4000, 6},
        {'X', "kernel", "grouped_gemm", 0, 7, 10000, ms * MS, 5, 7},
        {'X', "kernel", "ncclDevKernel_SendRecv", 0, 20, 20000 + ms * MS, (50 - ms) * MS, 6, 20, 0,
         "In msg nelems", elements, 0, "Collective name", "all_to_allv", "Out msg nelems", elements,
         "dtype", "Float"},
    };

    return TRACE_OF(rows);
}

static void experts_with_more_tokens(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        struct rp_trace *t[] = {expert_rank(10, 1000), expert_rank(30, k ? 1110 : 1090),
                                expert_rank(12, 1000)};
        struct rp_result *result = ask_traces(&rp_ask_report, t, 3, NULL, 0);
        const struct rp_report_finding *f = straggler_of(result);

        for (size_t i = 0; i < 3; i++)
            rp_trace_free(t[i]);
        assert_contains(f->evidence[0], "rank 1 took 3.0 times as long as its peers");
        assert_int_equal(strstr(f->evidence[0], "all_to_alls have 1.1 times") != NULL, k);
        assert_contains(f->hint, k ? "balance the experts" : "give the ranks equal work");
        rp_result_free(result);
    }
}

/* The evidence names what the late rank ran, and the advice follows from it. */
static void a_straggler_has_a_reason(void **state)
{
    struct rp_result *input = report_with_late_rank("read_shard_from_nfs");
    struct rp_result *other = report_with_late_rank("write_checkpoint");

    UNUSED_STATE(state);
    assert_contains(straggler_of(input)->evidence[0], "mostly read_shard_from_nfs");
    assert_contains(straggler_of(input)->hint, "prepare the next input");
    assert_null(strstr(straggler_of(input)->hint, "clocks and the power"));
    assert_contains(straggler_of(other)->evidence[0], "mostly write_checkpoint");
    assert_contains(straggler_of(other)->hint, "reprise idle --rank N");
    assert_null(strstr(straggler_of(other)->hint, "input"));
    rp_result_free(input);
    rp_result_free(other);
}

/* Collectives of gloo run on threads; matched by name, the waits count once. */
static void collectives_of_the_host_are_matched(void **state)
{
    static const struct row early[] = {
        {'X', "cpu_op", "aten::mm", 1, 1, 0, 10 * MS},
        {'X', "user_annotation", "gloo:all_reduce", 1, 2, 10 * MS, 12 * MS},
        {'X', "cpu_op", "aten::mm", 1, 1, 22 * MS, 5 * MS}};
    static const struct row late[] = {
        {'X', "cpu_op", "aten::mm", 1, 1, 0, 20 * MS},
        {'X', "user_annotation", "gloo:all_reduce", 1, 2, 20 * MS, 2 * MS},
        {'X', "cpu_op", "aten::mm", 1, 1, 22 * MS, 5 * MS}};
    struct rp_trace *t[] = {TRACE_OF(early), TRACE_OF(late)};
    struct rp_result *result = ask_traces(&rp_ask_report, t, 2, NULL, 0);
    const struct rp_report_root *root = result->root;
    size_t i;

    UNUSED_STATE(state);
    assert_int_equal(root->ranks[0].wait_ns, 10 * MS);
    assert_int_equal(root->ranks[0].transfer_ns, 2 * MS);
    assert_int_equal(root->ranks[1].last_count, 1);
    assert_int_equal(root->ranks[1].margin_ns, 10 * MS);
    assert_int_equal(root->collective_span_ns, 12 * MS);
    for (i = 0; i < root->nparts; i++)
        if (!strcmp(root->parts[i].part, "waiting for other ranks"))
            break;
    assert_true(i < root->nparts);
    assert_int_equal(root->parts[i].total_ns, 10 * MS);
    assert_string_equal(root->findings[0].id, "straggler");
    assert_int_equal(root->findings[0].lost_ns, 10 * MS);
    rp_result_free(result);
    rp_trace_free(t[0]);
    rp_trace_free(t[1]);
}

/* A step lasts until the next mark, the last one until its work has ended. */
/* Collectives are recorded in steps without detail, too, where nothing is known to run beside them:
   these are not exposed communication, nor waiting, of the steps that are judged. */
static void steps_without_detail_expose_nothing(void **state)
{
    struct row rows[2][48];
    struct rp_trace *both[2];
    struct rp_result *result;
    const struct rp_report_root *root;
    int64_t exposed = 0, waiting = 0;

    UNUSED_STATE(state);
    for (int r = 0; r < 2; r++) {
        struct row *to = rows[r];

        for (int i = 0; i < 10; i++) {
            int64_t at = 20 * MS * i;

            *to++ = (struct row){
                'X', "user_annotation", "Optimizer.step#SGD.step", 1, 1, at + 19 * MS, MS};
            *to++ = (struct row){'X', "user_annotation",      "gloo:all_reduce", 1,
                                 2,   at + (10 + 2 * r) * MS, (8 - 2 * r) * MS};
            if (i < 6) /* of the transfer 4 ms are beside it, of the wait of rank 0 nothing */
                *to++ = (struct row){'X', "cpu_op", "aten::mm", 1, 1, at, 16 * MS};
            if (i < 6)
                *to++ = (struct row){'X', "cpu_op", "aten::add", 1, 1, at + 18 * MS, MS};
        }
        *to++ = (struct row){'X', "reprise", "without detail", 1, 3, 120 * MS, 80 * MS};
        both[r] = trace_of(rows[r], (size_t)(to - rows[r]));
    }
    result = ASK_TRACES(report, both, 2, {"no-simulate", NULL});
    root = result->root;
    for (size_t i = 0; i < root->nparts; i++) {
        exposed +=
            strcmp(root->parts[i].part, "exposed communication") ? 0 : root->parts[i].mean_ns;
        waiting +=
            strcmp(root->parts[i].part, "waiting for other ranks") ? 0 : root->parts[i].mean_ns;
    }
    assert_int_equal(exposed, 6 * 2 * MS);
    assert_int_equal(waiting, 0);
    assert_string_equal(root->findings[0].id, "exposed-comm");
    assert_int_equal(root->findings[0].lost_ns, 6 * 2 * MS);
    assert_int_equal(root->host_rank_rows[0].wait_ns, 6 * 2 * MS);
    rp_result_free(result);
    rp_trace_free(both[0]);
    rp_trace_free(both[1]);
}

static void the_median_step_is_that_of_all_steps(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#3", 1, 1, 0, 9 * MS},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4000, 5},
        {'X', "user_annotation", "ProfilerStep#4", 1, 1, 10 * MS, 9 * MS},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 10 * MS, 4000, 6},
        {'X', "user_annotation", "ProfilerStep#5", 1, 1, 20 * MS, 9 * MS},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20 * MS, 4000, 7},
        {'X', "kernel", "gemm", 0, 7, 1 * MS, 8 * MS, 5, 7},
        {'X', "kernel", "gemm", 0, 7, 11 * MS, 8 * MS, 6, 7},
        {'X', "kernel", "gemm", 0, 7, 23 * MS, 20 * MS, 7, 7},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nsteps, 3);
    assert_int_equal(root->steps[0].b.window_ns, 10 * MS);
    assert_int_equal(root->steps[1].b.window_ns, 10 * MS);
    assert_int_equal(root->steps[2].b.window_ns, 23 * MS);
    assert_int_equal(root->steps[2].b.idle_ns, 3 * MS);
    assert_int_equal(root->step_ns, 10 * MS);
    assert_string_equal(root->step_text, "10.0 ms, the median of 3 (10.0 ms to 23.0 ms)");
    rp_result_free(result);
    rp_trace_free(t);
}

/* Without device work a step lasts from mark to mark, the last one as long as its mark. */
static void steps_without_a_device_last_from_mark_to_mark(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#3", 1, 1, 0, 9 * MS},
        {'X', "cpu_op", "aten::mm", 1, 1, 0, 8 * MS},
        {'X', "user_annotation", "ProfilerStep#4", 1, 1, 10 * MS, 9 * MS},
        {'X', "cpu_op", "aten::mm", 1, 1, 10 * MS, 8 * MS},
        {'X', "user_annotation", "ProfilerStep#5", 1, 1, 23 * MS, 9 * MS},
        {'X', "cpu_op", "aten::mm", 1, 1, 23 * MS, 8 * MS},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->steps[0].b.window_ns, 10 * MS);
    assert_int_equal(root->steps[1].b.window_ns, 13 * MS);
    assert_int_equal(root->steps[2].b.window_ns, 9 * MS);
    assert_int_equal(root->steps[2].host_ns, 9 * MS);
    assert_string_equal(root->step_text, "10.0 ms, the median of 3 (9.00 ms to 13.0 ms)");
    rp_result_free(result);
    rp_trace_free(t);
}

/* Three decode steps, of which one is slow, and a prefill that takes longer than all of them. */
static void a_server_has_phases(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "step[DECODE bs=4]", 1, 1, 0, 9 * MS},
        {'X', "cpu_op", "aten::mm", 1, 1, 0, 8 * MS},
        {'X', "user_annotation", "step[DECODE bs=4]", 1, 1, 10 * MS, 9 * MS},
        {'X', "user_annotation", "execute_context_2(500)_generation_0(0)", 1, 1, 20 * MS, 99 * MS},
        {'X', "user_annotation", "step[DECODE bs=8]", 1, 1, 120 * MS, 30 * MS},
        {'X', "user_annotation", "step[IDLE]", 1, 1, 150 * MS, 10 * MS},
    };
    struct rp_trace *t = TRACE_OF(rows), *two[] = {t, t};
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    struct rp_result *of_two = ask_traces(&rp_ask_report, two, 2, NULL, 0);
    const struct rp_report_root *root = result->root, *same = of_two->root;
    const struct rp_report_phase *p = root->phases;

    UNUSED_STATE(state);
    assert_int_equal(root->nsteps, 5);
    assert_int_equal(same->nphases, root->nphases);
    for (size_t i = 0; i < root->nphases; i++) { /* means of the ranks */
        assert_int_equal(same->phases[i].steps, p[i].steps);
        assert_int_equal(same->phases[i].total_ns, p[i].total_ns);
        assert_int_equal(same->phases[i].requests, p[i].requests);
        assert_int_equal(same->phases[i].tokens, p[i].tokens);
        assert_int_equal(same->phases[i].unrecorded_ns, p[i].unrecorded_ns);
    }
    rp_result_free(of_two);
    assert_string_equal(root->steps[2].phase, "prefill");
    assert_int_equal(root->steps[2].tokens, 500);
    assert_int_equal(root->nphases, 3);
    assert_string_equal(p[0].phase, "decode");
    assert_int_equal(p[0].steps, 3);
    assert_int_equal(p[0].median_ns, 10 * MS);
    assert_int_equal(p[0].total_ns, 50 * MS);
    assert_int_equal(p[0].requests, 16);
    assert_int_equal(p[0].request_ns, 50 * MS / 16);
    assert_string_equal(p[1].phase, "prefill");
    assert_int_equal(p[1].token_ns, 100 * MS / 500);
    assert_null(p[2].phase);
    assert_int_equal(p[2].requests, RP_ABSENT_I64);
    assert_int_equal(root->npitfalls, 1);
    assert_contains(root->pitfalls[0],
                    "1 of 3 decode steps is not typical: step[DECODE bs=8] takes "
                    "30.0 ms, the median decode step 10.0 ms");
    rp_result_free(result);
    rp_trace_free(t);
}

static void an_empty_trace_gets_a_report(void **state)
{
    static const struct row rows[] = {{'i', "x", "moment", 1, 1, 0, 0}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->ranks[0].window_ns, 0);
    assert_int_equal(root->nfindings, 0);
    assert_true(isnan(root->step_share)); /* there are no steps */
    rp_result_free(result);
    rp_trace_free(t);
}

/* ------------------------------------------------------------------ the span */

static int64_t sum_of_parts(const struct rp_report_root *root)
{
    int64_t sum = 0;
    size_t i;

    for (i = 0; i < root->nparts; i++)
        sum += root->parts[i].total_ns;
    return sum;
}

static const struct rp_report_finding *finding_of(const struct rp_report_root *root, const char *id)
{
    size_t i;

    for (i = 0; i < root->nfindings; i++)
        if (!strcmp(root->findings[i].id, id))
            return &root->findings[i];
    return NULL;
}

static int64_t part_of_span(const struct rp_report_root *root, const char *part)
{
    size_t i;

    for (i = 0; i < root->nparts; i++)
        if (!strcmp(root->parts[i].part, part))
            return root->parts[i].total_ns;
    return 0;
}

#define LAUNCHED(ts, corr)                                              \
    {                                                                   \
        'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, (ts), 4000, corr \
    }

/* A step that begins with 60 ms of work on the host, and ends with 10 ms of it. */
static void idle_at_the_edges_of_a_step_counts(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 100 * MS},
        {'X', "cpu_op", "normalize_images", 1, 1, 0, 60 * MS},
        LAUNCHED(60 * MS, 5),
        {'X', "kernel", "gemm", 0, 7, 60 * MS + 4000, 30 * MS - 4000, 5, 7},
        {'X', "python_function", "save", 1, 1, 90 * MS, 10 * MS}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;
    const struct rp_report_finding *found = finding_of(root, "host-work");

    UNUSED_STATE(state);
    assert_int_equal(root->span_ns, 100 * MS);
    assert_int_equal(root->step_ns, 100 * MS);
    assert_int_equal(sum_of_parts(root), root->span_ns);
    assert_int_equal(root->needed_ns, 30 * MS - 4000);
    assert_int_equal(root->lost_ns, 70 * MS + 4000);
    assert_int_equal(root->ranks[0].window_ns, 30 * MS - 4000);
    assert_int_equal(root->ranks[0].idle_ns, 0);
    assert_non_null(found);
    assert_int_equal(found->lost_ns, 70 * MS + 4000);
    assert_contains(found->evidence[0], "mainly normalize_images (86 % of it)");
    assert_null(finding_of(root, "launch-bound"));
    assert_contains(root->lost_text, "of 100.0 ms in 1 step, 30.0 ms (30.0 %) compute and");
    rp_result_free(result);
    rp_trace_free(t);
}

/* What was recorded before the first step is not the steps'. */
static void work_before_the_first_step_is_not_counted(void **state)
{
    static const struct row rows[] = {
        LAUNCHED(0, 4),
        {'X', "kernel", "init", 0, 7, 5000, 400 * MS, 4, 7},
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 500 * MS, 10 * MS},
        LAUNCHED(500 * MS, 5),
        {'X', "kernel", "gemm", 0, 7, 500 * MS + 4000, 10 * MS - 4000, 5, 7}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;
    size_t i;

    UNUSED_STATE(state);
    assert_int_equal(root->span_ns, 10 * MS);
    assert_int_equal(sum_of_parts(root), 10 * MS);
    assert_int_equal(root->needed_ns, 10 * MS - 4000);
    assert_int_equal(root->nfindings, 0);
    for (i = 0; i < root->nnotes && !strstr(root->notes[i], "not counted"); i++)
        ;
    assert_true(i < root->nnotes);
    assert_contains(root->notes[i], "500.0 ms before the first step (start-up)");
    rp_result_free(result);
    rp_trace_free(t);
}

/* The host runs ahead: the first step waits for work that was launched before it was recorded. */
static void work_of_an_unmarked_step_is_not_atypical(void **state)
{
    struct row rows[16] = {{'X', "kernel", "earlier", 0, 7, 0, 20 * MS, 0, 7}};
    struct rp_trace *t;
    struct rp_result *result;
    const struct rp_report_root *root;
    int64_t i, at = 20 * MS;

    UNUSED_STATE(state);
    for (i = 0; i < 5; i++, at += 10 * MS) {
        rows[1 + 3 * i] =
            (struct row){'X', "user_annotation", "ProfilerStep#1", 1, 1, i * MS, 900 * 1000};
        rows[2 + 3 * i] =
            (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, i * MS + 1000, 4000, 5 + i};
        rows[3 + 3 * i] = (struct row){'X', "kernel", "gemm", 0, 7, at, 10 * MS, 5 + i, 7};
    }
    t = TRACE_OF(rows);
    result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    root = result->root;
    assert_int_equal(root->nsteps, 5);
    assert_int_equal(root->steps[0].b.window_ns, 10 * MS); /* it begins when that has ended */
    assert_int_equal(root->step_ns, 10 * MS);
    assert_int_equal(root->span_ns, 70 * MS);
    assert_int_equal(sum_of_parts(root), 70 * MS);
    assert_int_equal(root->needed_ns, 50 * MS);
    assert_int_equal(root->lost_ns, 0);
    assert_null(finding_of(root, "atypical-step"));
    assert_int_equal(root->npitfalls, 0);
    rp_result_free(result);
    rp_trace_free(t);
}

/* A step without device work is idle, with a cause. */
static void a_span_may_have_no_device_work(void **state)
{
    static const struct row rows[] = {
        LAUNCHED(0, 4),
        {'X', "kernel", "init", 0, 7, 5000, 40 * MS, 4, 7},
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 50 * MS, 10 * MS},
        {'X', "cpu_op", "aten::slow", 1, 1, 50 * MS, 10 * MS}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->span_ns, 10 * MS);
    assert_int_equal(root->needed_ns, 0);
    assert_int_equal(part_of_span(root, "idle: host_work"), 10 * MS);
    assert_int_equal(sum_of_parts(root), 10 * MS);
    rp_result_free(result);
    rp_trace_free(t);
}

/* What findings call lost is not needed: communication and copies are not compute. */
static void needed_is_what_no_finding_calls_lost(void **state)
{
    static const struct row rows[] = {
        LAUNCHED(0, 4),
        LAUNCHED(5000, 5),
        LAUNCHED(10000, 6),
        {'X', "kernel", "gemm", 0, 7, 4000, 10 * MS - 4000, 4, 7},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, 10 * MS, 20 * MS, 5, 20},
        {'X', "gpu_memcpy", "Memcpy HtoD", 0, 7, 30 * MS, 5 * MS, 6, 7}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;
    int64_t lost = 0;
    size_t i;

    UNUSED_STATE(state);
    assert_int_equal(root->needed_ns, 10 * MS - 4000);
    assert_int_equal(root->lost_ns, 25 * MS);
    assert_int_equal(finding_of(root, "exposed-comm")->lost_ns, 20 * MS);
    assert_int_equal(finding_of(root, "exposed-comm")->compute_ns, 0);
    assert_int_equal(finding_of(root, "copies")->lost_ns, 5 * MS);
    assert_null(strstr(finding_of(root, "copies")->evidence[0], "waits for one"));
    for (i = 0; i < root->nfindings; i++)
        lost += root->findings[i].lost_ns - root->findings[i].compute_ns;
    assert_true(lost <= root->lost_ns);
    rp_result_free(result);
    rp_trace_free(t);
}

/* A kernel that waits on the device, the first of its stream: the host is not to blame. */
static void launched_work_that_waits_is_not_launch_bound(void **state)
{
    static const struct row rows[] = {LAUNCHED(0, 4),
                                      LAUNCHED(20 * MS, 5),
                                      {'X', "kernel", "gemm", 0, 7, 4000, 20 * MS - 4000, 4, 7},
                                      {'X', "kernel", "decode", 0, 8, 400 * MS, 10 * MS, 5, 8}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;
    const struct rp_report_finding *found = finding_of(root, "device-wait");

    UNUSED_STATE(state);
    assert_non_null(found);
    assert_int_equal(found->lost_ns, 380 * MS);
    assert_contains(found->evidence[0], "before the first recorded work of a stream");
    assert_contains(root->lost_text, "waiting for work that was not recorded");
    assert_null(finding_of(root, "launch-bound"));
    rp_result_free(result);
    rp_trace_free(t);
}

/* A stream may still be busy with what was launched before the recording: no token took that. */
static void unrecorded_work_is_not_time_per_token(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "step[DECODE bs=4]", 1, 1, 0, 95 * MS},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4000, 5},
        {'X', "kernel", "gemm", 0, 7, 80 * MS, 12 * MS, 5, 7}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nphases, 1);
    assert_int_equal(root->phases[0].total_ns, 15 * MS); /* from its own work on */
    assert_int_equal(root->phases[0].unrecorded_ns, RP_ABSENT_I64);
    assert_int_equal(root->phases[0].token_ns, 15 * MS / 4);
    rp_result_free(result);
    rp_trace_free(t);
}

/* A table with one row, of no phase, says nothing. */
static void steps_without_a_phase_have_no_table(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "execute_diffusion_1_1024x1024", 1, 1, 0, 30 * MS},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4000, 5},
        {'X', "kernel", "gemm", 0, 7, 10000, 12 * MS, 5, 7}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);
    const struct rp_report_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nsteps, 1);
    assert_int_equal(root->steps[0].requests, 1);
    assert_int_equal(root->nphases, 0);
    rp_result_free(result);
    rp_trace_free(t);
}

/* Twenty ranks of which one computes for so long, the others 50 of 100 ms: how many groups there
 * are. */
static size_t groups_of(int64_t compute_ns)
{
    static struct rp_report_part part;
    struct rp_report_rank rows[20];
    struct rp_rank_part in[20];
    struct rp_ranks ranks = {.n = 20, .world_size = 20, .parts = in};
    struct rp_report_root root = {.ranks = rows, .nranks = 20};
    struct rp_arena arena = RP_ARENA_INIT;

    for (int r = 0; r < 20; r++) {
        in[r] = (struct rp_rank_part){.data = &part, .number = r};
        rows[r] = (struct rp_report_rank){.rank = r,
                                          .window_ns = 100 * MS,
                                          .compute_ns = r == 7 ? compute_ns : 50 * MS,
                                          .wait_ns = RP_ABSENT_I64,
                                          .last_count = RP_ABSENT_I64,
                                          .margin_ns = RP_ABSENT_I64};
    }
    rp_report_group_ranks(&ranks, &arena, &root);
    rp_arena_release(&arena);
    return root.ngroups;
}

static void ranks_that_behave_alike_have_an_edge(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(groups_of(54900000), 1);
    assert_int_equal(groups_of(55100000), 2);
}

/* Steps by the kernels that they launch: so many of each name. */
struct step_work {
    const char *kernel;
    int count, more; /* more: of another name */
};

static size_t kinds_of(const struct step_work *work, int nsteps)
{
    struct row *rows = calloc(4000, sizeof *rows);
    int64_t at = 0, corr = 0;
    struct rp_report_part part;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_trace *t;
    size_t n = 0, kinds;
    char names[16][32];

    assert_non_null(rows);
    for (int s = 0; s < nsteps; s++) {
        size_t mark = n++;

        snprintf(names[s], sizeof names[s], "ProfilerStep#%d", s);
        rows[mark] = (struct row){'X', "user_annotation", names[s], 1, 1, at, 0};
        for (int i = 0; i < work[s].count + work[s].more; i++, at += 10000) {
            corr++;
            rows[n++] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at, 4000, corr};
            rows[n++] = (struct row){'X',  "kernel", i < work[s].count ? work[s].kernel : "more",
                                     0,    7,        at + 5000,
                                     4000, corr,     7};
        }
        rows[mark].dur = at - rows[mark].ts;
        at += 1000;
    }
    t = trace_of(rows, n);
    assert_code(rp_report_rank(t, NULL, NULL, &arena, &part, NULL), RP_OK);
    kinds = part.nkinds;
    rp_report_part_release(&part);
    rp_trace_free(t);
    rp_arena_release(&arena);
    free(rows);
    return kinds;
}

static void kinds_of_steps_have_edges(void **state)
{
    static const struct step_work alike[] = {{"a", 107, 0}, {"a", 107, 5}, {"a", 107, 0}};
    static const struct step_work unlike[] = {{"a", 107, 0}, {"a", 107, 6}, {"a", 107, 0}};
    static const struct step_work usual[] = {
        {"a", 9, 0}, {"a", 9, 0}, {"a", 9, 0}, {"b", 9, 0}, {"b", 9, 0}, {"c", 9, 0}, {"c", 9, 0},
        {"d", 9, 0}, {"d", 9, 0}, {"e", 9, 0}, {"e", 9, 0}, {"f", 9, 0}, {"f", 9, 0}};

    UNUSED_STATE(state);
    assert_int_equal(kinds_of(alike, 3), 0);
    assert_true(kinds_of(unlike, 3) >= 2);
    assert_true(kinds_of(usual, 11) >= 5);
    assert_int_equal(kinds_of(usual, 13), 0); /* 3 of 13 */
}

int test_report(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_rank_sets_the_pace),
        cmocka_unit_test(findings_are_ranked_and_parts_add_up),
        cmocka_unit_test(clocks_that_differ_are_aligned),
        cmocka_unit_test(a_host_only_trace_gets_a_report),
        cmocka_unit_test(an_overlap_may_be_a_wait),
        cmocka_unit_test(a_straggler_has_a_reason),
        cmocka_unit_test(experts_with_more_tokens),
        cmocka_unit_test(collectives_of_the_host_are_matched),
        cmocka_unit_test(idle_at_the_edges_of_a_step_counts),
        cmocka_unit_test(work_before_the_first_step_is_not_counted),
        cmocka_unit_test(work_of_an_unmarked_step_is_not_atypical),
        cmocka_unit_test(a_span_may_have_no_device_work),
        cmocka_unit_test(needed_is_what_no_finding_calls_lost),
        cmocka_unit_test(launched_work_that_waits_is_not_launch_bound),
        cmocka_unit_test(steps_without_detail_expose_nothing),
        cmocka_unit_test(the_median_step_is_that_of_all_steps),
        cmocka_unit_test(steps_without_a_device_last_from_mark_to_mark),
        cmocka_unit_test(a_server_has_phases),
        cmocka_unit_test(unrecorded_work_is_not_time_per_token),
        cmocka_unit_test(steps_without_a_phase_have_no_table),
        cmocka_unit_test(ranks_that_behave_alike_have_an_edge),
        cmocka_unit_test(kinds_of_steps_have_edges),
        cmocka_unit_test(an_empty_trace_gets_a_report),
    };

    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
