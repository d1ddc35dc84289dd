/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the functions of the kernel in which a thread runs. A signal reaches a thread when its
 * system call has ended, so its sample shows the call but not what the kernel did. If permitted
 * (perf_event_open), the kernel records its own functions from time to time, with the address and
 * the stack pointer of the program. A sample gets the functions of the last record with the same
 * two values, which belongs to the same call. Threads that make few calls have no such event.
 */
#include "capture/sample/sample.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE      4096
#define RING      (4 * PAGE) /* bytes of records, a power of two */
#define KEPT      16         /* number of calls of a thread whose functions are kept */
#define FUNCTIONS 32         /* of one of them */
#define NAMES     (1u << 20) /* functions of the kernel */
#define MARKERS   UINT64_C(4095)

#if defined(__x86_64__)
enum { SP_BIT = 7, IP_BIT = 8 };
#else
enum { SP_BIT = 31, IP_BIT = 32 };
#endif

struct call {
    uint64_t pc, sp;
    unsigned n;
    uint64_t at[FUNCTIONS]; /* the innermost first */
};

struct rp_sample_kernel {
    struct perf_event_mmap_page *head;
    int fd;
    unsigned next;
    struct call calls[KEPT];
};

static struct rp_sample_symbol *names; /* by address */
static size_t nnames;
static char *texts;

/* Functions that all system calls have in common, and those that deliver a signal at the end of a
   call, including ours. */
static struct {
    const char *name;
    bool delivers;
    uint64_t from, to;
} marks[] = {{"do_syscall_64", false, 0, 0},
             {"el0_svc", false, 0, 0},
             {"arch_do_signal_or_restart", true, 0, 0},
             {"arch_do_signal", true, 0, 0},
             {"do_signal", true, 0, 0}};

#define NMARKS (sizeof marks / sizeof *marks)

/* -------------------------------------------------------------------------- the event */

/* Opens an event of the thread, or if tid is 0, of this one; -1: it is not permitted. */
static long open_event(uint32_t tid, int64_t period_ns)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_TASK_CLOCK,
        .sample_period = (uint64_t)period_ns,
        .sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER,
        .sample_regs_user = UINT64_C(1) << SP_BIT | UINT64_C(1) << IP_BIT,
        .exclude_user = 1,
        .exclude_hv = 1,
        .exclude_callchain_user = 1,
        .watermark = 1,
        .wakeup_watermark = RING, /* nobody waits */
    };

    return syscall(SYS_perf_event_open, &attr, tid, -1, -1, (unsigned long)PERF_FLAG_FD_CLOEXEC);
}

static bool is_permitted(void)
{
    long fd = open_event(0, 1000000000);

    if (fd >= 0)
        close((int)fd);
    return fd >= 0;
}

/* -------------------------------------------------------------------------- names */

bool rp_sample_kernel_names(unsigned pages)
{
    enum { SIZE = 32 << 20 };
    static enum { CLOSED, READING, READ } phase;
    static size_t n, taken; /* number of bytes that were read; those in whole lines */
    static int fd;
    ssize_t got = 1;

    if (phase == READ)
        return true;
    if (phase == CLOSED) {
        texts = rp_sample_pages(SIZE);
        names = rp_sample_pages(NAMES * sizeof *names);
        fd = texts && names && is_permitted() ? open("/proc/kallsyms", O_RDONLY | O_CLOEXEC) : -1;
        phase = READING;
    }
    while (fd >= 0 && pages-- && n < SIZE - 1 && (got = read(fd, texts + n, SIZE - 1 - n)) > 0) {
        n += (size_t)got;
        for (char *end; (end = memchr(texts + taken, '\n', n - taken));) {
            *end = '\0';

            /* Reads "ffffffff81000000 T _stext", and after a tab the module; an address of 0 is
               hidden from this process. */
            char *rest;
            uint64_t address = strtoull(texts + taken, &rest, 16);
            if (address && rest[0] == ' ' && strchr("tTwW", rest[1]) && rest[2] == ' ' &&
                nnames < NAMES)
                names[nnames++] =
                    (struct rp_sample_symbol){address, UINT32_MAX, (uint32_t)(rest + 3 - texts)};
            taken = (size_t)(end + 1 - texts);
        }
    }
    if (fd >= 0 && got > 0 && n < SIZE - 1)
        return false;
    if (fd >= 0)
        close(fd);
    nnames = rp_sample_symbols_sort(names, nnames);
    for (size_t i = 0; i < nnames; i++)
        for (size_t k = 0; k < NMARKS; k++) {
            if (marks[k].from && !marks[k].to && names[i].address > marks[k].from)
                marks[k].to = names[i].address;
            if (!marks[k].from && !strcmp(texts + names[i].name, marks[k].name))
                marks[k].from = names[i].address;
        }
    phase = READ;
    return true;
}

