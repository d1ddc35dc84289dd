/* SPDX-License-Identifier: Apache-2.0 */
/* Events, tracks, arguments and ranks through the public API, on small files made here. */
#include "unit.h"

#include <reprise/reprise.h>
#include <stdlib.h>
#include <unistd.h>

/* One rank: an operator that launches a kernel. The number of the rank follows. */
static const char rank_head[] = "{\"distributedInfo\": {\"world_size\": 2, \"rank\": ";
static const char rank_events[] =
    "}, \"traceEvents\": [\n"
    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":7,\"args\":{\"name\":\"python\"}},\n"
    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":7,\"tid\":70,\"args\":{\"name\":\"main\"}},\n"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":7,\"tid\":70,\"ts\":10,\"dur\":8,"
    "\"args\":{\"External id\":5,\"scale\":0.5,\"why\":\"x\",\"dims\":[1,2]}},\n"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":7,\"tid\":70,"
    "\"ts\":12,\"dur\":2,\"args\":{\"correlation\":9}},\n"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":3,\"ts\":20,\"dur\":1.5,"
    "\"args\":{\"correlation\":9,\"stream\":3,\"device\":0}}\n]}\n";

struct folder {
    char path[64], file[3][96];
    struct rp_ctx *ctx;
    struct rp_dataset *dataset;
};

static void write_file(const char *path, const char *a, const char *b, const char *c)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fprintf(f, "%s%s%s", a, b, c);
    fclose(f);
}

static void write_rank(const char *path, const char *number)
{
    write_file(path, rank_head, number, rank_events);
}

static void folder_make(struct folder *folder)
{
    struct rp_err err = RP_ERR_INIT;
    const char *path = folder->path;

    snprintf(folder->path, sizeof folder->path, "/tmp/reprise-timeline-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->file[0], sizeof folder->file[0], "%s/a.json", folder->path);
    snprintf(folder->file[1], sizeof folder->file[1], "%s/b.json", folder->path);
    snprintf(folder->file[2], sizeof folder->file[2], "%s/notes.txt", folder->path);
    write_rank(folder->file[0], "1");
    write_rank(folder->file[1], "0");
    write_file(folder->file[2], "not", " a ", "trace\n");
    assert_ok(rp_ctx_new(NULL, &folder->ctx, &err), &err);
    assert_ok(rp_open(folder->ctx, &path, 1, NULL, &folder->dataset, &err), &err);
}

static void folder_remove(struct folder *folder)
{
    rp_dataset_free(folder->dataset);
    rp_ctx_free(folder->ctx);
    for (size_t i = 0; i < 3; i++)
        unlink(folder->file[i]);
    rmdir(folder->path);
}

static const struct rp_event_view *event_named(const struct rp_event_view *events, size_t n,
                                               const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(events[i].name, name))
            return &events[i];
    fail_msg("no event '%s'", name);
    return NULL;
}

static void check_events(const struct rp_timeline *timeline)
{
    const struct rp_event_view *op, *call, *kernel;
    struct rp_event_view events[8], one;
    uint32_t linked[4];
    size_t n = rp_timeline_events(timeline, 0, 8, events, sizeof events[0]);

    op = event_named(events, n, "aten::mm");
    call = event_named(events, n, "cudaLaunchKernel");
    kernel = event_named(events, n, "gemm");
    assert_int_equal(op->start_ns, 10000);
    assert_int_equal(op->duration_ns, 8000);
    assert_int_equal(op->kind, RP_KIND_CPU_OP);
    assert_int_equal(op->parent, RP_NO_INDEX);
    assert_int_equal(op->nargs, 4);
    assert_int_equal(op->phase, 'X');
    assert_string_equal(op->category, "cpu_op");
    assert_int_equal(call->parent, op->index);
    assert_int_equal(call->track, op->track);
    assert_int_equal(kernel->duration_ns, 1500);
    assert_int_equal(kernel->kind, RP_KIND_KERNEL);
    assert_int_equal(rp_timeline_linked(timeline, kernel->index, linked, 4), 2);
    assert_int_equal(linked[0], call->index);
    assert_int_equal(linked[1], kernel->index);
    assert_int_equal(rp_timeline_linked(timeline, kernel->index, NULL, 0), 2);
    assert_int_equal(rp_timeline_linked(timeline, op->index, linked, 4), 0);
    assert_int_equal(rp_timeline_linked(timeline, 1000, linked, 4), 0);

    assert_int_equal(rp_timeline_events(timeline, op->index, 1, &one, sizeof one), 1);
    assert_memory_equal(&one, op, sizeof one);
    assert_int_equal(rp_timeline_events(timeline, n, 1, &one, sizeof one), 0);
    assert_int_equal(rp_timeline_events(timeline, SIZE_MAX, SIZE_MAX, &one, sizeof one), 0);
}

