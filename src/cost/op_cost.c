/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs by operator. A name is looked up in the table of models once; the same name with the same
 * inputs is computed once. Both are looked up by the ids of their texts, so that an event costs a
 * few lookups.
 */
#include "cost/op_cost.h"

#include "base/decides.h"
#include "base/each.h"
#include "base/order.h"
#include "cost/models.h"
#include "facts/torch_names.h"
#include "facts/work/attribution.h"

#include <stdlib.h>
#include <string.h>

#define MOST_NAME 256 /* the longest name of an operator that is looked up without its last '_' */

const char *rp_model_none(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    (void)in;
    (void)arg;
    (void)out;
    return RP_NO_MODEL;
}

static const struct rp_cost_model models[] = {
#define RP_MODEL(pattern, model, arg) {pattern, rp_model_##model, arg, false},
#define RP_WHOLE(pattern, model, arg) {pattern, rp_model_##model, arg, true},
#include "cost/models.def"
};

/* The model of operators of category "elementwise" that have no row. */
static const struct rp_cost_model each_element = {"", rp_model_elementwise, 1, false};

const struct rp_cost_model *rp_cost_model_of(const char *name)
{
    size_t i, n = strlen(name);
    struct rp_name_pairs pairs;
    char plain[MOST_NAME];

    if (n > 1 && n < sizeof plain &&
        name[n - 1] == '_') { /* an operator in place is the same operator */
        memcpy(plain, name, n - 1);
        plain[n - 1] = '\0';
        name = plain;
    }
    rp_name_pairs_init(&pairs, name);
    for (i = 0; i < sizeof models / sizeof models[0]; i++)
        if (rp_name_pairs_may_fit(&pairs, models[i].pattern) &&
            rp_name_fits(models[i].pattern, name))
            return &models[i];
    if (rp_torch_op(name) != name && rp_category_of(NULL, name, NULL) == RP_CATEGORY_ELEMENTWISE)
        return &each_element;
    return NULL;
}

/* ------------------------------------------------------------------ one operator */

static struct rp_op_cost unknown_cost(const char *missing)
{
    return (struct rp_op_cost){.flops = NAN, .bytes = NAN, .missing = missing};
}

/* Takes formats that were not recorded, or not those of lists, from the kernel's name. */
static void apply_hint(struct rp_inputs *in, enum rp_number hint, float size)
{
    in->hint = (uint8_t)hint;
    in->hint_size = size;
    for (uint32_t i = 0; i < in->count && size > 0; i++)
        if (in->at[i].tensor.known && in->at[i].tensor.size <= 0) {
            in->at[i].tensor.type = (uint8_t)hint;
            in->at[i].tensor.size = size;
        }
}

#define MOST_WORK 1e30
RP_LIMIT(MOST_WORK, "FLOPs and bytes",
         "an operator with more has no model, because its shapes must be wrong");

static void run_model(const struct rp_cost_model *model, const struct rp_inputs *in,
                      struct rp_op_cost *out)
{
    struct rp_op_cost cost = {.claims = model->claims};

    cost.missing = model->fn(in, model->arg, &cost);
    /* an operator that does nothing, or more than is possible */
    if (!cost.missing &&
        !(cost.flops >= 0 && cost.bytes >= 0 && cost.flops < MOST_WORK && cost.bytes < MOST_WORK))
        cost.missing = RP_ODD_SHAPES;
    if (cost.missing) {
        struct rp_op_cost none = unknown_cost(cost.missing);

        none.claims = model->claims;
        cost = none;
    }
    cost.category = out->category;
    *out = cost;
}

enum rp_code rp_cost_of_texts(const char *name, const char *dims, const char *strides,
                              const char *types, const char *concrete, const char *kernel,
                              struct rp_op_cost *out, struct rp_err *err)
{
    const struct rp_cost_model *model = rp_cost_model_of(name);
    struct rp_inputs *in = calloc(1, sizeof *in);
    float size;

