/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs are mapped, because a copy of a trace would take as much memory again. If somebody
 * shortens a mapped file, or its disk fails, the next access to the missing part raises SIGBUS.
 * That ends the program, as bad input, with the name of the file, which /proc/self/maps contains.
 * Everything here may be called in a signal handler.
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define BAD_INPUT 3

static bool next_line(int fd, char *line, size_t size)
{
    size_t n = 0;
    char c;

    while (read(fd, &c, 1) == 1 && c != '\n')
        if (n + 1 < size)
            line[n++] = (unsigned char)c < ' ' || c == 0x7f ? '?' : c;
    line[n] = '\0';
    return n > 0;
}

static uintptr_t read_hex(const char **at)
{
    uintptr_t value = 0;

    for (; (**at >= '0' && **at <= '9') || (**at >= 'a' && **at <= 'f'); (*at)++)
        value = value * 16 + (uintptr_t)(**at <= '9' ? **at - '0' : **at - 'a' + 10);
    return value;
}

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static void end_on_lost_file(int number, siginfo_t *info, void *context)
{
    char line[PATH_MAX + 256];

    /* Find the file of a mapping in `line`: "BEGIN-END rights offset device inode PATH"; NULL if
       there is none. */
    uintptr_t address = (uintptr_t)info->si_addr;
    size_t size = sizeof line;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    const char *path = NULL;
    while (fd >= 0 && !path && next_line(fd, line, size)) {
        const char *at = line;
        uintptr_t begin = read_hex(&at), end = *at == '-' ? (at++, read_hex(&at)) : 0;

        if (address < begin || address >= end)
            continue;
        path = strchr(line, '/');
        break;
    }
    if (fd >= 0)
        close(fd);

    (void)context;
    if (!path) {
        signal(number, SIG_DFL);
        return; /* returns to the same instruction, which now ends the program */
    }
    say("reprise: '");
    say(path);
    say("' was shortened while it was read, or its disk fails: try again when nothing writes to it\n");
    _exit(BAD_INPUT);
}

/* If a file may not become larger, the write fails, and its error removes the unfinished file. A
   handler does not outlive an exec, but an ignored signal would. */
static void go_on(int number)
{
    (void)number;
}

void cli_catch_lost_files(void)
{
    const struct sigaction action = {.sa_sigaction = end_on_lost_file, .sa_flags = SA_SIGINFO};

    sigaction(SIGBUS, &action, NULL);
    signal(SIGXFSZ, go_on);
}
