/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `record --pid`: loads the recorder into a process that runs, by ptrace. Its main thread is
 * stopped where it holds no lock that loading a library takes, calls dlopen and the recorder's
 * entry with its own registers put aside, and goes on as if nothing had happened; the whole takes
 * some milliseconds. Other threads run on meanwhile, so that what they hold is released.
 *
 * A thread may be stopped anywhere, and half of the places are wrong: a lock of malloc or of the
 * loader that it holds itself will not be released while it waits for it. So it is let go and
 * stopped again until all of this is true:
 *
 *     it waits in a system call that neither malloc nor the loader makes, or it is outside of the C
 *     library and of the library that has malloc
 *     no signal handler runs on its stack, which may have interrupted these
 *     nobody holds a lock of the loader (they are found in the loader's data)
 *     it is not in a restartable sequence
 *
 * If this command is killed in the middle of a call, the process has to go on by itself. So a call
 * returns to a system call that does not exist, at which this command sees its result and puts the
 * registers back; without it, the call after that one is the return from a signal handler, with a
 * frame on the stack that has the registers, the vectors and the mask of signals of before. (On
 * aarch64 a call returns to address 0, and the fault says that it is done.)
 */
#include "cli/record_live.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define SAFE_WITHIN_NS  INT64_C(10000000000)
#define CALL_WITHIN_NS  INT64_C(20000000000) /* loading from a slow disk */
#define POLL_NS         100000
#define LET_GO_NS       2000000   /* between two stops */
#define RED_ZONE        128       /* bytes below the stack pointer that x86-64 functions may use */
#define TEXT_BYTES      16384     /* of arguments, on the stack of the process */
#define STATE_BYTES     65536     /* of vector registers: 11 KiB with AMX */
#define STACK_BYTES     (1 << 20) /* that are searched for the frame of a signal */
#define RSEQ_CONFIG     0x420f    /* PTRACE_GET_RSEQ_CONFIGURATION, Linux 5.13 */
#define MUTEX_RECURSIVE 1
#define RSEQ_CS_AT      8      /* bytes: place of the word in struct rseq */
#define ATTACH_CODE     0xffff /* of what reprise_attach_v1 returns */
#define SPINS           200    /* looks for a stop before it is waited for with pauses */

#if defined(__x86_64__)
typedef struct user_regs_struct registers;
static const int state_sets[] = {NT_X86_XSTATE};
static const unsigned char sigreturn_code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
static const unsigned char syscall_code[] = {0x0f, 0x05, 0xc3}; /* and a return */
#define MACHINE   EM_X86_64
#define PC(r)     ((r).rip)
#define SP(r)     ((r).rsp)
#define RESULT(r) ((r).rax)
#elif defined(__aarch64__)
typedef struct user_regs_struct registers;
static const int state_sets[] = {NT_PRFPREG, NT_ARM_SVE};
static const unsigned char sigreturn_code[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
#define MACHINE   EM_AARCH64
#define PC(r)     ((r).pc)
#define SP(r)     ((r).sp)
#define RESULT(r) ((r).regs[0])
#endif

#define NSTATES (sizeof state_sets / sizeof *state_sets)

struct mapping {
    uint64_t from, to, offset;
    bool code;
    ino_t inode;
    char path[PATH_MAX];
};

struct inject {
    pid_t pid;
    int mem; /* /proc/PID/mem */
    struct rp_err *err;
    registers saved;
    struct {
        size_t size;
        char bytes[STATE_BYTES];
    } states[NSTATES];
    uint64_t mask; /* of signals */
    bool held;     /* a signal that stops the process came meanwhile */
    bool left;     /* a call goes on by itself */
    struct mapping libc, loader, stack;
    uint64_t sigreturn;         /* where handlers return to; 0: not known */
    uint64_t syscall;           /* x86-64: a system call and a return; 0: not known */
    uint64_t locks, locks_size; /* the loader's data */
    const char *why;            /* it was not safe to stop there, the last time */
};

static bool fail(struct inject *in, const char *text)
{
    if (!in->err->text[0])
        snprintf(in->err->text, sizeof in->err->text, "cannot attach to process %d: %s",
                 (int)in->pid, text);
    return false;
}

static void pause_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static bool peek(const struct inject *in, uint64_t at, void *to, size_t size)
{
    return pread(in->mem, to, size, (off_t)at) == (ssize_t)size;
}

/* -------------------------------------------------------------------------- what is mapped */

static bool read_mapping(char *line, struct mapping *m)
{
    unsigned long long from, to, offset, inode;
    char flags[8];
    int n = 0;

    if (sscanf(line, "%llx-%llx %7s %llx %*s %llu %n", &from, &to, flags, &offset, &inode, &n) != 5)
        return false;
    line[strcspn(line, "\n")] = '\0';
    *m = (struct mapping){from, to, offset, flags[2] == 'x', (ino_t)inode, ""};
    snprintf(m->path, sizeof m->path, "%s", line + n);
    return true;
}

static const char *name_of(const struct mapping *m)
{
    const char *slash = strrchr(m->path, '/');

    return slash ? slash + 1 : m->path;
}

/* Calls `take` for each mapping until it returns true. */
static bool each_mapping(const struct inject *in, bool (*take)(const struct mapping *m, void *to),
                         void *to)
{
    char path[40], *line = NULL;
    struct mapping m;
    size_t room = 0;
    bool taken = false;

    snprintf(path, sizeof path, "/proc/%d/maps", (int)in->pid);
    FILE *f = fopen(path, "re");
    while (f && !taken && getline(&line, &room, f) > 0)
        taken = read_mapping(line, &m) && take(&m, to);
    free(line);
    if (f)
        fclose(f);
    return taken;
}

struct wanted {
    const char *name; /* begins so, or is so where it ends with '\n' */
    uint64_t at;      /* or contains this address */
    struct mapping found;
};

static bool take_wanted(const struct mapping *m, void *to)
{
    struct wanted *w = to;
    bool found = w->name ? !m->offset && m->inode && !strncmp(name_of(m), w->name, strlen(w->name))
                         : w->at >= m->from && w->at < m->to;

    if (found)
        w->found = *m;
    return found;
}

static bool find_file(const struct inject *in, const char *name, struct mapping *found)
{
    struct wanted w = {.name = name};
    bool is = each_mapping(in, take_wanted, &w);

    *found = w.found;
    return is;
}

static bool find_place(const struct inject *in, uint64_t at, struct mapping *found)
{
    struct wanted w = {.at = at};
    bool is = each_mapping(in, take_wanted, &w);

    *found = w.found;
    return is;
}

/* The value of a symbol that a library exports, and its size; 0: it has none. */
static uint64_t symbol_in(const char *file, size_t size, const char *name, uint64_t *length)
{
    const Elf64_Ehdr *head = (const void *)file;

    if (size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_shoff > size || head->e_shnum > (size - head->e_shoff) / sizeof(Elf64_Shdr))
        return 0;
    const Elf64_Shdr *sections = (const void *)(file + head->e_shoff);
    for (size_t i = 0; i < head->e_shnum; i++) {
        const Elf64_Shdr *s = &sections[i],
                         *names = s->sh_link < head->e_shnum ? &sections[s->sh_link] : s;
        const Elf64_Sym *symbols = (const void *)(file + s->sh_offset);

        if (s->sh_type != SHT_DYNSYM || s->sh_offset > size || s->sh_size > size - s->sh_offset ||
            names->sh_offset > size || names->sh_size > size - names->sh_offset)
            continue;
        for (size_t k = 0; k < s->sh_size / sizeof *symbols; k++)
            if (symbols[k].st_shndx && symbols[k].st_name + strlen(name) < names->sh_size &&
                !strcmp(file + names->sh_offset + symbols[k].st_name, name)) {
                *length = symbols[k].st_size;
                return symbols[k].st_value;
            }
    }
    return 0;
}

/* The address of a symbol in the process; 0: it is not there, or the file is another one by now. */
static uint64_t symbol_of(const struct mapping *m, const char *name, uint64_t *length)
{
    int fd = open(m->path, O_RDONLY | O_CLOEXEC);
    uint64_t value = 0, unused;
    struct stat st;

    if (fd >= 0 && !fstat(fd, &st) && st.st_ino == m->inode && st.st_size > 0) {
        char *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

        if (file != MAP_FAILED) {
            value = symbol_in(file, (size_t)st.st_size, name, length ? length : &unused);
            munmap(file, (size_t)st.st_size);
        }
    }
    if (fd >= 0)
        close(fd);
    return value ? m->from + value : 0;
}

static bool take_sigreturn(const struct mapping *m, void *to)
{
    struct inject *in = to;

    if (!m->code || (m->inode != in->libc.inode && strcmp(m->path, "[vdso]") != 0))
        return false;
    size_t size = (size_t)(m->to - m->from);
    char *text = malloc(size);
    const char *at = text && peek(in, m->from, text, size)
                         ? memmem(text, size, sigreturn_code, sizeof sigreturn_code)
                         : NULL;
    if (at)
        in->sigreturn = m->from + (uint64_t)(at - text);
#if defined(__x86_64__)
    const char *call = at ? memmem(text, size, syscall_code, sizeof syscall_code) : NULL;
    if (call)
        in->syscall = m->from + (uint64_t)(call - text);
#endif
    free(text);
    return at != NULL;
}

/* -------------------------------------------------------------------------- stopping */

/* Waits for a stop; false: the process has ended, or (late) it takes too long. */
static bool wait_stop(struct inject *in, int *status, int64_t within_ns, bool *late)
{
    int64_t until = record_now_ns() + within_ns;
    int looks = 0;
    pid_t got;

    while ((got = waitpid(in->pid, status, __WALL | WNOHANG)) == 0) {
        if (record_now_ns() > until) {
            *late = true;
            return false;
        }
        if (looks++ < SPINS)
            sched_yield();
        else
            pause_ns(POLL_NS);
    }
    return got == in->pid && WIFSTOPPED(*status);
}

static bool is_our_stop(int status)
{
    return status >> 16 == PTRACE_EVENT_STOP;
}

/* Stops the main thread; signals that come are delivered. */
static bool stop(struct inject *in)
{
    bool late = false;
    int status;

    if (ptrace(PTRACE_INTERRUPT, in->pid, 0, 0))
        return fail(in, strerror(errno));
    while (wait_stop(in, &status, SAFE_WITHIN_NS, &late)) {
        if (is_our_stop(status) && WSTOPSIG(status) != SIGTRAP)
            return fail(in, "it is stopped (kill -CONT lets it go on)");
        if (is_our_stop(status))
            return true;
        ptrace(PTRACE_CONT, in->pid, 0, WSTOPSIG(status));
    }
    return fail(in,
                late ? "its main thread cannot be stopped: it waits in the kernel, for a disk, for "
                       "a file system of the network, or for a program that it starts (vfork); "
                       "try again"
                     : "it has ended");
}

/* A set of registers. Returns its size, 0 where there is none. */
static size_t transfer(const struct inject *in, int request, int set, void *bytes, size_t size)
{
    struct iovec io = {bytes, size};

    return ptrace(request, in->pid, (void *)(uintptr_t)set, &io) ? 0 : io.iov_len;
}

/* The system call in which the thread is, or -1. */
static long system_call(const struct inject *in)
{
#if defined(__x86_64__)
    (void)in;
    return (long)in->saved.orig_rax;
#else
    uint32_t code[2] = {0}, call = 0xd4000001;

    if (!peek(in, PC(in->saved) - 4, code, sizeof code) || (code[0] != call && code[1] != call))
        return -1;
    return (long)in->saved.regs[8];
#endif
}

/* Calls in which threads wait, and which neither malloc nor the loader makes: a lock of theirs is
   waited for by FUTEX_WAIT. */
static bool is_waiting(const struct inject *in)
{
    static const long calls[] = {
#ifdef SYS_poll
        SYS_poll,    SYS_select,          SYS_epoll_wait,    SYS_pause,
#endif
        SYS_ppoll,   SYS_pselect6,        SYS_epoll_pwait,   SYS_nanosleep, SYS_clock_nanosleep,
        SYS_wait4,   SYS_waitid,          SYS_write,         SYS_writev,    SYS_sendto,
        SYS_sendmsg, SYS_recvfrom,        SYS_recvmsg,       SYS_accept,    SYS_accept4,
        SYS_connect, SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_ioctl,     SYS_restart_syscall};
    const long wait_bitset = 9, command = 127;
    long call = system_call(in);

#if defined(__x86_64__)
    if (call == SYS_futex)
        return ((long)in->saved.rsi & command) == wait_bitset;
#else
    if (call == SYS_futex)
        return ((long)in->saved.regs[1] & command) == wait_bitset;
#endif
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (call == calls[i])
            return true;
    return false;
}

/* Whether the code at the program counter may be in malloc or in the loader. */
static bool is_in_library(const struct inject *in)
{
    struct mapping m;

    if (!find_place(in, PC(in->saved), &m))
        return true;
    return m.inode && (m.inode == in->libc.inode || m.inode == in->loader.inode ||
                       !strncmp(name_of(&m), "libpthread", 10) || symbol_of(&m, "malloc", NULL));
}

/* Whether these words of the stack, from the address of the return on, are a frame of a signal, and
   not what sigaction() has left there: it has the stack pointer and the code segment of before. */
static bool is_signal_frame(const struct inject *in, const uint64_t *words, size_t n, uint64_t at)
{
    const size_t link = 2, stack = 21, segments = 24;

    if (words[0] != in->sigreturn)
        return false;
#if defined(__x86_64__)
    return n > segments && !words[link] && words[stack] > at && words[stack] < in->stack.to &&
           (words[segments] & 0xffff) == 0x33;
#else
    (void)n, (void)at, (void)link, (void)stack, (void)segments;
    return true;
#endif
}

static bool has_signal_frame(const struct inject *in)
{
    uint64_t from = SP(in->saved) & ~UINT64_C(7), size = in->stack.to - from;

    size = size < STACK_BYTES ? size : STACK_BYTES;
    uint64_t *words = malloc(size);
    bool found = !words || !peek(in, from, words, size);
    for (size_t i = 0; !found && i < size / sizeof *words; i++)
        found = in->sigreturn &&
                is_signal_frame(in, words + i, size / sizeof *words - i, from + i * sizeof *words);
    free(words);
    return found;
}

/* Whether a mutex of the loader is held. They are the recursive ones among its data: lock, count,
   owner, users, kind. */
static bool is_loading(const struct inject *in)
{
    uint32_t *words = malloc(in->locks_size);
    bool held = in->locks_size && (!words || !peek(in, in->locks, words, in->locks_size));

    for (size_t i = 0; !held && i + 10 <= in->locks_size / sizeof *words; i += 2)
        held = words[i + 4] == MUTEX_RECURSIVE && words[i] && words[i] <= 2 && words[i + 1] &&
               words[i + 1] < 64 && words[i + 2] && words[i + 3] == 1 && !words[i + 5];
    free(words);
    return held;
}

static bool is_in_sequence(const struct inject *in)
{
    struct {
        uint64_t at;
        uint32_t size, signature, flags, pad;
    } config = {0};
    uint64_t section = 0;

    return ptrace((enum __ptrace_request)RSEQ_CONFIG, in->pid, (void *)sizeof config, &config) >
               0 &&
           config.at && peek(in, config.at + RSEQ_CS_AT, &section, sizeof section) && section;
}

static bool is_safe(struct inject *in)
{
    if (!transfer(in, PTRACE_GETREGSET, NT_PRSTATUS, &in->saved, sizeof in->saved))
        return false;
    if (!find_place(in, SP(in->saved), &in->stack) || strcmp(in->stack.path, "[stack]") != 0)
        in->why = "its main thread runs on a stack of its own";
    else if (SP(in->saved) - in->stack.from < RED_ZONE + TEXT_BYTES + 64)
        in->why = "its main thread has no room on its stack";
    else if (!is_waiting(in) && is_in_library(in))
        in->why = "its main thread is always in the C library, or in its malloc";
    else if (has_signal_frame(in))
        in->why = "its main thread is always in a signal handler";
    else if (is_loading(in))
        in->why = "a thread is loading a library all the time";
    else
        in->why = is_in_sequence(in) ? "its main thread is in a restartable sequence" : NULL;
    return !in->why;
}

/* epoll_wait ends with EINTR because of the stop, which programs do not expect without a signal: it
   begins again. */
static bool begin_again(struct inject *in)
{
#if defined(__x86_64__)
    long call = (long)in->saved.orig_rax;

    if ((long)in->saved.rax != -EINTR || (call != SYS_epoll_wait && call != SYS_epoll_pwait) ||
        record_live_has_signal(in->pid))
        return false;
    in->saved.rax = (unsigned long long)call;
    in->saved.rip -= 2; /* the instruction that calls the system */
    in->saved.orig_rax = (unsigned long long)-1;
    return true;
#else
    (void)in; /* the first argument is lost */
    return false;
#endif
}

static bool seize(struct inject *in)
{
    if (!ptrace(PTRACE_SEIZE, in->pid, 0, (void *)PTRACE_O_TRACESYSGOOD))
        return true;
    int code = errno;
    if (code == EPERM)
        record_live_explain(in->pid, in->err);
    return fail(in, strerror(code));
}

/* Traces it in a place that is right: the places where it is stopped differ. Between two of them it
   is not traced, so that its signals need not wait for us. */
static bool stop_safely(struct inject *in)
{
    int64_t until = record_now_ns() + SAFE_WITHIN_NS;

    for (long turn = 0; seize(in) && stop(in); turn++) {
        if (is_safe(in))
            return true;
        if (record_now_ns() > until)
            return fail(in, in->why ? in->why : strerror(errno));
        if (begin_again(in))
            transfer(in, PTRACE_SETREGSET, NT_PRSTATUS, &in->saved, sizeof in->saved);
        ptrace(PTRACE_DETACH, in->pid, 0, 0);
        pause_ns(turn * 37 % 16 * (LET_GO_NS / 16) + POLL_NS);
    }
    return false;
}

/* -------------------------------------------------------------------------- calling */

static bool save(struct inject *in)
{
    for (size_t i = 0; i < NSTATES; i++)
        in->states[i].size = transfer(in, PTRACE_GETREGSET, state_sets[i], in->states[i].bytes,
                                      sizeof in->states[i].bytes);
    begin_again(in);
    return in->states[0].size &&
           !ptrace(PTRACE_GETSIGMASK, in->pid, (void *)sizeof in->mask, &in->mask);
}

/* Signals stay pending, but for those that the calls themselves may raise. */
static bool block_signals(const struct inject *in)
{
    uint64_t all = ~UINT64_C(0);

    for (const int *s = (const int[]){SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, 0}; *s; s++)
        all &= ~(UINT64_C(1) << (*s - 1));
    return !ptrace(PTRACE_SETSIGMASK, in->pid, (void *)sizeof all, &all);
}

#if defined(__x86_64__)
/* The frame of a signal handler that was called where the process was stopped. The kernel takes the
   vectors only if their size is at most what this thread uses (AMX has to be asked for). */
struct frame {
    uint64_t call, back; /* the two returns */
    struct {             /* as the kernel has it: the mask is shorter than that of libc */
        unsigned long flags;
        void *link;
        stack_t stack;
        mcontext_t registers;
        uint64_t mask;
    } context;
};

#define XSTATE_HEAD   576 /* bytes: registers of SSE, and which others there are */
#define XSTATE_MAGIC  0x46505853
#define XSTATE_END    0x46505845
#define XSTATE_SAYS   464 /* place of {magic, size with the end, features (two), size} */
#define XSTATE_HAS    512 /* place of the features that are in it */
#define CPUID_XSTATE  0xd
#define NO_ALTSTACK   0x7fffffff /* not valid, so that it stays as it is */
#define STRICT_XSTATE 7          /* flags: vectors, and the stack segment */

static uint32_t vectors_size(const char *bytes, size_t all)
{
    unsigned size, at, unused;
    uint32_t end = XSTATE_HEAD;
    uint64_t has;

    memcpy(&has, bytes + XSTATE_HAS, sizeof has);
    for (unsigned i = 2; i < 63; i++)
        if (has >> i & 1 && __get_cpuid_count(CPUID_XSTATE, i, &size, &at, &unused, &unused) &&
            at + size > end && at + size <= all)
            end = at + size;
    return end;
}

/* What the kernel does to a system call that was interrupted, where no handler is called. */
static void begin_call_again(registers *r)
{
    const long restart_sys = -512, restart_always = -513, restart_no_hand = -514,
               restart_block = -516;
    long result = (long)r->rax;

    if ((long)r->orig_rax < 0)
        return;
    if (result == restart_sys || result == restart_always || result == restart_no_hand) {
        r->rax = r->orig_rax;
        r->rip -= 2;
    } else if (result == restart_block) {
        r->rax = (unsigned long long)-EINTR;
    }
}

/* Puts what the call returns to at `stack`, and the vectors below `*top`. */
static bool write_frame(const struct inject *in, uint64_t stack, uint64_t *top)
{
    const char *bytes = in->states[0].bytes;
    uint32_t size = vectors_size(bytes, in->states[0].size), end = XSTATE_END,
             says[] = {XSTATE_MAGIC, size + (uint32_t)sizeof end, 0, 0, size};
    uint64_t at = (*top - size - sizeof end) & ~UINT64_C(63);
    registers r = in->saved;

    memcpy(says + 2, bytes + XSTATE_SAYS, sizeof(uint64_t)); /* where ptrace has the features */
    begin_call_again(&r);
    struct frame f = {.call = in->syscall,
                      .back = in->sigreturn,
                      .context = {.flags = STRICT_XSTATE,
                                  .stack.ss_flags = NO_ALTSTACK,
                                  .registers.fpregs = (void *)(uintptr_t)at,
                                  .mask = in->mask}};
    const greg_t values[] = {(greg_t)r.r8,
                             (greg_t)r.r9,
                             (greg_t)r.r10,
                             (greg_t)r.r11,
                             (greg_t)r.r12,
                             (greg_t)r.r13,
                             (greg_t)r.r14,
                             (greg_t)r.r15,
                             (greg_t)r.rdi,
                             (greg_t)r.rsi,
                             (greg_t)r.rbp,
                             (greg_t)r.rbx,
                             (greg_t)r.rdx,
                             (greg_t)r.rax,
                             (greg_t)r.rcx,
                             (greg_t)r.rsp,
                             (greg_t)r.rip,
                             (greg_t)r.eflags,
                             (greg_t)(r.cs | r.ss << 48)};
    memcpy(f.context.registers.gregs, values, sizeof values);
    *top = at;
    return pwrite(in->mem, bytes, size, (off_t)at) == (ssize_t)size &&
           pwrite(in->mem, says, sizeof says, (off_t)at + XSTATE_SAYS) == sizeof says &&
           pwrite(in->mem, &end, sizeof end, (off_t)(at + size)) == sizeof end &&
           pwrite(in->mem, &f, sizeof f, (off_t)stack) == sizeof f;
}
#endif

static registers registers_for(const struct inject *in, uint64_t function, const uint64_t *args,
                               uint64_t stack)
{
    registers r = in->saved;

    SP(r) = stack;
    PC(r) = function;
#if defined(__x86_64__)
    r.rdi = args[0];
    r.rsi = args[1];
    r.rax = 0;
    r.orig_rax = (unsigned long long)-1; /* not a system call that begins again */
    r.eflags &= ~UINT64_C(0x400);        /* direction */
#else
    r.regs[0] = args[0];
    r.regs[1] = args[1];
    r.regs[30] = 0;
    r.pstate &= ~UINT64_C(0xc00); /* of a branch */
#endif
    return r;
}

/* Whether the call has returned: `stack` is that of the call. */
static bool has_returned(const struct inject *in, int status, uint64_t stack, uint64_t *result)
{
    registers r;

    if (!transfer(in, PTRACE_GETREGSET, NT_PRSTATUS, &r, sizeof r))
        return false;
#if defined(__x86_64__)
    *result = r.orig_rax;

    if (WSTOPSIG(status) != (SIGTRAP | 0x80) || PC(r) != in->syscall + 2 ||
        SP(r) != stack + sizeof stack)
        return false;
    r.orig_rax = (unsigned long long)-1; /* it is not made */
    return transfer(in, PTRACE_SETREGSET, NT_PRSTATUS, &r, sizeof r);
#else
    (void)status, (void)stack;
    *result = RESULT(r);
    return PC(r) == 0;
#endif
}

/* Waits until the call has returned, and the process is stopped as it was before: the system call
   in which that was begins again only from there. A call that takes too long is left alone. */
static bool wait_return(struct inject *in, uint64_t stack, uint64_t *result)
{
    bool late = false, returned = false;
    int status;

    while (wait_stop(in, &status, CALL_WITHIN_NS, &late)) {
        int signal = is_our_stop(status) ? 0 : WSTOPSIG(status);

        if (returned && is_our_stop(status))
            return true;
        if (!returned && has_returned(in, status, stack, result)) {
            returned = true;
            ptrace(PTRACE_INTERRUPT, in->pid, 0, 0);
        } else if (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE) {
            return fail(in, "loading the recorder failed in it (a fault)");
        }
        in->held = in->held || signal == SIGSTOP;
        ptrace(returned ? PTRACE_CONT : PTRACE_SYSCALL, in->pid, 0, 0);
    }
    if (!late)
        return fail(in, "it has ended");
    in->left = in->syscall != 0;
    ptrace(PTRACE_INTERRUPT, in->pid, 0, 0);
    wait_stop(in, &status, SAFE_WITHIN_NS, &late);
    return fail(in, "loading the recorder takes too long in it");
}

/* Calls function(arguments) in the process; texts are put onto its stack, below what it uses. */
static bool call(struct inject *in, uint64_t function, const char *const *texts, uint64_t last,
                 uint64_t *result)
{
    uint64_t top = SP(in->saved) - RED_ZONE, text = (top - TEXT_BYTES) & ~UINT64_C(15), at = text;
    uint64_t args[2] = {0, last}, stack = text;

#if defined(__x86_64__)
    stack -= (sizeof(struct frame) + 15) / 16 * 16 + sizeof stack; /* as behind a call */
    if (!write_frame(in, stack, &top))
        return fail(in, "its stack cannot be written");
#endif
    for (size_t i = 0; texts[i]; i++) {
        size_t n = strlen(texts[i]) + 1;

        if (at + n > top || pwrite(in->mem, texts[i], n, (off_t)at) != (ssize_t)n)
            return fail(in, "its stack cannot be written");
        args[i] = at;
        at += n;
    }
    registers r = registers_for(in, function, args, stack);
    if (!transfer(in, PTRACE_SETREGSET, NT_PRSTATUS, &r, sizeof r) || !block_signals(in) ||
        ptrace(PTRACE_SYSCALL, in->pid, 0, 0))
        return fail(in, strerror(errno));
    return wait_return(in, stack, result);
}

static bool load_and_begin(struct inject *in, const struct record *r, uint64_t *session)
{
    static const char name[] = "reprise-host.so";
    char library[PATH_MAX + 64];
    struct mapping host, dl = in->libc;
    uint64_t handle = 1, code = 0;

    snprintf(library, sizeof library, "%s/%s", r->libraries, name);
    if (!find_file(in, name, &host)) {
        if (!symbol_of(&dl, "dlopen", NULL) && !find_file(in, "libdl", &dl))
            return fail(in, "its C library has no dlopen");
        uint64_t load = symbol_of(&dl, "dlopen", NULL);
        if (!load)
            return fail(in, "its C library is not the file that is installed now: start it again");
        if (!call(in, load, (const char *const[]){library, NULL}, RTLD_NOW | RTLD_GLOBAL, &handle))
            return false;
        if (!handle || !find_file(in, name, &host)) {
            /* What dlerror says there. */
            uint64_t dlerror_at = symbol_of(&dl, "dlerror", NULL);
            char text[300] = "", whole[400];
            uint64_t at = 0;

            if (dlerror_at && call(in, dlerror_at, (const char *const[]){NULL}, 0, &at) && at)
                (void)!pread(in->mem, text, sizeof text - 1, (off_t)at);
            snprintf(whole, sizeof whole, "it cannot load the recorder: %s", text);
            return fail(in, whole);
        }
    }
    uint64_t attach = symbol_of(&host, "reprise_attach_v1", NULL),
             where = symbol_of(&host, "reprise_session_v1", NULL);
    if (!attach || !where)
        return fail(in, "it has a recorder of another version");
    if (!call(in, where, (const char *const[]){NULL}, 0, session) ||
        !call(in, attach, (const char *const[]){r->folder, r->options, NULL}, 0, &code))
        return false;
    code &= ATTACH_CODE;
    if (code == EBUSY)
        return fail(in, "it is being recorded already");
    return !code || fail(in, strerror((int)code));
}

/* -------------------------------------------------------------------------- the whole */

static bool look_around(struct inject *in)
{
    uint64_t size = 0;

    if (find_file(in, "ld-musl", &in->loader))
        return fail(in, "its C library is musl; the recorder needs glibc");
    if (!find_file(in, "libc.so.6", &in->libc) && !find_file(in, "libc-2.", &in->libc))
        return fail(in, "it is statically linked, or its C library is not glibc (but musl, for "
                        "instance): nothing can be loaded into it");
    if (find_file(in, "ld-", &in->loader) || find_file(in, "ld64", &in->loader))
        in->locks = symbol_of(&in->loader, "_rtld_global", &size);
    in->locks_size = in->locks ? size & ~UINT64_C(7) : 0;
    each_mapping(in, take_sigreturn, in);
#if defined(__x86_64__)
    if (!in->syscall)
        return fail(in, "its C library is of an unknown kind");
#endif
    return true;
}

bool record_inject(const struct record *r, pid_t pid, uint64_t *session, struct rp_err *err)
{
    struct inject *in = calloc(1, sizeof *in);
    char path[40];
    bool done = false;

    if (!in)
        return false;
    *in = (struct inject){.pid = pid, .err = err};
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    in->mem = open(path, O_RDWR | O_CLOEXEC);
    if (in->mem < 0)
        fail(in, strerror(errno));
    else if (look_around(in)) {
        if (stop_safely(in) && save(in)) {
            done = load_and_begin(in, r, session);
            if (!in->left) {
                /* The program counter is the last: until then the process would go on by itself. */
                for (size_t i = 0; i < NSTATES; i++)
                    if (in->states[i].size)
                        transfer(in, PTRACE_SETREGSET, state_sets[i], in->states[i].bytes,
                                 in->states[i].size);
                ptrace(PTRACE_SETSIGMASK, in->pid, (void *)sizeof in->mask, &in->mask);
                transfer(in, PTRACE_SETREGSET, NT_PRSTATUS, &in->saved, sizeof in->saved);
            }
        }
        ptrace(PTRACE_DETACH, pid, 0, 0);
        if (in->held)
            kill(pid, SIGSTOP);
    }
    if (in->mem >= 0)
        close(in->mem);
    free(in);
    return done;
}
