/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a packet. Ranges and calls are kept in the order of their begins until the
 * outermost one has ended, then they are added to the builder, so that each track is nearly in
 * order; an event costs a few nanoseconds. Every field is checked against the end of the content
 * before it is read.
 */
#include "formats/ctf/ctf.h"

#include "base/order.h"

#include <string.h>

#define RANGE_LANE UINT32_MAX /* of ranges of the program */
#define OPEN       UINT64_MAX

struct cursor {
    struct rp_ctf_reader *r;
    const struct rp_ctf_bytes *p;
    const uint8_t *at, *end;
    uint64_t ticks; /* of the current event */
};

static enum rp_code bad_packet(const struct cursor *c, const uint8_t *at, struct rp_err *err,
                               const char *what)
{
    uint64_t offset = c->p->offset + (uint64_t)(at - c->p->at);

    return rp_err_set_at(err, RP_FORMAT, offset, "'%s': %s at byte %llu", c->p->name, what,
                         (unsigned long long)offset);
}

/* -------------------------------------------------------------------------- texts */

static inline enum rp_code text_of(const struct cursor *c, uint32_t number, rp_str *out,
                                   struct rp_err *err)
{
    if (__builtin_expect(number >= RP_CTF_TEXTS_MAX || c->r->texts[number].epoch != c->r->epoch, 0))
        return bad_packet(c, c->at, err, "reference to a text that the packet does not define");
    *out = c->r->texts[number].str;
    return RP_OK;
}

static enum rp_code define_text(struct cursor *c, struct rp_err *err)
{
    const uint8_t *start = c->at + 4, *nul;
    uint32_t number;

    if ((size_t)(c->end - c->at) < 5)
        return bad_packet(c, c->at, err, "the content ends inside a text");
    memcpy(&number, c->at, 4);
    nul = memchr(start, 0, (size_t)(c->end - start));
    if (!nul)
        return bad_packet(c, c->at, err, "unterminated text");
    if (number >= RP_CTF_TEXTS_MAX)
        return bad_packet(c, c->at, err, "text number out of range");
    RP_TRY(rp_proto_trace_intern(&c->r->t, (struct rp_bytes){start, (size_t)(nul - start)},
                                 &c->r->texts[number].str, err));
    c->r->texts[number].epoch = c->r->epoch;
    c->r->texts[number].has_frame = false;
    c->at = nul + 1;
    return RP_OK;
}

/* -------------------------------------------------------------------------- spans */

static inline enum rp_code put_span(struct rp_ctf_reader *r, const struct rp_ctf_pending *p,
                                    struct rp_err *err)
{
    struct rp_raw raw = {.ts_ns = rp_ctf_times_ns(&r->times, p->begin),
                         .name = p->name,
                         .track = r->track,
                         .origin = p->origin,
                         .has_link = p->link != 0,
                         .link = (int64_t)p->link};
    struct rp_arg arg = {.key = r->result_key, .type = RP_ARG_I64, .v.i = p->result};

    raw.dur_ns = RP_OPEN_NS;
    if (p->end != OPEN)
        raw.dur_ns = rp_ctf_times_ns(&r->times, p->end) - raw.ts_ns;
    else /* a begin without an end */
        RP_TRY(rp_ctf_origin(r, 'B', p->kind, p->category, &raw.origin, err));
    if (p->result) {
        raw.shape = r->result_shape;
        raw.args = &arg;
        raw.nargs = 1;
    }
    return rp_builder_add(r->t.builder, &raw, err);
}

static enum rp_code flush_spans(struct rp_ctf_reader *r, struct rp_err *err)
{
    for (size_t i = 0; i < r->pending.n; i++)
        RP_TRY(put_span(r, &r->pending.at[i], err));
    r->pending.n = 0;
    r->open.n = 0;
    return RP_OK;
}

/* Limits memory if one range encloses the whole run: what has ended is added to the builder, which
 * sorts it, and what is open stays. */
