/* SPDX-License-Identifier: Apache-2.0 */
/* Perfetto's tracks: numbers, names, siblings that are one, processes whose number is used again.
 */
#include "proto_fixture.h"

#include "abi/proto/perfetto.h"

struct described {
    uint64_t uuid, parent;
    const char *name, *description, *key;
    uint64_t merge;
    int64_t pid, tid; /* of a process, or with a tid of a thread; 0: a plain track */
};

static size_t begin_packet(struct rp_proto_writer *w)
{
    size_t packet = rp_proto_begin(w, RP_PFT_TRACE_PACKET);

    rp_proto_put_varint(w, RP_PFT_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
    return packet;
}

static void put_track(struct rp_proto_writer *w, struct described d)
{
    size_t packet = begin_packet(w), track = rp_proto_begin(w, RP_PFT_PACKET_TRACK_DESCRIPTOR), of;

    rp_proto_put_varint(w, RP_PFT_TRACK_UUID, d.uuid);
    if (d.parent)
        rp_proto_put_varint(w, RP_PFT_TRACK_PARENT_UUID, d.parent);
    if (d.name && !d.pid)
        rp_proto_put_text(w, RP_PFT_TRACK_NAME, d.name);
    if (d.description)
        rp_proto_put_text(w, RP_PFT_TRACK_DESCRIPTION, d.description);
    if (d.merge)
        rp_proto_put_varint(w, RP_PFT_TRACK_SIBLING_MERGE_BEHAVIOR, d.merge);
    if (d.key)
        rp_proto_put_text(w, RP_PFT_TRACK_SIBLING_MERGE_KEY, d.key);
    if (d.pid) {
        of = rp_proto_begin(w, d.tid ? RP_PFT_TRACK_THREAD : RP_PFT_TRACK_PROCESS);
        rp_proto_put_varint(w, d.tid ? RP_PFT_THREAD_PID : RP_PFT_PROCESS_PID, (uint64_t)d.pid);
        if (d.tid)
            rp_proto_put_varint(w, RP_PFT_THREAD_TID, (uint64_t)d.tid);
        if (d.name)
            rp_proto_put_text(w, d.tid ? RP_PFT_THREAD_THREAD_NAME : RP_PFT_PROCESS_PROCESS_NAME,
                              d.name);
        rp_proto_end(w, of);
    }
    rp_proto_end(w, track);
    rp_proto_end(w, packet);
}

static void put_event(struct rp_proto_writer *w, uint64_t uuid, const char *name)
{
    size_t packet = begin_packet(w), event;

    rp_proto_put_varint(w, RP_PFT_PACKET_TIMESTAMP, 1000);
    event = rp_proto_begin(w, RP_PFT_PACKET_TRACK_EVENT);
    rp_proto_put_varint(w, RP_PFT_EVENT_TYPE, RP_PFT_INSTANT);
    rp_proto_put_varint(w, RP_PFT_EVENT_TRACK_UUID, uuid);
    rp_proto_put_text(w, RP_PFT_EVENT_NAME, name);
    rp_proto_end(w, event);
    rp_proto_end(w, packet);
}

static const struct rp_track_info *track_with(const struct rp_trace *t, const char *event)
{
    return &t->tracks[t->ev.track[find(t, event)]];
}

/* "stream 7" says which it is, in the name or in the description. */
static void numbers_are_in_names(void **state)
{
    static const struct {
        const char *name, *description;
        int64_t number; /* -1: none */
    } cases[] = {{"stream 7", NULL, 7},
                 {"thread 12", NULL, 12},
                 {"stream 0", NULL, 0},
                 {"x", "stream 19", 19},
                 {"stream 5", "thread 6", 6},
                 {"stream x", NULL, -1},
                 {"stream /", NULL, -1},
                 {"stream :", NULL, -1},
                 {"streams 8", NULL, -1},
                 {"stream 100000000000000000", NULL, INT64_C(100000000000000000)},
                 {"stream 99999999999999999999", NULL, -1}};
    struct rp_proto_writer w = {0};
    struct rp_import import;
    char name[8];

    UNUSED_STATE(state);
    put_track(&w, (struct described){.uuid = 1, .pid = 5});
    for (uint64_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(name, sizeof name, "e%d", (int)i);
        put_track(&w, (struct described){.uuid = 10 + i,
                                         .parent = 1,
                                         .name = cases[i].name,
                                         .description = cases[i].description});
        put_event(&w, 10 + i, name);
    }
    import = load_message(&w);
    for (uint64_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(name, sizeof name, "e%d", (int)i);
        const struct rp_track_info *track = track_with(import.trace, name);
        if (cases[i].number < 0)
            assert_true(track->native_id >= 1000000 && track->native_id < 1000100);
        else
            assert_int_equal(track->native_id, cases[i].number);
        assert_string_equal(rp_trace_str(import.trace, track->name), cases[i].name);
    }
    rp_import_release(&import);
}

/* Siblings of one name, or of one key, are one track, unless they shall never be. */
static void siblings_are_one_track(void **state)
{
    static const struct {
        uint64_t parent, merge;
        const char *name, *key;
        int like; /* the track that it is */
    } cases[] = {{1, 0, "work", NULL, 0},
                 {1, 0, "work", NULL, 0},
                 {1, RP_PFT_MERGE_BY_NAME, "work", NULL, 0},
                 {1, 0, "other", NULL, 3},
                 {2, 0, "work", NULL, 4},
                 {1, RP_PFT_MERGE_NONE, "work", NULL, 5},
                 {1, RP_PFT_MERGE_NONE, "work", NULL, 6},
                 {1, RP_PFT_MERGE_BY_KEY, "a", "k", 7},
                 {1, RP_PFT_MERGE_BY_KEY, "b", "k", 7},
                 {1, RP_PFT_MERGE_BY_KEY, "a", "l", 9},
                 {2, RP_PFT_MERGE_BY_KEY, "a", "k", 10}};
    enum { N = sizeof cases / sizeof cases[0] };
    struct rp_proto_writer w = {0};
    struct rp_import import;
    rp_track tracks[N];
    char name[8];

    UNUSED_STATE(state);
    for (uint64_t i = 1; i < 3; i++)
        put_track(&w, (struct described){.uuid = i, .pid = 4 + (int64_t)i});
    for (uint64_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, "e%d", (int)i);
        put_track(&w, (struct described){.uuid = 10 + i,
                                         .parent = cases[i].parent,
                                         .name = cases[i].name,
                                         .merge = cases[i].merge,
                                         .key = cases[i].key});
        put_event(&w, 10 + i, name);
    }
    import = load_message(&w);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "e%d", i);
        tracks[i] = import.trace->ev.track[find(import.trace, name)];
        assert_int_equal(tracks[i], tracks[cases[i].like]);
        for (int k = 0; k < i && cases[i].like == i; k++)
            assert_int_not_equal(tracks[i], tracks[k]);
    }
    rp_import_release(&import);
}

