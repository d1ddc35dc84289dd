/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives: whom they are for, and which of two ranks belong together. */
#include "facts/ranks/rendezvous.h"
#include "trace/trace_fixtures.h"

struct rank {
    struct rp_trace *t;
    struct rp_work work;
    struct rp_arena arena;
    struct rp_collectives c;
};

static void rank_open_rows(struct rank *r, const struct row *rows, size_t n, int number, int world)
{
    r->t = trace_of(rows, n);
    r->t->rank = number;
    r->t->world_size = world;
    rp_arena_init(&r->arena);
    assert_code(rp_work_init(&r->work, r->t, NULL, NULL), RP_OK);
    assert_code(rp_collectives_init(&r->c, &r->work, NULL, &r->arena, NULL), RP_OK);
    assert_int_equal(r->c.list.n, 1);
}

static void rank_open(struct rank *r, const struct row *row, int number, int world)
{
    rank_open_rows(r, row, 1, number, world);
}

static void rank_close(struct rank *r)
{
    rp_collectives_release(&r->c);
    rp_work_release(&r->work);
    rp_arena_release(&r->arena);
    rp_trace_free(r->t);
}

#define KERNEL "kernel", "ncclDevKernel_SendRecv", 0, 7, 10, 5, 1, 7, 0

/* Rows are what a rank of several records; the message is from rank 0 to rank 1. */
static void the_two_sides_of_a_message(void **state)
{
    static const struct {
        struct row sends, receives;
        int messages;
    } rows[] = {
        {{'X', KERNEL, "Dst Rank", 1}, {'X', KERNEL, "Src Rank", 0}, 1},
        {{'X', KERNEL, "Dst Rank", 1, 0, NULL, NULL, "Src Rank", 0}, /* both ends are named */
         {'X', KERNEL, "Dst Rank", 1, 0, NULL, NULL, "Src Rank", 0},
         1},
        {{'X', KERNEL, NULL, 0, 0, "Dst Rank", "1"}, {'X', KERNEL, "Src Rank", 0}, 1}, /* a text */
        {{'X', KERNEL, NULL, 0, 0, "Dst Rank", "x"}, {'X', KERNEL, "Src Rank", -1}, 0},
        {{'X', KERNEL, "peer", 1, 0, "Collective name", "Send", "Group size", 4},
         {'X', KERNEL, "peer", 0, 0, "Collective name", "Recv", "Group size", 4},
         1},
        {{'X', KERNEL, "peer", 1, 0, "Collective name", "Send", "Group size", 3}, /* who is 1? */
         {'X', KERNEL, "peer", 0, 0, "Collective name", "Recv", "Group size", 3},
         0},
        {{'X', KERNEL, "peer", 1, 0, "Collective name", "Send", "Group rank", 0},
         {'X', KERNEL, "peer", 0, 0, "Collective name", "Recv", "Group rank", 1},
         1},
        {{'X', KERNEL, "Dst Rank", 0}, {'X', KERNEL, "Src Rank", 1}, 0}, /* to itself */
    };
    struct rank a, b;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rank_open(&a, &rows[i].sends, 0, 4);
        rank_open(&b, &rows[i].receives, 1, 4);
        if ((int)a.c.messages.n != rows[i].messages || (int)b.c.messages.n != rows[i].messages)
            fail_msg("row %zu: %zu and %zu messages", i, a.c.messages.n, b.c.messages.n);
        if (rows[i].messages) {
            assert_int_equal(a.c.messages.at[0].sends, 1);
            assert_int_equal(b.c.messages.at[0].sends, 0);
            assert_true(a.c.messages.at[0].channel == b.c.messages.at[0].channel);
        }
        rank_close(&a);
        rank_close(&b);
    }
}

/* Rank 0 is a peer as others are; a rank that is not known has none. */
static void peers_and_ranks_begin_at_zero(void **state)
{
    static const struct row to = {'X', KERNEL, "Dst Rank", 0}, from = {'X', KERNEL, "Src Rank", 0},
                            nobody = {'X', KERNEL, "Dst Rank", -1};
    static const struct {
        const struct row *row;
        int rank, messages;
    } rows[] = {{&to, 1, 1}, {&from, 1, 1}, {&to, 0, 0}, {&nobody, 1, 0}, {&to, -1, 0}};
    struct rank r;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rank_open(&r, rows[i].row, rows[i].rank, 4);
        assert_int_equal(r.c.messages.n, rows[i].messages);
        rank_close(&r);
    }
}

