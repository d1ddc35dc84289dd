/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a plan as an engine. A single partition runs in the caller's thread; several have a thread
 * each, and they meet in their collectives (mesh.h). Arguments that point into a file at an odd
 * address are copied so that kernels may read them as numbers, unless this is not needed, or they
 * are larger than a part of the memory.
 */
#include "exec/eval/engine.h"
#include "base/clock.h"
#include "program/opcodes.h"

#include "base/threads.h"
#include "exec/data/signature.h"
#include "exec/engine/timing.h"
#include "exec/eval/mesh.h"
#include "exec/eval/subnormals.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct executable {
    struct rp_executable base;
    const struct rp_kernel *kernels[RP_OP_COUNT];
    struct rp_plan *plan;
    struct rp_signature signature;
    struct rp_pool *pool;
    struct rp_tensors arguments; /* partitions * nparams values */
    struct rp_tensors results;   /* results of the last run, one for each partition */
    size_t nparams;
    int64_t *times;
    int64_t timeout_ns; /* of a run; 0: none */
    uint64_t vary;
    uint64_t *calls;
    struct rp_op_spans *spans; /* one for each partition while they are wanted, or NULL */
    RP_VEC(struct rp_op_time) rows;
};

void rp_eval_release(struct rp_executable *base)
{
    struct executable *x = (struct executable *)base;

    rp_tensors_release(&x->arguments);
    rp_tensors_release(&x->results);
    free(x->times);
    free(x->calls);
    rp_vec_release(&x->rows);
    rp_pool_free(x->pool);
    rp_plan_free(x->plan);
    free(x);
}

static enum rp_code executable_build(struct executable *x, const struct rp_engine_program *program,
                                     const struct rp_engine_options *options,
                                     rp_improve_fn *improve, bool threaded, struct rp_err *err)
{
    size_t nops = program->program->nops;

    RP_TRY(rp_plan_new(program->program, x->kernels, options, &x->plan, err));
    if (improve)
        RP_TRY(improve(x->plan, err));
    RP_TRY(rp_signature_find(program->program, &x->plan->arena, &x->signature, err));
    x->base.narguments = x->signature.nin;
    x->base.noutputs = x->signature.nout;
    x->base.partitions = options->partitions ? options->partitions : x->signature.partitions;
    x->nparams = x->plan->entry->nparams;
    x->timeout_ns = options->timeout_ns;
    x->vary = options->vary;
    RP_TRY(rp_tensors_new(x->base.partitions * x->nparams, &x->arguments, err));
    RP_TRY(rp_tensors_new(x->base.partitions, &x->results, err));
    if (options->profile) {
        x->times = calloc(nops, sizeof *x->times);
        x->calls = calloc(nops, sizeof *x->calls);
        RP_TRY(rp_err_need(x->times && x->calls, err, "compiling"));
    }
    if (threaded && x->base.partitions == 1) {
        uint64_t mode = rp_subnormals_flush(); /* threads inherit the mode from here */
        enum rp_code code = rp_pool_new(options->threads, &x->pool, err);

        rp_subnormals_restore(mode);
        return code;
    }
    return RP_OK;
}

enum rp_code rp_eval_compile(const struct rp_engine *engine,
                             const struct rp_engine_program *program,
                             const struct rp_engine_options *options,
                             void (*kernels)(const struct rp_kernel **), rp_improve_fn *improve,
                             bool threaded, struct rp_executable **out, struct rp_err *err)
{
    struct executable *x;

    *out = NULL;
    if (!program->program || (strcmp(program->program->language, "hlo") != 0 &&
                              strcmp(program->program->language, "stablehlo") != 0))
        return rp_err_set(err, RP_UNSUPPORTED, "'%s': engine '%s' runs HLO, not %s", program->name,
                          engine->name,
                          program->program ? program->program->language : program->format);
    x = calloc(1, sizeof *x);
    RP_TRY(rp_err_need(x, err, "compiling"));
    x->base.engine = engine;
    kernels(x->kernels);
    enum rp_code code = executable_build(x, program, options, improve, threaded, err);
    if (code != RP_OK) {
        rp_eval_release(&x->base);
        return code;
    }
    *out = &x->base;
    return RP_OK;
}

/* ---- arguments ---- */

/* Unaligned arrays are copied once, here, if they are a small part of the memory; the others are
   copied when an operation needs them, and dropped afterwards. */
static size_t align_budget(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    return pages > 0 && size > 0 ? (size_t)pages / 8 * (size_t)size : (size_t)1 << 30;
}

/* The first node of each parameter, and the nodes that a reader needs aligned. */
struct uploaded {
    uint32_t *node; /* by parameter, or RP_NONE */
    bool *aligned;  /* by node */
};

