/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks are of fixed size: an operator that does not fit is a range without arguments. A
 * thread gets them with its first such range; they are mapped, not thread-local, because a library
 * loaded at run time gets very little thread-local storage.
 */
#include "capture/nvtx/operators.h"

#include "abi/nvtx_names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define DEPTH 64
#define ROOM  8192 /* texts of the open operators of a thread */

struct open_operator {
    uint64_t begin;             /* 0 if it was not recorded when it began */
    uint16_t name, sizes, path; /* in the room; 0: none */
    int64_t sequence;
};

struct stack {
    uint32_t depth;
    uint64_t is_operator; /* by level */
    uint16_t used[DEPTH]; /* used part of the room, before each level */
    uint16_t n;
    struct open_operator open[DEPTH];
    char room[ROOM];
};

static __thread struct stack *stacks __attribute__((tls_model("initial-exec")));
static pthread_key_t stacks_key;
static pthread_once_t stacks_once = PTHREAD_ONCE_INIT;
static bool has_key;

static void stacks_unmap(void *at)
{
    stacks = NULL;
    munmap(at, sizeof(struct stack[RP_NVTX_NAMES_COUNT]));
}

static void key_make(void)
{
    has_key = !pthread_key_create(&stacks_key, stacks_unmap);
}

/* This thread's stack, or NULL. */
static struct stack *stack_of(enum rp_nvtx_names names)
{
    void *at;

    if (!stacks) {
        pthread_once(&stacks_once, key_make);
        at = has_key ? mmap(NULL, sizeof(struct stack[RP_NVTX_NAMES_COUNT]), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                     : MAP_FAILED;
        if (at == MAP_FAILED)
            return NULL;
        pthread_setspecific(stacks_key, at);
        stacks = at;
    }
    return &stacks[names];
}

static uint16_t room_put(struct stack *s, struct rp_nvtx_text t)
{
    uint16_t at = s->n ? s->n : 1; /* 0 is none */

    if (!t.at || t.n + 1 > (size_t)(ROOM - at))
        return 0;
    memcpy(s->room + at, t.at, t.n);
    s->room[at + t.n] = '\0';
    s->n = (uint16_t)(at + t.n + 1);
    return at;
}

/* Makes a name without the parts that differ from call to call. */
static const char *plain_name(const struct rp_nvtx_name *name, char *room, size_t size)
{
    snprintf(room, size, "%.*s", (int)(name->name.n < size ? name->name.n : size - 1),
             name->name.at);
    return room;
}

static bool is_light(const struct rp_capture *cap)
{
    static _Atomic int known; /* 1: operators are recorded, 2: they are not */
    const char *which;

    if (!atomic_load_explicit(&known, memory_order_relaxed)) {
        which = cap->option("frameworks.operators");
        atomic_store(&known, which && !strcmp(which, "none") ? 2 : 1);
    }
    return atomic_load_explicit(&known, memory_order_relaxed) == 2;
}

const char *rp_nvtx_operator_begin(const struct rp_capture *cap, enum rp_nvtx_names names,
                                   const char *text, char *room, size_t size)
{
    struct stack *s = stack_of(names);
    struct rp_nvtx_name name = {0};
    struct open_operator *open;
    uint32_t level = s ? s->depth++ : DEPTH;
    bool known = text && (names == RP_NVTX_NAMES_XLA ? rp_nvtx_name_of_xla(text, &name)
                                                     : rp_nvtx_name_of_torch(text, &name));

    if (level < DEPTH) {
        s->is_operator &= ~(UINT64_C(1) << level);
        s->used[level] = s->n;
    }
    if (!known)
        return text ? text : "";
    if (!name.is_operator || level >= DEPTH) {
        plain_name(&name, room, size);
        if (names == RP_NVTX_NAMES_XLA && !name.is_operator) /* the previous one has ended */
            cap->step_end(RP_CAPTURE_EXECUTION, room);
        return room;
    }
    open = &s->open[level];
    *open = (struct open_operator){.name = room_put(s, name.name), .sequence = name.sequence};
    if (!open->name)
        return plain_name(&name, room, size);
    open->sizes = room_put(s, name.sizes);
    open->path = room_put(s, name.path);
    open->begin = cap->ready() && cap->detail() && !is_light(cap) ? cap->now() : 0;
    s->is_operator |= UINT64_C(1) << level;
    return NULL;
}

static void operator_write(const struct rp_capture *cap, const struct stack *s,
                           const struct open_operator *open, enum rp_nvtx_names names)
{
    struct rp_capture_arg args[3];
    uint32_t n = 0;

    if (open->sequence >= 0)
        args[n++] = (struct rp_capture_arg){
            .key = "Sequence number", .type = RP_CTF_ARG_INT, .number = open->sequence};
    if (open->sizes)
        args[n++] = (struct rp_capture_arg){
            .key = "Input Dims", .type = RP_CTF_ARG_TEXT, .text = s->room + open->sizes};
    if (open->path)
        args[n++] = (struct rp_capture_arg){
            .key = "tf_op", .type = RP_CTF_ARG_TEXT, .text = s->room + open->path};
    cap->span(
        &(struct rp_capture_span){.kind = RP_CTF_KIND_OPERATOR,
                                  .timebase = RP_CTF_TIME_TICKS,
                                  .begin = open->begin,
                                  .end = cap->now(),
                                  .name = s->room + open->name,
                                  .category = names == RP_NVTX_NAMES_XLA ? "hlo_op" : "cpu_op",
                                  .device = RP_CTF_SPAN_DEVICE,
                                  .args = args,
                                  .nargs = n});
}

bool rp_nvtx_operator_end(const struct rp_capture *cap, enum rp_nvtx_names names)
{
    struct stack *s = stacks ? &stacks[names] : NULL;
    uint32_t level;
    bool is_operator;

    if (!s || !s->depth)
        return false;
    level = --s->depth;
    if (level >= DEPTH)
        return false;
    is_operator = s->is_operator >> level & 1;
    if (is_operator && s->open[level].begin)
        operator_write(cap, s, &s->open[level], names);
    s->n = s->used[level];
    return is_operator;
}
