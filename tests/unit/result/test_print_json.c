/* SPDX-License-Identifier: Apache-2.0 */
/* JSON: whole outputs of records with every type of field, and every byte that needs an escape. */
#include "result/result.h"
#include "unit.h"

#include <math.h>
#include <stdbool.h>

static void check_output(const struct rp_type *type, const void *root, const char *want)
{
    struct rp_print_options options = {.struct_size = sizeof options, .format = RP_PRINT_JSON};
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    size_t n;

    assert_ok(rp_out_open_memory(&out, &err), &err);
    rp_print_record(type, root, &options, out);
    assert_string_equal(rp_out_borrow_memory(out, &n), want);
    assert_ok(rp_out_close(out, &err), &err);
}

struct scalars {
    bool yes, no;
    int64_t small, absent, least;
    uint64_t large;
    double third, whole, nan, inf;
    const char *text, *none;
};

static const struct rp_field scalar_fields[] = {
    RP_FIELD(struct scalars, yes, BOOL, NONE, NULL, "d", 0),
    RP_FIELD(struct scalars, no, BOOL, NONE, NULL, "d", 0),
    RP_FIELD(struct scalars, small, I64, NONE, NULL, "d", 0),
    RP_FIELD(struct scalars, absent, I64, NONE, NULL, "d", RP_NULLABLE),
    RP_FIELD(struct scalars, least, I64, NONE, NULL, "d", 0),
    RP_FIELD(struct scalars, large, U64, NONE, NULL, "d", 0),
    RP_FIELD(struct scalars, third, F64, NONE, NULL, "d", 0),
    RP_FIELD(struct scalars, whole, F64, NONE, NULL, "d", 0),
    RP_FIELD(struct scalars, nan, F64, NONE, NULL, "d", 0),
    RP_FIELD(struct scalars, inf, F64, NONE, NULL, "d", 0),
    RP_FIELD(struct scalars, text, STR, NONE, NULL, "d", 0),
    RP_FIELD(struct scalars, none, STR, NONE, NULL, "d", 0),
    RP_FIELD_END};
static const struct rp_type scalars_type = {"scalars", sizeof(struct scalars), scalar_fields, NULL};

static void test_scalars(void **state)
{
    struct scalars root = {true,      false, -7,  INT64_MIN, INT64_MIN,          UINT64_MAX,
                           1.0 / 3.0, 2e21,  NAN, INFINITY,  "a \"b\"\\\n\x01/", NULL};

    UNUSED_STATE(state);
    check_output(&scalars_type, &root,
                 "{\n"
                 "  \"schema\": \"reprise.scalars/1\",\n"
                 "  \"yes\": true,\n"
                 "  \"no\": false,\n"
                 "  \"small\": -7,\n"
                 "  \"absent\": null,\n"
                 "  \"least\": -9223372036854775808,\n"
                 "  \"large\": 18446744073709551615,\n"
                 "  \"third\": 0.3333333333333333,\n"
                 "  \"whole\": 2e+21,\n"
                 "  \"nan\": null,\n"
                 "  \"inf\": null,\n"
                 "  \"text\": \"a \\\"b\\\"\\\\\\n\\u0001/\",\n"
                 "  \"none\": null\n"
                 "}\n");
}

struct text {
    const char *text;
};

static const struct rp_field text_fields[] = {RP_FIELD(struct text, text, STR, NONE, NULL, "d", 0),
                                              RP_FIELD_END};
static const struct rp_type text_type = {"t", sizeof(struct text), text_fields, NULL};

static void check_text(const char *text, const char *want)
{
    struct text root = {text};
    char whole[200];

    snprintf(whole, sizeof whole, "{\n  \"schema\": \"reprise.t/1\",\n  \"text\": \"%s\"\n}\n",
             want);
    check_output(&text_type, &root, whole);
}

