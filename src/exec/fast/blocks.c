/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates rows in blocks. The nodes of a softmax, a norm or a random generator read and write
 * whole arrays one after another, and long arrays do not stay in the cache. If element-wise
 * operations, reductions and gathers by such indices share their first ("leading") dimensions, a
 * row of a result needs only that row of the operands. Such nodes become one node, which evaluates
 * all of them for a block of rows before the next; blocks are jobs of the pool.
 *
 *     mean = reduce(x), d = x - broadcast(mean), v = reduce(d * d)    for rows 0-15, 16-31, ...
 *
 * A cluster grows from one node to all that read it, as long as nothing outside lies between two of
 * its members; nodes that only members read join it. When operations are timed, the cluster runs as
 * a whole, so that each is counted once.
 */
#include "base/threads.h"
#include "exec/fast/kernels.h"
#include "exec/ref/kernels.h"
#include "exec/ref/reduce.h"
#include "program/literal.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK  16384               /* elements of an array in a block */
#define ROW    (1 << 18)           /* elements of the longest row that gains from blocks */
#define WORTH  (1 << 18)           /* arrays with fewer elements stay in the cache anyway */
#define WINDOW 400                 /* nodes around the first one that are considered */
#define MOST   48                  /* limit for inputs, outputs, and broadcasts from outside */
#define BUDGET (UINT64_C(1) << 28) /* limit for nodes considered in total */

/* The leading dimensions that a value has, and where. */
struct lead {
    uint32_t has;
    uint8_t place[RP_TENSOR_RANK];
};

struct input {
    uint32_t node; /* while planning: the node in the graph around the cluster */
    struct lead lead;
};

struct blocks {
    struct rp_graph *whole, *block,
        *rest; /* graphs for all rows, for a block, for the last block */
    size_t rank, nin, nout, jobs;
    int64_t dims[RP_TENSOR_RANK]; /* the leading ones */
    int64_t rows;                 /* rows of a block, along the last leading dimension */
    const struct input *inputs;
    const struct rp_value_shape **outs;
};

/* ---- running ---- */

struct blocks_run {
    const struct rp_eval *e;
    const struct blocks *b;
    struct rp_tensor *const *in;
    struct rp_tensor **out;
};

/* Returns the number of rows in a block, and where it begins. */
static int64_t block_begin(const struct blocks *b, size_t job, int64_t *at)
{
    size_t last = b->rank - 1;
    int64_t per = (b->dims[last] + b->rows - 1) / b->rows, rest = (int64_t)job / per;

    at[last] = (int64_t)job % per * b->rows;
    for (size_t k = last; k-- > 0; rest /= b->dims[k])
        at[k] = rest % b->dims[k];
    return b->dims[last] - at[last] < b->rows ? b->dims[last] - at[last] : b->rows;
}

static enum rp_code block_input(const struct blocks *b, const struct input *input,
                                struct rp_tensor *t, const struct rp_value_shape *shape,
                                const int64_t *at, struct rp_tensor **out, struct rp_err *err)
{
    int64_t stride[RP_TENSOR_RANK], from = 0;

    if (!input->lead.has) {
        *out = rp_tensor_keep(t);
        return RP_OK;
    }
    rp_strides(t->dims, t->rank, stride);
    for (size_t k = 0; k < b->rank; k++)
        if (input->lead.has >> k & 1)
            from += at[k] * stride[input->lead.place[k]];
    return rp_tensor_borrow(t->elem, shape->dims, shape->rank, t->data + from * (int64_t)t->unit,
                            out, err);
}

/* Makes an output for the rows of a block. */
static enum rp_code block_output(const struct blocks *b, const struct rp_value_shape *shape,
                                 int64_t rows, const int64_t *at, const struct rp_tensor *all,
                                 struct rp_tensor **out, struct rp_err *err)
{
    size_t row = 0;

    for (size_t k = 0; k < b->rank; k++)
        row = row * (size_t)b->dims[k] + (size_t)at[k];
    return rp_tensor_borrow(all->elem, shape->dims, shape->rank,
                            all->data + row * (shape->n / (size_t)rows) * all->unit, out, err);
}

