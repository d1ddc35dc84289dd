/* SPDX-License-Identifier: Apache-2.0 */
/* Finds which files of a module describe its buffers. */
#include "dump/buffers.h"

#include <string.h>

static enum rp_code read_text(const struct rp_dump_folder *folder, size_t source,
                              enum rp_code (*reader)(struct rp_buffers *, const char *, size_t,
                                                     const struct rp_limits *, struct rp_err *),
                              struct rp_buffers *b, struct rp_err *err)
{
    struct rp_dump_content file;

    RP_TRY(rp_dump_open(&file, folder, source, err));
    enum rp_code code = reader(b, (const char *)file.bytes, file.n, &folder->dataset->limits, err);
    return rp_dump_close(&file, code, err);
}

static enum rp_code read_proto(const struct rp_dump_folder *folder, size_t source,
                               struct rp_buffers *b, bool *found, struct rp_err *err)
{
    const struct rp_format *format;
    const uint8_t *bytes;
    struct rp_input *in;
    size_t n;

    RP_TRY(rp_source_open(folder->dataset->sources, source, &in, err));
    enum rp_code code = rp_format_sniff(in, &format, err);
    if (code != RP_OK || strcmp(format->name, "hlo-proto") != 0) {
        rp_source_return(folder->dataset->sources, source, in);
        return code == RP_FORMAT ? RP_OK : code;
    }
    code = rp_input_slurp(in, &bytes, &n, err);
    if (code == RP_OK)
        code = rp_buffers_read_proto(b, (struct rp_bytes){bytes, n}, found, err);
    rp_input_close(in);
    return rp_dump_in_file(folder, source, code, err);
}

enum rp_code rp_dump_buffers(const struct rp_dump_folder *folder,
                             const struct rp_dump_module *module, struct rp_buffers *b, bool *found,
                             struct rp_err *err)
{
    size_t text = rp_dump_file_of(module, RP_DUMP_BUFFERS);
    size_t ranges = rp_dump_file_of(module, RP_DUMP_LIVE_RANGE);
    const struct rp_dump_stage *final = rp_dump_final(module);

    rp_buffers_init(b);
    *found = text != SIZE_MAX;
    if (*found) {
        RP_TRY(read_text(folder, text, rp_buffers_read_text, b, err));
        return ranges == SIZE_MAX ? RP_OK
                                  : read_text(folder, ranges, rp_buffers_read_ranges, b, err);
    }
    if (!final || final->point == RP_DUMP_AT_SOURCE || final->point == RP_DUMP_AT_BEFORE ||
        final->point == RP_DUMP_AT_RUN)
        return RP_OK;
    return read_proto(folder, final->source, b, found, err);
}

enum rp_code rp_dump_reported_bytes(const struct rp_dump_folder *folder,
                                    const struct rp_dump_module *module, int64_t *out,
                                    struct rp_err *err)
{
    size_t source = rp_dump_file_of(module, RP_DUMP_MEMORY_REPORT);
    struct rp_dump_content file;

    *out = RP_ABSENT_I64;
    if (source == SIZE_MAX)
        return RP_OK;
    RP_TRY(rp_dump_open(&file, folder, source, err));
    enum rp_code code = rp_buffers_read_report((const char *)file.bytes, file.n, out, err);
    return rp_dump_close(&file, code, err);
}
