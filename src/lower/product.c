/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products of TensorFlow as HLO's dot: plain, in batches that are broadcast, Einsum of one
 * or two operands, and the fused ones that its own optimiser makes.
 *
 * An Einsum's labels are of four kinds: in both operands and the result (a batch), in both and not
 * in the result (summed over by the dot), in one operand and the result (free), in one operand only
 * (summed over before). The dot gives batches, then the free ones of the left and of the right
 * operand, which are then brought into the order of the result.
 */
#include "lower/inner.h"

#include <string.h>

#define LOWER(name)                                                                             \
    static enum rp_code name(struct lower *l, const struct lower_node *node,                    \
                             const struct lower_value *in, size_t nin, struct lower_value *out, \
                             size_t *nout)

/* ---- matrices ---- */

/* Over all but the last two dimensions, which are batches of equal shapes. */
static enum rp_code product(struct lower *l, const struct lower_node *node,
                            const struct lower_value *a, const struct lower_value *b, bool turn_a,
                            bool turn_b, struct lower_value *out)
{
    size_t rank = a->rank, k, kb;
    int64_t dims[RP_TF_RANK], batch[RP_TF_RANK];

    if (rank < 2 || b->rank != rank || a->elem != b->elem)
        return lower_misfit(l, node, "incompatible input shapes");
    k = turn_a ? rank - 2 : rank - 1;
    kb = turn_b ? rank - 1 : rank - 2;
    if (a->dims[k] != b->dims[kb])
        return lower_misfit(l, node, "incompatible input shapes");
    for (size_t i = 0; i + 2 < rank; i++) {
        dims[i] = a->dims[i];
        batch[i] = (int64_t)i;
    }
    dims[rank - 2] = a->dims[turn_a ? rank - 1 : rank - 2];
    dims[rank - 1] = b->dims[turn_b ? rank - 2 : rank - 1];
    *out = lower_like(l, a->elem, dims, rank);
    lower_begin(l, out, RP_OP_DOT);
    lower_operand(l, a);
    lower_operand(l, b);
    if (rank > 2) {
        lower_set_ints(l, RP_ATTR_LHS_BATCH_DIMS, batch, rank - 2);
        lower_set_ints(l, RP_ATTR_RHS_BATCH_DIMS, batch, rank - 2);
    }
    lower_set_ints(l, RP_ATTR_LHS_CONTRACTING_DIMS, (int64_t[]){(int64_t)k}, 1);
    lower_set_ints(l, RP_ATTR_RHS_CONTRACTING_DIMS, (int64_t[]){(int64_t)kb}, 1);
    return RP_OK;
}

LOWER(mat_mul)
{
    (void)nin;
    (void)nout;
    return product(l, node, &in[0], &in[1], lower_attr_bool(node, "transpose_a"),
                   lower_attr_bool(node, "transpose_b"), out);
}

/* Both with the batches that they have together; false where they have none. */
static bool spread_batches(struct lower *l, struct lower_value *a, struct lower_value *b)
{
    size_t rank = a->rank > b->rank ? a->rank : b->rank;
    struct lower_value *both[2] = {a, b};
    int64_t dims[RP_TF_RANK];

    if (a->rank < 2 || b->rank < 2)
        return false;
    for (size_t i = 0; i + 2 < rank; i++) {
        int64_t x = i + a->rank >= rank ? a->dims[i + a->rank - rank] : 1;
        int64_t y = i + b->rank >= rank ? b->dims[i + b->rank - rank] : 1;

        if (x != y && x != 1 && y != 1)
            return false;
        dims[i] = x == 1 ? y : x;
    }
    for (size_t i = 0; i < 2; i++) {
        memcpy(dims + rank - 2, both[i]->dims + both[i]->rank - 2, 2 * sizeof *dims);
        *both[i] = lower_broadcast(l, both[i], dims, rank);
    }
    return true;
}

