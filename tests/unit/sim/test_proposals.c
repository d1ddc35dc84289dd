/* SPDX-License-Identifier: Apache-2.0 */
/* Which what-ifs are proposed for a run, and which runs are trusted. */
#include "run_fixtures.h"
#include "sim/opportunities.h"
#include "sim/predict.h"
#include "sim/whatif/nodes.h"

/* In the steps with an 'x' the rank works longer, on the host and on the device; where only the
   other rank has one, its collective waits as long. */
static struct rp_trace *trace_with(const char *slow, const char *other, const char *op)
{
    struct row rows[96];
    size_t n = 0;

    for (int i = 0; slow[i]; i++) {
        struct step_shape s = {slow[i] == 'x' ? 44000 : 40000, false, false};
        size_t first = n;

        n += step_rows(rows + n, 100000 * i, 10 * i + 1, s);
        rows[first + 2].dur += slow[i] == 'x' ? 1000 : 0; /* aten::mm */
        rows[first + 8].name = op;                        /* aten::add */
        if (other && other[i] == 'x' && slow[i] != 'x') {
            rows[first + 12].dur += 4000; /* all-reduce */
            rows[first + 13].dur += 4000; /* cudaDeviceSynchronize */
        }
    }
    return trace_of(rows, n);
}

/* waits: collectives of the other rank last until the slower one is there. */
static void open_run(struct bench *b, size_t n, const char *const *slow, const char *op, bool waits)
{
    struct rp_err err = RP_ERR_INIT;

    memset(b, 0, sizeof *b);
    b->n = n;
    for (size_t i = 0; i < n; i++) {
        b->traces[i] = trace_with(slow[i], waits ? slow[1 - i] : NULL, op);
        rp_arena_init(&b->arenas[i]);
        assert_ok(rp_sim_part_init(&b->parts[i], b->traces[i], &b->arenas[i], &err), &err);
        b->list[i] = &b->parts[i];
    }
    assert_ok(rp_sim_run_init(&b->run, b->list, n, &err), &err);
}

/* What the what-if proposes for the run, or why it does not. */
static const char *proposal_of(const struct bench *b, const char *name, struct rp_err *err)
{
    struct rp_arena arena = RP_ARENA_INIT;
    rp_whatif_texts texts = {0};
    const char *first = NULL;

    for (size_t i = 0; rp_whatifs[i]; i++)
        if (!strcmp(rp_whatifs[i]->name, name)) {
            if (rp_whatif_applies(rp_whatifs[i], &b->run, err) != RP_WHATIF_APPLIES) {
                first = err->text;
            } else if (!rp_whatifs[i]->move->propose) {
                first = rp_whatifs[i]->move->text ? rp_whatifs[i]->move->text : name;
            } else {
                assert_code(rp_whatifs[i]->move->propose(&b->run, &arena, &texts, err), RP_OK);
                assert_int_equal(texts.n, 1);
                first = texts.at[0];
            }
        }
    rp_vec_release(&texts);
    rp_arena_release(&arena);
    assert_non_null(first);
    return first;
}

static void the_same_rank_is_slow_in_two_of_three_steps(void **state)
{
    static const struct {
        const char *slow[2], *want;
    } rows[] = {{{"....", "xxx."}, "straggler=median"},
                {{"...x", "xxx."}, "straggler=median"},
                {{"xx.", "..x"}, "straggler=median"},
                {{"xxx..", "...xx"}, "straggler: no rank has the most work in most of the steps"},
                {{"x.x.", ".x.x"}, "straggler: no rank has the most work in most of the steps"},
                {{"xx..", "..xx"}, "straggler: no rank has the most work in most of the steps"}};
    static const char *const alone[] = {"xxxx"};
    struct rp_err err = RP_ERR_INIT;
    struct bench b;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        open_run(&b, 2, rows[i].slow, "aten::add", false);
        assert_string_equal(proposal_of(&b, "straggler", &err), rows[i].want);
        bench_release(&b);
    }
    open_run(&b, 1, alone, "aten::add", false);
    assert_string_equal(proposal_of(&b, "straggler", &err),
                        "straggler: only one rank was recorded");
    bench_release(&b);
}

