/* SPDX-License-Identifier: Apache-2.0 */
/* Parts: written and read back they are the same; damaged bytes are refused. */
#include "unit.h"

#include "base/vec.h"
#include "result/part.h"

struct gap {
    int64_t begin_ns;
    uint8_t cause;
};

#define NAMED(M, s)  \
    M(s, TEXT, name) \
    M(s, PLAIN_LIST, int64_t, values)
RP_PART_STRUCT(named, NAMED);
RP_PART_TYPE(named_type, struct named, NAMED);

typedef RP_VEC(struct gap) gap_vec;

#define PART(M, s)                   \
    M(s, TEXT, device)               \
    M(s, TEXTS, others, 3)           \
    M(s, PLAIN, bool, on_device)     \
    M(s, ARRAY, int64_t, sums, 3)    \
    M(s, PLAIN, struct gap, longest) \
    M(s, RECORD, named, inner)       \
    M(s, RECORDS, named, pair, 2)    \
    M(s, LIST, named, list)          \
    M(s, PLAIN_VEC, gap_vec, gaps, struct gap)
RP_PART_STRUCT(part, PART);
RP_PART_TYPE(part_type, struct part, PART);

static const struct rp_field other_fields[] = {RP_PART_TEXT(struct part, device), RP_PART_END};
static const struct rp_type other_type = {"part", sizeof(struct part), other_fields, NULL};

static void fill(struct part *part)
{
    static int64_t values[] = {4, -5};
    static struct named list[] = {{"a", 2, values}, {"", 0, NULL}, {NULL, 1, values}};
    size_t i;

    *part = (struct part){.device = "H200",
                          .on_device = true,
                          .sums = {1, -2, INT64_MAX},
                          .longest = {7, 3},
                          .others = {NULL, "H100", "A100"},
                          .inner = {"inner", 2, values},
                          .pair = {{"one", 0, NULL}, {"two", 1, values}},
                          .nlist = 3,
                          .list = list};
    for (i = 0; i < 40000; i++) {
        struct gap gap = {(int64_t)i, (uint8_t)i};

        assert_int_equal(rp_vec_push(&part->gaps, gap, NULL), RP_OK);
    }
}

static struct rp_out *written(struct rp_arena *arena)
{
    struct rp_out *out;
    struct part part;

    fill(&part);
    assert_int_equal(rp_part_adopt(&part_type, &part, arena, NULL), RP_OK);
    assert_int_equal(part.gaps.cap, 0);
    assert_int_equal(rp_out_open_memory(&out, NULL), RP_OK);
    rp_part_write(&part_type, &part, out);
    assert_int_equal(rp_out_flush(out, NULL), RP_OK);
    return out;
}

static void assert_as_filled(const struct part *part)
{
    assert_string_equal(part->device, "H200");
    assert_null(part->others[0]);
    assert_string_equal(part->others[2], "A100");
    assert_true(part->on_device);
    assert_int_equal(part->sums[2], INT64_MAX);
    assert_int_equal(part->longest.begin_ns, 7);
    assert_string_equal(part->inner.name, "inner");
    assert_int_equal(part->inner.values[1], -5);
    assert_string_equal(part->pair[0].name, "one");
    assert_int_equal(part->pair[1].values[0], 4);
    assert_int_equal(part->nlist, 3);
    assert_string_equal(part->list[1].name, "");
    assert_null(part->list[2].name);
    assert_int_equal(part->list[2].values[0], 4);
    assert_int_equal(part->gaps.n, 40000);
    for (size_t i = 0; i < part->gaps.n; i++)
        assert_true(part->gaps.at[i].begin_ns == (int64_t)i &&
                    part->gaps.at[i].cause == (uint8_t)i);
}

static void what_is_written_is_read(void **state)
{
    struct rp_arena sender = RP_ARENA_INIT, receiver = RP_ARENA_INIT;
    struct rp_out *out = written(&sender);
    struct part part;
    const char *bytes;
    size_t n;

    UNUSED_STATE(state);
    bytes = rp_out_borrow_memory(out, &n);
    rp_arena_release(&sender);
    assert_in_range(n, 160000, 160400); /* 40,000 items of 16 bytes, a byte for each word */
    assert_int_equal(rp_part_read(&part_type, bytes, n, &receiver, &part, NULL), RP_OK);
    rp_out_abandon(out);
    assert_as_filled(&part);
    rp_arena_release(&receiver);
}

