/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The clock of the device while steps ran, as our recorder asks the driver about once a second. A
 * device under a power limit, or too hot, lowers its clock, and all its kernels take longer.
 */
#include "base/arena.h"
#include "facts/times/step_times.h"

#include <stdbool.h>

struct rp_device_clock {
    int64_t samples;               /* 0: the recording has none, and the rest is 0 */
    double mhz, low_mhz, high_mhz; /* median, least and most */
    double most_celsius;           /* 0: not known */
    double power_ms, heat_ms;      /* so long the clock was held back by a limit */
};

/* Samples in the judged time. The arena is for scratch. */
enum rp_code rp_device_clock_find(const struct rp_trace *trace, const struct rp_segments *judged,
                                  struct rp_arena *arena, struct rp_device_clock *out,
                                  struct rp_err *err);

/* Whether one clock is lower than the other beyond what either varies by. Devices change their
   clock in steps, so that one sample between two steps says nothing. */
bool rp_device_clock_is_lower(const struct rp_device_clock *one,
                              const struct rp_device_clock *other);
/* Whether a limit held the clock back. */
bool rp_device_clock_is_limited(const struct rp_device_clock *clock);
/* "1410 MHz (held back by its power limit for 2.10 s, up to 84 C)"; in the arena. */
const char *rp_device_clock_text(const struct rp_device_clock *clock, struct rp_arena *arena);
