/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aligns two call trees. Below two nodes that belong together the children are paired: equal
 * beginnings and ends of the two lists first, then the k-th of a name and shape with the k-th. A
 * range or module that only one side has is opened, and its children take its place, so that
 * annotated and bare runs meet. Nodes that are left, and do not occur unchanged elsewhere in the
 * other tree, are paired by name (with another shape); if one side has more of a name, all of that
 * name are compared with all. Then operators that only call others are opened, too, and pairing
 * begins again (not at the top, where their contents have no common place). If in the end more than
 * half of the time of one node of a pair is alone, the pair itself is the answer: the same call now
 * does something else ("replaced"). Nodes that stay alone in the whole tree are paired by name and
 * shape, by name, and by kernel. Each round is linear in its lists. Rounds and recursion are
 * limited by the depth of the tree, which its builder limits.
 */
#include "explain/diff/align.h"

#include "base/hash.h"

const char *const rp_diff_rule_names[RP_DIFF_RULES] = {[RP_DIFF_BY_TREE] = "tree",
                                                       [RP_DIFF_BY_SHAPE] = "name and shape",
                                                       [RP_DIFF_BY_NAME] = "name",
                                                       [RP_DIFF_BY_WORK] = "kernel",
                                                       [RP_DIFF_ALONE] = "none"};

typedef RP_VEC(uint32_t) node_vec;

/* level: two lists that are being paired; RP_NONE replaces a node that has a partner. */
struct level {
    node_vec list[2];
};

struct aligner {
    const struct rp_diff_tree *tree[2];
    rp_diff_units *out;
    struct level lost;      /* the topmost nodes that have no partner in their place */
    struct rp_map known[2]; /* by side: the exact keys of its tree */
};

static const struct rp_diff_node *node_of(const struct aligner *a, int side, uint32_t id)
{
    return &a->tree[side]->nodes.at[id];
}

/* The keys by which two nodes are compared. */
enum key { BY_EXACT, BY_NEAR, BY_LOOSE };

static uint64_t key_of(const struct aligner *a, int side, uint32_t id, enum key by)
{
    const struct rp_diff_node *node = node_of(a, side, id);

    return by == BY_EXACT ? node->exact : by == BY_NEAR ? node->near : node->loose;
}

/* Appends the children, except those that occur only in steps that were not taken. */
static enum rp_code add_children(const struct aligner *a, int side, uint32_t first, node_vec *list,
                                 struct rp_err *err)
{
    for (; first != RP_NONE; first = node_of(a, side, first)->next)
        if (node_of(a, side, first)->works)
            RP_TRY(rp_vec_push(list, first, err));
    return RP_OK;
}

static enum rp_code add_unit(struct aligner *a, uint32_t left, uint32_t right,
                             enum rp_diff_rule rule, bool whole, struct rp_err *err)
{
    struct rp_diff_unit unit = {.left = left,
                                .right = right,
                                .left_piece = RP_NONE,
                                .right_piece = RP_NONE,
                                .rule = (uint8_t)rule,
                                .whole = whole};

    return rp_vec_push(a->out, unit, err);
}

static enum rp_code align_pair(struct aligner *a, uint32_t left, uint32_t right,
                               struct rp_err *err);

static enum rp_code take_pair(struct aligner *a, struct level *v, size_t i, size_t k,
                              struct rp_err *err)
{
    uint32_t left = v->list[0].at[i], right = v->list[1].at[k];

    v->list[0].at[i] = v->list[1].at[k] = RP_NONE;
    return align_pair(a, left, right, err);
}

static enum rp_code take_elsewhere(struct aligner *a, struct level *v, size_t i, size_t k,
                                   enum key by, struct rp_err *err)
{
    uint32_t left = v->list[0].at[i], right = v->list[1].at[k];

    v->list[0].at[i] = v->list[1].at[k] = RP_NONE;
    return add_unit(a, left, right, by == BY_LOOSE ? RP_DIFF_BY_NAME : RP_DIFF_BY_SHAPE, false,
                    err);
}

