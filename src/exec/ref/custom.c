/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds custom calls by their target: marks of the partitioner and of memory spaces (which return
 * the operand), TopK, and the tables of the other files (custom.h). Any other call is refused by
 * its name.
 */
#include "exec/ref/custom.h"
#include "exec/ref/kernels.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

/* ---- the configuration ---- */

/* The text after "key": in it, or NULL. Quotes may be escaped. */
static const char *config_text(const struct rp_plan *plan, const struct rp_node *node,
                               const char *key, const char **end)
{
    const struct rp_attr *attr = rp_node_attr(plan, node, RP_ATTR_BACKEND_CONFIG);
    size_t len = strlen(key);

    if (!attr || !rp_attr_is_bytes(attr))
        return NULL;
    *end = attr->at + attr->n;
    for (const char *at = attr->at; (at = memmem(at, (size_t)(*end - at), key, len)) != NULL;
         at++) {
        const char *p = at + len;

        if (at == attr->at || (at[-1] != '"' && at[-1] != ' ' && at[-1] != '{' && at[-1] != ','))
            continue;
        while (p < *end && (*p == '"' || *p == '\\' || *p == ' '))
            p++;
        if (p < *end && (*p == ':' || *p == '=')) {
            p++;
            while (p < *end && *p == ' ')
                p++;
            return p < *end ? p : NULL;
        }
    }
    return NULL;
}

double rp_config_number(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                        double absent)
{
    const char *end, *at = config_text(plan, node, key, &end);

    while (at && at < end && (*at == '"' || *at == '\\'))
        at++;
    return at && at < end ? strtod(at, NULL) : absent;
}

void rp_config_word(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                    char *out, size_t cap)
{
    const char *end, *at = config_text(plan, node, key, &end);
    size_t n = 0;

    while (at && at < end && (*at == '"' || *at == '\\' || *at == '['))
        at++;
    while (at && at < end && n + 1 < cap &&
           ((*at >= 'A' && *at <= 'Z') || *at == '_' || (*at >= 'a' && *at <= 'z') ||
            (n && *at >= '0' && *at <= '9')))
        out[n++] = *at++;
    out[n] = '\0';
}

void rp_config_value(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                     const char **at, const char **end)
{
    *at = config_text(plan, node, key, end);
}

size_t rp_config_numbers(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                         double *out, size_t cap)
{
    const char *end, *at = config_text(plan, node, key, &end);
    size_t n = 0;

    while (at && at < end && *at != ']' && n < cap) {
        char *stop = NULL;
        double x = (*at >= '0' && *at <= '9') || *at == '-' || *at == '.' ? strtod(at, &stop) : 0;

        if (stop && stop > at)
            out[n++] = x;
        at = stop && stop > at ? stop : at + 1;
    }
    return n;
}

size_t rp_config_list(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                      int64_t *out, size_t cap)
{
    const char *end, *at = config_text(plan, node, key, &end);
    size_t n = 0;

    for (; at && at < end && *at != ']' && n < cap; at++)
        if (*at >= '0' && *at <= '9') {
            char *stop;

            out[n++] = strtoll(at, &stop, 10);
            at = stop - 1;
        }
    return n;
}

bool rp_config_letter(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                      char is)
{
    const char *end, *at = config_text(plan, node, key, &end);

    while (at && at < end && (*at == '"' || *at == '\\' || *at == '\''))
        at++;
    return at && at < end &&
           (*at == is || (*at >= '0' && *at <= '9' && strtol(at, NULL, 10) == is));
}

bool rp_config_flag(const struct rp_plan *plan, const struct rp_node *node, const char *key)
{
    char word[8];

    rp_config_word(plan, node, key, word, sizeof word);
    return !strcmp(word, "true") || rp_config_number(plan, node, key, 0) == 1;
}

/* ---- results ---- */

