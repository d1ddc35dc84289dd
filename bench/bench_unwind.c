/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_unwind: processor time of unwinding one stack of `reprise sample` from a copy of it, with
 * nothing known of the stack before: by frame pointers in code without tables, and by the tables of
 * this program. The rules of an address are known after the first time, as they are in a recording.
 */
#include "capture/sample/sample.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define DEPTH 40
#define TURNS 100000

static struct rp_sample_copy copy;
static struct rp_sample_chain none, chain;

static double used_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void time_it(const char *name, const struct rp_sample_regs *regs)
{
    double before = used_us();

    for (unsigned i = 0; i < TURNS; i++) {
        struct rp_sample_regs r = *regs;

        rp_sample_unwind(&r, &copy, &none, &chain);
    }
    printf("%-15s %zu frames, %.2f us a stack\n", name, chain.n, (used_us() - before) / TURNS);
}

/* Code that no file has, whose frames are 64 bytes each. */
static void time_pointers(void)
{
    const uint64_t stack = UINT64_C(0x100000), code = UINT64_C(0x200000);
    struct rp_sample_regs regs = {.known = UINT64_C(1) << RP_SAMPLE_SP |
                                           UINT64_C(1) << RP_SAMPLE_FP |
                                           UINT64_C(1) << RP_SAMPLE_PC};

    regs.at[RP_SAMPLE_SP] = regs.at[RP_SAMPLE_FP] = stack;
    regs.at[RP_SAMPLE_PC] = code;
    memset(&copy, 0, sizeof copy);
    copy.at = stack;
    copy.n = (size_t)(DEPTH + 1) * 64;
    for (uint64_t i = 0; i + 1 < DEPTH; i++) {
        const uint64_t words[2] = {stack + (i + 1) * 64, code + (i + 1) * 16};

        memcpy(copy.bytes + i * 64, words, sizeof words);
    }
    time_it("frame pointers", &regs);
}

#if defined(__x86_64__)
static __attribute__((noinline)) int time_tables(unsigned depth)
{
    static const uint8_t order[RP_SAMPLE_REGS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
        REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    struct rp_sample_regs regs = {.known = (UINT64_C(1) << RP_SAMPLE_REGS) - 1};
    ucontext_t here;

    if (depth)
        return time_tables(depth - 1) + 1; // NOLINT(misc-no-recursion)
    getcontext(&here);
    for (unsigned i = 0; i < RP_SAMPLE_REGS; i++)
        regs.at[i] = (uint64_t)here.uc_mcontext.gregs[order[i]];
    copy.at = regs.at[RP_SAMPLE_SP];
    copy.n = rp_sample_read(copy.at, copy.bytes, sizeof copy.bytes);
    time_it("tables", &regs);
    return 0;
}
#endif

int main(void)
{
    rp_sample_pid = getpid();
    rp_sample_modules_read();
    time_pointers();
#if defined(__x86_64__)
    time_tables(DEPTH);
#endif
    return 0;
}
