/* SPDX-License-Identifier: Apache-2.0 */
/* Slices, windows, dimensions of convolutions and paddings: messages that HLO text writes in short,
   read and written. */
#include "formats/hlo/proto_put.h"
#include "program/window.h"

#include <string.h>

#define KEY(number, wire) RP_PROTO_KEY(number, RP_WIRE_##wire)

/* Up to three numbers of a small message. */
enum rp_code hlo_proto_triple(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                              const struct rp_proto_item *item, int64_t v[4])
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_proto_item it;

    v[1] = v[2] = v[3] = 0;
    while (rp_proto_next(&c, &it))
        if (it.number < 4 && it.wire == RP_WIRE_VARINT)
            v[it.number] = (int64_t)it.value;
    return rp_proto_finish(&c, r->err);
}

static enum rp_code slice_dim(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                              const struct rp_proto_item *item, bool strides)
{
    int64_t v[4];

    RP_TRY(hlo_proto_triple(r, outer, item, v));
    RP_TRY(hlo_put_word(r, r->text.n ? ", [" : "{["));
    RP_TRY(hlo_put_int(r, v[1]));
    RP_TRY(hlo_put(r, ":", 1));
    RP_TRY(hlo_put_int(r, v[2]));
    if (strides) {
        RP_TRY(hlo_put(r, ":", 1));
        RP_TRY(hlo_put_int(r, v[3]));
    }
    return hlo_put(r, "]", 1);
}

/* Strides are written for all dimensions where one has any. */
static enum rp_code has_strides(struct hlo_proto *r, struct rp_proto_cursor c, bool *strides)
{
    struct rp_proto_item it;
    int64_t v[4];

    *strides = false;
    while (rp_proto_next(&c, &it)) {
        if (RP_PROTO_KEY(it.number, it.wire) != KEY(17, BYTES))
            continue;
        RP_TRY(hlo_proto_triple(r, &c, &it, v));
        *strides |= v[3] != 1;
    }
    return rp_proto_finish(&c, r->err);
}

enum rp_code hlo_proto_slices(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    struct rp_proto_item it;
    bool strides;

    RP_TRY(has_strides(r, c, &strides));
    while (rp_proto_next(&c, &it))
        if (RP_PROTO_KEY(it.number, it.wire) == KEY(17, BYTES))
            RP_TRY(slice_dim(r, &c, &it, strides));
    RP_TRY(hlo_put(r, "}", 1));
    return hlo_put_attr(r, RP_ATTR_SLICE, false);
}

static enum rp_code window_dim(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                               const struct rp_proto_item *item, struct rp_window_dim *d)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_proto_item it;

    *d = (struct rp_window_dim){0, 0, 0, 0, 1, 1, false};
    while (rp_proto_next(&c, &it)) {
        int64_t v = (int64_t)it.value;

        switch (it.number) {
        case 1:
            d->size = v;
            break;
        case 2:
            d->stride = v;
            break;
        case 3:
            d->pad_low = v;
            break;
        case 4:
            d->pad_high = v;
            break;
        case 5:
            d->window_dilation = v;
            break;
        case 6:
            d->base_dilation = v;
            break;
        case 7:
            d->reversal = v != 0;
            break;
        default:
            break;
        }
    }
    return rp_proto_finish(&c, r->err);
}

