/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: the hot path. An event is stored after the previous one, then the packet's content_size
 * is advanced over it (release), so that a reader sees all of it or nothing. Texts are written as
 * numbers: a hash table with one slot a number holds whether this packet has the definition; the
 * definition and the event that needs it become visible by the same store.
 *
 * `busy` is set while an event is being written, so that a signal handler that interrupts it writes
 * into a stream of its own.
 */
#include "capture/core/state.h"
#include "capture/core/text.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HEADER 8                        /* bytes of an event's header */
#define DEFINE ((size_t)HEADER + 4 + 1) /* bytes of a definition, without its text */

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

static __attribute__((noinline)) void text_define(struct rp_core_stream *s, uint32_t number,
                                                  const struct text *t)
{
    struct rp_core_text *slot = &s->texts[number];

    put_header(s, RP_CTF_STRING);
    put4(s, number);
    memcpy(s->at, t->at, t->len);
    s->at[t->len] = '\0';
    /* the program may have changed the text meanwhile: end it at the first NUL */
    s->at += strnlen((const char *)s->at, t->len) + 1;
    s->events++;
    if (slot->hash != t->hash) {
        slot->is_input =
            rp_core_signals() && t->at[t->len] == '\0' && rp_core_signal_is_input(t->at);
        slot->is_step = rp_core_counts_steps() && t->at[t->len] == '\0' && rp_core_is_step(t->at);
    }
    slot->hash = t->hash;
    slot->packet = s->packet;
}

static inline uint32_t text_number(struct rp_core_stream *s, const struct text *t)
{
    uint32_t number = (uint32_t)t->hash & s->mask;
    struct rp_core_text *slot = &s->texts[number];

    if (RP_CORE_UNLIKELY(slot->hash != t->hash || slot->packet != s->packet))
        text_define(s, number, t);
    return number;
}

/* Like text_number, for an event with several texts, which must not share a slot. */
static uint32_t text_pin(struct rp_core_stream *s, const struct text *t)
{
    uint32_t number = (uint32_t)t->hash & s->mask;
    struct rp_core_text *slot = &s->texts[number];

    while (slot->hash != t->hash && slot->pin == s->pin && slot->packet == s->packet) {
        number = (number + 1) & s->mask;
        slot = &s->texts[number];
    }
    if (slot->hash != t->hash || slot->packet != s->packet)
        text_define(s, number, t);
    slot->pin = s->pin;
    return number;
}

static __attribute__((noinline)) void count_lost(struct rp_core_stream *s)
{
    if (!rp_core_own)
        rp_core_stream_lose(s, s->why, 1);
}

static __attribute__((noinline)) bool stream_make_room(struct rp_core_stream *s, size_t need)
{
    if (rp_core_stream_next(s, need))
        return true;
    count_lost(s);
    atomic_store_explicit(&s->busy, 0, memory_order_relaxed);
    return false;
}

/* The stream for a signal handler that interrupted an event of `s`. */
static __attribute__((noinline)) struct rp_core_stream *stream_of_handler(struct rp_core_stream *s)
{
    struct rp_core_stream *own = s;

    while (own && atomic_load_explicit(&own->busy, memory_order_relaxed))
        own = own->inner ? own->inner : rp_core_open_inner(own);
    if (!own) {
        s->why = atomic_load(&rp_core.sealed) ? RP_CTF_LOSS_SANDBOX : RP_CTF_LOSS_MEMORY;
        count_lost(s);
    }
    return own;
}

/* The stream with `need` bytes of room and the current time, or NULL if the event is dropped. */
static inline struct rp_core_stream *stream_claim(struct rp_core_stream *s, size_t need)
{
    if (RP_CORE_UNLIKELY(atomic_load_explicit(&s->busy, memory_order_relaxed))) {
        s = stream_of_handler(s);
        if (!s)
            return NULL;
    }
    atomic_store_explicit(&s->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (RP_CORE_UNLIKELY(atomic_load_explicit(&rp_core.page->closed, memory_order_relaxed))) {
        atomic_store_explicit(&s->busy, 0, memory_order_relaxed);
        return NULL;
    }
    if (RP_CORE_UNLIKELY((size_t)(s->end - s->at) < need) && !stream_make_room(s, need))
        return NULL;
    uint64_t now = rp_core_now();
    if (RP_CORE_LIKELY(now > s->last)) /* never backwards, even if the processors disagree */
        s->last = now;
    return s;
}

/* The stream of this thread, ready for an event, or NULL if the event is dropped. */
static inline struct rp_core_stream *event_begin(size_t need, const char *name)
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
    return stream_claim(s, need);
}

