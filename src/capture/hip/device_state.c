/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the device that this process uses, once a second: its clocks, power and temperature,
 * as counters with the names of those of NVIDIA's devices (cuda/device_state.c). They are read from
 * the files of the driver (hwmon). The library for them, amdsmi, reads the same files, and the
 * layout of its structures changes from release to release.
 */
#include "capture/hip/hip.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICKS 10 /* ticks of the recorder between two measurements */

static struct {
    bool opened;
    unsigned ticks;
    char folder[400]; /* "" if the driver has none */
} state;

/* Records the first of two files that exists, in another unit. */
static void tell(const char *counter, const char *file, const char *other, double unit)
{
    const char *names[] = {file, other};
    char path[480], text[32];

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", state.folder, names[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
            close(fd);
        if (n <= 0)
            continue;
        text[n] = '\0';
        rp_hip.cap->counter(counter, (double)strtoll(text, NULL, 10) / unit);
        return;
    }
}

void rp_hip_state_look(void)
{
    uint64_t agent = atomic_load(&rp_hip.agent);

    if (!agent || !rp_hip.cap->active() || state.ticks++ % TICKS)
        return;
    if (!state.opened) {
        state.opened = true;

        /* The folder of the device in /sys, by its address. */
        const char *root = getenv("REPRISE_TEST_SYSFS");
        uint32_t place = 0, domain = 0;
        char parent[320];
        if (!rp_hip.agent_get_info(agent, RP_HSA_AGENT_BDF, &place) &&
            !rp_hip.agent_get_info(agent, RP_HSA_AGENT_DOMAIN, &domain)) {
            snprintf(parent, sizeof parent, "%.200s/bus/pci/devices/%04x:%02x:%02x.%x/hwmon",
                     root ? root : "/sys", domain, place >> 8 & 0xff, place >> 3 & 0x1f, place & 7);
            DIR *dir = opendir(parent);
            for (struct dirent *e; dir && (e = readdir(dir));)
                if (!strncmp(e->d_name, "hwmon", 5))
                    snprintf(state.folder, sizeof state.folder, "%s/%.32s", parent, e->d_name);
            if (dir)
                closedir(dir);
        }
    }
    if (!state.folder[0])
        return;
    tell("device clock (MHz)", "freq1_input", "freq1_input", 1e6);
    tell("device memory clock (MHz)", "freq2_input", "freq2_input", 1e6);
    tell("device power (W)", "power1_average", "power1_input", 1e6);
    tell("device temperature (C)", "temp1_input", "temp2_input", 1e3);
}
