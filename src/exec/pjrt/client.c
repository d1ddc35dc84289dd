/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of a PJRT plugin: opening and closing, compiling. The timed loop is in run.c, options as
 * protobuf in options.c, the profiler in profile.c.
 *
 * A plugin's CPU client has four devices by default; if a program wants more, the client is made
 * again with as many.
 */
#include "exec/pjrt/client.h"

#include "io/proto_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options of the client ---- */

struct client_option {
    uint64_t word[RP_PJRT_OPTION_WORDS];
};

#define LIST_MAX 64

/* Parses "name=value" as the plugin wants it; lists are kept in `ints`. */
static enum rp_code parse_option(const char *text, struct client_option *out,
                                 int64_t ints[LIST_MAX], struct rp_err *err)
{
    const char *value = strchr(text, '=');
    char *end;
    size_t n = 0;

    if (!value || value == text)
        return rp_err_set(err, RP_USAGE, "option '%s' of the plugin is not of the form name=value",
                          text);
    value++;
    out->word[0] = sizeof *out;
    out->word[RP_PJRT_OPTION_NAME] = rp_pjrt_word(text);
    out->word[RP_PJRT_OPTION_NAME_SIZE] = (uint64_t)(value - text - 1);
    out->word[RP_PJRT_OPTION_VALUE_SIZE] = 1;
    if (!strcmp(value, "true") || !strcmp(value, "false")) {
        out->word[RP_PJRT_OPTION_TYPE] = RP_PJRT_OPTION_BOOL;
        out->word[RP_PJRT_OPTION_VALUE] = value[0] == 't';
        return RP_OK;
    }
    for (const char *at = value; n < LIST_MAX && *at; at = *end ? end + 1 : end) {
        ints[n++] = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ','))
            break;
    }
    if (n && end != value && !*end && strchr(value, ',')) {
        out->word[RP_PJRT_OPTION_TYPE] = RP_PJRT_OPTION_INTS;
        out->word[RP_PJRT_OPTION_VALUE] = rp_pjrt_word(ints);
        out->word[RP_PJRT_OPTION_VALUE_SIZE] = n;
        return RP_OK;
    }
    if (n == 1 && end != value && !*end) {
        out->word[RP_PJRT_OPTION_TYPE] = RP_PJRT_OPTION_INT;
        out->word[RP_PJRT_OPTION_VALUE] = (uint64_t)ints[0];
        return RP_OK;
    }
    float real = strtof(value, &end);
    if (end != value && !*end) {
        out->word[RP_PJRT_OPTION_TYPE] = RP_PJRT_OPTION_FLOAT;
        memcpy(&out->word[RP_PJRT_OPTION_VALUE], &real, sizeof real);
        return RP_OK;
    }
    out->word[RP_PJRT_OPTION_TYPE] = RP_PJRT_OPTION_TEXT;
    out->word[RP_PJRT_OPTION_VALUE] = rp_pjrt_word(value);
    out->word[RP_PJRT_OPTION_VALUE_SIZE] = strlen(value);
    return RP_OK;
}

#define OPTIONS_MAX 32

static enum rp_code create_client(struct rp_pjrt_client *c, const char *const *options,
                                  size_t noptions, const char *extra, struct rp_err *err)
{
    struct client_option parsed[OPTIONS_MAX + 1] = {{{0}}};
    int64_t ints[OPTIONS_MAX + 1][LIST_MAX];
    struct rp_pjrt_args args = RP_PJRT_ARGS;
    size_t n = 0;

    if (noptions > OPTIONS_MAX)
        return rp_err_set(err, RP_USAGE, "more than %d options for a plugin", OPTIONS_MAX);
    for (; n < noptions; n++)
        RP_TRY(parse_option(options[n], &parsed[n], ints[n], err));
    if (extra) {
        RP_TRY(parse_option(extra, &parsed[n], ints[n], err));
        n++;
    }
    args.word[RP_PJRT_CREATE_OPTIONS] = n ? rp_pjrt_word(parsed) : 0;
    args.word[RP_PJRT_CREATE_NOPTIONS] = n;
    RP_TRY(rp_pjrt_call(&c->pjrt, RP_PJRT_CLIENT_CREATE, &args, NULL, RP_MISSING, err));
    c->client = rp_pjrt_pointer(args.word[RP_PJRT_CREATE_CLIENT]);
    if (!c->client)
        return rp_err_set(err, RP_MISSING, "the plugin created no client");
    return RP_OK;
}

/* ---- what the client is ---- */

/* Asks a function of one argument for a text; empty if it fails. */
static void ask_text(struct rp_pjrt_client *c, enum rp_pjrt_function function, void *of, char *out,
                     size_t cap)
{
    uint64_t result;
    size_t n;

    out[0] = 0;
    if (rp_pjrt_ask(&c->pjrt, function, of, &result, &n, RP_MISSING, NULL))
        return;
    const char *text = rp_pjrt_pointer(result);
    if (text)
        snprintf(out, cap, "%.*s", n < cap ? (int)n : (int)cap - 1, text);
    for (char *p = out; *p; p++) /* some plugins' versions have several lines */
        if ((unsigned char)*p < ' ')
            *p = ' ';
}