/* For an event of the recorder itself, which is not counted if it is lost. */
static struct rp_core_stream *event_begin_own(size_t need)
{
    bool before = rp_core_own;

    rp_core_own = true;
    struct rp_core_stream *s = event_begin(need, NULL);
    rp_core_own = before;
    return s;
}

/* When recording was switched off during the span; 0 if it is on. */
static uint64_t off_since(uint8_t timebase)
{
    uint32_t times = atomic_load(&rp_core.times);

    if (!rp_core.page || atomic_load(&rp_core.page->on) || !atomic_load(&rp_core.off_ns))
        return 0;
    if (timebase == RP_CTF_TIME_MONOTONIC)
        return (uint64_t)atomic_load(&rp_core.off_ns);
    return timebase == RP_CTF_TIME_TICKS ? atomic_load(&rp_core.off_at[times % RP_CORE_PAUSES]) : 0;
}

/* A span is reported when it has ended, and is recorded if recording was on when it began. Device
   work keeps its end; host work ends with the recording, like ranges. */
static struct rp_core_stream *event_begin_late(size_t need, struct rp_ctf_span *p)
{
    uint64_t off = off_since(p->timebase);

    if (p->timebase == RP_CTF_TIME_MONOTONIC && (int64_t)p->begin < atomic_load(&rp_core.on_ns))
        return NULL;
    if (!off || p->begin >= off)
        return event_begin(need, NULL);
    if (p->timebase == RP_CTF_TIME_TICKS && p->end > off)
        p->end = off;
    struct rp_core_stream *s = rp_core_open_late();
    return s ? stream_claim(s, need) : NULL;
}

/* Publishes the event, which ends at `at`. */
static RP_CORE_INLINE void event_end_at(struct rp_core_stream *s, uint8_t *at)
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

static inline void event_end(struct rp_core_stream *s)
{
    event_end_at(s, s->at);
}

/* Counts the step that the current event begins. If that ends the recording, removes the event and
   returns false. */
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
    s->texts[number].packet = 0; /* its definition is removed, too */
    s->at = at;
    s->events = events;
    atomic_store_explicit(&s->busy, 0, memory_order_relaxed);
    return false;
}

/* Notes the begin of something that is counted as a whole, or that is nested in such a thing. */
static inline void open_begin(struct rp_core_open *open, bool opens, uint32_t lane, uint64_t now)
{
    if (RP_CORE_LIKELY(!opens && !open->depth))
        return;
    if (!open->depth) {
        open->began = now;
        open->lane = lane;
    }
    open->depth += open->lane == lane;
}

static inline void open_end(struct rp_core_open *open, enum rp_core_total which, uint32_t lane,
                            uint64_t now)
{
    if (RP_CORE_UNLIKELY(open->depth) && open->lane == lane && !--open->depth)
        rp_core_signal_total(which, open->began, now, true);
}

/* -------------------------------------------------------------------------- events of the program
 */

static RP_CORE_INLINE void put_named(enum rp_ctf_event id, const char *name)
{
    struct text t = text_of(name, RP_CTF_TEXT_MAX);
    struct rp_core_stream *s = event_begin(DEFINE + t.len + HEADER + 4, name);

    if (!s)
        return;
    uint8_t *at = s->at;
    uint64_t events = s->events;
    uint32_t number = text_number(s, &t);
    if (RP_CORE_UNLIKELY(s->texts[number].is_step) && !begin_step(s, number, at, events))
        return;
    if (id == RP_CTF_RANGE_BEGIN)
        open_begin(&s->input, s->texts[number].is_input, 0, s->last);
    at = s->at;
    uint64_t word = s->last << 8 | id;
    memcpy(at, &word, 8);
    memcpy(at + 8, &number, 4);
    event_end_at(s, at + 12);
}

