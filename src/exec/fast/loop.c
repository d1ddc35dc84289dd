/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms loops. Walking a graph from its end, an element-wise node joins the loop of its users if
 * all of them are in one loop of the same dimensions; otherwise it ends a loop of its own. Only
 * values at the end of a loop are kept. Broadcasts are read in place, by (i / repeat) % period,
 * where their operand's dimensions are neighbours in the result. A loop is a tape
 * (exec/eval/tape.h): pieces of RP_TAPE_LANES elements go through all its operations before the
 * next piece is touched; long loops are cut into jobs of the pool.
 */
#include "exec/fast/kernels.h"
#include "program/literal.h"
#include "program/opcodes.h"

#include "base/threads.h"
#include "exec/eval/tape.h"
#include "exec/ref/kernels.h"

#include <stdlib.h>
#include <string.h>

#define JOB_ELEMENTS  16384
#define WORTH_THREADS 100000 /* number of elements of operands and operations */
#define SHORT         4096 /* a loop over a short array works in so many bytes without allocating */

struct source {
    int64_t period, repeat; /* element i of the loop is (i / repeat) % period of the input */
    bool direct, scalar;
};

struct loop {
    struct rp_tape tape;
    struct source *sources; /* of the inputs */
};

/* ---- running ---- */

/* Memory for elements of inputs that are not read in place. */
struct room {
    char *at;
    size_t
        full; /* all of it is one element, namely this one of the repeated ones, from 1; 0 if not */
};

struct loop_run {
    const struct loop *loop;
    struct rp_tensor *const *in;
    struct rp_tensor *out;
    size_t lanes; /* lanes in a piece: fewer than RP_TAPE_LANES if the array is short */
};

#define FILL(type)                       \
    {                                    \
        type v, *t = (type *)(void *)to; \
                                         \
        memcpy(&v, from, sizeof v);      \
        for (size_t i = 0; i < n; i++)   \
            t[i] = v;                    \
        return;                          \
    }

RP_CLONES_FEW static void loop_fill(char *to, const char *from, size_t unit, size_t n)
{
    if (unit == 1)
        FILL(uint8_t)
    if (unit == 4)
        FILL(uint32_t)
    if (unit == 8)
        FILL(uint64_t)
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * unit, from, unit);
}

/* Elements that repeat a few times, from place `at` on: counting is quicker than calling. */
#define FEW 32
#define SPREAD(type)                                         \
    {                                                        \
        const type *f = (const type *)(const void *)from;    \
        type *t = (type *)(void *)to, v = f[k];              \
                                                             \
        for (size_t i = 0; i < n; left = repeat, v = f[k]) { \
            for (; left && i < n; left--)                    \
                t[i++] = v;                                  \
            k = k + 1 < period ? k + 1 : 0;                  \
        }                                                    \
        return true;                                         \
    }

static bool loop_spread(const struct source *s, char *to, const unsigned char *from, size_t unit,
                        size_t at, size_t n)
{
    size_t period = (size_t)s->period, repeat = (size_t)s->repeat;
    size_t k = at / repeat % period, left = repeat - at % repeat;

    if (repeat <= FEW && unit == 1)
        SPREAD(uint8_t)
    if (repeat <= FEW && unit == 4)
        SPREAD(uint32_t)
    return false;
}

/* Whether an input is a short array that repeats: it is laid out once, and any piece of the loop is
   contiguous in it. */
static bool is_pattern(const struct source *s)
{
    return !s->direct && !s->scalar && s->repeat == 1 && s->period <= RP_TAPE_LANES;
}

/* How many elements of room an input needs. */
static size_t room_of(const struct source *s, const struct rp_tensor *t, size_t lanes)
{
    if (s->direct)
        return rp_tensor_is_unaligned(t) ? lanes : 0;
    return lanes + (is_pattern(s) ? (size_t)s->period : 0);
}

static void lay_out(const struct source *s, const struct rp_tensor *t, size_t lanes, char *to)
{
    size_t period = (size_t)s->period * t->unit, n = room_of(s, t, lanes) * t->unit, done = period;

    if (s->scalar) {
        loop_fill(to, (const char *)t->data, t->unit, lanes);
    } else if (is_pattern(s)) {
        memcpy(to, t->data, period);
        for (; done < n; done += n - done < done ? n - done : done)
            memcpy(to + done, to, n - done < done ? n - done : done);
    }
}

