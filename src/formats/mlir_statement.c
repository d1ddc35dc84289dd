/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements of MLIR, whatever operation they are of: results, the name, then pieces up to the end
 * of the line, where no bracket is open and no region of a loop or a reduction follows.
 */
#include "formats/mlir.h"

#include <string.h>

/* ---- statements ---- */

/* What HLO calls an operation of StableHLO. */
static enum rp_code opcode(struct mlir *r, struct rp_attr name, struct rp_new_op *op)
{
    static const char *const renamed[][2] = {
        {"dot-general", "dot"}, {"broadcast-in-dim", "broadcast"},       {"case", "conditional"},
        {"if", "conditional"},  {"optimization-barrier", "opt-barrier"}, {"cosine", "cosine"}};
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
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (strcmp(text, renamed[i][0]) == 0)
            strcpy(text, renamed[i][1]);
    id = rp_strtab_find(&r->p->strings, text, strlen(text));
    if (id != UINT32_MAX && rp_program_opcode(r->p, id) != RP_OP_CONSTANT &&
        rp_program_opcode(r->p, id) != RP_OP_PARAMETER)
        op->code = rp_program_opcode(r->p, id);
    return RP_OK;
}

/* Whether '{' opens a list of attributes: "{}" or "{key = ..." or "{key, ..." */
bool mlir_is_dictionary(const struct mlir *r)
{
    struct mlir look = *r;
    struct rp_attr key;

    look.at++;
    mlir_space(&look);
    if (look.at < look.end && *look.at == '}')
        return true;
    if (look.at < look.end && *look.at == '"') {
        look.at = mlir_string_end(&look, look.at);
        key.n = 1;
    } else {
        key = mlir_word(&look);
    }
    mlir_space(&look);
    return key.n && look.at < look.end && (*look.at == '=' || *look.at == ',' || *look.at == '}');
}

/* The statement goes on behind a line's end: regions of loops and reductions. */
static bool continues(struct mlir *r)
{
    struct mlir look = *r;

    mlir_space(&look);
    if (!mlir_take_word(&look, "cond") && !mlir_take_word(&look, "do") &&
        !mlir_take_word(&look, "reducer"))
        return false;
    mlir_space(&look);
    if (look.at >= look.end || (*look.at != '{' && *look.at != '('))
        return false;
    mlir_space(r);
    return true;
}

struct statement {
    struct rp_new_op op;
    const char *attrs, *attrs_end, *colon; /* between operands and types; the first ':' outside */
    const char *types_end;
    uint32_t called, loc; /* strings and numbers; RP_NONE and 0: none */
    bool types_done;
};

/* "%iterArg = %0" in the brackets of a loop is another name of %0. */
static enum rp_code name_or_alias(struct mlir *r, struct statement *s)
{
    struct mlir look = *r;
    uint32_t name;

    RP_TRY(mlir_name_at(&look, &name));
    mlir_space(&look);
    if (!s->colon && look.at + 1 < look.end && *look.at == '=' && look.at[1] != '=') {
        look.at++;
        mlir_space(&look);
        if (look.at < look.end && *look.at == '%') {
            r->at = look.at;
            RP_TRY(mlir_operand(r));
            return mlir_define(r, name, r->operands.at[r->operands.n - 2]);
        }
    }
    return mlir_operand(r);
}

static enum rp_code region(struct mlir *r)
{
    size_t kept = r->operands.n;
    enum rp_code code;

    if (!r->depth)
        return MLIR_FAIL(r, r->at, "regions nested too deep");
    r->at++;
    r->depth--;
    code = mlir_block(r);
    r->depth++;
    r->operands.n = kept;
    return code;
}

static void location(struct mlir *r, struct statement *s)
{
    const char *to = mlir_bracket_end(r, r->at), *hash;

    if (!to)
        return;
    hash = memmem(r->at, (size_t)(to - r->at), "#loc", 4);
    s->loc = 1;
    if (hash)
        for (hash += 4; *hash >= '0' && *hash <= '9' && s->loc < 100000000; hash++)
            s->loc = (s->loc == 1 ? 0 : s->loc - 1) * 10 + (uint32_t)(*hash - '0') + 1;
    r->at = to;
}

