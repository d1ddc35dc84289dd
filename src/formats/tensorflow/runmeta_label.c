/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads labels of rows in TensorFlow's step statistics. The operator is only in the label: the row
 * has only the name of the node. Labels are read as tensorflow/python/client/timeline.py does, so
 * that a Timeline made of the same file shows the same.
 */
#include "formats/tensorflow/runmeta.h"

static const struct rp_bytes unknown = {(const uint8_t *)"unknown", 7};

static struct rp_bytes slice(struct rp_bytes b, size_t from, size_t to)
{
    return (struct rp_bytes){b.at + from, to - from};
}

/* The position where the word begins, or b.n. */
static size_t find_text(struct rp_bytes b, size_t from, const char *word)
{
    const uint8_t *at = from < b.n ? memmem(b.at + from, b.n - from, word, strlen(word)) : NULL;

    return at ? (size_t)(at - b.at) : b.n;
}

/* The last position of the word that is before `before`, or b.n. */
static size_t find_last_text(struct rp_bytes b, size_t before, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = before; i-- > 0;)
        if (i + n <= b.n && memcmp(b.at + i, word, n) == 0)
            return i;
    return b.n;
}

/* Matches the pattern "(.*) = (.*)\((.*)\)", each part as long as possible. */
void rp_runmeta_read_op_label(struct rp_bytes label, struct rp_runmeta_label *out)
{
    size_t close = find_last_text(label, label.n, ")");

    *out = (struct rp_runmeta_label){.name = unknown, .op = unknown};
    if (close == label.n)
        return;
    size_t open = find_last_text(label, close, "(");
    size_t equals = open < label.n ? find_last_text(label, open, " = ") : label.n;
    while (equals < label.n && equals + 3 > open) /* it must end before the parenthesis */
        equals = find_last_text(label, equals, " = ");
    if (equals == label.n)
        return;

    /* Splits "[...] name" into the text in the brackets and the name. */
    struct rp_bytes name = slice(label, 0, equals);
    size_t end = name.n && name.at[0] == '[' ? find_text(name, 0, "] ") : name.n;
    out->name = end < name.n ? slice(name, end + 2, name.n) : name;
    if (end < name.n)
        out->memory = slice(name, 1, end);
    out->op = slice(label, equals + 3, open);
    out->inputs = slice(label, open + 1, close);
}

void rp_runmeta_read_kernel_label(struct rp_bytes label, struct rp_bytes node_name,
                                  struct rp_runmeta_label *out)
{
    size_t start = find_text(label, 0, "@@"), end = find_text(label, 0, "#");

    *out = (struct rp_runmeta_label){.op = unknown};
    if (start < label.n && end < label.n && start + 2 < end)
        node_name = slice(label, start + 2, end);
    size_t colon = find_text(node_name, 0, ":");
    out->name = slice(node_name, 0, colon);
    if (colon == node_name.n)
        return;
    size_t next = find_text(node_name, colon + 1, ":");
    out->op = slice(node_name, colon + 1, next);
}

void rp_runmeta_read_recv_label(struct rp_bytes label, struct rp_runmeta_label *out)
{
    size_t edge = 0;

    *out = (struct rp_runmeta_label){0};
    while (edge < label.n && label.at[edge] == '[') /* size and rate */
        edge = find_text(label, edge, "] ") == label.n ? label.n : find_text(label, edge, "] ") + 2;
    size_t from = find_text(label, edge, " from ");
    size_t to = find_text(label, from, " to ");
    if (from == label.n || to == label.n)
        return;
    out->edge = slice(label, edge, from);
    out->from = slice(label, from + 6, to);
    out->to = slice(label, to + 4, label.n);
}

bool rp_runmeta_next_input(struct rp_bytes *inputs, struct rp_bytes *out)
{
    if (!inputs->n)
        return false;
    size_t end = find_text(*inputs, 0, ", ");
    *out = slice(*inputs, 0, end);
    *inputs = end + 2 <= inputs->n ? slice(*inputs, end + 2, inputs->n) : (struct rp_bytes){0};
    return true;
}
