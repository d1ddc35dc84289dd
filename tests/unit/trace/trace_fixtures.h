/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_TRACE_FIXTURES_H
#define RP_TESTS_TRACE_FIXTURES_H
/*
 * Small traces for tests: events are given as rows, with the categories of Kineto, and finished as
 * a reader would. Every event has the argument "n", its number in the file, so that a test finds it
 * again behind the passes.
 */
#include "trace/build/build.h"
#include "trace/finish/finish.h"
#include "trace/names.h"
#include "trace/rpt/rpt.h"
#include "unit.h"

#include <stdlib.h>

/* Rows name their first fields by place and leave the rest out. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define NO_ARG INT64_MIN

/* One event; zero is "none" where that makes sense. */
struct row {
    char phase;
    const char *category, *name;
    int64_t pid, tid, ts, dur;
    int64_t corr, stream, external; /* arguments; 0: none */
    const char *key;                /* one more argument, a number */
    int64_t value;
    int64_t id; /* of arrows and chains; 0: none */
    const char *text_key, *text;
    const char *key2; /* and another number */
    int64_t value2;
    const char *text_key2, *text2; /* and another text */
};

static inline rp_str str_of(struct rp_builder *b, const char *s)
{
    rp_str id;

    assert_ok(rp_builder_intern(b, s, strlen(s), &id, NULL), &(struct rp_err)RP_ERR_INIT);
    return id;
}

static inline uint16_t origin_of(struct rp_builder *b, char phase, const char *category)
{
    static const struct {
        const char *category;
        uint8_t kind, flags;
    } known[] = {
        {"cpu_op", RP_KIND_CPU_OP, RP_ORIGIN_NESTS | RP_ORIGIN_MARKS_STEP},
        {"user_annotation", RP_KIND_ANNOTATION, RP_ORIGIN_NESTS | RP_ORIGIN_MARKS_STEP},
        {"cuda_runtime", RP_KIND_RUNTIME, RP_ORIGIN_RUNTIME | RP_ORIGIN_NESTS},
        {"kernel", RP_KIND_KERNEL, RP_ORIGIN_GPU},
        {"gpu_memcpy", RP_KIND_MEMCPY, RP_ORIGIN_GPU},
        {"gpu_user_annotation", RP_KIND_GPU_ANNOTATION, 0},
        {"python_function", RP_KIND_PYTHON, RP_ORIGIN_NESTS},
        {"cuda_sync", RP_KIND_SYNC, 0},
        {"overhead", RP_KIND_OVERHEAD, 0},
        {"blocking", RP_KIND_WAIT, RP_ORIGIN_NESTS},
        {"in_flight", RP_KIND_WAIT, RP_ORIGIN_NESTS},
        {"collective_comm", RP_KIND_COMM_OP, RP_ORIGIN_NESTS},
    };
    struct rp_origin origin = {.phase = phase};
    uint16_t out;
    size_t i;

    if (phase == 'M')
        origin.kind = RP_KIND_METADATA;
    if (phase == 'C')
        origin.kind = RP_KIND_COUNTER;
    if (phase == 'i')
        origin.kind = RP_KIND_INSTANT;
    if (category) {
        origin.category = str_of(b, category);
        origin.has_category = 1;
        for (i = 0; i < sizeof known / sizeof known[0]; i++)
            if (!strcmp(category, known[i].category) && strchr("XBb", phase)) {
                origin.kind = known[i].kind;
                origin.flags = phase == 'X' ? known[i].flags : 0;
            }
    }
    assert_code(rp_builder_origin(b, &origin, &out, NULL), RP_OK);
    return out;
}

static inline rp_track track_of(struct rp_builder *b, int64_t pid, int64_t tid)
{
    uint32_t process;
    rp_track track;

    assert_code(rp_builder_process(b, pid, 0, &process, NULL), RP_OK);
    assert_code(rp_builder_track(b, process, tid, 0, true, &track, NULL), RP_OK);
    return track;
}

static inline void push_arg(struct rp_builder *b, struct rp_arg *args, uint32_t *n, const char *key,
                            int64_t value)
{
    args[(*n)++] = (struct rp_arg){.key = str_of(b, key), .type = RP_ARG_I64, .v = {.i = value}};
}

static inline void add_flow_row(struct rp_builder *b, const struct row *r)
{
    struct rp_raw_flow flow = {.ts_ns = r->ts,
                               .id = r->id,
                               .name = str_of(b, r->name),
                               .track = track_of(b, r->pid, r->tid),
                               .origin = origin_of(b, r->phase, r->category),
                               .flags = r->phase == 'f' ? RP_FLOW_BIND_ENCLOSING : 0};

    assert_code(rp_builder_add_flow(b, &flow, NULL), RP_OK);
}

