/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Model Context Protocol over two descriptors: each message is a line of JSON-RPC 2.0. A
 * message is first parsed (id, method, text of the parameters), so that errors in its parameters
 * are answered with its id. One thread answers requests that take work (calls of tools, pages) in
 * their order; the thread that reads answers all others meanwhile, and ends a call that the client
 * cancels.
 */
#include "mcp/mcp.h"

#include "base/arena.h"
#include "base/threads.h"
#include "io/embedded.h"
#include "io/escaped.h"
#include "io/json_strict.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE_MAX (4 << 20)
#define WAITING_MAX 64 /* the most calls that wait; then nothing is read until one is answered */
#define SKILL_URI   "reprise://skill"

extern const struct rp_embedded rp_mcp_skill_text[]; /* docs/agents.md, which is plain */

const char *rp_mcp_skill(void)
{
    return rp_mcp_skill_text->bytes;
}

enum rp_code rp_mcp_open(struct rp_mcp_text *text, const char *bytes, size_t n, struct rp_err *err)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    const struct rp_json_options options = {.limits = &limits};

    limits.input_bytes = limits.token_bytes = MESSAGE_MAX;
    limits.depth = 32;
    *text = (struct rp_mcp_text){NULL, NULL};
    RP_TRY(rp_input_open_memory("message", bytes, n, &limits, &text->input, err));
    return rp_json_open(text->input, &options, &text->json, err);
}

void rp_mcp_close(struct rp_mcp_text *text)
{
    rp_json_close(text->json);
    rp_input_close(text->input);
}

const char *rp_mcp_string(struct rp_arena *arena, struct rp_json *json)
{
    struct rp_json_token raw = {0};

    if (!rp_json_raw(json, &raw) || raw.len < 2 || raw.text[0] != '"')
        return NULL;
    char *text = rp_arena_copy(arena, raw.text + 1, raw.len - 2);
    if (text)
        text[rp_json_unescape(text, raw.len - 2, text, NULL)] = '\0';
    return text;
}

/* ------------------------------------------------------------------ one message */

struct message {
    struct rp_arena arena;
    const char *id; /* its text; NULL for a notification */
    const char *version, *method, *params;
};

/* Keeps the text of a value, so that it outlives the parser. */
static const char *keep_raw(struct message *m, struct rp_json *json)
{
    struct rp_json_token raw = {0};

    return rp_json_raw(json, &raw) ? rp_arena_copy(&m->arena, raw.text, raw.len) : NULL;
}

/* An id is a string or a number; it is sent back unchanged, so it must be strict JSON. */
static bool id_is_sound(const char *id)
{
    return id && (*id == '"' || *id == '-' || (*id >= '0' && *id <= '9')) && strlen(id) < 1000 &&
           rp_json_raw_check(id, strlen(id)) == RP_RAW_CLEAN;
}

static enum rp_code message_read(struct message *m, const char *text, size_t n, bool *has_id,
                                 struct rp_err *err)
{
    struct rp_mcp_text source;
    struct rp_json_token key, root = {0};
    enum rp_code code = rp_mcp_open(&source, text, n, err);
    struct rp_json *json = source.json;

    *has_id = false;
    if (code == RP_OK && rp_json_value(json, &root) == RP_JSON_OBJECT) {
        while (rp_json_field(json, &key))
            if (rp_json_key_is(&key, "id")) {
                m->id = keep_raw(m, json);
                *has_id = true;
            } else if (rp_json_key_is(&key, "method")) {
                m->method = keep_raw(m, json);
            } else if (rp_json_key_is(&key, "jsonrpc")) {
                m->version = keep_raw(m, json);
            } else if (rp_json_key_is(&key, "params")) {
                m->params = keep_raw(m, json);
            } else {
                rp_json_skip(json);
            }
    }
    if (code == RP_OK && root.kind != RP_JSON_ARRAY)
        code = rp_json_finish(json, err);
    rp_mcp_close(&source);
    return code == RP_OK ? rp_arena_check(&m->arena, "reading a message", err) : code;
}

static void respond(struct rp_out *to, const char *id, const char *kind)
{
    rp_out_printf(to, "{\"jsonrpc\": \"2.0\", \"id\": %s, \"%s\": ", id ? id : "null", kind);
}

