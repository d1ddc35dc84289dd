/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the hatchet files of Proton, Triton's profiler: trees of scopes with kernels as their
 * leaves, and at the end descriptions of the devices.
 *
 *     [{"frame": {"name": "ROOT"}, "metrics": {}, "children": [
 *          {"frame": {"name": "/src/model.py:12@forward"}, "metrics": {"count": 3, "time (ns)": 9,
 *           "device_id": "0", "device_type": "CUDA"}, "children": []}]},
 *      {"CUDA": {"0": {"arch": "90", …}}}]
 *
 * A node with a metric becomes a sample of the scopes around it, weighed by the first of these that
 * the file has: time, samples of program counters, cycles, calls. There are no times of day. The
 * children of a node may come before its name, so nodes are kept until all is read.
 */
#include "base/decimal.h"
#include "formats/sampled/sampled.h"
#include "io/json_pull.h"

#include <stdio.h>

enum { TIME, PC_SAMPLES, CYCLES, CALLS, METRICS };

static const struct {
    const char *key, *name;
    uint32_t unit;
} metrics[METRICS] = {{"time (ns)", "device time", RP_WEIGHT_NS},
                      {"num_samples", "device samples", RP_WEIGHT_COUNT},
                      {"cycles", "device cycles", RP_WEIGHT_COUNT},
                      {"count", "device calls", RP_WEIGHT_COUNT}};

struct proton_node {
    uint32_t parent; /* index in the list, before its own, or RP_NONE */
    uint32_t stack;
    struct rp_call_frame frame;
    rp_str type, device; /* such as "CUDA" and "0"; 0: not given */
    int64_t value[METRICS];
    uint8_t has; /* bits of metrics */
};

struct proton {
    struct rp_profile p;
    RP_VEC(struct proton_node) nodes;
    RP_VEC(uint32_t) open; /* nodes that are being read, the innermost last */
};

static enum rp_code intern_token(struct proton *r, struct rp_json_token *v, rp_str *out)
{
    if (v->has_escapes && !rp_json_decode(r->p.json, v))
        return rp_json_finish(r->p.json, r->p.err);
    return rp_proto_trace_intern(&r->p.t, (struct rp_bytes){(const uint8_t *)v->text, v->len}, out,
                                 r->p.err);
}

/* "/src/model.py:12@forward" is a line of Python; other names are those of scopes and kernels. */
static enum rp_code set_name(struct proton *r, struct rp_call_frame *frame, struct rp_json_token *v)
{
    int64_t line = 0;

    if (v->has_escapes && !rp_json_decode(r->p.json, v))
        return rp_json_finish(r->p.json, r->p.err);
    const char *end = v->text + v->len;
    const char *at = memrchr(v->text, '@', v->len);
    const char *colon = at ? memrchr(v->text, ':', (size_t)(at - v->text)) : NULL;
    if (!colon ||
        !rp_bytes_number((struct rp_bytes){(const uint8_t *)colon + 1, (size_t)(at - colon - 1)},
                         &line))
        return intern_token(r, v, &frame->name);
    frame->line = line < UINT32_MAX ? (uint32_t)line : 0;
    frame->kind = RP_FRAME_PYTHON;
    RP_TRY(rp_proto_trace_intern(
        &r->p.t, (struct rp_bytes){(const uint8_t *)v->text, (size_t)(colon - v->text)},
        &frame->file, r->p.err));
    return rp_proto_trace_intern(&r->p.t,
                                 (struct rp_bytes){(const uint8_t *)at + 1, (size_t)(end - at - 1)},
                                 &frame->name, r->p.err);
}

static enum rp_code set_metric(struct proton *r, struct proton_node *node,
                               const struct rp_json_token *key, struct rp_json_token *v)
{
    int64_t n;

    if (rp_json_key_is(key, "device_id") && v->kind == RP_JSON_STRING)
        return intern_token(r, v, &node->device);
    if (rp_json_key_is(key, "device_type") && v->kind == RP_JSON_STRING)
        return intern_token(r, v, &node->type);
    for (unsigned i = 0; i < METRICS && v->kind == RP_JSON_NUMBER; i++)
        if (rp_json_key_is(key, metrics[i].key) &&
            !(rp_decimal_parse(v->text, v->len, 0, &n) & (RP_DECIMAL_INVALID | RP_DECIMAL_RANGE)) &&
            n > 0 && n < RP_TIME_MAX_NS) {
            node->value[i] = n;
            node->has |= (uint8_t)(1u << i);
        }
    return RP_OK;
}

/* Reads the object 'frame' or 'metrics' of the innermost node. */
static enum rp_code read_object(struct proton *r, bool frame)
{
    struct proton_node *node = &r->nodes.at[r->open.at[r->open.n - 1]];
    struct rp_json_token key, v;

    if (*r->p.json->at != '{') {
        rp_json_skip(r->p.json);
        return RP_OK;
    }
    rp_json_value(r->p.json, &v);
    while (rp_json_field(r->p.json, &key)) {
        if (*r->p.json->at == '{' || *r->p.json->at == '[')
            rp_json_skip(r->p.json);
        else if (rp_json_value(r->p.json, &v) == RP_JSON_NONE)
            break;
        else if (!frame)
            RP_TRY(set_metric(r, node, &key, &v));
        else if (rp_json_key_is(&key, "name") && v.kind == RP_JSON_STRING)
            RP_TRY(set_name(r, &node->frame, &v));
    }
    return RP_OK;
}

static enum rp_code read_field(struct proton *r, const struct rp_json_token *key)
{
    struct rp_json_token v;

