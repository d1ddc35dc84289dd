/* SPDX-License-Identifier: Apache-2.0 */
/* Own times of host calls, and which of them are stalls. */
#include "facts/host/calls.h"
#include "facts/times/durations.h"
#include "trace/trace_fixtures.h"

#include <reprise/result.h>

#define US 1000
#define MS 1000000

/* Twenty calls of 10 us, the last one of `last`. */
static struct rp_trace *calls_of(int64_t last)
{
    struct row rows[20];
    int i;

    for (i = 0; i < 20; i++)
        rows[i] =
            (struct row){'X', "cpu_op", "aten::mm", 1, 1, i * 100 * US, i == 19 ? last : 10 * US};
    return TRACE_OF(rows);
}

/* The number of a name; fails where there is no such name. */
static size_t name_in(const struct rp_host_calls *c, const char *name)
{
    size_t g;

    for (g = 0; g < c->names.n && strcmp(c->names.at[g], name); g++)
        ;
    assert_true(g < c->names.n);
    return g;
}

static size_t stalls_in(const struct rp_host_calls *const *ranks, size_t n,
                        const struct rp_stall_rule *rule, int64_t *median)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_call_names names;
    size_t r, i, found = 0;

    assert_code(rp_call_names_join(ranks, n, &arena, &names, NULL), RP_OK);
    for (r = 0; r < n; r++)
        for (i = 0; i < ranks[r]->slow.n; i++) {
            const struct rp_slow_call *slow = &ranks[r]->slow.at[i];
            const struct rp_call_name *name = &names.at[names.to[r][slow->name]];

            found += rp_is_stall(name, slow->self_ns, rule);
            *median = name->median_ns;
        }
    rp_arena_release(&arena);
    return found;
}

static uint32_t all_calls(const struct rp_host_calls *c)
{
    uint32_t sum = 0;
    size_t i;

    for (i = 0; i < c->self.count.n; i++)
        sum += c->self.count.at[i];
    return sum;
}

/* Of a name with one call. */
static int64_t only_time(const struct rp_host_calls *c, size_t name)
{
    int64_t ns = -1;

    assert_int_equal(c->self.count.at[name], 1);
    assert_code(rp_time_lists_read(&c->self, name, &ns, NULL), RP_OK);
    return ns;
}