static void test_texts_are_always_valid(void **state)
{
    UNUSED_STATE(state);
    check_text("", "");
    check_text("\b\f\n\r\t\x1f\x7f", "\\b\\f\\n\\r\\t\\u001f\\u007f");
    check_text("größe 融合 \xf0\x9f\x94\xa5", "größe 融合 \xf0\x9f\x94\xa5");
    check_text("a\x80z", "a\\ufffdz");                   /* lone continuation */
    check_text("\xc0\xaf", "\\ufffd\\ufffd");            /* overlong */
    check_text("\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"); /* surrogate */
    check_text("\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd");
    check_text("\xe2\x82", "\\ufffd\\ufffd"); /* cut short */
    check_text("\xff\"", "\\ufffd\\\"");
    check_text("\xef\xbf\xbd", "\xef\xbf\xbd"); /* U+FFFD itself */
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

static const struct rp_field span_fields[] = {RP_FIELD(struct span, min, I64, NS, NULL, "d", 0),
                                              RP_FIELD(struct span, max, I64, NS, NULL, "d", 0),
                                              RP_FIELD_END};
static const struct rp_type span_type = {"span", sizeof(struct span), span_fields, NULL};

struct row {
    const char *name;
    struct span run_ns;
    size_t nnotes, ncounts;
    const char **notes;
    struct entry *counts;
};

static const struct rp_field row_fields[] = {
    RP_FIELD(struct row, name, STR, NONE, NULL, "d", 0),
    RP_FIELD_RECORD(struct row, run_ns, &span_type, NULL, "d", 0),
    RP_FIELD_LIST(struct row, notes, &rp_type_string, NULL, "d", 0),
    RP_FIELD_MAP(struct row, counts, &entry_type, NULL, "d", 0), RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct row), row_fields, NULL};

struct keyed {
    const char *key;
    int64_t min, max;
};

static const struct rp_field keyed_fields[] = {RP_FIELD(struct keyed, key, STR, NONE, NULL, "d", 0),
                                               RP_FIELD(struct keyed, min, I64, NS, NULL, "d", 0),
                                               RP_FIELD(struct keyed, max, I64, NS, NULL, "d", 0),
                                               RP_FIELD_END};
static const struct rp_type keyed_type = {"keyed", sizeof(struct keyed), keyed_fields, NULL};

struct tree {
    size_t nrows, nshape, nphases_ns;
    struct row *rows;
    double *shape;
    struct keyed *phases_ns;
};

static const struct rp_field tree_fields[] = {
    RP_FIELD_LIST(struct tree, rows, &row_type, NULL, "d", 0),
    RP_FIELD_LIST(struct tree, shape, &rp_type_number, NULL, "d", 0),
    RP_FIELD_MAP(struct tree, phases_ns, &keyed_type, NULL, "d", 0), RP_FIELD_END};
static const struct rp_type tree_type = {"tree", sizeof(struct tree), tree_fields, NULL};

static void test_nested(void **state)
{
    const char *notes[] = {"a note that is rather long, so that the row does not fit a line", "b"};
    struct entry counts[] = {{"add", 1}, {"a\"b", 2}};
    struct keyed phases[] = {{"forward", 1, 2}, {"backward", 3, 4}};
    double shape[] = {1, 2.5};
    struct row rows[] = {{"long", {1, 2}, 2, 2, notes, counts}, {"s", {3, 4}, 0, 0, NULL, NULL}};
    struct tree root = {2, 2, 2, rows, shape, phases};

    UNUSED_STATE(state);
    check_output(
        &tree_type, &root,
        "{\n"
        "  \"schema\": \"reprise.tree/1\",\n"
        "  \"rows\": [\n"
        "    {\n"
        "      \"name\": \"long\",\n"
        "      \"run_ns\": {\"min\": 1, \"max\": 2},\n"
        "      \"notes\": [\"a note that is rather long, so that the row does not fit a line\", "
        "\"b\"],\n"
        "      \"counts\": {\"add\": 1, \"a\\\"b\": 2}\n"
        "    },\n"
        "    {\"name\": \"s\", \"run_ns\": {\"min\": 3, \"max\": 4}, \"notes\": [], \"counts\": "
        "{}}\n"
        "  ],\n"
        "  \"shape\": [1, 2.5],\n"
        "  \"phases_ns\": {\"forward\": {\"min\": 1, \"max\": 2}, \"backward\": {\"min\": 3, "
        "\"max\": 4}}\n"
        "}\n");
}

static void test_long_map_is_broken(void **state)
{
    struct keyed phases[] = {{"a phase with a name of forty characters..", 1, 2},
                             {"another phase with a very long name......", 3, 4}};
    struct tree root = {0, 0, 2, NULL, NULL, phases};

    UNUSED_STATE(state);
    check_output(&tree_type, &root,
                 "{\n"
                 "  \"schema\": \"reprise.tree/1\",\n"
                 "  \"rows\": [],\n"
                 "  \"shape\": [],\n"
                 "  \"phases_ns\": {\n"
                 "    \"a phase with a name of forty characters..\": {\"min\": 1, \"max\": 2},\n"
                 "    \"another phase with a very long name......\": {\"min\": 3, \"max\": 4}\n"
                 "  }\n"
                 "}\n");
}

int test_print_json(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_texts_are_always_valid),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_long_map_is_broken),
    };

    return cmocka_run_group_tests_name("print_json", tests, NULL, NULL);
}
