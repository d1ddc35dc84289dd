/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups, gather and scatter: the elements looked up are read and written once, with their
   indices. */
#include "cost/models.h"

static double row_elements(const struct rp_input_tensor *table)
{
    return table->ndims && table->dim[0] > 0 ? table->n / table->dim[0] : 1;
}

static const char *set_moved(const struct rp_input_tensor *table,
                             const struct rp_input_tensor *index, double moved, double written,
                             double flops, struct rp_op_cost *out)
{
    if (table->size <= 0 || index->size <= 0)
        return RP_NO_TYPES;
    out->flops = flops;
    out->bytes = (moved + written) * (double)table->size + rp_input_bytes(index);
    out->type = table->type;
    return NULL;
}

/* index(table, [indices…]): the first dimensions are replaced by those of the indices. */
static const char *model_index(const struct rp_inputs *in, bool put, struct rp_op_cost *out)
{
    const struct rp_input_tensor *table = rp_inputs_tensor(in, 0), *index;
    double n = 1, row = 1;

    if (!table)
        return RP_NO_SHAPES;
    if (in->count < 2 || !in->at[1].is_list || !in->at[1].count)
        return RP_NO_INDICES;
    for (uint32_t i = 0; i < in->at[1].count; i++) {
        index = &in->parts.at[in->at[1].first + i];
        n = index->n > n ? index->n : n;
    }
    for (uint32_t i = in->at[1].count; i < table->ndims; i++)
        row *= table->dim[i];
    if (table->size <= 0)
        return RP_NO_TYPES;
    out->flops = put && rp_inputs_flag(in, 3) ? n * row : 0;
    out->bytes = 2 * n * row * (double)table->size + RP_INDEX_BYTES * n * in->at[1].count;
    out->type = table->type;
    return NULL;
}

static const char *model_backward(const struct rp_inputs *in, struct rp_op_cost *out)
{
    const struct rp_input_tensor *g = rp_inputs_tensor(in, 0), *index = rp_inputs_tensor(in, 1);
    double rows;

    if (!g || !index)
        return RP_NO_SHAPES;
    if (!rp_inputs_int(in, 2, &rows))
        return RP_NO_ARGUMENTS;
    return set_moved(g, index, g->n, rows * rp_input_last(g, 0), g->n, out);
}

const char *rp_model_embedding(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct rp_input_tensor *table = rp_inputs_tensor(in, 0), *index, *from, *bags;
    uint32_t at = arg == RP_EMBEDDING_TABLE || arg == RP_EMBEDDING_BAG ? 1 : 2;
    double dim, row;

    if (arg == RP_EMBEDDING_INDEX || arg == RP_EMBEDDING_PUT)
        return model_index(in, arg == RP_EMBEDDING_PUT, out);
    if (arg == RP_EMBEDDING_BACKWARD)
        return model_backward(in, out);
    index = rp_inputs_tensor(in, at);
    if (!table || !index)
        return RP_NO_SHAPES;
    switch (arg) {
    case RP_EMBEDDING_SELECT: /* index_select(x, dim, index) */
        if (!rp_inputs_int(in, 1, &dim) || !table->ndims)
            return RP_NO_ARGUMENTS;
        dim = dim < 0 ? dim + table->ndims : dim;
        if (dim < 0 || dim >= table->ndims || table->dim[(uint32_t)dim] <= 0)
            return RP_ODD_SHAPES;
        row = index->n * table->n / table->dim[(uint32_t)dim];
        return set_moved(table, index, row, row, 0, out);
    case RP_EMBEDDING_GATHER: /* gather(x, dim, index): as many elements as indices */
        return set_moved(table, index, index->n, index->n, 0, out);
    case RP_EMBEDDING_SCATTER: /* scatter_add_(x, dim, index, from) */
        from = rp_inputs_tensor(in, 3);
        row = from ? from->n : index->n;
        return set_moved(table, index, row, row, row, out);
    case RP_EMBEDDING_BAG: /* embedding_bag(table, indices, begins of bags) */
        bags = rp_inputs_tensor(in, 2);
        row = row_elements(table);
        return set_moved(table, index, index->n * row, (bags ? bags->n : 1) * row, index->n * row,
                         out);
    default:
        row = row_elements(table) * index->n;
        return set_moved(table, index, row, row, 0, out);
    }
}
