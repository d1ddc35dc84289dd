/* SPDX-License-Identifier: Apache-2.0 */
/* Memory snapshots: sizes of blocks, totals, states, versions. Written as JSON, which has the same
   values as the pickle; the pickle of a real one is a golden case. */
#include "formats/formats.h"
#include "formats/torch_memory/blocks.h"
#include "unit.h"

#include <stdio.h>

#define MIB INT64_C(1048576)

static void load_snapshot(const char *text, struct rp_import *import)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;

    assert_ok(rp_input_open_memory("memory.json", text, strlen(text), NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, import, &err), &err);
    assert_string_equal(import->format->name, "torch-memory");
    assert_true(import->format->memory_only);
}

static rp_str find_text(const struct rp_trace *t, const char *text)
{
    for (rp_str s = 0; s < t->str.n; s++)
        if (!strcmp(rp_trace_str(t, s), text))
            return s;
    fail_msg("no text '%s'", text);
    return 0;
}

/* An argument of the i-th event of a name. */
static int64_t arg_of(const struct rp_trace *t, const char *name, size_t i, const char *key)
{
    rp_str wanted = find_text(t, name), id = find_text(t, key);
    struct rp_arg arg;

    for (rp_event e = 0; e < t->ev.n; e++)
        if (t->ev.name[e] == wanted && !i--) {
            assert_true(rp_args_find(&t->args, t->ev.shape[e], t->ev.arg_row[e], id, &arg));
            return arg.v.i;
        }
    fail_msg("no event '%s'", name);
    return 0;
}

/*
 * A segment of 20 MiB at 0: 4 MiB live from before the log. The log allocates 5 MiB at 4 MiB
 * (split), 10.5 MiB at 9 MiB (0.5 MiB remain: not split off), 4 bytes in a small segment, and frees
 * all.
 */
static const char snapshot[] =
    "{\"segments\": [{\"device\": 0, \"address\": 20971520, \"total_size\": 20971520,"
    " \"allocated_size\": 4194304, \"blocks\": [{\"address\": 20971520, \"size\": 4194304,"
    " \"requested_size\": 4000000, \"state\": \"active_allocated\"},"
    " {\"address\": 25165824, \"size\": 16777216, \"state\": \"inactive\"}]},"
    " {\"device\": 0, \"address\": 2097152, \"total_size\": 2097152, \"allocated_size\": 0,"
    " \"blocks\": [{\"size\": 2097152, \"state\": \"inactive\"}]}],"
    " \"device_traces\": [["
    "{\"action\": \"alloc\", \"addr\": 25165824, \"size\": 5242880, \"stream\": 0, \"time_us\": 100,"
    " \"frames\": [{\"name\": \"at::_ops::mm::call(x)\", \"filename\": \"??\", \"line\": 0},"
    " {\"name\": \"forward\", \"filename\": \"/m/model.py\", \"line\": 9}]},"
    "{\"action\": \"alloc\", \"addr\": 30408704, \"size\": 11010048, \"time_us\": 101},"
    "{\"action\": \"alloc\", \"addr\": 2097152, \"size\": 4, \"time_us\": 102},"
    "{\"action\": \"free_requested\", \"addr\": 30408704, \"size\": 11010048, \"time_us\": 103},"
    "{\"action\": \"free_completed\", \"addr\": 30408704, \"size\": 11010048, \"time_us\": 104},"
    "{\"action\": \"free_requested\", \"addr\": 25165824, \"size\": 5242880, \"time_us\": 105},"
    "{\"action\": \"free_completed\", \"addr\": 25165824, \"size\": 5242880, \"time_us\": 106},"
    "{\"action\": \"free_requested\", \"addr\": 2097152, \"size\": 4, \"time_us\": 107},"
    "{\"action\": \"free_completed\", \"addr\": 2097152, \"size\": 4, \"time_us\": 108}]]}";

static void counts_blocks_and_not_requests(void **state)
{
    struct rp_import import = RP_IMPORT_INIT;
    const struct rp_trace *t;

    UNUSED_STATE(state);
    load_snapshot(snapshot, &import);
    t = import.trace;
    assert_int_equal(t->nwarnings, 0);
    assert_int_equal(arg_of(t, "[memory]", 0, "Bytes"), 5 * MIB);
    assert_int_equal(arg_of(t, "[memory]", 0, "Total Allocated"), 9 * MIB);
    assert_int_equal(arg_of(t, "[memory]", 1, "Bytes"), 11 * MIB); /* the rest of the segment */
    assert_int_equal(arg_of(t, "[memory]", 1, "Requested"), 11010048);
    assert_int_equal(arg_of(t, "[memory]", 2, "Bytes"), 512);
    assert_int_equal(arg_of(t, "[memory]", 2, "Total Allocated"), 20 * MIB + 512);
    assert_int_equal(arg_of(t, "[memory]", 2, "Total Reserved"), 22 * MIB);
    assert_int_equal(arg_of(t, "[memory]", 5, "Total Allocated"), 4 * MIB);
    find_text(t, "at::_ops::mm::call(x);/m/model.py(9): forward");
    rp_import_release(&import);
}

