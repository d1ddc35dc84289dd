/* SPDX-License-Identifier: Apache-2.0 */
/* Which block of an array a device has, by shardings of HLO and of Shardy. */
#include "exec/data/tile.h"
#include "unit.h"

#include <string.h>

static struct rp_slice text(const char *s)
{
    return (struct rp_slice){s, (uint32_t)strlen(s), 0};
}

static void is_at(const struct rp_tile *tile, int64_t row, int64_t column)
{
    assert_int_equal(tile->at[0], row);
    assert_int_equal(tile->at[1], column);
}

static void devices_of_hlo(void **state)
{
    int64_t tiles[] = {2, 2}, iota[] = {4}, grid[] = {2, 2}, turned[] = {1, 0},
            listed[] = {3, 1, 0, 2}, rows[] = {2, 1, 2};
    struct rp_sharding s = {.type = RP_SHARDING_OTHER, .tiles = {tiles, 2}, .dims = {iota, 1}};
    struct rp_tile tile;

    UNUSED_STATE(state);
    assert_true(rp_tile_of(&s, 2, 2, &tile));
    is_at(&tile, 1, 0);
    s.dims = (struct rp_int_list){grid, 2};
    s.perm = (struct rp_int_list){turned, 2};
    assert_true(rp_tile_of(&s, 2, 2, &tile)); /* columns first */
    is_at(&tile, 0, 1);
    s = (struct rp_sharding){
        .type = RP_SHARDING_OTHER, .tiles = {tiles, 2}, .devices = {listed, 4}};
    assert_true(rp_tile_of(&s, 2, 2, &tile));
    is_at(&tile, 1, 1);
    assert_false(rp_tile_of(&s, 2, 7, &tile)); /* no such device */
    s = (struct rp_sharding){
        .type = RP_SHARDING_OTHER, .tiles = {rows, 3}, .dims = {iota, 1}, .last_replicate = true};
    assert_true(rp_tile_of(&s, 2, 3, &tile)); /* two rows, each on two devices */
    is_at(&tile, 1, 0);
    assert_int_equal(tile.blocks[0], 2);
    assert_int_equal(tile.blocks[1], 1);
    s.type = RP_SHARDING_MANUAL;
    assert_false(rp_tile_of(&s, 2, 0, &tile));
    s.type = RP_SHARDING_REPLICATED;
    assert_true(rp_tile_of(&s, 2, 3, &tile));
    is_at(&tile, 0, 0);
}

static void devices_of_shardy(void **state)
{
    struct rp_sdy of = {
        text("{one = #sdy.mesh<[\\\"x\\\"=4]>, mesh = #sdy.mesh<[\"a\"=2, \"b\"=4]>, "
             "back = #sdy.mesh<[\"x\"=4], device_ids=[3, 2, 1, 0]>}"),
        text("")};
    struct rp_slice list = text("#sdy.sharding_per_value<[<@mesh, [{\"a\"}, {\"b\"}]>, <@mesh, "
                                "[{\"b\", \"a\"}, {?}]>, <@mesh, [{\"b\":(2)2}, {}]>]>");
    struct rp_tile tile;

    UNUSED_STATE(state);
    assert_int_equal(rp_sdy_devices(of.meshes), 8);
    assert_true(rp_tile_of_sdy(&of, list, 0, 2, 6, &tile));
    is_at(&tile, 1, 2);
    assert_true(rp_tile_of_sdy(&of, list, 1, 2, 6, &tile)); /* b is major */
    is_at(&tile, 5, 0);
    assert_int_equal(tile.blocks[0], 8);
    assert_true(rp_tile_of_sdy(&of, list, 2, 2, 7, &tile)); /* the minor half of b */
    is_at(&tile, 1, 0);
    assert_int_equal(tile.blocks[0], 2);
    assert_false(rp_tile_of_sdy(&of, list, 3, 2, 0, &tile));
    assert_true(rp_tile_of_sdy(&of, text("#sdy.sharding<@back, [{\"x\"}]>"), 0, 1, 1, &tile));
    assert_int_equal(tile.at[0], 2);
    assert_true(rp_tile_of_sdy(&of, text("<mesh<[\"q\"=2]>, [{\"q\"}]>"), 0, 1, 1, &tile));
    assert_int_equal(tile.at[0], 1);
    of.axes = text("#sdy<manual_axes{\"b\"}>"); /* a is not manual: it splits nothing */
    assert_true(rp_tile_of_sdy(&of, list, 0, 2, 6, &tile));
    is_at(&tile, 0, 2);
    assert_int_equal(tile.blocks[0], 1);
    assert_false(rp_tile_of_sdy(&of, text("<@none, [{\"x\"}]>"), 0, 1, 0, &tile));
    assert_false(rp_tile_of_sdy(&of, text("<@one, [{\"y\"}]>"), 0, 1, 0, &tile));
}

/* Sizes that do not divide: the last block is filled up with zeros. */
static void blocks(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_tile tile = {2, {2, 2}, {1, 1}};
    struct rp_tensor *whole, *block, *back;
    int64_t dims[] = {3, 5};

    UNUSED_STATE(state);
    assert_ok(rp_tensor_new(RP_ELEM_S32, dims, 2, &whole, &err), &err);
    for (int i = 0; i < 15; i++)
        ((int32_t *)whole->data)[i] = i;
    assert_ok(rp_tile_take(whole, &tile, &block, &err), &err);
    assert_int_equal(block->dims[0], 2);
    assert_int_equal(block->dims[1], 3);
    assert_int_equal(((int32_t *)block->data)[0], 13);
    assert_int_equal(((int32_t *)block->data)[1], 14);
    assert_int_equal(((int32_t *)block->data)[2], 0);
    assert_int_equal(((int32_t *)block->data)[3], 0);
    assert_ok(rp_tensor_new(RP_ELEM_S32, dims, 2, &back, &err), &err);
    memset(back->data, 0, rp_tensor_bytes(back));
    for (int i = 0; i < 4; i++) {
        struct rp_tile at = {2, {2, 2}, {i / 2, i % 2}};
        struct rp_tensor *part;

        assert_ok(rp_tile_take(whole, &at, &part, &err), &err);
        rp_tile_put(part, &at, back);
        rp_tensor_drop(part);
    }
    assert_memory_equal(back->data, whole->data, rp_tensor_bytes(whole));
    rp_tensor_drop(whole);
    rp_tensor_drop(block);
    rp_tensor_drop(back);
}

int test_tile(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_of_hlo),
        cmocka_unit_test(devices_of_shardy),
        cmocka_unit_test(blocks),
    };

    return cmocka_run_group_tests_name("tile", tests, NULL, NULL);
}
