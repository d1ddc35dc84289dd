/* SPDX-License-Identifier: Apache-2.0 */
/* Reads attributes that are messages of their own into values: windows, convolutions, slices,
   paddings, replica groups, aliases and shardings. */
#include "formats/hlo/proto.h"
#include "program/window.h"

#include "abi/proto/hlo.h"

#include <string.h>

/* ---- lists ---- */

enum rp_code rp_hlo_proto_collect(struct rp_hlo_proto *r, struct rp_proto_cursor list)
{
    uint64_t value;

    while (rp_proto_packed_varint(&list, &value))
        RP_TRY(rp_vec_push(&r->ints, (int64_t)value, r->err));
    return rp_proto_finish(&list, r->err);
}

/* Copies the collected numbers to the arena; a failure is found when the value is added. */
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
    RP_TRY(rp_hlo_proto_collect(r, rp_proto_cursor(packed.at, packed.n, 0, 1)));
    *out = keep_ints(r);
    return RP_OK;
}

/* Makes a value of one struct, whose parts are in the arena already. */
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

/* Collects the first n numbers of a small message. */
static enum rp_code collect_numbers(struct rp_hlo_proto *r, struct rp_proto_cursor c, int n)
{
    uint64_t v[4];

    RP_TRY(rp_proto_numbers(c, v, 4, r->err));
    for (int i = 1; i <= n; i++)
        RP_TRY(rp_vec_push(&r->ints, (int64_t)v[i], r->err));
    return RP_OK;
}

/* Adds all elements of one repeated field of a message, n numbers each. */
static enum rp_code add_lists(struct rp_hlo_proto *r, struct rp_proto_cursor c, uint32_t key,
                              uint32_t field, int n)
{
    struct rp_proto_item it;

    r->ints.n = 0;
    while (rp_proto_next_bytes(&c, field, &it))
        RP_TRY(collect_numbers(r, rp_proto_enter(&c, &it), n));
    RP_TRY(rp_proto_finish(&c, r->err));
    struct rp_attr attr = rp_attr_int_list(r->p, key, rp_attr_type(key), r->ints.at, r->ints.n);
    r->ints.n = 0;
    return attr.n ? rp_hlo_proto_add(r, attr) : RP_OK;
}

enum rp_code rp_hlo_proto_add_slices(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    return add_lists(r, c, RP_ATTR_SLICE, RP_HLO_INSTRUCTION_SLICE_DIMENSIONS, 3);
}

enum rp_code rp_hlo_proto_add_pairs(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    return add_lists(r, c, RP_ATTR_SOURCE_TARGET_PAIRS, RP_HLO_INSTRUCTION_SOURCE_TARGET_PAIRS, 2);
}

enum rp_code rp_hlo_proto_add_padding(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    return add_lists(r, c, RP_ATTR_PADDING, RP_HLO_PADDING_DIMENSIONS, 3);
}

/* ---- windows and convolutions ---- */

