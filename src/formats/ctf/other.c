/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meaning of events of other tracers, by their names and fields:
 *
 *   x_entry, x_exit (also _begin, _end, _start, _stop)  a span on the thread, from one to the other
 *   an event with the fields start and end              a span with these times; with a stream it
 *                                                       is work of a device
 *   anything else                                       an instant
 *
 * A span is named by the event's field name (else fn, function, op), else by the event. An exit
 * belongs to the innermost entry of its thread with the same names: if events were lost, the
 * entries in between have no end, and an exit without entry is kept as such.
 */
#include "formats/ctf/other.h"
#include "formats/ctf/ctf.h"

#include <stdlib.h>
#include <string.h>

/* Suffixes that form a pair; the first one opens. */
static const char *const endings[][2] = {
    {"_entry", "_exit"}, {"_begin", "_end"}, {"_start", "_end"}, {"_start", "_stop"}};

enum role { SINGLE, OPENS, CLOSES };

static enum role role_of(const char *name, size_t *base)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        for (int k = 0; k < 2; k++) {
            size_t len = strlen(endings[i][k]);

            if (n > len && !strcmp(name + n - len, endings[i][k])) {
                *base = n - len;
                return k ? CLOSES : OPENS;
            }
        }
    }
    if (!strncmp(name, "syscall_entry_", 14) || !strncmp(name, "syscall_exit_", 13)) {
        *base = 7; /* the field or the rest of the name distinguishes them */
        return name[9] == 'n' ? OPENS : CLOSES;
    }
    *base = n;
    return SINGLE;
}

static const struct rp_ctf_field *find_call(const struct rp_ctf_other_row *e, const char *name)
{
    for (uint32_t i = 0; i < e->nfields; i++)
        if (!strcmp(e->fields[i].name, name))
            return &e->fields[i];
    return NULL;
}

/* -------------------------------------------------------------------------- names and kinds */

static enum rp_code span_name(struct rp_ctf_other *o, const struct rp_ctf_other_row *e, size_t base,
                              rp_str *out, struct rp_err *err)
{
    static const char *const keys[] = {"name", "fn", "function", "op", NULL};
    const char *colon = memchr(e->name, ':', base), *from = colon ? colon + 1 : e->name;
    struct rp_bytes bytes = {(const uint8_t *)from, base - (size_t)(from - e->name)};

    if (!strncmp(e->name, "syscall_e", 9)) {
        from = e->name + (e->name[9] == 'n' ? 14 : 13);
        bytes = (struct rp_bytes){(const uint8_t *)from, strlen(from)};
    }
    for (int i = 0; keys[i]; i++) {
        const struct rp_ctf_field *f = find_call(e, keys[i]);

        if (f && f->type == RP_ARG_STR && f->text[0]) {
            bytes = (struct rp_bytes){(const uint8_t *)f->text, strlen(f->text)};
            break;
        }
    }
    return rp_proto_trace_intern(&o->t, bytes, out, err);
}

static bool has_word(const char *name, size_t n, const char *word)
{
    return memmem(name, n, word, strlen(word)) != NULL;
}

/* Of a span on a thread, or with `device` of one on a device. */
static uint8_t kind_of(const char *name, size_t n, bool device, uint8_t *flags)
{
    *flags = device ? RP_ORIGIN_GPU : RP_ORIGIN_NESTS | RP_ORIGIN_MARKS_STEP;
    if (device && (has_word(name, n, "memcpy") || has_word(name, n, "copy")))
        return RP_KIND_MEMCPY;
    if (device)
        return has_word(name, n, "memset") ? RP_KIND_MEMSET : RP_KIND_KERNEL;
    if (has_word(name, n, "_api") || !strncmp(name, "hip", 3) || !strncmp(name, "hsa", 3) ||
        !strncmp(name, "opencl", 6)) {
        *flags = RP_ORIGIN_RUNTIME | RP_ORIGIN_NESTS;
        return RP_KIND_RUNTIME;
    }
    return RP_KIND_ANNOTATION;
}

/* The origin of an event: its category is the provider and event without the ending. */
static enum rp_code origin_of(struct rp_ctf_other *o, const struct rp_ctf_other_row *e, size_t base,
                              char phase, bool device, uint16_t *out, struct rp_err *err)
{
    struct rp_origin origin = {.phase = phase, .has_category = 1};

    RP_TRY(rp_proto_trace_intern(&o->t, (struct rp_bytes){(const uint8_t *)e->name, base},
                                 &origin.category, err));
    origin.kind = kind_of(e->name, base, device, &origin.flags);
    if (phase != 'X')
        origin.flags = 0;
    if (phase == 'i')
        origin.kind = RP_KIND_INSTANT;
    return rp_builder_origin(o->t.builder, &origin, out, err);
}

