/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context's pool reads the sources. If there are few inputs, those that are not captures are
 * kept for the job of their rank; otherwise they are read again, so that only captures stay in
 * memory.
 */
#include "dataset/captures.h"
#include "base/text.h"
#include "result/print_units.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define EVENTS_MAX (32u << 20)
RP_LIMIT(EVENTS_MAX, "events",
         "of inputs that are kept after they were examined; others are read again");

struct capture_search {
    const struct rp_dataset *dataset;
    struct rp_dataset quiet; /* the same without progress, which only the calling thread reports */
    pthread_t caller;
    struct rp_capture_files *files;
    bool few;
    _Atomic uint64_t events; /* the events of the captures so far */
};

bool rp_is_named_capture(const char *name)
{
    const char *slash = strrchr(name, '/');
    size_t parts = 1;

    while (slash && slash > name && parts < 2) {
        for (slash--; slash > name && *slash != '/'; slash--)
            ;
        parts++;
    }
    return strcasestr(slash && *slash == '/' ? slash + 1 : name, "capture") != NULL;
}

/* Whether it can be read again: a pipe gives its content only once. */
static bool can_read_again(const struct rp_source *source)
{
    struct stat s;

    return source->member || (!stat(source->path, &s) && S_ISREG(s.st_mode));
}

bool rp_is_capture_file(const char *name, const struct rp_captures *captures)
{
    return captures->nodes.n && (rp_captures_are_all(captures) || rp_is_named_capture(name));
}

static enum rp_code read_candidate(void *user, size_t i, struct rp_err *err)
{
    struct capture_search *s = user;
    struct rp_read_source *r = &s->files->read[i];
    const char *name = rp_sources_borrow(s->dataset->sources, i)->name;
    enum rp_code code = RP_OK;

    if ((!s->few && !rp_is_named_capture(name)) || rp_is_skipped(s->dataset, i))
        return RP_OK;
    r->err = (struct rp_err){0};
    r->code = rp_load_trace(pthread_equal(s->caller, pthread_self()) ? s->dataset : &s->quiet, i,
                            &r->import, &r->err);
    if (r->code == RP_CANCELLED) {
        if (err)
            *err = r->err;
        return r->code;
    }
    r->read = r->code == RP_OK || !can_read_again(rp_sources_borrow(s->dataset->sources, i));
    if (r->code == RP_OK && r->import.trace) {
        code = rp_trace_require(r->import.trace, RP_NEED_ARGS | RP_NEED_LINKS, NULL);
        if (code == RP_OK)
            code = rp_captures_init(&r->captures, r->import.trace, err);
        r->capture = code == RP_OK && rp_is_capture_file(name, &r->captures);
        code =
            code == RP_NOMEM ? code : RP_OK; /* a damaged source is reported when its turn comes */
    }
    bool full = r->capture && !s->few &&
                atomic_fetch_add(&s->events, r->import.trace->ev.n) >
                    EVENTS_MAX; /* it does not fit into the limit */
    if (!r->capture || full)
        rp_captures_release(&r->captures);
    if (!s->few && (!r->capture || full)) {
        rp_import_release(&r->import);
        r->read = false;
    }
    return code;
}

enum rp_code rp_capture_files_find(struct rp_capture_files *out, struct rp_ctx *ctx,
                                   const struct rp_dataset *dataset, struct rp_err *err)
{
    size_t i, n = rp_sources_count(dataset->sources), named = 0;
    struct capture_search s = {.dataset = dataset,
                               .quiet = *dataset,
                               .caller = pthread_self(),
                               .files = out,
                               .few = n <= RP_CAPTURE_SEARCH};
    struct rp_ctx quiet = *ctx;

    *out = (struct rp_capture_files){.n = n};
    quiet.progress = NULL;
    s.quiet.ctx = &quiet;
    for (i = 0; i < n; i++)
        named += rp_is_named_capture(rp_sources_borrow(dataset->sources, i)->name);
    if (n < 2 || (!s.few && (!named || named == n)))
        return RP_OK;
    out->read = calloc(n, sizeof *out->read);
    RP_TRY(rp_err_need(out->read, err, "looking for captures"));
    return rp_pool_each(ctx->pool, n, read_candidate, &s, err);
}

void rp_capture_files_release(struct rp_capture_files *files)
{
    for (size_t i = 0; files->read && i < files->n; i++) {
        rp_captures_release(&files->read[i].captures);
        rp_import_release(&files->read[i].import);
    }
    free(files->read);
}

bool rp_capture_files_take(struct rp_capture_files *files, size_t source, struct rp_import *import,
                           enum rp_code *code, bool *skip, struct rp_err *err)
{
    struct rp_read_source *r = files->read ? &files->read[source] : NULL;

    *skip = r && r->capture;
    if (!r || !r->read || *skip)
        return *skip;
    *import = r->import;
    r->import = (struct rp_import)RP_IMPORT_INIT;
    r->read = false;
    *code = r->code;
    if (err)
        *err = r->err;
    return true;
}

/* ------------------------------------------------------------------ joining */

struct capture_list {
    RP_VEC(const struct rp_captures *) at;
    RP_VEC(size_t) source; /* the source of each; SIZE_MAX for the trace itself */
};

