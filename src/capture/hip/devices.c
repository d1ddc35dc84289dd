/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices are the GPU agents in the order of the runtime, which is HIP's order too unless the
 * program chooses devices by HIP_VISIBLE_DEVICES. The runtime converts the times of devices to its
 * own clock; that clock is compared with the host's ten times a second, by the narrowest of some
 * readings.
 */
#include "capture/hip/hip.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DEVICES   64
#define READINGS  8
#define WIDTH_MAX 2000 /* ns */

static uint64_t agents[DEVICES];
static uint32_t nagents;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t frequency = 1000000000, clock_ticks, clock_ns;

static int add_pool(uint64_t pool, void *data)
{
    uint32_t segment = UINT32_MAX;
    size_t size = 0;

    rp_hip.amd_memory_pool_get_info(pool, RP_HSA_POOL_SEGMENT, &segment);
    if (segment == RP_HSA_SEGMENT_GLOBAL &&
        !rp_hip.amd_memory_pool_get_info(pool, RP_HSA_POOL_SIZE, &size) && size > *(size_t *)data)
        *(size_t *)data = size; /* fine and coarse grained pools belong to the same memory */
    return 0;
}

static int add_agent(uint64_t agent, void *data)
{
    uint32_t type = UINT32_MAX;

    (void)data;
    if (rp_hip.agent_get_info(agent, RP_HSA_AGENT_DEVICE, &type) || type != RP_HSA_DEVICE_GPU ||
        nagents == DEVICES)
        return 0;
    agents[nagents] = agent;

    /* What the runtime says about the device. */
    uint32_t id = nagents++;
    char key[40], text[160], name[65] = "", product[65] = "";
    uint32_t units = 0, mhz = 0;
    size_t bytes = 0;
    rp_hip.agent_get_info(agent, RP_HSA_AGENT_NAME, name);
    rp_hip.agent_get_info(agent, RP_HSA_AGENT_PRODUCT, product);
    rp_hip.agent_get_info(agent, RP_HSA_AGENT_COMPUTE_UNITS, &units);
    rp_hip.agent_get_info(agent, RP_HSA_AGENT_CLOCK_MHZ, &mhz);
    rp_hip.amd_agent_iterate_memory_pools(agent, add_pool, &bytes);
    snprintf(key, sizeof key, "hip.device.%u.size", id);
    snprintf(text, sizeof text, "%zu bytes, %u multiprocessors", bytes, units);
    rp_hip.cap->fact(key, text); /* written before the name, which completes the device */
    snprintf(key, sizeof key, "hip.device.%u.clocks", id);
    snprintf(text, sizeof text, "%u MHz", mhz);
    rp_hip.cap->fact(key, text);
    snprintf(key, sizeof key, "hip.device.%u.isa", id);
    rp_hip.cap->fact(key, name);
    snprintf(key, sizeof key, "hip.device.%u", id);
    rp_hip.cap->fact(key, product[0] ? product : name);
    return 0;
}

void rp_hip_devices_find(void)
{
    nagents = 0; /* a program may start the runtime again */
    rp_hip.iterate_agents(add_agent, NULL);
    if (rp_hip.system_get_info(RP_HSA_SYSTEM_FREQUENCY, &frequency) || !frequency)
        frequency = 1000000000;
}

bool rp_hip_device_of(uint64_t agent, uint32_t *device)
{
    for (uint32_t i = 0; i < nagents; i++) {
        if (agents[i] == agent) {
            *device = i;
            return true;
        }
    }
    return false;
}

/* -------------------------------------------------------------------------- the clock */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void rp_hip_clock_read(void)
{
    uint64_t width = UINT64_MAX, ticks = 0, ns = 0;

    for (int i = 0; i < READINGS; i++) {
        uint64_t before = now_ns(), at = 0;

        if (rp_hip.system_get_info(RP_HSA_SYSTEM_TIMESTAMP, &at))
            return;
        uint64_t after = now_ns();
        if (after - before < width) {
            width = after - before;
            ticks = at;
            ns = before + width / 2;
        }
    }
    pthread_mutex_lock(&lock);
    if (width <= WIDTH_MAX || !clock_ns) { /* otherwise the thread was interrupted each time */
        clock_ticks = ticks;
        clock_ns = ns;
    }
    pthread_mutex_unlock(&lock);
}

uint64_t rp_hip_clock_ns(uint64_t ticks)
{
    uint64_t ns;

    pthread_mutex_lock(&lock);
    if (frequency == 1000000000) {
        ns = clock_ns + (ticks - clock_ticks);
    } else {
        double apart = (double)(int64_t)(ticks - clock_ticks) * (1e9 / (double)frequency);
        ns = apart > -9e18 && apart < 9e18 ? clock_ns + (uint64_t)(int64_t)apart : 0;
    }
    pthread_mutex_unlock(&lock);
    return ns;
}
