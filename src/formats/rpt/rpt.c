/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native files: the trace points into the input's bytes, which are mapped if the file is not
 * compressed, so the import keeps the input. Costs the same as rp_rpt_open, and nothing per byte.
 */
#include "formats/formats.h"

#include "trace/rpt/rpt.h"

static enum rp_sniff sniff_rpt(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return rp_rpt_sniff(head, n) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

static enum rp_code read_rpt(struct rp_input *in, const struct rp_read_options *options,
                             struct rp_import *to, struct rp_err *err)
{
    const uint8_t *bytes;
    size_t n, part;

    (void)options;
    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    RP_TRY(rp_rpt_part_bytes(bytes, n, &part, err));
    if (part < n)
        return rp_err_set_at(
            err, RP_UNSUPPORTED, part,
            "native file of several ranks (the second begins at byte %zu): write one file per rank",
            part);
    to->borrows_input = true;
    return rp_rpt_open(bytes, n, &to->trace, err);
}

const struct rp_format rp_format_rpt = {
    .name = "rpt",
    .summary = "native trace",
    .files = "*.rpt",
    .written_by = "reprise convert, reprise merge",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_rpt,
    .read = read_rpt,
};
