/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements of MLIR, whatever operation they are of: results, the name, then pieces up to the end
 * of the line, where no bracket is open and no region of a loop or a reduction follows.
 */
#include "formats/mlir/mlir.h"

#include <string.h>

/* ---- statements ---- */

/* What HLO calls an operation of StableHLO. */
static enum rp_code statement_opcode(struct rp_mlir *r, struct rp_slice name, struct rp_new_op *op)
{
    static const char *const renamed[][2] = {
        {"dot-general", "dot"},  {"broadcast-in-dim", "broadcast"},
        {"case", "conditional"}, {"if", "conditional"},
        {"top-k", "topk"},       {"optimization-barrier", "opt-barrier"},
        {"composite", "call"},   {"create-token", "after-all"}};
    const char *dot = memrchr(name.at, '.', name.n);
    size_t skip = dot ? (size_t)(dot + 1 - name.at) : 0, n = name.n - skip;
    char text[64];
    uint32_t id;

    RP_TRY(rp_program_string(r->p, name.at, name.n, &op->foreign, r->err));
    op->code = RP_OP_FOREIGN;
    if (n >= sizeof text)
        return RP_OK;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)(name.at[skip + i] == '_' ? '-' : name.at[skip + i]);
    text[n] = '\0';
    if (strcmp(text, "square") == 0) { /* of CHLO: HLO has a product for it */
        op->code = RP_OP_MULTIPLY;
        return RP_OK;
    }
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (strcmp(text, renamed[i][0]) == 0)
            strcpy(text, renamed[i][1]);
    id = rp_strtab_find(&r->p->strings, text, strlen(text));
    if (id != UINT32_MAX && rp_program_opcode(r->p, id) != RP_OP_PARAMETER)
        op->code = rp_program_opcode(r->p, id);
    return RP_OK;
}

/* "return", "func.return", "stablehlo.return" */
static bool is_return(struct rp_slice name)
{
    return name.n >= 6 && memcmp(name.at + name.n - 6, "return", 6) == 0 &&
           (name.n == 6 || name.at[name.n - 7] == '.');
}

/* Whether '{' opens a list of attributes: "{}" or "{key = ..." or "{key, ..." */
bool rp_mlir_is_dictionary(const struct rp_mlir *r)
{
    struct rp_mlir look = *r;
    struct rp_slice key;

    look.at++;
    rp_mlir_space(&look);
    if (look.at < look.end && *look.at == '}')
        return true;
    if (look.at < look.end && *look.at == '"') {
        look.at = rp_mlir_string_end(&look, look.at);
        key = (struct rp_slice){look.at - 1, 1, 0};
    } else {
        key = rp_mlir_word(&look);
    }
    rp_mlir_space(&look);
    if (is_return(key)) /* a region that is nothing else */
        return false;
    return key.n && look.at < look.end && (*look.at == '=' || *look.at == ',' || *look.at == '}');
}

/* The statement goes on after a line's end: regions of loops and reductions. */
static bool statement_continues(struct rp_mlir *r)
{
    struct rp_mlir look = *r;

    rp_mlir_space(&look);
    if (!rp_mlir_take_word(&look, "cond") && !rp_mlir_take_word(&look, "do") &&
        !rp_mlir_take_word(&look, "reducer"))
        return false;
    rp_mlir_space(&look);
    if (look.at >= look.end || (*look.at != '{' && *look.at != '('))
        return false;
    rp_mlir_space(r);
    return true;
}

struct statement {
    struct rp_new_op op;
    const char *attrs, *attrs_end, *colon; /* between operands and types; the first ':' outside */
    const char *types_end, *regions, *regions_end;
    struct rp_slice applies; /* the operation of a reduction without a region */
    size_t region, args;     /* the first of its regions, and of the arguments it names for them */
    uint32_t called, loc;    /* strings and numbers; RP_NONE and 0: none */
    bool types_done, reducer, pairs;
};

/* "%iterArg = %0" in the parentheses of a loop: the name of %0 in its regions. */
static enum rp_code read_name_or_alias(struct rp_mlir *r, struct statement *s)
{
    struct rp_mlir look = *r;
    uint32_t name, shape;

