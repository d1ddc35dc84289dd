/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that take shapes as operands: with the values of these they become operations of HLO,
   which have them as attributes. */
#include "program/opcodes.h"
#include "program/refine.h"
#include "program/refine_frame.h"
#include "program/window.h"

#include <stdio.h>
#include <string.h>

unsigned rp_refine_fixed(const char *name)
{
    static const struct {
        const char *name;
        unsigned code;
    } rows[] = {{"dynamic_broadcast_in_dim", RP_OP_BROADCAST},
                {"dynamic_iota", RP_OP_IOTA},
                {"dynamic_reshape", RP_OP_RESHAPE},
                {"dynamic_pad", RP_OP_PAD},
                {"dynamic_gather", RP_OP_GATHER},
                {"dynamic_conv", RP_OP_CONVOLUTION},
                {"real_dynamic_slice", RP_OP_SLICE}};
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(dot ? dot + 1 : name, rows[i].name))
            return rows[i].code;
    return RP_OP_FOREIGN;
}

#define BY_VALUES                                                                               \
    "its shape depends on values of the inputs, which only a run knows, and XLA takes no such " \
    "program either: export it with that size as a constant"

/* ---- what operands say ---- */

/* The elements of an operand as a list. */
static enum rp_code known_list(struct rp_refine_frame *f, const struct rp_refine_op *r, size_t i,
                               struct rp_infer_dims *out)
{
    if (i >= r->n)
        return rp_refine_fail(f->c, r->op, RP_FORMAT, "an operand is missing");
    if (!r->known[i].at)
        return rp_refine_fail(f->c, r->op, RP_UNSUPPORTED, BY_VALUES);
    out->n = 1;
    for (size_t k = 0; k < r->dims[i].n; k++)
        out->n *= (size_t)r->dims[i].at[k];
    if (out->n > RP_INFER_RANK)
        return rp_refine_fail(f->c, r->op, RP_LIMIT, "a shape of too many dimensions");
    if (out->n)
        memcpy(out->at, r->known[i].at, out->n * sizeof *out->at);
    return RP_OK;
}

static unsigned elem_of(const struct rp_refine_frame *f, uint32_t op)
{
    return f->c->p->shapes.at[f->c->p->shape.at[op]].elem;
}

/* ---- operations whose shape is given ---- */

/* Dimensions of size 1 that become wider are taken away before they are made. */
static enum rp_code refine_broadcast(struct rp_refine_frame *f, struct rp_refine_op *r,
                                     const struct rp_infer_dims *out, struct rp_refined *value)
{
    struct rp_refine *c = f->c;
    const struct rp_infer_dims *in = &r->dims[0];
    struct rp_infer_dims kept = {.n = 0}, places = {.n = 0};
    struct rp_refined narrow;
    uint32_t shape, thin;
    size_t n = 0;
    const int64_t *to = rp_op_ints(c->p, r->op, RP_ATTR_DIMENSIONS, &n);

    if (n != in->n)
        return rp_refine_fail(c, r->op, RP_FORMAT, "each dimension of its operand has a place");
    for (size_t i = 0; i < n; i++) {
        if (to[i] < 0 || (size_t)to[i] >= out->n || (in->at[i] != 1 && in->at[i] != out->at[to[i]]))
            return rp_refine_fail(c, r->op, RP_FORMAT,
                                  "inputs of these shapes do not fit the program");
        if (in->at[i] != out->at[to[i]])
            continue;
        kept.at[kept.n++] = in->at[i];
        places.at[places.n++] = to[i];
    }
    RP_TRY(rp_refine_array(c, elem_of(f, r->op), out, &shape));
    if (kept.n < n) {
        RP_TRY(rp_refine_array(c, elem_of(f, r->op), &kept, &thin));
        RP_TRY(rp_refine_step(f, RP_OP_RESHAPE, thin, r->operands[0], NULL, &narrow));
        r->operands[0] = &narrow;
    }
    r->set[r->nset++] = rp_attr_ints(c->b.program, RP_ATTR_DIMENSIONS, places.at, places.n);
    return rp_refine_emit(f, r, 1, shape, NULL, 0, value);
}

static enum rp_code refine_given(struct rp_refine_frame *f, struct rp_refine_op *r,
                                 struct rp_refined *value)
{
    size_t sizes = r->code != RP_OP_IOTA;
    struct rp_infer_dims dims;
    uint32_t shape;

