/* SPDX-License-Identifier: Apache-2.0 */
/* Files that merely lie beside a trace were not asked for: if they cannot be read, nothing is
   known. */
#include "explain/top/line_source.h"

#include "base/text.h"

static enum rp_code find_source(struct rp_line_source *s, const struct rp_loaded *loaded,
                                const char *dumps, struct rp_err *err)
{
    const struct rp_trace *t = loaded->trace;

    RP_TRY(rp_compiled_read_logs(&s->log, t, loaded->source ? loaded->source->path : NULL, dumps,
                                 err));
    s->of_xla = !s->log.logs.n;
    if (s->of_xla)
        RP_TRY(rp_lines_xla_init(&s->xla, loaded, dumps, &s->log, err));
    else
        RP_TRY(rp_compiled_init(&s->compiled, t, &s->log, err));
    s->known = s->log.logs.n || s->log.compiles.n;
    return s->known || !dumps
               ? RP_OK
               : rp_err_set(err, RP_FORMAT,
                            "'%s': no log of torch.compile, and no program of XLA that the trace "
                            "runs; 'reprise dump run' makes PyTorch and JAX write them",
                            dumps);
}

enum rp_code rp_line_source_init(struct rp_line_source *s, const struct rp_loaded *loaded,
                                 const char *dumps, struct rp_err *err)
{
    *s = (struct rp_line_source){.known = false};
    rp_torch_trace_init(&s->log);
    enum rp_code code = find_source(s, loaded, dumps, err);
    return dumps || code == RP_NOMEM ? code : RP_OK;
}

void rp_line_source_release(struct rp_line_source *s)
{
    rp_lines_xla_release(&s->xla);
    rp_compiled_release(&s->compiled);
    rp_torch_trace_release(&s->log);
}

const char *rp_line_source_text(const struct rp_line_source *s, const struct rp_trace *trace,
                                rp_event e, struct rp_arena *arena)
{
    struct rp_compiled_span span =
        s->of_xla ? rp_lines_xla_of(&s->xla, trace, e) : rp_compiled_of_event(&s->compiled, e);
    const struct rp_torch_call *call = span.call == RP_NONE ? NULL : &s->log.calls.at[span.call];
    const char *text = NULL;
    uint32_t most = UINT32_MAX;

    /* the next smaller number of nodes, with all lines that have it */
    while (call && span.graph != RP_NONE) {
        uint32_t next = 0;

        for (uint32_t i = 0; i < call->n; i++) {
            uint32_t nodes = s->log.shares.at[call->first + i].nodes;

            next = nodes < most && nodes > next ? nodes : next;
        }
        for (uint32_t i = 0; i < call->n && next; i++) {
            const struct rp_torch_share *share = &s->log.shares.at[call->first + i];
            const struct rp_torch_place *at = &s->log.places.at[share->place];

            if (share->nodes == next)
                text = rp_arena_textf(arena, "%s%s%s:%lld", text ? text : "", text ? ", " : "",
                                      rp_text_file(at->path), (long long)at->line);
        }
        if (!next)
            break;
        most = next;
    }
    return text;
}
