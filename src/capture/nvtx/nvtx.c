/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nvtx library: NVTX ranges and marks, without a GPU and without CUPTI. The program's copy of
 * NVTX loads it (NVTX_INJECTION64_PATH) at its first call, and so does each library that has a copy
 * of its own: all get the same functions.
 *
 * Push and pop nest within their domain, so a domain is a lane of the thread; without a domain they
 * are ranges like those of <reprise/record.h>. A started range may end on another thread: it is an
 * async pair with an id, and its name is kept until its end. Return values are those that the
 * program gets without a tool. Ranges that PyTorch and XLA make for their operators become
 * operators (operators.c).
 */
#include "abi/nvtx.h"
#include "capture/core/core.h"
#include "capture/nvtx/operators.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define EXPORT     __attribute__((visibility("default")))
#define FIRST_LANE UINT32_C(0x4e560000) /* distinct from lanes of other sources */
#define NAME_MAX_  256
#define STARTED    1024 /* names kept at a time; a power of two */
#define CATEGORY   "nvtx"

#define XLA_DOMAIN "TSL"

struct domain {
    uint32_t lane;
    bool is_xla;
    char category[64];
};

static const struct rp_capture *cap;
static const struct domain plain = {FIRST_LANE, false, CATEGORY};

static struct {
    _Atomic uint64_t id;
    char name[NAME_MAX_];
} started[STARTED];
static _Atomic uint64_t ids;
static _Atomic uint32_t domains;

/* -------------------------------------------------------------------------- texts */

/* Converts a wide text to UTF-8, truncated to the size. */
static const char *utf8_of(char *to, size_t size, const wchar_t *from)
{
    size_t n = 0;

    for (; from && *from && n + 5 < size; from++) {
        uint32_t c = (uint32_t)*from;

        if (c < 0x80) {
            to[n++] = (char)c;
        } else if (c < 0x800) {
            to[n++] = (char)(0xc0 | c >> 6);
            to[n++] = (char)(0x80 | (c & 63));
        } else {
            if (c >= 0x10000) {
                to[n++] = (char)(0xf0 | (c >> 18 & 7));
                to[n++] = (char)(0x80 | (c >> 12 & 63));
            } else {
                to[n++] = (char)(0xe0 | c >> 12);
            }
            to[n++] = (char)(0x80 | (c >> 6 & 63));
            to[n++] = (char)(0x80 | (c & 63));
        }
    }
    to[n] = '\0';
    return to;
}

/* A registered string is a copy made by register_a. */
static const char *message_of(const struct rp_nvtx_event *e, char *room)
{
    if (!e || e->size < sizeof *e || !e->message)
        return "(no name)";
    if (e->message_type == RP_NVTX_MESSAGE_WIDE)
        return utf8_of(room, NAME_MAX_, e->message);
    if (e->message_type == RP_NVTX_MESSAGE_ASCII || e->message_type == RP_NVTX_MESSAGE_REGISTERED)
        return e->message;
    return "(no name)";
}

/* -------------------------------------------------------------------------- ranges and domains */

static int range_push(const struct domain *d, const char *name)
{
    char room[NAME_MAX_];

    if (d == &plain || d->is_xla)
        name = rp_nvtx_operator_begin(cap, d->is_xla ? RP_NVTX_NAMES_XLA : RP_NVTX_NAMES_PLAIN,
                                      name, room, sizeof room);
    if (!name)
        return RP_NVTX_NO_LEVEL;
    if (d == &plain)
        cap->range_begin(name); /* costs half as much as a call with a category */
    else
        cap->enter(&(struct rp_capture_enter){.kind = RP_CTF_KIND_ANNOTATION,
                                              .lane = d->lane,
                                              .name = name,
                                              .category = d->category});
    return RP_NVTX_NO_LEVEL;
}

static int range_pop(const struct domain *d)
{
    if ((d == &plain || d->is_xla) &&
        rp_nvtx_operator_end(cap, d->is_xla ? RP_NVTX_NAMES_XLA : RP_NVTX_NAMES_PLAIN))
        return RP_NVTX_NO_LEVEL;
    if (d == &plain)
        cap->range_end();
    else
        cap->leave(d->lane, 0);
    return RP_NVTX_NO_LEVEL;
}

