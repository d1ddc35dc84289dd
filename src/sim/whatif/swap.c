/* SPDX-License-Identifier: Apache-2.0 */
/* swap: two operators or kernels of a thread or stream swap places, in every step. */
#include "sim/whatif/nodes.h"

/* The next task of each name on a lane in a step form a pair; the search continues after both. */
static enum rp_code swap_on_lane(struct rp_sim_run *run, const struct rp_sg_lane *lane,
                                 const struct rp_whatif_args *args, rp_sim_task_vec *matched,
                                 size_t *n, struct rp_err *err)
{
    uint32_t i, a = RP_NONE, b = RP_NONE;
    uint16_t step = RP_NO_STEP;

    for (i = lane->first; i < lane->end; i++) {
        if (rp_sim_note_of(run, i)->step != step) {
            step = rp_sim_note_of(run, i)->step;
            a = b = RP_NONE;
        }
        if (a == RP_NONE && rp_sim_name_fits(run, args->value, i))
            a = i;
        else if (b == RP_NONE && rp_sim_name_fits(run, args->second, i))
            b = i;
        if (a == RP_NONE || b == RP_NONE)
            continue;

        /* Each takes the time of the other. */
        int64_t of_a = run->overlay.dur_ns.at[a], of_b = run->overlay.dur_ns.at[b];
        RP_TRY(rp_overlay_set_dur(&run->overlay, a, of_b, err));
        RP_TRY(rp_overlay_set_dur(&run->overlay, b, of_a, err));

        RP_TRY(rp_sim_match(run, matched, a, err));
        RP_TRY(rp_sim_match(run, matched, b, err));
        a = b = RP_NONE;
        (*n)++;
    }
    return RP_OK;
}

static enum rp_code swap_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                               struct rp_err *err)
{
    rp_sim_task_vec matched = {0};
    enum rp_code code = RP_OK;
    size_t k, n = 0;

    if (!args->value || !*args->value || !args->second || !*args->second)
        return rp_err_set(err, RP_USAGE, "'%s': two names such as swap=A,B are expected",
                          args->text);
    for (k = 0; k < run->graph->lanes.n && code == RP_OK; k++)
        code = swap_on_lane(run, &run->graph->lanes.at[k], args, &matched, &n, err);
    if (code == RP_OK && !n)
        code = rp_err_set(err, RP_UNSUPPORTED,
                          "'%s': no thread or stream has both '%s' and '%s' in one step",
                          args->text, args->value, args->second);
    if (code == RP_OK)
        code = rp_sim_say(run, "swaps", &matched, err);
    rp_vec_release(&matched);
    return code;
}

const struct rp_whatif rp_whatif_swap = {
    .name = "swap",
    .form = "swap=<A>,<B>",
    .summary = "two operators or kernels of a thread or stream swap places",
    .assumes = "nothing between the two needs the result of the first",
    .value = RP_WHATIF_TWO_NAMES,
    .apply = swap_apply};
