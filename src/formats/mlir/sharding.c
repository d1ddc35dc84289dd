/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expresses programs for several devices (groups of collectives, meshes, the manual parts of
 * Shardy) in the operations that XLA uses for them:
 *
 *   sdy.manual_computation(%a) in_shardings=[..] out_shardings=[..] manual_axes={"x"} (%b: ..) {..}
 *
 *   custom-call "xla.sdy.GlobalToLocalShape", call of the region, custom-call
 *   "xla.sdy.LocalToGlobalShape"
 */
#include "formats/mlir/mlir.h"
#include "program/opcodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- collectives ---- */

static enum rp_code put_groups(struct rp_mlir *r, struct rp_chars *text,
                               const struct rp_mlir_ints *list, size_t each)
{
    char word[32];

    rp_chars_put(text, "{", 1);
    for (size_t i = 0; i < list->n; i++) {
        bool first = i % each == 0, last = i % each == each - 1;

        if (first)
            rp_chars_put(text, i ? ",{" : "{", i ? 2 : 1);
        if (list->at[i] >= 0) { /* -1 fills short groups */
            int n = snprintf(word, sizeof word, "%s%" PRId64, first ? "" : ",", list->at[i]);

            rp_chars_put(text, word, (size_t)n);
        }
        if (last)
            rp_chars_put(text, "}", 1);
    }
    rp_chars_put(text, "}", 1);
    return text->failed ? rp_err_nomem(r->err, "reading groups") : RP_OK;
}

static enum rp_code add_groups(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                               const char *word, uint32_t key)
{
    RP_SCOPED(rp_chars_release) struct rp_chars out = {0};
    struct rp_mlir_ints list;
    size_t each;

    RP_TRY(rp_mlir_find_groups(r, attrs, word, &list, &each));
    if (!each)
        return RP_OK;
    if (list.n >= RP_MLIR_INTS)
        return RP_MLIR_FAIL(r, attrs->at, "groups of %d devices or more", RP_MLIR_INTS);
    RP_TRY(put_groups(r, &out, &list, each));
    char *kept = rp_arena_copy(&r->p->arena, out.at, out.n);
    RP_TRY(rp_err_need(kept, r->err, "reading groups"));
    return rp_program_add_attr(r->p, rp_attr_parse(r->p, key, kept, out.n), r->err);
}

enum rp_code rp_mlir_collective(struct rp_mlir *r, unsigned code, const struct rp_mlir_attrs *attrs)
{
    static const char *const ids[] = {"channel_id", "channel_handle", NULL};
    struct rp_mlir_ints list;

    RP_TRY(add_groups(r, attrs, "replica_groups", RP_ATTR_REPLICA_GROUPS));
    if (code == RP_OP_COLLECTIVE_PERMUTE)
        RP_TRY(add_groups(r, attrs, "source_target_pairs", RP_ATTR_SOURCE_TARGET_PAIRS));
    if (rp_mlir_find_ints(r, attrs, ids, &list) && list.n && list.at[0] > 0)
        RP_TRY(rp_program_add_attr(r->p, rp_attr_int(RP_ATTR_CHANNEL_ID, list.at[0]), r->err));
    if (rp_mlir_find_flag(r, attrs, "use_global_device_ids"))
        RP_TRY(
            rp_program_add_attr(r->p, rp_attr_flag(RP_ATTR_USE_GLOBAL_DEVICE_IDS, true), r->err));
    return RP_OK;
}

/* An exchange that splits and joins along different dimensions becomes slices, the exchange of a
   tuple, and op, which joins. */
enum rp_code rp_mlir_all_to_all(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                size_t first_operand, struct rp_new_op *op, int64_t *joined)
{
    static const char *const keys[] = {"split_dimension", "concat_dimension", "split_count"};
    struct rp_program *p = r->p;
    struct rp_new_op made = {.code = RP_OP_SLICE};
    uint32_t operand = r->operands.at[first_operand], ids[RP_MLIR_INTS], parts[RP_MLIR_INTS], whole;
    const struct rp_op_shape *shape = &p->shapes.at[p->shape.at[operand]];
    int64_t value[3] = {0}, dims[64], triples[3 * 64];
    uint32_t rank = shape->n;

