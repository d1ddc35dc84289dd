/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds who allocates. For the profiler's events these are the spans around them on their thread,
 * outwards; for entries of a snapshot it is their call stack. Each different place is examined
 * once.
 *
 * The operator is the innermost one that does more than allocate. Work in the backward pass belongs
 * to the module and line of the forward operator whose gradient it computes; PyTorch's sequence
 * numbers connect them.
 */
#include "explain/memory/log.h"

#include "base/decides.h"
#include "base/hash.h"
#include "facts/arg_keys.h"
#include "facts/torch_names.h"
#include "facts/work/ancestors.h"

#include <stdio.h>
#include <string.h>

#define MOST_MODULES 32
RP_LIMIT(MOST_MODULES, "modules in modules", "the innermost are the path of a class");
#define PATH_BYTES   512
#define HINT_UNKNOWN UINT8_MAX
#define MOST_TEXT    150
RP_LIMIT(MOST_TEXT, "bytes of the name of an operator or line",
         "the rest of a longer one is not shown");

struct owner_reader {
    struct rp_memory_logs *out;
    const struct rp_trace *t;
    struct rp_arg_key sequence, forward_thread, stack;
    struct rp_map forward;   /* from sequence number to the forward operator */
    struct rp_map of_place;  /* from span or call stack to owner */
    struct rp_map owners;    /* from the hash of an owner to the owner */
    struct rp_map instances; /* from the hash of a class path to its number of instances */
    struct rp_map seen;      /* from the hash of an instance to 1 */
    struct rp_map threads;   /* from track to 1 + the other track of its thread; 0: none */
    RP_VEC(uint8_t) hint;    /* phase of a name */
    struct rp_err *err;
};

static uint8_t hint_of(struct owner_reader *r, rp_str name)
{
    uint8_t *hint = &r->hint.at[name];

    if (*hint == HINT_UNKNOWN)
        *hint = (uint8_t)rp_phase_of_name(r->t, name);
    return *hint;
}

/* ------------------------------------------------------------------ names */

/* Whether an operator only allocates; then its caller is of interest. */
static bool only_allocates(const char *op, size_t n)
{
    static const char *const names[] = {
        "empty", "new_empty", "resize",   "zeros", "new_zeros", "ones",       "full", "zero_",
        "fill_", "to",        "_to_copy", "copy_", "clone",     "contiguous", "set_"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t len = strlen(names[i]);

        if (n >= len && !memcmp(op, names[i], len) &&
            (n == len || op[len] == '_' || i < 3 || names[i][len - 1] == '_'))
            return true;
    }
    return false;
}

static bool op_only_allocates(const char *name)
{
    const char *op = rp_torch_op(name);

    return op != name && only_allocates(op, strlen(op));
}

/* Whether a frame is of the user's own code, not of PyTorch's or another library. */
static bool frame_is_users(const char *name, size_t n)
{
    static const char *const others[] = {"site-packages/", "dist-packages/", "lib/python",
                                         "/torch/",        "torch/nn",       "torch/optim"};

    if (rp_torch_is(name, n, RP_TORCH_LIBRARY | RP_TORCH_MODULE) || !memmem(name, n, ".py(", 4))
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (memmem(name, n, others[i], strlen(others[i])))
            return false;
    return true;
}

/* "model.py(42): forward" without the folders of the path. */
static const char *frame_name(const char *name, size_t *n)
{
    const char *end = memmem(name, *n, ".py(", 4), *slash;

    slash = end ? memrchr(name, '/', (size_t)(end - name)) : NULL;
    if (slash) {
        *n -= (size_t)(slash + 1 - name);
        return slash + 1;
    }
    return name;
}

/* The length of the class in "nn.Module: Linear_3". */
static size_t class_length(const char *module)
{
    size_t n = strlen(module), digits = n;

    while (digits && module[digits - 1] >= '0' && module[digits - 1] <= '9')
        digits--;
    return digits > 1 && digits < n && module[digits - 1] == '_' ? digits - 1 : n;
}

/* ------------------------------------------------------------------ interning */

