/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `merge --same-rank`: two recordings of one process, by different tools, become one trace on the
 * clock of the first (facts/recorders.h). Processes and threads with the same ids are the same, so
 * that operators of one recording surround the calls of the other. What both recorded is kept once.
 */
#include "facts/recorders.h"
#include "dataset/load.h"
#include "explain/merge/merge.h"
#include "formats/formats.h"
#include "result/print_units.h"
#include "trace/build/build.h"
#include "trace/merged.h"

#include <math.h>
#include <string.h>

static int64_t moved_time(const void *user, uint32_t process, int64_t ns)
{
    (void)process;
    return (int64_t)((uint64_t)ns + (uint64_t) * (const int64_t *)user);
}

static enum rp_code check_single(const struct rp_trace *t, const char *path, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    struct rp_merged merged = {0};

    RP_TRY(rp_trace_require(t, RP_NEED_ALL, err));
    RP_TRY(rp_merged_read(t, &arena, &merged, err));
    if (merged.n > 1)
        return rp_err_set(err, RP_USAGE,
                          "'%s' holds %zu ranks: choose one with 'reprise convert --ranks' first",
                          path, merged.n);
    return RP_OK;
}

/* ------------------------------------------------------------------ the answer */

static const char *how_text(const struct rp_recorders *r, struct rp_arena *arena)
{
    const char *by = r->by == RP_RECORDERS_IDS
                         ? rp_arena_textf(arena, "%s by correlation id",
                                          rp_units_count(arena, (int64_t)r->matched, "launch"))
                     : r->by == RP_RECORDERS_NAMES
                         ? rp_arena_textf(arena, "%s that both recorded",
                                          rp_units_count(arena, (int64_t)r->matched, "span"))
                         : "the time of day alone";

    if (r->uncertainty_ns != RP_NO_TS)
        return rp_arena_textf(arena, "clocks aligned by %s, ±%s", by,
                              rp_units_time(arena, r->uncertainty_ns));
    return rp_arena_textf(arena, "clocks aligned by %s, uncertainty not known", by);
}

static int64_t known(int64_t ns)
{
    return ns == RP_NO_TS ? RP_ABSENT_I64 : ns;
}

static enum rp_code fill_answer(const struct rp_recorders *r,
                                const struct rp_trace *const traces[2], const char *const paths[2],
                                struct rp_arena *arena, struct rp_merge_root *root,
                                struct rp_err *err)
{
    int32_t number = traces[0]->rank != RP_NO_RANK ? traces[0]->rank : traces[1]->rank;

    root->ranks = RP_ARENA_NEW(arena, struct rp_merge_rank, 2);
    RP_TRY(rp_arena_check(arena, "joining recorders", err));
    root->nranks = 2;
    for (int i = 0; i < 2; i++)
        root->ranks[i] = (struct rp_merge_rank){.rank = number == RP_NO_RANK ? 0 : number,
                                                .path = rp_arena_text(arena, paths[i]),
                                                .offset_ns = i ? r->offset_ns : 0,
                                                .uncertainty_ns = i ? known(r->uncertainty_ns) : 0,
                                                .low_ns = i ? known(r->low_ns) : 0,
                                                .high_ns = i ? known(r->high_ns) : 0,
                                                .drift_ppb = NAN,
                                                .drift_uncertainty_ppb = NAN,
                                                .drift_at_ns = RP_ABSENT_I64,
                                                .drift_text = "-",
                                                .used = i != 0,
                                                .meeting_count = (int64_t)r->matched};
    root->matched_by = rp_recorders_word(r->by);
    root->meeting_count = (int64_t)r->matched;
    root->clock_count = root->aligned_count = 2;
    root->consistent = !r->contradiction;
    root->run_text = rp_arena_textf(arena, "2 recorders of one rank; %s", how_text(r, arena));
    if (r->contradiction)
        RP_NOTE(
            root, arena,
            "work starts before its launch, or ends after a call that waited for it, whatever the "
            "offset is: the clock of one recorder was set, or the files are of different runs");
    else if (r->by == RP_RECORDERS_IDS && r->uncertainty_ns == RP_NO_TS)
        RP_NOTE(
            root, arena,
            "no call waits for the device, so nothing says how late its work may be: the shortest "
            "launch is taken to take no time");
    else if (r->by == RP_RECORDERS_WALL)
        RP_NOTE(
            root, arena,
            "the files have nothing in common but the time of day, which two recorders may note "
            "milliseconds apart: what lies close together need not belong together");
    return rp_arena_check(arena, "joining recorders", err);
}

/* ------------------------------------------------------------------ the trace */

/* Adds the record with which answers about the joined trace begin (dataset/trust.c). */
static enum rp_code add_record(struct rp_builder *b, const struct rp_recorders *r,
                               struct rp_arena *arena, struct rp_err *err)
{
    const char *value =
        r->uncertainty_ns == RP_NO_TS
            ? rp_arena_textf(arena, "{\"uncertainty_ns\":null,\"text\":\"%s\"}", how_text(r, arena))
            : rp_arena_textf(arena, "{\"uncertainty_ns\":%lld,\"text\":\"%s\"}",
                             (long long)r->uncertainty_ns, how_text(r, arena));
    rp_str key, text;

