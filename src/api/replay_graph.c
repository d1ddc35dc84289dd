/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorFlow's programs in a replay. Where inputs come from a file they are found by the names that
 * the program gives them ("x", "serving_default_x:0") or by their numbers (in0, in1 ...).
 */
#include "api/replay_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

enum rp_code rp_replay_open_blade(struct rp_session *s, const char *program, const char *data,
                                  struct rp_err *err)
{
    struct rp_replay_graph *g = RP_ARENA_NEW(s->arena, struct rp_replay_graph, 1);

    if (!g)
        return rp_err_nomem(err, "reading a BladeDISC pair");
    g->used = true;
    s->graph = g;
    RP_TRY(rp_blade_open(program, data, NULL, &g->blade, err));
    RP_TRY(rp_proto_written(&g->blade.graph, &g->graph, err));
    g->feeds = g->blade.feeds;
    g->fetches = g->blade.fetches;
    g->nfeeds = g->blade.arguments.n;
    g->nfetches = g->blade.nfetches;
    return RP_OK;
}

bool rp_replay_is_graph(const struct rp_session *s)
{
    const struct rp_program *p = s->import.program;

    return p && !strcmp(p->language, "graphdef") && p->source.n;
}

/* Variables of a SavedModel stand in the folder of its file. */
static enum rp_code find_folder(struct rp_session *s, struct rp_err *err)
{
    const char *slash = strrchr(s->file, '/');

    s->graph->saved_folder =
        slash ? rp_arena_copy(s->arena, s->file, (size_t)(slash - s->file)) : ".";
    return s->graph->saved_folder ? RP_OK : rp_err_nomem(err, "reading a SavedModel");
}

/* What the user wants of a graph, instead of what nobody uses. */
static enum rp_code choose_fetches(struct rp_session *s, const struct rp_settings *settings,
                                   struct rp_err *err)
{
    struct rp_replay_graph *g = s->graph;
    size_t n = 0;

    while (rp_settings_nth(settings, "fetch", n))
        n++;
    if (!n)
        return RP_OK;
    g->fetches = RP_ARENA_NEW(s->arena, const char *, n + 1);
    if (!g->fetches)
        return rp_err_nomem(err, "reading a graph");
    for (size_t i = 0; i < n; i++)
        g->fetches[i] = rp_settings_nth(settings, "fetch", i);
    g->nfetches = n;
    return RP_OK;
}

enum rp_code rp_replay_open_graph(struct rp_session *s, const struct rp_settings *settings,
                                  struct rp_err *err)
{
    struct rp_replay_graph *g = RP_ARENA_NEW(s->arena, struct rp_replay_graph, 1);
    bool saved = !strcmp(s->program.format, "saved-model");
    const struct rp_program *p = s->import.program;
    struct rp_bytes graph = {(const uint8_t *)p->source.at, p->source.n};

    if (!g)
        return rp_err_nomem(err, "reading a graph");
    g->used = true;
    s->graph = g;
    if (saved)
        graph = (struct rp_bytes){s->program.bytes, s->program.nbytes};
    RP_TRY(rp_tf_ports_find(graph, saved, NULL, s->arena, &g->ports, err));
    g->graph = g->ports.graph;
    g->nfeeds = g->ports.feeds.n;
    g->nfetches = g->ports.fetches.n;
    g->feeds = RP_ARENA_NEW(s->arena, const char *, g->nfeeds + 1);
    g->fetches = RP_ARENA_NEW(s->arena, const char *, g->nfetches + 1);
    if (!g->feeds || !g->fetches)
        return rp_err_nomem(err, "reading a graph");
    for (size_t i = 0; i < g->nfeeds; i++)
        g->feeds[i] = g->ports.feeds.at[i].tensor;
    for (size_t i = 0; i < g->nfetches; i++)
        g->fetches[i] = g->ports.fetches.at[i].tensor;
    RP_TRY(choose_fetches(s, settings, err));
    return saved && g->ports.has_variables ? find_folder(s, err) : RP_OK;
}

/* ---- inputs ---- */

static enum rp_code from_blade(struct rp_session *s, struct rp_err *err)
{
    const struct rp_blade *b = &s->graph->blade;

    for (size_t i = 0; i < b->arguments.n; i++) {
        const struct rp_tf_value *v = &b->arguments.at[i].value;

        RP_TRY(rp_tensor_borrow(v->elem, v->dims, v->rank, v->data, &s->arguments[i], err));
    }
    return RP_OK;
}

/* "in3", "x", "serving_default_x" or "serving_default_x:0" */
static struct rp_tensor *find_input(const struct rp_session *s, size_t i)
{
    const struct rp_replay_graph *g = s->graph;
    struct rp_tensor *t;
    char name[512];

    snprintf(name, sizeof name, "in%zu", i);
    t = rp_arrays_find(&s->inputs, name);
    if (!t && g->ports.feeds.n)
        t = rp_arrays_find(&s->inputs, g->ports.feeds.at[i].name);
    if (!t)
        t = rp_arrays_find(&s->inputs, g->feeds[i]);
    if (!t) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(g->feeds[i], ":"), g->feeds[i]);
        t = rp_arrays_find(&s->inputs, name);
    }
    return t;
}

