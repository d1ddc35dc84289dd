/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fusion belongs to the lines of its contents, by the number of instructions of each. JAX names
 * derivatives "transpose(jvp(f))", which are the backward pass.
 */
#include "explain/top/lines_xla.h"

#include "base/decides.h"
#include "explain/xla_programs.h"
#include "facts/xla_names.h"
#include "program/opcodes.h"

#include <string.h>

#define MOST_LINES 64
RP_LIMIT(MOST_LINES, "lines", "a fusion of more lines is given to the first of them");

struct taking {
    struct rp_lines_xla *x;
    const struct rp_program *p;
    struct rp_err *err;
    uint32_t first; /* first of the shares of this call */
};

static enum rp_code add_line(struct taking *t, uint32_t op)
{
    struct rp_torch_trace *log = t->x->log;
    struct rp_source_line at;
    uint32_t place;

    if (!rp_op_source(t->p, op, &at) || !*at.file)
        return RP_OK;
    RP_TRY(rp_torch_place(log, (struct rp_snip){at.file, strlen(at.file)}, at.line,
                          (struct rp_snip){at.function, strlen(at.function)}, &place, t->err));
    for (size_t i = t->first; i < log->shares.n; i++)
        if (log->shares.at[i].place == place) {
            log->shares.at[i].nodes++;
            return RP_OK;
        }
    if (log->shares.n - t->first >= MOST_LINES)
        return RP_OK;
    return rp_vec_push(&log->shares, ((struct rp_torch_share){place, 1}), t->err);
}

static enum rp_code add_name(struct taking *t, const char *module, uint32_t name, uint32_t call)
{
    uint32_t known;

    return rp_map_intern(&t->x->call_of, rp_xla_name_hash(module, rp_program_text(t->p, name)),
                         call, &known, t->err);
}

static enum rp_code add_instruction(struct taking *t, const char *module, uint32_t op)
{
    struct rp_torch_trace *log = t->x->log;
    const struct rp_op_meta *meta = &t->p->metas.at[t->p->meta.at[op]];
    struct rp_torch_call call = {.first = (uint32_t)log->shares.n};
    uint32_t id = (uint32_t)log->calls.n;

    t->first = call.first;

    /* Add the lines of what is fused in an instruction, or else its own. */
    struct rp_ids called = rp_op_called(t->p, op);
    for (uint32_t i = 0; t->p->code.at[op] == RP_OP_FUSION && i < called.n; i++) {
        const struct rp_computation *c = &t->p->computations.at[called.at[i]];

        for (uint32_t k = c->first; k < c->first + c->n; k++)
            if (t->p->code.at[k] != RP_OP_PARAMETER && t->p->code.at[k] != RP_OP_CONSTANT)
                RP_TRY(add_line(t, k));
    }
    if (t->x->log->shares.n == t->first)
        RP_TRY(add_line(t, op));

    call.n = (uint32_t)log->shares.n - t->first;
    RP_TRY(rp_vec_push(&log->calls, call, t->err));
    RP_TRY(rp_vec_push(&t->x->backward,
                       strstr(rp_program_text(t->p, meta->op_name), "transpose(jvp") != NULL,
                       t->err));
    RP_TRY(add_name(t, module, t->p->op_name.at[op], id));
    return meta->deduplicated_name ? add_name(t, module, meta->deduplicated_name, id) : RP_OK;
}

static uint64_t text_hash(const char *text)
{
    return rp_hash_bytes(text, strlen(text));
}

static enum rp_code take_program(void *user, const char *module, const struct rp_program *p,
                                 struct rp_err *err)
{
    struct rp_lines_xla *x = user;
    struct taking t = {.x = x, .p = p, .err = err};
    struct rp_torch_compile compile = {.id = rp_arena_text(&x->log->arena, module)};
    struct rp_torch_graph graph = {.compile = (uint32_t)x->log->compiles.n,
                                   .direction = RP_TORCH_IS_UNKNOWN};
    uint32_t known;

    RP_TRY(rp_map_intern(&x->graph_of, text_hash(module), (uint32_t)x->log->graphs.n, &known, err));
    if (known != x->log->graphs.n)
        return RP_OK;
    RP_TRY(rp_vec_push(&x->log->compiles, compile, err));
    RP_TRY(rp_vec_push(&x->log->graphs, graph, err));
    for (uint32_t op = 0; op < p->nops; op++)
        if (!p->computations.at[p->computation.at[op]].fused)
            RP_TRY(add_instruction(&t, module, op));
    return rp_arena_check(&x->log->arena, "reading lines of programs", err);
}

enum rp_code rp_lines_xla_init(struct rp_lines_xla *x, const struct rp_loaded *loaded,
                               const char *dumps, struct rp_torch_trace *log, struct rp_err *err)
{
    struct rp_loaded other = *loaded;
    struct rp_dataset *dataset = NULL;

    *x = (struct rp_lines_xla){.log = log};
    RP_TRY(rp_arg_key_init(&x->hlo_op, loaded->trace, "hlo_op", err));
    RP_TRY(rp_arg_key_init(&x->hlo_module, loaded->trace, "hlo_module", err));
    if (x->hlo_module.key == RP_NONE)
        return RP_OK;
    RP_TRY(rp_xla_each_program(loaded, take_program, x, err));
    if (!dumps)
        return RP_OK;
    RP_TRY(rp_open(loaded->dataset->ctx, &dumps, 1, NULL, &dataset, err));
    other.dataset = dataset;
    other.format = NULL; /* the profile was read */
    enum rp_code code = rp_xla_each_program(&other, take_program, x, err);
    rp_dataset_free(dataset);
    return code;
}

void rp_lines_xla_release(struct rp_lines_xla *x)
{
    rp_map_release(&x->call_of);
    rp_map_release(&x->graph_of);
    rp_vec_release(&x->backward);
    rp_arg_key_release(&x->hlo_op);
    rp_arg_key_release(&x->hlo_module);
}

/* Finds a call by the instruction, or in a command buffer by the name of the kernel. */
struct rp_compiled_span rp_lines_xla_of(const struct rp_lines_xla *x, const struct rp_trace *trace,
                                        rp_event e)
{
    struct rp_compiled_span out = {RP_NONE, RP_NONE, false};
    rp_str module;
    uint32_t call;

    if (!rp_arg_key_text(&x->hlo_module, e, &module) || !module)
        return out;
    const char *name = rp_trace_str(trace, module);
    out.in_graph = true;
    out.graph = rp_map_get(&x->graph_of, text_hash(name));
    if (out.graph == RP_MAP_NONE) {
        out.graph = RP_NONE;
        return out;
    }
    call =
        rp_map_get(&x->call_of,
                   rp_xla_name_hash(name, rp_trace_str(trace, rp_xla_instruction(&x->hlo_op, e))));
    if (call == RP_MAP_NONE)
        call =
            rp_map_get(&x->call_of, rp_xla_name_hash(name, rp_trace_str(trace, trace->ev.name[e])));
    out.call = call == RP_MAP_NONE ? RP_NONE : call;
    return out;
}