enum rp_code rp_hlo_proto_add_window(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    struct rp_window w = {0};
    struct rp_proto_item it;

    while (rp_proto_next_bytes(&c, RP_HLO_WINDOW_DIMENSIONS, &it)) {
        if (w.n == RP_WINDOW_DIMS)
            return rp_err_set(r->err, RP_LIMIT, "a window of more than %d dimensions",
                              RP_WINDOW_DIMS);

        /* One dimension of the window. */
        struct rp_window_dim *d = &w.dim[w.n++];
        *d = (struct rp_window_dim){0, 0, 0, 0, 1, 1, false};
        RP_TRY(rp_proto_read(rp_proto_enter(&c, &it),
                             (const struct rp_proto_slot[]){
                                 {RP_HLO_WINDOW_DIM_SIZE, .i64 = &d->size},
                                 {RP_HLO_WINDOW_DIM_STRIDE, .i64 = &d->stride},
                                 {RP_HLO_WINDOW_DIM_PADDING_LOW, .i64 = &d->pad_low},
                                 {RP_HLO_WINDOW_DIM_PADDING_HIGH, .i64 = &d->pad_high},
                                 {RP_HLO_WINDOW_DIM_WINDOW_DILATION, .i64 = &d->window_dilation},
                                 {RP_HLO_WINDOW_DIM_BASE_DILATION, .i64 = &d->base_dilation},
                                 {RP_HLO_WINDOW_DIM_WINDOW_REVERSAL, .flag = &d->reversal},
                                 {0}},
                             r->err));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    return w.n ? rp_hlo_proto_add(r, rp_attr_of_window(r->p, &w)) : RP_OK;
}

static void read_spatial(struct rp_proto_cursor list, int64_t *dims, size_t *n)
{
    uint64_t v;

    while (*n < RP_WINDOW_DIMS && rp_proto_packed_varint(&list, &v))
        dims[(*n)++] = (int64_t)v;
}

enum rp_code rp_hlo_proto_add_conv_dims(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    struct rp_conv_dims d = {0};
    const struct rp_proto_slot slots[] = {
        {RP_HLO_CONV_DIMS_KERNEL_INPUT_FEATURE_DIMENSION, .i64 = &d.kernel_input},
        {RP_HLO_CONV_DIMS_KERNEL_OUTPUT_FEATURE_DIMENSION, .i64 = &d.kernel_output},
        {RP_HLO_CONV_DIMS_INPUT_BATCH_DIMENSION, .i64 = &d.input_batch},
        {RP_HLO_CONV_DIMS_INPUT_FEATURE_DIMENSION, .i64 = &d.input_feature},
        {RP_HLO_CONV_DIMS_OUTPUT_BATCH_DIMENSION, .i64 = &d.output_batch},
        {RP_HLO_CONV_DIMS_OUTPUT_FEATURE_DIMENSION, .i64 = &d.output_feature},
        {0}};
    size_t kernel = 0, output = 0;
    struct rp_proto_item it;
    char text[64];

    while (rp_proto_next(&c, &it)) {
        if (it.number == RP_HLO_CONV_DIMS_INPUT_SPATIAL_DIMENSIONS)
            read_spatial(rp_proto_list(&c, &it), d.input_spatial, &d.nspatial);
        else if (it.number == RP_HLO_CONV_DIMS_KERNEL_SPATIAL_DIMENSIONS)
            read_spatial(rp_proto_list(&c, &it), d.kernel_spatial, &kernel);
        else if (it.number == RP_HLO_CONV_DIMS_OUTPUT_SPATIAL_DIMENSIONS)
            read_spatial(rp_proto_list(&c, &it), d.output_spatial, &output);
        else
            rp_proto_take(slots, &it);
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (kernel != d.nspatial || output != d.nspatial || !rp_conv_dims_print(&d, text))
        return RP_OK; /* instructions that are not convolutions have an empty one */
    return rp_hlo_proto_add(r, rp_attr_of_conv_dims(r->p, &d));
}

/* ---- replica groups ---- */

static enum rp_code collect_group(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it))
        if (it.number == RP_HLO_REPLICA_GROUP_REPLICA_IDS)
            RP_TRY(rp_hlo_proto_collect(r, rp_proto_list(&c, &it)));
    return rp_proto_finish(&c, r->err);
}