static enum rp_code from_file(struct rp_session *s, const char *file, struct rp_err *err)
{
    const struct rp_replay_graph *g = s->graph;

    if (!file && g->nfeeds)
        return rp_err_set(
            err, RP_USAGE,
            "'%s' records no inputs: give --inputs FILE with arrays in0 ... or '%s' ...", s->file,
            g->feeds[0]);
    for (size_t i = 0; i < g->nfeeds; i++) {
        struct rp_tensor *t = find_input(s, i);
        uint64_t type = g->ports.feeds.n ? g->ports.feeds.at[i].type : 0;

        if (!t)
            return rp_err_set(err, RP_FORMAT, "'%s' has no array 'in%zu' or '%s' for the program",
                              file, i, g->feeds[i]);
        RP_TRY(rp_array_as(t, type ? rp_tf_elem_of(type) : t->elem, t->dims, t->rank, g->feeds[i],
                           &s->arguments[i], err));
    }
    return RP_OK;
}

/* ---- the signature ---- */

/* As HLO, for the engines that know no TensorFlow. A failure is kept for them. */
static void lower(struct rp_session *s)
{
    struct rp_replay_graph *g = s->graph;
    struct rp_lower_feed *feeds = RP_ARENA_NEW(s->arena, struct rp_lower_feed, g->nfeeds + 1);

    for (size_t i = 0; feeds && i < g->nfeeds; i++) {
        const struct rp_tensor *t = s->arguments[i];
        bool known =
            g->blade.arguments.n ? g->blade.arguments.at[i].kind != RP_BLADE_PARAMETER : t->n <= 16;

        feeds[i].tensor = g->feeds[i];
        feeds[i].value = (struct rp_tf_value){.elem = t->elem,
                                              .rank = t->rank,
                                              .n = t->n,
                                              .data = known ? t->data : NULL,
                                              .nbytes = rp_tensor_bytes(t)};
        memcpy(feeds[i].value.dims, t->dims, t->rank * sizeof *t->dims);
    }
    if (g->saved_folder)
        rp_err_set(&g->why, RP_UNSUPPORTED,
                   "a SavedModel with variables runs on the engine tf only");
    else if (!feeds)
        rp_err_nomem(&g->why, "lowering a graph");
    else if (rp_tf_lower(g->graph, feeds, g->nfeeds, g->fetches, g->nfetches, &g->lowered,
                         &g->why) == RP_OK)
        s->program.program = g->lowered.program;
}

/* Of what is fed, and of outputs that only an engine knows. */
static enum rp_code plain_signature(struct rp_session *s, struct rp_err *err)
{
    struct rp_signature *to = &s->signature;

    to->nin = s->graph->nfeeds;
    to->nout = s->graph->nfetches;
    to->partitions = 1;
    to->in = RP_ARENA_NEW(s->arena, struct rp_slot, to->nin + 1);
    to->out = RP_ARENA_NEW(s->arena, struct rp_slot, to->nout + 1);
    if (!to->in || !to->out)
        return rp_err_nomem(err, "preparing a graph");
    for (size_t i = 0; i < to->nin && s->arguments && s->arguments[i]; i++)
        to->in[i] = (struct rp_slot){.elem = s->arguments[i]->elem,
                                     .rank = s->arguments[i]->rank,
                                     .dims = s->arguments[i]->dims};
    return RP_OK;
}

enum rp_code rp_replay_graph_inputs(struct rp_session *s, const char *inputs, struct rp_err *err)
{
    s->partitions = 1;
    s->signature.nin = s->graph->nfeeds; /* so many are released */
    s->arguments = calloc(s->graph->nfeeds + 1, sizeof(struct rp_tensor *));
    if (!s->arguments)
        return rp_err_nomem(err, "preparing inputs");
    RP_TRY(s->graph->blade.arguments.n && !inputs ? from_blade(s, err) : from_file(s, inputs, err));
    s->program.program = NULL;
    lower(s);
    if (!s->program.program)
        return plain_signature(s, err);
    return rp_signature_find(s->program.program, s->arena, &s->signature, err);
}

void rp_replay_graph_outputs(struct rp_session *s, struct rp_tensor *const *outputs, size_t n)
{
    for (size_t i = 0; i < n && i < s->signature.nout; i++)
        if (s->signature.out[i].elem == RP_ELEM_INVALID)
            s->signature.out[i] = (struct rp_slot){
                .elem = outputs[i]->elem, .rank = outputs[i]->rank, .dims = outputs[i]->dims};
}

void rp_replay_graph_release(struct rp_replay_graph *g)
{
    if (!g)
        return;
    rp_lowered_release(&g->lowered);
    rp_tf_ports_release(&g->ports);
    if (g->used)
        rp_blade_release(&g->blade);
}
