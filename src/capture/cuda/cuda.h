/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the files of the cuda library. cuda.c is the injection, its options and its shutdown;
 * cupti.c finds CUPTI; calls.c chooses the calls to record; buffers.c provides buffers and reads
 * them on a worker thread; records.c converts records to events; waits.c writes what calls wait
 * for; names.c names calls and kernels; detach.c leaves CUPTI where nothing is recorded;
 * step_events.c times steps on the device there; device_state.c
 * tells its clock and memory; driver.c finds the functions of CUDA's driver that
 * these need.
 */
#include "abi/cupti.h"
#include "capture/core/core.h"

#include <stdatomic.h>

#define RP_CUDA_HIDDEN __attribute__((visibility("hidden")))

struct rp_cupti {
#define RP_CUPTI_FIELD(field, name, args, needed) int(*field) args;
    RP_CUPTI_CALLS(RP_CUPTI_FIELD)
#undef RP_CUPTI_FIELD
    void *handle;
    uint32_t version;
};

#define RP_CUDA_STREAMS 32

struct rp_cuda {
    const struct rp_capture *cap;
    struct rp_cupti cupti;
    void *subscriber;
    bool all_calls;           /* also driver calls inside a runtime call */
    bool by_callback;         /* calls are recorded by callbacks, not by CUPTI's records */
    bool counting;            /* calls that give work to the device are counted */
    uint32_t process;         /* cap->process_id() of the process that subscribed */
    _Atomic uint32_t running; /* subscribed, and not shutting down */
    _Atomic uint32_t used;    /* CUPTI has requested a buffer, so there may be records to flush */
    _Atomic uint32_t others;  /* subscriptions of other profilers */
    _Atomic uint32_t graphs;  /* the program uses CUDA graphs */
    _Atomic int32_t captures; /* number of streams that are being captured into a graph */
    _Atomic uint32_t device;  /* device of the last record of work, plus 1; 0: there was none */
    _Atomic uint32_t times;   /* how often CUPTI was attached again */
    _Atomic uint64_t kernels, untimed, dropped, bad;
    _Atomic uint64_t
        by_stream[RP_CUDA_STREAMS]; /* number of kernels in the streams with the lowest ids */
};
extern struct rp_cuda rp_cuda RP_CUDA_HIDDEN;

/* ---- cupti.c ---- */
/* Loads CUPTI: the copy that this process already uses, else the first that is found. Returns NULL,
   or the reason of the failure. */
RP_CUDA_HIDDEN const char *rp_cuda_find(struct rp_cupti *out);
/* A function of the loaded CUPTI, or NULL if none is loaded. */
RP_CUDA_HIDDEN void *rp_cuda_symbol(const char *name);
RP_CUDA_HIDDEN const char *rp_cuda_error(int code);

/* ---- driver.c ---- */
struct rp_cuda_driver {
    int (*context)(void **context);
    int (*capture_mode)(int *mode);
    int (*is_capturing)(void *stream, int *status);
    int (*wait)(void);
    int (*event_create)(void **event, unsigned flags);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    int (*event_elapsed)(float *ms, void *from, void *to);
};
/* NULL if a function is missing. */
RP_CUDA_HIDDEN const struct rp_cuda_driver *rp_cuda_driver(void);

/* ---- cuda.c ---- */
RP_CUDA_HIDDEN bool rp_cuda_option_is(const char *key, const char *value);
RP_CUDA_HIDDEN void rp_cuda_switch_records(bool on); /* of work, and of calls */
RP_CUDA_HIDDEN bool rp_cuda_attach(void);            /* subscribes, and prepares for records */

