/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of JSON: what is there and what is not, records by rows, one value after the other. */
#include "io/json_tree.h"
#include "unit.h"

static const struct rp_json_node *parse(const char *text, struct rp_arena *arena)
{
    const struct rp_json_node *root;
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_json_tree_parse("text", text, strlen(text), arena, &root, &err), &err);
    return root;
}

static void values_by_key(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    const struct rp_json_node *root, *list;
    int64_t sum = 0;

    UNUSED_STATE(state);
    root =
        parse("{\"a\\u0041\": \"x\\ny\", \"n\": -7, \"f\": 2.5, \"list\": [1, 2, \"3\"], \"n\": -8,"
              " \"yes\": true, \"no\": null, \"large\": 9223372036854775808}",
              &arena);
    assert_int_equal(root->n, 8);
    assert_string_equal(rp_json_text(rp_json_get(root, "aA")), "x\ny");
    assert_int_equal(rp_json_get(root, "aA")->len, 3);
    assert_int_equal(rp_json_int(rp_json_get(root, "n"), 0), -8); /* the last of equal keys */
    assert_int_equal(rp_json_int(rp_json_get(root, "f"), 5), 5);
    assert_int_equal(rp_json_int(rp_json_get(root, "large"), 5), 5);
    assert_true(rp_json_float(rp_json_get(root, "f"), 0) == 2.5);
    assert_int_equal(rp_json_get(root, "yes")->kind, RP_JSON_TRUE);
    assert_int_equal(rp_json_get(root, "no")->kind, RP_JSON_NULL);
    list = rp_json_get(root, "list");
    assert_int_equal(list->n, 3);
    RP_JSON_EACH(item, list)
    sum += rp_json_int(item, 10);
    assert_int_equal(sum, 13);
    /* what is not there has nothing in it */
    assert_int_equal(rp_json_get(rp_json_get(list, "a"), "b")->kind, RP_JSON_NONE);
    assert_string_equal(rp_json_get(root, "none")->text, "");
    assert_null(rp_json_text(rp_json_get(root, "n")));
    rp_arena_release(&arena);
}

static void texts_that_are_no_json(void **state)
{
    static const char *const texts[] = {"", "{", "{\"a\": [1, 2}", "[1] 2", "{\"a\" 1}"};
    struct rp_arena arena = RP_ARENA_INIT;
    const struct rp_json_node *root;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rp_err err = RP_ERR_INIT;

        assert_code(rp_json_tree_parse("text", texts[i], strlen(texts[i]), &arena, &root, &err),
                    RP_FORMAT);
    }
    rp_arena_release(&arena);
}

struct record {
    const char *name;
    int64_t size;
    bool known;
    const struct rp_json_node *items;
};

static const struct rp_json_row rows[] = {
    RP_JSON_ROW(struct record, name, STRING), RP_JSON_ROW(struct record, size, NUMBER),
    RP_JSON_ROW(struct record, known, TRUE), RP_JSON_ROW(struct record, items, ARRAY),
    RP_JSON_ROWS_END};

static void records_by_rows(void **state)
{
    static const struct {
        const char *text, *why;
    } wrong[] = {{"{\"name\": 1}", "'name' in the list is not a string"},
                 {"{\"size\": 1.5}", "'size' in the list is not an integer"},
                 {"{\"known\": 0}", "'known' in the list is not true or false"},
                 {"{\"items\": {}}", "'items' in the list is not a list"},
                 {"[]", "a value in the list is not an object"}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct record r = {.size = 4};

    UNUSED_STATE(state);
    assert_ok(rp_json_fill(parse("{\"name\": \"x\", \"size\": null, \"other\": {}, \"known\": true,"
                                 " \"items\": [1]}",
                                 &arena),
                           rows, "the list", &r, &err),
              &err);
    assert_string_equal(r.name, "x");
    assert_int_equal(r.size, 4); /* null: as it was */
    assert_true(r.known);
    assert_int_equal(r.items->n, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_code(rp_json_fill(parse(wrong[i].text, &arena), rows, "the list", &r, &err),
                    RP_FORMAT);
        assert_string_equal(err.text, wrong[i].why);
    }
    rp_arena_release(&arena);
}

static enum rp_code add_value(const struct rp_json_node *node, void *user)
{
    char *seen = user;

    snprintf(seen + strlen(seen), 64 - strlen(seen), "%s=%s ", node->key, node->text);
    return RP_OK;
}

static enum rp_code read_each(const char *text, enum rp_json_kind kind, char seen[64])
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;
    enum rp_code code;

    *seen = '\0';
    assert_ok(rp_input_open_memory("text", text, strlen(text), NULL, &in, &err), &err);
    code = rp_json_each(in, kind, add_value, seen, &err);
    rp_input_close(in);
    return code;
}

static void one_value_after_the_other(void **state)
{
    char seen[64];

    UNUSED_STATE(state);
    assert_code(read_each("{\"a\": 1, \"b\": \"2\"}", RP_JSON_OBJECT, seen), RP_OK);
    assert_string_equal(seen, "a=1 b=2 ");
    assert_code(read_each("[1, [2], 3]", RP_JSON_ARRAY, seen), RP_OK);
    assert_string_equal(seen, "=1 = =3 ");
    assert_code(read_each("[1, 2", RP_JSON_ARRAY, seen), RP_FORMAT);
    assert_code(read_each("[1]", RP_JSON_OBJECT, seen), RP_FORMAT);
    assert_code(read_each("", RP_JSON_OBJECT, seen), RP_FORMAT);
}

int test_json_tree(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_by_key),
        cmocka_unit_test(texts_that_are_no_json),
        cmocka_unit_test(records_by_rows),
        cmocka_unit_test(one_value_after_the_other),
    };

    return cmocka_run_group_tests_name("json_tree", tests, NULL, NULL);
}
