/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers bytes between a parent and its child over a socket pair; a closed end is an answer, not
   a signal. */
#include "exec/worker/wire.h"

#include <errno.h>
#include <sys/socket.h>

#define PIECE_BYTES (UINT64_C(1) << 30) /* for one system call, which has a limit of 2 GiB */

bool rp_wire_send(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;

    while (n) {
        ssize_t sent = send(fd, at, n < PIECE_BYTES ? n : PIECE_BYTES, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        n -= (size_t)sent;
    }
    return true;
}

bool rp_wire_receive(int fd, void *bytes, size_t n)
{
    char *at = bytes;

    while (n) {
        ssize_t got = recv(fd, at, n < PIECE_BYTES ? n : PIECE_BYTES, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

#define NO_TENSOR UINT32_MAX

struct wire_shape {
    uint32_t elem, rank;
    int64_t dims[RP_TENSOR_RANK];
};

bool rp_wire_send_tensor(int fd, const struct rp_tensor *t)
{
    struct wire_shape shape = {t ? t->elem : NO_TENSOR, t ? t->rank : 0, {0}};

    if (!t)
        return rp_wire_send(fd, &shape, sizeof shape);
    for (uint32_t i = 0; i < t->rank; i++)
        shape.dims[i] = t->dims[i];
    return rp_wire_send(fd, &shape, sizeof shape) &&
           (t->elem == RP_ELEM_TOKEN || rp_wire_send(fd, t->data, rp_tensor_bytes(t)));
}

enum rp_code rp_wire_receive_tensor(int fd, struct rp_tensor **out, struct rp_err *err)
{
    struct wire_shape shape;

    *out = NULL;
    if (!rp_wire_receive(fd, &shape, sizeof shape))
        return rp_err_set(err, RP_IO, "the other process has ended");
    if (shape.elem == NO_TENSOR)
        return RP_OK;
    if (shape.elem == RP_ELEM_TOKEN)
        return rp_tensor_token(out, err);
    RP_TRY(rp_tensor_new(shape.elem, shape.dims, shape.rank, out, err));
    if (rp_wire_receive(fd, (*out)->data, rp_tensor_bytes(*out)))
        return RP_OK;
    rp_tensor_drop(*out);
    *out = NULL;
    return rp_err_set(err, RP_IO, "the other process has ended");
}