/* Advice may simulate what nobody can do: it is not an opportunity where the what-if proposes
 * nothing.
 */
static void what_is_not_proposed_is_no_opportunity(void **state)
{
    static const char *const same[] = {"....", "xxx."}, *const other[] = {"x.x.", ".x.x"};
    static const char *const more[] = {"straggler=median"};
    const struct rp_changes_asked asked = {.nmore = 1, .more = more};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_opportunities list;
    struct rp_changes changes;
    struct rp_worlds x;
    struct bench b;

    UNUSED_STATE(state);
    for (int proposed = 0; proposed < 2; proposed++) {
        size_t found = 0;

        open_run(&b, 2, proposed ? same : other, "aten::add", true);
        assert_ok(rp_worlds_init(&x, b.list, 2, NULL, &err), &err);
        assert_ok(rp_changes_try(&x, &asked, &arena, &changes, &err), &err);
        assert_true(rp_changes_find(&changes, more[0])->alone_ns < x.step_ns);
        assert_ok(rp_opportunities_find(&x, &changes, &arena, &list, &err), &err);
        for (size_t i = 0; i < list.n; i++)
            found += !strcmp(list.at[i].what_if, more[0]);
        assert_int_equal(found, proposed);
        rp_worlds_release(&x);
        bench_release(&b);
    }
    rp_arena_release(&arena);
}

/* The option that records shapes is that of the recorder. */
static void shapes_are_asked_of_the_recorder(void **state)
{
    static const char *const slow[] = {"....", "...."};
    struct bench b;

    UNUSED_STATE(state);
    open_run(&b, 2, slow, "aten::add", false);
    assert_contains(rp_sim_shapes_option(&b.parts[0]), "record_shapes=True");
    b.parts[0].recorder.ours = true;
    assert_contains(rp_sim_shapes_option(&b.parts[0]), "reprise record --set frameworks.shapes=on");
    bench_release(&b);
}

/* How a change is made, and what it assumes, is said in the words of the framework. */
static void changes_are_made_in_the_words_of_the_framework(void **state)
{
    static const char *const others[] = {"dataloader", "cuda-graphs", "dtype", "no-sync", "fuse"};
    const unsigned elsewhere[] = {RP_FRAMEWORK_JAX, RP_FRAMEWORK_TENSORFLOW, RP_FRAMEWORK_HOROVOD};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    const char *text;

    UNUSED_STATE(state);
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 5; k++)
            assert_string_not_equal(rp_whatif_apply_in(elsewhere[i], others[k], "torch"), "torch");
        assert_ok(rp_whatif_assumes("cuda-graphs+no-sync", elsewhere[i], &arena, &text, &err),
                  &err);
        assert_null(strstr(text, "PyTorch"));
        assert_contains(text, "; the host needs no result");
    }
    assert_string_equal(rp_whatif_apply_in(RP_FRAMEWORK_PYTORCH, "dataloader", "torch"), "torch");
    assert_ok(rp_whatif_assumes("cuda-graphs", RP_FRAMEWORK_UNKNOWN, &arena, &text, &err), &err);
    assert_contains(text, "PyTorch's Adam becomes capturable");
    rp_arena_release(&arena);
}

/* What cannot be is refused, what is not known to help is only not proposed. */
static void a_condition_has_three_answers(void **state)
{
    static const char *const slow[] = {"....", "...."};
    struct rp_err err = RP_ERR_INIT;
    struct bench b;

    UNUSED_STATE(state);
    open_run(&b, 2, slow, "aten::add", false);
    assert_int_equal(rp_whatif_applies(&rp_whatif_scale, &b.run, &err), RP_WHATIF_APPLIES);
    assert_int_equal(rp_whatif_applies(&rp_whatif_fuse, &b.run, &err), RP_WHATIF_APPLIES);
    assert_int_equal(rp_whatif_applies(&rp_whatif_compile, &b.run, &err), RP_WHATIF_UNSURE);
    assert_string_equal(err.text, "compile: it was measured for training steps of PyTorch only");
    assert_code(rp_whatif_apply(&b.run, "compile", &err), RP_OK);
    assert_int_equal(rp_whatif_applies(&rp_whatif_fused_optimizer, &b.run, &err), RP_WHATIF_CANNOT);
    assert_string_equal(err.text, "fused-optimizer: no device work of an optimizer was found");
    assert_code(rp_whatif_apply(&b.run, "fused-optimizer", &err), RP_UNSUPPORTED);
    assert_string_equal(err.text, "fused-optimizer: no device work of an optimizer was found");
    bench_release(&b);
}

