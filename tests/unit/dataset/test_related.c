/* SPDX-License-Identifier: Apache-2.0 */
/* Traces that are not ranks of one run: what gives them away, and what is said. */
#include "dataset/related.h"
#include "trace/trace_fixtures.h"

struct file {
    const char *name, *kernel, *other, *op, *device;
    int32_t rank, world;
    int64_t base_ns;  /* 0: not recorded */
    const char *boot; /* or NULL */
    int64_t other_us; /* of the kernel `other`; 0: 100 */
    int relus;        /* besides `op` and an addition */
};

#define DAY INT64_C(86400000000000)

static struct rp_trace *file_trace(const struct file *f)
{
    const struct row rows[] = {
        {'X', "cpu_op", f->op, 1, 1, 0, 50},
        {'X', "cpu_op", "aten::add", 1, 1, 60, 50},
        {'X', "kernel", f->kernel, 0, 7, 10, 900, 1, 7},
        {'X', "kernel", f->other, 0, 7, 1000, f->other_us ? f->other_us : 100, 2, 7},
        {'X', "cpu_op", "aten::relu", 1, 1, 120, 10},
        {'X', "cpu_op", "aten::relu", 1, 1, 140, 10},
    };
    struct rp_builder *b = build_rows(rows, sizeof rows / sizeof rows[0] - 2 + (size_t)f->relus);
    struct rp_device device = {.name = str_of(b, f->device)};
    struct rp_trace *t = rp_builder_borrow_trace(b);

    t->rank = f->rank;
    t->world_size = f->world;
    t->has_base = f->base_ns != 0;
    t->base_ns = f->base_ns;
    t->framework = str_of(b, "pytorch");
    assert_code(rp_builder_add_device(b, &device, NULL), RP_OK);
    if (f->boot)
        assert_code(rp_builder_add_meta(b, str_of(b, "boot_id"), str_of(b, f->boot), false, NULL),
                    RP_OK);
    return finish_valid(b);
}

/* The run of some files, checked. */
static struct rp_run *run_of(const struct file *files, size_t n, struct rp_relation *relation)
{
    struct rp_sketch sketches[4] = {{.device = ""}};
    const struct rp_sketch *list[4];
    struct rp_err err = RP_ERR_INIT;
    struct rp_run *run;

    assert_ok(rp_run_new(&run, &err), &err);
    for (size_t i = 0; i < n; i++) {
        struct rp_trace *t = file_trace(&files[i]);
        struct rp_digest *digest;

        assert_ok(rp_digest_new(t, files[i].name, &digest, &err), &err);
        assert_ok(rp_sketch_init(&sketches[i], t, &err), &err);
        assert_ok(rp_run_add(run, &digest, i, &err), &err);
        list[i] = &sketches[i];
        rp_trace_free(t);
    }
    assert_ok(rp_run_settle(run, &err), &err);
    assert_ok(rp_run_check(run, list, relation, &err), &err);
    for (size_t i = 0; i < n; i++)
        rp_sketch_release(&sketches[i]);
    return run;
}

static void ranks_of_one_run_are_fine(void **state)
{
    /* a pipeline: each rank has a kernel of its own; other devices, but numbered */
    static const struct file files[] = {
        {"a.json", "gemm_0", "norm", "aten::mm", "A100", 0, 4, DAY},
        {"b.json", "gemm_1", "norm", "aten::mm", "A100", 1, 4, DAY + 1000},
        {"c.json", "gemm_0", "norm", "aten::mm", "H100", 3, 4, 0},
    };
    struct rp_relation relation;
    struct rp_run *run = run_of(files, 3, &relation);

    UNUSED_STATE(state);
    assert_false(relation.unrelated);
    assert_null(relation.why);
    assert_null(relation.numbers);
    rp_run_free(run);
}

/* Each pair differs in one thing. */
static void what_differs_is_said(void **state)
{
    static const struct {
        struct file a, b;
        const char *said;
    } pairs[] = {
        {{"a", "k", "l", "aten::mm", "A100", 0, 4, 0},
         {"b", "k", "l", "aten::mm", "A100", 1, 8, 0},
         "their jobs have 4 and 8 ranks"},
        {{"a", "k", "l", "aten::mm", "A100", 0, 0, 0},
         {"b", "k", "l", "aten::mm", "A100", 0, 0, 0},
         "both are of rank 0"},
        {{"a", "k", "l", "aten::mm", "A100", 0, 0, DAY},
         {"b", "k", "l", "aten::mm", "A100", -1, 0, 9 * DAY},
         "they were recorded 8 days apart"},
        {{"a", "k", "l", "aten::mm", "A100", 0, 0, 0},
         {"b", "x", "y", "aten::mm", "A100", 1, 0, 0},
         "they have hardly a kernel in common"},
        {{"a", "k", "l", "aten::mm", "A100", -1, 0, 0},
         {"b", "k", "l", "aten::mm", "MI300X", -1, 0, 0},
         "their devices are A100 and MI300X"},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const struct file files[] = {pairs[i].a, pairs[i].b};
        struct rp_relation relation;
        struct rp_run *run = run_of(files, 2, &relation);

        assert_true(relation.unrelated);
        assert_contains(relation.why, "these are not two ranks of one run: ");
        assert_contains(relation.why, pairs[i].said);
        assert_contains(relation.why, "to compare them: reprise diff a b");
        rp_run_free(run);
    }
}