/* Another uuid with a number that was used: another process, or another thread. */
static void numbers_are_used_again(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_import import;
    const struct rp_track_info *a, *b, *c;
    const struct rp_trace *t;

    UNUSED_STATE(state);
    put_track(&w, (struct described){.uuid = 1, .pid = 5, .name = "first"});
    put_track(&w, (struct described){.uuid = 9, .pid = 5, .tid = 1000003});
    put_event(&w, 9, "the number that the fourth track would have");
    put_track(&w, (struct described){.uuid = 2, .pid = 5, .tid = 7, .name = "main"});
    put_event(&w, 2, "a");
    put_track(&w, (struct described){.uuid = 3, .pid = 5, .tid = 7, .name = "again"});
    put_event(&w, 3, "b");
    put_track(&w, (struct described){.uuid = 4, .pid = 5, .name = "second"});
    put_event(&w, 4, "c");
    import = load_message(&w);
    t = import.trace;
    a = track_with(t, "a");
    b = track_with(t, "b");
    c = track_with(t, "c");
    assert_int_equal(a->native_id, 7);
    assert_int_equal(b->native_id, 1000004);
    assert_int_equal(a->process, b->process);
    assert_int_not_equal(a->process, c->process);
    assert_string_equal(rp_trace_str(t, a->name), "main");
    assert_string_equal(rp_trace_str(t, b->name), "again");
    rp_import_release(&import);
}

/* A plain track keeps the name of its first event; threads, and what is never merged, have the
 * last. */
