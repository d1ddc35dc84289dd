/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas, columns, maps and the string table. */
#include "unit.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/line.h"
#include "base/names.h"
#include "base/order.h"
#include "base/strtab.h"
#include "base/vec.h"

#include <stdlib.h>

static void arena_alignment_and_size(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    size_t align, i;

    UNUSED_STATE(state);
    for (i = 1; i < 3000; i++) {
        align = (size_t)1 << (i % 7);
        unsigned char *p = rp_arena_alloc(&arena, i, align);

        assert_non_null(p);
        assert_int_equal((uintptr_t)p % align, 0);
        memset(p, (int)i, i);
    }
    assert_true(arena.bytes > 3000 * 3000 / 2);
    rp_arena_release(&arena);
    assert_int_equal(arena.bytes, 0);
}

static void arena_refuses_overflow(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;

    UNUSED_STATE(state);
    assert_null(rp_arena_alloc(&arena, SIZE_MAX - 10, 8));
    assert_null(rp_arena_calloc(&arena, SIZE_MAX / 2, 4, 8));
    rp_arena_release(&arena);
}

static void arena_texts(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    char *big;

    UNUSED_STATE(state);
    assert_string_equal(rp_arena_copy(&arena, "abcdef", 3), "abc");
    assert_string_equal(rp_arena_strdup(&arena, ""), "");
    assert_string_equal(rp_arena_printf(&arena, "%d-%s", 7, "x"), "7-x");
    big = rp_arena_printf(&arena, "%200000d", 1);
    assert_int_equal(strlen(big), 200000);
    rp_arena_release(&arena);
}

static void arena_lists(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    const char **list = NULL;
    size_t n = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        rp_arena_append(&arena, &list, &n, rp_arena_textf(&arena, "%d", i));
        rp_arena_append(&arena, &list, &n, NULL);
    }
    assert_int_equal(n, 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(atoi(list[i]), i);
    rp_arena_release(&arena);
}

static void arena_failure_sticks(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_string_equal(rp_arena_textf(&arena, "%d of %d", 1, 2), "1 of 2");
    assert_null(rp_arena_text(&arena, NULL));
    assert_int_equal(rp_arena_check(&arena, "testing", &err), RP_OK);
    assert_null(rp_arena_calloc(&arena, SIZE_MAX / 2, 4, 8));
    assert_string_equal(rp_arena_text(&arena, "more"), "more");
    assert_int_equal(rp_arena_check(&arena, "testing", &err), RP_NOMEM);
    assert_non_null(strstr(err.text, "testing"));
    rp_arena_release(&arena);
    assert_int_equal(rp_arena_check(&arena, "testing", &err), RP_OK);
}

static void arena_adopts(void **state)
{
    struct rp_arena to = RP_ARENA_INIT, from = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    RP_VEC(uint64_t) small = {0};
    RP_VEC(uint64_t) large = {0};
    const char *early, *adopted;
    uint64_t i;
    int round;

    UNUSED_STATE(state);
    early = NULL;
    for (round = 0; round < 3; round++) { /* into an empty arena, then into one that has chunks */
        adopted = rp_arena_textf(&from, "%70000d", round);
        for (i = 0; i < 100000; i++)
            assert_int_equal(rp_vec_push(&large, i, &err), RP_OK);
        assert_int_equal(rp_vec_push(&small, 7, &err), RP_OK);
        assert_int_equal(rp_arena_adopt_column(&from, large.at, large.cap, sizeof *large.at, &err),
                         RP_OK);
        assert_int_equal(rp_arena_adopt_column(&from, small.at, small.cap, sizeof *small.at, &err),
                         RP_OK);
        rp_arena_adopt(&to, &from);
        assert_int_equal(from.bytes, 0);
        assert_int_equal(strlen(adopted), 70000);
        assert_int_equal(large.at[99999], 99999);
        assert_int_equal(small.at[0], 7);
        if (!early)
            early = rp_arena_text(&to, "early");
        assert_string_equal(rp_arena_text(&to, "late"), "late");
        assert_string_equal(early, "early");
        large.at = small.at = NULL;
        large.n = small.n = large.cap = small.cap = 0;
    }
    rp_arena_release(&to);
    assert_int_equal(to.bytes, 0);
}

