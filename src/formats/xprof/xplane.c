/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads XSpace, the file of XProf (*.xplane.pb), which JAX, TensorFlow and PyTorch/XLA record on
 * hosts, GPUs and TPUs. Each plane is read twice; memory is that of the model, the tables of one
 * plane, and the input if it is compressed.
 *
 *   ends inside a plane       the planes before it, with a warning: the names of a plane come after
 *                             its events, so a part of one is useless
 *   damaged inside a plane    an error; with salvage, what comes before it and the next planes
 */
#include "formats/xprof/xplane.h"
#include "base/clock.h"
#include "base/each.h"

#include <stdlib.h>

#define MANGLED_MIN 8 /* number of U+FFFD marks in the first bytes */

/* -------------------------------------------------------------------------- sniffing */

/* Whether the field belongs to an XPlane, which no other message resembles: 1 is a number, all
   others are nested. */
static bool fits_plane(const struct rp_proto_item *it)
{
    return it->number >= RP_XPLANE_ID && it->number <= RP_XPLANE_STATS &&
           it->wire ==
               (it->number == RP_XPLANE_ID ? (uint32_t)RP_WIRE_VARINT : (uint32_t)RP_WIRE_BYTES);
}

/* Whether this is an entry of a table (key and value), or a line with its id, name and time. */
static bool fits_inside(const struct rp_proto_cursor *up, const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(up, item);
    bool line = item->number == RP_XPLANE_LINES, any = false;
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        bool number = line ? it.number != RP_XLINE_NAME && it.number != RP_XLINE_EVENTS &&
                                 it.number != RP_XLINE_DISPLAY_NAME
                           : it.number == RP_XENTRY_KEY;

        if (it.number > (line ? RP_XLINE_DISPLAY_NAME + 1u : RP_XENTRY_VALUE) ||
            it.wire != (number ? (uint32_t)RP_WIRE_VARINT : (uint32_t)RP_WIRE_BYTES))
            return false;
        any = true;
    }
    return any && !c.why;
}

static bool known_plane(struct rp_bytes name)
{
    return rp_bytes_begin(name, "/host:") || rp_bytes_begin(name, "/device:") ||
           rp_bytes_are(name, "Task Environment");
}

/* Recognises the first plane, which may be longer than the head. */
static enum rp_sniff sniff_plane(const uint8_t *head, size_t n)
{
    struct rp_proto_cursor c = rp_proto_cursor(head, n, 0, 8);
    enum rp_sniff fit = RP_SNIFF_NO;
    struct rp_proto_item it;
    bool is_named = false;

    while (rp_proto_next(&c, &it)) {
        if (!fits_plane(&it))
            return RP_SNIFF_NO;
        if (it.number == RP_XPLANE_NAME) {
            if (!rp_proto_is_text(it.bytes))
                return RP_SNIFF_NO;
            if (known_plane(it.bytes))
                return RP_SNIFF_CERTAIN;
            is_named = true;
        } else if (it.number >= RP_XPLANE_LINES && it.number <= RP_XPLANE_STAT_METADATA) {
            if (!fits_inside(&c, &it))
                return RP_SNIFF_NO;
            if (is_named)
                fit = RP_SNIFF_LIKELY;
        }
    }
    return fit;
}

static bool contains(const uint8_t *head, size_t n, const char *word)
{
    return memmem(head, n, word, strlen(word)) != NULL;
}

/* Recognises binary data that went through a text decoder, in order to refuse it with a reason. */
static enum rp_sniff sniff_mangled(const uint8_t *head, size_t n, const char *file)
{
    if (head[0] != '\n' || rp_proto_count_mangled(head, n) < MANGLED_MIN)
        return RP_SNIFF_NO;
    if (strstr(file, ".xplane.pb") || contains(head, n, "/device:") || contains(head, n, "/host:"))
        return RP_SNIFF_LIKELY;
    return RP_SNIFF_NO;
}

static enum rp_sniff sniff_xplane(const uint8_t *head, size_t n, const char *file)
{
    const uint8_t *p = head + 1;
    uint64_t len = 0;
    enum rp_sniff fit = RP_SNIFF_NO;

    if (!n || head[0] != '\n') /* field 1, nested */
        return RP_SNIFF_NO;
    p = rp_proto_varint_at(p, head + n, &len);
    if (p && len >= 2) {
        size_t left = (size_t)(head + n - p);

        fit = sniff_plane(p, len < left ? (size_t)len : left);
    }
    return fit == RP_SNIFF_NO ? sniff_mangled(head, n, file) : fit;
}

/* -------------------------------------------------------------------------- reading */