static RP_JOB(run_block)
{
    const struct blocks_run *r = user;
    const struct blocks *b = r->b;
    struct rp_eval e = {
        .plan = r->e->plan, .partition = r->e->partition, .depth = r->e->depth}; /* one thread */
    int64_t at[RP_TENSOR_RANK], rows = block_begin(b, job, at);
    const struct rp_graph *g = rows == b->rows ? b->block : b->rest;
    const struct rp_value_shape *made = g->nodes[g->root].shape;
    RP_SCOPED(rp_tensors_release) struct rp_tensors args = {0}, into = {0};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *value = NULL;

    RP_TRY(rp_tensors_new(b->nin, &args, err));
    RP_TRY(rp_tensors_new(b->nout, &into, err));
    for (size_t i = 0; i < b->nin; i++)
        RP_TRY(block_input(b, &b->inputs[i], r->in[i], g->nodes[i].shape, at, &args.at[i], err));
    for (size_t i = 0; i < b->nout; i++)
        RP_TRY(block_output(b, b->nout == 1 ? made : made->parts[i], rows, at, r->out[i],
                            &into.at[i], err));
    e.into = into.at;
    RP_TRY(rp_eval_graph(&e, g, args.at, &value, err));
    for (size_t i = 0; i < b->nout; i++) {
        const struct rp_tensor *from = b->nout == 1 ? value : value->parts[i];

        if (from->data != into.at[i]->data) /* it was not made in its place */
            memcpy(into.at[i]->data, from->data, rp_tensor_bytes(from));
    }
    return RP_OK;
}

static RP_KERNEL(run_blocks)
{
    const struct blocks *b = node->attrs;
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    if (e->times || e->spans)
        return rp_eval_graph(e, b->whole, in, out, err);
    RP_TRY(rp_tensors_new(b->nout, &parts, err));
    for (size_t i = 0; i < b->nout; i++)
        RP_TRY(rp_shape_tensor(b->outs[i], &parts.at[i], err));
    struct blocks_run r = {e, b, in, parts.at};
    RP_TRY(rp_pool_each(e->pool, b->jobs, run_block, &r, err));
    return rp_node_give(node, &parts, out, err);
}

/* ---- which nodes ---- */

enum place { OUTSIDE, INSIDE, AFTER }; /* AFTER: it reads a member, perhaps indirectly */

struct blocks_ctx {
    struct rp_plan *plan;
    struct rp_graph *g;
    uint8_t *place;   /* of nodes, enum place */
    bool *kept;       /* by member: whether a copy stays outside, too */
    uint32_t *uses;   /* by node: how often it is an operand */
    uint32_t *inner;  /* and those of members */
    uint32_t *moved;  /* by node: its new number */
    uint32_t *number; /* by member: its number in the new graph */
    uint64_t budget;
    /* the cluster that is being formed */
    struct blocks *b;
    uint32_t low, first, last,
        end; /* the range of nodes considered, of members, and of nodes so far */
    uint32_t copied[MOST], outs[MOST];
    size_t ncopied, nmembers;
    struct input inputs[MOST];
};

static const struct rp_value_shape *shape_of(const struct blocks_ctx *c, uint32_t node)
{
    return c->g->nodes[node].shape;
}

static bool has_lead(const struct blocks_ctx *c, const struct rp_value_shape *s)
{
    return rp_literal_unit(s->elem) && !s->dynamic && s->rank >= c->b->rank &&
           !memcmp(s->dims, c->b->dims, c->b->rank * sizeof *s->dims);
}

static void full_lead(const struct blocks_ctx *c, struct lead *lead)
{
    memset(lead, 0, sizeof *lead);
    for (size_t k = 0; k < c->b->rank; k++) {
        lead->has |= 1u << k;
        lead->place[k] = (uint8_t)k;
    }
}

/* The leading dimensions of a broadcast's operand; they must be in order, so that rows are
   contiguous. */
static bool broadcast_lead(const struct blocks_ctx *c, const struct rp_node *node,
                           struct lead *lead)
{
    const struct rp_dims_attr *dims = node->attrs;
    const struct rp_value_shape *from = shape_of(c, node->in[0]);