/* Fetches m elements of an input from place `at` of the loop. */
static void *loop_fetch(const struct source *s, const struct rp_tensor *t, size_t at, size_t m,
                        struct room *room)
{
    char *to = room->at;
    size_t unit = t->unit, done = 0;

    if (s->direct)
        return rp_tensor_is_unaligned(t) ? memcpy(to, t->data + at * unit, m * unit)
                                         : t->data + at * unit;
    if (is_pattern(s))
        return to + at % (size_t)s->period * unit;
    if (s->repeat == 1) {
        size_t from = at % (size_t)s->period;

        if (from + m <= (size_t)s->period && !rp_tensor_is_unaligned(t))
            return t->data + from * unit;
        while (done < m) {
            size_t n = (size_t)s->period - from < m - done ? (size_t)s->period - from : m - done;

            memcpy(to + done * unit, t->data + from * unit, n * unit);
            done += n;
            from = 0;
        }
        return to;
    }
    if (room->full && (at + m - 1) / (size_t)s->repeat == room->full - 1 &&
        at / (size_t)s->repeat == room->full - 1)
        return to;
    room->full = 0;
    if (!rp_tensor_is_unaligned(t) && loop_spread(s, to, t->data, unit, at, m))
        return to;
    while (done < m) {
        size_t i = at + done, left = (size_t)s->repeat - i % (size_t)s->repeat;
        size_t n = left < m - done ? left : m - done;

        loop_fill(to + done * unit,
                  (const char *)t->data + i / (size_t)s->repeat % (size_t)s->period * unit, unit,
                  n);
        if (n == RP_TAPE_LANES)
            room->full = i / (size_t)s->repeat + 1;
        done += n;
    }
    return to;
}

static size_t room_bytes(const struct loop_run *r, size_t k)
{
    return (room_of(&r->loop->sources[k], r->in[k], r->lanes) * r->in[k]->unit + 63) / 64 * 64;
}

/* Makes room for inputs that are not read in place; their registers point at it. */
static void make_room(const struct loop_run *r, char *memory, struct room *room, void **reg)
{
    for (size_t k = 0; k < r->loop->tape.nparams; k++) {
        reg[k] = memory; /* where scalars stay */
        room[k] = (struct room){memory, 0};
        memory += room_bytes(r, k);
        lay_out(&r->loop->sources[k], r->in[k], r->lanes, room[k].at);
    }
}

static void run_elements(const struct loop_run *r, size_t begin, size_t end, char *memory)
{
    const struct rp_tape *tape = &r->loop->tape;
    size_t n = tape->nparams;
    struct rp_tape_frame frame;
    struct room *room;

    rp_tape_place(tape, r->lanes, memory, &frame);
    memory += rp_tape_bytes(tape, r->lanes);
    room = (struct room *)(void *)memory;
    make_room(r, memory + (n * sizeof *room + 63) / 64 * 64, room, frame.reg);
    for (size_t at = begin; at < end; at += RP_TAPE_LANES) {
        size_t m = end - at < RP_TAPE_LANES ? end - at : RP_TAPE_LANES;

        for (size_t k = 0; k < n; k++)
            if (!r->loop->sources[k].scalar)
                frame.reg[k] = loop_fetch(&r->loop->sources[k], r->in[k], at, m, &room[k]);
        frame.reg[tape->results[0]] = r->out->data + at * r->out->unit;
        rp_tape_run(&frame, m);
    }
}

static RP_JOB(run_piece)
{
    const struct loop_run *r = user;
    const struct rp_tape *tape = &r->loop->tape;
    size_t begin = job * JOB_ELEMENTS, end = begin + JOB_ELEMENTS;
    size_t bytes =
        rp_tape_bytes(tape, r->lanes) + (tape->nparams * sizeof(struct room) + 63) / 64 * 64;
    char few[SHORT] __attribute__((aligned(64))), *memory = few;

    for (size_t k = 0; k < tape->nparams; k++)
        bytes += room_bytes(r, k);
    if (bytes > sizeof few)
        memory = aligned_alloc(64, bytes);
    RP_TRY(rp_err_need(memory, err, "evaluating"));
    run_elements(r, begin, end < r->out->n ? end : r->out->n, memory);
    if (memory != few)
        free(memory);
    return RP_OK;
}

