/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes with sparse matrices of JAX: products with a vector or a matrix, and conversions from
 * and to dense ones, which JAX gives to cuSPARSE, or for BCSR matrices on the CPU to Eigen. A
 * matrix is three arrays: values, rows and columns (coo), or values, columns and where each row
 * begins (csr). Sums are complex f64, rounded once. Entries outside of the matrix are padding and
 * are ignored.
 */
#include "exec/ref/custom.h"
#include "exec/ref/linalg.h"
#include "exec/ref/reduce.h"

#include <string.h>

struct sparse {
    bool csr, transpose;
    uint8_t columns, rows; /* indices of operands; the values are the first */
};

/* ---- preparing ---- */

/* The description that JAX passes on to cuSPARSE ends with the operation: 1 means transposed. It is
   the whole configuration, or its value `opaque`, with bytes as \xx. */
static int descriptor_last(const struct rp_plan *plan, const struct rp_node *node)
{
    const struct rp_attr *attr = rp_node_attr(plan, node, RP_ATTR_BACKEND_CONFIG);
    unsigned char last[4] = {0, 0, 0, 0};

    if (!attr || !rp_attr_is_bytes(attr) || attr->n < 4)
        return -1;
    const char *at = attr->at;
    const char *end = at + attr->n;
    const char *key = memmem(at, attr->n, "opaque", 6);
    if (!key && attr->n % 4 == 0 && attr->n >= 48) {
        memcpy(last, end - 4, 4);
        return last[0];
    }
    at = key ? memchr(key, '"', (size_t)(end - key)) : NULL;
    for (at = at ? at + 1 : end; at < end && *at != '"'; at++) {
        unsigned char byte = (unsigned char)*at;

        if (*at == '\\' && end - at > 2) {
            static const char digits[] = "0123456789abcdef0123456789ABCDEF";
            const char *high = strchr(digits, at[1]), *low = strchr(digits, at[2]);

            if (!high || !low)
                return -1;
            byte = (unsigned char)((high - digits) % 16 * 16 + (low - digits) % 16);
            at += 2;
        }
        memmove(last, last + 1, 3);
        last[3] = byte;
    }
    return last[0];
}

static bool name_has(const struct rp_plan *plan, const struct rp_node *node, const char *word)
{
    size_t n;
    const char *name = rp_custom_name(plan, node, &n);

    return memmem(name, n, word, strlen(word)) != NULL;
}

static struct sparse *sparse_new(struct rp_plan *plan, struct rp_node *node)
{
    struct sparse *s = RP_NODE_NEW(plan, struct sparse);
    bool on_cpu = name_has(plan, node, "cpu_");

    if (!s)
        return NULL;
    s->csr = name_has(plan, node, "csr");
    s->columns = s->csr && !on_cpu ? 1 : 2;
    s->rows = s->csr && !on_cpu ? 2 : 1;
    node->attrs = s;
    return s;
}

static bool lists_fit(const struct rp_plan *plan, const struct rp_node *node,
                      const struct sparse *s)
{
    const struct rp_value_shape *values = rp_node_operand(plan, node, 0);

    for (uint32_t i = 1; i < 3; i++) {
        const struct rp_value_shape *list = rp_node_operand(plan, node, i);

        if (list->rank != 1 ||
            (!rp_elem_is_signed(list->elem) && !rp_elem_is_unsigned(list->elem)) ||
            (i == s->rows && s->csr ? list->n < 1 : list->n != values->n))
            return false;
    }
    return values->rank == 1;
}

static RP_PREPARE(prepare_dense)
{
    struct sparse *s = sparse_new(plan, node);

    RP_TRY(rp_err_need(s, err, "planning"));
    if (node->nin != 3 || rp_custom_shape(node)->rank != 2 || !lists_fit(plan, node, s))
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of operands or results");
    return RP_OK;
}

static RP_PREPARE(prepare_sparse_product)
{
    struct sparse *s = sparse_new(plan, node);
    const struct rp_value_shape *out = rp_custom_shape(node);

    RP_TRY(rp_err_need(s, err, "planning"));
    const struct rp_value_shape *in = node->nin == 4 ? rp_node_operand(plan, node, 3) : NULL;
    if (!in || !lists_fit(plan, node, s) || in->rank < 1 || in->rank > 2 || out->rank != in->rank ||
        (in->rank == 2 && in->dims[1] != out->dims[1]))
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of operands or results");
    if (name_has(plan, node, "cpu_"))
        return RP_OK;
    int last = descriptor_last(plan, node);
    s->transpose = last == 1;
    if (s->csr && in->dims[0] != out->dims[0])
        s->transpose = (int64_t)rp_node_operand(plan, node, s->rows)->n - 1 == in->dims[0];
    else if (last != 0 && last != 1)
        return rp_node_error(node, RP_UNSUPPORTED, err,
                             "its configuration does not say whether the matrix is transposed");
    return RP_OK;
}

static RP_PREPARE(prepare_from_dense)
{
    struct sparse *s = sparse_new(plan, node);

    RP_TRY(rp_err_need(s, err, "planning"));
    const struct rp_value_shape *in = node->nin == 1 ? rp_node_operand(plan, node, 0) : NULL;
    if (!in || in->rank != 2 || node->shape->elem != RP_ELEM_TUPLE || node->shape->nparts < 3 ||
        node->shape->parts[0]->elem != in->elem ||
        node->shape->parts[s->columns]->n != node->shape->parts[0]->n ||
        node->shape->parts[s->rows]->n !=
            (s->csr ? (size_t)in->dims[0] + 1 : node->shape->parts[0]->n))
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of operands or results");
    return RP_OK;
}

