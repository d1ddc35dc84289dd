/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention computes two products for each pair of a query and a key that it sees, and five in the
 * backward pass, one of which computes the scores again. For sequences packed into one tensor only
 * their number and all tokens are known, and equal lengths are assumed. Queries, keys, values and
 * result move once, in the backward pass also their gradients.
 */
#include "cost/attention.h"
#include "cost/models.h"

enum { HEADS_FIRST, TOKENS_FIRST, LAYOUT_AT };
enum { TOP, BOTTOM, TYPE };

static const struct attention_signature {
    int8_t q, layout, ends, longest, causal, corner, mask, window;
    bool paged, backward;
} signatures[] = {
#define RP_ATTENTION(id, ...) [RP_ATTENTION_##id] = {__VA_ARGS__},
#include "cost/attention.def"
};

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Returns the sum of i + shift for i from 0 to n - 1, each term limited to 0 .. most. */
static double clamped_sum(double n, double shift, double most)
{
    double none = clamp(-shift, 0, n), full = n - clamp(most - shift, none, n);
    double between = n - none - full;

    return between * (none + n - full - 1 + 2 * shift) / 2 + full * most;
}

double rp_attention_pairs(double queries, double keys, double offset, double left, double right)
{
    double up_to = right < 0 ? queries * keys : clamped_sum(queries, offset + right + 1, keys);
    double before = left < 0 ? 0 : clamped_sum(queries, offset - left, keys);

    return up_to > before ? up_to - before : 0;
}

void rp_attention_cost(const struct rp_attention_shape *a, double pairs, bool backward,
                       enum rp_number type, double size, struct rp_op_cost *out)
{
    double each =
        2 * (a->width + a->value_width) * (backward ? 2 : 1) + (backward ? 2 * a->width : 0);
    double qs = a->sequences * a->queries * a->heads, ks = a->sequences * a->keys * a->kv_heads;
    double read = qs * a->width + ks * (a->width + a->value_width), result = qs * a->value_width;

    out->flops = a->sequences * a->heads * pairs * each;
    out->bytes = size * (backward ? 2 * read + 2 * result : read + result);
    out->type = (uint8_t)type;
    out->on_matrix = true;
}

static const char *set_attention(const struct rp_attention_shape *a, double pairs, bool backward,
                                 const struct rp_input_tensor *q, struct rp_op_cost *out)
{
    if (q->size <= 0)
        return RP_NO_TYPES;
    rp_attention_cost(a, pairs, backward, (enum rp_number)q->type, (double)q->size, out);
    return NULL;
}

static const char *shape_batches(const struct rp_inputs *in, const struct attention_signature *s,
                                 const struct rp_input_tensor *q, const struct rp_input_tensor *k,
                                 const struct rp_input_tensor *v, struct rp_attention_shape *a)
{
    double first = s->layout == HEADS_FIRST;

    if (s->layout >= LAYOUT_AT && !rp_inputs_int(in, (uint32_t)(s->layout - LAYOUT_AT), &first))
        return RP_NO_ARGUMENTS;
    uint32_t heads = first > 0 ? 2 : 1;
    uint32_t tokens = 3 - heads;
    if (q->ndims < 4 || k->ndims != q->ndims || v->ndims != q->ndims)
        return RP_ODD_SHAPES;
    a->heads = rp_input_last(q, heads);
    a->kv_heads = rp_input_last(k, heads);
    a->queries = rp_input_last(q, tokens);
    a->keys = rp_input_last(k, tokens);
    a->width = rp_input_last(q, 0);
    a->value_width = s->layout >= LAYOUT_AT ? a->width : rp_input_last(v, 0);
    if (a->heads <= 0 || a->queries <= 0 || a->width <= 0)
        return RP_ODD_SHAPES;
    a->sequences = q->n / (a->heads * a->queries * a->width);
    return NULL;
}

