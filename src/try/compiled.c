/* SPDX-License-Identifier: Apache-2.0 */
/* Reads from the log of torch.compile what it made of a variant: why it may gain less than
   expected. */
#include "base/text.h"
#include "formats/torch_trace/torch_trace.h"
#include "try/session.h"

static const char *place_of(struct rp_arena *arena, const struct rp_torch_place *at)
{
    return at->path ? rp_arena_textf(arena, "%s:%lld", rp_text_file(at->path), (long long)at->line)
                    : "a place that is not known";
}

static const char *join(struct rp_arena *arena, const char *text, const char *more)
{
    return text ? rp_arena_textf(arena, "%s; %s", text, more) : more;
}

static const char *say_breaks(const struct rp_torch_trace *log, struct rp_arena *arena)
{
    const struct rp_torch_break *first = log->breaks.n ? &log->breaks.at[0] : NULL;

    if (!first)
        return NULL;
    return rp_arena_textf(arena, "%zu graph break%s, the first at %s (%s)", log->breaks.n,
                          log->breaks.n == 1 ? "" : "s",
                          place_of(arena, first->user.path ? &first->user : &first->at),
                          first->kind ? rp_arena_text(arena, first->kind) : "no reason given");
}

const char *rp_try_compiled_text(const char *folder, struct rp_arena *arena)
{
    const struct rp_torch_compile *again = NULL, *failed = NULL, *limited = NULL, *plain = NULL;
    struct rp_torch_guard guard;
    struct rp_torch_trace log;
    const char *text = NULL;
    size_t n = 0;

    rp_torch_trace_init(&log);
    (void)rp_torch_trace_open(&log, folder, NULL, NULL); /* the part read before an error counts */
    for (size_t i = 0; i < log.compiles.n; i++) {
        const struct rp_torch_compile *c = &log.compiles.at[i];

        again = !again && c->nreasons ? c : again;
        n += c->nreasons > 0;
        failed = c->failed && !c->limited ? c : failed;
        limited = c->limited ? c : limited;
        plain = c->cudagraphs ? c : plain;
    }
    text = say_breaks(&log, arena);
    if (again) {
        rp_torch_guard_read(rp_arena_text(arena, again->reasons[0]), again->dynamic, arena, &guard);
        text = join(arena, text,
                    rp_arena_textf(arena, "compiled again %zu time%s, at first because of %s", n,
                                   n == 1 ? "" : "s", guard.what ? guard.what : guard.text));
    }
    if (limited)
        text = join(arena, text,
                    rp_arena_textf(arena, "the limit of compiles is reached: %s runs eagerly",
                                   limited->function ? limited->function : limited->id));
    if (failed)
        text =
            join(arena, text, rp_arena_textf(arena, "%s failed: %s", failed->id, failed->failed));
    if (plain)
        text = join(arena, text, rp_arena_textf(arena, "no CUDA graphs: %s", plain->cudagraphs));
    rp_torch_trace_release(&log);
    return text;
}
