/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deflate by ISA-L, about three times as fast as zlib. Peculiarities that are handled here: it
 * reads up to eight bytes past the end of the stream into its bit buffer (they are returned to the
 * feed), after an error it may keep decoded bytes in its own output buffer (they are taken from
 * there), and it counts in 32 bits (calls are clamped). Two that remain: it decodes up to three
 * literals by one table entry, so the last two bytes of a truncated stream that zlib would give may
 * be missing; and it accepts incomplete codes, so it may notice damage some bytes later than zlib.
 * State is 75 KB.
 */
#include "rp_config.h"

#include "io/inflate.h"

#if RP_HAVE_ISAL
#include <isa-l.h>
#include <stdlib.h>
#include <string.h>

struct isal {
    const char *bad; /* set when the data was found to be damaged */
    struct inflate_state s;
};

static void isal_reset(void *state)
{
    struct isal *st = state;

    isal_inflate_init(&st->s);
    st->s.crc_flag = ISAL_DEFLATE;
    st->bad = NULL;
}

static enum rp_code isal_open(void **state, struct rp_err *err)
{
    struct isal *st = calloc(1, sizeof *st);

    RP_TRY(rp_err_need(st, err, "starting isa-l"));
    isal_reset(st);
    *state = st;
    return RP_OK;
}

static void isal_close(void *state)
{
    free(state);
}

static uint32_t clamp(size_t n)
{
    return n < (UINT32_C(1) << 30) ? (uint32_t)n : UINT32_C(1) << 30;
}

static const char *error_phrase(int status)
{
    switch (status) {
    case ISAL_INVALID_BLOCK:
        return "invalid block";
    case ISAL_INVALID_SYMBOL:
        return "invalid symbol";
    case ISAL_INVALID_LOOKBACK:
        return "invalid distance too far back";
    default:
        return "bad deflate data";
    }
}

/* Calls isal_inflate once for the window. */
static int call_isal(struct inflate_state *s, struct rp_feed *feed, uint8_t *out, size_t cap,
                     size_t *got)
{
    uint32_t in = clamp((size_t)(feed->end - feed->at)), room = clamp(cap);

    s->next_in = (uint8_t *)(uintptr_t)feed->at;
    s->avail_in = in;
    s->next_out = out;
    s->avail_out = room;
    int status = isal_inflate(s);
    feed->at += in - s->avail_in;
    *got = room - s->avail_out;
    return status;
}

static enum rp_code isal_step(void *state, struct rp_feed *feed, uint8_t *out, size_t cap,
                              size_t *got, enum rp_deflate_state *now, const char **why,
                              struct rp_err *err)
{
    struct isal *st = state;

    *got = 0;
    while (!st->bad) {
        bool empty;

        RP_TRY(rp_feed_fill(feed, &empty, err));
        int status = call_isal(&st->s, feed, out, cap, got);
        if (status < 0) {
            st->bad = error_phrase(status);
            break;
        }
        *now = RP_DEFLATE_MORE;
        if (st->s.block_state == ISAL_BLOCK_FINISH) {
            feed->at -= st->s.read_in_length / 8;
            *now = RP_DEFLATE_END;
        } else if (*got == 0 && empty) {
            *now = RP_DEFLATE_CUT;
        }
        if (*now != RP_DEFLATE_MORE || *got > 0)
            return RP_OK;
    }
    *why = st->bad;

    /* After an error, returns what was decoded before it and not returned yet. */
    size_t held = (size_t)(st->s.tmp_out_valid - st->s.tmp_out_processed);
    size_t n = held < cap - *got ? held : cap - *got;
    memcpy(out + *got, st->s.tmp_out_buffer + st->s.tmp_out_processed, n);
    st->s.tmp_out_processed += (int32_t)n;
    *got += n;
    *now = n < held ? RP_DEFLATE_MORE : RP_DEFLATE_BAD;
    return RP_OK;
}

static uint32_t isal_crc(uint32_t crc, const uint8_t *bytes, size_t n)
{
    return crc32_gzip_refl(crc, bytes, n);
}

const struct rp_deflate rp_deflate_isal = {.name = "isa-l",
                                           .open = isal_open,
                                           .reset = isal_reset,
                                           .step = isal_step,
                                           .crc = isal_crc,
                                           .close = isal_close};
#else
typedef int rp_isal_is_absent; /* a translation unit may not be empty */
#endif
