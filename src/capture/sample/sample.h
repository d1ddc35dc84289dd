/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the files of the source `sample`; sample.c has the overview. Addresses are those of the
 * sampled process, as numbers: they are only read through memory.c, which never faults.
 */
#include "capture/core/core.h"

#include <sys/types.h>

#define RP_SAMPLE_STACK   (32 << 10) /* most bytes of a stack that are copied */
#define RP_SAMPLE_LITTLE  (8 << 10)  /* ... and at least */
#define RP_SAMPLE_PYTHON  512        /* most frames of Python that are kept of a stack */
#define RP_SAMPLE_NATIVE  256        /* native frames */
#define RP_SAMPLE_WINDOWS 3          /* pages of Python's frames that are kept during a walk */
#define RP_SAMPLE_FRAMES  (RP_SAMPLE_PYTHON + RP_SAMPLE_NATIVE)

#if defined(__x86_64__)
enum {
    RP_SAMPLE_REGS = 17,
    RP_SAMPLE_FP = 6,
    RP_SAMPLE_SP = 7,
    RP_SAMPLE_PC = 16,
    RP_SAMPLE_CALL = 2 /* bytes of the instruction that makes a system call */
};
#elif defined(__aarch64__)
enum {
    RP_SAMPLE_REGS = 33,
    RP_SAMPLE_FP = 29,
    RP_SAMPLE_LINK = 30,
    RP_SAMPLE_SP = 31,
    RP_SAMPLE_PC = 32,
    RP_SAMPLE_CALL = 4
};
#endif

/* ---- memory ---- */
extern pid_t rp_sample_pid; /* the sampled process */

size_t rp_sample_read(uint64_t at, void *to, size_t n);

#define RP_SAMPLE_PARTS 5
struct rp_sample_part {
    uint64_t at;
    void *to;
    size_t n, got;
};
/* Reads up to RP_SAMPLE_PARTS parts by one system call, plus one for each part, except the last,
   that cannot be read whole. */
void rp_sample_gather(struct rp_sample_part *parts, unsigned n);

/* The bytes around the last address that was read, so that neighbours cost no system call. */
struct rp_sample_window {
    uint64_t at;
    size_t n;
    uint8_t bytes[4096];
};
bool rp_sample_peek(struct rp_sample_window *w, uint64_t at, void *to, size_t n);
/* Whether the window has the bytes already. */
bool rp_sample_window_has(const struct rp_sample_window *w, uint64_t at, size_t n);
bool rp_sample_peek8(struct rp_sample_window *w, uint64_t at, uint64_t *to);

/* Memory that is never freed, and not from the program's heap; NULL if there is none. */
void *rp_sample_alloc(size_t n);
void *rp_sample_pages(size_t n); /* ... in pages of its own */
/* Returns the only copy of the text. */
const char *rp_sample_intern(const char *text);

/* ---- modules: the files that are mapped for execution ---- */
struct rp_sample_symbol {
    uint64_t address; /* as in the file */
    uint32_t size, name;
};
/* Sorts by address, keeping the order of equal ones; fast enough for a million, and without the
   heap that qsort may use. Returns n, or 0 if memory ran out. */
size_t rp_sample_symbols_sort(struct rp_sample_symbol *at, size_t n);
/* The last symbol that contains the address, or NULL. */
const struct rp_sample_symbol *rp_sample_symbols_find(const struct rp_sample_symbol *at, size_t n,
                                                      uint64_t address);

struct rp_sample_module {
    uint64_t from, to; /* addresses of its code */
    uint64_t bias;     /* address in memory - address in the file */
    uint64_t table;    /* of the headers of unwind tables; 0: none */
    const char *path;
    uint64_t headers; /* address of the file's beginning */
    uint64_t tables_from, tables_to,
        tables_at;       /* segment of the tables; tables_at is its place in the file */
    const uint8_t *file; /* mapped when it is first needed */
    size_t size;
    bool opened, has_names, tables_checked;
    struct rp_sample_symbol *symbols; /* functions, by address */
    uint32_t nsymbols;
    const char *names; /* in `file` */
};

extern unsigned rp_sample_generation; /* changes whenever the list changes */
extern bool rp_sample_modules_stale;  /* an address was in none of them */

/* Reads the list again. */
void rp_sample_modules_read(void);
size_t rp_sample_modules(struct rp_sample_module **out);
struct rp_sample_module *rp_sample_module_find(uint64_t pc);
/* Copies bytes of its unwind tables from the file, without a system call; false: not possible. */
bool rp_sample_module_table(struct rp_sample_module *m, uint64_t at, void *to, size_t n);
/* The address in memory of a symbol of any kind; 0 if there is none. */
uint64_t rp_sample_module_symbol(struct rp_sample_module *m, const char *name);
/* The frame's text for a native function. `start` is that of the function by the unwind tables, or
   0. NULL: it is not shown. */
