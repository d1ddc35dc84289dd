/* SPDX-License-Identifier: Apache-2.0 */
/* What is recorded about a collective, each argument alone, and which source counts. */
#include "facts/ranks/collectives.h"
#include "trace/trace_fixtures.h"

/* The facts of event `at` of the rows, whose launch is event `launch`, or -1. */
static struct rp_coll_facts facts_in(struct rp_trace *t, int64_t at, int64_t launch)
{
    struct rp_coll_facts f;
    struct rp_coll_reader r;

    assert_code(rp_coll_reader_init(&r, t, NULL), RP_OK);
    f = rp_coll_read(&r, event_n(t, at), launch < 0 ? RP_NONE : event_n(t, launch));
    rp_coll_reader_release(&r);
    return f;
}

static struct rp_coll_facts facts_of(const struct row *rows, size_t n, int64_t at, int64_t launch)
{
    struct rp_trace *t = trace_of(rows, n);
    struct rp_coll_facts f = facts_in(t, at, launch);

    rp_trace_free(t);
    return f;
}

#define KERNEL(...)                                                                 \
    {                                                                               \
        'X', "kernel", "ncclDevKernel_Generic", 0, 7, 100, 50, 1, 7, 0, __VA_ARGS__ \
    }

static struct rp_coll_facts of_kernel(struct row row)
{
    return facts_of(&row, 1, 0, -1);
}

static void each_argument_alone(void **state)
{
    struct rp_coll_facts f = of_kernel((struct row)KERNEL(NULL));

    UNUSED_STATE(state);
    assert_int_equal(f.kind, RP_COLL_OTHER);
    assert_true(!f.named && !f.awaited && !f.dtype && !f.algorithm && !f.dimension);
    assert_true(f.in_elements == -1 && f.out_elements == -1 && f.item_bytes == 0);
    assert_true(f.group == RP_NONE && f.members == RP_NONE && f.group_number == -1);
    assert_true(f.seq == -1 && f.group_size == 0);
    f = of_kernel((struct row)KERNEL("In msg nelems", 12, 0, "dtype", "Float"));
    assert_true(f.in_elements == 12 && f.out_elements == -1 && f.item_bytes == 4);
    assert_string_equal(f.dtype, "f32");
    f = of_kernel((struct row)KERNEL("Out msg nelems", 13, 0, "dtype", "Half"));
    assert_true(f.in_elements == -1 && f.out_elements == 13 && f.item_bytes == 2);
    f = of_kernel((struct row)KERNEL("Message size [bytes]", 4096)); /* of NCCL's ranges */
    assert_true(f.in_elements == 4096 && f.item_bytes == 1 && !f.dtype);
    f = of_kernel((struct row)KERNEL("Message size [bytes]", 4096, 0, "dtype", "Half"));
    assert_true(f.in_elements == -1 && f.item_bytes == 2);
    f = of_kernel(
        (struct row)KERNEL("Message size [bytes]", 4096, 0, NULL, NULL, "In msg nelems", 3));
    assert_true(f.in_elements == 3 && f.item_bytes == 0);
    f = of_kernel((struct row)KERNEL("Seq", 5, 0, NULL, NULL, "Group size", 8));
    assert_true(f.seq == 5 && f.group_size == 8);
    f = of_kernel((struct row)KERNEL("Process Group Name", 3));
    assert_true(f.group == RP_NONE && f.group_number == 3);
    f = of_kernel((struct row)KERNEL(NULL, 0, 0, "Process Group Name", "world", NULL, 0,
                                     "Process Group Ranks", "[0, 1]"));
    assert_true(f.group != RP_NONE && f.members != RP_NONE && f.group_number == -1);
    f = of_kernel((struct row)KERNEL(NULL, 0, 0, "Process Group Description", "mesh_tp"));
    assert_int_equal(f.dimension, RP_DIMENSION_TENSOR);
    f = of_kernel((struct row)KERNEL(NULL, 0, 0, "algorithm", "RING", NULL, 0, "protocol", "LL"));
    assert_string_equal(rp_coll_algorithm_name(f.algorithm), "RING LL");
    f = of_kernel((struct row)KERNEL(NULL, 0, 0, "algorithm", "RING"));
    assert_int_equal(f.algorithm, 0);
    f = of_kernel((struct row)KERNEL(NULL, 0, 0, "Collective name", "allreduce"));
    assert_true(f.kind == RP_COLL_ALL_REDUCE && f.named && !f.awaited);
    f = of_kernel((struct row)KERNEL(NULL, 0, 0, "Collective name", "Iallgather"));
    assert_true(f.kind == RP_COLL_ALL_GATHER && f.named && f.awaited);
    f = of_kernel((struct row)KERNEL(NULL, 0, 0, "Collective name", "IBcast"));
    assert_true(f.kind == RP_COLL_BROADCAST && !f.awaited);
    f = of_kernel((struct row)KERNEL(NULL, 0, 0, "Collective name", "coalesced"));
    assert_true(f.kind == RP_COLL_OTHER && !f.named);
}

