/* SPDX-License-Identifier: Apache-2.0 */
/* The table for people: whole screens, human units, cutting and wrapping. */
#include "result/print_text.h"
#include "result/print_units.h"
#include "result/result.h"
#include "unit.h"

#include <math.h>
#include <stdbool.h>

static void check_screen(const struct rp_type *type, const void *root, int width, int color,
                         const char *want)
{
    struct rp_print_options options = {
        .struct_size = sizeof options, .format = RP_PRINT_TABLE, .color = color, .width = width};
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    size_t n;

    assert_ok(rp_out_open_memory(&out, &err), &err);
    rp_print_record(type, root, &options, out);
    assert_string_equal(rp_out_borrow_memory(out, &n), want);
    assert_ok(rp_out_close(out, &err), &err);
}

struct kernel {
    const char *name, *kind;
    int64_t count, total_ns, stream, secret;
    double busy_share;
};

static const struct rp_field kernel_fields[] = {
    RP_FIELD(struct kernel, name, STR, NONE, "kernel", "d", RP_SHORTEN),
    RP_FIELD(struct kernel, kind, STR, NONE, "kind", "d", RP_WIDE),
    RP_FIELD(struct kernel, count, I64, COUNT, "count", "d", 0),
    RP_FIELD(struct kernel, total_ns, I64, NS, "total", "d", 0),
    RP_FIELD(struct kernel, busy_share, F64, RATIO, "of busy", "d", 0),
    RP_FIELD(struct kernel, stream, I64, NONE, "stream", "d", RP_NULLABLE),
    RP_FIELD(struct kernel, secret, I64, NONE, NULL, "d", 0),
    RP_FIELD_END};
static const struct rp_type kernel_type = {"kernel", sizeof(struct kernel), kernel_fields, NULL};

struct report {
    const char *path;
    int64_t window_ns, absent;
    size_t nkernels, nempty, nwarnings, nranks;
    struct kernel *kernels, *empty;
    const char **warnings;
    int64_t *ranks;
};

static const struct rp_field report_fields[] = {
    RP_FIELD(struct report, path, STR, NONE, "File", "d", RP_SHORTEN),
    RP_FIELD(struct report, window_ns, I64, NS, "Window", "d", 0),
    RP_FIELD(struct report, absent, I64, NS, "Absent", "d", RP_NULLABLE),
    RP_FIELD_LIST(struct report, kernels, &kernel_type, "Kernels", "d", 0),
    RP_FIELD_LIST(struct report, empty, &kernel_type, "Empty", "d", 0),
    RP_FIELD_LIST(struct report, warnings, &rp_type_string, "Warnings", "d", RP_WARN),
    RP_FIELD_LIST(struct report, ranks, &rp_type_int, "Ranks", "d", 0),
    RP_FIELD_END};
static const struct rp_type report_type = {"report", sizeof(struct report), report_fields, NULL};

static struct kernel kernels[] = {
    {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
     "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>)",
     "elementwise", 239093, 628143000, 7, 1, 0.423},
    {"ampere_sgemm_128x64_tn", "gemm", 12000, 2041234567, RP_ABSENT_I64, 1, 0.5},
    {"Memset", "memset", 1, 5, 21, 1, 0.00001},
};
static const char *warnings[] = {
    "12 kernels have no launch: the profiler lost host events; record with a larger buffer "
    "(--buffer 64M)",
    "evil \033[31m\n name"};
static int64_t ranks[] = {0, 1, 7};
static const struct report report = {
    "run/rank0.json.gz", 628143000, RP_ABSENT_I64, 3, 0, 2, 3, kernels, NULL, warnings, ranks};

static void test_screen_of_80(void **state)
{
    UNUSED_STATE(state);
    check_screen(
        &report_type, &report, 0, 0,
        "File    run/rank0.json.gz\n"
        "Window  628.1 ms\n"
        "Ranks   0, 1, 7\n"
        "\n"
        "Kernels\n"
        "  kernel                         kind           count     total  of busy  stream\n"
        "  void at::nativ…or_add<float>)  elementwise  239,093  628.1 ms   42.3 %       7\n"
        "  ampere_sgemm_128x64_tn         gemm          12,000    2.04 s   50.0 %       -\n"
        "  Memset                         memset             1      5 ns  < 0.1 %      21\n"
        "\n"
        "warning: 12 kernels have no launch: the profiler lost host events; record with a\n"
        "         larger buffer (--buffer 64M)\n"
        "warning: evil \xef\xbf\xbd[31m name\n");
}

