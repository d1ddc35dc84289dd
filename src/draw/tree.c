/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups come from names if the program has them (scopes, clusters), then from content: a run of
 * children that equals the next run, over and over, is a stack of layers (repeats.c). The rest
 * becomes parts of a few hundred neighbours. Each step is linear in the program and the depth of
 * its scopes, which is limited.
 *
 * While the tree grows, only `home` of operations and `parent` of groups are kept; the lists of
 * children are made from them, in the order of the data flow. Parameters and constants come first:
 * they belong to the group of their users.
 */
#include "draw/tree_build.h"

#include "program/opcodes.h"
#include "program/order.h"

#include <string.h>

enum {
    FEWEST_SCOPED = 30, /* computations with fewer operations are not divided by scope */
    MOST_DEPTH = 20,    /* of scopes */
    MOST_CHILDREN = 300,
    PART_CHILDREN = 160,
    FEWEST_PART = 8,
    MOST_DATA = 12,
    MOST_NAME = 200
};

bool rp_tree_is_data(const struct rp_program *p, uint32_t op)
{
    return rp_op_operands(p, op).n == 0 && rp_op_info[p->code.at[op]].class_ == RP_CLASS_DATA;
}

bool rp_tree_opens(const struct rp_program *p, uint32_t op)
{
    struct rp_ids called = rp_op_called(p, op);

    if (!called.n)
        return false;
    switch (p->code.at[op]) {
    case RP_OP_FUSION:
    case RP_OP_WHILE:
    case RP_OP_CALL:
    case RP_OP_CONDITIONAL:
    case RP_OP_FOREIGN:
    case RP_OP_ASYNC_START:
    case RP_OP_CUSTOM_CALL:
        return true;
    default:
        return p->computations.at[called.at[0]].n > 6;
    }
}

/* ---- groups ---- */

enum rp_code rp_tree_add(struct rp_tree_build *b, uint32_t parent, enum rp_group_kind kind,
                         const char *name, uint32_t *id)
{
    struct rp_group fresh = {.parent = parent, .kind = kind, .name = name};

    if (parent != RP_NONE) {
        fresh.computation = b->groups.at[parent].computation;
        fresh.depth = b->groups.at[parent].depth + 1;
    }
    *id = (uint32_t)b->groups.n;
    return rp_vec_push(&b->groups, fresh, b->err);
}

/* Returns the end of a component: '/' inside parentheses does not count. */
static const char *component_end(const char *text, const char *end)
{
    int open = 0;

    for (; text < end && !(*text == '/' && open <= 0); text++)
        open += *text == '(' || *text == '[' ? 1 : *text == ')' || *text == ']' ? -1 : 0;
    return text;
}

static enum rp_code child_scope(struct rp_tree_build *b, uint32_t *group, const char *text,
                                size_t n, enum rp_group_kind kind)
{
    uint32_t fresh = (uint32_t)b->groups.n, found;
    uint64_t key = rp_hash_join(rp_hash_join(*group, (uint64_t)kind), rp_hash_bytes(text, n));

    RP_TRY(rp_map_intern(&b->scopes, key, fresh, &found, b->err));
    if (found == fresh) {
        const char *name = rp_arena_copy(b->arena, text, n < MOST_NAME ? n : MOST_NAME);

        RP_TRY(rp_err_need(name, b->err, "grouping operations"));
        RP_TRY(rp_tree_add(b, *group, kind, name, &found));
    }
    *group = found;
    return RP_OK;
}

/* The scope of a path is all but its last component. */
static enum rp_code scope_of_path(struct rp_tree_build *b, uint32_t root, const char *path,
                                  uint32_t *group)
{
    const char *end = path + strlen(path);

    *group = root;
    for (int depth = 0; depth < MOST_DEPTH; depth++) {
        const char *stop = component_end(path, end);

        if (stop == end)
            break;
        if (stop > path)
            RP_TRY(child_scope(b, group, path, (size_t)(stop - path), RP_GROUP_SCOPE));
        path = stop + 1;
    }
    return RP_OK;
}

/* Returns the group of the cluster in an attribute such as 's: "cluster_0"'. */
static enum rp_code cluster_of(struct rp_tree_build *b, uint32_t op, uint32_t *group)
{
    const struct rp_attr *attr =
        b->cluster_key == RP_NONE ? NULL : rp_op_attr(b->p, op, b->cluster_key);