static uint64_t range_start(const char *name)
{
    uint64_t id = atomic_fetch_add(&ids, 1) + 1;
    size_t k = id & (STARTED - 1);

    snprintf(started[k].name, NAME_MAX_, "%s", name);
    atomic_store(&started[k].id, id);
    cap->async_begin(started[k].name, CATEGORY, id);
    return id;
}

static void range_end(uint64_t id)
{
    size_t k = id & (STARTED - 1);

    cap->async_end(atomic_load(&started[k].id) == id ? started[k].name : "", CATEGORY, id);
}

static const struct domain *domain_of(const void *handle)
{
    return handle ? handle : &plain;
}

static void *make_domain(const char *name)
{
    struct domain *d = malloc(sizeof *d);

    if (!d)
        return NULL;
    d->lane = FIRST_LANE + 1 + atomic_fetch_add(&domains, 1);
    snprintf(d->category, sizeof d->category, CATEGORY ":%s", name ? name : "");
    d->is_xla = name && !strcmp(name, XLA_DOMAIN);
    return d;
}

/* -------------------------------------------------------------------------- core */

static void mark_ex(const struct rp_nvtx_event *e)
{
    char room[NAME_MAX_];

    cap->mark(message_of(e, room));
}

static void mark_a(const char *text)
{
    cap->mark(text);
}

static void mark_w(const wchar_t *text)
{
    char room[NAME_MAX_];

    cap->mark(utf8_of(room, sizeof room, text));
}

static uint64_t start_ex(const struct rp_nvtx_event *e)
{
    char room[NAME_MAX_];

    return range_start(message_of(e, room));
}

static uint64_t start_a(const char *text)
{
    return range_start(text ? text : "");
}

static uint64_t start_w(const wchar_t *text)
{
    char room[NAME_MAX_];

    return range_start(utf8_of(room, sizeof room, text));
}

static int push_ex(const struct rp_nvtx_event *e)
{
    char room[NAME_MAX_];

    return range_push(&plain, message_of(e, room));
}

static int push_a(const char *text)
{
    return range_push(&plain, text);
}

static int push_w(const wchar_t *text)
{
    char room[NAME_MAX_];

    return range_push(&plain, utf8_of(room, sizeof room, text));
}

static int pop_plain(void)
{
    return range_pop(&plain);
}

static void name_thread_a(uint32_t tid, const char *name)
{
    cap->thread_name(tid, name);
}

static void name_thread_w(uint32_t tid, const wchar_t *name)
{
    char room[NAME_MAX_];

    cap->thread_name(tid, utf8_of(room, sizeof room, name));
}

/* -------------------------------------------------------------------------- domains */

static void domain_mark(void *domain, const struct rp_nvtx_event *e)
{
    (void)domain;
    mark_ex(e);
}

static uint64_t domain_start(void *domain, const struct rp_nvtx_event *e)
{
    (void)domain;
    return start_ex(e);
}

static void domain_end(void *domain, uint64_t id)
{
    (void)domain;
    range_end(id);
}

static int domain_push(void *domain, const struct rp_nvtx_event *e)
{
    char room[NAME_MAX_];

    return range_push(domain_of(domain), message_of(e, room));
}

static int domain_pop(void *domain)
{
    return range_pop(domain_of(domain));
}

static void *register_a(void *domain, const char *text)
{
    (void)domain;
    return strdup(text ? text : "");
}

static void *register_w(void *domain, const wchar_t *text)
{
    char room[NAME_MAX_];

    return register_a(domain, utf8_of(room, sizeof room, text));
}

static void *create_a(const char *name)
{
    return make_domain(name);
}

static void *create_w(const wchar_t *name)
{
    char room[NAME_MAX_];

    return make_domain(utf8_of(room, sizeof room, name));
}

/* -------------------------------------------------------------------------- payloads */

/* Only the program knows the meaning of a payload: ranges are recorded without it. */
static void payload_mark(void *domain, const void *data, size_t n)
{
    (void)domain, (void)data, (void)n;
    mark_ex(NULL);
}

static int payload_push(void *domain, const void *data, size_t n)
{
    (void)data, (void)n;
    return domain_push(domain, NULL);
}

static int payload_pop(void *domain, const void *data, size_t n)
{
    (void)data, (void)n;
    return domain_pop(domain);
}

static uint64_t payload_start(void *domain, const void *data, size_t n)
{
    (void)data, (void)n;
    return domain_start(domain, NULL);
}

