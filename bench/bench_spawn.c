/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command and prints what it took, for bench/run: a process begins with the peak memory of
 * the one that made it, so measuring small programs needs a small parent.
 *
 *     bench_spawn COMMAND [ARGUMENT...]  ->  stderr: spawned SECONDS PEAK_KIB STATUS
 * PROCESSOR_SECONDS
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    double begin = now();
    struct rusage usage;
    int status = 0;
    pid_t pid;

    if (argc < 2) {
        fprintf(stderr, "usage: bench_spawn COMMAND [ARGUMENT...]\n");
        return 2;
    }
    pid = fork();
    if (pid == 0) {
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid) {
        perror("bench_spawn");
        return 4;
    }
    status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    fprintf(stderr, "\nspawned %.6f %ld %d %.6f\n", now() - begin, usage.ru_maxrss, status,
            seconds(usage.ru_utime) + seconds(usage.ru_stime));
    return status;
}
