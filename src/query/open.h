/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The tables of a dataset: its traces stay in memory as long as anybody reads from them. */
#include "dataset/load.h"
#include "formats/formats.h"
#include "tables/arrow.h"

#include <pthread.h>
#include <stdatomic.h>

struct rp_tables {
    atomic_size_t users; /* number of users: the opener, and streams and batches */
    pthread_mutex_t lock;
    const struct rp_dataset *dataset;
    struct rp_ctx *ctx;
    RP_VEC(struct rp_import) imports;
    struct rp_arena arena; /* names of files */
    struct rp_table_set set;
    struct rp_result *report; /* the report whose findings `findings` shows, or NULL */
};

/* Derives the data that a table needs; may be called from any thread. */
enum rp_code rp_tables_prepare(struct rp_tables *tables, const struct rp_table *table,
                               struct rp_err *err);
