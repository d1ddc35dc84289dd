/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The internals of the builder, for the passes. Events are in file order before the pass `order`
 * and in canonical order after it. Arguments can be read (trace->args) after the pass `args`.
 * Inside src/trace only.
 */
#include "base/hash.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "trace/build/build.h"
#include "trace/finish/index_sort.h"
#include "trace/trace_store.h"

struct rp_build_events {
    uint32_t n;
    uint32_t room; /* events that fit into every column that rp_builder_add fills */
    RP_VEC(int64_t) ts_ns;
    RP_VEC(int64_t) dur_ns;
    RP_VEC(uint32_t) name;
    RP_VEC(uint32_t) track; /* RP_NONE: removed by a pass, and dropped by `order` */
    RP_VEC(uint32_t) link;  /* index into link_id; after the pass `ids`, into links */
    RP_VEC(uint32_t) arg_row;
    RP_VEC(uint16_t) shape;
    RP_VEC(uint16_t) origin;
    RP_VEC(uint8_t) flags;
    RP_VEC(uint32_t) parent; /* from the pass `parents` on */
    RP_VEC(uint8_t) kind;    /* from the pass `tracks` on */
    RP_VEC(uint32_t) seq;    /* after the pass `order`: the row it was added as */
};

struct rp_build_flows {
    uint32_t n;
    RP_VEC(int64_t) ts_ns;
    RP_VEC(int64_t) id;
    RP_VEC(uint32_t) name;
    RP_VEC(uint32_t) track;
    RP_VEC(uint32_t) event;
    RP_VEC(uint32_t) arg_row;
    RP_VEC(uint16_t) shape;
    RP_VEC(uint16_t) origin;
    RP_VEC(uint8_t) flags;
};

struct rp_build_samples {
    RP_VEC(int64_t) ts_ns;
    RP_VEC(int64_t) weight;
    RP_VEC(uint32_t) track;
    RP_VEC(uint32_t) stack;
    RP_VEC(uint8_t) flags;
    RP_VEC(struct rp_call_frame) frames;
    RP_VEC(struct rp_call_stack) stacks;
    struct rp_map frame_of, stack_of;
};

/* The rows of a shape that do not fill a block yet, column by column, and the full blocks. */
struct rp_build_shape {
    uint32_t nkeys, first_key;
    uint32_t nrows; /* all of them */
    uint32_t nopen, room;
    int64_t *open;
    RP_VEC(struct rp_arg_block) full; /* nkeys for every RP_ARG_BLOCK rows */
};

struct rp_build_args {
    RP_VEC(struct rp_build_shape) shapes;
    struct rp_map shape_of; /* from the hash of keys and types to the shape */
    RP_VEC(uint32_t) key_name;
    RP_VEC(uint8_t) key_type;
    RP_VEC(uint8_t) data;
    RP_VEC(uint32_t) spill_offset; /* rows + 1 */
    RP_VEC(struct rp_spilled) spill;
};

struct rp_build_links { /* dense ids: correlations first */
    uint32_t ncorrelation;
    RP_VEC(int64_t) native_id;
    RP_VEC(uint8_t) source;
};

struct rp_builder {
    struct rp_limits limits;
    struct rp_trace *trace;
    struct rp_strtab str;
    struct rp_build_events ev;
    struct rp_build_flows flows;
    struct rp_build_samples samples;
    struct rp_build_args args;
    RP_VEC(int64_t) link_id; /* one for each event that has one, before the pass `ids` */
    struct rp_build_links links;
    struct rp_map pid_of, pid_text_of, track_of, origin_of;
    RP_VEC(struct rp_process) processes;
    RP_VEC(struct rp_track_info) tracks;
    RP_VEC(struct rp_origin) origins;
    bool shares_origins; /* there are too many origins */
    RP_VEC(struct rp_step) steps;
    RP_VEC(struct rp_device) devices;
    RP_VEC(struct rp_meta) meta;
    RP_VEC(uint32_t) warnings;
    RP_VEC(uint32_t) member, member_offset; /* of the links, from the pass `links` on */
    RP_VEC(uint8_t) name_class;             /* from the pass `names` on */
};

/* args.c */
enum rp_code rp_build_args_init(struct rp_build_args *args, struct rp_err *err);
void rp_build_args_release(struct rp_build_args *args);
enum rp_code rp_build_args_row(struct rp_build_args *args, uint16_t shape,
                               const struct rp_arg *values, uint32_t n, uint32_t *row,
                               struct rp_err *err);
enum rp_code rp_build_args_seal(struct rp_builder *b, struct rp_err *err);
/* Makes spilled arguments that were added after sealing visible in trace->args. */
void rp_build_args_show_spilled(struct rp_builder *b);

/* samples.c */
void rp_build_samples_release(struct rp_build_samples *samples);

/* For each origin, the first one with the same category, as a small number for the category. */
enum rp_code rp_build_categories(const struct rp_builder *b, rp_row_vec *out, struct rp_err *err);

/* trace/finish/flows.c: whether an arrow goes from a host call to its device work. */
enum { RP_LAUNCH_FLOWS = 4 };
void rp_build_launch_flow_names(const struct rp_builder *b, rp_str names[RP_LAUNCH_FLOWS]);
bool rp_build_flow_is_launch(const struct rp_builder *b, const rp_str names[RP_LAUNCH_FLOWS],
                             uint32_t flow);

/* The id of a text, or RP_NONE if the trace does not contain it. */
static inline rp_str rp_build_find_str(const struct rp_builder *b, const char *text)
{
    return rp_strtab_find(&b->str, text, strlen(text));
}

/* rp_event_end_ns of the i-th event while building. */
static inline int64_t rp_build_end_ns(const struct rp_builder *b, uint32_t i)
{
    int64_t end;

    if (b->ev.dur_ns.at[i] <= 0)
        return b->ev.ts_ns.at[i];
    return __builtin_add_overflow(b->ev.ts_ns.at[i], b->ev.dur_ns.at[i], &end) ? INT64_MAX : end;
}

static inline const struct rp_origin *rp_build_origin_of(const struct rp_builder *b, uint32_t i)
{
    return &b->origins.at[b->ev.origin.at[i]];
}