/* One thing of a statement behind the name of its operation. */
static enum rp_code piece(struct mlir *r, struct statement *s, unsigned *paren)
{
    char c = *r->at;
    struct rp_attr w;

    if (c == '%')
        return s->colon && !*paren ? mlir_operand(r) : name_or_alias(r, s);
    if (c == '@') {
        RP_TRY(mlir_name_at(r, &s->called));
        return RP_OK;
    }
    if (c == '"') {
        r->at = mlir_string_end(r, r->at);
        return RP_OK;
    }
    if (c == '{' && !mlir_is_dictionary(r))
        return region(r);
    if (c == '{' || c == '<' || c == '[')
        return mlir_skip_bracket(r);
    if (c == '(') {
        ++*paren;
    } else if (c == ')') {
        if (*paren)
            --*paren;
    } else if (c == ':' && !*paren && !s->colon) {
        s->colon = r->at;
    } else if (mlir_word_char(c)) {
        w = mlir_word(r);
        if (w.n == 3 && memcmp(w.at, "loc", 3) == 0 && r->at < r->end && *r->at == '(') {
            if (!s->types_done)
                s->types_end = w.at;
            s->types_done = true;
            location(r, s);
        } else if (w.n == 7 && memcmp(w.at, "reducer", 7) == 0) {
            mlir_space(r);
            if (r->at < r->end && *r->at == '(')
                return mlir_arguments(r, RP_OP_FOREIGN);
        } else if (!w.n) {
            r->at++;
        }
        return RP_OK;
    }
    r->at++;
    return RP_OK;
}

static enum rp_code body(struct mlir *r, struct statement *s)
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
            if (!continues(r))
                break;
            continue;
        }
        if (*r->at == '\n')
            r->at++;
        else
            RP_TRY(piece(r, s, &paren));
    }
    if (!s->types_done)
        s->types_end = r->at;
    s->attrs_end = s->colon ? s->colon : s->types_end;
    return RP_OK;
}

/* "contracting_dims = [1] x [0]" in the words of HLO, which counting looks for. */
static enum rp_code dot_dims(struct mlir *r, const struct statement *s)
{
    const char *at =
        memmem(s->attrs, (size_t)(s->attrs_end - s->attrs), "contracting_dims = [", 20);
    const char *close;
    char *copy;
    size_t n;

    if (!at)
        return RP_OK;
    close = memchr(at + 20, ']', (size_t)(s->attrs_end - at - 20));
    if (!close)
        return RP_OK;
    n = (size_t)(close - at - 20);
    copy = rp_arena_printf(&r->p->arena, "{%.*s}", (int)n, at + 20);
    if (!copy)
        return rp_err_nomem(r->err, "reading attributes");
    return rp_program_add_attr(r->p, RP_ATTR_LHS_CONTRACTING_DIMS, copy, strlen(copy), r->err);
}

/* What stands between the operands and the types: from the first word that is no operand on. */
static enum rp_code keep_attrs(struct mlir *r, const struct statement *s)
{
    const char *at = s->attrs, *end = s->attrs_end;
    uint32_t key;

    while (at < end && (*at == ' ' || *at == ',' || *at == '(' || *at == ')' || *at == '%')) {
        if (*at == '%')
            while (at < end && *at != ' ' && *at != ',' && *at != ')')
                at++;
        else
            at++;
    }
    while (end > at && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == ','))
        end--;
    if (at == end || memchr(at, '%', (size_t)(end - at)))
        return RP_OK;
    RP_TRY(rp_program_string(r->p, "attributes", 10, &key, r->err));
    return rp_program_add_attr(r->p, key, at, (size_t)(end - at), r->err);
}

/* '@name' is a function where it is called, and the target of a custom call. */
static enum rp_code add_symbol(struct mlir *r, const struct statement *s)
{
    char *target;

    if (s->op.code == RP_OP_CALL) {
        RP_TRY(rp_vec_push(&r->waiting, (uint32_t)r->p->called.n, r->err));
        RP_TRY(rp_vec_push(&r->waiting, s->called, r->err));
        return rp_program_add_called(r->p, 0, r->err);
    }
    if (s->op.code != RP_OP_CUSTOM_CALL)
        return RP_OK;
    target = rp_arena_printf(&r->p->arena, "\"%s\"", rp_program_text(r->p, s->called));
    if (!target)
        return rp_err_nomem(r->err, "reading a custom call");
    return rp_program_add_attr(r->p, RP_ATTR_CUSTOM_CALL_TARGET, target, strlen(target), r->err);
}

