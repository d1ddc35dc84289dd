/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and their chunks. A chunk is a file in a shared mapping: what a thread stores there is in
 * the page cache at once and survives the death of the process. The file is created under a hidden
 * name with all its blocks allocated (so that a full disk is an error here, and not a signal at a
 * later store), the header of its first packet is written, and then it is renamed: a reader never
 * sees a packet without its header.
 *
 * The helper thread keeps one spare chunk for each busy stream, so that a thread normally pays for
 * one rename a chunk. Chunks grow from 4 KiB to 1 MiB. The first one is made in a cheaper way, for
 * programs with thousands of threads: the file gets its name at once, and then its size, with the
 * header, by a single write of a page. A reader sees the empty file, which it skips, or the packet.
 *
 * From the OWN_FILES-th stream of a process on, even that would be too expensive, because creating
 * a file takes longer than creating a thread. The first chunks of these streams are slots of one
 * shared, hidden file, which only our reader reads. A stream that needs more than its slot gets
 * files, the slot's packets first; at the end of the process up to SLOTS_FILED of the other slots
 * get files too, for other readers.
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
#include <sched.h>
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
#define KEPT_CHUNK     (64 << 10)   /* bytes, with --keep */
#define RETRY_TICKS(s) ((s) / 1000) /* a millisecond */
#define REUSE_MIN      1024         /* bytes that a chunk must have left for one more packet */
#define TRIM_MIN \
    (60 << 10) /* bytes that trimming must save, because replacing a file costs a millisecond */
#define OWN_FILES   16   /* so many streams of a process have a file as their first chunk */
#define SLOTS_MAX   1024 /* of one file */
#define SLOTS_TURNS 50   /* turns of the processor until a thread goes on without a slot */
#define SLOTS_FILED 128  /* number of slots that get a file when their stream ends */
#define IDLE_TICKS  5    /* ticks of the helper until an ended stream is closed */

__thread struct rp_core_stream *rp_core_self;
__thread bool rp_core_in_helper;
__thread bool rp_core_blind;
__thread bool rp_core_own;
__thread uint64_t rp_core_launches;

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
        if (n <= 0) /* after a short write, errno is still that of fallocate */
            return n < 0 ? errno : ENOSPC;
        done += (size_t)n;
    }
    return 0;
}

static int chunk_map(struct rp_core_chunk *c, const char *path, size_t size)
{
    int fd = rp_core_create(path, O_RDWR);

    if (fd < 0)
        return errno;
    int why = file_allocate(fd, size);
    if (!why) {
        c->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        why = c->base == MAP_FAILED ? errno : 0;
    }
    if (why != EBADF) /* otherwise the program closed it, and may have reused the number */
        close(fd);
    if (why) {
        unlink(path);
        return why;
    }
    madvise(c->base, size, MADV_DONTFORK);
    c->size = size;
    c->in_slot = false;
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
                                .pid = rp_core_subject(),
                                .tid = s->tid,
                                .image = atomic_load(&rp_core.page->image),
                                .cost_ps = rp_core.cost_ps,
                                .flags = rp_core_in_helper ? RP_CTF_PACKET_HELPER : 0};
}

/* Creates the stream's next chunk, of RP_CORE_FIRST bytes. Its file has a hidden name until the
   header is written, because another thread may end the process meanwhile. Returns 0 or
   an error. */
