/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the tree of one trace. Each span of the wanted kind is a node below that of the next such
 * span around it; spans of the same name with the same nodes above share a node. Device work
 * belongs to the node of the innermost span around its launch. Work of a backward pass is launched
 * by a thread of its own, with no module around it: it belongs to the node of the operator whose
 * gradient it computes. Work of XLA states where in the program it comes from.
 *
 * The place of a span in the tree is kept by event, so that every span is visited once.
 */
#include "explain/top/tree.h"

#include "base/decides.h"
#include "base/filled.h"
#include "base/hash.h"
#include "base/strtab.h"
#include "explain/xla_programs.h"
#include "facts/arg_keys.h"
#include "facts/work/attribution.h"
#include "facts/xla_names.h"
#include "result/part.h"

#include <string.h>

#define MOST_NODES (1u << 20)
RP_LIMIT(MOST_NODES, "nodes", "a note says that the tree was cut");
#define MOST_DEPTH 512
RP_LIMIT(MOST_DEPTH, "spans in spans", "a note says that the tree was cut");

static const struct rp_field node_fields[] = {RP_PART_PLAIN(struct rp_tree_node, parent),
                                              RP_PART_PLAIN(struct rp_tree_node, kind),
                                              RP_PART_PLAIN(struct rp_tree_node, total_ns),
                                              RP_PART_PLAIN(struct rp_tree_node, self_ns),
                                              RP_PART_PLAIN(struct rp_tree_node, backward_ns),
                                              RP_PART_PLAIN(struct rp_tree_node, calls),
                                              RP_PART_PLAIN(struct rp_tree_node, shapes),
                                              RP_PART_TEXT(struct rp_tree_node, name),
                                              RP_PART_END};
static const struct rp_type node_type = {"node", sizeof(struct rp_tree_node), node_fields, NULL};

static const struct rp_field tree_fields[] = {RP_PART_VEC(struct rp_tree_part, nodes, &node_type),
                                              RP_PART_TEXT(struct rp_tree_part, of),
                                              RP_PART_PLAIN(struct rp_tree_part, on_host),
                                              RP_PART_PLAIN(struct rp_tree_part, cut), RP_PART_END};
const struct rp_type rp_tree_part_type = {"tree_part", sizeof(struct rp_tree_part), tree_fields,
                                          NULL};

struct planting {
    const struct rp_trace *t;
    const struct rp_scope *scope;
    enum rp_tree_of of;
    bool modules; /* modules were recorded */
    const struct rp_xla_names *xla;
    struct rp_arena *arena;
    struct rp_tree_part *out;
    struct rp_strtab names;
    struct rp_map nodes;      /* from the hash of parent, kind and name to the node */
    struct rp_map shapes;     /* from the hash of node, operator and shape to whether it was seen */
    RP_VEC(uint32_t) place;   /* by event: its node; RP_NONE: not known yet */
    RP_VEC(uint16_t) depth;   /* by node */
    RP_VEC(uint32_t) name_of; /* the same: its name */
    RP_VEC(rp_event) waiting; /* events that were passed on the way outwards */
    struct rp_arg_key dims, scope_name, tf_op, hlo_op, hlo_module;
};

/* ------------------------------------------------------------------ nodes */

static enum rp_code node_below(struct planting *p, uint32_t parent, enum rp_span_kind kind,
                               const char *name, size_t len, uint32_t *node, struct rp_err *err)
{
    uint32_t id, fresh = (uint32_t)p->out->nodes.n;
    struct rp_tree_node made = {.parent = parent, .kind = (uint8_t)kind};

    RP_TRY(rp_strtab_intern(&p->names, name, len, &id, err));
    *node = parent;
    if (parent && p->out->nodes.at[parent].kind == kind && p->name_of.at[parent] == id)
        return RP_OK; /* a recursion is one node */
    if (fresh >= MOST_NODES || p->depth.at[parent] >= MOST_DEPTH) {
        p->out->cut = true;
        return RP_OK;
    }
    RP_TRY(rp_map_intern(&p->nodes, (uint64_t)parent << 40 ^ (uint64_t)id << 4 ^ (uint64_t)kind,
                         fresh, node, err));
    if (*node != fresh)
        return RP_OK;
    made.name = rp_arena_copy(p->arena, name, len);
    RP_TRY(rp_vec_push(&p->depth, (uint16_t)(p->depth.at[parent] + 1), err));
    RP_TRY(rp_vec_push(&p->name_of, id, err));
    RP_TRY(rp_vec_push(&p->out->nodes, made, err));
    return rp_arena_check(p->arena, "making a tree", err);
}

