/* SPDX-License-Identifier: Apache-2.0 */
/* SVG documents and charts: numbers, hostile texts, ticks, places on the axes, exact lanes. */
#include "draw/plot.h"
#include "io/escaped.h"
#include "unit.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

static struct rp_out *out;

static void begin(void)
{
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_out_open_memory(&out, &err), &err);
}

/* What was written; the caller frees it. */
static char *written(void)
{
    struct rp_err err = RP_ERR_INIT;
    size_t n;
    char *text = strdup(rp_out_borrow_memory(out, &n));

    assert_non_null(text);
    assert_ok(rp_out_close(out, &err), &err);
    return text;
}

static void expect(const char *want)
{
    char *text = written();

    assert_string_equal(text, want);
    free(text);
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

static void numbers_are_short_and_the_same_everywhere(void **state)
{
    static const double values[] = {0,    1,         -2.5, 3.14159, 0.005, -0.004,
                                    1e12, -HUGE_VAL, NAN,  120.10,  7.999};

    UNUSED_STATE(state);
    setlocale(LC_ALL, "");
    begin();
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        rp_svg_number(out, values[i]);
        rp_out_char(out, ' ');
    }
    expect("0 1 -2.5 3.14 0.01 0 1000000 -1000000 0 120.1 8 ");
}

static void texts_cannot_leave_their_place(void **state)
{
    UNUSED_STATE(state);
    begin();
    rp_out_escaped(out, RP_IN_MARKUP,
                   "</text><script>\"x\"&'y'\x01\xff\n\xed\xa0\x80\xef\xbf\xbf\xc2\x85é");
    expect("&lt;/text&gt;&lt;script&gt;&quot;x&quot;&amp;&#39;y&#39;\xef\xbf\xbd\xef\xbf\xbd "
           "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdé");
}

static void long_texts_are_cut_in_the_middle(void **state)
{
    struct rp_svg svg;
    char *text;

    UNUSED_STATE(state);
    begin();
    svg = (struct rp_svg){out, 100, 100};
    rp_svg_text_in(&svg, 1, 2, 70, RP_ANCHOR_END, RP_TEXT_PLAIN, "abcdefghijklmnop<éü");
    rp_svg_text_in(&svg, 1, 2, 5, RP_ANCHOR_END, RP_TEXT_PLAIN, "no room at all");
    text = written();
    assert_string_equal(text, "<text text-anchor=\"end\" x=\"1\" y=\"2\">abcdef…&lt;éü</text>\n");
    free(text);
}

static void tick(double value, double step, enum rp_unit unit, const char *want)
{
    char text[80];

    rp_plot_tick_text(value, step, unit, text, sizeof text);
    assert_string_equal(text, want);
}

static void ticks_are_round_and_have_units(void **state)
{
    UNUSED_STATE(state);
    tick(0, 5e6, RP_UNIT_NS, "0");
    tick(5e6, 5e6, RP_UNIT_NS, "5 ms");
    tick(2.5e6, 2.5e6, RP_UNIT_NS, "2.5 ms");
    tick(1e9, 5e8, RP_UNIT_NS, "1.0 s");
    tick(4e10, 1e10, RP_UNIT_BYTES, "40 GB");
    tick(1e14, 0, RP_UNIT_FLOPS, "100 TFLOP/s");
    tick(0.5, 0.1, RP_UNIT_RATIO, "50 %");
    tick(0.01, 0, RP_UNIT_NONE, "0.01");
    tick(1000, 0, RP_UNIT_NONE, "1000");
    tick(250, 50, RP_UNIT_COUNT, "250");
    tick(2e6, 1e6, RP_UNIT_COUNT, "2 M");
    tick(999999999.9999999, 0, RP_UNIT_BPS, "1 GB/s");
    assert_float_equal(rp_plot_round_up(0.021), 0.025, 1e-15);
    assert_float_equal(rp_plot_round_up(7), 10, 0);
    assert_float_equal(rp_plot_round_up(-7), 1, 0);
}

