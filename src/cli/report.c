/* SPDX-License-Identifier: Apache-2.0 */
/* Prints error messages on stderr. */
#include "cli/cli.h"
#include "cli/record.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* File names may contain anything: control characters are shown as \xNN, including those of two
   bytes (U+0080 to U+009F), and line ends that no blank follows, unlike ours. */
static void print_error(const struct rp_err *err)
{
    fputs("reprise: ", stderr);
    for (const unsigned char *c = (const unsigned char *)err->text; *c; c++) {
        if ((*c < ' ' && !(*c == '\n' && c[1] == ' ')) || *c == 0x7f)
            fprintf(stderr, "\\x%02x", *c);
        else if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
            fprintf(stderr, "\\xc2\\x%02x", *++c);
        else
            fputc(*c, stderr);
    }
    fputc('\n', stderr);
}

int cli_fail(enum rp_code code, const struct rp_err *err)
{
    if (err->text[0])
        print_error(err);
    else
        fprintf(stderr, "reprise: %s\n", rp_code_text(code));
    if (code == RP_BUG)
        fputs("reprise: this is a defect of reprise; please report it\n", stderr);
    return rp_code_exit_status(code);
}

int cli_usage(const char *command, const struct rp_err *err)
{
    print_error(err);
    fprintf(stderr, "try 'reprise help%s%s'\n", *command ? " " : "", command);
    return rp_code_exit_status(RP_USAGE);
}

int cli_finish_stdout(void)
{
    if (!fflush(stdout) && !ferror(stdout))
        return 0;
    fprintf(stderr, "reprise: cannot write 'standard output': %s\n", strerror(errno));
    return rp_code_exit_status(RP_IO);
}

int cli_unknown_command(const char *name)
{
    char path[PATH_MAX];
    const char *words[64];
    struct rp_err err = RP_ERR_INIT;
    size_t i, n = cli_command_count();

    for (i = 0; i < n && i < 63; i++)
        words[i] = cli_command_at(i).name;
    words[i] = NULL;
    const char *near = rp_closest_word(name, words);
    if (!access(name, R_OK)) {
        bool python = strlen(name) > 3 && !strcmp(name + strlen(name) - 3, ".py");

        snprintf(err.text, sizeof err.text, "'%s' is an input, not a command; try 'reprise %s%s'",
                 name, python ? "record -- python " : "report ", name);
        return cli_usage("", &err);
    }
    if (!near && record_find_program(name, path, sizeof path)) {
        snprintf(err.text, sizeof err.text,
                 "'%s' is a program, not a command; try 'reprise record -- %s …'", name, name);
        return cli_usage("", &err);
    }
    snprintf(err.text, sizeof err.text, "there is no command '%s'%s%s%s", name,
             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return cli_usage("", &err);
}