/* Numbered ranks at different times: another run, or a clock that is hours off. */
static void a_clock_may_be_wrong(void **state)
{
    static const struct file files[] = {
        {"a.json", "k", "l", "aten::mm", "A100", 0, 2, DAY},
        {"b.json", "k", "l", "aten::mm", "A100", 1, 2, DAY + DAY / 4},
    };
    struct rp_relation relation;
    struct rp_run *run = run_of(files, 2, &relation);

    UNUSED_STATE(state);
    assert_false(relation.unrelated);
    assert_null(relation.numbers);
    assert_contains(relation.why, "recorded 6 hours apart");
    assert_contains(relation.why, "or a clock is wrong");
    rp_run_free(run);
}

/* Recordings of one boot of a machine have one clock, which cannot be off. */
static void one_clock_is_not_wrong(void **state)
{
    static const struct file files[] = {
        {"a", "k", "l", "aten::mm", "A100", 0, 3, DAY, "\"1234-5678\""},
        {"b", "k", "l", "aten::mm", "A100", 1, 3, DAY + DAY / 4, "\"1234-5678\""},
        {"c", "k", "l", "aten::mm", "A100", 2, 3, DAY + DAY / 4, "\"8765-4321\""},
    };
    struct rp_relation relation;
    struct rp_run *run = run_of(files, 2, &relation);

    UNUSED_STATE(state);
    assert_true(relation.unrelated);
    assert_contains(relation.why, "not two ranks of one run: they were recorded 6 hours apart");
    rp_run_free(run);
    run = run_of(files, 3, &relation);
    assert_int_equal(relation.strangers, 1);
    assert_contains(relation.why, "'a' and 'b' (they were recorded 6 hours apart)");
    rp_run_free(run);
}

/* Another model is not a pair to compare; of several files the ones that contradict are named. */
static void other_models_are_not_compared(void **state)
{
    static const struct file files[] = {
        {"a.json", "k", "l", "aten::mm", "A100", 0, 2, 0},
        {"b.json", "x", "y", "aten::conv2d", "A100", 1, 2, 0},
        {"c.json", "k", "l", "aten::mm", "A100", -1, 0, 0},
    };
    struct rp_relation relation;
    struct rp_run *run = run_of(files, 2, &relation);

    UNUSED_STATE(state);
    assert_true(relation.unrelated);
    assert_contains(relation.why, "ask about each run alone");
    assert_null(relation.numbers);
    rp_run_free(run);
    run = run_of(files, 3, &relation);
    assert_true(relation.unrelated);
    assert_contains(relation.why, "of 3 traces, 1 does not");
    assert_contains(relation.why, "'a.json' and 'b.json'");
    assert_contains(relation.numbers, "'c.json' states none and is shown as rank 2");
    rp_run_free(run);
}

static void recordings_that_are_a_second_apart_are_apart(void **state)
{
    struct rp_digest a = {.has_base = 1}, b = {.has_base = 1, .base_ns = DAY};

    UNUSED_STATE(state);
    a.totals.span_end_ns = DAY - 900000000;
    assert_int_equal(rp_digests_apart(&a, &b), 0);
    a.totals.span_end_ns = DAY - 1100000000;
    assert_int_equal(rp_digests_apart(&a, &b), 1100000000);
    assert_int_equal(rp_digests_apart(&b, &a), 1100000000);
}

static void ranks_share_a_tenth_of_their_kernels(void **state)
{
    UNUSED_STATE(state);
    for (int64_t us = 90; us <= 110; us += 20) { /* a little less, and more, than a tenth of it */
        const struct file files[] = {
            {"a", "k", "l", "aten::mm", "A100", 0, 2, 0, NULL, us, 0},
            {"b", "x", "l", "aten::mm", "A100", 1, 2, 0, NULL, us, 0},
        };
        struct rp_relation relation;
        struct rp_run *run = run_of(files, 2, &relation);

        assert_int_equal(relation.unrelated, us < 100);
        rp_run_free(run);
    }
}

static void a_pair_has_most_operators_in_common(void **state)
{
    UNUSED_STATE(state);
    for (int relus = 1; relus <= 2; relus++) { /* two of three, three of four */
        const struct file files[] = {
            {"a", "k", "l", "aten::mm", "A100", 0, 2, 0, NULL, 0, relus},
            {"b", "x", "y", "aten::bmm", "A100", 1, 2, 0, NULL, 0, relus},
        };
        struct rp_relation relation;
        struct rp_run *run = run_of(files, 2, &relation);

        assert_contains(relation.why, relus == 2 ? "reprise diff a b" : "ask about each run alone");
        rp_run_free(run);
    }
}

int test_related(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_one_run_are_fine),
        cmocka_unit_test(what_differs_is_said),
        cmocka_unit_test(a_clock_may_be_wrong),
        cmocka_unit_test(one_clock_is_not_wrong),
        cmocka_unit_test(other_models_are_not_compared),
        cmocka_unit_test(recordings_that_are_a_second_apart_are_apart),
        cmocka_unit_test(ranks_share_a_tenth_of_their_kernels),
        cmocka_unit_test(a_pair_has_most_operators_in_common),
    };

    return cmocka_run_group_tests_name("related", tests, NULL, NULL);
}
