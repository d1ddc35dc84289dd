/* SPDX-License-Identifier: Apache-2.0 */
/* Results: values by path, rows of lists, printing to a descriptor. */
#include "result/result.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

struct count {
    const char *key;
    int64_t value;
};

static const struct rp_field count_fields[] = {
    RP_FIELD(struct count, key, STR, NONE, NULL, "d", 0),
    RP_FIELD(struct count, value, I64, COUNT, NULL, "d", 0), RP_FIELD_END};
static const struct rp_type count_type = {"count", sizeof(struct count), count_fields, NULL};

struct health {
    int64_t events;
};

static const struct rp_field health_fields[] = {
    RP_FIELD(struct health, events, I64, COUNT, "events", "d", 0), RP_FIELD_END};
static const struct rp_type health_type = {"health", sizeof(struct health), health_fields, NULL};

struct file {
    const char *path;
    struct health health;
    size_t nopcodes, nshape;
    struct count *opcodes;
    int64_t *shape;
};

static const struct rp_field file_fields[] = {
    RP_FIELD(struct file, path, STR, NONE, "path", "d", 0),
    RP_FIELD_RECORD(struct file, health, &health_type, "health", "d", 0),
    RP_FIELD_MAP(struct file, opcodes, &count_type, "opcodes", "d", 0),
    RP_FIELD_LIST(struct file, shape, &rp_type_int, "shape", "d", 0), RP_FIELD_END};
static const struct rp_type file_type = {"file", sizeof(struct file), file_fields, NULL};

struct info {
    size_t nfiles;
    struct file *files;
};

static const struct rp_field info_fields[] = {
    RP_FIELD_LIST(struct info, files, &file_type, "files", "d", 0), RP_FIELD_END};
static const struct rp_type info_type = {"info", sizeof(struct info), info_fields, "files"};

static struct rp_result *make(void)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *result;
    struct info *root;

    assert_ok(rp_result_new(&info_type, &result, &err), &err);
    root = result->root;
    assert_int_equal(root->nfiles, 0); /* cleared */
    root->nfiles = 2;
    root->files = RP_ARENA_NEW(&result->arena, struct file, 2);
    root->files[1].path = "b.json";
    root->files[1].health.events = 42;
    root->files[1].nshape = 2;
    root->files[1].shape = RP_ARENA_NEW(&result->arena, int64_t, 2);
    root->files[1].shape[1] = 7;
    root->files[1].nopcodes = 3;
    root->files[1].opcodes = RP_ARENA_NEW(&result->arena, struct count, 3);
    root->files[1].opcodes[0] = (struct count){"add", 1};
    root->files[1].opcodes[1] = (struct count){"jit(f)", 2};
    root->files[1].opcodes[2] = (struct count){"jit(f)/add", 3};
    result->answer = 1;
    return result;
}

static int64_t value_at(const struct rp_result *result, const char *path)
{
    struct rp_cursor at;

    if (!rp_result_find(result, path, &at) || !at.field)
        fail_msg("no value at '%s'", path);
    return *(const int64_t *)(const void *)((const char *)at.at + at.field->offset);
}

static void test_find_values(void **state)
{
    struct rp_result *result = make();
    struct rp_cursor at;

    UNUSED_STATE(state);
    assert_ptr_equal(rp_result_type(result), &info_type);
    assert_int_equal(rp_result_answer(result), 1);
    assert_int_equal(value_at(result, "files/1/health/events"), 42);
    assert_int_equal(value_at(result, "files/1/shape/1"), 7);
    assert_int_equal(value_at(result, "files/1/opcodes/add"), 1);
    assert_int_equal(value_at(result, "files/1/opcodes/jit(f)"), 2);
    assert_int_equal(value_at(result, "files/1/opcodes/jit(f)/add"), 3);

    assert_true(rp_result_find(result, "", &at));
    assert_ptr_equal(at.at, rp_result_borrow_root(result));
    assert_null(at.field);
    assert_true(rp_result_find(result, "files", &at));
    assert_ptr_equal(at.field, &info_fields[0]);
    assert_ptr_equal(at.at, rp_result_borrow_root(result));
    assert_true(rp_result_find(result, "files/1/health", &at));
    assert_ptr_equal(at.type, &health_type);
    assert_null(at.field);
    rp_result_free(result);
}

