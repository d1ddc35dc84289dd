/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug annotations. Numbers and texts become arguments of that type; everything else (lists,
 * dicts, booleans, integers beyond 64 bits) becomes JSON, as in Chrome's format.
 */
#include "formats/perfetto/perfetto.h"
#include "io/escaped.h"

#include <math.h>
#include <stdio.h>

#define DEPTH 64 /* deepest nesting of dicts; what is deeper becomes null */

struct annotation {
    rp_str name;
    struct rp_proto_item value; /* number 0: none */
    bool is_dict, is_list;
};

/* Finds the name, and the field that has the value. */
static enum rp_code scan_annotation(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                    struct rp_proto_cursor c, struct annotation *a,
                                    struct rp_err *err)
{
    struct rp_proto_item it;

    *a = (struct annotation){0};
    while (rp_proto_next(&c, &it))
        switch (RP_PROTO_KEY(it.number, it.wire)) {
        case RP_PROTO_KEY(RP_PFT_ARG_NAME, RP_WIRE_BYTES):
            RP_TRY(rp_proto_trace_intern(&r->t, it.bytes, &a->name, err));
            break;
        case RP_PROTO_KEY(RP_PFT_ARG_NAME_IID, RP_WIRE_VARINT):
            a->name = rp_perfetto_interned(r, packet->seq, RP_PFT_ARG_NAMES, it.value);
            break;
        case RP_PROTO_KEY(RP_PFT_ARG_DICT_ENTRIES, RP_WIRE_BYTES):
            a->is_dict = true;
            break;
        case RP_PROTO_KEY(RP_PFT_ARG_ARRAY_VALUES, RP_WIRE_BYTES):
            a->is_list = true;
            break;
        default:
            if ((it.number >= RP_PFT_ARG_BOOL_VALUE && it.number <= RP_PFT_ARG_LEGACY_JSON_VALUE) ||
                it.number == RP_PFT_ARG_STRING_VALUE_IID)
                a->value = it;
            break;
        }
    return rp_proto_finish(&c, err);
}

/* ------------------------------------------------------------------ as JSON */

static void put_text(struct rp_perfetto *r, const void *text, size_t n)
{
    rp_emit_escaped(&r->json, RP_IN_JSON, text, n);
}

static void put_str(struct rp_perfetto *r, rp_str s)
{
    size_t n;
    const char *text = rp_builder_borrow_str(r->t.builder, s, &n);

    put_text(r, text, n);
}

static void put_double(struct rp_perfetto *r, double v)
{
    char *to = rp_emit_room(&r->json, RP_PUT_F64_MAX);

    if (isfinite(v))
        r->json.at = rp_put_f64(to, v);
    else
        rp_emit_text(&r->json, isnan(v) ? "NaN" : v < 0 ? "-Infinity" : "Infinity");
}

static void put_unsigned(struct rp_perfetto *r, uint64_t v)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)v);

    rp_emit_bytes(&r->json, text, (size_t)n);
}

static void put_nested(struct rp_perfetto *r, struct rp_proto_cursor c, uint32_t depth);

/* Writes Chrome's old message, in which keys and values are two lists, as {"a":1,"b":2}. */
static void put_nested_dict(struct rp_perfetto *r, const struct rp_proto_cursor *c, uint32_t depth)
{
    struct rp_proto_cursor keys = *c, values = *c;
    struct rp_proto_item key, value;
    bool any = false;

    rp_emit_char(&r->json, '{');
    while (rp_proto_next_bytes(&keys, RP_PFT_NESTED_DICT_KEYS, &key)) {
        if (!rp_proto_next_bytes(&values, RP_PFT_NESTED_DICT_VALUES, &value))
            break;
        if (any)
            rp_emit_char(&r->json, ',');
        any = true;
        put_text(r, key.bytes.at, key.bytes.n);
        rp_emit_char(&r->json, ':');
        put_nested(r, rp_proto_enter(&values, &value), depth - 1);
    }
    rp_emit_char(&r->json, '}');
}

static void put_nested_list(struct rp_perfetto *r, struct rp_proto_cursor c, uint32_t depth)
{
    struct rp_proto_item it;
    bool any = false;

    rp_emit_char(&r->json, '[');
    while (rp_proto_next_bytes(&c, RP_PFT_NESTED_ARRAY_VALUES, &it)) {
        if (any)
            rp_emit_char(&r->json, ',');
        any = true;
        put_nested(r, rp_proto_enter(&c, &it), depth - 1);
    }
    rp_emit_char(&r->json, ']');
}

