/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `critpath`: the chain of events that takes the time of a recording. With --overlay the traces are
 * read a second time, once the paths are known, and written with the paths drawn over them.
 */
#include "dataset/question.h"
#include "dataset/ranks.h"
#include "explain/critpath/critpath.h"
#include "formats/write/list.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static enum rp_code rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                         const struct rp_settings *settings, struct rp_rank_part *part,
                         struct rp_err *err)
{
    (void)settings;
    return rp_critpath_rank(loaded->trace, scope, &part->arena, part->data, err);
}

static void release(void *data)
{
    rp_critpath_part_release(data);
}

static enum rp_code join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                         struct rp_result *result, struct rp_err *err)
{
    struct rp_critpath_input *in =
        RP_ARENA_NEW(&result->arena, struct rp_critpath_input, ranks->n + 1);
    int64_t limit = rp_settings_int(settings, "limit");
    struct rp_critpath_run run = {0};
    enum rp_code code;
    size_t i;

    if (!in)
        return rp_err_nomem(err, "joining ranks");
    for (i = 0; i < ranks->n; i++)
        in[i] = (struct rp_critpath_input){ranks->parts[i].data, ranks->parts[i].path,
                                           ranks->parts[i].number, ranks->parts[i].source};
    code = rp_critpath_join(in, ranks->n, limit > 0 ? (size_t)limit : SIZE_MAX, &result->arena,
                            &run, result->root, err);
    rp_critpath_run_release(&run);
    return code;
}

static const struct rp_rank_row row = {
    .part_bytes = sizeof(struct rp_critpath_part), .rank = rank, .release = release, .join = join};

/* ------------------------------------------------------------------ the overlay */

struct drawing {
    const struct rp_critpath_root *root;
    const char **paths; /* of the outputs, by rank of the root */
};

/* The lists of an overlay as it is made. */
struct strokes {
    RP_VEC(struct rp_overlay_span) spans;
    RP_VEC(struct rp_overlay_arrow) arrows;
};

static enum rp_code draw_arrow(struct strokes *s, const struct rp_critpath_segment *from,
                               const struct rp_critpath_segment *to, struct rp_err *err)
{
    /* A viewer binds an arrow to the span around its end: the last nanosecond is inside. */
    struct rp_overlay_arrow arrow = {rp_ns_sum(from->start_ns, from->dur_ns - 1), to->start_ns,
                                     from->track, to->track};

    return from->track == to->track ? RP_OK : rp_vec_push(&s->arrows, arrow, err);
}

/* A row of spans: the segments of one rank, their times moved to its clock. */
static enum rp_code draw_row(struct strokes *s, const struct rp_critpath_path *path, int64_t rank,
                             int64_t offset_ns, uint32_t row_number, struct rp_err *err)
{
    const struct rp_critpath_segment *before = NULL;
    size_t i;

    for (i = 0; i < path->nsegments; i++) {
        const struct rp_critpath_segment *x = &path->segments[i];
        struct rp_overlay_span span = {.ts_ns = rp_ns_between(offset_ns, x->start_ns),
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
        if (before)
            RP_TRY(draw_arrow(s, before, x, err));
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
    enum rp_code code = draw_row(&s, path, path->rank, 0, 0, err);

    if (code == RP_OK && root->run.joined)
        code = draw_row(&s, &root->run, path->rank, root->run.shares[r].offset_ns, 1, err);
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

static enum rp_code draw(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    const struct drawing *d = user;
    size_t r;

    for (r = 0; r < d->root->nranks; r++)
        if (d->root->ranks[r].source == loaded->index &&
            rp_is_same_file(loaded->source->path, d->paths[r]))
            return rp_err_set(err, RP_USAGE, "'%s' is input and output", d->paths[r]);
        else if (d->root->ranks[r].source == loaded->index)
            return write_overlay(d->root, r, loaded->trace, d->paths[r], err);
    return RP_OK; /* a rank that was not asked for */
}

static bool ends_in(const char *text, const char *ending)
{
    size_t n = strlen(text), m = strlen(ending);

    return n > m && !strcmp(text + n - m, ending);
}

/* One rank is a file; several are a folder with a file each. */
static enum rp_code name_outputs(const struct rp_critpath_root *root, const char *to,
                                 const char **paths, struct rp_arena *arena, struct rp_err *err)
{
    bool file = ends_in(to, ".json") || ends_in(to, ".json.gz");
    size_t r;

    if (root->nranks == 1 && !file)
        return rp_err_set(err, RP_USAGE, "'%s' should end in .json or .json.gz", to);
    if (root->nranks > 1 && file)
        return rp_err_set(err, RP_USAGE,
                          "'%s' is the name of a file, but %zu ranks need a folder: give a name "
                          "without the ending, or one rank with --rank",
                          to, root->nranks);
    if (root->nranks > 1 && mkdir(to, 0777) && errno != EEXIST)
        return rp_err_set_os(err, errno, "cannot make the folder '%s' for %zu ranks", to,
                             root->nranks);
    for (r = 0; r < root->nranks; r++) {
        paths[r] = root->nranks == 1 ? rp_arena_strdup(arena, to)
                                     : rp_arena_printf(arena, "%s/rank%lld.json.gz", to,
                                                       (long long)root->ranks[r].rank);
        if (!paths[r])
            return rp_err_nomem(err, "naming the overlays");
    }
    return RP_OK;
}

static enum rp_code draw_all(struct rp_ctx *ctx, const struct rp_dataset *dataset, const char *to,
                             struct rp_result *result, struct rp_err *err)
{
    struct rp_critpath_root *root = result->root;
    struct drawing d = {root, RP_ARENA_NEW(&result->arena, const char *, root->nranks + 1)};

    if (!d.paths)
        return rp_err_nomem(err, "naming the overlays");
    RP_TRY(name_outputs(root, to, d.paths, &result->arena, err));
    RP_TRY(rp_each_trace(ctx, dataset, draw, &d, err));
    root->written = d.paths;
    root->nwritten = root->nranks;
    return RP_OK;
}

/* ------------------------------------------------------------------ the question */

static enum rp_code run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err)
{
    const char *overlay = rp_settings_text(settings, "overlay");

    RP_TRY(rp_ask_ranks(ctx, dataset, settings, &row, result, err));
    return overlay ? draw_all(ctx, dataset, overlay, result, err) : RP_OK;
}

static const struct rp_option options[] = {
    {"limit", 'n', RP_OPT_COUNT, "N", "10",
     "show the N names with most time on the path; 0: all (JSON and CSV always have all)", 0},
    {"overlay", 0, RP_OPT_PATH, "FILE", NULL,
     "write the trace with the path drawn over it, for a viewer; of several ranks a folder", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_critpath = {
    .question = {.name = "critpath",
                 .group = "traces",
                 .summary = "the chain of events that takes the time",
                 .details =
                     "Builds a graph of what ran and what it waited for: threads, launches, "
                     "streams, events, synchronisations, collectives of all ranks. The path goes "
                     "back from the last end, from each event to what it had to wait for, and "
                     "covers the recording without holes; every segment is a part of an event or a "
                     "wait with its cause. Also what a name could bring if it took no time, and "
                     "how much room there is for what is not on the path.",
                 .examples = "reprise critpath trace.json.gz\twhat to make faster\n"
                             "reprise critpath run/\tacross the ranks of a run\n"
                             "reprise critpath --csv trace.json.gz\tevery segment\n"
                             "reprise critpath --overlay path.json.gz trace.json.gz\tto look at in "
                             "a viewer\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = options,
                 .type = &rp_critpath_type},
    .run = run};
