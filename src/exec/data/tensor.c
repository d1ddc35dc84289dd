/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes, shares and reads values of programs. The elements of an array are in a block of their own,
 * aligned for vector loads; those of a small array follow the struct, because programs with loops
 * make millions of them. A tuple is a list of values. Functions for single elements are for callers
 * that can afford a switch per element; kernels access the data directly.
 */
#include "exec/data/tensor.h"

#include "program/floats.h"
#include "program/literal.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGN 64
#define SMALL 1024       /* arrays of up to so many bytes are in one block with their elements */
#define LARGE (8u << 20) /* from so many bytes on, large pages are requested */

/* Requests large pages, because the first use of a small page costs more than computing its
   content. */
static void large_pages(void *data, size_t bytes)
{
#if defined(MADV_HUGEPAGE)
    uintptr_t from = ((uintptr_t)data + 4095) & ~(uintptr_t)4095, to = (uintptr_t)data + bytes;

    if (bytes >= LARGE)
        (void)madvise((void *)from, (to - from) & ~(size_t)4095, MADV_HUGEPAGE); /* or not */
#else
    (void)data;
    (void)bytes;
#endif
}

/* own: the tensor gets memory for its elements, which follow the struct if they are few; else data
   is NULL. */
static enum rp_code tensor_alloc(unsigned elem, const int64_t *dims, size_t rank, bool own,
                                 struct rp_tensor **out, struct rp_err *err)
{
    struct rp_tensor *t;
    size_t unit = rp_literal_unit(elem), n = 1;

    *out = NULL;
    if (!unit)
        return rp_err_set(err, RP_UNSUPPORTED, "arrays of type '%s' are not supported",
                          rp_elem_name(elem) ? rp_elem_name(elem) : "?");
    if (rank > RP_TENSOR_RANK)
        return rp_err_set(err, RP_LIMIT, "an array of %zu dimensions; at most %d", rank,
                          RP_TENSOR_RANK);
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(n, (size_t)dims[i], &n))
            return rp_err_set(err, RP_LIMIT, "an array is too large or has an unknown dimension");
    if (n > (SIZE_MAX >> 2) / unit)
        return rp_err_set(err, RP_LIMIT, "an array of %zu elements is too large", n);
    own = own && n <= SMALL / unit;
    t = malloc(sizeof *t + (own ? n * unit + (size_t)2 * ALIGN : 0));
    RP_TRY(rp_err_need(t, err, "making an array"));
    memset(t, 0, offsetof(struct rp_tensor, dims));
    atomic_init(&t->users, 1);
    t->elem = (uint8_t)elem;
    t->inside = own;
    if (own)
        t->data = (unsigned char *)(((uintptr_t)(t + 1) + ALIGN - 1) / ALIGN * ALIGN);
    t->rank = (uint32_t)rank;
    t->n = n;
    t->unit = unit;
    if (rank)
        memcpy(t->dims, dims, rank * sizeof *dims);
    *out = t;
    return RP_OK;
}

enum rp_code rp_tensor_new(unsigned elem, const int64_t *dims, size_t rank, struct rp_tensor **out,
                           struct rp_err *err)
{
    RP_TRY(tensor_alloc(elem, dims, rank, true, out, err));
    if ((*out)->inside)
        return RP_OK;
    size_t bytes = (rp_tensor_bytes(*out) + ALIGN) / ALIGN * ALIGN;
    void *data = aligned_alloc(ALIGN, bytes);
    if (data) {
        large_pages(data, bytes);
        (*out)->data = data;
        return RP_OK;
    }
    free(*out);
    *out = NULL;
    return rp_err_set(err, RP_NOMEM, "out of memory for an array of %zu bytes", bytes);
}

enum rp_code rp_tensor_zeros(unsigned elem, const int64_t *dims, size_t rank,
                             struct rp_tensor **out, struct rp_err *err)
{
    RP_TRY(rp_tensor_new(elem, dims, rank, out, err));
    memset((*out)->data, 0, rp_tensor_bytes(*out));
    return RP_OK;
}

