/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a rank's time for the chain: the same sums between all edges of collectives. */
#include "explain/report/report.h"
#include "trace/trace_fixtures.h"

#define GAPS 40

/* Collectives in [100, 160), [150, 200) and [300, 320); every 10 ns a gap of 3 by two causes, a
   copy of 2 and a kernel of 5. */
static void fill(struct rp_report_part *p)
{
    static const struct rp_interval at[] = {{100, 160}, {150, 200}, {300, 320}};
    size_t i;

    *p = (struct rp_report_part){.on_device = true, .whole = {.begin_ns = 0, .end_ns = 10 * GAPS}};
    for (i = 0; i < 3; i++) {
        struct rp_collective c = {.begin_ns = at[i].begin_ns, .end_ns = at[i].end_ns};

        assert_code(rp_vec_push(&p->collectives.list, c, NULL), RP_OK);
    }
    for (i = 0; i < GAPS; i++) {
        int64_t t = 10 * (int64_t)i;
        struct rp_gap gap = {.begin_ns = t, .end_ns = t + 3, .cause = i % 2};

        assert_code(rp_vec_push(&p->gaps, gap, NULL), RP_OK);
        assert_code(rp_union_add(&p->busy, t + 3, t + 10, NULL), RP_OK);
        assert_code(rp_union_add(&p->kernels, t + 5, t + 10, NULL), RP_OK);
        assert_code(rp_union_add(&p->compute, t + 5, t + 10, NULL), RP_OK);
    }
}

static int64_t gaps_in(const struct rp_report_part *p, int cause, int64_t from, int64_t to)
{
    int64_t sum = 0;
    size_t i;

    for (i = 0; i < p->gaps.n; i++)
        if (p->gaps.at[i].cause == cause)
            sum += rp_ns_common(p->gaps.at[i].begin_ns, p->gaps.at[i].end_ns, from, to);
    return sum;
}

static int64_t covers(const rp_interval_vec *u, int64_t from, int64_t to)
{
    return rp_union_covers(u->at, u->n, from, to);
}

static void sums_between_edges_stay(void **state)
{
    static const int64_t edges[] = {0, 100, 150, 160, 200, 300, 320, 400};
    struct rp_report_part whole, kept;
    size_t a, b;
    int64_t t;

    UNUSED_STATE(state);
    fill(&whole);
    fill(&kept);
    assert_code(rp_report_trim(&kept, NULL), RP_OK);
    assert_true(kept.gaps.n <= 2 * (sizeof edges / sizeof edges[0] - 1));
    for (a = 0; a < sizeof edges / sizeof edges[0]; a++)
        for (b = a + 1; b < sizeof edges / sizeof edges[0]; b++) {
            int64_t from = edges[a], to = edges[b];

            assert_int_equal(gaps_in(&kept, 0, from, to), gaps_in(&whole, 0, from, to));
            assert_int_equal(gaps_in(&kept, 1, from, to), gaps_in(&whole, 1, from, to));
            assert_int_equal(covers(&kept.busy, from, to) - covers(&kept.kernels, from, to),
                             covers(&whole.busy, from, to) - covers(&whole.kernels, from, to));
        }
    for (t = 100; t < 200; t++) /* a wait may end anywhere inside a collective */
        assert_int_equal(covers(&kept.compute, 100, t), covers(&whole.compute, 100, t));
    assert_int_equal(covers(&kept.compute, 200, 300), 0);
    assert_int_equal(covers(&kept.compute, 300, 320), covers(&whole.compute, 300, 320));
    rp_report_part_release(&whole);
    rp_report_part_release(&kept);
}

int test_report_trim(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(sums_between_edges_stay)};

    return cmocka_run_group_tests_name("report trim", tests, NULL, NULL);
}
