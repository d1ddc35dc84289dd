/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of a recording from any bytes, behind a description that is right: each file is two
 * bytes of length (little endian) and that many bytes. What loads must be a valid trace.
 */
#include "formats/ctf/ctf.h"
#include "formats/list.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char description[] =
    "/* CTF 1.8 */\nenv { tracer_name = \"reprise\"; reprise_layout = 1; rank = 3; world_size = 8; "
    "};\nclock { name = \"counter\"; freq = 2000000000; offset_s = 1700000000; offset = 5; };\n";

static enum rp_code add_files(struct rp_ctf_reader *r, const uint8_t *data, size_t size,
                              struct rp_err *err)
{
    while (size >= 2) {
        size_t n = (size_t)data[0] | (size_t)data[1] << 8;

        n = n < size - 2 ? n : size - 2;
        if (rp_ctf_files_split(r, "s_fuzz", data + 2, n, err) == RP_NOMEM)
            return RP_NOMEM;
        data += 2 + n;
        size -= 2 + n;
    }
    return RP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_limits limits = {.input_bytes = 1 << 24,
                               .token_bytes = 1 << 12,
                               .events = 100000,
                               .members = 100,
                               .depth = 16};
    struct rp_read_options options = {.limits = &limits};
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_ctf_reader r;
    struct rp_input *in;
    enum rp_code code;

    rp_format_ctf.sniff(data, size, "fuzz");
    if (rp_input_open_memory("metadata", description, sizeof description - 1, &limits, &in, &err))
        return 0;
    code = rp_ctf_reader_init(&r, in, &options, &err);
    r.spill_at = 4; /* so that it happens */
    if (code == RP_OK)
        code = rp_ctf_describe(&r, &err);
    if (code == RP_OK)
        code = add_files(&r, data, size, &err);
    if (code == RP_OK)
        code = rp_ctf_read_packets(&r, &err);
    if (code == RP_OK)
        code = rp_proto_trace_finish(&r.t, &import, 0, &err);
    if (code == RP_OK && rp_trace_validate(import.trace, &err) != RP_OK && err.code != RP_NOMEM)
        abort();
    rp_import_release(&import);
    rp_ctf_reader_release(&r);
    rp_input_close(in);
    return 0;
}
