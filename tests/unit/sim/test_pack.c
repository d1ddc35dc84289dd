/* SPDX-License-Identifier: Apache-2.0 */
/* Packed parts: a run of them has the tasks, edges, nodes and answers of the parts as they were. */
#include "run_fixtures.h"
#include "sim/model/pack.h"
#include "sim/simulate.h"
#include "unit.h"

#include <string.h>

static const struct step_shape shapes[] = {
    {.gemm_ns = 40000}, {.gemm_ns = 47000, .beside = true}, {.gemm_ns = 15000}};

static void check_nodes(const struct rp_sim_run *a, const struct rp_sim_run *b)
{
    size_t i;

    assert_int_equal(rp_sim_nnodes(a), rp_sim_nnodes(b));
    for (i = rp_sim_nnodes(a); i-- > 0;) {
        const struct rp_sg_node *x = rp_sim_node(a, i), *y = rp_sim_node(b, i);
        const struct rp_sim_note *p = rp_sim_note_of(a, i), *q = rp_sim_note_of(b, i);

        assert_int_equal(x->start_ns, y->start_ns);
        assert_int_equal(x->dur_ns, y->dur_ns);
        assert_int_equal(x->event == RP_NONE, y->event == RP_NONE);
        assert_int_equal(x->lane, y->lane);
        assert_int_equal(x->rank, y->rank);
        assert_int_equal(x->collective, y->collective);
        assert_int_equal(x->kind, y->kind);
        assert_int_equal(x->flags, y->flags);
        assert_string_equal(a->graph->names.at[x->name], b->graph->names.at[y->name]);
        assert_int_equal(p->op, q->op);
        assert_int_equal(p->step, q->step);
        assert_int_equal(p->phase, q->phase);
        assert_int_equal(p->flags, q->flags);
    }
}

static void check_tasks(const struct rp_task_graph *a, const struct rp_task_graph *b)
{
    assert_int_equal(a->tasks.n, b->tasks.n);
    assert_int_equal(a->edges.n, b->edges.n);
    assert_int_equal(a->devices.n, b->devices.n);
    assert_memory_equal(a->tasks.at, b->tasks.at, a->tasks.n * sizeof *a->tasks.at);
    assert_memory_equal(a->edges.at, b->edges.at, a->edges.n * sizeof *a->edges.at);
    assert_int_equal(a->dur_ns.n + a->lag_ns.n + b->dur_ns.n + b->lag_ns.n, 0); /* the overlays' */
    assert_memory_equal(a->first.at, b->first.at, (a->tasks.n + 1) * sizeof *a->first.at);
    assert_int_equal(a->starts_matter, b->starts_matter);
    assert_int_equal(a->device_starts_matter, b->device_starts_matter);
}

static void check_times(const struct rp_overlay *a, const struct rp_overlay *b)
{
    assert_int_equal(a->dur_ns.n, b->dur_ns.n);
    assert_int_equal(a->lag_ns.n, b->lag_ns.n);
    assert_memory_equal(a->dur_ns.at, b->dur_ns.at, a->dur_ns.n * sizeof *a->dur_ns.at);
    assert_memory_equal(a->lag_ns.at, b->lag_ns.at, a->lag_ns.n * sizeof *a->lag_ns.at);
    assert_memory_equal(a->degree.at, b->degree.at, a->degree.n * sizeof *a->degree.at);
}

static void check_answers(const struct rp_sim_part *const *a, const struct rp_sim_part *const *b,
                          size_t n)
{
    static const char *const whatifs[] = {
        "scale:gpu=2", "net.bandwidth=0.5x", "cuda-graphs",   "overlap",      "no-sync",
        "fuse",        "scale:sgemm=3",      "scale:rank1=2", "dataloader=0", "straggler=median"};
    const struct rp_sim_asked asked = {.whatifs = whatifs,
                                       .nwhatifs = sizeof whatifs / sizeof whatifs[0]};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_sim_answer x = {0}, y = {0};
    struct rp_err err = RP_ERR_INIT;
    size_t i;

    assert_ok(rp_sim_answer(a, n, &asked, &arena, &x, &err), &err);
    assert_ok(rp_sim_answer(b, n, &asked, &arena, &y, &err), &err);
    assert_int_equal(x.baseline.simulated_step_ns, y.baseline.simulated_step_ns);
    assert_int_equal(x.baseline.unprofiled_ns, y.baseline.unprofiled_ns);
    assert_int_equal(x.baseline.tasks, y.baseline.tasks);
    assert_int_equal(x.npredictions, y.npredictions);
    for (i = 0; i < x.npredictions; i++) {
        assert_int_equal(x.predictions[i].predicted_ns, y.predictions[i].predicted_ns);
        assert_int_equal(x.predictions[i].low_ns, y.predictions[i].low_ns);
        assert_int_equal(x.predictions[i].high_ns, y.predictions[i].high_ns);
    }
    assert_int_equal(x.nby_rank, y.nby_rank);
    assert_memory_equal(x.by_rank, y.by_rank, x.nby_rank * sizeof *x.by_rank);
    rp_arena_release(&arena);
}