    *joined = -1;
    for (int i = 0; i < 3; i++)
        value[i] = rp_mlir_find_int(r, attrs, keys[i], -1);
    if (value[0] == value[1] || shape->elem == RP_ELEM_TUPLE || rank > 64 || value[0] < 0 ||
        value[0] >= rank || value[1] < 0 || value[1] >= rank || value[2] < 1 ||
        value[2] > RP_MLIR_INTS)
        return RP_OK;
    memcpy(dims, p->dims.at + shape->first, rank * sizeof *dims);
    for (size_t i = 0; i < rank; i++) {
        triples[3 * i] = 0;
        triples[3 * i + 1] = dims[i];
        triples[3 * i + 2] = 1;
    }
    dims[value[0]] /= value[2];
    RP_TRY(rp_program_array(p, shape->elem, dims, NULL, rank, 0, &made.shape, r->err));
    for (int64_t k = 0; k < value[2]; k++) {
        triples[3 * value[0]] = k * dims[value[0]];
        triples[3 * value[0] + 1] = (k + 1) * dims[value[0]];
        RP_TRY(rp_mlir_add_implicit(r, &made, &operand, 1, &ids[k]));
        RP_TRY(rp_program_add_attr(p,
                                   rp_attr_int_list(p, RP_ATTR_SLICE, rp_attr_type(RP_ATTR_SLICE),
                                                    triples, 3 * (size_t)rank),
                                   r->err));
        parts[k] = made.shape;
    }
    made.code = RP_OP_ALL_TO_ALL;
    RP_TRY(rp_program_tuple(p, parts, (size_t)value[2], &made.shape, r->err));
    RP_TRY(rp_mlir_add_implicit(r, &made, ids, (size_t)value[2], &whole));
    RP_TRY(rp_mlir_collective(r, RP_OP_ALL_TO_ALL, attrs));
    r->operands.n = first_operand;
    for (int64_t k = 0; k < value[2]; k++) {
        uint32_t part = whole;

        RP_TRY(rp_mlir_part(r, attrs->at, &part, (uint32_t)k));
        RP_TRY(rp_mlir_push_operand(r, part));
    }
    op->code = RP_OP_CONCATENATE;
    *joined = value[1];
    return RP_OK;
}

/* ---- manual parts ---- */

static void put_escaped(struct rp_chars *to, const char *s, const char *end)
{
    for (; s < end; s++) {
        if (*s == '"' || *s == '\\')
            rp_chars_put(to, "\\", 1);
        rp_chars_put(to, s, 1);
    }
}

/* 'xla.sdy.in_shardings="#sdy.sharding_per_value<[...]>"', from either form */
static enum rp_code put_shardings(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                  const char *word, const char *open, const char *close,
                                  struct rp_chars *to)
{
    struct rp_slice text;

    RP_TRY(rp_mlir_find_text(r, attrs, word, &text));
    if (!text.n)
        return RP_OK;
    rp_chars_put(to, to->n > 1 ? ",xla.sdy." : "xla.sdy.", to->n > 1 ? 9 : 8);
    rp_chars_put(to, word, strlen(word));
    rp_chars_put(to, "=\"", 2);
    if (*text.at != '#')
        rp_chars_put(to, open, strlen(open));
    put_escaped(to, text.at, text.at + text.n);
    if (*text.at != '#')
        rp_chars_put(to, close, strlen(close));
    rp_chars_put(to, "\"", 1);
    return RP_OK;
}

enum rp_code rp_mlir_manual_attrs(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                  bool results)
{
    RP_SCOPED(rp_chars_release) struct rp_chars out = {0};

