/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools: questions that only read. Their arguments are the options of the question, as a JSON
 * Schema; those that name files are left out, since a client chooses among the given roots only.
 * An answer is the table that people see, cut after a number of words, or JSON; what it rests on
 * comes first, in a line of its own.
 */
#include "mcp/mcp.h"

#include "base/arena.h"
#include "io/escaped.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SETTINGS_MAX 64
#define PATHS_MAX    64

/* The questions that write nothing, start nothing and load no code. */
static const char *const tools[] = {
    "info",     "report", "top",   "roofline", "fusions",  "idle", "comm",  "critpath", "stalls",
    "launches", "memory", "query", "simulate", "optimize", "diff", "graph", NULL};

const struct rp_question *rp_mcp_tool(size_t i)
{
    return i < sizeof tools / sizeof tools[0] && tools[i] ? rp_question_find(tools[i]) : NULL;
}

const struct rp_question *rp_mcp_tool_find(const char *name)
{
    for (size_t i = 0; tools[i]; i++)
        if (!strcmp(tools[i], name))
            return rp_question_find(name);
    return NULL;
}

/* Whether a client may set an option: none that names a file or folder to read or write, or
   something in such a file, and no limit that protects this machine. */
static bool is_offered(const struct rp_option *option)
{
    return option->type != RP_OPT_PATH && !(option->flags & RP_OPT_GUARD) &&
           strcmp(option->name, "baseline") != 0 && strcmp(option->name, "name") != 0 &&
           (!option->value || (!strstr(option->value, "FILE") && !strstr(option->value, "DIR")));
}

/* ------------------------------------------------------------------ descriptions */

static void schema_words(struct rp_out *to, const char *words)
{
    const char *bar;

    rp_out_text(to, "\"type\": \"string\", \"enum\": [");
    for (; words; words = bar ? bar + 1 : NULL) {
        bar = strchr(words, '|');
        rp_out_escaped_bytes(to, RP_IN_JSON, words, bar ? (size_t)(bar - words) : strlen(words));
        rp_out_text(to, bar ? ", " : "]");
    }
}

static void schema_option(struct rp_out *to, const struct rp_option *option)
{
    static const char *const types[] = {
        [RP_OPT_FLAG] = "\"boolean\"",
        [RP_OPT_INT] = "\"integer\"",
        [RP_OPT_COUNT] = "[\"integer\", \"string\"]",
        [RP_OPT_BYTES] = "[\"integer\", \"string\"]",
        [RP_OPT_DURATION] = "[\"integer\", \"string\"]",
        [RP_OPT_RATIO] = "[\"number\", \"string\"]",
        [RP_OPT_TEXT] = "[\"string\", \"integer\"]",
    };
    bool repeats = option->flags & RP_OPT_REPEAT;

    rp_out_escaped(to, RP_IN_JSON, option->name);
    rp_out_text(to, repeats ? ": {\"type\": \"array\", \"items\": {" : ": {");
    if (option->type == RP_OPT_CHOICE)
        schema_words(to, option->value);
    else
        rp_out_printf(to, "\"type\": %s", types[option->type]);
    rp_out_text(to, repeats ? "}, \"description\": \"" : ", \"description\": \"");
    rp_out_escaped(to, RP_IN_STRING, option->summary);
    if (option->value && option->type != RP_OPT_CHOICE) {
        rp_out_text(to, " (");
        rp_out_escaped(to, RP_IN_STRING, option->value);
        rp_out_char(to, ')');
    }
    if (option->fallback) {
        rp_out_text(to, "; default: ");
        rp_out_escaped(to, RP_IN_STRING, option->fallback);
    }
    rp_out_text(to, "\"}");
}

