/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds up the calls of one trace. Rows by operator add up whole calls; rows by kernel, module,
 * annotation and phase add up items, for which the work of a call is divided by their time.
 */
#include "explain/roofline/roofline.h"

#include "base/hash.h"
#include "cost/models.h"
#include "facts/work/attribution.h"
#include "facts/xla_names.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static const char *const by_words[RP_ROOF_BYS] = {"shape",      "op",    "kernel",  "module",
                                                  "annotation", "phase", "category"};

enum rp_roof_by rp_roof_by_of(const char *word)
{
    int by;

    for (by = 0; by < RP_ROOF_BYS - 1 && strcmp(word, by_words[by]) != 0; by++)
        ;
    return (enum rp_roof_by)by;
}

struct roof_grouping {
    const struct rp_scope *scope;
    const struct rp_trace *t;
    const struct rp_work *work;
    const struct rp_roof_options *options;
    const struct rp_op_costs *costs;
    const struct rp_cost_calls *calls;
    const struct rp_attribution *owners; /* NULL: not needed */
    struct rp_arg_key hlo_op, hlo_module;
    bool many_modules; /* XLA has several modules, so instructions are named with theirs */
    struct rp_cost_peaks peaks;
    bool has_peaks;
    struct rp_arena *arena;
    struct rp_roof_part *out;
    struct rp_map groups; /* from the hash of a row's key to its group */
};

/* ------------------------------------------------------------------ peaks */

/* The name of the main device; NULL if it was not recorded. */
static const char *device_name(const struct rp_work *work, int64_t *memory_bytes)
{
    const struct rp_trace *t = work->trace;
    int64_t number = -1;
    uint32_t i, found = 0;

    if (!t->ndevices)
        return NULL;
    if (work->items.n)
        number = work->devices.at[rp_work_main_device(work)].number;
    for (i = 0; i < t->ndevices; i++)
        if (t->devices[i].id == number)
            found = i;
    *memory_bytes = t->devices[found].memory_bytes;
    return t->devices[found].name ? rp_trace_str(t, t->devices[found].name) : NULL;
}

static void set_peaks(struct roof_grouping *g)
{
    const struct rp_roof_options *o = g->options;
    int64_t memory_bytes = 0;
    const char *name = device_name(g->work, &memory_bytes);
    const struct rp_device_peaks *device =
        o->device ? o->device : rp_device_recognise(name, memory_bytes);

    g->out->device = name ? rp_arena_text(g->arena, name) : NULL;
    if (device) {
        rp_cost_peaks_of_device(&g->peaks, device);
        g->out->peaks = device->name;
    }
    for (int i = 0; i < RP_NUMBERS && o->flops_per_s > 0; i++)
        g->peaks.matrix[i] = g->peaks.vector[i] = o->flops_per_s;
    if (o->bytes_per_s > 0)
        g->peaks.memory = o->bytes_per_s;
    g->has_peaks = g->peaks.memory > 0;
    g->out->memory_bytes_per_s = g->peaks.memory;
    memcpy(g->out->matrix_flops_per_s, g->peaks.matrix, sizeof g->out->matrix_flops_per_s);
}

/* ------------------------------------------------------------------ sums */

/* Adds the work of a call, or of a part of it. Returns false if it has no share of a peak. */
static bool add_work(struct roof_grouping *g, struct rp_roof_sums *s,
                     const struct rp_cost_call *call, double part, int64_t dur, uint32_t kernels)
{
    const struct rp_op_cost *cost = &g->costs->costs.at[call->cost];
    double least = rp_cost_is_known(cost) ? rp_cost_least_s(call, cost, &g->peaks) : NAN;
    double latency = RP_ROOF_LATENCY_NS * 1e-9;

    s->kernels += kernels;
    s->device_ns = rp_ns_sum(s->device_ns, dur);
    if (!rp_cost_is_known(cost))
        return false;
    s->modelled_ns = rp_ns_sum(s->modelled_ns, dur);
    s->flops += part * cost->flops;
    s->bytes += part * cost->bytes;
    if (call->on_link || !g->has_peaks)
        return false;
    if (isnan(least))
        return false;
    enum rp_roof_bound bound =
        least < latency                                                           ? RP_BOUND_LATENCY
        : rp_cost_compute_s(cost, &g->peaks) >= rp_cost_memory_s(cost, &g->peaks) ? RP_BOUND_COMPUTE
                                                                                  : RP_BOUND_MEMORY;
    s->rated_ns = rp_ns_sum(s->rated_ns, dur);
    s->bound_ns[bound] = rp_ns_sum(s->bound_ns[bound], dur);
    s->least_s += part * least;
    least /= g->options->achievable;
    s->reached_s += part * (least > latency ? least : latency);
    return true;
}

