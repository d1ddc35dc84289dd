/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the device on which the program runs, from NVML, which is loaded if the program uses
   such a device. It is asked between turns, so it disturbs nothing. */
#include "try/clock.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define SM_CLOCK 1

void rp_try_clock_open(struct rp_try_clock *clock, const char *uuid)
{
    void *library = *uuid ? dlopen("libnvidia-ml.so.1", RTLD_NOW) : NULL;
    int (*init)(void), (*find)(const char *, void **);
    char name[128];

    *clock = (struct rp_try_clock){0};
    if (!library)
        return;
    *(void **)&init = dlsym(library, "nvmlInit_v2");
    *(void **)&find = dlsym(library, "nvmlDeviceGetHandleByUUID");
    *(void **)&clock->ask = dlsym(library, "nvmlDeviceGetClockInfo");
    snprintf(name, sizeof name, "%s%s", strncmp(uuid, "GPU-", 4) ? "GPU-" : "", uuid);
    if (!init || !find || init() || find(name, &clock->device))
        clock->ask = NULL;
}

unsigned rp_try_clock_mhz(const struct rp_try_clock *clock)
{
    unsigned mhz = 0;

    return clock->ask && !clock->ask(clock->device, SM_CLOCK, &mhz) ? mhz : 0;
}
