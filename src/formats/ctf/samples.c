/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of call stacks. A frame is a text of four fields (abi/ctf_wire.h), which is taken apart
 * once a packet. Whether a thread waited for Python's global lock is seen in its stack: it was in
 * one of the functions that take it, near the innermost frame, while another thread held it.
 */
#include "formats/ctf/ctf.h"

#include <stdlib.h>
#include <string.h>

#define LOCK_DEPTH 8 /* frames of the C library below the function that takes the lock */

static enum rp_frame_kind kind_of(const char *text)
{
    static const char *const words[] = {[RP_FRAME_PYTHON] = "python\t",
                                        [RP_FRAME_NATIVE] = "native\t",
                                        [RP_FRAME_KERNEL] = "kernel\t"};

    for (unsigned i = RP_FRAME_PYTHON; i < RP_FRAME_KINDS; i++)
        if (!strncmp(text, words[i], strlen(words[i])))
            return (enum rp_frame_kind)i;
    return RP_FRAME_OTHER;
}

enum rp_code rp_ctf_sample_frame(struct rp_ctf_reader *r, rp_str text, uint32_t *out,
                                 struct rp_err *err)
{
    size_t len = 0;
    const char *all = rp_builder_borrow_str(r->t.builder, text, &len);
    struct rp_call_frame frame = {.kind = kind_of(all)};
    char copy[RP_CTF_TEXT_MAX + 1], *at = copy, *field[4];

    len = len < sizeof copy - 1 ? len : sizeof copy - 1;
    memcpy(copy, all, len);
    copy[len] = '\0';
    for (unsigned i = 0; i < 4; i++) {
        field[i] = strsep(&at, "\t");
        if (!field[i])
            return rp_err_set(err, RP_FORMAT, "a frame of a sample is not four fields");
    }
    RP_TRY(rp_proto_trace_text(&r->t, field[1], &frame.name, err));
    if (*field[2])
        RP_TRY(rp_proto_trace_text(&r->t, field[2], &frame.file, err));
    frame.line = (uint32_t)strtoul(field[3], NULL, 10);
    return rp_builder_frame(r->t.builder, &frame, out, err);
}

void rp_ctf_sample_note(struct rp_ctf_reader *r, rp_str text)
{
    static const char *const takers[] = {"native\ttake_gil\t", "native\tPyEval_RestoreThread\t",
                                         "native\tPyEval_AcquireThread\t",
                                         "native\tPyGILState_Ensure\t"};
    const char *all = rp_builder_borrow_str(r->t.builder, text, NULL);

    if (!strncmp(all, "kernel\t",
                 7)) /* where it waits for the lock is below the one that wants it */
        return;
    r->sample.lock_at += r->sample.lock_at != 0;
    for (size_t i = 0; i < sizeof takers / sizeof *takers; i++)
        if (!strncmp(all, takers[i], strlen(takers[i])))
            r->sample.lock_at = 1;
}

enum rp_code rp_ctf_sample_add(struct rp_ctf_reader *r, const struct rp_ctf_sample *e,
                               struct rp_err *err)
{
    struct rp_raw_sample raw = {.stack = r->sample.stack, .track = r->track};
    bool in_lock = r->sample.lock_at && r->sample.lock_at <= LOCK_DEPTH;

    if (e->flags & RP_CTF_SAMPLE_MORE)
        return RP_OK;
    r->sample.stack = RP_NONE;
    r->sample.lock_at = 0;
    raw.ts_ns = rp_ctf_times_ns(&r->times, e->ticks);
    raw.weight = e->weight_ns <= (uint64_t)RP_TIME_MAX_NS ? (int64_t)e->weight_ns : 0;
    raw.flags = e->state == RP_CTF_SAMPLE_WAITED ? RP_SAMPLE_WAITED : RP_SAMPLE_RAN;
    if (e->gil_tid && e->gil_tid == e->tid)
        raw.flags |= RP_SAMPLE_HAD_GIL;
    else if (e->gil_tid && e->state == RP_CTF_SAMPLE_WAITED && in_lock)
        raw.flags |= RP_SAMPLE_WANTS_GIL;
    RP_TRY(rp_builder_track(r->t.builder, r->process, e->tid, 0, true, &raw.track, err));
    return rp_builder_add_sample(r->t.builder, &raw, err);
}
