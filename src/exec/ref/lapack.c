/* SPDX-License-Identifier: Apache-2.0 */
/* Finding LAPACK. OpenBLAS runs in one thread, as in exec/fast/blas.c. */
#include "exec/ref/lapack.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static void *library;
static char library_name[256];
static const char *prefix = "";

static bool try_library(const char *path)
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
        library = handle;
        prefix = prefixes[i];
        snprintf(library_name, sizeof library_name, "%s", path);
        return true;
    }
    if (handle)
        dlclose(handle);
    return false;
}

static void open_once(void)
{
    static const char *const usual[] = {"libopenblas.so.0", "liblapack.so.3", "libopenblas.so",
                                        "liblapack.so"};
    const char *given = getenv("REPRISE_LAPACK");

    if (given && *given) {
        if (strcmp(given, "own") != 0)
            try_library(given);
        return;
    }
    for (size_t i = 0; !library && i < sizeof usual / sizeof *usual; i++)
        try_library(usual[i]);
}

const char *rp_lapack_name(void)
{
    pthread_once(&opened, open_once);
    return library ? library_name : NULL;
}

void *rp_lapack_find(const char *routine)
{
    char name[64];

    if (!rp_lapack_name())
        return NULL;
    snprintf(name, sizeof name, "%s%s_", prefix, routine);
    return dlsym(library, name);
}
