/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of a rank, what is recorded about them, and how ranks meet in them. */
#include "facts/ranks/rendezvous.h"
#include "trace/trace_fixtures.h"

#define NAME "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)"

static struct rp_collectives collectives_of(const struct row *rows, size_t n,
                                            struct rp_arena *arena)
{
    struct rp_trace *t = trace_of(rows, n);
    struct rp_collectives c;
    struct rp_work w;

    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_collectives_init(&c, &w, NULL, arena, NULL), RP_OK);
    rp_work_release(&w);
    rp_trace_free(t); /* the part must not need it */
    return c;
}

#define COLLECTIVES_OF(rows, arena) collectives_of((rows), sizeof(rows) / sizeof(rows)[0], (arena))

static void kinds_are_told_by_any_spelling(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(rp_coll_kind_of(NAME), RP_COLL_ALL_REDUCE);
    assert_int_equal(rp_coll_kind_of("nccl:_all_gather_base"), RP_COLL_ALL_GATHER);
    assert_int_equal(rp_coll_kind_of("ncclKernel_ReduceScatter_RING"), RP_COLL_REDUCE_SCATTER);
    assert_int_equal(rp_coll_kind_of("gloo:all_to_all"), RP_COLL_ALL_TO_ALL);
    assert_int_equal(rp_coll_kind_of("ncclKernel_SendRecv"), RP_COLL_SEND_RECV);
    assert_int_equal(rp_coll_kind_of("ncclDevKernel_Reduce_Sum"), RP_COLL_REDUCE);
    assert_int_equal(rp_coll_kind_of("ncclDevKernel_Generic_4(gather)"), RP_COLL_OTHER);
}

