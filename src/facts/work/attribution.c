/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks from each launch through its ancestors on its thread. The phase that a name suggests is
 * decided once for each string. Backward operators carry the "Sequence number" of the forward
 * operator that made their node, so a pair is found through a map of those numbers. Linear in items
 * times the number of their ancestors.
 */
#include "facts/work/attribution.h"

#include "base/hash.h"
#include "base/order.h"
#include "facts/arg_keys.h"
#include "facts/torch_names.h"
#include "facts/work/ancestors.h"
#include "trace/names.h"

const char *const rp_phase_names[RP_PHASES] = {[RP_PHASE_OTHER] = "other",
                                               [RP_PHASE_FORWARD] = "forward",
                                               [RP_PHASE_BACKWARD] = "backward",
                                               [RP_PHASE_OPTIMIZER] = "optimizer"};

/* Parts of names and the phase they mean; the first match decides. */
static const struct {
    const char *part;
    uint8_t phase;
} phase_signs[] = {
    {"autograd::engine",
     RP_PHASE_BACKWARD},                /* PyTorch's engine calls every node of the backward pass */
    {"Optimizer.", RP_PHASE_OPTIMIZER}, /* "Optimizer.step#AdamW.step", "zero_grad" */
    {"optimizer.py", RP_PHASE_OPTIMIZER},  /* Python frames of torch/optim */
    {"transpose(jvp(", RP_PHASE_BACKWARD}, /* JAX */
    {"gradients/", RP_PHASE_BACKWARD},     /* TensorFlow 1 */
    {"gradient_tape/", RP_PHASE_BACKWARD}, /* TensorFlow 2 */
    {"torch/autograd/__init__.py", RP_PHASE_BACKWARD},
};

#define HINT_UNKNOWN UINT8_MAX

struct attribution_ctx {
    const struct rp_work *work;
    const struct rp_trace *t;
    struct rp_attribution *out;
    struct rp_arg_key sequence, forward_thread, hlo_op, hlo_module, tf_op;
    struct rp_map forward; /* from sequence number to the forward operator that has it */
    RP_VEC(uint8_t) hint;  /* by string: phase, 0 none, HINT_UNKNOWN */
    RP_VEC(uint8_t) mark;  /* by string: whether it marks a step, or HINT_UNKNOWN */
};

enum rp_phase rp_phase_of_name(const struct rp_trace *t, rp_str name)
{
    const char *text = rp_trace_str(t, name);

    for (size_t i = 0; i < sizeof phase_signs / sizeof phase_signs[0]; i++)
        if (strstr(text, phase_signs[i].part))
            return (enum rp_phase)phase_signs[i].phase;
    return t->str.name_class[name] == RP_NAME_OPTIMIZER ? RP_PHASE_OPTIMIZER : RP_PHASE_OTHER;
}

static uint8_t hint_of(struct attribution_ctx *p, rp_str name)
{
    uint8_t *hint = &p->hint.at[name];

    if (*hint == HINT_UNKNOWN)
        *hint = (uint8_t)rp_phase_of_name(p->t, name);
    return *hint;
}

static bool marks_step(struct attribution_ctx *p, rp_str name)
{
    uint8_t *mark = &p->mark.at[name];

    if (*mark == HINT_UNKNOWN)
        *mark = rp_torch_is(rp_trace_str(p->t, name), rp_trace_str_len(p->t, name), RP_TORCH_STEP);
    return *mark;
}

bool rp_event_is_module(const struct rp_trace *t, rp_event e)
{
    const char *name = rp_trace_str(t, t->ev.name[e]);

    return t->ev.kind[e] == RP_KIND_PYTHON && rp_torch_module(name) != name;
}

rp_event rp_event_around(const struct rp_trace *t, rp_event e, enum rp_kind kind)
{
    RP_FOR_ANCESTORS (t, e)
        if (t->ev.kind[e] == kind)
            return e;
    return RP_NONE;
}

/* The autograd engine runs on its own thread, where operators record the thread of their forward
 * pass. */
static bool runs_backward(const struct attribution_ctx *p, rp_event op)
{
    int64_t thread;

    return rp_arg_key_int(&p->forward_thread, op, &thread) && thread > 0;
}