/* The second of two benches of the same shape has packed parts. */
static void check_ranks(size_t n, const struct step_shape *of)
{
    struct rp_err err = RP_ERR_INIT;
    struct bench a, b;
    size_t i;

    bench_init(&a, n, of);
    bench_init(&b, n, of);
    rp_sim_run_release(&b.run);
    for (i = 0; i < n; i++) {
        size_t nodes = b.parts[i].graph.nodes.n;

        assert_ok(rp_sim_part_pack(&b.parts[i], &err), &err);
        assert_true(rp_sim_part_is_packed(&b.parts[i]));
        assert_int_equal(rp_sim_part_nnodes(&b.parts[i]), nodes);
        assert_int_equal(b.parts[i].graph.nodes.n + b.parts[i].notes.n, 0);
    }
    assert_ok(rp_sim_run_init(&b.run, b.list, n, &err), &err);
    assert_int_equal(b.run.block != NULL, n > 1);
    check_tasks(&a.run.tasks, &b.run.tasks);
    check_times(&a.run.overlay, &b.run.overlay);
    check_nodes(&a.run, &b.run);
    check_answers(a.list, b.list, n);
    bench_release(&a);
    bench_release(&b);
}

static void a_packed_run_is_the_same_run(void **state)
{
    UNUSED_STATE(state);
    check_ranks(1, shapes);
    check_ranks(2, shapes);
    check_ranks(2, shapes + 1);
}

/* Ranks without common collectives are not joined: only the first is simulated, packed or not. */
static void ranks_that_share_nothing(void **state)
{
    const struct step_shape alone[] = {{.gemm_ns = 40000, .plain = true},
                                       {.gemm_ns = 30000, .plain = true}};
    struct rp_err err = RP_ERR_INIT;
    struct bench a, b;
    size_t i;

    UNUSED_STATE(state);
    bench_init(&a, 2, alone);
    bench_init(&b, 2, alone);
    rp_sim_run_release(&b.run);
    for (i = 0; i < 2; i++)
        assert_ok(rp_sim_part_pack(&b.parts[i], &err), &err);
    assert_ok(rp_sim_run_init(&b.run, b.list, 2, &err), &err);
    assert_int_equal(b.run.nranks, 1);
    check_tasks(&a.run.tasks, &b.run.tasks);
    check_times(&a.run.overlay, &b.run.overlay);
    check_nodes(&a.run, &b.run);
    bench_release(&a);
    bench_release(&b);
}

/* Any number comes back, and bytes that are cut or changed are refused or read within bounds. */
static void any_times_come_back(void **state)
{
    static const int64_t times[] = {0, INT64_MAX, INT64_MIN, -1, 127, 128, 1 << 20, INT64_MIN, 3};
    enum { N = sizeof times / sizeof times[0] };
    struct rp_sim_part part = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_sg_node nodes[N];
    struct rp_sg_edge edges[N];
    size_t i, n;

    UNUSED_STATE(state);
    for (i = 0; i < N; i++) {
        struct rp_sg_node node = {.start_ns = times[i],
                                  .dur_ns = times[N - 1 - i],
                                  .event = i % 2 ? RP_NONE : (uint32_t)i,
                                  .lane = i % 3 ? 7 : RP_NONE,
                                  .collective = i % 4 ? RP_NONE : RP_NONE - 1,
                                  .name = (uint32_t)(i * 1000),
                                  .kind = (uint8_t)(i % RP_SG_KINDS)};
        struct rp_sim_note note = {(uint32_t)i << 20, i % 2 ? RP_NO_STEP : 3, 5, 255};
        struct rp_sg_edge edge = {.from = (uint32_t)(N - 1 - i), .to = (uint32_t)i, .kind = 9};

        assert_int_equal(rp_vec_push(&part.graph.nodes, node, &err), RP_OK);
        assert_int_equal(rp_vec_push(&part.notes, note, &err), RP_OK);
        assert_int_equal(rp_vec_push(&part.graph.edges, edge, &err), RP_OK);
    }
    assert_ok(rp_sim_part_pack(&part, &err), &err);
    assert_ok(rp_sim_part_unpack_nodes(&part, nodes, NULL, &err), &err);
    assert_ok(rp_sim_part_unpack_edges(&part, edges, &err), &err);
    for (i = 0; i < N; i++) {
        assert_int_equal(nodes[i].start_ns, times[i]);
        assert_int_equal(nodes[i].dur_ns, times[N - 1 - i]);
        assert_int_equal(nodes[i].lane, i % 3 ? 7 : RP_NONE);
        assert_int_equal(nodes[i].collective, i % 4 ? RP_NONE : RP_NONE - 1);
        assert_int_equal(edges[i].from, N - 1 - i);
    }
    for (n = part.packed_nodes.n; part.packed_nodes.n-- > 0;)
        assert_int_equal(rp_sim_part_unpack_nodes(&part, nodes, NULL, &err), RP_FORMAT);
    part.packed_nodes.n = n;
    memset(part.packed_nodes.at, 0xff, n);
    assert_int_equal(rp_sim_part_unpack_nodes(&part, nodes, NULL, &err), RP_FORMAT);
    memset(part.packed_edges.at, 0x7f, part.packed_edges.n);
    assert_int_equal(rp_sim_part_unpack_edges(&part, edges, &err), RP_FORMAT);
    rp_sim_part_release(&part);
}

int test_pack(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packed_run_is_the_same_run),
        cmocka_unit_test(ranks_that_share_nothing),
        cmocka_unit_test(any_times_come_back),
    };

    return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
