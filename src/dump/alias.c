/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dump alias` shows which inputs of a program give their memory to an output (are donated), and
 * which could: if an output of the same shape and layout, to which no other input is given, is
 * written when the input is no longer read. Only the caller knows whether it still needs the input.
 *
 *     order of the program:   … last use of the input … output is written …   could be donated
 *                             … output is written … last use of the input …   needs a copy
 */
#include "base/order.h"
#include "base/text.h"
#include "dump/folder.h"
#include "facts/times/intervals.h"
#include "formats/lazy/alias_dump.h"
#include "program/opcodes.h"
#include "program/program.h"
#include "result/print_units.h"
#include "xref/xref.h"

#include <stdlib.h>
#include <string.h>

#define MADE_IN_CPP "made in C++"
#define MAX_TRIES   100000000 /* most pairs of inputs and outputs, which takes seconds */

struct alias_row {
    int64_t input, output, size_bytes;
    const char *name, *shape, *kind, *line, *why;
};

struct alias_root {
    const char *module, *language, *donated_text, *possible_text;
    int64_t inputs, outputs, input_bytes, donated_count, donated_bytes, possible_count, lost_bytes;
    size_t ndonated, npossible, nnotes;
    struct alias_row *donated, *possible;
    const char **notes;
};

#define ALIAS_FIELDS                                                                            \
    RP_FIELD(struct alias_row, input, I64, NONE, "input", "number of the parameter", 0),        \
        RP_FIELD(struct alias_row, output, I64, NONE, "output", "number", 0),                   \
        RP_FIELD(struct alias_row, size_bytes, I64, BYTES, "size", "size of the input", 0),     \
        RP_FIELD(struct alias_row, name, STR, NONE, "name", "name of the input", RP_SHORTEN),   \
        RP_FIELD(struct alias_row, shape, STR, NONE, "shape", "shape of the input", 0),         \
        RP_FIELD(struct alias_row, line, STR, NONE, "written at", "line that makes the output", \
                 RP_SHORTEN)

static const struct rp_field donated_fields[] = {
    ALIAS_FIELDS, RP_FIELD(struct alias_row, kind, STR, NONE, "kind", "may, must or donor", 0),
    RP_FIELD_END};
static const struct rp_type donated_type = {"input", sizeof(struct alias_row), donated_fields,
                                            NULL};

static const struct rp_field possible_fields[] = {
    ALIAS_FIELDS,
    RP_FIELD(struct alias_row, kind, STR, NONE, NULL, "one of 'in place', update, free and copy",
             0),
    RP_FIELD(struct alias_row, why, STR, NONE, "why", "what speaks for it", 0), RP_FIELD_END};
static const struct rp_type possible_type = {"input", sizeof(struct alias_row), possible_fields,
                                             NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct alias_root, module, STR, NONE, "module", "module of the dump", 0),
    RP_FIELD(struct alias_root, language, STR, NONE, NULL, "hlo, lazy …", 0),
    RP_FIELD(struct alias_root, inputs, I64, COUNT, "inputs", "inputs of the program", 0),
    RP_FIELD(struct alias_root, outputs, I64, COUNT, "outputs", "outputs of the program", 0),
    RP_FIELD(struct alias_root, input_bytes, I64, BYTES, NULL, "size of all inputs", 0),
    RP_FIELD(struct alias_root, donated_text, STR, NONE, "donated", "text output only", RP_SCREEN),
    RP_FIELD(struct alias_root, donated_count, I64, COUNT, NULL, "inputs that are donated", 0),
    RP_FIELD(struct alias_root, donated_bytes, I64, BYTES, NULL, "size of them", 0),
    RP_FIELD(struct alias_root, possible_text, STR, NONE, "could be", "text output only",
             RP_SCREEN),
    RP_FIELD(struct alias_root, possible_count, I64, COUNT, NULL,
             "inputs that could be donated without a copy", 0),
    RP_FIELD(struct alias_root, lost_bytes, I64, BYTES, NULL, "memory that would save", 0),
    RP_FIELD_LIST(struct alias_root, donated, &donated_type, "donated inputs",
                  "whose memory an output takes", 0),
    RP_FIELD_LIST(struct alias_root, possible, &possible_type, "inputs that could be donated",
                  "largest first", 0),
    RP_FIELD_LIST(struct alias_root, notes, &rp_type_string, "notes", "what to know", 0),
    RP_FIELD_END};
static const struct rp_type alias_type = {"dump_alias", sizeof(struct alias_root), root_fields,
                                          "possible"};

struct alias_input {
    uint32_t op;       /* RP_NONE: missing */
    uint32_t last_use; /* an operation; RP_NONE: never used */
    bool taken;
};

struct alias_output {
    uint32_t op, writer; /* the operation that writes it; bitcasts write nothing */
    bool taken;
};

struct alias_ctx {
    const struct rp_dump_call *call;
    struct rp_dump_folder folder;
    const struct rp_dump_module *module;
    struct rp_arena *arena;
    struct alias_root *root;
    struct rp_import program;
    struct rp_xref xref;
    bool lazy, located; /* located: some nodes of a lazy graph have a location */
    struct alias_input *inputs;
    struct alias_output *outputs;
    size_t ninputs, noutputs;
    struct rp_err *err;
};

static void note(struct alias_ctx *ctx, const char *text)
{
    RP_NOTE(ctx->root, ctx->arena, text);
}

/* ------------------------------------------------------------------ inputs and outputs */

static bool is_data(const struct rp_program *p, uint32_t op)
{
    const char *name = rp_op_opcode_name(p, op), *colon = strrchr(name, ':');

    return !strcmp(colon ? colon + 1 : name, "device_data");
}

/* An operation that is another view of its operand's memory. */
static bool is_view(const struct rp_program *p, uint32_t op)
{
    uint16_t code = p->code.at[op];

    return code == RP_OP_BITCAST || code == RP_OP_GET_TUPLE_ELEMENT || code == RP_OP_OPT_BARRIER;
}

static uint32_t writer_of(const struct rp_program *p, uint32_t op)
{
    for (int hops = 0; hops < 1000 && is_view(p, op) && rp_op_operands(p, op).n; hops++)
        op = rp_op_operands(p, op).at[0];
    return op;
}

/* The last operation that reads the memory of an operation, through its views. */
static uint32_t last_use(const struct rp_xref *x, uint32_t op, int depth)
{
    uint32_t last = RP_NONE;

    for (uint32_t i = x->user_begin[op]; i < x->user_begin[op + 1]; i++) {
        uint32_t user = x->users[i];

        if (is_view(x->program, user) && depth > 0)
            user = last_use(x, user, depth - 1);
        else if (x->program->code.at[user] == RP_OP_TUPLE)
            continue; /* returning an output is not a read */
        if (user != RP_NONE && (last == RP_NONE || user > last))
            last = user;
    }
    return last;
}

static enum rp_code find_inputs(struct alias_ctx *ctx)
{
    const struct rp_program *p = ctx->xref.program;
    const struct rp_computation *c = &p->computations.at[p->entry];

    ctx->ninputs = ctx->lazy ? 0 : c->nparams;
    ctx->inputs = RP_ARENA_NEW(ctx->arena, struct alias_input, (size_t)c->n + 1);
    if (!ctx->inputs || ctx->ninputs > c->n)
        return rp_err_nomem(ctx->err, "listing inputs");
    for (size_t i = 0; i <= c->n; i++)
        ctx->inputs[i].op = RP_NONE;
    for (uint32_t op = c->first; op < c->first + c->n; op++) {
        int64_t number = p->value.at[op];

        if (p->code.at[op] == RP_OP_PARAMETER && number >= 0 && number < c->nparams)
            ctx->inputs[number].op = op;
        else if (ctx->lazy && is_data(p, op))
            ctx->inputs[ctx->ninputs++].op = op;
    }
    for (size_t i = 0; i < ctx->ninputs; i++) {
        ctx->inputs[i].last_use = RP_NONE;
        if (ctx->inputs[i].op == RP_NONE)
            continue;
        ctx->inputs[i].last_use = last_use(&ctx->xref, ctx->inputs[i].op, 4);
        rp_ns_add(&ctx->root->input_bytes, rp_shape_bytes(p, p->shape.at[ctx->inputs[i].op]));
    }
    return RP_OK;
}

static enum rp_code find_outputs(struct alias_ctx *ctx)
{
    const struct rp_program *p = ctx->xref.program;
    const struct rp_computation *c = &p->computations.at[p->entry];
    uint32_t root_key = rp_strtab_find(&p->strings, "ROOT", 4);

    ctx->outputs = RP_ARENA_NEW(ctx->arena, struct alias_output, p->operands.n + c->n + 1);
    RP_TRY(rp_err_need(ctx->outputs, ctx->err, "listing outputs"));
    for (uint32_t op = c->first; ctx->lazy && op < c->first + c->n; op++) {
        int64_t k = root_key == UINT32_MAX ? -1 : rp_op_int(p, op, root_key, -1);

        if (k < 0 || k >= c->n)
            continue;
        for (; ctx->noutputs <= (size_t)k; ctx->noutputs++)
            ctx->outputs[ctx->noutputs] = (struct alias_output){RP_NONE, RP_NONE, true};
        ctx->outputs[k] = (struct alias_output){op, op, false};
    }
    if (ctx->lazy || c->root >= p->nops)
        return RP_OK;
    if (p->code.at[c->root] != RP_OP_TUPLE) {
        ctx->outputs[ctx->noutputs++] =
            (struct alias_output){c->root, writer_of(p, c->root), false};
        return RP_OK;
    }
    struct rp_ids parts = rp_op_operands(p, c->root);
    for (uint32_t i = 0; i < parts.n; i++)
        ctx->outputs[ctx->noutputs++] =
            (struct alias_output){parts.at[i], writer_of(p, parts.at[i]), false};
    return RP_OK;
}

/* ------------------------------------------------------------------ rows */

static const char *line_of(const struct alias_ctx *ctx, uint32_t op)
{
    struct rp_xref_place place;

    if (op == RP_NONE)
        return NULL;
    if (ctx->lazy) {
        const char *line = rp_xref_own_line(&ctx->xref, op, ctx->arena);

        return line || !ctx->located ? line : MADE_IN_CPP;
    }
    rp_xref_place(&ctx->xref, op, ctx->arena, &place);
    return place.line;
}

static struct alias_row row_of(const struct alias_ctx *ctx, size_t input, size_t output)
{
    const struct rp_program *p = ctx->xref.program;
    uint32_t op = ctx->inputs[input].op;
    struct alias_row row = {.input = (int64_t)input, .output = (int64_t)output};
    const char *scope = rp_xref_scope(&ctx->xref, op);
    char shape[256];

    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    row.shape = rp_arena_text(ctx->arena, shape);
    row.name = rp_arena_text(ctx->arena, *scope ? scope : rp_program_text(p, p->op_name.at[op]));
    row.size_bytes = rp_shape_bytes(p, p->shape.at[op]);
    if (output < ctx->noutputs)
        row.line = line_of(ctx, ctx->outputs[output].op);
    return row;
}

static void add_donated(struct alias_ctx *ctx, int64_t input, int64_t output, const char *kind)
{
    struct alias_root *root = ctx->root;

    if (input < 0 || input >= (int64_t)ctx->ninputs || ctx->inputs[input].op == RP_NONE ||
        ctx->inputs[input].taken)
        return;
    struct alias_row row = row_of(ctx, (size_t)input, output < 0 ? SIZE_MAX : (size_t)output);
    row.output = output;
    row.kind = kind;
    ctx->inputs[input].taken = true;
    if (output >= 0 && output < (int64_t)ctx->noutputs)
        ctx->outputs[output].taken = true;
    root->donated[root->ndonated++] = row;
    rp_ns_add(&root->donated_bytes, row.size_bytes);
}

static enum rp_code list_donated(struct alias_ctx *ctx)
{
    const struct rp_program *p = ctx->xref.program;

    ctx->root->donated = RP_ARENA_NEW(ctx->arena, struct alias_row, ctx->ninputs + 1);
    RP_TRY(rp_err_need(ctx->root->donated, ctx->err, "listing inputs"));
    for (size_t i = 0; i < p->module_attrs.n; i++) {
        const struct rp_attr *attr = &p->module_attrs.at[i];

        for (uint32_t k = 0; attr->type == RP_VALUE_ALIASES && k < attr->n; k++)
            add_donated(ctx, attr->aliases[k].number,
                        attr->aliases[k].output.n ? attr->aliases[k].output.at[0] : 0,
                        attr->aliases[k].kind == RP_ALIAS_MUST ? "must" : "may");
    }
    for (size_t i = 0; i < p->module_attrs.n; i++)
        if (p->module_attrs.at[i].key == RP_ATTR_BUFFER_DONOR &&
            rp_attr_is_bytes(&p->module_attrs.at[i])) {
            /* "{ (0, {}), (3, {}) }": inputs that are donated to any output. */
            const struct rp_attr *attr = &p->module_attrs.at[i];
            const char *end = attr->at + attr->n;
            for (const char *at = attr->at;
                 at < end && (at = memchr(at, '(', (size_t)(end - at)));) {
                int64_t number = 0;
                bool any = false;

                for (at++; at < end && *at >= '0' && *at <= '9' && number < INT32_MAX;
                     at++, any = true)
                    number = number * 10 + (*at - '0');
                if (any)
                    add_donated(ctx, number, -1, "donor");
            }
        }
    return RP_OK;
}

/* ------------------------------------------------------------------ candidates */

enum fit { FIT_IN_PLACE, FIT_UPDATE, FIT_FREE, FIT_COPY, FIT_NONE };
static const char *const fit_kinds[] = {"in place", "update", "free", "copy"};
static const char *const fit_words[] = {
    "updated in place", "updated in place, if other reads come first",
    "free when the output is written", "still read afterwards: needs a copy"};

static bool reads(const struct rp_program *p, uint32_t op, uint32_t input)
{
    struct rp_ids in = rp_op_operands(p, op);

    for (uint32_t i = 0; i < in.n; i++)
        if (writer_of(p, in.at[i]) == input)
            return true;
    return false;
}

static enum fit fit_of(const struct alias_ctx *ctx, const struct alias_input *in,
                       const struct alias_output *out)
{
    const struct rp_program *p = ctx->xref.program;

    if (in->taken || in->op == RP_NONE || p->shape.at[in->op] != p->shape.at[out->op])
        return FIT_NONE;
    if (out->writer == in->op || in->last_use == RP_NONE)
        return FIT_FREE; /* it is returned unchanged, or never read */
    if (in->last_use == out->writer)
        return FIT_IN_PLACE;
    if (in->last_use < out->writer)
        return FIT_FREE;
    return reads(p, out->writer, in->op) ? FIT_UPDATE : FIT_COPY;
}

RP_ORDER(by_size, struct alias_row, RP_DOWN(size_bytes), RP_UP(input))

/* Lists first the inputs from which an output is computed at its end (the new value of a
   parameter), then those that are free by then, then those that need a copy. */
static enum rp_code list_possible(struct alias_ctx *ctx)
{
    struct alias_root *root = ctx->root;
    size_t tried = 0;

    root->possible = RP_ARENA_NEW(ctx->arena, struct alias_row, ctx->noutputs + 1);
    RP_TRY(rp_err_need(root->possible, ctx->err, "listing inputs"));
    for (int fit = FIT_IN_PLACE; fit < FIT_NONE; fit++)
        for (size_t k = 0; k < ctx->noutputs; k++)
            for (size_t i = 0; i < ctx->ninputs && !ctx->outputs[k].taken && tried < MAX_TRIES;
                 i++, tried++) {
                if ((int)fit_of(ctx, &ctx->inputs[i], &ctx->outputs[k]) != fit)
                    continue;
                struct alias_row row = row_of(ctx, i, k);
                row.kind = fit_kinds[fit];
                row.why = fit_words[fit];
                ctx->inputs[i].taken = ctx->outputs[k].taken = true;
                root->possible[root->npossible++] = row;
                root->possible_count += fit < FIT_COPY;
                rp_ns_add(&root->lost_bytes, fit < FIT_COPY ? row.size_bytes : 0);
            }
    if (tried == MAX_TRIES)
        note(ctx, "too many inputs and outputs to compare all of them: there may be more");
    rp_sort(root->possible, root->npossible, sizeof *root->possible, by_size);
    return RP_OK;
}

/* ------------------------------------------------------------------ alias dumps of Ratex */

static enum rp_code use_alias_dump(struct alias_ctx *ctx, size_t source)
{
    const char *name = rp_sources_borrow(ctx->call->dataset->sources, source)->name;
    struct rp_alias_pair *pairs = NULL;
    struct rp_input *in;
    size_t n = 0;

    RP_TRY(rp_source_open(ctx->call->dataset->sources, source, &in, ctx->err));
    enum rp_code code =
        rp_alias_dump_read(in, &ctx->call->dataset->limits, ctx->arena, &pairs, &n, ctx->err);
    rp_input_close(in);
    RP_TRY(rp_dump_in_file(&ctx->folder, source, code, ctx->err));
    if (!n)
        note(ctx, rp_arena_textf(ctx->arena,
                                 "the alias dump '%s' is empty: Ratex writes pairs only "
                                 "where ENABLE_PARAM_ALIASING=true is set",
                                 name));
    for (size_t i = 0; i < n; i++)
        add_donated(ctx, pairs[i].parameter, pairs[i].output, "must");
    return RP_OK;
}

static void note_locations(struct alias_ctx *ctx)
{
    const struct rp_program *p = ctx->xref.program;
    const struct rp_computation *c = &p->computations.at[p->entry];
    int64_t without = 0;
    struct rp_source_line line;

    for (uint32_t op = c->first; op < c->first + c->n; op++)
        without += !rp_op_source(p, op, &line);
    ctx->located = without < c->n;
    if (!ctx->located)
        note(ctx, "no node has a location: set LTC_IR_DEBUG=1 (XLA_IR_DEBUG=1 for "
                  "torch_xla)");
    else if (without)
        note(ctx, rp_arena_textf(ctx->arena,
                                 "%lld of %lld nodes have no location: they were made in C++",
                                 (long long)without, (long long)c->n));
}

/* ------------------------------------------------------------------ the answer */

static enum rp_code fill_root(struct alias_ctx *ctx)
{
    struct alias_root *root = ctx->root;

    root->module = rp_dump_label(ctx->module, ctx->arena);
    root->language = rp_arena_text(ctx->arena, ctx->xref.program->language);
    root->inputs = (int64_t)ctx->ninputs;
    root->outputs = (int64_t)ctx->noutputs;
    root->donated_count = (int64_t)root->ndonated;
    root->donated_text = rp_arena_textf(
        ctx->arena, "%s, %s", rp_units_count(ctx->arena, root->donated_count, "input"),
        rp_units_text(ctx->arena, (double)root->donated_bytes, RP_UNIT_BYTES));
    root->possible_text =
        rp_arena_textf(ctx->arena, "%s, %s, if the caller does not use them again",
                       rp_units_count(ctx->arena, root->possible_count, "input"),
                       rp_units_text(ctx->arena, (double)root->lost_bytes, RP_UNIT_BYTES));
    RP_NOTE(root, ctx->arena, rp_dump_one_of(&ctx->folder, ctx->arena));
    if (root->possible_count && !ctx->lazy)
        note(ctx, "donate in JAX with jit(…, donate_argnums=…)");
    return rp_arena_check(ctx->arena, "listing inputs", ctx->err);
}

static enum rp_code answer_alias(struct alias_ctx *ctx)
{
    RP_TRY(rp_dump_largest(&ctx->folder, &ctx->module, ctx->err));
    const struct rp_dump_stage *final = rp_dump_final(ctx->module);
    RP_TRY(rp_dump_load(&ctx->folder, ctx->module, NULL, &ctx->program, ctx->err));
    RP_TRY(rp_xref_init(&ctx->xref, ctx->program.program, ctx->err));
    if (ctx->program.program->entry == RP_NONE)
        return rp_err_set(ctx->err, RP_FORMAT, "the program has no entry computation");
    ctx->lazy = !strcmp(ctx->program.program->language, "lazy");
    if (!strcmp(ctx->program.program->language, "graphdef"))
        return rp_err_set(
            ctx->err, RP_FORMAT,
            "a TensorFlow graph does not say which inputs are donated; the HLO of its "
            "clusters does (--xla_dump_to)");
    if (ctx->lazy)
        note_locations(ctx);
    RP_TRY(find_inputs(ctx));
    RP_TRY(find_outputs(ctx));
    RP_TRY(list_donated(ctx));

    bool found = false;
    for (size_t i = 0; i < ctx->folder.nothers; i++) {
        const char *name =
            rp_sources_borrow(ctx->call->dataset->sources, ctx->folder.others[i])->name;
        if (!strstr(rp_text_file(name), "alias"))
            continue;
        found = true;
        RP_TRY(use_alias_dump(ctx, ctx->folder.others[i]));
    }
    if (!found && ctx->lazy)
        note(ctx, "no alias dump beside the graph: set RATEX_DUMP_ALIAS=alias.txt and "
                  "ENABLE_PARAM_ALIASING=true (Ratex)");

    RP_TRY(list_possible(ctx));
    if (!ctx->lazy && final->point != RP_DUMP_AT_AFTER)
        note(ctx,
             "the program is not scheduled yet: what is read when follows the order of the file");
    return fill_root(ctx);
}

static enum rp_code alias_run(const struct rp_dump_call *call, struct rp_result *result,
                              struct rp_err *err)
{
    struct alias_ctx ctx = {.call = call,
                            .arena = &result->arena,
                            .root = result->root,
                            .program = RP_IMPORT_INIT,
                            .err = err};

    RP_TRY(rp_dump_folder_open(call, ctx.arena, &ctx.folder, err));
    enum rp_code code = answer_alias(&ctx);
    rp_xref_release(&ctx.xref);
    rp_import_release(&ctx.program);
    return code;
}

const struct rp_dump_word rp_dump_alias = {
    .name = "alias",
    .summary = "inputs that give their memory to outputs, and those that could",
    .options = "module",
    .files = true,
    .type = &alias_type,
    .run = alias_run};
