/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the merged trace: one input after the other is loaded, corrected and appended, with a
   record by which the ranks can be separated again (trace/merged.h). */
#include "dataset/load.h"
#include "explain/merge/merge.h"
#include "facts/ranks/tensor_transfers.h"
#include "result/print_units.h"
#include "trace/merged.h"

#include <stdio.h>
#include <string.h>

struct merge_output {
    struct rp_merge_root *root;
    struct rp_builder *builder;
    const struct rp_limits *limits;
    bool is_job;
    uint32_t appended;
    char label[80];
    struct rp_emit records; /* of the ranks, as JSON */
    struct rp_merged_common common;
};

/* The last two folders in the path of a job's file are its host and rank:
   "run/host1/0/comm.json". */
static bool in_folder(const char *name, const char *folder)
{
    const char *slash = strrchr(name, '/');
    size_t n = slash ? (size_t)(slash - name) : 0, len = strlen(folder);

    return n >= len && !memcmp(name + n - len, folder, len) &&
           (n == len || name[n - len - 1] == '/' || name[n - len - 1] == '!');
}

static const struct rp_merge_rank *rank_of(const struct merge_output *w,
                                           const struct rp_loaded *loaded)
{
    if (w->root->by_process)
        return &w->root->ranks[0];
    for (size_t r = 0; r < w->root->nranks; r++)
        if (w->is_job
                ? in_folder(loaded->source->name, w->root->ranks[r].path)
                : w->root->source[r] == loaded->index && w->root->in_source[r] == loaded->part)
            return &w->root->ranks[r];
    return NULL;
}

struct source_clock { /* of one source */
    const struct rp_merge_root *root;
    const struct rp_merge_rank *rank;
    struct rp_clock clock; /* clock of the rank, without its steps */
};

static int64_t corrected_time(const void *user, uint32_t process, int64_t ns)
{
    const struct source_clock *c = user;

    for (size_t r = 0; c->root->by_process && r < c->root->nranks; r++)
        if (c->root->source[r] == process)
            return rp_clock_time(&c->root->ranks[r].clock, ns);
    return c->root->by_process ? ns : rp_clock_time(&c->clock, ns);
}

/* Adds an arrow for each tensor between processes, from its producer to its receive. */
static enum rp_code find_tensor_arrows(const struct rp_trace *t, struct rp_append *how,
                                       struct rp_arena *arena, struct rp_err *err)
{
    rp_tensor_transfer_vec all = {0};
    struct rp_append_arrow *arrows = NULL;
    enum rp_code code = rp_tensor_transfers_find(t, &all, err);

    if (code == RP_OK && all.n) {
        arrows = RP_ARENA_NEW(arena, struct rp_append_arrow, all.n);
        code = rp_err_need(arrows, err, "merging ranks");
    }
    for (size_t i = 0; arrows && i < all.n; i++)
        if (all.at[i].producer != RP_NONE)
            arrows[how->narrows++] = (struct rp_append_arrow){
                t->ev.track[all.at[i].producer], t->ev.track[all.at[i].receive], all.at[i].ready_ns,
                all.at[i].end_ns, rp_trace_str(t, all.at[i].edge)};
    how->arrows = arrows;
    rp_vec_release(&all);
    return code;
}

static enum rp_code append_trace(struct merge_output *w, const struct rp_loaded *loaded,
                                 struct rp_append *how, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena arena = {0};

    rp_arena_init(&arena);
    RP_TRY(find_tensor_arrows(loaded->trace, how, &arena, err));
    return rp_builder_append(w->builder, loaded->trace, how, err);
}

static enum rp_code append_unstepped(struct merge_output *w, struct rp_loaded loaded,
                                     const struct rp_clock *clock, struct rp_append *how,
                                     struct rp_err *err)
{
    struct rp_trace *unstepped;
    enum rp_code code = rp_merge_undo_steps(loaded.trace, clock, w->limits, &unstepped, err);

    loaded.trace = unstepped;
    if (code == RP_OK)
        code = append_trace(w, &loaded, how, err);
    rp_trace_free(unstepped);
    return code;
}

static enum rp_code append_source(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct merge_output *w = user;
    struct source_clock clock = {w->root, rank_of(w, loaded), {0}};
    struct rp_append how = {.index = w->appended,
                            .pid_step = w->root->pid_step,
                            .label = w->root->by_process ? NULL : w->label,
                            .time = corrected_time,
                            .user = &clock,
                            .meta = w->appended == 0};

    if (!clock.rank)
        return RP_OK;
    snprintf(w->label, sizeof w->label, "rank %lld", (long long)clock.rank->rank);
    RP_TRY(rp_trace_require(loaded->trace, RP_NEED_ALL, err));
    clock.clock = clock.rank->clock;
    clock.clock.nsteps = 0;
    if (!w->is_job && !w->root->by_process)
        RP_TRY(rp_merged_describe(&w->records, &w->common, loaded->trace, &how,
                                  (int32_t)clock.rank->rank, err));
    RP_TRY(clock.rank->clock.nsteps && !w->root->by_process
               ? append_unstepped(w, *loaded, &clock.rank->clock, &how, err)
               : append_trace(w, loaded, &how, err));
    w->appended++;
    return RP_OK;
}

static enum rp_code add_records(struct merge_output *w, struct rp_err *err)
{
    rp_str key, value;

    if (!w->appended || w->is_job || w->root->by_process)
        return RP_OK;
    rp_emit_char(&w->records, ']');
    RP_TRY(rp_builder_intern(w->builder, RP_MERGED_KEY, strlen(RP_MERGED_KEY), &key, err));
    RP_TRY(
        rp_builder_intern(w->builder, w->records.buffer, rp_emit_length(&w->records), &value, err));
    return rp_builder_add_meta(w->builder, key, value, false, err);
}

static enum rp_code write_output(struct merge_output *w, const struct rp_writer *writer,
                                 const char *output, struct rp_arena *arena, struct rp_err *err)
{
    struct rp_trace *trace;
    enum rp_code code = rp_builder_finish(w->builder, &trace, err);

    w->builder = NULL;
    RP_TRY(code);
    w->root->event_count = trace->health.events;
    code = writer->write(trace, output, NULL, err);
    rp_trace_free(trace);
    RP_TRY(code);
    w->root->output = rp_arena_text(arena, output);
    w->root->format = writer->name;
    w->root->output_text = rp_arena_textf(
        arena, "%s of %s to %s", rp_units_count(arena, w->root->event_count, "event"),
        rp_units_count(arena, (int64_t)w->root->nranks, "rank"), output);
    return rp_arena_check(arena, "merging ranks", err);
}

enum rp_code rp_merge_write(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                            const struct rp_writer *writer, const char *output, bool is_job,
                            struct rp_arena *arena, struct rp_merge_root *root, struct rp_err *err)
{
    struct merge_output w = {.root = root, .is_job = is_job, .limits = &dataset->limits};
    enum rp_code code = rp_builder_new(&dataset->limits, &w.builder, err);

    if (code == RP_OK)
        code = rp_emit_open_memory(&w.records, err);
    if (code == RP_OK)
        code = rp_each_rank_in_order(ctx, dataset, append_source, &w, err);
    if (code == RP_OK)
        code = add_records(&w, err);
    if (code == RP_OK)
        code = write_output(&w, writer, output, arena, err);
    rp_builder_free(w.builder);
    rp_emit_abandon(&w.records);
    rp_vec_release(&w.common.hashes);
    return code;
}
