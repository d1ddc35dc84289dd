/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The injected libraries and the environment variables that load them. They are searched in
 * $REPRISE_CAPTURE_DIR, in capture/ beside the program (a build), and in the library folder of the
 * installation prefix.
 */
#include "cli/record.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef RP_LIBDIR
#define RP_LIBDIR "lib"
#endif

/* How the variable names the library: as one path, or in a colon-separated list that may have
   entries. For BY_FOLDER there is no library: the framework itself writes into the folder that the
   variable names. */
enum way { BY_PRELOAD, BY_PATH, BY_LIST, BY_FOLDER };

static const struct source {
    const char *name, *variable;
    enum way way;
    bool always, by_default;
    bool preload_too; /* it also intercepts calls of the program */
    bool has_python;  /* it has modules that Python imports at its start */
    const char *also; /* other variables that it needs, set unless they are: "A=1 B=2" */
} sources[] = {
    {"host", "LD_PRELOAD", BY_PRELOAD, true, true, false, false, NULL},
    {"cuda", "CUDA_INJECTION64_PATH", BY_PATH, false, true, true, false, NULL},
    {"nvtx", "NVTX_INJECTION64_PATH", BY_PATH, false, true, false, false, NULL},
    {"nccl", "NCCL_PROFILER_PLUGIN", BY_PATH, false, true, false, false, NULL},
    {"opencl", "OPENCL_LAYERS", BY_LIST, false, true, true, false, NULL},
    {"mpi", "LD_PRELOAD", BY_PRELOAD, false, true, false, false, NULL},
    {"gloo", "LD_PRELOAD", BY_PRELOAD, false, true, false, false, NULL},
    {"frameworks", "INTEL_LIBITTNOTIFY64", BY_PATH, false, true, false, true, NULL},
    {"sycl", "XPTI_SUBSCRIBERS", BY_PATH, false, true, false, false,
     "XPTI_TRACE_ENABLE=1 XPTI_FRAMEWORK_DISPATCHER=libxptifw.so UR_ENABLE_LAYERS=UR_LAYER_TRACING"},
    {"hip", "HSA_TOOLS_LIB", BY_PATH, false, true, true, false, NULL},
    {"blocking", "LD_PRELOAD", BY_PRELOAD, false, false, false, false, NULL},
    {"malloc", "LD_PRELOAD", BY_PRELOAD, false, false, false, false, NULL},
    {"sample", "LD_PRELOAD", BY_PRELOAD, false, false, false, false, NULL},
    {"compile", "TORCH_TRACE", BY_FOLDER, false, false, false, false, NULL},
};

#define NSOURCES (sizeof sources / sizeof sources[0])

/* The keys of `--set`. A key begins with the name of its source, which reads it from the
   environment (`option` of capture/core/core.h). */
static const struct rp_option keys[] = {
    {"set blocking.min_ns", 0, RP_OPT_INT, "N", "1000", NULL, 0},
    {"set compile.limit", 0, RP_OPT_BYTES, "SIZE", "256MiB", NULL, 0},
    {"set cuda.calls", 0, RP_OPT_CHOICE, "usual|launches|records|all|none", "usual", NULL, 0},
    {"set cuda.detach", 0, RP_OPT_CHOICE, "on|off", "on", NULL, 0},
    {"set cuda.graph", 0, RP_OPT_CHOICE, "node|graph", "node", NULL, 0},
    {"set cuda.state", 0, RP_OPT_CHOICE, "on|off", "on", NULL, 0},
    {"set cuda.sync", 0, RP_OPT_CHOICE, "on|off", "on", NULL, 0},
    {"set frameworks.memory", 0, RP_OPT_CHOICE, "on|off", "off", NULL, 0},
    {"set frameworks.min_ns", 0, RP_OPT_INT, "N", "10000", NULL, 0},
    {"set frameworks.operators", 0, RP_OPT_CHOICE, "launching|all|none", "launching", NULL, 0},
    {"set frameworks.shapes", 0, RP_OPT_CHOICE, "on|off", "off", NULL, 0},
    {"set frameworks.torch", 0, RP_OPT_CHOICE, "callbacks|itt|nvtx", "callbacks", NULL, 0},
    {"set frameworks.window", 0, RP_OPT_INT, "1..86400", "5", NULL, 0},
    {"set hip.calls", 0, RP_OPT_CHOICE, "usual|all|none", "usual", NULL, 0},
    {"set host.processors", 0, RP_OPT_CHOICE, "on|off", "on", NULL, 0},
    {"set nccl.channels", 0, RP_OPT_CHOICE, "on|off", "off", NULL, 0},
    {"set sample.clock", 0, RP_OPT_CHOICE, "both|cpu|wall", "both", NULL, 0},
    {"set sample.hz", 0, RP_OPT_INT, "1..10000", "100", NULL, 0},
    {"set sample.signals", 0, RP_OPT_CHOICE, "on|off", "on", NULL, 0},
};