static void values_have_places_on_linear_and_logarithmic_axes(void **state)
{
    struct rp_plot plot = {.left = 100,
                           .top = 10,
                           .width = 200,
                           .height = 100,
                           .x = {RP_SCALE_LOG, RP_UNIT_NONE, 1, 100, NULL},
                           .y = {RP_SCALE_LINEAR, RP_UNIT_NS, 0, 50, NULL}};

    UNUSED_STATE(state);
    assert_float_equal(rp_plot_x(&plot, 10), 200, 1e-9);
    assert_float_equal(rp_plot_x(&plot, 0), 100, 0);
    assert_float_equal(rp_plot_x(&plot, 1e9), 300, 0);
    assert_float_equal(rp_plot_y(&plot, 0), 110, 0);
    assert_float_equal(rp_plot_y(&plot, 25), 60, 0);
    assert_float_equal(rp_plot_y(&plot, NAN), 110, 0);
}

/* Axes from nowhere to nowhere, and values that are not numbers. */
static void hostile_values_make_a_small_document(void **state)
{
    static const double ends[] = {0, -1, 1, 1e300, -1e300, 1e-300, HUGE_VAL, -HUGE_VAL, NAN};
    const struct rp_point points[] = {{NAN, 1}, {-HUGE_VAL, HUGE_VAL}, {1e300, -1e300}};
    size_t i, k, n = sizeof ends / sizeof *ends;
    char *text;

    UNUSED_STATE(state);
    begin();
    for (i = 0; i < n * n; i++)
        for (k = 0; k < 2; k++) {
            struct rp_axis axis = {k ? RP_SCALE_LOG : RP_SCALE_LINEAR, RP_UNIT_BYTES, ends[i / n],
                                   ends[i % n], "x"};
            struct rp_plot plot = {
                .left = 60, .top = 40, .width = 300, .height = 200, .x = axis, .y = axis};
            struct rp_svg svg;

            rp_svg_begin(&svg, out, 400, 300, "t", NULL);
            rp_plot_begin(&plot, &svg);
            rp_plot_line(&plot, points, 3, 1, RP_LINE_PLAIN);
            rp_plot_end(&plot);
            rp_svg_end(&svg);
        }
    text = written();
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    assert_true(strlen(text) < n * n * 2 * 14000);
    free(text);
}

static void long_lines_are_whole(void **state)
{
    struct rp_plot plot = {.width = 100,
                           .height = 100,
                           .x = {RP_SCALE_LINEAR, RP_UNIT_NS, 0, 5000, NULL},
                           .y = {RP_SCALE_LINEAR, RP_UNIT_NS, 0, 1, NULL}};
    struct rp_point *points = calloc(5000, sizeof *points);
    struct rp_svg svg;
    char *text;

    UNUSED_STATE(state);
    assert_non_null(points);
    for (size_t i = 0; i < 5000; i++)
        points[i] = (struct rp_point){(double)i, (double)(i % 2)};
    begin();
    svg = (struct rp_svg){out, 100, 100};
    plot.svg = &svg;
    rp_plot_line(&plot, points, 5000, 0, RP_LINE_PLAIN);
    text = written();
    /* every point is drawn, and the last of each path again as the first of the next */
    assert_int_equal(count(text, "L") + count(text, "M"), 5000 + count(text, "M") - 1);
    free(text);
    begin();
    svg.to = out;
    rp_plot_steps(&plot, points, 5000, 0, RP_LINE_PLAIN);
    text = written();
    assert_int_equal(count(text, "L"), 2 * 4999);
    free(text);
    free(points);
}

/* Labels that would cover others are left out; the first have priority. */
static void labels_do_not_overlap(void **state)
{
    struct rp_plot plot = {.left = 0,
                           .top = 0,
                           .width = 300,
                           .height = 100,
                           .x = {RP_SCALE_LINEAR, RP_UNIT_NONE, 0, 1, NULL},
                           .y = {RP_SCALE_LINEAR, RP_UNIT_NONE, 0, 1, NULL}};
    struct rp_plot_dot dots[20];
    struct rp_svg svg;
    char *text;

    UNUSED_STATE(state);
    for (size_t i = 0; i < 20; i++)
        dots[i] = (struct rp_plot_dot){0.5, 0.5, 4, 0, i ? "other" : "first", NULL};
    dots[19].x = 0.54; /* right of the others: no label covers it, and its own is behind it */
    begin();
    svg = (struct rp_svg){out, 300, 100};
    plot.svg = &svg;
    rp_plot_dots(&plot, dots, 20);
    text = written();
    assert_int_equal(count(text, "<circle"), 20);
    assert_int_equal(count(text, "first"), 1);
    assert_int_equal(count(text, "other"), 3); /* above, below, and that of the last */
    free(text);
}

