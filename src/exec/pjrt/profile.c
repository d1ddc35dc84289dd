/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gets times of instructions from the plugin's profiler extension, if it has one (XLA for GPUs has,
 * XLA for the CPU has not). It is switched on around some runs and gives back an XSpace, the format
 * of TensorFlow's and JAX's profiles.
 */
#include "exec/pjrt/client.h"

#include <stdlib.h>
#include <string.h>

/* ProfileOptions: version 1, host tracing at level 2, device tracing at level 1, with HLO. */
static const uint8_t profile_options[] = {0x28, 1, 0x10, 2, 0x18, 1, 0x38, 1};

#define PROFILE_BYTES_MAX (UINT64_C(8) << 30)

static const uint64_t *table_of(const struct rp_pjrt *pjrt)
{
    const uint64_t *extension = rp_pjrt_extension(pjrt, RP_PJRT_EXTENSION_PROFILER);

    if (!extension || extension[0] < (RP_PJRT_EXTENSION_PAYLOAD + 1) * sizeof *extension)
        return NULL;
    const uint64_t *table = rp_pjrt_pointer(extension[RP_PJRT_EXTENSION_PAYLOAD]);
    return table && table[0] >= RP_PJRT_PROFILER_TABLE * sizeof *table ? table : NULL;
}

bool rp_pjrt_can_profile(const struct rp_pjrt_client *c)
{
    return table_of(&c->pjrt) != NULL;
}

static rp_pjrt_fn *function_of(const uint64_t *table, unsigned i)
{
    union {
        uint64_t word;
        rp_pjrt_fn *call;
    } as = {.word = table[i]};

    return as.call;
}

static enum rp_code profiler_call(const uint64_t *table, unsigned i, struct rp_pjrt_args *args,
                                  struct rp_err *err)
{
    struct rp_pjrt_args asked = RP_PJRT_ARGS;

    args->word[0] = sizeof *args;
    void *error = function_of(table, i)(args->word);
    if (!error)
        return RP_OK;
    asked.word[0] = sizeof asked;
    asked.word[RP_PJRT_ARG] = rp_pjrt_word(error);
    function_of(table, RP_PJRT_PROFILER_ERROR_MESSAGE)(asked.word);
    const char *text = rp_pjrt_pointer(asked.word[RP_PJRT_RESULT]);
    rp_err_set(err, RP_IO, "error from the plugin's profiler: %.*s",
               text ? (int)(asked.word[RP_PJRT_RESULT_SIZE] & 0x3ff) : 0, text ? text : "");
    asked = (struct rp_pjrt_args)RP_PJRT_ARGS;
    asked.word[0] = sizeof asked;
    asked.word[RP_PJRT_ARG] = rp_pjrt_word(error);
    function_of(table, RP_PJRT_PROFILER_ERROR_DESTROY)(asked.word);
    return RP_IO;
}

static enum rp_code call_profiler(const struct rp_pjrt_profile *profile, unsigned i,
                                  struct rp_err *err)
{
    struct rp_pjrt_args args = RP_PJRT_ARGS;

    args.word[RP_PJRT_PROFILER_ARG] = rp_pjrt_word(profile->profiler);
    return profiler_call(profile->table, i, &args, err);
}

enum rp_code rp_pjrt_profile_start(struct rp_pjrt_client *c, struct rp_pjrt_profile *out,
                                   struct rp_err *err)
{
    struct rp_pjrt_args args = RP_PJRT_ARGS;

    memset(out, 0, sizeof *out);
    out->table = table_of(&c->pjrt);
    if (!out->table)
        return rp_err_set(err, RP_MISSING,
                          "this plugin (%s) has no profiler, so there are no times of instructions",
                          c->platform);
    args.word[RP_PJRT_PROFILER_OPTIONS] = rp_pjrt_word(profile_options);
    args.word[RP_PJRT_PROFILER_OPTIONS_SIZE] = sizeof profile_options;
    RP_TRY(profiler_call(out->table, RP_PJRT_PROFILER_CREATE, &args, err));
    out->profiler = rp_pjrt_pointer(args.word[RP_PJRT_PROFILER_CREATED]);
    enum rp_code code = call_profiler(out, RP_PJRT_PROFILER_START, err);
    if (code != RP_OK)
        call_profiler(out, RP_PJRT_PROFILER_DESTROY, NULL);
    return code;
}

static enum rp_code copy_bytes(const void *from, uint64_t size, uint8_t **bytes, size_t *n,
                               struct rp_err *err)
{
    if (size > PROFILE_BYTES_MAX)
        return rp_err_set(err, RP_LIMIT, "a profile of %llu bytes: fewer runs give a smaller one",
                          (unsigned long long)size);
    *bytes = malloc(size ? size : 1);
    RP_TRY(rp_err_need(*bytes, err, "reading a profile"));
    if (from && size)
        memcpy(*bytes, from, size);
    *n = (size_t)size;
    return RP_OK;
}

/*
 * According to the header of the extension, one asks for the size without a buffer, then passes a
 * buffer. XLA ignores the buffer and answers with memory of its own, which is one byte longer than
 * what it filled; so a buffer in the first answer is taken, without its last byte.
 */
static enum rp_code collect_profile(struct rp_pjrt_profile *profile, uint8_t **bytes, size_t *n,
                                    struct rp_err *err)
{
    struct rp_pjrt_args args = RP_PJRT_ARGS;

    args.word[RP_PJRT_PROFILER_ARG] = rp_pjrt_word(profile->profiler);
    RP_TRY(profiler_call(profile->table, RP_PJRT_PROFILER_COLLECT, &args, err));
    uint64_t size = args.word[RP_PJRT_PROFILER_BUFFER_SIZE];
    const void *theirs = rp_pjrt_pointer(args.word[RP_PJRT_PROFILER_BUFFER]);
    if (theirs)
        return copy_bytes(theirs, size ? size - 1 : 0, bytes, n, err);
    RP_TRY(copy_bytes(NULL, size, bytes, n, err));
    if (!size)
        return RP_OK;
    args.word[RP_PJRT_PROFILER_BUFFER] = rp_pjrt_word(*bytes);
    return profiler_call(profile->table, RP_PJRT_PROFILER_COLLECT, &args, err);
}

enum rp_code rp_pjrt_profile_stop(struct rp_pjrt_profile *profile, uint8_t **bytes, size_t *n,
                                  struct rp_err *err)
{
    enum rp_code code = call_profiler(profile, RP_PJRT_PROFILER_STOP, err);

    *bytes = NULL;
    *n = 0;
    if (code == RP_OK)
        code = collect_profile(profile, bytes, n, err);
    call_profiler(profile, RP_PJRT_PROFILER_DESTROY, NULL);
    if (code != RP_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    return code;
}