struct pair {
    int first, second;
};
RP_ORDER(by_first_down_then_second, struct pair, RP_DOWN(first), RP_UP(second))

static void orders_and_bounds(void **state)
{
    struct pair pairs[] = {{1, 5}, {3, 9}, {1, 2}, {3, 4}, {2, 0}};
    static const int sorted[] = {2, 4, 4, 4, 9};
    size_t i;

    UNUSED_STATE(state);
    qsort(pairs, 5, sizeof *pairs, by_first_down_then_second);
    assert_int_equal(pairs[0].second, 4);
    assert_int_equal(pairs[1].second, 9);
    assert_int_equal(pairs[2].first, 2);
    assert_int_equal(pairs[3].second, 2);
    RP_LOWER_BOUND(i, 5, sorted[i] < 4);
    assert_int_equal(i, 1);
    RP_LOWER_BOUND(i, 5, sorted[i] < 10);
    assert_int_equal(i, 5);
    RP_LOWER_BOUND_FROM(i, 2, 5, sorted[i] <= 4);
    assert_int_equal(i, 4);
    RP_LOWER_BOUND(i, 0, true);
    assert_int_equal(i, 0);
}

static void vec_grows_past_the_heap(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    RP_VEC(uint32_t) v = {0};
    uint32_t i;

    UNUSED_STATE(state);
    for (i = 0; i < 3000000; i++)
        assert_ok(rp_vec_push(&v, i * 7, &err), &err);
    for (i = 0; i < 3000000; i += 1013)
        assert_int_equal(v.at[i], i * 7);
    rp_vec_release(&v);
    assert_null(v.at);
    assert_ok(rp_vec_push(&v, 1, &err), &err);
    rp_vec_release(&v);
}

static void vec_refuses_overflow(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    RP_VEC(uint64_t) v = {0};

    UNUSED_STATE(state);
    assert_code(rp_vec_reserve(&v, SIZE_MAX / 8, &err), RP_NOMEM);
    assert_contains(err.text, "out of memory");
    assert_null(v.at);
}

static void map_keeps_all_keys(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_map map;
    uint32_t i, value;

    UNUSED_STATE(state);
    rp_map_init(&map);
    assert_int_equal(rp_map_get(&map, 5), RP_MAP_NONE);
    for (i = 0; i < 100000; i++)
        assert_ok(rp_map_put(&map, (uint64_t)i << 20, i, &err), &err);
    for (i = 0; i < 100000; i++) {
        assert_int_equal(rp_map_get(&map, (uint64_t)i << 20), i);
        assert_int_equal(rp_map_get(&map, ((uint64_t)i << 20) + 1), RP_MAP_NONE);
    }
    assert_ok(rp_map_put(&map, 0, 42, &err), &err);
    assert_int_equal(rp_map_get(&map, 0), 42);
    assert_ok(rp_map_intern(&map, 0, 7, &value, &err), &err);
    assert_int_equal(value, 42);
    assert_int_equal(map.n, 100000);
    rp_map_release(&map);
}

