/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements of MLIR have the same form for all operations: results, the name, then pieces up to
 * the end of a line at which no bracket is open and no region of a loop or a reduction follows.
 */
#include "formats/mlir/mlir.h"
#include "program/opcodes.h"

#include <string.h>

/* ---- statements ---- */

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
    if (rp_mlir_is_return(key)) /* a region that contains nothing but a return */
        return false;
    return key.n && look.at < look.end && (*look.at == '=' || *look.at == ',' || *look.at == '}');
}

/* Whether the statement goes on after the end of a line, with regions of loops or reductions. */
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
    struct rp_mlir_statement s;
    const char *colon;     /* the first ':' outside of brackets */
    const char *types_end; /* the types are between */
    bool types_done, reducer, pairs;
};

/* Reads "%iterArg = %0" in the parentheses of a loop, which names %0 in its regions. */
static enum rp_code read_name_or_alias(struct rp_mlir *r, struct statement *s)
{
    struct rp_mlir look = *r;
    uint32_t name;

    RP_TRY(rp_mlir_name_at(&look, &name));
    rp_mlir_space(&look);
    if (!s->colon && look.at + 1 < look.end && *look.at == '=' && look.at[1] != '=') {
        look.at++;
        rp_mlir_space(&look);
        if (look.at < look.end && *look.at == '%') {
            r->at = look.at;
            RP_TRY(rp_mlir_operand(r));
            uint32_t shape = r->p->shape.at[r->operands.at[r->operands.n - 2]];
            return rp_vec_push(&r->args, ((struct rp_mlir_arg){name, name, shape, RP_NONE}),
                               r->err);
        }
    }
    return rp_mlir_operand(r);
}

/* Whether "(%a: type, ..." is here, the names of a region's arguments before the region. */
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

/* Reads one piece of a statement after the name of its operation. */
static enum rp_code read_piece(struct rp_mlir *r, struct statement *s, unsigned *paren)
{
    char c = *r->at;

    if (c == '%')
        return s->colon && !*paren ? rp_mlir_operand(r) : read_name_or_alias(r, s);
    if (c == '@') {
        RP_TRY(rp_mlir_name_at(r, &s->s.called));
        return RP_OK;
    }
    if (c == '"') {
        r->at = rp_mlir_string_end(r, r->at);
        return RP_OK;
    }
    if (c == '{' && !rp_mlir_is_dictionary(r)) {
        s->s.attrs.region = s->s.attrs.region ? s->s.attrs.region : r->at;
        RP_TRY(rp_mlir_queue_region(r));
        s->s.attrs.region_end = r->at;
        return RP_OK;
    }
    if (c == '{' || c == '<' || c == '[')
        return rp_mlir_skip_bracket(r);
    if (c == '(' && !*paren && r->regions.n == s->s.region && (s->reducer || is_at_arguments(r)))
        return rp_mlir_arguments(r);
    if (c == '(') {
        ++*paren;
    } else if (c == ')') {
        if (*paren)
            --*paren;
    } else if (c == ':' && !*paren && !s->colon) {
        s->colon = r->at;
    } else if (rp_mlir_word_char(c)) {
        struct rp_slice w = rp_mlir_word(r);
        if (w.n == 3 && memcmp(w.at, "loc", 3) == 0 && r->at < r->end && *r->at == '(') {
            if (!s->types_done)
                s->types_end = w.at;
            s->types_done = true;
            const char *to = rp_mlir_bracket_end(r, r->at);
            if (to) {
                const char *hash = memmem(r->at, (size_t)(to - r->at), "#loc", 4);
                s->s.loc = 1;
                if (hash)
                    for (hash += 4; *hash >= '0' && *hash <= '9' && s->s.loc < 100000000; hash++)
                        s->s.loc =
                            (s->s.loc == 1 ? 0 : s->s.loc - 1) * 10 + (uint32_t)(*hash - '0') + 1;
                r->at = to;
            }
        } else if (w.n == 7 && memcmp(w.at, "reducer", 7) == 0) {
            s->reducer = true;
        } else if (w.n == 4 && memcmp(w.at, "init", 4) == 0) {
            s->pairs = true;
        } else if (w.n == 7 && memcmp(w.at, "applies", 7) == 0) {
            rp_mlir_space(r);
            s->s.applies = rp_mlir_word(r);
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

    s->s.attrs.at = r->at;
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
    s->s.attrs.end = s->colon ? s->colon : s->types_end;
    return RP_OK;
}

/* In "(%x init: %a), (%y init: %b)" the operands are in pairs; HLO has all values before all
   initial ones. */
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

static enum rp_code read_statement(struct rp_mlir *r)
{
    struct statement s = {.s = {.called = RP_NONE,
                                .operand = r->operands.n,
                                .region = r->regions.n,
                                .args = r->args.n}};
    size_t results = r->results.n;
    struct rp_slice name;
    bool counted;

    r->statements++;
    r->outside.n = 0;
    RP_TRY(read_results(r, &s.s.op.name, &counted));
    RP_TRY(read_operation_name(r, &name));
    RP_TRY(rp_mlir_opcode(r, name, &s.s.op));
    RP_TRY(read_body(r, &s));
    if (!rp_mlir_is_return(name)) {
        /* The types of the results: those after the arrow, or if there is none, all. */
        const char *from = s.colon ? s.colon : s.types_end, *arrow;
        for (arrow = s.types_end; arrow > from + 1; arrow--)
            if (arrow[-1] == '>' && arrow[-2] == '-')
                break;
        if (arrow > from + 1)
            from = arrow;
        else if (s.s.op.code == RP_OP_SELECT) /* the condition comes first, then the operands */
            from = memrchr(from, ',', (size_t)(s.types_end - from))
                       ? memrchr(from, ',', (size_t)(s.types_end - from))
                       : from;
        RP_TRY(rp_mlir_types(r, from, s.types_end, &s.s.op.shape));

        /* In "reducer(%a0: t, %b0: t) (%a1: t, %b1: t)" the arguments are in pairs; HLO has all a
           before all b. */
        size_t n = r->args.n - s.s.args;
        if (s.reducer && n >= 4 && !(n % 2)) {
            for (size_t i = 0; i < n; i++)
                RP_TRY(rp_vec_push(&r->args, r->args.at[s.s.args + (i % (n / 2)) * 2 + i / (n / 2)],
                                   r->err));
            memmove(r->args.at + s.s.args, r->args.at + s.s.args + n, n * sizeof *r->args.at);
            r->args.n -= n;
        }
        RP_TRY(order_inits(r, &s, s.s.operand));
    }
    return rp_mlir_add(r, &s.s, name, results, counted);
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
        if (*r->at == '^') {
            /* Further blocks, "^bb1(%a: type):", mean branches, which are not supported. */
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
        } else
            RP_TRY(read_statement(r));
    }
}