static void respond_error(struct rp_out *to, const char *id, int number, const char *text)
{
    respond(to, id, "error");
    rp_out_printf(to, "{\"code\": %d, \"message\": ", number);
    rp_out_escaped(to, RP_IN_JSON, text);
    rp_out_text(to, "}}\n");
}

/* Returns one of the parameters, in the arena, or NULL: the text of a string, or any other value as
   it is written. */
static const char *parameter(struct message *m, const char *name, bool written)
{
    struct rp_mcp_text source;
    struct rp_json_token key, v = {0};
    const char *found = NULL;

    if (!m->params)
        return NULL;
    if (rp_mcp_open(&source, m->params, strlen(m->params), NULL) == RP_OK &&
        rp_json_value(source.json, &v) == RP_JSON_OBJECT) {
        while (!found && rp_json_field(source.json, &key))
            if (key.len == strlen(name) && !memcmp(key.text, name, key.len))
                found = written ? keep_raw(m, source.json) : rp_mcp_string(&m->arena, source.json);
            else
                rp_json_skip(source.json);
    }
    rp_mcp_close(&source);
    return found;
}

static void answer_initialize(struct message *m, struct rp_out *to)
{
    const char *wanted = parameter(m, "protocolVersion", false);
    const char *known[] = {"2025-06-18", "2025-03-26", "2024-11-05"};
    size_t i = 0;

    while (wanted && i < 3 && strcmp(wanted, known[i]) != 0)
        i++;
    respond(to, m->id, "result");
    rp_out_printf(
        to,
        "{\"protocolVersion\": \"%s\", \"capabilities\": {\"tools\": {}, \"resources\": "
        "{}, \"prompts\": {}}, \"serverInfo\": {\"name\": \"reprise\", \"version\": \"%s\"}, "
        "\"instructions\": ",
        known[i % 3], rp_version());
    rp_out_escaped(to, RP_IN_JSON,
                   "Begin with the resource " SKILL_URI
                   ": it says how to find out where the time of a recorded run goes. The usual "
                   "order is info, report, simulate, then a new recording and diff. Arguments "
                   "that all tools have: 'paths', files or folders below what the server was "
                   "given (without it that itself; diff takes two); 'words', after which an "
                   "answer is cut at the end of a line; 'json', for exact integers with units in "
                   "their keys; and most of them 'rank' ('0,3' or '8-15'), 'step' (a number or "
                   "the beginning of a name), 'step-name' (steps are the marks that begin so) "
                   "and 'window' ('10ms..25ms' after the first event). A wrong argument is "
                   "answered with what is right.");
    rp_out_text(to, "}}\n");
}

static void answer_resource(struct rp_mcp *mcp, struct message *m, struct rp_out *to)
{
    const char *uri = parameter(m, "uri", false), *type = "text/markdown", *text = rp_mcp_skill();
    struct rp_err err = RP_ERR_INIT;
    enum rp_code code = RP_OK;

    if (!uri || strcmp(uri, SKILL_URI) != 0)
        code = rp_mcp_page(mcp, uri ? uri : "", &m->arena, &type, &text, &err);
    if (code != RP_OK) {
        respond_error(to, m->id, code == RP_USAGE ? -32002 : -32603, err.text);
        return;
    }
    respond(to, m->id, "result");
    rp_out_text(to, "{\"contents\": [{\"uri\": ");
    rp_out_escaped(to, RP_IN_JSON, uri);
    rp_out_printf(to, ", \"mimeType\": \"%s\", \"text\": ", type);
    rp_out_escaped(to, RP_IN_JSON, text);
    rp_out_text(to, "}]}}\n");
}

/* The questions that people ask first, as prompts that a client offers them. */
static const struct prompt {
    const char *name, *title, *argument, *about, *text;
} prompts[] = {
    {"why-is-my-job-slow", "Why is my job slow?", "path", "file or folder of the run",
     "Find out why the recorded job is slow. Follow " SKILL_URI
     ": info first, then report; confirm the largest finding with the tool for its cause, and "
     "predict the change that you propose with simulate. Answer with the step time, what it is "
     "lost to, the change, and what that brings, each number with the trust of its answer."},
    {"what-changed", "What changed between two runs?", "paths", "the base and the new run",
     "Find out what changed between two recordings of a job, the base and the new one. Follow " SKILL_URI
     ": info of both, then diff with the two as 'paths', the base first. Name "
     "what became slower or faster beyond the noise, where, and what to look at next; say so if "
     "nothing did."},
};

