/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and their chunks. A chunk is a file that holds one packet, mapped shared: what a thread
 * stores there belongs to the kernel from that moment on, so that nothing is left to do when the
 * process dies. The file is made under a hidden name with all its blocks allocated (a full disk is
 * an error here, and not a signal at some later store), its header is written, then it gets its
 * name by rename: at no moment does a reader see a packet without its header.
 *
 * The helper thread keeps one chunk in reserve for each stream that is in use, so that a thread
 * normally pays one rename a chunk. Chunks grow from 16 KiB to 1 MiB.
 *
 * A thread that has ended leaves its stream to the next one that begins, which goes on in the same
 * chunk with a packet of its own: threads that live for a moment cost no file each. Its header
 * stands before the packet in front is cut to its size by one store, so that a reader finds both or
 * the first alone. A stream that nobody wants for half a second gives its last chunk to the helper,
 * which puts a copy of the right size in its place where that is worth it.
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
#define HAND_ON_LEAST  1024         /* bytes that a chunk must have left for one more packet */
#define TRIM_LEAST     (60 << 10) /* bytes to be won: to take a file's place costs a millisecond */
#define IDLE_TICKS     5          /* of the helper, until an ended stream is closed */

__thread struct rp_core_stream *rp_core_self;
__thread bool rp_core_in_helper;

/* -------------------------------------------------------------------------- chunks */

static void full_path(char *to, size_t size, const char *name)
{
    snprintf(to, size, "%s/%s", rp_core.folder, name);
}

/* A name that no other process has, wherever it runs. */
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

/* All blocks of the file, so that no later store can fail. 0 or an error. */
static int allocate(int fd, size_t size)
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

static int map_chunk(struct rp_core_chunk *c, const char *path, size_t size)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644), why;

    if (fd < 0)
        return errno;
    why = allocate(fd, size);
    if (!why) {
        c->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        why = c->base == MAP_FAILED ? errno : 0;
    }
    if (why != EBADF) /* the program closed it, and the number may be one of its own by now */
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

/* A chunk under a hidden name; again where the program closed the file meanwhile, as those do that
   close all. 0 or an error. */
static int make_chunk(struct rp_core_chunk *c, size_t size)
{
    char path[sizeof rp_core.folder + 80];
    int why = EBADF;

    for (int i = 0; i < 3 && why == EBADF; i++) {
        rp_core_hidden_name(c->path, sizeof c->path, "spare");
        full_path(path, sizeof path, c->path);
        why = map_chunk(c, path, size);
    }
    return why;
}

static void packet_name(char *to, size_t size, const struct rp_core_stream *s, uint32_t sequence)
{
    snprintf(to, size, "s_%u_%u_%016llx_%06u", rp_core.pid, s->first_tid,
             (unsigned long long)s->instance, sequence);
}

/* The header of the stream's next packet; `room` bytes are left for all of it. */
static void put_head(struct rp_core_stream *s, uint8_t *at, size_t room)
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

/* The packet whose header stands there is the one in use. */
static void use_packet(struct rp_core_stream *s, uint8_t *at)
{
    s->head = (struct rp_ctf_packet *)(void *)at;
    s->at = at + sizeof *s->head;
    s->events = 0;
    s->packet++;
}

/* Writes the header and gives the chunk its name. */
static bool publish(struct rp_core_stream *s, struct rp_core_chunk *c)
{
    char from[sizeof rp_core.folder + 80], to[sizeof rp_core.folder + 80], name[sizeof c->path];

    put_head(s, c->base, c->size);
    packet_name(name, sizeof name, s, s->packet);
    full_path(from, sizeof from, c->path);
    full_path(to, sizeof to, name);
    if (rename(from, to))
        return false;
    memcpy(c->path, name, sizeof name);
    return true;
}