/* Drops nodes that have a partner. */
static void pack(node_vec *list)
{
    size_t i, n = 0;

    for (i = 0; i < list->n; i++)
        if (list->at[i] != RP_NONE)
            list->at[n++] = list->at[i];
    list->n = n;
}

/* Lists the places of the right side by key: places with the same key form a chain, first to
   last. */
static enum rp_code chain_right(const struct aligner *a, const node_vec *right, enum key by,
                                struct rp_map *first, uint32_t *next, struct rp_err *err)
{
    size_t k = right->n;

    while (k-- > 0) {
        uint64_t key = key_of(a, 1, right->at[k], by);
        uint32_t after = rp_map_get(first, key);

        next[k] = after;
        RP_TRY(rp_map_put(first, key, (uint32_t)k, err));
    }
    return RP_OK;
}

/* Pairs the k-th node of a key with the k-th of the other side; elsewhere: they are in different
   places. */
static enum rp_code pair_by_key(struct aligner *a, struct level *v, enum key by, bool elsewhere,
                                struct rp_err *err)
{
    uint32_t none = (uint32_t)v->list[1].n; /* stands for "no more of this name" */
    node_vec next = {0};
    struct rp_map first = {0};
    enum rp_code code = rp_vec_reserve(&next, v->list[1].n + 1, err);
    if (code == RP_OK)
        code = chain_right(a, &v->list[1], by, &first, next.at, err);
    for (size_t i = 0; i < v->list[0].n && code == RP_OK; i++) {
        uint64_t key = key_of(a, 0, v->list[0].at[i], by);
        uint32_t k = rp_map_get(&first, key);

        if (k == RP_MAP_NONE || k == none)
            continue;
        code = rp_map_put(&first, key, next.at[k] == RP_MAP_NONE ? none : next.at[k], err);
        if (code == RP_OK)
            code = elsewhere ? take_elsewhere(a, v, i, k, by, err) : take_pair(a, v, i, k, err);
    }
    rp_map_release(&first);
    rp_vec_release(&next);
    pack(&v->list[0]);
    pack(&v->list[1]);
    return code;
}

/* Counts the nodes of each name on each side. */
static enum rp_code count_names(const struct aligner *a, const struct level *v,
                                struct rp_map count[2], struct rp_err *err)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < v->list[side].n; i++) {
            uint64_t key = key_of(a, side, v->list[side].at[i], BY_LOOSE);
            uint32_t n = rp_map_get(&count[side], key);

            RP_TRY(rp_map_put(&count[side], key, n == RP_MAP_NONE ? 1 : n + 1, err));
        }
    return RP_OK;
}

/* If both sides have a name, but not equally often, it cannot be decided which nodes belong
   together, so all are compared with all. */
static enum rp_code take_sets(struct aligner *a, struct level *v, const struct rp_map count[2],
                              bool elsewhere, struct rp_err *err)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < v->list[side].n; i++) {
            uint32_t id = v->list[side].at[i];
            uint64_t key = key_of(a, side, id, BY_LOOSE);
            uint32_t left = rp_map_get(&count[0], key), right = rp_map_get(&count[1], key);

            if (left == RP_MAP_NONE || right == RP_MAP_NONE || left == right)
                continue;
            RP_TRY(add_unit(a, side ? RP_NONE : id, side ? id : RP_NONE,
                            elsewhere ? RP_DIFF_BY_NAME : RP_DIFF_BY_TREE, !elsewhere, err));
            a->out->at[a->out->n - 1].set = true;
            v->list[side].at[i] = RP_NONE;
        }
    pack(&v->list[0]);
    pack(&v->list[1]);
    return RP_OK;
}

static enum rp_code pair_by_name(struct aligner *a, struct level *v, bool elsewhere,
                                 struct rp_err *err)
{
    struct rp_map count[2];

