/* SPDX-License-Identifier: Apache-2.0 */
/* What python/sitecustomize.py asks of the recorder, by ctypes. */
#include "capture/core/core.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int reprise_frameworks_ready(void);
EXPORT const char *reprise_frameworks_folder(void);

int reprise_frameworks_ready(void)
{
    const struct rp_capture *cap = rp_capture_get();

    return cap && cap->ready();
}

/* Where files of this rank belong. A mark makes sure that it exists; NULL: nothing is recorded. */
const char *reprise_frameworks_folder(void)
{
    const struct rp_capture *cap = rp_capture_get();

    if (cap && !cap->folder())
        cap->mark("profile of a framework");
    return cap ? cap->folder() : NULL;
}
