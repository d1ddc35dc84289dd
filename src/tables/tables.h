/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The tables of a run: one description (columns.c) that SQL, Arrow and other exports share.
 *
 * A column tells where its value is, not how to get it: in which array of a rank, at which offset
 * of an element, and by which number, that of the row or one in another array. So nothing is copied
 * to read a row, and a column whose elements are contiguous is an Arrow buffer as it is.
 *
 *     kernels.name   row 7 -> items[7].event = 4711 -> ev.name[4711] -> text of the trace
 *
 * Rows of `events` are in the order of the trace; those of the other tables are ordered by start.
 */
#include "facts/ranks/collectives.h"
#include "facts/ranks/rendezvous.h"
#include "facts/work/attribution.h"
#include "facts/work/launches.h"

#include <reprise/result.h>
#include <string.h>

/* In the order of rp_tables_all. */
enum rp_table_id {
    RP_TABLE_RANKS,
    RP_TABLE_EVENTS,
    RP_TABLE_DEVICE_WORK,
    RP_TABLE_KERNELS,
    RP_TABLE_LAUNCHES,
    RP_TABLE_OPERATORS,
    RP_TABLE_STEPS,
    RP_TABLE_COLLECTIVES,
    RP_TABLE_FINDINGS,
    RP_TABLE_COUNT
};

/* How an element contains a value. */
enum rp_cell {
    RP_CELL_I64,
    RP_CELL_U32,
    RP_CELL_I32,
    RP_CELL_F64,
    RP_CELL_BOOL,
    RP_CELL_NAME, /* rp_str of the trace */
    RP_CELL_WORD, /* uint8_t: the number of a word */
    RP_CELL_TEXT, /* const char *; NULL is NULL */
    RP_CELL_END,  /* of an event: the sum of its start and duration */
    RP_CELL_SINCE /* a time, which counts from the first event of its rank */
};

/* The arrays of a rank. */
enum rp_table_array {
    RP_ARRAY_NONE,
    RP_ARRAY_RANK, /* struct rp_table_rank_row; the same for each row */
    RP_ARRAY_TS,   /* columns of events */
    RP_ARRAY_DUR,
    RP_ARRAY_NAME,
    RP_ARRAY_KIND,
    RP_ARRAY_TRACK_OF,
    RP_ARRAY_PARENT,
    RP_ARRAY_LINK,
    RP_ARRAY_CATEGORY, /* rp_str, by event; made when it is needed */
    RP_ARRAY_NUMBER,   /* 0, 1, 2, …: the id of an event */
    RP_ARRAY_TRACK,    /* struct rp_track_row */
    RP_ARRAY_ITEM,     /* struct rp_work_item */
    RP_ARRAY_OWNER,    /* struct rp_work_owner, by item */
    RP_ARRAY_ITEM_MORE,
    RP_ARRAY_KERNEL, /* the same for kernels only */
    RP_ARRAY_KERNEL_OWNER,
    RP_ARRAY_KERNEL_MORE,
    RP_ARRAY_STREAM, /* struct rp_stream_row, by stream of the work */
    RP_ARRAY_LAUNCH, /* struct rp_launch */
    RP_ARRAY_LAUNCH_MORE,
    RP_ARRAY_OPERATOR,
    RP_ARRAY_STEP,
    RP_ARRAY_COLLECTIVE, /* struct rp_collective */
    RP_ARRAY_COLLECTIVE_MORE,
    RP_ARRAY_FINDING,
    RP_ARRAYS
};

struct rp_table_rank_row {
    int64_t rank;
    const char *file, *format, *framework, *framework_version, *host;
    int64_t world_size, events, steps, begin_ns, end_ns, base_ns;
};
struct rp_track_row {
    const char *process, *thread;
    int32_t device;
    uint8_t kind;
};
struct rp_stream_row {
    const char *label;
};
struct rp_item_more {
    int64_t step, device, gap_ns;
    rp_str op, module;
    bool in_graph;
};
struct rp_launch_more {
    int64_t step;
    rp_event first; /* the event of its first item */
    uint32_t stream;
    rp_str op;
};
struct rp_operator_row {
    int64_t step, self_ns, device_ns, kernels;
    rp_event event;
    rp_event parent;      /* the operator around it */
    rp_str shapes, types; /* 0: not recorded */
};
struct rp_step_row {
    int64_t number, begin_ns, end_ns, dur_ns, mark_ns, mark_end_ns;
    const char *name, *source, *phase;
    int64_t requests, tokens;
    int64_t busy_ns, compute_ns, comm_ns, exposed_comm_ns, memory_ns, idle_ns;
    bool warm_up;
};
struct rp_collective_more {
    int64_t dur_ns, step, meeting, wait_ns, transfer_ns, last_rank;
};

struct rp_finding_row {
    const char *id, *title, *evidence, *hint;
    int64_t lost_ns;
    double share;
    bool at_most;
};

