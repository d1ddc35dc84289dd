/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of result types: one broken type for each rule, and what the message says. */
#include "unit.h"

#include "type_check.h"

struct inner {
    int64_t min, n;
};

struct pair {
    const char *key;
    int64_t value;
};

struct row {
    const char *name;
    int64_t a, b;
    double f;
    size_t nitems;
    void *items;
    struct inner inner;
};

#define OFFSET(member) offsetof(struct row, member)

static const struct rp_field inner_fields[] = {RP_FIELD(struct inner, min, I64, NS, "min", "d", 0),
                                               RP_FIELD(struct inner, n, I64, COUNT, "n", "d", 0),
                                               RP_FIELD_END};
static const struct rp_type inner_type = {"inner", sizeof(struct inner), inner_fields, NULL};

static const struct rp_field pair_fields[] = {
    RP_FIELD(struct pair, key, STR, NONE, NULL, "d", 0),
    RP_FIELD(struct pair, value, I64, BYTES, NULL, "d", 0), RP_FIELD_END};
static const struct rp_type pair_type = {"pair", sizeof(struct pair), pair_fields, NULL};

static const char *check_rows(const struct rp_field *fields, const char *rows, char why[200])
{
    struct rp_type type = {"row", sizeof(struct row), fields, rows};

    return rp_type_check(&type, why, 200) ? "" : why;
}

/* What is wrong with a type of one field. */
static const char *check_one(struct rp_field field, char why[200])
{
    struct rp_field fields[] = {field, RP_FIELD_END};

    return check_rows(fields, NULL, why);
}

#define SCALAR(key_, type_, unit_)                                                               \
    ((struct rp_field)RP_FIELD_(key_, "t", RP_T_##type_, RP_UNIT_##unit_, 0, OFFSET(a), 0, NULL, \
                                "d"))
#define INSIDE(key_, type_, member_, item_)                                                \
    ((struct rp_field)RP_FIELD_(key_, "t", RP_T_##type_, RP_UNIT_NONE, 0, OFFSET(member_), \
                                OFFSET(nitems), item_, "d"))

static void test_good(void **state)
{
    char why[200];

    UNUSED_STATE(state);
    assert_string_equal(check_one(SCALAR("total_ns", I64, NS), why), "");
    assert_string_equal(check_one(SCALAR("total_ns", F64, NS), why), "");
    assert_string_equal(check_one(SCALAR("size_bytes", U64, BYTES), why), "");
    assert_string_equal(check_one(SCALAR("bytes", U64, BYTES), why), "");
    assert_string_equal(check_one(SCALAR("busy_share", F64, RATIO), why), "");
    assert_string_equal(check_one(SCALAR("busy_ratio", F64, RATIO), why), "");
    assert_string_equal(check_one(SCALAR("bus_bytes_per_s", F64, BPS), why), "");
    assert_string_equal(check_one(SCALAR("peak_flops_per_s", F64, FLOPS), why), "");
    assert_string_equal(check_one(SCALAR("clock_hz", I64, HZ), why), "");
    assert_string_equal(check_one(SCALAR("X", I64, COUNT), why), "");
    assert_string_equal(check_one(INSIDE("run_ns", RECORD, inner, &inner_type), why), "");
    assert_string_equal(check_one(INSIDE("sizes_bytes", MAP, items, &pair_type), why), "");
    assert_string_equal(check_one(INSIDE("names", LIST, items, &rp_type_string), why), "");
    assert_true(rp_type_check(&rp_type_string, why, sizeof why));
}

static void test_units(void **state)
{
    char why[200];

    UNUSED_STATE(state);
    assert_string_equal(
        check_one(SCALAR("total", I64, NS), why),
        "row.total: the key, or that of an enclosing record, list or map, must end in '_ns'");
    assert_string_equal(check_one(SCALAR("total_ns", I64, COUNT), why),
                        "row.total_ns: the key ends in '_ns', which does not match its unit");
    assert_string_equal(check_one(SCALAR("x_bytes_per_s", I64, BYTES), why),
                        "row.x_bytes_per_s: the key ends in '_bytes_per_s', which does not match "
                        "its unit");
    assert_string_equal(check_one(SCALAR("total_ns", STR, NONE), why),
                        "row.total_ns: the key ends in a unit, but the field is not a number");
    assert_string_equal(check_one(SCALAR("ok", BOOL, COUNT), why),
                        "row.ok: only numbers have a unit");
    assert_string_equal(
        check_one(INSIDE("run", RECORD, inner, &inner_type), why),
        "row.run.min: the key, or that of an enclosing record, list or map, must end in '_ns'");
    assert_string_equal(
        check_one(INSIDE("sizes_ns", MAP, items, &pair_type), why),
        "row.sizes_ns.value: the key, or that of an enclosing record, list or map, must end in "
        "'_bytes'");
}

