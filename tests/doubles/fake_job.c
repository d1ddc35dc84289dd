/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank of a job that trains without end: steps of the double of gloo (libtorch_cpu.so), whose
 * ranks wait for each other in a barrier of shared memory, $MEET. A rank loads input, computes and
 * meets the others. What the file $MEET.late says ("RANK input|compute MICROSECONDS [EVERY
 * [TIMES]]") is added to one rank while it runs: in every step, or in each so many, each TIMES as
 * long; the job ends when $MEET.end is there, or after the number of steps that is its argument.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../include/reprise/record.h"

#ifdef LIBRARY
void _ZN4gloo7barrierERNS_14BarrierOptionsE(pthread_barrier_t **options);
void _ZN4gloo7barrierERNS_14BarrierOptionsE(pthread_barrier_t **options)
{
    pthread_barrier_wait(*options);
}

/* As torch.distributed calls gloo: from inside the library. */
void meet_all(pthread_barrier_t **options);
void meet_all(pthread_barrier_t **options)
{
    _ZN4gloo7barrierERNS_14BarrierOptionsE(options);
}
#else
#include <dlfcn.h>
#include <stdbool.h>

#define INPUT_US   1000
#define COMPUTE_US 8000

static void pause_us(long us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

/* The barrier is there when the first rank has made it. */
static pthread_barrier_t *barrier_of(const char *path, int rank, int size)
{
    pthread_barrierattr_t shared;
    char made[4096];
    pthread_barrier_t *b;
    int fd;

    snprintf(made, sizeof made, "%s.made", path);
    while (rank && access(made, F_OK))
        usleep(1000);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *b))
        return NULL;
    b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (b == MAP_FAILED)
        return NULL;
    if (!rank) {
        pthread_barrierattr_init(&shared);
        pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
        pthread_barrier_init(b, &shared, (unsigned)size);
        close(open(made, O_WRONLY | O_CREAT, 0600));
    }
    return b;
}

static long late_us(const char *path, int rank, const char *what, long step)
{
    char text[128] = "", word[16] = "";
    int who = -1, fd = open(path, O_RDONLY);
    long us = 0, every = 1, times = 1;
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;

    if (fd >= 0)
        close(fd);
    if (n <= 0 || sscanf(text, "%d %15s %ld %ld %ld", &who, word, &us, &every, &times) < 3 ||
        who != rank || strcmp(word, what) != 0 || every <= 0 || step % every != 0)
        return 0;
    for (long i = 0; times > 1 && i < step / every; i++)
        us *= times;
    return us;
}

int main(int argc, char **argv)
{
    const char *meet = getenv("MEET"), *rank = getenv("RANK"), *size = getenv("WORLD_SIZE");
    long steps = argc > 1 ? atol(argv[1]) : 1L << 40;
    void *library = dlopen("./libtorch_cpu.so", RTLD_NOW | RTLD_LOCAL);
    void (*barrier)(pthread_barrier_t **) = NULL;
    char late[4096], end[4096];
    pthread_barrier_t *b;
    bool ended = false;

    if (library)
        *(void **)&barrier = dlsym(library, "meet_all");
    if (!meet || !rank || !size || !barrier)
        return puts("needs MEET, RANK, WORLD_SIZE and ./libtorch_cpu.so");
    b = barrier_of(meet, atoi(rank), atoi(size));
    if (!b)
        return puts("no shared memory");
    snprintf(late, sizeof late, "%s.late", meet);
    snprintf(end, sizeof end, "%s.end", meet);
    for (long i = 0; i < steps && !ended; i++) {
        RP_RANGE_BEGIN("step");
        RP_RANGE_BEGIN("load_batch");
        pause_us(INPUT_US + late_us(late, atoi(rank), "input", i));
        RP_RANGE_END();
        pause_us(COMPUTE_US + late_us(late, atoi(rank), "compute", i));
        ended = !access(end, F_OK) && i % 64 == 63; /* all of them see it in the same step */
        barrier(&b);
        RP_RANGE_END();
    }
    return 0;
}
#endif
