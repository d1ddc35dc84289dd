/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of a path counts: what is inside of the window, and of the judged steps; its rows. */
#include "unit.h"

#include "explain/critpath/critpath.h"
#include "stepgraph/graph_fixtures.h"

static struct rp_path_segment segment(int64_t begin_ns, int64_t end_ns)
{
    return (struct rp_path_segment){.begin_ns = begin_ns, .end_ns = end_ns, .node = 7};
}

/* "10-20 30-40": the pieces of a segment. */
static void check_pieces(const struct rp_scope *scope, int64_t begin_ns, int64_t end_ns,
                         const char *want)
{
    struct rp_path_segment s = segment(begin_ns, end_ns), piece;
    int64_t at = INT64_MIN, sum = 0;
    char got[200] = "";
    size_t n = 0;

    while (rp_critpath_clip(scope, &s, &at, &piece)) {
        assert_int_equal(piece.node, 7);
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%lld-%lld", n ? " " : "",
                              (long long)piece.begin_ns, (long long)piece.end_ns);
        sum += piece.end_ns - piece.begin_ns;
    }
    assert_string_equal(got, want);
    assert_int_equal(rp_critpath_time(scope, &s), sum);
}

static void a_window_cuts(void **state)
{
    const struct rp_scope all = {0}, window = {.limited = true, .begin_ns = 10, .end_ns = 20};

    UNUSED_STATE(state);
    check_pieces(NULL, 5, 25, "5-25");
    check_pieces(&all, 5, 25, "5-25");
    check_pieces(&window, 5, 25, "10-20");
    check_pieces(&window, 5, 10, "");
    check_pieces(&window, 5, 11, "10-11");
    check_pieces(&window, 19, 25, "19-20");
    check_pieces(&window, 20, 25, "");
    check_pieces(&window, 12, 12, "");
}

static void judged_steps_cut(void **state)
{
    static struct rp_interval steps[] = {{10, 20}, {20, 25}, {30, 40}};
    const struct rp_scope judged = {
        .limited = true, .begin_ns = 10, .end_ns = 40, .njudged = 3, .judged = steps};

    UNUSED_STATE(state);
    check_pieces(&judged, 0, 100, "10-20 20-25 30-40");
    check_pieces(&judged, 0, 10, "");
    check_pieces(&judged, 15, 35, "15-20 20-25 30-35");
    check_pieces(&judged, 20, 30, "20-25");
    check_pieces(&judged, 25, 30, "");
    check_pieces(&judged, 25, 31, "30-31");
    check_pieces(&judged, 39, 41, "39-40");
    check_pieces(&judged, 40, 50, "");
}

#define GEMM "void gemm<4>(int)"
#define NCCL "void ncclAll<2>(int)"

/*
 *     thread    [mm 0-10 [launch 2-6][launch 6-9]][copy 10-12]
 *     stream 7      [gemm 12-32][all-reduce 32-60]
 *     stream 9         [copy 20-26]
 */
static const struct row few[] = {
    {'X', "cpu_op", "aten::mm", 1, 1, 0, 10},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 2, 4, 1},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 6, 3, 2},
    {'X', "cuda_runtime", "cudaMemcpyAsync", 1, 1, 10, 2, 3},
    {'X', "kernel", GEMM, 0, 7, 12, 20, 1, 7},
    {'X', "kernel", NCCL, 0, 7, 32, 28, 2, 7},
    {'X', "gpu_memcpy", "Memcpy DtoD", 0, 9, 20, 6, 3, 9},
};

struct described {
    struct built b;
    struct rp_path path;
    struct rp_rank_part parts[2];
    struct rp_ranks ranks;
    struct rp_arena arena;
    struct rp_critpath_path out;
};

