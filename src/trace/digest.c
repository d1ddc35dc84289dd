/* SPDX-License-Identifier: Apache-2.0 */
/* The digest of a rank: a copy of what finish has counted, with the names of its steps. */
#include "trace/run.h"

#include <stdlib.h>

static enum rp_code copy_steps(struct rp_digest *d, const struct rp_trace *t, struct rp_err *err)
{
    d->steps = RP_ARENA_NEW(&d->arena, struct rp_digest_step, t->nsteps);
    RP_TRY(rp_err_need(d->steps || !t->nsteps, err, "making a digest"));
    for (uint32_t i = 0; i < t->nsteps; i++) {
        const struct rp_step *from = &t->steps[i];
        struct rp_digest_step *to = &d->steps[i];

        if (i && from->name == t->steps[i - 1].name)
            to->name = d->steps[i - 1].name;
        else
            to->name = rp_arena_copy(&d->arena, rp_trace_str(t, from->name),
                                     rp_trace_str_len(t, from->name));
        RP_TRY(rp_err_need(to->name, err, "making a digest"));
        to->number = from->number;
        to->begin_ns = from->begin_ns;
        to->end_ns = from->end_ns;
        to->work_end_ns = from->work_end_ns;
        to->requests = from->requests;
        to->tokens = from->tokens;
        to->source = from->source;
        to->phase = from->phase;
        to->flags = from->flags;
    }
    d->nsteps = t->nsteps;
    return RP_OK;
}

static enum rp_code fill_digest(struct rp_digest *d, const struct rp_trace *t, const char *name,
                                struct rp_err *err)
{
    d->name = rp_arena_strdup(&d->arena, name ? name : "");
    d->format = rp_arena_strdup(&d->arena, rp_trace_str(t, t->format));
    d->framework = rp_arena_strdup(&d->arena, rp_trace_str(t, t->framework));
    RP_TRY(rp_err_need(d->name && d->format && d->framework, err, "making a digest"));
    d->rank = t->rank;
    d->world_size = t->world_size;
    d->base_ns = t->base_ns;
    d->has_base = t->has_base;
    d->nevents = t->ev.n;
    d->is_launcher = rp_trace_is_launcher(t);
    d->totals = t->totals;
    d->health = t->health;
    return copy_steps(d, t, err);
}

bool rp_trace_is_launcher(const struct rp_trace *t)
{
    const int64_t *count = t->totals.count;

    return t->rank < 0 && !t->nsteps && rp_trace_is_ours(t) &&
           !strcmp(rp_trace_str(t, t->format), "ctf") && !count[RP_KIND_KERNEL] &&
           !count[RP_KIND_COMM_OP] && !count[RP_KIND_CPU_OP];
}

enum rp_code rp_digest_new(const struct rp_trace *trace, const char *name, struct rp_digest **out,
                           struct rp_err *err)
{
    struct rp_digest *d = calloc(1, sizeof *d);

    *out = NULL;
    RP_TRY(rp_err_need(d, err, "making a digest"));
    rp_arena_init(&d->arena);
    enum rp_code code = fill_digest(d, trace, name, err);
    if (code != RP_OK) {
        rp_digest_free(d);
        return code;
    }
    *out = d;
    return RP_OK;
}

void rp_digest_free(struct rp_digest *digest)
{
    if (!digest)
        return;
    rp_arena_release(&digest->arena);
    free(digest);
}
