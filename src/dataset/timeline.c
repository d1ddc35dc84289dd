/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public view of traces. Events are columns inside and structs outside: a call fills a batch of
 * structs, so that the interface shows neither the layout of the columns nor needs one call per
 * value.
 */
#include "base/order.h"
#include "dataset/load.h"
#include "formats/formats.h"
#include "trace/run.h"
#include "trace/words.h"

#include <pthread.h>
#include <reprise/timeline.h>
#include <stdlib.h>
#include <string.h>

struct rp_timeline {
    struct rp_import import;
    const struct rp_trace *trace; /* of the import */
};

/* NOLINTNEXTLINE(misc-redundant-expression): both are INT64_MIN today */
_Static_assert(RP_NO_INDEX == RP_NONE && RP_NO_TIME == RP_NO_TS && RP_OPEN_NS == -1,
               "what the public header promises");

/* Returns a text, or NULL if the trace has none. */
static const char *text_or_null(const struct rp_trace *t, rp_str s)
{
    return s ? rp_trace_str(t, s) : NULL;
}

enum rp_code rp_timeline_open(const struct rp_dataset *dataset, size_t i, struct rp_timeline **out,
                              struct rp_err *err)
{
    struct rp_timeline *timeline;

    *out = NULL;
    if (i >= rp_dataset_count(dataset))
        return rp_err_set(err, RP_USAGE, "there is no input %zu: the dataset has %zu", i,
                          rp_dataset_count(dataset));
    timeline = calloc(1, sizeof *timeline);
    RP_TRY(rp_err_need(timeline, err, "opening a timeline"));
    enum rp_code code = rp_load_trace(dataset, i, &timeline->import, err);
    timeline->trace = timeline->import.trace;
    if (code == RP_OK && timeline->trace)
        code = rp_trace_require(timeline->trace, RP_NEED_ALL, err);
    if (code != RP_OK || !timeline->trace) {
        rp_timeline_free(timeline);
        return code;
    }
    *out = timeline;
    return RP_OK;
}

void rp_timeline_free(struct rp_timeline *timeline)
{
    if (!timeline)
        return;
    rp_import_release(&timeline->import);
    free(timeline);
}

void rp_timeline_describe(const struct rp_timeline *timeline, struct rp_timeline_view *view)
{
    const struct rp_trace *t = timeline->trace;
    struct rp_timeline_view known = {
        .struct_size = view->struct_size,
        .format = rp_trace_str(t, t->format),
        .framework = text_or_null(t, t->framework),
        .framework_version = text_or_null(t, t->framework_version),
        .rank = t->rank,
        .world_size = t->world_size,
        .nevents = t->ev.n,
        .ntracks = t->ntracks,
        .nsteps = t->nsteps,
        .has_epoch = t->has_base,
        .epoch_ns = t->base_ns,
        .begin_ns = t->totals.span_begin_ns,
        .end_ns = t->totals.span_end_ns,
    };

    rp_copy_view(view, 0, view->struct_size, &known, sizeof known);
}

size_t rp_timeline_events(const struct rp_timeline *timeline, size_t first, size_t n,
                          struct rp_event_view *out, size_t size)
{
    const struct rp_trace *t = timeline->trace;
    const struct rp_events *ev = &t->ev;

    n = rp_clip_range(first, n, ev->n);
    for (size_t i = 0; i < n; i++) {
        rp_event e = (rp_event)(first + i);
        const struct rp_origin *origin = &t->origins[ev->origin[e]];
        struct rp_event_view view = {
            .name = rp_trace_str(t, ev->name[e]),
            .category = origin->has_category ? rp_trace_str(t, origin->category) : NULL,
            .start_ns = ev->ts_ns[e],
            .duration_ns = ev->dur_ns[e],
            .index = e,
            .track = ev->track[e],
            .parent = ev->parent[e],
            .nargs = rp_args_count(&t->args, ev->shape[e], ev->arg_row[e]),
            .kind = ev->kind[e],
            .phase = (unsigned char)origin->phase,
        };

        rp_copy_view(out, i, size, &view, sizeof view);
    }
    return n;
}

