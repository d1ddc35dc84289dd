/* SPDX-License-Identifier: Apache-2.0 */
/* Digests hold the parts of questions, no events: they are recognised here, and read by questions
   about ranks (dataset/digest_file.h). */
#include "formats/digest/digest.h"

#include "formats/formats.h"

#include <string.h>

static enum rp_sniff sniff_digest(const uint8_t *head, size_t n, const char *file)
{
    size_t len = strlen(RP_DIGEST_MAGIC);

    (void)file;
    return n >= len && !memcmp(head, RP_DIGEST_MAGIC, len) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

static enum rp_code read_digest(struct rp_input *in, const struct rp_read_options *options,
                                struct rp_import *to, struct rp_err *err)
{
    (void)in;
    (void)options;
    (void)err;
    to->borrows_input = true; /* whoever reads it takes the input */
    return RP_OK;
}

const struct rp_format rp_format_digest = {
    .name = "digest",
    .summary = "what questions keep of the ranks of a run",
    .files = "*.rpd",
    .written_by = "reprise digest",
    .kind = RP_FORMAT_KIND_DIGEST,
    .sniff = sniff_digest,
    .read = read_digest,
};
