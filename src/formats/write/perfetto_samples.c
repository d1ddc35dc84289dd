/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes samples as Perfetto's perf_sample packets, in a sequence of their own. A stack is interned
 * before its first sample, together with its new frames and texts. Frames name their source file
 * and line; they have no mapping, which would be a library in memory.
 *
 * A sample has no weight, but the value of the counter that triggered it: the counter of a thread
 * grows by the weight of each of its samples, and so the weights can be read again.
 */
#include "abi/proto/perfetto.h"
#include "formats/write/samples.h"
#include "formats/write/stacks.h"

#include <stdlib.h>

struct sampled {
    const struct rp_perfetto_sampled *to;
    uint8_t *strings, *frames, *stacks; /* by id: what is interned already; for strings, bits */
    rp_stack_path path;
    struct rp_err *err;
};

enum { FUNCTION = 1, SOURCE = 2 };

static enum rp_code end_packet(const struct sampled *s, size_t packet, uint32_t flags)
{
    struct rp_proto_writer *w = s->to->w;
    struct rp_bytes bytes;

    rp_proto_put_varint(w, RP_PFT_PACKET_TRUSTED_PACKET_SEQUENCE_ID, s->to->sequence);
    rp_proto_put_varint(w, RP_PFT_PACKET_SEQUENCE_FLAGS, flags);
    rp_proto_end(w, packet);
    RP_TRY(rp_proto_written(w, &bytes, s->err));
    rp_emit_bytes(s->to->e, (const char *)bytes.at, bytes.n);
    return RP_OK;
}

static size_t begin_packet(const struct sampled *s)
{
    rp_proto_rewind(s->to->w);
    return rp_proto_begin(s->to->w, RP_PFT_TRACE_PACKET);
}

static void put_string(struct sampled *s, rp_str str, uint8_t use)
{
    const struct rp_trace *t = s->to->t;

    if (s->strings[str] & use)
        return;
    s->strings[str] |= use;
    size_t one = rp_proto_begin(s->to->w, use == FUNCTION ? RP_PFT_INTERNED_FUNCTION_NAMES
                                                          : RP_PFT_INTERNED_SOURCE_PATHS);
    rp_proto_put_varint(s->to->w, RP_PFT_NAMED_IID, (uint64_t)str + 1);
    rp_proto_put_bytes(s->to->w, RP_PFT_NAMED_NAME, rp_trace_str(t, str), rp_trace_str_len(t, str));
    rp_proto_end(s->to->w, one);
}

static void put_frame(struct sampled *s, uint32_t frame)
{
    static const uint8_t kinds[RP_FRAME_KINDS] = {[RP_FRAME_PYTHON] = RP_PFT_FRAME_INTERPRETED,
                                                  [RP_FRAME_NATIVE] = RP_PFT_FRAME_NATIVE,
                                                  [RP_FRAME_KERNEL] = RP_PFT_FRAME_KERNEL};
    const struct rp_call_frame *f = &s->to->t->samples.frame[frame];
    struct rp_proto_writer *w = s->to->w;

    if (s->frames[frame])
        return;
    s->frames[frame] = 1;
    put_string(s, f->name, FUNCTION);
    if (f->file)
        put_string(s, f->file, SOURCE);
    size_t one = rp_proto_begin(w, RP_PFT_INTERNED_FRAMES);
    rp_proto_put_varint(w, RP_PFT_FRAME_IID, (uint64_t)frame + 1);
    rp_proto_put_varint(w, RP_PFT_FRAME_FUNCTION_NAME_ID, (uint64_t)f->name + 1);
    if (f->file)
        rp_proto_put_varint(w, RP_PFT_FRAME_SOURCE_PATH_IID, (uint64_t)f->file + 1);
    if (f->line)
        rp_proto_put_varint(w, RP_PFT_FRAME_LINE_NUMBER, f->line);
    if (f->kind < RP_FRAME_KINDS && kinds[f->kind])
        rp_proto_put_varint(w, RP_PFT_FRAME_KIND, kinds[f->kind]);
    rp_proto_end(w, one);
}

static enum rp_code put_stack(struct sampled *s, uint32_t stack)
{
    struct rp_proto_writer *w = s->to->w;

