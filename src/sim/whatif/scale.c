/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale: durations are multiplied by a factor. For a class (all, host, compute, comm, memory, a
 * phase), a rank, a category of work (matmul, attention, …), or a pattern for the names of kernels
 * and operators. A category or name means device work, if any fits, because a faster kernel is not
 * launched faster. "host:NAME" means the host's.
 */
#include "cost/category.h"
#include "sim/whatif/nodes.h"

#include <stdlib.h>
#include <string.h>

enum class { ALL, HOST, COMPUTE, COMM, MEMORY, DEVICE, PHASE, RANK, CATEGORY, NAME };

#define HOST_NAME "host:" /* before a name: means the host's work instead of the device's */

struct subject {
    enum class cls;
    uint8_t phase;
    uint32_t rank;
    enum rp_category category;
    bool on_host; /* a category or name of the host's work */
    const char *pattern;
};

static const struct {
    const char *name;
    enum class cls;
} classes[] = {{"all", ALL},   {"host", HOST},     {"compute", COMPUTE},
               {"comm", COMM}, {"memory", MEMORY}, {"gpu", DEVICE}};

static enum rp_code read_subject(const struct rp_whatif_args *args, struct subject *out,
                                 struct rp_err *err)
{
    char *end;

    if (!args->subject || !*args->subject)
        return rp_err_set(err, RP_USAGE,
                          "'%s': the part to scale is missing, as in 'scale:compute=0.5'",
                          args->text);
    *out = (struct subject){.cls = NAME,
                            .on_host = !strncmp(args->subject, HOST_NAME, strlen(HOST_NAME))};
    out->pattern = args->subject + (out->on_host ? strlen(HOST_NAME) : 0);
    if (rp_category_by_name(out->pattern, strlen(out->pattern), &out->category))
        out->cls = CATEGORY;
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (!strcmp(args->subject, classes[i].name))
            out->cls = classes[i].cls;
    for (size_t i = RP_PHASE_FORWARD; i < RP_PHASES; i++)
        if (!strcmp(args->subject, rp_phase_names[i])) {
            out->cls = PHASE;
            out->phase = (uint8_t)i;
        }
    if (!strncmp(args->subject, "rank", 4)) {
        out->rank = (uint32_t)strtoul(args->subject + 4, &end, 10);
        if (end != args->subject + 4 && !*end)
            out->cls = RANK;
    }
    return RP_OK;
}

/* Whether a node's names fit, on the side that is meant. */
static bool name_matches(const struct rp_sim_run *run, const struct subject *s, uint32_t i)
{
    const char *op = rp_sim_part_of(run, i)->graph.names.at[rp_sim_note_of(run, i)->op];

    if (rp_sim_is_host(run, i) != s->on_host)
        return false;
    if (s->cls == NAME)
        return rp_sim_name_fits(run, s->pattern, i);
    return rp_category_of(NULL, *op ? op : NULL, s->on_host ? NULL : rp_sim_node_name(run, i)) ==
           s->category;
}

/* In a run without a device, the host's operators are the compute, and its collectives the rest. */
static bool scale_matches(const struct rp_sim_run *run, const struct subject *s, bool on_host,
                          uint32_t i)
{
    uint8_t kind = rp_sim_node(run, i)->kind;
    bool comm = rp_sim_is_comm(run, i);

    switch (s->cls) {
    case ALL:
        return true;
    case HOST:
        return rp_sim_is_host(run, i);
    case COMPUTE:
        return !comm && (kind == RP_SG_COMPUTE || (on_host && rp_sim_is_host(run, i)));
    case COMM:
        return comm;
    case MEMORY:
        return kind == RP_SG_MEMORY && !comm;
    case DEVICE:
        return kind == RP_SG_COMPUTE || kind == RP_SG_COMM || kind == RP_SG_MEMORY;
    case PHASE:
        return rp_sim_note_of(run, i)->phase == s->phase;
    case RANK:
        return rp_sim_node(run, i)->rank == s->rank && !comm;
    default:
        return name_matches(run, s, i);
    }
}

