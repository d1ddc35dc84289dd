/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HSA side of the hip library is a tools library of AMD's HSA runtime (HSA_TOOLS_LIB). OnLoad
 * checks the versions and sizes of the runtime's tables, keeps their functions and replaces some:
 *
 *   queues          are created with interception and profiling; work.c follows their dispatches
 *   copies          get a signal of ours (work.c)
 *   executables     tell the names of their kernels when they are frozen (names.c)
 *   calls           that allocate, copy or wait are recorded, in programs without HIP
 *
 * Tables that do not fit are left alone, with a warning and the fact hip.unavailable.
 */
#include "capture/hip/hip.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct rp_hip rp_hip;
static uint32_t loaded_in; /* process_id at the time, because a child of fork has no runtime */

/* -------------------------------------------------------------------------- calls */

static bool call_begin(const char *name)
{
    if (rp_hip.no_calls || (rp_hip.uses_hip && !rp_hip.all_calls) || !rp_hip.cap->ready())
        return false;
    rp_hip.cap->enter(
        &(struct rp_capture_enter){.kind = RP_CTF_KIND_RUNTIME, .name = name, .category = "hsa"});
    return true;
}

static void call_end(bool begun, int64_t result)
{
    if (begun)
        rp_hip.cap->leave(0, result);
}

/* A call that starts a copy; outside a HIP call it has a link of its own. */
struct copy_call {
    const char *name;
    bool begun, linked;
    uint64_t began;
};

static struct copy_call copy_call_begin(const char *name)
{
    struct rp_hip_call *call = rp_hip_current();
    struct copy_call c = {.name = name};

    c.linked = !call->link && !call->depth && !rp_hip.no_calls && rp_hip.cap->ready();
    if (c.linked) {
        call->link = rp_hip_link();
        call->stream = RP_HIP_COPY_STREAM;
        c.began = rp_hip.cap->now();
    } else {
        c.begun = call_begin(name);
    }
    return c;
}

static void copy_call_end(const struct copy_call *c, int code)
{
    struct rp_hip_call *call = rp_hip_current();

    if (c->linked) {
        rp_hip_call_put(c->name, "hsa", c->began, code ? 0 : call->link);
        call->link = 0;
    }
    call_end(c->begun, code);
}