    if (s->stacks[stack])
        return RP_OK;
    s->stacks[stack] = 1;
    RP_TRY(rp_stack_walk(s->to->t, stack, &s->path, s->err));
    size_t packet = begin_packet(s);
    size_t all = rp_proto_begin(w, RP_PFT_PACKET_INTERNED_DATA);
    for (size_t i = 0; i < s->path.n; i++)
        put_frame(s, s->path.at[i]);
    size_t one = rp_proto_begin(w, RP_PFT_INTERNED_CALLSTACKS);
    rp_proto_put_varint(w, RP_PFT_CALLSTACK_IID, (uint64_t)stack + 1);
    while (s->path.n)
        rp_proto_put_varint(w, RP_PFT_CALLSTACK_FRAME_IDS, (uint64_t)s->path.at[--s->path.n] + 1);
    rp_proto_end(w, one);
    rp_proto_end(w, all);
    return end_packet(s, packet, RP_PFT_FLAG_NEEDED);
}

static enum rp_code put_sample(struct sampled *s, uint32_t i, uint64_t count)
{
    const struct rp_call_samples *from = &s->to->t->samples;
    struct rp_proto_writer *w = s->to->w;
    uint64_t pid, tid;

    if (from->stack[i] != RP_NONE)
        RP_TRY(put_stack(s, from->stack[i]));
    s->to->thread(s->to->user, from->track[i], &pid, &tid);
    size_t packet = begin_packet(s);
    rp_proto_put_varint(w, RP_PFT_PACKET_TIMESTAMP, (uint64_t)(from->ts_ns[i] + s->to->shift_ns));
    size_t one = rp_proto_begin(w, RP_PFT_PACKET_PERF_SAMPLE);
    rp_proto_put_varint(w, RP_PFT_SAMPLE_PID, pid);
    rp_proto_put_varint(w, RP_PFT_SAMPLE_TID, tid);
    if (from->stack[i] != RP_NONE)
        rp_proto_put_varint(w, RP_PFT_SAMPLE_CALLSTACK_IID, (uint64_t)from->stack[i] + 1);
    rp_proto_put_varint(w, RP_PFT_SAMPLE_TIMEBASE_COUNT, count);
    rp_proto_end(w, one);
    return end_packet(s, packet, RP_PFT_FLAG_NEEDED);
}

static enum rp_code put_samples(struct sampled *s)
{
    const struct rp_call_samples *from = &s->to->t->samples;
    uint64_t count = 0;

    /* Sets the clock of the packets, in the sequence that begins here. */
    size_t packet = begin_packet(s),
           defaults = rp_proto_begin(s->to->w, RP_PFT_PACKET_TRACE_PACKET_DEFAULTS);
    rp_proto_put_varint(s->to->w, RP_PFT_DEFAULTS_TIMESTAMP_CLOCK_ID, RP_PFT_CLOCK_BOOTTIME);
    rp_proto_end(s->to->w, defaults);
    RP_TRY(end_packet(s, packet, RP_PFT_FLAG_CLEARED));
    for (uint32_t i = 0; i < from->n; i++) {
        if (i && from->track[i] != from->track[i - 1])
            count = 0;
        if (from->ts_ns[i] == RP_NO_TS)
            continue;
        count += (uint64_t)from->weight[i];
        RP_TRY(put_sample(s, i, count));
    }
    return RP_OK;
}

static void sampled_release(struct sampled *s)
{
    rp_vec_release(&s->path);
    free(s->strings);
    free(s->frames);
    free(s->stacks);
}

enum rp_code rp_samples_put_perfetto(const struct rp_perfetto_sampled *to, struct rp_err *err)
{
    const struct rp_trace *t = to->t;
    RP_SCOPED(sampled_release) struct sampled s = {.to = to, .err = err};

    if (rp_samples_untimed(t) == t->samples.n)
        return RP_OK;
    s.strings = calloc((size_t)t->str.n + 1, 1);
    s.frames = calloc((size_t)t->samples.nframes + 1, 1);
    s.stacks = calloc((size_t)t->samples.nstacks + 1, 1);
    return s.strings && s.frames && s.stacks ? put_samples(&s)
                                             : rp_err_nomem(err, "writing samples");
}
