/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/next.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

/* Finds the function in a loaded library, or NULL, but never in this library. The library that has
   it stays loaded, because the function is called from now on. */
static void *function_of(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle ? dlsym(handle, name) : NULL;
    Dl_info theirs, ours;

    if (handle && !found)
        dlclose(handle);
    if (found && dladdr(found, &theirs) && dladdr((void *)(uintptr_t)rp_capture_next, &ours) &&
        theirs.dli_fbase == ours.dli_fbase)
        return NULL;
    return found;
}

struct wanted {
    const char *begin;
    char path[PATH_MAX];
};

static int find_library(struct dl_phdr_info *info, size_t size, void *user)
{
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    struct wanted *wanted = user;

    (void)size;
    if (!slash || strncmp(slash + 1, wanted->begin, strlen(wanted->begin)) != 0 ||
        strlen(info->dlpi_name) >= sizeof wanted->path)
        return 0;
    memcpy(wanted->path, info->dlpi_name, strlen(info->dlpi_name) + 1);
    return 1;
}

void *rp_capture_next(const char *name, const void *caller, const char *library)
{
    void *found = dlsym(RTLD_NEXT, name);
    struct wanted wanted = {library, ""};
    struct link_map *map = NULL;
    Dl_info info;

    if (!found && caller && dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) && map &&
        map->l_name[0])
        found = function_of(map->l_name, name);
    if (!found && dl_iterate_phdr(find_library, &wanted))
        found = function_of(wanted.path, name);
    return found;
}
