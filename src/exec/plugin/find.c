/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds plugins in the places where people have them (plugin.h). A file under a folder of plugins
 * counts if its table of symbols names GetPjrtApi. The table is read from the file itself: the
 * libraries are hundreds of megabytes, and loading one may take a GPU's memory.
 */
#include "exec/plugin/plugin.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the list ---- */

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static enum rp_code plugins_add(struct rp_plugins *to, enum rp_plugin_kind kind, const char *path,
                                const char *name, size_t nname, const char *found,
                                struct rp_err *err)
{
    struct rp_plugin plugin = {.kind = kind};

    for (size_t i = 0; i < to->list.n; i++)
        if (same_file(to->list.at[i].path, path))
            return RP_OK;
    plugin.path = rp_arena_strdup(&to->arena, path);
    plugin.name = rp_arena_copy(&to->arena, name, nname);
    plugin.found = rp_arena_strdup(&to->arena, found);
    RP_TRY(rp_err_need(plugin.path && plugin.name && plugin.found, err, "looking for plugins"));
    return rp_vec_push(&to->list, plugin, err);
}

/* The name of a plugin: xla_cuda13 for "/x/jax_plugins/xla_cuda13/xla_cuda_plugin.so". */
static void name_of(const char *path, const char **name, size_t *n)
{
    const char *slash = strrchr(path, '/'), *at = slash;

    while (at && at > path && at[-1] != '/')
        at--;
    *name = at && slash ? at : path;
    *n = at && slash ? (size_t)(slash - at) : strlen(path);
}

/* ---- places ---- */

static enum rp_code from_environment(struct rp_plugins *to, struct rp_err *err)
{
    const char *list = getenv("PJRT_NAMES_AND_LIBRARY_PATHS"), *end;
    char path[PATH_MAX];

    for (; list && *list; list = *end ? end + 1 : end) {
        end = list + strcspn(list, ",");
        const char *colon = memchr(list, ':', (size_t)(end - list));
        if (!colon || end - colon - 1 <= 0 || end - colon > (ptrdiff_t)sizeof path)
            continue;
        snprintf(path, sizeof path, "%.*s", (int)(end - colon - 1), colon + 1);
        if (access(path, R_OK) == 0)
            RP_TRY(plugins_add(to, RP_PLUGIN_PJRT, path, list, (size_t)(colon - list),
                               "PJRT_NAMES_AND_LIBRARY_PATHS", err));
    }
    return RP_OK;
}

struct pattern {
    enum rp_plugin_kind kind;
    const char *path, *symbol;
};

static enum rp_code from_pattern(struct rp_plugins *to, const char *root,
                                 const struct pattern *pattern, struct rp_err *err)
{
    char path[PATH_MAX];
    const char *name;
    glob_t found;
    enum rp_code code = RP_OK;
    size_t n;

    if (snprintf(path, sizeof path, "%s/%s", root, pattern->path) >= (int)sizeof path ||
        glob(path, 0, NULL, &found) != 0)
        return RP_OK;
    for (size_t i = 0; i < found.gl_pathc && code == RP_OK; i++) {
        if (!rp_elf_has_symbol(found.gl_pathv[i], pattern->symbol))
            continue;
        name_of(found.gl_pathv[i], &name, &n);
        code = plugins_add(to, pattern->kind, found.gl_pathv[i], name, n, root, err);
    }
    globfree(&found);
    return code;
}

/* Searches a folder like site-packages. */
static enum rp_code from_packages(struct rp_plugins *to, const char *root, struct rp_err *err)
{
    static const struct pattern patterns[] = {
        {RP_PLUGIN_PJRT, "jax_plugins/*/*.so", "GetPjrtApi"},
        {RP_PLUGIN_PJRT, "xla_plugins/*/*.so", "GetPjrtApi"},
        {RP_PLUGIN_PJRT, "libtpu/libtpu.so", "GetPjrtApi"},
        {RP_PLUGIN_PJRT, "libneuronxla/libneuronpjrt.so", "GetPjrtApi"},
        {RP_PLUGIN_PJRT, "*/libpjrt_*.so", "GetPjrtApi"},
        {RP_PLUGIN_TF, "tensorflow/libtensorflow_cc.so.2", "TF_NewSession"},
        {RP_PLUGIN_LAPACK, "scipy.libs/libscipy_openblas*.so", "scipy_sgesdd_"}};

