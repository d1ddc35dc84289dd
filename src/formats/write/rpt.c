/* SPDX-License-Identifier: Apache-2.0 */
/* The row for the native file in the table of writers; trace/rpt/rpt.h does the work. */
#include "trace/rpt/rpt.h"
#include "formats/write/writers.h"

static enum rp_code write_rpt(const struct rp_trace *trace, const char *path,
                              const struct rp_write_options *options, struct rp_err *err)
{
    struct rp_out *out;

    (void)options;
    RP_TRY(rp_out_open(path, &out, err));
    enum rp_code code = rp_rpt_write(trace, out, err);
    if (code != RP_OK) {
        rp_out_abandon(out);
        return code;
    }
    return rp_out_close(out, err);
}

const struct rp_writer rp_writer_rpt = {
    .name = "rpt",
    .endings = {".rpt"},
    .summary = "Reprise's own format: complete, opened without parsing",
    .streams = true,
    .available = true,
    .samples = RP_SAMPLES_ALL,
    .write = write_rpt,
};
