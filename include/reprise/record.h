/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_RECORD_H
#define REPRISE_RECORD_H
/*
 * Ranges, marks and counters of a program, for `reprise record`. This header stands alone: nothing
 * to link, nothing to start. Where the program does not run under `record` each macro is one load
 * and one branch; where it does, an event costs tens of nanoseconds, takes no lock, and is on the
 * disk's pages before the macro returns, so that it outlives whatever happens next.
 *
 *     RP_RANGE_BEGIN("forward");          // nests; ends on the thread where it began
 *     RP_RANGE_END();
 *     RP_MARK("checkpoint written");
 *     RP_COUNTER("tokens", 4096.0);
 *
 *     { RP_SCOPE("backward"); ... }       // ends with the block (C++; C with GCC and clang)
 *
 * Names are copied. A null name is "". Define RP_RECORD_OFF before the header to compile nothing.
 * Programs linked statically are not recorded.
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

/* The recorder's functions, or null; one for each program and library that uses this header. */
struct rp_record_functions {
    void (*range_begin)(const char *name);
    void (*range_end)(void);
    void (*mark)(const char *name);
    void (*counter)(const char *name, double value);
};

extern struct rp_record_functions rp_record_functions;
__attribute__((weak, visibility("hidden"))) struct rp_record_functions rp_record_functions = {0, 0,
                                                                                              0, 0};

/* Weak, so that a program need not be linked with the library that has it. */
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

#define RP_RECORD_CALL(function, ...)                               \
    do {                                                            \
        if (__builtin_expect(rp_record_functions.function != 0, 0)) \
            rp_record_functions.function(__VA_ARGS__);              \
    } while (0)

#define RP_RANGE_BEGIN(name) RP_RECORD_CALL(range_begin, name)
#define RP_RANGE_END()                                               \
    do {                                                             \
        if (__builtin_expect(rp_record_functions.range_end != 0, 0)) \
            rp_record_functions.range_end();                         \
    } while (0)
#define RP_MARK(name)           RP_RECORD_CALL(mark, name)
#define RP_COUNTER(name, value) RP_RECORD_CALL(counter, name, RP_RECORD_DOUBLE(value))

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
/* A declaration. */
#define RP_SCOPE(name)                                                              \
    __attribute__((unused, cleanup(rp_record_scope_end))) const int RP_RECORD_JOIN( \
        rp_record_scope_, __COUNTER__) = rp_record_scope_begin(name)

#endif

#ifdef __cplusplus
}
#endif

#endif
