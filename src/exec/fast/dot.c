/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes dots through matrix products. Operands that are rows or columns in memory are used
 * directly, others are transposed first; types narrower than f32 are widened, and the result is
 * rounded once. Products of integers are exact and then cut to the type.
 */
#include "exec/ref/dot.h"
#include "exec/eval/lanes.h"
#include "exec/eval/strided.h"
#include "exec/fast/gemm.h"
#include "exec/fast/kernels.h"
#include "exec/fast/product.h"
#include "exec/ref/reduce.h"
#include "program/floats.h"
#include "program/opcodes.h"

#define PACK_ROWS 8 /* with fewer rows, the matrix is read only once, packed or not */

/* ---- how ---- */

enum way {
    BY_F32,   /* f32, and narrower types, rounded once */
    BY_BYTES, /* integers of at most eight bits */
    BY_WIDE   /* f64, complex numbers, other integers */
};

static bool narrow_float(unsigned elem)
{
    return elem == RP_ELEM_F32 || rp_elem_is_small_float(elem);
}

static bool is_integer(unsigned elem)
{
    return rp_elem_is_signed(elem) || rp_elem_is_unsigned(elem);
}

static enum way dot_way(unsigned a, unsigned b, unsigned to)
{
    if (narrow_float(a) && narrow_float(b) && narrow_float(to))
        return BY_F32;
    if (is_integer(to) && rp_elem_bits(to) <= 32 && rp_elem_is_byte(a) && rp_elem_is_byte(b))
        return BY_BYTES;
    return BY_WIDE;
}

/* The type in which a product is computed. */
static unsigned dot_elem(unsigned to, enum way way)
{
    if (way == BY_F32)
        return RP_ELEM_F32;
    if (way == BY_BYTES)
        return RP_ELEM_S32;
    if (rp_elem_is_complex(to))
        return to;
    return rp_elem_is_float(to) ? RP_ELEM_F64 : rp_elem_bits(to) > 32 ? RP_ELEM_S64 : RP_ELEM_S32;
}

static enum rp_code dot_side(struct rp_tensor *t, unsigned elem, const uint32_t *perm, bool as_is,
                             struct rp_pool *pool, struct rp_tensor **out, struct rp_err *err)
{
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *wide = NULL;

    RP_TRY(elem == RP_ELEM_F32 ? rp_tensor_wide(t, &wide, err) : rp_tensor_as(t, elem, &wide, err));
    if (!as_is)
        return rp_tensor_transpose_spread(wide, perm, pool, out, err);
    *out = rp_tensor_keep(wide);
    return RP_OK;
}

/* Our own products round to TF32 while they pack; a library cannot. */
RP_PREPARE(rp_fast_dot_prepare)
{
    RP_TRY(rp_dot_prepare(plan, node, err));
    const struct rp_dot *d = node->attrs;
    if (d->tf32)
        node->run = rp_fast_dot;
    return RP_OK;
}

static bool wants_packed(const struct rp_eval *e, const struct rp_dot *d)
{
    return e->memo && !e->plan->blas && d->batch == 1 && d->left > PACK_ROWS && !d->tf32 &&
           !d->split && d->right * d->inner > 0;
}

/* ---- running ---- */

/* Both sides in the order that the method wants, and the result before it is rounded. */
struct sides {
    struct rp_tensor *l, *r, *to;
    bool lf, rf; /* flipped: the contracted dimension comes before the free one */
};

static void sides_release(struct sides *s)
{
    rp_tensor_drop(s->l);
    rp_tensor_drop(s->r);
    rp_tensor_drop(s->to);
}

static enum rp_code by_f32(struct rp_eval *e, const struct rp_node *node, const struct sides *s,
                           struct rp_tensor **memo, struct rp_err *err)
{
    const struct rp_dot *d = node->attrs;
    struct rp_gemm g = {.batch = d->batch,
                        .m = d->left,
                        .n = d->right,
                        .k = d->inner,
                        .a = (const float *)(void *)s->l->data,
                        /* not read if it is packed */
                        .b = (const float *)(void *)(s->r ? s->r : s->l)->data,
                        .c = (float *)(void *)s->to->data,
                        .a_row = s->lf ? 1 : d->inner,
                        .a_column = s->lf ? d->left : 1,
                        .a_batch = d->left * d->inner,
                        .b_row = s->rf ? d->right : 1,
                        .b_column = s->rf ? 1 : d->inner,
                        .b_batch = d->right * d->inner,
                        .tf32 = d->tf32};