LOWER(batch_mat_mul)
{
    bool turn[2] = {lower_attr_bool(node, "adj_x"), lower_attr_bool(node, "adj_y")};
    struct lower_value both[2] = {in[0], in[1]};

    (void)nin;
    (void)nout;
    for (int i = 0; i < 2; i++)
        if (turn[i])
            both[i] = lower_conjugate(l, &in[i]);
    if (!spread_batches(l, &both[0], &both[1]))
        return lower_misfit(l, node, "incompatible input shapes");
    return product(l, node, &both[0], &both[1], turn[0], turn[1], out);
}

/* ---- Einsum ---- */

#define LABELS 64 /* letters, and the dimensions that '...' stands for */

struct term {
    size_t n;
    uint8_t label[RP_TF_RANK];
};

static int label_of(char c)
{
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1;
}

/* One term; '...' stands for `open` dimensions, the last of them label LABELS - 1. */
static bool read_term(const char **at, size_t open, struct term *t)
{
    const char *p = *at;

    t->n = 0;
    for (; *p && *p != ',' && *p != '-'; p++) {
        int label = label_of(*p);

        if (*p == ' ')
            continue;
        if (!strncmp(p, "...", 3)) {
            for (size_t i = 0; i < open && t->n < RP_TF_RANK; i++)
                t->label[t->n++] = (uint8_t)(LABELS - open + i);
            p += 2;
        } else if (label < 0 || t->n == RP_TF_RANK) {
            return false;
        } else {
            t->label[t->n++] = (uint8_t)label;
        }
    }
    *at = p;
    return true;
}

/* How many dimensions '...' of the k-th term stands for; 0 where it has none. */
static size_t open_dims(const char *equation, size_t k, size_t rank)
{
    size_t letters = 0;
    bool open = false;

    for (const char *p = equation; *p && *p != '-'; p++)
        if (*p == ',')
            k--;
        else if (!k && *p == '.')
            open = true;
        else if (!k && *p != ' ')
            letters++;
    return open && rank > letters && rank - letters < LABELS - 52 ? rank - letters : 0;
}

static bool has(const struct term *t, uint8_t label, size_t *at)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->label[i] == label) {
            *at = i;
            return true;
        }
    return false;
}

/* Sums over the labels of a term that neither the other nor the result has. */
static bool sum_lonely(struct lower *l, struct lower_value *v, struct term *t,
                       const struct term *other, const struct term *result)
{
    bool over[RP_TF_RANK] = {false}, any = false;
    size_t kept = 0, at;

    for (size_t i = 0; i < t->n; i++) {
        for (size_t k = 0; k < i; k++)
            if (t->label[k] == t->label[i])
                return false; /* a diagonal */
        over[i] = !has(result, t->label[i], &at) && !(other && has(other, t->label[i], &at));
        any |= over[i];
    }
    for (size_t i = 0; i < t->n; i++)
        if (!over[i])
            t->label[kept++] = t->label[i];
    t->n = kept;
    if (any)
        *v = lower_reduce(l, RP_OP_ADD, v, over);
    return true;
}

/* The dimensions of a value whose labels are `have`, in the order of `want`. */
static bool order(struct lower *l, struct lower_value *v, const struct term *have,
                  const struct term *want)
{
    int64_t perm[RP_TF_RANK];
    bool plain = true;
    size_t at;

    if (have->n != want->n)
        return false;
    for (size_t i = 0; i < want->n; i++) {
        if (!has(have, want->label[i], &at))
            return false;
        perm[i] = (int64_t)at;
        plain &= at == i;
    }
    if (!plain)
        *v = lower_permute(l, v, perm);
    return true;
}

/* lists of dimensions of a dot */
struct pairs {
    int64_t left[2][RP_TF_RANK], right[2][RP_TF_RANK]; /* 0: batches, 1: summed over */
    size_t n[2];
};

