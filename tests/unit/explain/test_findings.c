/* SPDX-License-Identifier: Apache-2.0 */
/* Findings: what each of their kinds is told by, and on both sides of the numbers that they decide
 * by. */
#include "cost/calls.h"
#include "cost/category.h"
#include "explain/findings/fragmentation.h"
#include "explain/findings/slow_operator.h"
#include "explain/findings/tiny_kernels.h"
#include "explain/findings_fixture.h"

#include <math.h>

#define US 1000
#define MS 1000000

/* ------------------------------------------------------------------ parts and chains by hand */

/* A rank whose span is 100 ms, and a chain through it. */
struct bench {
    struct rp_arena arena;
    struct rp_report_part part;
    struct rp_rank_part in;
    struct rp_ranks ranks;
    struct rp_chain_rank chain_rank;
    struct rp_chain chain;
    struct rp_report_root root;
};

static void set_up(struct bench *b)
{
    *b = (struct bench){.part = {.whole = {.window_ns = 100 * MS}, .on_device = true},
                        .ranks = {.n = 1, .world_size = 1}};
    b->part.sums.host_op_ns = 1;
    b->in.data = &b->part;
    b->ranks.parts = &b->in;
    b->chain.ranks = &b->chain_rank;
}

/* Asks one finding, anew. */
static const struct rp_report_finding *ask(struct bench *b, const struct rp_finding *row)
{
    struct rp_findings f = {.ranks = &b->ranks,
                            .chain = &b->chain,
                            .arena = &b->arena,
                            .out = &b->root,
                            .row = row,
                            .span_ns = b->part.whole.window_ns};

    b->root.nfindings = 0;
    row->find(&f);
    return b->root.nfindings ? &b->root.findings[0] : NULL;
}

static void check_kind(struct bench *b, const struct rp_finding *row, const char *key)
{
    const struct rp_report_finding *found = ask(b, row);

    assert_non_null(found);
    assert_string_equal(found->title, row->kinds[rp_finding_kind(row, key)].title);
}

static void a_finding_costs_a_hundredth_of_the_span(void **state)
{
    struct bench b;

    UNUSED_STATE(state);
    set_up(&b);
    b.chain.cause_ns[RP_GAP_NOT_LAUNCHED] = 999 * US;
    assert_null(ask(&b, &rp_finding_launch_bound));
    b.chain.cause_ns[RP_GAP_NOT_LAUNCHED] = 1001 * US;
    assert_int_equal(ask(&b, &rp_finding_launch_bound)->lost_ns, 1001 * US);
    rp_arena_release(&b.arena);
}

static void host_work_is_told_apart(void **state)
{
    static const char *const rows[][2] = {
        {"preprocess (40 % of it)", "input"},
        {"/tmp/torchinductor_root/ov/cov4.py(2533): call", "compiled"},
        {"aten::arange", "operator"},
        {"ExecutorState::Process", "executor"},
        {"PjRtStreamExecutorLoadedExecutable::Execute", "executor"},
        {"write_checkpoint", "other"},
        {NULL, "other"}};
    struct rp_idle_cause cause = {.cause = rp_gap_cause_names[RP_GAP_HOST_WORK],
                                  .total_ns = 5 * MS};
    struct bench b;

    UNUSED_STATE(state);
    set_up(&b);
    b.chain.cause_ns[RP_GAP_HOST_WORK] = 5 * MS;
    b.part.idle_causes = &cause;
    b.part.nidle_causes = 1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cause.evidence = rows[i][0];
        check_kind(&b, &rp_finding_host_work, rows[i][1]);
    }
    rp_arena_release(&b.arena);
}

static void late_ranks_are_told_apart(void **state)
{
    static const char *const rows[][4] = {
        {"compute", "gemm", "compute", "it computed longer than the others (gemm)"},
        {"host_work", "read_shard", "input", "it ran read_shard"},
        {"data_loader", NULL, "input", "it waited for input data"},
        {"host_work", "save", "host", "it ran save"},
        {"host_work", NULL, "host", "its host ran something else"},
        {"other_rank", NULL, "other", "its host waited for other ranks"},
        {"previous", "all_reduce", "other", "delayed the others by 5.00 ms"}};
    struct bench b;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set_up(&b);
        b.chain.ncollectives = 1;
        b.chain.margin_ns = b.chain_rank.margin_ns = 5 * MS;
        rp_late_add(&b.chain_rank.lates,
                    &(struct rp_late){.cause = rows[i][0], .evidence = rows[i][1]}, 5 * MS);
        check_kind(&b, &rp_finding_straggler, rows[i][2]);
        assert_contains(b.root.findings[0].evidence[0], rows[i][3]);
        rp_arena_release(&b.arena);
    }
}

/* ------------------------------------------------------------------ traces */