/* Tasks added by another what-if have a kind and a rank, but no name. */
static bool scale_matches_new(const struct subject *s, const struct rp_task_row *task)
{
    switch (s->cls) {
    case ALL:
        return true;
    case COMM:
        return task->kind == RP_SG_COMM || task->kind == RP_SG_MEMORY;
    case DEVICE:
        return task->kind == RP_SG_COMPUTE || task->kind == RP_SG_MEMORY;
    default:
        return false;
    }
}

/* If everything takes twice as long, so do the lags between tasks. */
static enum rp_code scale_lags(struct rp_sim_run *run, double factor, struct rp_err *err)
{
    struct rp_overlay *o = &run->overlay;

    run->edges_factor *= factor;
    for (uint32_t i = 0; i < o->edges.n; i++)
        o->edges.at[i].edge.lag_ns = rp_sim_scaled(o->edges.at[i].edge.lag_ns, factor);
    for (uint32_t i = 0; i < run->tasks.edges.n; i++)
        RP_TRY(rp_overlay_set_lag(&run->overlay, i,
                                  rp_sim_scaled(run->overlay.lag_ns.at[i], factor), err));
    return RP_OK;
}

static enum rp_code scale_one(struct rp_sim_run *run, uint32_t task, double factor,
                              rp_sim_task_vec *matched, size_t *n, struct rp_err *err)
{
    (*n)++;
    RP_TRY(rp_sim_scale_node(run, task, factor, err));
    return rp_sim_match(run, matched, task, err);
}

static enum rp_code scale_tasks(struct rp_sim_run *run, const struct subject *s, double factor,
                                rp_sim_task_vec *matched, size_t *n, struct rp_err *err)
{
    bool on_host = s->cls == COMPUTE && !rp_sim_has_device(run);
    uint32_t i, nold = (uint32_t)run->tasks.tasks.n;

    for (i = 0; s->cls == COMM && i < run->comm.n; i++)
        RP_TRY(scale_one(run, run->comm.at[i], factor, matched, n, err));
    for (i = 0; s->cls != COMM && i < nold; i++)
        if (scale_matches(run, s, on_host, i))
            RP_TRY(scale_one(run, i, factor, matched, n, err));
    for (i = nold; i < rp_overlay_ntasks(&run->overlay); i++)
        if (scale_matches_new(s, rp_overlay_task(&run->overlay, i)))
            RP_TRY(scale_one(run, i, factor, matched, n, err));
    return RP_OK;
}

static enum rp_code scale_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                struct rp_err *err)
{
    struct subject s = {0};
    rp_sim_task_vec matched = {0};
    double factor;
    size_t n = 0;

    RP_TRY(read_subject(args, &s, err));
    RP_TRY(rp_whatif_factor(args, &factor, err));
    enum rp_code code = scale_tasks(run, &s, factor, &matched, &n, err);
    if (code == RP_OK && !n && s.cls >= CATEGORY && !s.on_host) { /* nothing on the device */
        s.on_host = true;
        code = scale_tasks(run, &s, factor, &matched, &n, err);
    }
    if (code == RP_OK && !n)
        code = rp_err_set(err, RP_UNSUPPORTED, "'%s': nothing in the run matches '%s'", args->text,
                          args->subject);
    if (code == RP_OK && s.cls >= CATEGORY)
        code = rp_sim_say(run, "scales", &matched, err);
    rp_vec_release(&matched);
    RP_TRY(code);
    return s.cls == ALL ? scale_lags(run, factor, err) : RP_OK;
}

const struct rp_whatif rp_whatif_scale = {
    .name = "scale",
    .form = "scale:<what>=<factor>",
    .summary = "all, host, gpu, compute, comm, memory, forward, backward, optimizer, rank<N>, a "
               "category of work (matmul, …), or kernels and operators by name: their time is "
               "multiplied by the factor; of a category or name that of the device work, unless it "
               "is host:<name>",
    .assumes = "nothing else changes; what ran concurrently still does",
    .has_subject = true,
    .value = RP_WHATIF_WORD,
    .apply = scale_apply};