#define PLAIN_CALL(name, result, params, args) \
    static result tool_##name params           \
    {                                          \
        bool begun = call_begin("hsa_" #name); \
        result code = rp_hip.name args;        \
                                               \
        call_end(begun, (int64_t)code);        \
        return code;                           \
    }

#define PLAIN_CALLS(F)                                                                            \
    F(queue_destroy, int, (void *queue), (queue))                                                 \
    F(memory_allocate, int, (uint64_t region, size_t size, void **out), (region, size, out))      \
    F(memory_free, int, (void *at), (at))                                                         \
    F(memory_copy, int, (void *to, const void *from, size_t size), (to, from, size))              \
    F(signal_wait_relaxed, int64_t,                                                               \
      (uint64_t signal, uint32_t condition, int64_t value, uint64_t timeout, uint32_t hint),      \
      (signal, condition, value, timeout, hint))                                                  \
    F(signal_wait_scacquire, int64_t,                                                             \
      (uint64_t signal, uint32_t condition, int64_t value, uint64_t timeout, uint32_t hint),      \
      (signal, condition, value, timeout, hint))                                                  \
    F(executable_load_agent_code_object, int,                                                     \
      (uint64_t executable, uint64_t agent, uint64_t reader, const char *options, uint64_t *out), \
      (executable, agent, reader, options, out))

#define PLAIN_AMD_CALLS(F)                                                                      \
    F(amd_memory_pool_allocate, int, (uint64_t pool, size_t size, uint32_t flags, void **out),  \
      (pool, size, flags, out))                                                                 \
    F(amd_memory_pool_free, int, (void *at), (at))                                              \
    F(amd_memory_lock, int, (void *at, size_t size, uint64_t *agents, int nagents, void **out), \
      (at, size, agents, nagents, out))                                                         \
    F(amd_memory_unlock, int, (void *at), (at))                                                 \
    F(amd_memory_fill, int, (void *at, uint32_t value, size_t count), (at, value, count))

PLAIN_CALLS(PLAIN_CALL)
PLAIN_AMD_CALLS(PLAIN_CALL)

static int tool_executable_freeze(uint64_t executable, const char *options)
{
    bool begun = call_begin("hsa_executable_freeze");
    int code = rp_hip.executable_freeze(executable, options);

    if (!code)
        rp_hip_names_add(executable);
    call_end(begun, code);
    return code;
}

/* -------------------------------------------------------------------------- queues */

/* The queue is usable if it exists, intercepted or not. */
static int tool_queue_create(uint64_t agent, uint32_t size, uint32_t type,
                             void (*on_error)(int, void *, void *), void *data,
                             uint32_t private_bytes, uint32_t group_bytes, void **queue)
{
    bool begun = call_begin("hsa_queue_create");
    uint32_t device;
    void *ours = rp_hip_device_of(agent, &device) ? rp_hip_queue_new(agent, device) : NULL;
    int code = RP_HSA_ERROR;

    if (ours && !atomic_load(&rp_hip.agent))
        atomic_store(&rp_hip.agent, agent);
    if (ours)
        code = rp_hip.amd_queue_intercept_create(agent, size, type, on_error, data, private_bytes,
                                                 group_bytes, queue);
    if (ours && (code || rp_hip.amd_profiling_set_profiler_enabled(*queue, 1) ||
                 rp_hip.amd_queue_intercept_register(*queue, rp_hip_intercept, ours))) {
        static atomic_flag said = ATOMIC_FLAG_INIT;
        if (!atomic_flag_test_and_set(&said)) {
            rp_hip.cap->fact("hip.unavailable", "a queue could not be intercepted");
            rp_hip.cap->warn(
                "hip: the runtime refused to intercept a queue: its kernels are not recorded");
        }
    }
    if (code)
        code = rp_hip.queue_create(agent, size, type, on_error, data, private_bytes, group_bytes,
                                   queue);
    call_end(begun, code);
    return code;
}

/* -------------------------------------------------------------------------- copies */

static int tool_amd_memory_async_copy(void *to, uint64_t to_agent, const void *from,
                                      uint64_t from_agent, size_t size, uint32_t nwaits,
                                      const uint64_t *waits, uint64_t signal)
{
    struct copy_call call = copy_call_begin("hsa_amd_memory_async_copy");
    struct rp_hip_work *work =
        rp_hip_copy_begin(&(struct rp_hip_copy){to_agent, from_agent, size}, &signal);
    int code =
        rp_hip.amd_memory_async_copy(to, to_agent, from, from_agent, size, nwaits, waits, signal);

    rp_hip_copy_end(work, code);
    copy_call_end(&call, code);
    return code;
}

static int tool_amd_memory_async_copy_on_engine(void *to, uint64_t to_agent, const void *from,
                                                uint64_t from_agent, size_t size, uint32_t nwaits,
                                                const uint64_t *waits, uint64_t signal,
                                                uint32_t engine, bool force)
{
    struct copy_call call = copy_call_begin("hsa_amd_memory_async_copy_on_engine");
    struct rp_hip_work *work =
        rp_hip_copy_begin(&(struct rp_hip_copy){to_agent, from_agent, size}, &signal);
    int code = rp_hip.amd_memory_async_copy_on_engine(to, to_agent, from, from_agent, size, nwaits,
                                                      waits, signal, engine, force);

    rp_hip_copy_end(work, code);
    copy_call_end(&call, code);
    return code;
}

/* The agents of a rectangle are known from its direction: 0 host to host, 1 host to device, 2
   device to host, 3 device to device. */
static int tool_amd_memory_async_copy_rect(const void *to, const void *to_offset, const void *from,
                                           const void *from_offset, const uint32_t *range,
                                           uint64_t agent, uint32_t direction, uint32_t nwaits,
                                           const uint64_t *waits, uint64_t signal)
{
    struct copy_call call = copy_call_begin("hsa_amd_memory_async_copy_rect");
    struct rp_hip_copy copy = {.to_agent = direction & 1 ? agent : 0,
                               .from_agent = direction & 2 ? agent : 0,
                               .bytes = range ? (uint64_t)range[0] * range[1] * range[2] : 0};
    struct rp_hip_work *work = rp_hip_copy_begin(&copy, &signal);
    int code = rp_hip.amd_memory_async_copy_rect(to, to_offset, from, from_offset, range, agent,
                                                 direction, nwaits, waits, signal);

    rp_hip_copy_end(work, code);
    copy_call_end(&call, code);
    return code;
}

/* The runtime knows the times of a copy by the signal that it was given, which is ours; the
   program's signal got the times when it was completed. */
static int tool_amd_profiling_get_async_copy_time(uint64_t signal, struct rp_hsa_times *times)
{
    const struct rp_hsa_signal *theirs = (const void *)(uintptr_t)signal;
    int code = rp_hip.amd_profiling_get_async_copy_time(signal, times);

    if (!code || !theirs || !times || theirs->kind != RP_HSA_SIGNAL_USER || !theirs->start)
        return code;
    *times = (struct rp_hsa_times){theirs->start, theirs->end};
    return 0;
}

/* Profiling stays on, because we need it. */
static int tool_amd_profiling_async_copy_enable(bool enable)
{
    (void)enable;
    return rp_hip.amd_profiling_async_copy_enable(true);
}

/* -------------------------------------------------------------------------- start and end */

static void on_tick(void)
{
    if (!rp_hip.loaded || rp_hip.cap->process_id() != loaded_in)
        return;
    rp_hip_clock_read();
    rp_hip_state_look();
}

static void on_exit_process(void)
{
    if (rp_hip.loaded && rp_hip.cap->process_id() == loaded_in)
        rp_hip_wait_for_all();
}

static int tool_shut_down(void)
{
    on_exit_process();
    bool begun = call_begin("hsa_shut_down");
    int code = rp_hip.shut_down();
    call_end(begun, code);
    return code;
}

static void hip_begin_once(void)
{
    const struct rp_capture *cap = rp_capture_get();

    if (!cap || !cap->source("hip", on_tick, on_exit_process))
        return;
    const char *calls = cap->option("hip.calls");
    rp_hip.all_calls = calls && !strcmp(calls, "all");
    rp_hip.no_calls = calls && !strcmp(calls, "none");
    rp_hip.cap = cap;
}

bool rp_hip_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, hip_begin_once);
    return rp_hip.cap != NULL;
}

