/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of the reader of Perfetto's traces share. Only they include it.
 *
 *   perfetto.c  the file: sniffing, packets, compressed packets, sequences and their interned texts
 *   clocks.c    snapshots of clocks; from the time of a packet to the time of the trace
 *   tracks.c    descriptors; which track of the model a track of the file is
 *   event.c     track events: slices, instants, counters, old events of Chrome
 *   args.c      debug annotations as arguments
 *   gpu.c       render stages, counters and names of GPUs
 *   samples.c   samples of call stacks
 *   arrows.c    what is known only at the end: ends of slices, arrows, names of tracks
 */
#include "abi/proto/perfetto.h"
#include "base/hash.h"
#include "base/vec.h"
#include "formats/chrome/facts.h"
#include "formats/trace_proto.h"

#define RP_PFT_NO_INDEX UINT32_MAX

/* The tables of interned texts: strings by iid, for one sequence. FRAMES and STACKS have the
   builder's. */
enum rp_perfetto_table {
    RP_PFT_CATEGORIES,
    RP_PFT_NAMES,
    RP_PFT_ARG_NAMES,
    RP_PFT_ARG_TEXTS,
    RP_PFT_GPU_SPECS,
    RP_PFT_FUNCTIONS,
    RP_PFT_SOURCES,
    RP_PFT_MODULE_PATHS,
    RP_PFT_MODULES,
    RP_PFT_FRAMES,
    RP_PFT_STACKS,
    RP_PFT_KERNELS,
    RP_PFT_LAUNCH_KEYS,
    RP_PFT_COUNTER_SETS, /* of a counter: the number of its GPU + 1 */
    RP_PFT_TABLES
};

/* What the writer of one sequence of packets has said so far. */
struct rp_perfetto_sequence {
    uint64_t id;
    uint32_t generation; /* changes whenever the state is cleared */
    bool valid;          /* the state was cleared, and nothing has been lost since */
    struct rp_map interned;
    uint64_t clock;   /* the clock of packets that name none; 0: the trace's clock */
    uint64_t track;   /* uuid of the track for events that name none; 0: none */
    uint64_t thread;  /* uuid of the thread that writes the sequence; 0: not known */
    uint64_t last_us; /* of Chrome's old times */
    RP_VEC(uint64_t) counters, doubles; /* uuids of the tracks for the values that events carry */
};

enum rp_perfetto_track_kind { RP_PFT_PLAIN, RP_PFT_PROCESS, RP_PFT_THREAD, RP_PFT_COUNTER };

struct rp_perfetto_track {
    uint64_t uuid, parent, merge_key;
    int64_t pid, tid, multiplier;
    int64_t number; /* number of a stream or thread that is a plain track; -1: not given */
    rp_str name;
    uint32_t process; /* index into processes of a process or thread */
    uint8_t kind, merge;
    bool incremental; /* a counter whose values are differences */
    bool used;        /* it has events, and so it has its name */
    rp_track track;
    uint64_t sampled; /* for the counter of samples: the last value */
};

struct rp_perfetto_process {
    int64_t pid;
    uint64_t uuid; /* 0 if it is known only from its threads */
    rp_str name, label;
    uint32_t process; /* the builder's process, or RP_PFT_NO_INDEX */
    rp_track track;   /* one of its tracks */
};

/* A begin or end of a slice. Files need not be in order of time. */
struct rp_perfetto_mark {
    int64_t ts_ns;
    uint32_t track;
    uint32_t event; /* the builder's event; for an end, the next one */
    rp_str name;    /* name of the slice; an end may have none: 0 */
    uint8_t type;   /* enum rp_perfetto_type */
    uint8_t
        begins; /* the mark begins a slice or state; it sorts after an end with the same event */
};

struct rp_perfetto_flow {
    uint64_t id;
    int64_t ts_ns;
    uint32_t order;
    rp_track track;
    rp_str category; /* or 0 */
    uint8_t kind;    /* enum rp_kind of the event */
    bool ends;
};

struct rp_perfetto_clock { /* a time of a clock, and of the trace's at that moment */
    uint64_t clock;        /* the clock, with the sequence if it belongs to one */
    int64_t ns, trace_ns;
};

struct rp_perfetto {
    struct rp_proto_trace t;
    struct rp_chrome_facts facts;
    size_t usable; /* number of bytes that are whole packets */
    uint64_t packets, blob;
    RP_VEC(struct rp_bytes) blobs; /* decompressed packets, in the order of the file */
    uint64_t blob_bytes;

    RP_VEC(struct rp_perfetto_sequence) sequences;
    struct rp_map sequence_of;
    uint32_t generations;

    RP_VEC(struct rp_perfetto_track) tracks;
    RP_VEC(struct rp_perfetto_process) processes;
    struct rp_map track_of, process_of, thread_of, group_of, category_of, total_of, gpu_names;
    RP_VEC(int64_t) totals; /* running values of incremental counters */
    uint64_t last_uuid;
    uint32_t last_track;

    RP_VEC(struct rp_perfetto_clock) clocks;
    uint64_t trace_clock;
    struct rp_map unit_of, incremental_of, now_of; /* by clock */
    RP_VEC(int64_t) now;

    RP_VEC(struct rp_arg) args;
    struct rp_map
        arg_of; /* from the key of an argument to its index in args, of this event or another */
    struct rp_emit json; /* of nested annotations */
    RP_VEC(struct rp_perfetto_mark) marks;
    RP_VEC(struct rp_perfetto_flow) flows;

