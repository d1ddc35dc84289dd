/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: what every picture must fulfil, on graphs of many shapes. */
#include "draw/layout.h"
#include "unit.h"

#include <stdlib.h>

struct graph {
    struct rp_layout_graph g;
    struct rp_layout_edge edges[4000];
    float w[1000], h[1000];
};

static struct graph *new_graph(uint32_t n)
{
    struct graph *g = calloc(1, sizeof *g);

    assert_non_null(g);
    for (uint32_t i = 0; i < n; i++) {
        g->w[i] = (float)(40 + i * 37 % 120);
        g->h[i] = i % 3 ? 36 : 22;
    }
    g->g = (struct rp_layout_graph){.n = n, .w = g->w, .h = g->h, .edges = g->edges};
    return g;
}

static void add_edge(struct graph *g, uint32_t from, uint32_t to)
{
    g->edges[g->g.nedges++] = (struct rp_layout_edge){from, to};
}

/* Boxes of a row do not touch, edges go down, bends lie between the boxes of their rows. */
static void check_layout(const struct graph *g, const struct rp_layout *l)
{
    for (uint32_t a = 0; a < g->g.n; a++) {
        assert_true(l->row[a] < l->nrows);
        assert_true(l->x[a] >= -1 && l->x[a] + g->w[a] <= l->width + 1);
        for (uint32_t b = 0; b < a; b++)
            if (l->row[a] == l->row[b])
                assert_true(l->x[a] + g->w[a] + 2 < l->x[b] || l->x[b] + g->w[b] + 2 < l->x[a]);
    }
    for (size_t e = 0; e < g->g.nedges; e++) {
        uint32_t from = g->edges[e].from, to = g->edges[e].to;
        uint32_t span = l->row[to] - l->row[from];

        if (from < to)
            assert_true(l->row[from] < l->row[to]);
        if (l->track[e] != RP_NONE)
            continue;
        assert_true(from < to && span <= l->bend_begin[from + 1] - l->bend_begin[from] + 1);
        for (uint32_t k = 0; k + 1 < span; k++)
            for (uint32_t v = 0; v < g->g.n; v++)
                if (l->row[v] == l->row[from] + 1 + k)
                    assert_true(l->bends[l->bend_begin[from] + k] < l->x[v] ||
                                l->bends[l->bend_begin[from] + k] > l->x[v] + g->w[v]);
    }
}

static void run_layout(struct graph *g)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_layout l;

    assert_ok(rp_layout_run(&g->g, &arena, &l, &err), &err);
    check_layout(g, &l);
    rp_arena_release(&arena);
    free(g);
}

static void chains_and_residuals(void **state)
{
    struct graph *g = new_graph(60);

    UNUSED_STATE(state);
    for (uint32_t i = 1; i < 60; i++)
        add_edge(g, i - 1, i);
    for (uint32_t i = 4; i < 60; i += 4)
        add_edge(g, i - 4, i);
    add_edge(g, 0, 59);  /* longer than any slot */
    add_edge(g, 50, 10); /* a loop */
    run_layout(g);
}

static void wide_and_random(void **state)
{
    uint32_t seed = 1;
    struct graph *g = new_graph(400);

    UNUSED_STATE(state);
    for (uint32_t i = 1; i < 300; i++)
        add_edge(g, 0, i); /* a row that is too wide for one */
    for (uint32_t i = 300; i < 400; i++)
        for (int k = 0; k < 3; k++) {
            seed = seed * 1664525 + 1013904223;
            add_edge(g, (seed >> 8) % i, i);
        }
    run_layout(g);
}

static void nothing_and_one(void **state)
{
    UNUSED_STATE(state);
    run_layout(new_graph(0));
    run_layout(new_graph(1));
    run_layout(new_graph(50));
}

static void constants_stay_with_their_users(void **state)
{
    struct graph *g = new_graph(12);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_layout l;

    UNUSED_STATE(state);
    for (uint32_t i = 2; i < 12; i++)
        add_edge(g, i - 1, i);
    add_edge(g, 0, 11); /* 0 is only used at the end */
    assert_ok(rp_layout_run(&g->g, &arena, &l, &err), &err);
    assert_int_equal(l.row[0], l.row[11] - 1);
    rp_arena_release(&arena);
    free(g);
}

int test_layout(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_and_residuals),
        cmocka_unit_test(wide_and_random),
        cmocka_unit_test(nothing_and_one),
        cmocka_unit_test(constants_stay_with_their_users),
    };

    return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
