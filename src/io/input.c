/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs. Three parts in a row: a feed provides the bytes of the file (its buffer is refilled with
 * read(2); memory is one window), a codec decompresses them, and a small buffer holds what was
 * peeked at but not consumed.
 *
 *     feed (256 KiB) -> codec -> [ahead, 64 KiB] -> caller
 *
 * Plain regular files are mapped as well, for callers that want the whole content. Reading does not
 * go through the mapping: read(2) is as fast, keeps the resident size small and cannot end in
 * SIGBUS when the file is truncated meanwhile. Large reads go directly into the caller's buffer.
 * Memory: 320 KiB and the codec's state for any input; more only by slurp.
 */
#include "io/input.h"
#include "base/each.h"
#include "base/vec.h"
#include "io/inflate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FEED_BYTES  ((size_t)256 << 10)
#define AHEAD_BYTES ((size_t)64 << 10)
#define MAGIC_BYTES 6

struct rp_input {
    char *name;
    struct rp_limits limits;
    struct rp_feed feed;
    const struct rp_codec *codec; /* NULL: plain */
    void *codec_state;
    struct rp_codec_end how;
    bool ended;
    struct rp_err failure; /* once it is set, every read fails with it */

    int fd; /* -1: memory */
    bool own_fd;
    uint8_t *buffer;      /* of the feed, for descriptors */
    uint64_t file_size;   /* 0: not known */
    const uint8_t *whole; /* memory given by the caller, or the mapping */
    size_t whole_n;
    void *mapping; /* the mapping of whole_n bytes that is to be unmapped */

    uint64_t produced, consumed; /* decompressed bytes: those decoded, and those returned */
    uint8_t *ahead;
    size_t ahead_at, ahead_n;
    RP_VEC(uint8_t) held; /* what slurp read */
    const uint8_t *slurped;
    size_t slurped_n;
    const struct rp_beside *beside;
    size_t nbeside;
};

static enum rp_code new_input(const char *name, const struct rp_limits *limits,
                              struct rp_input **out, struct rp_err *err)
{
    struct rp_input *in = calloc(1, sizeof *in);

    if (in)
        in->name = strdup(name);
    if (!in || !in->name) {
        free(in);
        return rp_err_nomem(err, "opening an input");
    }
    in->limits = limits ? *limits : RP_LIMITS_DEFAULT;
    in->fd = -1;
    *out = in;
    return RP_OK;
}

void rp_input_close(struct rp_input *in)
{
    if (!in)
        return;
    if (in->codec_state)
        in->codec->close(in->codec_state);
    if (in->mapping)
        munmap(in->mapping, in->whole_n);
    if (in->own_fd)
        close(in->fd);
    rp_vec_release(&in->held);
    RP_EACH(free, in->buffer, in->ahead, in->name, in);
}