static int chunk_create_first(struct rp_core_stream *s, struct rp_core_chunk *c)
{
    _Alignas(struct rp_ctf_packet) uint8_t page[RP_CORE_FIRST] = {0};
    char path[sizeof rp_core.folder + 80], to[sizeof path];
    int why = EBADF;

    if (!rp_core_fits(sizeof page))
        return EFBIG;
    rp_core_hidden_name(c->path, sizeof c->path, "first");
    full_path(path, sizeof path, c->path);
    packet_name(c->path, sizeof c->path, s, s->packet);
    full_path(to, sizeof to, c->path);
    packet_write_head(s, page, sizeof page);
    for (int i = 0; i < 3 && why == EBADF; i++) {
        int fd = rp_core_create(path, O_RDWR);

        if (fd < 0)
            return errno;
        ssize_t n = pwrite(fd, page, sizeof page, 0);
        why = n == (ssize_t)sizeof page ? 0 : n < 0 ? errno : ENOSPC;
        if (!why) {
            c->base = mmap(NULL, sizeof page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            why = c->base == MAP_FAILED ? errno : 0;
        }
        if (why != EBADF)
            close(fd);
        if (!why && rename(path, to)) {
            why = errno;
            munmap(c->base, sizeof page);
        }
        if (why)
            unlink(path);
    }
    if (why)
        return why;
    madvise(c->base, sizeof page, MADV_DONTFORK);
    c->size = sizeof page;
    c->in_slot = false;
    atomic_fetch_add(&rp_core.bytes, sizeof page);
    return 0;
}

/* Makes the packet whose header is at `at` the one in use. */
static void packet_use(struct rp_core_stream *s, uint8_t *at)
{
    if (s->packet && s->texts == s->few && at == s->chunk.base) {
        /* The texts of a packet are numbered anew, so here the table can be replaced by a larger
         * one. */
        void *texts = mmap(NULL, RP_CORE_TEXTS * sizeof *s->texts, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (texts != MAP_FAILED) {
            s->texts = texts;
            s->mask = RP_CORE_TEXTS - 1;
        }
    }
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

/* -------------------------------------------------------------------------- slots */

struct rp_core_slots {
    uint8_t *base;
    struct rp_core_slots *older;
    uint32_t room;
    _Atomic uint32_t used;
    char path[64]; /* relative to the folder */
};

static struct rp_core_slots *slots_new(uint32_t room)
{
    char path[sizeof rp_core.folder + 80];
    struct rp_core_chunk c = {0};
    struct rp_core_slots *slots;

    slots = mmap(NULL, sizeof *slots, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED)
        return NULL;
    rp_core_hidden_name(c.path, sizeof c.path, "slots"); /* RP_CTF_SLOTS_NAME */
    full_path(path, sizeof path, c.path);
    if (chunk_map(&c, path, (size_t)room * RP_CTF_SLOT_BYTES)) {
        munmap(slots, sizeof *slots);
        return NULL;
    }
    slots->base = c.base;
    slots->room = room;
    memcpy(slots->path, c.path, sizeof slots->path);
    return slots;
}

static uint32_t slots_room(const struct rp_core_slots *before)
{
    return !before ? 16 : before->room * 4 < SLOTS_MAX ? before->room * 4 : SLOTS_MAX;
}

/* The helper makes the next file when the one in use begins to fill up. */
void rp_core_slots_reserve(void)
{
    struct rp_core_slots *slots = atomic_load(&rp_core.slots);

    if (!slots || atomic_load(&slots->used) * 4 < slots->room || atomic_load(&rp_core.next_slots))
        return;
    struct rp_core_slots *fresh = slots_new(slots_room(slots));
    if (fresh) /* takes the page faults here */
        madvise(fresh->base, (size_t)fresh->room * RP_CTF_SLOT_BYTES, MADV_POPULATE_WRITE);
    atomic_store(&rp_core.next_slots, fresh);
}

void rp_core_slots_drop(void)
{
    struct rp_core_slots *slots = atomic_exchange(&rp_core.next_slots, NULL);
    char path[sizeof rp_core.folder + 80];

    if (!slots)
        return;
    full_path(path, sizeof path, slots->path);
    unlink(path);
    munmap(slots->base, (size_t)slots->room * RP_CTF_SLOT_BYTES);
    munmap(slots, sizeof *slots);
}

void rp_core_slots_forget(void)
{
    struct rp_core_slots *slots = atomic_exchange(&rp_core.slots, NULL), *older;

    rp_core_slots_drop();
    for (; slots; slots = older) {
        older = slots->older;
        munmap(slots->base, (size_t)slots->room * RP_CTF_SLOT_BYTES);
        munmap(slots, sizeof *slots);
    }
    atomic_store(&rp_core.nslots_filed, 0);
}

/* Replaces the slots that are used up. Only one thread does this; hundreds of others give it the
   time of a few turns, and then get files. */
static bool slots_add(struct rp_core_slots *full, int turn)
{
    uint32_t nobody = 0;
    bool done = true;

    if (!atomic_compare_exchange_strong(&rp_core.slots_busy, &nobody, 1)) {
        sched_yield();
        return turn < SLOTS_TURNS;
    }
    if (atomic_load(&rp_core.slots) == full) {
        struct rp_core_slots *fresh = atomic_exchange(&rp_core.next_slots, NULL);
        fresh = fresh ? fresh : slots_new(slots_room(full));
        done = fresh != NULL;
        if (done) {
            fresh->older = full;
            atomic_store(&rp_core.slots, fresh);
        }
    }
    atomic_store(&rp_core.slots_busy, 0);
    return done;
}

/* A slot as the stream's first chunk, with the header of its packet. Returns false if there is
   none. */
static bool slot_take(struct rp_core_stream *s, struct rp_core_chunk *c)
{
    struct rp_core_slots *slots;
    uint32_t i;

    for (int turn = 0;; turn++) {
        slots = atomic_load(&rp_core.slots);
        i = slots ? atomic_load(&slots->used) : 0;
        if (!slots || i >= slots->room) {
            if (!slots_add(slots, turn))
                return false;
        } else if (atomic_compare_exchange_strong(&slots->used, &i, i + 1)) {
            break;
        }
    }
    if (i == slots->room / 4)
        rp_core_helper_wake();
    c->base = slots->base + (size_t)i * RP_CTF_SLOT_BYTES;
    c->size = RP_CTF_SLOT_BYTES;
    c->in_slot = true;
    packet_name(c->path, sizeof c->path, s, s->packet);
    packet_write_head(s, c->base, c->size);
    return true;
}

/* -------------------------------------------------------------------------- the next packet */

static size_t chunk_size(struct rp_core_stream *s, size_t need)
{
    size_t max = RP_CTF_CHUNK_MAX, size = s->next_size;

    if (rp_core.options.limit_bytes && rp_core.options.limit_bytes / 16 < max)
        max = rp_core.options.limit_bytes / 16 & ~(size_t)4095;
    if (rp_core_keeps() && max > KEPT_CHUNK) /* so that old ones can be removed soon */
        max = KEPT_CHUNK;
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

/* Removes the oldest file of a stream, unless another thread is doing so. */
static void ring_drop(struct rp_core_stream *s)
{
    char path[sizeof rp_core.folder + 80], name[64];
    uint32_t sequence = atomic_load(&s->oldest);
    struct stat st;

    if (!atomic_compare_exchange_strong(&s->oldest, &sequence, sequence + 1))
        return;
    packet_name(name, sizeof name, s, sequence);
    full_path(path, sizeof path, name);

    /* The number of events in the packets of a file. */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct rp_ctf_packet head;
    uint64_t events = 0;
    off_t at = 0;

    while (fd >= 0 && pread(fd, &head, sizeof head, at) == (ssize_t)sizeof head &&
           head.magic == RP_CTF_MAGIC && head.packet_bits / 8 >= sizeof head) {
        events += head.events;
        at += (off_t)(head.packet_bits / 8);
    }
    if (fd >= 0)
        close(fd);

    if (!stat(path, &st) && !unlink(path)) {
        atomic_fetch_sub(&rp_core.bytes, (uint64_t)st.st_size);
        rp_core_lose(RP_CTF_LOSS_OVERWRITTEN, events);
    }
}

/* Reads the header of a stream's packet that begins a file; its magic is 0 if there is none. */
static struct rp_ctf_packet packet_head(struct rp_core_stream *s, uint32_t sequence)
{
    char path[sizeof rp_core.folder + 80], name[64];
    struct rp_ctf_packet head;

    packet_name(name, sizeof name, s, sequence);
    full_path(path, sizeof path, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        head.magic != RP_CTF_MAGIC)
        head = (struct rp_ctf_packet){.magic = 0};
    if (fd >= 0)
        close(fd);
    return head;
}

/* Whether the file after the oldest one of a stream began before `ticks`, so that the oldest had
   ended. */
static bool ended_before(struct rp_core_stream *s, uint64_t ticks)
{
    struct rp_ctf_packet head = packet_head(s, atomic_load(&s->oldest) + 1);

    return head.magic && head.timestamp_begin < ticks;
}

/* When the oldest packet of a stream ended; 0 if it has no file of its own. The header is read once
   for each packet. */
static uint64_t oldest_end(struct rp_core_stream *s)
{
    uint32_t oldest = atomic_load(&s->oldest);

    if (atomic_load(&s->ended_of) != oldest + 1) {
        atomic_store(&s->ended, packet_head(s, oldest).timestamp_end);
        atomic_store(&s->ended_of, oldest + 1);
    }
    return atomic_load(&s->ended);
}

void rp_core_ring_drop_before(uint64_t ticks)
{
    for (struct rp_core_stream *s = atomic_load(&rp_core.streams); s; s = s->next)
        while (old_packets(s) > 1 && ended_before(s, ticks))
            ring_drop(s);
}

/* Removes the file that ended first, of all streams, even if another thread writes to its stream:
   all threads have the same end of the run. Returns false if there is no file to remove. */
static bool ring_drop_oldest(void)
{
    struct rp_core_stream *first = NULL;

    for (struct rp_core_stream *s = atomic_load(&rp_core.streams); s; s = s->next)
        if (old_packets(s) && (!first || oldest_end(s) < oldest_end(first)))
            first = s;
    if (first)
        ring_drop(first);
    return first != NULL;
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
    return true; /* each stream keeps the file in use in any case */
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

static bool is_full(int why)
{
    return why == ENOSPC || why == EDQUOT || why == EFBIG;
}

/* Makes a chunk with the header of its first packet, under its final name. Sets s->why if that
   fails. */
static bool chunk_make(struct rp_core_stream *s, size_t size, struct rp_core_chunk *c)
{
    if (size == RP_CORE_FIRST && (uint32_t)s->instance >= OWN_FILES && !s->packet &&
        slot_take(s, c))
        return true;
    int why = size == RP_CORE_FIRST ? chunk_create_first(s, c) : chunk_create(c, size);
    if (!why && size != RP_CORE_FIRST && !chunk_publish(s, c)) {
        why = errno;
        chunk_discard(c);
    }
    errno = why;
    s->why = rp_core_loss(why);
    return !why;
}

static bool chunk_get(struct rp_core_stream *s, size_t need, struct rp_core_chunk *c)
{
    size_t size = chunk_size(s, need);

    if (!within_limit(size)) {
        s->why = RP_CTF_LOSS_LIMIT;
        return false;
    }
    if (spare_take(s, need, c)) {
        if (chunk_publish(s, c))
            return true;
        chunk_discard(c);
    }
    if (chunk_make(s, size, c))
        return true;
    if (is_full(errno) && size > RP_CORE_FIRST) { /* less may still fit */
        s->next_size = RP_CORE_FIRST;
        if (chunk_make(s, chunk_size(s, need), c))
            return true;
    }
    rp_core_warn(RP_CORE_WARN_CHUNK, "cannot write to '%s': %m; events are lost and counted",
                 rp_core.folder);
    return false;
}

/* Replaces the file by a copy of the chunk's first `size` bytes, where its last packet ends. The
   old file and the mapping stay intact, because somebody may be reading the file. A slot gets a
   file. */
static bool chunk_trim(struct rp_core_stream *s, size_t size)
{
    struct rp_ctf_packet head = *s->head;
    size_t before = (size_t)((uint8_t *)s->head - s->chunk.base), done = before + sizeof head;
    char from[sizeof rp_core.folder + 80], to[sizeof rp_core.folder + 80], hidden[64];
    struct iovec parts[] = {
        {s->chunk.base, before}, {&head, sizeof head}, {s->chunk.base + done, size - done}};

    head.packet_bits = (uint64_t)(size - before) * 8;
    rp_core_hidden_name(hidden, sizeof hidden, "trim");
    full_path(from, sizeof from, hidden);
    full_path(to, sizeof to, s->chunk.path);
    int fd = rp_core_create(from, O_WRONLY);
    if (fd < 0)
        return false;
    /* allocated first, because ext4 otherwise writes the blocks to disk before it renames the
       file */
    bool written = !file_allocate(fd, size) && writev(fd, parts, 3) == (ssize_t)size;
    written = !close(fd) && written;
    if (written && !rename(from, to))
        return true;
    unlink(from);
    return false;
}

/* Gives the chunk in a slot a file of its own, and empties the slot. */
static void slot_file(struct rp_core_stream *s)
{
    size_t size =
        (size_t)((uint8_t *)s->head - s->chunk.base) + (size_t)(s->head->content_bits / 8);

    if (chunk_trim(s, size))
        atomic_store_explicit((_Atomic uint32_t *)(void *)s->chunk.base, 0, memory_order_release);
}

struct next_packet {
    struct rp_core_stream *s;
    size_t need;
    bool done;
};

static void packet_next(void *of)
{
    struct next_packet *next = of;
    struct rp_core_stream *s = next->s;
    struct rp_core_chunk c, old = s->chunk;
    bool names = rp_core.options.full == RP_CORE_RING && s->packet;

    next->done = chunk_get(s, next->need + (names ? RP_CORE_NAMES : 0), &c);
    if (!next->done)
        return;
    if (old.base && old.in_slot) {
        slot_file(s);
        old.base = NULL;
    }
    s->chunk = c;
    atomic_store(&s->chunk_first, s->packet);
    s->end = c.base + c.size;
    packet_use(s, c.base);
    if (names)
        rp_core_put_names(s);

    /* The helper unmaps a full chunk; if it has not unmapped the last one yet, this thread does.
       Only this thread sets `retired`, only the helper clears it. */
    if (!old.base)
        return;
    if (atomic_load(&s->retired)) {
        munmap(old.base, old.size);
        return;
    }
    s->retired_size = old.size;
    atomic_store(&s->retired, old.base);
}

/* Asks the helper for a spare chunk for a busy stream; the helper also unmaps the full one. */
static void spare_want(struct rp_core_stream *s)
{
    uint32_t none = RP_CORE_SPARE_NONE;

    if (rp_core.bare_clone || atomic_load(&rp_core.page->main_ended)) { /* there is no helper */
        rp_core_update();
        return;
    }
    rp_core_helper_start();
    atomic_compare_exchange_strong(&s->spare_state, &none, RP_CORE_SPARE_WANTED);
    if (!atomic_exchange(&s->wanting, 1)) {
        s->next_wanting = atomic_load(&rp_core.wanting);
        while (!atomic_compare_exchange_weak(&rp_core.wanting, &s->next_wanting, s))
            ;
    }
    rp_core_helper_wake();
}

/* Blocks signals, which would interrupt the system calls, and preserves errno. */
bool rp_core_stream_next(struct rp_core_stream *s, size_t need)
{
    struct next_packet next = {s, need, false};
    int saved = errno;
    sigset_t all, old;

    if (atomic_load(&rp_core.sealed)) {
        s->why = RP_CTF_LOSS_SANDBOX;
        return false;
    }
    uint64_t now = rp_core_now();
    if (now < s->retry_at)
        return false;
    int64_t began_ns = rp_core_thread_ns();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rp_core_aside(packet_next, &next);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    s->retry_at = next.done ? 0 : now + RETRY_TICKS(rp_core.frequency);
    if (next.done && s->next_size < RP_CTF_CHUNK_MAX)
        s->next_size *= 4;
    if (next.done && s->packet > 1)
        spare_want(s);
    if (!rp_core_own &&
        !rp_core_in_helper) /* otherwise this is part of something that is counted */
        rp_core_spent(began_ns);
    errno = saved;
    return next.done;
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
    madvise(s->spare.base, s->spare.size, MADV_POPULATE_WRITE); /* takes the page faults here */
    atomic_store(&s->spare_state, RP_CORE_SPARE_READY);
}

void rp_core_stream_drop_spare(struct rp_core_stream *s)
{
    struct rp_core_chunk c;

    if (spare_take(s, 0, &c))
        chunk_discard(&c);
}

/* Trims the last chunk and unmaps it. */
void rp_core_stream_end(struct rp_core_stream *s)
{
    rp_core_stream_drop_spare(s);
    if (!s->head)
        return;
    size_t size =
        (size_t)((uint8_t *)s->head - s->chunk.base) + (size_t)(s->head->content_bits / 8);
    size = (size + 4095) & ~(size_t)4095;
    if (s->chunk.in_slot) {
        if (atomic_fetch_add(&rp_core.nslots_filed, 1) < SLOTS_FILED)
            slot_file(s);
    } else if (size + TRIM_MIN <= s->chunk.size && chunk_trim(s, size))
        atomic_fetch_sub(&rp_core.bytes, s->chunk.size - size);
    /* at the end of the process it makes no difference */
    if (!s->chunk.in_slot && (!atomic_load(&rp_core.ended) || atomic_load(&rp_core.page->closed)))
        munmap(s->chunk.base, s->chunk.size);
    s->chunk.base = NULL;
    s->head = NULL;
    s->at = s->end = NULL;
}

/* Its thread is in no event, and there will be none before it begins the stream anew. */
void rp_core_stream_forget(struct rp_core_stream *s)
{
    uint8_t *retired = atomic_exchange(&s->retired, NULL);

    rp_core_stream_end(s);
    if (retired)
        munmap(retired, s->retired_size);
    atomic_store(&s->spare_state, RP_CORE_SPARE_NONE);
    atomic_store(&s->wanting, 0);
    memset(s->texts, 0, (s->mask + 1) * sizeof *s->texts);
    s->packet = s->pin = s->aged_ticks = 0;
    s->events = s->lost = 0;
    s->next_size = RP_CORE_FIRST;
    atomic_store(&s->oldest, 0);
    atomic_store(&s->ended_of, 0);
    atomic_store(&s->chunk_first, 0);
    s->time = RP_CORE_NEVER;
    s->left = true;
}

bool rp_core_stream_close(struct rp_core_stream *s)
{
    uint32_t ended = RP_CORE_STREAM_ENDED;

    if (!atomic_compare_exchange_strong(&s->state, &ended, RP_CORE_STREAM_CLOSING))
        return false;
    atomic_fetch_sub(&rp_core.nended, 1);
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

/* The list of unused streams: its first one, and in the upper bits of the word a number that
   changes with every operation, because a stream may be taken and put back between a load and an
   exchange. Streams are never unmapped, so the link of a stream that was taken can still be
   read. */
#define TAG_SHIFT 48
#define TAG_MASK  (~UINT64_C(0) << TAG_SHIFT)

static struct rp_core_stream *unused_stream(uint64_t word)
{
    return (struct rp_core_stream *)(uintptr_t)(word & ~TAG_MASK);
}

static uint64_t unused_word(const struct rp_core_stream *s, uint64_t before)
{
    return (uint64_t)(uintptr_t)s | ((before & TAG_MASK) + (UINT64_C(1) << TAG_SHIFT));
}

static void unused_push(struct rp_core_stream *s)
{
    uint64_t first = atomic_load(&rp_core.unused);

    do {
        s->next_unused = unused_stream(first);
    } while (!atomic_compare_exchange_weak(&rp_core.unused, &first, unused_word(s, first)));
}

static struct rp_core_stream *unused_pop(void)
{
    uint64_t first = atomic_load(&rp_core.unused);
    struct rp_core_stream *s;

    do {
        s = unused_stream(first);
    } while (s && !atomic_compare_exchange_weak(&rp_core.unused, &first,
                                                unused_word(s->next_unused, first)));
    return s;
}

void rp_core_stream_leave(struct rp_core_stream *s)
{
    atomic_fetch_add(&rp_core.nended, 1);
    atomic_store(&s->state, RP_CORE_STREAM_ENDED);
    unused_push(s);
}

/* Takes a stream whose thread has ended, or NULL. A stream that the helper is closing is put
   back. */
static struct rp_core_stream *stream_reuse(void)
{
    struct rp_core_stream *s, *closing = NULL;

    while ((s = unused_pop())) {
        uint32_t unused = RP_CORE_STREAM_FREE, ended = RP_CORE_STREAM_ENDED;

        if (atomic_compare_exchange_strong(&s->state, &ended, RP_CORE_STREAM_USED)) {
            atomic_fetch_sub(&rp_core.nended, 1);
            break;
        }
        if (atomic_compare_exchange_strong(&s->state, &unused, RP_CORE_STREAM_USED))
            break;
        s->next_unused = closing;
        closing = s;
    }
    while (closing) {
        struct rp_core_stream *next = closing->next_unused;

        unused_push(closing);
        closing = next;
    }
    return s;
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

/* Memory for new streams is mapped for several at once, because a mapping for each would cost more,
   and their number is limited. */
struct rp_core_slab {
    _Atomic uint32_t used;
    uint32_t room;
    struct rp_core_stream streams[];
};

static bool slab_add(struct rp_core_slab *full)
{
    uint32_t room = full ? full->room * 2 : 4;
    struct rp_core_slab *slab;

    room = room < 64 ? room : 64;
    size_t size = sizeof *slab + room * sizeof slab->streams[0];
    slab = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slab == MAP_FAILED)
        return false;
    slab->room = room;
    if (!atomic_compare_exchange_strong(&rp_core.slab, &full, slab))
        munmap(slab, size); /* another thread was first */
    return true;
}

static struct rp_core_stream *stream_add(void)
{
    struct rp_core_stream *s = NULL;

    while (!s) {
        struct rp_core_slab *slab = atomic_load(&rp_core.slab);
        uint32_t i = slab ? atomic_load(&slab->used) : 0;

        if (slab && i < slab->room) {
            if (atomic_compare_exchange_strong(&slab->used, &i, i + 1))
                s = &slab->streams[i];
        } else if (!slab_add(slab)) {
            return NULL;
        }
    }
    atomic_init(&s->state, RP_CORE_STREAM_USED);
    s->texts = s->few;
    s->mask = RP_CORE_FEW - 1;
    s->next = atomic_load(&rp_core.streams);
    while (!atomic_compare_exchange_weak(&rp_core.streams, &s->next, s))
        ;
    return s;
}

struct rp_core_stream *rp_core_stream_new(struct rp_core_stream *own)
{
    static _Atomic uint32_t count;
    uint32_t tid = (uint32_t)syscall(SYS_gettid), now_on = atomic_load(&rp_core.page->on);
    struct rp_core_stream *s = own ? own : stream_reuse();
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
    s->time =
        now_on ? now_on : RP_CORE_NEVER; /* recording is off, so this is for work reported late */
    s->retry_at = 0;
    s->step_counted = s->is_inner = false;
    s->input.depth = s->collective.depth = 0;
    if (!own)
        s->inner = NULL;
    s->left = false;
    atomic_store(&s->busy, 0);
    atomic_fetch_add(&s->turns, 1);
    if (s->head)
        stream_continue(s);
    return s;
}
