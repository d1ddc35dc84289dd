/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Declarations for the files that make a graph. Threads are cut into nodes at the starts and ends
 * of their spans and at cuts: moments at which a thread resumes because of another thread or of the
 * device, or at which something else starts because of it.
 *
 *     span     [main ..........................................]
 *     cut               |from             |at
 *     nodes    [main   )                  [main                ]   what lies between waited
 *
 * So cuts come first (sync.c, hand_off.c), then the nodes (nodes.c), then edges.
 */
#include "base/decides.h"
#include "base/hash.h"
#include "facts/arg_keys.h"
#include "stepgraph/graph.h"

#define RP_SG_NO_ITEM UINT32_MAX
#define RP_SG_NO_LANE UINT32_MAX

/* The time that a thread needs between two actions. A thread that continues within this time after
   an event was waiting for it; one that pauses for longer waited for somebody. */
#define RP_SG_SOON_NS 20000
RP_DECISION(
    RP_SG_SOON_NS, "ns",
    "a gap up to this is the thread's own way from one operator to the next; what rested for "
    "longer was woken (docs/definitions.md, hand_over and sync)",
    "stepgraph/a_thread_that_polls_waits, stepgraph/a_short_gap_is_no_sleep");

/* A moment at which a thread is cut, and the source of its edge. */
struct rp_sg_cut {
    int64_t from_ns, at_ns; /* the thread waited in between; it did not if they are equal */
    uint32_t lane;          /* thread that is cut */
    uint32_t item;          /* the item for which it waited, or RP_SG_NO_ITEM: */
    uint32_t other; /* the thread, at other_ns; RP_SG_NO_LANE for a plain cut without an edge */
    int64_t other_ns;
    uint8_t kind, flags; /* of the edge */
};

/* A thread: its spans, those of operators and calls, and their times. */
struct rp_sg_thread {
    rp_track track;
    size_t first_span, end_span; /* index in spans */
    size_t first_busy, end_busy; /* index in busy */
    int64_t collectives_ns;      /* time in its collectives, and in all its other work */
    int64_t others_ns;
    bool carries; /* it carries out collectives for the others, as workers of gloo do */
};

struct rp_sg_builder {
    const struct rp_trace *t;
    const struct rp_work *work;
    const struct rp_collectives *collectives;
    struct rp_stepgraph *g;
    RP_VEC(struct rp_sg_thread) threads; /* thread i is lane i */
    RP_VEC(rp_event) spans;
    RP_VEC(struct rp_interval) busy; /* operators and calls of each thread, joined */
    RP_VEC(struct rp_sg_cut) cuts;   /* sorted by lane and time when all are there */
    RP_VEC(uint32_t) thread_of_track;
    RP_VEC(uint32_t) by_end;     /* items by end */
    RP_VEC(uint32_t) by_stream;  /* items of a stream together, by start */
    RP_VEC(uint32_t) stream_end; /* by stream: the end of its items in by_stream */
    RP_VEC(uint32_t) place;      /* by item: its index in by_stream */
    RP_VEC(uint32_t) item_node;  /* by item; for a collective its arrival */
    RP_VEC(uint32_t) name_of;    /* by string: the index of its name + 1 */
    struct rp_map collective_of; /* from event to number in the list */
};

/* The steps of building a graph, in the order in which they run. */
enum rp_code rp_sg_find_threads(struct rp_sg_builder *b, struct rp_err *err);
enum rp_code rp_sg_index_items(struct rp_sg_builder *b, struct rp_err *err);
enum rp_code rp_sg_cut_syncs(struct rp_sg_builder *b, struct rp_err *err);
enum rp_code rp_sg_cut_hand_offs(struct rp_sg_builder *b, struct rp_err *err);
enum rp_code rp_sg_make_nodes(struct rp_sg_builder *b, struct rp_err *err);
enum rp_code rp_sg_link_threads(struct rp_sg_builder *b, struct rp_err *err);
enum rp_code rp_sg_link_device(struct rp_sg_builder *b, struct rp_err *err);
enum rp_code rp_sg_link_events(struct rp_sg_builder *b, struct rp_err *err);
enum rp_code rp_sg_link_forward(struct rp_sg_builder *b, struct rp_err *err);
enum rp_code rp_sg_link_rest(struct rp_sg_builder *b, struct rp_err *err);
/* Decides which of two edges into a node binds: the one that ends later, and of two that end at the
   same time the one whose kind has the higher rank here. */
extern const uint8_t rp_sg_edge_ranks[RP_SG_EDGE_KINDS];
static inline bool rp_sg_binds_more(const struct rp_sg_edge *a, int64_t a_ns,
                                    const struct rp_sg_edge *b, int64_t b_ns)
{
    bool loose = a->flags & RP_SG_LOOSE;

    if (loose != (bool)(b->flags & RP_SG_LOOSE))
        return !loose;
    return a_ns != b_ns ? a_ns > b_ns : rp_sg_edge_ranks[a->kind] > rp_sg_edge_ranks[b->kind];
}
/* Sorts edges in both directions, finds an order of the nodes, and sets lags. */
enum rp_code rp_sg_freeze(struct rp_stepgraph *g, struct rp_err *err);

/* Operators and calls are work; annotations and Python frames may only contain waiting. */
bool rp_sg_is_work(uint8_t kind);

/* Adds an edge if the recorded times allow it: from the end of `from`, or from its start if `from`
   is still running when `to` begins. */
enum rp_code rp_sg_add_edge(struct rp_stepgraph *g, uint32_t from, uint32_t to, uint8_t kind,
                            uint8_t flags, struct rp_err *err);

/* Return the last node of a lane that starts before a moment, and the first that starts at or after
   it, or RP_NONE. */
uint32_t rp_sg_node_before(const struct rp_stepgraph *g, uint32_t lane, int64_t ns);
uint32_t rp_sg_node_from(const struct rp_stepgraph *g, uint32_t lane, int64_t ns);

/* Returns the item of any stream that ends last, at or before a moment, and starts before it. */
uint32_t rp_sg_item_before(const struct rp_sg_builder *b, int64_t ns);
/* Returns the last item of a stream that is over at a moment and was launched before another
   one. */
uint32_t rp_sg_stream_item_before(const struct rp_sg_builder *b, uint32_t stream, int64_t ns,
                                  int64_t launched_ns);
/* Returns the node to which the end of an item belongs. */
uint32_t rp_sg_item_end(const struct rp_sg_builder *b, uint32_t item);

/*
 * The content of records of waits (cuda_sync): which stream waits for which stream, and up to which
 * call that recorded the event. An event is recorded again and again, and the call distinguishes
 * its versions.
 */
struct rp_sg_waits {
    const struct rp_work *work;
    struct rp_arg_key stream, on_stream, record;
    struct rp_map call_of; /* from correlation to the first host call that has it */
};
struct rp_sg_wait {
    uint32_t stream; /* the stream that waits, or the only one for which the host waits; RP_NONE if
                        not recorded */
    uint32_t on_stream; /* the stream of the event, or RP_NONE */
    int64_t record_ns;  /* when the event was recorded on the host, or INT64_MAX */
};
enum rp_code rp_sg_waits_init(struct rp_sg_waits *w, const struct rp_work *work,
                              struct rp_err *err);
void rp_sg_waits_release(struct rp_sg_waits *w);
struct rp_sg_wait rp_sg_wait_of(const struct rp_sg_waits *w, rp_event record);
/* Returns the record that belongs to a call, or RP_NONE. */
rp_event rp_sg_wait_record(const struct rp_trace *t, rp_event call);
