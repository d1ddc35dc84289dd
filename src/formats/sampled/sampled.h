/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the readers of sampling profilers' files share: lines of text, frames, threads and the
 * beginning and end of reading. Each reader walks its file once and gives every stack from the
 * outermost frame to the innermost (rp_profile_push), or in the other order, if the file has it
 * (rp_profile_keep, rp_profile_push_kept).
 */
#include "base/arena.h"
#include "base/hash.h"
#include "formats/trace_proto.h"
#include "io/json_pull.h"

struct rp_profile_frame {
    struct rp_bytes name, file; /* borrowed texts; file may be empty */
    uint32_t line;
    uint32_t kind; /* enum rp_frame_kind */
};

struct rp_profile {
    struct rp_proto_trace t;
    const uint8_t *at; /* in a text: where the next line begins */
    uint64_t line;     /* in a text: number of the line that was read last */
    uint64_t samples, skipped;
    struct rp_map named;                  /* tracks that already have a name */
    uint32_t stack;                       /* the stack so far; RP_NONE: empty */
    RP_VEC(struct rp_profile_frame) kept; /* innermost first */
    struct rp_input *text;                /* of json */
    struct rp_json *json;                 /* after rp_profile_json */
    int64_t begin_ns;
    uint32_t unread; /* secrets in the file, as in struct rp_import */
    struct rp_err *err;
};

/* Reads the whole input and opens a builder. `unit` is what the weights count (enum
   rp_weight_unit), `unit_name` its name in the file's words, or NULL. It must be released in every
   case. */
enum rp_code rp_profile_begin(struct rp_profile *p, struct rp_input *in,
                              const struct rp_read_options *options, const char *format,
                              struct rp_err *err);
enum rp_code rp_profile_unit(struct rp_profile *p, uint32_t unit, const char *unit_name);
/* Finishes the trace; a file without samples is an error. */
enum rp_code rp_profile_end(struct rp_profile *p, struct rp_import *to);
void rp_profile_release(struct rp_profile *p);

/* Reads the content as JSON from its beginning; a second call begins again. */
enum rp_code rp_profile_json(struct rp_profile *p);

/* Takes the next line of a text, without its end; false at the end of the text. */
bool rp_profile_line(struct rp_profile *p, struct rp_bytes *line);
/* Sets the error "line 3: ..." and returns RP_FORMAT. */
enum rp_code rp_profile_bad_line(struct rp_profile *p, const char *what);

/* The track of a thread of a process, with its name, which may be empty. Its id is
   RP_PROFILE_BY_NAME if the file has only the name. */
#define RP_PROFILE_BY_NAME INT64_MIN
enum rp_code rp_profile_thread(struct rp_profile *p, int64_t pid, int64_t tid, struct rp_bytes name,
                               rp_track *out);
enum rp_code rp_profile_process_name(struct rp_profile *p, rp_track track, struct rp_bytes name);

/* Adds one more frame inside those before it. */
enum rp_code rp_profile_push(struct rp_profile *p, const struct rp_profile_frame *frame);
/* The same for stacks that begin with the innermost frame: frames are kept, then pushed in
   reverse. */
enum rp_code rp_profile_keep(struct rp_profile *p, const struct rp_profile_frame *frame);
enum rp_code rp_profile_push_kept(struct rp_profile *p);

/* Adds a sample of the stack so far, which is empty afterwards. */
enum rp_code rp_profile_sample(struct rp_profile *p, rp_track track, int64_t ts_ns, int64_t weight,
                               uint8_t flags);

/* "name (file.py:12)", "name_[k]", "py::name:file", "file.py:name:12" as profilers write frames */
struct rp_profile_frame rp_profile_parse_frame(struct rp_bytes text);

/* Names an address without a symbol by the file that is mapped there, "libc.so.6+0x271d0";
   "0x271d0" if that is not known. NULL if memory ran out, an error that stays in the arena. */
const char *rp_profile_place(struct rp_arena *arena, struct rp_bytes file, uint64_t place);

/* Whether a frame is Python, operating system or native code, by the name of its source file or
   library. */
uint32_t rp_profile_kind_of_file(struct rp_bytes file);

static inline struct rp_bytes rp_bytes_of(const char *text)
{
    return (struct rp_bytes){(const uint8_t *)text, strlen(text)};
}

/* Cuts white space off both ends. */
struct rp_bytes rp_bytes_trim(struct rp_bytes b);
/* Parses a number that consists of digits only and is below 2^62. */
bool rp_bytes_number(struct rp_bytes b, int64_t *out);
