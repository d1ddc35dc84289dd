/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the bytes that collectives send. */
#include "xref/comm.h"

#include "base/order.h"
#include "program/opcodes.h"
#include "program/order.h"
#include "program/structure.h"

#include <string.h>

struct comm_ctx {
    const struct rp_xref *xref;
    const struct rp_meshes *meshes;
    struct rp_arena *arena;
    struct rp_comm *out;
    double *runs; /* of computations */
    RP_VEC(struct rp_comm_op) ops;
    struct rp_err *err;
};

/* ---- who takes part ---- */

/* Without groups, a gather makes its operand as many times larger as there are devices. */
static int64_t size_by_shapes(const struct rp_program *p, uint32_t op)
{
    struct rp_ids in = rp_op_operands(p, op);
    int64_t from = in.n == 1 ? rp_shape_bytes(p, p->shape.at[in.at[0]]) : 0;
    int64_t to = rp_shape_bytes(p, p->shape.at[op]);

    if (p->code.at[op] == RP_OP_ALL_GATHER && from > 0 && to % from == 0)
        return to / from;
    if (p->code.at[op] == RP_OP_REDUCE_SCATTER && to > 0 && from % to == 0)
        return from / to;
    return 0;
}

static struct rp_device_groups groups_of(const struct comm_ctx *ctx, uint32_t op)
{
    const struct rp_program *p = ctx->xref->program;
    const struct rp_attr *groups = rp_op_attr(p, op, RP_ATTR_REPLICA_GROUPS);
    struct rp_device_groups a = {.size = ctx->out->devices == RP_ABSENT_I64 ? 0 : ctx->out->devices,
                                 .stride = 1,
                                 .groups = 1};

    if (groups && groups->type == RP_VALUE_GROUPS && groups->groups &&
        (groups->groups->ngroups || groups->groups->form == RP_GROUPS_MESH))
        rp_meshes_groups(ctx->meshes, groups->groups, ctx->arena, &a);
    if (!a.size)
        a.size = size_by_shapes(p, op);
    return a;
}

static bool is_permute(uint16_t code)
{
    return code == RP_OP_COLLECTIVE_PERMUTE || code == RP_OP_COLLECTIVE_PERMUTE_START ||
           code == RP_OP_SEND || code == RP_OP_RECV;
}

/* Returns "data (4)"; an axis without a name is named by the distance of the devices of a group. */
static const char *axis_words(const struct comm_ctx *ctx, uint32_t op,
                              const struct rp_device_groups *a)
{
    const struct rp_program *p = ctx->xref->program;
    int64_t devices = ctx->out->devices;

    if (is_permute(p->code.at[op])) {
        const struct rp_attr *pairs = rp_op_attr(p, op, RP_ATTR_SOURCE_TARGET_PAIRS);
        const char *axis = pairs && pairs->type == RP_VALUE_PAIRS
                               ? rp_meshes_pairs(ctx->meshes, pairs->ints, pairs->n / 2, ctx->arena)
                               : NULL;

        return axis ? rp_arena_textf(ctx->arena, "%s (pairs)", axis) : "pairs of devices";
    }
    if (a->axis)
        return rp_arena_textf(ctx->arena, "%s (%lld)", a->axis, (long long)a->size);
    if (!a->size)
        return "all devices";
    if (a->size == devices || (devices == RP_ABSENT_I64 && a->groups == 1))
        return rp_arena_textf(ctx->arena, "all %lld devices", (long long)a->size);
    if (a->stride == 1)
        return rp_arena_textf(ctx->arena, "%lld neighbours", (long long)a->size);
    if (a->stride > 1)
        return rp_arena_textf(ctx->arena, "%lld devices, every %lld%s", (long long)a->size,
                              (long long)a->stride,
                              a->stride == 2   ? "nd"
                              : a->stride == 3 ? "rd"
                                               : "th");
    return rp_arena_textf(ctx->arena, "%lld devices", (long long)a->size);
}

/* ---- how much ---- */

/* In a ring, an all-reduce sends everything twice except its own part, and most others once. */
static double wire_of(uint16_t code, double payload, const struct rp_device_groups *a)
{
    double n = (double)a->size, part = n > 1 ? (n - 1) / n : n == 1 ? 0 : 1;

    if (is_permute(code) || code == RP_OP_COLLECTIVE_BROADCAST)
        return code == RP_OP_RECV ? 0 : payload;
    if (code == RP_OP_ALL_REDUCE || code == RP_OP_ALL_REDUCE_START)
        return 2 * part * payload;
    return part * payload;
}

