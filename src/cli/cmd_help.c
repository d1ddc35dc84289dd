/* SPDX-License-Identifier: Apache-2.0 */
/* `help`: all commands, one of them, or the formats; also as a manual page. */
#include "cli/cli.h"

#include <string.h>

static const char *help_setting(const struct cli_call *call, const char *name)
{
    return cli_setting(call->settings, call->nsettings, name);
}

static int help_man(const char *topic, const char *page)
{
    struct cli_command command;

    if (!topic)
        return cli_man_overview(stdout);
    if (!strcmp(topic, "library")) {
        struct rp_err err = {.text = "'help --man library' needs '--page FILE'"};

        return page ? cli_man_library(page, stdout) : cli_usage("help", &err);
    }
    if (!cli_command_find(topic, &command))
        return cli_unknown_command(topic);
    return cli_man_command(&command, page, stdout);
}

static int help_run(const struct cli_call *call)
{
    const char *topic = call->nwords ? call->words[0] : NULL, *page = help_setting(call, "page");
    bool markdown = cli_flag(call->settings, call->nsettings, "markdown");
    const char *search = help_setting(call, "search");
    struct cli_command command;

    if (search && !search[strspn(search, " ")]) {
        struct rp_err err = {.text = "'--search' needs a word to look for"};

        return cli_usage("help", &err);
    }
    if (search) {
        if (cli_help_search(search, stdout))
            return 0;
        fprintf(stderr, "reprise: no help text contains '%s'\n", search);
        return 1;
    }
    if (cli_flag(call->settings, call->nsettings, "man"))
        return help_man(topic, page);
    if (!topic)
        cli_help_overview(stdout);
    else if (!strcmp(topic, "formats"))
        cli_help_formats(markdown, stdout);
    else if (markdown && !strcmp(topic, "findings")) {
        fflush(stdout);
        return rp_code_exit_status(rp_findings_markdown(fileno(stdout), NULL));
    } else if (!cli_command_find(topic, &command))
        return cli_unknown_command(topic);
    else if (markdown)
        cli_help_markdown(&command, stdout);
    else
        cli_help_command(&command, stdout);
    return 0;
}

static const struct rp_option help_options[] = {
    {"search", 0, RP_OPT_TEXT, "WORDS", NULL,
     "search the help of all commands and findings for all of these words", 0},
    {"markdown", 0, RP_OPT_FLAG, NULL, NULL,
     "print the option list, the formats, or findings (what 'report' finds), as Markdown", 0},
    {"man", 0, RP_OPT_FLAG, NULL, NULL, "print a manual page for man(1)", 0},
    {"page", 0, RP_OPT_PATH, "FILE", NULL,
     "with --man: take the description from FILE, as docs/cli/info.md", 0},
    RP_OPTION_END};

const struct cli_command cli_cmd_help = {
    .name = "help",
    .group = "other",
    .summary = "list the commands, explain one, list the input formats",
    .words = "[COMMAND|formats|findings]",
    .examples = "reprise help\tall commands\n"
                "reprise help version\tone command\n"
                "reprise help --search 'straggler'\twhere a word occurs\n"
                "reprise help formats\tthe formats that can be read\n"
                "reprise help --man info | man -l -\ta manual page\n",
    .options = help_options,
    .common = cli_help_option,
    .run = help_run};
