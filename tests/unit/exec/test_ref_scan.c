/* SPDX-License-Identifier: Apache-2.0 */
/* Scans and ragged products, against values worked out by hand. */
#include "exec_fixture.h"

#define SUM                                                                                \
    "HloModule m\nsum {\n x = f32[2] parameter(0)\n c = f32[2] parameter(1)\n"             \
    " n = s32[] parameter(2)\n one = s32[] constant(1)\n k = s32[] add(n, one)\n"          \
    " s = f32[2] add(x, c)\n d = f32[2] add(s, s)\n"                                       \
    " ROOT r = (f32[2], s32[], f32[2], s32[]) tuple(d, n, s, k)\n}\n"                      \
    "add {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n"                            \
    " s = f32[] add(x, y)\n ROOT r = (f32[], f32[]) tuple(s, s)\n}\n"                      \
    "twice {\n x = f32[] parameter(0)\n ROOT s = f32[] add(x, x)\n}\n"                     \
    "count {\n n = s32[] parameter(0)\n one = s32[] constant(1)\n k = s32[] add(n, one)\n" \
    " ROOT r = (s32[], s32[]) tuple(n, k)\n}\n"                                            \
    "ENTRY e {\n a = f32[2,3] constant({{1,2,3},{10,20,30}})\n"                            \
    " v = f32[4] constant({1,2,3,4})\n z = f32[2] constant({0,5})\n"                       \
    " n = s32[] constant(7)\n zero = f32[] constant(0)\n"
#define SCAN2 "(f32[2,3], s32[3], f32[2], s32[]) scan(a, z, n), dimensions={1}, num_carries=2, "

static const struct exec_case scans[] = {
    {"cumulative sum",
     SUM " ROOT r = (f32[4], f32[]) scan(v, zero), dimensions={0}, num_carries=1, "
         "is_associative=true, to_apply=add\n}\n",
     5,
     {1, 3, 6, 10, 10}},
    {"backwards",
     SUM " ROOT r = (f32[4], f32[]) scan(v, zero), dimensions={0}, num_carries=1, "
         "is_reverse=true, to_apply=add\n}\n",
     5,
     {10, 9, 7, 4, 10}},
    {"without a carry",
     SUM " ROOT r = f32[4] scan(v), dimensions={0}, num_carries=0, to_apply=twice\n}\n",
     4,
     {2, 4, 6, 8}},
    {"without an input",
     SUM " ROOT r = (s32[3], s32[]) scan(n), dimensions={0}, num_carries=1, to_apply=count\n}\n",
     4,
     {7, 8, 9, 10}},
};

/* Two outputs of different rank and two carries; along the last dimension. */
static const struct exec_case inner[] = {
    {"two carries",
     SUM " o = s32[3] iota(), iota_dimension=0\n"
         " ROOT r = (f32[2,3], f32[2], s32[]) scan(a, z, n), dimensions={1}, num_carries=2, "
         "to_apply=sum2\n}\n"
         "sum2 {\n x = f32[2] parameter(0)\n c = f32[2] parameter(1)\n n = s32[] parameter(2)\n"
         " one = s32[] constant(1)\n k = s32[] add(n, one)\n s = f32[2] add(x, c)\n"
         " d = f32[2] add(s, s)\n ROOT r = (f32[2], f32[2], s32[]) tuple(d, s, k)\n}\n",
     9,
     {2, 6, 12, 30, 70, 130, 6, 65, 10}},
};

#define SIDES                                                                        \
    "HloModule m\nENTRY e {\n a = f32[4,2] constant({{1,2},{3,4},{5,6},{7,8}})\n"    \
    " b = f32[2,2,1] constant({{{1},{10}},{{100},{1000}}})\n"                        \
    " g = s32[2] constant({1,2})\n c = f32[4,1] constant({{1},{10},{100},{1000}})\n" \
    " a3 = f32[2,2,2] reshape(a)\n g2 = s32[2,2] constant({{0,2},{1,0}})\n"          \
    " b4 = f32[2,2,2,1] constant({{{{1},{10}},{{1},{1}}},{{{2},{0}},{{0},{3}}}})\n"

static const struct exec_case ragged[] = {
    {"ragged rows; the last has no group",
     SIDES " ROOT r = f32[4,1] ragged-dot(a, b, g), lhs_contracting_dims={1}, "
           "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}\n}\n",
     4,
     {21, 4300, 6500, 0}},
    {"ragged sum",
     SIDES " ROOT r = f32[2,2,1] ragged-dot(a, c, g), lhs_contracting_dims={0}, "
           "rhs_contracting_dims={0}, lhs_ragged_dims={0}\n}\n",
     4,
     {1, 2, 530, 640}},
    {"ragged batch",
     SIDES " ROOT r = f32[2,2,1] ragged-dot(a3, b, g), lhs_batch_dims={0}, rhs_batch_dims={0}, "
           "lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0}\n}\n",
     4,
     {21, 43, 6500, 8700}},
    {"sizes by batch",
     SIDES " ROOT r = f32[2,2,1] ragged-dot(a3, b4, g2), lhs_batch_dims={0}, "
           "rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={2}, "
           "lhs_ragged_dims={1}, rhs_group_dims={0}\n}\n",
     4,
     {2, 6, 11, 0}},
};

static void scan_values(void **state)
{
    UNUSED_STATE(state);
    EXEC_ALL(scans);
    EXEC_ALL(inner);
}

static void ragged_values(void **state)
{
    UNUSED_STATE(state);
    EXEC_ALL(ragged);
}

static void malformed(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {SUM " ROOT r = " SCAN2 "to_apply=sum\n}\n", "an array without dimension 1"},
        {SUM " ROOT r = (f32[4], f32[]) scan(v, zero), dimensions={0}, num_carries=3, "
             "to_apply=add\n}\n",
         "3 carries of 2 operands and 2 results"},
        {SUM " ROOT r = (f32[4], f32[]) scan(v, zero), dimensions={0}, num_carries=1, "
             "to_apply=twice\n}\n",
         "a function of 2 parameters is required"},
        {SIDES " ROOT r = f32[4,1] ragged-dot(a, b, g), lhs_contracting_dims={1}, "
               "rhs_contracting_dims={1}, rhs_group_dims={0}\n}\n",
         "one ragged dimension and group sizes are required"},
        {SIDES " ROOT r = f32[4,1] ragged-dot(a, b, g2), lhs_contracting_dims={1}, "
               "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}\n}\n",
         "the group sizes have another shape"},
        {SIDES " ROOT r = f32[4,1] ragged-dot(a, b, g), lhs_contracting_dims={1,1}, "
               "rhs_contracting_dims={1,1}, lhs_ragged_dims={1}\n}\n",
         "attribute 'lhs_contracting_dims' has 1, twice"},
    };
    double values[64];
    size_t n;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rp_err err = RP_ERR_INIT;

        assert_int_not_equal(exec_run(bad[i].text, &rp_engine_ref, 0, values, &n, &err), RP_OK);
        if (!strstr(err.text, bad[i].says))
            fail_msg("'%s' does not say '%s'", err.text, bad[i].says);
    }
}

int test_ref_scan(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scan_values),
                                       cmocka_unit_test(ragged_values),
                                       cmocka_unit_test(malformed)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