static enum rp_code add_statement(struct mlir *r, struct statement *s, size_t first_operand,
                                  uint32_t *id)
{
    const char *from = s->colon ? s->colon : s->types_end, *arrow;

    for (arrow = s->types_end; arrow > from + 1; arrow--)
        if (arrow[-1] == '>' && arrow[-2] == '-')
            break;
    if (arrow > from + 1)
        from = arrow;
    else if (s->op.code == RP_OP_SELECT) /* condition first, then what is selected */
        from = memrchr(from, ',', (size_t)(s->types_end - from))
                   ? memrchr(from, ',', (size_t)(s->types_end - from))
                   : from;
    RP_TRY(mlir_types(r, from, s->types_end, &s->op.shape));
    if (r->p->nops >= r->limits.events)
        return rp_err_set(r->err, RP_LIMIT, "more than %llu operations",
                          (unsigned long long)r->limits.events);
    RP_TRY(rp_program_add_op(r->p, &s->op, id, r->err));
    for (size_t i = first_operand; i + 1 < r->operands.n; i += 2)
        RP_TRY(rp_program_add_operand(r->p, r->operands.at[i], r->operands.at[i + 1], r->err));
    if (s->op.code == RP_OP_DOT)
        RP_TRY(dot_dims(r, s));
    RP_TRY(keep_attrs(r, s));
    r->p->meta.at[*id] = s->loc; /* a number of locs until the end */
    return s->called == RP_NONE ? RP_OK : add_symbol(r, s);
}

/* "%0:2, %1 = " before an operation */
static enum rp_code results(struct mlir *r, uint32_t *name)
{
    uint32_t id;

    *name = 0;
    while (r->at < r->end && *r->at == '%') {
        RP_TRY(mlir_name_at(r, &id));
        *name = *name ? *name : id;
        RP_TRY(rp_vec_push(&r->results, id, r->err));
        if (r->at < r->end && *r->at == ':')
            for (r->at++; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
                ;
        mlir_space(r);
        if (r->at < r->end && *r->at == ',')
            r->at++;
        mlir_space(r);
    }
    if (!*name)
        return RP_OK;
    if (r->at >= r->end || *r->at != '=')
        return MLIR_FAIL(r, r->at < r->end ? r->at : r->end, "expected '=' behind the results");
    r->at++;
    mlir_space(r);
    return RP_OK;
}

static enum rp_code statement(struct mlir *r)
{
    struct statement s = {.called = RP_NONE};
    size_t first_result = r->results.n, first_operand = r->operands.n;
    const char *where;
    struct rp_attr name;
    uint32_t id;

    RP_TRY(results(r, &s.op.name));
    where = r->at;
    if (r->at < r->end && *r->at == '"') {
        r->at = mlir_string_end(r, where);
        name = (struct rp_attr){where + 1, (uint32_t)(r->at - where - 2), 0};
    } else {
        name = mlir_word(r);
    }
    if (!name.n || name.n > 200)
        return MLIR_FAIL(r, where < r->end ? where : r->end, "expected an operation");
    RP_TRY(opcode(r, name, &s.op));
    RP_TRY(body(r, &s));
    RP_TRY(add_statement(r, &s, first_operand, &id));
    for (size_t i = first_result; i < r->results.n; i++)
        RP_TRY(mlir_define(r, r->results.at[i], id));
    r->results.n = first_result;
    r->operands.n = first_operand;
    return RP_OK;
}

/* Statements up to '}'. */
enum rp_code mlir_block(struct mlir *r)
{
    for (;;) {
        mlir_space(r);
        if (r->at >= r->end)
            return MLIR_FAIL(r, r->end, "the text ends inside of a function");
        if (*r->at == '}') {
            r->at++;
            return RP_OK;
        }
        if (*r->at != '^') {
            RP_TRY(statement(r));
            continue;
        }
        r->at++;
        mlir_word(r);
        if (r->at < r->end && *r->at == '(')
            RP_TRY(mlir_arguments(r, RP_OP_FOREIGN));
        if (r->at < r->end && *r->at == ':')
            r->at++;
    }
}
