/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what a buffer is for from the phase in which it was allocated and the phase it outlives:
 *
 *     forward     still there when the next backward pass begins: activation (input: if an operator
 *                 that copies data made it outside of all modules), else temporary
 *     backward    still there when the optimizer or the next forward pass begins: gradient, else
 *                 temporary
 *     optimizer   still there when the next forward or backward pass begins: optimizer state, else
 *                 temporary
 *
 * Buffers from before the recording are gradients if zero_grad frees them. Only snapshots list
 * those that stay one by one: among those of one size, as many as there are gradients of that size
 * are parameters, and twice as many are optimizer state. Linear.
 */
#include "explain/memory/log.h"

#include "base/decides.h"
#include "base/hash.h"

#include <stdlib.h>

struct classifier {
    struct rp_memory_logs *logs;
    struct rp_memory_log *log;
    /* By entry: the next entry that begins another phase, or RP_NONE. */
    uint32_t *to_backward, *past_backward, *past_optimizer;
};

static uint8_t phase_of(const struct classifier *c, uint32_t i)
{
    const struct rp_memory_log *log = c->log;

    return log->entries.at && c->logs->owners.at
               ? c->logs->owners.at[log->entries.at[i].owner].phase
               : 0;
}

static void find_boundaries(struct classifier *c)
{
    uint32_t backward = RP_NONE, past_backward = RP_NONE, past_optimizer = RP_NONE;

    for (uint32_t i = (uint32_t)c->log->entries.n; i-- > 0;) {
        bool allocates = c->log->entries.at[i].bytes > 0;
        uint8_t phase = phase_of(c, i);

        c->to_backward[i] = backward;
        c->past_backward[i] = past_backward;
        c->past_optimizer[i] = past_optimizer;
        if (phase == RP_PHASE_BACKWARD)
            backward = i;
        if (phase == RP_PHASE_OPTIMIZER || (phase != RP_PHASE_BACKWARD && allocates))
            past_backward = i;
        if (phase != RP_PHASE_OPTIMIZER && allocates)
            past_optimizer = i;
    }
}

/* Whether the buffer exists when entry i begins, or if i is the end of the recording, at its
   end. */
static bool outlives(const struct rp_memory_buffer *b, uint32_t i)
{
    return i == RP_NONE ? b->died == RP_NONE : b->died == RP_NONE || b->died > i;
}

/* The number of steps that begin while a buffer of the forward pass exists. */
static int64_t steps_survived(const struct classifier *c, const struct rp_memory_buffer *b)
{
    const struct rp_memory_entry *at = c->log->entries.at;
    int64_t from = rp_memory_step(c->logs, at[b->born].ns), to;

    to = b->died == RP_NONE ? (int64_t)c->logs->steps.n - 1
                            : rp_memory_step(c->logs, at[b->died].ns);
    return from < 0 || to < 0 ? 0 : to - from;
}

static enum rp_memory_category of_forward(const struct classifier *c,
                                          const struct rp_memory_buffer *b,
                                          const struct rp_memory_owner *owner)
{
    uint32_t backward = c->to_backward[b->born];

    if (!c->logs->has_backward) /* without training, what is freed was temporary */
        return b->died == RP_NONE ? (owner->loads ? RP_MEMORY_INPUTS : RP_MEMORY_UNKNOWN)
                                  : RP_MEMORY_TEMPORARY;
    if (!outlives(b, backward))
        return RP_MEMORY_TEMPORARY;
    if (owner->loads)
        return RP_MEMORY_INPUTS;
    if (steps_survived(c, b) > 1 || (backward == RP_NONE && steps_survived(c, b) > 0))
        return RP_MEMORY_UNKNOWN;
    return RP_MEMORY_ACTIVATIONS;
}

