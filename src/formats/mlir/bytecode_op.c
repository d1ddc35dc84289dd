/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations, blocks and regions of MLIR bytecode as text: modules and functions in the usual form,
 * everything else in the generic form, with the names that StableHLO has for operations of VHLO.
 * Values are numbered in the file by their order in a function; a region adds its own at the end
 * of that list and takes them away again.
 */
#include "formats/mlir/bytecode.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 64

enum { /* what of an operation is in the file */
       HAS_ATTRS = 1,
       HAS_RESULTS = 2,
       HAS_OPERANDS = 4,
       HAS_SUCCESSORS = 8,
       HAS_REGIONS = 16,
       HAS_USE_LISTS = 32,
       HAS_PROPERTIES = 64
};
enum { VALUE_NONE, VALUE_ARGUMENT, VALUE_RESULT, VALUE_PART };

struct op {
    char name[160];     /* "vhlo.add_v1" */
    const char *short_; /* "add" of VHLO, StableHLO and func; otherwise the whole name */
    uint64_t loc;
    struct rp_bc_named *attrs; /* properties and others */
    size_t nattrs;
    struct rp_bc_cursor results, operands; /* lists of types, of values */
    size_t nresults, noperands, nregions;
    bool isolated;
};

static const struct prop_row {
    const char *name, *attrs;
} prop_rows[] = {
#define RP_BC_OP(name, attrs) {name, attrs},
#include "formats/mlir/bytecode_ops.def"
#undef RP_BC_OP
};

static const char *prop_names(const char *op)
{
    size_t low = 0, high = sizeof prop_rows / sizeof *prop_rows;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(op, prop_rows[middle].name);

        if (!order)
            return prop_rows[middle].attrs;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return "";
}

/* ---- reading one operation ---- */

static void op_add(struct rp_bytecode *b, struct op *op, struct rp_slice name, uint64_t value)
{
    if (b->code == RP_OK)
        op->attrs[op->nattrs++] = (struct rp_bc_named){name, value};
}

/* The values are in the order of the table; what follows them is not needed. */
static void op_properties(struct rp_bytecode *b, struct op *op, struct rp_bc_cursor c)
{
    const char *names = prop_names(op->name);
    struct rp_bc_cursor count = c;
    size_t places = 0, wanted = *names != '\0';

    for (const char *s = names; *s; s++)
        wanted += *s == ' ';
    for (; count.at < count.end && b->code == RP_OK; places++)
        rp_bc_varint(b, &count);
    while (*names && b->code == RP_OK) {
        size_t n = strcspn(names, " ");
        bool newer = names[n - 1] == '+', optional = newer || names[n - 1] == '?';

        if (!newer || places >= wanted) {
            uint64_t value = rp_bc_varint(b, &c);

            if (!optional || value & 1)
                op_add(b, op, (struct rp_slice){names, (uint32_t)(n - optional), 0},
                       optional ? value >> 1 : value);
        }
        names += n + (names[n] == ' ');
    }
}

static void op_attributes(struct rp_bytecode *b, struct op *op, uint8_t mask,
                          struct rp_bc_cursor *c)
{
    struct rp_bc_named *others = NULL;
    const uint8_t *at = c->at;
    size_t n = 0;
    uint64_t index;

    if (mask & HAS_ATTRS)
        n = rp_bc_dictionary(b, rp_bc_varint(b, c), &others);
    op->attrs = RP_ARENA_NEW(b->arena, struct rp_bc_named, n + 24);
    if (!op->attrs) {
        if (b->code == RP_OK)
            b->code = rp_err_nomem(b->err, "reading MLIR bytecode");
        return;
    }
    if (mask & HAS_PROPERTIES) {
        index = rp_bc_varint(b, c);
        if (b->code == RP_OK && index >= b->properties.n)
            rp_bc_fail(b, at, "properties %" PRIu64 " of %zu", index, b->properties.n);
        if (b->code == RP_OK)
            op_properties(b, op, b->properties.at[index]);
    }
    for (size_t i = 0; i < n; i++)
        op_add(b, op, others[i].name, others[i].value);
}