static void answer_prompts(struct message *m, struct rp_out *to)
{
    respond(to, m->id, "result");
    rp_out_text(to, "{\"prompts\": [");
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++)
        rp_out_printf(to,
                      "%s{\"name\": \"%s\", \"title\": \"%s\", \"arguments\": [{\"name\": "
                      "\"%s\", \"description\": \"%s\", \"required\": false}]}",
                      i ? ", " : "", prompts[i].name, prompts[i].title, prompts[i].argument,
                      prompts[i].about);
    rp_out_text(to, "]}}\n");
}

static void answer_prompt(struct message *m, struct rp_out *to)
{
    const char *name = parameter(m, "name", false), *given = parameter(m, "arguments", true);
    struct message inner = {.arena = m->arena, .params = given};
    const struct prompt *p = prompts, *end = prompts + sizeof prompts / sizeof *prompts;

    while (p < end && (!name || strcmp(p->name, name) != 0))
        p++;
    if (p == end) {
        respond_error(to, m->id, -32602,
                      "there is no such prompt: choose 'why-is-my-job-slow' or 'what-changed'");
        return;
    }
    const char *path = parameter(&inner, p->argument, false);
    m->arena = inner.arena;
    respond(to, m->id, "result");
    rp_out_text(to, "{\"messages\": [{\"role\": \"user\", \"content\": {\"type\": \"text\", "
                    "\"text\": ");
    rp_out_escaped(to, RP_IN_JSON,
                   rp_arena_textf(&m->arena, "%s Recorded in: %s.", p->text,
                                  path ? path : "what the server was given"));
    rp_out_text(to, "}}]}}\n");
}

static void answer_call(struct rp_mcp *mcp, struct message *m, struct rp_out *to)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *result;
    enum rp_code code = rp_out_open_memory(&result, &err);

    if (code == RP_OK)
        code = rp_mcp_call(mcp, m->params ? m->params : "{}", m->params ? strlen(m->params) : 2,
                           result, &err);
    if (code != RP_OK) {
        respond_error(to, m->id, code == RP_USAGE || code == RP_FORMAT ? -32602 : -32603, err.text);
    } else {
        respond(to, m->id, "result");
        rp_out_text(to, rp_out_borrow_memory(result, NULL));
        rp_out_text(to, "}\n");
    }
    rp_out_abandon(result);
}

static void answer(struct rp_mcp *mcp, struct message *m, struct rp_out *to)
{
    static const char skill[] =
        "{\"resources\": [{\"uri\": \"" SKILL_URI
        "\", \"name\": \"skill\", \"description\": \"how to find out where the time of a recorded "
        "run goes, with these tools\", \"mimeType\": \"text/markdown\"}";
    const char *method = m->method;

    if (!strcmp(method, "\"initialize\"")) {
        answer_initialize(m, to);
    } else if (!strcmp(method, "\"ping\"")) {
        respond(to, m->id, "result");
        rp_out_text(to, "{}}\n");
    } else if (!strcmp(method, "\"tools/list\"")) {
        respond(to, m->id, "result");
        rp_out_text(to, "{\"tools\": ");
        rp_mcp_tools(to);
        rp_out_text(to, "}}\n");
    } else if (!strcmp(method, "\"tools/call\"")) {
        answer_call(mcp, m, to);
    } else if (!strcmp(method, "\"resources/list\"")) {
        respond(to, m->id, "result");
        rp_out_text(to, skill);
        rp_mcp_pages(to);
        rp_out_text(to, "]}}\n");
    } else if (!strcmp(method, "\"resources/templates/list\"")) {
        respond(to, m->id, "result");
        rp_out_text(to, "{\"resourceTemplates\": [");
        rp_mcp_page_templates(to);
        rp_out_text(to, "]}}\n");
    } else if (!strcmp(method, "\"prompts/list\"")) {
        answer_prompts(m, to);
    } else if (!strcmp(method, "\"prompts/get\"")) {
        answer_prompt(m, to);
    } else if (!strcmp(method, "\"resources/read\"")) {
        answer_resource(mcp, m, to);
    } else {
        respond_error(to, m->id, -32601, "there is no such method");
    }
}

