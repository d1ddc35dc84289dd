/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools: questions that only read. Their arguments are the options of the question, as a JSON
 * Schema; those that name files are left out, since a client chooses among the given roots only. An
 * answer is the table that people see, cut after a number of words, or JSON; a line before it tells
 * what the answer rests on.
 */
#include "mcp/mcp.h"

#include "base/arena.h"
#include "dataset/ranks.h"
#include "io/escaped.h"
#include "result/result.h"

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

/* Whether a client may set an option: not if it names a file or folder to read or write, or
   something in such a file, or is a limit that protects this machine. */
static bool is_offered(const struct rp_option *option)
{
    return option->type != RP_OPT_PATH && !(option->flags & RP_OPT_GUARD) &&
           strcmp(option->name, "baseline") != 0 && strcmp(option->name, "name") != 0 &&
           (!option->value || (!strstr(option->value, "FILE") && !strstr(option->value, "DIR")));
}

/* ------------------------------------------------------------------ descriptions */

/* Texts need no type, because a number is taken as its text. The server's instructions explain the
   arguments that all tools share once. */
static void schema_option(struct rp_out *to, const struct rp_option *option, bool shared)
{
    bool repeats = option->flags & RP_OPT_REPEAT;
    const char *comma = "";

    rp_out_escaped(to, RP_IN_JSON, option->name);
    rp_out_text(to, repeats ? ":{\"type\":\"array\",\"items\":{\"type\":\"string\"}" : ":{");
    if (repeats) {
        comma = ",";
    } else if (option->type == RP_OPT_FLAG || option->type == RP_OPT_INT) {
        rp_out_printf(to, "\"type\":\"%s\"", option->type == RP_OPT_FLAG ? "boolean" : "integer");
        comma = ",";
    } else if (option->type == RP_OPT_CHOICE) {
        const char *words = option->value;
        const char *bar;

        rp_out_text(to, "\"type\": \"string\", \"enum\": [");
        for (; words; words = bar ? bar + 1 : NULL) {
            bar = strchr(words, '|');
            rp_out_escaped_bytes(to, RP_IN_JSON, words,
                                 bar ? (size_t)(bar - words) : strlen(words));
            rp_out_text(to, bar ? ", " : "]");
        }

        comma = ",";
    }
    if (!shared && option->type != RP_OPT_CHOICE) {
        rp_out_printf(to, "%s\"description\":\"", comma);

        /* Writes the beginning of a summary, without further explanations: a list of tools is read
           before every dialogue, and a client that makes an error gets the whole summary. */
        size_t n = strcspn(option->summary, ":;(");
        while (n && option->summary[n - 1] == ' ')
            n--;
        rp_out_escaped_bytes(to, RP_IN_STRING, option->summary, n);

        rp_out_char(to, '"');
    }
    rp_out_char(to, '}');
}

static bool is_shared(const struct rp_option *option)
{
    static const struct rp_option shared[] = {RP_RANK_OPTIONS, RP_OPTION_END};
    const struct rp_option *one = shared;

    while (one->name && strcmp(one->name, option->name) != 0)
        one++;
    return one->name != NULL;
}

static void describe_tool(struct rp_out *to, const struct rp_question *question)
{
    const struct rp_option *option;

    rp_out_printf(to, "{\"name\":\"%s\",\"description\":\"", question->name);
    rp_out_escaped(to, RP_IN_STRING, question->summary);
    rp_out_text(
        to,
        "\",\"annotations\":{\"readOnlyHint\":true},\"inputSchema\":{\"type\":\"object\","
        "\"additionalProperties\":false,\"properties\":{\"paths\":{\"type\":\"array\",\"items\":{\"type\":"
        "\"string\"}},"
        "\"words\":{\"type\":\"integer\"},\"json\":{\"type\":\"boolean\"}");
    for (size_t i = 0; (option = rp_question_option(question, i)); i++)
        if (is_offered(option)) {
            rp_out_char(to, ',');
            schema_option(to, option, is_shared(option));
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
    bool json, whole; /* whole: a query would be misleading if it were cut */
};

/* Returns a scalar as the text of an option; NULL if it is not a scalar. */
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
    return rp_err_set(err, RP_USAGE,
                      "'%s' is not there, or not below what this server was given: leave 'paths' "
                      "out for that itself, or name files and folders below '%s'",
                      path, mcp->nroots ? mcp->roots[0] : "");
}