static void check_tracks(const struct rp_timeline *timeline)
{
    struct rp_track_view tracks[4];
    size_t n = rp_timeline_tracks(timeline, 0, 4, tracks, sizeof tracks[0]), found = 0;

    for (size_t i = 0; i < n; i++) {
        assert_int_equal(tracks[i].index, i);
        if (tracks[i].kind == RP_TRACK_STREAM) {
            assert_int_equal(tracks[i].nevents, 1);
            assert_int_equal(tracks[i].tid, 3);
            found++;
        } else if (tracks[i].name && !strcmp(tracks[i].name, "main")) {
            assert_string_equal(tracks[i].process_name, "python");
            assert_int_equal(tracks[i].pid, 7);
            assert_int_equal(tracks[i].tid, 70);
            found++;
        }
    }
    assert_int_equal(found, 2);
}

static void check_args(const struct rp_timeline *timeline)
{
    struct rp_event_view events[8];
    struct rp_arg_view args[8], arg;
    size_t n = rp_timeline_events(timeline, 0, 8, events, sizeof events[0]);
    uint32_t op = event_named(events, n, "aten::mm")->index;

    assert_int_equal(rp_timeline_args(timeline, op, 0, 8, args, sizeof args[0]), 4);
    assert_string_equal(args[0].key, "External id");
    assert_int_equal(args[0].type, RP_ARG_I64);
    assert_int_equal(args[0].i64, 5);
    assert_true(args[0].f64 == 5);
    assert_null(args[0].text);
    assert_true(args[1].type == RP_ARG_F64 && args[1].f64 == 0.5);
    assert_string_equal(args[2].text, "x");
    assert_int_equal(args[3].type, RP_ARG_RAW);
    assert_string_equal(args[3].text, "[1,2]");
    assert_true(rp_timeline_arg(timeline, op, "why", &arg, sizeof arg));
    assert_string_equal(arg.text, "x");
    assert_false(rp_timeline_arg(timeline, op, "correlation", &arg, sizeof arg));
    assert_false(rp_timeline_arg(timeline, 1000, "why", &arg, sizeof arg));
}

static void events_are_walked(void **state)
{
    struct rp_timeline_view view = {.struct_size = sizeof view};
    struct rp_err err = RP_ERR_INIT;
    struct rp_timeline *timeline;
    struct folder folder;

    UNUSED_STATE(state);
    folder_make(&folder);
    assert_ok(rp_timeline_open(folder.dataset, 0, &timeline, &err), &err);
    assert_non_null(timeline);
    rp_timeline_describe(timeline, &view);
    assert_string_equal(view.format, "chrome-json");
    assert_int_equal(view.rank, 1);
    assert_int_equal(view.world_size, 2);
    assert_int_equal(view.begin_ns, 10000);
    assert_int_equal(view.end_ns, 21500);
    check_events(timeline);
    check_tracks(timeline);
    check_args(timeline);
    rp_timeline_free(timeline);
    rp_timeline_free(NULL);
    folder_remove(&folder);
}