    rp_chars_put(&out, "{", 1);
    RP_TRY(put_shardings(r, attrs, results ? "out_shardings" : "in_shardings",
                         "#sdy.sharding_per_value<", ">", &out));
    RP_TRY(put_shardings(r, attrs, "manual_axes", "#sdy<manual_axes", ">", &out));
    rp_chars_put(&out, "}", 1);
    char *kept = out.failed ? NULL : rp_arena_copy(&r->p->arena, out.at, out.n);
    RP_TRY(rp_err_need(kept, r->err, "reading shardings"));
    RP_TRY(rp_program_add_attr(r->p, rp_attr_parse(r->p, RP_ATTR_FRONTEND_ATTRIBUTES, kept, out.n),
                               r->err));
    return rp_mlir_target(r, results ? "xla.sdy.LocalToGlobalShape" : "xla.sdy.GlobalToLocalShape");
}

enum rp_code rp_mlir_target(struct rp_mlir *r, const char *name)
{
    return rp_program_add_attr(
        r->p, rp_attr_bytes(RP_ATTR_CUSTOM_CALL_TARGET, RP_VALUE_STRING, name, strlen(name)),
        r->err);
}

/* The shapes of the region's arguments, which are named before it, or in its first line. */
static enum rp_code region_shapes(struct rp_mlir *r, const struct rp_mlir_region *region,
                                  size_t args, uint32_t *shapes, size_t n)
{
    size_t first = args, named = r->args.n - args;
    const char *at = r->at;

    if (!named) {
        first = r->args.n;
        RP_TRY(rp_mlir_region_arguments(r, region));
        r->at = at;
        named = r->args.n - first;
    }
    if (named != n)
        return RP_MLIR_FAIL(r, region->at, "%zu arguments of a region for %zu operands", named, n);
    for (size_t i = 0; i < n; i++)
        shapes[i] = r->args.at[first + i].shape;
    if (first != args)
        r->args.n = first;
    return RP_OK;
}

/* The call gets the shape of the region's root, which is read later. */
struct manual {
    size_t n;
    uint32_t *ids, *shapes;
};

static enum rp_code manual_locals(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                  struct manual *m)
{
    struct rp_new_op op = {.code = RP_OP_CUSTOM_CALL, .shape = m->n == 1 ? m->shapes[0] : 0};
    uint32_t whole;

    if (m->n != 1)
        RP_TRY(rp_program_tuple(r->p, m->shapes, m->n, &op.shape, r->err));
    RP_TRY(rp_mlir_add_implicit(r, &op, m->ids, m->n, &whole));
    RP_TRY(rp_mlir_manual_attrs(r, attrs, false));
    for (size_t i = 0; i < m->n; i++) {
        m->ids[i] = whole;
        if (m->n != 1)
            RP_TRY(rp_mlir_part(r, attrs->at, &m->ids[i], (uint32_t)i));
    }
    return RP_OK;
}

enum rp_code rp_mlir_manual(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                            size_t first_operand, size_t region, size_t args, struct rp_new_op *op)
{
    const struct rp_op_shape *result = &r->p->shapes.at[op->shape];
    size_t results = result->elem == RP_ELEM_TUPLE ? result->n : 1;
    struct manual m = {.n = (r->operands.n - first_operand) / 2};
    struct rp_new_op call = {.code = RP_OP_CALL, .shape = op->shape};
    uint32_t id;

    m.ids = RP_ARENA_NEW(&r->p->arena, uint32_t, 2 * m.n + 1);
    RP_TRY(rp_err_need(m.ids, r->err, "reading a region"));
    m.shapes = m.ids + m.n;
    if (!m.n || r->regions.n != region + 1)
        return RP_MLIR_FAIL(r, attrs->at, "a manual computation without operands or region");
    for (size_t i = 0; i < m.n; i++)
        m.ids[i] = r->operands.at[first_operand + 2 * i];
    RP_TRY(region_shapes(r, &r->regions.at[region], args, m.shapes, m.n));
    RP_TRY(manual_locals(r, attrs, &m));
    RP_TRY(rp_mlir_add_implicit(r, &call, m.ids, m.n, &id));
    struct rp_mlir_late late = {id, (uint32_t)results};
    RP_TRY(rp_vec_push(&r->late, late, r->err));
    RP_TRY(rp_mlir_call_region(r, region, args));
    r->operands.n = first_operand;
    for (size_t i = 0; i < results; i++) {
        uint32_t part = id;

        if (results > 1)
            RP_TRY(rp_mlir_part(r, attrs->at, &part, (uint32_t)i));
        RP_TRY(rp_mlir_push_operand(r, part));
    }
    op->code = RP_OP_CUSTOM_CALL;
    return RP_OK;
}