    memset(lead, 0, sizeof *lead);
    for (size_t i = 0; i < dims->n; i++) {
        if (i && dims->at[i] <= dims->at[i - 1])
            return false;
        if (dims->at[i] < (int64_t)c->b->rank && from->dims[i] == c->b->dims[dims->at[i]]) {
            lead->has |= 1u << dims->at[i];
            lead->place[dims->at[i]] = (uint8_t)i;
        }
    }
    return !from->dynamic;
}

static bool reduce_fits(const struct blocks_ctx *c, const struct rp_node *node)
{
    const struct rp_reduce *a = node->attrs;

    for (size_t k = 0; k < c->b->rank; k++)
        if (a->reduced[k])
            return false;
    return a->k == 1 && has_lead(c, shape_of(c, node->in[0]));
}

/* Whether a row of the result needs only that row of this operand, not all of it. */
static bool reads_row(const struct rp_node *node, uint32_t k)
{
    return node->code != RP_OP_GATHER || k;
}

/* A gather of windows named by rows of indices fits if the operand, from which windows come
   anywhere, is not a member. */
static bool gather_fits(const struct blocks_ctx *c, const struct rp_node *node)
{
    const struct rp_gather *a = node->attrs;
    size_t rank = c->b->rank;

    for (size_t k = 0; k < a->offset.n; k++)
        if (a->offset.at[k] < (int64_t)rank)
            return false;
    return !a->operand_batch.n && a->vector_dim >= (int64_t)rank &&
           has_lead(c, shape_of(c, node->in[1])) && !shape_of(c, node->in[0])->dynamic &&
           c->place[node->in[0]] != INSIDE;
}

/* Whether a row of the result needs only that row of the operands. */
static bool fits(const struct blocks_ctx *c, const struct rp_node *node)
{
    struct lead lead;

    if (node->skip || !node->nin || !node->kernel || node->run != node->kernel->run ||
        !has_lead(c, node->shape))
        return false;
    switch (node->code) {
    case RP_OP_REDUCE:
        return reduce_fits(c, node);
    case RP_OP_BROADCAST:
        return broadcast_lead(c, node, &lead);
    case RP_OP_RESHAPE:
        return has_lead(c, shape_of(c, node->in[0]));
    case RP_OP_GATHER:
        return gather_fits(c, node);
    default:
        if (node->code != RP_OP_FOREIGN && !rp_opcode_is_elementwise(node->code))
            return false;
        for (uint32_t k = 0; k < node->nin; k++)
            if (shape_of(c, node->in[k])->rank &&
                !rp_shape_same_dims(shape_of(c, node->in[k]), node->shape))
                return false;
        return true;
    }
}

/* Finds the part of an operand from outside that a block reads. */
static void operand_lead(const struct blocks_ctx *c, const struct rp_node *node, uint32_t k,
                         struct lead *lead)
{
    if (node->code == RP_OP_BROADCAST)
        broadcast_lead(c, node, lead);
    else if (reads_row(node, k) && shape_of(c, node->in[k])->rank)
        full_lead(c, lead);
    else
        memset(lead, 0, sizeof *lead);
}

/* Chooses the fewest leading dimensions whose rows are short enough; `most` may lead. */
static bool choose_rows(struct blocks *b, const struct rp_value_shape *s, size_t most)
{
    size_t row = s->n;

    b->rank = 0;
    while (b->rank < most && row > BLOCK) {
        b->dims[b->rank] = s->dims[b->rank];
        row /= (size_t)s->dims[b->rank++];
    }
    if (!b->rank || row > ROW)
        return false;
    size_t last = b->rank - 1;
    b->rows = row < BLOCK ? (int64_t)(BLOCK / row) : 1;
    b->rows = b->rows < b->dims[last] ? b->rows : b->dims[last];
    b->jobs = (size_t)((b->dims[last] + b->rows - 1) / b->rows);
    for (size_t k = 0; k < last; k++)
        b->jobs *= (size_t)b->dims[k];
    return b->jobs > 1;
}

static void take_member(struct blocks_ctx *c, uint32_t i)
{
    c->place[i] = INSIDE;
    c->first = i < c->first ? i : c->first;
    c->last = i > c->last ? i : c->last;
    c->nmembers++;
}

