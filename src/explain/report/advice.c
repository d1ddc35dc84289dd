/* SPDX-License-Identifier: Apache-2.0 */
/* Names and titles of findings, and what to try. */
#include "explain/report/advice.h"

const struct rp_found_text rp_found_texts[RP_FOUNDS] = {
#define FOUND_TEXT(name, id, title) {id, title},
    RP_FOUND_MAP(FOUND_TEXT)
#undef FOUND_TEXT
};

static const char *const hints[RP_FOUNDS] = {
    [RP_FOUND_LAUNCH_BOUND] =
        "CUDA graphs or torch.compile, fused optimizers, larger batches, fewer and larger operators",
    [RP_FOUND_HOST_WORK] = "do it on the device, in other threads or processes, or ahead of time "
                           "while the device is busy; 'reprise top --by python' shows the code",
    [RP_FOUND_START_UP] =
        "do not count it: warm up before recording, or look at a later part with --step or --window",
    [RP_FOUND_SYNC_POINTS] = "remove .item(), .cpu(), printing of tensors and explicit "
                             "synchronization from the step; copy with non_blocking=True",
    [RP_FOUND_DATA_LOADER] =
        "more workers, pinned memory, prefetching, cheaper transforms; check the storage",
    [RP_FOUND_DATA_LOADER_HOST] =
        "more workers, prefetching, cheaper transforms; check the storage",
    [RP_FOUND_HOST_STALL] = "look for CPU starvation, garbage collection, page faults, locks, or a "
                            "monitoring tool that writes during the step; 'reprise stalls' lists "
                            "the calls",
    [RP_FOUND_HOST_SILENT] =
        "record more of the host (Python stacks, with_stack, the host tracer); "
        "typical causes are the input pipeline, work between steps, and "
        "waiting",
    [RP_FOUND_FRAGMENTATION] = "expandable segments, fewer different shapes, a warm-up before "
                               "recording; check for memory near its limit",
    [RP_FOUND_RESERVED] =
        "expandable segments, fewer different shapes, garbage collection threshold of the allocator",
    [RP_FOUND_PROFILER] =
        "record fewer kinds of events, or measure step times without the profiler",
    [RP_FOUND_PROFILER_HOST] =
        "record fewer kinds of events, or measure step times without the profiler",
    [RP_FOUND_COPIES] =
        "pin host memory, copy on a separate stream while kernels run, combine small copies",
    [RP_FOUND_DEPENDENCIES] =
        "check which streams wait for each other: use fewer events, or run other work meanwhile",
    [RP_FOUND_HOST_COLLECTIVES] = "use a backend that runs on the device, or larger buckets that "
                                  "overlap with compute",
    [RP_FOUND_DEVICE_WAIT] = "record earlier (work that was launched before recording began is "
                             "missing), and look for other processes on the device and for events "
                             "that the profiler dropped",
    [RP_FOUND_EXPOSED_COMM] = "overlap it with backward (buckets, prefetch), send less "
                              "(compression, larger local batches), or use a faster network",
    [RP_FOUND_STRAGGLER] = "see what those ranks do before they arrive: 'reprise idle --rank N' "
                           "and 'reprise comm'",
    [RP_FOUND_ATYPICAL_STEP] =
        "leave it out (compilation, warm-up, a checkpoint) and look at a typical step",
    [RP_FOUND_TINY_KERNELS] = "fuse them: torch.compile, fused or foreach optimizers, CUDA graphs",
    [RP_FOUND_LOW_OCCUPANCY] = "larger batches, other tile sizes (split-k), several small kernels "
                               "at once on different streams, or one fused kernel",
    [RP_FOUND_SLOW_CLOCK] = "look for heat, a power limit or another process: nvidia-smi -q -d "
                            "PERFORMANCE,CLOCK; lock the clocks for measurements",
    [RP_FOUND_WRONG_CLOCK] =
        "do not rely on idle causes, delays and waits that compare these clocks; use newer drivers "
        "and profilers, and one clock source for all hosts (NTP, PTP)",
    [RP_FOUND_PYTHON] =
        "torch.compile, fewer and larger operators; 'reprise top --by python' shows the code",
    [RP_FOUND_HOST_CODE] =
        "see what those spans do: 'reprise top --by annotation', and record with with_stack",
    [RP_FOUND_NO_OPERATOR] = "fewer and larger operators (fusion, XLA); look for waiting, other "
                             "threads and code outside of the framework",
};

const char *rp_advice_hint(enum rp_found found)
{
    return hints[found];
}