static enum rp_code join_with(const struct rp_capture_files *files, const uint8_t *run_of,
                              const struct rp_dataset *dataset, const struct rp_loaded *loaded,
                              const struct rp_captures *own, struct capture_list *list,
                              struct rp_graph_join *out, struct rp_graph_use *use,
                              struct rp_arena *arena, struct rp_err *err)
{
    const int64_t *count = loaded->trace->totals.count;

    if (rp_captures_are_all(own)) {
        use->captured = (int64_t)own->nodes.n;
        use->ran = count[RP_KIND_KERNEL] + count[RP_KIND_MEMCPY] + count[RP_KIND_MEMSET];
        return RP_OK;
    }
    if (own->nodes.n) {
        RP_TRY(rp_vec_push(&list->at, own, err));
        RP_TRY(rp_vec_push(&list->source, SIZE_MAX, err));
    }

    /* The files that hold captures, in their order. */
    for (size_t i = 0; files->read && i < files->n; i++) {
        const struct rp_captures *c = &files->read[i].captures;
        if (!files->read[i].capture || !c->nodes.n ||
            (run_of && run_of[i] != run_of[loaded->index]))
            continue;
        RP_TRY(rp_vec_push(&list->at, c, err));
        RP_TRY(rp_vec_push(&list->source, i, err));
    }
    if (!list->at.n)
        return RP_OK;
    RP_TRY(rp_graphs_join(out, loaded->trace, list->at.at, list->at.n, err));

    /* How much of the graphs the captures explain, and which files were used. */
    use->launches = out->launches;
    use->items = out->items;
    use->ns = out->ns;
    use->matched = out->matched;
    use->matched_ns = out->matched_ns;
    use->ambiguous = out->ambiguous;
    use->unordered = out->unordered;
    for (size_t i = 0; i < out->used.n; i++) {
        size_t source = list->source.at[i];
        if (!out->used.at[i])
            continue;
        if (!use->nused++ && source != SIZE_MAX)
            use->used = rp_arena_text(arena, rp_sources_borrow(dataset->sources, source)->name);
    }
    return RP_OK;
}

enum rp_code rp_capture_files_join(const struct rp_capture_files *files, const uint8_t *run_of,
                                   const struct rp_dataset *dataset, const struct rp_loaded *loaded,
                                   struct rp_graph_join *out, struct rp_graph_use *use,
                                   struct rp_arena *arena, struct rp_err *err)
{
    struct rp_captures own;
    struct capture_list list = {0};
    enum rp_code code = rp_captures_init(&own, loaded->trace, err);

    *out = (struct rp_graph_join){0};
    *use = (struct rp_graph_use){0};
    if (code == RP_OK)
        code = join_with(files, run_of, dataset, loaded, &own, &list, out, use, arena, err);
    rp_captures_release(&own);
    rp_vec_release(&list.at);
    rp_vec_release(&list.source);
    return code;
}

/* ------------------------------------------------------------------ what to say */

static const char *source_text(const struct rp_graph_use *use, struct rp_arena *arena)
{
    if (!use->used)
        return use->nused > 1 ? "the captures in this recording and others"
                              : "the captures in this recording";
    if (use->nused == 1)
        return rp_arena_textf(arena, "the capture '%s'", rp_text_file(use->used));
    return rp_arena_textf(arena, "the capture '%s' and %zu other%s", rp_text_file(use->used),
                          use->nused - 1, use->nused == 2 ? "" : "s");
}

const char *rp_graph_use_text(const struct rp_graph_use *use, const char *name,
                              struct rp_arena *arena)
{
    if (use->captured)
        return rp_arena_textf(arena,
                              "'%s' is a recording of a graph capture: %s %s captured, not "
                              "executed%s",
                              rp_text_file(name), rp_units_count(arena, use->captured, "launch"),
                              use->captured == 1 ? "was" : "were",
                              use->ran ? rp_arena_textf(arena,
                                                        "; beside %s, %s kernels, copies and "
                                                        "memsets ran",
                                                        use->captured == 1 ? "it" : "them",
                                                        rp_units_number(arena, use->ran))
                                       : "");
    if (!use->launches)
        return NULL;
    if (!use->matched)
        return rp_arena_textf(arena,
                              "none of the %s launched graphs fits a capture: their kernels "
                              "have no operators%s",
                              rp_units_number(arena, use->launches),
                              use->unordered ? " (they run on several streams; that needs "
                                               "captures that name their kernels, which CUDA's "
                                               "do not)"
                                             : "");
    return rp_arena_textf(
        arena, "graph kernels take their operators from %s: %s of %s are matched%s%s",
        source_text(use, arena), rp_units_number(arena, use->matched),
        rp_units_number(arena, use->items),
        use->matched < use->items
            ? rp_arena_textf(arena, " (%.1f %% of their time)",
                             use->ns > 0 ? 100.0 * (double)use->matched_ns / (double)use->ns : 0.0)
            : "",
        use->ambiguous ? "; captures of several batch sizes fit, the first was taken, so shapes "
                         "may be those of another size"
                       : "");
}