static void copies_are_told_apart(void **state)
{
    static const char *const rows[][2] = {{"Memcpy HtoD (Pageable -> Device)", "pageable"},
                                          {"Memcpy HtoD (Pinned -> Device)", "pinned"},
                                          {"Memcpy DtoH (Device -> Pageable)", "back"},
                                          {"Memcpy DtoD (Device -> Device)", "inside"},
                                          {"Memset (Device)", "fill"},
                                          {"Memcpy HtoD (Host -> Device)", "other"}};
    const struct rp_finding *copies = &rp_finding_copies;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row trace[] = {
            {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4 * US, 1},
            {'X', "cuda_runtime", "cudaMemcpyAsync", 1, 1, 5 * US, 4 * US, 2},
            {'X', "kernel", "gemm", 0, 7, 10 * US, 100 * US, 1, 7},
            {'X', "gpu_memcpy", rows[i][0], 0, 7, 110 * US, 50 * US, 2, 7}};
        const struct rp_report_finding *found;
        struct found f;

        find_in(&f, trace, 4);
        found = finding_of(&f, "copies");
        assert_non_null(found);
        assert_int_equal(found->lost_ns, 50 * US);
        assert_string_equal(found->title, copies->kinds[rp_finding_kind(copies, rows[i][1])].title);
        assert_contains(found->evidence[0], rows[i][0]);
        found_end(&f);
    }
}

/* n kernels on one stream, each `ns` long and `gap` after the one before, all launched long before;
   one of a millisecond comes first. */
static size_t stream_of(struct row *rows, int n, int64_t ns, int64_t gap)
{
    int64_t at = 10 * US;

    rows[0] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 2, 1};
    rows[1] = (struct row){'X', "kernel", "long", 0, 7, at, 1000 * US, 1, 7};
    at += 1000 * US;
    for (int i = 1; i <= n; i++) {
        rows[2 * i] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, i * 10, 2, i + 1};
        rows[2 * i + 1] = (struct row){'X', "kernel", "k", 0, 7, at + gap, ns, i + 1, 7};
        at += gap + ns;
    }
    return 2 * (size_t)n + 2;
}

static int64_t lost_in_stream(const char *id, int n, int64_t ns, int64_t gap)
{
    struct row rows[202];
    struct found f;
    int64_t lost;

    find_in(&f, rows, stream_of(rows, n, ns, gap));
    lost = lost_to(&f, id);
    found_end(&f);
    return lost;
}

static void gaps_are_of_tiny_kernels_or_of_launches(void **state)
{
    struct rp_tiny_kernels k = {.kernels = 10, .tiny = 5};
    struct bench b;

    UNUSED_STATE(state);
    /* 40 gaps of 1 us beside a millisecond */
    assert_int_equal(lost_in_stream("tiny-kernels", 40, 9 * US, US), 40 * US);
    assert_int_equal(lost_in_stream("tiny-kernels", 40, 11 * US, US), 0);
    assert_int_equal(lost_in_stream("launch-latency", 40, 11 * US, US), 0); /* 3 % of the span */

    set_up(&b);
    b.part.kept[RP_KEPT_tiny_kernels] = (struct rp_kept){1, &k};
    k.gap_ns = 2 * MS; /* of 9.5 ms: the way of launches is as long as it may be */
    b.chain.cause_ns[RP_GAP_LAUNCH_LATENCY] = 9500 * US;
    assert_int_equal(ask(&b, &rp_finding_tiny_kernels)->lost_ns, 2 * MS);
    assert_null(ask(&b, &rp_finding_launch_latency));
    b.chain.cause_ns[RP_GAP_LAUNCH_LATENCY] = 10500 * US;
    assert_null(ask(&b, &rp_finding_tiny_kernels));
    assert_int_equal(ask(&b, &rp_finding_launch_latency)->lost_ns, 10500 * US);
    b.chain.cause_ns[RP_GAP_LAUNCH_LATENCY] = 20 * MS; /* most of it is before tiny kernels */
    k.gap_ns = 15500 * US;
    assert_null(ask(&b, &rp_finding_tiny_kernels));
    k.gap_ns = 16500 * US;
    assert_non_null(ask(&b, &rp_finding_tiny_kernels));
    rp_arena_release(&b.arena);
}

/* A kernel of `ns` with so much of the device, after one of 980 us with all of it: what is lost of
   a millisecond, in all. */
static int64_t lost_to_thin(int count, int64_t ns, const char *key, int64_t value)
{
    struct row rows[202];
    size_t n = stream_of(rows, count, ns, 0);
    struct found f;
    int64_t lost;

    for (size_t i = 3; i < n; i += 2) {
        rows[i].key = key;
        rows[i].value = value;
    }
    find_in(&f, rows, n);
    lost = lost_to(&f, "low-occupancy");
    found_end(&f);
    return lost;
}

static void thin_kernels_have_edges(void **state)
{
    static const char key[] = "est. achieved occupancy %";

    UNUSED_STATE(state);
    assert_int_equal(lost_to_thin(11, 100 * US, key, 23), 0); /* 88 of 2,110 us */
    assert_int_equal(lost_to_thin(9, 100 * US, key, 22), 108 * US);
    assert_int_equal(lost_to_thin(10, 100 * US, key, 22), 120 * US);
    assert_int_equal(lost_to_thin(10, 100 * US, key, 24), 0);
    assert_in_range(lost_to_thin(1, 1000 * US, key, 20), 200 * US - 9, 200 * US);
    assert_int_equal(lost_to_thin(100, 9 * US, key, 5), 0); /* tiny */
    assert_int_equal(lost_to_thin(100, 11 * US, key, 5), 880 * US);
    assert_int_equal(lost_to_thin(2, 1000 * US, "blocks per SM", 1), 0);
}

