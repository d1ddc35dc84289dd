/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes that are messages of their own: windows, convolutions, slices, paddings, replica
   groups, aliases and shardings, read into values. */
#include "formats/hlo/proto.h"
#include "program/window.h"

#include "abi/proto/hlo.h"

#include <string.h>

#define KEY(number, wire) RP_PROTO_KEY(number, RP_WIRE_##wire)

/* ---- lists ---- */

enum rp_code rp_hlo_proto_collect(struct rp_hlo_proto *r, struct rp_bytes packed)
{
    struct rp_proto_cursor c = rp_proto_cursor(packed.at, packed.n, 0, 1);
    uint64_t value;

    while (rp_proto_packed_varint(&c, &value))
        RP_TRY(rp_vec_push(&r->ints, (int64_t)value, r->err));
    return rp_proto_finish(&c, r->err);
}

/* What was collected, in the arena; its failure is found when the value is added. */
static struct rp_int_list keep_ints(struct rp_hlo_proto *r)
{
    struct rp_int_list list = {NULL, r->ints.n};
    int64_t *kept;

    r->ints.n = 0;
    if (!list.n)
        return list;
    kept = rp_arena_alloc(&r->p->arena, list.n * sizeof *kept, _Alignof(int64_t));
    if (kept)
        memcpy(kept, r->ints.at, list.n * sizeof *kept);
    list.at = kept;
    return list;
}

static enum rp_code keep_packed(struct rp_hlo_proto *r, struct rp_bytes packed,
                                struct rp_int_list *out)
{
    r->ints.n = 0;
    RP_TRY(rp_hlo_proto_collect(r, packed));
    *out = keep_ints(r);
    return RP_OK;
}

/* A value of one struct, whose parts are in the arena already. */
static struct rp_attr keep_struct(struct rp_hlo_proto *r, uint32_t key, const void *from,
                                  size_t size)
{
    void *kept = rp_arena_alloc(&r->p->arena, size, 8);

    if (kept)
        memcpy(kept, from, size);
    return (struct rp_attr){.at = r->p->arena.failed ? NULL : kept,
                            .n = 1,
                            .key = key,
                            .type = (uint8_t)rp_attr_type(key)};
}

/* Up to three numbers of a small message; `third` is the default of the last. */
static enum rp_code collect_triple(struct rp_hlo_proto *r, const struct rp_proto_cursor *outer,
                                   const struct rp_proto_item *item, int n)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_proto_item it;
    int64_t v[4] = {0};

    while (rp_proto_next(&c, &it))
        if (it.number < 4 && it.wire == RP_WIRE_VARINT)
            v[it.number] = (int64_t)it.value;
    for (int i = 1; i <= n; i++)
        RP_TRY(rp_vec_push(&r->ints, v[i], r->err));
    return rp_proto_finish(&c, r->err);
}

/* All elements of one repeated field of the instruction, n numbers each. */
static enum rp_code add_triples(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                                uint32_t key, int n)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    uint32_t field = rp_hlo_attr_field(key).field;
    struct rp_proto_item it;
    struct rp_attr attr;

    r->ints.n = 0;
    while (rp_proto_next(&c, &it))
        if (it.number == field && it.wire == RP_WIRE_BYTES)
            RP_TRY(collect_triple(r, &c, &it, n));
    RP_TRY(rp_proto_finish(&c, r->err));
    attr = rp_attr_int_list(r->p, key, rp_attr_type(key), r->ints.at, r->ints.n);
    r->ints.n = 0;
    return rp_hlo_proto_add(r, attr);
}

enum rp_code rp_hlo_proto_add_slices(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset)
{
    return add_triples(r, bytes, offset, RP_ATTR_SLICE, 3);
}

enum rp_code rp_hlo_proto_add_pairs(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset)
{
    return add_triples(r, bytes, offset, RP_ATTR_SOURCE_TARGET_PAIRS, 2);
}

