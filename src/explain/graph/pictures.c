/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the pages, pictures and files for other viewers that `graph` makes besides its answer: of
 * one program, or of all stages of a module as one page with a slider.
 */
#include "explain/graph/graph.h"

#include "draw/draw.h"
#include "draw/stages.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum kind { AS_HTML, AS_SVG, AS_DOT, AS_MODEL_EXPLORER, AS_TENSORBOARD, KINDS };
static const char *const options[KINDS] = {"html", "svg", "dot", "model-explorer", "tensorboard"};

struct drawing {
    const struct rp_program *p;
    const bool *wanted; /* for Graphviz: the listed operations; NULL: all */
    const struct rp_draw_more *more;
};

static enum rp_code draw_as(enum kind kind, const struct drawing *d, struct rp_out *to,
                            struct rp_err *err)
{
    switch (kind) {
    case AS_HTML:
        return rp_draw_program_html(d->p, d->more, to, err);
    case AS_SVG:
        return rp_draw_program_svg(d->p, to, err);
    case AS_DOT:
        return rp_draw_program_dot(d->p, d->wanted, to);
    case AS_MODEL_EXPLORER:
        return rp_draw_model_explorer(d->p, to, err);
    default:
        return rp_draw_tensorboard(d->p, to, err);
    }
}

static enum rp_code draw_file(enum kind kind, const struct drawing *d, const char *path,
                              struct rp_err *err)
{
    struct rp_out *to;

    RP_TRY(rp_out_open(path, &to, err));
    return rp_out_end(to, draw_as(kind, d, to, err), err);
}

/* TensorBoard looks for files with this name in a folder. */
static enum rp_code draw_events(const struct drawing *d, const char *folder, struct rp_arena *arena,
                                struct rp_err *err)
{
    const char *path = rp_arena_textf(arena, "%s/events.out.tfevents.0.reprise", folder);

    RP_TRY(rp_arena_check(arena, "writing for TensorBoard", err));
    if (mkdir(folder, 0777) != 0 && access(folder, W_OK) != 0)
        return rp_err_set(err, RP_IO, "folder '%s' cannot be made or written", folder);
    return draw_file(AS_TENSORBOARD, d, path, err);
}

enum rp_code rp_graph_draw(struct rp_ctx *ctx, const struct rp_program *p, const bool *wanted,
                           const struct rp_settings *settings, struct rp_arena *arena,
                           struct rp_err *err)
{
    const char *trace = rp_settings_text(settings, "heat");
    struct rp_draw_more more = {0};
    struct drawing d = {p, wanted, &more};
    struct rp_graph_heat heat;

    if (trace && !rp_settings_has(settings, "html"))
        return rp_err_set(err, RP_USAGE,
                          "'--heat' colours the page of '--html'; add '--html FILE'");
    if (trace) {
        RP_TRY(rp_graph_heat_read(ctx, p, trace, arena, &heat, err));
        more.time_ns = heat.time_ns;
        more.time_of = heat.time_of;
    }
    for (enum kind kind = AS_HTML; kind < KINDS; kind++) {
        const char *path = rp_settings_text(settings, options[kind]);

        if (path && kind == AS_TENSORBOARD)
            RP_TRY(draw_events(&d, path, arena, err));
        else if (path)
            RP_TRY(draw_file(kind, &d, path, err));
    }
    return RP_OK;
}

/* ---- all stages of a module ---- */

/* Whether this is a stage that the compiler made of a module, not its source in another language or
   what ran. */
static bool is_stage(const struct rp_graph_pick *pick)
{
    return pick->stage && pick->stage->point >= RP_DUMP_AT_BEFORE &&
           pick->stage->point <= RP_DUMP_AT_AFTER;
}

bool rp_graph_is_history(const struct rp_graph_folder *folder)
{
    size_t stages = 0;

    for (size_t i = 0; i < folder->n; i++) {
        if (folder->picks[i].module != folder->picks[0].module)
            return false;
        stages += is_stage(&folder->picks[i]);
    }
    return stages > 1;
}

struct history {
    struct rp_import *imports;
    struct rp_stage *stages;
    size_t n;
};

static enum rp_code load_stages(const struct rp_dataset *dataset,
                                const struct rp_graph_folder *folder, struct history *h,
                                struct rp_err *err)
{
    for (size_t i = 0; i < folder->n; i++) {
        struct rp_import *import = &h->imports[h->n];

        if (!is_stage(&folder->picks[i]))
            continue;
        *import = (struct rp_import)RP_IMPORT_INIT;
        h->n++;
        RP_TRY(rp_load_program(dataset, folder->sources[i], import, err));
        if (strcmp(import->program->language, "hlo") != 0) {
            rp_import_release(import);
            h->n--;
            continue;
        }
        h->stages[h->n - 1] =
            (struct rp_stage){.p = import->program, .name = folder->picks[i].stage->name};
    }
    return h->n ? RP_OK : rp_err_set(err, RP_USAGE, "the module has no stages in HLO");
}

enum rp_code rp_graph_draw_history(const struct rp_dataset *dataset,
                                   const struct rp_graph_folder *folder, const char *path,
                                   struct rp_arena *arena, struct rp_err *err)
{
    struct history h = {.imports = RP_ARENA_NEW(arena, struct rp_import, folder->n + 1),
                        .stages = RP_ARENA_NEW(arena, struct rp_stage, folder->n + 1)};
    struct rp_stages stages = {0};
    struct rp_draw_more more = {.stages = &stages};

    RP_TRY(rp_err_need(h.imports && h.stages, err, "drawing stages"));
    enum rp_code code = load_stages(dataset, folder, &h, err);
    if (code == RP_OK)
        code = rp_stages_make(h.stages, h.n, false, arena, &stages, err);
    if (code == RP_OK)
        code = draw_file(AS_HTML, &(struct drawing){stages.p, NULL, &more}, path, err);
    rp_stages_release(&stages);
    for (size_t i = 0; i < h.n; i++)
        rp_import_release(&h.imports[i]);
    return code;
}