static void skip_use_lists(struct rp_bytecode *b, struct rp_bc_cursor *c, size_t values)
{
    size_t n = values > 1 ? rp_bc_count(b, c) : 1;

    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        uint64_t uses;

        if (values > 1)
            rp_bc_varint(b, c);
        uses = rp_bc_varint(b, c) >> 1;
        for (uint64_t k = 0; k < uses && b->code == RP_OK; k++)
            rp_bc_varint(b, c);
    }
}

static struct rp_bc_cursor op_list(struct rp_bytecode *b, struct rp_bc_cursor *c, size_t *n)
{
    struct rp_bc_cursor list = {c->at, c->end};

    *n = rp_bc_count(b, c);
    list.at = c->at;
    for (size_t i = 0; i < *n && b->code == RP_OK; i++)
        rp_bc_varint(b, c);
    list.end = c->at;
    return list;
}

static void op_read(struct rp_bytecode *b, struct rp_bc_cursor *c, struct op *op)
{
    const uint8_t *at = c->at;
    uint64_t name = rp_bc_varint(b, c), regions;
    uint8_t mask = rp_bc_byte(b, c);
    struct rp_slice dialect, own;
    size_t n;

    memset(op, 0, sizeof *op);
    op->loc = rp_bc_varint(b, c);
    if (b->code == RP_OK && name >= b->ops.n)
        rp_bc_fail(b, at, "operation %" PRIu64 " of %zu", name, b->ops.n);
    if (b->code != RP_OK)
        return;
    dialect = b->strings.at[b->ops.at[name].dialect];
    own = b->strings.at[b->ops.at[name].name];
    if (dialect.n + own.n + 2 > sizeof op->name) {
        rp_bc_fail(b, at, "the name of an operation has %u bytes", dialect.n + own.n + 1);
        return;
    }
    snprintf(op->name, sizeof op->name, "%.*s.%.*s", (int)dialect.n, dialect.at, (int)own.n,
             own.at);
    op_attributes(b, op, mask, c);
    if (mask & HAS_RESULTS)
        op->results = op_list(b, c, &op->nresults);
    if (mask & HAS_OPERANDS)
        op->operands = op_list(b, c, &op->noperands);
    if (mask & HAS_SUCCESSORS)
        op_list(b, c, &n);
    if (mask & HAS_USE_LISTS && b->version >= 3)
        skip_use_lists(b, c, op->nresults);
    if (mask & HAS_REGIONS) {
        regions = rp_bc_varint(b, c);
        op->isolated = regions & 1;
        op->nregions = (size_t)(regions >> 1);
        if (op->nregions > (size_t)(c->end - c->at))
            rp_bc_fail(b, at, "%zu regions", op->nregions);
    }
}

/* ---- values ---- */

static void define_value(struct rp_bytecode *b, size_t place, size_t limit,
                         struct rp_bc_value value)
{
    if (b->code != RP_OK)
        return;
    if (place >= limit)
        rp_bc_fail(b, b->begin, "more values than the region announces");
    else
        b->values.at[place] = value;
}

static void put_value(struct rp_bytecode *b, struct rp_bc_value value)
{
    rp_bc_putf(b, value.kind == VALUE_ARGUMENT ? "%%arg%u" : "%%%u", value.number);
    if (value.kind == VALUE_PART)
        rp_bc_putf(b, "#%u", value.part);
}

static void put_operands(struct rp_bytecode *b, const struct op *op)
{
    struct rp_bc_cursor c = op->operands;

    for (size_t i = 0; i < op->noperands && b->code == RP_OK; i++) {
        const uint8_t *at = c.at;
        uint64_t index = rp_bc_varint(b, &c);
        size_t place = b->scope + (size_t)index;

        if (index >= b->values.n - b->scope || !b->values.at[place].kind) {
            rp_bc_fail(b, at, "value %" PRIu64 " is used before it is defined", index);
            return;
        }
        if (i)
            rp_bc_puts(b, ", ");
        put_value(b, b->values.at[place]);
    }
}

