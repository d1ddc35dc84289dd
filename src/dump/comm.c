/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dump comm` shows how much a distributed program communicates, by collective, by the axis of
 * devices that take part, and by line. Bytes are those of one device and one execution; loops count
 * as often as they run. docs/definitions.md has the formulas.
 */
#include "xref/comm.h"
#include "dump/folder.h"
#include "result/print_units.h"

struct comm_root {
    const char *module, *summary;
    int64_t devices, instructions;
    double payload_bytes, wire_bytes;
    size_t ncollectives, nlines, nops, nnotes;
    struct rp_comm_sum *collectives, *lines;
    struct rp_comm_op *ops;
    const char **notes;
};

static const struct rp_field collective_fields[] = {
    RP_FIELD(struct rp_comm_sum, collective, STR, NONE, "collective", "opcode", 0),
    RP_FIELD(struct rp_comm_sum, axis, STR, NONE, "axis", "devices that work together", RP_SHORTEN),
    RP_FIELD(struct rp_comm_sum, group_size, I64, COUNT, NULL, "devices of a group", RP_NULLABLE),
    RP_FIELD(struct rp_comm_sum, instructions, I64, COUNT, "instructions",
             "instructions of the program", 0),
    RP_FIELD(struct rp_comm_sum, runs, F64, COUNT, "runs", "runs in one execution", 0),
    RP_FIELD(struct rp_comm_sum, payload_bytes, F64, BYTES, "payload",
             "payload of a device in all runs", 0),
    RP_FIELD(struct rp_comm_sum, wire_bytes, F64, BYTES, "sent",
             "bytes that a device sends, with ring algorithms", 0),
    RP_FIELD(struct rp_comm_sum, share, F64, RATIO, "share", "share of what is sent", RP_BAR),
    RP_FIELD_END};
static const struct rp_type collective_type = {"collective", sizeof(struct rp_comm_sum),
                                               collective_fields, NULL};

static const struct rp_field line_fields[] = {
    RP_FIELD(struct rp_comm_sum, line, STR, NONE, "line", "line of the user's code", RP_SHORTEN),
    RP_FIELD(struct rp_comm_sum, collective, STR, NONE, "collective", "opcode", 0),
    RP_FIELD(struct rp_comm_sum, axis, STR, NONE, "axis", "devices that work together",
             RP_SHORTEN | RP_WIDE),
    RP_FIELD(struct rp_comm_sum, instructions, I64, COUNT, "instructions",
             "instructions of the program", 0),
    RP_FIELD(struct rp_comm_sum, runs, F64, COUNT, "runs", "runs in one execution", 0),
    RP_FIELD(struct rp_comm_sum, payload_bytes, F64, BYTES, "payload",
             "payload of a device in all runs", RP_WIDE),
    RP_FIELD(struct rp_comm_sum, wire_bytes, F64, BYTES, "sent",
             "bytes that a device sends, with ring algorithms", 0),
    RP_FIELD(struct rp_comm_sum, share, F64, RATIO, "share", "share of what is sent", RP_BAR),
    RP_FIELD_END};
static const struct rp_type line_type = {"line", sizeof(struct rp_comm_sum), line_fields, NULL};

static const struct rp_field op_fields[] = {
    RP_FIELD(struct rp_comm_op, name, STR, NONE, "instruction", "name", 0),
    RP_FIELD(struct rp_comm_op, collective, STR, NONE, "collective", "opcode", 0),
    RP_FIELD(struct rp_comm_op, axis, STR, NONE, "axis", "devices that work together", 0),
    RP_FIELD(struct rp_comm_op, shape, STR, NONE, "shape", "shape of the result", 0),
    RP_FIELD(struct rp_comm_op, group_size, I64, COUNT, "group", "devices of a group", RP_NULLABLE),
    RP_FIELD(struct rp_comm_op, groups, I64, COUNT, "groups", "how many", RP_NULLABLE),
    RP_FIELD(struct rp_comm_op, payload_bytes, I64, BYTES, "payload",
             "payload of a device in one run", 0),
    RP_FIELD(struct rp_comm_op, runs, F64, COUNT, "runs", "runs in one execution", 0),
    RP_FIELD(struct rp_comm_op, wire_bytes, F64, BYTES, "sent",
             "bytes that a device sends in all runs", 0),
    RP_FIELD_AS("operator", struct rp_comm_op, operator_, STR, NONE, "operator",
                "operator of the framework", 0),
    RP_FIELD(struct rp_comm_op, scope, STR, NONE, "scope", "scope of the operator", 0),
    RP_FIELD(struct rp_comm_op, line, STR, NONE, "line", "line of the user's code", 0),
    RP_FIELD_END};
static const struct rp_type op_type = {"instruction", sizeof(struct rp_comm_op), op_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct comm_root, module, STR, NONE, "module", "module of the dump, or the file", 0),
    RP_FIELD(struct comm_root, summary, STR, NONE, "communication", "text output only", RP_SCREEN),
    RP_FIELD(struct comm_root, devices, I64, COUNT, NULL, "replicas times partitions", RP_NULLABLE),
    RP_FIELD(struct comm_root, instructions, I64, COUNT, NULL, "that communicate", 0),
    RP_FIELD(struct comm_root, payload_bytes, F64, BYTES, NULL,
             "payload of a device in one execution", 0),
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

/* ---- the answer ---- */

struct comm_ctx {
    struct rp_dump_folder folder;
    const struct rp_dump_module *module;
    struct rp_arena *arena;
    struct comm_root *root;
    struct rp_import program;
    struct rp_xref xref;
    struct rp_meshes meshes;
    struct rp_comm comm;
    struct rp_err *err;
};

static enum rp_code fill_root(struct comm_ctx *ctx)
{
    struct comm_root *root = ctx->root;
    const struct rp_comm *comm = &ctx->comm;

    root->module = rp_dump_label(ctx->module, ctx->arena);
    root->devices = comm->devices;
    root->instructions = (int64_t)comm->nops;
    root->payload_bytes = comm->payload_bytes;
    root->wire_bytes = comm->wire_bytes;
    root->collectives = comm->collectives;
    root->ncollectives = comm->ncollectives;
    root->lines = comm->lines;
    root->nlines = comm->nlines;
    root->ops = comm->ops;
    root->nops = comm->nops;
    root->summary =
        comm->nops ? rp_arena_textf(ctx->arena, "%s sends %s per execution, in %s",
                                    root->devices == RP_ABSENT_I64
                                        ? "a device"
                                        : rp_arena_textf(ctx->arena, "each of %lld devices",
                                                         (long long)root->devices),
                                    rp_units_text(ctx->arena, root->wire_bytes, RP_UNIT_BYTES),
                                    rp_units_count(ctx->arena, root->instructions, "instruction"))
                   : "none";
    if (comm->nops && comm->open_loops)
        RP_NOTE(
            root, ctx->arena,
            "the program has loops whose number of iterations it does not state: they count once");
    RP_NOTE(root, ctx->arena, rp_dump_one_of(&ctx->folder, ctx->arena));
    return rp_arena_check(ctx->arena, "listing collectives", ctx->err);
}

static enum rp_code answer_comm(struct comm_ctx *ctx)
{
    RP_TRY(rp_dump_largest(&ctx->folder, &ctx->module, ctx->err));
    RP_TRY(rp_dump_load(&ctx->folder, ctx->module, NULL, &ctx->program, ctx->err));
    const struct rp_program *p = ctx->program.program;
    RP_TRY(rp_xref_init(&ctx->xref, p, ctx->err));
    if (p->entry == RP_NONE)
        return rp_err_set(ctx->err, RP_FORMAT, "the program has no entry computation");
    if (rp_comm_has_any(p)) {
        /* XLA drops the names of the mesh during compilation, so the first stage that has them
           counts. */
        for (size_t i = 0; i < ctx->module->nstages && !ctx->meshes.n; i++) {
            struct rp_dump_content file;

            RP_TRY(rp_dump_open(&file, &ctx->folder, ctx->module->stages[i].source, ctx->err));
            rp_meshes_find(&ctx->meshes, (const char *)file.bytes, file.n, ctx->arena);
            RP_TRY(rp_dump_close(&file, RP_OK, ctx->err));
        }
    }
    RP_TRY(rp_comm_count(&ctx->xref, &ctx->meshes, ctx->arena, &ctx->comm, ctx->err));
    return fill_root(ctx);
}

static enum rp_code comm_run(const struct rp_dump_call *call, struct rp_result *result,
                             struct rp_err *err)
{
    struct comm_ctx ctx = {
        .arena = &result->arena, .root = result->root, .program = RP_IMPORT_INIT, .err = err};

    RP_TRY(rp_dump_folder_open(call, ctx.arena, &ctx.folder, err));
    enum rp_code code = answer_comm(&ctx);
    rp_xref_release(&ctx.xref);
    rp_import_release(&ctx.program);
    return code;
}

const struct rp_dump_word rp_dump_comm = {
    .name = "comm",
    .summary = "how much a distributed program communicates: by collective, axis and line",
    .options = "module",
    .files = true,
    .type = &comm_type,
    .run = comm_run};