enum rp_code rp_hlo_proto_add_padding(struct rp_hlo_proto *r, const struct rp_proto_cursor *outer,
                                      const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_proto_item it;
    size_t n;

    r->ints.n = 0;
    while (rp_proto_next(&c, &it))
        if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_PADDING_DIMENSIONS, BYTES))
            RP_TRY(collect_triple(r, &c, &it, 3));
    RP_TRY(rp_proto_finish(&c, r->err));
    n = r->ints.n;
    r->ints.n = 0;
    return n ? rp_hlo_proto_add(
                   r, rp_attr_int_list(r->p, RP_ATTR_PADDING, RP_VALUE_PADDING, r->ints.at, n))
             : RP_OK;
}

/* ---- windows and convolutions ---- */

static enum rp_code read_window_dim(struct rp_hlo_proto *r, const struct rp_proto_cursor *outer,
                                    const struct rp_proto_item *item, struct rp_window_dim *d)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_proto_item it;

    *d = (struct rp_window_dim){0, 0, 0, 0, 1, 1, false};
    while (rp_proto_next(&c, &it)) {
        int64_t v = (int64_t)it.value;

        switch (it.number) {
        case RP_HLO_WINDOW_DIM_SIZE:
            d->size = v;
            break;
        case RP_HLO_WINDOW_DIM_STRIDE:
            d->stride = v;
            break;
        case RP_HLO_WINDOW_DIM_PADDING_LOW:
            d->pad_low = v;
            break;
        case RP_HLO_WINDOW_DIM_PADDING_HIGH:
            d->pad_high = v;
            break;
        case RP_HLO_WINDOW_DIM_WINDOW_DILATION:
            d->window_dilation = v;
            break;
        case RP_HLO_WINDOW_DIM_BASE_DILATION:
            d->base_dilation = v;
            break;
        case RP_HLO_WINDOW_DIM_WINDOW_REVERSAL:
            d->reversal = v != 0;
            break;
        default:
            break;
        }
    }
    return rp_proto_finish(&c, r->err);
}

enum rp_code rp_hlo_proto_add_window(struct rp_hlo_proto *r, const struct rp_proto_cursor *outer,
                                     const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_window w = {0};
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (RP_PROTO_KEY(it.number, it.wire) != KEY(RP_HLO_WINDOW_DIMENSIONS, BYTES))
            continue;
        if (w.n == RP_WINDOW_DIMS)
            return rp_err_set(r->err, RP_LIMIT, "a window of more than %d dimensions",
                              RP_WINDOW_DIMS);
        RP_TRY(read_window_dim(r, &c, &it, &w.dim[w.n++]));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    return w.n ? rp_hlo_proto_add(r, rp_attr_of_window(r->p, &w)) : RP_OK;
}

static void read_spatial(const struct rp_proto_cursor *outer, const struct rp_proto_item *it,
                         int64_t *list, size_t *n)
{
    struct rp_proto_cursor c;
    uint64_t v;

    if (it->wire == RP_WIRE_VARINT && *n < RP_WINDOW_DIMS)
        list[(*n)++] = (int64_t)it->value;
    if (it->wire != RP_WIRE_BYTES)
        return;
    c = rp_proto_enter(outer, it);
    while (rp_proto_packed_varint(&c, &v) && *n < RP_WINDOW_DIMS)
        list[(*n)++] = (int64_t)v;
}

