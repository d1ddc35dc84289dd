/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_TAR_FIXTURES_H
#define RP_TESTS_TAR_FIXTURES_H
/* Tars built by hand, header by header. */
#include "io_fixtures.h"

static inline void tar_checksum(uint8_t *h)
{
    unsigned sum = 0;

    memset(h + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += h[i];
    snprintf((char *)h + 148, 8, "%06o", sum);
}

static inline void tar_header(struct bytes *tar, const char *name, char type, size_t size)
{
    uint8_t h[512] = {0};
    char number[16];

    snprintf((char *)h, 100, "%s", name);
    memcpy(h + 100, "0000644", 8);
    snprintf(number, sizeof number, "%011llo", (unsigned long long)size);
    memcpy(h + 124, number, 12);
    h[156] = (uint8_t)type;
    memcpy(h + 257, "ustar\00000", 8);
    tar_checksum(h);
    bytes_append(tar, h, sizeof h);
}

static inline void tar_content(struct bytes *tar, const void *at, size_t n)
{
    static const uint8_t zeros[512];

    bytes_append(tar, at, n);
    bytes_append(tar, zeros, -n & 511);
}

static inline void tar_file(struct bytes *tar, const char *name, const void *at, size_t n)
{
    tar_header(tar, name, '0', n);
    tar_content(tar, at, n);
}

static inline void tar_text(struct bytes *tar, const char *name, const char *text)
{
    tar_file(tar, name, text, strlen(text));
}

static inline void tar_end(struct bytes *tar)
{
    static const uint8_t zeros[1024];

    bytes_append(tar, zeros, sizeof zeros);
}

#endif