static void lanes_show_every_share(void **state)
{
    static const unsigned colours[] = {0, 1};
    const float share[] = {1, 0, 1, 0, 0.25F, 0.25F, 0, 0, 0.001F, 0};
    struct rp_plot plot = {.left = 50, .width = 100};
    struct rp_lane_shares lane = {"rank 0", "hint", 10, 20, 5, 2, share, colours};
    struct rp_svg svg;

    UNUSED_STATE(state);
    begin();
    svg = (struct rp_svg){out, 200, 40};
    plot.svg = &svg;
    rp_plot_lane(&plot, &lane);
    expect("<g><title>hint</title>\n"
           "<text class=\"small\" text-anchor=\"end\" x=\"44\" y=\"24\">rank 0</text>\n"
           "<path class=\"f0\" d=\"M50 10h40v20h-40zM90 25h20v5h-20zM130 29.98h20v0.02h-20z\"/>\n"
           "<path class=\"f1\" d=\"M90 20h20v5h-20z\"/>\n"
           "</g>\n");
}

static void stacks_lie_on_each_other(void **state)
{
    static const unsigned colours[] = {0, 1};
    const double x[] = {0, 1}, heights[] = {1, 1, 2, 1};
    struct rp_stack stack = {2, 2, x, heights, colours, false};
    struct rp_plot plot = {.width = 10,
                           .height = 10,
                           .x = {RP_SCALE_LINEAR, RP_UNIT_NONE, 0, 1, NULL},
                           .y = {RP_SCALE_LINEAR, RP_UNIT_NONE, 0, 10, NULL}};
    struct rp_svg svg;

    UNUSED_STATE(state);
    begin();
    svg = (struct rp_svg){out, 10, 10};
    plot.svg = &svg;
    rp_plot_stack(&plot, &stack);
    stack.steps = true;
    stack.layers = 1;
    rp_plot_stack(&plot, &stack);
    expect("<path class=\"f0\" d=\"M0 9L10 9L10 10L0 10Z\"/>\n"
           "<path class=\"f1\" d=\"M0 7L10 8L10 9L0 9Z\"/>\n"
           "<path class=\"f0\" d=\"M0 9L10 9L10 9L10 10L10 10L0 10Z\"/>\n");
}

static void legends_fit(void **state)
{
    static const struct rp_svg_entry entries[] = {{"compute", 0}, {NULL, 1}, {"communication", 1}};
    struct rp_svg svg;

    UNUSED_STATE(state);
    begin();
    svg = (struct rp_svg){out, 100, 100};
    assert_int_equal(rp_svg_legend(&svg, 0, 10, 1000, entries, 3), 1);
    assert_int_equal(rp_svg_legend(&svg, 0, 10, 120, entries, 3), 2);
    free(written());
}

int test_svg(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_short_and_the_same_everywhere),
        cmocka_unit_test(texts_cannot_leave_their_place),
        cmocka_unit_test(long_texts_are_cut_in_the_middle),
        cmocka_unit_test(ticks_are_round_and_have_units),
        cmocka_unit_test(values_have_places_on_linear_and_logarithmic_axes),
        cmocka_unit_test(hostile_values_make_a_small_document),
        cmocka_unit_test(long_lines_are_whole),
        cmocka_unit_test(labels_do_not_overlap),
        cmocka_unit_test(lanes_show_every_share),
        cmocka_unit_test(stacks_lie_on_each_other),
        cmocka_unit_test(legends_fit),
    };

    return cmocka_run_group_tests_name("svg", tests, NULL, NULL);
}
