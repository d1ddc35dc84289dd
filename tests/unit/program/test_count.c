/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of operations that access a part of an array, by hand. */
#include "formats/programs.h"
#include "program/structure.h"
#include "unit.h"

#define WITH_ADD                                                             \
    "HloModule m\n\nadd {\n  a = f32[] parameter(0)\n"                       \
    "  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\n"            \
    "ENTRY e {\n  x = f32[10,4] parameter(0)\n  i = s32[3,1] parameter(1)\n" \
    "  u = f32[3,4] parameter(2)\n  k = s32[] parameter(3)\n"

/* An array is x, 160 bytes; a part is u, 48; the indices are i, 12; a position is k, 4. */
static void parts_count_and_not_the_whole(void **state)
{
    static const struct {
        const char *instruction;
        double bytes;
    } rows[] = {
        /* reads the part, the updates and the indices, and writes the part */
        {"f32[10,4] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, "
         "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
         3 * 48 + 12},
        {"f32[3,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
         "index_vector_dim=1, slice_sizes={1,4}",
         2 * 48 + 12},
        {"f32[3,4] dynamic-slice(x, k, k), dynamic_slice_sizes={3,4}", 2 * 48 + 2 * 4},
        {"f32[10,4] dynamic-update-slice(x, u, k, k)", 2 * 48 + 2 * 4},
        {"f32[3,4] slice(x), slice={[0:3], [0:4]}", 2 * 48},
        {"f32[10,4] add(x, x)", 3 * 160},
        {"f32[40] reshape(x)", 160 + 160},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_err err = RP_ERR_INIT;
        struct rp_program *p;
        struct rp_costs costs;
        char text[1024];

        snprintf(text, sizeof text, WITH_ADD "  ROOT r = %s\n}\n", rows[i].instruction);
        assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
        assert_ok(rp_program_count(p, &arena, &costs, &err), &err);
        assert_float_equal(costs.op[p->computations.at[p->entry].root].bytes, rows[i].bytes, 0);
        rp_arena_release(&arena);
        rp_program_free(p);
    }
}

int test_count(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_count_and_not_the_whole),
    };

    return cmocka_run_group_tests_name("count", tests, NULL, NULL);
}
