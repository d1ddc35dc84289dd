/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the chains of one rank. Items of a stream are visited in the order of time; those of one
 * call of an operator form a link. A link continues a chain if it follows directly on the stream,
 * in the same step and phase, and works on as many elements (or, after a reduction, on a part that
 * divides them). Anything else ends it, such as a matrix product or a copy to the host.
 *
 * The time of a chain as one kernel follows from its longest operator and the bytes that remain,
 * because between two operators a result need not be written and read.
 */
#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/strtab.h"
#include "explain/fusions/fusions.h"
#include "explain/top/spans.h"
#include "facts/torch_names.h"
#include "facts/work/ancestors.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LINKS 4096
RP_LIMIT(MOST_LINKS, "links of a chain", "what follows is another chain");
#define MOST_GROUPS 65536
RP_LIMIT(MOST_GROUPS, "different chains", "a note says that there are more");

const char *const rp_fusion_kind_names[RP_FUSION_KINDS] = {[RP_FUSION_CHAIN] = "chain",
                                                           [RP_FUSION_OPTIMIZER] = "optimizer",
                                                           [RP_FUSION_COMPILED] = "compiled"};

struct link {
    rp_event op;   /* the call of the operator; RP_NONE: not known */
    rp_str name;   /* name of the operator, else of the kernel */
    rp_str dims;   /* 0: not known */
    uint32_t item; /* its first */
    uint32_t step, nitems;
    uint8_t category, phase;
    bool compiled;
    int64_t ns;
    double elements, bytes, out; /* out: bytes of the result */
};

/* The place that most chains of a group come from, found by a majority vote. */
struct place {
    rp_str line, module; /* 0: not known */
    int64_t votes;
};

#define MOST_NAMES 12
RP_LIMIT(MOST_NAMES, "operators of an optimizer", "the first ones name it");

/* updating: everything that an optimizer launches. */
struct updating {
    int64_t ns, kernels, steps;
    uint32_t step;    /* 1 + the last one */
    bool adam, fused; /* adam: it divides by a root; fused: one kernel does it already */
    uint32_t item;    /* its first */
    size_t nnames;
    rp_str names[MOST_NAMES];
};

struct chaining {
    const struct rp_trace *t;
    const struct rp_work *w;
    const struct rp_attribution *places;
    const struct rp_category_table *categories;
    struct rp_arena *arena;
    struct rp_fusions_part *out;
    struct rp_arg_key dims, types;
    struct rp_map known;        /* from operator and kernel to category */
    struct rp_map groups;       /* key -> fusion */
    RP_VEC(struct link) chain;  /* that is being made */
    RP_VEC(uint32_t) of_stream; /* items ordered by stream, then time */
    RP_VEC(struct place) votes; /* by group */
    RP_VEC(char) text;
    struct updating optimizer;
};

/* ------------------------------------------------------------------ links */

static enum rp_code category_of(struct chaining *c, rp_str op, rp_str kernel, uint8_t *out,
                                struct rp_err *err)
{
    uint64_t key = (uint64_t)op << 32 | kernel;
    uint32_t found = rp_map_get(&c->known, key);

    if (found == RP_MAP_NONE) {
        found = rp_category_of(c->categories, op ? rp_trace_str(c->t, op) : NULL,
                               rp_trace_str(c->t, kernel));
        RP_TRY(rp_map_put(&c->known, key, found, err));
    }
    *out = (uint8_t)found;
    return RP_OK;
}

/* A fill writes known values, and does not begin anything that could be joined with what it
   follows. */
static bool is_fill(const char *op)
{
    return rp_torch_means(op, RP_TORCH_FILLS);
}

/* The operator that describes an item, because its inputs were recorded. */
static rp_event described_op(const struct chaining *c, rp_event op)
{
    int left = 8;
    rp_event e = op;
    rp_str dims;

    for (; e != RP_NONE && left > 0; e = c->t->ev.parent[e], left--)
        if (c->t->ev.kind[e] == RP_KIND_CPU_OP && rp_arg_key_text(&c->dims, e, &dims) && dims)
            return e;
    return op;
}

