/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom calls of LAPACK in their typed and their older form. Signs of vectors are not unique, so
 * that most programs multiply the factors together again. Skipped where no library is found.
 */
#include "exec_fixture.h"

#include "exec/ref/lapack.h"

#define MODULE                "HloModule m\nENTRY e {\n"
#define TALL                  " a = f32[2,3,2] constant({{{1,2},{3,4},{5,6}},{{2,0},{0,-3},{1,1}}})\n"
#define PART(name, shape, at) " " name " = " shape " get-tuple-element(g), index=" #at "\n"
/* of one array: the number of the integers before it */
#define INTEGER(name, value) " " name " = s32[] constant(" #value ")\n"
#define LETTER(name, value)  " " name " = u8[] constant(" #value ")\n"
#define DOT(to, shape, a, b, ca, cb)                                    \
    " " to " = " shape " dot(" a ", " b "), lhs_contracting_dims={" #ca \
    "}, rhs_contracting_dims={" #cb "}\n"

#define SVD_SHAPE "(f32[2,3,2], f32[2,2], f32[2,3,2], f32[2,2,2], s32[2])"
#define SVD_AGAIN                                                                         \
    PART("s", "f32[2,2]", 1)                                                              \
    PART("u", "f32[2,3,2]", 2)                                                            \
    PART("v", "f32[2,2,2]", 3)                                                            \
    " sb = f32[2,3,2] broadcast(s), dimensions={0,2}\n us = f32[2,3,2] multiply(u, sb)\n" \
    " ROOT r = f32[2,3,2] dot(us, v), lhs_batch_dims={0}, rhs_batch_dims={0}, "           \
    "lhs_contracting_dims={2}, rhs_contracting_dims={1}\n}\n"
#define SVD_WANT                            \
    12,                                     \
    {                                       \
        1, 2, 3, 4, 5, 6, 2, 0, 0, -3, 1, 1 \
    }

#define WIDE                                                                                    \
    " re = f32[2,3] constant({{1,2,3},{4,5,7}})\n im = f32[2,3] constant({{0,1,0},{-2,0,1}})\n" \
    " a = c64[2,3] complex(re, im)\n"
/* A V - V diag(w): zero */
#define TURN     " a = f32[3,3] constant({{1,2,3},{3,5,-1},{4,0,2}})\n"
#define SYMMETRY " a = f32[3,3] constant({{4,1,2},{1,3,0},{2,0,1}})\n"
#define EIGEN_ZERO                                                                         \
    " w = c64[3] complex(wr, wi)\n zero = f32[] constant(0)\n"                             \
    " zs = f32[3,3] broadcast(zero), dimensions={}\n ac = c64[3,3] complex(a, zs)\n" DOT(  \
        "av", "c64[3,3]", "ac", "v", 1,                                                    \
        0) " wb = c64[3,3] broadcast(w), dimensions={1}\n vw = c64[3,3] multiply(v, wb)\n" \
           " ROOT r = c64[3,3] subtract(av, vw)\n}\n"
#define SCHUR_AGAIN \
    DOT("zt", "f32[3,3]", "z", "t", 1, 0) DOT("ROOT r", "f32[3,3]", "zt", "z", 1, 1) "}\n"
#define MATRIX                     \
    9,                             \
    {                              \
        1, 2, 3, 3, 5, -1, 4, 0, 2 \
    }

