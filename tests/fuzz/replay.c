/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over its corpus without libFuzzer, in every test run. Each file is given
 *
 *   as it is;
 *   cut at the Nth byte: every N of a file under 2 KiB, about 200 places of a larger one;
 *   with the Nth allocation failing, N = 1, 2, 3 ... until a run has no failure; from 400 on the
 *   steps grow, so that a file costs some hundred runs however much it allocates.
 *
 * A corpus has REPLAY_SECONDS (10) for its cuts and as much for its failing allocations, shared
 * evenly by its files; a file that has used up its share goes on in strides.
 *
 * Nothing is compared: the target must come back, without a crash, a hang or (under
 * AddressSanitizer) a leak. The input ends at an unreadable page, so reading past it is a crash in
 * any build. Allocations are caught by the linker (--wrap, see tests/CMakeLists.txt), so those made
 * inside shared libraries never fail here.
 *
 *   corpus TARGET FOLDER                      the whole corpus
 *   corpus TARGET FILE [--cut N] [--fail N]   one run, to look at what went wrong
 */
#include "targets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECONDS_PER_RUN 60 /* then it hangs */

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static const struct named_target *target; /* the one that is run */

/* Allocations until one fails: that one reaches 0 from 1. Zero and below: nothing fails. */
static atomic_long countdown;
static atomic_long failures;

static bool fails(void)
{
    if (atomic_load_explicit(&countdown, memory_order_relaxed) <= 0)
        return false;
    if (atomic_fetch_sub(&countdown, 1) != 1)
        return false;
    atomic_fetch_add(&failures, 1);
    errno = ENOMEM;
    return true;
}

/* name, result, value on failure, parameters, arguments */
#define WRAPPED(X)                                                                        \
    X(malloc, void *, NULL, (size_t n), (n))                                              \
    X(calloc, void *, NULL, (size_t n, size_t size), (n, size))                           \
    X(realloc, void *, NULL, (void *p, size_t n), (p, n))                                 \
    X(reallocarray, void *, NULL, (void *p, size_t n, size_t size), (p, n, size))         \
    X(aligned_alloc, void *, NULL, (size_t align, size_t n), (align, n))                  \
    X(posix_memalign, int, ENOMEM, (void **out, size_t align, size_t n), (out, align, n)) \
    X(strdup, char *, NULL, (const char *s), (s))                                         \
    X(strndup, char *, NULL, (const char *s, size_t n), (s, n))                           \
    X(vasprintf, int, -1, (char **out, const char *fmt, va_list args), (out, fmt, args))

#define WRAP(name, type, failed, params, args)        \
    type __real_##name params;                        \
    type __wrap_##name params;                        \
    type __wrap_##name params                         \
    {                                                 \
        return fails() ? failed : __real_##name args; \
    }
WRAPPED(WRAP)

void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__real_mremap(void *at, size_t old, size_t n, int flags, ...);
void *__wrap_mremap(void *at, size_t old, size_t n, int flags, ...);

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if ((flags & MAP_ANONYMOUS) && fails())
        return MAP_FAILED;
    return __real_mmap(at, n, prot, flags, fd, offset);
}

void *__wrap_mremap(void *at, size_t old, size_t n, int flags, ...)
{
    void *to = NULL;
    va_list args;

    if (flags & MREMAP_FIXED) {
        va_start(args, flags);
        to = va_arg(args, void *);
        va_end(args);
    }
    return fails() ? MAP_FAILED : __real_mremap(at, old, n, flags, to);
}

/* What is being run, told when it dies. */
static char now[4200];
static volatile sig_atomic_t told;

static void tell(void)
{
    if (!told && now[0]) {
        told = 1;
        if (write(STDERR_FILENO, now, strlen(now)) < 0)
            _exit(1);
    }
}

static void on_signal(int number)
{
    tell();
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_for_death(void)
{
    static const int numbers[] = {SIGILL, SIGABRT, SIGALRM, SIGSEGV, SIGBUS, SIGFPE};
    size_t i, n = sizeof numbers / sizeof numbers[0];

    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(tell);
        n = 3; /* a sanitizer has handlers of its own for the others */
    }
    for (i = 0; i < n; i++)
        signal(numbers[i], on_signal);
}

/* A file's bytes at the end of a mapping, with an unreadable page behind. */
struct place {
    uint8_t *map, *end;
    size_t map_bytes, size;
};

static bool place_read(struct place *place, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room;
    struct stat st;
    bool ok;

    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        fprintf(stderr, "corpus: cannot read '%s'\n", path);
        exit(2);
    }
    place->size = (size_t)st.st_size;
    room = (place->size + page - 1) / page * page;
    place->map_bytes = room + page;
    place->map = __real_mmap(NULL, place->map_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place->map == MAP_FAILED) {
        close(fd);
        return false;
    }
    place->end = place->map + room;
    ok = read(fd, place->end - place->size, place->size) == st.st_size &&
         mprotect(place->end, page, PROT_NONE) == 0;
    close(fd);
    return ok;
}