/* The log frees what it did not allocate, and gets and returns a segment. */
static void finds_what_was_there_before(void **state)
{
    static const char text[] =
        "{\"segments\": [{\"device\": 0, \"address\": 20971520, \"total_size\": 20971520,"
        " \"allocated_size\": 0, \"blocks\": [{\"size\": 20971520, \"state\": \"inactive\"}]}],"
        " \"device_traces\": [["
        "{\"action\": \"free_requested\", \"addr\": 20971520, \"size\": 20000000, \"time_us\": 1},"
        "{\"action\": \"free_completed\", \"addr\": 20971520, \"size\": 20000000, \"time_us\": 2},"
        "{\"action\": \"segment_alloc\", \"addr\": 104857600, \"size\": 20971520, \"time_us\": 3},"
        "{\"action\": \"alloc\", \"addr\": 104857600, \"size\": 3145728, \"time_us\": 4},"
        "{\"action\": \"free_requested\", \"addr\": 104857600, \"size\": 3145728, \"time_us\": 5},"
        "{\"action\": \"free_completed\", \"addr\": 104857600, \"size\": 3145728, \"time_us\": 6},"
        "{\"action\": \"segment_free\", \"addr\": 104857600, \"size\": 20971520, \"time_us\": 7},"
        "{\"action\": \"oom\", \"size\": 99, \"device_free\": 5, \"time_us\": 8}]]}";
    struct rp_import import = RP_IMPORT_INIT;
    const struct rp_trace *t;

    UNUSED_STATE(state);
    load_snapshot(text, &import);
    t = import.trace;
    assert_int_equal(t->nwarnings, 0);
    assert_int_equal(arg_of(t, "[memory]", 0, "Bytes"), -20 * MIB); /* all of its segment */
    assert_int_equal(arg_of(t, "[memory]", 0, "Total Allocated"), 0);
    assert_int_equal(arg_of(t, "[memory]", 0, "Total Reserved"), 20 * MIB);
    assert_int_equal(arg_of(t, "segment_alloc", 0, "Total Reserved"), 40 * MIB);
    assert_int_equal(arg_of(t, "segment_free", 0, "Total Reserved"), 20 * MIB);
    assert_int_equal(arg_of(t, "oom", 0, "Device Free"), 5);
    rp_import_release(&import);
}

static void says_what_an_old_snapshot_lacks(void **state)
{
    static const char untimed[] =
        "{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 512, \"size\": 8}]]}";
    static const char alone[] =
        "[{\"device\": 0, \"segment_type\": \"small\", \"total_size\": 2097152,"
        "\"address\": 0, \"allocated_size\": 512, \"blocks\": "
        "[{\"size\": 512, \"state\": \"active_allocated\"}]}]";
    struct rp_import import = RP_IMPORT_INIT;

    UNUSED_STATE(state);
    load_snapshot(untimed, &import);
    assert_true(import.trace->nwarnings >= 1);
    assert_non_null(strstr(rp_trace_str(import.trace, import.trace->warnings[0]), "no times"));
    rp_import_release(&import);
    load_snapshot(alone, &import);
    assert_non_null(strstr(rp_trace_str(import.trace, import.trace->warnings[0]), "no history"));
    assert_int_equal(arg_of(import.trace, "[block]", 0, "Bytes"), 512);
    rp_import_release(&import);
}

static void follows_the_rules_of_the_allocator(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_blocks b = {0};
    int64_t bytes;

    UNUSED_STATE(state);
    assert_ok(rp_blocks_add_segment(&b, 0, 20 * MIB, &err), &err);
    assert_ok(rp_blocks_allocate(&b, 0, 19 * MIB - 1, &bytes, &err), &err);
    assert_int_equal(bytes, 20 * MIB); /* exactly 1 MiB would remain: not split off */
    assert_int_equal(rp_blocks_size(&b, 0), 20 * MIB);
    rp_blocks_free(&b, 0);
    assert_ok(rp_blocks_allocate(&b, 0, 19 * MIB - 512, &bytes, &err), &err);
    assert_int_equal(bytes, 19 * MIB - 512);
    assert_int_equal(b.misfits, 0);
    assert_ok(rp_blocks_allocate(&b, 100 * MIB, 5, &bytes, &err), &err); /* outside */
    assert_int_equal(bytes, 512);
    assert_int_equal(b.misfits, 1);
    assert_int_equal(rp_blocks_size(&b, 5), -1);
    rp_blocks_release(&b);
}

/* Two segments; the blocks of the first come from the last address to the first. */
static void keeps_segments_apart(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_blocks b = {0};
    int64_t bytes;

    UNUSED_STATE(state);
    assert_ok(rp_blocks_add_segment(&b, 2 * MIB, 2 * MIB, &err), &err);
    assert_ok(rp_blocks_add_segment(&b, 0, 2 * MIB, &err), &err);
    for (int64_t i = 4095; i >= 0; i--) {
        assert_ok(rp_blocks_allocate(&b, 512 * i, 100, &bytes, &err), &err);
        assert_int_equal(bytes, 512);
    }
    assert_ok(rp_blocks_allocate(&b, 2 * MIB, 2 * MIB - 100, &bytes, &err), &err);
    assert_int_equal(bytes, 2 * MIB);
    assert_int_equal(b.misfits, 0);
    rp_blocks_remove_segment(&b, 512); /* no segment begins there */
    assert_int_equal(rp_blocks_size(&b, 1024), 512);
    rp_blocks_remove_segment(&b, 0);
    assert_int_equal(rp_blocks_size(&b, 1024), -1);
    assert_int_equal(rp_blocks_size(&b, 2 * MIB), 2 * MIB);
    rp_blocks_release(&b);
}

int test_torch_memory(void);
int test_torch_memory(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_blocks_and_not_requests),
        cmocka_unit_test(finds_what_was_there_before),
        cmocka_unit_test(says_what_an_old_snapshot_lacks),
        cmocka_unit_test(follows_the_rules_of_the_allocator),
        cmocka_unit_test(keeps_segments_apart),
    };

    return cmocka_run_group_tests_name("torch_memory", tests, NULL, NULL);
}
