/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the measured time of every instruction: kernels of a trace say which instruction of which
 * module they ran (hlo_op, hlo_module), except for characters that kernels cannot have. Identical
 * instructions may share a kernel and get equal parts of its time. Times are means over the
 * executions of the module, whose number is how often most instructions of the entry ran.
 */
#include "explain/graph/graph.h"

#include "dataset/load.h"
#include "explain/xla_programs.h"
#include "facts/arg_keys.h"
#include "facts/times/intervals.h"
#include "facts/work/work.h"
#include "facts/xla_names.h"

#include <stdio.h>
#include <string.h>

struct timed { /* timed: a kernel name of the module */
    int64_t ns, count;
    uint32_t sharers; /* number of instructions that run it */
};

struct heating {
    const struct rp_program *p;
    const char *module;  /* name of the program */
    struct rp_map known; /* from rp_xla_name_hash to the index in timed */
    RP_VEC(struct timed) timed;
    int64_t items, others; /* kernels of instructions in this module, and in others */
    char other[120];       /* one of the others */
};

/* "jit_step" and "jit_step(7)" or "jit_step.7" are the same module. */
static bool is_module(const char *module, const char *name)
{
    size_t n = strlen(name);

    return strncmp(module, name, n) == 0 &&
           (!module[n] || module[n] == '(' ||
            (module[n] == '.' && strspn(module + n + 1, "0123456789") == strlen(module + n + 1)));
}

static enum rp_code note_item(struct heating *h, const struct rp_trace *t,
                              const struct rp_arg_key *hlo_op, const struct rp_arg_key *hlo_module,
                              const struct rp_work_item *item, struct rp_err *err)
{
    rp_str module;

    if (!rp_arg_key_text(hlo_module, item->event, &module) || !module)
        return RP_OK;
    if (*h->module && !is_module(rp_trace_str(t, module), h->module)) {
        h->others++;
        snprintf(h->other, sizeof h->other, "%s", rp_trace_str(t, module));
        return RP_OK;
    }

    const char *name = rp_trace_str(t, rp_xla_instruction(hlo_op, item->event));
    int64_t ns = rp_ns_between(item->begin_ns, item->end_ns);
    uint32_t fresh = (uint32_t)h->timed.n, at;
    RP_TRY(rp_map_intern(&h->known, rp_xla_name_hash("", name), fresh, &at, err));
    if (at == fresh)
        RP_TRY(rp_vec_push(&h->timed, (struct timed){0}, err));
    h->timed.at[at].count++;
    rp_ns_add(&h->timed.at[at].ns, ns);
    h->items++;
    return RP_OK;
}

static enum rp_code heat_trace(struct heating *h, const struct rp_trace *trace, struct rp_err *err)
{
    static const struct rp_scope all = {0};
    RP_SCOPED(rp_arg_key_release) struct rp_arg_key hlo_op = {0}, hlo_module = {0};
    RP_SCOPED(rp_work_release) struct rp_work w = {0};

    RP_TRY(rp_arg_key_init(&hlo_op, trace, "hlo_op", err));
    RP_TRY(rp_arg_key_init(&hlo_module, trace, "hlo_module", err));
    RP_TRY(rp_work_init(&w, trace, &all, err));
    for (size_t i = 0; i < w.items.n; i++)
        RP_TRY(note_item(h, trace, &hlo_op, &hlo_module, &w.items.at[i], err));
    return RP_OK;
}

/* Reads the traces one after the other: this runs in a job of the pool, which must not wait for
   other jobs. */
static enum rp_code heat_traces(struct heating *h, const struct rp_dataset *traces,
                                struct rp_err *err)
{
    enum rp_code code = RP_OK;

    for (size_t i = 0; code == RP_OK && i < rp_sources_count(traces->sources); i++) {
        struct rp_import import = RP_IMPORT_INIT;

        code = rp_load_trace(traces, i, &import, err);
        if (code == RP_OK && import.trace)
            code = heat_trace(h, import.trace, err);
        rp_import_release(&import);
    }
    return code;
}