    RP_TRY(rp_arena_check(arena, "joining recorders", err));
    RP_TRY(rp_builder_intern(b, RP_JOINED_KEY, strlen(RP_JOINED_KEY), &key, err));
    RP_TRY(rp_builder_intern(b, value, strlen(value), &text, err));
    return rp_builder_add_meta(b, key, text, false, err);
}

static enum rp_code add_facts(struct rp_builder *b, const struct rp_trace *t, struct rp_err *err)
{
    struct rp_trace *to = rp_builder_borrow_trace(b);

    if (to->rank == RP_NO_RANK)
        to->rank = t->rank;
    if (to->world_size <= 0)
        to->world_size = t->world_size;
    for (uint32_t i = 0; i < t->ndevices; i++) {
        struct rp_device device = t->devices[i];

        RP_TRY(rp_builder_intern(b, rp_trace_str(t, device.name), rp_trace_str_len(t, device.name),
                                 &device.name, err));
        RP_TRY(rp_builder_add_device(b, &device, err));
    }
    for (uint32_t i = 0; i < t->nwarnings; i++)
        RP_TRY(rp_builder_warn(b, err, "%s", rp_trace_str(t, t->warnings[i])));
    return RP_OK;
}

/* The metadata is that of the first; if it has no rank, the second one's rank is added. */
static enum rp_code append_both(struct rp_builder *b, const struct rp_trace *const traces[2],
                                const struct rp_recorders *r, struct rp_err *err)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct rp_append how = {.index = r->same_ids ? 0 : i,
                                .same_processes = true,
                                .time = i ? moved_time : NULL,
                                .user = &r->offset_ns,
                                .meta = i == 0,
                                .events = r->keep[i],
                                .flows = r->keep_flows[i]};

        RP_TRY(rp_builder_append(b, traces[i], &how, err));
    }
    RP_TRY(add_facts(b, traces[0], err));
    return add_facts(b, traces[1], err);
}

static enum rp_code write_joined(const struct rp_trace *const traces[2],
                                 const struct rp_recorders *r, const struct rp_limits *limits,
                                 const struct rp_writer *writer, const char *output,
                                 struct rp_arena *arena, struct rp_merge_root *root,
                                 struct rp_err *err)
{
    struct rp_trace *joined = NULL;
    struct rp_builder *b;

    RP_TRY(rp_builder_new(limits, &b, err));
    enum rp_code code = append_both(b, traces, r, err);
    if (code == RP_OK)
        code = add_record(b, r, arena, err);
    if (code == RP_OK)
        code = rp_builder_finish(b, &joined, err);
    else
        rp_builder_free(b);
    if (code == RP_OK)
        code = writer->write(joined, output, NULL, err);
    if (code == RP_OK) {
        root->event_count = joined->health.events;
        root->output = rp_arena_text(arena, output);
        root->format = writer->name;
        root->output_text =
            rp_arena_textf(arena, "%s of one rank to %s",
                           rp_units_count(arena, root->event_count, "event"), output);
    }
    rp_trace_free(joined);
    return code == RP_OK ? rp_arena_check(arena, "joining recorders", err) : code;
}

enum rp_code rp_merge_recorders(const struct rp_dataset *dataset, const struct rp_writer *writer,
                                const char *output, struct rp_arena *arena,
                                struct rp_merge_root *root, struct rp_err *err)
{
    struct rp_import imports[2] = {RP_IMPORT_INIT, RP_IMPORT_INIT};
    const struct rp_trace *traces[2] = {NULL, NULL};
    const char *paths[2];
    struct rp_recorders r = {0};
    enum rp_code code = RP_OK;

    if (rp_dataset_count(dataset) != 2)
        return rp_err_set(err, RP_USAGE,
                          "'--same-rank' joins two recordings of one process: give two files");
    for (size_t i = 0; code == RP_OK && i < 2; i++) {
        paths[i] = rp_sources_borrow(dataset->sources, i)->name;
        code = rp_load_trace(dataset, i, &imports[i], err);
        traces[i] = imports[i].trace;
        if (code == RP_OK && !traces[i])
            code = rp_err_set(err, RP_FORMAT, "'%s' is not a trace", paths[i]);
        if (code == RP_OK)
            code = check_single(traces[i], paths[i], err);
    }
    if (code == RP_OK) {
        code = rp_recorders_align(traces, &r, err);
        if (code != RP_OK)
            code = rp_err_prefix(err, code, "cannot join '%s' and '%s'", paths[0], paths[1]);
    }
    if (code == RP_OK)
        code = fill_answer(&r, traces, paths, arena, root, err);
    if (code == RP_OK && output)
        code = write_joined(traces, &r, &dataset->limits, writer, output, arena, root, err);
    rp_recorders_release(&r);
    rp_import_release(&imports[0]);
    rp_import_release(&imports[1]);
    return code;
}
