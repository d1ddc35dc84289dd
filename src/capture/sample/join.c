/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins native and Python frames to one stack. The Python frames of a call of the evaluation loop
 * take the place of the loop's native frame. Which frame that is follows from addresses: the marker
 * that ends a group of Python frames is an address on the C stack, within the loop's frame. Without
 * such an address (before 3.11), the loops are found by their name, each with one frame. Groups
 * whose native frame was not reached form the outer part of the stack.
 */
#include "capture/sample/sample.h"

#include <string.h>
#include <sys/syscall.h>

#define AGAIN_NS INT64_C(1000000000) /* interval after which texts are looked up again */

struct joining {
    const struct rp_sample_raw *raw;
    struct rp_sample_known *known;
    const char **out; /* innermost first, until the end */
    size_t n, next;   /* next: in raw->python */
    int64_t now_ns;
};

static void put(struct joining *j, const char *text)
{
    if (text && j->n < RP_SAMPLE_FRAMES)
        j->out[j->n++] = text;
}

/* Finds the marker that ends the next group. */
static const struct rp_sample_py *group_end(const struct joining *j)
{
    for (size_t i = j->next; i < j->raw->npython; i++)
        if (!j->raw->python[i].code)
            return &j->raw->python[i];
    return NULL;
}

static void put_group(struct joining *j)
{
    const struct rp_sample_raw *raw = j->raw;

    for (; j->next < raw->npython && raw->python[j->next].code; j->next++) {
        const char **text = &j->known->texts[j->next];

        if (!*text)
            *text = rp_sample_python_text(&raw->python[j->next], j->now_ns);
        put(j, *text);
    }
    if (j->next < raw->npython)
        j->next++;
}

static void put_native(struct joining *j, struct rp_sample_native *f)
{
    const struct rp_sample_py *end = group_end(j);
    bool is_loop = end && (end->instr ? end->instr >= f->sp && end->instr < f->cfa
                                      : rp_sample_python_is_loop(f->start));

    if (is_loop) {
        put_group(j);
        return;
    }
    if (rp_sample_python_is_loop(f->start)) /* a loop that has only begun has no frame yet */
        return;
    if (f->text) {
        put(j, f->text);
        return;
    }
    f->text = rp_sample_native_text(f->pc, f->start, j->now_ns);
    put(j, f->text);
    if (!f->start) /* code that the program has generated may be replaced */
        f->text = NULL;
}

/* The copy grows at once and shrinks slowly, because bytes that are missing in it are read later,
   when they may have changed. */
static size_t enough_for(size_t before, uint64_t used)
{
    before = before ? before : RP_SAMPLE_STACK;
    size_t least = before - before / 16;
    used += RP_SAMPLE_LITTLE / 2;
    used = used > least ? used : least;
    used = used > RP_SAMPLE_LITTLE ? used : RP_SAMPLE_LITTLE;
    return used < RP_SAMPLE_STACK ? (size_t)used : RP_SAMPLE_STACK;
}

size_t rp_sample_join(struct rp_sample_raw *raw, struct rp_sample_known *known, int64_t now_ns,
                      const char *frames[RP_SAMPLE_FRAMES], bool *is_cut)
{
    struct joining j = {.raw = raw, .known = known, .out = frames, .now_ns = now_ns};
    struct rp_sample_regs regs = raw->regs;
    struct rp_sample_chain *chain = &known->chains[!known->chain];

    *is_cut = true;

    /* Keeps the texts of the outer Python frames that are the same as in the previous sample. */
    size_t n = raw->npython, nlast = known->nlast, same = 0;
    if (now_ns - known->looked_ns >= AGAIN_NS) {
        known->looked_ns = now_ns;
        nlast = 0;
    }
    while (same < n && same < nlast &&
           raw->python[n - 1 - same].code == known->last[nlast - 1 - same].code &&
           raw->python[n - 1 - same].instr == known->last[nlast - 1 - same].instr)
        same++;
    memmove(known->texts + (n - same), known->texts + (nlast - same), same * sizeof *known->texts);
    memset(known->texts, 0, (n - same) * sizeof *known->texts);
    memcpy(known->last, raw->python, (n == nlast ? n - same : n) * sizeof *known->last);
    known->nlast = n;
    if (raw->has_native) {
        rp_sample_unwind(&regs, &raw->copy, &known->chains[known->chain], chain);
        known->chain = !known->chain;
        *is_cut = chain->is_cut;
        known->enough = enough_for(known->enough, chain->at[chain->n - 1].cfa - raw->copy.at);
        raw->copy.enough = known->enough;
        for (size_t i = 0; i < chain->n; i++)
            put_native(&j, &chain->at[i]);
    }
    while (j.next < raw->npython)
        put_group(&j);
    *is_cut |= raw->python_is_cut;
    for (size_t i = 0; i < j.n / 2; i++) {
        const char *t = frames[i];

        frames[i] = frames[j.n - 1 - i];
        frames[j.n - 1 - i] = t;
    }
    return j.n;
}

