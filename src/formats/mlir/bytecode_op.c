/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations, regions and values of MLIR bytecode. They are first read into lists, because the file
 * numbers the values of a region after those around it, and what a region uses of the function
 * around it must be known before the region is built.
 */
#include "base/order.h"
#include "formats/mlir/bytecode_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH  66 /* depth of regions: 64 inside of a function */
#define SECTION_IR 4

enum { /* bits that say which parts of an operation are in the file */
       HAS_ATTRS = 1,
       HAS_RESULTS = 2,
       HAS_OPERANDS = 4,
       HAS_SUCCESSORS = 8,
       HAS_REGIONS = 16,
       HAS_USE_LISTS = 32,
       HAS_PROPERTIES = 64
};

static const struct prop_row {
    const char *name, *attrs;
} prop_rows[] = {
#define RP_BC_OP(name, attrs) {name, attrs},
#include "formats/mlir/bytecode_ops.def"
#undef RP_BC_OP
};

const char *rp_bc_properties(const char *op)
{
    size_t i, n = sizeof prop_rows / sizeof *prop_rows;

    RP_LOWER_BOUND(i, n, strcmp(prop_rows[i].name, op) < 0);
    return i < n && !strcmp(prop_rows[i].name, op) ? prop_rows[i].attrs : "";
}

/* ---- values ---- */

/* Names a value "arg0" or "3"; all results of one operation have the same name. */
static void add_value(struct rp_bytecode *b, bool argument, uint32_t number, uint32_t first,
                      bool several, uint64_t type)
{
    struct rp_bc_value value = {.first = first, .several = several, .type = (uint32_t)type};
    struct rp_bc_scope *scope = &b->scopes.at[b->scopes.n - 1];
    char text[16];
    int n = snprintf(text, sizeof text, argument ? "arg%u" : "%u", number);

    if (b->code == RP_OK && b->visible.n - scope->base >= scope->values)
        rp_bc_fail(b, b->ops.n ? b->ops.at[b->ops.n - 1].at : b->begin,
                   "more values than the region announces");
    if (b->code == RP_OK)
        b->code = rp_program_string(b->p, text, (size_t)n, &value.name, b->err);
    if (b->code == RP_OK)
        b->code = rp_vec_push(&b->visible, (uint32_t)b->values.n, b->err);
    if (b->code == RP_OK)
        b->code = rp_vec_push(&b->values, value, b->err);
}

/* Adds the value that the file calls `index` here. */
static void add_operand(struct rp_bytecode *b, const uint8_t *at, uint64_t index)
{
    size_t end = b->visible.n;

    for (size_t i = b->scopes.n; i-- && b->code == RP_OK; end = b->scopes.at[i].base) {
        const struct rp_bc_scope *s = &b->scopes.at[i];

        if (index >= s->first && index - s->first < end - s->base) {
            b->code = rp_vec_push(&b->operands, b->visible.at[s->base + (size_t)(index - s->first)],
                                  b->err);
            return;
        }
        if (index >= s->first || s->isolated)
            break;
    }
    rp_bc_fail(b, at, "value %" PRIu64 " is used before it is defined", index);
}

static void skip_use_lists(struct rp_bytecode *b, struct rp_bc_cursor *c, size_t values)
{
    size_t n = values > 1 ? rp_bc_count(b, c) : 1;

    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        if (values > 1)
            rp_bc_varint(b, c);
        uint64_t uses = rp_bc_varint(b, c) >> 1;
        for (uint64_t k = 0; k < uses && b->code == RP_OK; k++)
            rp_bc_varint(b, c);
    }
}

/* ---- reading ---- */

static void read_block(struct rp_bytecode *b, struct rp_bc_cursor *c, unsigned depth,
                       struct rp_bc_region *region);