/* The copy needs nothing of the original, and has each text once. */
static void what_is_copied_is_the_same(void **state)
{
    struct rp_arena first = RP_ARENA_INIT, second = RP_ARENA_INIT;
    struct part part, copy;

    UNUSED_STATE(state);
    fill(&part);
    part.others[1] = rp_arena_strdup(&first, "A100");
    assert_int_equal(rp_part_adopt(&part_type, &part, &first, NULL), RP_OK);
    assert_int_equal(rp_part_copy(&part_type, &part, &second, &copy, NULL), RP_OK);
    rp_arena_release(&first);
    assert_as_filled(&copy);
    assert_ptr_equal(copy.others[1], copy.others[2]);
    assert_int_equal(copy.gaps.cap, 0);
    rp_arena_release(&second);
}

#define WORDS(M, s)             \
    M(s, PLAIN, int64_t, wide)  \
    M(s, PLAIN, int32_t, small) \
    M(s, PLAIN, uint16_t, half) \
    M(s, PLAIN, double, real)   \
    M(s, TEXT, name)
RP_PART_STRUCT(words, WORDS);
RP_PART_TYPE(words_type, struct words, WORDS);

#define ALL_WORDS(M, s)     \
    M(s, LIST, words, list) \
    M(s, PLAIN_LIST, int64_t, hashes)
RP_PART_STRUCT(all_words, ALL_WORDS);
RP_PART_TYPE(all_words_type, struct all_words, ALL_WORDS);

/* Numbers of every length, after numbers of every length. */
static void any_number_is_read_as_it_was(void **state)
{
    enum { N = 64 * 3 };
    struct rp_arena arena = RP_ARENA_INIT;
    static struct words list[N];
    static int64_t hashes[N];
    struct all_words part = {N, list, N, hashes}, back;
    struct rp_out *out;
    const char *bytes;
    size_t n;

    UNUSED_STATE(state);
    for (size_t i = 0; i < N; i++) {
        uint64_t one = UINT64_C(1) << i / 3, v = i % 3 == 0 ? one : i % 3 == 1 ? one - 1 : 0 - one;

        list[i] = (struct words){(int64_t)v, (int32_t)(uint32_t)v, (uint16_t)v, (double)i / 7,
                                 i % 5 ? i % 2 ? "odd" : "even" : NULL};
        hashes[i] = (int64_t)(v * UINT64_C(0x9e3779b97f4a7c15));
    }
    assert_int_equal(rp_out_open_memory(&out, NULL), RP_OK);
    rp_part_write(&all_words_type, &part, out);
    assert_int_equal(rp_out_flush(out, NULL), RP_OK);
    bytes = rp_out_borrow_memory(out, &n);
    assert_int_equal(rp_part_read(&all_words_type, bytes, n, &arena, &back, NULL), RP_OK);
    for (size_t i = 0; i < N; i++) {
        assert_true(back.list[i].wide == list[i].wide && back.list[i].small == list[i].small);
        assert_true(back.list[i].half == list[i].half && back.list[i].real == list[i].real);
        assert_true(!list[i].name == !back.list[i].name);
        if (list[i].name)
            assert_string_equal(back.list[i].name, list[i].name);
        assert_true(back.hashes[i] == hashes[i]);
    }
    rp_out_abandon(out);
    rp_arena_release(&arena);
}

/* Every cut is found, whatever it cuts; counts that promise too much are refused. */
static void damage_is_found(void **state)
{
    struct rp_arena sender = RP_ARENA_INIT, receiver = RP_ARENA_INIT;
    struct rp_out *out = written(&sender);
    struct part part;
    const char *bytes;
    char *copy;
    size_t n, i;

    UNUSED_STATE(state);
    bytes = rp_out_borrow_memory(out, &n);
    for (i = 0; i < n; i += i < 400 ? 1 : 9973)
        assert_int_equal(rp_part_read(&part_type, bytes, i, &receiver, &part, NULL), RP_FORMAT);
    copy = rp_arena_copy(&receiver, bytes, n + 1);
    assert_int_equal(rp_part_read(&part_type, copy, n + 1, &receiver, &part, NULL), RP_FORMAT);
    assert_int_equal(rp_part_read(&other_type, bytes, n, &receiver, &part, NULL), RP_FORMAT);
    memset(copy + 8, 0xff, 8); /* the length of the first text */
    assert_int_equal(rp_part_read(&part_type, copy, n, &receiver, &part, NULL), RP_FORMAT);
    rp_out_abandon(out);
    rp_arena_release(&sender);
    rp_arena_release(&receiver);
}

int test_part(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read), cmocka_unit_test(what_is_copied_is_the_same),
        cmocka_unit_test(any_number_is_read_as_it_was), cmocka_unit_test(damage_is_found)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