static void describe(struct described *d, const struct rp_sg_last_arrival *held,
                     const struct rp_scope *scope, size_t limit)
{
    struct rp_err err = RP_ERR_INIT;
    int64_t slack[64];

    *d = (struct described){.b = build_graph(few, sizeof few / sizeof few[0])};
    d->parts[0].number = 4;
    d->parts[1].number = 6;
    d->ranks = (struct rp_ranks){.n = 2, .parts = d->parts};
    rp_arena_init(&d->arena);
    assert_ok(rp_path_find(&d->b.graph, INT64_MAX, &d->path, &err), &err);
    assert_true(d->b.graph.nodes.n <= 64);
    rp_sg_slack(&d->b.graph, d->b.graph.end_ns, slack);
    const struct rp_critpath_view view = {.graph = &d->b.graph,
                                          .path = &d->path,
                                          .scope = scope,
                                          .slack_ns = slack,
                                          .held = held,
                                          .ranks = &d->ranks,
                                          .rank = 1,
                                          .gains = true};
    assert_ok(rp_critpath_describe(&view, limit, &d->arena, &d->out, &err), &err);
}

static void described_release(struct described *d)
{
    rp_path_release(&d->path);
    rp_arena_release(&d->arena);
    release_graph(&d->b);
}

/* Each row as a line: where it is, what it is, its times. */
static void assert_rows(const struct rp_critpath_path *p, const char *segments, const char *shares,
                        const char *slack)
{
    char got[2000];
    size_t n = 0, i;

    for (i = 0; i < p->nsegments; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%s %s %d+%d of %d%s\n", p->segments[i].kind,
                              p->segments[i].cause ? p->segments[i].cause : p->segments[i].name,
                              (int)p->segments[i].start_ns, (int)p->segments[i].dur_ns,
                              (int)p->segments[i].rank,
                              p->segments[i].track == RP_NONE ? " nowhere" : "");
    assert_string_equal(got, segments);
    for (n = i = 0; i < p->nkinds; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%s %d of %d, %.3f\n", p->kinds[i].kind,
                              (int)p->kinds[i].total_ns, (int)p->kinds[i].count, p->kinds[i].share);
    for (i = 0; i < p->nnames; i++)
        n +=
            (size_t)snprintf(got + n, sizeof got - n, "%s %s %d of %d, gain %d\n", p->names[i].kind,
                             p->names[i].name, (int)p->names[i].total_ns, (int)p->names[i].count,
                             p->names[i].gain_ns == RP_ABSENT_I64 ? -1 : (int)p->names[i].gain_ns);
    assert_string_equal(got, shares);
    for (n = i = 0; i < p->nslack + p->ntracks; i++) {
        const struct rp_critpath_slack *s =
            i < p->nslack ? &p->slack[i] : &p->tracks[i - p->nslack];

        n += (size_t)snprintf(got + n, sizeof got - n, "%d %s %s %d of %d, %d on it\n",
                              (int)s->slack_ns, s->kind, s->name ? s->name : s->track,
                              (int)s->total_ns, (int)s->count, (int)s->path_ns);
    }
    assert_string_equal(got, slack);
}

#define SLACK_OF_FEW                               \
    "0 comm " NCCL " 28 of 1, 28 on it\n"          \
    "0 compute " GEMM " 20 of 1, 20 on it\n"       \
    "0 runtime cudaLaunchKernel 7 of 2, 4 on it\n" \
    "0 host aten::mm 3 of 2, 2 on it\n"            \
    "34 memory Memcpy DtoD 6 of 1, 0 on it\n"      \
    "34 runtime cudaMemcpyAsync 2 of 1, 0 on it\n" \
    "0 stream stream 7 48 of 2, 48 on it\n"        \
    "0 thread thread 1 12 of 5, 6 on it\n"         \
    "34 stream stream 9 6 of 1, 0 on it\n"