static void put_nested(struct rp_perfetto *r, struct rp_proto_cursor c, uint32_t depth)
{
    struct rp_proto_cursor scan = c;
    struct rp_proto_item it, value = {0};
    uint64_t type = 0;

    while (rp_proto_next(&scan, &it))
        if (it.number == RP_PFT_NESTED_NESTED_TYPE && it.wire == RP_WIRE_VARINT)
            type = it.value;
        else if (it.number >= RP_PFT_NESTED_INT_VALUE && it.number <= RP_PFT_NESTED_STRING_VALUE)
            value = it;
    if (depth && type == 1)
        put_nested_dict(r, &c, depth);
    else if (depth && type == 2)
        put_nested_list(r, c, depth);
    else if (value.number == RP_PFT_NESTED_STRING_VALUE)
        put_text(r, value.bytes.at, value.bytes.n);
    else if (value.number == RP_PFT_NESTED_DOUBLE_VALUE)
        put_double(r, rp_proto_double(value.value));
    else if (value.number == RP_PFT_NESTED_BOOL_VALUE)
        rp_emit_text(&r->json, value.value ? "true" : "false");
    else if (value.number)
        rp_emit_i64(&r->json, (int64_t)value.value);
    else
        rp_emit_text(&r->json, "null");
}

static enum rp_code put_value(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                              const struct rp_proto_cursor *c, const struct annotation *a,
                              uint32_t depth, struct rp_err *err);

/* The entries of a dict or list. */
static enum rp_code put_entries(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                struct rp_proto_cursor c, bool dict, uint32_t depth,
                                struct rp_err *err)
{
    uint32_t wanted = dict ? RP_PFT_ARG_DICT_ENTRIES : RP_PFT_ARG_ARRAY_VALUES;
    struct rp_proto_item it;
    struct annotation a;
    bool any = false;

    rp_emit_char(&r->json, dict ? '{' : '[');
    while (rp_proto_next_bytes(&c, wanted, &it)) {
        struct rp_proto_cursor inner = rp_proto_enter(&c, &it);

        RP_TRY(scan_annotation(r, packet, inner, &a, err));
        if (any)
            rp_emit_char(&r->json, ',');
        any = true;
        if (dict) {
            put_str(r, a.name);
            rp_emit_char(&r->json, ':');
        }
        RP_TRY(put_value(r, packet, &inner, &a, depth - 1, err));
    }
    rp_emit_char(&r->json, dict ? '}' : ']');
    return RP_OK;
}