    rp_map_init(&count[0]);
    rp_map_init(&count[1]);
    enum rp_code code = count_names(a, v, count, err);
    if (code == RP_OK)
        code = take_sets(a, v, count, elsewhere, err);
    rp_map_release(&count[0]);
    rp_map_release(&count[1]);
    RP_TRY(code);
    return pair_by_key(a, v, BY_LOOSE, elsewhere, err);
}

/* Whether a node may be opened: ranges and modules, whose own work is among their children; later
   also operators that only call others. */
static bool opens(const struct rp_diff_node *node, bool operators)
{
    if (node->kind == RP_DIFF_RANGE || node->kind == RP_DIFF_MODULE)
        return true;
    return operators && node->child != RP_NONE && !node->nwork;
}

/* Replaces such nodes by their children. */
static enum rp_code open_nodes(const struct aligner *a, struct level *v, bool operators,
                               bool *opened, struct rp_err *err)
{
    enum rp_code code = RP_OK;

    *opened = false;
    for (int side = 0; side < 2 && code == RP_OK; side++) {
        node_vec *list = &v->list[side], fresh = {0};

        for (size_t i = 0; i < list->n && code == RP_OK; i++) {
            const struct rp_diff_node *node = node_of(a, side, list->at[i]);

            if (opens(node, operators)) {
                *opened = true;
                code = add_children(a, side, node->child, &fresh, err);
            } else {
                code = rp_vec_push(&fresh, list->at[i], err);
            }
        }
        rp_vec_release(list);
        *list = fresh;
    }
    return code;
}

/* Moves away nodes that occur unchanged elsewhere in the other tree: one with another shape in
   their place is not their partner. */
static enum rp_code set_apart(const struct aligner *a, struct level *v, struct level *to,
                              struct rp_err *err)
{
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < v->list[side].n; i++) {
            uint32_t id = v->list[side].at[i];

            if (rp_map_get(&a->known[1 - side], key_of(a, side, id, BY_EXACT)) == RP_MAP_NONE)
                continue;
            RP_TRY(rp_vec_push(&to->list[side], id, err));
            v->list[side].at[i] = RP_NONE;
        }
        pack(&v->list[side]);
    }
    return RP_OK;
}

static enum rp_code put_back(struct level *v, struct level *from, struct rp_err *err)
{
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < from->list[side].n; i++)
            RP_TRY(rp_vec_push(&v->list[side], from->list[side].at[i], err));
        from->list[side].n = 0;
    }
    return RP_OK;
}

static enum rp_code lose(struct aligner *a, struct level *v, int64_t *alone_ns, struct rp_err *err)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < v->list[side].n; i++) {
            rp_ns_add(&alone_ns[side], node_of(a, side, v->list[side].at[i])->total_ns);
            RP_TRY(rp_vec_push(&a->lost.list[side], v->list[side].at[i], err));
        }
    return RP_OK;
}

/* One round over two lists: first equal nodes, then similar ones, then those with other shapes. */
static enum rp_code pair_lists(struct aligner *a, struct level *v, struct level *apart,
                               struct rp_err *err)
{
    bool opened = true;

    while (opened) {
        /* Pair equal beginnings, then equal ends. */
        size_t i, most = v->list[0].n < v->list[1].n ? v->list[0].n : v->list[1].n;
        size_t begin = 0, end = 0;

        while (begin < most && key_of(a, 0, v->list[0].at[begin], BY_EXACT) ==
                                   key_of(a, 1, v->list[1].at[begin], BY_EXACT))
            begin++;
        while (end < most - begin &&
               key_of(a, 0, v->list[0].at[v->list[0].n - 1 - end], BY_EXACT) ==
                   key_of(a, 1, v->list[1].at[v->list[1].n - 1 - end], BY_EXACT))
            end++;
        for (i = 0; i < begin; i++)
            RP_TRY(take_pair(a, v, i, i, err));
        for (i = 0; i < end; i++)
            RP_TRY(take_pair(a, v, v->list[0].n - 1 - i, v->list[1].n - 1 - i, err));
        pack(&v->list[0]);
        pack(&v->list[1]);

        RP_TRY(pair_by_key(a, v, BY_EXACT, false, err));
        RP_TRY(open_nodes(a, v, false, &opened, err));
    }
    RP_TRY(pair_by_key(a, v, BY_NEAR, false, err));
    RP_TRY(set_apart(a, v, apart, err));
    return pair_by_name(a, v, false, err);
}

