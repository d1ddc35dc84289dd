/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of collectives, in all their ways of being written. */
#include "unit.h"

#include "exec/data/groups.h"
#include "formats/programs.h"
#include "io/proto_write.h"

static bool groups_of(struct rp_arena *arena, const char *text, struct rp_groups *g)
{
    struct rp_program *p;
    struct rp_attr attr;
    bool good;

    assert_code(rp_program_new("hlo", &p, NULL), RP_OK);
    attr = rp_attr_parse(p, RP_ATTR_REPLICA_GROUPS, text, strlen(text));
    good = rp_groups_of(arena, &attr, g);
    rp_program_free(p);
    return good;
}

static void check(const char *text, size_t ngroups, size_t n, const int64_t *want)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_groups g;

    if (!groups_of(&arena, text, &g))
        fail_msg("'%s' is not understood", text);
    assert_int_equal(g.ngroups, ngroups);
    assert_int_equal(g.nids, n);
    for (size_t i = 0; i < n; i++)
        if (g.ids[i] != want[i])
            fail_msg("'%s': place %zu is %lld instead of %lld", text, i, (long long)g.ids[i],
                     (long long)want[i]);
    rp_arena_release(&arena);
}

static void groups(void **state)
{
    static const char *const bad[] = {"[2,4]<=[9]",
                                      "[2,2]<=[2,2]T(0,0)",
                                      "mesh['a'=2] {'b'}",
                                      "mesh['a'=2] {}",
                                      "mesh['a'=2",
                                      "mesh['a'=0] {'a'}",
                                      "mesh['a'=8] {'a':(3)2}",
                                      "mesh['a'=4], device_ids=(0,1) {'a'}",
                                      "mesh['a'=99999999999999999999] {'a'}",
                                      "mesh['a'=2] {'a','a'}"};
    struct rp_arena arena = RP_ARENA_INIT;

    UNUSED_STATE(state);
    check("{{0,2},{3,1}}", 2, 4, (int64_t[]){0, 2, 3, 1});
    check("{}", 0, 0, NULL);
    check("[2,3]<=[6]", 2, 6, (int64_t[]){0, 1, 2, 3, 4, 5});
    check("[3,2]<=[2,3]T(1,0)", 3, 6, (int64_t[]){0, 3, 1, 4, 2, 5});
    check("mesh['x'=2,'y'=3] {'y'}", 2, 6, (int64_t[]){0, 1, 2, 3, 4, 5});
    check("mesh[\"x\"=2,\"y\"=3] {\"x\"}", 3, 6, (int64_t[]){0, 3, 1, 4, 2, 5});
    check("mesh['x'=2,'y'=2] {'y','x'}", 1, 4, (int64_t[]){0, 2, 1, 3});
    check("mesh['x'=8] {'x':(2)2}", 4, 8, (int64_t[]){0, 2, 1, 3, 4, 6, 5, 7});
    check("mesh['x'=4], device_ids=(3,1,2,0) {'x'}", 1, 4, (int64_t[]){3, 1, 2, 0});
    check("mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'y'}", 2, 4, (int64_t[]){0, 2, 1, 3});
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rp_groups g;

        if (groups_of(&arena, bad[i], &g))
            fail_msg("'%s' is taken", bad[i]);
    }
    rp_arena_release(&arena);
}

/* Read as text and counted; and the same after a way through the protobuf. */
static void counted(void **state)
{
    static const char text[] =
        "HloModule m\nadd {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
        " ROOT r = f32[] add(x, y)\n}\nENTRY e {\n p = f32[2] parameter(0)\n"
        " ROOT s = f32[2] all-reduce(p), channel_id=1, replica_groups=mesh['a'=2,'b'=4], "
        "device_ids=([4,2]T(1,0)) {'b':(2)2,'a'}, use_global_device_ids=true, to_apply=add\n}\n";
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p, *again;
    const struct rp_attr *said, *kept;
    struct rp_proto_writer w = {0};

    UNUSED_STATE(state);
    assert_ok(rp_hlo_text_parse(text, sizeof text - 1, NULL, &p, &err), &err);
    assert_int_equal(rp_program_runs(p), 8);
    said = rp_op_attr(p, p->computations.at[p->entry].root, RP_ATTR_REPLICA_GROUPS);
    assert_ok(rp_hlo_proto_write(p, &w, &err), &err);
    assert_ok(rp_hlo_proto_parse(w.bytes.at, w.bytes.n, NULL, &again, &err), &err);
    assert_int_equal(rp_program_runs(again), 8);
    kept = rp_op_attr(again, again->computations.at[again->entry].root, RP_ATTR_REPLICA_GROUPS);
    assert_non_null(kept);
    assert_string_equal(rp_attr_text(again, kept, &p->arena), rp_attr_text(p, said, &p->arena));
    rp_proto_writer_release(&w);
    rp_program_free(again);
    rp_program_free(p);
}

int test_groups(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups), cmocka_unit_test(counted)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
