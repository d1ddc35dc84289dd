/* SPDX-License-Identifier: Apache-2.0 */
/* `help`: all commands, or one. */
#include "cli/cli.h"

static int run(const struct cli_call *call)
{
    bool markdown = cli_flag(call->settings, call->nsettings, "markdown");
    struct cli_command command;

    if (!call->nwords) {
        cli_help_overview(stdout);
        return 0;
    }
    if (!cli_command_find(call->words[0], &command))
        return cli_unknown_command(call->words[0]);
    if (markdown)
        cli_help_markdown(&command, stdout);
    else
        cli_help_command(&command, stdout);
    return 0;
}

static const struct rp_option options[] = {
    {"markdown", 0, RP_OPT_FLAG, NULL, NULL, "print the option list as the manual has it", 0},
    RP_OPTION_END};

const struct cli_command cli_cmd_help = {.name = "help",
                                         .group = "other",
                                         .summary = "what commands there are, and how one is used",
                                         .words = "[COMMAND]",
                                         .examples = "reprise help\tall commands\n"
                                                     "reprise help version\tone command\n",
                                         .options = options,
                                         .common = cli_help_option,
                                         .run = run};
