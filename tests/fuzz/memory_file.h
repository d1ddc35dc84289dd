/* SPDX-License-Identifier: Apache-2.0 */
/* A file in memory, for code that takes a path. */
#ifndef FUZZ_MEMORY_FILE_H
#define FUZZ_MEMORY_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct memory_file {
    int fd;
    char path[32];
};

static inline bool memory_file_open(struct memory_file *f, const uint8_t *data, size_t size)
{
    f->fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (f->fd < 0)
        return false;
    snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->fd);
    if (write(f->fd, data, size) == (ssize_t)size)
        return true;
    close(f->fd);
    return false;
}

static inline void memory_file_close(struct memory_file *f)
{
    close(f->fd);
}

#endif
