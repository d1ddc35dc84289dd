/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of the XSpace reader share. Only they include it.
 *
 *   xplane.c         the file: sniffing, planes one by one, how it ends
 *   plane.c   a plane: its tables of names, its lines
 *   event.c   events and their statistics
 *   kinds.c   what planes, lines and names mean
 *   facts.c   everything beside the events: devices, versions, hosts, programs
 *
 *   XSpace   1 planes    2 errors        3 warnings      4 hostnames
 *   XPlane   1 id        2 name          3 lines         4 event_metadata  5 stat_metadata  6 stats
 *   XLine    1 id        2 name          3 timestamp_ns  4 events  10 display_id  11 display_name
 *   XEvent   1 metadata  2 offset_ps     3 duration_ps   4 stats    5 num_occurrences, not offset
 *   XStat    1 metadata  2 double  3 uint64  4 int64  5 str  6 bytes  7 ref (to a stat_metadata)
 *   XEventMetadata  1 id  2 name  3 metadata  4 display_name  5 stats  6 child_id
 *   XStatMetadata   1 id  2 name  3 description
 */
#include "abi/proto/xspace.h"
#include "base/hash.h"
#include "base/vec.h"
#include "formats/trace_proto.h"

enum rp_xplane_plane_kind {
    RP_XPLANE_OTHER,
    RP_XPLANE_HOST,
    RP_XPLANE_CUPTI,
    RP_XPLANE_GPU,
    RP_XPLANE_TPU,
    RP_XPLANE_DEVICE /* of another kind */
};

enum rp_xplane_line_kind {
    RP_XPLANE_THREAD,
    RP_XPLANE_API,    /* a thread, recorded by the device tracer */
    RP_XPLANE_STREAM, /* of a GPU */
    RP_XPLANE_OPS,    /* operations of a TPU, which are nested or follow each other */
    RP_XPLANE_ASYNC,  /* transfers of a TPU, which run beside its operations */
    RP_XPLANE_SHOWN,  /* derived lines of the device: steps, modules, scopes */
    RP_XPLANE_COUNTERS,
    RP_XPLANE_LINE_KINDS
};

enum rp_xplane_name_kind { /* chosen by the name of an event */
                           RP_XPLANE_PLAIN,
                           RP_XPLANE_PYTHON,
                           RP_XPLANE_CALL, /* a call of the device's runtime or driver */
                           RP_XPLANE_OPERATOR,
                           RP_XPLANE_TRACER, /* the profiler itself */
                           RP_XPLANE_COPY,
                           RP_XPLANE_FILL,
                           RP_XPLANE_MOVE, /* asynchronous copies of XLA; kernels may have such
                                              names too */
                           RP_XPLANE_COLLECTIVE,
                           RP_XPLANE_NAME_KINDS
};

/* Roles that statistics give to an event, a bit each. The first five determine its kind, so there
 * are RP_XPLANE_ROLES combinations; the others are arrows. */
enum {
    RP_XPLANE_CORRELATES = 1,
    RP_XPLANE_COPIES = 2,
    RP_XPLANE_FILLS = 4,
    RP_XPLANE_STEPS = 8,
    RP_XPLANE_OPERATES = 16,
    RP_XPLANE_ROLES = 32,
    RP_XPLANE_PRODUCER_TYPE = 32,
    RP_XPLANE_PRODUCER = 64,
    RP_XPLANE_CONSUMER_TYPE = 128,
    RP_XPLANE_CONSUMER = 256
};

#define RP_XPLANE_CONTEXTS 18 /* number of kinds of arrows that have a name */

enum { RP_XPLANE_JAX = 1, RP_XPLANE_TENSORFLOW = 2, RP_XPLANE_TORCH = 4 };

enum rp_xplane_type { /* the number of the field that holds the value */
                      RP_XSTAT_NONE,
                      RP_XSTAT_DOUBLE = RP_XSTAT_DOUBLE_VALUE,
                      RP_XSTAT_UINT64 = RP_XSTAT_UINT64_VALUE,
                      RP_XSTAT_INT64 = RP_XSTAT_INT64_VALUE,
                      RP_XSTAT_STR = RP_XSTAT_STR_VALUE,
                      RP_XSTAT_BYTES = RP_XSTAT_BYTES_VALUE,
                      RP_XSTAT_REF = RP_XSTAT_REF_VALUE
};

struct rp_xplane_value { /* one XStat */
    int64_t metadata;
    uint64_t value;
    struct rp_bytes bytes;
    enum rp_xplane_type type;
};

struct rp_xplane_key {    /* rp_xplane_key: the key of an argument, deduplicated by text */
    rp_str str, size_str; /* size_str: for bytes, the key of their size; 0: not made yet */
    uint32_t seen, place; /* serial of the last event that has it, and its index among that event's
                             arguments */
    uint16_t role;
};

struct rp_xplane_stat { /* XStatMetadata */
    uint32_t key;       /* its name */
    struct {            /* its last text */
        struct rp_bytes text;
        rp_str str;
    } memo;
};

struct rp_xplane_label { /* rp_xplane_label: an XEventMetadata, which is read when an event needs it
                          */
    struct rp_bytes message;
    bool read;
    uint8_t name_kind;
    uint16_t roles;
    uint16_t nargs;      /* of all its events */
    uint32_t args, keys; /* index of its first argument, and of the first key */
    rp_str name, long_name;
};

/* Maps ids to indices in a table; small ids, which nearly all are, by an array. */
struct rp_xplane_ids {
    RP_VEC(uint32_t) small;
    struct rp_map large;
};

