/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes .npz with stored members. Each array's bytes begin at a multiple of 64 in the file so that
 * it can be mapped; sizes have 64 bits where needed. Time stamps are fixed, so that equal arrays
 * give equal files.
 */
#include "exec/data/arrays.h"
#include "io/inflate.h"
#include "io/output.h"

#include <stdio.h>
#include <string.h>

#define LOCAL_HEAD  30
#define ZIP64_EXTRA 20

struct member {
    uint64_t at, bytes;
    uint32_t crc;
    uint16_t nextra;
};

static void put16(struct rp_out *to, unsigned v)
{
    rp_out_char(to, (char)v);
    rp_out_char(to, (char)(v >> 8));
}

static void put32(struct rp_out *to, uint32_t v)
{
    put16(to, v & 0xffff);
    put16(to, v >> 16);
}

static void put64(struct rp_out *to, uint64_t v)
{
    put32(to, (uint32_t)v);
    put32(to, (uint32_t)(v >> 32));
}

static const char *npy_descr(unsigned elem)
{
    switch (elem) {
    case RP_ELEM_F64:
        return "<f8";
    case RP_ELEM_F32:
        return "<f4";
    case RP_ELEM_F16:
        return "<f2";
    case RP_ELEM_C64:
        return "<c8";
    case RP_ELEM_C128:
        return "<c16";
    case RP_ELEM_PRED:
        return "|b1";
    case RP_ELEM_S64:
        return "<i8";
    case RP_ELEM_S32:
        return "<i4";
    case RP_ELEM_S16:
        return "<i2";
    case RP_ELEM_U64:
        return "<u8";
    case RP_ELEM_U32:
        return "<u4";
    case RP_ELEM_U16:
    case RP_ELEM_BF16:
        return "<u2";
    default:
        return rp_elem_is_signed(elem) ? "|i1" : "|u1";
    }
}

size_t rp_npy_header(const struct rp_tensor *t, char out[RP_NPY_HEADER])
{
    size_t n = 10;

    memcpy(out, "\x93NUMPY\1\0", 8);
    n += (size_t)snprintf(out + n, RP_NPY_HEADER - n,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (", npy_descr(t->elem));
    for (size_t i = 0; i < t->rank; i++)
        n += (size_t)snprintf(out + n, RP_NPY_HEADER - n, "%lld%s", (long long)t->dims[i],
                              t->rank == 1      ? ","
                              : i + 1 < t->rank ? ", "
                                                : "");
    n += (size_t)snprintf(out + n, RP_NPY_HEADER - n, "), }");
    size_t total = (n + 1 + 63) / 64 * 64;
    memset(out + n, ' ', total - n - 1);
    out[total - 1] = '\n';
    out[8] = (char)((total - 10) & 0xff);
    out[9] = (char)((total - 10) >> 8);
    return total;
}

static void local_header(struct rp_out *to, const char *name, struct member *m)
{
    uint64_t begin = rp_out_position(to) + LOCAL_HEAD + strlen(name) + 4 + ZIP64_EXTRA + 4;
    unsigned pad = (unsigned)((64 - begin % 64) % 64);

    m->at = rp_out_position(to);
    rp_out_write(to, "PK\3\4", 4);
    put16(to, 45);
    put16(to, 0);
    put16(to, 0);
    put32(to, 0x00210000); /* the first day that a zip can store */
    put32(to, m->crc);
    put32(to, UINT32_MAX);
    put32(to, UINT32_MAX);
    put16(to, (unsigned)strlen(name) + 4);
    put16(to, ZIP64_EXTRA + 4 + pad);
    rp_out_printf(to, "%s.npy", name);

    /* The extra field of zip64. */
    put16(to, 1);
    put16(to, 16);
    put64(to, m->bytes);
    put64(to, m->bytes);

    put16(to, 0x5250); /* our own tag, for padding with zeros */
    put16(to, pad);
    while (pad--)
        rp_out_char(to, 0);
}

static void central_header(struct rp_out *to, const char *name, const struct member *m)
{
    rp_out_write(to, "PK\1\2", 4);
    put16(to, 45);
    put16(to, 45);
    put16(to, 0);
    put16(to, 0);
    put32(to, 0x00210000);
    put32(to, m->crc);
    put32(to, UINT32_MAX);
    put32(to, UINT32_MAX);
    put16(to, (unsigned)strlen(name) + 4);
    put16(to, ZIP64_EXTRA + 8);
    put16(to, 0);
    put16(to, 0);
    put16(to, 0);
    put32(to, 0);
    put32(to, UINT32_MAX);
    rp_out_printf(to, "%s.npy", name);
    put16(to, 1);
    put16(to, 24);
    put64(to, m->bytes);
    put64(to, m->bytes);
    put64(to, m->at);
}

static void end_records(struct rp_out *to, uint64_t begin, uint64_t n)
{
    uint64_t end = rp_out_position(to);

    rp_out_write(to, "PK\6\6", 4);
    put64(to, 44);
    put16(to, 45);
    put16(to, 45);
    put32(to, 0);
    put32(to, 0);
    put64(to, n);
    put64(to, n);
    put64(to, end - begin);
    put64(to, begin);
    rp_out_write(to, "PK\6\7", 4);
    put32(to, 0);
    put64(to, end);
    put32(to, 1);
    rp_out_write(to, "PK\5\6", 4);
    put32(to, 0);
    put16(to, n < 65535 ? (unsigned)n : 65535);
    put16(to, n < 65535 ? (unsigned)n : 65535);
    put32(to, UINT32_MAX);
    put32(to, UINT32_MAX);
    put16(to, 0);
}

enum rp_code rp_arrays_write(const char *path, const struct rp_array *list, size_t n,
                             struct rp_err *err)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct member *rows = RP_ARENA_NEW(&arena, struct member, n + 1);
    char head[RP_NPY_HEADER];
    struct rp_out *to;
    enum rp_code code = rows ? rp_out_open(path, &to, err) : rp_err_nomem(err, "writing arrays");

    if (code != RP_OK) {
        rp_arena_release(&arena);
        return code;
    }
    for (size_t i = 0; i < n; i++) {
        const struct rp_tensor *t = list[i].value;
        size_t nhead = rp_npy_header(t, head);

        rows[i].bytes = nhead + rp_tensor_bytes(t);
        rows[i].crc = rp_deflate_zlib.crc(0, (const uint8_t *)head, nhead);
        rows[i].crc = rp_deflate_zlib.crc(rows[i].crc, t->data, rp_tensor_bytes(t));
        local_header(to, list[i].name, &rows[i]);
        rp_out_write(to, head, nhead);
        rp_out_write(to, t->data, rp_tensor_bytes(t));
    }
    uint64_t begin = rp_out_position(to);
    for (size_t i = 0; i < n; i++)
        central_header(to, list[i].name, &rows[i]);
    end_records(to, begin, n);
    rp_arena_release(&arena);
    return rp_out_close(to, err);
}