static enum rp_code keep_text(struct owner_reader *r, const char *text, size_t n, const char **out)
{
    *out = rp_arena_copy(&r->out->arena, text, n);
    return rp_err_need(*out, r->err, "naming allocations");
}

static uint64_t hash_text(const char *text)
{
    return text ? rp_hash_bytes(text, strlen(text)) : 7;
}

/* The number of an owner; equal owners have the same number. */
static enum rp_code intern_owner(struct owner_reader *r, const struct rp_memory_owner *owner,
                                 uint32_t *out)
{
    uint64_t h = rp_hash_join(hash_text(owner->op), hash_text(owner->module));

    h = rp_hash_join(rp_hash_join(h, hash_text(owner->line)),
                     owner->phase | (uint64_t)owner->frees_gradients << 8 |
                         (uint64_t)owner->loads << 9);
    RP_TRY(rp_map_intern(&r->owners, h, (uint32_t)r->out->owners.n, out, r->err));
    return *out < r->out->owners.n ? RP_OK : rp_vec_push(&r->out->owners, *owner, r->err);
}

/* ------------------------------------------------------------------ modules */

/* Writes "GPT/Block/Linear" from the modules around an event, the innermost first, and counts the
   instances of each class path: "GPT_0/Block_3" is one of "GPT/Block". */
static enum rp_code name_modules(struct owner_reader *r, const char *const *modules, size_t n,
                                 struct rp_memory_owner *owner)
{
    char path[PATH_BYTES];
    uint64_t instance = 1;
    size_t used = 0;

    for (size_t i = n; i-- > 0;) {
        const char *name = modules[i] + 11;
        size_t len = class_length(name);
        uint32_t count, was;

        if (used + len + 2 > sizeof path)
            break;
        if (used)
            path[used++] = '/';
        memcpy(path + used, name, len);
        used += len;
        uint64_t cls = rp_hash_bytes(path, used);
        instance = rp_hash_join(instance, rp_hash_bytes(name, strlen(name)));
        RP_TRY(rp_map_intern(&r->instances, cls, 0, &count, r->err));
        was = rp_map_get(&r->seen, instance);
        if (was == RP_MAP_NONE) {
            RP_TRY(rp_map_put(&r->seen, instance, 1, r->err));
            RP_TRY(rp_map_put(&r->instances, cls, count + 1, r->err));
        }
    }
    return used ? keep_text(r, path, used, &owner->module) : RP_OK;
}

/* The outermost part of the path that has several instances. */
static enum rp_code find_block(struct owner_reader *r, struct rp_memory_owner *owner)
{
    size_t n = owner->module ? strlen(owner->module) : 0, i;