static void memory_is_full_and_not_used(void **state)
{
    static const struct {
        int64_t reserved, allocated;
        bool found;
    } cases[] = {{790, 500, false}, {810, 500, true}, {900, 710, true}, {900, 730, false}};
    struct bench b;

    UNUSED_STATE(state);
    set_up(&b);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_memory_peak peak = {cases[i].reserved, cases[i].allocated, 1000};

        b.part.kept[RP_KEPT_fragmentation] = (struct rp_kept){1, &peak};
        assert_int_equal(ask(&b, &rp_finding_fragmentation) != NULL, cases[i].found);
        assert_true(!cases[i].found || !b.root.findings[0].lost_ns);
    }
    rp_arena_release(&b.arena);
}

static void slow_operators_cost_a_share(void **state)
{
    struct rp_slow_operators slow = {.n = 1, .at = {{.op = "mm", .kernel = "gemm"}}};
    struct bench b;

    UNUSED_STATE(state);
    set_up(&b);
    b.part.kept[RP_KEPT_slow_operator] = (struct rp_kept){1, &slow};
    slow.lost_ns = 2900 * US;
    assert_null(ask(&b, &rp_finding_slow_operator));
    slow.lost_ns = 3100 * US;
    assert_int_equal(ask(&b, &rp_finding_slow_operator)->compute_ns, 3100 * US);
    assert_true(b.root.findings[0].at_most);
    rp_arena_release(&b.arena);
}

/* ------------------------------------------------------------------ clocks */

/* 39 kernels of three names, `ns` long, of which the last `late` of each name take `more` %. */
static int64_t lost_to_clock(int count, int64_t ns, int late, int more)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct row rows[202];
    int64_t at = 1000 * US, lost;
    struct found f;
    int n = 0;

    for (int i = 0; i < 3 * count; i++) {
        int64_t dur = i / 3 >= count - late ? ns + ns * more / 100 : ns;

        rows[n++] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, i * 10, 2, i + 1};
        rows[n++] = (struct row){'X', "kernel", names[i % 3], 0, 7, at, dur, i + 1, 7};
        at += dur;
    }
    find_in(&f, rows, (size_t)n);
    lost = lost_to(&f, "clock-trouble");
    found_end(&f);
    return lost;
}

/* Kernels of so many names, 12 of each, of which the first `slow` names become slower by half; and
   one kernel of another name. */
static int64_t lost_by_names(int names, int slow, int64_t other_ns)
{
    static const char *const name[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct row rows[202];
    int64_t at = 1000 * US, lost;
    struct found f;
    int n = 0;

    for (int i = 0; i < 12 * names; i++) {
        int64_t dur = i / names >= 8 && i % names < slow ? 150 * US : 100 * US;

        rows[n++] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, i * 10, 2, i + 1};
        rows[n++] = (struct row){'X', "kernel", name[i % names], 0, 7, at, dur, i + 1, 7};
        at += dur;
    }
    rows[n++] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 9000, 2, 900};
    rows[n++] = (struct row){'X', "kernel", "other", 0, 7, at, other_ns, 900, 7};
    find_in(&f, rows, (size_t)n);
    lost = lost_to(&f, "clock-trouble");
    found_end(&f);
    return lost;
}