/* Whether input k belongs only to us, is not needed after this loop, and is read at the very places
   that are written: then the result may take its memory, which is in the cache. */
static bool can_take(const struct rp_node *node, struct rp_tensor *const *in, uint32_t k)
{
    const struct loop *loop = node->attrs;
    const struct rp_tensor *t = in[k];

    if (!loop->sources[k].direct || t->borrowed || t->elem != node->shape->elem ||
        atomic_load_explicit(&t->users, memory_order_acquire) != 1 ||
        !rp_node_ends(node, node->in[k]))
        return false;
    for (uint32_t i = 0; i < node->nin; i++)
        if (i != k && in[i] == t)
            return false;
    return true;
}

static enum rp_code result_of(const struct rp_eval *e, const struct rp_node *node,
                              struct rp_tensor *const *in, struct rp_tensor **out,
                              struct rp_err *err)
{
    if (e->into && node->into) {
        *out = rp_tensor_keep(e->into[node->into - 1]);
        return RP_OK;
    }
    for (uint32_t k = 0; k < node->nin; k++)
        if (can_take(node, in, k)) {
            *out = rp_tensor_keep(in[k]);
            return RP_OK;
        }
    return rp_node_result(node, out, err);
}

static RP_KERNEL(run_loop)
{
    struct loop_run r = {.loop = node->attrs, .in = in};

    RP_TRY(result_of(e, node, in, out, err));
    r.out = *out;
    r.lanes = r.out->n < RP_TAPE_LANES ? r.out->n : RP_TAPE_LANES;
    size_t jobs = (r.out->n + JOB_ELEMENTS - 1) / JOB_ELEMENTS;
    bool worth = r.out->n * (r.loop->tape.nops + r.loop->tape.nparams) > WORTH_THREADS;
    return rp_pool_each(worth ? e->pool : NULL, jobs, run_piece, &r, err);
}

/* ---- short ones that run many times ---- */

#define MOST_UNIT 16 /* bytes of an element */

bool rp_loop_is(const struct rp_node *node)
{
    return node->run == run_loop;
}

bool rp_loop_is_short(const struct rp_node *node)
{
    return rp_loop_is(node) && node->shape->n <= RP_TAPE_LANES;
}

/* Bytes for an input that is not read in place: its elements, and those of a pattern a second
   time. */
static size_t repeated_bytes(const struct rp_node *node, uint32_t k)
{
    const struct loop *loop = node->attrs;

    return loop->sources[k].direct ? 0 : (2 * node->shape->n * MOST_UNIT + 63) / 64 * 64;
}

size_t rp_loop_frame_bytes(const struct rp_node *node)
{
    const struct loop *loop = node->attrs;
    size_t bytes = rp_tape_bytes(&loop->tape, node->shape->n);

    for (uint32_t k = 0; k < node->nin; k++)
        bytes += repeated_bytes(node, k);
    return (bytes + 63) / 64 * 64;
}

void rp_loop_frame_place(const struct rp_node *node, char *memory, struct rp_loop_frame *frame)
{
    const struct loop *loop = node->attrs;
    struct rp_tape_frame placed;

    rp_tape_place(&loop->tape, node->shape->n, memory, &placed);
    frame->reg = placed.reg;
    frame->room = memory + (rp_tape_bytes(&loop->tape, node->shape->n) + 63) / 64 * 64;
}

void rp_loop_frame_bind(const struct rp_node *node, const struct rp_loop_frame *frame,
                        struct rp_tensor *const *values, const uint32_t *in, struct rp_tensor *out)
{
    const struct loop *loop = node->attrs;
    char *at = frame->room;

    for (uint32_t k = 0; k < node->nin; at += repeated_bytes(node, k), k++) {
        const struct source *s = &loop->sources[k];
        const struct rp_tensor *t = values[in[k]];
        struct room room = {at, 0};

        if (s->direct || (s->scalar && out->n == 1)) {
            frame->reg[k] = t->data;
            continue;
        }
        lay_out(s, t, out->n, room.at);
        frame->reg[k] = s->scalar ? room.at : loop_fetch(s, t, 0, out->n, &room);
    }
    frame->reg[loop->tape.results[0]] = out->data;
}