    RP_TRY(rp_mlir_name_at(&look, &name));
    rp_mlir_space(&look);
    if (!s->colon && look.at + 1 < look.end && *look.at == '=' && look.at[1] != '=') {
        look.at++;
        rp_mlir_space(&look);
        if (look.at < look.end && *look.at == '%') {
            r->at = look.at;
            RP_TRY(rp_mlir_operand(r));
            shape = r->p->shape.at[r->operands.at[r->operands.n - 2]];
            return rp_vec_push(&r->args, ((struct rp_mlir_arg){name, shape, RP_NONE}), r->err);
        }
    }
    return rp_mlir_operand(r);
}

static void read_location(struct rp_mlir *r, struct statement *s)
{
    const char *to = rp_mlir_bracket_end(r, r->at), *hash;

    if (!to)
        return;
    hash = memmem(r->at, (size_t)(to - r->at), "#loc", 4);
    s->loc = 1;
    if (hash)
        for (hash += 4; *hash >= '0' && *hash <= '9' && s->loc < 100000000; hash++)
            s->loc = (s->loc == 1 ? 0 : s->loc - 1) * 10 + (uint32_t)(*hash - '0') + 1;
    r->at = to;
}

/* "(%a: type, ...": the names of a region's arguments, before the region. */
static bool is_at_arguments(const struct rp_mlir *r)
{
    struct rp_mlir look = *r;

    look.at++;
    rp_mlir_space(&look);
    if (look.at >= look.end || *look.at != '%')
        return false;
    look.at++;
    rp_mlir_word(&look);
    return look.at < look.end && *look.at == ':';
}

/* One thing of a statement after the name of its operation. */
static enum rp_code read_piece(struct rp_mlir *r, struct statement *s, unsigned *paren)
{
    char c = *r->at;
    struct rp_slice w;

    if (c == '%')
        return s->colon && !*paren ? rp_mlir_operand(r) : read_name_or_alias(r, s);
    if (c == '@') {
        RP_TRY(rp_mlir_name_at(r, &s->called));
        return RP_OK;
    }
    if (c == '"') {
        r->at = rp_mlir_string_end(r, r->at);
        return RP_OK;
    }
    if (c == '{' && !rp_mlir_is_dictionary(r)) {
        s->regions = s->regions ? s->regions : r->at;
        RP_TRY(rp_mlir_queue_region(r));
        s->regions_end = r->at;
        return RP_OK;
    }
    if (c == '{' || c == '<' || c == '[')
        return rp_mlir_skip_bracket(r);
    if (c == '(' && !*paren && r->regions.n == s->region && (s->reducer || is_at_arguments(r)))
        return rp_mlir_arguments(r);
    if (c == '(') {
        ++*paren;
    } else if (c == ')') {
        if (*paren)
            --*paren;
    } else if (c == ':' && !*paren && !s->colon) {
        s->colon = r->at;
    } else if (rp_mlir_word_char(c)) {
        w = rp_mlir_word(r);
        if (w.n == 3 && memcmp(w.at, "loc", 3) == 0 && r->at < r->end && *r->at == '(') {
            if (!s->types_done)
                s->types_end = w.at;
            s->types_done = true;
            read_location(r, s);
        } else if (w.n == 7 && memcmp(w.at, "reducer", 7) == 0) {
            s->reducer = true;
        } else if (w.n == 4 && memcmp(w.at, "init", 4) == 0) {
            s->pairs = true;
        } else if (w.n == 7 && memcmp(w.at, "applies", 7) == 0) {
            rp_mlir_space(r);
            s->applies = rp_mlir_word(r);
        } else if (!w.n) {
            r->at++;
        }
        return RP_OK;
    }
    r->at++;
    return RP_OK;
}

static enum rp_code read_body(struct rp_mlir *r, struct statement *s)
{
    unsigned paren = 0;

    s->attrs = r->at;
    for (;;) {
        while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r'))
            r->at++;
        if (r->at >= r->end || *r->at == '}')
            break;
        if (*r->at == '\n' && !paren) {
            if (!s->types_done)
                s->types_end = r->at;
            s->types_done = true;
            if (!statement_continues(r))
                break;
            continue;
        }
        if (*r->at == '\n')
            r->at++;
        else
            RP_TRY(read_piece(r, s, &paren));
    }
    if (!s->types_done)
        s->types_end = r->at;
    s->attrs_end = s->colon ? s->colon : s->types_end;
    return RP_OK;
}