/* Called after an event, because a switch of detail writes events, too. */
static RP_CORE_INLINE void tell_step(void)
{
    if (RP_CORE_UNLIKELY(atomic_load_explicit(&rp_core.step_due, memory_order_relaxed)) &&
        atomic_exchange(&rp_core.step_due, false))
        rp_core_step_end(RP_CAPTURE_MARK, "");
}

static void put_range_begin(const char *name)
{
    put_named(RP_CTF_RANGE_BEGIN, name);
    tell_step();
}

static void put_range_end(void)
{
    struct rp_core_stream *s = event_begin(HEADER, NULL);

    if (!s)
        return;
    open_end(&s->input, RP_CORE_INPUT, 0, s->last);
    uint64_t word = s->last << 8 | RP_CTF_RANGE_END;
    memcpy(s->at, &word, 8);
    event_end_at(s, s->at + 8);
}

static void put_mark(const char *name)
{
    put_named(RP_CTF_MARK, name);
    tell_step();
}

static void put_counter(const char *name, double value)
{
    struct text t = text_of(name, RP_CTF_TEXT_MAX);
    struct rp_core_stream *s = event_begin(DEFINE + t.len + HEADER + 12, NULL);
    uint64_t bits;

    if (!s)
        return;
    uint32_t number = text_number(s, &t);
    memcpy(&bits, &value, 8);
    put_header(s, RP_CTF_COUNTER);
    put4(s, number);
    put8(s, bits);
    event_end(s);
}

static bool is_active(void)
{
    return rp_core.page && atomic_load_explicit(&rp_core.page->on, memory_order_relaxed) &&
           !rp_core_blind;
}

/* -------------------------------------------------------------------------- events of sources */

static void put_bytes(struct rp_core_stream *s, const void *bytes, size_t n)
{
    memcpy(s->at, bytes, n);
    s->at += n;
}

static void put_enter(const struct rp_capture_enter *e)
{
    struct text name = text_of(e->name, RP_CTF_TEXT_MAX);
    struct text category = text_of(e->category, RP_CORE_KEY_MAX);
    struct rp_ctf_enter out = {.kind = (uint8_t)e->kind, .lane = e->lane, .link = e->link};
    struct rp_core_stream *s =
        event_begin(2 * DEFINE + name.len + category.len + HEADER + sizeof out, e->name);

    if (!s)
        return;
    uint8_t *at = s->at;
    uint64_t events = s->events;
    s->pin++;
    out.name = text_pin(s, &name);
    if (RP_CORE_UNLIKELY(s->texts[out.name].is_step) && !begin_step(s, out.name, at, events))
        return;
    out.category = text_pin(s, &category);
    open_begin(&s->collective, e->kind == RP_CTF_KIND_COLLECTIVE && rp_core_signals(), e->lane,
               s->last);
    put_header(s, RP_CTF_ENTER);
    put_bytes(s, &out, sizeof out);
    event_end(s);
    tell_step();
}

static void put_leave(uint32_t lane, int64_t result)
{
    struct rp_ctf_leave out = {lane, result};
    struct rp_core_stream *s = event_begin(HEADER + sizeof out, NULL);

    if (!s)
        return;
    open_end(&s->collective, RP_CORE_COLLECTIVES, lane, s->last);
    put_header(s, RP_CTF_LEAVE);
    put_bytes(s, &out, sizeof out);
    event_end(s);
}

static void put_async_event(enum rp_ctf_event event, const char *name, const char *category,
                            uint64_t id)
{
    struct text t = text_of(name, RP_CTF_TEXT_MAX), c = text_of(category, RP_CORE_KEY_MAX);
    struct rp_ctf_async out = {.id = id};
    struct rp_core_stream *s = event_begin(2 * DEFINE + t.len + c.len + HEADER + sizeof out, NULL);

    if (!s)
        return;
    s->pin++;
    out.name = text_pin(s, &t);
    out.category = text_pin(s, &c);
    put_header(s, event);
    put_bytes(s, &out, sizeof out);
    event_end(s);
}

static void put_async_begin(const char *name, const char *category, uint64_t id)
{
    put_async_event(RP_CTF_ASYNC_BEGIN, name, category, id);
}

