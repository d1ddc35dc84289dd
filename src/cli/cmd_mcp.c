/* SPDX-License-Identifier: Apache-2.0 */
/* `mcp`: the questions as tools for agents, over standard input and output. */
#include "cli/cli.h"

#include <reprise/mcp.h>
#include <stdlib.h>
#include <unistd.h>

static int mcp_run(const struct cli_call *call)
{
    const char *words = cli_setting(call->settings, call->nsettings, "words");
    struct rp_mcp_options options = {.struct_size = sizeof options,
                                     .roots = call->words,
                                     .nroots = call->nwords,
                                     .words = words ? strtoul(words, NULL, 10) : 0};
    struct rp_err err = RP_ERR_INIT;

    if (cli_flag(call->settings, call->nsettings, "skill")) {
        fputs(rp_mcp_skill(), stdout);
        return 0;
    }
    if (!call->nwords) {
        snprintf(err.text, sizeof err.text, "'mcp' needs the files or folders that may be read");
        return cli_usage("mcp", &err);
    }
    enum rp_code code = rp_mcp_serve(&options, STDIN_FILENO, STDOUT_FILENO, &err);
    if (code == RP_OK)
        return 0;
    return code == RP_USAGE ? cli_usage("mcp", &err) : cli_fail(code, &err);
}

static const struct rp_option mcp_options[] = {
    {"words", 0, RP_OPT_INT, "1..100000", "1000", "at most N words in an answer", 0},
    {"skill", 0, RP_OPT_FLAG, NULL, NULL, "print the page that teaches an agent how to work", 0},
    RP_OPTION_END};

const struct cli_command cli_cmd_mcp = {
    .name = "mcp",
    .group = "other",
    .summary = "answer an agent's questions: a server of the Model Context Protocol",
    .details = "Reads JSON-RPC messages from standard input, one per line, and answers on standard "
               "output. Each question that only reads is a tool. Nothing but the given files and "
               "folders is read, and nothing is written.",
    .words = "PATH...",
    .examples = "reprise mcp run/\tserve one run\n"
                "reprise mcp --skill > SKILL.md\tthe page for the agent\n",
    .options = mcp_options,
    .common = cli_help_option,
    .run = mcp_run};