static enum rp_memory_category category_of(const struct classifier *c,
                                           const struct rp_memory_buffer *b)
{
    const struct rp_memory_entry *at = c->log->entries.at;
    const struct rp_memory_owner *owners = c->logs->owners.at;
    const struct rp_memory_owner *dies = b->died == RP_NONE ? NULL : &owners[at[b->died].owner];

    if (dies && dies->frees_gradients &&
        (b->born == RP_NONE || owners[at[b->born].owner].phase == RP_PHASE_BACKWARD))
        return RP_MEMORY_GRADIENTS;
    if (b->born == RP_NONE || !at || !owners)
        return RP_MEMORY_BEFORE;
    switch (phase_of(c, b->born)) {
    case RP_PHASE_BACKWARD:
        return outlives(b, c->past_backward[b->born]) ? RP_MEMORY_GRADIENTS : RP_MEMORY_TEMPORARY;
    case RP_PHASE_OPTIMIZER:
        return outlives(b, c->past_optimizer[b->born]) ? RP_MEMORY_OPTIMIZER : RP_MEMORY_TEMPORARY;
    default:
        return of_forward(c, b, &owners[at[b->born].owner]);
    }
}

/* ------------------------------------------------------------------ before the recording */

static bool is_older(const struct rp_memory_buffer *b)
{
    return b->born == RP_NONE && b->died == RP_NONE;
}

/* Counts how many gradients of each size exist at once: those that a first zero_grad frees, else
   those of the first backward pass. */
static enum rp_code count_gradients(const struct classifier *c, struct rp_map *of_size, bool older,
                                    struct rp_err *err)
{
    const struct rp_memory_log *log = c->log;
    uint32_t limit = RP_NONE, count;

    for (size_t i = 0; i < log->buffers.n; i++) {
        const struct rp_memory_buffer *b = &log->buffers.at[i];

        if (b->category != RP_MEMORY_GRADIENTS || (b->born == RP_NONE) != older)
            continue;
        if (!older && limit == RP_NONE)
            limit = c->past_backward[b->born];
        if (!older && b->born > limit)
            continue;
        RP_TRY(rp_map_intern(of_size, (uint64_t)b->requested, 0, &count, err));
        RP_TRY(rp_map_put(of_size, (uint64_t)b->requested, count + 1, err));
    }
    return RP_OK;
}

#define STATES 2
RP_FACT(STATES, "buffers of the size of a parameter", "Adam keeps two moments of each");

static enum rp_code match_older(const struct classifier *c, struct rp_map *of_size,
                                struct rp_map *used, struct rp_err *err)
{
    for (size_t i = 0; i < c->log->buffers.n; i++) {
        struct rp_memory_buffer *b = &c->log->buffers.at[i];
        uint32_t wanted = rp_map_get(of_size, (uint64_t)b->requested), n;

        if (!is_older(b) || wanted == RP_MAP_NONE)
            continue;
        RP_TRY(rp_map_intern(used, (uint64_t)b->requested, 0, &n, err));
        if (n >= (1 + STATES) * (uint64_t)wanted)
            continue;
        b->category = n < wanted ? RP_MEMORY_PARAMETERS : RP_MEMORY_OPTIMIZER;
        RP_TRY(rp_map_put(used, (uint64_t)b->requested, n + 1, err));
    }
    return RP_OK;
}

static enum rp_code classify_older(const struct classifier *c, struct rp_err *err)
{
    RP_SCOPED(rp_map_release) struct rp_map of_size = {0}, used = {0};

    RP_TRY(count_gradients(c, &of_size, true, err));
    if (!of_size.n)
        RP_TRY(count_gradients(c, &of_size, false, err));
    return match_older(c, &of_size, &used, err);
}

/* ------------------------------------------------------------------ all */

static enum rp_code classify_device(struct rp_memory_logs *logs, struct rp_memory_log *log,
                                    struct rp_err *err)
{
    struct classifier c = {.logs = logs, .log = log};
    size_t i, n = log->entries.n;
    RP_FREED uint32_t *memory = malloc((3 * n + 1) * sizeof *memory);

    RP_TRY(rp_err_need(memory, err, "classifying buffers"));
    c.to_backward = memory;
    c.past_backward = memory + n;
    c.past_optimizer = memory + 2 * n;
    find_boundaries(&c);
    for (i = 0; i < log->buffers.n; i++)
        log->buffers.at[i].category = (uint8_t)category_of(&c, &log->buffers.at[i]);
    return classify_older(&c, err);
}

enum rp_code rp_memory_classify(struct rp_memory_logs *logs, struct rp_err *err)
{
    for (size_t i = 0; i < logs->devices.n; i++)
        RP_TRY(classify_device(logs, &logs->devices.at[i], err));
    return RP_OK;
}