enum rp_code hlo_proto_window(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                              const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_window w = {0};
    struct rp_proto_item it;
    char text[2048];

    while (rp_proto_next(&c, &it)) {
        if (RP_PROTO_KEY(it.number, it.wire) != KEY(1, BYTES))
            continue;
        if (w.n == RP_WINDOW_DIMS)
            return rp_err_set(r->err, RP_LIMIT, "a window of more than %d dimensions",
                              RP_WINDOW_DIMS);
        RP_TRY(window_dim(r, &c, &it, &w.dim[w.n++]));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (!w.n)
        return RP_OK;
    RP_TRY(hlo_put(r, text, rp_window_print(&w, text, sizeof text)));
    return hlo_put_attr(r, RP_ATTR_WINDOW, false);
}

static void conv_list(const struct rp_proto_cursor *outer, const struct rp_proto_item *it,
                      int64_t *list, size_t *n)
{
    struct rp_proto_cursor c;
    uint64_t v;

    if (it->wire == RP_WIRE_VARINT && *n < RP_WINDOW_DIMS)
        list[(*n)++] = (int64_t)it->value;
    if (it->wire != RP_WIRE_BYTES)
        return;
    c = rp_proto_enter(outer, it);
    while (rp_proto_packed_varint(&c, &v) && *n < RP_WINDOW_DIMS)
        list[(*n)++] = (int64_t)v;
}

enum rp_code hlo_proto_conv_dims(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                                 const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_conv_dims d = {0};
    int64_t v[16] = {0};
    size_t kernel = 0, output = 0;
    struct rp_proto_item it;
    char text[64];

    while (rp_proto_next(&c, &it)) {
        if (it.number == 11)
            conv_list(&c, &it, d.input_spatial, &d.nspatial);
        else if (it.number == 6)
            conv_list(&c, &it, d.kernel_spatial, &kernel);
        else if (it.number == 12)
            conv_list(&c, &it, d.output_spatial, &output);
        else if (it.number < 16)
            v[it.number] = (int64_t)it.value;
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    d.kernel_input = v[3];
    d.kernel_output = v[4];
    d.input_batch = v[7];
    d.input_feature = v[8];
    d.output_batch = v[9];
    d.output_feature = v[10];
    if (kernel != d.nspatial || output != d.nspatial || !rp_conv_dims_print(&d, text))
        return RP_OK; /* instructions that are no convolutions have an empty one */
    RP_TRY(hlo_put(r, text, strlen(text)));
    return hlo_put_attr(r, RP_ATTR_DIM_LABELS, false);
}

/* "0_1x2_3", with a third number everywhere where one dimension has it */
enum rp_code hlo_proto_padding(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                               const struct rp_proto_item *item)
{
    bool interior = false;

    for (int pass = 0; pass < 2; pass++) {
        struct rp_proto_cursor c = rp_proto_enter(outer, item);
        struct rp_proto_item it;
        bool first = true;
        int64_t v[4];

        while (rp_proto_next(&c, &it)) {
            if (RP_PROTO_KEY(it.number, it.wire) != KEY(1, BYTES))
                continue;
            RP_TRY(hlo_proto_triple(r, &c, &it, v));
            interior |= v[3] != 0;
            if (!pass)
                continue;
            RP_TRY(hlo_putf(r, "%s%lld_%lld", first ? "" : "x", (long long)v[1], (long long)v[2]));
            if (interior)
                RP_TRY(hlo_putf(r, "_%lld", (long long)v[3]));
            first = false;
        }
        RP_TRY(rp_proto_finish(&c, r->err));
    }
    return r->text.n ? hlo_put_attr(r, RP_ATTR_PADDING, false) : RP_OK;
}

/* ---- writing ---- */

bool hlo_put_window(const struct hlo_put *put, const struct rp_attr *attr)
{
    struct rp_window w;
    size_t window, dim;

    if (!rp_window_parse(attr->at, attr->n, &w))
        return false;
    window = rp_proto_begin(put->w, 15);
    for (size_t i = 0; i < w.n; i++) {
        const struct rp_window_dim *d = &w.dim[i];

        dim = rp_proto_begin(put->w, 1);
        rp_proto_put_varint(put->w, 1, (uint64_t)d->size);
        rp_proto_put_varint(put->w, 2, (uint64_t)d->stride);
        rp_proto_put_varint(put->w, 3, (uint64_t)d->pad_low);
        rp_proto_put_varint(put->w, 4, (uint64_t)d->pad_high);
        rp_proto_put_varint(put->w, 5, (uint64_t)d->window_dilation);
        rp_proto_put_varint(put->w, 6, (uint64_t)d->base_dilation);
        if (d->reversal)
            rp_proto_put_varint(put->w, 7, 1);
        rp_proto_end(put->w, dim);
    }
    rp_proto_end(put->w, window);
    return true;
}

static void put_spatial(const struct hlo_put *put, uint32_t field, const int64_t *dims, size_t n)
{
    size_t begun;

    if (!n)
        return;
    begun = rp_proto_begin(put->w, field);
    for (size_t i = 0; i < n; i++)
        rp_proto_add_varint(put->w, (uint64_t)dims[i]);
    rp_proto_end(put->w, begun);
}

bool hlo_put_dim_labels(const struct hlo_put *put, const struct rp_attr *attr)
{
    struct rp_conv_dims d;
    size_t begun;

    if (!rp_conv_dims_parse(attr->at, attr->n, &d))
        return false;
    begun = rp_proto_begin(put->w, 16);
    rp_proto_put_varint(put->w, 3, (uint64_t)d.kernel_input);
    rp_proto_put_varint(put->w, 4, (uint64_t)d.kernel_output);
    put_spatial(put, 6, d.kernel_spatial, d.nspatial);
    rp_proto_put_varint(put->w, 7, (uint64_t)d.input_batch);
    rp_proto_put_varint(put->w, 8, (uint64_t)d.input_feature);
    rp_proto_put_varint(put->w, 9, (uint64_t)d.output_batch);
    rp_proto_put_varint(put->w, 10, (uint64_t)d.output_feature);
    put_spatial(put, 11, d.input_spatial, d.nspatial);
    put_spatial(put, 12, d.output_spatial, d.nspatial);
    rp_proto_end(put->w, begun);
    return true;
}
