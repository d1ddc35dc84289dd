/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a call tree: its boxes, and what is too narrow for one. */
#include "base/scope.h"
#include "explain/top/stacks.h"
#include "explain/top/stacks_tree.h"
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

enum { MOST_BOXES = 200000 };

static char *page_of(const struct rp_flame *flame)
{
    char path[] = "/tmp/reprise-flame-XXXXXX";
    struct rp_err err = RP_ERR_INIT;
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "r");
    char *text = NULL;
    size_t size = 0;

    assert_non_null(f);
    fclose(f);
    assert_ok(rp_flame_write(flame, path, &err), &err);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_true(getdelim(&text, &size, '\0', f) > 0);
    fclose(f);
    unlink(path);
    return text;
}

/* The list `key` of the page, up to its end or so many bytes. */
static void check_list(const char *page, const char *key, const char *want)
{
    const char *at = strstr(page, key);

    if (!at) {
        assert_null(want);
        return;
    }
    at += strlen(key);
    if (strncmp(at, want, strlen(want)) != 0 || at[strlen(want)] != ']')
        fail_msg("%s: '%.100s' is not '%s'", key, at, want);
}

static void boxes_are_nodes(void **state)
{
    const struct rp_stacks_frame frames[] = {{"f", "a.py", 3, 1}, {"g</script>", "", 0, 2}};
    const struct rp_stacks_node nodes[] = {{.parent = RP_NONE, .frame = 0, .self = 5},
                                           {.parent = 0, .frame = 1, .self = 7},
                                           {.parent = RP_NONE, .frame = 1, .self = 0}};
    const struct rp_stacks_weight base[] = {{.self = 1}, {.self = 0}, {.self = 9}};
    struct rp_flame flame = {.frames = frames, .nodes = nodes, .nframes = 2, .nnodes = 3};

    UNUSED_STATE(state);
    RP_FREED char *page = page_of(&flame);
    check_list(page, "\"nodes\": [", "-1,0,5,0,1,7,-1,1,0");
    check_list(page, "\"base\": [", NULL);
    check_list(page, "\"runs\": [", NULL);
    assert_contains(page, "\"unit\": \"ns\", \"joined\": false");
    assert_contains(page, "\n[\"f\",\"a.py\",3,1],\n[");
    assert_contains(page, "(narrow frames)");
    flame.base = base;
    flame.runs = nodes;
    flame.nruns = 2;
    flame.by_function = true;
    RP_FREED char *other = page_of(&flame);
    check_list(other, "\"base\": [", "1,0,9");
    check_list(other, "\"runs\": [", "-1,0,5,0,1,7");
    assert_contains(other, "\"joined\": true");
}

/* A root, and so many nodes below it that weigh 1; the last one weighs `last`. */
static char *wide_page(size_t n, int64_t last, bool alone, const struct rp_stacks_weight *base)
{
    const struct rp_stacks_frame frames[] = {{"root", "", 0, 0}, {"leaf", "", 0, 0}};
    RP_FREED struct rp_stacks_node *nodes = calloc(n, sizeof *nodes);
    struct rp_flame flame = {
        .frames = frames, .nodes = nodes, .base = base, .nframes = 2, .nnodes = n};

    assert_non_null(nodes);
    nodes[0].parent = RP_NONE;
    nodes[0].self = 3;
    for (size_t i = 1; i < n; i++)
        nodes[i] = (struct rp_stacks_node){
            .parent = alone ? RP_NONE : 0, .frame = 1, .self = i + 1 < n ? 1 : last};
    return page_of(&flame);
}

/* As many boxes as a page may have; with one more those that are as narrow as most are one. */
static void narrow_boxes_are_one(void **state)
{
    UNUSED_STATE(state);
    RP_FREED char *full = wide_page(MOST_BOXES, 1, false, NULL);
    assert_contains(full, "\"nodes\": [-1,0,3,0,1,1,0,1,1,");
    RP_FREED char *below = wide_page(MOST_BOXES + 1, 2, false, NULL);
    check_list(below, "\"nodes\": [", "-1,0,3,0,1,2,0,2,199999");
    RP_FREED char *beside = wide_page(MOST_BOXES + 1, 1, true, NULL);
    check_list(beside, "\"nodes\": [", "-1,0,3,-1,2,200000");
}

/* Of two runs the larger width counts, and both weights are kept. */
static void narrow_boxes_of_two_runs(void **state)
{
    RP_FREED struct rp_stacks_weight *base = calloc(MOST_BOXES + 1, sizeof *base);

    UNUSED_STATE(state);
    assert_non_null(base);
    base[0].self = 8;
    base[1].self = 4;
    base[2].self = 1;
    RP_FREED char *below = wide_page(MOST_BOXES + 1, 1, false, base);
    check_list(below, "\"nodes\": [", "-1,0,3,0,1,1,0,2,199999");
    check_list(below, "\"base\": [", "8,4,1");
    RP_FREED char *beside = wide_page(MOST_BOXES + 1, 1, true, base);
    check_list(beside, "\"nodes\": [", "-1,0,3,-1,1,1,-1,2,199999");
    check_list(beside, "\"base\": [", "8,4,1");
}

int test_flame(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_are_nodes),
        cmocka_unit_test(narrow_boxes_are_one),
        cmocka_unit_test(narrow_boxes_of_two_runs),
    };

    return cmocka_run_group_tests_name("flame", tests, NULL, NULL);
}
