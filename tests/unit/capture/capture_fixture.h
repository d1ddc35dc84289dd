/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_CAPTURE_FIXTURE_H
#define RP_TESTS_CAPTURE_FIXTURE_H
/*
 * A recording made by a child process with the real core, and read by the real reader. The parent
 * never uses the core, so that each child starts like a new process.
 */
#include "unit.h"

#include "capture/core/core.h"
#include "formats/formats.h"
#include "trace/trace.h"

#include <fcntl.h>
#include <glob.h>
#include <reprise/recording.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct recorded {
    char folder[64];
    int status; /* as waitpid gives it */
    struct rp_import import;
    struct rp_recording scan;
};

typedef void record_fn(const struct rp_capture *cap);

static inline void recorded_begin(struct recorded *r)
{
    *r = (struct recorded){.folder = "/tmp/reprise-capture-XXXXXX"};
    assert_non_null(mkdtemp(r->folder));
}

/* The child: runs fn while recording; closes the recording if `close_it` is set. */
static inline pid_t recorded_start(struct recorded *r, const char *options, record_fn *fn,
                                   bool close_it)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);

        dup2(null, STDERR_FILENO);
        setenv("REPRISE_RECORD", r->folder, 1);
        setenv("REPRISE_RECORD_OPTIONS", options, 1);
        fn(rp_capture_own());
        if (close_it)
            rp_capture_close();
        _exit(7);
    }
    return pid;
}

static inline void recorded_read(struct recorded *r)
{
    struct rp_err err = RP_ERR_INIT;
    char pattern[128];
    struct rp_input *in;
    glob_t found;

    r->scan.struct_size = sizeof r->scan;
    assert_ok(rp_recording_scan(r->folder, &r->scan, &err), &err);
    snprintf(pattern, sizeof pattern, "%s/*/metadata", r->folder);
    if (glob(pattern, 0, NULL, &found) == 0) {
        assert_int_equal(found.gl_pathc, 1);
        assert_ok(rp_input_open(found.gl_pathv[0], NULL, &in, &err), &err);
        assert_ok(rp_format_read(in, NULL, &r->import, &err), &err);
        assert_ok(rp_trace_validate(r->import.trace, &err), &err);
    }
    globfree(&found);
}

static inline void recorded_run(struct recorded *r, const char *options, record_fn *fn)
{
    recorded_begin(r);
    assert_int_equal(waitpid(recorded_start(r, options, fn, true), &r->status, 0) > 0, 1);
    assert_true(WIFEXITED(r->status) && WEXITSTATUS(r->status) == 7);
    recorded_read(r);
}

static inline void recorded_end(struct recorded *r)
{
    char command[128];

    rp_import_release(&r->import);
    snprintf(command, sizeof command, "rm -rf '%s'", r->folder);
    assert_int_equal(system(command), 0);
}

/* The number of files with packets. */
static inline size_t recorded_files(const struct recorded *r)
{
    char pattern[128];
    glob_t found;
    size_t n;

    snprintf(pattern, sizeof pattern, "%s/*/s_*", r->folder);
    n = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    globfree(&found);
    return n;
}

/* The number of events of that name and kind. */
static inline int64_t recorded_count(const struct recorded *r, const char *name, enum rp_kind kind)
{
    const struct rp_trace *t = r->import.trace;
    int64_t n = 0;

    for (rp_event e = 0; t && e < t->ev.n; e++)
        n += t->ev.kind[e] == kind && !strcmp(rp_trace_str(t, t->ev.name[e]), name);
    return n;
}

/* The first event of that name. */
static inline rp_event recorded_find(const struct recorded *r, const char *name)
{
    const struct rp_trace *t = r->import.trace;

    for (rp_event e = 0; e < t->ev.n; e++)
        if (!strcmp(rp_trace_str(t, t->ev.name[e]), name))
            return e;
    fail_msg("no event '%s'", name);
    return 0;
}

#endif