enum rp_code rp_tensor_borrow(unsigned elem, const int64_t *dims, size_t rank, const void *data,
                              struct rp_tensor **out, struct rp_err *err)
{
    RP_TRY(tensor_alloc(elem, dims, rank, false, out, err));
    (*out)->borrowed = true;
    (*out)->data = (unsigned char *)(uintptr_t)data;
    return RP_OK;
}

static void drop_parts(struct rp_tensor *const *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rp_tensor_drop(parts[i]);
}

enum rp_code rp_tensor_tuple(struct rp_tensor *const *parts, size_t n, struct rp_tensor **out,
                             struct rp_err *err)
{
    struct rp_tensor *t = malloc(sizeof *t + n * sizeof(struct rp_tensor *));

    *out = NULL;
    if (!t) {
        drop_parts(parts, n);
        return rp_err_nomem(err, "making a tuple");
    }
    struct rp_tensor **list = (struct rp_tensor **)(void *)(t + 1);
    memset(t, 0, offsetof(struct rp_tensor, dims));
    atomic_init(&t->users, 1);
    t->elem = RP_ELEM_TUPLE;
    t->inside = true;
    t->parts = list;
    t->nparts = n;
    t->depth = 1;
    for (size_t i = 0; i < n; i++) {
        list[i] = parts[i];
        if (__builtin_add_overflow(t->leaves, rp_tensor_leaves(parts[i]), &t->leaves))
            t->leaves = SIZE_MAX;
        if (parts[i]->depth >= t->depth)
            t->depth = parts[i]->depth + 1;
    }
    if (t->depth > RP_TENSOR_DEPTH) {
        rp_tensor_drop(t);
        return rp_err_set(err, RP_LIMIT, "tuples are nested more than %d deep", RP_TENSOR_DEPTH);
    }
    *out = t;
    return RP_OK;
}

enum rp_code rp_tensor_token(struct rp_tensor **out, struct rp_err *err)
{
    RP_TRY(rp_tensor_tuple(NULL, 0, out, err));
    (*out)->elem = RP_ELEM_TOKEN;
    return RP_OK;
}

struct rp_tensor *rp_tensor_keep(struct rp_tensor *t)
{
    atomic_fetch_add_explicit(&t->users, 1, memory_order_relaxed);
    return t;
}

void rp_tensor_drop(struct rp_tensor *t)
{
    if (!t)
        return;
    /* the last user needs no exchange, because nobody else can see it */
    if (atomic_load_explicit(&t->users, memory_order_acquire) != 1 &&
        atomic_fetch_sub_explicit(&t->users, 1, memory_order_acq_rel) != 1)
        return;
    drop_parts(t->parts, t->nparts);
    if (!t->borrowed && !t->inside)
        free(t->data);
    if (!t->inside)
        free(t->parts);
    free(t);
}

enum rp_code rp_tensor_align(struct rp_tensor *t, struct rp_tensor **out, struct rp_err *err)
{
    if (!rp_tensor_is_unaligned(t)) {
        *out = rp_tensor_keep(t);
        return RP_OK;
    }
    return rp_tensor_copy(t, out, err);
}

enum rp_code rp_tensor_copy(const struct rp_tensor *t, struct rp_tensor **out, struct rp_err *err)
{
    RP_TRY(rp_tensor_new(t->elem, t->dims, t->rank, out, err));
    memcpy((*out)->data, t->data, rp_tensor_bytes(t));
    return RP_OK;
}

enum rp_code rp_tensor_own(struct rp_tensor **t, struct rp_err *err)
{
    struct rp_tensor *own;

    if (!(*t)->borrowed && atomic_load_explicit(&(*t)->users, memory_order_acquire) == 1)
        return RP_OK;
    RP_TRY(rp_tensor_copy(*t, &own, err));
    rp_tensor_drop(*t);
    *t = own;
    return RP_OK;
}

enum rp_code rp_tensors_new(size_t n, struct rp_tensors *out, struct rp_err *err)
{
    out->n = n;
    out->at = calloc(n + 1, sizeof(struct rp_tensor *));
    return rp_err_need(out->at, err, "making a list of arrays");
}