static void algorithms_are_read_in_names(void **state)
{
    static const struct {
        const char *name, *is;
    } rows[] = {{"ncclDevKernel_AllReduce_Sum_f16_RING_LL(x)", "RING LL"},
                {"ncclDevKernel_AllReduce_Sum_f16_RING_LL128", "RING LL128"},
                {"AllReduce_TREE_SIMPLE", "TREE SIMPLE"},
                {"AllReduce_NVLS_TREE_SIMPLE", "NVLS_TREE SIMPLE"},
                {"AllReduce_NVLS_SIMPLE", "NVLS SIMPLE"},
                {"COLLNET_DIRECT_SIMPLE", "COLLNET_DIRECT SIMPLE"},
                {"x_COLLNET_CHAIN_LL", "COLLNET_CHAIN LL"},
                {"PAT_SIMPLE", "PAT SIMPLE"},
                {"STRING_LL", NULL}, /* the end of another word */
                {"RINGS_LL", NULL},
                {"AllReduce_RING_FAST", NULL},
                {"AllReduce", NULL}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *name = rp_coll_algorithm_name(rp_coll_algorithm_of(rows[i].name));

        if (rows[i].is)
            assert_string_equal(name, rows[i].is);
        else
            assert_null(name);
    }
    assert_non_null(rp_coll_algorithm_name(21)); /* 7 algorithms with 3 protocols */
    assert_null(rp_coll_algorithm_name(22));
}

static void names_are_kinds_in_full(void **state)
{
    static const struct {
        const char *name;
        enum rp_coll_kind kind;
    } rows[] = {{"ncclBroadcast", RP_COLL_BROADCAST},
                {"MPI_Bcast", RP_COLL_BROADCAST},
                {"barrier", RP_COLL_BARRIER},
                {"MPI_Win_fence", RP_COLL_BARRIER},
                {"vllm::cross_device_reduce_1stage", RP_COLL_ALL_REDUCE},
                {"quickreduce::x", RP_COLL_ALL_REDUCE},
                {"custom_ar", RP_COLL_ALL_REDUCE},
                {"oneShotX", RP_COLL_ALL_REDUCE},
                {"two_shot", RP_COLL_ALL_REDUCE},
                {"deep_ep::dispatch", RP_COLL_ALL_TO_ALL},
                {"combine", RP_COLL_ALL_TO_ALL},
                {"MPI_Gather", RP_COLL_GATHER},
                {"MPI_Scatter", RP_COLL_SCATTER},
                {"MPI_Send", RP_COLL_SEND_RECV},
                {"MPI_Recv", RP_COLL_SEND_RECV},
                {"Zebra_Reduce", RP_COLL_REDUCE},
                {"ALL__REDUCE", RP_COLL_ALL_REDUCE}};
    char longest[160];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(rp_coll_kind_of(rows[i].name), rows[i].kind);
    rp_coll_kind_of("xxxxallreduce"); /* nothing is left of a name before */
    assert_int_equal(rp_coll_kind_of("xxxx"), RP_COLL_OTHER);
    memset(longest, 'x', sizeof longest);
    strcpy(longest + 118, "allreduce"); /* the last of 127 letters that count */
    assert_int_equal(rp_coll_kind_of(longest), RP_COLL_ALL_REDUCE);
    longest[118] = 'x';
    strcpy(longest + 119, "allreduce");
    assert_int_equal(rp_coll_kind_of(longest), RP_COLL_OTHER);
}

