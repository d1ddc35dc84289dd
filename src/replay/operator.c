/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `replay extract` of a trace: writes scripts that run recorded operators of PyTorch alone
 * (operator.py). Calls with the same name, shapes, strides, types and numbers are one operator; its
 * time is that of the device work that they start, or without a device that of the calls.
 */
#include "replay/words.h"

#include "base/hash.h"
#include "base/order.h"
#include "base/text.h"
#include "dataset/load.h"
#include "facts/arg_keys.h"
#include "facts/work/attribution.h"
#include "formats/formats.h"
#include "io/embedded.h"
#include "io/escaped.h"
#include "io/output.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

extern const struct rp_embedded rp_replay_operator_text[]; /* operator.py */

#define MOST 100 /* scripts that one call writes: more are for a narrower pattern */

enum { DIMS, STRIDES, KINDS, NUMBERS, NKEYS };
static const char *const key_names[NKEYS] = {"Input Dims", "Input Strides", "Input type",
                                             "Concrete Inputs"};

struct group { /* calls that do the same */
    rp_event last;
    uint32_t ncalls;
    bool inner;               /* it does work itself, not only by operators that it calls */
    int64_t total_ns, own_ns; /* own: on the host, without operators that it calls */
};

struct operators {
    const struct rp_trace *t;
    const struct rp_settings *settings;
    struct rp_arg_key keys[NKEYS];
    struct rp_map ids; /* from the hash of an operator to its group */
    RP_VEC(struct group) groups;
    uint32_t *group; /* by event; RP_MAP_NONE: none */
    int64_t *ns;     /* by event: of its work on the device, or its own */
    struct rp_work work;
    struct rp_attribution owners;
    bool device;
};

static const char *text_of(const struct operators *o, size_t key, rp_event e)
{
    rp_str text;

    return rp_arg_key_text(&o->keys[key], e, &text) ? rp_trace_str(o->t, text) : "[]";
}

/* Writes "64x256,256x1024" of [[64, 256], [256, 1024], []]. */
static const char *shapes_text(struct rp_arena *arena, const char *dims)
{
    char *out = RP_ARENA_NEW(arena, char, strlen(dims) + 1);
    size_t n = 0;

    for (const char *at = dims; out && *at; at++)
        if (*at >= '0' && *at <= '9')
            out[n++] = *at;
        else if (*at == ',' && n && out[n - 1] >= '0' && out[n - 1] <= '9')
            out[n++] = strchr("[]", at[-1]) ? ',' : 'x';
    while (n && (out[n - 1] == ',' || out[n - 1] == 'x'))
        n--;
    if (out)
        out[n] = '\0';
    return out ? out : "";
}

/* Whether it is asked for: NAME, or NAME#SHAPES, in both of which * and ? match. */
static bool is_asked(const struct operators *o, rp_event e, const char *pattern,
                     struct rp_arena *arena)
{
    const char *mark = strchr(pattern, '#');
    const char *name = rp_trace_str(o->t, o->t->ev.name[e]);

    if (fnmatch(mark ? rp_arena_textf(arena, "%.*s", (int)(mark - pattern), pattern) : pattern,
                name, 0) != 0)
        return false;
    return !mark || !fnmatch(rp_arena_textf(arena, "*%s*", mark + 1),
                             shapes_text(arena, text_of(o, DIMS, e)), 0);
}

/* Groups all calls of operators that have a name of PyTorch and types of inputs. */
static enum rp_code make_groups(struct operators *o, struct rp_err *err)
{
    const struct rp_trace *t = o->t;

    for (rp_event e = 0; e < t->ev.n; e++) {
        const char *name = rp_trace_str(t, t->ev.name[e]);
        rp_str text;

        o->group[e] = RP_MAP_NONE;
        if (t->ev.kind[e] != RP_KIND_CPU_OP || !strstr(name, "::") ||
            rp_text_begins(name, "torch::autograd") || !rp_arg_key_text(&o->keys[KINDS], e, &text))
            continue;
        uint64_t hash = t->ev.name[e];
        for (size_t k = 0; k < NKEYS; k++) {
            const char *value = text_of(o, k, e);

            hash = rp_hash_join(hash, rp_hash_bytes(value, strlen(value)));
        }
        uint32_t id;
        RP_TRY(rp_map_intern(&o->ids, hash, (uint32_t)o->groups.n, &id, err));
        if (id == o->groups.n)
            RP_TRY(rp_vec_push(&o->groups, ((struct group){0}), err));
        o->group[e] = id;
        o->groups.at[id].last = e;
        o->groups.at[id].ncalls++;
    }
    return RP_OK;
}

/* The next operator around a call of one. */
static rp_event around(const struct operators *o, rp_event e)
{
    return o->t->ev.parent[e] == RP_NONE
               ? RP_NONE
               : rp_event_around(o->t, o->t->ev.parent[e], RP_KIND_CPU_OP);
}

