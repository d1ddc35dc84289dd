/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes dot for the reference engine: both operands are brought into the order batch, free,
 * contracted and widened to f64, s64 or c128; then every result is one sum, rounded once at its
 * end. Cost: one multiplication and addition for each term, in the order of the contracted
 * dimensions.
 */
#include "exec/ref/dot.h"
#include "base/threads.h"
#include "exec/data/complex.h"
#include "exec/eval/lanes.h"
#include "exec/eval/strided.h"
#include "exec/ref/kernels.h"
#include "exec/ref/reduce.h"
#include "program/dot_algorithm.h"
#include "program/floats.h"
#include "program/opcodes.h"

#include <string.h>

static bool contains(const int64_t *list, size_t n, int64_t d)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == d)
            return true;
    return false;
}

/* Arranges batch, free, contracted; returns the number of free elements. */
static int64_t dot_arrange(const struct rp_value_shape *s, const int64_t *batch, size_t nbatch,
                           const int64_t *inner, size_t ninner, uint32_t *perm)
{
    int64_t free_elements = 1;
    size_t at = 0;

    for (size_t i = 0; i < nbatch; i++)
        perm[at++] = (uint32_t)batch[i];
    for (uint32_t k = 0; k < s->rank; k++)
        if (!contains(batch, nbatch, k) && !contains(inner, ninner, k)) {
            perm[at++] = k;
            free_elements *= s->dims[k];
        }
    for (size_t i = 0; i < ninner; i++)
        perm[at++] = (uint32_t)inner[i];
    return free_elements;
}

static bool in_order(const uint32_t *perm, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (perm[i] != i)
            return false;
    return true;
}

/* Whether the array is stored as batch, contracted, free. */
static bool is_flipped(const uint32_t *perm, size_t rank, size_t nbatch, size_t ninner)
{
    size_t nfree = rank - nbatch - ninner;
    uint32_t other[RP_TENSOR_RANK];

    memcpy(other, perm, nbatch * sizeof *perm);
    memcpy(other + nbatch, perm + nbatch + nfree, ninner * sizeof *perm);
    memcpy(other + nbatch + ninner, perm + nbatch, nfree * sizeof *perm);
    return in_order(other, rank);
}

/* Finds whether each operand is stored in the order that a product reads. */
static void dot_lies(struct rp_dot *d)
{
    d->lhs_plain = in_order(d->lhs_perm, d->rank[0]);
    d->rhs_plain = in_order(d->rhs_perm, d->rank[1]);
    d->lhs_flipped = is_flipped(d->lhs_perm, d->rank[0], d->nbatch, d->ninner);
    d->rhs_flipped = is_flipped(d->rhs_perm, d->rank[1], d->nbatch, d->ninner);
}

bool rp_dot_turn(struct rp_dot *d, uint32_t side, const int64_t *dims)
{
    uint32_t *perm = side ? d->rhs_perm : d->lhs_perm;

    for (uint32_t i = 0; i < d->rank[side]; i++)
        perm[i] = (uint32_t)dims[perm[i]];
    dot_lies(d);
    return side ? d->rhs_plain || d->rhs_flipped : d->lhs_plain || d->lhs_flipped;
}

enum rp_code rp_dot_fill(struct rp_dot *d, const struct rp_node *node,
                         const struct rp_value_shape *lhs, const struct rp_value_shape *rhs,
                         const int64_t *const lists[4], const size_t counts[4], struct rp_err *err)
{
    if (counts[0] != counts[1] || counts[2] != counts[3] || counts[0] + counts[2] > lhs->rank ||
        counts[1] + counts[3] > rhs->rank)
        return rp_node_error(node, RP_FORMAT, err, "the dimensions do not match");
    d->batch = d->inner = 1;
    for (size_t i = 0; i < counts[2]; i++)
        if (contains(lists[0], counts[0], lists[2][i]) ||
            contains(lists[1], counts[1], lists[3][i]))
            return rp_node_error(node, RP_FORMAT, err, "a dimension is listed twice");
    for (size_t i = 0; i < counts[0]; i++) {
        if (lhs->dims[lists[0][i]] != rhs->dims[lists[1][i]])
            return rp_node_error(node, RP_FORMAT, err, "contracted dimensions differ");
        d->inner *= lhs->dims[lists[0][i]];
    }
    for (size_t i = 0; i < counts[2]; i++) {
        if (lhs->dims[lists[2][i]] != rhs->dims[lists[3][i]])
            return rp_node_error(node, RP_FORMAT, err, "batch dimensions differ");
        d->batch *= lhs->dims[lists[2][i]];
    }
    d->left = dot_arrange(lhs, lists[2], counts[2], lists[0], counts[0], d->lhs_perm);
    d->right = dot_arrange(rhs, lists[3], counts[3], lists[1], counts[1], d->rhs_perm);
    d->rank[0] = lhs->rank;
    d->rank[1] = rhs->rank;
    d->nbatch = (uint32_t)counts[2];
    d->ninner = (uint32_t)counts[0];
    dot_lies(d);
    return RP_OK;
}

