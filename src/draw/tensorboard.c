/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an events file of TensorBoard: records of a length, the data, and a checksum of each
 * (CRC-32C, rotated and shifted, as in TFRecord). The first one has the version, and the second one
 * the program as a GraphDef, whose node names are paths of groups. Letters that TensorFlow does not
 * allow in names become '_'.
 */
#include "draw/draw.h"
#include "draw/paths.h"

#include "io/proto_write.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { /* fields of Event, GraphDef, NodeDef, AttrValue, TensorShapeProto */
       EVENT_WALL_TIME = 1,
       EVENT_FILE_VERSION = 3,
       EVENT_GRAPH_DEF = 4,
       GRAPH_NODE = 1,
       NODE_NAME = 1,
       NODE_OP = 2,
       NODE_INPUT = 3,
       NODE_ATTR = 5,
       ENTRY_KEY = 1,
       ENTRY_VALUE = 2,
       VALUE_LIST = 1,
       VALUE_STRING = 2,
       LIST_SHAPE = 7,
       SHAPE_DIM = 2,
       DIM_SIZE = 1
};

/* ---- records ---- */

static uint32_t crc32c(const unsigned char *at, size_t n)
{
    uint32_t table[256], crc = UINT32_MAX;

    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;

        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ UINT32_C(0x82f63b78) : c >> 1;
        table[i] = c;
    }
    for (size_t i = 0; i < n; i++)
        crc = table[(crc ^ at[i]) & 255] ^ crc >> 8;
    return ~crc;
}

static void put_checksum(struct rp_out *to, const unsigned char *at, size_t n)
{
    uint32_t crc = crc32c(at, n);

    uint32_t value = (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
    for (int i = 0; i < 4; i++)
        rp_out_char(to, (char)(value >> 8 * i & 255));
}

static enum rp_code put_record(struct rp_out *to, const struct rp_proto_writer *w,
                               struct rp_err *err)
{
    unsigned char length[8];
    struct rp_bytes bytes;

    RP_TRY(rp_proto_written(w, &bytes, err));
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)bytes.n >> 8 * i & 255);
    rp_out_write(to, length, sizeof length);
    put_checksum(to, length, sizeof length);
    rp_out_write(to, bytes.at, bytes.n);
    put_checksum(to, (const unsigned char *)bytes.at, bytes.n);
    return RP_OK;
}

/* ---- nodes ---- */

struct board {
    const struct rp_program *p;
    struct rp_arena *arena;
    struct rp_err *err;
    struct rp_proto_writer w;
    struct rp_map taken; /* hashes of names */
    const char **name;   /* of operations */
};

static enum rp_code name_op(struct board *b, uint32_t op, const char *path)
{
    const char *own = rp_program_text(b->p, b->p->op_name.at[op]), *slash = strrchr(own, '/');
    char *name = rp_arena_printf(b->arena, "%s%s%s", path, *path ? "/" : "",
                                 slash && slash[1] ? slash + 1
                                 : *own            ? own
                                                   : "unnamed");
    uint32_t first;

    RP_TRY(rp_err_need(name, b->err, "writing for TensorBoard"));

    /* Names must match [A-Za-z0-9.][A-Za-z0-9_.\\/-]*, without empty components. */
    char *to = name;
    for (const char *from = name; *from; from++) {
        bool good = isalnum((unsigned char)*from) || strchr("._/-", *from);
        char c = good ? *from : '_';

        if ((to == name || to[-1] == '/') && (c == '/' || c == '_' || c == '-'))
            c = '.';
        *to++ = c;
    }
    *to = 0;
    if (to > name && to[-1] == '/')
        to[-1] = '.';

    RP_TRY(rp_map_intern(&b->taken, rp_hash_bytes(name, strlen(name)), op, &first, b->err));
    if (first != op)
        name = rp_arena_printf(b->arena, "%s.op%u", name, op);
    b->name[op] = name;
    return rp_err_need(name, b->err, "writing for TensorBoard");
}

static void put_text_attr(struct rp_proto_writer *w, const char *key, const char *text)
{
    size_t entry = rp_proto_begin(w, NODE_ATTR), value;

    rp_proto_put_text(w, ENTRY_KEY, key);
    value = rp_proto_begin(w, ENTRY_VALUE);
    rp_proto_put_text(w, VALUE_STRING, text);
    rp_proto_end(w, value);
    rp_proto_end(w, entry);
}