    RP_TRY(rp_err_need(in, err, "counting the work of operators"));
    *out = unknown_cost(RP_NO_MODEL);
    out->category = (uint8_t)rp_category_of(NULL, name, kernel);
    enum rp_code code = rp_inputs_parse(in, name, dims, strides, types, concrete, err);
    enum rp_number hint = rp_number_of_kernel(kernel, &size);
    apply_hint(in, hint, size);
    if (code == RP_OK && model)
        run_model(model, in, out);
    rp_inputs_release(in);
    free(in);
    return code;
}

/* ------------------------------------------------------------------ of a trace */

struct rp_batch_mark {
    int64_t begin_ns, end_ns;
    int64_t until_ns; /* the last end of this mark and those before it */
    struct rp_batch batch;
};

enum rp_code rp_op_costs_init(struct rp_op_costs *c, struct rp_trace_categories *categories,
                              struct rp_err *err)
{
    const struct rp_trace *trace = categories->trace;

    *c = (struct rp_op_costs){.trace = trace, .categories = categories};
    c->inputs = calloc(1, sizeof *c->inputs);
    RP_TRY(rp_err_need(c->inputs, err, "counting the work of operators"));
    RP_TRY(rp_arg_key_init_dims(&c->dims, trace, err));
    RP_TRY(rp_arg_key_init(&c->strides, trace, "Input Strides", err));
    RP_TRY(rp_arg_key_init(&c->types, trace, "Input type", err));
    return rp_arg_key_init(&c->concrete, trace, "Concrete Inputs", err);
}

void rp_op_costs_release(struct rp_op_costs *c)
{
    if (c->inputs)
        rp_inputs_release(c->inputs);
    free(c->inputs);
    c->inputs = NULL;
    rp_arg_key_release(&c->dims);
    rp_arg_key_release(&c->strides);
    rp_arg_key_release(&c->types);
    rp_arg_key_release(&c->concrete);
    RP_EACH(rp_map_release, &c->models, &c->hints, &c->known);
    RP_EACH(rp_vec_release, &c->found, &c->costs, &c->batches);
}

/* Finds the model of a name, or NULL. */
static enum rp_code find_model(struct rp_op_costs *c, rp_str name, const struct rp_cost_model **out,
                               struct rp_err *err)
{
    uint32_t at;

    RP_TRY(rp_map_intern(&c->models, name, (uint32_t)c->found.n, &at, err));
    if (at == c->found.n)
        RP_TRY(rp_vec_push(&c->found, rp_cost_model_of(rp_trace_str(c->trace, name)), err));
    *out = c->found.at[at];
    return RP_OK;
}

/* Finds the format that a kernel's name tells: number and size, packed. */
static enum rp_code find_hint(struct rp_op_costs *c, rp_str kernel, enum rp_number *hint,
                              float *size, struct rp_err *err)
{
    uint32_t packed = kernel ? rp_map_get(&c->hints, kernel) : 0;

    if (packed == RP_MAP_NONE) {
        *hint = rp_number_of_kernel(rp_trace_str(c->trace, kernel), size);
        packed = (uint32_t)*hint << 8 | (uint32_t)*size;
        RP_TRY(rp_map_put(&c->hints, kernel, packed, err));
    }
    *hint = (enum rp_number)(packed >> 8);
    *size = (float)(packed & 255);
    return RP_OK;
}

static rp_str text_of(const struct rp_arg_key *key, rp_event e)
{
    rp_str s;

    return rp_arg_key_text(key, e, &s) ? s : 0;
}

/* ------------------------------------------------------------------ batches of servers */

/* Marks with the lengths of sequences are often inside or around the marks of steps. */
static enum rp_code add_named_batches(struct rp_op_costs *c, struct rp_err *err)
{
    const struct rp_trace *t = c->trace;
    /* from name to the index + 1 in c->batches of the first; 0 if it has no
                               lengths */
    RP_SCOPED(rp_map_release) struct rp_map batch_of = {0};