static void size_link(const struct chaining *c, struct link *l)
{
    rp_str types = 0;
    const char *name = rp_trace_str(c->t, l->name);
    bool shrinks =
        l->category == RP_CATEGORY_REDUCTION && !rp_torch_means(name, RP_TORCH_KEEPS_SIZE);

    if (l->op == RP_NONE || !rp_arg_key_text(&c->dims, l->op, &l->dims) || !l->dims) {
        l->dims = 0;
        return;
    }
    if (!rp_arg_key_text(&c->types, l->op, &types))
        types = 0;
    struct rp_fusion_tensors t = rp_fusion_tensors_read(rp_trace_str(c->t, l->dims),
                                                        types ? rp_trace_str(c->t, types) : NULL);
    l->elements = t.elements;
    if (rp_torch_means(name, RP_TORCH_COPIES)) { /* here the first input is the result */
        l->out = t.first;
        l->bytes = t.bytes;
    } else {
        l->out = shrinks ? 0 : t.elements * t.width;
        l->bytes = t.bytes + l->out;
    }
}

static bool can_fuse(const struct chaining *c, const struct link *l, const struct rp_work_item *x)
{
    if (x->cls != RP_WORK_COMPUTE || c->t->ev.kind[x->event] != RP_KIND_KERNEL ||
        is_fill(rp_trace_str(c->t, l->name)))
        return false;
    return l->category == RP_CATEGORY_ELEMENTWISE || l->category == RP_CATEGORY_REDUCTION ||
           l->category == RP_CATEGORY_NORMALIZATION || l->category == RP_CATEGORY_COPY ||
           (l->category == RP_CATEGORY_OPTIMIZER && l->phase == RP_PHASE_OPTIMIZER);
}

static enum rp_code link_of(struct chaining *c, uint32_t item, struct link *l, bool *fusable,
                            struct rp_err *err)
{
    const struct rp_work_item *x = &c->w->items.at[item];
    const struct rp_work_owner *owner = &c->places->owners.at[item];
    rp_str kernel = c->t->ev.name[x->event];
    rp_str op = owner->op != RP_NONE ? c->t->ev.name[owner->op] : 0;

    *l = (struct link){.op = described_op(c, owner->op),
                       .name = op ? op : kernel,
                       .item = item,
                       .nitems = 1,
                       .phase = owner->phase,
                       .compiled = rp_torch_means(rp_trace_str(c->t, kernel), RP_TORCH_GENERATED),
                       .ns = rp_ns_between(x->begin_ns, x->end_ns)};
    RP_TRY(category_of(c, op, kernel, &l->category, err));

    int64_t ns = x->launch != RP_NONE ? c->t->ev.ts_ns[x->launch] : x->begin_ns;
    size_t i;
    RP_LOWER_BOUND(i, c->t->nsteps, c->t->steps[i].begin_ns <= ns);
    l->step = (uint32_t)i;
    *fusable = can_fuse(c, l, x);
    if (*fusable)
        size_link(c, l);
    return RP_OK;
}

/* Whether a link continues the chain so far. */
static bool continues(const struct chaining *c, const struct link *l)
{
    const struct link *first = c->chain.at;
    bool reduced = false;

    if (!first || !c->chain.n || c->chain.n >= MOST_LINKS || l->step != first->step ||
        l->phase != first->phase)
        return false;
    if (first->elements <= 1 || l->elements <= 0) /* work on one number does not matter */
        return false;
    for (size_t i = 0; i < c->chain.n; i++)
        reduced |= c->chain.at[i].category == RP_CATEGORY_REDUCTION ||
                   c->chain.at[i].category == RP_CATEGORY_NORMALIZATION;
    return l->elements == first->elements ||
           (reduced && l->elements > 1 && l->elements < first->elements &&
            first->elements / l->elements == (double)(int64_t)(first->elements / l->elements));
}

/* ------------------------------------------------------------------ groups */

static enum rp_code put_text(struct chaining *c, const char *text, size_t len, struct rp_err *err)
{
    RP_TRY(rp_vec_reserve(&c->text, c->text.n + len + 1, err));
    memcpy(c->text.at + c->text.n, text, len);
    c->text.n += len;
    c->text.at[c->text.n] = 0;
    return RP_OK;
}

#define MOST_TEXT 200
RP_LIMIT(MOST_TEXT, "bytes of the operators of a chain", "'…' stands for the others");

/* "mul ×2, add, native_layer_norm" */
static enum rp_code list_ops(struct chaining *c, struct rp_err *err)
{
    size_t i, n;
    char times[24];