size_t rp_timeline_tracks(const struct rp_timeline *timeline, size_t first, size_t n,
                          struct rp_track_view *out, size_t size)
{
    const struct rp_trace *t = timeline->trace;

    n = rp_clip_range(first, n, t->ntracks);
    for (size_t i = 0; i < n; i++) {
        const struct rp_track_info *track = &t->tracks[first + i];
        const struct rp_process *process = &t->processes[track->process];
        struct rp_track_view view = {
            .name = text_or_null(t, track->name),
            .process_name = text_or_null(t, process->name),
            .tid = track->has_id && !track->text && track->native_id != RP_ID_EMPTY
                       ? track->native_id
                       : -1,
            .pid = !process->text && process->native_id != RP_ID_EMPTY ? process->native_id : -1,
            .index = (uint32_t)(first + i),
            .process = track->process,
            .first = track->first,
            .nevents = track->end - track->first,
            .kind = track->kind,
            .device = process->device,
        };

        rp_copy_view(out, i, size, &view, sizeof view);
    }
    return n;
}

size_t rp_timeline_steps(const struct rp_timeline *timeline, size_t first, size_t n,
                         struct rp_step_view *out, size_t size)
{
    const struct rp_trace *t = timeline->trace;

    n = rp_clip_range(first, n, t->nsteps);
    for (size_t i = 0; i < n; i++) {
        const struct rp_step *step = &t->steps[first + i];
        struct rp_step_view view = {.name = rp_trace_str(t, step->name),
                                    .number = step->number,
                                    .begin_ns = step->begin_ns,
                                    .end_ns = step->end_ns,
                                    .event = step->mark,
                                    .phase = rp_word_step_phase(step->phase),
                                    .requests = step->requests,
                                    .tokens = step->tokens};

        rp_copy_view(out, i, size, &view, sizeof view);
    }
    return n;
}

static struct rp_arg_view arg_view(const struct rp_trace *t, const struct rp_arg *arg)
{
    struct rp_arg_view view = {.key = rp_trace_str(t, arg->key), .type = arg->type};

    if (arg->type == RP_ARG_I64) {
        view.i64 = arg->v.i;
        view.f64 = (double)arg->v.i;
    } else if (arg->type == RP_ARG_F64) {
        view.f64 = arg->v.f;
    } else {
        view.text = rp_trace_str(t, arg->v.s);
    }
    return view;
}

size_t rp_timeline_args(const struct rp_timeline *timeline, uint32_t event, size_t first, size_t n,
                        struct rp_arg_view *out, size_t size)
{
    const struct rp_trace *t = timeline->trace;

    if (event >= t->ev.n)
        return 0;
    uint16_t shape = t->ev.shape[event];
    uint32_t row = t->ev.arg_row[event];
    n = rp_clip_range(first, n, rp_args_count(&t->args, shape, row));
    for (size_t i = 0; i < n; i++) {
        struct rp_arg arg = rp_args_at(&t->args, shape, row, (uint32_t)(first + i));
        struct rp_arg_view view = arg_view(t, &arg);

        rp_copy_view(out, i, size, &view, sizeof view);
    }
    return n;
}

int rp_timeline_arg(const struct rp_timeline *timeline, uint32_t event, const char *key,
                    struct rp_arg_view *out, size_t size)
{
    struct rp_arg_view view;

    for (size_t i = 0; rp_timeline_args(timeline, event, i, 1, &view, sizeof view); i++)
        if (!strcmp(view.key, key)) {
            rp_copy_view(out, 0, size, &view, sizeof view);
            return 1;
        }
    return 0;
}

