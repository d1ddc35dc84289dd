/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowers matrix products of TensorFlow to HLO's dot: plain ones, batches that are broadcast, Einsum
 * of one or two operands, and the fused ones that its optimiser makes.
 *
 * An Einsum's labels are of four kinds: in both operands and the result (a batch), in both and not
 * in the result (summed over by the dot), in one operand and the result (free), in one operand only
 * (summed over before). The dot gives batches, then the free ones of the left and of the right
 * operand, which are then brought into the order of the result.
 */
#include "lower/inner.h"
#include "program/opcodes.h"

#include <string.h>

/* ---- matrices ---- */

/* Multiplies matrices. All dimensions except the last two are batches, and equal. */
static enum rp_code matrix_product(struct rp_lower *l, const struct rp_lower_node *node,
                                   const struct rp_lower_value *a, const struct rp_lower_value *b,
                                   bool transpose_a, bool transpose_b, struct rp_lower_value *out)
{
    size_t rank = a->rank;
    int64_t dims[RP_TF_RANK], batch[RP_TF_RANK];

    if (rank < 2 || b->rank != rank || a->elem != b->elem)
        return rp_lower_misfit(l, node, "incompatible input shapes");
    size_t k = transpose_a ? rank - 2 : rank - 1;
    size_t kb = transpose_b ? rank - 1 : rank - 2;
    if (a->dims[k] != b->dims[kb])
        return rp_lower_misfit(l, node, "incompatible input shapes");
    for (size_t i = 0; i + 2 < rank; i++) {
        dims[i] = a->dims[i];
        batch[i] = (int64_t)i;
    }
    dims[rank - 2] = a->dims[transpose_a ? rank - 1 : rank - 2];
    dims[rank - 1] = b->dims[transpose_b ? rank - 2 : rank - 1];
    *out = rp_lower_like(l, a->elem, dims, rank);
    rp_lower_begin(l, out, RP_OP_DOT);
    rp_lower_operand(l, a);
    rp_lower_operand(l, b);
    if (rank > 2) {
        rp_lower_set_ints(l, RP_ATTR_LHS_BATCH_DIMS, batch, rank - 2);
        rp_lower_set_ints(l, RP_ATTR_RHS_BATCH_DIMS, batch, rank - 2);
    }
    rp_lower_set_ints(l, RP_ATTR_LHS_CONTRACTING_DIMS, (int64_t[]){(int64_t)k}, 1);
    rp_lower_set_ints(l, RP_ATTR_RHS_CONTRACTING_DIMS, (int64_t[]){(int64_t)kb}, 1);
    return RP_OK;
}

RP_LOWER(mat_mul)
{
    return matrix_product(l, node, &in[0], &in[1], rp_lower_attr_bool(node, "transpose_a"),
                          rp_lower_attr_bool(node, "transpose_b"), out);
}

/* Broadcasts the batch dimensions of both to their common shape; false if there is none. */
static bool spread_batches(struct rp_lower *l, struct rp_lower_value *a, struct rp_lower_value *b)
{
    size_t rank = a->rank > b->rank ? a->rank : b->rank;
    struct rp_lower_value *both[2] = {a, b};
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
        *both[i] = rp_lower_broadcast(l, both[i], dims, rank);
    }
    return true;
}

RP_LOWER(batch_mat_mul)
{
    bool adjoint[2] = {rp_lower_attr_bool(node, "adj_x"), rp_lower_attr_bool(node, "adj_y")};
    unsigned elem = rp_lower_attr_elem(node, "Tout"); /* V3: bytes give wider integers */
    struct rp_lower_value both[2] = {in[0], in[1]};

    for (int i = 0; i < 2; i++) {
        if (adjoint[i])
            both[i] = rp_lower_conjugate(l, &in[i]);
        if (elem != RP_ELEM_INVALID)
            both[i] = rp_lower_convert(l, &both[i], elem);
    }
    if (!spread_batches(l, &both[0], &both[1]))
        return rp_lower_misfit(l, node, "incompatible input shapes");
    return matrix_product(l, node, &both[0], &both[1], adjoint[0], adjoint[1], out);
}

