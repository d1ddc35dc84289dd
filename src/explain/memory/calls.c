/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up calls of the runtime that allocate, map and free memory. */
#include "explain/memory/memory.h"

#include "base/order.h"

#include <stdlib.h>
#include <string.h>

/* Beginnings of names, longer ones first. `waits`: the call returns only when the device is
   idle. */
static const struct {
    const char *name;
    bool waits;
} allocating[] = {{"cudaMallocHost", false},  {"cudaFreeHost", true},   {"cudaHostAlloc", false},
                  {"cudaMallocAsync", false}, {"cudaFreeAsync", false}, {"cudaMalloc", false},
                  {"cudaFree", true},         {"hipHostMalloc", false}, {"hipHostFree", true},
                  {"hipMallocAsync", false},  {"hipFreeAsync", false},  {"hipMalloc", false},
                  {"hipFree", true},          {"cuMemCreate", false},   {"cuMemMap", false},
                  {"cuMemUnmap", true},       {"cuMemRelease", false},  {"cuMemAlloc", false},
                  {"cuMemFree", true},        {"hipMemCreate", false},  {"hipMemMap", false},
                  {"hipMemUnmap", true}};

#define NCALLS (sizeof allocating / sizeof *allocating)

static size_t call_kind(const char *name)
{
    size_t i = 0;

    if (name[0] != 'c' && name[0] != 'h')
        return NCALLS;
    while (i < NCALLS && strncmp(name, allocating[i].name, strlen(allocating[i].name)) != 0)
        i++;
    if (i < NCALLS && strstr(name, "Info")) /* cudaMemGetInfo and the like */
        return NCALLS;
    return i;
}

RP_ORDER(by_time, struct rp_memory_call, RP_DOWN(total_ns), strcmp(a->name, b->name))

enum rp_code rp_memory_calls(const struct rp_trace *t, const struct rp_scope *scope,
                             struct rp_arena *arena, struct rp_memory_device *out,
                             struct rp_err *err)
{
    uint8_t *kind = RP_ARENA_NEW(arena, uint8_t, t->str.n + 1);
    struct rp_memory_call calls[NCALLS] = {{0}};

    out->calls = RP_ARENA_NEW(arena, struct rp_memory_call, NCALLS + 1);
    RP_TRY(rp_err_need(kind && out->calls, err, "listing allocating calls"));
    for (size_t i = 0; i < t->str.n; i++)
        kind[i] = (uint8_t)call_kind(rp_trace_str(t, (rp_str)i));
    for (rp_event e = 0; e < t->ev.n; e++) {
        if (t->ev.kind[e] != RP_KIND_RUNTIME || kind[t->ev.name[e]] == NCALLS ||
            !rp_scope_has(scope, t->ev.ts_ns[e]) || t->ev.dur_ns[e] < 0)
            continue;
        struct rp_memory_call *call = &calls[kind[t->ev.name[e]]];
        call->count++;
        rp_ns_add(&call->total_ns, t->ev.dur_ns[e]);
        call->max_ns = t->ev.dur_ns[e] > call->max_ns ? t->ev.dur_ns[e] : call->max_ns;
    }
    for (size_t i = 0; i < NCALLS; i++)
        if (calls[i].count) {
            calls[i].name = allocating[i].name;
            calls[i].waits = allocating[i].waits;
            out->calls[out->ncalls++] = calls[i];
        }
    qsort(out->calls, out->ncalls, sizeof *out->calls, by_time);
    return RP_OK;
}