static const struct exec_case cases[] = {
    {"gesdd, thin, of a batch",
     MODULE TALL " g = " SVD_SHAPE " custom-call(a), custom_call_target=\"lapack_sgesdd_ffi\", "
                 "backend_config={mode = 83 : ui8}\n" SVD_AGAIN,
     SVD_WANT},
    {"gesvd, thin, of a batch",
     MODULE TALL " g = " SVD_SHAPE " custom-call(a), custom_call_target=\"lapack_sgesvd_ffi\", "
                 "backend_config={mode = 83 : ui8}\n" SVD_AGAIN,
     SVD_WANT},
    {"gesdd, older",
     MODULE TALL INTEGER("i0", 0) INTEGER("i1", 1) INTEGER("i2", 2) INTEGER("i3", 3) INTEGER(
         "i4", 2) INTEGER("i5", 99) " g = (f32[2,3,2], f32[2,2], f32[2,3,2], f32[2,2,2], "
                                    "s32[2], s32[16], f32[99]) custom-call(i0, i1, i2, i3, "
                                    "i4, i5, a), custom_call_target=\"lapack_sgesdd\"\n" SVD_AGAIN,
     SVD_WANT},
    {"gesdd, all columns, complex",
     MODULE WIDE
     " g = (c64[2,3], f32[2], c64[2,2], c64[3,3], s32[]) custom-call(a), "
     "custom_call_target=\"lapack_cgesdd_ffi\", backend_config={mode = 65 : ui8}\n" PART(
         "s", "f32[2]", 1) PART("u", "c64[2,2]", 2)
         PART("v", "c64[3,3]",
              3) " z = f32[2] subtract(s, s)\n sc = c64[2] complex(s, z)\n"
                 " sb = c64[2,2] broadcast(sc), dimensions={1}\n us = c64[2,2] multiply(u, sb)\n"
                 " vs = c64[2,3] slice(v), slice={[0:2], [0:3]}\n" DOT("ROOT r", "c64[2,3]", "us",
                                                                       "vs", 1, 0) "}\n",
     12,
     {1, 0, 2, 1, 3, 0, 4, -2, 5, 0, 7, 1}},
    {"gesdd, values only, double",
     MODULE " a = f64[2,2] constant({{3,0},{0,-4}})\n"
            " g = (f64[2,2], f64[2], f64[2,2], f64[2,2], s32[]) custom-call(a), "
            "custom_call_target=\"lapack_dgesdd_ffi\", backend_config={mode = 78 : ui8}\n" PART(
                "ROOT r", "f64[2]", 1) "}\n",
     2,
     {4, 3}},
    {"geev, right vectors",
     MODULE TURN
     " g = (f32[3], f32[3], c64[3,3], c64[3,3], s32[]) custom-call(a), "
     "custom_call_target=\"lapack_sgeev_ffi\", backend_config={compute_left = 78 : ui8, "
     "compute_right = 86 : ui8}\n" PART("wr", "f32[3]", 0) PART("wi", "f32[3]", 1)
         PART("v", "c64[3,3]", 3) EIGEN_ZERO,
     18,
     {0}},
    {"geev, a conjugate pair",
     MODULE " a = f32[2,2] constant({{0,-1},{1,0}})\n g = (f32[2], f32[2], c64[2,2], c64[2,2], "
            "s32[]) custom-call(a), custom_call_target=\"lapack_sgeev_ffi\", "
            "backend_config={compute_left = 78 : ui8, compute_right = 78 : ui8}\n" PART(
                "x", "f32[2]", 0) PART("y", "f32[2]", 1) " ROOT r = c64[2] complex(x, y)\n}\n",
     4,
     {0, 1, 0, -1}},
    {"geev, older",
     MODULE TURN INTEGER("i0", 1) INTEGER("i1", 3) LETTER("l", 78) LETTER(
         "m", 86) " g = (f32[3,3], f32[3,3], f32[3,3], f32[3], f32[3], c64[3,3], c64[3,3], s32[]) "
                  "custom-call(i0, i1, l, m, a), custom_call_target=\"lapack_sgeev\"\n" PART(
                      "wr", "f32[3]", 3) PART("wi", "f32[3]", 4) PART("v", "c64[3,3]", 6)
                      EIGEN_ZERO,
     18,
     {0}},
    {"not a number: only the status says so",
     MODULE " a = f32[2,2] constant({{1,nan},{0,1}})\n g = (f32[2], f32[2], c64[2,2], c64[2,2], "
            "s32[]) custom-call(a), custom_call_target=\"lapack_sgeev_ffi\"\n h = (f32[2,2], "
            "f32[2], f32[2,2], f32[2,2], s32[]) custom-call(a), "
            "custom_call_target=\"lapack_sgesdd_ffi\"\n x = s32[] get-tuple-element(g), index=4\n"
            " y = s32[] get-tuple-element(h), index=4\n z = s32[] constant(0)\n"
            " p = pred[] compare(x, z), direction=EQ\n q = pred[] compare(y, z), direction=EQ\n"
            " ROOT r = (pred[], pred[]) tuple(p, q)\n}\n",
     2,
     {0, 0}},
    {"gees",
     MODULE TURN " g = (f32[3,3], f32[3,3], f32[3], f32[3], s32[], s32[]) custom-call(a), "
                 "custom_call_target=\"lapack_sgees_ffi\", backend_config={mode = 86 : ui8, sort = "
                 "78 : ui8}\n" PART("t", "f32[3,3]", 0) PART("z", "f32[3,3]", 1) SCHUR_AGAIN,
     MATRIX},
    {"gees, older",
     MODULE TURN INTEGER("i0", 1) INTEGER("i1", 3) LETTER("l", 86) LETTER(
         "m",
         78) " g = (f32[3,3], f32[3], f32[3], f32[3,3], s32[], s32[]) custom-call(i0, i1, l, m, a), "
             "custom_call_target=\"lapack_sgees\"\n" PART("t", "f32[3,3]", 0)
                 PART("z", "f32[3,3]", 3) SCHUR_AGAIN,
     MATRIX},
    {"gehrd",
     MODULE TURN
     " ROOT g = (f32[3,3], f32[2], s32[]) custom-call(a), "
     "custom_call_target=\"lapack_sgehrd_ffi\", backend_config={high = 3 : i32, low = 1 "
     ": i32}\n}\n",
     12,
     {1, -3.6, 0.2, -5, 2.6, 1.8, 0.5, 0.8, 4.4, 1.6, 0, 0}},
    {"gehrd, older",
     MODULE TURN INTEGER("n", 3) INTEGER("o", 1) INTEGER(
         "w", 96) " ROOT g = (f32[3,3], f32[2], s32[], f32[1]) custom-call(n, o, n, n, o, w, a), "
                  "custom_call_target=\"lapack_sgehrd\"\n}\n",
     13,
     {1, -3.6, 0.2, -5, 2.6, 1.8, 0.5, 0.8, 4.4, 1.6, 0, 0, 0}},
    {"sytrd",
     MODULE SYMMETRY " ROOT g = (f32[3,3], f32[3], f32[2], f32[2], s32[]) custom-call(a), "
                     "custom_call_target=\"lapack_ssytrd_ffi\", backend_config={uplo = 76 : "
                     "ui8}\n}\n",
     17,
     {4, 1, 2, -2.236068, 1.4, 0, 0.618034, 0.8, 2.6, 4, 1.4, 2.6, -2.236068, 0.8, 1.4472136, 0,
      0}},
    {"geqp3",
     MODULE TURN
     " p = s32[3] constant({0,0,0})\n g = (f32[3,3], s32[3], f32[3]) custom-call(a, p), "
     "custom_call_target=\"lapack_sgeqp3_ffi\", backend_config={}\n" PART("q", "s32[3]", 1)
         PART("f", "f32[3,3]", 0) " h = f32[1,3] slice(f), slice={[0:1], [0:3]}\n"
                                  " ROOT r = (s32[3], f32[1,3]) tuple(q, h)\n}\n",
     6,
     {2, 1, 3, -5.3851648, -3.1568213, -0.1856954}},
    {"ormqr: Q transposed times A is R",
     MODULE TURN
     " g = (f32[3,3], f32[3]) custom-call(a), custom_call_target=\"lapack_sgeqrf_ffi\"\n" PART(
         "f", "f32[3,3]", 0)
         PART("t", "f32[3]",
              1) " c = f32[3,3] custom-call(f, t, a), custom_call_target=\"lapack_sormqr_ffi\", "
                 "backend_config={left = true, transpose = true}\n"
                 " ROOT r = f32[1,3] slice(c), slice={[0:1], [0:3]}\n}\n",
     3,
     {-5.0990195, -3.3339743, -1.5689291}},
    {"syevd of 26 rows",
     MODULE " x = f32[26,26] iota(), iota_dimension=0\n y = f32[26,26] iota(), iota_dimension=1\n"
            " same = pred[26,26] compare(x, y), direction=EQ\n zero = f32[] constant(0)\n"
            " z = f32[26,26] broadcast(zero), dimensions={}\n k = f32[] constant(3)\n"
            " ks = f32[26,26] broadcast(k), dimensions={}\n xk = f32[26,26] subtract(x, ks)\n"
            " a = f32[26,26] select(same, xk, z)\n g = (f32[26,26], f32[26], s32[]) "
            "custom-call(a), custom_call_target=\"lapack_ssyevd_ffi\", backend_config={mode = 86 : "
            "ui8, uplo = 76 : ui8}\n" PART("ROOT r", "f32[26]", 1) "}\n",
     26,
     {-3, -2, -1, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,
      10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22}},
};