/* -------------------------------------------------------------------------- tracks and arguments
 */

static enum rp_code thread_track(struct rp_ctf_other *o, const struct rp_ctf_other_row *e,
                                 rp_track *out, struct rp_err *err)
{
    int64_t pid = e->pid >= 0 ? e->pid : 0, tid = e->tid >= 0 ? e->tid : e->cpu;
    uint32_t process;
    rp_str name;

    RP_TRY(rp_builder_process(o->t.builder, pid, 0, &process, err));
    RP_TRY(rp_builder_track(o->t.builder, process, tid, 0, tid >= 0, out, err));
    if (!e->thread)
        return RP_OK;
    while (o->named.n <= *out)
        RP_TRY(rp_vec_push(&o->named, 0, err));
    if (o->named.at[*out])
        return RP_OK;
    o->named.at[*out] = 1;
    RP_TRY(rp_proto_trace_text(&o->t, e->thread, &name, err));
    return rp_proto_trace_name(&o->t, *out, false, name, err);
}

static enum rp_code put_args(struct rp_ctf_other *o, const struct rp_ctf_other_row *e,
                             struct rp_arg *args, struct rp_err *err)
{
    for (uint32_t i = 0; i < e->nfields; i++) {
        const struct rp_ctf_field *f = &e->fields[i];
        const char *key = !strcmp(f->name, "correlation_id") ? "correlation" : f->name;

        args[i].type = f->type;
        RP_TRY(rp_proto_trace_text(&o->t, key, &args[i].key, err));
        if (f->type == RP_ARG_STR)
            RP_TRY(rp_proto_trace_text(&o->t, f->text, &args[i].v.s, err));
        else if (f->type == RP_ARG_F64)
            args[i].v.f = f->f;
        else
            args[i].v.i = f->i;
    }
    return RP_OK;
}

static bool correlation_of(const struct rp_ctf_other_row *e, int64_t *link)
{
    const struct rp_ctf_field *f = find_call(e, "correlation_id");

    f = f ? f : find_call(e, "correlation");
    if (!f || f->type != RP_ARG_I64 || !f->i)
        return false;
    *link = f->i;
    return true;
}

/* -------------------------------------------------------------------------- spans of two events */

static enum rp_code put_call(struct rp_ctf_other *o, const struct rp_ctf_call *c, int64_t end_ns,
                             struct rp_err *err)
{
    struct rp_raw raw = {.ts_ns = c->ns,
                         .dur_ns = end_ns == RP_NO_TS ? RP_OPEN_NS : end_ns - c->ns,
                         .name = c->name,
                         .track = c->track,
                         .origin = end_ns == RP_NO_TS ? c->open_origin : c->origin,
                         .shape = c->shape,
                         .has_link = c->has_link,
                         .link = c->link,
                         .args = c->args,
                         .nargs = c->nargs};

    return rp_builder_add(o->t.builder, &raw, err);
}

static enum rp_code open_call(struct rp_ctf_other *o, const struct rp_ctf_other_row *e, size_t base,
                              struct rp_err *err)
{
    struct rp_ctf_call *c = calloc(1, sizeof *c);
    enum rp_code code = rp_err_need(c, err, "reading a CTF trace");

    if (code == RP_OK && o->calls.n >= o->t.limits.depth * UINT64_C(64))
        code = rp_err_set(err, RP_LIMIT, "more than %llu calls are open at a time (limit depth)",
                          (unsigned long long)o->calls.n);
    if (code == RP_OK)
        code = rp_vec_push(&o->calls, c, err);
    if (code != RP_OK) {
        free(c);
        return code;
    }
    c->ns = e->ns;
    c->has_link = correlation_of(e, &c->link);
    c->nargs = e->nfields;
    RP_TRY(thread_track(o, e, &c->track, err));
    RP_TRY(rp_proto_trace_intern(&o->t, (struct rp_bytes){(const uint8_t *)e->name, base}, &c->base,
                                 err));
    RP_TRY(span_name(o, e, base, &c->name, err));
    RP_TRY(origin_of(o, e, base, 'X', false, &c->origin, err));
    RP_TRY(origin_of(o, e, base, 'B', false, &c->open_origin, err));
    RP_TRY(put_args(o, e, c->args, err));
    return c->nargs ? rp_builder_shape(o->t.builder, c->args, c->nargs, &c->shape, err) : RP_OK;
}