/* Grows the cluster from the first member to nodes that read members. */
static void grow(struct blocks_ctx *c, uint32_t seed)
{
    take_member(c, seed);
    for (uint32_t i = seed + 1; i < c->end; i++) {
        const struct rp_node *node = &c->g->nodes[i];
        bool inside = false, after = false;

        for (uint32_t k = 0; k < node->nin; k++) {
            inside = inside || c->place[node->in[k]] == INSIDE;
            after = after || c->place[node->in[k]] == AFTER;
        }
        if (inside && !after && fits(c, node))
            take_member(c, i);
        else if (inside || after)
            c->place[i] = AFTER;
    }
}

/* Adds nodes that only members read. */
static void absorb(struct blocks_ctx *c)
{
    for (uint32_t i = c->last + 1; i-- > c->low;) {
        const struct rp_node *node = &c->g->nodes[i];

        if (c->place[i] == OUTSIDE && c->inner[i] && c->inner[i] == c->uses[i] && i != c->g->root &&
            fits(c, node))
            take_member(c, i);
        for (uint32_t k = 0; k < node->nin && c->place[i] == INSIDE; k++)
            if (node->in[k] >= c->low && reads_row(node, k))
                c->inner[node->in[k]]++;
    }
}

/* Finds the nodes that are read outside. Broadcasts and reshapes of members are copied outside
   instead, where they cost nothing. */
static bool find_outputs(struct blocks_ctx *c)
{
    c->b->nout = 0;
    for (uint32_t i = c->last + 1; i-- > c->first;) {
        const struct rp_node *node = &c->g->nodes[i];

        if (c->place[i] != INSIDE || (c->uses[i] == c->inner[i] && i != c->g->root))
            continue;
        if ((node->code == RP_OP_BROADCAST || node->code == RP_OP_RESHAPE) &&
            c->place[node->in[0]] == INSIDE) {
            c->kept[i] = true;
            c->nmembers--;
            if (c->inner[node->in[0]]) /* then the operand is read outside */
                c->inner[node->in[0]]--;
            continue;
        }
        if (c->b->nout == MOST)
            return false;
        c->outs[c->b->nout++] = i;
    }
    return c->b->nout > 0;
}

/* Copies broadcasts from outside that others read as well, so that both have them. */
static void copy_broadcasts(struct blocks_ctx *c)
{
    c->ncopied = 0;
    for (uint32_t i = c->first; i <= c->last; i++)
        for (uint32_t k = 0; k < c->g->nodes[i].nin && c->place[i] == INSIDE; k++) {
            uint32_t in = c->g->nodes[i].in[k];
            size_t at = 0;

            if (c->place[in] != OUTSIDE || c->g->nodes[in].code != RP_OP_BROADCAST ||
                !reads_row(&c->g->nodes[i], k) || !fits(c, &c->g->nodes[in]))
                continue;
            while (at < c->ncopied && c->copied[at] != in)
                at++;
            if (at == c->ncopied && at < MOST)
                c->copied[c->ncopied++] = in;
        }
}

/* ---- the graphs of a cluster ---- */

static const struct rp_value_shape *block_shape(struct blocks_ctx *c,
                                                const struct rp_value_shape *s,
                                                const struct lead *lead, int64_t rows)
{
    int64_t *dims;

    if (!rows || !lead->has)
        return s;
    struct rp_value_shape *to = rp_plan_copy(c->plan, s, 1, sizeof *s);
    dims = rp_plan_copy(c->plan, s->dims, s->rank, sizeof *dims);
    if (!to || !dims)
        return NULL;
    for (size_t k = 0; k < c->b->rank; k++)
        if (lead->has >> k & 1)
            dims[lead->place[k]] = k + 1 == c->b->rank ? rows : 1;
    to->dims = dims;
    to->order = NULL;
    to->n = 1;
    for (uint32_t k = 0; k < s->rank; k++)
        to->n *= (size_t)dims[k];
    return to;
}

static bool find_input(struct blocks_ctx *c, uint32_t node, const struct lead *lead, uint32_t *at)
{
    for (*at = 0; *at < c->b->nin; ++*at)
        if (c->inputs[*at].node == node && c->inputs[*at].lead.has == lead->has)
            return true;
    if (c->b->nin == MOST)
        return false;
    c->inputs[c->b->nin].node = node;
    c->inputs[c->b->nin++].lead = *lead;
    return true;
}

