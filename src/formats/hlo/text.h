/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the parts of the HLO text reader: one scanner over the whole text in memory. There are
 * no tokens: each construct is recognised by its first bytes, and is skipped or kept as a slice if
 * its content is not needed yet.
 */
#include "base/text.h"
#include "formats/string_cache.h"
#include "program/program.h"

struct rp_hlo_call { /* a call of the operation being read, or one whose computation is not yet
                        defined */
    uint32_t slot;
    uint32_t name;
    uint32_t at; /* index in program.called */
    const char *where;
};

struct rp_hlo_inlined { /* a computation that is written where it is called */
    const char *at;     /* after its '{' */
    uint32_t name, depth;
};

struct rp_hlo_async {       /* a started operation whose computation is not created yet */
    uint32_t opcode, shape; /* string; of the result */
    uint32_t op;            /* that started it */
    uint32_t called;        /* index in program.called */
    uint32_t attrs, nattrs; /* of async_attrs */
    uint32_t calls, ncalls; /* of async_calls */
};

#define RP_HLO_TEXT_MEMOS 256
struct rp_hlo_value_memo { /* a parsed value, kept because many operations have the same one */
    struct rp_slice text;
    struct rp_attr value;
};

struct rp_hlo_text {
    const char *begin, *at, *end;
    struct rp_program *p;
    struct rp_limits limits;
    struct rp_err *err;
    RP_VEC(uint64_t) op_of;          /* from string to computation + 1 (high half) and operation */
    RP_VEC(uint32_t) computation_of; /* from string to computation + 1 */
    struct rp_strtab shape_texts;    /* shapes as written ... */
    RP_VEC(uint32_t) shape_of;       /* ... and what they are */
    struct rp_map parts_of;          /* from operation and part to its implicit get-tuple-element */
    RP_VEC(uint32_t) operands;       /* operands of the operation being read */
    RP_VEC(uint32_t) ids;            /* ids of the attribute being read */
    RP_VEC(struct rp_hlo_call) calls;   /* calls of the operation being read */
    RP_VEC(struct rp_hlo_call) waiting; /* computations called before they are defined */
    RP_VEC(struct rp_hlo_async) async;
    RP_VEC(struct rp_attr) async_attrs;
    RP_VEC(struct rp_hlo_call) async_calls;
    RP_VEC(struct rp_hlo_inlined) inlined; /* read when the computation around them is complete */
    size_t next_inlined;
    bool bodies;                  /* every computation is also written where it is called */
    uint32_t depth;               /* depth of the inlined computation being read */
    struct rp_string_cache cache; /* strings of opcodes, keys and metadata */
    struct rp_hlo_value_memo values[RP_HLO_TEXT_MEMOS];
    uint32_t last;   /* the last computation of the text */
    uint32_t nested; /* levels of instructions inside operands */
};

#define RP_HLO_FAIL(r, where, ...)                                                  \
    rp_text_error((r)->err, RP_FORMAT, (r)->begin, (size_t)((r)->end - (r)->begin), \
                  (size_t)((where) - (r)->begin), __VA_ARGS__)

/* ---- the scanner ---- */

enum { RP_HLO_CHAR_NAME = 1, RP_HLO_CHAR_DIGIT = 2, RP_HLO_CHAR_BLANK = 4 };
extern const uint8_t rp_hlo_char_class[256];

static inline bool rp_hlo_text_is(const struct rp_hlo_text *r, const char *s, unsigned class)
{
    return s < r->end && rp_hlo_char_class[(unsigned char)*s] & class;
}

void rp_hlo_text_skip_comment(struct rp_hlo_text *r);
/* Takes a word that is followed by a blank, and the space around it. */
bool rp_hlo_text_heading(struct rp_hlo_text *r, const char *word);