static void strtab_interns_by_bytes(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_strtab tab;
    uint32_t id, again, i;
    char text[32];

    UNUSED_STATE(state);
    assert_ok(rp_strtab_init(&tab, &err), &err);
    assert_int_equal(rp_strtab_find(&tab, "", 0), 0);
    for (i = 0; i < 50000; i++) {
        int n = snprintf(text, sizeof text, "kernel_%u", i);

        assert_ok(rp_strtab_intern(&tab, text, (size_t)n, &id, &err), &err);
        assert_int_equal(id, i + 1);
    }
    for (i = 0; i < 50000; i++) {
        int n = snprintf(text, sizeof text, "kernel_%u", i);

        assert_ok(rp_strtab_intern(&tab, text, (size_t)n, &again, &err), &err);
        assert_int_equal(again, i + 1);
        assert_string_equal(rp_strtab_borrow(&tab, again), text);
        assert_int_equal(rp_strtab_len(&tab, again), n);
    }
    assert_ok(rp_strtab_intern(&tab, "a\0b", 3, &id, &err), &err);
    assert_ok(rp_strtab_intern(&tab, "a\0c", 3, &again, &err), &err);
    assert_int_not_equal(id, again);
    assert_int_equal(rp_strtab_find(&tab, "absent", 6), UINT32_MAX);
    rp_strtab_release(&tab);
}

/* All strings up to three letters of a small alphabet: equal hashes or not, ids never collide. */
static void strtab_dense_keys(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_strtab tab;
    uint32_t id, expected = 1;
    char text[4];
    int i, n;

    UNUSED_STATE(state);
    assert_ok(rp_strtab_init(&tab, &err), &err);
    for (n = 1; n <= 3; n++) {
        for (i = 0; i < 1 << (4 * n); i++) {
            text[0] = (char)(i & 15);
            text[1] = (char)(i >> 4 & 15);
            text[2] = (char)(i >> 8 & 15);
            assert_ok(rp_strtab_intern(&tab, text, (size_t)n, &id, &err), &err);
            assert_int_equal(id, expected++);
        }
    }
    rp_strtab_release(&tab);
}

static void arena_lines_grow(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_arena_line line = {.arena = &arena}, other = {.arena = &arena};
    char expected[8];

    UNUSED_STATE(state);
    rp_arena_addf(&line, "%s", "");
    assert_string_equal(line.text, "");
    for (int i = 0; i < 3000; i++) {
        rp_arena_addf(&line, "%04d,", i);
        rp_arena_addf(&other, "x");
    }
    assert_int_equal(line.n, 15000);
    assert_int_equal(strlen(line.text), 15000);
    for (int i = 0; i < 3000; i++) {
        sprintf(expected, "%04d,", i);
        assert_memory_equal(line.text + 5 * i, expected, 5);
    }
    assert_int_equal(strspn(other.text, "x"), 3000);
    rp_arena_release(&arena);
}

static void names_find_their_numbers(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_names names = {0};
    struct rp_err err = RP_ERR_INIT;
    char text[16];

    UNUSED_STATE(state);
    assert_int_equal(rp_names_find(&names, "a"), RP_MAP_NONE);
    for (uint32_t i = 0; i < 2000; i++)
        assert_ok(rp_names_add(&names, rp_arena_textf(&arena, "name%u", i % 1500), i, &err), &err);
    for (uint32_t i = 0; i < 1500; i++) {
        sprintf(text, "name%u", i);
        assert_int_equal(rp_names_find(&names, text), i); /* the first of two */
    }
    assert_int_equal(rp_names_find(&names, "name1500"), RP_MAP_NONE);
    assert_int_equal(rp_names_find(&names, NULL), RP_MAP_NONE);
    rp_names_release(&names);
    rp_arena_release(&arena);
}

int test_memory(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_alignment_and_size),
        cmocka_unit_test(arena_refuses_overflow),
        cmocka_unit_test(arena_texts),
        cmocka_unit_test(arena_lists),
        cmocka_unit_test(arena_failure_sticks),
        cmocka_unit_test(arena_adopts),
        cmocka_unit_test(arena_lines_grow),
        cmocka_unit_test(names_find_their_numbers),
        cmocka_unit_test(orders_and_bounds),
        cmocka_unit_test(vec_grows_past_the_heap),
        cmocka_unit_test(vec_refuses_overflow),
        cmocka_unit_test(map_keeps_all_keys),
        cmocka_unit_test(strtab_interns_by_bytes),
        cmocka_unit_test(strtab_dense_keys),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
