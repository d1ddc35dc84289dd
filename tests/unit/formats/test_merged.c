/* SPDX-License-Identifier: Apache-2.0 */
/* A merged trace is divided into the traces it was made from: processes, ids, names, metadata. */
#include "chrome_fixture.h"

#include "trace/merged.h"

#define RANK(n)                                                                                    \
    "{\"distributedInfo\":{\"rank\":" n ",\"world_size\":9},\"hostname\":\"h" n "\",\"common\":1," \
    "\"deviceProperties\":[{\"id\":0,\"name\":\"GPU " n "\",\"totalGlobalMem\":5,\"numSms\":4}],"  \
    "\"traceEvents\":["                                                                            \
    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":70,\"tid\":0,\"args\":{\"name\":\"py\"}},"    \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k" n "\",\"pid\":\"dev\",\"tid\":7,\"ts\":20,"    \
    "\"dur\":5,\"args\":{\"correlation\":3}},"                                                     \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":70,\"tid\":1,"   \
    "\"ts\":10,\"dur\":4,\"args\":{\"correlation\":3}},"                                           \
    "{\"ph\":\"b\",\"cat\":\"c\",\"name\":\"a\",\"id\":\"x\",\"pid\":70,\"tid\":1,\"ts\":11},"     \
    "{\"ph\":\"e\",\"cat\":\"c\",\"name\":\"a\",\"id\":\"x\",\"pid\":70,\"tid\":1,\"ts\":12}]}"

static int64_t ten_later(const void *user, uint32_t process, int64_t ns)
{
    (void)user;
    (void)process;
    return ns + 10000;
}

/* Both ranks in one trace, the second one ten microseconds later. */
static struct rp_trace *merge_two(void)
{
    struct rp_import ranks[2] = {load(RANK("0")), load(RANK("4"))};
    struct rp_merged_common common = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_builder *b;
    struct rp_trace *out;
    struct rp_emit records;
    rp_str key, value;
    char label[16];

    assert_ok(rp_builder_new(NULL, &b, &err), &err);
    assert_ok(rp_emit_open_memory(&records, &err), &err);
    for (uint32_t i = 0; i < 2; i++) {
        struct rp_append how = {.index = i,
                                .pid_step = 100,
                                .label = label,
                                .meta = i == 0,
                                .time = i ? ten_later : NULL};

        snprintf(label, sizeof label, "rank %u", i ? 4u : 0u);
        assert_ok(rp_merged_describe(&records, &common, ranks[i].trace, &how, i ? 4 : 0, &err),
                  &err);
        assert_ok(rp_builder_append(b, ranks[i].trace, &how, &err), &err);
        rp_import_release(&ranks[i]);
    }
    rp_emit_char(&records, ']');
    assert_ok(rp_builder_intern(b, RP_MERGED_KEY, strlen(RP_MERGED_KEY), &key, &err), &err);
    assert_ok(rp_builder_intern(b, records.buffer, rp_emit_length(&records), &value, &err), &err);
    assert_ok(rp_builder_add_meta(b, key, value, false, &err), &err);
    assert_ok(rp_builder_finish(b, &out, &err), &err);
    rp_emit_abandon(&records);
    rp_vec_release(&common.hashes);
    return out;
}

static const char *meta(const struct rp_trace *t, const char *key)
{
    for (uint32_t i = 0; i < t->nmeta; i++)
        if (!strcmp(rp_trace_str(t, t->meta[i].key), key))
            return rp_trace_str(t, t->meta[i].value);
    return "-";
}

static void ranks_are_as_they_were(void **state)
{
    struct rp_trace *merged = merge_two(), *t;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_merged ranks;
    char text[32];

    UNUSED_STATE(state);
    assert_ok(rp_merged_read(merged, &arena, &ranks, &err), &err);
    assert_int_equal(ranks.n, 2);
    for (int i = 0; i < 2; i++) {
        rp_event kernel, call, chain;

        assert_ok(rp_merged_split(merged, &ranks.ranks[i], NULL, &t, &err), &err);
        assert_ok(rp_trace_validate(t, &err), &err);
        assert_int_equal(t->rank, i ? 4 : 0);
        assert_int_equal(t->world_size, 9);
        assert_int_equal(t->ev.n, 4);
        kernel = find(t, i ? "k4" : "k0");
        call = find(t, "cudaLaunchKernel");
        chain = find(t, "a");
        assert_int_equal(t->ev.ts_ns[kernel], i ? 30000 : 20000); /* on the common clock */
        assert_string_equal(arg_text(t, kernel, "correlation", text, sizeof text), "i 3");
        assert_true(t->ev.link[kernel] != RP_NONE && t->ev.link[kernel] == t->ev.link[call]);
        assert_string_equal(rp_trace_str(t, (rp_str)t->links.native_id[t->ev.link[chain]]), "x");
        assert_int_equal(t->processes[t->tracks[t->ev.track[call]].process].native_id, 70);
        assert_string_equal(
            rp_trace_str(t, t->processes[t->tracks[t->ev.track[call]].process].name), "py");
        assert_string_equal(
            rp_trace_str(t, t->processes[t->tracks[t->ev.track[kernel]].process].text), "dev");
        assert_int_equal(t->processes[t->tracks[t->ev.track[kernel]].process].name, 0);
        assert_true(t->ev.seq[kernel] < t->ev.seq[call]); /* the order of the file */
        assert_string_equal(meta(t, "hostname"), i ? "\"h4\"" : "\"h0\"");
        assert_string_equal(meta(t, "common"), "1");
        assert_string_equal(meta(t, RP_MERGED_KEY), "-");
        assert_contains(meta(t, "distributedInfo"), "\"world_size\":9");
        assert_int_equal(t->ndevices, 1);
        assert_string_equal(rp_trace_str(t, t->devices[0].name), i ? "GPU 4" : "GPU 0");
        rp_trace_free(t);
    }
    rp_arena_release(&arena);
    rp_trace_free(merged);
}

/* What a file claims is believed only where it makes sense. */
static void wrong_records_are_ignored(void **state)
{
    static const char *const wrong[] = {"7",
                                        "[]",
                                        "[7]",
                                        "[{}]",
                                        "[{\"label\":\"r\",\"first_pid\":0}]",
                                        "[{\"label\":\"\",\"first_pid\":0,\"pids\":[1]}]",
                                        "[{\"label\":\"r\",\"first_pid\":-5,\"pids\":[1]}]",
                                        "[{\"label\":\"r\",\"first_pid\":0,\"pids\":{}}]",
                                        ("[{\"label\":\"r\",\"first_pid\":0,\"pids\":[1,2]},"
                                         "{\"label\":\"s\",\"first_pid\":1,\"pids\":[1]}]")};
    char text[300];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_err err = RP_ERR_INIT;
        struct rp_merged ranks;
        struct rp_import import;

        snprintf(text, sizeof text, "{\"repriseRanks\":%s,\"traceEvents\":[]}", wrong[i]);
        import = load(text);
        assert_ok(rp_merged_read(import.trace, &arena, &ranks, &err), &err);
        assert_int_equal(ranks.n, 0);
        rp_import_release(&import);
        rp_arena_release(&arena);
    }
}

int test_merged(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_as_they_were),
        cmocka_unit_test(wrong_records_are_ignored),
    };

    return cmocka_run_group_tests_name("merged", tests, NULL, NULL);
}
