/* SPDX-License-Identifier: Apache-2.0 */
/* What `comm` calls uneven, slow, late and apart, on both sides of each edge. */
#include "explain/ask_fixture.h"
#include "explain/comm/comm.h"
#include "explain/comm/shared.h"
#include "trace/trace_fixtures.h"

extern const struct rp_question_row rp_ask_comm;

#define US 1000
#define MS 1000000

/* Whether a note about two ranks contains the text. They are freed. */
static bool is_noted(struct rp_trace *a, struct rp_trace *b, const char *text)
{
    struct rp_trace *t[] = {a, b};
    struct rp_result *result = ASK_TRACES(comm, t, 2, {"limit", "10"});
    const struct rp_comm_root *root = result->root;
    bool noted = false;

    for (size_t i = 0; i < root->nnotes; i++)
        noted = noted || strstr(root->notes[i], text);
    rp_result_free(result);
    for (size_t r = 0; r < 2; r++) {
        t[r]->ndevices = 0; /* not the trace's own */
        rp_trace_free(t[r]);
    }
    return noted;
}

static struct rp_trace *sends_bytes(int64_t bytes)
{
    const struct row rows[] = {{'X', "kernel", "ncclDevKernel_AllToAll", 0, 20, 2 * MS, 4 * MS, 3,
                                20, 0, "In msg nelems", bytes, 0, "dtype", "Byte", "Group size", 2,
                                "Collective name", "all_to_allv"}};

    return TRACE_OF(rows);
}

static void an_uneven_exchange_has_an_edge(void **state)
{
    UNUSED_STATE(state);
    /* of 1,000 in the mean: 1,110 are 11 % more, 1,090 are 9 % */
    assert_true(is_noted(sends_bytes(1110), sends_bytes(890), "imbalance: in one all_to_all"));
    assert_false(is_noted(sends_bytes(1090), sends_bytes(910), "imbalance"));
}

/* `n` all-reduces of `dur` every 10 ms. The first `napart` of them end later by `apart` on every
   second rank, so that the clocks of both are the same in the mean. */
static struct rp_trace *ends_apart(int rank, int n, int napart, int64_t dur, int64_t apart)
{
    struct row rows[64] = {{0}};

    for (int i = 0; i < n; i++)
        rows[i] = (struct row){'X',
                               "kernel",
                               "ncclDevKernel_AllReduce",
                               0,
                               20,
                               (1 + i * 10) * MS,
                               dur + (i < napart && i % 2 == rank ? apart : 0),
                               i + 1,
                               20,
                               0,
                               "In msg nelems",
                               1000000,
                               0,
                               "dtype",
                               "Byte"};
    return finish_valid(build_rows(rows, (size_t)n));
}

static bool are_apart(int n, int napart, int64_t dur, int64_t apart)
{
    return is_noted(ends_apart(0, n, napart, dur, apart), ends_apart(1, n, napart, dur, apart),
                    "the ranks do not leave together");
}

static void ends_that_are_apart_have_an_edge(void **state)
{
    UNUSED_STATE(state);
    /* a quarter of the transfer, which is longer by what is apart: 667 µs of 2.667 ms */
    assert_true(are_apart(40, 4, 2 * MS, 720 * US));
    assert_false(are_apart(40, 4, 2 * MS, 600 * US));
    /* what a collective takes beside its bytes, 50 µs */
    assert_true(are_apart(40, 4, 100 * US, 54 * US));
    assert_false(are_apart(40, 4, 100 * US, 46 * US));
    /* a tenth of 60 */
    assert_true(are_apart(60, 6, 2 * MS, 900 * US));
    assert_false(are_apart(60, 5, 2 * MS, 900 * US));
}

/* Two devices of a kind that carries 450 GB/s each way: an all-reduce. */
static struct rp_trace *reduces(int64_t bytes, int64_t us, struct rp_device *device)
{
    static const char gpu[] = "NVIDIA H100 80GB HBM3";
    const struct row rows[] = {
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, 2 * MS, us * US, 3, 20, 0,
         "In msg nelems", bytes, 0, "dtype", "Byte"},
        {'X', "kernel", gpu, 0, 7, 0, MS, 1, 7},
    };
    struct rp_trace *t = TRACE_OF(rows);

    for (rp_str s = 0; s < t->str.n; s++)
        if (!strcmp(rp_trace_str(t, s), gpu))
            device->name = s;
    t->devices = device;
    t->ndevices = 1;
    return t;
}

static bool is_slow(int64_t bytes, int64_t us)
{
    struct rp_device device[2] = {{.memory_bytes = 1}, {.memory_bytes = 1}};

    return is_noted(reduces(bytes, us, &device[0]), reduces(bytes, us, &device[1]), "slow link");
}

