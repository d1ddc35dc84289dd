/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lists what a rank allocated and freed on each device: PyTorch's "[memory]" events, from its
 * profiler or an allocator snapshot (formats/torch_memory/), in the order of time, and the buffers
 * they describe.
 *
 *     entry    0      1      2      3      4
 *     bytes    +8     +4     -8     -6     +2
 *     buffers  A: 0 to 2, B: from 1 on, C: before the recording to 3, D: from 4 on
 */
#include "base/arena.h"
#include "base/vec.h"
#include "facts/work/attribution.h"
#include "facts/work/work.h"

#include <reprise/result.h>

enum rp_memory_category {
    RP_MEMORY_PARAMETERS,
    RP_MEMORY_OPTIMIZER,
    RP_MEMORY_GRADIENTS,
    RP_MEMORY_ACTIVATIONS,
    RP_MEMORY_INPUTS,
    RP_MEMORY_TEMPORARY,
    RP_MEMORY_BEFORE, /* the recording */
    RP_MEMORY_UNKNOWN,
    RP_MEMORY_CATEGORIES
};
extern const char *const rp_memory_category_names[RP_MEMORY_CATEGORIES];

/* Who allocates or frees memory. Texts are in the arena of the logs. */
struct rp_memory_owner {
    const char *op;       /* operator, or NULL */
    const char *module;   /* classes of the modules around it: "GPT/Block/Linear"; or NULL */
    const char *block;    /* the outermost module that has several instances, such as "GPT/Block" */
    uint32_t blocks;      /* how many */
    const char *line;     /* line of the user's code: "model.py(42): forward"; or NULL */
    uint8_t phase;        /* enum rp_phase */
    bool frees_gradients; /* zero_grad */
    bool loads;           /* copies data, outside of any module */
};

struct rp_memory_entry {
    int64_t ns, addr, bytes; /* bytes are negative if they are freed */
    int64_t requested;       /* the part that was requested, or the same */
    int64_t allocated;       /* total on the device afterwards */
    int64_t reserved;        /* total reserved by the allocator, or RP_ABSENT_I64 */
    rp_event event;
    uint32_t owner;  /* index in owners */
    uint32_t buffer; /* the buffer that begins or ends here, or RP_NONE */
};

struct rp_memory_buffer {
    int64_t addr, bytes, requested;
    uint32_t born, died; /* entries; RP_NONE: before the recording, or not in it */
    uint8_t category;    /* enum rp_memory_category */
};

struct rp_memory_log {
    int64_t device_type, device_id; /* PyTorch's numbers: type 0 is the host */
    int64_t before;                 /* bytes allocated when the recording begins */
    bool has_total, has_addr;
    RP_VEC(struct rp_memory_entry) entries; /* in time order */
    RP_VEC(struct rp_memory_buffer) buffers;
    /* for a snapshot, at its end: */
    int64_t segments, segment_bytes, free_bytes, largest_free;
    int64_t ooms, oom_bytes, oom_free; /* of the last */
};

struct rp_memory_logs {
    const struct rp_trace *trace;
    struct rp_arena arena;
    RP_VEC(struct rp_memory_log) devices;
    RP_VEC(struct rp_memory_owner) owners;
    RP_VEC(int64_t) steps;      /* the begin of each */
    RP_VEC(int64_t) step_names; /* numbers */
    int64_t end_ns;             /* of the last step */
    bool has_backward, has_stacks, has_modules;
};

/* `out` must be released also after a failure. Needs arguments (RP_NEED_ARGS). */
enum rp_code rp_memory_logs_init(struct rp_memory_logs *out, const struct rp_trace *trace,
                                 struct rp_err *err);
void rp_memory_logs_release(struct rp_memory_logs *logs);

/* Fills the owners of all entries (owners.c) and the categories of all buffers (categories.c). */
enum rp_code rp_memory_own(struct rp_memory_logs *logs, struct rp_err *err);
enum rp_code rp_memory_classify(struct rp_memory_logs *logs, struct rp_err *err);

/* The index of the step that contains a time, or -1. */
int64_t rp_memory_step(const struct rp_memory_logs *logs, int64_t ns);

/* Whether a buffer exists after an entry; RP_NONE stands for the time before the first. */
static inline bool rp_memory_alive(const struct rp_memory_buffer *b, uint32_t after)
{
    if (after == RP_NONE)
        return b->born == RP_NONE;
    return (b->born == RP_NONE || b->born <= after) && (b->died == RP_NONE || b->died > after);
}
