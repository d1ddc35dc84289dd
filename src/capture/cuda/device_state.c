/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the device that this process uses, once a second: its clock, power, temperature and
 * memory, and how long its power limit or heat held it back. A recording has them as counters, and
 * a job with signals (--light) in its metrics. From NVML, which is loaded when the first kernel is
 * known; CUDA's number of a device is not NVML's, so the device is found by its address on the bus.
 * The driver handles one such call at a time, and launches may wait for it, so only a few are made,
 * and none that lists processes.
 */
#include "capture/cuda/cuda.h"

#include <dlfcn.h>
#include <string.h>

#define TICKS        10 /* ticks of the recorder between two measurements */
#define SM_CLOCK     1
#define MEMORY_CLOCK 2
#define OF_GPU       0  /* the sensor of temperatures */
#define BY_POWER     74 /* fields: ns for which the clock was lower, since the driver was loaded */
#define BY_HEAT      75
#define TYPE_ULL     3
#define XID          8 /* events: the driver reports an error of the device */

struct field_value { /* of NVML */
    unsigned id, scope;
    long long timestamp, latency;
    int type, code;
    unsigned long long value;
};
_Static_assert(sizeof(struct field_value) == 40, "as in nvml.h");

struct event { /* of NVML */
    void *device;
    unsigned long long type, number;
    unsigned instances[2];
};

static struct {
    bool opened, usable;
    unsigned ticks;
    void *device;
    unsigned long long limited[2]; /* as last seen */
    bool seen[2];
    int (*clock)(void *device, int type, unsigned *mhz);
    int (*power)(void *device, unsigned *milliwatts);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*memory)(void *device, unsigned long long bytes[3]); /* all, free, used */
    int (*fields)(void *device, int n, struct field_value *values);
    int (*wait)(void *set, struct event *out, unsigned ms);
    void *errors; /* the set of events */
    int (*shut_down)(void);
} nvml;

static void *symbol(void *handle, const char *name)
{
    return handle ? dlsym(handle, name) : NULL;
}

/* Returns why the state of the device cannot be told, or NULL. */
static const char *open_nvml(int device)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *library = driver ? dlopen("libnvidia-ml.so.1", RTLD_NOW) : NULL;
    int (*address_of)(char *to, int size, int of), (*init)(void), (*find)(const char *, void **);
    char address[32] = "";

    *(void **)&address_of = symbol(driver, "cuDeviceGetPCIBusId");
    *(void **)&init = symbol(library, "nvmlInit_v2");
    *(void **)&find = symbol(library, "nvmlDeviceGetHandleByPciBusId_v2");
    *(void **)&nvml.clock = symbol(library, "nvmlDeviceGetClockInfo");
    *(void **)&nvml.power = symbol(library, "nvmlDeviceGetPowerUsage");
    *(void **)&nvml.temperature = symbol(library, "nvmlDeviceGetTemperature");
    *(void **)&nvml.memory = symbol(library, "nvmlDeviceGetMemoryInfo");
    *(void **)&nvml.fields = symbol(library, "nvmlDeviceGetFieldValues");
    *(void **)&nvml.shut_down = symbol(library, "nvmlShutdown");
    if (!driver || !library)
        return driver ? "libnvidia-ml.so.1 cannot be loaded" : "libcuda.so.1 is not loaded";
    if (!address_of || !init || !find)
        return "the driver's libraries are too old";
    if (address_of(address, sizeof address, device))
        return "the driver does not tell the device's address";
    if (init())
        return "NVML cannot be initialised";
    if (find(address, &nvml.device))
        return "NVML does not know the device's address";

    /* Errors are told from now on, where the driver can tell them. */
    int (*create)(void **), (*subscribe)(void *, unsigned long long, void *);
    *(void **)&create = symbol(library, "nvmlEventSetCreate");
    *(void **)&subscribe = symbol(library, "nvmlDeviceRegisterEvents");
    *(void **)&nvml.wait = symbol(library, "nvmlEventSetWait_v2");
    if (!create || !subscribe || create(&nvml.errors) || subscribe(nvml.device, XID, nvml.errors))
        nvml.wait = NULL;
    return NULL;
}

static void tell(enum rp_capture_signal which, uint64_t value, const char *counter, double shown)
{
    if (rp_cuda.cap->signals())
        rp_cuda.cap->signal(which, value);
    if (counter && rp_cuda.cap->active())
        rp_cuda.cap->counter(counter, shown);
}

/* Called ten times a second on the recorder's thread. */
static void look(void)
{
    unsigned long long bytes[3];
    uint32_t device = atomic_load(&rp_cuda.device);
    unsigned number;

    if (!device || rp_cuda.cap->sealed() || rp_cuda.cap->process_id() != rp_cuda.process ||
        nvml.ticks++ % TICKS)
        return;
    if (!nvml.opened) {
        const char *why = open_nvml((int)device - 1);

        nvml.opened = true;
        nvml.usable = !why;
        rp_cuda.cap->fact("cuda.state", why ? why : "told by NVML");
    }
    if (!nvml.usable)
        return;
    if (nvml.clock && !nvml.clock(nvml.device, SM_CLOCK, &number))
        tell(RP_CAPTURE_DEVICE_CLOCK, number, "device clock (MHz)", number);
    if (nvml.clock && rp_cuda.cap->active() && !nvml.clock(nvml.device, MEMORY_CLOCK, &number))
        rp_cuda.cap->counter("device memory clock (MHz)", number);
    if (nvml.power && !nvml.power(nvml.device, &number))
        tell(RP_CAPTURE_DEVICE_POWER, number / 1000, "device power (W)", number / 1e3);
    if (nvml.temperature && rp_cuda.cap->active() &&
        !nvml.temperature(nvml.device, OF_GPU, &number))
        rp_cuda.cap->counter("device temperature (C)", number);
    if (nvml.memory && rp_cuda.cap->signals() && !nvml.memory(nvml.device, bytes))
        rp_cuda.cap->signal(RP_CAPTURE_DEVICE_MEMORY, bytes[2]);

    /* Reports what grew since the last measurement. */
    static const enum rp_capture_signal which[2] = {RP_CAPTURE_LIMITED_BY_POWER,
                                                    RP_CAPTURE_LIMITED_BY_HEAT};
    static const char *const counters[2] = {"device held back by its power limit (ms)",
                                            "device held back by heat (ms)"};
    struct field_value v[2] = {{.id = BY_POWER}, {.id = BY_HEAT}};
    if (nvml.fields && !nvml.fields(nvml.device, 2, v)) {
        for (int i = 0; i < 2; i++) {
            if (v[i].code || v[i].type != TYPE_ULL)
                continue;
            if (nvml.seen[i] && v[i].value > nvml.limited[i])
                tell(which[i], v[i].value - nvml.limited[i], counters[i],
                     (double)(v[i].value - nvml.limited[i]) / 1e6);
            nvml.limited[i] = v[i].value;
            nvml.seen[i] = true;
        }
    }
    struct event e = {0};
    while (nvml.wait && !nvml.wait(nvml.errors, &e, 0))
        if (e.device == nvml.device && rp_cuda.cap->active())
            rp_cuda.cap->counter("device error (Xid)", (double)e.number);
}

void rp_cuda_watch_device(void)
{
    if (!rp_cuda_option_is("cuda.state", "off"))
        rp_cuda.cap->source("cuda", look, NULL);
}

/* The files that NVML has opened are those of the core's thread, which ends. */
void rp_cuda_forget_device(void)
{
    if (nvml.usable && nvml.shut_down)
        nvml.shut_down();
    memset(&nvml, 0, sizeof nvml);
}