static bool contract(struct lower *l, const struct lower_value *v, const struct term *t,
                     const struct term *result, struct lower_value *out, struct term *got)
{
    struct pairs p = {.n = {0, 0}};
    int64_t dims[RP_TF_RANK];
    size_t at, other;

    got->n = 0;
    for (size_t i = 0; i < t[0].n; i++) {
        size_t kind;

        if (!has(&t[1], t[0].label[i], &other))
            continue;
        if (v[0].dims[i] != v[1].dims[other])
            return false;
        kind = has(result, t[0].label[i], &at) ? 0 : 1;
        p.left[kind][p.n[kind]] = (int64_t)i;
        p.right[kind][p.n[kind]++] = (int64_t)other;
        if (kind)
            continue;
        dims[got->n] = v[0].dims[i];
        got->label[got->n++] = t[0].label[i];
    }
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < t[side].n; i++)
            if (!has(&t[1 - side], t[side].label[i], &other)) {
                if (got->n == RP_TF_RANK)
                    return false;
                dims[got->n] = v[side].dims[i];
                got->label[got->n++] = t[side].label[i];
            }
    *out = lower_like(l, v->elem, dims, got->n);
    lower_begin(l, out, RP_OP_DOT);
    lower_operand(l, &v[0]);
    lower_operand(l, &v[1]);
    lower_set_ints(l, RP_ATTR_LHS_BATCH_DIMS, p.left[0], p.n[0]);
    lower_set_ints(l, RP_ATTR_RHS_BATCH_DIMS, p.right[0], p.n[0]);
    lower_set_ints(l, RP_ATTR_LHS_CONTRACTING_DIMS, p.left[1], p.n[1]);
    lower_set_ints(l, RP_ATTR_RHS_CONTRACTING_DIMS, p.right[1], p.n[1]);
    return true;
}

LOWER(einsum)
{
    struct rp_bytes equation = lower_attr_text(node, "equation");
    const char *at = rp_arena_copy(&l->arena, (const char *)equation.at, equation.n), *text = at;
    struct lower_value v[2];
    struct term t[2], result, got;
    size_t most = 0;

    (void)nout;
    if (!at)
        return rp_err_nomem(l->err, "lowering a graph");
    if (nin > 2)
        return lower_refuse(l, node, "more than two inputs are not supported");
    for (size_t i = 0; i < nin; i++) {
        size_t open = open_dims(text, i, in[i].rank);

        most = open > most ? open : most;
        v[i] = in[i];
        if (!read_term(&at, open, &t[i]) || t[i].n != in[i].rank || (i + 1 < nin && *at++ != ','))
            return lower_misfit(l, node, "the equation does not match the inputs");
    }
    if (strncmp(at, "->", 2) != 0 || (at += 2, !read_term(&at, most, &result)) || *at)
        return lower_refuse(l, node, "the equation has no result");
    for (size_t i = 0; i < nin; i++)
        if (!sum_lonely(l, &v[i], &t[i], nin > 1 ? &t[1 - i] : NULL, &result))
            return lower_refuse(l, node, "diagonals are not supported");
    if (nin == 1) {
        *out = v[0];
        got = t[0];
    } else if (!contract(l, v, t, &result, out, &got)) {
        return lower_misfit(l, node, "incompatible input shapes");
    }
    if (!order(l, out, &got, &result))
        return lower_refuse(l, node, "the result has dimensions that the inputs do not have");
    return RP_OK;
}

const struct lower_row lower_products[] = {{"MatMul", mat_mul, LOWER_NO_OPCODE, 2},
                                           {"BatchMatMul", batch_mat_mul, LOWER_NO_OPCODE, 2},
                                           {"BatchMatMulV2", batch_mat_mul, LOWER_NO_OPCODE, 2},
                                           {"BatchMatMulV3", batch_mat_mul, LOWER_NO_OPCODE, 2},
                                           {"Einsum", einsum, LOWER_NO_OPCODE, 1},
                                           {NULL, NULL, LOWER_NO_OPCODE, 0}};