static enum rp_code spill_spans(struct rp_ctf_reader *r, struct rp_err *err)
{
    size_t kept = 0, open = 0;

    for (size_t i = 0; i < r->pending.n; i++) {
        if (r->pending.at[i].end != OPEN) {
            RP_TRY(put_span(r, &r->pending.at[i], err));
            continue;
        }
        r->open.at[open++].span = (uint32_t)kept; /* both are sorted by begin */
        r->pending.at[kept++] = r->pending.at[i];
    }
    r->pending.n = kept;
    return RP_OK;
}

static inline enum rp_code make_room(struct rp_ctf_reader *r, struct rp_err *err)
{
    if (__builtin_expect(r->open.n >= r->t.limits.depth * UINT64_C(64), 0))
        return flush_spans(r, err); /* begins without ends */
    return __builtin_expect(r->pending.n >= r->spill_at, 0) ? spill_spans(r, err) : RP_OK;
}

static enum rp_code begin_span(struct cursor *c, uint32_t lane, struct rp_ctf_pending *span,
                               struct rp_err *err)
{
    struct rp_ctf_reader *r = c->r;
    struct rp_ctf_open open = {.lane = lane};

    RP_TRY(make_room(r, err));
    open.span = (uint32_t)r->pending.n;
    span->begin = c->ticks;
    span->end = OPEN;
    RP_TRY(rp_vec_push(&r->open, open, err));
    return rp_vec_push(&r->pending, *span, err);
}

/* Ends the innermost span of the lane; if there is none, its begin was not recorded. */
static enum rp_code end_span(struct cursor *c, uint32_t lane, int64_t result, struct rp_err *err)
{
    struct rp_ctf_reader *r = c->r;
    size_t i = r->open.n;

    while (i && r->open.at[i - 1].lane != lane)
        i--;
    if (!i) {
        r->unbegun++;
        return RP_OK;
    }
    r->pending.at[r->open.at[i - 1].span].end = c->ticks;
    r->pending.at[r->open.at[i - 1].span].result = result;
    for (; i < r->open.n; i++)
        r->open.at[i - 1] = r->open.at[i];
    if (--r->open.n)
        return RP_OK;
    return flush_spans(r, err);
}

/* The time in the first word of an event: its upper bits are those of the previous event. */
static inline uint64_t time_of(uint64_t word, uint64_t before)
{
    const uint64_t mask = (UINT64_C(1) << RP_CTF_TIME_BITS) - 1;
    uint64_t ticks = (before & ~mask) | word >> 8;

    return ticks < before && ticks <= UINT64_MAX - mask - 1 ? ticks + mask + 1 : ticks;
}

/* Most ranges hold nothing: where the end comes next, the two are one span at once. */
static enum rp_code read_range(struct cursor *c, struct rp_err *err)
{
    struct rp_ctf_reader *r = c->r;
    struct rp_ctf_pending span = {.kind = RP_CTF_KIND_ANNOTATION, .origin = r->range_origin};
    uint64_t word = RP_CTF_EVENT_COUNT;
    uint32_t number;

    memcpy(&number, c->at, 4);
    RP_TRY(text_of(c, number, &span.name, err));
    c->at += 4;
    if (c->end - c->at >= 8)
        memcpy(&word, c->at, 8);
    if ((word & 255) != RP_CTF_RANGE_END)
        return begin_span(c, RANGE_LANE, &span, err);
    span.begin = c->ticks;
    span.end = c->ticks = time_of(word, c->ticks);
    c->at += 8;
    if (!r->open.n)
        return put_span(r, &span, err);
    RP_TRY(make_room(r, err));
    return rp_vec_push(&r->pending, span, err);
}

static enum rp_code read_enter(struct cursor *c, struct rp_err *err)
{
    struct rp_ctf_pending span = {0};
    struct rp_ctf_enter e;

