/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the options of `replay`: the engine, how f32 is multiplied, and what a PJRT plugin is
   told. */
#include "base/text.h"
#include "exec/pjrt/client.h"
#include "io/input.h"
#include "program/opcodes.h"
#include "replay/graph.h"
#include "replay/replay.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

/* ---- the engine ---- */

/* Chooses the first engine of the table that is available and compiles the program. */
enum rp_code rp_replay_choose(const struct rp_session *s, const struct rp_settings *settings,
                              struct rp_session_run *run, struct rp_replay *root,
                              struct rp_err *err)
{
    const char *given = rp_settings_text(settings, "engine");
    const char *plugin = rp_settings_text(settings, "plugin");

    if (plugin) {
        root->choice = "requested as plugin";
        root->engine = rp_arena_printf(s->arena, "pjrt:%s", plugin);
        run->engine = &rp_engine_pjrt;
        run->where = plugin;
        return RP_OK;
    }
    if (given && strcmp(given, "auto") != 0) {
        root->choice = "requested with --engine";
        root->engine = rp_arena_strdup(s->arena, given);
        return rp_engine_find(given, &run->engine, &run->where, err);
    }
    run->engine = rp_engine_at(0);
    root->engine = run->engine->name;
    root->choice = "needs no installation; choose another with --engine";
    return RP_OK;
}

/* Chooses again for programs that our own engines do not know, once that is seen. */
void rp_replay_choose_again(const struct rp_session *s, const struct rp_settings *settings,
                            struct rp_session_run *run, struct rp_replay *root)
{
    const struct rp_program *p = s->program.program;

    if (rp_settings_has(settings, "plugin") ||
        strcmp(rp_settings_text(settings, "engine"), "auto") != 0)
        return;
    if (s->graph && !p) {
        run->engine = &rp_engine_tf;
        root->choice =
            rp_arena_printf(s->arena, "the other engines cannot run it: %s", s->graph->why.text);
    }
    root->engine = run->engine->name;
}

/* ---- products of f32 ---- */

/*
 * NVIDIA GPUs since Ampere multiply f32 as TF32 unless a program requests higher precision, and
 * XLA's modules do not say so. It follows from where the module was compiled: an optimized module
 * calls the GPU's libraries or has Triton fusions; a module before optimization has a file beside
 * it in its dump
 *
 *     module_9280.jit_step.sm_9.0a_gpu_after_optimizations.txt
 */

static bool contains(const struct rp_attr *attr, const char *word)
{
    return attr && rp_attr_is_bytes(attr) && memmem(attr->at, attr->n, word, strlen(word)) != NULL;
}

static bool calls_a_gpu(const struct rp_program *p)
{
    static const char *const targets[] = {"__cublas$", "__cudnn$", "__cub$", "xla.gpu."};

    for (uint32_t op = 0; op < p->code.n; op++) {
        if (p->code.at[op] == RP_OP_FUSION &&
            contains(rp_op_attr(p, op, RP_ATTR_BACKEND_CONFIG), "__triton"))
            return true;
        if (p->code.at[op] != RP_OP_CUSTOM_CALL)
            continue;
        for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
            if (contains(rp_op_attr(p, op, RP_ATTR_CUSTOM_CALL_TARGET), targets[i]))
                return true;
    }
    return false;
}

/* "sm_9.0a" in "module_1.jit_f.sm_9.0a_gpu_after_optimizations.txt" after the prefix; NULL if it is
   not such a name, or of a GPU before Ampere. */
static const char *gpu_of_name(struct rp_arena *arena, const char *name, const char *prefix,
                               size_t n)
{
    if (strncmp(name, prefix, n) != 0 || strncmp(name + n, "sm_", 3) != 0)
        return NULL;
    const char *end = strstr(name + n, "_gpu_after_optimizations");
    if (!end || strtol(name + n + 3, NULL, 10) < 8)
        return NULL;
    return rp_arena_printf(arena, "%.*s", (int)(end - name - (ptrdiff_t)n), name + n);
}

static const char *gpu_beside(struct rp_arena *arena, const char *file)
{
    const char *slash = strrchr(file, '/'), *name = rp_text_file(file), *found = NULL;
    const char *stage = strstr(name, ".before_optimizations.");
    char *folder;
    struct dirent *entry;

    if (!stage)
        return NULL;
    folder =
        rp_arena_printf(arena, "%.*s", slash ? (int)(slash - file) + 1 : 1, slash ? file : ".");
    DIR *dir = folder ? opendir(folder) : NULL;
    while (dir && !found && (entry = readdir(dir)))
        found = gpu_of_name(arena, entry->d_name, name, (size_t)(stage + 1 - name));
    if (dir)
        closedir(dir);
    return found;
}

