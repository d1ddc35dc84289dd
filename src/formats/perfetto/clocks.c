/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packet has a time of some clock: one of the system (1 to 63), one of its sequence (64 to 127)
 * or a global one (128 and more). Snapshots give times of several clocks at one moment; the last
 * one at or before a time converts it. All snapshots are read before the first event. A clock may
 * count in units of its own, and from the packet before instead of from its origin.
 */
#include "base/order.h"
#include "formats/perfetto/perfetto.h"

#define FIRST_OF_SEQUENCE 64
#define LAST_OF_SEQUENCE  127

struct clock {
    uint64_t id, timestamp, unit;
    bool incremental;
};

static uint64_t clock_key(const struct rp_perfetto_packet *packet, uint64_t id)
{
    bool local = id >= FIRST_OF_SEQUENCE && id <= LAST_OF_SEQUENCE;

    return (local ? packet->sequence << 32 : 0) | (id & UINT32_MAX);
}

static struct clock parse_clock(struct rp_proto_cursor *c)
{
    struct clock clock = {.unit = 1};
    uint64_t unit = 0;
    const struct rp_proto_slot slots[] = {{RP_PFT_CLOCK_CLOCK_ID, .u64 = &clock.id},
                                          {RP_PFT_CLOCK_TIMESTAMP, .u64 = &clock.timestamp},
                                          {RP_PFT_CLOCK_IS_INCREMENTAL, .flag = &clock.incremental},
                                          {RP_PFT_CLOCK_UNIT_MULTIPLIER_NS, .u64 = &unit},
                                          {0}};
    struct rp_proto_item it;

    while (rp_proto_next(c, &it))
        rp_proto_take(slots, &it);
    if (unit)
        clock.unit = unit < UINT32_MAX ? unit : UINT32_MAX;
    return clock;
}

static int64_t scaled_ns(struct rp_perfetto *r, uint64_t timestamp, uint64_t unit)
{
    return rp_proto_trace_clamp(&r->t, (rp_wide_ns)timestamp * unit);
}

enum rp_code rp_perfetto_read_clocks(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                     struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->data);
    size_t first = r->clocks.n;
    int64_t trace_ns = 0;
    uint64_t primary = 0;
    bool found = false;
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.number == RP_PFT_CLOCKS_PRIMARY_TRACE_CLOCK && it.wire == RP_WIRE_VARINT)
            primary = it.value;
        if (it.number != RP_PFT_CLOCKS_CLOCKS || it.wire != RP_WIRE_BYTES)
            continue;
        struct rp_proto_cursor inner = rp_proto_enter(&c, &it);
        struct clock clock = parse_clock(&inner);
        struct rp_perfetto_clock at = {.clock = clock_key(packet, clock.id)};

        RP_TRY(rp_proto_finish(&inner, err));
        if (clock.unit != 1)
            RP_TRY(rp_map_put(&r->unit_of, at.clock, (uint32_t)clock.unit - 1, err));
        if (clock.incremental)
            RP_TRY(rp_map_put(&r->incremental_of, at.clock, 1, err));
        at.ns = scaled_ns(r, clock.timestamp, clock.unit);
        RP_TRY(rp_vec_push(&r->clocks, at, err));
    }
    RP_TRY(rp_proto_finish(&c, err));

    /* The first snapshot decides which clock is the trace's. */
    if (!r->trace_clock)
        r->trace_clock = primary ? primary : RP_PFT_CLOCK_BOOTTIME;
    for (size_t i = first; i < r->clocks.n && !found; i++) {
        found = r->clocks.at[i].clock == r->trace_clock;
        trace_ns = r->clocks.at[i].ns;
    }
    for (size_t i = first; i < r->clocks.n; i++)
        r->clocks.at[i].trace_ns = trace_ns;
    if (!found)
        r->clocks.n = first; /* this snapshot does not relate any clock to the trace's */
    return RP_OK;
}