static enum rp_code open_reader(struct rp_xplane *r, struct rp_input *in,
                                const struct rp_read_options *options, struct rp_err *err)
{
    rp_map_init(&r->pids);
    rp_map_init(&r->line_ids);
    rp_map_init(&r->key_of);
    rp_map_init(&r->child_of);
    rp_map_init(&r->stat_of.large);
    rp_map_init(&r->label_of.large);
    RP_TRY(rp_proto_trace_init(&r->t, in, options, "xplane", err));
    RP_TRY(rp_emit_open_memory(&r->json, err));
    rp_xplane_fill_kinds(r);
    static const char *const names[] = {"long_name", "offset_ps", "duration_ps", "num_occurrences"};
    uint32_t *const keys[] = {&r->long_name_key, &r->offset_key, &r->duration_key,
                              &r->occurrences_key};
    struct rp_xplane_node root = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct rp_bytes name = {(const uint8_t *)names[i], strlen(names[i])};

        RP_TRY(rp_xplane_key(r, name, keys[i], err));
    }
    return rp_vec_push(&r->nodes, root, err);
}

static enum rp_code read_space(struct rp_xplane *r, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(r->t.bytes, r->t.n, 0, r->t.limits.depth);
    struct rp_proto_item it;
    uint32_t notes[RP_XSPACE_HOSTNAMES + 1] = {0};

    while (rp_proto_next(&c, &it)) {
        if (it.wire != RP_WIRE_BYTES)
            continue;
        if (it.number >= RP_XSPACE_ERRORS && it.number <= RP_XSPACE_HOSTNAMES)
            RP_TRY(rp_xplane_read_note(r, &it, &notes[it.number], err));
        if (it.number != RP_XSPACE_PLANES)
            continue;
        enum rp_code code = rp_xplane_read_plane(r, &c, &it, err);
        if (code != RP_OK) {
            /* This plane cannot be read to its end. */
            struct rp_err why = RP_ERR_INIT;
            if (err)
                why = *err;
            if (code != RP_FORMAT || !r->t.options->salvage)
                return code;
            r->t.health->salvaged = 1;
            RP_TRY(rp_builder_warn(
                r->t.builder, err,
                "plane '%.*s' is damaged; everything before the damage was read: %.*s",
                (int)(r->plane_name.n < 80 ? r->plane_name.n : 80), (const char *)r->plane_name.at,
                (int)strcspn(why.text, "\n"), why.text));
        }
        rp_input_release_before(r->t.in, (size_t)(c.at - r->t.bytes));
        RP_TRY(rp_proto_trace_progress(&r->t, c.at, err));
    }
    if (c.why) {
        /* If the file ends inside a field, what comes before it is a trace, provided that it has
         * events. */
        size_t marks = rp_proto_count_mangled(r->t.bytes, r->t.n);
        enum rp_code code = rp_proto_finish(&c, err);
        if (marks >= MANGLED_MIN)
            return rp_proto_refuse_mangled(marks, r->t.n, err);
        if (code != RP_FORMAT || !r->t.nevents)
            return code;
        r->t.health->truncated = 1;
        return rp_builder_warn(
            r->t.builder, err,
            "the file is truncated at byte %zu, inside a plane, which is skipped", r->t.n);
    }
    if (rp_input_truncated(r->t.in)) {
        r->t.health->truncated = 1;
        return rp_builder_warn(r->t.builder, err, "the compressed file is truncated at byte %zu",
                               r->t.n);
    }
    return RP_OK;
}

static enum rp_code read_xplane(struct rp_input *in, const struct rp_read_options *options,
                                struct rp_import *to, struct rp_err *err)
{
    struct rp_xplane *r = calloc(1, sizeof *r);
    int64_t begin_ns = rp_clock_ns();

    RP_TRY(rp_err_need(r, err, "reading a trace"));
    enum rp_code code = open_reader(r, in, options, err);
    if (code == RP_OK)
        code = read_space(r, err);
    if (code == RP_OK)
        code = rp_xplane_end_facts(r, err);
    struct rp_proto_trace t = r->t;
    r->t.builder = code == RP_OK ? NULL : r->t.builder;
    rp_proto_trace_release(&r->t);
    rp_emit_abandon(&r->json);
    RP_EACH(rp_map_release, &r->pids, &r->line_ids, &r->key_of, &r->child_of, &r->stat_of.large,
            &r->label_of.large);
    RP_EACH(rp_vec_release, &r->stat_of.small, &r->label_of.small, &r->stats, &r->labels,
            &r->label_args, &r->label_keys, &r->line_names, &r->keys);
    RP_EACH(rp_vec_release, &r->nodes, &r->args);
    free(r); /* released first, because the passes need memory */
    return code == RP_OK ? rp_proto_trace_finish(&t, to, begin_ns, err) : code;
}

const struct rp_format rp_format_xplane = {
    .name = "xplane",
    .summary = "XSpace profile as a protobuf",
    .files = "*.xplane.pb",
    .written_by = "JAX, TensorFlow and PyTorch/XLA profilers",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_xplane,
    .read = read_xplane,
};
