/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_RESULT_H
#define REPRISE_RESULT_H
/*
 * Results. The answer to a question is a record: a plain C struct that a table of fields (struct
 * rp_type) describes. The same description serves to print it as a table, JSON or CSV, to read
 * values by path, and to walk it from other languages.
 *
 *   struct kernel { const char *name; int64_t total_ns; };
 *   static const struct rp_field kernel_fields[] = {
 *       RP_FIELD(struct kernel, name, STR, NONE, "kernel", "demangled name", RP_SHORTEN),
 *       RP_FIELD(struct kernel, total_ns, I64, NS, "total", "sum of its durations", 0),
 *       RP_FIELD_END};
 *
 * A key ends in its unit (total_ns, size_bytes), or the key of an enclosing map or record does.
 */
#include <reprise/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rp_type_id {
    RP_T_BOOL,   /* bool */
    RP_T_I64,    /* int64_t; RP_ABSENT_I64 prints as null where the field has RP_NULLABLE */
    RP_T_U64,    /* uint64_t */
    RP_T_F64,    /* double; NaN prints as null */
    RP_T_STR,    /* const char *; NULL prints as null */
    RP_T_RECORD, /* a struct inside the struct */
    RP_T_LIST,   /* pointer to items, and a size_t count at count_offset */
    RP_T_MAP,    /* as a list; the item's first field is the key (RP_T_STR). An item of two fields
                    is "key": value, one of more is "key": {the other fields} */
    RP_T_PLAIN,  /* memory without pointers, count_offset bytes of it; never in a result */
    RP_T_VEC     /* a list that can grow; never in a result */
};

#define RP_ABSENT_I64 INT64_MIN

enum rp_unit {
    RP_UNIT_NONE,  /* text, names, flags, ids */
    RP_UNIT_COUNT, /* number of things: printed with thousands separators */
    RP_UNIT_NS,    /* key ends in _ns; printed as 628.1 ms */
    RP_UNIT_BYTES, /* _bytes; printed as 62.4 MB */
    RP_UNIT_RATIO, /* _ratio or _share: 1 is the whole; printed as 97.7 % */
    RP_UNIT_BPS,   /* _bytes_per_s */
    RP_UNIT_FLOPS, /* _flops_per_s */
    RP_UNIT_HZ,    /* _hz */
    RP_UNIT_FLOP   /* flops: number of operations; printed as 276.7 GFLOP */
};

enum {                     /* rp_field.flags */
       RP_NULLABLE = 1,    /* RP_ABSENT_I64 means: not known; an empty map, and a record whose
                              first field is a text that is not there: null */
       RP_SHORTEN = 2,     /* a long text may be cut in its middle to fit the screen */
       RP_WIDE = 4,        /* left out of the table where the screen is too narrow */
       RP_BLOCKS = 8,      /* a list shown as one block per item instead of one row per item */
       RP_WARN = 16,       /* shown as a warning */
       RP_SCREEN = 32,     /* on the screen only, not in JSON and CSV */
       RP_WHOLE = 64,      /* a text before which columns marked RP_WIDE are left out */
       RP_LABEL = 128,     /* short for the field "name" of the record, which wide tables show */
       RP_VERBATIM = 256,  /* lines of a list of texts, printed as they are, without a heading */
       RP_LARGEST = 512,   /* of a column: a long table shows the rows with the largest values only;
                              of several such columns the last counts, then the one before */
       RP_SMALLEST = 1024, /* ... with the smallest */
       RP_BAR = 2048       /* of a column of ratios: a bar beside it, where the caller wants bars */
};

struct rp_type;

struct rp_field {
    const char *key;   /* in JSON and CSV; NULL in the only field of a type that is a plain value */
    const char *title; /* heading in the table; NULL: not shown there */
    enum rp_type_id type;
    enum rp_unit unit;
    unsigned flags;
    size_t offset, count_offset;
    const struct rp_type *item; /* of a record, list or map: the type of what it contains */
    const char *doc;            /* meaning, one line */
    const char *columns;        /* of a list or map on the screen: which fields of its items are the
                                   columns; NULL: those with a title, in their order */
};

struct rp_type {
    const char *name; /* of the record: "info", "kernel" */
    size_t size;
    const struct rp_field *fields; /* ended by a field whose doc is NULL */
    const char *rows;              /* path of the list that CSV prints, e.g. "files" or
                                      "ranks/causes"; NULL: the record itself is the only row */
};

