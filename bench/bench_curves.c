/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs commands of reprise one after another, each in a child of this process, for bench/run
 * --curves. Under `valgrind --tool=none --stats=yes` a child says at its end how many blocks of
 * instructions were executed. What valgrind translated before the fork is not translated again, so
 * that a command is first run here on a small input; a process of its own for each would mostly
 * start and translate.
 *
 *     stdin:   here|child<TAB>COMMAND<TAB>ARGUMENT...      "child" alone: a child that ends at once
 *     stdout:  PID STATUS PEAK_KIB
 */
int reprise_main(int argc, char **argv);
#define main reprise_main
#include "cli/main.c"
#undef main

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 256

/* Splits the line at its tabs; the first word is replaced by the name of the program. */
static int split_line(char *line, char *argv[WORDS + 1])
{
    int argc = 0;

    for (char *word = strtok(line, "\t\n"); word && argc < WORDS; word = strtok(NULL, "\t\n"))
        argv[argc++] = word;
    argv[argc] = NULL;
    return argc;
}

static void run_child(int argc, char **argv, FILE *answers)
{
    struct rusage usage;
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) /* exit() would move the offset of stdin, which parent and child share */
        _exit(argc > 1 ? reprise_main(argc, argv) : 0);
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid) {
        perror("bench_curves");
        exit(4);
    }
    status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    fprintf(answers, "%d %d %ld\n", (int)pid, status, usage.ru_maxrss);
}

int main(void)
{
    FILE *answers = fdopen(dup(STDOUT_FILENO), "w");
    char *argv[WORDS + 1], *line = NULL;
    size_t size = 0;

    if (!answers || !freopen("/dev/null", "w", stdout)) {
        perror("bench_curves");
        return 4;
    }
    while (getline(&line, &size, stdin) > 0) {
        int argc = split_line(line, argv);

        if (argc && !strcmp(argv[0], "here"))
            fprintf(answers, "%d %d 0\n", (int)getpid(), reprise_main(argc, argv));
        else
            run_child(argc, argv, answers);
        fflush(answers);
    }
    free(line);
    return 0;
}
