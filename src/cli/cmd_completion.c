/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `completion`: prints scripts for three shells, made from the tables of commands and options. A
 * script contains everything: completing a word does not run reprise.
 */
#include "cli/cli.h"
#include "cli/record.h"

#include <reprise/question.h>

#include <string.h>

typedef void each_option_fn(const struct cli_command *command, const struct rp_option *option);

static void each_option(const struct cli_command *command, each_option_fn *fn)
{
    for (const struct rp_option *option = command->options; option->name; option++)
        fn(command, option);
    for (const struct rp_option *option = cli_common_from(command, command->common); option->name;
         option = cli_common_from(command, option + 1))
        fn(command, option);
}

/* Prints "auto|always|never" with blanks between the words. */
static void put_choices(const char *value)
{
    for (; *value; value++)
        putchar(*value == '|' ? ' ' : *value);
}

/* Prints text inside single quotes of a shell. */
static void put_quoted(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
    }
}

static const char *action_words(const struct cli_command *command)
{
    const struct rp_option *action = cli_action(command);

    return action ? action->value : NULL;
}

static bool is_record(const struct cli_command *command)
{
    return !strcmp(command->name, "record");
}

/* Returns the i-th word with which a value of the option may begin, or NULL. */
static const char *value_word(const struct cli_command *command, const struct rp_option *option,
                              size_t i)
{
    const struct rp_question *question = rp_question_find(command->name);

    if (is_record(command))
        return record_word(option->name, i);
    return question ? rp_question_word(question, option, i) : NULL;
}

static void put_value_words(const struct cli_command *command, const struct rp_option *option)
{
    const char *word;

    for (size_t i = 0; (word = value_word(command, option, i)) != NULL; i++)
        printf("%s%s", i ? " " : "", word);
}

static void bash_option(const struct cli_command *command, const struct rp_option *option)
{
    (void)command;
    printf(" --%s", option->name);
}

/* The values of an option that takes one. */
static void bash_values(const struct cli_command *command, const struct rp_option *option)
{
    bool words = value_word(command, option, 0) != NULL;

    if (option->type == RP_OPT_FLAG)
        return;
    printf("    %s:--%s", command->name, option->name);
    if (option->letter)
        printf("|%s:-%c", command->name, option->letter);
    printf(") COMPREPLY=(");
    if (option->type == RP_OPT_CHOICE) {
        printf("$(compgen -W '");
        put_choices(option->value);
        printf("' -- \"$cur\")");
    } else if (option->type == RP_OPT_PATH) {
        printf("$(compgen -f -- \"$cur\")");
    } else if (words) { /* a value or further words may follow: "bucket=25MB", "host,cuda",
                           "+blocking" */
        printf("$(compgen -P \"${cur%%\"${cur##*[+,]}\"}\" -W '");
        put_value_words(command, option);
        printf("' -- \"${cur##*[+,]}\")");
    }
    puts(words ? "); compopt -o nospace 2>/dev/null; return ;;" : "); return ;;");
}

static void bash_words(const struct cli_command *command)
{
    printf("    %s) words='", command->name);
    each_option(command, bash_option);
    if (!strcmp(command->name, "help")) {
        for (size_t i = 0; i < cli_command_count(); i++)
            printf(" %s", cli_command_at(i).name);
        printf(" formats");
    } else if (!strcmp(command->name, "completion")) {
        printf(" ");
        put_choices(command->words);
    } else if (action_words(command)) {
        printf(" ");
        put_choices(action_words(command));
    }
    puts(strstr(command->words, "FILE") || action_words(command) ? "' files=yes ;;" : "' ;;");
}