void rp_tensors_release(struct rp_tensors *list)
{
    if (list->at)
        drop_parts(list->at, list->n);
    free(list->at);
    *list = (struct rp_tensors){0};
}

size_t rp_tensor_leaves(const struct rp_tensor *t)
{
    return t->elem == RP_ELEM_TUPLE ? t->leaves : t->elem != RP_ELEM_TOKEN;
}

/* ---- single elements ---- */

bool rp_elem_is_unsigned(unsigned elem)
{
    return elem == RP_ELEM_U8 || elem == RP_ELEM_U16 || elem == RP_ELEM_U32 ||
           elem == RP_ELEM_U64 || elem == RP_ELEM_U4 || elem == RP_ELEM_U2 || elem == RP_ELEM_U1;
}

bool rp_elem_is_complex(unsigned elem)
{
    return elem == RP_ELEM_C64 || elem == RP_ELEM_C128;
}

static uint64_t load_bits(const unsigned char *at, size_t unit)
{
    uint64_t bits = 0;

    memcpy(&bits, at, unit < 8 ? unit : 8);
    return bits;
}

uint64_t rp_tensor_bits(const struct rp_tensor *t, size_t i)
{
    return load_bits(t->data + i * t->unit, t->unit);
}

int64_t rp_tensor_integer(const struct rp_tensor *t, size_t i)
{
    uint64_t bits = rp_tensor_bits(t, i);
    unsigned width = t->elem == RP_ELEM_PRED ? 8 : rp_elem_bits(t->elem);

    if (width >= 64)
        return (int64_t)bits;
    bits &= (UINT64_C(1) << width) - 1;
    if (rp_elem_is_signed(t->elem) && bits >> (width - 1))
        bits |= UINT64_MAX << width;
    return (int64_t)bits;
}

double rp_tensor_number(const struct rp_tensor *t, size_t i)
{
    if (rp_elem_is_float(t->elem))
        return rp_float_decode(t->elem, rp_tensor_bits(t, i));
    if (rp_elem_is_complex(t->elem))
        return rp_float_decode(t->elem == RP_ELEM_C64 ? RP_ELEM_F32 : RP_ELEM_F64,
                               load_bits(t->data + i * t->unit, t->unit / 2));
    if (t->elem == RP_ELEM_U64)
        return (double)rp_tensor_bits(t, i);
    return (double)rp_tensor_integer(t, i);
}

double rp_tensor_imaginary(const struct rp_tensor *t, size_t i)
{
    if (!rp_elem_is_complex(t->elem))
        return 0;
    return rp_float_decode(t->elem == RP_ELEM_C64 ? RP_ELEM_F32 : RP_ELEM_F64,
                           load_bits(t->data + i * t->unit + t->unit / 2, t->unit / 2));
}

void rp_tensor_set_integer(struct rp_tensor *t, size_t i, int64_t value)
{
    unsigned width = rp_elem_bits(t->elem);
    uint64_t bits = (uint64_t)value;

    if (t->elem == RP_ELEM_PRED)
        bits = value != 0;
    else if (width < 8) { /* the sign fills the rest of the byte */
        bits &= (UINT64_C(1) << width) - 1;
        if (rp_elem_is_signed(t->elem) && bits >> (width - 1))
            bits |= UINT64_MAX << width;
    }
    memcpy(t->data + i * t->unit, &bits, t->unit < sizeof bits ? t->unit : sizeof bits);
}

/* Rounds towards zero to an integer of 64 bits; not a number gives 0. */
static int64_t integer_of(double value, bool is_signed)
{
    if (isnan(value))
        return 0;
    if (value < -0x1p63)
        return INT64_MIN;
    if (value < 0x1p63)
        return (int64_t)value;
    if (is_signed)
        return INT64_MAX;
    return (int64_t)(value < 0x1p64 ? (uint64_t)value : UINT64_MAX);
}

