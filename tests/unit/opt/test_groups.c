/* SPDX-License-Identifier: Apache-2.0 */
/* The search for groups of tensors, on planted chains whose best plan is found by trying all. */
#include "unit.h"

#include "dataset/dataset.h"
#include "opt/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST 24

/* A link that sends one group after the other, each for a latency and its bytes. */
struct link {
    size_t n;
    double ready[MOST], bytes[MOST];
    double latency, copy; /* copy: of groups of several, before and after */
};

struct link_state {
    double idle;
};

static void link_begin(const void *user, void *state)
{
    (void)user;
    ((struct link_state *)state)->idle = 0;
}

static void link_add(const void *user, void *state, size_t first, size_t end)
{
    const struct link *l = user;
    struct link_state *s = state;
    double bytes = 0;
    size_t i;

    for (i = first; i < end; i++)
        bytes += l->bytes[i];
    s->idle = fmax(s->idle, l->ready[end - 1]) + l->latency + bytes;
    if (end - first > 1)
        s->idle += l->copy;
}

static double link_there(const void *user, const void *state)
{
    (void)user;
    return ((const struct link_state *)state)->idle;
}

static double link_ready(const void *user, size_t tensor)
{
    return ((const struct link *)user)->ready[tensor];
}

static struct rp_opt_chain chain_of(const struct link *l)
{
    return (struct rp_opt_chain){.n = l->n,
                                 .state_size = sizeof(struct link_state),
                                 .whole = true,
                                 .user = l,
                                 .begin = link_begin,
                                 .add = link_add,
                                 .there_ns = link_there,
                                 .ready_ns = link_ready,
                                 .step_ns = link_there};
}

/* Made of a number, without a pattern. */
static struct link link_of(size_t n, unsigned seed)
{
    struct link l = {.n = n, .latency = 20 + seed % 50, .copy = seed % 7};
    unsigned x = seed * 2654435761u + 1;
    double at = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        at += (double)(x >> 24);
        l.ready[i] = at;
        x = x * 1664525u + 1013904223u;
        l.bytes[i] = 1 + (double)(x >> 23 & 255);
    }
    return l;
}

static double best_of_all(const struct rp_opt_chain *c)
{
    struct rp_err err = RP_ERR_INIT;
    uint8_t ends[MOST];
    double best = INFINITY, ns;
    uint32_t plan;
    size_t i;

    for (plan = 0; plan < 1u << (c->n - 1); plan++) {
        for (i = 0; i < c->n; i++)
            ends[i] = plan >> i & 1;
        assert_int_equal(rp_opt_groups_step(c, ends, &ns, &err), RP_OK);
        best = fmin(best, ns);
    }
    return best;
}

static struct rp_opt_limits no_limits(uint64_t seed)
{
    return (struct rp_opt_limits){.until_ns = INT64_MAX, .seed = seed};
}

static double search(const struct rp_opt_chain *c, uint64_t seed, uint8_t *ends, size_t *tried)
{
    struct rp_opt_limits limits = no_limits(seed);
    struct rp_err err = RP_ERR_INIT;
    double best, again;

    memset(ends, 0, c->n);
    assert_int_equal(rp_opt_search_groups(c, &limits, ends, &best, tried, &err), RP_OK);
    assert_int_equal(limits.stopped, RP_OPT_CONVERGED);
    assert_int_equal(rp_opt_groups_step(c, ends, &again, &err), RP_OK);
    assert_true(best == again);
    return best;
}

/* Few tensors: all plans are tried. More: the walk and the chains find the best. */
static void groups_are_the_best_of_all(void **state)
{
    static const size_t sizes[] = {1, 2, 7, 12, 13, 16};
    uint8_t ends[MOST];
    size_t i, tried;
    unsigned seed;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (seed = 1; seed < 9; seed++) {
            struct link l = link_of(sizes[i], seed);
            struct rp_opt_chain c = chain_of(&l);

            assert_true(search(&c, 1, ends, &tried) <= best_of_all(&c) * (1 + 1e-9));
        }
}

static void groups_depend_on_the_seed_alone(void **state)
{
    struct link l = link_of(22, 5);
    struct rp_opt_chain c = chain_of(&l);
    uint8_t first[MOST], second[MOST];
    size_t tried, again;
    double best;

    UNUSED_STATE(state);
    best = search(&c, 7, first, &tried);
    assert_true(search(&c, 7, second, &again) == best);
    assert_memory_equal(first, second, l.n);
    assert_int_equal(tried, again);
    assert_true(search(&c, 8, second, &again) == best);
}