#define NKEYS (sizeof keys / sizeof keys[0])

const char *record_word(const char *option, size_t i)
{
    if (!strcmp(option, "with"))
        return i < NSOURCES ? sources[i].name : NULL;
    if (!strcmp(option, "set"))
        return i < NKEYS ? keys[i].name + sizeof "set" : NULL;
    return NULL;
}

static bool has_host_library(const char *folder)
{
    char path[PATH_MAX + 64];

    return snprintf(path, sizeof path, "%s/reprise-host.so", folder) < (int)sizeof path &&
           !access(path, R_OK);
}

bool record_find_libraries(struct record *r)
{
    static const char *const places[] = {"capture", "../" RP_LIBDIR "/reprise", "../lib/reprise",
                                         "../lib64/reprise"};
    const char *named = getenv("REPRISE_CAPTURE_DIR");
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (named && *named && has_host_library(named))
        return realpath(named, r->libraries) != NULL;
    if (n <= 0)
        return false;
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[PATH_MAX + 64];

        if (snprintf(path, sizeof path, "%s/%s", self, places[i]) < (int)sizeof path &&
            has_host_library(path))
            return realpath(path, r->libraries) != NULL;
    }
    return false;
}

/* Whether a comma-separated list contains the name. */
static bool list_contains(const char *list, const char *name)
{
    size_t n = strlen(name);

    while (list && *list) {
        size_t len = strcspn(list += *list == '+', ",");

        if (len >= n && !memcmp(list, name, n) && (len == n || list[n] == '='))
            return true;
        list += len + (list[len] == ',');
    }
    return false;
}

static bool sources_known(const char *list, struct rp_err *err)
{
    while (list && *list) {
        size_t len = strcspn(list += *list == '+', ","), i = 0, n = len;

        if (!strncmp(list, "sample=", 7))
            n = 6; /* its rate is an option */
        while (i < NSOURCES &&
               (strlen(sources[i].name) != n || memcmp(sources[i].name, list, n) != 0))
            i++;
        if (i == NSOURCES) {
            snprintf(
                err->text, sizeof err->text,
                "unknown source '%.*s': choose from host, cuda, nvtx, nccl, opencl, mpi, gloo, frameworks, sycl, hip, blocking, malloc, sample, compile",
                (int)(len < 100 ? len : 100), list);
            return false;
        }
        list += len + (list[len] == ',');
    }
    return true;
}

bool record_key_check(const char *key, const char *value, struct rp_err *err)
{
    const char *names[NKEYS + 1] = {NULL};

    for (size_t i = 0; i < NKEYS; i++) {
        names[i] = strchr(keys[i].name, ' ') + 1;
        if (!strcmp(names[i], key))
            return rp_option_check(&keys[i], value, err) == RP_OK;
    }
    const char *near = rp_closest_word(key, names);
    snprintf(err->text, sizeof err->text, "unknown key '%s' of option '--set'%s%s%s", key,
             near ? "; did you mean '" : ": choose from ", near ? near : "", near ? "'?" : "");
    for (size_t i = 0; !near && i < NKEYS; i++)
        snprintf(err->text + strlen(err->text), sizeof err->text - strlen(err->text), "%s%s",
                 i ? ", " : "", names[i]);
    return false;
}

/* Adds the path to a colon-separated variable, in front or at the end. */
static void add_to_variable(const char *variable, const char *path, bool before)
{
    const char *old = getenv(variable);
    char joined[8192];

    if (old && *old &&
        snprintf(joined, sizeof joined, "%s:%s", before ? path : old, before ? old : path) <
            (int)sizeof joined)
        path = joined;
    setenv(variable, path, 1);
}

/* PyTorch reports its operators by NVTX if it can, so that library is loaded, too. */
static void python_enable(const struct record *r)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof path, "%s/python", r->libraries);
    add_to_variable("PYTHONPATH", path, true);
    snprintf(path, sizeof path, "%s/reprise-nvtx.so", r->libraries);
    setenv("NVTX_INJECTION64_PATH", path, 0);
}

/* Sets the source's variable to load its library. */
static void source_enable(struct record *r, const struct source *source, const char *path,
                          bool asked)
{
    const char *old = getenv(source->variable);

    if ((source->way == BY_PATH && old && *old && !asked) ||
        (source->way == BY_FOLDER && old && *old)) {
        if (!r->quiet)
            fprintf(stderr, "reprise: %s is already set: source '%s' is not used%s%s%s\n",
                    source->variable, source->name, source->way == BY_PATH ? " (--with " : "",
                    source->way == BY_PATH ? source->name : "",
                    source->way == BY_PATH ? " replaces it)" : "");
        return;
    }
    if (source->way == BY_PATH)
        setenv(source->variable, path, 1);
    else if (source->way != BY_FOLDER) /* which is not yet known */
        add_to_variable(source->variable, path, true);
    if (source->preload_too)
        add_to_variable("LD_PRELOAD", path, false);
    if (source->has_python)
        python_enable(r);
    if (source->also) {
        char text[256], *at = text, *word;

        snprintf(text, sizeof text, "%s", source->also);
        while ((word = strsep(&at, " "))) {
            char *equal = strchr(word, '=');
            if (equal) {
                *equal = '\0';
                setenv(word, equal + 1, 0);
            }
        }
    }
    snprintf(r->used + strlen(r->used), sizeof r->used - strlen(r->used), "%s%s",
             r->used[0] ? ", " : "", source->name);
}