    memcpy(&e, c->at, sizeof e);
    RP_TRY(text_of(c, e.name, &span.name, err));
    RP_TRY(text_of(c, e.category, &span.category, err));
    c->at += sizeof e;
    span.kind = e.kind;
    span.link = rp_ctf_device_link(c->r, c->p->head.pid, e.link);
    RP_TRY(rp_ctf_origin(c->r, 'X', e.kind, span.category, &span.origin, err));
    return begin_span(c, e.lane == RANGE_LANE ? 0 : e.lane, &span, err);
}

/* -------------------------------------------------------------------------- pauses */

/* What is open has ended for us when the pause began: when it really ended is not recorded. */
static enum rp_code read_pause(struct cursor *c, struct rp_err *err)
{
    struct rp_ctf_reader *r = c->r;
    struct rp_ctf_pause pause = {.image = c->p->head.image,
                                 .track = r->track,
                                 .by_helper = c->p->head.flags & RP_CTF_PACKET_HELPER};

    memcpy(&pause.begin, c->at, 8);
    c->at += 8;
    if (pause.begin > c->ticks)
        pause.begin = c->ticks;
    for (size_t i = 0; i < r->open.n; i++) {
        struct rp_ctf_pending *span = &r->pending.at[r->open.at[i].span];

        span->end = pause.begin > span->begin ? pause.begin : span->begin;
    }
    RP_TRY(flush_spans(r, err));
    return rp_vec_push(&r->pauses, pause, err);
}

RP_ORDER(by_begin, struct rp_ctf_pause, RP_UP(image), RP_UP(begin), RP_DOWN(end))

static enum rp_code end_late(struct rp_ctf_reader *r, struct rp_ctf_late *late, struct rp_err *err)
{
    const struct rp_ctf_pause *p = r->pauses.at;
    size_t i;

    RP_LOWER_BOUND(i, r->pauses.n,
                   p[i].image < late->image ||
                       (p[i].image == late->image && p[i].begin < late->last));
    if (i < r->pauses.n && p[i].image == late->image)
        late->span.end = p[i].begin;
    r->track = late->track;
    return put_span(r, &late->span, err);
}

/* Instants, so that questions can tell the pause from time that the program lost. */
static enum rp_code put_instant(struct rp_ctf_reader *r, rp_track track, const char *name,
                                uint64_t ticks, struct rp_err *err)
{
    struct rp_raw raw = {.dur_ns = RP_OPEN_NS, .track = track};

    RP_TRY(rp_proto_trace_text(&r->t, name, &raw.name, err));
    RP_TRY(rp_ctf_origin(r, 'i', RP_CTF_KIND_ANNOTATION, 0, &raw.origin, err));
    raw.ts_ns = rp_ctf_times_ns(&r->times, ticks);
    return rp_builder_add(r->t.builder, &raw, err);
}

enum rp_code rp_ctf_pauses_settle(struct rp_ctf_reader *r, struct rp_err *err)
{
    int64_t total_ns = 0;
    size_t n = 0, different = 0;

    /* One of each process and begin, sorted by both. Several threads of a process report the same
     * pause: the first to go on gives its end. */
    rp_sort(r->pauses.at, r->pauses.n, sizeof *r->pauses.at, by_begin);
    for (size_t i = 0; i < r->pauses.n; i++) {
        struct rp_ctf_pause *p = &r->pauses.at[i],
                            *before = different ? &r->pauses.at[different - 1] : NULL;
        if (before && before->image == p->image && before->begin == p->begin) {
            if (p->end && (!before->end || p->end < before->end))
                before->end = p->end;
            if (p->by_helper)
                before->track = p->track;
        } else {
            r->pauses.at[different++] = *p;
        }
    }
    r->pauses.n = different;
    for (size_t i = 0; i < r->late.n; i++)
        RP_TRY(end_late(r, &r->late.at[i], err));
    for (size_t i = 0; i < r->pauses.n; i++) {
        const struct rp_ctf_pause *p = &r->pauses.at[i];

        if (!p->end)
            continue;
        RP_TRY(put_instant(r, p->track, RP_PAUSED_NAME, p->begin, err));
        RP_TRY(put_instant(r, p->track, RP_RESUMED_NAME, p->end, err));
        total_ns += rp_ctf_times_ns(&r->times, p->end) - rp_ctf_times_ns(&r->times, p->begin);
        n++;
    }
    if (!n)
        return RP_OK;
    return rp_builder_warn(
        r->t.builder, err,
        "recording was paused %zu time%s, for %.3f s in total ('record stop' and 'start'): "
        "what the program did then is not in the trace",
        n, n == 1 ? "" : "s", (double)total_ns / 1e9);
}

