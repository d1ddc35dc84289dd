/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as text, for tests: nodes in their order, each with the edges into it. */
#include "stepgraph/graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void put_node(FILE *f, const struct rp_stepgraph *g, uint32_t v)
{
    const struct rp_sg_node *n = &g->nodes.at[v];
    uint32_t i;

    fprintf(f, "%" PRIu32 " %s", v, rp_sg_kind_names[n->kind]);
    if (g->nranks > 1 && n->lane != RP_NONE)
        fprintf(f, " rank %" PRIu32, n->rank);
    if (n->name)
        fprintf(f, " '%s'", g->names.at[n->name]);
    if (n->lane != RP_NONE)
        fprintf(f, " on %s", g->lanes.at[n->lane].label);
    fprintf(f, " %" PRId64 "+%" PRId64 "\n", n->start_ns, n->dur_ns);
    for (i = g->in.at[v]; i < g->in.at[v + 1]; i++) {
        const struct rp_sg_edge *e = &g->edges.at[i];

        fprintf(f, "  %s %" PRIu32 "%s lag %" PRId64 "%s%s\n", rp_sg_edge_names[e->kind], e->from,
                e->flags & RP_SG_FROM_START ? " start" : "", e->lag_ns,
                e->flags & RP_SG_BINDING ? " binding" : "",
                e->flags & RP_SG_INFERRED ? " inferred" : "");
    }
}

enum rp_code rp_sg_dump(const struct rp_stepgraph *g, char **out, struct rp_err *err)
{
    size_t size = 0;
    FILE *f;
    uint32_t v;

    *out = NULL;
    f = open_memstream(out, &size);
    if (!f)
        return rp_err_nomem(err, "dumping the step graph");
    for (v = 0; v < g->nodes.n; v++)
        put_node(f, g, v);
    if (fclose(f)) {
        free(*out);
        *out = NULL;
        return rp_err_nomem(err, "dumping the step graph");
    }
    return RP_OK;
}
