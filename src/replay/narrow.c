/* SPDX-License-Identifier: Apache-2.0 */
/* Judges outputs that have a type narrower than f32, or pass through one, by the effect of rounding
   on them (variants.h), whatever the bounds of their type are. */
#include "replay/variants.h"

#include <stdlib.h>

static enum rp_code say_narrow(const struct rp_variants_verdict *verdicts, size_t n,
                               struct rp_result *result, struct rp_err *err)
{
    struct rp_replay *root = result->root;
    size_t wrong = 0;

    for (size_t i = 0; i < n; i++) {
        const struct rp_variants_verdict *v = &verdicts[i];
        struct rp_replay_output *o = &root->outputs[i];

        if (!v->known)
            continue;
        o->moved = v->moved;
        if (!v->why)
            continue;
        o->ok = false;
        o->decided = true;
        o->wrong = v->wrong ? (int64_t)v->wrong : o->elements;
        if (wrong++ < RP_REPLAY_WARNINGS)
            RP_TRY(rp_replay_warn(
                root, &result->arena,
                rp_arena_textf(&result->arena,
                               "output %zu is off by up to %.3g, %s: runs of this program that "
                               "round otherwise differ by less",
                               i, o->max_abs, v->why),
                err));
    }
    return RP_OK;
}

enum rp_code rp_replay_tighten_narrow(const struct rp_session *s, const struct rp_session_run *run,
                                      struct rp_tensor *const *want, const uint8_t *through,
                                      bool any_tf32, struct rp_result *result, struct rp_err *err)
{
    struct rp_trial_engine on = {.options = run->options};
    struct rp_variants_of of = {.on = &on,
                                .part = rp_session_part(s),
                                .tf32 = any_tf32 && rp_rounding_of(s->program.program).products};
    const struct rp_replay *root = result->root;
    RP_FREED struct rp_variants_verdict *verdicts = calloc(run->noutputs + 1, sizeof *verdicts);
    RP_FREED double *least = calloc(run->noutputs + 1, sizeof *least);
    bool open = false;

    RP_TRY(rp_err_need(least && verdicts, err, "judging outputs"));
    for (size_t i = 0; i < run->noutputs; i++) {
        least[i] =
            rp_variants_least(want[i], through ? through[i % s->signature.nout] : RP_ELEM_INVALID);
        if (root->outputs[i].reason || root->outputs[i].max_abs <= least[i])
            least[i] = 0;
        open |= least[i] > 0;
    }
    if (!open)
        return RP_OK;
    enum rp_code code =
        rp_variants_decide(&of, run->outputs, want, least, run->noutputs, verdicts, err);
    if (code == RP_OK)
        code = say_narrow(verdicts, run->noutputs, result, err);
    /* an engine of ours that does not know the program cannot tell */
    return rp_trial_is_ours(code) ? code : RP_OK;
}
