/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timed loop of a PJRT client sends arguments to the devices, runs, and gets outputs back.
 *
 * The measured time covers execute and the wait for its completion, nothing else. Outputs of the
 * previous run are destroyed first, and arguments that a run gave away (donated ones, whose memory
 * becomes an output's) are sent again and awaited before the clock starts, so that every run does
 * the same.
 */
#include "exec/pjrt/client.h"

#include "base/clock.h"

#include <stdlib.h>

/* ---- element types ---- */

static uint32_t type_of(unsigned elem)
{
    switch (elem) {
#define TYPE_CASE(id, number) \
    case RP_ELEM_##id:        \
        return number;
        RP_PJRT_TYPES(TYPE_CASE)
#undef TYPE_CASE
    default:
        return 0;
    }
}

static unsigned elem_of(uint32_t type)
{
    switch (type) {
#define ELEM_CASE(id, number) \
    case number:              \
        return RP_ELEM_##id;
        RP_PJRT_TYPES(ELEM_CASE)
#undef ELEM_CASE
    default:
        return RP_ELEM_INVALID;
    }
}

/* ---- to the device ---- */

static enum rp_code await_ready(struct rp_pjrt_client *c, void *buffer, struct rp_err *err)
{
    uint64_t event;

    RP_TRY(rp_pjrt_ask(&c->pjrt, RP_PJRT_BUFFER_READY, buffer, &event, NULL, RP_IO, err));
    return rp_pjrt_await(&c->pjrt, rp_pjrt_pointer(event), err);
}

/* Starts the transfer of argument i; *done is the event that the host's memory has been read. */
static enum rp_code send_argument(struct rp_pjrt_client *c, size_t i, void **done,
                                  struct rp_err *err)
{
    const struct rp_tensor *t = c->hosts[i];
    struct rp_pjrt_args args = RP_PJRT_ARGS;
    uint32_t type = type_of(t->elem);
    char shape[512];

    rp_tensor_shape_text(t, shape, sizeof shape);
    if (!type || t->elem == RP_ELEM_TOKEN)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "argument %zu is %s, a type that PJRT does not support",
                          i % c->narguments, shape);
    args.word[RP_PJRT_ARG] = rp_pjrt_word(c->client);
    args.word[RP_PJRT_FROM_HOST_DATA] = rp_pjrt_word(t->data);
    args.word[RP_PJRT_FROM_HOST_TYPE] = type;
    args.word[RP_PJRT_FROM_HOST_DIMS] = rp_pjrt_word(t->dims);
    args.word[RP_PJRT_FROM_HOST_NDIMS] = t->rank;
    args.word[RP_PJRT_FROM_HOST_SEMANTICS] = 1;
    args.word[RP_PJRT_FROM_HOST_DEVICE] = rp_pjrt_word(c->devices[i / c->narguments]);
    enum rp_code code = rp_pjrt_call(&c->pjrt, RP_PJRT_BUFFER_FROM_HOST, &args, NULL, RP_IO, err);
    if (code != RP_OK)
        return rp_err_context(err, code, "while sending argument %zu, %s", i % c->narguments,
                              shape);
    *done = rp_pjrt_pointer(args.word[RP_PJRT_FROM_HOST_DONE]);
    c->arguments[i] = rp_pjrt_pointer(args.word[RP_PJRT_FROM_HOST_BUFFER]);
    c->consumed[i] = false;
    return RP_OK;
}

static enum rp_code finish_argument(struct rp_pjrt_client *c, size_t i, void *done,
                                    struct rp_err *err)
{
    enum rp_code code = rp_pjrt_await(&c->pjrt, done, err);

    if (code == RP_OK)
        code = await_ready(c, c->arguments[i], err);
    if (code != RP_OK)
        rp_err_context(err, code, "while sending argument %zu", i % c->narguments);
    return code;
}

enum rp_code rp_pjrt_upload(struct rp_pjrt_client *c, struct rp_tensor *const *arguments,
                            struct rp_err *err)
{
    size_t n = c->ndevices * c->narguments, sent = 0;
    enum rp_code code = RP_OK;
    void **done;

