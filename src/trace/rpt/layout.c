/* SPDX-License-Identifier: Apache-2.0 */
/* The list of sections and the checksum. A new section needs a new version (docs/formats/rpt.md).
 */
#include "trace/rpt/layout.h"

#define ARRAY(id, name, array, count, need)                                                \
    {                                                                                      \
        id, sizeof *((struct rp_trace *)0)->array, name, offsetof(struct rp_trace, array), \
            offsetof(struct rp_rpt_head, count), 0, need                                   \
    }
#define RECORD(id, name, record)                                                           \
    {                                                                                      \
        id, sizeof((struct rp_trace *)0)->record, name, offsetof(struct rp_trace, record), \
            offsetof(struct rp_rpt_head, one), 1, 0                                        \
    }

static const struct rp_rpt_section sections[] = {
    RECORD(2, "health", health),
    RECORD(3, "totals", totals),
    ARRAY(4, "origins", origins, norigins, 0),
    ARRAY(5, "processes", processes, nprocesses, 0),
    ARRAY(6, "tracks", tracks, ntracks, 0),
    ARRAY(7, "steps", steps, nsteps, 0),
    ARRAY(8, "devices", devices, ndevices, 0),
    ARRAY(9, "meta", meta, nmeta, 0),
    ARRAY(10, "warnings", warnings, nwarnings, 0),
    ARRAY(11, "string offsets", str.offset, nstring_offsets, 0),
    ARRAY(12, "string bytes", str.bytes, nstring_bytes, 0),
    ARRAY(13, "string classes", str.name_class, nstrings, 0),
    ARRAY(20, "event ts_ns", ev.ts_ns, nevents, RP_NEED_EVENTS),
    ARRAY(21, "event dur_ns", ev.dur_ns, nevents, RP_NEED_EVENTS),
    ARRAY(22, "event name", ev.name, nevents, RP_NEED_EVENTS),
    ARRAY(23, "event track", ev.track, nevents, RP_NEED_EVENTS),
    ARRAY(24, "event parent", ev.parent, nevents, RP_NEED_EVENTS),
    ARRAY(25, "event link", ev.link, nevents, RP_NEED_EVENTS),
    ARRAY(26, "event arg_row", ev.arg_row, nevents, RP_NEED_ARGS),
    ARRAY(27, "event shape", ev.shape, nevents, RP_NEED_EVENTS),
    ARRAY(28, "event origin", ev.origin, nevents, RP_NEED_EVENTS),
    ARRAY(29, "event kind", ev.kind, nevents, RP_NEED_EVENTS),
    ARRAY(30, "event flags", ev.flags, nevents, RP_NEED_EVENTS),
    ARRAY(31, "event seq", ev.seq, nevents, RP_NEED_EVENTS),
    ARRAY(40, "argument shapes", args.shape, nshapes, RP_NEED_ARGS),
    ARRAY(41, "argument key names", args.key_name, nkeys, RP_NEED_ARGS),
    ARRAY(42, "argument key types", args.key_type, nkeys, RP_NEED_ARGS),
    ARRAY(43, "argument key blocks", args.key_block, nkeys, RP_NEED_ARGS),
    ARRAY(44, "argument blocks", args.block, nblocks, RP_NEED_ARGS),
    ARRAY(45, "argument data", args.data, ndata, RP_NEED_ARGS),
    ARRAY(46, "spilled argument offsets", args.spill_offset, nspill_offsets, RP_NEED_ARGS),
    ARRAY(47, "spilled arguments", args.spill, nspilled, RP_NEED_ARGS),
    ARRAY(50, "link ids", links.native_id, nlinks, RP_NEED_LINKS),
    ARRAY(51, "link offsets", links.offset, nlink_offsets, RP_NEED_LINKS),
    ARRAY(52, "link members", links.member, nmembers, RP_NEED_LINKS),
    ARRAY(53, "link sources", links.source, nlinks, RP_NEED_LINKS),
    ARRAY(60, "arrow ts_ns", flows.ts_ns, nflows, RP_NEED_FLOWS),
    ARRAY(61, "arrow ids", flows.id, nflows, RP_NEED_FLOWS),
    ARRAY(62, "arrow names", flows.name, nflows, RP_NEED_FLOWS),
    ARRAY(63, "arrow tracks", flows.track, nflows, RP_NEED_FLOWS),
    ARRAY(64, "arrow origins", flows.origin, nflows, RP_NEED_FLOWS),
    ARRAY(65, "arrow flags", flows.flags, nflows, RP_NEED_FLOWS),
    ARRAY(66, "arrow events", flows.event, nflows, RP_NEED_FLOWS),
    ARRAY(67, "arrow shapes", flows.shape, nflows, RP_NEED_ARGS),
    ARRAY(68, "arrow arg_row", flows.arg_row, nflows, RP_NEED_ARGS),
    ARRAY(70, "sample ts_ns", samples.ts_ns, nsamples, RP_NEED_SAMPLES),
    ARRAY(71, "sample weights", samples.weight, nsamples, RP_NEED_SAMPLES),
    ARRAY(72, "sample tracks", samples.track, nsamples, RP_NEED_SAMPLES),
    ARRAY(73, "sample stacks", samples.stack, nsamples, RP_NEED_SAMPLES),
    ARRAY(74, "sample flags", samples.flags, nsamples, RP_NEED_SAMPLES),
    ARRAY(75, "frames", samples.frame, nframes, RP_NEED_SAMPLES),
    ARRAY(76, "stacks", samples.stacks, nstacks, RP_NEED_SAMPLES),
};