static void test_find_nothing(void **state)
{
    static const char *const paths[] = {
        "file",
        "filess",
        "files/2",
        "files/-1",
        "files/01x",
        "files/x",
        "files/1/nope",
        "files/1/path/0",
        "files/1/health/events/0",
        "files/1/shape/2",
        "files/1/opcodes/sub",
        "files/99999999999999999999999",
        "/files",
        "files//0",
        "files/",
        "files/1/path.",
        "files/1/shape/1/",
        "files/1/opcodes/add/",
    };
    struct rp_result *result = make();
    struct rp_cursor at;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (rp_result_find(result, paths[i], &at))
            fail_msg("found '%s'", paths[i]);
    rp_result_free(result);
}

struct cell {
    int64_t count, unknown;
    uint64_t big, small;
    double share, none;
    bool good;
    const char *name, *nameless;
};

static const struct rp_field cell_fields[] = {
    RP_FIELD(struct cell, count, I64, COUNT, "", "d", 0),
    RP_FIELD(struct cell, unknown, I64, COUNT, "", "d", RP_NULLABLE),
    RP_FIELD(struct cell, big, U64, COUNT, "", "d", 0),
    RP_FIELD(struct cell, small, U64, COUNT, "", "d", 0),
    RP_FIELD(struct cell, share, F64, RATIO, "", "d", 0),
    RP_FIELD(struct cell, none, F64, NONE, "", "d", 0),
    RP_FIELD(struct cell, good, BOOL, NONE, "", "d", 0),
    RP_FIELD(struct cell, name, STR, NONE, "", "d", 0),
    RP_FIELD(struct cell, nameless, STR, NONE, "", "d", 0),
    RP_FIELD_END};
static const struct rp_type cell_type = {"cell", sizeof(struct cell), cell_fields, NULL};

static struct rp_result *make_cell(void)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *result;

    assert_ok(rp_result_new(&cell_type, &result, &err), &err);
    *(struct cell *)result->root = (struct cell){.count = -7,
                                                 .unknown = RP_ABSENT_I64,
                                                 .big = UINT64_MAX,
                                                 .small = 9,
                                                 .share = 0.25,
                                                 .none = NAN,
                                                 .good = true,
                                                 .name = "n"};
    return result;
}

static void test_getters(void **state)
{
    struct rp_result *result = make_cell();
    const char *text = "kept";
    bool truth = false;
    int64_t i = 5;
    double f = 5;
    size_t n = 5;

    UNUSED_STATE(state);
    assert_true(rp_result_i64(result, "count", &i) && i == -7);
    assert_true(rp_result_i64(result, "small", &i) && i == 9);
    assert_true(rp_result_f64(result, "share", &f) && f == 0.25);
    assert_true(rp_result_f64(result, "count", &f) && f == -7);
    assert_true(rp_result_f64(result, "big", &f) && f == 18446744073709551616.0);
    assert_true(rp_result_bool(result, "good", &truth) && truth);
    assert_true(rp_result_text(result, "name", &text) && !strcmp(text, "n"));

    i = 5, f = 5, truth = true, text = "kept";
    assert_false(rp_result_i64(result, "unknown", &i));
    assert_false(rp_result_i64(result, "big", &i)); /* does not fit */
    assert_false(rp_result_i64(result, "share", &i));
    assert_false(rp_result_i64(result, "name", &i));
    assert_false(rp_result_i64(result, "absent", &i));
    assert_false(rp_result_i64(result, "", &i));
    assert_false(rp_result_f64(result, "none", &f));
    assert_false(rp_result_f64(result, "unknown", &f));
    assert_false(rp_result_f64(result, "name", &f));
    assert_false(rp_result_bool(result, "count", &truth));
    assert_false(rp_result_text(result, "nameless", &text));
    assert_false(rp_result_text(result, "count", &text));
    assert_false(rp_result_count(result, "count", &n));
    assert_true(i == 5 && f == 5 && truth && n == 5 && !strcmp(text, "kept"));
    rp_result_free(result);
}