static void read_region(struct rp_bytecode *b, struct rp_bc_cursor *c, bool isolated, size_t place,
                        unsigned depth)
{
    struct rp_bc_region region = {.at = c->at};
    struct rp_bc_scope scope = {.base = b->visible.n, .isolated = isolated};
    size_t blocks = rp_bc_count(b, c);

    region.body = blocks != 0;
    region.op = (uint32_t)b->ops.n;
    if (depth > MAX_DEPTH)
        rp_bc_fail(b, region.at, "regions nested too deep");
    if (blocks > 1)
        rp_bc_fail(b, region.at,
                   "a region of %zu blocks; branches between blocks are not supported", blocks);
    if (blocks) {
        scope.values = rp_bc_count(b, c);
        if (!isolated && b->scopes.n)
            scope.first =
                b->scopes.at[b->scopes.n - 1].first + b->scopes.at[b->scopes.n - 1].values;
        if (b->code == RP_OK)
            b->code = rp_vec_push(&b->scopes, scope, b->err);
        if (b->code == RP_OK)
            read_block(b, c, depth, &region);
        if (b->code != RP_OK)
            return;
        b->scopes.n--;
        b->visible.n = scope.base;
    }
    region.end = (uint32_t)b->ops.n;
    b->regions.at[place] = region;
}

/* Since version 2 the body of an isolated region is a section. */
static void read_regions(struct rp_bytecode *b, struct rp_bc_cursor *c, size_t id, unsigned depth)
{
    const uint8_t *at = c->at;
    uint64_t head = rp_bc_varint(b, c), n = head >> 1;
    bool isolated = head & 1, nested = isolated && b->version >= 2;
    struct rp_bc_cursor section = *c;
    uint8_t kind = SECTION_IR;

    if (n > (uint64_t)(c->end - c->at))
        rp_bc_fail(b, at, "%" PRIu64 " regions", n);
    if (nested && n && b->code == RP_OK)
        section = rp_bc_section(b, c, &kind);
    if (kind != SECTION_IR)
        rp_bc_fail(b, at, "section %u where a region should be", kind);
    if (b->code != RP_OK)
        return;
    b->ops.at[id].region = (uint32_t)b->regions.n;
    b->ops.at[id].nregions = (uint32_t)n;
    b->code = rp_vec_reserve(&b->regions, n, b->err);
    if (b->code != RP_OK)
        return;
    b->regions.n += n;
    for (uint64_t i = 0; i < n && b->code == RP_OK; i++)
        read_region(b, nested ? &section : c, isolated, b->ops.at[id].region + (size_t)i,
                    depth + 1);
}

static void read_results(struct rp_bytecode *b, struct rp_bc_cursor *c, struct rp_bc_op *op)
{
    size_t n = rp_bc_count(b, c);

    op->nresults = (uint32_t)n;
    for (size_t i = 0; i < n && b->code == RP_OK; i++)
        add_value(b, false, b->results, op->result, n > 1, rp_bc_varint(b, c));
    b->results += n > 0;
}

static void read_operands(struct rp_bytecode *b, struct rp_bc_cursor *c, struct rp_bc_op *op)
{
    size_t n = rp_bc_count(b, c);

    op->noperands = (uint32_t)n;
    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        const uint8_t *at = c->at;

        add_operand(b, at, rp_bc_varint(b, c));
    }
}

/* (number of operations << 1) | has arguments */
static void read_block(struct rp_bytecode *b, struct rp_bc_cursor *c, unsigned depth,
                       struct rp_bc_region *region)
{
    uint64_t head = rp_bc_varint(b, c);