static enum rp_code measure_groups(struct operators *o, struct rp_err *err)
{
    const struct rp_trace *t = o->t;

    RP_TRY(rp_work_init(&o->work, t, NULL, err));
    RP_TRY(rp_attribution_init(&o->owners, &o->work, err));
    o->device = o->work.items.n > 0;
    for (size_t i = 0; i < o->work.items.n; i++) {
        rp_event e = o->owners.owners.at[i].op;

        if (e != RP_NONE && o->group[e] != RP_MAP_NONE)
            o->groups.at[o->group[e]].inner = true;
        for (size_t depth = 0; e != RP_NONE && depth < RP_ANCESTORS_MAX; e = around(o, e), depth++)
            o->ns[e] += o->work.items.at[i].end_ns - o->work.items.at[i].begin_ns;
    }
    for (rp_event e = 0; e < t->ev.n; e++) {
        if (o->group[e] == RP_MAP_NONE)
            continue;
        rp_event outer = around(o, e);
        o->ns[e] = o->device ? o->ns[e] : t->ev.dur_ns[e];
        o->groups.at[o->group[e]].total_ns += o->ns[e];
        o->groups.at[o->group[e]].own_ns += t->ev.dur_ns[e];
        if (outer != RP_NONE && o->group[outer] != RP_MAP_NONE)
            o->groups.at[o->group[outer]].own_ns -= t->ev.dur_ns[e];
    }
    for (size_t i = 0; i < o->groups.n && !o->device; i++)
        o->groups.at[i].inner = 2 * o->groups.at[i].own_ns >= o->groups.at[i].total_ns;
    return RP_OK;
}

RP_ORDER(by_number, int64_t, RP_COMPARE(*a, *b))

static int64_t median_of(const struct operators *o, uint32_t id)
{
    int64_t *all = calloc(o->groups.at[id].ncalls + 1, sizeof *all), middle = 0;
    size_t n = 0;

    for (rp_event e = 0; all && e < o->t->ev.n; e++)
        if (o->group[e] == id)
            all[n++] = o->ns[e];
    if (n) {
        qsort(all, n, sizeof *all, by_number);
        middle = all[n / 2];
    }
    free(all);
    return middle;
}

static enum rp_code write_script(const struct operators *o, uint32_t id, const char *given,
                                 const char *path, int64_t ns, struct rp_err *err)
{
    static const char *const names[NKEYS] = {"SHAPES", "STRIDES", "KINDS", "NUMBERS"};
    const struct group *g = &o->groups.at[id];
    struct rp_out *out;

    RP_TRY(rp_out_open(path, &out, err));
    rp_out_text(out, "#!/usr/bin/env python3\n# An operator of PyTorch alone, from the recording ");
    rp_out_escaped(out, RP_IN_LINE, given);
    rp_out_text(out, ". Values are random; --json prints one line.\nimport json\n\nNAME = ");
    rp_out_escaped(out, RP_IN_PYTHON, rp_trace_str(o->t, o->t->ev.name[g->last]));
    for (size_t k = 0; k < NKEYS; k++) {
        rp_out_printf(out, "\n%s = json.loads(", names[k]);
        rp_out_escaped(out, RP_IN_PYTHON, text_of(o, k, g->last));
        rp_out_text(out, ")");
    }
    rp_out_printf(out, "\nDEVICE = \"%s\"\nRECORDED_NS = %lld\nCALLS_RECORDED = %u\n",
                  o->device ? "cuda" : "cpu", (long long)ns, g->ncalls);

    /* Lists the names of what its last call started, in order. */
    rp_out_text(out, "KERNELS = [");
    for (size_t i = 0, n = 0; i < o->work.items.n; i++) {
        rp_event e = o->owners.owners.at[i].op;

        for (size_t depth = 0; e != RP_NONE && e != g->last && depth < RP_ANCESTORS_MAX; depth++)
            e = around(o, e);
        if (e != g->last)
            continue;
        rp_out_text(out, n++ ? ",\n           " : "");
        rp_out_escaped(out, RP_IN_PYTHON,
                       rp_trace_str(o->t, o->t->ev.name[o->work.items.at[i].event]));
    }
    rp_out_text(out, "]\n");

    rp_out_text(out, "\n");
    return rp_out_end(out, rp_embedded_put(rp_replay_operator_text, out, err), err);
}

struct chosen {
    int64_t total_ns;
    uint32_t id;
};
RP_ORDER(longest_first, struct chosen, RP_DOWN(total_ns), RP_UP(id))

