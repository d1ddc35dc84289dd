/* SPDX-License-Identifier: Apache-2.0 */
#include "program/infer.h"

#include "program/opcodes.h"
#include "program/window.h"

struct infer {
    const struct rp_infer_op *of;
    const struct rp_infer_dims *in;
    size_t n, part;
    struct rp_infer_dims *out;
};

static const struct rp_attr *attr_of(const struct infer *q, uint32_t key)
{
    for (size_t i = 0; i < q->of->nset; i++)
        if (q->of->set[i].key == key)
            return &q->of->set[i];
    return rp_op_attr(q->of->p, q->of->op, key);
}

/* Returns a list of the operation, which is empty if the attribute is missing. */
static struct rp_int_list list_of(const struct infer *q, uint32_t key)
{
    const struct rp_attr *attr = attr_of(q, key);
    struct rp_int_list list = {0};

    if (attr && !rp_attr_numbers(attr, &list.at, &list.n))
        list.n = 0;
    return list;
}

static int64_t number_of(const struct infer *q, uint32_t key, int64_t absent)
{
    struct rp_int_list list = list_of(q, key);

    return list.n == 1 ? list.at[0] : absent;
}

static bool is_in(const struct rp_int_list *list, size_t dim)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i] == (int64_t)dim)
            return true;
    return false;
}

static bool put_dim(struct infer *q, int64_t size)
{
    if (q->out->n == RP_INFER_RANK)
        return false;
    q->out->at[q->out->n++] = size;
    return true;
}

/* Sizes and numbers for which this is true can be added and multiplied without overflow. */
static bool fits(int64_t number)
{
    return number > -(INT64_C(1) << 31) && number < INT64_C(1) << 31;
}

static bool same_as(struct infer *q, size_t operand)
{
    if (operand >= q->n)
        return false;
    *q->out = q->in[operand];
    return true;
}

/* Appends the dimensions of an operand without some of them. */
static bool without(struct infer *q, size_t operand, const struct rp_int_list *one,
                    const struct rp_int_list *other)
{
    if (operand >= q->n)
        return false;
    for (size_t i = 0; i < q->in[operand].n; i++)
        if (!is_in(one, i) && !(other && is_in(other, i)) && !put_dim(q, q->in[operand].at[i]))
            return false;
    return true;
}

/* ---- operations ---- */

static bool infer_dot(struct infer *q)
{
    struct rp_int_list batch = list_of(q, RP_ATTR_LHS_BATCH_DIMS),
                       right = list_of(q, RP_ATTR_RHS_BATCH_DIMS),
                       left_sum = list_of(q, RP_ATTR_LHS_CONTRACTING_DIMS),
                       right_sum = list_of(q, RP_ATTR_RHS_CONTRACTING_DIMS);

    if (q->n < 2)
        return false;
    for (size_t i = 0; i < batch.n; i++)
        if (batch.at[i] < 0 || (size_t)batch.at[i] >= q->in[0].n ||
            !put_dim(q, q->in[0].at[batch.at[i]]))
            return false;
    return without(q, 0, &batch, &left_sum) && without(q, 1, &right, &right_sum);
}

/* Counts the positions of a window along a dimension of that size; 0 if it does not fit. */
static int64_t window_positions(int64_t size, const struct rp_window_dim *w)
{
    int64_t spread = size > 0 ? (size - 1) * w->base_dilation + 1 : 0;
    int64_t window = w->size > 0 ? (w->size - 1) * w->window_dilation + 1 : 0;
    int64_t room = spread + w->pad_low + w->pad_high - window;

    return room < 0 || w->stride < 1 ? 0 : room / w->stride + 1;
}

static bool window_fits(int64_t size, const struct rp_window_dim *w)
{
    return fits(size) && fits(w->size) && fits(w->base_dilation) && fits(w->window_dilation) &&
           fits(w->pad_low) && fits(w->pad_high);
}

static bool infer_reduce_window(struct infer *q)
{
    const struct rp_attr *attr = attr_of(q, RP_ATTR_WINDOW);
    struct rp_window w;

    if (!attr || !rp_attr_window(attr, &w) || q->part >= q->n || q->in[q->part].n != w.n)
        return false;
    for (size_t i = 0; i < w.n; i++)
        if (!window_fits(q->in[q->part].at[i], &w.dim[i]) ||
            !put_dim(q, window_positions(q->in[q->part].at[i], &w.dim[i])))
            return false;
    return true;
}

