/* SPDX-License-Identifier: Apache-2.0 */
/* XLA's logs beside a dump: passes, fusions, thunks; as text and as protobuf. */
#include "base/vec.h"
#include "formats/dump/logs.h"
#include "unit.h"

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

static void reads_times_of_passes(void **state)
{
    static const char text[] = "canonical_module_id: 7\n"
                               "pass_metadata {\n"
                               "  pass_id: 1\n"
                               "  pass_name: \"cse\"\n"
                               "  pipeline_name: \"simplification\"\n"
                               "  module_changed: true\n"
                               "  start_timestamp_usec: 100\n"
                               "  end_timestamp_usec: 130\n"
                               "  kv_metrics { key: \"x\" value: 3 }\n"
                               "}\n"
                               "pass_metadata { pass_id: 2 pass_name: \"dce\" "
                               "start_timestamp_usec: 130 }\n";
    static const char wire[] = "\010\007"
                               "\052\016"
                               "\010\001\022\003cse\050\001\100\144\110\202\001";
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_pass_times times;

    UNUSED_STATE(state);
    assert_ok(rp_pass_times_read(BYTES(text), NULL, &arena, &times, &err), &err);
    assert_int_equal(times.module, 7);
    assert_int_equal(times.n, 2);
    assert_string_equal(times.at[0].name, "cse");
    assert_string_equal(times.at[0].pipeline, "simplification");
    assert_true(times.at[0].changed);
    assert_int_equal(rp_pass_ns(&times.at[0]), 30000);
    assert_false(times.at[1].changed);
    assert_int_equal(rp_pass_ns(&times.at[1]), 0); /* did not end */
    assert_ok(rp_pass_times_read(BYTES(wire), NULL, &arena, &times, &err), &err);
    assert_int_equal(times.n, 1);
    assert_string_equal(times.at[0].name, "cse");
    assert_int_equal(rp_pass_ns(&times.at[0]), 30000);
    assert_code(rp_pass_times_read(BYTES("pass_metadata {"), NULL, &arena, &times, &err),
                RP_FORMAT);
    rp_arena_release(&arena);
}

static void reads_the_fusion_log(void **state)
{
    static const char text[] =
        "fusion_steps { update_priority { producer_name: \"a\" consumer_names: \"b\" "
        "consumer_names: \"c\" us_fused: 1.5 us_unfused: 2.5 } }\n"
        "fusion_steps { producer_ineligible { producer_name: \"d\" reason: \"no\" } }\n"
        "fusion_steps { fusion { fusion_name: \"f\" producer_name: \"a\" consumer_name: \"b\" } }\n"
        "hlo_module_before_fusion: \"HloModule m\\n\"\n";
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_fusion_log log;

    UNUSED_STATE(state);
    assert_ok(rp_fusion_log_read(BYTES(text), NULL, &arena, &log, &err), &err);
    assert_int_equal(log.n, 3);
    assert_int_equal(log.at[0].kind, RP_FUSION_PRIORITY);
    assert_int_equal(log.at[0].nconsumers, 2);
    assert_string_equal(log.at[0].consumers[1], "c");
    assert_true(log.at[0].fused_us == 1.5 && log.at[0].unfused_us == 2.5);
    assert_int_equal(log.at[1].kind, RP_FUSION_INELIGIBLE);
    assert_string_equal(log.at[1].reason, "no");
    assert_int_equal(log.at[2].kind, RP_FUSION_FUSED);
    assert_string_equal(log.at[2].fusion, "f");
    assert_string_equal(log.before, "HloModule m\n");
    rp_arena_release(&arena);
}

/* Two command buffers have no id: they are joined in order. */
static void joins_thunks_with_their_metadata(void **state)
{
    static const char sequence[] =
        "000: kCommandBuffer [source | sink] \n"
        "    001: kCustomKernel [prev=000 (1) | sink] add_1 grid: [128, 2, 1] threads: [64, 1, 1]  "
        "shared_memory: 16 bytes\n"
        "002: kWhile [source | sink]\n"
        "\n"
        "condition:\n"
        "    003: kCopy [source | sink] kCopy\n"
        "000: kCommandBuffer [source | sink] \n";
    static const char metadata[] =
        "thunk_metadata { thunk_info { profile_annotation: \"cb_1\" } thunk_kind: "
        "\"kCommandBuffer\" }\n"
        "thunk_metadata { thunk_info { profile_annotation: \"add.1\" thunk_id: 1 } thunk_kind: "
        "\"kCustomKernel\" }\n"
        "thunk_metadata { thunk_info { profile_annotation: \"cb_2\" } thunk_kind: "
        "\"kCommandBuffer\" }\n";
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_thunks t, m;

    UNUSED_STATE(state);
    assert_ok(rp_thunks_read(sequence, sizeof sequence - 1, NULL, &arena, &t, &err), &err);
    assert_ok(rp_thunk_metadata_read(BYTES(metadata), NULL, &arena, &m, &err), &err);
    assert_int_equal(t.n, 5);
    assert_int_equal(t.at[1].parent, 0);
    assert_int_equal(t.at[1].depth, 1);
    assert_string_equal(t.at[1].kernel, "add_1");
    assert_int_equal(t.at[1].grid[1], 2);
    assert_int_equal(t.at[1].block[0], 64);
    assert_int_equal(t.at[1].shared_bytes, 16);
    assert_int_equal(t.at[2].parent, RP_NONE);
    assert_int_equal(t.at[3].parent, 2);
    assert_string_equal(t.at[3].kernel, "");
    assert_ok(rp_thunks_join(&t, &m, &arena, &err), &err);
    assert_string_equal(t.at[0].instruction, "cb_1");
    assert_string_equal(t.at[1].instruction, "add.1");
    assert_string_equal(t.at[3].instruction, "");
    assert_string_equal(t.at[4].instruction, "cb_2");
    rp_arena_release(&arena);
}

static void reads_old_and_binary_thunks(void **state)
{
    static const char old[] = "001: kKernel, kernel = fusion_3 , launch dimensions = x\n";
    static const char wire[] = "\n\023\n\n\n\006copy.1\030\001\022\005kCopy";
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_thunks t;

    UNUSED_STATE(state);
    assert_ok(rp_thunks_read(old, sizeof old - 1, NULL, &arena, &t, &err), &err);
    assert_string_equal(t.at[0].kernel, "fusion_3");
    assert_ok(rp_thunk_metadata_read(BYTES(wire), NULL, &arena, &t, &err), &err);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.at[0].id, 1);
    assert_string_equal(t.at[0].instruction, "copy.1");
    assert_string_equal(t.at[0].kind, "kCopy");
    assert_code(rp_thunks_read("hello\n", 6, NULL, &arena, &t, &err), RP_FORMAT);
    rp_arena_release(&arena);
}

int test_dump_logs(void);
int test_dump_logs(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_times_of_passes),
        cmocka_unit_test(reads_the_fusion_log),
        cmocka_unit_test(joins_thunks_with_their_metadata),
        cmocka_unit_test(reads_old_and_binary_thunks),
    };

    return cmocka_run_group_tests_name("dump_logs", tests, NULL, NULL);
}
