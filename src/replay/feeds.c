/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs of TensorFlow programs, from the first of these sources: a file of arrays, by the names in
 * the program ("x", "serving_default_x:0") or by their numbers (in0, in1 ...); recorded values,
 * beside a BladeDISC program, in a bundle or in the checkpoint of a SavedModel; synthetic values,
 * if the program gives all shapes. Variables are fed like placeholders and follow them. Then the
 * graph is lowered to HLO for the engines other than tf; a failure is kept and reported when one of
 * them has to run it.
 */
#include "exec/data/synthetic.h"
#include "exec/engines.h"
#include "replay/graph.h"
#include "replay/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE_VALUES 16 /* most integers of a feed that may be a shape */

struct feed_ctx {
    struct rp_session *s;
    struct rp_replay_graph *g;
    const char *file; /* --inputs, or NULL */
    bool *made;       /* by feed: it is synthetic and not filled yet */
    size_t nmade;
    struct rp_err *err;
};

/* ---- values ---- */

/* What the program says about feed i; NULL if nothing (BladeDISC's, and a bundle's). */
static const struct rp_tf_port_name *port_of(const struct rp_replay_graph *g, size_t i)
{
    size_t n = g->ports.feeds.n;

    if (g->types || i >= n + g->ports.variables.n)
        return NULL;
    return i < n ? &g->ports.feeds.at[i] : &g->ports.variables.at[i - n];
}

/* Finds an input by "in3", "x", "serving_default_x" or "serving_default_x:0". */
static struct rp_tensor *find_input(const struct feed_ctx *f, size_t i)
{
    const struct rp_replay_graph *g = f->g;
    const struct rp_arrays *arrays = &f->s->inputs;
    const struct rp_tf_port_name *port = port_of(g, i);
    char name[512];

    snprintf(name, sizeof name, "in%zu", i);
    struct rp_tensor *t = rp_arrays_find(arrays, name);
    if (!t && port)
        t = rp_arrays_find(arrays, port->name);
    if (!t)
        t = rp_arrays_find(arrays, g->feeds[i]);
    if (!t) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(g->feeds[i], ":"), g->feeds[i]);
        t = rp_arrays_find(arrays, name);
    }
    return t;
}

/* Parses "f32[2,3]", as in manifests. */
static bool parse_type(const char *text, unsigned *elem, int64_t *dims, size_t *rank)
{
    size_t n = strcspn(text, "[");

    *rank = 0;
    *elem = rp_elem_find(text, n);
    if (text[n] != '[' || *elem == RP_ELEM_INVALID || !rp_elem_bits(*elem))
        return false;
    for (text += n + 1; *text && *text != ']';) {
        char *end;

        if (*rank == RP_TENSOR_RANK)
            return false;
        dims[*rank] = strtoll(text, &end, 10);
        if (end == text || dims[*rank] < 0)
            return false;
        ++*rank;
        text = end + (*end == ',');
    }
    return *text == ']';
}

/* Makes an array of the type that the bundle or the program states, to be filled later. */
static enum rp_code make_one(struct feed_ctx *f, size_t i)
{
    const struct rp_replay_graph *g = f->g;
    const struct rp_tf_port_name *port = port_of(g, i);
    int64_t dims[RP_TENSOR_RANK];
    unsigned elem = RP_ELEM_INVALID;
    size_t rank = 0;

    if (g->types && g->types[i]) {
        if (!parse_type(g->types[i], &elem, dims, &rank))
            return rp_err_set(f->err, RP_FORMAT,
                              "'%s': invalid type '%.60s' of 'in%zu' in its manifest", f->s->file,
                              g->types[i], i);
    } else if (port && port->has_shape) {
        elem = rp_tf_elem_of(port->type);
        rank = port->rank;
        memcpy(dims, port->dims, sizeof dims);
    }
    if (elem == RP_ELEM_INVALID)
        return rp_err_set(f->err, RP_USAGE,
                          "'%s' records no inputs, and does not give the shape of '%s': give "
                          "--inputs FILE with arrays in0 ... or '%s' ...",
                          f->s->file, g->feeds[i], g->feeds[0]);
    RP_TRY(rp_tensor_zeros(elem, dims, rank, &f->s->arguments[i], f->err));
    f->made[i] = true;
    f->nmade++;
    return RP_OK;
}

/* Takes a variable from the checkpoint: by the key from which the graph restores it, else by its
   own names. */
static enum rp_code from_checkpoint(struct feed_ctx *f, size_t i)
{
    const struct rp_replay_graph *g = f->g;
    const struct rp_tf_port_name *port = port_of(g, i);
    const char *key = rp_tf_restored_key(&g->restores, g->feeds[i]);
    struct rp_tf_value v;

    if (!key && port)
        key = port->name;
    if (!key)
        return rp_err_set(f->err, RP_FORMAT, "the checkpoint key of variable '%s' is unknown",
                          g->feeds[i]);
    RP_TRY(rp_checkpoint_value(g->checkpoint, key, &v, f->err));
    return rp_tensor_borrow(v.elem, v.dims, v.rank, v.data, &f->s->arguments[i], f->err);
}