static void test_narrow_screen_loses_the_wide_column(void **state)
{
    struct report one = {.path = "a/path/that/is/longer/than/the/narrow/screen/is.json.gz",
                         .absent = RP_ABSENT_I64,
                         .nkernels = 2,
                         .kernels = kernels};

    UNUSED_STATE(state);
    check_screen(&report_type, &one, 60, 0,
                 "File    a/path/that/is/longer/than…/narrow/screen/is.json.gz\n"
                 "Window  0 ns\n"
                 "\n"
                 "Kernels\n"
                 "  kernel                    count     total  of busy  stream\n"
                 "  void at::na…dd<float>)  239,093  628.1 ms   42.3 %       7\n"
                 "  ampere_sgemm_128x64_tn   12,000    2.04 s   50.0 %       -\n");
}

struct part_row {
    const char *part, *note;
    int64_t ns;
};
struct parts {
    size_t nrows;
    struct part_row *rows;
};
static const struct rp_field part_row_fields[] = {
    RP_FIELD(struct part_row, part, STR, NONE, "part", "", 0),
    RP_FIELD(struct part_row, ns, I64, NS, "time", "", 0),
    RP_FIELD(struct part_row, note, STR, NONE, "meaning", "", RP_SHORTEN), RP_FIELD_END};
static const struct rp_type part_row_type = {"part", sizeof(struct part_row), part_row_fields,
                                             NULL};
static const struct rp_field parts_fields[] = {
    RP_FIELD_LIST(struct parts, rows, &part_row_type, "Parts", "", 0), RP_FIELD_END};
static const struct rp_type parts_type = {"parts", sizeof(struct parts), parts_fields, NULL};

/* The middle of a sentence is what it says; a name is still cut. */
static void test_sentences_are_broken_into_lines(void **state)
{
    struct part_row rows[] = {{"idle", "the host had not launched it yet", 1010000},
                              {"copy", "vectorized_elementwise_kernel", 212800}};
    struct parts parts = {2, rows};

    UNUSED_STATE(state);
    check_screen(&parts_type, &parts, 36, 0,
                 "Parts\n"
                 "  part      time  meaning\n"
                 "  idle   1.01 ms  the host had not\n"
                 "                  launched it yet\n"
                 "  copy  212.8 µs  vectorize…e_kernel\n");
    check_screen(&parts_type, &parts, 80, 0,
                 "Parts\n"
                 "  part      time  meaning\n"
                 "  idle   1.01 ms  the host had not launched it yet\n"
                 "  copy  212.8 µs  vectorized_elementwise_kernel\n");
}

static void test_colors(void **state)
{
    const char *bad[] = {"careful"};
    struct report one = {.absent = RP_ABSENT_I64,
                         .nkernels = 1,
                         .kernels = &kernels[2],
                         .nwarnings = 1,
                         .warnings = bad};

    UNUSED_STATE(state);
    check_screen(&report_type, &one, 80, 1,
                 "Window  0 ns\n"
                 "\n"
                 "\033[1mKernels\033[0m\n"
                 "\033[2m  kernel  kind    count  total  of busy  stream\033[0m\n"
                 "  Memset  memset      1   5 ns  < 0.1 %      21\n"
                 "\n"
                 "\033[33mwarning: \033[0mcareful\n");
}

struct variant {
    const char *name, *label, *shape;
    int64_t count, extra;
};

static const struct rp_field variant_fields[] = {
    RP_FIELD(struct variant, name, STR, NONE, NULL, "d", 0),
    RP_FIELD(struct variant, label, STR, NONE, "kernel", "d", RP_SHORTEN | RP_LABEL),
    RP_FIELD(struct variant, count, I64, COUNT, "count", "d", 0),
    RP_FIELD(struct variant, extra, I64, COUNT, "extra", "d", RP_WIDE), RP_FIELD_END};
static const struct rp_type variant_type = {"variant", sizeof(struct variant), variant_fields,
                                            NULL};