bool rp_loop_frame_reads(const struct rp_node *node, uint32_t k)
{
    const struct source *s = &((const struct loop *)node->attrs)->sources[k];

    return s->direct || (s->scalar && node->shape->n == 1);
}

void rp_loop_frame_run(const struct rp_node *node, const struct rp_loop_frame *frame)
{
    struct rp_tape_frame tape = {&((const struct loop *)node->attrs)->tape, frame->reg, NULL};

    rp_tape_run(&tape, node->shape->n);
}

/* ---- forming ---- */

struct fusion_ctx {
    struct rp_plan *plan;
    struct rp_graph *g;
    uint32_t *loop_of; /* by node: the last node of its loop; RP_NONE: in none */
    bool *outside;     /* by node: whether it is read outside of all loops */
    uint32_t *first;   /* by last node of a loop: its first one */
    uint32_t *next;    /* by node in a loop: the next one of that loop; RP_NONE: the last */
    uint32_t *uses;    /* by node: how often it is an operand */
    uint32_t
        *input; /* by node: its latest number among the inputs of the loop that is being made */
};

/* Whether an operand is the predicate of a select, or a bound of a clamp. */
static bool is_scalar(const struct rp_graph *g, uint32_t node)
{
    const struct rp_value_shape *s = g->nodes[node].shape;

    return rp_literal_unit(s->elem) && !s->rank && !s->dynamic;
}

static bool loop_lane(const struct rp_plan *plan, const struct rp_node *node, struct rp_lane *lane)
{
    if (node->code == RP_OP_FOREIGN)
        return rp_fast_special_lane(plan, node, lane);
    if (!rp_opcode_is_elementwise(node->code) || !rp_lane_of_node(plan, node, false, lane))
        return false;
    rp_fast_lane(node->code, lane);
    return true;
}

static bool is_fusible(const struct fusion_ctx *f, const struct rp_node *node)
{
    struct rp_lane lane;

    if (node->shape->dynamic || node->shape->n == 0 || !node->nin || node->nin > 3)
        return false;
    for (uint32_t i = 0; i < node->nin; i++)
        if (!is_scalar(f->g, node->in[i]) &&
            !rp_shape_same_dims(f->g->nodes[node->in[i]].shape, node->shape))
            return false;
    return loop_lane(f->plan, node, &lane);
}

/* Finds how a broadcast is read in place; false if its operand's dimensions are not neighbours. */
static bool source_of(const struct fusion_ctx *f, const struct rp_node *node, struct source *s)
{
    const struct rp_value_shape *from = f->g->nodes[node->in[0]].shape, *to = node->shape;
    const struct rp_dims_attr *dims = node->attrs;
    int64_t last = -1;

    memset(s, 0, sizeof *s);
    s->period = s->repeat = 1;
    if (from->n == 1) {
        s->scalar = true;
        return true;
    }
    for (size_t i = 0; i < dims->n; i++) {
        if (from->dims[i] == 1) /* alone or repeated, a dimension of size 1 adds nothing */
            continue;
        for (int64_t k = last + 1; k < dims->at[i] && last >= 0; k++)
            if (to->dims[k] != 1)
                return false;
        if (dims->at[i] <= last)
            return false;
        last = dims->at[i];
        s->period *= from->dims[i];
    }
    for (size_t k = (size_t)last + 1; k < to->rank; k++)
        s->repeat *= to->dims[k];
    return true;
}

static bool inline_broadcast(const struct fusion_ctx *f, const struct rp_node *node,
                             struct source *s)
{
    return node->code == RP_OP_BROADCAST && !node->shape->dynamic && source_of(f, node, s);
}

