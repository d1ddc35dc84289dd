/* SPDX-License-Identifier: Apache-2.0 */
/* What pages and pictures of a report show: lanes whose states add up to the parts of the answer,
   on one clock, also where they are made coarser; pages that no name can break. */
#include "explain/ask_fixture.h"
#include "explain/report/report.h"
#include "trace/trace_fixtures.h"

#include <stdlib.h>
#include <unistd.h>

extern const struct rp_question_row rp_ask_report;

#define MS 1000000

/* Computes for `work` ms, meets the others in a collective that ends at 40 ms while it copies for a
   moment, and ends at 60. */
static struct rp_trace *rank_of(int64_t work)
{
    const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#3", 1, 1, 0, 62 * MS},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4000, 5},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 5000, 4000, 6},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 10000, 4000, 7},
        {'X', "cuda_runtime", "cudaMemcpyAsync", 1, 1, 20000, 4000, 8},
        {'X', "kernel", "gemm", 0, 7, 10000, work * MS, 5, 7},
        {'X', "kernel", "ncclDevKernel_AllReduce", 0, 20, 15000 + work * MS, (40 - work) * MS, 6,
         20},
        {'X', "kernel", "gemm", 0, 7, 15000 + 40 * MS, 20 * MS, 7, 7},
        {'X', "gpu_memcpy", "Memcpy DtoH", 0, 7, 15000 + 60 * MS, MS, 8, 7},
    };

    return TRACE_OF(rows);
}

static struct rp_result *ask_three(void)
{
    struct rp_trace *t[] = {rank_of(10), rank_of(30), rank_of(12)};
    struct rp_result *result = ASK_TRACES(report, t, 3, {"html", "unused"});

    for (size_t i = 0; i < 3; i++)
        rp_trace_free(t[i]);
    return result;
}

static int64_t part_total(const struct rp_report_root *root, const char *name)
{
    int64_t sum = 0;

    for (size_t i = 0; i < root->nparts; i++)
        if (!strncmp(root->parts[i].part, name, strlen(name)))
            sum += root->parts[i].total_ns;
    return sum;
}

static void lanes_add_up_to_the_parts(void **state)
{
    struct rp_result *result = ask_three();
    const struct rp_report_root *root = result->root;
    const struct rp_report_view *view = root->view;
    int64_t ns[RP_LANE_STATES] = {0};

    UNUSED_STATE(state);
    assert_non_null(view);
    assert_int_equal(view->nlanes, 3);
    assert_true(view->aligned);
    assert_string_equal(view->lanes[1].name, "rank 1");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(view->lanes[i].total_ns, root->ranks[i].span_ns);
        for (int s = 0; s < RP_LANE_STATES; s++)
            ns[s] += view->lanes[i].ns[s];
    }
    assert_int_equal(ns[RP_LANE_COMPUTE], part_total(root, "compute"));
    assert_int_equal(ns[RP_LANE_COMM], part_total(root, "exposed communication"));
    assert_int_equal(ns[RP_LANE_WAIT], part_total(root, "waiting for other ranks"));
    assert_int_equal(ns[RP_LANE_WAIT], (20 + 18) * MS);
    assert_int_equal(ns[RP_LANE_COPY], part_total(root, "copies alone"));
    assert_int_equal(ns[RP_LANE_COPY], 3 * MS);
    assert_int_equal(ns[RP_LANE_IDLE], part_total(root, "idle"));
    assert_int_equal(root->nsteps, 3);
    assert_int_equal(view->step_at_ns[2], 0);
    rp_result_free(result);
}

/* The pieces of a lane in their order, with the causes of idle time. */
static void pieces_are_in_order(void **state)
{
    static const uint8_t states[] = {RP_LANE_IDLE, RP_LANE_COMPUTE, RP_LANE_IDLE, RP_LANE_WAIT,
                                     RP_LANE_COMM, RP_LANE_COMPUTE, RP_LANE_COPY, RP_LANE_IDLE};
    struct rp_result *result = ask_three();
    const struct rp_view_lane *lane =
        &((const struct rp_report_root *)result->root)->view->lanes[0];

    UNUSED_STATE(state);
    assert_int_equal(lane->npieces, sizeof states);
    for (size_t i = 0; i < sizeof states; i++)
        assert_int_equal(lane->pieces[i].state, states[i]);
    assert_int_equal(lane->pieces[0].ns[RP_LANE_IDLE], 10000);
    assert_true(lane->pieces[0].cause < RP_GAP_CAUSES);
    assert_int_equal(lane->pieces[3].ns[RP_LANE_WAIT], 20 * MS);
    assert_int_equal(lane->pieces[4].ns[RP_LANE_COMM], 10 * MS);
    rp_result_free(result);
}