/* ---- Einsum ---- */

#define LABELS 64 /* letters, and the dimensions that '...' represents */

struct term {
    size_t n;
    uint8_t label[RP_TF_RANK];
};

static int label_of(char c)
{
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1;
}

/* Reads one term; '...' means `open` dimensions, the last of them with label LABELS - 1. */
static bool term_read(const char **at, size_t open, struct term *t)
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

/* The number of dimensions that '...' means in the k-th term; 0 if the term has no '...'. */
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

static bool term_find(const struct term *t, uint8_t label, size_t *at)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->label[i] == label) {
            *at = i;
            return true;
        }
    return false;
}

/* Dimensions of '...' with one element, but more in the other term, are broadcast: they are left
   out, and become free dimensions of the other. */
static void term_drop_units(struct rp_lower *l, struct rp_lower_value *v, struct term *t,
                            const struct rp_lower_value *other_value, const struct term *other)
{
    int64_t dims[RP_TF_RANK];
    size_t kept = 0, at;

    for (size_t i = 0; i < t->n; i++)
        if (t->label[i] < 52 || v->dims[i] != 1 || !term_find(other, t->label[i], &at) ||
            other_value->dims[at] == 1) {
            dims[kept] = v->dims[i];
            t->label[kept++] = t->label[i];
        }
    t->n = kept;
    *v = rp_lower_reshape(l, v, dims, kept);
}

/* Sums over the labels of a term that are neither in the other term nor in the result. */
static bool term_sum_unshared(struct rp_lower *l, struct rp_lower_value *v, struct term *t,
                              const struct term *other, const struct term *result)
{
    bool over[RP_TF_RANK] = {false}, any = false;
    size_t kept = 0, at;

    for (size_t i = 0; i < t->n; i++) {
        for (size_t k = 0; k < i; k++)
            if (t->label[k] == t->label[i])
                return false; /* a diagonal */
        over[i] =
            !term_find(result, t->label[i], &at) && !(other && term_find(other, t->label[i], &at));
        any |= over[i];
    }
    for (size_t i = 0; i < t->n; i++)
        if (!over[i])
            t->label[kept++] = t->label[i];
    t->n = kept;
    if (any)
        *v = rp_lower_reduce(l, RP_OP_ADD, v, over);
    return true;
}

/* Brings the dimensions of a value, whose labels are `have`, into the order of `want`. */
static bool term_permute(struct rp_lower *l, struct rp_lower_value *v, const struct term *have,
                         const struct term *want)
{
    int64_t perm[RP_TF_RANK];
    bool plain = true;
    size_t at;

    if (have->n != want->n)
        return false;
    for (size_t i = 0; i < want->n; i++) {
        if (!term_find(have, want->label[i], &at))
            return false;
        perm[i] = (int64_t)at;
        plain &= at == i;
    }
    if (!plain)
        *v = rp_lower_permute(l, v, perm);
    return true;
}

/* Dimension numbers of a dot. */
struct dot_dims {
    int64_t left[2][RP_TF_RANK], right[2][RP_TF_RANK]; /* [0] are batches, [1] are summed over */
    size_t n[2];
};