static const struct rp_field shape_fields[] = {
    RP_FIELD(struct variant, shape, STR, NONE, "shape", "d", RP_SHORTEN | RP_WHOLE),
    RP_FIELD(struct variant, count, I64, COUNT, "count", "d", 0),
    RP_FIELD(struct variant, extra, I64, COUNT, "extra", "d", RP_WIDE), RP_FIELD_END};
static const struct rp_type shape_type = {"shape", sizeof(struct variant), shape_fields, NULL};

struct variants {
    size_t nrows;
    const struct variant *rows;
};

static const struct rp_field variants_fields[] = {
    RP_FIELD_LIST(struct variants, rows, &variant_type, "Rows", "d", 0), RP_FIELD_END};
static const struct rp_type variants_type = {"variants", sizeof(struct variants), variants_fields,
                                             NULL};
static const struct rp_field shapes_fields[] = {
    RP_FIELD_LIST(struct variants, rows, &shape_type, "Rows", "d", 0), RP_FIELD_END};
static const struct rp_type shapes_type = {"shapes", sizeof(struct variants), shapes_fields, NULL};

static const struct variant variant_rows[] = {
    {"whole one", "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_MT256x192x64_MI16x16x1_SN",
     "aten::mm [[4096, 4096], [4096, 1024]]", 1, 10},
    {"whole two", "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_MT128x192x64_MI16x16x1_SN",
     "aten::mm [[4096, 4096], [4096, 4096]]", 2, 20},
    {"whole three", "Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_MT256x192x64_MI16x16x1_SN",
     "aten::mm [[1, 4096], [4096, 4096]]", 3, 30},
};
static const struct variants variants = {3, variant_rows};

static void test_what_differs_stays(void **state)
{
    UNUSED_STATE(state);
    check_screen(&variants_type, &variants, 48, 0,
                 "Rows\n"
                 "  kernel                                   count\n"
                 "  Cijk_Alik_Bljk_BBS_BH…MT256x192x64…SN        1\n"
                 "  Cijk_Alik_Bljk_BBS_BH…MT128x192x64…SN        2\n"
                 "  Cijk_Ailk_Bljk_BBS_BH_Bias…MI16x16x1_SN      3\n");
}

static void test_shapes_before_statistics(void **state)
{
    UNUSED_STATE(state);
    check_screen(&shapes_type, &variants, 48, 0,
                 "Rows\n"
                 "  shape                                  count\n"
                 "  aten::mm [[4096, 4096], [4096, 1024]]      1\n"
                 "  aten::mm [[4096, 4096], [4096, 4096]]      2\n"
                 "  aten::mm [[1, 4096], [4096, 4096]]         3\n");
}

/* As wide as it needs: */
static void check_wide(const struct rp_type *type, const void *record, const char *want)
{
    struct rp_print_options options = {
        .struct_size = sizeof options, .format = RP_PRINT_TABLE, .width = 48, .wide = 1};
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    size_t n;

    assert_ok(rp_out_open_memory(&out, &err), &err);
    rp_print_record(type, record, &options, out);
    assert_string_equal(rp_out_borrow_memory(out, &n), want);
    assert_ok(rp_out_close(out, &err), &err);
}

static void test_wide_shows_all(void **state)
{
    UNUSED_STATE(state);
    check_wide(&variants_type, &variants,
               "Rows\n"
               "  kernel       count  extra\n"
               "  whole one        1     10\n"
               "  whole two        2     20\n"
               "  whole three      3     30\n");
}

/* Behind a name that fills the screen nobody would see the numbers. */
static void test_wide_keeps_numbers_in_sight(void **state)
{
    struct variant rows[2] = {variants.rows[0], variants.rows[1]};
    struct variants root = {.nrows = 2, .rows = rows};

    UNUSED_STATE(state);
    rows[1].name =
        "void at::native::elementwise_kernel<128, 4, gpu_kernel_impl_nocast<add>>(int, add)";
    check_wide(&variants_type, &root,
               "Rows\n"
               "  count  extra  kernel\n"
               "      1     10  whole one\n"
               "      2     20  void at::native::elementwise_kernel<128, 4, "
               "gpu_kernel_impl_nocast<add>>(int, add)\n");
}

