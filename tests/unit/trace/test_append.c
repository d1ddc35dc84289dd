/* SPDX-License-Identifier: Apache-2.0 */
/* Traces joined into one: nothing of one can be taken for something of the other. */
#include "trace/build/build.h"
#include "unit.h"

#include <string.h>

static rp_str text(struct rp_builder *b, const char *s)
{
    struct rp_err err;
    rp_str id;

    assert_int_equal(rp_builder_intern(b, s, strlen(s), &id, &err), RP_OK);
    return id;
}

struct making {
    struct rp_builder *b;
    rp_track thread, stream;
    struct rp_err err;
};

static void add(struct making *m, char phase, const char *category, uint8_t kind, uint8_t flags,
                rp_track track, const char *name, int64_t ts, int64_t dur, int64_t id)
{
    struct rp_origin o = {.category = text(m->b, category),
                          .phase = phase,
                          .kind = kind,
                          .flags = flags,
                          .has_category = 1};
    struct rp_arg arg = {.key = text(m->b, "correlation"), .type = RP_ARG_I64, .v.i = id};
    struct rp_raw raw = {.ts_ns = ts,
                         .dur_ns = dur,
                         .name = text(m->b, name),
                         .track = track,
                         .has_link = id >= 0,
                         .link = id,
                         .flags = phase == 'b' || phase == 'e' ? RP_EVENT_ASYNC : 0,
                         .args = &arg,
                         .nargs = 1};

    assert_int_equal(rp_builder_origin(m->b, &o, &raw.origin, &m->err), RP_OK);
    if (id >= 0)
        assert_int_equal(rp_builder_shape(m->b, &arg, 1, &raw.shape, &m->err), RP_OK);
    assert_int_equal(rp_builder_add(m->b, &raw, &m->err), RP_OK);
}

/* A launch and its kernel, a pair of a thread and one of a chain. */
static struct rp_trace *make(void)
{
    struct making m = {0};
    struct rp_trace *t;
    uint32_t host, device;

    assert_int_equal(rp_builder_new(NULL, &m.b, &m.err), RP_OK);
    assert_int_equal(rp_builder_process(m.b, 70, 0, &host, &m.err), RP_OK);
    assert_int_equal(rp_builder_process(m.b, 0, text(m.b, "GPU"), &device, &m.err), RP_OK);
    assert_int_equal(rp_builder_track(m.b, host, 1, 0, true, &m.thread, &m.err), RP_OK);
    assert_int_equal(rp_builder_track(m.b, device, 7, 0, true, &m.stream, &m.err), RP_OK);
    add(&m, 'X', "cuda_runtime", RP_KIND_RUNTIME, RP_ORIGIN_RUNTIME, m.thread, "launch", 100, 10,
        5);
    add(&m, 'X', "kernel", RP_KIND_KERNEL, RP_ORIGIN_GPU, m.stream, "gemm", 120, 50, 5);
    add(&m, 'B', "x", RP_KIND_OTHER, 0, m.thread, "pair", 200, RP_OPEN_NS, -1);
    add(&m, 'E', "x", RP_KIND_OTHER, 0, m.thread, "", 260, RP_OPEN_NS, -1);
    add(&m, 'b', "y", RP_KIND_OTHER, 0, m.thread, "chain", 300, RP_OPEN_NS, 9);
    add(&m, 'e', "y", RP_KIND_OTHER, 0, m.thread, "chain", 330, RP_OPEN_NS, 9);
    assert_int_equal(rp_builder_finish(m.b, &t, &m.err), RP_OK);
    return t;
}

static int64_t later(const void *user, uint32_t process, int64_t ns)
{
    (void)process;
    return ns + *(const int64_t *)user;
}

static struct rp_trace *join(const struct rp_trace *t, int64_t second_ns)
{
    int64_t shifts[2] = {0, second_ns};
    struct rp_append_arrow arrow = {0, 1, 110, 120, "way"};
    struct rp_builder *b;
    struct rp_trace *all;
    struct rp_err err;
    uint32_t i;

    assert_int_equal(rp_builder_new(NULL, &b, &err), RP_OK);
    for (i = 0; i < 2; i++) {
        struct rp_append how = {.index = i,
                                .pid_step = 100,
                                .label = i ? "rank 1" : "rank 0",
                                .time = later,
                                .user = &shifts[i],
                                .arrows = &arrow,
                                .narrows = i,
                                .meta = i == 0};

        assert_int_equal(rp_builder_append(b, t, &how, &err), RP_OK);
    }
    assert_int_equal(rp_builder_finish(b, &all, &err), RP_OK);
    assert_int_equal(rp_trace_validate(all, &err), RP_OK);
    return all;
}

static rp_event find(const struct rp_trace *t, const char *name, uint32_t process)
{
    rp_event e;

    for (e = 0; e < t->ev.n; e++)
        if (!strcmp(rp_trace_str(t, t->ev.name[e]), name) &&
            t->tracks[t->ev.track[e]].process == process)
            return e;
    return RP_NONE;
}