static inline void add_row(struct rp_builder *b, const struct row *r)
{
    bool async = strchr("beSFn", r->phase) != NULL;
    struct rp_arg args[8];
    struct rp_raw raw = {.ts_ns = r->ts,
                         .dur_ns = r->phase == 'X' ? r->dur : RP_OPEN_NS,
                         .name = str_of(b, r->name ? r->name : ""),
                         .track = track_of(b, r->pid, r->tid),
                         .origin = origin_of(b, r->phase, r->category),
                         .args = args};

    if (strchr("stf", r->phase)) {
        add_flow_row(b, r);
        return;
    }
    push_arg(b, args, &raw.nargs, "n", rp_builder_count(b));
    if (r->corr)
        push_arg(b, args, &raw.nargs, "correlation", r->corr);
    if (r->stream)
        push_arg(b, args, &raw.nargs, "stream", r->stream);
    if (r->external)
        push_arg(b, args, &raw.nargs, "External id", r->external);
    if (r->key)
        push_arg(b, args, &raw.nargs, r->key, r->value);
    if (r->key2)
        push_arg(b, args, &raw.nargs, r->key2, r->value2);
    if (r->text_key)
        args[raw.nargs++] = (struct rp_arg){
            .key = str_of(b, r->text_key), .type = RP_ARG_STR, .v = {.s = str_of(b, r->text)}};
    if (r->text_key2)
        args[raw.nargs++] = (struct rp_arg){
            .key = str_of(b, r->text_key2), .type = RP_ARG_STR, .v = {.s = str_of(b, r->text2)}};
    raw.has_link = r->corr || (async && r->id);
    raw.link = async ? r->id : r->corr;
    raw.flags = async && r->id ? RP_EVENT_ASYNC : 0;
    assert_code(rp_builder_shape(b, args, raw.nargs, &raw.shape, NULL), RP_OK);
    assert_code(rp_builder_add(b, &raw, NULL), RP_OK);
}

static inline struct rp_builder *build_rows(const struct row *rows, size_t n)
{
    struct rp_builder *b;
    size_t i;

    assert_code(rp_builder_new(NULL, &b, NULL), RP_OK);
    for (i = 0; i < n; i++)
        add_row(b, &rows[i]);
    return b;
}

static inline struct rp_trace *finish_valid(struct rp_builder *b)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_trace *t;

    assert_ok(rp_builder_finish(b, &t, &err), &err);
    assert_ok(rp_trace_validate(t, &err), &err);
    return t;
}

static inline struct rp_trace *trace_of(const struct row *rows, size_t n)
{
    return finish_valid(build_rows(rows, n));
}

#define TRACE_OF(rows) trace_of((rows), sizeof(rows) / sizeof(rows)[0])

static inline rp_str find_str(const struct rp_trace *t, const char *text)
{
    rp_str s;

    for (s = 0; s < t->str.n && strcmp(rp_trace_str(t, s), text) != 0; s++)
        ;
    return s < t->str.n ? s : RP_NONE;
}

static inline int64_t arg_of(const struct rp_trace *t, rp_event e, const char *key)
{
    struct rp_arg arg;

    if (!rp_args_find(&t->args, t->ev.shape[e], t->ev.arg_row[e], find_str(t, key), &arg) ||
        arg.type != RP_ARG_I64)
        return NO_ARG;
    return arg.v.i;
}

/* The event that was the n-th of the file, without counting arrows. */
static inline rp_event event_n(const struct rp_trace *t, int64_t n)
{
    rp_event e;

    for (e = 0; e < t->ev.n && arg_of(t, e, "n") != n; e++)
        ;
    return e < t->ev.n ? e : RP_NONE;
}

static inline const char *name_of(const struct rp_trace *t, rp_event e)
{
    return rp_trace_str(t, t->ev.name[e]);
}

/* A generator that is the same everywhere. */
struct random {
    uint64_t state;
};

static inline uint32_t random_below(struct random *r, uint32_t n)
{
    r->state = r->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(r->state >> 33) % n;
}

/* The bytes of a trace as a native file; free() them. */
static inline uint8_t *rpt_of(const struct rp_trace *t, size_t *n)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    uint8_t *copy;

    assert_ok(rp_out_open_memory(&out, &err), &err);
    assert_ok(rp_rpt_write(t, out, &err), &err);
    copy = (uint8_t *)malloc(rp_out_position(out) + 1);
    assert_non_null(copy);
    memcpy(copy, rp_out_borrow_memory(out, n), rp_out_position(out));
    rp_out_abandon(out);
    return copy;
}

#endif