    region->arg = (uint32_t)b->values.n;
    if (head & 1) {
        /* The arguments of the block, with their types. */
        size_t n = rp_bc_count(b, c);
        for (size_t i = 0; i < n && b->code == RP_OK; i++) {
            uint64_t type = rp_bc_varint(b, c);
            if (b->version < 4 || type & 1)
                rp_bc_varint(b, c); /* its location */
            add_value(b, true, b->arguments++, (uint32_t)b->values.n, false,
                      b->version < 4 ? type : type >> 1);
        }
        if (b->version >= 3 && rp_bc_byte(b, c))
            skip_use_lists(b, c, n);
    }
    region->nargs = (uint32_t)b->values.n - region->arg;
    for (uint64_t i = 0; i < head >> 1 && b->code == RP_OK; i++) {
        /* The results belong to the region around the operation, but may only be used after it. */
        struct rp_bc_op op = {
            .at = c->at, .operand = (uint32_t)b->operands.n, .result = (uint32_t)b->values.n};
        uint64_t name = rp_bc_varint(b, c);
        uint8_t mask = rp_bc_byte(b, c);
        size_t id = b->ops.n;
        if (b->code == RP_OK && name >= b->names.n)
            rp_bc_fail(b, op.at, "operation %" PRIu64 " of %zu", name, b->names.n);
        op.name = (uint32_t)name;
        op.loc = (uint32_t)rp_bc_varint(b, c);
        if (mask & HAS_ATTRS)
            op.attrs = (uint32_t)rp_bc_varint(b, c) + 1;
        if (mask & HAS_PROPERTIES)
            op.properties = (uint32_t)rp_bc_varint(b, c) + 1;
        if (op.properties > b->properties.n)
            rp_bc_fail(b, op.at, "properties %u of %zu", op.properties - 1, b->properties.n);
        if (b->code == RP_OK && strcmp(b->names.at[name].name.at, "func.func") == 0)
            b->arguments = b->results = 0;
        if (mask & HAS_RESULTS)
            read_results(b, c, &op);
        if (mask & HAS_OPERANDS)
            read_operands(b, c, &op);
        if (mask & HAS_SUCCESSORS)
            for (size_t n = rp_bc_count(b, c); n && b->code == RP_OK; n--)
                rp_bc_varint(b, c);
        if (mask & HAS_USE_LISTS && b->version >= 3)
            skip_use_lists(b, c, op.nresults);
        if (b->code == RP_OK)
            b->code = rp_vec_push(&b->ops, op, b->err);
        if (b->code == RP_OK && mask & HAS_REGIONS)
            read_regions(b, c, id, depth);
        if (b->code == RP_OK)
            b->ops.at[id].end = (uint32_t)b->ops.n;
    }
}

void rp_bc_read_ir(struct rp_bytecode *b, struct rp_bc_cursor ir)
{
    struct rp_bc_scope outside = {.isolated = true};
    struct rp_bc_region module;

    b->code = b->code == RP_OK ? rp_vec_push(&b->scopes, outside, b->err) : b->code;
    if (b->code == RP_OK)
        read_block(b, &ir, 0, &module);
}

/* ---- attributes ---- */

/* The values are in the order of the table; whatever follows them is not needed. */
static void add_properties(struct rp_bytecode *b, const char *names, struct rp_bc_cursor c)
{
    struct rp_bc_cursor count = c;
    size_t places = 0, wanted = *names != '\0';

    for (const char *s = names; *s; s++)
        wanted += *s == ' ';
    for (; count.at < count.end && b->code == RP_OK && places < wanted; places++)
        rp_bc_varint(b, &count);
    while (*names && b->code == RP_OK) {
        size_t n = strcspn(names, " ");
        bool newer = names[n - 1] == '+', optional = newer || names[n - 1] == '?';

        if (!newer || places >= wanted) {
            uint64_t value = rp_bc_varint(b, &c);

            if (!optional || value & 1) {
                struct rp_mlir_named one = {{names, (uint32_t)(n - optional), 0},
                                            (optional ? value >> 1 : value)};
                if (b->code == RP_OK)
                    b->code = rp_vec_push(&b->named, one, b->err);
            }
        }
        names += n + (names[n] == ' ');
    }
}