enum rp_code rp_hlo_proto_add_conv_dims(struct rp_hlo_proto *r, const struct rp_proto_cursor *outer,
                                        const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_conv_dims d = {0};
    int64_t v[16] = {0};
    size_t kernel = 0, output = 0;
    struct rp_proto_item it;
    char text[64];

    while (rp_proto_next(&c, &it)) {
        if (it.number == RP_HLO_CONV_DIMS_INPUT_SPATIAL_DIMENSIONS)
            read_spatial(&c, &it, d.input_spatial, &d.nspatial);
        else if (it.number == RP_HLO_CONV_DIMS_KERNEL_SPATIAL_DIMENSIONS)
            read_spatial(&c, &it, d.kernel_spatial, &kernel);
        else if (it.number == RP_HLO_CONV_DIMS_OUTPUT_SPATIAL_DIMENSIONS)
            read_spatial(&c, &it, d.output_spatial, &output);
        else if (it.number < 16)
            v[it.number] = (int64_t)it.value;
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    d.kernel_input = v[RP_HLO_CONV_DIMS_KERNEL_INPUT_FEATURE_DIMENSION];
    d.kernel_output = v[RP_HLO_CONV_DIMS_KERNEL_OUTPUT_FEATURE_DIMENSION];
    d.input_batch = v[RP_HLO_CONV_DIMS_INPUT_BATCH_DIMENSION];
    d.input_feature = v[RP_HLO_CONV_DIMS_INPUT_FEATURE_DIMENSION];
    d.output_batch = v[RP_HLO_CONV_DIMS_OUTPUT_BATCH_DIMENSION];
    d.output_feature = v[RP_HLO_CONV_DIMS_OUTPUT_FEATURE_DIMENSION];
    if (kernel != d.nspatial || output != d.nspatial || !rp_conv_dims_print(&d, text))
        return RP_OK; /* instructions that are no convolutions have an empty one */
    return rp_hlo_proto_add(r, rp_attr_of_conv_dims(r->p, &d));
}

/* ---- replica groups ---- */

static enum rp_code collect_group(struct rp_hlo_proto *r, const struct rp_proto_cursor *outer,
                                  const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.number != RP_HLO_REPLICA_GROUP_REPLICA_IDS)
            continue;
        if (it.wire == RP_WIRE_BYTES)
            RP_TRY(rp_hlo_proto_collect(r, it.bytes));
        else if (it.wire == RP_WIRE_VARINT)
            RP_TRY(rp_vec_push(&r->ints, (int64_t)it.value, r->err));
    }
    return rp_proto_finish(&c, r->err);
}

enum rp_code rp_hlo_proto_add_groups(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                                     uint32_t field)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    struct rp_replica_groups g = {.form = RP_GROUPS_LISTED};
    struct rp_proto_item it;
    uint32_t *begin;

    r->ints.n = r->ids.n = 0;
    while (rp_proto_next(&c, &it)) {
        if (it.number != field || it.wire != RP_WIRE_BYTES)
            continue;
        RP_TRY(rp_vec_push(&r->ids, (uint32_t)r->ints.n, r->err));
        RP_TRY(collect_group(r, &c, &it));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    RP_TRY(rp_vec_push(&r->ids, (uint32_t)r->ints.n, r->err));
    begin = rp_arena_alloc(&r->p->arena, r->ids.n * sizeof *begin, _Alignof(uint32_t));
    if (begin)
        memcpy(begin, r->ids.at, r->ids.n * sizeof *begin);
    g.begin = begin;
    g.ngroups = r->ids.n - 1;
    g.ids = keep_ints(r);
    return rp_hlo_proto_add(r, keep_struct(r, RP_ATTR_REPLICA_GROUPS, &g, sizeof g));
}

enum rp_code rp_hlo_proto_add_iota_groups(struct rp_hlo_proto *r,
                                          const struct rp_proto_cursor *outer,
                                          const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_replica_groups g = {.form = RP_GROUPS_IOTA};
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.number == RP_HLO_IOTA_GROUPS_NUM_REPLICA_GROUPS)
            g.ngroups = (size_t)it.value;
        else if (it.number == RP_HLO_IOTA_GROUPS_NUM_DEVICES_PER_GROUP)
            g.group_size = (int64_t)it.value;
        else if (it.number == RP_HLO_IOTA_GROUPS_IOTA_RESHAPE_DIMS && it.wire == RP_WIRE_BYTES)
            RP_TRY(keep_packed(r, it.bytes, &g.dims));
        else if (it.number == RP_HLO_IOTA_GROUPS_IOTA_TRANSPOSE_PERM && it.wire == RP_WIRE_BYTES)
            RP_TRY(keep_packed(r, it.bytes, &g.perm));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (g.perm.n == 1) /* one dimension cannot be transposed: text does not write it */
        g.perm.n = 0;
    return rp_hlo_proto_add(r, keep_struct(r, RP_ATTR_REPLICA_GROUPS, &g, sizeof g));
}

#define MESH_AXES 64

struct mesh_reader {
    struct rp_replica_groups g;
    struct rp_mesh_axis axes[MESH_AXES];
    struct rp_mesh_part parts[MESH_AXES];
};