static void factors_give_the_matrix(void **state)
{
    UNUSED_STATE(state);
    if (!rp_lapack_open(&(struct rp_lapack){0})) {
        print_message("no LAPACK found: skipped\n");
        skip();
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        exec_check(&cases[i], &rp_engine_ref, 1e-5);
        exec_check(&cases[i], &rp_engine_fast, 1e-5);
    }
}

static void other_shapes_are_errors(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {MODULE TALL " ROOT g = (f32[2,3,2], f32[2,3], f32[2,3,2], f32[2,2,2], s32[2]) "
                     "custom-call(a), custom_call_target=\"lapack_sgesdd_ffi\"\n}\n",
         "wrong shape of result 1"},
        {MODULE TALL " ROOT g = " SVD_SHAPE " custom-call(a), "
                     "custom_call_target=\"lapack_sgesdd_ffi\", backend_config={mode = 65 : "
                     "ui8}\n}\n",
         "shapes do not match the mode of LAPACK's gesdd"},
        {MODULE TALL " ROOT g = " SVD_SHAPE " custom-call(a), "
                     "custom_call_target=\"lapack_dgesdd_ffi\"\n}\n",
         "wrong shape of operand 0"},
        {MODULE TALL " ROOT g = " SVD_SHAPE " custom-call(a, a), "
                     "custom_call_target=\"lapack_sgesdd\"\n}\n",
         "operand 0 is not an integer"},
        {MODULE TURN " ROOT g = (f32[3,3], f32[2], s32[]) custom-call(a), "
                     "custom_call_target=\"lapack_sgehrd_ffi\", backend_config={high = 9 : i32, "
                     "low = 1 : i32}\n}\n",
         "shapes do not match the mode of LAPACK's gehrd"},
        {MODULE TURN " ROOT g = f32[3,3] custom-call(a), custom_call_target=\"lapack_sggsvd\"\n}\n",
         "unsupported custom call 'lapack_sggsvd'"},
    };
    double values[64];
    size_t n;

    UNUSED_STATE(state);
    if (!rp_lapack_open(&(struct rp_lapack){0})) {
        print_message("no LAPACK found: skipped\n");
        skip();
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rp_err err = RP_ERR_INIT;

        assert_int_not_equal(exec_run(bad[i].text, &rp_engine_ref, 0, values, &n, &err), RP_OK);
        if (!strstr(err.text, bad[i].says))
            fail_msg("'%s' does not say '%s'", err.text, bad[i].says);
    }
}

