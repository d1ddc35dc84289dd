/* SPDX-License-Identifier: Apache-2.0 */
/* Files of sampling profilers; the first byte chooses the reader. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct rp_format *const readers[] = {
        &rp_format_folded,     &rp_format_bpftrace, &rp_format_perf_script,
        &rp_format_speedscope, &rp_format_pprof,    &rp_format_perf_data,
        &rp_format_gperftools, &rp_format_firefox,  &rp_format_austin};
    const size_t n = sizeof readers / sizeof *readers;

    if (!size)
        return 0;
    return fuzz_read_trace(readers[data[0] % n], "fuzz.profile", data + 1, size - 1);
}