/* [tokens, heads, width], with the ends of the sequences. */
static const char *shape_packed(const struct rp_inputs *in, const struct attention_signature *s,
                                const struct rp_input_tensor *q, const struct rp_input_tensor *k,
                                const struct rp_input_tensor *v, struct rp_attention_shape *a)
{
    const struct rp_input_tensor *ends =
        s->ends >= 0 ? rp_inputs_tensor(in, (uint32_t)s->ends) : NULL;
    double most_q = 0, most_k = 0;

    if (!ends || ends->n < 2)
        return RP_NO_LENGTHS;
    a->sequences = ends->n - 1;
    a->heads = rp_input_last(q, 1);
    a->kv_heads = rp_input_last(k, 1);
    a->width = rp_input_last(q, 0);
    a->value_width = rp_input_last(v, 0);
    a->queries = rp_input_last(q, 2) / a->sequences;
    a->keys = rp_input_last(k, 2) / a->sequences;
    if (s->longest >= 0 && (!rp_inputs_int(in, (uint32_t)s->longest, &most_q) ||
                            !rp_inputs_int(in, (uint32_t)s->longest + 1, &most_k)))
        most_q = most_k = 0;
    if (s->paged) { /* the longest keys exceed the longest queries by the part in the cache */
        if (most_q <= 1 || most_k < most_q)
            return RP_NO_LENGTHS;
        a->keys = a->queries + most_k - most_q;
    }
    return NULL;
}

const char *rp_model_attention(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct attention_signature *s = &signatures[arg];
    const struct rp_input_tensor *q = rp_inputs_tensor(in, (uint32_t)s->q),
                                 *k = rp_inputs_tensor(in, (uint32_t)s->q + 1),
                                 *v = rp_inputs_tensor(in, (uint32_t)s->q + 2), *mask;
    double left = -1, right = -1, offset = 0, type = 0;
    struct rp_attention_shape a = {0};

    if (!q || !k || !v)
        return RP_NO_SHAPES;
    const char *missing =
        q->ndims == 3 ? shape_packed(in, s, q, k, v, &a) : shape_batches(in, s, q, k, v, &a);
    if (missing)
        return missing;
    if (s->window >= 0 && (!rp_inputs_int(in, (uint32_t)s->window, &left) ||
                           !rp_inputs_int(in, (uint32_t)s->window + 1, &right)))
        left = right = -1;
    if (s->corner == BOTTOM)
        offset = a.keys - a.queries;
    if (s->corner == TYPE && rp_inputs_int(in, (uint32_t)s->causal, &type) && type > 0)
        offset = type == 2 ? a.keys - a.queries : 0;
    if (type > 0 || (s->corner != TYPE && rp_inputs_flag(in, (uint32_t)s->causal)))
        right = 0;
    missing = set_attention(&a, rp_attention_pairs(a.queries, a.keys, offset, left, right),
                            s->backward, q, out);
    mask = s->mask >= 0 ? rp_inputs_tensor(in, (uint32_t)s->mask) : NULL;
    if (!missing && mask)
        out->bytes += rp_input_bytes(mask);
    return missing;
}

/* Attention of servers: q [tokens, heads, width] at `arg`, then keys, either new ones or the cache.
   Only the mark of the step tells how long the sequences are. */
const char *rp_model_served_attention(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *q = rp_inputs_tensor(in, (uint32_t)arg),
                                 *k = rp_inputs_tensor(in, (uint32_t)arg + 1);
    const struct rp_batch *b = &in->batch;
    struct rp_attention_shape a = {.sequences = 1};

    if (!q || !k)
        return RP_NO_SHAPES;
    if (q->ndims != 3 || k->ndims < 3)
        return RP_ODD_SHAPES;
    a.heads = q->dim[1];
    a.kv_heads = rp_input_last(k, 1);
    a.width = a.value_width = q->dim[2];
    if (b->tokens > 0 && b->tokens <= q->dim[0]) { /* more are padding */
        a.queries = b->tokens;
        a.keys = b->keys;
        return set_attention(&a, b->pairs, false, q, out);
    }
    if (!b->prefill || b->requests < 1 || b->requests > q->dim[0])
        return RP_NO_LENGTHS;
    a.sequences = b->requests;
    a.queries = a.keys = q->dim[0] / a.sequences;
    return set_attention(&a, rp_attention_pairs(a.queries, a.keys, 0, -1, 0), false, q, out);
}