/* '@name' is a function where it is called, and the target of a custom call. */
static enum rp_code add_symbol(struct rp_mlir *r, const struct statement *s)
{
    char *target;

    if (s->op.code == RP_OP_CALL) {
        RP_TRY(rp_vec_push(&r->waiting, (uint32_t)r->p->called.n, r->err));
        RP_TRY(rp_vec_push(&r->waiting, s->called, r->err));
        return rp_program_add_called(r->p, 0, r->err);
    }
    if (s->op.code != RP_OP_CUSTOM_CALL)
        return RP_OK;
    target = rp_arena_strdup(&r->p->arena, rp_program_text(r->p, s->called));
    if (!target)
        return rp_err_nomem(r->err, "reading a custom call");
    return rp_program_add_attr(
        r->p, rp_attr_bytes(RP_ATTR_CUSTOM_CALL_TARGET, RP_VALUE_STRING, target, strlen(target)),
        r->err);
}

/* The types of the results: after the arrow, or all there are. */
static enum rp_code result_shape(struct rp_mlir *r, const struct statement *s, uint32_t *shape)
{
    const char *from = s->colon ? s->colon : s->types_end, *arrow;

    for (arrow = s->types_end; arrow > from + 1; arrow--)
        if (arrow[-1] == '>' && arrow[-2] == '-')
            break;
    if (arrow > from + 1)
        from = arrow;
    else if (s->op.code == RP_OP_SELECT) /* condition first, then the operands */
        from = memrchr(from, ',', (size_t)(s->types_end - from))
                   ? memrchr(from, ',', (size_t)(s->types_end - from))
                   : from;
    return rp_mlir_types(r, from, s->types_end, shape);
}

/* "reducer(%a0: t, %b0: t) (%a1: t, %b1: t)": HLO has all a before all b. */
static enum rp_code order_reducer(struct rp_mlir *r, const struct statement *s)
{
    size_t n = r->args.n - s->args;

    if (!s->reducer || n < 4 || n % 2)
        return RP_OK;
    for (size_t i = 0; i < n; i++)
        RP_TRY(
            rp_vec_push(&r->args, r->args.at[s->args + (i % (n / 2)) * 2 + i / (n / 2)], r->err));
    memmove(r->args.at + s->args, r->args.at + s->args + n, n * sizeof *r->args.at);
    r->args.n -= n;
    return RP_OK;
}

/* "(%x init: %a), (%y init: %b)": HLO has the values first, then where to begin. */
static enum rp_code order_inits(struct rp_mlir *r, const struct statement *s, size_t first)
{
    size_t n = (r->operands.n - first) / 2;

    if (!s->pairs || n < 4 || n % 2)
        return RP_OK;
    RP_TRY(rp_vec_reserve(&r->operands, 2 * n, r->err));
    for (size_t i = 0; i < n; i++)
        memcpy(r->operands.at + first + 2 * (n + i),
               r->operands.at + first + 2 * ((i % (n / 2)) * 2 + i / (n / 2)),
               2 * sizeof *r->operands.at);
    memcpy(r->operands.at + first, r->operands.at + first + 2 * n, 2 * n * sizeof *r->operands.at);
    return RP_OK;
}

/* Loops and branches take the values that their regions capture as operands, joined into one
   tuple: it replaces the operands from `first` on; a single value is not joined. */
static enum rp_code join_operands(struct rp_mlir *r, size_t first, uint32_t *tuple)
{
    struct rp_new_op op = {.code = RP_OP_TUPLE};
    size_t n = (r->operands.n - first) / 2 + r->outside.n, at = 0;
    uint32_t *ids = RP_ARENA_NEW(&r->p->arena, uint32_t, 2 * n + 1), *shapes;

    if (!ids)
        return rp_err_nomem(r->err, "reading a region");
    for (size_t i = first; i + 1 < r->operands.n; i += 2)
        ids[at++] = r->operands.at[i];
    for (size_t i = 0; i < r->outside.n; i++)
        ids[at++] = r->outside.at[i].op;
    r->operands.n = first;
    if (n == 1) {
        *tuple = ids[0];
        return RP_OK;
    }
    shapes = ids + n;
    for (size_t i = 0; i < n; i++)
        shapes[i] = r->p->shape.at[ids[i]];
    RP_TRY(rp_program_tuple(r->p, shapes, n, &op.shape, r->err));
    return rp_mlir_add_implicit(r, &op, ids, n, tuple);
}

