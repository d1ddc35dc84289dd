/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device work is grouped by the launch of its graph. Launches with the same kernels and batch size
 * are one *case*, which is matched once: equal sequences are found by their hash, others by
 * aligning them, as long as RP_MATCH_WORK lasts. If several captured graphs fit equally well, the
 * one with the smallest batch size that is at least the launch's is used; then those of the same
 * rank; then one after the other, because layers that are captured one by one have equal graphs and
 * are launched in the order of their capture.
 *
 * For every launch the spans around the captured calls are copied into the trace: each once, so
 * that an operator counts once for each launch.
 */
#include "facts/graphs/join.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "facts/arg_keys.h"
#include "facts/graphs/match.h"
#include "facts/work/attribution.h"
#include "facts/work/work.h"
#include "trace/device_calls.h"
#include "trace/graft.h"

#include <stdlib.h>

#define IDENTITY    UINT32_MAX
#define CHOICES_MAX 4096
RP_LIMIT(CHOICES_MAX, "captured graphs that fit equally",
         "of more, the first are taken, and the launches are reported as ambiguous");
#define MAPS_MAX (1u << 24)
RP_LIMIT(MAPS_MAX, "nodes in all maps",
         "further graphs stay without a match, which the coverage says");
#define NODE_WORK 8
RP_LIMIT(
    NODE_WORK, "units of work",
    "that a node of a graph costs when it is compared, besides its differences (RP_MATCH_WORK)");

struct graph_item {
    int64_t launched_ns;
    rp_event launch;
    int64_t order; /* number of the node in its graph, or else of the item in time */
    uint32_t item;
    bool has_node; /* order is the one in the capture */
};

struct choice {
    uint32_t capture, graph;
    uint32_t map; /* index in maps: the captured node of each executed one; IDENTITY: in order */
    uint32_t matched;
};

struct graph_case {
    uint32_t first, n; /* choices */
    uint32_t next;     /* to take */
    bool ambiguous;
};

struct capture_tokens {
    RP_VEC(uint64_t) tokens; /* by node */
    RP_VEC(uint64_t) hash;   /* by graph */
    RP_VEC(uint8_t) named;   /* by graph: whether all its kernels have names */
    uint32_t source;         /* index in the graft; RP_NONE: not added yet */
    uint32_t *round;         /* by event: the launch for which it was copied */
    rp_event *copy;
};

struct join_ctx {
    const struct rp_trace *t;
    const struct rp_captures *const *captures;
    size_t ncaptures;
    struct rp_graph_join *out;
    struct rp_work work;
    struct rp_graft graft;
    struct capture_tokens *known; /* by capture */
    RP_VEC(struct graph_item) items;
    RP_VEC(uint64_t) tokens; /* of the launch at hand */
    bool ordered;            /* its items are in the order of their capture */
    RP_VEC(uint32_t) node_of;
    RP_VEC(uint32_t) maps;
    RP_VEC(struct choice) choices;
    RP_VEC(struct graph_case) cases;
    struct rp_map case_of; /* hash of kernels and batch size -> case */
    RP_VEC(rp_event) chain;
    uint32_t round;
    uint64_t work_left;
};

/* ------------------------------------------------------------------ captured graphs */