static void put_async_end(const char *name, const char *category, uint64_t id)
{
    put_async_event(RP_CTF_ASYNC_END, name, category, id);
}

static void put_span(const struct rp_capture_span *p)
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
    size_t max = 2 * DEFINE + name.len + category.len + HEADER + sizeof out +
                 n * (sizeof *args + 2 * DEFINE + RP_CORE_KEY_MAX + RP_CORE_VALUE_MAX);

    if (RP_CORE_UNLIKELY(rp_core_signals()) && is_active())
        rp_core_signal_span(p); /* also if there is no room to record it */
    struct rp_core_stream *s = event_begin_late(max, &out);
    if (!s)
        return;
    if (p->device == RP_CTF_SPAN_DEVICE && !p->track)
        out.track = s->tid;
    s->pin++;
    out.name = text_pin(s, &name);
    out.category = text_pin(s, &category);
    for (uint32_t i = 0; i < n; i++) {
        /* An argument: its key and its value. */
        struct text key = text_of(p->args[i].key, RP_CORE_KEY_MAX);
        args[i].key = text_pin(s, &key);
        args[i].type = (uint8_t)p->args[i].type;
        args[i].value = p->args[i].number;
        if (p->args[i].type == RP_CTF_ARG_REAL) {
            memcpy(&args[i].value, &p->args[i].real, 8);
        } else if (p->args[i].type == RP_CTF_ARG_TEXT) {
            struct text value = text_of(p->args[i].text, RP_CORE_VALUE_MAX);
            args[i].value = text_pin(s, &value);
        }
    }
    put_header(s, RP_CTF_SPAN);
    put_bytes(s, &out, sizeof out);
    put_bytes(s, args, n * sizeof *args);
    event_end(s);
}

/* Writes one event of a stack that may need several. */

static void put_sample_part(const struct rp_capture_sample *p, uint32_t from, uint32_t n)
{
    struct rp_ctf_sample out = {.tid = p->tid,
                                .ticks = p->ticks,
                                .weight_ns = p->weight_ns,
                                .gil_tid = p->gil_tid,
                                .state = (uint8_t)p->state,
                                .nframes = (uint8_t)n};
    struct text texts[RP_CTF_SAMPLE_FRAMES];
    uint32_t numbers[RP_CTF_SAMPLE_FRAMES];
    size_t need = HEADER + sizeof out + n * (DEFINE + 4);

    out.flags = (uint8_t)((from + n < p->nframes ? RP_CTF_SAMPLE_MORE : 0) |
                          (p->is_cut ? RP_CTF_SAMPLE_CUT : 0));
    for (uint32_t i = 0; i < n; i++) {
        /* Frames of stacks recur at the same address, where they never change, so their length and
           hash are computed once. Called by one thread at a time. */
        const char *s = p->frames[from + i];
        static struct text known[2048];
        struct text *t = &known[((uintptr_t)s >> 4) * UINT32_C(0x9e3779b1) >> 16 & 2047];
        if (t->at != s)
            *t = text_of(s, RP_CORE_VALUE_MAX);
        texts[i] = *t;
        need += texts[i].len;
    }
    struct rp_core_stream *s = event_begin(need, NULL);
    if (!s)
        return;
    s->pin++;
    for (uint32_t i = 0; i < n; i++)
        numbers[i] = text_pin(s, &texts[i]);
    put_header(s, RP_CTF_SAMPLE);
    put_bytes(s, &out, sizeof out);
    put_bytes(s, numbers, n * sizeof *numbers);
    event_end(s);
}

static void put_sample(const struct rp_capture_sample *p)
{
    uint32_t from = 0;

    do {
        uint32_t n = p->nframes - from;
        n = n < RP_CTF_SAMPLE_FRAMES ? n : RP_CTF_SAMPLE_FRAMES;
        put_sample_part(p, from, n);
        from += n;
    } while (from < p->nframes);
}

static void call_every(int64_t ns, void (*call)(void))
{
    rp_core.often = call;
    atomic_store(&rp_core.often_ns, ns);
}

/* -------------------------------------------------------------------------- events about the
 * process */