static void cut_apart(const char *text, const char *other, size_t width, const char *want)
{
    struct rp_kept_words kept = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    size_t n, used;

    rp_screen_keep(&kept, text, other);
    assert_ok(rp_out_open_memory(&out, &err), &err);
    used = rp_screen_put_kept(out, text, width, &kept);
    assert_string_equal(rp_out_borrow_memory(out, &n), want);
    assert_int_equal(used, rp_screen_width(want));
    assert_true(used <= width);
    assert_ok(rp_out_close(out, &err), &err);
}

static void test_cut_apart(void **state)
{
    UNUSED_STATE(state);
    cut_apart("one_two_three_four_five", "one_two_three_four_six", 14, "one_two…five");
    cut_apart("one_two_three_four_five", "one_two_3_four_five", 16, "one…three…five");
    cut_apart("one_two_three", "one_two_three", 9, "one…three");
    cut_apart("oneverylongwordwithoutanyseparator", "two", 12, "onever…rator");
    cut_apart("ein_zwei_drei_äöüäöü_fünf", "ein_zwei_drei_xyz_fünf", 16, "ein…äöüäöü_fünf");
    cut_apart("f_long_base_name_…_K1", "f_long_base_name_…_K2", 12, "f_long…_K1");
}

struct entry {
    const char *key;
    int64_t value;
};

static const struct rp_field entry_fields[] = {
    RP_FIELD(struct entry, key, STR, NONE, NULL, "d", 0),
    RP_FIELD(struct entry, value, I64, COUNT, NULL, "d", 0), RP_FIELD_END};
static const struct rp_type entry_type = {"entry", sizeof(struct entry), entry_fields, NULL};

struct span {
    int64_t min, max;
};

static const struct rp_field span_fields[] = {RP_FIELD(struct span, min, I64, NS, "min", "d", 0),
                                              RP_FIELD(struct span, max, I64, NS, "max", "d", 0),
                                              RP_FIELD_END};
static const struct rp_type span_type = {"span", sizeof(struct span), span_fields, NULL};

struct rank {
    int64_t rank;
    bool late;
    struct span step_ns;
    size_t ncauses, nwarnings, nhosts;
    struct entry *causes;
    const char **warnings, **hosts;
};

static const struct rp_field rank_fields[] = {
    RP_FIELD(struct rank, rank, I64, NONE, "rank", "d", 0),
    RP_FIELD(struct rank, late, BOOL, NONE, "late", "d", 0),
    RP_FIELD_RECORD(struct rank, step_ns, &span_type, "step", "d", 0),
    RP_FIELD_MAP(struct rank, causes, &entry_type, "causes", "d", 0),
    RP_FIELD_LIST(struct rank, warnings, &rp_type_string, "warnings", "d", RP_WARN),
    RP_FIELD_LIST(struct rank, hosts, &rp_type_string, "hosts", "d", 0),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rank), rank_fields, NULL};

struct run {
    size_t nranks, nblocks;
    struct rank *ranks, *blocks;
};

static const struct rp_field run_fields[] = {
    RP_FIELD_LIST(struct run, ranks, &rank_type, "Ranks", "d", 0),
    RP_FIELD_LIST(struct run, blocks, &rank_type, "Blocks", "d", RP_BLOCKS), RP_FIELD_END};
static const struct rp_type run_type = {"run", sizeof(struct run), run_fields, NULL};

static void test_rows_and_blocks(void **state)
{
    struct entry causes[] = {{"not launched", 12045}, {"sync", 3}};
    const char *bad[] = {"lost 3 events"}, *hosts[] = {"a", "b"};
    struct rank two[] = {{0, true, {1000, 2500}, 2, 1, 2, causes, bad, hosts},
                         {1, false, {5, 123456789}, 0, 0, 0, NULL, NULL, NULL}};
    struct run run = {2, 2, two, two};

    UNUSED_STATE(state);
    check_screen(&run_type, &run, 80, 0,
                 "Ranks\n"
                 "  rank  late  step min  step max  hosts\n"
                 "     0  yes    1.00 µs   2.50 µs  a, b\n"
                 "     1  no        5 ns  123.5 ms  -\n"
                 "  warning: rank 0: lost 3 events\n"
                 "\n"
                 "rank 0\n"
                 "  late  yes\n"
                 "\n"
                 "  step\n"
                 "    min  1.00 µs\n"
                 "    max  2.50 µs\n"
                 "\n"
                 "  causes\n"
                 "    not launched  12,045\n"
                 "    sync               3\n"
                 "\n"
                 "  warning: lost 3 events\n"
                 "\n"
                 "  hosts\n"
                 "    a\n"
                 "    b\n"
                 "\n"
                 "rank 1\n"
                 "  late  no\n"
                 "\n"
                 "  step\n"
                 "    min  5 ns\n"
                 "    max  123.5 ms\n");
}

