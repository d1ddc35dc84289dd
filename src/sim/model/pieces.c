/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/model/pieces.h"

#include "base/filled.h"
#include "base/hash.h"
#include "base/order.h"
#include "facts/host/signs.h"
#include "facts/times/step_times.h"
#include "facts/torch_names.h"
#include "facts/work/ancestors.h"
#include "facts/work/tokens.h"
#include "facts/work/turns.h"
#include "sim/engine/task_graph.h"
#include "sim/model/steps.h"

#include <string.h>

struct launched {
    int64_t ns; /* the call */
    uint64_t token;
    rp_event call;
    uint32_t item;
    uint16_t step;
    bool computes;
};

struct pieces_ctx {
    struct rp_sim_part *part;
    const struct rp_trace *t;
    struct rp_work_tokens tokens;
    struct rp_map kinds;   /* from the token of a piece to its kind */
    RP_VEC(uint32_t) uses; /* by kind */
    RP_VEC(struct launched) list;
    RP_VEC(int64_t) waits;
    RP_VEC(uint32_t) node_of;  /* by event: its first node, or RP_NONE */
    RP_VEC(uint8_t) launches;  /* by track: compute */
    RP_VEC(uint8_t) judged;    /* by step */
    RP_VEC(uint32_t) waits_in; /* by name of a frame */
};

RP_ORDER(by_call, struct launched, RP_UP(ns), RP_UP(item))
RP_ORDER(by_time, int64_t, RP_COMPARE(*a, *b))

/* ------------------------------------------------------------------ launches */

static enum rp_code list_launches(struct pieces_ctx *c, const struct rp_work *work,
                                  const struct rp_attribution *places, struct rp_err *err)
{
    RP_TRY(rp_vec_reserve(&c->list, work->items.n + 1, err));
    for (uint32_t i = 0; i < work->items.n; i++) {
        const struct rp_work_item *x = &work->items.at[i];
        int64_t ns = x->launch == RP_NONE ? 0 : c->t->ev.ts_ns[x->launch];
        int64_t at_ns = c->part->marks_on_device ? x->begin_ns : ns;
        uint16_t step = x->launch == RP_NONE ? RP_NO_STEP : rp_sim_step_at(c->part, at_ns);

        if (step == RP_NO_STEP || !c->judged.at[step] || c->node_of.at[x->launch] == RP_NONE)
            continue;
        c->list.at[c->list.n++] =
            (struct launched){ns,        rp_work_token(&c->tokens, x, places->owners.at[i].op),
                              x->launch, i,
                              step,      x->cls == RP_WORK_COMPUTE};
        c->launches.at[c->t->ev.track[x->launch]] |= x->cls == RP_WORK_COMPUTE;
    }
    rp_sort(c->list.at, c->list.n, sizeof *c->list.at, by_call);
    return RP_OK;
}

/* Counts a wait for the innermost frame of the program's own code. */
static void count_line(struct pieces_ctx *c, rp_event e)
{
    const struct rp_trace *t = c->t;

    RP_FOR_ANCESTORS (t, e) {
        const char *name = rp_trace_str(t, t->ev.name[e]);

        if (t->ev.kind[e] == RP_KIND_PYTHON && strchr(name, '(') &&
            !rp_torch_means(name, RP_TORCH_LIBRARY)) {
            c->waits_in.at[t->ev.name[e]]++;
            return;
        }
    }
}

/* Lists waits of threads that launch, because a thread that only loads input may wait for its
   copies. */
static enum rp_code list_waits(struct pieces_ctx *c, struct rp_err *err)
{
    const struct rp_trace *t = c->t;
    RP_VEC(uint8_t) known = {0};
    enum rp_code code = rp_vec_zeros(&known, t->str.n, err);
    if (code == RP_OK)
        code = rp_vec_zeros(&c->waits_in, t->str.n, err);
    for (rp_event e = 0; code == RP_OK && e < t->ev.n; e++) {
        uint8_t *k = &known.at[t->ev.name[e]];

        if (t->ev.kind[e] != RP_KIND_RUNTIME || !c->launches.at[t->ev.track[e]])
            continue;
        if (!*k)
            *k = rp_host_signs(rp_trace_str(t, t->ev.name[e])) & RP_SIGN_BLOCKS ? 2 : 1;
        if (*k == 2) {
            code = rp_vec_push(&c->waits, t->ev.ts_ns[e], err);
            count_line(c, e);
        }
    }

    /* The line that waits most often. */
    rp_str most = 0;
    for (rp_str i = 0; i < c->waits_in.n; i++)
        if (c->waits_in.at[i] > c->waits_in.at[most])
            most = i;
    if (c->waits_in.n && c->waits_in.at[most])
        c->part->wait_line = rp_arena_strdup(&c->part->graph.arena, rp_trace_str(c->t, most));

