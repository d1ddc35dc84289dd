/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of `dump run`: equal files become one, also beside a program that still writes. */
#include "unit.h"

#include <fcntl.h>
#include <reprise/dump.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (4u << 20)

static char folder[64];

static int open_file(const char *name, int flags)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, flags, 0600);
}

static void write_file(const char *name, int byte)
{
    char *all = malloc(BYTES);
    int fd = open_file(name, O_WRONLY | O_CREAT | O_TRUNC);

    memset(all, byte, BYTES);
    assert_true(write(fd, all, BYTES) == BYTES && !close(fd));
    free(all);
}

static int make_folder(void **state)
{
    UNUSED_STATE(state);
    snprintf(folder, sizeof folder, "/tmp/reprise-store-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static void remove_file(const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

static int remove_folder(void **state)
{
    UNUSED_STATE(state);
    remove_file("a");
    remove_file("b");
    return rmdir(folder);
}

static uint64_t share(void)
{
    struct rp_dump_stored found = {.struct_size = sizeof found};
    struct rp_err err = RP_ERR_INIT;
    struct rp_dump_store *store;

    assert_ok(rp_dump_store_new(folder, 0, &store, &err), &err);
    assert_ok(rp_dump_store_share(store, &err), &err);
    rp_dump_store_state(store, &found);
    rp_dump_store_free(store);
    return found.shared_files;
}

static void equal_files_become_one(void **state)
{
    UNUSED_STATE(state);
    write_file("a", 'x');
    write_file("b", 'y');
    assert_int_equal(share(), 0);
    write_file("b", 'x');
    assert_int_equal(share(), 1);
    remove_file("b");
}

static _Noreturn void cut_often(int fd)
{
    for (int i = 0; i < 500; i++) {
        if (ftruncate(fd, i % 2 ? BYTES : 0))
            _exit(1);
        usleep(i % 2 ? 1000 : 100);
    }
    _exit(0);
}

/* One of two files is cut and grows back while they are compared. */
static void a_file_that_shrinks(void **state)
{
    int status;
    pid_t pid;

    UNUSED_STATE(state);
    write_file("a", 0);
    write_file("b", 1);
    pid = fork();
    if (!pid)
        cut_often(open_file("a", O_WRONLY));
    while (!waitpid(pid, &status, WNOHANG))
        share();
    assert_int_equal(status, 0);
}

int test_store(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_files_become_one),
                                       cmocka_unit_test(a_file_that_shrinks)};

    return cmocka_run_group_tests_name("store", tests, make_folder, remove_folder);
}