static const char *plain(struct roof_grouping *g, rp_str s)
{
    return rp_arena_copy(g->arena, rp_trace_str(g->t, s), rp_trace_str_len(g->t, s));
}

/* Writes "[64,32] [32,16]", the tensors among the inputs; for a list of tensors the first one, and
   their number. */
static const char *shape_text(struct roof_grouping *g, rp_str dims)
{
    const char *at = rp_trace_str(g->t, dims);
    char *out = rp_arena_alloc(g->arena, rp_trace_str_len(g->t, dims) + 2, 1);
    enum {
        TENSOR = 2,
        IN_LIST = 3
    }; /* depth of their brackets, because inputs are a list themselves */
    size_t n = 0, begin = 0, tensors = 0;
    int depth = 0;
    bool copies = false; /* whether this is inside a tensor that is shown */

    if (!out)
        return NULL;
    for (; *at; at++) {
        if (*at == '[') {
            const char *next = at + 1 + strspn(at + 1, " \n\t\r");

            depth++;
            tensors += depth == IN_LIST;
            if (depth > IN_LIST || (depth == IN_LIST && tensors > 1) || depth < TENSOR ||
                *next == '[')
                continue;
            copies = true;
            begin = n;
            n += n > 0;
            out[n ? n - 1 : 0] = ' ';
        }
        if (copies && !isspace((unsigned char)*at))
            out[n++] = *at;
        if (*at == ']') {
            if (copies && n - begin <= strlen(" []") &&
                out[n - 2] == '[') /* "[]" is a number, or nothing */
                n = begin;
            copies = false;
            depth--;
        }
    }
    out[n] = '\0';
    if (tensors > 1)
        return rp_arena_textf(g->arena, "%s … %zu tensors", out, tensors);
    return n ? out : NULL;
}

/* ------------------------------------------------------------------ rows */

struct roof_key {
    uint64_t hash;
    rp_str name, dims; /* 0: none */
    rp_str module;     /* XLA's module in front of the name; 0: none */
    const char *text;  /* replaces the name; NULL: the name itself */
};

static rp_str owner_name(const struct roof_grouping *g, uint32_t item)
{
    const struct rp_work_owner *o = &g->owners->owners.at[item];
    rp_event e = g->options->by == RP_ROOF_MODULE ? o->module : o->annotation;

    if (e != RP_NONE)
        return g->t->ev.name[e];
    return g->options->by == RP_ROOF_MODULE ? o->hlo_module : 0;
}

/* The name of a call: its operator, else the instruction of XLA, else its kernel. */
static rp_str call_name(const struct roof_grouping *g, const struct rp_cost_call *call)
{
    rp_event kernel = g->work->items.at[call->item].event;

    if (call->op != RP_NONE)
        return g->t->ev.name[call->op];
    return rp_xla_instruction(&g->hlo_op, kernel);
}

static rp_str module_of(const struct roof_grouping *g, rp_event kernel)
{
    rp_str module;

    return rp_arg_key_text(&g->hlo_module, kernel, &module) ? module : 0;
}