    if (!attr)
        return RP_OK;
    const char *open = memchr(attr->at, '"', attr->n);
    open = open ? open + 1 : attr->at;
    const char *close = memchr(open, '"', (size_t)(attr->at + attr->n - open));
    close = close ? close : attr->at + attr->n;
    return child_scope(b, group, open, (size_t)(close - open), RP_GROUP_CLUSTER);
}

/* TensorFlow puts the cluster before some names: "cluster_0/MatMul". */
static const char *within_cluster(const struct rp_tree_build *b, uint32_t group, const char *path)
{
    const struct rp_group *g = &b->groups.at[group];
    size_t n = strlen(g->name);

    return g->kind == RP_GROUP_CLUSTER && !strncmp(path, g->name, n) && path[n] == '/'
               ? path + n + 1
               : path;
}

static enum rp_code scope_of(struct rp_tree_build *b, uint32_t op, uint32_t root, uint32_t *group)
{
    const struct rp_program *p = b->p;
    bool hlo = strcmp(p->language, "hlo") == 0;
    uint32_t path = p->metas.at[p->meta.at[op]].op_name, known;

    if (!path && !hlo)
        path = p->op_name.at[op];
    *group = root;
    RP_TRY(cluster_of(b, op, group));
    if (!path)
        return RP_OK;
    uint64_t key = rp_hash_join(UINT64_C(0x70617468) + *group, path);
    known = rp_map_get(&b->paths, key);
    if (known == RP_MAP_NONE) {
        RP_TRY(
            scope_of_path(b, *group, within_cluster(b, *group, rp_program_text(p, path)), &known));
        RP_TRY(rp_map_put(&b->paths, key, known, b->err));
    }
    *group = known;
    return RP_OK;
}

/* Returns the deepest group that contains both. */
static uint32_t tree_common(const struct rp_tree_build *b, uint32_t x, uint32_t y)
{
    const struct rp_group *g = b->groups.at;

    while (x != y)
        if (g[x].depth >= g[y].depth)
            x = g[x].parent;
        else
            y = g[y].parent;
    return x;
}

/*
 * Moves operations without a scope to their users. `wanted` tells which may move; the order is that
 * of the data flow. near[op] is the common group of the users seen so far.
 */
static void follow_users(struct rp_tree_build *b, const struct rp_computation *c, uint32_t root,
                         const bool *wanted)
{
    uint32_t *near = b->scratch;

    for (uint32_t i = 0; i < c->n; i++)
        near[c->first + i] = RP_NONE;
    for (uint32_t i = c->n; i-- > 0;) {
        uint32_t op = b->order[c->first + i];
        struct rp_ids operands = rp_op_operands(b->p, op);

        if (wanted[op])
            b->home[op] = near[op] == RP_NONE ? root : near[op];
        for (uint32_t k = 0; k < operands.n; k++) {
            uint32_t from = operands.at[k];

            near[from] =
                near[from] == RP_NONE ? b->home[op] : tree_common(b, near[from], b->home[op]);
        }
    }
}

static enum rp_code group_by_scope(struct rp_tree_build *b, uint32_t computation)
{
    const struct rp_computation *c = &b->p->computations.at[computation];
    uint32_t root = b->root[computation];
    bool scoped = false;

    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t op = c->first + i;

        b->home[op] = root;
        if (c->n >= FEWEST_SCOPED) {
            RP_TRY(scope_of(b, op, root, &b->home[op]));
        } else {
            RP_TRY(cluster_of(b, op, &b->home[op]));
        }
        b->loose[op] = b->home[op] == root;
        scoped |= b->home[op] != root;
    }
    if (scoped)
        follow_users(b, c, root, b->loose);
    return RP_OK;
}

/* ---- groups with one child are that child ---- */

static uint32_t living(const uint32_t *instead, uint32_t group)
{
    while (instead[group] != RP_NONE)
        group = instead[group];
    return group;
}

static enum rp_code drop_single(struct rp_tree_build *b)
{
    size_t n = b->groups.n;
    uint32_t *count = RP_ARENA_NEW(b->arena, uint32_t, n + 1);
    uint32_t *only = RP_ARENA_NEW(b->arena, uint32_t, n + 1);
    uint32_t *instead = RP_ARENA_NEW(b->arena, uint32_t, n + 1);

