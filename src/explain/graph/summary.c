/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what a program consists of. Only instructions that are written in the file count, not a
 * tuple element that is written as '%x#0'.
 */
#include "base/decides.h"
#include "base/text.h"
#include "explain/graph/graph.h"
#include "program/opcodes.h"

#include "base/order.h"

#include <stdlib.h>
#include <string.h>

#define LINES 10
RP_LIMIT(LINES, "source lines", "those with most operations");

static int64_t to_integer(double value)
{
    return value >= (double)INT64_MAX ? INT64_MAX : (int64_t)value;
}

RP_ORDER(by_count, struct rp_graph_opcode, RP_DOWN(count), strcmp(a->name, b->name))

/* Counts opcodes; foreign ones are counted by their strings, after the known ones. */
static enum rp_code count_opcodes(const struct rp_program *p, struct rp_arena *arena,
                                  struct rp_graph_answer *out, struct rp_err *err)
{
    size_t nstrings = p->strings.n, n = 0;
    int64_t *known = RP_ARENA_NEW(arena, int64_t, RP_OP_COUNT + nstrings);

    RP_TRY(rp_err_need(known, err, "counting opcodes"));
    int64_t *foreign = known + RP_OP_COUNT;
    for (uint32_t op = 0; op < p->nops; op++) {
        if (p->flags.at[op] & RP_OPS_IMPLICIT)
            continue;
        out->instructions++;
        if (p->code.at[op] == RP_OP_FOREIGN)
            n += foreign[p->foreign.at[op]]++ == 0;
        else
            n += known[p->code.at[op]]++ == 0;
    }
    out->opcodes = RP_ARENA_NEW(arena, struct rp_graph_opcode, n + 1);
    RP_TRY(rp_err_need(out->opcodes, err, "counting opcodes"));
    for (size_t i = 0; i < RP_OP_FOREIGN; i++)
        if (known[i])
            out->opcodes[out->nopcodes++] = (struct rp_graph_opcode){rp_op_info[i].name, known[i]};
    for (uint32_t i = 0; i < nstrings; i++)
        if (foreign[i]) {
            const char *name = rp_arena_text(arena, rp_program_text(p, i));

            out->opcodes[out->nopcodes++] = (struct rp_graph_opcode){name, foreign[i]};
        }
    qsort(out->opcodes, out->nopcodes, sizeof *out->opcodes, by_count);
    return RP_OK;
}

/* The quoted name in an attribute such as 's: "cluster_0"'; in the arena. */
static const char *quoted_part(const struct rp_attr *attr, struct rp_arena *arena)
{
    const char *open = memchr(attr->at, '"', attr->n), *close;

    if (!open)
        return rp_arena_copy(arena, attr->at, attr->n);
    close = memchr(open + 1, '"', (size_t)(attr->at + attr->n - open - 1));
    return rp_arena_copy(arena, open + 1, close ? (size_t)(close - open - 1) : 0);
}

static enum rp_code count_clusters(const struct rp_program *p, struct rp_arena *arena,
                                   struct rp_graph_answer *out, struct rp_err *err)
{
    uint32_t key = rp_strtab_find(&p->strings, "_XlaCluster", 11);
    size_t cap = 256;

    if (key == UINT32_MAX)
        return RP_OK;
    out->clusters = RP_ARENA_NEW(arena, struct rp_graph_opcode, cap);
    for (uint32_t op = 0; op < p->nops && out->clusters; op++) {
        const struct rp_attr *attr = rp_op_attr(p, op, key);
        const char *name = attr ? quoted_part(attr, arena) : NULL;
        size_t i = 0;

        if (!attr)
            continue;
        RP_TRY(rp_err_need(name, err, "counting clusters"));
        while (i < out->nclusters && strcmp(out->clusters[i].name, name) != 0)
            i++;
        if (i == cap)
            continue; /* only the first are listed */
        out->clusters[i].name = name;
        out->clusters[i].count++;
        out->nclusters += i == out->nclusters;
    }
    return rp_err_need(out->clusters, err, "counting clusters");
}

/* ---- lines of the user's program ---- */

struct line {
    struct rp_source_line at;
    int64_t instructions;
    double flops;
};

RP_ORDER(by_place, struct line, strcmp(a->at.file, b->at.file), RP_UP(at.line))

RP_ORDER(by_flops, struct line, RP_DOWN(flops), RP_DOWN(instructions), by_place(a, b))

/* Work is counted at the instructions that do it, not at calls. */
static size_t collect_lines(const struct rp_program *p, const struct rp_costs *costs,
                            struct line *lines)
{
    size_t n = 0;