/* ---- products of f32 by narrower types ---- */

#define CUT_JOB 65536

/* The rounded number, the rounded remainder, and both together. */
enum cut_part { HIGH, LOW, BOTH };

struct cut {
    uint32_t *to;
    const uint32_t *from;
    size_t n;
    enum cut_part part;
    bool bf16; /* else TF32 */
};

RP_CLONES void rp_round_tf32(uint32_t *to, const uint32_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t rounded = (from[i] + 0x1000) & 0xffffe000;

        to[i] = (from[i] & 0x7f800000) == 0x7f800000 ? from[i] : rounded;
    }
}

/* Rounds ties to even, as a conversion does. */
RP_CLONES static void round_bf16(uint32_t *to, const uint32_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t rounded = (from[i] + 0x7fff + (from[i] >> 16 & 1)) & 0xffff0000;

        to[i] = (from[i] & 0x7f800000) == 0x7f800000 ? from[i] : rounded;
    }
}

/* Gives the remainder; it is zero for numbers that are not finite. */
RP_CLONES static void subtract_high(uint32_t *rest, const uint32_t *from, const uint32_t *high,
                                    size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x, h;

        memcpy(&x, from + i, sizeof x);
        memcpy(&h, high + i, sizeof h);
        x -= h;
        memcpy(rest + i, &x, sizeof x);
        rest[i] = (high[i] & 0x7f800000) == 0x7f800000 ? 0 : rest[i];
    }
}

static void cut_block(const struct cut *c, uint32_t *to, const uint32_t *from, size_t n)
{
    void (*cut)(uint32_t *, const uint32_t *, size_t) = c->bf16 ? round_bf16 : rp_round_tf32;
    uint32_t high[256];

    if (c->part == HIGH) {
        cut(to, from, n);
        return;
    }
    for (size_t i = 0, k; i < n; i += k) {
        k = n - i < 256 ? n - i : 256;
        cut(high, from + i, k);
        subtract_high(to + i, from + i, high, k);
        cut(to + i, to + i, k);
        for (size_t j = 0; c->part == BOTH && j < k; j++) {
            float h, l;

            memcpy(&h, high + j, sizeof h);
            memcpy(&l, to + i + j, sizeof l);
            h += l; /* exact */
            memcpy(to + i + j, &h, sizeof h);
        }
    }
}

static RP_JOB(cut_job)
{
    const struct cut *c = user;
    size_t begin = job * CUT_JOB, n = c->n - begin < CUT_JOB ? c->n - begin : CUT_JOB;

    cut_block(c, c->to + begin, c->from + begin, n);
    return RP_OK;
}

static enum rp_code cut_all(struct rp_eval *e, const struct rp_tensor *in, bool bf16,
                            enum cut_part part, struct rp_tensor **out, struct rp_err *err)
{
    struct cut c = {
        .from = (const uint32_t *)(const void *)in->data, .n = in->n, .part = part, .bf16 = bf16};
    size_t jobs = (in->n + CUT_JOB - 1) / CUT_JOB;

    RP_TRY(rp_tensor_new(RP_ELEM_F32, in->dims, in->rank, out, err));
    c.to = (uint32_t *)(void *)(*out)->data;
    return rp_pool_each(e->pool, jobs, cut_job, &c, err);
}

