/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and their chunks. A chunk is a file in a shared mapping: what a thread stores there is in
 * the page cache at once and survives the death of the process. The file is created under a hidden
 * name with all its blocks allocated (so that a full disk is an error here, and not a signal at a
 * later store), the header of its first packet is written, and then it is renamed: a reader never
 * sees a packet without its header.
 *
 * The helper thread keeps one spare chunk for each busy stream, so that a thread normally pays for
 * one rename a chunk. Chunks grow from 16 KiB to 1 MiB.
 *
 * When a thread ends, the next new thread reuses its stream and continues in the same chunk with a
 * packet of its own, so that short-lived threads do not cost a file each. The new packet's header
 * is written before one store cuts the previous packet to its size, so that a reader finds both or
 * only the first. If a stream is unused for half a second, the helper replaces its last chunk by a
 * copy of the right size, if that saves enough.
 */
#include "capture/core/state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define RETRY_TICKS(s) ((s) / 1000) /* a millisecond */
#define REUSE_MIN      1024         /* bytes that a chunk must have left for one more packet */
#define TRIM_MIN       (60 << 10)   /* bytes to save: replacing a file costs a millisecond */
#define IDLE_TICKS     5            /* of the helper, until an ended stream is closed */

__thread struct rp_core_stream *rp_core_self;
__thread bool rp_core_in_helper;

/* -------------------------------------------------------------------------- chunks */

static void full_path(char *to, size_t size, const char *name)
{
    snprintf(to, size, "%s/%s", rp_core.folder, name);
}

/* A name that no other process uses, on any host. */
void rp_core_hidden_name(char *to, size_t size, const char *what)
{
    snprintf(to, size, ".%s_%u_%08x_%llu", what, rp_core.pid, rp_core_image(),
             (unsigned long long)atomic_fetch_add(&rp_core.names, 1));
}

bool rp_core_fits(size_t size)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
           limit.rlim_cur >= size;
}

/* Allocates all blocks of the file, so that no later store can fail. Returns 0 or an error. */
static int file_allocate(int fd, size_t size)
{
    static const char zeros[4096];

    if (!rp_core_fits(size))
        return EFBIG;
    if (!fallocate(fd, 0, 0, (off_t)size))
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return errno;
    for (size_t done = 0; done < size;) {
        size_t part = size - done < sizeof zeros ? size - done : sizeof zeros;
        ssize_t n = pwrite(fd, zeros, part, (off_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) /* after a short write errno is still that of fallocate */
            return n < 0 ? errno : ENOSPC;
        done += (size_t)n;
    }
    return 0;
}

static int chunk_map(struct rp_core_chunk *c, const char *path, size_t size)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644), why;

    if (fd < 0)
        return errno;
    why = file_allocate(fd, size);
    if (!why) {
        c->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        why = c->base == MAP_FAILED ? errno : 0;
    }
    if (why != EBADF) /* else the program closed it, and may have reused the number */
        close(fd);
    if (why) {
        unlink(path);
        return why;
    }
    madvise(c->base, size, MADV_DONTFORK);
    c->size = size;
    atomic_fetch_add(&rp_core.bytes, size);
    return 0;
}

/* Creates a chunk under a hidden name. Tries again if the program closed the file meanwhile, as
   programs do that close all descriptors. Returns 0 or an error. */
static int chunk_create(struct rp_core_chunk *c, size_t size)
{
    char path[sizeof rp_core.folder + 80];
    int why = EBADF;

    for (int i = 0; i < 3 && why == EBADF; i++) {
        rp_core_hidden_name(c->path, sizeof c->path, "spare");
        full_path(path, sizeof path, c->path);
        why = chunk_map(c, path, size);
    }
    return why;
}

static void packet_name(char *to, size_t size, const struct rp_core_stream *s, uint32_t sequence)
{
    snprintf(to, size, "s_%u_%u_%016llx_%06u", rp_core.pid, s->first_tid,
             (unsigned long long)s->instance, sequence);
}

/* Writes the header of the stream's next packet; `room` is the size of the packet. */
static void packet_write_head(struct rp_core_stream *s, uint8_t *at, size_t room)
{
    struct rp_ctf_packet *p = (struct rp_ctf_packet *)(void *)at;
    uint64_t now = rp_core_now();

    s->last = now > s->last ? now : s->last;
    *p = (struct rp_ctf_packet){.magic = RP_CTF_MAGIC,
                                .instance = s->instance,
                                .timestamp_begin = s->last,
                                .timestamp_end = s->last,
                                .content_bits = sizeof *p * 8,
                                .packet_bits = (uint64_t)room * 8,
                                .sequence = s->packet,
                                .discarded = s->lost,
                                .pid = rp_core.pid,
                                .tid = s->tid,
                                .image = atomic_load(&rp_core.page->image),
                                .cost_ps = rp_core.cost_ps,
                                .flags = rp_core_in_helper ? RP_CTF_PACKET_HELPER : 0};
}

