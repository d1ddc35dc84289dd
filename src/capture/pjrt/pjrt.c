/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PJRT plugin that stands in front of the real one and keeps what a program compiles and runs:
 *
 *     JAX  ->  reprise-pjrt.so  ->  $REPRISE_PJRT_PLUGIN
 *                    |
 *                    +->  DIR/<pid>-captures.jsonl     one line a capture, written last
 *                         DIR/<pid>-program-<n>.mlir   (or .hlo.pb), DIR/<pid>-options-<n>.pb
 *                         DIR/<pid>-compiled-<n>.hlo.pb   with several devices, for its shardings
 *                         DIR/<pid>-data-<n>.bin       inputs and outputs, one after the other
 *
 * The table of functions is a copy of the real plugin's with three entries replaced: compile,
 * execute, and destroy of an executable. An execution that is not selected costs a lookup and a
 * counter. If it is selected, the inputs are copied before it runs, because a run may give them
 * away, and the outputs after it. A capture that fails is left out; the program does not notice.
 *
 * Settings are in the environment (`reprise replay capture` sets them):
 *
 *     REPRISE_PJRT_PLUGIN   the real plugin
 *     REPRISE_PJRT_FOLDER   an existing folder
 *     REPRISE_PJRT_SELECT   first=1,every=0,slower=0,bytes=4294967296,module=*
 *
 * first and every count the executions of one executable; slower is a time in ns: an executable
 * that was seen to take longer is captured at its next execution.
 */
#include "abi/pjrt.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MODULES_MOST 65536
#define DEVICES_MOST 4096

struct module {
    struct module *next; /* of the same hash */
    const void *loaded;  /* the executable; NULL once it is destroyed */
    char *name;
    char *code, *options;
    size_t ncode, noptions, noutputs;
    char format[16];
    bool wanted;   /* its name is one of those to capture */
    int number;    /* number in the names of its files; 0: not written yet */
    bool compiled; /* one of its files is the compiled program */
    _Atomic uint64_t runs;
    _Atomic bool slow; /* capture the next run */
};

static struct {
    const uint64_t *real;
    uint64_t *table;
    char dir[3000], pattern[512];
    uint64_t first, every, slower_ns, bytes_left;
    pthread_rwlock_t lock; /* of modules */
    struct module *modules[4096];
    size_t nmodules;
    pthread_mutex_t writing; /* lock for what follows, and for files */
    int ncaptures, nprograms;
    const char *why; /* why the last capture failed; static */
    bool on;
} state = {.lock = PTHREAD_RWLOCK_INITIALIZER, .writing = PTHREAD_MUTEX_INITIALIZER};

struct args {
    uint64_t word[RP_PJRT_WORDS];
};

static uint64_t word_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static void *pointer_of(uint64_t word)
{
    return (void *)(uintptr_t)word; // NOLINT(performance-no-int-to-ptr)
}

