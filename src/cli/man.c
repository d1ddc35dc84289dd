/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints manual pages for man(1): name, usage, options and examples from the tables of commands,
 * and the text from the command's page in docs/cli. It knows the Markdown that these pages use:
 * headings, paragraphs, lists, tables, code, bold text and links.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct man {
    FILE *to;
    bool code;      /* inside a block of code */
    bool skip;      /* inside a section that is made from the tables */
    bool paragraph; /* the last line was text, which the next one continues */
    bool header;    /* the last line was the head of a table */
};

/* Escapes characters that roff interprets. A line that begins with '.' or ''' is a request. */
static void man_char(FILE *to, char c)
{
    if (c == '\\')
        fputs("\\e", to);
    else if (c == '-')
        fputs("\\-", to);
    else if (c == '\'')
        fputs("\\(aq", to);
    else if (c == '`')
        fputs("\\(ga", to);
    else if (c == '^')
        fputs("\\(ha", to);
    else if (c == '~')
        fputs("\\(ti", to);
    else
        fputc(c, to);
}

static void man_plain(FILE *to, const char *text, size_t len)
{
    if (len && *text == '.')
        fputs("\\&", to);
    for (size_t i = 0; i < len; i++)
        man_char(to, text[i]);
}

static void man_text(FILE *to, const char *text)
{
    man_plain(to, text, strlen(text));
}

/* Returns the length of "[text](target)" at the beginning of s, and that of its text; 0 if it is
   not a link. */
static size_t man_link(const char *s, const char *end, size_t *text)
{
    const char *bracket = memchr(s, ']', (size_t)(end - s));

    if (*s != '[' || !bracket || bracket + 1 >= end || bracket[1] != '(')
        return 0;
    const char *paren = memchr(bracket, ')', (size_t)(end - bracket));
    *text = (size_t)(bracket - s - 1);
    return paren ? (size_t)(paren - s + 1) : 0;
}

/* Whether '*' at s begins emphasised text that ends in the same line. */
static bool man_emphasis(const char *s, const char *end)
{
    const char *close = end - s > 2 ? memchr(s + 1, '*', (size_t)(end - s - 1)) : NULL;

    return close && s[1] != ' ' && s[1] != '.' && close > s + 1 && close[-1] != ' ';
}

/* A piece of Markdown inside a line: code and bold text become bold, links their text. */
static void man_inline(FILE *to, const char *s, const char *end)
{
    bool code = false, bold = false, italic = false;
    size_t link, text;

    if (s < end && *s == '.')
        fputs("\\&", to);
    while (s < end) {
        if (*s == '`') {
            code = !code;
            fputs(code ? "\\fB" : "\\fR", to);
            s++;
        } else if (!code && end - s > 1 && s[0] == '*' && s[1] == '*') {
            bold = !bold;
            fputs(bold ? "\\fB" : "\\fR", to);
            s += 2;
        } else if (!code && *s == '*' && (italic || man_emphasis(s, end))) {
            italic = !italic;
            fputs(italic ? "\\fI" : "\\fR", to);
            s++;
        } else if (!code && (link = man_link(s, end, &text)) > 0) {
            man_inline(to, s + 1, s + 1 + text);
            s += link;
        } else if (*s == '\\' && end - s > 1 && s[1] == '|') {
            fputc('|', to);
            s += 2;
        } else {
            man_char(to, *s++);
        }
    }
}

static void man_line(FILE *to, const char *s, const char *end)
{
    man_inline(to, s, end);
    fputc('\n', to);
}

/* Returns the end of a table's cell, a '|' that is not escaped. */
static const char *man_cell_end(const char *s, const char *end)
{
    while (s < end && *s != '|')
        s += *s == '\\' && end - s > 1 ? 2 : 1;
    return s < end ? s : end;
}

/* "| a | b | c |": the first cell is a tag, the others are its text. */
static void man_row(struct man *man, const char *s, const char *end)
{
    const char *next;
    int column = 0;

    fputs(".TP\n", man->to);
    for (s++; s < end; s = next + 1) {
        const char *last;

        next = last = man_cell_end(s, end);
        while (s < last && *s == ' ')
            s++;
        while (last > s && last[-1] == ' ')
            last--;
        if (s == last)
            continue;
        if (column == 2)
            fputs(".br\n", man->to);
        man_line(man->to, s, last);
        column = column < 2 ? column + 1 : 2;
    }
    if (column == 1)
        fputs("\\&\n", man->to);
}