static void steps_are_walked(void **state)
{
    static const char marked[] =
        "{\"traceEvents\": ["
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#4\",\"pid\":7,\"tid\":70,"
        "\"ts\":1,\"dur\":5},"
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#5\",\"pid\":7,\"tid\":70,"
        "\"ts\":7,\"dur\":5},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":7,\"tid\":70,\"ts\":2,\"dur\":1}]}";
    struct rp_event_view event;
    struct rp_err err = RP_ERR_INIT;
    struct rp_timeline *timeline;
    struct rp_step_view steps[4];
    struct folder folder;

    UNUSED_STATE(state);
    folder_make(&folder);
    write_file(folder.file[0], marked, "", "");
    assert_ok(rp_timeline_open(folder.dataset, 0, &timeline, &err), &err);
    assert_int_equal(rp_timeline_steps(timeline, 0, 4, steps, sizeof steps[0]), 2);
    assert_int_equal(steps[0].number, 4);
    assert_int_equal(steps[1].number, 5);
    assert_int_equal(steps[1].begin_ns, 7000);
    assert_null(steps[1].phase);
    assert_int_equal(steps[1].requests, -1);
    assert_int_equal(rp_timeline_events(timeline, steps[1].event, 1, &event, sizeof event), 1);
    assert_string_equal(event.name, "ProfilerStep#5");
    assert_int_equal(rp_timeline_steps(timeline, 2, 4, steps, sizeof steps[0]), 0);
    rp_timeline_free(timeline);
    folder_remove(&folder);
}

/* A program compiled against another version of the header has shorter or longer structs. */
static void sizes_differ(void **state)
{
    struct {
        struct rp_event_view view;
        uint64_t later;
    } longer[2];
    struct {
        const char *name, *category;
    } shorter[2];
    struct rp_event_view ours[2];
    struct rp_err err = RP_ERR_INIT;
    struct rp_timeline *timeline;
    struct folder folder;

    UNUSED_STATE(state);
    folder_make(&folder);
    assert_ok(rp_timeline_open(folder.dataset, 0, &timeline, &err), &err);
    memset(longer, 0xff, sizeof longer);
    assert_int_equal(rp_timeline_events(timeline, 0, 2, ours, sizeof ours[0]), 2);
    assert_int_equal(rp_timeline_events(timeline, 0, 2, &longer[0].view, sizeof longer[0]), 2);
    assert_int_equal(rp_timeline_events(timeline, 0, 2, (struct rp_event_view *)(void *)shorter,
                                        sizeof shorter[0]),
                     2);
    for (size_t i = 0; i < 2; i++) {
        assert_memory_equal(&longer[i].view, &ours[i], sizeof ours[i]);
        assert_int_equal(longer[i].later, 0);
        assert_ptr_equal(shorter[i].name, ours[i].name);
        assert_ptr_equal(shorter[i].category, ours[i].category);
    }
    rp_timeline_free(timeline);
    folder_remove(&folder);
}

static void inputs_that_are_not_traces(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_timeline *timeline;
    struct rp_dataset *dataset;
    struct folder folder;
    const char *path;

    UNUSED_STATE(state);
    folder_make(&folder);
    path = folder.file[2];
    assert_int_equal(rp_dataset_count(folder.dataset), 3);
    assert_ok(rp_timeline_open(folder.dataset, 2, &timeline, &err), &err); /* found in a folder */
    assert_null(timeline);
    assert_code(rp_timeline_open(folder.dataset, 3, &timeline, &err), RP_USAGE);

    assert_ok(rp_open(folder.ctx, &path, 1, NULL, &dataset, &err), &err); /* named by the user */
    assert_code(rp_timeline_open(dataset, 0, &timeline, &err), RP_FORMAT);
    assert_contains(err.text, "notes.txt");
    assert_null(timeline);
    rp_dataset_free(dataset);

    write_file(path, "HloModule m\n\nENTRY e {\n  ROOT p = f32[2] parameter(0)\n}\n", "", "");
    assert_ok(rp_open(folder.ctx, &path, 1, NULL, &dataset, &err), &err);
    assert_code(rp_timeline_open(dataset, 0, &timeline, &err), RP_FORMAT);
    assert_contains(err.text, "is not a trace but a program (hlo-text)");
    rp_dataset_free(dataset);
    folder_remove(&folder);
}