/* The n-th member: first the copied broadcasts, then the members in order. */
static bool next_member(const struct blocks_ctx *c, size_t *n, uint32_t *i)
{
    if (*n < c->ncopied) {
        *i = c->copied[(*n)++];
        return true;
    }
    *i = *n == c->ncopied ? c->first : *i + 1;
    ++*n;
    while (*i <= c->last && c->place[*i] != INSIDE)
        ++*i;
    return *i <= c->last;
}

/* Numbers the members and the inputs; false if there are too many. */
static bool number_members(struct blocks_ctx *c, uint32_t *count)
{
    uint32_t i = 0, at = 0, input;
    struct lead lead;

    c->b->nin = 0;
    for (size_t n = 0; next_member(c, &n, &i);)
        c->number[i] = ++at; /* 0: none */
    *count = at;
    for (size_t n = 0; next_member(c, &n, &i);)
        for (uint32_t k = 0; k < c->g->nodes[i].nin; k++) {
            operand_lead(c, &c->g->nodes[i], k, &lead);
            if ((!c->number[c->g->nodes[i].in[k]] || !reads_row(&c->g->nodes[i], k)) &&
                !find_input(c, c->g->nodes[i].in[k], &lead, &input))
                return false;
        }
    return true;
}

static const struct rp_value_shape *tuple_shape(struct blocks_ctx *c, const struct rp_graph *g)
{
    struct rp_value_shape *s = RP_NODE_NEW(c->plan, struct rp_value_shape);
    const struct rp_value_shape **parts =
        RP_ARENA_NEW(&c->plan->arena, const struct rp_value_shape *, c->b->nout);

    if (!s || !parts)
        return NULL;
    for (size_t i = 0; i < c->b->nout; i++)
        parts[i] =
            g ? g->nodes[c->b->nin + c->number[c->outs[i]] - 1].shape : shape_of(c, c->outs[i]);
    s->elem = RP_ELEM_TUPLE;
    s->nparts = (uint32_t)c->b->nout;
    s->parts = parts;
    return s;
}

/* A node that is added, whose time belongs to others. */
static struct rp_node own_node(const struct blocks_ctx *c, unsigned code,
                               const struct rp_node *like)
{
    const struct rp_kernel *kernel = c->plan->kernels[code];

    return (struct rp_node){.kernel = kernel,
                            .run = kernel->run,
                            .op = like->op,
                            .code = code,
                            .name = like->name,
                            .opcode = like->opcode,
                            .shape = like->shape,
                            .takes_unaligned = true,
                            .untimed = true};
}

static enum rp_code add_root(struct blocks_ctx *c, struct rp_graph *to, struct rp_err *err)
{
    uint32_t *in = RP_ARENA_NEW(&c->plan->arena, uint32_t, c->b->nout);
    struct rp_node *root = &to->nodes[to->n];

    RP_TRY(rp_err_need(in, err, "planning"));
    for (size_t i = 0; i < c->b->nout; i++) {
        in[i] = (uint32_t)c->b->nin + c->number[c->outs[i]] - 1;
        to->nodes[in[i]].into = (uint8_t)(i + 1);
    }
    to->root = in[0];
    if (c->b->nout == 1)
        return RP_OK;
    *root = own_node(c, RP_OP_TUPLE, &c->g->nodes[c->last]);
    root->in = in;
    root->nin = (uint32_t)c->b->nout;
    root->shape = tuple_shape(c, to);
    to->root = to->n++;
    return rp_err_need(root->shape, err, "planning");
}

/* rows: of a block; 0 for all. */
static enum rp_code cluster_graph(struct blocks_ctx *c, uint32_t members, int64_t rows,
                                  struct rp_graph **out, struct rp_err *err)
{
    struct rp_graph *to = *out = RP_NODE_NEW(c->plan, struct rp_graph);
    uint32_t i = 0;

