/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes attributes into fields of HloInstructionProto: the reverse of formats/hlo/proto_attrs.c
 * and proto_values.c. Values without a field, and raw text, go into a private field as text, so
 * that nothing is lost when the file is read again.
 */
#include "formats/write/hlo_proto.h"
#include "program/opcodes.h"
#include "program/window.h"

#include "abi/proto/hlo.h"

static void put_ints(const struct rp_hlo_writer *put, uint32_t field, const int64_t *at, size_t n)
{
    if (!n)
        return;
    size_t begun = rp_proto_begin(put->w, field);
    for (size_t i = 0; i < n; i++)
        rp_proto_add_varint(put->w, (uint64_t)at[i]);
    rp_proto_end(put->w, begun);
}

static void put_list(const struct rp_hlo_writer *put, uint32_t field, struct rp_int_list list)
{
    put_ints(put, field, list.at, list.n);
}

static void put_slice(const struct rp_hlo_writer *put, uint32_t field, struct rp_slice text)
{
    rp_proto_put_bytes(put->w, field, text.at, text.n);
}

/* ---- messages of one attribute ---- */

/* Puts one message for every n numbers, which are its fields 1 to n. */
static void put_tuples(const struct rp_hlo_writer *put, uint32_t field, const struct rp_attr *attr,
                       uint32_t n)
{
    for (uint32_t i = 0; i + n <= attr->n; i += n) {
        size_t begun = rp_proto_begin(put->w, field);

        for (uint32_t k = 0; k < n; k++)
            if (attr->ints[i + k])
                rp_proto_put_varint(put->w, k + 1, (uint64_t)attr->ints[i + k]);
        rp_proto_end(put->w, begun);
    }
}

static void put_padding(const struct rp_hlo_writer *put, const struct rp_attr *attr)
{
    size_t begun = rp_proto_begin(put->w, RP_HLO_INSTRUCTION_PADDING_CONFIG);

    put_tuples(put, RP_HLO_PADDING_DIMENSIONS, attr, 3);
    rp_proto_end(put->w, begun);
}

static void put_window(const struct rp_hlo_writer *put, const struct rp_attr *attr)
{
    size_t window = rp_proto_begin(put->w, RP_HLO_INSTRUCTION_WINDOW);

    for (uint32_t i = 0; i < attr->n; i++) {
        const struct rp_window_dim *d = &attr->window[i];
        size_t dim = rp_proto_begin(put->w, RP_HLO_WINDOW_DIMENSIONS);

        rp_proto_put_varint(put->w, RP_HLO_WINDOW_DIM_SIZE, (uint64_t)d->size);
        rp_proto_put_varint(put->w, RP_HLO_WINDOW_DIM_STRIDE, (uint64_t)d->stride);
        rp_proto_put_varint(put->w, RP_HLO_WINDOW_DIM_PADDING_LOW, (uint64_t)d->pad_low);
        rp_proto_put_varint(put->w, RP_HLO_WINDOW_DIM_PADDING_HIGH, (uint64_t)d->pad_high);
        rp_proto_put_varint(put->w, RP_HLO_WINDOW_DIM_WINDOW_DILATION,
                            (uint64_t)d->window_dilation);
        rp_proto_put_varint(put->w, RP_HLO_WINDOW_DIM_BASE_DILATION, (uint64_t)d->base_dilation);
        if (d->reversal)
            rp_proto_put_varint(put->w, RP_HLO_WINDOW_DIM_WINDOW_REVERSAL, 1);
        rp_proto_end(put->w, dim);
    }
    rp_proto_end(put->w, window);
}

