/* SPDX-License-Identifier: Apache-2.0 */
/* XLA's logs beside a dump: times of passes, fusions, metadata and sequences of thunks. */
#include "formats/dump/logs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct rp_limits limits = {
        .input_bytes = 1 << 20, .token_bytes = 1 << 12, .depth = 32};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_pass_times times;
    struct rp_fusion_log log;
    struct rp_thunks metadata, thunks;

    (void)rp_pass_times_read(data, size, &limits, &arena, &times, NULL);
    (void)rp_fusion_log_read(data, size, &limits, &arena, &log, NULL);
    if (rp_thunks_read((const char *)data, size, &limits, &arena, &thunks, NULL) == RP_OK &&
        rp_thunk_metadata_read(data, size, &limits, &arena, &metadata, NULL) == RP_OK)
        (void)rp_thunks_join(&thunks, &metadata, &arena, NULL);
    if (rp_thunk_metadata_read(data, size, &limits, &arena, &metadata, NULL) == RP_OK)
        (void)rp_thunks_join(&metadata, &metadata, &arena, NULL);
    rp_arena_release(&arena);
    return 0;
}