static void set_once(rp_event *owner, rp_event e)
{
    if (*owner == RP_NONE)
        *owner = e;
}

static void apply_ancestor(struct attribution_ctx *p, rp_event e, struct rp_work_owner *owner)
{
    uint8_t phase = hint_of(p, p->t->ev.name[e]);

    switch (p->t->ev.kind[e]) {
    case RP_KIND_CPU_OP:
        set_once(&owner->op, e);
        if (phase == RP_PHASE_OTHER && runs_backward(p, e))
            phase = RP_PHASE_BACKWARD;
        break;
    case RP_KIND_PYTHON:
        set_once(&owner->python, e);
        if (owner->module == RP_NONE && rp_event_is_module(p->t, e))
            owner->module = e;
        break;
    case RP_KIND_ANNOTATION:
        if (!marks_step(p, p->t->ev.name[e]))
            set_once(&owner->annotation, e);
        break;
    default:
        return; /* a runtime call has no phase of its own */
    }
    if (owner->phase == RP_PHASE_OTHER)
        owner->phase = phase;
}

static rp_event forward_of(const struct attribution_ctx *p, rp_event op)
{
    int64_t sequence;
    uint32_t found;

    RP_FOR_ANCESTORS (p->t, op) {
        if (p->t->ev.kind[op] != RP_KIND_CPU_OP || !rp_arg_key_int(&p->sequence, op, &sequence))
            continue;
        found = rp_map_get(&p->forward, (uint64_t)sequence);
        return found == RP_MAP_NONE ? RP_NONE : found;
    }
    return RP_NONE;
}

/* The framework's name of an instruction shows how it was derived: "jit(f)/transpose(jvp(g))/mul".
 */
static void read_xla(struct attribution_ctx *p, rp_event e, struct rp_work_owner *owner)
{
    rp_str source;

    if (!rp_arg_key_text(&p->hlo_op, e, &owner->hlo_op))
        owner->hlo_op = 0;
    if (!rp_arg_key_text(&p->hlo_module, e, &owner->hlo_module))
        owner->hlo_module = 0;
    if (owner->phase != RP_PHASE_OTHER || !rp_arg_key_text(&p->tf_op, e, &source))
        return;
    owner->phase = hint_of(p, source);
    if (owner->phase == RP_PHASE_OTHER && strchr(rp_trace_str(p->t, source), '/'))
        owner->phase =
            RP_PHASE_FORWARD; /* a name without a path, such as "XlaModule:", has no phase */
}

static struct rp_work_owner owner_of(struct attribution_ctx *p, const struct rp_work_item *item)
{
    struct rp_work_owner owner = {.op = RP_NONE,
                                  .python = RP_NONE,
                                  .annotation = RP_NONE,
                                  .module = RP_NONE,
                                  .forward = RP_NONE};
    rp_event e = rp_work_described_by(p->work, item);

    RP_FOR_ANCESTORS (p->t, e)
        apply_ancestor(p, e, &owner);
    read_xla(p, item->event, &owner);
    if (owner.phase == RP_PHASE_OTHER && owner.op != RP_NONE)
        owner.phase = RP_PHASE_FORWARD;
    if (owner.phase == RP_PHASE_BACKWARD)
        owner.forward = forward_of(p, owner.op);
    return owner;
}

static void count_coverage(struct rp_coverage *c, const struct rp_work *work,
                           const struct rp_work_item *item, const struct rp_work_owner *owner)
{
    int64_t dur = rp_ns_between(item->begin_ns, item->end_ns);
    bool graph = rp_work_is_of_graph(work, item);

    c->device_ns = rp_ns_sum(c->device_ns, dur);
    rp_ns_add(&c->launched_ns, item->launch != RP_NONE ? dur : 0);
    rp_ns_add(&c->op_ns, owner->op != RP_NONE || owner->hlo_op ? dur : 0);
    rp_ns_add(&c->python_ns, owner->python != RP_NONE ? dur : 0);
    rp_ns_add(&c->module_ns, owner->module != RP_NONE || owner->hlo_module ? dur : 0);
    rp_ns_add(&c->graph_ns, graph ? dur : 0);
    rp_ns_add(&c->graph_op_ns, graph && (owner->op != RP_NONE || owner->hlo_op) ? dur : 0);
}