/* Of n kernels the first `early` begin before their launches. */
static bool is_doubted(int n, int early)
{
    struct row *rows = calloc(2 * (size_t)n, sizeof *rows);
    struct found f;
    bool doubted;

    assert_non_null(rows);
    for (int i = 0; i < n; i++) {
        int64_t at = (i + 1) * 100 * US;

        rows[2 * i] = (struct row){
            'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, i < early ? at + US : at - US, 2, i + 1};
        rows[2 * i + 1] = (struct row){'X', "kernel", "k", 0, 7, at, 99 * US, i + 1, 7};
    }
    find_in(&f, rows, 2 * (size_t)n);
    doubted = finding_of(&f, "clock-trouble") != NULL;
    found_end(&f);
    free(rows);
    return doubted;
}

static void clocks_have_edges(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(lost_to_clock(13, 100 * US, 5, 20), 3 * 5 * 20 * US);
    assert_int_equal(lost_to_clock(12, 100 * US, 5, 20), 3 * 5 * 20 * US);
    assert_int_equal(lost_to_clock(11, 100 * US, 5, 20), 0); /* too few calls */
    assert_int_equal(lost_to_clock(12, 4900, 5, 20), 0);     /* too short */
    assert_true(lost_to_clock(12, 5100, 5, 20) > 0);
    assert_int_equal(lost_to_clock(24, 100 * US, 12, 4), 0); /* steps of the clock */
    assert_true(lost_to_clock(24, 100 * US, 12, 6) > 0);
    assert_int_equal(lost_by_names(2, 2, 0), 0); /* their own matter */
    assert_true(lost_by_names(3, 3, 0) > 0);
    assert_true(lost_by_names(8, 7, 0) > 0); /* 0.89 of the time */
    assert_int_equal(lost_by_names(8, 6, 0), 0);
    assert_true(lost_by_names(3, 3, 9000 * US) > 0); /* 4.2 of 13.2 ms */
    assert_int_equal(lost_by_names(3, 3, 10500 * US), 0);

    assert_false(is_doubted(100, 2));
    assert_true(is_doubted(100, 3));
    assert_true(is_doubted(390, 4));
    assert_false(is_doubted(410, 4));
}

static void few_warps_of_products_and_before_waits_are_no_fault(void **state)
{
    struct row rows[42];
    struct found f;
    size_t n = stream_of(rows, 20, 100 * US, 0);

    UNUSED_STATE(state);
    for (size_t i = 3; i < n; i += 2) {
        rows[i].key = "est. achieved occupancy %";
        rows[i].value = 5;
        rows[i].name = "sm90_xmma_gemm_f32";
    }
    find_in(&f, rows, n);
    assert_null(finding_of(&f, "low-occupancy"));
    found_end(&f);
    for (size_t i = 2; i < n; i += 2) { /* each launched when the one before has ended */
        rows[i].ts = (int64_t)i * 1000 * US;
        rows[i + 1].ts = rows[i].ts + 10 * US;
        rows[i + 1].name = "a";
    }
    find_in(&f, rows, n);
    assert_null(finding_of(&f, "low-occupancy"));
    found_end(&f);
}

/* ------------------------------------------------------------------ pauses and steps */

static void pauses_have_an_edge(void **state)
{
    static const struct {
        const struct rp_finding *row;
        enum rp_pause pause;
    } rows[] = {{&rp_finding_python, RP_PAUSE_PYTHON},
                {&rp_finding_host_code, RP_PAUSE_SPAN},
                {&rp_finding_no_operator, RP_PAUSE_NOTHING},
                {&rp_finding_host_wait, RP_PAUSE_WAIT}};
    struct rp_host_wait wait = {.call = "read"};
    struct bench b;

    UNUSED_STATE(state);
    set_up(&b);
    b.part.on_device = false;
    b.part.waits.rows.at = &wait;
    b.part.waits.rows.n = 1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        b.part.pauses.ns[rows[i].pause] = 4900 * US;
        assert_null(ask(&b, rows[i].row));
        b.part.pauses.ns[rows[i].pause] = 5100 * US;
        assert_int_equal(ask(&b, rows[i].row)->lost_ns, 5100 * US);
    }
    check_kind(&b, &rp_finding_host_wait, "input");
    b.part.pauses.ns[RP_PAUSE_DATA] = 1100 * US; /* as any finding */
    check_kind(&b, &rp_finding_data_loader, "host");
    rp_arena_release(&b.arena);
}

static void steps_are_atypical_from_an_edge_on(void **state)
{
    struct rp_report_step steps[5];
    struct bench b;

    UNUSED_STATE(state);
    set_up(&b);
    b.part.steps = steps;
    b.part.nsteps = 5;
    for (int i = 0; i < 5; i++)
        steps[i] = (struct rp_report_step){.number = i,
                                           .name = "step",
                                           .requests = RP_ABSENT_I64,
                                           .tokens = RP_ABSENT_I64,
                                           .b = {.window_ns = 20 * MS}};
    steps[3].b.window_ns = 23900 * US;
    assert_null(ask(&b, &rp_finding_atypical_step));
    steps[3].b.window_ns = 24100 * US;
    assert_int_equal(ask(&b, &rp_finding_atypical_step)->lost_ns, 4100 * US);
    assert_int_equal(b.root.findings[0].where.step, 3);
    /* what it waited for a processor is not its own */
    steps[3].unserved_ns = 90 * US;
    assert_int_equal(ask(&b, &rp_finding_atypical_step)->lost_ns, 4010 * US);
    steps[3].unserved_ns = 200 * US;
    assert_null(ask(&b, &rp_finding_atypical_step));
    rp_arena_release(&b.arena);
}

static void layouts_are_those_of_convolutions(void **state)
{
    struct bench b;

    UNUSED_STATE(state);
    set_up(&b);
    b.part.category_ns[RP_CATEGORY_LAYOUT] = 5 * MS;
    assert_null(ask(&b, &rp_finding_layout_transposes));
    b.part.category_ns[RP_CATEGORY_CONVOLUTION] = 1;
    assert_int_equal(ask(&b, &rp_finding_layout_transposes)->lost_ns, 5 * MS);
    rp_arena_release(&b.arena);
}

/* The fourth of five steps takes 10 ms longer; 'save' runs for a part of that. */
static bool names_what_is_longer(int64_t save_ns)
{
    static char marks[5][24];
    struct row rows[40];
    struct found f;
    int64_t at = 0;
    bool named;
    size_t n = 0;

    for (int i = 0; i < 5; i++) {
        int64_t dur = i == 3 ? 20 * MS : 10 * MS;

        snprintf(marks[i], sizeof marks[i], "ProfilerStep#%d", i);
        rows[n++] = (struct row){'X', "user_annotation", marks[i], 1, 1, at, dur - US};
        rows[n++] = (struct row){'X', "cpu_op", "aten::mm", 1, 1, at + US, 2 * MS};
        rows[n++] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at + MS, US, i + 1};
        rows[n++] = (struct row){'X', "kernel", "gemm", 0, 7, at + 2 * MS, MS, i + 1, 7};
        if (i == 3)
            rows[n++] = (struct row){'X', "cpu_op", "save", 1, 1, at + 4 * MS, save_ns};
        at += dur;
    }
    find_in(&f, rows, n);
    assert_int_equal(f.part.nsteps, 5);
    named = f.part.steps[3].longer != NULL;
    assert_true(!named || strstr(f.part.steps[3].longer, "save"));
    found_end(&f);
    return named;
}

