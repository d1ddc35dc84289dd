/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a table of a trace as an Arrow file, like `query` for the table of a run. */
#include "convert/derived.h"
#include "tables/ipc.h"

#include <stdlib.h>

static enum rp_code write_arrow(const struct rp_trace *trace, const char *path,
                                const struct rp_write_options *options, struct rp_err *err)
{
    const struct rp_table *table =
        rp_table_find(options && options->table ? options->table : "events");
    struct rp_table_rank *rank = calloc(1, sizeof *rank);
    RP_SCOPED(rp_table_set_release) struct rp_table_set set = {0};

    RP_TRY(rp_err_need(rank, err, "writing a table"));
    rank->trace = trace;
    rank->number = trace->rank != RP_NO_RANK ? trace->rank : options ? options->rank : 0;
    rank->path = options && options->input ? options->input : "";
    rp_table_set_init(&set, rank, 1);
    RP_TRY(rp_table_prepare(&set, table, err));
    struct ArrowArrayStream stream;
    int64_t rows;
    RP_TRY(rp_arrow_stream(&set, table, NULL, 0, NULL, &stream, err));
    enum rp_code code = rp_ipc_save(&stream, path, &rows, err);
    stream.release(&stream);
    return code;
}

const struct rp_writer rp_writer_arrow = {
    .name = "arrow",
    .endings = {".arrow", ".feather"},
    .summary = "Arrow IPC file of one table",
    .streams = true,
    .available = true,
    .by_rank = true,
    .write = write_arrow,
};