static bool term_contract(struct rp_lower *l, const struct rp_lower_value *v, const struct term *t,
                          const struct term *result, struct rp_lower_value *out, struct term *got)
{
    struct dot_dims p = {.n = {0, 0}};
    int64_t dims[RP_TF_RANK];
    size_t at, other;

    got->n = 0;
    for (size_t i = 0; i < t[0].n; i++) {
        if (!term_find(&t[1], t[0].label[i], &other))
            continue;
        if (v[0].dims[i] != v[1].dims[other])
            return false;
        size_t kind = term_find(result, t[0].label[i], &at) ? 0 : 1;
        p.left[kind][p.n[kind]] = (int64_t)i;
        p.right[kind][p.n[kind]++] = (int64_t)other;
        if (kind)
            continue;
        dims[got->n] = v[0].dims[i];
        got->label[got->n++] = t[0].label[i];
    }
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < t[side].n; i++)
            if (!term_find(&t[1 - side], t[side].label[i], &other)) {
                if (got->n == RP_TF_RANK)
                    return false;
                dims[got->n] = v[side].dims[i];
                got->label[got->n++] = t[side].label[i];
            }
    *out = rp_lower_like(l, v->elem, dims, got->n);
    rp_lower_begin(l, out, RP_OP_DOT);
    rp_lower_operand(l, &v[0]);
    rp_lower_operand(l, &v[1]);
    rp_lower_set_ints(l, RP_ATTR_LHS_BATCH_DIMS, p.left[0], p.n[0]);
    rp_lower_set_ints(l, RP_ATTR_RHS_BATCH_DIMS, p.right[0], p.n[0]);
    rp_lower_set_ints(l, RP_ATTR_LHS_CONTRACTING_DIMS, p.left[1], p.n[1]);
    rp_lower_set_ints(l, RP_ATTR_RHS_CONTRACTING_DIMS, p.right[1], p.n[1]);
    return true;
}

RP_LOWER(einsum)
{
    struct rp_bytes equation = rp_lower_attr_text(node, "equation");
    const char *at = rp_arena_copy(&l->arena, (const char *)equation.at, equation.n), *text = at;
    struct rp_lower_value v[2];
    struct term t[2], result, got;
    size_t most = 0;

    RP_TRY(rp_err_need(at, l->err, "lowering a graph"));
    if (nin > 2)
        return rp_lower_refuse(l, node, "more than two inputs are not supported");
    for (size_t i = 0; i < nin; i++) {
        size_t open = open_dims(text, i, in[i].rank);

        most = open > most ? open : most;
        v[i] = in[i];
        if (!term_read(&at, open, &t[i]) || t[i].n != in[i].rank || (i + 1 < nin && *at++ != ','))
            return rp_lower_misfit(l, node, "the equation does not match the inputs");
    }
    if (strncmp(at, "->", 2) != 0 || (at += 2, !term_read(&at, most, &result)) || *at)
        return rp_lower_refuse(l, node, "the equation has no result");
    for (size_t i = 0; nin > 1 && i < 2; i++)
        term_drop_units(l, &v[i], &t[i], &v[1 - i], &t[1 - i]);
    for (size_t i = 0; i < nin; i++)
        if (!term_sum_unshared(l, &v[i], &t[i], nin > 1 ? &t[1 - i] : NULL, &result))
            return rp_lower_refuse(l, node, "diagonals are not supported");
    if (nin == 1) {
        *out = v[0];
        got = t[0];
    } else if (!term_contract(l, v, t, &result, out, &got)) {
        return rp_lower_misfit(l, node, "incompatible input shapes");
    }
    if (!term_permute(l, out, &got, &result))
        return rp_lower_refuse(l, node, "the result has dimensions that the inputs do not have");
    return RP_OK;
}

const struct rp_lower_row rp_lower_products[] = {
    {"MatMul", lower_mat_mul, RP_LOWER_NO_OPCODE, 2},
    {"BatchMatMul", lower_batch_mat_mul, RP_LOWER_NO_OPCODE, 2},
    {"BatchMatMulV2", lower_batch_mat_mul, RP_LOWER_NO_OPCODE, 2},
    {"BatchMatMulV3", lower_batch_mat_mul, RP_LOWER_NO_OPCODE, 2},
    {"Einsum", lower_einsum, RP_LOWER_NO_OPCODE, 1},
    {NULL, NULL, RP_LOWER_NO_OPCODE, 0}};