/* -------------------------------------------------------------------------- single events */

static enum rp_code read_mark(struct cursor *c, struct rp_err *err)
{
    struct rp_raw raw = {.dur_ns = RP_OPEN_NS, .track = c->r->track};
    uint32_t number;

    memcpy(&number, c->at, 4);
    RP_TRY(text_of(c, number, &raw.name, err));
    c->at += 4;
    RP_TRY(rp_ctf_origin(c->r, 'i', RP_CTF_KIND_ANNOTATION, 0, &raw.origin, err));
    raw.ts_ns = rp_ctf_times_ns(&c->r->times, c->ticks);
    return rp_builder_add(c->r->t.builder, &raw, err);
}

static enum rp_code read_counter(struct cursor *c, struct rp_err *err)
{
    struct rp_arg arg = {.key = c->r->value_key, .type = RP_ARG_F64};
    struct rp_raw raw = {.dur_ns = RP_OPEN_NS,
                         .track = c->r->track,
                         .shape = c->r->value_shape,
                         .args = &arg,
                         .nargs = 1};
    uint32_t number;

    memcpy(&number, c->at, 4);
    memcpy(&arg.v.f, c->at + 4, 8);
    RP_TRY(text_of(c, number, &raw.name, err));
    c->at += 12;
    RP_TRY(rp_ctf_origin(c->r, 'C', RP_CTF_KIND_OTHER, 0, &raw.origin, err));
    raw.ts_ns = rp_ctf_times_ns(&c->r->times, c->ticks);
    return rp_builder_add(c->r->t.builder, &raw, err);
}

static enum rp_code read_async(struct cursor *c, char phase, struct rp_err *err)
{
    struct rp_raw raw = {.dur_ns = RP_OPEN_NS, .track = c->r->track, .flags = RP_EVENT_ASYNC};
    struct rp_ctf_async e;
    rp_str category = 0;

    memcpy(&e, c->at, sizeof e);
    RP_TRY(text_of(c, e.name, &raw.name, err));
    RP_TRY(text_of(c, e.category, &category, err));
    c->at += sizeof e;
    RP_TRY(rp_ctf_origin(c->r, phase, RP_CTF_KIND_ANNOTATION, category, &raw.origin, err));
    raw.ts_ns = rp_ctf_times_ns(&c->r->times, c->ticks);
    raw.has_link = true;
    raw.link = (int64_t)e.id;
    return rp_builder_add(c->r->t.builder, &raw, err);
}

/* -------------------------------------------------------------------------- recorded spans */

static int64_t span_time(struct cursor *c, uint8_t timebase, uint64_t time)
{
    struct rp_ctf_times *t = &c->r->times;

    if (timebase == RP_CTF_TIME_TICKS)
        return rp_ctf_times_ns(t, time);
    if (time > (uint64_t)RP_TIME_MAX_NS) {
        c->r->t.health->huge_time++;
        return RP_TIME_MAX_NS;
    }
    return timebase == RP_CTF_TIME_REALTIME ? (int64_t)time - t->base_ns : (int64_t)time;
}