    rp_sort(c->waits.at, c->waits.n, sizeof *c->waits.at, by_time);
    rp_vec_release(&known);
    return code;
}

/* ------------------------------------------------------------------ pieces */

/* The number of waits before a moment. */
static size_t waits_before(const struct pieces_ctx *c, int64_t ns)
{
    size_t i;

    RP_LOWER_BOUND(i, c->waits.n, c->waits.at[i] < ns);
    return i;
}

/* Makes a piece of launches [first, end), unless they only copy. */
static enum rp_code add_piece(struct pieces_ctx *c, size_t first, size_t end, struct rp_err *err)
{
    const struct launched *at = c->list.at;
    struct rp_sim_piece p = {.first = c->node_of.at[at[first].call],
                             .last = c->node_of.at[at[end - 1].call],
                             .step = at[first].step};
    uint64_t token = 0;

    for (size_t i = first; i < end; i++) {
        token = rp_hash_join(token, at[i].token);
        p.launches += at[i].computes;
    }
    p.open = end < c->list.n && waits_before(c, at[end - 1].ns) == waits_before(c, at[end].ns);
    if (!p.launches)
        return RP_OK;
    RP_TRY(rp_map_intern(&c->kinds, token, (uint32_t)c->uses.n, &p.kind, err));
    if (p.kind == c->uses.n)
        RP_TRY(rp_vec_push(&c->uses, 0, err));
    c->uses.at[p.kind]++;
    return rp_vec_push(&c->part->pieces, p, err);
}

static enum rp_code cut_pieces(struct pieces_ctx *c, struct rp_err *err)
{
    const struct launched *at = c->list.at;
    size_t first = 0;

    for (size_t i = 1; i <= c->list.n; i++)
        if (i == c->list.n || at[i].step != at[first].step ||
            waits_before(c, at[i].ns) != waits_before(c, at[i - 1].ns)) {
            RP_TRY(add_piece(c, first, i, err));
            first = i;
        }
    for (size_t i = 0; i < c->part->pieces.n; i++)
        c->part->pieces.at[i].uses = c->uses.at[c->part->pieces.at[i].kind];
    return RP_OK;
}

/* ------------------------------------------------------------------ all of it */

static enum rp_code count_turns(struct pieces_ctx *c, const struct rp_work *work,
                                struct rp_err *err)
{
    rp_turn_vec turns = {0};
    enum rp_code code = rp_work_turns(work, &turns, err);

    for (size_t i = 0; i < turns.n; i++) {
        int64_t ns =
            c->part->marks_on_device ? turns.at[i].read_ns : c->t->ev.ts_ns[turns.at[i].call];
        uint16_t step = rp_sim_step_at(c->part, ns);

        c->part->turns += step != RP_NO_STEP && c->judged.at[step];
    }
    rp_vec_release(&turns);
    return code;
}

static enum rp_code prepare(struct pieces_ctx *c, struct rp_err *err)
{
    const struct rp_stepgraph *g = &c->part->graph;

    RP_TRY(rp_work_tokens_init(&c->tokens, c->t, err));
    RP_TRY(rp_vec_nones(&c->node_of, c->t->ev.n, err));
    RP_TRY(rp_vec_zeros(&c->launches, c->t->ntracks, err));
    RP_TRY(rp_vec_reserve(&c->judged, (size_t)c->part->nsteps + 1, err));
    for (size_t i = g->nodes.n; i-- > 0;)
        if (g->nodes.at[i].event != RP_NONE)
            c->node_of.at[g->nodes.at[i].event] = (uint32_t)i;
    for (uint32_t i = 0; i < c->part->nsteps; i++)
        c->judged.at[i] = rp_step_is_judged(
            c->t, i,
            (struct rp_interval){c->part->step_begin_ns.at[i], c->part->step_end_ns.at[i]});
    return RP_OK;
}

enum rp_code rp_sim_pieces_find(struct rp_sim_part *part, const struct rp_trace *t,
                                const struct rp_work *work, const struct rp_attribution *places,
                                struct rp_err *err)
{
    struct pieces_ctx c = {.part = part, .t = t};

    if (!part->has_steps)
        return RP_OK;
    enum rp_code code = prepare(&c, err);
    if (code == RP_OK)
        code = list_launches(&c, work, places, err);
    if (code == RP_OK)
        code = list_waits(&c, err);
    if (code == RP_OK)
        code = cut_pieces(&c, err);
    if (code == RP_OK)
        code = count_turns(&c, work, err);
    rp_work_tokens_release(&c.tokens);
    rp_map_release(&c.kinds);
    rp_vec_release(&c.uses);
    rp_vec_release(&c.list);
    rp_vec_release(&c.waits);
    rp_vec_release(&c.node_of);
    rp_vec_release(&c.launches);
    rp_vec_release(&c.judged);
    rp_vec_release(&c.waits_in);
    return code;
}
