/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_TABLES_H
#define REPRISE_TABLES_H
/*
 * The events of a run, and what is known about them, as tables: ranks, events, kernels, launches,
 * operators, steps, collectives, findings. Data leaves the library by the Arrow C stream interface,
 * which pyarrow, polars, DuckDB, pandas and others take without a copy:
 *
 *     struct ArrowArrayStream stream;
 *     if (rp_tables_open(dataset, &tables, &err) == RP_OK &&
 *         rp_tables_stream(tables, "kernels", &stream, &err) == RP_OK)
 *         hand_over(&stream);
 *     rp_tables_free(tables);
 *
 * A stream has one batch for each rank. Columns that are in memory as they are wanted (times, names
 * and kinds of events) are not copied; the others are filled on the threads of the context. A batch
 * holds on to the traces: tables may be freed before the last stream or batch is released.
 *
 * The description is what `reprise query .schema` prints.
 */
#include <reprise/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The three structs of the Arrow C data and stream interfaces, as their specification gives them;
   any other header that has them has the same guards. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE           2
#define ARROW_FLAG_MAP_KEYS_SORTED    4

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif

struct rp_tables;

/* Reads the traces of the dataset, on the threads of its context, and keeps them in memory (native
   files are mapped). Context and dataset must outlive the tables. What a table needs is derived
   when it is first asked for. */
RP_API enum rp_code rp_tables_open(const struct rp_dataset *dataset, struct rp_tables **out,
                                   struct rp_err *err);
RP_API void rp_tables_free(struct rp_tables *tables); /* NULL is fine */

struct rp_table_view {
    const char *name; /* "kernels" */
    const char *doc;  /* what a row is, one line */
    size_t ncolumns;
};

struct rp_column_view {
    const char *name; /* "dur_ns": ends in its unit, if it has one */
    const char *type; /* "integer", "real", "text" or "bool" */
    const char *unit; /* "ns", "bytes", "share" …, or "" */
    const char *doc;  /* one line */
    int nullable;     /* 1: may be NULL */
};

/* The tables, and the columns of one (none where there is no such table). They are constants. size:
   of an element of `out`, see timeline.h. */
RP_API size_t rp_tables_list(size_t first, size_t n, struct rp_table_view *out, size_t size);
RP_API size_t rp_tables_columns(const char *table, size_t first, size_t n,
                                struct rp_column_view *out, size_t size);

/* The rows of a table. The caller releases the stream. Integers are int64 or narrower, times are
   int64 in ns as recorded, texts are utf8 or dictionaries of utf8; the metadata of a field has its
   "unit" and "doc". Threads may ask for several streams at once. */
RP_API enum rp_code rp_tables_stream(struct rp_tables *tables, const char *table,
                                     struct ArrowArrayStream *out, struct rp_err *err);

/* The same with these columns only, in this order. */
RP_API enum rp_code rp_tables_stream_columns(struct rp_tables *tables, const char *table,
                                             const char *const *columns, size_t ncolumns,
                                             struct ArrowArrayStream *out, struct rp_err *err);

/* The rows that an SQL query gives, as one batch; see docs/cli/query.md. limit: rows at most, 0:
   all. RP_LIMIT where the query needs more memory or time than `reprise query` allows by default.
   RP_MISSING where the library was built without SQLite. */
RP_API enum rp_code rp_tables_query(struct rp_tables *tables, const char *sql, size_t limit,
                                    struct ArrowArrayStream *out, struct rp_err *err);

#ifdef __cplusplus
}
#endif
#endif
