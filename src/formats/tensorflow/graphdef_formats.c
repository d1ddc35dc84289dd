/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats of TensorFlow graphs are recognised by a node, which has a name and an operation that
 * begins with a capital or '_'; no other message has these in the same fields.
 */
#include "abi/proto/blade.h"
#include "abi/proto/tensorflow.h"
#include "formats/formats.h"
#include "formats/programs.h"

#include <string.h>

/* Finds the first field, if it has that number; it may extend past the end of the bytes. */
static bool first_field(struct rp_bytes s, uint32_t number, struct rp_bytes *content, bool *whole)
{
    const uint8_t *at = s.at, *end = s.at + s.n;
    uint64_t tag, n;

    at = at < end ? rp_proto_varint_at(at, end, &tag) : NULL;
    if (!at || tag != RP_PROTO_KEY(number, RP_WIRE_BYTES) || at == end)
        return false;
    at = rp_proto_varint_at(at, end, &n);
    if (!at)
        return false;
    *whole = n <= (uint64_t)(end - at);
    *content = (struct rp_bytes){at, *whole ? (size_t)n : (size_t)(end - at)};
    return true;
}

static bool printable(struct rp_bytes s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.at[i] < 0x20 || s.at[i] > 0x7e)
            return false;
    return s.n > 0 && s.n < 2048;
}

static bool like_node(struct rp_bytes s)
{
    struct rp_bytes name, op, rest;
    bool whole;

    if (!first_field(s, RP_TF_NODE_NAME, &name, &whole) || !whole || !printable(name))
        return false;
    rest = (struct rp_bytes){name.at + name.n, (size_t)(s.at + s.n - name.at) - name.n};
    return first_field(rest, RP_TF_NODE_OP, &op, &whole) && whole && printable(op) &&
           ((op.at[0] >= 'A' && op.at[0] <= 'Z') || op.at[0] == '_');
}

static bool like_graph(struct rp_bytes s)
{
    struct rp_bytes node, library, function, signature, name;
    bool whole;

    if (first_field(s, RP_TF_GRAPH_NODE, &node, &whole))
        return like_node(node);
    return first_field(s, RP_TF_GRAPH_LIBRARY, &library, &whole) &&
           first_field(library, RP_TF_LIBRARY_FUNCTION, &function, &whole) &&
           first_field(function, RP_TF_FUNCTION_SIGNATURE, &signature, &whole) &&
           first_field(signature, RP_TF_OP_NAME, &name, &whole) && printable(name);
}