static void test_dots(void **state)
{
    struct rp_result *result = make();
    int64_t i = 0;
    size_t n = 0;

    UNUSED_STATE(state);
    assert_true(rp_result_i64(result, "files.1.health.events", &i) && i == 42);
    assert_true(rp_result_i64(result, "files/1.shape.1", &i) && i == 7);
    assert_true(rp_result_i64(result, "files.1.opcodes.jit(f)/add", &i) && i == 3);
    assert_true(rp_result_count(result, "files", &n) && n == 2);
    assert_true(rp_result_count(result, "files.1.opcodes", &n) && n == 3);
    assert_false(rp_result_i64(result, "files..1", &i));
    assert_false(rp_result_i64(result, ".files", &i));
    rp_result_free(result);
}

static void test_rows(void **state)
{
    struct rp_result *result = make();
    struct rp_rows files, inner;
    const char *path = NULL;
    int64_t sum = 0, i = 0;

    UNUSED_STATE(state);
    assert_true(rp_result_rows(result, "files", &files));
    assert_int_equal(files.n, 2);
    assert_null(rp_rows_key(&files));
    assert_true(rp_rows_next(&files));
    assert_int_equal(files.i, 0);
    assert_false(rp_row_text(&files.row, "path", &path)); /* null */
    assert_true(rp_row_rows(&files.row, "shape", &inner));
    assert_false(rp_rows_next(&inner)); /* an empty list */
    assert_true(rp_rows_next(&files));
    assert_true(rp_row_text(&files.row, "path", &path));
    assert_string_equal(path, "b.json");
    assert_true(rp_row_i64(&files.row, "health.events", &i) && i == 42);
    assert_true(rp_row_rows(&files.row, "shape", &inner));
    while (rp_rows_next(&inner))
        sum += rp_row_i64(&inner.row, "", &i) ? i : 1000;
    assert_int_equal(sum, 7);
    assert_true(rp_row_rows(&files.row, "opcodes", &inner));
    assert_null(rp_rows_key(&inner)); /* before the first */
    while (rp_rows_next(&inner)) {
        assert_true(rp_row_i64(&inner.row, "", &i));
        assert_int_equal(i, (int64_t)inner.i + 1);
    }
    assert_string_equal(rp_rows_key(&inner), "jit(f)/add");
    assert_null(rp_rows_key(&files)); /* a list has none */
    assert_false(rp_rows_next(&files));
    assert_false(rp_rows_next(&files));
    assert_int_equal(files.i, 1); /* the last row stays */
    assert_false(rp_result_rows(result, "files.1.path", &inner));
    assert_false(rp_result_rows(result, "nothing", &inner));
    assert_false(rp_result_rows(result, "files.1.health", &inner));
    rp_result_free(result);
}

static void test_fields(void **state)
{
    UNUSED_STATE(state);
    assert_ptr_equal(rp_type_field(&file_type, 0), &file_fields[0]);
    assert_ptr_equal(rp_type_field(&file_type, 3), &file_fields[3]);
    assert_null(rp_type_field(&file_type, 4));
    assert_null(rp_type_field(&file_type, 400));
}

static void test_print_to_descriptor(void **state)
{
    struct rp_print_options options = {.struct_size = sizeof options, .format = RP_PRINT_CSV};
    struct rp_result *result = make();
    struct rp_err err = RP_ERR_INIT;
    char got[200];
    ssize_t n;
    int fd[2];

    UNUSED_STATE(state);
    assert_int_equal(pipe(fd), 0);
    assert_ok(rp_result_print(result, &options, fd[1], &err), &err);
    n = read(fd[0], got, sizeof got - 1);
    got[n > 0 ? n : 0] = '\0';
    assert_string_equal(got, "path,health.events\n,0\nb.json,42\n");
    options.format = (enum rp_print_format)77;
    assert_code(rp_result_print(result, &options, fd[1], &err), RP_USAGE);
    options.struct_size = 0; /* nothing is known: a table */
    assert_ok(rp_result_print(result, &options, fd[1], &err), &err);
    close(fd[0]);
    close(fd[1]);
    rp_result_free(result);
    rp_result_free(NULL);
}

int test_find(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find_values),
        cmocka_unit_test(test_find_nothing),
        cmocka_unit_test(test_getters),
        cmocka_unit_test(test_dots),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_print_to_descriptor),
    };

    return cmocka_run_group_tests_name("find", tests, NULL, NULL);
}
