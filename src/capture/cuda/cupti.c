/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding CUPTI. A framework brings its own copy, and two copies in one process do not work: so one
 * that is loaded is taken first, then one that CUPTI_PATH names, the one beside the loaded CUDA
 * runtime or in the packages of the Python that runs (wheels put it into nvidia/cu13/lib or
 * nvidia/cuda_cupti/lib), then the system's.
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

/* Notes the folder of a loaded library of CUDA, and those that wheels have beside it, or the
   packages of a Python that has one of its libraries loaded. Nothing may be loaded in here: the
   list of libraries is locked. */
static int note_folders(struct dl_phdr_info *info, size_t size, void *user)
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
    } else if (packages && s->n + 16 < FOLDERS) { /* the others keep their room */
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
    dl_iterate_phdr(note_folders, s);
    for (size_t i = 0; !handle && i < s->n; i++)
        handle = try_folder(s->folders[i]);
    free(s);
    return handle;
}

/* The path of a CUPTI under another name (older ones have their full version in it). */
static int note_cupti(struct dl_phdr_info *info, size_t size, void *user)
{
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

    (void)size;
    if (!slash || strncmp(slash, "/libcupti.so", 12) != 0)
        return 0;
    snprintf(user, PATH_MAX, "%s", info->dlpi_name);
    return 1;
}

static void *loaded(void)
{
    char path[PATH_MAX] = "";
    void *handle = NULL;

    for (size_t i = 0; !handle && i < NSONAMES; i++)
        handle = dlopen(sonames[i], RTLD_NOW | RTLD_NOLOAD);
    if (!handle && dl_iterate_phdr(note_cupti, path))
        handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    return handle;
}

static void *find(void)
{
    static const char *const system[] = {"/usr/local/cuda/extras/CUPTI/lib64",
                                         "/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu",
                                         "/usr/lib/aarch64-linux-gnu"};
    const char *named = getenv("CUPTI_PATH");
    void *handle = loaded();

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
    *out = (struct rp_cupti){.handle = find()};
    if (!out->handle)
        return "CUPTI (libcupti.so.13 or .12) was not found: set CUPTI_PATH to its folder";
#define RP_CUPTI_LOOKUP(field, name, args, needed)             \
    *(void **)&out->field = dlsym(out->handle, "cupti" #name); \
    if (needed && !out->field)                                 \
        return "this CUPTI is too old: it has no function cupti" #name;
    RP_CUPTI_CALLS(RP_CUPTI_LOOKUP)
#undef RP_CUPTI_LOOKUP
    if (out->get_version(&out->version)) /* some need the driver even for that: it will be said */
        out->version = 0;
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