static enum rp_code read_args(struct cursor *c, uint32_t n, struct rp_arg *args, struct rp_err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        struct rp_ctf_arg a;

        memcpy(&a, c->at, sizeof a);
        RP_TRY(text_of(c, a.key, &args[i].key, err));
        if (a.type == RP_CTF_ARG_TEXT) {
            args[i].type = RP_ARG_STR;
            RP_TRY(text_of(
                c, a.value < 0 || a.value >= RP_CTF_TEXTS_MAX ? UINT32_MAX : (uint32_t)a.value,
                &args[i].v.s, err));
        } else if (a.type == RP_CTF_ARG_REAL) {
            args[i].type = RP_ARG_F64;
            memcpy(&args[i].v.f, &a.value, 8);
            c->r->has_counters |=
                !strncmp(rp_builder_borrow_str(c->r->t.builder, args[i].key, NULL), "counter ", 8);
        } else if (a.type == RP_CTF_ARG_INT) {
            args[i].type = RP_ARG_I64;
            args[i].v.i = a.value;
        } else {
            return bad_packet(c, c->at + 4, err, "argument of unknown type");
        }
        c->at += sizeof a;
    }
    return RP_OK;
}

static enum rp_code span_track(struct cursor *c, const struct rp_ctf_span *e, rp_track *out,
                               struct rp_err *err)
{
    if (e->device != RP_CTF_SPAN_DEVICE)
        return rp_ctf_device_track(&c->r->t, &c->r->named, c->p->head.pid, e->device, e->track, out,
                                   err);
    if (e->track == c->p->head.tid) {
        *out = c->r->track;
        return RP_OK;
    }
    return rp_builder_track(c->r->t.builder, c->r->process, (int64_t)e->track, 0, true, out, err);
}

static enum rp_code read_span(struct cursor *c, struct rp_err *err)
{
    struct rp_arg args[UINT8_MAX + RP_CTF_DEVICE_ARGS];
    struct rp_raw raw = {.args = args};
    struct rp_ctf_span e;
    rp_str category = 0;

    memcpy(&e, c->at, sizeof e);
    RP_TRY(text_of(c, e.name, &raw.name, err));
    RP_TRY(text_of(c, e.category, &category, err));
    c->at += sizeof e;
    if ((size_t)(c->end - c->at) < e.nargs * sizeof(struct rp_ctf_arg))
        return bad_packet(c, c->at, err, "the content ends inside an event");
    if (e.timebase > RP_CTF_TIME_REALTIME)
        return bad_packet(c, c->at, err, "unknown clock");
    RP_TRY(read_args(c, e.nargs, args, err));
    RP_TRY(rp_ctf_origin(c->r, e.kind == RP_CTF_KIND_COUNTER ? 'C' : 'X', e.kind, category,
                         &raw.origin, err));
    RP_TRY(span_track(c, &e, &raw.track, err));
    uint32_t n = e.nargs;
    e.link = rp_ctf_device_link(c->r, c->p->head.pid, e.link);
    RP_TRY(rp_ctf_device_args(c->r, &e, e.link, args, &n, err));
    raw.nargs = n;
    if (n)
        RP_TRY(rp_builder_shape(c->r->t.builder, args, n, &raw.shape, err));
    raw.ts_ns = span_time(c, e.timebase, e.begin);
    raw.dur_ns = span_time(c, e.timebase, e.end) - raw.ts_ns;
    if (raw.dur_ns < 0) {
        c->r->t.health->negative_dur++;
        raw.dur_ns = 0;
    }
    if (e.kind == RP_CTF_KIND_COUNTER)
        raw.dur_ns = RP_OPEN_NS;
    raw.has_link = e.link != 0;
    raw.link = (int64_t)e.link;
    RP_TRY(rp_ctf_device_keep(c->r, &e, &raw, err));
    return rp_builder_add(c->r->t.builder, &raw, err);
}

/* -------------------------------------------------------------------------- samples */

static enum rp_code read_sample(struct cursor *c, struct rp_err *err)
{
    struct rp_ctf_sample e;
    uint32_t number;
    rp_str text = 0;