/* ---- running ---- */

struct entries {
    const struct sparse *s;
    struct rp_tensor *const *in;
    size_t at;
    int64_t row; /* csr: the current one */
};

static bool next_entry(struct entries *e, int64_t *row, int64_t *column, rp_c128 *value)
{
    const struct rp_tensor *values = e->in[0], *rows = e->in[e->s->rows];

    if (e->at >= values->n)
        return false;
    if (e->s->csr) {
        while ((size_t)e->row + 1 < rows->n &&
               rp_tensor_integer(rows, (size_t)e->row + 1) <= (int64_t)e->at)
            e->row++;
        *row = (size_t)e->row + 1 < rows->n ? e->row : -1;
    } else {
        *row = rp_tensor_integer(rows, e->at);
    }
    *column = rp_tensor_integer(e->in[e->s->columns], e->at);
    *value = CMPLX(rp_tensor_number(values, e->at), rp_tensor_imaginary(values, e->at));
    e->at++;
    return true;
}

static enum rp_code finish(const struct rp_node *node, struct rp_tensor *wide,
                           struct rp_tensor **out, struct rp_err *err)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    RP_TRY(rp_custom_parts(node, &parts, err));
    RP_TRY(rp_tensor_as(wide, rp_custom_shape(node)->elem, &parts.at[0], err));
    return rp_custom_give(node, &parts, out, err);
}

static RP_KERNEL(sparse_product)
{
    const struct sparse *s = node->attrs;
    struct entries entries = {.s = s, .in = in};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *wide = NULL;
    size_t width = in[3]->rank == 2 ? (size_t)in[3]->dims[1] : 1;
    int64_t row, column;
    rp_c128 value;

    RP_TRY(rp_tensor_zeros(RP_ELEM_C128, rp_custom_shape(node)->dims, rp_custom_shape(node)->rank,
                           &wide, err));
    rp_c128 *to = (rp_c128 *)(void *)wide->data;
    while (next_entry(&entries, &row, &column, &value)) {
        int64_t i = s->transpose ? column : row, k = s->transpose ? row : column;

        if (i < 0 || k < 0 || i >= wide->dims[0] || k >= in[3]->dims[0])
            continue;
        for (size_t j = 0; j < width; j++) {
            size_t x = (size_t)k * width + j;

            to[(size_t)i * width + j] +=
                value * CMPLX(rp_tensor_number(in[3], x), rp_tensor_imaginary(in[3], x));
        }
    }
    return finish(node, wide, out, err);
}

static RP_KERNEL(to_dense)
{
    struct entries entries = {.s = node->attrs, .in = in};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *wide = NULL;
    int64_t row, column;
    rp_c128 value;

    RP_TRY(rp_tensor_zeros(RP_ELEM_C128, rp_custom_shape(node)->dims, rp_custom_shape(node)->rank,
                           &wide, err));
    while (next_entry(&entries, &row, &column, &value))
        if (row >= 0 && column >= 0 && row < wide->dims[0] && column < wide->dims[1])
            ((rp_c128 *)(void *)wide->data)[row * wide->dims[1] + column] = value;
    return finish(node, wide, out, err);
}

/* Lists the nonzero elements row by row; the rest of the lists stays 0. */
static RP_KERNEL(from_dense)
{
    const struct sparse *s = node->attrs;
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    size_t at = 0, columns = (size_t)in[0]->dims[1];

    RP_TRY(rp_custom_parts(node, &parts, err));
    RP_TRY(rp_custom_give(node, &parts, out, err));
    struct rp_tensor **part = (*out)->parts;
    struct rp_tensor *rows = part[s->rows];
    for (size_t i = 0; i < in[0]->n && at < part[0]->n; i++) {
        if (rp_tensor_number(in[0], i) == 0 && rp_tensor_imaginary(in[0], i) == 0)
            continue;
        memcpy(part[0]->data + at * part[0]->unit, in[0]->data + i * in[0]->unit, in[0]->unit);
        rp_tensor_set_integer(part[s->columns], at, (int64_t)(i % columns));
        if (!s->csr)
            rp_tensor_set_integer(rows, at, (int64_t)(i / columns));
        at++;
        for (size_t row = i / columns + 1; s->csr && row < rows->n; row++)
            rp_tensor_set_integer(rows, row, (int64_t)at);
    }
    return RP_OK;
}

#define SPARSE(library)                                                   \
    {library "_csr_matvec*", prepare_sparse_product, sparse_product},     \
        {library "_csr_matmat*", prepare_sparse_product, sparse_product}, \
        {library "_coo_matvec*", prepare_sparse_product, sparse_product}, \
        {library "_coo_matmat*", prepare_sparse_product, sparse_product}, \
        {library "_csr_todense*", prepare_dense, to_dense},               \
        {library "_coo_todense*", prepare_dense, to_dense},               \
        {library "_csr_fromdense*", prepare_from_dense, from_dense},      \
    {                                                                     \
        library "_coo_fromdense*", prepare_from_dense, from_dense         \
    }

const struct rp_custom_target rp_custom_sparse[] = {
    {"cpu_csr_sparse_dense_ffi", prepare_sparse_product, sparse_product},
    SPARSE("cusparse"),
    SPARSE("hipsparse"),
    {NULL, NULL, NULL},
};