/* Whether there is a message to answer or to follow; writes what is wrong with it. */
static bool message_open(struct message *m, const char *text, size_t n, struct rp_out *to)
{
    struct rp_err err = RP_ERR_INIT;
    bool has_id;

    *m = (struct message){.id = NULL};
    rp_arena_init(&m->arena);
    enum rp_code code = message_read(m, text, n, &has_id, &err);
    if (has_id && !id_is_sound(m->id))
        m->id = NULL;
    if (code != RP_OK)
        respond_error(to, NULL, code == RP_NOMEM ? -32603 : -32700, err.text);
    else if (!m->method || *m->method != '"' || !m->version || strcmp(m->version, "\"2.0\"") != 0)
        respond_error(to, m->id, -32600,
                      "a message is an object with 'jsonrpc': '2.0' and a 'method'");
    else if (has_id && !m->id)
        respond_error(to, NULL, -32600, "an id is a text or a number");
    else
        return true;
    return false;
}

void rp_mcp_message(struct rp_mcp *mcp, const char *text, size_t n, struct rp_out *to)
{
    struct message m;

    if (message_open(&m, text, n, to) && m.id)
        answer(mcp, &m, to);
    rp_arena_release(&m.arena);
}

/* ------------------------------------------------------------------ the server */

enum rp_code rp_mcp_init(struct rp_mcp *mcp, const struct rp_mcp_options *options,
                         rp_progress_fn *progress, void *user, struct rp_err *err)
{
    const struct rp_ctx_options how = {.struct_size = sizeof how,
                                       .threads = options->threads,
                                       .progress = progress,
                                       .progress_user = user};

    *mcp = (struct rp_mcp){.words = options->words ? options->words : 1000};
    mcp->roots = calloc(options->nroots + 1, sizeof *mcp->roots);
    RP_TRY(rp_err_need(mcp->roots, err, "starting the server"));
    for (size_t i = 0; i < options->nroots; i++) {
        mcp->roots[i] = realpath(options->roots[i], NULL);
        if (!mcp->roots[i])
            return rp_err_set(err, RP_USAGE, "cannot find '%s': name a file or folder",
                              options->roots[i]);
        mcp->nroots++;
    }
    return rp_ctx_new(&how, &mcp->ctx, err);
}

void rp_mcp_release(struct rp_mcp *mcp)
{
    for (size_t i = 0; i < mcp->nroots; i++)
        free(mcp->roots[i]);
    free(mcp->roots);
    rp_ctx_free(mcp->ctx);
}

/* A call that waits for its turn, or runs. */
struct call {
    struct message m;
    bool cancelled;
    struct call *next;
};

struct server {
    struct rp_mcp mcp;
    struct rp_out *to; /* changed under the lock, like the list */
    pthread_mutex_t lock;
    struct rp_channel waiting;
    struct call *calls; /* all calls without an answer */
    struct call *running;
    pthread_t worker;
};

static int server_progress(void *user, const char *what, uint64_t done, uint64_t total)
{
    struct server *s = user;

    (void)what, (void)done, (void)total;
    pthread_mutex_lock(&s->lock);
    bool cancelled = s->running && s->running->cancelled;
    pthread_mutex_unlock(&s->lock);
    return cancelled;
}

/* Answers a message as a whole; writes nothing if it was cancelled meanwhile. */
static enum rp_code server_answer(struct server *s, struct message *m, const bool *cancelled,
                                  struct rp_err *err)
{
    struct rp_out *answered = NULL;
    enum rp_code code = rp_out_open_memory(&answered, err);

    if (code == RP_OK)
        answer(&s->mcp, m, answered);
    pthread_mutex_lock(&s->lock);
    if (code == RP_OK && !(cancelled && *cancelled)) {
        rp_out_text(s->to, rp_out_borrow_memory(answered, NULL));
        code = rp_out_flush(s->to, err);
    }
    pthread_mutex_unlock(&s->lock);
    rp_out_abandon(answered);
    return code;
}

static void call_free(struct call *c)
{
    rp_arena_release(&c->m.arena);
    free(c);
}

/* Answers the calls in their order. The other thread notices if the client stops reading. */
static void *server_work(void *user)
{
    struct server *s = user;
    void *next;

    while (rp_channel_take(&s->waiting, &next)) {
        struct call *c = next, **at = &s->calls;

        pthread_mutex_lock(&s->lock);
        s->running = c;
        bool dropped = c->cancelled;
        pthread_mutex_unlock(&s->lock);
        if (!dropped)
            server_answer(s, &c->m, &c->cancelled, NULL);
        pthread_mutex_lock(&s->lock);
        s->running = NULL;
        while (*at != c)
            at = &(*at)->next;
        *at = c->next;
        pthread_mutex_unlock(&s->lock);
        call_free(c);
    }
    return NULL;
}

