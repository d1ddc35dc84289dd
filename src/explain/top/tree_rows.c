/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins the trees of all ranks, and selects the rows that are shown. Nodes with the same path are
 * added up. Then, from the top:
 *
 *   - siblings that differ in a number only, have the same kinds of children and the same shapes,
 *     and take about as long, become one: "Block_0..11"; the i-th child of a name of the one is
 *     that of the other
 *   - a node that launches nothing itself and has one child is a wrapper, and becomes one with it:
 *     "Model > Block_0..11"; a module that consists of one operator is shown as that
 *   - the rows with most time are kept; a child has no more than its parent, so that these are a
 *     tree again. What is left out below a node is a row of its own: the parts add up.
 */
#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/strtab.h"
#include "explain/top/tree.h"
#include "result/print_units.h"
#include "result/result.h"

#include <reprise/result.h>
#include <stdlib.h>
#include <string.h>

#define ALIKE 0.2
RP_DECISION(
    ALIKE, "of the median",
    "layers of one kind differ by their waits, and layers of another kind by more than a fifth",
    "explain/alike_siblings_have_an_edge");
#define LEAST 0.005
RP_LIMIT(LEAST, "of the whole",
         "rows with less are in a row 'rest', unless '--limit' asks for them");
#define SCREEN 30
RP_LIMIT(SCREEN, "rows", "the others are in rows 'rest', unless '--limit' asks for more");
#define MOST_NAMES 3
RP_LIMIT(MOST_NAMES, "names of a chain of wrappers", "on the screen; '…' stands for those between");

/* ------------------------------------------------------------------ the answer */

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_tree_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(id, I64, NONE, NULL, "number of the row, from 0", 0),
    ROW(parent, I64, NONE, NULL, "the row that it is inside of; null: none", RP_NULLABLE),
    ROW(depth, I64, NONE, NULL, "0: at the top", 0),
    ROW(name, STR, NONE, NULL, "wrappers with one child are joined with it by ' > '", 0),
    ROW(label, STR, NONE, "name", "the name, indented", RP_SCREEN | RP_SHORTEN),
    ROW(kind, STR, NONE, NULL,
        "module, annotation, op, python, scope; rest: what the rows beside it leave out", 0),
    ROW(members, I64, COUNT, NULL, "siblings that are alike, which the row adds up; null: one",
        RP_NULLABLE),
    ROW(calls, I64, COUNT, "calls", "number of calls; of XLA's scopes, of kernels", RP_NULLABLE),
    ROW(total_ns, I64, NS, "total", "time with everything inside", 0),
    ROW(share, F64, RATIO, "share", "share of the time of all selected work", 0),
    ROW(self_ns, I64, NS, "self", "time without the nodes inside", RP_NULLABLE),
    ROW(backward_ns, I64, NS, "backward", "the part of total_ns in the backward pass", RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct rp_tree_row), row_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_tree_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "top", "text output only", RP_SCREEN),
    ROOT(of, STR, NONE, NULL, "what the tree consists of", 0),
    ROOT(measure, STR, NONE, NULL, "device time, or host time where no device work was recorded",
         0),
    ROOT(ranks, I64, COUNT, NULL, "number of ranks", 0),
    ROOT(whole_ns, I64, NS, "total", "sum of the durations of all selected work", 0),
    ROOT(covered_ns, I64, NS, NULL, "the part of it that is in the tree", 0),
    ROOT(covered_share, F64, RATIO, NULL, "covered_ns / whole_ns", 0),
    ROOT(row_count, I64, COUNT, NULL, "nodes of the tree, folded, before rows are left out", 0),
    RP_FIELD_LIST(struct rp_tree_root, rows, &row_type, NULL,
                  "each before what is inside it, the largest first", 0),
    RP_FIELD_SHOWN(struct rp_tree_root, shown, &row_type, "tree", NULL, 0),
    RP_FIELD_LIST(struct rp_tree_root, notes, &rp_type_string, "notes", "about the rows",
                  RP_SCREEN),
    RP_FIELD_END};