/* Maps forward operators by sequence number. The operator with a gradient increments the number, so
   earlier ones without a gradient (num_batches_tracked.add_) have the same: of operators that
   follow each other on a thread the last is meant, of nested ones the outermost. */
static enum rp_code map_forward(struct attribution_ctx *p, struct rp_err *err)
{
    const struct rp_trace *t = p->t;
    int64_t sequence;
    uint32_t known;

    if (p->sequence.key == RP_NONE)
        return RP_OK;
    for (rp_event e = 0; e < t->ev.n; e++) {
        if (t->ev.kind[e] != RP_KIND_CPU_OP || !rp_arg_key_int(&p->sequence, e, &sequence) ||
            sequence < 0 || runs_backward(p, e) || hint_of(p, t->ev.name[e]) == RP_PHASE_BACKWARD)
            continue;
        RP_TRY(rp_map_intern(&p->forward, (uint64_t)sequence, e, &known, err));
        if (known != e && t->ev.track[known] == t->ev.track[e] &&
            rp_event_end_ns(t, known) <= t->ev.ts_ns[e])
            RP_TRY(rp_map_put(&p->forward, (uint64_t)sequence, e, err));
    }
    return RP_OK;
}

static enum rp_code attribute_all(struct attribution_ctx *p, struct rp_err *err)
{
    size_t i, n = p->work->items.n;

    RP_TRY(rp_arg_key_init(&p->sequence, p->t, "Sequence number", err));
    RP_TRY(rp_arg_key_init(&p->forward_thread, p->t, "Fwd thread id", err));
    RP_TRY(rp_arg_key_init(&p->hlo_op, p->t, "hlo_op", err));
    RP_TRY(rp_arg_key_init(&p->hlo_module, p->t, "hlo_module", err));
    RP_TRY(rp_arg_key_init(&p->tf_op, p->t, "tf_op", err));
    RP_TRY(rp_vec_reserve(&p->hint, p->t->str.n, err));
    RP_TRY(rp_vec_reserve(&p->mark, p->t->str.n, err));
    memset(p->hint.at, HINT_UNKNOWN, p->t->str.n);
    memset(p->mark.at, HINT_UNKNOWN, p->t->str.n);
    RP_TRY(map_forward(p, err));
    RP_TRY(rp_vec_reserve(&p->out->owners, n, err));
    for (i = 0; i < n; i++) {
        p->out->owners.at[i] = owner_of(p, &p->work->items.at[i]);
        count_coverage(&p->out->coverage, p->work, &p->work->items.at[i], &p->out->owners.at[i]);
    }
    p->out->owners.n = n;
    return RP_OK;
}

enum rp_code rp_attribution_init(struct rp_attribution *out, const struct rp_work *work,
                                 struct rp_err *err)
{
    struct attribution_ctx p = {.work = work, .t = work->trace, .out = out};

    *out = (struct rp_attribution){0};
    enum rp_code code = attribute_all(&p, err);
    rp_map_release(&p.forward);
    rp_arg_key_release(&p.sequence);
    rp_arg_key_release(&p.forward_thread);
    rp_arg_key_release(&p.hlo_op);
    rp_arg_key_release(&p.hlo_module);
    rp_arg_key_release(&p.tf_op);
    rp_vec_release(&p.hint);
    rp_vec_release(&p.mark);
    return code;
}

void rp_attribution_release(struct rp_attribution *a)
{
    rp_vec_release(&a->owners);
}

rp_event rp_event_at(const struct rp_trace *t, rp_track track, int64_t at_ns)
{
    const struct rp_track_info *info = &t->tracks[track];
    size_t i;

    RP_LOWER_BOUND_FROM(i, info->first, info->end, t->ev.ts_ns[i] <= at_ns);
    if (i == info->first)
        return RP_NONE;
    for (rp_event e = (rp_event)i - 1; e != RP_NONE; e = t->ev.parent[e])
        if (t->ev.dur_ns[e] > 0 && rp_event_end_ns(t, e) > at_ns && t->ev.ts_ns[e] != RP_NO_TS)
            return e;
    return RP_NONE;
}