static void test_nothing(void **state)
{
    struct run run = {0, 0, NULL, NULL};

    UNUSED_STATE(state);
    check_screen(&run_type, &run, 80, 0, "");
}

static void check_unit(double value, enum rp_unit unit, const char *want)
{
    char text[64];

    rp_units_format(value, unit, text, sizeof text);
    assert_string_equal(text, want);
}

static void test_units(void **state)
{
    UNUSED_STATE(state);
    check_unit(628143000, RP_UNIT_NS, "628.1 ms");
    check_unit(12345, RP_UNIT_NS, "12.3 µs");
    check_unit(0, RP_UNIT_NS, "0 ns");
    check_unit(-0.0, RP_UNIT_NS, "0 ns");
    check_unit(5, RP_UNIT_NS, "5 ns");
    check_unit(999, RP_UNIT_NS, "999 ns");
    check_unit(1000, RP_UNIT_NS, "1.00 µs");
    check_unit(12.345, RP_UNIT_NS, "12.3 ns");
    check_unit(999.97, RP_UNIT_NS, "1.00 µs");
    check_unit(9994, RP_UNIT_NS, "9.99 µs");
    check_unit(9996, RP_UNIT_NS, "10.0 µs");
    check_unit(999949, RP_UNIT_NS, "999.9 µs");
    check_unit(999950, RP_UNIT_NS, "1.00 ms");
    check_unit(2041234567, RP_UNIT_NS, "2.04 s");
    check_unit(7.2e12, RP_UNIT_NS, "7,200.0 s");
    check_unit(-12345, RP_UNIT_NS, "-12.3 µs");
    check_unit(62412345, RP_UNIT_BYTES, "62.4 MB");
    check_unit(512, RP_UNIT_BYTES, "512 B");
    check_unit(0.977, RP_UNIT_RATIO, "97.7 %");
    check_unit(1, RP_UNIT_RATIO, "100.0 %");
    check_unit(0.0004, RP_UNIT_RATIO, "< 0.1 %");
    check_unit(12.5, RP_UNIT_RATIO, "1,250.0 %");
    check_unit(-0.0004, RP_UNIT_RATIO, "< 0.1 %");
    check_unit(312e12, RP_UNIT_FLOPS, "312.0 TFLOP/s");
    check_unit(276.7e12, RP_UNIT_FLOP, "276.7 TFLOP");
    check_unit(0, RP_UNIT_FLOP, "0 FLOP");
    check_unit(1.41e9, RP_UNIT_HZ, "1.41 GHz");
    check_unit(3.35e12, RP_UNIT_BPS, "3.35 TB/s");
    check_unit(1234567.25, RP_UNIT_COUNT, "1,234,567.2");
    check_unit(0.1, RP_UNIT_NONE, "0.1");
}

static void check_thousands(int64_t value, const char *want)
{
    char text[40];

    rp_units_thousands(value, text, sizeof text);
    assert_string_equal(text, want);
}

/* A number and its unit stay on one line. */
static void test_numbers_are_not_parted(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    size_t n;

    UNUSED_STATE(state);
    assert_ok(rp_out_open_memory(&out, &err), &err);
    rp_screen_wrap(out, "it took 22.9 µs, then 5 mice ran 12 %)", 0, 0, 12);
    assert_string_equal(rp_out_borrow_memory(out, &n), "it took\n22.9 µs,\nthen 5 mice\nran 12 %)");
    assert_ok(rp_out_close(out, &err), &err);
}

/* A word that is wider than its column is cut there, and is whole elsewhere. */
static void test_long_words(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    size_t n;

    UNUSED_STATE(state);
    assert_ok(rp_out_open_memory(&out, &err), &err);
    rp_screen_wrap_within(out, "an elementwise_kernel (5 % of it)", 2, 2, 14);
    rp_out_char(out, '\n');
    rp_screen_wrap(out, "an elementwise_kernel", 2, 2, 14);
    assert_string_equal(rp_out_borrow_memory(out, &n),
                        "an\n  elemen…ernel\n  (5 % of it)\nan\n  elementwise_kernel");
    assert_ok(rp_out_close(out, &err), &err);
}

