/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffer has 256 KiB, so that flushes are rare and large. Memory grows by doubling; if that
 * fails the text is dropped, the buffer stays usable, and the error is kept. Compressed output is
 * streamed through zlib: two buffers, for files of any size.
 *
 * Doubles: nearly all in traces are short decimals, n / 10^k with n < 2^53. Both are exact, and so
 * is the rounding of their quotient: if it gives the double back, n and k are its text. Other
 * doubles are formatted by printf.
 */
#include "io/emit.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#define EMIT_BUFFER   ((size_t)256 << 10)
#define PACKED_BUFFER ((size_t)128 << 10)

struct rp_emit_gzip {
    z_stream z;
    unsigned char packed[PACKED_BUFFER];
};

static const char digit_pairs[201] = "00010203040506070809101112131415161718192021222324"
                                     "25262728293031323334353637383940414243444546474849"
                                     "50515253545556575859606162636465666768697071727374"
                                     "75767778798081828384858687888990919293949596979899";

static enum rp_code new_buffer(struct rp_emit *e, struct rp_err *err)
{
    e->buffer = malloc(EMIT_BUFFER);
    RP_TRY(rp_err_need(e->buffer, err, "writing text"));
    e->at = e->buffer;
    e->end = e->buffer + EMIT_BUFFER;
    return RP_OK;
}

static enum rp_code new_gzip(struct rp_emit *e, int level, struct rp_err *err)
{
    e->gzip = calloc(1, sizeof *e->gzip);
    if (e->gzip && deflateInit2(&e->gzip->z, level > 0 && level < 10 ? level : 6, Z_DEFLATED,
                                MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK)
        return RP_OK;
    free(e->gzip);
    e->gzip = NULL;
    return rp_err_nomem(err, "compressing");
}

enum rp_code rp_emit_open(struct rp_emit *e, const char *path, int level, struct rp_err *err)
{
    *e = (struct rp_emit){0};
    enum rp_code code = new_buffer(e, err);
    if (code == RP_OK && rp_text_ends(path, ".gz"))
        code = new_gzip(e, level, err);
    if (code == RP_OK)
        code = rp_out_open(path, &e->out, err);
    if (code != RP_OK)
        rp_emit_abandon(e);
    return code;
}

enum rp_code rp_emit_open_memory(struct rp_emit *e, struct rp_err *err)
{
    *e = (struct rp_emit){0};
    return new_buffer(e, err);
}

void rp_emit_abandon(struct rp_emit *e)
{
    if (e->gzip)
        deflateEnd(&e->gzip->z);
    free(e->gzip);
    free(e->buffer);
    rp_out_abandon(e->out);
    *e = (struct rp_emit){0};
}

static void deflate_bytes(struct rp_emit *e, const char *bytes, size_t n, int how)
{
    z_stream *z = &e->gzip->z;

    z->next_in = (z_const Bytef *)(uintptr_t)bytes;
    z->avail_in = (uInt)n;
    do {
        z->next_out = e->gzip->packed;
        z->avail_out = PACKED_BUFFER;
        deflate(z, how);
        rp_out_write(e->out, e->gzip->packed, PACKED_BUFFER - z->avail_out);
    } while (z->avail_out == 0);
}

/* n is below 4 GiB if the output is compressed. */
static void send_bytes(struct rp_emit *e, const char *bytes, size_t n)
{
    if (!e->gzip)
        rp_out_write(e->out, bytes, n);
    else if (n)
        deflate_bytes(e, bytes, n, Z_NO_FLUSH);
}

static void grow_memory(struct rp_emit *e, size_t n)
{
    size_t used = (size_t)(e->at - e->buffer), cap = (size_t)(e->end - e->buffer);
    size_t more = cap > n ? cap : n;
    char *grown = cap + more > cap ? malloc(cap + more) : NULL;

    if (!grown) {
        if (e->failure.code == RP_OK)
            rp_err_nomem(&e->failure, "writing text");
        e->at = e->buffer;
        return;
    }
    memcpy(grown, e->buffer, used);
    free(e->buffer);
    e->buffer = grown;
    e->at = grown + used;
    e->end = grown + cap + more;
}

void rp_emit_make_room(struct rp_emit *e, size_t n)
{
    if (!e->out) {
        grow_memory(e, n);
        return;
    }
    send_bytes(e, e->buffer, (size_t)(e->at - e->buffer));
    e->at = e->buffer;
}

void rp_emit_long(struct rp_emit *e, const char *bytes, size_t n)
{
    if (!e->out) {
        grow_memory(e, n);
        if ((size_t)(e->end - e->at) < n) /* memory ran out, which was already noted */
            return;
    }
    while (n) {
        size_t room = (size_t)(e->end - e->at), some = n < room ? n : room;

        memcpy(e->at, bytes, some);
        e->at += some;
        bytes += some;
        n -= some;
        if (n)
            rp_emit_make_room(e, 1);
    }
}

void rp_emit_i64(struct rp_emit *e, int64_t v)
{
    e->at = rp_put_i64(rp_emit_room(e, RP_PUT_I64_MAX), v);
}

enum rp_code rp_emit_close(struct rp_emit *e, struct rp_err *err)
{
    enum rp_code code = e->failure.code;