const char *rp_sample_native_text(uint64_t pc, uint64_t start, int64_t now_ns);

/* ---- code that the program has made ---- */
/* Finds the name of the code at the address in the map that the program writes. */
bool rp_sample_jit_find(uint64_t pc, int64_t now_ns, char *name, size_t size);

/* ---- unwinding ---- */
struct rp_sample_regs {
    uint64_t at[RP_SAMPLE_REGS];
    uint64_t known; /* a bit each */
};

struct rp_sample_native {
    uint64_t pc, start; /* start of the function; 0: not known */
    uint64_t sp, cfa;   /* the frame's part of the stack */
    uint64_t fp;        /* the frame pointer; 0: not known */
    /* where its caller's address and frame pointer are; 0 if not on the stack; return_at is also 0
       if these do not determine the caller */
    uint64_t return_at, fp_at;
    const char *text; /* text of the function, if it is already known */
};

struct rp_sample_chain { /* rp_sample_chain: the native frames, innermost first */
    size_t n;
    unsigned generation; /* of the modules */
    bool is_cut;         /* the outermost one was not reached */
    struct rp_sample_native at[RP_SAMPLE_NATIVE];
};

struct rp_sample_copy { /* rp_sample_copy: a part of the stack, from its innermost byte */
    uint64_t at;
    size_t n, enough; /* enough: sufficient for a stack like the last ones; 0: not known */
    uint8_t bytes[RP_SAMPLE_STACK];
};

/* last: the previous sample, whose outer frames are mostly the same. */
void rp_sample_unwind(struct rp_sample_regs *regs, const struct rp_sample_copy *copy,
                      const struct rp_sample_chain *last, struct rp_sample_chain *out);

/* ---- Python ---- */
/* A frame, or if code is 0, the end of the frames that one call of the evaluation loop runs; then
   `instr` is an address in the loop's frame of the C stack (0: not known). */
struct rp_sample_py {
    uint64_t code, instr;
};

/* Looks for an interpreter among the modules; returns the version's minor number, or 0. */
unsigned rp_sample_python_find(void);
/* The file of the interpreter, or NULL. */
const char *rp_sample_python_path(void);
/* Whether the evaluation loop starts there. */
bool rp_sample_python_is_loop(uint64_t start);
/* Calls it for each thread of Python, with the thread's state. */
void rp_sample_python_threads(void (*call)(uint32_t tid, uint64_t state));
/* Python's global lock as it is in memory, and its address, or 0 if that is not known. */
struct rp_sample_lock {
    uint64_t holder; /* the last one */
    int32_t is_held;
};
uint64_t rp_sample_python_lock(void);
uint32_t rp_sample_python_holder(const struct rp_sample_lock *lock); /* returns its tid, or 0 */
struct rp_sample_raw;
/* Walks the frames, innermost first; raw->copy is the copy of the stack. Safe in a signal
   handler. */
void rp_sample_python_walk(struct rp_sample_raw *raw, uint64_t state, uint32_t tid);
const char *rp_sample_python_text(const struct rp_sample_py *frame, int64_t now_ns);

/* ---- one sample ---- */
struct rp_sample_raw {
    struct rp_sample_regs regs;
    struct rp_sample_copy copy;
    struct rp_sample_window windows[RP_SAMPLE_WINDOWS]; /* frames of generators are elsewhere, so
                                                           there are several windows */
    unsigned next_window;
    bool is_wanted[RP_SAMPLE_WINDOWS]; /* by the last walk */
    struct rp_sample_lock lock;
    struct rp_sample_py python[RP_SAMPLE_PYTHON];
    size_t npython;
    bool python_is_cut, has_native;
};

/* What is known about the previous sample. */
struct rp_sample_known {
    struct rp_sample_chain chains[2];
    unsigned chain; /* index of that sample's chain */
    struct rp_sample_py last[RP_SAMPLE_PYTHON];
    const char *texts[RP_SAMPLE_PYTHON];
    size_t nlast;
    int64_t looked_ns; /* when its texts were looked up */
    size_t enough;     /* of the stack */
};

/* Copies the stack and the lock, and walks Python's frames; raw->regs is set. Safe in a signal
   handler. */