    RP_TRY(known_list(f, r, sizes, &dims));
    if (r->code == RP_OP_BROADCAST)
        return refine_broadcast(f, r, &dims, value);
    RP_TRY(rp_refine_array(f->c, elem_of(f, r->op), &dims, &shape));
    if (sizes && rp_shape_elements(f->c->b.program, shape) !=
                     rp_shape_elements(f->c->b.program, r->operands[0]->shape))
        return rp_refine_fail(f->c, r->op, RP_FORMAT,
                              "inputs of these shapes give it another number of elements");
    return rp_refine_emit(f, r, sizes, shape, NULL, 0, value);
}

/* ---- operations whose attributes are given ---- */

static struct rp_attr triples_of(struct rp_refine_frame *f, uint32_t key,
                                 const struct rp_infer_dims *part)
{
    int64_t list[3 * RP_INFER_RANK];

    for (size_t i = 0; i < 3 * part[0].n; i++)
        list[i] = part[i % 3].at[i / 3];
    return rp_attr_int_list(f->c->b.program, key, rp_attr_type(key), list, 3 * part[0].n);
}

/* Three operands from `first` on, each with a number for every dimension of the first. */
static enum rp_code set_triples(struct rp_refine_frame *f, struct rp_refine_op *r, size_t first,
                                uint32_t key)
{
    struct rp_infer_dims part[3];

    for (size_t i = 0; i < 3; i++) {
        RP_TRY(known_list(f, r, first + i, &part[i]));
        if (part[i].n != r->dims[0].n)
            return rp_refine_fail(f->c, r->op, RP_FORMAT, "each dimension has a number");
    }
    r->set[r->nset++] = triples_of(f, key, part);
    r->n = first;
    return RP_OK;
}

static enum rp_code set_convolution(struct rp_refine_frame *f, struct rp_refine_op *r)
{
    const struct rp_attr *window = rp_op_attr(f->c->p, r->op, RP_ATTR_WINDOW);
    struct rp_infer_dims pads;
    struct rp_window w;

    RP_TRY(known_list(f, r, 2, &pads));
    if (!window || !rp_attr_window(window, &w) || pads.n != 2 * w.n)
        return rp_refine_fail(f->c, r->op, RP_FORMAT, "each dimension has its padding");
    for (size_t i = 0; i < w.n; i++) {
        w.dim[i].pad_low = pads.at[2 * i];
        w.dim[i].pad_high = pads.at[2 * i + 1];
    }
    r->set[r->nset++] = rp_attr_of_window(f->c->b.program, &w);
    r->n = 2;
    return RP_OK;
}

/* A kernel of unknown size leaves its mark in the window. */
static void set_kernel_size(struct rp_refine_frame *f, struct rp_refine_op *r)
{
    const struct rp_attr *labels = rp_op_attr(f->c->p, r->op, RP_ATTR_DIM_LABELS);
    const struct rp_attr *window = rp_op_attr(f->c->p, r->op, RP_ATTR_WINDOW);
    struct rp_conv_dims d;
    struct rp_window w;
    char text[64];

    if (r->nset)
        window = &r->set[0];
    if (!labels || !window || !rp_attr_conv_dims(labels, &d) || !rp_attr_window(window, &w) ||
        !rp_conv_dims_print(&d, text) || w.n != d.nspatial || r->n < 2 || r->dims[1].n != w.n + 2)
        return;
    for (size_t i = 0; i < w.n; i++)
        w.dim[i].size = r->dims[1].at[d.kernel_spatial[i]];
    r->nset = 1;
    r->set[0] = rp_attr_of_window(f->c->b.program, &w);
}

/* ---- slices ---- */

/* How long a slice is that begins anywhere: its end is the begin plus a known shape. */
static enum rp_code slice_sizes(struct rp_refine_frame *f, const struct rp_refine_op *r,
                                struct rp_infer_dims *sizes)
{
    const struct rp_program *p = f->c->p;
    struct rp_ids operands = rp_op_operands(p, r->op);
    uint32_t end = operands.at[2];