/* Equal plans: the one with fewer groups. */
static void groups_are_few(void **state)
{
    struct link l = {.n = 4, .ready = {0, 0, 0, 100}, .bytes = {1, 1, 1, 1}, .latency = 1};
    struct rp_opt_chain c = chain_of(&l);
    uint8_t ends[MOST];
    size_t tried;

    UNUSED_STATE(state);
    assert_true(search(&c, 1, ends, &tried) == 102);
    assert_int_equal(ends[0] + ends[1] + ends[2], 1);
    assert_int_equal(ends[2], 1);
}

static void joined_tensors_stay_together(void **state)
{
    static const uint8_t joined[MOST] = {[2] = 1, [3] = 1, [9] = 1};
    struct link l = link_of(14, 3);
    struct rp_opt_chain c = chain_of(&l);
    uint8_t ends[MOST];
    double free_ns, joined_ns;
    size_t tried;

    UNUSED_STATE(state);
    free_ns = search(&c, 1, ends, &tried);
    c.joined = joined;
    joined_ns = search(&c, 1, ends, &tried);
    assert_true(joined_ns >= free_ns);
    assert_int_equal(ends[2] | ends[3] | ends[9], 0);
    assert_true(joined_ns <= best_of_all(&c) * (1 + 1e-9));
}

static int stop_now(void *user, const char *what, uint64_t done, uint64_t total)
{
    (void)what;
    (void)done;
    (void)total;
    return ++*(int *)user > 3;
}

/* What is there counts, and is no worse than what was recorded. */
static void interrupted_search_has_a_plan(void **state)
{
    struct link l = link_of(20, 4);
    struct rp_opt_chain c = chain_of(&l);
    int calls = 0;
    struct rp_ctx ctx = {.progress = stop_now, .progress_user = &calls};
    struct rp_opt_limits limits = no_limits(1);
    struct rp_err err = RP_ERR_INIT;
    uint8_t ends[MOST] = {0};
    double recorded, best;
    size_t tried;

    UNUSED_STATE(state);
    limits.ctx = &ctx;
    assert_int_equal(rp_opt_groups_step(&c, ends, &recorded, &err), RP_OK);
    assert_int_equal(rp_opt_search_groups(&c, &limits, ends, &best, &tried, &err), RP_OK);
    assert_int_equal(limits.stopped, RP_OPT_INTERRUPTED);
    assert_true(best <= recorded);
    limits = no_limits(1);
    limits.until_ns = 1;
    assert_int_equal(rp_opt_search_groups(&c, &limits, ends, &best, &tried, &err), RP_OK);
    assert_int_equal(limits.stopped, RP_OPT_OUT_OF_TIME);
}

static void families_are_named(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    unsigned f;

    UNUSED_STATE(state);
    assert_int_equal(rp_opt_families(NULL, &f, &err), RP_OK);
    assert_int_equal(f, (1 << RP_OPT_FAMILIES) - 1);
    assert_int_equal(rp_opt_families("tensor,graphs", &f, &err), RP_OK);
    assert_int_equal(f, 1 << RP_OPT_TENSOR | 1 << RP_OPT_GRAPHS);
    assert_int_equal(rp_opt_families("^memory,^tensor", &f, &err), RP_OK);
    assert_int_equal(f, ((1 << RP_OPT_FAMILIES) - 1) & ~(1 << RP_OPT_TENSOR | 1 << RP_OPT_MEMORY));
    assert_int_equal(rp_opt_families("tensor,^tensor", &f, &err), RP_USAGE);
    assert_int_equal(rp_opt_families("tensors", &f, &err), RP_USAGE);
    assert_non_null(strstr(err.text, "did you mean 'tensor'"));
}

int test_groups(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_the_best_of_all),
        cmocka_unit_test(groups_depend_on_the_seed_alone),
        cmocka_unit_test(groups_are_few),
        cmocka_unit_test(joined_tensors_stay_together),
        cmocka_unit_test(interrupted_search_has_a_plan),
        cmocka_unit_test(families_are_named),
    };

    return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