static void factors_of_all_kinds(void **state)
{
    UNUSED_STATE(state);
    assert_true(rp_coll_bus_factor(RP_COLL_ALL_REDUCE, 2) == 1);
    assert_true(rp_coll_bus_factor(RP_COLL_REDUCE_SCATTER, 4) == 0.75);
    assert_true(rp_coll_bus_factor(RP_COLL_ALL_TO_ALL, 4) == 0.75);
    assert_true(rp_coll_bus_factor(RP_COLL_GATHER, 2) == 0.5);
    assert_true(rp_coll_bus_factor(RP_COLL_SCATTER, 2) == 0.5);
    assert_true(rp_coll_bus_factor(RP_COLL_REDUCE, 2) == 1);
    assert_true(rp_coll_bus_factor(RP_COLL_SEND_RECV, 2) == 1);
    assert_true(rp_coll_bus_factor(RP_COLL_OTHER, 8) == 0);
    assert_true(rp_coll_bus_factor(RP_COLL_BROADCAST, 1) == 0);
}

static void words_of_groups(void **state)
{
    static const struct {
        const char *text;
        enum rp_dimension is;
    } rows[] = {{"tensor", RP_DIMENSION_TENSOR},     {"pipe_0", RP_DIMENSION_PIPELINE},
                {"PIPELINE", RP_DIMENSION_PIPELINE}, {"data", RP_DIMENSION_DATA},
                {"ddp", RP_DIMENSION_DATA},          {"fsdp", RP_DIMENSION_DATA},
                {"hsdp", RP_DIMENSION_DATA},         {"shard", RP_DIMENSION_DATA},
                {"replicate", RP_DIMENSION_DATA},    {"dp", RP_DIMENSION_DATA},
                {"cp", RP_DIMENSION_CONTEXT},        {"sp", RP_DIMENSION_CONTEXT},
                {"sequence", RP_DIMENSION_CONTEXT},  {"ep", RP_DIMENSION_EXPERT},
                {"expert", RP_DIMENSION_EXPERT},     {"7zTPz", RP_DIMENSION_UNKNOWN},
                {"7tp", RP_DIMENSION_TENSOR},        {"[tp]", RP_DIMENSION_TENSOR},
                {"tp{", RP_DIMENSION_TENSOR},        {"tp`", RP_DIMENSION_TENSOR}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rp_dimension_of(rows[i].text) != rows[i].is)
            fail_msg("'%s'", rows[i].text);
}

/* The kernel's own arguments come first, then those of the call around its launch. */
static void the_innermost_source_counts(void **state)
{
    static const struct row rows[] = {
        {'X', "cpu_op", "record_param_comms", 1, 1, 0, 90, 0, 0, 0, "Seq", 1, 0, "Collective name",
         "allgather", "Group size", 16, "Process Group Name", "outer"},
        {'X', "user_annotation", "nccl:all_reduce", 1, 1, 1, 80, 0, 0, 0, "Seq", 2},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 2, 4, 5, 0, 0, "Group size", 4},
        {'X', "kernel", "ncclDevKernel_Generic", 0, 7, 100, 50, 5, 7, 0, "Seq", 3},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_coll_facts f = facts_in(t, 3, 2);

    UNUSED_STATE(state);
    assert_int_equal(f.seq, 3);
    assert_int_equal(f.group_size, 4);
    assert_int_equal(f.kind, RP_COLL_ALL_REDUCE);
    assert_string_equal(rp_trace_str(t, f.group), "outer");
    f = facts_in(t, 3, -1);
    assert_true(f.seq == 3 && f.group_size == 0 && f.group == RP_NONE && !f.named);
    f = facts_in(t, 2, 1);
    assert_int_equal(f.seq, 2);
    rp_trace_free(t);
}

