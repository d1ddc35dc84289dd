/* SPDX-License-Identifier: Apache-2.0 */
/* Data of pages: strings, records with their descriptions, numbers as bytes, frames. */
#include "draw/web.h"
#include "io/escaped.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

static struct rp_out *out;

static void begin(void)
{
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_out_open_memory(&out, &err), &err);
}

static void expect(const char *want)
{
    struct rp_err err = RP_ERR_INIT;
    size_t n;

    assert_string_equal(rp_out_borrow_memory(out, &n), want);
    assert_ok(rp_out_close(out, &err), &err);
}

static void strings_are_safe_in_scripts(void **state)
{
    UNUSED_STATE(state);
    begin();
    rp_out_escaped(out, RP_IN_SCRIPT, "a</script>&\"\\\n\x7f\xc3\xa9\xff\xe2\x80\xa9");
    rp_out_escaped(out, RP_IN_SCRIPT, NULL);
    expect("\"a\\u003c/script\\u003e\\u0026\\\"\\\\\\n\\u007f\xc3\xa9\\ufffd\\u2029\"null");
}

static void bytes(const uint64_t *numbers, size_t n, const char *want)
{
    struct rp_web_bytes b;

    begin();
    rp_web_bytes_begin(&b, out);
    for (size_t i = 0; i < n; i++)
        rp_web_bytes_number(&b, numbers[i]);
    rp_web_bytes_end(&b);
    expect(want);
}

static void numbers_become_base64(void **state)
{
    UNUSED_STATE(state);
    bytes(NULL, 0, "\"\"");
    bytes((const uint64_t[]){'M'}, 1, "\"TQ==\"");
    bytes((const uint64_t[]){'M', 'a'}, 2, "\"TWE=\"");
    bytes((const uint64_t[]){'M', 'a', 'n'}, 3, "\"TWFu\"");
    bytes((const uint64_t[]){300}, 1, "\"rAI=\""); /* ac 02 */
    bytes((const uint64_t[]){UINT64_MAX}, 1, "\"////////////AQ==\"");
}

struct item {
    const char *name;
    double share;
};

struct root {
    int64_t total_ns, hidden;
    size_t nitems, nnotes;
    struct item *items;
    const char **notes;
    struct item inner;
};

static const struct rp_field item_fields[] = {
    RP_FIELD(struct item, name, STR, NONE, "name", "its name", RP_SHORTEN),
    RP_FIELD(struct item, share, F64, RATIO, NULL, "of all", 0), RP_FIELD_END};
static const struct rp_type item_type = {"item", sizeof(struct item), item_fields, NULL};
static const struct rp_field root_fields[] = {
    RP_FIELD(struct root, total_ns, I64, NS, "total", "a sum", 0),
    RP_FIELD(struct root, hidden, I64, COUNT, NULL, "a count", RP_NULLABLE),
    RP_FIELD_LIST(struct root, items, &item_type, "items", "a list", 0),
    RP_FIELD_LIST(struct root, notes, &rp_type_string, "notes", "texts", 0),
    RP_FIELD_RECORD(struct root, inner, &item_type, "inner", "a record", 0),
    RP_FIELD_END};
static const struct rp_type root_type = {"root", sizeof(struct root), root_fields, NULL};

static bool titled(const struct rp_field *field)
{
    return field->title != NULL;
}

static void records_carry_their_fields(void **state)
{
    struct item items[] = {{"a", 0.5}, {NULL, NAN}};
    const char *notes[] = {"x", "y"};
    struct root root = {7, RP_ABSENT_I64, 2, 2, items, notes, {"z", 1}};
#define ITEM_FIELDS \
    "{\"fields\":[[\"name\",\"name\",\"text\",\"its name\",2],[\"share\",null,\"ratio\",\"of all\",0]],"

    UNUSED_STATE(state);
    begin();
    rp_web_record(out, &root_type, &root, titled);
    expect("{\"fields\":[[\"total_ns\",\"total\",\"ns\",\"a sum\",0],"
           "[\"items\",\"items\",\"text\",\"a list\",0],[\"notes\",\"notes\",\"text\",\"texts\",0],"
           "[\"inner\",\"inner\",\"text\",\"a record\",0]],\"row\":[7," ITEM_FIELDS
           "\"rows\":[[\"a\",0.5],\n[null,null]]},[\"x\",\"y\"]," ITEM_FIELDS
           "\"row\":[\"z\",1]}]}");
    begin();
    rp_web_record(out, &item_type, &items[1], NULL);
    expect(ITEM_FIELDS "\"row\":[null,null]}");
}

static void put_count(struct rp_out *to, void *user)
{
    rp_out_printf(to, "[%d]", ++*(int *)user);
}

static void frames_are_filled(void **state)
{
    int n = 0;
    static const char frame[] =
        "<!--title-->a<!--css-->b<!--js--> <!--data--><!--other--><!--data--> <!-- not closed";
    const struct rp_embedded texts[] = {{frame, 0, sizeof frame - 1}, {"x{}", 0, 3}, {"y()", 0, 3}};
    struct rp_web_page page = {
        .frame = &texts[0], .css = &texts[1], .js = &texts[2], .put_data = put_count, .user = &n};

    UNUSED_STATE(state);
    begin();
    assert_int_equal(rp_web_put_page(out, &page, NULL), RP_OK);
    expect("ax{}by() [1][2] <!-- not closed");
    assert_int_equal(n, 2);
}

int test_web(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_safe_in_scripts),
        cmocka_unit_test(numbers_become_base64),
        cmocka_unit_test(records_carry_their_fields),
        cmocka_unit_test(frames_are_filled),
    };

    return cmocka_run_group_tests_name("web", tests, NULL, NULL);
}
