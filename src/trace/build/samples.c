/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores samples of call stacks: equal frames and stacks get the same id, through maps. A reader
 * that walks from the outermost frame to the innermost pays one look-up for each frame.
 */
#include "base/each.h"
#include "trace/build/state.h"

void rp_build_samples_release(struct rp_build_samples *s)
{
    RP_EACH(rp_vec_release, &s->ts_ns, &s->weight, &s->track, &s->stack, &s->flags, &s->frames,
            &s->stacks);
    RP_EACH(rp_map_release, &s->frame_of, &s->stack_of);
}

static bool same_frame(const struct rp_call_frame *a, const struct rp_call_frame *b)
{
    return a->name == b->name && a->file == b->file && a->line == b->line && a->kind == b->kind;
}

static enum rp_code check_room(const struct rp_builder *b, size_t n, const char *what,
                               struct rp_err *err)
{
    if (n < b->limits.events)
        return RP_OK;
    return rp_err_set(err, RP_LIMIT, "more than %llu %s in one trace: record for a shorter time",
                      (unsigned long long)b->limits.events, what);
}

/* The frame itself decides equality, so two frames with the same hash get different keys. */
enum rp_code rp_builder_frame(struct rp_builder *b, const struct rp_call_frame *frame,
                              uint32_t *out, struct rp_err *err)
{
    struct rp_build_samples *s = &b->samples;
    uint32_t fresh = (uint32_t)s->frames.n;
    uint64_t key = rp_hash_join((uint64_t)frame->name << 32 | frame->file,
                                (uint64_t)frame->line << 32 | frame->kind);

    if (frame->name >= b->str.n || frame->file >= b->str.n || frame->kind >= RP_FRAME_KINDS)
        return rp_err_set(err, RP_BUG, "frame with an unknown name, file or kind");
    RP_TRY(check_room(b, fresh, "frames", err));
    RP_TRY(rp_vec_reserve(&s->frames, 1, err));
    for (;; key = rp_hash_u64(key)) {
        RP_TRY(rp_map_intern(&s->frame_of, key, fresh, out, err));
        if (*out == fresh) {
            s->frames.at[s->frames.n++] = *frame;
            return RP_OK;
        }
        if (same_frame(&s->frames.at[*out], frame))
            return RP_OK;
    }
}

enum rp_code rp_builder_stack(struct rp_builder *b, uint32_t parent, uint32_t frame, uint32_t *out,
                              struct rp_err *err)
{
    struct rp_build_samples *s = &b->samples;
    uint32_t fresh = (uint32_t)s->stacks.n;
    struct rp_call_stack stack = {parent, frame};

    if (frame >= s->frames.n || (parent != RP_NONE && parent >= fresh))
        return rp_err_set(err, RP_BUG, "stack with an unknown parent or frame");
    RP_TRY(check_room(b, fresh, "different stacks", err));
    RP_TRY(rp_vec_reserve(&s->stacks, 1, err));
    RP_TRY(rp_map_intern(&s->stack_of, (uint64_t)parent << 32 | frame, fresh, out, err));
    if (*out == fresh)
        s->stacks.at[s->stacks.n++] = stack;
    return RP_OK;
}

enum rp_code rp_builder_add_sample(struct rp_builder *b, const struct rp_raw_sample *sample,
                                   struct rp_err *err)
{
    struct rp_build_samples *s = &b->samples;

    if (sample->track >= b->tracks.n ||
        (sample->stack != RP_NONE && sample->stack >= s->stacks.n) ||
        sample->flags > RP_SAMPLE_FLAGS)
        return rp_err_set(err, RP_BUG, "sample with an unknown track, stack or state");
    RP_TRY(check_room(b, s->ts_ns.n, "samples", err));
    RP_TRY(rp_vec_push(&s->ts_ns, sample->ts_ns, err));
    RP_TRY(rp_vec_push(&s->weight, sample->weight, err));
    RP_TRY(rp_vec_push(&s->track, sample->track, err));
    RP_TRY(rp_vec_push(&s->stack, sample->stack, err));
    return rp_vec_push(&s->flags, sample->flags, err);
}