/* The first `len` bytes moved up against the unreadable page; len may only become smaller. */
static const uint8_t *place_cut(struct place *place, size_t len)
{
    uint8_t *from = place->end - place->size;

    memmove(place->end - len, from, len);
    place->size = len;
    return place->end - len;
}

struct counts {
    unsigned long inputs, cuts, failed;
    int64_t share_ns; /* of the time, for each file's cuts and for its failing allocations */
};

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* One run; returns whether an allocation was made to fail. */
static bool run_one(const char *path, const uint8_t *data, size_t size, const char *how, long fail)
{
    if (fail)
        snprintf(now, sizeof now, "corpus: died in %s --fail %ld\n", path, fail);
    else
        snprintf(now, sizeof now, "corpus: died in %s%s%zu\n", path, how, size);
    alarm(SECONDS_PER_RUN);
    atomic_store(&failures, 0);
    atomic_store(&countdown, fail);
    target->run(data, size);
    atomic_store(&countdown, 0);
    alarm(0);
    now[0] = '\0';
    return atomic_load(&failures) > 0;
}

static void run_cuts(const char *path, struct place *place, struct counts *counts)
{
    size_t len = place->size, stride = len / 30 + 1;
    size_t step = len < 2048 ? 1 : len / 200;
    int64_t stop_ns = now_ns() + counts->share_ns;

    while (len > 0) {
        if (now_ns() > stop_ns && step < stride)
            step = stride;
        len = len > step ? len - step : 0;
        run_one(path, place_cut(place, len), len, " --cut ", 0);
        counts->cuts++;
    }
}

static void run_failures(const char *path, const struct place *place, struct counts *counts)
{
    int64_t stop_ns = now_ns() + counts->share_ns;
    long n = 1;

    while (run_one(path, place->end - place->size, place->size, "", n)) {
        counts->failed++;
        if (now_ns() > stop_ns)
            n += n < 10 ? 1 : n / 2;
        else
            n += n < 400 ? 1 : n / 40;
    }
}

static void run_file(const char *path, struct counts *counts)
{
    struct place place = {0};

    if (!place_read(&place, path)) {
        fprintf(stderr, "corpus: no memory for '%s'\n", path);
        exit(2);
    }
    run_one(path, place.end - place.size, place.size, " --cut ", 0);
    run_failures(path, &place, counts);
    run_cuts(path, &place, counts);
    counts->inputs++;
    munmap(place.map, place.map_bytes);
    if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check()) {
        fprintf(stderr, "corpus: memory leaked in a run of %s\n", path);
        _exit(1);
    }
}

static int run_folder(const char *folder)
{
    const char *seconds = getenv("REPLAY_SECONDS");
    struct counts counts = {0};
    struct dirent **entry = NULL;
    int i, n = scandir(folder, &entry, NULL, alphasort);
    char path[4096];

    counts.share_ns = (seconds ? atol(seconds) : 10) * 1000000000 / (n > 0 ? n : 1);
    for (i = 0; i < n; i++) {
        if (entry[i]->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
            run_file(path, &counts);
        }
        free(entry[i]);
    }
    free(entry);
    if (!counts.inputs)
        fprintf(stderr, "corpus: no corpus in '%s'\n", folder);
    printf("fuzz_%s: %lu inputs, %lu cuts, %lu failed allocations\n", target->name, counts.inputs,
           counts.cuts, counts.failed);
    return counts.inputs ? 0 : 1;
}

static int run_named(int argc, char **argv)
{
    struct place place = {0};
    long fail = 0;
    size_t len;
    int i;

    if (!place_read(&place, argv[2]))
        return 2;
    len = place.size;
    for (i = 3; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--cut"))
            len = strtoul(argv[i + 1], NULL, 0);
        else
            fail = strtol(argv[i + 1], NULL, 0);
    }
    run_one(argv[2], place_cut(&place, len < place.size ? len : place.size), len, " --cut ", fail);
    munmap(place.map, place.map_bytes);
    return 0;
}

int main(int argc, char **argv)
{
    struct stat st;

    for (target = fuzz_targets; argc > 1 && target->name && strcmp(target->name, argv[1]);)
        target++;
    if (argc < 3 || !target->name || stat(argv[2], &st)) {
        fprintf(stderr, "usage: %s TARGET (FOLDER | FILE [--cut N] [--fail N])\n", argv[0]);
        return 2;
    }
    watch_for_death();
    return S_ISDIR(st.st_mode) ? run_folder(argv[2]) : run_named(argc, argv);
}