static bool infer_convolution(struct infer *q)
{
    const struct rp_attr *window = attr_of(q, RP_ATTR_WINDOW),
                         *labels = attr_of(q, RP_ATTR_DIM_LABELS);
    int64_t groups = number_of(q, RP_ATTR_BATCH_GROUP_COUNT, 1);
    struct rp_conv_dims d;
    struct rp_window w = {0};
    char text[64];

    if (!labels || !rp_attr_conv_dims(labels, &d) || q->n < 2 || groups < 1 ||
        q->in[0].n != d.nspatial + 2 || q->in[1].n != d.nspatial + 2 ||
        (window && !rp_attr_window(window, &w)) || w.n != d.nspatial ||
        !rp_conv_dims_print(&d, text))
        return false;
    q->out->n = d.nspatial + 2;
    q->out->at[d.output_batch] = q->in[0].at[d.input_batch] / groups;
    q->out->at[d.output_feature] = q->in[1].at[d.kernel_output];
    for (size_t i = 0; i < d.nspatial; i++) {
        w.dim[i].size = q->in[1].at[d.kernel_spatial[i]];
        if (!window_fits(q->in[0].at[d.input_spatial[i]], &w.dim[i]))
            return false;
        q->out->at[d.output_spatial[i]] =
            window_positions(q->in[0].at[d.input_spatial[i]], &w.dim[i]);
    }
    return true;
}

/* Offset dimensions have the sizes of slices; the others have those of the indices. */
static bool infer_gather(struct infer *q)
{
    struct rp_int_list offset = list_of(q, RP_ATTR_OFFSET_DIMS),
                       collapsed = list_of(q, RP_ATTR_COLLAPSED_SLICE_DIMS),
                       batch = list_of(q, RP_ATTR_OPERAND_BATCHING_DIMS),
                       sizes = list_of(q, RP_ATTR_SLICE_SIZES);
    int64_t vector = number_of(q, RP_ATTR_INDEX_VECTOR_DIM, 0);
    size_t index = 0, slice = 0;

    if (q->n < 2 || sizes.n != q->in[0].n || q->in[1].n + offset.n > RP_INFER_RANK)
        return false;
    size_t rank = q->in[1].n + offset.n - (vector < (int64_t)q->in[1].n);
    for (size_t i = 0; i < rank; i++) {
        if (is_in(&offset, i)) {
            while (slice < sizes.n && (is_in(&collapsed, slice) || is_in(&batch, slice)))
                slice++;
            if (slice >= sizes.n || !put_dim(q, sizes.at[slice++]))
                return false;
            continue;
        }
        index += (int64_t)index == vector;
        if (index >= q->in[1].n || !put_dim(q, q->in[1].at[index++]))
            return false;
    }
    return true;
}

static bool infer_concatenate(struct infer *q)
{
    struct rp_int_list dim = list_of(q, RP_ATTR_DIMENSIONS);

    if (!q->n || dim.n != 1 || dim.at[0] < 0 || (size_t)dim.at[0] >= q->in[0].n)
        return false;
    *q->out = q->in[0];
    for (size_t i = 1; i < q->n; i++) {
        if (q->in[i].n != q->in[0].n || !fits(q->in[i].at[dim.at[0]]))
            return false;
        q->out->at[dim.at[0]] += q->in[i].at[dim.at[0]];
    }
    return true;
}

static bool infer_pad(struct infer *q)
{
    const struct rp_attr *attr = attr_of(q, RP_ATTR_PADDING);

    if (!attr || attr->type != RP_VALUE_PADDING || !q->n || attr->n != 3 * q->in[0].n)
        return false;
    const int64_t *at = attr->ints;
    for (size_t i = 0; i < q->in[0].n; i++) {
        int64_t size = q->in[0].at[i];

        if (!fits(size) || !fits(at[3 * i]) || !fits(at[3 * i + 1]) || !fits(at[3 * i + 2]))
            return false;
        int64_t all =
            size + (size > 0 ? (size - 1) * at[3 * i + 2] : 0) + at[3 * i] + at[3 * i + 1];
        if (!put_dim(q, all < 0 ? 0 : all))
            return false;
    }
    return true;
}

