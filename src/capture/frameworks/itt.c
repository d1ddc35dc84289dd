/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frameworks library records tasks of ITT, which PyTorch makes for its operators if it has no
 * NVTX (builds for the CPU), as do oneDNN and OpenVINO for theirs. PyTorch makes them only when
 * asked to: python/sitecustomize.py asks.
 *
 * A text is a handle that PyTorch requests in each call: a table gives the same one for the same
 * text, without a lock where it is known. Handles are never freed. A full table gives one common
 * handle, so that endless new names do not cost endless memory.
 */
#include "abi/itt.h"
#include "capture/core/core.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT  __attribute__((visibility("default")))
#define STRINGS 16384 /* a power of two */
#define DOMAINS 256
#define LANE    UINT32_C(0x49540000) /* distinct from lanes of other sources */
#define TORCH   "PyTorch"

/* The names of ITT are reserved for the implementation, so they are given to the linker only. */
#define ITT(name) __asm__("__itt_" name) EXPORT

const char *itt_api_version(void) ITT("api_version");
struct rp_itt_domain *itt_domain_create(const char *name) ITT("domain_create");
struct rp_itt_string *itt_string_handle_create(const char *text) ITT("string_handle_create");
void itt_task_begin(const struct rp_itt_domain *domain, struct rp_itt_id task,
                    struct rp_itt_id parent, struct rp_itt_string *name) ITT("task_begin");
void itt_task_end(const struct rp_itt_domain *domain) ITT("task_end");
void itt_thread_set_name(const char *name) ITT("thread_set_name");

static _Atomic(struct rp_itt_string *) strings[STRINGS];
static struct rp_itt_string other_string = {.text = "(more names)"};
static _Atomic uint32_t nstrings;
static struct rp_itt_domain domains[DOMAINS];
static uint32_t ndomains;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct rp_capture *capture(void)
{
    static _Atomic(const struct rp_capture *) cap;
    const struct rp_capture *is = atomic_load_explicit(&cap, memory_order_acquire);

    if (!is && (is = rp_capture_get()))
        atomic_store(&cap, is);
    return is;
}

const char *itt_api_version(void)
{
    return "reprise";
}

/* extra1 is the lane; 0 for PyTorch, whose tasks nest with other ranges of the thread. */
struct rp_itt_domain *itt_domain_create(const char *name)
{
    struct rp_itt_domain *d = NULL;

    name = name ? name : "";
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < ndomains && !d; i++) {
        if (!strcmp(domains[i].name, name))
            d = &domains[i];
    }
    if (!d && ndomains < DOMAINS && (name = strdup(name))) {
        d = &domains[ndomains];
        *d = (struct rp_itt_domain){.flags = 1, .name = name};
        d->extra1 = strcmp(name, TORCH) == 0 ? 0 : (int)(LANE + ndomains);
        ndomains++;
    }
    pthread_mutex_unlock(&lock);
    return d;
}

static uint64_t text_hash(const char *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h ^ h >> 29;
}

/* Whether a text names an operator, "aten::mm", "AddmmBackward0"; other names are ranges of the
   program. */
static bool is_operator(const char *text)
{
    size_t n = strlen(text);

    while (n && text[n - 1] >= '0' && text[n - 1] <= '9')
        n--;
    return strstr(text, "::") || (n >= 8 && !memcmp(text + n - 8, "Backward", 8));
}

static struct rp_itt_string *string_new(const char *text)
{
    struct rp_itt_string *s = malloc(sizeof *s);
    char *copy = strdup(text);

    if (!s || !copy) {
        free(s);
        free(copy);
        return NULL;
    }
    *s = (struct rp_itt_string){.text = copy, .extra1 = is_operator(copy)};
    return s;
}

struct rp_itt_string *itt_string_handle_create(const char *text)
{
    text = text ? text : "";
    uint64_t h = text_hash(text);
    for (size_t k = 0; k < STRINGS; k++) {
        _Atomic(struct rp_itt_string *) *at = &strings[(h + k) & (STRINGS - 1)];
        struct rp_itt_string *is = atomic_load_explicit(at, memory_order_acquire), *made;

        if (!is) {
            if (atomic_load(&nstrings) >= STRINGS / 2 || !(made = string_new(text)))
                return &other_string;
            if (atomic_compare_exchange_strong(at, &is, made)) {
                atomic_fetch_add(&nstrings, 1);
                return made;
            }
            free((char *)(uintptr_t)made->text);
            free(made);
        }
        if (!strcmp(is->text, text))
            return is;
    }
    return &other_string;
}

void itt_task_begin(const struct rp_itt_domain *domain, struct rp_itt_id task,
                    struct rp_itt_id parent, struct rp_itt_string *name)
{
    const struct rp_capture *cap = capture();
    bool op = domain && name && domain->extra1 == 0 && name->extra1;

    (void)task, (void)parent;
    if (cap && domain)
        cap->enter(
            &(struct rp_capture_enter){.kind = op ? RP_CTF_KIND_OPERATOR : RP_CTF_KIND_ANNOTATION,
                                       .lane = (uint32_t)domain->extra1,
                                       .name = name ? name->text : "(no name)",
                                       .category = op ? "cpu_op" : "itt"});
}

void itt_task_end(const struct rp_itt_domain *domain)
{
    const struct rp_capture *cap = capture();

    if (cap && domain)
        cap->leave((uint32_t)domain->extra1, 0);
}

void itt_thread_set_name(const char *name)
{
    const struct rp_capture *cap = capture();

    if (cap && name)
        cap->thread_name(0, name);
}
