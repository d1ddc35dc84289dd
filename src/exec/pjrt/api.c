/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a PJRT plugin and calls it. Every call goes through one function: it knows how the plugin
 * counts its structs, and turns errors of the plugin into ours, message and all. A call costs two
 * stores and an indirect jump more than a compiled client's would.
 */
#include "exec/pjrt/api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_BYTES 700 /* limit for the plugin's own words in an error */

enum rp_code rp_pjrt_load(const char *path, struct rp_pjrt *out, struct rp_err *err)
{
    union {
        void *symbol;
        rp_pjrt_entry_fn *entry;
    } get;

    memset(out, 0, sizeof *out);
    out->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!out->library)
        return rp_err_set(err, RP_MISSING, "cannot load the plugin: %s", dlerror());
    get.symbol = dlsym(out->library, "GetPjrtApi");
    if (!get.symbol)
        return rp_err_set(err, RP_MISSING,
                          "'%s' is not a PJRT plugin: it has no function GetPjrtApi", path);
    out->api = get.entry();
    if (!out->api)
        return rp_err_set(err, RP_MISSING, "GetPjrtApi of '%s' returned nothing", path);
    uint32_t major = (uint32_t)out->api[RP_PJRT_API_VERSION];
    size_t words = (size_t)(out->api[RP_PJRT_API_SIZE] / 8);
    out->minor = (unsigned)(out->api[RP_PJRT_API_VERSION] >> 32);
    if (major != 0)
        return rp_err_set(err, RP_MISSING,
                          "'%s' has PJRT version %u.%u; reprise supports versions 0.x", path, major,
                          out->minor);
    if (words < RP_PJRT_API_FUNCTIONS + RP_PJRT_FUNCTIONS_NEEDED)
        return rp_err_set(err, RP_MISSING,
                          "'%s' has PJRT version 0.%u, whose table of %zu bytes is too short: a "
                          "newer plugin is needed",
                          path, out->minor, words * 8);
    out->functions = words - RP_PJRT_API_FUNCTIONS;
    return RP_OK;
}

static rp_pjrt_fn *function_at(const struct rp_pjrt *pjrt, unsigned i)
{
    union {
        uint64_t word;
        rp_pjrt_fn *call;
    } as = {0};

    if (i < pjrt->functions)
        as.word = pjrt->api[RP_PJRT_API_FUNCTIONS + i];
    return as.call;
}

/* ---- errors ---- */

/* Reads 88 from a message such as "Unexpected X_Args size: expected 88, got 72", and whether X_Args
   are arguments (otherwise they are a struct inside them); 0 for other messages. */
static unsigned expected_size(const char *message, size_t n, bool *is_args)
{
    char text[256];

    snprintf(text, sizeof text, "%.*s", n < sizeof text ? (int)n : (int)sizeof text - 1, message);
    const char *name = strstr(text, "Unexpected ");
    const char *size = name ? strstr(name, " size: ") : NULL;
    const char *expected = size ? strstr(size, "expected ") : NULL;
    if (!expected)
        return 0;
    *is_args = size - name >= 5 && memcmp(size - 5, "_Args", 5) == 0;
    return (unsigned)strtoul(expected + 9, NULL, 10);
}

static enum rp_code code_of(uint64_t status, const char *message, enum rp_code other)
{
    if (strstr(message, "ustom call")) /* "No registered implementation for custom call to X" */
        return RP_UNSUPPORTED;
    switch ((enum rp_pjrt_error_code)(uint32_t)status) {
    case RP_PJRT_RESOURCE_EXHAUSTED:
        return RP_NOMEM;
    case RP_PJRT_UNIMPLEMENTED:
        return other == RP_MISSING ? RP_MISSING : RP_UNSUPPORTED;
    case RP_PJRT_INVALID_ARGUMENT:
        return other == RP_MISSING ? RP_MISSING : RP_FORMAT;
    default:
        return other;
    }
}

/* The message of an error, escaped and cut to cap. */
static void message_of(const struct rp_pjrt *pjrt, void *error, char *out, size_t cap)
{
    struct rp_pjrt_args args = RP_PJRT_ARGS;

    args.word[0] = sizeof args;
    args.word[RP_PJRT_ARG] = rp_pjrt_word(error);
    function_at(pjrt, RP_PJRT_ERROR_MESSAGE)(args.word);
    const char *text = rp_pjrt_pointer(args.word[RP_PJRT_RESULT]);
    size_t n = text ? (size_t)args.word[RP_PJRT_RESULT_SIZE] : 0;
    snprintf(out, cap, "%.*s", n < cap ? (int)n : (int)cap - 1, text ? text : "");
}

static uint64_t status_of(const struct rp_pjrt *pjrt, void *error)
{
    struct rp_pjrt_args args = RP_PJRT_ARGS;

    args.word[0] = sizeof args;
    args.word[RP_PJRT_ARG] = rp_pjrt_word(error);
    if (function_at(pjrt, RP_PJRT_ERROR_GET_CODE)(args.word))
        return 0; /* an error about an error is ignored */
    return args.word[RP_PJRT_RESULT];
}

/* Takes over the error. */
static enum rp_code call_failure(const struct rp_pjrt *pjrt, void *error, enum rp_code other,
                                 struct rp_err *err)
{
    struct rp_pjrt_args args = RP_PJRT_ARGS;
    char message[MESSAGE_BYTES];