/* All members of a field but `columns`. */
#define RP_FIELD_(key_, title_, type_, unit_, flags_, offset_, count_, item_, doc_) \
    {                                                                               \
        key_, title_, type_, unit_, flags_, offset_, count_, item_, doc_, NULL      \
    }
#define RP_FIELD(s, member, type_, unit_, title_, doc_, flags_)                               \
    RP_FIELD_(#member, title_, RP_T_##type_, RP_UNIT_##unit_, flags_, offsetof(s, member), 0, \
              NULL, doc_)
/* A key that is not the name of the member, which may be inside another: "default", b.window_ns. */
#define RP_FIELD_AS(key_, s, member, type_, unit_, title_, doc_, flags_)                         \
    RP_FIELD_(key_, title_, RP_T_##type_, RP_UNIT_##unit_, flags_, offsetof(s, member), 0, NULL, \
              doc_)
#define RP_FIELD_RECORD(s, member, item_, title_, doc_, flags_)                                  \
    RP_FIELD_(#member, title_, RP_T_RECORD, RP_UNIT_NONE, flags_, offsetof(s, member), 0, item_, \
              doc_)
/* The count is a size_t member named n<member>: { size_t nkernels; struct kernel *kernels; } */
#define RP_FIELD_LIST(s, member, item_, title_, doc_, flags_)                        \
    RP_FIELD_(#member, title_, RP_T_LIST, RP_UNIT_NONE, flags_, offsetof(s, member), \
              offsetof(s, n##member), item_, doc_)
#define RP_FIELD_MAP(s, member, item_, title_, doc_, flags_)                        \
    RP_FIELD_(#member, title_, RP_T_MAP, RP_UNIT_NONE, flags_, offsetof(s, member), \
              offsetof(s, n##member), item_, doc_)
/*
 * A list that only the screen shows, of records that JSON and CSV have in another list. columns_
 * chooses among the fields of its items, so that a field is declared once: their keys in the order
 * of the columns, separated by ", ". Behind a key, '+' leaves the column out where the screen is
 * too narrow (RP_WIDE), '-' does not, '~' adds RP_SHORTEN, '*' RP_WHOLE; then ":" and another title
 * may follow.
 *
 *     "label*, count, total_ns, self_ns+, window_ns:span"
 */
#define RP_FIELD_SHOWN(s, member, item_, title_, columns_, flags_)                           \
    {                                                                                        \
#member, title_, RP_T_LIST, RP_UNIT_NONE, RP_SCREEN | (flags_), offsetof(s, member), \
            offsetof(s, n##member), item_, "text output only", columns_                      \
    }
#define RP_FIELD_END RP_FIELD_(NULL, NULL, RP_T_BOOL, RP_UNIT_NONE, 0, 0, 0, NULL, NULL)

/* Plain values for lists: a list of strings is a list of rp_type_string. */
RP_API extern const struct rp_type rp_type_string; /* const char * */
RP_API extern const struct rp_type rp_type_int;    /* int64_t */
RP_API extern const struct rp_type rp_type_number; /* double */

struct rp_result; /* owns the record; made by rp_ask */

RP_API const struct rp_type *rp_result_type(const struct rp_result *result);
RP_API const void *rp_result_borrow_root(const struct rp_result *result);
/* The exit status: 0 or RP_ANSWER_NO. */
enum { RP_ANSWER_NO = 1 };
RP_API int rp_result_answer(const struct rp_result *result);
/* 1: nothing is missing in the answer. 0: a file could not be read or is truncated, the recorder
   lost events, ranks are missing …; "trust" in JSON has the details. */
RP_API int rp_result_complete(const struct rp_result *result);
/* What to know about the inputs, such as traces that are not of one run: the i-th line, or NULL
   after the last. Tables begin with these lines; CSV has no place for them. Those that make the
   answer incomplete come first. */
RP_API const char *rp_result_warning(const struct rp_result *result, size_t i);
RP_API void rp_result_free(struct rp_result *result);

enum rp_print_format { RP_PRINT_TABLE, RP_PRINT_JSON, RP_PRINT_CSV };

struct rp_print_options {
    size_t struct_size; /* sizeof(struct rp_print_options) */
    enum rp_print_format format;
    int color; /* 0 never, 1 yes */
    int width; /* of the screen, in columns; 0: 80 */
    int wide;  /* 1: tables with all columns and whole names, however long their lines */
    int all;   /* 1: tables with all rows, however many */
    int bars;  /* bars beside shares, where there is room: 0 none, 1 of ASCII, 2 of blocks */
    int ascii; /* 1: plots in ASCII, 0: of blocks and lines */
};

/* Prints to a file descriptor. In JSON, "schema" is "reprise.<type name>/1". */
RP_API enum rp_code rp_result_print(const struct rp_result *result,
                                    const struct rp_print_options *options, int fd,
                                    struct rp_err *err);

/* As rp_result_print, to a file that gets its name only when it is complete. */
RP_API enum rp_code rp_result_save(const struct rp_result *result,
                                   const struct rp_print_options *options, const char *path,
                                   struct rp_err *err);

/*
 * Values by path. A path consists of keys and positions in lists, separated by '.' or '/':
 * "baseline.measured_ns", "ranks.0.busy_ns". Keys of maps may contain both characters; the longest
 * key that matches is taken. The keys are those that --json prints ("schema" apart).
 *
 * These return 1 and set *out; or 0, and leave *out alone, where the path does not exist, the value
 * has another type, or it is not known (null in JSON). i64 also reads a uint64_t that fits, f64
 * reads any number. A text belongs to the result. rp_result_count gives the length of a list or
 * map.
 */
RP_API int rp_result_i64(const struct rp_result *result, const char *path, int64_t *out);
RP_API int rp_result_f64(const struct rp_result *result, const char *path, double *out);
RP_API int rp_result_bool(const struct rp_result *result, const char *path, bool *out);
RP_API int rp_result_text(const struct rp_result *result, const char *path, const char **out);
RP_API int rp_result_count(const struct rp_result *result, const char *path, size_t *out);

/*
 * A place inside a result. At a record, or at a list item that is a record, field is NULL. Anywhere
 * else `at` is the record that holds the field (the value is at + offset, the count of a list at +
 * count_offset); an item that is a plain value holds its only field. Most programs need only rows
 * and the getters below.
 */
struct rp_cursor {
    const struct rp_type *type; /* of what `at` points to */
    const struct rp_field *field;
    const void *at;
};

/* Returns 1 where the path exists; "" is the root. */
RP_API int rp_result_find(const struct rp_result *result, const char *path, struct rp_cursor *out);

/*
 * The items of a list or map:
 *
 *     struct rp_rows rows;
 *     if (rp_result_rows(result, "kernels", &rows))
 *         while (rp_rows_next(&rows))
 *             if (rp_row_text(&rows.row, "name", &name) && rp_row_i64(&rows.row, "total_ns", &ns))
 *                 printf("%s %lld\n", name, (long long)ns);
 *
 * Paths of the rp_row functions begin at the row; "" is the row itself, for lists of plain values
 * and for the value of a map. Rows inside a row: rp_row_rows.
 */
struct rp_rows {
    struct rp_cursor row; /* valid after rp_rows_next returned 1 */
    size_t i, n;          /* position of the row, number of rows */
    struct rp_cursor list;
};

RP_API int rp_result_rows(const struct rp_result *result, const char *path, struct rp_rows *out);
RP_API int rp_rows_next(struct rp_rows *rows);              /* 0: there are no more */
RP_API const char *rp_rows_key(const struct rp_rows *rows); /* of a map's row; NULL in a list */

RP_API int rp_row_i64(const struct rp_cursor *row, const char *path, int64_t *out);
RP_API int rp_row_f64(const struct rp_cursor *row, const char *path, double *out);
RP_API int rp_row_bool(const struct rp_cursor *row, const char *path, bool *out);
RP_API int rp_row_text(const struct rp_cursor *row, const char *path, const char **out);
RP_API int rp_row_count(const struct rp_cursor *row, const char *path, size_t *out);
RP_API int rp_row_find(const struct rp_cursor *row, const char *path, struct rp_cursor *out);
RP_API int rp_row_rows(const struct rp_cursor *row, const char *path, struct rp_rows *out);

/* The i-th field of a type, or NULL after the last. Fields may get more members at their end: do
   not index `fields` yourself. */
RP_API const struct rp_field *rp_type_field(const struct rp_type *type, size_t i);

#ifdef __cplusplus
}
#endif
#endif