static void put_conv_dims(const struct rp_hlo_writer *put, const struct rp_attr *attr)
{
    struct rp_conv_dims d;
    size_t begun = rp_proto_begin(put->w, RP_HLO_INSTRUCTION_CONVOLUTION_DIMENSION_NUMBERS);

    rp_attr_conv_dims(attr, &d);
    rp_proto_put_varint(put->w, RP_HLO_CONV_DIMS_KERNEL_INPUT_FEATURE_DIMENSION,
                        (uint64_t)d.kernel_input);
    rp_proto_put_varint(put->w, RP_HLO_CONV_DIMS_KERNEL_OUTPUT_FEATURE_DIMENSION,
                        (uint64_t)d.kernel_output);
    put_ints(put, RP_HLO_CONV_DIMS_KERNEL_SPATIAL_DIMENSIONS, d.kernel_spatial, d.nspatial);
    rp_proto_put_varint(put->w, RP_HLO_CONV_DIMS_INPUT_BATCH_DIMENSION, (uint64_t)d.input_batch);
    rp_proto_put_varint(put->w, RP_HLO_CONV_DIMS_INPUT_FEATURE_DIMENSION,
                        (uint64_t)d.input_feature);
    rp_proto_put_varint(put->w, RP_HLO_CONV_DIMS_OUTPUT_BATCH_DIMENSION, (uint64_t)d.output_batch);
    rp_proto_put_varint(put->w, RP_HLO_CONV_DIMS_OUTPUT_FEATURE_DIMENSION,
                        (uint64_t)d.output_feature);
    put_ints(put, RP_HLO_CONV_DIMS_INPUT_SPATIAL_DIMENSIONS, d.input_spatial, d.nspatial);
    put_ints(put, RP_HLO_CONV_DIMS_OUTPUT_SPATIAL_DIMENSIONS, d.output_spatial, d.nspatial);
    rp_proto_end(put->w, begun);
}

static void put_mesh_groups(const struct rp_hlo_writer *put, const struct rp_replica_groups *g)
{
    size_t groups = rp_proto_begin(put->w, RP_HLO_INSTRUCTION_MESH_AXES_REPLICA_GROUP_LIST);

    size_t mesh = rp_proto_begin(put->w, RP_HLO_MESH_GROUPS_MESH);
    for (size_t i = 0; i < g->naxes; i++) {
        size_t begun = rp_proto_begin(put->w, RP_HLO_MESH_AXES);
        put_slice(put, RP_HLO_MESH_AXIS_NAME, g->axes[i].name);
        rp_proto_put_varint(put->w, RP_HLO_MESH_AXIS_SIZE, (uint64_t)g->axes[i].size);
        rp_proto_end(put->w, begun);
    }
    put_list(put, RP_HLO_MESH_DEVICE_IDS, g->ids);
    if (g->dims.n) {
        size_t begun = rp_proto_begin(put->w, RP_HLO_MESH_IOTA_TRANSFORM);
        put_list(put, RP_HLO_MESH_IOTA_RESHAPE_DIMS, g->dims);
        put_list(put, RP_HLO_MESH_IOTA_TRANSPOSE_PERM, g->perm);
        rp_proto_end(put->w, begun);
    }
    rp_proto_end(put->w, mesh);
    for (size_t i = 0; i < g->nparts; i++) {
        size_t part = rp_proto_begin(put->w, RP_HLO_MESH_GROUPS_AXES);

        rp_proto_put_varint(put->w, RP_HLO_AXIS_REF_MESH_AXIS_INDEX, g->parts[i].axis);
        if (g->parts[i].size) {
            size_t sub = rp_proto_begin(put->w, RP_HLO_AXIS_REF_SUB_AXIS_INFO);
            rp_proto_put_varint(put->w, RP_HLO_SUB_AXIS_PRE_SIZE, (uint64_t)g->parts[i].before);
            rp_proto_put_varint(put->w, RP_HLO_SUB_AXIS_SIZE, (uint64_t)g->parts[i].size);
            rp_proto_end(put->w, sub);
        }
        rp_proto_end(put->w, part);
    }
    rp_proto_end(put->w, groups);
}

static void put_groups(const struct rp_hlo_writer *put, const struct rp_replica_groups *g)
{
    if (g->form == RP_GROUPS_MESH) {
        put_mesh_groups(put, g);
    } else if (g->form == RP_GROUPS_IOTA) {
        size_t begun = rp_proto_begin(put->w, RP_HLO_INSTRUCTION_IOTA_COLLECTIVE_DEVICE_LIST);
        rp_proto_put_varint(put->w, RP_HLO_IOTA_GROUPS_NUM_REPLICA_GROUPS, g->ngroups);
        rp_proto_put_varint(put->w, RP_HLO_IOTA_GROUPS_NUM_DEVICES_PER_GROUP,
                            (uint64_t)g->group_size);
        put_list(put, RP_HLO_IOTA_GROUPS_IOTA_RESHAPE_DIMS, g->dims);
        if (g->perm.n)
            put_list(put, RP_HLO_IOTA_GROUPS_IOTA_TRANSPOSE_PERM, g->perm);
        else
            rp_proto_put_varint(put->w, RP_HLO_IOTA_GROUPS_IOTA_TRANSPOSE_PERM, 0);
        rp_proto_end(put->w, begun);
    } else {
        for (size_t i = 0; i < g->ngroups; i++) {
            size_t begun = rp_proto_begin(put->w, RP_HLO_INSTRUCTION_REPLICA_GROUPS);
            put_ints(put, RP_HLO_REPLICA_GROUP_REPLICA_IDS, g->ids.at + g->begin[i],
                     g->begin[i + 1] - g->begin[i]);
            rp_proto_end(put->w, begun);
        }
    }
}