static enum rp_code push_operand(struct rp_mlir *r, uint32_t op)
{
    RP_TRY(rp_vec_push(&r->operands, op, r->err));
    return rp_vec_push(&r->operands, 0, r->err);
}

static enum rp_code control_operands(struct rp_mlir *r, struct statement *s, size_t first)
{
    size_t regions = r->regions.n - s->region;
    uint32_t tuple;

    if (s->op.code == RP_OP_WHILE && regions) {
        RP_TRY(join_operands(r, first, &tuple));
        if (r->outside.n)
            s->op.shape = r->p->shape.at[tuple];
        return push_operand(r, tuple);
    }
    if (s->op.code == RP_OP_CONDITIONAL && regions && r->operands.n >= first + 2) {
        RP_TRY(join_operands(r, first + 2, &tuple));
        for (size_t i = 0; i < regions; i++)
            RP_TRY(push_operand(r, tuple));
        return RP_OK;
    }
    if (s->op.code == RP_OP_OPT_BARRIER && r->operands.n - first > 2) {
        RP_TRY(join_operands(r, first, &tuple));
        return push_operand(r, tuple);
    }
    return RP_OK;
}

/* Queues the regions; of a loop the body comes first, as in protobufs. */
static enum rp_code add_regions(struct rp_mlir *r, const struct statement *s, size_t first_operand)
{
    size_t n = r->regions.n - s->region, args = r->args.n;
    struct rp_mlir_region *region = n ? r->regions.at + s->region : NULL;
    bool tuple = s->op.code == RP_OP_WHILE || s->op.code == RP_OP_CONDITIONAL;

    for (size_t i = 0; i < r->outside.n; i++)
        RP_TRY(rp_vec_push(&r->args, r->outside.at[i], r->err));
    if (s->op.code == RP_OP_WHILE && n == 2) {
        struct rp_mlir_region swap = region[0];

        region[0] = region[1];
        region[1] = swap;
    }
    for (size_t i = 0; i < n; i++) {
        region[i].args = (uint32_t)s->args;
        region[i].nargs = (uint32_t)(args - s->args);
        region[i].outside = (uint32_t)args;
        region[i].noutside = (uint32_t)r->outside.n;
        region[i].tuple = tuple;
        region[i].carry = s->op.code == RP_OP_WHILE && i == 0;
        region[i].called = (uint32_t)r->p->called.n;
        RP_TRY(rp_program_add_called(r->p, 0, r->err));
    }
    if (s->applies.n && r->operands.n > first_operand) {
        uint32_t of = r->p->shape.at[r->operands.at[first_operand]];
        struct rp_mlir_region one = {.applies = s->applies, .called = (uint32_t)r->p->called.n};

        RP_TRY(rp_program_array(r->p, r->p->shapes.at[of].elem, NULL, NULL, 0, 0, &one.element,
                                r->err));
        RP_TRY(rp_vec_push(&r->regions, one, r->err));
        return rp_program_add_called(r->p, 0, r->err);
    }
    return RP_OK;
}

/* The value of a computation: an operation, or several as a tuple. */
static enum rp_code add_return(struct rp_mlir *r, size_t first_operand)
{
    struct rp_new_op op = {.code = RP_OP_TUPLE};
    size_t n;
    uint32_t *ids, *shapes, id;

    for (size_t i = 0; i < r->carried.n; i++)
        RP_TRY(push_operand(r, r->carried.at[i]));
    n = (r->operands.n - first_operand) / 2;
    if (n == 1) {
        r->p->computations.at[r->p->computations.n - 1].root = r->operands.at[first_operand];
        return RP_OK;
    }
    ids = RP_ARENA_NEW(&r->p->arena, uint32_t, 2 * n + 1);
    if (!ids)
        return rp_err_nomem(r->err, "reading a region");
    shapes = ids + n;
    for (size_t i = 0; i < n; i++) {
        ids[i] = r->operands.at[first_operand + 2 * i];
        shapes[i] = r->p->shape.at[ids[i]];
    }
    RP_TRY(rp_program_tuple(r->p, shapes, n, &op.shape, r->err));
    RP_TRY(rp_mlir_add_implicit(r, &op, ids, n, &id));
    r->p->flags.at[id] &= (uint8_t)~RP_OPS_IMPLICIT;
    r->p->computations.at[r->p->computations.n - 1].root = id;
    return RP_OK;
}