static enum rp_code add_path(const struct rp_mcp *mcp, struct tool_call *call, const char *path,
                             struct rp_err *err)
{
    if (call->npaths == PATHS_MAX)
        return rp_err_set(err, RP_USAGE, "more than %d paths", PATHS_MAX);
    return rp_mcp_resolve(mcp, &call->arena, path, &call->paths[call->npaths++], err);
}

/* Lists the existing arguments, because a client with few words has only seen their names. */
static enum rp_code no_argument(struct tool_call *call, const char *key, struct rp_err *err)
{
    const char *names[SETTINGS_MAX] = {"paths", "words", "json"},
               *list = "'paths', 'words', 'json'";
    const struct rp_option *option;
    size_t n = 3;

    for (size_t i = 0; (option = rp_question_option(call->question, i)); i++)
        if (is_offered(option) && n + 1 < SETTINGS_MAX) {
            names[n++] = option->name;
            list = rp_arena_textf(&call->arena, "%s, '%s'", list, option->name);
        }
    const char *near = rp_closest_word(key, names);
    return rp_err_set(err, RP_USAGE, "the tool '%s' has no argument '%s'%s%s%s; it takes %s",
                      call->name, key, near ? ", perhaps '" : "", near ? near : "",
                      near ? "' is meant" : "", list);
}

static enum rp_code add_value(const struct rp_mcp *mcp, struct tool_call *call, const char *key,
                              const char *text, struct rp_err *err)
{
    const struct rp_option *option;

    if (!text)
        return rp_err_set(err, RP_USAGE,
                          "argument '%s': give a text, a number, true or false, or a list of them",
                          key);
    if (!strcmp(key, "paths"))
        return add_path(mcp, call, text, err);
    if (!strcmp(key, "json")) {
        call->json = !strcmp(text, "yes") || !strcmp(text, "true");
        return call->json || !strcmp(text, "no") || !strcmp(text, "false")
                   ? RP_OK
                   : rp_err_set(err, RP_USAGE, "argument 'json' is true or false, not '%s'", text);
    }
    if (!strcmp(key, "words")) {
        char *end;
        long n = strtol(text, &end, 10);

        if (*end || n < 1 || n > 100000)
            return rp_err_set(err, RP_USAGE,
                              "argument 'words' is a number from 1 to 100000, not '%s'", text);
        call->words = (size_t)n;
        return RP_OK;
    }
    for (size_t i = 0; (option = rp_question_option(call->question, i)); i++)
        if (!strcmp(option->name, key) && is_offered(option)) {
            if (call->nsettings == SETTINGS_MAX)
                return rp_err_set(err, RP_USAGE, "more than %d settings", SETTINGS_MAX);
            if (rp_option_check(option, text, err) != RP_OK)
                return rp_err_prefix(err, RP_USAGE, "argument '%s', %s", option->name,
                                     option->summary);
            call->settings[call->nsettings++] = (struct rp_setting){option->name, text};
            if (!strcmp(option->name, "sql") && text[strspn(text, " \n")] == '.')
                call->whole = true;
            return RP_OK;
        }
    return no_argument(call, key, err);
}

static enum rp_code read_argument(const struct rp_mcp *mcp, struct tool_call *call,
                                  struct rp_json *json, const char *key, struct rp_err *err)
{
    struct rp_json_token v = {0};

    if (rp_json_value(json, &v) == RP_JSON_NULL)
        return RP_OK;
    if (v.kind != RP_JSON_ARRAY)
        return add_value(mcp, call, key, scalar_text(call, json, &v), err);
    while (rp_json_element(json)) {
        rp_json_value(json, &v);
        RP_TRY(add_value(mcp, call, key, scalar_text(call, json, &v), err));
    }
    return RP_OK;
}

static enum rp_code read_arguments(const struct rp_mcp *mcp, struct tool_call *call,
                                   struct rp_err *err)
{
    struct rp_mcp_text source;
    struct rp_json_token key, v = {0};
    enum rp_code code = rp_mcp_open(&source, call->arguments, strlen(call->arguments), err);