    RP_TRY(rp_err_need(count && only && instead, b->err, "grouping operations"));
    memset(only, 0xff, n * sizeof *only);
    memset(instead, 0xff, n * sizeof *instead);
    for (uint32_t op = 0; op < b->p->nops; op++)
        count[b->home[op]]++;
    for (uint32_t g = (uint32_t)n; g-- > 0;) {
        struct rp_group *group = &b->groups.at[g];

        if (group->parent == RP_NONE)
            continue;
        if (count[g] == 1) {
            instead[g] = group->parent;
            if (only[g] != RP_NONE) {
                b->groups.at[only[g]].name = rp_arena_textf(
                    b->arena, "%.*s/%s", MOST_NAME, group->name, b->groups.at[only[g]].name);
                only[group->parent] = only[g];
            }
        } else if (count[g]) {
            only[group->parent] = g;
        } else {
            instead[g] = group->parent;
        }
        count[group->parent] += count[g] > 0;
    }
    for (uint32_t op = 0; op < b->p->nops; op++)
        b->home[op] = living(instead, b->home[op]);
    for (uint32_t g = 0; g < n; g++) {
        struct rp_group *group = &b->groups.at[g];

        if (group->parent == RP_NONE)
            continue;
        group->parent = living(instead, group->parent);
        group->depth = b->groups.at[group->parent].depth + 1;
    }
    return RP_OK;
}

/* ---- lists of children ---- */

static void list_append(struct rp_tree_build *b, uint32_t group, uint32_t child)
{
    struct rp_tree_list *list = &b->lists.at[group];

    b->next.at[child] = RP_NONE;
    if (list->n++)
        b->next.at[list->last] = child;
    else
        list->first = child;
    list->last = child;
}

/* Appends an operation, and its groups if they are new. */
static void list_op(struct rp_tree_build *b, uint32_t op)
{
    uint32_t g = b->home[op];

    list_append(b, g, op);
    while (!b->lists.at[g].listed && b->groups.at[g].parent != RP_NONE) {
        b->lists.at[g].listed = true;
        list_append(b, b->groups.at[g].parent, b->p->nops + g);
        g = b->groups.at[g].parent;
    }
}

static enum rp_code make_lists(struct rp_tree_build *b)
{
    uint32_t nops = b->p->nops;
    size_t n = b->groups.n;

    b->lists.n = b->next.n = 0;
    RP_TRY(rp_vec_reserve(&b->lists, n + 1, b->err));
    RP_TRY(rp_vec_reserve(&b->next, nops + n + 1, b->err));
    memset(b->lists.at, 0, n * sizeof *b->lists.at);
    b->lists.n = n;
    b->next.n = nops + n;
    for (uint32_t op = 0; op < nops; op++)
        for (uint32_t g = b->home[op];
             !rp_tree_is_data(b->p, op) && g != RP_NONE && !b->lists.at[g].works;
             g = b->groups.at[g].parent)
            b->lists.at[g].works = true;
    for (uint32_t i = 0; i < nops; i++)
        if (rp_tree_is_data(b->p, b->order[i])) {
            /* Groups that contain only data come with the data, others with their first operation.
             */
            uint32_t op = b->order[i];
            uint32_t g = b->home[op];

            if (b->lists.at[g].works)
                list_append(b, g, op);
            else
                list_op(b, op);
        }
    for (uint32_t i = 0; i < nops; i++)
        if (!rp_tree_is_data(b->p, b->order[i]))
            list_op(b, b->order[i]);
    return RP_OK;
}

/* ---- content ---- */

/* Hashes the content of a group, how it is connected and how it is divided, but not its name. */
static uint64_t group_content(struct rp_tree_build *b, uint32_t g)
{
    const struct rp_tree_list *list = &b->lists.at[g];
    uint64_t hash = rp_hash_join((uint64_t)(b->groups.at[g].kind == RP_GROUP_REPEAT), list->n);

    for (uint32_t i = list->begin; i < list->end; i++) {
        uint32_t op = b->order_in[i];
        struct rp_ids operands = rp_op_operands(b->p, op);

        hash = rp_hash_join(hash, b->content[op]);
        for (uint32_t k = 0; k < operands.n; k++) {
            uint32_t from = b->place[operands.at[k]];
            bool inside = from >= list->begin && from < list->end;

            hash = rp_hash_join(hash, inside ? i - from : UINT32_MAX);
        }
    }
    for (uint32_t k = 0, child = list->first; k < list->n; k++, child = b->next.at[child])
        if (child >= b->p->nops)
            hash = rp_hash_join(rp_hash_join(hash, k), b->groups.at[child - b->p->nops].hash);
    return hash;
}