_Static_assert(sizeof(struct rp_rpt_header) == 64, "as docs/formats/rpt.md has it");
_Static_assert(sizeof(struct rp_rpt_entry) == 32, "as docs/formats/rpt.md has it");
_Static_assert(sizeof(struct rp_rpt_head) == 240, "as docs/formats/rpt.md has it");
_Static_assert(sizeof(struct rp_origin) == 8 && sizeof(struct rp_process) == 32 &&
                   sizeof(struct rp_track_info) == 40 && sizeof(struct rp_step) == 64 &&
                   sizeof(struct rp_device) == 32 && sizeof(struct rp_meta) == 12 &&
                   sizeof(struct rp_shape) == 12 && sizeof(struct rp_arg_block) == 16 &&
                   sizeof(struct rp_spilled) == 16 && sizeof(struct rp_call_frame) == 16 &&
                   sizeof(struct rp_call_stack) == 8,
               "records of the file have no holes: docs/formats/rpt.md");

const struct rp_rpt_section *rp_rpt_sections(size_t *n)
{
    *n = sizeof sections / sizeof sections[0];
    return sections;
}

struct rp_rpt_head rp_rpt_head_of(const struct rp_trace *t)
{
    return (struct rp_rpt_head){.base_ns = t->base_ns,
                                .has_base = t->has_base,
                                .rank = t->rank,
                                .world_size = t->world_size,
                                .format = t->format,
                                .framework = t->framework,
                                .framework_version = t->framework_version,
                                .one = 1,
                                .nevents = t->ev.n,
                                .nstrings = t->str.n,
                                .nstring_offsets = (uint64_t)t->str.n + 1,
                                .nstring_bytes = t->str.offset[t->str.n],
                                .norigins = t->norigins,
                                .nprocesses = t->nprocesses,
                                .ntracks = t->ntracks,
                                .nsteps = t->nsteps,
                                .ndevices = t->ndevices,
                                .nmeta = t->nmeta,
                                .nwarnings = t->nwarnings,
                                .nshapes = t->args.nshapes,
                                .nkeys = t->args.nkeys,
                                .nblocks = t->args.nblocks,
                                .ndata = t->args.ndata + 8,
                                .nspill_offsets = (uint64_t)t->args.nspilled_rows + 1,
                                .nspilled = t->args.nspilled,
                                .nlinks = t->links.n,
                                .nlink_offsets = (uint64_t)t->links.n + 1,
                                .nmembers = t->links.offset[t->links.n],
                                .nflows = t->flows.n,
                                .nsamples = t->samples.n,
                                .nframes = t->samples.nframes,
                                .nstacks = t->samples.nstacks,
                                .weight_unit = t->samples.unit,
                                .weight_name = t->samples.unit_name};
}

static uint64_t turn(uint64_t lane, uint64_t word)
{
    lane ^= word;
    return (lane << 27 | lane >> 37) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Each round is a bijection of its lane and of its word, so a change inside one word always changes
 * the result. */
uint64_t rp_rpt_checksum(const void *bytes, size_t n)
{
    uint64_t lane[4] = {UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344),
                        UINT64_C(0xa4093822299f31d0), UINT64_C(0x082efa98ec4e6c89)};
    const uint8_t *p = bytes;
    uint64_t word[4], sum = n;
    size_t i, k;

    for (i = 0; i + 32 <= n; i += 32) {
        memcpy(word, p + i, 32);
        for (k = 0; k < 4; k++)
            lane[k] = turn(lane[k], word[k]);
    }
    if (i < n) {
        memset(word, 0, sizeof word);
        memcpy(word, p + i, n - i);
        for (k = 0; k < 4; k++)
            lane[k] = turn(lane[k], word[k]);
    }
    for (k = 0; k < 4; k++)
        sum = turn(sum, lane[k]);
    sum ^= sum >> 32;
    sum *= UINT64_C(0xd6e8feb86659fd93);
    return sum ^ sum >> 32;
}
