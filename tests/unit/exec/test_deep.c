/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose structure is deep: an answer or an error, never the end of the stack. */
#include "exec_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define CHAIN 400000

static char *text_open(size_t cap, FILE **f)
{
    char *text = malloc(cap);

    assert_non_null(text);
    *f = fmemopen(text, cap, "w");
    assert_non_null(*f);
    return text;
}

/* Computations 0 .. n - 1, each with `calls` calls of the one before, and an entry. */
static char *chain_text(size_t n, unsigned calls, const char *entry)
{
    FILE *f;
    char *text = text_open(n * (80 + 64 * calls) + 1000, &f);

    fprintf(f, "HloModule m\nc0 {\n p0 = f32[] parameter(0)\n ROOT r0 = f32[] negate(p0)\n}\n");
    for (size_t i = 1; i < n; i++) {
        fprintf(f, "c%zu {\n p = f32[] parameter(0)\n", i);
        for (unsigned k = 1; k < calls; k++)
            fprintf(f, " a%u = f32[] call(p), to_apply=c%zu\n", k, i - 1);
        fprintf(f, " ROOT r = f32[] call(%s), to_apply=c%zu\n}\n", calls > 1 ? "a1" : "p", i - 1);
    }
    fprintf(f, "ENTRY e {\n x = f32[] constant(3)\n%s c%zu\n}\n", entry, n - 1);
    fclose(f);
    return text;
}

static enum rp_code run_text(char *text, const struct rp_engine *engine, double *value,
                             struct rp_err *err)
{
    double values[64];
    size_t n;
    enum rp_code code = exec_run(text, engine, 0, values, &n, err);

    if (code == RP_OK) {
        assert_true(n >= 1);
        *value = values[0];
    }
    free(text);
    return code;
}

static const struct rp_engine *const engines[] = {&rp_engine_ref, &rp_engine_fast};

#define CALL " ROOT y = f32[] call(x), to_apply="

static void test_chained_calls(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rp_err err = RP_ERR_INIT;
        double value = 0;

        assert_int_equal(run_text(chain_text(400, 1, CALL), engines[i], &value, &err), RP_OK);
        assert_true(value == -3);
        assert_int_equal(run_text(chain_text(CHAIN, 1, CALL), engines[i], &value, &err), RP_LIMIT);
        assert_string_equal(err.text, "calls are nested more than 512 deep");
    }
}

/* A function of scalars is put in place: one that calls the next twice grows without bound. */
static void test_doubled_calls(void **state)
{
    static const char *const entry = " v = f32[4] constant({1,2,3,4})\n"
                                     " ROOT y = f32[4] map(v), dimensions={0}, to_apply=";

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rp_err err = RP_ERR_INIT;
        double value = 0;

        assert_int_equal(run_text(chain_text(9, 2, entry), engines[i], &value, &err), RP_OK);
        assert_true(value == 1);
        assert_int_equal(run_text(chain_text(31, 2, entry), engines[i], &value, &err), RP_LIMIT);
        assert_non_null(strstr(err.text, "a scalar function of more than"));
    }
}

/* copy-start gives a tuple whose shape nobody checks. */
static char *copies_text(size_t n)
{
    FILE *f;
    char *text = text_open(n * 80 + 1000, &f);

    fprintf(f, "HloModule m\nENTRY e {\n x0 = f32[] constant(3)\n");
    for (size_t i = 1; i < n; i++)
        fprintf(f, " x%zu = (f32[], f32[], u32[]) copy-start(x%zu)\n", i, i - 1);
    fprintf(f, " ROOT y = (f32[], f32[], u32[]) copy-start(x%zu)\n}\n", n - 1);
    fclose(f);
    return text;
}

static void test_nested_tuples(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rp_err err = RP_ERR_INIT;
        double value = 0;

        assert_int_equal(run_text(copies_text(100), engines[i], &value, &err), RP_FORMAT);
        assert_int_equal(run_text(copies_text(100000), engines[i], &value, &err), RP_LIMIT);
        assert_string_equal(err.text, "tuples are nested more than 128 deep");
    }
}

int test_deep(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chained_calls),
        cmocka_unit_test(test_doubled_calls),
        cmocka_unit_test(test_nested_tuples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