static void test_counts_of_things(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;

    UNUSED_STATE(state);
    assert_string_equal(rp_units_count(&arena, 1, "kernel"), "1 kernel");
    assert_string_equal(rp_units_count(&arena, 0, "kernel"), "0 kernels");
    assert_string_equal(rp_units_count(&arena, 2345, "launch"), "2,345 launches");
    assert_string_equal(rp_units_count(&arena, 2, "copy"), "2 copies");
    assert_string_equal(rp_units_count(&arena, 2, "key"), "2 keys");
    assert_string_equal(rp_units_count(&arena, 2, "process"), "2 processes");
    rp_arena_release(&arena);
}

static void test_thousands(void **state)
{
    UNUSED_STATE(state);
    check_thousands(0, "0");
    check_thousands(999, "999");
    check_thousands(1000, "1,000");
    check_thousands(-100, "-100");
    check_thousands(-123456, "-123,456");
    check_thousands(INT64_MIN, "-9,223,372,036,854,775,808");
}

static void check_cut(const char *text, size_t width, const char *want)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    size_t n, used;

    assert_ok(rp_out_open_memory(&out, &err), &err);
    used = rp_screen_put(out, text, width);
    assert_string_equal(rp_out_borrow_memory(out, &n), want);
    assert_true(used <= width);
    assert_int_equal(used, rp_screen_width(want));
    assert_ok(rp_out_close(out, &err), &err);
}

static void test_cutting(void **state)
{
    UNUSED_STATE(state);
    check_cut("abcdefghij", 10, "abcdefghij");
    check_cut("abcdefghij", 9, "abcd…ghij");
    check_cut("abcdefghij", 2, "a…");
    check_cut("abcdefghij", 1, "…");
    check_cut("abcdefghij", 0, "");
    check_cut("融合融合融合", 12, "融合融合融合");
    check_cut("融合融合融合", 8, "融合…合"); /* a wide character is never halved */
    check_cut("e\xcc\x81tude", 5, "e\xcc\x81tude");
    check_cut("a\xffz", 3, "a\xef\xbf\xbdz");
}

/* ------------------------------------------------------------------ long tables */

struct rank_row {
    int64_t rank, delay_ns, slack_ns;
};

struct rank_root {
    size_t nrows;
    struct rank_row *rows;
};

static const struct rp_field rank_row_fields[] = {
    RP_FIELD(struct rank_row, rank, I64, NONE, "rank", "d", 0),
    RP_FIELD(struct rank_row, slack_ns, I64, NS, "slack", "d", RP_SMALLEST),
    RP_FIELD(struct rank_row, delay_ns, I64, NS, "delay", "d", RP_NULLABLE | RP_LARGEST),
    RP_FIELD_END};
static const struct rp_type rank_row_type = {"rank", sizeof(struct rank_row), rank_row_fields,
                                             NULL};
static const struct rp_field rank_root_fields[] = {
    RP_FIELD_LIST(struct rank_root, rows, &rank_row_type, "ranks", "d", 0), RP_FIELD_END};
static const struct rp_type rank_root_type = {"run", sizeof(struct rank_root), rank_root_fields,
                                              "rows"};

#define RANKS 1040

static void fill_ranks(struct rank_row rows[RANKS])
{
    for (int64_t i = 0; i < RANKS; i++)
        rows[i] = (struct rank_row){i, 0, 500};
    rows[1037].delay_ns = 9000;
    rows[12].delay_ns = 2000;
    rows[4].delay_ns = RP_ABSENT_I64; /* what is not known is not among the worst */
    rows[700].slack_ns = 7;
}

