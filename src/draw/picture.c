/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds edges between the children of every group from the operands of all operations, and lays out
 * each group. An operand in another group is an edge between the two groups that are in their
 * common group. Linear in operations and operands times the depth of the tree.
 */
#include "draw/picture.h"

#include <string.h>

struct found { /* an edge and the group that holds it */
    uint32_t group, from, to;
};

struct making {
    const struct rp_program *p;
    struct rp_picture *out;
    struct rp_arena *arena;
    struct rp_err *err;
    RP_VEC(struct found) found;
    uint32_t *begin; /* by group: its edges in `sorted` */
    struct found *sorted;
    uint16_t *shape_chars; /* the length of the text of each shape */
};

float rp_picture_height(const struct rp_tree *tree, uint32_t child)
{
    if (child >= tree->p->nops)
        return RP_BOX_GROUP_H;
    return rp_tree_is_data(tree->p, child) ? RP_BOX_DATA_H : RP_BOX_OP_H;
}

/* Returns a width that fits the shape and most names; longer ones are cut. */
static float child_width(const struct making *m, uint32_t child)
{
    const struct rp_program *p = m->p;

    if (child >= p->nops)
        return RP_BOX_GROUP_W;
    size_t chars = m->shape_chars[p->shape.at[child]];
    size_t opcode = strlen(rp_op_opcode_name(p, child)) + 5;
    size_t name = strlen(rp_program_text(p, p->op_name.at[child])) + 2;
    if (rp_tree_is_data(p, child))
        opcode = 12;
    if (name > opcode)
        opcode = name < 26 ? name : 26;
    chars = chars > opcode ? chars : opcode;
    float w = 16 + 6.2f * (float)chars;
    return w < 70 ? 70 : w > RP_BOX_MOST_W ? RP_BOX_MOST_W : (float)(int)w;
}

/* ---- edges ---- */

/* Climbs from both ends to the children of the common group. */
static enum rp_code find_edge(struct making *m, uint32_t from, uint32_t to)
{
    const struct rp_tree *t = &m->out->tree;
    const struct rp_group *groups = t->groups;
    uint32_t a = t->home[from], b = t->home[to], x = from, y = to;

    while (a != b)
        if (groups[a].depth >= groups[b].depth) {
            x = m->p->nops + a;
            a = groups[a].parent;
        } else {
            y = m->p->nops + b;
            b = groups[b].parent;
        }
    if (groups[a].same != a || x == y)
        return RP_OK;
    struct found edge = {a, t->index[x], t->index[y]};
    return rp_vec_push(&m->found, edge, m->err);
}

static enum rp_code find_edges(struct making *m)
{
    size_t n = m->out->tree.ngroups;

    for (uint32_t op = 0; op < m->p->nops; op++) {
        struct rp_ids operands = rp_op_operands(m->p, op);

        for (uint32_t i = 0; i < operands.n; i++)
            RP_TRY(find_edge(m, operands.at[i], op));
    }
    m->begin = RP_ARENA_NEW(m->arena, uint32_t, n + 2);
    m->sorted = RP_ARENA_NEW(m->arena, struct found, m->found.n + 1);
    RP_TRY(rp_err_need(m->begin && m->sorted, m->err, "drawing a program"));
    for (size_t i = 0; i < m->found.n; i++)
        m->begin[m->found.at[i].group + 2]++;
    for (size_t i = 2; i < n + 2; i++)
        m->begin[i] += m->begin[i - 1];
    for (size_t i = 0; i < m->found.n; i++)
        m->sorted[m->begin[m->found.at[i].group + 1]++] = m->found.at[i];
    return RP_OK;
}

/* Merges equal edges; `heads` and `seen` have room for all children and are all zero. */
static void merge_edges(const struct found *from, uint32_t n, uint32_t nchildren, uint32_t *heads,
                        uint32_t *seen, struct found *by_end, struct rp_picture_group *to)
{
    for (uint32_t i = 0; i < n; i++)
        heads[from[i].to + 1]++;
    for (uint32_t i = 1; i <= nchildren; i++)
        heads[i] += heads[i - 1];
    for (uint32_t i = 0; i < n; i++)
        by_end[heads[from[i].to]++] = from[i];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = seen[by_end[i].from];

        if (at && to->edges[at - 1].to == by_end[i].to) {
            to->edges[at - 1].count++;
            continue;
        }
        to->edges[to->nedges++] = (struct rp_picture_edge){by_end[i].from, by_end[i].to, 1};
        seen[by_end[i].from] = to->nedges;
    }
    memset(heads, 0, ((size_t)nchildren + 1) * sizeof *heads);
    memset(seen, 0, ((size_t)nchildren + 1) * sizeof *seen);
}