/* A broadcast by the steps of HLO; *split: there are several, and *rest are the dimensions of the
   last. */
static enum rp_code add_broadcast(struct rp_mlir *r, struct statement *s,
                                  const struct rp_mlir_text *text, size_t first_operand,
                                  struct rp_mlir_ints *rest, bool *split)
{
    struct rp_mlir_ints dims;
    uint32_t operand;

    *split = false;
    if (s->op.code != RP_OP_BROADCAST || r->operands.n != first_operand + 2)
        return RP_OK;
    operand = r->operands.at[first_operand];
    rp_mlir_broadcast_dims(r, text, &dims);
    RP_TRY(rp_mlir_broadcast(r, &dims, &s->op, &operand, rest, split));
    r->operands.at[first_operand] = operand;
    return RP_OK;
}

enum rp_code rp_mlir_call_region(struct rp_mlir *r, size_t region, size_t args)
{
    struct statement s = {.op = {.code = RP_OP_CALL}, .region = region, .args = args};

    return add_regions(r, &s, 0);
}

static bool is_operation(const struct rp_mlir *r, const struct rp_new_op *op, const char *name)
{
    return op->code == RP_OP_FOREIGN && strcmp(rp_program_text(r->p, op->foreign), name) == 0;
}

/* Portable artifacts have operations that StableHLO lacks as custom calls: "@mhlo.topk",
   "@chlo.scan". */
static enum rp_code replace_call(struct rp_mlir *r, struct statement *s,
                                 const struct rp_mlir_text *text)
{
    struct rp_new_op named = s->op;
    struct rp_slice target = {.n = 0};
    const char *key;

    if (s->op.code != RP_OP_CUSTOM_CALL)
        return RP_OK;
    key = rp_mlir_find_key(text, "call_target_name");
    while (key && key < text->end && *key == ' ')
        key++;
    if (s->called != RP_NONE) {
        target.at = rp_program_text(r->p, s->called);
        target.n = (uint32_t)strlen(target.at);
    } else if (key && key < text->end && *key == '"') {
        const char *to = rp_mlir_string_end(r, key);

        target.at = key + 1;
        target.n = to > key + 1 ? (uint32_t)(to - key - 2) : 0;
    }
    if (target.n < 6 || (memcmp(target.at, "mhlo.", 5) != 0 && memcmp(target.at, "chlo.", 5) != 0))
        return RP_OK;
    RP_TRY(statement_opcode(r, target, &named));
    if (named.code == RP_OP_FOREIGN)
        return RP_OK;
    s->op = named;
    s->called = RP_NONE;
    return RP_OK;
}

/* How many operands of a scan are carried along: those that its region takes whole. */
static enum rp_code add_carries(struct rp_mlir *r, const struct statement *s, size_t first_operand,
                                const struct rp_mlir_text *text)
{
    const char *at = r->at, *sizes = rp_mlir_find_key(text, "operandSegmentSizes");
    size_t args = r->args.n, n = (r->operands.n - first_operand) / 2;
    struct rp_mlir_ints list = {.n = 0};
    int64_t carries = 0;

    if (r->regions.n > s->region) {
        r->at = r->regions.at[s->region].at;
        RP_TRY(rp_mlir_block_arguments(r));
        for (size_t i = 0; i < n && args + i < r->args.n; i++)
            carries += r->p->shapes.at[r->args.at[args + i].shape].n ==
                       r->p->shapes.at[r->p->shape.at[r->operands.at[first_operand + 2 * i]]].n;
        r->args.n = args;
        r->at = at;
    } else if (sizes) {
        while (sizes < text->end && *sizes == ' ')
            sizes++;
        at = memchr(sizes, '>', (size_t)(text->end - sizes));
        rp_mlir_ints_in(sizes, at ? at : text->end, &list);
        carries = list.n > 1 ? list.at[1] : 0;
    }
    return rp_program_add_attr(r->p, rp_attr_int(RP_ATTR_NUM_CARRIES, carries), r->err);
}

