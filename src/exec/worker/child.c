/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child's side of a worker: a loop that reads a request, calls the library and answers. It
 * reports errors only to the parent, and ends when the parent's end of the socket is closed.
 */
#include "exec/worker/wire.h"

#include <stdlib.h>

struct child_ctx {
    const struct rp_worker_ops *ops;
    void *self;
    int fd;
    size_t narguments, noutputs; /* of all devices */
    const struct rp_worker_start *start;
    struct rp_tensor **arguments;
};

static bool child_answer(const struct child_ctx *s, uint32_t kind, enum rp_code code, uint64_t n,
                         const struct rp_err *err)
{
    struct rp_wire_head head = {kind, (uint32_t)code, n};

    if (!rp_wire_send(s->fd, &head, sizeof head))
        return false;
    return code == RP_OK || rp_wire_send(s->fd, err, sizeof *err);
}

static void drop_arguments(struct child_ctx *s)
{
    for (size_t i = 0; s->arguments && i < s->narguments; i++)
        rp_tensor_drop(s->arguments[i]);
    free(s->arguments);
    s->arguments = NULL;
}

static enum rp_code receive_argument(struct child_ctx *s, size_t i, struct rp_err *err)
{
    RP_TRY(rp_wire_receive_tensor(s->fd, &s->arguments[i], err));
    if (s->arguments[i])
        return RP_OK;
    if (i >= s->start->narguments)
        return rp_err_set(err, RP_FORMAT, "argument %zu was not sent", i);
    s->arguments[i] = rp_tensor_keep(s->start->arguments[i]); /* the child has it since the fork */
    return RP_OK;
}

static bool child_upload(struct child_ctx *s, struct rp_err *err)
{
    enum rp_code code = RP_OK;

    drop_arguments(s);
    s->arguments = calloc(s->narguments + 1, sizeof *s->arguments);
    if (!s->arguments)
        return false;
    for (size_t i = 0; i < s->narguments && code == RP_OK; i++)
        code = receive_argument(s, i, err);
    if (code == RP_NOMEM || code == RP_IO)
        return false; /* unread data would be taken for the next request */
    if (code == RP_OK)
        code = s->ops->upload(s->self, s->arguments, err);
    return child_answer(s, RP_WIRE_UPLOAD, code, 0, err);
}

enum rp_code rp_worker_run_here(const struct rp_worker_ops *ops, void *self, size_t n, int64_t *ns,
                                struct rp_err *err)
{
    for (size_t i = 0; i < n; i++)
        RP_TRY(ops->run(self, &ns[i], err));
    return RP_OK;
}

static bool child_run(struct child_ctx *s, uint64_t n, struct rp_err *err)
{
    int64_t *ns = n < SIZE_MAX ? calloc((size_t)n + 1, sizeof *ns) : NULL;

    if (!ns)
        return false;
    enum rp_code code = rp_worker_run_here(s->ops, s->self, (size_t)n, ns, err);
    bool there = child_answer(s, RP_WIRE_RUN, code, n, err);
    if (there && code == RP_OK)
        there = rp_wire_send(s->fd, ns, (size_t)n * sizeof *ns);
    free(ns);
    return there;
}

static bool child_fetch(struct child_ctx *s, struct rp_err *err)
{
    struct rp_tensor **outputs = calloc(s->noutputs + 1, sizeof *outputs);

    if (!outputs)
        return false;
    enum rp_code code = s->ops->fetch(s->self, outputs, err);
    bool there = child_answer(s, RP_WIRE_FETCH, code, s->noutputs, err);
    for (size_t i = 0; code == RP_OK && i < s->noutputs; i++) {
        there = there && rp_wire_send_tensor(s->fd, outputs[i]);
        rp_tensor_drop(outputs[i]);
    }
    free(outputs);
    return there;
}

static bool child_profile(struct child_ctx *s, uint64_t runs, struct rp_err *err)
{
    uint8_t *bytes = NULL;
    size_t n = 0;
    enum rp_code code = s->ops->profile(s->self, (unsigned)runs, &bytes, &n, err);
    bool there = child_answer(s, RP_WIRE_PROFILE, code, n, err);

    if (there && code == RP_OK)
        there = rp_wire_send(s->fd, bytes, n);
    free(bytes);
    return there;
}

/* Returns false if the parent has ended or cannot be reached. */
static bool child_serve(struct child_ctx *s, const struct rp_wire_head *request)
{
    struct rp_err err = RP_ERR_INIT;

    switch ((enum rp_wire_kind)request->kind) {
    case RP_WIRE_UPLOAD:
        return child_upload(s, &err);
    case RP_WIRE_RUN:
        return child_run(s, request->n, &err);
    case RP_WIRE_FETCH:
        return child_fetch(s, &err);
    case RP_WIRE_MARK:
        if (s->ops->mark)
            s->ops->mark(s->self, request->n != 0);
        return child_answer(s, RP_WIRE_MARK, RP_OK, 0, NULL);
    case RP_WIRE_PROFILE:
        return child_profile(s, request->n, &err);
    case RP_WIRE_OPENED:
        break;
    }
    return false;
}

void rp_worker_serve(const struct rp_worker_ops *ops, const struct rp_worker_start *start, int fd)
{
    struct child_ctx s = {.ops = ops, .self = start->self, .fd = fd, .start = start};
    struct rp_worker_facts facts = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_wire_head request;
    enum rp_code code = ops->open(start->self, &facts, &err);

    if (!child_answer(&s, RP_WIRE_OPENED, code, 0, &err) || code != RP_OK ||
        !rp_wire_send(fd, &facts, sizeof facts))
        return;
    s.narguments = facts.devices * facts.narguments;
    s.noutputs = facts.devices * facts.noutputs;
    while (rp_wire_receive(fd, &request, sizeof request) && child_serve(&s, &request))
        ;
    drop_arguments(&s);
}
