/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the command, parses its options, runs it. */
#include "cli/cli.h"

#include <string.h>

static int run_command(const struct cli_command *command, int argc, char **argv)
{
    struct rp_err err = RP_ERR_INIT;
    struct cli_call call;
    int status;

    if (cli_parse(command, argc, argv, &call, &err) != RP_OK) {
        status = cli_usage(command->name, &err);
    } else if (cli_flag(call.common, call.ncommon, "help")) {
        cli_help_command(command, stdout);
        status = 0;
    } else if (call.nwords > cli_words_max(command)) {
        snprintf(err.text, sizeof err.text, "'%s' takes no word '%s'", command->name,
                 call.words[cli_words_max(command)]);
        status = cli_usage(command->name, &err);
    } else {
        status = command->run(&call);
    }
    cli_call_release(&call);
    return status;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    struct cli_command command;

    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        name = "help";
    else if (!strcmp(name, "--version") || !strcmp(name, "-V"))
        name = "version";
    if (!*name) {
        cli_help_overview(stderr);
        return 2;
    }
    if (name[0] == '-') {
        fprintf(stderr, "reprise: options come after the command: '%s'\n", name);
        return 2;
    }
    cli_catch_lost_files();
    if (!cli_command_find(name, &command))
        return cli_unknown_command(name);
    int status = run_command(&command, argc - 2, argv + 2);
    if (!status)
        status = cli_finish_stdout();
    return status;
}