/* Whether a span is a separate node below the given one. */
static bool is_node(const struct planting *p, enum rp_span_kind kind, uint32_t parent)
{
    switch (p->of) {
    case RP_TREE_OP:
        return kind == RP_SPAN_OP;
    case RP_TREE_MODULE:
        return kind == RP_SPAN_MODULE;
    case RP_TREE_ANNOTATION:
        return kind == RP_SPAN_ANNOTATION;
    case RP_TREE_PYTHON:
        return kind == RP_SPAN_PYTHON || kind == RP_SPAN_MODULE;
    default: /* in a module, only the outermost operator */
        return kind == RP_SPAN_MODULE || kind == RP_SPAN_ANNOTATION ||
               (kind == RP_SPAN_OP && (!p->modules || p->out->nodes.at[parent].kind != RP_SPAN_OP));
    }
}

/* Two nodes with the same set of shapes do the same work. */
static enum rp_code note_shape(struct planting *p, rp_event op, uint32_t node, struct rp_err *err)
{
    rp_str dims;
    uint32_t seen;

    if (!rp_arg_key_text(&p->dims, op, &dims) || !dims)
        return RP_OK;
    uint64_t key = rp_hash_join(rp_hash_u64(p->t->ev.name[op]), dims);
    RP_TRY(rp_map_intern(&p->shapes, rp_hash_join(key, node), (uint32_t)p->shapes.n, &seen, err));
    if (seen == (uint32_t)p->shapes.n - 1)
        p->out->nodes.at[node].shapes += key;
    return RP_OK;
}

static enum rp_code place_span(struct planting *p, rp_event e, uint32_t parent, struct rp_err *err)
{
    enum rp_span_kind kind = rp_span_kind_of(p->t, e);
    uint32_t node = parent;

    if (kind != RP_SPAN_ALL && is_node(p, kind, parent)) {
        const char *name = rp_span_name(p->t, e);

        RP_TRY(node_below(p, parent, kind, name, strlen(name), &node, err));
        if (node != parent)
            p->out->nodes.at[node].calls++;
    }
    if (kind == RP_SPAN_OP)
        RP_TRY(note_shape(p, e, node, err));
    p->place.at[e] = node;
    return RP_OK;
}

