/* SPDX-License-Identifier: Apache-2.0 */
#include "query/aggregates.h"

#if RP_HAVE_SQLITE
#include <ctype.h>
#include <string.h>

#define MOST_TOKENS 2000
#define MOST_EDITS  100

enum token_type { WORD, QUOTED, LITERAL, MARK };

struct token {
    uint8_t type;
    int depth; /* of brackets around it */
    const char *at;
    size_t n;
};

/* Replaces tokens first to last by a text. */
struct edit {
    size_t first, last;
    char text[64];
};

struct rewriting {
    const struct rp_vtab_table *tables;
    struct rp_aggregates *out;
    struct token tokens[MOST_TOKENS];
    size_t n;
    struct edit edits[MOST_EDITS];
    size_t nedits;
};

/* One SELECT: tokens from begin to end. */
struct scope {
    struct rewriting *r;
    size_t begin, end, from, after; /* `from` is its table; `after` comes behind its alias */
    const struct token *alias;      /* NULL: it has none */
    struct rp_groups_table *g;
    bool adds_up; /* equal rows may be merged into one */
};

/* ------------------------------------------------------------------ tokens */

static size_t space_length(const char *at)
{
    if (isspace((unsigned char)*at))
        return 1;
    if (at[0] == '-' && at[1] == '-')
        return strcspn(at, "\n");
    if (at[0] != '/' || at[1] != '*')
        return 0;
    const char *end = strstr(at + 2, "*/");
    return end ? (size_t)(end + 2 - at) : strlen(at);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool read_tokens(struct rewriting *r, const char *sql)
{
    int depth = 0;

    while (*sql) {
        size_t space = space_length(sql);
        struct token *t = &r->tokens[r->n];

        if (space) {
            sql += space;
            continue;
        }
        if (++r->n == MOST_TOKENS)
            return false;

        /* A token is a word, a number, a quoted text, or a sign. */
        t->at = sql;
        t->n = 1;
        t->type = MARK;
        if (*sql == '\'' || *sql == '"' || *sql == '`' || *sql == '[') {
            t->type = *sql == '\'' ? LITERAL : QUOTED;

            char close = *sql == '[' ? ']' : *sql;
            const char *end = sql + 1;
            while (*end && (*end != close || end[1] == close))
                end += *end == close ? 2 : 1;
            t->n = (size_t)(end - sql) + (*end != '\0');
        } else if (is_word(*sql)) {
            t->type = isdigit((unsigned char)*sql) ? LITERAL : WORD;
            while (is_word(sql[t->n]) || (t->type == LITERAL && sql[t->n] == '.'))
                t->n++;
        }
        depth -= *sql == ')';
        t->depth = depth;
        depth += *sql == '(';
        sql += t->n;
    }
    return depth == 0;
}

static bool is(const struct token *t, const char *word)
{
    size_t n = strlen(word);

    return t->n == n && t->type != LITERAL && !sqlite3_strnicmp(t->at, word, (int)n);
}

static bool is_one_of(const struct token *t, const char *const *words)
{
    while (*words && !is(t, *words))
        words++;
    return *words != NULL;
}

/* Whether it is a name, which may be in quotes. */
static bool is_name(const struct token *t, const char *name)
{
    struct token inside = {.type = WORD, .at = t->at + 1, .n = t->n - 2};

    return t->type == WORD ? is(t, name) : t->type == QUOTED && t->n > 2 && is(&inside, name);
}

static bool is_same_name(const struct token *a, const struct token *b)
{
    char text[64];

    if (b->n >= sizeof text)
        return false;
    memcpy(text, b->at, b->n);
    text[b->n] = '\0';
    return a->type == b->type ? is(a, text) : b->type == WORD && is_name(a, text);
}

static bool is_keyword(const struct token *t)
{
    static const char *const words[] = {
        "select", "from",    "where",    "group",  "order",   "by",    "having", "limit",
        "offset", "asc",     "desc",     "and",    "or",      "not",   "in",     "is",
        "null",   "between", "like",     "glob",   "case",    "when",  "then",   "else",
        "end",    "as",      "distinct", "cast",   "escape",  "nulls", "first",  "last",
        "true",   "false",   "all",      "isnull", "notnull", NULL};

    return t->type == WORD && is_one_of(t, words);
}

/* ------------------------------------------------------------------ sums */

static const struct rp_table_column *find_column(const struct scope *s, const struct token *t)
{
    const struct rp_table *table = s->g->t.table;

    for (size_t i = 0; i < table->ncolumns; i++)
        if (is_name(t, table->columns[i].name))
            return &table->columns[i];
    return NULL;
}

static bool is_this_table(const struct scope *s, const struct token *t)
{
    return s->alias ? is_same_name(t, s->alias) : is_name(t, s->g->t.table->name);
}

/* Returns the number of the sum, or -1. */
static int find_sum(struct scope *s, uint8_t what, const struct rp_table_column *column)
{
    for (size_t i = 0; i < s->g->t.nsums; i++)
        if (s->g->sums[i].what == what && s->g->sums[i].column == column)
            return (int)i;
    if (s->g->t.nsums == RP_GROUPS_SUMS)
        return -1;
    s->g->sums[s->g->t.nsums] = (struct rp_groups_sum){what, column};
    return (int)s->g->t.nsums++;
}

static struct edit *add_edit(struct scope *s, size_t first, size_t last)
{
    struct rewriting *r = s->r;

    if (r->nedits == MOST_EDITS)
        return NULL;
    r->edits[r->nedits] = (struct edit){.first = first, .last = last};
    return &r->edits[r->nedits++];
}

/* Rewrites a function of a column, or of all rows (NULL). */
static bool put_sum(struct scope *s, size_t first, size_t last,
                    const struct rp_table_column *column)
{
    const struct token *t = &s->r->tokens[first];
    bool count = is(t, "count"), mean = is(t, "avg"), most = is(t, "max");
    uint8_t what = count                  ? column ? RP_GROUPS_VALUES : RP_GROUPS_ROWS
                   : is(t, "sum") || mean ? RP_GROUPS_SUM
                   : most                 ? RP_GROUPS_MOST
                                          : RP_GROUPS_LEAST;
    int i = find_sum(s, what, column), values = mean ? find_sum(s, RP_GROUPS_VALUES, column) : 0;
    struct edit *edit = i < 0 || values < 0 ? NULL : add_edit(s, first, last);

    if (!edit)
        return false;
    if (count)
        sqlite3_snprintf(sizeof edit->text, edit->text, "coalesce(sum(\"#%d\"), 0)", i);
    else if (mean)
        sqlite3_snprintf(sizeof edit->text, edit->text, "(total(\"#%d\") / sum(\"#%d\"))", i,
                         values);
    else
        sqlite3_snprintf(sizeof edit->text, edit->text, "%.3s(\"#%d\")", t->at, i);
    s->adds_up = true;
    return true;
}

/* ------------------------------------------------------------------ one SELECT */

/* Reads "(column)", whose bracket is token i. Returns the token behind it, or 0 if the brackets
   contain anything but one column of this table. */
static size_t only_column(const struct scope *s, size_t i, const struct rp_table_column **out)
{
    const struct token *t = s->r->tokens;

    if (is(&t[i + 2], ".") && is_this_table(s, &t[i + 1]))
        i += 2;
    *out = i + 2 < s->end && is(&t[i + 2], ")") ? find_column(s, &t[i + 1]) : NULL;
    return *out ? i + 3 : 0;
}

/* Reads a function at i and sets the token with which to continue. Returns false to leave the
   SELECT as it is. */
static bool read_function(struct scope *s, size_t i, size_t *next)
{
    static const char *const sums[] = {"count", "sum", "avg", NULL}, *const ends[] = {"min", "max",
                                                                                      NULL};
    const struct token *t = s->r->tokens;
    const struct rp_table_column *column = NULL;
    bool is_sum = is_one_of(&t[i], sums), is_end = is_one_of(&t[i], ends);
    size_t after = only_column(s, i + 1, &column);

    *next = i + 2;
    if (!is_sum && !is_end) {
        /* Whether it is a function whose value depends only on its arguments, with one value for
           each row. */
        static const char *const words[] = {
            "abs",    "round",  "coalesce", "ifnull", "nullif",  "length",    "lower",
            "upper",  "substr", "instr",    "trim",   "ltrim",   "rtrim",     "iif",
            "printf", "format", "like",     "glob",   "replace", "substring", NULL};
        return is_one_of(&t[i], words);
    }
    if (is(&t[i], "count") && is(&t[i + 2], "*") && is(&t[i + 3], ")"))
        return *next = i + 4, put_sum(s, i, i + 3, NULL);
    if (is(&t[i + 2], "distinct")) {
        s->adds_up = true;
        *next = i + 3;
        return true;
    }
    if (!after ||
        (!is(&t[i], "count") && (rp_table_is_text(column) || column->cell == RP_CELL_F64)))
        return is_end; /* of groups it is that of the rows */
    *next = after;
    return put_sum(s, i, after - 1, column);
}

/* Whether a name follows an expression that can have one. */
static bool is_new_name(const struct scope *s, size_t i)
{
    const struct token *before = &s->r->tokens[i - 1];

    return is(before, "as") || is(before, ")") || is(before, "end") || before->type == LITERAL ||
           before->type == QUOTED || (before->type == WORD && !is_keyword(before));
}

static bool is_known_name(const struct scope *s, size_t i)
{
    for (size_t k = s->begin + 1; k < i; k++)
        if (is_new_name(s, k) && is_same_name(&s->r->tokens[i], &s->r->tokens[k]))
            return true;
    return false;
}

static bool read_name(struct scope *s, size_t i, size_t *next)
{
    const struct token *t = s->r->tokens;

    *next = i + 1;
    if (i + 1 < s->end && is(&t[i + 1], ".")) {
        if (!is_this_table(s, &t[i]))
            return false;
        i += 2;
        *next = i + 1;
    } else if (is_new_name(s, i)) {
        return true;
    }
    const struct rp_table_column *column = i < s->end ? find_column(s, &t[i]) : NULL;
    if (!column)
        return *next == i + 1 && is_known_name(s, i);
    s->g->uses[column - s->g->t.columns] += 1 + (i + 1 < s->end && is(&t[i + 1], "between"));
    return true;
}

/* Whether a comma is in brackets that are neither arguments nor a list, which is then a row of
   values. */
static bool opens_row(const struct scope *s, size_t i)
{
    const struct token *t = s->r->tokens;

    for (size_t k = i + 1; k < s->end && t[k].depth > t[i].depth; k++)
        if (t[k].depth == t[i].depth + 1 && is(&t[k], ","))
            return !is(&t[i - 1], "in");
    return false;
}

static bool read_part(struct scope *s, size_t i, size_t *next)
{
    static const char *const before_all[] = {"select", "distinct", "all", ",", ".", NULL};
    static const char *const unknown[] = {"over", "window", "filter", NULL};
    const struct token *t = &s->r->tokens[i];
    bool call = i + 1 < s->end && is(&t[1], "(");

    *next = i + 1;
    if (t->type == LITERAL)
        return true;
    if (t->type == MARK)
        return is(t, "*")   ? !is_one_of(t - 1, before_all)
               : is(t, "(") ? !opens_row(s, i)
                            : strchr("),.+-*/%<>=!|&~", *t->at) != NULL;
    if (is_keyword(t)) {
        s->adds_up |= is(t, "group") || (is(t, "distinct") && i == s->begin + 1);
        return i == s->begin || (!is(t, "select") && !is(t, "from"));
    }
    if (is_one_of(t, unknown))
        return false;
    if (call && t->type == WORD)
        return read_function(s, i, next);
    return !call && read_name(s, i, next);
}

/* Finds FROM, a table and the clauses that may follow. */
static bool read_from(struct scope *s)
{
    static const char *const clauses[] = {"where", "group", "order", "limit", "having", NULL};
    const struct token *t = s->r->tokens;
    size_t i = s->begin;

    while (i < s->end && !(is(&t[i], "from") && t[i].depth == t[s->begin].depth))
        i++;
    if (i + 1 >= s->end || s->r->out->n == RP_AGGREGATES_TABLES)
        return false;
    s->from = ++i;
    s->g = &s->r->out->tables[s->r->out->n];
    *s->g = (struct rp_groups_table){.t.table = NULL};
    for (size_t k = 0; k < RP_TABLE_COUNT; k++)
        if (is_name(&t[i], s->r->tables[k].table->name))
            s->g->t = s->r->tables[k];
    if (!s->g->t.table)
        return false;
    i += 1 + (i + 1 < s->end && is(&t[i + 1], "as"));
    if (i < s->end && t[i].type != MARK && !is_one_of(&t[i], clauses))
        s->alias = &t[i++];
    s->after = i;
    return i >= s->end || is_one_of(&t[i], clauses) || is(&t[i], ";");
}

/* Adds the edits of a SELECT, or none. */
static void rewrite_select(struct rewriting *r, size_t begin)
{
    static const char *const joins[] = {"union", "all", "intersect", "except", NULL};
    struct scope s = {.r = r, .begin = begin, .end = begin + 1};
    size_t edits = r->nedits;
    struct edit *edit;
    bool ok = !begin || !is_one_of(&r->tokens[begin - 1], joins);

    while (s.end < r->n && r->tokens[s.end].depth >= r->tokens[begin].depth &&
           !is(&r->tokens[s.end], ";"))
        s.end++;
    ok = ok && read_from(&s);
    for (size_t i = begin; ok && i < s.end;)
        if (i + 1 != s.from)
            ok = read_part(&s, i, &i);
        else if ((edit = add_edit(&s, s.from, s.from)) != NULL) {
            sqlite3_snprintf(sizeof edit->text, edit->text, "\"#%d\"%s%s", (int)r->out->n,
                             s.alias ? "" : " as ", s.alias ? "" : s.g->t.table->name);
            i = s.after;
        } else
            ok = false;
    if (ok && s.adds_up) {
        s.g->t.parts = NULL;
        r->out->n++;
    } else
        r->nedits = edits;
}

/* ------------------------------------------------------------------ all */

/* Whether WITH gives one of its own tables the name of one of ours. */
static bool hides_table(const struct rewriting *r)
{
    bool with = false;

    for (size_t i = 0; i + 1 < r->n; i++) {
        with |= is(&r->tokens[i], "with");
        for (size_t k = 0; with && k < RP_TABLE_COUNT; k++)
            if (is_name(&r->tokens[i], r->tables[k].table->name) &&
                (is(&r->tokens[i + 1], "as") || is(&r->tokens[i + 1], "(")))
                return true;
    }
    return false;
}

static char *apply_edits(const struct rewriting *r, const char *sql)
{
    sqlite3_str *text = sqlite3_str_new(NULL);

    for (size_t i = 0; i < r->nedits; i++) {
        const struct edit *e = &r->edits[i];
        const char *begin = r->tokens[e->first].at;

        sqlite3_str_append(text, sql, (int)(begin - sql));
        sqlite3_str_appendall(text, e->text);
        sql = r->tokens[e->last].at + r->tokens[e->last].n;
    }
    sqlite3_str_appendall(text, sql);
    return sqlite3_str_finish(text);
}

bool rp_aggregates_rewrite(const char *sql, const struct rp_vtab_table *tables,
                           struct rp_aggregates *out)
{
    struct rewriting *r = sqlite3_malloc(sizeof *r);
    bool ok = r != NULL;

    out->n = 0;
    out->sql = NULL;
    if (!r)
        return false;
    r->tables = tables;
    r->out = out;
    r->n = r->nedits = 0;
    if (read_tokens(r, sql) && !hides_table(r))
        for (size_t i = 0; i < r->n; i++)
            if (is(&r->tokens[i], "select"))
                rewrite_select(r, i);
    if (r->nedits)
        ok = (out->sql = apply_edits(r, sql)) != NULL;
    sqlite3_free(r);
    return ok;
}
#endif