/* Numbers operations in the order of the tree and hashes groups; the depth is limited. */
static void number_ops(struct rp_tree_build *b, uint32_t group, uint32_t *next)
{
    uint32_t nops = b->p->nops;

    b->lists.at[group].begin = *next;
    for (uint32_t k = 0, child = b->lists.at[group].first; k < b->lists.at[group].n;
         k++, child = b->next.at[child])
        if (child < nops) {
            b->order_in[*next] = child;
            b->place[child] = (*next)++;
        } else {
            number_ops(b, child - nops, next);
        }
    b->lists.at[group].end = *next;
    b->groups.at[group].hash = group_content(b, group);
}

/* Updates lists, places and hashes of all groups. */
static enum rp_code update_tree(struct rp_tree_build *b)
{
    uint32_t next = 0;

    RP_TRY(make_lists(b));
    memset(b->place, 0xff, b->p->nops * sizeof *b->place);
    for (size_t c = 0; c < b->p->computations.n; c++)
        number_ops(b, b->root[c], &next);
    return RP_OK;
}

/* ---- parts ---- */

/* Puts a range of children into a new group. */
enum rp_code rp_tree_wrap(struct rp_tree_build *b, const uint32_t *children, size_t n,
                          uint32_t parent, enum rp_group_kind kind, uint32_t number, uint32_t *id)
{
    RP_TRY(rp_tree_add(b, parent, kind, "", id));
    b->groups.at[*id].number = number;
    for (size_t i = 0; i < n; i++)
        if (children[i] < b->p->nops)
            b->home[children[i]] = *id;
        else
            b->groups.at[children[i] - b->p->nops].parent = *id;
    return RP_OK;
}

static bool is_loose(const struct rp_tree_build *b, uint32_t child)
{
    return child < b->p->nops && !rp_tree_is_data(b->p, child);
}

/* Groups runs of operations between stacks of layers. */
static enum rp_code wrap_between(struct rp_tree_build *b, uint32_t g, const uint32_t *children,
                                 size_t n)
{
    uint32_t number = 0, id;

    for (size_t i = 0, k; i < n; i = k) {
        for (k = i; k < n && is_loose(b, children[k]); k++)
            ;
        if (k - i >= FEWEST_PART)
            RP_TRY(rp_tree_wrap(b, children + i, k - i, g, RP_GROUP_PART, ++number, &id));
        k += k == i;
    }
    return RP_OK;
}

static enum rp_code wrap_data(struct rp_tree_build *b, uint32_t g, const uint32_t *children,
                              size_t n)
{
    size_t data = 0;
    uint32_t id;

    while (data < n && children[data] < b->p->nops && rp_tree_is_data(b->p, children[data]))
        data++;
    return data > MOST_DATA ? rp_tree_wrap(b, children, data, g, RP_GROUP_INPUTS, 0, &id) : RP_OK;
}

static enum rp_code wrap_parts(struct rp_tree_build *b, uint32_t g, const uint32_t *children,
                               size_t n)
{
    size_t parts = (n + PART_CHILDREN - 1) / PART_CHILDREN;
    uint32_t id;

    for (size_t i = 0; i < parts; i++) {
        size_t from = n * i / parts, to = n * (i + 1) / parts;

        RP_TRY(rp_tree_wrap(b, children + from, to - from, g, RP_GROUP_PART, (uint32_t)i + 1, &id));
    }
    return RP_OK;
}

enum wrapping { WRAP_BETWEEN, WRAP_DATA, WRAP_PARTS };

/* Makes one kind of part in all groups that need it; tells whether there was one. */
static enum rp_code wrap_all(struct rp_tree_build *b, enum wrapping how, bool *any)
{
    size_t n = b->groups.n;

