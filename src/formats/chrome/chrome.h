/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of the Chrome-JSON reader share. Only they include it.
 *
 *   chrome.c         the document: sniffing, the list of events, how it ends, salvage
 *   event.c   one event: fields, times, track, origin
 *   fast.c    the same for events that look like earlier ones
 *   args.c    its arguments, predicted from the events before it
 *   kinds.c   what categories, phases and names mean
 *   header.c  everything beside the list
 *   facts.c   what it says: devices, rank, framework
 *   fused.c   files of several ranks by TraceFusion
 *   samples.c samples of call stacks
 *   text.c    strings and numbers
 */
#include "base/arena.h"
#include "base/hash.h"
#include "base/vec.h"
#include "formats/chrome/facts.h"
#include "formats/formats.h"
#include "io/json_pull.h"
#include "trace/build/build.h"

struct rp_chrome_category {
    const char *text; /* as written in the file; NULL for events without a category */
    uint32_t len;
    rp_str str;
    uint32_t root; /* of its argument tree */
    uint8_t kind, flags;
    uint8_t next; /* the slot of recent that is replaced next */
    struct {      /* the origins used last; phase 0 means that a slot is free */
        char phase;
        uint8_t kind, scope;
        uint16_t origin;
    } recent[4];
};

struct rp_chrome_memo { /* str: a string seen before; 0: none */
    rp_str str;
    uint32_t len;
};

/*
 * A tree of the argument lists seen so far. A node is one more argument (key and type) after those
 * of its parent, so the last node of a list has its shape. The child used last is tried first: one
 * comparison of bytes per key, without hashing.
 */
struct rp_chrome_node {
    const char *key; /* as written, undecoded */
    uint32_t key_len;
    rp_str key_str;
    uint32_t hot, first, next; /* the child used last, the first child, the next sibling; 0: none */
    uint16_t shape;
    uint16_t replaces; /* for a duplicate key: 1 + the argument that is overwritten; else 0 */
    uint8_t type, nchildren;
    bool has_shape, is_correlation;
    struct rp_chrome_memo memo; /* the last string that it had */
};

/* The result of reading the arguments of an event. */
struct rp_chrome_args {
    uint32_t n;
    uint16_t shape;
    bool has_correlation, correlation_is_text;
    int64_t correlation; /* a number, or a string id */
    uint32_t duplicates; /* duplicate keys */
};

enum rp_chrome_field {
    RP_CHROME_OTHER,
    RP_CHROME_PH,
    RP_CHROME_CAT,
    RP_CHROME_NAME,
    RP_CHROME_PID,
    RP_CHROME_TID,
    RP_CHROME_TS,
    RP_CHROME_DUR,
    RP_CHROME_ARGS, /* a step that reads one argument */
    RP_CHROME_ID,
    RP_CHROME_BP,
    RP_CHROME_SCOPE,
    RP_CHROME_END /* a step that completes the event */
};

struct rp_chrome_ident { /* a pid, tid or id, which is a number or a text */
    int64_t number;
    rp_str text;
    bool given, local; /* a local id is unique only inside its process */
};

/* One event as it was read, before it is added to the builder. Its arguments are in r->args. */
struct rp_chrome_event {
    int64_t ts_ns, dur_ns;
    struct rp_chrome_ident pid, tid, id;
    struct rp_chrome_args args;
    rp_str name;
    uint32_t category;
    uint32_t seen; /* bit RP_CHROME_x of each field */
    uint8_t flags, flow_flags;
    uint8_t scope; /* RP_ORIGIN_SCOPE_*, or 0 */
    char phase;
    bool fraction;                          /* its ts is not a whole number */
    uint8_t bad_times, huge_times, rounded; /* of ts and dur */
    uint32_t duplicates;                    /* duplicate keys */
};

/*
 * Templates. Events of a kind are the same text except for some values:
 *
 *   {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 416, "ts": 12.345, ...
 *   ------------- literal -------------> value <--- literal --->  ...
 *
 * A step is a literal and the type of the value after it; steps are a tree, like the nodes of
 * arguments. The last step has the event without its values.
 */
struct rp_chrome_step {
    const char *literal;
    uint32_t len, nindex;      /* bytes, and entries of the structural index in them */
    uint32_t hot, first, next; /* the child used last, the first child, the next sibling; 0: none */
    uint8_t field;             /* enum rp_chrome_field of the value after it */
    uint8_t behind;            /* type of the value before it (enum rp_arg_type, for arguments) */
    uint8_t nchildren;
    bool is_correlation;
    rp_str key;                 /* of the argument */
    uint32_t event;             /* for the last step: index into events */
    struct rp_chrome_memo memo; /* the last string that the value was */
};

struct rp_chrome_mark { /* a value of the event that is being learned */
    const char *begin, *end;
    const uint32_t *index, *index_end;
    rp_str key;
    uint8_t field, type;
};