    uint64_t ignored, stateless, no_clock, end_args, unbegun;
    bool submits;    /* calls name the render stages that they submitted */
    bool correlates; /* render stages name their calls by another number */
};

/* ---- perfetto.c ---- */

struct rp_perfetto_packet {
    struct rp_proto_cursor c; /* the packet, for offsets in errors */
    uint64_t timestamp, clock, sequence;
    bool has_timestamp, has_clock;
    uint32_t flags;
    bool cleared, dropped;
    struct rp_proto_item interned, defaults, data; /* number 0: none */
    struct rp_perfetto_sequence *seq;              /* in the second pass */
};

/* The index that an iid stands for; RP_MAP_NONE if it is not known. */
uint32_t rp_perfetto_id(const struct rp_perfetto_sequence *seq, enum rp_perfetto_table table,
                        uint64_t iid);
enum rp_code rp_perfetto_intern(struct rp_perfetto_sequence *seq, enum rp_perfetto_table table,
                                uint64_t iid, uint32_t id, struct rp_err *err);
/* The text of an iid; 0 if it is not known. */
rp_str rp_perfetto_interned(const struct rp_perfetto *r, const struct rp_perfetto_sequence *seq,
                            enum rp_perfetto_table table, uint64_t iid);

/* ---- clocks.c ---- */

enum rp_code rp_perfetto_read_clocks(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                     struct rp_err *err);
/* A snapshot restarts the clocks that count from the packet before. */
enum rp_code rp_perfetto_restart_clocks(struct rp_perfetto *r,
                                        const struct rp_perfetto_packet *packet,
                                        struct rp_err *err);
void rp_perfetto_sort_clocks(struct rp_perfetto *r);
enum rp_code rp_perfetto_time(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                              int64_t *ns, struct rp_err *err);

/* ---- tracks.c ---- */

/* Reads a descriptor: in the first pass what it describes, in the second its name. */
enum rp_code rp_perfetto_describe(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                  bool names, struct rp_err *err);
/* Reads Chrome's old descriptors of processes and threads. */
enum rp_code rp_perfetto_describe_old(struct rp_perfetto *r,
                                      const struct rp_perfetto_packet *packet, bool names,
                                      struct rp_err *err);
enum rp_code rp_perfetto_read_tree(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                   struct rp_err *err);
/* The track of a uuid, whether described or not; index into tracks. */
enum rp_code rp_perfetto_track(struct rp_perfetto *r, uint64_t uuid, uint32_t *out,
                               struct rp_err *err);
/* The thread of a process that Chrome's events name themselves. */
enum rp_code rp_perfetto_thread(struct rp_perfetto *r, int64_t pid, int64_t tid, uint32_t *out,
                                struct rp_err *err);
/* Makes its track in the model before its first event; name is the name of that event. */
enum rp_code rp_perfetto_use_track(struct rp_perfetto *r, uint32_t track, rp_str name,
                                   struct rp_err *err);
/* The stream of a device whose number is the id of its process, as in PyTorch's files. */
enum rp_code rp_perfetto_stream(struct rp_perfetto *r, int64_t device, int64_t stream,
                                rp_track *out, struct rp_err *err);
/* Makes a process that the file does not describe, such as a GPU, and a track of it. */
enum rp_code rp_perfetto_own_track(struct rp_perfetto *r, const char *process, rp_str name,
                                   rp_track *out, struct rp_err *err);
enum rp_code rp_perfetto_name_tracks(struct rp_perfetto *r, struct rp_err *err);

/* ---- event.c ---- */

enum rp_code rp_perfetto_read_event(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                    struct rp_err *err);
/* Takes the number that joins a launch and its work from the arguments; otherwise it stays. */
enum rp_code rp_perfetto_set_link(struct rp_perfetto *r, struct rp_raw *raw, struct rp_err *err);
/* What the category, a string of the builder, means. */
enum rp_code rp_perfetto_category(struct rp_perfetto *r, rp_str category,
                                  struct rp_chrome_kind *out, struct rp_err *err);
enum rp_code rp_perfetto_add_counter(struct rp_perfetto *r, rp_track track, int64_t ns, rp_str name,
                                     struct rp_arg value, struct rp_err *err);

/* ---- args.c ---- */

/* Appends to r->args; *category is that of the arrows that begin here, as our writer notes it. */
enum rp_code rp_perfetto_read_arg(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                  const struct rp_proto_cursor *up,
                                  const struct rp_proto_item *item, rp_str *category,
                                  struct rp_err *err);

/* ---- gpu.c ---- */

enum rp_code rp_perfetto_read_stage(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                    struct rp_err *err);
enum rp_code rp_perfetto_read_gpu_counters(struct rp_perfetto *r,
                                           const struct rp_perfetto_packet *packet,
                                           struct rp_err *err);
/* Reads interned names and GPUs of counters, and names of kernels. */
enum rp_code rp_perfetto_read_gpu_tables(struct rp_perfetto *r,
                                         const struct rp_perfetto_packet *packet,
                                         struct rp_err *err);
enum rp_code rp_perfetto_read_gpus(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                   struct rp_err *err);

/* ---- samples.c ---- */

/* Reads interned libraries, frames and stacks, after the texts of the same packet. */
enum rp_code rp_perfetto_read_stacks(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                     struct rp_err *err);
enum rp_code rp_perfetto_read_sample(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                     struct rp_err *err);

/* ---- arrows.c ---- */

enum rp_code rp_perfetto_end_slices(struct rp_perfetto *r, struct rp_err *err);
enum rp_code rp_perfetto_add_arrows(struct rp_perfetto *r, struct rp_err *err);