/* Writes an event with up to two texts, after a number for forks and thread names. */
static void put_pair(enum rp_ctf_event event, uint32_t number, const char *a, const char *b)
{
    struct text t = text_of(a, RP_CTF_TEXT_MAX / 2), u = text_of(b, RP_CTF_TEXT_MAX / 2);
    struct rp_core_stream *s = event_begin_own(2 * DEFINE + t.len + u.len + HEADER + 12);

    if (!s)
        return;
    s->pin++;
    uint32_t first = a ? text_pin(s, &t) : 0;
    uint32_t second = b ? text_pin(s, &u) : 0;
    put_header(s, event);
    if (event == RP_CTF_FORK || event == RP_CTF_THREAD_NAME)
        put4(s, number ? number : s->tid);
    if (a)
        put4(s, first);
    if (b)
        put4(s, second);
    event_end(s);
}

static bool is_ready(void)
{
    return is_active() || (rp_core.page && !rp_core_blind && rp_core_begin());
}

/* Events that only describe the process do not open a stream. */
static bool has_stream(void)
{
    return is_active() && rp_core_self;
}

static void put_thread_name(uint32_t tid, const char *name)
{
    if (has_stream())
        put_pair(RP_CTF_THREAD_NAME, tid, name, NULL);
}

static void put_library(const char *path)
{
    if (is_active() && atomic_load(&rp_core.page->opened))
        put_pair(RP_CTF_LIBRARY, 0, path, NULL);
}

static void put_forked(uint32_t child)
{
    if (has_stream())
        put_pair(RP_CTF_FORK, child, NULL, NULL);
}

static void put_exec_path(const char *path)
{
    if (has_stream())
        put_pair(RP_CTF_EXEC, 0, path, NULL);
}

static void put_fact(const char *key, const char *value)
{
    put_pair(RP_CTF_FACT, 0, key, value);
}

static void put_lost(uint64_t events)
{
    struct rp_core_stream *s = event_begin_own(0);

    if (!s) {
        rp_core_lose(RP_CTF_LOSS_SOURCE, events);
        return;
    }
    rp_core_stream_lose(s, RP_CTF_LOSS_SOURCE, events);
    atomic_store_explicit(&s->busy, 0, memory_order_relaxed);
}

void rp_core_put_clock(void)
{
    struct rp_ctf_clock out = rp_core_clock_triple();
    struct rp_core_stream *s = event_begin_own(HEADER + sizeof out);

    if (!s)
        return;
    put_header(s, RP_CTF_CLOCK);
    put_bytes(s, &out, sizeof out);
    s->head->clocks++; /* set before the event, because a reader skips packets in which it is 0 */
    event_end(s);
}

void rp_core_put_resume(void)
{
    struct rp_core_stream *s = event_begin_own(HEADER);

    if (!s)
        return;
    put_header(s, RP_CTF_RESUME);
    event_end(s);
}

void rp_core_put_pause(struct rp_core_stream *s, uint64_t ticks)
{
    bool before = rp_core_own;

    rp_core_own = true;
    s = stream_claim(s, HEADER + sizeof ticks);
    rp_core_own = before;
    if (!s)
        return;
    put_header(s, RP_CTF_PAUSE);
    put8(s, ticks);
    event_end(s);
}

static uint32_t parent_of_subject(void)
{
    return rp_core.options.subject ? 0 : (uint32_t)getppid();
}

void rp_core_put_process(const char *program, const char *command)
{
    struct text host = text_of(rp_core.host, RP_CORE_KEY_MAX), path = text_of(program, PATH_MAX);
    struct text words = text_of(command, PATH_MAX);
    struct rp_ctf_process out = {.pid = rp_core_subject(),
                                 .parent = parent_of_subject(),
                                 .rank = rp_core.rank,
                                 .world_size = rp_core.world_size,
                                 .local_rank = rp_core.local_rank};
    struct rp_core_stream *s =
        event_begin_own(3 * DEFINE + host.len + path.len + words.len + HEADER + sizeof out);

    if (!s)
        return;
    s->pin++;
    out.host = text_pin(s, &host);
    out.program = text_pin(s, &path);
    out.command = text_pin(s, &words);
    put_header(s, RP_CTF_PROCESS);
    put_bytes(s, &out, sizeof out);
    event_end(s);
}

