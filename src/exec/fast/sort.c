/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts by a key. Most comparisons are `f(a) < f(b)`, where f is the same function of one operand
 * on both sides (JAX makes -0 equal to 0 and all NaN alike). Then f is computed for a whole line,
 * 512 elements at a time, and turned into unsigned integers of the same order; these are sorted
 * with their positions, digit by digit, which is stable; the operands follow the positions. Floats
 * that are not compared by their total order must not be NaN. Everything else is left to the
 * reference. Lines are jobs of the pool.
 */
#include "base/threads.h"
#include "exec/eval/tape.h"
#include "exec/fast/kernels.h"
#include "exec/ref/kernels.h"
#include "exec/ref/reduce.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

#define FEW         24   /* with fewer elements, insertion is used */
#define MANY        4096 /* from so many elements on, digits have 11 bits, else 8 */
#define JOB_LINES   4096 /* least number of elements in a job */
#define MOST_DEPTH  64
#define MOST_DIGITS 2048

struct key_sort {
    struct rp_sort base;
    size_t operand;    /* that is the key */
    uint32_t reg;      /* register of the tape with f of the operand's first parameter */
    unsigned elem;     /* of f */
    bool keyed, total; /* total: floats are compared by their total order */
    bool down;         /* larger first */
};

/* ---- finding the key ---- */

static const struct rp_tape_op *op_of(const struct rp_tape *t, uint32_t reg)
{
    for (size_t i = 0; i < t->nops; i++)
        if (t->ops[i].to == reg)
            return &t->ops[i];
    return NULL;
}

static bool same_lane(const struct rp_lane *a, const struct rp_lane *b)
{
    return a->fn == b->fn && a->inner == b->inner && a->from == b->from && a->to == b->to &&
           a->direction == b->direction && a->exponent == b->exponent &&
           a->mantissa == b->mantissa && a->unit == b->unit;
}

/* Whether a is computed from parameter 2 * k, or constants, as b is from parameter 2 * k + 1; finds
 *k, which is SIZE_MAX before. */
static bool same_function(const struct rp_tape *t, uint32_t a, uint32_t b, size_t *k,
                          unsigned depth)
{
    if (a == RP_NONE || b == RP_NONE)
        return a == b;
    if (a < t->nparams || b < t->nparams) {
        if (a % 2 || b != a + 1 || b >= t->nparams || (*k != SIZE_MAX && *k != a / 2))
            return false;
        *k = a / 2;
        return true;
    }
    if (t->regs[a].constant || t->regs[b].constant)
        return t->regs[a].constant && t->regs[b].constant && t->regs[a].elem == t->regs[b].elem &&
               !memcmp(t->regs[a].constant, t->regs[b].constant, t->regs[a].unit);
    const struct rp_tape_op *x = op_of(t, a);
    const struct rp_tape_op *y = op_of(t, b);
    return x && y && depth < MOST_DEPTH && same_lane(&x->lane, &y->lane) &&
           same_function(t, x->a, y->a, k, depth + 1) &&
           same_function(t, x->b, y->b, k, depth + 1) && same_function(t, x->c, y->c, k, depth + 1);
}

static bool is_comparison(const struct rp_lane *lane, bool total)
{
    struct rp_lane like = {.from = lane->from, .to = lane->to, .direction = lane->direction};

    return lane->to == RP_ELEM_PRED && rp_lane_find(RP_OP_COMPARE, total, &like) &&
           like.fn == lane->fn && like.inner == lane->inner;
}

static bool is_sortable(unsigned elem)
{
    switch (elem) {
    case RP_ELEM_F64:
    case RP_ELEM_F32:
    case RP_ELEM_F16:
    case RP_ELEM_BF16:
        return true;
    default:
        return elem == RP_ELEM_PRED ||
               ((rp_elem_is_signed(elem) || rp_elem_is_unsigned(elem)) && rp_elem_bits(elem) >= 8);
    }
}

static bool is_float(unsigned elem)
{
    return elem == RP_ELEM_F64 || elem == RP_ELEM_F32 || elem == RP_ELEM_F16 ||
           elem == RP_ELEM_BF16;
}