/* Lists properties and other attributes, then what is in dictionaries among them. */
static enum rp_code list_attributes(struct rp_bytecode *b, const struct rp_bc_op *op,
                                    struct rp_mlir_attrs *out)
{
    b->named.n = 0;
    if (op->properties)
        add_properties(b, b->names.at[op->name].attrs, b->properties.at[op->properties - 1]);
    if (op->attrs)
        rp_bc_dictionary(b, op->attrs - 1);
    size_t own = b->named.n;
    for (size_t i = 0; i < own && b->code == RP_OK; i++)
        rp_bc_dictionary(b, b->named.at[i].value);
    if (b->code == RP_OK)
        b->code = rp_vec_reserve(
            &b->named, 1, b->err); /* allocates even for an empty list, since NULL means text */
    *out = (struct rp_mlir_attrs){.at = (const char *)op->at,
                                  .end = (const char *)op->at,
                                  .named = b->named.at,
                                  .nnamed = own,
                                  .nall = b->named.n};
    return b->code;
}

/* ---- building ---- */

/* The shape of one result, or of several as a tuple. */
static enum rp_code result_shape(struct rp_mlir *r, const struct rp_bc_op *op, uint32_t *shape)
{
    struct rp_bytecode *b = r->bytecode;
    RP_VEC_LOCAL(uint32_t, parts);

    *shape = 0;
    if (op->nresults == 1)
        return rp_bc_shape(r, b->values.at[op->result].type, shape);
    for (uint32_t i = 0; i < op->nresults; i++) {
        uint32_t part;

        RP_TRY(rp_bc_shape(r, b->values.at[op->result + i].type, &part));
        RP_TRY(rp_vec_push(&parts, part, r->err));
    }
    if (parts.n)
        RP_TRY(rp_program_tuple(r->p, parts.at, parts.n, shape, r->err));
    return RP_OK;
}

/* Queues the regions with the operands that nested operations use, which are in one piece. */
static enum rp_code queue_regions(struct rp_mlir *r, const struct rp_bc_op *op)
{
    const struct rp_bytecode *b = r->bytecode;
    const struct rp_bc_op *last = &b->ops.at[op->end - 1];
    uint32_t inside = op->result + op->nresults;

    for (uint32_t i = op->operand + op->noperands;
         op->nregions && i < last->operand + last->noperands; i++) {
        const struct rp_bc_value *value = &b->values.at[b->values.at[b->operands.at[i]].first];

        if (value->first < inside)
            RP_TRY(rp_mlir_capture(r, value->first, value->name));
    }
    for (uint32_t i = op->region; i < op->region + op->nregions; i++)
        if (b->regions.at[i].op < b->regions.at[i].end || b->regions.at[i].nargs)
            RP_TRY(rp_mlir_queue(
                r, (struct rp_mlir_region){.at = (const char *)b->regions.at[i].at, .number = i}));
    return RP_OK;
}

static enum rp_code build_op(struct rp_mlir *r, const struct rp_bc_op *op)
{
    struct rp_bytecode *b = r->bytecode;
    struct rp_slice name = b->names.at[op->name].name;
    struct rp_mlir_statement s = {.called = RP_NONE,
                                  .loc = op->loc + 1,
                                  .operand = r->operands.n,
                                  .region = r->regions.n,
                                  .args = r->args.n};
    size_t results = r->results.n;

    r->statements++;
    r->outside.n = 0;
    r->at = (const char *)op->at;
    RP_TRY(rp_mlir_opcode(r, name, &s.op));
    RP_TRY(list_attributes(b, op, &s.attrs));
    for (uint32_t i = 0; i < op->noperands; i++) {
        uint32_t id = b->operands.at[op->operand + i];
        const struct rp_bc_value *value = &b->values.at[id];

        RP_TRY(rp_mlir_use(r, r->at, value->first, value->name, value->several, id - value->first));
    }
    RP_TRY(queue_regions(r, op));
    RP_TRY(result_shape(r, op, &s.op.shape));
    if (op->nresults) {
        s.op.name = b->values.at[op->result].name;
        RP_TRY(rp_vec_push(&r->results, op->result, r->err));
    }
    return rp_mlir_add(r, &s, name, results, op->nresults > 1);
}

