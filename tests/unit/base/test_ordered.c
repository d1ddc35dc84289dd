/* SPDX-License-Identifier: Apache-2.0 */
/* The ordered map beside a table with a place for every key. */
#include "base/ordered.h"
#include "unit.h"

#define KEYS 500

static void check_neighbours(const struct rp_ordered *map, const int64_t *values, int64_t key)
{
    const struct rp_ordered_entry *from = rp_ordered_from(map, key);
    const struct rp_ordered_entry *upto = rp_ordered_upto(map, key);
    int64_t after = key, before = key;

    while (after < KEYS && values[after] < 0)
        after++;
    while (before >= 0 && values[before] < 0)
        before--;
    assert_int_equal(from ? from->key : KEYS, after);
    assert_int_equal(upto ? upto->key : -1, before);
    if (from)
        assert_int_equal(from->value, values[after]);
    if (upto)
        assert_int_equal(upto->value, values[before]);
}

/* Levels as the top of ordered.c says, which bounds the depth. */
static int check_levels(const struct rp_ordered *map, uint32_t at)
{
    const struct rp_ordered_entry *e = &map->entries.at[at];
    const struct rp_ordered_entry *all = map->entries.at;

    if (!at)
        return 0;
    assert_int_equal(all[e->child[0]].level, e->level - 1);
    assert_in_range(all[e->child[1]].level, e->level - 1, e->level);
    assert_true(all[all[e->child[1]].child[1]].level < e->level);
    return 1 + check_levels(map, e->child[0]) + check_levels(map, e->child[1]);
}

static void finds_neighbours(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_ordered map = {0};
    int64_t values[KEYS];
    uint64_t random = 1;

    UNUSED_STATE(state);
    memset(values, 0xff, sizeof values);
    assert_null(rp_ordered_from(&map, 0));
    assert_false(rp_ordered_remove(&map, 0));
    for (int64_t i = 0; i < 6000; i++) {
        int64_t key;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        key = (int64_t)(random >> 40) % KEYS;
        if (random >> 63 || i < KEYS) { /* at first from the last to the first */
            key = i < KEYS ? KEYS - 1 - i : key;
            assert_ok(rp_ordered_put(&map, key, i, false, &err), &err);
            values[key] = i;
        } else {
            assert_int_equal(rp_ordered_remove(&map, key), values[key] >= 0);
            values[key] = -1;
        }
        check_neighbours(&map, values, key);
        check_neighbours(&map, values, i % KEYS);
        if (i % 50 == 0)
            assert_int_equal(check_levels(&map, map.root), map.n);
    }
    assert_true(map.entries.n <= KEYS + 1); /* removed entries are used again */
    rp_ordered_release(&map);
}

int test_ordered(void);
int test_ordered(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(finds_neighbours)};

    return cmocka_run_group_tests_name("ordered", tests, NULL, NULL);
}
