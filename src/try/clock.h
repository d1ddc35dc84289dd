/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

struct rp_try_clock { /* of a device; zeros if it is not known */
    void *device;
    int (*ask)(void *device, int kind, unsigned *mhz);
};

/* Finds the device by its UUID, "" if there is none; the library stays loaded. */
void rp_try_clock_open(struct rp_try_clock *clock, const char *uuid);
/* Returns the clock of its multiprocessors now, or 0. */
unsigned rp_try_clock_mhz(const struct rp_try_clock *clock);