static void put_type_list(struct rp_bytecode *b, struct rp_bc_cursor c, size_t n)
{
    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        if (i)
            rp_bc_puts(b, ", ");
        rp_bc_type(b, rp_bc_varint(b, &c), 0);
    }
}

/* ---- names of operations ---- */

/* "vhlo.add_v1" is "stablehlo.add"; functions, calls and returns are those of func. */
static void set_short(struct op *op)
{
    static const char *const prefixes[] = {"vhlo.", "stablehlo.", "func.", "builtin."};
    size_t n = strlen(op->name), digits = 0;

    op->short_ = op->name;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(op->name, prefixes[i], strlen(prefixes[i])) == 0)
            op->short_ = op->name + strlen(prefixes[i]);
    if (strncmp(op->name, "vhlo.", 5) != 0)
        return;
    while (n > 2 && op->name[n - 1 - digits] >= '0' && op->name[n - 1 - digits] <= '9')
        digits++;
    if (digits && op->name[n - 1 - digits] == 'v' && op->name[n - 2 - digits] == '_')
        op->name[n - 2 - digits] = '\0';
}

static void put_op_name(struct rp_bytecode *b, const struct op *op)
{
    if (strncmp(op->name, "vhlo.", 5) != 0)
        rp_bc_puts(b, op->name);
    else
        rp_bc_putf(b, strcmp(op->short_, "call") == 0 ? "func.%s" : "stablehlo.%s", op->short_);
}

static bool named(struct rp_slice name, const char *text)
{
    return name.n == strlen(text) && memcmp(name.at, text, name.n) == 0;
}

static const struct rp_bc_named *op_attr(const struct op *op, const char *name)
{
    for (size_t i = 0; i < op->nattrs; i++)
        if (named(op->attrs[i].name, name))
            return &op->attrs[i];
    return NULL;
}

/* ---- attributes of operations ---- */

