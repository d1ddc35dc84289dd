/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes lists of operations. Neighbourhoods and paths stay within one computation and are found
 * breadth first over operands and users; each search is linear in the size of the computation.
 */
#include "explain/graph/graph.h"

#include "base/decides.h"
#include "base/text.h"
#include "program/opcodes.h"
#include "program/order.h"
#include "program/structure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LINES 10000
RP_LIMIT(MOST_LINES, "lines", "a last one says how many are left out");
#define MOST_OPERANDS 8
RP_LIMIT(MOST_OPERANDS, "operands in a line", "it says how many more there are");
#define MOST_NAMES 100000
RP_LIMIT(MOST_NAMES, "names", "with more names, a wrong one gets no suggestion");
#define NEAR_NAME 4
RP_LIMIT(NEAR_NAME, "letters", "names that differ by as many are not suggested");

/* ---- lines ---- */

static const char *operand_text(const struct rp_program *p, uint32_t op, struct rp_arena *arena)
{
    struct rp_ids operands = rp_op_operands(p, op);
    const char *text = "";

    if (p->code.at[op] == RP_OP_PARAMETER)
        return rp_arena_textf(arena, "%lld", (long long)p->value.at[op]);
    for (uint32_t i = 0; i < operands.n; i++) {
        const char *name = rp_program_text(p, p->op_name.at[operands.at[i]]);

        if (i == MOST_OPERANDS && operands.n > MOST_OPERANDS + 1)
            return rp_arena_textf(arena, "%s, ... %u more", text, operands.n - i);
        if (p->flags.at[operands.at[i]] & RP_OPS_IMPLICIT &&
            p->code.at[operands.at[i]] != RP_OP_GET_TUPLE_ELEMENT) /* it has no name */
            text = rp_arena_textf(arena, "%s%s%s(...)", text, i ? ", " : "",
                                  rp_op_opcode_name(p, operands.at[i]));
        else if (p->flags.at[operands.at[i]] & RP_OPS_IMPLICIT)
            text = rp_arena_textf(arena, "%s%s%%%s#%lld", text, i ? ", " : "", name,
                                  (long long)p->value.at[operands.at[i]]);
        else
            text = rp_arena_textf(arena, "%s%s%%%s", text, i ? ", " : "", name);
    }
    return text;
}

/* Writes "%d = f32[4,2] dot(%p, %q) a.py:7" to the arena. */
static const char *op_line(const struct rp_program *p, uint32_t op, struct rp_arena *arena)
{
    const char *operands = operand_text(p, op, arena);
    struct rp_source_line at;
    char shape[200];

    rp_shape_text(p, p->shape.at[op], true, shape, sizeof shape);
    if (!rp_op_source(p, op, &at))
        return rp_arena_textf(arena, "%%%s = %s %s(%s)", rp_program_text(p, p->op_name.at[op]),
                              shape, rp_op_opcode_name(p, op), operands);
    return rp_arena_textf(arena, "%%%s = %s %s(%s)  %s:%d", rp_program_text(p, p->op_name.at[op]),
                          shape, rp_op_opcode_name(p, op), operands, rp_text_file(at.file),
                          at.line);
}

static enum rp_code add_line(struct rp_listing *out, const char *line, struct rp_arena *arena,
                             struct rp_err *err)
{
    RP_TRY(rp_arena_check(arena, "listing operations", err));
    if (out->n == out->cap) { /* the old list stays in the arena, which is fine for short lists */
        size_t cap = out->cap ? 2 * out->cap : 64;
        const char **lines = RP_ARENA_NEW(arena, const char *, cap);

        RP_TRY(rp_err_need(lines, err, "listing operations"));
        if (out->n)
            memcpy(lines, out->lines, out->n * sizeof *lines);
        out->lines = lines;
        out->cap = cap;
    }
    out->lines[out->n++] = line;
    return RP_OK;
}

/* The last line counts the lines that did not fit. */
static enum rp_code end_lines(struct rp_listing *out, struct rp_arena *arena, struct rp_err *err)
{
    size_t left_out = out->left_out;

    out->left_out = 0;
    if (!left_out)
        return RP_OK;
    return add_line(out, rp_arena_textf(arena, "... and %zu more", left_out), arena, err);
}

static enum rp_code add_op(struct rp_listing *out, const struct rp_program *p, uint32_t op,
                           const char *mark, struct rp_arena *arena, struct rp_err *err)
{
    if (!out->ops)
        out->ops = RP_ARENA_NEW(arena, bool, (size_t)p->nops + 1);
    RP_TRY(rp_err_need(out->ops, err, "listing operations"));
    out->ops[op] = true;
    out->left_out += out->n >= MOST_LINES;
    if (out->n >= MOST_LINES)
        return RP_OK;
    const char *line = op_line(p, op, arena);
    if (*mark)
        line = rp_arena_textf(arena, "%s%s", mark, line);
    return add_line(out, line, arena, err);
}

