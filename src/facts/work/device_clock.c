/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/work/device_clock.h"

#include "base/decides.h"
#include "base/order.h"
#include "facts/arg_keys.h"
#include "result/print_units.h"

#include <stdlib.h>
#include <string.h>

#define CLOCK_STEP 15
RP_FACT(CLOCK_STEP, "MHz",
        "devices of NVIDIA change the clock of their multiprocessors in such steps");

enum { CLOCK, HEAT, BY_POWER, BY_HEAT, COUNTERS };

/* As capture/cuda/device_state.c writes them. */
static const char *const names[COUNTERS] = {
    [CLOCK] = "device clock (MHz)",
    [HEAT] = "device temperature (C)",
    [BY_POWER] = "device held back by its power limit (ms)",
    [BY_HEAT] = "device held back by heat (ms)",
};

RP_ORDER(ascending, double, RP_COMPARE(*a, *b))

static bool is_judged(const struct rp_segments *judged, int64_t at_ns)
{
    for (size_t i = 0; i < judged->n; i++)
        if (at_ns >= judged->at[i].begin_ns && at_ns < judged->at[i].end_ns)
            return true;
    return false;
}

enum rp_code rp_device_clock_find(const struct rp_trace *trace, const struct rp_segments *judged,
                                  struct rp_arena *arena, struct rp_device_clock *out,
                                  struct rp_err *err)
{
    RP_SCOPED(rp_arg_key_release) struct rp_arg_key key = {0};
    double *mhz = RP_ARENA_NEW(arena, double, trace->totals.count[RP_KIND_COUNTER] + 1);
    struct rp_arg arg;

    *out = (struct rp_device_clock){0};
    RP_TRY(rp_arena_check(arena, "looking at clocks", err));
    if (!trace->totals.count[RP_KIND_COUNTER])
        return RP_OK;
    RP_TRY(rp_arg_key_init(&key, trace, "value", err));
    for (rp_event e = 0; e < trace->ev.n; e++) {
        if (trace->ev.kind[e] != RP_KIND_COUNTER || !is_judged(judged, trace->ev.ts_ns[e]))
            continue;

        const char *name = rp_trace_str(trace, trace->ev.name[e]);
        int counter = 0;
        while (counter < COUNTERS && strcmp(name, names[counter]) != 0)
            counter++;
        if (counter < COUNTERS && rp_arg_key_find(&key, e, &arg) && arg.type == RP_ARG_F64) {
            double value = arg.v.f;
            if (counter == CLOCK)
                mhz[out->samples++] = value;
            else if (counter == BY_POWER)
                out->power_ms += value;
            else if (counter == BY_HEAT)
                out->heat_ms += value;
            else if (value > out->most_celsius)
                out->most_celsius = value;
        }
    }
    if (!out->samples) {
        *out = (struct rp_device_clock){0};
        return RP_OK;
    }
    qsort(mhz, (size_t)out->samples, sizeof *mhz, ascending);
    out->mhz = mhz[out->samples / 2];
    out->low_mhz = mhz[0];
    out->high_mhz = mhz[out->samples - 1];
    return RP_OK;
}

bool rp_device_clock_is_lower(const struct rp_device_clock *one,
                              const struct rp_device_clock *other)
{
    double varies = one->high_mhz - one->low_mhz;

    if (!one->samples || !other->samples)
        return false;
    if (other->high_mhz - other->low_mhz > varies)
        varies = other->high_mhz - other->low_mhz;
    return other->mhz - one->mhz > (varies > CLOCK_STEP ? varies : CLOCK_STEP);
}

bool rp_device_clock_is_limited(const struct rp_device_clock *clock)
{
    return clock->power_ms > 0 || clock->heat_ms > 0;
}

const char *rp_device_clock_text(const struct rp_device_clock *clock, struct rp_arena *arena)
{
    const char *why = "";

    if (clock->power_ms > 0)
        why = rp_arena_textf(arena, ", held back by its power limit for %s",
                             rp_units_time(arena, (int64_t)(clock->power_ms * 1e6)));
    if (clock->heat_ms > 0)
        why = rp_arena_textf(arena, "%s, held back by heat for %s", why,
                             rp_units_time(arena, (int64_t)(clock->heat_ms * 1e6)));
    if (clock->most_celsius > 0 && *why)
        why = rp_arena_textf(arena,
                             "%s, up to %.0f \xc2\xb0"
                             "C",
                             why, clock->most_celsius);
    return *why ? rp_arena_textf(arena, "%.0f MHz (%s)", clock->mhz, why + 2)
                : rp_arena_textf(arena, "%.0f MHz", clock->mhz);
}