    RP_TRY(rp_err_need(to, err, "planning"));
    to->computation = c->g->computation;
    to->nparams = (uint32_t)c->b->nin;
    to->nodes = RP_ARENA_NEW(&c->plan->arena, struct rp_node, c->b->nin + members + 1);
    RP_TRY(rp_err_need(to->nodes, err, "planning"));
    for (; to->n < to->nparams; to->n++) {
        const struct input *input = &c->inputs[to->n];
        struct rp_node *node = &to->nodes[to->n];

        *node = own_node(c, RP_OP_PARAMETER, &c->g->nodes[input->node]);
        node->value = to->n;
        node->shape = block_shape(c, node->shape, &input->lead, rows);
        RP_TRY(rp_err_need(node->shape, err, "planning"));
    }
    for (size_t n = 0; next_member(c, &n, &i);) {
        const struct rp_node *from = &c->g->nodes[i];
        struct rp_node *node = &to->nodes[to->n++];
        uint32_t *in = RP_ARENA_NEW(&c->plan->arena, uint32_t, (size_t)from->nin + 1);
        struct lead lead;

        RP_TRY(rp_err_need(in, err, "planning"));
        for (uint32_t k = 0; k < from->nin; k++) {
            operand_lead(c, from, k, &lead);
            if (c->number[from->in[k]] && reads_row(from, k))
                in[k] = (uint32_t)c->b->nin + c->number[from->in[k]] - 1;
            else
                find_input(c, from->in[k], &lead, &in[k]);
        }
        full_lead(c, &lead);
        *node = *from;
        node->in = in;
        node->shape = block_shape(c, from->shape, &lead, rows);
        RP_TRY(rp_err_need(node->shape, err, "planning"));
    }
    RP_TRY(add_root(c, to, err));
    return rp_loops_form_graph(c->plan, to, err);
}

/* Whether a graph passes over a long array; otherwise a cluster gains nothing. */
static bool is_worth(const struct rp_graph *whole)
{
    size_t n = 0;

    for (uint32_t i = 0; i < whole->n; i++) {
        const struct rp_node *node = &whole->nodes[i];
        bool is_long = node->shape->n >= WORTH;

        if (node->skip || node->untimed || node->code == RP_OP_RESHAPE)
            continue;
        for (uint32_t k = 0; k < node->nin; k++)
            is_long = is_long || whole->nodes[node->in[k]].shape->n >= WORTH;
        n += is_long;
    }
    return n > 1;
}

static enum rp_code make_graphs(struct blocks_ctx *c, bool *done, struct rp_err *err)
{
    struct blocks *b = c->b;
    int64_t rest = b->dims[b->rank - 1] % b->rows;
    uint32_t members;

    *done = false;
    if (!number_members(c, &members))
        return RP_OK;
    RP_TRY(cluster_graph(c, members, 0, &b->whole, err));
    if (!is_worth(b->whole))
        return RP_OK;
    RP_TRY(cluster_graph(c, members, b->rows, &b->block, err));
    if (rest)
        RP_TRY(cluster_graph(c, members, rest, &b->rest, err));
    b->inputs = rp_plan_copy(c->plan, c->inputs, b->nin, sizeof *b->inputs);
    b->outs = RP_ARENA_NEW(&c->plan->arena, const struct rp_value_shape *, b->nout);
    RP_TRY(rp_err_need(b->inputs && b->outs, err, "planning"));
    for (size_t i = 0; i < b->nout; i++)
        b->outs[i] = shape_of(c, c->outs[i]);
    *done = true;
    return RP_OK;
}

/* ---- putting it in place ---- */

static enum rp_code add_parts(struct blocks_ctx *c, struct rp_node *list, uint32_t *n,
                              struct rp_err *err)
{
    uint32_t *in = RP_ARENA_NEW(&c->plan->arena, uint32_t, 1);

    RP_TRY(rp_err_need(in, err, "planning"));
    *in = c->first + *n - 1;
    for (size_t i = 0; i < c->b->nout; i++) {
        c->moved[c->outs[i]] = *in;
        if (c->b->nout == 1)
            return RP_OK;
        c->moved[c->outs[i]] = c->first + *n;
        list[*n] = own_node(c, RP_OP_GET_TUPLE_ELEMENT, &c->g->nodes[c->outs[i]]);
        list[*n].in = in;
        list[*n].nin = 1;
        list[(*n)++].value = (int64_t)i;
    }
    return RP_OK;
}

