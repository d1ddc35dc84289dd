/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs one SELECT over the tables and keeps its answer in memory. The SQL may come from anybody: it
 * can only read the tables, and is limited in time.
 */
#include "query/open.h"

struct rp_sql_limits {
    size_t rows;   /* the most rows that are kept; 0 for all */
    int64_t bytes; /* memory of SQLite, and of the answer; 0 for no limit */
    int64_t ns;    /* of time; 0: no limit */
};
#define RP_SQL_BYTES   (INT64_C(1) << 30)
#define RP_SQL_SECONDS 60

enum rp_sql_type { RP_SQL_NULL, RP_SQL_INT, RP_SQL_REAL, RP_SQL_TEXT };

struct rp_sql_cell {
    uint8_t type; /* enum rp_sql_type */
    int64_t i;    /* of a text: its length */
    union {
        double f;
        const char *text;
    } v;
};

struct rp_sql_column {
    const char *name; /* no other has it */
    uint8_t type;     /* the type of all values; RP_SQL_NULL if they have several */
};

struct rp_sql_answer {
    size_t ncolumns, nrows;
    struct rp_sql_column *columns;
    RP_VEC(struct rp_sql_cell) cells; /* row by row */
    bool more;                        /* there are more rows than allowed */
};

/* Texts are in the arena. The cells must be released also after a failure. */
enum rp_code rp_sql_run(struct rp_tables *tables, const char *sql,
                        const struct rp_sql_limits *limits, struct rp_arena *arena,
                        struct rp_sql_answer *out, struct rp_err *err);
void rp_sql_answer_release(struct rp_sql_answer *answer);

/* Returns a value in the form of its column: numbers of a text column as text, in the arena. */
const char *rp_sql_text(const struct rp_sql_cell *cell, struct rp_arena *arena);

/* Returns the unit, "ns", "bytes", …, in which a name ends, or RP_UNIT_NONE. */
enum rp_unit rp_sql_unit(const char *name);

/* Makes the answer a stream of one Arrow batch. */
enum rp_code rp_sql_stream(const struct rp_sql_answer *answer, struct ArrowArrayStream *out,
                           struct rp_err *err);