static void payload_end(void *domain, uint64_t id, const void *data, size_t n)
{
    (void)data, (void)n;
    domain_end(domain, id);
}

/* -------------------------------------------------------------------------- injection */

struct entry {
    unsigned id;
    rp_nvtx_function function;
};

#define ENTRY(id, function)              \
    {                                    \
        id, (rp_nvtx_function)(function) \
    }

static const struct entry core[] = {ENTRY(RP_NVTX_MARK_EX, mark_ex),
                                    ENTRY(RP_NVTX_MARK_A, mark_a),
                                    ENTRY(RP_NVTX_MARK_W, mark_w),
                                    ENTRY(RP_NVTX_START_EX, start_ex),
                                    ENTRY(RP_NVTX_START_A, start_a),
                                    ENTRY(RP_NVTX_START_W, start_w),
                                    ENTRY(RP_NVTX_END, range_end),
                                    ENTRY(RP_NVTX_PUSH_EX, push_ex),
                                    ENTRY(RP_NVTX_PUSH_A, push_a),
                                    ENTRY(RP_NVTX_PUSH_W, push_w),
                                    ENTRY(RP_NVTX_POP, pop_plain),
                                    ENTRY(RP_NVTX_NAME_THREAD_A, name_thread_a),
                                    ENTRY(RP_NVTX_NAME_THREAD_W, name_thread_w)};

static const struct entry core2[] = {
    ENTRY(RP_NVTX_DOMAIN_MARK_EX, domain_mark),   ENTRY(RP_NVTX_DOMAIN_START_EX, domain_start),
    ENTRY(RP_NVTX_DOMAIN_END, domain_end),        ENTRY(RP_NVTX_DOMAIN_PUSH_EX, domain_push),
    ENTRY(RP_NVTX_DOMAIN_POP, domain_pop),        ENTRY(RP_NVTX_REGISTER_STRING_A, register_a),
    ENTRY(RP_NVTX_REGISTER_STRING_W, register_w), ENTRY(RP_NVTX_DOMAIN_CREATE_A, create_a),
    ENTRY(RP_NVTX_DOMAIN_CREATE_W, create_w)};

static const struct entry payload[] = {
    ENTRY(RP_NVTX_PAYLOAD_MARK, payload_mark), ENTRY(RP_NVTX_PAYLOAD_PUSH, payload_push),
    ENTRY(RP_NVTX_PAYLOAD_POP, payload_pop), ENTRY(RP_NVTX_PAYLOAD_START, payload_start),
    ENTRY(RP_NVTX_PAYLOAD_END, payload_end)};

static void module_fill(const struct rp_nvtx_callbacks *callbacks, enum rp_nvtx_module module,
                        const struct entry *entries, size_t n)
{
    rp_nvtx_function **table = NULL;
    unsigned size = 0;

    if (!callbacks->module_table(module, &table, &size) || !table)
        return;
    for (size_t i = 0; i < n; i++) {
        if (entries[i].id < size && table[entries[i].id])
            *table[entries[i].id] = entries[i].function;
    }
}

EXPORT int InitializeInjectionNvtx2(rp_nvtx_get_table *get);

int InitializeInjectionNvtx2(rp_nvtx_get_table *get)
{
    const struct rp_nvtx_callbacks *callbacks = get ? get(RP_NVTX_TABLE_CALLBACKS) : NULL;

    if (!cap)
        cap = rp_capture_get();
    if (!cap || !callbacks || callbacks->size < sizeof *callbacks || !callbacks->module_table)
        return 0;
    module_fill(callbacks, RP_NVTX_CORE, core, sizeof core / sizeof core[0]);
    module_fill(callbacks, RP_NVTX_CORE2, core2, sizeof core2 / sizeof core2[0]);
    return 1;
}

EXPORT int InitializeInjectionNvtxExtension(struct rp_nvtx_extension *extension);

int InitializeInjectionNvtxExtension(struct rp_nvtx_extension *extension)
{
    if (!cap)
        cap = rp_capture_get();
    if (!cap || !extension || extension->module != RP_NVTX_EXTENSION_PAYLOAD ||
        !extension->nsegments)
        return 0;
    struct rp_nvtx_segment *s = &extension->segments[0];
    for (size_t i = 0; i < sizeof payload / sizeof payload[0]; i++) {
        if (payload[i].id < s->nslots)
            s->slots[payload[i].id] = (intptr_t)payload[i].function;
    }
    return 1;
}
