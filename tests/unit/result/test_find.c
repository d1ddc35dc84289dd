/* SPDX-License-Identifier: Apache-2.0 */
/* Results: made, found in by path, printed to a descriptor. */
#include "result/result.h"
#include "unit.h"

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
    };
    struct rp_result *result = make();
    struct rp_cursor at;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (rp_result_find(result, paths[i], &at))
            fail_msg("found '%s'", paths[i]);
    rp_result_free(result);
}

static void test_print_to_descriptor(void **state)
{
    struct rp_print_options options = {sizeof options, RP_PRINT_CSV, 0, 0};
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
        cmocka_unit_test(test_print_to_descriptor),
    };

    return cmocka_run_group_tests_name("find", tests, NULL, NULL);
}