/* NCCL before 2.28 reports a collective behind the launch of its kernel. */
static void a_collective_behind_its_launch(void **state)
{
    const struct row behind[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 10, 5, 5},
        {'X', "collective_comm", "AllReduce", 1, 1, 20, 9, 0, 0, 0, "Seq", 7, 0, "Collective name",
         "allreduce"},
        {'X', "kernel", "ncclDevKernel_Generic", 0, 7, 100, 50, 5, 7},
        {'X', "kernel", "gemm", 0, 9, 100, 50, 6, 9},
        {'X', "cuda_runtime", "cudaGetDevice", 1, 1, 17, 1},
    };
    struct row rows[5];
    struct rp_coll_facts f = facts_of(behind, 5, 2, 0);

    UNUSED_STATE(state);
    assert_true(f.kind == RP_COLL_ALL_REDUCE && f.named && f.seq == 7);
    for (int k = 0; k < 5; k++) {
        bool found = false;

        memcpy(rows, behind, sizeof rows);
        switch (k) {
        case 0: /* another launch in between */
            rows[4] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 17, 1, 6};
            break;
        case 1: /* a call that launches nothing that was recorded */
            rows[4] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 17, 1};
            found = true;
            break;
        case 2: /* on another thread */
            rows[1].tid = 2;
            break;
        case 3: /* inside the call */
            rows[1].ts = 12;
            rows[1].dur = 1;
            break;
        default: /* it begins when the call returns */
            rows[1].ts = 15;
            rows[4].ts = 40;
            found = true;
        }
        f = facts_of(rows, 5, 2, 0);
        if (f.named != found || (f.seq == 7) != found)
            fail_msg("case %d", k);
    }
}

/* Annotations name their collective and the inputs that are sent. */
static void inputs_of_annotations(void **state)
{
    static const struct {
        const char *category, *name, *dims, *types;
        int64_t elements, item_bytes;
        enum rp_coll_kind kind;
    } rows[] = {
        {"user_annotation", "nccl:all_reduce", "[[4, 2], [3]]", "[\"float\", \"float\"]", 11, 4,
         RP_COLL_ALL_REDUCE},
        {"user_annotation", "nccl:all_reduce", "[[4, 2], [3]]", "[\"float\", \"double\"]", -1, 0,
         RP_COLL_ALL_REDUCE},
        {"user_annotation", "nccl:all_reduce", "[[4, 2]]", "[\"Scalar\"]", -1, 0,
         RP_COLL_ALL_REDUCE},
        {"user_annotation", "nccl:all_reduce", "[[4, 2]]", "[]", -1, 0, RP_COLL_ALL_REDUCE},
        {"user_annotation", "nccl:coalesced", "[[4, 2]]", "[\"c10::Half\"]", 8, 2, RP_COLL_OTHER},
        {"user_annotation", "all_reduce", "[[4, 2]]", "[\"float\"]", -1, 0, RP_COLL_OTHER},
        {"python_function", "nccl:all_reduce", "[[4, 2]]", "[\"float\"]", -1, 0, RP_COLL_OTHER},
        {"cpu_op", "c10d::allreduce_", "[[4, 2]]", "[\"float\"]", 8, 4, RP_COLL_ALL_REDUCE},
        {"cpu_op", "my::allreduce", "[[4, -2]]", "[\"float\"]", -1, 0, RP_COLL_OTHER},
        {"cpu_op", "my::allreduce", "[[], [5,0]]", "[\"\", \"float\"]", 0, 4, RP_COLL_ALL_REDUCE},
        {"cpu_op", "my::allreduce", "[[7]]", "[]", -1, 0, RP_COLL_OTHER},
        {"cpu_op", "aten::allreduce", "[[7]]", "[\"float\"]", -1, 0, RP_COLL_OTHER},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row two[] = {
            {'X', rows[i].category, rows[i].name, 1, 1, 0, 90, 0, 0, 0, NULL, 0, 0, "Input Dims",
             rows[i].dims, NULL, 0, "Input type", rows[i].types},
            {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 2, 4, 5},
            {'X', "kernel", "ncclDevKernel_Generic", 0, 7, 100, 50, 5, 7},
        };
        struct rp_coll_facts f = facts_of(two, 3, 2, 1);

        if (f.in_elements != rows[i].elements || f.item_bytes != rows[i].item_bytes ||
            f.kind != rows[i].kind)
            fail_msg("row %zu: %lld elements of %lld, kind %d", i, (long long)f.in_elements,
                     (long long)f.item_bytes, f.kind);
    }
}

