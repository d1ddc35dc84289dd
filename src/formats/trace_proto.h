/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What readers of traces in protocol buffers share: texts with their limits, names of processes and
 * threads, facts about the file as JSON, and recognising and finishing such files.
 */
#include "formats/formats.h"
#include "io/emit.h"
#include "io/proto.h"
#include "trace/build/build.h"

__extension__ typedef __int128 rp_wide_ns;

struct rp_proto_trace {
    struct rp_input *in;
    const struct rp_read_options *options;
    struct rp_limits limits;
    struct rp_builder *builder;
    struct rp_trace *trace; /* belongs to the builder; a reader sets fields and counters in it */
    struct rp_health *health;
    const uint8_t *bytes; /* the whole input */
    size_t n;
    uint64_t nevents; /* events of the file */
    rp_str newest;    /* strings up to this one were already checked */
    struct {          /* string literals that were interned, by address */
        const char *text;
        rp_str str;
    } words[64];
};

/* Reads the whole content into memory if it is not mapped. `name` is the name of the format. */
enum rp_code rp_proto_trace_init(struct rp_proto_trace *t, struct rp_input *in,
                                 const struct rp_read_options *options, const char *name,
                                 struct rp_err *err);
void rp_proto_trace_release(struct rp_proto_trace *t);
/* Ends the builder; begin_ns says when reading began (rp_clock_ns). The reader should release its
   other memory before. */
enum rp_code rp_proto_trace_finish(struct rp_proto_trace *t, struct rp_import *to, int64_t begin_ns,
                                   struct rp_err *err);

/* Interns a text of the input: truncated to the length of a token, and counted if it is not
   UTF-8. */
enum rp_code rp_proto_trace_intern(struct rp_proto_trace *t, struct rp_bytes text, rp_str *out,
                                   struct rp_err *err);
enum rp_code rp_proto_trace_text(struct rp_proto_trace *t, const char *text, rp_str *out,
                                 struct rp_err *err);

/* Interns a string literal, which is looked up only once. */
enum rp_code rp_proto_trace_word(struct rp_proto_trace *t, const char *literal, rp_str *out,
                                 struct rp_err *err);

/* Gives a name to the track, or to its process. */
enum rp_code rp_proto_trace_name(struct rp_proto_trace *t, rp_track track, bool process,
                                 rp_str name, struct rp_err *err);

/* Adds the JSON in e as a fact about the file, and resets e. */
enum rp_code rp_proto_trace_meta(struct rp_proto_trace *t, const char *key, struct rp_emit *e,
                                 struct rp_err *err);

/* Returns RP_CANCELLED if the caller cancels. */
enum rp_code rp_proto_trace_progress(struct rp_proto_trace *t, const uint8_t *at,
                                     struct rp_err *err);

/* Clamps a sum of nanoseconds to the range of times, and counts the sums that had to be clamped. */
int64_t rp_proto_trace_clamp(struct rp_proto_trace *t, rp_wide_ns ns);

/* How often U+FFFD, the replacement character, occurs in bytes that are valid UTF-8 (except for a
   truncated sequence at the end); 0 if they are not valid. Binary data is not valid UTF-8: such a
   file was read as text and written again, and its content is lost. */
size_t rp_proto_count_mangled(const uint8_t *bytes, size_t n);
/* Sets an error that says that the content was mangled in this way; returns RP_FORMAT. */
enum rp_code rp_proto_refuse_mangled(size_t marks, size_t n, struct rp_err *err);

/* Whether the bytes are text without control characters (a name, not a message). */
bool rp_proto_is_text(struct rp_bytes bytes);

static inline bool rp_bytes_begin(struct rp_bytes b, const char *word)
{
    size_t n = strlen(word);

    return b.n >= n && memcmp(b.at, word, n) == 0;
}

static inline bool rp_bytes_are(struct rp_bytes b, const char *word)
{
    return b.n == strlen(word) && memcmp(b.at, word, b.n) == 0;
}