void rp_core_put_names(struct rp_core_stream *s)
{
    struct text host = text_of(rp_core.host, RP_CORE_KEY_MAX);
    struct text path = text_of(rp_core.program, RP_CORE_KEY_MAX), none = text_of("", 0);
    struct rp_ctf_process out = {.pid = rp_core_subject(),
                                 .parent = parent_of_subject(),
                                 .rank = rp_core.rank,
                                 .world_size = rp_core.world_size,
                                 .local_rank = rp_core.local_rank};
    char thread[17] = "";

    s->pin++;
    out.host = text_pin(s, &host);
    out.program = text_pin(s, &path);
    out.command = text_pin(s, &none);
    put_header(s, RP_CTF_PROCESS);
    put_bytes(s, &out, sizeof out);
    s->events++;
    syscall(SYS_prctl, PR_GET_NAME, thread, 0, 0, 0);
    struct text name = text_of(thread, sizeof thread);
    uint32_t number = text_pin(s, &name);
    put_header(s, RP_CTF_THREAD_NAME);
    put4(s, s->tid);
    put4(s, number);
    event_end(s);
    atomic_store_explicit(&s->busy, 1,
                          memory_order_relaxed); /* for the event that needed the packet */
}

static uint64_t now_ticks(void)
{
    return rp_core_now();
}

static uint64_t ticks_of(uint64_t ns)
{
    struct rp_ctf_clock a = rp_core_clock_triple(), b;

    do {
        b = rp_core_clock_triple();
    } while (b.monotonic_ns - a.monotonic_ns < 20000);
    return (uint64_t)((__uint128_t)(b.ticks - a.ticks) * ns /
                      (uint64_t)(b.monotonic_ns - a.monotonic_ns));
}

static uint64_t *launches(void)
{
    return atomic_load_explicit(&rp_core.counts_launches, memory_order_relaxed) ? &rp_core_launches
                                                                                : NULL;
}

static void want_launches(void)
{
    atomic_store(&rp_core.wants_launches, 1);
}

static bool count_launches(void)
{
    bool wanted = atomic_load(&rp_core.wants_launches);

    if (wanted)
        atomic_store(&rp_core.counts_launches, 1);
    return wanted;
}

static uint32_t process_id(void)
{
    return rp_core_image();
}

static void core_warn(const char *text)
{
    rp_core_warn(0, "%s", text);
}

static bool is_sealed(void)
{
    return atomic_load(&rp_core.sealed);
}

static const char *rank_folder(void)
{
    return atomic_load(&rp_core.page->opened) ? rp_core.folder : NULL;
}

const struct rp_capture rp_core_table = {.version = RP_CAPTURE_VERSION,
                                         .struct_size = sizeof(struct rp_capture),
                                         .active = is_active,
                                         .ready = is_ready,
                                         .now = now_ticks,
                                         .ticks = ticks_of,
                                         .launches = launches,
                                         .want_launches = want_launches,
                                         .count_launches = count_launches,
                                         .process_id = process_id,
                                         .source = rp_core_source,
                                         .range_begin = put_range_begin,
                                         .range_end = put_range_end,
                                         .mark = put_mark,
                                         .counter = put_counter,
                                         .enter = put_enter,
                                         .leave = put_leave,
                                         .async_begin = put_async_begin,
                                         .async_end = put_async_end,
                                         .span = put_span,
                                         .step_end = rp_core_step_end,
                                         .step_sign = rp_core_step_sign,
                                         .detail = rp_core_detail,
                                         .on_detail = rp_core_on_detail,
                                         .need_detail = rp_core_need_detail,
                                         .on_boundary = rp_core_on_boundary,
                                         .thread_name = put_thread_name,
                                         .library = put_library,
                                         .forked = put_forked,
                                         .exec = put_exec_path,
                                         .fact = put_fact,
                                         .lost = put_lost,
                                         .warn = core_warn,
                                         .option = rp_core_option,
                                         .folder = rank_folder,
                                         .every = call_every,
                                         .sample = put_sample,
                                         .sealed = is_sealed,
                                         .spent = rp_core_spend,
                                         .rest = rp_core_helper_rest,
                                         .on_leave = rp_core_on_leave,
                                         .signals = rp_core_signals,
                                         .signal = rp_core_signal};