static rp_pjrt_fn *function(enum rp_pjrt_function number)
{
    size_t at = RP_PJRT_API_FUNCTIONS + (size_t)number;
    rp_pjrt_fn *fn = NULL;

    if (at < state.real[RP_PJRT_API_SIZE] / sizeof(uint64_t))
        memcpy(&fn, &state.real[at], sizeof fn);
    return fn;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- calls of the real plugin ---- */

static void drop(enum rp_pjrt_function number, void *object)
{
    struct args a = {.word = {sizeof a}};
    rp_pjrt_fn *fn = function(number);

    a.word[RP_PJRT_ARG] = word_of(object);
    if (fn && object)
        fn(a.word);
}

/* If the call fails, destroys the error and returns false. */
static bool call(enum rp_pjrt_function number, struct args *a)
{
    rp_pjrt_fn *fn = function(number);

    a->word[0] = sizeof *a;
    if (!fn)
        return false;
    void *error = fn(a->word);
    drop(RP_PJRT_ERROR_DESTROY, error);
    return !error;
}

static bool await(void *event)
{
    struct args a = {0};

    if (!event)
        return true;
    a.word[RP_PJRT_ARG] = word_of(event);
    bool ok = call(RP_PJRT_EVENT_AWAIT, &a);
    drop(RP_PJRT_EVENT_DESTROY, event);
    return ok;
}

/* ---- modules ---- */

static size_t slot_of(const void *loaded)
{
    uint64_t x = word_of(loaded);

    return (size_t)((x >> 4 ^ x >> 16) % (sizeof state.modules / sizeof *state.modules));
}

static struct module *module_find(const void *loaded)
{
    struct module *m;

    pthread_rwlock_rdlock(&state.lock);
    for (m = state.modules[slot_of(loaded)]; m && m->loaded != loaded; m = m->next)
        ;
    pthread_rwlock_unlock(&state.lock);
    return m;
}

static char *copy_of(const void *bytes, size_t n)
{
    char *copy = malloc(n + 1);

    if (copy && n)
        memcpy(copy, bytes, n);
    return copy;
}

static void module_add(const uint64_t *args)
{
    const uint64_t *program = pointer_of(args[RP_PJRT_COMPILE_PROGRAM]);
    void *loaded = pointer_of(args[RP_PJRT_COMPILE_EXECUTABLE]);
    struct module *m = calloc(1, sizeof *m);
    size_t slot = slot_of(loaded);

    if (!m)
        return;

    /* Reads name and number of outputs of an executable. */
    struct args a = {0}, name = {0}, outputs = {0};
    a.word[RP_PJRT_ARG] = word_of(loaded);
    if (call(RP_PJRT_LOADED_EXECUTABLE, &a)) {
        void *executable = pointer_of(a.word[RP_PJRT_RESULT]);
        name.word[RP_PJRT_ARG] = outputs.word[RP_PJRT_ARG] = word_of(executable);
        if (call(RP_PJRT_EXECUTABLE_NAME, &name)) {
            size_t n = (size_t)name.word[RP_PJRT_RESULT_SIZE];
            m->name = calloc(n + 1, 1);
            if (m->name)
                memcpy(m->name, pointer_of(name.word[RP_PJRT_RESULT]), n);
        }
        if (call(RP_PJRT_EXECUTABLE_NUM_OUTPUTS, &outputs))
            m->noutputs = (size_t)outputs.word[RP_PJRT_RESULT];
        drop(RP_PJRT_EXECUTABLE_DESTROY, executable);
    }
    if (!m->name)
        m->name = strdup("unnamed");
    m->wanted = m->name && !fnmatch(state.pattern, m->name, 0);
    size_t nformat = (size_t)program[RP_PJRT_PROGRAM_FORMAT_SIZE];
    if (m->wanted && nformat < sizeof m->format) {
        memcpy(m->format, pointer_of(program[RP_PJRT_PROGRAM_FORMAT]), nformat);
        m->ncode = (size_t)program[RP_PJRT_PROGRAM_CODE_SIZE];
        m->noptions = (size_t)args[RP_PJRT_COMPILE_OPTIONS_SIZE];
        m->code = copy_of(pointer_of(program[RP_PJRT_PROGRAM_CODE]), m->ncode);
        m->options = copy_of(pointer_of(args[RP_PJRT_COMPILE_OPTIONS]), m->noptions);
    }
    m->wanted = m->wanted && m->code && m->options;
    m->loaded = loaded;
    pthread_rwlock_wrlock(&state.lock);
    if (state.nmodules < MODULES_MOST) {
        m->next = state.modules[slot];
        state.modules[slot] = m;
        state.nmodules++;
        m = NULL;
    }
    pthread_rwlock_unlock(&state.lock);
    if (m) {
        free(m->name);
        free(m->code);
        free(m->options);
        free(m);
    }
}

/* ---- files ---- */

static bool write_all(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;

    while (n) {
        ssize_t done = write(fd, at, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

__attribute__((format(printf, 1, 2))) static int open_file(const char *format, ...)
{
    char name[256], path[sizeof state.dir + 300];
    va_list list;

    va_start(list, format);
    vsnprintf(name, sizeof name, format, list);
    va_end(list);
    snprintf(path, sizeof path, "%s/%d-%s", state.dir, (int)getpid(), name);
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static bool write_file(int fd, const void *bytes, size_t n)
{
    bool ok = fd >= 0 && write_all(fd, bytes, n);

    return fd >= 0 && !close(fd) && ok;
}

static const char *ending_of(const struct module *m)
{
    return !strcmp(m->format, "hlo") ? "hlo.pb" : "mlir";
}

/* Writes the program after compiling, because what was compiled does not always say how it splits
   arrays between devices. A capture is complete without it, too. */
static bool write_compiled(const struct module *m, int number)
{
    struct args loaded = {0}, a = {0}, program = {0};

    loaded.word[RP_PJRT_ARG] = word_of(m->loaded);
    if (!call(RP_PJRT_LOADED_EXECUTABLE, &loaded))
        return false;
    program.word[0] = sizeof program;
    a.word[RP_PJRT_ARG] = loaded.word[RP_PJRT_RESULT];
    a.word[RP_PJRT_RESULT] = word_of(&program);
    bool ok = call(RP_PJRT_EXECUTABLE_OPTIMIZED, &a) && program.word[RP_PJRT_PROGRAM_CODE_SIZE];
    if (ok) {
        size_t n = (size_t)program.word[RP_PJRT_PROGRAM_CODE_SIZE];
        char *code = malloc(n);

        program.word[RP_PJRT_PROGRAM_CODE] = word_of(code);
        ok = code && call(RP_PJRT_EXECUTABLE_OPTIMIZED, &a) &&
             write_file(open_file("compiled-%d.hlo.pb", number), code, n);
        free(code);
    }
    drop(RP_PJRT_EXECUTABLE_DESTROY, pointer_of(loaded.word[RP_PJRT_RESULT]));
    return ok;
}

static bool write_program(struct module *m, uint64_t ndevices)
{
    int number = state.nprograms + 1;

    if (m->number)
        return true;
    if (!write_file(open_file("program-%d.%s", number, ending_of(m)), m->code, m->ncode) ||
        !write_file(open_file("options-%d.pb", number), m->options, m->noptions))
        return false;
    m->compiled = ndevices > 1 && write_compiled(m, number);
    m->number = state.nprograms = number;
    return true;
}

/* A line of the list of captures is written by one call, so that it is there completely or not at
   all. */
struct line {
    char *at;
    size_t n, cap;
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void line_add(struct line *l, const char *format, ...)
{
    va_list list;

    if (l->failed)
        return;
    if (l->cap - l->n < 1024) {
        char *more = realloc(l->at, l->cap * 2 + 4096);

        if (!more) {
            l->failed = true;
            return;
        }
        l->at = more;
        l->cap = l->cap * 2 + 4096;
    }
    va_start(list, format);
    int n = vsnprintf(l->at + l->n, l->cap - l->n, format, list);
    va_end(list);
    if (n < 0 || (size_t)n >= l->cap - l->n)
        l->failed = true;
    else
        l->n += (size_t)n;
}

static void line_text(struct line *l, const char *text)
{
    for (size_t i = 0; i < 1000 && text[i]; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c < 0x20 || c == '"' || c == '\\')
            line_add(l, "\\u%04x", c);
        else
            line_add(l, "%c", c);
    }
}

static void line_write(struct line *l)
{
    char path[sizeof state.dir + 64];

    line_add(l, "}\n");
    snprintf(path, sizeof path, "%s/%d-captures.jsonl", state.dir, (int)getpid());
    int fd = l->failed ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)write_all(fd, l->at, l->n);
        close(fd);
    }
    free(l->at);
}

/* ---- arrays ---- */

#define RANK_MOST 64

static const char *type_name(uint64_t type)
{
    switch ((uint32_t)type) {
#define TYPE_NAME(id, number) \
    case number:              \
        return #id;
        RP_PJRT_TYPES(TYPE_NAME)
#undef TYPE_NAME
    default:
        return NULL;
    }
}

/* Asks for row-major order; otherwise the device's own order would come. */
static bool to_host(void *buffer, size_t rank, void *to, uint64_t *bytes)
{
    struct args a = {0}, layout = {0};
    int64_t order[RANK_MOST];

    for (size_t i = 0; i < rank; i++)
        order[i] = (int64_t)(rank - 1 - i);
    layout.word[0] = RP_PJRT_LAYOUT_WORDS * sizeof layout.word[0];
    layout.word[RP_PJRT_LAYOUT_TILED] = RP_PJRT_LAYOUT_TILED_WORDS * sizeof layout.word[0];
    layout.word[RP_PJRT_LAYOUT_MINOR_TO_MAJOR] = word_of(order);
    layout.word[RP_PJRT_LAYOUT_NMINOR_TO_MAJOR] = rank;
    a.word[RP_PJRT_ARG] = word_of(buffer);
    a.word[RP_PJRT_TO_HOST_LAYOUT] = word_of(&layout);
    a.word[RP_PJRT_TO_HOST_DATA] = word_of(to);
    a.word[RP_PJRT_TO_HOST_SIZE] = to ? *bytes : 0;
    if (!call(RP_PJRT_BUFFER_TO_HOST, &a))
        return false;
    *bytes = a.word[RP_PJRT_TO_HOST_SIZE];
    return await(pointer_of(a.word[RP_PJRT_TO_HOST_EVENT]));
}

struct array {
    const char *type;
    int64_t dims[RANK_MOST];
    size_t rank;
    uint64_t bytes;
};

static bool array_describe(void *buffer, struct array *out)
{
    struct args type = {0}, dims = {0};

    type.word[RP_PJRT_ARG] = dims.word[RP_PJRT_ARG] = word_of(buffer);
    if (!call(RP_PJRT_BUFFER_ELEMENT_TYPE, &type) || !call(RP_PJRT_BUFFER_DIMENSIONS, &dims))
        return false;
    out->type = type_name(type.word[RP_PJRT_RESULT]);
    out->rank = (size_t)dims.word[RP_PJRT_RESULT_SIZE];
    if (!out->type || out->rank > RANK_MOST)
        return false;
    memcpy(out->dims, pointer_of(dims.word[RP_PJRT_RESULT]), out->rank * sizeof *out->dims);
    return to_host(buffer, out->rank, NULL, &out->bytes);
}

/* Appends one buffer to the data, and describes it in the line. */
static bool array_write(int fd, void *buffer, struct line *l, uint64_t *at)
{
    struct array a;

    state.why = "an array could not be read from the device";
    if (!array_describe(buffer, &a))
        return false;
    if (a.bytes > state.bytes_left) {
        state.why = "the byte budget is used up (--bytes)";
        return false;
    }
    char *bytes = malloc((size_t)a.bytes + 1);
    bool ok = bytes && to_host(buffer, a.rank, bytes, &a.bytes);
    if (ok && !write_all(fd, bytes, (size_t)a.bytes)) {
        state.why = "its data could not be written: is the disk full?";
        ok = false;
    }
    free(bytes);
    if (!ok)
        return false;
    line_add(l, "{\"type\":\"%s\",\"dims\":[", a.type);
    for (size_t i = 0; i < a.rank; i++)
        line_add(l, "%s%lld", i ? "," : "", (long long)a.dims[i]);
    line_add(l, "],\"at\":%llu,\"bytes\":%llu}", (unsigned long long)*at,
             (unsigned long long)a.bytes);
    *at += a.bytes;
    state.bytes_left -= a.bytes;
    return true;
}

static bool arrays_write(int fd, const char *key, void *const *const *lists, size_t ndevices,
                         size_t n, struct line *l, uint64_t *at)
{
    line_add(l, ",\"%s\":[", key);
    for (size_t d = 0; d < ndevices; d++)
        for (size_t i = 0; i < n; i++) {
            line_add(l, "%s", d || i ? "," : "");
            if (!array_write(fd, lists[d][i], l, at))
                return false;
        }
    line_add(l, "]");
    return true;
}

/* ---- one execution ---- */

/* What is written about an execution, from before it runs until after. */
struct capture {
    struct module *m;
    struct line line;
    uint64_t at, run, begin_ns, ndevices;
    int fd, number;
    bool ok;
};

static void capture_skip(const struct capture *c, const char *why)
{
    struct line l = {0};

    line_add(&l, "{\"skipped\":\"%s\",\"module\":\"", why);
    line_text(&l, c->m->name);
    line_add(&l, "\",\"run\":%llu", (unsigned long long)c->run);
    line_write(&l);
}

static void capture_begin(struct capture *c, const uint64_t *args)
{
    void *const *const *lists = pointer_of(args[RP_PJRT_EXECUTE_ARGUMENTS]);

    state.why = "its program could not be written: is the disk full?";
    c->ndevices = args[RP_PJRT_EXECUTE_NDEVICES];
    c->number = ++state.ncaptures;
    c->ok = c->ndevices <= DEVICES_MOST && write_program(c->m, c->ndevices);
    c->fd = c->ok ? open_file("data-%d.bin", c->number) : -1;
    line_add(&c->line, "{\"module\":\"");
    line_text(&c->line, c->m->name);
    line_add(&c->line,
             "\",\"run\":%llu,\"partitions\":%llu,\"program\":\"%d-program-%d.%s\","
             "\"options\":\"%d-options-%d.pb\",\"data\":\"%d-data-%d.bin\"",
             (unsigned long long)c->run, (unsigned long long)c->ndevices, (int)getpid(),
             c->m->number, ending_of(c->m), (int)getpid(), c->m->number, (int)getpid(), c->number);
    if (c->m->compiled)
        line_add(&c->line, ",\"compiled\":\"%d-compiled-%d.hlo.pb\"", (int)getpid(), c->m->number);
    c->ok = c->fd >= 0 && arrays_write(c->fd, "inputs", lists, (size_t)c->ndevices,
                                       (size_t)args[RP_PJRT_EXECUTE_NARGUMENTS], &c->line, &c->at);
    if (!c->ok)
        capture_skip(c, state.why);
    c->begin_ns = now_ns();
}

static void capture_end(struct capture *c, const uint64_t *args, bool ran)
{
    void *const *const *lists = pointer_of(args[RP_PJRT_EXECUTE_OUTPUTS]);
    struct args ready = {0};
    uint64_t took = 0;

    if (c->ok && ran && c->m->noutputs && lists) {
        ready.word[RP_PJRT_ARG] = word_of(lists[0][0]);
        if (call(RP_PJRT_BUFFER_READY, &ready))
            await(pointer_of(ready.word[RP_PJRT_RESULT]));
        took = now_ns() - c->begin_ns;
    }
    if (c->ok && ran &&
        (!lists || !arrays_write(c->fd, "outputs", lists, (size_t)c->ndevices, c->m->noutputs,
                                 &c->line, &c->at))) {
        c->ok = false;
        capture_skip(c, lists ? state.why : "it gave no outputs");
    }
    if (c->fd >= 0 && close(c->fd))
        c->ok = false;
    if (c->ok && ran) {
        line_add(&c->line, ",\"took_ns\":%llu", (unsigned long long)took);
        line_write(&c->line);
    } else {
        char path[sizeof state.dir + 64];

        free(c->line.at);
        snprintf(path, sizeof path, "%s/%d-data-%d.bin", state.dir, (int)getpid(), c->number);
        unlink(path);
    }
}

/* Measures an execution, by a callback of the plugin when its first output is ready. */
struct timed {
    struct module *m;
    void *event;
    uint64_t begin_ns;
};

static void timed_done(void *error, void *user)
{
    struct timed *t = user;

    drop(RP_PJRT_ERROR_DESTROY, error);
    if (now_ns() - t->begin_ns >= state.slower_ns)
        atomic_store(&t->m->slow, true);
    free(
        t); /* the waiting code destroys the event, which must not happen inside its own callback */
}

static void time_execution(struct module *m, const uint64_t *args, uint64_t begin_ns)
{
    void *const *const *lists = pointer_of(args[RP_PJRT_EXECUTE_OUTPUTS]);
    void (*callback)(void *, void *) = timed_done;
    struct args ready = {0}, wait = {0};
    struct timed *t;
    uint64_t word;

    if (!m->noutputs || !lists)
        return;
    ready.word[RP_PJRT_ARG] = word_of(lists[0][0]);
    t = malloc(sizeof *t);
    if (!t || !call(RP_PJRT_BUFFER_READY, &ready)) {
        free(t);
        return;
    }
    *t = (struct timed){m, pointer_of(ready.word[RP_PJRT_RESULT]), begin_ns};
    memcpy(&word, &callback, sizeof word);
    wait.word[RP_PJRT_ARG] = word_of(t->event);
    wait.word[RP_PJRT_ON_READY_CALLBACK] = word;
    wait.word[RP_PJRT_ON_READY_USER] = word_of(t);
    if (!call(RP_PJRT_EVENT_ON_READY, &wait))
        free(t);
    drop(RP_PJRT_EVENT_DESTROY, pointer_of(ready.word[RP_PJRT_RESULT]));
}

/* ---- the replaced functions ---- */

static bool is_selected(struct module *m, uint64_t run)
{
    if (run < state.first || (state.every && run % state.every == 0))
        return true;
    return state.slower_ns && atomic_load_explicit(&m->slow, memory_order_relaxed) &&
           atomic_exchange(&m->slow, false);
}

static void *compile(uint64_t *args)
{
    void *error = function(RP_PJRT_CLIENT_COMPILE)(args);

    if (!error && state.on)
        module_add(args);
    return error;
}

/* Whether the error is like "Unexpected PJRT_ExecuteOptions size: expected 112, got 80". */
static bool is_size_error(void *error)
{
    static const char says[] = "PJRT_ExecuteOptions size";
    uint64_t ask[RP_PJRT_WORDS] = {sizeof ask};

    ask[RP_PJRT_ARG] = (uint64_t)(uintptr_t)error;
    function(RP_PJRT_ERROR_MESSAGE)(ask);
    const char *text = pointer_of(ask[RP_PJRT_RESULT]);
    return text && memmem(text, ask[RP_PJRT_RESULT_SIZE], says, sizeof says - 1);
}

/* A plugin refuses options that are shorter than its own, which an older framework passes
   (PyTorch/XLA with a newer plugin). It does so before it does anything, so they are passed again,
   followed by zeros, the defaults of newer fields. */
static void *real_execute(uint64_t *args)
{
    rp_pjrt_fn *real = function(RP_PJRT_EXECUTE);
    uint64_t longer[RP_PJRT_WORDS] = {0};
    const uint64_t *options = pointer_of(args[RP_PJRT_EXECUTE_OPTIONS]);
    void *error = real(args);

    if (!error || !options || options[0] >= sizeof longer || !is_size_error(error))
        return error;
    drop(RP_PJRT_ERROR_DESTROY, error);
    memcpy(longer, options, options[0]);
    longer[0] = sizeof longer;
    args[RP_PJRT_EXECUTE_OPTIONS] = (uint64_t)(uintptr_t)longer;
    error = real(args);
    args[RP_PJRT_EXECUTE_OPTIONS] = (uint64_t)(uintptr_t)options;
    return error;
}

static void *execute(uint64_t *args)
{
    struct module *m = state.on ? module_find(pointer_of(args[RP_PJRT_ARG])) : NULL;
    struct capture c = {.m = m, .fd = -1};

    if (!m || !m->wanted)
        return real_execute(args);
    c.run = atomic_fetch_add_explicit(&m->runs, 1, memory_order_relaxed);
    if (!is_selected(m, c.run)) {
        uint64_t begin = state.slower_ns ? now_ns() : 0;
        void *error = real_execute(args);
        if (!error && state.slower_ns)
            time_execution(m, args, begin);
        return error;
    }
    pthread_mutex_lock(&state.writing);
    capture_begin(&c, args);
    pthread_mutex_unlock(&state.writing);
    void *error = real_execute(args);
    pthread_mutex_lock(&state.writing);
    capture_end(&c, args, !error);
    pthread_mutex_unlock(&state.writing);
    return error;
}

/* Another executable may reuse the address. Callbacks may still refer to the module, so it is kept,
   but not what it holds of the program. */
static void *loaded_destroy(uint64_t *args)
{
    const void *loaded = pointer_of(args[RP_PJRT_ARG]);

    pthread_rwlock_wrlock(&state.lock);
    for (struct module *m = state.modules[slot_of(loaded)]; m; m = m->next)
        if (m->loaded == loaded) {
            m->loaded = NULL;
            m->wanted = false;
            free(m->code);
            free(m->options);
            m->code = m->options = NULL;
        }
    pthread_rwlock_unlock(&state.lock);
    return function(RP_PJRT_LOADED_DESTROY)(args);
}

/* ---- devices ---- */

/* The number of CPU devices that JAX would have without us: what the user asks for, or one. */
static int64_t cpu_devices(void)
{
    const char *asked = getenv("JAX_NUM_CPU_DEVICES"), *flags = getenv("XLA_FLAGS");
    static const char flag[] = "--xla_force_host_platform_device_count=";
    int64_t n = asked ? strtoll(asked, NULL, 10) : 0;

    for (; n < 1 && flags && (flags = strstr(flags, flag)) != NULL; flags += sizeof flag - 1)
        n = strtoll(flags + sizeof flag - 1, NULL, 10);
    return n < 1 ? 1 : n;
}

static bool is_cpu(uint64_t client)
{
    uint64_t args[RP_PJRT_WORDS] = {(RP_PJRT_RESULT_SIZE + 1) * sizeof(uint64_t)};

    args[RP_PJRT_ARG] = client;
    return !function(RP_PJRT_CLIENT_PLATFORM_NAME)(args) && args[RP_PJRT_RESULT_SIZE] == 3 &&
           !memcmp(pointer_of(args[RP_PJRT_RESULT]), "cpu", 3);
}

static bool names_devices(const uint64_t *args, const char *name)
{
    const uint64_t *option = pointer_of(args[RP_PJRT_CREATE_OPTIONS]);

    for (uint64_t i = 0; i < args[RP_PJRT_CREATE_NOPTIONS]; i++, option += RP_PJRT_OPTION_WORDS)
        if (option[RP_PJRT_OPTION_NAME_SIZE] == strlen(name) &&
            !memcmp(pointer_of(option[RP_PJRT_OPTION_NAME]), name, strlen(name)))
            return true;
    return false;
}

/* XLA's plugin for CPUs has four devices by default, but JAX's own client has one. */
static void *client_create(uint64_t *args)
{
    static const char name[] = "cpu_device_count";
    uint64_t n = args[RP_PJRT_CREATE_NOPTIONS], given = args[RP_PJRT_CREATE_OPTIONS], *options,
             gone[RP_PJRT_WORDS] = {(RP_PJRT_ARG + 1) * sizeof(uint64_t)};
    void *error = function(RP_PJRT_CLIENT_CREATE)(args);

    if (error || n > 1000 || names_devices(args, name) || !is_cpu(args[RP_PJRT_CREATE_CLIENT]))
        return error;
    options = calloc(n + 1, RP_PJRT_OPTION_WORDS * sizeof *options);
    if (!options)
        return NULL;
    if (n)
        memcpy(options, pointer_of(given), n * RP_PJRT_OPTION_WORDS * sizeof *options);
    uint64_t *last = options + n * RP_PJRT_OPTION_WORDS;
    last[0] = RP_PJRT_OPTION_WORDS * sizeof *options;
    last[RP_PJRT_OPTION_NAME] = (uint64_t)(uintptr_t)name;
    last[RP_PJRT_OPTION_NAME_SIZE] = sizeof name - 1;
    last[RP_PJRT_OPTION_TYPE] = RP_PJRT_OPTION_INT;
    last[RP_PJRT_OPTION_VALUE] = (uint64_t)cpu_devices();
    last[RP_PJRT_OPTION_VALUE_SIZE] = 1;
    gone[RP_PJRT_ARG] = args[RP_PJRT_CREATE_CLIENT];
    function(RP_PJRT_CLIENT_DESTROY)(gone);
    args[RP_PJRT_CREATE_OPTIONS] = (uint64_t)(uintptr_t)options;
    args[RP_PJRT_CREATE_NOPTIONS] = n + 1;
    error = function(RP_PJRT_CLIENT_CREATE)(args);
    args[RP_PJRT_CREATE_OPTIONS] = given;
    args[RP_PJRT_CREATE_NOPTIONS] = n;
    free(options);
    return error;
}

/* ---- beginning ---- */

static void read_settings(void)
{
    const char *dir = getenv("REPRISE_PJRT_FOLDER"), *text = getenv("REPRISE_PJRT_SELECT");
    char copy[1024], *rest = copy, *part;

    state.first = 1;
    state.bytes_left = (uint64_t)4 << 30;
    snprintf(state.pattern, sizeof state.pattern, "*");
    snprintf(state.dir, sizeof state.dir, "%s", dir ? dir : "");
    snprintf(copy, sizeof copy, "%s", text ? text : "");
    while ((part = strsep(&rest, ",")) != NULL) {
        char *value = strchr(part, '=');

        if (!value)
            continue;
        *value++ = '\0';
        if (!strcmp(part, "first"))
            state.first = strtoull(value, NULL, 10);
        else if (!strcmp(part, "every"))
            state.every = strtoull(value, NULL, 10);
        else if (!strcmp(part, "slower"))
            state.slower_ns = strtoull(value, NULL, 10);
        else if (!strcmp(part, "bytes"))
            state.bytes_left = strtoull(value, NULL, 10);
        else if (!strcmp(part, "module"))
            snprintf(state.pattern, sizeof state.pattern, "%s", value);
    }
    state.on = state.dir[0] && !access(state.dir, W_OK);
    if (!state.on)
        fprintf(stderr,
                "reprise: nothing is captured: '%s' is not a folder that can be written to\n",
                state.dir);
}

static void replace(enum rp_pjrt_function number, rp_pjrt_fn *fn)
{
    memcpy(&state.table[RP_PJRT_API_FUNCTIONS + (size_t)number], &fn, sizeof fn);
}

static void begin(void)
{
    const char *path = getenv("REPRISE_PJRT_PLUGIN");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = library ? dlsym(library, "GetPjrtApi") : NULL;
    rp_pjrt_entry_fn *entry;

    if (!symbol) {
        fprintf(stderr, "reprise: cannot load the plugin '%s': %s\n", path ? path : "",
                path ? dlerror() : "REPRISE_PJRT_PLUGIN is not set");
        return;
    }
    memcpy(&entry, &symbol, sizeof entry);
    state.real = entry();
    if (!state.real)
        return;
    size_t size = (size_t)state.real[RP_PJRT_API_SIZE];
    if (size < (RP_PJRT_API_FUNCTIONS + (size_t)RP_PJRT_FUNCTIONS_NEEDED) * sizeof(uint64_t)) {
        state.table = NULL;
        return;
    }
    state.table = malloc(size);
    if (!state.table)
        return;
    memcpy(state.table, state.real, size);
    read_settings();
    replace(RP_PJRT_CLIENT_CREATE, client_create);
    replace(RP_PJRT_CLIENT_COMPILE, compile);
    replace(RP_PJRT_EXECUTE, execute);
    replace(RP_PJRT_LOADED_DESTROY, loaded_destroy);
}

/* The entry point of plugins. If there is nothing to replace, it returns the real table. */
__attribute__((visibility("default"))) const uint64_t *GetPjrtApi(void);
const uint64_t *GetPjrtApi(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, begin);
    return state.table ? state.table : state.real;
}