/* Multiplies one part of each operand. */
static enum rp_code dot_of_parts(struct rp_eval *e, const struct rp_node *node,
                                 struct rp_tensor *const *in, enum cut_part left,
                                 enum cut_part right, struct rp_tensor **out, struct rp_err *err)
{
    const struct rp_dot *d = node->attrs;
    RP_SCOPED(rp_tensors_release) struct rp_tensors cut = {0};

    RP_TRY(rp_tensors_new(2, &cut, err));
    RP_TRY(cut_all(e, in[0], d->bf16, left, &cut.at[0], err));
    RP_TRY(cut_all(e, in[1], d->bf16, right, &cut.at[1], err));
    return node->kernel->run(e, node, cut.at, out, err);
}

static RP_KERNEL(dot_cut)
{
    return dot_of_parts(e, node, in, HIGH, HIGH, out, err);
}

/* Adds three products: high with high, high with low and low with high. */
static RP_KERNEL(dot_split)
{
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *rest = NULL;

    RP_TRY(dot_of_parts(e, node, in, LOW, HIGH, &rest, err));
    RP_TRY(dot_of_parts(e, node, in, HIGH, BOTH, out, err));
    for (size_t i = 0; i < rest->n; i++)
        ((float *)(void *)(*out)->data)[i] += ((const float *)(const void *)rest->data)[i];
    return RP_OK;
}

/* Whether a precision is "high" or "highest". */
static bool asks_for_more(const struct rp_attr *precision)
{
    for (uint32_t i = 0; precision && precision->type == RP_VALUE_WORDS && i < precision->n; i++)
        if (precision->texts[i].n >= 4 && !memcmp(precision->texts[i].at, "high", 4))
            return true;
    return false;
}

/* Chooses how to compute products of f32 as the program asks. A GPU uses TF32 unless the program
   asks for more, but not for vectors, which tensor cores do not handle. Six or nine products equal
   f32 except for its rounding. */
static void choose_cut(const struct rp_plan *plan, struct rp_node *node, struct rp_dot *d)
{
    const struct rp_attr *precision = rp_node_attr(plan, node, RP_ATTR_OPERAND_PRECISION),
                         *word = rp_node_attr(plan, node, RP_ATTR_ALGORITHM);
    const struct rp_dot_algorithm *a =
        word && word->type == RP_VALUE_WORD ? rp_dot_algorithm_find(word->at, word->n) : NULL;
    bool tf32 = a && strcmp(a->operands, "tf32") == 0;

    if (rp_node_operand(plan, node, 0)->elem != RP_ELEM_F32 ||
        rp_node_operand(plan, node, 1)->elem != RP_ELEM_F32 || node->shape->elem != RP_ELEM_F32)
        return;
    d->bf16 = a && a->products <= 3 && strcmp(a->operands, "bf16") == 0;
    d->split = a && a->products == 3 && (d->bf16 || tf32);
    d->tf32 = (tf32 && !d->split) ||
              (plan->tf32 && !word && d->left > 1 && d->right > 1 && !asks_for_more(precision));
    if (d->split || d->bf16 || d->tf32)
        node->run = d->split ? dot_split : dot_cut;
}

RP_PREPARE(rp_dot_prepare)
{
    static const unsigned keys[4] = {RP_ATTR_LHS_CONTRACTING_DIMS, RP_ATTR_RHS_CONTRACTING_DIMS,
                                     RP_ATTR_LHS_BATCH_DIMS, RP_ATTR_RHS_BATCH_DIMS};
    const struct rp_value_shape *side[2] = {rp_node_operand(plan, node, 0),
                                            rp_node_operand(plan, node, 1)};
    struct rp_dot *d = RP_NODE_NEW(plan, struct rp_dot);
    const int64_t *lists[4];
    size_t counts[4];

    RP_TRY(rp_err_need(d, err, "planning"));
    if (node->nin != 2)
        return rp_node_error(node, RP_UNSUPPORTED, err, "sparse operands are not supported");
    for (size_t i = 0; i < 4; i++)
        RP_TRY(rp_node_ints(plan, node, keys[i], side[i % 2]->rank ? side[i % 2]->rank : 1,
                            &lists[i], &counts[i], err));
    RP_TRY(rp_dot_fill(d, node, side[0], side[1], lists, counts, err));
    /* The dimensions of the result are batch, free of the left side, free of the right side. */
    int64_t dims[2 * RP_TENSOR_RANK];
    size_t n = 0;
    for (size_t i = 0; i < side[0]->rank - counts[0]; i++)
        dims[n++] = side[0]->dims[d->lhs_perm[i]];
    for (size_t i = counts[2]; i < side[1]->rank - counts[0]; i++)
        dims[n++] = side[1]->dims[d->rhs_perm[i]];
    RP_TRY(rp_node_expect(node, "the result", node->shape, RP_ELEM_INVALID, dims, n, err));
    node->attrs = d;
    choose_cut(plan, node, d);
    return RP_OK;
}