    for (uint32_t op = 0; op < p->nops; op++) {
        enum rp_flop_rule rule = (enum rp_flop_rule)rp_op_info[p->code.at[op]].flops;
        bool calls = rule == RP_FLOPS_CALL || rule == RP_FLOPS_LOOP || rule == RP_FLOPS_BRANCH;

        if (rp_op_source(p, op, &lines[n].at)) {
            lines[n].instructions = 1;
            lines[n++].flops = calls ? 0 : costs->op[op].flops;
        }
    }
    return n;
}

static size_t merge_lines(struct line *lines, size_t n)
{
    size_t kept = 0;

    qsort(lines, n, sizeof *lines, by_place);
    for (size_t i = 0; i < n; i++) {
        if (kept && by_place(&lines[kept - 1], &lines[i]) == 0) {
            lines[kept - 1].instructions += lines[i].instructions;
            lines[kept - 1].flops += lines[i].flops;
        } else {
            lines[kept++] = lines[i];
        }
    }
    qsort(lines, kept, sizeof *lines, by_flops);
    return kept;
}

static enum rp_code list_lines(const struct rp_program *p, const struct rp_costs *costs,
                               struct rp_arena *arena, struct rp_graph_answer *out,
                               struct rp_err *err)
{
    struct line *lines = RP_ARENA_NEW(arena, struct line, (size_t)p->nops + 1);

    out->lines = RP_ARENA_NEW(arena, struct rp_graph_line, LINES);
    RP_TRY(rp_err_need(lines && out->lines, err, "listing source lines"));
    size_t n = merge_lines(lines, collect_lines(p, costs, lines));
    for (size_t i = 0; i < n && i < LINES; i++) {
        const struct rp_source_line *at = &lines[i].at;
        struct rp_graph_line *row = &out->lines[out->nlines++];

        row->place = rp_arena_textf(arena, "%s:%d%s%s", rp_text_file(at->file), at->line,
                                    *at->function ? " in " : "", at->function);
        row->instructions = lines[i].instructions;
        row->flops = out->flops == RP_ABSENT_I64 ? out->flops : to_integer(lines[i].flops);
    }
    return RP_OK;
}

enum rp_code rp_graph_summarize(const struct rp_program *p, const char *format,
                                struct rp_arena *arena, struct rp_graph_answer *out,
                                struct rp_err *err)
{
    struct rp_hashes hashes;
    struct rp_costs costs;

    memset(out, 0, sizeof *out);
    RP_TRY(rp_program_hash(p, arena, &hashes, err));
    RP_TRY(rp_program_count(p, arena, &costs, err));
    out->format = rp_arena_text(arena, format);
    out->name = rp_arena_text(arena, rp_program_text(p, p->name));
    out->hash = rp_arena_textf(arena, "%016llx", (unsigned long long)hashes.program);

    /* Count only computations that the file writes: an abbreviated operation may imply one more. */
    int64_t count = 0;
    for (size_t i = 0; i < p->computations.n; i++) {
        const struct rp_computation *c = &p->computations.at[i];
        uint32_t op = c->first;

        while (op < c->first + c->n && p->flags.at[op] & RP_OPS_IMPLICIT)
            op++;
        count += !c->n || op < c->first + c->n || strcmp(p->language, "hlo") != 0;
    }
    out->computations = count;

    out->flops = to_integer(costs.program.flops);
    out->transcendentals = to_integer(costs.program.transcendentals);
    out->bytes = to_integer(costs.program.bytes);
    for (uint32_t op = 0; op < p->nops; op++) {
        if (p->code.at[op] == RP_OP_CONSTANT)
            out->constant_bytes += rp_shape_bytes(p, p->shape.at[op]);
        if (p->code.at[op] == RP_OP_PARAMETER && p->computation.at[op] == p->entry) {
            out->parameters++;
            out->parameter_bytes += rp_shape_bytes(p, p->shape.at[op]);
        }
    }
    bool trace = !strcmp(p->language, "execution-trace");
    if (trace || !strcmp(p->language, "fx")) {
        /* Nodes of execution traces have no parameters and constants; the work of these, and of
           graphs of torch.fx, is known only if the file has the shapes of their tensors. */
        if (trace)
            out->parameters = out->parameter_bytes = out->constant_bytes = RP_ABSENT_I64;
        if (!p->given.n)
            out->flops = out->transcendentals = out->bytes = RP_ABSENT_I64;
    }
    RP_TRY(count_opcodes(p, arena, out, err));
    RP_TRY(count_clusters(p, arena, out, err));
    RP_TRY(list_lines(p, &costs, arena, out, err));
    return rp_arena_check(arena, "describing a program", err);
}