struct rp_chrome_learn {
    RP_VEC(struct rp_chrome_step) steps; /* 0: the root */
    RP_VEC(struct rp_chrome_event) events;
    RP_VEC(struct rp_chrome_mark) marks;
    uint64_t block; /* where the block of the event that is being learned begins; UINT64_MAX if none
                       is */
    const char *begin; /* of the event */
    const uint32_t *index;
    const char *at; /* where the value that is being read begins */
    const uint32_t *at_index;
    int64_t credit; /* learning an event uses up credit, every event that fits adds some */
};

struct rp_chrome_fused_process {
    int64_t rank, number;
    uint32_t k; /* among those of its rank */
};

struct rp_chrome_track { /* an entry of the cache of tracks */
    int64_t pid, tid;
    rp_str pid_text, tid_text;
    rp_track track;
    uint8_t has_tid;
    bool used;
};

struct rp_chrome_frame { /* of stackFrames */
    struct rp_call_frame frame;
    uint64_t parent; /* key of the parent in frame_of, or 0 */
    uint32_t stack;  /* set at the end: the builder's stack; RP_NONE before */
    bool walked;
};

struct rp_chrome_sample {
    struct rp_chrome_ident pid, tid;
    int64_t ts_ns, weight;
    uint64_t frame; /* key of the frame in frame_of, or 0 */
    uint8_t flags;
};

#define RP_CHROME_TRACKS 256

#define RP_CHROME_NAMES 4096

struct rp_chrome {
    struct rp_json *json;
    struct rp_input *in;
    const struct rp_read_options *options;
    struct rp_builder *builder;
    struct rp_trace *trace; /* belongs to the builder; a reader sets fields and counters in it */
    struct rp_health *health;
    struct rp_arena arena;

    /* state of the list of events */
    bool has_list, is_array, in_event;
    bool drained; /* after an error in compressed input: the result of reading the rest */
    struct rp_err rest;
    uint64_t bare_breaks; /* errors that are directly followed by the next event */
    uint64_t nevents;     /* complete events, with arrows */
    uint64_t content_bytes;

    RP_VEC(struct rp_chrome_category) categories; /* 0: none */
    struct rp_map category_of;                    /* string id -> index */
    uint32_t last_category;

    RP_VEC(struct rp_chrome_node) nodes; /* 0: not used */
    RP_VEC(struct rp_arg) args;
    struct rp_chrome_learn learn;

    struct rp_chrome_track tracks[RP_CHROME_TRACKS];
    RP_VEC(uint8_t) track_kind; /* by track: the enum rp_kind of its events, or 0 */
    RP_VEC(uint8_t) is_device;  /* by process */
    struct {                    /* the processes of rocprof, version 1 (rocprof.c) */
        int64_t copies, device; /* process numbers of the copies and of the first device */
        bool has_copies, has_device;
    } rocprof;

    struct rp_chrome_memo names[RP_CHROME_NAMES];
    struct rp_chrome_memo raws[RP_CHROME_NAMES]; /* text that was parsed as JSON before */
    rp_str newest;                               /* strings up to this one were checked for UTF-8 */

    RP_VEC(char) scratch;
    struct rp_chrome_facts facts;
    bool lines; /* events are one per line, without commas between them */
    struct {    /* for files that TraceFusion joined (fused.c): keys (0: not seen) and processes */
        rp_str rank, pid_raw, id_raw, correlation_raw;
        struct rp_map process_of,
            count_of; /* count_of: from a rank to the number of its processes */
        RP_VEC(struct rp_chrome_fused_process) processes;
    } fused;
    struct {
        RP_VEC(struct rp_chrome_frame) frames;
        RP_VEC(struct rp_chrome_sample) samples;
        struct rp_map frame_of;
        RP_VEC(uint32_t) path;
    } sampled;
    void *c_locale; /* locale_t for strtod, created when first needed */
};

/* ---- text.c ---- */

enum rp_code rp_chrome_intern(struct rp_chrome *r, const char *s, size_t len, rp_str *out,
                              struct rp_err *err);
/* Interns the decoded text of a string token. */
enum rp_code rp_chrome_intern_token(struct rp_chrome *r, struct rp_json_token *token, rp_str *out,
                                    struct rp_err *err);
/* Interns strings that repeat often. */
enum rp_code rp_chrome_intern_name(struct rp_chrome *r, struct rp_json_token *token, rp_str *out,
                                   struct rp_err *err);
/* Whether the memo holds this text. */
static inline bool rp_chrome_recall(const struct rp_chrome *r, const struct rp_chrome_memo *memo,
                                    const char *s, size_t len)
{
    size_t n;

    return memo->str && memo->len == len &&
           memcmp(rp_builder_borrow_str(r->builder, memo->str, &n), s, len) == 0;
}

/* Interns raw JSON, which must come from rp_json_raw; rp_chrome_known_raw finds it again, or gives
   0. */
enum rp_code rp_chrome_intern_raw(struct rp_chrome *r, const char *s, size_t len, rp_str *out,
                                  struct rp_err *err);
rp_str rp_chrome_known_raw(const struct rp_chrome *r, const char *s, size_t len);
/* False if it is not a 64-bit integer. */
bool rp_chrome_parse_int(const char *s, size_t len, int64_t *out);
/* False if it is not finite, or memory ran out. */
bool rp_chrome_parse_double(struct rp_chrome *r, const char *s, size_t len, double *out);
/* Whether the value of the field just read is an object or array. The parser is at its first byte.
 */
