/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds CUPTI. Frameworks bring their own copy, and two copies in one process do not work. Searched
 * in this order: a copy that is already loaded; CUPTI_PATH; beside the loaded CUDA runtime, or in
 * the packages of the running Python (wheels install it in nvidia/cu13/lib or
 * nvidia/cuda_cupti/lib); the system.
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

#define FOLDERS 32

struct search {
    char folders[FOLDERS][PATH_MAX / 4];
    size_t n;
};

static void *try_folder(const char *folder)
{
    char path[PATH_MAX];
    void *handle = NULL;

    for (size_t i = 0; !handle && i < NSONAMES; i++) {
        if (snprintf(path, sizeof path, "%s/%s", folder, sonames[i]) < (int)sizeof path)
            handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return handle;
}

static void add_folder(struct search *s, const char *path, size_t n, const char *below)
{
    if (s->n < FOLDERS && snprintf(s->folders[s->n], sizeof s->folders[0], "%.*s%s", (int)n, path,
                                   below) < (int)sizeof s->folders[0])
        s->n++;
}

/* Adds the folder of a loaded CUDA library and the folders that wheels have beside it, or the
   packages of a Python that has one of its libraries loaded. Must not load libraries: the list is
   locked during the walk. */
static int add_folders(struct dl_phdr_info *info, size_t size, void *user)
{
    static const char *const beside[] = {"", "/../../cu13/lib", "/../../cuda_cupti/lib",
                                         "/../extras/CUPTI/lib64"};
    const char *path = info->dlpi_name, *slash = path ? strrchr(path, '/') : NULL;
    const char *packages = path ? strstr(path, "-packages/") : NULL;
    struct search *s = user;

    (void)size;
    if (slash && (!strncmp(slash, "/libcudart.so", 13) || !strncmp(slash, "/libcublas.so", 13) ||
                  !strncmp(slash, "/libnvrtc.so", 12))) {
        for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++)
            add_folder(s, path, (size_t)(slash - path), beside[i]);
    } else if (packages && s->n + 16 < FOLDERS) { /* keep room for the others */
        size_t n = (size_t)(packages - path) + 9;

        if (s->n < 2 || strncmp(s->folders[s->n - 1], path, n) != 0) {
            add_folder(s, path, n, "/nvidia/cu13/lib");
            add_folder(s, path, n, "/nvidia/cuda_cupti/lib");
        }
    }
    return 0;
}

static void *find_beside(void)
{
    struct search *s = calloc(1, sizeof *s);
    void *handle = NULL;

    if (!s)
        return NULL;
    dl_iterate_phdr(add_folders, s);
    for (size_t i = 0; !handle && i < s->n; i++)
        handle = try_folder(s->folders[i]);
    free(s);
    return handle;
}

/* Finds a loaded CUPTI by its path (older ones have the full version in their name). */
static int find_cupti_path(struct dl_phdr_info *info, size_t size, void *user)
{
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

    (void)size;
    if (!slash || strncmp(slash, "/libcupti.so", 12) != 0)
        return 0;
    snprintf(user, PATH_MAX, "%s", info->dlpi_name);
    return 1;
}

static void *cupti_loaded(void)
{
    char path[PATH_MAX] = "";
    void *handle = NULL;

    for (size_t i = 0; !handle && i < NSONAMES; i++)
        handle = dlopen(sonames[i], RTLD_NOW | RTLD_NOLOAD);
    if (!handle && dl_iterate_phdr(find_cupti_path, path))
        handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    return handle;
}

static void *cupti_open(void)
{
    static const char *const system[] = {"/usr/local/cuda/extras/CUPTI/lib64",
                                         "/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu",
                                         "/usr/lib/aarch64-linux-gnu"};
    const char *named = getenv("CUPTI_PATH");
    void *handle = cupti_loaded();

    if (!handle && named && *named) {
        handle = try_folder(named);
        if (!handle)
            handle = dlopen(named, RTLD_NOW | RTLD_LOCAL);
    }
    if (!handle)
        handle = find_beside();
    for (size_t i = 0; !handle && i < NSONAMES; i++)
        handle = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; !handle && i < sizeof system / sizeof system[0]; i++)
        handle = try_folder(system[i]);
    return handle;
}

const char *rp_cuda_find(struct rp_cupti *out)
{
    *out = (struct rp_cupti){.handle = cupti_open()};
    if (!out->handle)
        return "cannot find CUPTI (libcupti.so.13 or .12): set CUPTI_PATH to its folder";
#define RP_CUPTI_LOOKUP(field, name, args, needed)             \
    *(void **)&out->field = dlsym(out->handle, "cupti" #name); \
    if (needed && !out->field)                                 \
        return "this CUPTI is too old: it has no function cupti" #name;
    RP_CUPTI_CALLS(RP_CUPTI_LOOKUP)
#undef RP_CUPTI_LOOKUP
    if (out->get_version(&out->version)) /* some versions need the driver for this */
        out->version = 0;
    return NULL;
}

void *rp_cuda_symbol(const char *name)
{
    void *handle = rp_cuda.cupti.handle ? rp_cuda.cupti.handle : cupti_loaded();

    return handle ? dlsym(handle, name) : NULL;
}

const char *rp_cuda_error(int code)
{
    const char *text = NULL;

    if (rp_cuda.cupti.result_string)
        rp_cuda.cupti.result_string(code, &text);
    return text ? text : "unknown error";
}