/* ---- finding ---- */

static const char *nearest_name(const struct rp_program *p, const char *name)
{
    unsigned best = NEAR_NAME, distance;
    const char *found = NULL;

    for (uint32_t op = 0; op < p->nops && op < MOST_NAMES; op++) {
        const char *other = rp_program_text(p, p->op_name.at[op]);

        distance = rp_text_distance(name, other);
        if (distance < best) {
            best = distance;
            found = other;
        }
    }
    return found;
}

/* Finds an operation by name, with or without '%'; operations of the entry are preferred. */
static enum rp_code find_op(const struct rp_program *p, const char *name, uint32_t *op,
                            struct rp_err *err)
{
    name += *name == '%';
    uint32_t id = rp_strtab_find(&p->strings, name, strlen(name));
    *op = RP_NONE;
    for (uint32_t i = 0; id != UINT32_MAX && i < p->nops; i++) {
        if (p->op_name.at[i] != id || p->flags.at[i] & RP_OPS_IMPLICIT)
            continue;
        if (*op == RP_NONE || p->computation.at[i] == p->entry)
            *op = i;
    }
    if (*op != RP_NONE)
        return RP_OK;
    const char *near = nearest_name(p, name);
    return rp_err_set(err, RP_USAGE, "no operation named '%s'%s%s%s", name,
                      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* ---- the tree of calls ---- */

struct tree {
    const struct rp_program *p;
    struct rp_arena *arena;
    struct rp_listing *out;
    struct rp_costs costs;
    struct rp_hashes hashes;
    struct rp_err *err;
};

struct called { /* called: identical computations */
    uint32_t first, times;
};

/* Lists what a computation calls, identical ones once; in the arena. */
static enum rp_code list_called(struct tree *t, const struct rp_computation *c, struct called **out,
                                size_t *n)
{
    const struct rp_program *p = t->p;
    uint32_t from = p->called_begin.at[c->first], to = p->called_begin.at[c->first + c->n];
    RP_SCOPED(rp_map_release) struct rp_map seen = {0};

    *n = 0;
    *out = RP_ARENA_NEW(t->arena, struct called, (size_t)(to - from) + 1);
    RP_TRY(rp_err_need(*out, t->err, "listing computations"));
    for (uint32_t k = from; k < to; k++) {
        uint32_t at, fresh = (uint32_t)*n;

        RP_TRY(rp_map_intern(&seen, t->hashes.computation[p->called.at[k]], fresh, &at, t->err));
        if (at == fresh)
            (*out)[(*n)++].first = p->called.at[k];
        (*out)[at].times++;
    }
    return RP_OK;
}

static enum rp_code tree_level(struct tree *t, struct called at, unsigned depth)
{
    static const char dots[] = ". . . . . . . . . . . . . . . . ";
    const struct rp_program *p = t->p;
    const struct rp_computation *c = &p->computations.at[at.first];
    struct called *called;
    char many[24] = "";
    size_t n;

    t->out->left_out += t->out->n >= MOST_LINES;
    if ((size_t)2 * depth >= sizeof dots || t->out->n >= MOST_LINES)
        return RP_OK;
    if (at.times > 1)
        snprintf(many, sizeof many, "%u x ", at.times);
    RP_TRY(add_line(t->out,
                    rp_arena_textf(t->arena, "%.*s%s%s: %u operations, %.4g flops", (int)depth * 2,
                                   dots, many, rp_program_text(p, c->name), c->n,
                                   t->costs.computation[at.first].flops),
                    t->arena, t->err));
    RP_TRY(list_called(t, c, &called, &n));
    for (size_t i = 0; i < n; i++)
        RP_TRY(tree_level(t, called[i], depth + 1));
    return RP_OK;
}

enum rp_code rp_list_tree(const struct rp_program *p, struct rp_arena *arena,
                          struct rp_listing *out, struct rp_err *err)
{
    struct tree t = {.p = p, .arena = arena, .out = out, .err = err};

    RP_TRY(rp_program_count(p, arena, &t.costs, err));
    RP_TRY(rp_program_hash(p, arena, &t.hashes, err));
    if (p->entry == RP_NONE)
        return RP_OK;
    RP_TRY(tree_level(&t, (struct called){p->entry, 1}, 0));
    return end_lines(out, arena, err);
}

/* ---- neighbours ---- */

/* Marks the operations one step further: 0 is unmarked, k is k - 1 steps away. False if there are
   none. */
static bool mark_next(const struct rp_program *p, const struct rp_computation *c, uint32_t *mark,
                      uint32_t step, bool up, bool down)
{
    bool marked = false;

    for (uint32_t op = c->first; op < c->first + c->n; op++) {
        struct rp_ids operands = rp_op_operands(p, op);

        for (uint32_t i = 0; i < operands.n; i++) {
            uint32_t *reader = &mark[op - c->first], *read = &mark[operands.at[i] - c->first];

            uint32_t *next = up && *reader == step && !*read     ? read
                             : down && *read == step && !*reader ? reader
                                                                 : NULL;

            if (!next)
                continue;
            *next = step + 1;
            marked = true;
        }
    }
    return marked;
}

/* Reads "OP", or "OP N" with the distance. */
static enum rp_code near_op(const struct rp_program *p, const char *text, unsigned *hops,
                            struct rp_arena *arena, uint32_t *op, struct rp_err *err)
{
    const char *space = strchr(text, ' ');
    char *end, *name = rp_arena_copy(arena, text, space ? (size_t)(space - text) : strlen(text));

    RP_TRY(rp_err_need(name, err, "listing operations"));
    if (space) {
        unsigned long n = strtoul(space + 1, &end, 10);
        if (*end || end == space + 1)
            return rp_err_set(err, RP_USAGE, "'%s' is not a number of steps", space + 1);
        *hops = n < 1000 ? (unsigned)n : 1000;
    }
    return find_op(p, name, op, err);
}

enum rp_code rp_list_near(const struct rp_program *p, const char *name, unsigned hops,
                          struct rp_arena *arena, struct rp_listing *out, struct rp_err *err)
{
    uint32_t op, *mark;

    RP_TRY(near_op(p, name, &hops, arena, &op, err));
    const struct rp_computation *c = &p->computations.at[p->computation.at[op]];
    mark = RP_ARENA_NEW(arena, uint32_t, c->n);
    RP_TRY(rp_err_need(mark, err, "listing operations"));
    mark[op - c->first] = 1;
    for (uint32_t step = 1; step <= hops && mark_next(p, c, mark, step, true, true);)
        step++;
    for (uint32_t i = 0; i < c->n; i++)
        if (mark[i] && !(p->flags.at[c->first + i] & RP_OPS_IMPLICIT))
            RP_TRY(add_op(out, p, c->first + i, c->first + i == op ? "> " : "  ", arena, err));
    return end_lines(out, arena, err);
}

/* ---- paths ---- */

/* Reads the ends of "A,B" or "A B". */
static enum rp_code path_ends(const struct rp_program *p, const char *ends, struct rp_arena *arena,
                              uint32_t *from, uint32_t *to, struct rp_err *err)
{
    size_t n = strcspn(ends, ", ");
    const char *second = ends + n + strspn(ends + n, ", ");
    char *first = rp_arena_copy(arena, ends, n);

    RP_TRY(rp_err_need(first, err, "finding a path"));
    if (!n || !*second)
        return rp_err_set(err, RP_USAGE, "a path needs two operations: 'A,B'");
    RP_TRY(find_op(p, first, from, err));
    RP_TRY(find_op(p, second, to, err));
    if (p->computation.at[*from] != p->computation.at[*to])
        return rp_err_set(err, RP_USAGE, "'%s' and '%s' are in different computations", first,
                          second);
    return RP_OK;
}

/* An operand of op that is one step nearer to the start. */
static uint32_t step_back(const struct rp_program *p, const struct rp_computation *c,
                          const uint32_t *mark, uint32_t op)
{
    struct rp_ids operands = rp_op_operands(p, op);

    for (uint32_t i = 0; i < operands.n; i++)
        if (mark[operands.at[i] - c->first] == mark[op - c->first] - 1)
            return operands.at[i];
    return RP_NONE;
}

/* Finds the distance, counted from 1, from `from` to each operation that its data reaches; 0: not
   reached. */
static enum rp_code measure_paths(const struct rp_program *p, uint32_t from, struct rp_arena *arena,
                                  uint32_t **out, struct rp_err *err)
{
    const struct rp_computation *c = &p->computations.at[p->computation.at[from]];
    uint32_t *order = RP_ARENA_NEW(arena, uint32_t, c->n);
    uint32_t *mark = RP_ARENA_NEW(arena, uint32_t, c->n);

    *out = mark;
    RP_TRY(rp_err_need(mark && order, err, "finding a path"));
    RP_TRY(rp_computation_order(p, p->computation.at[from], arena, order, err));
    mark[from - c->first] = 1;
    for (uint32_t k = 0; k < c->n; k++) {
        struct rp_ids operands = rp_op_operands(p, order[k]);
        uint32_t *own = &mark[order[k] - c->first];

        for (uint32_t i = 0; order[k] != from && i < operands.n; i++) {
            uint32_t step = mark[operands.at[i] - c->first];

            if (step && (!*own || *own > step + 1))
                *own = step + 1;
        }
    }
    return RP_OK;
}

static enum rp_code no_path(const struct rp_program *p, uint32_t from, uint32_t to,
                            struct rp_arena *arena, struct rp_err *err)
{
    const struct rp_computation *c = &p->computations.at[p->computation.at[to]];
    const char *a = rp_program_text(p, p->op_name.at[from]);
    const char *b = rp_program_text(p, p->op_name.at[to]);
    uint32_t *mark;

    RP_TRY(measure_paths(p, to, arena, &mark, err));
    return rp_err_set(err, RP_USAGE, "no data flows from '%s' to '%s'%s%s%s%s", a, b,
                      mark[from - c->first] ? ", only in the opposite direction: --path " : "",
                      mark[from - c->first] ? b : "", mark[from - c->first] ? "," : "",
                      mark[from - c->first] ? a : "");
}

enum rp_code rp_list_path(const struct rp_program *p, const char *ends, struct rp_arena *arena,
                          struct rp_listing *out, struct rp_err *err)
{
    uint32_t from, to, *mark, *way, n = 0;

    RP_TRY(path_ends(p, ends, arena, &from, &to, err));
    const struct rp_computation *c = &p->computations.at[p->computation.at[from]];
    way = RP_ARENA_NEW(arena, uint32_t, (size_t)c->n + 1);
    RP_TRY(rp_err_need(way, err, "finding a path"));
    RP_TRY(measure_paths(p, from, arena, &mark, err));
    if (!mark[to - c->first])
        return no_path(p, from, to, arena, err);
    for (uint32_t op = to; op != RP_NONE; op = op == from ? RP_NONE : step_back(p, c, mark, op))
        way[n++] = op;
    while (n--)
        RP_TRY(add_op(out, p, way[n], "", arena, err));
    return end_lines(out, arena, err);
}

/* ---- grep ---- */

struct condition {
    const char *key, *value;
    bool part; /* '~': the text need only be contained */
};

static bool condition_fits(const struct condition *w, const char *text)
{
    return w->part ? strstr(text, w->value) != NULL : strcmp(text, w->value) == 0;
}

static bool op_fits(const struct rp_program *p, uint32_t op, const struct condition *w)
{
    char shape[512];

    if (!strcmp(w->key, "op"))
        return condition_fits(w, rp_op_opcode_name(p, op));
    if (!strcmp(w->key, "name"))
        return condition_fits(w, rp_program_text(p, p->op_name.at[op]));
    if (!strcmp(w->key, "scope"))
        return condition_fits(w, rp_program_text(p, p->metas.at[p->meta.at[op]].op_name));
    if (!strcmp(w->key, "in"))
        return condition_fits(w,
                              rp_program_text(p, p->computations.at[p->computation.at[op]].name));
    if (!strcmp(w->key, "line")) {
        struct rp_source_line at;
        char text[512];

        if (!rp_op_source(p, op, &at))
            return false;
        snprintf(text, sizeof text, "%s:%d", at.file, at.line);
        return condition_fits(w, text) || condition_fits(w, rp_text_file(text)) ||
               (!w->part && condition_fits(w, rp_text_file(at.file)));
    }
    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    return condition_fits(w, shape);
}

static enum rp_code parse_conditions(const char *text, struct rp_arena *arena,
                                     struct condition *words, size_t *n, struct rp_err *err)
{
    static const char *const keys[] = {"op", "name", "shape", "line", "scope", "in", NULL};
    char *copy = rp_arena_strdup(arena, text), *next = copy, *word;

    *n = 0;
    RP_TRY(rp_err_need(copy, err, "searching operations"));
    while ((word = strsep(&next, " "))) {
        size_t len = strcspn(word, "=~"), i = 0;

        if (!*word)
            continue;
        if (!word[len] || *n == 16)
            return rp_err_set(err, RP_USAGE,
                              "'%s' is not a condition; write 'op=dot' or 'shape~bf16'", word);
        words[*n].part = word[len] == '~';
        word[len] = '\0';
        while (keys[i] && strcmp(keys[i], word) != 0)
            i++;
        if (!keys[i])
            return rp_err_set(err, RP_USAGE,
                              "unknown key '%s'; use op, name, shape, line, scope or in", word);
        words[*n].key = word;
        words[(*n)++].value = word + len + 1;
    }
    return RP_OK;
}

enum rp_code rp_list_grep(const struct rp_program *p, const char *text, struct rp_arena *arena,
                          struct rp_listing *out, struct rp_err *err)
{
    struct condition words[16];
    size_t n;

    RP_TRY(parse_conditions(text, arena, words, &n, err));
    for (uint32_t op = 0; op < p->nops; op++) {
        bool all = !(p->flags.at[op] & RP_OPS_IMPLICIT);

        for (size_t i = 0; all && i < n; i++)
            all = op_fits(p, op, &words[i]);
        if (all)
            RP_TRY(add_op(out, p, op, "", arena, err));
    }
    return end_lines(out, arena, err);
}