/* Computes one sum for each result; the loops are the same for all three types. */
#define PRODUCT(name, type)                                                               \
    static void name(const struct rp_dot *d, const void *lhs, const void *rhs, void *out) \
    {                                                                                     \
        const type *l = lhs, *r = rhs;                                                    \
        type *to = out;                                                                   \
                                                                                          \
        for (int64_t b = 0; b < d->batch; b++)                                            \
            for (int64_t i = 0; i < d->left; i++)                                         \
                for (int64_t j = 0; j < d->right; j++) {                                  \
                    const type *x = l + (b * d->left + i) * d->inner;                     \
                    const type *y = r + (b * d->right + j) * d->inner;                    \
                    type sum = 0;                                                         \
                                                                                          \
                    for (int64_t k = 0; k < d->inner; k++)                                \
                        sum += x[k] * y[k];                                               \
                    *to++ = sum;                                                          \
                }                                                                         \
    }
PRODUCT(product_float, double)
PRODUCT(product_integer, uint64_t)
PRODUCT(product_complex, double complex)

unsigned rp_dot_elem(unsigned elem)
{
    return rp_elem_is_complex(elem) ? RP_ELEM_C128
           : rp_elem_is_float(elem) ? RP_ELEM_F64
                                    : RP_ELEM_S64;
}

enum rp_code rp_dot_side(struct rp_tensor *t, const uint32_t *perm, bool plain, unsigned wide,
                         struct rp_tensor **out, struct rp_err *err)
{
    struct rp_tensor *turned;

    if (plain)
        return rp_tensor_as(t, wide, out, err);
    RP_TRY(rp_tensor_transpose(t, perm, &turned, err));
    enum rp_code code = rp_tensor_as(turned, wide, out, err);
    rp_tensor_drop(turned);
    return code;
}

enum rp_code rp_dot_wide(const struct rp_dot *d, struct rp_tensor *lhs, struct rp_tensor *rhs,
                         unsigned elem, struct rp_tensor **out, struct rp_err *err)
{
    unsigned wide = rp_dot_elem(elem);
    int64_t dims[3] = {d->batch, d->left, d->right};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *l = NULL, *r = NULL;

    *out = NULL;
    RP_TRY(rp_dot_side(lhs, d->lhs_perm, d->lhs_plain, wide, &l, err));
    RP_TRY(rp_dot_side(rhs, d->rhs_perm, d->rhs_plain, wide, &r, err));
    RP_TRY(rp_tensor_new(wide, dims, 3, out, err));
    (wide == RP_ELEM_C128  ? product_complex
     : wide == RP_ELEM_F64 ? product_float
                           : product_integer)(d, l->data, r->data, (*out)->data);
    return RP_OK;
}

enum rp_code rp_dot_finish(struct rp_tensor *wide, const struct rp_node *node,
                           struct rp_tensor **out, struct rp_err *err)
{
    struct rp_tensor *cut;
    enum rp_code code = rp_tensor_as(wide, node->shape->elem, &cut, err);

    rp_tensor_drop(wide);
    if (code != RP_OK)
        return code;
    code = rp_tensor_view(cut, cut->elem, node->shape->dims, node->shape->rank, out, err);
    rp_tensor_drop(cut);
    return code;
}

static RP_KERNEL(dot_run)
{
    struct rp_tensor *wide;

    RP_TRY(rp_dot_wide(node->attrs, in[0], in[1], node->shape->elem, &wide, err));
    return rp_dot_finish(wide, node, out, err);
}

const struct rp_kernel rp_kernels_dot[] = {
    {RP_OP_DOT, rp_dot_prepare, dot_run},
    {0, NULL, NULL},
};