size_t rp_timeline_linked(const struct rp_timeline *timeline, uint32_t event, uint32_t *out,
                          size_t n)
{
    const struct rp_trace *t = timeline->trace;
    rp_link link = event < t->ev.n ? t->ev.link[event] : RP_NONE;

    if (link == RP_NONE)
        return 0;
    size_t count = t->links.offset[link + 1] - t->links.offset[link];
    if (n)
        memcpy(out, t->links.member + t->links.offset[link], (n < count ? n : count) * sizeof *out);
    return count;
}

struct rp_rank_list {
    struct rp_run *run;
};

/* The digest of a rank with its source. */
struct source_digest {
    struct rp_digest *digest;
    size_t source;
    uint32_t part;
};

struct digest_list {
    pthread_mutex_t lock;
    RP_VEC(struct source_digest) all;
};

RP_ORDER(by_source, struct source_digest, RP_UP(source), RP_UP(part))

static enum rp_code digest_source(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct digest_list *list = user;
    struct source_digest row = {.source = loaded->index, .part = loaded->part};

    RP_TRY(rp_digest_new(loaded->trace, loaded->source->name, &row.digest, err));
    pthread_mutex_lock(&list->lock);
    enum rp_code code = rp_vec_push(&list->all, row, err);
    pthread_mutex_unlock(&list->lock);
    if (code != RP_OK)
        rp_digest_free(row.digest);
    return code;
}

/* The run takes over the digests. */
static enum rp_code number_ranks(struct rp_run *run, struct digest_list *list, struct rp_err *err)
{
    rp_sort(list->all.at, list->all.n, sizeof *list->all.at, by_source);
    for (size_t i = 0; i < list->all.n; i++)
        RP_TRY(rp_run_add(run, &list->all.at[i].digest, list->all.at[i].source, err));
    return rp_run_settle(run, err);
}

enum rp_code rp_ranks_open(const struct rp_dataset *dataset, struct rp_rank_list **out,
                           struct rp_err *err)
{
    struct digest_list list = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct rp_rank_list *ranks = calloc(1, sizeof *ranks);
    enum rp_code code = rp_err_need(ranks, err, "listing ranks");

    *out = NULL;
    if (code == RP_OK)
        code = rp_run_new(&ranks->run, err);
    if (code == RP_OK)
        code = rp_each_rank(dataset->ctx, dataset, digest_source, &list, err);
    if (code == RP_OK)
        code = number_ranks(ranks->run, &list, err);
    for (size_t i = 0; i < list.all.n; i++)
        rp_digest_free(list.all.at[i].digest);
    rp_vec_release(&list.all);
    if (code == RP_OK)
        *out = ranks;
    else
        rp_ranks_free(ranks);
    return code;
}

void rp_ranks_free(struct rp_rank_list *ranks)
{
    if (!ranks)
        return;
    rp_run_free(ranks->run);
    free(ranks);
}

size_t rp_ranks_count(const struct rp_rank_list *ranks)
{
    return ranks->run->ranks.n;
}

int32_t rp_ranks_world_size(const struct rp_rank_list *ranks)
{
    return ranks->run->world_size;
}

size_t rp_ranks_read(const struct rp_rank_list *ranks, size_t first, size_t n,
                     struct rp_rank_view *out, size_t size)
{
    n = rp_clip_range(first, n, rp_ranks_count(ranks));
    for (size_t i = 0; i < n; i++) {
        const struct rp_rank *rank = &ranks->run->ranks.at[first + i];
        const struct rp_digest *digest = rank->digest;
        struct rp_rank_view view = {
            .name = digest->name,
            .format = digest->format,
            .framework = *digest->framework ? digest->framework : NULL,
            .input = rank->file,
            .number = rank->number,
            .recorded_number = digest->rank,
            .nevents = digest->nevents,
            .nsteps = (uint32_t)digest->nsteps,
            .begin_ns = digest->totals.span_begin_ns,
            .end_ns = digest->totals.span_end_ns,
        };

        rp_copy_view(out, i, size, &view, sizeof view);
    }
    return n;
}