static void test_keys_and_docs(void **state)
{
    struct rp_field twice[] = {SCALAR("a", I64, NONE), SCALAR("b", I64, NONE),
                               SCALAR("a", I64, NONE), RP_FIELD_END};
    struct rp_field undocumented[] = {SCALAR("a", I64, NONE), SCALAR("b", I64, NONE), RP_FIELD_END};
    char why[200];

    UNUSED_STATE(state);
    undocumented[1].doc = NULL;
    assert_string_equal(check_rows(twice, NULL, why), "row.a: duplicate key");
    assert_string_equal(check_rows(undocumented, NULL, why), "row.b: the field has no doc");
    undocumented[1].doc = "";
    assert_string_equal(check_rows(undocumented, NULL, why), "row.b: the doc is empty");
    assert_string_equal(check_one(SCALAR("a-b", I64, NONE), why),
                        "row.a-b: a key consists of letters, digits and '_'");
    assert_string_equal(check_one(SCALAR("", I64, NONE), why),
                        "row.: a key consists of letters, digits and '_'");
    assert_string_equal(check_one(SCALAR("schema", I64, NONE), why),
                        "row.schema: the key is reserved");
    twice[0].key = NULL;
    assert_string_equal(check_rows(twice, NULL, why),
                        "row.(value): only the single scalar of a plain type has no key");
}

static void test_places(void **state)
{
    struct rp_field field = SCALAR("a", I64, NONE);
    char why[200];

    UNUSED_STATE(state);
    field.offset = sizeof(struct row) - 4;
    assert_contains(check_one(field, why), "row.a: lies outside the struct");
    field.offset = 4;
    assert_contains(check_one(field, why), "row.a: lies outside the struct");
    field = INSIDE("inner_ns", RECORD, inner, &inner_type);
    field.offset += 8;
    assert_contains(check_one(field, why), "lies outside the struct");
    field = INSIDE("items", LIST, items, &rp_type_int);
    field.count_offset = sizeof(struct row);
    assert_contains(check_one(field, why), "lies outside the struct");
    field.item = NULL;
    assert_string_equal(check_one(field, why), "row.items: the type of the items is missing");
    assert_string_equal(check_one(INSIDE("m_ns", MAP, items, &inner_type), why),
                        "row.m_ns: a map's item is a text, the key, and at least one value");
}

static const struct rp_field named_fields[] = {RP_FIELD(struct row, name, STR, NONE, NULL, "d", 0),
                                               RP_FIELD(struct row, a, I64, COUNT, "a", "d", 0),
                                               RP_FIELD(struct row, b, I64, COUNT, NULL, "d", 0),
                                               RP_FIELD_END};
static const struct rp_type named_type = {"named", sizeof(struct row), named_fields, NULL};

static void test_columns(void **state)
{
    static const char many[] =
        "a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, "
        "a, a:last";
    struct rp_field field = INSIDE("items", LIST, items, &named_type);
    char why[200];

    UNUSED_STATE(state);
    field.columns = "a+, b~*-:other, name:whole";
    assert_string_equal(check_one(field, why), "");
    field.columns = "a, c";
    assert_contains(check_one(field, why), "row.items: the column 'c' is not a field");
    field.columns = "a,  b+";
    assert_contains(check_one(field, why), "row.items: the column 'b' is not a field");
    field.columns = many;
    assert_contains(check_one(field, why), "row.items: the column 'a:last' is not a field");
}

static void test_rows_path(void **state)
{
    struct rp_field fields[] = {SCALAR("a", I64, NONE), INSIDE("items", LIST, items, &inner_type),
                                INSIDE("in_ns", RECORD, inner, &inner_type), RP_FIELD_END};
    char why[200];

    UNUSED_STATE(state);
    fields[1].key = "items_ns";
    assert_string_equal(check_rows(fields, "items_ns", why), "");
    assert_string_equal(check_rows(fields, "a", why), "row: rows 'a' does not lead to a list");
    assert_string_equal(check_rows(fields, "in_ns", why),
                        "row: rows 'in_ns' does not lead to a list");
    assert_string_equal(check_rows(fields, "items_ns/x", why),
                        "row: rows 'items_ns/x' does not lead to a list");
}

struct node {
    const char *name;
    size_t nchildren;
    struct node *children;
};

static const struct rp_type node_type;
static const struct rp_field node_fields[] = {
    RP_FIELD(struct node, name, STR, NONE, "name", "d", 0),
    RP_FIELD_LIST(struct node, children, &node_type, "children", "d", RP_BLOCKS), RP_FIELD_END};
static const struct rp_type node_type = {"node", sizeof(struct node), node_fields, NULL};

static void test_a_type_inside_itself(void **state)
{
    char why[8];

    UNUSED_STATE(state);
    assert_true(rp_type_check(&node_type, why, sizeof why));
}

static void test_a_short_buffer(void **state)
{
    struct rp_field fields[] = {SCALAR("total", I64, NS), RP_FIELD_END};
    struct rp_type type = {"row", sizeof(struct row), fields, NULL};
    char why[6];

    UNUSED_STATE(state);
    assert_false(rp_type_check(&type, why, sizeof why));
    assert_string_equal(why, "row.t");
    assert_false(rp_type_check(&type, NULL, 0));
}

int test_check(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_keys_and_docs),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_rows_path),
        cmocka_unit_test(test_a_type_inside_itself),
        cmocka_unit_test(test_a_short_buffer),
    };

    return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