/* Counts how often each computation runs. Callers come after what they call, so it goes
   backwards. */
static enum rp_code count_runs(struct comm_ctx *ctx)
{
    const struct rp_program *p = ctx->xref->program;
    uint32_t *order;

    ctx->runs = RP_ARENA_NEW(ctx->arena, double, p->computations.n + 1);
    RP_TRY(rp_err_need(ctx->runs, ctx->err, "counting runs"));
    RP_TRY(rp_program_call_order(p, ctx->arena, &order, ctx->err));
    ctx->runs[p->entry] = 1;
    for (size_t i = p->computations.n; i-- > 0;) {
        const struct rp_computation *c = &p->computations.at[order[i]];

        for (uint32_t op = c->first; op < c->first + c->n; op++) {
            struct rp_ids called = rp_op_called(p, op);
            bool loop = p->code.at[op] == RP_OP_WHILE;
            double times = loop ? (double)rp_op_trip_count(p, op) : 1;

            ctx->out->open_loops |= loop && times == 1;
            for (uint32_t k = 0; k < called.n; k++)
                ctx->runs[called.at[k]] += ctx->runs[order[i]] * times;
        }
    }
    return RP_OK;
}

static enum rp_code add_op(struct comm_ctx *ctx, uint32_t op)
{
    const struct rp_program *p = ctx->xref->program;
    struct rp_device_groups a = groups_of(ctx, op);

    /* The bytes that a device contributes or receives, whichever are more. */
    struct rp_ids in = rp_op_operands(p, op);
    uint16_t code = p->code.at[op];
    double payload = 0;
    for (uint32_t i = 0; i < in.n; i++)
        if (!(code == RP_OP_SEND && i > 0))
            payload += (double)rp_shape_bytes(p, p->shape.at[in.at[i]]);
    if (code == RP_OP_ALL_GATHER || code == RP_OP_ALL_GATHER_START)
        payload *= a.size > 0 ? (double)a.size : 1;

    struct rp_xref_place place;
    struct rp_comm_op row = {.runs = ctx->runs[p->computation.at[op]]};
    char shape[256];

    if (rp_op_info[p->code.at[op]].flags & RP_OPF_FREE || row.runs == 0)
        return RP_OK;
    rp_xref_place(ctx->xref, op, ctx->arena, &place);
    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    row.name = rp_arena_text(ctx->arena, rp_program_text(p, p->op_name.at[op]));
    row.collective = rp_arena_text(ctx->arena, rp_op_opcode_name(p, op));
    row.axis = axis_words(ctx, op, &a);
    row.shape = rp_arena_text(ctx->arena, shape);
    row.operator_ = *place.operator_ ? place.operator_ : NULL;
    row.scope = *place.scope ? place.scope : NULL;
    row.line = place.line;
    row.group_size = is_permute(p->code.at[op]) ? 2 : a.size ? a.size : RP_ABSENT_I64;
    row.groups = a.groups ? a.groups : RP_ABSENT_I64;
    row.payload_bytes = payload >= 9e18 ? INT64_MAX : (int64_t)payload;
    row.total_payload_bytes = payload * row.runs;
    row.wire_bytes = wire_of(p->code.at[op], payload, &a) * row.runs;
    ctx->out->payload_bytes += row.total_payload_bytes;
    ctx->out->wire_bytes += row.wire_bytes;
    return rp_vec_push(&ctx->ops, row, ctx->err);
}

/* ---- sums ---- */

RP_ORDER(by_wire, struct rp_comm_sum, RP_DOWN(wire_bytes), RP_DOWN(runs),
         strcmp(a->collective, b->collective), strcmp(a->axis, b->axis),
         strcmp(a->line ? a->line : "", b->line ? b->line : ""))

static uint64_t text_key(const char *text)
{
    return text ? rp_hash_bytes(text, strlen(text)) : 5;
}

static enum rp_code sum_ops(struct comm_ctx *ctx, bool lines, struct rp_comm_sum **out, size_t *n)
{
    struct rp_map map = {0};
    enum rp_code code = RP_OK;