const struct rp_type rp_tree_type = {"top", sizeof(struct rp_tree_root), root_fields, "rows"};

/* ------------------------------------------------------------------ one tree of all */

struct branch {
    uint32_t child, next; /* the first child, the next sibling; RP_NONE: none */
    uint32_t parent;
    uint32_t rolled;  /* the name without its numbers */
    uint32_t ordinal; /* its number among the siblings with that name */
    uint8_t kind;
    uint8_t numbers;             /* in the name */
    bool alone;                  /* the numbers of its members are not a regular sequence */
    bool dead;                   /* it became part of another branch */
    bool folded;                 /* siblings became part of it */
    int64_t first, second, last; /* numbers of its members */
    int64_t total_ns, self_ns, backward_ns, calls, members;
    uint64_t shapes;
    const char *name;
};

struct felling {
    struct rp_arena *arena;
    struct rp_strtab names, rolls;
    struct rp_map known; /* from parent, kind and name to the branch */
    RP_VEC(struct branch) tree;
    RP_VEC(uint32_t) list; /* scratch: children that are being sorted */
    RP_VEC(int64_t) totals;
    RP_VEC(char) text;
};

static enum rp_code branch_name(struct felling *f, struct branch *b, struct rp_err *err)
{
    size_t len = strlen(b->name), numbers;

    f->text.n = 0;
    RP_TRY(rp_vec_reserve(&f->text, len + 1, err));
    len = rp_name_without_numbers(b->name, len, f->text.at, &b->first, &numbers);
    b->numbers = numbers > 2 ? 2 : (uint8_t)numbers;
    b->last = b->first;
    return rp_strtab_intern(&f->rolls, f->text.at, len, &b->rolled, err);
}

/* The branch of a node below a branch. */
static enum rp_code branch_of(struct felling *f, const struct rp_tree_node *n, uint32_t parent,
                              uint32_t *at, struct rp_err *err)
{
    struct branch b = {.child = RP_NONE,
                       .next = RP_NONE,
                       .parent = parent,
                       .kind = n->kind,
                       .members = 1,
                       .name = n->name};
    uint32_t id, fresh = (uint32_t)f->tree.n;

    RP_TRY(rp_strtab_intern(&f->names, n->name, strlen(n->name), &id, err));
    RP_TRY(rp_map_intern(&f->known, rp_hash_join((uint64_t)parent << 8 | n->kind, id), fresh, at,
                         err));
    if (*at != fresh)
        return RP_OK;
    RP_TRY(branch_name(f, &b, err));
    return rp_vec_push(&f->tree, b, err);
}

static enum rp_code add_part(struct felling *f, const struct rp_tree_part *part, struct rp_err *err)
{
    RP_VEC_LOCAL(uint32_t, to);

