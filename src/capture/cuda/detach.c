/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaves CUPTI in steps without detail. It slows a program down while it is attached, even with all
 * records off, so with `record --detail` it is detached there, and attached again later:
 *
 *     ATTACHED    records are on, or off for a few steps (to see what they add)
 *     LEAVING     records are off; the next call of the program that CUPTI reports leaves it at its
 *                 end, where that is allowed, when all buffers have been read
 *     DETACHED    nothing of CUPTI may be called: that would attach it
 *
 * Before records go off the device is waited for, and its records are fetched: nodes of CUDA graphs
 * continue to write their times into records that were not fetched. A program that uses graphs is
 * not detached: with CUPTI 13.0 a graph that was made or launched while it was attached cannot be
 * launched after that. XLA makes them of its own accord.
 */
#include "abi/cupti_counters.h"
#include "capture/cuda/cuda.h"

#include <pthread.h>

enum { ATTACHED, LEAVING, DETACHED };

static _Atomic uint32_t state;
static pthread_mutex_t switching = PTHREAD_MUTEX_INITIALIZER;

bool rp_cuda_is_attached(void)
{
    return atomic_load(&state) != DETACHED;
}

bool rp_cuda_leave(const struct rp_cupti_call *call)
{
    if (atomic_load_explicit(&state, memory_order_relaxed) == ATTACHED)
        return false;
    if (call->site != RP_CUPTI_SITE_EXIT || pthread_mutex_trylock(&switching))
        return true;
    if (atomic_load(&state) == LEAVING && rp_cuda_buffers_idle() && !atomic_load(&rp_cuda.graphs)) {
        atomic_store(&state, DETACHED);
        rp_cuda.cupti.finalize();
    }
    pthread_mutex_unlock(&switching);
    return true;
}

/* Waits for the device, unless a stream is being captured into a graph, which waiting would
   break. */
static void wait_for_device(void)
{
    const struct rp_cuda_driver *driver = rp_cuda_driver();
    void *context = NULL;

    if (driver && !atomic_load(&rp_cuda.captures) && !driver->context(&context) && context)
        driver->wait();
}

static bool may_leave(void)
{
    return rp_cuda.cap->option("detail") && !rp_cuda_option_is("cuda.detach", "off") &&
           rp_cuda.cupti.finalize && !atomic_load(&rp_cuda.graphs) &&
           rp_cuda.cap->step_sign() != RP_CAPTURE_EXECUTION;
}

static void switch_on(void)
{
    uint32_t before = atomic_load(&state);

    if (before == DETACHED) {
        rp_cuda_records_forget();
        atomic_fetch_add(&rp_cuda.times, 1);
        if (!rp_cuda_attach()) /* another profiler has subscribed */
            return;
    } else if (before == LEAVING) {
        rp_cuda_calls_watch_work(false);
    }
    atomic_store(&state, ATTACHED);
    rp_cuda_switch_records(true);
}

void rp_cuda_set_attached(void)
{
    atomic_store(&state, ATTACHED);
}

/* The recording ends, and the program goes on. CUPTI stays loaded without a subscriber, and calls
   or records nothing: left altogether while the device works, it ended a PyTorch program that was
   attached again (CUDA 13). */
void rp_cuda_detach(void)
{
    pthread_mutex_lock(&switching);
    if (rp_cuda_is_attached()) {
        wait_for_device();
        if (atomic_load(&rp_cuda.used))
            rp_cuda.cupti.flush(RP_CUPTI_FLUSH_FORCED);
        rp_cuda_switch_records(false);
        rp_cuda.cupti.disable(RP_CUPTI_DEVICE);
        rp_cuda.cupti.unsubscribe(rp_cuda.subscriber);
        atomic_store(&state, DETACHED);
    }
    rp_cuda_buffers_read();
    pthread_mutex_unlock(&switching);
}

void rp_cuda_on_detail(bool on)
{
    if (rp_cuda.cap->process_id() != rp_cuda.process)
        return;
    pthread_mutex_lock(&switching);
    if (!atomic_load(&rp_cuda.running)) /* the recording ends */
        ;
    else if (on)
        switch_on();
    else if (rp_cuda_is_attached()) {
        wait_for_device();
        if (atomic_load(&rp_cuda.used))
            rp_cuda.cupti.flush(0);
        rp_cuda_switch_records(false);
        if (may_leave()) {
            atomic_store(&state, LEAVING);
            rp_cuda_calls_watch_work(true);
        }
    }
    pthread_mutex_unlock(&switching);
}