    for (size_t i = 0; i < to->looked.n; i++)
        if (same_file(to->looked.at[i], root))
            return RP_OK;
    if (access(root, X_OK) != 0)
        return RP_OK;
    const char *copy = rp_arena_strdup(&to->arena, root);
    RP_TRY(rp_err_need(copy, err, "looking for plugins"));
    RP_TRY(rp_vec_push(&to->looked, copy, err));
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        RP_TRY(from_pattern(to, root, &patterns[i], err));
    return RP_OK;
}

/* Searches every folder that a pattern names; the newest Python first. */
static enum rp_code from_roots(struct rp_plugins *to, const char *pattern, struct rp_err *err)
{
    enum rp_code code = RP_OK;
    glob_t found;

    if (glob(pattern, 0, NULL, &found) != 0)
        return RP_OK;
    for (size_t i = found.gl_pathc; i-- > 0 && code == RP_OK;)
        code = from_packages(to, found.gl_pathv[i], err);
    globfree(&found);
    return code;
}

/* Searches a place that has bin/ and lib/, such as a virtual environment. */
static enum rp_code from_prefix(struct rp_plugins *to, const char *prefix, struct rp_err *err)
{
    char pattern[PATH_MAX];

    if (!prefix || !*prefix)
        return RP_OK;
    if (snprintf(pattern, sizeof pattern, "%s/lib/python3*/site-packages", prefix) <
        (int)sizeof pattern)
        RP_TRY(from_roots(to, pattern, err));
    if (snprintf(pattern, sizeof pattern, "%s/lib/python3*/dist-packages", prefix) <
        (int)sizeof pattern)
        RP_TRY(from_roots(to, pattern, err));
    return RP_OK;
}

/* Searches the prefix of the python3 in $PATH, under its own path and where its links lead. */
static enum rp_code from_python(struct rp_plugins *to, struct rp_err *err)
{
    const char *at = getenv("PATH"), *end;
    char path[PATH_MAX], real[PATH_MAX];

    for (; at && *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s/python3", (int)(end - at), at);
        if (end == at || access(path, X_OK) != 0)
            continue;
        if (end - at > 4 && memcmp(end - 4, "/bin", 4) == 0) {
            snprintf(real, sizeof real, "%.*s", (int)(end - at - 4), at);
            RP_TRY(from_prefix(to, real, err));
        }
        if (realpath(path, real)) {
            for (int up = 0; up < 2 && strrchr(real, '/'); up++)
                *strrchr(real, '/') = 0;
            RP_TRY(from_prefix(to, real, err));
        }
        return RP_OK;
    }
    return RP_OK;
}

const char *rp_plugin_folder(struct rp_arena *arena)
{
    const char *own = getenv("REPRISE_ENGINES"), *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");

    if (own && *own)
        return rp_arena_strdup(arena, own);
    if (data && *data)
        return rp_arena_printf(arena, "%s/reprise/engines", data);
    return home && *home ? rp_arena_printf(arena, "%s/.local/share/reprise/engines", home) : NULL;
}

enum rp_code rp_plugins_find(struct rp_plugins *out, struct rp_err *err)
{
    const char *home = getenv("HOME"), *user = getenv("PYTHONUSERBASE");

    memset(out, 0, sizeof *out);
    rp_arena_init(&out->arena);
    RP_TRY(from_environment(out, err));
    const char *folder = rp_plugin_folder(&out->arena);
    if (folder)
        RP_TRY(from_packages(out, folder, err));
    RP_TRY(from_prefix(out, getenv("VIRTUAL_ENV"), err));
    RP_TRY(from_prefix(out, getenv("CONDA_PREFIX"), err));
    const char *at = getenv("PYTHONPATH"), *end;
    char path[PATH_MAX];
    for (; at && *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s", (int)(end - at), at);
        if (*path)
            RP_TRY(from_packages(out, path, err));
    }
    RP_TRY(from_python(out, err));
    if (!user && home)
        user = rp_arena_printf(&out->arena, "%s/.local", home);
    RP_TRY(from_prefix(out, user, err));
    RP_TRY(from_prefix(out, "/usr/local", err));
    RP_TRY(from_prefix(out, "/usr", err));
    return from_packages(out, "/usr/lib/python3/dist-packages", err);
}