static void discard(struct rp_core_chunk *c)
{
    char path[sizeof rp_core.folder + 80];

    full_path(path, sizeof path, c->path);
    unlink(path);
    munmap(c->base, c->size);
    atomic_fetch_sub(&rp_core.bytes, c->size);
    c->base = NULL;
}

/* -------------------------------------------------------------------------- the next packet */

static size_t size_for(struct rp_core_stream *s, size_t need)
{
    size_t most = RP_CTF_CHUNK_MAX, size = s->next_size;

    if (rp_core.options.limit_bytes && rp_core.options.limit_bytes / 16 < most)
        most = rp_core.options.limit_bytes / 16 & ~(size_t)4095;
    if (most < RP_CORE_FIRST)
        most = RP_CORE_FIRST;
    if (size > most)
        size = most;
    while (size < need + sizeof(struct rp_ctf_packet))
        size *= 2;
    return size;
}

static uint32_t old_packets(struct rp_core_stream *s)
{
    uint32_t oldest = atomic_load(&s->oldest), first = atomic_load(&s->chunk_first);

    return first > oldest ? first - oldest : 0;
}

/* Removes the oldest file of the stream that has most of them, whoever writes to it: one that has
   much and is silent must not leave the others without room. False: there is none to remove. */
static bool drop_oldest(void)
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

/* Whether the limit leaves room; in a ring the oldest packets make it. */
static bool within_limit(size_t size)
{
    const struct rp_core_options *o = &rp_core.options;

    if (!o->limit_bytes || atomic_load(&rp_core.bytes) + size <= o->limit_bytes)
        return true;
    if (o->full != RP_CORE_RING) {
        rp_core_warn(RP_CORE_WARN_FULL,
                     "the limit of %llu bytes is reached: what follows is left out",
                     (unsigned long long)o->limit_bytes);
        return false;
    }
    while (atomic_load(&rp_core.bytes) + size > o->limit_bytes && drop_oldest())
        ;
    return true; /* each stream may have its two newest files in any case */
}

static bool take_spare(struct rp_core_stream *s, size_t need, struct rp_core_chunk *c)
{
    uint32_t ready = RP_CORE_SPARE_READY;

    if (!atomic_compare_exchange_strong(&s->spare_state, &ready, RP_CORE_SPARE_BUSY))
        return false;
    *c = s->spare;
    atomic_store(&s->spare_state, RP_CORE_SPARE_NONE);
    if (c->size >= need + sizeof(struct rp_ctf_packet))
        return true;
    discard(c);
    return false;
}

static void warn_chunk(int why)
{
    errno = why;
    rp_core_warn(RP_CORE_WARN_CHUNK, "cannot write in '%s': %m; events are lost, and counted",
                 rp_core.folder);
}

static bool is_full(int why)
{
    return why == ENOSPC || why == EDQUOT || why == EFBIG;
}

static int new_chunk(struct rp_core_stream *s, size_t need, struct rp_core_chunk *c)
{
    size_t size = size_for(s, need);
    int why;

    if (!within_limit(size))
        return EDQUOT;
    if (take_spare(s, need, c))
        return 0;
    why = make_chunk(c, size);
    if (is_full(why) && size > RP_CORE_FIRST) { /* less may still fit */
        s->next_size = RP_CORE_FIRST;
        why = make_chunk(c, size_for(s, need));
    }
    if (why)
        warn_chunk(why);
    return why;
}

/* A full chunk is unmapped by the helper, or here where it is behind. Only this thread fills the
   place, only the helper empties it. */
static void retire(struct rp_core_stream *s, const struct rp_core_chunk *old)
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

static bool next_packet(struct rp_core_stream *s, size_t need)
{
    struct rp_core_chunk c, old = s->chunk;

    if (new_chunk(s, need, &c))
        return false;
    if (!publish(s, &c)) {
        warn_chunk(errno);
        discard(&c);
        return false;
    }
    s->chunk = c;
    atomic_store(&s->chunk_first, s->packet);
    s->end = c.base + c.size;
    use_packet(s, c.base);
    retire(s, &old);
    return true;
}