/* VHLO has one number or list for each role of a dimension of a convolution. */
static void put_conv_labels(struct rp_bytecode *b, const struct op *op)
{
    static const char *const keys[3][3] = {
        {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"},
        {"kernel_input_feature_dimension", "kernel_output_feature_dimension",
         "kernel_spatial_dimensions"},
        {"output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"}};
    static const char letters[3][3] = {"bf", "io", "bf"};

    rp_bc_puts(b, "dimension_numbers = #stablehlo.conv<");
    for (int side = 0; side < 3 && b->code == RP_OK; side++) {
        struct rp_mlir_ints dims[3];
        char label[16] = "";
        size_t rank;

        for (int k = 0; k < 3; k++) {
            const struct rp_bc_named *attr = op_attr(op, keys[side][k]);

            dims[k].n = 0;
            if (attr)
                rp_bc_attr_ints(b, attr->value, &dims[k]);
        }
        rank = dims[2].n + 2;
        memset(label, '?', sizeof label);
        for (int k = 0; k < 3; k++)
            for (size_t i = 0; i < dims[k].n && dims[2].n < 10; i++)
                if (dims[k].at[i] >= 0 && dims[k].at[i] < (int64_t)rank)
                    label[dims[k].at[i]] = k == 2 ? (char)('0' + i) : letters[side][k];
        rp_bc_puts(b, side == 1 ? "x[" : side == 2 ? "->[" : "[");
        for (size_t i = 0; i < rank && i < sizeof label; i++)
            rp_bc_putf(b, "%s%c", i ? ", " : "", label[i]);
        rp_bc_puts(b, "]");
    }
    rp_bc_puts(b, ">");
}

static void put_attr_value(struct rp_bytecode *b, const struct op *op,
                           const struct rp_bc_named *attr)
{
    struct rp_slice text;

    if (named(attr->name, "value") && strcmp(op->short_, "constant") == 0) {
        rp_bc_constant(b, attr->value);
    } else if (named(attr->name, "callee") || named(attr->name, "decomposition")) {
        text = rp_bc_attr_string(b, attr->value);
        rp_bc_puts(b, "@");
        rp_bc_quoted(b, text.at ? text : (struct rp_slice){"", 0, 0});
    } else {
        rp_bc_attr(b, attr->value, 0);
    }
}

static void put_op_attrs(struct rp_bytecode *b, const struct op *op)
{
    bool first = true, vhlo = strncmp(op->name, "vhlo.", 5) == 0;
    bool conv = vhlo && strcmp(op->short_, "convolution") == 0;

    if (!op->nattrs)
        return;
    rp_bc_puts(b, " <{");
    if (conv)
        put_conv_labels(b, op);
    first = !conv;
    for (size_t i = 0; i < op->nattrs && b->code == RP_OK; i++) {
        if (named(op->attrs[i].name, "result_accuracy"))
            continue;
        if (!first)
            rp_bc_puts(b, ", ");
        first = false;
        if (memchr(op->attrs[i].name.at, ' ', op->attrs[i].name.n))
            rp_bc_quoted(b, op->attrs[i].name);
        else
            rp_bc_put(b, op->attrs[i].name.at, op->attrs[i].name.n);
        rp_bc_puts(b, " = ");
        put_attr_value(b, op, &op->attrs[i]);
    }
    rp_bc_puts(b, "}>");
}

/* ---- blocks ---- */

static void put_op(struct rp_bytecode *b, struct rp_bc_cursor *c, size_t *next, size_t limit,
                   unsigned depth);
static void put_block(struct rp_bytecode *b, struct rp_bc_cursor *c, size_t *next, size_t limit,
                      unsigned depth);

/* "{jax.result_info = "x"}", where a dictionary has anything in it. */
static void put_decoration(struct rp_bytecode *b, const struct rp_bc_named *list, size_t n,
                           size_t i)
{
    struct rp_bc_named *items;

    if (i < n && rp_bc_dictionary(b, list[i].value, &items)) {
        rp_bc_puts(b, " ");
        rp_bc_attr(b, list[i].value, 0);
    }
}

/* The arguments of a block: "%arg0: type"; of a function with their attributes. */
static void put_arguments(struct rp_bytecode *b, struct rp_bc_cursor *c, size_t *next, size_t limit,
                          const struct rp_bc_named *attrs, size_t nattrs)
{
    size_t n = rp_bc_count(b, c);
    uint8_t use_lists;

    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        uint64_t type = rp_bc_varint(b, c), loc = 0;
        bool placed = b->version < 4 || type & 1;
        struct rp_bc_value value = {b->arguments++, 0, VALUE_ARGUMENT};

        if (b->version >= 4)
            type >>= 1;
        if (placed)
            loc = rp_bc_varint(b, c);
        if (i)
            rp_bc_puts(b, ", ");
        put_value(b, value);
        rp_bc_puts(b, ": ");
        rp_bc_type(b, type, 0);
        put_decoration(b, attrs, nattrs, i);
        if (placed)
            rp_bc_loc(b, loc);
        define_value(b, (*next)++, limit, value);
    }
    if (b->version >= 3) {
        use_lists = rp_bc_byte(b, c);
        if (use_lists)
            skip_use_lists(b, c, n);
    }
}

/* A region: its blocks; values that it defines are gone after it. `attrs`: the region is a
   function's, whose arguments are written before it. */
static void put_region(struct rp_bytecode *b, struct rp_bc_cursor *c, unsigned depth)
{
    size_t blocks = rp_bc_count(b, c), values, first = b->values.n, next = first;

    if (!blocks)
        return;
    values = rp_bc_count(b, c);
    if (depth > MAX_DEPTH)
        rp_bc_fail(b, c->at, "regions nested too deep");
    if (b->code == RP_OK)
        b->code = rp_vec_reserve(&b->values, values + 1, b->err);
    if (b->code != RP_OK)
        return;
    memset(b->values.at + first, 0, values * sizeof *b->values.at);
    b->values.n += values;
    for (size_t i = 0; i < blocks && b->code == RP_OK; i++) {
        if (i)
            rp_bc_putf(b, "^bb%zu:\n", i);
        put_block(b, c, &next, first + values, depth);
    }
    if (b->code == RP_OK)
        b->values.n = first;
}

/* ---- functions and the module ---- */