    if (code == RP_OK && rp_json_value(source.json, &v) != RP_JSON_OBJECT)
        code = rp_err_set(err, RP_USAGE, "'arguments' is an object: {\"limit\": 5}, say");
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

static enum rp_code no_tool(const struct tool_call *call, struct rp_err *err)
{
    const char *near = call->name ? rp_closest_word(call->name, tools) : NULL;

    return rp_err_set(err, RP_USAGE, "there is no tool '%s'%s%s%s; 'tools/list' has them",
                      call->name ? call->name : "", near ? ", perhaps '" : "", near ? near : "",
                      near ? "' is meant" : "");
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
        return no_tool(call, err);
    if (!call->arguments)
        call->arguments = "{}";
    return read_arguments(mcp, call, err);
}

/* ------------------------------------------------------------------ answers */

/* Returns the end of the last line within the first `words` words, or of these words if one line
   has more. */
static size_t cut_at(const char *text, size_t n, size_t words)
{
    size_t i = 0, seen = 0, line = 0;

    while (i < n) {
        for (; i < n && (text[i] == ' ' || text[i] == '\n'); i++)
            line = text[i] == '\n' ? i + 1 : line;
        seen += i < n;
        if (seen > words)
            return line ? line : i;
        i += strcspn(text + i, " \n");
    }
    return n;
}

/* Writes in one line what an answer rests on. */
static void put_trust(const struct rp_result *result, struct rp_out *to)
{
    const char *line = rp_result_warning(result, 0);
    int64_t absent = result->trust.absent;

    if (!rp_result_complete(result))
        rp_out_text(to, "trust: incomplete: ");
    else if (absent)
        rp_out_printf(to,
                      "trust: incomplete: 1 of %lld ranks: what the others do is not in the answer",
                      (long long)absent + 1);
    else
        rp_out_text(to, "trust: complete");
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

    if (code == RP_OK && (!text || pread(fd, text, (size_t)n, 0) != n))
        code = rp_err_nomem(err, "printing an answer");
    size_t cut = code == RP_OK && !call->whole ? cut_at(text, (size_t)n, call->words) : (size_t)n;
    if (code == RP_OK && call->json && cut < (size_t)n)
        code = rp_err_set(err, RP_LIMIT,
                          "as JSON the answer is longer than %zu words, and a part of it cannot be "
                          "read: ask for fewer rows, one rank or step, or set 'words'",
                          call->words);
    if (code == RP_OK) {
        put_trust(result, to);
        rp_out_escaped_bytes(to, RP_IN_STRING, text, cut);
        if (cut < (size_t)n)
            rp_out_printf(to,
                          "[cut after %zu words: ask for fewer rows, one rank or step, or set "
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

/* A call that cannot be answered, for example because its arguments are wrong, is a result, too:
   the client's model reads why. Only a tool that does not exist is an error of the protocol, which
   requires that. */
enum rp_code rp_mcp_call(struct rp_mcp *mcp, const char *params, size_t n, struct rp_out *to,
                         struct rp_err *err)
{
    struct tool_call call = {.words = mcp->words};
    struct rp_err failed = RP_ERR_INIT;
    struct rp_out *text = NULL;
    enum rp_code code = rp_out_open_memory(&text, err);

    rp_arena_init(&call.arena);
    enum rp_code asked = code == RP_OK ? read_call(mcp, &call, params, n, &failed) : RP_OK;
    if (code == RP_OK && asked != RP_OK && !call.question)
        code = rp_err_set(err, asked, "%s", failed.text);
    if (code == RP_OK && asked == RP_OK)
        asked = ask_tool(mcp, &call, text, &failed);
    if (code == RP_OK) {
        rp_out_text(to, "{\"content\": [{\"type\": \"text\", \"text\": \"");
        if (asked == RP_OK) {
            rp_out_text(to, rp_out_borrow_memory(text, NULL));
        } else {
            rp_out_printf(to, "%s: ", rp_code_text(asked));
            rp_out_escaped(to, RP_IN_STRING, failed.text);
        }
        rp_out_printf(to, "\"}], \"isError\": %s}", asked == RP_OK ? "false" : "true");
    }
    rp_out_abandon(text);
    rp_arena_release(&call.arena);
    return code;
}
