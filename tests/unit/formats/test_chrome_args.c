/* SPDX-License-Identifier: Apache-2.0 */
/* The Chrome-JSON reader: arguments, their shapes, and templates of events. */
#include "chrome_fixture.h"

static void test_arg_types(void **state)
{
    struct rp_import import = load(
        "[{\"ph\":\"X\",\"name\":\"e\",\"ts\":1,\"dur\":1,\"args\":{\"i\":-9223372036854775808,"
        "\"max\":9223372036854775807,\"big\":9223372036854775808,\"f\":0.1,\"e\":1e-7,"
        "\"long\":0.39999999999999997,\"inf\":1e999,\"nan\":NaN,\"zero\":-0,\"dot\":-0.0,"
        "\"t\":true,\"n\":null,\"a\":[ 1 , \"x\\n\" ],\"o\":{\"k\" : []},\"s\":\"a\\u0041\","
        "\"empty\":\"\",\"17\":12345678.123456789}}]");
    const struct rp_trace *t = import.trace;
    rp_event e = find(t, "e");

    UNUSED_STATE(state);
    assert_arg(t, e, "i", "i -9223372036854775808");
    assert_arg(t, e, "max", "i 9223372036854775807");
    assert_arg(t, e, "big", "r 9223372036854775808");
    assert_arg(t, e, "f", "f 0.10000000000000001");
    assert_arg(t, e, "e", "f 9.9999999999999995e-08");
    assert_arg(t, e, "long", "f 0.39999999999999997");
    assert_arg(t, e, "inf", "r 1e999");
    assert_arg(t, e, "nan", "r NaN");
    assert_arg(t, e, "zero", "r -0");
    assert_arg(t, e, "dot", "f -0");
    assert_arg(t, e, "t", "r true");
    assert_arg(t, e, "n", "r null");
    assert_arg(t, e, "a", "r [ 1 , \"x\\n\" ]");
    assert_arg(t, e, "o", "r {\"k\" : []}");
    assert_arg(t, e, "s", "s aA");
    assert_arg(t, e, "empty", "s ");
    assert_arg(t, e, "17", "f 12345678.123456789");
    rp_import_release(&import);
}

/* The arguments of the i-th event of test_shapes. */
static void shape_args(int i, char *out, size_t cap)
{
    switch (i % 5) {
    case 0:
        snprintf(out, cap, "\"a\":%d,\"b\":\"s%d\"", i, i);
        break;
    case 1:
        snprintf(out, cap, "\"a\":%d.5,\"b\":%d", i, i);
        break;
    case 2:
        snprintf(out, cap, "\"b\":%d,\"a\":%d", i, i);
        break;
    case 3:
        snprintf(out, cap, "\"a\":%d,\"b\":\"s%d\",\"c\":[1]", i, i);
        break;
    default:
        snprintf(out, cap, "\"a%d\":1,\"z\":%d", i, i);
        break;
    }
}

static void check_shape_args(const struct rp_trace *t, rp_event e, int i)
{
    char want[64], key[20];

    snprintf(want, sizeof want, "i %d", i);
    if (i % 5 == 4) {
        snprintf(key, sizeof key, "a%d", i);
        assert_arg(t, e, key, "i 1");
        assert_arg(t, e, "z", want);
        return;
    }
    assert_arg(t, e, "c", i % 5 == 3 ? "r [1]" : "-");
    if (i % 5 == 1)
        snprintf(want, sizeof want, "f %d.5", i);
    assert_arg(t, e, "a", want);
    if (i % 5 == 0 || i % 5 == 3)
        snprintf(want, sizeof want, "s s%d", i);
    else
        snprintf(want, sizeof want, "i %d", i);
    assert_arg(t, e, "b", want);
}

/* The tree of shapes: alternating lists, changing types, longer and shorter ones, far too many. */
static void test_shapes(void **state)
{
    static char text[400000];
    size_t n = (size_t)snprintf(text, sizeof text, "[");
    struct rp_import import;
    char list[100], name[20];

    UNUSED_STATE(state);
    for (int i = 0; i < 3000; i++) {
        shape_args(i, list, sizeof list);
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "%s{\"ph\":\"X\",\"cat\":\"c\",\"name\":\"n%d\",\"ts\":%d,\"dur\":1,"
                              "\"args\":{%s}}",
                              i ? "," : "", i, i, list);
    }
    snprintf(text + n, sizeof text - n, "]");
    import = load(text);
    for (int i = 0; i < 3000; i++) {
        if (i > 60 && i % 97 > 4) /* finding is linear */
            continue;
        snprintf(name, sizeof name, "n%d", i);
        check_shape_args(import.trace, find(import.trace, name), i);
    }
    rp_import_release(&import);
}

/* More keys than a shape has room for. */
static void test_many_args(void **state)
{
    static char text[60000];
    size_t n = (size_t)snprintf(text, sizeof text, "[");
    struct rp_import import;
    const struct rp_trace *t;

    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "%s{\"ph\":\"X\",\"name\":\"e%d\",\"ts\":1,\"dur\":1,\"args\":{",
                              k ? "," : "", k);
        for (int i = 0; i < 1000; i++)
            n +=
                (size_t)snprintf(text + n, sizeof text - n, "%s\"k%d\":%d", i ? "," : "", i, i + k);
        n += (size_t)snprintf(text + n, sizeof text - n, "}}");
    }
    snprintf(text + n, sizeof text - n, "]");
    import = load(text);
    t = import.trace;
    assert_int_equal(rp_args_count(&t->args, t->ev.shape[1], t->ev.arg_row[1]), 1000);
    assert_arg(t, find(t, "e1"), "k999", "i 1000");
    assert_arg(t, find(t, "e0"), "k0", "i 0");
    rp_import_release(&import);
}

