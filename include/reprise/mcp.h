/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_MCP_H
#define REPRISE_MCP_H
/*
 * A server of the Model Context Protocol, by which agents ask the questions (`reprise mcp`). A
 * message is a line of JSON-RPC 2.0. Only the given files and folders are read, nothing is written.
 */
#include <reprise/context.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rp_mcp_options {
    size_t struct_size;       /* sizeof(struct rp_mcp_options) */
    const char *const *roots; /* the files and folders that may be read */
    size_t nroots;
    size_t words;     /* of an answer, at most; 0: 1000 */
    unsigned threads; /* as in struct rp_ctx_options */
};

/* Reads messages from one descriptor and answers on the other, until the input ends. RP_USAGE where
   a root does not exist. */
RP_API enum rp_code rp_mcp_serve(const struct rp_mcp_options *options, int in, int out,
                                 struct rp_err *err);

/* A page in Markdown that teaches an agent how to work with the tools. A constant. */
RP_API const char *rp_mcp_skill(void);

#ifdef __cplusplus
}
#endif
#endif