    for (i = 1; i <= n; i++) {
        if (i < n && owner->module[i] != '/')
            continue;
        uint32_t count = rp_map_get(&r->instances, rp_hash_bytes(owner->module, i));
        if (count != RP_MAP_NONE && count > 1) {
            owner->blocks = count;
            return keep_text(r, owner->module, i, &owner->block);
        }
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ call stacks */

/* Finds "aten::mm" in "at::_ops::mm::call(at::Tensor const&, …)". */
static bool frame_op(const char *frame, size_t n, const char **op, size_t *len)
{
    static const char sign[] = "at::_ops::";
    const char *at = n > sizeof sign ? memmem(frame, n < 40 ? n : 40, sign, sizeof sign - 1) : NULL;

    if (!at || at != frame)
        return false;
    at += sizeof sign - 1;
    const char *end = memmem(at, n - (size_t)(at - frame), "::", 2);
    if (!end)
        return false;
    *op = at;
    *len = (size_t)(end - at);
    return true;
}

struct stack_facts {
    const char *op, *line;
    size_t nop, nline;
    bool backward, optimizer, frees_gradients, op_is_final;
};

static void look_at_frame(const char *frame, size_t n, struct stack_facts *f)
{
    const char *op;
    size_t len;

    if (!f->op_is_final && frame_op(frame, n, &op, &len)) {
        f->op = op;
        f->nop = len;
        f->op_is_final = !only_allocates(op, len);
    }
    if (memmem(frame, n, ".py(", 4)) {
        if (!f->line && frame_is_users(frame, n)) {
            f->line = frame;
            f->nline = n;
        }
        f->optimizer = f->optimizer || rp_torch_is(frame, n, RP_TORCH_OPTIMIZER);
        f->frees_gradients = f->frees_gradients || rp_torch_is(frame, n, RP_TORCH_ZEROES);
    }
    f->backward = f->backward || rp_torch_is(frame, n, RP_TORCH_PASS_BACK);
}

static enum rp_code name_stack(struct owner_reader *r, const struct stack_facts *f,
                               struct rp_memory_owner *owner)
{
    char op[200];
    size_t n = f->nline;
    const char *line = f->line ? frame_name(f->line, &n) : NULL;

    if (f->op) {
        int len = snprintf(op, sizeof op, "aten::%.*s",
                           (int)(f->nop < MOST_TEXT ? f->nop : MOST_TEXT), f->op);

        RP_TRY(keep_text(r, op, (size_t)len, &owner->op));
    }
    return line ? keep_text(r, line, n < MOST_TEXT ? n : MOST_TEXT, &owner->line) : RP_OK;
}

static void look_at_stack(const struct owner_reader *r, rp_str stack, struct stack_facts *f)
{
    const char *at = rp_trace_str(r->t, stack), *end = at + rp_trace_str_len(r->t, stack), *sep;

    *f = (struct stack_facts){0};
    for (; at < end; at = sep + 1) {
        sep = memchr(at, ';', (size_t)(end - at));
        sep = sep ? sep : end;
        look_at_frame(at, (size_t)(sep - at), f);
    }
}

/* ------------------------------------------------------------------ spans of a profile */

struct span_facts {
    rp_event op, line, first_op; /* first_op: any operator, needed for its sequence number */
    rp_str stack;                /* in old profiles: the call stack of an operator, or RP_NONE */
    const char *modules[MOST_MODULES];
    size_t nmodules;
    uint8_t phase;
    bool frees_gradients, loads, from_loader;
};

static void look_at_span(struct owner_reader *r, rp_event e, struct span_facts *f)
{
    const struct rp_trace *t = r->t;
    const char *name = rp_trace_str(t, t->ev.name[e]);
    uint8_t phase = RP_PHASE_OTHER;
    int64_t thread;

    switch (t->ev.kind[e]) {
    case RP_KIND_CPU_OP:
        if (f->first_op == RP_NONE)
            f->first_op = f->op = e;
        else if (op_only_allocates(rp_trace_str(t, t->ev.name[f->op])))
            f->op = e;
        f->loads = rp_torch_means(
            name,
            RP_TORCH_LOADS); /* the outermost decides, because autocast also copies inside others */
        if (f->stack == RP_NONE && !rp_arg_key_text(&r->stack, e, &f->stack))
            f->stack = RP_NONE;
        if (rp_arg_key_int(&r->forward_thread, e, &thread) && thread > 0)
            phase = RP_PHASE_BACKWARD;
        break;
    case RP_KIND_PYTHON:
        if (rp_event_is_module(t, e)) {
            if (f->nmodules < MOST_MODULES)
                f->modules[f->nmodules++] = name;
        } else if (f->line == RP_NONE && frame_is_users(name, strlen(name))) {
            f->line = e;
        }
        break;
    case RP_KIND_ANNOTATION:
        break;
    default:
        return;
    }
    if (phase == RP_PHASE_OTHER)
        phase = hint_of(r, t->ev.name[e]);
    if (f->phase == RP_PHASE_OTHER)
        f->phase = phase;
    f->from_loader = f->from_loader || rp_torch_means(name, RP_TORCH_LOADER);
    f->frees_gradients = f->frees_gradients || rp_torch_means(name, RP_TORCH_ZEROES);
}

static void look_outwards(struct owner_reader *r, rp_event e, struct span_facts *f)
{
    *f = (struct span_facts){.op = RP_NONE, .line = RP_NONE, .first_op = RP_NONE, .stack = RP_NONE};
    RP_FOR_ANCESTORS (r->t, e)
        look_at_span(r, e, f);
}

/* Finds the forward operator whose gradient is computed around e. */
static rp_event forward_of(const struct owner_reader *r, rp_event e)
{
    int64_t sequence;

    RP_FOR_ANCESTORS (r->t, e)
        if (r->t->ev.kind[e] == RP_KIND_CPU_OP && rp_arg_key_int(&r->sequence, e, &sequence)) {
            uint32_t found = rp_map_get(&r->forward, (uint64_t)sequence);

            return found == RP_MAP_NONE ? RP_NONE : found;
        }
    return RP_NONE;
}

static enum rp_code own_span(struct owner_reader *r, rp_event span, uint32_t *out)
{
    const struct rp_trace *t = r->t;
    struct rp_memory_owner owner = {0};
    struct span_facts f;

    look_outwards(r, span, &f);
    owner.phase = f.phase;
    owner.frees_gradients = f.frees_gradients;
    owner.loads = (f.loads || f.from_loader) && !f.nmodules;
    if (f.op != RP_NONE)
        owner.op = rp_trace_str(t, t->ev.name[f.op]);
    if (f.phase == RP_PHASE_BACKWARD && (f.line == RP_NONE || !f.nmodules)) {
        rp_event forward = forward_of(r, f.first_op);
        if (forward != RP_NONE)
            look_outwards(r, forward, &f);
    }
    if (f.line != RP_NONE)
        owner.line = rp_trace_str(t, t->ev.name[f.line]);
    else if (f.stack != RP_NONE) {
        /* Old profiles have call stacks of operators instead of Python frames. */
        rp_str stack = f.stack;
        struct stack_facts s;

        look_at_stack(r, stack, &s);
        s.op = NULL;
        if (owner.phase == RP_PHASE_OTHER && s.optimizer)
            owner.phase = RP_PHASE_OPTIMIZER;
        owner.frees_gradients = owner.frees_gradients || s.frees_gradients;
        RP_TRY(name_stack(r, &s, &owner));
    }
    r->out->has_modules = r->out->has_modules || f.nmodules;
    r->out->has_stacks = r->out->has_stacks || owner.line;
    RP_TRY(name_modules(r, f.modules, f.nmodules, &owner));
    return intern_owner(r, &owner, out);
}

static enum rp_code own_stack(struct owner_reader *r, rp_str stack, rp_event span, uint32_t *out)
{
    struct rp_memory_owner owner = {0};
    struct stack_facts f;
    struct span_facts around;

    look_at_stack(r, stack, &f);
    look_outwards(r, span, &around);
    owner.phase = f.optimizer                      ? RP_PHASE_OPTIMIZER
                  : f.backward                     ? RP_PHASE_BACKWARD
                  : around.phase != RP_PHASE_OTHER ? around.phase
                  : rp_trace_str_len(r->t, stack)  ? RP_PHASE_FORWARD
                                                   : RP_PHASE_OTHER;
    owner.frees_gradients = f.frees_gradients || around.frees_gradients;
    r->out->has_stacks = r->out->has_stacks || rp_trace_str_len(r->t, stack);
    RP_TRY(name_stack(r, &f, &owner));
    return intern_owner(r, &owner, out);
}

/* ------------------------------------------------------------------ all */

/* The other track of the same thread, or RP_NONE: profiles of 2021 write the thread of an operator
   as a text and that of a memory event as a number. */
static rp_track same_thread(const struct owner_reader *r, rp_track track)
{
    const struct rp_track_info *own = &r->t->tracks[track];
    char id[24];

    snprintf(id, sizeof id, "%lld", (long long)own->native_id);
    for (rp_track i = 0; i < r->t->ntracks; i++)
        if (i != track && r->t->tracks[i].process == own->process && r->t->tracks[i].text &&
            !strcmp(rp_trace_str(r->t, r->t->tracks[i].text), id))
            return i;
    return RP_NONE;
}

static enum rp_code span_of(struct owner_reader *r, rp_event e, rp_event *out)
{
    rp_track track = r->t->ev.track[e];

    *out = r->t->ev.parent[e];
    if (*out != RP_NONE || r->t->tracks[track].text)
        return RP_OK;
    uint32_t other = rp_map_get(&r->threads, track);
    if (other == RP_MAP_NONE) {
        rp_track found = same_thread(r, track);

        other = found == RP_NONE ? 0 : found + 1;
        RP_TRY(rp_map_put(&r->threads, track, other, r->err));
    }
    if (other)
        *out = rp_event_at(r->t, other - 1, r->t->ev.ts_ns[e]);
    return RP_OK;
}

/* Maps each sequence number to its first operator that does not run in the backward pass. */
static enum rp_code map_forward(struct owner_reader *r)
{
    const struct rp_trace *t = r->t;
    int64_t sequence, thread;
    uint32_t first;

    if (r->sequence.key == RP_NONE)
        return RP_OK;
    for (rp_event e = 0; e < t->ev.n; e++)
        if (t->ev.kind[e] == RP_KIND_CPU_OP && rp_arg_key_int(&r->sequence, e, &sequence) &&
            sequence >= 0 && !(rp_arg_key_int(&r->forward_thread, e, &thread) && thread > 0) &&
            hint_of(r, t->ev.name[e]) != RP_PHASE_BACKWARD)
            RP_TRY(rp_map_intern(&r->forward, (uint64_t)sequence, e, &first, r->err));
    return RP_OK;
}

static enum rp_code own_all(struct owner_reader *r)
{
    RP_TRY(rp_vec_reserve(&r->hint, r->t->str.n + 1, r->err));
    memset(r->hint.at, HINT_UNKNOWN, r->t->str.n + 1);
    RP_TRY(rp_arg_key_init(&r->sequence, r->t, "Sequence number", r->err));
    RP_TRY(rp_arg_key_init(&r->forward_thread, r->t, "Fwd thread id", r->err));
    RP_TRY(rp_arg_key_init(&r->stack, r->t, "Call stack", r->err));
    RP_TRY(map_forward(r));
    for (size_t i = 0; i < r->out->devices.n; i++)
        for (size_t k = 0; k < r->out->devices.at[i].entries.n; k++) {
            /* Equal places have equal owners, so each place is looked up only once. A place is the
               span around an event, or its call stack. */
            rp_str stack = RP_NONE;
            rp_event span;

            RP_TRY(span_of(r, r->out->devices.at[i].entries.at[k].event, &span));
            if (!rp_arg_key_text(&r->stack, r->out->devices.at[i].entries.at[k].event, &stack))
                stack = RP_NONE;
            uint64_t place = (uint64_t)stack << 32 | span;
            uint32_t owner = rp_map_get(&r->of_place, place);
            if (owner == RP_MAP_NONE) {
                RP_TRY(stack == RP_NONE ? own_span(r, span, &owner)
                                        : own_stack(r, stack, span, &owner));
                RP_TRY(rp_map_put(&r->of_place, place, owner, r->err));
            }
            r->out->devices.at[i].entries.at[k].owner = owner;
            r->out->has_backward =
                r->out->has_backward || r->out->owners.at[owner].phase == RP_PHASE_BACKWARD;
        }
    for (size_t i = 0; i < r->out->owners.n; i++)
        RP_TRY(find_block(r, &r->out->owners.at[i]));
    return RP_OK;
}

enum rp_code rp_memory_own(struct rp_memory_logs *logs, struct rp_err *err)
{
    struct owner_reader r = {.out = logs, .t = logs->trace, .err = err};
    enum rp_code code = own_all(&r);
    if (code == RP_OK) {
        /* PyTorch's threads have no Python frames in the backward pass, so there an empty stack
           among others means it. */
        if (logs->has_stacks && !logs->has_backward) {
            for (size_t i = 0; i < logs->owners.n; i++) {
                struct rp_memory_owner *o = &logs->owners.at[i];

                if (o->phase == RP_PHASE_OTHER && !o->op && !o->line && !o->module) {
                    o->phase = RP_PHASE_BACKWARD;
                    logs->has_backward = true;
                }
            }
        }
    }
    rp_map_release(&r.forward);
    rp_map_release(&r.of_place);
    rp_map_release(&r.owners);
    rp_map_release(&r.instances);
    rp_map_release(&r.seen);
    rp_map_release(&r.threads);
    rp_vec_release(&r.hint);
    rp_arg_key_release(&r.sequence);
    rp_arg_key_release(&r.forward_thread);
    rp_arg_key_release(&r.stack);
    return code;
}