/* TensorBoard labels edges with the shape. */
static void put_shape(struct board *b, uint32_t op)
{
    const struct rp_op_shape *s = &b->p->shapes.at[b->p->shape.at[op]];
    struct rp_proto_writer *w = &b->w;

    if (s->elem == RP_ELEM_TUPLE || s->flags & RP_SHAPE_UNKNOWN)
        return;
    size_t entry = rp_proto_begin(w, NODE_ATTR);
    rp_proto_put_text(w, ENTRY_KEY, "_output_shapes");
    size_t value = rp_proto_begin(w, ENTRY_VALUE);
    size_t list = rp_proto_begin(w, VALUE_LIST);
    size_t shape = rp_proto_begin(w, LIST_SHAPE);
    for (uint32_t i = 0; i < s->n; i++) {
        size_t dim = rp_proto_begin(w, SHAPE_DIM);

        rp_proto_put_varint(w, DIM_SIZE, (uint64_t)b->p->dims.at[s->first + i]);
        rp_proto_end(w, dim);
    }
    rp_proto_end(w, shape);
    rp_proto_end(w, list);
    rp_proto_end(w, value);
    rp_proto_end(w, entry);
}

static void put_node(struct board *b, uint32_t op)
{
    const struct rp_program *p = b->p;
    struct rp_ids ids = rp_op_operands(p, op);
    const char *scope = rp_program_text(p, p->metas.at[p->meta.at[op]].op_name);
    struct rp_source_line at;
    size_t node = rp_proto_begin(&b->w, GRAPH_NODE);
    char text[600];

    rp_proto_put_text(&b->w, NODE_NAME, b->name[op]);
    rp_proto_put_text(&b->w, NODE_OP, rp_op_opcode_name(p, op));
    for (uint32_t i = 0; i < ids.n; i++)
        rp_proto_put_text(&b->w, NODE_INPUT, b->name[ids.at[i]]);
    put_shape(b, op);
    rp_shape_text(p, p->shape.at[op], true, text, sizeof text);
    put_text_attr(&b->w, "shape", text);
    put_text_attr(&b->w, "name", rp_program_text(p, p->op_name.at[op]));
    if (*scope)
        put_text_attr(&b->w, "op_name", scope);
    if (rp_op_source(p, op, &at)) {
        snprintf(text, sizeof text, "%s:%d", at.file, at.line);
        put_text_attr(&b->w, "source", text);
    }
    rp_proto_end(&b->w, node);
}

static enum rp_code put_graph(struct board *b, struct rp_proto_writer *event)
{
    struct rp_bytes bytes;

    for (uint32_t op = 0; op < b->p->nops; op++)
        put_node(b, op);
    RP_TRY(rp_proto_written(&b->w, &bytes, b->err));
    rp_proto_put_bytes(event, EVENT_GRAPH_DEF, bytes.at, bytes.n);
    return RP_OK;
}

static enum rp_code put_events(struct board *b, struct rp_out *to)
{
    struct rp_proto_writer event = {0};
    struct rp_hashes hashes;
    struct rp_tree tree;
    const char **paths;

    RP_TRY(rp_program_hash(b->p, b->arena, &hashes, b->err));
    RP_TRY(rp_tree_build(b->p, &hashes, b->arena, &tree, b->err));
    RP_TRY(rp_paths_make(&tree, b->arena, &paths, b->err));
    b->name = RP_ARENA_NEW(b->arena, const char *, (size_t)b->p->nops + 1);
    RP_TRY(rp_err_need(b->name, b->err, "writing for TensorBoard"));
    for (uint32_t op = 0; op < b->p->nops; op++)
        RP_TRY(name_op(b, op, paths[tree.home[op]]));
    rp_proto_put_fixed64(&event, EVENT_WALL_TIME, 0);
    rp_proto_put_text(&event, EVENT_FILE_VERSION, "brain.Event:2");
    enum rp_code code = put_record(to, &event, b->err);
    rp_proto_rewind(&event);
    rp_proto_put_fixed64(&event, EVENT_WALL_TIME, 0);
    if (code == RP_OK)
        code = put_graph(b, &event);
    if (code == RP_OK)
        code = put_record(to, &event, b->err);
    rp_proto_writer_release(&event);
    return code;
}

enum rp_code rp_draw_tensorboard(const struct rp_program *p, struct rp_out *to, struct rp_err *err)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct board b = {.p = p, .arena = &arena, .err = err};
    enum rp_code code = put_events(&b, to);
    rp_map_release(&b.taken);
    rp_proto_writer_release(&b.w);
    rp_arena_release(&arena);
    return code;
}