static void own_time_leaves_out_what_is_inside(void **state)
{
    static const struct row rows[] = {{'X', "cpu_op", "outer", 1, 1, 0, 100 * US},
                                      {'X', "cuda_runtime", "inner", 1, 1, 10 * US, 30 * US},
                                      {'X', "cpu_op", "inner2", 1, 1, 50 * US, 20 * US},
                                      {'X', "cpu_op", "leaf", 1, 1, 55 * US, 5 * US},
                                      {'X', "kernel", "k", 0, 7, 0, 50 * US, 1, 7}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_host_calls c;
    size_t g;

    UNUSED_STATE(state);
    assert_code(rp_host_calls_init(&c, t, NULL, 0, &arena, NULL), RP_OK);
    assert_int_equal(all_calls(&c), 4); /* the kernel is not a call */
    assert_int_equal(c.slow.n, 4);
    g = name_in(&c, "outer");
    assert_int_equal(only_time(&c, g), 50 * US);
    g = name_in(&c, "inner2");
    assert_int_equal(only_time(&c, g), 15 * US);
    rp_host_calls_release(&c);
    rp_arena_release(&arena);
    rp_trace_free(t);
}

static void numbers_behind_a_hash_are_one_name(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#3", 1, 1, 0, 2 * MS},
        {'X', "user_annotation", "ProfilerStep#4", 1, 1, 3 * MS, 2 * MS}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_host_calls c;
    size_t g;

    UNUSED_STATE(state);
    assert_code(rp_host_calls_init(&c, t, NULL, MS, &arena, NULL), RP_OK);
    g = name_in(&c, "ProfilerStep#");
    assert_int_equal(c.self.count.at[g], 2);
    assert_int_equal(c.flags.at[g], RP_CALL_STEP);
    rp_host_calls_release(&c);
    rp_arena_release(&arena);
    rp_trace_free(t);
}

/* Ranges that differ in a number at the end, each used once. */
static void names_that_count_are_one_name(void **state)
{
    static const struct row rows[] = {{'X', "user_annotation", "batch 0", 1, 1, 0, 2 * MS},
                                      {'X', "user_annotation", "batch 1", 1, 1, 3 * MS, 2 * MS},
                                      {'X', "user_annotation", "batch 2", 1, 1, 6 * MS, 2 * MS},
                                      {'X', "user_annotation", "batch 3", 1, 1, 9 * MS, 2 * MS}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_host_calls c;

    UNUSED_STATE(state);
    assert_code(rp_host_calls_init(&c, t, NULL, MS, &arena, NULL), RP_OK);
    assert_int_equal(c.self.count.at[name_in(&c, "batch *")], 4);
    rp_host_calls_release(&c);
    rp_arena_release(&arena);
    rp_trace_free(t);
}

/* A range of which every fifth call is long is around two kinds of work. */
static void calls_that_are_often_long_are_no_stalls(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;

    UNUSED_STATE(state);
    for (int often = 0; often < 2; often++) {
        struct row rows[40] = {{0}};
        struct rp_host_calls c;
        const struct rp_host_calls *in = &c;
        struct rp_trace *t;
        int64_t median = 0;

        for (int i = 0; i < 40; i++)
            rows[i] = (struct row){'X',
                                   "user_annotation",
                                   "KernelAndDeviceFunc::Run",
                                   1,
                                   1,
                                   10 * i * MS,
                                   i % (often ? 5 : 20) == 4 ? 5 * MS : 10 * US};
        t = TRACE_OF(rows);
        assert_code(rp_host_calls_init(&c, t, NULL, MS, &arena, NULL), RP_OK);
        assert_int_equal(stalls_in(&in, 1, &rp_stall_usual, &median), often ? 0 : 2);
        rp_host_calls_release(&c);
        rp_trace_free(t);
    }
    rp_arena_release(&arena);
}

static void a_stall_is_far_above_the_median_of_all_ranks(void **state)
{
    struct rp_trace *t[2] = {calls_of(5 * MS), calls_of(10 * US)};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_host_calls c[2];
    const struct rp_host_calls *in[2] = {&c[0], &c[1]};
    struct rp_stall_rule rule = rp_stall_usual;
    int64_t median = 0;
    int r;

    UNUSED_STATE(state);
    for (r = 0; r < 2; r++)
        assert_code(rp_host_calls_init(&c[r], t[r], NULL, rule.floor_ns, &arena, NULL), RP_OK);
    assert_int_equal(c[0].slow.n, 1);
    assert_int_equal(c[1].slow.n, 0);
    assert_int_equal(stalls_in(in, 2, &rule, &median), 1);
    assert_int_equal(median, 10 * US);
    rule.ratio = 500; /* exactly 500 times is not more */
    assert_int_equal(stalls_in(in, 2, &rule, &median), 0);
    rule.ratio = 499;
    assert_int_equal(stalls_in(in, 2, &rule, &median), 1);
    rule.calls = 41; /* there are 40 */
    assert_int_equal(stalls_in(in, 2, &rule, &median), 0);
    for (r = 0; r < 2; r++) {
        rp_host_calls_release(&c[r]);
        rp_trace_free(t[r]);
    }
    rp_arena_release(&arena);
}

static const struct rp_call_name *joined(const struct rp_call_names *names, const char *name)
{
    for (size_t g = 0; g < names->n; g++)
        if (names->at[g].name && !strcmp(names->at[g].name, name))
            return &names->at[g];
    fail_msg("no '%s'", name);
    return NULL;
}

/* Names of two ranks, in another order: calls are counted, and times are known of those of which a
   call is slow on any rank. */
static void ranks_are_joined(void **state)
{
    static const int64_t longer[] = {50, 20, 40, 30}; /* us, of the last calls of the second rank */
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_host_calls c[2];
    const struct rp_host_calls *in[2] = {&c[0], &c[1]};
    struct rp_call_names names;
    const struct rp_call_name *mm, *add;
    const int64_t *times;

    UNUSED_STATE(state);
    for (int r = 0; r < 2; r++) {
        struct row rows[24];
        struct rp_trace *t;
        int n = 0;

        for (int i = 0; i < 20; i++)
            rows[n++] = (struct row){'X', "cpu_op", "aten::mm", 1, 1, (i + 5) * 6 * MS, 10 * US};
        for (int i = 0; i < 4; i++)
            rows[16 + i].dur = r ? longer[i] * US : 10 * US;
        rows[19].dur = r ? rows[19].dur : 5 * MS;
        for (int i = 0; i < 3 + r; i++)
            rows[n++] = (struct row){
                'X', "user_annotation", "range", 1, 1, (r ? 0 : 1000 * MS) + i * MS, 7 * US};
        t = trace_of(rows, (size_t)n);
        assert_code(rp_host_calls_init(&c[r], t, NULL, MS, &arena, NULL), RP_OK);
        rp_trace_free(t);
    }
    assert_code(rp_call_names_join(in, 2, &arena, &names, NULL), RP_OK);
    mm = joined(&names, "aten::mm");
    add = joined(&names, "range");
    assert_true(mm->slow);
    assert_int_equal(mm->kind, RP_KIND_CPU_OP);
    assert_int_equal(mm->count, 40);
    assert_int_equal(mm->nlists, 2);
    assert_int_equal(mm->median_ns, 10 * US);
    assert_int_equal(mm->often_ns, 20 * US); /* four of 40 take longer */
    assert_code(rp_call_times(&names, mm, &times, NULL), RP_OK);
    assert_int_equal(times[0], 10 * US);
    assert_int_equal(times[38], 50 * US);
    assert_int_equal(times[39], 5 * MS);
    assert_false(add->slow);
    assert_int_equal(add->kind, RP_KIND_ANNOTATION);
    assert_int_equal(add->count, 7);
    assert_int_equal(add->median_ns, RP_ABSENT_I64);
    for (int r = 0; r < 2; r++)
        rp_host_calls_release(&c[r]);
    rp_arena_release(&arena);
}

/* What the clock cannot resolve is no usual time. Ranges that are often long, and names that wait,
   count steps or vary, have no stalls. */
static void some_names_have_no_stalls(void **state)
{
    static const uint8_t flags[] = {RP_CALL_WAITS, RP_CALL_STEP, RP_CALL_VARIES};
    const struct rp_stall_rule rule = {.floor_ns = 0, .ratio = 50, .calls = 1};
    struct rp_call_name name = {.name = "f", .kind = RP_KIND_CPU_OP, .count = 1};
    int64_t edge = 50 * RP_CLOCK_RESOLUTION_NS;

    UNUSED_STATE(state);
    assert_false(rp_is_stall(&name, edge, &rule));
    assert_true(rp_is_stall(&name, edge + 1, &rule));
    name.median_ns = RP_CLOCK_RESOLUTION_NS + 1;
    assert_false(rp_is_stall(&name, edge + 50, &rule));
    assert_true(rp_is_stall(&name, edge + 51, &rule));
    for (size_t i = 0; i < sizeof flags; i++) {
        name.flags = flags[i];
        assert_false(rp_is_stall(&name, 2 * edge, &rule));
    }
    name.flags = 0;
    name.often_ns = edge + 51;
    assert_true(rp_is_stall(&name, 2 * edge, &rule)); /* an operator may be often long */
    name.kind = RP_KIND_ANNOTATION;
    assert_false(rp_is_stall(&name, 2 * edge, &rule));
    name.often_ns--;
    assert_true(rp_is_stall(&name, 2 * edge, &rule));
}

/* Of 15 calls none is a stall, and of 16 only what takes more than 50 medians. */
static void a_stall_has_edges(void **state)
{
    struct rp_call_name name = {.name = "f", .kind = RP_KIND_CPU_OP, .count = 16};

    UNUSED_STATE(state);
    name.median_ns = 100 * US;
    assert_false(rp_is_stall(&name, 5 * MS, &rp_stall_usual));
    assert_true(rp_is_stall(&name, 5 * MS + 1, &rp_stall_usual));
    name.count = 15;
    assert_false(rp_is_stall(&name, 5 * MS + 1, &rp_stall_usual));
    assert_int_equal(rp_stall_usual.floor_ns, MS);
}

/* Waits of a thread with work are calls; those of workers, collectives and runtime calls are not.
 */
static void waits_in_ranges_are_calls(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "step", 1, 1, 0, 100 * MS},
        {'X', "blocking", "poll", 1, 1, 10 * MS, 50 * MS},
        {'X', "cuda_runtime", "cudaFree", 1, 1, 70 * MS, 20 * MS},
        {'X', "blocking", "poll", 1, 1, 72 * MS, 10 * MS},
        {'X', "blocking", "poll", 1, 2, 0, 100 * MS},
    };
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_host_calls c;

    UNUSED_STATE(state);
    assert_code(rp_host_calls_init(&c, t, NULL, 0, &arena, NULL), RP_OK);
    assert_int_equal(c.slow.n, 3);
    assert_int_equal(c.slow.at[0].self_ns, 30 * MS); /* of the step */
    assert_int_equal(c.slow.at[1].self_ns, 50 * MS);
    assert_int_equal(c.slow.at[2].self_ns, 20 * MS); /* all of the runtime call */
    rp_host_calls_release(&c);
    rp_trace_free(t);
    rp_arena_release(&arena);
}

