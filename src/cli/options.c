/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses command lines by tables: --name, --name=value, --name value, -n value, -nvalue, and --
 * before words that begin with a dash. Options and words may be mixed. The library checks values.
 */
#include "cli/cli.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    int argc, at;
    char **argv;
    struct cli_call *call;
    struct rp_err *err;
};

static enum rp_code usage_error(struct rp_err *err, const char *fmt, const char *subject,
                                const char *near)
{
    err->code = RP_USAGE;
    snprintf(err->text, sizeof err->text, "%s '%s'%s%s%s", fmt, subject,
             near ? "; did you mean '--" : "", near ? near : "", near ? "'?" : "");
    return RP_USAGE;
}

static const struct rp_option *find_long(const struct rp_option *options, const char *name,
                                         size_t len)
{
    for (; options->name; options++) {
        if (strlen(options->name) == len && !memcmp(options->name, name, len))
            return options;
    }
    return NULL;
}

static const struct rp_option *find_letter(const struct rp_option *options, char letter)
{
    for (; options->name; options++) {
        if (options->letter == letter)
            return options;
    }
    return NULL;
}

const struct rp_option *cli_common_from(const struct cli_command *command,
                                        const struct rp_option *option)
{
    while (option->name && find_long(command->options, option->name, strlen(option->name)))
        option++;
    return option;
}

static enum rp_code unknown_option(const struct parser *p, const char *word)
{
    const struct cli_command *command = p->call->command;
    const char *names[128];
    char bare[64];
    size_t n = 0;

    for (const struct rp_option *option = command->options; option->name && n < 60; option++)
        names[n++] = option->name;
    for (const struct rp_option *option = command->common; option->name && n < 120; option++)
        names[n++] = option->name;
    names[n] = NULL;
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word, "="), word + strspn(word, "-"));
    bare[strcspn(bare, "=")] = '\0';
    return usage_error(p->err, "there is no option", word, rp_closest_word(bare, names));
}

/* Adds a setting to the list of its option; the value may be the next argument. */
static enum rp_code add_setting(struct parser *p, const struct rp_option *option, bool common,
                                const char *value)
{
    struct cli_call *call = p->call;

    if (option->type != RP_OPT_FLAG && !value) {
        if (p->at + 1 >= p->argc)
            return rp_option_check(option, NULL, p->err);
        value = p->argv[++p->at];
    }
    if (rp_option_check(option, value, p->err) != RP_OK)
        return RP_USAGE;
    if (common)
        call->common[call->ncommon++] = (struct rp_setting){option->name, value};
    else
        call->settings[call->nsettings++] = (struct rp_setting){option->name, value};
    return RP_OK;
}

static enum rp_code parse_long(struct parser *p, const char *word)
{
    size_t len = strcspn(word + 2, "=");
    const char *value = word[2 + len] ? word + 3 + len : NULL;
    const struct rp_option *option = find_long(p->call->command->options, word + 2, len);
    bool common = !option;

    if (common)
        option = find_long(p->call->command->common, word + 2, len);
    return option ? add_setting(p, option, common, value) : unknown_option(p, word);
}

static enum rp_code parse_short(struct parser *p, const char *word)
{
    for (word++; *word; word++) {
        const struct rp_option *option = find_letter(p->call->command->options, *word);
        bool common = !option;
        if (common)
            option = find_letter(p->call->command->common, *word);
        if (!option)
            return usage_error(p->err, "there is no option", p->argv[p->at], NULL);
        if (option->type != RP_OPT_FLAG)
            return add_setting(p, option, common, word[1] ? word + 1 : NULL);
        if (add_setting(p, option, common, NULL) != RP_OK)
            return RP_USAGE;
    }
    return RP_OK;
}

/* The first word of a command with actions may be one of them. A second such word is a file:
   'dump breaks run' reads the folder "run". */
static bool is_action(const struct cli_call *call, const char *word)
{
    const struct rp_option *action = call->nwords ? NULL : cli_action(call->command);

    return action && !cli_setting(call->settings, call->nsettings, "action") &&
           rp_option_check(action, word, NULL) == RP_OK;
}

enum rp_code cli_parse(const struct cli_command *command, int argc, char **argv,
                       struct cli_call *out, struct rp_err *err)
{
    struct parser p = {argc, 0, argv, out, err};
    bool only_words = false;
    size_t room = (size_t)argc * 8 + 1; /* one word may contain several letters */

    for (int i = 0; i < argc; i++)
        room += strlen(argv[i]);
    *out = (struct cli_call){.command = command};
    out->settings = calloc(room, sizeof *out->settings);
    out->common = calloc(room, sizeof *out->common);
    out->words = calloc(room, sizeof *out->words);
    if (!out->settings || !out->common || !out->words)
        return usage_error(err, "out of memory while reading", "the command line", NULL);
    for (; p.at < argc; p.at++) {
        const char *word = argv[p.at];
        enum rp_code code = RP_OK;

        if (!only_words && word[0] != '-' && is_action(out, word)) {
            out->settings[out->nsettings++] = (struct rp_setting){"action", word};
        } else if (only_words || word[0] != '-' || !word[1]) {
            out->words[out->nwords++] = word;
            only_words = only_words || command->tail;
        } else if (!strcmp(word, "--")) {
            only_words = out->dashes = true;
        } else {
            code = word[1] == '-' ? parse_long(&p, word) : parse_short(&p, word);
        }
        if (code != RP_OK)
            return code;
    }
    return RP_OK;
}

size_t cli_words_max(const struct cli_command *command)
{
    if (!*command->words)
        return 0;
    return strstr(command->words, "...") ? SIZE_MAX : 1;
}

void cli_call_release(struct cli_call *call)
{
    free(call->settings);
    free(call->common);
    free(call->words);
    *call = (struct cli_call){0};
}

const char *cli_setting(const struct rp_setting *settings, size_t n, const char *name)
{
    while (n--) {
        if (!strcmp(settings[n].name, name))
            return settings[n].value ? settings[n].value : "yes";
    }
    return NULL;
}

bool cli_flag(const struct rp_setting *settings, size_t n, const char *name)
{
    const char *value = cli_setting(settings, n, name);

    return value && strcmp(value, "no") != 0;
}