static bool find_key(struct key_sort *s)
{
    const struct rp_tape *t = s->base.tape;
    const struct rp_tape_op *last = op_of(t, t->results[0]);

    if (!last || last->b == RP_NONE || last->c != RP_NONE)
        return false;
    s->total = is_comparison(&last->lane, true);
    if (!s->total && !is_comparison(&last->lane, false))
        return false;
    if (last->lane.direction != RP_CMP_LT && last->lane.direction != RP_CMP_GT)
        return false;
    s->down = last->lane.direction == RP_CMP_GT;
    uint32_t a = last->a;
    uint32_t b = last->b;
    s->operand = SIZE_MAX;
    if (!same_function(t, a, b, &s->operand,
                       0)) { /* the comparison is written the other way round */
        s->operand = SIZE_MAX;
        if (!same_function(t, b, a, &s->operand, 0))
            return false;
        s->down = !s->down;
        a = b;
    }
    s->reg = a;
    s->elem = t->regs[a].elem;
    return s->operand != SIZE_MAX && is_sortable(s->elem);
}

RP_PREPARE(rp_fast_sort_prepare)
{
    struct key_sort *s = RP_NODE_NEW(plan, struct key_sort);

    RP_TRY(rp_err_need(s, err, "planning"));
    RP_TRY(rp_sort_prepare(plan, node, err));
    s->base = *(const struct rp_sort *)node->attrs;
    s->keyed = find_key(s);
    node->attrs = s; /* begins with the reference's attributes */
    return RP_OK;
}

/* ---- keys as integers ---- */

struct item {
    uint64_t key;
    uint32_t at;
};
struct item32 {
    uint32_t key, at;
};

static uint64_t read_bits(const void *at, size_t i, size_t unit)
{
    uint64_t v = 0;

    memcpy(&v, (const char *)at + i * unit, unit);
    return v;
}

/* Makes bits that have the same order; *unordered is set if a NaN is compared by value. */
static uint64_t order_bits(const struct key_sort *s, uint64_t v, unsigned bits, bool *unordered)
{
    uint64_t top = (uint64_t)1 << (bits - 1), all = top | (top - 1);

    if (is_float(s->elem)) {
        if (!s->total) {
            uint64_t exponent = s->elem == RP_ELEM_F64   ? 0x7ff0000000000000u
                                : s->elem == RP_ELEM_F32 ? 0x7f800000u
                                : s->elem == RP_ELEM_F16 ? 0x7c00u
                                                         : 0x7f80u;
            if ((v & (all ^ top)) > exponent)
                *unordered = true;
            if (v == top) /* -0 is 0 */
                v = 0;
        }
        v = v & top ? ~v & all : v | top;
    } else if (rp_elem_is_signed(s->elem)) {
        v ^= top;
    }
    return s->down ? ~v & all : v;
}

/* The common case, as a loop that is vectorised. */
RP_CLONES static bool order_f32(const uint32_t *in, size_t n, bool total, uint32_t flip,
                                struct item32 *out, uint32_t first)
{
    uint32_t nan = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t v = in[i];

        nan |= !total & ((v & 0x7fffffffu) > 0x7f800000u);
        v = !total && v == 0x80000000u ? 0 : v;
        uint32_t sign = (uint32_t)((int32_t)v >> 31);
        out[i].key = (v ^ (sign | 0x80000000u)) ^ flip;
        out[i].at = first + (uint32_t)i;
    }
    return nan != 0;
}

/* ---- sorting items ---- */

#define SORT_ITEMS(name, type)                                                                  \
    static void insert_##name(type *x, size_t n)                                                \
    {                                                                                           \
        for (size_t i = 1; i < n; i++) {                                                        \
            type v = x[i];                                                                      \
            size_t k = i;                                                                       \
                                                                                                \
            for (; k && x[k - 1].key > v.key; k--)                                              \
                x[k] = x[k - 1];                                                                \
            x[k] = v;                                                                           \
        }                                                                                       \
    }                                                                                           \
    /* Returns x or spare, whichever holds the result. bits: number of bits of the key that are \
     * used. \ */                                                                               \
    static type *sort_##name(type *x, type *spare, size_t n, unsigned bits)                     \
    {                                                                                           \
        unsigned width = n >= MANY ? 11 : 8;                                                    \
        uint32_t count[MOST_DIGITS];                                                            \
                                                                                                \
        if (n <= FEW) {                                                                         \
            insert_##name(x, n);                                                                \
            return x;                                                                           \
        }                                                                                       \
        for (unsigned shift = 0; shift < bits; shift += width) {                                \
            uint32_t mask = (1u << width) - 1, sum = 0;                                         \
            type *swap = x;                                                                     \
                                                                                                \
            memset(count, 0, ((size_t)mask + 1) * sizeof *count);                               \
            for (size_t i = 0; i < n; i++)                                                      \
                count[x[i].key >> shift & mask]++;                                              \
            if (count[x[0].key >> shift & mask] == n)                                           \
                continue; /* all the same */                                                    \
            for (uint32_t d = 0; d <= mask; d++) {                                              \
                uint32_t c = count[d];                                                          \
                                                                                                \
                count[d] = sum;                                                                 \
                sum += c;                                                                       \
            }                                                                                   \
            for (size_t i = 0; i < n; i++)                                                      \
                spare[count[x[i].key >> shift & mask]++] = x[i];                                \
            x = spare;                                                                          \
            spare = swap;                                                                       \
        }                                                                                       \
        return x;                                                                               \
    }
