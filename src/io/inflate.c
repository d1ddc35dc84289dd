/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of codecs, and the feed that they read from.
 */
#include "io/inflate.h"

#include <string.h>

static const struct rp_codec *const codecs[] = {&rp_codec_gzip, &rp_codec_zstd, &rp_codec_xz};

const struct rp_codec *rp_codec_find(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
        if (n >= codecs[i]->nmagic && memcmp(bytes, codecs[i]->magic, codecs[i]->nmagic) == 0)
            return codecs[i];
    return NULL;
}

enum rp_code rp_feed_fill(struct rp_feed *feed, bool *empty, struct rp_err *err)
{
    if (feed->at == feed->end && !feed->ended) {
        if (feed->more)
            RP_TRY(feed->more(feed, err));
        feed->ended = feed->at == feed->end;
    }
    *empty = feed->at == feed->end;
    return RP_OK;
}

uint64_t rp_feed_position(const struct rp_feed *feed)
{
    return feed->end_offset - (uint64_t)(feed->end - feed->at);
}
