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

#define SIGNAL "  s = f32[1,7,2] parameter(0)\n  w = f32[3,2,5] parameter(1)\n"

/* A product and a sum for every pair of a window's element and one of the array that meet. */
static void arithmetic(void **state)
{
    static const struct {
        const char *parameters, *instruction;
        double flops, transcendentals;
    } rows[] = {
        {"  a = f32[8,16] parameter(0)\n  b = f32[16,4] parameter(1)\n",
         "f32[8,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", 2 * 8 * 4 * 16,
         0},
        {"  a = f32[16,8] parameter(0)\n  b = f32[16,4] parameter(1)\n",
         "f32[8,4] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}", 2 * 8 * 4 * 16,
         0},
        {"  a = f32[3,8,16] parameter(0)\n  b = f32[3,16,4] parameter(1)\n",
         "f32[3,8,4] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
         "rhs_contracting_dims={1}",
         2 * 3 * 8 * 4 * 16, 0},
        {SIGNAL, "f32[1,5,5] convolution(s, w), window={size=3}, dim_labels=b0f_0io->b0f",
         2 * 5 * 3 * 2 * 5, 0},
        {SIGNAL, "f32[1,7,5] convolution(s, w), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f",
         2 * (7 * 3 - 2) * 2 * 5, 0}, /* without the padding */
        {SIGNAL, "f32[1,3,5] convolution(s, w), window={size=3 stride=2}, dim_labels=b0f_0io->b0f",
         2 * 3 * 3 * 2 * 5, 0},
        {SIGNAL,
         "f32[1,3,5] convolution(s, w), window={size=3 rhs_dilate=2}, dim_labels=b0f_0io->b0f",
         2 * 3 * 3 * 2 * 5, 0},
        {"  s = f32[1,3,2] parameter(0)\n  w = f32[3,2,5] parameter(1)\n",
         "f32[1,3,5] convolution(s, w), window={size=3 lhs_dilate=2}, dim_labels=b0f_0io->b0f",
         2 * (2 + 1 + 2) * 2 * 5, 0}, /* every second one is there */
        {"  a = f32[8,16] parameter(0)\n", "f32[8,16] add(a, a)", 8 * 16, 0},
        {"  a = f32[8,16] parameter(0)\n", "f32[8,16] tanh(a)", 0, 8 * 16},
        {"  a = f32[8,16] parameter(0)\n", "f32[16,8] transpose(a), dimensions={1,0}", 0, 0},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_err err = RP_ERR_INIT;
        struct rp_program *p;
        struct rp_costs costs;
        const struct rp_cost *root;
        char text[1024];

        snprintf(text, sizeof text, "HloModule m\n\nENTRY e {\n%s  ROOT r = %s\n}\n",
                 rows[i].parameters, rows[i].instruction);
        assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
        assert_ok(rp_program_count(p, &arena, &costs, &err), &err);
        root = &costs.op[p->computations.at[p->entry].root];
        if (root->flops != rows[i].flops || root->transcendentals != rows[i].transcendentals)
            fail_msg("%s: %g and %g", rows[i].instruction, root->flops, root->transcendentals);
        rp_arena_release(&arena);
        rp_program_free(p);
    }
}

int test_count(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_count_and_not_the_whole),
        cmocka_unit_test(arithmetic),
    };

    return cmocka_run_group_tests_name("count", tests, NULL, NULL);
}
