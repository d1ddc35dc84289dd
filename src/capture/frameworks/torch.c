/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records operators of PyTorch by callbacks that its own profiler uses as well
 * (at::RecordFunction): a tenth of the cost of NVTX ranges, which format and parse a text for each
 * call. python/ sitecustomize.py opens this when torch has been imported, and lets it prove itself:
 * it runs operators whose names and sequence numbers it knows. If they are not seen, nothing stays
 * registered, and the ranges are used.
 *
 *   operators      are on a stack of their thread until they end, and are then written as spans. If
 * a source counts launches, short ones that launched nothing are not written: views and allocations
 * are most operators of a step, and explain little ranges         (record_function, Optimizer.step,
 * the data loader) are always written. Those that end on another thread are collectives of c10d,
 * which have a source of their own
 *
 * The sequence number that forward and backward share has no function to read it; its place in the
 * object is found by the test.
 */
#include "abi/torch.h"
#include "capture/core/core.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT  __attribute__((visibility("default")))
#define DEPTH   256
#define PLACES  40    /* words of the object that are searched for the sequence number */
#define LONG_NS 10000 /* an operator that took this long is always written */
#define TESTED  32
#define STEP    "Optimizer.step#"

#define OPTIMIZERS 16 /* most optimizers that are distinguished */

EXPORT int reprise_torch_open(void);
EXPORT int reprise_torch_saw(const char *name);
EXPORT void reprise_torch_expect(int64_t sequence);
EXPORT void reprise_torch_begin(void);
EXPORT void reprise_torch_close(void);
EXPORT void reprise_torch_stepped(uint64_t optimizer);

struct open_operator {
    const struct rp_torch_function *function;
    uint64_t begin; /* 0 if it was not recorded when it began */
    uint64_t launches;
};

struct stack {
    uint32_t depth, nranges;
    uint64_t *launches; /* counter of this thread; NULL: nobody counts */
    struct open_operator open[DEPTH];
    const struct rp_torch_function *ranges[DEPTH];
};

static struct {
    const struct rp_capture *cap;
#define FIELD(field, name, result, args) result(*field) args;
    RP_TORCH_CALLS(FIELD)
#undef FIELD
    uint64_t operators, ranges; /* handles of the callbacks; 0: none */
    bool all, none;             /* all: also operators that launch nothing */
    uint64_t long_ticks;
    int64_t sequence_at; /* index of a word in the object; -1: unknown */
    _Atomic uint32_t ready;
} torch = {.sequence_at = -1};

/* What the thread that runs the test has seen. */
static struct {
    pthread_t thread;
    uint32_t n;
    char names[TESTED][32];
    int64_t expected;  /* of the next operator; -1: none */
    uint64_t possible; /* places, as bits */
} test;

static __thread struct stack *self __attribute__((tls_model("initial-exec")));
/* The optimizer whose step is about to end on this thread, because two of one class have ranges of
   the same name. */
static __thread uint64_t stepped __attribute__((tls_model("initial-exec")));
static pthread_key_t stack_key;
static bool has_key;

/* -------------------------------------------------------------------------- stacks */

static void stack_unmap(void *at)
{
    self = NULL;
    munmap(at, sizeof(struct stack));
}