/* Of a long table the worst rows are shown, with what ranks them; equal ones in their order. */
static void test_long_tables_show_the_worst_rows(void **state)
{
    static struct rank_row rows[RANKS];
    struct rank_root root = {.nrows = RANKS, .rows = rows};

    UNUSED_STATE(state);
    fill_ranks(rows);
    check_screen(&rank_root_type, &root, 80, 0,
                 "ranks\n"
                 "  rank   slack    delay\n"
                 "  1037  500 ns  9.00 µs\n"
                 "    12  500 ns  2.00 µs\n"
                 "   700    7 ns     0 ns\n"
                 "     0  500 ns     0 ns\n"
                 "     1  500 ns     0 ns\n"
                 "     2  500 ns     0 ns\n"
                 "     3  500 ns     0 ns\n"
                 "     5  500 ns     0 ns\n"
                 "  … and 1,032 more ranks (by delay, largest first): --all prints them\n");
    rows[1037].delay_ns = rows[12].delay_ns = rows[4].delay_ns = 0;
    root.nrows = 1000;
    check_screen(&rank_root_type, &root, 80, 0,
                 "ranks\n"
                 "  rank   slack  delay\n"
                 "   700    7 ns   0 ns\n"
                 "     0  500 ns   0 ns\n"
                 "     1  500 ns   0 ns\n"
                 "     2  500 ns   0 ns\n"
                 "     3  500 ns   0 ns\n"
                 "     4  500 ns   0 ns\n"
                 "     5  500 ns   0 ns\n"
                 "     6  500 ns   0 ns\n"
                 "  … and 992 more ranks (by slack, smallest first): --all prints them\n");
}

static size_t count_lines(const struct rank_root *root, const struct rp_print_options *options)
{
    struct rp_err err = RP_ERR_INIT;
    size_t i, n, lines = 0;
    struct rp_out *out;
    const char *text;

    assert_ok(rp_out_open_memory(&out, &err), &err);
    rp_print_record(&rank_root_type, root, options, out);
    text = rp_out_borrow_memory(out, &n);
    for (i = 0; i < n; i++)
        lines += text[i] == '\n';
    assert_ok(rp_out_close(out, &err), &err);
    return lines;
}

/* Tables of up to 16 rows are whole and in their order; all rows on request; CSV always whole. */
static void test_all_rows(void **state)
{
    static struct rank_row rows[RANKS];
    struct rank_root root = {.nrows = 16, .rows = rows};
    struct rp_print_options table = {.struct_size = sizeof table, .width = 80}, csv = table;

    UNUSED_STATE(state);
    fill_ranks(rows);
    csv.format = RP_PRINT_CSV;
    assert_int_equal(count_lines(&root, &table), 2 + 16);
    root.nrows = 17;
    assert_int_equal(count_lines(&root, &table), 2 + 8 + 1);
    root.nrows = RANKS;
    assert_int_equal(count_lines(&root, &csv), 1 + RANKS);
    table.all = 1;
    assert_int_equal(count_lines(&root, &table), 2 + RANKS);
}

struct slice {
    const char *part, *note;
    double share;
    int64_t std_ns;
};

static const struct rp_field slice_fields[] = {
    RP_FIELD(struct slice, part, STR, NONE, "part", "d", 0),
    RP_FIELD(struct slice, share, F64, RATIO, "share", "d", RP_BAR),
    RP_FIELD(struct slice, note, STR, NONE, "note", "d", RP_SHORTEN),
    RP_FIELD(struct slice, std_ns, I64, NS, "std", "d", RP_WIDE | RP_NULLABLE), RP_FIELD_END};
static const struct rp_type slice_type = {"slice", sizeof(struct slice), slice_fields, NULL};

struct pie {
    size_t nslices;
    struct slice *slices;
};

static const struct rp_field pie_fields[] = {
    RP_FIELD_LIST(struct pie, slices, &slice_type, "pie", "d", 0), RP_FIELD_END};
static const struct rp_type pie_type = {"pie", sizeof(struct pie), pie_fields, NULL};

static void check_bars(int bars, int width, int64_t std_ns, const char *want)
{
    struct slice slices[] = {{"a", "much", 0.8, std_ns},
                             {"b", "some", 0.15, std_ns},
                             {"c", "nearly nothing", 0.0001, std_ns},
                             {"d", "none", 0, std_ns}};
    struct pie pie = {4, slices};
    struct rp_print_options options = {
        .struct_size = sizeof options, .format = RP_PRINT_TABLE, .width = width, .bars = bars};
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    size_t n;

    assert_ok(rp_out_open_memory(&out, &err), &err);
    rp_print_record(&pie_type, &pie, &options, out);
    assert_string_equal(rp_out_borrow_memory(out, &n), want);
    assert_ok(rp_out_close(out, &err), &err);
}