const struct rp_value_shape *rp_custom_shape(const struct rp_node *node)
{
    return node->shape->elem == RP_ELEM_TUPLE && node->shape->nparts ? node->shape->parts[0]
                                                                     : node->shape;
}

enum rp_code rp_custom_parts(const struct rp_node *node, struct rp_tensors *out, struct rp_err *err)
{
    if (node->shape->elem == RP_ELEM_TUPLE && !node->shape->nparts)
        return rp_node_error(node, RP_UNSUPPORTED, err, "no results");
    return rp_tensors_new(node->shape->elem == RP_ELEM_TUPLE ? node->shape->nparts : 1, out, err);
}

enum rp_code rp_custom_give(const struct rp_node *node, struct rp_tensors *parts,
                            struct rp_tensor **out, struct rp_err *err)
{
    bool tuple = node->shape->elem == RP_ELEM_TUPLE;

    for (size_t i = 0; i < parts->n; i++) {
        const struct rp_value_shape *shape = tuple ? node->shape->parts[i] : node->shape;

        if (!parts->at[i])
            RP_TRY(rp_tensor_zeros(shape->elem, shape->dims, shape->rank, &parts->at[i], err));
    }
    return rp_node_give(node, parts, out, err);
}

/* ---- marks, memory, topk ---- */

static RP_PREPARE(prepare_same)
{
    return node->nin ? RP_OK : rp_node_error(node, RP_FORMAT, err, "no operand");
}

static RP_KERNEL(custom_buffer)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    RP_TRY(rp_custom_parts(node, &parts, err));
    return rp_custom_give(node, &parts, out, err);
}

static RP_PREPARE(prepare_topk)
{
    if (node->nin < 1 || node->shape->elem != RP_ELEM_TUPLE || node->shape->nparts != 2 ||
        !node->shape->parts[0]->rank)
        return rp_node_error(node, RP_FORMAT, err, "the result is not a pair of arrays");
    return RP_OK;
}

static RP_KERNEL(topk)
{
    const struct rp_value_shape *shape = rp_custom_shape(node);

    return rp_topk_run(e, in[0], (size_t)shape->dims[shape->rank - 1], true,
                       node->shape->parts[1]->elem, out, err);
}

static RP_PREPARE(prepare_approximate)
{
    return rp_first_prepare(plan, node, (int64_t)rp_config_number(plan, node, "reduction_dim", -1),
                            err);
}

static const struct rp_custom_target marks[] = {
    {"Sharding", prepare_same, rp_kernel_same},
    {"annotate_device_placement", prepare_same, rp_kernel_same},
    {"MoveToHost", prepare_same, rp_kernel_same},
    {"MoveToDevice", prepare_same, rp_kernel_same},
    {"xla.sdy.*", prepare_same, rp_kernel_same},
    {"LayoutConstraint", prepare_same, rp_kernel_same},
    {"AllocateBuffer", NULL, custom_buffer},
    {"TopK", prepare_topk, topk},
    {"__gpu$TopK", prepare_topk, topk},
    {"ApproxTopK", prepare_approximate, rp_first_run},
    {"PartialReduce", prepare_approximate, rp_first_run},
    {NULL, NULL, NULL},
};

/* ---- calls back into Python ---- */

/* Whether a shape has only tokens and empty tuples. */
static bool without_arrays(const struct rp_value_shape *shape)
{
    if (shape->elem != RP_ELEM_TUPLE)
        return shape->elem == RP_ELEM_TOKEN || shape->elem == RP_ELEM_INVALID;
    for (uint32_t i = 0; i < shape->nparts; i++)
        if (!without_arrays(shape->parts[i]))
            return false;
    return true;
}

static enum rp_code nothing(const struct rp_value_shape *shape, struct rp_tensor **out,
                            struct rp_err *err)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    if (shape->elem != RP_ELEM_TUPLE)
        return rp_tensor_token(out, err);
    RP_TRY(rp_tensors_new(shape->nparts, &parts, err));
    for (uint32_t i = 0; i < shape->nparts; i++)
        RP_TRY(nothing(shape->parts[i], &parts.at[i], err));
    parts.n = 0; /* the tuple takes them over */
    return rp_tensor_tuple(parts.at, shape->nparts, out, err);
}