static void forget_calls(struct rp_ctf_other *o, size_t i)
{
    free(o->calls.at[i]);
    memmove(&o->calls.at[i], &o->calls.at[i + 1], (o->calls.n - i - 1) * sizeof *o->calls.at);
    o->calls.n--;
}

static enum rp_code close_call(struct rp_ctf_other *o, const struct rp_ctf_other_row *e,
                               size_t base, struct rp_err *err)
{
    rp_str name, base_name;
    rp_track track;
    size_t i;

    RP_TRY(thread_track(o, e, &track, err));
    RP_TRY(rp_proto_trace_intern(&o->t, (struct rp_bytes){(const uint8_t *)e->name, base},
                                 &base_name, err));
    RP_TRY(span_name(o, e, base, &name, err));
    for (i = o->calls.n; i; i--) {
        const struct rp_ctf_call *c = o->calls.at[i - 1];

        if (c->track == track && c->base == base_name && c->name == name)
            break;
    }
    if (!i) {
        struct rp_raw raw = {.ts_ns = e->ns, .dur_ns = RP_OPEN_NS, .name = name, .track = track};
        RP_TRY(origin_of(o, e, base, 'E', false, &raw.origin, err));
        return rp_builder_add(o->t.builder, &raw, err);
    }
    for (size_t k = o->calls.n; k > i; k--) { /* their exits were lost */
        if (o->calls.at[k - 1]->track != track)
            continue;
        RP_TRY(put_call(o, o->calls.at[k - 1], RP_NO_TS, err));
        forget_calls(o, k - 1);
    }
    RP_TRY(put_call(o, o->calls.at[i - 1], e->ns, err));
    forget_calls(o, i - 1);
    return RP_OK;
}

/* -------------------------------------------------------------------------- single events */

enum rp_code rp_ctf_other_event(struct rp_ctf_other *o, const struct rp_ctf_other_row *e,
                                struct rp_err *err)
{
    size_t base;

    switch (role_of(e->name, &base)) {
    case OPENS:
        return open_call(o, e, base, err);
    case CLOSES:
        return close_call(o, e, base, err);
    default: {
        /* A span with its own times, or an instant. */
        const struct rp_ctf_field *begin = find_call(e, "start"), *end = find_call(e, "end");
        const struct rp_ctf_field *device = find_call(e, "device_id"),
                                  *stream = find_call(e, "stream_id");
        struct rp_arg args[RP_CTF_FIELDS_MAX];
        struct rp_raw raw = {
            .ts_ns = e->ns, .dur_ns = RP_OPEN_NS, .args = args, .nargs = e->nfields};
        bool span = begin && end && begin->type == RP_ARG_I64 && end->type == RP_ARG_I64 &&
                    end->i >= begin->i && begin->i >= 0 && end->i < RP_TIME_MAX_NS;
        bool on_device = span && stream && stream->type == RP_ARG_I64;
        RP_TRY(thread_track(o, e, &raw.track, err));
        if (span) {
            raw.ts_ns = begin->i;
            raw.dur_ns = end->i - begin->i;
        }
        if (on_device)
            RP_TRY(rp_ctf_device_track(&o->t, &o->named_devices, 0,
                                       device && device->type == RP_ARG_I64 ? device->i : 0,
                                       (uint64_t)stream->i, &raw.track, err));
        RP_TRY(span_name(o, e, base, &raw.name, err));
        RP_TRY(origin_of(o, e, base, span ? 'X' : 'i', on_device, &raw.origin, err));
        RP_TRY(put_args(o, e, args, err));
        if (raw.nargs)
            RP_TRY(rp_builder_shape(o->t.builder, args, raw.nargs, &raw.shape, err));
        raw.has_link = span && correlation_of(e, &raw.link);
        return rp_builder_add(o->t.builder, &raw, err);
    }
    }
}

enum rp_code rp_ctf_other_end(struct rp_ctf_other *o, struct rp_err *err)
{
    for (size_t i = 0; i < o->calls.n; i++)
        RP_TRY(put_call(o, o->calls.at[i], RP_NO_TS, err));
    return RP_OK;
}

void rp_ctf_other_release(struct rp_ctf_other *o)
{
    for (size_t i = 0; i < o->calls.n; i++)
        free(o->calls.at[i]);
    rp_vec_release(&o->calls);
    rp_vec_release(&o->named);
    rp_proto_trace_release(&o->t);
}
