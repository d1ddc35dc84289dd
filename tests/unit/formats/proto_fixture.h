/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_PROTO_FIXTURE_H
#define RP_TESTS_PROTO_FIXTURE_H
/* Messages of traces built field by field, and real files where they are at hand. */
#include "chrome_fixture.h"

#include "io/proto_write.h"

#include <stdlib.h>
#include <unistd.h>

/* What was written, loaded as "t.json", which no reader of messages goes by. The writer is
   released. */
static inline enum rp_code load_written(struct rp_proto_writer *w,
                                        const struct rp_read_options *options,
                                        struct rp_import *import, struct rp_err *err)
{
    struct rp_bytes bytes;
    enum rp_code code;

    *import = (struct rp_import)RP_IMPORT_INIT;
    assert_ok(rp_proto_written(w, &bytes, err), err);
    code = load_bytes(bytes.at, bytes.n, options, import, err);
    rp_proto_writer_release(w);
    return code;
}

static inline struct rp_import load_message(struct rp_proto_writer *w)
{
    struct rp_import import;
    struct rp_err err = RP_ERR_INIT;

    assert_ok(load_written(w, NULL, &import, &err), &err);
    assert_non_null(import.trace);
    assert_ok(rp_trace_validate(import.trace, &err), &err);
    return import;
}

/* A real file below the folder of data, or a skipped test. */
static inline struct rp_import load_data(const char *file)
{
    static const char *const folders[] = {"../shared/data", "../../shared/data",
                                          "../../../shared/data", NULL};
    const char *data = getenv("REPRISE_DATA");
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_input *in;
    char path[600] = "";

    if (data)
        snprintf(path, sizeof path, "%s/%s", data, file);
    for (size_t i = 0; !data && folders[i]; i++) {
        snprintf(path, sizeof path, "%s/%s", folders[i], file);
        if (access(path, R_OK) == 0)
            break;
    }
    if (access(path, R_OK) != 0) {
        print_message("skipped: no '%s' in $REPRISE_DATA or ../shared/data\n", file);
        skip();
    }
    assert_ok(rp_input_open(path, NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, &import, &err), &err);
    assert_ok(rp_trace_validate(import.trace, &err), &err);
    return import;
}

/* The track whose thread has that name. */
static inline const struct rp_track_info *track_of(const struct rp_trace *t, const char *name)
{
    for (uint32_t i = 0; i < t->ntracks; i++)
        if (strcmp(rp_trace_str(t, t->tracks[i].name), name) == 0)
            return &t->tracks[i];
    fail_msg("no track '%s'", name);
    return NULL;
}

/* Events of a track that are not names, and the sum of their durations. */
static inline uint32_t count_track(const struct rp_trace *t, const struct rp_track_info *track,
                                   int64_t *sum_ns)
{
    uint32_t n = 0;

    *sum_ns = 0;
    for (rp_event e = track->first; e < track->end; e++) {
        n += t->ev.kind[e] != RP_KIND_METADATA;
        *sum_ns += t->ev.dur_ns[e] > 0 ? t->ev.dur_ns[e] : 0;
    }
    return n;
}

#endif