    if (memo) {
        /* A second operand that is the same in every iteration is packed in the first one and kept
           in memo. */
        int64_t floats = (int64_t)rp_gemm_packed_floats(&g);

        if (!*memo) {
            RP_TRY(rp_tensor_new(RP_ELEM_F32, &floats, 1, memo, err));
            RP_TRY(rp_gemm_pack(&g, (float *)(void *)(*memo)->data, e->pool, err));
        }
        g.packed = (const float *)(const void *)(*memo)->data;
    }
    return rp_gemm_run(&g, e->plan->blas, e->pool, err);
}

/* Rows of a have both parts of each number one after the other, and so do those of c. */
static enum rp_code by_complex(struct rp_eval *e, const struct rp_dot *d, const struct sides *s,
                               struct rp_err *err)
{
    int64_t k = 2 * d->inner, n = 2 * d->right;
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *turned = NULL;

    RP_TRY(rp_product_turn(s->r, (size_t)d->inner, &turned, err));
    if (s->to->elem == RP_ELEM_C64) {
        struct rp_gemm g = {.batch = d->batch,
                            .m = d->left,
                            .n = n,
                            .k = k,
                            .a = (const float *)(void *)s->l->data,
                            .b = (const float *)(void *)turned->data,
                            .c = (float *)(void *)s->to->data,
                            .a_row = k,
                            .a_column = 1,
                            .a_batch = d->left * k,
                            .b_row = 1,
                            .b_column = k,
                            .b_batch = n * k};

        RP_TRY(rp_gemm_run(&g, e->plan->blas, e->pool, err));
    } else {
        struct rp_product p = {
            RP_ELEM_F64, d->batch, d->left, n,           k, s->l->data, turned->data,
            s->to->data, k,        1,       d->left * k, 1, k,          n * k};

        RP_TRY(rp_product_run(&p, e->pool, err));
    }
    return RP_OK;
}

/* Handles f64 and integers. */
static enum rp_code by_wide(struct rp_eval *e, const struct rp_dot *d, const struct sides *s,
                            bool bytes, struct rp_err *err)
{
    struct rp_product p = {.elem = s->to->elem,
                           .batch = d->batch,
                           .m = d->left,
                           .n = d->right,
                           .k = d->inner,
                           .a = s->l->data,
                           .b = s->r->data,
                           .c = s->to->data,
                           .a_row = s->lf ? 1 : d->inner,
                           .a_column = s->lf ? d->left : 1,
                           .a_batch = d->left * d->inner,
                           .b_row = s->rf ? d->right : 1,
                           .b_column = s->rf ? 1 : d->inner,
                           .b_batch = d->right * d->inner};

    return bytes ? rp_product_bytes(&p, rp_elem_is_signed(s->l->elem),
                                    rp_elem_is_signed(s->r->elem), e->pool, err)
                 : rp_product_run(&p, e->pool, err);
}

RP_KERNEL(rp_fast_dot)
{
    const struct rp_dot *d = node->attrs;
    unsigned to = node->shape->elem;
    enum way way = dot_way(in[0]->elem, in[1]->elem, to);
    unsigned elem = dot_elem(to, way);
    bool complex = rp_elem_is_complex(elem);
    struct rp_tensor **memo = way == BY_F32 && wants_packed(e, d) ? e->memo : NULL;
    RP_SCOPED(sides_release)
    struct sides s = {.lf = d->lhs_flipped && !d->lhs_plain && !complex,
                      .rf = d->rhs_flipped && !d->rhs_plain && !complex};

    RP_TRY(dot_side(in[0], way == BY_BYTES ? in[0]->elem : elem, d->lhs_perm, d->lhs_plain || s.lf,
                    e->pool, &s.l, err));
    if (!(memo && *memo))
        RP_TRY(dot_side(in[1], way == BY_BYTES ? in[1]->elem : elem, d->rhs_perm,
                        d->rhs_plain || s.rf, e->pool, &s.r, err));
    RP_TRY(rp_tensor_new(elem, node->shape->dims, node->shape->rank, &s.to, err));
    RP_TRY(complex         ? by_complex(e, d, &s, err)
           : way == BY_F32 ? by_f32(e, node, &s, memo, err)
                           : by_wide(e, d, &s, way == BY_BYTES, err));
    return rp_tensor_as(s.to, to, out, err);
}