enum rp_code rp_hlo_proto_add_groups(struct rp_hlo_proto *r, struct rp_proto_cursor c,
                                     uint32_t field)
{
    static const int64_t none = 0; /* groups without ids take a place, too */
    struct rp_replica_groups g = {.form = RP_GROUPS_LISTED};
    struct rp_proto_item it;
    uint32_t *begin;

    r->ints.n = r->ids.n = 0;
    while (rp_proto_next_bytes(&c, field, &it)) {
        RP_TRY(rp_vec_push(&r->ids, (uint32_t)r->ints.n, r->err));
        RP_TRY(collect_group(r, rp_proto_enter(&c, &it)));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    RP_TRY(rp_vec_push(&r->ids, (uint32_t)r->ints.n, r->err));
    begin = rp_arena_alloc(&r->p->arena, r->ids.n * sizeof *begin, _Alignof(uint32_t));
    if (begin)
        memcpy(begin, r->ids.at, r->ids.n * sizeof *begin);
    g.begin = begin;
    g.ngroups = r->ids.n - 1;
    g.ids = keep_ints(r);
    g.ids.at = g.ids.n ? g.ids.at : &none;
    return rp_hlo_proto_add(r, keep_struct(r, RP_ATTR_REPLICA_GROUPS, &g, sizeof g));
}

enum rp_code rp_hlo_proto_add_iota_groups(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    struct rp_replica_groups g = {.form = RP_GROUPS_IOTA};
    struct rp_bytes dims = {0}, perm = {0};
    uint64_t ngroups = 0;

    RP_TRY(rp_proto_read(c,
                         (const struct rp_proto_slot[]){
                             {RP_HLO_IOTA_GROUPS_NUM_REPLICA_GROUPS, .u64 = &ngroups},
                             {RP_HLO_IOTA_GROUPS_NUM_DEVICES_PER_GROUP, .i64 = &g.group_size},
                             {RP_HLO_IOTA_GROUPS_IOTA_RESHAPE_DIMS, .bytes = &dims},
                             {RP_HLO_IOTA_GROUPS_IOTA_TRANSPOSE_PERM, .bytes = &perm},
                             {0}},
                         r->err));
    g.ngroups = (size_t)ngroups;
    RP_TRY(keep_packed(r, dims, &g.dims));
    RP_TRY(keep_packed(r, perm, &g.perm));
    if (g.perm.n == 1) /* a single dimension cannot be transposed, so text does not write it */
        g.perm.n = 0;
    return rp_hlo_proto_add(r, keep_struct(r, RP_ATTR_REPLICA_GROUPS, &g, sizeof g));
}

#define MESH_AXES 64

struct mesh_reader {
    struct rp_replica_groups g;
    struct rp_mesh_axis axes[MESH_AXES];
    struct rp_mesh_part parts[MESH_AXES];
};

static enum rp_code read_mesh(struct rp_hlo_proto *r, struct rp_proto_cursor c,
                              struct mesh_reader *m)
{
    struct rp_bytes dims = {0}, perm = {0};
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.wire != RP_WIRE_BYTES)
            continue;
        if (it.number == RP_HLO_MESH_AXES) {
            /* An axis of the mesh: its name and size. */
            struct rp_bytes name = {(const uint8_t *)"", 0};
            struct rp_mesh_axis axis = {0};
            RP_TRY(rp_proto_read(
                rp_proto_enter(&c, &it),
                (const struct rp_proto_slot[]){{RP_HLO_MESH_AXIS_NAME, .bytes = &name},
                                               {RP_HLO_MESH_AXIS_SIZE, .i64 = &axis.size},
                                               {0}},
                r->err));
            axis.name = (struct rp_slice){(const char *)name.at, (uint32_t)name.n, 0};
            if (m->g.naxes == MESH_AXES)
                return rp_err_set(r->err, RP_LIMIT, "a mesh of more than %d axes", MESH_AXES);
            m->axes[m->g.naxes++] = axis;
        } else if (it.number == RP_HLO_MESH_DEVICE_IDS)
            RP_TRY(keep_packed(r, it.bytes, &m->g.ids));
        else if (it.number == RP_HLO_MESH_IOTA_TRANSFORM)
            RP_TRY(rp_proto_read(
                rp_proto_enter(&c, &it),
                (const struct rp_proto_slot[]){{RP_HLO_MESH_IOTA_RESHAPE_DIMS, .bytes = &dims},
                                               {RP_HLO_MESH_IOTA_TRANSPOSE_PERM, .bytes = &perm},
                                               {0}},
                r->err));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    RP_TRY(keep_packed(r, dims, &m->g.dims));
    return keep_packed(r, perm, &m->g.perm);
}

static enum rp_code read_mesh_part(struct rp_hlo_proto *r, struct rp_proto_cursor c,
                                   struct mesh_reader *m)
{
    struct rp_mesh_part part = {0, 0, 0};
    struct rp_bytes sub = {c.begin, 0};
    uint64_t axis = 0;

    RP_TRY(rp_proto_read(
        c,
        (const struct rp_proto_slot[]){{RP_HLO_AXIS_REF_MESH_AXIS_INDEX, .u64 = &axis},
                                       {RP_HLO_AXIS_REF_SUB_AXIS_INFO, .bytes = &sub},
                                       {0}},
        r->err));
    RP_TRY(rp_proto_read(
        rp_proto_cursor(sub.at, sub.n, rp_proto_offset(&c, sub.at), c.depth),
        (const struct rp_proto_slot[]){{RP_HLO_SUB_AXIS_PRE_SIZE, .i64 = &part.before},
                                       {RP_HLO_SUB_AXIS_SIZE, .i64 = &part.size},
                                       {0}},
        r->err));
    if (axis >= m->g.naxes)
        return rp_err_set(r->err, RP_FORMAT, "groups along axis %llu, but the mesh has %zu axes",
                          (unsigned long long)axis, m->g.naxes);
    if (m->g.nparts == MESH_AXES)
        return rp_err_set(r->err, RP_LIMIT, "groups along more than %d axes", MESH_AXES);
    part.axis = (uint32_t)axis;
    m->parts[m->g.nparts++] = part;
    return RP_OK;
}