/* The arguments of a partition that no parameter has taken yet. */
struct leaves {
    struct rp_tensor *const *at, *const *end;
};

static enum rp_code assemble_value(const struct rp_value_shape *shape, struct leaves *leaves,
                                   size_t *budget, struct rp_tensor **out, struct rp_err *err)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    if (shape->elem == RP_ELEM_TOKEN)
        return rp_tensor_token(out, err);
    if (shape->elem != RP_ELEM_TUPLE) {
        /* the signature has no slot for types without values, or for values that are nested too
           deep */
        if (!rp_elem_bits(shape->elem) || leaves->at == leaves->end)
            return rp_err_set(err, RP_UNSUPPORTED, "no value can be given for type '%s'",
                              rp_elem_name(shape->elem));
        /* Puts the leaf where kernels can read it, as a new use. */
        struct rp_tensor *t = *leaves->at++;
        if (!rp_tensor_is_unaligned(t))
            return rp_tensor_align(t, out, err);
        if (rp_tensor_bytes(t) > *budget) {
            *out = rp_tensor_keep(t);
            return RP_OK;
        }
        *budget -= rp_tensor_bytes(t);
        return rp_tensor_align(t, out, err);
    }
    RP_TRY(rp_tensors_new(shape->nparts, &parts, err));
    for (uint32_t i = 0; i < shape->nparts; i++)
        RP_TRY(assemble_value(shape->parts[i], leaves, budget, &parts.at[i], err));
    parts.n = 0; /* the tuple takes them over */
    return rp_tensor_tuple(parts.at, shape->nparts, out, err);
}

static enum rp_code check_argument(const struct rp_slot *slot, const struct rp_tensor *t, size_t i,
                                   struct rp_err *err)
{
    char have[512];

    if (t->elem == slot->elem && rp_dims_same(t->dims, t->rank, slot->dims, slot->rank))
        return RP_OK;
    rp_tensor_shape_text(t, have, sizeof have);
    return rp_err_set(err, RP_FORMAT,
                      "input %zu is %s, which does not match the program's parameter", i, have);
}

static enum rp_code upload_arguments(struct executable *x, const struct uploaded *of,
                                     struct leaves leaves, struct rp_err *err)
{
    size_t budget = align_budget(), none = 0;

    for (size_t i = 0; i < x->arguments.n; i++) {
        uint32_t node = of->node[i % x->nparams];

        rp_tensor_drop(x->arguments.at[i]);
        x->arguments.at[i] = NULL;
        if (node != RP_NONE) {
            enum rp_code code =
                assemble_value(x->plan->entry->nodes[node].shape, &leaves,
                               of->aligned[node] ? &budget : &none, &x->arguments.at[i], err);

            if (code != RP_OK)
                return rp_err_prefix(err, code, "parameter %zu", i % x->nparams);
        }
    }
    return RP_OK;
}

enum rp_code rp_eval_upload(struct rp_executable *base, struct rp_tensor *const *arguments,
                            struct rp_err *err)
{
    struct executable *x = (struct executable *)base;
    struct leaves leaves = {arguments, arguments + base->partitions * base->narguments};
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    struct uploaded of;

    for (size_t p = 0; p < base->partitions; p++)
        for (size_t i = 0; i < base->narguments; i++)
            RP_TRY(
                check_argument(&x->signature.in[i], arguments[p * base->narguments + i], i, err));
    if (x->times) {
        memset(x->times, 0, x->plan->program->nops * sizeof *x->times);
        memset(x->calls, 0, x->plan->program->nops * sizeof *x->calls);
    }

    /* Finds the nodes of parameters, and the values that must be aligned. */
    const struct rp_graph *g = x->plan->entry;
    of.node = RP_ARENA_NEW(&scratch, uint32_t, x->nparams + 1);
    of.aligned = RP_ARENA_NEW(&scratch, bool, (size_t)g->n + 1);
    RP_TRY(rp_err_need(of.node && of.aligned, err, "uploading"));
    memset(of.node, 0xff, x->nparams * sizeof *of.node);
    for (uint32_t i = 0; i < g->n; i++) {
        const struct rp_node *node = &g->nodes[i];

        if (node->code == RP_OP_PARAMETER && (uint64_t)node->value < x->nparams &&
            of.node[node->value] == RP_NONE)
            of.node[node->value] = i;
        for (uint32_t k = 0; k < node->nin; k++)
            of.aligned[node->in[k]] |= !node->takes_unaligned || node->ncalled;
    }

    return upload_arguments(x, &of, leaves, err);
}

/* ---- running ---- */

struct partition_run {
    struct executable *x;
    struct rp_mesh *mesh;
};

