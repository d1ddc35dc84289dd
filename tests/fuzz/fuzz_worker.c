/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol between a parent and the worker that runs a library: any bytes as requests to the
 * child's side, as an array, and (of each eighth input, since it forks) as answers to the parent.
 */
#include "exec/worker/wire.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ARRAYS 2
#define RUNS   1000

struct library {
    const uint8_t *answer; /* NULL: it works */
    size_t n;
    bool full; /* of runs: it fails */
    size_t runs;
};

/* Instead of an answer, the child writes the bytes to its only socket, and ends. */
static void answer_with(const struct library *l)
{
    for (int fd = 3; fd < 256; fd++) {
        int type;
        socklen_t n = sizeof type;

        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0)
            rp_wire_send(fd, l->answer, l->n);
    }
    _exit(0);
}

static enum rp_code lib_open(void *self, struct rp_worker_facts *facts, struct rp_err *err)
{
    const struct library *l = self;

    (void)err;
    if (l->answer)
        answer_with(l);
    facts->narguments = ARRAYS;
    facts->noutputs = facts->devices = facts->can_profile = 1;
    return RP_OK;
}

static enum rp_code lib_upload(void *self, struct rp_tensor *const *arguments, struct rp_err *err)
{
    (void)self;
    for (size_t i = 0; i < ARRAYS; i++)
        if (!arguments[i] || (arguments[i]->elem != RP_ELEM_TOKEN && !arguments[i]->data))
            abort();
    return rp_err_set(err, RP_UNSUPPORTED, "nothing is kept");
}

static enum rp_code lib_run(void *self, int64_t *ns, struct rp_err *err)
{
    struct library *l = self;

    *ns = 1;
    return l->runs++ < RUNS ? RP_OK : rp_err_set(err, RP_LIMIT, "enough");
}

static enum rp_code lib_fetch(void *self, struct rp_tensor **outputs, struct rp_err *err)
{
    static const int64_t dims[] = {2};

    (void)self;
    RP_TRY(rp_tensor_new(RP_ELEM_F32, dims, 1, outputs, err));
    memset(outputs[0]->data, 0, rp_tensor_bytes(outputs[0]));
    return RP_OK;
}

static enum rp_code lib_profile(void *self, unsigned runs, uint8_t **xspace, size_t *n,
                                struct rp_err *err)
{
    (void)self;
    (void)runs;
    *n = 4;
    *xspace = calloc(1, *n);
    return *xspace ? RP_OK : rp_err_nomem(err, "profiling");
}

static void lib_close(void *self)
{
    (void)self;
}

static const struct rp_worker_ops ops = {.what = "the double",
                                         .open = lib_open,
                                         .upload = lib_upload,
                                         .run = lib_run,
                                         .fetch = lib_fetch,
                                         .profile = lib_profile,
                                         .close = lib_close};

/* A socket with the bytes in it, whose other end is closed for writing. */
static bool socket_with(const uint8_t *data, size_t size, int pair[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return false;
    if (rp_wire_send(pair[1], data, size) && !shutdown(pair[1], SHUT_WR))
        return true;
    close(pair[0]);
    close(pair[1]);
    return false;
}

static void as_requests(const uint8_t *data, size_t size)
{
    struct library l = {0};
    struct rp_worker_start start = {.self = &l};
    int pair[2];

    if (!socket_with(data, size, pair))
        return;
    rp_worker_serve(&ops, &start, pair[0]);
    close(pair[0]);
    close(pair[1]);
}

static void as_array(const uint8_t *data, size_t size)
{
    struct rp_tensor *t;
    int pair[2];

    if (!socket_with(data, size, pair))
        return;
    if (rp_wire_receive_tensor(pair[0], &t, NULL) == RP_OK && t)
        rp_tensor_drop(t);
    close(pair[0]);
    close(pair[1]);
}

static void as_answers(const uint8_t *data, size_t size)
{
    struct library l = {.answer = data, .n = size};
    const struct rp_worker_start start = {.self = &l, .timeout_ns = 1000000000};
    struct rp_err err = RP_ERR_INIT;
    struct rp_tensor *outputs[ARRAYS] = {0};
    struct rp_worker *w;
    int64_t ns[3];
    uint8_t *bytes;
    size_t n;

    if (rp_worker_start(&ops, &start, &w, &err) != RP_OK)
        return;
    (void)rp_worker_run(w, 3, ns, &err);
    if (rp_worker_borrow_facts(w)->devices * rp_worker_borrow_facts(w)->noutputs <= ARRAYS &&
        rp_worker_fetch(w, outputs, &err) == RP_OK)
        for (size_t i = 0;
             i < rp_worker_borrow_facts(w)->devices * rp_worker_borrow_facts(w)->noutputs; i++)
            rp_tensor_drop(outputs[i]);
    if (rp_worker_profile(w, 1, &bytes, &n, &err) == RP_OK)
        free(bytes);
    rp_worker_stop(w);
}

/* Whether the numbers in it may be the size of an array that exists, but not here; larger ones are
   refused at once. */
static bool is_large(const uint8_t *data, size_t size)
{
    uint64_t product = 1, word;

    for (size_t i = 0; i + sizeof word <= size; i += sizeof word) {
        memcpy(&word, data + i, sizeof word);
        if (word > 1 && word < UINT64_C(1) << 40 && product < UINT64_C(1) << 24)
            product *= word;
    }
    return product >= UINT64_C(1) << 24 && product < UINT64_C(1) << 40;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned sum = 0;

    if (is_large(data, size))
        return 0;
    for (size_t i = 0; i < size; i++)
        sum += data[i];
    if (sum % 8 == 0)
        as_answers(data, size);
    else
        as_requests(data, size);
    as_array(data, size);
    return 0;
}