void rp_sample_grab(struct rp_sample_raw *raw, uint64_t state, uint32_t tid);
/* Whether the signal interrupted a system call. */
bool rp_sample_in_system_call(const struct rp_sample_raw *raw);
/* Writes the texts of its frames, outermost first. The next copy will be as large as this one had
   to be. */
size_t rp_sample_join(struct rp_sample_raw *raw, struct rp_sample_known *known, int64_t now_ns,
                      const char *frames[RP_SAMPLE_FRAMES], bool *is_cut);

/* ---- functions of the kernel ---- */
struct rp_sample_kernel;
/* Reads some more pages of the kernel's names; true if all have been read. */
bool rp_sample_kernel_names(unsigned pages);
/* Asks the kernel to record its functions in which the thread runs. NULL if it is not permitted. */
struct rp_sample_kernel *rp_sample_kernel_open(uint32_t tid, int64_t period_ns);
void rp_sample_kernel_close(struct rp_sample_kernel *k); /* k may be NULL */
/* Appends the kernel's functions of the system call that the registers are in, the outermost first,
   to n frames. Returns the new number: n if none are known. */
uint32_t rp_sample_kernel_put(struct rp_sample_kernel *k, const struct rp_sample_regs *regs,
                              const char *frames[RP_SAMPLE_FRAMES], uint32_t n);

/* ---- threads that work for others ---- */
/* Puts the frames of a thread without Python under those of the owner, if it works for that.
   Returns the new number of frames; 0 if it does not. */
size_t rp_sample_hang(const char *frames[RP_SAMPLE_FRAMES], size_t n, const char *const *owner,
                      size_t nowner);

/* ---- stopping a thread of another process ---- */
extern bool rp_sample_attached; /* the sampled process is another one */

enum rp_sample_stopped { RP_SAMPLE_STOPPED, RP_SAMPLE_STOPS_LATER, RP_SAMPLE_CANNOT_STOP };

struct rp_sample_stop {
    uint32_t tid;
    bool is_seized;
    int signal;       /* to hand on; 0: none */
    int64_t since_ns; /* the last time that it ran, as far as is known; 0: not known */
};

/* Stops the thread; after two milliseconds without success, returns and can be called again. All
   calls must be made by one thread. */
enum rp_sample_stopped rp_sample_stop(struct rp_sample_stop *s, uint32_t tid,
                                      struct rp_sample_regs *regs);
void rp_sample_go(struct rp_sample_stop *s);
uint64_t rp_sample_stopped_ns(void); /* total time that threads were stopped */

/* ---- asking a thread that runs ---- */
bool rp_sample_signal_init(void);
bool rp_sample_signal_usable(void); /* whether the handler is still ours */
struct rp_sample_answer {
    uint64_t ticks, weight_ns, ran_ns; /* the last two come from whoever asked */
    struct rp_sample_raw raw;
};
/* If ticks are rare, several answers are kept before they are unwound and named, because the code
   for that is not in the caches after a pause. */
#define RP_SAMPLE_ANSWERS 16
struct rp_sample_request;
/* answers: the most that are kept; a power of two, up to RP_SAMPLE_ANSWERS. */
struct rp_sample_request *rp_sample_request_new(uint32_t answers);
/* Asks the thread to copy its own stack. False if it cannot be asked. */
bool rp_sample_request_send(struct rp_sample_request *q, uint32_t tid, uint64_t state);
bool rp_sample_request_pending(const struct rp_sample_request *q);
/* The next answer that was not returned yet, or NULL. It is kept. */
struct rp_sample_answer *rp_sample_request_answered(struct rp_sample_request *q);
/* An answer that is kept, or NULL, with what is known about the one before. */
struct rp_sample_answer *rp_sample_request_kept(struct rp_sample_request *q, size_t i,
                                                struct rp_sample_known **known);
void rp_sample_request_clear(struct rp_sample_request *q);  /* keeps none any more */
void rp_sample_request_forget(struct rp_sample_request *q); /* the one that was sent */
/* Makes the kernel ask the thread whenever it has used that much CPU time. False if that is not
   permitted. */
bool rp_sample_request_repeat(struct rp_sample_request *q, uint32_t tid, uint64_t state,
                              int64_t period_ns);
/* ... n more times; without this, it ends by itself. */
void rp_sample_request_go_on(struct rp_sample_request *q, uint64_t state, unsigned n);
/* ... ends it, on the thread that began it. */
void rp_sample_request_stop(struct rp_sample_request *q);
void rp_sample_signal_forget(
    void); /* the kernel no longer asks: this is another process or thread */
bool rp_sample_signal_taken(void); /* whether the program has the signal, or is about to take it */
uint64_t rp_sample_signal_spent(void); /* ticks in the handler, of all threads */