static enum rp_code move_operands(struct blocks_ctx *c, struct rp_node *node, struct rp_err *err)
{
    uint32_t *in = NULL;

    for (uint32_t k = 0; k < node->nin; k++) {
        uint32_t from = node->in[k];

        if (from < c->first || from > c->last || c->moved[from] == from)
            continue;
        if (!in)
            in = rp_plan_copy(c->plan, node->in, node->nin, sizeof *in);
        RP_TRY(rp_err_need(in, err, "planning"));
        in[k] = c->moved[from];
    }
    if (in)
        node->in = in;
    return RP_OK;
}

/* Orders the nodes from the first to the last member: those outside, the cluster, then those after
   it. The remaining places of members are skipped. */
static enum rp_code arrange(struct blocks_ctx *c, struct rp_node *list, uint32_t *next,
                            struct rp_err *err)
{
    struct rp_graph *g = c->g;
    uint32_t n = 0, count = c->last - c->first + 1;
    struct rp_node filler = g->nodes[c->outs[0]];

    for (uint32_t i = c->first; i <= c->last; i++)
        if (c->place[i] == OUTSIDE) {
            c->moved[i] = c->first + n;
            list[n++] = g->nodes[i];
        }
    for (uint32_t i = 0; i < n; i++)
        RP_TRY(move_operands(c, &list[i], err));
    struct rp_node *cluster = &list[n++];
    uint32_t *in = RP_ARENA_NEW(&c->plan->arena, uint32_t, c->b->nin + 1);
    *cluster = own_node(c, RP_OP_FUSION, &c->g->nodes[c->outs[0]]);
    cluster->called = RP_ARENA_NEW(&c->plan->arena, struct rp_graph *, 1);
    RP_TRY(rp_err_need(in && cluster->called, err, "planning"));
    for (size_t i = 0; i < c->b->nin; i++)
        in[i] = c->inputs[i].node;
    cluster->in = in;
    cluster->nin = (uint32_t)c->b->nin;
    cluster->called[0] = c->b->whole;
    cluster->ncalled = 1;
    cluster->attrs = c->b;
    cluster->run = run_blocks;
    if (c->b->nout > 1)
        cluster->shape = tuple_shape(c, NULL);
    RP_TRY(rp_err_need(cluster->shape, err, "planning"));
    RP_TRY(move_operands(c, cluster, err));
    RP_TRY(add_parts(c, list, &n, err));
    *next = c->first + n;
    for (uint32_t i = c->first; i <= c->last; i++)
        if (c->place[i] == AFTER || c->kept[i]) {
            c->moved[i] = c->first + n;
            list[n] = g->nodes[i];
            RP_TRY(move_operands(c, &list[n++], err));
        }
    filler.skip = true;
    filler.nin = filler.ncalled = 0;
    while (n < count)
        list[n++] = filler;
    memcpy(g->nodes + c->first, list, count * sizeof *list);
    for (uint32_t i = c->last + 1; i < g->n; i++)
        RP_TRY(move_operands(c, &g->nodes[i], err));
    if (g->root >= c->first && g->root <= c->last)
        g->root = c->moved[g->root];
    return RP_OK;
}

static void count_uses(struct blocks_ctx *c)
{
    memset(c->uses, 0, c->g->n * sizeof *c->uses);
    for (uint32_t i = 0; i < c->g->n; i++)
        for (uint32_t k = 0; k < c->g->nodes[i].nin; k++)
            c->uses[c->g->nodes[i].in[k]]++;
}