static void form_cluster(struct fusion_ctx *f)
{
    struct rp_graph *g = f->g;

    for (uint32_t i = 0; i < g->n; i++)
        f->loop_of[i] = RP_NONE;
    f->outside[g->root] = true;
    for (uint32_t i = g->n; i-- > 0;) {
        struct rp_node *node = &g->nodes[i];
        bool can = is_fusible(f, node);

        if (can) {
            if (f->outside[i] || f->loop_of[i] == RP_NONE)
                f->loop_of[i] = i;
        } else {
            f->loop_of[i] = RP_NONE;
        }
        for (uint32_t k = 0; k < node->nin; k++) {
            uint32_t in = node->in[k];

            if (can && f->loop_of[in] == RP_NONE &&
                rp_shape_same_dims(g->nodes[in].shape, node->shape))
                f->loop_of[in] = f->loop_of[i];
            else if (!can || f->loop_of[in] != f->loop_of[i])
                f->outside[in] = true;
        }
    }
}

struct loop_ctx {
    struct fusion_ctx *f;
    uint32_t root;
    RP_VEC(struct rp_tape_reg) regs; /* inputs are numbered first, then operations */
    RP_VEC(struct rp_tape_op) ops;
    RP_VEC(uint32_t) inputs;
    RP_VEC(struct source) sources;
    RP_VEC(uint32_t) before; /* by input: the previous input with the same node, or RP_NONE */
    uint32_t *reg_of;        /* by node: op index + 1, or input index + 1 with the high bit */
};

static void loop_release(struct loop_ctx *b)
{
    rp_vec_release(&b->before);
    rp_vec_release(&b->regs);
    rp_vec_release(&b->ops);
    rp_vec_release(&b->inputs);
    rp_vec_release(&b->sources);
}

#define INPUT 0x80000000u

static bool same_source(const struct source *a, const struct source *b)
{
    return a->period == b->period && a->repeat == b->repeat && a->direct == b->direct &&
           a->scalar == b->scalar;
}

static enum rp_code add_input(struct loop_ctx *b, uint32_t node, struct source s, uint32_t *reg,
                              struct rp_err *err)
{
    for (uint32_t i = b->f->input[node]; b->sources.at && i != RP_NONE; i = b->before.at[i])
        if (same_source(&b->sources.at[i], &s)) {
            *reg = INPUT | i;
            return RP_OK;
        }
    *reg = INPUT | (uint32_t)b->inputs.n;
    RP_TRY(rp_vec_push(&b->before, b->f->input[node], err));
    b->f->input[node] = (uint32_t)b->inputs.n;
    RP_TRY(rp_vec_push(&b->inputs, node, err));
    return rp_vec_push(&b->sources, s, err);
}

static enum rp_code loop_operand(struct loop_ctx *b, uint32_t in, uint32_t *reg, struct rp_err *err)
{
    const struct rp_node *node = &b->f->g->nodes[in];
    struct source s;

    if (b->f->loop_of[in] == b->root && is_fusible(b->f, node) && in != b->root) {
        *reg = b->reg_of[in] - 1;
        return RP_OK;
    }
    if (inline_broadcast(b->f, node, &s))
        return add_input(b, node->in[0], s, reg, err);
    memset(&s, 0, sizeof s);
    s.scalar = !rp_shape_same_dims(node->shape, b->f->g->nodes[b->root].shape);
    s.direct = !s.scalar;
    return add_input(b, in, s, reg, err);
}

/* x << y | x >> z, as random generators rotate: one operation instead of three. */
#define SHIFTS(name, type)                                                                       \
    RP_CLONES static RP_LANE(name)                                                               \
    {                                                                                            \
        const type *in = a, *left = b, *right = c, bits = 8 * sizeof(type);                      \
        type *to = out;                                                                          \
                                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                         \
            type x = in[i];                                                                      \
                                                                                                 \
            to[i] = (left[i] < bits ? x << left[i] : 0) | (right[i] < bits ? x >> right[i] : 0); \
        }                                                                                        \
    }
SHIFTS(lane_shifts_32, uint32_t)
SHIFTS(lane_shifts_64, uint64_t)

