/* SPDX-License-Identifier: Apache-2.0 */
/* .npz and .npy there and back, raw bits of small floats, and damage of every kind. */
#include "unit.h"

#include "exec/data/arrays.h"
#include "exec/data/compare.h"
#include "exec/engine/timing.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static struct rp_tensor *array(unsigned elem, const int64_t *dims, size_t rank)
{
    struct rp_tensor *t;
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_tensor_new(elem, dims, rank, &t, &err), &err);
    for (size_t i = 0; i < t->n; i++)
        rp_tensor_set(t, i, (double)i - 1);
    return t;
}

/* A file in the folder for temporary ones; the caller unlinks it. */
static void write_file(char *path, size_t cap)
{
    static const int64_t dims[2] = {2, 3};
    struct rp_tensor *f = array(RP_ELEM_F32, dims, 2), *b = array(RP_ELEM_BF16, dims, 1);
    struct rp_tensor *s = array(RP_ELEM_S64, NULL, 0);
    struct rp_array list[3] = {{"out0", f}, {"out1", b}, {"out2", s}};
    const char *folder = getenv("TMPDIR");
    struct rp_err err = RP_ERR_INIT;

    snprintf(path, cap, "%s/rp-arrays-%d.npz", folder ? folder : "/tmp", (int)getpid());
    assert_ok(rp_arrays_write(path, list, 3, &err), &err);
    rp_tensor_drop(f);
    rp_tensor_drop(b);
    rp_tensor_drop(s);
}

static void there_and_back(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_arrays got;
    struct rp_tensor *t;
    int64_t two = 2;
    char path[512];

    UNUSED_STATE(state);
    write_file(path, sizeof path);
    assert_ok(rp_arrays_read(path, NULL, &got, &err), &err);
    unlink(path);
    assert_int_equal(got.list.n, 3);
    t = rp_arrays_find(&got, "out0");
    assert_int_equal(t->elem, RP_ELEM_F32);
    assert_int_equal(t->dims[1], 3);
    assert_true(rp_tensor_number(t, 5) == 4);
    t = rp_arrays_find(&got, "out1"); /* bits of bf16 */
    assert_int_equal(t->elem, RP_ELEM_U16);
    assert_int_equal(rp_tensor_integer(t, 0), 0xbf80);
    assert_ok(rp_array_as(t, RP_ELEM_BF16, &two, 1, "out1", &t, &err), &err);
    assert_true(rp_tensor_number(t, 0) == -1);
    rp_tensor_drop(t);
    assert_code(rp_array_as(rp_arrays_find(&got, "out2"), RP_ELEM_S32, NULL, 0, "out2", &t, &err),
                RP_FORMAT);
    assert_contains(err.text, "'out2' is s64");
    assert_code(rp_array_as(rp_arrays_find(&got, "out0"), RP_ELEM_F32, &two, 1, "out0", &t, &err),
                RP_FORMAT);
    assert_contains(err.text, "f32[2,3]");
    rp_arrays_release(&got);
}

/* Cut anywhere or with any byte changed it is read or refused, never more. */
static void damage(void **state)
{
    struct rp_arrays got;
    unsigned char *bytes;
    char path[512];
    FILE *file;
    long n;

    UNUSED_STATE(state);
    write_file(path, sizeof path);
    file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    n = ftell(file);
    rewind(file);
    bytes = malloc((size_t)n);
    assert_int_equal(fread(bytes, 1, (size_t)n, file), n);
    fclose(file);
    unlink(path);
    for (long cut = 0; cut < n; cut++) {
        memset(&got, 0, sizeof got);
        assert_true(rp_arrays_parse(bytes, (size_t)cut, NULL, &got, NULL) != RP_OK);
        rp_arrays_release(&got);
    }
    for (long at = 0; at < n; at++) {
        bytes[at] ^= 0x41;
        memset(&got, 0, sizeof got);
        (void)rp_arrays_parse(bytes, (size_t)n, NULL, &got, NULL);
        rp_arrays_release(&got);
        bytes[at] ^= 0x41;
    }
    free(bytes);
}