    RP_TRY(rp_pjrt_split(c, arguments, err));
    done = calloc(n + 1, sizeof *done);
    RP_TRY(rp_err_need(done, err, "sending arguments"));
    for (; sent < n && code == RP_OK; sent++) { /* all at once, so that transfers overlap */
        rp_pjrt_drop(&c->pjrt, RP_PJRT_BUFFER_DESTROY, c->arguments[sent]);
        c->arguments[sent] = NULL;
        code = send_argument(c, sent, &done[sent], err);
    }
    for (size_t i = 0; i < sent;
         i++) { /* also after a failure, because transfers read our memory */
        if (!c->arguments[i])
            continue;
        enum rp_code waited = finish_argument(c, i, done[i], code == RP_OK ? err : NULL);
        code = code == RP_OK ? waited : code;
    }
    free(done);
    return code;
}

/* ---- running ---- */

enum rp_code rp_pjrt_run(struct rp_pjrt_client *c, int64_t *ns, struct rp_err *err)
{
    struct rp_pjrt_args args = RP_PJRT_ARGS, options = RP_PJRT_ARGS;

    for (size_t i = 0; i < c->ndevices * c->noutputs; i++) {
        rp_pjrt_drop(&c->pjrt, RP_PJRT_BUFFER_DESTROY, c->outputs[i]);
        c->outputs[i] = NULL;
    }
    /* Sends arguments again that the previous run gave away. */
    void *done = NULL;
    for (size_t i = 0; i < c->ndevices * c->narguments; i++) {
        if (!c->consumed[i])
            continue;
        rp_pjrt_drop(&c->pjrt, RP_PJRT_BUFFER_DESTROY, c->arguments[i]);
        c->arguments[i] = NULL;
        RP_TRY(send_argument(c, i, &done, err));
        RP_TRY(finish_argument(c, i, done, err));
    }
    options.word[RP_PJRT_OPTIONS_LAUNCH] = ++c->launch & INT32_MAX;
    options.word[RP_PJRT_OPTIONS_KEPT] = rp_pjrt_word(c->kept);
    options.word[RP_PJRT_OPTIONS_NKEPT] = c->nkept;
    args.word[RP_PJRT_ARG] = rp_pjrt_word(c->loaded);
    args.word[RP_PJRT_EXECUTE_OPTIONS] = rp_pjrt_word(&options);
    args.word[RP_PJRT_EXECUTE_ARGUMENTS] = rp_pjrt_word(c->argument_lists);
    args.word[RP_PJRT_EXECUTE_NDEVICES] = c->ndevices;
    args.word[RP_PJRT_EXECUTE_NARGUMENTS] = c->narguments;
    args.word[RP_PJRT_EXECUTE_OUTPUTS] = rp_pjrt_word(c->output_lists);
    args.word[RP_PJRT_EXECUTE_EVENTS] = rp_pjrt_word(c->events);
    int64_t begin = rp_clock_ns();
    RP_TRY(rp_pjrt_call(&c->pjrt, RP_PJRT_EXECUTE, &args, &options, RP_IO, err));
    for (size_t i = 0; c->nkept != c->narguments && i < c->ndevices * c->narguments; i++)
        c->consumed[i] = c->donated[i % c->narguments];
    enum rp_code code = RP_OK;
    for (size_t d = 0; d < c->ndevices; d++) {
        enum rp_code waited = rp_pjrt_await(&c->pjrt, c->events[d], code == RP_OK ? err : NULL);
        code = code == RP_OK ? waited : code;
        c->events[d] = NULL;
    }
    *ns = rp_clock_ns() - begin;
    return code;
}

/* ---- from the device ---- */

static enum rp_code shape_of(struct rp_pjrt_client *c, void *buffer, struct rp_tensor **out,
                             struct rp_err *err)
{
    uint64_t type, dims;
    size_t rank;

