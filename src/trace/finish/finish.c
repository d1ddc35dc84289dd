/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of passes, in the order in which they run. The first five see the events in the order
 * of the file, the others in canonical order; `freeze` empties the builder.
 */
#include "trace/finish/finish.h"

#include "trace/build/state.h"

#include <string.h>

static const struct {
    const char *name, *summary;
    enum rp_code (*run)(struct rp_builder *b, struct rp_err *err);
} passes[] = {
    {"args", "arguments become readable tables", rp_pass_args},
    {"ids", "correlation and async ids become dense numbers", rp_pass_ids},
    {"metadata", "names of processes and threads", rp_pass_metadata},
    {"counts", "health checks that need the order of the file", rp_pass_counts},
    {"pairs", "a begin and its end become one event", rp_pass_pairs},
    {"order", "events by track, start, longer first, order of the file", rp_pass_order},
    {"samples", "samples of stacks by track, time, order of the file", rp_pass_samples},
    {"tracks", "kinds of events and tracks, devices of processes", rp_pass_tracks},
    {"parents", "the span around each event of a thread", rp_pass_parents},
    {"flows", "the span at each end of an arrow", rp_pass_flows},
    {"links", "host calls and the device work that they started", rp_pass_links},
    {"input", "functions of the input, which run as a model does", rp_pass_input},
    {"names", "classes of names", rp_pass_names},
    {"steps", "steps, by the best evidence available", rp_pass_steps},
    {"health", "overlaps on streams, spans that do not nest", rp_pass_health},
    {"totals", "counts, durations and windows", rp_pass_totals},
    {"freeze", "columns become the trace", rp_pass_freeze},
};

static const size_t npasses = sizeof passes / sizeof passes[0];

static enum rp_code check_pass_name(const char *name, struct rp_err *err)
{
    for (size_t i = 0; name && i < npasses; i++)
        if (!strcmp(name, passes[i].name))
            return RP_OK;
    if (!name)
        return RP_OK;
    rp_err_set(err, RP_USAGE, "unknown pass '%s'; choose one of:", name);
    for (size_t i = 0; i < npasses; i++)
        rp_err_context(err, RP_USAGE, "%-9s %s", passes[i].name, passes[i].summary);
    return RP_USAGE;
}

enum rp_code rp_builder_finish_dump(struct rp_builder *b, const char *pass, struct rp_out *to,
                                    struct rp_trace **out, struct rp_err *err)
{
    enum rp_code code = check_pass_name(pass, err);

    *out = NULL;

    /* The columns share one count while they are filled; passes use the count of each. */
    b->ev.ts_ns.n = b->ev.dur_ns.n = b->ev.name.n = b->ev.track.n = b->ev.link.n = b->ev.arg_row.n =
        b->ev.n;
    b->ev.shape.n = b->ev.origin.n = b->ev.flags.n = b->ev.n;
    for (size_t i = 0; code == RP_OK && i < npasses; i++) {
        code = passes[i].run(b, err);
        if (code == RP_OK && pass && !strcmp(pass, passes[i].name))
            rp_build_dump(b, to);
    }
    if (code == RP_OK) {
        *out = b->trace;
        b->trace = NULL;
    }
    rp_builder_free(b);
    return code;
}