/* The kernel of an instruction, or RP_MAP_NONE; parts of fusions have no kernel. */
static uint32_t kernel_of(const struct heating *h, uint32_t op)
{
    const struct rp_program *p = h->p;

    if (p->computations.at[p->computation.at[op]].fused)
        return RP_MAP_NONE;
    uint32_t found =
        rp_map_get(&h->known, rp_xla_name_hash("", rp_program_text(p, p->op_name.at[op])));
    if (found == RP_MAP_NONE && p->metas.at[p->meta.at[op]].deduplicated_name)
        found = rp_map_get(
            &h->known, rp_xla_name_hash(
                           "", rp_program_text(p, p->metas.at[p->meta.at[op]].deduplicated_name)));
    return found;
}

/* The executions of the module: the median count over the instructions of the entry. */
static int64_t count_runs(const struct heating *h, int64_t *counts)
{
    size_t n = 0;

    for (uint32_t op = 0; op < h->p->nops; op++) {
        uint32_t at = kernel_of(h, op);

        if (at != RP_MAP_NONE && h->p->computation.at[op] == h->p->entry &&
            h->timed.at[at].sharers == 1)
            counts[n++] = h->timed.at[at].count;
    }
    if (!n)
        return 1;
    rp_ns_sort(counts, n);
    return counts[n / 2] > 0 ? counts[n / 2] : 1;
}

static enum rp_code heat_fill(struct heating *h, const char *path, struct rp_arena *arena,
                              struct rp_graph_heat *out, struct rp_err *err)
{
    uint32_t nops = h->p->nops;
    int64_t *counts = RP_ARENA_NEW(arena, int64_t, (size_t)nops + 1), runs;
    const char *slash = strrchr(path, '/');

    out->time_ns = RP_ARENA_NEW(arena, int64_t, (size_t)nops + 1);
    RP_TRY(rp_err_need(counts && out->time_ns, err, "joining a trace"));
    if (!h->items && h->others)
        return rp_err_set(err, RP_USAGE,
                          "trace '%s' has no kernels of module '%s', but of '%s'; is it of "
                          "another program?",
                          path, h->module, h->other);
    if (!h->items)
        return rp_err_set(err, RP_USAGE,
                          "trace '%s' does not say which instructions its kernels ran (hlo_op); "
                          "record it with jax.profiler or the TensorFlow profiler",
                          path);
    for (uint32_t op = 0; op < nops; op++)
        if (kernel_of(h, op) != RP_MAP_NONE)
            h->timed.at[kernel_of(h, op)].sharers++;
    runs = count_runs(h, counts);
    for (uint32_t op = 0; op < nops; op++) {
        uint32_t at = kernel_of(h, op);

        out->time_ns[op] =
            at == RP_MAP_NONE ? -1 : h->timed.at[at].ns / runs / h->timed.at[at].sharers;
        out->matched += at != RP_MAP_NONE;
    }
    out->time_of = rp_arena_textf(arena, "%s, mean of %lld %s", slash ? slash + 1 : path,
                                  (long long)runs, runs == 1 ? "run" : "runs");
    return out->matched ? rp_arena_check(arena, "joining a trace", err)
                        : rp_err_set(err, RP_USAGE,
                                     "no kernel of trace '%s' has the name of an instruction of "
                                     "this program; use the program after optimisation",
                                     path);
}

enum rp_code rp_graph_heat_read(struct rp_ctx *ctx, const struct rp_program *p, const char *path,
                                struct rp_arena *arena, struct rp_graph_heat *out,
                                struct rp_err *err)
{
    struct heating h = {.p = p, .module = rp_program_text(p, p->name)};
    struct rp_dataset *traces = NULL;

    *out = (struct rp_graph_heat){0};
    enum rp_code code = rp_open(ctx, &path, 1, NULL, &traces, err);
    if (code == RP_OK)
        code = heat_traces(&h, traces, err);
    if (code == RP_OK)
        code = heat_fill(&h, path, arena, out, err);
    rp_dataset_free(traces);
    rp_map_release(&h.known);
    rp_vec_release(&h.timed);
    return code;
}
