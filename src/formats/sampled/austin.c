/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what austin writes from version 4 on ("MOJO"), a stream of events, each a byte that says
 * which one and its fields. Numbers have 6 bits in their first byte, with a sign, and 7 in each of
 * those after it; texts end with a zero byte. A stack begins with its thread, then come its frames,
 * the outermost first, and its weight, which ends it. Frames and texts are written once and then
 * referred to by keys, of which each process has its own. There are no times.
 */
#include "formats/sampled/sampled.h"

#include <stdlib.h>

enum {
    METADATA = 1,
    STACK,
    FRAME,
    INVALID,
    FRAME_REF,
    KERNEL,
    COLLECTION,
    IDLE,
    TIME,
    MEMORY,
    TEXT,
    TEXT_REF
};

struct austin {
    struct rp_profile p;
    int64_t version, pid;
    bool is_memory, is_idle, is_stack, is_cut;
    rp_track track;
    RP_VEC(struct rp_bytes) texts;
    RP_VEC(struct rp_profile_frame) frames;
    struct rp_map text_of, frame_of;
};

/* ------------------------------------------------------------------ fields */

static uint8_t take_byte(struct austin *a)
{
    if (a->p.at < a->p.t.bytes + a->p.t.n)
        return *a->p.at++;
    a->is_cut = true;
    return 0;
}

static int64_t take_number(struct austin *a)
{
    uint8_t byte = take_byte(a), first = byte;
    uint64_t v = byte & 63;

    for (unsigned shift = 6; byte & 128; shift += 7) {
        byte = take_byte(a);
        v |= shift < 62 ? (uint64_t)(byte & 127) << shift : 0;
    }
    v &= INT64_MAX;
    return first & 64 ? -(int64_t)v : (int64_t)v;
}

static struct rp_bytes take_text(struct austin *a)
{
    size_t left = (size_t)(a->p.t.bytes + a->p.t.n - a->p.at);
    const uint8_t *end = left ? memchr(a->p.at, '\0', left) : NULL;
    struct rp_bytes text = {a->p.at, end ? (size_t)(end - a->p.at) : left};

    a->is_cut |= !end;
    a->p.at += text.n + (end != NULL);
    return text;
}

static uint64_t key_of(const struct austin *a, int64_t number)
{
    return rp_hash_join(rp_hash_u64((uint64_t)a->pid), (uint64_t)number);
}

static struct rp_bytes take_reference(struct austin *a)
{
    uint32_t i = rp_map_get(&a->text_of, key_of(a, take_number(a)));

    return i < a->texts.n ? a->texts.at[i] : rp_bytes_of("[unknown]");
}

/* ------------------------------------------------------------------ events */

/* The number of a thread is written in base 16. */
static enum rp_code begin_stack(struct austin *a)
{
    char digits[17] = "", *end;

    a->pid = take_number(a);
    if (a->version >= 3)
        take_number(a); /* the interpreter */
    struct rp_bytes name = take_text(a);
    memcpy(digits, name.at, name.n < 16 ? name.n : 16);
    int64_t tid = (int64_t)(strtoull(digits, &end, 16) & INT64_MAX);
    if (*end || name.n > 16)
        tid = RP_PROFILE_BY_NAME;
    a->p.stack = RP_NONE;
    a->is_idle = false;
    a->is_stack = true;
    return rp_profile_thread(&a->p, a->pid, tid,
                             tid == RP_PROFILE_BY_NAME ? name : (struct rp_bytes){0}, &a->track);
}

static enum rp_code define_frame(struct austin *a)
{
    uint64_t key = key_of(a, take_number(a));
    struct rp_profile_frame frame = {.file = take_reference(a)};

    frame.name = take_reference(a);
    int64_t line = take_number(a);
    frame.line = line > 0 && line < INT32_MAX ? (uint32_t)line : 0;
    frame.kind = rp_bytes_begin(frame.file, "<") ? RP_FRAME_PYTHON /* <string>, <frozen os> */
                                                 : rp_profile_kind_of_file(frame.file);
    for (unsigned i = 0; i < 3 && a->version >= 2; i++)
        take_number(a); /* skips the last line, and the columns */
    RP_TRY(rp_map_put(&a->frame_of, key, (uint32_t)a->frames.n, a->p.err));
    return rp_vec_push(&a->frames, frame, a->p.err);
}

/* Ends the stack and adds it, if it has the metric of this file. Memory that was freed is not a
   sample. */
