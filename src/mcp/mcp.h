/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The server without its descriptors: each message gives at most one line. */
#include "base/arena.h"
#include "io/json_pull.h"
#include "io/output.h"

#include <reprise/mcp.h>
#include <reprise/question.h>

struct rp_mcp {
    struct rp_ctx *ctx;
    char **roots; /* resolved to absolute paths without links */
    size_t nroots, words;
};

/* progress is like that of a context, and is called in the thread that asks; it may be NULL. */
enum rp_code rp_mcp_init(struct rp_mcp *mcp, const struct rp_mcp_options *options,
                         rp_progress_fn *progress, void *user, struct rp_err *err);
void rp_mcp_release(struct rp_mcp *mcp);

/* Writes the response to a message as one line, but nothing for a notification. */
void rp_mcp_message(struct rp_mcp *mcp, const char *text, size_t n, struct rp_out *to);

/* tools.c. Write the tools as an array of JSON, and the result of calling one: params is the text
   of the call's parameters. RP_USAGE means that the parameters are wrong (err says how), and
   nothing is written. */
void rp_mcp_tools(struct rp_out *to);
enum rp_code rp_mcp_call(struct rp_mcp *mcp, const char *params, size_t n, struct rp_out *to,
                         struct rp_err *err);

const struct rp_question *rp_mcp_tool(size_t i);              /* returns NULL after the last */
const struct rp_question *rp_mcp_tool_find(const char *name); /* or NULL */
/* Resolves a path below one of the roots, without links; relative ones begin at the first root. */
enum rp_code rp_mcp_resolve(const struct rp_mcp *mcp, struct rp_arena *arena, const char *path,
                            const char **out, struct rp_err *err);

/* pages.c. Write the entries of the lists of resources and of their templates, and read a resource,
   in the arena. RP_USAGE means that there is none, or that it may not be read. */
void rp_mcp_pages(struct rp_out *to);
void rp_mcp_page_templates(struct rp_out *to);
enum rp_code rp_mcp_page(struct rp_mcp *mcp, const char *uri, struct rp_arena *arena,
                         const char **type, const char **text, struct rp_err *err);

/* A parser of a text in memory; both are closed by rp_mcp_close. */
struct rp_mcp_text {
    struct rp_input *input;
    struct rp_json *json;
};
enum rp_code rp_mcp_open(struct rp_mcp_text *text, const char *bytes, size_t n, struct rp_err *err);
void rp_mcp_close(struct rp_mcp_text *text);

/* Returns the next value as a text in the arena; NULL if it is not a string. The value is read in
   either case. */
const char *rp_mcp_string(struct rp_arena *arena, struct rp_json *json);
