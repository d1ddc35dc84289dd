/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds backward passes of PyTorch in loops that update their parameters by hand (torch.func, an
 * optimizer of their own): operators "autograd::engine::evaluate_function: …" with nothing between
 * them are a pass.
 *
 * A step begins with the forward pass before it, which is found by sequence numbers. An operator
 * has the number that the next node of the graph will have, or none while the graph is off. So the
 * first operator after which the number is larger makes the first node. Operators between it and
 * the previous pass update the parameters, certainly if the graph is off. Operators with a number
 * after these are inputs of the forward pass. If nothing lies there, passes are micro-batches.
 */
#include "trace/finish/steps_backward.h"

#include "trace/finish/steps.h"

enum { NO_NUMBER = -1 };

static bool is_backward(const struct rp_builder *b, const struct rp_loop_item *item)
{
    return !strncmp(rp_strtab_borrow(&b->str, item->name), RP_BACKWARD_PREFIX,
                    sizeof RP_BACKWARD_PREFIX - 1);
}

static int64_t number_of(const struct rp_builder *b, const struct rp_loop_item *item, rp_str key)
{
    rp_event e = item->event;
    struct rp_arg arg;

    if (key == RP_NONE ||
        !rp_args_find(&b->trace->args, b->ev.shape.at[e], b->ev.arg_row.at[e], key, &arg) ||
        arg.type != RP_ARG_I64 || arg.v.i < 0)
        return NO_NUMBER;
    return arg.v.i;
}

/* The item in [from, to) that makes the first node, or `to` if it is not known. */
static size_t first_node(const struct rp_builder *b, const struct rp_loop_work *work, size_t from,
                         size_t to, rp_str key)
{
    int64_t number = NO_NUMBER, mine;
    size_t node = to;

    for (size_t i = from; i < to; i++) {
        mine = number_of(b, &work->items.at[i], key);
        if (mine == NO_NUMBER)
            continue;
        if (number != NO_NUMBER && mine > number)
            return node;
        node = i;
        number = mine;
    }
    return to;
}

/* The last item in [from, to) without a number, or `to`. */
static size_t last_without(const struct rp_builder *b, const struct rp_loop_work *work, size_t from,
                           size_t to, rp_str key)
{
    for (size_t i = to; i > from; i--)
        if (number_of(b, &work->items.at[i - 1], key) == NO_NUMBER)
            return i - 1;
    return to;
}

/* The pass of the items in [at, ...), with the forward pass after `from`. */
static struct rp_backward pass_from(const struct rp_builder *b, const struct rp_loop_work *work,
                                    size_t from, size_t at, rp_str key)
{
    size_t node = first_node(b, work, from, at, key), forward = node;
    size_t last = last_without(b, work, from, node, key);
    struct rp_backward pass = {.event = work->items.at[at].event};

    if (node < at && last < node) {
        forward = last + 1;
        pass.update = RP_BACKWARD_UPDATED;
    } else if (node < at && node > from) {
        pass.update = RP_BACKWARD_MAYBE_UPDATED;
    }
    pass.begin_ns = work->items.at[forward].begin_ns;
    pass.forward = at - forward;
    return pass;
}

enum rp_code rp_backward_passes(const struct rp_builder *b, const struct rp_loop_work *work,
                                rp_backward_vec *out, struct rp_err *err)
{
    rp_str key = rp_build_find_str(b, "Sequence number");
    const struct rp_loop_item *item = work->items.at;
    size_t last = 0, i, end; /* last: the end of the pass before */

    for (i = 0; i < work->items.n; i = end) {
        end = i + 1;
        if (!is_backward(b, &item[i]))
            continue;
        struct rp_backward pass = pass_from(b, work, last, i, key);
        for (pass.end_ns = item[i].end_ns; end < work->items.n && is_backward(b, &item[end]); end++)
            pass.end_ns = item[end].end_ns > pass.end_ns ? item[end].end_ns : pass.end_ns;
        RP_TRY(rp_vec_push(out, pass, err));
        last = end;
    }
    return RP_OK;
}