static enum rp_code put_value(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                              const struct rp_proto_cursor *c, const struct annotation *a,
                              uint32_t depth, struct rp_err *err)
{
    const struct rp_proto_item *v = &a->value;

    if (depth && (a->is_dict || a->is_list))
        return put_entries(r, packet, *c, a->is_dict, depth, err);
    switch (RP_PROTO_KEY(v->number, v->wire)) {
    case RP_PROTO_KEY(RP_PFT_ARG_BOOL_VALUE, RP_WIRE_VARINT):
        rp_emit_text(&r->json, v->value ? "true" : "false");
        break;
    case RP_PROTO_KEY(RP_PFT_ARG_UINT_VALUE, RP_WIRE_VARINT):
    case RP_PROTO_KEY(RP_PFT_ARG_POINTER_VALUE, RP_WIRE_VARINT):
        put_unsigned(r, v->value);
        break;
    case RP_PROTO_KEY(RP_PFT_ARG_INT_VALUE, RP_WIRE_VARINT):
        rp_emit_i64(&r->json, (int64_t)v->value);
        break;
    case RP_PROTO_KEY(RP_PFT_ARG_DOUBLE_VALUE, RP_WIRE_FIXED64):
        put_double(r, rp_proto_double(v->value));
        break;
    case RP_PROTO_KEY(RP_PFT_ARG_STRING_VALUE, RP_WIRE_BYTES):
        put_text(r, v->bytes.at, v->bytes.n);
        break;
    case RP_PROTO_KEY(RP_PFT_ARG_STRING_VALUE_IID, RP_WIRE_VARINT):
        put_str(r, rp_perfetto_interned(r, packet->seq, RP_PFT_ARG_TEXTS, v->value));
        break;
    case RP_PROTO_KEY(RP_PFT_ARG_LEGACY_JSON_VALUE, RP_WIRE_BYTES):
        rp_emit_bytes(&r->json, (const char *)v->bytes.at, v->bytes.n);
        break;
    case RP_PROTO_KEY(RP_PFT_ARG_NESTED_VALUE, RP_WIRE_BYTES):
        put_nested(r, rp_proto_enter(c, v), depth ? depth - 1 : 0);
        break;
    default:
        rp_emit_text(&r->json, "null");
        break;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ as an argument */

static enum rp_code set_raw(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                            const struct rp_proto_cursor *c, const struct annotation *a,
                            struct rp_arg *arg, struct rp_err *err)
{
    arg->type = RP_ARG_RAW;
    rp_emit_reset(&r->json);
    RP_TRY(put_value(r, packet, c, a, DEPTH, err));
    if (r->json.failure.code != RP_OK) {
        if (err)
            *err = r->json.failure;
        return r->json.failure.code;
    }
    return rp_builder_intern(r->t.builder, r->json.buffer, rp_emit_length(&r->json), &arg->v.s,
                             err);
}

static enum rp_code set_value(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                              const struct rp_proto_cursor *c, const struct annotation *a,
                              struct rp_arg *arg, struct rp_err *err)
{
    const struct rp_proto_item *v = &a->value;

    switch (RP_PROTO_KEY(v->number, v->wire)) {
    case RP_PROTO_KEY(RP_PFT_ARG_UINT_VALUE, RP_WIRE_VARINT):
    case RP_PROTO_KEY(RP_PFT_ARG_POINTER_VALUE, RP_WIRE_VARINT):
        if (v->value > INT64_MAX)
            return set_raw(r, packet, c, a, arg, err);
        arg->v.i = (int64_t)v->value;
        return RP_OK;
    case RP_PROTO_KEY(RP_PFT_ARG_INT_VALUE, RP_WIRE_VARINT):
        arg->v.i = (int64_t)v->value;
        return RP_OK;
    case RP_PROTO_KEY(RP_PFT_ARG_DOUBLE_VALUE, RP_WIRE_FIXED64):
        if (!isfinite(rp_proto_double(v->value)))
            return set_raw(r, packet, c, a, arg, err);
        arg->type = RP_ARG_F64;
        arg->v.f = rp_proto_double(v->value);
        return RP_OK;
    case RP_PROTO_KEY(RP_PFT_ARG_STRING_VALUE, RP_WIRE_BYTES):
        arg->type = RP_ARG_STR;
        return rp_proto_trace_intern(&r->t, v->bytes, &arg->v.s, err);
    case RP_PROTO_KEY(RP_PFT_ARG_STRING_VALUE_IID, RP_WIRE_VARINT):
        arg->type = RP_ARG_STR;
        arg->v.s = rp_perfetto_interned(r, packet->seq, RP_PFT_ARG_TEXTS, v->value);
        return RP_OK;
    default:
        return set_raw(r, packet, c, a, arg, err);
    }
}

enum rp_code rp_perfetto_read_arg(struct rp_perfetto *r, const struct rp_perfetto_packet *packet,
                                  const struct rp_proto_cursor *up,
                                  const struct rp_proto_item *item, rp_str *category,
                                  struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_enter(up, item);
    struct rp_arg arg = {.type = RP_ARG_I64};
    struct annotation a;
    rp_str arrow;

    RP_TRY(scan_annotation(r, packet, c, &a, err));
    RP_TRY(set_value(r, packet, &c, &a, &arg, err));
    RP_TRY(rp_proto_trace_word(&r->t, RP_PFT_ARROW_KEY, &arrow, err));
    arg.key = a.name;
    if (a.name == arrow && arg.type == RP_ARG_STR) {
        *category = arg.v.s;
        return RP_OK;
    }
    uint32_t at = rp_map_get(&r->arg_of, arg.key);
    if (at < r->args.n && r->args.at[at].key == arg.key) {
        r->args.at[at] = arg; /* the last of several counts, as in Chrome's format */
        return RP_OK;
    }
    if (at != r->args.n)
        RP_TRY(rp_map_put(&r->arg_of, arg.key, (uint32_t)r->args.n, err));
    return rp_vec_push(&r->args, arg, err);
}
