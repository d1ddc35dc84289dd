/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists what can run programs on this machine. Built-in engines are always available. Engines over
 * third-party libraries have a row for every library that was found, each loaded once in a child
 * process to check that it works, or a row that says how to install one.
 */
#include "replay/replay.h"

#include "exec/engines.h"
#include "exec/plugin/plugin.h"

struct listing {
    struct rp_arena *arena;
    struct rp_replay_engine *rows;
    size_t n;
};

static void add_row(struct listing *to, const struct rp_engine *engine, const char *name,
                    const char *found, bool present)
{
    struct rp_replay_engine *row = &to->rows[to->n++];

    row->name = name;
    row->found = found;
    row->present = present;
    row->summary = engine->summary;
    row->get = present ? NULL : engine->get;
}

static void add_libraries(struct listing *to, const struct rp_engine *engine,
                          const struct rp_plugins *plugins)
{
    enum rp_plugin_kind kind = engine == &rp_engine_tf ? RP_PLUGIN_TF : RP_PLUGIN_PJRT;
    size_t before = to->n;

    for (size_t i = 0; i < plugins->list.n; i++)
        if (plugins->list.at[i].kind == kind) {
            /* Makes a row for a library: its version, or why it cannot be used, and where it was
             * found. */
            const struct rp_plugin *plugin = &plugins->list.at[i];
            struct rp_err why = RP_ERR_INIT;
            char version[256] = "";
            bool present = engine->probe(plugin->path, version, sizeof version, &why) == RP_OK;
            add_row(to, engine, rp_arena_textf(to->arena, "%s:%s", engine->name, plugin->path),
                    rp_arena_textf(to->arena, "%s, '%s', in %s", present ? version : why.text,
                                   plugin->name, plugin->found),
                    present);
        }
    if (to->n == before)
        add_row(to, engine, rp_arena_textf(to->arena, "%s:PATH", engine->name),
                rp_arena_textf(to->arena, "not found in %zu package folders", plugins->looked.n),
                false);
}

static enum rp_code list_engines(const struct rp_plugins *plugins, struct listing *to,
                                 struct rp_err *err)
{
    const struct rp_engine *engine;

    for (size_t i = 0; (engine = rp_engine_at(i)) != NULL; i++)
        if (engine->takes_where)
            add_libraries(to, engine, plugins);
        else {
            struct rp_err why = RP_ERR_INIT;
            char found[512] = "";
            bool present = engine->probe(NULL, found, sizeof found, &why) == RP_OK;

            add_row(to, engine, engine->name, rp_arena_text(to->arena, present ? found : why.text),
                    present);
        }
    return rp_arena_check(to->arena, "listing engines", err);
}

enum rp_code rp_replay_list_engines(const struct rp_settings *settings, struct rp_result *result,
                                    struct rp_err *err)
{
    struct rp_replay *root = result->root;
    struct listing list = {.arena = &result->arena};
    struct rp_plugins plugins;
    size_t n = 0;

    if (rp_settings_flag(settings, "install"))
        RP_TRY(rp_plugin_install(rp_settings_text(settings, "package"), err));
    enum rp_code code = rp_plugins_find(&plugins, err);
    while (rp_engine_at(n))
        n++;
    list.rows = RP_ARENA_NEW(&result->arena, struct rp_replay_engine, n + plugins.list.n + 1);
    if (code == RP_OK && !list.rows)
        code = rp_err_nomem(err, "listing engines");
    if (code == RP_OK)
        code = list_engines(&plugins, &list, err);
    rp_plugins_release(&plugins);
    root->engines = list.rows;
    root->nengines = list.n;
    rp_replay_no_times(root);
    return code;
}