/* Pairs the children of two nodes; alone_ns is, for each side, the time of nodes that stay alone.
   At the top (not inside a pair) operators stay closed, because their calls have no place there. */
static enum rp_code align_lists(struct aligner *a, uint32_t left, uint32_t right, bool inside,
                                int64_t *alone_ns, struct rp_err *err)
{
    struct level v = {0}, apart = {0};
    enum rp_code code = add_children(a, 0, left, &v.list[0], err);
    bool opened = true;

    if (code == RP_OK)
        code = add_children(a, 1, right, &v.list[1], err);
    while (code == RP_OK && opened) {
        code = pair_lists(a, &v, &apart, err);
        if (code == RP_OK)
            code = put_back(&v, &apart, err);
        opened = false;
        if (code == RP_OK && inside)
            code = open_nodes(a, &v, true, &opened, err);
    }
    if (code == RP_OK)
        code = set_apart(a, &v, &a->lost, err);
    if (code == RP_OK)
        code = lose(a, &v, alone_ns, err);
    for (int side = 0; side < 2; side++) {
        rp_vec_release(&v.list[side]);
        rp_vec_release(&apart.list[side]);
    }
    return code;
}

static enum rp_code align_pair(struct aligner *a, uint32_t left, uint32_t right, struct rp_err *err)
{
    const struct rp_diff_node *l = node_of(a, 0, left), *r = node_of(a, 1, right);
    size_t units = a->out->n, lost[2] = {a->lost.list[0].n, a->lost.list[1].n};
    int64_t alone[2] = {0, 0};

    RP_TRY(add_unit(a, left, right, RP_DIFF_BY_TREE, false, err));
    RP_TRY(align_lists(a, l->child, r->child, true, alone, err));
    if (alone[0] <= l->total_ns / 2 && alone[1] <= r->total_ns / 2)
        return RP_OK;
    a->out->n = units;
    a->lost.list[0].n = lost[0];
    a->lost.list[1].n = lost[1];
    return add_unit(a, left, right, RP_DIFF_BY_TREE, true, err);
}

/* Replaces each node by the nodes of its subtree that have work of their own. */
static enum rp_code spread(const struct aligner *a, int side, node_vec *list, struct rp_err *err)
{
    node_vec open = {0}, leaves = {0};
    enum rp_code code = RP_OK;

    for (size_t i = list->n; i-- > 0 && code == RP_OK;)
        code = rp_vec_push(&open, list->at[i], err);
    while (open.n && code == RP_OK) {
        uint32_t id = open.at[--open.n];
        size_t low = open.n, high;

        if (node_of(a, side, id)->nwork)
            code = rp_vec_push(&leaves, id, err);
        if (code == RP_OK)
            code = add_children(a, side, node_of(a, side, id)->child, &open, err);
        for (high = open.n; low + 1 < high; low++) { /* finds the first child on top */
            uint32_t last = open.at[--high];

            open.at[high] = open.at[low];
            open.at[low] = last;
        }
    }
    rp_vec_release(&open);
    rp_vec_release(list);
    *list = leaves;
    return code;
}

/* Maps the kernels of one side that have no match yet: all, or with `bare`, those without an
   operator. */
static enum rp_code map_pieces(const struct aligner *a, int side, bool bare, struct rp_map *map,
                               struct rp_err *err)
{
    uint32_t p, first;

    for (size_t i = 0; i < a->lost.list[side].n; i++) {
        const struct rp_diff_node *node = node_of(a, side, a->lost.list[side].at[i]);

        for (p = node->work; p < node->work + node->nwork; p++)
            if (!bare || node->kind == RP_DIFF_WORK)
                RP_TRY(rp_map_intern(map, a->tree[side]->pieces.at[p].hash, p, &first, err));
    }
    return RP_OK;
}