    if (p->code.at[end] == RP_OP_ADD) {
        struct rp_ids sum = rp_op_operands(p, end);
        for (size_t i = 0; i < 2; i++) {
            const struct rp_refined *v = &f->values[sum.at[1 - i] - f->first];
            if (sum.at[i] != operands.at[1] || !v->known ||
                rp_shape_elements(f->c->b.program, v->shape) != (int64_t)r->dims[0].n)
                continue;
            sizes->n = r->dims[0].n;
            memcpy(sizes->at, v->known, sizes->n * sizeof *sizes->at);
            return RP_OK;
        }
    }
    rp_refine_dims(p, p->shape.at[r->op], sizes);
    for (size_t i = 0; i < sizes->n; i++)
        if (sizes->at[i] == RP_DIM_UNKNOWN)
            return rp_refine_fail(f->c, r->op, RP_UNSUPPORTED, BY_VALUES);
    return RP_OK;
}

static enum rp_code refine_slice(struct rp_refine_frame *f, struct rp_refine_op *r,
                                 struct rp_refined *value, bool *done)
{
    if (r->n != 4 || r->dims[1].n != 1 || r->dims[1].at[0] != (int64_t)r->dims[0].n)
        return rp_refine_fail(f->c, r->op, RP_FORMAT, "each dimension has a begin, an end, a step");
    if (r->known[1].at && r->known[2].at && r->known[3].at)
        return set_triples(f, r, 1, RP_ATTR_SLICE);
    *done = true;
    /* A slice that begins where only a run knows; steps are of 1. */
    struct rp_refined scalars[RP_INFER_RANK], *operands[RP_INFER_RANK + 1];
    struct rp_infer_dims sizes, steps;
    uint32_t shape;
    RP_TRY(known_list(f, r, 3, &steps));
    for (size_t i = 0; i < steps.n; i++)
        if (steps.at[i] != 1)
            return rp_refine_fail(f->c, r->op, RP_UNSUPPORTED,
                                  "a slice with steps has to begin at a known place");
    RP_TRY(slice_sizes(f, r, &sizes));
    RP_TRY(rp_refine_array(f->c, elem_of(f, r->op), &sizes, &shape));
    operands[0] = r->operands[0];
    /* The operand as scalars of each of its elements, which HLO's dynamic-slice takes. */
    struct rp_refine *c = f->c;
    unsigned elem = c->b.program->shapes.at[(r->operands[1])->shape].elem;
    uint32_t one, none;
    RP_TRY(rp_refine_array(c, elem, &(struct rp_infer_dims){{1}, 1}, &one));
    RP_TRY(rp_refine_array(c, elem, &(struct rp_infer_dims){{0}, 0}, &none));
    for (size_t i = 0; i < sizes.n; i++) {
        struct rp_attr slice =
            rp_attr_int_list(c->b.program, RP_ATTR_SLICE, rp_attr_type(RP_ATTR_SLICE),
                             (int64_t[]){(int64_t)i, (int64_t)i + 1, 1}, 3);
        struct rp_refined part;

        RP_TRY(rp_refine_step(f, RP_OP_SLICE, one, r->operands[1], &slice, &part));
        RP_TRY(rp_refine_step(f, RP_OP_RESHAPE, none, &part, NULL, &scalars[i]));
        (operands + 1)[i] = &scalars[i];
    }
    struct rp_refine_op made = *r;
    made.code = RP_OP_DYNAMIC_SLICE;
    made.set[made.nset++] =
        rp_attr_ints(f->c->b.program, RP_ATTR_DYNAMIC_SLICE_SIZES, sizes.at, sizes.n);
    made.operands = operands;
    return rp_refine_emit(f, &made, sizes.n + 1, shape, NULL, 0, value);
}

/* ---- custom calls ---- */

static enum rp_code check_assertion(struct rp_refine_frame *f, const struct rp_refine_op *r,
                                    struct rp_refined *value)
{
    uint32_t key = rp_strtab_find(&f->c->p->strings, "error_message", 13);