static void npy_headers(void **state)
{
    static const struct {
        const char *header;
        enum rp_code code;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1), }", RP_OK},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", RP_OK},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", RP_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", RP_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 99), }",
         RP_FORMAT},
        {"{'descr': '<f4', 'shape': (2,), }", RP_FORMAT},
        {"", RP_FORMAT},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].header);
        unsigned char bytes[256] = "\x93NUMPY\1\0";
        struct rp_tensor *t = NULL;

        bytes[8] = (unsigned char)n;
        memcpy(bytes + 10, cases[i].header, n);
        memset(bytes + 10 + n, 0, 8);
        assert_code(rp_npy_parse(bytes, 10 + n + 8, &t, NULL), cases[i].code);
        rp_tensor_drop(t);
    }
}

static void comparing(void **state)
{
    static const int64_t n = 1000;
    struct rp_tensor *a = array(RP_ELEM_F32, &n, 1), *b = array(RP_ELEM_F32, &n, 1);
    struct rp_tolerance exact = {.absolute = 0, .relative = 0, .ulp = -1};
    struct rp_comparison c;

    UNUSED_STATE(state);
    rp_compare(a, b, NULL, &c);
    assert_true(c.ok && c.max_abs == 0);
    rp_tensor_set(a, 7, 6.5);
    rp_compare(a, b, NULL, &c); /* within 5e-3 of the largest, 998 */
    assert_true(c.ok && c.max_abs == 0.5);
    rp_compare(a, b, &exact, &c);
    assert_true(!c.ok && c.wrong == 1 && c.worst[0].at == 7 && c.worst[0].want == 6);
    rp_tensor_set(a, 9, NAN);
    rp_compare(a, b, NULL, &c);
    assert_true(!c.ok);
    rp_tensor_set(b, 9, NAN);
    rp_compare(a, b, NULL, &c);
    assert_true(c.ok);
    rp_tensor_set(a, 11, 12345);
    rp_compare(a, b, NULL, &c);
    assert_true(!c.ok && c.far == 1);
    rp_tensor_drop(a);
    rp_tensor_drop(b);
}

/* A bound of rounding counts for all elements but half a percent, far off or not. */
static void comparing_by_rounding(void **state)
{
    static const int64_t n = 1000;
    struct rp_tensor *a = array(RP_ELEM_F32, &n, 1), *b = array(RP_ELEM_F32, &n, 1);
    struct rp_tolerance rounding = {.absolute = -1, .relative = -1, .ulp = -1, .rounding = 0.25};
    struct rp_comparison c;

    UNUSED_STATE(state);
    assert_true(rp_largest_magnitude(b) == 998);
    for (size_t i = 0; i < 5; i++)
        rp_tensor_set(a, 100 + i, rp_tensor_number(b, 100 + i) + 0.5);
    rp_compare(a, b, &rounding, &c);
    assert_true(c.ok && c.wrong == 5);
    rp_tensor_set(a, 900, rp_tensor_number(b, 900) + 0.5); /* within 1e-3 of itself */
    rp_compare(a, b, NULL, &c);
    assert_true(c.ok);
    rp_compare(a, b, &rounding, &c);
    assert_true(!c.ok && c.wrong == 6);
    rounding.rounding = 0.5;
    rp_compare(a, b, &rounding, &c);
    assert_true(c.ok && !c.wrong);
    rp_tensor_drop(a);
    rp_tensor_drop(b);
}

static void percentiles(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_timing t = {0};

    UNUSED_STATE(state);
    for (int64_t i = 100; i > 0; i--)
        assert_ok(rp_vec_push(&t.runs, i, &err), &err);
    assert_ok(rp_timing_sum_up(&t, &err), &err);
    assert_int_equal(t.min_ns, 1);
    assert_int_equal(t.p50_ns, 50);
    assert_int_equal(t.p90_ns, 90);
    assert_int_equal(t.p99_ns, 99);
    assert_int_equal(t.max_ns, 100);
    assert_true(t.low_ns >= 38 && t.low_ns <= 41 && t.high_ns >= 60 && t.high_ns <= 63);
    rp_timing_release(&t);
}

int test_arrays(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),        cmocka_unit_test(damage),
        cmocka_unit_test(npy_headers),           cmocka_unit_test(comparing),
        cmocka_unit_test(comparing_by_rounding), cmocka_unit_test(percentiles)};

    return cmocka_run_group_tests_name("arrays", tests, NULL, NULL);
}