    memcpy(&e, c->at, sizeof e);
    c->at += sizeof e;
    if ((size_t)(c->end - c->at) < e.nframes * sizeof number)
        return bad_packet(c, c->at, err, "the content ends inside an event");
    for (unsigned i = 0; i < e.nframes; i++) {
        memcpy(&number, c->at, sizeof number);
        RP_TRY(text_of(c, number, &text, err));
        if (!c->r->texts[number].has_frame &&
            rp_ctf_sample_frame(c->r, text, &c->r->texts[number].frame, err) != RP_OK)
            return err->code == RP_FORMAT ? bad_packet(c, c->at, err, "a frame is not four fields")
                                          : err->code;
        c->r->texts[number].has_frame = true;
        RP_TRY(rp_builder_stack(c->r->t.builder, c->r->sample.stack, c->r->texts[number].frame,
                                &c->r->sample.stack, err));
        rp_ctf_sample_note(c->r, text);
        c->at += sizeof number;
    }
    return rp_ctf_sample_add(c->r, &e, err);
}

/* -------------------------------------------------------------------------- about the process */

static enum rp_code read_thread_name(struct cursor *c, struct rp_err *err)
{
    uint32_t tid, number;
    rp_track track = 0;
    rp_str name = 0;

    memcpy(&tid, c->at, 4);
    memcpy(&number, c->at + 4, 4);
    RP_TRY(text_of(c, number, &name, err));
    c->at += 8;
    RP_TRY(rp_builder_track(c->r->t.builder, c->r->process, tid, 0, true, &track, err));
    return rp_proto_trace_name(&c->r->t, track, false, name, err);
}

static enum rp_code read_process(struct cursor *c, struct rp_err *err)
{
    struct rp_ctf_process e;
    rp_str text = 0;

    memcpy(&e, c->at, sizeof e);
    RP_TRY(text_of(c, e.host, &text, err));
    RP_TRY(text_of(c, e.command, &text, err));
    c->r->has_command |= strchr(rp_builder_borrow_str(c->r->t.builder, text, NULL), ' ') != NULL;
    RP_TRY(text_of(c, e.program, &text, err));
    c->at += sizeof e;
    return rp_ctf_process_name(c->r, &e, text, err);
}

/* A fact is metadata of the trace; a fork, an exec and a library are instants. */
static enum rp_code read_note(struct cursor *c, enum rp_ctf_event id, struct rp_err *err)
{
    static const char *const names[] = {
        [RP_CTF_FORK] = "fork", [RP_CTF_EXEC] = "exec", [RP_CTF_LIBRARY] = "library"};
    struct rp_raw raw = {.dur_ns = RP_OPEN_NS, .track = c->r->track, .nargs = 1};
    struct rp_arg arg = {.type = RP_ARG_I64};
    rp_str category = 0;
    uint32_t number;

    memcpy(&number, c->at, 4);
    if (id != RP_CTF_FORK) {
        arg.type = RP_ARG_STR;
        RP_TRY(text_of(c, number, &arg.v.s, err));
    } else {
        arg.v.i = number;
    }
    c->at += 4;
    RP_TRY(rp_proto_trace_word(&c->r->t, id == RP_CTF_FORK ? "pid" : "path", &arg.key, err));
    RP_TRY(rp_proto_trace_word(&c->r->t, names[id], &raw.name, err));
    RP_TRY(rp_proto_trace_word(&c->r->t, "process", &category, err));
    RP_TRY(rp_builder_shape(c->r->t.builder, &arg, 1, &raw.shape, err));
    RP_TRY(rp_ctf_origin(c->r, 'i', RP_CTF_KIND_OTHER, category, &raw.origin, err));
    raw.args = &arg;
    raw.ts_ns = rp_ctf_times_ns(&c->r->times, c->ticks);
    return rp_builder_add(c->r->t.builder, &raw, err);
}

static enum rp_code read_fact(struct cursor *c, struct rp_err *err)
{
    uint32_t numbers[2];
    rp_str key = 0, value = 0;

    memcpy(numbers, c->at, 8);
    RP_TRY(text_of(c, numbers[0], &key, err));
    RP_TRY(text_of(c, numbers[1], &value, err));
    c->at += 8;
    RP_TRY(rp_ctf_device_note(c->r, key, value, err));
    return rp_builder_add_meta(c->r->t.builder, key, value, false, err);
}

