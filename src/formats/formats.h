/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The formats that can be read (list.h): one row and one reader each. A reader gets an input at its
 * beginning and fills an import with a trace or a program.
 */
#include "base/limits.h"
#include "io/input.h"
#include "program/program.h"
#include "trace/trace.h"

/*
 * Content is recognised by its first bytes. The format with the highest confidence reads it; if
 * several are equal, the first in the table does.
 */
#define RP_SNIFF_BYTES 65536

enum rp_sniff {
    RP_SNIFF_NO,
    RP_SNIFF_FALLBACK, /* the right kind of text, without evidence for or against it */
    RP_SNIFF_LIKELY,   /* fits, but other formats may fit better */
    RP_SNIFF_CERTAIN   /* a magic number, or a key that no other format uses */
};

/* The first byte that is not white space (after a byte order mark, if any), or n. */
size_t rp_sniff_space(const uint8_t *head, size_t n, size_t from);

/*
 * Whether the first object at a depth of a JSON text has a key: depth 1 is the top-level object, 2
 * the first object in a top-level array. 1: it has; 0: the head ends before that is known; -1: it
 * has not, or there is no such object.
 */
int rp_sniff_json_key(const uint8_t *head, size_t n, unsigned depth, const char *key);

enum rp_format_kind {
    RP_FORMAT_KIND_TRACE,
    RP_FORMAT_KIND_PROGRAM,
    RP_FORMAT_KIND_BUFFERS, /* a buffer assignment (formats/buffers/): reading fills nothing */
    RP_FORMAT_KIND_DIGEST,  /* parts of questions (formats/digest/): reading fills nothing */
    RP_FORMAT_KIND_COMPILES /* what a compiler did (formats/torch_trace/): reading fills nothing */
};

/* Called now and then with the number of (decompressed) bytes read so far; total is 0 if not known.
 * If it returns false, reading is cancelled: the reader returns RP_CANCELLED. */
typedef bool rp_read_progress_fn(void *user, uint64_t done_bytes, uint64_t total_bytes);

struct rp_read_options {
    const struct rp_limits *limits; /* NULL: the defaults */
    bool salvage;                   /* read what can be read of damaged data, with warnings */
    bool threaded;                  /* reading this input may use a second thread */
    rp_read_progress_fn *progress;  /* NULL: none */
    void *progress_user;
};

/* The result of reading one input. Begin with RP_IMPORT_INIT. */
struct rp_import {
    const struct rp_format *format; /* the format of the input */
    struct rp_trace *trace;         /* or NULL */
    struct rp_program *program;     /* or NULL */
    bool borrows_input;             /* set by a reader whose results point into the input */
    struct rp_input *input;         /* the open input then, which rp_import_release closes */
    bool beside_another; /* another file of its folder is read with it, so in a folder it is not a
                            rank of its own */
    uint32_t unread;     /* secrets of the program that the input holds and the trace does
                            not: bits RP_SECRET_BIT(…) of trace/secrets.h */
    uint64_t content_bytes;     /* decompressed */
    int64_t read_ns, finish_ns; /* time spent reading, and in the passes of finish */
};

#define RP_IMPORT_INIT \
    {                  \
        0              \
    }

/* Frees the whole import. Whoever keeps the trace keeps the import, into which it may point. */
void rp_import_release(struct rp_import *import);

struct rp_format {
    const char *name;       /* "chrome-json" */
    const char *summary;    /* what it is, one line */
    const char *files;      /* how such files are usually called: "*.json, *.json.gz" */
    const char *written_by; /* programs and functions that write it */
    enum rp_format_kind kind;
    /* A recording of allocations only: next to other traces in a folder it is not a rank of their
       run, and only questions that ask for such files (load.h) read it. */
    bool memory_only;
    /* How well the first bytes of the content fit (RP_SNIFF_BYTES, fewer only if it is shorter);
     * file is its name, for formats that have no other sign. */
    enum rp_sniff (*sniff)(const uint8_t *head, size_t n, const char *file);
    /* Fills trace or program, and content_bytes. options is never NULL, but its limits may be.
     * Messages need not name the file: rp_format_read does. Leaves the input open. */
    enum rp_code (*read)(struct rp_input *in, const struct rp_read_options *options,
                         struct rp_import *to, struct rp_err *err);
};

/* The i-th format, or NULL. */
const struct rp_format *rp_format_at(size_t i);

/*
 * The format of an input's content, which is left at its beginning. If it is empty or nothing fits,
 * returns RP_FORMAT; the message shows the first bytes and lists the formats.
 */
enum rp_code rp_format_sniff(struct rp_input *in, const struct rp_format **out, struct rp_err *err);

/*
 * Finds the format and reads. Takes ownership of the input: it is closed on failure and if nothing
 * points into it, otherwise the import keeps it. options: NULL for none. On failure the import is
 * empty, and the message names the file.
 */
enum rp_code rp_format_read(struct rp_input *in, const struct rp_read_options *options,
                            struct rp_import *to, struct rp_err *err);
