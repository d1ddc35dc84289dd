/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding CUPTI. A framework brings its own copy, and two copies in one process do not work: so one
 * that is loaded is taken first, then the one beside the loaded CUDA runtime (wheels put it into
 * nvidia/cu13/lib or nvidia/cuda_cupti/lib), then the system's.
 */
#include "capture/cuda/cuda.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const sonames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
#define NSONAMES (sizeof sonames / sizeof sonames[0])

struct search {
    void *handle;
};

static bool try_folder(struct search *s, const char *folder, size_t n, const char *below)
{
    char path[PATH_MAX];

    for (size_t i = 0; !s->handle && i < NSONAMES; i++) {
        if (snprintf(path, sizeof path, "%.*s%s/%s", (int)n, folder, below, sonames[i]) <
            (int)sizeof path)
            s->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return s->handle != NULL;
}

/* Looks beside a loaded library of CUDA, and in the folders that wheels have beside that. */
static int look_beside(struct dl_phdr_info *info, size_t size, void *user)
{
    static const char *const below[] = {"", "/../../cu13/lib", "/../../cuda_cupti/lib",
                                        "/../extras/CUPTI/lib64"};
    const char *path = info->dlpi_name, *slash = path ? strrchr(path, '/') : NULL;

    (void)size;
    if (!slash || (strncmp(slash, "/libcudart.so", 13) && strncmp(slash, "/libcublas.so", 13) &&
                   strncmp(slash, "/libnvrtc.so", 12)))
        return 0;
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
        if (try_folder(user, path, (size_t)(slash - path), below[i]))
            return 1;
    }
    return 0;
}

static void *loaded(void)
{
    void *handle = NULL;

    for (size_t i = 0; !handle && i < NSONAMES; i++)
        handle = dlopen(sonames[i], RTLD_NOW | RTLD_NOLOAD);
    return handle;
}

static void *find(void)
{
    static const char *const system[] = {"/usr/local/cuda/extras/CUPTI/lib64",
                                         "/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu",
                                         "/usr/lib/aarch64-linux-gnu"};
    struct search s = {loaded()};
    const char *named = getenv("CUPTI_PATH");

    if (!s.handle && named && *named) {
        s.handle = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        try_folder(&s, named, strlen(named), "");
    }
    if (!s.handle)
        dl_iterate_phdr(look_beside, &s);
    for (size_t i = 0; !s.handle && i < NSONAMES; i++)
        s.handle = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; !s.handle && i < sizeof system / sizeof system[0]; i++)
        try_folder(&s, system[i], strlen(system[i]), "");
    return s.handle;
}

const char *rp_cuda_find(struct rp_cupti *out)
{
    *out = (struct rp_cupti){.handle = find()};
    if (!out->handle)
        return "CUPTI (libcupti.so.13 or .12) was not found: set CUPTI_PATH to its folder";
#define RP_CUPTI_LOOKUP(field, name, args, needed)             \
    *(void **)&out->field = dlsym(out->handle, "cupti" #name); \
    if (needed && !out->field)                                 \
        return "this CUPTI is too old: it has no function cupti" #name;
    RP_CUPTI_CALLS(RP_CUPTI_LOOKUP)
#undef RP_CUPTI_LOOKUP
    if (out->get_version(&out->version))
        return "CUPTI does not say its version";
    return NULL;
}

void *rp_cuda_symbol(const char *name)
{
    void *handle = rp_cuda.cupti.handle ? rp_cuda.cupti.handle : loaded();

    return handle ? dlsym(handle, name) : NULL;
}

const char *rp_cuda_error(int code)
{
    const char *text = NULL;

    if (rp_cuda.cupti.result_string)
        rp_cuda.cupti.result_string(code, &text);
    return text ? text : "unknown error";
}
