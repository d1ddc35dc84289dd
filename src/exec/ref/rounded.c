/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes sums and products of types narrower than f32. The program says that every step has that
 * type, so every step is rounded, and then the order matters. This uses XLA's order for the CPU:
 * where a reduced dimension is longer than 32, windows of 32 are reduced first, padded evenly at
 * both ends, and then their results. The reduced dimensions are brought to the front, so that a
 * step is one pass over all results. Cost: one pass over the operand.
 */
#include "exec/eval/lanes.h"
#include "exec/eval/strided.h"
#include "exec/ref/reduce.h"
#include "program/opcodes.h"

#include <stdlib.h>

#define WINDOW 32

bool rp_reduce_is_rounded(const struct rp_tape *tape, unsigned elem)
{
    return rp_elem_is_small_float(elem) &&
           (tape->simple == RP_OP_ADD || tape->simple == RP_OP_MULTIPLY);
}

struct rounded {
    unsigned elem;
    bool multiply;
    size_t rank, n; /* number of reduced dimensions; of results */
    int64_t dims[RP_TENSOR_RANK], stride[RP_TENSOR_RANK];
    int64_t window[RP_TENSOR_RANK], low[RP_TENSOR_RANK], grid[RP_TENSOR_RANK];
    const float *in;
    float init;
};

RP_CLONES static void round_combine(float *acc, const float *in, size_t n, bool multiply)
{
    if (multiply)
        for (size_t i = 0; i < n; i++)
            acc[i] *= in[i];
    else
        for (size_t i = 0; i < n; i++)
            acc[i] += in[i];
}

static void round_fold(const struct rounded *r, float *acc, const float *in)
{
    round_combine(acc, in, r->n, r->multiply);
    rp_round_small(r->elem, r->n, acc);
}

static void round_fill(float *to, float value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = value;
}

static void one_window(const struct rounded *r, const int64_t *at, float *acc)
{
    int64_t k[RP_TENSOR_RANK] = {0};

    round_fill(acc, r->init, r->n);
    do {
        int64_t from = 0;
        bool inside = true;

        for (size_t i = 0; i < r->rank; i++) {
            int64_t place = at[i] * r->window[i] + k[i] - r->low[i];

            inside &= place >= 0 && place < r->dims[i];
            from += place * r->stride[i];
        }
        if (inside)
            round_fold(r, acc, r->in + from * (int64_t)r->n);
    } while (rp_index_next(k, r->window, r->rank));
}

/* Puts reduced dimensions in front; computes sizes of windows, if any. */
static enum rp_code round_arrange(struct rounded *r, const struct rp_reduce *a, struct rp_tensor *t,
                                  bool *windows, struct rp_tensor **out, struct rp_err *err)
{
    uint32_t perm[RP_TENSOR_RANK];
    size_t at = 0;

    r->n = 1;
    *windows = false;
    for (uint32_t k = 0; k < t->rank; k++)
        if (a->reduced[k]) {
            perm[at++] = k;
            r->dims[r->rank++] = t->dims[k];
            *windows |= t->dims[k] > WINDOW;
        }
    for (uint32_t k = 0; k < t->rank; k++)
        if (!a->reduced[k]) {
            perm[at++] = k;
            r->n *= (size_t)t->dims[k];
        }
    rp_strides(r->dims, r->rank, r->stride);
    for (size_t i = 0; i < r->rank; i++) {
        r->window[i] = *windows && r->dims[i] > WINDOW ? WINDOW : r->dims[i];
        r->grid[i] = r->window[i] ? (r->dims[i] + r->window[i] - 1) / r->window[i] : 0;
        r->low[i] = (r->grid[i] * r->window[i] - r->dims[i]) / 2;
    }
    return rp_tensor_transpose(t, perm, out, err);
}

enum rp_code rp_reduce_rounded(const struct rp_reduce *a, struct rp_tensor *in,
                               const struct rp_tensor *init, struct rp_tensor *out,
                               struct rp_err *err)
{
    struct rounded r = {.elem = in->elem, .multiply = a->tape->simple == RP_OP_MULTIPLY};
    int64_t at[RP_TENSOR_RANK] = {0};
    struct rp_tensor *wide, *front = NULL;
    float *acc = NULL, *part = NULL;
    bool windows;

    RP_TRY(rp_tensor_wide(in, &wide, err));
    enum rp_code code = round_arrange(&r, a, wide, &windows, &front, err);
    rp_tensor_drop(wide);
    if (code != RP_OK)
        return code;
    acc = malloc((r.n + 1) * sizeof *acc);
    part = malloc((r.n + 1) * sizeof *part);
    if (!acc || !part) {
        code = rp_err_nomem(err, "reducing");
    } else {
        r.in = (const float *)(void *)front->data;
        rp_widen(r.elem, 1, &r.init, init->data);
        round_fill(acc, r.init, r.n);
        if (in->n && !windows)
            one_window(&r, at, acc);
        else if (in->n)
            do {
                one_window(&r, at, part);
                round_fold(&r, acc, part);
            } while (rp_index_next(at, r.grid, r.rank));
        rp_narrow(r.elem, r.n, out->data, acc);
    }
    free(acc);
    free(part);
    rp_tensor_drop(front);
    return code;
}