/* Puts the entries of output_operand_aliasing, or of the module's message, which have a kind. */
static void put_alias_entries(const struct rp_hlo_writer *put, uint32_t field,
                              const struct rp_attr *attr, bool kinds)
{
    for (uint32_t i = 0; i < attr->n; i++) {
        const struct rp_alias *a = &attr->aliases[i];
        size_t begun = rp_proto_begin(put->w, field);

        put_list(put, RP_HLO_ALIAS_ENTRY_OUTPUT_SHAPE_INDEX, a->output);
        rp_proto_put_varint(put->w, RP_HLO_ALIAS_ENTRY_PARAMETER_NUMBER, (uint64_t)a->number);
        put_list(put, RP_HLO_ALIAS_ENTRY_PARAMETER_SHAPE_INDEX, a->operand);
        if (kinds)
            rp_proto_put_varint(put->w, RP_HLO_ALIAS_ENTRY_KIND,
                                a->kind == RP_ALIAS_MUST ? RP_HLO_ALIAS_KIND_MUST_ALIAS
                                                         : RP_HLO_ALIAS_KIND_MAY_ALIAS);
        rp_proto_end(put->w, begun);
    }
}

void rp_hlo_write_module_aliases(const struct rp_hlo_writer *put, const struct rp_attr *attr)
{
    size_t begun = rp_proto_begin(put->w, RP_HLO_MODULE_INPUT_OUTPUT_ALIAS);

    put_alias_entries(put, RP_HLO_ALIAS_ENTRIES, attr, true);
    rp_proto_end(put->w, begun);
}

/* Readers bound the depth: RP_SHARDING_DEPTH. */
static void put_sharding(const struct rp_hlo_writer *put, uint32_t field,
                         const struct rp_sharding *s)
{
    size_t begun = rp_proto_begin(put->w, field);

    rp_proto_put_varint(put->w, RP_HLO_SHARDING_TYPE, s->type);
    put_list(put, RP_HLO_SHARDING_TILE_ASSIGNMENT_DIMENSIONS, s->tiles);
    put_list(put, RP_HLO_SHARDING_TILE_ASSIGNMENT_DEVICES, s->devices);
    for (size_t i = 0; i < s->nparts; i++)
        put_sharding(put, RP_HLO_SHARDING_TUPLE_SHARDINGS, &s->parts[i]);
    if (s->last_replicate)
        rp_proto_put_varint(put->w, RP_HLO_SHARDING_REPLICATE_ON_LAST_TILE_DIM, 1);
    put_list(put, RP_HLO_SHARDING_LAST_TILE_DIMS, s->last);
    put_list(put, RP_HLO_SHARDING_IOTA_RESHAPE_DIMS, s->dims);
    if (s->perm.n) {
        put_list(put, RP_HLO_SHARDING_IOTA_TRANSPOSE_PERM, s->perm);
    } else if (s->dims.n) { /* XLA requires the identity permutation to be explicit */
        size_t perm = rp_proto_begin(put->w, RP_HLO_SHARDING_IOTA_TRANSPOSE_PERM);
        for (size_t i = 0; i < s->dims.n; i++)
            rp_proto_add_varint(put->w, i);
        rp_proto_end(put->w, perm);
    }
    if (s->grouped) {
        rp_proto_put_varint(put->w, RP_HLO_SHARDING_IS_SHARD_GROUP, 1);
        rp_proto_put_varint(put->w, RP_HLO_SHARDING_SHARD_GROUP_ID, (uint64_t)s->group);
        rp_proto_put_varint(put->w, RP_HLO_SHARDING_SHARD_GROUP_TYPE, s->shard_like);
    }
    rp_proto_end(put->w, begun);
}