static enum rp_code add_statement(struct rp_mlir *r, struct statement *s, size_t first_operand,
                                  uint32_t *id)
{
    struct rp_mlir_text text = {s->attrs, s->attrs_end, {NULL, 0}, s->regions, s->regions_end};
    struct rp_mlir_ints rest = {.n = 0};
    bool known = false, split;
    bool manual = is_operation(r, &s->op, "sdy.manual_computation");
    bool mark = is_operation(r, &s->op, "sdy.sharding_constraint") ||
                is_operation(r, &s->op, "sdy.reshard");
    uint32_t scalar = RP_NONE;
    int64_t joined = -1;

    RP_TRY(replace_call(r, s, &text));
    if (mark)
        s->op.code = RP_OP_CUSTOM_CALL;
    if (is_operation(r, &s->op, "builtin.unrealized_conversion_cast")) /* between dialects */
        s->op.code = r->operands.n == first_operand + 2 ? RP_OP_COPY : RP_OP_TUPLE;
    RP_TRY(result_shape(r, s, &s->op.shape));
    if (s->op.code == RP_OP_CALL && !s->op.shape)
        RP_TRY(rp_program_tuple(r->p, NULL, 0, &s->op.shape, r->err)); /* of nothing */
    RP_TRY(order_reducer(r, s));
    RP_TRY(order_inits(r, s, first_operand));
    RP_TRY(control_operands(r, s, first_operand));
    if (s->op.code == RP_OP_MULTIPLY && r->operands.n == first_operand + 2)
        RP_TRY(push_operand(r, r->operands.at[first_operand])); /* a square */
    RP_TRY(add_broadcast(r, s, &text, first_operand, &rest, &split));
    if (s->op.code == RP_OP_CONSTANT) {
        RP_TRY(rp_mlir_constant(r, &text, &s->op, &scalar));
        if (scalar != RP_NONE)
            RP_TRY(push_operand(r, scalar));
    }
    if (s->op.code == RP_OP_ALL_TO_ALL && r->operands.n == first_operand + 2)
        RP_TRY(rp_mlir_all_to_all(r, &text, first_operand, &s->op, &joined));
    if (manual)
        RP_TRY(rp_mlir_manual(r, &text, first_operand, s->region, s->args, &s->op));
    if (r->p->nops >= r->limits.events)
        return rp_err_set(r->err, RP_LIMIT, "more than %llu operations",
                          (unsigned long long)r->limits.events);
    RP_TRY(rp_program_add_op(r->p, &s->op, id, r->err));
    for (size_t i = first_operand; i + 1 < r->operands.n; i += 2)
        RP_TRY(rp_program_add_operand(r->p, r->operands.at[i], r->operands.at[i + 1], r->err));
    text.operands = rp_op_operands(r->p, *id);
    r->p->meta.at[*id] = s->loc; /* a number of locs until the end */
    if (manual)
        return rp_mlir_manual_attrs(r, &text, true);
    if (mark)
        return rp_mlir_target(r, "Sharding");
    if (joined >= 0)
        return rp_program_add_attr(r->p, rp_attr_ints(r->p, RP_ATTR_DIMENSIONS, &joined, 1),
                                   r->err);
    if (split || scalar != RP_NONE)
        RP_TRY(rp_program_add_attr(r->p, rp_attr_ints(r->p, RP_ATTR_DIMENSIONS, rest.at, rest.n),
                                   r->err));
    else
        RP_TRY(rp_mlir_attributes(r, s->op.code, &text, &known));
    if (s->op.code == RP_OP_SCAN)
        RP_TRY(add_carries(r, s, first_operand, &text));
    if (!known && !split && scalar == RP_NONE && s->op.code != RP_OP_RESHAPE)
        RP_TRY(rp_mlir_keep_text(r, s->attrs, s->attrs_end, s->op.foreign));
    RP_TRY(add_regions(r, s, first_operand));
    return s->called == RP_NONE ? RP_OK : add_symbol(r, s);
}

/* "%0:2, %1 = " before an operation */
static enum rp_code read_results(struct rp_mlir *r, uint32_t *name, bool *counted)
{
    uint32_t id;

    *name = 0;
    *counted = false;
    while (r->at < r->end && *r->at == '%') {
        RP_TRY(rp_mlir_name_at(r, &id));
        *name = *name ? *name : id;
        RP_TRY(rp_vec_push(&r->results, id, r->err));
        if (r->at < r->end && *r->at == ':')
            for (*counted = true, r->at++; r->at < r->end && *r->at >= '0' && *r->at <= '9';
                 r->at++)
                ;
        rp_mlir_space(r);
        if (r->at < r->end && *r->at == ',')
            r->at++;
        rp_mlir_space(r);
    }
    if (!*name)
        return RP_OK;
    if (r->at >= r->end || *r->at != '=')
        return RP_MLIR_FAIL(r, r->at < r->end ? r->at : r->end, "expected '=' after the results");
    r->at++;
    rp_mlir_space(r);
    return RP_OK;
}

