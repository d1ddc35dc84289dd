/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FACTS_ATTRIBUTION_H
#define RP_FACTS_ATTRIBUTION_H
/*
 * Whose work a device event is: the innermost operator, Python frame, module and annotation around
 * its launch, and the phase of training. One launch of a graph gives all its kernels the place of
 * the launch. XLA's work names its instruction and module itself: they stand in for an operator and
 * a module where none is around the launch. What has neither has no place; coverage counts both.
 */
#include "facts/work.h"

enum rp_phase {
    RP_PHASE_OTHER, /* nothing around the launch says more */
    RP_PHASE_FORWARD,
    RP_PHASE_BACKWARD,
    RP_PHASE_OPTIMIZER,
    RP_PHASES
};
extern const char *const rp_phase_names[RP_PHASES];

struct rp_place {
    rp_event op, python, annotation, module; /* RP_NONE: none */
    rp_event forward; /* of a backward item: the operator whose gradient it computes, or RP_NONE */
    uint8_t phase;    /* enum rp_phase */
    rp_str hlo_op, hlo_module; /* what XLA wrote on the work itself; 0: nothing */
};

/* Device time by what is known about it. */
struct rp_coverage {
    int64_t items, device_ns; /* all; device_ns: sum of durations */
    int64_t launched_ns, op_ns, python_ns, module_ns, annotation_ns, phase_ns, forward_ns;
};

struct rp_attribution {
    RP_VEC(struct rp_place) places; /* one an item of the work, in its order */
    struct rp_coverage coverage;
};

enum rp_code rp_attribution_init(struct rp_attribution *out, const struct rp_work *work,
                                 struct rp_err *err);
void rp_attribution_release(struct rp_attribution *a);

/* How far outwards whose work something is is looked for: no real stack is that deep, but equal
   spans of a damaged file hold each other, and to walk through all of them from each does not end.
 */
#define RP_DEPTH_MOST 2048

/* The first span from e outwards (e itself included) of that kind, or RP_NONE. */
rp_event rp_event_around(const struct rp_trace *t, rp_event e, enum rp_kind kind);

/* What the name of a span says about the phase of what runs inside it. */
enum rp_phase rp_phase_of_name(const struct rp_trace *t, rp_str name);
/* The innermost span of a track at a moment, or RP_NONE. */
rp_event rp_event_at(const struct rp_trace *t, rp_track track, int64_t at_ns);

/* Whether a Python frame is a call of a module ("nn.Module: Linear_3"). */
bool rp_event_is_module(const struct rp_trace *t, rp_event e);

#endif
