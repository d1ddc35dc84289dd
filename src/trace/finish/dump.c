/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder's state as text, for debugging passes. One line for each object, its kind first; what
 * no pass has made yet is omitted. After `freeze` the builder is empty.
 */
#include "trace/build/state.h"
#include "trace/finish/finish.h"

#include <inttypes.h>

static const char *text(const struct rp_builder *b, rp_str s)
{
    return rp_strtab_borrow(&b->str, s);
}

static void dump_tables(const struct rp_builder *b, struct rp_out *to)
{
    for (size_t i = 0; i < b->processes.n; i++) {
        const struct rp_process *p = &b->processes.at[i];

        rp_out_printf(to, "process %zu id=%" PRId64 " text='%s' name='%s' labels='%s' device=%d\n",
                      i, p->native_id, text(b, p->text), text(b, p->name), text(b, p->labels),
                      p->device);
    }
    for (size_t i = 0; i < b->tracks.n; i++) {
        const struct rp_track_info *t = &b->tracks.at[i];

        rp_out_printf(to,
                      "track %zu process=%u id=%" PRId64 " text='%s' name='%s' kind=%u "
                      "events=%u..%u\n",
                      i, t->process, t->native_id, text(b, t->text), text(b, t->name), t->kind,
                      t->first, t->end);
    }
}

static void dump_id(struct rp_out *to, const char *key, uint32_t id)
{
    if (id != RP_NONE)
        rp_out_printf(to, " %s=%u", key, id);
}

static void dump_event(const struct rp_builder *b, struct rp_out *to, uint32_t i)
{
    const struct rp_origin *o = rp_build_origin_of(b, i);

    rp_out_printf(to, "event %u", i);
    dump_id(to, "track", b->ev.track.at[i]);
    if (b->ev.ts_ns.at[i] != RP_NO_TS)
        rp_out_printf(to, " ts=%" PRId64, b->ev.ts_ns.at[i]);
    if (b->ev.dur_ns.at[i] != RP_OPEN_NS)
        rp_out_printf(to, " dur=%" PRId64, b->ev.dur_ns.at[i]);
    rp_out_printf(to, " ph=%c cat='%s' flags=%u shape=%u row=%u", o->phase, text(b, o->category),
                  b->ev.flags.at[i], b->ev.shape.at[i], b->ev.arg_row.at[i]);
    if (b->ev.kind.n)
        rp_out_printf(to, " kind=%u", b->ev.kind.at[i]);
    if (b->ev.parent.n)
        dump_id(to, "parent", b->ev.parent.at[i]);
    dump_id(to, "link", b->ev.link.at[i]);
    rp_out_printf(to, " '%s'\n", text(b, b->ev.name.at[i]));
}

static void dump_rest(const struct rp_builder *b, struct rp_out *to)
{
    for (size_t i = 0; i < b->flows.n && b->ev.n; i++) {
        rp_out_printf(to, "flow %zu track=%u ts=%" PRId64 " ph=%c id=%" PRId64, i,
                      b->flows.track.at[i], b->flows.ts_ns.at[i],
                      b->origins.at[b->flows.origin.at[i]].phase, b->flows.id.at[i]);
        if (b->flows.event.n)
            dump_id(to, "event", b->flows.event.at[i]);
        rp_out_printf(to, " '%s'\n", text(b, b->flows.name.at[i]));
    }
    for (size_t i = 0; b->member_offset.n && i < b->links.native_id.n; i++) {
        rp_out_printf(to, "link %zu id=%" PRId64 " source=%u:", i, b->links.native_id.at[i],
                      b->links.source.at[i]);
        for (uint32_t k = b->member_offset.at[i]; k < b->member_offset.at[i + 1]; k++)
            rp_out_printf(to, " %u", b->member.at[k]);
        rp_out_char(to, '\n');
    }
    for (size_t i = 0; i < b->steps.n; i++)
        rp_out_printf(to,
                      "step %zu number=%" PRId64 " begin=%" PRId64 " end=%" PRId64
                      " work_end=%" PRId64 " source=%u '%s'\n",
                      i, b->steps.at[i].number, b->steps.at[i].begin_ns, b->steps.at[i].end_ns,
                      b->steps.at[i].work_end_ns, b->steps.at[i].source,
                      text(b, b->steps.at[i].name));
}

void rp_build_dump(const struct rp_builder *b, struct rp_out *to)
{
    uint32_t i;

    if (b->str.n == 0) {
        rp_out_text(to, "frozen\n");
        return;
    }
    dump_tables(b, to);
    for (i = 0; i < b->ev.n; i++)
        dump_event(b, to, i);
    dump_rest(b, to);
#define DUMP_COUNTER(key, unit, doc) \
    rp_out_printf(to, "health %s=%" PRId64 "\n", #key, b->trace->health.key);
    RP_HEALTH_MAP(DUMP_COUNTER)
#undef DUMP_COUNTER
}