/* Makes the packet whose header is at `at` the one in use. */
static void packet_use(struct rp_core_stream *s, uint8_t *at)
{
    s->head = (struct rp_ctf_packet *)(void *)at;
    s->at = at + sizeof *s->head;
    s->events = 0;
    s->packet++;
}

/* Writes the header of the chunk's packet and renames the chunk. */
static bool chunk_publish(struct rp_core_stream *s, struct rp_core_chunk *c)
{
    char from[sizeof rp_core.folder + 80], to[sizeof rp_core.folder + 80], name[sizeof c->path];

    packet_write_head(s, c->base, c->size);
    packet_name(name, sizeof name, s, s->packet);
    full_path(from, sizeof from, c->path);
    full_path(to, sizeof to, name);
    if (rename(from, to))
        return false;
    memcpy(c->path, name, sizeof name);
    return true;
}

static void chunk_discard(struct rp_core_chunk *c)
{
    char path[sizeof rp_core.folder + 80];

    full_path(path, sizeof path, c->path);
    unlink(path);
    munmap(c->base, c->size);
    atomic_fetch_sub(&rp_core.bytes, c->size);
    c->base = NULL;
}

/* -------------------------------------------------------------------------- the next packet */

static size_t chunk_size(struct rp_core_stream *s, size_t need)
{
    size_t max = RP_CTF_CHUNK_MAX, size = s->next_size;

    if (rp_core.options.limit_bytes && rp_core.options.limit_bytes / 16 < max)
        max = rp_core.options.limit_bytes / 16 & ~(size_t)4095;
    if (max < RP_CORE_FIRST)
        max = RP_CORE_FIRST;
    if (size > max)
        size = max;
    while (size < need + sizeof(struct rp_ctf_packet))
        size *= 2;
    return size;
}

static uint32_t old_packets(struct rp_core_stream *s)
{
    uint32_t oldest = atomic_load(&s->oldest), first = atomic_load(&s->chunk_first);

    return first > oldest ? first - oldest : 0;
}

/* Removes the oldest file of the stream that has the most files, even if another thread writes to
   it: a large stream that has become silent must not take the others' room. Returns false if there
   is no file to remove. */
static bool ring_drop_oldest(void)
{
    struct rp_core_stream *most = NULL, *s;
    char path[sizeof rp_core.folder + 80], name[64];
    uint32_t sequence;
    struct stat st;

    for (s = atomic_load(&rp_core.streams); s; s = s->next)
        if (old_packets(s) && (!most || old_packets(s) > old_packets(most)))
            most = s;
    if (!most)
        return false;
    sequence = atomic_load(&most->oldest);
    if (!atomic_compare_exchange_strong(&most->oldest, &sequence, sequence + 1))
        return true; /* another thread was first */
    packet_name(name, sizeof name, most, sequence);
    full_path(path, sizeof path, name);
    if (!stat(path, &st) && !unlink(path))
        atomic_fetch_sub(&rp_core.bytes, (uint64_t)st.st_size);
    return true;
}

/* Whether the limit allows another chunk; in a ring, removes the oldest packets to make room. */
static bool within_limit(size_t size)
{
    const struct rp_core_options *o = &rp_core.options;

    if (!o->limit_bytes || atomic_load(&rp_core.bytes) + size <= o->limit_bytes)
        return true;
    if (o->full != RP_CORE_RING) {
        rp_core_warn(RP_CORE_WARN_FULL,
                     "the limit of %llu bytes is reached: further events are dropped",
                     (unsigned long long)o->limit_bytes);
        return false;
    }
    while (atomic_load(&rp_core.bytes) + size > o->limit_bytes && ring_drop_oldest())
        ;
    return true; /* each stream keeps its two newest files in any case */
}

static bool spare_take(struct rp_core_stream *s, size_t need, struct rp_core_chunk *c)
{
    uint32_t ready = RP_CORE_SPARE_READY;

    if (!atomic_compare_exchange_strong(&s->spare_state, &ready, RP_CORE_SPARE_BUSY))
        return false;
    *c = s->spare;
    atomic_store(&s->spare_state, RP_CORE_SPARE_NONE);
    if (c->size >= need + sizeof(struct rp_ctf_packet))
        return true;
    chunk_discard(c);
    return false;
}

static void chunk_warn(int why)
{
    errno = why;
    rp_core_warn(RP_CORE_WARN_CHUNK, "cannot write to '%s': %m; events are lost and counted",
                 rp_core.folder);
}