static void man_heading(struct man *man, const char *s, const char *end)
{
    size_t level = strspn(s, "#");

    s += level + (s[level] == ' ');
    man->skip = level == 2 && (size_t)(end - s) == strlen("Options") && !memcmp(s, "Options", 7);
    if (level == 1 || man->skip)
        return;
    fputs(level == 2 ? ".SH \"" : ".SS \"", man->to);
    man_inline(man->to, s, end);
    fputs("\"\n", man->to);
}

static void man_code(struct man *man, const char *s, const char *end)
{
    if (end - s >= 3 && !memcmp(s, "```", 3)) {
        man->code = !man->code;
        fputs(man->code ? ".PP\n.RS 4\n.EX\n" : ".EE\n.RE\n", man->to);
        return;
    }
    man_plain(man->to, s, (size_t)(end - s));
    fputc('\n', man->to);
}

/* "- text" and "1. text"; other text begins or continues a paragraph. */
static void man_prose(struct man *man, const char *s, const char *end)
{
    size_t digits = strspn(s, "0123456789");

    if (end - s > 1 && s[0] == '-' && s[1] == ' ') {
        fputs(".IP \\(bu 2\n", man->to);
        s += 2;
    } else if (digits && s[digits] == '.' && s[digits + 1] == ' ') {
        fprintf(man->to, ".IP %.*s. 4\n", (int)digits, s);
        s += digits + 2;
    } else if (!man->paragraph) {
        fputs(".PP\n", man->to);
    }
    s += strspn(s, " ");
    man->paragraph = true;
    man_line(man->to, s, end);
}

static void man_markdown_line(struct man *man, const char *s, const char *end)
{
    bool row = *s == '|', fence = end - s >= 3 && !memcmp(s, "```", 3);

    if (*s == '#' && !man->code) {
        man_heading(man, s, end);
        man->paragraph = false;
    } else if (man->skip || (!man->code && end - s >= 4 && !memcmp(s, "<!--", 4))) {
        return; /* a section that is left out, or a comment */
    } else if (man->code || fence) {
        man_code(man, s, end);
        man->paragraph = false;
    } else if (row) { /* the head of a table, its rule, then its rows */
        if (!man->header && !memchr(s, '-', (size_t)(end - s)))
            man->header = true;
        else if (strspn(s, "|-: ") < (size_t)(end - s))
            man_row(man, s, end);
        man->paragraph = false;
    } else if (s == end) {
        man->paragraph = man->header = false;
    } else {
        man_prose(man, s, end);
    }
}

static void man_markdown(FILE *to, const char *text)
{
    struct man man = {.to = to};

    while (*text) {
        const char *end = text + strcspn(text, "\n");

        man_markdown_line(&man, text, end);
        text = end + (*end == '\n');
    }
}

/* Reads a whole file as a text that the caller frees; returns NULL, with errno, if it cannot be
   read. */
static char *man_read(const char *path)
{
    FILE *from = fopen(path, "re");
    char *text = NULL;
    size_t room = 0;

    if (!from)
        return NULL;
    ssize_t n = getdelim(&text, &room, '\0', from);
    fclose(from);
    if (n >= 0)
        return text;
    free(text);
    return calloc(1, 1); /* an empty file */
}

static int man_unreadable(const char *path)
{
    fprintf(stderr, "reprise: cannot read '%s': %s\n", path, strerror(errno));
    return rp_code_exit_status(RP_IO);
}

static void man_title(FILE *to, const char *name, int section, const char *summary)
{
    fputs(".TH \"", to);
    for (const char *c = name; *c; c++)
        man_char(to, *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c);
    fprintf(to, "\" %d \"\" \"reprise %s\" \"Reprise Manual\"\n.SH NAME\n", section, rp_version());
    man_text(to, name);
    fputs(" \\- ", to);
    man_text(to, summary);
    fputc('\n', to);
}