static void inputs_of_operators(void **state)
{
    static const struct row rows[] = {
        {'X', "cpu_op", "both", 1, 1, 0, 5, 0, 0, 0, NULL, 0, 0, "Input Dims", "[[4, 2], [3]]",
         NULL, 0, "Input type", "[\"float\", \"float\"]"},
        {'X', "cpu_op", "dims", 1, 1, 10, 5, 0, 0, 0, NULL, 0, 0, "Input Dims", "[[4, 2]]"},
        {'X', "cpu_op", "none", 1, 1, 20, 5},
        {'X', "cpu_op", "large", 1, 1, 30, 5, 0, 0, 0, NULL, 0, 0, "Input Dims",
         "[[4000000000000000000]]", NULL, 0, "Input type", "[\"double\"]"},
    };
    static const int64_t bytes[] = {44, -1, -1, -1};
    static const int64_t elements[] = {11, 8, -1, 4000000000000000000};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_coll_reader r;

    UNUSED_STATE(state);
    assert_code(rp_coll_reader_init(&r, t, NULL), RP_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(rp_coll_input_bytes(&r, event_n(t, i)), bytes[i]);
        assert_int_equal(rp_coll_input_elements(&r, event_n(t, i)), elements[i]);
    }
    rp_coll_reader_release(&r);
    rp_trace_free(t);
}

/* Groups are told apart by name, number and members. */
static void groups_have_a_hash(void **state)
{
    static const struct row rows[] = {
        {'X', "kernel", "nccl", 0, 7, 0, 5, 1, 7},
        {'X', "kernel", "nccl", 0, 7, 10, 5, 2, 7, 0, "Process Group Name", 0},
        {'X', "kernel", "nccl", 0, 7, 20, 5, 3, 7, 0, "Process Group Name", 1},
        {'X', "kernel", "nccl", 0, 7, 30, 5, 4, 7, 0, NULL, 0, 0, "Process Group Name", "1"},
        {'X', "kernel", "nccl", 0, 7, 40, 5, 5, 7, 0, NULL, 0, 0, "Process Group Name", "a"},
        {'X', "kernel", "nccl", 0, 7, 50, 5, 6, 7, 0, NULL, 0, 0, "Process Group Name", "a", NULL,
         0, "Process Group Ranks", "[0, 1]"},
        {'X', "kernel", "nccl", 0, 7, 60, 5, 7, 7, 0, NULL, 0, 0, "Process Group Name", "a", NULL,
         0, "Process Group Ranks", "[2, 3]"},
        {'X', "kernel", "nccl", 0, 7, 70, 5, 8, 7, 0, NULL, 0, 0, NULL, NULL, NULL, 0,
         "Process Group Ranks", "[2, 3]"},
    };
    struct rp_trace *t = TRACE_OF(rows);
    uint64_t hash[8];

    UNUSED_STATE(state);
    for (int i = 0; i < 8; i++) {
        struct rp_coll_facts f = facts_in(t, i, -1);

        hash[i] = rp_coll_group_hash(t, &f);
    }
    assert_true(hash[0] == 0 && hash[7] == 0);
    assert_true(hash[2] == hash[3]); /* a number is the name in digits */
    for (int i = 1; i < 7; i++)
        for (int k = 1; k < i; k++)
            assert_int_equal(hash[i] == hash[k], i == 3 && k == 2);
    for (int i = 1; i < 7; i++)
        assert_true(hash[i] & 1);
    rp_trace_free(t);
}