void rp_tensor_set(struct rp_tensor *t, size_t i, double value)
{
    if (rp_elem_is_float(t->elem)) {
        uint64_t bits = rp_float_encode(t->elem, value);
        memcpy(t->data + i * t->unit, &bits, t->unit);
    } else if (rp_elem_is_complex(t->elem)) {
        memset(t->data + i * t->unit, 0, t->unit);
        uint64_t bits = rp_float_encode(t->elem == RP_ELEM_C64 ? RP_ELEM_F32 : RP_ELEM_F64, value);
        memcpy(t->data + i * t->unit, &bits, t->unit / 2);
    } else {
        rp_tensor_set_integer(t, i, integer_of(value, rp_elem_is_signed(t->elem)));
    }
}

/* ---- layouts ---- */

size_t rp_tensor_packed_bytes(unsigned elem, size_t n, bool packed)
{
    unsigned bits = elem == RP_ELEM_PRED ? 1 : rp_elem_bits(elem);

    if (!packed || bits >= 8 || bits == 6)
        return n * rp_literal_unit(elem);
    return (n * bits + 7) / 8;
}

enum rp_code rp_tensor_permute(struct rp_tensor *to, const uint32_t *order, bool packed,
                               const uint8_t *bytes, size_t n, struct rp_err *err)
{
    int64_t index[RP_TENSOR_RANK] = {0}, stride[RP_TENSOR_RANK];
    bool small = packed && rp_tensor_packed_bytes(to->elem, 8, true) < 8;
    size_t at = 0;

    if (n != rp_tensor_packed_bytes(to->elem, to->n, packed))
        return rp_err_set(err, RP_FORMAT, "an array has %zu bytes instead of %zu", n,
                          rp_tensor_packed_bytes(to->elem, to->n, packed));
    if (!order && !small) {
        memcpy(to->data, bytes, n);
        return RP_OK;
    }
    for (size_t k = to->rank, step = 1; k-- > 0; step *= (size_t)to->dims[k])
        stride[k] = (int64_t)step;
    for (size_t i = 0; i < to->n; i++) {
        size_t place = order ? at : i;

        if (small) {
            unsigned bits = to->elem == RP_ELEM_PRED ? 1 : rp_elem_bits(to->elem), per = 8 / bits;
            uint8_t value = (uint8_t)(bytes[i / per] >> (i % per * bits) & ((1u << bits) - 1));

            rp_tensor_set_integer(to, place, value);
            if (rp_elem_is_float(to->elem))
                to->data[place] = value;
        } else
            memcpy(to->data + place * to->unit, bytes + i * to->unit, to->unit);
        for (size_t k = 0; order && k < to->rank; k++) {
            uint32_t d = order[k];

            at += (size_t)stride[d];
            if (++index[d] < to->dims[d])
                break;
            at -= (size_t)(stride[d] * to->dims[d]);
            index[d] = 0;
        }
    }
    return RP_OK;
}

void rp_tensor_tidy(struct rp_tensor *t)
{
    unsigned bits = rp_elem_bits(t->elem);

    if (t->elem != RP_ELEM_PRED && (bits >= 8 || !bits))
        return;
    for (size_t i = 0; i < t->n; i++)
        if (rp_elem_is_float(t->elem))
            t->data[i] &= (unsigned char)((1u << bits) - 1);
        else
            rp_tensor_set_integer(t, i, t->data[i]);
}

size_t rp_tensor_shape_text(const struct rp_tensor *t, char *out, size_t cap)
{
    if (t->elem == RP_ELEM_TUPLE)
        return (size_t)snprintf(out, cap, "a tuple of %zu", t->nparts);
    size_t n = (size_t)snprintf(out, cap, "%s[", rp_elem_name(t->elem));
    for (size_t i = 0; i < t->rank && n < cap; i++)
        n += (size_t)snprintf(out + n, cap - n, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    if (n < cap)
        n += (size_t)snprintf(out + n, cap - n, "]");
    return n;
}

void rp_strides(const int64_t *dims, size_t rank, int64_t *out)
{
    int64_t step = 1;

    for (size_t k = rank; k-- > 0;) {
        out[k] = step;
        step *= dims[k];
    }
}
