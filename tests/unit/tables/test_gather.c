/* SPDX-License-Identifier: Apache-2.0 */
/* Columns as arrays, beside the values that are read one by one. */
#include "unit.h"

#include "tables/gather.h"

#define N 19 /* two bytes of bits and a part */

struct element {
    uint32_t other;
    uint8_t word;
    int64_t value;
};

struct fixture {
    struct element rows[N], others[N];
    struct rp_table_rank rank;
};

/* Every third row has no other element; every fifth other value is -1. */
static void fill(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    for (uint32_t i = 0; i < N; i++) {
        f->rows[i] = (struct element){i % 3 ? N - 1 - i : RP_NONE, (uint8_t)(i % 7), 1000 + i};
        f->others[i] = (struct element){0, (uint8_t)(i % 4), i % 5 ? (int64_t)i << 40 : -1};
    }
    f->rank.arrays[RP_ARRAY_ITEM] = (struct rp_table_span){f->rows, sizeof f->rows[0]};
    f->rank.arrays[RP_ARRAY_OWNER] = (struct rp_table_span){f->others, sizeof f->others[0]};
}

static void strided_values_and_those_of_other_elements(void **state)
{
    const struct rp_table_column own = {
        .cell = RP_CELL_I64, .array = RP_ARRAY_ITEM, .offset = offsetof(struct element, value)};
    const struct rp_table_column word = {.cell = RP_CELL_WORD,
                                         .array = RP_ARRAY_OWNER,
                                         .offset = offsetof(struct element, word),
                                         .via = RP_ARRAY_ITEM};
    const struct rp_table_column far = {.cell = RP_CELL_I64,
                                        .array = RP_ARRAY_OWNER,
                                        .offset = offsetof(struct element, value),
                                        .via = RP_ARRAY_ITEM,
                                        .nullable = true,
                                        .null = -1};
    struct fixture f;
    int64_t values[N], one;
    uint8_t words[N], bits[N / 8 + 1];
    size_t nulls = 0;
    bool none;

    (void)state;
    fill(&f);
    assert_false(rp_gather_in_place(&f.rank, &own));
    rp_gather(&f.rank, &own, N, values);
    for (int64_t i = 0; i < N; i++)
        assert_int_equal(values[i], 1000 + i);
    rp_gather(&f.rank, &word, N, words);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(words[i], i % 3 ? (N - 1 - i) % 4 : 0);
    rp_gather(&f.rank, &far, N, values);
    rp_gather_valid(values, 8, N, -1, bits);
    for (size_t i = 0; i < N; i++) {
        bool there = rp_table_int(&f.rank, &far, i, &one);

        nulls += !there;
        assert_int_equal(bits[i / 8] >> i % 8 & 1, there);
        if (there)
            assert_int_equal(values[i], one);
    }
    assert_int_equal(bits[N / 8] >> N % 8, 0); /* nothing behind the last row */
    assert_int_equal(rp_gather_nulls(values, 8, N, -1), nulls);
    assert_int_equal(rp_gather_reach(&f.rank, &far, N, &none), N - 1); /* row 0 has none */
    assert_true(none);
}

static void an_end_is_a_start_and_a_duration(void **state)
{
    int64_t ts[] = {5, RP_NO_TS, 7, INT64_MAX - 3, -9}, dur[] = {3, 4, RP_OPEN_NS, 10, 2};
    struct rp_trace trace = {.ev = {.n = 5}};
    struct rp_table_rank rank = {.trace = &trace};
    const struct rp_table_column end = {
        .cell = RP_CELL_END, .array = RP_ARRAY_TS, .nullable = true, .null = RP_NO_TS};
    struct rp_table_column far = end;
    uint32_t turned[] = {4, 3, RP_NONE, 1, 0};
    int64_t got[5], turned_got[5], one;

    (void)state;
    far.via = RP_ARRAY_ITEM;
    trace.ev.ts_ns = ts;
    trace.ev.dur_ns = dur;
    rank.arrays[RP_ARRAY_TS] = (struct rp_table_span){ts, sizeof ts[0]};
    rp_gather(&rank, &end, 5, got);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(got[i], rp_table_int(&rank, &end, i, &one) ? one : RP_NO_TS);
    rank.arrays[RP_ARRAY_ITEM] = (struct rp_table_span){turned, sizeof turned[0]};
    rp_gather(&rank, &far, 5, turned_got);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(turned_got[i], i == 2 ? RP_NO_TS : got[turned[i]]);
    assert_int_equal(got[3], INT64_MAX);
    assert_int_equal(got[4], -7);
}

static void mapped_numbers(void **state)
{
    const struct rp_table_column text = {
        .cell = RP_CELL_TEXT, .array = RP_ARRAY_OWNER, .via = RP_ARRAY_ITEM};
    struct fixture f;
    int32_t map[N], to[N];

    (void)state;
    fill(&f);
    for (int32_t i = 0; i < N; i++)
        map[i] = 100 - i;
    rp_gather_mapped(&f.rank, &text, N, map, to);
    for (int32_t i = 0; i < N; i++)
        assert_int_equal(to[i], i % 3 ? 100 - (N - 1 - i) : -1);
}

int test_gather(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strided_values_and_those_of_other_elements),
        cmocka_unit_test(an_end_is_a_start_and_a_duration),
        cmocka_unit_test(mapped_numbers),
    };

    return cmocka_run_group_tests_name("tables/gather", tests, NULL, NULL);
}
