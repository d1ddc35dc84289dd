/* SPDX-License-Identifier: Apache-2.0 */
/* What collectives send: devices, groups, bytes of a ring. */
#include "formats/programs.h"
#include "unit.h"
#include "xref/comm.h"

#define ADD \
    "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\n"

struct counted {
    struct rp_program *p;
    struct rp_xref x;
    struct rp_arena arena;
    struct rp_comm comm;
};

/* Of a module with these attributes, and an instruction over p, 4 numbers of 32 bits. */
static struct counted count(const char *attributes, const char *instruction)
{
    struct counted c = {.arena = RP_ARENA_INIT};
    struct rp_meshes meshes = {0};
    struct rp_err err = RP_ERR_INIT;
    char text[1024];

    snprintf(text, sizeof text,
             "HloModule m%s\n\n" ADD "ENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = %s\n}\n",
             attributes, instruction);
    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &c.p, &err), &err);
    assert_ok(rp_xref_init(&c.x, c.p, &err), &err);
    assert_ok(rp_comm_count(&c.x, &meshes, &c.arena, &c.comm, &err), &err);
    return c;
}

static void release(struct counted *c)
{
    rp_xref_release(&c->x);
    rp_arena_release(&c->arena);
    rp_program_free(c->p);
}

static void devices_are_those_of_the_module_or_of_the_groups(void **state)
{
    static const struct {
        const char *attributes, *groups;
        int64_t devices;
    } rows[] = {
        {", replica_count=2, num_partitions=4", "{{0,1,2,3,4,5,6,7}}", 8},
        {"", "{{0,1},{2,3},{4,5}}", 6},
        {", replica_count=1, num_partitions=1", "{{0,1},{2,3}}", 4},
        {"", "{{0}}", RP_ABSENT_I64}, /* nobody to talk to: as if nothing were known */
        {"", "{}", RP_ABSENT_I64},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char instruction[128];
        struct counted c;

        snprintf(instruction, sizeof instruction,
                 "f32[4] all-reduce(p), replica_groups=%s, to_apply=add", rows[i].groups);
        c = count(rows[i].attributes, instruction);
        assert_int_equal(c.comm.devices, rows[i].devices);
        release(&c);
    }
}

/* A ring of n sends (n - 1)/n of what it reduces or gathers, an all-reduce twice that. */
static void bytes_are_those_of_rings(void **state)
{
    static const struct {
        const char *instruction, *axis;
        int64_t group_size, payload;
        double wire;
    } rows[] = {
        {"f32[4] all-reduce(p), replica_groups={{0,1,2,3}}, to_apply=add", "all 4 devices", 4, 16,
         2 * 12},
        {"f32[4] all-reduce(p), replica_groups={{0,1},{2,3}}, to_apply=add", "2 neighbours", 2, 16,
         2 * 8},
        {"f32[4] all-reduce(p), replica_groups={{0,2},{1,3}}, to_apply=add", "2 devices, every 2nd",
         2, 16, 2 * 8},
        {"f32[4] all-reduce(p), replica_groups={{0,3,6},{1,4,7},{2,5,8}}, to_apply=add",
         "3 devices, every 3rd", 3, 16, 2 * 16 * 2 / 3.0},
        {"f32[4] all-reduce(p), replica_groups={{0}}, to_apply=add", "all 1 devices", 1, 16, 0},
        {"f32[16] all-gather(p), replica_groups={{0,1,2,3}}, dimensions={0}", "all 4 devices", 4,
         64, 48},
        {"f32[16] all-gather(p), dimensions={0}", "all 4 devices", 4, 64, 48},
        {"f32[2] reduce-scatter(p), replica_groups={{0,1}}, dimensions={0}, to_apply=add",
         "all 2 devices", 2, 16, 8},
        {"f32[2] reduce-scatter(p), dimensions={0}, to_apply=add", "all 2 devices", 2, 16, 8},
        {"f32[4] collective-permute(p), source_target_pairs={{0,1},{1,0}}", "pairs of devices", 2,
         16, 16},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct counted c = count("", rows[i].instruction);

        assert_int_equal(c.comm.nops, 1);
        assert_string_equal(c.comm.ops[0].axis, rows[i].axis);
        assert_int_equal(c.comm.ops[0].group_size, rows[i].group_size);
        assert_int_equal(c.comm.ops[0].payload_bytes, rows[i].payload);
        assert_float_equal(c.comm.ops[0].wire_bytes, rows[i].wire, 1e-9);
        assert_float_equal(c.comm.wire_bytes, rows[i].wire, 1e-9);
        release(&c);
    }
}

int test_comm(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_those_of_the_module_or_of_the_groups),
        cmocka_unit_test(bytes_are_those_of_rings),
    };

    return cmocka_run_group_tests_name("comm", tests, NULL, NULL);
}
