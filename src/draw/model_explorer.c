/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the JSON of Model Explorer: nodes with a namespace, attributes and incoming edges; one
 * graph, in which a called computation is a namespace beside its caller.
 */
#include "draw/draw.h"
#include "draw/paths.h"
#include "draw/web.h"
#include "io/escaped.h"

#include <stdio.h>

static void put_attr(struct rp_out *to, const char *comma, const char *key, const char *value)
{
    rp_out_printf(to, "%s{\"key\":", comma);
    rp_out_escaped(to, RP_IN_SCRIPT, key);
    rp_out_text(to, ",\"value\":");
    rp_out_escaped(to, RP_IN_SCRIPT, value);
    rp_out_char(to, '}');
}

static void put_attrs(struct rp_out *to, const struct rp_program *p, uint32_t op,
                      struct rp_chars *value)
{
    const char *scope = rp_program_text(p, p->metas.at[p->meta.at[op]].op_name);
    struct rp_source_line at;
    uint32_t n;
    const struct rp_attr *attr = rp_op_attrs(p, op, &n);

    rp_out_text(to, ",\"attrs\":[");
    put_attr(to, "", "name", rp_program_text(p, p->op_name.at[op]));
    if (*scope)
        put_attr(to, ",", "op_name", scope);
    if (rp_op_source(p, op, &at)) {
        char line[600];

        snprintf(line, sizeof line, "%s:%d", at.file, at.line);
        put_attr(to, ",", "source", line);
    }
    for (; n; n--, attr++) {
        if (attr->key == RP_ATTR_PROTO)
            continue;
        value->n = 0;
        rp_attr_print(p, attr, value);
        put_attr(to, ",", rp_program_text(p, attr->key), value->n ? value->at : "");
    }
    rp_out_char(to, ']');
}

static void put_node(struct rp_out *to, const struct rp_program *p, uint32_t op, const char *path,
                     struct rp_chars *value)
{
    struct rp_ids ids = rp_op_operands(p, op);
    char shape[400];

    rp_shape_text(p, p->shape.at[op], true, shape, sizeof shape);
    rp_out_printf(to, "%s{\"id\":\"%u\",\"label\":", op ? ",\n" : "", op);
    rp_out_escaped(to, RP_IN_SCRIPT, rp_op_opcode_name(p, op));
    rp_out_text(to, ",\"namespace\":");
    rp_out_escaped(to, RP_IN_SCRIPT, path);
    put_attrs(to, p, op, value);
    rp_out_text(to, ",\"incomingEdges\":[");
    for (uint32_t i = 0; i < ids.n; i++)
        rp_out_printf(to,
                      "%s{\"sourceNodeId\":\"%u\",\"sourceNodeOutputId\":\"0\","
                      "\"targetNodeInputId\":\"%u\"}",
                      i ? "," : "", ids.at[i], i);
    rp_out_text(to, "],\"outputsMetadata\":[{\"id\":\"0\",\"attrs\":[");
    put_attr(to, "", "shape", shape);
    rp_out_text(to, "]}]}");
}

enum rp_code rp_draw_model_explorer(const struct rp_program *p, struct rp_out *to,
                                    struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    RP_SCOPED(rp_chars_release) struct rp_chars value = {0};
    struct rp_hashes hashes;
    struct rp_tree tree;
    const char **paths;

    RP_TRY(rp_program_hash(p, &arena, &hashes, err));
    RP_TRY(rp_tree_build(p, &hashes, &arena, &tree, err));
    RP_TRY(rp_paths_make(&tree, &arena, &paths, err));
    rp_out_text(to, "{\"label\":");
    rp_out_escaped(to, RP_IN_SCRIPT, rp_program_text(p, p->name));
    rp_out_text(to, ",\"graphs\":[{\"id\":");
    rp_out_escaped(to, RP_IN_SCRIPT, rp_program_text(p, p->name));
    rp_out_text(to, ",\"nodes\":[");
    for (uint32_t op = 0; op < p->nops; op++)
        put_node(to, p, op, paths[tree.home[op]], &value);
    rp_out_text(to, "]}]}\n");
    return RP_OK;
}