/* ---- detach.c ---- */
RP_CUDA_HIDDEN void rp_cuda_on_detail(bool on); /* see on_detail of core.h */
RP_CUDA_HIDDEN bool rp_cuda_is_attached(void);
RP_CUDA_HIDDEN void rp_cuda_detach(void); /* leaves CUPTI for good; waits for the program */
RP_CUDA_HIDDEN void rp_cuda_set_attached(void);
/* For each callback of a call; true where CUPTI has been left, or will be: there is no detail. */
struct rp_cupti_call;
RP_CUDA_HIDDEN bool rp_cuda_leave(const struct rp_cupti_call *call);

/* CUPTI's numbers begin again with each attachment. */
static inline uint64_t rp_cuda_link(uint32_t correlation)
{
    return (uint64_t)atomic_load_explicit(&rp_cuda.times, memory_order_relaxed) << 32 | correlation;
}

/* ---- calls.c ---- */
enum rp_cuda_call {
    RP_CUDA_OTHER,
    RP_CUDA_LAUNCHES_GRAPH,
    RP_CUDA_MAKES_GRAPH,
    RP_CUDA_BEGINS_CAPTURE,
    RP_CUDA_ENDS_CAPTURE,
    RP_CUDA_RECORDS_EVENT,
    RP_CUDA_STREAM_WAITS,
    RP_CUDA_AWAITS_EVENT,
    RP_CUDA_AWAITS_STREAM,
    RP_CUDA_AWAITS_DEVICE,
    RP_CUDA_WAITS = RP_CUDA_RECORDS_EVENT /* from here on */
};
RP_CUDA_HIDDEN void rp_cuda_calls_switch(bool on);     /* recording calls, and counting them */
RP_CUDA_HIDDEN void rp_cuda_calls_watch_work(bool on); /* callbacks only */
RP_CUDA_HIDDEN void rp_cuda_calls_callback(int domain, uint32_t id, const void *data);
/* Whether calls of this name are recorded by default. */
RP_CUDA_HIDDEN bool rp_cuda_call_matters(int domain, const char *name);

/* ---- waits.c ---- */
/* Called at the end of a call (RP_CUDA_WAITS and on) that began at `begin`, in ticks. */
RP_CUDA_HIDDEN void rp_cuda_wait(enum rp_cuda_call does, bool per_thread,
                                 const struct rp_cupti_call *call, uint64_t begin);
RP_CUDA_HIDDEN void rp_cuda_waits_forget(
    void); /* forgets all events, because their records are not seen without detail */

/* ---- buffers.c ---- */
RP_CUDA_HIDDEN bool rp_cuda_buffers_begin(void); /* allocates memory, starts the worker */
RP_CUDA_HIDDEN rp_cupti_request rp_cuda_request;
RP_CUDA_HIDDEN rp_cupti_complete rp_cuda_complete;
RP_CUDA_HIDDEN void rp_cuda_buffers_read(void); /* the full ones */
RP_CUDA_HIDDEN bool rp_cuda_buffers_idle(void); /* nothing is left to read */
RP_CUDA_HIDDEN void rp_cuda_buffers_end(void);  /* flushes, reads the rest, stops the worker */
/* The worker does the same, leaves CUPTI and ends; returns then, or when that takes too long. */
RP_CUDA_HIDDEN void rp_cuda_buffers_leave(void);

/* ---- records.c ---- */
RP_CUDA_HIDDEN void rp_cuda_records(uint8_t *buffer, size_t valid);
RP_CUDA_HIDDEN void rp_cuda_records_forget(void); /* forgets what later records may refer to */

/* ---- device_state.c ---- */
RP_CUDA_HIDDEN void rp_cuda_watch_device(void);
RP_CUDA_HIDDEN void rp_cuda_forget_device(void); /* on the core's thread */

/* ---- step_events.c ---- */
RP_CUDA_HIDDEN void rp_cuda_boundary(bool without); /* see on_boundary of core.h */

/* ---- names.c ---- */
RP_CUDA_HIDDEN const char *rp_cuda_call_name(int domain, uint32_t id); /* from any thread */
/* only called by the worker */
RP_CUDA_HIDDEN const char *rp_cuda_kernel_name(const char *mangled);