/* Reads by read(2), but waits on non-blocking descriptors and continues after signals. */
static ssize_t read_fd(int fd, void *buf, size_t n)
{
    for (;;) {
        ssize_t got = read(fd, buf, n);

        if (got >= 0)
            return got;
        if (errno == EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
        else if (errno != EINTR)
            return -1;
    }
}

/* The buffer is [ the last bytes consumed | bytes just read ], so that decoders can step back. */
static enum rp_code feed_from_fd(struct rp_feed *feed, struct rp_err *err)
{
    struct rp_input *in = feed->user;
    uint8_t *start = in->buffer + RP_FEED_BACK;

    memmove(in->buffer, feed->end - RP_FEED_BACK, RP_FEED_BACK);
    ssize_t got = read_fd(in->fd, start, FEED_BYTES);
    if (got < 0)
        return rp_err_set_os(err, errno, "cannot read '%s' at byte %llu", in->name,
                             (unsigned long long)feed->end_offset);
    feed->at = start;
    feed->end = start + got;
    feed->end_offset += (uint64_t)got;
    return RP_OK;
}

static enum rp_code start_codec(struct rp_input *in, const struct rp_codec *codec,
                                struct rp_err *err)
{
    if (codec->missing)
        return rp_err_set(err, RP_MISSING,
                          "'%s' is compressed with %s, which needs %s: install it and build again, "
                          "or decompress the file first",
                          in->name, codec->name, codec->missing);
    in->codec = codec;
    return codec->open(&in->codec_state, err);
}

static enum rp_code too_long(const struct rp_input *in, struct rp_err *err)
{
    return rp_err_set_at(err, RP_LIMIT, in->limits.input_bytes,
                         "'%s' is longer than the limit input_bytes (%llu bytes decompressed): "
                         "raise the limit to read it",
                         in->name, (unsigned long long)in->limits.input_bytes);
}

/* Sets plain content that is known in full before anything is read. */
static enum rp_code set_whole(struct rp_input *in, const void *bytes, size_t n, struct rp_err *err)
{
    in->whole = bytes;
    in->whole_n = n;
    return n > in->limits.input_bytes ? too_long(in, err) : RP_OK;
}

static enum rp_code open_fd(struct rp_input *in, const char *path, struct rp_err *err)
{
    struct stat st;

    in->own_fd = strcmp(path, "-") != 0;
    in->fd = in->own_fd ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : STDIN_FILENO;
    if (in->fd < 0) {
        in->own_fd = false;
        return rp_err_set_os(err, errno, "cannot open '%s'", in->name);
    }
    if (fstat(in->fd, &st) != 0)
        return rp_err_set_os(err, errno, "cannot open '%s'", in->name);
    if (S_ISDIR(st.st_mode))
        return rp_err_set(err, RP_IO, "cannot read '%s': it is a folder, name the file inside it",
                          in->name);
    bool from_start = S_ISREG(st.st_mode) && lseek(in->fd, 0, SEEK_CUR) == 0;
    in->file_size = from_start ? (uint64_t)st.st_size : 0;

    /* Reads enough bytes for a magic number, if the file has them. */
    struct rp_feed *feed = &in->feed;
    size_t n = 0;
    in->buffer = calloc(1, RP_FEED_BACK + FEED_BYTES);
    RP_TRY(rp_err_need(in->buffer, err, "opening an input"));
    while (n < MAGIC_BYTES) {
        ssize_t got = read_fd(in->fd, in->buffer + RP_FEED_BACK + n, FEED_BYTES - n);
        if (got < 0)
            return rp_err_set_os(err, errno, "cannot read '%s'", in->name);
        if (got == 0)
            break;
        n += (size_t)got;
    }
    *feed = (struct rp_feed){.at = in->buffer + RP_FEED_BACK,
                             .end = in->buffer + RP_FEED_BACK + n,
                             .end_offset = n,
                             .more = feed_from_fd,
                             .user = in};
    const struct rp_codec *codec = rp_codec_find(in->feed.at, (size_t)(in->feed.end - in->feed.at));
    if (codec)
        return start_codec(in, codec, err);
    if (in->file_size == 0 || in->file_size > SIZE_MAX)
        return RP_OK;
    void *at = mmap(NULL, (size_t)in->file_size, PROT_READ, MAP_PRIVATE, in->fd, 0);
    if (at == MAP_FAILED) /* some file systems cannot map files, but reading always works */
        return RP_OK;
    madvise(at, (size_t)in->file_size, MADV_SEQUENTIAL);
    in->mapping = at;
    return set_whole(in, at, (size_t)in->file_size, err);
}

enum rp_code rp_input_open(const char *path, const struct rp_limits *limits, struct rp_input **out,
                           struct rp_err *err)
{
    struct rp_input *in;

    *out = NULL;
    RP_TRY(new_input(strcmp(path, "-") == 0 ? "(standard input)" : path, limits, &in, err));
    enum rp_code code = open_fd(in, path, err);
    if (code != RP_OK) {
        rp_input_close(in);
        return code;
    }
    *out = in;
    return RP_OK;
}

enum rp_code rp_input_open_memory(const char *name, const void *bytes, size_t n,
                                  const struct rp_limits *limits, struct rp_input **out,
                                  struct rp_err *err)
{
    const struct rp_codec *codec = n > 0 ? rp_codec_find(bytes, n) : NULL;
    const uint8_t *at = n > 0 ? bytes : (const uint8_t *)"";
    struct rp_input *in;

    *out = NULL;
    RP_TRY(new_input(name, limits, &in, err));
    in->feed = (struct rp_feed){.at = at, .end = at + n, .end_offset = n};
    in->file_size = n;
    enum rp_code code = codec ? start_codec(in, codec, err) : set_whole(in, at, n, err);
    if (code != RP_OK) {
        rp_input_close(in);
        return code;
    }
    *out = in;
    return RP_OK;
}

enum rp_code rp_input_set_codec(struct rp_input *in, const struct rp_codec *codec,
                                struct rp_err *err)
{
    void *old = in->codec_state;

    if (!in->codec || strcmp(in->codec->name, codec->name) != 0 || in->produced > 0)
        return rp_err_set(err, RP_USAGE, "'%s' cannot be read with another codec", in->name);
    in->codec_state = NULL;
    enum rp_code code = start_codec(in, codec, err);
    if (code != RP_OK)
        in->codec_state = old;
    else
        codec->close(old);
    return code;
}

void rp_input_set_beside(struct rp_input *in, const struct rp_beside *files, size_t n)
{
    in->beside = files;
    in->nbeside = n;
}

const struct rp_beside *rp_input_borrow_beside(const struct rp_input *in, size_t *n)
{
    *n = in->nbeside;
    return in->beside;
}

const char *rp_input_borrow_name(const struct rp_input *in)
{
    return in->name;
}

/* Reads uncompressed bytes; large reads bypass the buffer of the feed. */
static enum rp_code read_plain(struct rp_input *in, uint8_t *out, size_t cap, size_t *got,
                               struct rp_err *err)
{
    struct rp_feed *feed = &in->feed;
    size_t have = (size_t)(feed->end - feed->at);

    if (have == 0 && in->fd >= 0 && cap >= AHEAD_BYTES) {
        ssize_t n = read_fd(in->fd, out, cap);
        if (n < 0)
            return rp_err_set_os(err, errno, "cannot read '%s' at byte %llu", in->name,
                                 (unsigned long long)feed->end_offset);
        feed->end_offset += (uint64_t)n;
        *got = (size_t)n;
        return RP_OK;
    }
    if (have == 0) {
        bool empty;

        RP_TRY(rp_feed_fill(feed, &empty, err));
        have = (size_t)(feed->end - feed->at);
    }
    *got = have < cap ? have : cap;
    memcpy(out, feed->at, *got);
    feed->at += *got;
    return RP_OK;
}

/*
 * Decodes up to cap bytes into out and notes how the input ended. A failure is kept in in->failure
 * until the bytes before it are consumed.
 */
static size_t produce_bytes(struct rp_input *in, uint8_t *out, size_t cap)
{
    uint64_t left = in->limits.input_bytes - in->produced;
    size_t got = 0;

    if (in->ended || in->failure.code != RP_OK)
        return 0;
    if (cap > left)
        cap = (size_t)left + 1; /* reads one byte more, to detect inputs over the limit */
    enum rp_code code = in->codec ? in->codec->read(in->codec_state, &in->feed, out, cap, &got,
                                                    &in->how, &in->failure)
                                  : read_plain(in, out, cap, &got, &in->failure);
    if (code == RP_OK && got == 0)
        in->ended = true;
    if (got > left) {
        too_long(in, &in->failure);
        got = (size_t)left;
        code = RP_OK;
    }
    in->produced += got;
    if (code != RP_OK) {
        /* Adds the decompressed offset and the file name, which the codec does not know. */
        if (code != RP_IO && code != RP_NOMEM) {
            rp_err_prefix(&in->failure, code, "'%s', decompressed byte %llu", in->name,
                          (unsigned long long)in->produced);
            in->failure.offset = in->produced;
        }
    }
    return got;
}

static enum rp_code input_failed(const struct rp_input *in, struct rp_err *err)
{
    if (err)
        *err = in->failure;
    return in->failure.code;
}

/* Buffers at least `want` bytes, or as many as come before the end or a failure. */
static enum rp_code fill_ahead(struct rp_input *in, size_t want, struct rp_err *err)
{
    if (!in->ahead)
        in->ahead = malloc(AHEAD_BYTES + 1);
    RP_TRY(rp_err_need(in->ahead, err, "reading an input"));
    if (in->ahead_at + want > AHEAD_BYTES || in->ahead_n == 0) {
        memmove(in->ahead, in->ahead + in->ahead_at, in->ahead_n);
        in->ahead_at = 0;
    }
    while (in->ahead_n < want) {
        size_t end = in->ahead_at + in->ahead_n;
        size_t got = produce_bytes(in, in->ahead + end, AHEAD_BYTES - end);

        if (got == 0)
            break;
        in->ahead_n += got;
    }
    return RP_OK;
}

enum rp_code rp_input_read(struct rp_input *in, void *buf, size_t cap, size_t *got,
                           struct rp_err *err)
{
    *got = 0;
    if (cap == 0)
        return RP_OK;
    if (in->ahead_n == 0 && cap < AHEAD_BYTES)
        RP_TRY(fill_ahead(in, 1, err));
    if (in->ahead_n > 0) {
        *got = in->ahead_n < cap ? in->ahead_n : cap;
        memcpy(buf, in->ahead + in->ahead_at, *got);
        in->ahead_at += *got;
        in->ahead_n -= *got;
    } else {
        *got = produce_bytes(in, buf, cap);
    }
    in->consumed += *got;
    return *got == 0 && in->failure.code != RP_OK ? input_failed(in, err) : RP_OK;
}

enum rp_code rp_input_peek(struct rp_input *in, size_t want, const uint8_t **bytes, size_t *n,
                           struct rp_err *err)
{
    *bytes = (const uint8_t *)"";
    *n = 0;
    if (want > AHEAD_BYTES)
        want = AHEAD_BYTES;
    if (in->ahead_n < want)
        RP_TRY(fill_ahead(in, want, err));
    if (in->ahead_n > 0)
        *bytes = in->ahead + in->ahead_at;
    *n = in->ahead_n < want ? in->ahead_n : want;
    return RP_OK;
}

const uint8_t *rp_input_borrow_mapped(const struct rp_input *in, size_t *n)
{
    *n = in->whole ? in->whole_n : 0;
    return in->whole;
}

void rp_input_release_before(const struct rp_input *in, size_t offset)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (in->mapping && offset <= in->whole_n)
        madvise(in->mapping, offset & ~(page - 1), MADV_DONTNEED);
}

