/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: the hot path. An event is stored behind the last one, then the packet's content_size is
 * moved over it (release), so a reader sees all of it or nothing. Texts are numbers: a table by
 * hash, one slot a number, says whether this packet has the definition already; it and the event
 * that needs it become visible by the same store.
 *
 * `busy` is set while an event is being written: a signal handler that comes in between finds it
 * and writes into a stream of its own.
 */
#include "capture/core/state.h"
#include "capture/core/text.h"

#include <unistd.h>

#define HEADER 8                        /* bytes of an event's first word */
#define DEFINE ((size_t)HEADER + 4 + 1) /* of a text's definition, without the text */

/* -------------------------------------------------------------------------- writing */

static inline void put4(struct rp_core_stream *s, uint32_t v)
{
    memcpy(s->at, &v, 4);
    s->at += 4;
}

static inline void put8(struct rp_core_stream *s, uint64_t v)
{
    memcpy(s->at, &v, 8);
    s->at += 8;
}

static inline void put_header(struct rp_core_stream *s, enum rp_ctf_event id)
{
    put8(s, s->last << 8 | id);
}

static __attribute__((noinline)) void define(struct rp_core_stream *s, uint32_t number,
                                             const struct text *t)
{
    struct rp_core_text *slot = &s->texts[number];

    put_header(s, RP_CTF_STRING);
    put4(s, number);
    memcpy(s->at, t->at, t->len);
    s->at[t->len] = '\0';
    /* the program may change a text while we copy it: never a NUL inside */
    s->at += strnlen((const char *)s->at, t->len) + 1;
    s->events++;
    if (slot->hash != t->hash)
        slot->is_step = rp_core.options.steps && t->at[t->len] == '\0' && rp_core_is_step(t->at);
    slot->hash = t->hash;
    slot->packet = s->packet;
}

static inline uint32_t number_of(struct rp_core_stream *s, const struct text *t)
{
    uint32_t number = (uint32_t)t->hash & (RP_CORE_TEXTS - 1);
    struct rp_core_text *slot = &s->texts[number];

    if (RP_CORE_UNLIKELY(slot->hash != t->hash || slot->packet != s->packet))
        define(s, number, t);
    return number;
}

/* The same for an event with several texts, which must keep different numbers. */
static uint32_t pinned(struct rp_core_stream *s, const struct text *t)
{
    uint32_t number = (uint32_t)t->hash & (RP_CORE_TEXTS - 1);
    struct rp_core_text *slot = &s->texts[number];

    while (slot->hash != t->hash && slot->pin == s->pin && slot->packet == s->packet) {
        number = (number + 1) & (RP_CORE_TEXTS - 1);
        slot = &s->texts[number];
    }
    if (slot->hash != t->hash || slot->packet != s->packet)
        define(s, number, t);
    slot->pin = s->pin;
    return number;
}

static __attribute__((noinline)) void count_lost(struct rp_core_stream *s)
{
    s->lost++;
    if (s->head)
        s->head->discarded = s->lost;
}

static __attribute__((noinline)) bool make_room(struct rp_core_stream *s, size_t need)
{
    if (rp_core_stream_next(s, need))
        return true;
    count_lost(s);
    atomic_store_explicit(&s->busy, 0, memory_order_relaxed);
    return false;
}

/* The stream of a signal handler that interrupted an event of `s`. */
static __attribute__((noinline)) struct rp_core_stream *from_handler(struct rp_core_stream *s)
{
    struct rp_core_stream *own = s;

    while (own && atomic_load_explicit(&own->busy, memory_order_relaxed))
        own = own->inner ? own->inner : rp_core_open_inner(own);
    if (!own)
        count_lost(s);
    return own;
}