    c->text.n = 0;
    for (i = 0; i < c->chain.n; i += n) {
        const char *name = rp_torch_op(rp_trace_str(c->t, c->chain.at[i].name));

        for (n = 1; i + n < c->chain.n && c->chain.at[i + n].name == c->chain.at[i].name;)
            n++;
        if (c->text.n > MOST_TEXT)
            return put_text(c, ", …", strlen(", …"), err);
        if (i)
            RP_TRY(put_text(c, ", ", 2, err));
        RP_TRY(put_text(c, name, strlen(name), err));
        snprintf(times, sizeof times, " ×%zu", n);
        if (n > 1)
            RP_TRY(put_text(c, times, strlen(times), err));
    }
    return RP_OK;
}

/* The first input with as many elements as the largest one, "[16, 256, 512]". */
static const char *largest_shape(struct chaining *c, const char *dims, double elements)
{
    const char *p, *begin = NULL;

    for (p = dims; *p; p++) {
        if (*p == '[')
            begin = p;
        if (*p == ']' && begin) {
            /* Write "[16, 256]", however it was written. */
            size_t len = (size_t)(p - begin + 1);
            char *out = RP_ARENA_NEW(c->arena, char, 2 * len + 1);
            size_t i, n = 0;

            for (i = 0; out && i < len; i++) {
                if (!isspace((unsigned char)begin[i]))
                    out[n++] = begin[i];
                if (begin[i] == ',')
                    out[n++] = ' ';
            }
            const char *shape = out ? out : "";

            if (rp_fusion_tensors_read(shape, NULL).elements == elements)
                return shape;
            begin = NULL;
        }
    }
    return NULL;
}

/* Whether this is a frame of the user's own code. */
static bool is_own_frame(const struct rp_trace *t, rp_event e)
{
    const char *name = rp_trace_str(t, t->ev.name[e]);

    return t->ev.kind[e] == RP_KIND_PYTHON && strchr(name, '(') &&
           !rp_torch_means(name, RP_TORCH_LIBRARY | RP_TORCH_MODULE);
}

static rp_event own_frame(const struct rp_trace *t, rp_event e)
{
    RP_FOR_ANCESTORS (t, e)
        if (is_own_frame(t, e))
            return e;
    return RP_NONE;
}

/* Where the first link was launched; in the backward pass, where its forward operator was. */
static struct place find_place(const struct chaining *c, uint32_t item)
{
    const struct rp_work_owner *owner = &c->places->owners.at[item];
    const struct rp_work_item *x = &c->w->items.at[item];
    rp_event line = own_frame(c->t, rp_work_described_by(c->w, x)), module = owner->module, e;

    if (line == RP_NONE && owner->forward != RP_NONE)
        line = own_frame(c->t, owner->forward);
    for (e = owner->forward; module == RP_NONE && e != RP_NONE; e = c->t->ev.parent[e])
        if (rp_event_is_module(c->t, e))
            module = e;
    return (struct place){.line = line == RP_NONE ? 0 : c->t->ev.name[line],
                          .module = module == RP_NONE ? 0 : c->t->ev.name[module],
                          .votes = 1};
}

static uint64_t chain_key(const struct chaining *c)
{
    uint64_t key = rp_hash_u64(RP_FUSION_KINDS);

    for (size_t i = 0; i < c->chain.n; i++) {
        const char *name = rp_trace_str(c->t, c->chain.at[i].name);

        key = rp_hash_join(key, rp_hash_bytes(name, strlen(name)));
        key = rp_hash_join(key, (uint64_t)c->chain.at[i].elements);
    }
    return rp_hash_join(key, c->chain.at[0].phase);
}

/* ------------------------------------------------------------------ what a chain would take */

static int64_t fused_chain_ns(const struct chaining *c, int64_t sum)
{
    double bytes = 0, best = 0;
    int64_t longest = 0, fused;

    for (size_t i = 0; i < c->chain.n; i++) {
        const struct link *l = &c->chain.at[i];

        bytes += l->bytes - (i + 1 < c->chain.n ? 2 * l->out : 0);
        longest = l->ns > longest ? l->ns : longest;
        if (l->ns > 0 && l->bytes / (double)l->ns > best)
            best = l->bytes / (double)l->ns;
    }
    fused = rp_fused_ns(longest, bytes, best);
    return fused < sum ? fused : sum;
}

/* Inductor has fused its own kernels as far as it could; two stages of a reduction, or independent
   kernels, are left. */
static bool is_compiled(const struct chaining *c)
{
    for (size_t i = 0; i < c->chain.n; i++)
        if (!c->chain.at[i].compiled)
            return false;
    return true;
}

static enum rp_code end_chain(struct chaining *c, struct rp_err *err)
{
    int64_t sum = 0, kernels = 0;
    uint32_t at;

