/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The server without its descriptors: one message in, at most one line out. */
#include "base/arena.h"
#include "io/json_pull.h"
#include "io/output.h"

#include <reprise/mcp.h>
#include <reprise/question.h>

struct rp_mcp {
    struct rp_ctx *ctx;
    char **roots; /* resolved: absolute, without links */
    size_t nroots, words;
};

/* progress: as that of a context, called in the thread that asks; or NULL. */
enum rp_code rp_mcp_init(struct rp_mcp *mcp, const struct rp_mcp_options *options,
                         rp_progress_fn *progress, void *user, struct rp_err *err);
void rp_mcp_release(struct rp_mcp *mcp);

/* Writes the response to a message as one line; nothing where the message is a notification. */
void rp_mcp_message(struct rp_mcp *mcp, const char *text, size_t n, struct rp_out *to);

/* tools.c. The tools as an array of JSON; and the result of calling one: params is the text of the
   call's parameters. RP_USAGE: the parameters are wrong (err says how), nothing is written. */
void rp_mcp_tools(struct rp_out *to);
enum rp_code rp_mcp_call(struct rp_mcp *mcp, const char *params, size_t n, struct rp_out *to,
                         struct rp_err *err);

const struct rp_question *rp_mcp_tool(size_t i);              /* NULL: there are no more */
const struct rp_question *rp_mcp_tool_find(const char *name); /* or NULL */
/* A path below one of the roots, without links; relative ones begin at the first root. */
enum rp_code rp_mcp_resolve(const struct rp_mcp *mcp, struct rp_arena *arena, const char *path,
                            const char **out, struct rp_err *err);

/* pages.c. Entries of the lists of resources and of their templates; and the resource itself, in
   the arena. RP_USAGE: there is none, or it may not be read. */
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

/* The next value as a text in the arena; NULL where it is no string. It is read in any case. */
const char *rp_mcp_string(struct rp_arena *arena, struct rp_json *json);