/* The GPU for which the program was compiled, "sm_9.0a", if it is one of NVIDIA's that multiplies
   f32 as TF32; NULL if there is no sign of one. program may be NULL. */
static const char *gpu_of(struct rp_arena *arena, const struct rp_program *program,
                          const char *file)
{
    if (program && !strcmp(program->language, "hlo") && calls_a_gpu(program))
        return "an NVIDIA GPU";
    return file ? gpu_beside(arena, file) : NULL;
}

/* Decides how f32 is multiplied on our own engines, and says why. */
void rp_replay_choose_products(const struct rp_session *s, const struct rp_settings *settings,
                               struct rp_session_run *run, struct rp_replay *root)
{
    const char *how = rp_settings_text(settings, "products"), *gpu = NULL;

    run->options.like_xla = !strcmp(rp_settings_text(settings, "like"), "xla");
    if (run->engine != &rp_engine_ref && run->engine != &rp_engine_fast)
        return;
    if (!strcmp(how, "auto"))
        gpu = gpu_of(s->arena, s->program.program, s->file);
    run->options.tf32 = gpu || !strcmp(how, "tf32");
    if (run->options.like_xla)
        root->choice = rp_arena_printf(s->arena, "%s; like XLA (--like)",
                                       root->choice ? root->choice : "asked for");
    if (gpu)
        root->choice = rp_arena_printf(s->arena,
                                       "%s; f32 is multiplied as TF32, as on %s, for "
                                       "which it was compiled (--products)",
                                       root->choice ? root->choice : "asked for", gpu);
}

/* ---- a plugin: for its client, for XLA's flags, and compile options that were recorded ---- */

/* The values of an option that may be repeated. */
static enum rp_code texts_of(struct rp_arena *arena, const struct rp_settings *settings,
                             const char *option, const char *const **out, size_t *count,
                             struct rp_err *err)
{
    size_t n = 0;

    while (rp_settings_nth(settings, option, n))
        n++;
    const char **list = RP_ARENA_NEW(arena, const char *, n + 1);
    RP_TRY(rp_err_need(list, err, "reading options"));
    for (size_t i = 0; i < n; i++)
        list[i] = rp_settings_nth(settings, option, i);
    *out = list;
    *count = n;
    return RP_OK;
}

/* Puts recorded options of a compilation into `to`; their flags may name folders to write to. */
static enum rp_code read_compile_options(const char *path, bool keep_flags,
                                         struct rp_proto_writer *to, struct rp_err *err)
{
    struct rp_input *file;
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_open(path, NULL, &file, err));
    enum rp_code code = rp_input_slurp(file, &bytes, &n, err);
    if (code == RP_OK && !n)
        code = rp_err_set(err, RP_FORMAT, "'%s' is empty", path);
    if (code == RP_OK) { /* also if they are kept, because this validates all of them */
        code = rp_pjrt_strip_options(bytes, n, to, err);
        if (code != RP_OK)
            rp_err_prefix(err, code, "'%s'", path);
    }
    if (code == RP_OK && keep_flags) {
        rp_proto_rewind(to);
        rp_proto_add_bytes(to, bytes, n);
    }
    rp_input_close(file);
    return code;
}

enum rp_code rp_replay_plugin_options(struct rp_arena *arena, const struct rp_settings *settings,
                                      struct rp_engine_options *o, struct rp_proto_writer *recorded,
                                      struct rp_err *err)
{
    const char *path = rp_settings_text(settings, "compile-options");
    bool keep_flags = rp_settings_flag(settings, "keep-flags");
    struct rp_bytes bytes;

    RP_TRY(
        texts_of(arena, settings, "plugin-option", &o->plugin_options, &o->nplugin_options, err));
    RP_TRY(texts_of(arena, settings, "xla-flag", &o->xla_flags, &o->nxla_flags, err));
    if (keep_flags && !path)
        return rp_err_set(err, RP_USAGE, "--keep-flags needs --compile-options");
    if (!path)
        return RP_OK;
    RP_TRY(read_compile_options(path, keep_flags, recorded, err));
    RP_TRY(rp_proto_written(recorded, &bytes, err));
    o->compile_options = bytes.at;
    o->ncompile_options = bytes.n;
    return RP_OK;
}

enum rp_code rp_replay_check_plugin_options(const struct rp_settings *settings,
                                            const struct rp_engine *engine, struct rp_err *err)
{
    static const char *const names[] = {"plugin-option", "xla-flag", "compile-options"};

    for (size_t i = 0; i < sizeof names / sizeof *names && engine != &rp_engine_pjrt; i++)
        if (rp_settings_has(settings, names[i]))
            return rp_err_set(err, RP_USAGE, "--%s is for the engine pjrt, not for '%s'", names[i],
                              engine->name);
    return RP_OK;
}