static void every_device_has_a_lane(void **state)
{
    static const struct row rows[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 9, 9, 0, 10, 1},
        {'X', "cuda_runtime", "cudaLaunchKernel", 9, 9, 10, 10, 2},
        {'X', "kernel", "a", 0, 7, 100000, 100000, 1, 7},
        {'X', "kernel", "b", 1, 7, 150000, 150000, 2, 7},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ASK_TRACES(report, &t, 1, {"html", "unused"});
    const struct rp_report_view *view = ((const struct rp_report_root *)result->root)->view;

    UNUSED_STATE(state);
    assert_int_equal(view->nlanes, 2);
    assert_string_equal(view->lanes[0].name, "GPU 0");
    assert_int_equal(view->lanes[0].ns[RP_LANE_COMPUTE], 100000);
    assert_int_equal(view->lanes[1].ns[RP_LANE_COMPUTE], 150000);
    assert_true(view->lanes[1].is_main);
    assert_string_equal(view->tops[1].root->rows[0].name, "b");
    rp_result_free(result);
    rp_trace_free(t);
}

static void host_only_traces_have_lanes_of_operators(void **state)
{
    static const struct row rows[] = {{'X', "cpu_op", "aten::mm", 1, 1, 0, 400},
                                      {'X', "cpu_op", "aten::add", 1, 1, 600, 400}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ASK_TRACES(report, &t, 1, {"html", "unused"});
    const struct rp_report_view *view = ((const struct rp_report_root *)result->root)->view;

    UNUSED_STATE(state);
    assert_true(view->on_host);
    assert_int_equal(view->nlanes, 1);
    assert_int_equal(view->lanes[0].npieces, 3);
    assert_int_equal(view->lanes[0].ns[RP_LANE_COMPUTE], 800);
    assert_int_equal(view->lanes[0].ns[RP_LANE_IDLE], 200);
    rp_result_free(result);
    rp_trace_free(t);
}

/* There is no view where nobody asked for one: it costs time. */
static void a_plain_report_has_no_view(void **state)
{
    struct rp_trace *t = rank_of(10);
    struct rp_result *result = ask_traces(&rp_ask_report, &t, 1, NULL, 0);

    UNUSED_STATE(state);
    assert_null(((const struct rp_report_root *)result->root)->view);
    rp_result_free(result);
    rp_trace_free(t);
}

static void coarse_lanes_lose_no_time(void **state)
{
    enum { N = 10000 };
    struct rp_lane_piece *pieces = calloc(N, sizeof *pieces);
    int64_t before[RP_LANE_STATES] = {0}, after[RP_LANE_STATES] = {0}, longest = 0;
    size_t i, n;

    UNUSED_STATE(state);
    assert_non_null(pieces);
    for (i = 0; i < N; i++) {
        uint8_t s = (uint8_t)(i % 2 ? RP_LANE_COMPUTE : i % 3 ? RP_LANE_IDLE : RP_LANE_COPY);

        pieces[i] = (struct rp_lane_piece){.state = s, .cause = 3};
        pieces[i].ns[s] = i == 5001 ? 5 * MS : (int64_t)(i * 7919 % 400) + 1;
        before[s] += pieces[i].ns[s];
    }
    n = rp_lane_coarsen(pieces, N, 300);
    assert_true(n <= 300 && n > 100);
    for (i = 0; i < n; i++) {
        for (int s = 0; s < RP_LANE_STATES; s++)
            after[s] += pieces[i].ns[s];
        if (pieces[i].state == RP_LANE_COMPUTE)
            longest = pieces[i].ns[RP_LANE_COMPUTE];
    }
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(longest, 5 * MS); /* what is long stays as it was */
    assert_int_equal(rp_lane_coarsen(pieces, n, 0), 2);
    free(pieces);
}

static void coarsening_ends_with_absurd_times(void **state)
{
    struct rp_lane_piece pieces[64];

    UNUSED_STATE(state);
    for (size_t i = 0; i < 64; i++)
        pieces[i] = (struct rp_lane_piece){.ns = {INT64_MAX / 3, 1, 0, 0, 0, 0}, .state = i % 2};
    assert_int_equal(rp_lane_coarsen(pieces, 64, 8), 8);
}

/* ------------------------------------------------------------------ files */

#define HOSTILE "</script><script>alert(1)</script><!--\"'&\\\x01\x7f\xff\xe2\x80\xa8"

static char *file_text(enum rp_code (*write)(const struct rp_result *result, const char *path,
                                             struct rp_err *err),
                       const struct rp_result *result)
{
    char path[] = "/tmp/reprise-test-XXXXXX", *text = calloc(1, 1 << 20);
    struct rp_err err = RP_ERR_INIT;
    int fd = mkstemp(path);
    FILE *file;

    assert_true(fd >= 0 && text);
    close(fd);
    assert_ok(write(result, path, &err), &err);
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    unlink(path);
    return text;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

static void hostile_names_stay_in_their_strings(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1 " HOSTILE, 1, 1, 0, 1000000},
        {'X', "cpu_op", HOSTILE, 1, 1, 0, 500000},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 10, 10, 1},
        {'X', "kernel", HOSTILE, 0, 7, 100000, 100000, 1, 7},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ASK_TRACES(report, &t, 1, {"html", "unused"});
    char *page, *picture;

    UNUSED_STATE(state);
    ((struct rp_report_root *)result->root)->ranks[0].path = "x/" HOSTILE;
    page = file_text(rp_report_write_page, result);
    assert_int_equal(count(page, "</script>"), 2); /* of the data and of the script */
    assert_int_equal(count(page, "<script"), 2);
    assert_int_equal(count(page, "alert(1)</script"), 0);
    assert_contains(page, "\\u003c/script\\u003e\\u003cscript\\u003ealert(1)");
    assert_contains(page, "\\u0001\\u007f\\ufffd\\u2028");
    assert_contains(page, "<title>report: script&gt;&lt;!--&quot;");
    assert_int_equal(count(page, "http:"), 1); /* the name of SVG, which is not an address */
    assert_null(strstr(page, "https:"));
    picture = file_text(rp_report_write_picture, result);
    assert_null(strstr(picture, "<script"));
    assert_contains(picture, "<svg ");
    assert_contains(picture, "</svg>\n");
    free(page);
    free(picture);
    rp_result_free(result);
    rp_trace_free(t);
}

/* Short neighbours become one piece, with the cause of most of its idle time; long ones stay. */
static void short_pieces_are_joined(void **state)
{
    const struct rp_lane_piece all[] = {
        {.ns = {[RP_LANE_IDLE] = 10}, .state = RP_LANE_IDLE, .cause = 1},
        {.ns = {[RP_LANE_COMPUTE] = 10}, .state = RP_LANE_COMPUTE, .cause = 2},
        {.ns = {[RP_LANE_IDLE] = 30}, .state = RP_LANE_IDLE, .cause = 3},
        {.ns = {[RP_LANE_COMPUTE] = 1000}, .state = RP_LANE_COMPUTE},
        {.ns = {[RP_LANE_IDLE] = 1000}, .state = RP_LANE_IDLE, .cause = 4}};
    struct rp_lane_piece p[5];
    size_t n;

    UNUSED_STATE(state);
    memcpy(p, all, sizeof all);
    assert_int_equal(rp_lane_coarsen(p, 5, 5), 5);
    assert_memory_equal(p, all, sizeof all);
    assert_int_equal(rp_lane_coarsen(p, 5, 3), 3);
    assert_int_equal(p[0].state, RP_LANE_MIXED);
    assert_int_equal(p[0].cause, 3);
    assert_int_equal(p[0].ns[RP_LANE_IDLE], 40);
    assert_int_equal(p[0].ns[RP_LANE_COMPUTE], 10);
    assert_memory_equal(&p[1], &all[3], 2 * sizeof *p);
    memcpy(p, all, sizeof all);
    p[1] = all[0]; /* three of one state */
    assert_int_equal(rp_lane_coarsen(p, 5, 3), 3);
    assert_int_equal(p[0].state, RP_LANE_IDLE);
    assert_int_equal(p[0].ns[RP_LANE_IDLE], 50);
    memcpy(p, all, sizeof all);
    n = rp_lane_coarsen(p, 5, 0);
    assert_in_range(n, 1, 2);
    int64_t idle = 0, compute = 0;
    for (size_t i = 0; i < n; i++) {
        idle += p[i].ns[RP_LANE_IDLE];
        compute += p[i].ns[RP_LANE_COMPUTE];
    }
    assert_int_equal(idle, 1040);
    assert_int_equal(compute, 1010);
}

int test_report_view(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_pieces_are_joined),
        cmocka_unit_test(lanes_add_up_to_the_parts),
        cmocka_unit_test(pieces_are_in_order),
        cmocka_unit_test(every_device_has_a_lane),
        cmocka_unit_test(host_only_traces_have_lanes_of_operators),
        cmocka_unit_test(a_plain_report_has_no_view),
        cmocka_unit_test(coarse_lanes_lose_no_time),
        cmocka_unit_test(coarsening_ends_with_absurd_times),
        cmocka_unit_test(hostile_names_stay_in_their_strings),
    };

    return cmocka_run_group_tests_name("report view", tests, NULL, NULL);
}
