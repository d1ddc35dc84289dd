/* SPDX-License-Identifier: Apache-2.0 */
/* What python/sitecustomize.py calls in the recorder, through ctypes. */
#include "capture/core/core.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))
#define FACTS  32

EXPORT void reprise_frameworks_fact(const char *key, const char *value);
EXPORT void reprise_frameworks_note(const char *key, const char *value);
EXPORT void reprise_frameworks_error(const char *text);
EXPORT int reprise_frameworks_ready(void);
EXPORT const char *reprise_frameworks_folder(void);
EXPORT void reprise_frameworks_tell(void);
EXPORT void reprise_frameworks_gap(int begins);
EXPORT void reprise_frameworks_rest(void);
EXPORT void reprise_frameworks_resume(void);

/* -------------------------------------------------------------------------- facts */

static struct {
    char key[64], value[256];
    bool told;
} facts[FACTS];
static uint32_t nfacts, told_by; /* told_by: the process that reported them */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Facts wait for an event, because a launcher that imports a framework records nothing by
   itself. */
static void tell_facts(void)
{
    const struct rp_capture *cap = rp_capture_get();

    if (!cap || !cap->active() || !cap->folder())
        return;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < nfacts; i++) {
        if (facts[i].told && told_by == cap->process_id())
            continue;
        cap->fact(facts[i].key, facts[i].value);
        facts[i].told = true;
    }
    told_by = cap->process_id();
    pthread_mutex_unlock(&lock);
}

void reprise_frameworks_fact(const char *key, const char *value)
{
    static bool is_source;
    const struct rp_capture *cap = rp_capture_get();

    if (!cap)
        return;
    pthread_mutex_lock(&lock);
    if (nfacts < FACTS) {
        snprintf(facts[nfacts].key, sizeof facts[0].key, "%s", key);
        snprintf(facts[nfacts].value, sizeof facts[0].value, "%s", value);
        nfacts++;
    }
    if (!is_source)
        is_source = cap->source("frameworks", tell_facts, tell_facts);
    pthread_mutex_unlock(&lock);
}

/* A fact of a process that records already, of any length. */
void reprise_frameworks_note(const char *key, const char *value)
{
    const struct rp_capture *cap = rp_capture_get();

    if (cap)
        cap->fact(key, value);
}

/* Why the program ended. */
void reprise_frameworks_error(const char *text)
{
    const struct rp_capture *cap = rp_capture_get();

    if (cap)
        cap->fact("error", text);
}

/* -------------------------------------------------------------------------- recording */

int reprise_frameworks_ready(void)
{
    const struct rp_capture *cap = rp_capture_get();

    return cap && cap->ready();
}

/* The folder for files of this rank. A mark makes sure that it exists; NULL if nothing is
   recorded. */
const char *reprise_frameworks_folder(void)
{
    const struct rp_capture *cap = rp_capture_get();

    if (cap && !cap->folder())
        cap->mark("profile of a framework");
    return cap ? cap->folder() : NULL;
}

/* The child of a fork reports again what its parent has reported, if it is a rank of its own. */
void reprise_frameworks_tell(void)
{
    if (reprise_frameworks_folder())
        tell_facts();
}

/* Marks begin and end of a time whose operators are missing. */
void reprise_frameworks_gap(int begins)
{
    static uint64_t gaps = UINT64_C(1) << 32; /* ids other than those of gaps between steps */
    const struct rp_capture *cap = rp_capture_get();

    if (cap && begins)
        cap->async_begin("without detail", "reprise", ++gaps);
    else if (cap)
        cap->async_end("without detail", "reprise", gaps);
}

/* -------------------------------------------------------------------------- forks */

static int resume(void *unused)
{
    const struct rp_capture *cap = rp_capture_get();

    (void)unused;
    if (cap)
        cap->rest(false);
    return 0;
}

/* Called around a fork of Python, which counts threads. */
void reprise_frameworks_rest(void)
{
    const struct rp_capture *cap = rp_capture_get();

    if (cap)
        cap->rest(true);
}

/* Some versions of Python count threads after they have called this: Python's main thread resumes
   when it is back in the interpreter. No effect if nothing rests. */
void reprise_frameworks_resume(void)
{
    int (*add)(int (*call)(void *), void *) = NULL;

    *(void **)&add = dlsym(RTLD_DEFAULT, "Py_AddPendingCall");
    if (!add || add(resume, NULL))
        resume(NULL);
}