void rp_plugins_release(struct rp_plugins *plugins)
{
    rp_vec_release(&plugins->list);
    rp_vec_release(&plugins->looked);
    rp_arena_release(&plugins->arena);
}

/* ---- which one ---- */

/* The preference for a plugin on this machine: first those for devices that exist, then the
   CPU's. */
static int rank_of(const struct rp_plugin *plugin)
{
    static const struct {
        const char *word, *device;
    } devices[] = {{"cuda", "/dev/nvidiactl"},
                   {"rocm", "/dev/kfd"},
                   {"tpu", "/dev/accel0"},
                   {"neuron", "/dev/neuron0"}};

    if (plugin->kind == RP_PLUGIN_LAPACK)
        return 0;
    if (!strcmp(plugin->found, "PJRT_NAMES_AND_LIBRARY_PATHS"))
        return 3; /* the user said so */
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (strstr(plugin->path, devices[i].word))
            return access(devices[i].device, F_OK) == 0 ? 2 : -1;
    return strstr(plugin->path, "cpu") ? 1 : 0;
}

static enum rp_code none_found(enum rp_plugin_kind kind, const char *where, struct rp_err *err)
{
    static const char *const get[] = {
        [RP_PLUGIN_PJRT] = "'reprise replay engines --install' fetches the one for the CPU; "
                           "pip install 'jax[cuda13]' brings the one for NVIDIA GPUs",
        [RP_PLUGIN_TF] = "pip install tensorflow-cpu, or 'reprise replay engines --install "
                         "--package tensorflow-cpu'",
        [RP_PLUGIN_LAPACK] = "pip install scipy"};
    static const char *const kinds[] = {[RP_PLUGIN_PJRT] = "PJRT plugin",
                                        [RP_PLUGIN_TF] = "TensorFlow library",
                                        [RP_PLUGIN_LAPACK] = "LAPACK of SciPy's"};
    const char *what = kinds[kind];

    if (where)
        return rp_err_set(
            err, RP_MISSING,
            "no file '%s', and no %s of that name was found: 'reprise replay engines' "
            "lists them",
            where, what);
    return rp_err_set(err, RP_MISSING, "no %s was found on this machine: %s", what, get[kind]);
}

enum rp_code rp_plugin_resolve(enum rp_plugin_kind kind, const char *where, char **path,
                               struct rp_err *err)
{
    RP_SCOPED(rp_plugins_release) struct rp_plugins plugins = {0};

    *path = NULL;
    if (where && !*where)
        where = NULL; /* "pjrt:" */
    if (where && (strchr(where, '/') || access(where, R_OK) == 0)) {
        if (access(where, R_OK) != 0)
            return rp_err_set(err, RP_MISSING, "no plugin '%s'", where);
        *path =
            realpath(where, NULL); /* realpath, because dlopen looks for plain names elsewhere */
        return rp_err_need(*path, err, "looking for plugins");
    }

    RP_TRY(rp_plugins_find(&plugins, err));
    const struct rp_plugin *best = NULL;

    for (size_t i = 0; i < plugins.list.n; i++) {
        const struct rp_plugin *at = &plugins.list.at[i];

        if (at->kind != kind || (where && strcmp(at->name, where) != 0))
            continue;
        if (!best || rank_of(at) > rank_of(best))
            best = at;
    }
    const struct rp_plugin *chosen = best && (where || rank_of(best) >= 0) ? best : NULL;
    *path = chosen ? strdup(chosen->path) : NULL;
    if (!chosen)
        RP_TRY(none_found(kind, where, err));
    else if (!*path)
        return rp_err_nomem(err, "looking for plugins");
    return RP_OK;
}