RP_ORDER(by_clock, struct rp_perfetto_clock, RP_UP(clock), RP_UP(ns))

void rp_perfetto_sort_clocks(struct rp_perfetto *r)
{
    struct rp_trace *t = r->t.trace;

    if (!r->trace_clock)
        r->trace_clock = RP_PFT_CLOCK_BOOTTIME;
    rp_sort(r->clocks.at, r->clocks.n, sizeof *r->clocks.at, by_clock);
    for (size_t i = 0; i < r->clocks.n && !t->has_base; i++)
        if (r->clocks.at[i].clock == RP_PFT_CLOCK_REALTIME &&
            r->trace_clock != RP_PFT_CLOCK_REALTIME) {
            t->base_ns = r->clocks.at[i].ns - r->clocks.at[i].trace_ns;
            t->has_base = t->base_ns > -(INT64_C(1) << 61) && t->base_ns < INT64_C(1) << 61;
        }
    if (r->trace_clock == RP_PFT_CLOCK_REALTIME)
        t->has_base = 1;
    if (!t->has_base)
        t->base_ns = 0;
}

static enum rp_code set_now(struct rp_perfetto *r, uint64_t key, int64_t ns, struct rp_err *err)
{
    uint32_t at;

    RP_TRY(rp_map_intern(&r->now_of, key, (uint32_t)r->now.n, &at, err));
    if (at == r->now.n)
        RP_TRY(rp_vec_push(&r->now, ns, err));
    r->now.at[at] = ns;
    return RP_OK;
}

enum rp_code rp_perfetto_restart_clocks(struct rp_perfetto *r,
                                        const struct rp_perfetto_packet *packet, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(&packet->c, &packet->data);
    struct rp_proto_item it;

    while (r->incremental_of.n && rp_proto_next_bytes(&c, RP_PFT_CLOCKS_CLOCKS, &it)) {
        struct rp_proto_cursor inner = rp_proto_enter(&c, &it);
        struct clock clock = parse_clock(&inner);

        if (clock.incremental)
            RP_TRY(set_now(r, clock_key(packet, clock.id),
                           scaled_ns(r, clock.timestamp, clock.unit), err));
    }
    return RP_OK;
}

/* Converts with the last snapshot at or before ns, or if there is none, the first. */
static int64_t convert_ns(struct rp_perfetto *r, uint64_t key, int64_t ns)
{
    const struct rp_perfetto_clock probe = {.clock = key, .ns = ns};
    size_t i;

    RP_LOWER_BOUND(i, r->clocks.n, by_clock(&r->clocks.at[i], &probe) <= 0);
    if (i && r->clocks.at[i - 1].clock == key)
        i--;
    if (i == r->clocks.n || r->clocks.at[i].clock != key) {
        r->no_clock++;
        return ns;
    }
    return rp_proto_trace_clamp(&r->t,
                                (rp_wide_ns)ns - r->clocks.at[i].ns + r->clocks.at[i].trace_ns);
}

enum rp_code rp_perfetto_time(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                              int64_t *ns, struct rp_err *err)
{
    uint64_t id = packet->has_clock ? packet->clock : packet->seq->clock;

    id = id ? id : r->trace_clock;
    uint64_t key = clock_key(packet, id);
    uint32_t unit = rp_map_get(&r->unit_of, key);
    *ns = scaled_ns(r, packet->timestamp, unit == RP_MAP_NONE ? 1 : (uint64_t)unit + 1);
    if (rp_map_get(&r->incremental_of, key) != RP_MAP_NONE) {
        uint32_t last = rp_map_get(&r->now_of, key);
        if (last != RP_MAP_NONE)
            *ns = rp_proto_trace_clamp(&r->t, (rp_wide_ns)*ns + r->now.at[last]);
        RP_TRY(set_now(r, key, *ns, err));
    }
    if (key != r->trace_clock)
        *ns = convert_ns(r, key, *ns);
    return RP_OK;
}