static enum rp_code feed_arrays(struct feed_ctx *f)
{
    const struct rp_replay_graph *g = f->g;

    for (size_t i = 0; i < g->nfeeds; i++) {
        const struct rp_tf_port_name *port = port_of(g, i);
        struct rp_tensor *t = find_input(f, i);
        uint64_t type = port ? port->type : 0;
        bool variable = i >= g->nfeeds - g->nvariables;

        if (!t && variable && g->checkpoint) {
            RP_TRY(from_checkpoint(f, i));
            continue;
        }
        if (!t && (!f->file || variable)) {
            RP_TRY(make_one(f, i));
            continue;
        }
        if (!t)
            return rp_err_set(f->err, RP_FORMAT,
                              "'%s': array 'in%zu' or '%s' is missing; the program has %zu inputs",
                              f->file, i, g->feeds[i], g->nfeeds);
        enum rp_code code =
            rp_array_as(t, type && rp_tf_elem_of(type) ? rp_tf_elem_of(type) : t->elem, t->dims,
                        t->rank, g->feeds[i], &f->s->arguments[i], f->err);
        if (code != RP_OK)
            return rp_err_prefix(f->err, code, "'%s'", f->file ? f->file : f->s->file);
    }
    return RP_OK;
}

static enum rp_code from_blade(struct feed_ctx *f)
{
    const struct rp_blade *b = &f->g->blade;

    for (size_t i = 0; i < b->arguments.n; i++) {
        const struct rp_tf_value *v = &b->arguments.at[i].value;

        RP_TRY(rp_tensor_borrow(v->elem, v->dims, v->rank, v->data, &f->s->arguments[i], f->err));
    }
    return RP_OK;
}

/* Marks feeds that may be shapes, which are stored where weights are not: integers that BladeDISC
   treated as constants or kept on the host, and in other programs short ones. */
static enum rp_code mark_known(struct feed_ctx *f)
{
    struct rp_replay_graph *g = f->g;

    if (g->known)
        return RP_OK;
    g->known = RP_ARENA_NEW(f->s->arena, bool, g->nfeeds + 1);
    RP_TRY(rp_err_need(g->known, f->err, "preparing inputs"));
    for (size_t i = 0; i < g->nfeeds; i++) {
        const struct rp_tensor *t = f->s->arguments[i];
        bool whole = t->elem == RP_ELEM_S32 || t->elem == RP_ELEM_S64;

        if (g->blade.arguments.n)
            g->known[i] = whole && g->blade.arguments.at[i].kind != RP_BLADE_PARAMETER;
        else
            g->known[i] = whole && !f->made[i] && t->n <= SHAPE_VALUES;
    }
    return RP_OK;
}

/* ---- the graph as HLO ---- */

/* Runs a part of the graph, which gives the value that is wanted. */
static enum rp_code compute_wanted(struct feed_ctx *f, struct rp_lower_computed *c,
                                   struct rp_tensor **out)
{
    struct rp_replay_graph *g = f->g;
    struct rp_trial_engine on = {.engine = &rp_engine_fast};
    struct rp_trial_part part = {g->lowered, f->s->arguments, g->nfeeds, 1};
    RP_SCOPED(rp_tensors_release) struct rp_tensors list = {0};

    enum rp_code code = rp_trial_once(&on, &part, &list, &g->why);
    rp_program_free(g->lowered);
    g->lowered = NULL;
    if (code == RP_OK && list.n == 1) {
        struct rp_tensor *t = *out = list.at[0];

        c->list[c->n].value = c->wanted;
        c->list[c->n].of =
            (struct rp_tf_value){.elem = t->elem, .rank = t->rank, .n = t->n, .data = t->data};
        c->n++;
        list.at[0] = NULL;
    }
    return code;
}

static void lower_graph(struct feed_ctx *f, const bool *known, bool compute)
{
    struct rp_session *s = f->s;
    struct rp_replay_graph *g = f->g;
    struct rp_lower_feed *feeds = RP_ARENA_NEW(s->arena, struct rp_lower_feed, g->nfeeds + 1);
    struct rp_lower_computed *computed = RP_ARENA_NEW(s->arena, struct rp_lower_computed, 1);
    struct rp_tensor *kept[RP_LOWER_COMPUTED] = {NULL};
    enum rp_code code;

    for (size_t i = 0; feeds && i < g->nfeeds; i++) {
        const struct rp_tensor *t = s->arguments[i];

        feeds[i].tensor = g->feeds[i];
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): feed_arrays has set all arguments */
        feeds[i].value = (struct rp_tf_value){.elem = t->elem,
                                              .rank = t->rank,
                                              .n = t->n,
                                              .data = known && known[i] ? t->data : NULL,
                                              .nbytes = rp_tensor_bytes(t)};
        memcpy(feeds[i].value.dims, t->dims, t->rank * sizeof *t->dims);
    }
    if (!feeds || !computed) {
        rp_err_nomem(&g->why, "lowering a graph");
        return;
    }
    do
        code = rp_tf_lower(g->graph, feeds, g->nfeeds, g->fetches, g->nfetches,
                           compute ? computed : NULL, &g->lowered, &g->why);
    while (code == RP_OK && computed->wanted &&
           (code = compute_wanted(f, computed, &kept[computed->n])) == RP_OK);
    if (code == RP_OK)
        s->program.program = g->lowered;
    for (size_t i = 0; i < computed->n; i++)
        rp_tensor_drop(kept[i]);
}