enum rp_code rp_input_slurp(struct rp_input *in, const uint8_t **bytes, size_t *n,
                            struct rp_err *err)
{
    *bytes = NULL;
    *n = 0;
    if (!in->slurped) {
        if (in->whole) {
            /* Returns the rest of the mapping; later reads are at the end. */
            size_t from = in->consumed < in->whole_n ? (size_t)in->consumed : in->whole_n;
            in->slurped = in->whole + from;
            in->slurped_n = in->whole_n - from;
            in->consumed = in->produced = in->whole_n;
            in->ahead_n = 0;
            in->feed.at = in->feed.end;
            in->feed.end_offset = in->whole_n;
            in->ended = true;
        } else {
            /* Reads until the end. */
            size_t got;
            do {
                RP_TRY(rp_vec_reserve(&in->held, FEED_BYTES, err));
                RP_TRY(rp_input_read(in, in->held.at + in->held.n, in->held.cap - in->held.n, &got,
                                     err));
                in->held.n += got;
            } while (got > 0);
            in->slurped = in->held.at;
            in->slurped_n = in->held.n;
        }
    }
    *bytes = in->slurped;
    *n = in->slurped_n;
    return RP_OK;
}

bool rp_input_truncated(const struct rp_input *in)
{
    return in->how.truncated;
}

bool rp_input_trailing(const struct rp_input *in)
{
    return in->how.trailing;
}

const char *rp_input_compression(const struct rp_input *in)
{
    return in->codec ? in->codec->name : "";
}

uint64_t rp_input_file_size(const struct rp_input *in)
{
    return in->file_size;
}