    if (!r->n || !r->known[0].at)
        return rp_refine_fail(f->c, r->op, RP_UNSUPPORTED,
                              "it asserts something that only a run knows");
    if (!r->known[0].at[0]) {
        /* The program's own text about inputs that do not fit; sizes replace {0}, {1}. */
        const struct rp_attr *text = key == UINT32_MAX ? NULL : rp_op_attr(f->c->p, r->op, key);
        char out[512];
        size_t at = 0;

        for (uint32_t i = 0;
             text && rp_attr_is_bytes(text) && i < text->n && at + 1 < sizeof out;) {
            size_t k = i + 2 < text->n ? (size_t)(text->at[i + 1] - '0') : 10;

            if (text->at[i] == '{' && k < 10 && text->at[i + 2] == '}' && k + 1 < r->n &&
                r->known[k + 1].at) {
                at += (size_t)snprintf(out + at, sizeof out - at, "%lld",
                                       (long long)r->known[k + 1].at[0]);
                i += 3;
            } else {
                out[at++] = text->at[i++];
            }
        }
        out[at < sizeof out ? at : sizeof out - 1] = '\0';
        return rp_err_set(f->c->err, RP_FORMAT, "the program refuses inputs of these shapes: %s",
                          out);
    }
    return rp_program_tuple(f->c->b.program, NULL, 0, &value->shape, f->c->err);
}

/* Makes an array with these sizes and the type and layout of one of the old program. */
static enum rp_code array_like(struct rp_refine *c, uint32_t old, const struct rp_infer_dims *dims,
                               uint32_t *shape)
{
    const struct rp_op_shape *s = &c->p->shapes.at[old];
    uint32_t layout;

    RP_TRY(rp_copy_string(&c->copy, s->layout, &layout));
    RP_TRY(rp_refine_array(c, s->elem, dims, shape)); /* checks the sizes */
    return layout ? rp_program_array(c->b.program, s->elem, dims->at, NULL, dims->n, layout, shape,
                                     c->err)
                  : RP_OK;
}

/* Sets the layouts of the first n operands, with their sizes. */
static enum rp_code set_layouts(struct rp_refine_frame *f, struct rp_refine_op *r, size_t n)
{
    struct rp_refine *c = f->c;
    const struct rp_attr *old = rp_op_attr(c->p, r->op, RP_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
    struct rp_attr attr = {.key = RP_ATTR_OPERAND_LAYOUT_CONSTRAINTS, .type = RP_VALUE_SHAPES};

    if (!old || old->type != RP_VALUE_SHAPES || old->n < n)
        return RP_OK;
    uint32_t *ids = RP_ARENA_NEW(&c->b.program->arena, uint32_t, n + 1);
    RP_TRY(rp_err_need(ids, c->err, "refining shapes"));
    for (size_t i = 0; i < n; i++)
        RP_TRY(array_like(c, old->ids[i], &r->dims[i], &ids[i]));
    attr.ids = ids;
    attr.n = (uint32_t)n;
    r->set[r->nset++] = attr;
    return RP_OK;
}

/* The results of a call have the shapes that its last operands give, which are not passed on. */
static enum rp_code refine_shaped_call(struct rp_refine_frame *f, struct rp_refine_op *r,
                                       const struct rp_attr *which, struct rp_refined *value)
{
    struct rp_refine *c = f->c;
    uint32_t old = c->p->shape.at[r->op], parts[RP_INFER_RANK], n = 0;
    const struct rp_op_shape *s = &c->p->shapes.at[old];
    bool tuple = s->elem == RP_ELEM_TUPLE;
    const int64_t *at;
    struct rp_infer_dims dims;
    size_t count;

    if (!rp_attr_numbers(which, &at, &count) || count != (tuple ? s->n : 1) || count > r->n ||
        count > RP_INFER_RANK)
        return rp_refine_fail(c, r->op, RP_FORMAT, "each result has an operand for its shape");
    for (size_t i = 0; i < count; i++) {
        uint32_t part = tuple ? c->p->parts.at[s->first + i] : old;

        if (at[i] != (int64_t)(r->n - count + i))
            return rp_refine_fail(c, r->op, RP_UNSUPPORTED, "its shapes are not the last operands");
        RP_TRY(known_list(f, r, (size_t)at[i], &dims));
        RP_TRY(array_like(c, part, &dims, &parts[n++]));
    }
    uint32_t shape = parts[0];
    if (tuple)
        RP_TRY(rp_program_tuple(c->b.program, parts, n, &shape, c->err));
    RP_TRY(set_layouts(f, r, r->n - count));
    r->left_out = which->key;
    return rp_refine_emit(f, r, r->n - count, shape, NULL, 0, value);
}

static enum rp_code refine_custom(struct rp_refine_frame *f, struct rp_refine_op *r,
                                  struct rp_refined *value, bool *done)
{
    const struct rp_program *p = f->c->p;
    const struct rp_attr *target = rp_op_attr(p, r->op, RP_ATTR_CUSTOM_CALL_TARGET);
    uint32_t key = rp_strtab_find(&p->strings, "indices_of_shape_operands", 25);
    const struct rp_attr *which = key == UINT32_MAX ? NULL : rp_op_attr(p, r->op, key);