static enum rp_code ask_devices(struct rp_pjrt_client *c, enum rp_pjrt_function function, void *of,
                                struct rp_err *err)
{
    uint64_t result;

    RP_TRY(rp_pjrt_ask(&c->pjrt, function, of, &result, &c->ndevices, RP_MISSING, err));
    c->devices = rp_pjrt_pointer(result);
    if (!c->devices || !c->ndevices)
        return rp_err_set(err, RP_MISSING, "the plugin finds no device on this machine");
    return RP_OK;
}

enum rp_code rp_pjrt_open(const char *path, const char *const *options, size_t noptions,
                          unsigned devices, struct rp_pjrt_client *out, struct rp_err *err)
{
    struct rp_pjrt_args none = RP_PJRT_ARGS;
    char count[48];

    memset(out, 0, sizeof *out);
    RP_TRY(rp_pjrt_load(path, &out->pjrt, err));
    RP_TRY(rp_pjrt_call(&out->pjrt, RP_PJRT_PLUGIN_INITIALIZE, &none, NULL, RP_MISSING, err));
    RP_TRY(create_client(out, options, noptions, NULL, err));
    RP_TRY(ask_devices(out, RP_PJRT_CLIENT_ADDRESSABLE_DEVICES, out->client, err));
    uint64_t description;
    ask_text(out, RP_PJRT_CLIENT_PLATFORM_NAME, out->client, out->platform, sizeof out->platform);
    ask_text(out, RP_PJRT_CLIENT_PLATFORM_VERSION, out->client, out->version, sizeof out->version);
    if (!rp_pjrt_ask(&out->pjrt, RP_PJRT_DEVICE_DESCRIPTION, out->devices[0], &description, NULL,
                     RP_MISSING, NULL))
        ask_text(out, RP_PJRT_DESCRIPTION_KIND, rp_pjrt_pointer(description), out->device,
                 sizeof out->device);
    if (out->ndevices < devices && strstr(out->platform, "cpu")) {
        rp_pjrt_drop(&out->pjrt, RP_PJRT_CLIENT_DESTROY, out->client);
        out->client = NULL;
        snprintf(count, sizeof count, "cpu_device_count=%u", devices);
        RP_TRY(create_client(out, options, noptions, count, err));
        RP_TRY(ask_devices(out, RP_PJRT_CLIENT_ADDRESSABLE_DEVICES, out->client, err));
    }
    if (out->ndevices < devices)
        return rp_err_set(err, RP_MISSING,
                          "the program runs on %u devices at a time; '%s' has %zu here", devices,
                          out->platform, out->ndevices);
    return RP_OK;
}

/* ---- compiling ---- */

static enum rp_code count_outputs(struct rp_pjrt_client *c, struct rp_err *err)
{
    uint64_t executable, n = 0;

    RP_TRY(
        rp_pjrt_ask(&c->pjrt, RP_PJRT_LOADED_EXECUTABLE, c->loaded, &executable, NULL, RP_IO, err));
    enum rp_code code = rp_pjrt_ask(&c->pjrt, RP_PJRT_EXECUTABLE_NUM_OUTPUTS,
                                    rp_pjrt_pointer(executable), &n, NULL, RP_IO, err);
    c->noutputs = (size_t)n;
    rp_pjrt_drop(&c->pjrt, RP_PJRT_EXECUTABLE_DESTROY, rp_pjrt_pointer(executable));
    if (code == RP_OK && c->noutputs > UINT32_MAX)
        return rp_err_set(err, RP_IO, "the plugin reports %zu outputs", c->noutputs);
    return code;
}

static enum rp_code compile_source(struct rp_pjrt_client *c, const struct rp_pjrt_source *source,
                                   struct rp_bytes options, struct rp_err *err)
{
    struct rp_pjrt_args args = RP_PJRT_ARGS, program = RP_PJRT_ARGS;

    program.word[RP_PJRT_PROGRAM_CODE] = rp_pjrt_word(source->code);
    program.word[RP_PJRT_PROGRAM_CODE_SIZE] = source->ncode;
    program.word[RP_PJRT_PROGRAM_FORMAT] = rp_pjrt_word(source->format);
    program.word[RP_PJRT_PROGRAM_FORMAT_SIZE] = strlen(source->format);
    args.word[RP_PJRT_ARG] = rp_pjrt_word(c->client);
    args.word[RP_PJRT_COMPILE_PROGRAM] = rp_pjrt_word(&program);
    args.word[RP_PJRT_COMPILE_OPTIONS] = rp_pjrt_word(options.at);
    args.word[RP_PJRT_COMPILE_OPTIONS_SIZE] = options.n;
    RP_TRY(rp_pjrt_call(&c->pjrt, RP_PJRT_CLIENT_COMPILE, &args, &program, RP_UNSUPPORTED, err));
    c->loaded = rp_pjrt_pointer(args.word[RP_PJRT_COMPILE_EXECUTABLE]);
    if (!c->loaded)
        return rp_err_set(err, RP_IO, "the plugin returned no executable and no error");
    return RP_OK;
}