static enum rp_code read_axis(struct rp_hlo_proto *r, const struct rp_proto_cursor *outer,
                              const struct rp_proto_item *item, struct mesh_reader *m)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_mesh_axis axis = {{"", 0, 0}, 0};
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.number == RP_HLO_MESH_AXIS_NAME && it.wire == RP_WIRE_BYTES)
            axis.name = (struct rp_slice){(const char *)it.bytes.at, (uint32_t)it.bytes.n, 0};
        else if (it.number == RP_HLO_MESH_AXIS_SIZE)
            axis.size = (int64_t)it.value;
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (m->g.naxes == MESH_AXES)
        return rp_err_set(r->err, RP_LIMIT, "a mesh of more than %d axes", MESH_AXES);
    m->axes[m->g.naxes++] = axis;
    return RP_OK;
}

static enum rp_code read_device_order(struct rp_hlo_proto *r, const struct rp_proto_cursor *outer,
                                      const struct rp_proto_item *item, struct mesh_reader *m)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_MESH_IOTA_RESHAPE_DIMS, BYTES))
            RP_TRY(keep_packed(r, it.bytes, &m->g.dims));
        else if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_MESH_IOTA_TRANSPOSE_PERM, BYTES))
            RP_TRY(keep_packed(r, it.bytes, &m->g.perm));
    }
    return rp_proto_finish(&c, r->err);
}

static enum rp_code read_mesh(struct rp_hlo_proto *r, const struct rp_proto_cursor *outer,
                              const struct rp_proto_item *item, struct mesh_reader *m)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.wire != RP_WIRE_BYTES)
            continue;
        if (it.number == RP_HLO_MESH_AXES)
            RP_TRY(read_axis(r, &c, &it, m));
        else if (it.number == RP_HLO_MESH_DEVICE_IDS)
            RP_TRY(keep_packed(r, it.bytes, &m->g.ids));
        else if (it.number == RP_HLO_MESH_IOTA_TRANSFORM)
            RP_TRY(read_device_order(r, &c, &it, m));
    }
    return rp_proto_finish(&c, r->err);
}

static enum rp_code read_mesh_part(struct rp_hlo_proto *r, const struct rp_proto_cursor *outer,
                                   const struct rp_proto_item *item, struct mesh_reader *m)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item), sub;
    struct rp_mesh_part part = {0, 0, 0};
    struct rp_proto_item it, field;
    uint64_t axis = 0;

    while (rp_proto_next(&c, &it)) {
        if (it.number == RP_HLO_AXIS_REF_MESH_AXIS_INDEX)
            axis = it.value;
        if (it.number != RP_HLO_AXIS_REF_SUB_AXIS_INFO || it.wire != RP_WIRE_BYTES)
            continue;
        sub = rp_proto_enter(&c, &it);
        while (rp_proto_next(&sub, &field)) {
            part.before =
                field.number == RP_HLO_SUB_AXIS_PRE_SIZE ? (int64_t)field.value : part.before;
            part.size = field.number == RP_HLO_SUB_AXIS_SIZE ? (int64_t)field.value : part.size;
        }
        RP_TRY(rp_proto_finish(&sub, r->err));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (axis >= m->g.naxes)
        return rp_err_set(r->err, RP_FORMAT, "groups along axis %llu, but the mesh has %zu axes",
                          (unsigned long long)axis, m->g.naxes);
    if (m->g.nparts == MESH_AXES)
        return rp_err_set(r->err, RP_LIMIT, "groups along more than %d axes", MESH_AXES);
    part.axis = (uint32_t)axis;
    m->parts[m->g.nparts++] = part;
    return RP_OK;
}

enum rp_code rp_hlo_proto_add_mesh_groups(struct rp_hlo_proto *r,
                                          const struct rp_proto_cursor *outer,
                                          const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct mesh_reader m = {.g = {.form = RP_GROUPS_MESH}};
    struct rp_mesh_axis *axes;
    struct rp_mesh_part *parts;
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it))
        if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_MESH_GROUPS_MESH, BYTES))
            RP_TRY(read_mesh(r, &c, &it, &m));
    RP_TRY(rp_proto_finish(&c, r->err));
    c = rp_proto_enter(outer, item);
    while (rp_proto_next(&c, &it))
        if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_MESH_GROUPS_AXES, BYTES))
            RP_TRY(read_mesh_part(r, &c, &it, &m));
    RP_TRY(rp_proto_finish(&c, r->err));
    axes = RP_ARENA_NEW(&r->p->arena, struct rp_mesh_axis, m.g.naxes + 1);
    parts = RP_ARENA_NEW(&r->p->arena, struct rp_mesh_part, m.g.nparts + 1);
    if (axes && parts) {
        memcpy(axes, m.axes, m.g.naxes * sizeof *axes);
        memcpy(parts, m.parts, m.g.nparts * sizeof *parts);
    }
    m.g.axes = axes;
    m.g.parts = parts;
    return rp_hlo_proto_add(r, keep_struct(r, RP_ATTR_REPLICA_GROUPS, &m.g, sizeof m.g));
}

