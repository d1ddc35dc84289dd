/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the time of steps on the device if there are no records of work (record --detail): a
 * CUDA event is put between every two steps, in the default stream. The time from one to the next
 * is the device's time of a step, and becomes a counter of the recording. This needs no CUPTI, and
 * costs some microseconds for each step.
 *
 * PyTorch's work is in the default stream. If most kernels that were recorded ran in other streams,
 * for which it does not wait (XLA), nothing can be measured. While a stream is being captured into
 * a graph, nothing may be recorded in it, so such a step has no time.
 */
#include "capture/cuda/cuda.h"

#define EVENTS  64
#define NAME    "step on the device (ms)"
#define RELAXED 2 /* mode of a thread: captures of other threads do not forbid its calls */

static struct {
    const struct rp_cuda_driver *driver;
    void *context;
    uint32_t stream; /* CUPTI's id of the default stream */
    bool broken;     /* the last boundary has no event */
    uint64_t recorded, read;
    struct {
        void *event;
        bool ends; /* a step ends here that began with the event before */
    } at[EVENTS];
} d;

/* Whether this thread uses the context whose steps are timed, which is the first one. */
static bool is_context(void)
{
    void *context = NULL;

    if (d.driver->context(&context) || !context)
        return false;
    if (!d.context && rp_cuda_is_attached() && rp_cuda.cupti.stream_id &&
        !rp_cuda.cupti.stream_id(context, NULL, 0, &d.stream) && d.stream < RP_CUDA_STREAMS)
        d.context = context;
    return context == d.context;
}

/* Whether most kernels were in the default stream. */
static bool is_usual(void)
{
    return 2 * atomic_load(&rp_cuda.by_stream[d.stream]) > atomic_load(&rp_cuda.kernels);
}

static bool is_possible(void)
{
    int capturing = 0;

    return is_context() && is_usual() && !d.driver->is_capturing(NULL, &capturing) && !capturing;
}

/* Reads the events that have come. */
static void collect(void)
{
    for (; d.read < d.recorded; d.read++) {
        float ms = 0;
        size_t k = d.read % EVENTS;

        if (d.driver->event_query(d.at[k].event))
            return;
        if (d.at[k].ends &&
            !d.driver->event_elapsed(&ms, d.at[(k + EVENTS - 1) % EVENTS].event, d.at[k].event))
            rp_cuda.cap->counter(NAME, ms);
    }
}

/* Records an event for this boundary; false if there is none. */
static bool record_event(bool ends)
{
    size_t k = d.recorded % EVENTS;

    if (!is_possible())
        return false;
    collect();
    if (d.recorded - d.read >= EVENTS - 1 || /* the device is too far behind */
        (!d.at[k].event && d.driver->event_create(&d.at[k].event, 0)) ||
        d.driver->event_record(d.at[k].event, NULL))
        return false;
    d.at[k].ends = ends && d.recorded;
    d.recorded++;
    return true;
}

void rp_cuda_boundary(bool without)
{
    int mode = RELAXED;

    d.driver = rp_cuda_driver();
    if (!d.driver || rp_cuda.cap->process_id() != rp_cuda.process || d.driver->capture_mode(&mode))
        return;
    d.broken = !record_event(without && !d.broken);
    d.driver->capture_mode(&mode);
}