    *any = false;
    for (uint32_t g = 0; g < n; g++) {
        bool data = b->groups.at[g].kind == RP_GROUP_INPUTS;

        /* Lists the children of a group in b->found. */
        const struct rp_tree_list *list = &b->lists.at[g];
        b->found.n = 0;
        RP_TRY(rp_vec_reserve(&b->found, (size_t)list->n + 1, b->err));
        for (uint32_t k = 0, child = list->first; k < list->n; k++, child = b->next.at[child])
            b->found.at[b->found.n++] = child;
        if (how == WRAP_BETWEEN && b->lists.at[g].repeats)
            RP_TRY(wrap_between(b, g, b->found.at, b->found.n));
        if (how == WRAP_DATA && !data && (b->found.n > MOST_CHILDREN / 6 || b->lists.at[g].repeats))
            RP_TRY(wrap_data(b, g, b->found.at, b->found.n));
        if (how == WRAP_PARTS && b->found.n > MOST_CHILDREN)
            RP_TRY(wrap_parts(b, g, b->found.at, b->found.n));
    }
    *any = b->groups.n > n;
    return RP_OK;
}

/* Notes groups that contain a stack of layers again, since the lists are new after each change. */
static void note_repeats(struct rp_tree_build *b)
{
    for (size_t g = 0; g < b->groups.n; g++)
        if (b->groups.at[g].kind == RP_GROUP_REPEAT && b->groups.at[g].parent != RP_NONE)
            b->lists.at[b->groups.at[g].parent].repeats = true;
}

/* ---- the finished tree ---- */

/* Keeps groups that are not empty; parents come before their children. */
static enum rp_code keep_groups(struct rp_tree_build *b, struct rp_tree *out)
{
    size_t n = b->groups.n;
    uint32_t nops = b->p->nops, at = 0;
    uint32_t *queue = RP_ARENA_NEW(b->arena, uint32_t, n + 1);
    uint32_t *number = RP_ARENA_NEW(b->arena, uint32_t, n + 1);

    out->groups = RP_ARENA_NEW(b->arena, struct rp_group, n + 1);
    out->children = RP_ARENA_NEW(b->arena, uint32_t, (size_t)nops + n + 1);
    out->index = RP_ARENA_NEW(b->arena, uint32_t, (size_t)nops + n + 1);
    RP_TRY(rp_err_need(queue && number && out->groups && out->children && out->index, b->err,
                       "grouping operations"));
    for (size_t c = 0; c < b->p->computations.n; c++)
        queue[out->ngroups++] = b->root[c];
    for (uint32_t i = 0; i < out->ngroups; i++) {
        const struct rp_tree_list *list = &b->lists.at[queue[i]];
        struct rp_group *to = &out->groups[i];

        *to = b->groups.at[queue[i]];
        number[queue[i]] = i;
        to->first = at;
        to->n = list->n;
        to->ops = list->end - list->begin;
        if (to->parent != RP_NONE) {
            to->parent = number[to->parent];
            to->depth = out->groups[to->parent].depth + 1;
        }
        for (uint32_t k = 0, child = list->first; k < list->n; k++, child = b->next.at[child]) {
            uint32_t id = child;

            if (child >= nops) {
                id = nops + out->ngroups;
                queue[out->ngroups++] = child - nops;
            }
            out->index[id] = k;
            out->children[at++] = id;
        }
    }
    for (uint32_t op = 0; op < nops; op++)
        b->home[op] = number[b->home[op]];
    for (size_t c = 0; c < b->p->computations.n; c++)
        b->root[c] = number[b->root[c]];
    return RP_OK;
}

static enum rp_code find_same(struct rp_tree_build *b, struct rp_tree *out)
{
    RP_SCOPED(rp_map_release) struct rp_map first = {0};

    for (uint32_t g = 0; g < out->ngroups; g++)
        RP_TRY(rp_map_intern(&first, out->groups[g].hash, g, &out->groups[g].same, b->err));
    return RP_OK;
}

static enum rp_code build_init(struct rp_tree_build *b)
{
    const struct rp_program *p = b->p;
    size_t nops = p->nops, n = p->computations.n;