    RP_TRY(rp_vec_reserve(&to, part->nodes.n + 1, err));
    for (size_t i = 0; i < part->nodes.n; i++) {
        const struct rp_tree_node *n = &part->nodes.at[i];
        uint32_t at = 0;

        if (i > 0 || !f->tree.n)
            RP_TRY(branch_of(f, n, i ? to.at[n->parent] : 0, &at, err));
        to.at[i] = at;
        rp_ns_add(&f->tree.at[at].total_ns, n->total_ns);
        rp_ns_add(&f->tree.at[at].self_ns, n->self_ns);
        rp_ns_add(&f->tree.at[at].backward_ns, n->backward_ns);
        f->tree.at[at].calls += n->calls;
        if (!f->tree.at[at].shapes)
            f->tree.at[at].shapes = n->shapes;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ children */

static int by_name_and_number(const void *pa, const void *pb, void *user)
{
    const struct branch *t = user;
    const struct branch *a = &t[*(const uint32_t *)pa], *b = &t[*(const uint32_t *)pb];

    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->rolled != b->rolled)
        return a->rolled < b->rolled ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int by_total(const void *pa, const void *pb, void *user)
{
    const struct branch *t = user;
    const struct branch *a = &t[*(const uint32_t *)pa], *b = &t[*(const uint32_t *)pb];

    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    return by_name_and_number(pa, pb, user);
}

/* Fills the list with the children of a branch. */
static enum rp_code list_children(struct felling *f, uint32_t at, struct rp_err *err)
{
    f->list.n = 0;
    for (uint32_t c = f->tree.at[at].child; c != RP_NONE; c = f->tree.at[c].next)
        RP_TRY(rp_vec_push(&f->list, c, err));
    return RP_OK;
}

/* Turns the list into the children of a branch again, without those that became part of others. */
static void link_children(struct felling *f, uint32_t at)
{
    uint32_t *end = &f->tree.at[at].child;

    for (size_t i = 0; i < f->list.n; i++)
        if (!f->tree.at[f->list.at[i]].dead) {
            *end = f->list.at[i];
            end = &f->tree.at[f->list.at[i]].next;
        }
    *end = RP_NONE;
}

static enum rp_code sort_children(struct felling *f, uint32_t at,
                                  int (*order)(const void *, const void *, void *),
                                  struct rp_err *err)
{
    RP_TRY(list_children(f, at, err));
    if (f->list.n)
        qsort_r(f->list.at, f->list.n, sizeof *f->list.at, order, f->tree.at);
    link_children(f, at);
    return RP_OK;
}

/* Links parents and children, counts siblings of a name, and adds up shapes from below. */
static enum rp_code grow(struct felling *f, struct rp_err *err)
{
    for (uint32_t i = (uint32_t)f->tree.n; i-- > 1;) {
        struct branch *b = &f->tree.at[i], *parent = &f->tree.at[b->parent];

        b->next = parent->child;
        parent->child = i;
        if (b->shapes)
            parent->shapes += rp_hash_join(rp_hash_u64(b->rolled), b->shapes);
    }
    for (uint32_t i = 0; i < f->tree.n; i++) {
        RP_TRY(sort_children(f, i, by_name_and_number, err));
        for (uint32_t k = 1; k < f->list.n; k++) {
            const struct branch *before = &f->tree.at[f->list.at[k - 1]];
            struct branch *b = &f->tree.at[f->list.at[k]];

            if (b->kind == before->kind && b->rolled == before->rolled)
                b->ordinal = before->ordinal + 1;
        }
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ folding siblings */

static void add_number(struct branch *a, const struct branch *b)
{
    if (a->members == 1)
        a->second = b->first;
    else if (b->first - a->last != a->second - a->first)
        a->alone = true;
    a->alone |= b->members > 1;
    a->last = b->last;
    a->members += b->members;
}

static int64_t order_of_children(const struct branch *a, const struct branch *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->rolled != b->rolled)
        return a->rolled < b->rolled ? -1 : 1;
    return (int64_t)a->ordinal - (int64_t)b->ordinal;
}

/* Makes b a part of a; the children of both must be in the order of names and ordinals. */
static void merge(struct felling *f, uint32_t a, uint32_t b)
{
    struct branch *t = f->tree.at;
    uint32_t *end = &t[a].child, x = t[a].child, y = t[b].child;

    add_number(&t[a], &t[b]);
    rp_ns_add(&t[a].total_ns, t[b].total_ns);
    rp_ns_add(&t[a].self_ns, t[b].self_ns);
    rp_ns_add(&t[a].backward_ns, t[b].backward_ns);
    t[a].calls += t[b].calls;
    t[b].dead = true;
    while (x != RP_NONE || y != RP_NONE) {
        int64_t order = x == RP_NONE ? 1 : y == RP_NONE ? -1 : order_of_children(&t[x], &t[y]);
        uint32_t taken = order <= 0 ? x : y, other = y;

        if (order <= 0)
            x = t[x].next;
        if (order >= 0)
            y = t[y].next;
        if (order == 0)
            merge(f, taken, other);
        t[taken].parent = a;
        *end = taken;
        end = &t[taken].next;
    }
    *end = RP_NONE;
}

/* A hash of the names below a branch, which is the same for layers with the same structure. Leaves
   of XLA's scopes are left out, because they are roots of fusions, which vary. */
static uint64_t structure(const struct felling *f, uint32_t at)
{
    uint32_t c, before = RP_NONE;
    uint64_t hash = 0;

    for (c = f->tree.at[at].child; c != RP_NONE; c = f->tree.at[c].next) {
        const struct branch *b = &f->tree.at[c];

        if (b->kind != RP_SPAN_MODULE && b->child == RP_NONE)
            continue;
        if (b->rolled != before)
            hash = rp_hash_join(hash, b->rolled);
        before = b->rolled;
    }
    return hash;
}

static bool is_open(const struct felling *f, uint32_t at)
{
    return !f->tree.at[at].dead && !f->tree.at[at].folded;
}

static bool is_alike(const struct felling *f, uint32_t x, uint32_t y)
{
    const struct branch *a = &f->tree.at[x], *b = &f->tree.at[y];

    return a->shapes == b->shapes && structure(f, x) == structure(f, y);
}

/* Joins siblings list[from .. end) of one name: those that are like the first one left, and take
   about as long, become one with it. */
static enum rp_code fold_alike(struct felling *f, size_t from, size_t end, struct rp_err *err)
{
    uint32_t *list = f->list.at, into = RP_NONE;

    f->totals.n = 0;
    for (size_t i = from; i < end; i++)
        if (is_open(f, list[i]) && is_alike(f, list[from], list[i]))
            RP_TRY(rp_vec_push(&f->totals, f->tree.at[list[i]].total_ns, err));
    rp_ns_sort(f->totals.at, f->totals.n);
    int64_t middle = rp_ns_median(f->totals.at, f->totals.n);
    for (size_t i = from; i < end; i++) {
        double off = (double)f->tree.at[list[i]].total_ns - (double)middle;

        if ((off < 0 ? -off : off) > ALIKE * (double)middle || !is_open(f, list[i]) ||
            !is_alike(f, list[from], list[i]))
            continue;
        if (into == RP_NONE)
            into = list[i];
        else
            merge(f, into, list[i]);
    }
    if (into != RP_NONE)
        f->tree.at[into].folded = true;
    return RP_OK;
}

#define MOST_TRIES 64
RP_LIMIT(MOST_TRIES, "siblings of one name",
         "others are compared with them; one that is like none of them gets a row");

static enum rp_code fold_children(struct felling *f, uint32_t at, struct rp_err *err)
{
    size_t i, k, end, tries;

    RP_TRY(list_children(f, at, err));
    for (i = 0; i < f->list.n; i = end) {
        const struct branch *b = &f->tree.at[f->list.at[i]];

        for (end = i + 1; end < f->list.n && f->tree.at[f->list.at[end]].rolled == b->rolled &&
                          f->tree.at[f->list.at[end]].kind == b->kind;)
            end++;
        if (!b->numbers || b->kind == RP_SPAN_OP) /* instructions are numbered, too */
            continue;
        for (k = i, tries = 0; k + 1 < end && tries < MOST_TRIES; k++)
            if (is_open(f, f->list.at[k])) {
                RP_TRY(fold_alike(f, k, end, err));
                tries++;
            }
    }
    link_children(f, at);
    return RP_OK;
}

/* ------------------------------------------------------------------ wrappers */

/* Writes "Block_0..11", "Linear_0,4..44"; or if the numbers are irregular, the name with '*'. */
static const char *folded_name(struct felling *f, const struct branch *b)
{
    const char *rolled = rp_strtab_borrow(&f->rolls, b->rolled), *star = strchr(rolled, '*');

    if (b->members == 1 || !b->numbers || !star)
        return b->name;
    if (b->numbers > 1 || b->alone || b->second == b->first)
        return rp_arena_text(f->arena, rolled);
    if (b->members == 2)
        return rp_arena_textf(f->arena, "%.*s%lld,%lld%s", (int)(star - rolled), rolled,
                              (long long)b->first, (long long)b->last, star + 1);
    if (b->second - b->first == 1)
        return rp_arena_textf(f->arena, "%.*s%lld..%lld%s", (int)(star - rolled), rolled,
                              (long long)b->first, (long long)b->last, star + 1);
    return rp_arena_textf(f->arena, "%.*s%lld,%lld..%lld%s", (int)(star - rolled), rolled,
                          (long long)b->first, (long long)b->second, (long long)b->last, star + 1);
}

/* Joins a branch that launches nothing itself with its only child, which is already complete. */
static void join_wrappers(struct felling *f, uint32_t at)
{
    struct branch *t = f->tree.at, *b = &t[at];

    b->name = folded_name(f, b);
    for (uint32_t c = b->child; c != RP_NONE && t[c].next == RP_NONE && b->self_ns == 0;
         c = b->child) {
        struct branch *child = &t[c];

        b->child = child->child;
        b->self_ns = child->self_ns;
        for (uint32_t k = b->child; k != RP_NONE; k = t[k].next)
            t[k].parent = at;
        if (child->kind == RP_SPAN_OP && b->kind == RP_SPAN_MODULE && b->child == RP_NONE)
            return;
        b->name = rp_arena_textf(f->arena, "%s > %s", b->name, child->name);
        b->members = child->members;
        b->calls = child->calls;
        b->kind = child->kind;
    }
}

/* Folds everything below a branch, which is already complete itself. */
static enum rp_code fold_below(struct felling *f, uint32_t at, struct rp_err *err)
{
    RP_TRY(fold_children(f, at, err));
    for (uint32_t c = f->tree.at[at].child; c != RP_NONE; c = f->tree.at[c].next) {
        RP_TRY(fold_below(f, c, err));
        join_wrappers(f, c);
    }
    return sort_children(f, at, by_total, err);
}

/* ------------------------------------------------------------------ rows */

struct pruning {
    const struct felling *f;
    const struct rp_tree_cut *cut;
    struct rp_tree_root *out;
    struct rp_arena *arena;
    int64_t least_ns; /* of a row */
    size_t room;
};

/* "a > … > z" where a chain of wrappers is long */
static const char *short_chain(struct rp_arena *arena, const char *name)
{
    const char *first = strstr(name, " > "), *last = NULL, *p;
    size_t n = 0;

    for (p = first; p; p = strstr(p + 3, " > "), n++)
        last = p;
    if (n < MOST_NAMES)
        return name;
    return rp_arena_textf(arena, "%.*s > …%s", (int)(first - name), name, last);
}

static const char *row_label(struct rp_arena *arena, const struct rp_tree_row *row)
{
    const char *name = short_chain(arena, row->name);

    if (row->members == RP_ABSENT_I64)
        return rp_arena_textf(arena, "%*s%s", (int)(2 * row->depth), "", name);
    return rp_arena_textf(arena, "%*s%s ×%lld", (int)(2 * row->depth), "", name,
                          (long long)row->members);
}

static int64_t add_row(struct pruning *p, struct rp_tree_row row)
{
    struct rp_tree_root *out = p->out;
    double whole = (double)out->whole_ns;

    if (out->nrows >= p->room)
        return 0;
    row.id = (int64_t)out->nrows;
    row.share = whole > 0 ? (double)row.total_ns / whole : 0;
    row.label = row_label(p->arena, &row);
    out->rows[out->nrows++] = row;
    return row.id;
}

/* Adds the rows of the children of a branch, largest first; the rest becomes one more row. */
static void add_rows_below(struct pruning *p, uint32_t at, int64_t parent, int64_t depth)
{
    const struct branch *t = p->f->tree.at;
    int64_t left = 0, left_ns = 0, left_backward = 0;
    bool any = false;

    if (p->cut->depth > 0 && depth >= p->cut->depth)
        return;
    for (uint32_t c = t[at].child; c != RP_NONE; c = t[c].next) {
        const struct branch *b = &t[c];

        if (b->total_ns < p->least_ns || b->total_ns <= 0) {
            left++;
            rp_ns_add(&left_ns, b->total_ns);
            rp_ns_add(&left_backward, b->backward_ns);
            continue;
        }
        any = true;
        int64_t id =
            add_row(p, (struct rp_tree_row){.parent = parent,
                                            .depth = depth,
                                            .name = b->name,
                                            .kind = rp_span_kind_names[b->kind],
                                            .members = b->members > 1 ? b->members : RP_ABSENT_I64,
                                            .calls = b->calls,
                                            .total_ns = b->total_ns,
                                            .self_ns = b->self_ns,
                                            .backward_ns = b->backward_ns});
        add_rows_below(p, c, id, depth + 1);
    }
    if (any && left_ns > 0) {
        if (left)
            add_row(p, (struct rp_tree_row){
                           .parent = parent,
                           .depth = depth,
                           .name = rp_arena_textf(p->arena, "(%lld more)", (long long)left),
                           .kind = rp_span_kind_names[RP_SPAN_REST],
                           .members = RP_ABSENT_I64,
                           .calls = RP_ABSENT_I64,
                           .total_ns = left_ns,
                           .self_ns = left_ns,
                           .backward_ns = left_backward});
    }
}

/* Counts the branches down to the deepest level that is shown, and lists their times. */
static enum rp_code list_times(struct felling *f, uint32_t at, int64_t levels, int64_t *n,
                               struct rp_err *err)
{
    for (uint32_t c = f->tree.at[at].child; c != RP_NONE; c = f->tree.at[c].next) {
        ++*n;
        RP_TRY(rp_vec_push(&f->totals, f->tree.at[c].total_ns, err));
        if (levels != 1)
            RP_TRY(list_times(f, c, levels - 1, n, err));
    }
    return RP_OK;
}

/* The least time of a row, such that there are at most as many rows as requested (rows with equal
   time are not separated, so there may be a few more). */
static enum rp_code find_least(struct felling *f, struct pruning *p, struct rp_err *err)
{
    int64_t rows = p->cut->rows < 0 ? SCREEN : p->cut->rows, n = 0;

    f->totals.n = 0;
    RP_TRY(list_times(f, 0, p->cut->depth, &n, err));
    p->out->row_count = n;
    rp_ns_sort(f->totals.at, f->totals.n);
    p->least_ns = 1;
    if (rows > 0 && (size_t)rows < f->totals.n)
        p->least_ns = f->totals.at[f->totals.n - (size_t)rows];
    if (p->cut->rows < 0 && (double)p->least_ns < LEAST * (double)p->out->whole_ns)
        p->least_ns = (int64_t)(LEAST * (double)p->out->whole_ns) + 1;
    return RP_OK;
}

static void add_outside(struct pruning *p)
{
    const struct branch *all = &p->f->tree.at[0];

    if (all->self_ns <= 0)
        return;
    add_row(p, (struct rp_tree_row){.parent = RP_ABSENT_I64,
                                    .depth = 0,
                                    .name = rp_arena_textf(p->arena, "(outside of %s)", p->out->of),
                                    .kind = rp_span_kind_names[RP_SPAN_REST],
                                    .members = RP_ABSENT_I64,
                                    .calls = RP_ABSENT_I64,
                                    .total_ns = all->self_ns,
                                    .self_ns = all->self_ns,
                                    .backward_ns = 0});
}

/* Hides columns in which every row is zero. */
static void show_rows(struct rp_tree_root *out, struct rp_arena *arena)
{
    bool backward = false;

    out->shown = RP_ARENA_NEW(arena, struct rp_tree_row, out->nrows + 1);
    if (!out->shown)
        return;
    out->nshown = out->nrows;
    for (size_t i = 0; i < out->nrows; i++)
        backward |= out->rows[i].backward_ns != 0;
    for (size_t i = 0; i < out->nrows; i++) {
        out->shown[i] = out->rows[i];
        if (!backward)
            out->shown[i].backward_ns = RP_ABSENT_I64;
    }
}

static void write_notes(struct rp_tree_root *out, const struct rp_tree_part *const *parts, size_t n,
                        struct rp_arena *arena)
{
    size_t i, rest = 0;
    bool cut = false;

    for (i = 0; i < n; i++)
        cut |= parts[i]->cut;
    for (i = 0; i < out->nrows; i++)
        rest += !strcmp(out->rows[i].kind, "rest");
    if (!out->nrows)
        RP_NOTE(out, arena, "nothing of this kind was recorded around a launch");
    else if ((int64_t)(out->nrows - rest) < out->row_count)
        RP_NOTE(out, arena,
                rp_arena_textf(arena, "%zu of %lld nodes: '--limit 0' shows all", out->nrows - rest,
                               (long long)out->row_count));
    if (cut)
        RP_NOTE(out, arena, "there are too many different paths: the deepest are cut off");
    out->summary = rp_arena_textf(arena, "%s as a tree of %s%s; %s attributed", out->measure,
                                  out->of, n > 1 ? ", all ranks together" : "",
                                  rp_units_text(arena, out->covered_share, RP_UNIT_RATIO));
}

static enum rp_code make_rows(struct felling *f, const struct rp_tree_cut *cut,
                              struct rp_tree_root *out, struct rp_err *err)
{
    struct pruning p = {.f = f, .cut = cut, .out = out, .arena = f->arena};

    out->whole_ns = f->tree.at[0].total_ns;
    out->covered_ns = rp_ns_between(f->tree.at[0].self_ns, out->whole_ns);
    out->covered_share = out->whole_ns > 0 ? (double)out->covered_ns / (double)out->whole_ns : 0;
    RP_TRY(find_least(f, &p, err));
    p.room = 2 * f->tree.n + 2; /* a rest below each */
    out->rows = RP_ARENA_NEW(f->arena, struct rp_tree_row, p.room);
    RP_TRY(rp_err_need(out->rows, err, "making a tree"));
    add_rows_below(&p, 0, RP_ABSENT_I64, 0);
    add_outside(&p);
    show_rows(out, f->arena);
    return RP_OK;
}

enum rp_code rp_tree_join(const struct rp_tree_part *const *parts, size_t n,
                          const struct rp_tree_cut *cut, struct rp_arena *arena,
                          struct rp_tree_root *out, struct rp_err *err)
{
    struct felling f = {.arena = arena};
    enum rp_code code = rp_strtab_init(&f.names, err);

    *out = (struct rp_tree_root){.of = "nothing", .measure = "device time", .ranks = (int64_t)n};
    if (code == RP_OK)
        code = rp_strtab_init(&f.rolls, err);
    for (size_t i = 0; i < n && code == RP_OK; i++) {
        out->of = i ? out->of : parts[i]->of;
        if (parts[i]->on_host)
            out->measure = "host time";
        code = add_part(&f, parts[i], err);
    }
    if (code == RP_OK && f.tree.n)
        code = grow(&f, err);
    if (code == RP_OK && f.tree.n)
        code = fold_below(&f, 0, err);
    if (code == RP_OK && f.tree.n)
        code = make_rows(&f, cut, out, err);
    if (code == RP_OK)
        write_notes(out, parts, n, arena);
    rp_strtab_release(&f.names);
    rp_strtab_release(&f.rolls);
    rp_map_release(&f.known);
    rp_vec_release(&f.tree);
    rp_vec_release(&f.list);
    rp_vec_release(&f.totals);
    rp_vec_release(&f.text);
    return code == RP_OK ? rp_arena_check(arena, "making a tree", err) : code;
}