/* ---- aliases ---- */

/* Of outputs with operands, or with parameters of the module: the messages have the same numbers,
   and the second has a kind. */
_Static_assert((int)RP_HLO_OUTPUT_ALIAS_OPERAND_SHAPE_INDEX ==
                   (int)RP_HLO_ALIAS_ENTRY_PARAMETER_SHAPE_INDEX,
               "aliases");

static enum rp_code read_alias(struct rp_hlo_proto *r, struct rp_bytes bytes, bool module)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, 0, r->limits.depth);
    struct rp_alias alias = {.kind = module ? RP_ALIAS_MAY : RP_ALIAS_UNSPECIFIED};
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.number == RP_HLO_ALIAS_ENTRY_OUTPUT_SHAPE_INDEX && it.wire == RP_WIRE_BYTES)
            RP_TRY(keep_packed(r, it.bytes, &alias.output));
        else if (it.number == RP_HLO_ALIAS_ENTRY_PARAMETER_NUMBER)
            alias.number = (int64_t)it.value;
        else if (it.number == RP_HLO_ALIAS_ENTRY_PARAMETER_SHAPE_INDEX && it.wire == RP_WIRE_BYTES)
            RP_TRY(keep_packed(r, it.bytes, &alias.operand));
        else if (module && it.number == RP_HLO_ALIAS_ENTRY_KIND)
            alias.kind = it.value == 2 ? RP_ALIAS_MUST : RP_ALIAS_MAY;
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    return rp_vec_push(&r->aliases, alias, r->err);
}

static enum rp_code read_aliases(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                                 uint32_t field, uint32_t key, struct rp_attr *out)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    struct rp_alias *kept;
    struct rp_proto_item it;

    r->aliases.n = 0;
    while (rp_proto_next(&c, &it))
        if (it.number == field && it.wire == RP_WIRE_BYTES)
            RP_TRY(read_alias(r, it.bytes, key == RP_ATTR_INPUT_OUTPUT_ALIAS));
    RP_TRY(rp_proto_finish(&c, r->err));
    kept = RP_ARENA_NEW(&r->p->arena, struct rp_alias, r->aliases.n + 1);
    if (kept && r->aliases.n)
        memcpy(kept, r->aliases.at, r->aliases.n * sizeof *kept);
    *out = (struct rp_attr){.aliases = r->p->arena.failed ? NULL : kept,
                            .n = (uint32_t)r->aliases.n,
                            .key = key,
                            .type = RP_VALUE_ALIASES};
    return RP_OK;
}

enum rp_code rp_hlo_proto_add_aliases(struct rp_hlo_proto *r, struct rp_bytes bytes,
                                      uint64_t offset)
{
    struct rp_attr attr;

    RP_TRY(read_aliases(r, bytes, offset, RP_HLO_INSTRUCTION_OUTPUT_OPERAND_ALIASING,
                        RP_ATTR_OUTPUT_TO_OPERAND_ALIASING, &attr));
    return rp_hlo_proto_add(r, attr);
}

enum rp_code rp_hlo_proto_add_module_aliases(struct rp_hlo_proto *r, struct rp_bytes bytes)
{
    struct rp_attr attr;

    RP_TRY(read_aliases(r, bytes, 0, RP_HLO_ALIAS_ENTRIES, RP_ATTR_INPUT_OUTPUT_ALIAS, &attr));
    return attr.n ? rp_program_add_module_attr(r->p, attr, r->err) : RP_OK;
}

/* ---- shardings ---- */

