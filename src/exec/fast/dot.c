/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products through f32 matrix products. Operands that lie as rows or as columns are taken as they
 * are, others are transposed first; types narrower than f32 are widened, and the result is rounded
 * once.
 */
#include "exec/ref/dot.h"
#include "exec/eval/lanes.h"
#include "exec/eval/strided.h"
#include "exec/fast/gemm.h"
#include "exec/fast/kernels.h"
#include "exec/ref/reduce.h"
#include "program/opcodes.h"

#define PACK_ROWS 8 /* fewer: the matrix is read once, packed or not */

static bool narrow_float(unsigned elem)
{
    return elem == RP_ELEM_F32 || rp_elem_is_small_float(elem);
}

static enum rp_code dot_side(struct rp_tensor *t, const uint32_t *perm, bool as_is,
                             struct rp_pool *pool, struct rp_tensor **out, struct rp_err *err)
{
    struct rp_tensor *wide;
    enum rp_code code;

    if (as_is)
        return rp_tensor_wide(t, out, err);
    RP_TRY(rp_tensor_wide(t, &wide, err));
    code = rp_tensor_transpose_spread(wide, perm, pool, out, err);
    rp_tensor_drop(wide);
    return code;
}

static enum rp_code is_plain(struct rp_eval *e, const struct rp_node *node,
                             struct rp_tensor *const *in, struct rp_tensor **out,
                             struct rp_err *err)
{
    return e->plan->reference[RP_OP_DOT]->run(e, node, in, out, err);
}

/* Our own products round to TF32 while they pack; a library is not asked for those. */
enum rp_code rp_fast_dot_prepare(struct rp_plan *plan, struct rp_node *node, struct rp_err *err)
{
    const struct rp_dot *d;

    RP_TRY(rp_dot_prepare(plan, node, err));
    d = node->attrs;
    if (d->tf32)
        node->run = rp_fast_dot;
    return RP_OK;
}

/* A second operand that is the same in every iteration is packed in the first one: *memo. */
static enum rp_code dot_packed(struct rp_eval *e, struct rp_gemm *g, struct rp_tensor **memo,
                               struct rp_err *err)
{
    int64_t floats = (int64_t)rp_gemm_packed_floats(g);

    if (!*memo) {
        RP_TRY(rp_tensor_new(RP_ELEM_F32, &floats, 1, memo, err));
        RP_TRY(rp_gemm_pack(g, (float *)(void *)(*memo)->data, e->pool, err));
    }
    g->packed = (const float *)(const void *)(*memo)->data;
    return RP_OK;
}

static bool wants_packed(const struct rp_eval *e, const struct rp_dot *d)
{
    return e->memo && !e->plan->blas && d->batch == 1 && d->left > PACK_ROWS && !d->tf32 &&
           d->right * d->inner > 0;
}

enum rp_code rp_fast_dot(struct rp_eval *e, const struct rp_node *node, struct rp_tensor *const *in,
                         struct rp_tensor **out, struct rp_err *err)
{
    const struct rp_dot *d = node->attrs;
    struct rp_tensor *l = NULL, *r = NULL, *to = NULL, **memo;
    enum rp_code code;

    if (!narrow_float(in[0]->elem) || !narrow_float(in[1]->elem) ||
        !narrow_float(node->shape->elem))
        return is_plain(e, node, in, out, err);
    memo = wants_packed(e, d) ? e->memo : NULL;
    code = dot_side(in[0], d->lhs_perm, d->lhs_plain || d->lhs_flipped, e->pool, &l, err);
    if (code == RP_OK && !(memo && *memo))
        code = dot_side(in[1], d->rhs_perm, d->rhs_plain || d->rhs_flipped, e->pool, &r, err);
    if (code == RP_OK)
        code = rp_tensor_new(RP_ELEM_F32, node->shape->dims, node->shape->rank, &to, err);
    if (code == RP_OK) {
        bool lf = d->lhs_flipped && !d->lhs_plain, rf = d->rhs_flipped && !d->rhs_plain;
        struct rp_gemm g = {
            .batch = d->batch,
            .m = d->left,
            .n = d->right,
            .k = d->inner,
            .a = (const float *)(void *)l->data,
            .b = (const float *)(void *)(r ? r : l)->data, /* not read where packed */
            .c = (float *)(void *)to->data,
            .a_row = lf ? 1 : d->inner,
            .a_column = lf ? d->left : 1,
            .a_batch = d->left * d->inner,
            .b_row = rf ? d->right : 1,
            .b_column = rf ? 1 : d->inner,
            .b_batch = d->right * d->inner,
            .tf32 = d->tf32};

        if (memo)
            code = dot_packed(e, &g, memo, err);
        if (code == RP_OK)
            code = rp_gemm_run(&g, e->plan->blas, e->pool, err);
    }
    if (code == RP_OK)
        code = rp_tensor_as(to, node->shape->elem, out, err);
    rp_tensor_drop(l);
    rp_tensor_drop(r);
    rp_tensor_drop(to);
    return code;
}
