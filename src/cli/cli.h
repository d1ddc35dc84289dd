/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The command line, which only uses the public API. Each command is a row: every question of the
 * library is one, and those at the end of this file are the others.
 */
#include <reprise/reprise.h>
#include <stdbool.h>
#include <stdio.h>

/* A command line, parsed by the command's option tables. */
struct cli_call {
    const struct cli_command *command;
    struct rp_setting *settings; /* values of the command's own options */
    size_t nsettings;
    struct rp_setting *common; /* of the common options */
    size_t ncommon;
    const char **words; /* arguments that are not options: files, names */
    size_t nwords;
    bool dashes; /* "--" preceded the words */
};

struct cli_command {
    const char *name, *group, *summary, *details, *examples;
    const char *words; /* arguments for the help: "FILE...", or "" */
    bool tail; /* the first word begins another program's command line, including its options */
    const struct rp_option *options;
    const struct rp_option *common;     /* options shared by many commands */
    const struct rp_question *question; /* or NULL */
    int (*run)(const struct cli_call *call);
};

/* commands.c */
size_t cli_command_count(void);
struct cli_command cli_command_at(size_t i);
bool cli_command_find(const char *name, struct cli_command *out);
extern const char *const cli_groups[]; /* in the order of the help; ends with NULL */
extern const struct rp_option cli_common_options[], cli_file_options[], cli_trace_options[];
extern const struct rp_option cli_help_option[], cli_no_options[];

/* options.c: returns RP_USAGE with a message if the command line is wrong; the arrays belong to the
 * call. */
enum rp_code cli_parse(const struct cli_command *command, int argc, char **argv,
                       struct cli_call *out, struct rp_err *err);
void cli_call_release(struct cli_call *call);
size_t cli_words_max(const struct cli_command *command); /* none, one, or any number */
const char *cli_setting(const struct rp_setting *settings, size_t n, const char *name);
bool cli_flag(const struct rp_setting *settings, size_t n, const char *name);

/* Returns the option whose values may be the first word, or NULL. */
const struct rp_option *cli_action(const struct cli_command *command);

/* Returns the first common option, from this one on, that the command does not replace by an option
   of its own with that name; the end of the list if there is none. */
const struct rp_option *cli_common_from(const struct cli_command *command,
                                        const struct rp_option *option);

/* help.c */
void cli_help_overview(FILE *to);
void cli_help_command(const struct cli_command *command, FILE *to);
void cli_help_markdown(const struct cli_command *command, FILE *to);
void cli_help_formats(bool markdown, FILE *to);
/* Whether any help text contains all the words (help_search.c). */
bool cli_help_search(const char *words, FILE *to);

/* man.c: prints manual pages for man(1); returns the exit status. page is the Markdown file whose
   text is the description; if it is NULL, the table of commands has the text. */
#define CLI_PURPOSE "where the time of a machine-learning program goes, and what would change it"
int cli_man_overview(FILE *to);
int cli_man_command(const struct cli_command *command, const char *page, FILE *to);
int cli_man_library(const char *page, FILE *to);

/* terminal.c */
bool cli_use_color(const char *when,
                   int fd); /* auto, always, never; respects NO_COLOR and TERM=dumb */
int cli_width(int fd);
int cli_ascii(void);  /* as in struct rp_print_options: decided by the locale */
int cli_bars(int fd); /* as in struct rp_print_options: only on a terminal */

/* progress.c: a line on stderr, from the first second on, if stderr is a terminal. */
struct cli_progress {
    bool enabled, shown, screen; /* screen: not a log */
    bool anytime; /* an interrupt (Ctrl-C) waits until it is asked for, and then ends the work */
    double started, last;
};
void cli_progress_begin(struct cli_progress *progress, bool quiet);
int cli_progress_report(void *progress, const char *what, uint64_t done, uint64_t total);
void cli_progress_end(struct cli_progress *progress);
/* Delays interrupts from now on, for all threads that begin later; cli_progress_report asks for
   them. */
void cli_progress_hold_interrupts(struct cli_progress *progress);

/* report.c: prints errors on stderr; all return the exit status. */
int cli_fail(enum rp_code code, const struct rp_err *err);
int cli_usage(const char *command, const struct rp_err *err);
int cli_unknown_command(const char *name);
int cli_finish_stdout(void); /* returns 0, or 4 if stdout could not be written */
void cli_catch_lost_files(void);

/* The commands that are not questions: one line here and cmd_<name>.c with the row cli_cmd_<name>.
 */
#define CLI_OWN_COMMANDS(X) \
    X(help)                 \
    X(completion)           \
    X(mcp)                  \
    X(record)               \
    X(sample)               \
    X(view)

#define CLI_DECLARE_COMMAND(name) extern const struct cli_command cli_cmd_##name;
CLI_OWN_COMMANDS(CLI_DECLARE_COMMAND)
#undef CLI_DECLARE_COMMAND

int cli_ask(const struct cli_call *call);      /* cmd_ask.c: runs any question */
int cli_capture(const struct cli_call *call);  /* cmd_capture.c: `replay capture` */
int cli_dump_run(const struct cli_call *call); /* cmd_dump.c: `dump run` */
bool cli_make_path(const char *path); /* makes the folder and all above it; false with errno */
