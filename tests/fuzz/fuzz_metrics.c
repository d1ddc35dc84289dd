/* SPDX-License-Identifier: Apache-2.0 */
/* Files of <reprise/metrics.h>, and metric reports as text: read, judged and written. */
#include "io/output.h"
#include "memory_file.h"
#include "metrics/set.h"

#include <string.h>

/* A file is mapped by its reader, so it must be one. */
static enum rp_code read_mapped(const uint8_t *data, size_t size, struct rp_metric_set *set)
{
    struct memory_file file;
    enum rp_code code = RP_IO;

    if (memory_file_open(&file, data, size)) {
        code = rp_metric_set_read_file(file.path, set, NULL);
        memory_file_close(&file);
    }
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_metric_set set = {0};
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_remarks remarks = {0};
    enum rp_code code;
    struct rp_out *out;

    rp_arena_init(&set.arena);
    if (size >= 8 && !memcmp(data, "METRICS1", 8))
        code = read_mapped(data, size, &set);
    else
        code = rp_metric_set_read_text("fuzz", (const char *)data, size, &set, NULL);
    if (code == RP_OK && rp_out_open_memory(&out, NULL) == RP_OK) {
        rp_metric_write_report(&set, out);
        rp_metric_expose(&set, 1, RP_METRIC_OPENMETRICS, out, NULL);
        rp_out_abandon(out);
        rp_metric_remark(&set, &set, 1, &arena, &remarks, NULL);
    }
    rp_vec_release(&remarks);
    rp_arena_release(&arena);
    rp_metric_set_release(&set);
    return 0;
}