/* One step for each letter, with a product of that name; capitals wait before they go on. The wait
   at the end of a step is in `op`, if it is not NULL. */
static void open_steps(struct bench *b, const char *kernels, const char *op)
{
    static char names[26][16];
    struct rp_err err = RP_ERR_INIT;
    struct row rows[600];
    size_t n = 0;

    memset(b, 0, sizeof *b);
    b->n = 1;
    for (int i = 0; kernels[i]; i++) {
        size_t first = n;
        char *name = names[(kernels[i] | 32) - 'a'];

        n += step_rows(rows + n, 100000 * i, 10 * i + 1, (struct step_shape){40000, true, false});
        snprintf(name, sizeof names[0], "sgemm_%c", kernels[i] | 32);
        rows[first + 4].name = name;
        if (op)
            rows[n++] = (struct row){'X', "cpu_op", op, 1, 1, 100000 * i + 39000, 56000};
        if (kernels[i] < 'a')
            rows[n++] = (struct row){
                'X', "cuda_runtime", "cudaStreamSynchronize", 1, 1, 100000 * i + 6500, 3000};
    }
    b->traces[0] = trace_of(rows, n);
    rp_arena_init(&b->arenas[0]);
    assert_ok(rp_sim_part_init(&b->parts[0], b->traces[0], &b->arenas[0], &err), &err);
    b->list[0] = &b->parts[0];
    assert_ok(rp_sim_run_init(&b->run, b->list, 1, &err), &err);
}

static void most_launches_come_again(void **state)
{
    static const struct {
        const char *kernels;
        enum rp_whatif_verdict graphs, fuse;
        const char *because;
    } rows[] = {
        {"aaaa", RP_WHATIF_APPLIES, RP_WHATIF_APPLIES,
         "the 4 judged steps launch the same 3 kernels in the same order, and the host waits for "
         "the device once in a step"},
        {"aaaz", RP_WHATIF_APPLIES, RP_WHATIF_APPLIES, "launch one of 2 sequences"},
        {"abab", RP_WHATIF_APPLIES, RP_WHATIF_APPLIES, "launch one of 2 sequences"},
        {"aaaaaauvwx", RP_WHATIF_PART, RP_WHATIF_APPLIES,
         "60 % of the launches come again in another step"},
        {"aaaaauvwxy", RP_WHATIF_NOT, RP_WHATIF_NOT,
         "differ from step to step: 6 different sequences in 10 judged steps"},
        {"AAAA", RP_WHATIF_PART, RP_WHATIF_PART, "waits for the device 2 times in a step"},
        {"ABCD", RP_WHATIF_PART, RP_WHATIF_PART, "cuts it into 2 pieces"},
        {"a", RP_WHATIF_APPLIES, RP_WHATIF_APPLIES, "one step of 3 kernels is judged"}};
    struct rp_err err = RP_ERR_INIT;
    struct bench b;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        open_steps(&b, rows[i].kernels, NULL);
        assert_int_equal(rp_whatif_applies(&rp_whatif_fuse, &b.run, &err), rows[i].fuse);
        assert_int_equal(rp_whatif_applies(&rp_whatif_cuda_graphs, &b.run, &err), rows[i].graphs);
        assert_contains(err.text, rows[i].because);
        assert_code(rp_whatif_apply(&b.run, "cuda-graphs", &err), RP_OK);
        bench_release(&b);
    }
}

