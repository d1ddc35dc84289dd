/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements <reprise/metrics_calls.h>: metrics by names that are known only when the program runs.
 * Each thread keeps its names in a table of its own, so that a call takes no lock.
 */
#include "metrics/set.h"

#include "base/hash.h"
#include "io/output.h"

#include <pthread.h>
#include <reprise/metrics.h>
#include <reprise/metrics_calls.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACES 512 /* a power of two; names beyond it are looked up under the lock */

struct place {
    char *name;
    uint32_t kind;
    struct rp_metrics_here here;
};

static __thread struct place *places; /* PLACES of them */
static pthread_key_t places_key;
static pthread_once_t places_once = PTHREAD_ONCE_INIT;

static void places_free(void *arg)
{
    struct place *p = arg;

    for (size_t i = 0; i < PLACES; i++)
        free(p[i].name);
    free(p);
    places = NULL;
}

static void places_init(void)
{
    pthread_key_create(&places_key, places_free);
}

/* Returns the place of a name in this thread, or NULL if its table is full or memory ran out. */
static struct rp_metrics_here *place_of(const char *name, uint32_t kind)
{
    size_t i = (size_t)rp_hash_bytes(name, strlen(name)) + kind, tries;

    if (!places) {
        pthread_once(&places_once, places_init);
        places = calloc(PLACES, sizeof *places);
        if (!places)
            return NULL;
        pthread_setspecific(places_key, places);
    }
    for (tries = 0; tries < 8; tries++, i++) {
        struct place *p = &places[i % PLACES];

        if (!p->name) {
            p->name = strdup(name);
            p->kind = kind;
            return p->name ? &p->here : NULL;
        }
        if (p->kind == kind && !strcmp(p->name, name))
            return &p->here;
    }
    return NULL;
}

static void take_sample(const char *name, uint32_t kind, int64_t value)
{
    struct rp_metrics_here *here, none = {0};

    if (!name)
        return;
    uint64_t now = rp_metrics_ticks();
    here = place_of(name, kind);
    rp_metrics_sample(here ? here : &none, name, kind, value < 0 ? 0 : (uint64_t)value, now, now);
}

void rp_metrics_call_time(const char *name, int64_t ns)
{
    take_sample(name, RP_METRICS_NS, ns);
}

void rp_metrics_call_value(const char *name, int64_t value)
{
    take_sample(name, RP_METRICS_VALUES, value);
}

void rp_metrics_call_bytes(const char *name, int64_t bytes)
{
    take_sample(name, RP_METRICS_SIZES, bytes);
}

void rp_metrics_call_count(const char *name, int64_t n)
{
    struct rp_metrics_here *here, none = {0};

    if (!name)
        return;
    here = place_of(name, RP_METRICS_COUNTER);
    rp_metrics_add(here ? here : &none, name, (uint64_t)n);
}

static enum rp_code write_merged(const char *source, struct rp_out *out, struct rp_err *err)
{
    struct rp_metric_set all = {0};
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_paths paths = {0};
    enum rp_code code = rp_metric_find_sources(source, &arena, &paths, err);

    rp_arena_init(&all.arena);
    for (size_t i = 0; code == RP_OK && i < paths.n; i++) {
        struct rp_metric_set one;

        code = rp_metric_set_read(paths.at[i], &one, err);
        if (code == RP_OK)
            code = rp_metric_set_merge(&all, &one, err);
        rp_metric_set_release(&one);
    }
    rp_metric_set_sort(&all);
    if (code == RP_OK)
        rp_metric_write_report(&all, out);
    rp_metric_set_release(&all);
    rp_vec_release(&paths);
    rp_arena_release(&arena);
    return code;
}

char *rp_metrics_call_report(const char *source, struct rp_err *err)
{
    struct rp_out *out;
    char self[32], *text = NULL;
    size_t n;

    snprintf(self, sizeof self, "%d", (int)getpid());
    if (rp_out_open_memory(&out, err) != RP_OK)
        return NULL;
    if (write_merged(source ? source : self, out, err) == RP_OK)
        text = strdup(rp_out_borrow_memory(out, &n));
    rp_out_abandon(out);
    return text;
}

void rp_metrics_call_free(char *text)
{
    free(text);
}
