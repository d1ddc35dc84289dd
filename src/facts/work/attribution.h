/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Attribution of device work: the innermost operator, Python frame, module and annotation around
 * its launch, and the phase of training. All kernels of a launched graph are attributed to the
 * surroundings of that launch, unless the capture of the graph is joined (facts/graphs/join.h):
 * then to those of their own launch in it. Work of XLA names its instruction and module itself;
 * these are used if no operator or module surrounds the launch. Coverage counts what could be
 * attributed.
 */
#include "facts/work/work.h"

enum rp_phase {
    RP_PHASE_OTHER, /* not known */
    RP_PHASE_FORWARD,
    RP_PHASE_BACKWARD,
    RP_PHASE_OPTIMIZER,
    RP_PHASES
};
extern const char *const rp_phase_names[RP_PHASES];

/* What an item of work is attributed to. */
struct rp_work_owner {
    rp_event op, python, annotation, module; /* RP_NONE: none */
    rp_event forward; /* for a backward item: the operator whose gradient it computes, or RP_NONE */
    uint8_t phase;    /* enum rp_phase */
    rp_str hlo_op, hlo_module; /* recorded by XLA with the work itself; 0: none */
};

/* Device time that could be attributed, by kind of owner. */
struct rp_coverage {
    int64_t device_ns; /* of all work, as the sum of durations */
    int64_t launched_ns, op_ns, python_ns, module_ns;
    int64_t graph_ns, graph_op_ns; /* kernels of graphs; those among them with an operator */
};

struct rp_attribution {
    RP_VEC(struct rp_work_owner) owners; /* by item of the work */
    struct rp_coverage coverage;
};

enum rp_code rp_attribution_init(struct rp_attribution *out, const struct rp_work *work,
                                 struct rp_err *err);
void rp_attribution_release(struct rp_attribution *a);

/* The most ancestors that are searched. No real call stack is that deep, but in a damaged file
   thousands of equal spans may be nested, and searching from each of them would take too long. */
#define RP_ANCESTORS_MAX 2048

/* The nearest ancestor of e (or e itself) of that kind, or RP_NONE. */
rp_event rp_event_around(const struct rp_trace *t, rp_event e, enum rp_kind kind);

/* The phase that the name of a span suggests for the work inside it. */
enum rp_phase rp_phase_of_name(const struct rp_trace *t, rp_str name);
/* The innermost span of a track at a time, or RP_NONE. */
rp_event rp_event_at(const struct rp_trace *t, rp_track track, int64_t at_ns);

/* Whether a Python frame is a call of a module ("nn.Module: Linear_3"). */
bool rp_event_is_module(const struct rp_trace *t, rp_event e);
