/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an engine that is a compiler of others is given. A protobuf, also one that was text, goes as
 * it stands in the file, so that nothing is lost that our model does not know; HLO text is written
 * as a module first;
 * StableHLO stays the text it is.
 */
#include "replay/module.h"

#include "formats/programs.h"
#include "replay/graph.h"

#include <string.h>

bool rp_replay_wire(const struct rp_session *s, struct rp_bytes *out)
{
    const struct rp_program *p = s->import.program;

    *out = (struct rp_bytes){0};
    if (s->graph || !p || strcmp(p->language, "hlo") != 0)
        return false;
    if (!strcmp(s->program.format, "hlo-proto"))
        *out = (struct rp_bytes){s->program.bytes, s->program.nbytes};
    else if (p->source.n)
        *out = (struct rp_bytes){(const uint8_t *)p->source.at, p->source.n};
    return out->n > 0;
}

enum rp_code rp_replay_module(const struct rp_session *s, const struct rp_engine *engine,
                              struct rp_proto_writer *made, struct rp_engine_program *out,
                              struct rp_err *err)
{
    const struct rp_program *p = s->program.program;
    struct rp_bytes bytes = {0}, wire;

    *out = s->program;
    if (s->graph && engine == &rp_engine_tf)
        return rp_replay_graph_module(s, made, out, err);
    if (s->graph && !p) {
        if (err)
            *err = s->graph->why;
        return s->graph->why.code;
    }
    if (!engine->wants_module && p && !strcmp(p->language, "stablehlo"))
        return rp_err_set(err, RP_UNSUPPORTED,
                          "StableHLO runs on the engine pjrt only ('reprise replay engines')");
    if (!engine->wants_module || out->module || !p || strcmp(p->language, "hlo") != 0)
        return RP_OK;
    if (!rp_replay_wire(s, &wire) || !rp_hlo_proto_module(wire.at, wire.n, &bytes)) {
        RP_TRY(rp_hlo_module_write(p, made, err));
        RP_TRY(rp_proto_written(made, &bytes, err));
    }
    out->module = bytes.at;
    out->nmodule = bytes.n;
    return RP_OK;
}
