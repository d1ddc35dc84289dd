/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of a part in another number format, by a cost model: one question a call of an operator.
 */
#include "sim/kernel_ratios.h"

#include "cost/learn/from_trace.h"
#include "cost/learn/learned.h"
#include "dataset/models.h"

#include <math.h>
#include <string.h>

struct ratio_ctx {
    struct rp_sim_part *part;
    const struct rp_trace *trace;
    struct rp_ctx *ctx;
    const char *path;               /* of the model; NULL: built in */
    const struct rp_learned *model; /* NULL: not needed so far */
    enum rp_number to;
    const char *device;
    struct rp_work work;
    struct rp_trace_categories categories;
    struct rp_op_costs costs;
    struct rp_cost_calls calls;
    struct rp_arena arena;
    RP_VEC(struct rp_sim_ratio) of_call; /* ratio 0: not known */
    RP_VEC(uint32_t) item_of;            /* by event: its item + 1, or 0 */
};

/* Only products: autocast and its kind convert them, and leave much of the rest as it is. */
static bool is_converted(const struct rp_sample *s)
{
    return s->kind >= RP_OP_MATMUL && s->kind <= RP_OP_ATTENTION &&
           rp_number_bytes((enum rp_number)s->type) == 4;
}

/* Products are rare in some traces, and so is a device that is known: the model waits for one. */
static enum rp_code ratio_of_call(struct ratio_ctx *c, const struct rp_cost_call *call,
                                  struct rp_sim_ratio *out, struct rp_err *err)
{
    struct rp_learned_ratio found;
    struct rp_learned_time now;
    struct rp_sample from, to;

    *out = (struct rp_sim_ratio){0};
    if (!rp_sample_of_call(&c->costs, &c->work, call, c->device, &c->arena, &from))
        return RP_OK;
    if (rp_number_bytes((enum rp_number)from.type) <= rp_number_bytes(c->to)) {
        *out = (struct rp_sim_ratio){1, 1, 1};
        return RP_OK;
    }
    if (!is_converted(&from))
        return RP_OK;
    if (!c->model)
        RP_TRY(rp_ctx_borrow_model(c->ctx, c->path, &c->model, err));
    to = from;
    to.type = (uint8_t)c->to;
    to.bytes = from.bytes * rp_number_bytes(c->to) / rp_number_bytes((enum rp_number)from.type);
    if (rp_learned_predict(c->model, &from, &now) && now.provenance != RP_ASSUMED &&
        rp_learned_ratio_of(c->model, &from, &to, &found) && found.provenance != RP_ASSUMED)
        *out = (struct rp_sim_ratio){(float)found.ratio, (float)found.low, (float)found.high};
    return RP_OK;
}

static enum rp_code find_ratios(struct ratio_ctx *c, struct rp_err *err)
{
    const struct rp_stepgraph *g = &c->part->graph;
    size_t i;

    RP_TRY(rp_vec_reserve(&c->of_call, c->calls.calls.n + 1, err));
    for (c->of_call.n = i = 0; i < c->calls.calls.n; i++)
        RP_TRY(ratio_of_call(c, &c->calls.calls.at[i], &c->of_call.at[c->of_call.n++], err));
    RP_TRY(rp_vec_reserve(&c->item_of, (size_t)c->trace->ev.n + 1, err));
    memset(c->item_of.at, 0, c->trace->ev.n * sizeof *c->item_of.at);
    for (i = 0; i < c->work.items.n; i++)
        c->item_of.at[c->work.items.at[i].event] = (uint32_t)i + 1;
    for (i = 0; i < g->nodes.n; i++) {
        rp_event e = g->nodes.at[i].event;
        uint32_t item = e == RP_NONE ? 0 : c->item_of.at[e];
        uint32_t call = item ? c->calls.of_item.at[item - 1] : RP_NONE;
        struct rp_sim_ratio none = {0};

        RP_TRY(
            rp_vec_push(&c->part->ratios, call < c->of_call.n ? c->of_call.at[call] : none, err));
    }
    return rp_arena_check(&c->arena, "simulating", err);
}

enum rp_code rp_sim_part_ask_model(struct rp_sim_part *part, const struct rp_loaded *loaded,
                                   const char *path, struct rp_err *err)
{
    const struct rp_trace *t = loaded->trace;
    const struct rp_device_peaks *d =
        part->gpu ? rp_device_recognise(part->gpu, t->ndevices ? t->devices[0].memory_bytes : 0)
                  : NULL;
    struct ratio_ctx c = {.part = part,
                          .trace = t,
                          .ctx = loaded->dataset ? loaded->dataset->ctx : NULL,
                          .path = path,
                          .to = rp_device_half(d)};
    struct rp_scope all = {0};
    enum rp_code code;

    if (!part->graph.nodes.n || !c.ctx) /* a trace alone has no models */
        return RP_OK;
    if (path) /* what the user names is read in every case */
        RP_TRY(rp_ctx_borrow_model(c.ctx, path, &c.model, err));
    if (!d)
        return RP_OK;
    c.device = d->name;
    code = rp_work_init(&c.work, t, &all, err);
    rp_trace_categories_init(&c.categories, t, rp_loaded_categories(loaded));
    if (code == RP_OK)
        code = rp_op_costs_init(&c.costs, &c.categories, err);
    if (code == RP_OK)
        code = rp_cost_calls_init(&c.calls, &c.costs, &c.work, NULL, NULL, err);
    if (code == RP_OK)
        code = find_ratios(&c, err);
    rp_vec_release(&c.of_call);
    rp_vec_release(&c.item_of);
    rp_cost_calls_release(&c.calls);
    rp_op_costs_release(&c.costs);
    rp_trace_categories_release(&c.categories);
    rp_work_release(&c.work);
    rp_arena_release(&c.arena);
    return code;
}
