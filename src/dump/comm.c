/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dump comm`: how much a distributed program communicates, by collective, by the axis of devices
 * that take part, and by line. Bytes are those of one device and one execution; loops count as
 * often as they run. docs/definitions.md has the formulas.
 */
#include "base/order.h"
#include "dump/folder.h"
#include "program/order.h"
#include "program/structure.h"
#include "result/print_units.h"
#include "xref/xref.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct comm_op {
    const char *name, *collective, *axis, *shape, *operator_, *scope, *line;
    int64_t group_size, groups, payload_bytes;
    double runs, wire_bytes, total_payload_bytes;
};

struct comm_sum {
    const char *collective, *axis, *line;
    int64_t instructions, group_size;
    double runs, payload_bytes, wire_bytes, share;
};

struct comm_root {
    const char *module, *summary;
    int64_t devices, instructions;
    double payload_bytes, wire_bytes;
    size_t ncollectives, nlines, nops, nnotes;
    struct comm_sum *collectives, *lines;
    struct comm_op *ops;
    const char **notes;
};

static const struct rp_field collective_fields[] = {
    RP_FIELD(struct comm_sum, collective, STR, NONE, "collective", "opcode", 0),
    RP_FIELD(struct comm_sum, axis, STR, NONE, "axis", "devices that work together", RP_SHORTEN),
    RP_FIELD(struct comm_sum, group_size, I64, COUNT, NULL, "devices of a group", RP_NULLABLE),
    RP_FIELD(struct comm_sum, instructions, I64, COUNT, "instructions", "of the program", 0),
    RP_FIELD(struct comm_sum, runs, F64, COUNT, "runs", "in one execution", 0),
    RP_FIELD(struct comm_sum, payload_bytes, F64, BYTES, "payload", "of a device, all runs", 0),
    RP_FIELD(struct comm_sum, wire_bytes, F64, BYTES, "sent", "by a device, with ring algorithms",
             0),
    RP_FIELD(struct comm_sum, share, F64, RATIO, "share", "of what is sent", RP_BAR),
    RP_FIELD_END};
static const struct rp_type collective_type = {"collective", sizeof(struct comm_sum),
                                               collective_fields, NULL};

static const struct rp_field line_fields[] = {
    RP_FIELD(struct comm_sum, line, STR, NONE, "line", "of the user's code", RP_SHORTEN),
    RP_FIELD(struct comm_sum, collective, STR, NONE, "collective", "opcode", 0),
    RP_FIELD(struct comm_sum, axis, STR, NONE, "axis", "devices that work together",
             RP_SHORTEN | RP_WIDE),
    RP_FIELD(struct comm_sum, instructions, I64, COUNT, "instructions", "of the program", 0),
    RP_FIELD(struct comm_sum, runs, F64, COUNT, "runs", "in one execution", 0),
    RP_FIELD(struct comm_sum, payload_bytes, F64, BYTES, "payload", "of a device, all runs",
             RP_WIDE),
    RP_FIELD(struct comm_sum, wire_bytes, F64, BYTES, "sent", "by a device, with ring algorithms",
             0),
    RP_FIELD(struct comm_sum, share, F64, RATIO, "share", "of what is sent", RP_BAR),
    RP_FIELD_END};
static const struct rp_type line_type = {"line", sizeof(struct comm_sum), line_fields, NULL};

static const struct rp_field op_fields[] = {
    RP_FIELD(struct comm_op, name, STR, NONE, "instruction", "name", 0),
    RP_FIELD(struct comm_op, collective, STR, NONE, "collective", "opcode", 0),
    RP_FIELD(struct comm_op, axis, STR, NONE, "axis", "devices that work together", 0),
    RP_FIELD(struct comm_op, shape, STR, NONE, "shape", "of the result", 0),
    RP_FIELD(struct comm_op, group_size, I64, COUNT, "group", "devices of a group", RP_NULLABLE),
    RP_FIELD(struct comm_op, groups, I64, COUNT, "groups", "how many", RP_NULLABLE),
    RP_FIELD(struct comm_op, payload_bytes, I64, BYTES, "payload", "of a device, one run", 0),
    RP_FIELD(struct comm_op, runs, F64, COUNT, "runs", "in one execution", 0),
    RP_FIELD(struct comm_op, wire_bytes, F64, BYTES, "sent", "by a device, all runs", 0),
    {"operator", "operator", RP_T_STR, RP_UNIT_NONE, 0, offsetof(struct comm_op, operator_), 0,
     NULL, "of the framework"},
    RP_FIELD(struct comm_op, scope, STR, NONE, "scope", "of the operator", 0),
    RP_FIELD(struct comm_op, line, STR, NONE, "line", "of the user's code", 0),
    RP_FIELD_END};
static const struct rp_type op_type = {"instruction", sizeof(struct comm_op), op_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct comm_root, module, STR, NONE, "module", "of the dump, or the file", 0),
    RP_FIELD(struct comm_root, summary, STR, NONE, "communication", "text output only", RP_SCREEN),
    RP_FIELD(struct comm_root, devices, I64, COUNT, NULL, "replicas times partitions", RP_NULLABLE),
    RP_FIELD(struct comm_root, instructions, I64, COUNT, NULL, "that communicate", 0),
    RP_FIELD(struct comm_root, payload_bytes, F64, BYTES, NULL, "of a device, one execution", 0),
    RP_FIELD(struct comm_root, wire_bytes, F64, BYTES, NULL,
             "sent by a device in one execution, with ring algorithms", 0),
    RP_FIELD_LIST(struct comm_root, collectives, &collective_type, "by collective and axis",
                  "most first", 0),
    RP_FIELD_LIST(struct comm_root, lines, &line_type, "by source line", "most first", 0),
    RP_FIELD_LIST(struct comm_root, ops, &op_type, NULL, "instructions that communicate", 0),
    RP_FIELD_LIST(struct comm_root, notes, &rp_type_string, "notes", "what is missing", 0),
    RP_FIELD_END};
static const struct rp_type comm_type = {"dump_comm", sizeof(struct comm_root), root_fields,
                                         "collectives"};

/* ------------------------------------------------------------------ who takes part */

struct axis { /* groups of `size` devices, `stride` apart; stride 0: irregular */
    int64_t size, stride, groups;
    const char *name; /* of a mesh; else NULL */
};

/* Device i of an iota: 0, 1, … as an array of dims, transposed by perm. */
static int64_t iota_device(const struct rp_replica_groups *g, int64_t i)
{
    int64_t device = 0, strides[16];

    if (!g->dims.n || g->dims.n > 16)
        return i;
    strides[g->dims.n - 1] = 1;
    for (size_t d = g->dims.n - 1; d > 0; d--)
        strides[d - 1] = strides[d] * g->dims.at[d];
    for (size_t d = g->dims.n; d-- > 0;) {
        size_t from =
            g->perm.n == g->dims.n && g->perm.at[d] >= 0 && g->perm.at[d] < (int64_t)g->dims.n
                ? (size_t)g->perm.at[d]
                : d;
        int64_t size = g->dims.at[from] > 0 ? g->dims.at[from] : 1;

        device += i % size * strides[from];
        i /= size;
    }
    return device;
}

static struct axis axis_of_groups(const struct rp_replica_groups *g, struct rp_arena *arena)
{
    struct axis a = {.groups = (int64_t)g->ngroups};

    if (g->form == RP_GROUPS_MESH) {
        a.size = 1;
        a.name = "";
        for (size_t i = 0; i < g->nparts; i++) {
            const struct rp_mesh_part *part = &g->parts[i];
            const struct rp_mesh_axis *axis = part->axis < g->naxes ? &g->axes[part->axis] : NULL;
            int64_t size = part->size ? part->size : axis ? axis->size : 1;

            if (__builtin_mul_overflow(a.size, size, &a.size))
                a.size = INT64_MAX;
            if (axis)
                a.name = rp_arena_textf(arena, "%s%s%.*s", a.name, *a.name ? "," : "",
                                        (int)axis->name.n, axis->name.at);
        }
        return a;
    }
    if (g->form == RP_GROUPS_IOTA) {
        a.size = g->group_size;
        a.stride = a.size > 1 ? iota_device(g, 1) - iota_device(g, 0) : 1;
        return a;
    }
    a.size = g->ngroups ? (int64_t)g->begin[1] - (int64_t)g->begin[0] : 0;
    a.stride = a.size > 1 ? g->ids.at[1] - g->ids.at[0] : 1;
    for (int64_t i = 2; i < a.size; i++)
        if (g->ids.at[i] - g->ids.at[i - 1] != a.stride)
            a.stride = 0;
    return a;
}

struct comm_ctx {
    const struct rp_dump_call *call;
    struct rp_dump_folder folder;
    const struct rp_dump_module *module;
    struct rp_arena *arena;
    struct comm_root *root;
    struct rp_import program;
    struct rp_xref xref;
    double *runs;    /* of computations */
    bool open_loops; /* without a known trip count */
    RP_VEC(struct comm_op) ops;
    struct rp_err *err;
};

/* Without groups: a gather makes its operand as many times larger as there are devices. */
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

static struct axis axis_of(const struct comm_ctx *ctx, uint32_t op)
{
    const struct rp_program *p = ctx->xref.program;
    const struct rp_attr *groups = rp_op_attr(p, op, RP_ATTR_REPLICA_GROUPS);
    struct axis a = {.size = ctx->root->devices == RP_ABSENT_I64 ? 0 : ctx->root->devices,
                     .stride = 1,
                     .groups = 1};

    if (groups && groups->type == RP_VALUE_GROUPS && groups->groups &&
        (groups->groups->ngroups || groups->groups->form == RP_GROUPS_MESH))
        a = axis_of_groups(groups->groups, ctx->arena);
    if (!a.size)
        a.size = size_by_shapes(p, op);
    return a;
}

static bool is_permute(uint16_t code)
{
    return code == RP_OP_COLLECTIVE_PERMUTE || code == RP_OP_COLLECTIVE_PERMUTE_START ||
           code == RP_OP_SEND || code == RP_OP_RECV;
}

static const char *axis_words(const struct comm_ctx *ctx, uint16_t code, const struct axis *a)
{
    int64_t devices = ctx->root->devices;

    if (is_permute(code))
        return "pairs of devices";
    if (a->name && *a->name)
        return rp_arena_textf(ctx->arena, "%s (%lld devices)", a->name, (long long)a->size);
    if (!a->size)
        return "all devices";
    if (a->size == devices)
        return rp_arena_textf(ctx->arena, "all %lld devices", (long long)devices);
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

/* ------------------------------------------------------------------ how much */

/* What a device contributes or receives, whichever is larger. */
static double payload_of(const struct rp_program *p, uint32_t op, const struct axis *a)
{
    struct rp_ids in = rp_op_operands(p, op);
    uint16_t code = p->code.at[op];
    double bytes = 0;

    for (uint32_t i = 0; i < in.n; i++)
        if (!(code == RP_OP_SEND && i > 0))
            bytes += (double)rp_shape_bytes(p, p->shape.at[in.at[i]]);
    if (code == RP_OP_ALL_GATHER || code == RP_OP_ALL_GATHER_START)
        bytes *= a->size > 0 ? (double)a->size : 1;
    return bytes;
}

/* Of a ring: an all-reduce sends everything twice but its own part, most others once. */
static double wire_of(uint16_t code, double payload, const struct axis *a)
{
    double n = (double)a->size, part = n > 1 ? (n - 1) / n : n == 1 ? 0 : 1;

    if (is_permute(code) || code == RP_OP_COLLECTIVE_BROADCAST)
        return code == RP_OP_RECV ? 0 : payload;
    if (code == RP_OP_ALL_REDUCE || code == RP_OP_ALL_REDUCE_START)
        return 2 * part * payload;
    return part * payload;
}

static bool is_done(const struct rp_program *p, uint32_t op)
{
    return rp_op_info[p->code.at[op]].flags & RP_OPF_FREE;
}

/* How often each computation runs: callers come after what they call, so backwards. */
static enum rp_code count_runs(struct comm_ctx *ctx)
{
    const struct rp_program *p = ctx->xref.program;
    uint32_t *order;

    ctx->runs = RP_ARENA_NEW(ctx->arena, double, p->computations.n + 1);
    if (!ctx->runs)
        return rp_err_nomem(ctx->err, "counting runs");
    RP_TRY(rp_program_call_order(p, ctx->arena, &order, ctx->err));
    ctx->runs[p->entry] = 1;
    for (size_t i = p->computations.n; i-- > 0;) {
        const struct rp_computation *c = &p->computations.at[order[i]];

        for (uint32_t op = c->first; op < c->first + c->n; op++) {
            struct rp_ids called = rp_op_called(p, op);
            bool loop = p->code.at[op] == RP_OP_WHILE;
            double times = loop ? (double)rp_op_trip_count(p, op) : 1;

            ctx->open_loops |= loop && times == 1;
            for (uint32_t k = 0; k < called.n; k++)
                ctx->runs[called.at[k]] += ctx->runs[order[i]] * times;
        }
    }
    return RP_OK;
}

static enum rp_code add_op(struct comm_ctx *ctx, uint32_t op)
{
    const struct rp_program *p = ctx->xref.program;
    struct axis a = axis_of(ctx, op);
    double payload = payload_of(p, op, &a);
    struct rp_xref_place place;
    struct comm_op row = {.runs = ctx->runs[p->computation.at[op]]};
    char shape[256];

    if (is_done(p, op) || row.runs == 0)
        return RP_OK;
    rp_xref_place(&ctx->xref, op, ctx->arena, &place);
    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    row.name = rp_arena_text(ctx->arena, rp_program_text(p, p->op_name.at[op]));
    row.collective = rp_arena_text(ctx->arena, rp_op_opcode_name(p, op));
    row.axis = axis_words(ctx, p->code.at[op], &a);
    row.shape = rp_arena_text(ctx->arena, shape);
    row.operator_ = *place.operator_ ? place.operator_ : NULL;
    row.scope = *place.scope ? place.scope : NULL;
    row.line = place.line;
    row.group_size = is_permute(p->code.at[op]) ? 2 : a.size ? a.size : RP_ABSENT_I64;
    row.groups = a.groups ? a.groups : RP_ABSENT_I64;
    row.payload_bytes = payload >= 9e18 ? INT64_MAX : (int64_t)payload;
    row.total_payload_bytes = payload * row.runs;
    row.wire_bytes = wire_of(p->code.at[op], payload, &a) * row.runs;
    ctx->root->payload_bytes += row.total_payload_bytes;
    ctx->root->wire_bytes += row.wire_bytes;
    return rp_vec_push(&ctx->ops, row, ctx->err);
}

/* ------------------------------------------------------------------ sums */

RP_ORDER(by_wire, struct comm_sum, RP_DOWN(wire_bytes), RP_DOWN(runs),
         strcmp(a->collective, b->collective), strcmp(a->axis, b->axis),
         strcmp(a->line ? a->line : "", b->line ? b->line : ""))

static uint64_t text_key(const char *text)
{
    return text ? rp_hash_bytes(text, strlen(text)) : 5;
}

static enum rp_code sum_ops(struct comm_ctx *ctx, bool lines, struct comm_sum **out, size_t *n)
{
    struct rp_map map;
    enum rp_code code = RP_OK;

    *n = 0;
    *out = RP_ARENA_NEW(ctx->arena, struct comm_sum, ctx->ops.n + 1);
    if (!*out)
        return rp_err_nomem(ctx->err, "summing collectives");
    rp_map_init(&map);
    for (size_t i = 0; i < ctx->ops.n && code == RP_OK; i++) {
        const struct comm_op *op = &ctx->ops.at[i];
        const char *line = op->line ? op->line : "(no line)";
        uint64_t key = rp_hash_join(text_key(op->collective), text_key(op->axis));
        uint32_t at;

        code = rp_map_intern(&map, lines ? rp_hash_join(key, text_key(line)) : key, (uint32_t)*n,
                             &at, ctx->err);
        if (code != RP_OK)
            break;
        if (at == *n)
            (*out)[(*n)++] = (struct comm_sum){.collective = op->collective,
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
            ctx->root->wire_bytes > 0 ? (*out)[i].wire_bytes / ctx->root->wire_bytes : 0;
    if (*n)
        qsort(*out, *n, sizeof **out, by_wire);
    return code;
}

/* ------------------------------------------------------------------ the answer */

/* From the header, else from the groups of the collectives. */
static int64_t devices_of_groups(const struct comm_ctx *ctx)
{
    const struct rp_program *p = ctx->xref.program;
    int64_t most = 0, product;

    for (uint32_t op = 0; op < p->nops; op++) {
        const struct rp_attr *groups = rp_op_attr(p, op, RP_ATTR_REPLICA_GROUPS);
        struct axis a;

        if (!groups || groups->type != RP_VALUE_GROUPS || !groups->groups ||
            groups->groups->form == RP_GROUPS_MESH)
            continue;
        a = axis_of_groups(groups->groups, ctx->arena);
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

static enum rp_code fill_root(struct comm_ctx *ctx)
{
    struct comm_root *root = ctx->root;

    root->module = rp_dump_label(ctx->module, ctx->arena);
    root->instructions = (int64_t)ctx->ops.n;
    RP_TRY(sum_ops(ctx, false, &root->collectives, &root->ncollectives));
    RP_TRY(sum_ops(ctx, true, &root->lines, &root->nlines));
    root->ops = RP_ARENA_NEW(ctx->arena, struct comm_op, ctx->ops.n + 1);
    root->notes = RP_ARENA_NEW(ctx->arena, const char *, 2);
    if (!root->ops || !root->notes)
        return rp_err_nomem(ctx->err, "listing collectives");
    for (; root->nops < ctx->ops.n; root->nops++)
        root->ops[root->nops] = ctx->ops.at[root->nops];
    root->summary =
        ctx->ops.n ? rp_arena_textf(ctx->arena, "%s sends %s per execution, in %s",
                                    root->devices == RP_ABSENT_I64
                                        ? "a device"
                                        : rp_arena_textf(ctx->arena, "each of %lld devices",
                                                         (long long)root->devices),
                                    rp_units_text(ctx->arena, root->wire_bytes, RP_UNIT_BYTES),
                                    rp_units_count(ctx->arena, root->instructions, "instruction"))
                   : "none";
    if (ctx->ops.n && ctx->open_loops)
        root->notes[root->nnotes++] =
            "the program has loops whose number of iterations it does not state: they count once";
    if (ctx->folder.nwanted > 1)
        root->notes[root->nnotes++] = rp_arena_textf(
            ctx->arena, "one of %zu modules: '--module' selects another", ctx->folder.nwanted);
    return rp_arena_check(ctx->arena, "listing collectives", ctx->err);
}

static enum rp_code answer_comm(struct comm_ctx *ctx)
{
    const struct rp_program *p;

    RP_TRY(rp_dump_largest(&ctx->folder, &ctx->module, ctx->err));
    RP_TRY(rp_dump_load(&ctx->folder, ctx->module, NULL, &ctx->program, ctx->err));
    p = ctx->program.program;
    RP_TRY(rp_xref_init(&ctx->xref, p, ctx->err));
    if (p->entry == RP_NONE)
        return rp_err_set(ctx->err, RP_FORMAT, "the program has no entry computation");
    ctx->root->devices = count_devices(p);
    if (ctx->root->devices == RP_ABSENT_I64)
        ctx->root->devices = devices_of_groups(ctx);
    RP_TRY(count_runs(ctx));
    for (uint32_t op = 0; op < p->nops; op++)
        if (rp_op_info[p->code.at[op]].class_ == RP_CLASS_COLLECTIVE)
            RP_TRY(add_op(ctx, op));
    return fill_root(ctx);
}

static enum rp_code comm_run(const struct rp_dump_call *call, struct rp_result *result,
                             struct rp_err *err)
{
    struct comm_ctx ctx = {.call = call,
                           .arena = &result->arena,
                           .root = result->root,
                           .program = RP_IMPORT_INIT,
                           .err = err};
    enum rp_code code;

    RP_TRY(rp_dump_folder_open(call, ctx.arena, &ctx.folder, err));
    code = answer_comm(&ctx);
    rp_xref_release(&ctx.xref);
    rp_import_release(&ctx.program);
    rp_vec_release(&ctx.ops);
    return code;
}

const struct rp_dump_word rp_dump_comm = {
    .name = "comm",
    .summary = "how much a distributed program communicates: by collective, axis and line",
    .options = "module",
    .files = true,
    .type = &comm_type,
    .run = comm_run};