/* Whether a node is of this form; then in[] are x, y and z. */
static bool is_shifts(const struct loop_ctx *b, const struct rp_node *node, uint32_t in[3],
                      struct rp_lane *lane)
{
    if (node->code != RP_OP_OR || (lane->to != RP_ELEM_U32 && lane->to != RP_ELEM_U64) ||
        b->f->loop_of[node->in[0]] != b->root || b->f->loop_of[node->in[1]] != b->root)
        return false;
    const struct rp_node *left = &b->f->g->nodes[node->in[0]];
    const struct rp_node *right = &b->f->g->nodes[node->in[1]];
    if (left->code == RP_OP_SHIFT_RIGHT_LOGICAL) {
        right = left;
        left = &b->f->g->nodes[node->in[1]];
    }
    if (left->code != RP_OP_SHIFT_LEFT || right->code != RP_OP_SHIFT_RIGHT_LOGICAL ||
        left->in[0] != right->in[0])
        return false;
    in[0] = left->in[0];
    in[1] = left->in[1];
    in[2] = right->in[1];
    lane->fn = lane->to == RP_ELEM_U32 ? lane_shifts_32 : lane_shifts_64;
    return true;
}

/* x < y ? x + z : x, as JAX counts negative indices from the end: one operation instead of three.
 */
#define WRAPPED(name, type, wide)                          \
    RP_CLONES static RP_LANE(name)                         \
    {                                                      \
        const type *x = a, *y = b;                         \
        const wide *z = c;                                 \
        wide *to = out;                                    \
                                                           \
        for (size_t i = 0; i < n; i++)                     \
            to[i] = (wide)x[i] + (x[i] < y[i] ? z[i] : 0); \
    }
WRAPPED(lane_wrapped_32, int32_t, uint32_t)
WRAPPED(lane_wrapped_64, int64_t, uint64_t)

/* Whether a node is of this form; then in[] are x, y and z. */
static bool is_wrapped(const struct loop_ctx *b, const struct rp_node *node, uint32_t in[3],
                       struct rp_lane *lane)
{
    struct rp_lane compared;

    if (node->code != RP_OP_SELECT || (lane->to != RP_ELEM_S32 && lane->to != RP_ELEM_S64) ||
        b->f->loop_of[node->in[0]] != b->root || b->f->loop_of[node->in[1]] != b->root)
        return false;
    const struct rp_node *less = &b->f->g->nodes[node->in[0]];
    const struct rp_node *sum = &b->f->g->nodes[node->in[1]];
    if (less->code != RP_OP_COMPARE || sum->code != RP_OP_ADD ||
        !rp_lane_of_node(b->f->plan, less, false, &compared) || compared.from != lane->to ||
        compared.direction != RP_CMP_LT || less->in[0] != node->in[2] ||
        (sum->in[0] != node->in[2] && sum->in[1] != node->in[2]))
        return false;
    in[0] = node->in[2];
    in[1] = less->in[1];
    in[2] = sum->in[sum->in[0] == node->in[2]];
    lane->fn = lane->to == RP_ELEM_S32 ? lane_wrapped_32 : lane_wrapped_64;
    return true;
}

/* x * y + z and x * y - z, each rounded twice as the two operations are. */
#define MULTIPLIED(name, op)                \
    RP_CLONES static RP_LANE(name)          \
    {                                       \
        const float *x = a, *y = b, *z = c; \
        float *to = out;                    \
                                            \
        for (size_t i = 0; i < n; i++)      \
            to[i] = x[i] * y[i] op z[i];    \
    }
MULTIPLIED(lane_multiply_add, +)
MULTIPLIED(lane_multiply_subtract, -)

/* Whether this is a product of this loop that nothing else reads. */
static bool is_product(const struct loop_ctx *b, uint32_t in)
{
    const struct rp_node *node = &b->f->g->nodes[in];

    return node->code == RP_OP_MULTIPLY && b->f->loop_of[in] == b->root && b->f->uses[in] == 1;
}

/* Whether a node is of this form; then in[] are x, y and z. */
static bool is_multiplied(const struct loop_ctx *b, const struct rp_node *node, uint32_t in[3],
                          struct rp_lane *lane)
{
    uint32_t k = 0;

    if ((node->code != RP_OP_ADD && node->code != RP_OP_SUBTRACT) || lane->from != RP_ELEM_F32 ||
        lane->to != RP_ELEM_F32)
        return false;
    if (!is_product(b, node->in[0]) && node->code == RP_OP_ADD)
        k = 1;
    if (!is_product(b, node->in[k]))
        return false;
    const struct rp_node *product = &b->f->g->nodes[node->in[k]];
    in[0] = product->in[0];
    in[1] = product->in[1];
    in[2] = node->in[1 - k];
    lane->fn = node->code == RP_OP_ADD ? lane_multiply_add : lane_multiply_subtract;
    return true;
}