static void a_step_is_longer_for_a_reason(void **state)
{
    UNUSED_STATE(state);
    assert_true(names_what_is_longer(5500 * US));
    assert_false(names_what_is_longer(4500 * US));
}

/* Collectives of one step that waits 10 ms for half of them; the others are large. */
static int64_t lost_to_small(int count, int64_t bytes, uint8_t kind, uint8_t parallel)
{
    struct rp_collective list[240] = {{.begin_ns = 0}};
    struct rp_report_step step = {.number = 0};
    const struct rp_report_finding *found;
    struct bench b;
    int64_t lost;

    set_up(&b);
    b.part.whole.end_ns = 100 * MS;
    b.part.steps = &step;
    b.part.nsteps = 1;
    b.part.workload.parallel = parallel;
    b.part.workload.mode = RP_MODE_TRAINING;
    b.chain.transfer_ns = 10 * MS;
    for (int i = 0; i < 2 * count; i++)
        list[i] = (struct rp_collective){.begin_ns = i * 100 * US,
                                         .end_ns = (i * 100 + 50) * US,
                                         .in_bytes = i < count ? bytes : 100000000,
                                         .kind = i < count ? kind : RP_COLL_ALL_REDUCE};
    b.part.collectives.list.at = list;
    b.part.collectives.list.n = (size_t)(2 * count);
    found = ask(&b, &rp_finding_small_collectives);
    lost = found ? found->lost_ns : 0;
    if (found)
        assert_contains(found->tries[0].text, kind == RP_COLL_BROADCAST ? "buffers" : "join");
    rp_arena_release(&b.arena);
    return lost;
}

static void small_collectives_have_edges(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(lost_to_small(110, 230000, RP_COLL_ALL_REDUCE, RP_PARALLEL_NONE), 5 * MS);
    assert_int_equal(lost_to_small(110, 290000, RP_COLL_ALL_REDUCE, RP_PARALLEL_NONE), 0);
    assert_int_equal(lost_to_small(110, -1, RP_COLL_ALL_REDUCE, RP_PARALLEL_NONE), 0);
    assert_int_equal(lost_to_small(90, 230000, RP_COLL_ALL_REDUCE, RP_PARALLEL_NONE), 0);
    assert_int_equal(lost_to_small(2, 1000, RP_COLL_BROADCAST, RP_PARALLEL_DDP), 5 * MS);
    assert_int_equal(lost_to_small(2, 1000, RP_COLL_BROADCAST, RP_PARALLEL_FSDP), 0);
}

/* Operators with 10 ms of a kernel each, by letter: batched products, products, softmax. */
static int64_t lost_to_attention(const char *ops)
{
    static const char *const names[] = {"aten::add", "aten::bmm", "aten::mm", "aten::_softmax"};
    struct row rows[60];
    struct found f;
    int64_t lost;
    size_t n = 0;

    for (int i = 0; ops[i]; i++) {
        const char *name = names[strcspn("abms", (char[]){ops[i], '\0'})];

        rows[n++] = (struct row){'X', "cpu_op", name, 1, 1, i * 100 * US, 90 * US};
        rows[n++] = (struct row){'X',    "cuda_runtime", "cudaLaunchKernel", 1, 1, i * 100 * US + 5,
                                 4 * US, i + 1};
        rows[n++] =
            (struct row){'X', "kernel", "kernel", 0, 7, 5 * MS + i * 10 * MS, 10 * MS, i + 1, 7};
    }
    find_in(&f, rows, n);
    lost = lost_to(&f, "unfused-attention");
    found_end(&f);
    return lost;
}

static void attention_is_a_softmax_between_products(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(lost_to_attention("mbasabm"), 30 * MS);
    assert_int_equal(lost_to_attention("mbsbmbsb"), 20 * MS);
    assert_int_equal(lost_to_attention("mbabm"), 0);
    assert_int_equal(lost_to_attention("mbasmb"), 0);
    assert_int_equal(lost_to_attention("msbm"), 0);
}

static void weights_are_read_for_few_rows(void **state)
{
    struct rp_kept_for_weights {
        int64_t ns;
        double bytes, rate;
        int64_t saved_ns, vector_ns;
    } k = {.ns = 10 * MS, .bytes = 3e10, .rate = 4.8e12};
    struct bench b;

    UNUSED_STATE(state);
    set_up(&b);
    b.part.kept[RP_KEPT_weight_reads] = (struct rp_kept){1, &k};
    k.saved_ns = 4900 * US;
    assert_null(ask(&b, &rp_finding_weight_reads));
    k.saved_ns = 5100 * US;
    assert_int_equal(ask(&b, &rp_finding_weight_reads)->lost_ns, 5100 * US);
    assert_contains(b.root.findings[0].evidence[0], "read 30.0 GB in 10.0 ms, at 3.00 TB/s");
    k = (struct rp_kept_for_weights){.vector_ns = 10200 * US};
    assert_int_equal(ask(&b, &rp_finding_weight_reads)->lost_ns, 5100 * US);
    assert_contains(b.root.findings[0].evidence[0], "one row or a few take 10.2 ms");
    rp_arena_release(&b.arena);
}