static void rows_of_a_path(void **state)
{
    static struct described d;

    UNUSED_STATE(state);
    describe(&d, NULL, NULL, 20);
    assert_rows(&d.out,
                "host aten::mm 0+2 of 6\nruntime cudaLaunchKernel 2+4 of 6\n"
                "wait launch_latency 6+6 of 6 nowhere\ncompute " GEMM " 12+20 of 6\n"
                "comm " NCCL " 32+28 of 6\n",
                "comm 28 of 1, 0.467\ncompute 20 of 1, 0.333\nwait 6 of 1, 0.100\n"
                "runtime 4 of 1, 0.067\nhost 2 of 1, 0.033\n"
                "comm " NCCL " 28 of 1, gain 28\n"
                "compute " GEMM " 20 of 1, gain 17\n" /* launched at 9, six before it can start */
                "wait launch_latency 6 of 1, gain -1\nruntime cudaLaunchKernel 4 of 1, gain 4\n"
                "host aten::mm 2 of 1, gain 2\n",
                SLACK_OF_FEW);
    assert_int_equal(d.out.length_ns, 60);
    assert_int_equal(d.out.window_ns, 60);
    assert_int_equal(d.out.replay_error_ns, 0);
    assert_int_equal(d.out.tracks[0].rank, 6);
    assert_int_equal(d.out.nshown, 5);
    assert_string_equal(d.out.shown[0].label, "ncclAll");
    assert_string_equal(d.out.shown[1].label, "gemm");
    assert_string_equal(d.out.shown[4].label, "aten::mm");
    assert_int_equal(d.out.nnext, 2); /* what has slack */
    assert_string_equal(d.out.next[0].name, "Memcpy DtoD");
    assert_string_equal(d.out.next[0].label, "Memcpy DtoD");
    described_release(&d);
}

/* A collective whose last rank came at 45: before it is a wait for rank 4. */
static void a_collective_waits_for_its_last_rank(void **state)
{
    static const struct {
        int64_t until_ns;
        const char *segment; /* the first of the collective, and the next one */
    } rows[] = {{RP_NO_TS, "comm 32+28"},       {32, "comm 32+28"}, {33, "wait 32+1, comm 33+27"},
                {45, "wait 32+13, comm 45+15"}, {60, "wait 32+28"}, {70, "wait 32+28"}};
    static struct described d;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct rp_sg_last_arrival held[] = {{rows[i].until_ns, 0}};
        char got[100] = "";
        size_t n = 0;

        describe(&d, held, NULL, 1);
        for (size_t k = 4; k < d.out.nsegments; k++)
            n += (size_t)snprintf(got + n, sizeof got - n, "%s%s %d+%d", n ? ", " : "",
                                  d.out.segments[k].kind, (int)d.out.segments[k].start_ns,
                                  (int)d.out.segments[k].dur_ns);
        assert_string_equal(got, rows[i].segment);
        if (d.out.segments[4].cause)
            assert_string_equal(d.out.segments[4].cause, "rank 4");
        assert_int_equal(d.out.nshown, 1);
        assert_int_equal(d.out.nnext, 1);
        described_release(&d);
    }
}

/* Times count inside the window only, and what is outside has no slack. */
static void a_window_has_a_part_of_the_path(void **state)
{
    const struct rp_scope window = {.limited = true, .begin_ns = 26, .end_ns = 40};
    static struct described d;

    UNUSED_STATE(state);
    describe(&d, NULL, &window, 20);
    assert_rows(&d.out, "compute " GEMM " 26+6 of 6\ncomm " NCCL " 32+8 of 6\n",
                "comm 8 of 1, 0.571\ncompute 6 of 1, 0.429\ncomm " NCCL " 8 of 1, gain 28\n"
                "compute " GEMM " 6 of 1, gain 17\n",
                "0 comm " NCCL " 8 of 1, 8 on it\n0 compute " GEMM " 6 of 1, 6 on it\n"
                "0 stream stream 7 14 of 2, 14 on it\n");
    assert_int_equal(d.out.length_ns, 14);
    assert_int_equal(d.out.window_ns, 14);
    described_release(&d);
}

int test_critpath_rows(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_cuts),
        cmocka_unit_test(judged_steps_cut),
        cmocka_unit_test(rows_of_a_path),
        cmocka_unit_test(a_collective_waits_for_its_last_rank),
        cmocka_unit_test(a_window_has_a_part_of_the_path),
    };

    return cmocka_run_group_tests_name("critpath_rows", tests, NULL, NULL);
}