static enum rp_code take_metric(struct austin *a, bool is_memory)
{
    int64_t weight = take_number(a);

    if (a->is_cut || is_memory != a->is_memory || !a->is_stack)
        return RP_OK;
    a->is_stack = false;
    if (weight < 0 || __builtin_mul_overflow(weight, is_memory ? 1 : 1000, &weight)) {
        a->p.skipped++;
        a->p.stack = RP_NONE;
        return RP_OK;
    }
    return rp_profile_sample(&a->p, a->track, RP_NO_TS, weight, a->is_idle ? RP_SAMPLE_WAITED : 0);
}

static enum rp_code read_event(struct austin *a)
{
    struct rp_profile_frame frame = {.kind = RP_FRAME_KERNEL};
    size_t at = (size_t)(a->p.at - a->p.t.bytes);

    switch (take_byte(a)) {
    case METADATA: {
        struct rp_bytes key = take_text(a), value = take_text(a);
        if (rp_bytes_are(key, "mode"))
            a->is_memory = rp_bytes_are(value, "memory");
    }
        return RP_OK;
    case STACK:
        return begin_stack(a);
    case FRAME:
        return define_frame(a);
    case INVALID:
        frame = (struct rp_profile_frame){.name = rp_bytes_of("[invalid]")};
        return rp_profile_push(&a->p, &frame);
    case FRAME_REF: {
        static const struct rp_profile_frame unknown = {.name = {(const uint8_t *)"[unknown]", 9}};
        uint32_t i = rp_map_get(&a->frame_of, key_of(a, take_number(a)));
        return rp_profile_push(&a->p, i < a->frames.n ? &a->frames.at[i] : &unknown);
    }
    case KERNEL:
        frame.name = take_text(a);
        return rp_profile_push(&a->p, &frame);
    case IDLE:
        a->is_idle = true;
        return RP_OK;
    case COLLECTION:
        return RP_OK;
    case TIME:
        return take_metric(a, false);
    case MEMORY:
        return take_metric(a, true);
    case TEXT: {
        uint64_t key = key_of(a, take_number(a));
        RP_TRY(rp_map_put(&a->text_of, key, (uint32_t)a->texts.n, a->p.err));
        return rp_vec_push(&a->texts, take_text(a), a->p.err);
    }
    case TEXT_REF:
        take_number(a);
        return RP_OK;
    default:
        return rp_err_set(a->p.err, RP_FORMAT, "byte %zu: no event of austin begins with this", at);
    }
}

/* ------------------------------------------------------------------ the file */

static void austin_release(struct austin *a)
{
    rp_profile_release(&a->p);
    rp_vec_release(&a->texts);
    rp_vec_release(&a->frames);
    rp_map_release(&a->text_of);
    rp_map_release(&a->frame_of);
}

static enum rp_code read_austin(struct rp_input *in, const struct rp_read_options *options,
                                struct rp_import *to, struct rp_err *err)
{
    RP_SCOPED(austin_release) struct austin a = {0};

    RP_TRY(rp_profile_begin(&a.p, in, options, "austin", err));
    a.p.at = a.p.t.bytes + (a.p.t.n < 3 ? a.p.t.n : 3);
    a.version = take_number(&a);
    if (a.version < 1 || a.version > 4)
        return rp_err_set(a.p.err, RP_FORMAT, "austin's format has another version than 1 to 4");
    while (!a.is_cut && a.p.at < a.p.t.bytes + a.p.t.n)
        RP_TRY(read_event(&a));
    if (a.is_cut)
        RP_TRY(rp_builder_warn(a.p.t.builder, a.p.err, "the file ends within an event"));
    RP_TRY(rp_profile_unit(&a.p, a.is_memory ? RP_WEIGHT_BYTES : RP_WEIGHT_NS,
                           a.is_memory ? "memory" : "time"));
    return rp_profile_end(&a.p, to);
}

static enum rp_sniff sniff_austin(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return n >= 5 && !memcmp(head, "MOJ", 3) && head[3] && head[3] < 8 && head[4] == METADATA
               ? RP_SNIFF_CERTAIN
               : RP_SNIFF_NO;
}

const struct rp_format rp_format_austin = {
    .name = "austin",
    .summary = "samples of austin 4 and later, in its binary form: no times",
    .files = "*.mojo, *.austin",
    .written_by = "austin",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_austin,
    .read = read_austin,
};