static enum rp_code run_partition(void *user, unsigned p, struct rp_err *err)
{
    struct partition_run *run = user;
    struct executable *x = run->x;
    struct rp_eval e = {.plan = x->plan, .partition = p, .mesh = run->mesh, .pool = x->pool};
    uint64_t mode = rp_subnormals_flush();

    e.backward = x->vary & 1;
    e.vary = x->vary ? x->vary + ((uint64_t)p << 32) : 0;
    if (x->timeout_ns > 0) {
        e.timeout_ns = x->timeout_ns;
        e.deadline_ns = rp_clock_ns() + x->timeout_ns;
    }
    if (x->spans)
        e.spans = &x->spans[p];
    else if (p == 0) {
        e.times = x->times;
        e.calls = x->calls;
    }
    enum rp_code code =
        rp_eval_graph(&e, x->plan->entry, x->arguments.at + p * x->nparams, &x->results.at[p], err);
    rp_subnormals_restore(mode);
    return code;
}

enum rp_code rp_eval_run(struct rp_executable *base, struct rp_err *err)
{
    struct executable *x = (struct executable *)base;
    struct partition_run run = {.x = x};

    for (size_t p = 0; p < base->partitions; p++) {
        rp_tensor_drop(x->results.at[p]);
        x->results.at[p] = NULL;
    }
    if (base->partitions == 1)
        return run_partition(&run, 0, err);
    return rp_mesh_run((unsigned)base->partitions, run_partition, &run, &run.mesh, err);
}

/* Constants belong to the plan, but outputs outlive it, so these are copied. */
static enum rp_code fetch_array(struct rp_tensor *t, struct rp_tensor **out, struct rp_err *err)
{
    const struct rp_tensor *owner = t;

    while (owner->borrowed && owner->nparts == 1) /* a view */
        owner = owner->parts[0];
    if (!owner->borrowed)
        return rp_tensor_align(t, out, err);
    return rp_tensor_copy(t, out, err);
}

/* Fetches the arrays of a value, depth first. */
static enum rp_code fetch_leaves(struct rp_tensor *t, struct rp_tensor ***out, struct rp_err *err)
{
    if (t->elem != RP_ELEM_TUPLE)
        return t->elem == RP_ELEM_TOKEN ? RP_OK : fetch_array(t, (*out)++, err);
    for (size_t k = 0; k < t->nparts; k++)
        RP_TRY(fetch_leaves(t->parts[k], out, err));
    return RP_OK;
}

enum rp_code rp_eval_fetch(struct rp_executable *base, struct rp_tensor **outputs,
                           struct rp_err *err)
{
    struct executable *x = (struct executable *)base;

    for (size_t p = 0; p < base->partitions; p++) {
        if (!x->results.at[p] || rp_tensor_leaves(x->results.at[p]) != base->noutputs)
            return rp_err_set(
                err, RP_FORMAT,
                "the program returned a different number of results than it declares");
        RP_TRY(fetch_leaves(x->results.at[p], &outputs, err));
    }
    return RP_OK;
}

const struct rp_op_time *rp_eval_times(struct rp_executable *base, size_t *n)
{
    struct executable *x = (struct executable *)base;
    const struct rp_program *p = x->plan->program;

    x->rows.n = 0;
    for (uint32_t op = 0; x->times && op < p->nops; op++) {
        struct rp_op_time row = {rp_program_text(p, p->op_name.at[op]), rp_op_opcode_name(p, op),
                                 op, x->calls[op], x->times[op]};

        if ((x->calls[op] || x->times[op]) && rp_vec_push(&x->rows, row, NULL) != RP_OK)
            break;
    }
    *n = x->rows.n;
    return x->rows.at;
}

enum rp_code rp_eval_spans(struct rp_executable *base, unsigned runs, struct rp_op_spans *out,
                           struct rp_err *err)
{
    struct executable *x = (struct executable *)base;
    enum rp_code code = RP_OK;

    memset(out, 0, sizeof *out);
    x->spans = calloc(base->partitions, sizeof *x->spans);
    RP_TRY(rp_err_need(x->spans, err, "tracing"));
    for (unsigned i = 0; i < runs && code == RP_OK; i++) {
        struct rp_op_span whole = {.name = "run", .begin_ns = rp_clock_ns()};

        code = rp_eval_run(base, err);
        whole.end_ns = rp_clock_ns();
        if (code == RP_OK)
            code = rp_vec_push(&out->list, whole, err);
    }
    for (size_t p = 0; p < x->base.partitions; p++) {
        for (size_t i = 0; i < x->spans[p].list.n && code == RP_OK; i++)
            code = rp_vec_push(&out->list, x->spans[p].list.at[i], err);
        out->dropped += x->spans[p].dropped;
        rp_vec_release(&x->spans[p].list);
    }
    free(x->spans);
    x->spans = NULL;
    return code;
}
