/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What fragmentation keeps about a rank; `diff` compares it. */
#include "explain/findings/finding.h"

/* For the device with most of it; 0: not recorded. */
#define RP_MEMORY_PEAK(M, s)              \
    M(s, PLAIN, int64_t, reserved_bytes)  \
    M(s, PLAIN, int64_t, allocated_bytes) \
    M(s, PLAIN, int64_t, device_bytes)
RP_PART_STRUCT(rp_memory_peak, RP_MEMORY_PEAK);

/* The peak of a rank; NULL without device work. */
static inline const struct rp_memory_peak *rp_memory_peak_of(const struct rp_report_part *part)
{
    return part->kept[RP_KEPT_fragmentation].at;
}
