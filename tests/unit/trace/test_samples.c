/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of call stacks: equal stacks are one, order, joins, the native file. */
#include "trace_fixtures.h"

struct sampling {
    struct rp_builder *b;
    rp_track main, loader;
    struct rp_err err;
};

static uint32_t frame_of(struct sampling *m, const char *name, uint32_t line)
{
    struct rp_call_frame frame = {
        .name = str_of(m->b, name), .file = str_of(m->b, "train.py"), line, RP_FRAME_PYTHON};
    uint32_t id;

    assert_ok(rp_builder_frame(m->b, &frame, &id, &m->err), &m->err);
    return id;
}

static uint32_t stack_of(struct sampling *m, uint32_t parent, const char *name, uint32_t line)
{
    uint32_t id;

    assert_ok(rp_builder_stack(m->b, parent, frame_of(m, name, line), &id, &m->err), &m->err);
    return id;
}

static void sample(struct sampling *m, rp_track track, int64_t ts, int64_t weight, uint32_t stack,
                   uint8_t flags)
{
    struct rp_raw_sample raw = {ts, weight, track, stack, flags};

    assert_ok(rp_builder_add_sample(m->b, &raw, &m->err), &m->err);
}

static void begin(struct sampling *m)
{
    uint32_t process;

    *m = (struct sampling){.err = RP_ERR_INIT};
    assert_ok(rp_builder_new(NULL, &m->b, &m->err), &m->err);
    assert_ok(rp_builder_process(m->b, 7, 0, &process, &m->err), &m->err);
    assert_ok(rp_builder_track(m->b, process, 7, 0, true, &m->main, &m->err), &m->err);
    assert_ok(rp_builder_track(m->b, process, 8, 0, true, &m->loader, &m->err), &m->err);
}

static struct rp_trace *finish_it(struct sampling *m)
{
    struct rp_trace *t;

    assert_ok(rp_builder_finish(m->b, &t, &m->err), &m->err);
    assert_ok(rp_trace_validate(t, &m->err), &m->err);
    return t;
}

/* main > step, main > step > load (twice), main > step at another line; a stack that was not read
 */
static struct rp_trace *make_samples(void)
{
    struct sampling m;
    uint32_t outer, step, load;

    begin(&m);
    outer = stack_of(&m, RP_NONE, "main", 1);
    step = stack_of(&m, outer, "step", 10);
    load = stack_of(&m, step, "load", 20);
    sample(&m, m.loader, 500, 10, load, RP_SAMPLE_WAITED | RP_SAMPLE_WANTS_GIL);
    sample(&m, m.main, 300, 10, step, RP_SAMPLE_RAN);
    sample(&m, m.main, 100, 20, load, RP_SAMPLE_RAN | RP_SAMPLE_HAD_GIL);
    sample(&m, m.main, 200, 30, stack_of(&m, outer, "step", 11), 0);
    sample(&m, m.loader, RP_NO_TS, 40, RP_NONE, 0);
    assert_int_equal(stack_of(&m, step, "load", 20), load);
    return finish_it(&m);
}

static void check_samples(const struct rp_trace *t)
{
    const struct rp_call_samples *s = &t->samples;
    static const int64_t ts[] = {100, 200, 300, RP_NO_TS, 500};
    static const int64_t weight[] = {20, 30, 10, 40, 10};
    static const uint8_t flags[] = {5, 0, 1, 0, 10};
    uint32_t i;

    assert_int_equal(s->n, 5);
    assert_int_equal(s->nframes, 4); /* main, step at two lines, load */
    assert_int_equal(s->nstacks, 4);
    for (i = 0; i < 5; i++) {
        assert_int_equal(s->ts_ns[i], ts[i]);
        assert_int_equal(s->weight[i], weight[i]);
        assert_int_equal(s->flags[i], flags[i]);
        assert_int_equal(s->track[i], i < 3 ? s->track[0] : s->track[4]);
    }
    assert_int_equal(s->stack[3], RP_NONE);
    assert_int_equal(s->stack[0], s->stack[4]);
    assert_string_equal(rp_trace_str(t, s->frame[s->stacks[s->stack[0]].frame].name), "load");
    assert_int_equal(s->stacks[s->stack[0]].parent, s->stack[2]);
    assert_int_equal(s->frame[s->stacks[s->stack[1]].frame].line, 11);
    assert_int_equal(t->totals.span_begin_ns, 100);
    assert_int_equal(t->totals.span_end_ns, 510); /* a wait lasts from its sample on */
}

