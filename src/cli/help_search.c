/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `help --search`: the entries of all help texts that contain every word. An entry is a line with
 * the lines below it that are indented further (an option with its description), or a paragraph.
 */
#include "cli/cli.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct help_search {
    const char *words;
    FILE *to;
    size_t found;
};

static bool has_words(const char *entry, size_t n, const char *words)
{
    while (*words) {
        size_t skip = strspn(words, " "), len = strcspn(words + skip, " ");
        bool found = len == 0;

        words += skip;
        for (size_t i = 0; i + len <= n && !found; i++)
            found = !strncasecmp(entry + i, words, len);
        if (!found)
            return false;
        words += len;
    }
    return true;
}

static size_t indent_of(const char *line)
{
    return strspn(line, " ");
}

/* Returns the end of the entry that begins at `text`. */
static const char *entry_end(const char *text)
{
    size_t indent = indent_of(text);
    const char *line = strchr(text, '\n');

    if (line && (line == text || line[-1] == ':' || strchr("|#", text[indent]) ||
                 !strncmp(text + indent, "- ", 2)))
        return line + 1; /* an empty line, a heading, a row of a table or an item of a list */
    while (line && line[1] && line[1] != '\n' &&
           (indent_of(line + 1) > indent || (!indent && indent_of(line + 1) == 0)))
        line = strchr(line + 1, '\n');
    return line ? line + 1 : text + strlen(text);
}

/* A line without the marks of Markdown: the cells of a row of a table are joined. */
static void print_line(struct help_search *s, const char *line, size_t n)
{
    bool row = n && *line == '|', written = false;
    size_t cell;

    fputs("  ", s->to);
    for (size_t i = 0; i < n; i += cell + row) {
        cell = row ? strcspn(line + i, "|\n") : n;
        if (strspn(line + i, " ") < cell) {
            const char *text = line + i + (row ? strspn(line + i, " ") : 0);
            int len = (int)(line + i + cell - text);

            while (row && len && text[len - 1] == ' ')
                len--;
            fprintf(s->to, "%s%.*s", written ? ": " : "", len, text);
            written = true;
        }
    }
    fputc('\n', s->to);
}

/* `text` is the output of a help command for `topic`. */
static void search_text(struct help_search *s, const char *topic, const char *text)
{
    const char *heading = NULL; /* in Markdown: a heading that is still to be printed */
    bool named = false;

    for (const char *end; *text; text = end) {
        end = entry_end(text);
        if (!strncmp(text, "## ", 3))
            heading = text + 3;
        if (*text == '\n' || !has_words(text, (size_t)(end - text), s->words))
            continue;
        if (!named)
            fprintf(s->to, "%s%s\n", s->found ? "\n" : "", topic);
        if (heading)
            fprintf(s->to, "  %.*s\n", (int)strcspn(heading, "\n"), heading);
        heading = NULL;
        named = true;
        s->found++;
        for (const char *line = text; line < end; line += strcspn(line, "\n") + 1)
            print_line(s, line, strcspn(line, "\n"));
    }
}

/* Returns the text of the page of findings; NULL if there is no memory, or no room for a file. */
static char *findings_text(void)
{
    FILE *file = tmpfile();
    char *text = NULL;
    long n = 0;

    if (file && rp_findings_markdown(fileno(file), NULL) == RP_OK)
        n = lseek(fileno(file), 0, SEEK_END);
    if (n > 0 && (text = malloc((size_t)n + 1))) {
        n = pread(fileno(file), text, (size_t)n, 0);
        text[n > 0 ? n : 0] = '\0';
    }
    if (file)
        fclose(file);
    return text;
}

static void search_command(struct help_search *s, size_t i)
{
    struct cli_command command = cli_command_at(i);
    char *text = NULL, topic[64];
    size_t n = 0;
    FILE *memory = open_memstream(&text, &n);

    if (!memory)
        return;
    cli_help_command(&command, memory);
    fclose(memory);
    snprintf(topic, sizeof topic, "reprise %s", command.name);
    if (text) {
        char *common = strstr(text, "\ncommon options:"); /* every command has the common options */

        if (common)
            *common = '\0';
        search_text(s, topic, text);
    }
    free(text);
}

bool cli_help_search(const char *words, FILE *to)
{
    struct help_search s = {words, to, 0};
    char *findings = findings_text();

    for (size_t i = 0; i < cli_command_count(); i++)
        search_command(&s, i);
    search_text(&s, "findings of report (docs/findings.md)", findings ? findings : "");
    free(findings);
    return s.found > 0;
}