/* -------------------------------------------------------------------------- tables */

static bool table_fits(const struct rp_hsa_table *t, uint32_t major_max, uint32_t count)
{
    return t && t->version.major >= 1 && t->version.major <= major_max &&
           t->version.minor >= sizeof t->version + count * sizeof t->functions[0];
}

static uint32_t place_in_amd(const struct rp_hsa_table *amd, uint32_t number)
{
    return number + (number > RP_HSA_amd_memory_async_copy && amd->version.major > 1 ? 2 : 0);
}

static bool tables_fit(const struct rp_hsa_tables *t)
{
    if (t->version.major < 1 || t->version.major > RP_HSA_TABLES_MAJOR_MAX ||
        t->version.minor < sizeof *t ||
        !table_fits(t->core, RP_HSA_CORE_MAJOR_MAX, RP_HSA_executable_load_agent_code_object + 1) ||
        !table_fits(t->amd, RP_HSA_AMD_MAJOR_MAX, 1) ||
        (t->amd->version.major == 1 && t->amd->version.minor > RP_HSA_AMD_1_BYTES))
        return false;
    return table_fits(t->amd, RP_HSA_AMD_MAJOR_MAX,
                      place_in_amd(t->amd, RP_HSA_amd_memory_async_copy_rect) + 1);
}

