/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs: a file appears whole or not at all, memory holds what was written, and the first error
 * is the one that is told.
 */
#include "io/output.h"
#include "io_fixtures.h"

#include <dirent.h>

static size_t count_files(const char *folder)
{
    DIR *dir = opendir(folder);
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

static void assert_content(const char *path, const struct bytes *want)
{
    struct bytes have = file_get(path);

    assert_int_equal(have.n, want->n);
    assert_memory_equal(have.at, want->at, want->n);
    free(have.at);
}

static void a_file_appears_at_close(void **state)
{
    struct bytes text = bytes_text(200000);
    struct rp_err err = RP_ERR_INIT;
    char folder[128], path[160];
    struct rp_out *out;
    struct stat st;
    mode_t mask;

    UNUSED_STATE(state);
    mask = umask(022);
    folder_new(folder, sizeof folder);
    file_put(path, sizeof path, folder, "out.json", NULL, 0);
    assert_ok(rp_out_open(path, &out, &err), &err);
    for (size_t at = 0, step = 1; at < text.n; at += step, step = step * 2 + 1) {
        size_t n = text.n - at < step ? text.n - at : step;

        rp_out_write(out, text.at + at, n);
    }
    assert_int_equal(rp_out_position(out), text.n);
    assert_ok(rp_out_flush(out, &err), &err);
    assert_int_equal(access(path, F_OK), -1);
    assert_ok(rp_out_close(out, &err), &err);
    assert_content(path, &text);
    assert_int_equal(count_files(folder), 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    umask(mask);
    folder_remove(folder);
    free(text.at);
}

static void an_old_file_stays_until_then(void **state)
{
    struct bytes old = bytes_text(100), text = bytes_text(300);
    struct rp_err err = RP_ERR_INIT;
    char folder[128], path[160];
    struct rp_out *out;
    struct stat st;

    UNUSED_STATE(state);
    folder_new(folder, sizeof folder);
    file_put(path, sizeof path, folder, "out.json", old.at, old.n);
    assert_int_equal(chmod(path, 0640), 0);
    assert_ok(rp_out_open(path, &out, &err), &err);
    rp_out_write(out, text.at, text.n);
    assert_ok(rp_out_flush(out, &err), &err);
    assert_content(path, &old);
    rp_out_abandon(out);
    assert_content(path, &old);
    assert_int_equal(count_files(folder), 1);

    assert_ok(rp_out_open(path, &out, &err), &err);
    rp_out_write(out, text.at, text.n);
    assert_ok(rp_out_close(out, &err), &err);
    assert_content(path, &text);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(count_files(folder), 1);
    rp_out_abandon(NULL);
    folder_remove(folder);
    free(text.at);
    free(old.at);
}

static void links_and_pipes_are_written_in_place(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct bytes want = {(uint8_t *)(uintptr_t) "hello 42\n", 9, 9};
    char folder[128], path[160], link[160], piece[16];
    struct rp_out *out;
    struct stat st;
    int ends[2];

    UNUSED_STATE(state);
    folder_new(folder, sizeof folder);
    file_put(path, sizeof path, folder, "real", "old and longer", 14);
    file_put(link, sizeof link, folder, "link", NULL, 0);
    assert_int_equal(symlink("real", link), 0);
    assert_ok(rp_out_open(link, &out, &err), &err);
    rp_out_printf(out, "hello %d\n", 42);
    assert_ok(rp_out_close(out, &err), &err);
    assert_content(path, &want);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(count_files(folder), 2);

    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    assert_ok(rp_out_open(path, &out, &err), &err);
    rp_out_text(out, "through");
    rp_out_char(out, '!');
    assert_ok(rp_out_close(out, &err), &err);
    assert_int_equal(read(ends[0], piece, sizeof piece), 8);
    assert_memory_equal(piece, "through!", 8);
    close(ends[0]);
    close(ends[1]);
    folder_remove(folder);
}

static void memory_holds_it(void **state)
{
    struct bytes text = bytes_text(300000);
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    const char *have;
    char *longer;
    size_t n;

    UNUSED_STATE(state);
    assert_ok(rp_out_open_memory(&out, &err), &err);
    assert_string_equal(rp_out_borrow_memory(out, &n), "");
    assert_int_equal(n, 0);
    rp_out_text(out, "");
    rp_out_printf(out, "%s", "");
    for (int i = 0; i < 1000; i++)
        rp_out_printf(out, "%d,", i % 10);
    rp_out_write(out, text.at, text.n);
    longer = malloc(text.n + 1);
    assert_non_null(longer);
    memcpy(longer, text.at, text.n);
    longer[text.n] = '\0';
    rp_out_printf(out, "%s|", longer); /* far over any buffer */
    have = rp_out_borrow_memory(out, &n);
    assert_int_equal(n, 2000 + 2 * text.n + 1);
    assert_int_equal(strlen(have), n);
    assert_memory_equal(have, "0,1,2,", 6);
    assert_memory_equal(have + 2000 + text.n, text.at, text.n);
    assert_int_equal(rp_out_position(out), n);
    assert_ok(rp_out_flush(out, &err), &err);
    assert_ok(rp_out_close(out, &err), &err);
    free(longer);
    free(text.at);
}

static void the_first_error_sticks(void **state)
{
    struct bytes text = bytes_text(100000);
    struct rp_err err = RP_ERR_INIT;
    char folder[128], path[160];
    struct rp_out *out;

    UNUSED_STATE(state);
    assert_code(rp_out_open("/nowhere/x/out", &out, &err), RP_IO);
    assert_contains(err.text, "cannot write '/nowhere/x/out': No such file");
    assert_null(out);
    folder_new(folder, sizeof folder);
    assert_code(rp_out_open(folder, &out, &err), RP_IO);
    if (access("/dev/full", W_OK) == 0) {
        assert_ok(rp_out_open("/dev/full", &out, &err), &err);
        for (int i = 0; i < 5; i++)
            rp_out_write(out, text.at, 30000);
        assert_code(rp_out_flush(out, &err), RP_IO);
        assert_int_equal(err.os_errno, ENOSPC);
        assert_contains(err.text, "'/dev/full'");
        rp_out_text(out, "more");
        assert_code(rp_out_close(out, &err), RP_IO);
    }
    /* the folder goes away under the output */
    file_put(path, sizeof path, folder, "sub", NULL, 0);
    assert_int_equal(mkdir(path, 0777), 0);
    strcat(path, "/out");
    assert_ok(rp_out_open(path, &out, &err), &err);
    rp_out_text(out, "lost");
    path[strlen(path) - 4] = '\0';
    folder_remove(path);
    assert_code(rp_out_close(out, &err), RP_IO);
    assert_contains(err.text, "cannot "); /* be renamed, or given a name */
    assert_contains(err.text, "/sub/out'");
    folder_remove(folder);
    free(text.at);
}

static void a_descriptor_stays_open(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    char piece[8];
    int ends[2];

    UNUSED_STATE(state);
    assert_int_equal(pipe(ends), 0);
    assert_ok(rp_out_open_fd(ends[1], "pipe", &out, &err), &err);
    rp_out_text(out, "one");
    assert_ok(rp_out_close(out, &err), &err);
    assert_int_equal(write(ends[1], "two", 3), 3);
    assert_int_equal(read(ends[0], piece, 6), 6);
    assert_memory_equal(piece, "onetwo", 6);
    close(ends[0]);
    close(ends[1]);
}

int test_output(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_appears_at_close),
        cmocka_unit_test(an_old_file_stays_until_then),
        cmocka_unit_test(links_and_pipes_are_written_in_place),
        cmocka_unit_test(memory_holds_it),
        cmocka_unit_test(the_first_error_sticks),
        cmocka_unit_test(a_descriptor_stays_open),
    };

    return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
