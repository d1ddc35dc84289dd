/* SPDX-License-Identifier: Apache-2.0 */
/* Writes headers of a tar: sizes in octal, from 8 GiB on in the binary form that GNU and pax tars
   share. */

#include "io/tar.h"

#include <stdio.h>
#include <string.h>

#define OCTAL_MOST ((UINT64_C(1) << 33) - 1)

static void put_size(char *at, uint64_t n)
{
    if (n <= OCTAL_MOST) {
        snprintf(at, 12, "%011llo", (unsigned long long)n);
        return;
    }
    at[0] = (char)0x80;
    for (unsigned i = 0; i < 8; i++)
        at[4 + i] = (char)(n >> (56 - 8 * i));
}

void rp_tar_put_header(struct rp_out *out, const char *name, uint64_t n)
{
    char h[RP_TAR_BLOCK] = {0};
    unsigned sum = 0;

    snprintf(h, 100, "%s", name);
    memcpy(h + 100, "0000644", 8);
    memcpy(h + 108, "0000000", 8);
    memcpy(h + 116, "0000000", 8);
    put_size(h + 124, n);
    memcpy(h + 136, "00000000000", 12);
    memset(h + 148, ' ', 8);
    h[156] = '0';
    memcpy(h + 257,
           "ustar\0"
           "00",
           8);
    for (size_t i = 0; i < sizeof h; i++)
        sum += (unsigned char)h[i];
    snprintf(h + 148, 8, "%06o", sum);
    h[155] = ' ';
    rp_out_write(out, h, sizeof h);
}

static void zeros(struct rp_out *out, size_t n)
{
    static const char none[RP_TAR_BLOCK];

    for (; n >= sizeof none; n -= sizeof none)
        rp_out_write(out, none, sizeof none);
    rp_out_write(out, none, n);
}

void rp_tar_put_end(struct rp_out *out, uint64_t n)
{
    zeros(out, (size_t)((RP_TAR_BLOCK - n % RP_TAR_BLOCK) % RP_TAR_BLOCK));
}

void rp_tar_put_last(struct rp_out *out)
{
    zeros(out, 2 * (size_t)RP_TAR_BLOCK);
}