static void put_results(struct rp_bytecode *b, const struct op *op)
{
    const struct rp_bc_named *type = op_attr(op, "function_type"), *list = op_attr(op, "res_attrs");
    struct rp_bc_named *attrs = NULL;
    size_t nattrs = list ? rp_bc_array(b, list->value, &attrs) : 0, n;
    struct rp_bc_cursor lists;

    if (!type || !rp_bc_function_type(b, type->value, &lists)) {
        rp_bc_fail(b, b->begin, "a function without a type");
        return;
    }
    op_list(b, &lists, &n);
    n = rp_bc_count(b, &lists);
    rp_bc_puts(b, " -> (");
    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        if (i)
            rp_bc_puts(b, ", ");
        rp_bc_type(b, rp_bc_varint(b, &lists), 0);
        put_decoration(b, attrs, nattrs, i);
    }
    rp_bc_puts(b, ") {\n");
}

/* The body of an isolated region is a section since version 2. */
static struct rp_bc_cursor open_region(struct rp_bytecode *b, struct rp_bc_cursor *c, bool *nested)
{
    struct rp_bc_cursor section;
    uint8_t id;

    *nested = b->version >= 2;
    if (!*nested)
        return *c;
    section = rp_bc_section(b, c, &id);
    if (id != 4)
        rp_bc_fail(b, section.at, "section %u where a region should be", id);
    return section;
}

static void put_function(struct rp_bytecode *b, const struct op *op, struct rp_bc_cursor *c,
                         unsigned depth)
{
    const struct rp_bc_named *name = op_attr(op, "sym_name"), *list = op_attr(op, "arg_attrs");
    struct rp_bc_named *attrs = NULL;
    size_t nattrs = list ? rp_bc_array(b, list->value, &attrs) : 0, blocks, values, next = 0;
    size_t scope = b->scope, kept = b->values.n;
    struct rp_slice text = name ? rp_bc_attr_string(b, name->value) : (struct rp_slice){0};
    uint64_t head;

    if (!text.at) {
        rp_bc_fail(b, c->at, "a function without a name");
        return;
    }
    blocks = rp_bc_count(b, c);
    if (!blocks)
        return; /* a declaration */
    values = rp_bc_count(b, c);
    if (b->code == RP_OK)
        b->code = rp_vec_reserve(&b->values, values + 1, b->err);
    if (b->code != RP_OK)
        return;
    b->scope = next = kept;
    memset(b->values.at + kept, 0, values * sizeof *b->values.at);
    b->values.n = kept + values;
    b->arguments = b->results = 0;
    rp_bc_puts(b, "  func.func @");
    rp_bc_quoted(b, text);
    rp_bc_puts(b, "(");
    head = rp_bc_varint(b, c);
    if (head & 1)
        put_arguments(b, c, &next, kept + values, attrs, nattrs);
    rp_bc_puts(b, ")");
    put_results(b, op);
    for (uint64_t i = 0; i < head >> 1 && b->code == RP_OK; i++)
        put_op(b, c, &next, kept + values, depth);
    if (blocks > 1)
        rp_bc_fail(b, c->at, "function '%.*s' has branches between blocks", (int)text.n, text.at);
    rp_bc_puts(b, "  }\n");
    b->values.n = kept;
    b->scope = scope;
}

static void put_module(struct rp_bytecode *b, const struct op *op, struct rp_bc_cursor *c,
                       unsigned depth)
{
    const struct rp_bc_named *name = op_attr(op, "sym_name");
    bool first = true;

    rp_bc_puts(b, "module ");
    if (name) {
        rp_bc_puts(b, "@");
        rp_bc_quoted(b, rp_bc_attr_string(b, name->value));
        rp_bc_puts(b, " ");
    }
    rp_bc_puts(b, "attributes {");
    for (size_t i = 0; i < op->nattrs && b->code == RP_OK; i++) {
        if (&op->attrs[i] == name || named(op->attrs[i].name, "sym_visibility"))
            continue;
        rp_bc_puts(b, first ? "" : ", ");
        first = false;
        rp_bc_put(b, op->attrs[i].name.at, op->attrs[i].name.n);
        rp_bc_puts(b, " = ");
        rp_bc_attr(b, op->attrs[i].value, 0);
    }
    rp_bc_puts(b, "} {\n");
    put_region(b, c, depth + 1);
    rp_bc_puts(b, "}\n");
}