/* Steps of 100 ms in which the host runs for 10 ms and then launches a kernel of 5 ms, and ten or
   more counts of the kernel, one a step. */
static int64_t lost_to_others(int counts, int64_t ready, int64_t first, bool device,
                              const char **title)
{
    static char marks[16][24];
    const struct rp_report_finding *finding;
    struct row rows[80];
    struct found f;
    int64_t lost;
    size_t n = 0;

    for (int i = 0; i < 12; i++) {
        int64_t at = i * 100 * MS, corr = device ? i + 1 : 0;

        snprintf(marks[i], sizeof marks[i], "ProfilerStep#%d", i);
        rows[n++] = (struct row){'X', "user_annotation", marks[i], 1, 1, at, 100 * MS};
        rows[n++] = (struct row){'X', "cpu_op", "aten::mm", 1, 1, at, 94 * MS};
        if (device) {
            rows[n++] = (struct row){
                'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at + 93 * MS, 10 * US, corr};
            rows[n++] = (struct row){'X', "kernel", "gemm", 0, 7, at + 94 * MS, 6 * MS, corr, 7};
        }
        if (i < counts)
            rows[n++] = (struct row){'C',
                                     NULL,
                                     "waited for a processor",
                                     1,
                                     1,
                                     at,
                                     .key = "over_ns",
                                     .value = 100 * MS,
                                     .key2 = "ready_ns",
                                     .value2 = i ? ready : first};
    }
    rows[n++] = (struct row){'C',
                             NULL,
                             "processors",
                             1,
                             9,
                             0,
                             .key = "over_ns",
                             .value = 1000 * MS,
                             .key2 = "throttled_ns",
                             .value2 = 52 * MS};
    find_in(&f, rows, n);
    finding = finding_of(&f, "no-processor");
    lost = finding ? finding->lost_ns : 0;
    if (title)
        *title = finding ? finding->title : "";
    found_end(&f);
    return lost;
}

static void ready_threads_without_a_processor(void **state)
{
    const char *title;

    UNUSED_STATE(state);
    /* without a device all of it is lost; nine equal times are as likely as chance */
    assert_int_equal(lost_to_others(12, 10 * MS, 10 * MS, false, &title), 120 * MS);
    assert_int_equal(lost_to_others(10, 12 * MS, 12 * MS, false, NULL), 120 * MS);
    assert_int_equal(lost_to_others(9, 12 * MS, 12 * MS, false, NULL), 0);
    assert_int_equal(lost_to_others(12, 1 * MS, 60 * MS, false, NULL), 0);
    /* the limit of a cgroup stopped threads for 5.2 %: more than half of 10.0 %, less than half
     * of 11.0 % */
    assert_string_equal(title, "the limit of a cgroup stopped threads that were ready");
    lost_to_others(12, 11 * MS, 11 * MS, false, &title);
    assert_string_equal(title, "threads were ready and had no processor");
    /* the thread never ran: all idle time until the launch, but no more than it was ready */
    assert_int_equal(lost_to_others(12, 10 * MS, 10 * MS, true, NULL), 120 * MS);
    assert_int_equal(lost_to_others(0, 0, 0, true, NULL), 0);
}

/* The fourth of five steps takes 10 ms longer: in 'save' for 6 ms, and without a processor. */
static void explain_wait(int64_t ready_ns, const char *text, int64_t unserved_ns)
{
    static char marks[5][24];
    struct row rows[20];
    struct found f;
    int64_t at = 0;
    size_t n = 0;

    for (int i = 0; i < 5; i++) {
        int64_t dur = i == 3 ? 20 * MS : 10 * MS;

        snprintf(marks[i], sizeof marks[i], "ProfilerStep#%d", i);
        rows[n++] = (struct row){'X', "user_annotation", marks[i], 1, 1, at, dur};
        rows[n++] = (struct row){'X', "cpu_op", "aten::mm", 1, 1, at + US, 2 * MS};
        if (i == 3) {
            rows[n++] = (struct row){'X', "cpu_op", "save", 1, 1, at + 4 * MS, 6 * MS};
            rows[n++] = (struct row){'C',
                                     NULL,
                                     "waited for a processor",
                                     1,
                                     1,
                                     at,
                                     .key = "over_ns",
                                     .value = dur,
                                     .key2 = "ready_ns",
                                     .value2 = ready_ns};
        }
        at += dur;
    }
    find_in(&f, rows, n);
    assert_int_equal(f.part.steps[3].unserved_ns, unserved_ns);
    assert_string_equal(f.part.steps[3].longer, text);
    found_end(&f);
}

static void a_step_waits_for_a_processor(void **state)
{
    UNUSED_STATE(state);
    explain_wait(0, "'save' ran 6.00 ms longer", 0);
    explain_wait(2900 * US, "'save' ran 6.00 ms longer", 2900 * US);
    explain_wait(3100 * US,
                 "'save' ran 6.00 ms longer, and its thread waited 3.10 ms longer for a processor",
                 3100 * US);
    explain_wait(4900 * US,
                 "'save' ran 6.00 ms longer, and its thread waited 4.90 ms longer for a processor",
                 4900 * US);
    explain_wait(5100 * US, "its thread waited 5.10 ms longer for a processor", 5100 * US);
}

/* A step for each letter, whose shape it is: an operator runs twice in it, and for a capital the
   first time takes long, for a digit the second. */
struct planner {
    const char *name;
    int64_t long_ns, usual_ns;
};

static const struct rp_report_finding *find_shapes(struct found *f, const struct planner *op,
                                                   const char *steps)
{
    static char marks[24][24];
    struct row rows[24 * 7];
    int64_t at = 0;
    size_t n = 0;

    for (int i = 0; steps[i]; i++) {
        size_t mark = n++;

        snprintf(marks[i], sizeof marks[i], "ProfilerStep#%d", i);
        rows[mark] = (struct row){'X', "user_annotation", marks[i], 1, 1, at, 0};
        for (int k = 0; k < 2; k++) {
            bool longer = k ? steps[i] < 'A' : steps[i] >= 'A' && steps[i] < 'a';
            int64_t corr = 2 * i + k + 1, ns = longer ? op->long_ns : op->usual_ns;

            rows[n++] = (struct row){'X', "cpu_op", op->name, 1, 1, at + 5 * US, ns};
            rows[n++] =
                (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at + ns, 4 * US, corr};
            rows[n++] = (struct row){.phase = 'X',
                                     .category = "kernel",
                                     .name = "kernel",
                                     .tid = 7,
                                     .stream = 7,
                                     .ts = at + ns + 6 * US,
                                     .dur = 30 * US,
                                     .corr = corr,
                                     .key = "grid",
                                     .value = steps[i] | 32};
            at += ns + 50 * US;
        }
        rows[mark].dur = at - rows[mark].ts - 1 * US;
    }
    find_in(f, rows, n);
    return finding_of(f, "new-shapes");
}

static void new_shapes_come_again(void **state)
{
    static const struct {
        const char *steps;
        int64_t first_uses; /* 0: it is not found */
    } rows[] = {{"ABCDEF", 6}, {"AbCdEf", 3}, {"AbCdEfGhi", 0}, {"ABCdddddd", 0},
                {"aaaaaa", 0}, {"AaAaAa", 0}, {"ABCbaDcE", 5}};
    struct found f;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct planner op = {"vendor::plan", 20 * MS, 20 * US};
        const struct rp_report_finding *found = find_shapes(&f, &op, rows[i].steps);

        assert_int_equal(found != NULL, rows[i].first_uses > 0);
        if (found) {
            assert_in_range(found->lost_ns, rows[i].first_uses * 19900 * US,
                            rows[i].first_uses * 20100 * US);
            assert_contains(found->evidence[0], "later ones 20.0");
            assert_contains(found->tries[0].text, "bucket");
        }
        found_end(&f);
    }
}