    *n = 0;
    *out = RP_ARENA_NEW(ctx->arena, struct rp_comm_sum, ctx->ops.n + 1);
    RP_TRY(rp_err_need(*out, ctx->err, "summing collectives"));
    for (size_t i = 0; i < ctx->ops.n && code == RP_OK; i++) {
        const struct rp_comm_op *op = &ctx->ops.at[i];
        const char *line = op->line ? op->line : "(no line)";
        uint64_t key = rp_hash_join(text_key(op->collective), text_key(op->axis));
        uint32_t at;

        code = rp_map_intern(&map, lines ? rp_hash_join(key, text_key(line)) : key, (uint32_t)*n,
                             &at, ctx->err);
        if (code != RP_OK)
            break;
        if (at == *n)
            (*out)[(*n)++] = (struct rp_comm_sum){.collective = op->collective,
                                                  .axis = op->axis,
                                                  .line = lines ? line : NULL,
                                                  .group_size = op->group_size};
        (*out)[at].instructions++;
        (*out)[at].runs += op->runs;
        (*out)[at].payload_bytes += op->total_payload_bytes;
        (*out)[at].wire_bytes += op->wire_bytes;
    }
    rp_map_release(&map);
    for (size_t i = 0; i < *n; i++)
        (*out)[i].share =
            ctx->out->wire_bytes > 0 ? (*out)[i].wire_bytes / ctx->out->wire_bytes : 0;
    rp_sort(*out, *n, sizeof **out, by_wire);
    return code;
}

/* ---- all of it ---- */

/* Counts the devices of the groups of the collectives. */
static int64_t devices_of_groups(const struct comm_ctx *ctx)
{
    const struct rp_program *p = ctx->xref->program;
    int64_t most = 0, product;

    for (uint32_t op = 0; op < p->nops; op++) {
        const struct rp_attr *groups = rp_op_attr(p, op, RP_ATTR_REPLICA_GROUPS);
        struct rp_device_groups a;

        if (!groups || groups->type != RP_VALUE_GROUPS || !groups->groups)
            continue;
        rp_meshes_groups(ctx->meshes, groups->groups, ctx->arena, &a);
        if (!__builtin_mul_overflow(a.size, a.groups, &product) && product > most)
            most = product;
    }
    return most > 1 ? most : RP_ABSENT_I64;
}

static int64_t count_devices(const struct rp_program *p)
{
    int64_t replicas = rp_program_int(p, RP_ATTR_REPLICA_COUNT, 1);
    int64_t partitions = rp_program_int(p, RP_ATTR_NUM_PARTITIONS, 1), product;

    if (replicas < 1 || partitions < 1 || __builtin_mul_overflow(replicas, partitions, &product))
        return RP_ABSENT_I64;
    return product > 1 ? product : RP_ABSENT_I64;
}

static enum rp_code count_all(struct comm_ctx *ctx)
{
    const struct rp_program *p = ctx->xref->program;
    struct rp_comm *out = ctx->out;

    out->devices = count_devices(p);
    if (out->devices == RP_ABSENT_I64)
        out->devices = devices_of_groups(ctx);
    RP_TRY(count_runs(ctx));
    for (uint32_t op = 0; op < p->nops; op++)
        if (rp_op_info[p->code.at[op]].class_ == RP_CLASS_COLLECTIVE)
            RP_TRY(add_op(ctx, op));
    RP_TRY(sum_ops(ctx, false, &out->collectives, &out->ncollectives));
    RP_TRY(sum_ops(ctx, true, &out->lines, &out->nlines));
    out->ops = RP_ARENA_NEW(ctx->arena, struct rp_comm_op, ctx->ops.n + 1);
    RP_TRY(rp_err_need(out->ops, ctx->err, "listing collectives"));
    for (; out->nops < ctx->ops.n; out->nops++)
        out->ops[out->nops] = ctx->ops.at[out->nops];
    return rp_arena_check(ctx->arena, "listing collectives", ctx->err);
}

static void comm_ctx_release(struct comm_ctx *ctx)
{
    rp_vec_release(&ctx->ops);
}

enum rp_code rp_comm_count(const struct rp_xref *x, const struct rp_meshes *meshes,
                           struct rp_arena *arena, struct rp_comm *out, struct rp_err *err)
{
    RP_SCOPED(comm_ctx_release)
    struct comm_ctx ctx = {.xref = x, .meshes = meshes, .arena = arena, .out = out, .err = err};

    *out = (struct rp_comm){.devices = RP_ABSENT_I64};
    if (x->program && x->program->entry != RP_NONE)
        RP_TRY(count_all(&ctx));
    return RP_OK;
}

bool rp_comm_has_any(const struct rp_program *p)
{
    for (uint32_t op = 0; op < p->nops; op++)
        if (rp_op_info[p->code.at[op]].class_ == RP_CLASS_COLLECTIVE)
            return true;
    return false;
}
