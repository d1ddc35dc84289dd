/* SPDX-License-Identifier: Apache-2.0 */
/* A double of libnvidia-ml.so.1: one device, at the address that the double of libcuda tells. Its
   time held back by heat grows with each look; that by its power limit is not known. */
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

int nvmlDeviceGetClockInfo(void *of, int type, unsigned *mhz)
{
    const char *set = getenv("FAKE_NVML_CLOCK");

    *mhz = type == 1 && of == &device ? set ? (unsigned)atoi(set) : 1755 : 0;
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