static void a_library_that_plans_needs_less_proof(void **state)
{
    static const struct {
        struct planner op;
        const char *steps;
        bool found;
    } rows[] = {
        /* 5 times as long as later uses, but not 50 times */
        {{"aten::cudnn_convolution", 1600 * US, 300 * US}, "ABCDEF", true},
        {{"aten::cudnn_convolution", 1400 * US, 300 * US}, "ABCDEF", false},
        {{"vendor::plan", 1600 * US, 300 * US}, "ABCDEF", false},
        /* 11 and 9 of 24 first uses, which is less than half, and one of 24 later ones */
        {{"aten::cudnn_convolution", 2 * MS, 20 * US}, "AbCdEfGhIjKlMnOpQrStUvw1", true},
        {{"aten::cudnn_convolution", 2 * MS, 20 * US}, "AbCdEfGhIjKlMnOpQrstuvw1", false},
        {{"vendor::plan", 2 * MS, 20 * US}, "AbCdEfGhIjKlMnOpQrStUvw1", false},
    };
    struct found f;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct rp_report_finding *found = find_shapes(&f, &rows[i].op, rows[i].steps);

        assert_int_equal(found != NULL, rows[i].found);
        if (found)
            assert_string_equal(found->title, "convolutions are planned anew for each new size");
        found_end(&f);
    }
}

/* A step in which the host reads n times, waits if it does, and then uploads, a millisecond
   later. */