/* A tree of the argument lists seen so far: a node is one more key and type. The child used last is
 * tried first, so that an event like the previous one costs one comparison for each argument. */
struct rp_xplane_node {
    uint32_t id; /* key << 3 | whether it is a size of bytes << 2 | type */
    uint32_t hot;
    uint16_t shape;
    bool has_shape;
};

struct rp_xplane_line {
    rp_track track;
    int64_t timestamp_ns;
    enum rp_xplane_line_kind kind;
};

struct rp_xplane {
    struct rp_proto_trace t;
    struct rp_emit json;
    unsigned signs; /* RP_XPLANE_JAX ... */
    rp_str version;
    int64_t start_ns;             /* profile_start_time; 0: not given */
    int64_t latest_ns;            /* of lines */
    uint64_t aggregated, subnano; /* events */
    struct rp_map pids;           /* those in use */

    /* state of the current plane */
    struct rp_bytes plane_name;
    enum rp_xplane_plane_kind plane_kind;
    uint32_t process;
    bool named;
    RP_VEC(struct rp_xplane_stat) stats;
    RP_VEC(struct rp_xplane_label) labels;
    RP_VEC(struct rp_arg) label_args;
    RP_VEC(uint32_t) label_keys;
    struct rp_xplane_ids stat_of, label_of;
    struct rp_map line_ids; /* from an id to its place in line_names */
    RP_VEC(struct rp_bytes) line_names;

    /* of all planes */
    RP_VEC(struct rp_xplane_key) keys;
    struct rp_map key_of; /* string id -> key */
    uint32_t long_name_key, offset_key, duration_key, occurrences_key;
    RP_VEC(struct rp_xplane_node) nodes; /* 0: the root */
    struct rp_map child_of;              /* from node << 32 | id to a node */
    RP_VEC(struct rp_arg) args;
    uint32_t serial; /* of the current event */
    uint8_t kinds[RP_XPLANE_LINE_KINDS][RP_XPLANE_NAME_KINDS][RP_XPLANE_ROLES];
    uint32_t origins[RP_XPLANE_LINE_KINDS][RP_KIND_COUNT]; /* + 1; 0: not made yet */
    uint32_t arrows[RP_XPLANE_CONTEXTS + 1][2];            /* the same for starts and ends */
};

/* ---- kinds.c ---- */

enum rp_xplane_plane_kind rp_xplane_plane_kind(struct rp_bytes name);
enum rp_xplane_line_kind rp_xplane_line_kind(enum rp_xplane_plane_kind plane, struct rp_bytes name);
/* display: the event has a display name that differs from its full name. */
enum rp_xplane_name_kind rp_xplane_name_kind(struct rp_bytes name, bool display, unsigned *signs);
uint16_t rp_xplane_role(struct rp_bytes stat_name);
/* The kind of hand-off; "other" for numbers of at least RP_XPLANE_CONTEXTS. */
const char *rp_xplane_context_name(uint64_t type);
void rp_xplane_fill_kinds(struct rp_xplane *r);
/* The flags RP_ORIGIN_* of a complete event. */
uint8_t rp_xplane_origin_flags(enum rp_xplane_line_kind line, uint8_t kind);

/* ---- plane.c ---- */

enum rp_code rp_xplane_read_plane(struct rp_xplane *r, const struct rp_proto_cursor *up,
                                  const struct rp_proto_item *item, struct rp_err *err);
/* The index of an id in its table, or RP_MAP_NONE. */
static inline uint32_t rp_xplane_find(const struct rp_xplane_ids *ids, int64_t id)
{
    return (uint64_t)id < ids->small.n ? ids->small.at[id] : rp_map_get(&ids->large, (uint64_t)id);
}
enum rp_code rp_xplane_key(struct rp_xplane *r, struct rp_bytes name, uint32_t *out,
                           struct rp_err *err);
/* The stat_metadata with an id; a missing one gets a name made from the id. */
enum rp_code rp_xplane_stat(struct rp_xplane *r, int64_t id, uint32_t *out, struct rp_err *err);
/* Finds the event_metadata with an id, and reads it. */
enum rp_code rp_xplane_label(struct rp_xplane *r, int64_t id, uint32_t *out, struct rp_err *err);

/* ---- event.c ---- */

enum rp_code rp_xplane_read_event(struct rp_xplane *r, const struct rp_xplane_line *line,
                                  const struct rp_proto_cursor *up,
                                  const struct rp_proto_item *item, struct rp_err *err);
enum rp_code rp_xplane_read_value(const struct rp_proto_cursor *up,
                                  const struct rp_proto_item *item, struct rp_xplane_value *out,
                                  struct rp_err *err);
/* Reads a statistic as an argument. */
enum rp_code rp_xplane_argument(struct rp_xplane *r, const struct rp_xplane_value *v,
                                struct rp_xplane_stat *stat, struct rp_arg *out,
                                struct rp_err *err);

/* ---- facts.c ---- */

/* Reads the statistics of a plane, and if it is /host:metadata, the programs in it. */
enum rp_code rp_xplane_read_facts(struct rp_xplane *r, const struct rp_proto_cursor *plane,
                                  struct rp_err *err);
/* Reads a text of the XSpace itself: field 2, 3 or 4. */
enum rp_code rp_xplane_read_note(struct rp_xplane *r, const struct rp_proto_item *item,
                                 uint32_t *count, struct rp_err *err);
/* To be called when everything has been read: sets base, framework, warnings. */
enum rp_code rp_xplane_end_facts(struct rp_xplane *r, struct rp_err *err);
