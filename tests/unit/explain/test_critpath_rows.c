/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of a path counts: what is inside of the window, and of the judged steps. */
#include "unit.h"

#include "explain/critpath/critpath.h"

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

int test_critpath_rows(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_cuts),
        cmocka_unit_test(judged_steps_cut),
    };

    return cmocka_run_group_tests_name("critpath_rows", tests, NULL, NULL);
}