void rp_hlo_write_map(const struct rp_hlo_writer *put, uint32_t field, const struct rp_attr *attr)
{
    size_t map = rp_proto_begin(put->w, field);

    for (uint32_t i = 0; i + 1 < attr->n; i += 2) {
        size_t entry = rp_proto_begin(put->w, RP_HLO_FRONTEND_ATTRIBUTES_MAP);

        put_slice(put, RP_HLO_TEXT_ENTRY_KEY, attr->texts[i]);
        put_slice(put, RP_HLO_TEXT_ENTRY_VALUE, attr->texts[i + 1]);
        rp_proto_end(put->w, entry);
    }
    rp_proto_end(put->w, map);
}

static void put_predecessors(const struct rp_hlo_writer *put, const struct rp_attr *attr)
{
    size_t begun = rp_proto_begin(put->w, RP_HLO_INSTRUCTION_CONTROL_PREDECESSOR_IDS);

    for (uint32_t i = 0; i < attr->n; i++)
        rp_proto_add_varint(put->w, rp_hlo_write_id(put->p, attr->ids[i]));
    rp_proto_end(put->w, begun);
}

/* ---- attributes that share a message ---- */

/* The attribute with that key, if its value has the type of the key. */
static const struct rp_attr *value_of(const struct rp_hlo_writer *put, uint32_t op, uint32_t key)
{
    const struct rp_attr *attr = rp_op_attr(put->p, op, key);

    return attr && attr->type == rp_attr_type(key) ? attr : NULL;
}

static bool of_dot(const struct rp_hlo_writer *put, uint32_t op)
{
    return rp_op_info[put->p->code.at[op]].class_ == RP_CLASS_DOT ||
           put->p->code.at[op] == RP_OP_CONVOLUTION || put->p->code.at[op] == RP_OP_CUSTOM_CALL;
}

static bool is_solve(const struct rp_hlo_writer *put, uint32_t op)
{
    return put->p->code.at[op] == RP_OP_TRIANGULAR_SOLVE || put->p->code.at[op] == RP_OP_CHOLESKY;
}

static void put_dims(const struct rp_hlo_writer *put, uint32_t op, uint32_t field)
{
    for (const uint16_t *key = rp_hlo_dims_keys(field); *key; key++) {
        const struct rp_attr *attr = value_of(put, op, *key);

        if (attr && attr->type == RP_VALUE_INT)
            rp_proto_put_varint(put->w, rp_hlo_attr_field(*key).inner, (uint64_t)attr->number);
        else if (attr)
            put_ints(put, rp_hlo_attr_field(*key).inner, attr->ints, attr->n);
    }
}

/* The message of dimensions that belongs to this operation, or 0. */
static uint32_t dims_field(const struct rp_hlo_writer *put, uint32_t op)
{
    switch (put->p->code.at[op]) {
    case RP_OP_GATHER:
        return value_of(put, op, RP_ATTR_INDEX_VECTOR_DIM)
                   ? RP_HLO_INSTRUCTION_GATHER_DIMENSION_NUMBERS
                   : 0;
    case RP_OP_SCATTER:
        return value_of(put, op, RP_ATTR_INDEX_VECTOR_DIM)
                   ? RP_HLO_INSTRUCTION_SCATTER_DIMENSION_NUMBERS
                   : 0;
    case RP_OP_RAGGED_DOT:
        return RP_HLO_INSTRUCTION_RAGGED_DOT_DIMENSION_NUMBERS;
    default:
        return value_of(put, op, RP_ATTR_LHS_CONTRACTING_DIMS)
                   ? RP_HLO_INSTRUCTION_DOT_DIMENSION_NUMBERS
                   : 0;
    }
}

static void put_dims_message(const struct rp_hlo_writer *put, uint32_t op)
{
    uint32_t field = dims_field(put, op);

    if (!field)
        return;
    size_t begun = rp_proto_begin(put->w, field);
    if (field == RP_HLO_INSTRUCTION_RAGGED_DOT_DIMENSION_NUMBERS) {
        size_t dot = rp_proto_begin(put->w, RP_HLO_RAGGED_DOT_DIMS_DOT_DIMENSION_NUMBERS);
        put_dims(put, op, RP_HLO_INSTRUCTION_DOT_DIMENSION_NUMBERS);
        rp_proto_end(put->w, dot);
    }
    put_dims(put, op, field);
    rp_proto_end(put->w, begun);
}