static __attribute__((noinline)) struct stack *stack_new(void)
{
    void *at = has_key ? mmap(NULL, sizeof(struct stack), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                       : MAP_FAILED;

    if (at == MAP_FAILED)
        return NULL;
    pthread_setspecific(stack_key, at);
    self = at;
    return self;
}

static struct stack *stack_of(void)
{
    return __builtin_expect(self != NULL, 1) ? self : stack_new();
}

/* -------------------------------------------------------------------------- operators */

static __attribute__((noinline)) void test_look(const struct rp_torch_function *function)
{
    const int64_t *words = (const int64_t *)(const void *)function;

    if (!pthread_equal(pthread_self(), test.thread) || test.n >= TESTED)
        return;
    strncpy(test.names[test.n], torch.name(function), sizeof test.names[0] - 1);
    test.n++;
    for (uint32_t i = 0; test.expected >= 0 && i < PLACES; i++) {
        if (words[i] != test.expected)
            test.possible &= ~(UINT64_C(1) << i);
    }
    test.expected = -1;
}

static void *operator_start(void **context, const struct rp_torch_function *function)
{
    struct stack *s = stack_of();

    *context = NULL;
    if (__builtin_expect(!atomic_load_explicit(&torch.ready, memory_order_relaxed), 0)) {
        test_look(function);
        return context;
    }
    if (!s)
        return context;
    if (s->depth < DEPTH) {
        struct open_operator *open = &s->open[s->depth];

        if (!s->depth)
            s->launches = torch.all ? NULL : torch.cap->launches();
        open->function = function;
        open->begin = torch.cap->ready() ? torch.cap->now() : 0;
        open->launches = s->launches ? *s->launches : 0;
    }
    s->depth++;
    return context;
}

/* Removes the operator, and those above it that never ended; false if it is not there. */
static bool operator_pop(struct stack *s, const struct rp_torch_function *function)
{
    uint32_t i = s->depth;

    while (i > 0 && (i > DEPTH || s->open[i - 1].function != function))
        i--;
    if (i)
        s->depth = i - 1;
    return i != 0;
}

static void operator_end(const struct rp_torch_function *function, void *context)
{
    struct stack *s = self;

    (void)context;
    if (!s || !s->depth)
        return;
    if (s->depth > DEPTH) {
        s->depth--;
        return;
    }
    if (!operator_pop(s, function))
        return;
    const struct open_operator *open = &s->open[s->depth];
    if (!open->begin)
        return;
    uint64_t end = torch.cap->now();
    if (!s->launches || *s->launches != open->launches || end - open->begin >= torch.long_ticks) {
        /* Writes the operator that has ended. */
        const int64_t *words = (const int64_t *)(const void *)function;
        int64_t sequence = torch.sequence_at >= 0 ? words[torch.sequence_at] : -1;
        struct rp_capture_arg arg = {
            .key = "Sequence number", .type = RP_CTF_ARG_INT, .number = sequence};
        torch.cap->span(&(struct rp_capture_span){.kind = RP_CTF_KIND_OPERATOR,
                                                  .timebase = RP_CTF_TIME_TICKS,
                                                  .begin = open->begin,
                                                  .end = end,
                                                  .name = torch.name(function),
                                                  .category = "cpu_op",
                                                  .device = RP_CTF_SPAN_DEVICE,
                                                  .args = &arg,
                                                  .nargs = sequence >= 0});
    }
}

/* -------------------------------------------------------------------------- ranges */

static void *range_start(void **context, const struct rp_torch_function *function)
{
    struct stack *s = stack_of();

    *context = NULL;
    if (!s || !atomic_load_explicit(&torch.ready, memory_order_relaxed) ||
        torch.is_async(function) || s->nranges >= DEPTH)
        return context;
    s->ranges[s->nranges++] = function;
    torch.cap->range_begin(torch.name(function));
    return context;
}

/* The number of an optimizer, from 1; 0 if there are too many. */
static uint32_t optimizer_number(uint64_t optimizer)
{
    static _Atomic uint64_t known[OPTIMIZERS];
    uint32_t i = 0;

    do {
        uint64_t other = 0;
        if (atomic_compare_exchange_strong(&known[i], &other, optimizer) || other == optimizer)
            return i + 1;
    } while (++i < OPTIMIZERS);
    return 0;
}

/* If there are several, a mark inside the range tells which one it is. */
void reprise_torch_stepped(uint64_t optimizer)
{
    static _Atomic bool several;
    uint32_t number = optimizer_number(optimizer);
    char text[32];

    stepped = optimizer;
    if (number > 1)
        atomic_store_explicit(&several, true, memory_order_relaxed);
    if (!number || !atomic_load_explicit(&several, memory_order_relaxed) ||
        !atomic_load_explicit(&torch.ready, memory_order_relaxed))
        return;
    snprintf(text, sizeof text, "optimizer %u", number);
    torch.cap->mark(text);
}

static void range_end(const struct rp_torch_function *function, void *context)
{
    struct stack *s = self;
    uint32_t i = s ? s->nranges : 0;

    (void)context;
    while (i > 0 && s->ranges[i - 1] != function)
        i--;
    if (!i)
        return;
    for (; s->nranges >= i; s->nranges--)
        torch.cap->range_end();
    const char *name = torch.name(function);
    if (!strncmp(name, STEP, sizeof STEP - 1)) {
        char whose[160];
        snprintf(whose, sizeof whose, "%.128s %llx", name, (unsigned long long)stepped);
        stepped = 0;
        torch.cap->step_end(RP_CAPTURE_OPTIMIZER, whose);
    }
}

/* -------------------------------------------------------------------------- opening */

static int find_torch(struct dl_phdr_info *info, size_t size, void *user)
{
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    size_t n = slash ? strlen(info->dlpi_name) : PATH_MAX;

    (void)size;
    if (!slash || strcmp(slash, "/libtorch_cpu.so") != 0 || n >= PATH_MAX)
        return 0;
    memcpy(user, info->dlpi_name, n + 1);
    return 1;
}

static bool find_calls(void)
{
    char path[PATH_MAX];
    void *handle = dl_iterate_phdr(find_torch, path) ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    bool all = handle != NULL;

#define LOOK(field, symbol, result, args)                            \
    *(void **)&torch.field = handle ? dlsym(handle, #symbol) : NULL; \
    all = all && torch.field;
    RP_TORCH_CALLS(LOOK)
#undef LOOK
    return all;
}

/* Registers the callbacks for the test. Returns 0 if that is not possible. */
int reprise_torch_open(void)
{
    struct rp_torch_callback operators = {operator_start, operator_end, 1.0, {0}, 0, 0, 0};
    struct rp_torch_callback ranges = {range_start, range_end, 1.0, {0}, 0, 0, 0};

#if !defined(__x86_64__)
    return 0; /* the result of a callback is in a register that C has no name for */
#endif
    torch.cap = rp_capture_get();
    if (!torch.cap || torch.operators || !find_calls())
        return 0;
    has_key = has_key || !pthread_key_create(&stack_key, stack_unmap);
    const char *which = torch.cap->option("frameworks.operators");
    torch.all = which && !strcmp(which, "all");
    torch.none = which && !strcmp(which, "none");
    which = torch.cap->option("frameworks.min_ns");
    torch.long_ticks = torch.cap->ticks(which ? strtoull(which, NULL, 10) : LONG_NS);
    test.thread = pthread_self();
    test.possible = (UINT64_C(1) << PLACES) - 1;
    test.expected = -1;
    operators.scopes[RP_TORCH_FUNCTION] = operators.scopes[RP_TORCH_BACKWARD] =
        operators.scopes[RP_TORCH_SCRIPT] = operators.scopes[RP_TORCH_CLASS] =
            operators.scopes[RP_TORCH_LITE] = operators.scopes[RP_TORCH_STATIC_OP] =
                operators.scopes[RP_TORCH_STATIC_MODEL] = true;
    ranges.scopes[RP_TORCH_USER] = true;
    torch.operators = torch.add(operators);
    torch.ranges = torch.add(ranges);
    return 1;
}

/* Whether this operator was the first one seen since the last call. */
int reprise_torch_saw(const char *name)
{
    bool saw = test.n && !strcmp(test.names[0], name);

    test.n = 0;
    return saw;
}

/* Announces the sequence number of the next operator. */
void reprise_torch_expect(int64_t sequence)
{
    test.expected = sequence;
    test.n = 0;
}

static void switch_operators(bool on)
{
    (on ? torch.reenable : torch.disable)(torch.operators);
}

void reprise_torch_begin(void)
{
    if (test.possible && !(test.possible & (test.possible - 1)))
        torch.sequence_at = __builtin_ctzll(test.possible);
    if (torch.none)
        torch.disable(torch.operators);
    else
        torch.cap->on_detail(switch_operators);
    if (!torch.all && !torch.none)
        torch.cap->want_launches();
    atomic_store(&torch.ready, 1);
}

void reprise_torch_close(void)
{
    if (!torch.operators)
        return;
    torch.remove(torch.operators);
    torch.remove(torch.ranges);
    torch.operators = torch.ranges = 0;
    atomic_store(&torch.ready, 0);
}

EXPORT int reprise_attach_source_v1(void);

/* In a program that runs: without the test, which needs Python, and the sequence numbers, which
   need the test. PyTorch lets callbacks come and go at any time. */
int reprise_attach_source_v1(void)
{
    if (reprise_torch_open()) {
        torch.cap->on_leave(reprise_torch_close);
        reprise_torch_begin();
    }
    return 0;
}
