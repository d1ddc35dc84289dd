/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The device work of a rank in time order, with class, stream and launch of each item, and the
 * breakdown of its time. Every question about a device starts here.
 */
#include "base/vec.h"
#include "facts/times/intervals.h"
#include "trace/trace.h"

#include <stdbool.h>

enum rp_work_class { RP_WORK_COMPUTE, RP_WORK_COMM, RP_WORK_MEMORY, RP_WORK_CLASSES };
extern const char *const rp_work_class_names[RP_WORK_CLASSES];

enum {
    RP_WORK_CORRELATED = 1, /* a runtime call has the item's own correlation */
    RP_WORK_IN_GRAPH = 2    /* its launch also started other device work */
};

struct rp_work_item {
    int64_t begin_ns, end_ns;
    rp_event event;
    rp_event launch; /* the host call that started it, or RP_NONE */
    uint32_t stream; /* index in rp_work.streams */
    uint8_t cls;     /* enum rp_work_class */
    uint8_t flags;
    uint16_t device; /* index in rp_work.devices */
};

/* A device of the rank: a process of the trace, and the argument "device" where its kernels have
 * different ones. */
struct rp_work_device {
    uint32_t process, nitems;
    uint32_t first;                    /* index of its first item in rp_work.by_device */
    int64_t number;                    /* -1: not known */
    int64_t begin_ns, end_ns, busy_ns; /* first start, last end; time in which any item runs */
    int64_t compute_ns;                /* time in which compute runs */
};

/* Identified by process and argument "stream" (else thread), compared as text: two tracks may be
 * one stream. */
struct rp_work_stream {
    uint32_t process;
    rp_track track; /* of its first item */
    int64_t number; /* if text is 0 */
    rp_str text;
    uint32_t nitems;
    uint32_t device; /* of its first item */
};

/* The part of a recording that is analysed; {0}: all of it. */
struct rp_scope {
    bool limited;
    bool by_launch;           /* device work is selected by its launch, or else by its own start */
    int64_t begin_ns, end_ns; /* half-open, in times of the trace: what starts in it is selected */
    struct rp_interval span;  /* the time that is analysed; for a step, until its work ends */
    uint32_t step;            /* 1 + the index of the step; 0: the scope is not a step */
    uint32_t reserved;
    /* A scope without limits selects device work that runs in one of these intervals, and work of
       the host that starts in one, because steps that are not judged lie between them; 0: all. */
    size_t njudged;
    const struct rp_interval *judged; /* in time order */
};

/* Whether host work that starts at that time is in the scope. Device work is selected by
   rp_work_init, which knows its launches. */
bool rp_scope_has(const struct rp_scope *scope, int64_t ts_ns);

/* Whether work that runs then is in what is judged. */
bool rp_scope_judges(const struct rp_scope *scope, int64_t begin_ns, int64_t end_ns);

struct rp_work {
    const struct rp_trace *trace;
    RP_VEC(struct rp_work_item) items; /* ordered by begin, then by place in the file */
    RP_VEC(uint32_t)
    by_device; /* their indices, device by device; used if no item was removed since */
    RP_VEC(struct rp_work_stream) streams;
    RP_VEC(struct rp_work_device) devices; /* ordered by number, then process */
    bool borrows; /* streams and devices belong to the work of all devices */
};

/* Whether one call of the runtime started the item and others, as the launch of a graph does; an
   operator that replaces unrecorded calls does not count. */
static inline bool rp_work_is_of_graph(const struct rp_work *work, const struct rp_work_item *item)
{
    const struct rp_trace *t = work->trace;

    return item->flags & RP_WORK_IN_GRAPH && item->launch != RP_NONE &&
           t->origins[t->ev.origin[item->launch]].flags & RP_ORIGIN_RUNTIME;
}

/* Where the description of an item begins, outwards through its ancestors: at its launch, or for a
   kernel of a graph whose capture is joined (facts/graphs/join.h), at the span around its launch in
   the capture. RP_NONE: nothing is known. */
static inline rp_event rp_work_described_by(const struct rp_work *work,
                                            const struct rp_work_item *item)
{
    const rp_event *captured = work->trace->captured;

    return captured && captured[item->event] != RP_NONE ? captured[item->event] : item->launch;
}

/* `trace` must outlive `out`, which must be released also after a failure. */
enum rp_code rp_work_init(struct rp_work *out, const struct rp_trace *trace,
                          const struct rp_scope *scope, struct rp_err *err);
void rp_work_release(struct rp_work *work);

/* The main device of a rank, which "the device of a rank" means: the one that computes longest (a
   device that waits in a collective is also busy), then the one that is busy longest, then the
   first. Needs an item. */
uint16_t rp_work_main_device(const struct rp_work *work);

/* The items of one device; streams and devices are those of `work`, which must outlive `out`. `out`
   must be released also after a failure. */
enum rp_code rp_work_of_device(const struct rp_work *work, uint16_t device, struct rp_work *out,
                               struct rp_err *err);
/* The same in place. */
void rp_work_keep_device(struct rp_work *work, uint16_t device);

/* The parts of a window of device work (docs/definitions.md). */
struct rp_breakdown {
    int64_t begin_ns, end_ns;
    int64_t window_ns, busy_ns, compute_ns, comm_ns, exposed_comm_ns, memory_ns, idle_ns;
};

/* The unions of intervals that a breakdown is computed from. */
struct rp_work_unions {
    rp_interval_vec all, cls[RP_WORK_CLASSES];
};

enum rp_code rp_work_unite(const struct rp_work *work, struct rp_work_unions *out,
                           struct rp_err *err);
void rp_work_unions_release(struct rp_work_unions *u);
struct rp_breakdown rp_work_breakdown(const struct rp_work_unions *u);

/* The same for the parts of the unions inside [begin, end). */
struct rp_breakdown rp_work_breakdown_of(const struct rp_work_unions *u, int64_t begin_ns,
                                         int64_t end_ns);
/* Adds the breakdown of a later interval; time between the two is in neither. */
void rp_breakdown_add(struct rp_breakdown *to, const struct rp_breakdown *later);

/* Writes "7", or if there are several devices, "GPU 3 stream 7". Cut to fit. */
void rp_work_stream_label(const struct rp_work *work, uint32_t stream, char *out, size_t cap);

/* Writes "GPU 3", or if the number is not known, "process 12". Cut to fit. */
void rp_work_device_label(const struct rp_work *work, uint16_t device, char *out, size_t cap);