static void only_calls_in_the_scope_count(void **state)
{
    struct rp_trace *t = calls_of(5 * MS);
    struct rp_scope scope = {true, false, 0, 500 * US};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_host_calls c;

    UNUSED_STATE(state);
    assert_code(rp_host_calls_init(&c, t, &scope, MS, &arena, NULL), RP_OK);
    assert_int_equal(all_calls(&c), 5);
    assert_int_equal(c.slow.n, 0);
    rp_host_calls_release(&c);
    rp_arena_release(&arena);
    rp_trace_free(t);
}

/* Of two ranks: each name once, with what all its calls are; times of names without a slow call are
   not listed. */
static void names_of_ranks_are_joined(void **state)
{
    static const struct row first[] = {
        {'X', "cpu_op", "slow", 1, 1, 0, 9 * US},
        {'X', "cpu_op", "slow", 1, 1, 100 * US, 2 * MS},
        {'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 3 * MS, 5 * US},
        {'X', "user_annotation", "ProfilerStep#3", 1, 1, 4 * MS, 1 * US},
    };
    static const struct row second[] = {
        {'X', "cpu_op", "other", 1, 1, 0, 3 * US},
        {'X', "cpu_op", "slow", 1, 1, 100 * US, 7 * US},
    };
    struct rp_trace *t[2] = {TRACE_OF(first), TRACE_OF(second)};
    static const struct {
        const char *name;
        size_t count, nlists;
        uint8_t kind, flags;
    } want[] = {{"slow", 3, 2, RP_KIND_CPU_OP, 0},
                {"cudaDeviceSynchronize", 1, 1, RP_KIND_RUNTIME, RP_CALL_WAITS},
                {"ProfilerStep#", 1, 1, RP_KIND_ANNOTATION, RP_CALL_STEP},
                {"other", 1, 1, RP_KIND_CPU_OP, 0}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_call_names names;
    struct rp_host_calls c[2];
    const struct rp_host_calls *ranks[] = {&c[0], &c[1]};
    const int64_t *times;

    UNUSED_STATE(state);
    for (int r = 0; r < 2; r++)
        assert_code(rp_host_calls_init(&c[r], t[r], NULL, MS, &arena, NULL), RP_OK);
    assert_int_equal(c[0].slow.n, 1);
    assert_int_equal(c[1].slow.n, 0);
    assert_code(rp_call_names_join(ranks, 2, &arena, &names, NULL), RP_OK);
    for (size_t i = 0; i < 4; i++) {
        const struct rp_call_name *x = names.at;

        while (!x->name || strcmp(x->name, want[i].name) != 0)
            assert_true(++x < names.at + names.n);
        assert_int_equal(x->count, want[i].count);
        assert_int_equal(x->nlists, want[i].nlists);
        assert_int_equal(x->kind, want[i].kind);
        assert_int_equal(x->flags, want[i].flags);
        assert_int_equal(x->slow, i == 0);
        assert_int_equal(x->median_ns, i ? RP_ABSENT_I64 : 9 * US);
        if (i == 0) {
            assert_int_equal(x->often_ns, 2 * MS);
            assert_code(rp_call_times(&names, x, &times, NULL), RP_OK);
            assert_true(times[0] == 7 * US && times[1] == 9 * US && times[2] == 2 * MS);
        }
    }
    for (int r = 0; r < 2; r++) {
        rp_host_calls_release(&c[r]);
        rp_trace_free(t[r]);
    }
    rp_arena_release(&arena);
}

/* Above the floor, and more than ten times as long as is usual, by a nanosecond; of a range also
   not as long as a tenth of its calls. */
static void calls_on_both_sides_of_a_stall(void **state)
{
    const struct rp_stall_rule rule = {.floor_ns = 500, .ratio = 10, .calls = 5};
    static const struct {
        struct rp_call_name name;
        int64_t self_ns;
        bool stalls;
    } rows[] = {
        {{.count = 5, .median_ns = 2000}, 20001, true},
        {{.count = 5, .median_ns = 2000}, 20000, false},
        {{.count = 4, .median_ns = 2000}, 20001, false},
        {{.count = 5, .median_ns = 2000}, 19999, false},
        {{.count = 5, .median_ns = 10}, 10001, true}, /* a clock resolves a microsecond */
        {{.count = 5, .median_ns = 10}, 10000, false},
        {{.count = 5, .median_ns = 2000, .flags = RP_CALL_WAITS}, 90000, false},
        {{.count = 5, .median_ns = 2000, .flags = RP_CALL_STEP}, 90000, false},
        {{.count = 5, .median_ns = 2000, .flags = RP_CALL_VARIES}, 90000, false},
        {{.count = 5, .median_ns = 2000, .often_ns = 20001, .kind = RP_KIND_ANNOTATION},
         90000,
         false},
        {{.count = 5, .median_ns = 2000, .often_ns = 20000, .kind = RP_KIND_ANNOTATION},
         90000,
         true},
        {{.count = 5, .median_ns = 2000, .often_ns = 20001, .kind = RP_KIND_CPU_OP}, 90000, true},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rp_is_stall(&rows[i].name, rows[i].self_ns, &rule) != rows[i].stalls)
            fail_msg("row %zu", i);
    const struct rp_stall_rule high = {.floor_ns = 30000, .ratio = 10, .calls = 5};
    assert_false(rp_is_stall(&rows[0].name, 30000, &high));
    assert_true(rp_is_stall(&rows[0].name, 30001, &high));
}

int test_host_calls(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_ranks_are_joined),
        cmocka_unit_test(calls_on_both_sides_of_a_stall),
        cmocka_unit_test(own_time_leaves_out_what_is_inside),
        cmocka_unit_test(numbers_behind_a_hash_are_one_name),
        cmocka_unit_test(names_that_count_are_one_name),
        cmocka_unit_test(calls_that_are_often_long_are_no_stalls),
        cmocka_unit_test(a_stall_is_far_above_the_median_of_all_ranks),
        cmocka_unit_test(ranks_are_joined),
        cmocka_unit_test(some_names_have_no_stalls),
        cmocka_unit_test(a_stall_has_edges),
        cmocka_unit_test(waits_in_ranges_are_calls),
        cmocka_unit_test(only_calls_in_the_scope_count),
    };

    return cmocka_run_group_tests_name("host_calls", tests, NULL, NULL);
}
