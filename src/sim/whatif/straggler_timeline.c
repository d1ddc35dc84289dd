/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straggler, on the timeline of a pipeline: every operation takes the time that is usual for its
 * type, over all ranks and steps: the mean of computes, the median of communication. Alternatively,
 * all except one stage, one data-parallel rank or one type do, which shows the cost of that one.
 */
#include "job/pipeline.h"
#include "sim/whatif/nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum keep { NOTHING, STAGE, DP, TYPE };

struct kept { /* kept: what keeps its own times */
    enum keep what;
    unsigned long number;
    const char *type;
};

static enum rp_code straggler_usage(const struct rp_whatif_args *args, struct rp_err *err)
{
    return rp_err_set(err, RP_USAGE,
                      "'%s': for a pipeline expected straggler=ideal, straggler=stage:<N>, "
                      "straggler=dp:<N> or straggler=type:<name>",
                      args->text);
}

static enum rp_code read_kept(const struct rp_sim_run *run, const struct rp_whatif_args *args,
                              struct kept *out, struct rp_err *err)
{
    const struct rp_sim_part *part = run->parts[0];
    const char *value = args->value ? args->value : "", *colon = strchr(value, ':');
    char *end;

    *out = (struct kept){NOTHING, 0, NULL};
    if (!strcmp(value, "ideal"))
        return RP_OK;
    if (!colon || !colon[1])
        return straggler_usage(args, err);
    out->type = colon + 1;
    out->what = !strncmp(value, "stage:", 6)  ? STAGE
                : !strncmp(value, "dp:", 3)   ? DP
                : !strncmp(value, "type:", 5) ? TYPE
                                              : NOTHING;
    if (out->what == NOTHING)
        return straggler_usage(args, err);
    if (out->what == TYPE)
        return RP_OK;
    unsigned long limit = out->what == STAGE ? part->stages : part->nranks / part->stages;
    out->number = strtoul(colon + 1, &end, 10);
    if (*end || colon[1] == '-')
        return straggler_usage(args, err);
    if (out->number >= limit)
        return rp_err_set(err, RP_UNSUPPORTED, "'%s': expected 0 to %lu", args->text, limit - 1);
    return RP_OK;
}

/* "forward-pp-comm" is both sides of it. */
static bool is_of_type(const char *name, const char *type)
{
    if (!strcmp(type, "forward-pp-comm") || !strcmp(type, "backward-pp-comm")) {
        size_t n = strlen(type) - strlen("pp-comm");

        return !strncmp(name, type, n) && (!strcmp(name + n, "send") || !strcmp(name + n, "recv"));
    }
    return !strcmp(name, type);
}

static bool is_kept(const struct rp_sim_run *run, const struct kept *k, uint32_t i)
{
    const struct rp_sg_node *n = rp_sim_node(run, i);
    uint32_t stages = run->parts[0]->stages;

    switch (k->what) {
    case STAGE:
        return n->rank % stages == k->number;
    case DP:
        return n->rank / stages == k->number;
    case TYPE:
        return is_of_type(run->graph->names.at[n->name], k->type);
    default:
        return false;
    }
}

/* The usual time of a type (its name), or -1 if there is none. */
static int64_t ideal_ns(const struct rp_sim_run *run, uint32_t name, int64_t *scratch)
{
    double sum = 0;
    size_t i, n = 0;

    for (i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_node(run, i)->name == name) {
            scratch[n++] = run->overlay.dur_ns.at[i];
            sum += (double)run->overlay.dur_ns.at[i];
        }
    if (!n)
        return -1;
    if (!rp_pipeline_is_comm(run->graph->names.at[name]))
        return llround(sum / (double)n);
    rp_ns_sort(scratch, n);
    return rp_ns_median(scratch, n);
}

static enum rp_code level_types(struct rp_sim_run *run, const struct kept *k, int64_t *scratch,
                                const struct rp_whatif_args *args, struct rp_err *err)
{
    uint32_t name, i, nkept = 0;

    for (name = 1; name < run->graph->names.n; name++) {
        int64_t ns = ideal_ns(run, name, scratch);

        for (i = 0; ns >= 0 && i < rp_sim_nnodes(run); i++) {
            if (rp_sim_node(run, i)->name != name)
                continue;
            if (is_kept(run, k, i))
                nkept++;
            else
                RP_TRY(rp_overlay_set_dur(&run->overlay, i, ns, err));
        }
    }
    if (k->what != NOTHING && !nkept)
        return rp_err_set(err, RP_UNSUPPORTED, "'%s': nothing in the timeline is '%s'", args->text,
                          k->type);
    return RP_OK;
}

enum rp_code rp_whatif_straggler_timeline(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                          struct rp_err *err)
{
    RP_FREED int64_t *scratch = NULL;
    struct kept kept;

    RP_TRY(read_kept(run, args, &kept, err));
    scratch = malloc((rp_sim_nnodes(run) + 1) * sizeof *scratch);
    return scratch ? level_types(run, &kept, scratch, args, err) : rp_err_nomem(err, "simulating");
}