    RP_TRY(rp_pjrt_ask(&c->pjrt, RP_PJRT_BUFFER_ELEMENT_TYPE, buffer, &type, NULL, RP_IO, err));
    RP_TRY(rp_pjrt_ask(&c->pjrt, RP_PJRT_BUFFER_DIMENSIONS, buffer, &dims, &rank, RP_IO, err));
    unsigned elem = elem_of((uint32_t)type);
    if (elem == RP_ELEM_TOKEN)
        return rp_tensor_token(out, err);
    if (elem == RP_ELEM_INVALID || rank > RP_TENSOR_RANK)
        return rp_err_set(err, RP_UNSUPPORTED, "unsupported: type %u with %zu dimensions",
                          (unsigned)type, rank);
    return rp_tensor_new(elem, rp_pjrt_pointer(dims), rank, out, err);
}

static enum rp_code copy_out(struct rp_pjrt_client *c, void *buffer, struct rp_tensor *to,
                             struct rp_err *err)
{
    struct rp_pjrt_args args = RP_PJRT_ARGS, layout = RP_PJRT_ARGS;
    int64_t order[RP_TENSOR_RANK];

    /* Asks for row-major order; otherwise the device's own order would come. */
    for (size_t i = 0; i < to->rank; i++)
        order[i] = (int64_t)(to->rank - 1 - i);
    layout.word[0] = RP_PJRT_LAYOUT_WORDS * sizeof layout.word[0];
    layout.word[RP_PJRT_LAYOUT_TILED] = RP_PJRT_LAYOUT_TILED_WORDS * sizeof layout.word[0];
    layout.word[RP_PJRT_LAYOUT_MINOR_TO_MAJOR] = rp_pjrt_word(order);
    layout.word[RP_PJRT_LAYOUT_NMINOR_TO_MAJOR] = to->rank;
    layout.word[RP_PJRT_LAYOUT_TYPE] = 0;
    args.word[RP_PJRT_ARG] = rp_pjrt_word(buffer);
    args.word[RP_PJRT_TO_HOST_LAYOUT] = rp_pjrt_word(&layout);
    RP_TRY(rp_pjrt_call(&c->pjrt, RP_PJRT_BUFFER_TO_HOST, &args, NULL, RP_IO, err));
    if (args.word[RP_PJRT_TO_HOST_SIZE] > rp_tensor_bytes(to))
        return rp_err_set(err, RP_UNSUPPORTED, "the plugin expects %llu bytes, not %zu",
                          (unsigned long long)args.word[RP_PJRT_TO_HOST_SIZE], rp_tensor_bytes(to));
    args.word[RP_PJRT_TO_HOST_DATA] = rp_pjrt_word(to->data);
    args.word[RP_PJRT_TO_HOST_SIZE] = rp_tensor_bytes(to);
    args.word[RP_PJRT_TO_HOST_EVENT] = 0;
    RP_TRY(rp_pjrt_call(&c->pjrt, RP_PJRT_BUFFER_TO_HOST, &args, NULL, RP_IO, err));
    return rp_pjrt_await(&c->pjrt, rp_pjrt_pointer(args.word[RP_PJRT_TO_HOST_EVENT]), err);
}

static enum rp_code fetch_one(struct rp_pjrt_client *c, void *buffer, struct rp_tensor **out,
                              struct rp_err *err)
{
    if (!buffer)
        return rp_err_set(err, RP_IO, "the program has not run yet");
    RP_TRY(shape_of(c, buffer, out, err));
    return (*out)->elem == RP_ELEM_TOKEN ? RP_OK : copy_out(c, buffer, *out, err);
}

enum rp_code rp_pjrt_fetch(struct rp_pjrt_client *c, struct rp_tensor **outputs, struct rp_err *err)
{
    size_t n = c->ndevices * c->noutputs;
    enum rp_code code = RP_OK;

    for (size_t i = 0; i < n; i++)
        outputs[i] = NULL;
    for (size_t i = 0; i < n && code == RP_OK; i++) {
        code = fetch_one(c, c->outputs[i], &outputs[i], err);
        if (code != RP_OK)
            rp_err_prefix(err, code, "output %zu", i % c->noutputs);
    }
    if (code == RP_OK)
        code = rp_pjrt_join(c, outputs, err);
    for (size_t i = 0; code != RP_OK && i < n; i++) {
        rp_tensor_drop(outputs[i]);
        outputs[i] = NULL;
    }
    return code;
}