/* -------------------------------------------------------------------------- the packet */

/* Bytes after the first word, without what varies (the text, the arguments). */
static const uint8_t sizes[RP_CTF_EVENT_COUNT] = {
    [RP_CTF_STRING] = 5,
    [RP_CTF_RANGE_BEGIN] = 4,
    [RP_CTF_MARK] = 4,
    [RP_CTF_COUNTER] = 12,
    [RP_CTF_ENTER] = sizeof(struct rp_ctf_enter),
    [RP_CTF_LEAVE] = sizeof(struct rp_ctf_leave),
    [RP_CTF_ASYNC_BEGIN] = sizeof(struct rp_ctf_async),
    [RP_CTF_ASYNC_END] = sizeof(struct rp_ctf_async),
    [RP_CTF_SPAN] = sizeof(struct rp_ctf_span),
    [RP_CTF_THREAD_NAME] = 8,
    [RP_CTF_PROCESS] = sizeof(struct rp_ctf_process),
    [RP_CTF_FORK] = 4,
    [RP_CTF_EXEC] = 4,
    [RP_CTF_LIBRARY] = 4,
    [RP_CTF_CLOCK] = sizeof(struct rp_ctf_clock),
    [RP_CTF_FACT] = 8,
    [RP_CTF_PAUSE] = 8,
    [RP_CTF_SAMPLE] = sizeof(struct rp_ctf_sample),
};

static enum rp_code read_event(struct cursor *c, enum rp_ctf_event id, struct rp_err *err)
{
    switch (id) {
    case RP_CTF_STRING:
        return define_text(c, err);
    case RP_CTF_MARK:
        return read_mark(c, err);
    case RP_CTF_COUNTER:
        return read_counter(c, err);
    case RP_CTF_ENTER:
        return read_enter(c, err);
    case RP_CTF_LEAVE: {
        struct rp_ctf_leave e;
        memcpy(&e, c->at, sizeof e);
        c->at += sizeof e;
        return end_span(c, e.lane == RANGE_LANE ? 0 : e.lane, e.result, err);
    }
    case RP_CTF_ASYNC_BEGIN:
        return read_async(c, 'b', err);
    case RP_CTF_ASYNC_END:
        return read_async(c, 'e', err);
    case RP_CTF_SPAN:
        return read_span(c, err);
    case RP_CTF_THREAD_NAME:
        return read_thread_name(c, err);
    case RP_CTF_PROCESS:
        return read_process(c, err);
    case RP_CTF_FACT:
        return read_fact(c, err);
    case RP_CTF_CLOCK:
        c->at += sizeof(struct rp_ctf_clock);
        return RP_OK;
    case RP_CTF_RESUME: {
        /* The event after that of a pause, if the recording went on. */
        struct rp_ctf_reader *r = c->r;
        if (r->pauses.n && r->pauses.at[r->pauses.n - 1].image == c->p->head.image &&
            !r->pauses.at[r->pauses.n - 1].end)
            r->pauses.at[r->pauses.n - 1].end = c->ticks;
        return flush_spans(r, err); /* ends in the pause are not there: what is open stays so */
    }
    case RP_CTF_PAUSE:
        return read_pause(c, err);
    case RP_CTF_SAMPLE:
        return read_sample(c, err);
    default:
        return read_note(c, id, err);
    }
}

static inline enum rp_code next_event(struct cursor *c, unsigned *id, struct rp_err *err)
{
    uint64_t word;

    if (__builtin_expect(c->end - c->at < 8, 0))
        return bad_packet(c, c->at, err, "the content ends inside an event");
    memcpy(&word, c->at, 8);
    *id = (unsigned)(word & 255);
    c->ticks = time_of(word, c->ticks);
    if (*id >= RP_CTF_EVENT_COUNT)
        return bad_packet(c, c->at, err, "unknown event");
    c->at += 8;
    if ((size_t)(c->end - c->at) < sizes[*id])
        return bad_packet(c, c->at, err, "the content ends inside an event");
    return RP_OK;
}

