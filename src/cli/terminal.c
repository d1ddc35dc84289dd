/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses color and width of the output: by option, otherwise by environment, otherwise by the kind
   of the descriptor. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool cli_use_color(const char *when, int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    if (when && !strcmp(when, "always"))
        return true;
    if (when && !strcmp(when, "never"))
        return false;
    if ((no_color && *no_color) || (term && !strcmp(term, "dumb")))
        return false;
    return isatty(fd);
}

/* Whether the locale of the environment uses UTF-8. */
static bool uses_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);

        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

int cli_ascii(void)
{
    return !uses_utf8();
}

int cli_bars(int fd)
{
    const char *term = getenv("TERM");

    if (!isatty(fd) || (term && !strcmp(term, "dumb")))
        return 0;
    return uses_utf8() ? 2 : 1;
}

int cli_width(int fd)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;

    if (columns && atol(columns) > 0 && atol(columns) <= 1000)
        return atol(columns) < 40 ? 40 : (int)atol(columns);
    if (isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col >= 40)
        return size.ws_col;
    return isatty(fd) ? 80 : 120; /* a file or a pipe has room for longer names */
}