/* At both sides of the edge: fewer than half of the kernels have a launch of their own. */
static void most_kernels_are_launched_by_graphs(void **state)
{
    static const struct {
        int in_graph, single, unlaunched;
        bool already;
    } rows[] = {{3, 1, 0, true},  {2, 1, 0, true}, {1, 1, 0, false}, {1, 1, 1, true},
                {0, 1, 2, false}, {3, 2, 0, true}, {2, 2, 0, false}, {4, 0, 0, true}};
    static const char *const names[] = {"gemm", "relu", "add", "norm", "softmax"};
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct row row[64];
        struct bench b = {.n = 1};
        size_t n = 0;

        for (int64_t step = 0, at = 0; step < 3; step++, at += 1000) {
            int64_t corr = 100 * step + 1, to = at + 100;

            row[n++] = (struct row){'X',
                                    "user_annotation",
                                    step == 0   ? "ProfilerStep#0"
                                    : step == 1 ? "ProfilerStep#1"
                                                : "ProfilerStep#2",
                                    1,
                                    1,
                                    at,
                                    990};
            if (rows[i].in_graph)
                row[n++] =
                    (struct row){'X', "cuda_runtime", "cudaGraphLaunch", 1, 1, at + 10, 5, corr};
            for (int k = 0; k < rows[i].in_graph; k++, to += 50)
                row[n++] = (struct row){'X', "kernel", names[k], 0, 7, to, 40, corr, 7};
            for (int k = 0; k < rows[i].single; k++, to += 50) {
                row[n++] = (struct row){
                    'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at + 20 + 10 * k, 5, ++corr};
                row[n++] = (struct row){'X', "kernel", names[k], 0, 7, to, 40, corr, 7};
            }
            for (int k = 0; k < rows[i].unlaunched; k++, to += 50)
                row[n++] = (struct row){'X', "kernel", names[k], 0, 7, to, 40, 5000 + corr + k, 7};
        }
        b.traces[0] = trace_of(row, n);
        rp_arena_init(&b.arenas[0]);
        assert_ok(rp_sim_part_init(&b.parts[0], b.traces[0], &b.arenas[0], &err), &err);
        b.list[0] = &b.parts[0];
        assert_ok(rp_sim_run_init(&b.run, b.list, 1, &err), &err);
        err = (struct rp_err)RP_ERR_INIT;
        if ((rp_whatif_applies(&rp_whatif_cuda_graphs, &b.run, &err) == RP_WHATIF_NOT &&
             strstr(err.text, "by CUDA graphs already")) != rows[i].already)
            fail_msg("row %zu: %s", i, err.text);
        bench_release(&b);
    }
}

/* Each step has a piece of its own and one that all have: 16 different ones, and 17. */
static void few_graphs_can_be_captured(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct bench b;

    UNUSED_STATE(state);
    open_steps(&b, "ABCDEFGHIJKLMNOABCDEFGHIJKLMNO", NULL);
    assert_int_equal(rp_whatif_applies(&rp_whatif_cuda_graphs, &b.run, &err), RP_WHATIF_PART);
    assert_contains(err.text, "16 different graphs, the longest of 2 kernels, would hold 100 %");
    bench_release(&b);
    open_steps(&b, "ABCDEFGHIJKLMNOPABCDEFGHIJKLMNOP", NULL);
    assert_int_equal(rp_whatif_applies(&rp_whatif_cuda_graphs, &b.run, &err), RP_WHATIF_NOT);
    assert_contains(err.text, "17 different graphs would be needed");
    bench_release(&b);
}

/* Where each step goes on otherwise, what it read may be why. */
static void reads_may_decide(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct bench b;

    UNUSED_STATE(state);
    open_steps(&b, "ABCA", NULL);
    assert_int_equal(rp_whatif_applies(&rp_whatif_no_sync, &b.run, &err), RP_WHATIF_APPLIES);
    assert_contains(err.text, "waits for the device 2 times in a step");
    bench_release(&b);
    open_steps(&b, "ABCD", NULL);
    assert_int_equal(rp_whatif_applies(&rp_whatif_no_sync, &b.run, &err), RP_WHATIF_NOT);
    assert_contains(err.text, "may decide what it launches: 4 different sequences");
    bench_release(&b);
}