static enum rp_code read_capture(struct capture_tokens *k, const struct rp_captures *c,
                                 struct rp_err *err)
{
    k->source = RP_NONE;
    for (size_t i = 0; i < c->nodes.n; i++) {
        const struct rp_graph_node *node = &c->nodes.at[i];
        uint64_t token = node->kind == RP_GRAPH_COPY  ? RP_TOKEN_COPY
                         : node->kind == RP_GRAPH_SET ? RP_TOKEN_SET
                                                      : RP_TOKEN_ANY;

        if (node->kernel)
            token = rp_graph_token(rp_trace_str(c->trace, node->kernel),
                                   rp_trace_str_len(c->trace, node->kernel));
        RP_TRY(rp_vec_push(&k->tokens, token, err));
    }
    for (size_t g = 0; k->tokens.at && g < c->graphs.n; g++) {
        const uint64_t *tokens = k->tokens.at + c->graphs.at[g].first;
        uint32_t n = c->graphs.at[g].n;
        uint8_t named = 1;

        for (size_t i = 0; i < n; i++)
            named = named && tokens[i] != RP_TOKEN_ANY;
        RP_TRY(rp_vec_push(&k->named, named, err));
        RP_TRY(rp_vec_push(&k->hash, rp_hash_bytes(tokens, n * sizeof *tokens), err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ launched graphs */

static bool is_graph_item(const struct join_ctx *j, const struct rp_work_item *x)
{
    const struct rp_trace *t = j->t;

    return x->launch != RP_NONE && t->ev.kind[x->launch] == RP_KIND_RUNTIME &&
           (rp_device_call_does(rp_trace_str(t, t->ev.name[x->launch])) & RP_DOES_LAUNCH_GRAPH);
}

RP_ORDER(by_launch, struct graph_item, RP_UP(launched_ns), RP_UP(launch), RP_UP(order), RP_UP(item))

static enum rp_code list_items(struct join_ctx *j, struct rp_err *err)
{
    struct rp_arg_key node;
    enum rp_code code = rp_arg_key_init(&node, j->t, "graph node id", err);

    for (size_t i = 0; i < j->work.items.n && code == RP_OK; i++) {
        const struct rp_work_item *x = &j->work.items.at[i];
        struct graph_item item = {.launch = x->launch, .order = (int64_t)i, .item = (uint32_t)i};

        if (!is_graph_item(j, x))
            continue;
        item.launched_ns = j->t->ev.ts_ns[x->launch];
        item.has_node = rp_arg_key_int(&node, x->event, &item.order);
        j->out->items++;
        rp_ns_add(&j->out->ns, rp_ns_between(x->begin_ns, x->end_ns));
        code = rp_vec_push(&j->items, item, err);
    }
    rp_arg_key_release(&node);
    rp_sort(j->items.at, j->items.n, sizeof *j->items.at, by_launch);
    return code;
}

static uint64_t token_of(const struct join_ctx *j, rp_event e)
{
    const struct rp_trace *t = j->t;
    rp_str name = t->ev.name[e];

    if (t->ev.kind[e] == RP_KIND_MEMCPY)
        return RP_TOKEN_COPY;
    if (t->ev.kind[e] == RP_KIND_MEMSET)
        return RP_TOKEN_SET;
    return rp_graph_token(rp_trace_str(t, name), rp_trace_str_len(t, name));
}

/* ------------------------------------------------------------------ choosing */

static const struct rp_captured_graph *graph_of(const struct join_ctx *j, const struct choice *c)
{
    return &j->captures[c->capture]->graphs.at[c->graph];
}

static enum rp_code add_choice(struct join_ctx *j, struct graph_case *to, struct choice choice,
                               struct rp_err *err)
{
    if (to->n && j->choices.at[to->first].matched < choice.matched) { /* better than all so far */
        j->choices.n = to->first;
        to->n = 0;
        to->ambiguous = false;
    }
    if (to->n && j->choices.at[to->first].matched > choice.matched)
        return RP_OK;
    if (to->n >= CHOICES_MAX) {
        to->ambiguous = true;
        return RP_OK;
    }
    to->n++;
    return rp_vec_push(&j->choices, choice, err);
}

static enum rp_code find_equal(struct join_ctx *j, struct graph_case *to, struct rp_err *err)
{
    uint32_t n = (uint32_t)j->tokens.n;
    uint64_t hash = rp_hash_bytes(j->tokens.at, n * sizeof *j->tokens.at);

    for (size_t c = 0; c < j->ncaptures; c++) {
        size_t graphs = j->captures[c]->graphs.n;

        if (j->work_left < graphs)
            return RP_OK;
        j->work_left -= graphs;
        for (size_t g = 0; g < graphs; g++)
            if (j->known[c].hash.at[g] == hash && j->captures[c]->graphs.at[g].n == n)
                RP_TRY(
                    add_choice(j, to, (struct choice){(uint32_t)c, (uint32_t)g, IDENTITY, n}, err));
    }
    return RP_OK;
}

/* A graph with less than half or more than twice the nodes cannot fit. */
static bool may_fit(uint32_t a, uint32_t b)
{
    return a / 2 <= b && b / 2 <= a;
}

static enum rp_code find_similar(struct join_ctx *j, struct graph_case *to, struct rp_err *err)
{
    uint32_t n = (uint32_t)j->tokens.n, matched;

    RP_TRY(rp_vec_reserve(&j->node_of, n, err));
    for (size_t c = 0; c < j->ncaptures; c++)
        for (size_t g = 0; g < j->captures[c]->graphs.n; g++) {
            const struct rp_captured_graph *graph = &j->captures[c]->graphs.at[g];
            struct choice choice = {(uint32_t)c, (uint32_t)g, (uint32_t)j->maps.n, 0};

            if (!may_fit(graph->n, n) || (!j->ordered && !j->known[c].named.at[g]))
                continue;
            if (j->work_left < NODE_WORK * (uint64_t)n || j->maps.n + n > MAPS_MAX)
                return RP_OK;
            j->work_left -= NODE_WORK * (uint64_t)n;
            RP_TRY(rp_graph_match(j->known[c].tokens.at + graph->first, graph->n, j->tokens.at, n,
                                  j->node_of.at, &matched, &j->work_left, err));
            choice.matched = matched;
            if (2 * (uint64_t)matched <= n || 2 * (uint64_t)matched <= graph->n ||
                (to->n && j->choices.at[to->first].matched > matched))
                continue;
            for (size_t i = 0; i < n; i++)
                RP_TRY(rp_vec_push(&j->maps, j->node_of.at[i], err));
            RP_TRY(add_choice(j, to, choice, err));
        }
    return RP_OK;
}

static void keep_size(struct join_ctx *j, struct graph_case *c, int64_t size)
{
    struct choice *all = j->choices.at + c->first;
    int64_t best = INT64_MAX;
    uint32_t i, n = 0;

    for (i = 0; i < c->n; i++) {
        int64_t s = graph_of(j, &all[i])->size;

        if (s >= size && s < best)
            best = s;
    }
    if (size < 0 || best == INT64_MAX)
        return;
    for (i = 0; i < c->n; i++)
        if (graph_of(j, &all[i])->size == best)
            all[n++] = all[i];
    c->n = n;
}

static void keep_rank(struct join_ctx *j, struct graph_case *c)
{
    struct choice *all = j->choices.at + c->first;
    uint32_t i, n = 0;

    for (i = 0; i < c->n; i++)
        if (j->captures[all[i].capture]->trace->rank == j->t->rank)
            n++;
    if (!n || n == c->n)
        return;
    for (i = n = 0; i < c->n; i++)
        if (j->captures[all[i].capture]->trace->rank == j->t->rank)
            all[n++] = all[i];
    c->n = n;
}

static enum rp_code find_case(struct join_ctx *j, rp_event launch, uint32_t *out,
                              struct rp_err *err)
{
    int64_t size = rp_batch_size_around(j->t, launch);
    uint64_t key = rp_hash_join(rp_hash_bytes(j->tokens.at, j->tokens.n * sizeof *j->tokens.at),
                                (uint64_t)size * 2 + j->ordered);
    struct graph_case c = {.first = (uint32_t)j->choices.n};

    RP_TRY(rp_map_intern(&j->case_of, key, (uint32_t)j->cases.n, out, err));
    if (*out < j->cases.n)
        return RP_OK;
    RP_TRY(rp_vec_reserve(&j->choices, 1,
                          err)); /* allocates even if there is no choice, to have an address */
    RP_TRY(find_equal(j, &c, err));
    if (!c.n)
        RP_TRY(find_similar(j, &c, err));
    keep_size(j, &c, size);
    keep_rank(j, &c);

    /* Graphs of one recording and batch size are layers. If there are several recordings, only
       graphs of the first are used, and if the sizes differ, it is not known whether they are the
       right ones. */
    struct choice *all = j->choices.at + c.first;
    uint32_t i, n = 0;
    for (i = 0; i < c.n; i++) {
        bool same_size = graph_of(j, &all[i])->size == graph_of(j, &all[0])->size;

        c.ambiguous = c.ambiguous || !same_size;
        if (same_size && all[i].capture == all[0].capture)
            all[n++] = all[i];
    }
    c.n = n;

    j->choices.n = c.first + c.n;
    return rp_vec_push(&j->cases, c, err);
}

/* ------------------------------------------------------------------ copying spans */

static bool is_copied(uint8_t kind)
{
    return kind == RP_KIND_CPU_OP || kind == RP_KIND_PYTHON || kind == RP_KIND_ANNOTATION;
}

/* Copies the innermost span around a captured call; returns the launch itself if there is none.
   Spans that began before the capture belong to the capturing code, not to the graph. */
static enum rp_code copy_spans(struct join_ctx *j, const struct choice *c, rp_event call,
                               rp_event launch, rp_event *out, struct rp_err *err)
{
    struct capture_tokens *k = &j->known[c->capture];
    const struct rp_trace *from = j->captures[c->capture]->trace;
    int64_t begin = graph_of(j, c)->begin_ns;
    rp_event e = call;
    int left = RP_ANCESTORS_MAX;

    *out = launch;
    j->chain.n = 0;
    for (; e != RP_NONE && from->ev.ts_ns[e] >= begin && left > 0; e = from->ev.parent[e], left--) {
        if (k->round[e] == j->round) {
            *out = k->copy[e];
            break;
        }
        if (is_copied(from->ev.kind[e]))
            RP_TRY(rp_vec_push(&j->chain, e, err));
    }
    while (j->chain.n) {
        e = j->chain.at[--j->chain.n];
        RP_TRY(rp_graft_span(&j->graft, k->source, e, *out, out, err));
        k->round[e] = j->round;
        k->copy[e] = *out;
    }
    return RP_OK;
}

static enum rp_code open_source(struct join_ctx *j, uint32_t capture, struct rp_err *err)
{
    struct capture_tokens *k = &j->known[capture];
    const struct rp_trace *from = j->captures[capture]->trace;

    if (k->source != RP_NONE)
        return RP_OK;
    k->round = calloc((size_t)from->ev.n + 1, sizeof *k->round);
    k->copy = calloc((size_t)from->ev.n + 1, sizeof *k->copy);
    RP_TRY(rp_err_need(k->round && k->copy, err, "joining captures"));
    if (!j->graft.base)
        RP_TRY(rp_graft_init(&j->graft, j->t, err));
    j->out->used.at[capture] = 1;
    return rp_graft_source(&j->graft, from, &k->source, err);
}

static enum rp_code join_launch(struct join_ctx *j, const struct graph_item *items, size_t n,
                                struct rp_err *err)
{
    uint32_t at, node;

    j->tokens.n = 0;
    for (size_t i = 0; i < n; i++)
        RP_TRY(rp_vec_push(&j->tokens, token_of(j, j->work.items.at[items[i].item].event), err));

    /* Items of one stream run in the order of their capture. Items of several streams run in any
       order; only names of kernels, or the numbers of their nodes, can restore it. */
    const struct rp_work_item *work = j->work.items.at;
    bool numbered = true, one_stream = true;
    for (size_t i = 0; i < n; i++) {
        numbered = numbered && items[i].has_node;
        one_stream = one_stream && work[items[i].item].stream == work[items[0].item].stream;
    }
    j->ordered = numbered || one_stream;

    RP_TRY(find_case(j, items[0].launch, &at, err));
    struct graph_case *found = &j->cases.at[at];
    j->out->unordered += !found->n && !j->ordered;
    if (!found->n)
        return RP_OK;
    struct choice c = j->choices.at[found->first + found->next++ % found->n];
    j->out->ambiguous += found->ambiguous;
    RP_TRY(open_source(j, c.capture, err));
    j->round++;
    for (size_t i = 0; i < n; i++) {
        const struct rp_work_item *x = &j->work.items.at[items[i].item];
        const struct rp_captures *from = j->captures[c.capture];
        rp_event copy;

        node = c.map == IDENTITY ? (uint32_t)i : j->maps.at[c.map + i];
        if (node == UINT32_MAX)
            continue;
        RP_TRY(copy_spans(j, &c, from->nodes.at[graph_of(j, &c)->first + node].call, x->launch,
                          &copy, err));
        rp_graft_describe(&j->graft, x->event, copy);
        j->out->matched++;
        rp_ns_add(&j->out->matched_ns, rp_ns_between(x->begin_ns, x->end_ns));
    }
    return RP_OK;
}

static enum rp_code join_all(struct join_ctx *j, struct rp_err *err)
{
    enum rp_code code = RP_OK;
    size_t i, end;

    RP_TRY(list_items(j, err));
    for (i = 0; i < j->ncaptures; i++)
        RP_TRY(read_capture(&j->known[i], j->captures[i], err));
    for (i = 0; i < j->items.n; i = end) {
        for (end = i + 1; end < j->items.n && j->items.at[end].launch == j->items.at[i].launch;)
            end++;
        j->out->launches++;
        if (code == RP_OK)
            code = join_launch(j, j->items.at + i, end - i, err);
        if (code == RP_NOMEM)
            return code;
    }
    /* if there was too much, what was joined so far counts, and the coverage shows how much that
       is */
    if (!j->out->matched || (code != RP_OK && code != RP_LIMIT))
        return code == RP_LIMIT ? RP_OK : code;
    return rp_graft_finish(&j->graft, &j->out->trace, err);
}

static void release_ctx(struct join_ctx *j)
{
    for (size_t i = 0; j->known && i < j->ncaptures; i++) {
        rp_vec_release(&j->known[i].tokens);
        rp_vec_release(&j->known[i].hash);
        rp_vec_release(&j->known[i].named);
        free(j->known[i].round);
        free(j->known[i].copy);
    }
    free(j->known);
    if (j->graft.base)
        rp_graft_release(&j->graft);
    rp_work_release(&j->work);
    rp_vec_release(&j->items);
    rp_vec_release(&j->tokens);
    rp_vec_release(&j->node_of);
    rp_vec_release(&j->maps);
    rp_vec_release(&j->choices);
    rp_vec_release(&j->cases);
    rp_map_release(&j->case_of);
    rp_vec_release(&j->chain);
}

enum rp_code rp_graphs_join(struct rp_graph_join *out, const struct rp_trace *trace,
                            const struct rp_captures *const *captures, size_t n, struct rp_err *err)
{
    struct join_ctx j = {
        .t = trace, .captures = captures, .ncaptures = n, .out = out, .work_left = RP_MATCH_WORK};

    *out = (struct rp_graph_join){0};
    enum rp_code code = rp_work_init(&j.work, trace, NULL, err);
    if (code == RP_OK)
        code = rp_vec_reserve(&out->used, n + 1, err);
    for (size_t i = 0; i < n && code == RP_OK; i++)
        out->used.at[i] = 0;
    out->used.n = code == RP_OK ? n : 0;
    j.known = calloc(n + 1, sizeof *j.known);
    if (!j.known)
        code = rp_err_nomem(err, "joining captures");
    if (code == RP_OK)
        code = join_all(&j, err);
    release_ctx(&j);
    return code;
}

void rp_graph_join_release(struct rp_graph_join *join)
{
    rp_trace_free(join->trace);
    rp_vec_release(&join->used);
}