/* Signals wait meanwhile: they would interrupt the system calls. errno stays as it was. */
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
    done = next_packet(s, need);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    s->retry_at = done ? 0 : now + RETRY_TICKS(rp_core.frequency);
    errno = saved;
    if (!done)
        return false;
    if (s->next_size < RP_CTF_CHUNK_MAX)
        s->next_size *= 4;
    if (s->packet > 1) { /* a busy stream gets a chunk in reserve */
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
        make_chunk(&s->spare, size_for(s, 0))) {
        atomic_store(&s->spare_state, RP_CORE_SPARE_NONE);
        return;
    }
    madvise(s->spare.base, s->spare.size, MADV_POPULATE_WRITE); /* its page faults happen here */
    atomic_store(&s->spare_state, RP_CORE_SPARE_READY);
}

void rp_core_stream_drop_spare(struct rp_core_stream *s)
{
    struct rp_core_chunk c;

    if (take_spare(s, 0, &c))
        discard(&c);
}

/* The chunk's first `size` bytes, with a last packet that ends there, in the file's place. The
   mapping stays as it is: somebody may be reading the file. */
static bool trim(struct rp_core_stream *s, size_t size)
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
    /* with its blocks, for ext4 otherwise writes them out before it replaces the name */
    written = !allocate(fd, size) && writev(fd, parts, 3) == (ssize_t)size;
    written = !close(fd) && written;
    if (written && !rename(from, to))
        return true;
    unlink(from);
    return false;
}

/* Puts a copy of the right size in the place of the last chunk, then lets go of it. */
void rp_core_stream_end(struct rp_core_stream *s)
{
    size_t size;

    rp_core_stream_drop_spare(s);
    if (!s->head) {
        atomic_fetch_add(&rp_core.lost, s->lost - s->told); /* no packet tells of them */
        s->lost = s->told;
        return;
    }
    s->told = s->lost;
    size = (size_t)((uint8_t *)s->head - s->chunk.base) + (size_t)(s->head->content_bits / 8);
    size = (size + 4095) & ~(size_t)4095;
    if (size + TRIM_LEAST <= s->chunk.size && trim(s, size))
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

/* For the helper's ticks: closes it where its thread has ended a while ago. */
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

/* One whose thread has ended, or NULL. */
static struct rp_core_stream *reuse(void)
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

/* A packet of this thread behind that of the one before, in the same chunk; where it is full, the
   first event takes a new one. */
static void hand_on(struct rp_core_stream *s)
{
    struct rp_ctf_packet *before = s->head;
    size_t used = (size_t)(before->content_bits / 8 + 7) & ~(size_t)7;
    uint8_t *at = (uint8_t *)before + used;

    if (s->end - at < HAND_ON_LEAST) {
        s->at = s->end;
        return;
    }
    put_head(s, at, (size_t)(s->end - at));
    atomic_store_explicit((_Atomic uint64_t *)&before->packet_bits, (uint64_t)used * 8,
                          memory_order_release);
    use_packet(s, at);
}

static struct rp_core_stream *add(void)
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
    struct rp_core_stream *s = reuse();
    bool fresh = !s;

    if (fresh)
        s = add();
    if (!s)
        return NULL;
    if (fresh) {
        s->instance =
            (uint64_t)atomic_load(&rp_core.page->image) << 32 | atomic_fetch_add(&count, 1);
        s->first_tid = tid;
        s->next_size = RP_CORE_FIRST;
    }
    s->tid = tid;
    s->time = now_on ? now_on : RP_CORE_NEVER; /* off: for what is told late */
    s->retry_at = 0;
    s->step_counted = false;
    s->inner = NULL;
    atomic_store(&s->busy, 0);
    atomic_fetch_add(&s->turns, 1);
    if (s->head)
        hand_on(s);
    return s;
}