static bool is_full(int why)
{
    return why == ENOSPC || why == EDQUOT || why == EFBIG;
}

static int chunk_get(struct rp_core_stream *s, size_t need, struct rp_core_chunk *c)
{
    size_t size = chunk_size(s, need);
    int why;

    if (!within_limit(size))
        return EDQUOT;
    if (spare_take(s, need, c))
        return 0;
    why = chunk_create(c, size);
    if (is_full(why) && size > RP_CORE_FIRST) { /* less may still fit */
        s->next_size = RP_CORE_FIRST;
        why = chunk_create(c, chunk_size(s, need));
    }
    if (why)
        chunk_warn(why);
    return why;
}

/* The helper unmaps a full chunk; if it has not unmapped the last one yet, this thread does. Only
   this thread sets `retired`, only the helper clears it. */
static void chunk_retire(struct rp_core_stream *s, const struct rp_core_chunk *old)
{
    if (!old->base)
        return;
    if (atomic_load(&s->retired)) {
        munmap(old->base, old->size);
        return;
    }
    s->retired_size = old->size;
    atomic_store(&s->retired, old->base);
}

static bool packet_next(struct rp_core_stream *s, size_t need)
{
    struct rp_core_chunk c, old = s->chunk;

    if (chunk_get(s, need, &c))
        return false;
    if (!chunk_publish(s, &c)) {
        chunk_warn(errno);
        chunk_discard(&c);
        return false;
    }
    s->chunk = c;
    atomic_store(&s->chunk_first, s->packet);
    s->end = c.base + c.size;
    packet_use(s, c.base);
    chunk_retire(s, &old);
    return true;
}

/* Blocks signals, which would interrupt the system calls, and preserves errno. */
bool rp_core_stream_next(struct rp_core_stream *s, size_t need)
{
    uint64_t now = rp_core_now();
    uint32_t none = RP_CORE_SPARE_NONE;
    int saved = errno;
    sigset_t all, old;
    bool done;

    if (now < s->retry_at || atomic_load(&rp_core.sealed))
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    done = packet_next(s, need);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    s->retry_at = done ? 0 : now + RETRY_TICKS(rp_core.frequency);
    errno = saved;
    if (!done)
        return false;
    if (s->next_size < RP_CTF_CHUNK_MAX)
        s->next_size *= 4;
    if (s->packet > 1) { /* a busy stream gets a spare chunk */
        rp_core_helper_start();
        atomic_compare_exchange_strong(&s->spare_state, &none, RP_CORE_SPARE_WANTED);
        rp_core_helper_wake();
        errno = saved;
    }
    return true;
}

/* -------------------------------------------------------------------------- for the helper */

void rp_core_stream_reserve(struct rp_core_stream *s)
{
    uint32_t wanted = RP_CORE_SPARE_WANTED;
    uint8_t *old = atomic_load(&s->retired);

    if (old) {
        size_t size = s->retired_size;

        munmap(old, size);
        atomic_store(&s->retired, NULL);
    }
    if (!atomic_compare_exchange_strong(&s->spare_state, &wanted, RP_CORE_SPARE_BUSY))
        return;
    if ((rp_core.options.limit_bytes && rp_core.options.limit_bytes < (16 << 20)) ||
        chunk_create(&s->spare, chunk_size(s, 0))) {
        atomic_store(&s->spare_state, RP_CORE_SPARE_NONE);
        return;
    }
    madvise(s->spare.base, s->spare.size, MADV_POPULATE_WRITE); /* take the page faults here */
    atomic_store(&s->spare_state, RP_CORE_SPARE_READY);
}

void rp_core_stream_drop_spare(struct rp_core_stream *s)
{
    struct rp_core_chunk c;

    if (spare_take(s, 0, &c))
        chunk_discard(&c);
}

/* Replaces the file by a copy of the chunk's first `size` bytes, whose last packet ends there. The
   old file and the mapping stay intact: somebody may be reading the file. */