SORT_ITEMS(wide, struct item)
SORT_ITEMS(narrow, struct item32)

/* ---- lines ---- */

struct sort_run {
    const struct rp_node *node;
    const struct key_sort *s;
    struct rp_tensor *const *in;
    struct rp_tensor **to;
    size_t n, lines, per_job, step; /* elements of a line, step apart */
    bool *unordered;                /* by line: whether the reference must sort it */
};

/* Where a line begins: lines are the places of the dimensions before and after the sorted one. */
static size_t line_base(const struct sort_run *r, size_t line)
{
    return line / r->step * r->step * r->n + line % r->step;
}

struct line_room {
    struct rp_tape_frame frame;
    char *piece; /* buffer for elements of a line that are not contiguous */
    void *items, *spare;
};

static void room_release(struct line_room *room)
{
    rp_tape_end(&room->frame);
    free(room->piece);
    free(room->items);
    free(room->spare);
}

/* Computes f for elements [at, at + m) of a line. */
static const void *line_keys(const struct sort_run *r, const struct line_room *room, size_t base,
                             size_t at, size_t m)
{
    const struct rp_tensor *t = r->in[r->s->operand];
    char *from = (char *)t->data + (base + at * r->step) * t->unit;

    if (r->step > 1) {
        for (size_t i = 0; i < m; i++)
            memcpy(room->piece + i * t->unit, from + i * r->step * t->unit, t->unit);
        from = room->piece;
    }
    for (size_t k = 0; k < r->s->base.tape->nparams; k++)
        room->frame.reg[k] =
            k / 2 == r->s->operand ? from : room->piece + (size_t)16 * RP_TAPE_LANES;
    if (r->s->reg < r->s->base.tape->nparams)
        return from;
    rp_tape_run(&room->frame, m);
    return room->frame.reg[r->s->reg];
}

static void move_line(const struct sort_run *r, size_t base, const uint32_t *at, size_t stride)
{
    for (uint32_t k = 0; k < r->node->nin; k++) {
        size_t unit = r->in[k]->unit;
        const char *from = (const char *)r->in[k]->data + base * unit;
        char *to = (char *)r->to[k]->data + base * unit;

        if (unit == 4)
            for (size_t i = 0; i < r->n; i++)
                ((uint32_t *)(void *)to)[i * r->step] =
                    ((const uint32_t *)(const void *)from)[at[i * stride] * r->step];
        else
            for (size_t i = 0; i < r->n; i++)
                memcpy(to + i * r->step * unit, from + at[i * stride] * r->step * unit, unit);
    }
}

static bool sort_line_narrow(const struct sort_run *r, const struct line_room *room, size_t base)
{
    unsigned bits = rp_elem_bits(r->s->elem) < 8 ? 8 : rp_elem_bits(r->s->elem);
    struct item32 *x = room->items;
    bool unordered = false;

    for (size_t at = 0; at < r->n; at += RP_TAPE_LANES) {
        size_t m = r->n - at < RP_TAPE_LANES ? r->n - at : RP_TAPE_LANES;
        const void *keys = line_keys(r, room, base, at, m);

        if (r->s->elem == RP_ELEM_F32) {
            unordered |=
                order_f32(keys, m, r->s->total, r->s->down ? UINT32_MAX : 0, x + at, (uint32_t)at);
            continue;
        }
        for (size_t i = 0; i < m; i++) {
            x[at + i].key =
                (uint32_t)order_bits(r->s, read_bits(keys, i, (bits + 7) / 8), bits, &unordered);
            x[at + i].at = (uint32_t)(at + i);
        }
    }
    if (unordered)
        return false;
    x = sort_narrow(x, room->spare, r->n, bits);
    move_line(r, base, &x->at, 2);
    return true;
}

