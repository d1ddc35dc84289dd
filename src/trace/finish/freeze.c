/* SPDX-License-Identifier: Apache-2.0 */
/* The builder's columns and tables move into the trace; nothing is copied. */
#include "trace/build/state.h"
#include "trace/finish/finish.h"

#define TAKE(to, v) RP_TRY(rp_store_take(store, &(to), &(v), err))

static enum rp_code freeze_events(struct rp_builder *b, struct rp_err *err)
{
    struct rp_trace_store *store = b->trace->store;
    struct rp_build_events *from = &b->ev;
    struct rp_events *to = &b->trace->ev;

    to->n = from->n;
    TAKE(to->ts_ns, from->ts_ns);
    TAKE(to->dur_ns, from->dur_ns);
    TAKE(to->name, from->name);
    TAKE(to->track, from->track);
    TAKE(to->parent, from->parent);
    TAKE(to->link, from->link);
    TAKE(to->arg_row, from->arg_row);
    TAKE(to->seq, from->seq);
    TAKE(to->shape, from->shape);
    TAKE(to->origin, from->origin);
    TAKE(to->kind, from->kind);
    TAKE(to->flags, from->flags);
    return RP_OK;
}

static enum rp_code freeze_flows(struct rp_builder *b, struct rp_err *err)
{
    struct rp_trace_store *store = b->trace->store;
    struct rp_build_flows *from = &b->flows;
    struct rp_flows *to = &b->trace->flows;

    to->n = from->n;
    TAKE(to->ts_ns, from->ts_ns);
    TAKE(to->id, from->id);
    TAKE(to->name, from->name);
    TAKE(to->track, from->track);
    TAKE(to->origin, from->origin);
    TAKE(to->flags, from->flags);
    TAKE(to->event, from->event);
    TAKE(to->shape, from->shape);
    TAKE(to->arg_row, from->arg_row);
    return RP_OK;
}

static enum rp_code freeze_samples(struct rp_builder *b, struct rp_err *err)
{
    struct rp_trace_store *store = b->trace->store;
    struct rp_build_samples *from = &b->samples;
    struct rp_call_samples *to = &b->trace->samples;

    to->n = (uint32_t)from->ts_ns.n;
    to->nframes = (uint32_t)from->frames.n;
    to->nstacks = (uint32_t)from->stacks.n;
    TAKE(to->ts_ns, from->ts_ns);
    TAKE(to->weight, from->weight);
    TAKE(to->track, from->track);
    TAKE(to->stack, from->stack);
    TAKE(to->flags, from->flags);
    TAKE(to->frame, from->frames);
    TAKE(to->stacks, from->stacks);
    return RP_OK;
}

static enum rp_code freeze_links_and_args(struct rp_builder *b, struct rp_err *err)
{
    struct rp_trace_store *store = b->trace->store;
    struct rp_links *links = &b->trace->links;

    links->n = (uint32_t)b->links.native_id.n;
    TAKE(links->native_id, b->links.native_id);
    TAKE(links->source, b->links.source);
    TAKE(links->offset, b->member_offset);
    TAKE(links->member, b->member);
    rp_build_args_show_spilled(b);
    TAKE(b->trace->args.spill_offset, b->args.spill_offset);
    TAKE(b->trace->args.spill, b->args.spill);
    return RP_OK;
}

static enum rp_code freeze_tables(struct rp_builder *b, struct rp_err *err)
{
    struct rp_trace_store *store = b->trace->store;
    struct rp_trace *to = b->trace;

    to->norigins = (uint32_t)b->origins.n;
    to->nprocesses = (uint32_t)b->processes.n;
    to->ntracks = (uint32_t)b->tracks.n;
    to->nsteps = (uint32_t)b->steps.n;
    to->ndevices = (uint32_t)b->devices.n;
    to->nmeta = (uint32_t)b->meta.n;
    to->nwarnings = (uint32_t)b->warnings.n;
    TAKE(to->origins, b->origins);
    TAKE(to->processes, b->processes);
    TAKE(to->tracks, b->tracks);
    TAKE(to->steps, b->steps);
    TAKE(to->devices, b->devices);
    TAKE(to->meta, b->meta);
    TAKE(to->warnings, b->warnings);
    return RP_OK;
}

enum rp_code rp_pass_freeze(struct rp_builder *b, struct rp_err *err)
{
    RP_TRY(freeze_events(b, err));
    RP_TRY(freeze_flows(b, err));
    RP_TRY(freeze_samples(b, err));
    RP_TRY(freeze_links_and_args(b, err));
    RP_TRY(freeze_tables(b, err));

    /* Strings that passes add after `names` have no class. */
    struct rp_trace_store *store = b->trace->store;
    struct rp_strings *to = &b->trace->str;
    while (b->name_class.n < b->str.n)
        RP_TRY(rp_vec_push(&b->name_class, 0, err));
    to->n = b->str.n;
    TAKE(to->name_class, b->name_class);
    TAKE(to->offset, b->str.offset);
    TAKE(to->bytes, b->str.bytes);
    b->str.n = 0;
    return RP_OK;
}
