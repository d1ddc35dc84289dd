/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces: what one search keeps, the next begins with. */
#include "unit.h"

#include "opt/workspace.h"

#include <stdlib.h>
#include <unistd.h>

struct folder {
    char path[64], best[96];
};

static void make_folder(struct folder *f)
{
    snprintf(f->path, sizeof f->path, "%s", "/tmp/rp_workspace_XXXXXX");
    assert_non_null(mkdtemp(f->path));
    snprintf(f->best, sizeof f->best, "%s/best.txt", f->path);
}

static void remove_folder(const struct folder *f)
{
    char name[96];

    unlink(f->best);
    snprintf(name, sizeof name, "%s/trajectory.csv", f->path);
    unlink(name);
    assert_int_equal(rmdir(f->path), 0);
}

static void a_search_is_resumed(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_opt_workspace w;
    struct folder f;

    UNUSED_STATE(state);
    make_folder(&f);
    assert_ok(rp_opt_workspace_open(&w, f.path, false, &err), &err);
    assert_int_equal(w.round, 1);
    assert_null(w.groups);
    rp_opt_workspace_point(&w, 1, 300);
    rp_opt_workspace_point(&w, 5, 200);
    rp_opt_workspace_point(&w, 9, 250); /* not better */
    assert_int_equal(w.points.n, 2);
    assert_ok(rp_opt_workspace_save(&w, "0101", "fuse+no-sync", 200, &err), &err);
    rp_opt_workspace_release(&w);

    assert_code(rp_opt_workspace_open(&w, f.path, false, &err), RP_USAGE);
    assert_contains(err.text, "--resume");
    rp_opt_workspace_release(&w);

    assert_ok(rp_opt_workspace_open(&w, f.path, true, &err), &err);
    assert_int_equal(w.round, 2);
    assert_string_equal(w.groups, "0101");
    assert_string_equal(w.whatifs, "fuse+no-sync");
    assert_int_equal(w.resumed_ns, 200);
    rp_opt_workspace_release(&w);
    remove_folder(&f);
}

static void other_folders_are_refused(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_opt_workspace w;
    struct folder f;
    FILE *file;

    UNUSED_STATE(state);
    make_folder(&f);
    file = fopen(f.best, "w");
    assert_non_null(file);
    fputs("something else\n", file);
    fclose(file);
    assert_code(rp_opt_workspace_open(&w, f.path, true, &err), RP_FORMAT);
    assert_contains(err.text, "best.txt:1");
    rp_opt_workspace_release(&w);
    remove_folder(&f);

    assert_code(rp_opt_workspace_open(&w, NULL, true, &err), RP_USAGE);
    rp_opt_workspace_release(&w);
    assert_ok(rp_opt_workspace_open(&w, NULL, false, &err), &err);
    assert_ok(rp_opt_workspace_save(&w, "1", NULL, 5, &err), &err); /* keeps nothing */
    rp_opt_workspace_release(&w);
}

int test_workspace(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_is_resumed),
        cmocka_unit_test(other_folders_are_refused),
    };

    return cmocka_run_group_tests_name("workspace", tests, NULL, NULL);
}