/* Skips spaces, line ends and comments. */
static inline void rp_hlo_text_space(struct rp_hlo_text *r)
{
    for (;;) {
        while (rp_hlo_text_is(r, r->at, RP_HLO_CHAR_BLANK))
            r->at++;
        if (r->at + 1 >= r->end || *r->at != '/' || (r->at[1] != '*' && r->at[1] != '/'))
            return;
        rp_hlo_text_skip_comment(r);
    }
}

static inline char rp_hlo_text_peek(const struct rp_hlo_text *r)
{
    return r->at < r->end ? *r->at : '\0';
}

/* Consumes c if it is next. */
static inline bool rp_hlo_text_take(struct rp_hlo_text *r, char c)
{
    rp_hlo_text_space(r);
    if (rp_hlo_text_peek(r) != c)
        return false;
    r->at++;
    return true;
}

enum rp_code rp_hlo_text_expect(struct rp_hlo_text *r, char c, const char *where);

/* Reads a name without its '%'; empty if there is none. */
static inline struct rp_slice rp_hlo_text_name(struct rp_hlo_text *r)
{
    const char *from;

    if (rp_hlo_text_peek(r) == '%')
        r->at++;
    from = r->at;
    while (rp_hlo_text_is(r, r->at, RP_HLO_CHAR_NAME))
        r->at++;
    return (struct rp_slice){from, (uint32_t)(r->at - from), 0};
}

/* Reads an opcode or a key, a name that begins with a letter or '_'. Otherwise returns an empty
   slice and reads nothing. */
static inline struct rp_slice rp_hlo_text_word(struct rp_hlo_text *r)
{
    char c = rp_hlo_text_peek(r);

    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')
        return rp_hlo_text_name(r);
    return (struct rp_slice){r->at, 0, 0};
}

bool rp_hlo_text_int(struct rp_hlo_text *r, int64_t *value);
/* Reads a quoted string without its quotes and escapes; it is copied to the arena only if it has
   escapes. */
enum rp_code rp_hlo_text_string(struct rp_hlo_text *r, struct rp_slice *out);
/* The position after the bracket that closes the one here, or NULL. */
const char *rp_hlo_text_bracket_end(const struct rp_hlo_text *r, const char *s);
/* Reads the value of an attribute: up to a comma, a blank or a closing bracket outside of
   brackets. */
enum rp_code rp_hlo_text_value(struct rp_hlo_text *r, struct rp_slice *out);

/* ---- the parts ---- */

/* Whether a shape begins here: a type with '[', or a tuple. */
bool rp_hlo_text_at_shape(const struct rp_hlo_text *r);
enum rp_code rp_hlo_text_shape(struct rp_hlo_text *r, uint32_t *id);

/* Adds the calls of the newest operation, in the order of their slots. */
enum rp_code rp_hlo_text_add_calls(struct rp_hlo_text *r);

/* Recognises "x-start", "x-update" and "x-done" for an opcode x: sets *code, and returns the
   string of x for "x-start", otherwise RP_NONE. *code is unchanged for other words. */
uint32_t rp_hlo_async_short(const struct rp_hlo_text *r, struct rp_slice name, uint16_t *code);
/* Defers the attributes of a started operation: they belong to the operation that it wraps. */
enum rp_code rp_hlo_async_defer(struct rp_hlo_text *r, uint32_t op, uint32_t wrapped);
/* Makes the computations of all started operations, after the end of a computation. */
enum rp_code rp_hlo_async_flush(struct rp_hlo_text *r);

/* Reads one line of a computation. */
enum rp_code rp_hlo_text_instruction(struct rp_hlo_text *r);
/* Reads the key and the '=' of an attribute. */
enum rp_code rp_hlo_text_attr_key(struct rp_hlo_text *r, uint32_t *key);
/* Reads FileNames, FunctionNames, FileLocations and StackFrames where they are. */
enum rp_code rp_hlo_text_frames(struct rp_hlo_text *r);
/* "{op_name=\"...\" source_line=3}" */
enum rp_code rp_hlo_text_metadata(struct rp_hlo_text *r, struct rp_slice text, uint32_t *id);
