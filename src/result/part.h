/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of a question is the data that it keeps of one rank: a struct described by the same
 * tables of fields as a result, so that it can be written, sent to another process and read there.
 * The struct and its table are made of one list: a member that is not described, and would be lost
 * on the way, cannot be declared.
 *
 *     #define PART(M, s)           \
 *         M(s, TEXT, device)       \
 *         M(s, PLAIN, int64_t, busy_ns) \
 *         M(s, PLAIN_VEC, gap_vec, gaps, struct gap)
 *     RP_PART_STRUCT(part, PART);
 *     RP_PART_TYPE(part_type, struct part, PART);
 *
 * "Plain" is memory without pointers (numbers, flags, enums, and structs of these); it is copied as
 * it is, so both processes must run the same build, which rp_part_read checks. Lists count their
 * items in a member n<member>; vectors are RP_VEC. Records and items are given by their tag: the
 * table of struct x is x_type. Result types can be items, too.
 *
 *     PLAIN, type, member              ARRAY, type, member, length
 *     TEXT, member                     TEXTS, member, length
 *     RECORD, tag, member              RECORDS, tag, member, length
 *     LIST, tag, member                PLAIN_LIST, type, member
 *     PLAIN_VEC, vector, member, type
 */
#include "base/arena.h"
#include "io/output.h"

#include <reprise/result.h>

#define RP_PART_FIELD_(type_, offset_, count_, item_) \
    RP_FIELD_("", NULL, RP_T_##type_, RP_UNIT_NONE, 0, offset_, count_, item_, "")
#define RP_PART_PLAIN(s, member) \
    RP_PART_FIELD_(PLAIN, offsetof(s, member), sizeof(((s *)0)->member), NULL)
#define RP_PART_BOOL(s, member)         RP_PART_FIELD_(BOOL, offsetof(s, member), 0, NULL)
#define RP_PART_TEXT(s, member)         RP_PART_FIELD_(STR, offsetof(s, member), 0, NULL)
#define RP_PART_RECORD(s, member, item) RP_PART_FIELD_(RECORD, offsetof(s, member), 0, item)
/* An array of so many records. */
#define RP_PART_RECORDS(s, member, n, item) RP_PART_FIELD_(RECORD, offsetof(s, member), n, item)
#define RP_PART_LIST(s, member, item) \
    RP_PART_FIELD_(LIST, offsetof(s, member), offsetof(s, n##member), item)
#define RP_PART_VEC(s, member, item) \
    RP_PART_FIELD_(VEC, offsetof(s, member.at), offsetof(s, member.n), item)
#define RP_PART_PLAIN_LIST(s, member, item) RP_PART_LIST(s, member, RP_PART_PLAIN_TYPE(item))
#define RP_PART_PLAIN_VEC(s, member, item)  RP_PART_VEC(s, member, RP_PART_PLAIN_TYPE(item))
#define RP_PART_END                         RP_FIELD_END

#define RP_PART_STRUCT(tag, MEMBERS)          \
    struct tag {                              \
        MEMBERS(RP_PART_DECLARE_, struct tag) \
    }
#define RP_PART_TYPE(type_, s, MEMBERS)                                                          \
    static const struct rp_field type_##_fields[] = {MEMBERS(RP_PART_DESCRIBE_, s) RP_PART_END}; \
    const struct rp_type type_ = {#type_, sizeof(s), type_##_fields, NULL}

#define RP_PART_DECLARE_(s, kind, ...) RP_PART_DECLARE_##kind(__VA_ARGS__)
#define RP_PART_DECLARE_PLAIN(type, member)                                         \
    type member;                                                                    \
    _Static_assert(_Generic(*(type *)0, char * : 0, const char * : 0, default : 1), \
                   "a text is not plain memory");
#define RP_PART_DECLARE_ARRAY(type, member, n)  type member[n];
#define RP_PART_DECLARE_TEXT(member)            const char *member;
#define RP_PART_DECLARE_TEXTS(member, n)        const char *member[n];
#define RP_PART_DECLARE_RECORD(tag, member)     struct tag member;
#define RP_PART_DECLARE_RECORDS(tag, member, n) struct tag member[n];
#define RP_PART_DECLARE_LIST(tag, member) \
    size_t n##member;                     \
    struct tag *member;
#define RP_PART_DECLARE_PLAIN_LIST(type, member) \
    size_t n##member;                            \
    type *member;
#define RP_PART_DECLARE_PLAIN_VEC(vector, member, type) vector member;

#define RP_PART_DESCRIBE_(s, kind, ...)                     RP_PART_DESCRIBE_##kind(s, __VA_ARGS__)
#define RP_PART_DESCRIBE_PLAIN(s, type, member)             RP_PART_PLAIN(s, member),
#define RP_PART_DESCRIBE_ARRAY(s, type, member, n)          RP_PART_PLAIN(s, member),
#define RP_PART_DESCRIBE_TEXT(s, member)                    RP_PART_TEXT(s, member),
#define RP_PART_DESCRIBE_TEXTS(s, member, n)                RP_PART_RECORDS(s, member, n, &rp_type_string),
#define RP_PART_DESCRIBE_RECORD(s, tag, member)             RP_PART_RECORD(s, member, &tag##_type),
#define RP_PART_DESCRIBE_RECORDS(s, tag, member, n)         RP_PART_RECORDS(s, member, n, &tag##_type),
#define RP_PART_DESCRIBE_LIST(s, tag, member)               RP_PART_LIST(s, member, &tag##_type),
#define RP_PART_DESCRIBE_PLAIN_LIST(s, type, member)        RP_PART_PLAIN_LIST(s, member, type),
#define RP_PART_DESCRIBE_PLAIN_VEC(s, vector, member, type) RP_PART_PLAIN_VEC(s, member, type),

/* Makes the type of items that are plain memory; only at file scope. */
#define RP_PART_PLAIN_TYPE(item) (&(const struct rp_type){#item, sizeof(item), rp_plain_item, NULL})
extern const struct rp_field rp_plain_item[];

/* Hands over the memory of all vectors of a part to the arena, which then owns everything. */
enum rp_code rp_part_adopt(const struct rp_type *type, void *part, struct rp_arena *arena,
                           struct rp_err *err);

/* Copies what the type describes into `to`, which has type->size bytes; texts, each once, and items
   are in the arena. Vectors of the copy must not grow. */
enum rp_code rp_part_copy(const struct rp_type *type, const void *part, struct rp_arena *arena,
                          void *to, struct rp_err *err);

/* Errors stick to `to`. */
void rp_part_write(const struct rp_type *type, const void *part, struct rp_out *to);

/* Fills part, which has type->size bytes; texts and items are in the arena. Vectors that were read
   must not grow. Returns RP_FORMAT if the bytes are not a part of this type or were cut. */
enum rp_code rp_part_read(const struct rp_type *type, const void *bytes, size_t n,
                          struct rp_arena *arena, void *part, struct rp_err *err);