static void server_cancel(struct server *s, const char *id)
{
    pthread_mutex_lock(&s->lock);
    for (struct call *c = s->calls; id && c; c = c->next)
        if (!strcmp(c->m.id, id))
            c->cancelled = true;
    pthread_mutex_unlock(&s->lock);
}

static bool takes_work(const struct message *m)
{
    return m->id &&
           (!strcmp(m->method, "\"tools/call\"") || !strcmp(m->method, "\"resources/read\""));
}

static enum rp_code server_message(struct server *s, const char *text, size_t n, struct rp_err *err)
{
    struct call *c = calloc(1, sizeof *c);
    enum rp_code code = RP_OK;

    RP_TRY(rp_err_need(c, err, "reading a message"));
    pthread_mutex_lock(&s->lock);
    bool sound = message_open(&c->m, text, n, s->to);
    code = sound ? RP_OK : rp_out_flush(s->to, err);
    if (sound && takes_work(&c->m)) {
        c->next = s->calls;
        s->calls = c;
        pthread_mutex_unlock(&s->lock);
        rp_channel_put(&s->waiting, c);
        return RP_OK;
    }
    pthread_mutex_unlock(&s->lock);
    if (sound && c->m.id)
        code = server_answer(s, &c->m, NULL, err);
    else if (sound && !strcmp(c->m.method, "\"notifications/cancelled\""))
        server_cancel(s, parameter(&c->m, "requestId", true));
    call_free(c);
    return code;
}

/* Reads line by line; a line that is too long is not kept. */
static enum rp_code serve_lines(struct server *s, FILE *from, char *line, struct rp_err *err)
{
    enum rp_code code = RP_OK;
    size_t n = 0;
    int c;

    do {
        c = getc(from);
        if (c != '\n' && c != EOF) {
            if (n < MESSAGE_MAX)
                line[n] = (char)c;
            n += n <= MESSAGE_MAX;
            continue;
        }
        if (n > MESSAGE_MAX) {
            pthread_mutex_lock(&s->lock);
            respond_error(s->to, NULL, -32600, "the message is longer than 4 MiB");
            code = rp_out_flush(s->to, err);
            pthread_mutex_unlock(&s->lock);
        } else if (n && strspn(line, " \t\r") < n) {
            code = server_message(s, line, n, err);
        }
        memset(line, 0, n < MESSAGE_MAX ? n : MESSAGE_MAX);
        n = 0;
    } while (c != EOF && code == RP_OK);
    return code;
}

static enum rp_code serve(struct server *s, FILE *from, char *line, struct rp_err *err)
{
    RP_TRY(rp_channel_init(&s->waiting, WAITING_MAX, err));
    pthread_mutex_init(&s->lock, NULL);
    enum rp_code code = pthread_create(&s->worker, NULL, server_work, s)
                            ? rp_err_set(err, RP_IO, "cannot start a thread")
                            : RP_OK;
    if (code == RP_OK) {
        code = serve_lines(s, from, line, err);
        rp_channel_close(&s->waiting); /* waiting calls are answered */
        pthread_join(s->worker, NULL);
    }
    pthread_mutex_destroy(&s->lock);
    rp_channel_release(&s->waiting);
    return code;
}

enum rp_code rp_mcp_serve(const struct rp_mcp_options *options, int in, int out, struct rp_err *err)
{
    struct server s = {.to = NULL};
    char *line = calloc(MESSAGE_MAX + 1, 1);
    int copy = dup(in);
    FILE *from = copy >= 0 ? fdopen(copy, "r") : NULL;
    enum rp_code code = rp_mcp_init(&s.mcp, options, server_progress, &s, err);

    if (code == RP_OK && (!line || !from))
        code = rp_err_set(err, RP_IO, "cannot read messages");
    if (code == RP_OK)
        code = rp_out_open_fd(out, "the client", &s.to, err);
    if (code == RP_OK)
        code = serve(&s, from, line, err);
    code = rp_out_end(s.to, code, err);
    if (from)
        fclose(from);
    else if (copy >= 0)
        close(copy);
    free(line);
    rp_mcp_release(&s.mcp);
    return code;
}