/* Only what is between two waits is launched at once: the waits and the host's work around them
   stay. */
static void a_graph_ends_where_the_host_waits(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    uint32_t kept = 0;
    struct bench b;

    UNUSED_STATE(state);
    open_steps(&b, "AAA", NULL);
    assert_code(rp_whatif_apply(&b.run, "cuda-graphs", &err), RP_OK);
    for (int nth = 0; nth < 3; nth++) {
        kept += b.run.overlay.dur_ns.at[node_called(&b, 0, "cudaLaunchKernel", 3 * nth)] > 0;
        kept += b.run.overlay.dur_ns.at[node_called(&b, 0, "cudaLaunchKernel", 3 * nth + 1)] > 0;
        assert_int_equal(
            b.run.overlay.dur_ns.at[node_called(&b, 0, "cudaLaunchKernel", 3 * nth + 2)], 0);
    }
    assert_int_equal(kept, 6);
    bench_release(&b);
}

static void waits_of_a_library_stay(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct bench b;

    UNUSED_STATE(state);
    open_steps(&b, "AAA", NULL);
    assert_int_equal(rp_whatif_applies(&rp_whatif_no_sync, &b.run, &err), RP_WHATIF_APPLIES);
    bench_release(&b);
    open_steps(&b, "AAA", "aten::cudnn_convolution");
    assert_int_equal(rp_whatif_applies(&rp_whatif_no_sync, &b.run, &err), RP_WHATIF_NOT);
    assert_contains(err.text, "aten::cudnn_convolution");
    bench_release(&b);
}

static void what_overlaps_already(void **state)
{
    static const char *const slow[] = {"....", "...."};
    struct rp_err err = RP_ERR_INIT;
    struct bench b;

    UNUSED_STATE(state);
    open_run(&b, 2, slow, "aten::add", false);
    assert_string_equal(proposal_of(&b, "overlap", &err), "overlap");
    bench_release(&b);
    open_run(&b, 2, slow, "torch::distributed::reducer::mul_out", false);
    assert_contains(proposal_of(&b, "overlap", &err), "overlaps its all-reduces");
    bench_release(&b);
    open_run(&b, 2, slow, "torch.distributed.ddp.reducer::copy_bucket_to_grad", false);
    assert_contains(proposal_of(&b, "overlap", &err), "overlaps its all-reduces");
    bench_release(&b);
}

/* An all-reduce behind the last kernel of a step may overlap, one between its kernels is the input
   of the next, unless some kernel runs beside it. */
static void inputs_of_kernels_do_not_overlap(void **state)
{
    static const struct {
        int64_t after_ns; /* where a kernel starts; 0: there is none */
        int steps;        /* that have it: all-reduces of the others have another size */
        enum rp_whatif_verdict verdict;
    } rows[] = {{0, 0, RP_WHATIF_APPLIES},
                {71000, 3, RP_WHATIF_NOT},
                {71000, 1, RP_WHATIF_PART},
                {65000, 3, RP_WHATIF_APPLIES}};
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct row list[80];
        struct bench b = {.n = 1};
        size_t n = 0;

        for (int step = 0; step < 3; step++) {
            int64_t at = 100000 * step, corr = 10 * step + 1;
            size_t first = n;

            n += step_rows(list + n, at, corr, (struct step_shape){.gemm_ns = 20000});
            list[first + 12].value = step < rows[i].steps ? 1000 : 2000;
            if (step >= rows[i].steps)
                continue;
            list[n++] = (struct row){'X',  "cuda_runtime", "cudaLaunchKernel", 1, 1, at + 32000,
                                     3000, corr + 7};
            list[n++] = (struct row){
                'X', "kernel", "elementwise", 0, 7, at + rows[i].after_ns, 10000, corr + 7, 7};
        }
        b.traces[0] = trace_of(list, n);
        rp_arena_init(&b.arenas[0]);
        assert_ok(rp_sim_part_init(&b.parts[0], b.traces[0], &b.arenas[0], &err), &err);
        b.list[0] = &b.parts[0];
        assert_ok(rp_sim_run_init(&b.run, b.list, 1, &err), &err);
        assert_int_equal(rp_whatif_applies(&rp_whatif_overlap, &b.run, &err), rows[i].verdict);
        assert_code(rp_whatif_apply(&b.run, "overlap", &err), RP_OK);
        bench_release(&b);
    }
}