/* Makes a signature from the feeds alone, because only the engine knows the shapes of the
   outputs. */
static enum rp_code plain_signature(struct feed_ctx *f)
{
    struct rp_session *s = f->s;
    struct rp_signature *to = &s->signature;

    to->nin = f->g->nfeeds;
    to->nout = f->g->nfetches;
    to->partitions = 1;
    to->in = RP_ARENA_NEW(s->arena, struct rp_slot, to->nin + 1);
    to->out = RP_ARENA_NEW(s->arena, struct rp_slot, to->nout + 1);
    RP_TRY(rp_err_need(to->in && to->out, f->err, "preparing a graph"));
    for (size_t i = 0; i < to->nin && s->arguments[i]; i++)
        to->in[i] = (struct rp_slot){.elem = s->arguments[i]->elem,
                                     .rank = s->arguments[i]->rank,
                                     .dims = s->arguments[i]->dims};
    return RP_OK;
}

/* Fills feeds that have no values yet, according to their use in the HLO, if there is one. */
static enum rp_code fill_made(struct feed_ctx *f, uint64_t seed)
{
    struct rp_session *s = f->s;
    size_t n = s->signature.nin;
    struct rp_tensor **list = RP_ARENA_NEW(s->arena, struct rp_tensor *, n + 1);
    enum rp_code code = rp_err_need(list, f->err, "preparing inputs");

    if (code == RP_OK)
        code = rp_synthetic_inputs(s->program.program, &s->signature, seed, list, f->err);
    for (size_t i = 0; list && i < n; i++) {
        if (code == RP_OK && f->made[i])
            memcpy(s->arguments[i]->data, list[i]->data, rp_tensor_bytes(list[i]));
        rp_tensor_drop(list[i]);
    }
    return code;
}

static const char *describe_feeds(const struct feed_ctx *f, uint64_t seed)
{
    const struct rp_session *s = f->s;

    if (f->file && f->nmade)
        return rp_arena_printf(s->arena, "%s, and synthetic variables, seed %llu", f->file,
                               (unsigned long long)seed);
    if (f->file)
        return rp_arena_strdup(s->arena, f->file);
    if (f->nmade)
        return rp_arena_printf(s->arena, "synthetic, seed %llu", (unsigned long long)seed);
    if (s->bundle)
        return "recorded in the bundle";
    return f->g->nfeeds > f->g->nvariables ? "recorded with it" : "none";
}

struct rp_tensor *rp_replay_graph_expected(const struct rp_session *s, size_t i)
{
    const struct rp_replay_graph *g = s->graph;
    struct rp_tensor *t = NULL;
    char name[512];

    for (size_t k = 0; k < g->ports.fetches.n && !t; k++)
        if (!strcmp(g->ports.fetches.at[k].tensor, g->fetches[i]))
            t = rp_arrays_find(&s->expected, g->ports.fetches.at[k].name);
    if (!t)
        t = rp_arrays_find(&s->expected, g->fetches[i]);
    if (!t) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(g->fetches[i], ":"), g->fetches[i]);
        t = rp_arrays_find(&s->expected, name);
    }
    return t;
}

enum rp_code rp_replay_graph_inputs(struct rp_session *s, const struct rp_session_options *o,
                                    struct rp_replay *root, struct rp_err *err)
{
    struct feed_ctx f = {.s = s, .g = s->graph, .file = o->inputs, .err = err};

    s->partitions = 1;
    s->signature.nin = s->graph->nfeeds; /* so many are released */
    s->arguments = calloc(s->graph->nfeeds + 1, sizeof(struct rp_tensor *));
    f.made = RP_ARENA_NEW(s->arena, bool, s->graph->nfeeds + 1);
    if (!s->arguments || !f.made)
        return rp_err_nomem(err, "preparing inputs");
    RP_TRY(s->graph->blade.arguments.n && !o->inputs ? from_blade(&f) : feed_arrays(&f));
    RP_TRY(mark_known(&f));
    root->inputs = describe_feeds(&f, o->seed);
    s->program.program = NULL;
    /* Tries without values first; only if that fails, some are needed and taken as known. */
    struct rp_replay_graph *g = f.g;
    bool any = false;
    for (size_t i = 0; i < g->nfeeds; i++)
        any |= g->known[i];
    lower_graph(&f, NULL, false);
    if (any && !s->program.program)
        lower_graph(&f, g->known, false);
    else if (any)
        memset(g->known, 0, g->nfeeds * sizeof *g->known);
    if (!s->program.program && !f.nmade) /* what decides shapes is computed from these inputs */
        lower_graph(&f, g->known, true);
    RP_TRY(s->program.program ? rp_signature_find(s->program.program, s->arena, &s->signature, err)
                              : plain_signature(&f));
    return f.nmade ? fill_made(&f, o->seed) : RP_OK;
}