static bool chunk_trim(struct rp_core_stream *s, size_t size)
{
    struct rp_ctf_packet head = *s->head;
    size_t before = (size_t)((uint8_t *)s->head - s->chunk.base), done = before + sizeof head;
    char from[sizeof rp_core.folder + 80], to[sizeof rp_core.folder + 80], hidden[64];
    struct iovec parts[] = {
        {s->chunk.base, before}, {&head, sizeof head}, {s->chunk.base + done, size - done}};
    bool written;
    int fd;

    head.packet_bits = (uint64_t)(size - before) * 8;
    rp_core_hidden_name(hidden, sizeof hidden, "trim");
    full_path(from, sizeof from, hidden);
    full_path(to, sizeof to, s->chunk.path);
    fd = open(from, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    /* allocated first: ext4 otherwise writes the blocks to disk before it renames the file */
    written = !file_allocate(fd, size) && writev(fd, parts, 3) == (ssize_t)size;
    written = !close(fd) && written;
    if (written && !rename(from, to))
        return true;
    unlink(from);
    return false;
}

/* Trims the last chunk and unmaps it. */
void rp_core_stream_end(struct rp_core_stream *s)
{
    size_t size;

    rp_core_stream_drop_spare(s);
    if (!s->head) {
        atomic_fetch_add(&rp_core.lost, s->lost - s->told); /* no packet reports them */
        s->lost = s->told;
        return;
    }
    s->told = s->lost;
    size = (size_t)((uint8_t *)s->head - s->chunk.base) + (size_t)(s->head->content_bits / 8);
    size = (size + 4095) & ~(size_t)4095;
    if (size + TRIM_MIN <= s->chunk.size && chunk_trim(s, size))
        atomic_fetch_sub(&rp_core.bytes, s->chunk.size - size);
    munmap(s->chunk.base, s->chunk.size);
    s->chunk.base = NULL;
    s->head = NULL;
    s->at = s->end = NULL;
}

bool rp_core_stream_close(struct rp_core_stream *s)
{
    uint32_t ended = RP_CORE_STREAM_ENDED;

    if (!atomic_compare_exchange_strong(&s->state, &ended, RP_CORE_STREAM_CLOSING))
        return false;
    rp_core_stream_end(s);
    atomic_store(&s->state, RP_CORE_STREAM_FREE);
    return true;
}

void rp_core_stream_age(struct rp_core_stream *s)
{
    uint32_t turn = atomic_load(&s->turns);

    if (atomic_load(&s->state) != RP_CORE_STREAM_ENDED || s->aged_turn != turn) {
        s->aged_turn = turn;
        s->aged_ticks = 0;
    } else if (++s->aged_ticks >= IDLE_TICKS) {
        rp_core_stream_close(s);
    }
}

/* -------------------------------------------------------------------------- streams */

/* A stream whose thread has ended, or NULL. */
static struct rp_core_stream *stream_reuse(void)
{
    struct rp_core_stream *s;

    for (s = atomic_load(&rp_core.streams); s; s = s->next) {
        uint32_t unused = RP_CORE_STREAM_FREE, ended = RP_CORE_STREAM_ENDED;

        if (atomic_compare_exchange_strong(&s->state, &ended, RP_CORE_STREAM_USED) ||
            atomic_compare_exchange_strong(&s->state, &unused, RP_CORE_STREAM_USED))
            return s;
    }
    return NULL;
}

/* Begins a packet of this thread after the previous thread's packet in the same chunk. If the chunk
   is full, the first event gets a new one. */
static void stream_continue(struct rp_core_stream *s)
{
    struct rp_ctf_packet *before = s->head;
    size_t used = (size_t)(before->content_bits / 8 + 7) & ~(size_t)7;
    uint8_t *at = (uint8_t *)before + used;

    if (s->end - at < REUSE_MIN) {
        s->at = s->end;
        return;
    }
    packet_write_head(s, at, (size_t)(s->end - at));
    atomic_store_explicit((_Atomic uint64_t *)&before->packet_bits, (uint64_t)used * 8,
                          memory_order_release);
    packet_use(s, at);
}

static struct rp_core_stream *stream_add(void)
{
    struct rp_core_stream *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (s == MAP_FAILED)
        return NULL;
    atomic_init(&s->state, RP_CORE_STREAM_USED);
    s->next = atomic_load(&rp_core.streams);
    while (!atomic_compare_exchange_weak(&rp_core.streams, &s->next, s))
        ;
    return s;
}

struct rp_core_stream *rp_core_stream_new(void)
{
    static _Atomic uint32_t count;
    uint32_t tid = (uint32_t)syscall(SYS_gettid), now_on = atomic_load(&rp_core.page->on);
    struct rp_core_stream *s = stream_reuse();
    bool fresh = !s;

    if (fresh)
        s = stream_add();
    if (!s)
        return NULL;
    if (fresh) {
        s->instance =
            (uint64_t)atomic_load(&rp_core.page->image) << 32 | atomic_fetch_add(&count, 1);
        s->first_tid = tid;
        s->next_size = RP_CORE_FIRST;
    }
    s->tid = tid;
    s->time = now_on ? now_on : RP_CORE_NEVER; /* off: for work reported late */
    s->retry_at = 0;
    s->step_counted = false;
    s->inner = NULL;
    atomic_store(&s->busy, 0);
    atomic_fetch_add(&s->turns, 1);
    if (s->head)
        stream_continue(s);
    return s;
}