static inline bool rp_chrome_at_container(const struct rp_json *p)
{
    return *p->at == '{' || *p->at == '[';
}
/* Skips to the end of a container that rp_json_value entered at this depth. */
void rp_chrome_pass(struct rp_json *p, uint32_t depth);

/* ---- kinds.c ---- */

/* The kind of an event without a category, by its name. */
uint8_t rp_chrome_name_kind(const char *name, size_t len, char phase, unsigned *signs);
/* ---- args.c ---- */

/* Root of a new tree. */
enum rp_code rp_chrome_new_root(struct rp_chrome *r, uint32_t *out, struct rp_err *err);
/* Reads the fields of the object just entered into r->args. */
enum rp_code rp_chrome_read_args(struct rp_chrome *r, uint32_t root, struct rp_chrome_args *out,
                                 struct rp_err *err);

/* Notes the value of an argument "correlation"; token is its text, as written. */
enum rp_code rp_chrome_set_correlation(struct rp_chrome *r, const struct rp_arg *arg,
                                       const struct rp_json_token *token,
                                       struct rp_chrome_args *out, struct rp_err *err);

/* ---- fast.c ---- */

enum rp_code rp_chrome_learn_init(struct rp_chrome *r, struct rp_err *err);
void rp_chrome_learn_release(struct rp_chrome *r);
/* Reads the next event (after rp_json_element) if it fits a template; false: it does not, and the
 * state is unchanged. */
bool rp_chrome_read_fast(struct rp_chrome *r, enum rp_code *code, struct rp_err *err);
/* These two surround the reading of an event by its fields: */
void rp_chrome_learn_event(struct rp_chrome *r); /* where its '{' is next */
enum rp_code rp_chrome_learn_value(struct rp_chrome *r, uint8_t field,
                                   const struct rp_json_token *v, uint8_t type, rp_str key,
                                   struct rp_err *err);
enum rp_code rp_chrome_learn_end(struct rp_chrome *r, const struct rp_chrome_event *e,
                                 struct rp_err *err);
/* Notes that a value begins here. */
static inline void rp_chrome_learn_begin(struct rp_chrome *r)
{
    r->learn.at = r->json->at;
    r->learn.at_index = r->json->ix;
}

/* ---- event.c ---- */

/* numeric: a text that is an integer becomes that number, as 7 and "7" are the id of the same
 * arrow. */
enum rp_code rp_chrome_set_ident(struct rp_chrome *r, struct rp_chrome_ident *to,
                                 struct rp_json_token *v, bool numeric, struct rp_err *err);
enum rp_code rp_chrome_find_track(struct rp_chrome *r, const struct rp_chrome_ident *pid,
                                  const struct rp_chrome_ident *tid, rp_track *out,
                                  struct rp_err *err);
/* Hands a complete event to the builder. */
enum rp_code rp_chrome_add(struct rp_chrome *r, const struct rp_chrome_event *e,
                           struct rp_err *err);

/* Reads the fields of the object just entered and adds the event. RP_OK also if the parser failed:
 * the parser keeps that error. */
enum rp_code rp_chrome_read_event(struct rp_chrome *r, struct rp_err *err);
enum rp_code rp_chrome_category(struct rp_chrome *r, struct rp_json_token *token, uint32_t *out,
                                struct rp_err *err);

/* ---- fused.c ---- */

/* Notes a key of an argument that is seen for the first time. */
void rp_chrome_note_key(struct rp_chrome *r, const struct rp_json_token *token, rp_str str);
/* Gives the event the ids that it had in the file of its rank. */
enum rp_code rp_chrome_unfuse(struct rp_chrome *r, struct rp_chrome_event *e, struct rp_err *err);
/* Adds the record of the ranks. */
enum rp_code rp_chrome_end_fused(struct rp_chrome *r, struct rp_err *err);

/* ---- rocprof.c ---- */

/* Notes the name of a process of rocprof's first version. */
void rp_chrome_note_rocprof(struct rp_chrome *r, const struct rp_chrome_ident *pid,
                            const char *name, size_t len);
/* Gives an event the ids of its process and stream; *kind is set to what it is, or left. */
enum rp_code rp_chrome_place_rocprof(struct rp_chrome *r, struct rp_chrome_event *e, uint8_t *kind,
                                     struct rp_err *err);

/* ---- samples.c ---- */

/* Reads the value of 'stackFrames' or 'samples'; the frames may come after their samples. */
enum rp_code rp_chrome_read_frames(struct rp_chrome *r, struct rp_err *err);
enum rp_code rp_chrome_read_samples(struct rp_chrome *r, struct rp_err *err);
/* Adds the samples to the builder, after all events. */
enum rp_code rp_chrome_end_samples(struct rp_chrome *r, struct rp_err *err);
void rp_chrome_release_samples(struct rp_chrome *r);

/* ---- header.c ---- */

/* Reads the value of a top-level key that is not the list of events. */
enum rp_code rp_chrome_read_header(struct rp_chrome *r, struct rp_json_token *key,
                                   struct rp_err *err);