/* Whether a kernel is left on both sides, and on one of them without an operator. */
static bool is_shared(uint64_t hash, const struct rp_map all[2], const struct rp_map bare[2])
{
    bool left = rp_map_get(&all[0], hash) != RP_MAP_NONE;
    bool right = rp_map_get(&all[1], hash) != RP_MAP_NONE;

    return left && right &&
           (rp_map_get(&bare[0], hash) != RP_MAP_NONE || rp_map_get(&bare[1], hash) != RP_MAP_NONE);
}

/* The rest is compared piece by piece: by kernel if both sides have it, else alone. The rows add
   these up. */
static enum rp_code end_lost(struct aligner *a, const struct rp_map all[2],
                             const struct rp_map bare[2], struct rp_err *err)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < a->lost.list[side].n; i++) {
            uint32_t id = a->lost.list[side].at[i];
            const struct rp_diff_node *node = node_of(a, side, id);

            for (uint32_t p = node->work; p < node->work + node->nwork; p++) {
                bool shared = is_shared(a->tree[side]->pieces.at[p].hash, all, bare);
                struct rp_diff_unit unit = {.left = side ? RP_NONE : id,
                                            .right = side ? id : RP_NONE,
                                            .left_piece = side ? RP_NONE : p,
                                            .right_piece = side ? p : RP_NONE,
                                            .rule = shared ? RP_DIFF_BY_WORK : RP_DIFF_ALONE};

                RP_TRY(rp_vec_push(a->out, unit, err));
            }
        }
    return RP_OK;
}

static enum rp_code settle_lost(struct aligner *a, struct rp_err *err)
{
    struct rp_map all[2], bare[2];
    enum rp_code code;
    int side;

    RP_TRY(spread(a, 0, &a->lost.list[0], err));
    RP_TRY(spread(a, 1, &a->lost.list[1], err));
    RP_TRY(pair_by_key(a, &a->lost, BY_EXACT, true, err));
    RP_TRY(pair_by_key(a, &a->lost, BY_NEAR, true, err));
    RP_TRY(pair_by_name(a, &a->lost, true, err));
    for (side = 0; side < 2; side++) {
        rp_map_init(&all[side]);
        rp_map_init(&bare[side]);
    }
    for (side = 0, code = RP_OK; side < 2 && code == RP_OK; side++) {
        code = map_pieces(a, side, false, &all[side], err);
        if (code == RP_OK)
            code = map_pieces(a, side, true, &bare[side], err);
    }
    if (code == RP_OK)
        code = end_lost(a, all, bare, err);
    for (side = 0; side < 2; side++) {
        rp_map_release(&all[side]);
        rp_map_release(&bare[side]);
    }
    return code;
}

/* Collects the exact keys of a tree. */
static enum rp_code know(const struct rp_diff_tree *tree, struct rp_map *known, struct rp_err *err)
{
    uint32_t i, first;

    for (i = 0; i < tree->nodes.n; i++)
        if (tree->nodes.at[i].works)
            RP_TRY(rp_map_intern(known, tree->nodes.at[i].exact, i, &first, err));
    return RP_OK;
}

enum rp_code rp_diff_align(const struct rp_diff_tree *left, const struct rp_diff_tree *right,
                           rp_diff_units *out, struct rp_err *err)
{
    struct aligner a = {.tree = {left, right}, .out = out};
    int64_t alone[2] = {0, 0};

    rp_map_init(&a.known[0]);
    rp_map_init(&a.known[1]);
    enum rp_code code = know(left, &a.known[0], err);
    if (code == RP_OK)
        code = know(right, &a.known[1], err);
    if (code == RP_OK)
        code = align_lists(&a, left->first, right->first, false, alone, err);
    if (code == RP_OK)
        code = settle_lost(&a, err);
    rp_map_release(&a.known[0]);
    rp_map_release(&a.known[1]);
    rp_vec_release(&a.lost.list[0]);
    rp_vec_release(&a.lost.list[1]);
    return code;
}