    if (rp_json_key_is(key, "frame"))
        return read_object(r, true);
    if (rp_json_key_is(key, "metrics"))
        return read_object(r, false);
    if (rp_json_key_is(key, "children") && *r->p.json->at == '[')
        rp_json_value(r->p.json, &v);
    else
        rp_json_skip(r->p.json);
    return RP_OK;
}

/* ------------------------------------------------------------------ samples */

/* Whether a node is a root called ROOT, which says nothing, or the node of the devices, which has
   no name. */
static bool is_bare(const struct proton *r, const struct proton_node *node)
{
    return !node->frame.name ||
           (node->parent == RP_NONE &&
            !strcmp(rp_builder_borrow_str(r->p.t.builder, node->frame.name, NULL), "ROOT"));
}

static enum rp_code add_nodes(struct proton *r)
{
    unsigned metric = 0, has = 0;

    for (size_t i = 0; i < r->nodes.n; i++)
        has |= r->nodes.at[i].has;
    while (metric + 1 < METRICS && !(has & 1u << metric))
        metric++;
    RP_TRY(rp_profile_unit(&r->p, metrics[metric].unit, metrics[metric].name));
    for (size_t i = 0; i < r->nodes.n; i++) {
        struct proton_node *node = &r->nodes.at[i];
        uint32_t id;
        rp_track track;
        node->stack = node->parent == RP_NONE ? RP_NONE : r->nodes.at[node->parent].stack;
        if (!is_bare(r, node)) {
            RP_TRY(rp_builder_frame(r->p.t.builder, &node->frame, &id, r->p.err));
            RP_TRY(rp_builder_stack(r->p.t.builder, node->stack, id, &node->stack, r->p.err));
        }
        if (!(node->has & 1u << metric))
            continue;
        const char *type = rp_builder_borrow_str(r->p.t.builder, node->type, NULL);
        const char *device = rp_builder_borrow_str(r->p.t.builder, node->device, NULL);
        char name[64];
        snprintf(name, sizeof name, "%.40s %.20s", *type ? type : "device", device);
        RP_TRY(rp_profile_thread(&r->p, 0, RP_PROFILE_BY_NAME, rp_bytes_trim(rp_bytes_of(name)),
                                 &track));
        r->p.stack = node->stack;
        RP_TRY(rp_profile_sample(&r->p, track, RP_NO_TS, node->value[metric], 0));
    }
    return RP_OK;
}

static void proton_release(struct proton *r)
{
    rp_profile_release(&r->p);
    rp_vec_release(&r->nodes);
    rp_vec_release(&r->open);
}

static enum rp_code read_proton(struct rp_input *in, const struct rp_read_options *options,
                                struct rp_import *to, struct rp_err *err)
{
    RP_SCOPED(proton_release) struct proton r = {0};

    RP_TRY(rp_profile_begin(&r.p, in, options, "proton", err));
    RP_TRY(rp_profile_json(&r.p));

    /* Walks lists of nodes, and nodes, as deep as the limits of JSON allow, without recursion. */
    struct rp_json_token v;
    if (rp_json_value(r.p.json, &v) != RP_JSON_ARRAY)
        return rp_json_failed(r.p.json)
                   ? rp_json_finish(r.p.json, r.p.err)
                   : rp_err_set_at(r.p.err, RP_FORMAT, 0, "byte 0: a list of trees is expected");
    while (rp_json_depth(r.p.json)) {
        if (rp_json_in_object(r.p.json)) {
            if (rp_json_field(r.p.json, &v))
                RP_TRY(read_field(&r, &v));
            else if (r.open.n)
                r.open.n--;
        } else if (rp_json_element(r.p.json)) {
            if (*r.p.json->at != '{') {
                rp_json_skip(r.p.json);
            } else {
                struct proton_node node = {.parent = r.open.n ? r.open.at[r.open.n - 1] : RP_NONE,
                                           .stack = RP_NONE};
                if (r.nodes.n >= r.p.t.limits.events)
                    return rp_err_set(r.p.err, RP_LIMIT, "more than %llu nodes in one tree",
                                      (unsigned long long)r.p.t.limits.events);
                RP_TRY(rp_vec_push(&r.open, (uint32_t)r.nodes.n, r.p.err));
                RP_TRY(rp_vec_push(&r.nodes, node, r.p.err));
                rp_json_value(r.p.json, &v);
            }
        }
        if (rp_json_failed(r.p.json))
            break;
    }
    RP_TRY(rp_json_finish(r.p.json, r.p.err));
    RP_TRY(add_nodes(&r));
    return rp_profile_end(&r.p, to);
}

/* Recognises a first element that is a node: it has children, metrics or a frame that is an
   object. */
static enum rp_sniff sniff_proton(const uint8_t *head, size_t n, const char *file)
{
    size_t at = rp_sniff_space(head, n, 0);

    (void)file;
    if (at == n || head[at] != '[' || rp_sniff_json_key(head, n, 2, "children") < 1)
        return RP_SNIFF_NO;
    return rp_sniff_json_key(head, n, 2, "frame") >= 0 &&
                   rp_sniff_json_key(head, n, 2, "metrics") >= 0
               ? RP_SNIFF_CERTAIN
               : RP_SNIFF_NO;
}

const struct rp_format rp_format_proton = {
    .name = "proton",
    .summary = "tree of Proton, Triton's profiler (hatchet): device time by scope, without times",
    .files = "*.hatchet, *.json",
    .written_by = "triton.profiler",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_proton,
    .read = read_proton,
};