static void man_option(FILE *to, const struct rp_option *option)
{
    fputs(".TP\n\\fB", to);
    if (option->letter)
        fprintf(to, "\\-%c\\fR, \\fB", option->letter);
    fputs("\\-\\-", to);
    man_text(to, option->name);
    fputs("\\fR", to);
    if (option->value) {
        fputs(" \\fI", to);
        man_text(to, option->value);
        fputs("\\fR", to);
    }
    fputc('\n', to);
    man_text(to, option->summary);
    if (option->fallback) {
        fputs(" (default: ", to);
        man_text(to, option->fallback);
        fputc(')', to);
    }
    fputc('\n', to);
}

static void man_examples(FILE *to, const char *examples)
{
    if (!examples)
        return;
    fputs(".SH EXAMPLES\n", to);
    while (*examples) {
        size_t command = strcspn(examples, "\t\n"), line = strcspn(examples, "\n");

        fputs(".TP\n\\fB", to);
        man_plain(to, examples, command);
        fputs("\\fR\n", to);
        if (command < line)
            man_plain(to, examples + command + 1, line - command - 1);
        else
            fputs("\\&", to);
        fputc('\n', to);
        examples += line + (examples[line] == '\n');
    }
}

static void man_exit_status(FILE *to)
{
    fputs(".SH \"EXIT STATUS\"\n"
          "0 done, 1 the answer is no, 2 wrong usage, 3 bad input, 4 system or device error,\n"
          "5 a defect of reprise.\n",
          to);
}

int cli_man_command(const struct cli_command *command, const char *page, FILE *to)
{
    char name[64], *text = page ? man_read(page) : NULL;

    if (page && !text)
        return man_unreadable(page);
    snprintf(name, sizeof name, "reprise-%s", command->name);
    man_title(to, name, 1, command->summary);
    fputs(".SH SYNOPSIS\n\\fBreprise ", to);
    man_text(to, command->name);
    fputs("\\fR [\\fIOPTIONS\\fR] \\fI", to);
    man_text(to, command->words);
    fputs("\\fR\n.SH DESCRIPTION\n", to);
    man_markdown(to, text ? text : command->details ? command->details : command->summary);
    fputs(".SH OPTIONS\n", to);
    for (const struct rp_option *option = command->options; option->name; option++)
        man_option(to, option);
    for (const struct rp_option *option = cli_common_from(command, command->common); option->name;
         option = cli_common_from(command, option + 1))
        man_option(to, option);
    man_examples(to, command->examples);
    man_exit_status(to);
    fputs(".SH \"SEE ALSO\"\n\\fBreprise\\fR(1)\n", to);
    free(text);
    return 0;
}

int cli_man_overview(FILE *to)
{
    size_t n = cli_command_count();

    man_title(to, "reprise", 1, CLI_PURPOSE);
    fputs(".SH SYNOPSIS\n\\fBreprise\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIFILE\\fR...]\n"
          ".SH DESCRIPTION\nEach command answers one question about the recorded traces or the\n"
          "compiled programs in its files, and has a manual page of its own.\n",
          to);
    for (size_t g = 0; cli_groups[g]; g++) {
        fprintf(to, ".SS %s\n", cli_groups[g]);
        for (size_t i = 0; i < n; i++) {
            struct cli_command command = cli_command_at(i);

            if (strcmp(command.group, cli_groups[g]) != 0)
                continue;
            fputs(".TP\n\\fBreprise\\-", to);
            man_text(to, command.name);
            fputs("\\fR(1)\n", to);
            man_text(to, command.summary);
            fputc('\n', to);
        }
    }
    man_exit_status(to);
    fputs(".SH \"SEE ALSO\"\n\\fBlibreprise\\fR(3)\n", to);
    return 0;
}

int cli_man_library(const char *page, FILE *to)
{
    char *text = man_read(page);

    if (!text)
        return man_unreadable(page);
    man_title(to, "libreprise", 3, CLI_PURPOSE);
    fputs(".SH SYNOPSIS\n\\fB#include <reprise/reprise.h>\\fR\n.PP\n"
          "\\fBcc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs reprise)\\fR\n.SH DESCRIPTION\n",
          to);
    man_markdown(to, text);
    fputs(".SH \"SEE ALSO\"\n\\fBreprise\\fR(1)\n", to);
    free(text);
    return 0;
}