/* ---- layouts ---- */

struct scratch { /* for the largest group */
    uint32_t *heads, *seen;
    struct found *by_end;
};

static enum rp_code lay_out_group(struct making *m, uint32_t g, const struct scratch *s)
{
    const struct rp_tree *tree = &m->out->tree;
    const struct rp_group *group = &tree->groups[g];
    struct rp_picture_group *to = &m->out->groups[g];
    uint32_t n = m->begin[g + 1] - m->begin[g];
    struct rp_layout_edge *edges = RP_ARENA_NEW(m->arena, struct rp_layout_edge, (size_t)n + 1);
    float *h = RP_ARENA_NEW(m->arena, float, (size_t)group->n + 1);

    to->edges = RP_ARENA_NEW(m->arena, struct rp_picture_edge, (size_t)n + 1);
    to->w = RP_ARENA_NEW(m->arena, float, (size_t)group->n + 1);
    RP_TRY(rp_err_need(edges && h && to->edges && to->w, m->err, "drawing a program"));
    merge_edges(m->sorted + m->begin[g], n, group->n, s->heads, s->seen, s->by_end, to);
    for (uint32_t i = 0; i < to->nedges; i++)
        edges[i] = (struct rp_layout_edge){to->edges[i].from, to->edges[i].to};
    for (uint32_t i = 0; i < group->n; i++) {
        uint32_t child = tree->children[group->first + i];

        to->w[i] = child_width(m, child);
        h[i] = rp_picture_height(tree, child);
    }
    return rp_layout_run(&(struct rp_layout_graph){group->n, to->w, h, to->nedges, edges}, m->arena,
                         &to->layout, m->err);
}

static enum rp_code lay_out_all(struct making *m)
{
    const struct rp_tree *tree = &m->out->tree;
    uint32_t most = 0, edges = 0;
    struct scratch s;

    for (uint32_t g = 0; g < tree->ngroups; g++) {
        most = tree->groups[g].n > most ? tree->groups[g].n : most;
        edges = m->begin[g + 1] - m->begin[g] > edges ? m->begin[g + 1] - m->begin[g] : edges;
    }
    s.heads = RP_ARENA_NEW(m->arena, uint32_t, (size_t)most + 2);
    s.seen = RP_ARENA_NEW(m->arena, uint32_t, (size_t)most + 2);
    s.by_end = RP_ARENA_NEW(m->arena, struct found, (size_t)edges + 1);
    RP_TRY(rp_err_need(s.heads && s.seen && s.by_end, m->err, "drawing a program"));
    for (uint32_t g = 0; g < tree->ngroups; g++)
        if (tree->groups[g].same == g)
            RP_TRY(lay_out_group(m, g, &s));
    return RP_OK;
}

static enum rp_code picture_fill(struct making *m)
{
    struct rp_picture *out = m->out;

    RP_TRY(rp_program_hash(m->p, m->arena, &out->hashes, m->err));
    RP_TRY(rp_program_count(m->p, m->arena, &out->costs, m->err));
    RP_TRY(rp_tree_build(m->p, &out->hashes, m->arena, &out->tree, m->err));
    out->groups = RP_ARENA_NEW(m->arena, struct rp_picture_group, (size_t)out->tree.ngroups + 1);
    RP_TRY(rp_err_need(out->groups, m->err, "drawing a program"));

    char text[64];
    m->shape_chars = RP_ARENA_NEW(m->arena, uint16_t, m->p->shapes.n + 1);
    RP_TRY(rp_err_need(m->shape_chars, m->err, "drawing a program"));
    for (uint32_t i = 0; i < m->p->shapes.n; i++) {
        size_t n = rp_shape_text(m->p, i, false, text, sizeof text);

        m->shape_chars[i] = (uint16_t)(n < 1000 ? n : 1000);
    }
    RP_TRY(find_edges(m));
    return lay_out_all(m);
}

enum rp_code rp_picture_make(const struct rp_program *p, struct rp_arena *arena,
                             struct rp_picture *out, struct rp_err *err)
{
    struct making m = {.p = p, .out = out, .arena = arena, .err = err};

    *out = (struct rp_picture){0};
    enum rp_code code = picture_fill(&m);
    rp_vec_release(&m.found);
    return code;
}