/* ---- what has kernels of its own: both forms give the same ---- */

#define SAME_HEAD                                                                   \
    MODULE SYMMETRY " b = f32[3,2] constant({{1,2},{3,4},{5,6}})\n" INTEGER("o", 1) \
        INTEGER("zero", 0) INTEGER("n", 3) INTEGER("w", 96) " alpha = f32[] constant(1)\n"
static void forms_give_the_same(void **state)
{
    static const struct {
        const char *shape, *typed, *older;
    } pairs[] = {
        {"(f32[3,3], s32[])",
         "a), custom_call_target=\"lapack_spotrf_ffi\", backend_config={uplo = 76 : ui8}",
         "o, o, n, a), custom_call_target=\"lapack_spotrf\""},
        {"(f32[3,3], s32[])",
         "a), custom_call_target=\"lapack_spotrf_ffi\", backend_config={uplo = 85 : ui8}",
         "zero, o, n, a), custom_call_target=\"lapack_spotrf\""},
        {"(f32[3,3], s32[3], s32[])",
         "a), custom_call_target=\"lapack_sgetrf_ffi\", backend_config={}",
         "o, n, n, a), custom_call_target=\"lapack_sgetrf\""},
        {"(f32[3,3], f32[3], s32[], f32[4])",
         "a), custom_call_target=\"lapack_sgeqrf_ffi\", backend_config={}",
         "o, n, n, w, a), custom_call_target=\"lapack_sgeqrf\""},
        {"(f32[3,3], f32[3], s32[])",
         "a), custom_call_target=\"lapack_ssyevd_ffi\", backend_config={mode = 86 : ui8, uplo = 76 : ui8}",
         "o, o, n, a), custom_call_target=\"lapack_ssyevd\""},
        {"f32[3,2]",
         "a, b, alpha), custom_call_target=\"blas_strsm_ffi\", backend_config={diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8}",
         "o, o, o, zero, n, w, o, alpha, a, b), custom_call_target=\"blas_strsm\""},
    };
    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        double got[2][64] = {{0}};
        size_t n[2];

        for (int k = 0; k < 2; k++) {
            struct rp_err err = RP_ERR_INIT;
            char text[4096];

            snprintf(text, sizeof text, "%s ROOT r = %s custom-call(%s\n}\n", SAME_HEAD,
                     pairs[i].shape, k ? pairs[i].older : pairs[i].typed);
            if (exec_run(text, &rp_engine_ref, 0, got[k], &n[k], &err) != RP_OK)
                fail_msg("%s: %s", text, err.text);
        }
        assert_int_equal(n[0], n[1]);
        assert_true(n[0] >= 6 && got[0][0] != 0);
        assert_memory_equal(got[0], got[1], n[0] * sizeof **got);
    }
}