static struct cursor cursor_of(struct rp_ctf_reader *r, const struct rp_ctf_bytes *p)
{
    return (struct cursor){.r = r,
                           .p = p,
                           .at = p->at + sizeof p->head,
                           .end = p->at + p->content,
                           .ticks = p->head.timestamp_begin};
}

enum rp_code rp_ctf_packet_read(struct rp_ctf_reader *r, const struct rp_ctf_bytes *p,
                                struct rp_err *err)
{
    struct cursor c = cursor_of(r, p);
    unsigned id = 0;

    if (++r->epoch == 0)
        return rp_err_set(err, RP_LIMIT, "more than 4,294,967,295 packets");
    while (c.at < c.end) {
        RP_TRY(next_event(&c, &id, err));
        if (id == RP_CTF_RANGE_BEGIN)
            RP_TRY(read_range(&c, err));
        else if (id == RP_CTF_RANGE_END)
            RP_TRY(end_span(&c, RANGE_LANE, 0, err));
        else
            RP_TRY(read_event(&c, (enum rp_ctf_event)id, err));
    }
    r->last = c.ticks;
    return RP_OK;
}

enum rp_code rp_ctf_packet_clocks(struct rp_ctf_reader *r, const struct rp_ctf_bytes *p,
                                  struct rp_err *err)
{
    struct cursor c = cursor_of(r, p);
    struct rp_ctf_clock clock;
    uint32_t left = p->head.clocks;
    unsigned id = 0;

    while (left && c.at < c.end) {
        RP_TRY(next_event(&c, &id, err));
        if (id == RP_CTF_STRING) {
            const uint8_t *nul = memchr(c.at + 4, 0, (size_t)(c.end - c.at - 4));
            c.at = nul ? nul + 1 : c.end;
            continue;
        }
        if (id == RP_CTF_CLOCK) {
            memcpy(&clock, c.at, sizeof clock);
            RP_TRY(rp_vec_push(&r->times.read, clock, err));
            left--;
        }
        c.at += sizes[id];
        if (id == RP_CTF_SPAN || id == RP_CTF_SAMPLE) { /* the last field counts what follows */
            size_t one = id == RP_CTF_SPAN ? sizeof(struct rp_ctf_arg) : sizeof(uint32_t);
            size_t more = c.at[-1] * one;

            c.at += more <= (size_t)(c.end - c.at) ? more : (size_t)(c.end - c.at);
        }
    }
    return RP_OK;
}

enum rp_code rp_ctf_stream_begin(struct rp_ctf_reader *r, const struct rp_ctf_bytes *p,
                                 struct rp_err *err)
{
    r->pending.n = r->open.n = 0;
    r->sample.stack = RP_NONE;
    r->sample.lock_at = 0;
    r->image = p->head.image;
    RP_TRY(rp_builder_process(r->t.builder, p->head.pid, 0, &r->process, err));
    return rp_builder_track(r->t.builder, r->process, p->head.tid, 0, true, &r->track, err);
}

enum rp_code rp_ctf_stream_gap(struct rp_ctf_reader *r, struct rp_err *err)
{
    return flush_spans(r, err);
}

/* Open spans wait: a pause that another thread has recorded may have been their end. */
enum rp_code rp_ctf_stream_end(struct rp_ctf_reader *r, struct rp_err *err)
{
    for (size_t i = 0; i < r->open.n; i++) {
        struct rp_ctf_late late = {.span = r->pending.at[r->open.at[i].span],
                                   .track = r->track,
                                   .image = r->image,
                                   .last = r->last};

        RP_TRY(rp_vec_push(&r->late, late, err));
    }
    RP_TRY(spill_spans(r, err)); /* the others */
    r->pending.n = r->open.n = 0;
    return RP_OK;
}
