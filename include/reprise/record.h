/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_RECORD_H
#define REPRISE_RECORD_H
/*
 * Ranges, marks and counters of a program, for `reprise record`. The header is self-contained:
 * there is nothing to link and nothing to initialise. If the program does not run under `record`,
 * each macro is one load and one branch. If it does, an event costs tens of nanoseconds, takes no
 * lock, and is in the page cache of its file before the macro returns, so that it survives a crash.
 *
 *     RP_RANGE_BEGIN("forward");          // nests; ends on the thread where it began
 *     RP_RANGE_END();
 *     RP_MARK("checkpoint written");
 *     RP_COUNTER("tokens", 4096.0);
 *
 *     { RP_SCOPE("backward"); ... }       // ends with the block (C++; C with GCC and clang)
 *
 * Names are copied; a null name is recorded as "". Define RP_RECORD_OFF before including the header
 * to compile the macros to nothing. Statically linked programs are not recorded.
 */
#ifdef __cplusplus
extern "C" {
#endif

#if defined(RP_RECORD_OFF) || !defined(__GNUC__) || !defined(__linux__)

#define RP_RANGE_BEGIN(name)    ((void)(name))
#define RP_RANGE_END()          ((void)0)
#define RP_MARK(name)           ((void)(name))
#define RP_COUNTER(name, value) ((void)(name), (void)(value))
#define RP_SCOPE(name)          ((void)(name))

#else

/* The recorder's functions, or null. Each program and library that uses this header has its own. */
struct rp_record_functions {
    void (*range_begin)(const char *name);
    void (*range_end)(void);
    void (*mark)(const char *name);
    void (*counter)(const char *name, double value);
};

/* In a section of its own, where `reprise record --pid` finds it in a program that runs. */
extern struct rp_record_functions rp_record_functions;
__attribute__((weak, visibility("hidden"),
               section("rp_record"))) struct rp_record_functions rp_record_functions = {0, 0, 0, 0};

/* Weak, so that a program need not link with the library that defines dlsym. */
extern void *rp_record_lookup(void *, const char *) __asm__("dlsym") __attribute__((weak));

static inline void rp_record_take(void *function, const char *name)
{
    void *found = rp_record_lookup(0, name);

    __builtin_memcpy(function, &found, sizeof found);
}

__attribute__((constructor)) static void rp_record_find(void)
{
    struct rp_record_functions *f = &rp_record_functions;

    if (!rp_record_lookup || f->range_begin)
        return;
    rp_record_take(&f->range_end, "reprise_record_range_end");
    rp_record_take(&f->mark, "reprise_record_mark");
    rp_record_take(&f->counter, "reprise_record_counter");
    rp_record_take(&f->range_begin, "reprise_record_range_begin");
}

#ifdef __cplusplus
#define RP_RECORD_DOUBLE(value) static_cast<double>(value)
#else
#define RP_RECORD_DOUBLE(value) ((double)(value))
#endif

/* Loaded once: another thread may change it. */
#define RP_RECORD_CALL(type, function, arguments)                             \
    do {                                                                      \
        void(*rp_record_call) type =                                          \
            __atomic_load_n(&rp_record_functions.function, __ATOMIC_RELAXED); \
        if (__builtin_expect(rp_record_call != 0, 0))                         \
            rp_record_call arguments;                                         \
    } while (0)

#define RP_RANGE_BEGIN(name) RP_RECORD_CALL((const char *), range_begin, (name))
#define RP_RANGE_END()       RP_RECORD_CALL((void), range_end, ())
#define RP_MARK(name)        RP_RECORD_CALL((const char *), mark, (name))
#define RP_COUNTER(name, value) \
    RP_RECORD_CALL((const char *, double), counter, (name, RP_RECORD_DOUBLE(value)))

static inline int rp_record_scope_begin(const char *name)
{
    RP_RANGE_BEGIN(name);
    return 0;
}

static inline void rp_record_scope_end(const int *scope)
{
    (void)scope;
    RP_RANGE_END();
}

#define RP_RECORD_JOIN_(a, b) a##b
#define RP_RECORD_JOIN(a, b)  RP_RECORD_JOIN_(a, b)
/* Expands to a declaration. */
#define RP_SCOPE(name)                                                              \
    __attribute__((unused, cleanup(rp_record_scope_end))) const int RP_RECORD_JOIN( \
        rp_record_scope_, __COUNTER__) = rp_record_scope_begin(name)

#endif

#ifdef __cplusplus
}
#endif

#endif