static void say_unknown(const struct rp_hsa_tables *t)
{
    char text[256];

    snprintf(text, sizeof text, "tables %u.%u, core %u.%u, amd %u.%u", t->version.major,
             t->version.minor, t->core ? t->core->version.major : 0,
             t->core ? t->core->version.minor : 0, t->amd ? t->amd->version.major : 0,
             t->amd ? t->amd->version.minor : 0);
    rp_hip.cap->fact("hip.unavailable", text);
    snprintf(text, sizeof text,
             "hip: this version of the HSA runtime is not known (core table %u.%u, AMD table "
             "%u.%u): kernels and copies are not recorded",
             t->core ? t->core->version.major : 0, t->core ? t->core->version.minor : 0,
             t->amd ? t->amd->version.major : 0, t->amd ? t->amd->version.minor : 0);
    rp_hip.cap->warn(text);
}

static bool functions_take(const struct rp_hsa_tables *t)
{
    bool complete = true;

#define TAKE_CORE(name, result, params)                         \
    *(void **)&rp_hip.name = t->core->functions[RP_HSA_##name]; \
    complete = complete && rp_hip.name;
#define TAKE_AMD(name, result, params)                                               \
    *(void **)&rp_hip.name = t->amd->functions[place_in_amd(t->amd, RP_HSA_##name)]; \
    complete = complete && rp_hip.name;
    RP_HIP_CORE_FUNCTIONS(TAKE_CORE)
    RP_HIP_AMD_FUNCTIONS(TAKE_AMD)
    if (t->amd->version.major > 1)
        *(void **)&rp_hip.amd_memory_async_copy_on_engine =
            t->amd->functions[RP_HSA_AMD_2_ASYNC_COPY_ON_ENGINE];
    return complete;
}

static void functions_replace(const struct rp_hsa_tables *t)
{
#define IN_CORE(name, ...) t->core->functions[RP_HSA_##name] = (void *)tool_##name;
#define IN_AMD(name, ...) \
    t->amd->functions[place_in_amd(t->amd, RP_HSA_##name)] = (void *)tool_##name;
    PLAIN_CALLS(IN_CORE)
    PLAIN_AMD_CALLS(IN_AMD)
    IN_CORE(shut_down)
    IN_CORE(queue_create)
    IN_CORE(executable_freeze)
    IN_AMD(amd_memory_async_copy)
    IN_AMD(amd_memory_async_copy_rect)
    IN_AMD(amd_profiling_get_async_copy_time)
    IN_AMD(amd_profiling_async_copy_enable)
    if (rp_hip.amd_memory_async_copy_on_engine)
        t->amd->functions[RP_HSA_AMD_2_ASYNC_COPY_ON_ENGINE] =
            (void *)tool_amd_memory_async_copy_on_engine;
}

EXPORT bool OnLoad(struct rp_hsa_tables *tables, uint64_t version, uint64_t nfailed,
                   const char *const *failed);
EXPORT void OnUnload(void);

/* Returns true, because otherwise the runtime would unload the library and report that. */
bool OnLoad(struct rp_hsa_tables *tables, uint64_t version, uint64_t nfailed,
            const char *const *failed)
{
    (void)version, (void)nfailed, (void)failed;
    if (!tables || !rp_hip_begin())
        return true;
    if (!tables_fit(tables) || !functions_take(tables)) {
        say_unknown(tables);
        return true;
    }
    loaded_in = rp_hip.cap->process_id();
    rp_hip_work_reset();
    rp_hip_devices_find();
    rp_hip_clock_read();
    rp_hip.amd_profiling_async_copy_enable(true);
    functions_replace(tables);
    rp_hip.loaded = true;
    return true;
}

/* The runtime has ended; it may be started again. */
void OnUnload(void)
{
    rp_hip.loaded = false;
}
