/* SPDX-License-Identifier: Apache-2.0 */
/* A double of libnvidia-ml.so.1: one device, at the address that the double of libcuda tells. Its
   time held back by heat grows with each look; that by its power limit is not known. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct field_value {
    unsigned id, scope;
    long long timestamp, latency;
    int type, code;
    unsigned long long value;
};

static int device;

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **to)
{
    *to = &device;
    return strcmp(address, "0000:1B:00.0") ? 6 : 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **to)
{
    *to = &device;
    return strcmp(uuid, "GPU-stub") ? 6 : 0;
}

/* Programs may change the clock in a file. */
static int clock_in(const char *path, unsigned *mhz)
{
    FILE *f = path ? fopen(path, "re") : NULL;
    int n = f ? fscanf(f, "%u", mhz) : 0;

    if (f)
        fclose(f);
    return n == 1;
}

int nvmlDeviceGetClockInfo(void *of, int type, unsigned *mhz)
{
    const char *set = getenv("FAKE_NVML_CLOCK");

    if (clock_in(getenv("FAKE_NVML_FILE"), mhz))
        return 0;

    *mhz = type == 2 ? 3201 : type == 1 && of == &device ? set ? (unsigned)atoi(set) : 1755 : 0;
    return 0;
}

int nvmlDeviceGetPowerUsage(void *of, unsigned *milliwatts)
{
    *milliwatts = of == &device ? 612000 : 0;
    return 0;
}

int nvmlDeviceGetTemperature(void *of, int sensor, unsigned *celsius)
{
    *celsius = 84;
    return of != &device || sensor;
}

int nvmlDeviceGetMemoryInfo(void *of, unsigned long long bytes[3])
{
    bytes[0] = 3ull << 30;
    bytes[1] = 1ull << 30;
    bytes[2] = 2ull << 30;
    return of != &device;
}

int nvmlDeviceGetFieldValues(void *of, int n, struct field_value *values)
{
    static unsigned long long heat = 1000000000;

    for (int i = 0; i < n; i++) {
        values[i].type = 3;
        values[i].code = values[i].id == 75 ? 0 : 3;
        values[i].value = heat;
    }
    heat += 250000000;
    return of != &device;
}

struct event {
    void *device;
    unsigned long long type, number;
    unsigned instances[2];
};

int nvmlEventSetCreate(void **set)
{
    *set = &device;
    return 0;
}

int nvmlDeviceRegisterEvents(void *of, unsigned long long types, void *set)
{
    return of != &device || types != 8 || set != &device;
}

/* One error, soon. */
int nvmlEventSetWait_v2(void *set, struct event *out, unsigned ms)
{
    static int told;

    if (set != &device || ms || told++ || !getenv("FAKE_NVML_XID"))
        return 10; /* NVML_ERROR_TIMEOUT */
    *out = (struct event){&device, 8, 79, {0, 0}};
    return 0;
}