/* The pair that is found knows which of its participants sends. */
static void pairs_know_who_sends(void **state)
{
    static const struct row sends = {'X', KERNEL, "Dst Rank", 1};
    static const struct row receives = {'X', KERNEL, "Src Rank", 0};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_rendezvous_list m;
    struct rank a, b;
    const struct rp_collectives *ranks[] = {&a.c, &b.c};

    UNUSED_STATE(state);
    rank_open(&a, &sends, 0, 2);
    rank_open(&b, &receives, 1, 2);
    assert_code(rp_rendezvous_find(ranks, 2, &arena, &m, NULL), RP_OK);
    assert_int_equal(m.n, 1);
    assert_int_equal(m.at[0].members, 2);
    assert_int_equal(m.at[0].senders, 1);
    rank_close(&a);
    rank_close(&b);
    rp_arena_release(&arena);
}

/* A call that sends to 1 and receives from 3. */
static void one_call_may_do_both(void **state)
{
    static const struct row both = {
        'X',      KERNEL, "peer",       1,  0, "Collective name", "MPI_Sendrecv",
        "source", 3,      "Group rank", "2"};
    static const struct row other = {'X',        KERNEL,       "peer", 2, 0, "Collective name",
                                     "MPI_Send", "Group rank", 3};
    struct rank a, b;

    UNUSED_STATE(state);
    rank_open(&a, &both, 2, 4);
    rank_open(&b, &other, 3, 4);
    assert_int_equal(a.c.messages.n, 2);
    assert_int_equal(a.c.messages.at[0].sends, 1);
    assert_int_equal(a.c.messages.at[1].sends, 0);
    assert_int_equal(b.c.messages.n, 1);
    assert_true(a.c.messages.at[1].channel == b.c.messages.at[0].channel);
    assert_true(a.c.messages.at[0].channel != b.c.messages.at[0].channel);
    rank_close(&a);
    rank_close(&b);
}

/* The kernel of a group says nothing: the operations since the launch before it do, each of them.
 */
static void a_kernel_stands_for_a_group(void **state)
{
    static const struct row rows[] = {
        {'X', "cpu_op", "ncclSend", 1, 1, 10, 5, .key = "Dst Rank", .value = 1},
        {'X', "cpu_op", "aten::add", 1, 1, 20, 5},
        {'X', "cpu_op", "ncclRecv", 1, 1, 30, 5, .key = "Src Rank", .value = 2},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 40, 5, 1},
        {'X', "cpu_op", "ncclRecv", 1, 1, 50, 5, .key = "Src Rank", .value = 3}, /* of the next */
        {'X', "kernel", "ncclDevKernel_SendRecv", 0, 7, 60, 5, 1, 7},
    };
    struct rank r;

    UNUSED_STATE(state);
    rank_open_rows(&r, rows, sizeof rows / sizeof *rows, 0, 4);
    assert_int_equal(r.c.messages.n, 2);
    assert_int_equal(r.c.messages.at[0].sends, 1);
    assert_int_equal(r.c.messages.at[1].sends, 0);
    rank_close(&r);
}

/* ------------------------------------------------------------------ pairs */

#define OPERATIONS 3

struct side {
    struct rp_collective list[OPERATIONS];
    struct rp_message messages[4];
    struct rp_collectives c;
};

/* Operations that end at 100, 200 and 300. */
static void side_init(struct side *s, const struct rp_message *messages, size_t n)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < OPERATIONS; i++)
        s->list[i].end_ns = 100 * (i + 1);
    memcpy(s->messages, messages, n * sizeof *messages);
    s->c.list.at = s->list;
    s->c.list.n = OPERATIONS;
    s->c.messages.at = s->messages;
    s->c.messages.n = n;
}

static void assert_pairs(struct side *sides, size_t n, const bool *left_out,
                         const struct rp_rendezvous_pair *want, size_t nwant, size_t operations)
{
    const struct rp_collectives *ranks[3] = {&sides[0].c, &sides[1].c, &sides[2].c};
    rp_rendezvous_pair_vec pairs = {0};
    size_t found;

    assert_code(rp_rendezvous_find_pairs(ranks, n, left_out, &pairs, &found, NULL), RP_OK);
    assert_int_equal(pairs.n, nwant);
    assert_int_equal(found, operations);
    for (size_t i = 0; i < nwant; i++) {
        for (int k = 0; k < 2; k++) {
            assert_int_equal(pairs.at[i].rank[k], want[i].rank[k]);
            assert_int_equal(pairs.at[i].at[k], want[i].at[k]);
        }
        assert_int_equal(pairs.at[i].senders, want[i].senders);
    }
    rp_vec_release(&pairs);
}