static void put_precision(const struct rp_hlo_writer *put, uint32_t op)
{
    const struct rp_attr *list = value_of(put, op, RP_ATTR_OPERAND_PRECISION);
    const struct rp_attr *algorithm = value_of(put, op, RP_ATTR_ALGORITHM);
    uint64_t v;

    if (algorithm && !of_dot(put, op))
        algorithm = NULL;
    if (!list && !algorithm)
        return;
    size_t begun = rp_proto_begin(put->w, RP_HLO_INSTRUCTION_PRECISION_CONFIG);
    if (list) {
        size_t packed = rp_proto_begin(put->w, RP_HLO_PRECISION_OPERAND_PRECISION);
        for (uint32_t i = 0; i < list->n; i++) {
            if (!rp_hlo_enum_value(RP_ATTR_OPERAND_PRECISION, false, list->texts[i].at,
                                   list->texts[i].n, &v))
                v = 0;
            rp_proto_add_varint(put->w, v);
        }
        rp_proto_end(put->w, packed);
    }
    if (algorithm && rp_hlo_enum_value(RP_ATTR_ALGORITHM, true, algorithm->at, algorithm->n, &v))
        rp_proto_put_varint(put->w, RP_HLO_PRECISION_ALGORITHM, v);
    rp_proto_end(put->w, begun);
}

static void put_solve(const struct rp_hlo_writer *put, uint32_t op)
{
    static const uint16_t keys[] = {RP_ATTR_LEFT_SIDE, RP_ATTR_LOWER, RP_ATTR_UNIT_DIAGONAL};
    bool cholesky = put->p->code.at[op] == RP_OP_CHOLESKY;
    const struct rp_attr *transpose = value_of(put, op, RP_ATTR_TRANSPOSE_A);
    size_t begun = rp_proto_begin(put->w, cholesky ? RP_HLO_INSTRUCTION_CHOLESKY_OPTIONS
                                                   : RP_HLO_INSTRUCTION_TRIANGULAR_SOLVE_OPTIONS);
    uint64_t v;

    for (uint32_t i = 0; i < 3; i++) {
        const struct rp_attr *attr = value_of(put, op, keys[i]);

        if (attr && attr->number)
            rp_proto_put_varint(
                put->w, cholesky ? RP_HLO_CHOLESKY_LOWER : rp_hlo_attr_field(keys[i]).inner, 1);
    }
    if (transpose && rp_hlo_enum_value(RP_ATTR_TRANSPOSE_A, false, transpose->at, transpose->n, &v))
        rp_proto_put_varint(put->w, RP_HLO_TRIANGULAR_SOLVE_TRANSPOSE_A, v);
    rp_proto_end(put->w, begun);
}

/* Whether put_dims_message, put_precision or put_solve writes this key. */
static bool in_message(const struct rp_hlo_writer *put, uint32_t op, const struct rp_attr *attr)
{
    struct rp_hlo_attr_field at = rp_hlo_attr_field(attr->key);
    uint32_t field = dims_field(put, op);

    if (attr->type == RP_VALUE_TEXT)
        return false;
    if (attr->key == RP_ATTR_ALGORITHM)
        return of_dot(put, op);
    if (!at.inner)
        return false;
    if (at.field == RP_HLO_INSTRUCTION_TRIANGULAR_SOLVE_OPTIONS)
        return is_solve(put, op);
    if (attr->key == RP_ATTR_INDEX_VECTOR_DIM)
        return field == RP_HLO_INSTRUCTION_GATHER_DIMENSION_NUMBERS ||
               field == RP_HLO_INSTRUCTION_SCATTER_DIMENSION_NUMBERS;
    return at.field == RP_HLO_INSTRUCTION_PRECISION_CONFIG || at.field == field ||
           (at.field == RP_HLO_INSTRUCTION_DOT_DIMENSION_NUMBERS &&
            field == RP_HLO_INSTRUCTION_RAGGED_DOT_DIMENSION_NUMBERS);
}

/* ---- all of them ---- */

static bool put_word(const struct rp_hlo_writer *put, uint32_t field, const struct rp_attr *attr)
{
    uint64_t v;

    if (!rp_hlo_is_enum(attr->key)) {
        rp_proto_put_bytes(put->w, field, attr->at, attr->n);
        if (attr->key == RP_ATTR_TYPE && rp_attr_is(attr, "TOTALORDER")) /* since 2026 */
            rp_proto_put_bytes(put->w, RP_HLO_INSTRUCTION_COMPARISON_ORDER, "TOTAL", 5);
        return true;
    }
    if (!rp_hlo_enum_value(attr->key, false, attr->at, attr->n, &v))
        return false;
    if (v)
        rp_proto_put_varint(put->w, field, v);
    return true;
}