/* Finds the node of the innermost span at or around an event. */
static enum rp_code place_of(struct planting *p, rp_event e, uint32_t *node, struct rp_err *err)
{
    p->waiting.n = 0;
    for (; e != RP_NONE && p->place.at[e] == RP_NONE; e = p->t->ev.parent[e])
        RP_TRY(rp_vec_push(&p->waiting, e, err));
    *node = e == RP_NONE ? 0 : p->place.at[e];
    while (p->waiting.n) {
        e = p->waiting.at[--p->waiting.n];
        RP_TRY(place_span(p, e, *node, err));
        *node = p->place.at[e];
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ device work */

static bool has_path(const struct planting *p, const struct rp_arg_key *key, rp_event e,
                     const char **path)
{
    rp_str text;

    if (!rp_arg_key_text(key, e, &text) || !text)
        return false;
    *path = rp_trace_str(p->t, text);
    return strchr(*path, '/') != NULL;
}

/* The framework's name of an instruction, as recorded with the work or from the program. */
static bool has_scope(const struct planting *p, rp_event e, rp_str module, rp_str op,
                      const char **path)
{
    if (has_path(p, &p->tf_op, e, path) || has_path(p, &p->scope_name, e, path))
        return true;
    *path =
        p->xla ? rp_xla_name_of(p->xla, rp_trace_str(p->t, module), rp_trace_str(p->t, op)) : NULL;
    return *path && strchr(*path, '/');
}

/* Finds where XLA's work comes from: the framework's name of its instruction, else module and
   instruction. A command buffer has one place for all its kernels, which have the instructions'
   names. */
static enum rp_code place_xla(struct planting *p, rp_event e, uint32_t *node, bool *backward,
                              struct rp_err *err)
{
    const char *path, *begin, *name;
    rp_str module, op = 0;
    size_t len;

    *node = 0;
    if (!rp_arg_key_text(&p->hlo_module, e, &module) || !module || p->of == RP_TREE_PYTHON ||
        p->of == RP_TREE_MODULE)
        return RP_OK;
    op = rp_xla_instruction(&p->hlo_op, e);
    if (p->of != RP_TREE_OP && has_scope(p, e, module, op, &path)) {
        while (rp_scope_next(&path, &begin, &len, backward))
            RP_TRY(node_below(p, *node, RP_SPAN_SCOPE, begin, len, node, err));
        return RP_OK;
    }
    name = rp_trace_str(p->t, module);
    RP_TRY(node_below(p, 0, RP_SPAN_SCOPE, name, strlen(name), node, err));
    name = rp_trace_str(p->t, op);
    return node_below(p, *node, RP_SPAN_OP, name, strlen(name), node, err);
}

/* Whether work of the backward pass has no place of its own. */
static bool follows_forward(const struct planting *p, uint32_t node)
{
    enum rp_span_kind wanted = p->of == RP_TREE_PYTHON ? RP_SPAN_PYTHON : RP_SPAN_MODULE;

    if (p->of == RP_TREE_OP || p->of == RP_TREE_ANNOTATION ||
        (p->of == RP_TREE_AUTO && !p->modules))
        return false;
    for (; node; node = p->out->nodes.at[node].parent)
        if (p->out->nodes.at[node].kind == wanted || p->out->nodes.at[node].kind == RP_SPAN_MODULE)
            return false;
    return true;
}

static enum rp_code place_item(struct planting *p, const struct rp_work *w, size_t i,
                               const struct rp_work_owner *owner, struct rp_err *err)
{
    const struct rp_work_item *x = &w->items.at[i];
    int64_t dur = rp_ns_between(x->begin_ns, x->end_ns);
    bool backward = owner->phase == RP_PHASE_BACKWARD;
    uint32_t node, own;

    RP_TRY(place_xla(p, x->event, &own, &backward, err));
    node = own;
    if (!node)
        RP_TRY(place_of(p, rp_work_described_by(w, x), &node, err));
    if (!own && backward && owner->forward != RP_NONE && follows_forward(p, node))
        RP_TRY(place_of(p, owner->forward, &node, err));
    rp_ns_add(&p->out->nodes.at[node].self_ns, dur);
    for (;; node = p->out->nodes.at[node].parent) {
        rp_ns_add(&p->out->nodes.at[node].total_ns, dur);
        rp_ns_add(&p->out->nodes.at[node].backward_ns, backward ? dur : 0);
        p->out->nodes.at[node].calls += own != 0;
        if (!node)
            return RP_OK;
    }
}

static enum rp_code place_items(struct planting *p, const struct rp_work *w, struct rp_err *err)
{
    RP_SCOPED(rp_attribution_release) struct rp_attribution a = {0};

    RP_TRY(rp_attribution_init(&a, w, err));
    for (size_t i = 0; i < w->items.n; i++)
        RP_TRY(place_item(p, w, i, &a.owners.at[i], err));
    return RP_OK;
}

/* ------------------------------------------------------------------ host time */

/* Without device work: uses the spans' own times. */
static enum rp_code place_spans(struct planting *p, struct rp_err *err)
{
    const struct rp_events *ev = &p->t->ev;
    uint32_t node, outer;

    p->out->on_host = true;
    for (rp_event e = 0; e < ev->n; e++) {
        if (ev->dur_ns[e] <= 0 || ev->ts_ns[e] == RP_NO_TS ||
            !rp_scope_has(p->scope, ev->ts_ns[e]) || rp_span_kind_of(p->t, e) == RP_SPAN_ALL)
            continue;
        RP_TRY(place_of(p, e, &node, err));
        outer = ev->parent[e] == RP_NONE ? 0 : p->place.at[ev->parent[e]];
        if (node == outer)
            continue;
        rp_ns_add(&p->out->nodes.at[node].total_ns, ev->dur_ns[e]);
        rp_ns_add(&p->out->nodes.at[node].self_ns, ev->dur_ns[e]);
        if (outer)
            rp_ns_add(&p->out->nodes.at[outer].self_ns, -ev->dur_ns[e]);
        else
            rp_ns_add(&p->out->nodes.at[0].total_ns, ev->dur_ns[e]);
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the tree */

static bool has_modules(const struct rp_trace *t)
{
    for (rp_event e = 0; e < t->ev.n; e++)
        if (rp_event_is_module(t, e))
            return true;
    return false;
}

static const char *tree_of_what(const struct planting *p)
{
    bool scopes = false;

    for (size_t i = 0; i < p->out->nodes.n && !scopes; i++)
        scopes = p->out->nodes.at[i].kind == RP_SPAN_SCOPE;
    if (scopes)
        return p->of == RP_TREE_OP ? "instructions" : "scopes";
    switch (p->of) {
    case RP_TREE_OP:
        return "operators";
    case RP_TREE_PYTHON:
        return "Python frames";
    case RP_TREE_ANNOTATION:
        return "annotations";
    default:
        return p->modules || p->of == RP_TREE_MODULE ? "modules" : "annotations and operators";
    }
}

static enum rp_code tree_fill(struct planting *p, struct rp_err *err)
{
    struct rp_tree_node all = {.kind = RP_SPAN_ALL, .name = "all"};
    struct rp_work w;

    RP_TRY(rp_strtab_init(&p->names, err));
    RP_TRY(rp_arg_key_init_dims(&p->dims, p->t, err));
    RP_TRY(rp_arg_key_init(&p->scope_name, p->t, "name", err));
    RP_TRY(rp_arg_key_init(&p->tf_op, p->t, "tf_op", err));
    RP_TRY(rp_arg_key_init(&p->hlo_op, p->t, "hlo_op", err));
    RP_TRY(rp_arg_key_init(&p->hlo_module, p->t, "hlo_module", err));
    RP_TRY(rp_vec_nones(&p->place, p->t->ev.n, err));
    RP_TRY(rp_vec_push(&p->out->nodes, all, err));
    RP_TRY(rp_vec_push(&p->depth, 0, err));
    RP_TRY(rp_vec_push(&p->name_of, 0, err));
    p->modules = has_modules(p->t);
    enum rp_code code = rp_work_init(&w, p->t, p->scope, err);
    if (code == RP_OK)
        code = w.items.n ? place_items(p, &w, err) : place_spans(p, err);
    rp_work_release(&w);
    p->out->of = tree_of_what(p);
    return code;
}

enum rp_code rp_tree_make(const struct rp_trace *trace, const struct rp_scope *scope,
                          enum rp_tree_of of, const struct rp_xla_names *names,
                          struct rp_arena *arena, struct rp_tree_part *out, struct rp_err *err)
{
    struct planting p = {
        .t = trace, .scope = scope, .of = of, .xla = names, .arena = arena, .out = out};
    enum rp_code code = tree_fill(&p, err);
    rp_strtab_release(&p.names);
    rp_map_release(&p.nodes);
    rp_map_release(&p.shapes);
    rp_vec_release(&p.place);
    rp_vec_release(&p.depth);
    rp_vec_release(&p.name_of);
    rp_vec_release(&p.waiting);
    rp_arg_key_release(&p.dims);
    rp_arg_key_release(&p.scope_name);
    rp_arg_key_release(&p.tf_op);
    rp_arg_key_release(&p.hlo_op);
    rp_arg_key_release(&p.hlo_module);
    return code;
}
