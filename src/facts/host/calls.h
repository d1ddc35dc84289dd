/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the host ran, by name: the self time of every operator, annotation, runtime call and Python
 * frame, without the spans inside it. A stall is a call far above the median of its name on all
 * ranks (docs/definitions.md, "Stalls").
 */
#include "base/arena.h"
#include "base/vec.h"
#include "facts/times/time_lists.h"
#include "facts/work/work.h"

enum {                    /* of a name */
       RP_CALL_WAITS = 1, /* waits for the device by definition, so long calls are not stalls */
       RP_CALL_STEP = 2,  /* marks a step of the profiler */
       RP_CALL_VARIES = 4 /* depends on arguments that are not recorded (call_work.h) */
};

struct rp_slow_call {
    rp_event event;
    uint32_t name;     /* index in the names */
    int64_t self_ns;   /* self time */
    int64_t explained; /* 1: its inputs explain its length (call_work.h), if that was asked */
};

/* The calls of one rank; the trace is not needed afterwards. */
struct rp_host_calls {
    RP_VEC(const char *) names;       /* without the digits after '#': "ProfilerStep#" */
    RP_VEC(uint8_t) kind;             /* by name, enum rp_kind */
    RP_VEC(uint8_t) flags;            /* by name */
    struct rp_time_lists self;        /* by name: self times */
    RP_VEC(struct rp_slow_call) slow; /* those above the floor, by track and time */
};

extern const struct rp_type rp_host_calls_type; /* for use as a member of a part (result/part.h) */

/* Collects calls that start in the scope. Linear in events. Names are in the arena; `out` must be
   released also after a failure. */
enum rp_code rp_host_calls_init(struct rp_host_calls *out, const struct rp_trace *trace,
                                const struct rp_scope *scope, int64_t floor_ns,
                                struct rp_arena *arena, struct rp_err *err);
void rp_host_calls_release(struct rp_host_calls *calls);

/* The definition of a stall. */
struct rp_stall_rule {
    int64_t floor_ns; /* self time above this */
    int64_t ratio;    /* and this many times longer than the median, or this many microseconds */
    int64_t calls;    /* and its name has at least this many calls */
};
extern const struct rp_stall_rule rp_stall_usual;

/* A name on all ranks. */
struct rp_call_name {
    const char *name;
    uint8_t kind, flags;
    bool slow;                  /* has a slow call */
    size_t count;               /* calls */
    int64_t median_ns;          /* RP_ABSENT_I64 if no call is slow */
    int64_t often_ns;           /* a tenth of its calls take longer; set if a call is slow */
    size_t nlists;              /* ranks that have it */
    struct rp_time_list *lists; /* their times, if a call is slow */
};

struct rp_call_names {
    size_t n;
    struct rp_call_name *at;
    int64_t *times; /* room for those of one name */
    uint32_t **to;  /* by rank and name of the rank: index of the name here */
};

/* Joins ranks. Allocates in the arena; names and times are borrowed from the ranks. Medians are
   computed only for names with a slow call. */
enum rp_code rp_call_names_join(const struct rp_host_calls *const *ranks, size_t n,
                                struct rp_arena *arena, struct rp_call_names *out,
                                struct rp_err *err);

/* The times of a name with a slow call in ascending order, valid until another name is asked
   for. */
enum rp_code rp_call_times(struct rp_call_names *names, const struct rp_call_name *name,
                           const int64_t **out, struct rp_err *err);

/* Whether a slow call of that name is a stall. */
bool rp_is_stall(const struct rp_call_name *name, int64_t self_ns,
                 const struct rp_stall_rule *rule);