static bool sort_line_wide(const struct sort_run *r, const struct line_room *room, size_t base)
{
    struct item *x = room->items;
    bool unordered = false;

    for (size_t at = 0; at < r->n; at += RP_TAPE_LANES) {
        size_t m = r->n - at < RP_TAPE_LANES ? r->n - at : RP_TAPE_LANES;
        const void *keys = line_keys(r, room, base, at, m);

        for (size_t i = 0; i < m; i++) {
            x[at + i].key = order_bits(r->s, read_bits(keys, i, 8), 64, &unordered);
            x[at + i].at = (uint32_t)(at + i);
        }
    }
    if (unordered)
        return false;
    x = sort_wide(x, room->spare, r->n, 64);
    move_line(r, base, &x->at, sizeof *x / sizeof(uint32_t));
    return true;
}

static RP_JOB(sort_job)
{
    const struct sort_run *r = user;
    size_t end = (job + 1) * r->per_job < r->lines ? (job + 1) * r->per_job : r->lines;
    bool wide = rp_elem_bits(r->s->elem) > 32;
    size_t item = wide ? sizeof(struct item) : sizeof(struct item32);
    RP_SCOPED(room_release) struct line_room room = {0};

    RP_TRY(rp_tape_begin(r->s->base.tape, &room.frame, err));
    room.piece = calloc((size_t)2 * RP_TAPE_LANES, 16); /* the second half is for other operands */
    room.items = malloc((r->n + 1) * item);
    room.spare = malloc((r->n + 1) * item);
    RP_TRY(rp_err_need(room.piece && room.items && room.spare, err, "sorting"));
    for (size_t i = job * r->per_job; i < end; i++)
        if (!(wide ? sort_line_wide : sort_line_narrow)(r, &room, line_base(r, i)))
            r->unordered[job] = true;
    return RP_OK;
}

/* *done is false if the reference must do it. */
static enum rp_code sort_lines(struct rp_eval *e, struct sort_run *r, bool *done,
                               struct rp_err *err)
{
    r->per_job = JOB_LINES / r->n + 1;
    size_t jobs = (r->lines + r->per_job - 1) / r->per_job;
    RP_FREED bool *unordered = calloc(jobs + 1, sizeof *unordered);
    RP_TRY(rp_err_need(unordered, err, "sorting"));
    r->unordered = unordered;
    RP_TRY(rp_pool_each(e->pool, jobs, sort_job, r, err));
    *done = true;
    for (size_t i = 0; i < jobs; i++)
        *done = *done && !unordered[i];
    return RP_OK;
}

static bool sort_fits(const struct sort_run *r)
{
    for (uint32_t k = 0; k < r->node->nin; k++)
        if (r->in[k]->n != r->in[0]->n || r->in[k]->rank != r->in[0]->rank)
            return false;
    return r->in[0]->rank && r->in[0]->n && r->n > 1 && r->n < UINT32_MAX;
}

RP_KERNEL(rp_fast_sort)
{
    const struct key_sort *s = node->attrs;
    RP_SCOPED(rp_tensors_release) struct rp_tensors to = {0};
    struct sort_run r = {.node = node, .s = s, .in = in};
    bool done = false;

    if (s->keyed && in[0]->rank) {
        r.n = (size_t)in[0]->dims[s->base.dim];
        r.step = 1;
        for (size_t k = (size_t)s->base.dim + 1; k < in[0]->rank; k++)
            r.step *= (size_t)in[0]->dims[k];
    }
    if (!s->keyed || !r.n || !sort_fits(&r))
        return e->plan->reference[RP_OP_SORT]->run(e, node, in, out, err);
    r.lines = in[0]->n / r.n;
    RP_TRY(rp_tensors_new(node->nin, &to, err));
    r.to = to.at;
    for (uint32_t k = 0; k < node->nin; k++)
        RP_TRY(rp_tensor_new(in[k]->elem, in[k]->dims, in[k]->rank, &to.at[k], err));
    RP_TRY(sort_lines(e, &r, &done, err));
    return done ? rp_node_give(node, &to, out, err)
                : e->plan->reference[RP_OP_SORT]->run(e, node, in, out, err);
}