bool record_key_has_source(const struct record *r, const char *key)
{
    size_t n = strcspn(key, ".");
    const char *at = r->used;

    while (*at && (strncmp(at, key, n) != 0 || (at[n] != ',' && at[n])))
        at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' ');
    return *at != '\0';
}

bool record_sources(struct record *r, const char *with, bool *usage, struct rp_err *err)
{
    bool adds =
        with && *with == '+'; /* adds them to the sources that are used without the option */

    if (!sources_known(with, err)) {
        *usage = true;
        return false;
    }
    if (!record_find_libraries(r)) {
        snprintf(err->text, sizeof err->text,
                 "cannot find the libraries of 'record': set REPRISE_CAPTURE_DIR to the folder of "
                 "reprise-host.so");
        return false;
    }
    if (strpbrk(r->libraries, " :")) {
        snprintf(
            err->text, sizeof err->text,
            "'%.800s' contains a space or a colon, which LD_PRELOAD does not allow: make a symbolic "
            "link to it elsewhere, and set REPRISE_CAPTURE_DIR",
            r->libraries);
        return false;
    }

    /* Programs built with GCC's address sanitizer refuse to start if any library is loaded before
       its own, unless this check is disabled. */
    const char *options = getenv("ASAN_OPTIONS");
    if (!options || !strstr(options, "verify_asan_link_order"))
        add_to_variable("ASAN_OPTIONS", "verify_asan_link_order=0", false);

    for (size_t i = 0; i < NSOURCES; i++) {
        const struct source *source = &sources[i];
        bool asked = list_contains(with, source->name);
        char path[PATH_MAX + 64];

        if (!asked && !source->always && ((with && !adds) || !source->by_default))
            continue;
        if (source->way == BY_FOLDER) {
            source_enable(r, source, "", asked);
            continue;
        }
        snprintf(path, sizeof path, "%s/reprise-%s.so", r->libraries, source->name);
        if (!access(path, R_OK)) {
            source_enable(r, source, path, asked);
        } else if (asked) {
            snprintf(err->text, sizeof err->text,
                     "source '%s' is not in this build: '%.800s' does not exist", source->name,
                     path);
            return false;
        }
    }
    return true;
}

/* -------------------------------------------------------------------------- size */

/* PyTorch writes its log without a limit, at an offset of its own. The part beyond the limit is
   returned to the file system while it writes, and the file is cut when it has ended: a reader
   loses the record at the cut. */
static void bound_file(int fd, off_t limit, bool ended)
{
    struct stat st;

    if (fstat(fd, &st) || st.st_size <= limit)
        return;
    if (ended)
        (void)!ftruncate(fd, limit);
    else
        (void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, limit, st.st_size - limit);
}

void record_sources_bound(const struct record *r, bool ended)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof path, "%s/torch_trace", r->folder);
    DIR *dir = r->log_limit ? opendir(path) : NULL;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        int fd = openat(dirfd(dir), entry->d_name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

        if (fd >= 0)
            bound_file(fd, (off_t)r->log_limit, ended);
        if (fd >= 0)
            close(fd);
    }
    if (dir)
        closedir(dir);
}

/* Returns the limit of the log of torch.compile; 0 if the recording has none. */
static int64_t log_limit(const struct record *r)
{
    static const char name[] = "set compile.limit";
    const char *given = strstr(r->options, name + 4);
    const struct rp_option *key = keys;
    char text[32];

    while (strcmp(key->name, name) != 0)
        key++;
    given += given ? sizeof name - 4 : 0; /* behind '=' */
    snprintf(text, sizeof text, "%.*s", given ? (int)strcspn(given, ";") : 31,
             given ? given : key->fallback);
    return rp_option_number(key, text);
}

void record_sources_folder(struct record *r)
{
    char path[PATH_MAX + 64];

    for (size_t i = 0; i < NSOURCES; i++)
        if (sources[i].way == BY_FOLDER && record_key_has_source(r, sources[i].name)) {
            snprintf(path, sizeof path, "%s/torch_trace", r->folder);
            setenv(sources[i].variable, path, 1);
            r->log_limit = log_limit(r);
        }
}