#if defined(__x86_64__)
static const uint8_t call[RP_SAMPLE_CALL] = {0x0f, 0x05};

/* Whether the instruction leaves the address after it in rcx, as it does on all but the newest
   processors. */
static bool call_leaves_address(void)
{
    static enum { UNKNOWN, LEAVES, KEEPS } known;
    uint64_t left = 0, after = 0;
    long number = SYS_getppid;

    if (known == UNKNOWN) {
        __asm__ volatile("lea 1f(%%rip), %1\n\tsyscall\n1:"
                         : "+a"(number), "=&r"(after), "+c"(left)
                         :
                         : "r11", "memory");
        known = left == after ? LEAVES : KEEPS;
    }
    return known == LEAVES;
}

/* The code need not be read if the registers already rule it out. */
static bool may_be_call(const struct rp_sample_regs *regs)
{
    enum { RCX = 2 };

    return !(regs->known >> RCX & 1) || !call_leaves_address() ||
           regs->at[RCX] - regs->at[RP_SAMPLE_PC] <= sizeof call;
}
#else
static const uint8_t call[RP_SAMPLE_CALL] = {0x01, 0x00, 0x00, 0xd4};

static bool may_be_call(const struct rp_sample_regs *regs)
{
    return regs->known != 0;
}
#endif

/* A signal reaches a thread in a system call right after the instruction that made the call, or if
   the call is restarted, at that instruction. */
bool rp_sample_in_system_call(const struct rp_sample_raw *raw)
{
    uint8_t code[2 * sizeof call] = {0};

    if (!raw->has_native || !may_be_call(&raw->regs))
        return false;
    rp_sample_read(raw->regs.at[RP_SAMPLE_PC] - sizeof call, code, sizeof code);
    return !memcmp(code, call, sizeof call) || !memcmp(code + sizeof call, call, sizeof call);
}

static void add_part(struct rp_sample_part *parts, unsigned *count, uint64_t at, void *to, size_t n)
{
    parts[(*count)++] = (struct rp_sample_part){.at = at, .to = to, .n = n};
}

/* Plans the page of the thread's state, where the first frame is found, and the pages that the last
   walk needed, because the frames are mostly in the same ones. */
static unsigned plan_windows(struct rp_sample_raw *raw, uint64_t state,
                             struct rp_sample_part parts[RP_SAMPLE_WINDOWS])
{
    unsigned n = 0;

    raw->windows[0].at = state & ~UINT64_C(4095);
    raw->is_wanted[0] = true;
    for (unsigned i = 0; i < RP_SAMPLE_WINDOWS; i++) {
        struct rp_sample_window *w = &raw->windows[i];

        w->n = 0;
        if (state && raw->is_wanted[i] && w->at % sizeof w->bytes == 0)
            add_part(parts, &n, w->at, w->bytes, sizeof w->bytes);
        raw->is_wanted[i] = false;
    }
    return n;
}

void rp_sample_grab(struct rp_sample_raw *raw, uint64_t state, uint32_t tid)
{
    size_t wanted = raw->copy.enough ? raw->copy.enough : RP_SAMPLE_STACK;
    struct rp_sample_part parts[RP_SAMPLE_PARTS];
    unsigned nwindows = plan_windows(raw, state, parts), n = nwindows;
    uint64_t lock = rp_sample_python_lock();

    raw->copy.n = 0;
    raw->next_window = 0;
    raw->lock.is_held = 0;
    if (lock)
        add_part(parts, &n, lock, &raw->lock, 12);
    if (raw->has_native) {
        /* the stack is the last part, because there may be less of it */
        raw->copy.at = raw->regs.at[RP_SAMPLE_SP];
        add_part(parts, &n, raw->copy.at, raw->copy.bytes, wanted);
    }
    rp_sample_gather(parts, n);
    for (unsigned i = 0, k = 0; k < nwindows; i++)
        if (parts[k].to == raw->windows[i].bytes)
            raw->windows[i].n = parts[k++].got;
    if (raw->has_native)
        raw->copy.n = parts[n - 1].got;
    raw->npython = 0;
    raw->python_is_cut = false;
    if (state)
        rp_sample_python_walk(raw, state, tid);
}