static void a_slow_link_has_edges(void **state)
{
    UNUSED_STATE(state);
    /* 450 MB need 1 ms and 50 µs to start: four times that are 4.2 ms */
    assert_true(is_slow(450000000, 4600));
    assert_false(is_slow(450000000, 3800));
    /* 22.5 MB need as long as the start, and what needs less says nothing about the link */
    assert_true(is_slow(24500000, 100000));
    assert_false(is_slow(20500000, 100000));
}

static void what_late_ranks_share_has_an_edge(void **state)
{
    struct rp_late_rank ranks[] = {{"a", 0, 43}, {"a", 1, 42}, {"b", 0, 8}, {"b", 1, 7}};
    struct rp_arena arena = {0};

    UNUSED_STATE(state);
    rp_arena_init(&arena);
    assert_contains(rp_late_shared(ranks, 4, &arena), "host a: 2 of its ranks cause 85 %");
    ranks[0].margin_ns = 38; /* 75 of 100 */
    ranks[1].margin_ns = 37;
    ranks[2].margin_ns = 13;
    ranks[3].margin_ns = 12;
    assert_null(rp_late_shared(ranks, 4, &arena));
    /* one of them with less than an even part: the host is not at fault */
    ranks[0].margin_ns = 75;
    ranks[1].margin_ns = 24;
    ranks[2].margin_ns = ranks[3].margin_ns = 0;
    assert_null(rp_late_shared(ranks, 4, &arena));
    rp_arena_release(&arena);
}

/* In two collectives: rank 0 is late by `first` ms in one, rank 1 by `second` in the other. */
static struct rp_trace *is_late(int64_t first, int64_t second)
{
    const struct row rows[] = {
        {'X', "kernel", "gemm", 0, 7, 0, (1 + first) * MS, 1, 7},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, (1 + first) * MS, (200 - first) * MS, 2,
         20, 0, "In msg nelems", 1000000, 0, "dtype", "Byte"},
        {'X', "kernel", "gemm", 0, 7, 210 * MS, (1 + second) * MS, 3, 7},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, (211 + second) * MS, (200 - second) * MS,
         4, 20, 0, "In msg nelems", 1000000, 0, "dtype", "Byte"},
    };

    return TRACE_OF(rows);
}

static void expect_delay(int64_t first, int64_t second, const char *wanted)
{
    struct rp_trace *t[] = {is_late(first, 0), is_late(0, second), is_late(0, 0)};
    struct rp_result *result = ASK_TRACES(comm, t, 3, {"limit", "10"});

    assert_contains(((const struct rp_comm_root *)result->root)->delay_text, wanted);
    rp_result_free(result);
    for (size_t r = 0; r < 3; r++)
        rp_trace_free(t[r]);
}

static void named_ranks_cause_most(void **state)
{
    UNUSED_STATE(state);
    expect_delay(85, 15, "rank 0: arrived last in 1 of 2 collectives");
    expect_delay(75, 25, "ranks 0, 1: arrived last in 2 of 2 collectives");
}

/* ------------------------------------------------------------------ pipelines */

/* Three stages that pass one message forward and back; the last computes `ns`, the others 1 ms. */
static const char *stages_text(int64_t ns, struct rp_arena *arena)
{
    static const uint32_t from_to[4][2] = {{0, 1}, {1, 2}, {2, 1}, {1, 0}};
    struct rp_collective list[3][4] = {{{0}}};
    struct rp_collectives ranks[3] = {{{0}}};
    const struct rp_collectives *lists[3];
    struct rp_comm_lead leads[4] = {{0}};
    struct rp_comm_lane lane[3];
    const struct rp_comm_lane *lanes[3];
    struct rp_clock clocks[3] = {{0}};
    uint32_t rank[4][2], at[4][2];
    struct rp_rendezvous found[4];
    struct rp_rendezvous_list all = {.at = found, .clocks = clocks};
    const int64_t numbers[3] = {0, 1, 2};
    struct rp_comm_root root = {0};
    struct rp_err err = RP_ERR_INIT;

    for (size_t r = 0; r < 3; r++) {
        ranks[r].list.at = list[r];
        lists[r] = &ranks[r];
        lane[r] = (struct rp_comm_lane){
            .leads = leads, .nleads = 4, .compute_ns = r == 2 ? ns : MS, .end_ns = 10 * MS};
        lanes[r] = &lane[r];
    }
    for (size_t i = 0; i < 4; i++, all.n++) {
        bool high = from_to[i][0] > from_to[i][1];

        for (size_t k = 0; k < 2; k++) {
            uint32_t r = from_to[i][k];

            rank[i][k ? !high : high] = r;
            at[i][k ? !high : high] = (uint32_t)ranks[r].list.n;
            list[r][ranks[r].list.n++] = (struct rp_collective){.begin_ns = (int64_t)i * MS,
                                                                .end_ns = (int64_t)i * MS + MS / 2};
        }
        found[i] = (struct rp_rendezvous){
            .n = 2, .rank = rank[i], .at = at[i], .senders = (uint8_t)(1 + high)};
    }
    assert_ok(rp_rendezvous_find_stages(&all, lists, 3, arena, &err), &err);
    assert_non_null(all.stages);
    assert_ok(rp_comm_add_stages(&all, lists, lanes, numbers, 3, 10, arena, &root, &err), &err);
    return root.pipeline_text;
}