static enum rp_code read_operation_name(struct rp_mlir *r, struct rp_slice *name)
{
    const char *where = r->at;

    if (r->at < r->end && *r->at == '"') {
        r->at = rp_mlir_string_end(r, where);
        *name = (struct rp_slice){where + 1, (uint32_t)(r->at - where - 2), 0};
    } else {
        *name = rp_mlir_word(r);
    }
    if (!name->n || name->n > 200)
        return RP_MLIR_FAIL(r, where < r->end ? where : r->end, "expected an operation");
    return RP_OK;
}

/* "%a, %b = ": each name is one result of the operation. */
static enum rp_code define_results(struct rp_mlir *r, size_t first, uint32_t id, bool counted)
{
    size_t n = r->results.n - first;
    /* a loop with one result and captured values is a tuple */
    bool carries = r->p->code.at[id] == RP_OP_WHILE && r->outside.n && !counted;

    for (size_t i = 0; i < n; i++) {
        uint32_t op = id;

        if ((n > 1 || carries) && r->p->shapes.at[r->p->shape.at[id]].elem == RP_ELEM_TUPLE)
            RP_TRY(rp_mlir_part(r, r->at < r->end ? r->at : r->end, &op, (uint32_t)i));
        RP_TRY(rp_mlir_define(r, r->results.at[first + i], op));
    }
    return RP_OK;
}

static enum rp_code read_statement(struct rp_mlir *r)
{
    struct statement s = {.called = RP_NONE, .region = r->regions.n, .args = r->args.n};
    size_t first_result = r->results.n, first_operand = r->operands.n;
    struct rp_slice name;
    bool counted;
    uint32_t id;

    r->statements++;
    r->outside.n = 0;
    RP_TRY(read_results(r, &s.op.name, &counted));
    RP_TRY(read_operation_name(r, &name));
    RP_TRY(statement_opcode(r, name, &s.op));
    RP_TRY(read_body(r, &s));
    if (s.op.code == RP_OP_CALL && s.called == RP_NONE)
        RP_TRY(rp_mlir_callee(
            r, &(struct rp_mlir_text){s.attrs, s.attrs_end, {NULL, 0}, NULL, NULL}, &s.called));
    if (is_return(name)) {
        RP_TRY(add_return(r, first_operand));
    } else {
        RP_TRY(add_statement(r, &s, first_operand, &id));
        RP_TRY(define_results(r, first_result, id, counted));
    }
    r->results.n = first_result;
    r->operands.n = first_operand;
    return RP_OK;
}

/* "^bb1(%a: type):" after the first: branches between blocks are not supported. */
static enum rp_code skip_later_block(struct rp_mlir *r)
{
    size_t first = r->args.n;

    r->at++;
    rp_mlir_word(r);
    if (r->at < r->end && *r->at == '(')
        RP_TRY(rp_mlir_arguments(r));
    for (; first < r->args.n; first++) {
        struct rp_new_op op = {.code = RP_OP_FOREIGN,
                               .name = r->args.at[first].name,
                               .shape = r->args.at[first].shape};
        uint32_t id;

        RP_TRY(rp_program_string(r->p, "(argument)", 10, &op.foreign, r->err));
        RP_TRY(rp_mlir_add_implicit(r, &op, NULL, 0, &id));
        RP_TRY(rp_mlir_define(r, op.name, id));
    }
    if (r->at < r->end && *r->at == ':')
        r->at++;
    return RP_OK;
}

/* Statements up to '}'. */
enum rp_code rp_mlir_block(struct rp_mlir *r)
{
    for (;;) {
        rp_mlir_space(r);
        if (r->at >= r->end)
            return RP_MLIR_FAIL(r, r->end, "the text ends inside a function");
        if (*r->at == '}') {
            r->at++;
            return RP_OK;
        }
        if (*r->at == '^')
            RP_TRY(skip_later_block(r));
        else
            RP_TRY(read_statement(r));
    }
}