/* An optimizer whose kernel the host launches before the all-reduce begins waits for it
   nevertheless. */
static void an_optimizer_that_is_launched_early_waits(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct row list[80];
    struct bench b = {.n = 1};
    size_t n = 0;

    UNUSED_STATE(state);
    for (int step = 0; step < 3; step++) {
        int64_t at = 100000 * step, corr = 10 * step + 1;

        n += step_rows(list + n, at, corr, (struct step_shape){.gemm_ns = 40000});
        list[n - 1].dur = 52000; /* the host waits for the optimizer */
        list[n++] =
            (struct row){'X', "user_annotation", "Optimizer.step#SGD.step", 1, 1, at + 31500, 5000};
        list[n++] =
            (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at + 32000, 3000, corr + 7};
        list[n++] = (struct row){
            'X', "kernel", "multi_tensor_apply_kernel", 0, 7, at + 90000, 1000, corr + 7, 7};
    }
    b.traces[0] = trace_of(list, n);
    rp_arena_init(&b.arenas[0]);
    assert_ok(rp_sim_part_init(&b.parts[0], b.traces[0], &b.arenas[0], &err), &err);
    b.list[0] = &b.parts[0];
    assert_ok(rp_sim_run_init(&b.run, b.list, 1, &err), &err);
    int64_t before = step_now(&b);
    assert_code(rp_whatif_apply(&b.run, "overlap", &err), RP_OK);
    assert_int_equal(step_now(&b), before);
    bench_release(&b);
}

/* Up to a tenth off is reproduced; three hundredths are another step. */
static void runs_that_are_trusted(void **state)
{
    static const struct {
        int64_t step_ns, simulated_ns, unprofiled_ns;
        bool reproduced, distorted;
    } rows[] = {{1000, 1100, 1000, true, false}, {1000, 1101, 1000, false, false},
                {1000, 900, 1000, true, false},  {1000, 899, 1000, false, false},
                {1000, 1000, 970, true, true},   {1000, 1000, 971, true, false},
                {1000, 1000, 1030, true, true},  {1000, 1000, 1029, true, false},
                {1, 1, 1, true, false},          {0, 0, 1, false, true},
                {1000, 1000, 0, false, true}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_sim_now now = {.step_ns = rows[i].step_ns,
                                 .simulated_ns = rows[i].simulated_ns,
                                 .unprofiled_ns = rows[i].unprofiled_ns};

        if (rp_sim_reproduces(&now) != rows[i].reproduced)
            fail_msg("row %zu is%s reproduced", i, rows[i].reproduced ? " not" : "");
        if (rp_sim_is_distorted(&now) != rows[i].distorted)
            fail_msg("row %zu is%s distorted", i, rows[i].distorted ? " not" : "");
    }
}

int test_proposals(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_rank_is_slow_in_two_of_three_steps),
        cmocka_unit_test(what_is_not_proposed_is_no_opportunity),
        cmocka_unit_test(shapes_are_asked_of_the_recorder),
        cmocka_unit_test(changes_are_made_in_the_words_of_the_framework),
        cmocka_unit_test(a_condition_has_three_answers),
        cmocka_unit_test(most_launches_come_again),
        cmocka_unit_test(most_kernels_are_launched_by_graphs),
        cmocka_unit_test(few_graphs_can_be_captured),
        cmocka_unit_test(reads_may_decide),
        cmocka_unit_test(inputs_of_kernels_do_not_overlap),
        cmocka_unit_test(an_optimizer_that_is_launched_early_waits),
        cmocka_unit_test(a_graph_ends_where_the_host_waits),
        cmocka_unit_test(waits_of_a_library_stay),
        cmocka_unit_test(what_overlaps_already),
        cmocka_unit_test(runs_that_are_trusted)};

    return cmocka_run_group_tests_name("proposals", tests, NULL, NULL);
}