enum rp_code rp_hlo_proto_add_mesh_groups(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    struct rp_proto_cursor parts_at = c;
    struct mesh_reader m = {.g = {.form = RP_GROUPS_MESH}};
    struct rp_proto_item it;

    while (rp_proto_next_bytes(&c, RP_HLO_MESH_GROUPS_MESH, &it))
        RP_TRY(read_mesh(r, rp_proto_enter(&c, &it), &m));
    RP_TRY(rp_proto_finish(&c, r->err));
    while (rp_proto_next_bytes(&parts_at, RP_HLO_MESH_GROUPS_AXES, &it))
        RP_TRY(read_mesh_part(r, rp_proto_enter(&parts_at, &it), &m));
    struct rp_mesh_axis *axes = RP_ARENA_NEW(&r->p->arena, struct rp_mesh_axis, m.g.naxes + 1);
    struct rp_mesh_part *parts = RP_ARENA_NEW(&r->p->arena, struct rp_mesh_part, m.g.nparts + 1);
    if (axes && parts) {
        memcpy(axes, m.axes, m.g.naxes * sizeof *axes);
        memcpy(parts, m.parts, m.g.nparts * sizeof *parts);
    }
    m.g.axes = axes;
    m.g.parts = parts;
    return rp_hlo_proto_add(r, keep_struct(r, RP_ATTR_REPLICA_GROUPS, &m.g, sizeof m.g));
}

/* ---- aliases ---- */

/* Aliases of outputs with operands, or with parameters of the module: the messages have the same
   field numbers, and the second has a kind. */
_Static_assert((int)RP_HLO_OUTPUT_ALIAS_OPERAND_SHAPE_INDEX ==
                   (int)RP_HLO_ALIAS_ENTRY_PARAMETER_SHAPE_INDEX,
               "aliases");

static enum rp_code read_aliases(struct rp_hlo_proto *r, struct rp_proto_cursor c, uint32_t field,
                                 uint32_t key, struct rp_attr *out)
{
    struct rp_proto_item it;

    r->aliases.n = 0;
    while (rp_proto_next_bytes(&c, field, &it)) {
        /* An output, the parameter that it shares memory with, and whether it must. */
        bool module = key == RP_ATTR_INPUT_OUTPUT_ALIAS;
        struct rp_alias alias = {.kind = module ? RP_ALIAS_MAY : RP_ALIAS_UNSPECIFIED};
        struct rp_bytes output = {0}, operand = {0};
        uint64_t kind = 0;
        RP_TRY(rp_proto_read(rp_proto_enter(&c, &it),
                             (const struct rp_proto_slot[]){
                                 {RP_HLO_ALIAS_ENTRY_OUTPUT_SHAPE_INDEX, .bytes = &output},
                                 {RP_HLO_ALIAS_ENTRY_PARAMETER_NUMBER, .i64 = &alias.number},
                                 {RP_HLO_ALIAS_ENTRY_PARAMETER_SHAPE_INDEX, .bytes = &operand},
                                 {RP_HLO_ALIAS_ENTRY_KIND, .u64 = &kind},
                                 {0}},
                             r->err));
        if (module && kind == 2)
            alias.kind = RP_ALIAS_MUST;
        RP_TRY(keep_packed(r, output, &alias.output));
        RP_TRY(keep_packed(r, operand, &alias.operand));
        RP_TRY(rp_vec_push(&r->aliases, alias, r->err));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    struct rp_alias *kept = RP_ARENA_NEW(&r->p->arena, struct rp_alias, r->aliases.n + 1);
    if (kept && r->aliases.n)
        memcpy(kept, r->aliases.at, r->aliases.n * sizeof *kept);
    *out = (struct rp_attr){.aliases = r->p->arena.failed ? NULL : kept,
                            .n = (uint32_t)r->aliases.n,
                            .key = key,
                            .type = RP_VALUE_ALIASES};
    return RP_OK;
}

enum rp_code rp_hlo_proto_add_aliases(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    struct rp_attr attr;

    RP_TRY(read_aliases(r, c, RP_HLO_INSTRUCTION_OUTPUT_OPERAND_ALIASING,
                        RP_ATTR_OUTPUT_TO_OPERAND_ALIASING, &attr));
    return rp_hlo_proto_add(r, attr);
}

enum rp_code rp_hlo_proto_add_module_aliases(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    struct rp_attr attr;

    RP_TRY(read_aliases(r, c, RP_HLO_ALIAS_ENTRIES, RP_ATTR_INPUT_OUTPUT_ALIAS, &attr));
    return attr.n ? rp_program_add_module_attr(r->p, attr, r->err) : RP_OK;
}

/* ---- shardings ---- */

/* Reads one field; *known tells whether the value has a place for it. */
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

/* Parts are counted first, because their own lists come between them. */
static enum rp_code read_sharding(struct rp_hlo_proto *r, struct rp_bytes bytes, unsigned depth,
                                  struct rp_sharding *out, bool *known)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, 0, 16);
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
    struct rp_sharding *parts = RP_ARENA_NEW(&r->p->arena, struct rp_sharding, n);
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
