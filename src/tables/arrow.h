/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tables in Arrow's memory layout (the C data interface of <reprise/tables.h>). Buffers that are
 * made here are in the arena of a batch; columns of a trace that fit are used where they are.
 */
#include "tables/tables.h"

#include <reprise/tables.h>

/* The data of a batch, which is released with it. */
struct rp_arrow_owner {
    void (*hold)(void *what), (*drop)(void *what); /* NULL: nobody */
    void *what;
};

struct rp_arrow_field {
    const char *name, *format; /* format: of the C data interface */
    const char *values;        /* for a dictionary the format of its values; otherwise NULL */
    const char *unit, *doc;
    bool nullable;
};

/* The buffers of a column. */
struct rp_arrow_data {
    int64_t length, nulls;
    const void *valid, *values, *bytes;     /* bytes: of texts */
    const struct rp_arrow_data *dictionary; /* or NULL */
};

/* Buffers that can grow: texts, and flags of rows that have a value. */
struct rp_arrow_texts {
    RP_VEC(int64_t) ends; /* the first is 0 */
    RP_VEC(char) bytes;
};
/* Appends a text; bytes that are not UTF-8 become U+FFFD. */
enum rp_code rp_arrow_add_text(struct rp_arrow_texts *texts, const char *text, size_t n,
                               struct rp_err *err);

/* Makes them the buffers of a column; the arena takes over the vectors, also after a failure. */
enum rp_code rp_arrow_keep_texts(struct rp_arrow_texts *texts, struct rp_arena *arena,
                                 struct rp_arrow_data *out, struct rp_err *err);

/* Texts are copied. */
enum rp_code rp_arrow_schema(const struct rp_arrow_field *fields, size_t n, struct ArrowSchema *out,
                             struct rp_err *err);

/* Makes a batch of the columns; it takes over the arena, which holds their data, also after a
   failure. */
enum rp_code rp_arrow_batch(const struct rp_arrow_data *columns, size_t n, int64_t length,
                            struct rp_arena *arena, const struct rp_arrow_owner *owner,
                            struct ArrowArray *out, struct rp_err *err);

/* Makes a stream of the rows of a table, which must be prepared, with a batch for each part. names
   selects columns; without names it has all. */
enum rp_code rp_arrow_stream(const struct rp_table_set *set, const struct rp_table *table,
                             const char *const *columns, size_t ncolumns,
                             const struct rp_arrow_owner *owner, struct ArrowArrayStream *out,
                             struct rp_err *err);

/* Makes a stream of one batch, which it takes over, also after a failure. Texts of the fields are
   copied. */
enum rp_code rp_arrow_stream_of(const struct rp_arrow_field *fields, size_t n,
                                struct ArrowArray *batch, struct ArrowArrayStream *out,
                                struct rp_err *err);