    for (rp_event e = 0; e < t->ev.n; e++) {
        struct rp_batch_mark mark = {.begin_ns = t->ev.ts_ns[e], .end_ns = rp_event_end_ns(t, e)};

        if (t->ev.kind[e] != RP_KIND_ANNOTATION)
            continue;
        uint32_t known = rp_map_get(&batch_of, t->ev.name[e]);
        if (known == RP_MAP_NONE) {
            known = rp_batch_parse(rp_trace_str(t, t->ev.name[e]), &mark.batch)
                        ? (uint32_t)c->batches.n + 1
                        : 0;
            RP_TRY(rp_map_put(&batch_of, t->ev.name[e], known, err));
        } else if (known)
            mark.batch = c->batches.at[known - 1].batch;
        if (known)
            RP_TRY(rp_vec_push(&c->batches, mark, err));
    }
    return RP_OK;
}

RP_ORDER(by_begin, struct rp_batch_mark, RP_UP(begin_ns), RP_UP(end_ns))

/* Sorts them by their begins, so that those around a time are found without reading all. */
static enum rp_code read_batches(struct rp_op_costs *c, struct rp_err *err)
{
    const struct rp_trace *t = c->trace;
    int64_t until = INT64_MIN;

    c->has_batches = true;
    for (uint32_t i = 0; i < t->nsteps; i++) {
        const struct rp_step *s = &t->steps[i];
        struct rp_batch_mark mark = {.begin_ns = s->begin_ns, .end_ns = s->end_ns};

        if (rp_batch_parse(rp_trace_str(t, s->name), &mark.batch) || s->requests > 0) {
            mark.batch.requests = (double)s->requests;
            mark.batch.prefill = s->phase == RP_PHASE_PREFILL;
            RP_TRY(rp_vec_push(&c->batches, mark, err));
        }
    }
    RP_TRY(add_named_batches(c, err));
    if (c->batches.n)
        qsort(c->batches.at, c->batches.n, sizeof *c->batches.at, by_begin);
    for (uint32_t i = 0; i < c->batches.n; i++) {
        until = c->batches.at[i].end_ns > until ? c->batches.at[i].end_ns : until;
        c->batches.at[i].until_ns = until;
    }
    return RP_OK;
}

/* Lengths tell more than a number of requests, and a shorter mark more than one around it. */
static bool tells_more(const struct rp_batch_mark *a, const struct rp_batch_mark *b)
{
    if ((a->batch.tokens > 0) != (b->batch.tokens > 0))
        return a->batch.tokens > 0;
    return a->end_ns - a->begin_ns < b->end_ns - b->begin_ns;
}

/* Returns when an operator was called; for one that is known from the capture of a graph, when the
   graph was launched (trace/graft.h). */
static int64_t called_ns(const struct rp_trace *t, rp_event op)
{
    int left = RP_ANCESTORS_MAX;

    while (t->tracks[t->ev.track[op]].kind == RP_TRACK_ASYNC && t->ev.parent[op] != RP_NONE &&
           left-- > 0)
        op = t->ev.parent[op];
    return t->ev.ts_ns[op];
}

/* ------------------------------------------------------------------ each operator once */

static const char *text_or_null(const struct rp_trace *t, rp_str s)
{
    return s ? rp_trace_str(t, s) : NULL;
}

static enum rp_code compute(struct rp_op_costs *c, rp_event op, const rp_str texts[4],
                            const struct rp_cost_model *model, uint32_t batch, enum rp_number hint,
                            float size, struct rp_op_cost *cost, struct rp_err *err)
{
    const struct rp_trace *t = c->trace;
    const char *name = rp_trace_str(t, t->ev.name[op]);

    *cost = unknown_cost(model ? RP_NO_SHAPES : RP_NO_MODEL);
    RP_TRY(rp_trace_category_of(c->categories, t->ev.name[op], 0, &cost->category, err));
    cost->claims = model && model->claims;
    if (!model || !texts[0])
        return RP_OK;
    RP_TRY(rp_inputs_parse(c->inputs, name, text_or_null(t, texts[0]), text_or_null(t, texts[1]),
                           text_or_null(t, texts[2]), text_or_null(t, texts[3]), err));
    apply_hint(c->inputs, hint, size);
    c->inputs->batch = (struct rp_batch){0};
    if (batch != RP_NONE)
        c->inputs->batch = c->batches.at[batch].batch;
    run_model(model, c->inputs, cost);
    return RP_OK;
}

