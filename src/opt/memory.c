/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what is in a rank's memory at its peak, from the recorded allocations. */
#include "opt/memory.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "explain/memory/log.h"
#include "result/part.h"

#include <string.h>

#define KEPT_MOST 64
RP_LIMIT(KEPT_MOST, "operators", "those that keep the most are listed");

#define KEPT(kind, ...) RP_PART_##kind(struct rp_opt_kept, __VA_ARGS__)
static const struct rp_field kept_fields[] = {KEPT(TEXT, op), KEPT(PLAIN, bytes),
                                              KEPT(PLAIN, largest_bytes), RP_PART_END};
static const struct rp_type kept_type = {"kept", sizeof(struct rp_opt_kept), kept_fields, NULL};

static const struct rp_field part_fields[] = {
    RP_PART_RECORD(struct rp_opt_part, sim, &rp_sim_part_type),
    RP_PART_PLAIN(struct rp_opt_part, peak_bytes),
    RP_PART_LIST(struct rp_opt_part, kept, &kept_type), RP_PART_END};
const struct rp_type rp_opt_part_type = {"opt_part", sizeof(struct rp_opt_part), part_fields, NULL};

RP_ORDER(by_bytes, struct rp_opt_kept, RP_DOWN(bytes), strcmp(a->op, b->op))

/* Finds the device with the largest peak; *at is the entry after which it occurs. */
static const struct rp_memory_log *find_peak(const struct rp_memory_logs *logs, uint32_t *at,
                                             int64_t *peak)
{
    const struct rp_memory_log *best = NULL;

    for (size_t d = 0; d < logs->devices.n; d++)
        for (uint32_t i = 0; logs->devices.at[d].device_type && i < logs->devices.at[d].entries.n;
             i++)
            if (!best || logs->devices.at[d].entries.at[i].allocated > *peak) {
                best = &logs->devices.at[d];
                *peak = best->entries.at[i].allocated;
                *at = i;
            }
    return best;
}

static enum rp_code list_kept(struct rp_opt_part *out, const struct rp_memory_logs *logs,
                              const struct rp_memory_log *log, uint32_t at, struct rp_arena *arena,
                              struct rp_err *err)
{
    RP_VEC(struct rp_opt_kept) list = {0};
    struct rp_map seen = {0};
    enum rp_code code = RP_OK;

    for (size_t i = 0; code == RP_OK && i < log->buffers.n; i++) {
        const struct rp_memory_buffer *b = &log->buffers.at[i];

        if (b->category != RP_MEMORY_ACTIVATIONS || b->born == RP_NONE || !rp_memory_alive(b, at))
            continue;
        const char *op = logs->owners.at[log->entries.at[b->born].owner].op;
        if (!op)
            continue;
        uint32_t k = rp_map_get(&seen, rp_hash_bytes(op, strlen(op)));
        if (k == RP_MAP_NONE) {
            k = (uint32_t)list.n;
            code = rp_map_put(&seen, rp_hash_bytes(op, strlen(op)), k, err);
            if (code == RP_OK)
                code = rp_vec_push(&list, ((struct rp_opt_kept){.op = op}), err);
        }
        if (code != RP_OK || !list.at)
            break;
        list.at[k].bytes += b->bytes;
        if (b->bytes > list.at[k].largest_bytes)
            list.at[k].largest_bytes = b->bytes;
    }
    if (code == RP_OK)
        rp_sort(list.at, list.n, sizeof *list.at, by_bytes);
    out->kept = RP_ARENA_NEW(arena, struct rp_opt_kept, KEPT_MOST + 1);
    for (size_t i = 0; code == RP_OK && out->kept && i < list.n && i < KEPT_MOST; i++) {
        out->kept[i] = list.at[i];
        out->kept[i].op = rp_arena_text(arena, list.at[i].op);
        out->nkept++;
    }
    rp_vec_release(&list);
    rp_map_release(&seen);
    return code == RP_OK ? rp_arena_check(arena, "searching", err) : code;
}

enum rp_code rp_opt_part_memory(struct rp_opt_part *out, const struct rp_trace *trace,
                                struct rp_arena *arena, struct rp_err *err)
{
    struct rp_memory_logs logs;
    enum rp_code code = rp_memory_logs_init(&logs, trace, err);
    uint32_t at = 0;
    int64_t peak = 0;

    out->peak_bytes = RP_ABSENT_I64;
    if (code == RP_OK && logs.devices.n)
        code = rp_memory_own(&logs, err);
    if (code == RP_OK && logs.devices.n)
        code = rp_memory_classify(&logs, err);
    const struct rp_memory_log *log = code == RP_OK ? find_peak(&logs, &at, &peak) : NULL;
    if (log) {
        out->peak_bytes = peak;
        code = list_kept(out, &logs, log, at, arena, err);
    }
    rp_memory_logs_release(&logs);
    return code;
}