static void uneven_stages_have_an_edge(void **state)
{
    struct rp_arena arena = {0};

    UNUSED_STATE(state);
    rp_arena_init(&arena);
    assert_contains(stages_text(MS / 100 * 111, &arena),
                    "stage 2 (rank 2) computes 11 % longer than the median stage");
    assert_null(strstr(stages_text(MS / 100 * 109, &arena), "longer than the median"));
    rp_arena_release(&arena);
}

/* ------------------------------------------------------------------ a hang */

/* The collective that the main thread is in after so many milliseconds of samples. */
static const char *open_kind(int ms, struct rp_arena *arena)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, US, 1},
        {'X', "kernel", "gemm", 0, 7, 10 * US, US, 1, 7},
    };
    static const struct {
        const char *name, *file;
    } frames[] = {{"step", "/home/me/train.py"},
                  {"all_reduce", "/usr/lib/python3.12/dist-packages/torch/distributed/c10d.py"}};
    struct rp_builder *b = build_rows(rows, 2);
    uint32_t stack = RP_NONE, frame;
    struct rp_comm_place place;
    struct rp_err err = RP_ERR_INIT;
    struct rp_trace *t;

    for (size_t i = 0; i < 2; i++) {
        struct rp_call_frame f = {str_of(b, frames[i].name), str_of(b, frames[i].file), 7,
                                  RP_FRAME_PYTHON};

        assert_code(rp_builder_frame(b, &f, &frame, NULL), RP_OK);
        assert_code(rp_builder_stack(b, stack, frame, &stack, NULL), RP_OK);
    }
    for (int i = 0; i < ms; i++) {
        struct rp_raw_sample raw = {(1 + i) * (int64_t)MS, MS, track_of(b, 1, 1), stack, 0};

        assert_code(rp_builder_add_sample(b, &raw, NULL), RP_OK);
    }
    t = finish_valid(b);
    assert_ok(rp_comm_find_place(t, 0, arena, &place, &err), &err);
    assert_string_equal(place.line, "/home/me/train.py:7 step");
    rp_trace_free(t);
    return place.kind;
}

static void a_collective_that_may_not_end_has_an_edge(void **state)
{
    struct rp_arena arena = {0};

    UNUSED_STATE(state);
    rp_arena_init(&arena);
    assert_string_equal(open_kind(1100, &arena), "all_reduce");
    assert_null(open_kind(900, &arena));
    rp_arena_release(&arena);
}

/* Operators inside of operators compute once; those of two threads at the same time, too. */
static void compute_of_the_host_is_a_union(void **state)
{
    const struct row rows[] = {{'X', "cpu_op", "aten::linear", 1, 1, 0, 100},
                               {'X', "cpu_op", "aten::mm", 1, 1, 10, 40},
                               {'X', "cpu_op", "aten::add", 1, 1, 200, 50},
                               {'X', "cpu_op", "aten::mm", 1, 2, 60, 60}};
    const struct rp_collectives none = {0};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_work_unions u = {0};

    UNUSED_STATE(state);
    assert_code(rp_leads_unite_host(t, &none, &u, NULL), RP_OK);
    assert_int_equal(u.cls[RP_WORK_COMPUTE].n, 2);
    assert_int_equal(rp_union_length(u.cls[RP_WORK_COMPUTE].at, 2), 120 + 50);
    assert_int_equal(rp_union_length(u.all.at, u.all.n), 120 + 50);
    rp_work_unions_release(&u);
    rp_trace_free(t);
}

int test_comm_edges(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_uneven_exchange_has_an_edge),
        cmocka_unit_test(ends_that_are_apart_have_an_edge),
        cmocka_unit_test(a_slow_link_has_edges),
        cmocka_unit_test(what_late_ranks_share_has_an_edge),
        cmocka_unit_test(named_ranks_cause_most),
        cmocka_unit_test(uneven_stages_have_an_edge),
        cmocka_unit_test(a_collective_that_may_not_end_has_an_edge),
        cmocka_unit_test(compute_of_the_host_is_a_union),
    };

    return cmocka_run_group_tests_name("comm_edges", tests, NULL, NULL);
}