/* Calls that print or report, like jax.debug.print, give no value, so the program goes on without
   them. */
static RP_KERNEL(skip_callback)
{
    return nothing(node->shape, out, err);
}

static bool is_silent_callback(const struct rp_node *node, const char *name, size_t n)
{
    return memmem(name, n, "callback", 8) && without_arrays(node->shape) &&
           (node->shape->elem != RP_ELEM_TUPLE || node->shape->nparts <= 16);
}

/* ---- finding them ---- */

const char *rp_custom_name(const struct rp_plan *plan, const struct rp_node *node, size_t *n)
{
    const struct rp_attr *attr = rp_node_attr(plan, node, RP_ATTR_CUSTOM_CALL_TARGET);
    bool known = attr && rp_attr_is_bytes(attr);

    *n = known ? attr->n : 0;
    return known ? attr->at : "";
}

uint32_t rp_custom_integers(const struct rp_plan *plan, const struct rp_node *node,
                            uint32_t matrices)
{
    size_t n;
    const char *name = rp_custom_name(plan, node, &n);
    bool lapack = n > 7 && (!memcmp(name, "lapack_", 7) || !memcmp(name, "blas_", 5));

    if (!lapack || !memcmp(name + n - 4, "_ffi", 4) || node->nin <= matrices)
        return 0;
    for (uint32_t i = 0; i < node->nin - matrices; i++) {
        const struct rp_value_shape *in = rp_node_operand(plan, node, i);

        if (in->rank || in->elem == RP_ELEM_TUPLE || in->n != 1) /* not the older form */
            return 0;
    }
    return node->nin - matrices;
}

static const struct rp_custom_target *find_target(const struct rp_custom_target *table,
                                                  const char *name, size_t n)
{
    for (; table->name; table++) {
        size_t len = strlen(table->name);

        if (table->name[len - 1] == '*' ? n >= len - 1 && !memcmp(name, table->name, len - 1)
                                        : n == len && !memcmp(name, table->name, len))
            return table;
    }
    return NULL;
}

static RP_PREPARE(custom_prepare)
{
    static const struct rp_custom_target *const tables[] = {
        rp_custom_shards,      marks,
        rp_custom_products,    rp_custom_convolutions,
        rp_custom_factors,     rp_custom_sorts,
        rp_custom_tridiagonal, rp_custom_spectra,
        rp_custom_lapack,      rp_custom_sparse,
        rp_custom_attention,   rp_custom_norms};
    const struct rp_custom_target *target = NULL;
    size_t n;
    const char *name = rp_custom_name(plan, node, &n);

    for (size_t i = 0; !target && i < sizeof tables / sizeof *tables; i++)
        target = find_target(tables[i], name, n);
    if (!target && is_silent_callback(node, name, n)) {
        struct rp_value_shape *token = RP_NODE_NEW(plan, struct rp_value_shape);

        RP_TRY(rp_err_need(token, err, "planning"));
        token->elem = RP_ELEM_TOKEN;
        if (node->shape->elem == RP_ELEM_INVALID) /* in StableHLO it then has no result */
            node->shape = token;
        node->run = skip_callback;
        return RP_OK;
    }
    if (!target)
        return rp_node_error(node, RP_UNSUPPORTED, err, "unsupported custom call '%.*s'", (int)n,
                             name);
    node->run = target->run;
    return target->prepare ? target->prepare(plan, node, err) : RP_OK;
}

const struct rp_kernel rp_kernels_custom[] = {
    {RP_OP_CUSTOM_CALL, custom_prepare, custom_buffer}, /* the target that prepare found is run */
    {0, NULL, NULL},
};