static void messages_are_paired_in_their_order(void **state)
{
    static const struct rp_message send[] = {{7, 0, 1}, {7, 1, 1}, {7, 2, 1}};
    static const struct rp_message receive[] = {{7, 0, 0}, {7, 1, 0}, {7, 2, 0}};
    static const struct rp_message few[] = {{7, 0, 0}, {7, 2, 0}};
    static const struct rp_rendezvous_pair want[] = {
        {{0, 1}, {0, 0}, 1}, {{0, 1}, {1, 1}, 1}, {{0, 1}, {2, 2}, 1}};
    static const struct rp_rendezvous_pair back[] = {
        {{0, 1}, {0, 0}, 2}, {{0, 1}, {1, 1}, 2}, {{0, 1}, {2, 2}, 2}};
    static const struct rp_rendezvous_pair two[] = {{{0, 1}, {0, 0}, 1}, {{0, 1}, {2, 2}, 1}};
    static const bool none[3], first[3] = {true};
    struct side s[3];

    UNUSED_STATE(state);
    side_init(&s[0], send, 3);
    side_init(&s[1], receive, 3);
    side_init(&s[2], send, 0);
    assert_pairs(s, 3, none, want, 3, 6);
    assert_pairs(s, 3, first, NULL, 0, 0);
    side_init(&s[2], send, 3); /* who is the sender? */
    assert_pairs(s, 3, none, NULL, 0, 0);
    side_init(&s[0], send, 0); /* two that receive, and nobody sends */
    side_init(&s[1], receive, 1);
    side_init(&s[2], receive, 1);
    assert_pairs(s, 3, none, NULL, 0, 0);
    side_init(&s[0], send, 3);
    side_init(&s[1], few, 2); /* one receive was not recorded: by their ends */
    assert_pairs(s, 2, none, two, 2, 4);
    side_init(&s[0], receive, 3);
    side_init(&s[1], send, 3);
    assert_pairs(s, 2, none, back, 3, 6);
    assert_pairs(s, 1, none, NULL, 0, 0); /* the other one is not there */
}

/* The first operations exchange data; the second of rank 0 sends to both others. */
static void operations_with_several_messages(void **state)
{
    static const struct rp_message a[] = {{1, 0, 1}, {2, 0, 0}, {3, 1, 1}, {4, 1, 1}};
    static const struct rp_message b[] = {{1, 0, 0}, {2, 0, 1}, {3, 2, 0}};
    static const struct rp_message c[] = {{4, 1, 0}, {9, 7, 0}}; /* 7: there is no such */
    static const struct rp_rendezvous_pair want[] = {
        {{0, 1}, {0, 0}, 3}, {{0, 1}, {1, 2}, 1}, {{0, 2}, {1, 1}, 1}};
    static const bool none[3];
    struct side s[3];

    UNUSED_STATE(state);
    side_init(&s[0], a, 4);
    side_init(&s[1], b, 3);
    side_init(&s[2], c, 2);
    assert_pairs(s, 3, none, want, 3, 5);
}

/* What a group sends is the sum of its operations, where they are of one type. */
static void sizes_of_a_group_are_added(void **state)
{
    static const struct {
        const char *first, *second;
        int64_t sum;
    } rows[] = {{"Float", "Float", 1200}, {"Float", "Half", -1}, {"Half", "BFloat16", 600}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row group[] = {
            {'X', "cpu_op", "ncclSend", 1, 1, 10, 5, .key = "Dst Rank", .value = 1,
             .key2 = "In msg nelems", .value2 = 100, .text_key = "dtype", .text = rows[i].first},
            {'X', "cpu_op", "ncclSend", 1, 1, 20, 5, .key = "Dst Rank", .value = 2,
             .key2 = "In msg nelems", .value2 = 200, .text_key = "dtype", .text = rows[i].second},
            {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 40, 5, 1},
            {'X', "kernel", "ncclDevKernel_SendRecv", 0, 7, 60, 5, 1, 7},
        };
        struct rank r;

        rank_open_rows(&r, group, sizeof group / sizeof *group, 0, 4);
        assert_int_equal(r.c.messages.n, 2);
        assert_int_equal(r.c.list.at[0].in_bytes, rows[i].sum);
        rank_close(&r);
    }
}

