/* SPDX-License-Identifier: Apache-2.0 */
/* Which changes fit a program, by what the probe told about it. */
#include "try/changes.h"
#include "try/session.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Why a change is not tried, or NULL; its value goes to `value`. */
static const char *unfit(const struct rp_try_facts *f, const char *name, char *value)
{
    const struct rp_try_change *change = rp_try_change_find(name, strlen(name));
    char own[160] = "";

    assert_non_null(change);
    return change->unfit(f, value ? value : own, 160);
}

static struct rp_try_facts program(const char *framework, const char *unit, const char *device)
{
    struct rp_try_facts f = {0};

    rp_try_facts_add(&f, "framework", framework);
    rp_try_facts_add(&f, "unit", unit);
    rp_try_facts_add(&f, "device", device);
    rp_try_facts_add(&f, "types", "float32");
    rp_try_facts_add(&f, "models", "1");
    return f;
}

static void changes_of_amd(void **state)
{
    struct rp_try_facts f = program("torch 2.11.0", "optimizer 0", "cuda");

    UNUSED_STATE(state);
    assert_string_equal(unfit(&f, "tunable-op", NULL), "it is for AMD devices");
    rp_try_facts_add(&f, "hip", "7.0.1");
    assert_null(unfit(&f, "tunable-op", NULL));
    f = program("jax 0.11.2", "jit 0", "gpu");
    assert_string_equal(unfit(&f, "tunable-op", NULL), "it is for PyTorch");
}

static void changes_of_tensorflow(void **state)
{
    struct rp_try_facts cpu = program("tensorflow 2.21.0", "function train 0 train 0", "cpu"),
                        gpu = program("tensorflow 2.21.0", "function train 0 train 0", "cuda");
    char value[160];

    UNUSED_STATE(state);
    assert_string_equal(unfit(&cpu, "jit-compile", NULL), "the program calls no tf.function");
    rp_try_facts_add(&cpu, "functions", "2");
    rp_try_facts_add(&gpu, "functions", "2");
    assert_null(unfit(&cpu, "jit-compile", NULL));
    assert_null(unfit(&cpu, "auto-jit-cpu", NULL));
    assert_null(unfit(&cpu, "bf16-rewrite", NULL));
    assert_null(unfit(&cpu, "bf16", NULL));
    assert_null(unfit(&gpu, "auto-jit", NULL));
    assert_string_equal(unfit(&cpu, "auto-jit", NULL), "on the CPU it is 'auto-jit-cpu'");
    assert_string_equal(unfit(&gpu, "auto-jit-cpu", NULL), "the program computes on a device");
    assert_string_equal(unfit(&gpu, "intra-op", value), "the program computes on a device");
    assert_string_equal(unfit(&cpu, "tf32", NULL), "it is for CUDA devices");
    assert_null(unfit(&gpu, "tf32", NULL)); /* the program forbids it */
    rp_try_facts_add(&gpu, "tf32", "1");
    assert_string_equal(unfit(&gpu, "tf32", NULL), "the program already allows it");
    assert_non_null(unfit(&cpu, "prefetch", NULL));
    rp_try_facts_add(&cpu, "datasets-without-prefetch", "1");
    assert_null(unfit(&cpu, "prefetch", NULL));
    rp_try_facts_add(&cpu, "inter-op", "3");
    assert_string_equal(unfit(&cpu, "inter-op", value), "the program sets it already");
    rp_try_facts_add(&cpu, "compiled", "1");
    assert_string_equal(unfit(&cpu, "jit-compile", NULL), "the program compiles already");
    assert_string_equal(unfit(&cpu, "matmul", value), "it is for JAX");
    assert_string_equal(unfit(&cpu, "compile", NULL), "it is for PyTorch");
}

static void changes_of_others(void **state)
{
    struct rp_try_facts torch = program("torch 2.15.0", "optimizer 0", "cpu"),
                        jax = program("jax 0.10.2", "jit 0", "cpu");
    char value[160];

    UNUSED_STATE(state);
    rp_try_facts_add(&torch, "functions", "1");
    rp_try_facts_add(&jax, "matmul", "default");
    assert_string_equal(unfit(&torch, "jit-compile", NULL), "it is for TensorFlow");
    assert_string_equal(unfit(&jax, "auto-jit-cpu", NULL), "it is for TensorFlow");
    assert_string_equal(unfit(&jax, "prefetch", NULL), "it is for TensorFlow");
    assert_null(unfit(&torch, "bf16", NULL));
    rp_try_facts_add(&torch, "loaders", "1");
    rp_try_facts_add(&torch, "loaders-without-workers", "1");
    assert_null(unfit(&torch, "workers", value));
    rp_try_facts_add(&torch, "loaders-nested", "1");
    assert_contains(unfit(&torch, "workers", value), "persistent workers would begin that anew");
    assert_string_equal(unfit(&jax, "bf16", NULL), "it is for PyTorch and Keras");
    assert_null(unfit(&jax, "matmul", value));
    assert_string_equal(value, "bfloat16");
}

static void lines_fit_the_framework(void **state)
{
    struct rp_try_facts torch = program("torch 2.15.0", "optimizer 0", "cpu"),
                        tensorflow = program("tensorflow 2.21.0", "optimizer 0", "cpu");
    const struct rp_try_change *bf16 = rp_try_change_find("bf16", 4);

    UNUSED_STATE(state);
    assert_non_null(strstr(rp_try_lines(bf16, &torch), "torch.autocast"));
    assert_non_null(strstr(rp_try_lines(bf16, &tensorflow), "keras.mixed_precision"));
    assert_true(rp_try_change_count() <= RP_TRY_CHANGES_MOST);
}

static void what_does_not_apply_is_left_out(void **state)
{
    static const struct {
        const char *answer, *unfit;
    } rows[] = {{"\"applies\": \"no\", \"because\": \"kernels differ\"", "kernels differ"},
                {"\"applies\": \"part\", \"because\": \"two pieces\"", ""},
                {"\"applies\": null, \"because\": null", ""}};
    char path[] = "/tmp/reprise-answer-XXXXXX";
    int fd = mkstemp(path);

    UNUSED_STATE(state);
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rp_try_variant *v = calloc(1, sizeof *v);
        FILE *f = fopen(path, "w");

        assert_non_null(v);
        assert_non_null(f);
        fprintf(f,
                "{\"known\": [], \"predictions\": [{\"what_if\": \"x\", \"change_ratio\": -0.5, "
                "\"change_low_ratio\": -0.6, \"change_high_ratio\": -0.4, %s, \"tries\": 0}]}",
                rows[i].answer);
        fclose(f);
        rp_try_read_answer(path, v);
        assert_true(v->predicted);
        assert_string_equal(v->unfit, rows[i].unfit);
        free(v);
    }
    close(fd);
    unlink(path);
}

int test_changes(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_apply_is_left_out), cmocka_unit_test(changes_of_amd),
        cmocka_unit_test(changes_of_tensorflow), cmocka_unit_test(changes_of_others),
        cmocka_unit_test(lines_fit_the_framework)};

    return cmocka_run_group_tests_name("changes", tests, NULL, NULL);
}