static void describe_tool(struct rp_out *to, const struct rp_question *question)
{
    const struct rp_option *option;

    rp_out_text(to, "{\"name\": ");
    rp_out_escaped(to, RP_IN_JSON, question->name);
    rp_out_text(to, ", \"description\": \"");
    rp_out_escaped(to, RP_IN_STRING, question->summary);
    if (question->details) {
        rp_out_text(to, ". ");
        rp_out_escaped(to, RP_IN_STRING, question->details);
    }
    rp_out_text(to, "\", \"annotations\": {\"readOnlyHint\": true}, \"inputSchema\": {\"type\": "
                    "\"object\", \"additionalProperties\": false, \"properties\": {\"paths\": "
                    "{\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"description\": "
                    "\"files or folders of the run, below what the server was given; default: "
                    "that itself\"}, \"words\": {\"type\": \"integer\", \"description\": \"at most "
                    "so many words\"}, \"json\": {\"type\": \"boolean\", \"description\": \"exact "
                    "integers with their units in the keys, instead of a table\"}");
    for (size_t i = 0; (option = rp_question_option(question, i)); i++)
        if (is_offered(option)) {
            rp_out_text(to, ", ");
            schema_option(to, option);
        }
    rp_out_text(to, "}}}");
}

void rp_mcp_tools(struct rp_out *to)
{
    for (size_t i = 0; tools[i]; i++) {
        rp_out_text(to, i ? ", " : "[");
        describe_tool(to, rp_question_find(tools[i]));
    }
    rp_out_char(to, ']');
}

/* ------------------------------------------------------------------ arguments */

struct tool_call {
    struct rp_arena arena;
    const struct rp_question *question;
    const char *name, *arguments;
    struct rp_setting settings[SETTINGS_MAX];
    const char *paths[PATHS_MAX];
    size_t nsettings, npaths, words;
    bool json;
};

/* A scalar as the text of an option; NULL where it is none. */
static const char *scalar_text(struct tool_call *call, struct rp_json *json,
                               const struct rp_json_token *v)
{
    struct rp_json_token text = *v;

    if (v->kind == RP_JSON_TRUE || v->kind == RP_JSON_FALSE)
        return v->kind == RP_JSON_TRUE ? "yes" : "no";
    if (v->kind == RP_JSON_STRING && !rp_json_decode(json, &text))
        return NULL;
    if ((v->kind != RP_JSON_STRING && v->kind != RP_JSON_NUMBER) || memchr(text.text, 0, text.len))
        return NULL;
    return rp_arena_copy(&call->arena, text.text, text.len);
}

enum rp_code rp_mcp_resolve(const struct rp_mcp *mcp, struct rp_arena *arena, const char *path,
                            const char **out, struct rp_err *err)
{
    char resolved[PATH_MAX];
    const char *full = path;

    if (path[0] != '/' && mcp->nroots)
        full = rp_arena_textf(arena, "%s/%s", mcp->roots[0], path);
    if (realpath(full, resolved))
        for (size_t i = 0; i < mcp->nroots; i++) {
            size_t n = strlen(mcp->roots[i]);

            if (!strncmp(resolved, mcp->roots[i], n) &&
                (!resolved[n] || resolved[n] == '/' || n == 1)) {
                *out = rp_arena_text(arena, resolved);
                return RP_OK;
            }
        }
    return rp_err_set(err, RP_USAGE, "'%s' is not below what this server was given", path);
}

static enum rp_code add_path(const struct rp_mcp *mcp, struct tool_call *call, const char *path,
                             struct rp_err *err)
{
    if (call->npaths == PATHS_MAX)
        return rp_err_set(err, RP_USAGE, "more than %d paths", PATHS_MAX);
    return rp_mcp_resolve(mcp, &call->arena, path, &call->paths[call->npaths++], err);
}

static enum rp_code add_setting(struct tool_call *call, const struct rp_option *option,
                                const char *text, struct rp_err *err)
{
    if (call->nsettings == SETTINGS_MAX)
        return rp_err_set(err, RP_USAGE, "more than %d settings", SETTINGS_MAX);
    RP_TRY(rp_option_check(option, text, err));
    call->settings[call->nsettings++] = (struct rp_setting){option->name, text};
    return RP_OK;
}