/* Writes those that are asked for, the longest first: one into a file, or all into a folder. */
static enum rp_code write_scripts(const struct operators *o, struct rp_result *result,
                                  const char *given, struct rp_err *err)
{
    const char *to = rp_settings_text(o->settings, "save");
    struct rp_replay *root = result->root;
    RP_VEC_LOCAL(struct chosen, chosen);
    struct stat st;

    for (uint32_t id = 0; id < o->groups.n; id++) {
        const struct group *g = &o->groups.at[id];
        const char *pattern;

        for (size_t i = 0; (pattern = rp_settings_nth(o->settings, "op", i)); i++)
            if (is_asked(o, g->last, pattern, &result->arena) &&
                (g->inner || !strpbrk(pattern, "*?"))) {
                RP_TRY(rp_vec_push(&chosen, ((struct chosen){g->total_ns, id}), err));
                break;
            }
    }
    if (!chosen.n)
        return rp_err_set(err, RP_USAGE,
                          o->groups.n
                              ? "no operator of '%s' has that name and these shapes ('reprise top "
                                "--by op' lists them; '*' matches all that do work)"
                              : "'%s' has no operators with the types of their inputs: record it "
                                "with torch.profiler.profile(record_shapes=True)",
                          given);
    rp_sort(chosen.at, chosen.n, sizeof *chosen.at, longest_first);
    bool folder = rp_text_ends(to, "/") || (!stat(to, &st) && S_ISDIR(st.st_mode));
    if (folder && mkdir(to, 0777) && errno != EEXIST)
        return rp_err_set_os(err, errno, "cannot make the folder '%s'", to);
    size_t n = !folder ? 1 : chosen.n < MOST ? chosen.n : MOST;
    root->operators = RP_ARENA_NEW(&result->arena, struct rp_replay_operator, n);
    RP_TRY(rp_err_need(root->operators, err, "extracting operators"));
    for (size_t i = 0; i < n; i++) {
        const struct group *g = &o->groups.at[chosen.at[i].id];
        const char *name = rp_trace_str(o->t, o->t->ev.name[g->last]);
        struct rp_replay_operator *row = &root->operators[root->noperators++];

        *row = (struct rp_replay_operator){
            .name = rp_arena_text(&result->arena, name),
            .shapes = shapes_text(&result->arena, text_of(o, DIMS, g->last)),
            .calls = g->ncalls,
            .time_ns = median_of(o, chosen.at[i].id),
            .file = to};
        if (folder)
            row->file = rp_arena_textf(
                &result->arena, "%s%s%s_%zu.py", to, rp_text_ends(to, "/") ? "" : "/",
                rp_arena_escaped(&result->arena, RP_IN_NAME, strstr(name, "::") + 2), i + 1);
        RP_TRY(rp_arena_check(&result->arena, "extracting operators", err));
        RP_TRY(write_script(o, chosen.at[i].id, given, row->file, row->time_ns, err));
    }
    return RP_OK;
}

static void operators_release(struct operators *o)
{
    for (size_t k = 0; k < NKEYS; k++)
        rp_arg_key_release(&o->keys[k]);
    rp_map_release(&o->ids);
    rp_vec_release(&o->groups);
    free(o->group);
    free(o->ns);
    rp_attribution_release(&o->owners);
    rp_work_release(&o->work);
}

bool rp_replay_is_recording(const struct rp_dataset *dataset)
{
    const struct rp_format *format = NULL;
    struct rp_input *in;

    if (rp_source_open(dataset->sources, 0, &in, NULL) != RP_OK)
        return false;
    bool is = rp_format_sniff(in, &format, NULL) == RP_OK && format->kind == RP_FORMAT_KIND_TRACE;
    rp_source_return(dataset->sources, 0, in);
    return is;
}

enum rp_code rp_replay_operators(const struct rp_dataset *dataset,
                                 const struct rp_settings *settings, struct rp_result *result,
                                 struct rp_err *err)
{
    RP_SCOPED(operators_release) struct operators o = {.settings = settings};
    RP_SCOPED(rp_import_release) struct rp_import import = {0};

    rp_replay_no_times(result->root);
    if (!rp_settings_has(settings, "op") || !rp_settings_has(settings, "save"))
        return rp_err_set(err, RP_USAGE,
                          "'replay extract' of a trace needs --op NAME and --save FILE.py, or "
                          "--save FOLDER/");
    RP_TRY(rp_load_trace(dataset, 0, &import, err));
    o.t = import.trace;
    RP_TRY(rp_trace_require(o.t, RP_NEED_ARGS | RP_NEED_LINKS, err));
    for (size_t k = 0; k < NKEYS; k++)
        RP_TRY(rp_arg_key_init(&o.keys[k], o.t, key_names[k], err));
    o.group = calloc(o.t->ev.n + 1, sizeof *o.group);
    o.ns = calloc(o.t->ev.n + 1, sizeof *o.ns);
    RP_TRY(rp_err_need(o.group && o.ns, err, "extracting operators"));
    rp_map_init(&o.ids);
    RP_TRY(make_groups(&o, err));
    RP_TRY(measure_groups(&o, err));
    return write_scripts(&o, result, dataset->given, err);
}
