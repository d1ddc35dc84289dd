/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `replay` that go to a PJRT plugin: for its client, for XLA's flags, and compile
   options that were recorded. */
#include "replay/plugin_options.h"

#include "base/arena.h"
#include "exec/engines.h"
#include "exec/pjrt/client.h"
#include "io/input.h"

/* The values of an option that may stand several times. */
static enum rp_code texts_of(struct rp_arena *arena, const struct rp_settings *settings,
                             const char *option, const char *const **out, size_t *count,
                             struct rp_err *err)
{
    const char **list;
    size_t n = 0;

    while (rp_settings_nth(settings, option, n))
        n++;
    list = RP_ARENA_NEW(arena, const char *, n + 1);
    if (!list)
        return rp_err_nomem(err, "reading options");
    for (size_t i = 0; i < n; i++)
        list[i] = rp_settings_nth(settings, option, i);
    *out = list;
    *count = n;
    return RP_OK;
}

/* Recorded options of a compilation into `to`; their flags may name folders to write to. */
static enum rp_code read_compile_options(const char *path, bool keep_flags,
                                         struct rp_proto_writer *to, struct rp_err *err)
{
    struct rp_input *file;
    const uint8_t *bytes;
    enum rp_code code;
    size_t n;

    RP_TRY(rp_input_open(path, NULL, &file, err));
    code = rp_input_slurp(file, &bytes, &n, err);
    if (code == RP_OK && !n)
        code = rp_err_set(err, RP_FORMAT, "'%s' is empty", path);
    if (code == RP_OK) { /* also where they are kept: it looks at all of them */
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
        return rp_err_set(err, RP_USAGE, "--keep-flags goes with --compile-options");
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