static void completion_bash(void)
{
    size_t n = cli_command_count();

    puts(
        "_reprise() {\n"
        "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words='' files=''\n"
        "  if [ \"${COMP_WORDS[1]}\" = record ]; then\n"
        "    local i\n"
        "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
        "      [ \"${COMP_WORDS[i]}\" = -- ] || continue\n"
        "      if declare -F _command_offset >/dev/null; then _command_offset $((i + 1))\n"
        "      elif ((i + 1 == COMP_CWORD)); then COMPREPLY=($(compgen -c -- \"$cur\"))\n"
        "      else COMPREPLY=($(compgen -f -- \"$cur\")); fi\n"
        "      return\n"
        "    done\n"
        "  fi\n"
        "  if [ \"$COMP_CWORD\" -eq 1 ]; then");
    printf("    COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < n; i++)
        printf("%s ", cli_command_at(i).name);
    puts("' -- \"$cur\")); return\n  fi\n  case ${COMP_WORDS[1]}:$prev in");
    for (size_t i = 0; i < n; i++) {
        struct cli_command command = cli_command_at(i);

        each_option(&command, bash_values);
    }
    puts("  esac\n  case ${COMP_WORDS[1]} in");
    for (size_t i = 0; i < n; i++) {
        struct cli_command command = cli_command_at(i);

        bash_words(&command);
    }
    puts("  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  [[ -z $files || $cur == -* ]] || COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
         "}\n"
         "complete -o filenames -F _reprise reprise");
}

static void zsh_option(const struct cli_command *command, const struct rp_option *option)
{
    printf(" \\\n        '--%s%s[", option->name, option->type == RP_OPT_FLAG ? "" : "=");

    /* Inside the brackets of a zsh specification. */
    const char *text = option->summary;
    char character[2] = "";
    for (; *text; text++) {
        character[0] = *text;
        if (strchr("[]\\", *text))
            putchar('\\');
        put_quoted(character);
    }

    printf("]");
    if (option->type == RP_OPT_CHOICE) {
        printf(":value:(");
        put_choices(option->value);
        printf(")");
    } else if (option->type == RP_OPT_PATH) {
        printf(":file:_files");
    } else if (value_word(command, option, 0)) {
        printf(":value:(");
        put_value_words(command, option);
        printf(")");
    } else if (option->type != RP_OPT_FLAG) {
        printf(":value:");
    }
    printf("'");
}

static void zsh_words(const struct cli_command *command)
{
    if (!strcmp(command->name, "help")) {
        printf(" \\\n        ':command:(");
        for (size_t i = 0; i < cli_command_count(); i++)
            printf("%s ", cli_command_at(i).name);
        printf("formats)'");
    } else if (!strcmp(command->name, "completion")) {
        printf(" \\\n        ':shell:(");
        put_choices(command->words);
        printf(")'");
    } else if (is_record(command)) {
        printf(" \\\n        '*::program:_normal'");
    } else if (*command->words) {
        if (action_words(command)) {
            printf(" \\\n        '1:word:{compadd -- ");
            put_choices(action_words(command));
            printf("; _files}'");
        }
        printf(" \\\n        '*:file:_files'");
    }
}

static void completion_zsh(void)
{
    size_t n = cli_command_count();

    puts("#compdef reprise\n_reprise() {\n  local -a commands\n  commands=(");
    for (size_t i = 0; i < n; i++) {
        printf("    '%s:", cli_command_at(i).name);
        put_quoted(cli_command_at(i).summary);
        puts("'");
    }
    puts("  )\n  if (( CURRENT == 2 )); then\n    _describe command commands; return\n  fi\n"
         "  local command=$words[2]\n  shift words; (( CURRENT-- ))\n  case $command in");
    for (size_t i = 0; i < n; i++) {
        struct cli_command command = cli_command_at(i);

        printf("    %s) _arguments", command.name);
        each_option(&command, zsh_option);
        zsh_words(&command);
        puts(" ;;");
    }
    puts(
        "  esac\n}\n"
        "if [ \"$funcstack[1]\" = _reprise ]; then _reprise \"$@\"; else compdef _reprise reprise; "
        "fi");
}

static void fish_option(const struct cli_command *command, const struct rp_option *option)
{
    printf("complete -c reprise -n '__fish_seen_subcommand_from %s' -l %s", command->name,
           option->name);
    if (option->letter)
        printf(" -s %c", option->letter);
    if (option->type == RP_OPT_CHOICE) {
        printf(" -xa '");
        put_choices(option->value);
        printf("'");
    } else if (value_word(command, option, 0)) {
        printf(" -xa '");
        put_value_words(command, option);
        printf("'");
    } else if (option->type != RP_OPT_FLAG) {
        fputs(option->type == RP_OPT_PATH ? " -rF" : " -x", stdout);
    }
    printf(" -d '");
    put_quoted(option->summary);
    puts("'");
}

static void completion_fish(void)
{
    size_t n = cli_command_count();

    for (size_t i = 0; i < n; i++) {
        struct cli_command command = cli_command_at(i);

        printf("complete -c reprise -n __fish_use_subcommand -f -a %s -d '", command.name);
        put_quoted(command.summary);
        puts("'");
        each_option(&command, fish_option);
        if (is_record(&command))
            puts("complete -c reprise -n '__fish_seen_subcommand_from record' -xa "
                 "'(__fish_complete_subcommand)'");
        if (action_words(&command)) {
            printf("complete -c reprise -n '__fish_seen_subcommand_from %s' -a '", command.name);
            put_choices(action_words(&command));
            puts("'");
        }
    }
    puts("complete -c reprise -n '__fish_seen_subcommand_from completion' -xa 'bash zsh fish'");
    printf("complete -c reprise -n '__fish_seen_subcommand_from help' -xa 'formats");
    for (size_t i = 0; i < n; i++)
        printf(" %s", cli_command_at(i).name);
    puts("'");
}

static const struct {
    const char *name;
    void (*print)(void);
} shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

static int completion_run(const struct cli_call *call)
{
    struct rp_err err = RP_ERR_INIT;

    for (size_t i = 0; call->nwords == 1 && i < sizeof shells / sizeof shells[0]; i++) {
        if (!strcmp(shells[i].name, call->words[0])) {
            shells[i].print();
            return 0;
        }
    }
    snprintf(err.text, sizeof err.text, "name a shell: bash, zsh or fish");
    return cli_usage("completion", &err);
}

const struct cli_command cli_cmd_completion = {
    .name = "completion",
    .group = "other",
    .summary = "print the completion script of a shell: bash, zsh or fish",
    .words = "bash|zsh|fish",
    .details =
        "The script completes commands, options and their values. 'make install' installs it "
        "for all three shells.",
    .examples = "source <(reprise completion bash)\tin ~/.bashrc\n"
                "reprise completion zsh > ~/.zfunc/_reprise\twith ~/.zfunc in fpath\n"
                "reprise completion fish | source\tin config.fish\n",
    .options = cli_no_options,
    .common = cli_help_option,
    .run = completion_run};