    if (c->chain.n < 2 || is_compiled(c)) {
        c->chain.n = 0;
        return RP_OK;
    }
    uint64_t key = chain_key(c);
    RP_TRY(rp_map_intern(&c->groups, key, (uint32_t)c->out->fusions.n, &at, err));
    if (at == c->out->fusions.n && at < MOST_GROUPS) {
        struct rp_fusion fresh = {.kind = RP_FUSION_CHAIN, .key = key};

        RP_TRY(rp_vec_push(&c->out->fusions, fresh, err));
        RP_TRY(rp_vec_push(&c->votes, (struct place){0}, err));

        struct rp_fusion *f = &c->out->fusions.at[at];
        const struct link *first = &c->chain.at[0];
        RP_TRY(list_ops(c, err));
        f->ops = rp_arena_copy(c->arena, c->text.at, c->text.n);
        f->phase = first->phase;
        f->elements = first->elements;
        f->sized = true;
        if (first->dims)
            f->shape = largest_shape(c, rp_trace_str(c->t, first->dims), first->elements);
        RP_TRY(rp_arena_check(c->arena, "looking for fusions", err));
    }
    if (at >= c->out->fusions.n) {
        c->out->cut = true;
        c->chain.n = 0;
        return RP_OK;
    }
    for (size_t i = 0; i < c->chain.n; i++) {
        rp_ns_add(&sum, c->chain.at[i].ns);
        kernels += c->chain.at[i].nitems;
    }
    struct rp_fusion *f = &c->out->fusions.at[at];
    f->count++;
    f->kernels = kernels;
    rp_ns_add(&f->device_ns, sum);
    rp_ns_add(&f->fused_ns, fused_chain_ns(c, sum));

    uint32_t group = at;
    struct place here = find_place(c, c->chain.at[0].item), *most = &c->votes.at[group];
    if (most->votes == 0)
        *most = here;
    else
        most->votes += most->line == here.line ? 1 : -1;
    c->chain.n = 0;
    return RP_OK;
}

/* ------------------------------------------------------------------ the optimizer */

/* Adam updates two moments: 7 passes over memory instead of 18 to 24, as in 'fused-optimizer';
   other optimizers need 5 instead of 8. */
#define ADAM_TRAFFIC  (7.0 / 20.0)
#define OTHER_TRAFFIC (5.0 / 8.0)

static void update(struct chaining *c, const struct link *l)
{
    struct updating *u = &c->optimizer;
    const char *name = rp_trace_str(c->t, l->name);
    size_t i;

    if (!u->kernels)
        u->item = l->item;
    u->kernels++;
    rp_ns_add(&u->ns, l->ns);
    u->steps += u->step != l->step + 1;
    u->step = l->step + 1;
    u->adam |= rp_torch_means(name, RP_TORCH_ADAM);
    u->fused |= rp_torch_means(name, RP_TORCH_FUSED);
    for (i = 0; i < u->nnames && u->names[i] != l->name;)
        i++;
    if (i == u->nnames && i < MOST_NAMES)
        u->names[u->nnames++] = l->name;
}

/* An update becomes one row, because chains of parameters of the same size follow each other. */
static enum rp_code end_update(struct chaining *c, struct rp_err *err)
{
    const struct updating *u = &c->optimizer;
    struct rp_fusion f = {.kind = RP_FUSION_OPTIMIZER,
                          .phase = RP_PHASE_OPTIMIZER,
                          .key = rp_hash_u64(RP_FUSION_OPTIMIZER),
                          .count = u->steps,
                          .kernels = u->kernels,
                          .device_ns = u->ns};

    if (u->kernels <= u->steps || u->fused)
        return RP_OK;
    f.fused_ns = (int64_t)((double)u->ns * (u->adam ? ADAM_TRAFFIC : OTHER_TRAFFIC));
    c->text.n = 0;
    for (size_t i = 0; i < u->nnames; i++) {
        const char *name = rp_torch_op(rp_trace_str(c->t, u->names[i]));

        if (i)
            RP_TRY(put_text(c, ", ", 2, err));
        RP_TRY(put_text(c, name, strlen(name), err));
    }
    f.ops = rp_arena_copy(c->arena, c->text.at, c->text.n);
    RP_TRY(rp_vec_push(&c->out->fusions, f, err));
    return rp_vec_push(&c->votes, find_place(c, u->item), err);
}

/* ------------------------------------------------------------------ all chains */