static bool infer_slice(struct infer *q)
{
    const struct rp_attr *attr = attr_of(q, RP_ATTR_SLICE);

    if (!attr || attr->type != RP_VALUE_SLICES)
        return false;
    for (size_t i = 0; i + 2 < attr->n; i += 3) {
        const int64_t *at = attr->ints;
        int64_t step = at[i + 2] > 0 ? at[i + 2] : 1;

        if (!fits(at[i]) || !fits(at[i + 1]) || !fits(step))
            return false;
        int64_t size = at[i + 1] - at[i];
        if (!put_dim(q, size > 0 ? (size + step - 1) / step : 0))
            return false;
    }
    return true;
}

static bool infer_transpose(struct infer *q)
{
    struct rp_int_list to = list_of(q, RP_ATTR_DIMENSIONS);

    if (!q->n || to.n != q->in[0].n)
        return false;
    for (size_t i = 0; i < to.n; i++)
        if (to.at[i] < 0 || (size_t)to.at[i] >= to.n || !put_dim(q, q->in[0].at[to.at[i]]))
            return false;
    return true;
}

/* Takes the last dimensions of a transform; real results have half of the last one. */
static bool infer_fft(struct infer *q)
{
    struct rp_int_list length = list_of(q, RP_ATTR_FFT_LENGTH);
    const struct rp_attr *type = attr_of(q, RP_ATTR_FFT_TYPE);

    if (!same_as(q, 0) || length.n > q->out->n || !type || !length.n)
        return false;
    for (size_t i = 0; i < length.n; i++)
        q->out->at[q->out->n - length.n + i] = length.at[i];
    if (rp_attr_is(type, "RFFT"))
        q->out->at[q->out->n - 1] = length.at[length.n - 1] / 2 + 1;
    return true;
}

static bool infer_listed(struct infer *q, uint32_t key)
{
    struct rp_int_list sizes = list_of(q, key);

    for (size_t i = 0; i < sizes.n; i++)
        if (!put_dim(q, sizes.at[i]))
            return false;
    return true;
}

bool rp_infer(const struct rp_infer_op *op, size_t part, struct rp_infer_dims *out)
{
    struct infer q = {op, op->operands, op->n, part, out};

    out->n = 0;
    struct rp_int_list dims;
    switch (op->code) {
    case RP_OP_DOT:
        return infer_dot(&q);
    case RP_OP_CONVOLUTION:
        return infer_convolution(&q);
    case RP_OP_REDUCE:
        dims = list_of(&q, RP_ATTR_DIMENSIONS);
        return without(&q, q.part, &dims, NULL);
    case RP_OP_REDUCE_WINDOW:
        return infer_reduce_window(&q);
    case RP_OP_GATHER:
        return infer_gather(&q);
    case RP_OP_CONCATENATE:
        return infer_concatenate(&q);
    case RP_OP_PAD:
        return infer_pad(&q);
    case RP_OP_SLICE:
        return infer_slice(&q);
    case RP_OP_DYNAMIC_SLICE:
        return infer_listed(&q, RP_ATTR_DYNAMIC_SLICE_SIZES);
    case RP_OP_TRANSPOSE:
        return infer_transpose(&q);
    case RP_OP_FFT:
        return infer_fft(&q);
    case RP_OP_TOPK:
        if (!same_as(&q, 0) || !q.out->n)
            return false;
        q.out->at[q.out->n - 1] = number_of(&q, RP_ATTR_K, 0);
        return true;
    case RP_OP_SELECT: /* conditions and bounds may be scalars */
    case RP_OP_CLAMP:
    case RP_OP_TRIANGULAR_SOLVE:
        return same_as(&q, 1);
    case RP_OP_SORT:
    case RP_OP_SCATTER:
    case RP_OP_OPT_BARRIER:
    case RP_OP_ALL_REDUCE:
        return same_as(&q, q.part);
    case RP_OP_REVERSE:
    case RP_OP_COPY:
    case RP_OP_CHOLESKY:
    case RP_OP_DYNAMIC_UPDATE_SLICE:
    case RP_OP_SELECT_AND_SCATTER:
    case RP_OP_COLLECTIVE_PERMUTE:
    case RP_OP_COLLECTIVE_BROADCAST:
    case RP_OP_BATCH_NORM_INFERENCE:
    case RP_OP_CUSTOM_CALL: /* these mark shardings and the like */
    case RP_OP_FOREIGN:     /* element-wise functions that HLO does not have */
    case RP_OP_BITCAST_CONVERT:
        return same_as(&q, 0);
    default:
        return rp_op_info[op->code].class_ == RP_CLASS_ELEMENT && same_as(&q, 0);
    }
}