static enum rp_code add_value(const struct rp_mcp *mcp, struct tool_call *call, const char *key,
                              const char *text, struct rp_err *err)
{
    const struct rp_option *option;

    if (!text)
        return rp_err_set(err, RP_USAGE, "the argument '%s' is no text, number or flag", key);
    if (!strcmp(key, "paths"))
        return add_path(mcp, call, text, err);
    if (!strcmp(key, "json")) {
        call->json = !strcmp(text, "yes");
        return RP_OK;
    }
    if (!strcmp(key, "words")) {
        char *end;
        long n = strtol(text, &end, 10);

        if (*end || n < 1 || n > 100000)
            return rp_err_set(err, RP_USAGE, "'words' is a number from 1 to 100000");
        call->words = (size_t)n;
        return RP_OK;
    }
    for (size_t i = 0; (option = rp_question_option(call->question, i)); i++)
        if (!strcmp(option->name, key) && is_offered(option))
            return add_setting(call, option, text, err);
    return rp_err_set(err, RP_USAGE, "the tool '%s' has no argument '%s'", call->name, key);
}

static enum rp_code read_argument(const struct rp_mcp *mcp, struct tool_call *call,
                                  struct rp_json *json, const char *key, struct rp_err *err)
{
    struct rp_json_token v = {0};
    enum rp_code code = RP_OK;

    if (rp_json_value(json, &v) == RP_JSON_NULL)
        return RP_OK;
    if (v.kind != RP_JSON_ARRAY)
        return add_value(mcp, call, key, scalar_text(call, json, &v), err);
    while (code == RP_OK && rp_json_element(json)) {
        rp_json_value(json, &v);
        code = add_value(mcp, call, key, scalar_text(call, json, &v), err);
    }
    return code;
}

static enum rp_code read_arguments(const struct rp_mcp *mcp, struct tool_call *call,
                                   struct rp_err *err)
{
    struct rp_mcp_text source;
    struct rp_json_token key, v = {0};
    enum rp_code code = rp_mcp_open(&source, call->arguments, strlen(call->arguments), err);

    if (code == RP_OK && rp_json_value(source.json, &v) != RP_JSON_OBJECT)
        code = rp_err_set(err, RP_USAGE, "'arguments' is an object");
    while (code == RP_OK && rp_json_field(source.json, &key))
        code = read_argument(mcp, call, source.json, rp_arena_copy(&call->arena, key.text, key.len),
                             err);
    if (code == RP_OK)
        code = rp_json_finish(source.json, err);
    rp_mcp_close(&source);
    if (code == RP_OK)
        code = rp_arena_check(&call->arena, "reading arguments", err);
    for (size_t i = 0; code == RP_OK && !call->npaths && i < mcp->nroots; i++)
        code = add_path(mcp, call, mcp->roots[i], err);
    return code;
}

static enum rp_code read_call(const struct rp_mcp *mcp, struct tool_call *call, const char *params,
                              size_t n, struct rp_err *err)
{
    struct rp_mcp_text source;
    struct rp_json_token key, v = {0};
    enum rp_code code = rp_mcp_open(&source, params, n, err);
    struct rp_json *json = source.json;

    if (code == RP_OK && rp_json_value(json, &v) == RP_JSON_OBJECT) {
        while (rp_json_field(json, &key))
            if (rp_json_key_is(&key, "name"))
                call->name = rp_mcp_string(&call->arena, json);
            else if (rp_json_key_is(&key, "arguments") && rp_json_raw(json, &v))
                call->arguments = rp_arena_copy(&call->arena, v.text, v.len);
            else if (!rp_json_key_is(&key, "arguments"))
                rp_json_skip(json);
    }
    rp_mcp_close(&source);
    RP_TRY(code);
    call->question = call->name ? rp_mcp_tool_find(call->name) : NULL;
    if (!call->question)
        return rp_err_set(err, RP_USAGE, "there is no tool '%s'; 'tools/list' has them",
                          call->name ? call->name : "");
    if (!call->arguments)
        call->arguments = "{}";
    return read_arguments(mcp, call, err);
}