/* JAX makes XLA's CPU keep NaN in minima, maxima and clamps, which is not XLA's default. If a
   plugin does not know the flag, it is compiled without. */
static enum rp_code compile_as_jax(struct rp_pjrt_client *c, const struct rp_pjrt_source *source,
                                   struct rp_bytes given, struct rp_err *err)
{
    RP_SCOPED(rp_proto_writer_release) struct rp_proto_writer w = {0};
    struct rp_bytes options;

    rp_proto_add_bytes(&w, given.at, given.n);
    RP_TRY(rp_pjrt_put_flag(RP_PJRT_FAST_MIN_MAX "=false", &w, err));
    RP_TRY(rp_proto_written(&w, &options, err));
    enum rp_code code = compile_source(c, source, options, err);
    if (code == RP_OK || !err || !strstr(err->text, RP_PJRT_FAST_MIN_MAX))
        return code;
    rp_err_clear(err);
    return compile_source(c, source, given, err);
}

enum rp_code rp_pjrt_compile(struct rp_pjrt_client *c, const struct rp_pjrt_source *source,
                             struct rp_err *err)
{
    struct rp_bytes options = {source->options, source->noptions};
    RP_SCOPED(rp_proto_writer_release) struct rp_proto_writer w = {0};

    if (!options.at) {
        rp_pjrt_put_options(source, &w);
        RP_TRY(rp_proto_written(&w, &options, err));
    }
    RP_TRY(source->as_jax && strstr(c->platform, "cpu") ? compile_as_jax(c, source, options, err)
                                                        : compile_source(c, source, options, err));
    RP_TRY(ask_devices(c, RP_PJRT_LOADED_DEVICES, c->loaded, err));
    RP_TRY(count_outputs(c, err));
    c->narguments = source->narguments;
    c->donated = source->donated;
    c->partitions = source->partitions ? source->partitions : 1;
    c->results = source->results;
    if (c->partitions > 1 && !source->optimized && rp_pjrt_find_shards(c, NULL) != RP_OK)
        rp_pjrt_shards_release(&c->shards); /* then arrays are sent as they are, and XLA judges */
    /* Makes the lists that execute wants, once for all runs. */
    size_t nd = c->ndevices, na = c->narguments, no = c->noutputs;
    c->arguments = calloc(nd * na + 1, sizeof *c->arguments);
    c->consumed = calloc(nd * na + 1, sizeof *c->consumed);
    c->outputs = calloc(nd * no + 1, sizeof *c->outputs);
    c->argument_lists = calloc(nd, sizeof *c->argument_lists);
    c->output_lists = calloc(nd, sizeof *c->output_lists);
    c->events = calloc(nd, sizeof *c->events);
    c->kept = calloc(na + 1, sizeof *c->kept);
    RP_TRY(rp_err_need(c->arguments && c->consumed && c->outputs && c->argument_lists &&
                           c->output_lists && c->events && c->kept,
                       err, "preparing the arguments of a program"));
    for (size_t d = 0; d < nd; d++) {
        c->argument_lists[d] = c->arguments + d * na;
        c->output_lists[d] = c->outputs + d * no;
    }
    for (size_t i = 0; i < na; i++)
        if (!c->donated || !c->donated[i])
            c->kept[c->nkept++] = (int64_t)i;
    return RP_OK;
}

void rp_pjrt_close(struct rp_pjrt_client *c)
{
    for (size_t i = 0; c->arguments && i < c->ndevices * c->narguments; i++)
        rp_pjrt_drop(&c->pjrt, RP_PJRT_BUFFER_DESTROY, c->arguments[i]);
    for (size_t i = 0; c->outputs && i < c->ndevices * c->noutputs; i++)
        rp_pjrt_drop(&c->pjrt, RP_PJRT_BUFFER_DESTROY, c->outputs[i]);
    if (c->loaded)
        rp_pjrt_drop(&c->pjrt, RP_PJRT_LOADED_DESTROY, c->loaded);
    if (c->client)
        rp_pjrt_drop(&c->pjrt, RP_PJRT_CLIENT_DESTROY, c->client);
    free(c->arguments);
    free(c->consumed);
    free(c->outputs);
    free(c->argument_lists);
    free(c->output_lists);
    free(c->events);
    rp_tensors_release(&c->blocks);
    rp_pjrt_shards_release(&c->shards);
    free(c->kept);
    memset(c, 0, sizeof *c);
}