static void groups_say_what_they_share(void **state)
{
    static const struct {
        const char *description;
        enum rp_dimension is;
    } rows[] = {{"mesh_tp", RP_DIMENSION_TENSOR},
                {"TENSOR_MODEL_PARALLEL_GROUP", RP_DIMENSION_TENSOR},
                {"EXPERT_TENSOR_PARALLEL_GROUP", RP_DIMENSION_TENSOR},
                {"PIPELINE_MODEL_PARALLEL_GROUP", RP_DIMENSION_PIPELINE},
                {"pp0", RP_DIMENSION_PIPELINE},
                {"mesh_dp_shard_cp", RP_DIMENSION_DATA},
                {"EXPERT_DATA_PARALLEL_GROUP", RP_DIMENSION_DATA},
                {"CONTEXT_PARALLEL_GROUP", RP_DIMENSION_CONTEXT},
                {"ep:1", RP_DIMENSION_EXPERT},
                {"EXPERT_MODEL_PARALLEL_GROUP", RP_DIMENSION_EXPERT},
                {"default_pg", RP_DIMENSION_UNKNOWN},
                {"undefined", RP_DIMENSION_UNKNOWN},
                {"updates", RP_DIMENSION_UNKNOWN},
                {"", RP_DIMENSION_UNKNOWN}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(rp_dimension_of(rows[i].description), rows[i].is);
    assert_null(rp_dimension_names[RP_DIMENSION_UNKNOWN]);
    assert_string_equal(rp_dimension_names[RP_DIMENSION_EXPERT], "ep");
}

static void sizes_come_from_shapes(void **state)
{
    int64_t bytes = 0;

    UNUSED_STATE(state);
    assert_int_equal(rp_coll_elements("[[4, 2048, 4096]]"), 4LL * 2048 * 4096);
    assert_int_equal(rp_coll_elements("[[3],[2,2],[]]"), 7);
    assert_int_equal(rp_coll_elements("[[0,9],[9]]"), 9);
    assert_int_equal(rp_coll_elements("[[2/3:2]]"), 12); /* whatever is between numbers */
    assert_int_equal(rp_coll_elements("[]"), -1);
    assert_int_equal(rp_coll_elements("[[9000000000,9000000000]]"), -1);
    assert_string_equal(rp_coll_dtype("c10::BFloat16", 13, &bytes), "bf16");
    assert_int_equal(bytes, 2);
    assert_null(rp_coll_dtype("TensorList", 10, &bytes));
}

static void types_have_names_and_sizes(void **state)
{
    static const struct {
        const char *spelled, *name;
        int64_t bytes;
    } rows[] = {
        {"Half", "f16", 2},
        {"c10::Half", "f16", 2},
        {"c10::BFloat16", "bf16", 2},
        {"Float", "f32", 4},
        {"float", "f32", 4},
        {"Double", "f64", 8},
        {"double", "f64", 8},
        {"Int", "i32", 4},
        {"int", "i32", 4},
        {"Long", "i64", 8},
        {"long", "i64", 8},
        {"long int", "i64", 8},
        {"Short", "i16", 2},
        {"short int", "i16", 2},
        {"Char", "i8", 1},
        {"signed char", "i8", 1},
        {"Byte", "u8", 1},
        {"unsigned char", "u8", 1},
        {"Bool", "bool", 1},
        {"bool", "bool", 1},
        {"Float8_e4m3fn", "f8e4m3", 1},
        {"ComplexFloat", "c64", 8},
        {"Float8_e5m2", "f8e5m2", 1},
        {"c10::complex<float>", "c64", 8},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t bytes = 0;

        assert_string_equal(rp_coll_dtype(rows[i].spelled, strlen(rows[i].spelled), &bytes),
                            rows[i].name);
        assert_int_equal(bytes, rows[i].bytes);
    }
}

static void bus_factors_are_those_of_rings(void **state)
{
    UNUSED_STATE(state);
    assert_true(rp_coll_bus_factor(RP_COLL_ALL_REDUCE, 8) == 1.75);
    assert_true(rp_coll_bus_factor(RP_COLL_ALL_GATHER, 4) == 0.75);
    assert_true(rp_coll_bus_factor(RP_COLL_BROADCAST, 4) == 1);
    assert_true(rp_coll_bus_factor(RP_COLL_ALL_REDUCE, 1) == 0);
    assert_true(rp_coll_bus_factor(RP_COLL_BARRIER, 8) == 0);
}

/* Streams 9 and 24 hold communication; 24 comes second although it starts first. */
static void streams_are_numbered_by_their_ids(void **state)
{
    const struct row rows[] = {
        {'X', "kernel", NAME, 0, 24, 10, 5, 1, 24},
        {'X', "kernel", "gemm", 0, 7, 10, 5, 2, 7},
        {'X', "kernel", NAME, 0, 9, 20, 5, 3, 9},
        {'X', "kernel", NAME, 0, 24, 30, 5, 4, 24},
    };
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_collectives c = COLLECTIVES_OF(rows, &arena);

    UNUSED_STATE(state);
    assert_int_equal(c.list.n, 3);
    assert_int_equal(c.nstreams, 2);
    assert_int_equal(c.list.at[0].stream, 1);
    assert_int_equal(c.list.at[1].stream, 0);
    assert_int_equal(c.list.at[2].index, 1);
    assert_string_equal(c.list.at[0].name, NAME);
    assert_false(c.sequenced);
    rp_collectives_release(&c);
    rp_arena_release(&arena);
}

/* Two spans of one call under other names belong together by group and number, if they have both.
 */
static void numbers_join_calls_of_other_names(void **state)
{
    static const struct {
        int64_t seq;
        const char *group;
        bool same;
    } rows[] = {{0, "world", true}, {1, "world", true}, {-1, "world", false}, {0, NULL, false}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t key[2];

        for (int r = 0; r < 2; r++) {
            const struct row row[] = {
                {'X', "collective_comm", r ? "MPI_Allreduce" : "MPI_Iallreduce", 1, 5, 10, 50,
                 .key = "Seq", .value = rows[i].seq,
                 .text_key = rows[i].group ? "Process Group Name" : NULL, .text = rows[i].group}};
            struct rp_arena arena = RP_ARENA_INIT;
            struct rp_collectives c = COLLECTIVES_OF(row, &arena);

            assert_int_equal(c.list.n, 1);
            key[r] = c.list.at[0].key;
            rp_collectives_release(&c);
            rp_arena_release(&arena);
        }
        assert_int_equal(key[0] == key[1], rows[i].same);
    }
}

/* Where one stream is beside another: ids are numbers, and of equal ones the process that comes
   first decides. */
static void ids_of_streams_are_numbers(void **state)
{
    static const struct {
        int64_t first, second, first_pid, second_pid;
        uint32_t places[2];
    } rows[] = {{9, 24, 0, 0, {0, 1}}, {24, 9, 0, 0, {1, 0}}, {7, 9, 0, 0, {0, 1}},
                {9, 7, 0, 0, {1, 0}},  {7, 7, 1, 2, {0, 1}},  {7, 7, 2, 1, {0, 1}}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row row[] = {
            {'X', "kernel", NAME, rows[i].first_pid, rows[i].first, 10, 5, 1, rows[i].first},
            {'X', "kernel", NAME, rows[i].second_pid, rows[i].second, 20, 5, 2, rows[i].second}};
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_collectives c = COLLECTIVES_OF(row, &arena);

        assert_int_equal(c.list.n, 2);
        assert_int_equal(c.list.at[0].stream, rows[i].places[0]);
        assert_int_equal(c.list.at[1].stream, rows[i].places[1]);
        rp_collectives_release(&c);
        rp_arena_release(&arena);
    }
}

static void facts_come_from_the_spans_around_the_launch(void **state)
{
    const struct row rows[] = {
        {'X', "cpu_op", "record_param_comms", 1, 1, 0, 30, 0, 0, 0, "In msg nelems", 1000, 0,
         "dtype", "BFloat16"},
        {'X', "user_annotation", "nccl:_all_gather_base", 1, 1, 1, 20, 0, 0, 0, "Group size", 4},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 2, 4, 5},
        {'X', "kernel", "ncclDevKernel_Generic", 0, 20, 40, 30, 5, 20},
    };
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_collectives c = COLLECTIVES_OF(rows, &arena);

    UNUSED_STATE(state);
    assert_int_equal(c.list.n, 1);
    assert_int_equal(c.list.at[0].kind, RP_COLL_ALL_GATHER);
    assert_int_equal(c.list.at[0].in_bytes, 2000);
    assert_int_equal(c.list.at[0].group_size, 4);
    assert_int_equal(rp_collective_size(&c.list.at[0], 4), 8000);
    rp_collectives_release(&c);
    rp_arena_release(&arena);
}

/* Kernels of symmetric memory and of vLLM record no message: the operator that launches them does.
 */
static void sizes_come_from_the_launching_operator(void **state)
{
    static const struct {
        const char *op, *kernel, *dims, *types;
        int64_t bytes;
        enum rp_coll_kind kind;
    } cases[] = {
        {"symm_mem::multimem_all_reduce_", "multimem_all_reduce_kernel", "[[8, 4096], [], []]",
         "[\"c10::BFloat16\", \"\", \"\"]", 8LL * 4096 * 2, RP_COLL_ALL_REDUCE},
        {"_C_custom_ar::all_reduce", "cross_device_reduce_2stage", "[[],[3, 5],[3, 5],[],[]]",
         "[\"Scalar\",\"c10::Half\",\"c10::Half\",\"Scalar\",\"Scalar\"]", 30, RP_COLL_ALL_REDUCE},
        {"symm_mem::one_shot_all_reduce", "one_shot_all_reduce_kernel", "[[7,30,2]]", "[\"float\"]",
         7LL * 30 * 2 * 4, RP_COLL_ALL_REDUCE},
        {"symm_mem::multimem_all_gather_out", "multimem_all_gather_kernel", "[[4, 2]]",
         "[\"float\"]", 32, RP_COLL_ALL_GATHER},
        {"my::all_reduce", "two_shot_all_reduce", "[[[4, 2]], []]", "[\"TensorList\", \"\"]", -1,
         RP_COLL_ALL_REDUCE},
        {"my::forward", "multimem_all_reduce_kernel", "[[8]]", "[\"float\"]", -1,
         RP_COLL_ALL_REDUCE},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct row rows[] = {
            {'X', "cpu_op", cases[i].op, 1, 1, 0, 30, 0, 0, 0, NULL, 0, 0, "Input Dims",
             cases[i].dims, NULL, 0, "Input type", cases[i].types},
            {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 2, 4, 5},
            {'X', "kernel", cases[i].kernel, 0, 20, 40, 30, 5, 20},
        };
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_collectives c = COLLECTIVES_OF(rows, &arena);

        assert_int_equal(c.list.n, 1);
        assert_int_equal(c.list.at[0].kind, cases[i].kind);
        assert_int_equal(c.list.at[0].in_bytes, cases[i].bytes);
        if (strstr(cases[i].types, "BFloat16"))
            assert_string_equal(c.list.at[0].dtype, "bf16");
        rp_collectives_release(&c);
        rp_arena_release(&arena);
    }
}

