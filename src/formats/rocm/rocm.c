/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/rocm/rocm.h"
#include "base/order.h"

#include <stdio.h>
#include <stdlib.h>

enum rp_activity_kind rp_rocm_call_kind(const char *domain, const char *name)
{
    if (strstr(domain, "MARKER") || strcasestr(domain, "ROCTX"))
        return RP_ACTIVITY_ANNOTATION;
    if (strstr(domain, "RCCL"))
        return rp_activity_collective(name) ? RP_ACTIVITY_COLLECTIVE : RP_ACTIVITY_CALL;
    if (!strncmp(domain, "HIP", 3))
        return RP_ACTIVITY_RUNTIME;
    return strncmp(domain, "HSA", 3) != 0 ? RP_ACTIVITY_CALL : RP_ACTIVITY_DRIVER;
}

const char *rp_rocm_copy_name(const char *direction)
{
    static const struct {
        const char *sdk, *rpd, *name;
    } names[] = {{"HOST_TO_DEVICE", "HostToDevice", "Memcpy HtoD (Host -> Device)"},
                 {"DEVICE_TO_HOST", "DeviceToHost", "Memcpy DtoH (Device -> Host)"},
                 {"DEVICE_TO_DEVICE", "DeviceToDevice", "Memcpy DtoD (Device -> Device)"},
                 {"HOST_TO_HOST", "HostToHost", "Memcpy HtoH (Host -> Host)"}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(direction, names[i].sdk) || strstr(direction, names[i].rpd))
            return names[i].name;
    return "Memcpy";
}

enum rp_code rp_rocm_dims(struct rp_activity *a, struct rp_activity_event *e, const int64_t grid[3],
                          const int64_t group[3], struct rp_err *err)
{
    int64_t blocks[3];

    for (int i = 0; i < 3; i++)
        blocks[i] = group[i] > 0 ? grid[i] / group[i] + (grid[i] % group[i] > 0) : grid[i];
    RP_TRY(rp_activity_dims(a, e, "grid", blocks, err));
    return rp_activity_dims(a, e, "block", group, err);
}

/* Adds a hardware counter of a kernel as the argument "counter NAME", like `record --counters`. */
static enum rp_code rocm_counter(struct rp_activity *a, struct rp_activity_event *e,
                                 const char *name, double value, struct rp_err *err)
{
    char text[160];
    int n = snprintf(text, sizeof text, "counter %.140s", name);
    struct rp_arg *arg = &e->args[e->nargs];

    if (e->nargs >= RP_ACTIVITY_ARGS - 4)
        return RP_OK;
    *arg = (struct rp_arg){.type = RP_ARG_F64, .v.f = value};
    e->nargs++;
    return rp_activity_intern(a, text, (size_t)n, &arg->key, err);
}

RP_ORDER(by_kernel, struct rp_rocm_value, RP_UP(kernel), RP_UP(counter))

void rp_rocm_values_sort(struct rp_rocm_values *values)
{
    rp_sort(values->all.at, values->all.n, sizeof *values->all.at, by_kernel);
}

size_t rp_rocm_values_first(const struct rp_rocm_values *values, int64_t kernel)
{
    size_t i;

    RP_LOWER_BOUND(i, values->all.n, values->all.at[i].kernel < kernel);
    return i;
}

enum rp_code rp_rocm_values_add(const struct rp_rocm_values *values, struct rp_activity *a,
                                int64_t kernel, struct rp_activity_event *e, struct rp_err *err)
{
    size_t n;

    if (!values->all.n)
        return RP_OK;
    const struct rp_rocm_value *at = values->all.at + rp_rocm_values_first(values, kernel);
    const struct rp_rocm_value *end = values->all.at + values->all.n;
    while (at < end && at->kernel == kernel) {
        int64_t counter = at->counter;
        double sum = 0;

        for (; at < end && at->kernel == kernel && at->counter == counter; at++)
            sum += at->value;
        RP_TRY(rocm_counter(a, e, rp_texts_borrow(&values->names, counter, &n), sum, err));
    }
    return RP_OK;
}

void rp_rocm_values_release(struct rp_rocm_values *values)
{
    rp_texts_release(&values->names);
    rp_vec_release(&values->all);
}

enum rp_code rp_rocm_name_call(struct rp_activity *a, struct rp_activity_event *e, const char *name,
                               size_t n, struct rp_err *err)
{
    const char *collective =
        e->kind == RP_ACTIVITY_COLLECTIVE ? rp_activity_collective(name) : NULL;
    rp_str word;

    RP_TRY(rp_activity_intern(a, name, n, &e->name, err));
    if (!collective)
        return RP_OK;
    RP_TRY(rp_proto_trace_word(&a->t, collective, &word, err));
    return rp_activity_text(a, e, "Collective name", word, err);
}

const char *rp_rocm_dtype(const char *text)
{
    static const struct {
        const char *rccl, *name;
    } types[] = {{"ncclInt8", "Char"},         {"ncclUint8", "Byte"},    {"ncclInt32", "Int"},
                 {"ncclUint32", "Int"},        {"ncclInt64", "Long"},    {"ncclUint64", "Long"},
                 {"ncclFloat16", "Half"},      {"ncclFloat32", "Float"}, {"ncclFloat64", "Double"},
                 {"ncclBfloat16", "BFloat16"}, {"ncclChar", "Char"},     {"ncclInt", "Int"},
                 {"ncclHalf", "Half"},         {"ncclFloat", "Float"},   {"ncclDouble", "Double"}};
    char *end;
    long number = strtol(text, &end, 10);

    if (end != text && !*end)
        return number >= 0 && number < 10 ? types[number].name : NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(text, types[i].rccl))
            return types[i].name;
    return NULL;
}