static void names_may_change(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_import import;

    UNUSED_STATE(state);
    put_track(&w, (struct described){.uuid = 1, .pid = 5});
    for (int round = 0; round < 2; round++) {
        put_track(&w, (struct described){
                          .uuid = 2, .parent = 1, .name = round ? "plain, renamed" : "plain"});
        put_track(&w, (struct described){.uuid = 3,
                                         .parent = 1,
                                         .merge = RP_PFT_MERGE_NONE,
                                         .name = round ? "alone, renamed" : "alone"});
        put_track(&w,
                  (struct described){
                      .uuid = 4, .pid = 5, .tid = 8, .name = round ? "thread, renamed" : "thread"});
        if (!round)
            for (uint64_t i = 2; i < 5; i++)
                put_event(&w, i, (const char *const[]){"a", "b", "c"}[i - 2]);
    }
    put_track(&w, (struct described){.uuid = 5, .parent = 1});
    put_event(&w, 5, "names its track");
    import = load_message(&w);
    assert_string_equal(rp_trace_str(import.trace, track_with(import.trace, "a")->name), "plain");
    assert_string_equal(rp_trace_str(import.trace, track_with(import.trace, "b")->name),
                        "alone, renamed");
    assert_string_equal(rp_trace_str(import.trace, track_with(import.trace, "c")->name),
                        "thread, renamed");
    assert_string_equal(
        rp_trace_str(import.trace, track_with(import.trace, "names its track")->name),
        "names its track");
    rp_import_release(&import);
}

/* Parents lead to a process; what has none belongs to a process of its own. */
static void parents_lead_to_processes(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_import import;
    const struct rp_trace *t;

    UNUSED_STATE(state);
    put_track(&w, (struct described){.uuid = 1, .pid = 5});
    put_event(&w, 1, "process");
    for (uint64_t i = 100; i < 300; i++) /* each is below the one before */
        put_track(&w, (struct described){.uuid = i, .parent = i == 100 ? 1 : i - 1, .name = "x"});
    put_event(&w, 163, "far");
    put_event(&w, 162, "near"); /* 63 tracks, and the process */
    put_track(&w, (struct described){.uuid = 400, .name = "root"});
    put_event(&w, 400, "none");
    put_track(&w, (struct described){.uuid = 401, .parent = 999, .name = "orphan"});
    put_event(&w, 401, "lost");
    import = load_message(&w);
    t = import.trace;
    assert_int_equal(track_with(t, "near")->process, track_with(t, "process")->process);
    assert_int_not_equal(track_with(t, "far")->process, track_with(t, "process")->process);
    assert_int_equal(track_with(t, "none")->process, track_with(t, "far")->process);
    assert_int_equal(track_with(t, "lost")->process, track_with(t, "far")->process);
    rp_import_release(&import);
}

static void put_command(struct rp_proto_writer *w, int64_t pid, const char *first, const char *next)
{
    size_t process = rp_proto_begin(w, RP_PFT_PROCESS_TREE_PROCESSES);

    if (pid)
        rp_proto_put_varint(w, RP_PFT_TREE_PROCESS_PID, (uint64_t)pid);
    rp_proto_put_text(w, RP_PFT_TREE_PROCESS_CMDLINE, first);
    rp_proto_put_text(w, RP_PFT_TREE_PROCESS_CMDLINE, next);
    rp_proto_end(w, process);
}

/* The system names processes that have no name; it has no process 0. */
static void processes_have_names(void **state)
{
    static const char *const want[] = {"python", "mine", ""};
    struct rp_proto_writer w = {0};
    struct rp_import import;
    const struct rp_trace *t;
    size_t packet, tree;

    UNUSED_STATE(state);
    for (uint64_t i = 1; i < 4; i++) {
        put_track(&w, (struct described){
                          .uuid = i, .pid = 4 + (int64_t)i, .name = i == 2 ? "mine" : NULL});
        put_event(&w, i, (const char *const[]){"a", "b", "c"}[i - 1]);
    }
    packet = begin_packet(&w);
    tree = rp_proto_begin(&w, RP_PFT_PACKET_PROCESS_TREE);
    put_command(&w, 5, "python", "train.py");
    put_command(&w, 6, "other", "-v");
    put_command(&w, 0, "kernel", "-");
    rp_proto_end(&w, tree);
    rp_proto_end(&w, packet);
    import = load_message(&w);
    t = import.trace;
    for (int i = 0; i < 3; i++) {
        const struct rp_process *p =
            &t->processes[track_with(t, (const char *const[]){"a", "b", "c"}[i])->process];
        assert_string_equal(rp_trace_str(t, p->name), want[i]);
    }
    rp_import_release(&import);
}

int test_perfetto_tracks(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_in_names),      cmocka_unit_test(siblings_are_one_track),
        cmocka_unit_test(numbers_are_used_again),    cmocka_unit_test(names_may_change),
        cmocka_unit_test(parents_lead_to_processes), cmocka_unit_test(processes_have_names),
    };

    return cmocka_run_group_tests_name("perfetto_tracks", tests, NULL, NULL);
}