static struct roof_key key_of(const struct roof_grouping *g, const struct rp_cost_call *call,
                              uint32_t item)
{
    const struct rp_op_cost *cost = &g->costs->costs.at[call->cost];
    struct roof_key k = {0};

    switch (g->options->by) {
    case RP_ROOF_SHAPE:
        k.name = call_name(g, call);
        if (call->op != RP_NONE && !rp_arg_key_text(&g->costs->dims, call->op, &k.dims))
            k.dims = 0;
        if (call->op == RP_NONE && g->many_modules)
            k.module = module_of(g, g->work->items.at[call->item].event);
        k.hash = rp_hash_join((uint64_t)k.name << 32 | k.dims,
                              (uint64_t)cost->type << 1 | rp_cost_is_known(cost));
        if (call->op == RP_NONE && cost->shape)
            k.hash = rp_hash_join(k.hash, rp_hash_bytes(cost->shape, strlen(cost->shape)));
        k.hash = rp_hash_join(k.hash, k.module);
        return k;
    case RP_ROOF_OP:
        k.name = call_name(g, call);
        break;
    case RP_ROOF_KERNEL:
        k.name = g->t->ev.name[g->work->items.at[item].event];
        break;
    case RP_ROOF_PHASE:
        k.text = rp_phase_names[g->owners->owners.at[item].phase];
        k.hash = g->owners->owners.at[item].phase;
        return k;
    case RP_ROOF_CATEGORY:
        k.text = rp_category_names[call->category];
        k.hash = call->category;
        return k;
    default:
        k.name = owner_name(g, item);
        k.text = k.name ? NULL : "none";
        break;
    }
    k.hash = k.name;
    return k;
}

static enum rp_code new_group(struct roof_grouping *g, const struct roof_key *k,
                              const struct rp_cost_call *call, struct rp_err *err)
{
    const struct rp_op_cost *cost = &g->costs->costs.at[call->cost];
    struct rp_roof_group fresh = {.name = k->text ? k->text : plain(g, k->name)};

    if (k->module)
        fresh.name = rp_arena_textf(g->arena, "%s/%s", rp_trace_str(g->t, k->module),
                                    rp_trace_str(g->t, k->name));

    fresh.category = rp_category_names[call->category];
    fresh.type = rp_cost_is_known(cost) && cost->type ? rp_number_names[cost->type] : NULL;
    fresh.shape = k->dims ? shape_text(g, k->dims) : NULL;
    if (g->options->by == RP_ROOF_SHAPE && call->op == RP_NONE && cost->shape)
        fresh.shape = rp_arena_text(g->arena, cost->shape);
    fresh.missing = cost->missing;
    if (g->options->by == RP_ROOF_MODULE || g->options->by == RP_ROOF_ANNOTATION ||
        g->options->by == RP_ROOF_PHASE) /* the work differs and has nothing in common */
        fresh.category = fresh.type = fresh.missing = NULL;
    return rp_vec_push(&g->out->groups, fresh, err);
}

static bool is_by_item(enum rp_roof_by by)
{
    return by == RP_ROOF_KERNEL || by == RP_ROOF_MODULE || by == RP_ROOF_ANNOTATION ||
           by == RP_ROOF_PHASE;
}

/* Whether work like this has models. For attention with a cache of keys, no recording has the
 * lengths. */
static bool has_models(const struct roof_grouping *g, const struct rp_cost_call *call)
{
    const char *missing = g->costs->costs.at[call->cost].missing;

    return call->category != RP_CATEGORY_OTHER && call->category != RP_CATEGORY_COMMUNICATION &&
           !call->on_link && !(missing && !strcmp(missing, RP_NO_LENGTHS));
}

static enum rp_code add_item(struct roof_grouping *g, uint32_t item, struct rp_err *err)
{
    const struct rp_cost_call *call = &g->calls->calls.at[g->calls->of_item.at[item]];
    const struct rp_work_item *x = &g->work->items.at[item];
    int64_t dur = rp_ns_between(x->begin_ns, x->end_ns);
    double part = call->device_ns > 0 ? (double)dur / (double)call->device_ns : 1.0 / call->nitems;
    bool counts = g->options->by == RP_ROOF_KERNEL || (call->item == item && !call->is_part);
    uint32_t at;
    bool rated;

    if (!is_by_item(
            g->options->by)) { /* a call is added as a whole, together with its longest item */
        if (call->item != item)
            return RP_OK;
        part = 1;
        dur = call->device_ns;
    }
    struct roof_key k = key_of(g, call, item);
    RP_TRY(rp_map_intern(&g->groups, k.hash, (uint32_t)g->out->groups.n, &at, err));
    if (at == g->out->groups.n)
        RP_TRY(new_group(g, &k, call, err));
    struct rp_roof_group *group = &g->out->groups.at[at];