/* Returns false if there is no field for the value. */
static bool put_value(const struct rp_hlo_writer *put, uint32_t op, const struct rp_attr *attr)
{
    uint32_t field = rp_hlo_attr_field(attr->key).field;

    if (!field || rp_hlo_attr_field(attr->key).inner)
        return false;
    switch ((enum rp_value_type)attr->type) {
    case RP_VALUE_FLAG:
        if (attr->number)
            rp_proto_put_varint(put->w, field, 1);
        return true;
    case RP_VALUE_INT:
        if (attr->key == RP_ATTR_IOTA_DIMENSION)
            put_ints(put, field, &attr->number, 1);
        else
            rp_proto_put_varint(put->w, field, (uint64_t)attr->number);
        return true;
    case RP_VALUE_FLOAT:
        rp_proto_put_float(put->w, field, (float)attr->real);
        return true;
    case RP_VALUE_WORD:
        return put_word(put, field, attr);
    case RP_VALUE_STRING:
    case RP_VALUE_CONFIG:
        rp_proto_put_bytes(put->w, field, attr->at, attr->n);
        return true;
    case RP_VALUE_INTS:
        put_ints(put, field, attr->ints, attr->n);
        return true;
    case RP_VALUE_PAIRS:
        put_tuples(put, field, attr, 2);
        return true;
    case RP_VALUE_SLICES:
        put_tuples(put, field, attr, 3);
        return true;
    case RP_VALUE_PADDING:
        put_padding(put, attr);
        return true;
    case RP_VALUE_CONV_DIMS:
        put_conv_dims(put, attr);
        return true;
    case RP_VALUE_MAP:
        rp_hlo_write_map(put, RP_HLO_INSTRUCTION_FRONTEND_ATTRIBUTES, attr);
        return true;
    case RP_VALUE_WINDOW:
        put_window(put, attr);
        return true;
    case RP_VALUE_GROUPS:
        put_groups(put, attr->groups);
        return true;
    case RP_VALUE_ALIASES:
        put_alias_entries(put, field, attr, false);
        return true;
    case RP_VALUE_SHARDING:
        put_sharding(put, field, attr->sharding);
        return true;
    case RP_VALUE_OPS:
        put_predecessors(put, attr);
        return true;
    case RP_VALUE_SHAPES:
        if (put->p->code.at[op] == RP_OP_CUSTOM_CALL) {
            rp_proto_put_varint(put->w, RP_HLO_INSTRUCTION_CONSTRAIN_LAYOUT, 1);
            for (uint32_t i = 0; i < attr->n; i++)
                rp_hlo_write_shape(put, RP_HLO_INSTRUCTION_OPERAND_SHAPES_WITH_LAYOUT,
                                   attr->ids[i]);
        }
        return put->p->code.at[op] == RP_OP_CUSTOM_CALL;
    default:
        return false;
    }
}

enum rp_code rp_hlo_write_attrs(const struct rp_hlo_writer *put, uint32_t op)
{
    uint32_t n;
    const struct rp_attr *attrs = rp_op_attrs(put->p, op, &n);

    for (uint32_t i = 0; i < n; i++) {
        const struct rp_attr *attr = &attrs[i];
        if (attr->type == RP_VALUE_WIRE) {
            rp_proto_add_bytes(put->w, attr->at, attr->n);
            continue;
        }
        if (in_message(put, op, attr) || put_value(put, op, attr))
            continue;
        RP_TRY(rp_hlo_write_own(put, attr));
    }
    put_dims_message(put, op);
    put_precision(put, op);
    if (is_solve(put, op))
        put_solve(put, op);
    if (put->p->code.at[op] == RP_OP_CONVOLUTION && !rp_op_attr(put->p, op, RP_ATTR_WINDOW))
        rp_proto_put_bytes(put->w, RP_HLO_INSTRUCTION_WINDOW, "", 0); /* no spatial dimensions */
    if (put->p->code.at[op] == RP_OP_CUSTOM_CALL && !rp_op_attr(put->p, op, RP_ATTR_API_VERSION))
        rp_proto_put_varint(put->w, RP_HLO_INSTRUCTION_CUSTOM_CALL_API_VERSION,
                            RP_HLO_CALL_API_API_VERSION_ORIGINAL);
    return RP_OK;
}