/* Puts the number i for each %d of the form, and a comma behind it. */
static int format_event(char *out, size_t cap, const char *form, int i)
{
    size_t n = 0;

    for (; *form && n + 20 < cap; form++) {
        if (form[0] == '%' && form[1] == 'd') {
            n += (size_t)snprintf(out + n, cap - n, "%d", i);
            form++;
        } else {
            out[n++] = *form;
        }
    }
    out[n++] = ',';
    out[n] = '\0';
    return (int)n;
}

/* Events that fit a template and events that nearly do, all with the same values. */
static void test_templates(void **state)
{
    static const char *const forms[] = {
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"n%d\",\"pid\":1,\"tid\":2,\"ts\":%d.250,"
        "\"dur\":1.5,\"args\":{\"a\":%d,\"b\":[1, 2],\"correlation\":7,\"d\":-0.5}}",
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"n\\u00e9\",\"pid\":1,\"tid\":2,"
        "\"ts\":%d.25,\"dur\":1.5,\"args\":{\"a\":%d,\"b\":[1, 2],\"correlation\":7,\"d\":-0.5}}",
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"n%d\",\"pid\":1,\"tid\":2,\"ts\":%d25e-2,"
        "\"dur\":1.5,\"args\":{\"a\":%d ,\"b\":[1, 2],\"correlation\":7,\"d\":-0.5}}",
        "{ \"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"n%d\",\"pid\":1,\"tid\":2,\"ts\":%d.2500,"
        "\"dur\":1.5,\"args\":{\"a\":%d,\"b\":[1, 2],\"correlation\":7,\"d\":-5e-1}}",
    };
    static char text[60000];
    size_t n = (size_t)snprintf(text, sizeof text, "[");
    struct rp_import import;
    const struct rp_trace *t;

    UNUSED_STATE(state);
    for (int i = 0; i < 200; i++)
        n += (size_t)format_event(text + n, sizeof text - n, forms[i * 7 % 11 % 4], i);
    strcpy(text + n - 1, "]");
    import = load(text);
    t = import.trace;
    assert_int_equal(t->ev.n, 200);
    for (rp_event e = 0; e < t->ev.n; e++) {
        char want[20];

        snprintf(want, sizeof want, "i %u", e);
        assert_int_equal(t->ev.ts_ns[e], e * 1000 + 250);
        assert_int_equal(t->ev.dur_ns[e], 1500);
        assert_arg(t, e, "a", want);
        assert_arg(t, e, "b", "r [1, 2]");
        assert_arg(t, e, "d", "f -0.5");
        assert_int_equal(t->links.native_id[t->ev.link[e]], 7);
        assert_int_equal(t->ev.flags[e] & RP_EVENT_ROUNDED, 0);
    }
    assert_int_equal(t->health.non_int_ts, 200);
    rp_import_release(&import);
}

/* Launches and kernels whose correlations are no 64-bit integers, read by both readers. */
static void test_correlations(void **state)
{
    static const char *const pairs[][2] = {{"5", "5.0"},
                                           {"\"0x1\"", "\"0x1\""},
                                           {"\"5\"", "\"5\""},
                                           {"1.50", "15e-1"},
                                           {"18446744073709551616", "18446744073709551616.0"},
                                           {"\"1.5\"", "\"1.5\""},
                                           {"\"number 15e-1\"", "\"number 15e-1\""},
                                           {"-0.05", "-5E-2"},
                                           {"9223372036854775808", "9223372036854775808"}};
    enum { N = sizeof pairs / sizeof *pairs };
    char text[16000];
    size_t n = (size_t)sprintf(text, "[{\"ph\":\"i\",\"ts\":0}");
    struct rp_import import;

    UNUSED_STATE(state);
    for (int i = 0; i < 3 * N; i++)
        for (int k = 0; k < 2; k++)
            n += (size_t)sprintf(
                text + n,
                ",{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%d\",\"pid\":1,\"tid\":%d,"
                "\"ts\":1,\"dur\":1,\"args\":{\"correlation\":%s}}",
                k ? "kernel" : "cuda_runtime", i % N, k, pairs[i % N][k]);
    strcpy(text + n, "]");
    import = load(text);
    assert_int_equal(import.trace->links.n, N);
    assert_int_equal(import.trace->health.gpu_without_runtime, 0);
    assert_int_equal(import.trace->health.multi_gpu_per_corr, N);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t k = import.trace->links.offset[i]; k < import.trace->links.offset[i + 1]; k++)
            assert_int_equal(
                import.trace->ev.name[import.trace->links.member[k]],
                import.trace->ev.name[import.trace->links.member[import.trace->links.offset[i]]]);
    rp_import_release(&import);
    import = load(
        "[{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":1,\"dur\":1,\"args\":{\"correlation\":null}}]");
    assert_int_equal(import.trace->links.n, 0);
    rp_import_release(&import);
}

int test_chrome_args(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arg_types),    cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_many_args),    cmocka_unit_test(test_templates),
        cmocka_unit_test(test_correlations),
    };

    return cmocka_run_group_tests_name("chrome_args", tests, NULL, NULL);
}