/* Bars of blocks or of ASCII, and none where the line has no room left. */
static void shares_have_bars(void **state)
{
    UNUSED_STATE(state);
    check_bars(2, 80, RP_ABSENT_I64,
               "pie\n"
               "  part    share               note\n"
               "  a      80.0 % ████████████  much\n"
               "  b      15.0 % ██▎           some\n"
               "  c     < 0.1 % ▏             nearly nothing\n"
               "  d       0.0 %               none\n");
    check_bars(1, 44, RP_ABSENT_I64,
               "pie\n"
               "  part    share               note\n"
               "  a      80.0 % ############  much\n"
               "  b      15.0 % ##            some\n"
               "  c     < 0.1 % #             nearly nothing\n"
               "  d       0.0 %               none\n");
    check_bars(2, 43, RP_ABSENT_I64,
               "pie\n"
               "  part    share  note\n"
               "  a      80.0 %  much\n"
               "  b      15.0 %  some\n"
               "  c     < 0.1 %  nearly nothing\n"
               "  d       0.0 %  none\n");
    /* a column that may be left out makes room for them, but not in vain */
    check_bars(1, 46, 7,
               "pie\n"
               "  part    share               note\n"
               "  a      80.0 % ############  much\n"
               "  b      15.0 % ##            some\n"
               "  c     < 0.1 % #             nearly nothing\n"
               "  d       0.0 %               none\n");
    check_bars(1, 43, 7,
               "pie\n"
               "  part    share  note             std\n"
               "  a      80.0 %  much            7 ns\n"
               "  b      15.0 %  some            7 ns\n"
               "  c     < 0.1 %  nearly nothing  7 ns\n"
               "  d       0.0 %  none            7 ns\n");
}

/* A list of the same records that chooses its columns, and one as a block. */
struct chosen {
    size_t nall, nfew, nblocks;
    struct kernel *all, *few, *blocks;
};

static const struct rp_field chosen_fields[] = {
    RP_FIELD_LIST(struct chosen, all, &kernel_type, NULL, "d", 0),
    RP_FIELD_SHOWN(struct chosen, few, &kernel_type, "few",
                   "total_ns, secret:not so secret, name, kind-, count+", 0),
    RP_FIELD_SHOWN(struct chosen, blocks, &kernel_type, "", "name, count:times", RP_BLOCKS),
    RP_FIELD_END};
static const struct rp_type chosen_type = {"chosen", sizeof(struct chosen), chosen_fields, "all"};

static void test_columns_are_chosen(void **state)
{
    struct kernel kernel = {
        .name = "gemm", .kind = "compute", .count = 7, .total_ns = 2000, .secret = 5};
    struct chosen root = {1, 1, 1, &kernel, &kernel, &kernel};

    UNUSED_STATE(state);
    check_screen(&chosen_type, &root, 80, 0,
                 "few\n"
                 "    total  not so secret  kernel  kind     count\n"
                 "  2.00 µs              5  gemm    compute      7\n"
                 "\n"
                 "gemm\n"
                 "  times  7\n");
    check_screen(&chosen_type, &root, 41, 0,
                 "few\n"
                 "    total  not so secret  kernel  kind\n"
                 "  2.00 µs              5  gemm    compute\n"
                 "\n"
                 "gemm\n"
                 "  times  7\n");
}

int test_print_table(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_are_chosen),
        cmocka_unit_test(test_screen_of_80),
        cmocka_unit_test(test_narrow_screen_loses_the_wide_column),
        cmocka_unit_test(test_what_differs_stays),
        cmocka_unit_test(test_shapes_before_statistics),
        cmocka_unit_test(test_wide_shows_all),
        cmocka_unit_test(test_wide_keeps_numbers_in_sight),
        cmocka_unit_test(test_cut_apart),
        cmocka_unit_test(test_sentences_are_broken_into_lines),
        cmocka_unit_test(test_colors),
        cmocka_unit_test(test_rows_and_blocks),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_thousands),
        cmocka_unit_test(test_counts_of_things),
        cmocka_unit_test(test_numbers_are_not_parted),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_cutting),
        cmocka_unit_test(test_long_tables_show_the_worst_rows),
        cmocka_unit_test(test_all_rows),
        cmocka_unit_test(shares_have_bars),
    };

    return cmocka_run_group_tests_name("print_table", tests, NULL, NULL);
}
