/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads lazy-tensor graphs that were dumped for Graphviz (LTC_SAVE_TENSORS_FMT=dot): nodes first,
 * with all the information of the text form in their labels, then edges.
 *
 *   digraph G {
 *     node3 [label="aten::mul\nf32[6,1]\nscope=a\nROOT=0"]
 *     node1 -> node3 [label="i=1,o=2"]
 *   }
 *
 * Operands are added with their operation, so edges are collected first and sorted by their ends.
 */
#include "formats/lazy/lazy.h"
#include "program/opcodes.h"

#include "base/order.h"

#include <stdlib.h>
#include <string.h>

struct dot_node {
    const char *label, *label_end;
    uint32_t number;
};

/* The position after "node12", or NULL. */
static const char *node_name(const char *s, const char *end, uint32_t *number)
{
    const char *digits = s + 4;

    if (end - s < 5 || memcmp(s, "node", 4) != 0)
        return NULL;
    const char *behind = rp_lazy_number(digits, end, number);
    return behind > digits ? behind : NULL;
}

/* Finds the text of [label="..."]; false if there is none. */
static bool find_label(const char *s, const char *end, const char **from, const char **to)
{
    const char *at = memmem(s, (size_t)(end - s), "label=\"", 7);

    if (!at)
        return false;
    *from = at += 7;
    while (at < end && *at != '"')
        at += 1 + (*at == '\\' && at + 1 < end);
    *to = at < end ? at : end;
    return true;
}

static enum rp_code read_edge(struct rp_lazy *r, const char *s, const char *end, uint32_t from)
{
    struct rp_lazy_edge edge = {.from = from};
    const char *arrow = memmem(s, (size_t)(end - s), "->", 2), *label, *label_end;

    if (!arrow)
        return RP_LAZY_FAIL(r, s, "expected '->' or a label");
    for (arrow += 2; arrow < end && *arrow == ' ';)
        arrow++;
    s = node_name(arrow, end, &edge.to);
    if (!s)
        return RP_LAZY_FAIL(r, arrow, "expected a node");
    if (find_label(s, end, &label, &label_end))
        for (; label + 2 < label_end; label++) {
            if (label[0] == 'i' && label[1] == '=')
                rp_lazy_number(label + 2, label_end, &edge.operand);
            else if (label[0] == 'o' && label[1] == '=')
                rp_lazy_number(label + 2, label_end, &edge.output);
        }
    return rp_vec_push(&r->edges, edge, r->err);
}

RP_ORDER(by_target, struct rp_lazy_edge, RP_UP(to), RP_UP(operand))

/* In "op shape key=value ...", a part ends with " ", written as two characters. */
static const char *part_end(const char *s, const char *end)
{
    for (; s + 1 < end; s++)
        if (s[0] == '\\' && s[1] == 'n')
            return s;
    return end;
}

static enum rp_code add_dot_node(struct rp_lazy *r, const struct dot_node *node)
{
    struct rp_new_op op = {.code = RP_OP_FOREIGN};
    const char *s = node->label, *to = part_end(s, node->label_end);
    uint32_t id;

    if (s == to)
        return RP_LAZY_FAIL(r, s, "expected an operation");
    RP_TRY(rp_program_string(r->p, s, (size_t)(to - s), &op.foreign, r->err));
    s = to < node->label_end ? to + 2 : node->label_end;
    to = part_end(s, node->label_end);
    RP_TRY(rp_lazy_shape(r, s, to, &op.shape));
    if (r->p->nops >= r->limits.events)
        return rp_err_set(r->err, RP_LIMIT, "too many operations");
    RP_TRY(rp_program_add_op(r->p, &op, &id, r->err));

    /* Adds the operands of a node: its edges, which are adjacent in the sorted list. */
    size_t low;
    RP_LOWER_BOUND(low, r->edges.n, r->edges.at[low].to < node->number);
    for (; low < r->edges.n && r->edges.at[low].to == node->number; low++) {
        uint32_t from = r->edges.at[low].from;
        if (from >= r->op_of.n || !r->op_of.at[from])
            return rp_err_set(r->err, RP_FORMAT, "edge from undefined 'node%u'", from);
        RP_TRY(
            rp_program_add_operand(r->p, r->op_of.at[from] - 1, r->edges.at[low].output, r->err));
    }
    while (to < node->label_end) {
        s = to + 2;
        to = part_end(s, node->label_end);
        RP_TRY(rp_lazy_attributes(r, s, to));
    }
    return RP_OK;
}

static const char *line_end(const struct rp_lazy *r, const char *s)
{
    const char *end = memchr(s, '\n', (size_t)(r->end - s));

    return end ? end : r->end;
}

/* Reads one line; only an edge has an arrow before its label. */
static enum rp_code read_dot_line(struct rp_lazy *r, const char *s, const char *end, uint32_t first,
                                  struct dot_node *nodes, size_t *n)
{
    uint32_t number;
    const char *behind = node_name(s, end, &number);

    if (!behind)
        return RP_OK;
    const char *bracket = memchr(behind, '[', (size_t)(end - behind));
    if (memmem(behind, (size_t)((bracket ? bracket : end) - behind), "->", 2))
        return read_edge(r, behind, end, number);
    nodes[*n].number = number;
    if (!find_label(behind, end, &nodes[*n].label, &nodes[*n].label_end))
        return RP_LAZY_FAIL(r, s, "node without a label");

    /* Operations are numbered before the first is added, because an edge may come from a later
     * node. */
    uint32_t op = first + (uint32_t)*n;
    if (number > (uint64_t)(r->end - r->begin))
        return rp_err_set(r->err, RP_LIMIT, "too many operations");
    while (r->op_of.n <= number)
        RP_TRY(rp_vec_push(&r->op_of, 0, r->err));
    if (r->op_of.at[number])
        return rp_err_set(r->err, RP_FORMAT, "'node%u' is defined twice", number);
    r->op_of.at[number] = op + 1;
    ++*n;
    return RP_OK;
}

enum rp_code rp_lazy_dot(struct rp_lazy *r, const char **line)
{
    const char *s = *line, *end = s;
    RP_FREED struct dot_node *nodes = NULL;
    uint32_t first = r->p->nops;
    size_t lines = 1, n = 0;

    for (const char *at = s; at < r->end && lines < r->limits.events; lines++) {
        at += *at == '\n';
        if (at < r->end && *at == '}')
            break;
        at = line_end(r, at);
    }
    nodes = calloc(lines + 1, sizeof *nodes);
    RP_TRY(rp_err_need(nodes, r->err, "reading a dot graph"));
    r->edges.n = 0;
    RP_TRY(rp_lazy_begin_graph(r));
    while (s < r->end && n < lines) {
        s += *s == '\n';
        end = line_end(r, s);
        while (s < end && *s == ' ')
            s++;
        if (s < end && *s == '}')
            break;
        RP_TRY(read_dot_line(r, s, end, first, nodes, &n));
        s = end;
    }
    rp_sort(r->edges.at, r->edges.n, sizeof *r->edges.at, by_target);
    for (size_t i = 0; i < n; i++)
        RP_TRY(add_dot_node(r, &nodes[i]));
    *line = end;
    return RP_OK;
}