    /* A row of several calls keeps what they have in common. */
    const struct rp_op_cost *cost = &g->costs->costs.at[call->cost];
    if (!cost->missing)
        group->missing = NULL;
    if (group->type && rp_cost_is_known(cost) && group->type != rp_number_names[cost->type])
        group->type = NULL;
    if (group->category && group->category != rp_category_names[call->category])
        group->category = NULL;

    group->sums.calls += counts;
    add_work(g, &group->sums, call, part, dur, is_by_item(g->options->by) ? 1 : call->nitems);
    g->out->all.calls += call->item == item && !call->is_part;
    if (g->costs->costs.at[call->cost].on_matrix)
        rp_ns_add(&g->out->product_ns[g->costs->costs.at[call->cost].type], dur);
    rated =
        add_work(g, &g->out->all, call, part, dur, is_by_item(g->options->by) ? 1 : call->nitems);
    if (rated || has_models(g, call))
        g->out->classes_ns = rp_ns_sum(g->out->classes_ns, dur);
    return RP_OK;
}

static bool has_many_modules(const struct roof_grouping *g)
{
    rp_str module, first = 0;

    for (size_t i = 0; i < g->work->items.n && g->hlo_module.key != RP_NONE; i++) {
        module = module_of(g, g->work->items.at[i].event);
        if (module && first && module != first)
            return true;
        first = module ? module : first;
    }
    return false;
}

static enum rp_code add_items(struct roof_grouping *g, struct rp_err *err)
{
    RP_TRY(rp_arg_key_init(&g->hlo_op, g->t, "hlo_op", err));
    RP_TRY(rp_arg_key_init(&g->hlo_module, g->t, "hlo_module", err));
    g->many_modules = has_many_modules(g);
    for (size_t i = 0; i < g->work->items.n; i++)
        if (rp_scope_judges(g->scope, g->work->items.at[i].begin_ns, g->work->items.at[i].end_ns))
            RP_TRY(add_item(g, (uint32_t)i, err));
    return rp_arena_check(g->arena, "adding up operators", err);
}

enum rp_code rp_roof_group_calls(const struct rp_trace *trace, const struct rp_scope *scope,
                                 const struct rp_category_table *categories,
                                 const struct rp_roof_options *options, rp_item_cost_fn *known,
                                 void *user, struct rp_arena *arena, struct rp_roof_part *out,
                                 struct rp_err *err)
{
    bool owned = is_by_item(options->by) && options->by != RP_ROOF_KERNEL;
    struct rp_scope all = *scope; /* the costs of some work follow from its order */
    struct rp_work work = {0};
    struct rp_trace_categories known_categories;
    struct rp_op_costs costs = {0};
    struct rp_cost_calls calls = {0};
    struct rp_attribution owners = {0};
    struct roof_grouping g = {.t = trace,
                              .scope = scope,
                              .work = &work,
                              .options = options,
                              .costs = &costs,
                              .calls = &calls,
                              .owners = &owners,
                              .arena = arena,
                              .out = out};

    all.njudged = 0;
    enum rp_code code = rp_work_init(&work, trace, &all, err);
    rp_trace_categories_init(&known_categories, trace, categories);
    if (code == RP_OK)
        code = rp_op_costs_init(&costs, &known_categories, err);
    if (code == RP_OK)
        code = rp_cost_calls_init(&calls, &costs, &work, known, user, err);
    if (code == RP_OK && owned)
        code = rp_attribution_init(&owners, &work, err);
    if (code == RP_OK) {
        set_peaks(&g);
        code = rp_cost_calls_limit(&calls, &costs, &g.peaks, err);
    }
    if (code == RP_OK)
        code = add_items(&g, err);
    rp_map_release(&g.groups);
    rp_arg_key_release(&g.hlo_op);
    rp_arg_key_release(&g.hlo_module);
    rp_attribution_release(&owners);
    rp_cost_calls_release(&calls);
    rp_op_costs_release(&costs);
    rp_trace_categories_release(&known_categories);
    rp_work_release(&work);
    return code;
}
