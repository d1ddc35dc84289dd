/* SPDX-License-Identifier: Apache-2.0 */
/* Opens TensorFlow's programs for a replay, and finds what is fed and fetched. */
#include "replay/graph.h"

#include "replay/bundle.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- opening ---- */

enum rp_code rp_replay_open_blade(struct rp_session *s, const char *program, const char *data,
                                  struct rp_err *err)
{
    struct rp_replay_graph *g = RP_ARENA_NEW(s->arena, struct rp_replay_graph, 1);

    RP_TRY(rp_err_need(g, err, "reading a BladeDISC pair"));
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

/* Variables of a SavedModel are in files beside it; without these, they must come from
   elsewhere. */
static enum rp_code find_checkpoint(struct rp_session *s, struct rp_err *err)
{
    struct rp_replay_graph *g = s->graph;
    const char *slash = strrchr(s->file, '/');
    char *folder = slash ? rp_arena_copy(s->arena, s->file, (size_t)(slash - s->file)) : ".";
    char *prefix = folder ? rp_arena_printf(s->arena, "%s/variables/variables", folder) : NULL;
    char *index = prefix ? rp_arena_printf(s->arena, "%s.index", prefix) : NULL;

    RP_TRY(rp_err_need(index, err, "reading a SavedModel"));
    if (access(index, F_OK))
        return RP_OK;
    g->saved_folder = folder;
    RP_TRY(rp_checkpoint_open(prefix, NULL, &g->checkpoint, err));
    return rp_tf_restores_find(g->graph, s->arena, &g->restores, err);
}

/* Chooses the placeholders and variables that the fetches need. */
static enum rp_code choose_feeds(struct rp_session *s, struct rp_err *err)
{
    struct rp_replay_graph *g = s->graph;

    RP_TRY(rp_tf_ports_narrow(&g->ports, g->fetches, g->nfetches, s->arena, err));
    g->nvariables = g->ports.variables.n;
    g->nfeeds = g->ports.feeds.n + g->nvariables;
    g->feeds = RP_ARENA_NEW(s->arena, const char *, g->nfeeds + 1);
    RP_TRY(rp_err_need(g->feeds, err, "reading a graph"));
    for (size_t i = 0; i < g->nfeeds; i++)
        g->feeds[i] = i < g->ports.feeds.n ? g->ports.feeds.at[i].tensor
                                           : g->ports.variables.at[i - g->ports.feeds.n].tensor;
    return RP_OK;
}

/* Chooses the outputs that the user names, instead of those that no node uses. */
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
    RP_TRY(rp_err_need(g->fetches, err, "reading a graph"));
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

    RP_TRY(rp_err_need(g, err, "reading a graph"));
    g->used = true;
    s->graph = g;
    if (saved)
        graph = (struct rp_bytes){s->program.bytes, s->program.nbytes};
    RP_TRY(rp_tf_ports_find(graph, saved, NULL, s->arena, &g->ports, err));
    g->graph = g->ports.graph;
    g->nfetches = g->ports.fetches.n;
    g->fetches = RP_ARENA_NEW(s->arena, const char *, g->nfetches + 1);
    RP_TRY(rp_err_need(g->fetches, err, "reading a graph"));
    for (size_t i = 0; i < g->nfetches; i++)
        g->fetches[i] = g->ports.fetches.at[i].tensor;
    RP_TRY(choose_fetches(s, settings, err));
    if (!g->nfetches)
        return rp_err_set(err, RP_FORMAT, "'%s': the graph has no output to fetch", s->file);
    RP_TRY(choose_feeds(s, err));
    return saved && g->ports.variables.n ? find_checkpoint(s, err) : RP_OK;
}

enum rp_code rp_replay_graph_ports(struct rp_session *s, const struct rp_bundle *b, bool fetches,
                                   struct rp_err *err)
{
    struct rp_replay_graph *g = s->graph;
    char name[32];

    if (!b->fetches.n)
        return RP_OK;
    g->nfeeds = b->feeds.n;
    g->nvariables = (size_t)b->variables;
    g->saved_folder = NULL;
    g->feeds = RP_ARENA_NEW(s->arena, const char *, g->nfeeds + 1);
    g->types = RP_ARENA_NEW(s->arena, const char *, g->nfeeds + 1);
    g->known = RP_ARENA_NEW(s->arena, bool, g->nfeeds + 1);
    RP_TRY(rp_err_need(g->feeds && g->types && g->known, err, "reading a bundle"));
    for (size_t i = 0; i < g->nfeeds; i++) {
        g->feeds[i] = b->feeds.at[i];
        snprintf(name, sizeof name, "in%zu", i);
        for (size_t k = 0; k < b->arrays.n; k++)
            if (!strcmp(b->arrays.at[k].name, name)) {
                g->types[i] = b->arrays.at[k].type;
                g->known[i] = b->arrays.at[k].known;
            }
    }
    if (!fetches)
        return RP_OK;
    g->nfetches = b->fetches.n;
    g->fetches = RP_ARENA_NEW(s->arena, const char *, g->nfetches + 1);
    RP_TRY(rp_err_need(g->fetches, err, "reading a bundle"));
    memcpy(g->fetches, b->fetches.at, g->nfetches * sizeof *g->fetches);
    return RP_OK;
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
    rp_program_free(g->lowered);
    rp_tf_ports_release(&g->ports);
    rp_checkpoint_close(g->checkpoint);
    rp_vec_release(&g->restores.list);
    if (g->used)
        rp_blade_release(&g->blade);
}
