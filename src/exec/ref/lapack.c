/* SPDX-License-Identifier: Apache-2.0 */
/* Finds LAPACK. OpenBLAS runs in one thread, as in exec/fast/blas.c. A library that is already
   loaded is found at once, so nothing is remembered here. */
#include "exec/ref/lapack.h"

#include "exec/plugin/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool try_library(const char *path, struct rp_lapack *out)
{
    static const char *const prefixes[] = {"", "scipy_"};
    static const char *const threads[] = {"openblas_set_num_threads",
                                          "scipy_openblas_set_num_threads"};
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; handle && i < sizeof prefixes / sizeof *prefixes; i++) {
        void (*set_threads)(int) = (void (*)(int))dlsym(handle, threads[i]);
        char name[32];

        snprintf(name, sizeof name, "%ssgesdd_", prefixes[i]);
        if (!dlsym(handle, name))
            continue;
        if (set_threads)
            set_threads(1);
        *out = (struct rp_lapack){handle, prefixes[i]};
        return true;
    }
    if (handle)
        dlclose(handle);
    return false;
}

bool rp_lapack_open(struct rp_lapack *out)
{
    static const char *const usual[] = {"libopenblas.so.0", "liblapack.so.3", "libopenblas.so",
                                        "liblapack.so"};
    const char *given = getenv("REPRISE_LAPACK");

    *out = (struct rp_lapack){0};
    if (given && *given)
        return strcmp(given, "own") != 0 && try_library(given, out);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (try_library(usual[i], out))
            return true;
    /* The one in SciPy's wheel, which JAX itself calls. */
    struct rp_err ignored = RP_ERR_INIT;
    char *path;
    bool found = rp_plugin_resolve(RP_PLUGIN_LAPACK, NULL, &path, &ignored) == RP_OK &&
                 try_library(path, out);

    free(path);
    return found;
}

void *rp_lapack_find(const struct rp_lapack *lapack, const char *routine)
{
    char name[64];

    if (!lapack->library)
        return NULL;
    snprintf(name, sizeof name, "%s%s_", lapack->prefix, routine);
    return dlsym(lapack->library, name);
}