/* Windows of one process: the threads are the same, launches and their kernels stay apart. */
static void windows_are_joined(void **state)
{
    struct rp_trace *t = make(), *all;
    int64_t shifts[2] = {0, 1000};
    struct rp_builder *b;
    struct rp_err err;

    UNUSED_STATE(state);
    assert_int_equal(rp_builder_new(NULL, &b, &err), RP_OK);
    for (uint32_t i = 0; i < 2; i++) {
        struct rp_append how = {
            .index = i + 1, .window_of = 1, .pid_step = 100, .time = later, .user = &shifts[i]};

        assert_int_equal(rp_builder_append(b, t, &how, &err), RP_OK);
    }
    assert_int_equal(rp_builder_finish(b, &all, &err), RP_OK);
    assert_int_equal(all->nprocesses, t->nprocesses);
    assert_int_equal(all->ntracks, t->ntracks);
    assert_int_equal(all->links.n, 2 * t->links.n);
    rp_trace_free(all);
    rp_trace_free(t);
}

static void ranks_stay_apart(void **state)
{
    struct rp_trace *t = make(), *all = join(t, 1000);
    rp_event launch[2], gemm[2];
    uint32_t i;

    UNUSED_STATE(state);
    assert_int_equal(all->nprocesses, 4);
    assert_int_equal(all->links.n, 2 * t->links.n);
    for (i = 0; i < 2; i++) {
        launch[i] = find(all, "launch", 2 * i);
        gemm[i] = find(all, "gemm", 2 * i + 1);
        assert_true(launch[i] != RP_NONE && gemm[i] != RP_NONE);
        assert_int_equal(all->ev.link[launch[i]], all->ev.link[gemm[i]]);
        assert_int_equal(all->ev.ts_ns[gemm[i]], 120 + 1000 * i);
        assert_int_equal(all->ev.dur_ns[gemm[i]], 50);
    }
    assert_int_not_equal(all->ev.link[launch[0]], all->ev.link[launch[1]]);
    assert_string_equal(rp_trace_str(all, all->processes[0].name), "rank 0");
    assert_string_equal(rp_trace_str(all, all->processes[3].name), "rank 1");
    assert_int_equal(all->processes[3].native_id, 101);
    rp_trace_free(all);
    rp_trace_free(t);
}

static void pairs_keep_their_times(void **state)
{
    struct rp_trace *t = make(), *all = join(t, -50);
    rp_event pair = find(all, "pair", 2), chain = find(all, "chain", 2);

    UNUSED_STATE(state);
    assert_int_equal(all->health.unended, 0);
    assert_int_equal(all->health.unbegun, 0);
    assert_int_equal(all->ev.ts_ns[pair], 150);
    assert_int_equal(all->ev.dur_ns[pair], 60);
    assert_int_equal(all->ev.ts_ns[chain], 250);
    assert_int_equal(all->ev.dur_ns[chain], 30);
    assert_int_equal(all->flows.n, 2);
    assert_int_equal(all->flows.ts_ns[0], 60);
    assert_int_equal(all->flows.id[0], all->flows.id[1]);
    rp_trace_free(all);
    rp_trace_free(t);
}

/* A clock that gains or loses a part in a hundred thousand, ten times as much as clocks do. */
static int64_t drifts(const void *user, uint32_t process, int64_t ns)
{
    (void)process;
    return ns + ns / *(const int64_t *)user;
}

/* An event of a second, in it two that touch each other and its ends. */
static void durations_stay_on_a_clock_that_drifts(void **state)
{
    static const int64_t rates[] = {100000, -100000};
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < 2; i++) {
        struct making m = {0};
        struct rp_append how = {.pid_step = 100, .time = drifts, .user = &rates[i]};
        struct rp_trace *t, *moved;
        rp_event outer, first, second;
        struct rp_builder *b;
        uint32_t host;

        assert_int_equal(rp_builder_new(NULL, &m.b, &m.err), RP_OK);
        assert_int_equal(rp_builder_process(m.b, 70, 0, &host, &m.err), RP_OK);
        assert_int_equal(rp_builder_track(m.b, host, 1, 0, true, &m.thread, &m.err), RP_OK);
        add(&m, 'X', "cpu_op", RP_KIND_CPU_OP, 0, m.thread, "outer", 1000000000, 1000000000, -1);
        add(&m, 'X', "cpu_op", RP_KIND_CPU_OP, 0, m.thread, "first", 1000000000, 400000000, -1);
        add(&m, 'X', "cpu_op", RP_KIND_CPU_OP, 0, m.thread, "second", 1400000000, 600000000, -1);
        assert_int_equal(rp_builder_finish(m.b, &t, &m.err), RP_OK);
        assert_int_equal(rp_builder_new(NULL, &b, &m.err), RP_OK);
        assert_int_equal(rp_builder_append(b, t, &how, &m.err), RP_OK);
        assert_int_equal(rp_builder_finish(b, &moved, &m.err), RP_OK);
        outer = find(moved, "outer", 0);
        first = find(moved, "first", 0);
        second = find(moved, "second", 0);
        assert_int_equal(moved->ev.ts_ns[outer], i ? 999990000 : 1000010000);
        assert_int_equal(moved->ev.dur_ns[outer], 1000000000);
        assert_int_equal(moved->ev.dur_ns[first], 400000000);
        assert_int_equal(moved->ev.dur_ns[second], 600000000);
        assert_int_equal(moved->ev.parent[first], outer);
        assert_int_equal(moved->ev.parent[second], outer);
        assert_true(rp_event_end_ns(moved, first) <= moved->ev.ts_ns[second]);
        rp_trace_free(moved);
        rp_trace_free(t);
    }
}

int test_append(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_joined),
        cmocka_unit_test(ranks_stay_apart),
        cmocka_unit_test(pairs_keep_their_times),
        cmocka_unit_test(durations_stay_on_a_clock_that_drifts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