/* "sdy.mesh @mesh = #sdy.mesh<["x"=4]>" */
static void put_mesh(struct rp_bytecode *b, const struct op *op)
{
    const struct rp_bc_named *name = op_attr(op, "sym_name"), *mesh = op_attr(op, "mesh");

    if (!name || !mesh)
        return;
    rp_bc_puts(b, "  sdy.mesh @");
    rp_bc_quoted(b, rp_bc_attr_string(b, name->value));
    rp_bc_puts(b, " = ");
    rp_bc_attr(b, mesh->value, 0);
    rp_bc_puts(b, "\n");
}

/* ---- any operation ---- */

static void put_op(struct rp_bytecode *b, struct rp_bc_cursor *c, size_t *next, size_t limit,
                   unsigned depth)
{
    bool nested = false;
    struct rp_bc_cursor inside = *c;
    size_t scope = b->scope;
    struct op op;

    op_read(b, c, &op);
    if (b->code != RP_OK)
        return;
    set_short(&op);
    if (op.nregions && op.isolated)
        inside = open_region(b, c, &nested);
    if (op.nregions && (strcmp(op.name, "builtin.module") == 0 || strcmp(op.short_, "func") == 0)) {
        if (!op.isolated)
            rp_bc_fail(b, c->at, "'%s' uses values from outside", op.name);
        else if (strcmp(op.short_, "func") == 0)
            put_function(b, &op, &inside, depth);
        else
            put_module(b, &op, &inside, depth);
        if (!nested)
            *c = inside;
        return;
    }
    if (strcmp(op.name, "sdy.mesh") == 0) {
        put_mesh(b, &op);
        return;
    }
    rp_bc_puts(b, "    ");
    if (op.nresults) {
        uint32_t number = b->results++;

        rp_bc_putf(b, op.nresults > 1 ? "%%%u:%zu = " : "%%%u = ", number, op.nresults);
        for (size_t i = 0; i < op.nresults; i++)
            define_value(b, (*next)++, limit,
                         (struct rp_bc_value){number, (uint32_t)i,
                                              op.nresults > 1 ? VALUE_PART : VALUE_RESULT});
    }
    rp_bc_puts(b, "\"");
    put_op_name(b, &op);
    rp_bc_puts(b, "\"(");
    put_operands(b, &op);
    rp_bc_puts(b, ")");
    put_op_attrs(b, &op);
    if (op.isolated)
        b->scope = b->values.n;
    for (size_t i = 0; i < op.nregions && b->code == RP_OK; i++) {
        rp_bc_puts(b, i ? ", {\n" : " ({\n");
        put_region(b, nested ? &inside : c, depth + 1);
        rp_bc_puts(b, "    }");
    }
    b->scope = scope;
    if (op.nregions)
        rp_bc_puts(b, ")");
    rp_bc_puts(b, " : () -> (");
    put_type_list(b, op.results, op.nresults);
    rp_bc_puts(b, ")");
    rp_bc_loc(b, op.loc);
    rp_bc_puts(b, "\n");
}

/* (number of operations << 1) | has arguments */
static void put_block(struct rp_bytecode *b, struct rp_bc_cursor *c, size_t *next, size_t limit,
                      unsigned depth)
{
    uint64_t head;

    head = rp_bc_varint(b, c);
    if (head & 1) {
        rp_bc_puts(b, "    ^bb0(");
        put_arguments(b, c, next, limit, NULL, 0);
        rp_bc_puts(b, "):\n");
    }
    for (uint64_t i = 0; i < head >> 1 && b->code == RP_OK; i++)
        put_op(b, c, next, limit, depth);
}

void rp_bc_module(struct rp_bytecode *b, struct rp_bc_cursor ir)
{
    size_t next = 0;

    put_block(b, &ir, &next, 0, 0);
    rp_bc_locs(b);
}