static int by_stream_and_time(const void *pa, const void *pb, void *user)
{
    const struct rp_work_item *items = user;
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

    if (items[a].stream != items[b].stream)
        return items[a].stream < items[b].stream ? -1 : 1;
    return a < b ? -1 : a > b;
}

static enum rp_code add_item(struct chaining *c, uint32_t item, struct rp_err *err)
{
    struct link l, *last;
    bool fusable;

    RP_TRY(link_of(c, item, &l, &fusable, err));
    if (l.compiled)
        rp_ns_add(&c->out->generated_ns, l.ns);
    rp_ns_add(&c->out->whole_ns, l.ns);
    c->out->with_shapes |= l.dims != 0;
    if (!fusable)
        return end_chain(c, err);
    if (l.phase == RP_PHASE_OPTIMIZER) {
        update(c, &l);
        return end_chain(c, err);
    }
    last = c->chain.n ? &c->chain.at[c->chain.n - 1] : NULL;
    if (last && l.op != RP_NONE && last->op == l.op) { /* another kernel of the same call */
        rp_ns_add(&last->ns, l.ns);
        last->nitems++;
        return RP_OK;
    }
    if (!continues(c, &l))
        RP_TRY(end_chain(c, err));
    return rp_vec_push(&c->chain, l, err);
}

static enum rp_code walk_streams(struct chaining *c, struct rp_err *err)
{
    const struct rp_work *w = c->w;

    for (uint32_t i = 0; i < w->items.n; i++)
        RP_TRY(rp_vec_push(&c->of_stream, i, err));
    if (w->items.n)
        qsort_r(c->of_stream.at, w->items.n, sizeof *c->of_stream.at, by_stream_and_time,
                w->items.at);
    for (uint32_t i = 0; i < w->items.n; i++) {
        if (i &&
            w->items.at[c->of_stream.at[i]].stream != w->items.at[c->of_stream.at[i - 1]].stream)
            RP_TRY(end_chain(c, err));
        RP_TRY(add_item(c, c->of_stream.at[i], err));
    }
    RP_TRY(end_chain(c, err));
    return end_update(c, err);
}

static enum rp_code find_chains(struct chaining *c, struct rp_err *err)
{
    RP_TRY(rp_arg_key_init_dims(&c->dims, c->t, err));
    RP_TRY(rp_arg_key_init(&c->types, c->t, "Input type", err));
    RP_TRY(walk_streams(c, err));

    /* Set the places of the groups; those of modules without the number. */
    size_t i, numbers;
    int64_t number;
    for (i = 0; i < c->votes.n; i++) {
        const struct place *p = &c->votes.at[i];
        struct rp_fusion *f = &c->out->fusions.at[i];

        if (p->line)
            f->line = rp_arena_text(c->arena, rp_trace_str(c->t, p->line));
        if (p->module) {
            const char *name = rp_torch_module(rp_trace_str(c->t, p->module));
            char *rolled = rp_arena_copy(c->arena, name, strlen(name));

            if (rolled)
                rolled[rp_name_without_numbers(name, strlen(name), rolled, &number, &numbers)] = 0;
            f->module = rolled;
        }
    }

    return rp_arena_check(c->arena, "looking for fusions", err);
}

enum rp_code rp_fusions_find(const struct rp_trace *trace, const struct rp_scope *scope,
                             const struct rp_category_table *categories, struct rp_arena *arena,
                             struct rp_fusions_part *out, struct rp_err *err)
{
    struct rp_attribution places = {0};
    struct rp_work work;
    struct chaining c = {.t = trace,
                         .w = &work,
                         .places = &places,
                         .categories = categories,
                         .arena = arena,
                         .out = out};
    enum rp_code code = rp_work_init(&work, trace, scope, err);

    out->steps = scope->limited;
    for (uint32_t i = 0; i < trace->nsteps && !scope->limited; i++)
        out->steps += rp_scope_has(scope, trace->steps[i].begin_ns);
    if (code == RP_OK)
        code = rp_attribution_init(&places, &work, err);
    if (code == RP_OK)
        code = find_chains(&c, err);
    out->with_stack = places.coverage.python_ns > 0;
    rp_map_release(&c.known);
    rp_map_release(&c.groups);
    rp_arg_key_release(&c.dims);
    rp_arg_key_release(&c.types);
    rp_vec_release(&c.chain);
    rp_vec_release(&c.of_stream);
    rp_vec_release(&c.votes);
    rp_vec_release(&c.text);
    rp_attribution_release(&places);
    rp_work_release(&work);
    return code;
}