/* One field; *known: it has a place in the value. */
static enum rp_code read_sharding_field(struct rp_hlo_proto *r, const struct rp_proto_item *it,
                                        struct rp_sharding *s, bool *known)
{
    struct rp_int_list *list = it->number == RP_HLO_SHARDING_TILE_ASSIGNMENT_DIMENSIONS ? &s->tiles
                               : it->number == RP_HLO_SHARDING_TILE_ASSIGNMENT_DEVICES ? &s->devices
                               : it->number == RP_HLO_SHARDING_LAST_TILE_DIMS          ? &s->last
                               : it->number == RP_HLO_SHARDING_IOTA_RESHAPE_DIMS       ? &s->dims
                               : it->number == RP_HLO_SHARDING_IOTA_TRANSPOSE_PERM     ? &s->perm
                                                                                       : NULL;

    *known = true;
    if (list && it->wire == RP_WIRE_BYTES && !list->n)
        return keep_packed(r, it->bytes, list);
    *known = it->wire == RP_WIRE_VARINT;
    switch (it->number) {
    case RP_HLO_SHARDING_TYPE:
        *known &= it->value < RP_SHARDING_TYPES;
        s->type = *known ? (enum rp_sharding_type)it->value : RP_SHARDING_UNKNOWN;
        break;
    case RP_HLO_SHARDING_SHARD_GROUP_ID:
        s->group = (int64_t)it->value;
        break;
    case RP_HLO_SHARDING_SHARD_GROUP_TYPE:
        s->shard_like = it->value != 0;
        break;
    case RP_HLO_SHARDING_REPLICATE_ON_LAST_TILE_DIM:
        s->last_replicate = it->value != 0;
        break;
    case RP_HLO_SHARDING_IS_SHARD_GROUP:
        s->grouped = it->value != 0;
        break;
    default:
        *known = it->number == RP_HLO_SHARDING_TUPLE_SHARDINGS && it->wire == RP_WIRE_BYTES;
    }
    return RP_OK;
}

/* Parts are counted first, since their own lists are in between. */
static enum rp_code read_sharding(struct rp_hlo_proto *r, struct rp_bytes bytes, unsigned depth,
                                  struct rp_sharding *out, bool *known)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, 0, 16);
    struct rp_sharding *parts;
    struct rp_proto_item it;
    size_t n = 0;

    memset(out, 0, sizeof *out);
    *known = depth != 0;
    while (*known && rp_proto_next(&c, &it)) {
        RP_TRY(read_sharding_field(r, &it, out, known));
        n += it.number == RP_HLO_SHARDING_TUPLE_SHARDINGS;
    }
    *known = *known && rp_proto_finish(&c, NULL) == RP_OK;
    if (out->perm.n == 1)
        out->perm.n = 0;
    if (!*known || out->type != RP_SHARDING_TUPLE || !n)
        return RP_OK;
    parts = RP_ARENA_NEW(&r->p->arena, struct rp_sharding, n);
    RP_TRY(rp_err_need(parts, r->err, "reading a sharding"));
    out->parts = parts;
    c = rp_proto_cursor(bytes.at, bytes.n, 0, 16);
    while (*known && rp_proto_next(&c, &it))
        if (it.number == RP_HLO_SHARDING_TUPLE_SHARDINGS)
            RP_TRY(read_sharding(r, it.bytes, depth - 1, &parts[out->nparts++], known));
    return RP_OK;
}

enum rp_code rp_hlo_proto_placement(struct rp_hlo_proto *r, struct rp_bytes bytes)
{
    struct rp_sharding *kept = RP_ARENA_NEW(&r->p->arena, struct rp_sharding, 1);
    bool known;

    RP_TRY(rp_err_need(kept, r->err, "reading a sharding"));
    RP_TRY(read_sharding(r, bytes, RP_SHARDING_DEPTH, kept, &known));
    if (known)
        r->p->placement = kept;
    return RP_OK;
}

enum rp_code rp_hlo_proto_add_sharding(struct rp_hlo_proto *r, struct rp_bytes bytes, bool *known)
{
    struct rp_sharding sharding;

    RP_TRY(read_sharding(r, bytes, RP_SHARDING_DEPTH, &sharding, known));
    return *known
               ? rp_hlo_proto_add(r, keep_struct(r, RP_ATTR_SHARDING, &sharding, sizeof sharding))
               : RP_OK;
}