enum rp_code rp_op_cost_of(struct rp_op_costs *c, rp_event op, rp_str kernel, uint32_t *cost,
                           struct rp_err *err)
{
    const rp_str texts[4] = {text_of(&c->dims, op), text_of(&c->strides, op),
                             text_of(&c->types, op), text_of(&c->concrete, op)};
    const struct rp_cost_model *model;
    struct rp_op_cost fresh;
    uint32_t batch = RP_NONE;
    enum rp_number hint;
    float size;

    RP_TRY(find_model(c, c->trace->ev.name[op], &model, err));
    RP_TRY(find_hint(c, kernel, &hint, &size, err));
    uint64_t key = rp_hash_join((uint64_t)c->trace->ev.name[op] << 32 | texts[0],
                                (uint64_t)texts[1] << 32 | texts[2]);
    key = rp_hash_join(key, (uint64_t)texts[3] << 32 | (uint32_t)hint << 8 | (uint32_t)size);
    if (model && model->fn == rp_model_served_attention) {
        /* Find the index in c->batches of the batch for which an operator is computed; RP_NONE if
           not known. */
        uint32_t *out = &batch;
        int64_t at = called_ns(c->trace, op);
        uint32_t i;

        if (!c->has_batches)
            RP_TRY(read_batches(c, err));
        *out = RP_NONE;
        RP_LOWER_BOUND(i, (uint32_t)c->batches.n, c->batches.at[i].begin_ns <= at);
        for (; i > 0 && c->batches.at[i - 1].until_ns > at; i--)
            if (at < c->batches.at[i - 1].end_ns &&
                (*out == RP_NONE || tells_more(&c->batches.at[i - 1], &c->batches.at[*out])))
                *out = i - 1;

        key = rp_hash_join(key, batch);
    }
    RP_TRY(rp_map_intern(&c->known, key, (uint32_t)c->costs.n, cost, err));
    if (*cost < c->costs.n)
        return RP_OK;
    RP_TRY(compute(c, op, texts, model, batch, hint, size, &fresh, err));
    return rp_vec_push(&c->costs, fresh, err);
}

enum rp_code rp_op_cost_claims(struct rp_op_costs *c, rp_event op, bool *claims, struct rp_err *err)
{
    const struct rp_cost_model *model;

    RP_TRY(find_model(c, c->trace->ev.name[op], &model, err));
    *claims = model && model->claims;
    return RP_OK;
}

enum rp_code rp_op_cost_add(struct rp_op_costs *c, const struct rp_op_cost *cost, uint32_t *index,
                            struct rp_err *err)
{
    *index = (uint32_t)c->costs.n;
    return rp_vec_push(&c->costs, *cost, err);
}

/* ------------------------------------------------------------------ times */

void rp_cost_peaks_of_device(struct rp_cost_peaks *peaks, const struct rp_device_peaks *device)
{
    for (int i = 0; i < RP_NUMBERS; i++) {
        peaks->matrix[i] = rp_device_matrix_peak(device, (enum rp_number)i);
        peaks->vector[i] = rp_device_vector_peak(device, (enum rp_number)i);
    }
    peaks->memory = device->memory;
}

double rp_cost_compute_s(const struct rp_op_cost *cost, const struct rp_cost_peaks *peaks)
{
    double peak = cost->on_matrix ? peaks->matrix[cost->type] : peaks->vector[cost->type];

    if (cost->flops == 0)
        return 0;
    return peak > 0 ? cost->flops / peak : NAN;
}

double rp_cost_memory_s(const struct rp_op_cost *cost, const struct rp_cost_peaks *peaks)
{
    return peaks->memory > 0 ? cost->bytes / peaks->memory : NAN;
}