/* Its group, type and size are those of the first of its operations. */
static void a_group_is_described_by_its_first_operation(void **state)
{
    const struct row group[] = {
        {'X', "cpu_op", "ncclSend", 1, 1, 10, 5, .key = "Dst Rank", .value = 1,
         .key2 = "Process Group Name", .value2 = 5, .text_key = "dtype", .text = "Half"},
        {'X', "cpu_op", "ncclSend", 1, 1, 20, 5, .key = "Dst Rank", .value = 2,
         .key2 = "Process Group Name", .value2 = 6, .text_key = "dtype", .text = "Float"},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 40, 5, 1},
        {'X', "kernel", "ncclDevKernel_SendRecv", 0, 7, 60, 5, 1, 7},
    };
    const struct row named[] = {
        {'X', "cpu_op", "ncclRecv", 1, 1, 10, 5, .key = "Src Rank", .value = 1,
         .key2 = "Group size", .value2 = 8, .text_key = "Process Group Name", .text = "pp",
         .text_key2 = "Process Group Ranks", .text2 = "[0, 1]"},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 40, 5, 1},
        {'X', "kernel", "ncclDevKernel_SendRecv", 0, 7, 60, 5, 1, 7},
    };
    struct rank r;
    uint64_t hash;

    UNUSED_STATE(state);
    rank_open_rows(&r, group, 4, 0, 4);
    assert_int_equal(r.c.messages.n, 2);
    assert_true(r.c.messages.at[0].channel != r.c.messages.at[1].channel);
    assert_string_equal(r.c.list.at[0].group, "5");
    assert_string_equal(r.c.list.at[0].dtype, "f16");
    assert_int_equal(r.c.list.at[0].group_size, 0);
    rank_close(&r);
    rank_open_rows(&r, named, 3, 0, 4);
    assert_string_equal(r.c.list.at[0].group, "pp");
    assert_int_equal(r.c.list.at[0].group_size, 8);
    hash = r.c.list.at[0].group_hash;
    rank_close(&r);
    struct row other[3];
    memcpy(other, named, sizeof named);
    other[0].text2 = "[0, 2]";
    rank_open_rows(&r, other, 3, 0, 4);
    assert_true(hash != r.c.list.at[0].group_hash);
    rank_close(&r);
}

/* A library that describes its kernels after their launch: what comes before is of another one,
   unless there is nothing behind. */
static void operations_are_behind_or_before_the_launch(void **state)
{
    const struct row rows[] = {
        {'X', "collective_comm", "ncclSend", 1, 1, 10, 5, .key = "Dst Rank", .value = 1},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 40, 5, 1},
        {'X', "kernel", "ncclDevKernel_SendRecv", 0, 7, 60, 5, 1, 7},
        {'X', "collective_comm", "ncclRecv", 1, 1, 50, 5, .key = "Src Rank", .value = 2},
        {'X', "collective_comm", "ncclRecv", 1, 1, 70, 5, .key = "Src Rank", .value = 3},
        {'X', "collective_comm", "AllReduce", 1, 1, 80, 5, .key = "Src Rank", .value = 3},
        {'X', "collective_comm", "ncclRecv", 1, 1, 90, 5},
        {'X', "collective_comm", "ncclRecv", 1, 2, 90, 5, .key = "Src Rank", .value = 3},
    };
    struct rank r;

    UNUSED_STATE(state);
    rank_open_rows(&r, rows, 8, 0, 4);
    assert_int_equal(r.c.messages.n, 2);
    assert_true(!r.c.messages.at[0].sends && !r.c.messages.at[1].sends);
    assert_true(r.c.messages.at[0].channel != r.c.messages.at[1].channel);
    rank_close(&r);
    rank_open_rows(&r, rows, 3, 0, 4);
    assert_int_equal(r.c.messages.n, 1);
    assert_true(r.c.messages.at[0].sends);
    rank_close(&r);
}

int test_messages(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_is_described_by_its_first_operation),
        cmocka_unit_test(operations_are_behind_or_before_the_launch),
        cmocka_unit_test(the_two_sides_of_a_message),
        cmocka_unit_test(peers_and_ranks_begin_at_zero),
        cmocka_unit_test(pairs_know_who_sends),
        cmocka_unit_test(one_call_may_do_both),
        cmocka_unit_test(a_kernel_stands_for_a_group),
        cmocka_unit_test(messages_are_paired_in_their_order),
        cmocka_unit_test(operations_with_several_messages),
        cmocka_unit_test(sizes_of_a_group_are_added)};

    return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