static int64_t lost_to_turns(int n, bool waits)
{
    struct row rows[120];
    struct found f;
    size_t k = 0;

    rows[k++] = (struct row){'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, n * 2 * MS};
    for (int i = 0; i < n; i++) {
        int64_t at = i * 2 * MS;

        rows[k++] =
            (struct row){'X', "cuda_runtime", "cudaMemcpyAsync", 1, 1, at + 10, 5 * US, 2 * i + 1};
        rows[k++] = (struct row){'X',          "gpu_memcpy", "Memcpy DtoH", 0, 7,
                                 at + 10 * US, 990 * US,     2 * i + 1,     7};
        rows[k++] = (struct row){
            'X',          "cuda_runtime", waits ? "cudaStreamSynchronize" : "cudaEventRecord", 1, 1,
            at + 20 * US, 970 * US};
        rows[k++] = (struct row){'X',    "cuda_runtime", "cudaMemcpyAsync", 1, 1, at + 1990 * US,
                                 5 * US, 2 * i + 2};
        rows[k++] = (struct row){
            'X', "gpu_memcpy", "Memcpy HtoD", 0, 7, at + 2000 * US, 10 * US, 2 * i + 2, 7};
    }
    find_in(&f, rows, k);
    int64_t lost = lost_to(&f, "turns");
    found_end(&f);
    return lost;
}

static void turns_have_an_edge(void **state)
{
    UNUSED_STATE(state);
    assert_in_range(lost_to_turns(16, true), 15900 * US, 16100 * US);
    assert_int_equal(lost_to_turns(15, true), 0);
    assert_int_equal(lost_to_turns(16, false), 0);
}

/* Work of 10 us, 90 us apart, by letter: gather or scatter, product, normalization. */
static int64_t lost_to_experts(const char *ops)
{
    enum { MOST = 64 };
    struct rp_cost_call calls[MOST];
    struct rp_work_item items[MOST];
    struct rp_gap gaps[MOST];
    struct rp_cost_calls known = {0};
    struct rp_work work = {0};
    rp_gap_vec idle = {0};
    int64_t kept[3] = {0};
    struct rp_err err;
    size_t n = 0;

    for (; ops[n]; n++) {
        int64_t at = (int64_t)n * 100 * US;

        calls[n] = (struct rp_cost_call){.item = (uint32_t)n,
                                         .category = ops[n] == 'g'   ? RP_CATEGORY_EMBEDDING
                                                     : ops[n] == 'p' ? RP_CATEGORY_MATMUL
                                                                     : RP_CATEGORY_NORMALIZATION};
        items[n] = (struct rp_work_item){.begin_ns = at, .end_ns = at + 10 * US};
        gaps[n] = (struct rp_gap){.begin_ns = at + 10 * US, .end_ns = at + 100 * US};
    }
    known.calls.at = calls;
    work.items.at = items;
    idle.at = gaps;
    known.calls.n = work.items.n = idle.n = n;
    struct rp_finding_rank rank = {.work = &work, .gaps = &idle, .calls = &known};
    assert_int_equal(rp_finding_experts.measure(&rank, kept, &err), RP_OK);
    return kept[2];
}

static void experts_run_in_a_loop(void **state)
{
    UNUSED_STATE(state);
    /* seven of eight parts of 31 gaps of 90 us */
    assert_int_equal(lost_to_experts("gppggppggppggppggppggppggppggppg"),
                     31 * 90 * US - 31 * 90 * US / 8);
    assert_int_equal(lost_to_experts("gppggppggppggppggppggppggppg"), 0);
    assert_int_equal(lost_to_experts("gppggppggppggppgngppggppggppggppg"), 0);
    assert_int_equal(lost_to_experts("gppggpggppggpggppggpggppggpg"), 0);
}

/* It is shown where it is exposed. */
static void exposed_transfers_are_marked(void **state)
{
    const struct rp_report_finding *found;
    struct bench b;

    UNUSED_STATE(state);
    set_up(&b);
    b.chain.transfer_ns = 20 * MS;
    found = ask(&b, &rp_finding_exposed_comm);
    assert_non_null(found);
    assert_int_equal(found->lost_ns, 20 * MS);
    assert_true(found->where.exposed);
    check_kind(&b, &rp_finding_exposed_comm, "device");
    b.part.on_device = false;
    check_kind(&b, &rp_finding_exposed_comm, "host");
    b.chain.transfer_ns = 999 * US;
    assert_null(ask(&b, &rp_finding_exposed_comm));
    rp_arena_release(&b.arena);
}

int test_findings(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exposed_transfers_are_marked),
        cmocka_unit_test(a_finding_costs_a_hundredth_of_the_span),
        cmocka_unit_test(host_work_is_told_apart),
        cmocka_unit_test(late_ranks_are_told_apart),
        cmocka_unit_test(copies_are_told_apart),
        cmocka_unit_test(gaps_are_of_tiny_kernels_or_of_launches),
        cmocka_unit_test(thin_kernels_have_edges),
        cmocka_unit_test(memory_is_full_and_not_used),
        cmocka_unit_test(slow_operators_cost_a_share),
        cmocka_unit_test(clocks_have_edges),
        cmocka_unit_test(few_warps_of_products_and_before_waits_are_no_fault),
        cmocka_unit_test(pauses_have_an_edge),
        cmocka_unit_test(steps_are_atypical_from_an_edge_on),
        cmocka_unit_test(layouts_are_those_of_convolutions),
        cmocka_unit_test(new_shapes_come_again),
        cmocka_unit_test(a_library_that_plans_needs_less_proof),
        cmocka_unit_test(a_step_is_longer_for_a_reason),
        cmocka_unit_test(a_step_waits_for_a_processor),
        cmocka_unit_test(small_collectives_have_edges),
        cmocka_unit_test(attention_is_a_softmax_between_products),
        cmocka_unit_test(weights_are_read_for_few_rows),
        cmocka_unit_test(turns_have_an_edge),
        cmocka_unit_test(experts_run_in_a_loop),
        cmocka_unit_test(ready_threads_without_a_processor),
    };

    return cmocka_run_group_tests_name("findings", tests, NULL, NULL);
}
