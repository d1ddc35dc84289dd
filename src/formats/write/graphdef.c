/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes GraphDefs: one that was read is written unchanged, as protobuf or text. Any other program
 * becomes a graph whose nodes are its operations, for tools that draw GraphDefs: the opcode is the
 * operation of the node, the computation its scope, and attributes are strings.
 */
#include "formats/tensorflow/node.h"
#include "formats/textproto.h"
#include "formats/write/list.h"

#include <stdio.h>
#include <string.h>

/* Writes "computation/name", or for the entry the name alone. */
static void put_name(const struct rp_program *p, struct rp_proto_writer *w, uint32_t field,
                     uint32_t op)
{
    uint32_t c = p->computation.at[op];
    size_t begun = rp_proto_begin(w, field);
    const char *scope = rp_program_text(p, p->computations.at[c].name);
    const char *name = rp_program_text(p, p->op_name.at[op]);
    char part[40];

    if (c != p->entry) {
        rp_proto_add_bytes(w, scope, strlen(scope));
        rp_proto_add_bytes(w, "/", 1);
    }
    rp_proto_add_bytes(w, name, strlen(name));
    if (p->flags.at[op] & RP_OPS_IMPLICIT) {
        snprintf(part, sizeof part, "/part_%lld", (long long)p->value.at[op]);
        rp_proto_add_bytes(w, part, strlen(part));
    }
    rp_proto_end(w, begun);
}

/* The wire format, which `w` holds if it had to be made. */
static enum rp_code graph_bytes(const struct rp_program *p, struct rp_proto_writer *w,
                                struct rp_bytes *bytes, struct rp_err *err)
{
    struct rp_chars value = {0};

    if (p->source.at && strcmp(p->language, "graphdef") == 0) {
        *bytes = (struct rp_bytes){(const uint8_t *)p->source.at, p->source.n};
        return RP_OK;
    }
    for (uint32_t op = 0; op < p->nops; op++) {
        /* `value` is scratch for the text of an attribute. */
        size_t node = rp_proto_begin(w, RP_TF_GRAPH_NODE);
        struct rp_ids operands = rp_op_operands(p, op), called = rp_op_called(p, op);
        struct rp_source_line at;
        char text[512];
        uint32_t n;
        const struct rp_attr *attrs = rp_op_attrs(p, op, &n);
        put_name(p, w, RP_TF_NODE_NAME, op);
        rp_proto_put_text(w, RP_TF_NODE_OP, rp_op_opcode_name(p, op));
        for (uint32_t i = 0; i < operands.n; i++)
            put_name(p, w, RP_TF_NODE_INPUT, operands.at[i]);
        rp_shape_text(p, p->shape.at[op], true, text, sizeof text);
        rp_tf_put_attr_bytes(w, "shape", RP_TF_ATTR_S, text, strlen(text));
        for (uint32_t i = 0; i < n; i++) {
            if (attrs[i].type == RP_VALUE_WIRE)
                continue;
            value.n = 0;
            rp_attr_print(p, &attrs[i], &value);
            rp_tf_put_attr_bytes(w, rp_program_text(p, attrs[i].key), RP_TF_ATTR_S, value.at,
                                 value.n);
        }
        for (uint32_t i = 0; i < called.n; i++) {
            const char *name = rp_program_text(p, p->computations.at[called.at[i]].name);

            snprintf(text, sizeof text, "calls_%u", i);
            rp_tf_put_attr_bytes(w, text, RP_TF_ATTR_S, name, strlen(name));
        }
        if (rp_op_source(p, op, &at)) {
            snprintf(text, sizeof text, "%.400s:%d", at.file, at.line);
            rp_tf_put_attr_bytes(w, "source", RP_TF_ATTR_S, text, strlen(text));
        }
        rp_proto_end(w, node);
    }
    bool failed = value.failed;
    rp_chars_release(&value);
    return failed ? rp_err_nomem(err, "writing attributes") : rp_proto_written(w, bytes, err);
}

static enum rp_code write_graph(const struct rp_program *p, const char *path, bool text,
                                struct rp_err *err)
{
    struct rp_proto_writer w = {0};
    struct rp_bytes bytes;
    struct rp_out *to = NULL;
    enum rp_code code = graph_bytes(p, &w, &bytes, err);

    if (code == RP_OK)
        code = rp_out_open(path, &to, err);
    if (code == RP_OK && text)
        code = rp_textproto_print(&rp_schema_TF_GRAPH, bytes, false, to, err);
    else if (code == RP_OK)
        rp_out_write(to, bytes.at, bytes.n);
    code = rp_out_end(to, code, err);
    rp_proto_writer_release(&w);
    return code;
}

static enum rp_code write_binary(const struct rp_program *program, const char *path,
                                 const struct rp_write_options *options, struct rp_err *err)
{
    /* ".pb" is used for both, and an HLO module is written as HLO */
    if (strcmp(program->language, "hlo") == 0)
        return rp_writer_hlo_proto.write_program(program, path, options, err);
    return write_graph(program, path, false, err);
}

static enum rp_code write_text(const struct rp_program *program, const char *path,
                               const struct rp_write_options *options, struct rp_err *err)
{
    (void)options;
    return write_graph(program, path, true, err);
}

const struct rp_writer rp_writer_graphdef = {
    .name = "graphdef",
    .endings = {".pb"},
    .summary = "TensorFlow graph as a protobuf",
    .streams = true,
    .available = true,
    .write_program = write_binary,
};

const struct rp_writer rp_writer_pbtxt = {
    .name = "pbtxt",
    .endings = {".pbtxt"},
    .summary = "any program as a TensorFlow graph in text",
    .streams = true,
    .available = true,
    .write_program = write_text,
};