static void samples_are_ordered_and_stacks_shared(void **state)
{
    struct rp_trace *t = make_samples();

    UNUSED_STATE(state);
    check_samples(t);
    rp_trace_free(t);
}

static void native_file_keeps_samples(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_trace *t = make_samples(), *back;
    size_t n;
    uint8_t *bytes = rpt_of(t, &n);

    UNUSED_STATE(state);
    assert_ok(rp_rpt_open(bytes, n, &back, &err), &err);
    assert_int_equal(back->samples.n, 5); /* known before the samples are read */
    assert_ok(rp_trace_verify(back, &err), &err);
    check_samples(back);
    rp_trace_free(back);
    rp_trace_free(t);
    free(bytes);
}

static int64_t later(const void *user, uint32_t process, int64_t ns)
{
    (void)user, (void)process;
    return ns + 1000;
}

static void joined_traces_share_stacks_and_move_times(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_trace *t = make_samples(), *both;
    struct rp_builder *b;
    struct rp_append how = {.pid_step = 10};

    UNUSED_STATE(state);
    assert_ok(rp_builder_new(NULL, &b, &err), &err);
    assert_ok(rp_builder_append(b, t, &how, &err), &err);
    how.index = 1;
    how.time = later;
    assert_ok(rp_builder_append(b, t, &how, &err), &err);
    assert_ok(rp_builder_finish(b, &both, &err), &err);
    assert_ok(rp_trace_validate(both, &err), &err);
    assert_int_equal(both->samples.n, 10);
    assert_int_equal(both->samples.nstacks, 4);
    assert_int_equal(both->samples.ts_ns[5], 1100);
    assert_int_equal(both->samples.ts_ns[8], RP_NO_TS);
    rp_trace_free(both);
    rp_trace_free(t);
}

static void samples_of_another_unit_are_left_out(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_trace *t = make_samples(), *both;
    struct rp_builder *b;
    struct rp_append how = {.pid_step = 10};

    UNUSED_STATE(state);
    assert_ok(rp_builder_new(NULL, &b, &err), &err);
    assert_ok(rp_builder_append(b, t, &how, &err), &err);
    t->samples.unit = RP_WEIGHT_BYTES;
    how.index = 1;
    assert_ok(rp_builder_append(b, t, &how, &err), &err);
    assert_ok(rp_builder_finish(b, &both, &err), &err);
    assert_int_equal(both->samples.n, 5);
    assert_int_equal(both->samples.unit, RP_WEIGHT_NS);
    assert_int_equal(both->nwarnings, 1);
    rp_trace_free(both);
    rp_trace_free(t);
}

static void limits_and_wrong_ids_are_errors(void **state)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_raw_sample raw = {0, 1, 0, RP_NONE, 0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_builder *b;
    uint32_t id;

    UNUSED_STATE(state);
    limits.events = 1;
    assert_ok(rp_builder_new(&limits, &b, &err), &err);
    assert_int_equal(rp_builder_add_sample(b, &raw, &err), RP_BUG); /* no such track */
    assert_ok(rp_builder_process(b, 1, 0, &id, &err), &err);
    assert_ok(rp_builder_track(b, id, 1, 0, true, &raw.track, &err), &err);
    assert_ok(rp_builder_add_sample(b, &raw, &err), &err);
    assert_int_equal(rp_builder_add_sample(b, &raw, &err), RP_LIMIT);
    assert_int_equal(rp_builder_stack(b, RP_NONE, 0, &id, &err), RP_BUG); /* no such frame */
    rp_builder_free(b);
}

int test_samples(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(samples_are_ordered_and_stacks_shared),
                                       cmocka_unit_test(native_file_keeps_samples),
                                       cmocka_unit_test(joined_traces_share_stacks_and_move_times),
                                       cmocka_unit_test(samples_of_another_unit_are_left_out),
                                       cmocka_unit_test(limits_and_wrong_ids_are_errors)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