/* Forms a cluster that begins with this node; *next is where to go on. */
static enum rp_code form_cluster(struct blocks_ctx *c, uint32_t seed, const struct blocks *like,
                                 uint32_t *next, struct rp_err *err)
{
    bool done = false, passes = false; /* passes: more than one node goes over the array */

    c->b = rp_plan_copy(c->plan, like, 1, sizeof *like);
    RP_TRY(rp_err_need(c->b, err, "planning"));
    c->low = seed > WINDOW ? seed - WINDOW : 0;
    c->end = c->g->n - seed > WINDOW ? seed + WINDOW : c->g->n;
    c->first = c->last = seed;
    c->nmembers = c->ncopied = 0;
    c->budget -= WINDOW < c->budget ? WINDOW : c->budget;
    if (fits(c, &c->g->nodes[seed])) {
        grow(c, seed);
        absorb(c);
        for (uint32_t i = c->first; i <= c->last; i++)
            passes = passes || (c->place[i] == INSIDE && (c->g->nodes[i].code == RP_OP_REDUCE ||
                                                          c->g->nodes[i].code == RP_OP_GATHER));
        if (find_outputs(c) && c->nmembers > c->b->nout && (passes || c->b->nout > 1)) {
            copy_broadcasts(c);
            RP_TRY(make_graphs(c, &done, err));
        }
    }
    if (done) {
        RP_FREED struct rp_node *list = calloc((size_t)(c->last - c->first) + 1, sizeof *list);

        RP_TRY(rp_err_need(list, err, "planning"));
        RP_TRY(arrange(c, list, next, err));
        count_uses(c);
        c->budget -= c->g->n < c->budget ? c->g->n : c->budget;
    }
    for (size_t i = 0; i < c->ncopied; i++)
        c->number[c->copied[i]] = 0;
    memset(c->place + c->low, OUTSIDE, c->end - c->low);
    memset(c->kept + c->low, 0, c->end - c->low);
    memset(c->inner + c->low, 0, (c->end - c->low) * sizeof *c->inner);
    memset(c->number + c->low, 0, (c->end - c->low) * sizeof *c->number);
    return RP_OK;
}

/* Reductions come first, because they decide which dimensions lead. */
static bool is_seed(const struct blocks_ctx *c, const struct rp_node *node, bool reductions,
                    struct blocks *b)
{
    const struct rp_reduce *a = node->attrs;
    size_t most = 0;

    if (node->skip || !node->nin || !node->kernel || node->run != node->kernel->run)
        return false;
    const struct rp_value_shape *s = shape_of(c, node->in[0]);
    if (s->n < WORTH || s->dynamic || !rp_literal_unit(s->elem))
        return false;
    if (!reductions)
        return rp_opcode_is_elementwise(node->code) && rp_shape_same_dims(s, node->shape) &&
               choose_rows(b, s, s->rank);
    if (node->code != RP_OP_REDUCE || a->k != 1)
        return false;
    while (most < s->rank && !a->reduced[most])
        most++;
    return choose_rows(b, s, most);
}

static bool has_long_arrays(const struct rp_graph *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (g->nodes[i].shape->n >= WORTH && g->nodes[i].shape->elem != RP_ELEM_TUPLE)
            return true;
    return false;
}

enum rp_code rp_blocks_form(struct rp_plan *plan, struct rp_err *err)
{
    for (size_t i = 0; i < plan->program->computations.n; i++) {
        struct rp_graph *g = &plan->graphs[i];

        if (!g->n || !g->nodes[0].kernel || !has_long_arrays(g))
            continue;
        RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
        struct blocks_ctx *c = RP_ARENA_NEW(&scratch, struct blocks_ctx, 1);
        RP_TRY(rp_err_need(c, err, "planning"));
        *c = (struct blocks_ctx){.plan = plan,
                                 .g = g,
                                 .budget = BUDGET,
                                 .place = RP_ARENA_NEW(&scratch, uint8_t, g->n),
                                 .kept = RP_ARENA_NEW(&scratch, bool, g->n),
                                 .uses = RP_ARENA_NEW(&scratch, uint32_t, g->n),
                                 .inner = RP_ARENA_NEW(&scratch, uint32_t, g->n),
                                 .moved = RP_ARENA_NEW(&scratch, uint32_t, g->n),
                                 .number = RP_ARENA_NEW(&scratch, uint32_t, g->n)};
        RP_TRY(rp_arena_check(&scratch, "planning", err));
        count_uses(c);
        for (int pass = 0; pass < 2; pass++)
            for (uint32_t k = 0; k < g->n && c->budget;) {
                struct blocks like = {0};
                uint32_t next = k + 1;

                if (is_seed(c, &g->nodes[k], pass == 0, &like))
                    RP_TRY(form_cluster(c, k, &like, &next, err));
                k = next;
            }
    }
    return RP_OK;
}