    message_of(pjrt, error, message, sizeof message);
    enum rp_code code = code_of(status_of(pjrt, error), message, other);
    args.word[0] = sizeof args;
    args.word[RP_PJRT_ARG] = rp_pjrt_word(error);
    function_at(pjrt, RP_PJRT_ERROR_DESTROY)(args.word);
    rp_err_set(err, code, "error from the plugin: %s", message[0] ? message : "(no message)");
    /* Adds what to do about it, if that is known. */
    if (strstr(message, "callback"))
        return rp_err_context(err, code,
                              "it calls back into the Python program, which is not running: give "
                              "its recorded results as arrays 'callback0_0' ... in --inputs");
    if (strstr(message, "expected parameter") && strstr(message, "incompatible size"))
        return rp_err_context(err, code,
                              "XLA splits the arrays of this program between devices and takes the "
                              "block of each; the engines fast and ref take whole arrays");
    if (strstr(message, "No FFI handler registered") ||
        strstr(message, "No registered implementation for custom call") ||
        strstr(message, "Unknown custom call"))
        return rp_err_context(
            err, code,
            "JAX registers this custom call from Python when it starts; a plugin "
            "by itself does not have it, and JAX's own CPU client is not a plugin: "
            "the engines fast and ref may run it");
    return code;
}

/* Learns a size from the error; false if the error was about something else. */
static bool learn_size(struct rp_pjrt *pjrt, unsigned function, void *error)
{
    char message[256];
    bool is_args = false;

    message_of(pjrt, error, message, sizeof message);
    unsigned size = expected_size(message, strlen(message), &is_args);
    if (size < 16 || size > sizeof(struct rp_pjrt_args) || function >= RP_PJRT_SIZES)
        return false;
    uint16_t *learned = is_args ? &pjrt->size[function] : &pjrt->inner[function];
    if (*learned == size)
        return false; /* it already was */
    *learned = (uint16_t)size;
    return true;
}

static void set_sizes(const struct rp_pjrt *pjrt, unsigned function, struct rp_pjrt_args *args,
                      struct rp_pjrt_args *inner)
{
    bool known = function < RP_PJRT_SIZES;

    args->word[0] = known && pjrt->size[function] ? pjrt->size[function] : sizeof *args;
    if (inner)
        inner->word[0] = known && pjrt->inner[function] ? pjrt->inner[function] : sizeof *inner;
}

enum rp_code rp_pjrt_call(struct rp_pjrt *pjrt, enum rp_pjrt_function function,
                          struct rp_pjrt_args *args, struct rp_pjrt_args *inner, enum rp_code other,
                          struct rp_err *err)
{
    rp_pjrt_fn *call = function_at(pjrt, function);
    void *error = NULL;

    if (!call)
        return rp_err_set(err, RP_MISSING, "the plugin (PJRT 0.%u) has no function %d", pjrt->minor,
                          (int)function);
    for (int attempt = 0; attempt < 3; attempt++) { /* two sizes may be wrong */
        set_sizes(pjrt, function, args, inner);
        error = call(args->word);
        if (!error)
            return RP_OK;
        if (attempt == 2 || !learn_size(pjrt, function, error))
            break;
        rp_pjrt_drop(pjrt, RP_PJRT_ERROR_DESTROY, error);
    }
    return call_failure(pjrt, error, other, err);
}

enum rp_code rp_pjrt_ask(struct rp_pjrt *pjrt, enum rp_pjrt_function function, const void *of,
                         uint64_t *result, size_t *size, enum rp_code other, struct rp_err *err)
{
    struct rp_pjrt_args args = RP_PJRT_ARGS;

    args.word[RP_PJRT_ARG] = rp_pjrt_word(of);
    RP_TRY(rp_pjrt_call(pjrt, function, &args, NULL, other, err));
    *result = args.word[RP_PJRT_RESULT];
    if (size)
        *size = (size_t)args.word[RP_PJRT_RESULT_SIZE];
    return RP_OK;
}

void rp_pjrt_drop(struct rp_pjrt *pjrt, enum rp_pjrt_function function, void *object)
{
    struct rp_pjrt_args args = RP_PJRT_ARGS;
    rp_pjrt_fn *call = function_at(pjrt, function);

    if (!object || !call)
        return;
    args.word[RP_PJRT_ARG] = rp_pjrt_word(object);
    if (function ==
        RP_PJRT_ERROR_DESTROY) { /* this function returns nothing that could be checked */
        args.word[0] = sizeof args;
        call(args.word);
    } else {
        rp_pjrt_call(pjrt, function, &args, NULL, RP_IO, NULL);
    }
}

enum rp_code rp_pjrt_await(struct rp_pjrt *pjrt, void *event, struct rp_err *err)
{
    struct rp_pjrt_args args = RP_PJRT_ARGS;

    if (!event)
        return RP_OK;
    args.word[RP_PJRT_ARG] = rp_pjrt_word(event);
    enum rp_code code = rp_pjrt_call(pjrt, RP_PJRT_EVENT_AWAIT, &args, NULL, RP_IO, err);
    rp_pjrt_drop(pjrt, RP_PJRT_EVENT_DESTROY, event);
    return code;
}

const uint64_t *rp_pjrt_extension(const struct rp_pjrt *pjrt, uint32_t type)
{
    const uint64_t *at = rp_pjrt_pointer(pjrt->api[RP_PJRT_API_EXTENSIONS]);

    for (int i = 0; at && i < RP_PJRT_EXTENSIONS_MAX; i++) {
        if ((uint32_t)at[RP_PJRT_EXTENSION_TYPE] == type)
            return at;
        at = rp_pjrt_pointer(at[RP_PJRT_EXTENSION_NEXT]);
    }
    return NULL;
}