    if (e->out) {
        send_bytes(e, e->buffer, (size_t)(e->at - e->buffer));
        if (e->gzip)
            deflate_bytes(e, "", 0, Z_FINISH);
    }
    if (code != RP_OK && err)
        *err = e->failure;
    if (code == RP_OK && e->out) {
        code = rp_out_close(e->out, err);
        e->out = NULL;
    }
    rp_emit_abandon(e);
    return code;
}

/* Writes the digits of v, most significant first. */
static char *put_u64(char *to, uint64_t v)
{
    char digits[20], *p = digits + sizeof digits;

    while (v >= 100) {
        p -= 2;
        memcpy(p, digit_pairs + 2 * (v % 100), 2);
        v /= 100;
    }
    if (v >= 10) {
        p -= 2;
        memcpy(p, digit_pairs + 2 * v, 2);
    } else {
        *--p = (char)('0' + v);
    }
    size_t n = (size_t)(digits + sizeof digits - p);
    memcpy(to, p, n);
    return to + n;
}

static uint64_t magnitude(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

char *rp_put_i64(char *to, int64_t v)
{
    if (v < 0)
        *to++ = '-';
    return put_u64(to, magnitude(v));
}

char *rp_put_us(char *to, int64_t ns)
{
    uint64_t v = magnitude(ns);
    unsigned rest = (unsigned)(v % 1000);

    if (ns < 0)
        *to++ = '-';
    to = put_u64(to, v / 1000);
    if (!rest)
        return to;
    *to++ = '.';
    *to++ = (char)('0' + rest / 100);
    memcpy(to, digit_pairs + 2 * (size_t)(rest % 100), 2);
    to += 2;
    while (to[-1] == '0')
        to--;
    return to;
}

/* Writes the shortest of 15 to 17 digits that reads back; the decimal point of the locale becomes
   '.'. */
static char *put_f64_printf(char *to, double v)
{
    char text[RP_PUT_F64_MAX];
    int n = 0;

    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    for (int i = 0; i < n; i++)
        if (text[i] == ',')
            text[i] = '.';
    memcpy(to, text, (size_t)n);
    to += n;
    if (!memchr(text, '.', (size_t)n) && !memchr(text, 'e', (size_t)n)) {
        *to++ = '.';
        *to++ = '0';
    }
    return to;
}

/* Writes n / 10^k with k decimals. */
static char *put_scaled(char *to, uint64_t n, unsigned k)
{
    char digits[24], *end = put_u64(digits, n);
    size_t len = (size_t)(end - digits);

    if (!k) {
        memcpy(to, digits, len);
        memcpy(to + len, ".0", 2);
        return to + len + 2;
    }
    if (len <= k) {
        memcpy(to, "0.", 2);
        memset(to + 2, '0', k - len);
        memcpy(to + 2 + k - len, digits, len);
        return to + 2 + k;
    }
    memcpy(to, digits, len - k);
    to[len - k] = '.';
    memcpy(to + len - k + 1, digits + len - k, k);
    return to + len + 1;
}

char *rp_put_f64(char *to, double v)
{
    const double exact = 9007199254740992.0; /* 2^53 */
    double a = fabs(v), power = 1;

    if (a != 0 && a < 1e-4)
        return put_f64_printf(to, v);
    for (unsigned k = 0; k <= 20 && a * power < exact; k++, power *= 10) {
        double n = rint(a * power);

        if (n / power == a && n < exact) {
            if (signbit(v))
                *to++ = '-';
            return put_scaled(to, (uint64_t)n, k);
        }
    }
    return put_f64_printf(to, v);
}