static void order_needs_the_same_name_on_all_ranks(void **state)
{
    const struct row rows[2][3] = {{{'X', "kernel", NAME, 0, 9, 10, 20, 1, 9},
                                    {'X', "kernel", "nccl_a", 0, 9, 40, 5, 2, 9},
                                    {'X', "kernel", NAME, 0, 9, 50, 30, 3, 9}},
                                   {{'X', "kernel", NAME, 0, 11, 15, 16, 1, 11},
                                    {'X', "kernel", "nccl_b", 0, 11, 40, 5, 2, 11},
                                    {'X', "kernel", NAME, 0, 11, 45, 35, 3, 11}}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_collectives c[2] = {COLLECTIVES_OF(rows[0], &arena), COLLECTIVES_OF(rows[1], &arena)};
    const struct rp_collectives *ranks[] = {&c[0], &c[1]};
    struct rp_rendezvous_list m;

    UNUSED_STATE(state);
    assert_code(rp_rendezvous_find(ranks, 2, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.rule, RP_RENDEZVOUS_BY_ORDER);
    assert_int_equal(m.n, 2);
    assert_int_equal(m.nlost, 2);
    assert_int_equal(m.at[0].rank[m.at[0].last], 1);
    assert_int_equal(m.at[0].last_ns - m.at[0].second_ns, 5);
    assert_int_equal(m.at[1].rank[m.at[1].last], 0);
    assert_int_equal(m.at[0].end_ns - m.at[0].first_end_ns, 1);
    assert_false(m.clocks_differ);
    rp_collectives_release(&c[0]);
    rp_collectives_release(&c[1]);
    rp_arena_release(&arena);
}

/* Rank 1 lacks the first collective of one stream: there the names tell the places of the others,
   and the order of the other stream stays. */
static void a_missing_collective_moves_only_its_stream(void **state)
{
    const struct row rows[2][5] = {{{'X', "kernel", "nccl_a", 0, 9, 10, 20, 1, 9},
                                    {'X', "kernel", "nccl_b", 0, 9, 40, 5, 2, 9},
                                    {'X', "kernel", "nccl_c", 0, 9, 50, 30, 3, 9},
                                    {'X', "kernel", "nccl_x", 0, 10, 12, 20, 4, 10},
                                    {'X', "kernel", "nccl_y", 0, 10, 60, 30, 5, 10}},
                                   {{'X', "kernel", "nccl_b", 0, 9, 41, 4, 2, 9},
                                    {'X', "kernel", "nccl_c", 0, 9, 51, 29, 3, 9},
                                    {'X', "kernel", "nccl_x", 0, 10, 13, 19, 4, 10},
                                    {'X', "kernel", "nccl_y", 0, 10, 61, 29, 5, 10}}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_collectives c[2] = {COLLECTIVES_OF(rows[0], &arena),
                                  collectives_of(rows[1], 4, &arena)};
    const struct rp_collectives *ranks[] = {&c[0], &c[1]};
    struct rp_rendezvous_list m;

    UNUSED_STATE(state);
    assert_code(rp_rendezvous_find(ranks, 2, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.rule, RP_RENDEZVOUS_BY_ORDER);
    assert_int_equal(m.n, 4);
    assert_int_equal(m.nlost, 1);
    for (size_t i = 0; i < m.n; i++)
        assert_string_equal(c[0].list.at[m.at[i].at[0]].name, c[1].list.at[m.at[i].at[1]].name);
    rp_collectives_release(&c[0]);
    rp_collectives_release(&c[1]);
    rp_arena_release(&arena);
}

/* The trace of rank 2 is cut and lost its first collective: by its order, its second would be the
   first of the others, and 40 late. */
static void a_cut_rank_that_lacks_collectives_is_left_out(void **state)
{
    const struct row whole[2][3] = {{{'X', "kernel", NAME, 0, 9, 10, 20, 1, 9},
                                     {'X', "kernel", NAME, 0, 9, 50, 20, 2, 9},
                                     {'X', "kernel", NAME, 0, 9, 90, 20, 3, 9}},
                                    {{'X', "kernel", NAME, 0, 9, 12, 18, 1, 9},
                                     {'X', "kernel", NAME, 0, 9, 52, 18, 2, 9},
                                     {'X', "kernel", NAME, 0, 9, 92, 18, 3, 9}}};
    const struct row part[2] = {{'X', "kernel", NAME, 0, 9, 51, 19, 2, 9},
                                {'X', "kernel", NAME, 0, 9, 91, 19, 3, 9}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_collectives c[3] = {COLLECTIVES_OF(whole[0], &arena),
                                  COLLECTIVES_OF(whole[1], &arena), COLLECTIVES_OF(part, &arena)};
    const struct rp_collectives *ranks[] = {&c[0], &c[1], &c[2]};
    struct rp_rendezvous_list m;

    UNUSED_STATE(state);
    c[2].cut = true;
    assert_code(rp_rendezvous_find(ranks, 3, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.n, 3);
    for (size_t i = 0; i < m.n; i++) {
        assert_int_equal(m.at[i].n, 2);
        assert_int_equal(m.at[i].rank[m.at[i].last], 1);
    }
    assert_int_equal(m.nlost, 2);
    c[2].cut = false; /* it began later */
    assert_code(rp_rendezvous_find(ranks, 3, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.at[1].n, 3);
    c[2].cut = c[1].cut = true; /* one that lacks nothing takes part */
    assert_code(rp_rendezvous_find(ranks, 3, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.n, 3);
    for (int r = 0; r < 3; r++)
        rp_collectives_release(&c[r]);
    rp_arena_release(&arena);
}

/* Ranks 0 and 1 are group "a"; the numbers match them although the order does not. */
static void groups_and_numbers_find_those_who_meet(void **state)
{
#define IN(group, seq) "Seq", (seq), 0, "Process Group Name", (group)
    const struct row first[] = {{'X', "kernel", NAME, 0, 9, 10, 9, 1, 9, 0, IN("a", 7)},
                                {'X', "kernel", NAME, 0, 9, 20, 9, 2, 9, 0, IN("b", 7)}};
    const struct row second[] = {{'X', "kernel", NAME, 0, 9, 12, 7, 1, 9, 0, IN("a", 7)},
                                 {'X', "kernel", NAME, 0, 9, 30, 9, 2, 9, 0, IN("a", 8)}};
    const struct row third[] = {{'X', "kernel", NAME, 0, 9, 22, 7, 1, 9, 0, IN("b", 7)}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_collectives c[3] = {COLLECTIVES_OF(first, &arena), COLLECTIVES_OF(second, &arena),
                                  COLLECTIVES_OF(third, &arena)};
    const struct rp_collectives *ranks[] = {&c[0], &c[1], &c[2]};
    struct rp_rendezvous_list m;
    int r;

    UNUSED_STATE(state);
    assert_code(rp_rendezvous_find(ranks, 3, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.rule, RP_RENDEZVOUS_BY_SEQUENCE);
    assert_int_equal(m.n, 2);
    assert_int_equal(m.nlost, 1);
    assert_int_equal(m.at[0].n, 2);
    assert_int_equal(m.at[0].rank[1], 1);
    assert_int_equal(m.at[1].rank[0], 0);
    assert_int_equal(m.at[1].rank[1], 2);
    for (r = 0; r < 3; r++)
        rp_collectives_release(&c[r]);
    rp_arena_release(&arena);
}

/* Who came last and who before, where several came at once: the first of these. */
static void the_last_and_the_one_before(void **state)
{
    static const struct {
        int64_t begins[3];
        uint32_t last, second;
    } rows[] = {{{10, 20, 30}, 2, 1}, {{30, 20, 10}, 0, 1}, {{20, 30, 10}, 1, 0},
                {{30, 20, 20}, 0, 1}, {{20, 30, 20}, 1, 0}, {{20, 20, 30}, 2, 0},
                {{20, 20, 20}, 0, 1}, {{30, 30, 20}, 0, 1}, {{10, 11, 12}, 2, 1},
                {{12, 11, 10}, 0, 1}, {{11, 12, 10}, 1, 0}, {{10, 12, 11}, 1, 2}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_collectives c[3];
        const struct rp_collectives *ranks[] = {&c[0], &c[1], &c[2]};
        struct rp_rendezvous_list m;

        for (int r = 0; r < 3; r++) {
            const struct row row[] = {{'X', "kernel", NAME, 0, 9, rows[i].begins[r],
                                       60 - rows[i].begins[r], 1, 9, 0, IN("a", 7)}};
            c[r] = COLLECTIVES_OF(row, &arena);
        }
        assert_code(rp_rendezvous_find(ranks, 3, &arena, &m, NULL), RP_OK);
        assert_int_equal(m.n, 1);
        if (m.at[0].last != rows[i].last || m.at[0].second != rows[i].second)
            fail_msg("row %zu: %u and %u", i, m.at[0].last, m.at[0].second);
        assert_int_equal(m.at[0].last_ns - m.at[0].first_ns,
                         rows[i].begins[rows[i].last] - (rows[i].begins[0] < rows[i].begins[2]
                                                             ? rows[i].begins[0]
                                                             : rows[i].begins[2]));
        for (int r = 0; r < 3; r++)
            rp_collectives_release(&c[r]);
        rp_arena_release(&arena);
    }
}

/* Two pairs of ranks, without numbers: the order alone would make four ranks meet. */
static void groups_without_numbers_keep_their_order(void **state)
{
#define OF(group) NULL, 0, 0, "Process Group Name", (group)
    const struct row rows[4][2] = {{{'X', "kernel", NAME, 0, 9, 10, 9, 1, 9, 0, OF("a")},
                                    {'X', "kernel", NAME, 0, 9, 30, 9, 2, 9, 0, OF("a")}},
                                   {{'X', "kernel", NAME, 0, 9, 12, 7, 1, 9, 0, OF("a")},
                                    {'X', "kernel", NAME, 0, 9, 31, 8, 2, 9, 0, OF("a")}},
                                   {{'X', "kernel", NAME, 0, 9, 50, 9, 1, 9, 0, OF("b")},
                                    {'X', "kernel", NAME, 0, 9, 90, 9, 2, 9, 0, OF("b")}},
                                   {{'X', "kernel", NAME, 0, 9, 52, 7, 1, 9, 0, OF("b")},
                                    {'X', "kernel", NAME, 0, 9, 93, 6, 2, 9, 0, OF("b")}}};
    struct rp_arena arena = RP_ARENA_INIT;
    const struct rp_collectives *ranks[4];
    struct rp_collectives c[4];
    struct rp_rendezvous_list m;
    int r;

    UNUSED_STATE(state);
    for (r = 0; r < 4; r++) {
        c[r] = COLLECTIVES_OF(rows[r], &arena);
        ranks[r] = &c[r];
    }
    assert_code(rp_rendezvous_find(ranks, 4, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.rule, RP_RENDEZVOUS_BY_GROUP);
    assert_int_equal(m.n, 4);
    assert_int_equal(m.nlost, 0);
    assert_false(m.clocks_differ);
    assert_int_equal(m.at[3].rank[m.at[3].last], 3);
    assert_code(rp_rendezvous_find(ranks, 2, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.rule, RP_RENDEZVOUS_BY_ORDER); /* one group: nothing to tell apart */
    assert_int_equal(m.n, 2);
    for (r = 0; r < 4; r++)
        rp_collectives_release(&c[r]);
    rp_arena_release(&arena);
}

/* Worker threads may start two collectives in either order. */
static void host_collectives_meet_by_name_and_size(void **state)
{
    const struct row rows[2][3] = {{{'X', "user_annotation", "gloo:all_reduce", 1, 5, 10, 50},
                                    {'X', "user_annotation", "gloo:broadcast", 1, 6, 11, 50},
                                    {'X', "cpu_op", "aten::mm", 1, 1, 0, 100}},
                                   {{'X', "user_annotation", "gloo:all_reduce", 1, 5, 12, 50},
                                    {'X', "user_annotation", "gloo:broadcast", 1, 6, 9, 50},
                                    {'X', "cpu_op", "aten::mm", 1, 1, 0, 100}}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_collectives c[2] = {COLLECTIVES_OF(rows[0], &arena), COLLECTIVES_OF(rows[1], &arena)};
    const struct rp_collectives *ranks[] = {&c[0], &c[1]};
    struct rp_rendezvous_list m;

    UNUSED_STATE(state);
    assert_true(c[0].on_host);
    assert_code(rp_rendezvous_find(ranks, 2, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.rule, RP_RENDEZVOUS_BY_NAME);
    assert_int_equal(m.n, 2);
    assert_int_equal(m.at[0].rank[m.at[0].last], 0);
    assert_int_equal(m.at[1].rank[m.at[1].last], 1);
    for (size_t i = 0; i < m.n; i++) /* different names do not meet */
        assert_string_equal(c[0].list.at[m.at[i].at[0]].name, c[1].list.at[m.at[i].at[1]].name);
    rp_collectives_release(&c[0]);
    rp_collectives_release(&c[1]);
    rp_arena_release(&arena);
}

/* MPI: numbered in their communicator. The root of a broadcast leaves before the others arrive, and
   sends and receives meet nobody by number. */
static void numbered_host_collectives_meet_by_number(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_collectives c[2];
    const struct rp_collectives *ranks[] = {&c[0], &c[1]};
    struct rp_rendezvous_list m;

    UNUSED_STATE(state);
    for (int r = 0; r < 2; r++) {
        const struct row rows[] = {
            {'X', "collective_comm", "MPI_Allreduce", 1, 5, 10 + r, 50 - r, .key = "Seq",
             .value = 0, .text_key = "Process Group Name", .text = "world"},
            {'X', "collective_comm", "MPI_Bcast", 1, 5, 100 + 50 * r, 10, .key = "Seq", .value = 1,
             .text_key = "Process Group Name", .text = "world"},
            {'X', "collective_comm", "MPI_Bcast", 1, 5, 200 + 50 * r, 10, .key = "Seq", .value = 2,
             .text_key = "Process Group Name", .text = "world"},
            {'X', "collective_comm", "MPI_Send", 1, 5, 300, 10, .text_key = "Process Group Name",
             .text = "world"}};

        c[r] = COLLECTIVES_OF(rows, &arena);
        assert_true(c[r].on_host && c[r].sequenced);
        assert_int_equal(c[r].list.at[1].kind, RP_COLL_BROADCAST);
    }
    assert_code(rp_rendezvous_find(ranks, 2, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.rule, RP_RENDEZVOUS_BY_SEQUENCE);
    assert_int_equal(m.n, 3);
    assert_false(m.clocks_differ);
    assert_int_equal(m.at[0].rank[m.at[0].last], 1);
    rp_collectives_release(&c[0]);
    rp_collectives_release(&c[1]);
    rp_arena_release(&arena);
}

static void clocks_that_do_not_fit_are_noticed(void **state)
{
    const struct row rows[2][1] = {{{'X', "kernel", NAME, 0, 9, 10, 20, 1, 9}},
                                   {{'X', "kernel", NAME, 0, 9, 1000, 20, 1, 9}}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_collectives c[2] = {COLLECTIVES_OF(rows[0], &arena), COLLECTIVES_OF(rows[1], &arena)};
    const struct rp_collectives *ranks[] = {&c[0], &c[1]};
    struct rp_rendezvous_list m;

    UNUSED_STATE(state);
    assert_code(rp_rendezvous_find(ranks, 2, &arena, &m, NULL), RP_OK);
    assert_true(m.clocks_differ);
    assert_code(rp_rendezvous_find(ranks, 1, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.rule, RP_RENDEZVOUS_BY_NONE);
    assert_int_equal(m.nlost, 1);
    rp_collectives_release(&c[0]);
    rp_collectives_release(&c[1]);
    rp_arena_release(&arena);
}

/* Twenty numbered collectives of two ranks, of which the first `early` end on rank 0 before rank 1
   begins. */
static bool differ_with(int early)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_collectives c[2];
    const struct rp_collectives *ranks[] = {&c[0], &c[1]};
    struct rp_rendezvous_list m;
    struct row rows[20];

    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < 20; i++)
            rows[i] =
                (struct row){'X', "kernel", NAME, 0, 9,         1000 * i + 100 * r * (i < early),
                             50,  i + 1,    9,    0, IN("a", i)};
        c[r] = COLLECTIVES_OF(rows, &arena);
    }
    assert_code(rp_rendezvous_find(ranks, 2, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.rule, RP_RENDEZVOUS_BY_SEQUENCE);
    assert_int_equal(m.n, 20);
    rp_collectives_release(&c[0]);
    rp_collectives_release(&c[1]);
    rp_arena_release(&arena);
    return m.clocks_differ;
}

static void one_in_ten_may_end_before_all_arrive(void **state)
{
    UNUSED_STATE(state);
    assert_false(differ_with(0));
    assert_false(differ_with(2));
    assert_true(differ_with(3));
}

/* On the host the root of a broadcast may leave before the others arrive, but nobody leaves an
   all-reduce: which it was is looked up in the right list, although rank 1 sent something before.
 */
static void early_ends_count_where_ranks_wait(void **state)
{
    UNUSED_STATE(state);
    for (int early_reduce = 0; early_reduce < 2; early_reduce++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_collectives c[2];
        const struct rp_collectives *ranks[] = {&c[0], &c[1]};
        struct rp_rendezvous_list m;

        for (int r = 0; r < 2; r++) {
            const struct row rows[] = {
                {'X', "collective_comm", "MPI_Send", 1, 5, 0, 10, .text_key = "Process Group Name",
                 .text = "world"},
                {'X', "collective_comm", "MPI_Allreduce", 1, 5, 100 + 50 * r * early_reduce, 20,
                 .key = "Seq", .value = 1, .text_key = "Process Group Name", .text = "world"},
                {'X', "collective_comm", "MPI_Bcast", 1, 5, 300 + 50 * r * !early_reduce, 20,
                 .key = "Seq", .value = 2, .text_key = "Process Group Name", .text = "world"}};

            c[r] = collectives_of(rows + !r, 2 + (size_t)r, &arena);
            assert_int_equal(c[r].list.n, 2 + r);
        }
        assert_code(rp_rendezvous_find(ranks, 2, &arena, &m, NULL), RP_OK);
        assert_int_equal(m.rule, RP_RENDEZVOUS_BY_SEQUENCE);
        assert_int_equal(m.n, 2);
        assert_int_equal(m.clocks_differ, early_reduce);
        rp_collectives_release(&c[0]);
        rp_collectives_release(&c[1]);
        rp_arena_release(&arena);
    }
}

/* A trace without a base counts from 0; its steps begin with the first mark. */
static void a_rank_has_a_base_and_a_first_step(void **state)
{
    const struct row rows[] = {{'X', "user_annotation", "ProfilerStep#1", 1, 1, 500, 400},
                               {'X', "user_annotation", "ProfilerStep#2", 1, 1, 900, 400},
                               {'X', "kernel", NAME, 0, 9, 1000, 20, 1, 9}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_collectives c = COLLECTIVES_OF(rows, &arena);

    UNUSED_STATE(state);
    assert_int_equal(c.base_ns, 0);
    assert_int_equal(c.first_step_ns, 500);
    rp_collectives_release(&c);
    rp_arena_release(&arena);
}

/* Recordings of one boot have one clock, whatever the time of day was adjusted by in between. */
static void bases_differ_between_boots_only(void **state)
{
    static const struct {
        uint64_t boot[2];
        int64_t offset_ns;
    } cases[] = {{{5, 5}, 0}, {{5, 6}, 700}, {{0, 0}, 700}, {{5, 0}, 700}};
    const struct row rows[] = {{'X', "kernel", NAME, 0, 9, 10000, 2000, 1, 9}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_collectives c[2] = {COLLECTIVES_OF(rows, &arena), COLLECTIVES_OF(rows, &arena)};
        const struct rp_collectives *ranks[] = {&c[0], &c[1]};
        struct rp_rendezvous_list m;

        c[0].base_ns = 1000;
        c[1].base_ns = 1700;
        c[0].boot = cases[i].boot[0];
        c[1].boot = cases[i].boot[1];
        assert_code(rp_rendezvous_find(ranks, 2, &arena, &m, NULL), RP_OK);
        assert_int_equal(m.base_ns[0], 0);
        assert_int_equal(m.base_ns[1], cases[i].offset_ns);
        assert_int_equal(m.at[0].last_ns, 10000 + cases[i].offset_ns);
        rp_collectives_release(&c[0]);
        rp_collectives_release(&c[1]);
        rp_arena_release(&arena);
    }
}

/* One rank recorded steps 1 to 3, the other steps 2 to 4, on one clock: their order pairs step 1
   with step 2, their ends show which belong together. */
static void other_steps_are_matched_by_time(void **state)
{
    enum { MS = 1000000 };
    struct row a[6], b[6];
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_rendezvous_list m;
    struct rp_collectives ranks[2];
    const struct rp_collectives *lists[] = {&ranks[0], &ranks[1]};

    UNUSED_STATE(state);
    for (int i = 0; i < 6; i++) {
        int64_t end = (10 + 7 * i + i * i % 3) * MS,
                later = (10 + 7 * (i + 2) + (i + 2) * (i + 2) % 3) * MS;

        a[i] = (struct row){'X', "kernel", NAME, 0, 20, end - MS, MS, i + 1, 20};
        b[i] = (struct row){'X', "kernel", NAME, 0, 20, later - MS / 2, MS / 2 + 3000, i + 1, 20};
    }
    ranks[0] = COLLECTIVES_OF(a, &arena);
    ranks[1] = COLLECTIVES_OF(b, &arena);
    assert_code(rp_rendezvous_find(lists, 2, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.rule, RP_RENDEZVOUS_BY_TIME);
    assert_false(m.clocks_differ);
    assert_int_equal(m.n, 4);
    assert_int_equal(m.nlost, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(m.at[i].at[0], i + 2);
        assert_int_equal(m.at[i].at[1], i);
        assert_int_equal(m.at[i].last, 1);
    }
    for (int i = 0; i < 2; i++)
        rp_collectives_release(&ranks[i]);
    rp_arena_release(&arena);
}

/* Two ranks that recorded other steps on one clock; the ends of a collective differ by `apart`.
   Returns whether they were matched by time. */
static bool match_by_time(int64_t unit, int64_t apart)
{
    struct row a[6], b[6];
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_rendezvous_list m;
    struct rp_collectives ranks[2];
    const struct rp_collectives *lists[] = {&ranks[0], &ranks[1]};

    for (int i = 0; i < 6; i++) {
        int64_t end = (10 + 7 * i + i * i % 3) * unit;
        int64_t later = (10 + 7 * (i + 2) + (i + 2) * (i + 2) % 3) * unit;

        a[i] = (struct row){'X', "kernel", NAME, 0, 20, end - 10000, 10000, i + 1, 20};
        b[i] = (struct row){'X', "kernel", NAME, 0, 20, later - 10000, 10000 + apart, i + 1, 20};
    }
    ranks[0] = COLLECTIVES_OF(a, &arena);
    ranks[1] = COLLECTIVES_OF(b, &arena);
    assert_code(rp_rendezvous_find(lists, 2, &arena, &m, NULL), RP_OK);
    for (int i = 0; i < 2; i++)
        rp_collectives_release(&ranks[i]);
    rp_arena_release(&arena);
    return m.rule == RP_RENDEZVOUS_BY_TIME;
}

/* Within 50 µs and 1 % of their length, and an eighth of the usual time between two (7 units). */
static void ends_are_paired_within_a_reach(void **state)
{
    UNUSED_STATE(state);
    assert_true(match_by_time(1000000, 50600));
    assert_false(match_by_time(1000000, 50610));
    assert_true(match_by_time(20000, 17500));
    assert_false(match_by_time(20000, 17501));
}

/* The rule by which two ranks with n collectives match; each has its own times. */
static uint8_t rule_of(const int64_t *first, const int64_t *second, int n)
{
    struct row *a = calloc((size_t)n, sizeof *a), *b = calloc((size_t)n, sizeof *b);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_rendezvous_list m;
    struct rp_collectives ranks[2];
    const struct rp_collectives *lists[] = {&ranks[0], &ranks[1]};

    for (int i = 0; i < n; i++) {
        a[i] = (struct row){'X', "kernel", NAME, 0, 20, first[i], 1000, i + 1, 20};
        b[i] = (struct row){'X', "kernel", NAME, 0, 20, second[i], 1000, i + 1, 20};
    }
    ranks[0] = collectives_of(a, (size_t)n, &arena);
    ranks[1] = collectives_of(b, (size_t)n, &arena);
    assert_code(rp_rendezvous_find(lists, 2, &arena, &m, NULL), RP_OK);
    for (int i = 0; i < 2; i++)
        rp_collectives_release(&ranks[i]);
    rp_arena_release(&arena);
    free(a);
    free(b);
    return m.rule;
}

/* A clock that is 10 ms ahead explains all; but six of ten collectives also end when the next one
   does on the other rank. */
static void most_must_end_together(void **state)
{
    UNUSED_STATE(state);
    for (int together = 5; together <= 6; together++) {
        int64_t at[11], ahead[11];

        for (int i = 0; i < 11; i++) {
            at[i] = i ? at[i - 1] + (i <= together ? 10000000 : 13000000 + 70000 * i) : 1000000;
            ahead[i] = at[i] + 10000000;
        }
        assert_int_equal(rule_of(at, ahead, 11),
                         together == 6 ? RP_RENDEZVOUS_BY_TIME : RP_RENDEZVOUS_BY_ORDER);
    }
}

/* Their order makes no sense; of fifty collectives ten end together, or nine. */
static void some_must_end_together(void **state)
{
    UNUSED_STATE(state);
    for (int together = 9; together <= 10; together++) {
        int64_t a[50], b[50];

        for (int i = 0; i < 50; i++) {
            a[i] = 10000000 * (int64_t)i + 100000 * (i * i % 37);
            b[i] = i < 50 - together || i == 49 ? a[i] + 2000000 + 100000 * (i * 7 % 41) : a[i];
        }
        b[0] = a[0];
        assert_int_equal(rule_of(a, b, 50),
                         together == 10 ? RP_RENDEZVOUS_BY_TIME : RP_RENDEZVOUS_BY_NONE);
    }
}

/* Of ranks that name their host a clock is the same within 1 µs, of others within 10 µs. */
static void times_of_two_clocks_have_a_tolerance(void **state)
{
    const struct row rows[] = {{'X', "kernel", NAME, 0, 9, 10000, 2000, 1, 9}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_collectives c = COLLECTIVES_OF(rows, &arena);

    UNUSED_STATE(state);
    for (int host = 0; host < 2; host++)
        for (int64_t more = 0; more < 2; more++) {
            struct rp_clock clock = {.known = true, .offset_ns = (host ? 1000 : 10000) + more};

            c.host = host ? "node" : NULL;
            rp_rendezvous_settle_clock(&c, 0, true, &clock);
            assert_int_equal(clock.used, more);
        }
    rp_collectives_release(&c);
    rp_arena_release(&arena);
}

/* What a clock drifts until the last collective ends counts. */
static void a_clock_that_drifts_is_used(void **state)
{
    const struct row rows[] = {{'X', "kernel", NAME, 0, 9, 10000, 2000, 1, 9},
                               {'X', "kernel", NAME, 0, 9, 50000, 2000, 2, 9}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_collectives c = COLLECTIVES_OF(rows, &arena);

    UNUSED_STATE(state);
    for (int more = 0; more < 2; more++) {
        struct rp_clock clock = {
            .known = true, .at_ns = 2000 - 10 * more, .drift_ppb = 2e8, .nsteps = 0};

        rp_rendezvous_settle_clock(&c, 0, true, &clock);
        assert_int_equal(clock.used, more); /* 10,000 and 10,002 ns at 52,000 */
    }
    rp_collectives_release(&c);
    rp_arena_release(&arena);
}

/* Ranks of different groups: no clock makes sense of their order, and they do not end together. */
static void what_does_not_belong_together_is_not_matched(void **state)
{
    enum { MS = 1000000 };
    static const int first[] = {10, 13, 29, 31, 50, 77, 91, 99},
                     second[] = {4, 22, 26, 41, 44, 62, 70, 120};
    struct row a[8], b[8];
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_rendezvous_list m;
    struct rp_collectives ranks[2];
    const struct rp_collectives *lists[] = {&ranks[0], &ranks[1]};

    UNUSED_STATE(state);
    for (int i = 0; i < 8; i++) {
        a[i] = (struct row){'X', "kernel", NAME, 0, 20, (int64_t)first[i] * MS, MS, i + 1, 20};
        b[i] = (struct row){'X', "kernel", NAME, 0, 20, (int64_t)second[i] * MS, MS, i + 1, 20};
    }
    ranks[0] = COLLECTIVES_OF(a, &arena);
    ranks[1] = COLLECTIVES_OF(b, &arena);
    assert_code(rp_rendezvous_find(lists, 2, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.rule, RP_RENDEZVOUS_BY_NONE);
    assert_int_equal(m.n, 0);
    assert_int_equal(m.nlost, 16);
    assert_true(m.dropped);
    for (int i = 0; i < 2; i++)
        rp_collectives_release(&ranks[i]);
    rp_arena_release(&arena);
}

/* What a collective moves in all: an all-gather what comes out, others what goes in. */
static void sizes_of_collectives(void **state)
{
    static const struct {
        uint8_t kind;
        int64_t in, out, n, size;
    } rows[] = {{RP_COLL_ALL_REDUCE, 100, 300, 4, 100},     {RP_COLL_ALL_REDUCE, -1, 300, 4, 300},
                {RP_COLL_ALL_REDUCE, -1, -1, 4, -1},        {RP_COLL_ALL_REDUCE, 0, 0, 4, -1},
                {RP_COLL_ALL_GATHER, 100, 300, 4, 300},     {RP_COLL_ALL_GATHER, 100, -1, 4, 400},
                {RP_COLL_ALL_GATHER, 100, -1, 0, -1},       {RP_COLL_ALL_GATHER, 0, 0, 4, -1},
                {RP_COLL_ALL_GATHER, INT64_MAX, -1, 2, -1}, {RP_COLL_ALL_REDUCE, 1, 300, 4, 1},
                {RP_COLL_ALL_REDUCE, -1, 1, 4, 1},          {RP_COLL_ALL_GATHER, 9, 1, 4, 1},
                {RP_COLL_ALL_GATHER, 1, -1, 1, 1}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_collective c = {
            .kind = rows[i].kind, .in_bytes = rows[i].in, .out_bytes = rows[i].out};

        assert_int_equal(rp_collective_size(&c, rows[i].n), rows[i].size);
    }
}

/* What ended before or when the first step began is of the start-up, unless all is. */
static void collectives_of_the_start_up_are_dropped(void **state)
{
    static const struct {
        int64_t first_step;
        size_t dropped;
    } cases[] = {{INT64_MIN, 0}, {19, 0}, {29, 0}, {30, 1}, {59, 1}, {60, 2}, {89, 2}, {90, 0}};

    UNUSED_STATE(state);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct rp_collective at[2][3];
        struct rp_collectives c[2] = {{.first_step_ns = cases[k].first_step},
                                      {.first_step_ns = cases[k].first_step}};
        const struct rp_collectives *ranks[] = {&c[0], &c[1]};
        uint32_t rank[] = {0, 1}, places[3][2];
        struct rp_rendezvous met[3];
        struct rp_rendezvous_list list = {.n = 3, .at = met, .ndoubtful = 3};

        for (uint32_t r = 0; r < 2; r++) {
            for (uint32_t i = 0; i < 3; i++) /* rank 1 ends last: at 30, 60 and 90 */
                at[r][i] = (struct rp_collective){.end_ns = 30 * (i + 1) - 10 * (1 - r)};
            c[r].list.at = at[r];
            c[r].list.n = 3;
        }
        for (uint32_t i = 0; i < 3; i++) {
            places[i][0] = places[i][1] = i;
            met[i] = (struct rp_rendezvous){
                .n = 2, .rank = rank, .at = places[i], .last_ns = i, .doubtful = true};
        }
        assert_int_equal(rp_rendezvous_drop_start_up(&list, ranks), cases[k].dropped);
        assert_int_equal(list.n, 3 - cases[k].dropped);
        assert_int_equal(list.ndoubtful, 3 - cases[k].dropped);
        for (size_t i = 0; i < list.n; i++)
            assert_int_equal(list.at[i].last_ns, i + cases[k].dropped);
    }
}

int test_collectives(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_of_the_start_up_are_dropped),
        cmocka_unit_test(sizes_of_collectives),
        cmocka_unit_test(kinds_are_told_by_any_spelling),
        cmocka_unit_test(groups_say_what_they_share),
        cmocka_unit_test(sizes_come_from_shapes),
        cmocka_unit_test(types_have_names_and_sizes),
        cmocka_unit_test(bus_factors_are_those_of_rings),
        cmocka_unit_test(streams_are_numbered_by_their_ids),
        cmocka_unit_test(numbers_join_calls_of_other_names),
        cmocka_unit_test(ids_of_streams_are_numbers),
        cmocka_unit_test(facts_come_from_the_spans_around_the_launch),
        cmocka_unit_test(sizes_come_from_the_launching_operator),
        cmocka_unit_test(order_needs_the_same_name_on_all_ranks),
        cmocka_unit_test(a_missing_collective_moves_only_its_stream),
        cmocka_unit_test(a_cut_rank_that_lacks_collectives_is_left_out),
        cmocka_unit_test(groups_and_numbers_find_those_who_meet),
        cmocka_unit_test(the_last_and_the_one_before),
        cmocka_unit_test(groups_without_numbers_keep_their_order),
        cmocka_unit_test(host_collectives_meet_by_name_and_size),
        cmocka_unit_test(numbered_host_collectives_meet_by_number),
        cmocka_unit_test(clocks_that_do_not_fit_are_noticed),
        cmocka_unit_test(one_in_ten_may_end_before_all_arrive),
        cmocka_unit_test(early_ends_count_where_ranks_wait),
        cmocka_unit_test(bases_differ_between_boots_only),
        cmocka_unit_test(a_rank_has_a_base_and_a_first_step),
        cmocka_unit_test(other_steps_are_matched_by_time),
        cmocka_unit_test(ends_are_paired_within_a_reach),
        cmocka_unit_test(most_must_end_together),
        cmocka_unit_test(some_must_end_together),
        cmocka_unit_test(times_of_two_clocks_have_a_tolerance),
        cmocka_unit_test(a_clock_that_drifts_is_used),
        cmocka_unit_test(what_does_not_belong_together_is_not_matched),
    };

    return cmocka_run_group_tests_name("collectives", tests, NULL, NULL);
}