/* Whether the functions are those of a system call. */
static bool is_call(const uint64_t *at, unsigned n)
{
    bool found = false;

    for (unsigned i = 0; i < n; i++)
        for (size_t k = 0; k < NMARKS; k++)
            if (at[i] >= marks[k].from && at[i] < marks[k].to) {
                if (marks[k].delivers)
                    return false;
                found = true;
            }
    return found;
}

static const char *name_of(uint64_t pc)
{
    const struct rp_sample_symbol *s = rp_sample_symbols_find(names, nnames, pc);
    char name[101], text[128];

    if (!s)
        return NULL;
    snprintf(name, sizeof name, "%s", texts + s->name);
    name[strcspn(name, "\t")] = '\0';
    snprintf(text, sizeof text, "kernel\t%s\t[kernel]\t0", name);
    return rp_sample_intern(text);
}

/* -------------------------------------------------------------------------- records */

struct rp_sample_kernel *rp_sample_kernel_open(uint32_t tid, int64_t period_ns)
{
    long fd = nnames ? open_event(tid, period_ns) : -1;
    void *ring = MAP_FAILED;
    struct rp_sample_kernel *k;

    if (fd >= 0)
        ring = mmap(NULL, PAGE + RING, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
    k = ring == MAP_FAILED ? NULL : rp_sample_pages(sizeof *k);
    if (k) {
        k->head = ring;
        k->fd = (int)fd;
        return k;
    }
    if (ring != MAP_FAILED)
        munmap(ring, PAGE + RING);
    if (fd >= 0)
        close((int)fd);
    return NULL;
}

void rp_sample_kernel_close(struct rp_sample_kernel *k)
{
    if (!k)
        return;
    munmap(k->head, PAGE + RING);
    close(k->fd);
    munmap(k, sizeof *k);
}

static uint64_t word_at(const struct rp_sample_kernel *k, uint64_t at)
{
    uint64_t v;

    memcpy(&v, (const uint8_t *)k->head + PAGE + (at & (RING - 1)), 8); /* all are aligned */
    return v;
}

/* A record has: the number of functions and markers, these, the kind of registers, sp, pc. */
static void take_record(struct rp_sample_kernel *k, uint64_t at, uint64_t size)
{
    uint64_t n = word_at(k, at), end = at + 8 + n * 8;
    struct call *c, fresh = {0};

    if (n > size / 8 || 8 + n * 8 + 24 > size || !word_at(k, end))
        return;
    fresh.sp = word_at(k, end + 8);
    fresh.pc = word_at(k, end + 16);
    for (uint64_t i = 1; i <= n && fresh.n < FUNCTIONS; i++) {
        uint64_t pc = word_at(k, at + i * 8);

        if (pc < UINT64_MAX - MARKERS)
            fresh.at[fresh.n++] = pc;
    }
    if (!is_call(fresh.at, fresh.n))
        return;
    for (c = k->calls; c < k->calls + KEPT && (c->pc != fresh.pc || c->sp != fresh.sp);)
        c++;
    if (c == k->calls + KEPT)
        c = &k->calls[k->next++ % KEPT];
    *c = fresh;
}

uint32_t rp_sample_kernel_put(struct rp_sample_kernel *k, const struct rp_sample_regs *regs,
                              const char *frames[RP_SAMPLE_FRAMES], uint32_t n)
{
    const struct call *c = k->calls;
    uint64_t pc = regs->at[RP_SAMPLE_PC];

    /* Takes the samples that the kernel has written since the last look. */
    uint64_t head = __atomic_load_n(&k->head->data_head, __ATOMIC_ACQUIRE);
    uint64_t at = k->head->data_tail;
    while (at < head) {
        struct perf_event_header h;
        uint64_t first = word_at(k, at);
        memcpy(&h, &first, sizeof h);
        if (h.size < sizeof h || h.size > head - at)
            break;
        if (h.type == PERF_RECORD_SAMPLE)
            take_record(k, at + sizeof h, h.size - sizeof h);
        at += h.size;
    }
    __atomic_store_n(&k->head->data_tail, head, __ATOMIC_RELEASE);
    while (c < k->calls + KEPT && (c->sp != regs->at[RP_SAMPLE_SP] || c->pc - pc > RP_SAMPLE_CALL))
        c++; /* a restarted call is at its instruction */
    if (c == k->calls + KEPT)
        return n;
    for (unsigned i = c->n; i-- && n < RP_SAMPLE_FRAMES;) {
        frames[n] = name_of(c->at[i]);
        n += frames[n] != NULL;
    }
    return n;
}
