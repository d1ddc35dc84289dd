/* SPDX-License-Identifier: Apache-2.0 */
/* Draws critical paths as rows of spans and arrows over a trace, for a viewer. */
#include "base/text.h"
#include "explain/critpath/critpath.h"

#include "dataset/load.h"
#include "formats/write/list.h"

#include <errno.h>
#include <sys/stat.h>

struct drawing {
    const struct rp_critpath_root *root;
    const char **paths; /* paths of the outputs, by rank of the root */
};

/* strokes: the lists of an overlay while it is made. */
struct strokes {
    RP_VEC(struct rp_overlay_span) spans;
    RP_VEC(struct rp_overlay_arrow) arrows;
};

/* Draws a row of spans: the segments of one rank, with their times moved to its clock. */
static enum rp_code draw_row(struct strokes *s, const struct rp_critpath_path *path, int64_t rank,
                             const struct rp_clock *clock, uint32_t row_number, struct rp_err *err)
{
    const struct rp_critpath_segment *before = NULL;

    for (size_t i = 0; i < path->nsegments; i++) {
        const struct rp_critpath_segment *x = &path->segments[i];
        struct rp_overlay_span span = {.ts_ns = clock ? rp_clock_own_time(clock, x->start_ns)
                                                      : x->start_ns,
                                       .dur_ns = x->dur_ns,
                                       .name = x->name ? x->name : x->cause,
                                       .kind = x->kind,
                                       .row = row_number};

        if (x->rank != rank) {
            before = NULL;
            continue;
        }
        RP_TRY(rp_vec_push(&s->spans, span, err));
        if (x->track == RP_NONE || row_number)
            continue;
        if (before) {
            /* A viewer binds an arrow to the span around its end, so it ends in the last nanosecond
               of the span. */
            struct rp_overlay_arrow arrow = {rp_ns_sum(before->start_ns, before->dur_ns - 1),
                                             x->start_ns, before->track, x->track};

            if (before->track != x->track)
                RP_TRY(rp_vec_push(&s->arrows, arrow, err));
        }
        before = x;
    }
    return RP_OK;
}

static enum rp_code write_overlay(const struct rp_critpath_root *root, size_t r,
                                  const struct rp_trace *trace, const char *to, struct rp_err *err)
{
    static const char *const rows[] = {"this rank", "the run"};
    const struct rp_critpath_path *path = &root->ranks[r];
    struct rp_write_overlay overlay = {
        .title = "critical path", .rows = rows, .nrows = root->run.joined ? 2 : 1};
    struct rp_write_options options = {.overlay = &overlay};
    struct strokes s = {0};
    enum rp_code code = draw_row(&s, path, path->rank, NULL, 0, err);

    if (code == RP_OK && root->run.joined)
        code = draw_row(&s, &root->run, path->rank, &root->run.shares[r].clock, 1, err);
    overlay.spans = s.spans.at;
    overlay.nspans = s.spans.n;
    overlay.arrows = s.arrows.at;
    overlay.narrows = s.arrows.n;
    if (code == RP_OK)
        code = rp_writer_json.write(trace, to, &options, err);
    rp_vec_release(&s.spans);
    rp_vec_release(&s.arrows);
    return code;
}

static enum rp_code overlay_trace(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    const struct drawing *d = user;

    for (size_t r = 0; r < d->root->nranks; r++)
        if (d->root->ranks[r].source == loaded->index &&
            d->root->ranks[r].in_source == loaded->part &&
            rp_is_same_file(loaded->source->path, d->paths[r]))
            return rp_err_set(err, RP_USAGE, "'%s' is both input and output", d->paths[r]);
        else if (d->root->ranks[r].source == loaded->index &&
                 d->root->ranks[r].in_source == loaded->part)
            return write_overlay(d->root, r, loaded->trace, d->paths[r], err);
    return RP_OK; /* the rank was not selected */
}

enum rp_code rp_critpath_write_overlays(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                        const char *to, struct rp_arena *arena,
                                        struct rp_critpath_root *root, struct rp_err *err)
{
    struct drawing d = {root, RP_ARENA_NEW(arena, const char *, root->nranks + 1)};

    RP_TRY(rp_err_need(d.paths, err, "naming the overlays"));

    /* Name the outputs: one rank is a file; several are a folder with a file each. */
    bool file = rp_text_ends(to, ".json") || rp_text_ends(to, ".json.gz");
    if (root->nranks == 1 && !file)
        return rp_err_set(err, RP_USAGE, "'%s' should end in .json or .json.gz", to);
    if (root->nranks > 1 && file)
        return rp_err_set(err, RP_USAGE,
                          "'%s' is a file name, but %zu ranks need a folder: give a name without "
                          "the ending, or select one rank with --rank",
                          to, root->nranks);
    if (root->nranks > 1 && mkdir(to, 0777) && errno != EEXIST)
        return rp_err_set_os(err, errno, "cannot make the folder '%s' for %zu ranks", to,
                             root->nranks);
    for (size_t r = 0; r < root->nranks; r++) {
        d.paths[r] = root->nranks == 1 ? rp_arena_text(arena, to)
                                       : rp_arena_textf(arena, "%s/rank%lld.json.gz", to,
                                                        (long long)root->ranks[r].rank);
    }
    RP_TRY(rp_arena_check(arena, "naming the overlays", err));

    RP_TRY(rp_each_rank(ctx, dataset, overlay_trace, &d, err));
    root->written = d.paths;
    root->nwritten = root->nranks;
    return RP_OK;
}