/* ------------------------------------------------------------------ answers */

/* The end of the first `words` words. */
static size_t cut_at(const char *text, size_t n, size_t words)
{
    size_t i = 0, seen = 0;

    while (i < n) {
        i += strspn(text + i, " \n");
        seen += i < n;
        if (seen > words)
            return i;
        i += strcspn(text + i, " \n");
    }
    return n;
}

/* What an answer rests on, in one line. */
static void put_trust(const struct rp_result *result, struct rp_out *to)
{
    const char *line = rp_result_warning(result, 0);

    rp_out_text(to, rp_result_complete(result) ? "trust: complete" : "trust: incomplete: ");
    if (line && rp_result_complete(result))
        rp_out_text(to, "; note: ");
    if (line)
        rp_out_escaped(to, RP_IN_STRING, line);
    rp_out_text(to, rp_result_answer(result) ? "\\nverdict: no (exit status 1)\\n\\n" : "\\n\\n");
}

static enum rp_code put_result(const struct rp_result *result, const struct tool_call *call,
                               struct rp_out *to, struct rp_err *err)
{
    const struct rp_print_options how = {.struct_size = sizeof how,
                                         .format = call->json ? RP_PRINT_JSON : RP_PRINT_TABLE,
                                         .width = 120,
                                         .ascii = 1};
    int fd = memfd_create("answer", MFD_CLOEXEC);
    enum rp_code code = fd < 0 ? rp_err_set(err, RP_IO, "no memory for an answer")
                               : rp_result_print(result, &how, fd, err);
    off_t n = code == RP_OK ? lseek(fd, 0, SEEK_END) : 0;
    char *text = calloc((size_t)n + 1, 1);
    size_t cut;

    if (code == RP_OK && (!text || pread(fd, text, (size_t)n, 0) != n))
        code = rp_err_nomem(err, "printing an answer");
    if (code == RP_OK) {
        cut = cut_at(text, (size_t)n, call->words);
        put_trust(result, to);
        rp_out_escaped_bytes(to, RP_IN_STRING, text, cut);
        if (cut < (size_t)n)
            rp_out_printf(to,
                          "\\n[cut after %zu words: ask for fewer rows, one rank or step, or set "
                          "'words']",
                          call->words);
    }
    free(text);
    if (fd >= 0)
        close(fd);
    return code;
}

static enum rp_code ask_tool(struct rp_mcp *mcp, const struct tool_call *call, struct rp_out *to,
                             struct rp_err *err)
{
    struct rp_dataset *dataset = NULL;
    struct rp_result *result = NULL;
    enum rp_code code = rp_open(mcp->ctx, call->paths, call->npaths, NULL, &dataset, err);

    if (code == RP_OK)
        code = rp_ask(mcp->ctx, dataset, call->question->name, call->settings, call->nsettings,
                      &result, err);
    if (code == RP_OK)
        code = put_result(result, call, to, err);
    rp_result_free(result);
    rp_dataset_free(dataset);
    return code;
}

/* A question that cannot be answered is a result too: the client reads why. */
enum rp_code rp_mcp_call(struct rp_mcp *mcp, const char *params, size_t n, struct rp_out *to,
                         struct rp_err *err)
{
    struct tool_call call = {.words = mcp->words};
    enum rp_code code;

    rp_arena_init(&call.arena);
    code = read_call(mcp, &call, params, n, err);
    if (code == RP_OK) {
        struct rp_err failed = RP_ERR_INIT;

        rp_out_text(to, "{\"content\": [{\"type\": \"text\", \"text\": \"");
        if (ask_tool(mcp, &call, to, &failed) != RP_OK) {
            rp_out_printf(to, "%s: ", rp_code_text(failed.code));
            rp_out_escaped(to, RP_IN_STRING, failed.text);
        }
        rp_out_printf(to, "\"}], \"isError\": %s}", failed.code == RP_OK ? "false" : "true");
    }
    rp_arena_release(&call.arena);
    return code;
}