static void ranks_are_walked(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_rank_view ranks[4];
    struct rp_rank_list *list;
    struct folder folder;

    UNUSED_STATE(state);
    folder_make(&folder);
    assert_ok(rp_ranks_open(folder.dataset, &list, &err), &err);
    assert_int_equal(rp_ranks_count(list), 2);
    assert_int_equal(rp_ranks_world_size(list), 2);
    assert_int_equal(rp_ranks_read(list, 0, 4, ranks, sizeof ranks[0]), 2);
    assert_int_equal(ranks[0].number, 0);
    assert_int_equal(ranks[0].input, 1); /* b.json */
    assert_string_equal(ranks[0].name, folder.file[1]);
    assert_int_equal(ranks[1].number, 1);
    assert_int_equal(ranks[1].input, 0);
    assert_int_equal(ranks[1].begin_ns, 10000);
    assert_int_equal(rp_ranks_read(list, 1, 4, ranks, sizeof ranks[0]), 1);
    assert_int_equal(ranks[0].number, 1);
    rp_ranks_free(list);
    rp_ranks_free(NULL);

    write_rank(folder.file[0], "0"); /* both files claim rank 0 */
    assert_ok(rp_ranks_open(folder.dataset, &list, &err), &err);
    assert_int_equal(rp_ranks_read(list, 0, 4, ranks, sizeof ranks[0]), 2);
    assert_int_equal(ranks[0].number, 0);
    assert_int_equal(ranks[1].number, 1);
    assert_int_equal(ranks[1].recorded_number, 0);
    rp_ranks_free(list);

    write_file(folder.file[0], "noth", "ing", ""); /* no rank at all is an error */
    write_file(folder.file[1], "noth", "ing", "");
    assert_code(rp_ranks_open(folder.dataset, &list, &err), RP_FORMAT);
    assert_null(list);
    folder_remove(&folder);
}

static void formats_are_listed(void **state)
{
    struct rp_format_view formats[64];
    size_t n = rp_formats(0, 64, formats, sizeof formats[0]), traces = 0;

    UNUSED_STATE(state);
    assert_true(n > 10 && n < 64);
    for (size_t i = 0; i < n; i++) {
        assert_true(formats[i].name && *formats[i].name && formats[i].summary);
        assert_true(formats[i].files && formats[i].written_by);
        traces += !strcmp(formats[i].kind, "trace");
    }
    assert_true(traces > 1 && traces < n);
    assert_int_equal(rp_formats(n, 1, formats, sizeof formats[0]), 0);
    assert_int_equal(rp_formats(n - 1, 5, formats, sizeof formats[0]), 1);
}

static void versions_agree(void **state)
{
    char text[32];

    UNUSED_STATE(state);
    assert_int_equal(rp_version_number(), REPRISE_VERSION_NUMBER);
    snprintf(text, sizeof text, "%d.%d.%d", REPRISE_VERSION_MAJOR, REPRISE_VERSION_MINOR,
             REPRISE_VERSION_PATCH);
    assert_string_equal(rp_version(), text);
}

int test_timeline(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_walked), cmocka_unit_test(steps_are_walked),
        cmocka_unit_test(sizes_differ),      cmocka_unit_test(inputs_that_are_not_traces),
        cmocka_unit_test(ranks_are_walked),  cmocka_unit_test(formats_are_listed),
        cmocka_unit_test(versions_agree),
    };

    return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