struct rp_table_column {
    const char *name, *doc;
    uint8_t cell; /* enum rp_cell */
    uint8_t unit; /* enum rp_unit */
    bool nullable;
    bool indexed;  /* rows with a value are found without a walk */
    uint8_t array; /* enum rp_table_array that contains the value */
    uint8_t via;   /* an array whose uint32_t (at via_offset) is the number of the element; if NONE,
                      it is that of the row */
    uint16_t offset, via_offset;
    int64_t null;                 /* the value that represents NULL */
    const char *(*word)(uint8_t); /* of RP_CELL_WORD */
    uint8_t nwords;
};

struct rp_table {
    const char *name, *doc;
    const struct rp_table_column *columns;
    size_t ncolumns;
    uint8_t start; /* the column by which rows are ordered, or RP_TABLE_UNORDERED */
};
#define RP_TABLE_UNORDERED   UINT8_MAX
#define RP_TABLE_COLUMNS_MAX 32

extern const struct rp_table rp_tables_all[RP_TABLE_COUNT];

/* Returns the table, or NULL. Names are compared without case. */
const struct rp_table *rp_table_find(const char *name);
static inline enum rp_table_id rp_table_id(const struct rp_table *table)
{
    return (enum rp_table_id)(table - rp_tables_all);
}

struct rp_table_span {
    const void *at;
    size_t stride; /* of elements; 0 if one element is for all rows */
};

struct rp_table_rank {
    const struct rp_trace *trace; /* NULL for tables that are not about a rank */
    int32_t number;
    const char *path;
    struct rp_arena arena;
    struct rp_table_span arrays[RP_ARRAYS];
    size_t nrows[RP_TABLE_COUNT];
    struct rp_table_rank_row row;
    struct rp_work work;
    struct rp_attribution owners;
    struct rp_queues queues;
    struct rp_collectives collectives;
};

struct rp_table_set {
    size_t n;
    struct rp_table_rank *ranks; /* by number */
    struct rp_table_rank run;    /* `findings` */
    bool ready[RP_TABLE_COUNT];
    unsigned threads; /* how many may fill the columns of a batch */
};

/* ranks must be zeroed except for trace, number and path; the set takes over the array. The traces
   must outlive the set. */
void rp_table_set_init(struct rp_table_set *set, struct rp_table_rank *ranks, size_t n);
void rp_table_set_release(struct rp_table_set *set);

/* Derives the data that a table needs; only one thread at a time may call it. `findings` are filled
   by others. */
enum rp_code rp_table_prepare(struct rp_table_set *set, const struct rp_table *table,
                              struct rp_err *err);

/* Returns the number of parts of a table: one per rank, or one for the run. */
size_t rp_table_parts(const struct rp_table_set *set, const struct rp_table *table);
const struct rp_table_rank *rp_table_part(const struct rp_table_set *set,
                                          const struct rp_table *table, size_t i);

/* ------------------------------------------------------------------ values */

/* Returns the address of the value of a row, or NULL. For RP_CELL_END it is that of the start. */
static inline const void *rp_table_at(const struct rp_table_rank *r,
                                      const struct rp_table_column *c, size_t row)
{
    if (c->via) {
        uint32_t i;

        memcpy(&i,
               (const char *)r->arrays[c->via].at + r->arrays[c->via].stride * row + c->via_offset,
               sizeof i);
        if (i == RP_NONE)
            return NULL;
        row = i;
    }
    return (const char *)r->arrays[c->array].at + r->arrays[c->array].stride * row + c->offset;
}

/* Gives the value as an integer: for a name or word its number. Returns false if it is NULL. Not
   for reals and texts. */
static inline bool rp_table_int(const struct rp_table_rank *r, const struct rp_table_column *c,
                                size_t row, int64_t *out)
{
    const void *at = rp_table_at(r, c, row);

    if (!at)
        return false;
    switch (c->cell) {
    case RP_CELL_U32:
    case RP_CELL_NAME:
        *out = *(const uint32_t *)at;
        break;
    case RP_CELL_I32:
        *out = *(const int32_t *)at;
        break;
    case RP_CELL_WORD:
        *out = *(const uint8_t *)at;
        break;
    case RP_CELL_BOOL:
        *out = *(const bool *)at;
        break;
    case RP_CELL_END: /* an event, whose number is that of its start */
        if (*(const int64_t *)at == RP_NO_TS)
            return false;
        *out = rp_event_end_ns(r->trace, (rp_event)((const int64_t *)at - r->trace->ev.ts_ns));
        return true;
    default:
        *out = *(const int64_t *)at;
    }
    if (c->nullable && *out == c->null)
        return false;
    if (c->cell == RP_CELL_SINCE)
        *out -= r->row.begin_ns;
    return true;
}
/* Returns the value of a text column, or NULL, and in n its length. */
const char *rp_table_text(const struct rp_table_rank *r, const struct rp_table_column *c,
                          size_t row, size_t *n);
/* False: NULL. */
bool rp_table_real(const struct rp_table_rank *r, const struct rp_table_column *c, size_t row,
                   double *out);

static inline bool rp_table_is_text(const struct rp_table_column *c)
{
    return c->cell == RP_CELL_NAME || c->cell == RP_CELL_WORD || c->cell == RP_CELL_TEXT;
}
/* "integer", "real", "text", "bool"; and "ns", "bytes", "share", …, "". */
const char *rp_table_type_name(const struct rp_table_column *c);
const char *rp_table_unit_name(const struct rp_table_column *c);