/* This thread's stream, with that much room and the time set; NULL: the event is not kept. */
static inline struct rp_core_stream *claim(struct rp_core_stream *s, size_t need)
{
    uint64_t now;

    if (RP_CORE_UNLIKELY(atomic_load_explicit(&s->busy, memory_order_relaxed))) {
        s = from_handler(s);
        if (!s)
            return NULL;
    }
    atomic_store_explicit(&s->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (RP_CORE_UNLIKELY((size_t)(s->end - s->at) < need) && !make_room(s, need))
        return NULL;
    now = rp_core_now();
    if (RP_CORE_LIKELY(now > s->last)) /* never backwards, whatever the processors say */
        s->last = now;
    return s;
}

/* The stream to write to; NULL: the event is not kept. */
static inline struct rp_core_stream *begin(size_t need, const char *name)
{
    struct rp_core_stream *s = rp_core_self;

    if (RP_CORE_UNLIKELY(!rp_core.page))
        return NULL;
    if (RP_CORE_UNLIKELY(!s || s->time !=
                                   atomic_load_explicit(&rp_core.page->on, memory_order_relaxed))) {
        s = rp_core_open(name);
        if (!s)
            return NULL;
    }
    return claim(s, need);
}

/* Device work is told after it happened: it belongs to the recording by when it began. */
static struct rp_core_stream *begin_told(size_t need, const struct rp_capture_span *p)
{
    bool dated = p->timebase == RP_CTF_TIME_MONOTONIC;
    int64_t on_ns = atomic_load(&rp_core.on_ns), off_ns = atomic_load(&rp_core.off_ns);
    struct rp_core_stream *s;

    if (dated && (int64_t)p->begin < on_ns)
        return NULL;
    if (!dated || !off_ns || off_ns < on_ns || !rp_core.page || atomic_load(&rp_core.page->on) ||
        (int64_t)p->begin >= off_ns)
        return begin(need, NULL);
    s = rp_core_open_late();
    return s ? claim(s, need) : NULL;
}

/* The event ends at `at`. */
static RP_CORE_INLINE void end_at(struct rp_core_stream *s, uint8_t *at)
{
    struct rp_ctf_packet *p = s->head;
    uint64_t events = s->events + 1;

    s->at = at;
    s->events = events;
    p->timestamp_end = s->last;
    p->events = events;
    atomic_store_explicit((_Atomic uint64_t *)&p->content_bits, (uint64_t)(at - (uint8_t *)p) * 8,
                          memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&s->busy, 0, memory_order_relaxed);
}

static inline void end(struct rp_core_stream *s)
{
    end_at(s, s->at);
}

/* The event at hand begins a step. Where that ends the recording, it is taken back: false. */
static __attribute__((noinline)) bool begin_step(struct rp_core_stream *s, uint32_t number,
                                                 uint8_t *at, uint64_t events)
{
    bool counted = s->step_counted;

    s->step_counted = false;
    if (counted)
        return true;
    rp_core_step(NULL);
    if (atomic_load(&rp_core.page->on))
        return true;
    s->texts[number].packet = 0; /* its definition goes too */
    s->at = at;
    s->events = events;
    atomic_store_explicit(&s->busy, 0, memory_order_relaxed);
    return false;
}

/* -------------------------------------------------------------------------- the program's events
 */

static RP_CORE_INLINE void put_named(enum rp_ctf_event id, const char *name)
{
    struct text t = text_of(name, RP_CTF_TEXT_MAX);
    struct rp_core_stream *s = begin(DEFINE + t.len + HEADER + 4, name);
    uint64_t events, word;
    uint32_t number;
    uint8_t *at;

    if (!s)
        return;
    at = s->at;
    events = s->events;
    number = number_of(s, &t);
    if (RP_CORE_UNLIKELY(s->texts[number].is_step) && !begin_step(s, number, at, events))
        return;
    at = s->at;
    word = s->last << 8 | id;
    memcpy(at, &word, 8);
    memcpy(at + 8, &number, 4);
    end_at(s, at + 12);
}

static void range_begin(const char *name)
{
    put_named(RP_CTF_RANGE_BEGIN, name);
}

static void range_end(void)
{
    struct rp_core_stream *s = begin(HEADER, NULL);
    uint64_t word;

    if (!s)
        return;
    word = s->last << 8 | RP_CTF_RANGE_END;
    memcpy(s->at, &word, 8);
    end_at(s, s->at + 8);
}

static void mark(const char *name)
{
    put_named(RP_CTF_MARK, name);
}

static void counter(const char *name, double value)
{
    struct text t = text_of(name, RP_CTF_TEXT_MAX);
    struct rp_core_stream *s = begin(DEFINE + t.len + HEADER + 12, NULL);
    uint32_t number;
    uint64_t bits;

    if (!s)
        return;
    number = number_of(s, &t);
    memcpy(&bits, &value, 8);
    put_header(s, RP_CTF_COUNTER);
    put4(s, number);
    put8(s, bits);
    end(s);
}

/* -------------------------------------------------------------------------- of sources */

static void put_bytes(struct rp_core_stream *s, const void *bytes, size_t n)
{
    memcpy(s->at, bytes, n);
    s->at += n;
}

static void enter(const struct rp_capture_enter *e)
{
    struct text name = text_of(e->name, RP_CTF_TEXT_MAX);
    struct text category = text_of(e->category, RP_CORE_KEY_MAX);
    struct rp_ctf_enter out = {.kind = (uint8_t)e->kind, .lane = e->lane, .link = e->link};
    struct rp_core_stream *s =
        begin(2 * DEFINE + name.len + category.len + HEADER + sizeof out, e->name);
    uint64_t events;
    uint8_t *at;

    if (!s)
        return;
    at = s->at;
    events = s->events;
    s->pin++;
    out.name = pinned(s, &name);
    if (RP_CORE_UNLIKELY(s->texts[out.name].is_step) && !begin_step(s, out.name, at, events))
        return;
    out.category = pinned(s, &category);
    put_header(s, RP_CTF_ENTER);
    put_bytes(s, &out, sizeof out);
    end(s);
}

static void leave(uint32_t lane, int64_t result)
{
    struct rp_ctf_leave out = {lane, result};
    struct rp_core_stream *s = begin(HEADER + sizeof out, NULL);

    if (!s)
        return;
    put_header(s, RP_CTF_LEAVE);
    put_bytes(s, &out, sizeof out);
    end(s);
}

static void put_async(enum rp_ctf_event event, const char *name, const char *category, uint64_t id)
{
    struct text t = text_of(name, RP_CTF_TEXT_MAX), c = text_of(category, RP_CORE_KEY_MAX);
    struct rp_ctf_async out = {.id = id};
    struct rp_core_stream *s = begin(2 * DEFINE + t.len + c.len + HEADER + sizeof out, NULL);

    if (!s)
        return;
    s->pin++;
    out.name = pinned(s, &t);
    out.category = pinned(s, &c);
    put_header(s, event);
    put_bytes(s, &out, sizeof out);
    end(s);
}

static void async_begin(const char *name, const char *category, uint64_t id)
{
    put_async(RP_CTF_ASYNC_BEGIN, name, category, id);
}

static void async_end(const char *name, const char *category, uint64_t id)
{
    put_async(RP_CTF_ASYNC_END, name, category, id);
}

static void put_arg(struct rp_core_stream *s, const struct rp_capture_arg *arg,
                    struct rp_ctf_arg *out)
{
    struct text key = text_of(arg->key, RP_CORE_KEY_MAX), value;

    out->key = pinned(s, &key);
    out->type = (uint8_t)arg->type;
    out->value = arg->number;
    if (arg->type == RP_CTF_ARG_REAL) {
        memcpy(&out->value, &arg->real, 8);
    } else if (arg->type == RP_CTF_ARG_TEXT) {
        value = text_of(arg->text, RP_CORE_VALUE_MAX);
        out->value = pinned(s, &value);
    }
}

static void span(const struct rp_capture_span *p)
{
    struct text name = text_of(p->name, RP_CTF_TEXT_MAX);
    struct text category = text_of(p->category, RP_CORE_KEY_MAX);
    uint32_t n = p->nargs < RP_CTF_ARGS_MAX ? p->nargs : RP_CTF_ARGS_MAX;
    struct rp_ctf_arg args[RP_CTF_ARGS_MAX];
    struct rp_ctf_span out = {.kind = (uint8_t)p->kind,
                              .timebase = (uint8_t)p->timebase,
                              .begin = p->begin,
                              .end = p->end,
                              .device = p->device,
                              .track = p->track,
                              .link = p->link,
                              .nargs = (uint8_t)n};
    size_t most = 2 * DEFINE + name.len + category.len + HEADER + sizeof out +
                  n * (sizeof *args + 2 * DEFINE + RP_CORE_KEY_MAX + RP_CORE_VALUE_MAX);
    struct rp_core_stream *s = begin_told(most, p);

    if (!s)
        return;
    if (p->device == RP_CTF_SPAN_DEVICE && !p->track)
        out.track = s->tid;
    s->pin++;
    out.name = pinned(s, &name);
    out.category = pinned(s, &category);
    for (uint32_t i = 0; i < n; i++)
        put_arg(s, &p->args[i], &args[i]);
    put_header(s, RP_CTF_SPAN);
    put_bytes(s, &out, sizeof out);
    put_bytes(s, args, n * sizeof *args);
    end(s);
}

/* -------------------------------------------------------------------------- about the process */

/* An event of up to two numbers, each plain or that of a text. */
static void put_pair(enum rp_ctf_event event, uint32_t number, const char *a, const char *b)
{
    struct text t = text_of(a, RP_CTF_TEXT_MAX / 2), u = text_of(b, RP_CTF_TEXT_MAX / 2);
    struct rp_core_stream *s = begin(2 * DEFINE + t.len + u.len + HEADER + 12, NULL);
    uint32_t first, second;

    if (!s)
        return;
    s->pin++;
    first = a ? pinned(s, &t) : 0;
    second = b ? pinned(s, &u) : 0;
    put_header(s, event);
    if (event == RP_CTF_FORK || event == RP_CTF_THREAD_NAME)
        put4(s, number ? number : s->tid);
    if (a)
        put4(s, first);
    if (b)
        put4(s, second);
    end(s);
}

/* What only describes a process is written only where it records something: it opens no stream. */
static bool active(void)
{
    return rp_core.page && atomic_load_explicit(&rp_core.page->on, memory_order_relaxed);
}

static bool telling(void)
{
    return active() && rp_core_self;
}

static void thread_name(uint32_t tid, const char *name)
{
    if (telling())
        put_pair(RP_CTF_THREAD_NAME, tid, name, NULL);
}

static void library(const char *path)
{
    if (active() && atomic_load(&rp_core.page->opened))
        put_pair(RP_CTF_LIBRARY, 0, path, NULL);
}

static void forked(uint32_t child)
{
    if (telling())
        put_pair(RP_CTF_FORK, child, NULL, NULL);
}

static void exec_path(const char *path)
{
    if (telling())
        put_pair(RP_CTF_EXEC, 0, path, NULL);
}

static void fact(const char *key, const char *value)
{
    put_pair(RP_CTF_FACT, 0, key, value);
}

static void lost(uint64_t events)
{
    struct rp_core_stream *s = begin(0, NULL);

    if (!s) {
        atomic_fetch_add(&rp_core.lost, events);
        return;
    }
    s->lost += events;
    if (s->head)
        s->head->discarded = s->lost;
    atomic_store_explicit(&s->busy, 0, memory_order_relaxed);
}

void rp_core_put_clock(void)
{
    struct rp_ctf_clock out = rp_core_clock_triple();
    uint64_t before = rp_core_self ? rp_core_self->lost : 0;
    struct rp_core_stream *s = begin(HEADER + sizeof out, NULL);

    if (!s) { /* the recorder's own: nothing of the program's was lost */
        s = rp_core_self;
        if (s && s->lost > before && s->head)
            s->head->discarded = s->lost = before;
        return;
    }
    put_header(s, RP_CTF_CLOCK);
    put_bytes(s, &out, sizeof out);
    s->head->clocks++; /* first: a reader looks for them where this is not 0 */
    end(s);
}

void rp_core_put_resume(void)
{
    struct rp_core_stream *s = begin(HEADER, NULL);

    if (!s)
        return;
    put_header(s, RP_CTF_RESUME);
    end(s);
}

void rp_core_put_process(const char *program, const char *command)
{
    struct text host = text_of(rp_core.host, RP_CORE_KEY_MAX), path = text_of(program, PATH_MAX);
    struct text words = text_of(command, PATH_MAX);
    struct rp_ctf_process out = {.pid = rp_core.pid,
                                 .parent = (uint32_t)getppid(),
                                 .rank = rp_core.rank,
                                 .world_size = rp_core.world_size,
                                 .local_rank = rp_core.local_rank};
    struct rp_core_stream *s =
        begin(3 * DEFINE + host.len + path.len + words.len + HEADER + sizeof out, NULL);

    if (!s)
        return;
    s->pin++;
    out.host = pinned(s, &host);
    out.program = pinned(s, &path);
    out.command = pinned(s, &words);
    put_header(s, RP_CTF_PROCESS);
    put_bytes(s, &out, sizeof out);
    end(s);
}

static uint64_t now_ticks(void)
{
    return rp_core_now();
}

static uint32_t process_id(void)
{
    return rp_core_image();
}

static void warn(const char *text)
{
    rp_core_warn(0, "%s", text);
}

const struct rp_capture rp_core_table = {.version = RP_CAPTURE_VERSION,
                                         .struct_size = sizeof(struct rp_capture),
                                         .active = active,
                                         .now = now_ticks,
                                         .process_id = process_id,
                                         .source = rp_core_source,
                                         .range_begin = range_begin,
                                         .range_end = range_end,
                                         .mark = mark,
                                         .counter = counter,
                                         .enter = enter,
                                         .leave = leave,
                                         .async_begin = async_begin,
                                         .async_end = async_end,
                                         .span = span,
                                         .thread_name = thread_name,
                                         .library = library,
                                         .forked = forked,
                                         .exec = exec_path,
                                         .fact = fact,
                                         .lost = lost,
                                         .warn = warn,
                                         .option = rp_core_option};
