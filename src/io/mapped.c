/* SPDX-License-Identifier: Apache-2.0 */
/* Reads whole files: one open, one fstat, then a mapping or one read; the descriptor is closed at
   once. */
#include "io/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES (64u << 10) /* smaller files are read, not mapped */

static enum rp_code read_all(int fd, const char *path, struct rp_mapped *out, struct rp_err *err)
{
    uint8_t *to = malloc(out->n ? out->n : 1);
    size_t done = 0;

    RP_TRY(rp_err_need(to, err, "reading a file"));
    while (done < out->n) {
        ssize_t got = pread(fd, to + done, out->n - done, (off_t)done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            enum rp_code code = rp_err_set_os(err, errno, "cannot read '%s'", path);

            free(to);
            return code;
        }
        if (got == 0)
            break; /* somebody cut it */
        done += (size_t)got;
    }
    out->at = to;
    out->n = done;
    return RP_OK;
}

static enum rp_code take(int fd, const char *path, uint64_t most, bool map, struct rp_mapped *out,
                         struct rp_err *err)
{
    struct stat st;

    if (fstat(fd, &st))
        return rp_err_set_os(err, errno, "cannot open '%s'", path);
    if (!S_ISREG(st.st_mode))
        return rp_err_set(err, RP_IO, "'%s' is not a file", path);
    if ((uint64_t)st.st_size > most)
        return rp_err_set(err, RP_LIMIT, "'%s' is longer than the limit input_bytes (%llu bytes)",
                          path, (unsigned long long)most);
    out->n = (size_t)st.st_size;
    if (map && out->n >= READ_BYTES) {
        void *at = mmap(NULL, out->n, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at != MAP_FAILED) {
            madvise(at, out->n, MADV_SEQUENTIAL);
            out->at = at;
            out->is_mapping = true;
            return RP_OK;
        }
    }
    return read_all(fd, path, out, err);
}

static enum rp_code open_whole(const char *path, uint64_t most, bool map, struct rp_mapped *out,
                               bool *missing, struct rp_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    *out = (struct rp_mapped){0};
    if (missing)
        *missing = fd < 0 && errno == ENOENT;
    if (fd < 0)
        return rp_err_set_os(err, errno, "cannot open '%s'", path);
    enum rp_code code = take(fd, path, most, map, out, err);
    close(fd);
    return code;
}

enum rp_code rp_mapped_open(const char *path, uint64_t most, struct rp_mapped *out, bool *missing,
                            struct rp_err *err)
{
    return open_whole(path, most, true, out, missing, err);
}

enum rp_code rp_mapped_copy(const char *path, uint64_t most, struct rp_mapped *out,
                            struct rp_err *err)
{
    return open_whole(path, most, false, out, NULL, err);
}

void rp_mapped_close(struct rp_mapped *m)
{
    if (m->is_mapping)
        munmap((void *)(uintptr_t)m->at, m->n);
    else
        free((void *)(uintptr_t)m->at);
    *m = (struct rp_mapped){0};
}
