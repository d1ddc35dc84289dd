/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of commands: the library's questions, then the program's own (CLI_OWN_COMMANDS).
 */
#include "cli/cli.h"

#include <string.h>

const char *const cli_groups[] = {"traces", "predict", "programs", "capture", "other", NULL};

const struct rp_option cli_help_option[] = {
    {"help", 'h', RP_OPT_FLAG, NULL, NULL, "show this help", 0}, RP_OPTION_END};

/* clang-format off */
#define RESULT_OPTIONS                                                                             \
    {"json", 0, RP_OPT_FLAG, NULL, NULL, "print JSON: stable keys, integers, units in the keys", 0}, \
    {"csv", 0, RP_OPT_FLAG, NULL, NULL, "print the main list as CSV, one row per item", 0},        \
    {"output", 'o', RP_OPT_PATH, "FILE", NULL, "write to FILE instead of standard output", 0},     \
    {"wide", 0, RP_OPT_FLAG, NULL, NULL, "print all columns and whole names, however long", 0},  \
    {"all", 0, RP_OPT_FLAG, NULL, NULL, "print all rows of long tables", 0},                     \
    {"color", 0, RP_OPT_CHOICE, "auto|always|never", "auto", "color the text (see also NO_COLOR)", 0}, \
    {"quiet", 'q', RP_OPT_FLAG, NULL, NULL, "print no progress on standard error", 0},             \
    {"threads", 0, RP_OPT_INT, "0..1024", "0", "number of threads; 0: one per core", 0},           \
    {"help", 'h', RP_OPT_FLAG, NULL, NULL, "show this help", 0}

/* The common options of commands that print a result, and of those that also read files. */
const struct rp_option cli_common_options[] = {RESULT_OPTIONS, RP_OPTION_END};
#define FILE_OPTIONS                                                                               \
    {"salvage", 0, RP_OPT_FLAG, NULL, NULL, "load what precedes the damage in a damaged file", 0}
const struct rp_option cli_file_options[] = {FILE_OPTIONS, RESULT_OPTIONS, RP_OPTION_END};
const struct rp_option cli_trace_options[] = {
    FILE_OPTIONS,
    {"strict", 0, RP_OPT_FLAG, NULL, NULL, "exit with status 1 if something is missing from the answer", 0},
    RESULT_OPTIONS, RP_OPTION_END};
/* clang-format on */

const struct rp_option cli_no_options[] = {RP_OPTION_END};

static const struct cli_command *const own[] = {
#define COMMAND_ADDRESS(name) &cli_cmd_##name,
    CLI_OWN_COMMANDS(COMMAND_ADDRESS)
#undef COMMAND_ADDRESS
};

#define NOWN (sizeof own / sizeof own[0])

size_t cli_command_count(void)
{
    size_t n;

    rp_question_list(&n);
    return n + NOWN;
}

/* Whether the words are the command line of a program that the question runs. */
static bool takes_program(const struct rp_question *q)
{
    const struct rp_option *option;

    for (size_t i = 0; (option = rp_question_option(q, i)); i++)
        if (!strcmp(option->name, "command"))
            return true;
    return false;
}

static const struct rp_option *after_words(const struct rp_option *option)
{
    while (option->flags & RP_OPT_WORDS)
        option++;
    return option;
}

const struct rp_option *cli_action(const struct cli_command *command)
{
    const struct rp_option *first =
        command->question ? rp_question_option(command->question, 0) : NULL;

    return first && !strcmp(first->name, "action") ? first : NULL;
}

struct cli_command cli_command_at(size_t i)
{
    size_t n;
    const struct rp_question *const *questions = rp_question_list(&n);
    const struct rp_question *q = i < n ? questions[i] : NULL;

    if (!q)
        return *own[i - n];
    return (struct cli_command){.name = q->name,
                                .group = q->group,
                                .summary = q->summary,
                                .details = q->details,
                                .examples = q->examples,
                                .tail = takes_program(q),
                                .words = takes_program(q) ? "-- PROGRAM [ARGUMENT...]"
                                         : q->accepts & RP_ACCEPTS_SOURCES ? "[SOURCE...]"
                                         : q->accepts                      ? "FILE..."
                                                                           : "",
                                .options = after_words(q->options),
                                .common = q->accepts & RP_ACCEPTS_TRACES ? cli_trace_options
                                          : q->accepts & ~(unsigned)RP_ACCEPTS_SOURCES
                                              ? cli_file_options
                                              : cli_common_options,
                                .question = q,
                                .run = cli_ask};
}

bool cli_command_find(const char *name, struct cli_command *out)
{
    size_t n = cli_command_count();

    for (size_t i = 0; i < n; i++) {
        *out = cli_command_at(i);
        if (!strcmp(out->name, name))
            return true;
    }
    return false;
}