/* The parts follow the call. */
enum rp_code rp_mlir_set_late(struct rp_mlir *r)
{
    for (size_t i = 0; i < r->late.n; i++) {
        uint32_t id = r->late.at[i].op;
        struct rp_ids called = rp_op_called(r->p, id);

        if (!called.n || called.at[0] >= r->p->computations.n)
            continue;
        uint32_t root = r->p->computations.at[called.at[0]].root;
        if (root >= r->p->nops)
            continue;
        r->p->shape.at[id] = r->p->shape.at[root];
        const struct rp_op_shape *shape = &r->p->shapes.at[r->p->shape.at[root]];
        if (r->late.at[i].parts > 1 &&
            (shape->elem != RP_ELEM_TUPLE || shape->n != r->late.at[i].parts))
            return rp_err_set(r->err, RP_FORMAT, "a manual computation returns %u values, not %u",
                              shape->elem == RP_ELEM_TUPLE ? shape->n : 1, r->late.at[i].parts);
        for (uint32_t k = 0; r->late.at[i].parts > 1 && k < shape->n; k++)
            r->p->shape.at[id + 1 + k] = r->p->parts.at[shape->first + k];
    }
    r->late.n = 0;
    return RP_OK;
}

/* ---- the module ---- */

/* Its text from '<' on is the same in both forms. */
enum rp_code rp_mlir_mesh(struct rp_mlir *r, struct rp_slice name, struct rp_slice mesh)
{
    const char *open = mesh.n ? memchr(mesh.at, '<', mesh.n) : NULL;

    if (!open || !name.n)
        return RP_OK;
    rp_chars_put(&r->meshes, r->meshes.n ? ", " : "{", r->meshes.n ? 2 : 1);
    put_escaped(&r->meshes, name.at, name.at + name.n);
    rp_chars_put(&r->meshes, " = #sdy.mesh", 12);
    put_escaped(&r->meshes, open, mesh.at + mesh.n);
    return r->meshes.failed ? rp_err_nomem(r->err, "reading a mesh") : RP_OK;
}

enum rp_code rp_mlir_module_attrs(struct rp_mlir *r, const struct rp_mlir_attrs *attrs)
{
    static const struct {
        const char *word;
        uint32_t key;
    } numbers[] = {{"mhlo.num_partitions", RP_ATTR_NUM_PARTITIONS},
                   {"mhlo.num_replicas", RP_ATTR_REPLICA_COUNT}};

    for (size_t i = 0; i < 2; i++) {
        int64_t n = rp_mlir_find_int(r, attrs, numbers[i].word, 1);

        if (n > 1)
            RP_TRY(rp_program_add_module_attr(r->p, rp_attr_int(numbers[i].key, n), r->err));
    }
    return RP_OK;
}

enum rp_code rp_mlir_add_meshes(struct rp_mlir *r)
{
    RP_SCOPED(rp_chars_release) struct rp_chars out = {0};

    if (!r->meshes.n)
        return RP_OK;
    rp_chars_put(&out, "{xla.sdy.meshes=\"", 17);
    rp_chars_put(&out, r->meshes.at, r->meshes.n);
    rp_chars_put(&out, "}\"}", 3);
    char *kept = out.failed ? NULL : rp_arena_copy(&r->p->arena, out.at, out.n);
    RP_TRY(rp_err_need(kept, r->err, "reading meshes"));
    return rp_program_add_module_attr(
        r->p, rp_attr_parse(r->p, RP_ATTR_FRONTEND_ATTRIBUTES, kept, out.n), r->err);
}
