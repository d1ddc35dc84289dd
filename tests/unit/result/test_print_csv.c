/* SPDX-License-Identifier: Apache-2.0 */
/* CSV: quoting, flattening, and the paths that name the rows. */
#include "result/result.h"
#include "unit.h"

#include <math.h>
#include <stdbool.h>

static void check_output(const struct rp_type *type, const void *root, const char *want)
{
    struct rp_print_options options = {.struct_size = sizeof options, .format = RP_PRINT_CSV};
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    size_t n;

    assert_ok(rp_out_open_memory(&out, &err), &err);
    rp_print_record(type, root, &options, out);
    assert_string_equal(rp_out_borrow_memory(out, &n), want);
    assert_ok(rp_out_close(out, &err), &err);
}

struct span {
    int64_t min, max;
};

static const struct rp_field span_fields[] = {RP_FIELD(struct span, min, I64, NS, "min", "d", 0),
                                              RP_FIELD(struct span, max, I64, NS, "max", "d", 0),
                                              RP_FIELD_END};
static const struct rp_type span_type = {"span", sizeof(struct span), span_fields, NULL};

struct cause {
    const char *cause;
    int64_t total_ns;
};

static const struct rp_field cause_fields[] = {
    RP_FIELD(struct cause, cause, STR, NONE, "cause", "d", 0),
    RP_FIELD(struct cause, total_ns, I64, NS, "total", "d", 0), RP_FIELD_END};
static const struct rp_type cause_type = {"cause", sizeof(struct cause), cause_fields, NULL};

struct rank {
    int64_t rank;
    const char *host;
    struct span run_ns;
    double share;
    bool ok;
    size_t ncauses, nnotes;
    struct cause *causes;
    const char **notes;
};

static const struct rp_field rank_fields[] = {
    RP_FIELD(struct rank, rank, I64, NONE, "rank", "d", RP_NULLABLE),
    RP_FIELD(struct rank, host, STR, NONE, "host", "d", 0),
    RP_FIELD_RECORD(struct rank, run_ns, &span_type, "run", "d", 0),
    RP_FIELD_LIST(struct rank, causes, &cause_type, "causes", "d", 0),
    RP_FIELD_LIST(struct rank, notes, &rp_type_string, "notes", "d", 0),
    RP_FIELD(struct rank, share, F64, RATIO, "share", "d", 0),
    RP_FIELD(struct rank, ok, BOOL, NONE, NULL, "d", 0),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rank), rank_fields, NULL};

struct inner {
    size_t nranks;
    struct rank *ranks;
};

static const struct rp_field inner_fields[] = {
    RP_FIELD_LIST(struct inner, ranks, &rank_type, "ranks", "d", 0), RP_FIELD_END};
static const struct rp_type inner_type = {"inner", sizeof(struct inner), inner_fields, NULL};

struct root {
    int64_t window_ns;
    struct inner inner;
};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct root, window_ns, I64, NS, "window", "d", 0),
    RP_FIELD_RECORD(struct root, inner, &inner_type, "inner", "d", 0), RP_FIELD_END};

static struct cause causes0[] = {{"late, launch", 5}, {"sync", 6}}, causes1[] = {{"copy", 7}};
static const char *notes0[] = {"one", "two \"2\""};
static struct rank ranks[] = {
    {0, "a,b", {1, 2}, 0.1, true, 2, 2, causes0, notes0},
    {RP_ABSENT_I64, "say \"hi\"\nthere", {3, 4}, NAN, false, 1, 0, causes1, NULL},
    {2, "", {5, 6}, 1, true, 0, 0, NULL, NULL},
    {3, NULL, {7, 8}, 0, true, 0, 0, NULL, NULL},
    {4, "\xc3\xa9\xff", {9, 10}, 0, true, 0, 0, NULL, NULL},
};
static const struct root root = {628000000, {5, ranks}};

static void check_rows(const char *rows, const char *want)
{
    struct rp_type type = {"root", sizeof(struct root), root_fields, rows};

    check_output(&type, &root, want);
}

static void test_rows_and_quotes(void **state)
{
    UNUSED_STATE(state);
    check_rows("inner/ranks", "rank,host,run_ns.min,run_ns.max,share,ok\n"
                              "0,\"a,b\",1,2,0.1,true\n"
                              ",\"say \"\"hi\"\"\nthere\",3,4,,false\n"
                              "2,\"\",5,6,1,true\n"
                              "3,,7,8,0,true\n"
                              "4,\xc3\xa9\xef\xbf\xbd,9,10,0,true\n");
}

static void test_rows_through_a_list(void **state)
{
    UNUSED_STATE(state);
    check_rows("inner/ranks/causes",
               "ranks.rank,ranks.host,ranks.run_ns.min,ranks.run_ns.max,ranks.share,ranks.ok,"
               "cause,total_ns\n"
               "0,\"a,b\",1,2,0.1,true,\"late, launch\",5\n"
               "0,\"a,b\",1,2,0.1,true,sync,6\n"
               ",\"say \"\"hi\"\"\nthere\",3,4,,false,copy,7\n");
}

static void test_rows_of_plain_values(void **state)
{
    UNUSED_STATE(state);
    check_rows("inner/ranks/notes", "ranks.rank,ranks.host,ranks.run_ns.min,ranks.run_ns.max,"
                                    "ranks.share,ranks.ok,notes\n"
                                    "0,\"a,b\",1,2,0.1,true,one\n"
                                    "0,\"a,b\",1,2,0.1,true,\"two \"\"2\"\"\"\n");
}

static void test_the_record_is_the_row(void **state)
{
    UNUSED_STATE(state);
    check_rows(NULL, "window_ns\n628000000\n");
    check_rows("nowhere", "window_ns\n628000000\n");
}

int test_print_csv(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_and_quotes),
        cmocka_unit_test(test_rows_through_a_list),
        cmocka_unit_test(test_rows_of_plain_values),
        cmocka_unit_test(test_the_record_is_the_row),
    };

    return cmocka_run_group_tests_name("print_csv", tests, NULL, NULL);
}