static enum rp_code add_op(struct loop_ctx *b, uint32_t i, struct rp_err *err)
{
    const struct rp_node *node = &b->f->g->nodes[i];
    struct rp_tape_op op = {.to = (uint32_t)b->ops.n, .a = RP_NONE, .b = RP_NONE, .c = RP_NONE};
    uint32_t *place[3] = {&op.a, &op.b, &op.c}, joined[3], nin = node->nin;
    const uint32_t *in = node->in;

    loop_lane(b->f->plan, node, &op.lane);
    if (is_shifts(b, node, joined, &op.lane) || is_wrapped(b, node, joined, &op.lane) ||
        is_multiplied(b, node, joined, &op.lane)) {
        in = joined;
        nin = 3;
    }
    for (uint32_t k = 0; k < nin; k++)
        RP_TRY(loop_operand(b, in[k], place[k], err));
    struct rp_tape_reg reg = {op.lane.to, (uint8_t)((rp_elem_bits(op.lane.to) + 7) / 8), NULL};
    RP_TRY(rp_vec_push(&b->regs, reg, err));
    RP_TRY(rp_vec_push(&b->ops, op, err));
    b->reg_of[i] = op.to + 1;
    return RP_OK;
}

static uint32_t final_reg(uint32_t reg, size_t ninputs)
{
    if (reg == RP_NONE)
        return reg;
    return reg & INPUT ? reg & ~INPUT : reg + (uint32_t)ninputs;
}

/* The tape of a loop becomes the attributes of its last node, whose operands are the inputs. */
static enum rp_code loop_finish(struct loop_ctx *b, struct rp_err *err)
{
    struct rp_plan *plan = b->f->plan;
    struct rp_node *root = &b->f->g->nodes[b->root];
    struct loop *loop = RP_NODE_NEW(plan, struct loop);
    bool *read = RP_ARENA_NEW(&plan->arena, bool, b->ops.n + 1);
    size_t nin = b->inputs.n;

    RP_TRY(rp_err_need(loop && read, err, "planning"));
    loop->tape.nparams = nin;
    loop->tape.nregs = nin + b->ops.n;
    loop->tape.nresults = 1;
    loop->tape.regs = RP_ARENA_NEW(&plan->arena, struct rp_tape_reg, nin + b->ops.n + 1);
    loop->tape.ops = rp_plan_copy(plan, b->ops.at, b->ops.n, sizeof *b->ops.at);
    loop->tape.results = RP_ARENA_NEW(&plan->arena, uint32_t, 1);
    loop->sources = rp_plan_copy(plan, b->sources.at, nin, sizeof *b->sources.at);
    root->in = rp_plan_copy(plan, b->inputs.at, nin, sizeof *b->inputs.at);
    RP_TRY(rp_err_need(loop->tape.regs && loop->tape.ops && loop->tape.results && loop->sources &&
                           root->in,
                       err, "planning"));
    if (b->ops.n)
        memcpy(loop->tape.regs + nin, b->regs.at, b->ops.n * sizeof *b->regs.at);
    /* Drops operations whose results nothing reads any more; returns the number of those left.
       Numbers of registers stay. */
    size_t kept = b->ops.n;
    memset(read, 0, b->ops.n);
    for (size_t i = b->ops.n; i-- > 0;) {
        const struct rp_tape_op *op = &loop->tape.ops[i];
        const uint32_t in[3] = {op->a, op->b, op->c};

        if (i + 1 < b->ops.n && !read[op->to])
            continue;
        for (size_t k = 0; k < 3; k++)
            if (!(in[k] & INPUT))
                read[in[k]] = true;
        loop->tape.ops[--kept] = *op;
    }
    memmove(loop->tape.ops, loop->tape.ops + kept, (b->ops.n - kept) * sizeof *loop->tape.ops);
    loop->tape.nops = b->ops.n - kept;
    for (size_t i = 0; i < loop->tape.nops; i++) {
        struct rp_tape_op *op = &loop->tape.ops[i];

        op->to += (uint32_t)nin;
        op->a = final_reg(op->a, nin);
        op->b = final_reg(op->b, nin);
        op->c = final_reg(op->c, nin);
    }
    loop->tape.results[0] = (uint32_t)(nin + b->ops.n - 1);
    root->nin = (uint32_t)nin;
    root->attrs = loop;
    root->run = run_loop;
    root->takes_unaligned = true;
    return RP_OK;
}