/* Streams by number: spans of threads are one, and those of a stream of the device are none. */
static void what_is_a_collective_of_the_host(void **state)
{
    static const struct {
        const char *category, *name;
        bool is;
    } rows[] = {
        {"user_annotation", "gloo:all_reduce", true}, {"user_annotation", "mpi:all_reduce", true},
        {"user_annotation", "ucc:all_reduce", true},  {"user_annotation", "nccl:all_reduce", false},
        {"cpu_op", "gloo:all_reduce", false},         {"collective_comm", "anything", true}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row row[] = {{'X', rows[i].category, rows[i].name, 1, 1, 0, 5}};
        struct rp_trace *t = TRACE_OF(row);

        assert_int_equal(rp_event_is_host_collective(t, event_n(t, 0)), rows[i].is);
        rp_trace_free(t);
    }
}

/* Collectives of the host in a scope, and what all of a rank have in common. */
static void a_rank_has_a_scope(void **state)
{
    static const struct row rows[] = {
        {'X', "collective_comm", "MPI_Allreduce", 1, 1, 10, 5, 0, 0, 0, "Process Group Name", 4},
        {'X', "collective_comm", "MPI_Allreduce", 1, 1, 20, 5, 0, 0, 0, "Process Group Name", 4},
        {'X', "collective_comm", "MPI_Allreduce", 1, 1, 30, 5, 0, 0, 0, "Process Group Name", 5},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_collectives c;
    struct rp_work w;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    for (int64_t end = 20; end <= 31; end++) {
        struct rp_scope scope = {.limited = true, .begin_ns = 10, .end_ns = end};

        assert_code(rp_collectives_init(&c, &w, &scope, &arena, NULL), RP_OK);
        assert_int_equal(c.list.n, end == 20 ? 1 : end < 31 ? 2 : 3);
        assert_string_equal(c.list.at[0].group, "4");
        assert_int_equal(c.mixed, end == 31);
        assert_int_equal(c.first_step_ns, INT64_MIN);
        assert_true(c.on_host && !c.sequenced && !c.grouped && c.nstreams == 1);
        assert_false(c.cut);
        rp_collectives_release(&c);
    }
    t->health.truncated = true;
    assert_code(rp_collectives_init(&c, &w, NULL, &arena, NULL), RP_OK);
    assert_true(c.cut);
    rp_collectives_release(&c);
    t->health.truncated = false;
    t->health.skipped_bytes = 1;
    assert_code(rp_collectives_init(&c, &w, NULL, &arena, NULL), RP_OK);
    assert_true(c.cut);
    rp_collectives_release(&c);
    rp_work_release(&w);
    rp_arena_release(&arena);
    rp_trace_free(t);
}

int test_collective_args(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_argument_alone),
        cmocka_unit_test(algorithms_are_read_in_names),
        cmocka_unit_test(names_are_kinds_in_full),
        cmocka_unit_test(factors_of_all_kinds),
        cmocka_unit_test(words_of_groups),
        cmocka_unit_test(the_innermost_source_counts),
        cmocka_unit_test(a_collective_behind_its_launch),
        cmocka_unit_test(inputs_of_annotations),
        cmocka_unit_test(inputs_of_operators),
        cmocka_unit_test(groups_have_a_hash),
        cmocka_unit_test(what_is_a_collective_of_the_host),
        cmocka_unit_test(a_rank_has_a_scope),
    };

    return cmocka_run_group_tests_name("collective_args", tests, NULL, NULL);
}
