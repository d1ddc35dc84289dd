/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names code that the program has generated. Such programs (JIT compilers, Python with -X perf)
 * describe it in /tmp/perf-<pid>.map, which is read again if it has grown and an address was not
 * found in it. If an address has two entries, the later one counts, because memory is reused.
 */
#include "abi/elf_symbols.h"
#include "capture/sample/sample.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRIES  (1u << 20)
#define AGAIN_NS INT64_C(200000000)

static struct {
    char *text; /* mapped */
    size_t size, n, room;
    struct rp_sample_symbol *at; /* name: its place in the text */
    pid_t pid;
    int64_t looked_ns;
} map;

/* A child has another file, so what was read is forgotten. */
static void forget(void)
{
    if (map.text)
        munmap(map.text, map.size);
    if (map.at)
        munmap(map.at, map.room * sizeof *map.at);
    memset(&map, 0, sizeof map);
    map.pid = rp_sample_pid;
}

static bool map_text(void)
{
    char path[64];
    struct stat st;
    void *p = MAP_FAILED;

    snprintf(path, sizeof path, "/proc/%d/root/tmp/perf-%d.map", (int)rp_sample_pid,
             (int)rp_sample_pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size < UINT32_MAX &&
        (size_t)st.st_size != map.size) {
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            forget();
            map.text = p;
            map.size = (size_t)st.st_size;
        }
    }
    close(fd);
    return p != MAP_FAILED;
}

bool rp_sample_jit_find(uint64_t pc, int64_t now_ns, char *name, size_t size)
{
    if (map.pid != rp_sample_pid)
        forget();
    const struct rp_sample_symbol *s = rp_sample_symbols_find(map.at, map.n, pc);
    if (!s && (!map.looked_ns || now_ns - map.looked_ns >= AGAIN_NS)) {
        /* Reads all lines of the map. */
        struct rp_perf_map_line line;
        size_t lines = 0;
        map.looked_ns = now_ns;
        if (map_text()) {
            map.looked_ns = now_ns;
            const char *end = map.text + map.size;
            for (const char *at = map.text; (at = memchr(at, '\n', (size_t)(end - at))); at++)
                lines++;
            map.room = lines < ENTRIES ? lines + 1 : ENTRIES;
            map.at = rp_sample_pages(map.room * sizeof *map.at);
            for (const char *at = map.text;
                 map.at && map.n < map.room && rp_perf_map_next(&at, end, &line);)
                map.at[map.n++] = (struct rp_sample_symbol){line.start, (uint32_t)line.size,
                                                            (uint32_t)(line.name - map.text)};
            map.n = rp_sample_symbols_sort(map.at, map.n);
        }
        s = rp_sample_symbols_find(map.at, map.n, pc);
    }
    if (!s)
        return false;
    snprintf(name, size, "%.*s", (int)(map.size - s->name < 600 ? map.size - s->name : 600),
             map.text + s->name);
    for (char *c = name; *c; c++) {
        if (*c == '\n')
            *c = '\0';
        else if ((unsigned char)*c < 32)
            *c = ' '; /* because a tab separates the fields of a frame's text */
        if (!*c)
            break;
    }
    return true;
}