static enum rp_code build_loop(struct fusion_ctx *f, uint32_t root, uint32_t *reg_of,
                               struct rp_err *err)
{
    RP_SCOPED(loop_release) struct loop_ctx b = {.f = f, .root = root, .reg_of = reg_of};

    for (uint32_t i = f->first[root]; i != RP_NONE; i = f->next[i])
        if (!f->g->nodes[i].skip && is_fusible(f, &f->g->nodes[i]))
            RP_TRY(add_op(&b, i, err));
    RP_TRY(loop_finish(&b, err));
    for (size_t i = 0; i < b.inputs.n; i++)
        f->input[b.inputs.at[i]] = RP_NONE;
    return RP_OK;
}

/* Skips members that are not the end of their loop, and values without readers. */
static void leave_out(struct fusion_ctx *f, const bool *ends)
{
    struct rp_graph *g = f->g;
    bool *read = f->outside;

    memset(read, 0, g->n);
    read[g->root] = true;
    for (uint32_t i = g->n; i-- > 0;) {
        struct rp_node *node = &g->nodes[i];

        if (!ends[i] && !read[i] &&
            (f->loop_of[i] != RP_NONE || node->code == RP_OP_BROADCAST ||
             node->code == RP_OP_IOTA)) {
            node->skip = true;
            node->nin = 0;
            continue;
        }
        for (uint32_t k = 0; k < node->nin; k++)
            read[node->in[k]] = true;
    }
}

enum rp_code rp_loops_form_graph(struct rp_plan *plan, struct rp_graph *g, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    uint32_t *reg_of = RP_ARENA_NEW(&scratch, uint32_t, g->n);
    bool *ends = RP_ARENA_NEW(&scratch, bool, g->n);
    struct fusion_ctx f = {.plan = plan,
                           .g = g,
                           .loop_of = RP_ARENA_NEW(&scratch, uint32_t, g->n),
                           .outside = RP_ARENA_NEW(&scratch, bool, g->n),
                           .first = RP_ARENA_NEW(&scratch, uint32_t, g->n),
                           .next = RP_ARENA_NEW(&scratch, uint32_t, g->n),
                           .input = RP_ARENA_NEW(&scratch, uint32_t, g->n),
                           .uses = RP_ARENA_NEW(&scratch, uint32_t, g->n)};

    RP_TRY(rp_arena_check(&scratch, "planning", err));
    f.uses[g->root]++;
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t k = 0; k < g->nodes[i].nin && !g->nodes[i].skip; k++)
            f.uses[g->nodes[i].in[k]]++;
    form_cluster(&f);
    /* Lists the members of each loop, in order. */
    memset(f.first, 0xff, g->n * sizeof *f.first);
    memset(f.input, 0xff, g->n * sizeof *f.input);
    for (uint32_t i = g->n; i-- > 0;)
        if (f.loop_of[i] != RP_NONE) {
            f.next[i] = f.first[f.loop_of[i]];
            f.first[f.loop_of[i]] = i;
        }
    /* From the end, because operands stay as they are until their loop is made. */
    for (uint32_t i = g->n; i-- > 0;) {
        ends[i] = f.loop_of[i] == i && is_fusible(&f, &g->nodes[i]);
        if (ends[i])
            RP_TRY(build_loop(&f, i, reg_of, err));
    }
    leave_out(&f, ends);
    return rp_plan_lifetimes(plan, g, err);
}

enum rp_code rp_loops_form(struct rp_plan *plan, struct rp_err *err)
{
    for (size_t i = 0; i < plan->program->computations.n; i++) {
        struct rp_graph *g = &plan->graphs[i];

        if (!g->n || !g->nodes[0].kernel)
            continue; /* never called */
        RP_TRY(rp_loops_form_graph(plan, g, err));
    }
    return RP_OK;
}