    if (target && rp_attr_is(target, "stablehlo.dynamic_reduce_window")) {
        /* Operands: arrays, initial values, then sizes, strides, dilations of base and window, and
           paddings. */
        struct rp_infer_dims part[5];
        struct rp_window w = {0};

        if (r->n < 7)
            return rp_refine_fail(f->c, r->op, RP_FORMAT, "an operand is missing");
        r->n -= 5;
        for (size_t i = 0; i < 5; i++) {
            struct rp_refine_op all = *r;

            all.n = r->n + 5;
            RP_TRY(known_list(f, &all, r->n + i, &part[i]));
            if (part[i].n != r->dims[0].n * (i == 4 ? 2 : 1) || r->dims[0].n > RP_WINDOW_DIMS)
                return rp_refine_fail(f->c, r->op, RP_FORMAT, "each dimension has a window");
        }
        w.n = r->dims[0].n;
        for (size_t i = 0; i < w.n; i++)
            w.dim[i] = (struct rp_window_dim){part[0].at[i],
                                              part[1].at[i],
                                              part[4].at[2 * i],
                                              part[4].at[2 * i + 1],
                                              part[2].at[i],
                                              part[3].at[i],
                                              false};
        r->code = RP_OP_REDUCE_WINDOW;
        r->set[r->nset++] = rp_attr_of_window(f->c->b.program, &w);
        return RP_OK;
    }
    if (target && rp_attr_is(target, "stablehlo.dynamic_top_k")) {
        struct rp_infer_dims k;

        RP_TRY(known_list(f, r, 1, &k));
        r->code = RP_OP_TOPK;
        r->set[r->nset++] = rp_attr_int(RP_ATTR_K, k.n ? k.at[0] : 0);
        r->set[r->nset++] = rp_attr_flag(RP_ATTR_LARGEST, true);
        r->n = 1;
        return RP_OK;
    }
    *done = target && rp_attr_is(target, "shape_assertion");
    if (*done)
        return check_assertion(f, r, value);
    *done = which != NULL;
    return *done ? refine_shaped_call(f, r, which, value) : RP_OK;
}

enum rp_code rp_refine_dynamic(struct rp_refine_frame *f, struct rp_refine_op *r,
                               struct rp_refined *value, bool *done)
{
    const struct rp_program *p = f->c->p;
    unsigned fixed = r->code == RP_OP_FOREIGN || r->code == RP_OP_DYNAMIC_RESHAPE
                         ? rp_refine_fixed(rp_program_text(p, p->foreign.at[r->op]))
                         : RP_OP_FOREIGN;
    struct rp_infer_dims dims;

    *done = false;
    if (r->code == RP_OP_CUSTOM_CALL)
        return refine_custom(f, r, value, done);
    if (r->code == RP_OP_BROADCAST && r->n == 1 && !r->known[0].at) {
        *done = true;
        rp_refine_dims(p, p->shape.at[r->op], &dims);
        return refine_broadcast(f, r, &dims, value);
    }
    r->code = fixed == RP_OP_FOREIGN ? r->code : fixed;
    *done = fixed == RP_OP_BROADCAST || fixed == RP_OP_IOTA || fixed == RP_OP_RESHAPE;
    if (*done)
        return refine_given(f, r, value);
    if (fixed == RP_OP_PAD)
        return set_triples(f, r, 2, RP_ATTR_PADDING);
    if (fixed == RP_OP_GATHER) {
        struct rp_infer_dims sizes;

        RP_TRY(known_list(f, r, 2, &sizes));
        r->set[r->nset++] = rp_attr_ints(f->c->b.program, RP_ATTR_SLICE_SIZES, sizes.at, sizes.n);
        r->n = 2;
        return RP_OK;
    }
    if (fixed == RP_OP_SLICE)
        return refine_slice(f, r, value, done);
    if (fixed == RP_OP_CONVOLUTION)
        RP_TRY(set_convolution(f, r));
    if (r->code == RP_OP_CONVOLUTION)
        set_kernel_size(f, r);
    return RP_OK;
}
