/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_IO_FIXTURES_H
#define RP_TESTS_IO_FIXTURES_H
/* Bytes, files and folders for the io tests: made on the fly, removed by the test that made them.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

struct bytes {
    uint8_t *at;
    size_t n, cap;
};

static inline struct bytes bytes_new(size_t n)
{
    struct bytes b = {malloc(n ? n : 1), n, n};

    assert_non_null(b.at);
    return b;
}

static inline void bytes_append(struct bytes *to, const void *at, size_t n)
{
    if (to->n + n > to->cap) {
        to->cap = 2 * (to->n + n);
        to->at = realloc(to->at, to->cap + 1);
        assert_non_null(to->at);
    }
    memcpy(to->at + to->n, at, n);
    to->n += n;
}

/* Text that compresses about as a trace does: words, numbers, and now and then noise. */
static inline struct bytes bytes_text(size_t n)
{
    struct bytes b = bytes_new(n);
    uint32_t seed = 12345;
    size_t at = 0;

    while (at < n) {
        char line[96];
        int len;

        seed = seed * 1664525u + 1013904223u;
        len = snprintf(line, sizeof line, "{\"name\": \"op%u\", \"ts\": %u, \"dur\": %u.%03u},\n",
                       seed >> 28, seed >> 4, (seed >> 12) & 0xfff, seed % 1000);
        for (int i = 0; i < len && at < n; i++)
            b.at[at++] = (uint8_t)line[i];
    }
    return b;
}

/* One gzip member. head: NULL or what deflateSetHeader takes. */
static inline struct bytes gzip_member(const void *at, size_t n, int level, gz_header *head)
{
    z_stream z = {0};
    struct bytes out;

    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    if (head)
        assert_int_equal(deflateSetHeader(&z, head), Z_OK);
    out = bytes_new(deflateBound(&z, n) + 512);
    z.next_in = (z_const Bytef *)(uintptr_t)at;
    z.avail_in = (uInt)n;
    z.next_out = out.at;
    z.avail_out = (uInt)out.n;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out.n = z.total_out;
    deflateEnd(&z);
    return out;
}

static inline struct bytes gzip_bytes(const void *at, size_t n)
{
    return gzip_member(at, n, 6, NULL);
}

/* A new folder under the system's temporary one; path of at least 64 bytes. */
static inline void folder_new(char *path, size_t cap)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(path, cap, "%s/rp-unit-XXXXXX", tmp && strlen(tmp) < cap - 32 ? tmp : "/tmp");
    assert_non_null(mkdtemp(path));
}

static inline int folder_remove_one(const char *path, const struct stat *st, int flag,
                                    struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static inline void folder_remove(const char *path)
{
    nftw(path, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* path = folder/name, and a file there where bytes is not NULL. */
static inline void file_put(char *path, size_t cap, const char *folder, const char *name,
                            const void *bytes, size_t n)
{
    FILE *f;

    assert_true(snprintf(path, cap, "%s/%s", folder, name) < (int)cap);
    if (!bytes)
        return;
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline struct bytes file_get(const char *path)
{
    struct bytes b = bytes_new(0);
    FILE *f = fopen(path, "rb");
    char part[4096];
    size_t n;

    assert_non_null(f);
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        bytes_append(&b, part, n);
    fclose(f);
    return b;
}

/* A thread's work: data into fd in pieces, then fd is closed. */
struct writer {
    int fd;
    const struct bytes *data;
    size_t piece;
};

static inline void *write_pieces(void *arg)
{
    struct writer *w = arg;

    for (size_t at = 0; at < w->data->n; at += w->piece) {
        size_t n = w->data->n - at < w->piece ? w->data->n - at : w->piece;

        if (write(w->fd, w->data->at + at, n) != (ssize_t)n)
            break;
    }
    close(w->fd);
    return NULL;
}

#endif