static enum rp_sniff sniff_graph(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return like_graph((struct rp_bytes){head, n}) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

static enum rp_code read_bytes(struct rp_input *in, const struct rp_read_options *options,
                               struct rp_import *to, struct rp_err *err)
{
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    RP_TRY(rp_program_new("graphdef", &to->program, err));
    to->borrows_input = true;
    to->content_bytes = n;
    return rp_graphdef_fill(to->program, (struct rp_bytes){bytes, n}, options->limits, err);
}

const struct rp_format rp_format_graphdef = {
    .name = "graphdef",
    .summary = "TensorFlow GraphDef as a protobuf",
    .files = "*.pb",
    .written_by = "TensorFlow",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = sniff_graph,
    .read = read_bytes,
};

/* ---- text ---- */

/* Recognises "node {" with "name:" after it, or "library {" or "versions {" at the front. */
static enum rp_sniff sniff_text(const uint8_t *head, size_t n, const char *file)
{
    static const char *const first[] = {"node {", "library {", "versions {",
                                        "node:{", "node{",     "signature {"};
    size_t at = rp_sniff_space(head, n, 0);

    (void)file;
    for (;;) { /* comments */
        if (at >= n || head[at] != '#')
            break;
        const uint8_t *line = memchr(head + at, '\n', n - at);
        at = rp_sniff_space(head, n, line ? (size_t)(line - head) : n);
    }
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (n - at > strlen(first[i]) && memcmp(head + at, first[i], strlen(first[i])) == 0)
            return RP_SNIFF_CERTAIN;
    return RP_SNIFF_NO;
}

static enum rp_code read_text(struct rp_input *in, const struct rp_read_options *options,
                              struct rp_import *to, struct rp_err *err)
{
    const uint8_t *bytes;
    size_t n, at;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    RP_TRY(rp_program_new("graphdef", &to->program, err));
    to->content_bytes = n;
    const char *text = (const char *)bytes;
    at = rp_sniff_space(bytes, n, 0);
    if (n - at > 9 && memcmp(text + at, "signature", 9) == 0) { /* a function alone */
        text = rp_arena_printf(&to->program->arena, "library{function{%.*s\n}}",
                               n < INT32_MAX ? (int)n : INT32_MAX, text);
        RP_TRY(rp_err_need(text, err, "reading a function"));
        n = strlen(text);
    }
    return rp_graphdef_fill_text(to->program, text, n, options->limits, err);
}

const struct rp_format rp_format_graphdef_text = {
    .name = "graphdef-text",
    .summary = "TensorFlow GraphDef as protobuf text",
    .files = "*.pbtxt",
    .written_by = "TensorFlow",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = sniff_text,
    .read = read_text,
};

/* ---- graphs inside other messages ---- */

/* Finds the graph inside a message, and fills the program with it. */
static enum rp_code read_inner(struct rp_input *in, const struct rp_read_options *options,
                               struct rp_bytes (*find)(struct rp_bytes), struct rp_import *to,
                               struct rp_err *err)
{
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    struct rp_bytes graph = find((struct rp_bytes){bytes, n});
    if (!graph.n)
        return rp_err_set(err, RP_FORMAT, "the file holds no graph");
    RP_TRY(rp_program_new("graphdef", &to->program, err));
    to->borrows_input = true;
    to->content_bytes = n;
    return rp_graphdef_fill(to->program, graph, options->limits, err);
}

static struct rp_bytes graph_of_meta(struct rp_bytes s)
{
    return rp_proto_find(s, RP_TF_META_GRAPH_GRAPH_DEF);
}

static struct rp_bytes graph_of_saved(struct rp_bytes s)
{
    return graph_of_meta(rp_proto_find(s, RP_TF_SAVED_MODEL_META_GRAPHS));
}

/* Recognises the version of the schema as a small number, then a MetaGraphDef that begins with a
   message. */
static enum rp_sniff sniff_saved(const uint8_t *head, size_t n, const char *file)
{
    const uint8_t schema_version =
        RP_PROTO_KEY(RP_TF_SAVED_MODEL_SAVED_MODEL_SCHEMA_VERSION, RP_WIRE_VARINT);
    struct rp_bytes meta, info;
    bool whole;

    (void)file;
    if (n < 8 || head[0] != schema_version || head[1] > 9 ||
        !first_field((struct rp_bytes){head + 2, n - 2}, RP_TF_SAVED_MODEL_META_GRAPHS, &meta,
                     &whole))
        return RP_SNIFF_NO;
    return first_field(meta, RP_TF_META_GRAPH_META_INFO_DEF, &info, &whole) ? RP_SNIFF_LIKELY
                                                                            : RP_SNIFF_NO;
}

static enum rp_code read_saved(struct rp_input *in, const struct rp_read_options *options,
                               struct rp_import *to, struct rp_err *err)
{
    return read_inner(in, options, graph_of_saved, to, err);
}

const struct rp_format rp_format_saved_model = {
    .name = "saved-model",
    .summary = "TensorFlow SavedModel",
    .files = "saved_model.pb",
    .written_by = "tf.saved_model.save",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = sniff_saved,
    .read = read_saved,
};

/* Recognises a meta_info_def with a version or a list of operations, then the graph. The list is
   often longer than the part of the file that is available. */
static enum rp_sniff sniff_meta(const uint8_t *head, size_t n, const char *file)
{
    struct rp_bytes s = {head, n}, info, ops, op, name, graph;
    bool whole = true;

    (void)file;
    if (first_field(s, RP_TF_META_GRAPH_META_INFO_DEF, &info, &whole)) {
        if (whole && first_field((struct rp_bytes){info.at + info.n,
                                                   (size_t)(s.at + s.n - info.at) - info.n},
                                 RP_TF_META_GRAPH_GRAPH_DEF, &graph, &whole))
            return like_graph(graph) && info.n && *info.at != RP_PROTO_KEY(1, RP_WIRE_VARINT)
                       ? RP_SNIFF_CERTAIN
                       : RP_SNIFF_NO;
        if (!first_field(info, RP_TF_META_INFO_STRIPPED_OP_LIST, &ops, &whole) ||
            !first_field(ops, RP_TF_OP_LIST_OP, &op, &whole) ||
            !first_field(op, RP_TF_OP_NAME, &name, &whole) || !whole || !printable(name))
            return RP_SNIFF_NO;
        return name.at[0] >= 'A' && name.at[0] <= 'Z' ? RP_SNIFF_LIKELY : RP_SNIFF_NO;
    }
    return first_field(s, RP_TF_META_GRAPH_GRAPH_DEF, &graph, &whole) &&
                   first_field(graph, RP_TF_GRAPH_NODE, &op, &whole) && like_node(op)
               ? RP_SNIFF_CERTAIN
               : RP_SNIFF_NO;
}

static enum rp_code read_meta(struct rp_input *in, const struct rp_read_options *options,
                              struct rp_import *to, struct rp_err *err)
{
    return read_inner(in, options, graph_of_meta, to, err);
}

const struct rp_format rp_format_meta_graph = {
    .name = "meta-graph",
    .summary = "TensorFlow MetaGraphDef",
    .files = "*.meta",
    .written_by = "tf.train.Saver",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = sniff_meta,
    .read = read_meta,
};

/* ---- libraries of functions ---- */

/* Whether this is a FunctionDef: a signature with a name, and a node somewhere after it. */
static bool like_function(struct rp_bytes s)
{
    struct rp_bytes signature, name;
    bool whole;

    return first_field(s, RP_TF_FUNCTION_SIGNATURE, &signature, &whole) &&
           first_field(signature, RP_TF_OP_NAME, &name, &whole) && printable(name) &&
           like_node(rp_proto_find(s, RP_TF_FUNCTION_NODE_DEF));
}

static bool like_library(struct rp_bytes s)
{
    struct rp_bytes function;
    bool whole;

    return first_field(s, RP_TF_LIBRARY_FUNCTION, &function, &whole) && like_function(function);
}

static enum rp_sniff sniff_library(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return like_library((struct rp_bytes){head, n}) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

/* Reads the library like that of a graph without nodes. */
static enum rp_code fill_library(struct rp_program *p, struct rp_bytes library,
                                 const struct rp_limits *limits, struct rp_err *err)
{
    RP_SCOPED(rp_proto_writer_release) struct rp_proto_writer w = {0};
    struct rp_bytes bytes;

    rp_proto_put_bytes(&w, RP_TF_GRAPH_LIBRARY, library.at, library.n);
    RP_TRY(rp_proto_written(&w, &bytes, err));
    const char *kept = rp_arena_copy(&p->arena, (const char *)bytes.at, bytes.n);

    return kept
               ? rp_graphdef_fill(p, (struct rp_bytes){(const uint8_t *)kept, bytes.n}, limits, err)
               : rp_err_nomem(err, "reading functions");
}

static enum rp_code read_library(struct rp_input *in, const struct rp_read_options *options,
                                 struct rp_import *to, struct rp_err *err)
{
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    RP_TRY(rp_program_new("graphdef", &to->program, err));
    to->content_bytes = n;
    return fill_library(to->program, (struct rp_bytes){bytes, n}, options->limits, err);
}

const struct rp_format rp_format_tf_library = {
    .name = "function-library",
    .summary = "TensorFlow FunctionDefLibrary",
    .files = "*.pb",
    .written_by = "TensorFlow",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = sniff_library,
    .read = read_library,
};

/* ---- BladeDISC ---- */

/* A TaoCompilerInput begins with options that name a device and hold a library of functions. */
static enum rp_sniff sniff_tao(const uint8_t *head, size_t n, const char *file)
{
    struct rp_bytes options, device;
    bool whole;

    (void)file;
    return first_field((struct rp_bytes){head, n}, RP_BLADE_INPUT_OPTIONS, &options, &whole) &&
                   first_field(options, RP_BLADE_OPTIONS_DEVICE_TYPE, &device, &whole) && whole &&
                   printable(device) &&
                   like_library(rp_proto_find(options, RP_BLADE_OPTIONS_FLIB_DEF))
               ? RP_SNIFF_CERTAIN
               : RP_SNIFF_NO;
}

static enum rp_code read_tao(struct rp_input *in, const struct rp_read_options *options,
                             struct rp_import *to, struct rp_err *err)
{
    const uint8_t *bytes;
    uint32_t id;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    struct rp_bytes all = {bytes, n};
    RP_TRY(rp_program_new("graphdef", &to->program, err));
    struct rp_program *p = to->program;
    to->content_bytes = n;
    RP_TRY(fill_library(
        p, rp_proto_find(rp_proto_find(all, RP_BLADE_INPUT_OPTIONS), RP_BLADE_OPTIONS_FLIB_DEF),
        options->limits, err));
    struct rp_bytes name =
        rp_proto_find(rp_proto_find(all, RP_BLADE_INPUT_FUNCTION), RP_TF_NAME_ATTRS_NAME);
    if (!name.n)
        return RP_OK;
    RP_TRY(rp_program_string(p, (const char *)name.at, name.n, &id, err));
    p->name = id;
    for (uint32_t i = 0; i < p->computations.n; i++)
        if (p->computations.at[i].name == id)
            p->entry = i;
    return RP_OK;
}

const struct rp_format rp_format_tao = {
    .name = "blade-input",
    .summary = "BladeDISC compiler input",
    .files = "*.input",
    .written_by = "BladeDISC",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = sniff_tao,
    .read = read_tao,
};