enum rp_code rp_bc_region_arguments(struct rp_mlir *r, uint32_t region)
{
    const struct rp_bytecode *b = r->bytecode;
    const struct rp_bc_region *from = &b->regions.at[region];

    for (uint32_t i = from->arg; i < from->arg + from->nargs; i++) {
        struct rp_mlir_arg arg = {.key = i, .name = b->values.at[i].name, .op = RP_NONE};

        RP_TRY(rp_bc_shape(r, b->values.at[i].type, &arg.shape));
        RP_TRY(rp_vec_push(&r->args, arg, r->err));
    }
    return RP_OK;
}

enum rp_code rp_bc_block(struct rp_mlir *r, uint32_t region)
{
    const struct rp_bytecode *b = r->bytecode;

    for (uint32_t i = b->regions.at[region].op; i < b->regions.at[region].end; i = b->ops.at[i].end)
        RP_TRY(build_op(r, &b->ops.at[i]));
    return RP_OK;
}

static enum rp_code build_function(struct rp_mlir *r, const struct rp_bc_op *op)
{
    struct rp_bytecode *b = r->bytecode;
    struct rp_mlir_attrs attrs;
    size_t first = r->args.n;
    uint32_t name;

    if (!op->nregions || !b->regions.at[op->region].body)
        return RP_OK; /* a declaration */
    RP_TRY(list_attributes(b, op, &attrs));
    struct rp_slice text = rp_bc_find_string(r, &attrs, "sym_name");
    if (!text.at)
        return rp_bc_fail(b, op->at, "a function without a name");
    RP_TRY(rp_program_string(r->p, text.at, text.n, &name, r->err));
    RP_TRY(rp_mlir_begin_function(r, name));
    RP_TRY(rp_bc_region_arguments(r, op->region));
    RP_TRY(rp_mlir_parameters(r, first, r->args.n - first, false));
    RP_TRY(rp_bc_block(r, op->region));
    return rp_mlir_read_regions(r);
}

static enum rp_code build_module(struct rp_mlir *r, const struct rp_bc_op *op)
{
    struct rp_mlir_attrs attrs;

    RP_TRY(list_attributes(r->bytecode, op, &attrs));
    struct rp_slice name = rp_bc_find_string(r, &attrs, "sym_name");
    if (name.at)
        RP_TRY(rp_program_string(r->p, name.at, name.n, &r->p->name, r->err));
    return rp_mlir_module_attrs(r, &attrs);
}

enum rp_code rp_bc_module(struct rp_mlir *r)
{
    const struct rp_bytecode *b = r->bytecode;

    RP_TRY(rp_bc_locations(r));
    for (uint32_t i = 0; i < b->ops.n;) {
        const struct rp_bc_op *op = &b->ops.at[i];
        const char *name = b->names.at[op->name].name.at;
        bool module = strcmp(name, "builtin.module") == 0;

        if (module)
            RP_TRY(build_module(r, op));
        else if (strcmp(name, "func.func") == 0)
            RP_TRY(build_function(r, op));
        else if (strcmp(name, "sdy.mesh") == 0) {
            struct rp_mlir_attrs attrs;
            struct rp_slice mesh = {0};
            RP_TRY(list_attributes(r->bytecode, op, &attrs));
            RP_TRY(rp_bc_find_text(r, &attrs, "mesh", &mesh));
            RP_TRY(rp_mlir_mesh(r, rp_bc_find_string(r, &attrs, "sym_name"), mesh));
        }
        i = module ? i + 1 : op->end;
    }
    RP_TRY(b->code);
    return rp_mlir_finish(r);
}
