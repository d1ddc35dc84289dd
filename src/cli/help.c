/* SPDX-License-Identifier: Apache-2.0 */
/* Prints help from the tables: an overview, one command, the formats, the option list of the
   manual. */
#include "cli/cli.h"

#include <string.h>

#define TEXT_COLUMN   26
#define FORMAT_COLUMN 20
#define LINE_WIDTH    80

/* Returns the columns of a text, which are its characters, not its bytes. */
static int width_of(const char *text, size_t len)
{
    int n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

/* Prints text from column `from` on, wrapped between words; newlines in the text are kept. */
static void put_wrapped(FILE *to, const char *text, int from, int indent)
{
    int column = from;

    while (*text) {
        size_t len = strcspn(text, " \n");
        int width = width_of(text, len);

        if (column > indent && column + width + 1 > LINE_WIDTH) {
            fprintf(to, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', to);
            column++;
        }
        fwrite(text, 1, len, to);
        column += width;
        text += len;
        if (*text == '\n') {
            fprintf(to, "\n%*s", text[1] ? indent : 0, "");
            column = indent;
        }
        text += *text != '\0';
    }
    fputc('\n', to);
}

static void put_option(FILE *to, const struct rp_option *option)
{
    char left[128], text[512];

    char letter[8] = "    ";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, option->name, option->value ? " " : "",
             option->value ? option->value : "");
    snprintf(text, sizeof text, "%s%s%s%s", option->summary, option->fallback ? " (default: " : "",
             option->fallback ? option->fallback : "", option->fallback ? ")" : "");
    int used = width_of(left, strlen(left));
    fputs(left, to);
    if (used > TEXT_COLUMN - 2)
        fprintf(to, "\n%*s", TEXT_COLUMN, "");
    else
        fprintf(to, "%*s", TEXT_COLUMN - used, "");
    put_wrapped(to, text, TEXT_COLUMN, TEXT_COLUMN);
}

static void put_common_options(FILE *to, const struct cli_command *command)
{
    const struct rp_option *option = cli_common_from(command, command->common);

    if (option->name)
        fprintf(to, "\n%s:\n", command->options->name ? "common options" : "options");
    for (; option->name; option = cli_common_from(command, option + 1))
        put_option(to, option);
}

static void put_group(FILE *to, const char *group)
{
    size_t n = cli_command_count();
    bool any = false;

    for (size_t i = 0; i < n; i++) {
        struct cli_command command = cli_command_at(i);

        if (strcmp(command.group, group) != 0)
            continue;
        if (!any)
            fprintf(to, "\n%s:\n", group);
        any = true;
        fprintf(to, "  %-14s %s\n", command.name, command.summary);
    }
}

void cli_help_overview(FILE *to)
{
    fputs("reprise: " CLI_PURPOSE "\n"
          "\nusage: reprise COMMAND [OPTIONS] [FILE...]\n",
          to);
    for (size_t g = 0; cli_groups[g]; g++)
        put_group(to, cli_groups[g]);
    fputs(
        "\n'reprise help COMMAND' shows how one is used, 'reprise help formats' what can be read.\n"
        "Exit status: 0 done, 1 the answer is no, 2 wrong usage, 3 bad input, 4 system or device\n"
        "error, 5 a defect of reprise.\n",
        to);
}

static void put_examples(FILE *to, const char *examples)
{
    while (examples && *examples) {
        int command = (int)strcspn(examples, "\t\n");
        int comment = 0;

        if (examples[command] == '\t')
            comment = (int)strcspn(examples + command + 1, "\n");
        fprintf(to, "  %.*s", command, examples);
        if (comment)
            fprintf(to, "%*s# %.*s", command < 40 ? 40 - command : 2, "", comment,
                    examples + command + 1);
        fputc('\n', to);
        examples += strcspn(examples, "\n");
        examples += *examples == '\n';
    }
}

void cli_help_command(const struct cli_command *command, FILE *to)
{
    fprintf(to, "reprise %s: %s\n", command->name, command->summary);
    fprintf(to, "\nusage: reprise %s [OPTIONS]%s%s\n", command->name, *command->words ? " " : "",
            command->words);
    if (command->details) {
        fputc('\n', to);
        put_wrapped(to, command->details, 0, 0);
    }

    const struct rp_option *option = command->options;
    if (option->name)
        fputs("\noptions:\n", to);
    for (; option->name; option++)
        put_option(to, option);
    put_common_options(to, command);
    if (command->examples) {
        fputs("\nexamples:\n", to);
        put_examples(to, command->examples);
    }
}

static void put_option_row(FILE *to, const struct rp_option *option)
{
    fputs("| `", to);
    if (option->letter)
        fprintf(to, "-%c, ", option->letter);
    fprintf(to, "--%s%s", option->name, option->value ? " " : "");
    for (const char *c = option->value; c && *c; c++)
        fprintf(to, "%s%c", *c == '|' ? "\\" : "", *c);
    fprintf(to, "` | %s | %s |\n", option->summary, option->fallback ? option->fallback : "");
}

void cli_help_markdown(const struct cli_command *command, FILE *to)
{
    fputs("| option | meaning | default |\n|---|---|---|\n", to);
    for (const struct rp_option *option = command->options; option->name; option++)
        put_option_row(to, option);
    for (const struct rp_option *option = cli_common_from(command, command->common); option->name;
         option = cli_common_from(command, option + 1))
        put_option_row(to, option);
}

/* Lists traces first, then programs. */
static void put_formats(FILE *to, const char *kind, bool markdown)
{
    struct rp_format_view format;

    if (!markdown)
        fprintf(to, "\n%ss:\n", kind);
    for (size_t i = 0; rp_formats(i, 1, &format, sizeof format); i++) {
        if (strcmp(format.kind, kind) != 0)
            continue;
        if (markdown) {
            fprintf(to, "| `%s` | %s | %s | `%s` | %s |\n", format.name, format.kind,
                    format.summary, format.files, format.written_by);
        } else {
            char text[512];
            int used = fprintf(to, "  %s", format.name);

            snprintf(text, sizeof text, "%s\n%s\nwritten by %s", format.summary, format.files,
                     format.written_by);
            fprintf(to, "%*s", used < FORMAT_COLUMN ? FORMAT_COLUMN - used : 1, "");
            put_wrapped(to, text, FORMAT_COLUMN, FORMAT_COLUMN);
        }
    }
}

void cli_help_formats(bool markdown, FILE *to)
{
    fputs(markdown ? "| format | kind | what it is | files | written by |\n|---|---|---|---|---|\n"
                   : "Formats of input files. The content decides, not the name; gzip, zstd and xz "
                     "files\nand tar archives of all of them are read as they are.\n",
          to);
    put_formats(to, "trace", markdown);
    put_formats(to, "program", markdown);
    put_formats(to, "buffers", markdown);
}