/* The approximate one is exact, along any dimension, by its own comparison. */
static void approximate_top(void **state)
{
    static const struct exec_case top[] = {
        {"least two of each column",
         "HloModule m\nless {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
         " i = s32[] parameter(2)\n j = s32[] parameter(3)\n"
         " ROOT r = pred[] compare(x, y), direction=LT\n}\nENTRY e {\n"
         " a = f32[4,2] constant({{3,8},{1,5},{4,7},{2,6}})\n"
         " p = s32[4,2] iota(), iota_dimension=0\n x = f32[] constant(inf)\n"
         " i = s32[] constant(-1)\n ROOT r = (f32[2,2], s32[2,2]) custom-call(a, p, x, i), "
         "custom_call_target=\"ApproxTopK\", called_computations={less}, "
         "backend_config={\"top_k\":2,\"reduction_dim\":0,\"recall_target\":0.95,"
         "\"aggregate_to_topk\":true}\n}\n",
         8,
         {1, 5, 2, 6, 1, 1, 3, 3}},
    };

    UNUSED_STATE(state);
    exec_check_all(top, 1);
}

/* Systems with three diagonals: rows that change places, a matrix of zeros on the diagonal, a
   singular one, where the variant that perturbs gives a finite result. */
static void three_diagonals(void **state)
{
    static const struct exec_case solves[] = {
        {"gtsv of two right sides",
         MODULE " l = f64[3] constant({9,1,2})\n d = f64[3] constant({4,5,6})\n"
                " u = f64[3] constant({1,-1,9})\n b = f64[3,2] constant({{6,4},{8,1},{22,0}})\n"
                " g = (f64[3], f64[3], f64[3], f64[3,2], s32[]) custom-call(l, d, u, b), "
                "custom_call_target=\"lapack_dgtsv_ffi\", backend_config={}\n" PART(
                    "ROOT r", "f64[3,2]", 3) "}\n",
         6,
         {1, 1, 2, 0, 3, 0}},
        {"rows change places, a batch",
         MODULE " l = f32[2,3] constant({{0,3,4},{0,1,1}})\n"
                " d = f32[2,3] constant({{0,0,1},{2,2,2}})\n"
                " u = f32[2,3] constant({{2,5,0},{1,1,0}})\n"
                " b = f32[2,3,1] constant({{{4},{18},{11}},{{3},{4},{3}}})\n"
                " g = (f32[2,3], f32[2,3], f32[2,3], f32[2,3,1], s32[2]) custom-call(l, d, u, b), "
                "custom_call_target=\"lapack_sgtsv_ffi\", backend_config={}\n" PART(
                    "ROOT x", "f32[2,3,1]", 3) "}\n",
         6,
         {1, 2, 3, 1, 1, 1}},
        {"singular: which pivot",
         MODULE " l = f32[2] constant({0,1})\n d = f32[2] constant({1,1})\n"
                " u = f32[2] constant({1,0})\n b = f32[2,1] constant({{1},{2}})\n"
                " g = (f32[2], f32[2], f32[2], f32[2,1], s32[]) custom-call(l, d, u, b), "
                "custom_call_target=\"lapack_sgtsv_ffi\", backend_config={}\n" PART(
                    "ROOT i", "s32[]", 4) "}\n",
         1,
         {2}},
        {"singular, perturbed: finite",
         MODULE " l = f32[2] constant({0,1})\n d = f32[2] constant({1,1})\n"
                " u = f32[2] constant({1,0})\n b = f32[2,1] constant({{1},{2}})\n"
                " g = f32[2,1] custom-call(l, d, u, b), "
                "custom_call_target=\"tridiagonal_solve_perturbed_ffi\", backend_config={}\n"
                " f = pred[2,1] is-finite(g)\n ROOT r = s32[2,1] convert(f)\n}\n",
         2,
         {1, 1}},
    };

    UNUSED_STATE(state);
    exec_check_all(solves, sizeof solves / sizeof *solves);
}

int test_custom_lapack(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_give_the_matrix), cmocka_unit_test(other_shapes_are_errors),
        cmocka_unit_test(forms_give_the_same), cmocka_unit_test(approximate_top),
        cmocka_unit_test(three_diagonals)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