    b->home = RP_ARENA_NEW(b->arena, uint32_t, nops + 1);
    b->order = RP_ARENA_NEW(b->arena, uint32_t, nops + 1);
    b->order_in = RP_ARENA_NEW(b->arena, uint32_t, nops + 1);
    b->place = RP_ARENA_NEW(b->arena, uint32_t, nops + 1);
    b->scratch = RP_ARENA_NEW(b->arena, uint32_t, nops + 1);
    b->content = RP_ARENA_NEW(b->arena, uint64_t, nops + 1);
    b->loose = RP_ARENA_NEW(b->arena, bool, nops + 1);
    b->root = RP_ARENA_NEW(b->arena, uint32_t, n + 1);
    RP_TRY(rp_err_need(b->home && b->order && b->order_in && b->place && b->scratch && b->content &&
                           b->loose && b->root,
                       b->err, "grouping operations"));
    b->cluster_key = rp_strtab_find(&p->strings, "_XlaCluster", 11);
    for (uint32_t op = 0; op < nops; op++) {
        struct rp_ids called = rp_op_called(b->p, op);
        uint64_t hash = b->hashes->local[op];

        for (uint32_t i = 0; i < called.n; i++)
            hash = rp_hash_join(hash, b->hashes->computation[called.at[i]]);
        b->content[op] = hash;
    }
    for (uint32_t c = 0; c < n; c++) {
        const struct rp_computation *from = &p->computations.at[c];
        const char *name = rp_arena_text(b->arena, rp_program_text(p, from->name));

        RP_TRY(rp_tree_add(b, RP_NONE, RP_GROUP_COMPUTATION, name, &b->root[c]));
        b->groups.at[b->root[c]].computation = c;
        RP_TRY(rp_computation_order(p, c, b->arena, b->order + from->first, b->err));
    }
    return RP_OK;
}

static enum rp_code build_all(struct rp_tree_build *b, struct rp_tree *out)
{
    RP_TRY(build_init(b));
    for (uint32_t c = 0; c < b->p->computations.n; c++)
        RP_TRY(group_by_scope(b, c));
    RP_TRY(drop_single(b));
    RP_TRY(update_tree(b));
    RP_TRY(rp_tree_find_repeats(b));

    /* Data whose users are all in one layer moves there. Depths are found again, because new groups
       may contain older ones. */
    for (size_t g = 0; g < b->groups.n; g++) {
        uint32_t depth = 0;

        for (uint32_t up = b->groups.at[g].parent; up != RP_NONE; up = b->groups.at[up].parent)
            depth++;
        b->groups.at[g].depth = depth;
    }
    for (uint32_t op = 0; op < b->p->nops; op++)
        b->loose[op] = b->loose[op] && rp_tree_is_data(b->p, op);
    for (uint32_t c = 0; c < b->p->computations.n; c++)
        follow_users(b, &b->p->computations.at[c], b->root[c], b->loose);

    RP_TRY(make_lists(b));

    bool any;
    note_repeats(b);
    RP_TRY(wrap_all(b, WRAP_BETWEEN, &any));
    RP_TRY(make_lists(b));
    note_repeats(b);
    RP_TRY(wrap_all(b, WRAP_DATA, &any));
    do {
        RP_TRY(make_lists(b));
        RP_TRY(wrap_all(b, WRAP_PARTS, &any));
    } while (any);
    RP_TRY(update_tree(b));
    RP_TRY(keep_groups(b, out));
    RP_TRY(find_same(b, out));
    return rp_arena_check(b->arena, "grouping operations", b->err);
}

enum rp_code rp_tree_build(const struct rp_program *p, const struct rp_hashes *hashes,
                           struct rp_arena *arena, struct rp_tree *out, struct rp_err *err)
{
    struct rp_tree_build b = {.p = p, .hashes = hashes, .arena = arena, .err = err};

    *out = (struct rp_tree){.p = p};
    enum rp_code code = build_all(&b, out);
    out->home = b.home;
    out->root = b.root;
    out->caller = RP_ARENA_NEW(arena, uint32_t, p->computations.n + 1);
    if (out->caller) {
        memset(out->caller, 0xff, p->computations.n * sizeof *out->caller);

        /* Find for each computation the operation that shows it; none shows the entry. */
        for (uint32_t op = p->nops; op-- > 0;) {
            struct rp_ids called = rp_op_called(p, op);

            for (uint32_t i = 0; rp_tree_opens(p, op) && i < called.n; i++)
                if (called.at[i] != p->entry && called.at[i] != p->computation.at[op])
                    out->caller[called.at[i]] = op;
        }
    } else if (code == RP_OK) {
        code = rp_err_nomem(err, "grouping operations");
    }
    rp_map_release(&b.scopes);
    rp_map_release(&b.paths);
    rp_vec_release(&b.groups);
    rp_vec_release(&b.lists);
    rp_vec_release(&b.next);
    rp_vec_release(&b.found);
    rp_vec_release(&b.index);
    return code;
}
